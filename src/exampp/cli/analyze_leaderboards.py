"""`exampp analyze leaderboards`: several graders, banks, measures and thresholds side by side."""

from __future__ import annotations

from typing import Annotated

from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_OFFICIAL,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    GraderNames,
    LeftOut,
    Officials,
    OnError,
    RoundTo,
    RunFiles,
    Scale,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import counting
from exampp.cli.declare import option
from exampp.cli.methods import (
    AllMinRatings,
    BankNames,
    Collections,
    QrelsFiles,
    Scores,
    collect_methods,
)
from exampp.cli.options import ItemKind, OnBadLine, PromptName, Style, TableStyle
from exampp.cli.output import end_where_undefined, show, show_several


@counting(OF_GRADED_FILES, OF_READING, OF_MEASURES["--min-rating"], OF_OFFICIAL)
def leaderboards(
    collection: Collections,
    official: Officials = None,
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20]",
        ),
    ] = None,
    min_rating: AllMinRatings = None,
    order: Annotated[
        int,
        option(min=0, help="Order by the n-th column of scores; 0: by the official leaderboard."),
    ] = 1,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    qrels: QrelsFiles = None,
    scores: Scores = None,
    decisions: CountDecisions = DecisionMode.WITH,
    round_to: RoundTo = None,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Show all graders and thresholds side by side, with official ranks beside them.

    A row a system, a column a grader, measure and threshold; rank correlations with the official
    leaderboards, and of the graders with each other, below. tsv, csv and json hold a row a value.

    Example: exampp analyze leaderboards my.exam -m Cover@20 -m P@10
    """
    from exampp.analysis.side_by_side import side_by_side
    from exampp.inputs.officials import read_officials

    methods = collect_methods(
        collection,
        measure or ["Cover@20"],
        qrels=qrels or (),
        scores=scores or (),
        on_error=on_error.value,
        scale=rating_scale(scale),
        min_rating=min_rating or (),
        graders=grader or (),
        prompt=prompt,
        kind=kind.value if kind else None,
        bank=bank or None,
        runs=run or (),
        systems=system or (),
        without=leave_out or (),
        decisions=decisions.value,
    )
    officials = read_officials(official or ())
    found = side_by_side(methods, officials, order=order, decimals=round_to)
    machine = style in (Style.tsv, Style.csv, Style.json)
    shown = found.records() if machine else found.tables()
    if len(shown) == 1:
        show(shown["leaderboards"], style.value, digits)
    else:
        show_several(shown, style.value, digits)
    end_where_undefined(
        [mean.mean for one in found.series for mean in one.means.values()] or [None],
        ["no query counts" if found.systems else "there are no rankings, and so no systems"],
    )
