"""Calibration models: from rating vectors to probabilities of ordinal labels.

For every label c except the lowest, a model predicts P(label >= c); a running minimum over c makes
these probabilities monotone, and their differences are the label probabilities. Labels are assigned
by cut points on the expected label, because the most probable label would almost always be the most
frequent one.

Source: Frank and Hall, *A Simple Approach to Ordinal Classification* (ECML 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exampp.records.calibration import CalibrationBin, CalibrationModel, LevelModel, SourceGrader
from exampp.records.gradebook import (
    MISSING,
    Gradebook,
    QueryGrades,
    Ratings,
    check_all_items_graded,
)
from exampp.stats.estimate import Floats, Indices, Ints

_STEPS = 50
_CLOSE = 1e-10


def fit_logistic(x: Floats, y: Floats, penalty: float = 1.0) -> Floats:
    """Fit a logistic regression: `x` is observations x features, `y` 0 or 1.

    Returns the intercept and the coefficients. They minimise the total log loss + penalty / 2 times
    the squared coefficients (without the intercept). The penalty keeps them finite for separable
    data.

    Source: Hastie, Tibshirani and Friedman, *The Elements of Statistical Learning* (2009), 4.4.1.
    """
    design = np.column_stack([np.ones(len(x)), x])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 0.0
    share = np.clip(y.mean(), 1 / (len(y) + 2), 1 - 1 / (len(y) + 2))
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(share / (1 - share))
    loss = _loss(design, y, beta, ridge)
    for _ in range(_STEPS):
        p = sigmoid(_scores(design, beta))
        gradient = np.einsum("ni,n->i", design, p - y) + ridge * beta
        spread = design * (p * (1 - p))[:, None]
        hessian = np.einsum("ni,nj->ij", spread, design) + np.diag(ridge)
        hessian[0, 0] += 1e-12
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        # halve steps that overshoot
        while (new := _loss(design, y, beta - size * step, ridge)) > loss and size > _CLOSE:
            size /= 2
        beta, improved, loss = beta - size * step, loss - new, new
        if improved <= _CLOSE * (1 + abs(loss)):
            break
    return beta


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(z / 2)), np.float64)


def _scores(design: Floats, beta: Floats) -> Floats:
    # einsum: threaded products of small matrices are slow on a busy machine
    return np.asarray(np.einsum("ni,i->n", design, beta), np.float64)


def _loss(design: Floats, y: Floats, beta: Floats, ridge: Floats) -> float:
    z = _scores(design, beta)
    return float((np.logaddexp(0, z) - y * z).sum() + (ridge * beta**2).sum() / 2)


def isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Fit an isotonic regression: return the x, ascending, and the fitted values there.

    The function is linear between the places and constant beyond the ends (`numpy.interp`). Only
    the knots are returned.

    Source: Barlow, Bartholomew, Bremner and Brunk, *Statistical Inference under Order Restrictions*
    (1972); for probabilities Zadrozny and Elkan, *Transforming Classifier Scores into Accurate
    Multiclass Probability Estimates* (KDD 2002).
    """
    places, group = np.unique(x, return_inverse=True)
    weight = np.bincount(group).astype(np.float64)
    mean = np.bincount(group, y) / weight
    sums: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for value, w in zip(mean.tolist(), weight.tolist(), strict=True):
        total, size = value * w, 1
        while sums and sums[-1] * w >= total * weights[-1]:
            total += sums.pop()
            w += weights.pop()
            size += sizes.pop()
        sums.append(total)
        weights.append(w)
        sizes.append(size)
    fitted = np.repeat(np.array(sums) / np.array(weights), sizes)
    turns = np.ones(len(places), np.bool_)
    turns[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return places[turns], fitted[turns]


def best_cut_points(scores: Floats, labels: Indices, size: int) -> Floats:
    """Return size - 1 ascending cut points: scores from the c-th on have at least label c.

    `labels` are 0 to size - 1. A label that only lowers kappa gets no scores: its cut point equals
    the next one, or infinity.

    kappa = 1 - (1 - po) / (1 - pe). For a fixed kappa, po - (1 - kappa) pe is a sum over bands
    between cut points, so dynamic programming finds the best bands in one pass; kappa is then
    raised until there is no improvement.

    Source: Dinkelbach, *On Nonlinear Fractional Programming* (Management Science 13, 1967).
    """
    places, group = np.unique(scores, return_inverse=True)
    counts = np.zeros((len(places), size))
    np.add.at(counts, (group, labels), 1)
    total = counts.sum()
    below = np.vstack([np.zeros(size), np.cumsum(counts, axis=0)]) / total
    totals, below_all = below[-1], below.sum(axis=1)
    value, best = -np.inf, np.zeros(size - 1, np.intp)
    tried = 0.0
    while tried > value + 1e-12:
        value = tried
        best = _bands(below - (1 - value) * totals * below_all[:, None])
        tried = _kappa(below, totals, below_all, best)
    # midpoints between scores are robust to rounding
    edges = np.concatenate([[-np.inf], (places[1:] + places[:-1]) / 2, [np.inf]])
    return np.asarray(edges[best], np.float64)


def labels_by(scores: Floats, cut_points: Floats) -> Indices:
    """Return the label of every score: the number of reached cut points."""
    return np.asarray(np.searchsorted(np.asarray(cut_points), scores, side="right"), np.intp)


def _bands(gains: Floats) -> Indices:
    """Return cuts that maximise the sum over c of gains[end of c, c] - gains[start of c, c]."""
    rows, size = gains.shape
    # value[i]: the best of bands 0 .. c - 1, band c beginning at i
    value = gains[:, 0] - gains[0, 0]
    back: list[Indices] = []
    for c in range(1, size):
        start = value - gains[:, c]
        best = np.maximum.accumulate(start)
        first = np.where(np.append(True, start[1:] > best[:-1]), np.arange(rows), 0)
        back.append(np.maximum.accumulate(first))
        value = best + gains[:, c]
    end = rows - 1
    cuts: list[int] = []
    for places in reversed(back):
        end = int(places[end])
        cuts.append(end)
    return np.array(cuts[::-1], np.intp)


def _kappa(below: Floats, totals: Floats, below_all: Floats, cuts: Indices) -> float:
    ends = np.concatenate([[0], cuts, [len(below) - 1]])
    labels = np.arange(below.shape[1])
    agreed = float((below[ends[1:], labels] - below[ends[:-1], labels]).sum())
    chance = float((totals * (below_all[ends[1:]] - below_all[ends[:-1]])).sum())
    return 0.0 if chance >= 1 else (agreed - chance) / (1 - chance)


BINS = 10


def equal_bins(p: Floats, bins: int = BINS) -> Indices:
    """Return bins of nearly equal size, from 0; observations with equal p share a bin."""
    _, group = np.unique(p, return_inverse=True)
    counts = np.bincount(group)
    # by the midrank of equal probabilities
    middle = np.cumsum(counts) - counts / 2
    own = np.minimum((middle * bins / len(p)).astype(np.intp), bins - 1)
    return np.unique(own, return_inverse=True)[1].astype(np.intp)[group]


def reliability_curve(p: Floats, y: Floats, bins: int = BINS) -> tuple[CalibrationBin, ...]:
    """Return the reliability curve, bins in ascending order."""
    own = equal_bins(p, bins)
    size = np.bincount(own)
    predicted, observed = np.bincount(own, p) / size, np.bincount(own, y) / size
    return tuple(
        CalibrationBin(a, b, n)
        for a, b, n in zip(predicted.tolist(), observed.tolist(), size.tolist(), strict=True)
    )


class ProbabilityScores:
    """Computes scores of predictions, for any weights of the queries.

    `groups` is the query of every observation, from 0. A score of weights [queries] is NaN where
    it is undefined: the AUC of one class, the log loss of an impossible event that happened.

    All are of predicted probabilities p of an event and y, 1 where it was and 0 where it was not,
    with a weight per observation: the number of times that its query was drawn.

    Sources: Brier, *Verification of Forecasts Expressed in Terms of Probability* (1950); Bradley,
    *The Use of the Area under the ROC Curve* (1997); DeGroot and Fienberg, *The Comparison and
    Evaluation of Forecasters* (1983), for reliability; Naeini, Cooper and Hauskrecht, *Obtaining
    Well Calibrated Probabilities Using Bayesian Binning* (AAAI 2015), for the expected calibration
    error.
    """

    def __init__(self, p: Floats, y: Floats, groups: Indices, queries: int) -> None:
        self._queries, self._groups, self._y = queries, groups, y
        self._sizes = self._sum(np.ones(len(p)))
        self._brier = self._sum((p - y) ** 2)
        with np.errstate(divide="ignore"):
            loss = -np.log(np.where(y > 0, p, 1 - p))
        self._loss = self._sum(loss)
        own = equal_bins(p)
        cells = groups * (own.max() + 1) + own
        gap = np.bincount(cells, p - y, queries * (int(own.max()) + 1))
        self._gaps = gap.reshape(queries, -1)
        order = np.argsort(p, kind="stable")
        self._order, ordered = order, p[order]
        self._ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))

    def _sum(self, values: Floats) -> Floats:
        return np.asarray(
            np.bincount(self._groups, values, self._queries).astype(np.float64), np.float64
        )

    def brier(self, weights: Floats) -> float:
        """Return the mean squared difference of probability and outcome."""
        return float(weights @ self._brier / (weights @ self._sizes))

    def log_loss(self, weights: Floats) -> float:
        """Return the mean negative logarithm of the probability of the outcome."""
        has_weight = weights > 0
        total = float(weights[has_weight] @ self._loss[has_weight])
        return total / float(weights @ self._sizes) if np.isfinite(total) else np.nan

    def ece(self, weights: Floats) -> float:
        """Return the expected calibration error: the mean over bins of |predicted - observed|."""
        return float(np.abs(weights @ self._gaps).sum() / (weights @ self._sizes))

    def auc(self, weights: Floats) -> float:
        """Return the probability that an event has a higher p than a non-event; ties count half."""
        w = weights[self._groups][self._order]
        event = w * self._y[self._order]
        events, all_ = np.cumsum(event)[self._ends], np.cumsum(w)[self._ends]
        others = all_ - events
        if not events[-1] or not others[-1]:
            return np.nan
        # twice the area, by trapezoids over the groups of equal p
        before = np.append(0.0, others[:-1])
        own = np.diff(np.append(0.0, events))
        return float((own * (others + before)).sum() / (2 * events[-1] * others[-1]))


