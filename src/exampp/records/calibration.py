"""Calibrations: models that map ratings to human relevance labels.

A calibration is stored in a file and in the settings of the grader that it defines (`identity`), so
it can label other passages and collections in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from exampp.records.graders import GraderIdentity

CalibrationModel = Literal["logistic", "isotonic"]
CALIBRATED = "calibrated-"
"""Prefix of the names of calibrated graders."""


@dataclass(frozen=True, slots=True)
class SourceGrader:
    """A source of ratings, and how many ratings per passage are used."""

    key: str
    name: str
    model: str
    prompt: str
    kind: str
    lowest: int
    highest: int
    width: int


@dataclass(frozen=True, slots=True)
class LevelModel:
    """The probability that a label is at least `label`.

    For a logistic model `values` are intercept and coefficients; for an isotonic model they are the
    probabilities at the `places` of the mean rating.
    """

    label: int
    values: tuple[float, ...]
    places: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A model fitted to the judgments of some queries: models by label, and cut points.

    The c-th cut point is the lowest expected label that gets the c-th label.
    """

    levels: tuple[LevelModel, ...]
    cut_points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold: its queries, and the model fitted without them."""

    queries: tuple[str, ...]
    model: FittedModel


@dataclass(frozen=True, slots=True)
class CalibrationScore:
    """A statistic on held-out queries, before and after calibration.

    `low` and `high` bound the calibrated value, over queries; `constant` is the value for a
    constant probability. None: undefined.
    """

    score: str
    before: float | None
    calibrated: float | None
    low: float | None
    high: float | None
    constant: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Held-out passages with similar probabilities: mean prediction and observed share."""

    predicted: float
    observed: float
    passages: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model that maps ratings of a passage to one of `labels` (ascending from 0).

    `fitted` is for queries outside the training data, `folds` for those in it. `shares` are the
    frequencies of human labels. `scores` and `bins` are results on held-out queries, for the
    probability of a label of at least `min_relevant`. `source` names the training data.
    """

    model: CalibrationModel
    sources: tuple[SourceGrader, ...]
    labels: tuple[int, ...]
    fitted: FittedModel
    folds: tuple[Fold, ...]
    min_relevant: int
    shares: tuple[float, ...]
    queries: int
    passages: int
    source: str
    seed: int
    scores: tuple[CalibrationScore, ...] = ()
    bins: tuple[CalibrationBin, ...] = ()

    @property
    def share_relevant(self) -> float:
        """Return the share of training labels of at least `min_relevant`."""
        pairs = zip(self.labels, self.shares, strict=True)
        return sum(share for label, share in pairs if label >= self.min_relevant)

    def origin(self) -> str:
        """Describe the source of the labels and the limits of their transfer."""
        names = " and ".join(one.name for one in self.sources)
        return (
            f"Labels {self.labels[0]} to {self.labels[-1]} are predicted ({self.model}) from the "
            f"ratings of {names}, calibrated to human judgments of {self.passages:,} passages "
            f"of {self.queries} queries in {self.source}. {self.transfer()}"
        )

    def score(self, name: str) -> CalibrationScore:
        """Return the first score whose name starts so."""
        return next(one for one in self.scores if one.score.startswith(name))

    def transfer(self) -> str:
        """Return the warning that levels do not transfer to other collections."""
        return (
            f"Levels do not transfer: the calibration carries the {self.share_relevant:.1%} of "
            f"passages judged {self.min_relevant} or higher to other queries and pools. Trust the "
            "order of passages and systems, not the number of relevant ones."
        )


def calibration_of(grader: GraderIdentity) -> Calibration | None:
    """Return the calibration of a calibrated grader; None for other graders."""
    stored = grader.settings.get("calibration")
    return None if stored is None else msgspec.convert(stored, Calibration)


def calibration_notes(grader: GraderIdentity) -> tuple[str, ...]:
    """Return the notes on labels of a calibrated grader."""
    calibration = calibration_of(grader)
    return () if calibration is None else (calibration.origin(),)


def calibrations_of(
    grader: GraderIdentity, graders: Sequence[GraderIdentity]
) -> tuple[Calibration, ...]:
    """Return the calibrations that define a grader or use its ratings."""
    pairs = ((one, calibration_of(one)) for one in graders)
    return tuple(
        calibration
        for one, calibration in pairs
        if calibration is not None
        and (one.key == grader.key or grader.key in {source.key for source in calibration.sources})
    )
