"""Chances that a passage covers an item, estimated before grading, and the cells to skip by them.

The needed cells of a random share of the items are graded first. A logistic regression on them
predicts the other cells from words in common, ranks and the length of the passage. Queries are in
folds, and the model of a fold is learned from the other folds, so that a skipped cell never depends
on the draw of its own query. The models are stored with the run that fitted them: a resumed run and
every other process skip the same cells.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from exampp.measures.names import CUTOFF, parse_measure
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, SkippedCells
from exampp.records.graders import GradingTarget
from exampp.stats.calibration import fit_logistic, sigmoid
from exampp.stats.sampling import FOLDS, random_numbers
from exampp.store.cells import query_order, scope_of
from exampp.store.grades import StoredGrader
from exampp.store.read_model import QueryTexts, query_gradebook, texts_of_query
from exampp.store.runs import models_of

Models = Sequence[Sequence[float]]
"""By fold, the intercept and the coefficients; empty with too few grades: nothing is skipped."""

FEWEST_CELLS = 10
"""Least covering and other cells from which a model is learned."""
_WORD = re.compile(r"\w+")
_PREFIX = 6
"""Letters by which two words are the same."""


def drawn_items(query: QueryGrades, target: GradingTarget) -> NDArray[np.bool_]:
    """Return the randomly drawn items of a query; each is drawn with the same probability."""
    names = [(query.query_id, item_id) for item_id in query.item_ids]
    return np.asarray(random_numbers(target.audit_seed, names) < target.audit)


def fold_of(query_id: str) -> int:
    """Return the fold of a query."""
    return int(FOLDS * random_numbers(0, [(query_id, "")])[0])


def cell_features(query: QueryGrades, texts: QueryTexts, k: int) -> NDArray[np.float64]:
    """Return the predictors of the cells of a query, [passages, items, features].

    Features: the share of the item's words in the passage, and of its words that the query does not
    have, both weighted by rarity among the passages that a system returned among its first `k`; the
    length of the passage; its best rank; and the number of systems that returned it.
    """
    passages, items = query.ratings.shape
    best, readers = np.zeros(passages), np.zeros(passages)
    for ranking in query.rankings:
        first = ranking.passages[:k]
        np.maximum.at(best, first, 1 / np.arange(1, len(first) + 1))
        readers[first] += 1
    words = [_words(text) if best[at] else frozenset() for at, text in enumerate(texts.passages)]
    frequency = Counter(word for one in words for word in one)
    count = int((best > 0).sum())

    def rarity(some: frozenset[str]) -> float:
        return sum(math.log((count + 1) / (frequency[word] + 0.5)) for word in some)

    of_query = _words(texts.query)
    features = np.zeros((passages, items, 5))
    for item, text in enumerate(texts.items):
        of_item = _words(text)
        for at, some in enumerate((of_item, of_item - of_query)):
            whole = rarity(some)
            if whole > 0:
                features[: len(words), item, at] = [rarity(some & one) / whole for one in words]
    features[: len(words), :, 2] = np.log1p([len(one) for one in words])[:, None]
    features[:, :, 3] = best[:, None]
    features[:, :, 4] = np.log1p(readers)[:, None]
    return features


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:_PREFIX] for word in _WORD.findall(text.lower()))


def fit_models(
    observed: Sequence[tuple[int, NDArray[np.float64], NDArray[np.bool_]]],
) -> list[list[float]]:
    """Return a model per fold, learned from the cells of the other folds.

    `observed` are, by query, its fold, the features of its graded cells, and whether they cover.
    """
    models: list[list[float]] = []
    for fold in range(FOLDS):
        others = [(x, y) for other, x, y in observed if other != fold]
        x = np.concatenate([x for x, _ in others]) if others else np.zeros((0, 1))
        y = np.concatenate([y for _, y in others]) if others else np.zeros(0)
        if min(y.sum(), len(y) - y.sum()) < FEWEST_CELLS:
            models.append([])
            continue
        mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
        intercept, *slopes = fit_logistic((x - mean) / spread, y.astype(np.float64))
        scaled = np.array(slopes) / spread
        models.append([float(intercept - scaled @ mean), *scaled.tolist()])
    return models


def cell_chances(model: Sequence[float], features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance of every cell to cover its item; 1 without a model."""
    if not model:
        return np.ones(features.shape[:-1])
    return sigmoid(model[0] + features @ np.array(model[1:]))


def learn_models(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, target: GradingTarget
) -> list[list[float]]:
    """Learn from the graded cells of drawn items."""
    threshold, k = max(target.min_ratings), _most_passages(target)
    observed = []
    for key in query_order(connection, scope_of(connection, grader, bank)):
        (query,) = query_gradebook(connection, grader, bank, key)[1].queries
        graded = (query.ratings != MISSING) & drawn_items(query, target)
        features = cell_features(query, _texts(connection, grader, bank, query), k)
        covers = query.ratings[graded] >= threshold
        observed.append((fold_of(query.query_id), features[graded], covers))
    return fit_models(observed)


def skipped_cells(
    connection: sqlite3.Connection,
    grader: StoredGrader,
    bank: str,
    query: QueryGrades,
    target: GradingTarget,
    models: Models,
) -> SkippedCells:
    """Return the cells of a query that a target skips; never those that people decided."""
    texts = _texts(connection, grader, bank, query)
    features = cell_features(query, texts, _most_passages(target))
    chances = cell_chances(models[fold_of(query.query_id)], features)
    chances[chances >= target.may_miss] = 1
    for _, place in query.decided_places():
        chances[place] = 1
    return SkippedCells(chances, drawn_items(query, target))


def with_skipped_cells(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, book: Gradebook
) -> Gradebook:
    """Return the gradebook with the cells that its target skips."""
    target = book.target
    if target is None or not target.may_miss:
        return book
    models = models_of(connection, grader.key, bank, target)
    if models is None:
        return book
    queries = tuple(
        replace(one, skips=skipped_cells(connection, grader, bank, one, target, models))
        for one in book.queries
    )
    return replace(book, queries=queries)


def _most_passages(target: GradingTarget) -> int:
    return max(parse_measure(one).cutoff or CUTOFF for one in target.measures)


def _texts(
    connection: sqlite3.Connection, grader: StoredGrader, bank: str, query: QueryGrades
) -> QueryTexts:
    passages = query.passage_ids[: query.pool_size]
    kind = grader.identity.kind
    return texts_of_query(connection, bank, kind, query.query_id, query.item_ids, passages)
