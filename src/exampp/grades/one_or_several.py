"""The grades of one grader or of several side by side: what is asked of both alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from exampp.grades.book_source import BookSource
from exampp.grades.chosen import ChosenGrades
from exampp.records import Judgment
from exampp.sanitize import check_lists, or_default

if TYPE_CHECKING:
    from exampp.analysis.agreement import Against, Agreements
    from exampp.analysis.calibration import CalibrationFindings, CalibrationSettings
    from exampp.analysis.correlation import Correlations, Method
    from exampp.analysis.raters import RaterComparison as Agreement
    from exampp.analysis.sensitivity import Declaration, Sensitivity
    from exampp.inputs.officials import Officials
    from exampp.measures.exams import SubtopicChoice
    from exampp.measures.names import Measure
    from exampp.measures.qrels import Labelling
    from exampp.records.gradebook import Gradebook

Judgments = Mapping[str, Sequence[Judgment]]
"""Qrels by their name."""


class GradesBase(ABC):
    """The grades of one grader, or of several, and how far they agree with others."""

    source: BookSource

    @abstractmethod
    def named(self) -> Iterator[tuple[str, ChosenGrades]]:
        """The grades by names that tell them apart."""

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
        """The ways to score systems that there are: each grader, and qrels made elsewhere.

        Thresholds are by default all of a grader's scale. `qrels` are judgments by name; the
        systems are scored on them by the measures of qrels among `measures`. `of` goes before the
        names of graders, to tell those of several collections apart.
        """
        from exampp.analysis.correlation import DEFAULT_MEASURES, graded_method, qrels_method

        check_lists(measures=measures)
        min_rating = list(min_rating) if isinstance(min_rating, Iterable) else [min_rating]
        measures = measures or DEFAULT_MEASURES
        for name, one in self.named():
            yield graded_method(one.gradebook, measures, min_rating, of + name)
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
        qrels: Judgments | None = None,
    ) -> Agreements:
        """Agreement of graders with judgments, with each other, and with people's decisions.

        The label of a passage is its m-th best rating for every m of `at_least` (by default 1, 2
        and 5); `layouts` are those of the papers' tables, by default all. `qrels` are label files
        by name, which are compared with the grades, the judgments and each other. The other options
        are those of `analysis.agreement.find_agreements`.
        """
        from exampp.analysis.agreement import find_agreements
        from exampp.analysis.raters import DEFAULT_AT_LEAST, LAYOUTS

        check_lists(at_least=at_least, min_relevant=min_relevant, layouts=layouts)
        return find_agreements(
            self._books,
            people=self._with_people(min_rating) if against in (None, "people") else [],
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
        """What of the leaderboard survives all choices, graders and banks among them.

        `declaration` says what is crossed; `official` is as in `correlate`.
        """
        from exampp.analysis.sensitivity import Evaluated, sensitivity
        from exampp.inputs.officials import read_officials
        from exampp.measures.qrels import Labelling

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

        return calibrate(self._books, self.source.path.name, settings)

    def _with_people(self, min_rating: int | None) -> list[Agreement]:
        """People against each grader, and against each other, once for every sort of scale."""
        from exampp.analysis.raters import compare_people

        found: list[Agreement] = []
        among: dict[tuple[str, int], Sequence[Agreement]] = {}
        for _, one in self.named():
            grader = one.grader
            with_grader, pairs = compare_people(one.judged(), grader, min_rating)
            found += with_grader
            among[grader.kind, grader.highest] = pairs
        return [*found, *(one for pairs in among.values() for one in pairs)]
