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

from exampp.errors import InputError
from exampp.prompts import rubric
from exampp.prompts.expressions import is_refusal, is_unanswerable, says_unanswerable
from exampp.prompts.json_reply import find_value, looks_like_json
from exampp.prompts.ratings import Found, clean, find_rating
from exampp.prompts.verification import verify
from exampp.records.grading import Outcome, State


@dataclass(frozen=True, slots=True)
class Reply:
    """A raw reply with what is needed to read it."""

    text: str
    lowest: int = 0
    highest: int = 5
    field: str = ""
    thresholds: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()
    unnumbered: str = "answer"


Reader = Callable[[Reply], Outcome]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way of reading: what a reply is freed of first, and a reader for every reading."""

    name: str
    readers: Mapping[str, Reader]
    prepare: Callable[[str], str]
    sets_truncated_aside: bool


UNNUMBERED = ("answer", "unparsed")
"""What a text without a number is in reply to a request for a self-rating.

`answer`: the model answered in place of rating, which counts one above the lowest rating (EXAM++,
section 4.2.2; so do the papers' models). `unparsed`: nothing is known.
"""

_REFUSED = Outcome(State.REFUSED, rule="refused")
_THOUGHT = re.compile(r"(?s)^.*</think(?:ing)?>")
_WORD = re.compile(r"\w")
_ANSWER_LABEL = re.compile(r"(?i)^\W*(?:final |my )?(?:answer|rating|score|grade)\s*[:=]\s*")
_YES_NO = {"yes": 1, "true": 1, "correct": 1, "no": 0, "false": 0, "incorrect": 0}
_WORDS = "|".join(_YES_NO)
_LONE = re.compile(rf"(?i)\W*({_WORDS})\W*")
_FIRST = re.compile(r"(?i)\W*(yes|no)\b(?!\s+(?:or|and)\s+(?:yes|no)\b|\s*/)")
_SAID = re.compile(
    rf"(?i)\b(?:answer|verdict|judge?ment|conclusion|relevant|relevance|label)\b"
    rf"[^\w\n]*?(?:[:=]|\bis\b|\n)\W*({_WORDS})\b(?!\s+(?:or|and)\s+(?:{_WORDS})\b)"
    rf"|(?:^|[.:;,!?\n])\W*({_WORDS})\W*\Z"
)


def _unparsed(rule: str) -> Outcome:
    return Outcome(State.UNPARSED, rule=rule)


def _graded(rating: int, rule: str) -> Outcome:
    return Outcome(State.GRADED, rating, rule)


def _found(found: Found, rule: str = "") -> Outcome:
    if found.rating is None:
        return _unparsed(found.rule)
    return _graded(found.rating, rule or found.rule)


def _number(value: object, reply: Reply, rule: str) -> Outcome:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _unparsed("json")
    found = find_rating(str(value), reply.lowest, reply.highest)
    return _unparsed("json") if found is None else _found(found, rule)


def _rating(reply: Reply) -> Outcome | None:
    """The rating in JSON or text; None if the reply holds none at all."""
    if value := find_value(reply.text, reply.field):
        return _number(value.value, reply, value.rule)
    if looks_like_json(reply.text):
        return _unparsed("json")
    text = clean(reply.text)
    if not _WORD.search(text):
        return _unparsed("empty")
    found = find_rating(reply.text, reply.lowest, reply.highest)
    return None if found is None else _found(found)


def _read_rating(reply: Reply) -> Outcome:
    outcome = _rating(reply)
    if outcome is not None:
        return outcome
    return _REFUSED if is_refusal(clean(reply.text)) else _unparsed("no rating")


def _read_self_rating(reply: Reply) -> Outcome:
    outcome = _rating(reply)
    if outcome is not None:
        return outcome
    text = _ANSWER_LABEL.sub("", clean(reply.text))
    if is_refusal(text):
        return _REFUSED
    if is_unanswerable(text) or says_unanswerable(text):
        return _graded(reply.lowest, "unanswerable")
    if reply.unnumbered == "unparsed":
        return _unparsed("no number")
    return _graded(reply.lowest + 1, "answered")


def _yes_no(text: str) -> int | None:
    if lone := _LONE.fullmatch(text):
        return _YES_NO[lone[1].lower()]
    said = list(_SAID.finditer(text))
    word = (said[-1][1] or said[-1][2]) if said else None
    first = _FIRST.match(text)
    if word is None and first:
        word = first[1]
    return None if word is None else _YES_NO[word.lower()]


def _read_yes_no(reply: Reply) -> Outcome:
    text = clean(reply.text)
    rule = "rated"
    if value := find_value(reply.text, reply.field):
        if isinstance(value.value, bool | int) and value.value in (0, 1):
            return _graded(int(value.value), value.rule)
        text, rule = str(value.value), value.rule
    elif looks_like_json(reply.text):
        return _unparsed("json")
    if not _WORD.search(text):
        return _unparsed("empty")
    verdict = _yes_no(text)
    if verdict is not None:
        return _graded(verdict, rule)
    return _REFUSED if is_refusal(text) else _unparsed("no verdict")


def answer_text(reply: str, field: str = "") -> str:
    """The extracted answer: the field of a JSON reply, otherwise the whole, stripped."""
    value = find_value(reply, field, answers=True) if looks_like_json(reply) else None
    return value.value.strip() if value and isinstance(value.value, str) else reply.strip()


def _read_extraction(reply: Reply) -> Outcome:
    answer = answer_text(reply.text, reply.field)
    if is_refusal(answer):
        return _REFUSED
    if reply.keys:
        verified = verify(answer, reply.keys)
        if verified.correct or not is_unanswerable(answer):
            return _graded(int(verified.correct), verified.rule)
    if is_unanswerable(answer):
        return _graded(0, "unanswerable")
    return _graded(1, "answered")


def _read_thresholds(reply: Reply) -> Outcome:
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


def _rubric_rating(reply: Reply) -> Outcome:
    return _graded(rubric.self_rating(reply.text, reply.highest), "rubric")


def _rubric_yes_no(reply: Reply) -> Outcome:
    return _graded(int(rubric.is_yes(reply.text)), "rubric")


def _rubric_extraction(reply: Reply) -> Outcome:
    if reply.keys:
        return _graded(int(rubric.is_correct(reply.text, reply.keys)), "rubric")
    return _graded(int(rubric.is_answer(reply.text)), "rubric")


def _without_thoughts(reply: str) -> str:
    """A reasoning model's thoughts name many numbers and are no part of its reply."""
    return _THOUGHT.sub("", reply)


EXAM = Policy(
    "exam",
    MappingProxyType(
        {
            "self-rating": _read_self_rating,
            "rating": _read_rating,
            "yes-no": _read_yes_no,
            "extraction": _read_extraction,
            "thresholds": _read_thresholds,
        }
    ),
    prepare=_without_thoughts,
    sets_truncated_aside=True,
)
RUBRIC = Policy(
    "rubric",
    MappingProxyType(
        {
            "self-rating": _rubric_rating,
            "rating": _rubric_rating,
            "yes-no": _rubric_yes_no,
            "extraction": _rubric_extraction,
            "thresholds": _read_thresholds,
        }
    ),
    prepare=str,
    sets_truncated_aside=False,
)
POLICIES: Mapping[str, Policy] = MappingProxyType({p.name: p for p in (EXAM, RUBRIC)})


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
) -> Outcome:
    """Read a reply by the named rules, on the scale `lowest` to `highest` (a verdict is 0 or 1).

    `field` is the value that counts in a JSON reply; `truncated` says that the model was stopped
    before it had finished; `thresholds` are those of the reading `thresholds`, lowest first;
    with `keys`, the known answers, an extracted answer is verified instead of only looked at;
    `unnumbered`, one of `UNNUMBERED`, says what a text is that holds no number.

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
    if truncated and policy.sets_truncated_aside:
        return Outcome(State.TRUNCATED, rule="truncated")
    text = policy.prepare(reply)
    given = Reply(text, lowest, highest, field, tuple(thresholds), tuple(keys), unnumbered)
    return policy.readers[reading](given)
