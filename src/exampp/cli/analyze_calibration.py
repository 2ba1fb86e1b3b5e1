"""`exampp analyze calibration`: from ratings to people's labels, and how good that is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    OnError,
    Scale,
    rating_scale,
)
from exampp.cli.command import counting
from exampp.cli.declare import option
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import remark, show_several
from exampp.cli.panels import ASKED_FOR


class FittedKind(StrEnum):
    """What is fitted."""

    logistic = "logistic"
    isotonic = "isotonic"


@counting(OF_GRADED_FILES, OF_READING)
def calibration(
    collection: CollectionOrWorkbench,
    grader: Annotated[
        list[str] | None,
        option(
            help="Whose ratings: a model, model:prompt, or the start of its key; repeat to learn "
            "from several together."
        ),
    ] = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    model: Annotated[
        FittedKind,
        option(
            help="logistic: all ratings of a passage; isotonic: their mean, any curve.",
            panel=ASKED_FOR,
        ),
    ] = FittedKind.logistic,
    min_relevant: Annotated[
        int | None,
        option(
            help="Probabilities are told for judgments of at least this. [default: 2, or 1 where "
            "no judgment is higher]"
        ),
    ] = None,
    folds: Annotated[int, option(min=2, help="Groups of queries, each held out once.")] = 5,
    samples: Annotated[int, option(help="Bootstrap samples of the queries.")] = 1000,
    seed: Annotated[int, option(help="Seed of folds and samples.")] = 0,
    save: Annotated[
        Path | None,
        option(dir_okay=False, help="Write the calibration to this file, for exampp calibrate."),
    ] = None,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Learn people's labels from the ratings of passages, tried on queries that were held out.

    Shows what the calibration is worth, its reliability curve, and labels against people's.
    COLLECTION is only read; exampp calibrate labels passages with what --save writes.

    Example: exampp analyze calibration my.exam --save my.calibration
    """
    from exampp.analysis.calibration import CalibrationSettings
    from exampp.formats.output import keep_inputs
    from exampp.records.choosing import choose_grader

    keep_inputs([save], [collection, bank])
    settings = CalibrationSettings(model.value, folds, min_relevant, samples, seed)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        of_kind = kind.value if kind else None
        names = [
            # one that fits is chosen, and of several one must be named
            choose_grader(opened.graders, grader=name, prompt=prompt, kind=of_kind).key
            for name in grader or (None,)
        ]
        found = opened.panel(*names, bank=bank, decisions=decisions.value).calibration(settings)
    if save:
        found.save(save)
    machine = style in (Style.tsv, Style.csv, Style.json)
    show_several(found.records() if machine else found.tables(), style.value, digits)
    if save:
        remark(f"{save}: exampp calibrate COLLECTION {save} labels passages with it")
