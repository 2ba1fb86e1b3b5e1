"""What a corrected leaderboard is made of: how it is asked for, the sample, ways to score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.outside import check_whole
from exampp.stats.difference import Sample
from exampp.stats.rank_sets import DRAWS, PairTests
from exampp.stats.resampling import MOST_DRAWS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Predictor = Literal["calibrated", "ppi", "grades"]
Scope = Literal["pool", "queries"]
FEWEST_UNITS = 20
"""Of units drawn by chance on which two systems differ: a small variance of fewer says nothing."""
FEWEST_QUERIES_APART = 10
"""On which two systems differ: of fewer, queries drawn anew may hold none."""
FEWEST_OF_SYSTEM = 10
"""Of sampled units that count for a system: with fewer its score has no interval."""


@dataclass(frozen=True, slots=True)
class CorrectionSettings:
    """How a leaderboard is corrected.

    `predictor`: what grades predict of a unit. "calibrated": what people said of sampled units with
    such grades, cross-fitted; "ppi": the label that the grades give, times the lambda of PPI++;
    "grades": that label itself. `over`: what intervals speak of, the `pool` (these queries, these
    passages) or `queries` like these. `looks`: how often intervals are looked at while the sample
    grows; each time at alpha / looks.

    Raises:
        InputError: A value makes no sense.
    """

    predictor: Predictor = "calibrated"
    over: Scope = "pool"
    alpha: float = 0.05
    looks: int = 1
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        for what, value, known in (
            ("predictor", self.predictor, get_args(Predictor)),
            ("scope", self.over, get_args(Scope)),
        ):
            if value not in known:
                mend = f"Choose {' or '.join(known)}"
                raise InputError(f"there is no {what} {value!r}", mend=mend)
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, not {self.alpha}")
        check_whole("looks", self.looks, 1, MOST_DRAWS)
        check_whole("draws", self.draws, 100, MOST_DRAWS)
        check_whole("the seed", self.seed, 0)

    @property
    def level(self) -> float:
        """The confidence of an interval."""
        return 1 - self.alpha / self.looks


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The sampled units of a population, what people say of them, and how they were drawn.

    `labels` is aligned with `sample.places`: [sampled], of items [systems, sampled]. `origin` says
    in a sentence what was drawn and who judged; `notes` what else is to be known of it. `design` is
    "all" where every unit is judged and none was drawn.
    """

    sample: Sample
    labels: Floats
    fold_seed: int
    design: str
    origin: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to score the systems: scores, and the tests of all pairs, of the same systems.

    `errors` are standard errors of the scores, `low` and `high` the limits of their intervals,
    within 0 and 1 (NaN where there is none).
    """

    scores: Floats
    errors: Floats
    low: Floats
    high: Floats
    pairs: PairTests
