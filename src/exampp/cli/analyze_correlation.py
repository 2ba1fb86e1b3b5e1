"""`exampp analyze correlation`: methods against official leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import exampp
from exampp.cli.options import (
    BankName,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import show, show_several

if TYPE_CHECKING:
    from exampp.meta.methods import Method


def correlation(
    collection: Annotated[
        list[Path],
        typer.Argument(
            metavar="COLLECTION...", help="Collections, or graded passages (graded.jsonl.gz)."
        ),
    ],
    official: Annotated[
        list[Path], typer.Option(help="An official leaderboard; repeat for several.")
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. "
            "[default: Cover@20, nCover@20, P@20, nDCG@20]",
        ),
    ] = None,
    min_rating: Annotated[
        list[int] | None,
        typer.Option(
            help="Lowest rating that counts as an answer; repeat for several. "
            "[default: all of the scale]"
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            help="spearman, kendall, tau_ap, rbo, rbo(p=0.8), kendall@10 (the 10 officially best); "
            "repeat for several. [default: spearman, kendall]"
        ),
    ] = None,
    grader: Annotated[
        list[str] | None,
        typer.Option(
            help="Which grader: a model, model:prompt, or the start of its key; repeat for "
            "several. [default: all]"
        ),
    ] = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="Evaluate this run file instead; repeat for several.")
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        typer.Option(
            help="Qrels made elsewhere, on the same runs, as one more method; repeat for several."
        ),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="A leaderboard made elsewhere as one more method; repeat for several."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Resamples for the intervals; 0: no intervals.")
    ] = 2000,
    on_error: Annotated[
        OnBadLine, typer.Option(help="A bad line of a graded file: refuse the file, or skip.")
    ] = OnBadLine.refuse,
    style: TableStyle = Style.text,
) -> None:
    """Correlate all graders, thresholds and measures with official leaderboards.

    The intervals, over queries, are of the correlation that the systems' expected scores have.
    tsv, csv and json hold a row a value.
    """
    from exampp.formats import leaderboards
    from exampp.formats import qrels as qrels_format
    from exampp.meta.correlation import compare_methods
    from exampp.meta.correlation_tables import tidy, wide
    from exampp.meta.methods import listed_method

    made_elsewhere = {path.name: list(qrels_format.read(path)) for path in qrels or ()}
    methods: list[Method] = []
    for path in collection:
        with exampp.open_grades(path, on_error.value) as opened:
            methods += opened.methods(
                measure or (),
                min_rating=min_rating or (),
                graders=grader or (),
                prompt=prompt,
                kind=kind.value if kind else None,
                bank=bank,
                runs=run or (),
                # on the runs of the first collection
                qrels=None if methods else made_elsewhere,
                of=f"{path.name}: " if len(collection) > 1 else "",
            )
    methods += [listed_method(path.name, leaderboards.read(path)) for path in scores or ()]
    officials = {_stem(path, official): leaderboards.read(path) for path in official}
    compared = compare_methods(
        methods, officials, statistic or ("spearman", "kendall"), samples=samples
    )
    if style in (Style.tsv, Style.csv, Style.json):
        show(tidy(compared), style.value)
    else:
        show_several({name: wide(compared, name) for name in officials}, style.value)


def _stem(path: Path, among: Sequence[Path]) -> str:
    """The name of the file, or its path where several have one name."""
    return path.name if sum(other.name == path.name for other in among) == 1 else str(path)
