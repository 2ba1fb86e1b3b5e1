"""Leaderboards: all systems, measures and thresholds, and what to know when reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import Leaderboard, MeasureColumn, decision_notes
from exampp.measures.cover import (
    EXAM,
    FEW_MISSING,
    POLICIES,
    ChanceFloor,
    CoverPolicy,
    CoverResult,
    Covers,
    Missing,
    chance_floor,
    cover,
    longest_ranking,
    missing_share,
)
from exampp.measures.exams import SubtopicChoice, Subtopics, resolve_subtopics
from exampp.measures.item_scores import WeightedCover, weighted_cover, with_plain
from exampp.measures.names import Measure, as_measures, heading
from exampp.measures.nuggets import NUGGET_SCORES, check_partial, importances_of
from exampp.measures.qrels import Labelling
from exampp.measures.rankings import contradictions
from exampp.measures.scores import Score, ScoreResult, score
from exampp.measures.values import Mean, Values
from exampp.records.gradebook import Gradebook, mean_passages, without_decisions
from exampp.records.items import WEIGHTS
from exampp.records.readings import describe_readings, without_grade
from exampp.results.notes import Note, note, notes_of
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


_COUNTED: Mapping[str, str] = {"NuggetVital": "vital", "NuggetWeighted": "vital or okay"}
_FATE: Mapping[Missing, str] = {
    "zero": "they count as below the threshold",
    "skip": "items without any graded cell are left out",
    "bounds": "the mean counts them as below the threshold; low and high are bounds",
}


@dataclass(frozen=True, slots=True)
class BoardContext:
    """What the notes of a leaderboard are about."""

    gradebook: Gradebook
    measures: Sequence[Measure]
    subtopics: Subtopics
    covers: Mapping[int, CoverResult]
    floors: Mapping[int, ChanceFloor]
    weighted: Mapping[Measure, Sequence[WeightedCover]]
    scored: ScoreResult | None
    missing: Missing
    policy: CoverPolicy

    @property
    def nuggets(self) -> list[Measure]:
        """The nugget scores among the measures."""
        return [one for one in self.measures if one.name in NUGGET_SCORES]

    @property
    def covering(self) -> list[Measure]:
        """The measures of covered items."""
        return [one for one in self.measures if one.kind.cover]

    @property
    def family(self) -> str:
        """The measures of covered items, in words."""
        if not self.nuggets:
            return "Cover and nCover"
        several = len(self.nuggets) < len(self.covering)
        return "Cover, nCover and nugget scores" if several else "nugget scores"

    def cover_name(self, k: int) -> str:
        """What stands for all measures of covered items at a cutoff."""
        return f"{'Cover' if len(self.nuggets) < len(self.covering) else 'NuggetAll'}@{k}"


def board_notes(of: BoardContext) -> tuple[Note, ...]:
    """Return what a reader of a leaderboard must know, the general first, each once."""
    return notes_of(of, _CHECKS, whole=[str(measure) for measure in of.measures])


def _grades(of: BoardContext) -> Iterator[str]:
    book = of.gradebook
    if book.grader.is_draft:
        yield note("draft")
    for text in describe_readings(book.readings, book.grader):
        yield note("grade-readings", text=text)
    if book.bank_is_graded_items:
        yield note("bank-inferred")
    if book.pending:
        yield note("cells-ungraded", states=without_grade(book.pending, book.readings, most=1))
    if missing := missing_prerequisite(book):
        yield note("prerequisite", cause=missing.cause)
    yield from book.notes


def _policy(of: BoardContext) -> Iterator[Note]:
    if of.policy.name != "exam" and of.covers:
        family = of.family[0].upper() + of.family[1:]
        yield note("policy", family=family, policy=of.policy.name)
    if of.policy.ranks_as_written and of.subtopics != "query" and of.covers:
        yield note("subtopics-joined")
        if of.subtopics == "subtopic" and of.scored:
            yield note("subtopics-separate")
    elif of.subtopics == "subtopic":
        yield note("subtopics-averaged")
    elif of.subtopics == "pool":
        yield note("subtopics-pooled")


def _queries(of: BoardContext) -> Iterator[Note]:
    for k, result in of.covers.items():
        if result.no_bank:
            yield note("queries-without-items", family=of.family, queries=result.no_bank)
        if len(result.query_ids) == 1:
            yield note("one-query", *map(str, of.covering))
        cut = [one for one in of.covering if one.cutoff == k]
        yield from _unanswered(cut, result, leave_out=of.policy.answered_only)
    if of.scored is not None:
        if of.scored.unlabelled:
            yield note("queries-without-labels", queries=of.scored.unlabelled)
        ranking = [one for one in of.measures if not one.kind.cover]
        if len(of.scored.query_ids) == 1:
            yield note("one-query", *map(str, ranking))
        plain = [one for one in ranking if not one.kind.formula]
        yield from _unanswered(plain, of.scored, leave_out=False)


def _unanswered(
    measures: Sequence[Measure], result: CoverResult | ScoreResult, *, leave_out: bool
) -> Iterator[Note]:
    names = list(map(str, measures))
    nobody = result.answered_by_none
    if nobody and names:
        fate = "left out of all means" if leave_out else "0 for all of them"
        yield note("unanswered-by-all", *names, queries=nobody, fate=fate)
    some = [
        f"{system} ({count - len(nobody)})"
        for system, count in zip(result.systems, result.unanswered, strict=True)
        if count > len(nobody)
    ]
    if some and names:
        fate = "left out of its mean" if leave_out else "counted 0"
        what = "that only others answer" if nobody else "that a system does not answer"
        yield note("unanswered", *names, what=what, fate=fate, systems=some)


def _cover(of: BoardContext) -> Iterator[Note]:
    for k, result in of.covers.items():
        name = of.cover_name(k)
        if worst := _worst(result.systems, result.missing_cells):
            yield note("cover-ungraded", name, worst=worst, fate=_FATE[of.missing])
        if of.missing == "zero" and any(one.low is not None for one in result.cover):
            yield note("cover-bounds", name)
        if any(one.name == "nCover" and one.cutoff == k for one in of.measures):
            for threshold, table in zip(result.thresholds, result.n_cover, strict=True):
                if empty := _empty(result, table.overall):
                    yield note("ncover-undefined", f"nCover@{k} at {threshold}", queries=empty)
        if of.missing == "skip":
            for threshold, table in zip(result.thresholds, result.cover, strict=True):
                fewer = (~table.values.counts).sum(axis=1)
                few = [f"{s} ({n})" for s, n in zip(result.systems, fewer, strict=True) if n]
                if few:
                    yield note("cover-skipped", f"Cover@{k} at {threshold}", systems=few)


def _empty(result: CoverResult, overall: Values) -> list[str]:
    """Return the queries that have no value for the whole pool."""
    counts = overall.counts[0]
    return [query for query, count in zip(result.query_ids, counts, strict=True) if not count]


def _importances(of: BoardContext) -> Iterator[Note]:
    """Note which importances are not known, and which queries have no value for it."""
    weighing = [one for one in of.nuggets if one.name != "NuggetAll"]
    words = importances_of(of.gradebook)
    strange = Counter(word or "(empty)" for word in words if word and word not in WEIGHTS)
    strange.update(["(empty)"] * words.count(""))
    if strange and of.nuggets:
        listed = [f"{word!r} ({count})" for word, count in strange.most_common()]
        yield note("importance-invalid", words=listed)
    if weighing and words and not any(word in WEIGHTS for word in words):
        yield note("importance-missing", measures=list(map(str, weighing)))
        return
    for measure in weighing:
        result = of.covers[measure.cutoff or 0]
        for table in result.of(measure)[:1]:
            empty = _empty(result, table.overall)
            if empty and of.missing != "skip":
                counted = _COUNTED[measure.name]
                yield note("nuggets-undefined", str(measure), counted=counted, queries=empty)


def _chance(of: BoardContext) -> Iterator[Note]:
    for k, floor in of.floors.items():
        result = of.covers[k]
        thresholds = result.thresholds[: len(floor.values)]
        if not thresholds:
            continue
        several = len(thresholds) > 1
        values = [
            f"{value:.3f}" + (f" (\u2265{threshold})" if several else "")
            for threshold, value in zip(thresholds, floor.values, strict=True)
        ]
        of_systems = [
            [mean.mean for mean in cover.values.means() if mean.mean is not None]
            for cover in result.cover[: len(thresholds)]
        ]
        averages = ", ".join(f"{np.mean(means):.3f}" for means in of_systems if means)
        yield note(
            "chance",
            measure=heading(f"Cover@{k}", None if several else thresholds[0]),
            drawn=floor.drawn,
            values=", ".join(values),
            average=f"; systems average {averages}" if averages else "",
        )


def _weights(of: BoardContext) -> Iterator[Note]:
    for measure, found in of.weighted.items():
        for one in found:
            name = heading(str(measure), one.threshold)
            yield note("weights", measure=name, text=one.said)
    if of.weighted:
        yield note("weights-caveat")


def _scores(of: BoardContext) -> Iterator[Note]:
    if of.scored is None:
        return
    queries = len(of.scored.query_ids)
    hopeless: dict[tuple[int | None, int], list[str]] = {}
    share = missing_share(of.gradebook)
    for found in of.scored.scores:
        name = str(found.measure)
        if worst := _worst(of.scored.systems, found.unjudged):
            yield note("passages-ungraded", name, worst=worst)
        if share > FEW_MISSING:
            yield note("labels-ungraded", name, share=share)
        if found.hopeless:
            hopeless.setdefault((found.min_rating, found.hopeless), []).append(name)
    for (threshold, count), measures in hopeless.items():
        values = {"count": count, "queries": queries, "measures": ", ".join(measures)}
        if threshold is None:
            yield note("no-relevant", **values)
        else:
            yield note("no-relevant-from", str(threshold), **values)
    diverse = [str(one.measure) for one in of.scored.scores if one.measure.kind.subtopics]
    if diverse and any(len(set(q.weights[q.weights > 0])) > 1 for q in of.gradebook.queries):
        yield note("weights-ignored", measures=list(dict.fromkeys(diverse)))
    if wrong := contradictions(of.gradebook):
        yield note("ranks-contradict", count=wrong)


_CHECKS = (_grades, _policy, _queries, _cover, _importances, _chance, _weights, _scores)


def _worst(systems: Sequence[str], shares: Sequence[float | None]) -> str:
    """The largest share and whose it is; nothing if all are 0."""
    share, system = max(
        ((share, system) for share, system in zip(shares, systems, strict=True) if share),
        default=(0.0, ""),
    )
    return f"{share:.1%} ({system})" if share else ""


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
    board = _evaluate_books(
        gradebook, measures, min_ratings, k, subtopics, missing, labelling, policy
    )
    if gradebook.oversight.cells:
        automatic = without_decisions(gradebook)
        other = _evaluate_books(
            automatic, measures, min_ratings, k, board.subtopics, missing, labelling, policy
        )
        board = replace(board, without_decisions=other)
    people = tuple(decision_notes(gradebook, board.changes()))
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
    longest = longest_ranking(gradebook, subtopics)
    return {depth: min(depth, longest) for depth in depths}


def _evaluate_books(
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
        notes=board_notes(
            BoardContext(gradebook, asked, mode, covers, floors, weighted, scored, missing, policy)
        ),
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
