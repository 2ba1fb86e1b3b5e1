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
from exampp.measures.values import Mean
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


@dataclass(frozen=True, slots=True)
class Notes:
    """Everything that is worth a sentence under a leaderboard."""

    gradebook: Gradebook
    measures: Sequence[Measure]
    subtopics: Subtopics
    covers: Mapping[int, CoverResult]
    floors: Mapping[int, ChanceFloor]
    weighted: Mapping[Measure, Sequence[WeightedCover]]
    scored: ScoreResult | None
    missing: Missing
    policy: CoverPolicy

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
        return grouped(notes, whole=[str(measure) for measure in self.measures])

    @staticmethod
    def _of(measures: Iterable[str], sentence: str) -> Iterator[About]:
        """A sentence about some of the measures, which it names where they are not all."""
        return (About("", measure, f": {sentence}") for measure in measures)

    @property
    def _covering(self) -> list[str]:
        return [str(one) for one in self.measures if one.kind.cover]

    @property
    def _nuggets(self) -> list[Measure]:
        return [one for one in self.measures if one.name in NUGGET_SCORES]

    @property
    def _covers(self) -> bool:
        """Whether Cover or nCover is asked for, and not nugget scores alone."""
        return len(self._nuggets) < len(self._covering)

    @property
    def _family(self) -> str:
        """The measures of covered items, in words."""
        if not self._nuggets:
            return "Cover and nCover"
        return "Cover, nCover and nugget scores" if self._covers else "nugget scores"

    @property
    def _ranking(self) -> list[str]:
        return [str(one) for one in self.measures if not one.kind.cover]

    def _grades(self) -> Iterator[str]:
        book = self.gradebook
        if book.grader.is_draft:
            yield "These are draft grades: good for trying things out, not for conclusions."
        yield from describe_readings(book.readings, book.grader)
        if book.bank_is_graded_items:
            yield (
                "No bank was at hand: it was taken to be the items that occur among the grades, "
                "so that Cover may be too high."
            )
        if book.pending:
            states = without_grade(book.pending, book.readings, most=1)
            yield f"Cells without a grade in the whole collection: {states}."
        if self.policy.name != "exam" and self.covers:
            family = self._family
            yield f"{family[0].upper()}{family[1:]} follow the policy {self.policy.name}."
        if self.policy.ranks_as_written and self.subtopics != "query" and self.covers:
            yield "For Cover, all rankings of a system for a query and its subtopics go together."
            if self.subtopics == "subtopic" and self.scored:
                yield "For the other measures each subtopic is a query of its own."
        elif self.subtopics == "subtopic":
            yield (
                "Cover is the mean over the subtopics of a query, then over queries; for the "
                "other measures each subtopic is a query of its own."
            )
        elif self.subtopics == "pool":
            yield "The subtopic rankings of a system are interleaved into one per query."
        if missing := missing_prerequisite(book):
            yield f"{missing.cause}."

    def _queries(self) -> Iterator[str | About]:
        for k, result in self.covers.items():
            if result.no_bank:
                yield f"Left out of {self._family}, having no items: {_list(result.no_bank)}."
            if len(result.query_ids) == 1:
                yield from self._of(self._covering, _ONE_QUERY)
            cut = [str(m) for m in self.measures if m.kind.cover and m.cutoff == k]
            yield from self._unanswered(cut, result, leave_out=self.policy.answered_only)
        if self.scored is not None and self.scored.unlabelled:
            left_out = _list(self.scored.unlabelled)
            yield f"Left out of the ranking measures, having no graded passage: {left_out}."
        if self.scored is not None:
            if len(self.scored.query_ids) == 1:
                yield from self._of(self._ranking, _ONE_QUERY)
            told = [str(one) for one in self.measures if not (one.kind.cover or one.kind.formula)]
            yield from self._unanswered(told, self.scored, leave_out=False)

    def _unanswered(
        self, measures: Sequence[str], result: CoverResult | ScoreResult, *, leave_out: bool
    ) -> Iterator[str | About]:
        nobody = len(result.answered_by_none)
        if nobody:
            fate = "left out of all means" if leave_out else "0 for all of them"
            what = "which is" if nobody == 1 else "which are"
            sentence = f"No system answers {_list(result.answered_by_none)}, {what} {fate}."
            yield from self._of(measures, sentence)
        unanswered = [
            f"{system} ({count - nobody})"
            for system, count in zip(result.systems, result.unanswered, strict=True)
            if count > nobody
        ]
        if unanswered:
            fate = "left out of its mean" if leave_out else "counted 0"
            others = "that only others answer" if nobody else "that a system does not answer"
            sentence = f"Queries {others} are {fate}: {_list(unanswered)}."
            yield from self._of(measures, sentence)

    def _cover(self) -> Iterator[str | About]:
        for k, result in self.covers.items():
            worst = _worst(result.systems, result.missing_cells)
            if worst:
                yield About(
                    "Of the cells that ",
                    f"{'Cover' if self._covers else 'NuggetAll'}@{k}",
                    f" reads, up to {worst} have no grade: {_MISSING[self.missing]}.",
                )
            if self.missing == "zero" and any(one.low is not None for one in result.cover):
                yield About(
                    "More than 1% of the cells that decide ",
                    f"{'Cover' if self._covers else 'NuggetAll'}@{k}",
                    " have no grade: brackets show the lowest and the highest score that their "
                    "grades can give (exampp grade asks again).",
                )
            if any(m.name == "nCover" and m.cutoff == k for m in self.measures):
                yield from _uncovered(k, result)
            if self.missing == "skip":
                yield from _skipped(k, result)

    def _importances(self) -> Iterator[str | About]:
        """What is not known of nuggets, and what has no value for it."""
        weighing = [one for one in self._nuggets if one.name != "NuggetAll"]
        words = importances_of(self.gradebook)
        strange = Counter(word or "(empty)" for word in words if word and word not in WEIGHTS)
        strange.update(["(empty)"] * words.count(""))
        if strange and self._nuggets:
            some = _list([f"{word!r} ({count})" for word, count in strange.most_common()])
            yield (
                "Importances that are neither vital nor okay, as a model's reply that could not "
                f"be read leaves them, are invalid, and such nuggets count in NuggetAll alone: "
                f"{some}."
            )
        if weighing and words and not any(word in WEIGHTS for word in words):
            names = ", ".join(map(str, weighing))
            yield (
                f"The bank says of no item whether it is vital or okay, and {names} have no value "
                "without that. Import a bank that does: nuggetizer's, or one with a column "
                "importance."
            )
            return
        for measure in weighing:
            result = self.covers[measure.cutoff or 0]
            for table in result.of(measure)[:1]:
                counts = table.overall.counts[0]
                empty = [q for q, c in zip(result.query_ids, counts, strict=True) if not c]
                if empty and self.missing != "skip":
                    said = (
                        f", as none of their nuggets is {_COUNTED[measure.name]}: {_list(empty)}."
                    )
                    yield About("Left out of ", str(measure), said)

    def _chance(self) -> Iterator[str]:
        for k, floor in self.floors.items():
            result = self.covers[k]
            thresholds = result.thresholds[: len(floor.values)]
            if not thresholds:
                continue
            several = len(thresholds) > 1
            name = heading(f"Cover@{k}", None if several else thresholds[0])
            values = [
                f"{value:.3f}" + (f" (\u2265{threshold})" if several else "")
                for threshold, value in zip(thresholds, floor.values, strict=True)
            ]
            of_systems = [
                [mean.mean for mean in cover.values.means() if mean.mean is not None]
                for cover in result.cover[: len(thresholds)]
            ]
            averages = ", ".join(f"{np.mean(means):.3f}" for means in of_systems if means)
            average = f"; systems have {averages} on average" if averages else ""
            yield f"Chance floor of {name}: {floor.drawn} have {', '.join(values)}{average}."

    def _weighted(self) -> Iterator[str]:
        for measure, found in self.weighted.items():
            for one in found:
                yield f"{heading(str(measure), one.threshold)}: {one.said}."
        if self.weighted:
            yield (
                "Weights are made from the systems at hand, without human labels: who comes later "
                "is scored with the same ones. One collection is known in which they rank systems "
                "better, so report the plain Cover beside them (exampp analyze items)."
            )

    def _scores(self) -> Iterator[str | About]:
        if self.scored is None:
            return
        hopeless: dict[tuple[int | None, int], list[str]] = {}
        lacking_cells = missing_share(self.gradebook)
        for found in self.scored.scores:
            worst = _worst(self.scored.systems, found.unjudged)
            if worst:
                about = f"Of the passages that it reads, up to {worst} have no grade: "
                yield About(about, str(found.measure), ".")
            if lacking_cells > FEW_MISSING:
                yield About(
                    f"{lacking_cells:.1%} of the cells of ranked passages have no grade, so that "
                    "labels of passages, and with them ",
                    str(found.measure),
                    ", may be wrong, mostly too low. No bounds are known.",
                )
            if found.hopeless:
                key = (found.min_rating, found.hopeless)
                hopeless.setdefault(key, []).append(str(found.measure))
        for (threshold, count), measures in hopeless.items():
            what = (
                f"{count} of {len(self.scored.query_ids)} queries have no relevant passage "
                f"and count 0 for every system: {', '.join(measures)}."
            )
            yield (
                what if threshold is None else About("From rating ", str(threshold), f" on: {what}")
            )
        diverse = dict.fromkeys(
            str(one.measure) for one in self.scored.scores if one.measure.kind.subtopics
        )
        if diverse and any(len(set(q.weights[q.weights > 0])) > 1 for q in self.gradebook.queries):
            names = ", ".join(diverse)
            yield f"All items count alike, the weights of the bank play no part: {names}."
        wrong = contradictions(self.gradebook)
        if wrong:
            yield (
                f"{wrong} rankings have scores that contradict their ranks: ranking measures "
                "follow the scores, as trec_eval does, Cover follows the ranks."
            )


_ONE_QUERY = "A single query counts, so that there is no standard error."


def _uncovered(k: int, result: CoverResult) -> Iterator[About]:
    """Queries for which nCover is undefined."""
    for threshold, table in zip(result.thresholds, result.n_cover, strict=True):
        counts = table.overall.counts[0]
        empty = [q for q, c in zip(result.query_ids, counts, strict=True) if not c]
        if empty:
            yield About(
                "Left out of ",
                f"nCover@{k} at {threshold}",
                f", as no graded passage covers anything: {_list(empty)}.",
            )


def _skipped(k: int, result: CoverResult) -> Iterator[About]:
    """Systems of which some query has no graded cell at all."""
    for threshold, table in zip(result.thresholds, result.cover, strict=True):
        fewer = (~table.values.counts).sum(axis=1)
        few = [f"{s} ({n})" for s, n in zip(result.systems, fewer, strict=True) if n]
        if few:
            yield About(
                "",
                f"Cover@{k} at {threshold}",
                f" leaves out queries of which no cell is graded: {_list(few)}.",
            )


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
