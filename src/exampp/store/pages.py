"""Pages: compact arrays of the rows for evaluation, by query and grader.

Pages are copies of rows. A `query_page` has the passages, rankings and judgments of a query, a
`grade_page` its grades by one grader, of all texts and answer keys. Triggers of the schema delete a
page in the transaction that changes one of its rows, so a stored page always equals its rows.
`write_pages` stores missing pages; until then readers build them.

A page depends only on these rows. Edits of items, answer keys and decisions do not change it; they
are applied on reading.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from exampp.records.gradebook import MISSING
from exampp.records.graders import State
from exampp.records.readings import WITHOUT_EXAMPLE, PromptDeviations, RuleCount
from exampp.store.connection import file_of
from exampp.store.grades import IN_FORCE, WITHOUT_KEY
from exampp.store.sql import Damaged, exists

Ints = NDArray[np.int64]
_LEVEL = 1
"""The fastest compression level."""


@dataclass(frozen=True, slots=True)
class QueryPage:
    """The passages of a query, its rankings and its judgments.

    `passage_ids` has passages with a text, sorted by id, then all others. `versions` and `hashes`
    are the keys and hashes of the texts, `pooled` is 1 for those listed in a file. Rankings are
    sorted by system, subtopic and position. Systems and subtopics are keys; passages are indices
    of `passage_ids`.
    """

    passage_ids: tuple[str, ...]
    versions: Ints
    hashes: NDArray[np.uint8]
    pooled: Ints
    system: Ints
    subtopic: Ints
    passage: Ints
    rank: Ints
    score: NDArray[np.float64]
    judged_subtopic: Ints
    judged: Ints
    relevance: Ints

    def members(self, depth: int, *, ranked: bool, judged: bool) -> Ints:
        """Return the texts of a pool: of files and the first of each ranking, or judged ones."""
        chosen = np.zeros(len(self.passage_ids), np.bool_)
        if ranked:
            chosen[: len(self.pooled)] = self.pooled > 0
            first = np.diff(self.system, prepend=-1) | np.diff(self.subtopic, prepend=-1)
            starts = np.flatnonzero(first)
            sizes = np.diff(starts, append=len(self.system))
            position = np.arange(len(self.system)) - np.repeat(starts, sizes)
            chosen[self.passage[position < depth]] = True
        if judged:
            chosen[self.judged] = True
        return self.versions[chosen[: len(self.versions)]]


@dataclass(frozen=True, slots=True)
class GradePage:
    """The grades of a query by one grader, sorted by item, passage and answer key.

    `items` and `passages` are keys of texts. All other arrays have an entry per grade: `item`,
    `passage`, `rule` and `deviation` are indices of the field of that name, `rating` is MISSING if
    there is none. A deviation is "", or 1 if the passage was truncated, else 0, followed by the
    JSON of the parameters missing from the request.
    """

    items: Ints
    passages: Ints
    rules: tuple[str, ...]
    deviations: tuple[str, ...]
    item: Ints
    passage: Ints
    answer_key: Ints
    state: Ints
    rating: Ints
    rule: Ints
    deviation: Ints

    def columns(self, items: Sequence[int], answer_keys: Sequence[int]) -> NDArray[np.intp]:
        """Return the index of each grade's text in `items`; -1 if it is not in force.

        A grade is in force if it depends on no answer key, or on that of its item.
        """
        column = Places(np.array(items, np.int64))[self.items][self.item]
        # the last is that of unknown items
        keys = np.array([*answer_keys, 0], np.int64)
        return np.where((self.answer_key == 0) | (self.answer_key == keys[column]), column, -1)


_NONE = np.zeros(0, np.int64)
EMPTY_QUERY = QueryPage(
    (), _NONE, _NONE.astype(np.uint8), *(_NONE,) * 5, _NONE.astype(float), *(_NONE,) * 3
)
"""A query without passages."""
EMPTY_GRADES = GradePage(_NONE, _NONE, (), (), *(_NONE,) * 7)
"""A query without grades."""
Page = TypeVar("Page", QueryPage, GradePage)


class Places:
    """Find positions of many keys in an array; -1 for unknown keys."""

    def __init__(self, keys: Ints) -> None:
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def __getitem__(self, keys: Ints) -> NDArray[np.intp]:
        if not len(self._sorted):
            return np.full(len(keys), -1, np.intp)
        near = np.searchsorted(self._sorted, keys).clip(max=len(self._sorted) - 1)
        positions: NDArray[np.intp] = np.where(self._sorted[near] == keys, self._order[near], -1)
        return positions


# ---- stored pages --------------------------------------------------------------------------------


def query_page(
    connection: sqlite3.Connection, query: int, verify: Callable[[], None] = lambda: None
) -> QueryPage:
    """Return the page of a query; call `verify` and build it if it is missing or damaged."""
    return _page(QueryPage, connection, [query], verify)


def grade_page(
    connection: sqlite3.Connection,
    grader: int,
    query: int,
    verify: Callable[[], None] = lambda: None,
) -> GradePage:
    """Return the page of a grader and a query; see `query_page`."""
    return _page(GradePage, connection, [grader, query], verify)


def write_pages(connection: sqlite3.Connection) -> None:
    """Store all missing pages, in the caller's transaction."""
    for kind, source in _SOURCES.items():
        names = ", ".join(source.key)
        missing = f"SELECT {names} FROM {names} EXCEPT SELECT {names} FROM {source.table}"
        places = ", ".join("?" * (len(source.key) + 1))
        for key in connection.execute(missing).fetchall():
            content = zlib.compress(_content(key, _built(kind, connection, key)), _LEVEL)
            connection.execute(f"INSERT INTO {source.table} VALUES ({places})", (*key, content))


