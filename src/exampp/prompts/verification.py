"""Checking an extracted answer against the known ones.

Source: EXAM++, section 4.2.1, and FLAN-T5-EXAM, section 3.2.2: normalised strings match if their
edit distance is less than 20 % of the longer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from exampp.errors import InputError
from exampp.prompts import rubric
from exampp.prompts.expressions import is_unanswerable, says_nothing
from exampp.prompts.languages import ENGLISH
from exampp.prompts.normal_form import drop_punctuation, edit_distance, normalise
from exampp.prompts.spans import find_words

LARGEST_SHARE = 0.2
_LEAST_EQUAL = 2
_LEAST_FUZZY = 4
_TRUTHS = {
    frozenset({"true"}): frozenset({"yes", "correct", "true"}),
    frozenset({"false"}): frozenset({"no", "incorrect", "false"}),
}
_ALL_NONE = re.compile(r"(?i)\s*(?P<which>all|none|neither) of (?:the |these )?(?:above|these)\W*")
_MANY = 3
_AROUND = " \t\r\n\"'\u201c\u201d\u2018\u2019."


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether an answer is correct, by which rule and known answer, and where it stands.

    `rule` is exact, true-false, normalised, edit-distance, or unmatched; `span` the place of the
    answer in the passage (character offsets), where it occurs there.
    """

    correct: bool
    rule: str
    key: str | None = None
    span: tuple[int, int] | None = None


def verify(
    answer: str,
    keys: Sequence[str],
    passage: str | None = None,
    mode: str = "exam",
    language: str = ENGLISH,
) -> Verified:
    """Check an answer against the known answers `keys`; `mode="rubric"` as the reference does.

    Words are stemmed, and common ones left out, as in the `language`.

    Raises InputError if there is no known answer.
    """
    if not any(key.strip() for key in keys):
        raise InputError(
            "there is no known answer to verify against",
            field="gold_answers",
            mend="give the question gold_answers, or grade without verification",
        )
    span = None if passage is None else find_span(answer, passage)
    if mode == "rubric":
        correct = rubric.is_correct(answer, keys)
        return Verified(correct, "rubric", span=span)
    rule, key = _match(answer, tuple(keys), language)
    return Verified(key is not None, rule, key, span)


def says_none(answer: str, keys: Sequence[str]) -> bool:
    """Whether an extracted answer says that there is none, and no known answer is that.

    It needs no model to be found not correct.
    """
    if not (is_unanswerable(answer) or says_nothing(answer)):
        return False
    return any(key.strip() for key in keys) and not verify(answer, keys).correct


def _without_period(text: str) -> str:
    return text.strip().removesuffix(".").rstrip()


@lru_cache(maxsize=4096)
def _known(keys: tuple[str, ...], language: str) -> tuple[tuple[str, str, str], ...]:
    golds = ((key, _without_period(key)) for key in keys)
    return tuple((key, gold, normalise(gold, language=language)) for key, gold in golds)


def _match(answer: str, keys: tuple[str, ...], language: str) -> tuple[str, str | None]:
    answer = _without_period(answer)
    if not answer:
        return "unmatched", None
    known = _known(keys, language)
    truths = _TRUTHS.get(frozenset(gold.lower() for _, gold, _ in known))
    if truths is not None:
        plain = drop_punctuation(answer.lower()).strip()
        return ("true-false", keys[0]) if plain in truths else ("unmatched", None)
    normal = normalise(answer, language=language)
    for key, gold, _ in known:
        if answer == gold:
            return "exact", key
    for key, _, other in known:
        if len(normal) >= _LEAST_EQUAL and normal == other:
            return "normalised", key
    for key, _, other in known:
        if len(normal) >= _LEAST_FUZZY and is_close(normal, other):
            return "edit-distance", key
    return "unmatched", None


def is_close(one: str, other: str) -> bool:
    """Whether the edit distance is less than 20 % of the longer string's length."""
    longer = max(len(one), len(other))
    far = abs(len(one) - len(other)) >= LARGEST_SHARE * longer
    return not far and edit_distance(one, other) < LARGEST_SHARE * longer


def find_span(answer: str, passage: str) -> tuple[int, int] | None:
    """Where the answer first stands in the passage, as whole words: character offsets or None.

    Case and the kind of white space do not count, nor do quotation marks and a period around it.
    """
    return find_words(answer.strip(_AROUND), passage)


def key_text(key: str, choices: Mapping[str, str]) -> str:
    """The text of a multiple choice key, with "all (none) of the above" spelled out.

    `choices` maps letters to texts and is never shown to the model. Raises InputError if the key
    is not among them. Source: EXAM++, section 4.2.1 (TQA questions).
    """
    if key not in choices:
        raise InputError(
            f"the key '{key}' is not among the choices {', '.join(choices)}",
            field="correct",
            mend="give the letter of one of the choices",
        )
    return spell_out(choices[key], list(choices.values()))


def spell_out(text: str, choices: Sequence[str]) -> str:
    """Replace "all of the above" and "none of the above" by the choices they speak of."""
    asked = _ALL_NONE.fullmatch(text)
    others = [choice for choice in choices if not _ALL_NONE.fullmatch(choice)]
    if not asked or not others:
        return text
    if asked["which"].lower() == "all":
        return f"{'both' if len(others) < _MANY else 'all of'} {' and '.join(others)}"
    return f"neither {' nor '.join(others)}"