SCORES = {
    "log loss": ProbabilityScores.log_loss,
    "Brier": ProbabilityScores.brier,
    "AUC": ProbabilityScores.auc,
    "ECE": ProbabilityScores.ece,
}


def fit_levels(
    model: CalibrationModel, vectors: Floats, means: Floats, labels: Ints, scale: Sequence[int]
) -> tuple[LevelModel, ...]:
    """Fit a model for every label of `scale` (ascending) but the lowest.

    `vectors` are passages x features, for logistic models; `means` the mean ratings, for isotonic.
    """
    models = []
    for label in scale[1:]:
        reached = (labels >= label).astype(np.float64)
        if model == "isotonic":
            places, values = isotonic(means, reached)
            # an event without observations is rare but not impossible
            values = np.clip(values, 1 / (len(means) + 2), 1 - 1 / (len(means) + 2))
            models.append(LevelModel(label, tuple(values.tolist()), tuple(places.tolist())))
        else:
            models.append(LevelModel(label, tuple(fit_logistic(vectors, reached).tolist())))
    return tuple(models)


def at_least(levels: Sequence[LevelModel], vectors: Floats, means: Floats) -> Floats:
    """Return P(label >= c), passages x levels, falling from left to right."""
    columns = [
        np.interp(means, level.places, level.values)
        if level.places
        else sigmoid(level.values[0] + vectors @ np.array(level.values[1:]))
        for level in levels
    ]
    return np.asarray(np.minimum.accumulate(np.column_stack(columns), axis=1), np.float64)


