"""Passages as a page shows them: with the part that matters marked, and cut around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from exampp.prompts.spans import best_span
from exampp.records.dossier import PassageText
from exampp.records.grading import Grade

SHOWN = 6_000
"""Characters of a passage that a page shows at first."""
SEARCHED = 60_000
"""Characters of a passage that are searched for the closest sentence."""
_BEFORE = 800
"""Characters that are shown before a marked span that begins late."""


def brief(text: str, length: int = 120) -> str:
    """The start of a text in one line, at most `length` characters."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage in pieces: what comes before the marked span, the span, what comes after it.

    `hidden` is how many characters are left out; `why` says what the span is ("" where none is). A
    `guess` is the sentence that only looks closest, not what the grader took.
    """

    title: str
    before: str
    marked: str
    after: str
    hidden: int = 0
    why: str = ""
    guess: bool = False


def show(
    passage: PassageText | None,
    grade: Grade | None = None,
    item_text: str = "",
    *,
    extracts: bool = False,
    guesses: bool = True,
    whole: bool = False,
) -> Shown | None:
    """A passage with the part that matters marked; None for a passage without a text.

    Marked is the answer that the grader took from it or, without one, the sentence closest to the
    item, if `guesses` are wanted. With `extracts` the grader's reply is such an answer where
    nothing else is known. Long passages are cut around it, unless the `whole` is asked for.
    """
    if passage is None:
        return None
    found = _span(passage, grade, item_text, extracts)
    (start, end), why, guess = found if guesses or not found.guess else _NONE
    text = passage.text
    first = 0 if whole or end <= SHOWN else max(0, start - _BEFORE)
    last = len(text) if whole else first + SHOWN
    return Shown(
        passage.title,
        ("\N{HORIZONTAL ELLIPSIS} " if first else "") + text[first:start],
        text[start : min(end, max(last, start))],
        text[max(end, first) : last],
        hidden=first + max(0, len(text) - last),
        why=why,
        guess=guess,
    )


def around(shown: Shown, length: int) -> Shown:
    """So many characters around what is marked, or from the start where nothing is."""
    rest = max(0, length - len(shown.marked))
    marked = shown.marked[:length]
    before = shown.before if len(shown.before) <= rest // 2 else _ended(shown.before, rest // 2)
    after = shown.after[: rest - min(len(before), rest // 2)]
    cut = len(after) < len(shown.after) or len(marked) < len(shown.marked)
    return replace(
        shown, before=before, marked=marked, after=after + "\N{HORIZONTAL ELLIPSIS}" * cut, hidden=0
    )


def _ended(text: str, length: int) -> str:
    return "\N{HORIZONTAL ELLIPSIS} " + (text[-length:] if length else "")


class _Span(NamedTuple):
    at: tuple[int, int]
    why: str
    guess: bool


_NONE = _Span((0, 0), "", False)


def _span(passage: PassageText, grade: Grade | None, item_text: str, extracts: bool) -> _Span:
    text = passage.text
    detail = (grade.detail or {}) if grade else {}
    graded = f"{passage.title}\n{text}" if passage.title else text
    shift = len(graded) - len(text)
    found = detail.get("span")
    if isinstance(found, list | tuple) and len(found) == 2:
        start, end = (int(offset) - shift for offset in found)
        if 0 <= start < end <= len(text):
            return _Span((start, end), "the extracted answer", False)
    answer = detail.get("answer") or (grade.reply if grade and extracts else None)
    head = text[:SEARCHED]
    if isinstance(answer, str) and answer.strip():
        start, end = best_span(head, answer[:SHOWN])
        if end:
            if _bare(head[start:end]) == _bare(answer):
                return _Span((start, end), "the extracted answer", False)
            return _Span((start, end), "closest to the extracted answer", True)
    span = best_span(head, item_text[:SHOWN]) if item_text else (0, 0)
    return _NONE if span == (0, 0) else _Span(span, "closest to the item", True)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).removesuffix(".")
