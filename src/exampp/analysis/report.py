"""Content of a report: the leaderboard, everything known about it, and its reliability."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from exampp.analysis import agreement, calibration, correlation, figures
from exampp.analysis.abstention import Abstention
from exampp.analysis.agreement import label_name
from exampp.analysis.banks import BankComparison
from exampp.analysis.changes import Changes
from exampp.analysis.citations import CitationScores
from exampp.analysis.corrected import corrected_section
from exampp.analysis.correlation import Correlations
from exampp.analysis.phrases import share_shown
from exampp.analysis.significance import leaderboard_table, pair_notes
from exampp.analysis.turns import TurnCover
from exampp.analysis.verdict import (
    LAYOUTS,
    ReportData,
    ReportSettings,
    ReportSource,
    about_attacks,
    about_bias,
    about_items,
    about_reliability,
    about_sensitivity,
    compute_report_data,
    verdict_section,
)
from exampp.formats.output import writing
from exampp.items.edits import describe_changes
from exampp.items.improvement_rounds import ImprovementRound, describe_improvement
from exampp.items.sealed_use import describe_sealed_use, sealed_use_figure, sealed_use_table
from exampp.measures.board import Leaderboard, describe_oversight, wide_leaderboard
from exampp.measures.qrels import Labelling
from exampp.measures.values import MeasureColumn
from exampp.records.clients import SealedUse
from exampp.records.gradebook import MISSING, Gradebook, answering
from exampp.records.readings import (
    COLUMNS,
    describe_readings,
    reading_warnings,
    rules_table,
    without_grade,
)
from exampp.records.wording import counted
from exampp.results import page
from exampp.results.notes import Note, labelled
from exampp.results.page import Block, Document, Facts, Folded, Section, Text, Verdict
from exampp.results.result import Table
from exampp.results.view import Cell, Column, interval_text
from exampp.stats.cascade import describe_audit
from exampp.stats.estimate import Estimate

_HARDEST = 10
_ROUNDS = 10


def write(document: Document, path: str | Path) -> None:
    """Write the report as HTML, or as JSON by file name.

    Raises:
        InputError: The name ends in another format, the extra `plots` is not installed, or the file
            cannot be written.
    """
    content = page.renderer(Path(path))(document)
    with writing(path) as stream:
        stream.write(content.encode())


def report(
    book: Gradebook,
    settings: ReportSettings,
    source: ReportSource,
    others: Sequence[Gradebook] = (),
    details: Callable[[Leaderboard], Mapping[str, Any]] | None = None,
) -> Document:
    """Return the whole report, with `others` of the same exam; see `find` for errors.

    `details` returns everything behind the leaderboard, for an interactive page.
    """
    data = compute_report_data(book, settings, source, others)
    shown = {one.code for one in data.board.notes if isinstance(one, Note)}
    answers = {
        "items": about_items(data.items),
        "reliability": about_reliability(data.reliability, shown),
        "sensitivity": about_sensitivity(data.sensitivity, shown),
        "bias": about_bias(data.bias),
        **({"attacks": about_attacks(source.gaming)} if source.gaming else {}),
    }
    sections = (
        verdict_section(data, answers),
        _changes(source.changes),
        _evaluated(data),
        _bank(source),
        _sealed(source.sealed),
        _leaderboard(data),
        _differences(data),
        answers["reliability"].section,
        answers["sensitivity"].section,
        _graders(data),
        _official(data),
        answers["bias"].section,
        corrected_section(source.corrected),
        _omissions(data),
        _plotted("abstention", "Answered, or abstained?", source.abstention),
        _plotted("citations", "Are sentences supported?", source.citations),
        _plotted("turns", "Which turns are covered?", data.items.turns),
        answers["items"].section,
        _plotted("banks", "Do other banks ask for the same?", source.banks),
        _judgments(data),
        *([answers["attacks"].section] if "attacks" in answers else []),
        _grades(data),
        calibration.calibration_section(source.calibrations),
        _queries(data),
        _provenance(data),
    )
    return Document(
        title=labelled(source.title or source.name, draft=book.grader.is_draft),
        subtitle=f"{counted(len(book.systems), 'system')} on "
        f"{counted(len(book.queries), 'query')}, graded by {book.grader.name}",
        sections=tuple(_with_verdict(one, sections[0]) for one in sections if one.blocks),
        colophon=source.made,
        details=None if details is None else details(data.board),
    )


def _with_verdict(section: Section, summary: Section) -> Section:
    """Return the section with the line of the summary that refers to it, if it has no verdict."""
    lines = (line for one in summary.blocks if isinstance(one, Verdict) for line in one.lines)
    found = next((line.answer for line in lines if line.section == section.key), "")
    return section.with_verdict(found) if found and not section.verdict else section


# ---- sections ------------------------------------------------------------------------------------


def _changes(changes: Changes | None) -> Section:
    if changes is None:
        return Section("changes", "What changed?", ())
    scores, *others = changes.tables().values()
    blocks: list[Block] = [changes.plot(), replace(scores, verdict="")]
    blocks += [Folded(one.caption, one) for one in others]
    title = f"What changed since {changes.since}?"
    return Section("changes", title, tuple(blocks)).with_verdict(changes.headline)


def _evaluated(data: ReportData) -> Section:
    book, source, settings = data.book, data.source, data.settings
    grader = book.grader
    bank = book.bank_label or "the items that were graded"
    version = f", version {source.bank_version}" if source.bank_version else ""
    items = [len(query.item_ids) for query in book.queries]
    judged = sum(int((q.judgments[0] != MISSING).sum()) for q in book.queries)
    ranked = sum(len(r.passages) for query in book.queries for r in query.rankings)
    facts = [
        ("Data", source.name),
        ("Bank", f"{bank}{version}"),
        (
            "Items per query",
            " to ".join(map(str, sorted({min(items, default=0), max(items, default=0)}))),
        ),
        ("Grader", grader.model),
        ("Prompt", f"{grader.prompt}, graded against each {grader.kind}"),
        ("Scale", f"{grader.lowest} to {grader.highest}"),
        ("Covered", f"rated {settings.min_rating} or above"),
        ("Relevance label", _label_words(settings.labelling)),
        ("Ranked passages", f"{ranked:,}"),
        ("Human judgments", f"{judged:,}" if judged else "none"),
    ]
    if book.oversight.cells:
        facts.append(("Decided by people", describe_oversight(book.oversight)))
    if book.left_out.cells:
        facts.append(("Decided by people, left out here", describe_oversight(book.left_out)))
    others = [name for name in source.graders if name != grader.name]
    if others:
        facts.append(("Other graders in the data", ", ".join(others)))
    return Section.of(
        "evaluated", "What was evaluated", [Facts(tuple(facts)), _missing_table(data)]
    )


def _bank(source: ReportSource) -> Section:
    """Return the edits of the bank; nothing if it is as it was made."""
    title, edits = "How was the bank edited?", source.edits
    rounds = [one for one in edits if not one.is_creation]
    if not rounds:
        return Section("bank", title, ())
    rows: list[list[Cell]] = [
        [
            str(one.first) if one.first == one.last else f"{one.first}\u2013{one.last}",
            *(one.edit.at, one.edit.author, one.operation, one.items, one.what, one.edit.reason),
        ]
        for one in edits
    ]
    columns = ["edits", "at", "by", "operation", "items", "changes", "reason"]
    changes = sum((Counter(one.changes) for one in rounds), Counter[str]())
    path = describe_improvement(source.improvements)
    verdict = (
        f"{counted(len(rounds), 'round')} of edits: {describe_changes(changes)}. {path}".strip()
    )
    caption = "Edits of the bank, made together"
    improved = {one.edit for one in source.improvements}
    others = [row for row, one in zip(rows, edits, strict=True) if one.edit not in improved]
    shown = others[-_ROUNDS:]
    every = Folded(f"All edits ({len(rows)})", Table.of(columns, rows, caption))
    blocks = [
        *_improvements(source),
        Table.of(columns, shown, f"Other {caption.lower()}" if improved else caption),
        every if len(shown) < len(rows) else None,
    ]
    return Section.of("bank", title, blocks).with_verdict(verdict)


def _improvements(source: ReportSource) -> list[Block]:
    """Return the rounds of improvement in force with their gain, and their items."""
    rounds = source.improvements
    if not rounds:
        return []
    columns = [
        *(Column("edits"), Column("by"), Column("chosen by grades of", key="grader")),
        *(Column("systems", 0), Column("queries", 0), Column("retired", 0), Column("added", 0)),
        *(Column("before"), Column("after"), Column("gain", interval=True)),
        *(Column("decided cells", 0), Column("compared with"), Column("state")),
    ]
    rows = [_improvement_row(one) for one in rounds]
    caption = "Rounds of improvement: agreement between queries on held-out systems"
    sealed = source.bank.sealed or ()
    items: list[list[Cell]] = [
        [
            *(one.number, one.query_id, one.item_id, "added" if one.active else "retired"),
            "" if (one.query_id, one.item_id) in sealed else one.text,
        ]
        for each in rounds
        for one in each.items
    ]
    heads = [Column("edit", 0), *map(Column, ("query", "item", "change", "text"))]
    title = f"Items retired or added by improvement ({len(items)})"
    return [Table.of(columns, rows, caption), Folded(title, Table.of(heads, items, title))]


def _improvement_row(one: ImprovementRound) -> list[Cell]:
    basis, gain = one.basis, one.gain
    return [
        *(one.edits, one.edit.author, basis and basis.grader, basis and basis.systems),
        *(basis and basis.queries, one.retired, len(one.items) - one.retired),
        *(gain and gain.before, gain and gain.after),
        gain and Estimate(gain.gain, gain.low, gain.high),
        *(basis and basis.decided, ", ".join(basis.leaderboards) if basis else None, one.state),
    ]


def _sealed(use: Sequence[SealedUse]) -> Section:
    """Return the use of the sealed parts of the bank; nothing if no client used one."""
    title = "How was the sealed part used?"
    blocks: list[Block] = [sealed_use_table(use), *map(sealed_use_figure, use)] if use else []
    verdict = " ".join(map(describe_sealed_use, use))
    return Section.of("sealed", title, blocks).with_verdict(verdict)


def _label_words(labelling: Labelling) -> str:
    """Return the rule from ratings to passage labels, in words."""
    if labelling.kind == "count":
        words = "the number of items rated at the threshold or above"
    else:
        words = f"the {label_name(labelling.at_least)} over the items of the bank"
    gains = {"above": ", 0 below the threshold", "binary": ", 1 from the threshold on, else 0"}
    return words + gains.get(labelling.gains, "")


def _provenance(data: ReportData) -> Section:
    """Return the provenance of the grades: every setting that identifies the grader."""
    grader = data.book.grader
    facts = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in sorted(grader.settings.items())
        if value
    ]
    facts.append(("Key", grader.key))
    return Section("provenance", "All settings of the grader", (Facts(tuple(facts)),))


def _missing_table(data: ReportData) -> Table | Text:
    """Return the systems with missing data; a sentence if there are none."""
    main, board = data.main, data.board
    expected = {query: of for query, of in answering(data.book).items() if query in main.query_ids}
    nobody = [query for query, of in expected.items() if not of]
    rows = []
    for index, system in enumerate(board.column_systems):
        shares = (main.missing_cells[index], main.ungraded[index])
        silent = sum(system not in of for of in expected.values() if of)
        if any(shares) or silent:
            rows.append([system, *map(share_shown, shares), silent])
    pending = without_grade(data.book.pending, data.book.readings)
    notes = [f"Cells without a grade in the whole collection: {pending}."] if pending else []
    if nobody and data.book.systems:
        notes.append(f"No system answers {', '.join(nobody)}.")
    if not rows:
        return Text(
            f"Every cell behind {main.measure} has a grade, and every system answers every "
            f"query{' that any system answers' if nobody else ''}. {' '.join(notes)}".strip()
        )
    columns = ["system", "missing cells", "ungraded passages", "unanswered queries"]
    return Table.of(columns, rows, f"Missing cells and passages behind {main.measure}", notes)


def _leaderboard(data: ReportData) -> Section:
    title = "Every measure, mean and standard error over queries"
    draft = data.book.grader.is_draft
    measures = replace(wide_leaderboard(data.board), caption=labelled(title, draft=draft))
    return Section.of(
        "leaderboard",
        "Leaderboard",
        [
            figures.leaderboard_figure(data.board, data.main, data.tested),
            measures,
            _people(data),
        ],
    )


def _people(data: ReportData) -> Table | None:
    """Return the leaderboard with and without human decisions, if there are any."""
    other = data.board.without_decisions
    if other is None:
        return None
    measure, min_rating = data.main.measure, data.main.min_rating
    now, then = (
        {system: round(mean, 10) for system, mean in board.scores(measure, min_rating).items()}
        for board in (data.board, other)
    )
    places, places_then = (
        {one: 1 + sum(other > score for other in of.values()) for one, score in of.items()}
        for of in (now, then)
    )
    rows = [
        [
            *(system, now.get(system), then.get(system)),
            now[system] - then[system] if system in now and system in then else None,
            *(places.get(system), places_then.get(system)),
        ]
        for system in data.board.systems
    ]
    columns = ["system", "with", "without", "change", "place", "place without"]
    caption = f"{data.name} with and without human decisions"
    return Table.of(columns, rows, caption, [f"{describe_oversight(data.board.oversight)}."])


def _differences(data: ReportData) -> Section:
    if len(data.tested.systems) < 2:
        return Section("differences", "Do the systems differ?", ())
    table = leaderboard_table(data.tested, data.board)
    caption, notes = f"{data.name} with intervals and letters", pair_notes(data.tested)
    plain = replace(table, caption=caption, notes=notes, verdict="")
    folded = Folded("Interval and letters of every system", plain)
    return Section("differences", "Do the systems differ?", (folded,))


def _omissions(data: ReportData) -> Section:
    tables = [*data.omissions.tables(limit=100).values()] if data.omissions else []
    blocks: list[Block] = [Folded(table.caption, table) for table in tables[1:]]
    return Section.of("omissions", "Is it retrieval or generation?", [*tables[:1], *blocks])


def _plotted(
    key: str, title: str, found: Abstention | BankComparison | CitationScores | TurnCover | None
) -> Section:
    """Return the plot of a result and its first table, without lists that may name sealed items."""
    if found is None:
        return Section(key, title, ())
    figure = found.plot()
    table = next(iter(found.tables().values()))
    blocks = (figure, table) if figure.spec else (table,)
    return Section(key, title, blocks).with_verdict(found.headline)


def _graders(data: ReportData) -> Section:
    title = "The same systems under other graders"
    if data.beside is None:
        return Section("graders", title, ())
    return Section.of("graders", title, list(data.beside.tables().values()))


def _official(data: ReportData) -> Section:
    title = "Against official leaderboards"
    exact, everywhere = data.correlation, data.correlation_everywhere
    if exact is None or everywhere is None:
        return Section("official", title, ())
    blocks: list[Block | None] = []
    for number, (name, ranks) in enumerate(data.settings.official.items()):
        tables = [correlation.intervals(exact, name)] if exact.has_intervals(name) else []
        tables.append(correlation.wide_correlations(everywhere, name))
        if number:
            blocks += tables
            continue
        text, decimals = _correlated(exact, name, data.main), data.settings.decimals
        drawn = figures.scatter_figure(
            data.board, data.main, ranks, subtitle=text, decimals=decimals
        )
        # nCover follows Cover too closely to be seen beside it
        columns = [one for one in data.board.columns if one.measure.name != "nCover"]
        compared = figures.methods_figure(
            figures.series({"": replace(data.board, columns=tuple(columns))}),
            data.board.systems,
            {system: -rank for system, rank in ranks.items()},
            draft=data.book.grader.is_draft,
        )
        blocks += [drawn, *tables, compared if compared.data.rows else None]
    return Section.of("official", title, blocks)


def _correlated(exact: Correlations, official: str, main: MeasureColumn) -> str:
    """Return the correlations of the column of the figures, in words."""
    of_main = (str(main.measure), main.min_rating)
    values = {
        one.statistic: one.estimate
        for one in exact.against(official)
        if (one.measure, one.min_rating) == of_main and one.estimate.value is not None
    }
    return "; ".join(
        f"{statistic.meaning} {interval_text(values[statistic.name], 2)}"
        for statistic in exact.statistics
        if statistic.name in values
    )


def _judgments(data: ReportData) -> Section:
    name = "Agreement with human judgments"
    if not data.agreement:
        return Section("judgments", name, ())
    passages = counted(data.agreement[0].units, "passage")
    title = f"Agreement of labels with judgments on {passages}"
    confusions = [
        replace(
            one.confusion(),
            caption=f"{one.layout}: {label_name(one.at_least)} (rows) by judgment (columns)",
        )
        for one in data.agreement[: len(LAYOUTS)]
    ]
    statistics = agreement.statistics_table(data.agreement, title)
    return Section("judgments", name, (statistics, *confusions))


def _grades(data: ReportData) -> Section:
    book = data.book
    texts = (
        *describe_readings(book.readings, book.grader),
        *reading_warnings(book.readings, book.grader),
        describe_audit(book.readings, book.grader),
    )
    readings = " ".join(filter(None, texts))
    caption = "Cells by the rule of reading that made them"
    rules = Table.of(COLUMNS, rules_table(book.readings, book.grader), caption)
    return Section.of(
        "grades",
        "Grades",
        [
            figures.grades_figure([book]),
            Text(readings) if readings else None,
            Folded("Which rules of reading made the grades", rules) if book.readings else None,
        ],
    )


def _queries(data: ReportData) -> Section:
    if not data.board.systems or not data.main.query_ids:
        return Section("queries", "Queries", ())
    table = _query_table(data)
    return Section.of(
        "queries",
        "Queries",
        [
            figures.heatmap_figure(data.board, data.main, data.source.texts),
            Table.of(table.columns, table.rows[:_HARDEST], f"The hardest queries under {data.name}")
            if len(table.rows) > _HARDEST
            else None,
            Folded(f"All queries ({len(table.rows)})", table),
        ],
    )


def _query_table(data: ReportData) -> Table:
    """Return a row per query, hardest first: scores of systems, and items covered by no passage."""
    values, counts = data.main.values.values, data.main.values.counts
    items = {query.query_id: query for query in data.book.queries}
    rows: list[tuple[str, float | None, float | None, int, int]] = []
    texts = data.source.texts
    for index, query_id in enumerate(data.main.query_ids):
        column = values[:, index][counts[:, index]]
        query = items.get(query_id.partition("/")[0], items.get(query_id))
        wanted = np.empty((0, 0)) if query is None else query.ratings[:, query.weights > 0]
        best = wanted.max(axis=0, initial=MISSING)
        uncovered = int((best < data.settings.min_rating).sum())
        mean = float(column.mean()) if len(column) else None
        top = float(column.max()) if len(column) else None
        rows.append((query_id, mean, top, len(best), uncovered))
    rows.sort(key=lambda row: (row[1] is None, row[1] or 0.0, row[0]))
    columns = ["query", "mean of systems", "best system", "items", "items never covered"]
    caption = f"{data.name} by query, hardest first"
    if not texts:
        return Table.of(columns, rows, caption)
    with_texts = [(row[0], texts.get(row[0].partition("/")[0]), *row[1:]) for row in rows]
    return Table.of(["query", "text", *columns[1:]], with_texts, caption)
