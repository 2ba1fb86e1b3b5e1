"""Improvement of an exam: items to retire or to add, and the gain confirmed on held-out systems.

The gain is that of the whole procedure (`analysis.item_trials`): items are chosen by some systems,
and their effect is measured on others; the rule is chosen on some queries, and its effect is
measured on others. The proposals for the bank come from all systems and queries. They are accepted
if the interval of the gain excludes 0, and if no exam with shuffled grades has a gain as large:
systems in different halves may share passages, and so their errors.

Human judgments have no part in the choice. With an official leaderboard, Kendall's tau-b of the
held-out systems is shown before and after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from exampp.analysis.item_trials import (
    RETIRED,
    CrossFit,
    Key,
    SelectionRule,
    TrialExam,
    cross_fit,
    shuffled_books,
    trial_exam,
)
from exampp.analysis.items import linted_items
from exampp.analysis.phrases import percent
from exampp.analysis.verdict import families_of
from exampp.errors import InputError
from exampp.items.generation import WritingTask
from exampp.items.improvement_rounds import ChoiceBasis
from exampp.measures.board import describe_source
from exampp.measures.cover import ItemScores
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import grade_notes, missing_prerequisite
from exampp.records.gradebook import Gradebook, QueryGrades, check_testable
from exampp.records.items import IMPROVES, BankTexts, makers_of
from exampp.records.wording import counted, cut_text, signed
from exampp.results.notes import Note, merge_notes, note, with_code
from exampp.results.plots.dots import intervals_figure
from exampp.results.plots.figure import Figure, Spread
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, programs_only
from exampp.sanitize import check_integer
from exampp.stats.estimate import LEVEL, Estimate, Floats, Indices
from exampp.stats.held_out import (
    FEWEST_QUERIES,
    Halves,
    agreement,
    agreement_without_each,
    draw_halves,
    jackknifed,
    pair_orders,
    related_groups,
)
from exampp.stats.item_analysis import ranked
from exampp.stats.rank_correlation import kendall_rows

SPLITS = 10
SIMILAR = 0.4
"""Systems with a larger share of common passages are in the same half."""
FEWEST_SYSTEMS = 3
"""Minimum systems in each half."""
FAULTS = frozenset(
    [
        *("fragment", "prompt-echo", "source-reference", "reader", "twin", "duplicate"),
        *("near-duplicate", "gives-away", "too-broad", "no-fact", "unresolved"),
    ]
)
"""Rules of `items.lint` that find faults for which an item may be retired."""
NO_PASSAGE = "no-passage"
"""The fault of items that the grader takes for answered without a passage that answers."""
PASSAGES = 3
"""Passages of each of two systems that a writer is shown."""
RETIRE, ADD = "retire", "add"
AGREEMENT = "agreement of queries"
_TAU = "tau with "
SHOWN = 20
_TEXT = 48


# ---- the result ----------------------------------------------------------------------------------


class Proposal(NamedTuple):
    """An item to retire or to add (`change`), with its correlations and the faults of its text."""

    query_id: str
    item_id: str
    change: str
    systems: float | None
    passages: float | None
    faults: tuple[str, ...]
    text: str


class Gain(NamedTuple):
    """A measure of the exam on held-out systems, before and after, and the difference."""

    measure: str
    before: float
    after: float
    difference: Estimate


class CellToDecide(NamedTuple):
    """A cell on which a human decision may move systems, with the expected swaps of systems."""

    query_id: str
    item_id: str
    passage_id: str
    rating: int | None
    systems: int
    swaps: float


class TriedSelection(NamedTuple):
    """A selection, its agreement on held-out systems, and the number of folds that chose it."""

    selection: SelectionRule
    agreement: float
    folds: int


@dataclass(frozen=True, slots=True)
class ImprovementSettings:
    """Settings of the trial: random halves of systems, their seed, and the level of intervals.

    Raises:
        InputError: A number is out of range.
    """

    splits: int = SPLITS
    seed: int = 0
    level: float = LEVEL

    def __post_init__(self) -> None:
        check_integer("splits", self.splits, 1, 1000)
        check_integer("the seed", self.seed, 0)
        if not 0 < self.level < 1:
            raise InputError(f"the level must be between 0 and 1, not {self.level:g}")


@dataclass(frozen=True, slots=True, repr=False)
class Improvement(Result):
    """Proposals for a bank, and their gain on held-out systems.

    `gains` have the agreement between queries first, then Kendall's tau-b with official
    leaderboards; `tried` are all selections. `lacking` is the reason why there is no trial.
    `decisions` are the cells on which human decisions are likely to move the order most. `basis`
    is None without a trial. `shuffled` are the gains with grades shuffled over passages, up to the
    first one as large; they are tried if the interval of the gain excludes 0.
    """

    caption: str
    grader_key: str
    settings: ImprovementSettings
    proposals: tuple[Proposal, ...] = ()
    gains: tuple[Gain, ...] = ()
    tried: tuple[TriedSelection, ...] = ()
    lacking: str = ""
    notes: tuple[Note, ...] = ()
    decisions: tuple[CellToDecide, ...] = ()
    basis: ChoiceBasis | None = None
    shuffled: tuple[float, ...] = ()

    @property
    def is_confirmed(self) -> bool:
        """Return whether the gain excludes 0, and shuffled grades have no gain as large."""
        return bool(self.proposals) and _excludes_zero(self.gains) and not self._is_chance

    @property
    def _is_chance(self) -> bool:
        return any(one >= _first_gain(self.gains) for one in self.shuffled)

    @property
    def accepted(self) -> tuple[Proposal, ...]:
        """The proposals, if their gain is confirmed."""
        return self.proposals if self.is_confirmed else ()

    @property
    def reason(self) -> str:
        """The headline and the basis of the choice, for the log of the bank."""
        return f"{self.headline} {self.basis.sentence}" if self.basis else self.headline

    @property
    def headline(self) -> str:
        """The proposals and whether their gain is confirmed, in words."""
        if self.lacking:
            return f"No trial, because {self.lacking}."
        first = self.gains[0]
        if not self.proposals:
            return (
                "No change improves the exam: queries agree best on the order of held-out systems "
                f"with the bank as it is ({first.before:.3f})."
            )
        change = (
            f"the agreement between queries on held-out systems changes from {first.before:.3f} to "
            f"{first.after:.3f} ({_interval(first.difference)})"
        )
        changes = [one.change for one in self.proposals]
        parts = [
            f"{change} {counted(changes.count(change), 'item')}"
            for change in (RETIRE, ADD)
            if change in changes
        ]
        if self.is_confirmed:
            return f"{' and '.join(parts).capitalize()}: {change}."
        chance = ", but shuffled grades have a gain as large" if self._is_chance else ""
        return f"No gain is confirmed: if you {' and '.join(parts)}, {change}{chance}."

    def plot(self) -> Figure:
        """Plot the gain in each measure with its interval."""
        rows = [
            Spread(
                f"{one.measure}: {one.before:.3f} to {one.after:.3f}",
                *(one.difference.value, one.difference.low, one.difference.high),
            )
            for one in self.gains
        ]
        return intervals_figure(
            rows,
            "gain on held-out systems",
            "Gain of the proposed changes of the bank",
            f"Bars: {percent(self.settings.level)} interval",
            name="improvement",
            draft=any(with_code(self.notes, "draft")),
            zero=True,
        )

    def tables(self, limit: int = SHOWN) -> Mapping[str, Table]:
        """Return the gain and the first `limit` proposals."""
        shown = {"gain": self._gain()}
        if self.proposals:
            shown["proposals"] = self._proposals(limit)
        if self.decisions:
            shown["decisions"] = self._decisions()
        return shown

    def records(self) -> Mapping[str, Table]:
        """Return a row per measure, per proposal, and per selection."""
        rows = [(str(one.selection), one.agreement, one.folds) for one in self.tried]
        columns = [Column("selection"), Column("agreement"), Column("folds", 0)]
        shown = {
            "gain": self._gain(),
            "proposals": self._proposals(None),
            "selections": Table.of(columns, rows, self.caption),
            "decisions": self._decisions(),
        }
        return {name: table.keyed(self.grader_key) for name, table in shown.items()}

    def _gain(self) -> Table:
        columns = [
            *(Column("measure"), Column("before"), Column("after")),
            Column("difference", interval=True),
        ]
        rows: list[list[Cell]] = [[*one] for one in self.gains]
        return Table.of(columns, rows, self.caption, self.notes, verdict=self.headline)

    def _proposals(self, limit: int | None) -> Table:
        columns = [
            *(Column("query"), Column("item"), Column("change")),
            *(Column("systems", 2), Column("passages", 2), Column("faults"), Column("text")),
            *programs_only("confirmed"),
        ]
        rows: list[list[Cell]] = [
            [
                *(*one[:5], ", ".join(one.faults) or None),
                *(one.text if limit is None else cut_text(one.text, _TEXT), self.is_confirmed),
            ]
            for one in self.proposals[:limit]
        ]
        caption = "Proposed changes of the bank"
        if len(rows) < len(self.proposals):
            caption += f": {len(rows)} of {len(self.proposals)}"
        return Table.of(columns, rows, caption)

    def _decisions(self) -> Table:
        columns = [
            *(Column("query"), Column("item"), Column("passage"), Column("rating", 0)),
            *(Column("systems", 0), Column("expected swaps", 2, key="expected_swaps")),
        ]
        rows: list[list[Cell]] = [[*one] for one in self.decisions]
        caption = "Cells to decide first"
        if self.proposals:
            caption += ", on the exam with the proposed changes"
        return Table.of(columns, rows, caption)


def with_weights(book: Gradebook, proposals: Iterable[Proposal]) -> Gradebook:
    """Return a gradebook in which proposals are followed: retired items have weight 0."""
    weights = {(one.query_id, one.item_id): float(one.change == ADD) for one in proposals}

    def weighed(query: QueryGrades) -> QueryGrades:
        known = zip(query.item_ids, query.weights.tolist(), strict=True)
        found = [weights.get((query.query_id, item), weight) for item, weight in known]
        return replace(query, weights=np.array(found, np.float64))

    return replace(book, queries=tuple(map(weighed, book.queries)))


def _interval(one: Estimate) -> str:
    if one.low is None or one.high is None:
        return f"{signed(one.value, 3)}, {one.no_interval}"
    interval = f"{signed(one.low, 3)} to {signed(one.high, 3)}"
    return f"{signed(one.value, 3)}, interval {interval}"


# ---- computing -----------------------------------------------------------------------------------


def improve(
    book: Gradebook,
    texts: BankTexts,
    *,
    min_rating: int,
    k: int = 20,
    subtopics: SubtopicChoice = "auto",
    officials: Mapping[str, Mapping[str, float]] | None = None,
    guessed: Iterable[Key] = (),
    settings: ImprovementSettings | None = None,
) -> Improvement:
    """Propose changes of a bank, and try them on held-out systems.

    `officials` are official leaderboards, system to rank. `guessed` items are covered by texts
    without an answer. Sealed items stay as they are.

    Raises:
        InputError: Cells or queries were left out by an estimate.
    """
    check_testable(book)
    settings = settings or ImprovementSettings()
    caption = describe_source(book.grader, book.bank_label, book.oversight)
    if missing := missing_prerequisite(book):
        cause = missing.cause[:1].lower() + missing.cause[1:]
        return Improvement(caption, book.grader.key, settings, lacking=cause)
    faults = _faults(texts)
    faults |= {key: (*faults.get(key, ()), NO_PASSAGE) for key in guessed}
    exam_of = partial(
        trial_exam,
        min_rating=min_rating,
        k=k,
        subtopics=subtopics,
        faults=faults,
        fixed=texts.sealed or (),
    )
    exam = exam_of(book)
    groups = related_groups(exam.similarity(), SIMILAR)
    halves = _halves(exam, groups, _shown_systems(texts), settings)
    caption = _caption(book, exam, groups, settings)
    notes = [*grade_notes(book), *_notes(texts, exam.scores)]
    if lacking := _lacking(exam, halves):
        return Improvement(
            caption, book.grader.key, settings, lacking=lacking, notes=merge_notes(notes)
        )
    fit = cross_fit(exam, halves, settings.seed)
    proposals = tuple(_proposals(exam, fit.best, faults, texts))
    gains = tuple(_gains(exam, fit, officials or {}, settings.level))
    named = {one.measure for one in gains}
    if unknown := [name for name in officials or {} if f"{_TAU}{name}" not in named]:
        notes.append(note("improve-official", names=unknown, least=FEWEST_SYSTEMS))
    shuffled: tuple[float, ...] = ()
    if proposals and _excludes_zero(gains):
        exams = map(exam_of, shuffled_books(book, settings.seed))
        shuffled = _gains_by_chance(exams, halves, settings, _first_gain(gains))
    return Improvement(
        caption,
        book.grader.key,
        settings,
        proposals=proposals,
        gains=gains,
        tried=tuple(
            TriedSelection(way, float(value), int(votes))
            for way, value, votes in zip(fit.selections, fit.agreements, fit.votes, strict=True)
        ),
        notes=merge_notes(notes),
        shuffled=shuffled,
        basis=ChoiceBasis(
            book.grader.name,
            len(exam.scores.systems),
            len(exam.scores.queries),
            settings.splits if len(halves) > 1 else 1,  # each half of a split is held out once
            settings.level,
            book.oversight.cells,
            is_weighted=book.grader.settings.get("vote", {}).get("rule") == "weighted",
            leaderboards=tuple(one.measure.removeprefix(_TAU) for one in gains[1:]),
        ),
    )


def _faults(texts: BankTexts) -> dict[Key, tuple[str, ...]]:
    """Return the faults of items by their texts; those on trial cause none in the others."""
    on_trial = {(one.query_id, one.item_id) for one in texts.items if not one.weight}
    in_force = replace(
        texts,
        entries=tuple(
            replace(entry, items=tuple(one for one in entry.items if one.weight))
            for entry in texts.entries
        ),
    )
    found = linted_items(in_force)
    if on_trial:
        found |= {key: rules for key, rules in linted_items(texts).items() if key in on_trial}
    faults = {key: tuple(r for r in rules if r in FAULTS) for key, rules in found.items()}
    return {key: rules for key, rules in faults.items() if rules}


def _shown_systems(texts: BankTexts) -> frozenset[str]:
    """Return the systems whose passages the writers of items were shown."""
    return frozenset(name for item in texts.items for name in item.extra.get(IMPROVES, ()))


def _halves(
    exam: TrialExam,
    groups: Sequence[Sequence[int]],
    shown: AbstractSet[str],
    settings: ImprovementSettings,
) -> list[Halves]:
    """Return the halves of the trial; systems that writers of items were shown are never held out.

    A half is left out if it has too few systems.
    """
    names = exam.scores.systems
    if exam.in_force.all() or not shown:
        halves = draw_halves(groups, settings.splits, settings.seed)
    else:
        known = [at for group in groups if {names[one] for one in group} & shown for at in group]
        others = [at for at in range(len(names)) if at not in set(known)]
        halves = [Halves(np.array(known, np.intp), np.array(others, np.intp))]
    return [one for one in halves if min(map(len, one)) >= FEWEST_SYSTEMS]


def _lacking(exam: TrialExam, halves: Sequence[Halves]) -> str:
    queries = len(exam.scores.queries)
    if queries < FEWEST_QUERIES:
        return f"the exam has {counted(queries, 'query')}, and {FEWEST_QUERIES} are needed"
    differ = exam.scores.query[np.ptp(exam.scores.credit, axis=0) > 0]
    if (tell := len(np.unique(differ))) < FEWEST_QUERIES:
        needed = f"and {FEWEST_QUERIES} are needed"
        return f"items distinguish systems on {counted(tell, 'query')}, {needed}"
    if not halves:
        systems = counted(len(exam.scores.systems), "system")
        return (
            f"{systems} cannot be divided into two unrelated halves of {FEWEST_SYSTEMS} or more "
            "(systems that return the same passages are related)"
        )
    return ""


def _gains(
    exam: TrialExam, fit: CrossFit, officials: Mapping[str, Mapping[str, float]], level: float
) -> Iterator[Gain]:
    """Yield the gain in agreement, then in Kendall's tau-b with each official leaderboard."""
    composed = list(fit.composed())
    before = _agreement([scores for _, scores, _ in composed])
    after = _agreement([scores for _, _, scores in composed])
    yield _gain(AGREEMENT, before, after, level)
    for name, ranks in officials.items():
        if taus := _official_taus(exam, composed, ranks):
            yield _gain(f"{_TAU}{name}", *taus, level)


