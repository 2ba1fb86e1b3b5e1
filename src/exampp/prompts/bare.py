"""What a model writes around an item and is no part of it: numbers, labels, bullets, quotes, bold.

A mark goes where it can be nothing else. A number or letter with a dot may belong to the item
("2. Samuel", "A. Lincoln"): it goes before a word that asks, and where those of all items count up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from exampp.outside import fit_text

_ASKING = (
    r"(?:what|which|who|whom|whose|when|where|why|how|in what|in which|to what|for what|on what|"
    r"under what|is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|"
    r"describe|explain|name|list|define|question|q\d{0,3})"
)
_NUMBER = re.compile(r"\(?(?P<number>[0-9]{1,3}|[A-Za-z])[.):](?:\s+|(?=[^\W\d_a-z]|[\"“*]))")
_LABEL = r"(?:question|nugget|key ?fact|fact|item|q)"
_OPENINGS = (
    # a bullet, a quoted line, a heading, a box to tick
    re.compile(r"(?:[-*+•‣◦▪·\u2013\u2014>]|#{2,6})\s+(?:\[[ xX]?\]\s+)?"),
    # Question: Q1. Nugget 2) Key fact #3 - **Question 1:** **Question 1**:
    re.compile(
        rf"(?i)(?P<bold>\*\*|__)?(?:{_LABEL}\s*"
        r"(?:#?\s*\d{1,3}(?:(?P=bold))?\s*(?:[.:)]|[-\u2013\u2014](?=\s))|(?:(?P=bold))?:)|q\.)"
        r"(?:(?P=bold))?(?:\s+|(?=[\"“*]))"
    ),
)
_NUMBER_BEFORE_A_QUESTION = re.compile(
    rf"\(?(?:\d{{1,3}}[.):]+\s*(?=[\"“*_]*(?i:{_ASKING})\b)"
    rf"|(?:[A-Za-z]|[IVXivx]{{2,5}})[.):]+\s*(?=[\"“*_]*(?=[A-Z])(?i:{_ASKING})\b))"
)
_AROUND = tuple(
    re.compile(rf"{start}(?=\S)(?P<inner>{inner})(?<=\S){end}", re.DOTALL)
    for start, end, inner in (
        (r"\*\*", r"\*\*", r"(?:(?!\*\*).)+"),
        ("__", "__", "(?:(?!__).)+"),
        (r"\*", r"\*", r"[^*]+"),
        ("_", "_", "[^_]+"),
        ("`", "`", "[^`]+"),
        ('"', '",?', '[^"]+'),
        ("“", "”,?", "[^“”]+"),
        ("«", "»,?", "[^«»]+"),
        ("\u2018", "\u2019,?", "[^\u2018\u2019]+"),
        ("'", "',?", "(?:[^']|(?<=\\w)'(?=\\w))+"),
    )
)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])((?:(?!\*\*).)+?)(?<=[^\s*])\*\*(?![\w*])")


def bare(text: str) -> str:
    """The item on one line, encodable, without what is no part of it; blank where nothing is left.

    A year, a quoted title or a list number that may belong to the item stays.
    """
    return _BOLD.sub(r"\1", _peeled(text, (*_OPENINGS, _NUMBER_BEFORE_A_QUESTION)))


def bare_list(texts: Sequence[str]) -> list[str]:
    """The items of one list, each bare, and without their numbers where these count up."""
    peeled = [_peeled(text, _OPENINGS) for text in texts]
    marks = [_NUMBER.match(text) for text in peeled]
    numbers = [_count(mark["number"]) for mark in marks if mark]
    counting = len(numbers) == len(texts) > 1
    if counting and all(later == number + 1 for number, later in pairwise(numbers)):
        peeled = [text[mark.end() :] for text, mark in zip(peeled, marks, strict=True) if mark]
    return [bare(text) for text in peeled]


def _peeled(text: str, openings: Sequence[re.Pattern[str]]) -> str:
    text = " ".join(re.sub(r"[\x00-\x20\x7f\s]+", " ", fit_text(text)[0]).split())
    before = None
    while before != text:
        before = text
        for opening in openings:
            found = opening.match(text)
            if found and found.end() < len(text):
                text = text[found.end() :].strip()
        for around in _AROUND:
            if found := around.fullmatch(text):
                text = found["inner"].strip()
    return text


def _count(number: str) -> int:
    """1 for 1 and for a."""
    return int(number) if number.isdecimal() else ord(number.lower()) - ord("a") + 1
