"""Compare banks with a reference bank of the same queries: what their items ask for, item by item.

Items and reference items are matched by their texts, their answer keys, a grader or people, with
the relations of `stats.item_matches`. Of one query, with weights of the reference items:

    recall      the reference weight that the items ask for
    precision   the share of the items that ask for something in the reference bank
    redundancy  the share of the items that ask what an earlier one asks
    novelty     the share of the distinct items that ask for nothing in the reference bank
    nDCG        recall of an ordered list, discounted by rank; repetitions gain nothing

A bank has the mean over the queries of the reference bank: without items, recall and nDCG are 0,
and the others are undefined. Items to avoid are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isclose
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np

from exampp.analysis.phrases import gaps, leading, percent
from exampp.errors import InputError
from exampp.items.duplicates import duplicate_groups, duplicate_pairs
from exampp.items.matches import COVERAGE, MATCHERS, by_coverage
from exampp.records import BankEntry, Item
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, without_decisions
from exampp.records.graders import GraderIdentity, grader_label
from exampp.records.grouping import grouped
from exampp.records.items import joined_groups
from exampp.records.wording import counted
from exampp.results.notes import Note, note, with_code
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, interval_text, programs_only
from exampp.stats.estimate import Estimate, EstimateRows, Floats
from exampp.stats.item_matches import (
    DIFFERENT,
    RELATIONS,
    SAME,
    Relations,
    asked_for,
    best_items,
    discounted_recall,
    fitting,
)
from exampp.stats.means import DIFFERENCE, mean_test
from exampp.stats.proportions import mean_share

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

UNGRADED = -1
"""The relation of a pair without a grade."""
COLUMNS = ("recall", "precision", "redundancy", "novelty", "ndcg")
_LISTED = 20
_MARK = "#"


class MatchedQuery(NamedTuple):
    """The items of one query, or subtopic, of a reference bank, and those of other banks beside it.

    `relations` are [items, reference items] by bank, in the order of the items. `decided` are the
    pairs that people decided, (bank, row, column).
    """

    query_id: str
    subtopic_id: str | None
    reference: tuple[Item, ...]
    items: Mapping[str, tuple[Item, ...]]
    relations: Mapping[str, Relations]
    decided: Collection[tuple[str, int, int]] = ()

    @property
    def weights(self) -> Floats:
        """The weights of the reference items."""
        return np.array([one.weight for one in self.reference], np.float64)


@dataclass(frozen=True, slots=True)
class MatchedBanks:
    """Banks whose items are matched with those of a reference bank.

    `matcher` is one of `items.matches.MATCHERS`, or the name of a grader. `without` are queries of
    the banks that the reference bank does not have, by bank. `people` decided pairs. `left_out`
    counts reference items of the `left_out_kind`, which the grader did not match.
    """

    reference: str
    banks: tuple[str, ...]
    queries: tuple[MatchedQuery, ...]
    matcher: str
    without: Mapping[str, int] = field(default_factory=dict)
    people: int = 0
    automatic: MatchedBanks | None = None
    left_out: int = 0
    left_out_kind: str = ""


class BankScore(NamedTuple):
    """A bank beside the reference bank: means over queries with intervals, and the counts behind.

    `queries` of the reference bank have items of this bank; `items` are its mean number in them.
    `missing` reference items are asked for by no item, `new` items ask for nothing in the reference
    bank. `ungraded` queries are left out, because a pair of them has no grade. `behind` is whether
    the recall of the best bank is higher beyond the uncertainty of their difference.
    """

    bank: str
    queries: int
    items: float
    recall: Estimate
    precision: Estimate
    redundancy: Estimate
    novelty: Estimate
    ndcg: Estimate
    missing: int
    new: int
    ungraded: int = 0
    behind: bool = False


class ReferenceItem(NamedTuple):
    """A reference item, and the banks that ask for it, at least in part."""

    query_id: str
    subtopic_id: str | None
    item_id: str
    text: str
    weight: float
    banks: tuple[str, ...]


class NewItem(NamedTuple):
    """An item that asks for nothing in the reference bank, and the banks that have it."""

    query_id: str
    subtopic_id: str | None
    item_id: str
    text: str
    banks: tuple[str, ...]


class MatchedPair(NamedTuple):
    """An item and a reference item that are not different, or that people decided."""

    bank: str
    query_id: str
    subtopic_id: str | None
    item_id: str
    text: str
    reference_id: str
    reference_text: str
    relation: str
    by_people: bool


class BestItem(NamedTuple):
    """The `rank`-th item of the best list of a query, and the recall of the list so far."""

    query_id: str
    rank: int
    bank: str
    item_id: str
    text: str
    recall: float


# ---- matching by texts or keys -------------------------------------------------------------------


def match_banks(
    reference: str,
    banks: Mapping[str, Iterable[BankEntry]],
    matcher: str = "text",
    books_of: Callable[[str], Sequence[Gradebook]] | None = None,
) -> MatchedBanks:
    """Match the items of all banks with those of the bank `reference`, without a model.

    Items of one subtopic are matched if all items have a subtopic, else those of one query.
    Reference items of weight 0 are left out. `books_of` returns the grades of a bank, by kind of
    item, for the matcher `coverage`.

    Raises:
        InputError: The matcher is unknown, there is no other bank, or no common query.
    """
    matchers = (*MATCHERS, COVERAGE)
    if matcher not in matchers or (matcher == COVERAGE and books_of is None):
        hint = f"Use one of {', '.join(matchers)}"
        raise InputError(f"unknown way to match {matcher!r}", hint=hint)
    others = tuple(name for name in banks if name != reference)
    if not others:
        raise InputError(
            f"there is no bank to compare with {reference!r}",
            hint="Name a bank other than the reference bank, or import one: exampp import "
            "COLLECTION FILE --bank-name NAME. A collection of matches needs no reference bank",
        )
    items = {name: [one for entry in banks[name] for one in entry.items] for name in banks}
    match = MATCHERS.get(matcher)
    if match is None and books_of is not None:
        match = by_coverage(
            {k: v for n, of in items.items() for k, v in _covered(n, of, books_of(n))}
        )
    if matcher == "keys" and not any(one.answers for one in items[reference]):
        raise InputError(
            f"no item of the bank {reference!r} has an answer key",
            hint="Match items by text, similarity or coverage",
        )
    by_subtopic = all(one.subtopic_id for of in items.values() for one in of)
    units = {name: _by_unit(of, by_subtopic) for name, of in items.items()}
    queries = []
    for unit, of_reference in units[reference].items():
        known = tuple(one for one in of_reference if one.weight > 0)
        if known and match is not None:
            of_bank = {
                name: tuple(one for one in units[name].get(unit, ()) if not one.is_avoided)
                for name in others
            }
            relations = match(known, [one for of in of_bank.values() for one in of])
            ends = np.cumsum([len(of) for of in of_bank.values()])[:-1]
            parts = dict(zip(others, np.split(relations, ends), strict=True))
            queries.append(MatchedQuery(*unit, known, of_bank, parts))
    without = {name: len(units[name].keys() - units[reference].keys()) for name in others}
    if not any(map(_has_items, queries)):
        raise InputError(f"no other bank has a query of the bank {reference!r}")
    return MatchedBanks(
        reference, others, tuple(queries), matcher, {n: c for n, c in without.items() if c}
    )


def _covered(
    bank: str, items: Sequence[Item], books: Sequence[Gradebook]
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the passages that cover each item, with the `id()` of its record."""
    graded = {book.grader.kind for book in books if book.is_graded}
    if ungraded := next((one.kind for one in items if one.kind not in graded), ""):
        kind = f" --kind {ungraded}" if graded else ""
        by = f" by {books[0].grader.name}" if books else ""
        raise InputError(
            f"the {ungraded}s of the bank {bank!r} have no grades{by}",
            hint=f"Grade the passages: exampp grade COLLECTION --bank {bank}{kind}",
        )
    covered = {
        (query.query_id, item): frozenset(
            query.passage_ids[at]
            for at in np.flatnonzero(query.ratings[:, column] >= book.grader.threshold(None))
        )
        for book in books
        for query in book.queries
        for column, item in enumerate(query.item_ids)
    }
    for one in items:
        yield id(one), covered.get((one.query_id, one.item_id), frozenset())