def _first_gain(gains: Sequence[Gain]) -> float:
    return gains[0].after - gains[0].before


def _excludes_zero(gains: Sequence[Gain]) -> bool:
    low = gains[0].difference.low if gains else None
    return low is not None and low > 0


def _gains_by_chance(
    exams: Iterable[TrialExam], halves: Sequence[Halves], settings: ImprovementSettings, gain: float
) -> tuple[float, ...]:
    """Return the gains of exams with shuffled grades, up to the first one of at least `gain`.

    With n exams, a gain by chance is larger than all others with a probability of 1 / (n + 1).
    """
    found: list[float] = []
    for exam in islice(exams, math.ceil(round(1 / (1 - settings.level), 6)) - 1):
        composed = list(cross_fit(exam, halves, settings.seed).composed())
        before, _ = _agreement([scores for _, scores, _ in composed])
        after, _ = _agreement([scores for _, _, scores in composed])
        found.append(after - before)
        if found[-1] >= gain:
            break
    return tuple(found)


Resampled = tuple[float, Floats]
"""A value, and its values without each query."""


def _agreement(halves: Sequence[Floats]) -> Resampled:
    """Return the agreement between queries from the scores of held-out halves."""
    orders = [pair_orders(scores) for scores in halves]
    products = np.mean([one @ one.T for one in orders], axis=0)
    return agreement(products), agreement_without_each(products)


