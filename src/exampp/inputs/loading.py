"""Load records into the store, and match queries and subtopics by id or text.

In a file without query ids, the id is the MD5 of the question. Such a generated id refers to the
query with this text, regardless of the order of files.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from exampp.errors import InputError, Repeated
from exampp.formats.fields import brief, text_digest
from exampp.formats.format import DataSet, ReadOptions
from exampp.formats.json_values import place_below
from exampp.formats.lines import OnError, Skipped
from exampp.formats.nuggets import GRADER, Assigned, Judged
from exampp.formats.passages import PooledText, Retrieved
from exampp.formats.read_warnings import add_warning
from exampp.formats.responses import Response
from exampp.formats.workbench_graders import has_open_scale
from exampp.inputs.segment import Segment, segments
from exampp.records import (
    BankEntry,
    GraderIdentity,
    Item,
    Judgment,
    Passage,
    PassageGrades,
    PooledPassage,
    Query,
    QueryPool,
    RankedPassage,
    Residue,
    Subtopic,
)
from exampp.records.decisions import CellDecision, ReportDecision
from exampp.records.graders import RatingScale
from exampp.records.inputs import PASSAGE_TOKENS
from exampp.records.wording import counted, first_names
from exampp.results.result import Table
from exampp.results.view import Value
from exampp.store.bank import MAIN_BANK, BeforeCommit, Edit, do_nothing, known_queries, put_bank
from exampp.store.decisions import put_decisions
from exampp.store.grades import put_grader, set_scale
from exampp.store.inputs import (
    WHOLE_QUERY,
    add_query,
    add_to_pools,
    has_text,
    missing_rankings,
    passages_with_text,
    put_judgments,
    put_passages,
    put_queries,
    put_subtopics,
    put_systems,
    queries_with_text,
    query_keys,
    rename_query,
    stage_rankings,
    texts_of,
    texts_of_queries,
    unanswered_by_all,
)
from exampp.store.pools import put_pools
from exampp.store.report_decisions import put_report_decision
from exampp.store.sql import batches, intern

_MD5 = re.compile("[0-9a-f]{32}")


class QueryPlaces:
    """Matches queries and subtopics by the ids in files."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.queries = query_keys(connection)
        self.found: dict[str, tuple[int, int]] = {}

    @cached_property
    def _of_texts(self) -> Mapping[str, list[str]]:
        return queries_of_texts(self.connection)

    def find(self, written: str) -> tuple[int, int]:
        """Return (query key, subtopic key) of an id in a file; raise InputError if unknown."""
        place = self.found.get(written)
        if place is None:
            place = self.found[written] = self._resolve(written)
        return place

    def bring(self, written: str, text: str) -> None:
        """Add a query with its text, or a subtopic, unless it is known.

        A known text is not changed.
        """
        if not text.strip() or ("/" in written and written not in self.queries):
            return
        if written not in self.queries:
            if written == text_digest(text) and (same := self._with_text(written)):
                self.queries[written] = self.queries[same]
                return
            rename_generated(self.connection, None, [Query(written, text)])
        self.queries[written] = add_query(self.connection, written, text)

    def id_of_text(self, text: str) -> str:
        """Return the id of the only query with this text; raise InputError for several or none."""
        generated = text_digest(text)
        ids = self._of_texts.get(generated, [])
        if len(ids) == 1:
            return ids[0]
        if generated in ids:
            return generated
        raise InputError(
            f"{'several queries have' if ids else 'no query has'} the text {brief(text)}",
            field="query",
            hint="Import the queries first, or add a column query_id",
        )

    def _with_text(self, generated: str) -> str | None:
        """Return the only query whose text has this MD5; None for several or none."""
        ids = self._of_texts.get(generated, [])
        return ids[0] if len(ids) == 1 else None

    def _resolve(self, written: str) -> tuple[int, int]:
        if written in self.queries:
            return self.queries[written], WHOLE_QUERY
        if _MD5.fullmatch(written) and (same := self._with_text(written)):
            return self.queries[same], WHOLE_QUERY
        head = written
        while "/" in head:
            head = head.rpartition("/")[0]
            if head in self.queries:
                query, subtopic = self.queries[head], written[len(head) + 1 :]
                return query, put_subtopics(self.connection, query, [Subtopic(subtopic)])[subtopic]
        raise InputError(
            f"query {written!r} is not in the collection",
            field="query_id",
            hint="Import the queries or the bank first, or skip such lines with --on-error skip",
        )


