"""A bank of a collection, as its owner sees it: items, history, checks, edits, a sealed part."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Required, Unpack

from exampp.bank.changes import Operation, QueryEdits, Version
from exampp.bank.editor import NOW, BankEditor
from exampp.bank.generating import GenerationRun, Settled, generation_tables
from exampp.bank.verifying import Verification, verify_in_collection
from exampp.evaluate.measure import Measure
from exampp.grade.graders import make_writer
from exampp.grade.kept import verify_again
from exampp.llm.base import Grader, check_grader
from exampp.llm.options import ModelOptions, check_options
from exampp.outside import check_lists, or_default
from exampp.prompts import generation
from exampp.records.bank import BankTexts
from exampp.records.origin import MODEL
from exampp.report.table import Table, Tables
from exampp.review.impact import MEASURES
from exampp.review.trial import Trial, watch
from exampp.store.bank import Settle, edit_by
from exampp.store.bank_history import ItemState, Logged, log_of_item, states
from exampp.store.bank_texts import read_bank_texts
from exampp.store.connection import file_of

if TYPE_CHECKING:
    from exampp.analysis.attacks.battery import Battery, BatterySettings


class GenerationOptions(ModelOptions, total=False):
    """What may be said of a run that makes items: `Bank.generation` has the defaults."""

    prompt: Required[str | Path]
    per: str | None
    keys: bool
    query_id: str | None
    more: int
    grounded: int
    keep_near: bool
    author: str | None
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Bank:
    """One bank of a collection, by its name.

    `author` is by default the user, and `reason` says why; both are kept with every edit. Nothing
    is ever deleted: any state of a bank can be seen and restored. `settle` is called after edits,
    before the commit.
    """

    connection: sqlite3.Connection
    name: str
    settle: Settle = verify_again

    def __repr__(self) -> str:
        return f"<bank {self.name}>"

    @property
    def _editor(self) -> BankEditor:
        return BankEditor(self.connection, self.name, self.settle)

    # ---- looking --------------------------------------------------------------------------------

    def show(self, query_id: str | None = None, part: str | None = None) -> Table:
        """The items of a bank, or of one query, with their ids; retired ones are marked."""
        return self._editor.show(query_id, part=part)

    def items(self, query_id: str) -> list[ItemState]:
        """The items of a query as they are now, retired ones too."""
        return states(self.connection, self.name, query_id=query_id)

    def states_of(self, item: ItemState) -> list[Logged]:
        """All edits of an item, oldest first, with its state after each."""
        return log_of_item(self.connection, self.name, item.edit)

    def texts(self) -> BankTexts:
        """The items of all queries with the texts of these, and which are sealed."""
        return read_bank_texts(self.connection, self.name)

    def version(self) -> Version:
        """The state of a bank: the number of its last edit, and a hash of all its items."""
        return self._editor.version()

    def lint(self) -> Table:
        """What is likely wrong with a bank: each finding with its item and why it matters."""
        return self._editor.lint()

    def log(
        self,
        query_id: str | None = None,
        *,
        item: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Table:
        """Every edit of a bank, newest last; `kind` is that of the `item`."""
        return self._editor.log(query_id, item, last, kind)

    def diff(self, one: str | int, other: str | int = NOW) -> Table:
        """What changed between two states: numbers of edits, dates, `now`, or names of banks."""
        return self._editor.diff(str(one), str(other))

    # ---- editing --------------------------------------------------------------------------------

    def add(
        self,
        query_id: str,
        text: str,
        *,
        kind: str = "question",
        subtopic_id: str | None = None,
        answers: Sequence[str] = (),
        weight: float = 1.0,
        item_id: str = "",
        model: str = "",
        author: str | None = None,
        reason: str = "",
        seen: int | None = None,
    ) -> Table:
        """Add an item to a query; its id is made from its text unless one is given.

        `model` is the model that made it, where one did: it is warned of where that grades it.
        `seen` is the last edit that the person knew of: EditConflict where items of the query were
        edited since.
        """
        check_lists(answers=answers)
        new = ItemState(
            *(query_id, item_id, text, kind, subtopic_id, tuple(answers), weight),
            extra={MODEL: model} if model else {},
        )
        return self._editor.add(new, edit_by(author, reason), seen)

    def edit(
        self,
        operation: str,
        item: str,
        *values: str,
        query_id: str | None = None,
        kind: str | None = None,
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
        edit = edit_by(author, reason)
        return self._editor.edit(operation, item, values, edit, query_id, seen, kind)

    def reword(self, item: str, text: str, *, author: str | None = None, reason: str = "") -> Table:
        """Give an item another text; it is due again, and nothing else is."""
        return self.edit("reword", item, text, author=author, reason=reason)

    def retire(self, item: str, *, author: str | None = None, reason: str = "") -> Table:
        """Leave an item out from now on; its grades are kept."""
        return self.edit("retire", item, author=author, reason=reason)

    def restore(self, item: str, *, author: str | None = None, reason: str = "") -> Table:
        """Take a retired item back, with the grades that it has."""
        return self.edit("restore", item, author=author, reason=reason)

    def weigh(
        self, item: str, weight: float, *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Give an item another weight."""
        return self.edit("weight", item, str(weight), author=author, reason=reason)

    def set_key(
        self, item: str, *answers: str, author: str | None = None, reason: str = ""
    ) -> Table:
        """Give an item other known answers, none to take them away; verified grades follow."""
        return self.edit("key", item, *answers, author=author, reason=reason)

    def save(
        self,
        query_id: str,
        edits: Sequence[Operation | ItemState],
        *,
        seen: Mapping[str, int] | None = None,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make several edits of a query's items: all of them, or none where one is refused.

        An ItemState is an item to be added. `seen` has, by item id, the last edit that the person
        knew of: EditConflict where one of these items was edited since.
        """
        return self.save_all(
            [QueryEdits(query_id, edits, seen or {})], author=author, reason=reason
        )

    def save_all(
        self, edits: Iterable[QueryEdits], *, author: str | None = None, reason: str = ""
    ) -> Table:
        """Make edits of several queries' items: all of them, or none where one is refused."""
        return self._editor.save(edits, edit_by(author, reason))

    def undo(
        self,
        number: int,
        *,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Take back the newest edit of an item, by a further edit.

        EditConflict where `number` is not the newest edit of its item.
        """
        return self._editor.undo(number, edit_by(author, reason))

    def apply(
        self,
        file: str | Path,
        *,
        retire_missing: bool = False,
        force: bool = False,
        dry_run: bool = False,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Make what was changed in a file of `export` edits of the bank, and list them.

        InputError where the bank was edited since, unless `force` lets both stand.
        """
        return self._editor.apply(
            Path(file),
            edit_by(author, reason),
            retire_missing=retire_missing,
            force=force,
            dry_run=dry_run,
        )

    def revert(
        self,
        to: str | int,
        *,
        dry_run: bool = False,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Restore a bank as it was after edit `to` or at a date, by further edits; list them."""
        edit = edit_by(author, reason)
        return self._editor.revert(str(to), edit, dry_run=dry_run)

    def export(self, file: str | Path, *, part: str | None = None) -> int:
        """Write a bank, or its public or sealed part; returns the number of items.

        A whole bank as CSV, TSV or YAML is made to be edited and applied.
        """
        return self._editor.export(Path(file), part)

    def trial(
        self,
        edit: Callable[[Bank], Table],
        *,
        measures: Sequence[Measure | str] = MEASURES,
        min_rating: int | None = None,
    ) -> Trial:
        """Make an edit, see what it does to the leaderboard of every grader, and take it back.

        `edit` calls one of the methods above, as in `bank.trial(lambda bank: bank.retire("dbb6"))`.
        `min_rating` is by default 4 or the highest of a shorter scale.
        """

        seen, look = watch(self.connection, self.name, self.settle)

        def settle(connection: sqlite3.Connection) -> None:
            look(connection)
            connection.rollback()

        changes = edit(replace(self, settle=settle))
        return Trial(changes, seen.effects(measures, min_rating))

    # ---- generating -----------------------------------------------------------------------------

    def generation(
        self,
        grader: str | Grader,
        *,
        prompt: str | Path,
        per: str | None = None,
        keys: bool = False,
        query_id: str | None = None,
        more: int = 0,
        grounded: int = 0,
        keep_near: bool = False,
        author: str | None = None,
        reason: str = "",
        **options: Unpack[ModelOptions],
    ) -> GenerationRun:
        """A run that is planned but not started: see its `preview`, iterate over its `steps`.

        `grader` is `hf`, `openai`, or a grader of your own; `options` are those of
        `llm.options.ModelOptions`, such as model. `prompt` is a bundled one (`car-questions`,
        `car-nuggets`, `dl-questions`, `dl-nuggets`) or a TOML file. One request is made per query
        or per subtopic (`per`). `keys` asks for answer keys, `more` for so many other items of
        the query `query_id`, and `grounded` shows so many of the query's best passages. An item
        that asks the same as another one of its query is dropped unless `keep_near`.
        """
        loaded = generation.load(prompt)
        if isinstance(grader, str):
            named, grader = grader, make_writer(grader, options)
            name = grader.called or options.get("model") or named
        else:
            model = check_options(options).get("model")
            name = model or check_grader(grader).called or type(grader).__name__
        return GenerationRun(
            self.connection,
            self.name,
            grader,
            name,
            loaded,
            edit_by(author, reason or f"{name} with {loaded.name}"),
            per=per,
            query_id=query_id,
            wish=generation.Wish(keys, more, grounded),
            keep_near=keep_near,
        )

    def generate(
        self,
        grader: str | Grader,
        *,
        on_reply: Callable[[Settled], None] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Tables:
        """Let a model make items where it made none yet; continues where an earlier call stopped.

        Takes the options of `generation`. Returns what became of each request (`replies`), and the
        items that were dropped or marked because others ask the same, or nearly so (`near`).
        """
        run = self.generation(grader, **options)
        settled = []
        for one in run.steps():
            settled.append(one)
            if on_reply:
                on_reply(one)
        replies, near = generation_tables(run, settled)
        return Tables({"replies": replies, "near": near})

    def near(self, query_id: str | None = None) -> Table:
        """The items that models made for the bank although it has the same, or nearly the same."""
        return self._editor.near(query_id)

    # ---- sealing --------------------------------------------------------------------------------

    def build_battery(
        self,
        path: str | Path | None = None,
        *,
        settings: BatterySettings | None = None,
        kind: str | None = None,
        texts: str | Path | None = None,
        dry_run: bool = False,
    ) -> Battery:
        """Make attacks on graders of this bank, in a collection of their own at `path`.

        By default it lies beside the exam, as `my.attacks.exam` beside `my.exam`, where
        `Grades.attacks` looks for it once the grader has graded it. `kind` of items are leaked and
        asked, by default the first that the bank has; `texts` is a file for people to read. Raises
        InputError where there is too little to make attacks of, and where the file exists.
        """
        from exampp.analysis.attacks.battery import BatterySettings, beside, build_battery

        place = Path(path) if path is not None else beside(file_of(self.connection))
        return build_battery(
            self.connection,
            self.name,
            kind,
            or_default("settings", settings, BatterySettings),
            path=None if dry_run else place,
            texts=None if texts is None else Path(texts),
        )

    def split(
        self,
        share: float,
        *,
        seed: int = 0,
        again: bool = False,
        public: str | Path | None = None,
        sealed: str | Path | None = None,
        author: str | None = None,
        reason: str = "",
    ) -> Table:
        """Seal a share of a bank and commit to it; the notes of the table hold the commitment.

        `public` and `sealed` are files for the two parts. Where one cannot be written, the bank is
        not split.
        """
        edit = edit_by(author, reason)
        files = {"public": public, "sealed": sealed}
        wanted = {part: Path(file) for part, file in files.items() if file is not None}
        return self._editor.split(share, seed, edit, again=again, files=wanted)

    def verify(
        self,
        file: str | Path | None = None,
        *,
        commitment: str | None = None,
    ) -> Verification:
        """Whether a file of sealed items, or the bank itself, is still what was sealed."""
        path = None if file is None else Path(file)
        return verify_in_collection(self.connection, self.name, path, commitment)
