"""Bias of a grader for single systems: ratings compared with human judgments.

The label of a passage is the mean of its ratings, which moves with whatever moves Cover; see
`stats.system_bias` for the estimates and what they assume.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.measures.board import Leaderboard
from exampp.measures.exams import QueryExam, exams, lay_out, resolve_subtopics
from exampp.measures.qrels import graded_passages
from exampp.records.gradebook import MISSING, Gradebook
from exampp.records.wording import signed
from exampp.results.notes import Note, listed, note
from exampp.results.result import Result, Table
from exampp.results.view import Column, programs_only
from exampp.stats.system_bias import JudgedPool, SystemBiases, system_biases

DEPTH = 20
"""Passages of a ranking that are looked at where the measure has no cutoff."""
QUESTION = "Does the grader favour a system?"
_LARGE = 0.5
"""Fraction of the labels' standard deviation; a check that may miss a larger bias is useless."""

Verdict = Literal["favours", "disfavours", "cannot tell"]


class SystemBias(NamedTuple):
    """A grader's ratings of a system compared with human judgments, in ratings.

    `passages` of the `returned` ones are judged and graded, in `queries`. `label` and `judgment`
    are their means. `matched` and `linked` are the two estimates of the bias, `low` and `high`
    bound it simultaneously for all systems, `matched_low` and `matched_high` bound `matched` alone.
    `detectable` is the bias that `matched` shows with probability .8. None: undefined.
    """

    system: str
    passages: int
    returned: int
    queries: int
    label: float | None
    judgment: float | None
    matched: float | None
    matched_low: float | None
    matched_high: float | None
    linked: float | None
    low: float | None
    high: float | None
    detectable: float | None
    verdict: Verdict

    @property
    def is_noticed(self) -> bool:
        """Return whether labels differ significantly from those of equally judged passages."""
        low, high = self.matched_low, self.matched_high
        return low is not None and high is not None and not low <= 0 <= high


@dataclass(frozen=True, slots=True, repr=False)
class GraderBias(Result):
    """The bias check of one grader: favoured systems first, then the largest bias.

    `is_compared`: there are two or more systems; `is_judged`: some graded passage has a judgment;
    `reason` is why the check was still impossible (empty: it was made). `depth` is how many
    passages of a ranking count, `spread` the standard deviation of labels.
    """

    grader: str
    depth: int
    is_compared: bool
    is_judged: bool
    systems: tuple[SystemBias, ...] = ()
    spread: float = 0.0
    reason: str = ""

    @property
    def found(self) -> tuple[SystemBias, ...]:
        """The systems that the grader favours or disfavours, the largest bias first."""
        return tuple(one for one in self.systems if one.verdict != "cannot tell")

    @property
    def tone(self) -> Literal["", "holds", "doubt"]:
        """`holds` if a large bias would have been detected and none was."""
        if not self.is_judged or not self.is_compared:
            return ""
        blind = self._largest_unseen is None or self._largest_unseen > _LARGE * self.spread
        noticed = any(one.is_noticed for one in self.systems)
        return "doubt" if self.reason or self.found or noticed or blind else "holds"

    @property
    def _largest_unseen(self) -> float | None:
        """Return the bias that is detectable in every system; None if one cannot be checked."""
        sizes = [one.detectable for one in self.systems if one.detectable is not None]
        return max(sizes) if sizes and len(sizes) == len(self.systems) else None

    @property
    def headline(self) -> str:
        """The result in one sentence, the favoured system first."""
        if self.reason:
            return f"Not checked: {self.reason}."
        if self.found:
            kinds = dict.fromkeys(one.verdict for one in self.found)
            parts = " and ".join(
                f"{kind} {listed([_bounded(s) for s in self.found if s.verdict == kind])}"
                for kind in kinds
            )
            return (
                f"The grader {parts}: ratings above (+) or below (-) those of equally judged "
                "passages of other systems."
            )
        return self._undecided()

    def _undecided(self) -> str:
        noticed = [one for one in self.systems if one.is_noticed]
        if noticed:
            named = listed([f"{one.system} ({signed(one.matched, 2)})" for one in noticed])
            return (
                f"Cannot tell: equally judged passages of {named} get other ratings, which coarse "
                "judgments explain as well."
            )
        unchecked = [one.system for one in self.systems if one.detectable is None]
        if unchecked:
            return (
                f"Cannot tell for {listed(unchecked)}: too few queries have equally judged "
                "passages of other systems."
            )
        largest = self.systems[0]
        start = "No sign of it" if self.tone == "holds" else "Cannot tell"
        return (
            f"{start}: a bias of {self._largest_unseen:.2f} ratings would be noticed; the largest "
            f"is {largest.system}, {signed(largest.matched, 2)}, which is not significant."
        )

    def tables(self) -> dict[str, Table]:
        """Return a row per system, the largest bias first."""
        shown = {
            "label": Column("rating", key="label"),
            **{name: Column(name, 2, "bias", key=name) for name in ("matched", "linked", "high")},
            "low": Column("95% low", 2, "bias", key="low"),
            "detectable": Column("detectable", 2),
            **{one.name: one for one in programs_only("returned", "matched_low", "matched_high")},
        }
        named = (shown.get(name, Column(name)) for name in SystemBias._fields)
        columns = [*programs_only("grader", "depth"), *named]
        rows = [(self.grader, self.depth, *one) for one in self.systems]
        caption = f"{QUESTION} {self.grader}, first {self.depth} passages"
        return {"bias": Table.of(columns, rows, caption, self._notes(), verdict=self.headline)}

    def _notes(self) -> Iterator[Note]:
        if not self.systems:
            return
        yield note("bias-columns")
        checked = sum(one.passages for one in self.systems)
        returned = sum(one.returned for one in self.systems)
        if checked < returned:
            yield note("bias-unchecked", checked=f"{checked:,}", returned=f"{returned:,}")


