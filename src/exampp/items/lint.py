"""Likely faults and duplicates in a bank: hints for people, not verdicts.

The rules are for English. The precision of each rule is the share of its findings on real banks
that a reader took for defects; benchmarks/lint.py counts them again from the labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal, NamedTuple

from exampp.items.duplicates import near_duplicates
from exampp.items.text_rules import NUGGET_RULES, QUESTION_RULES, opens_yes_no
from exampp.prompts.words import (
    describe_invisible,
    drop_punctuation,
    language_of,
    stem,
    stopwords,
    visible_form,
)
from exampp.records import BankEntry, Item, content_hash
from exampp.records.grouping import grouped
from exampp.records.items import ItemEvidence
from exampp.records.readings import describe_items_without_text
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column
from exampp.sanitize import check_choice

KEYED_SHARE = 0.5
"""Minimum share of items with an answer key for a finding on items without one."""
LEAST_PRECISION = 0.6
"""Rules that are right less often are shown on demand."""
SHOWN = 10
"""Findings that people see at first."""
PASSES = 0.75
"""Minimum share of relevant passages, and ..."""
FAILS = 0.5
"""... of non-relevant ones that cover an item that hardly any passage fails."""


class Rule(NamedTuple):
    """The reason for a rule, and how often it is right.

    `defects` of `read` findings on real banks were defects; a rule that follows from its definition
    has read none. `doubts` is the credit of the item that is in doubt: for passages that are not
    relevant ("wrong"), all of it ("all"), or nothing ("none").
    """

    why: str
    defects: int = 0
    read: int = 0
    doubts: Literal["wrong", "all", "none"] = "wrong"

    @property
    def precision(self) -> float:
        """The share of findings that are defects."""
        return self.defects / self.read if self.read else 1.0

    @property
    def measured(self) -> str:
        """The precision in words; empty for a rule that follows from its definition."""
        return f"{self.defects} of {self.read} read were defects" if self.read else ""


RULES: Mapping[str, Rule] = {
    "no-items": Rule("the query is left out of every score", doubts="all"),
    "empty": Rule("no passage can answer it", doubts="all"),
    "fragment": Rule("it is cut off, so nobody can say what it asks", 40, 40),
    "prompt-echo": Rule("it repeats the prompt, not a fact about the topic", 17, 17),
    "source-reference": Rule("it asks about the text that it was written from", 1, 1),
    "reader": Rule("it asks about the reader, which no passage knows", 8, 8),
    "twin": Rule("the texts look the same but differ in invisible characters", doubts="all"),
    "duplicate": Rule("one fact counts twice in cover", doubts="all"),
    "near-duplicate": Rule("one fact may count twice in cover", 100, 110, "all"),
    "gives-away": Rule("the question contains its answer", 16, 22),
    "never-fails": Rule("most non-relevant passages cover it", 11, 13),
    "too-broad": Rule("every passage on the topic answers it", 3, 3),
    "no-fact": Rule(
        "it adds nothing to the query, so every passage on the topic covers it", 38, 40
    ),
    "unresolved": Rule("it does not say what it is about", 44, 46),
    "double-barrelled": Rule("a passage can answer half of it", 33, 40),
    "yes-no": Rule("any passage on the topic may seem to answer it", 38, 40),
    "yes-no-fact": Rule("it suggests its answer", 13, 40),
    "time-dependent": Rule("its answer changes with time", 29, 40, doubts="all"),
    "query-not-asked": Rule("no question asks what the query asks", 12, 13, doubts="all"),
    "list-mark": Rule("the list number is not part of the text", 40, 40, doubts="none"),
    "no-key": Rule("its answers cannot be verified; those of other items can", doubts="none"),
    "other-language": Rule("passages rarely answer a question in another language", doubts="all"),
    "unknown-query": Rule("the collection has nothing to grade for it", doubts="none"),
}
"""All rules. Of two findings with the same stake, the one of the earlier rule comes first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule on an item, or on a query (`item_id` is empty).

    `detail` names the matched word or the other item, and the fix of invisible faults. `stake` is
    the share of the query's Cover that is probably wrong because of it: the precision of the rule
    times the share that the item supplies and, if judgments show it, the share of its covering
    passages that are not relevant. `relevant` and `not_relevant` are the shares of judged passages
    that cover the item, None if unknown.
    """

    rule: str
    query_id: str
    item_id: str
    text: str
    detail: str = ""
    stake: float = 0.0
    relevant: float | None = None
    not_relevant: float | None = None


def lint(
    entries: Sequence[BankEntry],
    queries: Mapping[str, str],
    passages: Sequence[str] = (),
    *,
    evidence: Mapping[tuple[str, str], ItemEvidence] | None = None,
    doubtful: bool = False,
) -> list[Finding]:
    """Return the findings on the active items of a bank, largest stake first.

    Rules about texts skip items without an imported text. `passages` is a sample of the graded
    texts, used to detect their language. `queries` are the texts, by id, of queries in the
    collection; without them the rules about queries are skipped. `evidence` from grades, by query
    and item, decides on yes-no questions: those that distinguish relevant passages as well as most
    items are not reported. `doubtful` adds the rules that are wrong too often.
    """
    # the second of two equivalent items, by id, is the duplicate
    entries = [
        replace(entry, items=tuple(sorted(entry.items, key=lambda one: one.item_id)))
        for entry in sorted(entries, key=lambda one: (one.query_id, one.subtopic_id or ""))
    ]
    known = dict(_by_weight(entries)) | dict(evidence or {})
    dismissed = {
        (item.query_id, item.item_id, rule)
        for entry in entries
        for item in entry.items
        for rule in dismissed_rules(item.text, item.extra)
    }
    gap = median([one.gap for one in known.values() if one.gap is not None] or [0.0])
    rank = {rule: place for place, rule in enumerate(RULES)}
    findings = []
    for finding in (
        *_alone(entries, queries),
        *_never_fails(entries, known),
        *_pairs(entries),
        *_without_key(entries),
        *_other_language(entries, passages),
        *_unasked(entries, queries),
        *_queries(entries, queries),
    ):
        one = known.get((finding.query_id, finding.item_id), ItemEvidence(finding.stake or 1.0))
        if (finding.query_id, finding.item_id, finding.rule) in dismissed:
            continue
        if doubtful or _is_likely(finding, one, gap):
            findings.append(_weighed(finding, one))
    return sorted(findings, key=lambda one: (-one.stake, rank[one.rule]))


def _by_weight(entries: Iterable[BankEntry]) -> Iterator[tuple[tuple[str, str], ItemEvidence]]:
    """Yield each item with its share in the weight of its query and kind."""
    items = [item for entry in entries for item in entry.items]
    weights: dict[tuple[str, str], float] = {}
    for item in items:
        place = (item.query_id, item.kind)
        weights[place] = weights.get(place, 0.0) + max(item.weight, 0.0)
    for item in items:
        weight = weights[item.query_id, item.kind]
        share = max(item.weight, 0.0) / weight if weight else 0.0
        yield (item.query_id, item.item_id), ItemEvidence(share)


def _is_likely(finding: Finding, known: ItemEvidence, gap: float) -> bool:
    """Return whether a finding is shown without being asked for.

    Grades decide about yes-no questions: on TREC DL 2019 non-relevant passages cover them more
    often than other items, but relevant passages do so, too.
    """
    if finding.rule.startswith("yes-no") and known.gap is not None:
        return known.gap < gap
    return RULES[finding.rule].precision >= LEAST_PRECISION


def _weighed(finding: Finding, known: ItemEvidence) -> Finding:
    rule = RULES[finding.rule]
    wrong = 1.0 if known.wrong is None else known.wrong
    doubt = {"wrong": wrong, "all": 1.0, "none": 0.0}[rule.doubts]
    stake = rule.precision * known.share * doubt
    return replace(finding, stake=stake, relevant=known.relevant, not_relevant=known.not_relevant)


# ---- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class LintReport(Result):
    """The findings on a bank, largest stake first; `items` counts its active items.

    `without_text` counts items of which only the id is known, `dismissed` the findings that people
    dismissed. `source` names the grades that the stakes come from, empty without grades.
    """

    findings: tuple[Finding, ...]
    items: int
    without_text: int = 0
    dismissed: int = 0
    source: str = ""

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if not self.findings:
            return "No findings."
        on = {(one.query_id, one.item_id) for one in self.findings if one.item_id}
        count = counted(len(self.findings), "finding")
        return f"{count} on {len(on)} of {counted(self.items, 'item')}."

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """All findings, as rows of the table for programs."""
        return self.records()["findings"].rows

    def tables(self, limit: int | None = SHOWN) -> Mapping[str, Table]:
        """Return the first `limit` findings (None: all), and the rules with their precision."""
        shown = self.findings[:limit]
        notes = list(self._notes())
        if len(shown) < len(self.findings):
            notes.append(
                f"{len(shown)} of {len(self.findings)} findings are shown, those with most of a "
                "query's Cover at stake; --all shows the rest"
            )
        judged = any(one.relevant is not None for one in shown)
        columns = [
            *(Column("rule"), Column("query"), Column("item"), Column("text"), Column("detail")),
            Column("stake", 3),
            *((Column("relevant", 2), Column("not relevant", 2)) if judged else ()),
        ]
        rows = [_row(one)[: len(columns)] for one in shown]
        verdict = self.headline
        if not shown:
            return {"findings": Table.of([], [], self.source, notes, verdict=verdict)}
        found = Table.of(columns, rows, self.source, notes, verdict=verdict)
        return {"findings": found, "rules": self._rules()}

    def records(self) -> Mapping[str, Table]:
        """Return one row per finding, with the precision of its rule."""
        heads = ["rule", "query", "item", "text", "detail", "stake", "relevant", "not relevant"]
        rows = [
            (*_row(one), RULES[one.rule].precision, RULES[one.rule].why) for one in self.findings
        ]
        columns = [*heads, "precision", "why it matters"]
        return {
            "findings": Table.of(columns, rows, self.source, self._notes(), verdict=self.headline)
        }

    def _notes(self) -> Iterator[str]:
        if self.without_text:
            yield describe_items_without_text(self.without_text, self.items, "item")
        if self.dismissed:
            yield f"{counted(self.dismissed, 'dismissed finding')} not shown"

    def _rules(self) -> Table:
        counts = Counter(one.rule for one in self.findings)
        rows = [
            (name, counts[name], rule.measured or "by definition", rule.why)
            for name, rule in RULES.items()
            if name in counts
        ]
        return Table.of(["rule", "findings", "precision", "why it matters"], rows)


def _row(one: Finding) -> tuple[Cell, ...]:
    place = (one.rule, one.query_id, one.item_id, one.text, one.detail)
    return (*place, one.stake, one.relevant, one.not_relevant)


DISMISSED = "dismissed"
"""Key in `Item.extra` of the dismissed rules, each with a hash of the text that a person read."""


def dismissals(text: str, rules: Iterable[str]) -> dict[str, str]:
    """Return the value under `DISMISSED` for a text; a reworded item is checked again.

    Raises:
        InputError: A rule is unknown.
    """
    named = tuple(rules)
    for rule in named:
        check_choice("rule", rule, tuple(RULES))
    return dict.fromkeys(named, content_hash(text)[:16])


def dismissed_rules(text: str, extra: Mapping[str, Any]) -> frozenset[str]:
    """Return the rules that people dismissed for an item with its current text."""
    known = extra.get(DISMISSED)
    if not isinstance(known, Mapping):
        return frozenset()
    digest = content_hash(text)[:16]
    return frozenset(rule for rule, of in known.items() if of == digest)


def lint_report(
    findings: Iterable[Finding], entries: Iterable[BankEntry], source: str = ""
) -> LintReport:
    """Return the report of the findings on a bank."""
    items = [item for entry in entries for item in entry.items]
    without_text = sum(not item.text for item in items)
    dismissed = sum(len(dismissed_rules(item.text, item.extra)) for item in items)
    return LintReport(tuple(findings), len(items), without_text, dismissed, source)


def missing_texts_note(entries: Iterable[BankEntry]) -> str:
    """Return a note on items without an imported text; empty if there are none."""
    items = [item for entry in entries for item in entry.items]
    return describe_items_without_text(sum(not item.text for item in items), len(items), "item")


# ---- one item at a time --------------------------------------------------------------------------

_WORD = re.compile(r"\w")


def _stemmed(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_BROAD = re.compile(
    r"\b(?:tell me|know about|important|importance|interesting|significan\w+|overview|facts?|"
    r"information|in general|overall|aspects?)\b",
    re.IGNORECASE,
)
_BROAD_FILLING = _stemmed(
    "importance important significance significant overview fact facts interesting information "
    "general overall aspect aspects thing things understanding brief summary introduction key main "
    "provide explain describe discuss give tell concept concepts role know "
    "say me"
)
"""Words that add nothing to a question about the topic."""
_HEADING = _stemmed(
    "definition meaning description explanation overview importance significance information "
    "details name term concept duration length cycle life span cost price year date total average "
    "different process mechanism"
)
"""Words of a heading, such as "definition of clouds", that state nothing about the topic."""
_STATES = re.compile(
    r"\w\W+(?:(?:causes?|forms?|powers?|affects?|impacts?|uses?|used|result(?:s|ed)? (?:in|from))"
    r"|can \w+)\W+\w",
    re.IGNORECASE,
)
_DEFINED = re.compile(
    r"(?:what(?:'s| is| are)|define:?|(?:definition|meaning)(?: of)?) (?P<what>[\w' -]+?)\W*"
    r"|(?P<term>[\w' -]+?) (?:definition|meaning)\W*",
    re.IGNORECASE,
)
_NARROWED = re.compile(
    r"\b(?:of|for|in|to|on|from|by|with|vs|most|best|types?|used)\b", re.IGNORECASE
)
_SAYS_WHAT = re.compile(
    r"\b(?:stands? for|refers? to|means?|meaning|defin\w+|explanation|what defines)\b",
    re.IGNORECASE,
)
_IS_ASKED = re.compile(r"\W*(?:what|who|can you explain|describe)\b", re.IGNORECASE)
_DEFINING = _stemmed(
    "term concept explain describe exactly called considered main key primary general "
    "characteristics features"
)


def _alone(entries: Sequence[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    texts = (item.text for entry in entries for item in entry.items)
    is_read = language_of(texts) in (None, "English")
    for entry in entries:
        about = (entry.query_text, entry.subtopic_text, queries.get(entry.query_id, ""))
        topics = [_stems(text) for text in about if text.strip()]
        for item in entry.items:
            if not item.text:
                continue  # only the id is known, for example from a graded file
            if not _WORD.search(item.text):
                yield _finding("empty", item)
                continue
            if key := _key_in(item):
                yield _finding("gives-away", item, key)
            if not is_read:
                continue
            rules = QUESTION_RULES if item.kind == "question" else NUGGET_RULES
            for rule, find in rules.items():
                detail = find(item.text)
                named = rule in _NAMING and any(_stems(detail or "") & topic for topic in topics)
                if detail is not None and not named:
                    yield _finding(rule, item, detail)
            # a nugget may be the answer of a yes-no query, in the words of the query
            restates = item.kind != "question" and any(map(opens_yes_no, about))
            if not restates and any(_adds_nothing(item, topic) for topic in topics):
                yield _finding("too-broad" if item.kind == "question" else "no-fact", item)


_NAMING = ("source-reference", "prompt-echo")
"""Rules that do not hold for words of the query, such as a query about nuggets."""


def _finding(rule: str, item: Item, detail: str = "") -> Finding:
    return Finding(rule, item.query_id, item.item_id, item.text, detail)


def _adds_nothing(item: Item, topic: frozenset[str]) -> bool:
    """Return whether an item has no word that narrows the topic."""
    beyond = _stems(item.text) - topic
    if item.kind == "question":
        return bool(beyond) and beyond <= _BROAD_FILLING and bool(_BROAD.search(item.text))
    return beyond <= _HEADING and bool(_stems(item.text)) and not _STATES.search(item.text)


def _key_in(item: Item) -> str:
    """Return an answer of the key that a question contains; a yes or no cannot be given away."""
    words = f" {' '.join(drop_punctuation(item.text.lower()).split())} "
    keys = (" ".join(drop_punctuation(answer.lower()).split()) for answer in item.answers)
    return next((key for key in keys if item.kind == "question" and _tells(key, words)), "")


def _tells(key: str, words: str) -> bool:
    # a small number may be the size of the answer ("Which 2 rivers ...")
    is_telling = len(key) > 2 if key.isdecimal() else bool(_stems(key))
    return is_telling and f" {key} " in words


def _unasked(entries: Iterable[BankEntry], queries: Mapping[str, str]) -> Iterator[Finding]:
    """Yield queries "what is X" whose questions do not ask what X is."""
    items: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for entry in entries:
        texts.setdefault(entry.query_id, queries.get(entry.query_id) or entry.query_text)
        questions = [item.text for item in entry.items if item.kind == "question" and item.text]
        items.setdefault(entry.query_id, []).extend(questions)
    for query_id, text in texts.items():
        match = _DEFINED.fullmatch(text.strip())
        what = (match["what"] or match["term"]) if match else ""
        topic = _stems(what)
        if not topic or not items[query_id] or _NARROWED.search(what):
            continue
        if not any(_asks_what(item, topic) for item in items[query_id]):
            # what is at stake is the share of the question that is missing
            share = 1 / (1 + len(items[query_id]))
            yield Finding("query-not-asked", query_id, "", text, "add it as a question", share)


def _asks_what(text: str, topic: frozenset[str]) -> bool:
    """Return whether a question asks what the topic is."""
    words = _stems(text)
    if _SAYS_WHAT.search(text):
        return bool(topic & words)
    return bool(_IS_ASKED.match(text)) and words <= topic | _DEFINING


# ---- pairs of items ------------------------------------------------------------------------------


def _stems(text: str) -> frozenset[str]:
    """Return the stems of the words that are not stopwords."""
    words = drop_punctuation(text.lower().replace("-", " ").replace("/", " ")).split()
    stops = stopwords()
    return frozenset(stem(word) for word in words if word not in stops)


def _pairs(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    texts = (item for entry in entries for item in entry.items if _WORD.search(item.text))
    for items in grouped(texts, lambda item: (item.query_id, item.kind)).values():
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


def _never_fails(
    entries: Iterable[BankEntry], known: Mapping[tuple[str, str], ItemEvidence]
) -> Iterator[Finding]:
    """Yield items that nearly all relevant and most other judged passages cover."""
    for item in (item for entry in entries for item in entry.items):
        one = known[item.query_id, item.item_id]
        if (one.relevant or 0.0) >= PASSES and (one.not_relevant or 0.0) >= FAILS:
            yield _finding("never-fails", item, f"{one.not_relevant:.0%} of non-relevant passages")


def _without_key(entries: Iterable[BankEntry]) -> Iterator[Finding]:
    every = (item for entry in entries for item in entry.items)
    for items in grouped(every, lambda item: item.kind).values():
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
    every = [item for entry in entries for item in entry.items]
    whole = language_of(item.text for item in every)
    for query_id, items in grouped(every, lambda item: item.query_id).items():
        # a few items may be too short for language detection
        own = language_of(item.text for item in items) or whole
        if own not in (None, theirs):
            detail = f"the items are in {own}, the passages in {theirs}"
            yield Finding("other-language", query_id, "", items[0].text, detail)


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
