"""What of a leaderboard survives the choices that nobody has a reason to make in one way.

The lowest rating that counts, the cutoff, the measure, the grader, the bank, what becomes of cells
without a grade: each combination is a specification. The set is declared before any is run; all
that can be computed is shown, never the one that fits best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import product
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from exampp.analysis import sensitivity_tables
from exampp.analysis.sensitivity_records import (
    AXES,
    MissingBounds,
    Outcomes,
    PairOrder,
    RankedSpecification,
    Specification,
    SystemRange,
)
from exampp.errors import InputError
from exampp.evaluate.board import Leaderboard
from exampp.evaluate.cover import Missing
from exampp.evaluate.exams import SubtopicChoice
from exampp.evaluate.lacking import lacking
from exampp.evaluate.leaderboard import evaluate
from exampp.evaluate.measure import Measure, parse_measure
from exampp.evaluate.pair_bounds import cover_bounds, has_missing_cells
from exampp.evaluate.qrels import Labelling
from exampp.outside import check_whole
from exampp.records.gradebook import Gradebook
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import Table
from exampp.stats import multiverse

Floats = NDArray[np.float64]

MEASURES = ("Cover", "P", "nDCG")
CUTOFFS = (5, 10, 20)
POLICIES: tuple[Missing, ...] = ("zero", "skip")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The choices that are crossed.

    A measure without a cutoff is crossed with all `cutoffs`, one that has its own is taken as it
    is. `min_ratings` are by default all of a grader's scale.

    Raises:
        InputError: There is no such measure or policy, a cutoff is below 1, or an axis is empty.
    """

    measures: tuple[str, ...] = MEASURES
    cutoffs: tuple[int, ...] = CUTOFFS
    min_ratings: tuple[int, ...] = ()
    missing: tuple[Missing, ...] = POLICIES

    def __post_init__(self) -> None:
        for measure in self.measures:
            takes_cutoff(measure)
        for cutoff in self.cutoffs:
            check_whole("a cutoff", cutoff, 1)
        for policy in self.missing:
            if policy not in get_args(Missing) or policy == "bounds":
                raise InputError(
                    f"missing cells cannot be {policy!r} here",
                    mend="Choose zero, skip or both; the bounds are shown anyway",
                )
        if not (self.measures and self.missing):
            raise InputError("nothing is declared", mend="Name measures and what missing cells are")


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Sensitivity(Result, Outcomes):
    """A leaderboard under every specification of a declaration, with its `Outcomes`."""

    declaration: Declaration

    def share_above(self, first: str, second: str) -> float:
        """The share of specifications in which the first system is above the second.

        Raises InputError where the two are not compared.
        """
        for pair in self.pairs:
            if (pair.first, pair.second) == (first, second):
                return pair.share
            if (pair.first, pair.second) == (second, first):
                return 1 - pair.share
        raise InputError(f"{first!r} and {second!r} are not compared")

    def survives(self) -> str:
        """What holds under all specifications, in a sentence; empty where there are none."""
        return sensitivity_tables.survives(self)

    def tables(self) -> Mapping[str, Table]:
        """The systems with their ranges of ranks, what each choice moves, and the bounds."""
        return sensitivity_tables.for_people(self)

    def records(self) -> Mapping[str, Table]:
        """The same, and a row a specification, with what became of it, and a row a pair."""
        return sensitivity_tables.for_programs(self)

    def figure(self) -> Figure:
        """The range of ranks of every system."""
        return sensitivity_tables.drawn(self)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A gradebook to be evaluated under every specification, by the name of its grader."""

    name: str
    book: Gradebook
    subtopics: SubtopicChoice = "auto"
    labelling: Labelling = field(default_factory=Labelling)


# ---- declaring -----------------------------------------------------------------------------------


def specifications(
    one: Evaluated, declared: Declaration, every: Sequence[int]
) -> Iterator[Specification]:
    """All combinations for a gradebook; `every` are the thresholds of all graders."""
    thresholds = declared.min_ratings or every
    for text in declared.measures:
        cutoffs = declared.cutoffs if takes_cutoff(text) else (None,)
        for k, rating, policy in product(cutoffs, thresholds, declared.missing):
            yield Specification(one.name, one.book.bank_label, text, k, rating, policy)


def takes_cutoff(text: str) -> bool:
    """Whether a measure is one at every cutoff: it can have one, and has none of its own.

    Raises InputError where there is no such measure, with a cutoff or without.
    """
    whole, cut = _parsed(text), _parsed(f"{text}@1")
    if whole is None and cut is None:
        parse_measure(text)
    return cut is not None and (whole is None or whole.at is None)


def _parsed(text: str) -> Measure | None:
    try:
        return parse_measure(text)
    except InputError:
        return None


def _measure(one: Specification) -> Measure:
    return parse_measure(one.measure if one.k is None else f"{one.measure}@{one.k}")


# ---- running -------------------------------------------------------------------------------------


def sensitivity(
    given: Sequence[Evaluated],
    declaration: Declaration | None = None,
    officials: Mapping[str, Mapping[str, float]] | None = None,
) -> Sensitivity:
    """Evaluate gradebooks under every specification; `officials` are ranks, 1 for the best."""
    declaration = declaration or Declaration()
    every = sorted({r for one in given for r in _scale(one.book)})
    outcomes: list[RankedSpecification] = []
    notes: dict[str, None] = {}
    for one in given:
        outcomes += _run(one, list(specifications(one, declaration, every)), notes)
    outcomes = _equal_once(outcomes)
    counted = [n for n, o in enumerate(outcomes) if not o.impossible and o.equal_to is None]
    systems = list(dict.fromkeys(s for n in counted for s in outcomes[n].scores))
    scores = np.array(
        [[outcomes[n].scores.get(system, np.nan) for system in systems] for n in counted]
    ).reshape(len(counted), len(systems))
    between = multiverse.correlations(scores)
    nothing = next(filter(None, (lacking(one.book) for one in given)), None)
    return Sensitivity(
        declaration=declaration,
        outcomes=tuple(outcomes),
        counted=tuple(counted),
        systems=tuple(_ranges(scores, systems)),
        pairs=tuple(_pairs(scores, systems)),
        between=tuple(_known(between[np.triu_indices(len(counted), 1)])),
        by_axis=_by_axis([outcomes[n].specification for n in counted], between),
        officials={
            name: _with_official(scores, systems, ranks)
            for name, ranks in (officials or {}).items()
        },
        bounds=tuple(bound for one in given for bound in _bounds(one, declaration)),
        notes=tuple(notes),
        reason=_why_none(counted, systems, nothing.cause if nothing else ""),
        draft=any(one.book.grader.is_draft for one in given),
        keys={one.name: one.book.grader.key for one in given},
    )


def _scale(book: Gradebook) -> range:
    return range(book.grader.lowest + 1, book.grader.highest + 1)


def _run(
    one: Evaluated, declared: Sequence[Specification], notes: dict[str, None]
) -> Iterator[RankedSpecification]:
    """Every specification of a gradebook, those of a policy evaluated together."""
    reasons = {spec: _impossible(one.book, spec) for spec in declared}
    possible = [spec for spec in declared if not reasons[spec]]
    boards = _boards(one, possible, reasons)
    for board in boards.values():
        notes |= dict.fromkeys(board.notes if board.columns else ())
    for spec in declared:
        if reasons[spec]:
            yield RankedSpecification(spec, {}, reasons[spec])
            continue
        measure = _measure(spec)
        policy = spec.missing if measure.kind.cover else "zero"
        scores = boards[policy, str(measure)].scores(measure, spec.min_rating)
        if scores:
            rounded = multiverse.settled(np.array(list(scores.values()))).tolist()
            yield RankedSpecification(spec, dict(zip(scores, rounded, strict=True)))
        else:
            yield RankedSpecification(spec, {}, "it is undefined for every system")


def _impossible(book: Gradebook, spec: Specification) -> str:
    if spec.min_rating not in _scale(book):
        return f"{spec.min_rating} is off the scale of {spec.grader}"
    return ""


def _boards(
    one: Evaluated, possible: Sequence[Specification], reasons: dict[Specification, str]
) -> dict[tuple[Missing, str], Leaderboard]:
    """The leaderboard that has a measure, under a policy; a measure that fails is impossible."""
    thresholds = sorted({spec.min_rating for spec in possible})
    wanted: dict[tuple[Missing, bool], dict[str, Measure]] = {}
    for spec in possible:
        measure = _measure(spec)
        policy = spec.missing if measure.kind.cover else "zero"
        wanted.setdefault((policy, measure.kind.cover), {})[str(measure)] = measure
    boards: dict[tuple[Missing, str], Leaderboard] = {}
    for (policy, _), measures in wanted.items():
        for names in (list(measures), *([name] for name in measures)):
            if all((policy, name) in boards for name in names):
                continue
            try:
                board = _evaluate(one, [measures[name] for name in names], thresholds, policy)
            except InputError as error:
                if len(names) == 1:
                    reasons |= {s: error.what for s in possible if str(_measure(s)) == names[0]}
                continue
            boards |= {(policy, name): board for name in names}
    return boards


def _evaluate(
    one: Evaluated, measures: Sequence[Measure], thresholds: Sequence[int], policy: Missing
) -> Leaderboard:
    return evaluate(
        one.book,
        measures,
        thresholds,
        subtopics=one.subtopics,
        missing=policy,
        labelling=one.labelling,
    )


def _equal_once(outcomes: Sequence[RankedSpecification]) -> list[RankedSpecification]:
    """Those whose scores an earlier one has too name that one."""
    first: dict[tuple[tuple[str, float], ...], int] = {}
    found = []
    for number, outcome in enumerate(outcomes):
        if not outcome.impossible:
            key = tuple(sorted(outcome.scores.items()))
            earlier = first.setdefault(key, number)
            outcome = outcome._replace(equal_to=None if earlier == number else earlier)
        found.append(outcome)
    return found


# ---- what is made of it --------------------------------------------------------------------------


def _ranges(scores: Floats, systems: Sequence[str]) -> list[SystemRange]:
    if not scores.size:
        return []
    ranks = multiverse.competition_ranks(scores)
    found = []
    for system, column in zip(systems, ranks.T, strict=True):
        known = column[~np.isnan(column)]
        found.append(
            SystemRange(
                system=system,
                best=float(known.min()),
                worst=float(known.max()),
                median=float(np.median(known)),
                first=float((known == 1).mean()),
                specifications=len(known),
            )
        )
    return sorted(found, key=lambda one: (one.median, one.best, one.worst, one.system))


def _pairs(scores: Floats, systems: Sequence[str]) -> Iterator[PairOrder]:
    if not scores.size:
        return
    shares, both = multiverse.shares_above(scores)
    for a in range(len(systems)):
        for b in range(a + 1, len(systems)):
            if both[a, b]:
                share = float(shares[a, b])
                turned = share < 0.5
                names = (systems[b], systems[a]) if turned else (systems[a], systems[b])
                yield PairOrder(*names, 1 - share if turned else share, int(both[a, b]))


def _known(values: Floats) -> list[float]:
    found: list[float] = values[~np.isnan(values)].tolist()
    return found


def _by_axis(specs: Sequence[Specification], between: Floats) -> dict[str, float]:
    """The median tau of specifications that differ in one axis alone."""
    found: dict[str, list[float]] = {axis: [] for axis in AXES}
    values = [astuple(spec) for spec in specs]
    for a, one in enumerate(values):
        for b in range(a + 1, len(values)):
            differ = [axis for axis, x, y in zip(AXES, one, values[b], strict=True) if x != y]
            if len(differ) == 1 and not np.isnan(between[a, b]):
                found[differ[0]].append(float(between[a, b]))
    return {axis: float(np.median(taus)) for axis, taus in found.items() if taus}


def _with_official(
    scores: Floats, systems: Sequence[str], ranks: Mapping[str, float]
) -> tuple[float | None, ...]:
    other = np.array([-ranks[system] if system in ranks else np.nan for system in systems])
    found = multiverse.correlations(scores, other).tolist()
    return tuple(None if np.isnan(tau) else tau for tau in found)


def _bounds(one: Evaluated, declared: Declaration) -> Iterator[MissingBounds]:
    """Of Cover, where any cell that a system's passages have lacks its grade."""
    cutoffs = sorted(
        {
            k
            for text in declared.measures
            for k in (declared.cutoffs if takes_cutoff(text) else (parse_measure(text).cutoff,))
            if k and text.partition("@")[0] == "Cover"
        }
    )
    if not cutoffs or not has_missing_cells(one.book) or not one.book.is_graded:
        return
    thresholds = [r for r in declared.min_ratings or _scale(one.book) if r in _scale(one.book)]
    for k in cutoffs:
        found = cover_bounds(one.book, thresholds, k=k, subtopics=one.subtopics)
        for at, rating in enumerate(thresholds):
            low = multiverse.settled(found.low[at])
            upper = np.triu_indices(len(low), 1)
            ordered = (low[:, None] != low[None, :])[upper]
            least, most = (
                multiverse.settled(side[at])[upper] for side in (found.least, found.most)
            )
            certain = ordered & ((least > 0) | (most < 0))
            yield MissingBounds(
                grader=one.name,
                bank=one.book.bank_label,
                k=k,
                min_rating=rating,
                widest=float((found.high[at] - found.low[at]).max(initial=0.0)),
                pairs=int(ordered.sum()),
                certain=int(certain.sum()),
            )


def _why_none(counted: Sequence[int], systems: Sequence[str], nothing: str) -> str:
    if nothing:
        return nothing[0].lower() + nothing[1:]
    if not counted:
        return "no specification can be computed"
    return "fewer than 2 systems have scores" if len(systems) < 2 else ""
