"""From a raw reply to an outcome.

`read` looks up a reader by the prompt's `reading` and the mode: `exam` reads as the papers say,
`rubric` as the reference implementation does, faults included. A reply that cannot be read is an
outcome of its own, never a low rating.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from exampp.errors import InputError
from exampp.prompts import answers
from exampp.prompts.answers import (
    is_blank_answer,
    is_error,
    is_refusal,
    is_unanswerable,
    is_unanswerable_sentence,
    verify,
)
from exampp.prompts.grammar import (
    FieldValue,
    ReadRating,
    agreed,
    find_fields,
    find_rating,
    find_verdict,
    find_verdict_fields,
    holds_number,
    name_of,
    plain,
)
from exampp.prompts.words import ENGLISH
from exampp.records.graders import Outcome, State

_OPENS = re.compile(r"[\s*]*+(?:\{|\[\{|```json)")
_FENCE = re.compile(r"(?is)```(?:json)?\s*+(.*?)(?:```|\Z)")
_ANSWERS = ("answer", "shortanswer", "extract", "response")
_MOST_OBJECTS = 200
_LONGEST_BROKEN = 20_000
_DEEPEST = 4


class Named(NamedTuple):
    """One name of a JSON object and its value."""

    name: str
    value: object


class _Object(tuple[tuple[str, object], ...]):
    """A JSON object as it stands, with names that occur twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def plain_name(name: str) -> str:
    """A name as it is compared: letters and digits, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


def looks_like_json(reply: str) -> bool:
    """Whether the reply as a whole is meant as JSON, so that its numbers are no free text."""
    return _OPENS.match(reply) is not None


def named_values(reply: str) -> tuple[list[Named], str]:
    """The named values of all whole JSON objects of a reply, and the text around the objects."""
    found: list[Named] = []
    around: list[str] = []
    start = end = 0
    for _ in range(_MOST_OBJECTS):
        start = reply.find("{", start)
        if start < 0:
            break
        try:
            data, stop = _DECODER.raw_decode(reply, start)
        except (ValueError, RecursionError):
            start += 1
            continue
        found += _named_in(data)
        around.append(reply[end:start])
        start = end = stop
    return found, "\n".join([*around, reply[end:]])


def _named_in(data: object, depth: int = 0) -> Iterator[Named]:
    if depth > _DEEPEST:
        return
    if isinstance(data, _Object):
        for name, value in data:
            if not isinstance(value, _Object):
                yield Named(name, value)
            yield from _named_in(value, depth + 1)
    elif isinstance(data, list):
        for value in data:
            yield from _named_in(value, depth + 1)


def find_answer(reply: str, field: str) -> str | None:
    """The text under `field`, or a usual name for an answer, in the last object that has one.

    Broken JSON is mended first, unless it is very long. None if there is no such text.
    """
    if "{" not in reply:
        return None
    values = named_values(reply)[0] or _repaired(reply)
    for name in (plain_name(field), *_ANSWERS):
        texts = [value for key, value in values if name and plain_name(key) == name]
        if texts:
            return texts[-1] if isinstance(texts[-1], str) else None
    return None


def _repaired(text: str) -> list[Named]:
    if text.count("{") > _MOST_OBJECTS or len(text) > _LONGEST_BROKEN:
        return []
    import json_repair

    fences = _FENCE.findall(text)
    try:
        data = json_repair.loads(fences[-1] if fences else text[text.find("{") :])
        return list(_named_in(json.loads(json.dumps(data), object_pairs_hook=_Object)))
    except (ValueError, RecursionError):
        return []


LABELS: Mapping[str, tuple[str, ...]] = {
    "full": ("support", "full_support", "fully_supported", "full", "supported"),
    "partial": ("partial_support", "partially_supported", "partial"),
    "none": ("not_support", "no_support", "not_supported", "none"),
}
"""How a label may be written, spaces and dashes as underscores."""
_LEVEL = {word: level for level, words in LABELS.items() for word in words}
_SUPPORT_FENCE = re.compile(r"```(?:\w+)?")
_SUPPORT_NAME = re.compile(r"(?i)\A\W*(?:labels?|answer|support)\s*[:=]\s*")
_BETWEEN = re.compile(r"[\s_-]+")


def find_support(reply: str, lowest: int, highest: int) -> ReadRating:
    """What one label says: full support is the highest, none the lowest, partial in between.

    The reply is a list of one label as Python writes it, fenced or not, or the label alone. On a
    scale of two there is no partial support. A list of more labels says nothing of one nugget.
    """
    text = _SUPPORT_NAME.sub("", _SUPPORT_FENCE.sub("", reply)).strip()
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


_NAMES = "think|thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad|monologue|cot"
_MARK = re.compile(
    r"(?i)(?:(?P<tag><)|[\[\u25c1])\|?\s?(?P<close>/\s?|end_(?:of_)?)?(?:(?:start|begin)_(?:of_)?)?"
    rf"(?P<name>(?:[^\W_]{{1,20}}[_:-]){{0,3}}(?:{_NAMES})(?:[_:-][^\W_]{{1,20}}){{0,3}})"
    r"\s?(?(tag)(?:[^\w<>\n][^<>\n]{0,80})?|)\|?[>\]\u25b7]"
    r"|<\|channel\|>(?P<channel>\w++)[^<]{0,40}+(?:<\|constrain\|>[^<]{0,40}+)?<\|message\|>"
    r"|<\|(?P<end>end|return|call)\|>(?:<\|start\|>assistant)?"
)
_THOUGHT_WORDS = (
    "<|",
    "think",
    "thought",
    "reason",
    "reflection",
    "analysis",
    "scratchpad",
    "monologue",
    "cot",
)
"""In every mark is one of them, in whatever case."""
_OTHER_CASES = re.compile("[\u0130\u0131\u017f]")
"""What a pattern that ignores case takes for `i` and `s`, beside what `str.lower` makes of them."""

_OTHER_MARKS = {  # Gemma, MedGemma, Apertus
    "<|channel>thought": "<think>",
    "<channel|>": "</think>",
    "<unused94>": "<think>",
    "<unused95>": "</think>",
    "<|inner_prefix|>": "<think>",
    "<|inner_suffix|>": "</think>",
}
_WORDED = (
    # channels whose marks a server left out
    (re.compile(r"\s*+analysis(?=[^\W_])"), re.compile(r"assistantfinal")),
    # Granite
    (
        re.compile(r"\s*+Here(?: is|'s) my thought process:"),
        re.compile(r"Here(?: is|'s) my response:"),
    ),
)
"""How replies open and end that say in words where the thought is."""


def strip_thoughts(reply: str) -> str | None:
    """The reply without the thoughts of its model; None if a thought is not finished.

    A mark opens a thought and the closing mark of the same name ends it. What stands before a
    closing mark that nothing opened is a thought too: the opening one was part of the prompt. Of a
    reply in channels the last `final` one counts.
    """
    for opening, end in _WORDED:
        if opening.match(reply):
            parts = end.split(reply)
            return parts[-1] if len(parts) > 1 else None
    if not any(first in reply for first in "<[\u25c1"):
        return reply
    for other, mark_of_thought in _OTHER_MARKS.items():
        reply = reply.replace(other, mark_of_thought)
    lowered = reply.lower()
    if any(word in lowered for word in _THOUGHT_WORDS) or _OTHER_CASES.search(reply):
        return _outside_marks(reply)
    return reply


def _outside_marks(reply: str) -> str | None:
    kept: list[str] = []
    inside, start, channels = "", 0, False
    for mark in _MARK.finditer(reply):
        name = (mark["name"] or "").lower()
        if mark["channel"]:
            channels = True
            kept = []
            inside = "" if mark["channel"].lower() == "final" else "channel"
        elif mark["end"]:
            if not inside:
                kept.append(reply[start : mark.start()])
            inside = "channel" if channels else inside
        elif not inside and mark["close"]:
            kept = []
        elif not inside:
            kept.append(reply[start : mark.start()])
            inside = name
        elif mark["close"] and inside == name:
            inside = ""
        else:
            continue
        start = mark.end()
    if inside == "channel" and kept:
        return " ".join(kept)
    return None if inside else " ".join([*kept, reply[start:]])


LONGEST = 50_000
"""Characters of a reply, without the thoughts of its model, that are read at most."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A raw reply with what is needed to read it."""

    text: str
    lowest: int = 0
    highest: int = 5
    field: str = ""
    thresholds: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()
    unnumbered: str = "answer"
    language: str = ENGLISH


