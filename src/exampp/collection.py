"""The main class: one collection, with one method per stage.

with exampp.Collection.create("my.exam") as collection:
    collection.import_files("queries.jsonl", "passages.jsonl", "bank.tsv", "bm25.run")
    collection.grade("draft")
    print(collection.grades().evaluate(min_rating=4))
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from exampp.errors import InputError
from exampp.graders.described import with_grader_options
from exampp.inputs.graded_file import GradedFile
from exampp.inputs.systems import Systems
from exampp.records.cascade import UNSURE_WITHIN
from exampp.records.gradebook import DecisionChoice, check_decisions
from exampp.records.graders import (
    GraderIdentity,
    RatingScale,
    choose_grader,
    fitting_graders,
    same_but_for_kind,
)
from exampp.records.inputs import CACHED_CELLS, PASSAGE_TOKENS
from exampp.records.selection import SEARCH_KINDS, SearchKind
from exampp.results.result import Table, Tables
from exampp.sanitize import check_lists, check_path
from exampp.stopping import MAX_FAILURES
from exampp.store.bank import (
    MAIN_BANK,
    bank_names,
    bank_of_kind,
    item_kinds,
    known_queries,
    only_bank,
)
from exampp.store.cells import DEPTH
from exampp.store.connection import connect, is_collection, refuse_graded_file
from exampp.store.grades import StoredGrader, graders, graders_with_grades
from exampp.store.inputs import counts, queries_with_text

if TYPE_CHECKING:
    from exampp.analysis.banks import BankComparison, MatchedBanks
    from exampp.analysis.gate import GateSettings
    from exampp.bank import Bank
    from exampp.graders.base import Grader
    from exampp.grades.decisions import Decisions
    from exampp.grades.gating import Earlier
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.grading.batches import Batches
    from exampp.grading.costs import GradingCosts
    from exampp.grading.derived import Calibrated, Frozen
    from exampp.grading.merge import Merged
    from exampp.grading.regrade import Reparsed
    from exampp.grading.run import GradingRun, Progress
    from exampp.grading.workers import Cluster
    from exampp.inputs.checking import Checked
    from exampp.inputs.importing import ImportReport
    from exampp.measures.names import Measure
    from exampp.review.record import QueryRecord
    from exampp.scorer import Scorer
    from exampp.store.search import SearchPage


def open(  # noqa: A001
    path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
) -> Collection:
    """Open a collection, or a file of graded passages (read-only).

    A graded file is imported once into the user's cache folder.

    Args:
        path: The collection or the graded file.
        on_error: "skip" skips bad lines of a graded file; notes report them.
        scale: Scale of the graders of a graded file whose prompt is unknown, as (0, 3); by default
            from 0 to the highest label found.

    Raises:
        InputError: The path is neither, or a scale is given for a collection.
    """
    if is_collection(path):
        if scale is not None:
            raise InputError(
                "a collection stores the scales of its graders",
                file=path,
                hint="Remove --scale, or import the graded passages again with it",
            )
        return Collection(path)
    if not check_path(path).exists():
        hint = "Check the path, or make a collection: exampp import or, in Python, exampp.create"
        raise InputError("no such file", file=path, hint=hint)
    return Collection._of_graded_file(GradedFile(Path(path), on_error, scale))


def create(path: str | Path, *, exist_ok: bool = False) -> Collection:
    """Create and open an empty collection; `exist_ok` opens an existing one.

    Raises:
        InputError: The file exists.
    """
    return Collection.create(path, exist_ok=exist_ok)


class Collection:
    """One exam: inputs, bank, grades and decisions in one SQLite file.

    `Collection(path)` opens an existing collection; `Collection.create` makes one, and
    `exampp.open` also opens a graded file. Use it as a context manager, or call `close`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self.connection = connect(self.path)
        self._graded_file: GradedFile | None = None

    @classmethod
    def _of_graded_file(cls, file: GradedFile) -> Self:
        """Open a graded file, read-only."""
        collection = cls.__new__(cls)
        collection.path, collection.connection, collection._graded_file = (
            file.path,
            file.open(),
            file,
        )
        return collection

    def __repr__(self) -> str:
        return f"<{'exam' if self._graded_file is None else 'graded file'} {self.path}>"

    def _repr_html_(self) -> str:
        """Return a card for notebooks: what it holds, what is pending, and the next step."""
        from exampp.grading.status import collection_card

        return collection_card(self.connection, self.path, is_file=self._graded_file is not None)

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
        """Create and open an empty collection; `exist_ok` opens an existing one."""
        path = check_path(path)
        if path.exists() and path.stat().st_size and not exist_ok:
            raise InputError("already exists", file=path, hint="Choose another name, or open it")
        from exampp.formats.output import create_collection

        create_collection(path)
        return cls(path)

    def close(self) -> None:
        """Close the file; all commits are on disk."""
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
        columns: Mapping[str, str | Sequence[str]] | None = None,
        author: str | None = None,
        update: bool = False,
        dry_run: bool = False,
    ) -> ImportReport:
        """Import all files or none; file types are detected from content.

        The report lists the changes. Graded texts, rankings, grades, and items edited by people
        change only with `update`; `dry_run` reports the changes without making them. Raises
        InputError for malformed input; the collection is then unchanged.

        Args:
            files: Files or folders; their type is detected, or is `kind`.
            kind: The type of `files` if detection fails.
            queries: Files of queries. `passages`, `banks`, `runs`, `qrels` and `responses`
                likewise.
            bank: Name of the bank that items go into.
            on_error: "skip" skips bad lines and counts them.
            unknown_passages: "keep" accepts ranked passages without a text.
            corpus: A file, a folder, or `irds:ID` with the texts of ranked and judged passages.
            depth: Passages imported from each ranking: by default all, or 20 with a corpus.
            system: The default system of responses.
            passage_tokens: Maximum length of the passages that responses are split into; 0 splits
                at sentences.
            cited: Also store the citations of responses as rankings of systems `NAME:cited`.
            scale: Scale of graders whose prompt is unknown, such as (0, 3); by default from 0 to
                the highest label found. Unreadable ratings are stored as unparsed and counted.
            columns: The column of each name, such as {"query_id": "topic"}; several `answer`
                columns are the answers of one system each.
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
        *tables: object,
        queries: object = None,
        passages: object = None,
        bank: object = None,
        runs: object = None,
        qrels: object = None,
        responses: object = None,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        system: str | None = None,
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
        """Import data from memory, all or nothing; the counterpart of `import_files`.

        `tables` are recognised by their columns, such as question, system, answer, contexts and
        reference. Each argument is a data frame (polars, pandas, pyarrow, or any with Arrow's C
        stream), an iterable of dicts, or a dict: `queries` and `passages` of id -> text, `bank` of
        query id -> items, `qrels` of query id -> {passage id: relevance}. `runs` maps each system
        to a run, which may be a dict of query id -> {passage id: score} or -> passage ids in order;
        `responses` maps each system to query id -> text. Columns have the same names as in files.

        Ids are stored as text; integers are converted, numbers with a fraction are refused. None,
        NaN and NaT mean missing. Errors name the argument and the row, such as `queries:3`.

        Example:
            collection.add(frame, columns={"system": "release"})

        Args:
            tables: Tables whose columns decide what they hold.
            queries: A table of queries; `passages`, `bank`, `runs`, `qrels` and `responses`
                likewise.
            columns: The column of each name, such as {"query_id": "topic"}; several `answer`
                columns are the answers of one system each.
            system: The system of answers and rankings that do not name one.
            bank_name: The bank that items go into.
            on_error: "skip" leaves bad rows out and counts them.
        """
        from exampp.inputs.files import given_data
        from exampp.review.impact import import_or_dry_run

        by_role = queries, passages, bank, runs, qrels, responses
        return import_or_dry_run(
            self.connection,
            given_data(tables, by_role, system),
            on_error,
            corpus,
            author,
            bank=bank_name,
            unknown_passages=unknown_passages,
            depth=depth,
            system=system,
            passage_tokens=passage_tokens,
            update=update,
            dry_run=dry_run,
            cited=cited,
            columns=columns or {},
        )

    def export(
        self,
        path: str | Path,
        kind: str = "workbench",
        *,
        bank: str | None = None,
        part: str | None = None,
    ) -> int:
        """Write the collection as a file of `kind`; return the number of records.

        `part="public"` omits the sealed items of a bank. The data sets `beir` and `croissant`
        always omit them. Results and training data are written by `Grades.export`, here for the
        only grader.

        Raises InputError for an unknown kind, and for the part `sealed` of other kinds than `bank`.
        """
        from exampp.exports.stored import export_records
        from exampp.exports.table import RESULT_EXPORTS
        from exampp.formats.output import check_outputs

        check_outputs([Path(path)], [self.path])
        if kind in RESULT_EXPORTS:
            return self.grades(bank=bank, part=part).export(path, kind).number
        if part is not None and kind == "bank":
            return self.bank(bank or MAIN_BANK).export(path, part=part)
        return export_records(self.connection, Path(path), kind, bank, part)

    def check(self) -> Checked:
        """Return damage, foreign changes and impossible values in the collection."""
        from exampp.inputs.checking import check_collection

        return check_collection(self.connection, self.path)

    def merge(self, *others: str | Path, dry_run: bool = False) -> Merged:
        """Merge other collections into this one: copies or shards of it.

        Either all are merged or, after an error, none; more than ten are merged in groups of ten.
        The others are only read, and merging again changes nothing. The result lists the conflicts
        with the stored values; `dry_run` changes nothing. Raises InputError for a file that is not
        a collection, is damaged, is this collection, or was made by a newer exampp, and while a run
        is grading one of them.
        """
        from exampp.grading.merge import merge

        return merge(self.connection, self.path, others, dry_run=dry_run)

    def contents(self) -> Table:
        """Return the counts of all kinds of records."""
        return Table.of(["thing", "count"], list(counts(self.connection).items()))

    def pool(self, depth: int = DEPTH) -> Tables:
        """Return the tables `pool` (by system) and `cells` for the top `depth` of all runs."""
        from exampp.inputs.pooling import pool_tables

        systems, banks = pool_tables(self.connection, depth)
        return Tables({"pool": systems, "cells": banks})

    def query_texts(self) -> dict[str, str]:
        """Return the texts of queries by id, of all with a text, pool, ranking or judgment."""
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
        """Find records that contain all words of a text, ignoring case.

        A quoted phrase counts as one word.

        Args:
            text: The words.
            kinds: The kinds of records to search.
            grader: The grader whose replies are searched, named as in `grades`; by default all.
            bank: The bank whose items are searched; by default all.
            most: Maximum number of records of each kind.

        Raises:
            InputError: An option is wrong.
        """
        from exampp.store.search import search

        return search(self.connection, text, kinds=kinds, grader=grader, bank=bank, most=most)

    def bank(self, name: str | None = MAIN_BANK) -> Bank:
        """Return the bank of that name, or the only bank."""
        from exampp.bank import Bank

        return Bank(self.connection, name or only_bank(self.connection, self.path))

    def banks(self) -> Table:
        """Return the banks with their counts of items and the sealed part."""
        from exampp.bank import banks_of

        return banks_of(self.connection)

    def matched_banks(
        self,
        reference: str,
        banks: Sequence[str] = (),
        matcher: str = "text",
        grader: str | None = None,
    ) -> MatchedBanks:
        """Match the items of banks with those of the bank `reference`; see `compare_banks`."""
        from exampp.grades.matching import match_stored_banks

        def grades_of(bank: str) -> Iterator[Grades]:
            kinds = item_kinds(self.connection, bank)
            for one in self._same_but_for_kind(grader):
                if one.kind in kinds:
                    yield self._grades(one, bank)

        return match_stored_banks(self.connection, reference, banks, matcher, grades_of)

    def compare_banks(
        self,
        reference: str | None = None,
        banks: Sequence[str] = (),
        *,
        matcher: str = "text",
        grader: str | None = None,
        k: int | None = None,
        best: int = 0,
        shared: bool = False,
        min_rating: int | None = None,
    ) -> BankComparison:
        """Compare banks with the bank `reference` of the same queries, without a model.

        Without a `reference`, return the matches that `grader` made in this collection; see
        `exampp.bank_matches.collect_matches` and `Grades.banks`.

        Args:
            reference: The reference bank.
            banks: The banks to compare; by default all others.
            matcher: `text` (equal or a paraphrase), `similarity` (of the texts), `keys` (equal
                answer keys), or `coverage` (by the same passages, according to `grader`).
            k: Count only the first k items of each bank and query.
            best: Choose so many items of each query from all banks by greedy choice.
            shared: Leave out queries of which no other bank has items.
            min_rating: Lowest rating that is the same, in matches that a grader made.

        Raises InputError for an unknown bank or matcher, or if nothing can be compared.
        """
        from exampp.analysis.banks import compare_banks

        if reference is None:
            grades = self._grades(self._same_but_for_kind(grader)[0], None)
            return grades.banks(k=k, best=best, shared=shared, min_rating=min_rating)
        matched = self.matched_banks(reference, banks, matcher, grader)
        return compare_banks(matched, k=k, best=best, shared=shared)

    @property
    def decisions(self) -> Decisions:
        """Return the human decisions."""
        from exampp.grades.decisions import Decisions

        return Decisions(self.connection)

    @property
    def systems(self) -> Systems:
        """Return the systems, to list or remove them."""
        return Systems(self.connection)

    @with_grader_options()
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
        select: str = "pending",
        answers_of: str | None = None,
        max_failures: int = MAX_FAILURES,
        max_queries: int | None = None,
        shard: str | None = None,
        on: str | Cluster | None = None,
        batches: bool | Batches = False,
        dry_run: bool = False,
        measures: Sequence[Measure | str] = (),
        min_rating: int | Sequence[int] | None = None,
        may_miss: float | None = None,
        until: str | None = None,
        margin: float | None = None,
        baseline_system: str | None = None,
        after: str | None = None,
        unsure: float = UNSURE_WITHIN,
        audit: float | None = None,
        audit_seed: int = 0,
        **options: Any,
    ) -> GradingRun:
        """Plan a grading run without starting it: iterate over its `steps`.

        `grader` is `draft`, `hf`, `openai`, a custom grader, or a function (item, passage) ->
        rating, `Reply`, or None for no grade, optionally async. A function needs a `name`, which
        identifies it, and a `scale` (default 0 to 5). It is called for every cell, even for equal
        texts, unless `same_text_same_grade` is set. `options` are those of the grader, such as
        model, prompt and kind. `answers_of` names a grader whose answers are verified.
        `select="failed"` retries failed cells, `max_queries` limits the run to the first queries,
        `shard` to a part (`3/16`), `pool` to `ranked`, `judged` or `all` passages. `on` is the Ray
        cluster to use; `batches` uses the batch API of a server at half the price. With `measures`,
        such as `["Cover@20"]`, only the cells that their values at `min_rating` need are graded;
        the values are those of all grades. With `may_miss`, cells with a smaller chance of covering
        are skipped, except those of a random share `audit` of the items (default .2), which
        correct Cover for what is missed. `until="order"` grades queries in random order until all
        queries would order the systems in the same way, unless their means differ by at most
        `margin`, and `until="gate"` until they would give the same verdict on requirements, such as
        `["Cover@20>=0.7"]`, or relative to `baseline_system`. `after` names a cheaper grader that
        has graded all cells: only those where it is `unsure` and a random `audit` of the others
        (default .05) are graded, and a cascade of both is stored (see `Panel.cascade`). With
        `dry_run`, nothing is graded; use it for `estimate`.
        """
        refuse_graded_file(self.connection)
        from exampp.grading.plan import FunctionOptions, plan_run
        from exampp.grading.target import Stop

        if until is None and (margin, baseline_system) != (None, None):
            raise InputError("margin and baseline_system have no effect without until")
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
            dry_run=dry_run,
            measures=measures,
            min_rating=min_rating,
            may_miss=may_miss,
            until=None if until is None else Stop(until, margin, baseline_system),
            after=after,
            unsure=unsure,
            audit=audit,
            audit_seed=audit_seed,
        )

    @with_grader_options("grading")
    def grade(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        on_progress: Callable[[Progress], None] | None = None,
        **options: Any,
    ) -> Progress:
        """Grade all pending passage-question pairs; continues an earlier call.

        Takes the options of `grading`, and those of the grader. `on_progress` is called after every
        step.

        Example:
            collection.grade("openai", model="gpt-4o-mini", base_url="http://localhost:8000/v1")
        """
        tell = on_progress or (lambda _: None)
        for progress in self.grading(grader, **options).steps():
            tell(progress)
        return progress

    @with_grader_options()
    def scorer(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        measure: str = "Cover@20",
        min_rating: int | None = None,
        bank: str | None = None,
        name: str | None = None,
        scale: RatingScale | None = None,
        same_text_same_grade: bool = False,
        passage_tokens: int = PASSAGE_TOKENS,
        cached: int = CACHED_CELLS,
        **options: Any,
    ) -> Scorer:
        """Return a function that scores texts by the exam and stores nothing.

        Takes a grader as `grading` does. The measure is Cover, Points, Avoided or a nugget score;
        `passage_tokens` is as for `import_files`, `cached` the number of grades in memory.

        Example:
            exam.scorer("draft").score("q1", ["An answer.", "Another one."]).values
        """
        refuse_graded_file(self.connection)
        from exampp.scorer import GraderChoice, Scorer, ScorerSettings

        named = name, scale, same_text_same_grade
        choice = GraderChoice.of(self.path, grader, bank, named, options)
        return Scorer(choice, ScorerSettings(measure, min_rating, passage_tokens, cached))

    @with_grader_options("grading")
    def grading_costs(
        self,
        grader: str | Grader | Callable[..., Any],
        *,
        price_hour: float | None = None,
        **options: Any,
    ) -> GradingCosts:
        """Return what grading would cost in several ways; nothing is sent.

        The ways are one or several items a request, for all cells or for `measures` (default Cover
        at the depth). Takes the options of `grading`, and the price of an hour of the machine.

        Example:
            collection.grading_costs("openai", model="m", price_read=0.15, price_written=0.6)
        """
        from exampp.grading.costs import grading_costs

        return grading_costs(partial(self.grading, grader, dry_run=True), options, price_hour)

    def calibrate(self, calibration: Frozen, bank: str | None = None) -> Calibrated:
        """Label passages by a calibration or its file; the labels become a new grader."""
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
        matching: str | None = None,
        compat: str = "exam",
        dry_run: bool = False,
    ) -> Reparsed:
        """Parse the stored replies of a grader again, without calling the model.

        The current rules and answer keys apply. `rules` is a prompt, by name or file, with other
        reading rules. `unnumbered` is the rule for replies without a number, `matching` the rule
        for extracted answers (`guarded` or `papers`); `compat="rubric"` reads replies like the
        papers' own program. With other rules than before, the result is a new grader; `dry_run`
        writes nothing. Raises InputError if there are no replies.
        """
        from exampp.grading.regrade import reparse

        identity = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        return reparse(
            self.connection,
            self._stored(identity),
            rules=rules,
            mode=compat,
            unnumbered=unnumbered,
            matching=matching,
            dry_run=dry_run,
        )

    def status(self) -> Table:
        """Return graded, pending and failed cells by grader and bank, with reasons."""
        return self.status_tables()["graders"]

    def status_tables(self) -> dict[str, Table]:
        """Return the state of grading as tables.

        `readings`: cells per reading rule, each with an example. `spent`: time, tokens and cost per
        grader. `graders`: see `status`.
        """
        from exampp.grading.status import status_tables

        return status_tables(self.connection)

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Return all graders, in order of first appearance."""
        return tuple(stored.identity for stored in graders(self.connection))

    def _rated(self, **choice: str | None) -> tuple[GraderIdentity, ...]:
        """Return the graders that have any grade, or all if none of those fits a choice."""
        rated = graders_with_grades(self.connection)
        known = graders(self.connection)
        with_grades = tuple(one.identity for one in known if one.key in rated)
        if fitting_graders(with_grades, **choice):
            return with_grades
        return tuple(one.identity for one in known)

    def _same_but_for_kind(self, grader: str | None) -> list[GraderIdentity]:
        """Return the grader that matches, with those that differ in their kind of item alone."""
        known = self._rated(grader=grader)
        fitting = fitting_graders(known, grader=grader)
        if not fitting or not all(same_but_for_kind(fitting[0], one) for one in fitting):
            fitting = [choose_grader(known, grader=grader)]
        return [one for one in known if same_but_for_kind(fitting[0], one)]

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
        """Return the grades of one grader on one bank.

        Human decisions override the grades of their cells.

        Args:
            grader: A model, `model:prompt`, or the start of a grader's key.
            prompt: The prompt of the grader.
            kind: The kind of graded item: question, nugget or query.
            bank: The bank; for a graded file, a bank file.
            runs: Run files to evaluate instead of the stored rankings.
            systems: Only these systems, or `answers` or `contexts` of RAG systems; by default all.
            without: Systems to leave out, named in the same way.
            part: Only the `public` or the `sealed` items of a split bank.
            decisions: "without" ignores human decisions.

        Raises:
            InputError: No grader matches.
            AmbiguousGrader: Several graders match.
        """
        check_lists(runs=runs, systems=systems, without=without)
        check_decisions(decisions)
        choice = {"grader": grader, "prompt": prompt, "kind": kind}
        identity = choose_grader(self._rated(**choice), **choice)
        return replace(
            self._grades(identity, bank, decisions, part),
            runs=tuple(runs),
            systems=tuple(systems),
            without=tuple(without),
            choice={**choice, "bank": bank},
        )

    def record(
        self,
        query_id: str,
        systems: Sequence[str] = (),
        *,
        grader: str | None = None,
        bank: str | None = None,
        min_rating: int | None = None,
    ) -> QueryRecord:
        """Return a query as a record, with or without grades; see `Grades.record`.

        The query is named by its id or by its whole text.
        """
        from exampp.grades.grades import Grades

        query_id = queries_with_text(self.connection, [query_id]).get(query_id, query_id)

        if self.graders or grader:
            grades = self.grades(grader, bank=bank)
        else:
            kind = next(iter(item_kinds(self.connection, bank)), "question")
            of_kind = bank or next(iter(bank_names(self.connection, kind)), MAIN_BANK)
            nobody = StoredGrader(0, GraderIdentity("", "", kind))
            grades = Grades(connection=self.connection, stored=nobody, bank=of_kind)
        return grades.record(query_id, systems, min_rating=min_rating)

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
        """Return the grades of all graders that match one of the names (default: all).

        Takes the options of `grades`; each grader is evaluated on the banks with items of its kind.
        Raises InputError if nothing matches a name.
        """
        from exampp.grades.panel import Panel

        check_lists(runs=runs, systems=systems, without=without)
        check_decisions(decisions)
        matching: dict[str, GraderIdentity] = {}
        for name in graders or (None,):
            choice = {"grader": name, "prompt": prompt, "kind": kind}
            known = self._rated(**choice)
            # no match: raises the error that lists the graders
            fitting = fitting_graders(known, **choice) or [choose_grader(known, **choice)]
            matching |= {one.key: one for one in fitting}
        members = (
            replace(
                self._grades(one, name, decisions),
                runs=tuple(runs),
                systems=tuple(systems),
                without=tuple(without),
            )
            for one in matching.values()
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
        baseline_system: str | None = None,
        systems: Sequence[str] = (),
        settings: GateSettings | None = None,
    ) -> None:
        """Raise GateFailed if a system is worse than a baseline; for tests. See `Grades`."""
        __tracebackhide__ = True  # pytest shows the line of the test
        self.grades(grader, bank=bank).assert_not_worse(
            baseline,
            measures,
            margin=margin,
            baseline_system=baseline_system,
            systems=systems,
            settings=settings,
        )

    def _named_banks(self, kind: str, bank: str | Sequence[str] | None) -> Sequence[str | None]:
        """Return the named banks that have items of a kind, else the first one."""
        named = [bank] if bank is None or isinstance(bank, str) else list(dict.fromkeys(bank))
        if self._graded_file is not None and kind != "query":
            return named
        known = [] if kind == "query" else bank_names(self.connection, kind)
        return [one for one in named if one in known] or named[:1]

    def _grades(
        self,
        identity: GraderIdentity,
        bank: str | None,
        decisions: DecisionChoice = "with",
        part: str | None = None,
    ) -> Grades:
        from exampp.grades.grades import Grades

        connection, name = self.connection, bank
        if self._graded_file is not None:
            self._check_graded_file(decisions, part)
            if bank is not None:
                connection, name = self._graded_file.open(bank), Path(bank).name
        return Grades(
            connection=connection,
            stored=self._stored(identity, connection),
            bank=bank_of_kind(connection, name, identity.kind, self.path),
            part=part,
            with_decisions=decisions == "with",
        )

    def _check_graded_file(self, decisions: DecisionChoice, part: str | None) -> None:
        if decisions == "without":
            raise InputError(
                "a graded file contains no human decisions",
                file=self.path,
                hint="Leave out --decisions, or use a collection",
            )
        if part is not None:
            raise InputError("a graded file has no sealed part", file=self.path)

    def _stored(
        self, identity: GraderIdentity, connection: sqlite3.Connection | None = None
    ) -> StoredGrader:
        stored = graders(connection or self.connection)
        return next(one for one in stored if one.identity == identity)
