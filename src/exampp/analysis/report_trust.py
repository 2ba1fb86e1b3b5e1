"""The sections of a report on what its leaderboard hangs on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from exampp.analysis.reliability import Reliability
from exampp.analysis.sensitivity import Sensitivity
from exampp.report.page import Folded, Notices, Section


def reliability_section(found: Reliability, said_before: Collection[str]) -> Section:
    """Whether other queries would show the same order, and what to buy next."""
    title = "Would other queries show the same order?"
    if not any(study.says_something for study in found.studies):
        return Section("reliability", title, ())
    tables = found.tables()
    whole = tables["reliability"]
    notes = tuple(note for note in whole.notes if note not in said_before)
    return Section.of(
        "reliability",
        title,
        [
            Notices(notes, "note"),
            found.figure(),
            replace(whole, notes=()),
            tables["queries"],
            *(Folded(tables[name].caption, tables[name]) for name in ("components", "sizes")),
        ],
    )


def sensitivity_section(found: Sensitivity, said_before: Collection[str]) -> Section:
    """What survives all choices, and what each of them moves."""
    title = "What survives other choices?"
    if found.reason:
        return Section("sensitivity", title, ())
    tables = found.tables()
    whole = tables["systems"]
    notes = tuple(note for note in whole.notes if note not in {*said_before, *found.notes})
    others = [table for name, table in tables.items() if name != "systems"]
    return Section.of(
        "sensitivity",
        title,
        [
            Notices(notes, "note"),
            found.figure(),
            *others,
            Folded("Ranks of all systems", replace(whole, notes=())),
        ],
    )
