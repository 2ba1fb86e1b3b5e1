"""False decisions of `exampp grade --until`, and the cells that it saves.

    export PYTHONPATH=tests:tests/grading
    python benchmarks/early_decisions.py replay            # DL 2019 and LLMJudge, real grades
    python benchmarks/early_decisions.py made --count 1000 # made exams, with ties and near ties

Each stream is an exam in a random order of its queries. Grading stops as in the program: after the
first of 20 groups of queries at which the order or the gate is decided. A decision is false if all
queries give another order of two systems, unless their means differ by at most the margin, or
another verdict. The rate of false decisions is printed with the upper end of its 95 % interval
(Clopper and Pearson). The share of saved cells counts graded cells of queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from lazy_grading import data_sets
from numpy.typing import NDArray

import exampp
from exampp.measures.query_sample import ERROR, group_size
from exampp.measures.requirements import Requirement, parse_requirement
from exampp.records.gradebook import MISSING
from exampp.stats.estimate import LEVEL
from exampp.stats.means import DIFFERENCE, SHARE, bounded_means, rate
from exampp.stats.sequential import decided_pairs, full_limits

Scores = NDArray[np.float64]
Orders = NDArray[np.intp]
"""Random orders of the queries, by row."""


class Exam(NamedTuple):
    """Cover of every system on every query, best system first, and the needed cells of queries."""

    name: str
    scores: Scores
    cells: NDArray[np.float64]


class Stream(NamedTuple):
    """The queries that a stream graded, and whether its decision is false."""

    queries: int
    false: bool


def sizes(of: int) -> Iterator[int]:
    step = group_size(of)
    yield from range(step, of, step)


def order_streams(scores: Scores, orders: Orders, margin: float) -> Iterator[Stream]:
    """Decide the order of systems in random orders of the queries."""
    of = scores.shape[1]
    equal = np.zeros(len(scores) * (len(scores) - 1) // 2, np.bool_)
    first, second = np.triu_indices(len(scores), 1)
    full = (scores[first] - scores[second]).mean(axis=1)
    ties = (np.abs(full) < 1e-9) & (margin == 0)
    for order in orders:
        stream = Stream(of, False)
        for size in sizes(of):
            seen = scores[:, order[:size]]
            if decided_pairs(seen, of, DIFFERENCE, margin, ERROR, equal).all():
                shown = np.sign((seen[first] - seen[second]).mean(axis=1))
                wrong = (shown != np.sign(np.round(full, 9))) & (np.abs(full) > margin + 1e-9)
                stream = Stream(size, bool((wrong | ties).any()))
                break
        yield stream


def gate_streams(scores: Scores, orders: Orders, requirement: Requirement) -> list[Stream]:
    """Decide the verdict on a requirement in random orders; a relative one is on the last row."""
    of, within = scores.shape[1], SHARE
    if requirement.relative:
        scores, within = scores[:-1] - scores[-1], DIFFERENCE
    holds = np.vectorize(requirement.holds, otypes=[np.bool_])
    limits = bounded_means(scores, np.ones(scores.shape, np.bool_), within, LEVEL)
    truth = holds(np.stack([limits.low, limits.high]))[:, :, None]
    streams = [Stream(of, False)] * len(orders)
    undecided = np.arange(len(orders))
    for size in sizes(of):
        seen = scores[:, orders[undecided, :size]]
        ends = full_limits(seen.reshape(-1, size), of, within, LEVEL, ERROR / len(scores))
        found = holds(np.stack(ends)).reshape(2, *seen.shape[:2])
        decided = (found[0] == found[1]).all(axis=0)
        false = (found != truth).any(axis=(0, 1))
        for at in np.flatnonzero(decided).tolist():
            streams[undecided[at]] = Stream(size, bool(false[at]))
        if not len(undecided := undecided[~decided]):
            break
    return streams


def report(
    exam: Exam,
    what: str,
    scores: Scores,
    count: int,
    run: Callable[[Scores, Orders], Iterable[Stream]],
) -> None:
    random = np.random.default_rng(1)
    of = scores.shape[1]
    orders = np.array([random.permutation(of) for _ in range(count)])
    streams = list(run(scores, orders))
    saved = [
        1 - exam.cells[order[: one.queries]].sum() / exam.cells.sum()
        for order, one in zip(orders, streams, strict=True)
    ]
    false = sum(one.false for one in streams)
    limit = rate(false, count).high
    queries = np.array([one.queries for one in streams])
    early = (queries < of).mean()
    print(
        f"{exam.name}, {what}: false {false} of {count:,} (at most {limit:.4f}); decided early "
        f"{early:.3f}; median {np.median(queries):.0f} of {of} queries; "
        f"cells saved {np.mean(saved):.3f}",
        flush=True,
    )


def exam_of(name: str, grades: exampp.Grades) -> Exam:
    scores = grades.evaluate(["Cover@20"], min_rating=4).columns[0].values.values
    queries = grades.gradebook.queries
    cells = np.array([float((one.ratings != MISSING).sum()) for one in queries])
    best_first = np.argsort(-scores.mean(axis=1), kind="stable")
    return Exam(name, scores[best_first], cells)


def made(count: int) -> None:
    """Print streams of exams in which a false decision is most likely, and of a large one."""
    random = np.random.default_rng(7)
    for queries in (20, 43):
        first = random.binomial(4, 0.6, queries) / 4
        tied = np.stack([first, random.permutation(first)])
        cases = {
            "tied means": (tied, 0.0),
            "tied means of shares 0 and 1": (np.round(tied), 0.0),
            "means just beyond the margin": (np.stack([first, 0.93 * first]), 0.04),
        }
        ones = np.ones(queries)
        for name, (scores, margin) in cases.items():
            exam = Exam(f"made, {name}", scores, ones)
            run = partial(order_streams, margin=margin)
            report(exam, f"order, margin {margin:g}", scores, count, run)
        limits = bounded_means(tied, np.ones(tied.shape, np.bool_), SHARE, LEVEL)
        bounds = {"at its lower limit": limits.low[0], "at its upper limit": limits.high[0]}
        for name, bound in bounds.items():
            # met by both limits, or by none, by a hair
            judge = partial(gate_streams, requirement=Requirement("Cover", ">=", bound - 1e-6))
            report(Exam(f"made, bound {name}", tied, ones), "gate", tied[:1], count, judge)
    many = random.binomial(4, np.linspace(0.35, 0.65, 10)[:, None], (10, 1000)) / 4
    for margin in (0.0, 0.05, 0.1):
        run = partial(order_streams, margin=margin)
        exam = Exam("made, ten systems", many, np.ones(1000))
        report(exam, f"order, margin {margin:g}", many, max(1, count // 50), run)


def replay(data: Path, count: int) -> None:
    for name, exam, grader in data_sets(data):
        streams(exam_of(name, exam.grades(grader)), count)


def streams(exam: Exam, count: int) -> None:
    """Print the streams of some systems of an exam, for orders and gates."""
    last = len(exam.scores) - 1
    for rows in (range(last + 1), (0, last), (0, last // 2), (0, 1), (0, last // 3, last)):
        scores = exam.scores[list(rows)]
        means = ", ".join(f"{one:.3f}" for one in scores.mean(axis=1)[:3])
        what = f"{len(scores)} systems ({means}{', ...' if len(scores) > 3 else ''})"
        times = count if len(scores) < 10 else max(1, count // 10)
        for margin in (0.0, 0.05, 0.1):
            run = partial(order_streams, margin=margin)
            report(exam, f"order of {what}, margin {margin:g}", scores, times, run)
        if len(scores) > 3:
            continue
        for text in ("Cover>=0.5", "Cover>=baseline-0.1"):
            judge = partial(gate_streams, requirement=parse_requirement(text))
            report(exam, f"gate {text} on {what}", scores, count, judge)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "made"])
    parser.add_argument("--count", type=int, default=1000, help="streams of a case")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    if options.what == "replay":
        replay(options.data, options.count)
        return
    made(options.count)


if __name__ == "__main__":
    main()
