"""`exampp evaluate`: leaderboards, rank correlation, EXAM-Qrels."""

from __future__ import annotations

import shutil
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import exampp
from exampp.cli import output
from exampp.cli.command import (
    OptionRule,
    OptionValues,
    argument,
    error_exit_code,
    moved,
    option,
    option_rules,
)
from exampp.cli.options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_OFFICIAL,
    OF_READING,
    AtLeast,
    BankName,
    CollectionOrWorkbench,
    CountDecisions,
    DecisionMode,
    Definitions,
    Digits,
    Gains,
    GraderName,
    ItemKind,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    Measures,
    MinRating,
    MinRatings,
    Missing,
    MissingPolicy,
    Officials,
    OnBadLine,
    OnError,
    PromptName,
    RoundTo,
    RunFiles,
    Scale,
    Style,
    SubtopicMode,
    Subtopics,
    SystemNames,
    TableStyle,
    rating_scale,
)
from exampp.cli.output import end_where_undefined, print_message, show, show_several
from exampp.errors import InputError

if TYPE_CHECKING:
    from exampp.records.gradebook import Gradebook


@option_rules(OF_GRADED_FILES, OF_OFFICIAL)
def report(
    collection: CollectionOrWorkbench,
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            help="The page to write, such as report.html; .json: the same as data.",
        ),
    ],
    official: Officials = None,
    round_to: RoundTo = None,
    title: Annotated[
        str, option(help="What the page is called. [default: the name of the file]")
    ] = "",
    json: Annotated[Path | None, option(help="Write the report as JSON, too.")] = None,
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. The "
            "figures show the first. [default: Cover@20, nCover@20, nDCG@20, P@20, AP]",
        ),
    ] = None,
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        option(
            help="Lowest judgment that counts as relevant. [default: 2, or 1 where none is higher]"
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
) -> None:
    """Write one self-contained page: tables, plots, warnings, methods and references.

    COLLECTION may be a file of graded passages; --bank then names a bank file.

    Example: exampp report my.exam -o report.html --official leaderboard.json
    """
    from exampp.analysis.grader_bias import QUESTION
    from exampp.formats import leaderboards
    from exampp.formats.output import check_outputs, writing
    from exampp.results.page import renderer, to_json

    boards = leaderboards.files_of(official or ())
    check_outputs([output, json], [collection, bank, *boards, *(run or ())])
    render = renderer(output)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        document = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).report(
            title=title,
            official=official or (),
            measures=measure or (),
            min_rating=min_rating,
            min_relevant=min_relevant,
            subtopics=subtopics.value,
            labelling=exampp.Labelling(label.value, at_least, gains.value),
            decimals=round_to,
        )
    written = {output: render(document)}
    if json:
        written[json] = to_json(document)
    for path, text in written.items():
        with writing(path) as stream:
            stream.write(text.encode())
        print_message(f"{path}: {len(text.encode()) / 1000:,.0f} kB")
    for line in document.verdict:
        if line.question == QUESTION:
            print_message(f"{line.question} {line.answer}")


_QUERIES = 5
"""How many queries are explained to people unless they say otherwise."""
_WIDTH, _LEAST_WIDTH = 70, 24
"""Characters of an item or a quote that people are shown in a table, at least in a terminal."""
_BESIDE_TEXTS = 48
"""Columns of a terminal that the rest of such a table takes."""