def _by_unit(items: Iterable[Item], by_subtopic: bool) -> dict[tuple[str, str | None], list[Item]]:
    return grouped(items, lambda one: (one.query_id, one.subtopic_id if by_subtopic else None))


# ---- scores --------------------------------------------------------------------------------------


def _groups(items: Sequence[Item]) -> tuple[int, ...]:
    """Return the group of each item of one bank; items of a group ask for one thing."""
    place = {id(one): at for at, one in enumerate(items)}
    pairs = [
        (place[id(group.items[0])], place[id(other)])
        for group in duplicate_groups(items)
        for other in group.items[1:]
    ]
    return joined_groups(len(items), pairs)


def _measure(query: MatchedQuery, bank: str, k: int | None) -> EstimateRows:
    """Return the columns of one bank in one query."""
    items, relations = query.items[bank][:k], query.relations[bank][:k]
    if not items:
        return EstimateRows(np.zeros(len(COLUMNS)), np.isin(COLUMNS, ("recall", "ndcg")))
    if (relations == UNGRADED).any():
        return EstimateRows(np.zeros(len(COLUMNS)), np.zeros(len(COLUMNS), np.bool_))
    groups, weights = _groups(items), query.weights
    fits = fitting(relations)
    firsts = [at for at, group in enumerate(groups) if at == group]
    values = np.array(
        [
            float(weights @ asked_for(relations, groups)) / float(weights.sum()),
            float(fits.mean()),
            1 - len(firsts) / len(items),
            1 - float(fits[firsts].mean()),
            discounted_recall(relations, groups, weights, k or len(query.reference)),
        ]
    )
    return EstimateRows(values, np.ones(len(COLUMNS), np.bool_))


