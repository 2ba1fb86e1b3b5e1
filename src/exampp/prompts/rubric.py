"""The reference's own rules of reading, for reproducing published numbers.

They depart from the papers: only a lone digit is a rating, the rule for replies without one is
inverted (a text gets 0, an expression of unanswerability 1), and a phrase is stemmed as if it
were one word. Option letters count as expressions of unanswerability for every prompt, as in the
published grades; later versions of the reference forget them for self-rated questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from exampp.prompts.expressions import UNANSWERABLE
from exampp.prompts.normal_form import fuzz_ratio, normalise, stem, stopwords

MAX_RATING = 5
_SIMILAR = 80
_LONGEST_LIKE = 100
"""Characters beyond which no reply is similar to one of the expressions."""
_LONE_DIGIT = re.compile(r"[^\w]*([0-9])[^\w]*")
_LETTERS = (*"ABCDabcd", "i", "ii", "iii", "iv")
_MARKS = ("{})", "({})", "[{}]", "{}.", "{}")
_YES = frozenset({"yes", "correct", "true"})
_NO = frozenset({"no", "incorrect", "false"})
_TRUE_FALSE = {frozenset({"true"}): _YES, frozenset({"false"}): _NO}
# Further stopwords of the reference's list: negations, and what a tokenizer leaves of contractions.
_FRAGMENTS = """no nor not s t d ll m o re ve y ma ain aren couldn didn doesn don hadn hasn haven
isn mightn mustn needn shan shouldn wasn weren won wouldn"""


def _stemmed(text: str) -> str:
    return stem(text.lower())


@cache
def _expressions() -> tuple[frozenset[str], frozenset[str]]:
    options = (mark.format(letter) for letter in _LETTERS for mark in _MARKS)
    known = frozenset((*UNANSWERABLE, *options))
    return known, frozenset(map(_stemmed, known))


def is_answer(reply: str) -> bool:
    """Whether the reference takes the reply for a real answer."""
    known, stems = _expressions()
    if reply in known:
        return False
    stemmed = _stemmed(reply)
    if len(stemmed) > _LONGEST_LIKE:
        return True
    return bool(stemmed) and fuzz_ratio(stemmed, stems) <= _SIMILAR


def self_rating(reply: str, highest: int = MAX_RATING) -> int:
    """The rating that the reference reads; above `highest` it is 0.

    The reference reads digits up to 5 whatever the prompt's scale, then drops those above it.
    """
    digit = _LONE_DIGIT.fullmatch(reply)
    if digit and int(digit[1]) <= MAX_RATING:
        rating = int(digit[1])
    else:
        rating = 0 if is_answer(reply) else 1
    return rating if rating <= highest else 0


def is_yes(reply: str) -> bool:
    """Whether the reference takes the reply to a direct relevance prompt for a yes."""
    return is_answer(reply) and reply.lower() in _YES


def _without_period(text: str) -> str:
    return text.strip().removesuffix(".")


def is_correct(answer: str, keys: Iterable[str]) -> bool:
    """Whether the reference finds the answer among the known ones (its second answer key)."""
    answer = _without_period(answer)
    golds = frozenset(map(_without_period, keys))
    truths = _TRUE_FALSE.get(frozenset(gold.lower().strip() for gold in golds))
    if truths is not None:
        return answer.lower() in truths
    dropped = stopwords() | frozenset(_FRAGMENTS.split())
    normal = normalise(answer, dropped)
    known = {normalise(gold, dropped) for gold in golds}
    if len(normal) >= 2 and normal in known:
        return True
    if len(normal) >= 4:
        return fuzz_ratio(normal, known) > _SIMILAR
    return answer in golds
