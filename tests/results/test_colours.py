"""Series of every plot differ for colour-blind readers, by their colours or by their marks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support.colours import VISIONS, difference, seen
from test_plots import FAMILIES, Make

from exampp.results.plots.figure import DASHES, GREY, SERIES, SHAPES

LEAST = 11.0
"""CIEDE2000 between two series, for any vision. About 2 is just noticeable side by side."""
MARKS = ("shape", "strokeDash", "xOffset", "yOffset", "x", "y")
"""Marks that distinguish series without colour: form, dashes, and place."""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # Sharma, Wu and Dalal 2005, Table 1
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_are_those_that_are_published(
    one: tuple[float, float, float], other: tuple[float, float, float], expected: float
) -> None:
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)
    assert difference(other, one) == pytest.approx(expected, abs=1e-4)


def closest(colours: list[str], vision: str) -> float:
    pairs = itertools.combinations([seen(one, vision) for one in colours], 2)
    return min((difference(*pair) for pair in pairs), default=100.0)


@pytest.mark.parametrize("vision", VISIONS)
def test_series_differ_for_every_vision(vision: str) -> None:
    assert closest([*SERIES, GREY], vision) >= LEAST


def test_marks_differ_as_often_as_colours() -> None:
    assert len(set(SERIES)) == len(set(SHAPES)) == len(set(DASHES))


def encodings(spec: Any) -> Iterator[Mapping[str, Any]]:
    """The encodings of a specification, each with what it inherits."""
    if isinstance(spec, list):
        for one in spec:
            yield from encodings(one)
    elif isinstance(spec, dict):
        own = spec.get("encoding", {})
        below = [
            *encodings(
                [spec[key] for key in ("layer", "concat", "hconcat", "vconcat") if key in spec]
            )
        ]
        yield from ({**own, **one} for one in below or [{}])


@pytest.mark.parametrize("make", FAMILIES)
def test_names_are_told_apart_without_colour(make: Make) -> None:
    """A coloured name also has a place, a shape or dashes, unless colours suffice."""
    for one in encodings(json.loads(make(["one", "two", "three", "four"]).json())):
        colour = one.get("color") or {}
        if colour.get("type") != "nominal":
            continue
        inks = list(dict.fromkeys(colour["scale"]["range"]))
        far = min(closest(inks, vision) for vision in VISIONS)
        marked = [m for m in MARKS if (one.get(m) or {}).get("field") == colour["field"]]
        assert marked or far >= 2 * LEAST, (colour["field"], inks, far)
