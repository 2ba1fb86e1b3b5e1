"""Calibration: predict people's labels from the ratings of passages, and evaluate it.

Every score is computed on held-out queries: whole queries are held out, as passages of one query
are correlated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.formats import calibration as calibration_format
from exampp.records.calibration import (
    Calibration,
    CalibrationModel,
    CalibrationScore,
    FittedModel,
    Fold,
    SourceGrader,
)
from exampp.records.gradebook import MISSING, Gradebook, judged_without_grade
from exampp.records.inputs import relevance_threshold
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.results.page import Block, Folded, Section, Text
from exampp.results.plots.figure import Figure
from exampp.results.plots.lines import calibration_curve
from exampp.results.result import Result, Table
from exampp.results.view import Column, Interval, interval_text, programs_only
from exampp.sanitize import check_integer, or_default
from exampp.stats.agreement import STATISTICS, clustered, confusions
from exampp.stats.calibration import (
    SCORES,
    ProbabilityScores,
    RatedPassages,
    at_least,
    best_cut_points,
    expected_labels,
    fit_levels,
    labels_by,
    rated_by,
    rated_passages,
    reliability_curve,
)
from exampp.stats.estimate import (
    LEVEL,
    MOST_DRAWS,
    Estimate,
    Floats,
    Indices,
    Ints,
    check_draws,
    draw_queries,
)

_SCORES = ("score", "constant", "before", "calibrated", "low", "high")


@dataclass(frozen=True, slots=True, repr=False)
class CalibrationFindings(Result):
    """A calibration, its scores on held-out queries, and notes.

    `confusion` is people's labels x predicted labels (held out), in passages.
    """

    calibration: Calibration
    confusion: Ints
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The prediction of people's labels on held-out queries, in words."""
        loss, kappa = (self.calibration.score(name) for name in ("log loss", "kappa"))
        calibrated, constant = loss.calibrated, loss.constant
        if calibrated is not None and constant is not None and calibrated >= constant:
            return (
                "These ratings are not shown to predict people's labels: on held-out queries, one "
                f"probability for all is as good (log loss {constant:.3f} against "
                f"{calibrated:.3f})."
            )
        after, before = Interval(kappa.calibrated, kappa.low, kappa.high), Interval(kappa.before)
        return (
            f"Kappa with people's labels on held-out queries: {interval_text(after, 2)} "
            f"calibrated, {interval_text(before, 2)} before."
        )

    def plot(self) -> Figure:
        """Plot the reliability curve: predicted against observed shares."""
        return curve_figure(self.calibration)

    def save(self, path: str | Path) -> None:
        """Write the calibration to a file, to label other passages with it."""
        calibration_format.write(path, self.calibration)

    def tables(self) -> Mapping[str, Table]:
        """Return the scores, the reliability curve, and predicted labels against people's."""
        calibration = self.calibration
        labels = [f"labelled {label}" for label in calibration.labels]
        rows = zip(calibration.labels, self.confusion.tolist(), strict=True)
        return {
            "calibration": scores_table(calibration, self.notes, self.headline),
            "reliability": reliability_table(calibration),
            "labels": Table.of(
                ["people's label", *labels],
                [[label, *counts] for label, counts in rows],
                "Held-out passages by people's label and the calibrated one",
            ),
        }


def scores_table(calibration: Calibration, notes: Sequence[str] = (), verdict: str = "") -> Table:
    """Return the scores of a calibration, a row per score, with its origin for programs."""
    origin = {
        "model": calibration.model,
        "graders": " ".join(one.key for one in calibration.sources),
        "source": calibration.source,
        "queries": calibration.queries,
        "passages": calibration.passages,
        "min_relevant": calibration.min_relevant,
        "share_relevant": calibration.share_relevant,
        "seed": calibration.seed,
    }
    columns = [
        *(Column("on held-out queries", key="score"), *map(Column, _SCORES[1:-2])),
        *(Column("95% low", key="low"), Column("high")),
        *programs_only(*origin),
    ]
    rows = [
        [*(getattr(one, name) for name in _SCORES), *origin.values()] for one in calibration.scores
    ]
    names = " and ".join(one.name for one in calibration.sources)
    caption = (
        f"Labels {calibration.labels[0]} to {calibration.labels[-1]} from the ratings of {names}: "
        f"{calibration.model}, {calibration.passages:,} judged passages of "
        f"{calibration.queries} queries"
    )
    return Table.of(columns, rows, caption, notes, verdict=verdict)


