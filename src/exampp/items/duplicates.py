"""Duplicates in a bank: items of a query that ask the same thing, in the same or in other words.

Two items are equal if they differ in form alone: case, punctuation, articles and other words that
narrow nothing, the number of a noun, the agreement of a verb. They are a paraphrase if every word
of one has a counterpart in the other: the same stem, a synonym (a line of `duplicates.toml`, or a
cosine of `SYNONYM` between the vectors of the two words), or a word that only says that a question
is asked; and if the vectors of the texts have a cosine of `PARAPHRASE`. A different number, unit,
negation, opposite, name, question word or order of roles keeps them apart. The rules are for
English. The vectors are means of the token vectors of the bundled all-MiniLM-L6-v2.

Groups are cliques (complete linkage): every two items of a group are duplicates. The decisions of
people override what is found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from itertools import chain, combinations, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.items.text_rules import AUXILIARY
from exampp.prompts.words import stem, visible_form
from exampp.records import BankEntry, Item
from exampp.records.gradebook import Gradebook, QueryGrades
from exampp.records.grouping import grouped
from exampp.records.items import DIFFERENT, SAME, joined_groups, marked_pairs
from exampp.records.toml import parse_toml
from exampp.records.wording import counted
from exampp.results.result import Table

if TYPE_CHECKING:
    from exampp.graders.draft import Encoded

PARAPHRASE = 0.75
"""Minimum cosine of the vectors of two paraphrases."""
SYNONYM = 0.65
"""Minimum cosine of the vectors of two words with one meaning."""
MOST_LEFT = 3
"""Words of a text without the same stem in the other, at most, for the texts to be compared."""
_BLOCK = 512
"""Texts whose words are compared with all others at a time."""
WORDS_ALONE = (
    "The model for paraphrases is missing or damaged, so items are compared by words alone. "
    "Reinstall exampp."
)
WORDING = "the wording"
"""The difference of paraphrases."""

_NARROW_NOTHING = frozenset(
    ["a", "an", "the", "some", "any", "various", "several", "different", "main", "major", "key"]
)
_SHORTEST = 3
"""Maximum letters of a word that is not stemmed: "is", "gas"."""
_COMMON_START = 5
"""Letters that two words of one family share: "digest", "digestion"."""
_ENDING = 4
"""Letters after them, at most: "troposphere" and "tropopause" are two things."""
_COMMON_END = 4
"""Letters that the names of two kinds of one thing share."""
_AGREEMENT = {"does": "do", "are": "is", "were": "was", "has": "have"}
_NEGATION = re.compile(
    "not|no|non|never|none|nobody|nothing|neither|nor|without|lacks?|except|hardly|rarely"
)
_DENYING = ("un", "in", "im", "il", "ir", "dis", "non", "a", "mis", "anti", "de")
_OPPOSITE_STARTS = (
    ("hypo", "hyper"), ("in", "de"), ("in", "ex"), ("im", "ex"), ("inter", "intra"),
    ("macro", "micro"), ("pre", "post"), ("under", "over"), ("anti", "pro"), ("endo", "exo"),
    ("homo", "hetero"), ("mono", "poly"), ("up", "down"),
)  # fmt: skip
_DIGITS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
}
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(
    r".*\d.*|one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|[mb]illion|first"
    "|second|third|fourth|fifth|last|both|half|once|twice"
)
_SPELLED_OUT = (
    (re.compile(r"^\s*\(?\d{1,2}[.):]\s+(?=\w)"), ""),
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
_ONE = r"(?:i|you|we|one|a person|people|someone)"
_GRAVE = r"(?:important|significant|crucial|essential|vital)"
_FORMS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"^(?:is|are|was|were) there (?:any )?", "what are "),
        (rf"\bhow (?:do|does|did|can|could|should) {_ONE}\b", "how"),
        (r"^(?:can|could|would) you (?:please )?\w+(?: me)?\b", "what is"),
        (
            r"^(?:name|list|state|give|describe|explain|define|discuss|outline|identify)\b",
            "what is",
        ),
        (rf"^why (?:is|are|was|were) (.+) {_GRAVE}\b", r"what is significance \1"),
        (r"^what (?:do|does|did|can) (.+?) do\b", r"what is role \1"),
        (r"\bwhat (?:kinds?|types?|sorts?) of (.+) (?:is|are) there\b", r"what is type \1"),
        (r"\b(?:methods?|techniques?) (?:is|are|was|were) used (?:for|to|in)\b", "how"),
        (r"\bwhat (?:kinds?|types?|sorts?) of\b", "what"),
        (r"\bused (?:for|to|in)\b", "use"),
        (r"\b(?:in|at|on) (?:what|which) (year|date|time|day|place|age)s?\b", r"\1"),
        (
            r"\b(?:events|conditions|factors) (?:that |which )?(?:can |may |could )?"
            r"(?:led to|lead to|caused?|contributed? to)\b",
            "cause",
        ),
        (r"\bone another\b", "each other"),
        (r"\b(?:date of birth|birth ?date)\b", "time born"),
        (r"\bhow old\b", "age"),
        (r"\bhow (?:much time|long)\b", "duration"),
        (r"\bhow many\b", "number"),
        (r"\b(?:how much|to what extent)\b", "amount"),
        (r"\bhow (?:tall|high)\b", "height"),
        (r"\bhow deep\b", "depth"),
        (r"\bhow fast\b", "speed"),
        (r"\bhow far\b", "distance"),
        (r"\bhow often\b", "frequency"),
        (r"\bhow (?:big|large)\b", "size"),
        (r"\bwhat (?:makes|made)\b|\bdue to\b|\bbecause of\b", "cause"),
        (r"\bt(?:akes?|ook) place\b", "occur"),
        (r"\blife span\b", "lifespan"),
    )
)
"""Forms of questions, in lower case without punctuation at the edges of words, and a plain form."""
_YES_NO = re.compile(rf"(?!(?:is|are|was|were) there any\b|(?:can|could|would) you\b){AUXILIARY}\b")
_QUESTION_WORDS = frozenset(["who", "whom", "whose", "when", "where", "why"])
_ASKING_PLACES = 3
"""Words at the start of a text that may be its question word."""
_COPULAS = frozenset(["is", "are", "was", "were", "be", "been", "can", "of", "by", "have", "has"])
_PREPOSITIONS = frozenset(["to", "from", "into", "on", "by", "of", "in", "for", "with", "than"])
_SYMMETRIC = re.compile(
    r"(?:differ|distinguish|relat|compar|link|connect|correlat|similar)\w*|between|versus|vs"
)


class NearDuplicate(NamedTuple):
    """A duplicate (`differs` is empty) or paraphrase of an earlier item."""

    item: Item
    like: Item
    differs: str


class _Vocabulary(NamedTuple):
    """Word lists: `light` words narrow nothing, `same` has the meanings of a stem by the first word
    of its lines, `opposite` the places of a word: the line, and the number within it.
    """

    light: frozenset[str]
    same: Mapping[str, frozenset[str]]
    opposite: Mapping[str, frozenset[tuple[int, int]]]


class _Content(NamedTuple):
    """A word of a text in its plain form; `number` also for a word after digits, such as a unit."""

    lower: str
    stem: str
    name: bool
    number: bool
    light: bool
    meanings: frozenset[str]

    @property
    def plain(self) -> bool:
        """Return whether another word can mean the same."""
        return not (self.light or self.name or self.number)


def text_difference(one: str, other: str) -> str:
    """Return the most severe difference of two texts; empty if they are equal in all but form.

    `WORDING` is the difference of paraphrases, before their vectors are compared.
    """
    first, second = sorted((one, other))
    # a text in a single case does not mark names
    telling = _tells_names(first) and _tells_names(second)
    if _compared_words(first, telling) == _compared_words(second, telling):
        return ""
    return _content_difference(_content(first, telling), _content(second, telling))


def _content_difference(words: Sequence[_Content], others: Sequence[_Content]) -> str:
    match: dict[int, int] = {}
    for same in (_same_word, _same_stem):
        _align(words, others, match, same)
    left, right = _rest(words, others, match)
    alone = left + right
    if any(word.number for word in alone):
        return "a number"
    if any(_NEGATION.fullmatch(word.lower) for word in alone):
        return "a negation"
    if any(_opposite(one, other) for one in left for other in right):
        return "an opposite"
    # the first word is capitalized in any case
    if any(word.name for word in alone) or any(
        at and there and words[at].name != others[there].name for at, there in match.items()
    ):
        return "a name"
    _align(words, others, match, _same_meaning)
    left, right = _unmatched(words, others, match)
    if len(left) == len(right):
        _align(words, others, match, _similar)
        left, right = _unmatched(words, others, match)
    if left or right:
        asks = any(word.lower in _QUESTION_WORDS for word in left + right)
        return "the question word" if asks else "a word"
    return "the order" if _swapped(words, others, match) else WORDING


def _unmatched(
    words: Sequence[_Content], others: Sequence[_Content], match: Mapping[int, int]
) -> tuple[list[_Content], list[_Content]]:
    """Return the words of both texts that the other text does not have in any form."""
    left, right = _rest(words, others, match)
    return _without_meaning_in(others, left), _without_meaning_in(words, right)


def _without_meaning_in(words: Sequence[_Content], some: Iterable[_Content]) -> list[_Content]:
    known = frozenset().union(*(word.meanings for word in words))
    return [word for word in some if not word.light and not word.meanings & known]


def _align(
    words: Sequence[_Content],
    others: Sequence[_Content],
    match: dict[int, int],
    same: Callable[[_Content, _Content], bool],
) -> None:
    """Add the first counterpart of every word without one to `match`."""
    free = [at for at in range(len(others)) if at not in match.values()]
    for index, word in enumerate(words):
        if index not in match:
            at = next((at for at in free if same(word, others[at])), None)
            if at is not None:
                match[index] = at
                free.remove(at)


def _rest(
    words: Sequence[_Content], others: Sequence[_Content], match: Mapping[int, int]
) -> tuple[list[_Content], list[_Content]]:
    taken = set(match.values())
    return (
        [word for at, word in enumerate(words) if at not in match],
        [word for at, word in enumerate(others) if at not in taken],
    )


def _same_word(one: _Content, other: _Content) -> bool:
    return one.lower == other.lower


def _same_stem(one: _Content, other: _Content) -> bool:
    return one.stem == other.stem and not (one.name or other.name)


def _same_meaning(one: _Content, other: _Content) -> bool:
    return bool(one.meanings & other.meanings)


def _similar(one: _Content, other: _Content) -> bool:
    # words of the table have their meanings there
    if not (one.plain and other.plain) or (one.meanings and other.meanings):
        return False
    return _synonyms(one.lower, other.lower)


@functools.lru_cache(maxsize=1 << 16)
def _synonyms(one: str, other: str) -> bool:
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    if shared >= _COMMON_START and max(len(one), len(other)) - shared <= _ENDING:
        return True
    # kinds of one thing: "flatworm", "roundworm"
    other_end = one[-_COMMON_END:] != other[-_COMMON_END:]
    return other_end and bool(_encoder()) and cosine(one, other) >= SYNONYM


def _opposite(one: _Content, other: _Content) -> bool:
    if _same_meaning(one, other):
        return False
    known, first, last = _vocabulary().opposite, one.lower, other.lower
    places, others = (known.get(word, frozenset()) for word in (first, last))
    if any(line == there and at != it for line, at in places for there, it in others):
        return True
    return first[-3:] == last[-3:] and (_denies(first, last) or _denies(last, first))


def _denies(one: str, other: str) -> bool:
    """Return whether a word is the other with another prefix: unlike, decrease."""
    if any(one == prefix + other for prefix in _DENYING):
        return True
    return any(
        one.startswith(start) and one.removeprefix(start) == other.removeprefix(end) != other
        for start, end in _OPPOSITE_STARTS
    )


def _swapped(
    words: Sequence[_Content], others: Sequence[_Content], match: Mapping[int, int]
) -> bool:
    """Return whether two words changed places around a third: "A causes B", "B causes A".

    Words such as "between" give no roles ("the difference between A and B"), and the passive keeps
    them ("B is caused by A").
    """
    texts = (words, others)
    if any(_SYMMETRIC.fullmatch(word.lower) for text in texts for word in text):
        return False
    if len({any(word.lower == "by" for word in text) for text in texts}) > 1:
        return False
    if {_asks_for(text) for text in texts} == {"subject", "object"}:
        return True
    places = [
        (words[at], match[at])
        for at in sorted(match)
        if not words[at].light or words[at].lower in _PREPOSITIONS
    ]
    return any(
        not (first.light or last.light) and begin > middle > end
        for number, (first, begin) in enumerate(places)
        for position, (_, middle) in enumerate(places[number + 1 :], number + 1)
        for last, end in places[position + 1 :]
    )


def _asks_for(words: Sequence[_Content]) -> str:
    """Return what a question asks for: the subject (who won?), or the object (who did he beat?)."""
    some = {word.lower for word in words}
    if not words or words[0].lower not in ("what", "which", "who"):
        return ""
    if some & {"do", "does", "did"}:
        return "object"
    return "" if some & _COPULAS else "subject"


# ---- vectors -------------------------------------------------------------------------------------


def cosine(one: str, other: str) -> float:
    """Return the cosine of the vectors of two texts; 1 if the model is missing."""
    encode = _encoder()
    return float(vector_of(one, encode) @ vector_of(other, encode)) if encode else 1.0


@functools.cache
def _encoder() -> Callable[[str], Encoded] | None:
    """Return the encoder of texts; None if a file of the model is missing or damaged."""
    from exampp.graders.draft import encode_in_thread

    with suppress(InputError, ImportError):
        encode_in_thread("")  # loads the model
        return encode_in_thread
    return None


# cached: a page compares the items of a query after every key
@functools.lru_cache(maxsize=1 << 14)
def vector_of(text: str, encode: Callable[[str], Encoded]) -> NDArray[np.float32]:
    """Return the mean of the token vectors of a text, with length 1 (or 0 for an empty text)."""
    mean: NDArray[np.float32] = encode(text).vectors.sum(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length else mean


def text_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of texts, [texts, dimensions]; InputError without the model."""
    from exampp.graders.draft import encode_in_thread

    vectors = [vector_of(text, encode_in_thread) for text in texts]
    return np.stack(vectors) if vectors else np.zeros((0, 1), np.float32)


