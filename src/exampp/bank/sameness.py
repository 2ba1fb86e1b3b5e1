"""When two items of a query ask the same, and what tells apart two that are nearly the same.

Two items are the same where they differ in form alone: case, punctuation, articles and other words
that narrow nothing, the number of a noun, the agreement of a verb. A name, a number, a negation,
the order of words or any other word makes them two. Which of two words mean the same is not known
here, so that items in other words are never taken for the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exampp.prompts.normal_form import as_seen
from exampp.records import Item

NEAR = 85.0
"""Token ratio (0 to 100), words in any order, from which two items are nearly the same."""

_NARROW_NOTHING = frozenset(
    ["a", "an", "the", "some", "any", "various", "several", "different", "main", "major", "key"]
)
_SHORTEST = 3
"""Letters of a word that is taken as it is: "is", "gas"."""
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


class Likeness(NamedTuple):
    """An item that is the same as an earlier one (`differs` is empty), or nearly the same."""

    item: Item
    like: Item
    differs: str


class _Word(NamedTuple):
    """A word in lower case, as its stem, and whether it is written as a name is."""

    lower: str
    stem: str
    name: bool


def difference(one: str, other: str) -> str:
    """What tells the texts apart, the gravest first; an empty string where they ask the same."""
    words, others = _words(one), _words(other)
    # where all words of a text have one case, its case does not say what is a name
    telling = _tells_names(one) and _tells_names(other)
    first, second = _forms(words, telling), _forms(others, telling)
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


def likenesses(items: Sequence[Item], *, keep_same: bool = False) -> Iterator[Likeness]:
    """Each item that is the same or nearly the same as an earlier one, with the most alike.

    An item that is the same as another counts no further, unless `keep_same`: none is like it.
    """
    import numpy as np
    from rapidfuzz import fuzz, process

    forms = [" ".join(word.stem for word in _words(item.text)) for item in items]
    ratios = process.cdist(forms, forms, scorer=fuzz.token_sort_ratio, score_cutoff=NEAR)
    gone: set[int] = set()
    for index, item in enumerate(items):
        row = ratios[index, :index]
        (alike,) = row.nonzero()
        likest = alike[np.argsort(-row[alike], kind="stable")]
        near = [n for n in likest.tolist() if n not in gone]
        found = [Likeness(item, items[n], difference(item.text, items[n].text)) for n in near]
        same = next((one for one in found if not one.differs), None)
        if same is not None and not keep_same:
            gone.add(index)
        if best := same or next(iter(found), None):
            yield best


# the items of a query are compared anew whenever some are made
@functools.lru_cache(maxsize=1 << 12)
def _words(text: str) -> tuple[_Word, ...]:
    text = as_seen(text)
    for pattern, plain in _SPELLED_OUT:
        text = pattern.sub(plain, text)
    written = [bare for word in text.split() if (bare := _EDGES.sub("", word))]
    last = len(written) - 1
    return tuple(
        _word(word, index == 0)
        for index, word in enumerate(written)
        # what comes last is no article: "hepatitis a"
        if (word not in _NARROW_NOTHING and (index or word.lower() not in _NARROW_NOTHING))
        or index == last
    )


@functools.lru_cache(maxsize=1 << 14)
def _word(written: str, first: bool) -> _Word:
    lower = written.lower()
    name = written != lower and (not first or (len(written) > 1 and written.isupper()))
    return _Word(lower, _AGREEMENT.get(lower) or _singular(lower), name)


def _singular(word: str) -> str:
    """The word without the s of a plural or of a verb. Source: Harman 1991, the S stemmer."""
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
    """Whether the case of the text's words tells names: not in titles, not in one case."""
    words = [word for word in as_seen(text).split() if word[0].isalpha()]
    return bool(words) and words[0][0].isupper() and any(word[0].islower() for word in words[1:])


def _forms(words: Sequence[_Word], telling: bool) -> list[str]:
    """What is compared: a name as it is written (in capitals to tell it), others by their stems."""
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
