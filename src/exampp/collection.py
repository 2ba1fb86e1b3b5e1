"""The main path: one collection, one short method per stage, in order.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.evaluate(min_rating=4).to_polars())
"""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from exampp.analyzing import check_decisions, check_lists
from exampp.banking import Banking
from exampp.errors import InputError
from exampp.formats.lines import Skipped, refuse
from exampp.formats.output import keep_inputs
from exampp.formats.workbench_graders import scale_note
from exampp.grade.graders import (
    called,
    check_answers_of,
    default_prompt,
    join,
    make_grading,
    read_otherwise,
    unnumbered_of,
)
from exampp.grade.reparse import Reparsed, reparse
from exampp.grade.run import MAX_FAILURES, GradingRun, Progress
from exampp.grade.status import grading_status, readings_table, spent_table, status_table
from exampp.graded import Graded, with_run_files
from exampp.inputs.beir import corpus_of
from exampp.inputs.datasets import has_documents, is_dataset
from exampp.inputs.exporting import EXPORTS, export
from exampp.inputs.files import Given
from exampp.inputs.import_report import ImportReport
from exampp.inputs.importing import UNKNOWN_PASSAGES, Importer, import_files
from exampp.inputs.pooling import pool_tables
from exampp.inputs.segment import PASSAGE_TOKENS
from exampp.llm.base import Grader
from exampp.llm.options import Options
from exampp.outside import check_path
from exampp.prompts import load
from exampp.records import GraderIdentity
from exampp.records.choosing import choose_grader, label
from exampp.records.dossier import Dossier
from exampp.records.gradebook import Gradebook, without_decisions
from exampp.records.grading import RatingScale, check_scale
from exampp.records.origin import own_bank
from exampp.records.readings import said_without_key
from exampp.records.wording import quoted
from exampp.report.table import Table
from exampp.review.trial import effect_tables
from exampp.reviewing import Reviewing
from exampp.store.bank import MAIN_BANK, QUERY_BANK, Edit, bank_names, makers
from exampp.store.cells import DEPTH, Exam, items_without_key
from exampp.store.connection import connect, transaction
from exampp.store.dossier import read_dossiers
from exampp.store.gradebook import read_gradebook
from exampp.store.grades import StoredGrader, graders, known_grader
from exampp.store.inputs import counts, highest_judgment
from exampp.store.steps import put_step, read_step, state


