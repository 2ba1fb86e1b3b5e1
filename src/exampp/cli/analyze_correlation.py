"""`exampp analyze correlation`: methods against official leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_MEASURES,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    GraderNames,
    LeftOut,
    OnError,
    RoundTo,
    RunFiles,
    Scale,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import Counts, counting
from exampp.cli.declare import option
from exampp.cli.methods import (
    AllMinRatings,
    BankNames,
    Collections,
    QrelsFiles,
    Scores,
    collect_methods,
)
from exampp.cli.options import (
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, show, show_several


@counting(
    OF_GRADED_FILES,
    OF_READING,
    OF_MEASURES["--min-rating"],
    Counts(("--seed",), "with --samples", lambda given: given["samples"] != 0),
)
def correlation(
    collection: Collections,
    official: Annotated[
        list[Path],
        option(help="An official leaderboard, or FILE:MEASURE of one; repeat for several."),
    ],
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20, nCover@20, P@20, nDCG@20]",
        ),
    ] = None,
    min_rating: AllMinRatings = None,
    statistic: Annotated[
        list[str] | None,
        option(
            help="spearman, kendall, tau_ap, rbo, rbo(p=0.8), kendall@10 (the 10 officially best); "
            "repeat for several. [default: spearman, kendall]"
        ),
    ] = None,
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankNames = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    qrels: QrelsFiles = None,
    scores: Scores = None,
    samples: Annotated[
        int, option(min=0, help="Resamples for the intervals, 50 or more; 0: no intervals.")
    ] = 2000,
    seed: Annotated[int, option(help="Seed of the resamples.")] = 0,
    decisions: CountDecisions = DecisionMode.WITH,
    round_to: RoundTo = None,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Correlate all graders, thresholds and measures with official leaderboards.

    The values as in the papers' tables, then the same with 95 % intervals over queries, which hold
    what exams of as many queries show on average. tsv, csv and json hold a row a value.

    Example: exampp analyze correlation my.exam --official leaderboard.json
    """
    from exampp.analysis.correlation import compare_methods
    from exampp.inputs.officials import read_officials

    methods = collect_methods(
        collection,
        measure or (),
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
    officials = read_officials(official)
    compared = compare_methods(
        methods,
        officials,
        statistic or ("spearman", "kendall"),
        samples=samples,
        seed=seed,
        decimals=round_to,
    )
    if style in (Style.tsv, Style.csv, Style.json):
        show(compared.records()["correlation"], style.value, digits)
    else:
        show_several(compared.tables(), style.value, digits)
    end_where_undefined(
        [one.estimate.value for one in compared.found],
        [one.estimate.reason for one in compared.found],
    )