def _gain(measure: str, before: Resampled, after: Resampled, level: float) -> Gain:
    difference = jackknifed(after[0] - before[0], after[1] - before[1], level)
    return Gain(measure, before[0], after[0], difference)


def _official_taus(
    exam: TrialExam, composed: Sequence[tuple[Indices, Floats, Floats]], ranks: Mapping[str, float]
) -> tuple[Resampled, Resampled] | None:
    """Return the mean tau-b of held-out systems with their official order, before and after.

    None if it is undefined.
    """
    names = exam.scores.systems
    sides: tuple[list[Floats], list[Floats]] = ([], [])
    for systems, *scores in composed:
        known = [at for at, system in enumerate(systems.tolist()) if names[system] in ranks]
        better = [-ranks[names[system]] for system in systems[known].tolist()]
        if len(known) < FEWEST_SYSTEMS:
            continue
        rows = []
        for values in scores:
            whole = values[known].sum(axis=1)
            without = (whole[:, None] - values[known]).T / (values.shape[1] - 1)
            means = np.vstack([whole / values.shape[1], without])
            rows.append(kendall_rows(ranked(means), better))
        if all(one.defined.all() for one in rows):
            for side, one in zip(sides, rows, strict=True):
                side.append(one.values)
    if not sides[0]:
        return None
    before, after = (np.mean(side, axis=0) for side in sides)
    return (float(before[0]), before[1:]), (float(after[0]), after[1:])


