"""The difference of two systems explained: by query, by item, by the passage that covers it.

The difference is that of going from the first system to the second: an item is gained where the
second covers it and the first does not, and lost where it is the other way around. It is neither,
but unknown, where the system that does not cover it has a cell without a grade for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exampp.analysis import compare_tables
from exampp.analysis.compare_items import (
    ORDER,
    BestPassage,
    PairedItem,
    Quote,
    cell,
    has_missing,
    paired_items,
)
from exampp.analysis.compare_records import (
    ComparedTexts,
    CoverChange,
    Move,
    QueryDifference,
    SystemDifference,
)
from exampp.analysis.compare_tables import QueryComparison
from exampp.analysis.significance import compared_pairs, without_rounding
from exampp.errors import InputError
from exampp.evaluate.board import MeasureColumn
from exampp.evaluate.exams import Indices, QueryExam, SubtopicChoice, Subtopics, exams
from exampp.evaluate.lacking import lacking
from exampp.evaluate.leaderboard import evaluate
from exampp.evaluate.measure import Measure, as_measures
from exampp.outside import check_whole
from exampp.prompts import answer_text, load, names
from exampp.prompts.declaration import suggest
from exampp.prompts.spans import best_span
from exampp.records.decisions import effective
from exampp.records.dossier import Dossier
from exampp.records.gradebook import MISSING, Gradebook
from exampp.report.result import Result
from exampp.report.table import Table
from exampp.stats.significance import PERMUTATIONS, compare_pairs

ReadDossiers = Callable[[Sequence[str]], Iterable[Dossier]]
"""Reads the texts and grades of some queries."""
QUERIES = 5
"""So many queries are explained to people unless they say otherwise."""
_NAMED = 10


@dataclass(frozen=True, slots=True, repr=False)
class SystemComparison(Result, SystemDifference):
    """Two systems under one measure, with the grades behind the leaderboard.

    `read` reads the texts of queries.
    """

    book: Gradebook = field(compare=False)
    read: ReadDossiers = field(compare=False)

    def on(self, query_id: str) -> QueryComparison:
        """One query item by item, with whole quotes. InputError for a query that is not known."""
        query = next((one for one in self.book.queries if one.query_id == query_id), None)
        if query is None:
            known = [one.query_id for one in self.book.queries]
            raise InputError(
                f"there is no query {query_id!r}",
                mend=suggest(query_id, known) or f"Queries: {_some(known)}",
            )
        both = _only(replace(self.book, queries=(query,)), (self.first, self.second))
        dossier = next(iter(self.read([query_id])), None)
        if dossier is not None and self.book.left_out.cells:
            # what people decided is not what is compared
            dossier = replace(dossier, decisions={})
        found = [
            _with_texts(item, dossier)
            for exam in exams(both, self.board.subtopics)
            for item in paired_items(exam, self.threshold, self.k)
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
        """In total; by query; by item with quotes: of so many queries, largest differences first.

        None `queries` are all of them; texts have `width` characters at most.
        """
        shown = self.shortened(queries)
        known = {query.query_id for query in self.book.queries}
        named = [*(one.query_id for one in shown.changes), *(one.query_id for one in shown.queries)]
        ids = [query_id for query_id in dict.fromkeys(named) if query_id in known]
        texts = said(shown.changes, self.read(ids))
        return {
            "total": compare_tables.total(self),
            "queries": compare_tables.by_query(shown, texts.queries, width),
            "items": compare_tables.by_item(shown, texts, width),
        }

    def records(self) -> dict[str, Table]:
        """The same of all queries, with whole texts."""
        return self.tables(None, None)

    def shortened(self, queries: int | None) -> SystemComparison:
        """The same with so many queries and their changes alone; None: all of them."""
        kept = self.queries[:queries]
        known = {query.query_id for query in kept}
        changes = (one for one in self.changes if {one.query_id, one.exam_id} & known)
        return self if queries is None else replace(self, queries=kept, changes=tuple(changes))


def compare(
    gradebook: Gradebook,
    first: str,
    second: str,
    measure: Measure | str = "Cover",
    *,
    min_rating: int | None = None,
    k: int | None = None,
    subtopics: SubtopicChoice = "auto",
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    read: ReadDossiers = lambda _: (),
) -> SystemComparison:
    """Compare two systems of a gradebook.

    Items count as covered from `min_rating` on (by default the grader's own), by the first `k`
    passages: as many as the measure reads, or 20 where it has no cutoff.

    Raises:
        InputError: There is no such system, the two are the same, a number makes no sense, or `k`
            is not the cutoff of the measure; there are no queries, items, grades or rankings.
    """
    if missing := lacking(gradebook):
        raise InputError(missing.cause, mend=missing.mend)
    asked = as_measures([measure])[0]
    if asked.weights:
        raise InputError(
            f"{asked} weighs items otherwise than the bank, by which items are explained",
            mend=f"Compare by {asked.name}",
        )
    if None not in (k, asked.cutoff) and k != asked.cutoff:
        raise InputError(
            f"{asked} reads {asked.cutoff} passages, but k is {k}",
            mend=f"Leave out k, or ask for {asked.name}@{k}",
        )
    k = asked.cutoff or (20 if k is None else k)
    check_whole("k", k, 1)
    asked = asked.cut(k) if asked.kind.cover else asked
    threshold = gradebook.grader.threshold(min_rating)
    board = evaluate(gradebook, [asked], [threshold], subtopics=subtopics)
    column = board.columns[0]
    rows = [_row(gradebook.systems, name) for name in (first, second)]
    check_whole("the seed", seed, 0)
    if first == second:
        raise InputError(f"{first!r} is compared with itself", mend="Name two systems")
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
            permutations=permutations,
            seed=seed,
        ),
    )
    changed = list(
        item_changes(gradebook, first, second, threshold=threshold, k=k, subtopics=board.subtopics)
    )
    means = column.values.averages()
    queries = _queries(column, rows, changed)
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
        items=sum(int((query.weights > 0).sum()) for query in gradebook.queries),
        board=board,
        book=gradebook,
        read=read,
    )


def item_changes(
    gradebook: Gradebook,
    first: str,
    second: str,
    *,
    threshold: int,
    k: int,
    subtopics: Subtopics = "query",
) -> Iterator[CoverChange]:
    """The items that one of two systems covers with its first k passages, gained ones first.

    The other one does not cover them, or has a cell without a grade, so that it may.

    With subtopics an item is sat with the ranking for its subtopic, as for Cover.
    """
    for exam in exams(_only(gradebook, (first, second)), subtopics):
        before, after = (None if p is None else p[:k] for p in exam.passages)
        yield from _moved(exam, ("gained", "unknown gain"), after, before, threshold)
        yield from _moved(exam, ("lost", "unknown loss"), before, after, threshold)


def said(changes: Iterable[CoverChange], dossiers: Iterable[Dossier]) -> ComparedTexts:
    """The texts behind some changes; what no dossier knows is left out."""
    wanted: dict[str, list[CoverChange]] = {}
    for change in changes:
        wanted.setdefault(change.query_id, []).append(change)
    found = ComparedTexts({}, {})
    for dossier in dossiers:
        found.queries[dossier.query_id] = dossier.query_text
        items = {item_id: i for i, item_id in enumerate(dossier.grades.item_ids)}
        passages = {passage_id: i for i, passage_id in enumerate(dossier.grades.passage_ids)}
        for change in wanted.get(dossier.query_id, ()):
            item, passage = items.get(change.item_id), passages.get(change.passage_id)
            if item is not None and passage is not None:
                found.quotes[change] = quote(dossier, passage, item)
    return found


def quote(dossier: Dossier, passage: int, item: int) -> Quote:
    """What a passage says of an item: the grader's answer if it gave one, else a sentence.

    A cell that people decided is quoted by a sentence, as their rating is not the grader's.
    """
    asked = dossier.items[item]
    answer = (
        ""
        if effective(dossier.decisions.get((passage, item), ()))
        else _answer(dossier, passage, item)
    )
    if answer:
        return Quote(asked.text, answer, "answer")
    text = dossier.texts[passage]
    start, end = best_span(text.text, " ".join([asked.text, *asked.answers])) if text else (0, 0)
    sentence = text.text[start:end] if text else ""
    return Quote(asked.text, sentence, "sentence" if sentence else "")


def _with_texts(item: PairedItem, dossier: Dossier | None) -> PairedItem:
    """The item with its text and what the best passages say; as it is where nothing is known."""
    if dossier is None or item.item_id not in dossier.grades.item_ids:
        return item
    at = dossier.grades.item_ids.index(item.item_id)

    def quoted(best: BestPassage | None) -> BestPassage | None:
        # what comes closest in a passage of the lowest rating says nothing of the item
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
    kept = (grade.detail or {}).get("answer")
    if isinstance(kept, str):
        return kept
    prompt = dossier.grader.prompt
    extracts = prompt in names() and load(prompt).reading == "extraction"
    return answer_text(grade.reply) if extracts and grade.reply else ""


def _row(systems: Sequence[str], name: str) -> int:
    if name not in systems:
        meant = suggest(name, systems) or (f"Systems: {_some(systems)}" if systems else "")
        raise InputError(f"there is no system {name!r}", mend=meant)
    return systems.index(name)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _only(gradebook: Gradebook, systems: tuple[str, str]) -> Gradebook:
    queries = (
        replace(query, rankings=tuple(r for r in query.rankings if r.system in systems))
        for query in gradebook.queries
    )
    return replace(gradebook, queries=tuple(queries), systems=systems)


def _moved(
    exam: QueryExam,
    moves: tuple[Move, Move],
    by: Indices | None,
    other: Indices | None,
    threshold: int,
) -> Iterator[CoverChange]:
    """Items that the passages of one system cover and those of the other do not, or may."""
    if by is None:
        return
    query = exam.query
    weights = query.weights[exam.items]
    mine = query.ratings[np.ix_(by, exam.items)]
    theirs = query.ratings[np.ix_(np.empty(0, np.intp) if other is None else other, exam.items)]
    best = theirs.max(axis=0, initial=MISSING)
    unknown = has_missing(exam, other, exam.items, len(query.passage_ids))
    only = (mine >= threshold).any(axis=0) & (best < threshold) & (weights > 0)
    for index in np.flatnonzero(only).tolist():
        rank = int((mine[:, index] >= threshold).argmax())
        yield CoverChange(
            query_id=query.query_id,
            exam_id=exam.exam_id,
            item_id=query.item_ids[exam.items[index]],
            move=moves[int(unknown[index])],
            passage_id=query.passage_ids[by[rank]],
            rank=rank + 1,
            rating=int(mine[rank, index]),
            other_best=None if best[index] == MISSING else int(best[index]),
            weight=float(weights[index] / weights.sum()),
        )


def _queries(
    column: MeasureColumn, rows: Sequence[int], changes: Sequence[CoverChange]
) -> tuple[QueryDifference, ...]:
    """Largest difference first; those where a system does not count at the end."""
    moves: dict[tuple[str, Move], int] = {}
    for change in changes:
        # A subtopic is a query of its own for ranking measures, but not for Cover.
        for name in {change.query_id, change.exam_id}:
            moves[name, change.move] = moves.get((name, change.move), 0) + 1
    found = []
    for index, query_id in enumerate(column.query_ids):
        first, second = (
            float(column.values.values[row, index]) if column.values.counts[row, index] else None
            for row in rows
        )
        found.append(
            QueryDifference(
                query_id=query_id,
                first=first,
                second=second,
                difference=None
                if first is None or second is None
                else without_rounding(second - first),
                gained=moves.get((query_id, "gained"), 0),
                lost=moves.get((query_id, "lost"), 0),
            )
        )
    return tuple(sorted(found, key=_size))


def _size(query: QueryDifference) -> tuple[bool, float, int]:
    difference = query.difference
    return difference is None, -round(abs(difference or 0.0), 10), -(query.gained + query.lost)


def _place(place: Mapping[str, int], change: CoverChange) -> int:
    return place.get(change.exam_id, place.get(change.query_id, len(place)))
