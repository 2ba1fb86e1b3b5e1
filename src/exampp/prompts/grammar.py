"""Read the rating or verdict that a reply states in words, by the grammar in the documentation.

A reply counts if it states exactly one rating: a value alone, a named field, or one value of the
scale in a sentence without negation, doubt or condition. For all other replies a rule says why they
were not read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_LARGE = "thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
_VERDICTS = {"yes": 1, "true": 1, "correct": 1, "no": 0, "false": 0, "incorrect": 0}


class ReadRating(NamedTuple):
    """The rating that a reply states, or the rule that explains why there is none."""

    rating: int | None
    rule: str


# ---- plain text ----------------------------------------------------------------------------------

_MARKUP = re.compile(
    r"(?m)<\|[^|<>\n]{1,40}\|>|\x1b\[[0-?]{0,20}[ -/]{0,5}[@-~]|^[ \t*`]*+#{1,6}(?![#0-9])"
    r"|[*`\r\u200b-\u200f\ufeff]++|(?<![^\W\d_])[\u0300-\u036f]++"
)
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*+>.*+$")
_NUMBER_WORD = re.compile(rf"(?i)\b(?:{'|'.join(NUMBER_WORDS)}|{_LARGE})\b")


class _Plain(dict[int, int | str | None]):
    """Translate characters to plain ones: digits of any script, full-width forms, apostrophes."""

    def __missing__(self, code: int) -> str:
        digit = unicodedata.decimal(chr(code), None)
        wide = 0xFF01 <= code <= 0xFF5E
        self[code] = plain = chr(code - 0xFEE0 * wide) if digit is None else str(digit)
        return plain


_PLAIN = _Plain({ord("\u2019"): "'", ord("\u2018"): "'", ord("\u2212"): "-"})


def plain_reply(reply: str) -> str:
    """Return the reply in plain characters, without markup and quoted lines."""
    text = _MARKUP.sub("", reply.translate(_PLAIN)).strip()
    return _QUOTED_LINE.sub("", text).strip() or text


def holds_number(text: str) -> bool:
    """Return whether a text has a digit or a number word of any script, outside of markup."""
    text = _MARKUP.sub("", text)
    return any(c.isnumeric() for c in text) or _NUMBER_WORD.search(text) is not None


# ---- values --------------------------------------------------------------------------------------

_N = rf"(?:[-+]?\d(?:[\d.,]*\d)?|{'|'.join(NUMBER_WORDS)}|{_LARGE})"
_NUMBER = re.compile(rf"(?i)(?<![^\W_]){_N}(?![^\W_])")
_NUMBERS = rf"{_N}(?:(?:\s?[-\u2013\u2014/]\s?|\s\(?(?:out of|of|to|or|and|through)\s){_N})*"
_WHOLE = re.compile(r"(0|[1-9]\d{0,8})(?:\.0{1,9})?")
_YES_OR_NO = re.compile(r"(?i)\b(yes|no)(?=\W*\Z|[.,;:!?)\n-])")


_RATING_NAMES = ("rating", "score", "grade")
_VERDICT_NAMES = (
    *_RATING_NAMES,
    *("answer", "verdict", "relevant", "relevance", "judgment", "judgement", "decision"),
)


@dataclass(frozen=True, slots=True)
class ReplyScale:
    """The ratings of a scale, and the field that a prompt declares for them."""

    lowest: int = 0
    highest: int = 5
    field: str = ""
    is_verdict: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of a rating field besides the declared one."""
        return _VERDICT_NAMES if self.is_verdict else _RATING_NAMES

    def value_of(self, text: str) -> ReadRating:
        """Return the rating that an expression such as `4`, `3-4` or `yes` means on this scale."""
        if self.is_verdict:
            return ReadRating(_VERDICTS[text.lower()], "rated")
        numbers = _NUMBER.findall(text)
        on_scale = [value for number in numbers if (value := self._on_scale(number)) is not None]
        if len(on_scale) < len(numbers):
            return ReadRating(None, "off-scale")
        if len(on_scale) > 1:
            return ReadRating(None, "several")
        return ReadRating(on_scale[0], "rated")

    def mentions(self, text: str) -> set[int]:
        """Return the ratings that a text mentions in any way."""
        if self.is_verdict:
            return {_VERDICTS[word.lower()] for word in _YES_OR_NO.findall(text)}
        values = map(self._on_scale, _NUMBER.findall(text))
        return {value for value in values if value is not None}

    def _on_scale(self, number: str) -> int | None:
        if (word := number.lower()) in NUMBER_WORDS:
            value = NUMBER_WORDS.index(word)
        elif whole := _WHOLE.fullmatch(number):
            value = int(whole[1])
        else:
            return None
        return value if self.lowest <= value <= self.highest else None


# ---- forms ---------------------------------------------------------------------------------------