def expected_labels(reached: Floats, scale: Sequence[int]) -> Floats:
    """Return the expected label of every passage, from P(label >= c)."""
    return np.asarray(scale[0] + reached @ np.diff(np.array(scale, np.float64)), np.float64)


def rating_vectors(ratings: Ratings, lowest: int, width: int) -> Floats:
    """Return passages x (width + 1): the best ratings, then the mean over all items.

    Missing ratings are the lowest. Shorter rows are padded with the lowest rating, longer ones are
    cut to the best (the mean uses all).
    """
    complete = np.where(ratings == MISSING, lowest, ratings).astype(np.float64)
    best = -np.sort(-complete, axis=1)[:, :width]
    filled = np.full((len(complete), width), float(lowest))
    filled[:, : best.shape[1]] = best
    mean = complete.mean(axis=1) if complete.shape[1] else np.full(len(complete), float(lowest))
    return np.column_stack([filled, mean])


@dataclass(frozen=True, slots=True)
class RatedPassages:
    """Passages of one query that every source graded.

    Ratings go from 0 (the lowest of their grader's scale) to 1: `vectors` are passages x features,
    source after source, best rating first and their mean last; `means` the mean over the sources of
    the mean rating, `bests` that of the best, `seconds` of the second-best. `judgments` are human
    judgments (MISSING: none), negative ones set to 0, the highest of several subtopics.
    """

    query_id: str
    passage_ids: tuple[str, ...]
    vectors: Floats
    means: Floats
    bests: Floats
    seconds: Floats
    judgments: Ints


