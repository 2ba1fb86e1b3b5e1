"""The main path: one collection, one short method per stage, in order.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.grades().evaluate(min_rating=4))
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.inputs.graded_file import GradedFile
from exampp.records.gradebook import check_decisions
from exampp.records.graders import RatingScale, choose_grader, fitting_graders
from exampp.records.inputs import PASSAGE_TOKENS, SystemCount
from exampp.results.result import Result, Table, Tables
from exampp.results.view import Column
from exampp.sanitize import check_lists, check_path
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import MAIN_BANK, bank_names, bank_of_kind, known_queries, only_bank
from exampp.store.cells import DEPTH
from exampp.store.connection import connect, is_collection, refuse_graded_file, transaction
from exampp.store.grades import graders
from exampp.store.inputs import remove_systems, system_counts
from exampp.store.search import SEARCH_KINDS, SearchKind, SearchPage, excerpt_pieces, search_words

if TYPE_CHECKING:
    from exampp.bank import Bank
    from exampp.graders.base import Grader
    from exampp.grades.decisions import Decisions
    from exampp.grades.gating import Earlier
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.grading.batches import Batches
    from exampp.grading.derived import Calibrated, Frozen
    from exampp.grading.merge import Merged
    from exampp.grading.regrade import Reparsed
    from exampp.grading.run import GradingRun, Progress
    from exampp.grading.workers import Cluster
    from exampp.inputs.checking import Checked
    from exampp.inputs.importing import ImportReport
    from exampp.records import GraderIdentity
    from exampp.records.gradebook import DecisionChoice
    from exampp.records.graders import RatingScale
    from exampp.store.grades import StoredGrader
    from exampp.store.search import SearchPage


def open(  # noqa: A001
    path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
) -> Collection:
    """Open a collection, or a file of graded passages as a collection that is only read.

    A graded file is imported once and then read from a cache in the user's cache folder.

    Args:
        path: The collection or the graded file.
        on_error: "skip" leaves bad lines of a graded file out; notes say so.
        scale: Of a graded file's graders whose prompt is not known, as (0, 3); by default it goes
            from 0 to the highest label found.

    Raises:
        InputError: The path holds neither, or a scale is given for a collection, which has its own.
    """
    if is_collection(path):
        if scale is not None:
            raise InputError(
                "a collection knows the scales of its graders",
                file=path,
                hint="Leave out --scale, or import the graded passages again with it",
            )
        return Collection(path)
    if not check_path(path).exists():
        hint = "Check the path; exampp import, or in Python exampp.create, makes a collection"
        raise InputError("no such file", file=path, hint=hint)
    _, first = next(read_lines(path))
    if not first.lstrip().startswith(b"["):
        raise InputError("is neither a collection nor a file of graded passages", file=path)
    return Collection._of_graded_file(GradedFile(Path(path), on_error, scale))


def create(path: str | Path, *, exist_ok: bool = False) -> Collection:
    """Make an empty collection and open it; `exist_ok` opens one that exists.

    Raises:
        InputError: There is a file of that name.
    """
    return Collection.create(path, exist_ok=exist_ok)


class _Choice(TypedDict, total=False):
    """How grades are read; the fields are those of `Grades`."""

    runs: tuple[str | Path, ...]
    systems: tuple[str, ...]
    without: tuple[str, ...]
    part: str | None
    with_decisions: bool
    choice: Mapping[str, str | None]


def search_table(found: Sequence[SearchPage], text: str, *, whole: bool = False) -> Table:
    """Return what was found, a row per record: its ids, who said it, the text around the words.

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
        f"There are more {of.kind}: --in {of.kind} --limit N has them." for of in found if of.more
    ]
    if not rows:
        notes.append("Nothing holds all of these words." if words else "No words were given.")
    return Table.of(["in", "query", "item", "passage", "said", "by", "text"], rows, notes=notes)


