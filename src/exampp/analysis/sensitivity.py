"""Sensitivity analysis: differences of a leaderboard that hold for all arbitrary choices.

The minimum rating, the cutoff, the measure, the grader, the bank, the treatment of cells without a
grade: each combination gives a leaderboard. The set is declared before any is computed, and all
that can be computed are shown, never the one that fits best.

Combinations are not a sample, so shares of them are not probabilities.

Sources: Steegen, Tuerlinckx, Gelman and Vanpaemel, *Increasing Transparency Through a Multiverse
Analysis* (2016); Simonsohn, Simmons and Nelson, *Specification curve analysis* (2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import NamedTuple, get_args

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import Leaderboard
from exampp.measures.cover import Missing
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import evaluate, missing_prerequisite
from exampp.measures.names import Measure, parse_measure
from exampp.measures.qrels import Labelling
from exampp.records.gradebook import Gradebook
from exampp.records.wording import counted
from exampp.results.notes import labelled, note
from exampp.results.plots.dots import ranks
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import Value
from exampp.sanitize import check_integer
from exampp.stats.estimate import Floats
from exampp.stats.item_analysis import ranked
from exampp.stats.rank_sets import competition_ranks, correlations, shares_above

MEASURES = ("Cover", "P", "nDCG")
CUTOFFS = (5, 10, 20)
POLICIES: tuple[Missing, ...] = ("zero", "skip")
CHOICES: Mapping[str, str] = {
    "grader": "graders",
    "bank": "banks",
    "measure": "measures",
    "k": "cutoffs",
    "min_rating": "minimum ratings",
    "missing": "treatments of missing cells",
}
"""The fields of a combination that are choices, and their plurals."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Declaration:
    """The choices that are combined.

    A measure without a cutoff is combined with all `cutoffs`, one with its own is taken as it is.
    `min_ratings` are by default all of a grader's scale.

    Raises:
        InputError: Unknown measure or policy, a cutoff below 1, or nothing to combine.
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
                    f"missing cells cannot be {policy!r} here", hint="Choose zero, skip or both"
                )
        if not (self.measures and self.missing):
            raise InputError("nothing is declared", hint="Name measures and what missing cells are")


def takes_cutoff(text: str) -> bool:
    """Return whether a measure can have a cutoff but sets none.

    Raises InputError for an unknown measure.
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


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A gradebook to be evaluated in every combination, with the name of its grader."""

    name: str
    book: Gradebook
    subtopics: SubtopicChoice = "auto"
    labelling: Labelling = field(default_factory=Labelling)


@dataclass(frozen=True, slots=True)
class Combination:
    """One way to make a leaderboard, and its scores.

    `k` is None where the measure reads whole rankings. `impossible` is the reason for missing
    scores; `equal_to` numbers an earlier combination with the same scores. `taus` are Kendall's tau
    with official leaderboards (None: undefined).
    """

    number: int
    grader: str
    bank: str
    measure: str
    k: int | None
    min_rating: int
    missing: Missing
    grader_key: str
    scores: Mapping[str, float] = field(default_factory=dict)
    impossible: str = ""
    equal_to: int | None = None
    taus: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Return whether it has scores that differ from all earlier combinations."""
        return not self.impossible and self.equal_to is None

    @property
    def label(self) -> str:
        """The choices in one line."""
        cut = f"@{self.k}" if self.k else ""
        return f"{self.measure}{cut} \u2265{self.min_rating} {self.missing}, {self.grader}"


class SystemRange(NamedTuple):
    """The range of ranks of a system over all combinations, with the quartiles."""

    system: str
    best: float
    low: float
    median: float
    high: float
    worst: float
    first: float
    """The share of first places."""


