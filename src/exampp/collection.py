"""The main path: one collection, one short method per stage, in order.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.grades().evaluate(min_rating=4))
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.formats.output import check_outputs, create_collection
from exampp.grades.source import GradeSource
from exampp.grading.status import GraderStatus, grading_status, status_tables
from exampp.inputs.pooling import pool_tables
from exampp.inputs.segment import PASSAGE_TOKENS
from exampp.records.graders import RatingScale, choose_grader
from exampp.records.inputs import SystemCount
from exampp.records.items import own_bank
from exampp.records.search import SEARCH_KINDS, SearchKind, SearchPage, excerpt_pieces, search_words
from exampp.records.wording import quoted
from exampp.results.result import Result, Table, Tables
from exampp.results.view import Column
from exampp.sanitize import check_path
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import (
    MAIN_BANK,
    bank_names,
    bank_of_kind,
    item_kinds,
    item_models,
    known_queries,
    now,
    only_bank,
    read_bank_texts,
)
from exampp.store.cells import DEPTH
from exampp.store.connection import connect, data_version, is_collection, transaction
from exampp.store.grades import graders
from exampp.store.inputs import highest_judgment, remove_systems, rename_system, system_counts
from exampp.store.runs import put_step, read_step, state
from exampp.store.search import search
from exampp.store.tallies import tallied_contents

if TYPE_CHECKING:
    from exampp.bank import Bank
    from exampp.decisions import CollectionGrades, Decisions
    from exampp.graded_file import GradedFile
    from exampp.graders.base import Grader
    from exampp.grading.batches import Batches
    from exampp.grading.calibrated import Calibrated, Frozen
    from exampp.grading.merge import Merged
    from exampp.grading.ray import Cluster
    from exampp.grading.reparse import Reparsed
    from exampp.grading.run import GradingRun, Progress
    from exampp.inputs.checking import Checked
    from exampp.inputs.import_report import ImportReport
    from exampp.records import GraderIdentity
    from exampp.records.gradebook import DecisionChoice, Dossier, Gradebook
    from exampp.records.graders import RatingScale
    from exampp.records.items import BankTexts
    from exampp.records.search import SearchPage
    from exampp.store.bank import ItemModels
    from exampp.store.grades import StoredGrader


def open(  # noqa: A001
    path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
) -> Collection | GradedFile:
    """The collection at that path, or the file of graded passages, which is read-only.

    `on_error="skip"` leaves bad lines of a graded file out; the notes of what is made of it say
    so. `scale`, as (0, 3), is that of a graded file's graders whose prompt is not known. Raises
    InputError where the path holds neither, and for the scale of a collection, which has its own.
    """
    if is_collection(path):
        # neither must pay for what only the other needs

        if scale is not None:
            raise InputError(
                "a collection knows the scales of its graders",
                file=path,
                mend="Leave out --scale, or import the graded passages again with it",
            )
        return Collection(path)
    if not check_path(path).exists():
        mend = "Check the path; exampp import, or in Python exampp.create, makes a collection"
        raise InputError("no such file", file=path, mend=mend)
    _, first = next(read_lines(path))
    if not first.lstrip().startswith(b"["):
        raise InputError("is neither a collection nor a file of graded passages", file=path)
    from exampp.graded_file import GradedFile

    return GradedFile(path, on_error, scale)


def create(path: str | Path, *, exist_ok: bool = False) -> Collection:
    """Make an empty collection and open it; `exist_ok` opens one that exists.

    Raises:
        InputError: There is a file of that name.
    """

    return Collection.create(path, exist_ok=exist_ok)


class SearchOptions(TypedDict, total=False):
    """What may be said of a search.

    `kinds` are looked through, all where none is named. `grader`, named as in
    `Collection.grades`, is the one whose replies are looked through, `bank` the one whose items
    are; all where none is named. `most` records of each kind are wanted; `after` is the place of a
    record of the one kind to go on after, and after so many `seconds` nothing more is begun.
    """

    kinds: Sequence[SearchKind]
    grader: str | None
    bank: str | None
    most: int
    after: str
    seconds: float


def search_all(
    connection: sqlite3.Connection,
    text: str,
    *,
    kinds: Sequence[SearchKind] = SEARCH_KINDS,
    grader: str | None = None,
    bank: str | None = None,
    most: int = 20,
    after: str = "",
    seconds: float = float("inf"),
) -> list[SearchPage]:
    """What holds all words of a text, kind by kind; see `SearchOptions`."""
    unknown = [kind for kind in kinds if kind not in SEARCH_KINDS]
    if unknown or (after and len(kinds) != 1):
        raise InputError(
            f"no kind of records is called {unknown[0]!r}" if unknown else "one kind goes on",
            field="kinds",
            mend=f"Known: {', '.join(SEARCH_KINDS)}",
        )
    if most < 1:
        raise InputError(f"at least 1 record can be wanted, not {most}", field="most")
    if bank is not None and not item_kinds(connection, bank):
        raise InputError(f"no bank of the name {quoted(bank)} has items", field="bank")
    if grader is not None:
        known = [stored.identity for stored in graders(connection)]
        grader = choose_grader(known, grader=grader).key
    words, until = search_words(text), time.monotonic() + seconds
    return [
        search(
            connection,
            kind,
            words,
            grader=grader,
            bank=bank,
            most=most,
            after=after,
            until=until,
        )
        for kind in kinds
    ]


def search_table(found: Sequence[SearchPage], text: str, *, whole: bool = False) -> Table:
    """What was found, a row per record: its ids, who said it, the text around the words.

    With `whole` texts are not cut.
    """
    words = search_words(text)
    rows = [
        (
            one.kind,
            ", ".join(one.query_ids),
            one.item_id,
            one.passage_id,
            one.note,
            one.said_by,
            one.text
            if whole
            else " ".join("".join(p.text for p in excerpt_pieces(one.text, words)).split()),
        )
        for of in found
        for one in of.records
    ]
    notes = [
        f"There are more {of.kind}: --in {of.kind} --limit N has them." for of in found if of.after
    ]
    if not rows:
        notes.append("Nothing holds all of these words." if words else "No words were given.")
    return Table.of(["in", "query", "item", "passage", "said", "by", "text"], rows, notes=notes)


# The systems of a collection.
#
# Removing one takes its rankings away and nothing else: the passages and their grades stay, so
# that importing its run again brings back everything that it scored.


@dataclass(frozen=True, slots=True, repr=False)
class Systems(Result):
    """All systems, as they are whenever they are looked at."""

    connection: sqlite3.Connection

    def __iter__(self) -> Iterator[SystemCount]:
        return iter(self.list())

    def list(self) -> Sequence[SystemCount]:
        """The systems in order of first appearance, with how many passages each returned."""
        return system_counts(self.connection)

    def tables(self) -> Mapping[str, Table]:
        """A row a system; passages are the mean over the queries for which it returned some."""
        heads: tuple[str | Column, ...] = ("system", "queries", Column("passages", 1))
        return {"systems": Table.of(heads, self.list())}

    def rename(self, old: str, new: str) -> None:
        """Give a system another name.

        Raises InputError where there is no such system, one of the new name, or that is no name.
        """
        with self.connection, transaction(self.connection):
            rename_system(self.connection, old, new)

    def remove(self, *names: str) -> int:
        """Take the rankings of systems away; returns how many ranked passages those had.

        Importing a run again undoes it: passages and grades stay. Raises InputError, and removes
        none, where one of them is not known.
        """
        if not names:
            raise InputError("no system to remove", mend="Name one")
        with self.connection, transaction(self.connection):
            return remove_systems(self.connection, dict.fromkeys(names))


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
            raise InputError("exists already", file=path, mend="Choose another name, or open it")
        create_collection(path)
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
        from exampp.review.dry_run import import_or_dry_run

        return import_or_dry_run(
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
        from exampp.review.dry_run import import_or_dry_run

        return import_or_dry_run(
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

        check_outputs([Path(path)], [self.path])
        return export(self._connection, Path(path), kind, bank)

    def check(self) -> Checked:
        """Return the problems of the collection: damage, foreign changes and impossible values."""
        from exampp.inputs.checking import check_collection

        return check_collection(self._connection, self.path)

    def merge(self, *others: str | Path, dry_run: bool = False) -> Merged:
        """Take what other collections hold: copies of this one, or shards of one exam.

        All of it or, after an error, nothing; of more than ten, ten at a time. The others are only
        read; merging again changes nothing. What they differ in is in the result, with what is
        kept; `dry_run` changes nothing. Raises InputError for what is no collection or is this one,
        for a newer exampp's or a damaged one, and where a run is grading in one of them.
        """
        from exampp.grading.merge import merge

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

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[SearchPage]:
        """The records that hold all words of a text, whatever their case, kind by kind.

        What stands in quotation marks is one word. Raises InputError for an option that is wrong.
        """
        return search_all(self._connection, text, **options)

    def fingerprint(self, *, grades: bool = False) -> str:
        """Changes where queries, passages, rankings, judgments or items change, or the grades."""
        return state(self._connection, grades=grades)

    def bank(self, name: str | None = MAIN_BANK) -> Bank:
        """The bank of that name, or the only one: its items, history and checks, how to edit it."""
        from exampp.bank import Bank

        return Bank(self._connection, name or only_bank(self._connection, self.path))

    def banks(self) -> Table:
        """The banks: how much of what they hold, and what is sealed."""
        from exampp.bank import list_banks

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
        pool: str = "ranked",
        select: str = "due",
        answers_of: str | None = None,
        max_failures: int = MAX_FAILURES,
        max_queries: int | None = None,
        shard: str | None = None,
        take_over: bool = False,
        on: str | Cluster | None = None,
        batches: bool | Batches = False,
        **options: Any,
    ) -> GradingRun:
        """A grading run that is planned but not started: iterate over its `steps`.

        `grader` is `draft`, `hf`, `openai`, a grader of your own, or a function: (item, passage) ->
        rating, `Reply`, or None where it cannot tell, perhaps async. A function has a `name`, by
        which it is known, a `scale` (0 to 5), perhaps a `batch`: it then gets lists of items and
        passages. It is called for every cell, also where texts are equal, unless
        `same_text_same_grade`. `options` are fields of its record in `graders.options`, such
        as model, prompt and kind. `answers_of` names a grader whose answers are verified.
        `select="failed"` takes
        failed cells, `take_over=True` those of a run that is gone, `max_queries` the first queries,
        `shard` a part (`3/16`), `pool` `ranked`, `judged` or `all` passages.
        `on` is a Ray cluster that grades; with `batches` a server answers at half the price.
        """
        from exampp.grading.plan import FunctionOptions, plan_run

        return plan_run(
            self._connection,
            self.path,
            grader,
            options,
            FunctionOptions(name, scale, batch, same_text_same_grade),
            bank=bank,
            depth=depth,
            pool=pool,
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
        **options: Any,
    ) -> Progress:
        """Grade everything that is due, as `grading` has it; goes on where a call stopped."""
        tell = on_progress or (lambda _: None)
        for progress in self.grading(grader, **options).steps():
            tell(progress)
        return progress

    def calibrate(self, calibration: Frozen, bank: str | None = None) -> Calibrated:
        """Label passages, as a grader, by a calibration (`Panel.calibration`) or its file."""
        from exampp.grading.calibrated import label_collection

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
        from exampp.grading.reparse import reparse

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
        from exampp.store.read_model import read_gradebook

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
        from exampp.store.read_model import read_dossiers

        name = self._bank(bank, grader.kind)
        return read_dossiers(self._connection, self._stored(grader), name, query_ids)

    def bank_names(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""
        return [None] if kind == "query" else bank_names(self._connection, kind)

    def _stored(self, identity: GraderIdentity) -> StoredGrader:
        return next(one for one in graders(self._connection) if one.identity == identity)

    def bank_makers(self, book: Gradebook) -> ItemModels:
        """The models that made the items of a bank, as far as it says so."""
        from exampp.store.read_model import items_of_part

        among = items_of_part(self._connection, book.bank, book.part)
        return item_models(self._connection, book.bank, book.grader.kind, among)

    def _own_bank(self, book: Gradebook) -> str:
        made = self.bank_makers(book)
        return own_bank(book.grader.by_content.model, made.models, made.items)

    def _bank(self, name: str | None, kind: str) -> str:
        """The bank meant: the one named, or the only one that has items of this kind."""
        return bank_of_kind(self._connection, name, kind, self.path)
