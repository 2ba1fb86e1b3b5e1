"""Commands that score systems: evaluate, compare, gate, report and reproduce."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import click

import exampp
from exampp.cli import output as printing
from exampp.cli.command import OptionRule, error_exit_code, option_rules, without_options
from exampp.cli.options import (
    LABELLING,
    OF_MEASURES,
    OF_OFFICIAL,
    Measures,
    MinRating,
    MinRatings,
    Missing,
    Officials,
    RoundTo,
    Subtopics,
    labelling,
    opened_grades,
)
from exampp.cli.output import end_where_undefined, print_message, show
from exampp.errors import InputError
from exampp.project.gate_file import GateOptions, gate_inputs, run_gate
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    Display,
    DuplicateChoice,
    GraderName,
    Labels,
    NumberDisplay,
    Selection,
)

NO_VERDICT = 3
"""The exit code of the gate after any error: the others are verdicts."""
_QUERIES = 5
"""Default number of queries that are explained to people."""
_WIDTH, _LEAST_WIDTH = 70, 24
"""Characters of an item or a quote in a table for people, and the minimum in a terminal."""
_BESIDE_TEXTS = 48
"""Columns of a terminal for the rest of such a table."""


@option_rules(
    OF_OFFICIAL,
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
    OF_MEASURES["--compat"],
    OF_MEASURES["--duplicates"],
    OptionRule(
        ("--duplicates",), "for means, not with --per-query", lambda given: not given["per_query"]
    ),
)
def evaluate(
    selection: Selection,
    measure: Measures = None,
    min_rating: MinRatings = None,
    official: Officials = None,
    round_to: RoundTo = None,
    subtopics: Subtopics = "auto",
    missing: Missing = "zero",
    qrels: Annotated[Path | None, keyword(help="Write EXAM-Qrels to this file.")] = None,
    per_query: Annotated[
        bool, keyword("--per-query", help="Print a row for every system and query.")
    ] = False,
    compat: Annotated[
        Literal["exam", "rubric", "nuggetizer"],
        keyword(
            help="Use the definitions of another program: rubric of the papers, or nuggetizer.",
            rare=True,
        ),
    ] = "exam",
    duplicates: Annotated[
        DuplicateChoice,
        keyword(
            help="Show Cover with duplicates counted once, too: those marked by people (once), or "
            "also those found in the texts (found).",
            rare=True,
        ),
    ] = "each",
    *,
    labels: Labels,
    display: NumberDisplay,
) -> None:
    """Score all systems: EXAM-Cover, and ranking measures on EXAM-Qrels.

    COLLECTION may be a file of graded passages; --bank then names a bank file. With --official,
    the table shows official ranks and, below it, the rank correlation.

    Example: exampp evaluate my.exam --min-rating 4 -m Cover@20 --official leaderboard.json
    """
    from exampp.analysis.grader_bias import noted
    from exampp.formats.output import check_outputs
    from exampp.measures import board as boards
    from exampp.measures.leaderboard import (
        evaluate_gradebook,
        missing_prerequisite,
    )
    from exampp.measures.qrels import write_exam_qrels

    labels_of = labelling(labels)
    if qrels and labels_of.needs_threshold and len(set(min_rating or ())) > 1:
        what = "the labels of --qrels depend on the threshold"
        raise InputError(what, hint="Give one --min-rating")
    inputs = [selection.collection, selection.bank, *(selection.runs or ())]
    officials: dict[str, dict[str, float]] = {}
    if official:
        from exampp.formats.leaderboards import leaderboard_files
        from exampp.inputs.officials import read_officials

        inputs += leaderboard_files(official)
    check_outputs([qrels], inputs)
    if official:
        officials = read_officials(official)
    with opened_grades(selection, measure) as grades:
        book = grades.book_with_duplicates(duplicates)
    board = evaluate_gradebook(
        book,
        measure,
        min_rating,
        subtopics=subtopics,
        missing=missing,
        labelling=labels_of,
        compat=compat,
        once=duplicates != "each",
    )
    board = noted(board, book)
    main = boards.tidy if display.for_programs else boards.wide_leaderboard
    table = boards.per_query(board) if per_query else main(board, officials)
    # what is written may fail, and then nothing is printed
    if qrels:
        threshold = min_rating[0] if min_rating else None
        by_subtopic = board.subtopics == "subtopic"
        count = write_exam_qrels(book, qrels, labels_of, threshold, by_subtopic=by_subtopic)
        print_message(f"{qrels}: {count} labels")
    if officials:
        from exampp.analysis.correlation import correlation_of_board

        correlation = correlation_of_board(board, officials, round_to)
        table = replace(table, verdict=correlation.verdict)
        show({"leaderboard": table, "correlation": replace(correlation, verdict="")}, display)
    else:
        show(table, display)
    absent = missing_prerequisite(book)
    end_where_undefined(
        [row.mean for row in (*board.rows, *board.overall)],
        [absent.cause if absent else "no query counts"],
    )


@without_options("systems", "without", "decisions")
def compare(
    selection: Selection,
    first: Annotated[str, argument(metavar="A", help="System A, the baseline.")],
    second: Annotated[str, argument(metavar="B", help="System B, compared with A.")],
    measure: Annotated[
        str | None,
        keyword("--measure", "-m", help="Cover, or any measure of ir_measures. [default: Cover]"),
    ] = None,
    min_rating: MinRating = None,
    k: Annotated[
        int | None,
        keyword(
            "-k",
            help="Use this many passages of each ranking. [default: the cutoff of the measure, "
            "or 20]",
            rare=True,
        ),
    ] = None,
    subtopics: Subtopics = "auto",
    queries: Annotated[
        int | None,
        keyword(
            min=0,
            help="Explain this many queries, the largest differences first; 0: all. [default: 5; "
            "all for tsv, csv, json]",
        ),
    ] = None,
    query: Annotated[
        str | None,
        keyword(
            "--query",
            help="Explain only this query, item by item, with the best passage of each system.",
        ),
    ] = None,
    *,
    display: NumberDisplay,
) -> None:
    """Explain the difference between systems A and B: in total, by query, by item.

    An item is gained where B covers it and A does not.

    Example: exampp compare my.exam bm25 dense
    """
    if query is not None and queries is not None:
        what = "--queries is a number of queries, but --query names one"
        raise InputError(what, hint="Leave one of the two out")
    with opened_grades(selection, [measure or "Cover"]) as grades:
        found = grades.compare(
            first,
            second,
            measure or "Cover",
            min_rating=min_rating,
            k=k,
            subtopics=subtopics,
        )
        if query is None:
            most = (0 if display.for_programs else _QUERIES) if queries is None else queries
            shown = found.tables(most or None, None if display.for_programs else _width(display))
        else:
            of_query = found.on(query)
            items = of_query.records() if display.for_programs else of_query.tables()
            shown = {"total": found.tables(0)["total"], **items}
    show(shown, display)
    end_where_undefined(
        [*(mean.mean for mean in found.means), found.pair.difference.value],
        [found.pair.difference.reason],
    )


def _width(display: Display) -> int:
    if display.style != "text":
        return _WIDTH
    terminal = shutil.get_terminal_size((120, 24)).columns
    return max(_LEAST_WIDTH, (terminal - _BESIDE_TEXTS) // 2)


@error_exit_code(NO_VERDICT)
@option_rules(OptionRule(("--title",), "beside --github", lambda given: given["github"]))
def gate(
    collection: Annotated[
        Path,
        argument(
            metavar="COLLECTION",
            help="A collection, graded passages, or a TOML file with these options.",
        ),
    ],
    options: GateOptions,
    github: Annotated[
        bool,
        keyword(
            "--github",
            help="In GitHub Actions, write the result into one comment of the pull request, and "
            "into the summary of the step.",
        ),
    ] = False,
    title: Annotated[
        str,
        keyword(
            help="Title of the comment, if several gates write one. [default: name of the file]",
            rare=True,
        ),
    ] = "",
    *,
    display: NumberDisplay,
) -> None:
    """Pass or fail systems by requirements, such as Cover@20>=0.7 or no worse than before.

    Exit codes: 0 passed, 1 failed or missing, 2 undecided with these few queries, 3 error. Options
    override those in a file.

    Example: exampp gate my.exam --baseline last.json --margin 0.02
    """
    from exampp.formats.lines import encode_text
    from exampp.formats.output import check_outputs, writing

    published = None
    if github:
        from exampp.integrations.github import commands_stopped, gate_on_github

        published = gate_on_github(collection, options, title=title)
    path, chosen = gate_inputs(collection, options)
    inputs = [collection, path, chosen.baseline, chosen.since, *(chosen.run or ())]
    check_outputs([chosen.junit], inputs)
    found = published.gate if published else run_gate(path, chosen)
    if chosen.junit is not None:
        with writing(chosen.junit) as stream:
            stream.write(encode_text(found.to_junit(), chosen.junit))
    tables = found.records() if display.for_programs else found.tables()
    # what is not text may go into a file
    log = printing.print_line if display.style == "text" else print_message
    with commands_stopped(log) if published else nullcontext():
        show(tables if len(tables) > 1 else tables["gate"], display)
    if published:
        log(published.log())
    printing.flush()
    raise click.exceptions.Exit(found.exit_code)


@option_rules(OF_OFFICIAL)
def report(
    selection: Selection,
    output: Annotated[
        Path,
        keyword(
            "--output",
            "-o",
            help="Write the page to this file: .html, or .json for the same as data.",
        ),
    ],
    official: Officials = None,
    round_to: RoundTo = None,
    title: Annotated[
        str, keyword(help="Title of the page. [default: the name of the file]", rare=True)
    ] = "",
    interactive: Annotated[
        bool,
        keyword(
            help="Add items, passages, grades and quotes, to sort, filter and judge without a "
            "server. exampp import reads the decisions that the page saves.",
        ),
    ] = False,
    json: Annotated[Path | None, keyword(help="Write the report as JSON, too.", rare=True)] = None,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures. Repeat for several; the "
            "figures show the first. [default: Cover@20, nCover@20, nDCG@20, P@20, AP]",
        ),
    ] = None,
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment that counts as relevant. [default: 2, or 1 if none is higher]",
            rare=True,
        ),
    ] = None,
    since: Annotated[
        Path | None,
        keyword(
            help="Add what changed since an earlier copy, stored scores, or a date; see exampp "
            "analyze changes.",
        ),
    ] = None,
    subtopics: Subtopics = "auto",
    *,
    labels: Labels,
) -> None:
    """Write one self-contained page: tables, plots, warnings, methods and references.

    COLLECTION may be a file of graded passages; --bank then names a bank file.

    Example: exampp report my.exam -o report.html --official leaderboard.json
    """
    from exampp.analysis.grader_bias import QUESTION
    from exampp.formats.leaderboards import leaderboard_files
    from exampp.formats.output import check_outputs, writing
    from exampp.results.page import renderer, report_json

    inputs = [selection.collection, selection.bank, *leaderboard_files(official or ())]
    check_outputs([output, json], [*inputs, since, *(selection.runs or ())])
    render = renderer(output)
    if interactive and render is report_json:
        raise InputError("an interactive report is a page", hint="End its name in .html")
    with opened_grades(selection, measure) as grades:
        document = grades.report(
            title=title,
            official=official or (),
            measures=measure or (),
            min_rating=min_rating,
            min_relevant=min_relevant,
            subtopics=subtopics,
            labelling=labelling(labels),
            decimals=round_to,
            interactive=interactive,
            since=since,
        )
    written = {output: render(document)}
    if json:
        written[json] = report_json(document)
    for path, text in written.items():
        with writing(path) as stream:
            stream.write(text.encode())
        print_message(f"{path}: {len(text.encode()) / 1000:,.0f} kB")
    for line in document.verdict:
        if line.question == QUESTION:
            print_message(f"{line.question} {line.answer}")


def reproduce(
    collection: Annotated[
        list[Path] | None,
        argument(
            metavar="[COLLECTION]...",
            help="Graded passages of a paper, or a collection with them.",
        ),
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        keyword(help="Add a published qrels file under its published name. Repeat for several."),
    ] = None,
    official: Annotated[
        list[Path] | None,
        keyword(help="Add an official leaderboard of the same systems. Repeat for several."),
    ] = None,
    grader: GraderName = None,
    *,
    display: Display,
) -> None:
    """Recompute the papers' tables and compare them with the printed values.

    Without files, this computes the values that follow from printed numbers: correlations from
    scores, kappas from counts. Graded passages, qrels and official leaderboards add more. Every
    other table is listed with the files that it needs.

    Example: exampp reproduce graded.jsonl.gz --official leaderboard.json
    """
    from exampp.analysis.reproduce import Inputs
    from exampp.analysis.reproduce import reproduce as recompute
    from exampp.formats import trec
    from exampp.inputs.officials import leaderboards_by_name, read_officials

    books = {}
    for name, path in leaderboards_by_name(collection or []).items():
        with exampp.open(path) as opened:
            books[name] = opened.grades(grader).gradebook
    judgments = {path.stem: list(trec.read_qrels(path)) for path in qrels or []}
    show(recompute(Inputs(books, judgments, read_officials(official or []))), display)
