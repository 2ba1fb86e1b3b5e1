"""What an import leaves as it is unless it is told otherwise: what is graded, and people's work."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from exampp.records import State
from exampp.records.differences import Difference, Protected
from exampp.store.interning import from_json

Says = Mapping[str, Any]
"""The fields of a thing, such as the text of a query."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fields of a kind of thing that are protected where the thing is `why`.

    `of` gives the key that `which` is about, None where the rule does not concern the thing;
    `which` selects the protected ones of the keys in a JSON list.
    """

    thing: str
    why: str
    fields: frozenset[str]
    of: Callable[[Any, Says], Any]
    which: str


_WANTED = "IN (SELECT value FROM json_each(:keys))"
_ANSWERED = (
    "(EXISTS (SELECT 1 FROM grader o CROSS JOIN grade g ON g.grader = o.grader "
    "AND g.item_version = v.version) "
    "OR EXISTS (SELECT 1 FROM decision d WHERE d.item_version = v.version))"
)
_GRADED_QUERIES = (
    "SELECT DISTINCT i.query FROM item i JOIN item_version v USING (item) "
    f"WHERE i.query {_WANTED} AND {_ANSWERED}"
)
_GRADED_ITEMS = f"SELECT v.version FROM item_version v WHERE v.version {_WANTED} AND {_ANSWERED}"
_GRADED_PASSAGES = (
    f"SELECT passage_version FROM grade WHERE passage_version {_WANTED} "
    f"UNION SELECT passage_version FROM decision WHERE passage_version {_WANTED}"
)
_OWNED_ITEMS = (
    f"SELECT item FROM item_edit WHERE item {_WANTED} AND operation NOT IN ('import', 'generate') "
    f"UNION SELECT item FROM sealed WHERE item {_WANTED}"
)
_EDITABLE = frozenset({"active", "kind", "text", "subtopic", "weight", "key"})
_RULES = (
    _Rule("query", "graded", frozenset({"text"}), lambda key, _: key, _GRADED_QUERIES),
    _Rule(
        "subtopic", "graded", frozenset({"text"}), lambda _, says: says["query"], _GRADED_QUERIES
    ),
    _Rule(
        "passage",
        "graded",
        frozenset({"title", "text"}),
        lambda _, says: says["version"],
        _GRADED_PASSAGES,
    ),
    _Rule("item", "graded", frozenset({"text"}), lambda _, says: says["version"], _GRADED_ITEMS),
    _Rule("item", "edited or sealed by people", _EDITABLE, lambda key, _: key, _OWNED_ITEMS),
    _Rule(
        "ranking",
        "of graded queries",
        frozenset({"passages", "ranks and scores"}),
        lambda key, _: from_json(key)[0],
        _GRADED_QUERIES,
    ),
    _Rule(
        "grade",
        "known already",
        frozenset({"rating", "reply"}),
        lambda key, says: key if says["state"] == State.GRADED else None,
        "SELECT value FROM json_each(:keys)",
    ),
)


def protected(
    connection: sqlite3.Connection,
    thing: str,
    found: Iterable[tuple[Any, Says | None, list[Difference]]],
) -> list[Protected]:
    """Those of the differences that are protected; of each thing its key and what it said before.

    A text or a reply that was not known before may be filled in.
    """
    things = [(key, says, some) for key, says, some in found if says is not None]
    result: dict[Any, Protected] = {}
    for rule in (rule for rule in _RULES if rule.thing == thing):
        touched = [
            (key, rule.of(key, says), one)
            for key, says, some in things
            for one in some
            if one.field in rule.fields and (one.before or one.field not in ("text", "reply"))
        ]
        keys = json.dumps(list({of for _, of, _ in touched if of is not None}))
        rows = connection.execute(rule.which, {"keys": keys}) if touched else ()
        which = {row[0] for row in rows}
        for key, of, one in touched:
            if of in which:
                result.setdefault(key, Protected(rule.why, one))
    return list(result.values())
