"""Calibrations as tables: what they are worth, the reliability curve, labels against people's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exampp.formats import calibration as calibration_format
from exampp.records.calibration import Calibration
from exampp.report.page import Block, Folded, Notices, Section, Text
from exampp.report.plots.calibration import calibration_curve
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import Table

_SCORES = ("score", "constant", "before", "calibrated", "low", "high")


@dataclass(frozen=True, slots=True, repr=False)
class CalibrationFindings(Result):
    """A calibration, what it is worth on held-out queries, and what to know of it.

    `confusion` is people's labels x labels that it gives (held out), in passages.
    """

    calibration: Calibration
    confusion: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the calibration as a file, to label other passages with it."""
        calibration_format.write(path, self.calibration)

    def tables(self) -> Mapping[str, Table]:
        """What it is worth, the reliability curve, and labels against people's."""
        made = self.calibration
        labels = [f"labelled {label}" for label in made.labels]
        rows = zip(made.labels, self.confusion.tolist(), strict=True)
        return {
            "calibration": scores_table(made, self.notes),
            "reliability": reliability_table(made),
            "labels": Table.of(
                ["people's label", *labels],
                [[label, *counts] for label, counts in rows],
                "Held-out passages by people's label and the calibrated one",
            ),
        }

    def records(self) -> Mapping[str, Table]:
        """The same at full precision, with where it comes from."""
        made = self.calibration
        origin = {
            "model": made.model,
            "graders": " ".join(one.key for one in made.sources),
            "source": made.source,
            "queries": made.queries,
            "passages": made.passages,
            "min_relevant": made.min_relevant,
            "share_relevant": made.share_relevant,
            "seed": made.seed,
        }
        scores = [
            [*(getattr(one, name) for name in _SCORES), *origin.values()] for one in made.scores
        ]
        named = scores_table(made)
        return {
            **self.tables(),
            "calibration": Table.of([*_SCORES, *origin], scores, named.caption, self.notes),
        }


def scores_table(made: Calibration, notes: tuple[str, ...] = ()) -> Table:
    """What a calibration is worth, a row a score."""
    columns = ["on held-out queries", *_SCORES[1:-2], "95% low", "high"]
    rows = [[getattr(one, name) for name in _SCORES] for one in made.scores]
    names = " and ".join(one.name for one in made.sources)
    caption = (
        f"Labels {made.labels[0]} to {made.labels[-1]} from the ratings of {names}: "
        f"{made.model}, {made.passages:,} judged passages of {made.queries} queries"
    )
    return Table.of(columns, rows, caption, notes)


def curve_figure(made: Calibration) -> Figure:
    """The reliability curve."""
    subtitle = f"{made.model}, {made.queries} queries of {made.source}, each held out once"
    return calibration_curve(made.bins, made.min_relevant, subtitle=subtitle)


def section(calibrations: Sequence[Calibration]) -> Section:
    """The part of a report on the calibrations that there are."""
    blocks: list[Block] = []
    for made in calibrations:
        blocks += [Text(made.said()), scores_table(made), curve_figure(made)]
        blocks.append(Folded("The reliability curve as a table", reliability_table(made)))
    return Section.of("calibration", "Labels calibrated to people's judgments", blocks)


def findings_section(found: CalibrationFindings) -> Section:
    """What a calibration would be worth, before there is one."""
    tables = dict(found.tables())
    scores = tables.pop("calibration")
    blocks: list[Block] = [
        Notices(scores.notes, "note"),
        replace(scores, notes=()),
        curve_figure(found.calibration),
        *(Folded(table.caption, table) for table in tables.values()),
    ]
    return Section("calibration", "Do ratings tell what people would judge?", tuple(blocks))


def reliability_table(made: Calibration) -> Table:
    """The reliability curve: of a calibrated bin both shares are alike."""
    caption = f"Reliability: held-out passages by their probability of {made.min_relevant} or more"
    rows = [[one.passages, one.predicted, one.observed] for one in made.bins]
    return Table.of(["passages", "mean probability", "share people judged so"], rows, caption)