def measure_bank(queries: Sequence[MatchedQuery], bank: str, k: int | None = None) -> EstimateRows:
    """Return the values of a bank, [columns of `COLUMNS`, queries].

    Subtopics are averaged within their query.
    """
    ids = [*dict.fromkeys(one.query_id for one in queries)]
    row = {query_id: at for at, query_id in enumerate(ids)}
    sums, counts = np.zeros((2, len(COLUMNS), len(ids)))
    for one in queries:
        values, defined = _measure(one, bank, k)
        sums[:, row[one.query_id]] += np.where(defined, values, 0.0)
        counts[:, row[one.query_id]] += defined
    defined = counts > 0
    return EstimateRows(np.divide(sums, counts, out=np.zeros(sums.shape), where=defined), defined)


@dataclass(frozen=True, slots=True, repr=False)
class BankComparison(Result):
    """Banks beside a reference bank, the highest recall first; see the module.

    `missing` are reference items, those that the fewest banks ask for first; `new` are items that
    ask for nothing in the reference bank, those of most banks first; `pairs` are matched. `best` is
    the greedy choice of items for each query, if one was requested.
    """

    reference: str
    rows: tuple[BankScore, ...]
    missing: tuple[ReferenceItem, ...]
    new: tuple[NewItem, ...]
    pairs: tuple[MatchedPair, ...]
    best: tuple[BestItem, ...]
    k: int | None
    level: float
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The bank with the highest recall, what it asks for, and which banks may be as good."""
        first = self.rows[0]
        if first.recall.value is None:
            return f"No query of {first.bank} can be compared with {self.reference}."
        if not first.recall.value:
            bank = first.bank if len(self.rows) == 1 else "any other bank"
            return f"No item of {bank} asks for anything in {self.reference}."
        recall = _share(first.recall)
        if len(self.rows) == 1:
            missing = sum(not one.banks for one in self.missing)
            rest = f"No item asks for {counted(missing, 'reference item')}."
            return (
                f"{first.bank} asks for {recall} of {self.reference}; {_share(first.precision)} of "
                f"its items ask for something in it. "
                + (rest if missing else "Each reference item is asked for, at least in part.")
            )
        equal = [one for one in self.rows if isclose(one.recall.value or 0.0, first.recall.value)]
        others = self.rows[len(equal) :]
        near = [one.bank for one in others if not one.behind]
        rest = "; all others are lower, beyond the uncertainty over queries" if others else ""
        if len(near) == len(others) > 3:
            rest = "; no other bank is clearly lower"
        elif near:
            names = ", ".join(near) if len(near) < 4 else f"{len(near)} of {len(others)}"
            rest = f"; not clearly lower: {names}"
        leader = leading([one.bank for one in equal], "bank")
        share = recall if len(equal) == 1 else f"{first.recall.value:.0%}"
        return f"{leader} the highest recall of {self.reference}, {share}{rest}."

    def plot(self) -> Figure:
        """Plot recall and precision of the banks with their intervals."""
        from exampp.results.plots.dots import series_figure
        from exampp.results.plots.figure import Spread

        cut = "" if self.k is None else f"@{self.k}"
        series = {
            f"recall{cut}": [(one.bank, one.recall) for one in self.rows],
            f"precision{cut}": [(one.bank, one.precision) for one in self.rows],
        }
        return series_figure(
            {
                name: [Spread(bank, of.value, of.low, of.high) for bank, of in estimates]
                for name, estimates in series.items()
            },
            ("measure", "bank"),
            "share",
            f"Banks beside the reference bank {self.reference}",
            f"Highest recall first; bars: {percent(self.level)} interval over queries",
            name="banks",
            draft=any(with_code(self.notes, "banks-by-draft")),
        )

    def tables(self, limit: int = _LISTED) -> dict[str, Table]:
        """Return the banks, and the first `limit` rows of every list."""
        one_bank = len(self.rows) == 1
        nobody = [one for one in self.missing if not one.banks]
        lists: dict[str, tuple[str, Sequence[object]]] = {
            "missing": ("Reference items that no item asks for", nobody),
            "new": ("Items that ask for nothing in the reference bank", self.new),
            "best": ("Best items by greedy choice", self.best),
        }
        found = {"banks": self._banks()}
        records = self.records()
        for name, (caption, items) in lists.items():
            if limit and items:
                shown, count = records[name], len(items)
                notes = [note("banks-shown", limit=limit, count=count, table=name)]
                hidden = {"banks"} if one_bank or name == "missing" else set()
                columns = [
                    replace(one, readers="programs") if one.heading in hidden else one
                    for one in shown.columns
                ]
                found[name] = replace(
                    shown,
                    columns=tuple(columns),
                    rows=shown.rows[: min(limit, count)],
                    caption=caption,
                    notes=tuple(notes) if count > limit else (),
                )
        return found

    def records(self) -> dict[str, Table]:
        """Return a row per bank, reference item, new item, matched pair and chosen item."""
        missing = [(*one[:5], len(one.banks), ", ".join(one.banks)) for one in self.missing]
        new = [(*one[:4], len(one.banks), ", ".join(one.banks)) for one in self.new]
        item = [Column("query"), *programs_only("subtopic"), Column("item"), Column("text")]
        asking = [Column("banks", 0), Column("names", readers="programs")]
        found = {
            "banks": self._banks(),
            "missing": Table.of([*item, Column("weight", 2), *asking], missing),
            "new": Table.of([*item, *asking], new),
            "pairs": Table.of(MatchedPair._fields, self.pairs),
        }
        if self.best:
            chosen = [*map(Column, ("query", "rank", "bank", "item", "text", "recall"))]
            found["best"] = Table.of(chosen, self.best)
        return found

    def _banks(self) -> Table:
        cut = "" if self.k is None else f"@{self.k}"
        columns = [
            *(Column("bank"), Column("queries", 0), Column("items", 1)),
            *(Column(f"{name}{cut}", key=name, interval=True) for name in ("recall", "precision")),
            *(Column(f"{name}{cut}", key=name) for name in ("redundancy", "novelty")),
            Column(f"nDCG{cut}", key="ndcg", interval=True),
            *(Column("missing", 0), Column("new", 0)),
            *programs_only("ungraded", "behind"),
        ]
        rows: list[list[Cell]] = [
            [
                *(one.bank, one.queries, one.items, one.recall, one.precision),
                *(one.redundancy.value, one.novelty.value, one.ndcg),
                *(one.missing, one.new, one.ungraded, one.behind),
            ]
            for one in self.rows
        ]
        caption = f"Banks beside the reference bank {self.reference}"
        return Table.of(columns, rows, caption, self.notes, verdict=self.headline)


def _share(one: Estimate) -> str:
    return "an unknown share" if one.value is None else interval_text(one, 0, "%")


def compare_banks(
    matched: MatchedBanks,
    *,
    k: int | None = None,
    best: int = 0,
    shared: bool = False,
    level: float = 0.95,
) -> BankComparison:
    """Compare banks with their reference bank.

    Args:
        matched: The matched banks.
        k: Count only the first k items of each bank and query, in their order.
        best: Choose so many items of each query from all banks by greedy choice; 0: none.
        shared: Leave out queries of the reference bank of which no other bank has items.
        level: The level of the intervals.

    Raises:
        InputError: `k`, `best` or `level` is invalid.
    """
    if (k is not None and k < 1) or best < 0 or not 0 < level < 1:
        raise InputError(
            f"k is {k}, best {best}, level {level}", hint="Use k 1, 2, ...; level 0.95"
        )
    if shared:
        matched = replace(matched, queries=tuple(filter(_has_items, matched.queries)))
    measured = {name: measure_bank(matched.queries, name, k) for name in matched.banks}
    cut = [
        one._replace(
            items={name: of[:k] for name, of in one.items.items()},
            relations={name: of[:k] for name, of in one.relations.items()},
        )
        for one in matched.queries
    ]
    lists = _Lists(cut)
    rows = [_score(cut, name, measured[name], lists, level) for name in matched.banks]
    rows.sort(key=lambda one: (-(one.recall.value or 0.0), one.bank))
    rows = _ranked(rows, measured, level)
    chosen = tuple(_best(cut, best)) if best else ()
    found = BankComparison(
        *(matched.reference, tuple(rows), lists.missing, lists.new, lists.pairs, chosen),
        *(k, level, ()),
    )
    return replace(found, notes=tuple(_notes(matched, found, level)))


def _has_items(query: MatchedQuery) -> bool:
    return any(query.items.values())


def _score(
    queries: Sequence[MatchedQuery], bank: str, of: EstimateRows, lists: _Lists, level: float
) -> BankScore:
    with_items = [one for one in queries if one.items[bank]]
    ungraded = sum((one.relations[bank] == UNGRADED).any() for one in with_items)
    sizes = [len(one.items[bank]) for one in with_items]
    recall, precision, redundancy, novelty, ndcg = (
        mean_share(values[defined], level) for values, defined in zip(*of, strict=True)
    )
    return BankScore(
        bank,
        len({one.query_id for one in with_items}),
        sum(sizes) / len(sizes) if sizes else 0.0,
        recall,
        precision,
        redundancy,
        novelty,
        ndcg,
        missing=sum(bank not in one.banks for one in lists.missing),
        new=sum(int((one.relations[bank] == DIFFERENT).all(axis=1).sum()) for one in with_items),
        ungraded=int(ungraded),
    )


def _ranked(
    rows: Sequence[BankScore], measured: Mapping[str, EstimateRows], level: float
) -> list[BankScore]:
    """Return the rows, each with whether the first one has a higher recall beyond uncertainty.

    The first one is the best by chance, too, so the level is corrected for all pairs of banks.
    """
    first, *others = rows
    corrected = 1 - (1 - level) / max(1, len(rows) * len(others) / 2)
    best = measured[first.bank]
    found = [first]
    for one in others:
        own = measured[one.bank]
        both = best.defined[0] & own.defined[0]
        behind = is_above_zero((best.values[0] - own.values[0])[both], corrected)
        found.append(one._replace(behind=behind))
    return found


def is_above_zero(differences: Floats, level: float) -> bool:
    """Return whether the mean of paired differences is above 0 by its Student interval.

    Gaffke's limits stand in where all differences are equal.
    """
    for within in (None, DIFFERENCE):
        low = mean_test(differences, within, level).estimate.low
        if low is not None:
            return low > 0
    return False


@dataclass(frozen=True)
class _Lists:
    """The lists of items and pairs of matched queries."""

    queries: Sequence[MatchedQuery]

    @cached_property
    def missing(self) -> tuple[ReferenceItem, ...]:
        """All reference items, those that the fewest banks ask for first."""
        found = [
            ReferenceItem(
                *(one.query_id, one.subtopic_id, item.item_id, item.text, item.weight),
                tuple(bank for bank, of in one.relations.items() if (of[:, at] > DIFFERENT).any()),
            )
            for one in self.queries
            for at, item in enumerate(one.reference)
        ]
        return tuple(sorted(found, key=lambda one: (len(one.banks), -one.weight)))

    @cached_property
    def new(self) -> tuple[NewItem, ...]:
        """Items that ask for nothing in the reference bank, in one row if they ask one thing."""
        return tuple(sorted(self._new(), key=lambda one: -len(one.banks)))

    def _new(self) -> Iterator[NewItem]:
        for one in self.queries:
            items = [
                (bank, item)
                for bank, of in one.items.items()
                for item, row in zip(of, one.relations[bank], strict=True)
                if (row == DIFFERENT).all()
            ]
            groups = _same_texts([item.text for _, item in items])
            pairs = zip(groups, items, strict=True)
            for same in grouped(pairs, lambda pair: pair[0]).values():
                banks = tuple(dict.fromkeys(bank for _, (bank, _) in same))
                _, (_, first) = same[0]
                yield NewItem(one.query_id, one.subtopic_id, first.item_id, first.text, banks)

    @cached_property
    def pairs(self) -> tuple[MatchedPair, ...]:
        """All pairs that are not different or that people decided."""
        return tuple(
            MatchedPair(
                *(bank, one.query_id, one.subtopic_id),
                *(one.items[bank][row].item_id, one.items[bank][row].text),
                *(one.reference[column].item_id, one.reference[column].text),
                *(RELATIONS[of[row, column]], (bank, row, column) in one.decided),
            )
            for one in self.queries
            for bank, of in one.relations.items()
            for row, column in np.ndindex(*of.shape)
            if of[row, column] > DIFFERENT
            or ((bank, row, column) in one.decided and of[row, column] != UNGRADED)
        )


def _same_texts(texts: Sequence[str]) -> list[int]:
    """Return a number for each text, the same for texts that ask for one thing."""
    distinct = [*dict.fromkeys(texts)]
    groups = joined_groups(len(distinct), (pair[:2] for pair in duplicate_pairs(distinct)))
    number = dict(zip(distinct, groups, strict=True))
    return [number[text] for text in texts]


def _best(queries: Sequence[MatchedQuery], k: int) -> Iterator[BestItem]:
    """Yield the greedy choice of k items for each query, from all banks."""
    for one in queries:
        items = [(bank, item) for bank, of in one.items.items() for item in of]
        if not items:
            continue
        relations = np.concatenate([of for of in one.relations.values() if len(of)])
        groups = _same_texts([item.text for _, item in items])
        chosen = best_items(np.maximum(relations, DIFFERENT), groups, one.weights, k)
        for rank, (at, recall) in enumerate(chosen, 1):
            bank, item = items[at]
            yield BestItem(one.query_id, rank, bank, item.item_id, item.text, recall)


def _notes(matched: MatchedBanks, found: BankComparison, level: float) -> Iterator[Note]:
    if matched.matcher == "keys":
        lists = [of for one in matched.queries for of in (one.reference, *one.items.values())]
        keyless = counted(sum(not one.answers for of in lists for one in of), "item")
        yield note("banks-by-keys", without=f"{keyless} of {sum(map(len, lists)):,}")
    elif matched.matcher in (*MATCHERS, COVERAGE, "draft"):
        yield note(f"banks-by-{matched.matcher}")
    else:
        yield note("banks-by-grader", grader=matched.matcher)
    if matched.left_out:
        kind = matched.left_out_kind
        items = counted(matched.left_out, kind)
        yield note("banks-kind", grader=matched.matcher, items=items, kind=kind)
    ungraded = {one.bank: one.ungraded for one in found.rows if one.ungraded}
    if ungraded:
        names = ", ".join(f"{bank} ({count})" for bank, count in ungraded.items())
        yield note("banks-ungraded", banks=names)
    decided = sum(len(one.decided) for one in matched.queries)
    if decided and matched.automatic is not None:
        known = {one.query_id for one in matched.queries}
        automatic = [one for one in matched.automatic.queries if one.query_id in known]
        before = compare_banks(
            replace(matched.automatic, queries=tuple(automatic)), k=found.k, level=level
        )
        was = {one.bank: one.recall.value for one in before.rows}
        changed = [
            f"{one.bank} {was[one.bank]:.3f} to {one.recall.value:.3f}"
            for one in found.rows
            if one.recall.value is not None
            and was[one.bank] is not None
            and one.recall.value != was[one.bank]
        ]
        yield note(
            "banks-decided",
            pairs=counted(decided, "pair"),
            people="1 person" if matched.people == 1 else f"{matched.people} people",
            changes=", ".join(changed[:_LISTED]) or "no recall",
        )
    if matched.without:
        most = max(matched.without.values())
        yield note("banks-other-queries", queries=counted(most, "query"), reference=found.reference)
    bare = len({one.query_id for one in matched.queries if not _has_items(one)})
    if bare:
        yield note("banks-bare", queries=counted(bare, "query"), reference=found.reference)
    if found.best:
        yield note("banks-best")
    yield note("banks-columns")
    if any(one.recall.low is not None for one in found.rows):
        yield note("banks-intervals", level=percent(level))
    else:
        yield from gaps((one.bank, one.recall) for one in found.rows)


# ---- matches that a grader or people made --------------------------------------------------------


def matched_passage(bank: str, item_id: str) -> str:
    """Return the id of the passage that is an item of a bank in a collection of matches."""
    return f"{quote(bank, safe='')}{_MARK}{item_id}"


def matched_query(query_id: str, subtopic_id: str | None) -> str:
    """Return the id of a query, or of one of its subtopics, in a collection of matches."""
    own = query_id.replace("%", "%25").replace(_MARK, "%23")
    return own if subtopic_id is None else f"{own}{_MARK}{subtopic_id}"


def _query_and_subtopic(unit: str) -> tuple[str, str | None]:
    own, mark, subtopic_id = unit.partition(_MARK)
    return own.replace("%23", _MARK).replace("%25", "%"), subtopic_id if mark else None


def are_matches(book: Gradebook) -> bool:
    """Return whether the passages of all systems are items of banks (`exampp.bank_matches`)."""
    ranked = [(query, one) for query in book.queries for one in query.rankings]
    return bool(ranked) and all(
        query.passage_ids[at].startswith(matched_passage(one.system, ""))
        for query, one in ranked
        for at in one.passages[:1].tolist()
    )


def read_matches(
    books: Sequence[Gradebook],
    reference: Iterable[BankEntry],
    texts: Mapping[str, str],
    min_rating: int | None = None,
) -> MatchedBanks:
    """Return the matched banks of a collection of matches, with the decisions of people.

    Ratings on a scale of four are the relations; on any other, `min_rating` or more is the same.
    `books` are the grades of one grader, by kind of item. `reference` are the items of its bank,
    `texts` those of its passages by id.

    Raises:
        InputError: The collection is of anything else.
    """
    if not all(map(are_matches, books)):
        raise InputError(
            "the passages of the collection are not items of banks",
            hint="Make a collection of matches: exampp bank match COLLECTION NEW.exam, or compare "
            "banks by their texts: exampp analyze banks COLLECTION --reference BANK",
        )
    items = {(one.query_id, one.item_id): one for entry in reference for one in entry.items}
    first = books[0]
    threshold = first.grader.threshold(min_rating)
    graded = {one.grader.kind for one in books}
    left_out = [one for one in items.values() if one.kind not in graded and one.weight > 0]

    def read(of: Sequence[Gradebook]) -> MatchedBanks:
        both = [(book, query) for book in of for query in book.queries]
        found = [_read_query(query, book, items, texts, threshold) for book, query in both]
        parts = grouped((one for one in found if one.reference), lambda one: one[:2])
        people = {one for _, query in both for cell in query.decided for one in cell.people}
        return MatchedBanks(
            first.bank,
            first.systems,
            tuple(map(_joined, parts.values())),
            _matcher([one.grader for one in books]),
            people=len(people),
            left_out=len(left_out),
            left_out_kind=left_out[0].kind if left_out else "",
        )

    return replace(read(books), automatic=read([*map(without_decisions, books)]))


def _joined(parts: Sequence[MatchedQuery]) -> MatchedQuery:
    """Return a query with the reference items of all parts, beside the same items of banks."""
    starts = np.cumsum([0, *(len(one.reference) for one in parts)]).tolist()
    return parts[0]._replace(
        reference=tuple(item for one in parts for item in one.reference),
        relations={
            bank: np.hstack([one.relations[bank] for one in parts]) for bank in parts[0].relations
        },
        decided=[
            (bank, row, start + column)
            for start, one in zip(starts, parts, strict=False)
            for bank, row, column in one.decided
        ],
    )


def _matcher(graders: Sequence[GraderIdentity]) -> str:
    first = graders[0]
    if first.is_draft:
        return "draft"
    alone = len(graders) == 1 and first.short_name not in (*MATCHERS, COVERAGE)
    return grader_label(first) if alone else first.short_name


def _read_query(
    query: QueryGrades,
    book: Gradebook,
    items: Mapping[tuple[str, str], Item],
    texts: Mapping[str, str],
    threshold: int,
) -> MatchedQuery:
    query_id, subtopic_id = _query_and_subtopic(query.query_id)
    columns = np.flatnonzero(query.weights > 0).tolist()
    place = {query.item_ids[at]: column for column, at in enumerate(columns)}
    decided = {
        (one.passage_id, place[one.item_id]) for one in query.decided if one.item_id in place
    }
    of_bank: dict[str, tuple[Item, ...]] = dict.fromkeys(book.systems, ())
    relations = dict.fromkeys(book.systems, np.zeros((0, len(columns)), np.int16))
    by_people: list[tuple[str, int, int]] = []
    for ranking in query.rankings:
        ids = [query.passage_ids[at] for at in ranking.passages.tolist()]
        of_bank[ranking.system] = tuple(
            Item(one.partition(_MARK)[2], query_id, texts.get(one, "")) for one in ids
        )
        ratings = query.ratings[ranking.passages][:, columns]
        relations[ranking.system] = _relations(ratings, book.grader, threshold)
        by_people += [
            (ranking.system, row, column)
            for row, one in enumerate(ids)
            for column in range(len(columns))
            if (one, column) in decided
        ]
    reference = tuple(
        replace(items[query.query_id, query.item_ids[at]], query_id=query_id)
        if (query.query_id, query.item_ids[at]) in items
        else Item(query.item_ids[at], query_id, "", weight=float(query.weights[at]))
        for at in columns
    )
    return MatchedQuery(query_id, subtopic_id, reference, of_bank, relations, by_people)


def _relations(ratings: Relations, grader: GraderIdentity, threshold: int) -> Relations:
    if grader.highest - grader.lowest == SAME:
        found = ratings - grader.lowest
    else:
        found = np.where(ratings >= threshold, SAME, DIFFERENT)
    return np.where(ratings == MISSING, UNGRADED, found).astype(np.int16)