def grader_bias(book: Gradebook, depth: int = DEPTH) -> GraderBias:
    """Compare the ratings of each system's first `depth` passages with people's judgments."""
    judged = any(
        bool((query.judgments != MISSING).any(axis=0)[graded_passages(query.ratings)].any())
        for query in book.queries
    )
    none = GraderBias(book.grader.name, depth, len(book.systems) > 1, judged)
    if not judged:
        return replace(none, reason="no graded passage has a human judgment")
    pool, returned = _pool(book, depth)
    if reason := _why_not(book, pool):
        return replace(none, reason=reason)
    biases = system_biases(pool)
    systems = [_row(name, row, pool, biases, returned) for row, name in enumerate(book.systems)]
    # two systems mirror each other but for rounding errors
    systems.sort(
        key=lambda one: (
            one.verdict == "cannot tell",
            -round(abs(one.matched or 0), 9),
            one.system,
        )
    )
    return replace(none, systems=tuple(systems), spread=biases.spread)


def noted(board: Leaderboard, book: Gradebook) -> Leaderboard:
    """Return the leaderboard with a leading note if the grader favours a system."""
    return replace(board, notes=(*bias_notes(grader_bias(book)), *board.notes))


def bias_notes(bias: GraderBias) -> Iterator[Note]:
    """Note that the grader favours a system, if it does."""
    if bias.found:
        yield note("grader-bias", text=bias.headline)


def _why_not(book: Gradebook, pool: JudgedPool) -> str:
    """Return the reason why no bias can be estimated; empty if it can."""
    if why := book.ungraded_by_target:
        return f"{why[0].lower()}{why[1:-1]}"
    if len(book.systems) < 2:
        return f"a comparison needs 2 systems, not {len(book.systems)}"
    if not len(pool.label):
        return "no system returns a passage that is judged and graded"
    for what, values in (("judgment", pool.judgment), ("rating", pool.label)):
        if values.min() == values.max():
            return f"every judged passage has the {what} {values[0]:g}"
    if np.ptp(pool.query) == 0:
        return "judged passages belong to one query only"
    return ""


