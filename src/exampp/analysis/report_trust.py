"""The sections of a report on what its leaderboard hangs on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from exampp.analysis.item_notes import advice, exam_notes
from exampp.analysis.items import ItemAnalysis
from exampp.analysis.reliability import Reliability
from exampp.analysis.sensitivity import Sensitivity
from exampp.report.page import Folded, Notices, Section, Text


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


def items_section(found: ItemAnalysis) -> Section:
    """The exam by its items: one sentence to act on, how reliable it is, the items to look at."""
    title = "Is the exam a good one?"
    if found.undefined:
        return Section("items", title, ())
    shown = dict(found.tables())
    table = replace(shown.pop("exam"), caption="The exam as groups of systems sit it", notes=())
    first = advice(found)
    known = {first, *found.notes}
    told = tuple(note for note in exam_notes(found) if note not in known)
    folded = [Folded(one.caption, one) for one in shown.values()]
    return Section("items", title, (Text(first), table, Notices(told, "note"), *folded))
