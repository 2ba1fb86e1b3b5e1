"""The verdict that a report opens with: what it says, and how far to trust it, a sentence each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from exampp.analysis import calibration, corrected
from exampp.analysis.attacks.result import AttackReport
from exampp.analysis.calibration import CalibrationFindings
from exampp.analysis.corrected import Corrected
from exampp.analysis.grader_bias import QUESTION, GraderBias
from exampp.analysis.items import ItemAnalysis
from exampp.analysis.phrases import OVER_ALL, not_excluded, percent
from exampp.analysis.reliability import ORDER, Reliability
from exampp.analysis.report_data import LAYOUTS, ReportData
from exampp.analysis.sensitivity import Sensitivity
from exampp.analysis.warnings import EvaluatedGrades, find_warnings
from exampp.measures.board import describe_oversight
from exampp.measures.names import heading
from exampp.records.gradebook import MISSING
from exampp.records.wording import counted
from exampp.results.page import Block, Folded, Line, Notices, Section, Text, Tiles, Verdict
from exampp.results.result import Table
from exampp.results.view import interval_text

Tone = Literal["", "holds", "doubt"]
CHOICES = "Do measures and thresholds agree?"
ATTACKS = "Can the grader be gamed?"


class TrustAnswer(NamedTuple):
    """What is known of one question: in a line, and at length.

    `known` is False where nothing can be said, and the line says why.
    """

    line: Line
    section: Section
    known: bool = True


def about_items(found: ItemAnalysis) -> TrustAnswer:
    """Is the exam a good one? One sentence to act on, its reliability, the items to look at."""
    title = "Is the exam a good one?"
    if found.undefined:
        line = Line(title, found.undefined, "items")
        return TrustAnswer(line, Section("items", title, ()), known=False)
    shown = dict(found.tables())
    table = replace(shown.pop("exam"), caption="Reliability for groups of systems", notes=())
    first = found.advice()
    notes = tuple(text for text in found.exam_notes() if text not in {first, *found.notes})
    blocks = (Text(first), table, Notices(notes, "note"), *_folded(*shown.values()))
    return TrustAnswer(Line(title, first, "items"), Section("items", title, blocks))


def _folded(*tables: Table) -> tuple[Block, ...]:
    """The tables out of the way; of one without rows what it says."""
    return tuple(
        Folded(table.caption, table) if table.rows else Notices(table.notes, "note")
        for table in tables
        if table.rows or table.notes
    )


def about_reliability(found: Reliability, said_before: Collection[str] = ()) -> TrustAnswer:
    """Would other queries show the same order, and what to buy next?"""
    title = "Would other queries show the same order?"
    studies = found.known
    if not studies:
        line = Line("Reliability", found.sentences()[0], "reliability")
        return TrustAnswer(line, Section("reliability", title, ()), known=False)
    first, *others = studies
    present, worst = first.erho2.value or 0.0, min(one.erho2.value or 0.0 for one in studies)
    low = first.erho2.low
    said = f"The order on other queries would agree by {ORDER} {interval_text(first.erho2, 3)}"
    said += "".join(
        f", {interval_text(one.erho2, 3)} without {one.shown_without}" for one in others
    )
    doubt = low is None or low < found.settings.target or 2 * worst < present
    line = Line("Reliability", f"{said}.", "reliability", "doubt" if doubt else "holds")
    tables = found.tables()
    whole = tables["reliability"]
    blocks = [
        Notices(tuple(text for text in whole.notes if text not in said_before), "note"),
        replace(whole, notes=()),
        found.figure(),
        *_folded(tables["components"], tables["sizes"]),
    ]
    return TrustAnswer(line, Section.of("reliability", title, blocks))


def about_sensitivity(found: Sensitivity, said_before: Collection[str] = ()) -> TrustAnswer:
    """What of the order survives other choices, and what does each of them move?"""
    title = "What survives other choices?"
    verdict = found.verdict()
    answer = verdict or f"Nothing can be compared, because {found.reason or 'there are no pairs'}."
    always = any(one.first >= 1 for one in found.systems)
    tone: Tone = ("holds" if always else "doubt") if verdict else ""
    blocks: list[Block] = []
    if not found.reason:
        whole = found.tables()["combinations"]
        notes = tuple(text for text in whole.notes if text not in {*said_before, *found.notes})
        blocks = [Notices(notes, "note"), found.figure(), *_folded(replace(whole, notes=()))]
    section = Section.of("sensitivity", title, blocks)
    return TrustAnswer(Line(CHOICES, answer, "sensitivity", tone), section, known=bool(verdict))


def about_attacks(found: AttackReport) -> TrustAnswer:
    """Can the grader be gamed? Doubtful where an attack succeeds."""
    won = any(one.succeeds for one in found.attacks)
    tone: Tone = "doubt" if won else "holds" if found.tested else ""
    line = Line(ATTACKS, found.headline, "attacks", tone)
    whole, *others = found.tables().values()
    shown = (replace(whole, notes=()), found.figure(), *_folded(*others))
    return TrustAnswer(line, Section("attacks", ATTACKS, (Notices(whole.notes, "note"), *shown)))


def about_bias(found: GraderBias) -> TrustAnswer:
    """Does the grader favour a system? Not known where one system leaves nothing to favour."""
    blocks = tuple(found.tables().values()) if found.systems else ()
    line = Line(QUESTION, found.sentence(), "bias" if blocks else "", found.tone)
    return TrustAnswer(line, Section("bias", QUESTION, blocks), known=found.is_compared)


def not_green(line: Line, bias: GraderBias) -> Line:
    """Return the line, not marked as holding where the grader may favour a system."""
    return line._replace(tone="") if bias.tone == "doubt" and line.tone == "holds" else line


def about_corrected(found: Corrected) -> TrustAnswer:
    """What people would say of all of it, from what they said of a sample."""
    section = corrected.corrected_section([found])
    line = Line(section.title, found.lead(), "corrected", "doubt" if found.outside else "holds")
    return TrustAnswer(line, section)


def about_calibration(found: CalibrationFindings) -> TrustAnswer:
    """Which labels of people ratings tell."""
    section = calibration.findings_section(found)
    return TrustAnswer(Line(section.title, found.calibration.said(), "calibration"), section)


def not_yet(question: str, key: str, why: str) -> TrustAnswer:
    """A question that has no answer yet, for a reason that says what to do."""
    return TrustAnswer(Line(question, why, key), Section(key, question, ()))


def verdict_section(found: ReportData, answers: Mapping[str, TrustAnswer]) -> Section:
    """The first section: the verdict, what must not be overlooked, how large it all is."""
    lines = [*_best(found), *_apart(found), *_known(answers, "sensitivity"), *_official(found)]
    lines += [*_people(found), *_decisions(found), *_known(answers, "reliability")]
    lines += _known(answers, "attacks")
    for bias in _known(answers, "bias"):
        lines = [not_green(line, found.bias) for line in lines]
        lines.insert(0 if found.bias.found else 1, bias)
    official = found.settings.official.values()
    compared = min((len(set(ranks) & set(found.book.systems)) for ranks in official), default=None)
    warnings = find_warnings(
        EvaluatedGrades(found.book, found.board, found.source.own_bank, compared)
    )
    if warnings:
        count = counted(len(warnings), "warning")
        lines.append(Line("Warnings", f"{count}, below.", "", "doubt"))
    return Section.of(
        "summary",
        "Verdict",
        [
            Verdict(tuple(lines)) if lines else None,
            Notices(warnings) if warnings else None,
            Tiles(tuple(_tiles(found))),
        ],
    )


def _known(answers: Mapping[str, TrustAnswer], key: str) -> list[Line]:
    return [answers[key].line] if key in answers and answers[key].known else []


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
            said.append(f"{block.layout.lower()} {interval_text(kappa, 3)}")
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