Reader = Callable[[RawReply], Outcome]


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """A way of reading: a reader for every reading, and what becomes of a reply before.

    `sets_aside` takes the raw reply and whether it was cut off, and gives what is to be read, or
    the outcome where nothing is.
    """

    name: str
    readers: Mapping[str, Reader]
    sets_aside: Callable[[str, bool], Outcome | str]


UNNUMBERED = ("answer", "unparsed")
"""What a text without a number is in reply to a request for a self-rating.

`answer`: the model answered in place of rating, which counts one above the lowest rating (EXAM++,
section 4.2.2; so do the papers' models). `unparsed`: nothing is known.
"""

_REFUSED = Outcome(State.REFUSED, rule="refused")
_NO_VALUE = ReadRating(None, "json")
_ANSWER_LABEL = re.compile(
    r"(?i)^\W*(?:(?:the|my) )?(?:final )?answer(?:\W{0,3}[:=]\W{0,3}| is:? (?!not\b))\s*"
)


def _unparsed(rule: str) -> Outcome:
    return Outcome(State.UNPARSED, rule=rule)


def _graded(rating: int, rule: str) -> Outcome:
    return Outcome(State.GRADED, rating, rule)


def _outcome(found: ReadRating) -> Outcome:
    if found.rating is None:
        return _unparsed(found.rule)
    return _graded(found.rating, found.rule)


