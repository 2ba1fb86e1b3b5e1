"""Record the changes of an import, row by row.

Triggers store the content of a row before its first change; the content after the import is read at
the end. Triggers and notes are temporary and belong to the transaction of the import: a rollback
removes them.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from exampp.records import State
from exampp.store.inputs import counts
from exampp.store.sql import from_json, has_scratch, select_integer

_LONGEST = 60
"""Maximum characters of a text in a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A record that was `added`, `changed` (in `field`) or `removed`.

    `before` and `after` are its values: texts, answer keys, relevances, ranked passages.
    """

    what: str
    thing: str
    id: str
    field: str = ""
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        name = f"{self.what} {self.thing} {self.id}"
        if self.what == "added":
            return f"{name}: {_short(self.after)}" if self.after else name
        if self.what == "removed":
            return f"{name}: {_short(self.before)}" if self.before else name
        return f"{name}, {self.field}: {_short(self.before)} -> {_short(self.after)}"


@dataclass(frozen=True, slots=True)
class Differences:
    """Counts of added, changed, removed and unchanged records of one kind.

    `examples` has a change and a removal, or a restored item, if any.
    """

    thing: str
    things: str
    added: int
    changed: int
    removed: int
    unchanged: int
    examples: tuple[Difference, ...] = ()

    @property
    def now(self) -> int:
        """Return the number of records after the import."""
        return self.added + self.changed + self.unchanged

    def __str__(self) -> str:
        parts = [f"+{self.added}"] if self.added else []
        parts += [f"{n} {what}" for what in ("changed", "removed") if (n := getattr(self, what))]
        parts += [f"{self.unchanged} unchanged"] if parts and self.unchanged else []
        return f"{self.things:>10}  {self.now:>9}" + (f"  ({', '.join(parts)})" if parts else "")


@dataclass(frozen=True, slots=True)
class Protected:
    """A difference applied only with `update`, for the reason `why`."""

    why: str
    difference: Difference


def _short(text: str) -> str:
    # more words than are shown, even of a very long text
    flat = " ".join(text.split(None, _LONGEST)[:_LONGEST])
    return repr(flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}...")


Says = Mapping[str, Any]
"""The fields of a record, such as the text of a query."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fields that are protected for the reason `why`.

    `of` returns the key to check, None if the rule does not apply; `which` selects the protected
    keys from a JSON list.
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
_BY_PEOPLE = "operation NOT IN ('import', 'generate')"
# an item that a person retired in a report is not overwritten: its newest edit is theirs
_OWNED_ITEMS = (
    f"SELECT item FROM (SELECT item FROM item_edit WHERE item {_WANTED} AND {_BY_PEOPLE} "
    f"UNION SELECT item FROM sealed WHERE item {_WANTED}) "
    "WHERE item NOT IN (SELECT item FROM (SELECT item, operation, max(edit) FROM item_edit "
    f"WHERE item {_WANTED} GROUP BY item) WHERE {_BY_PEOPLE})"
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
    differences: Iterable[tuple[Any, Says | None, list[Difference]]],
) -> list[Protected]:
    """Return the protected differences; each entry has a key, the content before, and the changes.

    Filling in an empty text or reply is not protected.
    """
    things = [(key, content, some) for key, content, some in differences if content is not None]
    result: dict[Any, Protected] = {}
    for rule in (rule for rule in _RULES if rule.thing == thing):
        touched = [
            (key, rule.of(key, content), one)
            for key, content, some in things
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


@dataclass(frozen=True, slots=True)
class _Thing:
    """A kind of record: its name, plural, and SQL for key, label and content.

    In SQL, `{row}` is the row: `label` is its name for people, `says` a JSON object of its visible
    content, NULL if it does not exist. `joined` joins a row `r` to its note `t`; `shown` is the
    field that represents it, `is_there` decides whether it counts.
    """

    name: str
    names: str
    table: str
    label: str
    says: str = "'{{}}'"
    key: str = "{row}.{table}"
    joined: str = "JOIN {table} r ON r.{table} = t.key"
    counted_if: str = "true"
    shown: str = "text"
    is_there: Callable[[Says], bool] = lambda _: True

    def sql(self, piece: str, row: str = "r") -> str:
        """Return a piece of SQL about a row."""
        return piece.format(row=row, table=self.table)


_QUERY_ID = "(SELECT query_id FROM query WHERE query = {row}.query)"
_PASSAGE_ID = "(SELECT passage_id FROM passage WHERE passage = {row}.passage)"
_CELL = (
    "(SELECT i.item_id FROM item_version v JOIN item i USING (item) "
    "WHERE v.version = {row}.item_version) || ' ' || (SELECT p.passage_id FROM passage_version v "
    "JOIN passage p USING (passage) WHERE v.version = {row}.passage_version)"
)
_ITEM = (
    "json_object('version', {row}.version, 'text', "
    "(SELECT text FROM item_version WHERE version = {row}.version), "
    "'kind', {row}.kind, 'subtopic', "
    "(SELECT subtopic_id FROM subtopic WHERE subtopic = {row}.subtopic), 'weight', {row}.weight, "
    "'key', {row}.answers, 'active', {row}.active, 'other fields', {row}.extra)"
)
_QUERY = (
    "json_object('text', {row}.text, 'answerable', "
    "CASE {row}.answerable WHEN 0 THEN 'no' WHEN 1 THEN 'yes' END)"
)
_RANKED = (
    "(SELECT json_object('passages', group_concat(passage_id, ' '), 'ranks and scores', "
    "group_concat(rank || ' ' || score, ', '), 'other fields', group_concat(extra)) FROM "
    "(SELECT p.passage_id, n.rank, n.score, n.extra FROM ranking n JOIN passage p USING (passage) "
    "WHERE n.query = json_extract({key}, '$[0]') AND n.system = json_extract({key}, '$[1]') "
    "ORDER BY n.subtopic, n.rank, n.score DESC, 1))"
)
THINGS = (
    _Thing("query", "queries", "query", "{row}.query_id", _QUERY),
    _Thing(
        "subtopic",
        "subtopics",
        "subtopic",
        f"{_QUERY_ID} || '/' || {{row}}.subtopic_id",
        "json_object('query', {row}.query, 'text', {row}.text)",
    ),
    _Thing(
        "passage",
        "passages",
        "passage",
        "{row}.passage_id",
        "(SELECT json_object('version', version, 'text', text, 'title', title, 'other fields', "
        "{row}.extra) FROM passage_version WHERE version = {row}.version)",
    ),
    _Thing("system", "systems", "system", "{row}.name"),
    _Thing(
        "ranking",
        "rankings",
        "ranking",
        "(SELECT name FROM system WHERE system = json_extract(t.key, '$[1]')) || ' ' || "
        "(SELECT query_id FROM query WHERE query = json_extract(t.key, '$[0]'))",
        _RANKED.replace("{key}", "t.key"),
        joined="",
        shown="passages",
    ),
    _Thing(
        "judgment",
        "judgments",
        "judgment",
        f"{_QUERY_ID} || ' ' || {_PASSAGE_ID}",
        "json_object('relevance', {row}.relevance, 'other fields', {row}.extra)",
        shown="relevance",
    ),
    _Thing(
        "item",
        "items",
        "item",
        "{row}.item_id",
        _ITEM,
        counted_if="{row}.kind <> 'query'",
        is_there=lambda says: bool(says["active"]),
    ),
    _Thing(
        "grade",
        "grades",
        "grade",
        f"(SELECT model FROM grader WHERE grader = {{row}}.grader) || ' ' || {_CELL}",
        "json_object('rating', {row}.rating, 'state', {row}.state, 'reply', {row}.reply, "
        "'reading', {row}.rule, 'other fields', json_array({row}.confidence, {row}.detail))",
        key="json_array({row}.grader, {row}.item_version, {row}.passage_version, {row}.answer_key)",
        joined="JOIN grade r ON r.grader = json_extract(t.key, '$[0]') "
        "AND r.item_version = json_extract(t.key, '$[1]') "
        "AND r.passage_version = json_extract(t.key, '$[2]') "
        "AND r.answer_key = json_extract(t.key, '$[3]')",
        shown="rating",
        is_there=lambda says: says["state"] == State.GRADED,
    ),
    _Thing(
        "decision",
        "decisions",
        "decision",
        f"{{row}}.author || ' ' || {_CELL}",
        "json_object('rating', {row}.rating)",
        shown="rating",
    ),
)


class ImportDiff(NamedTuple):
    """Changes of an import, the protected ones, and other changed rows.

    The other rows are the temporary notes.
    """

    differences: tuple[Differences, ...]
    protected: tuple[Protected, ...]
    scratch: int


class ImportLog:
    """Record all changes from now until `read`, in the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.before = _counts(connection)
        connection.execute("CREATE TEMP TABLE noted (thing, key, before, PRIMARY KEY (thing, key))")
        for thing in THINGS:
            # rankings are replaced as a whole; see `note_rankings`
            if thing.name != "ranking":
                self._watch(thing)

    def _watch(self, thing: _Thing) -> None:
        old = thing.sql(thing.key, "OLD")
        known = "true" if thing.name == "grade" else f"{old} <= {self._newest(thing)}"
        self._trigger(
            f"noted_{thing.name}",
            f"UPDATE ON {thing.table}",
            f"{known} AND {thing.sql(thing.counted_if, 'OLD')} AND NOT EXISTS "
            f"(SELECT 1 FROM noted WHERE thing = '{thing.name}' AND key = {old})",
            f"noted VALUES ('{thing.name}', {old}, {thing.sql(thing.says, 'OLD')})",
        )
        if thing.name == "item":
            # an item known only from grades gets its text
            self._trigger(
                "noted_text",
                "UPDATE ON item_version",
                "true",
                f"noted SELECT 'item', r.item, {thing.sql(thing.says)} FROM item r "
                f"WHERE r.version = OLD.version AND r.item <= {self._newest(thing)} "
                "AND NOT EXISTS (SELECT 1 FROM noted WHERE thing = 'item' AND key = r.item)",
                "BEFORE",
            )

    def _newest(self, thing: _Thing) -> int:
        return select_integer(self.connection, f"SELECT max({thing.table}) FROM {thing.table}")

    def _trigger(self, name: str, event: str, when: str, into: str, time: str = "AFTER") -> None:
        self.connection.execute(
            f"CREATE TEMP TRIGGER {name} {time} {event} WHEN {when} BEGIN INSERT INTO {into}; END"
        )

    def note_rankings(self) -> None:
        """Record which rankings differ from the staged ones."""
        if has_scratch(self.connection, "incoming"):
            self.connection.execute(_DIFFERING)

    def read(self) -> ImportDiff:
        """Return the changes and drop the notes."""
        after = _counts(self.connection)
        differences, guarded = [], []
        for thing in THINGS:
            changes = [
                (key, before, differing(thing, name, before, now))
                for key, name, before, now in self._rows(thing)
            ]
            differences.append(
                self._differences(thing, [some for *_, some in changes], after[thing.names])
            )
            guarded += protected(self.connection, thing.name, changes)
        return ImportDiff(tuple(differences), tuple(guarded), self._end())

    def _differences(
        self, thing: _Thing, per_thing: list[list[Difference]], now: int
    ) -> Differences:
        leading = [some[0] for some in per_thing if some]
        number = Counter(one.what for one in leading)
        before = self.before[thing.names]
        number["added"] = now - before + number["removed"]
        examples = {one.what: one for one in reversed(leading)}
        return Differences(
            thing.name,
            thing.names,
            number["added"],
            number["changed"],
            number["removed"],
            max(0, before - number["changed"] - number["removed"]),
            tuple(examples[what] for what in _WHAT if what in examples),
        )

    def _rows(self, thing: _Thing) -> Iterator[tuple[Any, str, Says | None, Says | None]]:
        """Yield (key, label, content before, content after) of recorded rows."""
        rows = self.connection.execute(
            f"SELECT t.key, {thing.sql(thing.label)}, t.before, {thing.sql(thing.says)} "
            f"FROM noted t {thing.sql(thing.joined)} WHERE t.thing = ? ORDER BY t.rowid",
            (thing.name,),
        )
        for key, name, before, content in rows:
            yield key, name, before and from_json(before), content and from_json(content)

    def _end(self) -> int:
        scratch = select_integer(self.connection, "SELECT count(*) FROM noted")
        triggers = (
            "SELECT name FROM temp.sqlite_master WHERE type = 'trigger' "
            "AND name NOT LIKE 'checksum%'"
        )
        for (name,) in self.connection.execute(triggers).fetchall():
            self.connection.execute(f"DROP TRIGGER temp.{name}")
        self.connection.execute("DROP TABLE temp.noted")
        return scratch


_WHAT = ("added", "changed", "removed")
_DIFFERING = f"""
WITH known AS MATERIALIZED (
    SELECT DISTINCT query, system FROM ranking
    WHERE (query, system) IN (SELECT query, system FROM incoming)
), differing AS (
    SELECT query, system FROM incoming i WHERE (query, system) IN known AND NOT EXISTS (
        SELECT 1 FROM ranking r WHERE r.query = i.query AND r.subtopic = i.subtopic
        AND r.system = i.system AND r.passage = i.passage AND r.rank = i.rank
        AND r.score = i.score AND r.extra IS i.extra
    ) UNION
    SELECT query, system FROM ranking r WHERE (query, system) IN known AND NOT EXISTS (
        SELECT 1 FROM incoming i WHERE r.query = i.query AND r.subtopic = i.subtopic
        AND r.system = i.system AND r.passage = i.passage
    )
)
INSERT INTO noted SELECT 'ranking', t.key, {_RANKED.replace("{key}", "t.key")}
FROM (SELECT json_array(query, system) AS key FROM differing) t
"""


def _counts(connection: sqlite3.Connection) -> Mapping[str, int]:
    decisions = select_integer(connection, "SELECT count(*) FROM decision")
    return {**counts(connection), "decisions": decisions}


def differing(
    thing: _Thing, name: str, before: Says | None, after: Says | None
) -> list[Difference]:
    """Return the differences of a record: added, removed, or by field."""
    was, now = (content is not None and thing.is_there(content) for content in (before, after))
    values = [_written(content.get(thing.shown)) if content else "" for content in (before, after)]
    differences = []
    if was != now:
        what, texts = ("added", ("", values[1])) if now else ("removed", (values[0], ""))
        differences.append(Difference(what, thing.name, name, "active", *texts))
    if before and after:
        differences += [
            Difference("changed", thing.name, name, field, _written(value), _written(after[field]))
            for field, value in before.items()
            if value != after[field] and field not in ("version", "active")
        ]
    return differences


def _written(value: object) -> str:
    return "" if value is None else str(value)
