"""Computations of a report, its warnings, and its opening verdict."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from exampp.analysis import agreement as agreements
from exampp.analysis import calibration, corrected
from exampp.analysis.abstention import Abstention
from exampp.analysis.agreement import AgreementBlock, Agreements
from exampp.analysis.attacks.result import AttackReport
from exampp.analysis.banks import BankComparison
from exampp.analysis.calibration import CalibrationFindings
from exampp.analysis.changes import Changes
from exampp.analysis.citations import CitationScores
from exampp.analysis.corrected import Corrected
from exampp.analysis.correlation import (
    Correlations,
    board_method,
    compare_methods,
)
from exampp.analysis.grader_bias import DEPTH, QUESTION, GraderBias, grader_bias
from exampp.analysis.items import ItemAnalysis, ItemSettings, analyze
from exampp.analysis.omissions import Omissions, find_omissions
from exampp.analysis.phrases import OVER_ALL, not_excluded, percent
from exampp.analysis.raters import Layout
from exampp.analysis.reliability import Reliability, scored_column, study_reliability
from exampp.analysis.sensitivity import Declaration, Evaluated, Sensitivity, evaluate_specifications
from exampp.analysis.side_by_side import SideBySide, side_by_side
from exampp.analysis.significance import Significance, significance
from exampp.analysis.significance import SignificanceSettings as Testing
from exampp.items.edits import EditRound
from exampp.items.improvement_rounds import (
    ImprovementRound,
    chosen_items_warning,
    human_choices,
)
from exampp.measures.board import Leaderboard, describe_oversight
from exampp.measures.cover import ItemScores, item_scores
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import default_cutoff, evaluate
from exampp.measures.names import as_measures, heading
from exampp.measures.qrels import Labelling
from exampp.measures.values import MeasureColumn
from exampp.records.calibration import Calibration
from exampp.records.clients import SealedUse
from exampp.records.gradebook import MISSING, Gradebook, find_pairs
from exampp.records.inputs import relevance_threshold
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.notes import Note, labelled, merge_notes, note, with_code, without_code
from exampp.results.page import Block, Folded, Line, Notices, Section, Tiles, Verdict
from exampp.results.result import Table
from exampp.results.view import interval_text
from exampp.stats.estimate import SAMPLES

MEASURES = ("Cover@20", "nCover@20", "nDCG@20", "P@20", "AP")
_SPECIFICATIONS = Declaration(missing=("zero",))
"""Combinations of a report: few enough to be quick."""
LAYOUTS: tuple[Layout, ...] = ("STRICT", "LENIENT")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Settings of a report: the first measure at `min_rating` is the one in the figures.

    `official` are official leaderboards by name, system to rank; `min_relevant` is the lowest
    judgment of a relevant passage.
    """

    min_rating: int
    measures: tuple[str, ...] = MEASURES
    subtopics: SubtopicChoice = "auto"
    labelling: Labelling = field(default_factory=Labelling)
    testing: Testing = field(default_factory=Testing)
    official: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    min_relevant: int | None = None
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class ReportSource:
    """The source of the grades, and further information on them.

    `own_bank` is a warning if the grading model also made the bank; `improvements` are the rounds
    by which grades chose items of it, `edits` all edits. `graders` are the names of all graders.
    `gaming` is the result of attacks on the grader, None without attacks. `corrected` are
    leaderboards corrected by samples, or the reason why there is none. `calibrations` are those
    that the grades are labels of, or that are made from them; `texts` are the queries', by their
    ids, and `bank` those of the items. `changes` are those since an earlier version, if requested.
    `abstention` is None unless queries are marked as unanswerable, `citations` unless queries are
    sentences of answers, and `banks` unless other banks are compared with the bank.
    `sealed` is the use of the sealed parts of the bank by clients of the service.
    """

    name: str
    title: str = ""
    bank_version: str = ""
    own_bank: str = ""
    improvements: tuple[ImprovementRound, ...] = ()
    edits: tuple[EditRound, ...] = ()
    graders: tuple[str, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    made: str = ""
    gaming: AttackReport | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    bank: BankTexts = field(default_factory=BankTexts)
    corrected: tuple[Corrected | str, ...] = ()
    changes: Changes | None = None
    abstention: Abstention | None = None
    citations: CitationScores | None = None
    banks: BankComparison | None = None
    sealed: tuple[SealedUse, ...] = ()


@dataclass(frozen=True)
class ReportData:
    """The computed results that the sections of a report show.

    `correlation` is that of `board` with official leaderboards, with intervals, and
    `correlation_everywhere` that at every threshold; `beside` compares the board with those of
    other graders. `omissions` are those of RAG systems whose retrieved passages are systems, too.
    They are None if unavailable.
    """

    book: Gradebook
    settings: ReportSettings
    source: ReportSource
    board: Leaderboard
    tested: Significance
    items: ItemAnalysis
    reliability: Reliability
    sensitivity: Sensitivity
    agreement: tuple[AgreementBlock, ...]
    bias: GraderBias
    correlation: Correlations | None = None
    correlation_everywhere: Correlations | None = None
    beside: SideBySide | None = None
    omissions: Omissions | None = None

    @property
    def main(self) -> MeasureColumn:
        """The column of the figures."""
        return self.board.columns[0]

    @property
    def name(self) -> str:
        """The name of the column of the figures."""
        return self.main.name


def compute_report_data(
    book: Gradebook,
    settings: ReportSettings,
    source: ReportSource,
    others: Sequence[Gradebook] = (),
) -> ReportData:
    """Compute the data of a report; `others` are other graders' gradebooks of the same exam.

    Raises:
        InputError: A measure or the threshold makes no sense.
    """
    board = _board(book, settings, [settings.min_rating])
    scores = _item_scores(book, settings)
    scale = range(book.grader.lowest + 1, book.highest_threshold + 1)
    everywhere = _board(book, settings, scale) if settings.official else board
    return ReportData(
        book=book,
        settings=settings,
        source=source,
        board=board,
        tested=significance(book, board.columns[0], board.column_systems, settings.testing),
        reliability=study_reliability(scored_column(book, board, texts=source.bank)),
        sensitivity=evaluate_specifications(
            [Evaluated(book.grader.name, book, board.subtopics, settings.labelling)],
            _SPECIFICATIONS,
        ),
        agreement=_agreement(book, settings),
        bias=grader_bias(book, board.columns[0].measure.cutoff or DEPTH),
        items=_item_analysis(book, scores, settings, source.bank),
        correlation=_correlation(board, settings, SAMPLES),
        correlation_everywhere=_correlation(everywhere, settings, 0),
        beside=_beside(board, others, settings),
        omissions=find_omissions(scores, source.bank).without_texts(source.bank.sealed or ())
        if find_pairs(scores.systems)
        else None,
    )


def _agreement(book: Gradebook, settings: ReportSettings) -> tuple[AgreementBlock, ...]:
    """Return the agreement with judgments; empty if passages are graded only for some items."""
    if book.ungraded_by_target:
        return ()
    found = agreements.find_agreements(
        [book],
        at_least=tuple(dict.fromkeys((settings.labelling.at_least, 1, 2))),
        min_rating=settings.min_rating,
        min_relevant=() if settings.min_relevant is None else (settings.min_relevant,),
        layouts=LAYOUTS,
        against="judgments",
    )
    return tuple(block for block in found.judged if block.units)


def _item_scores(book: Gradebook, settings: ReportSettings) -> ItemScores:
    """Return the scores of the items under the report's first Cover, or else its first measure of
    items.
    """
    covers = [one for one in as_measures(settings.measures) if one.kind.cover and one.cutoff]
    covers.sort(key=lambda one: one.name != "Cover")
    k = (covers[0].cutoff if covers else None) or default_cutoff(book)
    return item_scores(book, settings.min_rating, k, subtopics=settings.subtopics)


def _item_analysis(
    book: Gradebook, scores: ItemScores, settings: ReportSettings, texts: BankTexts
) -> ItemAnalysis:
    """Return the item analysis, from fewer random halves."""
    highest = max((int(query.judgments.max(initial=MISSING)) for query in book.queries), default=0)
    relevant = relevance_threshold(settings.min_relevant, highest if highest != MISSING else None)
    found = analyze(book, scores, "", ItemSettings(relevant, splits=_SPLITS), texts=texts)
    return found.without_sealed_texts()


_SPLITS = 200


def _board(book: Gradebook, settings: ReportSettings, min_ratings: Sequence[int]) -> Leaderboard:
    return evaluate(
        book,
        settings.measures,
        min_ratings,
        subtopics=settings.subtopics,
        labelling=settings.labelling,
    )


def _beside(
    board: Leaderboard, others: Sequence[Gradebook], settings: ReportSettings
) -> SideBySide | None:
    """Return the board with those of other graders, at its threshold or their default."""
    if not others:
        return None
    scale = (board.grader.lowest, board.grader.highest)
    boards = [board]
    for book in others:
        grader = book.grader
        usual = grader.default_min_rating
        same = (grader.lowest, grader.highest) == scale
        boards.append(_board(book, settings, [settings.min_rating if same else usual]))
    methods = [
        board_method(one, labelled(one.grader.name, draft=one.grader.is_draft)) for one in boards
    ]
    return side_by_side(methods, settings.official, decimals=settings.decimals)


def _correlation(board: Leaderboard, settings: ReportSettings, samples: int) -> Correlations | None:
    """Correlate every column of a board with the official leaderboards, if there are any."""
    if not settings.official:
        return None
    return compare_methods(
        [board_method(board, board.grader.name)],
        settings.official,
        samples=samples,
        seed=settings.testing.seed,
        level=1 - settings.testing.alpha,
        decimals=settings.decimals,
    )


# ---- warnings ----------------------------------------------------------------------------------

USUAL_QUERIES = 25
USUAL_SYSTEMS = 10
"""Numbers below which a report warns."""

FAMILIES: Mapping[str, str] = {
    "T5": r"flan|[a-z]{0,4}t5(?![0-9])",
    "BERT": r"[a-z]{0,7}bert[a-z]?",
    "GPT": r"(?:chat)?gpt|davinci",
    "Llama": r"llama|vicuna|alpaca",
    "Mistral": r"mistral|mixtral|ministral",
    "Claude": r"claude",
    "Gemini": r"gemini|gemma|palm",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Phi": r"phi",
    "Command": r"cohere|command-r|aya",
    "OLMo": r"olmo|tulu",
    "Granite": r"granite",
    "Falcon": r"falcon",
}
"""Families of models, and how they are called in the names of models and systems.

A family counts where its pattern is a word: letters neither before nor after it.
"""

_WORDS = {
    family: re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])") for family, pattern in FAMILIES.items()
}
OF_BOARD = (
    *("draft", "prerequisite", "bank-inferred", "cells-ungraded", "cover-ungraded"),
    *("passages-ungraded", "unanswered-by-all", "unanswered"),
)
"""The notes of a leaderboard that are warnings in a verdict."""


