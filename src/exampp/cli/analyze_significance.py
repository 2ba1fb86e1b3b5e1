"""`exampp analyze significance`: which systems of a leaderboard differ."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import exampp
from exampp.cli.evaluate import FacetMode, Gains, Label, MissingPolicy
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    GraderName,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import show, show_several


class CorrectionName(StrEnum):
    """What is done about many tests at once."""

    holm = "holm"
    bh = "bh"
    none = "none"


def significance(
    collection: CollectionOrWorkbench,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20, nCover@20, nDCG@20]",
        ),
    ] = None,
    min_rating: Annotated[
        list[int] | None,
        typer.Option(
            help="Lowest rating that counts as an answer; repeat for several. "
            "[default: 4, or the highest of a shorter scale]"
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="Compare these run files instead; repeat for several.")
    ] = None,
    facets: Annotated[
        FacetMode, typer.Option(help="Bank and rankings per query, per subtopic, or pooled.")
    ] = FacetMode.auto,
    missing: Annotated[
        MissingPolicy, typer.Option(help="Cells without a grade: not covered, left out, or both.")
    ] = MissingPolicy.zero,
    label: Annotated[
        Label, typer.Option(help="Relevance label: best rating, or number of covered items.")
    ] = Label.BEST,
    at_least: Annotated[
        int, typer.Option(help="Items that must reach the threshold: the label is the m-th best.")
    ] = 1,
    gains: Annotated[
        Gains, typer.Option(help="Labels as they are, 0 below the threshold, or 1 and 0.")
    ] = Gains.graded,
    alpha: Annotated[
        float, typer.Option(help="Systems differ where the corrected p-value is at most this.")
    ] = 0.05,
    correction: Annotated[
        CorrectionName, typer.Option(help="Letters follow p-values corrected in this way.")
    ] = CorrectionName.holm,
    permutations: Annotated[
        int | None,
        typer.Option(
            help="Random sign patterns of the randomisation test. "
            "[default: 10000, or what the correction needs for so many pairs]"
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Bootstrap samples of the queries.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 0,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A row for every pair of systems.")
    ] = False,
    on_error: Annotated[
        OnBadLine, typer.Option(help="A bad line of a graded file: refuse the file, or skip.")
    ] = OnBadLine.refuse,
    style: TableStyle = Style.text,
) -> None:
    """Test all pairs of systems: who differs from whom, and how much.

    Shows the leaderboard with letters: systems that share one do not differ. tsv, csv and --pairs
    have a row for every pair; json has both.
    """
    from exampp.evaluate.tables import heading
    from exampp.graded import DEFAULT_MEASURES, evaluate_gradebook
    from exampp.meta import significance_tables as tables
    from exampp.meta.significance import Settings
    from exampp.meta.significance import significance as test_pairs

    settings = Settings(alpha, correction.value, permutations, samples, seed)
    with exampp.open_grades(collection, on_error.value) as opened:
        book = opened.gradebook(
            grader=grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
        )
    board = evaluate_gradebook(
        book,
        measure or DEFAULT_MEASURES,
        min_rating,
        facets=facets.value,
        missing=missing.value,
        labelling=exampp.Labelling(label.value, at_least, gains.value),
    )
    found = [test_pairs(column, board.column_systems, settings) for column in board.columns]
    if pairs or style in (Style.tsv, Style.csv):
        show(tables.pairs_table(found, board), style.value)
        return
    shown = {
        heading(one.measure, one.min_rating): tables.leaderboard_table(one, board) for one in found
    }
    if style == Style.json:
        shown["pairs"] = tables.pairs_table(found, board)
    show_several(shown, style.value)
