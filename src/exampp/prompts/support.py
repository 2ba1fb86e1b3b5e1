"""Labels of support, as nuggetizer and the assessors of TREC RAG give them: full, partial, none."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from exampp.prompts.ratings import ReadRating

LABELS: Mapping[str, tuple[str, ...]] = {
    "full": ("support", "full_support", "fully_supported", "full", "supported"),
    "partial": ("partial_support", "partially_supported", "partial"),
    "none": ("not_support", "no_support", "not_supported", "none"),
}
"""How a label may be written, spaces and dashes as underscores."""
_LEVEL = {word: level for level, words in LABELS.items() for word in words}
_FENCE = re.compile(r"```(?:\w+)?")
_NAMED = re.compile(r"(?i)\A\W*(?:labels?|answer|support)\s*[:=]\s*")
_BETWEEN = re.compile(r"[\s_-]+")


def find_support(reply: str, lowest: int, highest: int) -> ReadRating:
    """What one label says: full support is the highest, none the lowest, partial in between.

    The reply is a list of one label as Python writes it, fenced or not, or the label alone. On a
    scale of two there is no partial support. A list of more labels says nothing of one nugget.
    """
    text = _NAMED.sub("", _FENCE.sub("", reply)).strip()
    found: object = text.strip("'\"`*. \n")
    if text.startswith("["):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ReadRating(None, "no list")
        if isinstance(found, list) and len(found) != 1:
            return ReadRating(None, "several" if found else "no value")
        found = found[0] if isinstance(found, list) else found
    if not isinstance(found, str):
        return ReadRating(None, "no label")
    level = _LEVEL.get(_BETWEEN.sub("_", found.strip().lower()))
    if level is None:
        return ReadRating(None, "no label")
    if level == "partial":
        on_scale = highest - lowest == 2
        return ReadRating(lowest + 1, "label") if on_scale else ReadRating(None, "off-scale")
    return ReadRating(highest if level == "full" else lowest, "label")
