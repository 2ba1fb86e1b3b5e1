"""Several graders of an exam, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from exampp.grades.book_source import BookSource
from exampp.grades.chosen import ChosenGrades
from exampp.outside import check_lists, or_default
from exampp.records import Judgment
from exampp.records.choosing import label

if TYPE_CHECKING:
    from exampp.analysis.agreement import RaterComparison as Agreement
    from exampp.analysis.agreement_findings import Against, Agreements
    from exampp.analysis.calibration import CalibrationSettings
    from exampp.analysis.calibration_tables import CalibrationFindings
    from exampp.analysis.correlation_tables import Correlations
    from exampp.analysis.methods import Method
    from exampp.analysis.reliability_graders import GraderReliability
    from exampp.analysis.reliability_records import ReliabilitySettings
    from exampp.analysis.reliability_tables import Reliability
    from exampp.analysis.sensitivity import Declaration, Sensitivity
    from exampp.analysis.side_by_side import SideBySide
    from exampp.evaluate.cover import Missing
    from exampp.evaluate.exams import SubtopicChoice
    from exampp.evaluate.measure import Measure
    from exampp.evaluate.qrels import Labelling
    from exampp.grade.voting import Voted
    from exampp.inputs.officials import Officials

Judgments = Mapping[str, Sequence[Judgment]]
"""Qrels by their name."""


M = TypeVar("M", bound=ChosenGrades)


@dataclass(frozen=True, repr=False)
class Panel(Generic[M]):
    """The grades of several graders, side by side."""

    source: BookSource
    members: tuple[M, ...]

    def __repr__(self) -> str:
        names = ", ".join(label(one.grader) for one in self.members)
        return f"<panel of {names} in {self.source.path}>"

    def __iter__(self) -> Iterator[M]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def named(self) -> Iterator[tuple[str, M]]:
        """The grades by names that tell them apart."""
        of_grader = Counter(one.grader.key for one in self.members)
        for one in self.members:
            several = of_grader[one.grader.key] > 1
            yield one.grader.name + (f", bank {one.gradebook.bank_label}" if several else ""), one

    def evaluate(
        self,
        measures: Sequence[Measure | str] = ("Cover@20",),
        *,
        min_rating: int | Sequence[int] = (),
        official: Officials = (),
        order: int = 1,
        decimals: int | None = None,
        qrels: Judgments | None = None,
    ) -> SideBySide:
        """Every grader, threshold and measure side by side, with official ranks (1 is best).

        Systems are ordered by the column `order`, counted from 1, or by the official leaderboard
        (0). Takes the options of `methods`.
        """
        from exampp.analysis.side_by_side import side_by_side
        from exampp.inputs.officials import read_officials

        methods = list(self.methods(measures, min_rating=min_rating, qrels=qrels))
        return side_by_side(methods, read_officials(official), order=order, decimals=decimals)

    def methods(
        self,
        measures: Sequence[Measure | str] = (),
        *,
        min_rating: int | Sequence[int] = (),
        qrels: Judgments | None = None,
        of: str = "",
    ) -> Iterator[Method]:
        """The ways to score systems that there are: each grader, and qrels made elsewhere.

        Thresholds are by default all of a grader's scale. `qrels` are judgments by name; the
        systems are scored on them by the measures of qrels among `measures`. `of` goes before the
        names of graders, to tell those of several collections apart.
        """
        from exampp.analysis.methods import DEFAULT_MEASURES, graded_method, qrels_method

        check_lists(measures=measures)
        min_rating = list(min_rating) if isinstance(min_rating, Iterable) else [min_rating]
        measures = measures or DEFAULT_MEASURES
        for name, one in self.named():
            yield graded_method(one.gradebook, measures, min_rating, of + name)
        for name, judgments in (qrels or {}).items():
            book = self.members[-1].gradebook
            yield qrels_method(name, book, judgments, measures, min_rating)

    def vote(self, rule: str = "majority", *, at_least: int | None = None) -> Voted:
        """Keep what the graders say together, cell by cell, as grades of a grader of its own.

        `rule` is one of `records.voting.RULES`: majority, median or mean. A cell has a grade where
        `at_least` so many graded it, by default all. People's decisions about members do not count.
        Raises InputError for a graded file, and for graders of other kinds or scales.
        """
        from exampp.errors import InputError
        from exampp.grade.voting import vote

        found = [getattr(one, "stored", None) for one in self.members]
        stored = [one for one in found if one is not None]
        if len(stored) < len(found):
            raise InputError(
                "a graded file is only read", mend="Import it into a collection: exampp import"
            )
        members = {one.key: one for one in stored}
        banks = list(dict.fromkeys(one.bank or "" for one in self.members))
        first: Any = self.members[0]
        return vote(first.connection, list(members.values()), banks, rule=rule, at_least=at_least)

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
        """Rank correlation of every grader, threshold and measure with official leaderboards.

        `official` is a file, or several; a frame of systems with their ranks or scores; a dict of
        system to rank (1 is best); or a dict of names to such. `statistics` are those of
        `stats.rank_statistics`; 0 `samples` make no intervals. Means are rounded to `decimals`
        before they are ranked, if some are given. Takes the options of `methods`.
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
    ) -> Agreements:
        """Agreement of graders with judgments, with each other, and with people's decisions.

        The label of a passage is its m-th best rating for every m of `at_least` (by default 1, 2
        and 5); `layouts` are those of the papers' tables, by default all. The other options are
        those of `analysis.agreement_findings.find`.
        """
        from exampp.analysis.agreement import LAYOUTS
        from exampp.analysis.agreement_findings import find
        from exampp.analysis.agreement_raters import DEFAULT_AT_LEAST

        check_lists(at_least=at_least, min_relevant=min_relevant, layouts=layouts)
        return find(
            [one.gradebook for one in self.members],
            people=self._with_people(min_rating) if against in (None, "people") else [],
            at_least=at_least or DEFAULT_AT_LEAST,
            min_rating=min_rating,
            min_relevant=min_relevant,
            layouts=layouts or LAYOUTS,
            against=against,
        )

    def reliability(
        self,
        measure: Measure | str = "Cover@20",
        *,
        settings: ReliabilitySettings | None = None,
        min_rating: int | None = None,
        subtopics: SubtopicChoice = "auto",
        missing: Missing = "zero",
        labelling: Labelling | None = None,
    ) -> Reliability | GraderReliability:
        """How reliable the leaderboard is; several graders are a facet of one more study.

        Takes the options of `Grades.reliability`.
        """
        from exampp.analysis.reliability import reliability, scored_column
        from exampp.analysis.reliability_graders import grader_reliability
        from exampp.evaluate.leaderboard import evaluate_gradebook

        scored = {}
        for name, one in self.named():
            board = evaluate_gradebook(
                one.gradebook,
                [measure],
                min_rating,
                subtopics=subtopics,
                missing=missing,
                labelling=labelling,
            )
            scored[name] = scored_column(one.gradebook, board, missing)
        if len(scored) == 1:
            return reliability(next(iter(scored.values())), settings)
        return grader_reliability(scored, settings)

    def sensitivity(
        self,
        declaration: Declaration | None = None,
        *,
        official: Officials = (),
        subtopics: SubtopicChoice = "auto",
        labelling: Labelling | None = None,
    ) -> Sensitivity:
        """What of the leaderboard survives all choices, graders and banks among them.

        `declaration` says what is crossed; `official` is as in `correlate`.
        """
        from exampp.analysis.sensitivity import Evaluated, sensitivity
        from exampp.evaluate.qrels import Labelling
        from exampp.inputs.officials import read_officials

        given = [
            Evaluated(name, one.gradebook, subtopics, or_default("labelling", labelling, Labelling))
            for name, one in self.named()
        ]
        return sensitivity(given, declaration, read_officials(official))

    def calibration(self, settings: CalibrationSettings | None = None) -> CalibrationFindings:
        """What makes people's labels out of the ratings of these graders, and how good that is.

        Its `save` writes it, and `Collection.calibrate` labels passages with it. InputError where
        nobody judged, or one query or one label is all there is.
        """
        from exampp.analysis.calibration import calibrate

        return calibrate([one.gradebook for one in self.members], self.source.path.name, settings)

    def _with_people(self, min_rating: int | None) -> list[Agreement]:
        """People against each grader, and against each other, once for every sort of scale."""
        from exampp.analysis.agreement_people import among_people, with_people

        found: list[Agreement] = []
        between: dict[tuple[str, int], Sequence[Agreement]] = {}
        for one in self.members:
            cells, grader = one.judged(), one.grader
            found += with_people(cells, grader, min_rating)
            between[grader.kind, grader.highest] = among_people(cells, grader, min_rating)
        return [*found, *(one for pairs in between.values() for one in pairs)]
