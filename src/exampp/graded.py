"""What has been graded, and evaluating it: the half that collections and workbench files share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from exampp.analyzing import Analyzing, check_decisions, check_lists
from exampp.errors import InputError
from exampp.evaluate.cover import Missing
from exampp.evaluate.exams import FacetChoice
from exampp.evaluate.external import Returned, with_runs
from exampp.evaluate.leaderboard import Leaderboard, evaluate
from exampp.evaluate.policy import POLICIES
from exampp.evaluate.qrels import Labelling, qrels
from exampp.formats import qrels as qrels_format
from exampp.formats import ranx
from exampp.formats import runs as runs_format
from exampp.formats.lines import Skipped, existing_file, refuse
from exampp.formats.workbench_gradebook import read_grades
from exampp.formats.workbench_graders import scale_note
from exampp.meta.phrases import counted
from exampp.outside import counting_replaced
from exampp.records import BankEntry, GraderIdentity, Judgment
from exampp.records.choosing import choose_grader
from exampp.records.dossier import Dossier
from exampp.records.gradebook import Gradebook
from exampp.records.grading import RatingScale, check_scale
from exampp.records.readings import RuleCount
from exampp.records.topics import default_min_relevant
from exampp.report.table import Table

if TYPE_CHECKING:
    from exampp.review.evidence import Criteria

DEFAULT_MEASURES = ("Cover@20", "nCover@20", "nDCG@20")


class Graded(Analyzing):
    """Something that holds grades, rankings and a bank, and can be evaluated.

    Use it as a context manager, or call `close`.
    """

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
        """Close what is open; nothing where all has been read."""

    @abstractmethod
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

        The grades are those of the one grader that fits, as in `gradebook`. Raises InputError for
        a query that is not known.
        """

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
        decisions: str = "with",
    ) -> Leaderboard:
        """The leaderboard of all systems under some measures at one or several thresholds.

        `measures` are Cover, nCover and whatever ir_measures knows. `min_rating` is the lowest
        rating that counts as an answer: by default 4 of 0-5, two thirds up any other scale. The
        grades are those of `gradebook`; the other options those of `evaluate.leaderboard`.
        """
        check_lists(measures=measures)
        book = self.gradebook(
            grader=grader, prompt=prompt, kind=kind, bank=bank, runs=runs, decisions=decisions
        )
        return evaluate_gradebook(
            book,
            measures,
            min_rating,
            facets=facets,
            missing=missing,
            labelling=labelling,
            compat=compat,
        )

    def review(self, name: str, **options: Any) -> Table:
        """One of the lists that people look at: `verify`, `grid`, `missing` or `spurious`.

        Takes the options of `review_tables`.
        """
        from exampp.review.listing import joined

        return joined(self.review_tables(name, **options))

    def review_tables(
        self,
        name: str,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
        query_id: str | None = None,
        item: str | None = None,
        answers_of: str | None = None,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        limit: int | None = None,
        width: int | None = None,
        min_answers: int = 0,
    ) -> Iterator[Table]:
        """A list of `review` part by part, so that never the texts of two queries are held.

        `min_rating` is the lowest rating that covers an item (by default 4 of 0-5, two thirds up
        any other scale), `min_relevant` the lowest judgment of a relevant passage (by default 2, or
        1 where no judgment is higher). `by` says whose word makes a passage relevant: `judgments`,
        `systems` (in their first `depth` passages), `graders`, `decisions`, or by default the first
        of them that a query has. `item` is an id or the start of some; `answers_of` the grader
        whose replies are the extracted answers. `limit` leaves so many cells of each item (verify),
        passages of each query (grid) or rows; `min_answers` leaves, in these two lists of cells,
        the passages that cover at least so many items.
        With a `width` the tables are for people, who see so many characters of each text.
        """
        from exampp.review.listing import Asking, list_tables, seen_queries

        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        criteria = self.criteria(
            chosen,
            bank,
            min_rating=min_rating,
            min_relevant=min_relevant,
            by=by,
            depth=depth,
        )
        criteria = replace(criteria, min_answers=min_answers)
        queries = None if query_id is None else [query_id]
        seen = seen_queries(self, chosen, bank, queries, answers_of)
        return list_tables(name, seen, Asking(chosen, criteria, item, limit, width))

    def criteria(
        self,
        chosen: GraderIdentity,
        bank: str | None = None,
        *,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        by: str = "auto",
        depth: int = 20,
    ) -> Criteria:
        """What the lists of a grader's grades on a bank take for answers, and for relevant.

        The options are those of `review_tables`. What other exams say is read from here when it
        is first asked for.
        """
        from exampp.review.evidence import Criteria
        from exampp.review.listing import other_exams

        least = chosen.default_min_rating if min_rating is None else min_rating
        relevant = min_relevant
        if relevant is None:
            relevant = default_min_relevant(self.highest_judgment)
        others = other_exams(self, chosen, bank, relevant)
        return Criteria(least, relevant, by, depth, others)


