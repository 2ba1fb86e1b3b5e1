"""What a report says of where its grades come from, and how to get them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from exampp.analysis.attacks.battery import beside
from exampp.analysis.attacks.result import AttackReport
from exampp.analysis.corrected import Corrected
from exampp.analysis.report_data import ReportInputs, ReportSettings, ReportSource, commands
from exampp.errors import InputError
from exampp.grades.base import ChosenGrades
from exampp.inputs.officials import Officials, unnamed_files
from exampp.records.calibration import calibrations_of
from exampp.store.grades import graders
from exampp.version import __version__


def source_of(
    grades: ChosenGrades,
    settings: ReportSettings,
    title: str,
    official: Officials,
    others: Sequence[ChosenGrades],
    *,
    attacks: Callable[..., AttackReport],
    corrected: Sequence[Corrected | str],
) -> ReportSource:
    """The origin of some grades, with the commands; `others` are set beside them.

    `attacks` is what these grades make of attacks.
    """
    given = ReportInputs(
        str(grades.path),
        {**grades.choice, "decisions": None if grades.with_decisions else "without"},
        [str(run) for run in grades.runs],
        [str(file) for file in unnamed_files(official) or ()],
        grades.systems,
        grades.without,
    )
    known = [stored.identity for stored in graders(grades.connection)]
    return ReportSource(
        name=grades.path.name,
        title=title,
        bank_version=grades.bank_version(),
        own_bank=grades.own_bank_warning(grades.gradebook),
        graders=tuple(one.name for one in known),
        calibrations=calibrations_of(grades.grader, known),
        commands=commands(
            given,
            settings,
            judged=grades.highest_judgment is not None,
            beside=[one.grader.key for one in (grades, *others)] if others else (),
        ),
        made=f"exampp {__version__}, {datetime.now(UTC):%Y-%m-%d}",
        gaming=_attacked(grades, attacks, settings.min_rating),
        bank=grades.bank_texts(),
        texts=grades.query_texts(),
        corrected=tuple(corrected),
    )


def _attacked(
    grades: ChosenGrades, attacks: Callable[..., AttackReport], min_rating: int
) -> AttackReport | None:
    """Return what attacks on the grader showed; None where it was not attacked."""
    if not beside(grades.path).exists():
        return None
    with suppress(InputError):
        return attacks(min_rating=min_rating)
    return None