def families_of(name: str) -> tuple[str, ...]:
    """Return the model families that a name refers to."""
    folded = name.casefold()
    return tuple(family for family, word in _WORDS.items() if word.search(folded))


def _warnings(data: ReportData) -> Iterator[Note]:
    """Yield one sentence for each reason to be careful."""
    book, source = data.book, data.source
    values = [query.ratings[query.ratings != MISSING] for query in book.queries]
    found = np.unique(np.concatenate(values)) if values else np.empty(0)
    if len(found) == 1:
        yield note("no-signal", rating=int(found[0]))
    count = len(data.main.query_ids)
    if 0 < count < USUAL_QUERIES:
        counts = f"{counted(count, 'query')} {'counts' if count == 1 else 'count'}"
        yield note("few-queries", counts=counts, usual=USUAL_QUERIES)
    model = book.grader.model
    families = set(families_of(model))
    if akin := sorted(one for one in book.systems if families & set(families_of(one))):
        systems = counted(len(akin), "system")
        named = {"families": sorted(families), "systems": akin}
        yield note("one-family", model=model, count=systems, **named)
    if source.own_bank:
        yield note("own-bank", text=source.own_bank)
    chosen = (chosen_items_warning(source.improvements), *human_choices(source.improvements))
    for text in filter(None, chosen):
        yield note("chosen-items", text=text)
    official = data.settings.official.values()
    compared = min((len({*ranks} & {*book.systems}) for ranks in official), default=0)
    if 0 < compared < USUAL_SYSTEMS:
        yield note("few-systems", systems=counted(compared, "system"), least=USUAL_SYSTEMS)