def curve_figure(calibration: Calibration) -> Figure:
    """Return the reliability curve."""
    queries = f"{calibration.queries} queries of {calibration.source}"
    subtitle = f"{calibration.model}, {queries}, each held out once"
    return calibration_curve(calibration.bins, calibration.min_relevant, subtitle=subtitle)


def calibration_section(calibrations: Sequence[Calibration]) -> Section:
    """Return the section of a report on the available calibrations."""
    blocks: list[Block] = []
    for calibration in calibrations:
        blocks += [Text(calibration.origin()), scores_table(calibration), curve_figure(calibration)]
        blocks.append(Folded("The reliability curve as a table", reliability_table(calibration)))
    return Section.of("calibration", "Labels calibrated to people's judgments", blocks)


def findings_section(findings: CalibrationFindings) -> Section:
    """Return the section on a calibration that has not been saved yet."""
    tables = dict(findings.tables())
    scores = tables.pop("calibration")
    blocks: list[Block] = [
        Text(findings.calibration.origin()),
        scores,
        curve_figure(findings.calibration),
        *(Folded(table.caption, table) for table in tables.values()),
    ]
    return Section("calibration", "Do ratings predict people's judgments?", tuple(blocks))


def reliability_table(calibration: Calibration) -> Table:
    """Return the reliability curve: in a calibrated bin both shares are equal."""
    caption = (
        f"Reliability: held-out passages by their probability of {calibration.min_relevant} or more"
    )
    rows = [[one.passages, one.predicted, one.observed] for one in calibration.bins]
    return Table.of(["passages", "mean probability", "share people judged so"], rows, caption)


MODELS: Mapping[CalibrationModel, str] = {
    "logistic": "logistic regression on all ratings of a passage",
    "isotonic": "isotonic regression on the mean rating of a passage",
}
LEAST_JUDGED_QUERIES = 10
"""Of fewer, figures on held-out queries are worth a warning."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Settings for fitting and cross-validating a calibration.

    `folds` are groups of whole queries, each held out once; `samples` resamples of queries give the
    intervals. Probabilities are predicted for labels of at least `min_relevant`: by default 2, or
    1.
    """

    model: CalibrationModel = "logistic"
    folds: int = 5
    min_relevant: int | None = None
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            known = " or ".join(MODELS)
            raise InputError(f"unknown model {self.model!r}", hint=f"Choose {known}")
        check_integer("folds", self.folds, 2, MOST_DRAWS)
        check_draws(self.samples, self.seed)


def calibrate(
    books: Sequence[Gradebook], source: str, settings: CalibrationSettings | None = None
) -> CalibrationFindings:
    """Fit a calibration to people's judgments, from the ratings of one or several graders.

    `source` names the origin of the gradebooks.

    Raises:
        InputError: There are no judgments of graded passages, only one query or one label, or
            `min_relevant` separates no labels.
    """
    settings = or_default("settings", settings, CalibrationSettings)
    sources = tuple(map(rated_by, books))
    data = _Judged.of(rated_passages(books, sources), sources)
    return _Trained(data, sources, settings, _checked(data, settings), source).findings(books)