_QUALIFIERS = (
    r"(?:here(?: is|'s) )?(?:(?:my|our|the|this|overall|self|numeric(?:al)?|initial|first"
    r"|(?P<final>final|revised|corrected|updated|adjusted|actual|correct))[ _-])*"
)
_MARK = r"\s*(?:(?P<mark>[:=|])|[-=]>|[\u2192\u21d2]|[-\u2013\u2014](?= ))"
_OPEN = r"[\s\"'(\[]*"
_SET_OFF = r"[,:!)\]}|\"'(](?!\s*\d)|[-\u2013\u2014]\s(?!\d)|(?<!\S)(?:because|since)\b"
_END = rf"(?=\s*(?:\Z|\n|[.;](?=\s*\Z|\s+[\"'(]?[^\W\d_]|[)\]\"'])|{_SET_OFF}))"
# a number with a dot may be a list mark: "1. The passage ..."
_END_OF_OPENING = rf"(?=[.!)\]}}\"'\s]*\Z|[)\]\"']?\s*(?:\n|(?![.!]){_SET_OFF}))"
_NAMES = "|".join(_RATING_NAMES)
_STATEMENT = (
    r"(?:so|overall|therefore|thus)?,? ?(?:"
    r"(?:i|we)(?:'d| would| will|'ll)? (?:rate|give|say|assign|choose|score|grade)"
    rf"(?: (?:it|this|that|the|passage|text|answer|as|an?|of|at|to|with|{_NAMES}))*"
    rf"|(?:my|the|this) (?:(?:overall|final|appropriate) )?(?:{_NAMES}) (?:is|should be)"
    r"|(?:the )?final answer is"
    r"|(?:it|this|the) ?(?:passage|text|answer)? ?(?:\w+ly )?"
    r"(?:deserves|merits|gets|earns|is rated)(?: an?)?) "
)
_VERDICT_STATEMENT = (
    r"(?:so|overall|therefore|thus)?,? ?(?:i(?:'d| would) say|(?:the )?(?:final )?answer is) "
)
_TAG = re.compile(rf"(?i)<(/?)({'|'.join(_VERDICT_NAMES)}|[biup]|em|strong|span|code|mark|div)>")
_BOXED = re.compile(r"\$?\\boxed\{([^{}\n]{1,40})\}\$?")
_UNCLEAR = re.compile(
    # strikethrough text, an empty checkbox, control characters and partial characters
    r"(?i)~~|</?(?:s|del|strike)\b|\\boxed"
    r"|[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)
_QUOTATION = re.compile(r"[\"\u201c][^\"\u201d\n]*[\"\u201d]")
_STOP = re.compile(r"[.!?;](?=\s+[^\s\d]|\s*\Z)|\n")
_REASON = re.compile(r"(?i)\b(?:because|since)\b|[:\u2013\u2014]|-\s")
_DOUBT = re.compile(
    r"(?i)\A\W*(?:or|not|no|actually|wait)\b"
    r"|\b(?:if|unless|provided|assuming|otherwise|depending|or|maybe|perhaps|had|but no)\b"
)
_REVISES = re.compile(
    r"(?i)\b(?:rat(?:e|ed|ing)|scored?|graded?|give|say|deserves?|final|revised|correct(?:ed|ion)?"
    r"|adjusted|updated|actual(?:ly)?|wait|reflection|thought|instead|should|would|no|not|so|but|or"
    r"|maybe|perhaps|new|overall|answer)\b|\A\W*\w+\W*\Z"
)


class _Forms(NamedTuple):
    """Patterns for one scale: fields, values and statements, and the preparation of their text."""

    field: re.Pattern[str]
    name: re.Pattern[str]
    alone: re.Pattern[str]
    statement: re.Pattern[str]
    heading: re.Pattern[str]
    scale: re.Pattern[str]
    share: re.Pattern[str]


@lru_cache(maxsize=64)
def _forms(scale: ReplyScale) -> _Forms:
    bare = rf"(?P<value>{'|'.join(_VERDICTS) if scale.is_verdict else _NUMBERS})"
    value = _OPEN + bare
    declared = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", scale.field))
    names = "|".join(filter(None, ("[ _-]?".join(declared), *scale.names)))
    name = rf"{_QUALIFIERS}(?:{names})"
    ends = rf"{scale.lowest}(?: ?[-\u2013] ?| to ){scale.highest}"
    top = "|".join((str(scale.highest), *NUMBER_WORDS[scale.highest : scale.highest + 1]))
    patterns = (
        rf"[\s(\[|\u2022-]*{name}{_MARK}(?:{value}{_END})?",
        rf"(?:{names})\W{{0,4}}[:=|]",
        rf"(?:- )?{value}{_END if scale.is_verdict else _END_OF_OPENING}",
        rf"{_VERDICT_STATEMENT if scale.is_verdict else _STATEMENT}{bare}{_END}",
        rf"(?m)^[ \t]*({name})[:=]?[ \t]*\n+",
        rf"\(?\b(?:on )?(?:an? |the )?(?:scale )?(?:(?:of|from) )?{ends}\b\)?,?",
        rf"\b({_N})(?: ?/ ?| out of | of )(?:{top})(?![\w%]|[.,/:-]\d)",
    )
    return _Forms(*(re.compile(pattern, re.IGNORECASE) for pattern in patterns))


# ---- reading -------------------------------------------------------------------------------------


CACHED_CHARACTERS = 80
"""Longest reply whose reading is cached: most replies are short, and many of them are equal."""


def find_rating(reply: str, scale: ReplyScale) -> ReadRating:
    """Return the rating or verdict that a reply states in text.

    Without one, the rule gives the reason. Sources: EXAM++, section
    4.2.2; FLAN-T5-EXAM, section 3.2.3.
    """
    find = _find_short if len(reply) <= CACHED_CHARACTERS else _find
    return find(reply, scale)


def _find(reply: str, scale: ReplyScale) -> ReadRating:
    forms = _forms(scale)
    text = _BOXED.sub(r"\nrating: \1\n", plain_reply(reply))
    text = _TAG.sub(_as_field, text)
    if not scale.is_verdict:
        text = forms.share.sub(r"\1", forms.scale.sub("", text))
    text = forms.heading.sub(r"\1: ", text).strip()
    if _UNCLEAR.search(text):
        return ReadRating(None, "hedged")
    ends = (0, *(stop.end() for stop in _STOP.finditer(text)), len(text))
    sentences = [text[start:end].strip() for start, end in pairwise(ends)]
    fields = {
        at: field
        for at, sentence in enumerate(sentences)
        if (field := forms.field.match(sentence)) and (field["value"] or field["mark"])
    }
    if fields:
        return _read_fields(sentences, fields, forms, scale)
    return _read_statements(text, sentences, forms, scale)


_find_short = lru_cache(maxsize=4096)(_find)


def _as_field(tag: re.Match[str]) -> str:
    if tag[2].lower() not in _VERDICT_NAMES:
        return ""
    return "\n" if tag[1] else f"\n{tag[2]}: "


def _read_fields(
    sentences: list[str], fields: dict[int, re.Match[str]], forms: _Forms, scale: ReplyScale
) -> ReadRating:
    """Return the rating in fields; if some are called final, only those count.

    A field within a field, or a later sentence that revises the rating, must not differ.
    """
    final = {at: field for at, field in fields.items() if field["final"]}
    counting = final or fields
    stated = agreed([_read(field, scale) for field in counting.values()])
    last, field = list(counting.items())[-1]
    others = [field.string[field.end() :]]
    for at, sentence in enumerate(_QUOTATION.sub("", one) for one in sentences):
        revised = at > last and _REVISES.search(sentence)
        if at not in fields and (revised or (not final and forms.name.search(sentence))):
            others.append(sentence)
    if stated.rating is not None and scale.mentions("\n".join(others)) - {stated.rating}:
        return ReadRating(None, "several")
    return stated


def _read_statements(
    text: str, sentences: list[str], forms: _Forms, scale: ReplyScale
) -> ReadRating:
    """Return the rating of a text without fields: the one value of the scale that it contains."""
    last_line = text.rpartition("\n")[2].rstrip(" .!)]}\"'")
    matches = [forms.alone.match(text), forms.alone.fullmatch(last_line)]
    matches += map(forms.statement.match, sentences)
    ratings = [_read(match, scale) for match in matches if match]
    one = agreed(ratings) if ratings else ReadRating(None, "no verdict")
    if one.rating is not None and scale.mentions(_QUOTATION.sub("", text)) - {one.rating}:
        return ReadRating(None, "several")
    return one


def _read(match: re.Match[str], scale: ReplyScale) -> ReadRating:
    """Return the rating of a match, unless its sentence has a doubt or a condition."""
    if not match["value"]:
        return ReadRating(None, "no value")
    text, end = match.string, match.end("value")
    stop = _STOP.search(text, end)
    tail = text[end : stop.end() if stop else len(text)]
    reason = _REASON.search(tail)
    if "?" in tail or _DOUBT.search(tail[: reason.start()] if reason else tail):
        return ReadRating(None, "hedged")
    return scale.value_of(match["value"])


def agreed(ratings: Sequence[ReadRating]) -> ReadRating:
    """Return the rating that all readings share, or the first reading without a rating."""
    unread = [one for one in ratings if one.rating is None]
    several = len({one.rating for one in ratings}) > 1
    return unread[0] if unread else ReadRating(None, "several") if several else ratings[0]
