"""The difference of two systems as tables: in total, by query, by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exampp.analysis.compare_items import NO_QUOTE, BestPassage, CoveredBy, PairedItem, Quote
from exampp.analysis.compare_records import ComparedTexts, CoverChange, SystemDifference
from exampp.analysis.phrases import ALIKE, OVER_ALL, added_up, not_excluded
from exampp.evaluate.board import PROVENANCE, caption, heading, provenance
from exampp.records.wording import counted
from exampp.report.result import Result
from exampp.report.table import Column, Table, Value
from exampp.stats.resampling import LEVEL

_P = Column("p", 5)
_TITLE = 80
"""Characters of a query's text above its items."""


@dataclass(frozen=True, slots=True, repr=False)
class QueryComparison(Result):
    """Two systems on one query: an item that only the second covers comes first.

    Items are covered by a passage among the first `k` that is rated `threshold` or better.
    """

    query_id: str
    query_text: str
    first: str
    second: str
    threshold: int
    k: int
    items: tuple[PairedItem, ...]

    def count(self, covered_by: CoveredBy) -> int:
        """How many items are covered so."""
        return sum(item.covered_by == covered_by for item in self.items)

    def tables(self) -> Mapping[str, Table]:
        """Two rows an item, one a system, with whole quotes."""
        return {"items": paired(self, for_people=True)}

    def records(self) -> Mapping[str, Table]:
        """The same with ids."""
        return {"items": paired(self, for_people=False)}


def total(found: SystemDifference) -> Table:
    """One row: both means, the difference with its paired interval, p-value, queries won."""
    pair = found.pair
    difference = pair.difference
    row: list[Value] = [
        _name(found),
        found.means[0].mean,
        found.means[1].mean,
        difference.value,
        difference.low,
        difference.high,
        pair.p,
        pair.effect.value,
        pair.queries,
        *_counts(found),
    ]
    columns: list[str | Column] = [
        "measure",
        found.first,
        found.second,
        "difference",
        "95% low",
        "high",
        _P,
        "d_z",
        "queries",
        "better",
        "worse",
        "equal",
    ]
    columns += [Column(name, for_machines=True) for name in PROVENANCE]
    row += provenance(found.board)
    title = f"{found.second} compared with {found.first}, {caption(found.board)}"
    return Table.of(columns, [row], title, [*found.board.notes, *_notes(found)])


def verdict(found: SystemDifference, alpha: float = 0.05) -> str:
    """What the comparison says, in one sentence: which is better, and whether it can be told."""
    pair, (first, second) = found.pair, (found.first, found.second)
    difference = pair.difference.value
    if difference is None or pair.p is None:
        reason = pair.difference.reason or "fewer than 2 queries count for both systems"
        return f"Whether {second} or {first} is better is undefined, because {reason}."
    if difference == 0:
        same = " and returned the same passages" * (pair.difference.high == 0)
        return f"{second} and {first} have the same mean{same}."
    more = "more" if difference > 0 else "less"
    here = counted(pair.queries, "query")
    if pair.p_mean is not None and pair.p_mean <= alpha:
        told = f"; the interval shows it {OVER_ALL}"
    elif pair.p <= alpha:
        told = f"; they do not behave alike, but {here} do not show which has the higher mean"
    else:
        told = "; the test does not show that they behave differently"
    return f"{second} has {abs(difference):.3f} {more} {_name(found)} than {first} on {here}{told}."


def by_query(found: SystemDifference, texts: Mapping[str, str], width: int | None = None) -> Table:
    """A row a query, the largest difference first; texts of `width` characters at most."""
    rows = [
        [
            query.query_id,
            brief(texts.get(query.query_id, ""), width),
            query.first,
            query.second,
            query.difference,
            query.gained,
            query.lost,
        ]
        for query in found.queries
    ]
    columns = ["query_id", "query", found.first, found.second, "difference", "gained", "lost"]
    return Table.of(columns, rows, f"{_name(found)} by query, largest differences first")


def by_item(found: SystemDifference, texts: ComparedTexts, width: int | None = None) -> Table:
    """A row an item gained or lost, query by query.

    Texts have `width` characters at most; then the query's text stands in for ids of items, and
    the notes say what all quotes are.
    """
    made = [
        _item_row(change, texts.quotes.get(change, NO_QUOTE), width) for change in found.changes
    ]
    sources = {texts.quotes.get(change, NO_QUOTE).source for change in found.changes}
    names = list(_ITEM_COLUMNS)
    notes = []
    if width is not None:
        names.remove("item_id")
        for row in made:
            query_id = str(row["query_id"])
            row["query_id"] = _titled(query_id, texts.queries.get(query_id, ""))
        if len(sources - {""}) == 1:
            names.remove("quoted")
            notes.append(_QUOTED[min(sources - {""})])
    if "" in sources:
        silent = sum(not texts.quotes.get(change, NO_QUOTE).source for change in found.changes)
        notes.append(
            f"No quote for {counted(silent, 'item')}: the text of the item or of the passage is "
            "not known, or they have no word in common. A graded file knows items by their ids "
            "alone: name a bank."
        )
    return Table.of(
        names,
        [[row[name] for name in names] for row in made],
        f"Items that {found.second} gains or loses in its first {counted(found.k, 'passage')}, "
        f"rated {found.threshold} or better",
        notes,
        grouped=width is not None,
    )


