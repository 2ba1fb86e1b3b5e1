"""Replies with several fields: their JSON schema, the reason, and the evidence in the passage.

A prompt declares the fields of its reply in order, such as evidence, reason, grade: what a model
writes first is what the rest depends on. The rating is read like any other
(`prompts.replies.read_reply`); the fields beside it are stored with the grade, and the evidence is
searched for in the passage.
"""

from __future__ import annotations

import ast
import json
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
_CODE = re.compile(r"```(?:\w+)?")
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
    value = _rating_schema(labels)
    return {name: value if name == rating else {"type": "string"} for name in fields or (rating,)}


def items_schema(labels: Sequence[str], count: int) -> dict[str, dict[str, Any]]:
    """Return the properties of a JSON reply with the ratings of several items, by number."""
    return {str(number): _rating_schema(labels) for number in range(1, count + 1)}


def _rating_schema(labels: Sequence[str]) -> dict[str, Any]:
    if labels and all(map(_is_whole, labels)):
        return {"type": "integer", "enum": [int(label) for label in labels]}
    return {"type": "string", "enum": list(labels)} if labels else {"type": "string"}


def split_reply(reply: str, count: int, *, listed: bool) -> list[str]:
    """Return the reply for each of several items, in the form of a reply for one; "" if unclear.

    The reply is a JSON object from numbers to ratings or, if `listed`, a Python list in order. A
    list of another length, a number that is out of range or text with digits beside the object make
    all unclear, because the numbers may mean other items; a repeated number makes its item unclear.
    """
    text = strip_thoughts(reply) or ""
    unclear = [""] * count
    if listed:
        try:
            labels = ast.literal_eval(_CODE.sub("", text).strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return unclear
        if not isinstance(labels, list) or len(labels) != count:
            return unclear
        return [repr([label]) for label in labels]
    values, around = json_values(text)
    numbers = [str(number) for number in range(1, count + 1)]
    if not {name for name, _ in values} <= set(numbers) or any(map(str.isdigit, around)):
        return unclear
    of_number = {number: [v for name, v in values if name == number] for number in numbers}
    return [json.dumps({"1": found[0]}) if len(found) == 1 else "" for found in of_number.values()]


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
