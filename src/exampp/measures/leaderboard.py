"""Leaderboards: all systems, measures and thresholds, and what to know when reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import Leaderboard, decision_notes
from exampp.measures.cover import (
    EXAM,
    FEW_MISSING,
    POLICIES,
    ChanceFloor,
    CoverPolicy,
    Missing,
    chance_floor,
    cover,
    longest_ranking,
    missing_share,
)
from exampp.measures.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.measures.item_scores import weighted_cover, with_plain
from exampp.measures.names import Measure, as_measures
from exampp.measures.nuggets import NUGGET_SCORES, check_partial, importances_of
from exampp.measures.qrels import Labelling
from exampp.measures.rankings import contradictions
from exampp.measures.scores import score
from exampp.measures.values import Mean, MeasureColumn, MeasuredSystems
from exampp.records.gradebook import Gradebook, mean_passages, without_decisions
from exampp.records.items import WEIGHTS
from exampp.records.readings import describe_readings, without_grade
from exampp.results.notes import About, grouped
from exampp.sanitize import or_default


class MissingPrerequisite(NamedTuple):
    """What a gradebook has none of, with what follows from it, and how to mend it."""

    cause: str
    mend: str

    def __str__(self) -> str:
        return f"{self.cause}. {self.mend}."


NO_QUERIES = MissingPrerequisite(
    "There are no queries, and so no value is defined", "Import queries and a bank: exampp import"
)
NO_BANK = MissingPrerequisite(
    "There are no items of this kind, and so no value is defined", "Import a bank: exampp import"
)
NO_GRADES = MissingPrerequisite(
    "No cell has a grade, and so no measure has a value", "Grade the passages: exampp grade"
)
NO_RANKINGS = MissingPrerequisite(
    "There are no rankings, and so no systems to compare",
    "Import runs (exampp import), or name some with --run",
)


def missing_prerequisite(book: Gradebook) -> MissingPrerequisite | None:
    """The first thing that is missing to compare systems: queries, items, grades, rankings."""
    if not book.queries:
        return NO_QUERIES
    if not any(query.item_ids for query in book.queries):
        return NO_BANK
    if not book.is_graded:
        return NO_GRADES
    if not any(query.rankings for query in book.queries):
        return NO_RANKINGS
    return None


_SHOWN = 5
_COUNTED: Mapping[str, str] = {"NuggetVital": "vital", "NuggetWeighted": "vital or okay"}

_MISSING: Mapping[Missing, str] = {
    "zero": "they count as below the threshold",
    "skip": "items without any graded cell are left out",
    "bounds": "the mean counts them as below the threshold, low and high bound what they can do",
}


class EvaluationSettings(NamedTuple):
    """How systems are evaluated: `missing` and `policy` concern measures of covered items."""

    thresholds: tuple[int, ...]
    subtopics: Subtopics
    missing: Missing
    labelling: Labelling
    policy: CoverPolicy


@dataclass(frozen=True, slots=True)
class Notes:
    """Everything that is worth a sentence under a leaderboard.

    `covered` are the results behind each measure of covered items, `floors` the chance levels of
    each Cover.
    """

    gradebook: Gradebook
    columns: Sequence[MeasureColumn]
    covered: Mapping[Measure, MeasuredSystems]
    floors: Mapping[Measure, ChanceFloor]
    scored: MeasuredSystems | None
    settings: EvaluationSettings

    def all(self) -> tuple[str, ...]:
        """The sentences, the general ones first, each once, with the measures that it concerns."""
        notes = [
            *self._grades(),
            *self.gradebook.notes,
            *self._queries(),
            *self._cover(),
            *self._importances(),
            *self._chance(),
            *self._weighted(),
            *self._scores(),
        ]
        return grouped(notes, whole=[str(measure) for measure in self._measures])

    @property
    def _measures(self) -> list[Measure]:
        return list(dict.fromkeys(column.measure for column in self.columns))

    @property
    def _nuggets(self) -> list[Measure]:
        return [one for one in self.covered if one.name in NUGGET_SCORES]

    @property
    def _family(self) -> str:
        """The measures of covered items, in words."""
        if not self._nuggets:
            return "Cover and nCover"
        both = len(self._nuggets) < len(self.covered)
        return "Cover, nCover and nugget scores" if both else "Nugget scores"

    def _grades(self) -> Iterator[str]:
        book, policy, subtopics = self.gradebook, self.settings.policy, self.settings.subtopics
        if book.grader.is_draft:
            yield "These are draft grades: good for trying things out, not for conclusions."
        yield from describe_readings(book.readings, book.grader)
        if book.bank_is_graded_items:
            yield (
                "No bank given; using the items found in the grades, so Cover may be overestimated."
            )
        if book.pending:
            states = without_grade(book.pending, book.readings, most=1)
            yield f"Cells without a grade in the whole collection: {states}."
        if policy.name != "exam" and self.covered:
            yield f"{self._family} follow the policy {policy.name}."
        if policy.ranks_as_written and subtopics != "query" and self.covered:
            yield "For Cover, all rankings of a system for a query and its subtopics are joined."
            if subtopics == "subtopic" and self.scored:
                yield "For other measures each subtopic is a separate query."
        elif subtopics == "subtopic":
            yield (
                "Cover is the mean over the subtopics of a query, then over queries; for other "
                "measures each subtopic is a separate query."
            )
        elif subtopics == "pool":
            yield "The subtopic rankings of a system are interleaved into one ranking per query."
        if missing := missing_prerequisite(book):
            yield f"{missing.cause}."

    def _queries(self) -> Iterator[str | About]:
        for measure, result in self.covered.items():
            if result.left_out:
                yield f"Left out of {self._family}, having no items: {_list(result.left_out)}."
            yield from _unanswered(measure, result, left_out=self.settings.policy.answered_only)
        if self.scored is None:
            return
        if self.scored.left_out:
            queries = _list(self.scored.left_out)
            yield f"Left out of the ranking measures, having no graded passage: {queries}."
        for measure in dict.fromkeys(column.measure for column in self.scored.columns):
            yield from _unanswered(measure, self.scored, left_out=False)

    def _cover(self) -> Iterator[About]:
        missing = self.settings.missing
        for measure, result in self.covered.items():
            columns = [one for one in result.columns if one.measure == measure]
            name, systems = str(measure), result.systems
            if worst := _worst(systems, columns[0].missing_cells):
                fate = f" have no grade: {_MISSING[missing]}."
                yield About(f"Up to {worst} of the cells that decide ", name, fate)
            if missing == "zero" and columns[0].low is not None:
                yield About(
                    "More than 1% of the cells that decide ",
                    name,
                    " have no grade: brackets show the lowest and highest possible score (retry "
                    "with exampp grade).",
                )
            for column in columns:
                at = f"{measure} at {column.min_rating}"
                if measure.name == "nCover" and (queries := _undefined(column)):
                    nothing = ", as no graded passage covers anything"
                    yield About("Left out of ", at, f"{nothing}: {_list(queries)}.")
                if measure.name == "Cover" and missing == "skip":
                    fewer = (~column.values.counts).sum(axis=1)
                    few = [f"{s} ({n})" for s, n in zip(systems, fewer, strict=True) if n]
                    if few:
                        yield About(
                            "", at, f" leaves out queries without a graded cell: {_list(few)}."
                        )

    def _importances(self) -> Iterator[str | About]:
        """What is not known of nuggets, and what has no value for it."""
        weighing = [one for one in self._nuggets if one.name != "NuggetAll"]
        words = importances_of(self.gradebook) if self._nuggets else []
        invalid = Counter(
            word or "(empty)" for word in words if word is not None and word not in WEIGHTS
        )
        if invalid:
            some = _list([f"{word!r} ({count})" for word, count in invalid.most_common()])
            yield (
                "Importances other than vital and okay are invalid, and such nuggets count in "
                f"NuggetAll alone: {some}."
            )
        if weighing and words and not any(word in WEIGHTS for word in words):
            names = ", ".join(map(str, weighing))
            yield (
                f"The bank does not say which items are vital or okay, so {names} have no value. "
                "Import a bank that does: nuggetizer's, or one with a column importance."
            )
            return
        for measure in weighing if self.settings.missing != "skip" else ():
            column = next(one for one in self.columns if one.measure == measure)
            if queries := _undefined(column):
                none = f", as none of their nuggets is {_COUNTED[measure.name]}"
                yield About("Left out of ", str(measure), f"{none}: {_list(queries)}.")

    def _chance(self) -> Iterator[str]:
        for measure, floor in self.floors.items():
            columns = [
                one for one in self.columns if one.measure == measure and one.chance is not None
            ]
            if not columns:
                continue
            several = len(columns) > 1
            name = str(measure) if several else columns[0].name
            values = [
                f"{value:.3f}" + (f" (\u2265{one.min_rating})" if several else "")
                for one, value in zip(columns, floor.values, strict=bool(columns))
            ]
            of_systems = [
                [mean.mean for mean in column.values.means() if mean.mean is not None]
                for column in columns
            ]
            averages = ", ".join(f"{np.mean(means):.3f}" for means in of_systems if means)
            average = f"; systems average {averages}" if averages else ""
            yield f"Chance level of {name}: {floor.drawn} score {', '.join(values)}{average}."

    def _weighted(self) -> Iterator[str]:
        weighted = [column for column in self.columns if column.weighting]
        for column in weighted:
            yield f"{column.name}: {column.weighting}."
        if weighted:
            yield (
                "Weights are made from these systems, without human labels, and stay the same for "
                "systems added later. They rank systems better in one known collection, so report "
                "the plain Cover beside them (exampp analyze items)."
            )

    def _scores(self) -> Iterator[str | About]:
        if self.scored is None:
            return
        share = missing_share(self.gradebook)
        irrelevant: dict[tuple[int | None, int], list[str]] = {}
        for column in self.scored.columns:
            name = str(column.measure)
            if worst := _worst(self.scored.systems, column.ungraded):
                yield About(f"Up to {worst} of the passages behind ", name, " have no grade.")
            if share > FEW_MISSING:
                yield About(
                    f"{share:.1%} of the cells of ranked passages have no grade, so labels of "
                    "passages and ",
                    name,
                    " may be wrong, mostly too low. No bounds are known.",
                )
            if column.without_relevant:
                key = (column.min_rating, column.without_relevant)
                irrelevant.setdefault(key, []).append(name)
        for (threshold, count), measures in irrelevant.items():
            what = (
                f"{count} of {len(self.scored.query_ids)} queries have no relevant passage "
                f"and count 0 for every system: {', '.join(measures)}."
            )
            known = threshold is not None
            yield About("From rating ", str(threshold), f" on: {what}") if known else what
        diverse = [str(one) for one in self._measures if one.kind.subtopics]
        if diverse and any(len(set(q.weights[q.weights > 0])) > 1 for q in self.gradebook.queries):
            yield f"All items count alike, without the weights of the bank: {', '.join(diverse)}."
        if wrong := contradictions(self.gradebook):
            yield (
                f"{wrong} rankings have scores that contradict their ranks: ranking measures "
                "follow the scores, as trec_eval does; Cover follows the ranks."
            )


def _unanswered(measure: Measure, result: MeasuredSystems, *, left_out: bool) -> Iterator[About]:
    """Queries that some systems do not answer, and that there is only one query."""
    name = str(measure)
    if len(result.query_ids) == 1:
        yield About("", name, ": Only one query counts, so there is no standard error.")
    if measure.kind.formula:
        return
    nobody = len(result.answered_by_none)
    if nobody:
        fate = "left out of all means" if left_out else "0 for all of them"
        yield About("", name, f": No system answers {_list(result.answered_by_none)}: {fate}.")
    unanswered = [
        f"{system} ({count - nobody})"
        for system, count in zip(result.systems, result.unanswered, strict=True)
        if count > nobody
    ]
    if unanswered:
        fate = "left out of its mean" if left_out else "counted 0"
        others = "that only others answer" if nobody else "that a system does not answer"
        yield About("", name, f": Queries {others} are {fate}: {_list(unanswered)}.")


def _undefined(column: MeasureColumn) -> list[str]:
    """The queries on which even the whole pool has no value."""
    counts = column.overall.counts[0] if column.overall else ()
    return [query for query, known in zip(column.query_ids, counts, strict=True) if not known]


def _worst(systems: Sequence[str], shares: Sequence[float | None]) -> str:
    """The largest share and whose it is; nothing if all are 0."""
    share, system = max(
        ((share, system) for share, system in zip(shares, systems, strict=True) if share),
        default=(0.0, ""),
    )
    return f"{share:.1%} ({system})" if share else ""


def _list(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")
CUTOFF = 20
"""The cutoff of a measure of covered items that has none."""


def evaluate(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    *,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    policy: CoverPolicy = EXAM,
) -> Leaderboard:
    """Evaluate the systems of a gradebook by some measures at some thresholds.

    A measure of covered items without a cutoff reads 20 passages; `missing` and `policy` concern
    these measures, `labelling` all the others.

    Raises:
        InputError: A measure is unknown or cannot be computed, or a threshold is off the scale.
    """
    cut = (m.cut(CUTOFF) if m.kind.cover else m for m in as_measures(measures))
    requested = as_measures(one for measure in cut for one in with_plain(measure))
    settings = EvaluationSettings(
        tuple(dict.fromkeys(map(gradebook.grader.threshold, min_ratings))),
        resolve_subtopics(gradebook, subtopics),
        missing,
        or_default("labelling", labelling, Labelling),
        policy,
    )
    for measure in requested:
        check_partial(measure, gradebook.grader)
    _check_enough(requested, settings.thresholds, settings.labelling)
    board = _evaluate(gradebook, requested, settings)
    if gradebook.oversight.cells:
        other = _evaluate(without_decisions(gradebook), requested, settings)
        board = replace(board, without_decisions=other)
    return replace(board, notes=(*decision_notes(gradebook, board), *board.notes))


def evaluate_gradebook(
    book: Gradebook,
    measures: Sequence[Measure | str] = DEFAULT_MEASURES,
    min_rating: int | Sequence[int] | None = None,
    *,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    compat: str = "exam",
) -> Leaderboard:
    """The leaderboard of a gradebook; see `Grades.evaluate`."""
    if compat not in POLICIES:
        raise InputError(f"no compatibility mode {compat!r}", mend=f"Known: {', '.join(POLICIES)}")
    if min_rating is None:
        min_rating = book.grader.default_min_rating
        book = replace(book, notes=(*book.notes, *filter(None, [book.grader.cut])))
    thresholds = list(min_rating) if isinstance(min_rating, Iterable) else [min_rating]
    return evaluate(
        book,
        measures,
        thresholds,
        subtopics=subtopics,
        missing=missing,
        labelling=labelling,
        policy=POLICIES[compat],
    )


def _evaluate(
    gradebook: Gradebook, measures: Sequence[Measure], settings: EvaluationSettings
) -> Leaderboard:
    subtopics, policy = settings.subtopics, settings.policy
    covering = [one for one in measures if one.kind.cover and not one.weights]
    cutoffs = {one: one.cutoff or CUTOFF for one in covering}
    if len(set(cutoffs.values())) > 1 and not policy.ranks_as_written:
        # all cutoffs beyond the longest ranking are computed once
        longest = longest_ranking(gradebook, subtopics)
        cutoffs = {one: min(cutoff, longest) for one, cutoff in cutoffs.items()}
    results = {
        cutoff: cover(
            gradebook,
            settings.thresholds,
            k=cutoff,
            subtopics=subtopics,
            missing=settings.missing,
            policy=policy,
            measures=[one for one in covering if cutoffs[one] == cutoff],
        )
        for cutoff in dict.fromkeys(cutoffs.values())
    }
    ranking = [one for one in measures if not one.kind.cover]
    scored = (
        score(
            gradebook,
            ranking,
            settings.thresholds,
            subtopics=subtopics,
            labelling=settings.labelling,
        )
        if ranking
        else None
    )
    columns_of: dict[Measure, list[MeasureColumn]] = {}
    for result in (*results.values(), *filter(None, [scored])):
        for column in result.columns:
            columns_of.setdefault(column.measure, []).append(column)
    floors = {
        one: chance_floor(gradebook, settings.thresholds, one.cutoff or CUTOFF, subtopics, policy)
        for one in covering
        if one.name == "Cover"
    }
    for measure, floor in floors.items():
        plain = columns_of[measure]
        if floor.values:
            chances = zip(plain, floor.values, strict=True)
            columns_of[measure] = [replace(column, chance=one) for column, one in chances]
    for measure in measures:
        if measure.weights:
            plain = columns_of[Measure("Cover", measure.at)]
            columns_of[measure] = weighted_cover(
                gradebook, measure, plain, subtopics, settings.missing, policy
            )
    columns = tuple(column for one in measures for column in columns_of[one])
    notes = Notes(
        gradebook,
        columns,
        {one: results[cutoff] for one, cutoff in cutoffs.items()},
        floors,
        scored,
        settings,
    )
    return Leaderboard(
        grader=gradebook.grader,
        bank=gradebook.bank_label,
        subtopics=subtopics,
        systems=_sorted(gradebook.systems, columns[0].values.means()),
        column_systems=gradebook.systems,
        columns=columns,
        notes=notes.all(),
        oversight=gradebook.oversight,
        passages=mean_passages(gradebook),
        fingerprints=gradebook.fingerprints,
    )


def _check_enough(
    asked: Sequence[Measure], thresholds: Sequence[int], labelling: Labelling
) -> None:
    if not asked:
        raise InputError("no measure is asked for", mend="Name one, such as Cover@20")
    if not thresholds and (labelling.needs_threshold or any(m.takes_level for m in asked)):
        raise InputError("no minimum rating is given", mend="Say from which rating on one counts")


def _sorted(systems: Sequence[str], means: Sequence[Mean]) -> tuple[str, ...]:
    def key(pair: tuple[str, Mean]) -> tuple[bool, float, str]:
        system, (mean, _, _) = pair
        # Rounded, so that the last digit of a sum does not decide over equal systems.
        return mean is None, -round(mean or 0.0, 10), system

    return tuple(system for system, _ in sorted(zip(systems, means, strict=True), key=key))
