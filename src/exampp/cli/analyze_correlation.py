"""`exampp analyze correlation`: methods against official leaderboards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    from exampp.records.gradebook import Gradebook
    from exampp.records.grading import GraderIdentity


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
    from exampp.meta.methods import DEFAULT_MEASURES, graded_method, listed_method, qrels_method

    measures, thresholds = measure or DEFAULT_MEASURES, min_rating or ()
    methods: list[Method] = []
    first: Gradebook | None = None
    kind_name = kind.value if kind else None
    for path in collection:
        with exampp.open_grades(path, on_error.value) as opened:
            for identity in _fitting(opened.graders, grader, prompt, kind_name):
                book = opened.gradebook(grader=identity.key, bank=bank, runs=run or ())
                first = first or book
                name = _name(identity, opened.graders, path if len(collection) > 1 else None)
                methods.append(graded_method(book, measures, thresholds, name))
    for path in qrels or ():
        if first is not None:
            judgments = qrels_format.read(path)
            methods.append(qrels_method(path.name, first, judgments, measures, thresholds))
    methods += [listed_method(path.name, leaderboards.read(path)) for path in scores or ()]
    officials = {_stem(path, official): leaderboards.read(path) for path in official}
    found = compare_methods(
        methods, officials, statistic or ("spearman", "kendall"), samples=samples
    )
    if style in (Style.tsv, Style.csv, Style.json):
        show(tidy(found), style.value)
    else:
        show_several({name: wide(found, name) for name in officials}, style.value)


def _fitting(
    graders: Sequence[GraderIdentity],
    names: Sequence[str] | None,
    prompt: str | None,
    kind: str | None,
) -> Iterator[GraderIdentity]:
    """All graders that fit one of the names; raises InputError where a name fits none."""
    from exampp.records.choosing import choose_grader, fitting_graders

    seen: set[str] = set()
    for name in names or (None,):
        found = fitting_graders(graders, grader=name, prompt=prompt, kind=kind)
        # none: the error that lists them
        for one in found or [choose_grader(graders, grader=name, prompt=prompt, kind=kind)]:
            if one.key not in seen:
                seen.add(one.key)
                yield one


def _name(identity: GraderIdentity, others: Sequence[GraderIdentity], path: Path | None) -> str:
    """The short name where no other grader shares it; with its file where there are several."""
    from exampp.records.choosing import label

    alone = sum(other.name == identity.name for other in others) == 1
    name = identity.name if alone else label(identity)
    return name if path is None else f"{path.name}: {name}"


def _stem(path: Path, among: Sequence[Path]) -> str:
    """The name of the file, or its path where several have one name."""
    return path.name if sum(other.name == path.name for other in among) == 1 else str(path)
