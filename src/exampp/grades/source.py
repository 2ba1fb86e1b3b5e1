"""What grades are taken from: a collection, or a file of graded passages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from exampp.grades.book_source import BookSource
from exampp.grades.grades import Grades
from exampp.grades.panel import Panel
from exampp.records import GraderIdentity
from exampp.records.graders import choose_grader, fitting_graders
from exampp.sanitize import check_lists

if TYPE_CHECKING:
    from exampp.grades.gating import Earlier
    from exampp.records.gradebook import DecisionChoice

G = TypeVar("G", bound=Grades)


class GradeSource(BookSource, Generic[G]):
    """Something that holds grades, rankings and banks: a collection, or a graded file.

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

    # ---- choosing -------------------------------------------------------------------------------

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
    ) -> G:
        """The grades of the one grader that fits, on one bank.

        `grader` is a model, `model:prompt`, or the start of a grader's key. `runs` are run files
        that take the place of the rankings. Only some `systems` count, if they are named, and none
        of `without`. `part` leaves only the `public` or the `sealed` items
        of a bank that was split. People's decisions stand over the grades of their cells;
        `decisions="without"` leaves them out. `bank` is for a graded file a bank file to evaluate
        on. Raises InputError where no grader fits, and AmbiguousGrader where several do.
        """
        from exampp.records.gradebook import check_decisions

        check_lists(runs=runs, systems=systems, without=without)
        check_decisions(decisions)
        chosen = choose_grader(self.graders, grader=grader, prompt=prompt, kind=kind)
        found = self._grades(chosen, bank, runs, part, decisions)
        return replace(
            found,
            systems=tuple(systems),
            without=tuple(without),
            asked={"grader": grader, "prompt": prompt, "kind": kind, "bank": bank},
        )

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
    ) -> Panel[G]:
        """The grades of every grader that fits one of the names, or of all without names.

        Takes the options of `grades`; of several banks, those that hold what a grader grades.
        Raises InputError where a name fits none.
        """
        from exampp.records.gradebook import check_decisions

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
            replace(
                self._grades(one, name, runs, None, decisions),
                systems=tuple(systems),
                without=tuple(without),
            )
            for one in found.values()
            for name in self._named_banks(one.kind, bank)
        )
        return Panel(self, tuple(members))

    def _named_banks(self, kind: str, bank: str | Sequence[str] | None) -> Sequence[str | None]:
        """Those of the named banks that hold items of a kind; the first where none is known to."""
        named = [bank] if bank is None or isinstance(bank, str) else list(dict.fromkeys(bank))
        known = self.bank_names(kind)
        if kind != "query" and None in known:
            return named
        return [one for one in named if one in known] or named[:1]

    @abstractmethod
    def _grades(
        self,
        chosen: GraderIdentity,
        bank: str | None,
        runs: Sequence[str | Path],
        part: str | None,
        decisions: DecisionChoice,
    ) -> G:
        """The grades of a grader."""