@dataclass(frozen=True, slots=True, repr=False)
class Sensitivity(Result):
    """A leaderboard in every combination of a declaration.

    `systems` are ordered by median rank. Of `pairs` of systems `unanimous` have the same order in
    all counted combinations. `between` are Kendall's tau of all pairs of combinations, and
    `by_choice` its median among combinations that differ in that choice only. `reason` is why
    nothing could be compared.
    """

    combinations: tuple[Combination, ...]
    officials: tuple[str, ...]
    systems: tuple[SystemRange, ...]
    pairs: int
    unanimous: int
    between: tuple[float, ...]
    by_choice: Mapping[str, float]
    notes: tuple[str, ...]
    reason: str
    draft: bool

    @property
    def counted(self) -> list[Combination]:
        """The combinations with distinct scores."""
        return [one for one in self.combinations if one.counted]

    @property
    def headline(self) -> str:
        """The first places and the pairs with one order in all combinations, in words."""
        if self.reason or not self.pairs:
            return f"Nothing can be compared, because {self.reason or 'no systems are paired'}."
        size = ("all " if len(self.counted) > 1 else "") + self._size()
        if all(one.worst == 1 for one in self.systems):
            return f"All systems tie in {size}."
        always = [one.system for one in self.systems if one.first == 1]
        best = sorted((one for one in self.systems if one.first), key=lambda one: -one.first)
        shown = ", ".join(f"{one.system} in {one.first:.0%}" for one in best[:_SHOWN])
        more = f" and {len(best) - _SHOWN} more in some" if len(best) > _SHOWN else ""
        winner = f"No system is first in {size}{f': {shown}{more}' if best else ''}."
        if always:
            others = f" and {len(always) - 1} more are" if len(always) > 1 else " is"
            winner = f"{always[0]}{others} first in {size}."
        if self.pairs == 1:
            same = "have" if self.unanimous else "do not have"
            return f"{winner} The two systems {same} the same order in all of them."
        return (
            f"{winner} {self.unanimous:,} of {counted(self.pairs, 'pair')} of systems "
            f"({self.unanimous / self.pairs:.1%}) have the same order in all of them."
        )

    def _size(self) -> str:
        """Return the size in words: 25 combinations (Cover; 5 minimum ratings, 5 cutoffs)."""
        found = self.counted
        parts = []
        for choice, plural in CHOICES.items():
            values = dict.fromkeys(getattr(one, choice) for one in found)
            if len(values) > 1:
                parts.append(f"{len(values)} {plural}")
            elif choice == "measure":
                parts.append(str(next(iter(values))))
        return f"{counted(len(found), 'combination')} ({', '.join(parts)})"

    def _notes(self) -> Iterator[str]:
        if self.between and not self.reason:
            low, middle, high = np.quantile(self.between, (0, 0.5, 1)).tolist()
            taus = f"{low:.3f} to {high:.3f}, median {middle:.3f}"
            yield note("combinations-correlation", taus=taus)
        if self.between and not self.reason and self.by_choice:
            most = min(self.by_choice, key=lambda choice: self.by_choice[choice])
            yield note("strongest-choice", choice=CHOICES[most], tau=f"{self.by_choice[most]:.3f}")
        for name in self.officials:
            known = [tau for one in self.counted if (tau := one.taus[name]) is not None]
            if known:
                taus = f"{min(known):.3f} to {max(known):.3f}, median {np.median(known):.3f}"
                count = counted(len(known), "combination")
                yield note("combinations-official", official=name, taus=taus, count=count)
            else:
                yield note("combinations-official-undefined", official=name)
        reasons = dict.fromkeys(one.impossible for one in self.combinations if one.impossible)
        for reason in reasons:
            labels = [one.label for one in self.combinations if one.impossible == reason]
            yield note("combinations-impossible", reason=reason.rstrip("."), combinations=labels)
        if equal := sum(one.equal_to is not None for one in self.combinations):
            total = counted(len(self.combinations), "combination")
            yield note("combinations-equal", total=total, equal=equal)
        yield from self.notes

    def tables(self) -> Mapping[str, Table]:
        """Return the combinations: a row each, with the top-ranked system."""
        found = self.counted
        shown = [
            choice
            for choice in CHOICES
            if choice == "measure" or len({getattr(one, choice) for one in found}) > 1
        ]
        rows: list[list[Value]] = []
        for one in found:
            best = max(one.scores.values())
            first = [system for system, score in one.scores.items() if score == best]
            who = first[0] if len(first) == 1 else f"{len(first)} systems"
            values = (getattr(one, choice) for choice in shown)
            rows.append([*values, who, best, *one.taus.values()])
        heads = [choice.replace("_", " ") for choice in shown]
        columns = [*heads, "first", "its score", *(f"\u03c4 {name}" for name in self.officials)]
        caption = f"Leaderboards of {counted(len(found), 'combination')}"
        caption = labelled(caption, draft=self.draft)
        table = Table.of(columns, rows, caption, self._notes(), verdict=self.headline)
        return {"combinations": table}

    def records(self) -> Mapping[str, Table]:
        """Return a row per combination, with its result."""
        columns = [
            *("number", *CHOICES, "counted", "equal_to", "impossible"),
            *(*(f"kendall_{name}" for name in self.officials), "grader_key"),
        ]
        rows: list[list[Value]] = [
            [
                *(one.number, *(getattr(one, choice) for choice in CHOICES)),
                *(one.counted, one.equal_to, one.impossible or None),
                *(one.taus.get(name) for name in self.officials),
                one.grader_key,
            ]
            for one in self.combinations
        ]
        table = Table.of(columns, rows, "Combinations", self._notes(), verdict=self.headline)
        return {"combinations": table}

    def plot(self) -> Figure:
        """Plot the range of ranks of every system, the middle half, and the median."""
        spans = [one[:6] for one in self.systems]
        return replace(ranks(spans, self._size() if spans else ""), draft=self.draft)


