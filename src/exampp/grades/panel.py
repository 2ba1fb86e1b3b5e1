"""A comparison of several graders of an exam."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.grades.base import GradesBase, Judgments
from exampp.grades.grades import Grades
from exampp.records.cascade import AUDITED, UNSURE_WITHIN, cascade_rule
from exampp.records.graders import grader_label

if TYPE_CHECKING:
    from exampp.analysis.bank_effects import BankEffects
    from exampp.analysis.side_by_side import SideBySide
    from exampp.grading.cascade import Cascaded
    from exampp.grading.derived import Voted
    from exampp.inputs.officials import Officials
    from exampp.measures.names import Measure


@dataclass(frozen=True, repr=False)
class Panel(GradesBase):
    """The grades of several graders."""

    members: tuple[Grades, ...]

    def __repr__(self) -> str:
        names = ", ".join(grader_label(one.grader) for one in self.members)
        return f"<panel of {names} in {self.path}>"

    @property
    def path(self) -> Path:
        """Return the path of the collection or the graded file."""
        return self.members[0].path

    def __iter__(self) -> Iterator[Grades]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def named(self) -> Iterator[tuple[str, Grades]]:
        """Yield the grades with unique names."""
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
        """Compare graders, thresholds and measures, with official ranks (1 is best).

        Systems are sorted by the column `order`, counted from 1, or by the official leaderboard
        (0). Takes the options of `methods`.
        """
        from exampp.analysis.side_by_side import side_by_side
        from exampp.inputs.officials import read_officials

        methods = list(self.methods(measures, min_rating=min_rating, qrels=qrels))
        return side_by_side(methods, read_officials(official), order=order, decimals=decimals)

    def bank_effects(
        self,
        reference: str,
        measure: Measure | str = "Cover@20",
        *,
        min_rating: int | None = None,
        official: Officials = (),
    ) -> BankEffects:
        """Return how banks order systems beside a reference bank, and what both together gain.

        Members are the grades of one grader on several banks, as in
        `exam.panel("judge", bank=["manual", "generated"])`. Raises InputError for several graders,
        or if grades on the reference bank or on another one are missing.
        """
        from exampp.analysis.bank_effects import bank_effects
        from exampp.inputs.officials import read_officials

        if len({one.grader.key for one in self.members}) > 1:
            names = ", ".join(grader_label(one.grader) for one in self.members)
            raise InputError(f"there are several graders: {names}", hint="Name one with --grader")
        boards = {
            one.gradebook.bank: one.evaluate([measure], min_rating=min_rating)
            for one in self.members
            if one.gradebook.is_graded
        }
        return bank_effects(boards, reference, read_officials(official))

    def cascade(
        self,
        *,
        min_rating: int | None = None,
        unsure: float = UNSURE_WITHIN,
        audit: float = AUDITED,
        audit_seed: int = 0,
    ) -> Cascaded:
        """Store a cascade of two graders as a new grader: the first where it is sure, else the
        second.

        The first is unsure where its rating (its expected rating where known) is within `unsure`
        (default 0.5) of the limit halfway between `min_rating` and the rating below it, and where
        it has no grade. A random `audit` share of the other cells, drawn by `audit_seed`, has the
        rating of the second, too, and bounds the share of disagreements. Raises InputError
        for a graded file, other than two graders, or different kinds or scales.
        """
        from exampp.grading.cascade import cascade_cells

        members = {one.stored.key: one.stored for one in self.members}
        rule = cascade_rule(self.members[0].grader, min_rating, unsure, audit, audit_seed)
        banks = list(dict.fromkeys(one.bank for one in self.members))
        return cascade_cells(self.members[0].connection, list(members.values()), banks, rule)

    def vote(self, rule: str = "majority", *, at_least: int | None = None, steps: int = 1) -> Voted:
        """Combine the grades by a vote, cell by cell, and store it as a new grader.

        `rule` is one of `grading.derived.RULES`: majority, median, mean, weighted (by agreement
        with people), expected (ratings weighted by the probabilities that the model gave them) or
        criteria-sum (of four criteria of relevance). A cell gets a grade if `at_least` that many
        members (default: all) graded it. `steps` 10 makes a scale of tenths of a rating. Human
        decisions do not count as votes. Raises InputError for a graded file, or if kinds or scales
        differ.
        """
        from exampp.grading.derived import vote_cells

        members = {one.stored.key: one.stored for one in self.members}
        banks = list(dict.fromkeys(one.bank for one in self.members))
        return vote_cells(
            self.members[0].connection,
            list(members.values()),
            banks,
            rule=rule,
            least=at_least,
            steps=steps,
        )
