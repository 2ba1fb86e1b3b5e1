"""Measures of one's own: a function of what a system returned for a query, under a name.

@exampp.measure("Reach", threshold=True, share=True)
def reach(query: exampp.RankedQuery) -> float:
    answered = (query.ratings >= query.min_rating).any(axis=1)
    return float(answered.mean()) if len(answered) else 0.0

grades.evaluate(["Reach@10", "Cover@20"])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.evaluate.exam_sheets import ExamSheet, Sheets
from exampp.evaluate.measure import Measure
from exampp.evaluate.measure_names import ALIASES, MEASURES, TREC_NAMES, MeasureKind
from exampp.evaluate.trec import MeasureTask
from exampp.plugins import told
from exampp.records.gradebook import MISSING
from exampp.records.grading import GraderIdentity

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """One system's ranking for one query, or for one `subtopic` of it ("": the whole query).

    `passage_ids` are the passages that the system returned, best first, as far as the cutoff: none
    where it returned nothing. `ratings` is passages x items, `judgments` has a number per passage;
    NaN stands for a cell without a grade and a passage that nobody judged. `item_ids` and `weights`
    are those of the items. `pool_ids`, `pool_ratings` and `pool_judgments` are the same of all
    passages of the query, whoever returned them, in no order. Ratings go from `lowest` to
    `highest`; `threshold` is the least that counts (see `min_rating`), None where the measure
    declares none; `cutoff` is what follows the @, or None. Arrays cannot be written to.
    """

    query_id: str
    subtopic: str
    system: str
    passage_ids: tuple[str, ...]
    ratings: NDArray[np.float64]
    judgments: NDArray[np.float64]
    item_ids: tuple[str, ...]
    weights: NDArray[np.float64]
    pool_ids: tuple[str, ...]
    pool_ratings: NDArray[np.float64]
    pool_judgments: NDArray[np.float64]
    lowest: int
    highest: int
    threshold: int | None
    cutoff: int | None

    @property
    def min_rating(self) -> int:
        """The least rating that counts; InputError where the measure declares no threshold."""
        if self.threshold is None:
            raise InputError(
                "it reads min_rating and declares no threshold",
                mend="Declare it with threshold=True",
            )
        return self.threshold


Formula = Callable[[RankedQuery], float | None]


def measure(
    name: str, *, cutoff: bool = True, threshold: bool = False, share: bool = False
) -> Callable[[Formula], Measure]:
    """Declare a function as the measure `name`, which every analysis, plot and command then knows.

    The function gets a `RankedQuery` and returns a number, or None where the query does not count
    for this system. With `cutoff` it may be asked for as `NAME@k`; a `threshold` says that it reads
    `min_rating`, and a `share` that its values are from 0 to 1. Gives the measure, which may stand
    in a list of measures itself; `.cut(10)` is the same at 10 passages.

    Raises:
        InputError: The name is no name, or is taken.
    """
    if callable(name):
        raise InputError("a measure needs a name", mend='Declare it: exampp.measure("Name")')
    is_name = isinstance(name, str) and _NAME.fullmatch(name)
    if not is_name or name in ALIASES or name in TREC_NAMES:
        raise InputError(
            f"{name!r} cannot be the name of a measure",
            mend="Give one of letters, digits and _ that no measure has",
        )

    def declare(formula: Formula) -> Measure:
        at = "cutoff" if cutoff else ""
        kind = MeasureKind(at=at, threshold=threshold, share=share, formula=formula)
        MEASURES.add(name, kind, str(vars(formula).get("__module__", formula.__module__)))
        return Measure(name)

    return declare


def declared_scores(
    formula: Formula, task: MeasureTask, sheets: Sheets, grader: GraderIdentity
) -> NDArray[np.float64]:
    """The values of a declared measure, systems x queries; NaN where a query does not count.

    Raises:
        InputError: It gives what is no number, or fails.
    """
    table = np.zeros((len(sheets.systems), len(sheets.sheets)))
    for column, sheet in enumerate(sheets.sheets):
        for row, query in enumerate(_queries(task, sheet, sheets.systems, grader)):
            table[row, column] = _value(formula, task.measure, query)
    return table


def _queries(
    task: MeasureTask, sheet: ExamSheet, systems: tuple[str, ...], grader: GraderIdentity
) -> Iterator[RankedQuery]:
    exam, query = sheet.exam, sheet.exam.query
    subtopic = exam.exam_id[len(query.query_id) + 1 :]
    place = query.subtopic_ids.index(subtopic) + 1 if subtopic else 0
    pool = RankedQuery(
        query.query_id,
        subtopic,
        system="",
        passage_ids=(),
        ratings=_none(0, len(exam.items)),
        judgments=_none(0),
        item_ids=tuple(query.item_ids[item] for item in exam.items),
        weights=_fixed(query.weights[exam.items]),
        pool_ids=query.passage_ids,
        pool_ratings=_with_gaps(query.ratings[:, exam.items]),
        pool_judgments=_with_gaps(query.judgments[place]),
        lowest=grader.lowest,
        highest=grader.highest,
        threshold=task.level,
        cutoff=task.measure.cutoff,
    )
    for system, ranking in zip(systems, exam.passages, strict=True):
        rows = () if ranking is None else ranking[: task.measure.cutoff]
        some = np.array(rows, np.intp)
        yield replace(
            pool,
            system=system,
            passage_ids=tuple(query.passage_ids[index] for index in some),
            ratings=_fixed(pool.pool_ratings[some]),
            judgments=_fixed(pool.pool_judgments[some]),
        )


def _none(*shape: int) -> NDArray[np.float64]:
    return np.zeros(shape)


def _with_gaps(values: NDArray[np.int16]) -> NDArray[np.float64]:
    return _fixed(np.where(values == MISSING, np.nan, values.astype(np.float64)))


def _fixed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same values, for a function of others, which must not change them for the next."""
    own = values.copy()
    own.flags.writeable = False
    return own


def _value(formula: Formula, asked: Measure, query: RankedQuery) -> float:
    try:
        found: Any = formula(query)
    except InputError as error:
        raise _wrong(asked, query, f"fails: {error}") from error
    except (Exception, SystemExit) as error:
        # what others write may fail in any way; it is told in a sentence
        raise _wrong(asked, query, f"fails: {told(error)}") from error
    if found is None:
        return np.nan
    number = found.item() if isinstance(found, np.ndarray) and found.ndim == 0 else found
    if isinstance(number, bool | np.bool_) or not isinstance(number, Real):
        raise _wrong(asked, query, f"gives {found!r}, which is no number")
    try:
        value = float(number)
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise _wrong(asked, query, f"gives {value}")
    if asked.kind.share and not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise _wrong(asked, query, f"gives {value:g}, and is declared to be a share of 0 to 1")
    return min(max(value, 0.0), 1.0) if asked.kind.share else value


_ROUNDING = 1e-9
"""By so much the sums of a share may miss 0 and 1."""


def _wrong(asked: Measure, query: RankedQuery, what: str) -> InputError:
    where = f"{query.query_id}/{query.subtopic}" if query.subtopic else query.query_id
    return InputError(
        f"the measure {asked} {what} (query {where!r}, system {query.system!r}, "
        f"{len(query.passage_ids)} passages)",
        mend="Give a number, or None where the query does not count",
    )
