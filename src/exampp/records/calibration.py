"""A calibration: what makes people's labels out of ratings, frozen, with where it comes from.

It is kept as a file and in the settings of the grader that it is (`identity`), so that the same
labels can be made of other passages and in other collections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from exampp.records.graders import GraderIdentity

CalibrationModel = Literal["logistic", "isotonic"]
CALIBRATED = "calibrated-"
"""What the names of calibrated graders begin with."""


@dataclass(frozen=True, slots=True)
class SourceGrader:
    """A grader whose ratings are read, and how many of a passage: best first, `lowest` for none."""

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

    Of a logistic model `values` are intercept and coefficients; of an isotonic one those at the
    `places` of the mean rating.
    """

    label: int
    values: tuple[float, ...]
    places: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FittedModel:
    """What was fitted to the judgments of some queries: a model per label, and the cut points.

    The c-th cut point is the expected label from which on a passage gets the c-th label.
    """

    levels: tuple[LevelModel, ...]
    cut_points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Some queries that were trained on, and the model that was fitted without them."""

    queries: tuple[str, ...]
    model: FittedModel


@dataclass(frozen=True, slots=True)
class CalibrationScore:
    """A figure on held-out queries: of labels and probabilities before, and calibrated.

    `low` and `high` bound the calibrated one, over queries; `constant` is that of one probability
    for all. None is undefined.
    """

    score: str
    before: float | None
    calibrated: float | None
    low: float | None
    high: float | None
    constant: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Held-out passages of similar probability: mean prediction, share that people judged so."""

    predicted: float
    observed: float
    passages: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """From the ratings of a passage to a label of `labels`, ascending, the lowest 0.

    `fitted` is for queries that were not trained on, `folds` for those that were. `shares` is how
    often people gave each label, `scores` and `bins` are what was found on held-out queries, those
    of probabilities for labels of at least `min_relevant`. `source` names what was trained on.
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
        """The share of labels of at least `min_relevant` that it was trained on."""
        pairs = zip(self.labels, self.shares, strict=True)
        return sum(share for label, share in pairs if label >= self.min_relevant)

    def said(self) -> str:
        """Return where the labels come from, and why their level is to be doubted elsewhere."""
        names = " and ".join(one.name for one in self.sources)
        return (
            f"These are labels {self.labels[0]} to {self.labels[-1]}, calibrated ({self.model}) "
            f"from the ratings of {names} to people's judgments of {self.passages:,} passages of "
            f"{self.queries} queries in {self.source}. {self.transfer()}"
        )

    def transfer(self) -> str:
        """Return why levels do not transfer."""
        return (
            f"Levels do not transfer: {self.share_relevant:.1%} of what it learned from was judged "
            f"{self.min_relevant} or higher, and it carries that share to other queries and other "
            "pools, whatever theirs is. Believe the order of passages and systems, not how many "
            "are relevant."
        )


def calibration_of(grader: GraderIdentity) -> Calibration | None:
    """Return the calibration whose labels the grades of a grader are; None of any other grader."""
    kept = grader.settings.get("calibration")
    return None if kept is None else msgspec.convert(kept, Calibration)


def calibration_notes(grader: GraderIdentity) -> tuple[str, ...]:
    """Return what is said under whatever is made of a calibrated grader's labels."""
    made = calibration_of(grader)
    return () if made is None else (made.said(),)


def calibrations_of(
    grader: GraderIdentity, known: Sequence[GraderIdentity]
) -> tuple[Calibration, ...]:
    """The calibrations that have to do with a grader: its own, and those that read its ratings."""
    found = ((one, calibration_of(one)) for one in known)
    return tuple(
        made
        for one, made in found
        if made is not None
        and (one.key == grader.key or grader.key in {source.key for source in made.sources})
    )
