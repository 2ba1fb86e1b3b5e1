"""Likely faults and duplicates in a bank: hints for people, not verdicts.

The rules are for English. Thresholds were chosen on the published banks of TREC CAR Y3 and TREC DL
(see the tests).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from exampp.items.duplicates import near_duplicates
from exampp.prompts.words import (
    describe_invisible,
    drop_punctuation,
    language_of,
    stem,
    stopwords,
    visible_form,
)
from exampp.records import BankEntry, Item
from exampp.records.readings import describe_items_without_text
from exampp.results.result import Table

NUGGET_WORDS = 4
"""Maximum words of a nugget. Source: EXAM++, Table 1 (the nugget prompts)."""
KEYED_SHARE = 0.5
"""Minimum share of items with an answer key for a finding on items without one."""

EXAMPLES = 3
"""Findings that people see of a rule that most of the items break."""

RULES: Mapping[str, str] = {
    "empty": "no passage can answer it",
    "list-mark": "the list number is not part of the text",
    "twin": "the texts look the same but differ in invisible characters",
    "duplicate": "one fact counts twice in cover",
    "near-duplicate": "one fact may count twice in cover",
    "double-barrelled": "a passage can answer half of it",
    "yes-no": "any passage on the topic may seem to answer it",
    "time-dependent": "its answer changes with time",
    "repeats-query": "every relevant passage answers it",
    "long-nugget": f"the papers' nuggets have at most {NUGGET_WORDS} words",
    "no-key": "its answers cannot be verified; those of other items can",
    "other-language": "passages rarely answer a question in another language",
    "no-items": "the query is left out of every score",
    "unknown-query": "the collection has nothing to grade for it",
}
"""Why the findings of each rule matter, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule on an item, or on a query (`item_id` is empty).

    `detail` names the matched word or the other item, and the fix of invisible faults.
    """

    rule: str
    query_id: str
    item_id: str
    text: str
    detail: str = ""


def lint(
    entries: Sequence[BankEntry], queries: Mapping[str, str], passages: Sequence[str] = ()
) -> list[Finding]:
    """Return the findings on the active items of a bank, rule by rule.

    Rules about texts skip items without an imported text. `passages` is a sample of the graded
    texts, used to detect their language. `queries` are the texts, by id, of queries in the
    collection; without them the rules about queries are skipped.
    """
    # the second of two equivalent items, by id, is the duplicate
    entries = [
        replace(entry, items=tuple(sorted(entry.items, key=lambda one: one.item_id)))
        for entry in sorted(entries, key=lambda one: (one.query_id, one.subtopic_id or ""))
    ]
    by_rule: dict[str, list[Finding]] = {rule: [] for rule in RULES}
    for finding in (
        *_alone(entries, queries),
        *_pairs(entries),
        *_without_key(entries),
        *_other_language(entries, passages),
        *_queries(entries, queries),
    ):
        by_rule[finding.rule].append(finding)
    return [finding for findings in by_rule.values() for finding in findings]


def lint_table(findings: Sequence[Finding], entries: Sequence[BankEntry]) -> Table:
    """Return one row per finding; notes count findings by rule, and items without a text."""
    rows = [
        (
            finding.rule,
            finding.query_id,
            finding.item_id,
            finding.text,
            finding.detail,
            RULES[finding.rule],
        )
        for finding in findings
    ]
    counts = Counter(finding.rule for finding in findings)
    notes = [f"{counts[rule]} {rule}: {why}" for rule, why in RULES.items() if rule in counts]
    notes = [*filter(None, [missing_texts_note(entries)]), *notes]
    heads = ["rule", "query", "item", "text", "detail", "why it matters"]
    return Table.of(heads, rows, notes=notes or ["no findings"])


def shorten_lint(table: Table, items: int) -> Table:
    """Return the table for people: three examples of each rule that most of the items break."""
    notes, rows = [], []
    for rule, found in groupby(table.rows, key=itemgetter(0)):
        of_rule = [*found]
        if len(of_rule) > max(items / 2, EXAMPLES):
            notes.append(f"{EXAMPLES} of {len(of_rule)} {rule} are shown; --format json has all")
            of_rule = of_rule[:EXAMPLES]
        rows += of_rule
    return replace(table, rows=tuple(rows), notes=(*notes, *table.notes))


def missing_texts_note(entries: Iterable[BankEntry]) -> str:
    """Return a note on items without an imported text; empty if there are none."""
    items = [item for entry in entries for item in entry.items]
    return describe_items_without_text(sum(not item.text for item in items), len(items), "item")


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
_LIST_MARK = re.compile(r"\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s+\S")


def _alone(entries: Iterable[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    for entry in entries:
        texts = (entry.query_text, entry.subtopic_text, queries.get(entry.query_id, ""))
        topics = [_stems(text) for text in texts if text.strip()]
        for item in entry.items:
            if not item.text:
                continue  # only the id is known, for example from a graded file
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
    match = _LIST_MARK.match(text)
    return None if match is None else match[0].split()[0]


def _double_barrelled(text: str) -> str | None:
    for pattern in (_DOUBLE, _SECOND):
        # "How and why ..." is a single question
        if match := pattern.search(text, 12):
            return match[0].strip(" ,")
    return "?" if _TWO_MARKS.search(text) else None


def _yes_no(text: str) -> str | None:
    start = text.strip()
    match = _YES_NO.match(start)
    if not match or _REQUEST.search(start) or _ALTERNATIVE.match(start) or _asks(match[0]):
        return None
    return match[0].split()[-1].lower()


def _asks(start: str) -> bool:
    return re.search(rf"\b{_ASKING}\b", start, re.IGNORECASE) is not None


def _time_dependent(text: str) -> str | None:
    match = _TIME.search(text)
    return None if match is None else match[0].lower()


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


# ---- pairs of items ------------------------------------------------------------------------------


def _stems(text: str) -> frozenset[str]:
    """Return the stems of the words that are not stopwords."""
    words = drop_punctuation(text.lower().replace("-", " ").replace("/", " ")).split()
    stops = stopwords()
    return frozenset(stem(word) for word in words if word not in stops)


def _pairs(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[Item]] = {}
    for entry in entries:
        for item in entry.items:
            if _WORD.search(item.text):
                groups.setdefault((item.query_id, item.kind), []).append(item)
    for items in groups.values():
        for one in near_duplicates(items):
            item, like = one.item, one.like
            if look_alike(item.text, like.text):
                seen = describe_invisible(item.text) or f"there {describe_invisible(like.text)}"
                detail = f"like {like.item_id}: {seen}; retire or reword one of them"
                yield _finding("twin", item, detail)
            elif not one.differs:
                yield _finding("duplicate", item, f"as {like.item_id}")
            else:
                yield _finding("near-duplicate", item, f"like {like.item_id}: {like.text}")


def look_alike(one: str, other: str) -> bool:
    """Return whether two different texts look the same."""
    return one != other and visible_form(one) == visible_form(other)


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
    """Yield queries with items in another language than the passages."""
    theirs = language_of(passages)
    if theirs is None:
        return
    texts: dict[str, list[str]] = {}
    for entry in entries:
        texts.setdefault(entry.query_id, []).extend(item.text for item in entry.items)
    whole = language_of(text for one in texts.values() for text in one)
    for query_id, of_query in texts.items():
        # a few items may be too short for language detection
        own = language_of(of_query) or whole
        if own not in (None, theirs):
            detail = f"the items are in {own}, the passages in {theirs}"
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
