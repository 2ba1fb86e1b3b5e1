"""Exam measures as objects of ir_measures, for `iter_calc` and PyTerrier.

    from exampp.integrations.ir_measures import Cover
    ir_measures.calc_aggregate([Cover("my.exam") @ 20, nDCG @ 10], qrels, run)

The grades come from the exam and the ranking from the run; the qrels passed to ir_measures are
ignored. Queries that a run does not answer count 0, queries without an exam are skipped, as in
`Grades.evaluate`. Importing this module registers the provider that computes them.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures import Measure, ParamInfo, registry
from ir_measures.util import Metric, Qrel, QrelsConverter, RunConverter

from exampp.collection import Collection
from exampp.collection import open as open_exam
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.names import parse_measure
from exampp.measures.qrels import Labelling
from exampp.measures.qrels import exam_labels as labels_of
from exampp.measures.rankings import ScoredPassage, with_runs
from exampp.measures.values import MeasureColumn
from exampp.records.wording import counted

Exam = Grades | Collection | str | Path
"""Grades, or a source of one grader's grades on one bank: a collection, a graded file, its path."""


class ExamMeasure(Measure):
    """A measure that reads the grades of an exam: `@` sets its cutoff.

    It prints in exampp notation, `Cover@20` or `Cover(min_rating=3)@20`; with a second exam in the
    same process the name includes the exam, so that columns have distinct names.
    """

    SUPPORTED_PARAMS = {  # noqa: RUF012
        "min_rating": ParamInfo(dtype=int, default=None),
        "exam": ParamInfo(dtype=str, default=None),
        "cutoff": ParamInfo(dtype=int),
    }

    def __init__(self, grades: Grades, name: str, **params: Any) -> None:
        super().__init__(**params)
        self.grades = grades
        self.measure = name
        # the name must differ from those of ir_measures
        self.NAME = self.__name__ = f"Exam{name}" if name in registry else name

    def __call__(self, **params: Any) -> ExamMeasure:
        """Return the same measure with other parameters."""
        return ExamMeasure(self.grades, self.measure, **{**self.params, **params})

    def column(self, run: Mapping[str, Sequence[ScoredPassage]]) -> MeasureColumn:
        """Return the values of a run: query to (passage, score)."""
        cutoff = self.params.get("cutoff")
        measures = parse_measure(self.measure if cutoff is None else f"{self.measure}@{cutoff}")
        book = with_runs(self.grades.gradebook, {"run": run})
        min_rating = self.params.get("min_rating")
        return evaluate_gradebook(book, [measures], min_rating).columns[0]


def exam_measure(exam: Exam, name: str, *, min_rating: int | None = None) -> ExamMeasure:
    """Return any measure of exampp by its name without a cutoff, such as `nDCG` or `NuggetVital`.

    A measure that ir_measures has, too, is computed from EXAM-Qrels and prints as `ExamnDCG@10`.
    `min_rating` is the lowest rating that counts as an answer, by default 4 of 0-5.

    Raises:
        InputError: The measure is unknown, or the exam has no grades or several graders.
    """
    try:
        parse_measure(f"{name}@1")
    except InputError:
        # it has no cutoff, or it is unknown
        parse_measure(name)
    grades = _grades(exam)
    label = _label(grades)
    params = {"min_rating": min_rating, "exam": label}
    return ExamMeasure(grades, name, **{key: at for key, at in params.items() if at is not None})


def Cover(exam: Exam, *, min_rating: int | None = None) -> ExamMeasure:  # noqa: N802
    """EXAM-Cover: the share of the bank covered by the passages up to the cutoff."""
    return exam_measure(exam, "Cover", min_rating=min_rating)


def nCover(exam: Exam, *, min_rating: int | None = None) -> ExamMeasure:  # noqa: N802
    """EXAM-Cover relative to what the pool covers."""
    return exam_measure(exam, "nCover", min_rating=min_rating)


def qrels(exam: Exam, *, min_rating: int | None = None) -> list[Qrel]:
    """Return EXAM-Qrels for the measures of ir_measures: a passage's best rating is its label.

    The list can be passed to `ir_measures` or `pandas.DataFrame(...)`.
    """
    book = _grades(exam).gradebook
    rows = labels_of(book, Labelling(), min_rating)
    return [Qrel(row.query_id, row.passage_id, row.label) for row in rows]


_SEEN: dict[tuple[str, ...], str | None] = {}


def _grades(exam: Exam) -> Grades:
    if isinstance(exam, Grades):
        return exam
    source = open_exam(exam) if isinstance(exam, str | Path) else exam
    return source.grades()


def _label(grades: Grades) -> str | None:
    """Return a suffix that distinguishes an exam from the first one in this process, or None."""
    key = (
        str(Path(grades.path).resolve()),
        grades.grader.key,
        str(grades.gradebook.bank_label),
    )
    if key not in _SEEN:
        stem, earlier = Path(grades.path).stem, set(_SEEN.values())
        others = (f"{stem}-{number}" for number in range(2, len(earlier) + 3))
        free = next(name for name in (stem, *others) if name not in earlier)
        _SEEN[key] = free if _SEEN else None
    return _SEEN[key]


class _Evaluator(providers.Evaluator):
    def __init__(self, measures: Iterable[Measure], judged: Iterable[Qrel]) -> None:
        self._wanted = [one for one in measures if isinstance(one, ExamMeasure)]
        self._judged = {str(one.query_id) for one in judged}
        # all queries of the exam count, regardless of the qrels
        super().__init__(self._wanted, ())

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        scored: defaultdict[str, list[ScoredPassage]] = defaultdict(list)
        for one in RunConverter(run).as_namedtuple_iter():
            scored[str(one.query_id)].append((str(one.doc_id), float(one.score)))
        for by_query in self._wanted:
            column = by_query.column(scored)
            (values,), (counts,) = column.values.values, column.values.counts
            of_exam = {
                query for query, valid in zip(column.query_ids, counts, strict=True) if valid
            }
            _warn_of_queries(by_query, self._judged - of_exam, of_exam - self._judged)
            for query_id, value, valid in zip(column.query_ids, values, counts, strict=True):
                if valid:
                    yield Metric(query_id=query_id, measure=by_query, value=float(value))


def _warn_of_queries(measure: ExamMeasure, left_out: set[str], added: set[str]) -> None:
    """Warn if exam and qrels have different queries, because the means then differ, too."""
    differences = [
        f"{counted(len(queries), 'query')} {what} ({', '.join(sorted(queries)[:5])}"
        f"{' ...' if len(queries) > 5 else ''})"
        for queries, what in (
            (left_out, "of the qrels have no graded exam and are skipped"),
            (added, "of the exam are missing in the qrels and count"),
        )
        if queries
    ]
    if differences:
        warnings.warn(
            f"{measure}: {'; '.join(differences)}. pt.Experiment needs the same queries for all "
            "measures: pass topics and qrels of the exam's queries",
            stacklevel=2,
        )


class _Provider(providers.Provider):
    NAME = "exampp"

    def supports(self, measure: Measure) -> bool:
        return isinstance(measure, ExamMeasure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> _Evaluator:
        return _Evaluator(measures, QrelsConverter(qrels).as_namedtuple_iter())

    def run_inputs(self, _: object) -> list[str]:
        return ["query_id", "doc_id", "score"]

    def qrel_inputs(self, _: object) -> list[str]:
        return ["query_id"]


if not any(isinstance(one, _Provider) for one in ir_measures.DefaultPipeline.providers):
    ir_measures.DefaultPipeline.providers.insert(0, providers.register(_Provider()))