# ---- verdict -----------------------------------------------------------------------------------


Tone = Literal["", "holds", "doubt"]
APART = "Do systems differ?"
OFFICIAL = "Does the official leaderboard show the same order?"
PEOPLE = "Do the grades agree with people?"
CHOICES = "Do measures and thresholds agree?"
ATTACKS = "Can the grader be gamed?"


class TrustAnswer(NamedTuple):
    """The answer to one question about trust: in a line, and in detail.

    `known` is False if there is no answer; the line then gives the reason. `value` is the answer in
    a few words, "" if there is none.
    """

    line: Line
    section: Section
    known: bool = True
    value: str = ""


def about_items(analysis: ItemAnalysis) -> TrustAnswer:
    """Answer whether the exam is good: reliability, and the items to review."""
    title = "Is the exam a good one?"
    shown = dict(analysis.tables())
    # Cover by turn has a section, and a page
    shown.pop("turns", None)
    table = replace(shown.pop("exam"), caption="Reliability for groups of systems")
    known = not analysis.undefined
    blocks = (table, *_folded(*shown.values())) if known else ()
    return _answer("items", title, analysis.headline, blocks, known=known)


def _answer(
    key: str,
    title: str,
    headline: str,
    blocks: Sequence[Block],
    tone: Tone = "",
    *,
    question: str = "",
    known: bool = True,
    value: str = "",
) -> TrustAnswer:
    """Return the answer and its section, which shows the headline before its tables."""
    line = Line(question or title, headline, key if blocks else "", tone)
    section = Section(key, title, tuple(blocks)).with_verdict(headline)
    return TrustAnswer(line, section, known, value)