def count_pages(connection: sqlite3.Connection) -> int:
    """Return the number of stored pages."""
    counts = "SELECT (SELECT count(*) FROM query_page) + (SELECT count(*) FROM grade_page)"
    return int(connection.execute(counts).fetchone()[0])


def has_all_pages(connection: sqlite3.Connection, grader: int) -> bool:
    """Return whether all pages of queries and of a grader are stored."""
    missing = (
        "SELECT query FROM query WHERE query NOT IN (SELECT query FROM query_page) "
        "OR query NOT IN (SELECT query FROM grade_page WHERE grader = ?) LIMIT 1"
    )
    return not exists(connection, missing, (grader,))


def damaged_pages(connection: sqlite3.Connection) -> Iterator[tuple[str, list[int]]]:
    """Yield the table and the key of every stored page that differs from its rows."""
    for kind, (table, names, _) in _SOURCES.items():
        keys = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        for key in map(list, keys):
            if _stored(kind, connection, key) != _content(key, _built(kind, connection, key)):
                yield table, key


def _page(
    kind: type[Page], connection: sqlite3.Connection, key: Sequence[int], verify: Callable[[], None]
) -> Page:
    with suppress(ValueError, TypeError, KeyError, IndexError):
        if (raw := _stored(kind, connection, key)) is not None:
            return _decoded(kind, key, raw)
    verify()
    return _built(kind, connection, key)


def _content(key: Sequence[int], page: QueryPage | GradePage) -> bytes:
    """Serialize a page: a line of JSON with key, texts and types, then the arrays."""
    head: dict[str, Any] = {"key": key}
    arrays = []
    for name in (field.name for field in fields(page)):
        value = getattr(page, name)
        if isinstance(value, np.ndarray):
            small = value if value.dtype != np.int64 else value.astype(_narrowest(value))
            arrays.append(small)
            head[name] = small.dtype.str, len(small)
        else:
            head[name] = value
    line = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"\n".join([line, b"".join(array.tobytes() for array in arrays)])


def _narrowest(values: Ints) -> np.dtype[Any]:
    """Return the smallest type for all values."""
    ends = (values.min(initial=0), values.max(initial=0))
    return np.result_type(*(np.min_scalar_type(int(end)) for end in ends))


def _stored(kind: type[Page], connection: sqlite3.Connection, key: Sequence[int]) -> bytes | None:
    """Return the bytes of a stored page; None if it is missing or damaged."""
    table, names, _ = _SOURCES[kind]
    where = " AND ".join(f"{name} = ?" for name in names)
    row = connection.execute(f"SELECT content FROM {table} WHERE {where}", key).fetchone()
    try:
        return None if row is None else zlib.decompress(row[0])
    except zlib.error:
        return None


def _decoded(kind: type[Page], key: Sequence[int], raw: bytes) -> Page:
    """Return a stored page. Raises ValueError or the like for bytes of anything else."""
    start = raw.index(b"\n") + 1
    head = json.loads(raw[: start - 1])
    if head["key"] != key:
        raise ValueError("the page has another key")
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = head[field.name]
        if field.type == "tuple[str, ...]":
            values[field.name] = tuple(value)
            continue
        array = np.frombuffer(raw, value[0], value[1], start)
        start += array.nbytes
        values[field.name] = array.astype(np.int64 if field.type == "Ints" else array.dtype)
    return kind(**values)


# ---- pages from rows -----------------------------------------------------------------------------