# ---- items ---------------------------------------------------------------------------------------


class DuplicatePair(NamedTuple):
    """The indices of two items, the earlier one first, and their difference; see NearDuplicate."""

    one: int
    other: int
    differs: str


def duplicate_pairs(texts: Sequence[str]) -> list[DuplicatePair]:
    """Return the pairs of texts that are equal in all but form, or paraphrases."""
    pairs = []
    for one, other in _candidates(texts):
        differs = text_difference(texts[one], texts[other])
        if not differs or (differs == WORDING and cosine(texts[one], texts[other]) >= PARAPHRASE):
            pairs.append(DuplicatePair(one, other, differs))
    return pairs


def _candidates(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of texts that have most of their words in common, each once."""
    concepts = [
        {min(word.meanings, default=word.stem) for word in _content(text) if not word.light}
        for text in texts
    ]
    column = {one: at for at, one in enumerate(dict.fromkeys(chain.from_iterable(concepts)))}
    has = np.zeros((len(texts), len(column)), np.float32)
    for row, some in enumerate(concepts):
        has[row, [column[one] for one in some]] = 1
    sizes = has.sum(axis=1)
    for start in range(0, len(texts), _BLOCK):
        rows = slice(start, start + _BLOCK)
        shared = has[rows] @ has.T
        left = np.maximum(sizes[rows, None], sizes) - shared
        near = (left <= MOST_LEFT) & ((shared > 0) | (left == 0))
        for one, other in np.argwhere(near).tolist():
            if start + one < other:
                yield start + one, other


def near_duplicates(items: Sequence[Item]) -> Iterator[NearDuplicate]:
    """Yield duplicates and paraphrases of earlier items, each with the first equal one, or else the
    most similar one.

    Later items are not compared with a duplicate, nor items that people marked as different.
    """
    texts = [item.text for item in items]
    apart = _kept_apart(items)
    found = (one for one in duplicate_pairs(texts) if frozenset(one[:2]) not in apart)
    earlier = grouped(found, lambda one: one.other)
    duplicates: set[int] = set()
    for index in sorted(earlier):
        pairs = [one for one in earlier[index] if one.one not in duplicates]
        same = next((one for one in pairs if not one.differs), None)
        if same is not None:
            duplicates.add(index)
        elif pairs:
            same = max(pairs, key=lambda one: cosine(texts[one.one], texts[index]))
        if same is not None:
            yield NearDuplicate(items[index], items[same.one], same.differs)


class DuplicateGroup(NamedTuple):
    """Items of a query that ask the same thing, the most central first, and why they are grouped.

    `reason` is "marked" by a person, "equal", or "paraphrase".
    """

    items: tuple[Item, ...]
    reason: str


def duplicate_groups(items: Sequence[Item]) -> list[DuplicateGroup]:
    """Return the groups of duplicates among the items of one query and kind.

    Items that people marked as the same are together. Two groups are joined, the most similar items
    first, if every two items of them are duplicates and none were marked as different.
    """
    marked = marked_pairs({item.item_id: item.extra for item in items}, SAME)
    group = list(joined_groups(len(items), marked))
    texts = [item.text for item in items]
    known = [at for at, text in enumerate(texts) if text]
    found = duplicate_pairs([texts[at] for at in known])
    differs = {frozenset((known[one.one], known[one.other])): one.differs for one in found}
    alike = differs.keys() - _kept_apart(items)
    for one, other in sorted(
        map(sorted, alike), key=lambda pair: -_likeness(texts, differs, *pair)
    ):
        first, second = (
            [at for at, n in enumerate(group) if n == group[of]] for of in (one, other)
        )
        if group[one] != group[other] and all(
            frozenset((a, b)) in alike for a in first for b in second
        ):
            low = min(group[one], group[other])
            for at in (*first, *second):
                group[at] = low
    return [
        _group(items, members, differs, marked)
        for number in dict.fromkeys(group)
        if len(members := [at for at, n in enumerate(group) if n == number]) > 1
    ]


def _kept_apart(items: Sequence[Item]) -> set[frozenset[int]]:
    """Return the places of every two items that people marked as different."""
    extras = {item.item_id: item.extra for item in items}
    return {frozenset(pair) for pair in marked_pairs(extras, DIFFERENT)}


def _contradictions(items: Sequence[Item]) -> Iterator[str]:
    """Describe every two items that people marked as different and, with others, as the same."""
    marked = marked_pairs({item.item_id: item.extra for item in items}, SAME)
    group = joined_groups(len(items), marked)
    for one, other in sorted(map(sorted, _kept_apart(items))):
        if group[one] == group[other]:
            first, second = items[one].item_id, items[other].item_id
            yield (
                f"Marks contradict each other: {first} and {second} are marked as different, and "
                "as the same through other items, which counts. Mark one of the pairs again: "
                f"exampp bank edit COLLECTION same {first} {second}"
            )


def _likeness(
    texts: Sequence[str], differs: Mapping[frozenset[int], str], one: int, other: int
) -> float:
    """Return the cosine of two duplicates; more than any other for equal ones."""
    return cosine(texts[one], texts[other]) if differs[frozenset((one, other))] else 2.0


def _group(
    items: Sequence[Item],
    members: Sequence[int],
    differs: Mapping[frozenset[int], str],
    marked: Iterable[tuple[int, int]],
) -> DuplicateGroup:
    pairs = [frozenset(pair) for pair in combinations(members, 2)]
    reason = "paraphrase" if any(differs.get(pair) for pair in pairs) else "equal"
    if any(set(pair) <= set(members) for pair in marked):
        reason = "marked"
    central = members[0]
    if len(members) > 2 or reason == "paraphrase":
        texts = {at: items[at].text for at in members if items[at].text}
        sums = {at: sum(cosine(text, one) for one in texts.values()) for at, text in texts.items()}
        central = max(sums, key=lambda at: (round(sums[at], 4), -at), default=central)
    return DuplicateGroup(
        tuple(items[at] for at in (central, *(at for at in members if at != central))), reason
    )


def with_duplicates(book: Gradebook, entries: Iterable[BankEntry]) -> Gradebook:
    """Return a gradebook with the duplicates found in the texts of its bank, and those marked."""
    texts = {
        (item.query_id, item.item_id): item
        for entry in entries
        for item in entry.items
        if item.kind == book.grader.kind
    }
    return replace(book, queries=tuple(_with_groups(query, texts) for query in book.queries))


def _with_groups(query: QueryGrades, texts: Mapping[tuple[str, str], Item]) -> QueryGrades:
    known = [texts[key] for one in query.item_ids if (key := (query.query_id, one)) in texts]
    column = {item_id: at for at, item_id in enumerate(query.item_ids)}
    pairs = [
        (column[group.items[0].item_id], column[other.item_id])
        for group in duplicate_groups(known)
        for other in group.items[1:]
    ]
    return replace(query, item_groups=joined_groups(len(column), pairs) if pairs else ())


def duplicates_table(entries: Iterable[BankEntry]) -> Table:
    """Return one row per item in a group of duplicates, the most central item of a group first."""
    every = (item for entry in entries for item in entry.items)
    by_query = grouped(every, lambda item: (item.query_id, item.kind))
    groups = [group for items in by_query.values() for group in duplicate_groups(items)]
    rows = [
        (
            number,
            item.query_id,
            item.subtopic_id or "",
            item.item_id,
            item.text,
            group.reason,
            item.kind,
        )
        for number, group in enumerate(groups, 1)
        for item in group.items
    ]
    items = sum(map(len, by_query.values()))
    verdict = f"No duplicates among {counted(items, 'item')}."
    if groups:
        repeated = f"{len(rows) - len(groups)} of {items} items repeat another"
        verdict = f"{counted(len(groups), 'group')} of duplicates: {repeated}."
    notes = [] if _encoder() else [WORDS_ALONE]
    notes += [text for items in by_query.values() for text in _contradictions(items)]
    heads = ["group", "query", "subtopic", "item", "text", "why", "kind"]
    return Table.of(heads, rows, notes=notes, verdict=verdict)


# ---- words ---------------------------------------------------------------------------------------


@functools.cache
def _vocabulary() -> _Vocabulary:
    text = resources.files(__package__).joinpath("duplicates.toml").read_text(encoding="utf-8")
    lists = parse_toml(text, "duplicates.toml")
    same: dict[str, set[str]] = {}
    opposite: dict[str, set[tuple[int, int]]] = {}
    for line in lists["same"].strip().splitlines():
        first, *_ = words = line.split()
        for word in words:
            same.setdefault(stem(word), set()).add(first)
    for number, line in enumerate(lists["opposite"].strip().splitlines()):
        for place, forms in enumerate(line.split()):
            for word in forms.split("/"):
                opposite.setdefault(word, set()).add((number, place))
    return _Vocabulary(
        frozenset(lists["light"].split()),
        {word: frozenset(some) for word, some in same.items()},
        {word: frozenset(some) for word, some in opposite.items()},
    )


# cached: an item is compared with many others
@functools.lru_cache(maxsize=1 << 14)
def _content(text: str, telling: bool = False) -> tuple[_Content, ...]:
    """Return the words of a text in its plain form; `telling`: capitals mark names."""
    written = _written(text)
    names = {
        word.lower() for at, word in enumerate(written) if telling and _is_name(word, first=at == 0)
    }
    plain = " ".join(written).lower()
    yes_no = text.rstrip().endswith("?") and _YES_NO.match(plain)
    for pattern, form in _FORMS:
        plain = pattern.sub(form, plain)
    words = plain.split()
    content = [
        _content_word(word, before, word in names, last=at == len(words) - 1)
        for at, (before, word) in enumerate(zip(["", *words], words, strict=False))
        # within a sentence, "when he died" asks nothing
        if at < _ASKING_PLACES or word not in _QUESTION_WORDS or word == "whom"
    ]
    if yes_no:
        content.append(_Content("yes or no", "yes or no", False, False, False, frozenset()))
    return tuple(content)


def _content_word(word: str, before: str, name: bool, *, last: bool) -> _Content:
    words = _vocabulary()
    word = word.removesuffix("'s") or word
    number = bool(_NUMBER.fullmatch(word) or _DIGIT.search(before))
    # the last word is not an article: "hepatitis a"
    light = word in words.light and not number and not (last and word == "a")
    plain = stem(_DIGITS.get(word, word))
    return _Content(word, plain, name, number, light, words.same.get(plain, frozenset()))


def _written(text: str) -> list[str]:
    """Return the words of a text without punctuation at their edges, contractions spelled out."""
    text = visible_form(text)
    for pattern, plain in _SPELLED_OUT:
        text = pattern.sub(plain, text)
    return [bare for word in text.split() if (bare := _EDGES.sub("", word))]


def _is_name(word: str, *, first: bool) -> bool:
    return word != word.lower() and (not first or (len(word) > 1 and word.isupper()))


# cached: the items of a query are compared again for every new item
@functools.lru_cache(maxsize=1 << 12)
def _compared_words(text: str, telling: bool) -> tuple[str, ...]:
    """Return the words of equal texts; `telling`: names in capitals, others in the singular."""
    written = _written(text)
    last = len(written) - 1
    return tuple(
        _compared_word(word, telling, index == 0)
        for index, word in enumerate(written)
        # the last word is not an article: "hepatitis a"
        if (word not in _NARROW_NOTHING and (index or word.lower() not in _NARROW_NOTHING))
        or index == last
    )


def _compared_word(word: str, telling: bool, first: bool) -> str:
    lower = word.lower()
    if telling and _is_name(word, first=first):
        return lower.title()
    return _AGREEMENT.get(lower) or (_singular(lower) if telling else lower)


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
