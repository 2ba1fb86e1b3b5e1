"""The commands that make a report and its parts again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exampp.meta.findings import Settings


@dataclass(frozen=True, slots=True)
class Given:
    """What a report was made from: paths, and whose grades (`grader`, `bank` ...)."""

    path: str
    grades: Mapping[str, str | None]
    runs: Sequence[str] = ()
    official: Sequence[str] = ()


def commands(given: Given, settings: Settings, *, judged: bool) -> tuple[str, ...]:
    """One line for the report, and one for each of its parts; `judged`: there are judgments."""
    who = _options({f"--{name}": [value] for name, value in given.grades.items() if value})
    ran = _options({"--run": given.runs})
    official = _options({"--official": given.official})
    measures = _options({"-m": settings.measures})
    threshold = ["--min-rating", str(settings.min_rating)]
    label = settings.labelling
    how = [*threshold, "--facets", settings.facets]
    how += ["--label", label.kind, "--at-least", str(label.at_least), "--gains", label.gains]
    relevant = settings.min_relevant
    cut = [] if relevant is None else ["--min-relevant", str(relevant)]
    common = [given.path, *who, *ran]
    lines = [
        ["report", *common, *how, *cut, *measures, *official, "-o", "report.html"],
        ["evaluate", *common, *how, *measures, "--qrels", "exam.qrels"],
        ["analyze", "significance", *common, *how, *_options({"-m": settings.measures[:1]})],
    ]
    if official:
        lines.append(["analyze", "correlation", *common, *measures, *official])
    if judged:
        lines.append(["analyze", "agreement", given.path, *who, *threshold, *cut])
    return tuple(shlex.join(["exampp", *line]) for line in lines)


def _options(values: Mapping[str, Sequence[str]]) -> list[str]:
    return [part for name, several in values.items() for one in several for part in (name, one)]