_PASSAGES = """
SELECT p.passage, p.passage_id, coalesce(p.version, 0),
    (SELECT hash FROM passage_version v WHERE v.passage = p.passage AND v.version = p.version),
    EXISTS (SELECT 1 FROM pool o WHERE o.query = :query AND o.passage = p.passage)
FROM (SELECT passage FROM pool WHERE query = :query
    UNION SELECT passage FROM ranking WHERE query = :query
    UNION SELECT passage FROM judgment WHERE query = :query) JOIN passage p USING (passage)
"""
_DEVIATION = """
CASE WHEN instr(g.detail, '"cut":true') OR instr(g.detail, '"without":[') THEN
    (instr(g.detail, '"cut":true') > 0) ||
    iif(instr(g.detail, '"without":['), coalesce(json_extract(g.detail, '$.without'), ''), '')
ELSE '' END
"""
_GRADED_TEXTS = """
SELECT v.version FROM item i JOIN item_version v USING (item) WHERE i.query = ? ORDER BY v.version
"""
_GRADES = f"""
SELECT group_concat(passage_version), group_concat(answer_key), group_concat(state),
    group_concat(coalesce(rating, {MISSING})), json_group_array(CAST(rule AS TEXT)),
    json_group_array({_DEVIATION})
FROM (SELECT * FROM grade WHERE grader = ? AND item_version = ?
    ORDER BY passage_version, answer_key) g
"""


def _built(kind: type[Page], connection: sqlite3.Connection, key: Sequence[int]) -> Page:
    """Build a page from its rows; Damaged if they have impossible values."""
    try:
        page: Page = _SOURCES[kind].build(connection, *key)
        return page
    except (TypeError, ValueError, OverflowError) as error:
        raise Damaged(str(file_of(connection)), error) from None


