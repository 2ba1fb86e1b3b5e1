"""The vote of several graders, stored as the grades of another grader."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from exampp.errors import InputError
from exampp.records import Grade, GraderIdentity, State
from exampp.records.graders import RULES, VOTE, notes_of_vote
from exampp.records.readings import VOTED
from exampp.results.result import Result, Table
from exampp.results.view import Value
from exampp.store.connection import transaction
from exampp.store.grades import (
    RatedCell,
    StoredGrader,
    grade_row,
    graders,
    put_grader,
    put_grades,
    rated_cells,
    spread_of,
)
from exampp.store.interning import batches

SHOWN = 20
"""Rows of the table of items on which members differ most."""


@dataclass(slots=True)
class _ItemSpread:
    cells: int = 0
    unanimous: int = 0
    spread: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Voted(Result):
    """What a vote made: whose grades it are, how far its members differ, and on which items.

    `lacking` counts cells without a grade by how many of the members graded them.
    """

    grader: GraderIdentity
    cells: int
    unanimous: int
    spread: float
    lacking: Mapping[int, int]
    items: Mapping[tuple[str, str], tuple[int, int, float]] = field(default_factory=dict)

    def tables(self) -> Mapping[str, Table]:
        """Return the vote, and the items on which its members differ most."""
        rows = [
            (query, item, cells, same / cells, spread)
            for (query, item), (cells, same, spread) in self.items.items()
        ]
        rows.sort(key=lambda row: (-row[4], row[0], row[1]))
        names = ["query", "item", "cells", "same rating", "range"]
        caption = f"Where the members of {self.grader.name} differ most"
        items = Table.of(names, rows[:SHOWN], caption, tuple(self._notes()))
        counted: list[list[Value]] = [
            [self.grader.name, self.cells, sum(self.lacking.values()), self.spread]
        ]
        voted = Table.of(["grader", "cells", "without a grade", "range"], counted)
        return {"voted": voted, "items": items}

    def _notes(self) -> Iterator[str]:
        yield from notes_of_vote(self.grader, self.cells, self.unanimous, self.spread)
        for present, count in sorted(self.lacking.items()):
            yield f"{count:,} cells have no grade: {present} of the members graded them."


def vote_cells(
    connection: sqlite3.Connection,
    members: Sequence[StoredGrader],
    banks: Sequence[str],
    *,
    rule: str,
    at_least: int | None = None,
) -> Voted:
    """Give every cell of the banks that members graded what they say together by a rule.

    A cell that fewer than `at_least` of them graded (all, where it is None) has no grade, and says
    so. Members whose grades came later are counted when it is done again.

    Raises:
        InputError: Fewer than two members, or of other kinds or scales; an unknown rule; a number
            of members that cannot be.

    """
    identity = _identity(members, rule, at_least)
    keys = [one.key for one in members]
    least = identity.settings["vote"]["at_least"]
    lacking: Counter[int] = Counter()
    by_item: dict[tuple[str, str], _ItemSpread] = {}
    with connection, transaction(connection):
        grader = put_grader(connection, identity)
        cells = (rated_cells(connection, keys, identity.kind, bank) for bank in banks)
        for some in batches(chain.from_iterable(cells)):
            rows = []
            for cell in some:
                ratings = [cell.ratings[key] for key in keys if key in cell.ratings]
                grade = _voted_grade(cell, ratings, rule, least, len(members))
                rows.append(
                    grade_row(
                        grader, cell.item_version, cell.passage_version, grade, cell.answer_key
                    )
                )
                if grade.state is not State.GRADED:
                    lacking[len(ratings)] += 1
                    continue
                found = by_item.setdefault((cell.query_id, cell.item_id), _ItemSpread())
                found.cells += 1
                found.unanimous += len(set(ratings)) == 1
                found.spread += max(ratings) - min(ratings)
            put_grades(connection, rows)
        found_cells, unanimous, spread = spread_of(connection, grader, banks)
    named = next(one.identity for one in graders(connection) if one.key == grader)
    items = {
        name: (one.cells, one.unanimous, one.spread / one.cells) for name, one in by_item.items()
    }
    return Voted(named, found_cells, unanimous, spread, lacking, items)


def _voted_grade(cell: RatedCell, ratings: Sequence[int], rule: str, least: int, of: int) -> Grade:
    detail: dict[str, object] = {"ratings": list(ratings)}
    if len(ratings) < least:
        detail["reason"] = f"{len(ratings)} of {of} members graded it, {least} are needed"
        return Grade(cell.query_id, State.FAILED, None, rule=VOTED, detail=detail)
    rating = RULES[rule](ratings)
    detail["spread"] = max(ratings) - min(ratings)
    detail["expected"] = sum(ratings) / len(ratings)
    agree = sum(one == rating for one in ratings) / len(ratings)
    return Grade(cell.query_id, State.GRADED, rating, rule=VOTED, confidence=agree, detail=detail)


def _identity(members: Sequence[StoredGrader], rule: str, at_least: int | None) -> GraderIdentity:
    """Return the grader that a vote is: other members, or another rule, are another grader."""
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r}", hint=f"Give one of {', '.join(RULES)}")
    if len(members) < 2:
        raise InputError(
            f"{len(members)} grader cannot vote" if members else "nobody votes",
            hint="Name two or more graders (exampp status lists them)",
        )
    first = members[0].identity
    for one in members[1:]:
        same = (one.identity.kind, one.identity.lowest, one.identity.highest)
        if same != (first.kind, first.lowest, first.highest):
            raise InputError(
                f"{first.name} grades {first.kind} items from {first.lowest} to {first.highest}, "
                f"{one.identity.name} {same[0]} items from {same[1]} to {same[2]}",
                hint="Let graders vote that grade the same on one scale",
            )
    least = len(members) if at_least is None else at_least
    if not 1 <= least <= len(members):
        raise InputError(
            f"at-least is {least}, of {len(members)} members", hint=f"Give 1 to {len(members)}"
        )
    named = [{"name": one.identity.name, "key": one.identity.key} for one in members]
    # who votes makes the grader, not the order in which they are named
    named.sort(key=lambda one: one["key"])
    name = f"{VOTE}{rule}"
    settings = {"vote": {"rule": rule, "members": named, "at_least": least}}
    return GraderIdentity(name, name, first.kind, first.lowest, first.highest, settings)
