"""What is likely wrong with a bank: heuristics for people to look at, never a verdict.

The rules know English. Their thresholds were chosen by looking at what they find in the published
banks of TREC CAR Y3 and TREC DL (see the tests).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from exampp.prompts.languages import language_of
from exampp.prompts.normal_form import as_seen, drop_punctuation, stem, stopwords, unseen
from exampp.records import BankEntry, Item, item_id
from exampp.records.readings import said_without_text

Key = TypeVar("Key")

SIMILAR = 85.0
"""Token ratio (0 to 100) from which two texts of one query say nearly the same."""
NUGGET_WORDS = 4
"""A nugget's words at most. Source: EXAM++, Table 1 (the nugget prompts)."""
KEYED_SHARE = 0.5
"""The share of a bank with an answer key from which an item without one stands out."""

WHY: Mapping[str, str] = {
    "empty": "nothing can answer it",
    "list-mark": "the number of a list is no part of it",
    "twin": "they look alike, and are two to every program: scores, files and runs tell them apart",
    "duplicate": "one fact counts twice in cover",
    "near-duplicate": "one fact may count twice in cover",
    "double-barrelled": "a passage can answer half of it",
    "yes-no": "any passage on the topic seems to answer it",
    "time-dependent": "its answer changes with time",
    "repeats-query": "every relevant passage answers it",
    "long-nugget": f"the papers' nuggets have at most {NUGGET_WORDS} words",
    "no-key": "its answers cannot be verified, those of others can",
    "other-language": "what is asked in one language is seldom found answered in another",
    "no-items": "the query counts for nobody",
    "unknown-query": "the collection has nothing to grade for it",
}
"""Why a rule's findings matter, by rule, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One item that a rule found; `item_id` is empty where a query is what is wrong.

    `detail` says what the rule saw (a word, another item), and how to mend what cannot be seen.
    """

    rule: str
    query_id: str
    item_id: str
    text: str
    detail: str = ""


def lint(
    entries: Sequence[BankEntry], queries: Mapping[str, str], passages: Sequence[str] = ()
) -> list[Finding]:
    """Everything the rules find in the active items of a bank, rule by rule.

    No rule about texts applies to an item whose text was never imported: that is no empty item.
    `passages` are some texts of those that are graded, by which their language is known.

    `queries` are the texts of the queries that are known from elsewhere than the bank, by id; with
    none at all, nothing is said of unknown queries and of queries without items.
    """
    # of two items that say the same, the second by id is the duplicate, or a marked one
    entries = [
        replace(
            entry,
            items=tuple(sorted(entry.items, key=lambda one: (_mark(one) is not None, one.item_id))),
        )
        for entry in sorted(entries, key=lambda one: (one.query_id, one.subtopic_id or ""))
    ]
    found: dict[str, list[Finding]] = {rule: [] for rule in WHY}
    for finding in (
        *_alone(entries, queries),
        *(pairs := list(_pairs(entries))),
        *_marked(entries, pairs),
        *_twin_ids(entries, queries),
        *_without_key(entries),
        *_other_language(entries, passages),
        *_queries(entries, queries),
    ):
        found[finding.rule].append(finding)
    return [finding for findings in found.values() for finding in findings]


def items_without_text(entries: Iterable[BankEntry]) -> str:
    """Say how many items have no imported text; empty if all have one."""
    items = [item for entry in entries for item in entry.items]
    return said_without_text(sum(not item.text for item in items), len(items), "item")


# ---- one item at a time --------------------------------------------------------------------------

_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|"
    r"must)(?:n't| not)?"
)
_YES_NO = re.compile(rf"(?:[^,?.;:]{{1,60}}, |(?:and|so|or|but) )?{_AUXILIARY}\s", re.IGNORECASE)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?\w+|\bdo you know (?:what|how|why)", re.IGNORECASE
)
_ALTERNATIVE = re.compile(r"^\s*(?:is|are|was|were|do|does|did)\b[^,]*,? or\b", re.IGNORECASE)
_ASKING = r"(?:what|why|how|when|where|which|who|whom|whose)"
_DOUBLE = re.compile(
    rf",? (?:and|or|as well as) (?:also )?(?:(?:in|on|at|to|for|by|from|of) )?{_ASKING}\b",
    re.IGNORECASE,
)
_TWO_MARKS = re.compile(r"\?\W+\w.*\?\s*$", re.DOTALL)
_SECOND = re.compile(
    rf",? and {_AUXILIARY} (?:it|they|this|these|that|those|he|she|there|its|their)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:currently|nowadays|presently|recently|lately|today'?s?|these days|so far|"
    r"until now|up to now|as of now|to date(?=\W*$)|at (?:the moment|present)|right now|latest|"
    r"newest|"
    r"most recent|in recent|recent (?:years|months|decades|times|developments?|advance(?:ment)?s|"
    r"research|studies|discover(?:y|ies)|trends?|changes|news|events|findings)|"
    r"(?:this|last|next|past|previous|coming) (?:year|month|week|decade|century)|upcoming|"
    r"(?:our|the|its|their) current (?:state|status|understanding|knowledge|situation|trends?|"
    r"research|theor(?:y|ies)|president|population|price|rate of|version|record|efforts|views?|"
    r"estimates?|models?|challenges)|current (?:research|events|trends|understanding|knowledge|"
    r"state of))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")
