"""Exam measures as objects of ir_measures, for `iter_calc` and PyTerrier.

    from exampp.integrations.ir_measures import Cover
    ir_measures.calc_aggregate([Cover("my.exam") @ 20, nDCG @ 10], qrels, run)
    ir_measures.parse_measure("Cover(exam='my.exam')@20")

The grades come from the exam and the ranking from the run; the qrels passed to ir_measures are
ignored. Queries that a run does not answer count 0, queries without an exam are skipped, as in
`Grades.evaluate`. Importing this module registers the provider that computes them, and
`python -m exampp.integrations.ir_measures` is the command of ir_measures with these measures.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import ir_measures
from ir_measures import providers
from ir_measures.measures import Measure, ParamInfo, SumAgg, registry
from ir_measures.util import Metric, Qrel, QrelsConverter, RunConverter

from exampp.collection import Collection
from exampp.collection import open as open_exam
from exampp.errors import ExamError, InputError
from exampp.grades.grades import Grades
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.names import KINDS, MEASURES, MeasureKind, parse_measure
from exampp.measures.names import Measure as NamedMeasure
from exampp.measures.qrels import Labelling
from exampp.measures.qrels import exam_labels as labels_of
from exampp.measures.rankings import ScoredPassage, with_runs
from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import DecisionChoice, Gradebook
from exampp.records.wording import counted
from exampp.store.connection import is_graded_file

Exam = Grades | Collection | str | Path
"""Grades, or a source of one grader's grades on one bank: a collection, a graded file, its path."""
DEFAULT_EXAM = "EXAMPP_EXAM"
"""The variable of the environment with the exam of a measure that names none."""


class ExamSource(NamedTuple):
    """The source of the grades of a measure, to read them in another process."""

    path: str
    grader: str | None = None
    bank: str | None = None
    part: str | None = None
    decisions: DecisionChoice = "with"

    def read(self, grades: Grades | None = None) -> Gradebook:
        """Return the grades; the file is read again only if it changed."""
        state = [_state(Path(f"{self.path}{end}")) for end in ("", "-wal")]
        if grades is not None:
            _READ[self] = state, grades.gradebook
        elif self not in _READ or _READ[self][0] != state:
            with open_exam(self.path) as exam:
                chosen = exam.grades(
                    self.grader, bank=self.bank, part=self.part, decisions=self.decisions
                )
                _READ[self] = state, chosen.gradebook
        return _READ[self][1]


