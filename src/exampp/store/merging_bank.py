"""Banks of another collection taken into this one: items, texts, the log of edits, splits.

The logs are put together. Of an item that was edited on one side alone, that side stands; of one
that was edited on both, a person's edit before an import's, and then the newer one. What an import
says that the other side was told by an import too, is no edit of its own.
"""

from __future__ import annotations

from exampp.store.merging import NULL, MergeStep, differ, fill

_STATE = ("version", "weight", "answers", "active")
_FIELDS = {
    "text": "(SELECT text FROM main.item_version WHERE version = {row}.version)",
    "weight": "{row}.weight",
    "key": "{row}.answers",
    "active": "CASE {row}.active WHEN 1 THEN 'yes' ELSE 'no' END",
}
ITEM = (
    "(SELECT q.query_id || ' ' || i.item_id FROM main.item i JOIN main.query q USING (query) "
    "WHERE i.item = {row}.item)"
)
"""SQL: the name of a row that is about an item of ours."""
_COUNTS = "(SELECT 1 FROM main.item i WHERE i.item = {row}.item AND i.kind <> 'query')"
"""SQL: an item that people know; those of direct relevance prompts are the queries themselves."""


def merge_banks(step: MergeStep) -> None:
    """Take banks with their items, texts, edits, splits, and what was replied to make items."""
    step.put(
        "banks",
        "bank",
        "INSERT INTO main.bank (name) SELECT name FROM {o}.bank WHERE true ORDER BY bank "
        "ON CONFLICT DO NOTHING",
    )
    step.map("bank", "SELECT t.bank, b.bank FROM {o}.bank t JOIN main.bank b USING (name)")
    step.run(
        "INSERT INTO main.answer_key (answers) SELECT answers FROM {o}.answer_key WHERE true "
        "ORDER BY answer_key ON CONFLICT DO NOTHING"
    )
    step.map(
        "answer_key",
        "SELECT t.answer_key, k.answer_key FROM {o}.answer_key t "
        "JOIN main.answer_key k USING (answers) UNION ALL SELECT 0, 0",
    )
    _lines(step)
    _items(step)
    _texts(step)
    _edits(step)
    _splits(step)
    _generations(step)


def _lines(step: MergeStep) -> None:
    theirs = (
        "{o}.bank_line t JOIN to_bank b ON b.theirs = t.bank "
        "JOIN to_query q ON q.theirs = t.query JOIN to_subtopic f ON f.theirs = t.subtopic"
    )
    step.conflict(
        "line of a bank",
        "SELECT (SELECT name FROM main.bank WHERE bank = m.bank) || ' ' || "
        "(SELECT query_id FROM main.query WHERE query = m.query) AS id, 'other fields' AS field, "
        f"m.extra AS here, t.extra AS there FROM {theirs} JOIN main.bank_line m "
        "ON m.bank = b.mine AND m.query = q.mine AND m.subtopic = f.mine "
        f"WHERE {differ('extra', NULL, 'm')}",
    )
    step.put(
        "lines of banks",
        "bank_line",
        "INSERT INTO main.bank_line (bank, query, subtopic, extra) SELECT b.mine, q.mine, f.mine, "
        f"t.extra FROM {theirs} WHERE true {fill('extra', NULL)}",
    )


_SAME_ITEM = "m.query = t.query AND m.kind = t.kind AND m.item_id = t.item_id"
_NOT_IN_BANK = f"NOT EXISTS (SELECT 1 FROM {{table}} WHERE {_SAME_ITEM} AND m.bank = t.bank)"
_UNTOLD = "EXISTS (SELECT 1 FROM {schema}.item_version v WHERE v.item = {item} AND v.text IS NULL)"
"""SQL: an item that grades brought along, whose text no bank has told."""


