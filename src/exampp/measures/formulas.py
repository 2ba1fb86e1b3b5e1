"""Formulas of measures other than Cover: of pytrec_eval, ir_measures, exampp, or declared ones.

@exampp.measure("Reach", threshold=True, share=True)
def reach(query: exampp.RankedQuery) -> float:
    answered = (query.ratings >= query.min_rating).any(axis=1)
    return float(answered.mean()) if len(answered) else 0.0

grades.evaluate(["Reach@10", "Cover@20"])
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.measures.names import ALIASES, MEASURES, TREC_NAMES, Gains, Measure, MeasureKind
from exampp.measures.qrels import Labels
from exampp.measures.rankings import RankedExam, RankedExams, Run
from exampp.plugins import describe_error
from exampp.records.gradebook import MISSING
from exampp.records.graders import GraderIdentity
from exampp.stats.estimate import Floats

Qrels = dict[str, dict[str, int]]

_PLAIN: Mapping[str, str] = {
    "AP": "map",
    "RR": "recip_rank",
    "nDCG": "ndcg",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetAP": "set_map",
    "infAP": "infAP",
    "NumQ": "num_q",
    "NumRet": "num_ret",
    "NumRel": "num_rel",
    "NumRelRet": "num_rel_ret",
}
_CUT: Mapping[str, str] = {
    "P": "P",
    "R": "recall",
    "AP": "map_cut",
    "nDCG": "ndcg_cut",
    "Success": "success",
}


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """One measure at one relevance level (None if it has none).

    `labels` is the threshold of the labels that it reads.
    """

    measure: Measure
    labels: int | None
    level: int | None


def trec_name(measure: Measure) -> str | None:
    """Return the trec_eval name of a measure, or None if trec_eval does not compute it."""
    if measure.param("dcg") not in (None, "log2"):
        return None
    if measure.name == "IPrec":
        return f"iprec_at_recall_{measure.at:.2f}"
    if measure.name == "SetP" and measure.param("relative"):
        return "set_relative_P"
    if measure.name == "NumRet" and measure.param("rel") is not None:
        return "num_rel_ret"
    # `_cut_rank` applies the cutoff of the reciprocal rank
    if measure.cutoff is not None and measure.name != "RR":
        cut = _CUT.get(measure.name)
        return None if cut is None else f"{cut}_{measure.cutoff}"
    return _PLAIN.get(measure.name)


def trec_scores(
    tasks: Sequence[MeasureTask], ranked: RankedExams, qrels: Mapping[int | None, Qrels]
) -> list[NDArray[np.float64]]:
    """Return the values of all tasks, systems x queries; 0 if a system returned nothing.

    `qrels` are the labels by threshold. pytrec_eval is called as by ir_measures, with one evaluator
    per relevance level, but without its bookkeeping per value, which takes most of the time.
    """
    import pytrec_eval

    query_ids = ranked.ids
    values = [np.zeros((len(ranked.systems), len(query_ids))) for _ in tasks]
    for (labels_name, judged_only, gains, level), members in _invocations(tasks).items():
        labels = qrels[labels_name]
        if gains is not None:
            labels = _with_gains(labels, dict(gains))
        names = {index: trec_name(tasks[index].measure) or "" for index in members}
        evaluator = pytrec_eval.RelevanceEvaluator(labels, set(names.values()), level, judged_only)
        for system, run in enumerate(ranked.runs()):
            values_of_run = evaluator.evaluate(run)
            for column, query_id in enumerate(query_ids):
                if query_id in values_of_run:
                    of_query = values_of_run[query_id]
                    for index, name in names.items():
                        values[index][system, column] = of_query[name]
    return [_cut_rank(task.measure, table) for task, table in zip(tasks, values, strict=True)]


def _invocations(
    tasks: Sequence[MeasureTask],
) -> dict[tuple[int | None, bool, Gains | None, int], list[int]]:
    """Group tasks by evaluator; tasks without a level join any evaluator that fits.

    An evaluator is (labels, whether only judged passages count, gains, level).
    """
    members: dict[tuple[int | None, bool, Gains | None, int], list[int]] = defaultdict(list)
    levels: dict[tuple[int | None, bool, Gains | None], int] = {}
    for index in sorted(range(len(tasks)), key=lambda index: tasks[index].level is None):
        task = tasks[index]
        gains = cast("Gains | None", task.measure.param("gains"))
        family = (task.labels, bool(task.measure.param("judged_only")), gains)
        level = levels.get(family, 1) if task.level is None else task.level
        levels.setdefault(family, level)
        members[*family, level].append(index)
    return members


def _with_gains(qrels: Qrels, gains: Mapping[int, int]) -> Qrels:
    return {
        query_id: {passage: gains.get(label, label) for passage, label in labels.items()}
        for query_id, labels in qrels.items()
    }


def _cut_rank(measure: Measure, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if measure.name != "RR" or measure.cutoff is None:
        return values
    return np.where(values >= 1 / measure.cutoff, values, 0.0)


def ir_measure(measure: Measure) -> Any:
    """Return the ir_measures object of a measure.

    Constructed here because the ir_measures parser needs parts of `ast` that newer Pythons have
    removed.
    """
    import ir_measures

    kind = getattr(ir_measures, "NumRet" if measure.name == "NumRelRet" else measure.name)
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
    """Return ir_measures values, systems x queries; `qrels` are (query, passage, label, subtopic).

    Raises:
        InputError: ir_measures cannot compute the measure, or a required package is missing.
    """
    import ir_measures

    if measure.kind.subtopics and find_spec("pyndeval") is None:
        raise InputError(
            f"the diversity measure {measure} needs pyndeval",
            hint=f"Install it: {install_command('diversity')}",
        )
    column = {query_id: index for index, query_id in enumerate(query_ids)}
    values: list[NDArray[np.float64]] = []
    try:
        # A bank of one item is valid, but ir_measures would print a warning.
        with contextlib.redirect_stderr(io.StringIO()):
            evaluator = ir_measures.evaluator(
                [ir_measure(measure)], [ir_measures.Qrel(*qrel) for qrel in qrels]
            )
        for run in runs:
            values.append(np.zeros(len(query_ids)))
            for result in evaluator.iter_calc(run) if run else ():
                values[-1][column[result.query_id]] = result.value
    except (ValueError, RuntimeError, AssertionError, ArithmeticError, OSError) as error:
        raise InputError(f"ir_measures cannot compute {measure}", hint=str(error)) from error
    return np.array(values).reshape(len(values), len(query_ids))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Labels along the rankings, systems x ranks (0 after the end of a ranking).

    `judged` marks passages with a label, `lengths` is the number of passages per system, `labels`
    are those of all labelled passages.
    """

    along: NDArray[np.float64]
    judged: NDArray[np.bool_]
    lengths: NDArray[np.intp]
    labels: NDArray[np.float64]


