"""How far to trust a leaderboard: questions, each answered in a sentence and at length."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from exampp.analysis import calibration_tables, corrected_tables
from exampp.analysis.attacks.tables import Gaming, attack_notes, headline
from exampp.analysis.calibration_tables import CalibrationFindings
from exampp.analysis.corrected_tables import Corrected
from exampp.analysis.grader_bias import QUESTION, GraderBias
from exampp.analysis.item_notes import advice, exam_notes
from exampp.analysis.items import ItemAnalysis
from exampp.analysis.reliability_records import Study
from exampp.analysis.reliability_sentences import ORDER
from exampp.analysis.reliability_tables import Reliability
from exampp.analysis.sensitivity import Sensitivity
from exampp.report.page import Block, Folded, Line, Notices, Section, Text
from exampp.report.table import Table
from exampp.stats.estimate import Estimate


class TrustAnswer(NamedTuple):
    """What is known of one question: in a line, and at length."""

    line: Line
    section: Section


def about_items(found: ItemAnalysis) -> TrustAnswer:
    """Whether the exam is a good one."""
    line = Line("Is the exam a good one?", found.undefined or advice(found), "items")
    return TrustAnswer(line, items_section(found))


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
    return Section(
        "items", title, (Text(first), table, Notices(told, "note"), *_folded(*shown.values()))
    )


def _folded(*tables: Table) -> tuple[Block, ...]:
    """The tables out of the way; of one without rows what it says."""
    return tuple(
        Folded(table.caption, table) if table.rows else Notices(table.notes, "note")
        for table in tables
        if table.rows or table.notes
    )


# ---- other queries, other choices ----------------------------------------------------------------


def about_reliability(found: Reliability) -> TrustAnswer:
    """Whether other queries would show the same order."""
    line = reliability_line(found) or Line("Reliability", found.sentences()[0], "reliability")
    return TrustAnswer(line, reliability_section(found, ()))


def reliability_line(found: Reliability) -> Line | None:
    """How alike the order on other queries would be; None where nothing can be said."""
    studies = [study for study in found.studies if study.says_something]
    if not studies:
        return None
    present, worst = _value(studies[0]), min(map(_value, studies))
    low = studies[0].erho2.low
    said = f"The order on other queries would agree by {ORDER} {bounded(studies[0].erho2)}"
    said += "".join(
        f", {bounded(study.erho2)} without {study.shown_without}" for study in studies[1:]
    )
    doubt = low is None or low < found.settings.target or 2 * worst < present
    return Line("Reliability", f"{said}.", "reliability", "doubt" if doubt else "holds")


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
            replace(whole, notes=()),
            found.figure(),
            tables["queries"],
            *_folded(tables["components"], tables["sizes"]),
        ],
    )


def _value(study: Study) -> float:
    return study.erho2.value or 0.0


def bounded(one: Estimate) -> str:
    """0.964 [0.946, 0.979]; the value alone where it has no interval."""
    if one.low is None or one.high is None:
        return f"{one.value:.3f}"
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def about_sensitivity(found: Sensitivity) -> TrustAnswer:
    """What of the order survives other choices."""
    said = f"Nothing can be compared, because {found.reason}." if found.reason else ""
    line = choices_line(found) or Line(CHOICES, said or "There are no pairs.", "sensitivity")
    return TrustAnswer(line, sensitivity_section(found, ()))


CHOICES = "Do measures and thresholds agree?"


def choices_line(found: Sensitivity) -> Line | None:
    """What holds under all choices; None where nothing could be compared."""
    said = found.survives()
    if not said:
        return None
    always = any(one.first >= 1 for one in found.systems)
    return Line(CHOICES, said, "sensitivity", "holds" if always else "doubt")


def sensitivity_section(found: Sensitivity, said_before: Collection[str]) -> Section:
    """What survives all choices, and what each of them moves."""
    title = "What survives other choices?"
    if found.reason:
        return Section("sensitivity", title, ())
    tables = dict(found.tables())
    whole = tables.pop("systems")
    notes = tuple(note for note in whole.notes if note not in {*said_before, *found.notes})
    return Section.of(
        "sensitivity",
        title,
        [
            Notices(notes, "note"),
            *tables.values(),
            found.figure(),
            *_folded(replace(whole, caption="Ranks of all systems", notes=())),
        ],
    )


# ---- attacks -------------------------------------------------------------------------------------


def about_attacks(found: Gaming) -> TrustAnswer:
    """Whether the grader can be gamed."""
    line = attacks_line(found) or Line(ATTACKS, found.no_battery, "attacks")
    tables = dict(found.tables())
    blocks: list[Block] = []
    if found.battery:
        blocks.append(Notices(tuple(attack_notes(found, found.battery)), "note"))
        blocks.append(replace(tables.pop("attacks"), notes=()))
        blocks.append(found.figure())
    else:
        whole = tables.pop("circularity")
        blocks.append(whole if whole.rows else Notices(whole.notes, "note"))
    ledger = tables.pop("ledger")
    told = tuple(note for note in ledger.notes if note != line.answer)
    blocks += [*_folded(*tables.values(), replace(ledger, notes=())), Notices(told, "note")]
    return TrustAnswer(line, Section("attacks", ATTACKS, tuple(blocks)))


ATTACKS = "Can the grader be gamed?"


def attacks_line(found: Gaming) -> Line | None:
    """Which attacks succeed; None where none was tried."""
    if found.battery is None:
        return None
    attacks = found.battery.results.attacks
    if any(one.succeeds for one in attacks):
        return Line(ATTACKS, headline(attacks), "attacks", "doubt")
    tested = any(one.holm is not None for one in attacks)
    return Line(ATTACKS, headline(attacks), "attacks", "holds" if tested else "")


# ---- a grader that favours a system --------------------------------------------------------------


def about_bias(found: GraderBias) -> TrustAnswer:
    """Answer the question whether the grader favours a system."""
    line = Line(QUESTION, found.sentence(), "bias", found.tone)
    return TrustAnswer(line, bias_section(found))


def bias_line(found: GraderBias) -> Line | None:
    """Return the line of a verdict; None where one system leaves nothing to favour."""
    if not found.is_compared:
        return None
    return about_bias(found).line._replace(section="bias" if found.systems else "")


def bias_section(found: GraderBias) -> Section:
    """Return the section of the check; no blocks where no system was checked."""
    blocks = tuple(found.tables().values()) if found.systems else ()
    return Section("bias", QUESTION, blocks)


def not_green(line: Line, bias: GraderBias) -> Line:
    """Return the line, not marked as holding where the grader may favour a system."""
    return line._replace(tone="") if bias.tone == "doubt" and line.tone == "holds" else line


# ---- people --------------------------------------------------------------------------------------


def about_corrected(found: Corrected) -> TrustAnswer:
    """What people would say of all of it, from what they said of a sample."""
    section = corrected_tables.section([found])
    said = corrected_tables.lead(found)
    line = Line(section.title, said, "corrected", "doubt" if found.outside else "holds")
    return TrustAnswer(line, section)


def about_calibration(found: CalibrationFindings) -> TrustAnswer:
    """Which labels of people ratings tell."""
    section = calibration_tables.findings_section(found)
    return TrustAnswer(Line(section.title, found.calibration.said(), "calibration"), section)


def not_yet(question: str, key: str, why: str) -> TrustAnswer:
    """A question that has no answer yet, for a reason that says what to do."""
    return TrustAnswer(Line(question, why, key), Section(key, question, ()))