def _items(step: MergeStep) -> None:
    """Items, and which of ours each is: of the same query, bank, kind and id.

    One without a text is the item of this id that has one, whatever its bank.
    """
    step.scratch(
        "their_item",
        "item INTEGER PRIMARY KEY, query, bank, subtopic, item_id, kind, extra, untold",
        "SELECT t.item, q.mine, b.mine, f.mine, t.item_id, t.kind, t.extra, "
        f"{_UNTOLD.format(schema='{o}', item='t.item')} FROM {{o}}.item t "
        "JOIN to_query q ON q.theirs = t.query JOIN to_bank b ON b.theirs = t.bank "
        "JOIN to_subtopic f ON f.theirs = t.subtopic",
    )
    step.run("CREATE INDEX temp.their_item_id ON their_item (query, kind, item_id)")
    step.run(
        f"UPDATE their_item AS t SET bank = (SELECT min(m.bank) FROM main.item m "
        f"WHERE {_SAME_ITEM}) WHERE untold AND EXISTS (SELECT 1 FROM main.item m "
        f"WHERE {_SAME_ITEM}) AND {_NOT_IN_BANK.format(table='main.item m')}"
    )
    step.run(
        "UPDATE main.item AS m SET bank = (SELECT min(t.bank) FROM their_item t "
        f"WHERE {_SAME_ITEM}) WHERE {_UNTOLD.format(schema='main', item='m.item')} "
        f"AND EXISTS (SELECT 1 FROM their_item t WHERE {_SAME_ITEM}) "
        f"AND {_NOT_IN_BANK.format(table='their_item t')} AND NOT EXISTS (SELECT 1 "
        "FROM main.item o WHERE o.query = m.query AND o.kind = m.kind AND o.item_id = m.item_id "
        "AND o.item <> m.item)"
    )
    columns = "query, bank, subtopic, item_id, kind, extra"
    # SQLite 3.37 takes the default of a REAL column for the first of many rows alone
    step.put(
        "items",
        "item",
        f"INSERT INTO main.item ({columns}, weight) SELECT {columns}, 1.0 FROM their_item "
        "WHERE true ORDER BY item ON CONFLICT DO NOTHING",
    )
    step.map(
        "item",
        f"SELECT t.item, m.item FROM their_item t JOIN main.item m ON {_SAME_ITEM} "
        "AND m.bank = t.bank",
    )


_IMPORTED = (
    "coalesce((SELECT e.version FROM {schema}.item_edit e WHERE e.item = {item} "
    "AND e.operation = 'import' ORDER BY e.edit DESC LIMIT 1), "
    "(SELECT version FROM {schema}.item WHERE item = {item}))"
)
"""SQL: the version that grades of an item without a text belong to."""


def _texts(step: MergeStep) -> None:
    told = _IMPORTED.format(schema="{o}", item="t.theirs")
    step.run(
        "UPDATE main.item_version AS m SET text = (SELECT v.text FROM {o}.item_version v "
        f"WHERE v.version = {told}) FROM to_item t WHERE m.item = t.mine AND m.text IS NULL"
    )
    theirs = "{o}.item_version t JOIN to_item i ON i.theirs = t.item"
    step.put(
        "texts of items",
        "item_version",
        f"INSERT INTO main.item_version (item, text) SELECT i.mine, t.text FROM {theirs} "
        "WHERE t.text IS NOT NULL OR i.mine NOT IN (SELECT item FROM main.item_version) "
        "ORDER BY t.version ON CONFLICT DO NOTHING",
    )
    ours = _IMPORTED.format(schema="main", item="i.mine")
    step.map(
        "item_version",
        f"SELECT t.version, coalesce(v.version, {ours}) FROM {theirs} "
        "LEFT JOIN main.item_version v ON v.item = i.mine AND v.text IS t.text",
    )


_EDIT = "item, operation, version, weight, answers, active"
_EDITS = f"edit INTEGER PRIMARY KEY, {_EDIT}, author, reason, at, who, nth"
_NUMBERED = f"""
SELECT edit, {_EDIT}, author, reason, at, who,
    row_number() OVER (PARTITION BY {_EDIT}, who ORDER BY edit) FROM (
    SELECT e.edit, t.mine AS item, e.operation, {{version}} AS version, e.weight, e.answers,
        e.active, e.author, e.reason, e.at,
        CASE e.operation WHEN 'import' THEN '' ELSE json_array(e.author, e.reason, e.at) END AS who
    FROM {{log}})
"""
_OURS = _NUMBERED.format(
    version="e.version", log="main.item_edit e JOIN (SELECT DISTINCT mine FROM to_item) t "
    "ON t.mine = e.item"
)  # fmt: skip
_THEIRS = _NUMBERED.format(
    version="v.mine",
    log="{o}.item_edit e JOIN to_item t ON t.theirs = e.item "
    "JOIN to_item_version v ON v.theirs = e.version",
)
_SAME_EDIT = f"({_EDIT}, who, nth)"
_LATER = (
    "({row}.operation <> 'import', {row}.at, {row}.author, "
    "(SELECT text FROM main.item_version WHERE version = {row}.version), {row}.answers, "
    "{row}.weight, {row}.active)"
)
"""SQL: what is compared of two edits, to tell which of them stands."""
_LAST = "SELECT item, max(edit) AS edit FROM {log} GROUP BY item"