LabelFormula = Callable[[Measure, _Ranked, int, int], Floats]


def label_formula(measure: Measure) -> LabelFormula | None:
    """Return the built-in formula of a measure, or None."""
    if measure.name == "nDCG":
        exponential = measure.param("dcg") == "exp-log2" and len(measure.params) == 1
        return _exponential_ndcg if exponential else None
    if measure.name == "P" and measure.param("judged_only"):
        return None
    return _FORMULAS.get(measure.name)


def label_scores(
    formula: LabelFormula,
    measure: Measure,
    one: RankedExam,
    labels: Labels,
    level: int,
    highest: int,
) -> Floats:
    """Return the values of all systems on one query; 0 if a system returned nothing."""
    depth = measure.cutoff
    layout = one.layout
    read = slice(None) if depth is None else layout.position < depth
    system, position, passages = layout.system[read], layout.position[read], layout.passages[read]
    shape = (len(layout.answered), int(position.max(initial=-1)) + 1)
    along = np.zeros(shape)
    along[system, position] = labels[passages]
    judged = np.zeros(shape, np.bool_)
    judged[system, position] = one.graded[passages]
    lengths = np.bincount(system, minlength=shape[0])
    ranked = _Ranked(along, judged, lengths, labels[one.graded].astype(np.float64))
    return formula(measure, ranked, level, highest)


