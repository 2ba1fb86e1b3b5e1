"""The verdict that a report opens with: what it says, and how far to trust it, a sentence each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from exampp.analysis import calibration, corrected
from exampp.analysis.attacks.result import AttackReport
from exampp.analysis.calibration import CalibrationFindings
from exampp.analysis.corrected import Corrected
from exampp.analysis.grader_bias import QUESTION, GraderBias
from exampp.analysis.items import ItemAnalysis
from exampp.analysis.phrases import OVER_ALL, not_excluded, percent
from exampp.analysis.reliability import ORDER, Reliability, ReliabilityEstimate
from exampp.analysis.report_data import LAYOUTS, ReportData
from exampp.analysis.sensitivity import Sensitivity
from exampp.analysis.warnings import EvaluatedGrades, find_warnings
from exampp.measures.board import describe_oversight
from exampp.measures.names import heading
from exampp.records.gradebook import MISSING
from exampp.records.wording import counted
from exampp.results.page import Block, Folded, Line, Notices, Section, Text, Tiles, Verdict
from exampp.results.result import Table
from exampp.stats.estimate import Estimate


class TrustAnswer(NamedTuple):
    """What is known of one question: in a line, and at length."""

    line: Line
    section: Section


def about_items(found: ItemAnalysis) -> TrustAnswer:
    """Whether the exam is a good one."""
    line = Line("Is the exam a good one?", found.undefined or found.advice(), "items")
    return TrustAnswer(line, items_section(found))


def items_section(found: ItemAnalysis) -> Section:
    """The exam by its items: one sentence to act on, how reliable it is, the items to look at."""
    title = "Is the exam a good one?"
    if found.undefined:
        return Section("items", title, ())
    shown = dict(found.tables())
    table = replace(shown.pop("exam"), caption="Reliability for groups of systems", notes=())
    first = found.advice()
    known = {first, *found.notes}
    told = tuple(note for note in found.exam_notes() if note not in known)
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
    studies = found.known
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
    if not found.known:
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
            *_folded(tables["components"], tables["sizes"]),
        ],
    )


def _value(study: ReliabilityEstimate) -> float:
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
    said = found.verdict()
    if not said:
        return None
    always = any(one.first >= 1 for one in found.systems)
    return Line(CHOICES, said, "sensitivity", "holds" if always else "doubt")


def sensitivity_section(found: Sensitivity, said_before: Collection[str]) -> Section:
    """What survives all choices, and what each of them moves."""
    title = "What survives other choices?"
    if found.reason:
        return Section("sensitivity", title, ())
    whole = found.tables()["combinations"]
    notes = tuple(note for note in whole.notes if note not in {*said_before, *found.notes})
    return Section.of(
        "sensitivity",
        title,
        [Notices(notes, "note"), found.figure(), *_folded(replace(whole, notes=()))],
    )


# ---- attacks -------------------------------------------------------------------------------------


def about_attacks(found: AttackReport) -> TrustAnswer:
    """Whether the grader can be gamed."""
    line = attacks_line(found) or Line(ATTACKS, found.no_battery, "attacks")
    tables = dict(found.tables())
    whole = tables.pop("attacks" if found.battery else "circularity")
    blocks: list[Block] = [Notices(whole.notes, "note")]
    blocks += [replace(whole, notes=())] if whole.rows else []
    blocks += [found.figure()] if found.battery else []
    ledger = tables.pop("ledger")
    told = tuple(note for note in ledger.notes if note != line.answer)
    blocks += [*_folded(*tables.values(), replace(ledger, notes=())), Notices(told, "note")]
    return TrustAnswer(line, Section("attacks", ATTACKS, tuple(blocks)))


ATTACKS = "Can the grader be gamed?"


def attacks_line(found: AttackReport) -> Line | None:
    """Which attacks succeed; None where none was tried."""
    if found.battery is None:
        return None
    attacks = found.battery.attacks
    tested = any(one.holm is not None for one in attacks)
    won = any(one.succeeds for one in attacks)
    return Line(ATTACKS, found.headline, "attacks", "doubt" if won else "holds" if tested else "")


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
    section = corrected.section([found])
    line = Line(section.title, found.lead(), "corrected", "doubt" if found.outside else "holds")
    return TrustAnswer(line, section)


def about_calibration(found: CalibrationFindings) -> TrustAnswer:
    """Which labels of people ratings tell."""
    section = calibration.findings_section(found)
    return TrustAnswer(Line(section.title, found.calibration.said(), "calibration"), section)


def not_yet(question: str, key: str, why: str) -> TrustAnswer:
    """A question that has no answer yet, for a reason that says what to do."""
    return TrustAnswer(Line(question, why, key), Section(key, question, ()))


def verdict_section(found: ReportData) -> Section:
    """The first section: the verdict, what must not be overlooked, how large it all is."""
    lines = [line for part in _PARTS for line in part(found)]
    bias = bias_line(found.bias)
    if bias:
        lines = [not_green(line, found.bias) for line in lines]
        lines.insert(0 if found.bias.found else 1, bias)
    warned = _warned(found)
    if warned:
        lines.append(Line("Warnings", f"{counted(len(warned), 'warning')}, below.", "", "doubt"))
    return Section.of(
        "summary",
        "Verdict",
        [
            Verdict(tuple(lines)) if lines else None,
            Notices(warned) if warned else None,
            Tiles(tuple(_tiles(found))),
        ],
    )


def _warned(found: ReportData) -> tuple[str, ...]:
    official = found.settings.official
    compared = [len(set(ranks) & set(found.book.systems)) for ranks in official.values()]
    fewest = min(compared, default=None)
    return tuple(
        find_warnings(EvaluatedGrades(found.book, found.main, found.source.own_bank, fewest))
    )


def _tiles(found: ReportData) -> Iterator[tuple[str, str]]:
    book = found.book
    cells = sum(int((q.ratings[: q.pool_size] != MISSING).sum()) for q in book.queries)
    yield _tile(len(book.systems), "system")
    yield _tile(len(book.queries), "query")
    yield _tile(sum(len(q.item_ids) for q in book.queries), book.grader.kind, " in the bank")
    yield _tile(sum(q.pool_size for q in book.queries), "passage", " in the pool")
    yield _tile(cells, "cell", " graded")


def _tile(number: int, noun: str, rest: str = "") -> tuple[str, str]:
    shown, _, name = counted(number, noun).partition(" ")
    return shown, name + rest


# ---- the lines -----------------------------------------------------------------------------------


def _best(found: ReportData) -> Iterator[Line]:
    systems = found.tested.systems
    if not systems:
        return
    best, rest = systems[0], systems[1:]
    if best.mean.mean is None:
        yield Line("Best", f"{found.name} is undefined for every system.", "leaderboard", "doubt")
        return
    top = round(best.mean.mean, 10)
    equal = sum(row.mean.mean is not None and round(row.mean.mean, 10) == top for row in rest)
    who = (
        f"{best.system} and {equal} more share the best" if equal else f"{best.system} has the best"
    )
    said = f"{who} {found.name}, {best.mean.mean:.3f}"
    if best.low is not None and best.high is not None:
        level = percent(1 - found.settings.testing.alpha)
        said += f" ({level} interval {best.low:.3f} to {best.high:.3f})"
    tested = found.tested
    behind = sum(tested.settings.means_differ(pair) for pair in tested.pairs if pair.first == 0)
    if not rest or best.low is None:
        yield Line("Best", f"{said}.", "leaderboard")
        return
    limits = not_excluded(best.mean.queries, 1 - tested.settings.alpha)
    yield Line(
        "Best",
        f"{said}; {_others(len(rest) - behind, len(rest))} {OVER_ALL}. {limits}.",
        "leaderboard",
        "doubt" if behind < len(rest) else "holds",
    )


def _others(open_: int, rest: int) -> str:
    if not open_:
        return "every other system has a lower mean"
    if open_ == rest:
        return "no other system is shown to have a lower mean"
    are = "are" if open_ > 1 else "is"
    return f"{open_} of the {rest} others {are} not shown to have a lower mean"


def _apart(found: ReportData) -> Iterator[Line]:
    tested = found.tested
    pairs = [pair for pair in tested.pairs if pair.p is not None]
    if not pairs:
        return
    apart = sum(bool(tested.settings.differs(pair)) for pair in pairs)
    yield Line(
        "Can systems be told apart?",
        f"{apart:,} of {counted(len(pairs), 'pair')} ({apart / len(pairs):.0%}) do not behave "
        f"alike in {found.name} on {counted(len(found.main.query_ids), 'query')}.",
        "differences",
    )


def _choices(found: ReportData) -> Iterator[Line]:
    yield from filter(None, [choices_line(found.sensitivity)])


def _official(found: ReportData) -> Iterator[Line]:
    exact = found.correlation
    if exact is None:
        return
    statistic = exact.statistics[-1]
    for official in exact.officials:
        known = {
            heading(one.measure, one.min_rating): one.estimate.value
            for one in exact.found
            if one.official == official and one.statistic == statistic.name
            # which follows Cover too closely to speak for or against it
            if not one.measure.startswith("nCover")
        }
        values = {name: value for name, value in known.items() if value is not None}
        if not values:
            continue
        shown = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        said = f"{statistic.meaning} with {official}: {shown}."
        own = values.get(found.name)
        weakest = own is not None and len(values) > 1 and own <= min(values.values())
        if weakest:
            said += f" The figures below show {found.name}, which agrees least of these."
        yield Line("Official leaderboard", said, "official", "doubt" if weakest else "")


def _people(found: ReportData) -> Iterator[Line]:
    said, doubt = [], False
    for block in found.agreement[: len(LAYOUTS)]:
        kappa = block.estimates.get("kappa")
        if kappa is not None and kappa.value is not None:
            said.append(f"{block.layout.lower()} {bounded(kappa)}")
            doubt = doubt or (kappa.low is not None and kappa.low <= 0)
    if said:
        yield Line(
            "Agreement with people",
            f"Kappa of labels with judgments: {', '.join(said)}.",
            "judgments",
            "doubt" if doubt else "",
        )
    else:
        yield Line("Agreement with people", "Nobody judged what was graded.", "", "doubt")


def _decisions(found: ReportData) -> Iterator[Line]:
    book = found.book
    if book.oversight.cells:
        yield Line("Decisions", f"Included: {describe_oversight(book.oversight)}.", "leaderboard")
    if book.left_out.cells:
        yield Line(
            "Decisions", f"Left out: {describe_oversight(book.left_out)}.", "evaluated", "doubt"
        )
    if not book.oversight.cells and not book.left_out.cells:
        yield Line("Decisions", "People decided no cell.", "")


def _reliability(found: ReportData) -> Iterator[Line]:
    yield from filter(None, [reliability_line(found.reliability)])


def _attacks(found: ReportData) -> Iterator[Line]:
    if found.source.gaming and (line := attacks_line(found.source.gaming)):
        yield line._replace(section="certificate")


_PARTS = (_best, _apart, _choices, _official, _people, _decisions, _reliability, _attacks)