def _build_query_page(connection: sqlite3.Connection, query: int) -> QueryPage:
    rows = connection.execute(_PASSAGES, {"query": query}).fetchall()
    rows.sort(key=lambda row: (row[2] == 0, row[1]))
    ids = _texts(row[1] for row in rows)
    place = Places(np.array([row[0] for row in rows], np.int64))
    system, subtopic, passage, rank, score = _numbers(
        connection, "SELECT system, subtopic, passage, rank, score FROM ranking", query
    )
    at = place[passage.astype(np.int64)]
    by_id = np.empty(len(ids), np.intp)
    by_id[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    order = np.lexsort((by_id[at], -score, rank, subtopic, system))
    judged_subtopic, judged, relevance = _numbers(
        connection, "SELECT subtopic, passage, relevance FROM judgment", query
    )
    return QueryPage(
        ids,
        np.array([row[2] for row in rows if row[2]], np.int64),
        np.frombuffer(b"".join(row[3] or b"" for row in rows if row[2]), np.uint8),
        np.array([row[4] for row in rows if row[2]], np.int64),
        system[order].astype(np.int64),
        subtopic[order].astype(np.int64),
        at[order].astype(np.int64),
        rank[order].astype(np.int64),
        score[order],
        judged_subtopic.astype(np.int64),
        place[judged.astype(np.int64)].astype(np.int64),
        relevance.astype(np.int64),
    )


def _numbers(connection: sqlite3.Connection, select: str, query: int) -> NDArray[np.float64]:
    """Return the columns of the rows of a query; integers fit a double."""
    cursor = connection.execute(f"{select} WHERE query = ?", (query,))
    width = len(cursor.description)
    return np.fromiter(chain.from_iterable(cursor.fetchall()), np.float64).reshape(-1, width).T


def _build_grade_page(connection: sqlite3.Connection, grader: int, query: int) -> GradePage:
    numbers = [np.empty((5, 0), np.int64)]
    of_rules: list[str] = []
    of_deviations: list[str] = []
    for (version,) in connection.execute(_GRADED_TEXTS, (query,)).fetchall():
        *texts, some_rules, some = connection.execute(_GRADES, (grader, version)).fetchone()
        columns = [np.fromstring(text or "", np.int64, sep=",") for text in texts]
        numbers.append(np.stack([np.full_like(columns[0], version), *columns]))
        of_rules += json.loads(some_rules)
        of_deviations += json.loads(some)
    item, passage, answer_key, state, rating = np.hstack(numbers)
    if len(of_rules) != len(item):
        raise ValueError("a grade has an impossible number")
    if not (np.isin(state, list(State)).all() and (rating == rating.astype(np.int16)).all()):
        raise ValueError("a grade has an impossible state or rating")
    items, item = np.unique(item, return_inverse=True)
    passages, passage = np.unique(passage, return_inverse=True)
    rules, rule = _codes(of_rules)
    deviations, deviation = _codes(of_deviations)
    return GradePage(
        items,
        passages,
        rules,
        deviations,
        item,
        passage,
        answer_key,
        state,
        rating,
        rule,
        deviation,
    )


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values as a tuple. Raises TypeError if one is not a text."""
    texts = tuple(values)
    "".join(texts)
    return texts


def _codes(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts, and the index of each text."""
    known = _texts(dict.fromkeys(texts))
    code = {text: number for number, text in enumerate(known)}
    return known, np.array([code[text] for text in texts], np.int64)


class _Source(NamedTuple):
    """The table and the key of a kind of page, and the function that builds one from its rows."""

    table: str
    key: tuple[str, ...]
    build: Callable[..., Any]


_SOURCES: Mapping[type, _Source] = {
    QueryPage: _Source("query_page", ("query",), _build_query_page),
    GradePage: _Source("grade_page", ("grader", "query"), _build_grade_page),
}


# ---- counts of grades ----------------------------------------------------------------------------


class ReadingCounts(NamedTuple):
    """Cells of a bank by reading rule, and deviations of requests from the prompt."""

    rules: tuple[RuleCount, ...]
    deviations: PromptDeviations


_BANK = f"""
SELECT q.query, q.query_id, i.item_id, i.version, iif({WITHOUT_KEY}, 0, i.answer_key)
FROM item i JOIN bank b USING (bank) JOIN query q USING (query)
WHERE i.active AND b.name = ? AND i.version IS NOT NULL ORDER BY q.query, i.item_id, i.version
"""
_SUPERSEDED = """
SELECT w.version FROM passage_version w JOIN passage p USING (passage) WHERE w.version <> p.version
AND (SELECT count(*) FROM passage_version) > (SELECT count(version) FROM passage)
"""
"""SQL: earlier texts of passages (few or none)."""

_Reading = tuple[int, str, int | None]
"""State, rule and rating."""


def count_readings(connection: sqlite3.Connection, grader: int, bank: str) -> ReadingCounts:
    """Count the cells of a bank by state, reading rule and rating, with examples.

    Only cells of current texts count. Only the example replies are read. Also counts cells and
    passages with requests that deviated from the prompt.
    """
    cells: Counter[_Reading] = Counter()
    first: dict[_Reading, tuple[str, str, int]] = {}
    cut: set[int] = set()
    without: Counter[str] = Counter()
    superseded = np.array(connection.execute(_SUPERSEDED).fetchall(), np.int64).ravel()
    rows = connection.execute(_BANK, (bank,)).fetchall()
    for (query, query_id), some in groupby(rows, key=itemgetter(0, 1)):
        _, _, item_ids, versions, keys = zip(*some, strict=True)
        page = grade_page(connection, grader, query)
        column = page.columns(versions, keys)
        for code, text in enumerate(page.deviations):
            here = (column >= 0) & (page.deviation == code)
            if text.startswith("1"):
                cut.update(page.passages[page.passage[here]].tolist())
            without[text[1:]] += int(here.sum())
        today = (column >= 0) & ~np.isin(page.passages, superseded)[page.passage]
        sizes = (len(State), max(1, len(page.rules)), 1 << 16, len(versions))
        parts = (page.state, page.rule, page.rating - MISSING, column)
        codes, counts = np.unique(
            np.ravel_multi_index(tuple(part[today] for part in parts), sizes), return_counts=True
        )
        groups = np.stack([*np.unravel_index(codes, sizes), counts], axis=1).tolist()
        for state, rule, above, at, count in groups:
            same = (state, page.rules[rule], above + MISSING if above else None)
            cells[same] += count
            place = (query_id, item_ids[at], versions[at])
            first[same] = min(place, first.get(same, place))
    without.pop("", None)
    return ReadingCounts(
        tuple(
            RuleCount(
                State(same[0]),
                *same[1:],
                cells[same],
                None
                if same[1] in WITHOUT_EXAMPLE
                else _reply(connection, grader, first[same][2], same),
            )
            for same in sorted(cells, key=lambda key: (*key[:2], key[2] or 0))
        ),
        PromptDeviations(
            len(cut),
            tuple((tuple(json.loads(names)), n) for names, n in sorted((+without).items())),
        ),
    )


def count_graded(
    connection: sqlite3.Connection,
    grader: int,
    query: int,
    items: Sequence[tuple[int, int]],
    passages: Ints,
) -> int:
    """Count the ratings of the passages of a query for items, as (text key, answer key)."""
    page = grade_page(connection, grader, query)
    column = page.columns(*zip(*items, strict=True))
    inside = np.isin(page.passages, passages)[page.passage]
    return int(((column >= 0) & inside & (page.state == State.GRADED)).sum())


def _reply(connection: sqlite3.Connection, grader: int, item: int, reading: _Reading) -> str | None:
    row = connection.execute(
        "SELECT g.reply FROM grade g JOIN item_version v ON v.version = g.item_version "
        "JOIN item i USING (item) JOIN passage p ON p.version = g.passage_version "
        "WHERE g.grader = ? AND g.item_version = ? AND g.state = ? AND g.rule = ? "
        f"AND (g.state <> 0 OR g.rating IS ?) AND {IN_FORCE} ORDER BY p.passage_id LIMIT 1",
        (grader, item, *reading),
    ).fetchone()
    return None if row is None or row[0] is None else str(row[0])