def _judged(_measure: Measure, ranked: _Ranked, _level: int, _highest: int) -> Floats:
    """Return the share of the first k passages that have a label."""
    share: Floats = ranked.judged.sum(axis=1) / np.maximum(ranked.lengths, 1)
    return share


def _precision(measure: Measure, ranked: _Ranked, level: int, _highest: int) -> Floats:
    """Return the number of relevant passages among the first k, over k, as in trec_eval."""
    share: Floats = (ranked.judged & (ranked.along >= level)).sum(axis=1) / (measure.cutoff or 1)
    return share


def _rbp(measure: Measure, ranked: _Ranked, level: int, _highest: int) -> Floats:
    """Return (1 - p) * the sum of p^(i-1) over the ranks i of relevant passages; p = 0.8."""
    p = measure.param("p")
    p = p if isinstance(p, float) else 0.8
    relevant = ranked.judged & (ranked.along >= level)
    return relevant @ ((1 - p) * p ** np.arange(relevant.shape[1]))


def _err(_measure: Measure, ranked: _Ranked, _level: int, highest: int) -> Floats:
    """Return the expected reciprocal rank; a label g stops the reader with (2^g - 1) / 2^highest.

    `highest` is the highest label of the scale; gdeval assumes 4 and rejects higher labels.
    """
    stops = (2 ** np.maximum(ranked.along, 0) - 1) / 2.0**highest
    reached = np.ones_like(stops)
    reached[:, 1:] = np.cumprod(1 - stops, axis=1)[:, :-1]
    return (stops * reached) @ (1 / np.arange(1, stops.shape[1] + 1))


def _exponential_ndcg(measure: Measure, ranked: _Ranked, _level: int, _highest: int) -> Floats:
    """Return nDCG with gains 2^g - 1 over log2(rank + 1)."""
    ideal = np.sort(ranked.labels)[::-1][: measure.cutoff]
    best = _dcg(ideal[None, :])[0]
    return _dcg(ranked.along) / best if best > 0 else np.zeros(len(ranked.along))


def _dcg(labels: Floats) -> Floats:
    gains = 2 ** np.maximum(labels, 0) - 1
    return gains @ (1 / np.log2(np.arange(2, labels.shape[1] + 2)))


