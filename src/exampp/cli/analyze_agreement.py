"""`exampp analyze agreement`: graders against judgments and against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import exampp
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import show_several

if TYPE_CHECKING:
    from exampp.meta.agreement import Comparison
    from exampp.records.grading import GraderIdentity


class AgainstWhat(StrEnum):
    """What labels are compared with."""

    judgments = "judgments"
    graders = "graders"
    people = "people"


class LayoutName(StrEnum):
    """The papers' tables."""

    graded = "graded"
    merge = "merge"
    lenient = "lenient"
    strict = "strict"


def agreement(
    collection: CollectionOrWorkbench,
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
    at_least: Annotated[
        list[int] | None,
        typer.Option(
            help="The label is the m-th best rating of a passage; repeat for several. "
            "[default: 1, 2, 5]"
        ),
    ] = None,
    min_rating: Annotated[
        int | None,
        typer.Option(
            help="Lowest rating that STRICT takes as relevant. "
            "[default: 4, or the highest of a shorter scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        list[int] | None,
        typer.Option(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR; repeat for "
            "several. [default: 2, or the highest there is]"
        ),
    ] = None,
    layout: Annotated[
        list[LayoutName] | None,
        typer.Option(
            help="The papers' tables: each label, merged ones, 1 and more, --min-rating and more; "
            "repeat for several. Named, they show graders against each other too. [default: all]"
        ),
    ] = None,
    against: Annotated[
        AgainstWhat | None, typer.Option(help="Only judgments, only graders, or only people.")
    ] = None,
    on_error: Annotated[
        OnBadLine, typer.Option(help="A bad line of a graded file: refuse the file, or skip.")
    ] = OnBadLine.refuse,
    style: TableStyle = Style.text,
) -> None:
    """Compare labels with judgments, graders with each other, people with graders.

    Confusion tables as the papers print them, Cohen's kappa, weighted kappa, Krippendorff's alpha
    and Gwet's AC1, with 95 % intervals over queries. tsv and csv hold the statistics alone, json
    the counts too.
    """
    from exampp.meta.agreement import LAYOUTS
    from exampp.meta.agreement_findings import find
    from exampp.meta.agreement_raters import DEFAULT_AT_LEAST

    with exampp.open_grades(collection, on_error.value) as opened:
        chosen = _chosen(opened.graders, grader, prompt, kind.value if kind else None)
        books = [opened.gradebook(grader=one.key, bank=bank) for one in chosen]
        asked = against in (None, AgainstWhat.people)
        people = _people(opened, chosen, bank, min_rating) if asked else []
    found = find(
        books,
        people=people,
        at_least=at_least or DEFAULT_AT_LEAST,
        min_rating=min_rating,
        min_relevant=min_relevant or (),
        layouts=[one.value for one in layout] if layout else LAYOUTS,
        against=against.value if against else None,
    )
    if style in (Style.json, Style.tsv, Style.csv):
        show_several(found.for_machines(), style.value)
    else:
        show_several(found.for_reading(mutual_counts=bool(layout)), style.value)


def _chosen(
    graders: Sequence[GraderIdentity],
    names: Sequence[str] | None,
    prompt: str | None,
    kind: str | None,
) -> list[GraderIdentity]:
    """All graders that fit one of the names; raises InputError where a name fits none."""
    from exampp.records.choosing import choose_grader, fitting_graders

    def fitting(name: str | None) -> Iterator[GraderIdentity]:
        found = fitting_graders(graders, grader=name, prompt=prompt, kind=kind)
        # none: the error that lists them
        yield from found or [choose_grader(graders, grader=name, prompt=prompt, kind=kind)]

    found = {one.key: one for name in names or (None,) for one in fitting(name)}
    return list(found.values())


def _people(
    opened: exampp.Collection | exampp.Workbench,
    graders: Sequence[GraderIdentity],
    bank: str | None,
    min_rating: int | None,
) -> list[Comparison]:
    """People against the graders, and once for what these grade against each other."""
    from exampp.meta.agreement_people import among_people, with_people

    if not isinstance(opened, exampp.Collection):
        return []
    found: list[Comparison] = []
    between: dict[tuple[str, int], tuple[Comparison, ...]] = {}
    for grader in graders:
        cells = opened.judged(grader=grader.key, bank=bank)
        found += with_people(cells, grader, min_rating)
        between[grader.kind, grader.highest] = among_people(cells, grader, min_rating)
    return [*found, *(one for pairs in between.values() for one in pairs)]
