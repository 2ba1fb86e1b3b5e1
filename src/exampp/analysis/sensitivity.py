"""What of a leaderboard survives the choices that nobody has a reason to make in one way.

The lowest rating that counts, the cutoff, the measure, the grader, the bank, what becomes of cells
without a grade: each combination is a specification. The set is declared before any is run; all
that can be computed is shown, never the one that fits best.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import product
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.phrases import percent
from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.measures.cover import Missing, cover_bounds, has_missing_cells
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import evaluate, missing_prerequisite
from exampp.measures.names import Measure, parse_measure
from exampp.measures.qrels import Labelling
from exampp.records.gradebook import Gradebook
from exampp.records.wording import counted
from exampp.results.plots import dots as plots
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer
from exampp.stats import rank_sets

NEARLY = 0.95


@dataclass(frozen=True, slots=True)
class Specification:
    """One way to make a leaderboard; `k` is None where the measure reads whole rankings."""

    grader: str
    bank: str
    measure: str
    k: int | None
    min_rating: int
    missing: Missing


AXES = tuple(one.name for one in fields(Specification))


class RankedSpecification(NamedTuple):
    """What became of a specification: its scores; why it is impossible; which one it equals."""

    specification: Specification
    scores: Mapping[str, float]
    impossible: str = ""
    equal_to: int | None = None


@dataclass(frozen=True, slots=True)
class SystemRange:
    """The ranks of a system: the best, the worst, the median, and the share of first places."""

    system: str
    best: float
    worst: float
    median: float
    first: float
    specifications: int


@dataclass(frozen=True, slots=True)
class PairOrder:
    """Two systems: the share of specifications in which the first is above (a tie is half)."""

    first: str
    second: str
    share: float
    specifications: int

    @property
    def verdict(self) -> str:
        """Unanimous, nearly so (.95 of the specifications), or open."""
        decided = max(self.share, 1 - self.share)
        if decided == 1:
            return "unanimous"
        return "nearly" if decided >= NEARLY else "open"


@dataclass(frozen=True, slots=True)
class MissingBounds:
    """Cover at one threshold and cutoff over all grades that missing cells could have.

    `widest` is the largest range of a system's score. Of `pairs` that the scores order, `certain`
    keep their order whatever the missing cells are.
    """

    grader: str
    bank: str
    k: int
    min_rating: int
    widest: float
    pairs: int
    certain: int


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of a leaderboard under every specification that was declared.

    `outcomes` are all that were declared, in order; `counted` number those that could be computed
    and differ. `systems` go by their median rank; `pairs` name the one first that is above more
    often. `between` holds Kendall's tau of all pairs of counted specifications; `officials` that of
    each with official leaderboards (None: undefined). `by_axis` is the median tau of specifications
    that differ in that axis alone. `keys` are those of the graders, by name.
    """

    outcomes: tuple[RankedSpecification, ...]
    counted: tuple[int, ...]
    systems: tuple[SystemRange, ...]
    pairs: tuple[PairOrder, ...]
    between: tuple[float, ...]
    by_axis: Mapping[str, float]
    officials: Mapping[str, tuple[float | None, ...]]
    bounds: tuple[MissingBounds, ...]
    notes: tuple[str, ...] = ()
    reason: str = ""
    draft: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)


_SAID: Mapping[str, str] = {
    "grader": "graders",
    "bank": "banks",
    "measure": "measures",
    "k": "cutoffs",
    "min_rating": "minimum ratings",
    "missing": "ways with missing cells",
}
_SHOWN = 3


def for_people(found: Outcomes) -> dict[str, Table]:
    """A row a system; what each choice moves; every specification against official orders."""
    tables = {"systems": _systems(found)}
    if found.by_axis:
        tables["choices"] = _choices(found)
    if found.officials and found.counted:
        tables["specifications"] = _against_official(found)
    if found.bounds:
        tables["missing cells"] = _missing(found)
    return tables


def for_programs(found: Outcomes) -> dict[str, Table]:
    """A row a system, a specification, a pair, and a bound."""
    return {
        "systems": _system_records(found),
        "specifications": _specifications(found),
        "pairs": _pairs_table(found),
        "missing cells": _missing_records(found),
    }