def queries_of_texts(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the ids of the queries that have a text, by the MD5 of the text."""
    ids_by_digest: dict[str, list[str]] = {}
    for query_id, text in known_queries(connection).items():
        if text.strip():
            ids_by_digest.setdefault(text_digest(text), []).append(query_id)
    return ids_by_digest


def unmet(connection: sqlite3.Connection, path: Path, queries: Sequence[Query]) -> list[Query]:
    """Return the queries of a file, except generated ids whose text belongs to another query.

    A query with a generated id in the collection gets the id of the query with the same text here.
    If several queries have the text, none of them changes, and a warning is added.
    """
    of_texts = queries_of_texts(connection)
    new = []
    for query in queries:
        others = of_texts.get(text_digest(query.text), []) if query.text.strip() else []
        if query.query_id != text_digest(query.text) or not others or query.query_id in others:
            new.append(query)
        elif len(others) > 1:
            _note_several(path, query.text, others)
            new.append(query)
    rename_generated(connection, path, new)
    return new


def rename_generated(
    connection: sqlite3.Connection, path: Path | None, queries: Sequence[Query]
) -> None:
    """Give stored queries with generated ids the ids of queries with the same text in the file."""
    ids: dict[str, list[str]] = {}
    for query in queries:
        if query.text.strip() and query.query_id != (generated := text_digest(query.text)):
            ids.setdefault(generated, []).append(query.query_id)
    for generated, text in texts_of_queries(connection, ids).items():
        named = list(dict.fromkeys(ids[generated]))
        if text_digest(text) != generated:
            continue
        if len(named) > 1 or not rename_query(connection, generated, named[0]):
            _note_several(path, text, [generated, *named])


def _note_several(path: Path | None, text: str, ids: Sequence[str]) -> None:
    add_warning(
        path or "queries",
        None,
        f"queries {', '.join(ids)} have the same text and remain separate: {brief(text)}",
    )


def note_bare(path: Path, query_ids: Sequence[str]) -> None:
    """Warn of queries without text that have one question each, which may be their text."""
    add_warning(
        path,
        None,
        f"{counted(len(query_ids), 'query')} without text (for example {query_ids[0]!r}) and with "
        "one question each. If the questions are the texts of the queries, import the file "
        "with --queries",
    )


# ---- loading -------------------------------------------------------------------------------------


@dataclass(slots=True)
class RunLog:
    """Records each system's files and repeated lines in one import.

    With `collects`, it also records the ids of ranked passages, for a corpus.
    """

    collects: bool = False
    files: dict[str, dict[str, Path]] = field(default_factory=lambda: defaultdict(dict))
    repeated: Counter[Path] = field(default_factory=Counter)
    passages: set[str] = field(default_factory=set)

    def see(self, path: Path, query_id: str, system: str) -> None:
        """Record that a file ranks for a query; raise InputError if another file did, too."""
        earlier = self.files[system].setdefault(query_id, path)
        if earlier is not path:
            raise Repeated(
                f"system {system!r} already has results for query {query_id!r} in {earlier.name}",
                field="system",
                hint="Use different names for different runs",
            )

    def findings(self, connection: sqlite3.Connection, missing: list[str]) -> Table:
        """Return the problems of the systems of an import as a table."""
        rows: list[tuple[Value, ...]] = []
        for system, by_query in self.files.items():
            names = list(dict.fromkeys(path.name for path in by_query.values()))
            if len(names) > 1:
                rows.append((system, "several files", len(names), first_names(names)))
        for path, count in self.repeated.items():
            rows.append((path.name, "repeated lines skipped", count, ""))
        lacking = missing_rankings(connection, list(self.files))
        nobody = unanswered_by_all(connection) if lacking else []
        if nobody:
            rows.append(
                ("all systems", "queries without results", len(nobody), first_names(nobody))
            )
        for system, absent in lacking.items():
            alone = [query_id for query_id in absent if query_id not in set(nobody)]
            if alone:
                rows.append((system, "queries without results", len(alone), first_names(alone)))
        if missing:
            rows.append(("corpus", "passages without a text", len(missing), first_names(missing)))
        return Table.of(["system", "finding", "count", "which"], rows)


@dataclass(frozen=True, slots=True)
class Importer:
    """Options of an import.

    Attributes:
        bank: Name of the bank for bank files.
        update: Allow changes of graded content and of manually edited items.
        dry_run: Change nothing.
        before_commit: Called last, before the commit.
        depth: Import only the first passages of every ranking.
        system: System of responses that name none.
        passage_tokens: Maximum tokens of passages into which responses are split.
        scale: Scale of graders with an unknown prompt.
        cited: Import the citations of responses, too.
        bad_cells: Number of unreadable ratings.
        by_run: The runs of banks name them.
    """

    connection: sqlite3.Connection
    edit: Edit
    bank: str
    on_error: OnError
    unknown_passages: str = "error"
    depth: int | None = None
    system: str | None = None
    passage_tokens: int = PASSAGE_TOKENS
    update: bool = False
    dry_run: bool = False
    scale: RatingScale | None = None
    log: RunLog = field(default_factory=RunLog)
    bad_cells: Skipped = field(default_factory=Skipped)
    settle: BeforeCommit = do_nothing
    is_named: bool = False
    cited: bool = False
    by_run: bool = False
    columns: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


class Loader:
    """Load the records of one file into the collection."""

    def __init__(self, importer: Importer, path: Path, record: type | None) -> None:
        self.by = importer
        self.connection = importer.connection
        self.path = path
        self.record = record

    @cached_property
    def places(self) -> QueryPlaces:
        """The queries of the collection, read on first use."""
        return QueryPlaces(self.connection)

    def how(self) -> ReadOptions:
        """Return the options for reading the file."""
        return ReadOptions(
            self.on_error,
            self.check,
            self.by.system,
            self.by.is_named,
            lambda text: self.places.id_of_text(text),
            self.by.scale,
            self.by.bad_cells,
            self.by.by_run,
        )

    def load(self, records: Iterable[Any]) -> int:
        """Load the records; return the number of records for the report."""
        return LOADERS[self.record](self, records)

    def on_error(self, error: InputError) -> None:
        """Count a line that repeats another, and pass the error on unless they are equal."""
        equal = isinstance(error, Repeated) and error.equal
        if equal or (isinstance(error, Repeated) and self.record in _OF_SYSTEMS):
            self.by.log.repeated[self.path] += 1
        if not equal:
            self.by.on_error(error)

    def check(self, record: Any) -> None:
        """Reject a judgment or ranking of an unknown query or of a passage without text."""
        if isinstance(record, Judgment | RankedPassage):
            self.places.find(record.query_id)
        if isinstance(record, RankedPassage):
            self._check_text(record.passage_id)
            self.by.log.see(self.path, record.query_id, record.system)

    def _check_text(self, passage_id: str) -> None:
        if self.by.unknown_passages == "error" and not has_text(self.connection, passage_id):
            raise InputError(
                f"passage {passage_id!r} is not in the collection",
                field="docid",
                hint="Import the passages first, add their corpus with --corpus, or import them "
                "without text with --unknown-passages keep",
            )

    def queries(self, records: Iterable[Query]) -> int:
        """Load queries and their subtopics."""
        queries = list(records)
        put_queries(self.connection, unmet(self.connection, self.path, queries))
        return len(queries)

    def passages(self, records: Iterable[Passage]) -> int:
        """Load passages with their texts."""
        return len(put_passages(self.connection, records))

    def data_set(self, records: Iterable[DataSet]) -> int:
        """Load the queries and judgments of a data set."""
        return sum(self.queries(one.queries) + self.judgments(one.judgments) for one in records)

    def bank(self, records: Iterable[BankEntry]) -> int:
        """Load items; the name of the bank of the import overrides that of a file of one bank."""
        names: dict[str, None] = {}
        is_named = self.by.bank != MAIN_BANK

        def named() -> Iterator[BankEntry]:
            for entry in self._of_known(records):
                names.update({entry.bank: None} if entry.bank else {})
                if is_named and len(names) > 1:
                    what = f"the file has several banks, such as {' and '.join(names)}"
                    raise InputError(what, hint="Leave out --bank-name (bank in Python)")
                yield replace(entry, bank="") if is_named else entry

        count = put_bank(self.connection, self.by.bank, named(), self.by.edit)
        if names and not is_named:
            shown = ", ".join([*names][:3]) + ", ..." * (len(names) > 3)
            banks = "the bank" if len(names) == 1 else f"{len(names)} banks:"
            add_warning(self.path, None, f"read as {banks} {shown}")
        return count

    def _of_known(self, entries: Iterable[BankEntry]) -> Iterator[BankEntry]:
        """Yield the entries of a bank whose queries are known or have a text in the file.

        If all known queries come from banks, a bank may add others.
        """
        is_strict = bool(known_queries(self.connection))
        bare: list[str] = []
        is_list = True
        for entry in entries:
            try:
                if is_strict and not entry.query_text:
                    self.places.find(entry.query_id)
            except InputError as error:
                error.hint = (
                    "Import the queries first, add their texts as query_text, or skip such "
                    "items with --on-error skip"
                )
                self.by.on_error(error.at(self.path))
                continue
            query = Query(entry.query_id, entry.query_text)
            rename_generated(self.connection, self.path, [query])
            bare += [] if is_strict or entry.query_text else [entry.query_id]
            is_list = is_list and [one.kind for one in entry.items] == ["question"]
            yield entry
        if bare and is_list:
            note_bare(self.path, bare)

    def judgments(self, records: Iterable[Judgment]) -> int:
        """Load human judgments."""
        count = 0
        for batch in batches(records):
            ids = intern(self.connection, "passage", "passage_id", [j.passage_id for j in batch])
            rows = [
                (*self.places.find(j.query_id), ids[j.passage_id], j.relevance, None) for j in batch
            ]
            put_judgments(self.connection, rows)
            count += len(batch)
        return count

    def pooled(self, records: Iterable[PooledText]) -> int:
        """Add passages to the pools of their queries."""
        count = 0
        for batch in batches(records):
            known = []
            for one in batch:
                try:
                    self.places.bring(one.query_id, one.query_text)
                    known.append((self.places.find(one.query_id)[0], one.passage))
                except InputError as error:
                    self.by.on_error(error.at(self.path))
            ids = put_passages(self.connection, (passage for _, passage in known))
            pairs = [(query, ids[passage.passage_id][0]) for query, passage in known]
            add_to_pools(self.connection, pairs)
            count += len(known)
        return count

    def graded(self, records: Iterable[QueryPool]) -> int:
        """Load graded passages with their rankings and judgments."""
        if self.by.scale is None:
            return put_pools(self.connection, records, self.by.edit)
        graders: dict[str, GraderIdentity] = {}

        def seen() -> Iterator[QueryPool]:
            for pool in records:
                for sheet in (sheet for passage in pool.passages for sheet in passage.sheets):
                    if has_open_scale(sheet.grader) and sheet.grader.highest > 1:
                        graders[sheet.grader.key] = sheet.grader
                yield pool

        count = put_pools(self.connection, seen(), self.by.edit)
        if not graders:
            raise InputError("every grader already has a scale", hint="Remove --scale")
        for identity in graders.values():
            set_scale(self.connection, put_grader(self.connection, identity), self.by.scale)
        return count

    def assignments(self, records: Iterable[Assigned]) -> int:
        """Load answers with the nuggets that they support: a bank, passages, rankings, grades."""
        assigned = list(records)
        for one in assigned:
            if one.system:
                self.by.log.see(self.path, one.query_id, one.system)
        entries = list(self._of_known(_assigned_bank(assigned)))
        put_bank(self.connection, self.by.bank, entries, self.by.edit)
        known = {entry.query_id for entry in entries}
        pools = _assigned_pools(one for one in assigned if one.query_id in known)
        put_pools(self.connection, pools, self.by.edit)
        return len(assigned)

    def judged(self, records: Iterable[Judged]) -> int:
        """Load relevance judgments that name texts instead of ids, as direct grades.

        They belong to the query and the passage with these texts; if missing, both are added with
        the MD5 of the text as id.
        """
        judged = list(records)
        queries = queries_with_text(self.connection, {one.query for one in judged})
        passages = passages_with_text(self.connection, {one.passage for one in judged})
        pools: dict[str, dict[str, PooledPassage]] = {}
        for one in judged:
            query_id = queries.get(one.query) or text_digest(one.query)
            passage_id = passages.get(one.passage) or text_digest(one.passage)
            add_query(self.connection, query_id, one.query)
            sheet = PassageGrades(one.grader, (replace(one.grade, item_id=query_id),))
            pool = pools.setdefault(query_id, {})
            known = pool.setdefault(passage_id, PooledPassage(passage_id, one.passage))
            pool[passage_id] = replace(known, sheets=(*known.sheets, sheet))
        loaded = (QueryPool(name, tuple(pool.values())) for name, pool in pools.items())
        put_pools(self.connection, loaded, self.by.edit)
        return len(judged)

    def runs(self, records: Iterable[RankedPassage]) -> int:
        """Load the rankings of one or several systems."""
        return self._stage((ranked, None) for ranked in top(records, self.by.depth))

    def _stage(self, rows: Iterable[tuple[RankedPassage, Residue]], is_logged: bool = True) -> int:
        """Stage rankings for `apply_rankings`; return their number.

        An unknown passage is stored by its id.
        """
        count = 0
        for batch in batches(rows):
            passages = [ranked.passage_id for ranked, _ in batch]
            ids = intern(self.connection, "passage", "passage_id", passages)
            systems = put_systems(self.connection, (ranked.system for ranked, _ in batch))
            staged = [
                (
                    *(*self.places.find(r.query_id), systems[r.system], ids[r.passage_id]),
                    *(r.rank, r.score, residue),
                )
                for r, residue in batch
            ]
            stage_rankings(self.connection, staged)
            if is_logged and self.by.log.collects:
                self.by.log.passages.update(passages)
            count += len(batch)
        return count

    def responses(self, records: Iterable[Response]) -> int:
        """Split generated responses into passages and rank them in order.

        A ranking stores the citations of its passages. With `cited`, cited passages are retrieved,
        too.
        """
        count = 0
        citing: list[Retrieved] = []

        def rows() -> Iterator[tuple[RankedPassage, Residue, Passage]]:
            nonlocal count
            for response in records:
                if self.by.is_named and self.by.system:
                    response = replace(response, system=self.by.system)
                try:
                    self.places.bring(response.query_id, response.query_text)
                    self.places.find(response.query_id)
                    self.by.log.see(self.path, response.query_id, response.system)
                    yield from _ranked(response, segments(response, self.by.passage_tokens))
                except InputError as error:
                    self.on_error(error.at(self.path))
                    continue
                count += 1
                citing.extend(_citations(response) if self.by.cited else ())

        for batch in batches(rows()):
            passages: dict[str, Passage] = {}
            for _, _, passage in batch:
                passages.setdefault(passage.passage_id, passage)
            known = texts_of(self.connection, list(passages))
            put_passages(self.connection, [passages[key] for key in passages if key not in known])
            self._stage(((ranked, residue) for ranked, residue, _ in batch), is_logged=False)
        self.retrieved(citing, quoted=True)
        return count

    def retrieved(self, records: Iterable[Retrieved], *, quoted: bool = False) -> int:
        """Load retrieved passages with their rankings.

        `quoted` texts are excerpts of documents in reports; they do not change a known text.
        """
        others: dict[str, None] = {}
        count = 0
        for one in records:
            try:
                ranking = list(top(one.ranking, self.by.depth))
                self.places.bring(ranking[0].query_id, one.query_text)
                self.places.find(ranking[0].query_id)
                self.by.log.see(self.path, ranking[0].query_id, ranking[0].system)
                ids = {ranked.passage_id for ranked in ranking}
                texts = [p for p in one.passages if p.passage_id in ids]
                if quoted:
                    known = texts_of(self.connection, sorted(ids))
                    differs = (p for p in texts if known.get(p.passage_id, p.text) != p.text)
                    others |= dict.fromkeys(p.passage_id for p in differs)
                    texts = [p for p in texts if p.passage_id not in known]
                put_passages(self.connection, texts)
                for passage_id in sorted(ids - {p.passage_id for p in one.passages}):
                    self._check_text(passage_id)
            except InputError as error:
                self.on_error(error.at(self.path))
                continue
            # quoted texts are not looked up in a corpus, only texts that no report quotes
            count += self._stage(((ranked, None) for ranked in ranking), is_logged=not quoted)
        if others:
            names = first_names([*others])
            add_warning(
                self.path,
                None,
                f"the reports quote other texts than the known ones for {names}; the known "
                "texts were not changed",
            )
        return count

    def decisions(self, records: Iterable[CellDecision]) -> int:
        """Load human decisions of another collection."""
        return put_decisions(self.connection, records)

    def report_decisions(self, records: Iterable[ReportDecision]) -> int:
        """Load decisions made in an interactive report; the texts must be current."""
        count = 0
        for one in records:
            try:
                put_report_decision(self.connection, one)
            except InputError as error:
                error.field = place_below(one.place, error.field)
                self.on_error(error.at(self.path))
            else:
                count += 1
        return count


LOADERS: Mapping[type | None, Callable[[Loader, Iterable[Any]], int]] = {
    DataSet: Loader.data_set,
    Query: Loader.queries,
    Passage: Loader.passages,
    BankEntry: Loader.bank,
    PooledText: Loader.pooled,
    Assigned: Loader.assignments,
    QueryPool: Loader.graded,
    Judgment: Loader.judgments,
    Retrieved: Loader.retrieved,
    Response: Loader.responses,
    RankedPassage: Loader.runs,
    Judged: Loader.judged,
    CellDecision: Loader.decisions,
    ReportDecision: Loader.report_decisions,
}
"""The loader of each kind of record, in the order in which the files of one import are loaded."""
_OF_SYSTEMS = frozenset({Assigned, Retrieved, Response, RankedPassage})


def top(rankeds: Iterable[RankedPassage], depth: int | None) -> Iterator[RankedPassage]:
    """Yield the first `depth` passages of every system and query (by rank, score, id), or all.

    Memory is a few times `depth` lines per system and query, regardless of the length of the run.
    """
    if depth is None:
        yield from rankeds
        return
    groups: dict[tuple[str, str], list[RankedPassage]] = {}
    for ranked in rankeds:
        group = groups.setdefault((ranked.system, ranked.query_id), [])
        group.append(ranked)
        if len(group) >= 4 * depth:
            group.sort(key=_place)
            del group[depth:]
    for group in groups.values():
        yield from sorted(group, key=_place)[:depth]


def _place(ranked: RankedPassage) -> tuple[int, float, str]:
    return ranked.rank, -ranked.score, ranked.passage_id


def _ranked(
    response: Response, parts: list[Segment]
) -> Iterator[tuple[RankedPassage, Residue, Passage]]:
    if not parts:
        raise InputError(
            f"the response of system {brief(response.system)} to query "
            f"{brief(response.query_id)} is empty"
        )
    # a repeated text keeps its first rank
    distinct: dict[str, Segment] = {}
    for part in parts:
        distinct.setdefault(text_digest(part.text), part)
    for rank, (key, part) in enumerate(distinct.items(), 1):
        fields = {"citations": list(part.citations), "citation_spans": list(part.spans)}
        set_fields = {name: value for name, value in fields.items() if value}
        residue = {"set": set_fields} if set_fields else None
        yield (
            RankedPassage(response.query_id, key, rank, 1 / rank, response.system),
            residue,
            Passage(key, part.text),
        )


def _citations(response: Response) -> Iterator[Retrieved]:
    """Yield the citations of a response as the ranking of a separate system, `NAME:cited`."""
    system = f"{response.system}:cited"
    ranking = tuple(
        RankedPassage(response.query_id, cited, rank, 1 / rank, system)
        for rank, cited in enumerate(response.cited, 1)
    )
    if ranking:
        known = {ranked.passage_id for ranked in ranking}
        texts = tuple(one for one in response.documents if one.passage_id in known)
        yield Retrieved(ranking, texts)


def _assigned_pools(assignments: Iterable[Assigned]) -> Iterator[QueryPool]:
    """Yield assignments as pools: every answer is one passage of rank 1, with its grades.

    An answer of several runs is one passage with several rankings; a passage that no system ranks
    has none. Raises InputError if the grades of one passage differ.
    """
    by_query: dict[str, dict[str, PooledPassage]] = {}
    for one in assignments:
        pool = by_query.setdefault(one.query_id, {})
        key = one.passage_id or text_digest(one.answer)
        known = pool.setdefault(
            key, PooledPassage(key, one.answer, sheets=(PassageGrades(GRADER, one.grades),))
        )
        if known.sheets[0].grades != one.grades:
            raise InputError(
                f"run {brief(one.system)} has the same answer as another run to query "
                f"{brief(one.query_id)}, but other assignments",
                hint="Remove one of them",
            )
        if one.system:
            ranked = RankedPassage(one.query_id, key, 1, 1.0, one.system)
            length = one.response_length
            residue = None if length is None else {"set": {"response_length": length}}
            pool[key] = replace(known, rankings=(*known.rankings, (ranked, residue)))
    for query_id, pool in by_query.items():
        yield QueryPool(query_id, tuple(pool.values()))


def _assigned_bank(assignments: Iterable[Assigned]) -> Iterator[BankEntry]:
    """Yield the nuggets of each query once."""
    items: dict[str, dict[str, Item]] = {}
    texts: dict[str, str] = {}
    for one in assignments:
        texts[one.query_id] = texts.get(one.query_id) or one.query_text
        of_query = items.setdefault(one.query_id, {})
        for item in one.items:
            if of_query.setdefault(item.item_id, item).weight != item.weight:
                raise InputError(
                    f"nugget {brief(item.text)} of query {brief(one.query_id)} is vital on "
                    "one line and okay on another"
                )
    for query_id, of_query in items.items():
        yield BankEntry(query_id, tuple(of_query.values()), texts[query_id])
