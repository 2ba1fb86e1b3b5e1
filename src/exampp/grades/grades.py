"""The grades of one grader on one bank, with all evaluations.

    grades = exam.grades("draft", bank="main")
    grades.evaluate(["Cover@20", "nDCG@10"], min_rating=4)
    grades.correlate("official.json").to_latex()
    grades.report("report.html", official=["official.json"])

A `Panel` compares several graders of an exam; shared methods are in `GradesBase`, the
review lists in `ReviewedGrades`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from exampp.errors import InputError
from exampp.grades.base import GradesBase
from exampp.grades.reviewing import ReviewedGrades
from exampp.measures.board import Leaderboard, describe_source, parts_table
from exampp.measures.cover import Missing
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import default_measures, evaluate_gradebook
from exampp.measures.names import Measure
from exampp.measures.qrels import Labelling, write_exam_qrels
from exampp.measures.values import best_first
from exampp.records.gradebook import Gradebook, check_testable, passage_kinds
from exampp.records.graders import ABSTENTION
from exampp.records.inputs import read_sentence, relevance_threshold
from exampp.records.selection import DuplicateChoice, ExportOptions
from exampp.results.notes import note
from exampp.results.result import Table
from exampp.sanitize import check_integer, check_lists, or_default
from exampp.store.connection import is_graded_file
from exampp.store.grades import graders
from exampp.store.inputs import system_names, unanswerable_queries
from exampp.version import __version__

if TYPE_CHECKING:
    from exampp.analysis.abstention import Abstention
    from exampp.analysis.attacks.result import AttackReport
    from exampp.analysis.banks import BankComparison
    from exampp.analysis.changes import Changes
    from exampp.analysis.citations import CitationScores
    from exampp.analysis.compare import SystemComparison
    from exampp.analysis.corrected import Corrected, CorrectionSettings
    from exampp.analysis.gate import GateResult, GateSettings
    from exampp.analysis.grader_bias import GraderBias
    from exampp.analysis.items import ItemAnalysis
    from exampp.analysis.omissions import Omissions
    from exampp.analysis.reliability import Reliability, ReliabilitySettings
    from exampp.analysis.significance import Significances, SignificanceSettings
    from exampp.analysis.turns import TurnCover
    from exampp.exports.exam import Exported
    from exampp.grades.decisions import Decisions
    from exampp.grades.gating import Earlier
    from exampp.inputs.officials import Officials
    from exampp.results.page import Document
    from exampp.results.plots.figure import Figure
    from exampp.review.answers import AnswerDifferences
    from exampp.review.record import QueryRecord


@dataclass(frozen=True, repr=False, kw_only=True)
class Grades(ReviewedGrades, GradesBase):
    """The grades of one grader on one bank, with all evaluations."""

    def named(self) -> Iterator[tuple[str, Self]]:
        """Yield these grades with the name of the grader."""
        yield self.grader.name, self

    def plot(self) -> Figure:
        """Plot how often the grader gave each rating."""
        from exampp.analysis.figures import grades_figure

        return grades_figure([self.gradebook])

    # ---- scoring systems ------------------------------------------------------------------------

    def evaluate(
        self,
        measures: Sequence[Measure | str] | None = None,
        *,
        min_rating: int | Sequence[int] | None = None,
        subtopics: SubtopicChoice = "auto",
        missing: Missing = "zero",
        labelling: Labelling | None = None,
        compat: str = "exam",
        duplicates: DuplicateChoice = "each",
    ) -> Leaderboard:
        """Return the leaderboard of all systems, for measures and thresholds.

        `measures` are Cover, nCover and all measures of ir_measures; by default Cover@20, nCover@20
        and nDCG@20, or those for which the cells were graded. `min_rating` is the lowest
        rating that counts as an answer: by default 4 of 0-5, or two thirds of another scale. The
        other options are those of `measures.leaderboard.evaluate`; `compat="rubric"` uses the
        definitions of the papers' own program. `duplicates="once"` also counts the items that
        people marked as duplicates as one, `"found"` those that are found in the texts, too.
        """
        from exampp.analysis.grader_bias import noted

        check_lists(measures=measures or ())
        book = self.book_with_duplicates(duplicates)
        board = evaluate_gradebook(
            book,
            measures,
            min_rating,
            subtopics=subtopics,
            missing=missing,
            labelling=labelling,
            compat=compat,
            once=duplicates != "each",
        )
        board = noted(board, book)
        return replace(board, notes=(*self.human_choice_notes(), *board.notes))

    def compare_parts(
        self,
        measure: Measure | str = "Cover@20",
        *,
        min_rating: int | None = None,
        subtopics: SubtopicChoice = "auto",
        missing: Missing = "zero",
    ) -> Table:
        """Return scores on the public and the sealed part of a bank, best sealed first."""
        public, sealed = (
            replace(self, part=part).evaluate(
                [measure], min_rating=min_rating, subtopics=subtopics, missing=missing
            )
            for part in ("public", "sealed")
        )
        return parts_table(public, sealed)

    def write_qrels(
        self,
        path: str | Path,
        labelling: Labelling | None = None,
        min_rating: int | None = None,
        *,
        by_subtopic: bool = False,
    ) -> int:
        """Write EXAM-Qrels of all graded passages; return their number.

        Labels that depend on a threshold use `min_rating`.
        """
        return write_exam_qrels(
            self.gradebook, path, labelling, min_rating, by_subtopic=by_subtopic
        )

    def export(
        self,
        path: str | Path,
        kind: str,
        *,
        measures: Sequence[str] | None = None,
        min_rating: int | None = None,
        depth: int = 20,
        negatives: int = 5,
        organization: str = "unpublished",
    ) -> Exported:
        """Write results for other programs, or training data; return what was written.

        Sealed items are never used for training data.

        Args:
            path: The file, or the new folder.
            kind: One of `exports.table.RESULT_EXPORTS`, such as `gen-ai-events`.
            measures: Measures of exported scores, by default those of `evaluate`.
            min_rating: The lowest rating that counts as an answer.
            depth: Training data: passages of each ranking that can be hard negatives.
            negatives: Training data: maximum number of hard negatives of a query.
            organization: Every Eval Ever: who publishes the results.

        Raises:
            InputError: The kind is unknown, an option is wrong, or queries have no text.
        """
        from exampp.exports.exam import GradedExam
        from exampp.exports.table import result_export

        check_lists(measures=measures or ())
        form = result_export(kind)
        wanted = None if measures is None else list(measures)
        options = ExportOptions(wanted, min_rating, depth, negatives, organization)
        grades = self.public_part() if form.public else self
        exam = GradedExam(
            self.path, self.connection, grades.gradebook, self.bank_version(), self.query_texts()
        )
        return form.write(exam, Path(path), options)

    # ---- reliability of the scores; see also `GradesBase` -------------------------------------

    def significance(
        self,
        measures: Sequence[Measure | str] = ("Cover@20",),
        *,
        settings: SignificanceSettings | None = None,
        min_rating: int | Sequence[int] | None = None,
        subtopics: SubtopicChoice = "auto",
        missing: Missing = "zero",
        labelling: Labelling | None = None,
    ) -> Significances:
        """Test all pairs of systems, for every measure and threshold; see `evaluate`."""
        from exampp.analysis.significance import significances

        board = self.evaluate(
            measures,
            min_rating=min_rating,
            subtopics=subtopics,
            missing=missing,
            labelling=labelling,
        )
        return significances(self.gradebook, board, settings)

    def reliability(
        self,
        measure: Measure | str = "Cover@20",
        *,
        settings: ReliabilitySettings | None = None,
        min_rating: int | None = None,
        subtopics: SubtopicChoice = "auto",
        missing: Missing = "zero",
        labelling: Labelling | None = None,
    ) -> Reliability:
        """Return the reliability of the leaderboard, and the required queries and items.

        Takes the options of `evaluate`; raises InputError for `missing="bounds"`.
        """
        from exampp.analysis.reliability import scored_column, study_reliability
        from exampp.items.improvement_rounds import chosen_items_warning

        board = self.evaluate(
            [measure],
            min_rating=min_rating,
            subtopics=subtopics,
            missing=missing,
            labelling=labelling,
        )
        if warning := chosen_items_warning(self.improvements()):
            board = replace(board, notes=(note("chosen-items", text=warning), *board.notes))
        texts = self.bank_texts()
        return study_reliability(scored_column(self.gradebook, board, missing, texts), settings)

    def bias(self, depth: int = 20) -> GraderBias:
        """Check whether the grader favours a system, by passages with human judgments.

        Args:
            depth: Number of checked passages per ranking.
        """
        from exampp.analysis.grader_bias import grader_bias

        return grader_bias(self.gradebook, check_integer("depth", depth, 1))

    def corrected(
        self,
        measure: Measure | str = "P@20",
        *,
        plan: int | None = None,
        settings: CorrectionSettings | None = None,
        min_rating: int | None = None,
        min_relevant: int | None = None,
    ) -> Corrected:
        """Return the leaderboard corrected by a sample of human decisions, and the uncorrected one.

        Without a plan, judgments must cover the pool.

        Args:
            measure: A sum over passages or items: P@20, RBP@20, Cover@20.
            plan: The number of the sample, by default the newest that fits.
            settings: How the scores are corrected.
            min_rating: The rating from which an item is answered.
            min_relevant: The rating from which a passage is relevant.

        Raises:
            InputError: The measure cannot be corrected, or drawn units are not decided.
        """
        from exampp.grades.sampling import correct_grades

        return correct_grades(
            self,
            measure,
            plan=plan,
            settings=settings,
            min_rating=min_rating,
            min_relevant=min_relevant,
        )

    def compare(
        self,
        first: str,
        second: str,
        measure: Measure | str = "Cover",
        *,
        min_rating: int | None = None,
        k: int | None = None,
        subtopics: SubtopicChoice = "auto",
        seed: int = 0,
    ) -> SystemComparison:
        """Explain the difference of two systems overall, by query and by item.

        Items are those covered in the top `k` of one system but not of the other; `k` is the cutoff
        of the measure, or 20 if it has none. Raises InputError for an unknown system, or a `k`
        other than the cutoff of the measure.
        """
        from exampp.analysis.compare import compare_systems

        return compare_systems(
            self.gradebook,
            first,
            second,
            measure,
            min_rating=min_rating,
            k=k,
            subtopics=subtopics,
            seed=seed,
            read=self.dossiers,
        )

    def gate(
        self,
        require: Sequence[str] = (),
        baseline: Earlier | None = None,
        *,
        baseline_system: str | None = None,
        margin: float | None = None,
        systems: Sequence[str] = (),
        settings: GateSettings | None = None,
    ) -> GateResult:
        """Test whether systems meet requirements such as `Cover@20>=0.7`, by their intervals.

        `baseline` is a file of scores by query or a run, a leaderboard or other grades;
        `baseline_system` one of its systems, or of these grades without one. With a baseline every
        measure must be no worse than there, by a `margin` or by a requirement such as
        `Cover@20>=baseline-0.02`; without requirements, these are the measures of the baseline's
        scores, or Cover@20. A missing value fails; `check()` of the result raises. Raises
        InputError for an invalid requirement, or a missing or unused margin.
        """
        from exampp.grades.gating import gate_grades

        check_lists(require=require, systems=systems)
        return gate_grades(
            self,
            require,
            baseline,
            baseline_system=baseline_system,
            margin=margin,
            systems=systems,
            settings=settings,
        )

    def changes(
        self,
        since: Earlier,
        measure: str | None = None,
        *,
        min_rating: int | None = None,
        subtopics: SubtopicChoice = "auto",
        labelling: Labelling | None = None,
    ) -> Changes:
        """Return what changed since an earlier version of the exam, and how far it is noise.

        Args:
            since: Other grades, or a leaderboard. The path of a collection, of graded passages or
                of scores. A date or time (UTC): the bank and the decisions were as before it.
            measure: By default that of the scores, or Cover@20. See `analysis.changes`.
            min_rating: The lowest rating that covers an item.
            subtopics: See `evaluate`.
            labelling: See `evaluate`.

        Raises:
            InputError: The versions have no query or no selected system in common, or the measure
                is not in the file.
        """
        from exampp.grades.changing import changes_of_grades

        return changes_of_grades(
            self,
            since,
            measure,
            min_rating=min_rating,
            subtopics=subtopics,
            labelling=labelling,
        )

    def assert_not_worse(
        self,
        baseline: Earlier | None = None,
        measures: Sequence[str] = ("Cover@20",),
        *,
        margin: float,
        baseline_system: str | None = None,
        systems: Sequence[str] = (),
        settings: GateSettings | None = None,
    ) -> None:
        """Raise GateFailed, an AssertionError, if a system is worse than a baseline; for tests.

        Raises it if a system is worse by more than the `margin`, and GateUndecided if that is
        uncertain. See `gate`.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        check_lists(measures=measures)
        self.gate(
            [f"{measure}>=baseline-{margin:.12g}" for measure in measures],
            baseline,
            baseline_system=baseline_system,
            systems=systems,
            settings=settings,
        ).check()

    def items(
        self,
        *,
        min_rating: int | None = None,
        k: int = 20,
        subtopics: SubtopicChoice = "auto",
        official: Officials = (),
        min_relevant: int | None = None,
        splits: int = 1000,
        seed: int = 0,
    ) -> ItemAnalysis:
        """Return statistics of the items of the exam, and its reliability.

        Items are covered by the top `k` passages of a system. With an `official` leaderboard (see
        `correlate`), the result shows how exams with fewer items correlate. `splits` random halves
        are drawn from the `seed`.
        """
        from exampp.analysis.items import ItemSettings, analyze
        from exampp.inputs.officials import read_officials

        book = self.gradebook
        least = self.grader.threshold(min_rating)
        relevant = relevance_threshold(min_relevant, self.highest_judgment)
        return analyze(
            book,
            self._item_scores(least, k, subtopics),
            describe_source(book.grader, book.bank_label, book.oversight),
            ItemSettings(relevant, splits, seed),
            texts=self.bank_texts(),
            officials=read_officials(official),
        )

    def turns(
        self,
        *,
        min_rating: int | None = None,
        k: int = 20,
        subtopics: SubtopicChoice = "auto",
    ) -> TurnCover:
        """Return Cover by turn of conversations; raises InputError if no item belongs to a turn."""
        from exampp.analysis.turns import cover_by_turn

        check_testable(self.gradebook)
        scores = self._item_scores(self.grader.threshold(min_rating), k, subtopics)
        found = cover_by_turn(scores, self.bank_texts(), draft=self.grader.is_draft)
        if found is None:
            raise InputError(
                "no item belongs to a turn of a conversation",
                hint="Import a bank with a column turn, which counts the turns of the user from 1",
            )
        return found

    def unsaid(
        self,
        pairs: Mapping[str, str] | None = None,
        *,
        min_rating: int | None = None,
        k: int = 20,
        subtopics: SubtopicChoice = "auto",
    ) -> Omissions:
        """Return the items that RAG systems retrieved but did not answer (generation faults).

        `pairs` maps the system of answers to that of their sources, by default those named so:
        `NAME` and `NAME:contexts` or `NAME:cited`. See `analysis.omissions`.
        """
        from exampp.analysis.omissions import find_omissions

        check_testable(self.gradebook)
        least = self.grader.threshold(min_rating)
        scores = self._item_scores(least, k, subtopics)
        return find_omissions(scores, self.bank_texts(), pairs)

    def abstention(
        self,
        *,
        min_rating: int | None = None,
        k: int = 20,
        level: float = 0.5,
        by: str | None = None,
    ) -> Abstention:
        """Return how systems answer, and abstain from, answerable and unanswerable queries.

        `level` is the lowest Cover of a right answer. `by` is a grader with the prompt
        `abstention`, or "rule"; by default such a grader if there is one. See
        `analysis.abstention`.
        """
        from exampp.analysis.abstention import find_abstention

        least = self.grader.threshold(min_rating)
        return find_abstention(
            self.gradebook,
            self.evaluate([f"Cover@{k}"], min_rating=least).columns[0],
            self.dossiers(),
            unanswerable_queries(self.connection),
            {
                one.grader.name: one.gradebook
                for one in self.others()
                if one.grader.prompt == ABSTENTION
            },
            level=level,
            by=by,
        )

    def best_first(self) -> list[str]:
        """Return the systems of answers, or all if none has answers, by Cover@20, best first.

        Without grades, they are sorted by name.
        """
        kinds = passage_kinds(self.gradebook)
        systems = [one for one, kind in kinds.items() if kind == "answers"] or list(kinds)
        if not self.gradebook.is_graded:
            return systems
        # without notes, so that another thread may call it
        board = evaluate_gradebook(self.gradebook, default_measures(self.gradebook, ("Cover@20",)))
        names = board.column_systems
        order = [names[at] for at in best_first(names, board.columns[0].values.means())]
        return [one for one in order if one in systems]

    def record(
        self, query_id: str, systems: Sequence[str] = (), *, min_rating: int | None = None
    ) -> QueryRecord:
        """Return a query with the answers of some systems, their contexts, and who covers what.

        Args:
            query_id: The query.
            systems: By default the best two systems of answers.
            min_rating: The lowest rating that covers an item.

        Raises:
            InputError: The query or a system is unknown.
        """
        from exampp.review.record import default_systems, query_record
        from exampp.store.read_model import citations_of, references_of

        check_lists(systems=systems)
        dossier = next(self.dossiers([query_id]))
        names = tuple(system_names(self.connection))
        of_query = Gradebook(self.grader, self.bank, (dossier.grades,), names)
        return query_record(
            dossier,
            systems or default_systems(dossier.grades, self.best_first()),
            passage_kinds(of_query),
            self.grader.threshold(min_rating),
            citations=citations_of(self.connection, query_id),
            references=references_of(self.connection, query_id),
            min_relevant=relevance_threshold(None, self.highest_judgment),
        )

    def answer_differences(self, query_id: str | None = None) -> AnswerDifferences:
        """Return the extracted answers on which rules for answer keys, or a verifier, differ.

        The verifier is the grader that verified these answers (`answers_of`), if there is one. See
        `review.answers`.
        """
        from exampp.review.answers import compare_answers, verdicts_of

        queries = None if query_id is None else [query_id]
        key = self.grader.key
        verifiers = (one for one in self.others() if one.bank == self.bank)
        verifier = next((v for v in verifiers if v.grader.settings.get("answers_of") == key), None)
        if verifier is None:
            return compare_answers(self.dossiers(queries), self.grader)
        verdicts = verdicts_of(verifier.dossiers(queries))
        return compare_answers(self.dossiers(queries), self.grader, verifier.grader.name, verdicts)

    def citations(self, *, first: bool = False) -> CitationScores:
        """Return precision and recall of citations; see `exampp.citations.collect`.

        With `first`, only the first citation of a sentence counts, as at TREC RAG 2024.
        """
        from exampp.analysis.citations import citation_scores

        return citation_scores(self.gradebook, first=first)

    def banks(
        self,
        *,
        k: int | None = None,
        best: int = 0,
        shared: bool = False,
        min_rating: int | None = None,
    ) -> BankComparison:
        """Compare banks with a reference bank; see `exampp.bank_matches.collect_matches`.

        Items of all kinds count, as far as this grader has graded them.

        Args:
            k: Count only the first k items of each bank and query.
            best: Choose so many items of each query from all banks by greedy choice.
            shared: Leave out queries of which no other bank has items.
            min_rating: Lowest rating that is the same, on another scale than that of `item-match`.

        Raises:
            InputError: The collection is of anything else.
        """
        from exampp.grades.matching import compare_graded

        return compare_graded(self, k, best, shared=shared, min_rating=min_rating)

    def attacks(
        self, battery: str | Path | None = None, *, min_rating: int | None = None
    ) -> AttackReport:
        """Return whether the grader can be gamed.

        `battery` is a collection of attacks (`Bank.build_battery`) graded by the same grader, by
        default the one next to this exam. Raises InputError if they are not graded.
        """
        from exampp.analysis.attacks.result import read_attacks

        return read_attacks(self.gradebook, self.path, battery, min_rating)

    def report(
        self,
        path: str | Path | None = None,
        *,
        title: str = "",
        official: Officials = (),
        measures: Sequence[Measure | str] = (),
        min_rating: int | None = None,
        min_relevant: int | None = None,
        subtopics: SubtopicChoice = "auto",
        labelling: Labelling | None = None,
        decimals: int | None = None,
        beside: Sequence[Grades] | None = None,
        interactive: bool = False,
        since: Earlier | None = None,
    ) -> Document:
        """Return a report on the leaderboard; write it to `path` as HTML or JSON, if given.

        Plots show the first of the `measures`; `official` and `decimals` are as in `correlate`.
        `beside` are grades of other graders for comparison: by default of all graders of the same
        bank. An `interactive` page also has items, passages, grades and quotes, to sort, filter and
        judge without a server; `Collection.import_files` reads the decisions that it saves. Sealed
        items are left out. `since` is an earlier version (see `changes`): a section shows what
        changed.
        """
        from datetime import UTC, datetime

        from exampp.analysis.report import report, write
        from exampp.analysis.verdict import MEASURES, ReportSettings, ReportSource
        from exampp.grades.matching import banks_of_report
        from exampp.grades.sampling import corrections
        from exampp.inputs.checking import refuse_damaged
        from exampp.inputs.officials import read_officials
        from exampp.records.calibration import calibrations_of
        from exampp.store.clients import sealed_use

        check_lists(measures=measures)
        refuse_damaged(self.connection, self.path)
        settings = ReportSettings(
            min_rating=self.grader.threshold(min_rating),
            measures=tuple(map(str, measures or default_measures(self.gradebook, MEASURES))),
            subtopics=subtopics,
            labelling=or_default("labelling", labelling, Labelling),
            official=read_officials(official),
            min_relevant=min_relevant,
            decimals=decimals,
        )
        identities = [stored.identity for stored in graders(self.connection)]
        source = ReportSource(
            name=self.path.name,
            title=title,
            bank_version=self.bank_version(),
            own_bank=self.own_bank_warning(self.gradebook),
            improvements=self.improvements(),
            edits=self.bank_edits(),
            graders=tuple(one.name for one in identities),
            calibrations=calibrations_of(self.grader, identities),
            made=f"exampp {__version__}, {datetime.now(UTC):%Y-%m-%d}",
            gaming=self._attacked(settings.min_rating),
            bank=self.bank_texts(),
            texts=self.query_texts(),
            corrected=tuple(corrections(self, settings.min_rating, min_relevant)),
            abstention=self.abstention(min_rating=settings.min_rating)
            if self.may_abstain
            else None,
            citations=self._citations_of_report(),
            banks=banks_of_report(self),
            sealed=tuple(sealed_use(self.connection, self.bank)),
            changes=None
            if since is None
            else self.changes(
                since,
                str(measures[0]) if measures else None,
                min_rating=min_rating,
                subtopics=subtopics,
                labelling=labelling,
            ),
        )
        others = list(self._same_bank()) if beside is None else beside
        books = [one.gradebook for one in others]
        details = partial(self._details, settings.min_rating) if interactive else None
        document = report(self.gradebook, settings, source, books, details)
        if path is not None:
            write(document, path)
            document = replace(document, file=Path(path))
        return document

    def _citations_of_report(self) -> CitationScores | None:
        """Return the support of sentences, if the queries are sentences with grades of support."""
        queries = self.gradebook.queries
        with suppress(InputError):
            if queries and read_sentence(queries[0].query_id):
                return self.citations()
        return None

    def _details(self, min_rating: int, board: Leaderboard) -> Mapping[str, object]:
        """Return everything behind a leaderboard, for an interactive report."""
        from exampp.review.details import report_details

        return report_details(
            self.gradebook,
            self.dossiers(),
            board.column_systems,
            board.columns,
            min_rating,
            sealed=self.bank_texts().sealed or (),
            can_decide=not is_graded_file(self.connection),
        )

    def _attacked(self, min_rating: int) -> AttackReport | None:
        """Return the effect of attacks on the grader; None without graded attacks."""
        from exampp.analysis.attacks.battery import beside

        try:
            return self.attacks(min_rating=min_rating) if beside(self.path).exists() else None
        except InputError:
            return None

    def _same_bank(self) -> Iterator[Grades]:
        """Yield the grades of all other graders of this bank."""
        for one in self.others():
            if one.grader.kind == self.grader.kind and one.bank == self.bank:
                grades = replace(self, stored=one.stored)
                if grades.gradebook.is_graded:
                    yield grades

    @property
    def decisions(self) -> Decisions:
        """Return the human decisions on these grades, the queue and the samples."""
        from exampp.grades.decisions import Decisions

        return Decisions(self.connection, self)