def _edits(step: MergeStep) -> None:
    for name, log in (("our_edit", _OURS), ("their_edit", _THEIRS)):
        step.scratch(name, _EDITS, log)
        step.run(f"CREATE INDEX temp.{name}_of_item ON {name} {_SAME_EDIT}")
    for name, log, other in (
        ("new_here", "our_edit", "their_edit"),
        ("new_there", "their_edit", "our_edit"),
    ):
        step.scratch(
            name,
            "edit INTEGER PRIMARY KEY, item",
            f"SELECT edit, item FROM {log} "
            f"WHERE {_SAME_EDIT} NOT IN (SELECT {_SAME_EDIT[1:-1]} FROM {other})",
        )
    ours, theirs = (
        f"(SELECT e.* FROM {log} e JOIN ({_LAST.format(log=log)}) USING (edit))"
        for log in ("our_edit", "their_edit")
    )
    # an item that was edited there, what it is like then, and whether it was edited here too
    step.scratch(
        "edited",
        "item INTEGER PRIMARY KEY, both, theirs, edit",
        "SELECT item, h.edit IS NOT NULL AND both, "
        f"NOT both OR h.edit IS NULL OR {_LATER.format(row='t')} > {_LATER.format(row='h')}, "
        f"t.edit FROM (SELECT DISTINCT item, item IN (SELECT item FROM new_here) AS both "
        f"FROM new_there) JOIN {theirs} t USING (item) LEFT JOIN {ours} h USING (item)",
    )
    pair = f"edited d JOIN {ours} h USING (item) JOIN {theirs} t USING (item)"
    for field, what in _FIELDS.items():
        here, there = what.format(row="h"), what.format(row="t")
        step.conflict(
            "item",
            f"SELECT {ITEM.format(row='d')} AS id, '{field}' AS field, {here} AS here, "
            f"{there} AS there, d.theirs AS won FROM {pair} WHERE d.both "
            f"AND {here} IS NOT {there} AND EXISTS {_COUNTS.format(row='d')}",
            "CASE won WHEN 1 THEN 'there' ELSE 'here' END",
        )
    columns = f"{_EDIT}, author, reason, at"
    step.scratch(
        "standing",
        "item INTEGER PRIMARY KEY, operation, version, weight, answers, active, author, reason, at",
        f"SELECT {columns} FROM (SELECT t.* FROM edited d JOIN {theirs} t USING (item) "
        f"WHERE d.theirs UNION ALL SELECT h.* FROM edited d JOIN {ours} h USING (item) "
        "WHERE NOT d.theirs)",
    )
    step.put(
        "edits of items",
        "item_edit",
        f"INSERT INTO main.item_edit ({columns}) SELECT {columns} FROM their_edit "
        "WHERE edit IN (SELECT edit FROM new_there) ORDER BY edit",
    )
    # the last edit of an item is what it is like: where that is not what stands, it is said again
    state = ", ".join(_STATE)
    step.put(
        "edits of items",
        "item_edit",
        f"INSERT INTO main.item_edit ({columns}) SELECT {columns} FROM standing s "
        f"WHERE ({state}) IS NOT (SELECT {state} FROM main.item_edit e WHERE e.item = s.item "
        "ORDER BY e.edit DESC LIMIT 1)",
    )
    before = step.one("SELECT count(*) FROM main.item WHERE version IS NOT NULL")
    written = step.run(
        f"UPDATE main.item AS i SET ({state}, answer_key) = (s.version, s.weight, s.answers, "
        "s.active, (SELECT answer_key FROM main.answer_key k WHERE k.answers = s.answers)) "
        "FROM temp.standing s WHERE s.item = i.item AND "
        "(s.version, s.weight, s.answers, s.active) "
        "IS NOT (i.version, i.weight, i.answers, i.active)"
    )
    made = step.one("SELECT count(*) FROM main.item WHERE version IS NOT NULL") - before
    step.count("items", 0, written - made)
    _other_fields(step)


def _other_fields(step: MergeStep) -> None:
    """The subtopic and the other fields of an item, which are no part of its log."""
    both = "to_item m JOIN their_item t ON t.item = m.theirs JOIN main.item i ON i.item = m.mine"
    taken = "i.item IN (SELECT item FROM edited WHERE theirs)"
    for column, empty, field in (("subtopic", "0", "subtopic"), ("extra", NULL, "other fields")):
        step.conflict(
            "item",
            f"SELECT {ITEM.format(row='i')} AS id, '{field}' AS field, i.{column} AS here, "
            f"t.{column} AS there FROM {both} WHERE {differ(column, empty, 'i')} AND NOT {taken}",
        )
        step.run(
            f"UPDATE main.item AS i SET {column} = t.{column} FROM temp.to_item m "
            "JOIN temp.their_item t ON t.item = m.theirs WHERE i.item = m.mine "
            f"AND t.{column} IS NOT {empty} AND i.{column} IS NOT t.{column} "
            f"AND (i.{column} IS {empty} OR {taken})"
        )