def _row(
    name: str, row: int, pool: JudgedPool, biases: SystemBiases, returned: NDArray[np.int64]
) -> SystemBias:
    mine = pool.returned[row]

    def number(value: np.float64 | float) -> float | None:
        return float(value) if np.isfinite(value) else None

    verdicts: dict[int, Verdict] = {1: "favours", -1: "disfavours"}
    return SystemBias(
        system=name,
        passages=len(mine),
        returned=int(returned[row]),
        queries=len(set(pool.query[mine].tolist())),
        label=float(pool.label[mine].mean()) if len(mine) else None,
        judgment=float(pool.judgment[mine].mean()) if len(mine) else None,
        matched=number(biases.matched[row]),
        matched_low=number(biases.matched[row] - biases.matched_half[row]),
        matched_high=number(biases.matched[row] + biases.matched_half[row]),
        linked=number(biases.linked[row]),
        low=number(biases.low[row]),
        high=number(biases.high[row]),
        detectable=number(biases.detectable[row]),
        verdict=verdicts.get(int(biases.found[row]), "cannot tell"),
    )


def _pool(book: Gradebook, depth: int) -> tuple[JudgedPool, NDArray[np.int64]]:
    """Return the judged and graded passages among the first of any system, and counts by system."""
    numbers = {query.query_id: number for number, query in enumerate(book.queries)}
    returned = np.zeros(len(book.systems), np.int64)
    labels: list[NDArray[np.float64]] = [np.empty(0)]
    judgments: list[NDArray[np.float64]] = [np.empty(0)]
    systems, places = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    queries: list[int] = []
    sizes: list[int] = []
    total = 0
    for exam in exams(book, resolve_subtopics(book, "auto")):
        layout = lay_out(exam.passages, depth)
        returned += np.bincount(layout.system, minlength=len(returned))
        pooled, column = np.unique(layout.passages, return_inverse=True)
        label, judgment = _rated(exam, pooled), _judged(exam, pooled)
        used = np.isfinite(label) & (judgment != MISSING)
        place = total + np.cumsum(used) - 1
        systems.append(layout.system[used[column]])
        places.append(place[column[used[column]]])
        labels.append(label[used])
        judgments.append(np.maximum(judgment[used], 0.0))
        sizes.append(len(labels[-1]))
        total += sizes[-1]
        queries.append(numbers[exam.query.query_id])
    pool = JudgedPool(
        label=np.concatenate(labels),
        judgment=np.concatenate(judgments),
        exam=np.repeat(np.arange(len(sizes)), sizes),
        query=np.repeat(np.array(queries, np.intp), sizes),
        returned=_by_system(np.concatenate(systems), np.concatenate(places), len(returned)),
    )
    return pool, returned


def _by_system(
    system: NDArray[np.intp], passage: NDArray[np.intp], count: int
) -> list[NDArray[np.intp]]:
    """Return the distinct passages of each system, in ascending order."""
    order = np.lexsort((passage, system))
    system, passage = system[order], passage[order]
    first = (np.diff(system, prepend=-1) | np.diff(passage, prepend=-1)) != 0
    ends = np.cumsum(np.bincount(system[first], minlength=count))[:-1]
    return np.split(passage[first], ends)


def _rated(exam: QueryExam, passages: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean rating of each passage on the items that count; NaN without ratings."""
    ratings = exam.query.ratings[np.ix_(passages, exam.items)]
    known = ratings != MISSING
    sums, counts = np.where(known, ratings, 0).sum(axis=1, dtype=float), known.sum(axis=1)
    means = np.full(len(passages), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _judged(exam: QueryExam, passages: NDArray[np.intp]) -> NDArray[np.int16]:
    """Return the judgment of the exam's subtopic; for a whole query the highest judgment."""
    query = exam.query
    of_subtopic = exam.exam_id[len(query.query_id) + 1 :]
    highest: NDArray[np.int16] = query.judgments.max(axis=0)[passages]
    if not of_subtopic:
        return highest
    own: NDArray[np.int16] = query.judgments[query.subtopic_ids.index(of_subtopic) + 1, passages]
    own[own == MISSING] = query.judgments[0, passages][own == MISSING]
    return own


def _bounded(one: SystemBias) -> str:
    return f"{one.system} ({signed(one.low, 2)} to {signed(one.high, 2)})"
