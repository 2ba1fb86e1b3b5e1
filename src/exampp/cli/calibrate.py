"""`exampp calibrate`: passages labelled by a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.declare import argument
from exampp.cli.options import BankName, CollectionFile, Style, TableStyle
from exampp.cli.output import remark, show_several


def calibrate(
    collection: CollectionFile,
    calibration: Annotated[Path, argument(help="What exampp analyze calibration --save wrote.")],
    bank: BankName = None,
    style: TableStyle = Style.text,
) -> None:
    """Label all graded passages by a calibration; the labels are grades of a grader of their own.

    Passages of queries that it was trained on are labelled by a model that had not seen their
    query, all others by the frozen one. Again after more grading, it labels what is new.

    Example: exampp calibrate my.exam my.calibration
    """
    with exampp.Collection(collection) as opened:
        found = opened.calibrate(calibration, bank)
    show_several(found.tables(), style.value)
    remark(
        f"As qrels: exampp evaluate {collection} --grader {found.grader.name} --qrels labels.qrels"
    )
