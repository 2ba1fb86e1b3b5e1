"""Queries that are graded in random order until an order of systems or a gate is decided.

The sample consists of the queries in an order by their ids, up to the first one with a needed cell
that has no grade. Sample and decision follow from the grades alone, so that a resumed run, several
processes, status and evaluation agree on them.

A decision is about all queries: grading the others would give the same order of any two systems
(unless their means differ by at most the margin), or the same verdict of the gate. It is wrong with
a probability of at most `ERROR`, whenever grading stops: see `stats.sequential`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from exampp.measures.cover import cover_exams
from exampp.measures.exams import resolve_subtopics
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.names import parse_measure
from exampp.measures.needs import count_missing_needed
from exampp.measures.requirements import parse_requirement
from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GradingTarget
from exampp.records.wording import counted
from exampp.results.notes import note
from exampp.stats.estimate import LEVEL, Bools, Estimate, Floats
from exampp.stats.means import Range
from exampp.stats.sampling import random_numbers
from exampp.stats.sequential import decided_pairs, full_limits

ERROR = 0.05
"""Limit of the probability of a wrong decision."""
GROUPS = 20
"""Groups of queries that are graded one after the other with `--until`."""
SHOWN = 3
"""Maximum names in a sentence on what is open."""


def random_order(query_ids: Sequence[str]) -> NDArray[np.intp]:
    """Return the indices of queries in the order in which they are graded."""
    return np.argsort(random_numbers(0, [(query_id, "") for query_id in query_ids]), kind="stable")


def query_sample(book: Gradebook) -> Gradebook:
    """Return the grades of the queries in the sample, all if nothing is pending."""
    if book.target is None or not book.target.until:
        return book
    subtopics = resolve_subtopics(book, "auto")
    measures = [parse_measure(one) for one in book.target.measures]
    threshold = book.highest_threshold
    order = random_order([query.query_id for query in book.queries])
    for number, at in enumerate(order.tolist()):
        alone = replace(book, queries=(book.queries[at],))
        if any(
            count_missing_needed(alone, one, threshold, subtopics, one.cutoff or 1)
            for one in measures
        ):
            return _of_queries(book, order[:number])
    return book


def described_sample(book: Gradebook) -> Gradebook:
    """Return `query_sample`, with a note on its size and on what it decides."""
    sample = query_sample(book)
    target = sample.target
    if target is None or not sample.sampled_from:
        return sample
    chance = f"(probability {1 - ERROR:.0%})"
    decision = "grading is not finished"
    decided = is_decided(book)
    if decided and target.until == "order":
        but = f" unless their means differ by at most {target.margin:g}" if target.margin else ""
        decision = f"all queries would order any two systems in the same way{but} {chance}"
    elif decided:
        decision = f"all queries would give the same verdict of the gate {chance}"
    graded = len(_exam_queries(sample))
    about = note("query-sample", graded=graded, of=sample.sampled_from, decision=decision)
    return replace(sample, notes=(about, *sample.notes))


def outcome(book: Gradebook) -> str:
    """Return a sentence on how many queries decide what ends the grading, and on what is open."""
    sample = query_sample(book)
    target, of = book.target, len(_exam_queries(book))
    if target is None or not target.until:
        return f"All {of:,} queries are graded"
    if sample.sampled_from:
        still_open = _open(sample, book)
        done = f"after {len(_exam_queries(sample)):,} of {of:,} queries"
        if not still_open:
            return f"The {target.until} is decided {done}"
        return f"The {target.until} is not decided {done}; open: {_some(still_open)}"
    # what was open when the last group of queries began
    size = group_size(len(book.queries))
    if before := max(0, len(book.queries) - 1) // size * size:
        order = random_order([query.query_id for query in book.queries])
        last = _of_queries(book, order[:before])
        if still_open := _open(last, book):
            done = f"open after {counted(len(_exam_queries(last)), 'query')}: {_some(still_open)}"
            return f"Not decided early: all {counted(of, 'query')} are graded; {done}"
    return f"All {of:,} queries are graded"


def group_size(queries: int) -> int:
    """Return the number of queries that are graded between two looks at the decision."""
    return max(1, -(-queries // GROUPS))


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _of_queries(book: Gradebook, indices: NDArray[np.intp]) -> Gradebook:
    """Return the sample with some queries of a book."""
    return replace(
        book,
        queries=tuple(book.queries[at] for at in np.sort(indices).tolist()),
        sampled_from=len(_exam_queries(book)),
    )


def _exam_queries(book: Gradebook) -> set[str]:
    """Return the queries with items that count."""
    return {exam.query.query_id for exam in cover_exams(book, resolve_subtopics(book, "auto"), 1)}


def estimate_all(
    values: Floats, query_ids: Sequence[str], of: int, within: Range, level: float, rows: int
) -> Estimate:
    """Bound the interval that all queries will give; one of several `rows` of a gate.

    Args:
        values: The values of the queries in the sample.
        query_ids: Their ids.
        of: The number of all queries.
        within: The smallest and the largest possible value.
        level: The level of the interval.
        rows: The number of intervals among which none exceeds its bounds.
    """
    shuffled = values[None, random_order(query_ids)]
    (low,), (high,) = full_limits(shuffled, of, within, level, ERROR / rows)
    return Estimate(math.fsum(values.tolist()) / len(values), float(low), float(high))


def is_decided(book: Gradebook) -> bool:
    """Return whether the graded queries decide the order or the gate of the target."""
    sample = query_sample(book)
    return not sample.sampled_from or not _open(sample, book)


def _open(sample: Gradebook, book: Gradebook) -> list[str]:
    """Return the pairs of systems, or the requirements, that a sample does not decide."""
    target = sample.target
    if target is None:
        return []
    removed = target.baseline and target.baseline not in sample.systems
    if removed or not sample.queries or not sample.systems:
        return [f"the {target.until}"]
    columns = evaluate_gradebook(sample, target.measures, target.min_ratings).columns
    if not columns[0].query_ids:
        return [f"the {target.until}"]
    if target.until == "order":
        return list(_open_pairs(book, sample.sampled_from, target.margin, columns))
    return list(_open_verdicts(sample, target, columns))


def _open_pairs(
    book: Gradebook, of: int, margin: float, columns: Sequence[MeasureColumn]
) -> Iterator[str]:
    first, second = np.triu_indices(len(book.systems), 1)
    for column in columns:
        scores = column.values.values[:, random_order(column.query_ids)]
        equal = _same_passages(book, column.measure.cutoff or 1)
        pairs = decided_pairs(scores, of, (-1.0, 1.0), margin, ERROR / len(columns), equal)
        of_column = f" ({column.name})" if len(columns) > 1 else ""
        for at in np.flatnonzero(~pairs).tolist():
            yield f"{book.systems[first[at]]} and {book.systems[second[at]]}{of_column}"


def _same_passages(book: Gradebook, k: int) -> Bools:
    """Return which pairs of systems have the same first k passages of every query."""
    exams = list(cover_exams(book, resolve_subtopics(book, "auto"), k))
    read = [
        tuple(
            b"" if (one := exam.passages[at]) is None else np.sort(one[:k]).tobytes()
            for exam in exams
        )
        for at in range(len(book.systems))
    ]
    first, second = np.triu_indices(len(read), 1)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return np.array([read[one] == read[other] for one, other in pairs], np.bool_)


def _open_verdicts(
    sample: Gradebook, target: GradingTarget, columns: Sequence[MeasureColumn]
) -> Iterator[str]:
    column_of = {str(one.measure): one for one in columns}
    wanted = [parse_requirement(one) for one in target.requirements]
    systems = [at for at, name in enumerate(sample.systems) if name != target.baseline]
    for one in wanted:
        column = column_of[one.measure]
        values, within = column.values.values, (0.0, 1.0)
        if one.relative:
            values, within = values - values[sample.systems.index(target.baseline)], (-1.0, 1.0)
        rows = len(systems) * len(wanted)
        for at in systems:
            ids, of = column.query_ids, sample.sampled_from
            found = estimate_all(values[at], ids, of, within, LEVEL, rows)
            if len({one.holds(end) for end in (found.low, found.high) if end is not None}) > 1:
                yield f"{one} for {sample.systems[at]}"
