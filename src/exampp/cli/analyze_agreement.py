"""`exampp analyze agreement`: graders against judgments and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_READING,
    CountDecisions,
    DecisionMode,
    Digits,
    GraderNames,
    OnError,
    Scale,
    rating_scale,
)
from exampp.cli.command import Counts, counting
from exampp.cli.declare import argument, option
from exampp.cli.options import (
    BankName,
    ItemKind,
    OnBadLine,
    PromptName,
    Style,
    TableStyle,
)
from exampp.cli.output import end_where_undefined, show_several
from exampp.errors import InputError

if TYPE_CHECKING:
    from exampp.analysis.agreement_findings import Against
    from exampp.records import Judgment


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


def _is_qrels(path: Path) -> bool:
    from exampp.formats.detect import detect

    # what is no file of a known format is refused when it is opened
    with suppress(InputError):
        return path.is_file() and detect(path) == "qrels"
    return False


def _has_grades(given: Mapping[str, Any]) -> bool:
    return not all(map(_is_qrels, given["collection"]))


@counting(
    OF_GRADED_FILES,
    Counts(
        ("--grader", "--prompt", "--kind", "--bank", "--at-least", "--min-rating", "--decisions"),
        "with a collection or graded passages",
        _has_grades,
    ),
    OF_READING,
    Counts(
        ("--at-least",),
        "for labels of passages, not for --against people",
        lambda given: given["against"] != AgainstWhat.people,
    ),
    Counts(
        ("--min-relevant",),
        "for --against judgments",
        lambda given: given["against"] in (None, AgainstWhat.judgments),
    ),
    Counts(
        ("--min-rating",),
        "for the layouts strict and merge, and for people",
        lambda given: (
            not given["layout"]
            or not {LayoutName.strict, LayoutName.merge}.isdisjoint(given["layout"])
            or given["against"] in (None, AgainstWhat.people)
        ),
    ),
)
def agreement(
    collection: Annotated[
        list[Path],
        argument(
            metavar="COLLECTION",
            help="A collection, or graded passages (graded.jsonl.gz), and qrels to compare with "
            "them; or two or more qrels files.",
        ),
    ],
    grader: GraderNames = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    at_least: Annotated[
        list[int] | None,
        option(
            help="The label is the m-th best rating of a passage; repeat for several. "
            "[default: 1, 2, 5]"
        ),
    ] = None,
    min_rating: Annotated[
        int | None,
        option(
            help="Lowest rating that STRICT takes as relevant. "
            "[default: 4 of 0-5, two thirds up any other scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        list[int] | None,
        option(
            help="Lowest judgment that is relevant: 2 for TREC DL, 1 for TREC CAR; repeat for "
            "several. [default: 2, or 1 where none is higher]"
        ),
    ] = None,
    layout: Annotated[
        list[LayoutName] | None,
        option(
            help="The papers' tables: each label, merged ones, 1 and more, --min-rating and more; "
            "repeat for several. Named, they show graders against each other too. [default: all]"
        ),
    ] = None,
    against: Annotated[
        AgainstWhat | None, option(help="Only judgments, only graders, or only people.")
    ] = None,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Compare labels with judgments, graders with each other, people with graders, qrels with all.

    Confusion tables as the papers print them, Cohen's kappa, weighted kappa, Krippendorff's alpha
    and Gwet's AC1, with 95 % intervals over queries. Where systems return judged passages, a last
    table shows whether a grader favours a system.

    Example: exampp analyze agreement graded.jsonl.gz
    """
    from exampp.analysis.agreement import LAYOUTS
    from exampp.analysis.agreement_findings import find
    from exampp.stats.estimate import undefined

    source, qrels = _sources(collection)
    cuts = min_relevant or ()
    against_what: Against | None = against.value if against else None
    layouts = [one.value for one in layout or ()]
    if source is None:
        found = find(
            [],
            qrels=qrels,
            min_relevant=cuts,
            layouts=layouts or LAYOUTS,
            against=against_what,
        )
    else:
        with exampp.open(source, on_error.value, rating_scale(scale)) as opened:
            found = opened.panel(
                *(grader or ()),
                prompt=prompt,
                kind=kind.value if kind else None,
                bank=bank,
                decisions=decisions.value,
            ).agreement(
                at_least=at_least or (),
                min_rating=min_rating,
                min_relevant=cuts,
                layouts=layouts,
                against=against_what,
                qrels=qrels,
            )
    if style in (Style.json, Style.tsv, Style.csv):
        show_several(found.records(), style.value, digits)
    else:
        show_several(found.tables(mutual_counts=bool(layout)), style.value, digits)
    estimates = found.estimates() or [undefined("; ".join(found.notes))]
    end_where_undefined([one.value for one in estimates], [one.reason for one in estimates])


def _sources(paths: Sequence[Path]) -> tuple[Path | None, Mapping[str, Sequence[Judgment]]]:
    """Return the collection, if there is one, and the judgments of the qrels files by name."""
    from exampp.formats import qrels
    from exampp.inputs.officials import by_name

    files = [path for path in paths if _is_qrels(path)]
    others = [path for path in paths if path not in files]
    if len(others) > 1:
        raise InputError(
            f"{others[1]} is a second collection: agreement is that of one",
            mend="Name one collection, and any number of qrels files",
        )
    if not others and len(by_name(files)) < 2:
        raise InputError(
            f"{files[0]} has nothing to be compared with",
            mend="Name a second qrels file, a collection or graded passages",
        )
    judgments = {name: list(qrels.read(path)) for name, path in by_name(files).items()}
    return (others[0] if others else None), judgments
