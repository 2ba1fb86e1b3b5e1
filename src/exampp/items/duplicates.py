"""Duplicates in a bank: pairs of items that ask one thing in the same or in other words."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from exampp.prompts.words import visible_form
from exampp.records import Item

NEAR = 85.0
"""Minimum token ratio (0 to 100, order ignored) of near duplicates."""

_NARROW_NOTHING = frozenset(
    ["a", "an", "the", "some", "any", "various", "several", "different", "main", "major", "key"]
)
_SHORTEST = 3
"""Maximum letters of a word that is not stemmed: "is", "gas"."""
_AGREEMENT = {"does": "do", "are": "is", "were": "was", "has": "have"}
_NEGATION = re.compile(
    "not|no|non|never|none|nobody|nothing|neither|nor|without|lacks?|except|hardly|rarely"
)
_DENYING = ("un", "in", "im", "il", "ir", "dis", "non", "a")
_NUMBER = re.compile(
    r".*\d.*|one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|[mb]illion|first"
    "|second|third|fourth|fifth|last|both|half|once|twice"
)
_SPELLED_OUT = (
    (re.compile(r"[\u2018\u2019\u02bc]"), "'"),
    (re.compile(r"[\u2010-\u2015\u2212]"), "-"),
    (re.compile(r"\bcannot\b|\bcan't\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"(?i)\b(what|who|where|when|why|how|that|it|there)'s\b"), r"\1 is"),
    (re.compile(r"(?i)\b(what|who|where|when|why|how|they|we|you)'re\b"), r"\1 are"),
    (re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])"), " "),
)
_EDGES = re.compile(
    r"^[\"'\u201c\u201d\xab\xbb(\[{*_`\xbf\xa1]+|[.,;:!?\u2026\"'\u201c\u201d\xab\xbb)\]}*_`]+$"
)


class NearDuplicate(NamedTuple):
    """A duplicate (`differs` is empty) or near duplicate of an earlier item."""

    item: Item
    like: Item
    differs: str


class _Word(NamedTuple):
    """A word in lower case, its stem, and whether it is capitalized like a name."""

    lower: str
    stem: str
    name: bool


def text_difference(one: str, other: str) -> str:
    """Return the most severe difference of two texts; empty if they are equivalent."""
    words, others = _words(one), _words(other)
    # a text in a single case does not mark names
    telling = _tells_names(one) and _tells_names(other)
    first, second = _compared_words(words, telling), _compared_words(others, telling)
    if first == second:
        return ""
    if sorted(first) == sorted(second):
        return "the order"
    alone = _left(first, second) + _left(second, first)
    lower = [word.lower() for word in alone]
    if any(map(_NUMBER.fullmatch, lower)):
        return "a number"
    denied = {denying + word for word in lower for denying in _DENYING}
    if any(map(_NEGATION.fullmatch, lower)) or denied & set(lower):
        return "a negation"
    if any(word != word.lower() for word in alone):
        return "a name"
    return "a word"


def near_duplicates(items: Sequence[Item]) -> Iterator[NearDuplicate]:
    """Yield duplicates and near duplicates of earlier items, with the most similar one.

    Later items are not compared with a duplicate.

    Two items are duplicates if they differ in form alone: case, punctuation, articles and other
    words that narrow nothing, the number of a noun, the agreement of a verb. A different name,
    number, negation, order of words or any other word makes them distinct. Synonyms are not known
    here, so items in other words are never duplicates.
    """
    from rapidfuzz import fuzz, process

    forms = [" ".join(word.stem for word in _words(item.text)) for item in items]
    ratios = process.cdist(forms, forms, scorer=fuzz.token_sort_ratio, score_cutoff=NEAR)
    duplicates: set[int] = set()
    for index, item in enumerate(items):
        row = ratios[index, :index]
        (alike,) = row.nonzero()
        likest = alike[np.argsort(-row[alike], kind="stable")]
        near = [n for n in likest.tolist() if n not in duplicates]
        similar = [
            NearDuplicate(item, items[n], text_difference(item.text, items[n].text)) for n in near
        ]
        same = next((one for one in similar if not one.differs), None)
        if same is not None:
            duplicates.add(index)
        if best := same or next(iter(similar), None):
            yield best


# cached: the items of a query are compared again for every new item
@functools.lru_cache(maxsize=1 << 12)
def _words(text: str) -> tuple[_Word, ...]:
    text = visible_form(text)
    for pattern, plain in _SPELLED_OUT:
        text = pattern.sub(plain, text)
    written = [bare for word in text.split() if (bare := _EDGES.sub("", word))]
    last = len(written) - 1
    return tuple(
        _word(word, index == 0)
        for index, word in enumerate(written)
        # the last word is not an article: "hepatitis a"
        if (word not in _NARROW_NOTHING and (index or word.lower() not in _NARROW_NOTHING))
        or index == last
    )


@functools.lru_cache(maxsize=1 << 14)
def _word(written: str, first: bool) -> _Word:
    lower = written.lower()
    name = written != lower and (not first or (len(written) > 1 and written.isupper()))
    return _Word(lower, _AGREEMENT.get(lower) or _singular(lower), name)


def _singular(word: str) -> str:
    """Return a word without the s of a plural or verb. Source: Harman 1991, the S stemmer."""
    if len(word) <= _SHORTEST:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("oes"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("us", "ss")) else word


def _tells_names(text: str) -> bool:
    """Return whether case marks names in a text; not in titles or single-case text."""
    words = [word for word in visible_form(text).split() if word[0].isalpha()]
    return bool(words) and words[0][0].isupper() and any(word[0].islower() for word in words[1:])


def _compared_words(words: Sequence[_Word], telling: bool) -> list[str]:
    """Return the words to compare: names in capitals, others by their stems."""
    if not telling:
        return [_AGREEMENT.get(word.lower, word.lower) for word in words]
    return [word.lower.title() if word.name else word.stem for word in words]


def _left(words: Sequence[str], others: Sequence[str]) -> list[str]:
    rest = list(others)
    alone = []
    for word in words:
        if word in rest:
            rest.remove(word)
        else:
            alone.append(word)
    return alone
