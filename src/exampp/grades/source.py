"""What grades are taken from: a collection, or a file of graded passages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from exampp.outside import check_lists
from exampp.records import GraderIdentity, content_hash
from exampp.records.bank import BankTexts
from exampp.records.choosing import choose_grader, fitting_graders
from exampp.store.bank import Makers

if TYPE_CHECKING:
    from exampp.grades.gating import Earlier
    from exampp.grades.grades import Grades
    from exampp.grades.panel import Panel
    from exampp.records.dossier import Dossier
    from exampp.records.gradebook import DecisionChoice, Gradebook

G = TypeVar("G", bound="Grades")


class GradeSource(ABC, Generic[G]):
    """Something that holds grades, rankings and banks: a collection, or a graded file.

    Use it as a context manager, or call `close`.
    """

    path: Path

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
    ) -> Panel:
        """The grades of every grader that fits one of the names, or of all without names.

        Takes the options of `grades`; of several banks, those that hold what a grader grades.
        Raises InputError where a name fits none.
        """
        from exampp.grades.panel import Panel
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

    # ---- what is read ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, in order of first appearance."""

    @property
    @abstractmethod
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""

    @abstractmethod
    def bank_names(self, kind: str) -> Sequence[str | None]:
        """The banks that hold items of a kind; None where there is but one, and no choice."""

    @abstractmethod
    def read_gradebook(
        self, grader: GraderIdentity, bank: str | None, part: str | None
    ) -> Gradebook:
        """The grades of a grader on a bank, or on a part of it, with people's decisions."""

    @abstractmethod
    def read_dossiers(
        self, grader: GraderIdentity, bank: str | None, query_ids: Sequence[str] | None
    ) -> Iterator[Dossier]:
        """The queries one by one with texts, raw replies and decisions: all, or those asked for."""

    def query_texts(self) -> dict[str, str]:
        """The texts of queries, by id; empty where the source has none."""
        return {}

    def read_bank_texts(self, grader: GraderIdentity, bank: str | None) -> BankTexts:  # noqa: ARG002
        """The texts of a bank, as far as they are known."""
        return BankTexts()

    def bank_makers(self, book: Gradebook) -> Makers:
        """The models that made the items of a bank, as far as it says so."""
        return Makers(sum(len(query.item_ids) for query in book.queries), {})

    def bank_origin(self, book: Gradebook) -> tuple[str, str]:
        """(the version of the bank, or the hash of its ids, a warning if the grader made it)."""
        ids = (item_id for query in book.queries for item_id in query.item_ids)
        return content_hash(*ids)[:16], ""
