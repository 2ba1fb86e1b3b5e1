"""Leaderboards: evaluate all systems, measures and thresholds, with notes for the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import Leaderboard, decision_notes, duplicate_notes
from exampp.measures.corrected_cover import corrected_cover
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
from exampp.measures.names import CUTOFF, Measure, as_measures, parse_measure
from exampp.measures.needs import check_needed_cells
from exampp.measures.nugget_scores import NUGGET_SCORES, check_partial, importances_of
from exampp.measures.qrels import Labelling
from exampp.measures.rankings import contradictions
from exampp.measures.values import MeasureColumn, MeasuredSystems, best_first
from exampp.records.gradebook import Gradebook, mean_passages, without_decisions
from exampp.records.graders import GraderIdentity, steps_of
from exampp.records.items import WEIGHTS, WORD_WEIGHTS
from exampp.records.readings import describe_readings, reading_warnings, without_grade
from exampp.records.wording import counted
from exampp.results.notes import Note, note, notes_of
from exampp.sanitize import or_default
from exampp.stats.cascade import describe_audit


class MissingPrerequisite(NamedTuple):
    """A missing prerequisite of a gradebook, with its effect and a fix."""

    cause: str
    hint: str

    def __str__(self) -> str:
        return f"{self.cause}. {self.hint}."


NO_QUERIES = MissingPrerequisite("No query is imported", "Import queries and a bank: exampp import")
NO_BANK = MissingPrerequisite("The bank has no items of this kind", "Import a bank: exampp import")
NO_GRADES = MissingPrerequisite("No cell has a grade", "Grade the passages: exampp grade")
NO_RANKINGS = MissingPrerequisite(
    "No ranking is imported",
    "Import runs (exampp import), or name some with --run",
)


def missing_prerequisite(book: Gradebook) -> MissingPrerequisite | None:
    """Return the first missing prerequisite: queries, items, grades or rankings."""
    if not book.queries:
        return NO_QUERIES
    if not any(query.item_ids for query in book.queries):
        return NO_BANK
    if not book.is_graded:
        return NO_GRADES
    if not any(query.rankings for query in book.queries):
        return NO_RANKINGS
    return None


_COUNTED: Mapping[str, str] = {"NuggetVital": "vital", "NuggetWeighted": "vital or okay"}
MOSTLY_UNGRADED = 0.9
"""Share of ungraded cells from which the bank is probably not that of the grades."""
_FATE: Mapping[Missing, str] = {
    "zero": "they count as below the threshold",
    "skip": "items without any graded cell are excluded",
    "bounds": "the mean counts them as below the threshold; low and high are bounds",
}


class EvaluationSettings(NamedTuple):
    """Settings of an evaluation; `missing` and `policy` apply to Cover and nugget scores."""

    thresholds: tuple[int, ...]
    subtopics: Subtopics
    missing: Missing
    labelling: Labelling
    policy: CoverPolicy
    once: bool = False


@dataclass(frozen=True, slots=True)
class BoardContext:
    """The data from which the notes of a leaderboard are computed.

    `covered` are the results behind Cover, nCover and nugget scores, `floors` the chance levels of
    each Cover, `scored` the result of ranking measures.
    """

    gradebook: Gradebook
    columns: Sequence[MeasureColumn]
    covered: Mapping[Measure, MeasuredSystems]
    floors: Mapping[Measure, ChanceFloor]
    scored: MeasuredSystems | None
    settings: EvaluationSettings

    @property
    def nuggets(self) -> list[Measure]:
        """The nugget scores among the measures."""
        return [one for one in self.covered if one.name in NUGGET_SCORES]

    @property
    def family(self) -> str:
        """The names of Cover, nCover and nugget scores among the measures, as text."""
        if not self.nuggets:
            return "Cover and nCover"
        several = len(self.nuggets) < len(self.covered)
        return "Cover, nCover and nugget scores" if several else "nugget scores"

    def of(self, measure: Measure) -> list[MeasureColumn]:
        """Return the columns of a measure, by threshold."""
        return [one for one in self.columns if one.measure == measure]


def board_notes(of: BoardContext) -> tuple[Note, ...]:
    """Return the notes on a leaderboard, the general ones first, without duplicates."""
    measures = dict.fromkeys(str(column.measure) for column in of.columns)
    return notes_of(of, _CHECKS, whole=list(measures))


def _grades(of: BoardContext) -> Iterator[Note]:
    book = of.gradebook
    if book.grader.is_draft:
        yield note("draft")
    for text in describe_readings(book.readings, book.grader):
        yield note("grade-readings", text=text)
    for text in reading_warnings(book.readings, book.grader):
        yield note("reading-warning", text=text)
    if text := describe_audit(book.readings, book.grader):
        yield note("cascade-audit", text=text)
    if book.bank_is_graded_items:
        yield note("bank-inferred")
    if book.pending:
        yield note("cells-ungraded", states=without_grade(book.pending, book.readings, most=1))
    if missing := missing_prerequisite(book):
        yield note("prerequisite", cause=missing.cause)
    yield from grade_notes(book)


def grade_notes(book: Gradebook) -> Iterator[Note]:
    """Yield the notes that the gradebook brings: on its file, prompts, votes, calibration."""
    for text in book.notes:
        yield note("grades", text=text)


def _policy(of: BoardContext) -> Iterator[Note]:
    policy, subtopics = of.settings.policy, of.settings.subtopics
    if policy.name != "exam" and of.covered:
        family = of.family[0].upper() + of.family[1:]
        yield note("policy", family=family, policy=policy.name)
    if policy.ranks_as_written and subtopics != "query" and of.covered:
        yield note("subtopics-joined")
        if subtopics == "subtopic" and of.scored:
            yield note("subtopics-separate")
    elif subtopics == "subtopic":
        yield note("subtopics-averaged")
    elif subtopics == "pool":
        yield note("subtopics-pooled")


def _queries(of: BoardContext) -> Iterator[Note]:
    for measure, result in of.covered.items():
        if result.left_out:
            yield note("queries-without-items", family=of.family, queries=result.left_out)
        yield from _unanswered(measure, result, leave_out=of.settings.policy.answered_only)
    if of.scored is not None:
        if of.scored.left_out:
            yield note("queries-without-labels", queries=of.scored.left_out)
        for measure in dict.fromkeys(column.measure for column in of.scored.columns):
            yield from _unanswered(measure, of.scored, leave_out=False)


def _unanswered(measure: Measure, result: MeasuredSystems, *, leave_out: bool) -> Iterator[Note]:
    name, nobody = str(measure), result.answered_by_none
    if len(result.query_ids) == 1:
        yield note("one-query", name)
    if measure.kind.formula:
        return
    if nobody:
        fate = "excluded from all means" if leave_out else "0 for all of them"
        yield note("unanswered-by-all", name, queries=nobody, fate=fate)
    some = [
        f"{system} ({count - len(nobody)})"
        for system, count in zip(result.systems, result.unanswered, strict=True)
        if count > len(nobody)
    ]
    if some:
        fate = "excluded from its mean" if leave_out else "counted 0"
        what = "that only others answer" if nobody else "that a system does not answer"
        yield note("unanswered", name, what=what, fate=fate, systems=some)


def _cover(of: BoardContext) -> Iterator[Note]:
    missing = of.settings.missing
    for measure, result in of.covered.items():
        name, first, *_ = str(measure), *of.of(measure)
        if worst := _worst(result.systems, first.missing_cells):
            yield note("cover-ungraded", name, worst=worst, fate=_FATE[missing])
        share = min((one for one in first.missing_cells if one is not None), default=0.0)
        if share > MOSTLY_UNGRADED:
            yield note("bank-ungraded", share=int(100 * share))
        elif missing == "zero" and first.low is not None:
            yield note("cover-bounds", name)
        for column in of.of(measure):
            at = f"{measure} at {column.min_rating}"
            yield from _correction(of.gradebook, column)
            if measure.name == "nCover" and (queries := _undefined(column)):
                yield note("ncover-undefined", at, queries=queries)
            if measure.name == "Cover" and missing == "skip":
                fewer = (~column.values.counts).sum(axis=1)
                few = [f"{s} ({n})" for s, n in zip(result.systems, fewer, strict=True) if n]
                if few:
                    yield note("cover-skipped", at, systems=few)


def _to_avoid(of: BoardContext) -> Iterator[Note]:
    """Note the items to avoid if a measure of Cover is shown."""
    counts = [int((query.weights < 0).sum()) for query in of.gradebook.queries]
    if of.covered and any(counts):
        queries = counted(sum(map(bool, counts)), "query")
        yield note("items-to-avoid", items=counted(sum(counts), "item"), queries=queries)


def _correction(book: Gradebook, column: MeasureColumn) -> Iterator[Note]:
    """Note how Cover is corrected for skipped cells, or that it is not."""
    if book.target is None or not book.target.may_miss or column.measure.name != "Cover":
        return
    if not column.corrected:
        yield note("cover-not-corrected", str(column.measure))
        return
    skips = [query.skips for query in book.queries if query.skips is not None]
    drawn, items = sum(int(one.drawn.sum()) for one in skips), sum(len(one.drawn) for one in skips)
    yield note("cover-corrected", str(column.measure), drawn=f"{drawn:,}", items=f"{items:,}")
    if whys := Counter(one.why for one in column.corrected if one.low is None):
        why = "; ".join(f"{reason} ({counted(n, 'system')})" for reason, n in whys.items())
        yield note("corrected-no-limits", column.name, why=why)


def _undefined(column: MeasureColumn) -> list[str]:
    """Return the queries without a value for the whole pool, or for any system if it is unknown."""
    some = np.logical_or.reduce((column.overall or column.values).counts, axis=0).tolist()
    return [query for query, count in zip(column.query_ids, some, strict=True) if not count]


def _importances(of: BoardContext) -> Iterator[Note]:
    """Note unknown importances and the queries without a value because of them."""
    weighing = [one for one in of.nuggets if one.name != "NuggetAll"]
    words = importances_of(of.gradebook) if of.nuggets else []
    invalid = Counter(word or "(empty)" for word in words if word not in (None, *WORD_WEIGHTS))
    if invalid:
        unknown_words = [f"{word!r} ({count})" for word, count in invalid.most_common()]
        yield note("importance-invalid", words=unknown_words)
    if weighing and words and not any(word in WEIGHTS for word in words):
        yield note("importance-missing", measures=list(map(str, weighing)))
    elif of.settings.missing != "skip":
        for measure in weighing:
            if queries := _undefined(of.of(measure)[0]):
                kind = _COUNTED[measure.name]
                yield note("nuggets-undefined", str(measure), counted=kind, queries=queries)


def _chance(of: BoardContext) -> Iterator[Note]:
    for measure, floor in of.floors.items():
        columns = of.of(measure) if floor.values else []
        several = len(columns) > 1
        values = [
            f"{value:.3f}" + (f" (\u2265{one.min_rating})" if several else "")
            for one, value in zip(columns, floor.values, strict=True)
        ]
        means = [[m.mean for m in one.values.means() if m.mean is not None] for one in columns]
        averages = ", ".join(f"{np.mean(one):.3f}" for one in means if one)
        if columns:
            yield note(
                chance_code(floor),
                measure=measure if several else columns[0].name,
                drawn=floor.drawn,
                values=", ".join(values),
                average=f"; systems average {averages}" if averages else "",
            )


def chance_code(floor: ChanceFloor) -> str:
    """Return the code of the note on a chance level: a low one changes no reading."""
    return "chance" if max(floor.values) >= _HIGH_CHANCE else "chance-low"


def _scores(of: BoardContext) -> Iterator[Note]:
    if of.scored is None:
        return
    queries = len(of.scored.query_ids)
    irrelevant: dict[tuple[int | None, int], list[str]] = {}
    share = missing_share(of.gradebook)
    for column in of.scored.columns:
        name = str(column.measure)
        if worst := _worst(of.scored.systems, column.ungraded):
            yield note("passages-ungraded", name, worst=worst)
        if share > FEW_MISSING:
            yield note("labels-ungraded", name, share=share)
        if column.without_relevant:
            irrelevant.setdefault((column.min_rating, column.without_relevant), []).append(name)
    for (threshold, count), measures in irrelevant.items():
        code = "no-relevant" if threshold is None else "no-relevant-from"
        subjects = () if threshold is None else (str(threshold),)
        yield note(code, *subjects, count=count, queries=queries, measures=", ".join(measures))
    diverse = [str(one.measure) for one in of.scored.columns if one.measure.kind.subtopics]
    if diverse and any(len(set(q.weights[q.weights > 0])) > 1 for q in of.gradebook.queries):
        yield note("weights-ignored", measures=list(dict.fromkeys(diverse)))
    if wrong := contradictions(of.gradebook):
        yield note("ranks-contradict", rankings=counted(wrong, "ranking"))


_CHECKS = (_grades, _policy, _queries, _cover, _to_avoid, _importances, _chance, _scores)


def _worst(systems: Sequence[str], shares: Sequence[float | None]) -> str:
    """Return the largest share and its system; nothing if all are 0."""
    share, system = max(
        ((share, system) for share, system in zip(shares, systems, strict=True) if share),
        default=(0.0, ""),
    )
    return f"{share:.1%} ({system})" if share else ""


_HIGH_CHANCE = 0.05
DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")


def default_measures(book: Gradebook, usual: tuple[str, ...] = DEFAULT_MEASURES) -> tuple[str, ...]:
    """Return the measures to evaluate by default: those for which the cells were graded, if set.

    A bank with items to avoid adds Avoided.
    """
    if book.target is not None:
        return book.target.measures
    avoids = any((query.weights < 0).any() for query in book.queries)
    return (*usual, *[f"Avoided@{CUTOFF}"] * avoids)


def default_cutoff(book: Gradebook) -> int:
    """Return the cutoff of the first measure to evaluate by default."""
    return parse_measure(default_measures(book)[0]).cutoff or CUTOFF


def default_min_rating(book: Gradebook) -> int:
    """Return the default minimum rating; it is never above those for which cells were graded."""
    return min(book.grader.default_min_rating, book.highest_threshold)


_EXPONENTIAL = ("ERR", "NERR8", "NERR9", "NERR10", "NERR11")


def _check_gains(measure: Measure, grader: GraderIdentity) -> None:
    """Raise InputError for gains of 2^label if labels are multiples of the ratings."""
    steps = steps_of(grader)
    if steps > 1 and (measure.name in _EXPONENTIAL or measure.param("dcg") == "exp-log2"):
        raise InputError(
            f"the measure {measure} has gains of 2 to the power of a label, but the labels of "
            f"{grader.name} are {steps} times the ratings",
            hint="Use a measure with linear gains, such as nDCG@10, or a vote without --steps",
        )


def evaluate(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    *,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    policy: CoverPolicy = EXAM,
    once: bool = False,
) -> Leaderboard:
    """Evaluate the systems of a gradebook by some measures at some thresholds.

    Cover, nCover and nugget scores without a cutoff read 20 passages; `missing` and `policy` apply
    to these measures, `labelling` to all others. With `once`, Cover and nCover are also computed
    with each group of duplicates as one item.

    Raises:
        InputError: A measure is unknown or cannot be computed, or a threshold is off the scale.
    """
    cut = (m.cut(CUTOFF) if m.kind.cover else m for m in as_measures(measures))
    requested = as_measures(cut)
    settings = EvaluationSettings(
        tuple(dict.fromkeys(map(gradebook.grader.threshold, min_ratings))),
        resolve_subtopics(gradebook, subtopics),
        missing,
        or_default("labelling", labelling, Labelling),
        policy,
        once,
    )
    for measure in requested:
        check_partial(measure, gradebook.grader)
        _check_gains(measure, gradebook.grader)
    _check_enough(requested, settings.thresholds, settings.labelling)
    check_needed_cells(
        gradebook, requested, settings.thresholds, settings.subtopics, settings.policy
    )
    board = _evaluate(gradebook, requested, settings)
    if gradebook.oversight.cells:
        other = _evaluate(without_decisions(gradebook), requested, settings)
        board = replace(board, without_decisions=other)
    notes = (*duplicate_notes(gradebook, board), *decision_notes(gradebook, board))
    return replace(board, notes=(*notes, *board.notes))


def evaluate_gradebook(
    book: Gradebook,
    measures: Sequence[Measure | str] | None = None,
    min_rating: int | Sequence[int] | None = None,
    *,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    compat: str = "exam",
    once: bool = False,
) -> Leaderboard:
    """Return the leaderboard of a gradebook; see `Grades.evaluate`."""
    if measures is None:
        measures = default_measures(book)
    if compat not in POLICIES:
        raise InputError(
            f"unknown compatibility mode {compat!r}", hint=f"Use one of {', '.join(POLICIES)}"
        )
    if min_rating is None and book.target is not None:
        min_rating = book.target.min_ratings
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
        once=once,
    )


def _evaluate(
    gradebook: Gradebook, measures: Sequence[Measure], settings: EvaluationSettings
) -> Leaderboard:
    subtopics, policy = settings.subtopics, settings.policy
    covering = [one for one in measures if one.kind.cover]
    cutoffs = {one: one.cutoff or CUTOFF for one in covering}
    if len(set(cutoffs.values())) > 1 and not policy.ranks_as_written:
        # all cutoffs beyond the longest ranking have the same values
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
    scored = None
    if ranking:
        from exampp.measures.scores import score

        scored = score(
            gradebook,
            ranking,
            settings.thresholds,
            subtopics=subtopics,
            labelling=settings.labelling,
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
    columns = tuple(column for one in measures for column in columns_of[one])
    if settings.missing == "zero" and policy is EXAM:
        columns = tuple(
            replace(one, corrected=corrected_cover(gradebook, one, subtopics))
            if one.measure.name == "Cover"
            else one
            for one in columns
        )
    counted_once = (
        {
            (column.measure, column.min_rating): column
            for one in covering
            if one.name not in NUGGET_SCORES and any(q.item_groups for q in gradebook.queries)
            for column in cover(
                gradebook,
                settings.thresholds,
                k=cutoffs[one],
                subtopics=subtopics,
                missing=settings.missing,
                policy=policy,
                measures=[one],
                once=True,
            ).columns
        }
        if settings.once
        else None
    )
    if gradebook.target is not None:
        # of the whole pool, not all cells are graded
        columns = tuple(
            replace(one, overall=None) if one.overall_shares[1] else one for one in columns
        )
    context = BoardContext(
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
        systems=tuple(
            gradebook.systems[at] for at in best_first(gradebook.systems, columns[0].values.means())
        ),
        column_systems=gradebook.systems,
        columns=columns,
        notes=board_notes(context),
        oversight=gradebook.oversight,
        passages=mean_passages(gradebook),
        fingerprints=gradebook.fingerprints,
        counted_once=counted_once,
    )


def _check_enough(
    measures: Sequence[Measure], thresholds: Sequence[int], labelling: Labelling
) -> None:
    if not measures:
        raise InputError("no measure given", hint="Add one, such as Cover@20")
    if not thresholds and (labelling.needs_threshold or any(m.takes_level for m in measures)):
        raise InputError("no minimum rating given", hint="Set the lowest rating that counts")
