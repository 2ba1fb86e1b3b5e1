"""Read a raw reply as an outcome.

`read_reply` selects a reader by mode and by the `reading` of the prompt: the mode `exam` follows
the papers, `rubric` the reference implementation, including its faults. `guarded` is `exam` with
another rule for verifying extracted answers. An unreadable reply is a
separate outcome, never a low rating.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from exampp.errors import InputError
from exampp.prompts.answers import (
    is_blank_answer,
    is_error,
    is_refusal,
    is_unanswerable,
    is_unanswerable_sentence,
    rubric_is_answer,
    rubric_is_correct,
    rubric_is_yes,
    rubric_self_rating,
    verify_answer,
)
from exampp.prompts.grammar import (
    ReadRating,
    ReplyScale,
    agreed,
    find_rating,
    holds_number,
    plain_reply,
)
from exampp.records.graders import UNNUMBERED, Outcome, State

LONGEST = 50_000
"""Maximum characters of a reply that are read, excluding reasoning."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A raw reply and all options for reading it."""

    text: str
    lowest: int = 0
    highest: int = 5
    field: str = ""
    thresholds: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()
    unnumbered: str = "answer"
    mode: str = "exam"
    question: str = ""


Reader = Callable[[RawReply], Outcome]


# ---- thoughts ------------------------------------------------------------------------------------

_NAMES = "think|thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad|monologue|cot"
_MARK = re.compile(
    r"(?i)(?:(?P<tag><)|[\[\u25c1])\|?\s?(?P<close>/\s?|end_(?:of_)?)?(?:(?:start|begin)_(?:of_)?)?"
    rf"(?P<name>(?:[^\W_]{{1,20}}[_:-]){{0,3}}(?:{_NAMES})(?:[_:-][^\W_]{{1,20}}){{0,3}})"
    r"\s?(?(tag)(?:[^\w<>\n][^<>\n]{0,80})?|)\|?[>\]\u25b7]"
    r"|<\|channel\|>(?P<channel>\w++)[^<]{0,40}+(?:<\|constrain\|>[^<]{0,40}+)?<\|message\|>"
    r"|<\|(?P<end>end|return|call)\|>(?:<\|start\|>assistant)?"
)
_OTHER_MARKS = {  # Gemma, MedGemma, Apertus
    "<|channel>thought": "<think>",
    "<channel|>": "</think>",
    "<unused94>": "<think>",
    "<unused95>": "</think>",
    "<|inner_prefix|>": "<think>",
    "<|inner_suffix|>": "</think>",
}
_WORDED = (
    # channels without marks, removed by a server
    (re.compile(r"\s*+analysis(?=[^\W_])"), re.compile(r"assistantfinal")),
    # Granite
    (
        re.compile(r"\s*+Here(?: is|'s) my thought process:"),
        re.compile(r"Here(?: is|'s) my response:"),
    ),
)
"""Start and end of reasoning that replies mark with words."""


def strip_thoughts(reply: str) -> str | None:
    """Return the reply without the model's reasoning; None if the reasoning is incomplete.

    A mark starts the reasoning and the closing mark of the same name ends it. Text before a closing
    mark without an opening one is reasoning, too: the opening mark was part of the prompt. If a
    reply has channels, the last `final` one is used.
    """
    for opening, end in _WORDED:
        if opening.match(reply):
            parts = end.split(reply)
            return parts[-1] if len(parts) > 1 else None
    if not any(first in reply for first in "<[\u25c1"):
        return reply
    for other, mark_of_thought in _OTHER_MARKS.items():
        reply = reply.replace(other, mark_of_thought)
    return _outside_marks(reply)


def _outside_marks(reply: str) -> str | None:
    outside: list[str] = []
    inside, start, channels = "", 0, False
    for mark in _MARK.finditer(reply):
        name = (mark["name"] or "").lower()
        if mark["channel"]:
            channels = True
            outside = []
            inside = "" if mark["channel"].lower() == "final" else "channel"
        elif mark["end"]:
            if not inside:
                outside.append(reply[start : mark.start()])
            inside = "channel" if channels else inside
        elif not inside and mark["close"]:
            outside = []
        elif not inside:
            outside.append(reply[start : mark.start()])
            inside = name
        elif mark["close"] and inside == name:
            inside = ""
        else:
            continue
        start = mark.end()
    if inside == "channel" and outside:
        return " ".join(outside)
    return None if inside else " ".join([*outside, reply[start:]])


