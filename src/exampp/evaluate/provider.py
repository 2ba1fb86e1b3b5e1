"""Measures that only ir_measures computes, one at a time. The only file that imports it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.exam_sheets import Run
from exampp.evaluate.measure import Measure
from exampp.installed import install_command


def ir_measure(measure: Measure) -> Any:
    """The same measure as an object of ir_measures.

    Built here, because its parser of strings needs parts of `ast` that newer Pythons lack.
    """
    import ir_measures

    name = "NumRet" if measure.name == "NumRelRet" else measure.name
    kind = getattr(ir_measures, name)
    params: dict[str, Any] = {
        key: dict(value) if isinstance(value, tuple) else value for key, value in measure.params
    }
    if measure.at is not None:
        params[kind.AT_PARAM] = measure.at
    return kind(**params)


def provider_scores(
    measure: Measure,
    qrels: Iterable[tuple[str, str, int, str]],
    runs: Iterable[Run],
    query_ids: Sequence[str],
) -> NDArray[np.float64]:
    """Values, systems x queries; `qrels` are (query, passage, label, subtopic).

    Raises:
        InputError: ir_measures cannot compute it, or not without a package that is not there.
    """
    import ir_measures

    if measure.kind.subtopics and find_spec("pyndeval") is None:
        raise InputError(
            f"the diversity measure {measure} needs pyndeval",
            mend=f"Install it: {install_command('diversity')}",
        )
    column = {query_id: index for index, query_id in enumerate(query_ids)}
    values: list[NDArray[np.float64]] = []
    try:
        # A bank of one item is no mistake, of which ir_measures would warn on standard error.
        with contextlib.redirect_stderr(io.StringIO()):
            evaluator = ir_measures.evaluator(
                [ir_measure(measure)], [ir_measures.Qrel(*qrel) for qrel in qrels]
            )
        for run in runs:
            values.append(np.zeros(len(query_ids)))
            for result in evaluator.iter_calc(run) if run else ():
                values[-1][column[result.query_id]] = result.value
    except (ValueError, RuntimeError, AssertionError, ArithmeticError, OSError) as error:
        raise InputError(f"ir_measures cannot compute {measure}", mend=str(error)) from error
    return np.array(values).reshape(len(values), len(query_ids))