def _state(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return None


_READ: dict[ExamSource, tuple[object, Gradebook]] = {}
_NAMED: dict[str | None, ExamSource] = {}
"""The exams of this process by the name that measures show; None for the first one."""
_OURS = ("min_rating", "exam", "grader", "bank")


class ExamMeasure(Measure):
    """A measure that reads the grades of an exam: `@` sets its cutoff.

    It prints in exampp notation, `Cover@20` or `Cover(min_rating=3)@20`; with a second exam in the
    same process the name includes the exam, so that columns have distinct names. Written by hand,
    `exam` may be a path, and `grader` and `bank` name what is read there.
    """

    measure: ClassVar[str] = ""
    kind: ClassVar[MeasureKind] = MeasureKind()

    @property
    def named(self) -> NamedMeasure:
        """Return the measure as exampp knows it."""
        params = {key: _pairs(value) for key, value in self.params.items() if key not in _OURS}
        return NamedMeasure(self.measure, params.pop(self.AT_PARAM, None), tuple(params.items()))

    @property
    def source(self) -> ExamSource:
        """Return the exam that the measure reads.

        Raises:
            InputError: The measure names no exam, and this process has used none.
        """
        name = self.params.get("exam")
        chosen = {key: self.params[key] for key in ("grader", "bank") if key in self.params}
        if name in _NAMED:
            return _NAMED[name]._replace(**chosen)
        if path := name or os.environ.get(DEFAULT_EXAM):
            return ExamSource(str(Path(path).resolve()), **chosen)
        hint = f"Write {self.NAME}(exam='my.exam'), or set {DEFAULT_EXAM} to its path"
        raise InputError(f"{self} names no exam", hint=hint)

    def aggregator(self) -> Any:
        """Return how the values of queries become one: a mean, or a sum for counts."""
        return SumAgg() if self.kind.added else super().aggregator()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the name, the parameters and the exam: another process reads the exam again."""
        found = None
        with suppress(InputError):
            found = self.source
        return _restored, (self.measure, self.params, found)


def _pairs(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, dict) else value


def _restored(name: str, params: dict[str, Any], source: ExamSource | None) -> ExamMeasure:
    if source is not None and _NAMED.setdefault(params.get("exam"), source) != source:
        params = {**params, "exam": _name_of(source)}
    return _measure_class(name)(**params)


def _measure_class(name: str) -> type[ExamMeasure]:
    """Return the class of a measure; its name differs from those of ir_measures."""
    kind = MEASURES.get(name) or parse_measure(name).kind
    shown = name if kind.exampp_only or kind.formula else f"Exam{name}"
    at = kind.at or "cutoff"
    fields = {
        "NAME": shown,
        "__name__": shown,
        "measure": name,
        "kind": kind,
        "AT_PARAM": at,
        "SUPPORTED_PARAMS": {
            "min_rating": ParamInfo(dtype=int, default=None),
            **{key: ParamInfo(dtype=str, default=None) for key in ("exam", "grader", "bank")},
            **{key: ParamInfo(dtype=_NUMBERS.get(one, one)) for key, one in kind.params.items()},
            at: ParamInfo(dtype=_NUMBERS[float] if at == "recall" else int),
        },
    }
    return type(shown, (ExamMeasure,), fields)


_NUMBERS: dict[type, Any] = {float: (int, float)}


def exam_measure(exam: Exam, name: str, *, min_rating: int | None = None) -> ExamMeasure:
    """Return any measure of exampp, such as `nDCG`, `NuggetVital` or `RBP(p=0.8)`.

    A measure that ir_measures has, too, is computed from EXAM-Qrels and prints as `ExamnDCG@10`.
    `min_rating` is the lowest rating that counts as an answer, by default 4 of 0-5.

    Raises:
        InputError: The measure is unknown, or the exam has no grades or several graders.
    """
    at = None
    try:
        # many need a cutoff, which `@` sets later
        written = parse_measure(f"{name}@1")
    except InputError:
        written = parse_measure(name)
        at = written.at
    made = _measure_class(written.name)
    params = {
        **{key: dict(v) if isinstance(v, tuple) else v for key, v in written.params},
        "min_rating": min_rating,
        "exam": _name_of(_source(exam)),
        made.AT_PARAM: at,
    }
    return made(**{key: value for key, value in params.items() if value is not None})


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
    rows = labels_of(_source(exam).read(), Labelling(), min_rating)
    return [Qrel(row.query_id, row.passage_id, row.label) for row in rows]


def _source(exam: Exam) -> ExamSource:
    if isinstance(exam, str | Path):
        with open_exam(exam) as opened:
            return _source(opened)
    grades = exam if isinstance(exam, Grades) else exam.grades()
    bank = grades.choice.get("bank") or grades.bank_name or None
    if bank is not None and is_graded_file(grades.connection):
        bank = str(Path(bank).resolve())
    source = ExamSource(
        str(Path(grades.path).resolve()),
        grades.grader.key,
        bank,
        grades.part,
        "with" if grades.with_decisions else "without",
    )
    source.read(grades)
    return source


def _name_of(source: ExamSource) -> str | None:
    """Return the name that distinguishes an exam from the first one in this process, or None."""
    if source not in _NAMED.values():
        stem = Path(source.path).stem
        others = (f"{stem}-{number}" for number in range(2, len(_NAMED) + 3))
        free = next(name for name in (stem, *others) if name not in _NAMED)
        _NAMED[free if _NAMED else None] = source
    return next(name for name, known in _NAMED.items() if known == source)


class _Evaluator(providers.Evaluator):
    def __init__(self, measures: Iterable[Measure], judged: Iterable[Qrel]) -> None:
        self._wanted = defaultdict[tuple[ExamSource, int | None], list[ExamMeasure]](list)
        mine = [one for one in measures if isinstance(one, ExamMeasure)]
        for one in mine:
            self._wanted[one.source, one.params.get("min_rating")].append(one)
        self._books = {source: source.read() for source, _ in self._wanted}
        self._judged = {str(one.query_id) for one in judged}
        # all queries of the exam count, regardless of the qrels
        super().__init__(mine, ())

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        scored: defaultdict[str, list[ScoredPassage]] = defaultdict(list)
        for one in RunConverter(run).as_namedtuple_iter():
            scored[str(one.query_id)].append((str(one.doc_id), float(one.score)))
        books = {source: with_runs(book, {"run": scored}) for source, book in self._books.items()}
        for (source, min_rating), wanted in self._wanted.items():
            named = list(dict.fromkeys(one.named for one in wanted))
            board = evaluate_gradebook(books[source], named, min_rating)
            columns = dict(zip(named, board.columns, strict=True))
            for measure in wanted:
                yield from self._values(measure, columns[measure.named])

    def _values(self, measure: ExamMeasure, column: MeasureColumn) -> Iterator[Metric]:
        (values,), (counts,) = column.values.values, column.values.counts
        rows = list(zip(column.query_ids, values, counts, strict=True))
        of_exam = {query for query, _, valid in rows if valid}
        _warn_of_queries(measure, self._judged - of_exam, of_exam - self._judged)
        for query_id, value, valid in rows:
            if valid:
                yield Metric(query_id=query_id, measure=measure, value=float(value))


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

for _name in KINDS:
    _made = _measure_class(_name)
    registry[_made.NAME] = _made()


if __name__ == "__main__":
    from ir_measures.__main__ import main_cli

    try:
        main_cli()
    except ExamError as _error:
        sys.exit(f"ir_measures: {_error}")
