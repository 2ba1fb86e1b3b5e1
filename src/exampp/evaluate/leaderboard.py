"""Leaderboards: all systems, measures and thresholds, and what to know when reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from exampp.errors import InputError
from exampp.evaluate.board import Leaderboard, MeasureColumn
from exampp.evaluate.chance import ChanceFloor, chance_floor
from exampp.evaluate.cover import CoverResult, Covers, Missing, cover, longest_sitting
from exampp.evaluate.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.evaluate.leaderboard_notes import Notes
from exampp.evaluate.measure import Measure, as_measures
from exampp.evaluate.nuggets import NUGGET_SCORES, check_partial
from exampp.evaluate.people import people_notes
from exampp.evaluate.policy import EXAM, POLICIES, CoverPolicy
from exampp.evaluate.qrels import Labelling
from exampp.evaluate.scores import Score, ScoreResult, score
from exampp.evaluate.values import Mean
from exampp.evaluate.weighted_cover import WeightedCover, weighted_cover, with_plain
from exampp.outside import or_default
from exampp.records.gradebook import (
    Gradebook,
    mean_passages,
    without_decisions,
)

DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")


def evaluate(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    *,
    k: int = 20,
    subtopics: SubtopicChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    policy: CoverPolicy = EXAM,
) -> Leaderboard:
    """Evaluate the systems of a gradebook by some measures at some thresholds.

    `k` is the cutoff of a Cover or nCover that has none; `missing` and `policy` concern these two,
    `labelling` all the others.

    Raises:
        InputError: A measure is unknown or cannot be computed, or a threshold is off the scale.
    """
    labelling, measures = or_default("labelling", labelling, Labelling), tuple(measures)
    board = _evaluated(gradebook, measures, min_ratings, k, subtopics, missing, labelling, policy)
    if gradebook.oversight.cells:
        automatic = without_decisions(gradebook)
        other = _evaluated(
            automatic, measures, min_ratings, k, board.subtopics, missing, labelling, policy
        )
        board = replace(board, without_decisions=other)
    people = tuple(people_notes(gradebook, board.changes()))
    return replace(board, notes=(*people, *board.notes))


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


def _ends(
    gradebook: Gradebook, depths: Sequence[int], subtopics: Subtopics, policy: CoverPolicy
) -> dict[int, int]:
    """Where each depth ends: with the longest ranking, at the latest, of several depths."""
    if len(depths) < 2 or policy.ranks_as_written:
        return dict(zip(depths, depths, strict=True))
    longest = longest_sitting(gradebook, subtopics)
    return {depth: min(depth, longest) for depth in depths}


def _evaluated(
    gradebook: Gradebook,
    measures: Iterable[Measure | str],
    min_ratings: Sequence[int],
    k: int,
    subtopics: SubtopicChoice,
    missing: Missing,
    labelling: Labelling,
    policy: CoverPolicy,
) -> Leaderboard:
    cut = (m.cut(k) if m.kind.cover else m for m in as_measures(measures))
    asked = as_measures(one for measure in cut for one in with_plain(measure))
    thresholds = tuple(dict.fromkeys(map(gradebook.grader.threshold, min_ratings)))
    for measure in asked:
        check_partial(measure, gradebook.grader)
    _check_enough(asked, thresholds, labelling)
    mode = resolve_subtopics(gradebook, subtopics)
    at_depth: dict[int, list[Measure]] = {}
    for measure in asked:
        if measure.kind.cover:
            of_depth = at_depth.setdefault(measure.cutoff or k, [])
            of_depth += [measure] if measure.name in NUGGET_SCORES else []
    ends = _ends(gradebook, list(at_depth), mode, policy)
    reached: dict[int, list[Measure]] = {}
    for depth, nuggets in at_depth.items():
        reached.setdefault(ends[depth], []).extend(nuggets)
    found = {
        end: cover(
            gradebook,
            thresholds,
            k=end,
            subtopics=mode,
            missing=missing,
            policy=policy,
            nuggets=nuggets,
        )
        for end, nuggets in reached.items()
    }
    covers = {depth: found[ends[depth]] for depth in at_depth}
    floors = {
        depth: chance_floor(gradebook, thresholds, depth, mode, policy)
        for depth in at_depth
        if Measure("Cover", depth) in asked
    }
    weighted = {
        m: weighted_cover(gradebook, m, thresholds, mode, missing, policy)
        for m in asked
        if m.weights
    }
    others = [m for m in asked if not m.kind.cover]
    scored = None
    if others:
        scored = score(gradebook, others, thresholds, subtopics=mode, labelling=labelling)
    columns = tuple(_columns(asked, covers, floors, weighted, scored))
    return Leaderboard(
        grader=gradebook.grader,
        bank=gradebook.bank_label,
        subtopics=mode,
        systems=_sorted(gradebook.systems, columns[0].values.means()),
        column_systems=gradebook.systems,
        columns=columns,
        notes=Notes(
            gradebook, asked, mode, covers, floors, weighted, scored, missing, policy
        ).all(),
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


def _columns(
    asked: Sequence[Measure],
    covers: Mapping[int, CoverResult],
    floors: Mapping[int, ChanceFloor],
    weighted: Mapping[Measure, Sequence[WeightedCover]],
    scored: ScoreResult | None,
) -> Iterator[MeasureColumn]:
    """The columns in the order of the measures, then of the thresholds."""
    for measure in asked:
        if measure.kind.cover and measure.cutoff is not None:
            result = covers[measure.cutoff]
            plain = Measure("Cover", measure.cutoff) == measure
            floor = floors[measure.cutoff].values if plain else ()
            tables = zip_longest(result.thresholds, _tables(measure, result, weighted), floor)
            for threshold, table, chance in tables:
                yield _cover_column(measure, threshold, result, table, chance)
        elif scored is not None:
            for found in scored.scores:
                if found.measure == measure:
                    yield _score_column(found, scored)


def _tables(
    measure: Measure, result: CoverResult, weighted: Mapping[Measure, Sequence[WeightedCover]]
) -> Sequence[Covers]:
    """The values of one of our measures, threshold by threshold."""
    return [one.covers for one in weighted[measure]] if measure.weights else result.of(measure)


def _cover_column(
    measure: Measure, threshold: int, result: CoverResult, table: Covers, chance: float | None
) -> MeasureColumn:
    return MeasureColumn(
        measure=measure,
        min_rating=threshold,
        query_ids=result.query_ids,
        values=table.values,
        ungraded=result.ungraded,
        missing_cells=result.missing_cells,
        low=table.low,
        high=table.high,
        overall=table.overall,
        overall_shares=(result.overall_ungraded, result.overall_missing_cells),
        chance=chance,
    )


def _score_column(found: Score, scored: ScoreResult) -> MeasureColumn:
    return MeasureColumn(
        measure=found.measure,
        min_rating=found.min_rating,
        query_ids=scored.query_ids,
        values=found.values,
        ungraded=found.unjudged,
        missing_cells=(None,) * len(scored.systems),
    )


def _sorted(systems: Sequence[str], means: Sequence[Mean]) -> tuple[str, ...]:
    def key(pair: tuple[str, Mean]) -> tuple[bool, float, str]:
        system, (mean, _, _) = pair
        # Rounded, so that the last digit of a sum does not decide over equal systems.
        return mean is None, -round(mean or 0.0, 10), system

    return tuple(system for system, _ in sorted(zip(systems, means, strict=True), key=key))