_ARTICLES = frozenset({"a", "an", "the"})
_LIST_MARK = re.compile(r"\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s+\S")


def _alone(entries: Iterable[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    for entry in entries:
        asked = (entry.query_text, entry.subtopic_text, queries.get(entry.query_id, ""))
        topics = [_stems(text) for text in asked if text.strip()]
        for item in entry.items:
            if not item.text:
                continue  # only the id is known, as from a graded file
            if not _WORD.search(item.text):
                yield _finding("empty", item)
                continue
            rules = _QUESTION_RULES if item.kind == "question" else _NUGGET_RULES
            for rule, sees in rules.items():
                detail = sees(item.text)
                if detail is not None:
                    yield _finding(rule, item, detail)
            words = _stems(item.text)
            if words and any(words <= topic for topic in topics):
                yield _finding("repeats-query", item)


def _finding(rule: str, item: Item, detail: str = "") -> Finding:
    return Finding(rule, item.query_id, item.item_id, item.text, detail)


def _list_mark(text: str) -> str | None:
    found = _LIST_MARK.match(text)
    return None if found is None else found[0].split()[0]


def _double_barrelled(text: str) -> str | None:
    for pattern in (_DOUBLE, _SECOND):
        # the first words of a question may well be "how and why", which is one question
        if found := pattern.search(text, 12):
            return found[0].strip(" ,")
    return "?" if _TWO_MARKS.search(text) else None


def _yes_no(text: str) -> str | None:
    start = text.strip()
    found = _YES_NO.match(start)
    if not found or _REQUEST.search(start) or _ALTERNATIVE.match(start) or _asks(found[0]):
        return None
    return found[0].split()[-1].lower()


def _asks(start: str) -> bool:
    return re.search(rf"\b{_ASKING}\b", start, re.IGNORECASE) is not None


def _time_dependent(text: str) -> str | None:
    found = _TIME.search(text)
    return None if found is None else found[0].lower()


def _long_nugget(text: str) -> str | None:
    words = len(text.split())
    return f"{words} words" if words > NUGGET_WORDS else None


_Rule = Callable[[str], str | None]
_QUESTION_RULES: Mapping[str, _Rule] = {
    "list-mark": _list_mark,
    "double-barrelled": _double_barrelled,
    "yes-no": _yes_no,
    "time-dependent": _time_dependent,
}
_NUGGET_RULES: Mapping[str, _Rule] = {
    "list-mark": _list_mark,
    "time-dependent": _time_dependent,
    "long-nugget": _long_nugget,
}


# ---- items against each other --------------------------------------------------------------------


def _stems(text: str) -> frozenset[str]:
    """What the text is about: the stems of its words that are no stopwords."""
    words = drop_punctuation(text.lower().replace("-", " ").replace("/", " ")).split()
    stops = stopwords()
    return frozenset(stem(word) for word in words if word not in stops)


def _normal(text: str) -> str:
    """The text by its words in lower case, each as its stem; only articles are left out."""
    words = drop_punctuation(as_seen(text).lower()).split()
    return " ".join(stem(word) for word in words if word not in _ARTICLES)


def _pairs(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[Item]] = {}
    for entry in entries:
        for item in entry.items:
            if _WORD.search(item.text):
                groups.setdefault((item.query_id, item.kind), []).append(item)
    for items in groups.values():
        yield from alike(items)


def _mark(item: Item) -> Mapping[str, Any] | None:
    """The mark that a generated item got because it is near another one."""
    made = item.extra.get("generated")
    mark = made.get("near") if isinstance(made, Mapping) else None
    return mark if isinstance(mark, Mapping) else None


def alike(items: Sequence[Item]) -> Iterator[Finding]:
    """Each item that says what an earlier one of its query says, with the most alike of these."""
    from rapidfuzz import fuzz, process

    texts = [_normal(item.text) for item in items]
    topics = [_stems(item.text) for item in items]
    first: dict[str, int] = {}
    ratios = process.cdist(texts, texts, scorer=fuzz.token_sort_ratio, score_cutoff=SIMILAR)
    for index, item in enumerate(items):
        earlier = first.setdefault(texts[index], index)
        if twins(item.text, items[earlier].text):
            how = "retire one, or reword it"
            like = items[earlier]
            yield _finding("twin", item, _twin(item.text, like.text, like.item_id, how))
            continue
        if earlier != index:
            yield _finding("duplicate", item, f"as {items[earlier].item_id}")
            continue
        row = ratios[index, :index].copy()
        for other in np.flatnonzero(row):
            if not _only_by_form(topics[index], topics[int(other)]):
                row[other] = 0
        if row.size and row.max() >= SIMILAR:
            like = items[int(row.argmax())]
            yield _finding("near-duplicate", item, f"as {like.item_id}: {like.text}")


def twins(one: str, other: str) -> bool:
    """Whether two texts are not the same, but look the same to whoever reads them."""
    return one != other and as_seen(one) == as_seen(other)


def _twin(text: str, other: str, name: str, mend: str) -> str:
    """What a twin is like, what in one of the two texts is not seen, and what to do."""
    return f"as {name}: {unseen(text) or f'there {unseen(other)}'}; {mend}"


def _marked(entries: Iterable[BankEntry], near: Collection[Finding]) -> Iterator[Finding]:
    """Items that were marked when a model made them, while they and their like are as they were.

    Those that were found to be `near` others stay what they were found to be.
    """
    items = [item for entry in entries for item in entry.items]
    texts = {(item.query_id, item.item_id): item.text for item in items}
    found = {(finding.query_id, finding.item_id) for finding in near}
    for item in items:
        mark = _mark(item)
        if mark is None or (item.query_id, item.item_id) in found:
            continue
        like, text = str(mark.get("item")), mark.get("text")
        # an id is made from the text that the model wrote
        as_made = item_id(item.query_id, item.text, item.subtopic_id) == item.item_id
        if as_made and text is not None and texts.get((item.query_id, like)) == text:
            differs = mark.get("differs") or "nothing"
            yield _finding("near-duplicate", item, f"as {like}: {text} (differs in {differs})")


def _twin_ids(entries: Sequence[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    """Ids of queries, subtopics and items, and texts of queries, that look like another one."""
    named = dict(queries)
    for entry in entries:
        named.setdefault(entry.query_id, entry.query_text)
    file = "mend it in the file that it came from, and import that into a new collection"
    for query, like in _look_alikes((name, name) for name in named):
        yield Finding("twin", query, "", named[query], f"its id {_twin(query, like, like, file)}")
    for query, like in _look_alikes((name, text) for name, text in named.items() if text.strip()):
        if named[query] != named[like]:
            how = "mend one of them and import it with --update, or leave one out"
            yield Finding(
                "twin", query, "", named[query], _twin(named[query], named[like], like, how)
            )
    subtopics = dict.fromkeys((e.query_id, e.subtopic_id) for e in entries if e.subtopic_id)
    of_subtopics = ((key, f"{key[0]}/{key[1]}") for key in subtopics)
    for (query, subtopic), (of, other) in _look_alikes(of_subtopics):
        if query == of:
            detail = f"its subtopic {_twin(subtopic, other, other, file)}"
            yield Finding("twin", query, "", named[query], detail)
    items = {(i.query_id, i.kind, i.item_id): i for entry in entries for i in entry.items}
    of_items = ((key, f"{as_seen(key[0])}/{key[1]}/{key[2]}") for key in items)
    for key, earlier in _look_alikes(of_items):
        if key[2] != earlier[2]:
            how = "retire one, or give it another id in its file"
            detail = f"its id {_twin(key[2], earlier[2], earlier[2], how)}"
            yield _finding("twin", items[key], detail)


def _look_alikes(named: Iterable[tuple[Key, str]]) -> Iterator[tuple[Key, Key]]:
    """(thing, an earlier thing) where the texts of two things look the same."""
    first: dict[str, Key] = {}
    for key, text in named:
        earlier = first.setdefault(as_seen(text), key)
        if earlier != key:
            yield key, earlier


def _only_by_form(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether neither text has a word of content that the other lacks while it lacks one, too.

    "The northern coast" and "the southern coast" are spelled alike, but are not the same.
    """
    return not (one - other and other - one)


def _without_key(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    by_kind: dict[str, list[Item]] = {}
    for entry in entries:
        for item in entry.items:
            by_kind.setdefault(item.kind, []).append(item)
    for items in by_kind.values():
        keyed = {item.query_id for item in items if item.answers}
        most = sum(bool(item.answers) for item in items) >= KEYED_SHARE * len(items)
        for item in items:
            if not item.answers and (most or item.query_id in keyed):
                yield _finding("no-key", item)


def _other_language(entries: Iterable[BankEntry], passages: Sequence[str]) -> Iterator[Finding]:
    """Queries whose items are in another language than the passages, as far as that is clear."""
    theirs = language_of(passages)
    if theirs is None:
        return
    texts: dict[str, list[str]] = {}
    for entry in entries:
        texts.setdefault(entry.query_id, []).extend(item.text for item in entry.items)
    whole = language_of(text for one in texts.values() for text in one)
    for query_id, of_query in texts.items():
        # a few items alone may not tell
        own = language_of(of_query) or whole
        if own not in (None, theirs):
            detail = f"its items are in {own}, the passages in {theirs}"
            yield Finding("other-language", query_id, "", of_query[0], detail)


def _queries(entries: Iterable[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    if not queries:
        return
    having: dict[str, set[str]] = {}
    for entry in entries:
        for item in entry.items:
            having.setdefault(item.kind, set()).add(item.query_id)
            if item.query_id not in queries:
                yield _finding("unknown-query", item)
    for kind, known in having.items():
        for query_id, text in queries.items():
            if query_id not in known:
                yield Finding("no-items", query_id, "", text, f"no {kind}s")