_SAME_SPLIT = "m.bank = b.mine AND m.salt = t.salt AND m.commitment = t.commitment AND m.at = t.at"


def _splits(step: MergeStep) -> None:
    """A bank that was split on one side alone is split; of two splits ours holds."""
    theirs = "{o}.split t JOIN to_bank b ON b.theirs = t.bank"
    unknown = f"NOT EXISTS (SELECT 1 FROM main.split m WHERE {_SAME_SPLIT})"
    own = (
        "EXISTS (SELECT 1 FROM main.split m WHERE m.bank = b.mine AND NOT EXISTS (SELECT 1 FROM "
        "{o}.split t WHERE t.bank = b.theirs AND m.salt = t.salt AND m.commitment = t.commitment "
        "AND m.at = t.at))"
    )
    step.conflict(
        "split",
        "SELECT (SELECT name FROM main.bank WHERE bank = b.mine) AS id, 'commitment' AS field, "
        "(SELECT m.commitment FROM main.split m WHERE m.bank = b.mine ORDER BY m.split DESC) "
        f"AS here, t.commitment AS there FROM {theirs} WHERE {unknown} AND {own}",
    )
    newest = step.one("SELECT max(split) FROM main.split")
    step.scratch(
        "to_split",
        "theirs INTEGER PRIMARY KEY, mine INTEGER NOT NULL",
        f"SELECT t.split, {newest} + row_number() OVER (ORDER BY t.split) FROM {theirs} "
        f"WHERE {unknown} AND NOT {own}",
    )
    if not step.one("SELECT count(*) FROM to_split"):
        return
    step.run("DROP TABLE our_edit")
    step.scratch("our_edit", _EDITS, _OURS)
    after = (
        "coalesce((SELECT max(h.edit) FROM their_edit e JOIN our_edit h ON "
        f"({', '.join(f'h.{name}' for name in _SAME_EDIT[1:-1].split(', '))}) = "
        f"({', '.join(f'e.{name}' for name in _SAME_EDIT[1:-1].split(', '))}) "
        "JOIN main.item i ON i.item = e.item WHERE e.edit <= t.edit AND i.bank = b.mine), 0)"
    )
    step.put(
        "splits",
        "split",
        "INSERT INTO main.split (split, bank, share, seed, salt, commitment, edit, author, reason, "
        f"at) SELECT s.mine, b.mine, t.share, t.seed, t.salt, t.commitment, {after}, t.author, "
        f"t.reason, t.at FROM {theirs} JOIN to_split s ON s.theirs = t.split ORDER BY t.split",
    )
    step.run(
        "INSERT OR IGNORE INTO main.sealed (split, item) SELECT s.mine, i.mine FROM {o}.sealed t "
        "JOIN to_split s ON s.theirs = t.split JOIN to_item i ON i.theirs = t.item"
    )


_ASKED = (
    "bank, query, subtopic, model, prompt, prompt_hash, settings, state, reason, reply, items, at"
)


def _generations(step: MergeStep) -> None:
    mapped = _ASKED.replace("bank, query, subtopic", "b.mine, q.mine, f.mine")
    newest = step.one("SELECT max(generation) FROM main.generation")
    same = " AND ".join(f"m.{name} IS t.{name}" for name in _ASKED.split(", "))
    step.scratch(
        "asked",
        f"generation INTEGER PRIMARY KEY, {_ASKED}",
        f"SELECT t.generation, {mapped} FROM {{o}}.generation t JOIN to_bank b "
        "ON b.theirs = t.bank JOIN to_query q ON q.theirs = t.query "
        "JOIN to_subtopic f ON f.theirs = t.subtopic",
    )
    step.scratch(
        "to_generation",
        "theirs INTEGER PRIMARY KEY, mine INTEGER NOT NULL",
        f"SELECT t.generation, {newest} + row_number() OVER (ORDER BY t.generation) FROM asked t "
        f"WHERE NOT EXISTS (SELECT 1 FROM main.generation m WHERE {same})",
    )
    step.put(
        "generated replies",
        "generation",
        f"INSERT INTO main.generation (generation, {_ASKED}) SELECT g.mine, "
        f"{', '.join(f't.{name}' for name in _ASKED.split(', '))} FROM asked t "
        "JOIN to_generation g ON g.theirs = t.generation ORDER BY g.mine",
    )
    columns = "text, dropped, differs, like_id, like_text"
    step.run(
        f"INSERT INTO main.likeness (generation, {columns}) SELECT g.mine, {columns} "
        "FROM {o}.likeness t JOIN to_generation g ON g.theirs = t.generation ORDER BY t.likeness"
    )