@dataclass(frozen=True)
class _Judged:
    """Judged passages of all queries, concatenated; `group` is the index of each one's query."""

    query_ids: tuple[str, ...]
    group: Indices
    vectors: Floats
    means: Floats
    bests: Floats
    seconds: Floats
    labels: Ints

    @classmethod
    def of(cls, rated: Iterable[RatedPassages], sources: Sequence[SourceGrader]) -> _Judged:
        queries = [
            (one, one.judgments != MISSING) for one in rated if (one.judgments != MISSING).any()
        ]
        if not queries:
            names = " and ".join(source.name for source in sources)
            raise InputError(
                f"calibration needs judgments, and no passage graded by {names} has one",
                hint="Import judgments: exampp import COLLECTION FILE.qrels",
            )

        def column(name: str) -> NDArray[np.float64]:
            return np.concatenate([getattr(one, name)[judged] for one, judged in queries])

        sizes = [int(judged.sum()) for _, judged in queries]
        return cls(
            query_ids=tuple(one.query_id for one, _ in queries),
            group=np.repeat(np.arange(len(queries)), sizes),
            vectors=column("vectors"),
            means=column("means"),
            bests=column("bests"),
            seconds=column("seconds"),
            labels=column("judgments").astype(np.int64),
        )

    @cached_property
    def known(self) -> list[int]:
        """The distinct labels that people gave, ascending."""
        return [int(label) for label in np.unique(self.labels)]


def _checked(data: _Judged, settings: CalibrationSettings) -> int:
    """Return the lowest relevant label, after checking that there are labels to calibrate to."""
    passages = counted(len(data.labels), "judged passage")
    if len(data.known) < 2:
        raise InputError(
            f"calibration needs 2 labels or more, and people gave all {passages} the label "
            f"{data.known[0]}",
            hint="Judge passages of other labels too",
        )
    if not np.ptp(data.vectors, axis=0).any():
        raise InputError(
            f"all {passages} have the same ratings, which predict nothing",
            hint="Choose another grader: exampp analyze correlation",
        )
    if len(data.query_ids) < 2:
        raise InputError(
            f"all {passages} belong to one query, {data.query_ids[0]}: a calibration is tested on "
            "held-out queries",
            hint="Judge passages of at least ten queries",
        )
    least = settings.min_relevant
    if least is None:
        least = relevance_threshold(None, data.known[-1])
        # judgments that are all relevant are split at their next label
        least = least if least > data.known[0] else data.known[1]
    if not data.known[0] < least <= data.known[-1]:
        raise InputError(
            f"--min-relevant {least} does not split labels from {data.known[0]} to "
            f"{data.known[-1]}",
            hint=f"Choose from {data.known[0] + 1} to {data.known[-1]}",
        )
    return least


