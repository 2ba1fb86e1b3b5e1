"""What exams of fewer or weighted items gain, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exampp.analysis.item_abilities import fitted
from exampp.analysis.item_selection import (
    ABILITY,
    ABILITY_WITHOUT,
    ALL,
    FEWEST_SYSTEMS,
    RANDOM,
    ItemChoice,
    ability_choices,
    choices,
)
from exampp.evaluate.board import Leaderboard
from exampp.evaluate.item_scores import item_scores
from exampp.evaluate.measure import heading
from exampp.records.gradebook import Gradebook
from exampp.report.table import Column, Table, Value
from exampp.stats.item_selection import CUT, SPLITS

ONE_COLLECTION = (
    "What a choice of items gains is known of one collection (TREC DL 2019), and whether it holds "
    "elsewhere is not: report the whole exam, and the smaller one beside it."
)
_NAMES = {
    ALL: "all",
    RANDOM: f"as many random ones as from {CUT:g}",
    ABILITY: "weighted by discrimination (2PL)",
    ABILITY_WITHOUT: "the same, fitted without the outlier",
}
_NONE: tuple[None, None, None] = (None, None, None)


def choices_table(found: Sequence[ItemChoice], of: str) -> Table:
    """Kendall's tau with the official order, in sample and held out; `of` names the scores."""
    several = len({one.official for one in found}) > 1
    names: list[str | Column] = ["official"] * several
    names += ["items", Column("kept", 0), Column("emptied", 0)]
    names += [Column(one, group="tau, all systems") for one in ("pooled", "Cover")]
    names += [Column(one, group="tau, systems held out") for one in ("pooled", "better", "Cover")]
    rows = [[*[one.official] * several, *_row(one)] for one in found]
    caption = f"{of} on fewer items against the official leaderboard: Kendall's tau-b"
    return Table.of(names, rows, caption, list(_notes(found)))


def choices_record(found: Sequence[ItemChoice], of: str) -> Table:
    """A row a choice of items, at full precision."""
    names = (
        *("official", "chosen", "items", "emptied", "tau_pooled", "tau_cover"),
        *(
            f"{score}_{name}"
            for score in ("held_out", "held_out_cover")
            for name in ("tau", "error", "better")
        ),
    )
    rows = [
        [
            *(one.official, str(one.chosen), one.items, one.emptied, one.pooled, one.cover),
            *(
                value
                for held in (one.held_out, one.held_out_cover)
                for value in ((held.tau, held.error, held.better) if held else _NONE)
            ),
        ]
        for one in found
    ]
    return Table.of(names, rows, of, list(_notes(found)))


def weight_gains(
    book: Gradebook, board: Leaderboard, officials: Mapping[str, Mapping[str, float]]
) -> dict[str, Table]:
    """What the weights in a leaderboard gain against official ones, a table a Cover and threshold.

    Nothing where its items weigh as in the bank.
    """
    weighted = [one for one in board.columns if one.measure.weights]
    found = {}
    for column in {(one.measure.cutoff, one.min_rating): one for one in weighted}.values():
        k, threshold = column.measure.cutoff or 20, column.min_rating or 0
        scores = item_scores(book, threshold, k, subtopics=board.subtopics)
        modelled = any(one.measure.weights == "2pl" for one in weighted)
        abilities = fitted(scores, "") if modelled else None
        of = heading(f"Cover@{k}", threshold)
        some = (*choices(scores, officials), *ability_choices(scores, abilities, officials))
        found[f"weights of {of}"] = choices_table(some, of)
    return found


def _row(one: ItemChoice) -> list[Value]:
    held, covered = one.held_out, one.held_out_cover
    name = _NAMES[one.chosen] if isinstance(one.chosen, str) else f"item-rest from {one.chosen:g}"
    return [
        name,
        one.items,
        one.emptied,
        one.pooled,
        one.cover,
        held.tau if held else None,
        f"{held.better:.0%}" if held and one.chosen != ALL else None,
        covered.tau if covered else None,
    ]


def _notes(found: Sequence[ItemChoice]) -> Iterator[str]:
    yield (
        "Items are chosen without any human label. pooled: every item counts where it stands; "
        "Cover: the mean over the queries that still have items."
    )
    if any(one.held_out for one in found):
        yield (
            f"Systems held out: over {SPLITS} random halves items are chosen on one half, and "
            "the other half is ranked; better is how often that beats all items. Against random "
            "items: a smaller exam alone is no gain."
        )
    else:
        yield (
            f"Nothing is held out, because fewer than {FEWEST_SYSTEMS} systems are in both "
            "leaderboards: the values are of the systems that the items were chosen on."
        )
    yield ONE_COLLECTION
