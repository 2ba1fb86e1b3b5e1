"""The difference of two systems, explained by query, item and covering passage.

The difference is second minus first system: an item is gained where the second covers it and the
first does not, and lost in the opposite case. It is unknown, and neither gained nor lost, where the
system that does not cover it has an ungraded cell for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from exampp.analysis.phrases import OVER_ALL, added_up, gaps, unseen_failures
from exampp.analysis.significance import compared_pairs, without_rounding
from exampp.errors import InputError
from exampp.measures.board import PROVENANCE_COLUMNS, Leaderboard, caption, provenance_values
from exampp.measures.cover import items_read
from exampp.measures.exams import Indices, QueryExam, SubtopicChoice, exams
from exampp.measures.leaderboard import evaluate, missing_prerequisite
from exampp.measures.names import Measure, as_measures
from exampp.measures.values import Mean, MeasureColumn
from exampp.prompts import answer_text, load_grading_prompt, names
from exampp.prompts.words import best_span
from exampp.records.decisions import effective_decision
from exampp.records.gradebook import MISSING, Dossier, Gradebook, check_testable
from exampp.records.turns import question_of
from exampp.records.wording import counted, cut_text, signed, suggest
from exampp.results.notes import note
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Readers, programs_only
from exampp.sanitize import check_integer
from exampp.stats.estimate import LEVEL, Estimate
from exampp.stats.significance import (
    TOO_FEW_SHARED_QUERIES,
    Pair,
    compare_pairs,
    fewest_differing,
)

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

CoveredBy = Literal["second", "first", "unknown", "both", "neither"]
ORDER: tuple[CoveredBy, ...] = ("second", "first", "unknown", "both", "neither")
"""In which order items are shown: those first that make the difference."""


class Quote(NamedTuple):
    """The text behind a rating: the answer taken from the passage, or its closest sentence.

    `source` is "answer", "sentence", or "" if there is nothing to quote.
    """

    text: str
    source: str


NO_QUOTE = Quote("", "")


class BestPassage(NamedTuple):
    """A system's best rated passage for an item, the first among equals; ranks start at 1."""

    passage_id: str
    rank: int
    rating: int
    quote: Quote = NO_QUOTE


Move = Literal["gained", "lost", "unknown gain", "unknown loss"]
"""The last two: the other system has a cell without a grade, and may cover the item too."""


@dataclass(frozen=True, slots=True)
class PairedItem:
    """An item as two systems cover it; None where no passage of a system has a grade for it.

    `covered_by` is unknown where an ungraded cell could change it; `move` is the effect of the item
    on the difference (None: both systems cover it, or neither does). `exam_id` is the query, or
    `query/subtopic` where these are separate exams. `weight` is the item's share of its bank.
    """

    query_id: str
    exam_id: str
    item_id: str
    text: str
    weight: float
    covered_by: CoveredBy
    move: Move | None
    first: BestPassage | None
    second: BestPassage | None

    @property
    def ends(self) -> tuple[BestPassage | None, BestPassage | None]:
        """The best passage of the system that gains or loses the item, and of the other one."""
        gained = self.move in ("gained", "unknown gain")
        return (self.second, self.first) if gained else (self.first, self.second)


_COVERED: Mapping[tuple[bool, ...], tuple[CoveredBy, Move | None]] = {
    (False, True): ("second", "gained"),
    (True, False): ("first", "lost"),
    (True, True): ("both", None),
    (False, False): ("neither", None),
}
_UNKNOWN: Mapping[Move | None, Move | None] = {
    "gained": "unknown gain",
    "lost": "unknown loss",
    None: None,
}