@dataclass(frozen=True, slots=True, repr=False)
class Systems(Result):
    """All systems, as they are whenever they are looked at."""

    connection: sqlite3.Connection

    def __iter__(self) -> Iterator[SystemCount]:
        return iter(self.list())

    def list(self) -> Sequence[SystemCount]:
        """Return the systems sorted by name, with how many passages each returned."""
        return system_counts(self.connection)

    def tables(self) -> Mapping[str, Table]:
        """A row a system; passages are the mean over the queries for which it returned some."""
        heads: tuple[str | Column, ...] = ("system", "queries", Column("passages", 1))
        return {"systems": Table.of(heads, self.list())}

    def remove(self, *names: str) -> int:
        """Take the rankings of systems away; returns how many ranked passages those had.

        Importing a run again undoes it: passages and grades stay. Raises InputError, and removes
        none, where one of them is not known.
        """
        if not names:
            raise InputError("no system to remove", hint="Name one")
        with self.connection, transaction(self.connection):
            return remove_systems(self.connection, dict.fromkeys(names))


class Collection:
    """One exam: inputs, bank, grades and decisions in one SQLite file.

    Opens an existing collection; `Collection.create` makes one, and `exampp.open` opens a graded
    file as one. Use it as a context manager, or call `close`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self.connection = connect(self.path)
        self._graded_file: GradedFile | None = None

    @classmethod
    def _of_graded_file(cls, file: GradedFile) -> Self:
        """Open a graded file; nothing can be written."""
        made = cls.__new__(cls)
        made.path, made.connection, made._graded_file = file.path, file.open(), file
        return made

    def __repr__(self) -> str:
        return f"<{'exam' if self._graded_file is None else 'graded file'} {self.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @classmethod
    def create(cls, path: str | Path, *, exist_ok: bool = False) -> Self:
        """Make an empty collection and open it; `exist_ok` opens one that exists."""
        path = check_path(path)
        if path.exists() and path.stat().st_size and not exist_ok:
            raise InputError("exists already", file=path, hint="Choose another name, or open it")
        from exampp.formats.output import create_collection

        create_collection(path)
        return cls(path)

    def close(self) -> None:
        """Close the file; everything committed is on disk."""
        (self._graded_file or self.connection).close()

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
        from exampp.review.impact import import_or_dry_run

        return import_or_dry_run(
            self.connection,
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
        from exampp.review.impact import import_or_dry_run

        return import_or_dry_run(
            self.connection,
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
        from exampp.formats.output import check_outputs
        from exampp.inputs.exporting import export

        check_outputs([Path(path)], [self.path])
        return export(self.connection, Path(path), kind, bank)

    def check(self) -> Checked:
        """Return the problems of the collection: damage, foreign changes and impossible values."""
        from exampp.inputs.checking import check_collection

        return check_collection(self.connection, self.path)

    def merge(self, *others: str | Path, dry_run: bool = False) -> Merged:
        """Take what other collections hold: copies of this one, or shards of one exam.

        All of it or, after an error, nothing; of more than ten, ten at a time. The others are only
        read; merging again changes nothing. What they differ in is in the result, with what is
        kept; `dry_run` changes nothing. Raises InputError for what is no collection or is this one,
        for a newer exampp's or a damaged one, and where a run is grading in one of them.
        """
        from exampp.grading.merge import merge

        return merge(self.connection, self.path, others, dry_run=dry_run)

    def contents(self) -> Table:
        """Return how many of each thing the collection holds."""
        from exampp.store.inputs import counts

        return Table.of(["thing", "count"], list(counts(self.connection).items()))

    def pool(self, depth: int = DEPTH) -> Tables:
        """The pool of the first `depth` passages of all runs: its systems (`pool`), its `cells`."""
        from exampp.inputs.pooling import pool_tables

        systems, banks = pool_tables(self.connection, depth)
        return Tables({"pool": systems, "cells": banks})

    def query_texts(self) -> dict[str, str]:
        """Return the text of every query that is known from more than a bank, by id."""
        return known_queries(self.connection)

    def search(
        self,
        text: str,
        *,
        kinds: Sequence[SearchKind] = SEARCH_KINDS,
        grader: str | None = None,
        bank: str | None = None,
        most: int = 20,
    ) -> list[SearchPage]:
        """Find the records that hold all words of a text, whatever their case, kind by kind.

        What stands in quotation marks is one word.

        Args:
            text: The words.
            kinds: The kinds of records that are searched.
            grader: The one whose replies are searched, named as in `grades`; by default all.
            bank: The one whose items are searched; by default all.
            most: How many records of each kind are wanted.

        Raises:
            InputError: An option is wrong.
        """
        from exampp.store.search import search

        return search(self.connection, text, kinds=kinds, grader=grader, bank=bank, most=most)

    def bank(self, name: str | None = MAIN_BANK) -> Bank:
        """The bank of that name, or the only one: its items, history and checks, how to edit it."""
        from exampp.bank import Bank

        return Bank(self.connection, name or only_bank(self.connection, self.path))

    def banks(self) -> Table:
        """Return the banks: how much of what they hold, and what is sealed."""
        from exampp.bank import banks_of

        return banks_of(self.connection)

    @property
    def decisions(self) -> Decisions:
        """What people decided."""
        from exampp.grades.decisions import Decisions

        return Decisions(self.connection)

    @property
    def systems(self) -> Systems:
        """The systems: how many passages each returns; removing them."""
        return Systems(self.connection)

    def grading(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        name: str | None = None,
        scale: RatingScale | None = None,
        same_text_same_grade: bool = False,
        bank: str | None = None,
        depth: int = DEPTH,
        pool: str = "ranked",
        select: str = "due",
        answers_of: str | None = None,
        max_failures: int = MAX_FAILURES,
        max_queries: int | None = None,
        shard: str | None = None,
        on: str | Cluster | None = None,
        batches: bool | Batches = False,
        **options: Any,
    ) -> GradingRun:
        """Return a grading run that is planned but not started: iterate over its `steps`.

        `grader` is `draft`, `hf`, `openai`, a grader of your own, or a function: (item, passage) ->
        rating, `Reply`, or None where it cannot tell, perhaps async. A function has a `name`, by
        which it is known, and a `scale` (0 to 5). It is called for every cell, also where texts are
        equal, unless `same_text_same_grade`. `options` are those of the grader, such as model,
        prompt and kind. `answers_of` names a grader whose answers are verified. `select="failed"`
        takes failed cells, `max_queries` the first queries, `shard` a part (`3/16`), `pool`
        `ranked`, `judged` or `all` passages.
        `on` is a Ray cluster that grades; with `batches` a server answers at half the price.
        """
        refuse_graded_file(self.connection)
        from exampp.grading.plan import FunctionOptions, plan_run

        return plan_run(
            self.connection,
            self.path,
            grader,
            options,
            FunctionOptions(name, scale, same_text_same_grade),
            bank=bank,
            depth=depth,
            pool=pool,
            max_queries=max_queries,
            shard=shard,
            answers_of=answers_of,
            select=select,
            max_failures=max_failures,
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
        from exampp.grading.derived import label_collection

        return label_collection(self.connection, self.path, calibration, bank)

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
        from exampp.grading.regrade import reparse

        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        return reparse(
            self.connection,
            self._stored(chosen),
            rules=rules,
            mode=compat,
            unnumbered=unnumbered,
            dry_run=dry_run,
        )

    def status(self) -> Table:
        """Per grader and bank: cells graded, due, and tried without a grade, by reason."""
        return self.status_tables()["graders"]

    def status_tables(self) -> dict[str, Table]:
        """Return where grading stands, as tables.

        `readings`: how many cells each rule of reading made, with a reply of each. `spent`: what
        the runs of each grader took. `graders`: see `status`.
        """
        from exampp.grading.status import status_tables

        return status_tables(self.connection)

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""
        return tuple(stored.identity for stored in graders(self.connection))

    # ---- choosing grades ------------------------------------------------------------------------

    def grades(
        self,
        grader: str | None = None,
        *,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        runs: Sequence[str | Path] = (),
        systems: Sequence[str] = (),
        without: Sequence[str] = (),
        part: str | None = None,
        decisions: DecisionChoice = "with",
    ) -> Grades:
        """Choose the grades of the one grader that fits, on one bank.

        Human decisions override the grades of their cells.

        Args:
            grader: A model, `model:prompt`, or the start of a grader's key.
            prompt: The prompt of the grader.
            kind: What it grades: question, nugget or query.
            bank: The bank; for a graded file a bank file to evaluate on.
            runs: Run files that take the place of the rankings.
            systems: Only these systems count, if some are named.
            without: These systems do not count.
            part: Only the `public` or the `sealed` items of a bank that was split.
            decisions: "without" leaves human decisions out.

        Raises:
            InputError: No grader fits.
            AmbiguousGrader: Several do.
        """
        check_lists(runs=runs, systems=systems, without=without)
        check_decisions(decisions)
        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        return self._grades(
            chosen,
            bank,
            runs=tuple(runs),
            systems=tuple(systems),
            without=tuple(without),
            part=part,
            with_decisions=decisions == "with",
            choice={"grader": grader, "prompt": prompt, "kind": kind, "bank": bank},
        )

    def panel(
        self,
        *graders: str,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | Sequence[str] | None = None,
        runs: Sequence[str | Path] = (),
        systems: Sequence[str] = (),
        without: Sequence[str] = (),
        decisions: DecisionChoice = "with",
    ) -> Panel:
        """Choose the grades of every grader that fits one of the names, or of all without names.

        Takes the options of `grades`; of several banks, those that hold what a grader grades.
        Raises InputError where a name fits none.
        """
        from exampp.grades.panel import Panel

        check_lists(runs=runs, systems=systems, without=without)
        check_decisions(decisions)
        found: dict[str, GraderIdentity] = {}
        for name in graders or (None,):
            fitting = fitting_graders(self.graders, grader=name, prompt=prompt, kind=kind)
            # none: the error that lists them
            fitting = fitting or [
                choose_grader(self.graders, grader=name, prompt=prompt, kind=kind)
            ]
            found |= {one.key: one for one in fitting}
        members = (
            self._grades(
                one,
                name,
                runs=tuple(runs),
                systems=tuple(systems),
                without=tuple(without),
                with_decisions=decisions == "with",
            )
            for one in found.values()
            for name in self._named_banks(one.kind, bank)
        )
        return Panel(tuple(members))

    def assert_not_worse(
        self,
        baseline: Earlier | None = None,
        measures: Sequence[str] = ("Cover@20",),
        *,
        margin: float,
        grader: str | None = None,
        bank: str | None = None,
        **options: Any,
    ) -> None:
        """For tests: raise where a system is worse than a baseline. See `Grades`."""
        chosen = self.grades(grader, bank=bank)
        chosen.assert_not_worse(baseline, measures, margin=margin, **options)

    def _named_banks(self, kind: str, bank: str | Sequence[str] | None) -> Sequence[str | None]:
        """Those of the named banks that hold items of a kind; the first where none is known to."""
        named = [bank] if bank is None or isinstance(bank, str) else list(dict.fromkeys(bank))
        if self._graded_file is not None and kind != "query":
            return named
        known = [] if kind == "query" else bank_names(self.connection, kind)
        return [one for one in named if one in known] or named[:1]

    def _grades(
        self, chosen: GraderIdentity, bank: str | None, **options: Unpack[_Choice]
    ) -> Grades:
        from exampp.grades.grades import Grades

        connection, name = self.connection, bank
        if self._graded_file is not None:
            self._check_graded_file(options)
            if bank is not None:
                connection, name = self._graded_file.open(bank), Path(bank).name
        return Grades(
            connection=connection,
            stored=self._stored(chosen, connection),
            bank=bank_of_kind(connection, name, chosen.kind, self.path),
            **options,
        )

    def _check_graded_file(self, options: _Choice) -> None:
        if not options.get("with_decisions", True):
            raise InputError(
                "a graded file does not tell what people decided",
                file=self.path,
                hint="Leave out --decisions, or give a collection",
            )
        if options.get("part") is not None:
            raise InputError("a graded file has no sealed part", file=self.path)

    def _stored(
        self, identity: GraderIdentity, connection: sqlite3.Connection | None = None
    ) -> StoredGrader:
        found = graders(connection or self.connection)
        return next(one for one in found if one.identity == identity)
