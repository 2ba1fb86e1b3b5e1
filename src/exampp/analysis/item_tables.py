"""What was found about items, as tables: the exam, the items to look at, leaderboards, choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from exampp.analysis.item_choice_tables import choices_record, choices_table
from exampp.analysis.item_notes import exam_notes, look_notes, name_of, without_notes
from exampp.analysis.item_records import ExamRow, ItemFindings, ItemStatistics
from exampp.report.table import Column, Table, Value
from exampp.stats.item_analysis import places, ranked

_TEXT = 48
_SHORTEST_ID = 12


def tables(found: ItemFindings, limit: int) -> Mapping[str, Table]:
    """The tables that people read."""
    shown = {"exam": exam_table(found)}
    if found.look:
        shown["items"] = look_table(found, limit)
    if found.look or found.abilities:
        shown["leaderboard"] = leaderboard_table(found)
    if found.officials:
        shown["choices"] = choices_table(found.choices, name_of(found))
    return shown


def records(found: ItemFindings) -> Mapping[str, Table]:
    """The same for programs, and every item."""
    shown = {
        "items": items_table(found),
        "exam": exam_record(found),
        "systems": systems_record(found),
    }
    if found.officials:
        shown["choices"] = choices_record(found.choices, found.caption)
    return {name: table.keyed(found.grader_key) for name, table in shown.items()}


# ---- the exam ------------------------------------------------------------------------------------


def exam_table(found: ItemFindings) -> Table:
    """A row a group of systems: how reliable the exam is for them."""
    columns: list[str | Column] = [
        "exam",
        "systems",
        found.statistic,
        Column("same", 0),
        Column("< 0", 0),
        *_HALVES,
    ]
    rows = [
        [row.name, row.systems, row.alpha, row.constant, row.negative, *_halves(row)]
        for row in found.exams
    ]
    return Table.of(columns, rows, found.caption, exam_notes(found))


_HALVES = tuple(
    Column(name, group=group) for group in ("items", "queries") for name in ("r", "SB", "tau")
)


def _halves(row: ExamRow) -> list[Value]:
    return [value for half in (row.items, row.queries) for value in (half.r, half.whole, half.tau)]


def exam_record(found: ItemFindings) -> Table:
    """A row a group of systems, at full precision."""
    names = (
        *("exam", "drop", "systems", "items", "statistic", "alpha", "alpha_varying"),
        *("all_pass", "all_fail", "constant", "negative"),
        *(
            f"{group}_{name}"
            for group in ("items", "queries")
            for name in ("r", "spearman_brown", "tau", "r_error", "tau_error")
        ),
        *("jackknife_min", "jackknife_system", "jackknife_error", "chance_floor"),
    )
    floor = found.floor.values[0] if found.floor.values else None
    jackknife = found.jackknife
    rows = [
        [
            row.name,
            row.drop,
            row.systems,
            len(found.items),
            found.statistic,
            row.alpha,
            row.alpha_varying,
            row.all_pass,
            row.all_fail,
            row.constant,
            row.negative,
            *(
                value
                for half in (row.items, row.queries)
                for value in (half.r, half.whole, half.tau, half.r_error, half.tau_error)
            ),
            *((jackknife.lowest, jackknife.system, jackknife.error) if row.drop == 0 else _NONE),
            floor if row.drop == 0 else None,
        ]
        for row in found.exams
    ]
    return Table.of(names, rows, found.caption, exam_notes(found))


_NONE: tuple[None, None, None] = (None, None, None)


# ---- items ---------------------------------------------------------------------------------------


def look_table(found: ItemFindings, limit: int) -> Table:
    """The items to look at, worst first."""
    look = found.look[:limit]
    short = _short_ids([row.item_id for row in found.items])
    parts: list[tuple[str | Column, list[Value]]] = [
        ("item", [short[row.item_id] for row in look]),
        (Column("covered", 2), [row.difficulty for row in look]),
        (Column("rest", 2), [row.item_rest for row in look]),
        (Column("without", 2), [row.item_rest_without for row in look]),
        (Column("relevant", 2), [row.relevant for row in look]),
        (Column("not", 2), [row.not_relevant for row in look]),
        ("swaps", [row.swaps for row in look]),
        ("sealed", [row.sealed for row in look]),
        ("lint", [", ".join(row.lint) or None for row in look]),
        ("text", [_cut(row.text) or None for row in look]),
    ]
    shown = [(name, cells) for name, cells in parts if any(cell is not None for cell in cells)]
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    columns = [name for name, _ in shown]
    return Table.of(columns, rows, "Items to look at, worst first", look_notes(found, limit))


def items_table(found: ItemFindings) -> Table:
    """A row an item, in the order of queries and ids."""
    names = (
        *("query_id", "item_id", "difficulty", "constant", "item_total", "item_rest"),
        *("item_rest_without", "alpha_if_deleted", "relevant", "not_relevant", "swaps"),
        *("discrimination", "location", "lint", "sealed", "why", "text"),
    )
    rows = [_item(row, names) for row in found.items]
    return Table.of(names, rows, found.caption, [*exam_notes(found), *look_notes(found, 0)])


def _item(row: ItemStatistics, names: Sequence[str]) -> list[Value]:
    values = (getattr(row, name) for name in names)
    return [", ".join(value) if isinstance(value, tuple) else value for value in values]


def _short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The starts of ids that tell them apart: hashes need not be shown whole."""
    known = dict.fromkeys(ids)
    at = [one.rfind("/") + 1 for one in known]
    for length in range(_SHORTEST_ID - 6, 200):
        found = {one: one[: start + length] for one, start in zip(known, at, strict=True)}
        if len(set(found.values())) == len(known):
            return found
    return {one: one for one in known}


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}\N{HORIZONTAL ELLIPSIS}"


