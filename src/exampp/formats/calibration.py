"""Calibrations as files: one JSON object with `format` and the fields of a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from exampp.errors import InputError
from exampp.formats.json_values import read_document
from exampp.formats.output import writing
from exampp.records.calibration import Calibration

FORMAT = "exampp calibration 1"


def write(path: str | Path, calibration: Calibration) -> None:
    """Write a calibration."""
    value = {"format": FORMAT, **msgspec.to_builtins(calibration)}
    with writing(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read(path: str | Path) -> Calibration:
    """Return the calibration in a file; raise InputError if it is not one."""
    hint = "Create one: exampp analyze calibration SOURCE --save FILE"
    value = read_document(path, FORMAT, "a calibration file", hint)
    try:
        return of_value(value)
    except InputError as error:
        raise error.at(path) from None


def of_value(value: dict[str, Any]) -> Calibration:
    """Return the calibration in a JSON object, checked for consistency."""
    try:
        calibration = msgspec.convert(value, Calibration)
    except msgspec.ValidationError as error:
        raise InputError(f"the calibration cannot be read: {error}") from None
    known = len(calibration.labels)
    features = sum(one.width + 1 for one in calibration.sources)
    for fitted in (calibration.fitted, *(fold.model for fold in calibration.folds)):
        right = len(fitted.levels) == len(fitted.cut_points) == known - 1 and all(
            len(one.values) == (len(one.places) or features + 1) for one in fitted.levels
        )
        if not (right and calibration.sources and known > 1):
            raise InputError(
                "the calibration is inconsistent: the numbers of labels, levels, cut points, "
                "ratings and coefficients do not match"
            )
    return calibration