def rated_by(book: Gradebook) -> SourceGrader:
    """Return the grader of a gradebook and its largest number of items per query."""
    who = book.grader
    width = max((len(query.item_ids) for query in book.queries), default=1) or 1
    return SourceGrader(
        who.key, who.name, who.model, who.prompt, who.kind, who.lowest, who.highest, width
    )


def rated_passages(
    books: Sequence[Gradebook], sources: Sequence[SourceGrader]
) -> Iterator[RatedPassages]:
    """Yield the queries of several gradebooks that have such passages, in order.

    Raises:
        InputError: Passages are graded for some items only.
    """
    for book in books:
        check_all_items_graded(book)
    others = [{query.query_id: query for query in book.queries} for book in books[1:]]
    for first in books[0].queries:
        queries = [first, *(known[first.query_id] for known in others if first.query_id in known)]
        if len(queries) == len(books):
            passages = _of_query(queries, sources)
            if passages.passage_ids:
                yield passages


def _of_query(queries: Sequence[QueryGrades], sources: Sequence[SourceGrader]) -> RatedPassages:
    rows = [
        {
            passage: row
            for row, (passage, graded) in enumerate(
                zip(query.passage_ids, (query.ratings != MISSING).any(axis=1), strict=True)
            )
            if graded
        }
        for query in queries
    ]
    shared = [passage for passage in rows[0] if all(passage in other for other in rows[1:])]
    parts = [
        _scaled(query, [of_query[passage] for passage in shared], source)
        for query, of_query, source in zip(queries, rows, sources, strict=True)
    ]
    highest = queries[0].judgments.max(axis=0, initial=MISSING).astype(np.int64)
    judgments = highest[[rows[0][passage] for passage in shared]]
    return RatedPassages(
        query_id=queries[0].query_id,
        passage_ids=tuple(shared),
        vectors=np.hstack(parts),
        means=np.mean([part[:, -1] for part in parts], axis=0),
        bests=np.mean([part[:, 0] for part in parts], axis=0),
        seconds=np.mean([part[:, min(1, part.shape[1] - 2)] for part in parts], axis=0),
        judgments=np.where(judgments == MISSING, MISSING, np.maximum(judgments, 0)),
    )


def _scaled(query: QueryGrades, rows: Sequence[int], source: SourceGrader) -> Floats:
    vectors = rating_vectors(query.ratings[list(rows)], source.lowest, source.width)
    return np.asarray((vectors - source.lowest) / (source.highest - source.lowest), np.float64)
