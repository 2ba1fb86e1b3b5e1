"""`exampp plot`: one figure as SVG, PNG, Vega-Lite or data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import exampp
from exampp.cli.board_options import (
    FacetMode,
    Facets,
    MinRating,
    OnError,
    RunFiles,
)
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    GraderName,
    ItemKind,
    OnBadLine,
    PromptName,
)
from exampp.cli.output import remark

if TYPE_CHECKING:
    from exampp.evaluate.exams import FacetChoice
    from exampp.records.gradebook import Gradebook
    from exampp.report.plots.figure import Figure


class PlotKind(StrEnum):
    """What is drawn."""

    leaderboard = "leaderboard"
    methods = "methods"
    scatter = "scatter"
    grades = "grades"
    labels = "labels"
    curve = "curve"
    heatmap = "heatmap"


class Theme(StrEnum):
    """The ground that a figure is for."""

    light = "light"
    dark = "dark"


def plot(
    what: Annotated[PlotKind, typer.Argument(metavar="KIND", help="; ".join(PlotKind))],
    collection: CollectionOrWorkbench,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file: .svg, .png, .json (Vega-Lite), .csv or .tsv (data)."
        ),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="The measure; for methods, repeat for several. [default: Cover@20; for methods "
            "Cover@20, nDCG@20, P@20, AP]",
        ),
    ] = None,
    min_rating: MinRating = None,
    official: Annotated[
        Path | None, typer.Option(help="The official leaderboard, for scatter and methods.")
    ] = None,
    theme: Annotated[Theme, typer.Option(help="The ground it is for; it stays transparent.")] = (
        Theme.light
    ),
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    facets: Facets = FacetMode.auto,
    on_error: OnError = OnBadLine.refuse,
) -> None:
    """Draw one figure.

    COLLECTION may be a file of graded passages; --bank then names a bank file.
    """
    from exampp.formats.lines import keep_inputs

    if what is PlotKind.scatter and official is None:
        raise exampp.InputError(
            f"{what.value} needs an official leaderboard", mend="Name one with --official"
        )
    keep_inputs([output], [collection, bank, official, *(run or ())])
    with exampp.open_grades(collection, on_error.value) as opened:
        book = opened.gradebook(
            grader=grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
        )
    figure = _figure(what, book, measure, min_rating, official, facets.value)
    figure.save(output, theme.value)
    remark(f"{output}: {figure.title}")


_METHODS = ("Cover@20", "nDCG@20", "P@20", "AP")


def _figure(
    what: PlotKind,
    book: Gradebook,
    measures: list[str] | None,
    min_rating: int | None,
    official: Path | None,
    facets: FacetChoice,
) -> Figure:
    from exampp.formats import leaderboards
    from exampp.graded import evaluate_gradebook
    from exampp.meta import figures
    from exampp.meta.agreement_raters import check_min_rating

    threshold = book.grader.default_min_rating if min_rating is None else min_rating
    check_min_rating([book], threshold)
    if what is PlotKind.grades:
        return figures.grades_figure([book])
    if what is PlotKind.labels:
        return figures.labels_figure(book, exampp.Labelling(), threshold)
    if what is PlotKind.curve:
        return figures.curves_figure(book, threshold, facets=facets)
    default = _METHODS if what is PlotKind.methods else _METHODS[:1]
    board = evaluate_gradebook(book, measures or default, threshold, facets=facets)
    first = board.columns[0]
    ranks = leaderboards.read(official) if official else None
    if what is PlotKind.methods:
        return figures.methods_figure(board, board.columns, ranks)
    if what is PlotKind.scatter and ranks is not None:
        return figures.scatter_figure(board, first, ranks)
    if what is PlotKind.heatmap:
        return figures.heatmap_figure(board, first)
    return figures.leaderboard_figure(board, first)
