"""The grades of one grader on one bank, and the methods shared by `Grades` and `Panel`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, get_args

from exampp.errors import InputError
from exampp.measures.qrels import Labelling
from exampp.measures.rankings import ScoredPassage, with_runs
from exampp.records import GraderIdentity, Judgment, content_hash
from exampp.records.gradebook import (
    MISSING,
    Dossier,
    Gradebook,
    QueryGrades,
    choose_systems,
    passage_kinds,
    without_decisions,
)
from exampp.records.graders import ABSTENTION, grader_label
from exampp.records.items import BankTexts, own_bank
from exampp.records.selection import DuplicateChoice
from exampp.results.notes import Note, note
from exampp.sanitize import check_choice, check_lists, or_default
from exampp.store.bank import (
    MAIN_BANK,
    bank_names,
    item_models,
    known_queries,
    last_edit,
    log,
    newest_split,
    read_bank_texts,
    states,
)
from exampp.store.connection import file_of, is_graded_file, written
from exampp.store.decisions import JudgedCell, judged_cells
from exampp.store.grades import StoredGrader, graders, position_rows
from exampp.store.inputs import highest_judgment, unanswerable_queries
from exampp.store.sql import GuardedConnection

if TYPE_CHECKING:
    from exampp.analysis.agreement import Against, Agreements
    from exampp.analysis.calibration import CalibrationFindings, CalibrationSettings
    from exampp.analysis.correlation import Correlations, Method
    from exampp.analysis.positions import PositionEffect
    from exampp.analysis.raters import RaterComparison as Agreement
    from exampp.analysis.sensitivity import Declaration, Sensitivity
    from exampp.inputs.officials import Officials
    from exampp.items.edits import EditRound
    from exampp.items.improvement_rounds import ImprovementRound
    from exampp.measures.exams import SubtopicChoice
    from exampp.measures.names import Measure

Judgments = Mapping[str, Sequence[Judgment]]
"""Qrels by their name."""


@dataclass(frozen=True, repr=False, kw_only=True)
class ChosenGrades:
    """The grades of one grader on one bank, read on first use.

    They are reloaded after writes through the same collection. Changes by other programs show in
    the next `exam.grades()`. `choice` has the names of grader and bank. `systems` (default: all)
    and `without` select systems.
    """

    connection: GuardedConnection
    stored: StoredGrader
    bank: str
    runs: tuple[str | Path, ...] = ()
    part: str | None = None
    with_decisions: bool = True
    systems: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    choice: Mapping[str, str | None] = field(default_factory=dict, compare=False)
    _read: list[tuple[int, Gradebook]] = field(default_factory=list, init=False, compare=False)

    def __repr__(self) -> str:
        bank = f", bank {self.bank_name}" if self.bank_name else ""
        return f"<grades of {grader_label(self.grader)}{bank} in {self.path}>"

    def _repr_html_(self) -> str:
        """Return a card for notebooks: whose grades of what, and the next step."""
        from exampp.items.improvement_rounds import describe_improvement
        from exampp.results.card import card

        book = self.gradebook
        facts: dict[str, int | str] = {
            "bank": self.bank_name,
            "queries": len(book.queries),
            "systems": len(book.systems),
            "grades": sum(int((one.ratings != MISSING).sum()) for one in book.queries),
            "human decisions": book.oversight.cells,
            "scale": f"{self.grader.lowest} to {self.grader.highest}",
        }
        draft = ["Draft grades: for trying things out, not for conclusions."]
        lines = draft if self.grader.is_draft else []
        lines += filter(None, [describe_improvement(self.improvements())])
        return card(
            f"Grades of {grader_label(self.grader)}", facts, lines, "Compare:", "grades.evaluate()"
        )

    @property
    def path(self) -> Path:
        """Return the path of the collection or the graded file."""
        return file_of(self.connection)

    @property
    def grader(self) -> GraderIdentity:
        """Return the grader."""
        return self.stored.identity

    @property
    def bank_name(self) -> str:
        """Return the displayed name of the bank; empty for a graded file without a bank."""
        unnamed = is_graded_file(self.connection) and self.bank == MAIN_BANK
        return "" if unnamed else self.bank

    @property
    def gradebook(self) -> Gradebook:
        """Return the grades as arrays, query by query."""
        if [written for written, _ in self._read] != [self.written]:
            self._read[:] = [(self.written, self._gradebook())]
        ((_, book),) = self._read
        return book

    def using(self, book: Gradebook) -> Self:
        """Return these grades with an existing `gradebook`."""
        self._read[:] = [(self.written, book)]
        return self

    @property
    def written(self) -> int:
        """Return the number of writes through the collection."""
        return written(self.connection)

    def _gradebook(self) -> Gradebook:
        from exampp.store.read_model import read_gradebook

        book = read_gradebook(self.connection, self.stored, self.bank, self.part)
        if book.target is not None and book.target.may_miss:
            from exampp.grading.chances import with_skipped_cells

            book = with_skipped_cells(self.connection, self.stored, self.bank, book)
        if book.target is not None and book.target.until:
            from exampp.measures.query_sample import described_sample

            book = described_sample(book)
        book = replace(book, bank=self.bank_name, notes=(*book.notes, *self._notes(book)))
        book = book if self.with_decisions else without_decisions(book)
        return choose_systems(with_run_files(book, self.runs), self.systems, self.without)

    def _notes(self, book: Gradebook) -> Iterator[str]:
        notes = self.connection.graded_notes
        if notes is not None:
            yield from (*notes.get("", ()), *notes.get(self.grader.key, ()))
        elif "llm_options" in self.grader.settings:
            # import prompts only for graders of Workbench files
            from exampp.formats.workbench_graders import scale_note

            yield from scale_note(self.grader, "inferred or given")
        if warning := self.own_bank_warning(book):
            yield warning

    def position_effect(self) -> PositionEffect | None:
        """Test whether ratings depend on the order of items; None without several items a request.

        The order is random, by the seed of the grader. All grades of the grader count.
        """
        from exampp.analysis.positions import position_effect

        return position_effect(self.grader.name, position_rows(self.connection, self.stored.key))

    def dossiers(
        self, query_ids: Sequence[str] | None = None, passages: Iterable[str] | None = None
    ) -> Iterator[Dossier]:
        """Yield queries with texts, raw replies and decisions; all by default.

        With `passages` (by id), only replies for these passages and for decided cells are read.
        Queries are read lazily. Raises InputError for an unknown query.
        """
        from exampp.store.read_model import read_dossiers

        some = None if passages is None else list(passages)
        direct = [
            one
            for one in self.others()
            if one.grader.kind == "query"
            and not one.grader.is_draft
            and one.grader.prompt != ABSTENTION
        ]
        for one in read_dossiers(self.connection, self.stored, self.bank, query_ids, some):
            yield replace(one, direct_grades=partial(_grades_of_query, direct, one.query_id))

    def judged(self, query_id: str | None = None) -> Sequence[JudgedCell]:
        """Return the cells with human decisions, with their grades."""
        return judged_cells(self.connection, self.stored, self.bank, query_id)

    # ---- source ---------------------------------------------------------------------------------

    @property
    def highest_judgment(self) -> int | None:
        """Return the highest human judgment; None without judgments."""
        return highest_judgment(self.connection)

    def book_with_duplicates(self, duplicates: DuplicateChoice) -> Gradebook:
        """Return the gradebook, for "found" with the duplicates found in the texts of the bank."""
        check_choice("duplicates", duplicates, get_args(DuplicateChoice))
        if duplicates != "found":
            return self.gradebook
        from exampp.items.duplicates import with_duplicates

        texts = self.bank_texts()
        if not any(item.text for item in texts.items):
            what = "the texts of the items are not known, so no duplicates can be found"
            raise InputError(what, hint="Name a bank file with --bank")
        return with_duplicates(self.gradebook, texts.entries)

    def bank_texts(self) -> BankTexts:
        """Return the items and query texts of the bank, and its sealed items."""
        # a graded file has only item ids
        return read_bank_texts(self.connection, self.bank) if self.bank_name else BankTexts()

    @property
    def may_abstain(self) -> bool:
        """Return whether systems answer, and a query is marked as unanswerable."""
        marks = unanswerable_queries(self.connection).values()
        return any(marks) and "answers" in passage_kinds(self.gradebook).values()

    def query_texts(self) -> dict[str, str]:
        """Return query texts by id, for queries with a text, pool, ranking or judgment."""
        return {} if is_graded_file(self.connection) else known_queries(self.connection)

    def own_bank_warning(self, book: Gradebook) -> str:
        """Return a warning if the grader wrote items of the bank; else ""."""
        from exampp.store.read_model import items_of_part

        among = items_of_part(self.connection, self.bank, book.part)
        makers = item_models(self.connection, self.bank, book.grader.kind, among)
        return own_bank(book.grader.model, makers.models, makers.items)

    def improvements(self) -> tuple[ImprovementRound, ...]:
        """Return the rounds of improvement of the bank that are in force."""
        from exampp.items.improvement_rounds import rounds_in_force

        if is_graded_file(self.connection):
            return ()
        return rounds_in_force(self.connection, self.bank)

    def human_choice_notes(self) -> list[Note]:
        """Return a note per human source that had a part in the choice of items."""
        from exampp.items.improvement_rounds import human_choices

        return [note("chosen-items", text=one) for one in human_choices(self.improvements())]

    def bank_edits(self) -> tuple[EditRound, ...]:
        """Return the edits of the bank, by those that were made together."""
        from exampp.items.edits import edit_rounds

        if is_graded_file(self.connection):
            return ()
        return tuple(edit_rounds(log(self.connection, self.bank)))

    def bank_version(self) -> str:
        """Return the version of the bank, or the hash of item ids if it has no history."""
        if self.grader.kind == "query" or is_graded_file(self.connection):
            queries = self.gradebook.queries
            return content_hash(*(one for query in queries for one in query.item_ids))[:16]
        from exampp.items.edits import version_of

        number = last_edit(self.connection, self.bank)
        version = version_of(self.bank, number, states(self.connection, self.bank))
        return f"{version.digest} (edit {version.number})"

    def public_part(self) -> Self:
        """Return these grades without sealed items.

        Raises:
            InputError: These are the grades of the sealed items.
        """
        if self.part == "sealed":
            raise InputError("sealed items cannot be used here", hint="Use the public part")
        if newest_split(self.connection, self.bank) is None:
            return self
        return replace(self, part="public")

    def others(self) -> Iterator[Self]:
        """Yield the grades of other graders, and of this grader on other banks."""
        for stored in graders(self.connection):
            kind = stored.identity.kind
            for bank in [""] if kind == "query" else bank_names(self.connection, kind):
                if (stored.key, bank) != (self.stored.key, self.bank):
                    yield replace(
                        self,
                        stored=stored,
                        bank=bank,
                        runs=(),
                        part=None,
                        with_decisions=True,
                        systems=(),
                        without=(),
                    )


def _grades_of_query(
    selected: Sequence[ChosenGrades], query_id: str
) -> Sequence[tuple[GraderIdentity, QueryGrades]]:
    return [
        (one.grader, query)
        for one in selected
        for query in one.gradebook.queries
        if query.query_id == query_id
    ]


class GradesBase(ABC):
    """Methods shared by `Grades` and `Panel`: correlation, agreement, sensitivity, calibration."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """Return the path of the collection or the graded file."""

    @abstractmethod
    def named(self) -> Iterator[tuple[str, ChosenGrades]]:
        """Yield the grades with unique names."""

    @property
    def _books(self) -> list[Gradebook]:
        return [one.gradebook for _, one in self.named()]

    def methods(
        self,
        measures: Sequence[Measure | str] = (),
        *,
        min_rating: int | Sequence[int] = (),
        qrels: Judgments | None = None,
        of: str = "",
    ) -> Iterator[Method]:
        """Yield the scoring methods: graders and external qrels.

        The default thresholds are all ratings of a scale. `qrels` are judgments by name, used by
        the qrels measures among `measures`. `of` is a prefix for grader names, to distinguish
        collections.
        """
        from exampp.analysis.correlation import DEFAULT_MEASURES, graded_method, qrels_method

        check_lists(measures=measures)
        min_rating = list(min_rating) if isinstance(min_rating, Iterable) else [min_rating]
        for name, one in self.named():
            book = one.gradebook
            chosen = measures or (book.target.measures if book.target else DEFAULT_MEASURES)
            method = graded_method(book, chosen, min_rating, of + name)
            yield replace(method, notes=(*one.human_choice_notes(), *method.notes))
        measures = measures or DEFAULT_MEASURES
        for name, judgments in (qrels or {}).items():
            book = self._books[-1]
            yield qrels_method(name, book, judgments, measures, min_rating)

    def correlate(
        self,
        official: Officials,
        measures: Sequence[Measure | str] = (),
        *,
        min_rating: int | Sequence[int] = (),
        statistics: Sequence[str] = ("spearman", "kendall"),
        samples: int = 2000,
        seed: int = 0,
        decimals: int | None = None,
        qrels: Judgments | None = None,
    ) -> Correlations:
        """Correlate every grader, threshold and measure with official leaderboards.

        `official` is a file or several; a data frame of systems with ranks or scores; a dict of
        system to rank (1 is best); or a dict of names to these. `statistics` are those of
        `stats.rank_statistics`; with 0 `samples` there are no intervals. Means are rounded to
        `decimals` before ranking, if given. Takes the options of `methods`.
        """
        from exampp.analysis.correlation import compare_methods
        from exampp.inputs.officials import read_officials

        check_lists(statistics=statistics)
        methods = list(self.methods(measures, min_rating=min_rating, qrels=qrels))
        return compare_methods(
            methods,
            read_officials(official),
            statistics,
            samples=samples,
            seed=seed,
            decimals=decimals,
        )

    def agreement(
        self,
        *,
        at_least: Sequence[int] = (),
        min_rating: int | None = None,
        min_relevant: Sequence[int] = (),
        layouts: Sequence[str] = (),
        against: Against | None = None,
        qrels: Judgments | None = None,
    ) -> Agreements:
        """Return the agreement of graders with judgments, human decisions and each other.

        The label of a passage is its m-th best rating, for every m of `at_least` (default 1, 2 and
        5); `layouts` are those of the papers' tables (default all). `qrels` are label files by
        name, compared with grades, judgments and each other. The other options are those of
        `analysis.agreement.find_agreements`.
        """
        from exampp.analysis.agreement import find_agreements
        from exampp.analysis.raters import DEFAULT_AT_LEAST, LAYOUTS

        check_lists(at_least=at_least, min_relevant=min_relevant, layouts=layouts)
        return find_agreements(
            self._books,
            people=self._with_people(min_rating) if against in (None, "people") else [],
            positions=self._positions() if against in (None, "graders") else (),
            qrels=qrels,
            at_least=at_least or DEFAULT_AT_LEAST,
            min_rating=min_rating,
            min_relevant=min_relevant,
            layouts=layouts or LAYOUTS,
            against=against,
        )

    def sensitivity(
        self,
        declaration: Declaration | None = None,
        *,
        official: Officials = (),
        subtopics: SubtopicChoice = "auto",
        labelling: Labelling | None = None,
    ) -> Sensitivity:
        """Return how results depend on combinations of options, graders and banks.

        `declaration` lists the options; `official` is as in `correlate`.
        """
        from exampp.analysis.sensitivity import Evaluated, evaluate_specifications
        from exampp.inputs.officials import read_officials

        evaluated = [
            Evaluated(name, one.gradebook, subtopics, or_default("labelling", labelling, Labelling))
            for name, one in self.named()
        ]
        return evaluate_specifications(evaluated, declaration, read_officials(official))

    def calibration(self, settings: CalibrationSettings | None = None) -> CalibrationFindings:
        """Fit a calibration from ratings to human labels, and measure its quality.

        Save it with `save`; label passages with `Collection.calibrate`. Raises InputError without
        judgments, or if they have only one query or one label.
        """
        from exampp.analysis.calibration import calibrate

        return calibrate(self._books, self.path.name, settings)

    def _positions(self) -> list[PositionEffect]:
        """Return the effect of the order of items, of each grader of several items a request."""
        by_key = {one.stored.key: one for _, one in self.named()}
        effects = (one.position_effect() for one in by_key.values())
        return [one for one in effects if one is not None]

    def _with_people(self, min_rating: int | None) -> list[Agreement]:
        """Yield the agreement of people with graders and each other, by kind of scale."""
        from exampp.analysis.raters import compare_people

        comparisons: list[Agreement] = []
        among: dict[tuple[str, int], Sequence[Agreement]] = {}
        for _, one in self.named():
            grader = one.grader
            with_grader, pairs = compare_people(one.judged(), grader, min_rating)
            comparisons += with_grader
            among[grader.kind, grader.highest] = pairs
        return [*comparisons, *(one for pairs in among.values() for one in pairs)]


# ---- run files instead of rankings -------------------------------------------------------------


def with_run_files(book: Gradebook, paths: Sequence[str | Path]) -> Gradebook:
    """Return the gradebook with the systems of run files, if any, instead of the stored ones.

    Raises InputError if the runs have no known query.
    """
    if not paths:
        return book
    runs = read_run_files(paths)
    with_rankings = with_runs(book, runs)
    if not any(query.rankings for query in with_rankings.queries):
        queries = dict.fromkeys(query for run in runs.values() for query in run)
        examples = ", ".join(list(queries)[:3])
        raise InputError(
            f"the runs have no known query; their queries are {examples}", file=paths[0]
        )
    return with_rankings


def read_run_files(paths: Sequence[str | Path]) -> dict[str, dict[str, list[ScoredPassage]]]:
    """Read run files and folders: system -> query -> (passage, score, rank).

    Raises InputError if two files rank one query for one system.
    """
    by_system: dict[str, dict[str, list[ScoredPassage]]] = {}
    source: dict[tuple[str, str], str | Path] = {}
    # imported here because it loads every format
    from exampp.formats import trec
    from exampp.inputs.files import GivenFile, tell_all

    sources = [GivenFile(Path(path), role="runs") for path in paths]
    for path, kind, _, system in tell_all(sources, system=False):
        read = trec.read_ranx if kind == "ranx" else trec.read_run
        for ranked in read(path, system=system):
            earlier = source.setdefault((ranked.system, ranked.query_id), path)
            if earlier is not path:
                raise InputError(
                    f"{earlier} also has a ranking of system {ranked.system!r} for query "
                    f"{ranked.query_id!r}",
                    file=path,
                    hint="Use different run names in the last column",
                )
            run = by_system.setdefault(ranked.system, {})
            returned = (ranked.passage_id, ranked.score, ranked.rank)
            run.setdefault(ranked.query_id, []).append(returned)
    return by_system
