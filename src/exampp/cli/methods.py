"""Ways to score systems, as the commands that set several side by side take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import exampp
from exampp.cli.declare import argument, option
from exampp.records.grading import RatingScale

if TYPE_CHECKING:
    from exampp.analysis.methods import Method
    from exampp.records.gradebook import DecisionChoice

Collections = Annotated[
    list[Path],
    argument(metavar="COLLECTION", help="Collections, or graded passages (graded.jsonl.gz)."),
]
AllMinRatings = Annotated[
    list[int] | None,
    option(
        help="Lowest rating that counts as an answer; repeat for several. "
        "[default: all of the scale]"
    ),
]
BankNames = Annotated[
    list[str] | None,
    option(help="The bank, where the collection has several of this kind; repeat for several."),
]
QrelsFiles = Annotated[
    list[Path] | None,
    option(help="Qrels made elsewhere, on the same runs, as one more method; repeat for several."),
]
Scores = Annotated[
    list[Path] | None,
    option(
        help="A leaderboard made elsewhere, FILE or FILE:MEASURE, as one more method; repeat for "
        "several."
    ),
]


def collect_methods(
    collections: Sequence[Path],
    measures: Sequence[str],
    *,
    qrels: Sequence[Path],
    scores: Sequence[Path],
    on_error: str,
    scale: RatingScale | None,
    min_rating: Sequence[int] = (),
    graders: Sequence[str] = (),
    prompt: str | None = None,
    kind: str | None = None,
    bank: str | Sequence[str] | None = None,
    runs: Sequence[str | Path] = (),
    systems: Sequence[str] = (),
    without: Sequence[str] = (),
    decisions: DecisionChoice = "with",
) -> list[Method]:
    """Every grader of some collections, then qrels and leaderboards made elsewhere.

    Takes the options of `Panel.methods`, and of `panel`. Qrels are evaluated on the runs of the
    first collection.
    """
    from exampp.analysis.methods import listed_method
    from exampp.formats import qrels as qrels_format
    from exampp.inputs.officials import by_name, read_officials

    elsewhere = {name: list(qrels_format.read(path)) for name, path in by_name(qrels).items()}
    found: list[Method] = []
    for path in collections:
        of = f"{path.name}: " if len(collections) > 1 else ""
        with exampp.open(path, on_error, scale) as opened:
            panel = opened.panel(
                *graders,
                prompt=prompt,
                kind=kind,
                bank=bank,
                runs=runs,
                systems=systems,
                without=without,
                decisions=decisions,
            )
            judged = None if found else elsewhere
            found += panel.methods(measures, min_rating=min_rating, qrels=judged, of=of)
    found += [listed_method(name, ranks) for name, ranks in read_officials(scores).items()]
    return found
