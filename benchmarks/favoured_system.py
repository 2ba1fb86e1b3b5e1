"""Measure how often the check for a favoured system is wrong, and the favours that it finds.

    python benchmarks/favoured_system.py [--draws 1000] [--seed 0] [--shapes NAME ...]

Exams of 8 systems are simulated: the relevance of a passage is normal, with an effect of the query,
of the system, and of the system on the query. People judge it 0 to 3, the grader rates it 0 to 5.
A fair grader rates what people see (their judgment, or the same relevance where judges err, too)
with noise. Two tables are printed, a row a shape and a column a number of queries: the share of
exams in which a system is named that is not favoured (at most .05), and the share in which the
favoured systems are named, with the right sign.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from exampp.stats.system_bias import JudgedPool, system_biases

Floats = NDArray[np.float64]

QUERIES = (4, 8, 12, 25, 43)
SYSTEMS = 8
CANDIDATES = 60
"""Passages of a query that systems with a shared pool choose from."""


@dataclass(frozen=True)
class Shape:
    """An exam: how far systems differ, how noisy judges and grader are, whom the grader favours.

    `spread` is the quality of the best system less that of the worst, `returned` the passages of a
    system. `shocks` are the noise that all passages of a system share in a query. `changed` are the
    ratings added to each favoured system.
    """

    spread: float = 0.0
    returned: int = 20
    rare: bool = False
    shared: bool = False
    judges: float = 0.0
    binary: bool = False
    grader: float = 1.0
    shocks: float = 0.0
    changed: Mapping[int, int] = field(default_factory=dict)


FAIR = {
    "equal systems": Shape(),
    "equal, 5 passages": Shape(returned=5),
    "equal, 3 % relevant": Shape(rare=True),
    "equal, shared passages": Shape(shared=True),
    "equal, passages of a system alike": Shape(shocks=0.7),
    "equal, the same, more so": Shape(shocks=2.0, grader=0.2),
    "equal, useless grader": Shape(grader=20.0),
    "unequal systems": Shape(spread=3.0),
    "unequal, very noisy grader": Shape(spread=3.0, grader=3.0),
    "unequal, 3 % relevant": Shape(spread=1.5, rare=True),
    "unequal, shared passages": Shape(spread=1.2, shared=True),
    "unequal, passages alike": Shape(spread=3.0, shocks=0.7),
    "unequal, judges half as noisy": Shape(spread=3.0, judges=0.5),
    "unequal, binary judgments": Shape(spread=3.0, binary=True),
    "unequal, the same, judges as noisy": Shape(spread=3.0, binary=True, judges=1.0),
    "unequal, judges as noisy": Shape(spread=3.0, judges=1.0),
    "unequal, judges as noisy, shared": Shape(spread=1.2, judges=1.0, shared=True),
    "unequal, judges twice as noisy": Shape(spread=3.0, judges=2.0),
}
FAVOURED = {
    "one rated 5": Shape(changed={3: 5}),
    "one rated 5, 5 passages": Shape(changed={3: 5}, returned=5),
    "one rated 5, 3 % relevant": Shape(changed={3: 5}, rare=True),
    "one rated 5, shared passages": Shape(changed={3: 5}, shared=True),
    "one rated 5, useless grader": Shape(changed={3: 5}, grader=20.0),
    "two rated 5": Shape(changed={3: 5, 5: 5}),
    "one rated 0": Shape(changed={3: -5}),
    "one +1": Shape(changed={3: 1}),
    "one +1, 5 passages": Shape(changed={3: 1}, returned=5),
    "one +1, 3 % relevant": Shape(changed={3: 1}, rare=True),
    "one +1, shared passages": Shape(changed={3: 1}, shared=True),
    "one +1, passages alike": Shape(changed={3: 1}, shocks=0.7),
    "the worst +1": Shape(changed={0: 1}, spread=1.5),
    "the best +1": Shape(changed={7: 1}, spread=1.5),
    "the best rated 5": Shape(changed={7: 5}, spread=1.5),
}


def exam(shape: Shape, queries: int, random: np.random.Generator) -> JudgedPool:
    """Draw one exam."""
    skill = np.linspace(-0.5, 0.5, SYSTEMS) * shape.spread
    ease = random.normal(0, 0.7, (queries, 1))
    if shape.shared:
        relevance = random.normal(0, 1, (queries, CANDIDATES)) + ease
        returned = _rankings(shape, relevance, skill, random)
        shocks = np.zeros(relevance.shape)
    else:
        owner = np.repeat(np.arange(SYSTEMS), shape.returned)
        of_system = skill + random.normal(0, 0.4, (queries, SYSTEMS))
        relevance = random.normal(0, 1, (queries, len(owner))) + ease + of_system[:, owner]
        shocks = (random.normal(0, 1, (queries, SYSTEMS)) * shape.shocks)[:, owner]
        mine = owner == np.arange(SYSTEMS)[:, None]
        returned = np.broadcast_to(mine[:, None, :], (SYSTEMS, *relevance.shape))
    seen = relevance + random.normal(0, 1, relevance.shape) * shape.judges
    cuts = np.array([2.45, 2.9, 3.4]) if shape.rare else np.array([0.0, 0.8, 1.6])
    judgment = np.digitize(seen, cuts[-1:] if shape.binary else cuts)
    truth = relevance if shape.judges or shape.binary else judgment - 1.0
    noise = random.normal(0, 1, relevance.shape) * shape.grader + shocks
    rating = np.clip(np.round(1.2 * (truth + noise) + 2), 0, 5)
    for system, change in shape.changed.items():
        rating = np.where(returned[system], np.clip(rating + change, 0, 5), rating)
    pooled = returned.any(axis=0)
    number = np.broadcast_to(np.arange(queries)[:, None], pooled.shape)[pooled]
    places = [np.flatnonzero(mine[pooled]) for mine in returned]
    return JudgedPool(rating[pooled], judgment[pooled].astype(np.float64), number, number, places)


def _rankings(
    shape: Shape, relevance: Floats, skill: Floats, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Systems that choose from one pool, by relevance, by what they have in common, and by luck."""
    common = random.normal(0, 1, relevance.shape)
    found = np.zeros((SYSTEMS, *relevance.shape), np.bool_)
    for system, own in enumerate(skill):
        score = relevance * (0.6 + own) + common + random.normal(0, 0.7, relevance.shape)
        best = np.argsort(-score, axis=1)[:, : shape.returned]
        np.put_along_axis(found[system], best, True, axis=1)
    return found