# ---- JSON ----------------------------------------------------------------------------------------

_JSON = re.compile(r"[\s*]*+(?:\{|\[\{|```json)")
_QUALIFIER = re.compile(r"\A(?:final|overall|self|my)")
_ANSWER_NAMES = ("answer", "shortanswer", "extract", "response")
_MOST_OBJECTS = 200
_NO_VALUE = ReadRating(None, "json")


def looks_like_json(reply: str) -> bool:
    """Return whether the whole reply is meant as JSON, so that its numbers are not free text."""
    return _JSON.match(reply) is not None


def json_values(reply: str) -> tuple[list[tuple[str, object]], str]:
    """Return the named values of all complete JSON objects of a reply, and the text around them.

    Names are plain (see `value_name`).
    """
    values: list[tuple[str, object]] = []
    around: list[str] = []

    def collect(pairs: list[tuple[str, object]]) -> None:
        values.extend((value_name(name), value) for name, value in pairs)

    decoder = json.JSONDecoder(object_pairs_hook=collect)
    start = end = 0
    for _ in range(_MOST_OBJECTS):
        start = reply.find("{", start)
        if start < 0:
            break
        before = len(values)
        try:
            _, stop = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            del values[before:]
            start += 1
        else:
            around.append(reply[end:start])
            start = end = stop
    return values, "\n".join([*around, reply[end:]])


def value_name(name: str) -> str:
    """Return a name of a value in lower case, without spaces, dashes and underscores."""
    return re.sub(r"[\s_-]", "", name.lower())


def is_json_object(text: str) -> bool:
    """Return whether a text is one complete JSON object, in a code block or not."""
    inner = re.sub(r"\A```\w*|```\Z", "", text.strip())
    try:
        return isinstance(json.loads(inner), dict)
    except (ValueError, RecursionError):
        return False


def _rating_in(text: str, scale: ReplyScale) -> ReadRating:
    """Return the rating or verdict that a reply states, in JSON or text."""
    values, around = json_values(text)
    if not values and not looks_like_json(text):
        return find_rating(text, scale)
    names = {*scale.names, value_name(scale.field)} - {""}
    named = [
        (name.startswith("final"), _stated_value(value, scale))
        for name, value in values
        if name in names or _QUALIFIER.sub("", name) in names
    ]
    if not named and not looks_like_json(text):
        return find_rating(around, scale)
    if not named or "{" in around:
        return _NO_VALUE
    stated = agreed([one for final, one in named if final] or [one for _, one in named])
    if stated.rating is not None and find_rating(around, scale).rating not in (None, stated.rating):
        return ReadRating(None, "several")
    return stated


def _stated_value(value: object, scale: ReplyScale) -> ReadRating:
    if scale.is_verdict and value in (0, 1):
        return ReadRating(int(value is True or value == 1), "json")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _NO_VALUE
    stated = find_rating(str(value), scale)
    if stated.rating is None:
        return _NO_VALUE if stated.rule == "no verdict" else stated
    return ReadRating(stated.rating, "json")


# ---- readers -------------------------------------------------------------------------------------

_ANSWER_LABEL = re.compile(
    r"(?i)^\W*(?:(?:the|my) )?(?:final )?answer(?:\W{0,3}[:=]\W{0,3}| is:? (?!not\b))\s*"
)
_NAMED_RATING = re.compile(r"(?i)\b(?:rating|score|grade)[\"'*_]{0,2}\s?[:=|]")
_REFUSED = Outcome(State.REFUSED, rule="refused")


def _unparsed(rule: str) -> Outcome:
    return Outcome(State.UNPARSED, rule=rule)


def _graded(rating: int, rule: str) -> Outcome:
    return Outcome(State.GRADED, rating, rule)


def _outcome(reply: RawReply, stated: ReadRating) -> Outcome:
    """Return the outcome of a reply: a rating, refused, an error, or unparsed by a rule."""
    if stated.rating is not None:
        return _graded(stated.rating, stated.rule)
    text = plain_reply(reply.text)
    if is_refusal(text):
        return _REFUSED
    if is_error(text):
        return _unparsed("error")
    if is_blank_answer(text) and not looks_like_json(reply.text):
        return _unparsed("empty")
    return _unparsed(stated.rule)


