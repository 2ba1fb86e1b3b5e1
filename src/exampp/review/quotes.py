"""The part of a passage that answers an item."""

from __future__ import annotations

from typing import NamedTuple

from exampp.prompts.words import best_span
from exampp.records.gradebook import PassageText
from exampp.records.graders import Grade

SEARCHED = 60_000
"""Characters of a passage searched for the closest sentence."""
_ANSWER = 6_000
"""Characters of an answer or item that are looked for."""


class PassageQuote(NamedTuple):
    """A part of a passage as character offsets, and its description.

    A `guess` is the closest sentence, not the answer that the grader extracted.
    """

    span: tuple[int, int]
    why: str = ""
    guess: bool = False


def quote_of(
    passage: PassageText, grade: Grade | None, item_text: str, *, extracts: bool = False
) -> PassageQuote:
    """Return the answer that the grader extracted or, without one, the closest sentence.

    With `extracts` the reply counts as the answer if no other is known. The span is (0, 0) if
    no sentence shares a word with the item.
    """
    if found := extracted_quote(passage, grade, extracts=extracts):
        return found
    span = best_span(passage.text[:SEARCHED], item_text[:_ANSWER]) if item_text else (0, 0)
    return PassageQuote(span, "closest to the item", True) if span != (0, 0) else PassageQuote(span)


def extracted_quote(
    passage: PassageText, grade: Grade | None, *, extracts: bool = False
) -> PassageQuote | None:
    """Return the evidence or the answer that the grader quotes; None if there is none."""
    text = passage.text
    detail = (grade.detail or {}) if grade else {}
    # graders read the title, a line break and the text
    shift = len(passage.title) + 1 if passage.title else 0
    place = detail.get("span")
    if isinstance(place, list | tuple) and len(place) == 2:
        start, end = (int(offset) - shift for offset in place)
        if 0 <= start < end <= len(text):
            quoted = "the evidence that the grader quotes"
            return PassageQuote(
                (start, end), quoted if "evidence" in detail else "the extracted answer"
            )
    answer = detail.get("answer") or (grade.reply if grade and extracts else None)
    head = text[:SEARCHED]
    if isinstance(answer, str) and answer.strip():
        start, end = best_span(head, answer[:_ANSWER])
        if end:
            same = _normal(head[start:end]) == _normal(answer)
            why = "the extracted answer" if same else "closest to the extracted answer"
            return PassageQuote((start, end), why, not same)
    return None


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).removesuffix(".")
