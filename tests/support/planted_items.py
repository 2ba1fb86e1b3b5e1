"""Exams of known worth: good items, and planted bad ones, over systems of known skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity

GRADER = GraderIdentity("model", "self-rating", "question")
POOL, DEPTH = 100, 20
LOW, HIGH = 1, 5
GOOD = "good"
Random = np.random.Generator


def _answers(random: Random, worth: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Draw the passages that answer a good item: the better a passage, the likelier."""
    return np.asarray(worth + random.normal(0, 1.2, POOL) > random.normal(2.6, 0.5))


def _random(random: Random, worth: NDArray[np.float64]) -> NDArray[np.bool_]:
    return random.permutation(_answers(random, worth))


def _ambiguous(random: Random, worth: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.where(random.random(POOL) < 0.5, _answers(random, worth), _random(random, worth))


BAD = {
    "random": _random,
    "reversed": lambda random, worth: _answers(random, -worth),
    "saturated": lambda random, _: random.random(POOL) < 0.9,
    "leaked": lambda random, _: random.random(POOL) < 0.5,
    "ambiguous": _ambiguous,
}
"""Kinds of bad items: which passages answer them."""


def planted_exam(
    seed: int,
    bad: Mapping[str, int],
    *,
    systems: int = 30,
    queries: int = 40,
    items: int = 10,
    copies: int = 0,
    trial: Sequence[str] = (),
) -> Gradebook:
    """Return an exam whose items have the kind in their id; `copies` repeat the first system.

    Every query has as many bad items of each kind as `bad` says, and for each kind of `trial` one
    item of weight 0.
    """
    random = np.random.default_rng(seed)
    skill = random.uniform(0, 2, systems)
    kinds = [kind for kind, count in bad.items() for _ in range(count)]
    kinds += [GOOD] * (items - len(kinds))
    names = [f"s{number:02}" for number in range(systems + copies)]
    made = []
    for number in range(queries):
        worth = random.normal(size=POOL)
        answers = [BAD.get(kind, _answers)(random, worth) for kind in (*kinds, *trial)]
        found = [np.argsort(-(one * worth + random.normal(0, 2.5, POOL)))[:DEPTH] for one in skill]
        found += found[:1] * copies
        made.append(
            QueryGrades(
                query_id=f"q{number:02}",
                subtopic_ids=(),
                item_ids=(
                    *(f"q{number:02}/{kind}{at}" for at, kind in enumerate(kinds)),
                    *(f"q{number:02}/{kind}-trial{at}" for at, kind in enumerate(trial)),
                ),
                item_subtopics=np.zeros(len(answers), np.int32),
                weights=np.array([1.0] * len(kinds) + [0.0] * len(trial)),
                passage_ids=tuple(f"p{at}" for at in range(POOL)),
                pool_size=POOL,
                ratings=np.where(np.array(answers).T, HIGH, LOW).astype(np.int16),
                judgments=np.full((1, POOL), MISSING, np.int16),
                rankings=tuple(
                    Ranking(name, 0, one.astype(np.int32), np.arange(DEPTH, 0, -1.0))
                    for name, one in zip(names, found, strict=True)
                ),
            )
        )
    return Gradebook(GRADER, "main", tuple(made), tuple(names))
