"""What a report says of where its grades come from, and how to get them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from exampp.analysis.attacks.battery import beside
from exampp.analysis.attacks.result import AttackReport, AttackSettings
from exampp.analysis.corrected import Corrected
from exampp.analysis.report_data import ReportInputs, ReportSettings, ReportSource, commands
from exampp.errors import InputError
from exampp.grades.base import ChosenGrades
from exampp.inputs.officials import Officials, unnamed_files
from exampp.records.calibration import calibrations_of
from exampp.results.result import Table
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
    compare_parts: Callable[..., Table],
    corrected: Sequence[Corrected | str],
) -> ReportSource:
    """The origin of some grades, with the commands; `others` are set beside them.

    `attacks` and `compare_parts` are what these grades make of attacks and of parts of the bank.
    """
    given = ReportInputs(
        str(grades.path),
        {**grades.choice, "decisions": None if grades.with_decisions else "without"},
        [str(run) for run in grades.runs],
        [str(file) for file in unnamed_files(official) or ()],
        grades.systems,
        grades.without,
    )
    gaming = _attacked(grades.path, attacks, settings)
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
        gaming=gaming,
        bank=grades.bank_texts(),
        sealed=_parts(compare_parts, settings) if gaming else "",
        texts=grades.query_texts(),
        corrected=tuple(corrected),
    )


def _attacked(
    exam: Path, attacks: Callable[..., AttackReport], settings: ReportSettings
) -> AttackReport | None:
    """What attacks on the grader showed; None where it was not attacked."""
    if not beside(exam).exists():
        return None
    looked = AttackSettings(
        settings.min_rating,
        settings.min_relevant,
        officials=settings.official,
        subtopics=settings.subtopics,
    )
    found = attacks(settings=looked)
    return found if found.battery else None


def _parts(compare_parts: Callable[..., Table], settings: ReportSettings) -> str:
    """What the sealed part of the bank says beside the public one."""
    try:
        table = compare_parts(
            settings.measures[0], min_rating=settings.min_rating, subtopics=settings.subtopics
        )
    except InputError:
        return "no part of the bank is sealed"
    return table.notes[0]