# ---- computing -----------------------------------------------------------------------------------


def evaluate_specifications(
    evaluated: Sequence[Evaluated],
    declaration: Declaration | None = None,
    officials: Mapping[str, Mapping[str, float]] | None = None,
) -> Sensitivity:
    """Evaluate gradebooks in every combination; `officials` are ranks, 1 for the best."""
    declaration = declaration or Declaration()
    officials = officials or {}
    scale = sorted({rating for one in evaluated for rating in _scale(one.book)})
    found: list[Combination] = []
    notes: dict[str, None] = {}
    for one in evaluated:
        found += _run(one, list(_declared(one, declaration, scale, len(found))), notes)
    found = list(_without_duplicates(found))
    used = [one for one in found if one.counted]
    systems = list(dict.fromkeys(system for one in used for system in one.scores))
    scores = np.array(
        [[one.scores.get(system, np.nan) for system in systems] for one in used]
    ).reshape(len(used), len(systems))
    for name, official in officials.items():
        other = np.array([-official.get(system, np.nan) for system in systems])
        for combination, tau in zip(used, correlations(scores, other).tolist(), strict=True):
            at = combination.number - 1
            known_tau = None if np.isnan(tau) else tau
            found[at] = replace(found[at], taus={**found[at].taus, name: known_tau})
    between = correlations(scores)
    known = between[np.triu_indices(len(used), 1)]
    shares, both = shares_above(scores)
    upper = np.triu(both > 0, 1)
    return Sensitivity(
        combinations=tuple(found),
        officials=tuple(officials),
        systems=tuple(_ranges(scores, systems)),
        pairs=int(upper.sum()),
        unanimous=int(((shares == 0) | (shares == 1))[upper].sum()),
        between=tuple(known[~np.isnan(known)].tolist()),
        by_choice=_by_choice(used, between),
        notes=tuple(notes),
        reason=_why_none(evaluated, len(used), len(systems)),
        draft=any(one.book.grader.is_draft for one in evaluated),
    )


def _scale(book: Gradebook) -> range:
    return range(book.grader.lowest + 1, book.highest_threshold + 1)


def _declared(
    one: Evaluated, declaration: Declaration, scale: Sequence[int], before: int
) -> Iterator[Combination]:
    """Yield all combinations of a gradebook; `scale` are the thresholds of all graders."""
    measures = [
        (text, k)
        for text in declaration.measures
        for k in (declaration.cutoffs if takes_cutoff(text) else (None,))
    ]
    choices = product(measures, declaration.min_ratings or scale, declaration.missing)
    bank, key = one.book.bank_label, one.book.grader.key
    for number, ((text, k), rating, policy) in enumerate(choices, before + 1):
        off = "" if rating in _scale(one.book) else f"{rating} is off the scale of {one.name}"
        yield Combination(number, one.name, bank, text, k, rating, policy, key, impossible=off)