# ---- sentences -----------------------------------------------------------------------------------


def survives(found: Outcomes) -> str:
    """What holds under all specifications; empty where nothing could be compared."""
    if found.reason or not found.pairs:
        return ""
    if all(one.worst == 1 for one in found.systems):
        return f"All systems tie under all {_ways(found)}: nothing tells them apart."
    verdicts = Counter(pair.verdict for pair in found.pairs)
    pairs = len(found.pairs)
    unanimous = verdicts["unanimous"]
    said = (
        f"Of {counted(pairs, 'pair')} of systems {unanimous:,} ({unanimous / pairs:.1%}) stand in "
        f"the same order under all {_ways(found)}; {verdicts['open']:,} "
        f"({verdicts['open'] / pairs:.1%}) are open. {_winner(found)}"
    )
    return said if unanimous < pairs else f"{said} The whole order survives."


def _ways(found: Outcomes) -> str:
    """25 specifications (Cover; 5 minimum ratings, 5 cutoffs)."""
    used = [found.outcomes[n].specification for n in found.counted]
    parts = []
    for axis in AXES:
        choices = dict.fromkeys(getattr(spec, axis) for spec in used)
        if len(choices) > 1:
            parts.append(f"{len(choices)} {_SAID[axis]}")
        elif axis == "measure":
            parts.append(str(next(iter(choices))))
    return f"{counted(len(used), 'specification')} ({', '.join(parts)})"


def _winner(found: Outcomes) -> str:
    """Who is first, and how often."""
    best = sorted((one for one in found.systems if one.first), key=lambda one: -one.first)
    if not best:
        return ""
    always = [one.system for one in best if one.first == 1]
    if always:
        others = f" and {len(always) - 1} more are" if len(always) > 1 else " is"
        return f"{always[0]}{others} first in all of them."
    shown = ", ".join(f"{one.system} in {one.first:.0%}" for one in best[:_SHOWN])
    more = f" and {len(best) - _SHOWN} more in some" if len(best) > _SHOWN else ""
    return f"No system is first in all of them: {shown}{more}."


def sentences(found: Outcomes) -> list[str]:
    """What follows, most important first, and what was left out."""
    return [
        *([f"Nothing can be compared, because {found.reason}."] if found.reason else []),
        *filter(None, [survives(found)]),
        *_claims(found),
        *_correlated(found),
        *_official(found),
        *_unsettled(found),
        *_left(found),
        *found.notes,
    ]


def _claims(found: Outcomes) -> Iterator[str]:
    if found.pairs and not found.reason and any(one.worst > 1 for one in found.systems):
        nearly = sum(pair.verdict != "open" for pair in found.pairs)
        yield (
            f"Claim the order of the unanimous pairs alone; {nearly:,} "
            f"({nearly / len(found.pairs):.1%}) hold in {percent(NEARLY)} or more. Specifications "
            "are no sample: these shares are no probabilities."
        )


def _correlated(found: Outcomes) -> Iterator[str]:
    if found.between and not found.reason:
        taus = np.array(found.between)
        yield (
            f"Kendall's \u03c4 between two specifications: {taus.min():.3f} to {taus.max():.3f}, "
            f"median {np.median(taus):.3f}."
        )


def _official(found: Outcomes) -> Iterator[str]:
    for name, taus in found.officials.items():
        known = [tau for tau in taus if tau is not None]
        if not known:
            yield f"Kendall's \u03c4 with {name} is undefined under every specification."
            continue
        yield (
            f"Kendall's \u03c4 with {name}: {min(known):.3f} to {max(known):.3f} over all "
            f"{counted(len(known), 'specification')}, median {np.median(known):.3f}. To choose the "
            "best of them and to report it alone would be to choose by the answer."
        )