class Collection(Banking, Reviewing, Graded):
    """One exam: inputs, bank, grades and decisions in one SQLite file.

    Opens an existing collection; `Collection.create` makes one. Use it as a context manager, or
    call `close`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self._connection = connect(self.path)

    @classmethod
    def create(cls, path: str | Path, *, exist_ok: bool = False) -> Self:
        """Make an empty collection and open it; `exist_ok` opens one that exists."""
        path = check_path(path)
        if path.exists() and path.stat().st_size and not exist_ok:
            raise InputError("exists already", file=path, mend="Choose another name")
        connect(path, create=True).close()
        return cls(path)

    def close(self) -> None:
        """Close the file; everything committed is on disk."""
        self._connection.close()

    # ---- inputs and bank ------------------------------------------------------------------------

    def import_files(
        self,
        *files: str | Path,
        kind: str | None = None,
        queries: Sequence[str | Path] = (),
        passages: Sequence[str | Path] = (),
        banks: Sequence[str | Path] = (),
        runs: Sequence[str | Path] = (),
        qrels: Sequence[str | Path] = (),
        responses: Sequence[str | Path] = (),
        bank: str = MAIN_BANK,
        on_error: str = "refuse",
        unknown_passages: str = "error",
        corpus: str | Path | None = None,
        depth: int | None = None,
        system: str | None = None,
        passage_tokens: int = PASSAGE_TOKENS,
        cited: bool = False,
        scale: RatingScale | None = None,
        author: str | None = None,
        update: bool = False,
        dry_run: bool = False,
    ) -> ImportReport:
        """Bring files in, all of them or none; what a file is, is told from its content.

        The report says what changed. What is graded (texts, rankings, grades) and items that
        people edited are changed only with `update`; `dry_run` says what would change, and
        changes nothing.

        `kind` says what `files` are where it cannot be told. Files given as `queries`,
        `passages`, `banks`, `runs`, `qrels` or `responses` are that; `bank` names the bank that
        items go into. `on_error="skip"` leaves bad lines
        out and counts them. `unknown_passages="keep"` takes ranked passages without a text.
        `corpus` (a file, a folder, or `irds:ID`) is where the texts of ranked and judged passages
        are looked up; `depth` passages of each run are taken, by default all, 20 with a corpus.
        `system` names the system of responses that do not; responses are cut into passages of at
        most `passage_tokens` tokens, at sentences where it is 0; with `cited`, what a response
        cites is ranked by a system `NAME:cited`. `scale`, as (0, 3), is that of the
        graders of graded passages whose prompt is not known; by default it goes from 0 to the
        highest label found. A rating that cannot be read is kept as unparsed, and counted.
        Raises InputError for anything malformed; the collection then is as it was.
        """
        if unknown_passages not in UNKNOWN_PASSAGES:
            raise InputError(f"unknown_passages is one of {', '.join(UNKNOWN_PASSAGES)}")
        if corpus is None:
            corpus = next(filter(has_documents, filter(is_dataset, files)), None)
            corpus = corpus or next(filter(None, (corpus_of(Path(file)) for file in files)), None)
        skipped = Skipped() if on_error == "skip" else None
        importer = Importer(
            self._connection,
            Edit(author or _user(), "import", _now()),
            bank,
            skipped or refuse,
            "keep" if corpus else unknown_passages,
            depth or (DEPTH if corpus else None),
            system,
            passage_tokens,
            update,
            dry_run,
            None if scale is None else check_scale(scale),
            settle=self._settle,
            cited=cited,
        )
        roles = {
            "queries": queries,
            "passages": passages,
            "bank": banks,
            "runs": runs,
            "qrels": qrels,
            "responses": responses,
        }
        check_lists(**roles)
        given = [Given(Path(file), kind) for file in files]
        given += [Given(Path(file), role=role) for role, some in roles.items() for file in some]

        def take() -> ImportReport:
            return import_files(importer, given, str(corpus) if corpus else None)

        if dry_run:
            report, found = self._tried(take, bank)
            report = replace(report, impact=effect_tables(found))
        else:
            report = take()
        return report if skipped is None else report.with_skipped(skipped.count, skipped.first)

    def export(self, path: str | Path, kind: str = "workbench", *, bank: str | None = None) -> int:
        """Write the collection as a file of `kind`; returns the number of records written."""
        if kind not in EXPORTS:
            raise InputError(f"cannot export {kind!r}", mend=f"Known: {', '.join(EXPORTS)}")
        keep_inputs([Path(path)], [self.path])
        return export(self._connection, Path(path), kind, bank)

    def contents(self) -> Table:
        """How many of each thing the collection holds."""
        rows = [(name, count) for name, count in counts(self._connection).items()]
        return Table.of(["thing", "count"], rows)

    def pool(self, depth: int = DEPTH) -> tuple[Table, Table]:
        """The pool of the first `depth` passages of all runs: its systems, and cells per bank."""
        return pool_tables(self._connection, depth)

    def is_done(self, step: str, fingerprint: str) -> bool:
        """Whether a step was recorded by `mark_done` with this fingerprint."""
        return read_step(self._connection, step) == fingerprint

    def mark_done(self, step: str, fingerprint: str) -> None:
        """Record that a step is done, and the fingerprint of what it was done on."""
        with self._connection, transaction(self._connection):
            put_step(self._connection, step, fingerprint, _now())

    def fingerprint(self, *, grades: bool = False) -> str:
        """Changes where queries, passages, rankings, judgments or items change, or the grades."""
        return state(self._connection, grades=grades)

    # ---- grading --------------------------------------------------------------------------------

    def grading(
        self,
        grader: str | Grader,
        *,
        bank: str | None = None,
        depth: int = DEPTH,
        select: str = "due",
        answers_of: str | None = None,
        max_failures: int = MAX_FAILURES,
        max_queries: int | None = None,
        take_over: bool = False,
        **options: Any,
    ) -> GradingRun:
        """A grading run that is planned but not started: iterate over its `steps`.

        `grader` is `draft`, `hf`, `openai`, or a grader of your own; `options` are those of
        `llm.options.Options`, such as model, prompt and kind. `answers_of` names the grader
        whose extracted answers are to be verified. `select="failed"` takes only what was tried in
        vain, `take_over=True` also what another run holds that is known to be gone. `max_queries`
        is for a trial of the first so many queries, of those that have items and passages.
        """
        stored = graders(self._connection)
        known = [one.identity for one in stored]
        source = None
        if answers_of is not None:
            chosen = choose_grader(known, grader=answers_of)
            source = next(one for one in stored if one.identity == chosen)
        settings = {"answers_of": source.identity.key} if source else None
        try:
            wanted = Options(**options)
        except TypeError as error:
            raise InputError(f"a grader has no such option ({error})") from None
        if isinstance(grader, str):
            grading = make_grading(grader, wanted, settings)
        else:
            prompt = load(wanted.prompt or default_prompt(grader))
            check_answers_of(prompt, answers_of)
            name = wanted.model or called(grader) or type(grader).__name__
            grading = join(
                grader, name, prompt, wanted.kind, unnumbered=wanted.unnumbered, settings=settings
            )
        if same := known_grader(self._connection, grading.identity):
            low, high = grading.identity.lowest, grading.identity.highest
            grading = replace(grading, identity=replace(same.identity, lowest=low, highest=high))
        kind = grading.identity.kind
        by_query = kind != "query" and "query" in grading.prompt.slots
        key = source.key if source else None
        exam = Exam(
            kind,
            self._bank(bank, kind),
            depth,
            by_query,
            answers_of=key,
            verifies=grading.prompt.verifies,
            max_queries=max_queries,
        )
        keyless = items_without_key(self._connection, exam)
        notes = [
            getattr(grading.grader, "note", ""),
            self._reread(grading.identity, known),
            said_without_key(keyless) if keyless else "",
        ]
        return GradingRun(
            self._connection,
            grading,
            exam,
            select=select,
            max_failures=max_failures,
            take_over=take_over,
            notes=[note for note in notes if note],
        )

    def _reread(self, identity: GraderIdentity, known: Sequence[GraderIdentity]) -> str:
        """That a new grader needs no replies, where they were kept for another way of reading."""
        other = read_otherwise(identity, known)
        if other is None:
            return ""
        wanted = unnumbered_of(identity.settings)
        command = ["exampp", "reparse", str(self.path), "--grader", other.key[:8]]
        command += ["--unnumbered", wanted]
        return (
            f"{label(other)} differs only in what a text without a number is "
            f"({unnumbered_of(other.settings)}, now {wanted}). Its replies need not be asked for "
            f"again; this reads them:\n  {shlex.join(command)}"
        )

    def grade(
        self,
        grader: str | Grader,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        **options: Any,
    ) -> Progress:
        """Grade everything that is due; continues where an earlier call stopped.

        Takes the options of `grading`.
        """
        run = self.grading(grader, **options)
        for progress in run.steps():
            if on_progress:
                on_progress(progress)
        return progress

    def reparse(
        self,
        grader: str | None = None,
        *,
        prompt: str | None = None,
        kind: str | None = None,
        rules: str | Path | None = None,
        unnumbered: str | None = None,
        compat: str = "exam",
        dry_run: bool = False,
    ) -> Reparsed:
        """Read the kept replies of the grader that fits again, without a model.

        By today's rules and answer keys; `rules` is a prompt, by name or file, whose rules of
        reading count where the prompt that made the replies does not come with exampp, or is to be
        replaced. `unnumbered` says what a text without a number is, `compat="rubric"` reads as the
        papers' own program does. Readings by other rules than before become the grades of a grader
        of their own; `dry_run` writes nothing. Raises InputError where there is nothing to read.
        """
        stored = graders(self._connection)
        chosen = choose_grader(
            [one.identity for one in stored], grader=grader, prompt=prompt, kind=kind
        )
        source = next(one for one in stored if one.identity == chosen)
        return reparse(
            self._connection,
            source,
            rules=rules,
            mode=compat,
            unnumbered=unnumbered,
            dry_run=dry_run,
        )

    def status(self) -> Table:
        """Per grader and bank: cells graded, due, and tried without a grade, by reason."""
        return self.status_tables()["graders"]

    def status_tables(self) -> dict[str, Table]:
        """Where grading stands, as tables.

        `readings`: how many cells each rule of reading made, with a reply of each. `spent`: what
        the runs of each grader took. `graders`: see `status`.
        """
        found = grading_status(self._connection)
        return {
            "readings": readings_table(found),
            "spent": spent_table(self._connection),
            "graders": status_table(found),
        }

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""
        return tuple(stored.identity for stored in graders(self._connection))

    # ---- reading --------------------------------------------------------------------------------

    @property
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""
        return highest_judgment(self._connection)

    def gradebook(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        runs: Sequence[str | Path] = (),
        part: str | None = None,
        decisions: str = "with",
    ) -> Gradebook:
        """The grades of the one grader that fits, as arrays.

        `part` leaves only the `public` or the `sealed` items of a bank that was split. People's
        decisions stand over the grades of their cells; `decisions="without"` leaves them out.
        """
        check_decisions(decisions)
        chosen, name = self._chosen(grader, prompt, kind, bank)
        book = read_gradebook(self._connection, chosen, name, part)
        book = without_decisions(book) if decisions == "without" else book
        book = replace(book, notes=(*book.notes, *scale_note(chosen.identity, "found or given")))
        warning = self._own_bank(book)
        book = replace(book, notes=(*book.notes, *([warning] if warning else [])))
        return with_run_files(book, runs)

    def bank_origin(self, book: Gradebook) -> tuple[str, str]:
        """(the version of the bank, a warning if the grader made its items)."""
        if book.grader.kind == "query":
            return super().bank_origin(book)
        version = self.bank_version(bank=book.bank)
        return f"{version.digest} (edit {version.number})", self._own_bank(book)

    def dossiers(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        query_ids: Sequence[str] | None = None,
    ) -> Iterator[Dossier]:
        """The queries one by one with texts, raw replies and decisions: all, or those asked for.

        Each is read when it is its turn. Raises InputError for a query that is not known.
        """
        chosen, name = self._chosen(grader, prompt, kind, bank)
        return read_dossiers(self._connection, chosen, name, query_ids)

    def banks(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""
        return [None] if kind == "query" else bank_names(self._connection, kind)

    def _chosen(
        self, grader: str | None, prompt: str | None, kind: str | None, bank: str | None
    ) -> tuple[StoredGrader, str]:
        """The one grader that fits, and the bank meant."""
        stored = graders(self._connection)
        chosen = choose_grader(
            [s.identity for s in stored], grader=grader, prompt=prompt, kind=kind
        )
        return next(s for s in stored if s.identity == chosen), self._bank(bank, chosen.kind)

    def _own_bank(self, book: Gradebook) -> str:
        made = makers(self._connection, book.bank, book.grader.kind)
        return own_bank(book.grader.by_content.model, made.models, made.items)

    def _edit(self, author: str | None, reason: str) -> Edit:
        return Edit(author or _user(), reason, _now())

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
        asked = "which bank?" if name is None else f"there is no bank {quoted(name)} with {kind}s."
        raise InputError(
            f"{asked} This collection has {', '.join(known)} with {kind}s",
            file=self.path,
            mend="Name one with --bank",
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
