"""Reads replies of one piece repeated, as long as are read and twenty times that, and times them.

    python benchmarks/campaigns/long_replies.py

Prints the slowest, by processor time, and exits with 1 if one takes a second. What is longer than
the limit is told as such; below it the time must grow with the length, not with its square.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from exampp.prompts import read_reply, verify_answer
from exampp.prompts.replies import LONGEST
from exampp.prompts.words import best_span

PIECES = (
    *(
        ":",
        " ",
        "4",
        "\n",
        "\n4",
        "4 ",
        "4-",
        "4/",
        "4 or ",
        "4 of ",
        "{",
        "[",
        "(",
        '"',
        '"a ',
        "'",
    ),
    *(
        "<",
        "<a",
        "<think>",
        "</think>",
        "<|channel|>final<|message|>",
        "```",
        "\n> ",
        "|",
        "-",
        "_",
    ),
    *(
        "yes ",
        "no ",
        "I ",
        "the ",
        "so ",
        "I rate ",
        "rating of ",
        "n't",
        "Answer: ",
        "\ud800",
        "\0",
    ),
    *("Rating: ", "Rating: 4, ", "Rating 4, ", "Rating - 4 ", "| Rating | 4 ", "I rate it 4 "),
    *('{"a":"', '{"grade": 4} ', '{"a":', "I'm sorry ", "unfortunately, ", "error ", "\u00bd", "a"),
)
READINGS = ("self-rating", "rating", "yes-no", "extraction")


def seconds(piece: str, length: int) -> tuple[float, str]:
    """Processor time of the slowest thing done with a reply, and what that is."""
    reply = (piece * (length // len(piece) + 1))[:length]
    options: dict[str, Any] = {"highest": 1, "field": "grade", "keys": ["blue"]}
    things: dict[str, Callable[[], object]] = {
        f"{mode} {reading}": partial(read_reply, reading, reply, mode=mode, **options)
        for mode in ("exam", "rubric")
        for reading in READINGS
    }
    if length <= LONGEST:
        things["verify"] = partial(verify_answer, reply, [f"blue {piece}"], f"{reply}c")
        things["best span"] = partial(best_span, f"{reply}c", f"{reply}b")
    taken = []
    for name, thing in things.items():
        start = time.process_time()
        thing()
        taken.append((time.process_time() - start, name))
    return max(taken)


def main() -> None:
    """Run the campaign."""
    found = [
        (*seconds(piece, length), piece, length)
        for length in (LONGEST, 20 * LONGEST)
        for piece in PIECES
    ]
    print(f"{len(found)} replies; the slowest:")
    for taken, name, piece, length in sorted(found, reverse=True)[:8]:
        print(f"{taken:8.3f} s  {name:20}{length:>9,} characters of {piece!a}")
    sys.exit(max(found)[0] >= 1)


if __name__ == "__main__":
    main()
