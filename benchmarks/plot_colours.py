"""Measure the difference of the series of every plot for colour-blind readers.

PYTHONPATH=tests:tests/results python benchmarks/plot_colours.py

Prints for each plot the least CIEDE2000 between two of its series over normal vision, protanopia,
deuteranopia and tritanopia, and what distinguishes the series without colour. About 2 is just
noticeable side by side.
"""

from __future__ import annotations

import json
from itertools import combinations, pairwise

from support.colours import VISIONS, difference, seen
from test_colours import MARKS, encodings
from test_plots import FAMILIES

from exampp.results.plots.figure import GRADES, GREY, SERIES
from exampp.results.plots.heatmap import DIVERGING


def least(colours: list[str]) -> str:
    """The least difference between two colours, and the vision that has it."""
    found = [
        (difference(seen(one, vision), seen(other, vision)), vision)
        for vision in VISIONS
        for one, other in combinations(dict.fromkeys(colours), 2)
    ]
    return "one colour" if not found else "{:.1f} ({})".format(*min(found))


def main() -> None:
    """Print a line for each plot, then for the palettes."""
    for make in FAMILIES:
        figure = make(["one", "two", "three", "four"])
        colours, marks = list[str](), set[str]()
        for one in encodings(json.loads(figure.json())):
            scales = [one.get(name) or {} for name in ("color", "fill", "stroke")]
            colours += [
                ink for of in scales if of.get("type") == "nominal" for ink in of["scale"]["range"]
            ]
            marks |= {mark for mark in MARKS if (one.get(mark) or {}).get("type") == "nominal"}
        shown = [one for one in colours if one.startswith("#")]
        print(f"{figure.name:12}  {least(shown):24}  {', '.join(sorted(marks)) or '-'}")
    for name, palette in (
        ("all series", [*SERIES, GREY]),
        ("ends of heat map", [DIVERGING[0], DIVERGING[-1]]),
    ):
        print(f"{name:18}  {least(list(palette))}")
    steps = [least(list(pair)) for pair in pairwise(GRADES)]
    print(f"neighbouring grades  {', '.join(steps)}; each has its number")


if __name__ == "__main__":
    main()
