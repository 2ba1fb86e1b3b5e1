"""What is likely wrong with a bank: heuristics for people to look at, never a verdict.

The rules know English. Their thresholds were chosen by looking at what they find in the published
banks of TREC CAR Y3 and TREC DL (see the tests).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.prompts.words import drop_punctuation, stem, stopwords
from exampp.records import BankEntry, Item

SIMILAR = 85.0
"""Token ratio (0 to 100) from which two texts of one query say nearly the same."""
NUGGET_WORDS = 4
"""A nugget's words at most. Source: EXAM++, Table 1 (the nugget prompts)."""
KEYED_SHARE = 0.5
"""The share of a bank with an answer key from which an item without one stands out."""

WHY: Mapping[str, str] = {
    "empty": "nothing can answer it",
    "list-mark": "the number of a list is no part of it",
    "duplicate": "one fact counts twice in cover",
    "near-duplicate": "one fact may count twice in cover",
    "double-barrelled": "a passage can answer half of it",
    "yes-no": "any passage on the topic seems to answer it",
    "time-dependent": "its answer changes with time",
    "repeats-query": "every relevant passage answers it",
    "long-nugget": f"the papers' nuggets have at most {NUGGET_WORDS} words",
    "no-key": "its answers cannot be verified, those of others can",
    "no-items": "the query counts for nobody",
    "unknown-query": "the collection has nothing to grade for it",
}
"""Why a rule's findings matter, by rule, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One item that a rule found; `item_id` is empty where a query is what is wrong.

    `detail` says what the rule saw: a word, another item.
    """

    rule: str
    query_id: str
    item_id: str
    text: str
    detail: str = ""


def lint(entries: Sequence[BankEntry], queries: Mapping[str, str]) -> list[Finding]:
    """Everything the rules find in the active items of a bank, rule by rule.

    `queries` are the texts of the queries that are known from elsewhere than the bank, by id; with
    none at all, nothing is said of unknown queries and of queries without items.
    """
    found: dict[str, list[Finding]] = {rule: [] for rule in WHY}
    for finding in (
        *_alone(entries, queries),
        *_pairs(entries),
        *_without_key(entries),
        *_queries(entries, queries),
    ):
        found[finding.rule].append(finding)
    return [finding for findings in found.values() for finding in findings]


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
        asked = (entry.query_text, entry.facet_text, queries.get(entry.query_id, ""))
        topics = [_stems(text) for text in asked if text.strip()]
        for item in entry.items:
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
    words = drop_punctuation(text.lower()).split()
    return " ".join(stem(word) for word in words if word not in _ARTICLES)


def _pairs(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[Item]] = {}
    for entry in entries:
        for item in entry.items:
            if _WORD.search(item.text):
                groups.setdefault((item.query_id, item.kind), []).append(item)
    for items in groups.values():
        yield from alike(items)


def alike(items: Sequence[Item]) -> Iterator[Finding]:
    """Each item that says what an earlier one of its query says, with the most alike of these."""
    from rapidfuzz import fuzz, process

    texts = [_normal(item.text) for item in items]
    topics = [_stems(item.text) for item in items]
    first: dict[str, int] = {}
    ratios = process.cdist(texts, texts, scorer=fuzz.token_sort_ratio, score_cutoff=SIMILAR)
    for index, item in enumerate(items):
        earlier = first.setdefault(texts[index], index)
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
