"""The difference of two systems as tables: in total, by query, by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exampp.analysis.compare import ComparedTexts, CoverChange, Quote, SystemComparison
from exampp.analysis.phrases import added_up, counted
from exampp.evaluate.tables import PROVENANCE, caption, heading, provenance
from exampp.report.table import Column, Table, Value

_P = Column("p", 5)
_NOTHING = Quote("", "", "")
_TITLE = 80
"""Characters of a query's text above its items."""


def total(found: SystemComparison) -> Table:
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


def by_query(found: SystemComparison, texts: Mapping[str, str], width: int | None = None) -> Table:
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


def by_item(found: SystemComparison, texts: ComparedTexts, width: int | None = None) -> Table:
    """A row an item gained or lost, query by query.

    Texts have `width` characters at most; then the query's text stands in for ids of items, and
    the notes say what all quotes are.
    """
    made = [
        _item_row(change, texts.quotes.get(change, _NOTHING), width) for change in found.changes
    ]
    sources = {texts.quotes.get(change, _NOTHING).source for change in found.changes}
    names = list(_ITEM_COLUMNS)
    notes = []
    if width is not None:
        names.remove("item_id")
        for row in made:
            row["query_id"] = _titled(str(row["query_id"]), texts)
        if len(sources - {""}) == 1:
            names.remove("quoted")
            notes.append(_QUOTED[min(sources - {""})])
    if "" in sources:
        silent = sum(not texts.quotes.get(change, _NOTHING).source for change in found.changes)
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


def _titled(query_id: str, texts: ComparedTexts) -> str:
    return f"{query_id} {brief(texts.queries.get(query_id, ''), _TITLE)}".rstrip()


def brief(text: str, width: int | None) -> str:
    """The text in one line, cut to a width if there is one."""
    line = " ".join(text.split())
    if width is None or len(line) <= width:
        return line
    return line[: width - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _name(found: SystemComparison) -> str:
    return heading(str(found.column.measure), found.column.min_rating)


def _counts(found: SystemComparison) -> tuple[Value, Value, Value]:
    """Queries on which the second is better, worse, and as good."""
    pair = found.pair
    if pair.won is None or pair.lost is None:
        return None, None, None
    better, worse = round(pair.won * pair.queries), round(pair.lost * pair.queries)
    return better, worse, pair.queries - better - worse


def _notes(found: SystemComparison) -> Iterator[str]:
    moves = [change.move for change in found.changes]
    gained, lost = moves.count("gained"), moves.count("lost")
    yield (
        f"{found.second} covers {counted(gained, 'item')} that {found.first} does not, and lacks "
        f"{lost} that it covers, of {found.items} (first {counted(found.k, 'passage')}, rated "
        f"{found.threshold} or better)."
    )
    pair = found.pair
    exact = "all sign patterns" if pair.exact else "random sign patterns"
    yield (
        "The interval is that of the paired studentised bootstrap over queries, p that of the "
        f"paired randomisation test ({exact}), two-sided."
    )
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
