"""`exampp evaluate`: leaderboards, rank correlation, EXAM-Qrels."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import exampp
from exampp.cli.board_options import (
    LABELLING,
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_OFFICIAL,
    OF_READING,
    AtLeast,
    CountDecisions,
    DecisionMode,
    Digits,
    Gains,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    Measures,
    MinRatings,
    Missing,
    MissingPolicy,
    Officials,
    OnError,
    RoundTo,
    RunFiles,
    Scale,
    SubtopicMode,
    Subtopics,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import Counts, Given, counting, moved
from exampp.cli.declare import option
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    Definitions,
    GraderName,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, remark, show, show_several

if TYPE_CHECKING:
    from exampp.records.gradebook import Gradebook


class ItemWeights(StrEnum):
    """What items weigh, in place of the weights of the bank."""

    discrimination = "discrimination"
    model = "2pl"


def _covers(given: Given) -> bool:
    from exampp.evaluate.measure import as_measures

    asked = given["measure"]
    return not asked or any(one.name == "Cover" for one in as_measures(asked))


@counting(
    Counts(("--weights",), "with Cover among the measures", _covers),
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
    from exampp.evaluate import board as boards
    from exampp.evaluate.lacking import lacking
    from exampp.evaluate.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
    from exampp.evaluate.measure import with_weights
    from exampp.formats import leaderboards
    from exampp.formats.output import keep_inputs
    from exampp.inputs.officials import read_officials

    labelling = exampp.Labelling(label.value, at_least, gains.value)
    if qrels and labelling.needs_threshold and len(set(min_rating or ())) > 1:
        raise exampp.InputError(
            "the labels of --qrels depend on the threshold", mend="Give one --min-rating"
        )
    files = leaderboards.files_of(official or ())
    keep_inputs([qrels], [collection, bank, *files, *(run or ())])
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
        from exampp.analysis.correlation import compare_methods
        from exampp.analysis.correlation_tables import of_board
        from exampp.analysis.item_choice_tables import weight_gains
        from exampp.analysis.methods import board_method

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
    absent = lacking(book)
    end_where_undefined(
        [row.mean for row in (*board.rows, *board.overall)],
        [absent.cause if absent else "no query counts"],
    )


def _write_qrels(
    book: Gradebook, labelling: exampp.Labelling, threshold: int | None, by_subtopic: bool, to: Path
) -> None:
    from exampp.evaluate.qrels import write_qrels

    count = write_qrels(book, to, labelling, threshold, by_subtopic=by_subtopic)
    remark(f"{to}: {count} labels")