def _unsettled(found: Outcomes) -> Iterator[str]:
    """How many pairs the grades of missing cells could turn, where it is most."""
    most = max(found.bounds, key=lambda one: one.pairs - one.certain, default=None)
    if most is not None:
        yield (
            f"The grades that cells lack could turn {most.pairs - most.certain:,} of "
            f"{counted(most.pairs, 'ordered pair')} under Cover@{most.k} \u2265{most.min_rating}, "
            f"and move a score by {most.widest:.3f}: grade or review them first."
            if most.certain < most.pairs
            else "Whatever grades the cells have that lack one, no ordered pair turns."
        )


def _left(found: Outcomes) -> Iterator[str]:
    """Which specifications are not counted: impossible ones, and equal ones."""
    reasons: dict[str, list[Specification]] = {}
    for one in found.outcomes:
        if one.impossible:
            reasons.setdefault(one.impossible, []).append(one.specification)
    for reason, specs in reasons.items():
        shown = "; ".join(_name(spec) for spec in specs[:_SHOWN])
        more = f" and {len(specs) - _SHOWN} more" if len(specs) > _SHOWN else ""
        yield f"Impossible, because {reason.rstrip('.')}: {shown}{more}."
    equal = sum(one.equal_to is not None for one in found.outcomes)
    if equal:
        yield (
            f"Declared are {counted(len(found.outcomes), 'specification')}; {equal} give every "
            "system the score that an earlier one gives it and are counted once."
        )


def _name(spec: Specification) -> str:
    cut = f"@{spec.k}" if spec.k and "@" not in spec.measure else ""
    return f"{spec.measure}{cut} \u2265{spec.min_rating} {spec.missing}, {spec.grader}"


# ---- tables --------------------------------------------------------------------------------------


def _systems(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [
            one.system,
            round(one.best),
            round(one.worst),
            one.median,
            f"{one.first:.0%}",
            one.specifications,
        ]
        for one in found.systems
    ]
    columns: list[str | Column] = [
        "system",
        Column("best", group="rank"),
        Column("worst", group="rank"),
        Column("median", 1, "rank"),
        "first in",
        "specifications",
    ]
    draft = "DRAFT GRADES: " if found.draft else ""
    caption = f"{draft}Ranks over {counted(len(found.counted), 'specification')}"
    return Table.of(columns, rows, caption, sentences(found))


def _system_records(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [one.system, one.best, one.worst, one.median, one.first, one.specifications]
        for one in found.systems
    ]
    columns = ["system", "best", "worst", "median", "share_first", "specifications"]
    return Table.of(columns, rows, "Ranks over all specifications", sentences(found))


def _choices(found: Outcomes) -> Table:
    used = [found.outcomes[n].specification for n in found.counted]
    rows: list[list[Value]] = []
    for axis, tau in sorted(found.by_axis.items(), key=lambda one: one[1]):
        values = list(dict.fromkeys(getattr(spec, axis) for spec in used))
        if axis == "min_rating":
            values.sort()
        choices = [str(value) for value in values if value is not None]
        rows.append([_SAID[axis], ", ".join(choices), tau])
    columns: list[str | Column] = ["choice", "of", "median \u03c4"]
    caption = "What a choice moves: Kendall's \u03c4 of specifications that differ in it alone"
    return Table.of(columns, rows, caption)


def _against_official(found: Outcomes) -> Table:
    """All of them: a row a specification, with the order's tau."""
    used = [found.outcomes[n] for n in found.counted]
    shown = [
        axis
        for axis in AXES
        if len({getattr(one.specification, axis) for one in used}) > 1 or axis == "measure"
    ]
    rows: list[list[Value]] = []
    for at, one in enumerate(used):
        best = max(one.scores.values())
        first = [system for system, score in one.scores.items() if score == best]
        who = first[0] if len(first) == 1 else f"{len(first)} systems"
        taus = [of[at] for of in found.officials.values()]
        rows.append([*(getattr(one.specification, axis) for axis in shown), who, *taus])
    heads = [axis.replace("_", " ") for axis in shown]
    names = [f"\u03c4 {name}" for name in found.officials]
    return Table.of([*heads, "first", *names], rows, "Every specification with the official order")


