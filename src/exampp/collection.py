"""The main path: one collection, one short method per stage, in order.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.grades().evaluate(min_rating=4))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from exampp.errors import InputError
from exampp.formats.output import keep_inputs
from exampp.grade.status import GraderStatus, grading_status, status_tables
from exampp.grades.source import GradeSource
from exampp.inputs.pooling import pool_tables
from exampp.inputs.segment import PASSAGE_TOKENS
from exampp.outside import check_path
from exampp.records.choosing import choose_grader
from exampp.records.origin import own_bank
from exampp.report.table import Table, Tables
from exampp.searching import SearchOptions, search_all
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import MAIN_BANK, bank_names, makers, now
from exampp.store.bank_choice import bank_of_kind, only_bank
from exampp.store.bank_history import known_queries
from exampp.store.bank_texts import read_bank_texts
from exampp.store.cells import DEPTH
from exampp.store.connection import connect, data_version, transaction
from exampp.store.grades import graders
from exampp.store.inputs import highest_judgment
from exampp.store.steps import put_step, read_step, state
from exampp.store.tallies import tallied_contents
from exampp.systems import Systems

if TYPE_CHECKING:
    from exampp.banks import Bank
    from exampp.decisions import CollectionGrades, Decisions
    from exampp.grade.batches import Batches
    from exampp.grade.calibrated import Calibrated, Frozen
    from exampp.grade.given import GradingOptions
    from exampp.grade.merging import Merged
    from exampp.grade.progress import Progress
    from exampp.grade.reparse import Reparsed
    from exampp.grade.run import GradingRun
    from exampp.grade.spread.on_ray import Cluster
    from exampp.inputs.import_report import ImportReport
    from exampp.llm.base import Grader
    from exampp.llm.options import Options
    from exampp.records import GraderIdentity
    from exampp.records.bank import BankTexts
    from exampp.records.dossier import Dossier
    from exampp.records.found import FoundOfKind
    from exampp.records.gradebook import DecisionChoice, Gradebook
    from exampp.records.grading import RatingScale
    from exampp.store.bank import Makers
    from exampp.store.grades import StoredGrader


class Collection(GradeSource["CollectionGrades"]):
    """One exam: inputs, bank, grades and decisions in one SQLite file.

    Opens an existing collection; `Collection.create` makes one. Use it as a context manager, or
    call `close`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self._connection = connect(self.path)

    def __repr__(self) -> str:
        return f"<exam {self.path}>"

    @classmethod
    def create(cls, path: str | Path, *, exist_ok: bool = False) -> Self:
        """Make an empty collection and open it; `exist_ok` opens one that exists."""
        path = check_path(path)
        if path.exists() and path.stat().st_size and not exist_ok:
            mend = "Choose another name, or open this one"
            raise InputError("exists already", file=path, mend=mend)
        connect(path, create=True).close()
        return cls(path)

    def close(self) -> None:
        """Close the file; everything committed is on disk."""
        self._connection.close()

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
        columns: Mapping[str, str] | None = None,
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
        `columns` names columns of tables, as {"query_id": "topic"}. Raises InputError for anything
        malformed; the collection then is as it was.
        """
        from exampp.inputs.files import given_files, own_corpus
        from exampp.review.trial import import_or_try

        return import_or_try(
            self._connection,
            given_files(files, kind, (queries, passages, banks, runs, qrels, responses)),
            on_error,
            own_corpus(files) if corpus is None else corpus,
            author,
            bank=bank,
            unknown_passages=unknown_passages,
            depth=depth,
            system=system,
            passage_tokens=passage_tokens,
            update=update,
            dry_run=dry_run,
            scale=scale,
            cited=cited,
            columns=columns or {},
        )

    def add(
        self,
        *,
        queries: object = None,
        passages: object = None,
        bank: object = None,
        runs: object = None,
        qrels: object = None,
        responses: object = None,
        columns: Mapping[str, str] | None = None,
        bank_name: str = MAIN_BANK,
        on_error: str = "refuse",
        unknown_passages: str = "error",
        corpus: str | Path | None = None,
        depth: int | None = None,
        passage_tokens: int = PASSAGE_TOKENS,
        cited: bool = False,
        author: str | None = None,
        update: bool = False,
        dry_run: bool = False,
    ) -> ImportReport:
        """Bring data in out of memory, all of it or nothing, as `import_files` does with files.

        Each is a frame (polars, pandas, pyarrow, or any with Arrow's C stream), an iterable of
        dicts, or a dict: `queries` and `passages` of id -> text, `bank` of query id -> items,
        `qrels` of query id -> {passage id: relevance}. `runs` maps each system to a run, which may
        be a dict of query id -> {passage id: score} or -> passage ids in order; `responses` maps
        each to query id -> text. Columns go by the names that files may have; `columns` says, as
        {"query_id": "topic"}, which ones go by others.

        Ids are kept as text: integers as they are written, numbers with a fraction are refused.
        None, NaN and NaT are missing. Errors name the argument and the row, as in `queries:3`.
        """
        from exampp.inputs.files import given_data
        from exampp.review.trial import import_or_try

        return import_or_try(
            self._connection,
            given_data((queries, passages, bank, runs, qrels, responses)),
            on_error,
            corpus,
            author,
            bank=bank_name,
            unknown_passages=unknown_passages,
            depth=depth,
            passage_tokens=passage_tokens,
            update=update,
            dry_run=dry_run,
            cited=cited,
            columns=columns or {},
        )

    def export(self, path: str | Path, kind: str = "workbench", *, bank: str | None = None) -> int:
        """Write the collection as a file of `kind`; returns the number of records written.

        Raises InputError for a kind that is none of `inputs.exporting.EXPORTS` nor of a package.
        """
        from exampp.inputs.exporting import export

        keep_inputs([Path(path)], [self.path])
        return export(self._connection, Path(path), kind, bank)

    def merge(self, *others: str | Path, dry_run: bool = False) -> Merged:
        """Take what other collections hold: copies of this one, or shards of one exam.

        All of it or, after an error, nothing; of more than ten, ten at a time. The others are only
        read; merging again changes nothing. What they differ in is in the result, with what is
        kept; `dry_run` changes nothing. Raises InputError for what is no collection or is this one,
        for a newer exampp's or a damaged one, and where a run is grading in one of them.
        """
        from exampp.grade.merging import merge

        return merge(self._connection, self.path, others, dry_run=dry_run)

    def contents(self) -> Table:
        """How many of each thing the collection holds."""
        return Table.of(["thing", "count"], list(tallied_contents(self._connection).items()))

    def pool(self, depth: int = DEPTH) -> Tables:
        """The pool of the first `depth` passages of all runs: its systems (`pool`), its `cells`."""
        systems, banks = pool_tables(self._connection, depth)
        return Tables({"pool": systems, "cells": banks})

    def is_done(self, step: str, fingerprint: str) -> bool:
        """Whether a step was recorded by `mark_done` with this fingerprint."""
        return read_step(self._connection, step) == fingerprint

    def mark_done(self, step: str, fingerprint: str) -> None:
        """Record that a step is done, and the fingerprint of what it was done on."""
        with self._connection, transaction(self._connection):
            put_step(self._connection, step, fingerprint, now())

    def query_texts(self) -> dict[str, str]:
        """The text of every query that is known from more than a bank, by id."""
        return known_queries(self._connection)

    def data_version(self) -> int:
        """A number that changes when something else, in any process, has written to the file."""
        return data_version(self._connection)

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[FoundOfKind]:
        """The records that hold all words of a text, whatever their case, kind by kind.

        What stands in quotation marks is one word. Raises InputError for an option that is wrong.
        """
        return search_all(self._connection, text, **options)

    def fingerprint(self, *, grades: bool = False) -> str:
        """Changes where queries, passages, rankings, judgments or items change, or the grades."""
        return state(self._connection, grades=grades)

    def bank(self, name: str | None = MAIN_BANK) -> Bank:
        """The bank of that name, or the only one: its items, history and checks, how to edit it."""
        from exampp.banks import Bank

        return Bank(self._connection, name or only_bank(self._connection, self.path))

    def banks(self) -> Table:
        """The banks: how much of what they hold, and what is sealed."""
        from exampp.bank.editor import list_banks

        return list_banks(self._connection)

    @property
    def decisions(self) -> Decisions:
        """What people decided."""
        from exampp.decisions import Decisions

        return Decisions(self._connection)

    @property
    def systems(self) -> Systems:
        """The systems: how many passages each returns; renaming and removing them."""
        return Systems(self._connection)

    def grading(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        name: str | None = None,
        scale: RatingScale | None = None,
        batch: int | None = None,
        same_text_same_grade: bool = False,
        bank: str | None = None,
        depth: int = DEPTH,
        select: str = "due",
        answers_of: str | None = None,
        max_failures: int = MAX_FAILURES,
        max_queries: int | None = None,
        shard: str | None = None,
        take_over: bool = False,
        on: str | Cluster | None = None,
        batches: bool | Batches = False,
        **options: Unpack[Options],
    ) -> GradingRun:
        """A grading run that is planned but not started: iterate over its `steps`.

        `grader` is `draft`, `hf`, `openai`, a grader of your own, or a function: (item, passage) ->
        rating, `Reply`, or None where it cannot tell, perhaps async. A function has a `name`, by
        which it is known, a `scale` (0 to 5), perhaps a `batch`: it then gets lists of items and
        passages. With `same_text_same_grade` equal texts share a call. `options` are those of
        `llm.options.Options`. `answers_of` names the grader whose extracted answers are to be
        verified. `select="failed"` takes what was tried in vain, `take_over=True` also what a run
        holds that is gone, `max_queries` the first queries, `shard` an equal part, as `3/16`.
        `on` is a Ray cluster that grades; with `batches` a server answers at half the price.
        """
        from exampp.grade.given import OfFunction, plan

        return plan(
            self._connection,
            self.path,
            grader,
            options,
            OfFunction(name, scale, batch, same_text_same_grade),
            bank=bank,
            depth=depth,
            max_queries=max_queries,
            shard=shard,
            answers_of=answers_of,
            select=select,
            max_failures=max_failures,
            take_over=take_over,
            on=on,
            batches=batches,
        )

    def grade(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        on_progress: Callable[[Progress], None] | None = None,
        **options: Unpack[GradingOptions],
    ) -> Progress:
        """Grade everything that is due, as `grading` has it; goes on where a call stopped."""
        run = self.grading(grader, **options)
        tell = on_progress or (lambda _: None)
        for progress in run.steps():
            tell(progress)
        return progress

    def calibrate(self, calibration: Frozen, bank: str | None = None) -> Calibrated:
        """Label passages, as a grader, by a calibration (`Panel.calibration`) or its file."""
        from exampp.grade.calibrated import label_collection

        return label_collection(self._connection, self.path, calibration, bank)

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
        from exampp.grade.reparse import reparse

        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        return reparse(
            self._connection,
            self._stored(chosen),
            rules=rules,
            mode=compat,
            unnumbered=unnumbered,
            dry_run=dry_run,
        )

    def status(self) -> Table:
        """Per grader and bank: cells graded, due, and tried without a grade, by reason."""
        return self.status_tables()["graders"]

    def grader_statuses(self) -> Sequence[GraderStatus]:
        """Where grading stands, per grader and bank, as records; nothing is written."""
        return grading_status(self._connection, keep=False)

    def status_tables(self) -> dict[str, Table]:
        """Where grading stands, as tables.

        `readings`: how many cells each rule of reading made, with a reply of each. `spent`: what
        the runs of each grader took. `graders`: see `status`.
        """
        return status_tables(self._connection)

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""
        return tuple(stored.identity for stored in graders(self._connection))

    @property
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""
        return highest_judgment(self._connection)

    def _grades(
        self,
        chosen: GraderIdentity,
        bank: str | None,
        runs: Sequence[str | Path],
        part: str | None,
        decisions: DecisionChoice,
    ) -> CollectionGrades:
        from exampp.decisions import CollectionGrades

        return CollectionGrades(
            self,
            chosen,
            self._bank(bank, chosen.kind),
            tuple(runs),
            part,
            decisions,
            connection=self._connection,
            stored=self._stored(chosen),
        )

    def read_gradebook(
        self, grader: GraderIdentity, bank: str | None, part: str | None
    ) -> Gradebook:
        """The grades of a grader on a bank, with people's decisions over them.

        `part` leaves only the `public` or the `sealed` items of a bank that was split.
        """
        from exampp.formats.workbench_graders import scale_note
        from exampp.store.gradebook import read_gradebook

        name = self._bank(bank, grader.kind)
        book = read_gradebook(self._connection, self._stored(grader), name, part)
        warning = self._own_bank(book)
        notes = (*scale_note(grader, "found or given"), *([warning] if warning else []))
        return replace(book, notes=(*book.notes, *notes))

    def read_bank_texts(self, grader: GraderIdentity, bank: str | None) -> BankTexts:
        """The texts of a bank and of the queries, and which of its items are sealed."""
        return read_bank_texts(self._connection, self._bank(bank, grader.kind))

    def bank_origin(self, book: Gradebook) -> tuple[str, str]:
        """(the version of the bank, a warning if the grader made its items)."""
        if book.grader.kind == "query":
            return super().bank_origin(book)
        version = self.bank(book.bank).version()
        return f"{version.digest} (edit {version.number})", self._own_bank(book)

    def read_dossiers(
        self, grader: GraderIdentity, bank: str | None, query_ids: Sequence[str] | None
    ) -> Iterator[Dossier]:
        """The queries one by one with texts, raw replies and decisions: all, or those asked for.

        Each is read when it is its turn. Raises InputError for a query that is not known.
        """
        from exampp.store.dossier import read_dossiers

        name = self._bank(bank, grader.kind)
        return read_dossiers(self._connection, self._stored(grader), name, query_ids)

    def bank_names(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""
        return [None] if kind == "query" else bank_names(self._connection, kind)

    def _stored(self, identity: GraderIdentity) -> StoredGrader:
        return next(one for one in graders(self._connection) if one.identity == identity)

    def bank_makers(self, book: Gradebook) -> Makers:
        """The models that made the items of a bank, as far as it says so."""
        from exampp.store.gradebook import items_of_part

        among = items_of_part(self._connection, book.bank, book.part)
        return makers(self._connection, book.bank, book.grader.kind, among)

    def _own_bank(self, book: Gradebook) -> str:
        made = self.bank_makers(book)
        return own_bank(book.grader.by_content.model, made.models, made.items)

    def _bank(self, name: str | None, kind: str) -> str:
        """The bank meant: the one named, or the only one that has items of this kind."""
        return bank_of_kind(self._connection, name, kind, self.path)