def _proposals(
    exam: TrialExam, way: SelectionRule, faults: Mapping[Key, tuple[str, ...]], texts: BankTexts
) -> Iterator[Proposal]:
    """Yield what a selection by all systems changes: the items to retire first, worst first."""
    of = exam.statistics(np.arange(len(exam.scores.systems)))
    selected = exam.select(way, of)
    words = texts.item_texts
    keys, mean = exam.keys, of.mean
    changed = np.flatnonzero(selected != exam.in_force)
    for at in changed[np.lexsort((mean[changed], ~exam.in_force[changed]))].tolist():
        key = keys[at]
        yield Proposal(
            key[0],
            key[1],
            RETIRE if exam.in_force[at] else ADD,
            of.systems.at(at),
            of.passages.at(at),
            faults.get(key, ()),
            words.get(key, ""),
        )


def writing_tasks(
    book: Gradebook,
    texts: BankTexts,
    passages: Callable[[Sequence[str]], Mapping[str, str]],
    min_rating: int,
    k: int = 20,
) -> dict[str, WritingTask]:
    """Return what a writer of new items is shown, by query id.

    For every query these are the items, with their faults, and passages of two systems that all
    items in force treat alike: those that one of them returns and the other does not. Systems and
    faults are from one half of the related groups, so that the other half can confirm the gain.
    Items on trial change nothing.

    Args:
        book: The grades.
        texts: The bank.
        passages: Returns the texts of passages by id.
        min_rating: The lowest rating that covers an item.
        k: The passages of a system that count.
    """
    exam = trial_exam(book, min_rating, k)
    half = draw_halves(related_groups(exam.similarity(), SIMILAR), 1, 0)[0].chosen_by
    opposed = RETIRED["mean below 0"](exam.statistics(half))
    faults = {
        key: "contradicts the others" for key, at in zip(exam.keys, opposed, strict=True) if at
    } | {key: ", ".join(found) for key, found in _faults(texts).items()}
    items: dict[str, list[str]] = {}
    for one in texts.items:
        if one.weight > 0 and (one.query_id, one.item_id) not in (texts.sealed or ()):
            fault = faults.get((one.query_id, one.item_id))
            items.setdefault(one.query_id, []).append(one.text + f" [{fault}]" * bool(fault))
    tasks = {}
    for query in book.queries:
        if pair := _tied_pair(query, exam, half.tolist(), k):
            shown = []
            for letter, ids in zip("AB", pair[1], strict=True):
                words = passages(ids)
                known = [words[one] for one in ids if words.get(one)]
                shown += [f"(system {letter}) {text}" for text in known[:PASSAGES]]
            of_query = tuple(items.get(query.query_id, ()))
            tasks[query.query_id] = WritingTask(of_query, tuple(shown), pair[0])
    return tasks


