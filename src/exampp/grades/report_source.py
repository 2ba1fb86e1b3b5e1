"""What a report says of where its grades come from, and how to get them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from exampp import __version__
from exampp.analysis.attacks.battery import beside
from exampp.analysis.attacks.result import AttackReport, GamingSettings
from exampp.analysis.corrected import Corrected
from exampp.analysis.report_data import ReportInputs, ReportSettings, ReportSource, commands
from exampp.errors import InputError
from exampp.grades.chosen import ChosenGrades
from exampp.inputs.officials import Officials, files_of
from exampp.records.calibration import calibrations_of
from exampp.results.result import Table


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
        str(grades.source.path),
        {**grades.asked, "decisions": None if grades.decisions == "with" else grades.decisions},
        [str(run) for run in grades.runs],
        [str(file) for file in files_of(official) or ()],
        grades.systems,
        grades.without,
    )
    gaming = _attacked(grades.source.path, attacks, settings)
    version, own_bank = grades.source.bank_origin(grades.gradebook)
    return ReportSource(
        name=grades.source.path.name,
        title=title,
        bank_version=version,
        own_bank=own_bank,
        graders=tuple(one.name for one in grades.source.graders),
        calibrations=calibrations_of(grades.grader, grades.source.graders),
        commands=commands(
            given,
            settings,
            judged=grades.source.highest_judgment is not None,
            beside=[one.grader.key for one in (grades, *others)] if others else (),
        ),
        made=f"exampp {__version__}, {datetime.now(UTC):%Y-%m-%d}",
        gaming=gaming,
        bank=grades.source.read_bank_texts(grades.grader, grades.bank),
        sealed=_parts(compare_parts, settings) if gaming else "",
        texts=grades.source.query_texts(),
        corrected=tuple(corrected),
    )


def _attacked(
    exam: Path, attacks: Callable[..., AttackReport], settings: ReportSettings
) -> AttackReport | None:
    """What attacks on the grader showed; None where it was not attacked."""
    if not beside(exam).exists():
        return None
    looked = GamingSettings(
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