def paired_items(exam: QueryExam, threshold: int, k: int, measure: Measure) -> Iterator[PairedItem]:
    """Yield the items of a two-system exam that a measure reads, without texts."""
    query = exam.query
    weights = query.weights[exam.items]
    sides = [_best_passages(exam, read, k) for read in exam.passages]
    counts = items_read(measure, weights)
    for at in np.flatnonzero(counts).tolist():
        (first, _), (second, _) = both = [side[at] for side in sides]
        covers = tuple(best is not None and best.rating >= threshold for best, _ in both)
        covered_by, move = _COVERED[covers]
        if any(missing and not one for one, (_, missing) in zip(covers, both, strict=True)):
            covered_by, move = "unknown", _UNKNOWN[move]
        yield PairedItem(
            query_id=query.query_id,
            exam_id=exam.exam_id,
            item_id=query.item_ids[exam.items[at]],
            text="",
            weight=float(weights[at] / np.abs(weights[counts]).sum()),
            covered_by=covered_by,
            move=move,
            first=first,
            second=second,
        )


def _best_passages(
    exam: QueryExam, read: Indices | None, k: int
) -> list[tuple[BestPassage | None, bool]]:
    """Return per item the best of a system's first k passages, and whether a cell is ungraded."""
    passages = np.empty(0, np.int32) if read is None else read[:k]
    if not len(passages):
        return [(None, False)] * len(exam.items)
    ratings = exam.query.ratings[np.ix_(passages, exam.items)]
    ranks, missing = ratings.argmax(axis=0), (ratings == MISSING).any(axis=0)
    best = ratings.max(axis=0).tolist()
    ids = [exam.query.passage_ids[passages[rank]] for rank in ranks]
    return [
        (None if rating == MISSING else BestPassage(one, rank + 1, rating), gap)
        for one, rank, rating, gap in zip(ids, ranks.tolist(), best, missing.tolist(), strict=True)
    ]


def cell(dossier: Dossier, item_id: str, passage_id: str) -> tuple[int, int] | None:
    """Return the row and column of a passage and an item in a dossier; None if one is unknown."""
    items, passages = dossier.grades.item_ids, dossier.grades.passage_ids
    if item_id not in items or passage_id not in passages:
        return None
    return passages.index(passage_id), items.index(item_id)


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: values of both systems and their difference (None where it does not count).

    `gained`, `lost` and `unknown` count items, see `PairedItem`.
    """

    query_id: str
    first: float | None
    second: float | None
    difference: float | None
    gained: int
    lost: int
    unknown: int = 0


ReadDossiers = Callable[[Sequence[str]], Iterable[Dossier]]
"""Reads the texts and grades of some queries."""
QUERIES = 5
"""Queries that are explained to people by default."""
_NAMED = 10
_TITLE = 80
"""Characters of a query's text above its items."""
_ALPHA = 0.05
_COVERED_BY: Mapping[CoveredBy, str] = {
    "second": "only {second}",
    "first": "only {first}",
    "unknown": "unknown",
    "both": "both",
    "neither": "neither",
}