class Workbench(Graded):
    """A file of graded passages, read in place of a collection; nothing is written.

    `bank` is a bank file to evaluate on; without one the bank is what was graded. `scale`, as
    (0, 3), is that of graders whose prompt is not known; by default it goes from 0 to the highest
    label found.
    """

    def __init__(
        self, path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
    ) -> None:
        self.path = existing_file(path)
        self.skipped = Skipped()
        self._on_error = on_error
        self._counted: dict[str, tuple[RuleCount, ...]] = {}
        self._scale = None if scale is None else check_scale(scale)
        skipped = self.skipped if on_error == "skip" else refuse
        with counting_replaced() as self._unfit:
            self._grades = read_grades(self.path, skipped, self._scale)
        if scale is not None and not any(scale_note(one, "") for one in self.graders):
            raise InputError("every grader has its own scale", file=path, mend="Leave out --scale")

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
        runs: Sequence[str | Path] = (),
        decisions: str = "with",
    ) -> Gradebook:
        """The grades of the one grader that fits; `bank` is a bank file to evaluate on.

        Raises InputError where decisions are to be left out: the file holds none.
        """
        if check_decisions(decisions) == "without":
            raise InputError(
                "a graded file does not tell what people decided",
                file=self.path,
                mend="Leave out --decisions, or give a collection",
            )
        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        if bank is None:
            book = self._grades.gradebook(chosen)
        else:
            book = self._grades.gradebook(chosen, read_bank_file(bank), Path(bank).name)
        book = replace(book, readings=self._readings(chosen))
        if self.skipped.count:
            first = self.skipped.first[0]
            note = f"Skipped {counted(self.skipped.count, 'bad line')}, the first: {first}."
            book = replace(book, notes=(*book.notes, note))
        if self._unfit.file:
            place = f"{self._unfit.file}:{self._unfit.line}"
            note = f"Characters that are no text are read as U+FFFD, the first in {place}."
            book = replace(book, notes=(*book.notes, note))
        told = scale_note(chosen, "found" if self._scale is None else "given")
        return with_run_files(replace(book, notes=(*book.notes, *told)), runs)

    def _readings(self, chosen: GraderIdentity) -> tuple[RuleCount, ...]:
        """The grades of one grader by rule of reading; the file is read again, once for each."""
        if chosen.key not in self._counted:
            from exampp.formats.workbench_readings import read_readings

            self._counted[chosen.key] = read_readings(self.path, chosen, self._scale)
        return self._counted[chosen.key]

    def banks(self, kind: str) -> Sequence[str | None]:  # noqa: ARG002
        """No choice: the bank is what was graded."""
        return [None]

    @property
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""
        return self._grades.highest_judgment

    def dossiers(
        self,
        *,
        grader: str | None = None,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        query_ids: Sequence[str] | None = None,
    ) -> Iterator[Dossier]:
        """The queries one by one with texts and raw replies; `bank` is a bank file with its texts.

        The file is read again, line by line.
        """
        from exampp.formats.workbench_dossier import read_dossiers

        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        entries = None if bank is None else read_bank_file(bank)
        name = "" if bank is None else Path(bank).name
        # what was skipped has been counted already
        on_error = Skipped() if self._on_error == "skip" else refuse
        return read_dossiers(self.path, chosen, entries, name, query_ids, on_error, self._scale)


def evaluate_gradebook(
    book: Gradebook,
    measures: Sequence[str] = DEFAULT_MEASURES,
    min_rating: int | Sequence[int] | None = None,
    *,
    facets: FacetChoice = "auto",
    missing: Missing = "zero",
    labelling: Labelling | None = None,
    compat: str = "exam",
) -> Leaderboard:
    """The leaderboard of a gradebook; see `Graded.evaluate`."""
    if compat not in POLICIES:
        raise InputError(f"no compatibility mode {compat!r}", mend=f"Known: {', '.join(POLICIES)}")
    if min_rating is None:
        min_rating = book.grader.default_min_rating
        book = replace(book, notes=(*book.notes, *filter(None, [book.grader.cut])))
    thresholds = [min_rating] if isinstance(min_rating, int) else list(min_rating)
    if not all(isinstance(threshold, int) for threshold in thresholds):
        raise InputError(f"min_rating is {min_rating!r}", mend="Give whole numbers")
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
        min_rating = book.grader.default_min_rating
    rows = [
        Judgment(row.query_id, row.passage_id, row.label)
        for row in qrels(book, labelling, min_rating, by_subtopic=by_subtopic)
    ]
    qrels_format.write(path, rows, iteration="draft" if book.grader.is_draft else "0")
    return len(rows)


def with_run_files(book: Gradebook, paths: Sequence[str | Path]) -> Gradebook:
    """The gradebook with the systems of run files in place of its own, if any are given.

    Raises InputError where no query of the runs is known.
    """
    check_lists(runs=paths)
    if not paths:
        return book
    found = with_runs(book, read_run_files(paths))
    if not any(query.rankings for query in found.gradebook.queries):
        raise InputError(
            f"none of the runs' queries is known, such as {', '.join(found.unknown_queries[:3])}",
            file=paths[0],
        )
    return found.gradebook


def read_run_files(paths: Sequence[str | Path]) -> dict[str, dict[str, list[Returned]]]:
    """Run files, and folders of such, as system -> query -> (passage, score, rank).

    Raises InputError where two files hold rankings of one system for one query.
    """
    found: dict[str, dict[str, list[Returned]]] = {}
    source: dict[tuple[str, str], str | Path] = {}
    # which kinds there are loads with every format, and is needed for runs alone
    from exampp.inputs.files import Given, tell_all

    given = [Given(Path(path), role="runs") for path in paths]
    for path, kind, _, system in tell_all(given, system=False):
        read = ranx.read if kind == "ranx" else runs_format.read
        for ranked in read(path, system=system):
            earlier = source.setdefault((ranked.system, ranked.query_id), path)
            if earlier is not path:
                raise InputError(
                    f"system {ranked.system!r} ranks for query {ranked.query_id!r} in "
                    f"{earlier} too",
                    file=path,
                    mend="Give the runs different names in their last column",
                )
            run = found.setdefault(ranked.system, {})
            returned = (ranked.passage_id, ranked.score, ranked.rank)
            run.setdefault(ranked.query_id, []).append(returned)
    return found


def read_bank_file(path: str | Path) -> list[BankEntry]:
    """The entries of a bank file, workbench or written by hand."""
    # every bank format loads here, which evaluating without a bank file can do without
    from exampp.formats import banks

    return list(banks.read(path))