def _folded(*tables: Table) -> tuple[Block, ...]:
    """Return the tables collapsed; for a table without rows its note."""
    return tuple(
        Folded(table.caption, table) if table.rows else Notices(table.notes, "note")
        for table in tables
        if table.rows or table.notes
    )


def about_reliability(result: Reliability, known: Collection[str] = ()) -> TrustAnswer:
    """Answer whether other queries would give the same order, and what to add next.

    Notes of `known` codes are shown elsewhere.
    """
    title, question = "Would other queries show the same order?", "Reliability"
    studies = result.known
    if not studies:
        return _answer("reliability", title, result.headline, (), question=question, known=False)
    present, worst = studies[0].erho2.value or 0.0, min(one.erho2.value or 0.0 for one in studies)
    low = studies[0].erho2.low
    doubt = low is None or low < result.settings.target or 2 * worst < present
    tables = result.tables()
    blocks = (
        _without(tables["reliability"], known),
        result.plot(),
        *_folded(tables["components"], tables["sizes"]),
    )
    tone: Tone = "doubt" if doubt else "holds"
    value = f"{present:.2f}" if present - worst < _SAME else f"{worst:.2f} to {present:.2f}"
    return _answer(
        "reliability", title, result.headline, blocks, tone, question=question, value=value
    )


