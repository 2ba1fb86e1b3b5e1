"""The methods of a collection with which people own its banks; each is a command, too."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from exampp.bank.changes import Operation, Version
from exampp.bank.generating import GenerationRun, Settled, generation_tables
from exampp.bank.owning import NOW, Bank, list_banks
from exampp.bank.verifying import Verification, verify_in_collection
from exampp.errors import InputError
from exampp.evaluate.cover import Missing
from exampp.evaluate.exams import FacetChoice
from exampp.evaluate.measure import Measure
from exampp.evaluate.parts import parts_table
from exampp.grade.graders import called, make_writer
from exampp.grade.kept import verify_again
from exampp.graded import evaluate_gradebook
from exampp.llm.base import Grader
from exampp.llm.options import Options
from exampp.prompts import generation
from exampp.records.gradebook import Gradebook, QueryGrades
from exampp.report.table import Table
from exampp.review.impact import MEASURES
from exampp.review.preview import Preview, preview
from exampp.review.trial import Effect, Standing, Trial, effects, standings
from exampp.store.bank import MAIN_BANK, Edit, Settle
from exampp.store.bank_history import ItemState
from exampp.store.grades import StoredGrader

T = TypeVar("T")


class Banking:
    """The half of a collection that is about its banks.

    `author` is by default the user, and `reason` says why; both are kept with every edit. Nothing
    is ever deleted: any state of a bank can be seen and restored.
    """

    _connection: sqlite3.Connection
    _looking: Settle | None = None
    """Looks at what an edit leads to, before it is taken back."""

    @abstractmethod
    def _edit(self, author: str | None, reason: str) -> Edit:
        """Who edits, why and when."""

    @abstractmethod
    def _chosen(
        self, grader: str | None, prompt: str | None, kind: str | None, bank: str | None
    ) -> tuple[StoredGrader, str]:
        """The one grader that fits, and the bank meant."""

    # ---- looking --------------------------------------------------------------------------------

    def bank_list(self) -> Table:
        """The banks of the collection."""
        return list_banks(self._connection)

    def bank_show(
        self, query_id: str | None = None, *, bank: str = MAIN_BANK, part: str | None = None
    ) -> Table:
        """The items of a bank, or of one query, with their ids; retired ones are marked."""
        return Bank(self._connection, bank).show(query_id, part=part)

    def bank_version(self, *, bank: str = MAIN_BANK) -> Version:
        """The state of a bank: the number of its last edit, and a hash of all its items."""
        return Bank(self._connection, bank).version()

    def bank_lint(self, *, bank: str = MAIN_BANK) -> Table:
        """What is likely wrong with a bank: each finding with its item and why it matters."""
        return Bank(self._connection, bank).lint()

    def bank_log(
        self,
        query_id: str | None = None,
        *,
        item: str | None = None,
        kind: str | None = None,
        last: int | None = None,
        bank: str = MAIN_BANK,
    ) -> Table:
        """Every edit of a bank, newest last; `kind` is that of the `item`."""
        return Bank(self._connection, bank).log(query_id, item, last, kind)

    def bank_diff(self, one: str | int, other: str | int = NOW, *, bank: str = MAIN_BANK) -> Table:
        """What changed between two states: numbers of edits, dates, `now`, or names of banks."""
        return Bank(self._connection, bank).diff(str(one), str(other))

    # ---- editing --------------------------------------------------------------------------------

    def bank_add(
        self,
        query_id: str,
        text: str,
        *,
        kind: str = "question",
        facet_id: str | None = None,
        answers: Sequence[str] = (),
        weight: float = 1.0,
        item_id: str = "",
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
        seen: int | None = None,
    ) -> Table:
        """Add an item to a query; its id is made from its text unless one is given.

        `seen` is the last edit that the person knew of: EditConflict where items of the query were
        edited since.
        """
        new = ItemState(query_id, item_id, text, kind, facet_id, tuple(answers), weight)
        return Bank(self._connection, bank, self._settle_edit).add(
            new, self._edit(author, reason), seen
        )

    def bank_edit(
        self,
        operation: str,
        item: str,
        *values: str,
        query_id: str | None = None,
        kind: str | None = None,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
        seen: int | None = None,
    ) -> Table:
        """`reword` (text), `retire`, `restore`, `weight` (number) or `key` (answers) of an item.

        `item` is its id or the start of it; `kind` tells a question and a nugget of one id apart.
        A reworded item is due again, and nothing else is.
        `seen` is the last edit that the person knew of: EditConflict where the item was edited
        since.
        """
        edit = self._edit(author, reason)
        return Bank(self._connection, bank, self._settle_edit).edit(
            operation, item, values, edit, query_id, seen, kind
        )

    def bank_save(
        self,
        query_id: str,
        edits: Sequence[Operation | ItemState],
        *,
        seen: Mapping[str, int] | None = None,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make several edits of a query's items: all of them, or none where one is refused.

        An ItemState is an item to be added. `seen` has, by item id, the last edit that the person
        knew of: EditConflict where one of these items was edited since.
        """
        edit = self._edit(author, reason)
        return Bank(self._connection, bank, self._settle_edit).save(
            query_id, edits, edit, seen or {}
        )

    def bank_undo(
        self,
        number: int,
        *,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Take back the newest edit of an item, by a further edit.

        EditConflict where `number` is not the newest edit of its item.
        """
        return Bank(self._connection, bank, self._settle_edit).undo(
            number, self._edit(author, reason)
        )

    def bank_apply(
        self,
        file: str | Path,
        *,
        retire_missing: bool = False,
        force: bool = False,
        dry_run: bool = False,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make what was changed in a file of `bank_export` edits of the bank, and list them.

        InputError where the bank was edited since, unless `force` lets both stand.
        """
        return Bank(self._connection, bank, self._settle_edit).apply(
            Path(file),
            self._edit(author, reason),
            retire_missing=retire_missing,
            force=force,
            dry_run=dry_run,
        )

    def bank_revert(
        self,
        to: str | int,
        *,
        dry_run: bool = False,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Restore a bank as it was after edit `to` or at a date, by further edits; list them."""
        edit = self._edit(author, reason)
        return Bank(self._connection, bank, self._settle_edit).revert(
            str(to), edit, dry_run=dry_run
        )

    def bank_export(
        self, file: str | Path, *, part: str | None = None, bank: str = MAIN_BANK
    ) -> int:
        """Write a bank, or its public or sealed part; returns the number of items.

        A whole bank as CSV, TSV or YAML is made to be edited and applied.
        """
        return Bank(self._connection, bank).export(Path(file), part)

    def bank_preview(
        self,
        query: QueryGrades,
        edits: Sequence[Operation | ItemState],
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
    ) -> Preview:
        """Try edits out on a query as it is now; nothing is saved. An ItemState is to be added.

        `review.impact.Baseline.impact` tells what the result does to the leaderboard.
        """
        chosen, name = self._chosen(grader, prompt, kind, bank)
        return preview(self._connection, chosen, name, query, edits)

    def bank_trial(
        self,
        edit: Callable[[], Table],
        *,
        bank: str = MAIN_BANK,
        measures: Sequence[Measure | str] = MEASURES,
        min_rating: int | None = None,
    ) -> Trial:
        """Make an edit, see what it does to the leaderboard of every grader, and take it back.

        `edit` calls one of the methods above, as in
        `exam.bank_trial(lambda: exam.bank_edit("retire", "dbb6"))`. `min_rating` is by default
        4 or the highest of a shorter scale.
        """
        changes, found = self._tried(edit, bank, measures, min_rating)
        return Trial(changes, found)

    def _tried(
        self,
        edit: Callable[[], T],
        bank: str,
        measures: Sequence[Measure | str] = MEASURES,
        min_rating: int | None = None,
    ) -> tuple[T, tuple[Effect, ...]]:
        before = standings(self._connection, bank)
        after: dict[str, Standing] = {}

        def look(connection: sqlite3.Connection) -> None:
            after.update(standings(connection, bank))

        self._looking = look
        try:
            made = edit()
        finally:
            self._looking = None
        return made, tuple(effects(before, after, measures, min_rating))

    def _settle(self, connection: sqlite3.Connection) -> None:
        verify_again(connection)
        if self._looking is not None:
            self._looking(connection)

    def _settle_edit(self, connection: sqlite3.Connection) -> None:
        self._settle(connection)
        if self._looking is not None:
            connection.rollback()

    # ---- generating -----------------------------------------------------------------------------

    def bank_generation(
        self,
        grader: str | Grader,
        *,
        prompt: str | Path,
        bank: str = MAIN_BANK,
        per: str | None = None,
        keys: bool = False,
        query_id: str | None = None,
        more: int = 0,
        grounded: int = 0,
        keep_near: bool = False,
        author: str | None = None,
        reason: str = "",
        **options: Any,
    ) -> GenerationRun:
        """A run that is planned but not started: see its `preview`, iterate over its `steps`.

        `grader` is `hf`, `openai`, or a grader of your own; `options` are those of
        `llm.options.Options`, such as model. `prompt` is a bundled one (`car-questions`,
        `car-nuggets`, `dl-questions`, `dl-nuggets`) or a TOML file. One request is made per query
        or per subtopic (`per`). `keys` asks for answer keys, `more` for so many other items of
        the query `query_id`, and `grounded` shows so many of the query's best passages. An item
        that asks the same as another one of its query is dropped unless `keep_near`.
        """
        try:
            wanted = Options(**options)
        except TypeError as error:
            raise InputError(f"a grader has no such option ({error})") from None
        loaded = generation.load(prompt)
        if isinstance(grader, str):
            named, grader = grader, make_writer(grader, wanted)
            name = called(grader) or wanted.model or named
        else:
            name = wanted.model or called(grader) or type(grader).__name__
        return GenerationRun(
            self._connection,
            bank,
            grader,
            name,
            loaded,
            self._edit(author, reason or f"{name} with {loaded.name}"),
            per=per,
            query_id=query_id,
            wish=generation.Wish(keys, more, grounded),
            keep_near=keep_near,
        )

    def bank_generate(
        self,
        grader: str | Grader,
        *,
        on_reply: Callable[[Settled], None] | None = None,
        **options: Any,
    ) -> tuple[Table, Table]:
        """Let a model make items where it made none yet; continues where an earlier call stopped.

        Takes the options of `bank_generation`. Returns what became of each request, and the items
        that were dropped or marked because others ask the same, or nearly so; `bank_near` tells
        them afterwards.
        """
        run = self.bank_generation(grader, **options)
        settled = []
        for one in run.steps():
            settled.append(one)
            if on_reply:
                on_reply(one)
        return generation_tables(run, settled)

    def bank_near(self, query_id: str | None = None, *, bank: str = MAIN_BANK) -> Table:
        """The items that models made for a bank although it has the same, or nearly the same."""
        return Bank(self._connection, bank).near(query_id)

    # ---- sealing --------------------------------------------------------------------------------

    def bank_split(
        self,
        share: float,
        *,
        seed: int = 0,
        again: bool = False,
        public: str | Path | None = None,
        sealed: str | Path | None = None,
        bank: str = MAIN_BANK,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Seal a share of a bank and commit to it; the notes of the table hold the commitment.

        `public` and `sealed` are files for the two parts. Where one cannot be written, the bank is
        not split.
        """
        edit = self._edit(author, reason)
        files = {"public": public, "sealed": sealed}
        wanted = {part: Path(file) for part, file in files.items() if file is not None}
        return Bank(self._connection, bank).split(share, seed, edit, again=again, files=wanted)

    def bank_verify(
        self,
        file: str | Path | None = None,
        *,
        commitment: str | None = None,
        bank: str = MAIN_BANK,
    ) -> Verification:
        """Whether a file of sealed items, or the bank itself, is still what was sealed."""
        path = None if file is None else Path(file)
        return verify_in_collection(self._connection, bank, path, commitment)

    @abstractmethod
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
        """The grades of the one grader that fits, as arrays."""

    def evaluate_parts(
        self,
        measure: str = "Cover@20",
        *,
        min_rating: int | None = None,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        runs: Sequence[str | Path] = (),
        facets: FacetChoice = "auto",
        missing: Missing = "zero",
        decisions: str = "with",
    ) -> Table:
        """Every system by the public and by the sealed part of a bank, best by the sealed first."""
        public, sealed = (
            evaluate_gradebook(
                self.gradebook(
                    grader=grader,
                    prompt=prompt,
                    kind=kind,
                    bank=bank,
                    runs=runs,
                    part=part,
                    decisions=decisions,
                ),
                [measure],
                min_rating,
                facets=facets,
                missing=missing,
            )
            for part in ("public", "sealed")
        )
        return parts_table(public, sealed)