@dataclass(frozen=True, slots=True, repr=False)
class QueryComparison(Result):
    """Two systems on one query; items that only the second covers come first.

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
        """Count the items with this kind of coverage."""
        return sum(item.covered_by == covered_by for item in self.items)

    def tables(self) -> Mapping[str, Table]:
        """Return two rows per item, one per system: its best passage, with the whole quote."""
        columns: list[str | Column] = [
            Column("item", readers="people"),
            *programs_only("item", "item_id", "covered_by"),
            *("system", "rank", "rating", "passage_id", "quote"),
            *programs_only("quoted"),
        ]
        rows: list[list[Cell]] = []
        for item in self.items:
            covers = _COVERED_BY[item.covered_by].format(first=self.first, second=self.second)
            name = shorten(item.text or item.item_id, None)
            for system, best in ((self.first, item.first), (self.second, item.second)):
                evidence: Sequence[Cell] = (None, None, None, "", None)
                if best is not None:
                    text, source = shorten(best.quote.text, None), best.quote.source or None
                    evidence = (best.rank, best.rating, best.passage_id, text, source)
                rows.append([f"{name} ({covers})", name, item.item_id, covers, system, *evidence])
        headline = (
            f"Only {self.second} covers {self.count('second')} of "
            f"{counted(len(self.items), 'item')}, only {self.first} {self.count('first')}, "
            f"both {self.count('both')}, neither {self.count('neither')}."
        )
        notes = [note("covered-by", k=counted(self.k, "passage"), threshold=self.threshold)]
        if unknown := self.count("unknown"):
            notes.append(note("items-unknown", items=counted(unknown, "item")))
        query = _titled(self.query_id, self.query_text)
        caption = f"{self.second} compared with {self.first} on {query}, item by item"
        return {"items": Table.of(columns, rows, caption, notes, grouped=True, verdict=headline)}


@dataclass(frozen=True, slots=True, repr=False)
class SystemComparison(Result):
    """Two systems under one measure; `pair.difference` is second - first.

    `queries` go from the largest difference to the smallest, `changes` by query in that order.
    `board` is the leaderboard that the difference is taken from, `book` holds the grades behind
    it, and `read` reads the texts of queries.
    """

    first: str
    second: str
    column: MeasureColumn
    threshold: int
    k: int
    means: tuple[Mean, Mean]
    pair: Pair
    queries: tuple[QueryDifference, ...]
    changes: tuple[PairedItem, ...]
    items: int
    board: Leaderboard
    book: Gradebook = field(compare=False)
    read: ReadDossiers = field(compare=False)

    @property
    def headline(self) -> str:
        """The difference of the systems and its significance, in words."""
        pair, first, second = self.pair, self.first, self.second
        difference = pair.difference.value
        if difference is None or pair.p is None:
            reason = pair.difference.reason or TOO_FEW_SHARED_QUERIES
            return f"The difference of {second} and {first} is undefined, because {reason}."
        if (ends := self.possible_difference) is not None:
            size = f"{signed(difference, 3)} {self.column.name}, {second} compared with {first}"
            allowed = f"missing grades allow {signed(ends[0], 3)} to {signed(ends[1], 3)}"
            return f"Partial: {size}; {allowed}. Grade the rest first: exampp grade."
        if difference == 0:
            same = " and returned the same passages" * (pair.difference.high == 0)
            return f"{second} and {first} have the same mean{same}."
        more, queries = "more" if difference > 0 else "less", counted(pair.queries, "query")
        size = f"{second} has {abs(difference):.3f} {more} {self.column.name} than {first}"
        if abs(difference) < 0.0005:
            size = f"{second} and {first} differ by less than 0.001 in {self.column.name}"
        size += f" on {queries}"
        if pair.p_mean is not None and pair.p_mean <= _ALPHA:
            return f"Significant: {size}; the interval shows it {OVER_ALL}."
        if pair.p <= _ALPHA:
            return f"{size}. They do not behave alike, but the higher mean is not shown {OVER_ALL}."
        better, _, worse = self.queries_won or (0, 0, 0)
        few = fewest_differing(_ALPHA)
        needed = f", and at least {few} must differ" * (pair.exact and better + worse < few)
        return f"Not significant: {size}. They differ on {better + worse} of them{needed}."

    @property
    def possible_difference(self) -> tuple[float, float] | None:
        """The lowest and highest difference over all missing grades; None if few are missing."""
        bounds = dict(zip(self.board.column_systems, self.column.bounds(), strict=True))
        a, b = bounds[self.first], bounds[self.second]
        if a is None or b is None or (a[0] == a[1] and b[0] == b[1]):
            return None
        return b[0] - a[1], b[1] - a[0]

    def plot(self, queries: int = 40) -> Figure:
        """Plot the difference of the systems on every query, the largest first.

        Args:
            queries: At most so many queries with the largest differences, on either side.
        """
        from exampp.results.plots.dots import intervals_figure
        from exampp.results.plots.figure import Spread

        known = {one.query_id: one.difference for one in self.queries if one.difference is not None}
        shown = list(known)[:queries]
        texts = {one.query_id: one.query_text for one in self.read(shown)}
        rows = [
            Spread(_titled(one, texts.get(one, "")), known[one], *sorted((0.0, known[one])))
            for one in shown
        ]
        quantity = f"{self.column.name} of {self.second} minus {self.first}"
        few = f"{len(rows)} of {len(known)} queries: the largest differences"
        return intervals_figure(
            rows,
            quantity,
            f"{self.second} compared with {self.first} by query",
            few if len(rows) < len(known) else "",
            name="comparison",
            draft=self.board.grader.is_draft,
            zero=True,
        )

    @property
    def queries_won(self) -> tuple[int, int, int] | None:
        """Return on how many queries the second is better, equal and worse; None: undefined."""
        pair = self.pair
        if pair.won is None or pair.lost is None:
            return None
        better, worse = round(pair.won * pair.queries), round(pair.lost * pair.queries)
        return better, pair.queries - better - worse, worse

    def on(self, query_id: str) -> QueryComparison:
        """Return one query item by item, with whole quotes. InputError for an unknown query."""
        query = next((one for one in self.book.queries if one.query_id == query_id), None)
        if query is None:
            known = [one.query_id for one in self.book.queries]
            raise InputError(
                f"unknown query {query_id!r}",
                hint=suggest(query_id, known) or f"Queries: {_some(known)}",
            )
        both = _only(replace(self.book, queries=(query,)), (self.first, self.second))
        dossier = next(iter(self.read([query_id])), None)
        if dossier is not None and self.book.left_out.cells:
            # what people decided is not what is compared
            dossier = replace(dossier, decisions={})
        found = [
            _with_texts(item, dossier)
            for exam in exams(both, self.board.subtopics, avoided=True)
            for item in paired_items(exam, self.threshold, self.k, self.column.measure)
        ]
        return QueryComparison(
            query_id=query_id,
            query_text=dossier.query_text if dossier else "",
            first=self.first,
            second=self.second,
            threshold=self.threshold,
            k=self.k,
            items=tuple(sorted(found, key=lambda item: ORDER.index(item.covered_by))),
        )

    def tables(self, queries: int | None = QUERIES, width: int | None = 70) -> dict[str, Table]:
        """Return totals, queries, and items with quotes for the largest differences.

        `queries` is their number, None for all; texts are cut to `width` characters.
        """
        shown = self.shortened(queries)
        known = {query.query_id for query in self.book.queries}
        named = [*(one.query_id for one in shown.changes), *(one.query_id for one in shown.queries)]
        ids = [query_id for query_id in dict.fromkeys(named) if query_id in known]
        dossiers = {dossier.query_id: dossier for dossier in self.read(ids)}
        texts = {key: question_of(dossier.query_text) for key, dossier in dossiers.items()}
        changes = [_with_texts(one, dossiers.get(one.query_id)) for one in shown.changes]
        return {
            "total": total(self),
            "queries": by_query(shown, texts, width),
            "items": by_item(replace(shown, changes=tuple(changes)), texts, width),
        }

    def records(self) -> dict[str, Table]:
        """Return the same tables for all queries, with whole texts."""
        return self.tables(None, None)

    def shortened(self, queries: int | None) -> SystemComparison:
        """Return the comparison with only so many queries and their items; None: all of them."""
        largest = self.queries[:queries]
        known = {query.query_id for query in largest}
        changes = (one for one in self.changes if {one.query_id, one.exam_id} & known)
        return self if queries is None else replace(self, queries=largest, changes=tuple(changes))


def total(comparison: SystemComparison) -> Table:
    """Return one row: both means, the difference with its paired interval, p-value, queries won."""
    pair, difference = comparison.pair, comparison.pair.difference
    better, equal, worse = comparison.queries_won or (None, None, None)
    row: list[Cell] = [
        *(comparison.column.name, comparison.means[0].mean, comparison.means[1].mean),
        *(difference.value, difference.low, difference.high, pair.p, pair.effect.value),
        *(pair.queries, better, worse, equal, *provenance_values(comparison.board)),
    ]
    # people see no test of scores that missing grades may change: the verdict has the limits
    tested: Readers = "programs" if comparison.possible_difference else "all"
    columns: list[str | Column] = [
        *("measure", comparison.first, comparison.second, "difference"),
        *(Column(name, readers=tested) for name in ("95% low", "high")),
        *(Column("p", 5, readers=tested), Column("d_z", readers=tested), "queries"),
        *(Column(name, readers=tested) for name in ("better", "worse", "equal")),
        *PROVENANCE_COLUMNS,
    ]
    title = f"{comparison.second} compared with {comparison.first}, {caption(comparison.board)}"
    return Table.of(
        columns,
        [row],
        title,
        [*_notes(comparison), *comparison.board.notes],
        verdict=comparison.headline,
    )


def by_query(
    comparison: SystemComparison, texts: Mapping[str, str], width: int | None = None
) -> Table:
    """Return a row per query, the largest difference first; texts are cut to `width` characters."""
    partial = any(query.unknown for query in comparison.queries)
    rows = [
        [
            *(query.query_id, shorten(texts.get(query.query_id, ""), width), query.first),
            *(query.second, query.difference, query.gained, query.lost),
            *[query.unknown] * partial,
        ]
        for query in comparison.queries
    ]
    columns: list[str | Column] = [
        *("query_id", "query", comparison.first, comparison.second),
        *("difference", "gained", "lost"),
        *[Column("unknown", readers="people")] * partial,
    ]
    return Table.of(columns, rows, f"{comparison.column.name} by query, largest differences first")


def by_item(
    comparison: SystemComparison, texts: Mapping[str, str], width: int | None = None
) -> Table:
    """Return a row per item gained or lost, query by query.

    Texts are cut to `width` characters; then the query's text replaces ids of items, and the notes
    explain the source of the quotes.
    """
    rows: list[list[Cell]] = []
    sources: list[str] = []
    for change in comparison.changes:
        best, other = change.ends
        if best is None:
            continue
        title = _titled(change.query_id, texts.get(change.query_id, ""))
        source = best.quote.source
        sources.append(source)
        rows.append(
            [
                *(change.query_id if width is None else title, change.item_id),
                shorten(change.text or change.item_id, width),
                *(f"{change.move}{', to avoid' * (change.weight < 0)}", *best[:3]),
                *(other and other.rating, shorten(best.quote.text, width), source or None),
            ]
        )
    notes: list[str] = []
    hidden = set() if width is None else {"item_id"}
    kinds = {*sources} - {""}
    if width is not None and len(kinds) == 1:
        hidden.add("quoted")
        notes.append(note(f"quoted-{min(kinds)}"))
    if silent := sources.count(""):
        notes.append(note("not-quoted", items=counted(silent, "item")))
    names = ("query_id", "item_id", "item", "change", "passage_id", "rank", "rating", "other_best")
    columns = (*names, "quote", "quoted")
    shown = [at for at, name in enumerate(columns) if name not in hidden]
    return Table.of(
        [columns[at] for at in shown],
        [[row[at] for at in shown] for row in rows],
        f"Items that {comparison.second} gains or loses in its first "
        f"{counted(comparison.k, 'passage')}, rated {comparison.threshold} or better",
        notes,
        grouped=width is not None,
    )


def _titled(query_id: str, text: str) -> str:
    return f"{query_id} {shorten(question_of(text), _TITLE)}".rstrip()


def shorten(text: str, width: int | None) -> str:
    """Return the text in one line, cut to `width` if it is set."""
    return " ".join(text.split()) if width is None else cut_text(text, width)


def _notes(comparison: SystemComparison) -> Iterator[str]:
    moves = [change.move for change in comparison.changes]
    gained, lost = moves.count("gained"), moves.count("lost")
    yield note(
        "items-gained",
        second=comparison.second,
        first=comparison.first,
        gained=counted(gained, "item"),
        lost=lost,
        items=comparison.items,
        k=counted(comparison.k, "passage"),
        threshold=comparison.threshold,
    )
    if unknown := len(moves) - gained - lost:
        yield note("items-unknown", items=counted(unknown, "item"))
    pair = comparison.pair
    if uncounted := sum(query.difference is None for query in comparison.queries):
        yield note("queries-not-shared", queries=counted(uncounted, "query"))
    column = comparison.column
    if column.values.clipped and any(one.mean == 0 for one in comparison.means):
        yield note("mean-clipped", measure=column.measure)
    exact = "all sign patterns" if pair.exact else "random sign patterns"
    if comparison.column.value_range and pair.queries:
        yield unseen_failures(pair.queries, LEVEL)
    how = "Gaffke's limits" if comparison.column.value_range else "Student's: no known range"
    yield note("pair-method", how=how, exact=exact)
    yield from added_up(comparison.column.measure)
    p = Estimate(pair.p, reason="" if pair.p is not None else TOO_FEW_SHARED_QUERIES)
    yield from gaps([("difference", pair.difference), ("d_z", pair.effect), ("p", p)])


def compare_systems(
    gradebook: Gradebook,
    first: str,
    second: str,
    measure: Measure | str = "Cover",
    *,
    min_rating: int | None = None,
    k: int | None = None,
    subtopics: SubtopicChoice = "auto",
    seed: int = 0,
    read: ReadDossiers = lambda _: (),
) -> SystemComparison:
    """Compare two systems of a gradebook.

    Items count as covered from `min_rating` on (by default the grader's own), by the first `k`
    passages: as many as the measure reads, or 20 where it has no cutoff.

    Raises:
        InputError: A system is unknown, the two are the same, a number makes no sense, or `k`
            is not the cutoff of the measure; there are no queries, items, grades or rankings;
            cells are skipped, or not all queries are graded.
    """
    if missing := missing_prerequisite(gradebook):
        raise InputError(missing.cause, hint=missing.hint)
    check_testable(gradebook)
    parsed = as_measures([measure])[0]
    if None not in (k, parsed.cutoff) and k != parsed.cutoff:
        raise InputError(
            f"{parsed} reads {parsed.cutoff} passages, but k is {k}",
            hint=f"Leave out k, or use {parsed.name}@{k}",
        )
    k = parsed.cutoff or (20 if k is None else k)
    check_integer("k", k, 1)
    parsed = parsed.cut(k) if parsed.kind.cover else parsed
    threshold = gradebook.grader.threshold(min_rating)
    board = evaluate(gradebook, [parsed], [threshold], subtopics=subtopics)
    column = board.columns[0]
    rows = [_row(gradebook.systems, name) for name in (first, second)]
    check_integer("the seed", seed, 0)
    if first == second:
        raise InputError(f"{first!r} is compared with itself", hint="Name two systems")
    values, counts = column.values.values[rows], column.values.counts[rows]
    (pair,) = compared_pairs(
        gradebook,
        (first, second),
        column,
        compare_pairs(
            values,
            counts,
            np.array([[1, 0]]),
            within=column.difference_range,
            seed=seed,
        ),
    )
    paired = exams(_only(gradebook, (first, second)), board.subtopics, avoided=True)
    items = [list(paired_items(exam, threshold, k, parsed)) for exam in paired]
    changed = [change for of_exam in items for change in _changes(of_exam)]
    means = column.values.averages()
    queries = _queries(column, rows, chain.from_iterable(items))
    place = {query.query_id: index for index, query in enumerate(queries)}
    return SystemComparison(
        first=first,
        second=second,
        column=column,
        threshold=threshold,
        k=k,
        means=(means[rows[0]], means[rows[1]]),
        pair=pair,
        queries=queries,
        changes=tuple(sorted(changed, key=lambda change: _place(place, change))),
        items=sum(int(items_read(parsed, query.weights).sum()) for query in gradebook.queries),
        board=board,
        book=gradebook,
        read=read,
    )


def _changes(items: Iterable[PairedItem]) -> list[PairedItem]:
    """Return the items that make a difference, gained ones first."""
    return sorted((one for one in items if one.move), key=lambda one: one.ends[0] is one.first)


def quote(dossier: Dossier, passage: int, item: int) -> Quote:
    """Return a quote from a passage about an item: the grader's answer, else a sentence.

    A cell that people decided is quoted by a sentence, as their rating is not the grader's.
    """
    entry = dossier.items[item]
    answer = (
        ""
        if effective_decision(dossier.decisions.get((passage, item), ()))
        else _answer(dossier, passage, item)
    )
    if answer:
        return Quote(answer, "answer")
    text = dossier.texts[passage]
    start, end = best_span(text.text, " ".join([entry.text, *entry.answers])) if text else (0, 0)
    sentence = text.text[start:end] if text else ""
    return Quote(sentence, "sentence" if sentence else "")


def _with_texts(item: PairedItem, dossier: Dossier | None) -> PairedItem:
    """Return the item with its text and quotes of the best passages, if they are known."""
    if dossier is None or item.item_id not in dossier.grades.item_ids:
        return item
    at = dossier.grades.item_ids.index(item.item_id)

    def quoted(best: BestPassage | None) -> BestPassage | None:
        # the closest sentence of a passage with the lowest rating is not about the item
        says = best is not None and best.rating > dossier.grader.lowest
        place = cell(dossier, item.item_id, best.passage_id) if best and says else None
        return best._replace(quote=quote(dossier, *place)) if best and place else best

    return replace(
        item, text=dossier.items[at].text, first=quoted(item.first), second=quoted(item.second)
    )


def _answer(dossier: Dossier, passage: int, item: int) -> str:
    grade = dossier.automatic.get((passage, item))
    if grade is None:
        return ""
    extracted = (grade.detail or {}).get("answer")
    if isinstance(extracted, str):
        return extracted
    prompt = dossier.grader.prompt
    extracts = prompt in names() and load_grading_prompt(prompt).reading == "extraction"
    return answer_text(grade.reply) if extracts and grade.reply else ""


def _row(systems: Sequence[str], name: str) -> int:
    if name not in systems:
        meant = suggest(name, systems) or (f"Systems: {_some(systems)}" if systems else "")
        raise InputError(f"unknown system {name!r}", hint=meant)
    return systems.index(name)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _only(gradebook: Gradebook, systems: tuple[str, str]) -> Gradebook:
    queries = (
        replace(query, rankings=tuple(r for r in query.rankings if r.system in systems))
        for query in gradebook.queries
    )
    return replace(gradebook, queries=tuple(queries), systems=systems)


def _queries(
    column: MeasureColumn,
    rows: Sequence[int],
    items: Iterable[PairedItem],
) -> tuple[QueryDifference, ...]:
    """Return queries by largest difference; those where a system does not count come last."""
    # a subtopic is a separate query for ranking measures, but not for Cover
    counts = Counter(
        (name, kind)
        for item in items
        for name in {item.query_id, item.exam_id}
        for kind in (item.move, item.covered_by)
    )
    differences = []
    for index, query_id in enumerate(column.query_ids):
        first, second = (
            float(column.values.values[row, index]) if column.values.counts[row, index] else None
            for row in rows
        )
        differences.append(
            QueryDifference(
                query_id=query_id,
                first=first,
                second=second,
                difference=None
                if first is None or second is None
                else without_rounding(second - first),
                gained=counts[query_id, "gained"],
                lost=counts[query_id, "lost"],
                unknown=counts[query_id, "unknown"],
            )
        )
    return tuple(sorted(differences, key=_size))


def _size(query: QueryDifference) -> tuple[bool, float, int]:
    difference = query.difference
    return difference is None, -round(abs(difference or 0.0), 10), -(query.gained + query.lost)


def _place(place: Mapping[str, int], change: PairedItem) -> int:
    return place.get(change.exam_id, place.get(change.query_id, len(place)))