_SAME = 0.05
"""Reliabilities that differ by less are shown as one value."""


def _without(table: Table, known: Collection[str]) -> Table:
    """Return the table without the notes of some codes."""
    return replace(table, notes=tuple(without_code(table.notes, *known)))


def about_sensitivity(result: Sensitivity, known: Collection[str] = ()) -> TrustAnswer:
    """Answer which parts of the order survive other choices, and the effect of each choice.

    Notes of `known` codes are shown elsewhere.
    """
    title = "What survives other choices?"
    compared = not result.reason and result.pairs > 0
    always = any(one.first >= 1 for one in result.systems)
    tone: Tone = ("holds" if always else "doubt") if compared else ""
    blocks: tuple[Block, ...] = ()
    if not result.reason:
        whole = _without(result.tables()["combinations"], known)
        blocks = (result.plot(), *_folded(replace(whole, verdict="")))
    return _answer(
        "sensitivity", title, result.headline, blocks, tone, question=CHOICES, known=compared
    )


def about_attacks(result: AttackReport) -> TrustAnswer:
    """Answer whether the grader can be gamed. Doubtful if an attack succeeds."""
    won = any(one.succeeds for one in result.attacks)
    tone: Tone = "doubt" if won else "holds" if result.tested else ""
    whole, *others = result.tables().values()
    blocks = (whole, result.plot(), *_folded(*others))
    return _answer("attacks", ATTACKS, result.headline, blocks, tone)


def about_bias(result: GraderBias) -> TrustAnswer:
    """Answer whether the grader favours a system. Unknown with a single system."""
    blocks = tuple(result.tables().values()) if result.systems else ()
    headline, known, value = result.headline, result.is_compared, ""
    if known and result.is_judged and not result.reason:
        named = [f"{one.verdict} {one.system}" for one in result.found[:1]]
        value = "".join(named) or ("none" if result.tone == "holds" else "cannot tell")
    return _answer("bias", QUESTION, headline, blocks, result.tone, known=known, value=value)


def about_differences(tested: Significance) -> TrustAnswer:
    """Answer how many pairs of systems differ significantly."""
    pairs = len(tested.tested)
    value = f"{tested.different:,} of {counted(pairs, 'pair')}" if pairs else ""
    return _answer("differences", APART, tested.headline, (), known=bool(value), value=value)


def about_official(result: Correlations) -> TrustAnswer:
    """Answer whether the official leaderboard has the same order."""
    statistic = result.statistics[-1].name
    found = [one.estimate.value for one in result.found if one.statistic == statistic]
    value = next((f"{one:.2f}" for one in found if one is not None), "")
    blocks = tuple(result.tables().values())
    return _answer("official", OFFICIAL, result.headline, blocks, known=bool(value), value=value)


def about_people(result: Agreements) -> TrustAnswer:
    """Answer how well labels made of ratings agree with judgments, by Cohen's kappa."""
    kappas = [block.estimates["kappa"].value for block in result.judged]
    value = next((f"{one:.2f}" for one in kappas if one is not None), "")
    reason = "" if value else " ".join(with_code(result.notes, "no-judgments"))
    headline, blocks = reason or result.headline, _folded(*result.tables().values())
    return _answer("people", PEOPLE, headline, blocks, known=bool(value), value=value)


def about_missing(share: float) -> TrustAnswer:
    """Answer how many cells behind a score have no grade, from the largest `share` of a system."""
    headline = "Every score is complete: no grade is missing."
    shown = percent(float(f"{share:.3g}"))
    if share:
        headline = f"Up to {shown} of the cells behind a score have no grade."
    return _answer("missing", "Are grades missing?", headline, (), value=shown)


