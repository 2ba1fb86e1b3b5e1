"""Replies with several fields: their JSON schema, the reason, and the evidence in the passage.

A prompt declares the fields of its reply in order, such as evidence, reason, grade: what a model
writes first is what the rest depends on. The rating is read like any other
(`prompts.replies.read_reply`); the fields beside it are stored with the grade, and the evidence is
searched for in the passage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from exampp.prompts.replies import json_values, strip_thoughts, value_name
from exampp.prompts.words import find_words

REASON, EVIDENCE = "reason", "evidence"
TEXT_FIELDS = (REASON, EVIDENCE)
"""The fields that a reply can have beside its rating."""
LONGEST_TEXT = 5_000
"""Maximum characters of a reason or of evidence that are stored apart from the reply."""
_MOST_PARTS = 20
_AROUND = " \t\r\n\"'."
_SAME_SIGNS = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u2010\u2011\u2012"
    "\u2013\u2014\u2212\u00a0",
    "'''''" + '"' * 7 + "------ ",
)
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|\u2026)(?:\s*\])?\s*")


def reply_schema(
    rating: str, labels: Sequence[str], fields: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return the properties of a JSON reply in order; without `fields`, only the rating.

    The rating is one of the labels (a number if all are whole numbers), or else a text.
    """
    value: dict[str, Any] = {"type": "string"}
    if labels and all(map(_is_whole, labels)):
        value = {"type": "integer", "enum": [int(label) for label in labels]}
    elif labels:
        value["enum"] = list(labels)
    return {name: value if name == rating else {"type": "string"} for name in fields or (rating,)}


def _is_whole(label: str) -> bool:
    """Return whether a label is a whole number in JSON notation."""
    try:
        return str(int(label)) == label
    except ValueError:
        return False


def reply_texts(reply: str, fields: Sequence[str]) -> dict[str, str]:
    """Return the reason and the evidence of a reply, as far as it has them.

    Several quotations, as a list, are joined by an ellipsis.
    """
    values, _ = json_values(strip_thoughts(reply) or "")
    found = {}
    for name in fields:
        value = next((value for known, value in reversed(values) if known == value_name(name)), "")
        parts = value if isinstance(value, list) else [value]
        texts = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
        if name in TEXT_FIELDS and texts:
            found[name] = " ... ".join(texts)[:LONGEST_TEXT]
    return found


def locate_evidence(text: str, passage: str) -> tuple[int, int] | None:
    """Return the place of quoted evidence in a passage, as character offsets; None if not found.

    The passage must have the same whole words in the same order. Case, white space, forms of
    quotation marks and dashes, and a final period are ignored; all other characters must be equal.
    The parts around an ellipsis must follow each other; the span reaches from the first to the
    last. More than 20 parts count as not found.
    """
    plain = passage.translate(_SAME_SIGNS)
    first, end = None, 0
    parts = _ELLIPSIS.split(text.translate(_SAME_SIGNS))
    if len(parts) > _MOST_PARTS:
        return None
    for part in parts:
        if not (wanted := part.strip(_AROUND)):
            continue
        place = find_words(wanted, plain[end:])
        if place is None:
            return None
        first = end + place[0] if first is None else first
        end += place[1]
    return None if first is None else (first, end)
