"""The main path: one collection, one short method per stage, in order.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.evaluate(min_rating=4).to_polars())
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from exampp.errors import InputError
from exampp.evaluate.cover import Missing
from exampp.evaluate.exams import FacetChoice
from exampp.evaluate.external import with_runs
from exampp.evaluate.leaderboard import Leaderboard, evaluate
from exampp.evaluate.policy import POLICIES
from exampp.evaluate.qrels import Labelling, qrels
from exampp.formats import bank as bank_format
from exampp.formats import plain_bank
from exampp.formats import qrels as qrels_format
from exampp.formats import runs as runs_format
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped, existing_file, refuse
from exampp.formats.workbench_gradebook import WorkbenchGrades, read_grades
from exampp.grade.graders import make_grading
from exampp.grade.run import GradingRun, Progress
from exampp.grade.status import grading_status
from exampp.inputs.exporting import EXPORTS, export
from exampp.inputs.importing import UNKNOWN_PASSAGES, Importer, ImportReport, import_files
from exampp.records import BankEntry, GraderIdentity, Judgment
from exampp.records.choosing import choose_grader, label
from exampp.records.gradebook import Gradebook
from exampp.report.table import Table, Value
from exampp.store.bank import MAIN_BANK, QUERY_BANK, Edit, bank_names
from exampp.store.cells import DEPTH, Exam
from exampp.store.connection import connect, is_collection
from exampp.store.gradebook import read_gradebook
from exampp.store.grades import graders
from exampp.store.inputs import counts

DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")
DEFAULT_MIN_RATING = 4


class Collection:
    """One exam: inputs, bank, grades and decisions in one SQLite file.

    Opens an existing collection; `Collection.create` makes one. Use it as a context manager, or
    call `close`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = connect(self.path)

    @classmethod
    def create(cls, path: str | Path, *, exist_ok: bool = False) -> Self:
        """Make an empty collection and open it; `exist_ok` opens one that exists."""
        path = Path(path)
        if path.exists() and path.stat().st_size and not exist_ok:
            raise InputError("exists already", file=path, mend="Choose another name")
        connect(path, create=True).close()
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything committed is on disk."""
        self._connection.close()

    # ---- inputs and bank ------------------------------------------------------------------------

    def import_files(
        self,
        *files: str | Path,
        kind: str | None = None,
        bank: str = MAIN_BANK,
        on_error: str = "refuse",
        unknown_passages: str = "error",
        author: str | None = None,
    ) -> ImportReport:
        """Bring files in, all of them or none; what a file is, is told from its content.

        `kind` says what the files are where it cannot be told. `on_error="skip"` leaves bad lines
        out and counts them. `unknown_passages="keep"` takes ranked passages without a text.
        Raises InputError for anything malformed; the collection then is as it was.
        """
        if unknown_passages not in UNKNOWN_PASSAGES:
            raise InputError(f"unknown_passages is one of {', '.join(UNKNOWN_PASSAGES)}")
        skipped = Skipped() if on_error == "skip" else None
        importer = Importer(
            self._connection,
            Edit(author or _user(), "import", _now()),
            bank,
            skipped or refuse,
            unknown_passages,
        )
        report = import_files(importer, [Path(file) for file in files], kind)
        return report if skipped is None else report.with_skipped(skipped.count, skipped.first)

    def export(self, path: str | Path, kind: str = "workbench", *, bank: str | None = None) -> int:
        """Write the collection as a file of `kind`; returns the number of records written."""
        if kind not in EXPORTS:
            raise InputError(f"cannot export {kind!r}", mend=f"Known: {', '.join(EXPORTS)}")
        return export(self._connection, Path(path), kind, bank)

    def contents(self) -> Table:
        """How many of each thing the collection holds."""
        rows = [(name, count) for name, count in counts(self._connection).items()]
        return Table.of(["thing", "count"], rows)

    # ---- grading --------------------------------------------------------------------------------

    def grading(
        self,
        grader: str,
        *,
        kind: str = "question",
        bank: str | None = None,
        depth: int = DEPTH,
        only_failed: bool = False,
    ) -> GradingRun:
        """A grading run that is planned but not started: iterate over its `steps`."""
        grading = make_grading(grader, kind)
        return GradingRun(
            connection=self._connection,
            grader=grading.grader,
            identity=grading.identity,
            read=grading.read,
            exam=Exam(kind, self._bank(bank, kind), depth),
            only_failed=only_failed,
        )

    def grade(
        self,
        grader: str,
        *,
        kind: str = "question",
        bank: str | None = None,
        depth: int = DEPTH,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Progress:
        """Grade everything that is due; continues where an earlier call stopped."""
        run = self.grading(grader, kind=kind, bank=bank, depth=depth)
        for progress in run.steps():
            if on_progress:
                on_progress(progress)
        return progress

    def status(self) -> Table:
        """Per grader and bank: cells graded, due, and tried without a grade, by reason."""
        rows: list[tuple[Value, ...]] = []
        states = ("graded", "unparsed", "refused", "truncated", "failed")
        for one in grading_status(self._connection):
            cells = [one.states.get(state, 0) for state in states]
            rows.append((label(one.grader), one.bank or "queries", one.due, *cells))
        return Table.of(["grader", "bank", "due", *states], rows)

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""
        return tuple(stored.identity for stored in graders(self._connection))

    # ---- reading --------------------------------------------------------------------------------

    def gradebook(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
    ) -> Gradebook:
        """The grades of the one grader that fits, as arrays."""
        stored = graders(self._connection)
        chosen = choose_grader(
            [s.identity for s in stored], grader=grader, prompt=prompt, kind=kind
        )
        key = next(s for s in stored if s.identity == chosen)
        return read_gradebook(self._connection, key, self._bank(bank, chosen.kind))

    def evaluate(
        self,
        measures: Sequence[str] = DEFAULT_MEASURES,
        *,
        min_rating: int | Sequence[int] | None = None,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        runs: Sequence[str | Path] = (),
        facets: FacetChoice = "auto",
        missing: Missing = "zero",
        labelling: Labelling | None = None,
        compat: str = "exam",
    ) -> Leaderboard:
        """The leaderboard of all systems under some measures at one or several thresholds.

        `measures` are Cover, nCover and whatever ir_measures knows. `min_rating` is the lowest
        rating that counts as an answer: by default 4, or the highest of a shorter scale. `runs`
        are run files to be evaluated in place of the collection's own. The other options are
        those of `exampp.evaluate.leaderboard.evaluate`.
        """
        book = self.gradebook(grader=grader, prompt=prompt, kind=kind, bank=bank)
        return evaluate_gradebook(
            book,
            measures,
            min_rating,
            runs=runs,
            facets=facets,
            missing=missing,
            labelling=labelling,
            compat=compat,
        )

    def _bank(self, name: str | None, kind: str) -> str:
        """The bank meant: the one named, or the only one that has items of this kind."""
        if kind == "query":
            return QUERY_BANK
        known = bank_names(self._connection, kind)
        if name is not None and name in known:
            return name
        if name is None and len(known) == 1:
            return known[0]
        if not known:
            raise InputError(
                f"the collection has no {kind}s to grade against",
                file=self.path,
                mend="Import a bank: exampp import",
            )
        raise InputError(
            f"which bank? This collection has {', '.join(known)} with {kind}s",
            file=self.path,
            mend="Name one with --bank",
        )


class Workbench:
    """A file of graded passages, read in place of a collection; nothing is written.

    `bank` is a bank file to evaluate on; without one the bank is what was graded.
    """

    def __init__(self, path: str | Path, on_error: str = "refuse") -> None:
        self.path = existing_file(path)
        self.skipped = Skipped()
        self._grades: WorkbenchGrades = read_grades(
            self.path, self.skipped if on_error == "skip" else refuse
        )

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""
        return self._grades.graders

    def gradebook(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
    ) -> Gradebook:
        """The grades of the one grader that fits, as arrays."""
        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        if bank is None:
            return self._grades.gradebook(chosen)
        return self._grades.gradebook(chosen, read_bank_file(bank), Path(bank).name)


def open_grades(path: str | Path, on_error: str = "refuse") -> Collection | Workbench:
    """A collection or a workbench file, whichever the path holds: what reading commands take."""
    if is_collection(path):
        return Collection(path)
    if detect(existing_file(path)) != "workbench":
        raise InputError("is neither a collection nor a file of graded passages", file=path)
    return Workbench(path, on_error)


def evaluate_gradebook(
    book: Gradebook,
    measures: Sequence[str] = DEFAULT_MEASURES,
    min_rating: int | Sequence[int] | None = None,
    *,
    runs: Sequence[str | Path] = (),
    facets: FacetChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    compat: str = "exam",
) -> Leaderboard:
    """The leaderboard of a gradebook, on its own rankings or on run files."""
    if compat not in POLICIES:
        raise InputError(f"no compatibility mode {compat!r}", mend=f"Known: {', '.join(POLICIES)}")
    if runs:
        book = with_runs(book, read_run_files(runs)).gradebook
    if min_rating is None:
        min_rating = min(DEFAULT_MIN_RATING, book.grader.highest)
    thresholds = [min_rating] if isinstance(min_rating, int) else list(min_rating)
    return evaluate(
        book,
        measures,
        thresholds,
        facets=facets,
        missing=missing,
        labelling=labelling,
        policy=POLICIES[compat],
    )


def write_qrels(
    book: Gradebook,
    path: str | Path,
    labelling: Labelling | None = None,
    min_rating: int | None = None,
    *,
    by_subtopic: bool = False,
) -> int:
    """Write EXAM-Qrels, `query 0 passage label`, of all graded passages; returns how many.

    Labels that depend on a threshold take `min_rating`. In qrels from draft grades the second
    column, which no tool reads, says `draft`.
    """
    labelling = labelling or Labelling()
    if min_rating is None:
        min_rating = min(DEFAULT_MIN_RATING, book.grader.highest)
    rows = [
        Judgment(row.query_id, row.passage_id, row.label)
        for row in qrels(book, labelling, min_rating, by_subtopic=by_subtopic)
    ]
    qrels_format.write(path, rows, iteration="draft" if book.grader.is_draft else "0")
    return len(rows)


def read_run_files(paths: Sequence[str | Path]) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """Run files as system -> query -> (passage, score)."""
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for path in paths:
        for ranked in runs_format.read(path):
            run = found.setdefault(ranked.system, {})
            run.setdefault(ranked.query_id, []).append((ranked.passage_id, ranked.score))
    return found


def read_bank_file(path: str | Path) -> list[BankEntry]:
    """The entries of a bank file, workbench or written by hand."""
    readers = {"bank": bank_format.read, "plain-bank": plain_bank.read}
    kind = detect(existing_file(path))
    if kind not in readers:
        raise InputError(f"is no bank but {kind}", file=path)
    return list(readers[kind](path))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