def paired(found: QueryComparison, *, for_people: bool) -> Table:
    """Two rows an item, one a system: its best passage for it, with the whole quote."""
    rows: list[list[Value]] = []
    for item in found.items:
        covers = _COVERED_BY[item.covered_by].format(first=found.first, second=found.second)
        for system, best in ((found.first, item.first), (found.second, item.second)):
            rows.append(_paired_row(item, covers, system, best))
    columns = ["item", "item_id", "covered_by", "system", "rank", "rating", "passage_id"]
    columns += ["quote", "quoted"]
    kept = [at for at, name in enumerate(columns) if not (for_people and name in _FOR_MACHINES)]
    if for_people:
        for row in rows:
            row[0] = f"{row[0]} ({row[2]})"
    query = _titled(found.query_id, found.query_text)
    notes = [
        f"Covered is an item by a passage among the first {found.k} that is rated "
        f"{found.threshold} or better; of each system the best rated passage is shown.",
        f"Only {found.second} covers {found.count('second')} of "
        f"{counted(len(found.items), 'item')}, only {found.first} {found.count('first')}, "
        f"both {found.count('both')}, neither {found.count('neither')}.",
    ]
    if unknown := found.count("unknown"):
        notes.append(f"{counted(unknown, 'item')} unknown: {_NO_GRADE}.")
    return Table.of(
        [columns[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        f"{found.second} compared with {found.first} on {query}, item by item",
        notes,
        grouped=for_people,
    )


_NO_GRADE = "a cell of a system that does not cover them has no grade"
_FOR_MACHINES = ("item_id", "covered_by", "quoted")
_COVERED_BY: Mapping[CoveredBy, str] = {
    "second": "only {second}",
    "first": "only {first}",
    "unknown": "unknown",
    "both": "both",
    "neither": "neither",
}


def _paired_row(
    item: PairedItem, covers: str, system: str, best: BestPassage | None
) -> list[Value]:
    named: list[Value] = [brief(item.text or item.item_id, None), item.item_id, covers, system]
    if best is None:
        return [*named, None, None, None, "", None]
    quote = best.quote
    return [
        *named,
        *(best.rank, best.rating, best.passage_id),
        *(brief(quote.text, None), quote.source or None),
    ]


_ITEM_COLUMNS = (
    *("query_id", "item_id", "item", "change", "passage_id", "rank", "rating", "other_best"),
    *("quote", "quoted"),
)
_QUOTED = {
    "answer": "Quotes are the answers that the grader took from the passages.",
    "sentence": "Quotes are the sentences of the passages that come closest to the items.",
}


def _item_row(change: CoverChange, quote: Quote, width: int | None) -> dict[str, Value]:
    return {
        "query_id": change.query_id,
        "item_id": change.item_id,
        "item": brief(quote.item or change.item_id, width),
        "change": change.move,
        "passage_id": change.passage_id,
        "rank": change.rank,
        "rating": change.rating,
        "other_best": change.other_best,
        "quote": brief(quote.text, width),
        "quoted": quote.source or None,
    }


def _titled(query_id: str, text: str) -> str:
    return f"{query_id} {brief(text, _TITLE)}".rstrip()


def brief(text: str, width: int | None) -> str:
    """The text in one line, cut to a width if there is one."""
    line = " ".join(text.split())
    if width is None or len(line) <= width:
        return line
    return line[: width - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _name(found: SystemDifference) -> str:
    return heading(str(found.column.measure), found.column.min_rating)


def _counts(found: SystemDifference) -> tuple[Value, Value, Value]:
    """Queries on which the second is better, worse, and as good."""
    if found.queries_won is None:
        return None, None, None
    better, equal, worse = found.queries_won
    return better, worse, equal


def _notes(found: SystemDifference) -> Iterator[str]:
    moves = [change.move for change in found.changes]
    gained, lost = moves.count("gained"), moves.count("lost")
    yield (
        f"{found.second} covers {counted(gained, 'item')} that {found.first} does not, and lacks "
        f"{lost} that it covers, of {found.items} (first {counted(found.k, 'passage')}, rated "
        f"{found.threshold} or better)."
    )
    if unknown := len(moves) - gained - lost:
        yield f"{counted(unknown, 'item')} neither gained nor lost, but unknown: {_NO_GRADE}."
    pair = found.pair
    exact = "all sign patterns" if pair.exact else "random sign patterns"
    how = "Gaffke's limits" if found.column.value_range else "Student's: no range is known"
    yield (
        f"The interval is that of the mean difference {OVER_ALL} ({how}), p that of the paired "
        f"randomisation test ({exact}), two-sided. {ALIKE}"
    )
    if found.column.value_range and pair.queries:
        yield f"{not_excluded(pair.queries, LEVEL)}."
    yield from added_up(found.column.measure)
    uncounted = sum(query.difference is None for query in found.queries)
    if uncounted:
        yield f"Left out, as they do not count for both systems: {counted(uncounted, 'query')}."
    for what, reason in (
        ("The difference", pair.difference.reason),
        ("The interval of the difference", pair.difference.no_interval),
        ("The effect size d_z", pair.effect.reason),
    ):
        if reason:
            yield f"{what} is undefined, because {reason}."
    if pair.p is None:
        yield "p is undefined, because fewer than 2 queries count for both systems."