def _read_rating(reply: RawReply) -> Outcome:
    rating = _rating_in(reply.text, ReplyScale(reply.lowest, reply.highest, reply.field))
    if rating.rule == "no verdict" and not holds_number(reply.text):
        rating = ReadRating(None, "no value" if _NAMED_RATING.search(reply.text) else "no number")
    return _outcome(reply, rating)


def _read_self_rating(reply: RawReply) -> Outcome:
    outcome = _read_rating(reply)
    if outcome.rule != "no number":
        return outcome
    text = _ANSWER_LABEL.sub("", plain_reply(reply.text))
    if is_unanswerable(text) or is_unanswerable_sentence(text):
        return _graded(reply.lowest, "unanswerable")
    return outcome if reply.unnumbered == "unparsed" else _graded(reply.lowest + 1, "answered")


def _read_yes_no(reply: RawReply) -> Outcome:
    return _outcome(reply, _rating_in(reply.text, ReplyScale(0, 1, reply.field, is_verdict=True)))


def answer_text(reply: str, field: str = "") -> str:
    """Return the extracted answer: the field of a JSON reply, else the reply without reasoning."""
    text = strip_thoughts(reply) or ""
    values = json_values(text)[0] if looks_like_json(text) else []
    for name in (value_name(field), *_ANSWER_NAMES):
        values_of_name = [value for known, value in values if name and known == name]
        if values_of_name and isinstance(values_of_name[-1], str):
            return values_of_name[-1].strip()
    return text.strip()


def _read_extraction(reply: RawReply) -> Outcome:
    answer = _ANSWER_LABEL.sub("", answer_text(reply.text, reply.field))
    if is_refusal(answer):
        return _REFUSED
    if reply.keys:
        verified = verify_answer(answer, reply.keys, mode=reply.mode, question=reply.question)
        if verified.correct:
            return _graded(1, verified.rule)
    if is_error(answer):
        return _unparsed("error")
    if looks_like_json(reply.text) and not json_values(reply.text)[0]:
        return _unparsed("json")
    if is_unanswerable(answer) or is_blank_answer(answer):
        return _graded(0, "unanswerable")
    return _graded(0, "unmatched") if reply.keys else _graded(1, "answered")


def _read_thresholds(reply: RawReply) -> Outcome:
    count = reply.highest - reply.lowest
    rising = all(low <= high for low, high in pairwise(reply.thresholds))
    if len(reply.thresholds) != count or not rising:
        raise InputError(
            f"the thresholds are {list(reply.thresholds)}",
            field="thresholds",
            hint=f"Use {count} numbers in ascending order",
        )
    try:
        score = float(reply.text)
    except ValueError:
        return _unparsed("no score")
    if score != score:
        return _unparsed("no score")
    reached = sum(score >= threshold for threshold in reply.thresholds)
    return _graded(reply.lowest + reached, "threshold")


_SUPPORT = {
    **dict.fromkeys(("support", "full_support", "fully_supported", "full", "supported"), "full"),
    **dict.fromkeys(("partial_support", "partially_supported", "partial"), "partial"),
    **dict.fromkeys(("not_support", "no_support", "not_supported", "none"), "none"),
}
"""Labels of nuggetizer and of the assessors of TREC RAG, with underscores for spaces and dashes."""
_SUPPORT_FRAME = re.compile(r"(?i)```(?:\w+)?|\A\W*(?:labels?|answer|support)\s*[:=]\s*")


def _read_support(reply: RawReply) -> Outcome:
    """Read a support label: a list of one label in Python notation, or the label alone.

    Full support is the highest rating, none the lowest; partial support needs a scale of three.
    """
    text = _SUPPORT_FRAME.sub("", _SUPPORT_FRAME.sub("", reply.text)).strip()
    labels: object = [text.strip("'\"`*. \n")]
    if text.startswith("["):
        try:
            labels = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return _outcome(reply, ReadRating(None, "no list"))
    if not isinstance(labels, list) or len(labels) != 1:
        return _outcome(reply, ReadRating(None, "several" if labels else "no value"))
    level = _SUPPORT.get(re.sub(r"[\s_-]+", "_", str(labels[0]).strip().lower()))
    if level is None:
        return _outcome(reply, ReadRating(None, "no label"))
    if level == "partial" and reply.highest - reply.lowest != 2:
        return _outcome(reply, ReadRating(None, "off-scale"))
    ratings = {"full": reply.highest, "partial": reply.lowest + 1, "none": reply.lowest}
    return _graded(ratings[level], "label")