def _tied_pair(
    query: QueryGrades, exam: TrialExam, systems: Sequence[int], k: int
) -> tuple[tuple[str, str], tuple[list[str], list[str]]] | None:
    """Return two systems that cover the same items by the most different passages, or None.

    And the passages that only one of them returns.
    """
    names, scores = exam.scores.systems, exam.scores
    if query.query_id not in scores.queries:
        return None
    columns = (scores.query == scores.queries.index(query.query_id)) & exam.in_force
    returned: dict[str, dict[str, None]] = {}
    for ranking in query.rankings:
        ids = [query.passage_ids[at] for at in ranking.passages[:k].tolist()]
        returned.setdefault(ranking.system, {}).update(dict.fromkeys(ids))
    best, pair = 1.0, None
    for one, other in combinations(systems, 2):
        a, b = (returned.get(names[at], {}) for at in (one, other))
        if a and b and (scores.credit[one, columns] == scores.credit[other, columns]).all():
            shared = len(a.keys() & b.keys()) / len(a.keys() | b.keys())
            if shared < best:
                best = shared
                alone = [id_ for id_ in a if id_ not in b], [id_ for id_ in b if id_ not in a]
                pair = (names[one], names[other]), alone
    return pair


def _caption(
    book: Gradebook,
    exam: TrialExam,
    groups: Sequence[Sequence[int]],
    settings: ImprovementSettings,
) -> str:
    """Return the grades, the systems of the trial, and the items on trial, as text."""
    systems = counted(len(exam.scores.systems), "system")
    parts = [
        describe_source(book.grader, book.bank_label, book.oversight),
        f"{systems} in {counted(len(groups), 'group')} of related ones",
        f"{counted(settings.splits, 'random split')}, {percent(settings.level)} intervals",
    ]
    if not exam.in_force.all():
        parts.append(f"{counted(int((~exam.in_force).sum()), 'item')} on trial")
    return "; ".join(parts)


def _notes(texts: BankTexts, scores: ItemScores) -> Iterator[Note]:
    """Warn of missing grades, and of systems related to the writers of items on trial."""
    if scores.missing:
        yield note("items-ungraded", share=scores.missing)
    writers = {
        maker
        for entry in texts.entries
        for item in entry.items
        if not item.weight
        for maker in makers_of(item.extra, entry.extra)
    }
    families = {family for writer in writers for family in families_of(writer)}
    found = {name: families & set(families_of(name)) for name in scores.systems}
    akin = {name: shared for name, shared in sorted(found.items()) if shared}
    if akin:
        common = set().union(*akin.values())
        yield note(
            "improve-family",
            writers=sorted(one for one in writers if common & set(families_of(one))),
            families=sorted(common),
            systems=list(akin),
        )