def about_corrected(result: Corrected) -> TrustAnswer:
    """Answer how people would rate the whole pool, from their verdicts on a sample."""
    section = corrected.corrected_section([result])
    tone: Tone = "doubt" if result.outside else "holds"
    return _answer(section.key, section.title, result.headline, section.blocks, tone)


def about_calibration(result: CalibrationFindings) -> TrustAnswer:
    """Answer how well ratings predict people's labels."""
    section = calibration.findings_section(result)
    return _answer(section.key, section.title, result.headline, section.blocks)


def not_green(line: Line, bias: GraderBias) -> Line:
    """Return the line, not marked as holding if the grader may favour a system."""
    return line._replace(tone="") if bias.tone == "doubt" and line.tone == "holds" else line


def not_yet(question: str, key: str, why: str) -> TrustAnswer:
    """Return an unanswered question, with the reason and what to do."""
    return TrustAnswer(Line(question, why, key), Section(key, question, ()), known=False)


def verdict_section(data: ReportData, answers: Mapping[str, TrustAnswer]) -> Section:
    """Return the first section: verdict, warnings, and the size of the exam."""
    lines = [*_best(data), *_apart(data), *_known(answers, "sensitivity"), *_official(data)]
    lines += [*_people(data), *_decisions(data), *_known(answers, "reliability")]
    if data.source.changes:
        lines.append(Line("What changed?", data.source.changes.headline, "changes"))
    if data.source.abstention:
        lines.append(Line("Answered, or abstained?", data.source.abstention.headline, "abstention"))
    if data.omissions:
        lines.append(Line("Retrieval or generation?", data.omissions.headline, "omissions"))
    lines += _known(answers, "attacks")
    for bias in _known(answers, "bias"):
        lines = [not_green(line, data.bias) for line in lines]
        lines.insert(0 if data.bias.found else 1, bias)
    warnings = (*with_code(data.board.notes, *OF_BOARD), *merge_notes(_warnings(data)))
    if warnings:
        count = counted(len(warnings), "warning")
        lines.append(Line("Warnings", f"{count}, below.", "", "doubt"))
    return Section.of(
        "summary",
        "Verdict",
        [
            Verdict(tuple(lines)) if lines else None,
            Notices(warnings) if warnings else None,
            _ranked_sources(data),
            Tiles(tuple(_tiles(data))),
        ],
    )


def _ranked_sources(data: ReportData) -> Notices | None:
    """Return a note that retrieved passages are ranked beside the answers made of them."""
    sources = find_pairs(data.book.systems).values()
    if not sources:
        return None
    names = ", ".join(sources)
    return Notices(
        (
            f"Retrieved passages are ranked beside answers ({names}). To rank answers: "
            "--system answers.",
        ),
        "note",
    )


def _known(answers: Mapping[str, TrustAnswer], key: str) -> list[Line]:
    return [answers[key].line] if key in answers and answers[key].known else []


def _tiles(data: ReportData) -> Iterator[tuple[str, str]]:
    book = data.book
    cells = sum(int((q.ratings[: q.pool_size] != MISSING).sum()) for q in book.queries)
    yield _tile(len(book.systems), "system")
    yield _tile(len(book.queries), "query")
    yield _tile(sum(len(q.item_ids) for q in book.queries), book.grader.kind, " in the bank")
    yield _tile(sum(q.pool_size for q in book.queries), "passage", " in the pool")
    yield _tile(cells, "cell", " graded")


def _tile(number: int, noun: str, rest: str = "") -> tuple[str, str]:
    shown, _, name = counted(number, noun).partition(" ")
    return shown, name + rest