_FORMULAS: Mapping[str, LabelFormula] = {
    "Judged": _judged,
    "P": _precision,
    "RBP": _rbp,
    "ERR": _err,
}
"""Measures on labels that are computed here: their provider is not installed by default, assumes a
scale or is much slower (P), or they are `exampp_only`.
"""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """One system's ranking for one query, or for one `subtopic` of it ("": the whole query).

    Attributes:
        passage_ids: Returned passages, best first, up to the cutoff.
        ratings: Passages x items; NaN for a cell without a grade.
        judgments: One number per passage; NaN for an unjudged passage.
        item_ids: Ids of the items.
        weights: Weights of the items.
        pool_ids: All passages of the query, from any system, in no particular order.
        pool_ratings: Their ratings.
        pool_judgments: Their judgments.
        lowest: Lowest rating of the scale.
        highest: Highest rating of the scale.
        threshold: Lowest rating that counts (see `min_rating`); None if the measure declares none.
        cutoff: The number after the @, or None.

    Arrays are read-only.
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
        """The lowest rating that counts; raises InputError if the measure declares no threshold."""
        if self.threshold is None:
            raise InputError(
                "it reads min_rating, but declares no threshold",
                hint="Declare it with threshold=True",
            )
        return self.threshold


QueryFunction = Callable[[RankedQuery], float | None]


def measure(
    name: str, *, cutoff: bool = True, threshold: bool = False, share: bool = False
) -> Callable[[QueryFunction], Measure]:
    """Register a function as the measure `name`, for use in every analysis, plot and command.

    The function gets a `RankedQuery` and returns a number, or None if the query does not count for
    this system. Returns the measure, which can be used in a list of measures; `.cut(10)` is the
    same at 10 passages.

    Args:
        name: Name of the measure.
        cutoff: The measure can be written `NAME@k`.
        threshold: The function reads `min_rating`.
        share: Its values are from 0 to 1.

    Raises:
        InputError: The name is invalid or taken.
    """
    if callable(name):
        raise InputError("a measure needs a name", hint='Declare it: exampp.measure("Name")')
    is_name = isinstance(name, str) and _NAME.fullmatch(name)
    if not is_name or name in ALIASES or name in TREC_NAMES:
        raise InputError(
            f"invalid measure name {name!r}",
            hint="Use letters, digits and _, and a new name",
        )

    def declare(formula: QueryFunction) -> Measure:
        at = "cutoff" if cutoff else ""
        kind = MeasureKind(at=at, threshold=threshold, share=share, formula=formula)
        MEASURES.add(name, kind, str(vars(formula).get("__module__", formula.__module__)))
        return Measure(name)

    return declare


def declared_scores(
    formula: QueryFunction, task: MeasureTask, ranked: RankedExams, grader: GraderIdentity
) -> NDArray[np.float64]:
    """Return the values of a custom measure, systems x queries; NaN if a query does not count.

    Raises:
        InputError: The function fails, or returns something other than a number.
    """
    table = np.zeros((len(ranked.systems), len(ranked.exams)))
    for column, one in enumerate(ranked.exams):
        for row, query in enumerate(_queries(task, one, ranked.systems, grader)):
            table[row, column] = _value(formula, task.measure, query)
    return table


def _queries(
    task: MeasureTask, one: RankedExam, systems: tuple[str, ...], grader: GraderIdentity
) -> Iterator[RankedQuery]:
    exam, query = one.exam, one.exam.query
    pool = RankedQuery(
        query.query_id,
        exam.subtopic_id,
        system="",
        passage_ids=(),
        ratings=np.zeros((0, len(exam.items))),
        judgments=np.zeros(0),
        item_ids=tuple(query.item_ids[item] for item in exam.items),
        weights=_fixed(query.weights[exam.items]),
        pool_ids=query.passage_ids,
        pool_ratings=_with_gaps(query.ratings[:, exam.items]),
        pool_judgments=_with_gaps(query.judgments[exam.subtopic]),
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


def _with_gaps(values: NDArray[np.int16]) -> NDArray[np.float64]:
    return _fixed(np.where(values == MISSING, np.nan, values.astype(np.float64)))


def _fixed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a read-only copy of the values, so that a custom function cannot change them."""
    fixed = values.copy()
    fixed.flags.writeable = False
    return fixed


def _value(formula: QueryFunction, requested: Measure, query: RankedQuery) -> float:
    try:
        result: Any = formula(query)
    except InputError as error:
        raise _invalid_value_error(requested, query, f"failed: {error}") from error
    except (Exception, SystemExit) as error:
        # a custom measure may raise anything
        raise _invalid_value_error(requested, query, f"failed: {describe_error(error)}") from error
    if result is None:
        return np.nan
    number = result.item() if isinstance(result, np.ndarray) and result.ndim == 0 else result
    if isinstance(number, bool | np.bool_) or not isinstance(number, Real):
        raise _invalid_value_error(requested, query, f"returned {result!r}, which is not a number")
    try:
        value = float(number)
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise _invalid_value_error(requested, query, f"returned {value}")
    if requested.kind.share and not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise _invalid_value_error(
            requested,
            query,
            f"returned {value:g}, but is declared as a share from 0 to 1",
            "Return a share, or declare the measure with share=False",
        )
    return min(max(value, 0.0), 1.0) if requested.kind.share else value


_ROUNDING = 1e-9
"""Tolerance of shares beyond 0 and 1, for rounding."""


def _invalid_value_error(
    requested: Measure,
    query: RankedQuery,
    what: str,
    hint: str = "Return a number, or None if the query does not count",
) -> InputError:
    where = f"{query.query_id}/{query.subtopic}" if query.subtopic else query.query_id
    return InputError(
        f"the measure {requested} {what} (query {where!r}, system {query.system!r}, "
        f"{len(query.passage_ids)} passages)",
        hint=hint,
    )