def rates(shape: Shape, queries: int, draws: int, seed: int) -> tuple[float, float]:
    """The share of exams with a false name, and with all favoured systems named."""
    wrong = right = 0
    favoured = list(shape.changed)
    for number in range(draws):
        random = np.random.default_rng([seed, queries, number])
        found = system_biases(exam(shape, queries, random)).found
        expected = np.zeros(SYSTEMS, np.int64)
        expected[favoured] = np.sign(list(shape.changed.values()))
        wrong += bool(((found != 0) & (found != expected)).any())
        right += bool((found == expected)[favoured].all())
    return wrong / draws, right / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shapes", nargs="*", default=())
    given = parser.parse_args()
    started = time.perf_counter()
    heading = " | ".join(f"{count} queries" for count in QUERIES)
    for title, shapes in (("a fair system is named", FAIR), ("favoured, named", FAVOURED)):
        print(f"\n| {title} | {heading} |\n|---|{'---|' * len(QUERIES)}")
        for name, shape in shapes.items():
            if not given.shapes or name in given.shapes:
                print(f"| {name} | {_cells(shape, given.draws, given.seed)} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s, {given.draws} draws, seed {given.seed}")


def _cells(shape: Shape, draws: int, seed: int) -> str:
    found = [rates(shape, count, draws, seed) for count in QUERIES]
    if not shape.changed:
        return " | ".join(f"{wrong:.3f}" for wrong, _ in found)
    return " | ".join(f"{right:.2f} ({wrong:.3f})" for wrong, right in found)


if __name__ == "__main__":
    main()
