"""The commands that make a report and its parts again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from exampp.analysis.findings import ReportSettings
from exampp.evaluate.influence import influences
from exampp.evaluate.measure import as_measures
from exampp.evaluate.qrels import Labelling

_ALL = ("Cover", "AP", "nDCG")
"""Measures that all options change something about, as they do about a report."""


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a report was made from: paths, and whose grades (`grader`, `bank` ...)."""

    path: str
    grades: Mapping[str, str | None]
    runs: Sequence[str] = ()
    official: Sequence[str] = ()
    systems: Sequence[str] = ()
    without: Sequence[str] = ()


def commands(
    given: ReportInputs, settings: ReportSettings, *, judged: bool, beside: Sequence[str] = ()
) -> tuple[str, ...]:
    """One line for the report, and one for each of its parts.

    `judged`: there are judgments; `beside` are the keys of the graders that stand side by side.
    """
    who = _options({f"--{name}": [value] for name, value in given.grades.items() if value})
    ran = _options({"--run": given.runs, "--system": given.systems, "--leave-out": given.without})
    official = _options({"--official": given.official})
    measures = _options({"-m": settings.measures})
    threshold = ["--min-rating", str(settings.min_rating)]
    relevant = settings.min_relevant
    cut = [] if relevant is None else ["--min-relevant", str(relevant)]
    first = replace(settings, measures=settings.measures[:1])
    rounded = [] if settings.decimals is None else ["--round", str(settings.decimals)]
    common = [given.path, *who, *ran]
    lines = [
        [
            "report",
            *common,
            *_how(settings, *_ALL),
            *cut,
            *measures,
            *official,
            *rounded,
            "-o",
            "report.html",
        ],
        ["evaluate", *common, *_how(settings, "nDCG"), *measures, "--qrels", "exam.qrels"],
        ["analyze", "significance", *common, *_how(first), *_options({"-m": first.measures})],
        [
            "analyze",
            "items",
            *common,
            "--subtopics",
            settings.subtopics,
            *threshold,
            *cut,
            *official,
        ],
    ]
    if beside:
        of_bank = _options({"--bank": [bank] if (bank := given.grades.get("bank")) else []})
        named = _options({"--grader": beside})
        shown = [*of_bank, *ran, *threshold, *measures, *official, *rounded]
        lines.append(["analyze", "leaderboards", given.path, *named, *shown])
    if official:
        lines.append(["analyze", "correlation", *common, *measures, *official, *rounded])
    if judged:
        lines.append(["analyze", "agreement", given.path, *who, *threshold, *cut])
    return tuple(shlex.join(["exampp", *line]) for line in lines)


def _how(settings: ReportSettings, *more: str) -> list[str]:
    """The options that change something about the measures and some more."""
    changing = influences(as_measures([*settings.measures, *more]), settings.labelling)
    told = {"min_rating": str(settings.min_rating), **_told(settings.labelling)}
    usual = _told(Labelling())
    found = {
        f"--{name.replace('_', '-')}": [value]
        for name, value in told.items()
        if name in changing and value != usual.get(name)
    }
    return ["--subtopics", settings.subtopics, *_options(found)]


def _told(labels: Labelling) -> dict[str, str]:
    return {"label": labels.kind, "at_least": str(labels.at_least), "gains": labels.gains}


def _options(values: Mapping[str, Sequence[str]]) -> list[str]:
    return [part for name, several in values.items() for one in several for part in (name, one)]