def _run(
    one: Evaluated, declared: Sequence[Combination], notes: dict[str, None]
) -> Iterator[Combination]:
    """Yield the combinations of a gradebook with their scores."""
    boards: dict[tuple[Missing, str], Leaderboard | str] = {}
    thresholds = sorted({spec.min_rating for spec in declared if not spec.impossible})
    for policy, cover in product(POLICIES, (True, False)):
        measures = {
            str(measure): measure
            for spec in declared
            if not spec.impossible and _policy(spec) == policy
            for measure in [_measure(spec)]
            if measure.kind.cover == cover
        }
        # together, or one by one where one of them fails
        for some in (list(measures), *([name] for name in measures)):
            if any(not isinstance(boards.get((policy, name), ""), Leaderboard) for name in some):
                try:
                    board: Leaderboard | str = evaluate(
                        one.book,
                        [measures[name] for name in some],
                        thresholds,
                        subtopics=one.subtopics,
                        missing=policy,
                        labelling=one.labelling,
                    )
                except InputError as error:
                    board = error.what
                boards |= {(policy, name): board for name in some}
    for spec in declared:
        board = spec.impossible or boards[_policy(spec), str(_measure(spec))]
        if isinstance(board, str):
            yield replace(spec, impossible=board)
            continue
        notes |= dict.fromkeys(board.notes if board.columns else ())
        scores = board.scores(_measure(spec), spec.min_rating)
        rounded = ranked(np.array(list(scores.values()))).tolist()
        undefined = "" if scores else "it is undefined for every system"
        yield replace(spec, scores=dict(zip(scores, rounded, strict=True)), impossible=undefined)


def _measure(one: Combination) -> Measure:
    return parse_measure(one.measure if one.k is None else f"{one.measure}@{one.k}")


def _policy(one: Combination) -> Missing:
    return one.missing if _measure(one).kind.cover else "zero"


def _without_duplicates(combinations: Sequence[Combination]) -> Iterator[Combination]:
    """Yield the combinations; duplicates in scores refer to the earlier combination."""
    first: dict[tuple[tuple[str, float], ...], int] = {}
    for one in combinations:
        earlier = first.setdefault(tuple(sorted(one.scores.items())), one.number)
        is_new = one.impossible or earlier == one.number
        yield one if is_new else replace(one, equal_to=earlier)


def _ranges(scores: Floats, systems: Sequence[str]) -> list[SystemRange]:
    found = []
    for system, column in zip(systems, competition_ranks(scores).T, strict=True):
        known = column[~np.isnan(column)]
        best, low, median, high, worst = np.quantile(known, (0, 0.25, 0.5, 0.75, 1)).tolist()
        first = float((known == 1).mean())
        found.append(SystemRange(system, best, low, median, high, worst, first))
    return sorted(found, key=lambda one: (one.median, one.best, one.worst, one.system))


def _by_choice(used: Sequence[Combination], between: Floats) -> dict[str, float]:
    """Return the median tau of combinations that differ in one choice only."""
    found: dict[str, list[float]] = {choice: [] for choice in CHOICES}
    for (a, one), (b, other) in combinations(enumerate(used), 2):
        differ = [choice for choice in CHOICES if getattr(one, choice) != getattr(other, choice)]
        if len(differ) == 1 and not np.isnan(between[a, b]):
            found[differ[0]].append(float(between[a, b]))
    return {choice: float(np.median(taus)) for choice, taus in found.items() if taus}


def _why_none(evaluated: Sequence[Evaluated], used: int, systems: int) -> str:
    missing = next(filter(None, (missing_prerequisite(one.book) for one in evaluated)), None)
    if missing:
        return missing.cause[0].lower() + missing.cause[1:]
    if not used:
        return "no combination can be computed"
    return "fewer than 2 systems have scores" if systems < 2 else ""