# ---- systems -------------------------------------------------------------------------------------


def leaderboard_table(found: ItemFindings) -> Table:
    """The systems, best first, with and without the items to look at, and their abilities."""
    names = ["system", name_of(found), "rank", "without these", "rank without"]
    ability = found.abilities
    names += ["ability", "\N{PLUS-MINUS SIGN}", "rank by it"] if ability else []
    rows = [[row[name] for name in _SYSTEM[: 8 if ability else 5]] for row in _systems(found)]
    return Table.of(
        names, rows, "The leaderboard without the items to look at", without_notes(found)
    )


def systems_record(found: ItemFindings) -> Table:
    """A row a system, best first, at full precision."""
    rows = [[row[name] for name in _SYSTEM] for row in _systems(found)]
    return Table.of(_SYSTEM, rows, found.caption, without_notes(found))


_SYSTEM = (
    *("system", "score", "rank", "score_without", "rank_without"),
    *("ability", "ability_error", "ability_rank", "ability_mean", "ability_deviation"),
    "alpha_without",
)


def _systems(found: ItemFindings) -> list[dict[str, Value]]:
    scores = found.scores
    whole = scores.cover()
    kept = found.without_look
    without = scores.cover(kept) if kept.any() else None
    values: dict[str, Sequence[Value]] = {
        "system": scores.systems,
        "score": whole.tolist(),
        "rank": places(whole),
        "score_without": _all(len(whole)) if without is None else without.tolist(),
        "rank_without": _all(len(whole)) if without is None else places(without),
        "alpha_without": list(found.jackknife.without.values()),
    }
    for name in _SYSTEM[5:10]:
        values[name] = _all(len(whole))
    if found.abilities:
        of = found.abilities.all.abilities
        values |= {
            "ability": of.mode.tolist(),
            "ability_error": of.error.tolist(),
            "ability_rank": places(of.mode),
            "ability_mean": of.mean.tolist(),
            "ability_deviation": of.deviation.tolist(),
        }
    order = np.lexsort((np.arange(len(whole)), -ranked(whole))).tolist()
    return [{name: values[name][at] for name in _SYSTEM} for at in order]


def _all(count: int) -> list[Value]:
    return [None] * count