@dataclass(frozen=True)
class _Trained:
    """One training: the models without each fold, and their predictions for the fold."""

    data: _Judged
    sources: tuple[SourceGrader, ...]
    settings: CalibrationSettings
    min_relevant: int
    source: str

    @cached_property
    def fold(self) -> Indices:
        """The fold of every query: nearly equal in size, by a hash of seed and id."""
        ids = self.data.query_ids
        order = sorted(range(len(ids)), key=lambda i: _hash(self.settings.seed, ids[i]))
        fold = np.empty(len(ids), np.intp)
        fold[order] = np.arange(len(ids)) % self.settings.folds
        return fold

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the folds that have queries."""
        return [int(number) for number in np.unique(self.fold)]

    @cached_property
    def of_passage(self) -> Indices:
        """The fold of every passage."""
        return np.asarray(self.fold[self.data.group], np.intp)

    def fit(self, rows: NDArray[np.bool_]) -> FittedModel:
        data = self.data
        levels = fit_levels(
            self.settings.model, data.vectors[rows], data.means[rows], data.labels[rows], data.known
        )
        return FittedModel(levels, ())

    @cached_property
    def models(self) -> dict[int, FittedModel]:
        """The model of every fold, fitted to the other folds."""
        return {number: self.fit(self.of_passage != number) for number in self.numbers}

    @cached_property
    def reached(self) -> Floats:
        """P(label >= c) of every passage by the model that was fitted without its query."""
        data = self.data
        found = np.empty((len(data.labels), len(data.known) - 1))
        for number, model in self.models.items():
            own = self.of_passage == number
            found[own] = at_least(model.levels, data.vectors[own], data.means[own])
        return found

    @cached_property
    def expected(self) -> Floats:
        return expected_labels(self.reached, self.data.known)

    @cached_property
    def codes(self) -> Indices:
        """The index of people's labels among the known labels."""
        return np.searchsorted(self.data.known, self.data.labels)

    def cuts(self, rows: NDArray[np.bool_]) -> tuple[float, ...]:
        """Return cut points by the held-out predictions of some passages, maybe infinite."""
        known = self.data.known
        found = best_cut_points(self.expected[rows], self.codes[rows], len(known))
        return tuple(np.clip(found, known[0] - 1, known[-1] + 1).tolist())

    @cached_property
    def folds(self) -> dict[int, FittedModel]:
        """Return the models with the best cut points on held-out passages of other folds."""
        return {
            number: replace(model, cut_points=self.cuts(self.of_passage != number))
            for number, model in self.models.items()
        }

    @cached_property
    def predicted(self) -> Indices:
        """The index of the predicted label of every passage, held out."""
        found = np.empty(len(self.data.labels), np.intp)
        for number, model in self.folds.items():
            own = self.of_passage == number
            found[own] = labels_by(self.expected[own], np.array(model.cut_points))
        return found

    def findings(self, books: Sequence[Gradebook]) -> CalibrationFindings:
        data, everything = self.data, np.ones(len(self.data.labels), np.bool_)
        folds, predicted = self.folds, self.predicted
        frozen = replace(self.fit(everything), cut_points=self.cuts(everything))
        counts = np.bincount(self.codes, minlength=len(data.known)) / len(data.labels)
        calibration = Calibration(
            model=self.settings.model,
            sources=self.sources,
            labels=tuple(data.known),
            fitted=frozen,
            folds=tuple(
                Fold(
                    tuple(q for q, f in zip(data.query_ids, self.fold, strict=True) if f == number),
                    model,
                )
                for number, model in folds.items()
            ),
            min_relevant=self.min_relevant,
            shares=tuple(counts.tolist()),
            queries=len(data.query_ids),
            passages=len(data.labels),
            source=self.source,
            seed=self.settings.seed,
            scores=(*self._probabilities(), *self._labels(predicted, frozen)),
            bins=reliability_curve(self._relevance, self._relevant),
        )
        size = len(data.known)
        confusion = np.bincount(self.codes * size + predicted, minlength=size**2).reshape(
            size, size
        )
        return CalibrationFindings(calibration, confusion, tuple(self._notes(books, calibration)))

    # ---- what it is worth ------------------------------------------------------------------------

    @cached_property
    def _level(self) -> int:
        """Return the column of P(label >= min_relevant)."""
        return next(i for i, label in enumerate(self.data.known[1:]) if label >= self.min_relevant)

    @cached_property
    def _relevance(self) -> Floats:
        return self.reached[:, self._level]

    @cached_property
    def _relevant(self) -> Floats:
        return (self.data.labels >= self.min_relevant).astype(np.float64)

    def _probabilities(self) -> Iterator[CalibrationScore]:
        """Yield probabilities. Before: scaled mean rating. Constant: the share in other folds."""
        data, queries = self.data, len(self.data.query_ids)
        others = np.array(
            [self._relevant[self.of_passage != number].mean() for number in self.numbers]
        )
        constant = others[np.searchsorted(self.numbers, self.of_passage)]
        before, calibrated, same = (
            ProbabilityScores(p, self._relevant, data.group, queries)
            for p in (data.means, self._relevance, constant)
        )
        draws = draw_queries(queries, self.settings.samples, self.settings.seed)
        ones = np.ones(queries)
        for name, score in SCORES.items():
            low, high = _percentiles(np.array([score(calibrated, weights) for weights in draws]))
            yield CalibrationScore(
                f"{name}, \u2265{self.min_relevant}",
                _number(score(before, ones)),
                _number(score(calibrated, ones)),
                low,
                high,
                None if name == "AUC" else _number(score(same, ones)),
            )

    def _labels(self, predicted: Indices, frozen: FittedModel) -> Iterator[CalibrationScore]:
        """Yield agreement of labels. Before: the best rating, scaled to the labels."""
        data = self.data
        top, lowest = data.known[-1], data.known[0]
        stretched = lowest + data.bests * (top - lowest)
        middles = (np.array(data.known[1:]) + np.array(data.known[:-1])) / 2
        before = np.searchsorted(middles, stretched, side="right")
        yield self._agreement("kappa", "kappa", before, predicted)
        yield self._agreement("kappa, quadratic", "kappa_quadratic", before, predicted)
        binary = f"kappa, \u2265{self.min_relevant}"
        yield self._agreement(binary, "kappa", before, predicted, self._level + 1)
        same = labels_by(self.expected, np.array(frozen.cut_points))
        optimistic = self._agreement("kappa, cut points of the same labels", "kappa", same, same)
        yield replace(optimistic, before=None)
        if self._has_rule:
            ruled = np.select([data.seconds >= 1, data.seconds >= 0.8], [3, 1], 0)
            rule = self._agreement("kappa, rule on the second-best rating", "kappa", ruled, ruled)
            yield replace(rule, calibrated=None, low=None, high=None)

    @property
    def _has_rule(self) -> bool:
        """Return whether the published rule fits: ratings 0-5 of one grader, labels 0-3."""
        (first, *others) = self.sources
        on_scale = (first.lowest, first.highest) == (0, 5)
        return on_scale and not others and self.data.known == [0, 1, 2, 3]

    def _agreement(
        self,
        name: str,
        statistic: str,
        before: Indices,
        predicted: Indices,
        level: int | None = None,
    ) -> CalibrationScore:
        """Compare labels, or with a `level` whether they reach it."""
        known = range(len(self.data.known) if level is None else 2)

        def estimate(labels: Indices) -> Estimate:
            people, machine = self.codes, labels
            if level is not None:
                people, machine = ((one >= level).astype(np.intp) for one in (people, machine))
            tables = confusions(
                self.data.group, len(self.data.query_ids), people, machine, known, known
            )
            return clustered(tables, STATISTICS[statistic], samples=self.settings.samples)

        one = estimate(predicted)
        return CalibrationScore(name, estimate(before).value, one.value, one.low, one.high)

    def _notes(self, books: Sequence[Gradebook], calibration: Calibration) -> Iterator[Note]:
        queries = len(self.data.query_ids)
        if any(book.grader.is_draft for book in books):
            yield note("draft")
        if queries < LEAST_JUDGED_QUERIES:
            yield note("calibration-few-queries", queries=counted(queries, "query"))
        yield note("calibration-transfer", text=calibration.transfer())
        for text in filter(None, map(judged_without_grade, books)):
            yield note("judged-ungraded", text=text)
        kappa = calibration.score("kappa")
        if kappa.low is not None and kappa.high is not None:
            yield note("calibration-interval", low=f"{kappa.low:.2f}", high=f"{kappa.high:.2f}")
        model, folds = MODELS[calibration.model], counted(len(calibration.folds), "fold")
        yield note("calibration-method", model=model[0].upper() + model[1:], folds=folds)
        yield note("calibration-columns")


def _percentiles(drawn: Floats) -> tuple[float | None, float | None]:
    """Return the percentile interval; none if a resample has no value."""
    if np.isnan(drawn).any():
        return None, None
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _hash(seed: int, query_id: str) -> str:
    return hashlib.sha256(f"calibration\t{seed}\t{query_id}".encode()).hexdigest()