def _specifications(found: Outcomes) -> Table:
    place = {number: at for at, number in enumerate(found.counted)}
    rows: list[list[Value]] = []
    for number, one in enumerate(found.outcomes):
        spec = one.specification
        at = place.get(number)
        taus = [None if at is None else of[at] for of in found.officials.values()]
        rows.append(
            [
                number + 1,
                *(getattr(spec, axis) for axis in AXES),
                at is not None,
                None if one.equal_to is None else one.equal_to + 1,
                one.impossible or None,
                *taus,
                found.keys.get(spec.grader),
            ]
        )
    columns = ["number", *AXES, "counted", "equal_to", "impossible"]
    columns += [*(f"kendall_{name}" for name in found.officials), "grader_key"]
    return Table.of(columns, rows, "Specifications")


def _pairs_table(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [one.first, one.second, one.share, one.specifications, one.verdict] for one in found.pairs
    ]
    columns = ["system", "other", "share_above", "specifications", "verdict"]
    return Table.of(columns, rows, "Pairs of systems")


def _missing(found: Outcomes) -> Table:
    """Cover over all grades that missing cells could have."""
    graders = len({one.grader for one in found.bounds}) > 1
    banks = len({one.bank for one in found.bounds}) > 1
    rows: list[list[Value]] = [
        [
            *([one.grader] if graders else []),
            *([one.bank] if banks else []),
            f"Cover@{one.k}",
            one.min_rating,
            one.widest,
            one.pairs,
            one.certain,
        ]
        for one in found.bounds
    ]
    lead = [*(["grader"] if graders else []), *(["bank"] if banks else [])]
    columns = [*lead, "measure", "min rating", "widest range", "ordered pairs", "certain"]
    notes = [
        "certain: the order stays whatever the grades of missing cells are; a cell that both "
        "systems read has one grade for both"
    ]
    return Table.of(columns, rows, "What cells without a grade could change", notes)


def _missing_records(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [
            *(one.grader, one.bank, "Cover", one.k, one.min_rating),
            *(one.widest, one.pairs, one.certain, found.keys.get(one.grader)),
        ]
        for one in found.bounds
    ]
    columns = [
        *("grader", "bank", "measure", "k", "min_rating"),
        *("widest", "pairs", "certain", "grader_key"),
    ]
    return Table.of(columns, rows, "What cells without a grade could change")


# ---- the figure ----------------------------------------------------------------------------------


def drawn(found: Outcomes) -> Figure:
    """The range of ranks of every system, the middle half, and the median."""
    scores = [found.outcomes[n].scores for n in found.counted]
    ordered = [sorted(of.values()) for of in scores]
    spans = []
    for one in found.systems:
        ranks = [
            1 + len(of) - bisect_right(below, of[one.system])
            for of, below in zip(scores, ordered, strict=True)
            if one.system in of
        ]
        low, high = np.quantile(ranks, [0.25, 0.75]).tolist()
        spans.append((one.system, one.best, low, one.median, high, one.worst))
    figure = plots.ranks(spans, _ways(found) if scores else "")
    return replace(figure, draft=found.draft)


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
            check_integer("a cutoff", cutoff, 1)
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
        return survives(self)

    def tables(self) -> Mapping[str, Table]:
        """The systems with their ranges of ranks, what each choice moves, and the bounds."""
        return for_people(self)

    def records(self) -> Mapping[str, Table]:
        """The same, and a row a specification, with what became of it, and a row a pair."""
        return for_programs(self)

    def figure(self) -> Figure:
        """The range of ranks of every system."""
        return drawn(self)


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
    between = rank_sets.correlations(scores)
    nothing = next(filter(None, (missing_prerequisite(one.book) for one in given)), None)
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
            rounded = rank_sets.round_scores(np.array(list(scores.values()))).tolist()
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
    ranks = rank_sets.competition_ranks(scores)
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
    shares, both = rank_sets.shares_above(scores)
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
    found = rank_sets.correlations(scores, other).tolist()
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
            low = rank_sets.round_scores(found.low[at])
            upper = np.triu_indices(len(low), 1)
            ordered = (low[:, None] != low[None, :])[upper]
            least, most = (
                rank_sets.round_scores(side[at])[upper] for side in (found.least, found.most)
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