@option_rules(OF_GRADED_FILES, OF_READING)
def compare(
    collection: CollectionOrWorkbench,
    first: Annotated[str, argument(metavar="A", help="The system to go from.")],
    second: Annotated[str, argument(metavar="B", help="The system to go to.")],
    measure: Annotated[
        str | None,
        option("--measure", "-m", help="Cover, or any measure of ir_measures. [default: Cover]"),
    ] = None,
    min_rating: MinRating = None,
    k: Annotated[
        int | None,
        option(
            "-k",
            help="Passages of a ranking of which items are explained, and that Cover reads. "
            "[default: the cutoff of the measure, or 20]",
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    subtopics: Subtopics = SubtopicMode.auto,
    queries: Annotated[
        int | None,
        option(
            min=0,
            help="Explain this many queries, the largest differences first; 0: all. "
            "[default: 5 for people; all for tsv, csv, json]",
        ),
    ] = None,
    query: Annotated[
        str | None,
        option(
            "--query",
            help="One query alone, item by item: the best passage of each system with its whole "
            "quote, items that only B covers first.",
        ),
    ] = None,
    seed: Annotated[int, option(min=0, help="Seed of the test and the interval.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Explain the difference of system B to system A: in total, by query, by item.

    An item is gained where B covers it and A does not.

    Example: exampp compare my.exam bm25 dense
    """
    if query is not None and queries is not None:
        raise InputError(
            "--queries says how many are explained, but --query names one",
            mend="Leave one of the two out",
        )
    machine = style in (Style.tsv, Style.csv, Style.json)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        found = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            decisions=decisions.value,
        ).compare(
            first,
            second,
            measure or "Cover",
            min_rating=min_rating,
            k=k,
            subtopics=subtopics.value,
            seed=seed,
        )
        if queries is None:
            queries = 0 if machine else _QUERIES
        if query is None:
            several = found.tables(queries or None, None if machine else _width(style))
        else:
            of_query = found.on(query)
            items = of_query.records() if machine else of_query.tables()
            several = {"total": found.tables(0)["total"], **items}
    show_several(several, style.value, digits)
    end_where_undefined(
        [*(mean.mean for mean in found.means), found.pair.difference.value],
        [found.pair.difference.reason],
    )


def _width(style: Style) -> int:
    if style is not Style.text:
        return _WIDTH
    terminal = shutil.get_terminal_size((120, 24)).columns
    return max(_LEAST_WIDTH, (terminal - _BESIDE_TEXTS) // 2)


NO_VERDICT = 3
"""The exit code after any error: the others are verdicts."""


@option_rules(OF_READING)
@error_exit_code(NO_VERDICT)
def gate(
    collection: Annotated[
        Path,
        argument(
            metavar="COLLECTION",
            help="A collection, graded passages, or a file of these options: gate.toml.",
        ),
    ],
    require: Annotated[
        list[str] | None,
        option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="What must hold, such as 'Cover@20>=0.7' or 'nDCG@10>=baseline-0.02'; repeat "
            "for several.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        option(
            help="Compare with this: what evaluate --per-query --format json wrote, a run, a "
            "collection or graded passages."
        ),
    ] = None,
    baseline_system: Annotated[
        str | None,
        option(
            metavar="SYSTEM",
            help="Compare with this system of the baseline, or of COLLECTION without one. "
            "[default: that of the same name, or the only one]",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        option(
            help="How much lower than the baseline's a mean may be, of the measures of which no "
            "requirement says it."
        ),
    ] = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    allow_missing: Annotated[
        float | None,
        option(
            metavar="SHARE",
            help="Share of what a measure reads that may have no grade: such cells count as not "
            "covered. Beyond it, both bounds must hold. [default: 0]",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        option(help="1 - the level of each interval. [default: 0.05]"),
    ] = None,
    junit: Annotated[Path | None, option(help="Write JUnit XML to this file.")] = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Pass or fail systems by requirements, such as Cover@20>=0.7 or no worse than before.

    The exit code is 0 passed, 1 failed or missing, 2 cannot be told with so few queries, 3 no
    verdict because of an error. Options take the place of those in a file.

    Example: exampp gate my.exam --baseline last.json --margin 0.02
    """
    from exampp.formats.lines import encode_text
    from exampp.formats.output import check_outputs, writing
    from exampp.project.gate_file import read_requirements, run_gate

    given: dict[str, Any] = {
        "require": require,
        "baseline": baseline,
        "baseline_system": baseline_system,
        "margin": margin,
        "min_rating": min_rating,
        "grader": grader,
        "prompt": prompt,
        "kind": kind.value if kind else None,
        "bank": bank,
        "run": run,
        "system": system,
        "allow_missing": allow_missing,
        "alpha": alpha,
        "junit": junit,
    }
    is_file = collection.suffix == ".toml"
    options: dict[str, Any] = (
        read_requirements(collection) if is_file else {"collection": collection}
    )
    options |= {name: value for name, value in given.items() if value is not None}
    to = options.get("junit")
    inputs = [collection, options["collection"], options.get("baseline"), *options.get("run", ())]
    check_outputs([to], inputs)
    found = run_gate(options)
    if to is not None:
        with writing(to) as stream:
            stream.write(encode_text(found.to_junit(), to))
    machine = style in (Style.tsv, Style.csv, Style.json)
    tables = found.records() if machine else found.tables()
    show(tables["gate"], style.value, digits)
    output.flush()
    raise click.exceptions.Exit(found.exit_code)


class ItemWeights(StrEnum):
    """What items weigh, in place of the weights of the bank."""

    discrimination = "discrimination"
    model = "2pl"


def _covers(given: OptionValues) -> bool:
    from exampp.measures.names import as_measures

    asked = given["measure"]
    return not asked or any(one.name == "Cover" for one in as_measures(asked))


@option_rules(
    OptionRule(("--weights",), "with Cover among the measures", _covers),
    OF_GRADED_FILES,
    OF_READING,
    OF_OFFICIAL,
    *LABELLING,
    OF_MEASURES["--min-rating"],
    OF_MEASURES["--missing"],
    OF_MEASURES["--compat"],
)
@moved("exampp bank compare COLLECTION", "--parts")
def evaluate(
    collection: CollectionOrWorkbench,
    measure: Measures = None,
    min_rating: MinRatings = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    weights: Annotated[
        list[ItemWeights] | None,
        option(
            help="Cover with items weighted by what they tell of systems, beside the plain one; "
            "repeat for both."
        ),
    ] = None,
    official: Officials = None,
    round_to: RoundTo = None,
    subtopics: Subtopics = SubtopicMode.auto,
    missing: Missing = MissingPolicy.zero,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    qrels: Annotated[Path | None, option(help="Write EXAM-Qrels to this file.")] = None,
    per_query: Annotated[
        bool, option("--per-query", help="A row for every system and query.")
    ] = False,
    compat: Annotated[
        Definitions,
        option(
            help="rubric: the definitions of the papers' own program; nuggetizer: means over the "
            "queries that a system answered, as its scores are published."
        ),
    ] = Definitions.exam,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Score all systems: EXAM-Cover, and ranking measures on EXAM-Qrels.

    COLLECTION may be a file of graded passages; --bank then names a bank file. With --official the
    ranks there stand beside the scores, and their rank correlation below.

    Example: exampp evaluate my.exam --min-rating 4 -m Cover@20 --official leaderboard.json
    """
    from exampp.analysis.grader_bias import noted
    from exampp.formats import leaderboards
    from exampp.formats.output import check_outputs
    from exampp.inputs.officials import read_officials
    from exampp.measures import board as boards
    from exampp.measures.leaderboard import (
        DEFAULT_MEASURES,
        evaluate_gradebook,
        missing_prerequisite,
    )
    from exampp.measures.names import with_weights

    labelling = exampp.Labelling(label.value, at_least, gains.value)
    if qrels and labelling.needs_threshold and len(set(min_rating or ())) > 1:
        raise exampp.InputError(
            "the labels of --qrels depend on the threshold", mend="Give one --min-rating"
        )
    files = leaderboards.files_of(official or ())
    check_outputs([qrels], [collection, bank, *files, *(run or ())])
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        book = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).gradebook
    board = evaluate_gradebook(
        book,
        with_weights(measure or DEFAULT_MEASURES, [one.value for one in weights or ()]),
        min_rating,
        subtopics=subtopics.value,
        missing=missing.value,
        labelling=labelling,
        compat=compat.value,
    )
    board = noted(board, book)
    machine = style in (Style.tsv, Style.csv, Style.json)
    officials = read_officials(official or ())
    main = boards.tidy if machine else boards.wide
    shown = {"leaderboard": boards.per_query(board) if per_query else main(board, officials)}
    if officials:
        from exampp.analysis.correlation import board_method, compare_methods, of_board
        from exampp.analysis.item_selection import weight_gains

        method = replace(board_method(board, board.grader.name), notes=())
        compared = compare_methods([method], officials, samples=0, decimals=round_to)
        shown["correlation"] = of_board(compared, board)
        shown |= weight_gains(book, board, officials)
    # what is written may fail, and then nothing is printed
    if qrels:
        threshold = min_rating[0] if min_rating else None
        _write_qrels(book, labelling, threshold, board.subtopics == "subtopic", qrels)
    if len(shown) == 1:
        show(shown["leaderboard"], style.value, digits)
    else:
        show_several(shown, style.value, digits)
    absent = missing_prerequisite(book)
    end_where_undefined(
        [row.mean for row in (*board.rows, *board.overall)],
        [absent.cause if absent else "no query counts"],
    )


def _write_qrels(
    book: Gradebook, labelling: exampp.Labelling, threshold: int | None, by_subtopic: bool, to: Path
) -> None:
    from exampp.measures.qrels import write_qrels

    count = write_qrels(book, to, labelling, threshold, by_subtopic=by_subtopic)
    print_message(f"{to}: {count} labels")


def reproduce(
    collection: Annotated[
        list[Path] | None,
        argument(
            metavar="[COLLECTION]...",
            help="Graded passages of a paper's collection, or a collection with them.",
        ),
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        option(help="A published qrels file, under its published name; repeat for several."),
    ] = None,
    official: Annotated[
        list[Path] | None,
        option(help="An official leaderboard of the same systems; repeat for several."),
    ] = None,
    grader: GraderName = None,
    style: TableStyle = Style.text,
) -> None:
    """Recompute the papers' printed tables and set them beside the print.

    Without files, this computes what follows from printed numbers alone: correlations from printed
    scores, kappas from printed counts. Graded passages, qrels and official leaderboards of a
    paper's collection add what they allow. Every other table is listed with what it needs.

    Example: exampp reproduce graded.jsonl.gz --official leaderboard.json
    """
    from exampp.analysis.reproduce import Inputs
    from exampp.analysis.reproduce import reproduce as recompute
    from exampp.formats import qrels as qrels_format
    from exampp.inputs.officials import by_name, read_officials

    books = {}
    for name, path in by_name(collection or []).items():
        with exampp.open(path) as opened:
            books[name] = opened.grades(grader).gradebook
    judgments = {path.stem: list(qrels_format.read(path)) for path in qrels or []}
    found = recompute(Inputs(books, judgments, read_officials(official or [])))
    machine = style in (Style.tsv, Style.csv, Style.json)
    show_several(found.records() if machine else found.tables(), style.value)
