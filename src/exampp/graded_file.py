"""A file of graded passages in the place of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.lines import Skipped, error_counter, existing_file, raise_error
from exampp.formats.workbench_gradebook import read_grades
from exampp.formats.workbench_graders import scale_note
from exampp.grades.grades import Grades
from exampp.grades.source import GradeSource
from exampp.records import BankEntry, GraderIdentity
from exampp.records.gradebook import DecisionChoice, Dossier, Gradebook
from exampp.records.graders import RatingScale, check_scale
from exampp.records.items import BankTexts
from exampp.records.readings import RuleCount
from exampp.records.wording import counted
from exampp.sanitize import count_replacements


class GradedFile(GradeSource[Grades]):
    """A file of graded passages, read in place of a collection; nothing is written.

    The bank of its grades is a bank file, or without one what was graded. `scale`, as (0, 3), is
    that of graders whose prompt is not known; by default it goes from 0 to the highest label
    found.
    """

    def __init__(
        self, path: str | Path, on_error: str = "refuse", scale: RatingScale | None = None
    ) -> None:
        self.path = existing_file(path)
        skipping_now = error_counter(on_error)
        self.skipped = skipping_now or Skipped()
        self._on_error = on_error
        self._counted: dict[str, tuple[RuleCount, ...]] = {}
        self._scale = None if scale is None else check_scale(scale)
        with count_replacements() as self._unfit:
            self._read = read_grades(self.path, skipping_now or raise_error, self._scale)
        if scale is not None and not any(scale_note(one, "") for one in self.graders):
            raise InputError("every grader has its own scale", file=path, mend="Leave out --scale")

    def __repr__(self) -> str:
        return f"<graded file {self.path}>"

    @property
    def graders(self) -> tuple[GraderIdentity, ...]:
        """Everyone who graded, sorted by name."""
        return self._read.graders

    @property
    def highest_judgment(self) -> int | None:
        """The highest human judgment of any passage; None where nobody judged."""
        return self._read.highest_judgment

    def bank_names(self, kind: str) -> Sequence[str | None]:  # noqa: ARG002
        """No choice: the bank is what was graded."""
        return [None]

    def _grades(
        self,
        chosen: GraderIdentity,
        bank: str | None,
        runs: Sequence[str | Path],
        part: str | None,
        decisions: DecisionChoice,
    ) -> Grades:
        if decisions == "without":
            raise InputError(
                "a graded file does not tell what people decided",
                file=self.path,
                mend="Leave out --decisions, or give a collection",
            )
        return Grades(self, chosen, bank, tuple(runs), part, decisions)

    def read_gradebook(
        self, grader: GraderIdentity, bank: str | None, part: str | None
    ) -> Gradebook:
        """The grades of a grader; `bank` is a bank file to evaluate on.

        Raises InputError for a part of a bank: the file knows of none.
        """
        if part is not None:
            raise InputError("a graded file has no sealed part", file=self.path)
        if bank is None:
            book = self._read.gradebook(grader)
        else:
            book = self._read.gradebook(grader, read_bank_file(bank), Path(bank).name)
        notes = list(book.notes)
        if self.skipped.count:
            first = self.skipped.first[0]
            notes.append(f"Skipped {counted(self.skipped.count, 'bad line')}, the first: {first}.")
        if self._unfit.file:
            place = f"{self._unfit.file}:{self._unfit.line}"
            notes.append(f"Characters that are no text are read as U+FFFD, the first in {place}.")
        notes += scale_note(grader, "found" if self._scale is None else "given")
        return replace(book, count_readings=lambda: self._readings(grader), notes=tuple(notes))

    def read_bank_texts(self, grader: GraderIdentity, bank: str | None) -> BankTexts:  # noqa: ARG002
        """The texts of the bank file, where one is named; the file itself has ids alone."""
        return BankTexts() if bank is None else BankTexts(tuple(read_bank_file(bank)))

    def _readings(self, chosen: GraderIdentity) -> tuple[RuleCount, ...]:
        """The grades of one grader by rule of reading; the file is read again, once for each."""
        if chosen.key not in self._counted:
            from exampp.formats.workbench_readings import read_readings

            rated = self._read.rated(chosen)
            self._counted[chosen.key] = read_readings(self.path, chosen, self._scale, rated)
        return self._counted[chosen.key]

    def read_dossiers(
        self, grader: GraderIdentity, bank: str | None, query_ids: Sequence[str] | None
    ) -> Iterator[Dossier]:
        """The queries one by one with texts and raw replies; `bank` is a bank file with its texts.

        The file is read again, line by line.
        """
        from exampp.formats.workbench_dossier import read_dossiers

        entries = None if bank is None else read_bank_file(bank)
        name = "" if bank is None else Path(bank).name
        # what was skipped has been counted already
        on_error = error_counter(self._on_error) or raise_error
        return read_dossiers(self.path, grader, entries, name, query_ids, on_error, self._scale)


def read_bank_file(path: str | Path) -> list[BankEntry]:
    """The entries of a bank file, workbench or written by hand."""
    # every bank format loads here, which evaluating without a bank file can do without
    from exampp.formats.detect import read_bank_file

    return list(read_bank_file(path))
