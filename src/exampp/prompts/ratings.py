"""Finding the rating in a reply.

A reply is read in this order; the first that applies decides.

1. Only numbers and marks: one legal number is the rating (`4`, `**4**`, `[3]`, `4/5`); a number
   off the scale or several different ones are no rating.
2. A verdict that says so: `Rating: 4`, `I rate it 4`, `4 out of 5`, a last line `4`. The last one
   in the text wins: chat models reason first, and name the scale while they do.
3. A number that opens the reply, or its last line, and is set off from the text that follows:
   `4: The answer is ...`, `4 because ...`.

Any other number is part of a text: "In 1914, 3 men" and "8 months" answer the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_MINUS = r"\-\u2212"
_UNITS = "%‰°$€£¥"
_LEGAL = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.0+)?")
_NUMBER = re.compile(rf"(?:(?<!\w)[{_MINUS}])?[0-9]+(?:[.,][0-9]+)*")
_ONLY_NUMBERS = re.compile(rf"[^\w{_UNITS}]*[0-9](?:[0-9]|[^\w{_UNITS}])*")
_CONNECTIVES = re.compile(r"(?i)\b(?:or|and|to|between|either|from|maybe)\b")
_MARKDOWN = re.compile(r"[*_`#]+")
# "Rating: 3 or 4" and "Rating: 4/10" give two numbers, of which neither is the rating.
_RANGE = re.compile(r"\s*(?:[-\u2013\u2014]|(?:to|or|and)\b)\s*[0-9]+(?![\w.,]?[0-9])")
_SHARE = re.compile(r"\s*(?:/|out\s+of\b)\s*([0-9]+)")
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
_RATING_WORD = re.compile(r"(?i)\W*(?:final |overall |my )?(?:rating|score|grade)\s*[:=]")

# One number, whole. A hyphen directly before it is a minus sign, one with a space between is not.
_N = rf"(?P<n>[{_MINUS}]?(?<![\w.,])[0-9]++(?:[.,][0-9]++)*+)(?![\w{_UNITS}])"
_GAP = rf"(?:[^\w\n{_MINUS}{_UNITS}]|[{_MINUS}]\s)*"
_EDGE = rf"[^\w{_UNITS}]*"
_LINK = r"(?:[:=]|\b(?:is|as|of|at|would be|should be|to be)\b)"
_FILLER = rf"(?:(?:an?|about|level|option|rating|score|grade|of|only)\b{_GAP}){{0,4}}"
_I_VERB = (
    r"\bI(?:['\u2019]d|['\u2019]ll| would| will| must| have to)?(?: \w+)? "
    r"(?:rate|give|assign|award|score|grade|choose|select|pick|rated|gave|chose|selected)\b"
)
_EXPLICIT = (
    r"\b(?:rating|score|grade|verdict|label|level|choice|option|answerability|coverage)\b"
    rf"[^\w\n]*?{_LINK}{_GAP}{_FILLER}{_N}",
    rf"\b(?:answer|rate|rated)\s*[:=]{_GAP}{_N}",
    rf"{_I_VERB}[^\n.!?0-9]{{0,80}}?{_GAP}{_N}",
    rf"\A\W*(?:rating|score|grade) {_N}{_EDGE}\Z",
    r"\b(?:deserves|merits|warrants|receives|gets|earns|is|be|as) an? "
    rf"{_N}(?=\W*$|[.,;:!?)]|\s+(?:on|because|since)\b)",
    rf"<(\w+)>\s*{_N}\s*</",
    rf"\\boxed\{{\s*{_N}\s*\}}",
    rf"[:=]\s+{_N}{_EDGE}\Z",
    rf"\n[^\w\n{_MINUS}{_UNITS}]*{_N}{_EDGE}\Z",
)
_OPENING = (
    r"(?:\s*[:=]\s+(?=\D)|\s*[:=](?=[^\W\d])|[.,;)]\s+(?=\D)|\s*[-\u2013\u2014]\s+(?=\D)|\s+because\b"
    r"|\s*\([^()\n]*\)\W*$|\s+(?:The|This)\s)"
)
_AFTER = r"(?=\W*$|\s*[.,;:!?)\n]|\s+(?:because|since|as|for|stars|points|on)\b)"


@dataclass(frozen=True, slots=True)
class Found:
    """What the numbers of a reply say: a rating, or the rule that tells why there is none."""

    rating: int | None
    rule: str


@dataclass(frozen=True, slots=True)
class _Forms:
    """The patterns of one scale."""

    scale: re.Pattern[str]
    whole: re.Pattern[str]
    explicit: tuple[re.Pattern[str], ...]
    opening: re.Pattern[str]


@lru_cache(maxsize=64)
def _forms(lowest: int, highest: int) -> _Forms:
    top = rf"\s*(?:/|out\s+of)\s*{highest}(?![\w.,]?[0-9]|\w)"
    end = rf"\s*(?:{lowest}|{highest})(?:\s*\([^)\n]*\))?\s*"
    return _Forms(
        scale=re.compile(
            rf"(?i)(?<![\w.,]){end}(?:[-\u2013\u2014]|to|and|through|\.\.+){end}(?![\w.,]?[0-9]|\w)"
            rf"|\b(?:scale|maximum)\s+of\s+{highest}\b|\b{highest}[- ]point\b"
        ),
        whole=re.compile(rf"[^\w{_MINUS}{_UNITS}]*{_N}{top}{_EDGE}"),
        explicit=tuple(re.compile(f"(?i){p}") for p in (*_EXPLICIT, rf"{_N}{top}{_AFTER}")),
        opening=re.compile(
            rf"[^\w{_MINUS}{_UNITS}]*(?:[{_MINUS}]\s+)?{_N}(?:{top})?(?:{_OPENING}|{_EDGE}$)"
        ),
    )


def clean(reply: str) -> str:
    """The reply without marks of Markdown, full-width forms as plain ones."""
    return _MARKDOWN.sub("", reply.translate(_WIDE)).strip()


def _value(number: str, lowest: int, highest: int) -> int | None:
    if not _LEGAL.fullmatch(number):
        return None
    value = int(float(number))
    return value if lowest <= value <= highest else None


def _agree(numbers: Sequence[str], lowest: int, highest: int) -> Found:
    if len(set(numbers)) > 1:
        return Found(None, "several")
    value = _value(numbers[0], lowest, highest)
    return Found(value, "off-scale" if value is None else "rated")


def _last_explicit(text: str, forms: _Forms) -> re.Match[str] | None:
    matches = (m for pattern in forms.explicit for m in pattern.finditer(text))
    return max(matches, key=lambda m: m.start("n"), default=None)


def find_rating(reply: str, lowest: int, highest: int) -> Found | None:
    """The rating that a reply gives in text, on a scale of whole numbers.

    None if no number of the reply is meant as a rating; a `Found` without rating if one is but
    cannot be it (off the scale, several different). Sources: EXAM++, section 4.2.2; FLAN-T5-EXAM,
    section 3.2.3.
    """
    text = clean(reply)
    forms = _forms(lowest, highest)
    if whole := forms.whole.fullmatch(text):
        return _agree([whole["n"]], lowest, highest)
    if _ONLY_NUMBERS.fullmatch(_CONNECTIVES.sub(" ", text)):
        return _agree(_NUMBER.findall(text), lowest, highest)
    text = forms.scale.sub(" ", text)
    if verdict := _last_explicit(text, forms):
        end = verdict.end("n")
        share = _SHARE.match(text, end)
        if _RANGE.match(text, end) or (share and share[1] != str(highest)):
            return Found(None, "several")
        return _agree([verdict["n"]], lowest, highest)
    lines = [line for line in text.splitlines() if line.strip()]
    opened = [m["n"] for line in (lines[:1] + lines[-1:]) if (m := forms.opening.match(line))]
    if opened:
        return _agree(opened, lowest, highest)
    return Found(None, "no number") if _RATING_WORD.match(text) else None