def _rubric_rating(reply: RawReply) -> Outcome:
    return _graded(rubric_self_rating(reply.text, reply.highest), "rubric")


def _rubric_yes_no(reply: RawReply) -> Outcome:
    return _graded(int(rubric_is_yes(reply.text)), "rubric")


def _rubric_extraction(reply: RawReply) -> Outcome:
    if reply.keys:
        return _graded(int(rubric_is_correct(reply.text, reply.keys)), "rubric")
    return _graded(int(rubric_is_answer(reply.text)), "rubric")


_EXAM: Mapping[str, Reader] = {
    "self-rating": _read_self_rating,
    "rating": _read_rating,
    "yes-no": _read_yes_no,
    "extraction": _read_extraction,
    "thresholds": _read_thresholds,
    "support": _read_support,
}
READERS: Mapping[str, Mapping[str, Reader]] = MappingProxyType(
    {
        "exam": _EXAM,
        "guarded": _EXAM,
        "rubric": {
            "self-rating": _rubric_rating,
            "rating": _rubric_rating,
            "yes-no": _rubric_yes_no,
            "extraction": _rubric_extraction,
            "thresholds": _read_thresholds,
            "support": _read_support,
        },
    }
)
"""The readers by mode and by the `reading` of a prompt."""


def reading_names() -> tuple[str, ...]:
    """Return the names of the readings that a prompt can use."""
    return tuple(READERS["exam"])


def read_reply(
    reading: str,
    reply: str,
    *,
    lowest: int = 0,
    highest: int = 5,
    mode: str = "exam",
    field: str = "",
    truncated: bool = False,
    thresholds: Sequence[float] = (),
    keys: Sequence[str] = (),
    unnumbered: str = "answer",
    question: str = "",
) -> Outcome:
    """Read a reply by the named rules, on the scale `lowest` to `highest` (a verdict is 0 or 1).

    Args:
        reading: One of `reading_names()`.
        reply: The reply as written by the model.
        lowest: Lowest rating of the scale.
        highest: Highest rating of the scale.
        mode: `exam`, `guarded` (see `verify_answer`), or `rubric` for the rules of the reference
            implementation.
        field: Name of the relevant value in a JSON reply.
        truncated: Whether the model was stopped before it had finished. A complete JSON object is
            read nevertheless: it was stopped in the white space after it.
        thresholds: Those of the reading `thresholds`, lowest first.
        keys: Known answers, for verifying an extracted answer.
        unnumbered: One of `UNNUMBERED`: how a self-rating without a number is read.
        question: The question, for verifying an extracted answer by the guarded rule.

    Raises:
        InputError: Unknown mode, reading or `unnumbered`, or thresholds that do not match the
            scale.

    Sources: EXAM++, section 4.2; FLAN-T5-EXAM, section 3.2.
    """
    if mode not in READERS:
        raise InputError(f"unknown mode '{mode}'", hint=f"Use one of {', '.join(READERS)}")
    if reading not in READERS[mode]:
        raise InputError(
            f"unknown rules of reading '{reading}'",
            hint=f"Use one of {', '.join(reading_names())}",
        )
    if unnumbered not in UNNUMBERED:
        raise InputError(
            f"invalid meaning '{unnumbered}' of a text without a number",
            field="unnumbered",
            hint=f"Use one of {', '.join(UNNUMBERED)}",
        )
    text: str | None = reply
    if mode != "rubric":
        text = strip_thoughts(reply)
        if truncated and not is_json_object(text or ""):
            return Outcome(State.TRUNCATED, rule="truncated")
        if text is None:
            return _unparsed("unfinished thought")
        if len(text) > LONGEST:
            return _unparsed("too long")
    return READERS[mode][reading](
        RawReply(
            text or "",
            lowest,
            highest,
            field,
            tuple(thresholds),
            tuple(keys),
            unnumbered,
            mode,
            question,
        )
    )