class _Grammar(NamedTuple):
    """How a text is read: its fields that count, the whole of it, and one value of JSON."""

    fields: Callable[[str], list[FieldValue]]
    whole: Callable[[str], ReadRating]
    value: Callable[[object], ReadRating]


def _rating_grammar(reply: RawReply) -> _Grammar:
    scale = (reply.lowest, reply.highest, reply.field)

    def value(found: object) -> ReadRating:
        if isinstance(found, bool) or not isinstance(found, int | float | str):
            return _NO_VALUE
        return find_rating(str(found), *scale)

    return _Grammar(
        lambda text: find_fields(text, *scale), lambda text: find_rating(text, *scale), value
    )


def _verdict_grammar(reply: RawReply) -> _Grammar:
    def value(found: object) -> ReadRating:
        if isinstance(found, str):
            return find_verdict(found, reply.field)
        return ReadRating(int(found), "json") if found in (0, 1) else _NO_VALUE

    return _Grammar(
        lambda text: find_verdict_fields(text, reply.field),
        lambda text: find_verdict(text, reply.field),
        value,
    )


def _stated_rating(reply: RawReply, grammar: _Grammar) -> ReadRating:
    """What a reply says, in JSON or text."""
    values, around = named_values(reply.text)
    if not looks_like_json(reply.text) and not values:
        return grammar.whole(reply.text)
    if not values:
        fields = grammar.fields(reply.text)
        return _by(agreed(fields), "repaired") if fields else _NO_VALUE
    found = _in_json(values, reply.field, grammar, around)
    if found is None:
        return _NO_VALUE if looks_like_json(reply.text) else grammar.whole(around)
    return found


def _in_json(
    values: Sequence[Named], field: str, grammar: _Grammar, around: str
) -> ReadRating | None:
    """What JSON says, with the fields of the text around it: ratings if any, else answers."""
    named = [(name_of(one.name, field), one) for one in values]
    said = [
        FieldValue(_by(grammar.value(one.value), "json"), name == "final")
        for name, one in named
        if name in ("rating", "final")
    ]
    if said:
        return agreed([*said, *grammar.fields(around)])
    answers = [
        FieldValue(_by(grammar.value(one.value), "json")) for name, one in named if name == "answer"
    ]
    valued = {plain_name(one.name) for one in values if grammar.value(one.value).rating is not None}
    return ReadRating(None, "several") if len(valued) > 1 else agreed(answers) if answers else None


def _by(found: ReadRating, rule: str) -> ReadRating:
    """The same, found by another rule; JSON that holds no number gives no rule of numbers."""
    if found.rating is None:
        return _NO_VALUE if found.rule in ("no number", "no value", "no verdict") else found
    return ReadRating(found.rating, rule)


def _read_rating(reply: RawReply) -> Outcome:
    found = _stated_rating(reply, _rating_grammar(reply))
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def _unrated(reply: RawReply, rule: str) -> Outcome:
    """What a reply is that holds no rating: refused, an error, or unparsed by a rule."""
    text = plain(reply.text)
    if is_refusal(text):
        return _REFUSED
    if is_error(text):
        return _unparsed("error")
    if is_blank_answer(text) and not looks_like_json(reply.text):
        return _unparsed("empty")
    return _unparsed("no verdict" if rule == "no number" and holds_number(reply.text) else rule)


def _read_self_rating(reply: RawReply) -> Outcome:
    outcome = _read_rating(reply)
    if outcome.rule != "no number":
        return outcome
    text = _ANSWER_LABEL.sub("", plain(reply.text))
    if is_unanswerable(text, reply.language) or is_unanswerable_sentence(text):
        return _graded(reply.lowest, "unanswerable")
    return outcome if reply.unnumbered == "unparsed" else _graded(reply.lowest + 1, "answered")


def _read_yes_no(reply: RawReply) -> Outcome:
    found = _stated_rating(reply, _verdict_grammar(reply))
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def _read_support(reply: RawReply) -> Outcome:
    found = find_support(reply.text, reply.lowest, reply.highest)
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def answer_text(reply: str, field: str = "") -> str:
    """The extracted answer: the field of a JSON reply, else all but the thoughts, stripped."""
    text = strip_thoughts(reply) or ""
    answer = find_answer(text, field) if looks_like_json(text) else None
    return (text if answer is None else answer).strip()