def _best(data: ReportData) -> Iterator[Line]:
    tested = data.tested
    line = about_best(tested)
    if line is None:
        return
    best, *rest = tested.systems
    if rest and best.low is not None:
        behind = sum(tested.settings.means_differ(pair) for pair in tested.pairs if pair.first == 0)
        others = _others(len(rest) - behind, len(rest))
        limits = not_excluded(best.mean.queries, 1 - tested.settings.alpha)
        answer = f"{line.answer.removesuffix('.')}; {others} {OVER_ALL}. {limits}."
        line = line._replace(answer=answer, tone="doubt" if behind < len(rest) else "holds")
    yield line


def about_best(tested: Significance) -> Line | None:
    """Name the best system and its interval; None without systems."""
    if not tested.systems:
        return None
    name, (best, *rest) = tested.column.name, tested.systems
    if best.mean.mean is None:
        return Line("Best", f"{name} is undefined for every system.", "leaderboard", "doubt")
    top = round(best.mean.mean, 10)
    equal = [
        row.system for row in rest if row.mean.mean is not None and round(row.mean.mean, 10) == top
    ]
    others = equal[0] if len(equal) == 1 else f"{len(equal)} more"
    has = f"and {others} share" if equal else "has"
    who = f"{best.system} {has} the best"
    sentence = f"{who} {name}, {best.mean.mean:.3f}"
    if best.low is not None and best.high is not None:
        level = percent(1 - tested.settings.alpha)
        sentence += f" ({level} interval {best.low:.3f} to {best.high:.3f})"
    return Line("Best", f"{sentence}.", "leaderboard")


def _others(open_: int, rest: int) -> str:
    if not open_:
        return "every other system has a lower mean"
    if open_ == rest:
        return "no other system is shown to have a lower mean"
    are = "are" if open_ > 1 else "is"
    return f"{open_} of the {rest} others {are} not shown to have a lower mean"


def _apart(data: ReportData) -> Iterator[Line]:
    if any(pair.p is not None for pair in data.tested.pairs):
        yield Line(APART, data.tested.headline, "differences")


def _official(data: ReportData) -> Iterator[Line]:
    exact = data.correlation
    if exact is None:
        return
    statistic = exact.statistics[-1]
    for official in exact.officials:
        known = {
            heading(one.measure, one.min_rating): one.estimate.value
            for one in exact.found
            if one.official == official and one.statistic == statistic.name
            # which is too close to Cover to be evidence for or against it
            if not one.measure.startswith("nCover")
        }
        values = {name: value for name, value in known.items() if value is not None}
        if not values:
            continue
        shown = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        sentence = f"{statistic.title} with {official}: {shown}."
        own = values.get(data.name)
        weakest = own is not None and len(values) > 1 and own <= min(values.values())
        if weakest:
            sentence += f" The figures below show {data.name}, the lowest of these."
        yield Line("Official leaderboard", sentence, "official", "doubt" if weakest else "")


def _people(data: ReportData) -> Iterator[Line]:
    sentences, doubt = [], False
    for block in data.agreement[: len(LAYOUTS)]:
        kappa = block.estimates.get("kappa")
        if kappa is not None and kappa.value is not None:
            sentences.append(f"{block.layout.lower()} {interval_text(kappa, 3)}")
            doubt = doubt or (kappa.low is not None and kappa.low <= 0)
    if sentences:
        yield Line(
            "Agreement with people",
            f"Kappa of labels with judgments: {', '.join(sentences)}.",
            "judgments",
            "doubt" if doubt else "",
        )
    else:
        why = data.book.ungraded_by_target or "No graded passage has a judgment."
        yield Line("Agreement with people", why, "", "doubt")


def _decisions(data: ReportData) -> Iterator[Line]:
    book = data.book
    if book.oversight.cells:
        yield Line("Decisions", f"Included: {describe_oversight(book.oversight)}.", "leaderboard")
    if book.left_out.cells:
        yield Line(
            "Decisions", f"Left out: {describe_oversight(book.left_out)}.", "evaluated", "doubt"
        )
    if not book.oversight.cells and not book.left_out.cells:
        yield Line("Decisions", "No cell has a human decision.", "")
