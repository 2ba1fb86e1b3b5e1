"""The methods that ask how far a leaderboard can be trusted; each is a command, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.records import GraderIdentity, Judgment, content_hash
from exampp.records.choosing import choose_grader, fitting_graders

if TYPE_CHECKING:
    from exampp.evaluate.exams import FacetChoice
    from exampp.evaluate.leaderboard import Leaderboard
    from exampp.evaluate.qrels import Labelling
    from exampp.meta.agreement import Comparison as Agreement
    from exampp.meta.agreement_findings import Against, Findings
    from exampp.meta.compare import Comparison
    from exampp.meta.correlation import MethodComparison
    from exampp.meta.methods import Method
    from exampp.meta.side_by_side import SideBySide
    from exampp.meta.significance import Settings, Significance
    from exampp.records.gradebook import Gradebook
    from exampp.report.page import Document
    from exampp.store.decisions import JudgedCell

Ranks = Mapping[str, float]


class Analyzing(ABC):
    """The half of what holds grades that is about their trustworthiness.

    What the methods return is data; `exampp.meta` has the tables of each (`correlation_tables`,
    `significance_tables`, `compare_tables`), and `Findings` makes its own.
    """

    path: Path

    @property
    @abstractmethod
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""

    @property
    @abstractmethod
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""

    @abstractmethod
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
        """The grades of the one grader that fits, as arrays.

        `grader` is a model, `model:prompt`, or the start of a grader's key. `runs` are run files
        that take the place of the rankings. People's decisions stand over the grades of their
        cells; `decisions="without"` leaves them out. Raises InputError where no grader fits, and
        AmbiguousGrader where several do.
        """

    @abstractmethod
    def evaluate(self, *args: Any, **options: Any) -> Leaderboard:
        """The leaderboard of all systems."""

    @abstractmethod
    def banks(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""

    def bank_origin(self, book: Gradebook) -> tuple[str, str]:
        """(the version of the bank, or the hash of its ids, a warning if the grader made it)."""
        ids = (item_id for query in book.queries for item_id in query.item_ids)
        return content_hash(*ids)[:16], ""

    def judged(self, *, grader: str, bank: str | None = None) -> Sequence[JudgedCell]:  # noqa: ARG002
        """The cells about which people decided, beside what a grader said of them."""
        return ()

    def fitting(
        self,
        graders: Sequence[str] = (),
        *,
        prompt: str | None = None,
        kind: str | None = None,
    ) -> list[GraderIdentity]:
        """All graders that fit one of the names, or all there are without names.

        Raises InputError where a name fits none.
        """
        check_lists(graders=graders)
        found: dict[str, GraderIdentity] = {}
        for name in graders or (None,):
            fitting = fitting_graders(self.graders, grader=name, prompt=prompt, kind=kind)
            # none: the error that lists them
            fitting = fitting or [
                choose_grader(self.graders, grader=name, prompt=prompt, kind=kind)
            ]
            found |= {one.key: one for one in fitting}
        return list(found.values())

    def methods(
        self,
        measures: Sequence[str] = (),
        *,
        min_rating: Sequence[int] = (),
        graders: Sequence[str] = (),
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | Sequence[str] | None = None,
        runs: Sequence[str | Path] = (),
        decisions: str = "with",
        qrels: Mapping[str, Sequence[Judgment]] | None = None,
        of: str = "",
    ) -> Iterator[Method]:
        """The ways to score systems that there are: each fitting grader, and qrels made elsewhere.

        Thresholds are by default all of a grader's scale. Of several banks each one that holds what
        a grader grades makes a way of its own. `qrels` are judgments by name; the
        systems are scored on them by the measures of qrels among `measures`. `of` goes before the
        names of graders, to tell those of several collections apart.
        """
        from exampp.meta.methods import DEFAULT_MEASURES, graded_method, qrels_method

        check_lists(measures=measures, min_rating=min_rating)
        measures = measures or DEFAULT_MEASURES
        book = None
        for name, book in self.gradebooks(
            graders, prompt=prompt, kind=kind, bank=bank, runs=runs, decisions=decisions
        ):
            yield graded_method(book, measures, min_rating, of + name)
        for name, judgments in (qrels or {}).items():
            if book is not None:
                yield qrels_method(name, book, judgments, measures, min_rating)

    def gradebooks(
        self,
        graders: Sequence[str] = (),
        *,
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | Sequence[str] | None = None,
        runs: Sequence[str | Path] = (),
        decisions: str = "with",
    ) -> Iterator[tuple[str, Gradebook]]:
        """The grades of every fitting grader on every named bank, by names that tell them apart.

        Takes the options of `fitting` and of `gradebook`.
        """
        for one in self.fitting(graders, prompt=prompt, kind=kind):
            banks = self._named_banks(one.kind, bank)
            for name in banks:
                book = self.gradebook(grader=one.key, bank=name, runs=runs, decisions=decisions)
                told = f", bank {book.bank}" if len(banks) > 1 else ""
                yield f"{one.name}{told}", book

    def _named_banks(self, kind: str, bank: str | Sequence[str] | None) -> Sequence[str | None]:
        """Those of the named banks that hold items of a kind; the first where none is known to."""
        named = [bank] if bank is None or isinstance(bank, str) else list(dict.fromkeys(bank))
        known = self.banks(kind)
        if kind != "query" and None in known:
            return named
        return [one for one in named if one in known] or named[:1]

    def leaderboards(
        self,
        official: Mapping[str, Ranks] | None = None,
        measures: Sequence[str] = ("Cover@20",),
        *,
        order: int = 1,
        decimals: int | None = None,
        **options: Any,
    ) -> SideBySide:
        """Every grader, threshold and measure side by side, with official ranks (1 is best).

        Systems are ordered by the column `order`, counted from 1, or by the official leaderboard
        (0). Takes the options of `methods`; `meta.side_by_side` makes tables of it.
        """
        from exampp.meta.side_by_side import side_by_side

        methods = list(self.methods(measures, **options))
        return side_by_side(methods, official or {}, order=order, decimals=decimals)

    def correlation(
        self,
        official: Mapping[str, Ranks],
        measures: Sequence[str] = (),
        *,
        statistics: Sequence[str] = ("spearman", "kendall"),
        samples: int = 2000,
        seed: int = 0,
        decimals: int | None = None,
        **options: Any,
    ) -> MethodComparison:
        """Rank correlation of every grader, threshold and measure with official leaderboards.

        `official` has, by name, the rank of every system (1 is best). `statistics` are those of
        `analyze.rank_statistics`; 0 `samples` make no intervals. Means are rounded to `decimals`
        before they are ranked, if some are given. Takes the options of `methods`.
        """
        from exampp.meta.correlation import compare_methods

        check_lists(statistics=statistics)
        methods = list(self.methods(measures, **options))
        return compare_methods(
            methods, official, statistics, samples=samples, seed=seed, decimals=decimals
        )

    def agreement(
        self,
        *,
        graders: Sequence[str] = (),
        prompt: str | None = None,
        kind: str | None = None,
        bank: str | None = None,
        at_least: Sequence[int] = (),
        min_rating: int | None = None,
        min_relevant: Sequence[int] = (),
        layouts: Sequence[str] = (),
        against: Against | None = None,
        decisions: str = "with",
    ) -> Findings:
        """Agreement of graders with judgments, with each other, and with people's decisions.

        The label of a passage is its m-th best rating for every m of `at_least` (by default 1, 2
        and 5); `layouts` are those of the papers' tables, by default all. The other options are
        those of `meta.agreement_findings.find` and of `gradebook`.
        """
        from exampp.meta.agreement import LAYOUTS
        from exampp.meta.agreement_findings import find
        from exampp.meta.agreement_raters import DEFAULT_AT_LEAST

        check_lists(at_least=at_least, min_relevant=min_relevant, layouts=layouts)
        chosen = self.fitting(graders, prompt=prompt, kind=kind)
        people = against in (None, "people")
        return find(
            [self.gradebook(grader=one.key, bank=bank, decisions=decisions) for one in chosen],
            people=self._with_people(chosen, bank, min_rating) if people else [],
            at_least=at_least or DEFAULT_AT_LEAST,
            min_rating=min_rating,
            min_relevant=min_relevant,
            layouts=layouts or LAYOUTS,
            against=against,
        )

    def _with_people(
        self, graders: Sequence[GraderIdentity], bank: str | None, min_rating: int | None
    ) -> list[Agreement]:
        """People against each grader, and against each other, once for every sort of scale."""
        from exampp.meta.agreement_people import among_people, with_people

        found: list[Agreement] = []
        between: dict[tuple[str, int], Sequence[Agreement]] = {}
        for grader in graders:
            cells = self.judged(grader=grader.key, bank=bank)
            found += with_people(cells, grader, min_rating)
            between[grader.kind, grader.highest] = among_people(cells, grader, min_rating)
        return [*found, *(one for pairs in between.values() for one in pairs)]

    def significance(
        self,
        measures: Sequence[str] = ("Cover@20",),
        *,
        settings: Settings | None = None,
        **options: Any,
    ) -> list[Significance]:
        """All pairs of systems tested, for every measure and threshold.

        Takes the options of `evaluate`.
        """
        from exampp.meta.significance import Settings, significance

        board = self.evaluate(measures, **options)
        settings = settings or Settings()
        return [significance(column, board.column_systems, settings) for column in board.columns]

    def compare(
        self,
        first: str,
        second: str,
        measure: str = "Cover",
        *,
        min_rating: int | None = None,
        k: int | None = None,
        facets: FacetChoice = "auto",
        seed: int = 0,
        **grades: Any,
    ) -> tuple[Comparison, Leaderboard]:
        """The difference of two systems explained, and the leaderboard that it is taken from.

        Items are those that the first `k` passages of one system cover and those of the other do
        not: as many as the measure reads, or 20 where it has no cutoff. Takes the options of
        `gradebook`. InputError for a system that is not known, and for a `k` that is not the cutoff
        of the measure; where there are no queries, items, grades or rankings.
        """
        from exampp.evaluate.lacking import lacking
        from exampp.evaluate.leaderboard import evaluate
        from exampp.evaluate.measure import parse_measure
        from exampp.meta.compare import compare

        book = self.gradebook(**grades)
        if missing := lacking(book):
            raise InputError(missing.cause, mend=missing.mend)
        asked = parse_measure(measure)
        if None not in (k, asked.cutoff) and k != asked.cutoff:
            raise InputError(
                f"{asked} reads {asked.cutoff} passages, but k is {k}",
                mend=f"Leave out k, or ask for {asked.name}@{k}",
            )
        depth = asked.cutoff or (20 if k is None else k)
        asked = asked.cut(depth) if asked.kind.cover else asked
        threshold = book.grader.default_min_rating if min_rating is None else min_rating
        board = evaluate(book, [asked], [threshold], facets=facets)
        found = compare(
            book,
            board.columns[0],
            first,
            second,
            threshold=threshold,
            k=depth,
            facets=board.facets,
            seed=seed,
        )
        return found, board

    def report(
        self,
        *,
        title: str = "",
        official: Sequence[str | Path] = (),
        measures: Sequence[str] = (),
        min_rating: int | None = None,
        min_relevant: int | None = None,
        facets: FacetChoice = "auto",
        labelling: Labelling | None = None,
        runs: Sequence[str | Path] = (),
        decisions: str = "with",
        decimals: int | None = None,
        **grades: str | None,
    ) -> Document:
        """Everything known about a leaderboard; `exampp.report.page` writes it as HTML or JSON.

        The plots show the first of the `measures`; `official` are files of official leaderboards,
        and means are rounded to `decimals` before they are ranked against those, if some are given.
        Takes the options of `gradebook`.
        """
        from exampp import __version__
        from exampp.evaluate.qrels import Labelling
        from exampp.formats import leaderboards
        from exampp.meta.findings import MEASURES, Settings, Source
        from exampp.meta.report import report
        from exampp.meta.report_commands import Given, commands

        check_lists(official=official, measures=measures)
        book = self.gradebook(**grades, runs=runs, decisions=decisions)
        settings = Settings(
            min_rating=book.grader.default_min_rating if min_rating is None else min_rating,
            measures=tuple(measures or MEASURES),
            facets=facets,
            labelling=labelling or Labelling(),
            official={name: leaderboards.read(path) for name, path in by_name(official).items()},
            min_relevant=min_relevant,
            decimals=decimals,
        )
        who = {**grades, "decisions": None if decisions == "with" else decisions}
        given = Given(str(self.path), who, [str(p) for p in runs], [str(p) for p in official])
        version, own_bank = self.bank_origin(book)
        source = Source(
            name=self.path.name,
            title=title,
            bank_version=version,
            own_bank=own_bank,
            graders=tuple(one.name for one in self.graders),
            commands=commands(given, settings, judged=self.highest_judgment is not None),
            made=f"exampp {__version__}, {datetime.now(UTC):%Y-%m-%d}",
        )
        return report(book, settings, source)


def check_decisions(choice: str) -> str:
    """The choice. Raises InputError where it is none of `DecisionChoice`."""
    if choice not in ("with", "without"):
        raise InputError(f"decisions is {choice!r}", mend="Choose with or without")
    return choice


def check_lists(**given: object) -> None:
    """Raise InputError for an argument, given by its name, that is one value and not several."""
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} is not a list", mend=f"Give one, as in {name}=[{value!r}]")


def by_name(paths: Sequence[str | Path]) -> dict[str, Path]:
    """The files by their names, or by their paths where several have one name."""
    files = list(dict.fromkeys(map(Path, paths)))
    names = [file.name for file in files]
    return {file.name if names.count(file.name) == 1 else str(file): file for file in files}
