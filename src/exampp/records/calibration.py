"""Calibrations: frozen models that turn ratings into the labels people would give.

A calibration is stored as a file and in the settings of the grader that it defines (`identity`), so
that it can label other passages and other collections in the same way.
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
    """A grader whose ratings are read, and how many of a passage: best first, `lowest` if none."""

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
    """A model fitted to the judgments of some queries: one model per label, and the cut points.

    The c-th cut point is the expected label from which on a passage gets the c-th label.
    """

    levels: tuple[LevelModel, ...]
    cut_points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A training fold: its queries, and the model that was fitted without them."""

    queries: tuple[str, ...]
    model: FittedModel


@dataclass(frozen=True, slots=True)
class CalibrationScore:
    """A statistic on held-out queries: of labels and probabilities before and after calibration.

    `low` and `high` bound the calibrated value, over queries; `constant` is the value of one
    probability for all. None is undefined.
    """

    score: str
    before: float | None
    calibrated: float | None
    low: float | None
    high: float | None
    constant: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Held-out passages of similar probability: mean prediction and share that people judged so."""

    predicted: float
    observed: float
    passages: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model from the ratings of a passage to a label of `labels`, ascending, the lowest 0.

    `fitted` is for queries outside the training data, `folds` are for those in it. `shares` is how
    often people gave each label. `scores` and `bins` are results on held-out queries; their
    probabilities are those of labels of at least `min_relevant`. `source` names the training data.
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
        """Describe the source of the labels, and why their level may be wrong elsewhere."""
        names = " and ".join(one.name for one in self.sources)
        return (
            f"Labels {self.labels[0]} to {self.labels[-1]} are predicted ({self.model}) from the "
            f"ratings of {names}, calibrated to people's judgments of {self.passages:,} passages "
            f"of {self.queries} queries in {self.source}. {self.transfer()}"
        )

    def score(self, name: str) -> CalibrationScore:
        """Return the first score whose name starts so."""
        return next(one for one in self.scores if one.score.startswith(name))

    def transfer(self) -> str:
        """Return a warning that levels do not transfer to other collections."""
        return (
            f"Levels do not transfer: the calibration carries the {self.share_relevant:.1%} of "
            f"passages judged {self.min_relevant} or higher to other queries and pools. Trust the "
            "order of passages and systems, not how many are relevant."
        )


def calibration_of(grader: GraderIdentity) -> Calibration | None:
    """Return the calibration that made the grades of a grader; None for any other grader."""
    stored = grader.settings.get("calibration")
    return None if stored is None else msgspec.convert(stored, Calibration)


def calibration_notes(grader: GraderIdentity) -> tuple[str, ...]:
    """Return the notes for results that use labels of a calibrated grader."""
    calibration = calibration_of(grader)
    return () if calibration is None else (calibration.origin(),)


def calibrations_of(
    grader: GraderIdentity, graders: Sequence[GraderIdentity]
) -> tuple[Calibration, ...]:
    """Return the calibrations related to a grader: its own, and those that read its ratings."""
    pairs = ((one, calibration_of(one)) for one in graders)
    return tuple(
        calibration
        for one, calibration in pairs
        if calibration is not None
        and (one.key == grader.key or grader.key in {source.key for source in calibration.sources})
    )
