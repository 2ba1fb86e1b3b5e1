"""From a raw reply to an outcome.

`read` looks up a reader by the prompt's `reading` and the mode: `exam` reads as the papers say,
`rubric` as the reference implementation does, faults included. A reply that cannot be read is an
outcome of its own, never a low rating.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from exampp.errors import InputError
from exampp.prompts import rubric
from exampp.prompts.expressions import (
    is_error,
    is_refusal,
    is_unanswerable,
    says_nothing,
    says_unanswerable,
)
from exampp.prompts.json_reply import (
    Named,
    find_answer,
    looks_like_json,
    named_values,
    plain_name,
)
from exampp.prompts.languages import ENGLISH
from exampp.prompts.ratings import FieldValue, ReadRating, agreed, find_fields, find_rating, name_of
from exampp.prompts.support import find_support
from exampp.prompts.thoughts import without_thoughts
from exampp.prompts.tokens import holds_number, plain
from exampp.prompts.verdicts import find_verdict, find_verdict_fields
from exampp.prompts.verification import verify
from exampp.records.grading import Outcome, State

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


def _said(reply: RawReply, grammar: _Grammar) -> ReadRating:
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
    found = _said(reply, _rating_grammar(reply))
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def _unrated(reply: RawReply, rule: str) -> Outcome:
    """What a reply is that holds no rating: refused, an error, or unparsed by a rule."""
    text = plain(reply.text)
    if is_refusal(text):
        return _REFUSED
    if is_error(text):
        return _unparsed("error")
    if says_nothing(text) and not looks_like_json(reply.text):
        return _unparsed("empty")
    return _unparsed("no verdict" if rule == "no number" and holds_number(reply.text) else rule)


def _read_self_rating(reply: RawReply) -> Outcome:
    outcome = _read_rating(reply)
    if outcome.rule != "no number":
        return outcome
    text = _ANSWER_LABEL.sub("", plain(reply.text))
    if is_unanswerable(text, reply.language) or says_unanswerable(text):
        return _graded(reply.lowest, "unanswerable")
    return outcome if reply.unnumbered == "unparsed" else _graded(reply.lowest + 1, "answered")


def _read_yes_no(reply: RawReply) -> Outcome:
    found = _said(reply, _verdict_grammar(reply))
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def _read_support(reply: RawReply) -> Outcome:
    found = find_support(reply.text, reply.lowest, reply.highest)
    return _outcome(found) if found.rating is not None else _unrated(reply, found.rule)


def answer_text(reply: str, field: str = "") -> str:
    """The extracted answer: the field of a JSON reply, else all but the thoughts, stripped."""
    text = without_thoughts(reply) or ""
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
    if is_unanswerable(answer, reply.language) or says_nothing(answer):
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
    return _graded(rubric.self_rating(reply.text, reply.highest), "rubric")


def _rubric_yes_no(reply: RawReply) -> Outcome:
    return _graded(int(rubric.is_yes(reply.text)), "rubric")


def _rubric_extraction(reply: RawReply) -> Outcome:
    if reply.keys:
        return _graded(int(rubric.is_correct(reply.text, reply.keys)), "rubric")
    return _graded(int(rubric.is_answer(reply.text)), "rubric")


def _what_counts(reply: str, truncated: bool) -> Outcome | str:
    """The reply without the thoughts of its model, unless it is cut off, unfinished or too long."""
    if truncated:
        return Outcome(State.TRUNCATED, rule="truncated")
    text = without_thoughts(reply)
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