def _read_extraction(reply: RawReply) -> Outcome:
    answer = _ANSWER_LABEL.sub("", answer_text(reply.text, reply.field))
    if is_refusal(answer):
        return _REFUSED
    if reply.keys:
        verified = verify(answer, reply.keys, language=reply.language)
        if verified.correct:
            return _graded(1, verified.rule)
    if is_error(answer):
        return _unparsed("error")
    if is_unanswerable(answer, reply.language) or is_blank_answer(answer):
        return _graded(0, "unanswerable")
    return _graded(0, "unmatched") if reply.keys else _graded(1, "answered")


def _read_thresholds(reply: RawReply) -> Outcome:
    wanted = reply.highest - reply.lowest
    rising = all(low <= high for low, high in pairwise(reply.thresholds))
    if len(reply.thresholds) != wanted or not rising:
        raise InputError(
            f"the thresholds are {list(reply.thresholds)}",
            field="thresholds",
            mend=f"give {wanted} numbers, none smaller than the one before",
        )
    try:
        score = float(reply.text)
    except ValueError:
        return _unparsed("no score")
    if score != score:
        return _unparsed("no score")
    reached = sum(score >= threshold for threshold in reply.thresholds)
    return _graded(reply.lowest + reached, "threshold")


def _rubric_rating(reply: RawReply) -> Outcome:
    return _graded(answers.rubric_self_rating(reply.text, reply.highest), "rubric")


def _rubric_yes_no(reply: RawReply) -> Outcome:
    return _graded(int(answers.rubric_is_yes(reply.text)), "rubric")


def _rubric_extraction(reply: RawReply) -> Outcome:
    if reply.keys:
        return _graded(int(answers.rubric_is_correct(reply.text, reply.keys)), "rubric")
    return _graded(int(answers.rubric_is_answer(reply.text)), "rubric")


def _what_counts(reply: str, truncated: bool) -> Outcome | str:
    """The reply without the thoughts of its model, unless it is cut off, unfinished or too long."""
    if truncated:
        return Outcome(State.TRUNCATED, rule="truncated")
    text = strip_thoughts(reply)
    if text is None:
        return _unparsed("unfinished thought")
    return text if len(text) <= LONGEST else _unparsed("too long")


def _all(reply: str, _: bool) -> Outcome | str:
    return reply


EXAM = ReadingPolicy(
    "exam",
    MappingProxyType(
        {
            "self-rating": _read_self_rating,
            "rating": _read_rating,
            "yes-no": _read_yes_no,
            "extraction": _read_extraction,
            "thresholds": _read_thresholds,
            "support": _read_support,
        }
    ),
    sets_aside=_what_counts,
)
RUBRIC = ReadingPolicy(
    "rubric",
    MappingProxyType(
        {
            "self-rating": _rubric_rating,
            "rating": _rubric_rating,
            "yes-no": _rubric_yes_no,
            "extraction": _rubric_extraction,
            "thresholds": _read_thresholds,
            "support": _read_support,
        }
    ),
    sets_aside=_all,
)
POLICIES: Mapping[str, ReadingPolicy] = MappingProxyType({p.name: p for p in (EXAM, RUBRIC)})


def reading_names() -> tuple[str, ...]:
    """Names of the rules of reading that a prompt can ask for."""
    return tuple(EXAM.readers)


def read(
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
    language: str = ENGLISH,
) -> Outcome:
    """Read a reply by the named rules, on the scale `lowest` to `highest` (a verdict is 0 or 1).

    `field` is the value that counts in a JSON reply; `truncated` says that the model was stopped
    before it had finished; `thresholds` are those of the reading `thresholds`, lowest first;
    with `keys`, the known answers, an extracted answer is verified instead of only looked at;
    `unnumbered`, one of `UNNUMBERED`, says what a text is that holds no number; `language` is that
    of the prompt, whose expressions of unanswerability and stems count.

    Raises InputError for an unknown mode, reading or `unnumbered`, and for thresholds that do not
    fit the scale.
    Sources: EXAM++, section 4.2; FLAN-T5-EXAM, section 3.2.
    """
    if mode not in POLICIES:
        raise InputError(f"there is no mode '{mode}'", mend=f"give one of {', '.join(POLICIES)}")
    policy = POLICIES[mode]
    if reading not in policy.readers:
        raise InputError(
            f"there are no rules of reading called '{reading}'",
            mend=f"give one of {', '.join(policy.readers)}",
        )
    if unnumbered not in UNNUMBERED:
        raise InputError(
            f"a text without a number cannot be '{unnumbered}'",
            field="unnumbered",
            mend=f"give one of {', '.join(UNNUMBERED)}",
        )
    text = policy.sets_aside(reply, truncated)
    if isinstance(text, Outcome):
        return text
    given = RawReply(
        text, lowest, highest, field, tuple(thresholds), tuple(keys), unnumbered, language
    )
    return policy.readers[reading](given)
