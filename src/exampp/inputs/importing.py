"""Files into a collection: recognised, read, checked, and taken over all together or not at all."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import (
    assignments,
    banks,
    candidates,
    car,
    decisions,
    passages,
    qrels,
    queries,
    ranx,
    responses,
    runs,
    workbench,
)
from exampp.formats.candidates import Retrieved
from exampp.formats.declared import FORMATS, declared_format, like, read_declared
from exampp.formats.in_memory import held, holding
from exampp.formats.lines import OnError, Skipped
from exampp.formats.read_warnings import collect_warnings
from exampp.formats.responses import Response
from exampp.formats.workbench_graders import has_open_scale
from exampp.inputs import beir, datasets, rag
from exampp.inputs.columns import Renaming
from exampp.inputs.corpus import look_up
from exampp.inputs.files import GivenFile, Known, rows_of, tell_all
from exampp.inputs.generated import (
    assigned_bank,
    assigned_pools,
    cited_by,
    take_candidates,
    take_pool,
    take_responses,
)
from exampp.inputs.import_report import ImportedFile, ImportReport, overwrite_error
from exampp.inputs.judged import take_judged
from exampp.inputs.places import QueryPlaces, note_bare, plain_banks, rename_generated, unmet
from exampp.inputs.rankings import RunLog, findings, stage, top
from exampp.inputs.segment import PASSAGE_TOKENS
from exampp.records import BankEntry, GraderIdentity, Judgment, Query, QueryPool, RankedPassage
from exampp.records.graders import RatingScale
from exampp.sanitize import count_replacements, sanitize_name
from exampp.store.bank import (
    BeforeCommit,
    Edit,
    do_nothing,
    known_queries,
    put_bank,
    put_query_items,
    retire_unmentioned,
)
from exampp.store.connection import transaction
from exampp.store.decisions import put_decisions
from exampp.store.grades import put_grader, set_scale
from exampp.store.import_diff import ImportLog
from exampp.store.inputs import (
    apply_rankings,
    begin_import,
    counts,
    end_import,
    has_text,
    next_file,
    put_judgments,
    put_passages,
    put_queries,
    put_source,
)
from exampp.store.interning import batches, intern
from exampp.store.pools import put_pools

UNKNOWN_PASSAGES = ("error", "keep")
"""What becomes of a run's passages whose text is not in the collection."""


@dataclass(frozen=True, slots=True)
class Importer:
    """How files are taken over; `bank` names the bank that bank files go into.

    `update` lets it change what is graded and what people edited; a `dry_run` changes nothing.
    `settle` is called in the end, before anything is committed.
    Of every ranking the first `depth` passages are taken. `system` names the system of responses
    that do not say it; they are cut into passages of at most `passage_tokens` tokens. `scale` is
    that of graders whose prompt is not known. What responses cite is taken, too, if `cited`.
    `bad_cells` counts ratings that cannot be read.
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
    named: bool = False
    cited: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)

    def of(self, system: str) -> Importer:
        """The same, for a file that holds what this system returned, whatever it says itself."""
        return replace(self, system=system, named=True)

    def of_known_queries(self, path: Path, entries: Iterable[BankEntry]) -> Iterator[BankEntry]:
        """The entries of a bank whose queries are known, or brought with their texts.

        Where all queries are known from banks alone, a bank may name others.
        """
        places = QueryPlaces(self.connection)
        is_strict = bool(known_queries(self.connection))
        bare: list[str] = []
        is_list = True
        for entry in entries:
            try:
                if is_strict and not entry.query_text:
                    places.find(entry.query_id)
            except InputError as error:
                error.mend = (
                    "Import the queries first, give their texts as query_text, or leave such items "
                    "out with --on-error skip"
                )
                self.on_error(error.at(path))
            else:
                rename_generated(self.connection, path, [Query(entry.query_id, entry.query_text)])
                bare += [] if is_strict or entry.query_text else [entry.query_id]
                is_list = is_list and [one.kind for one in entry.items] == ["question"]
                yield entry
        if bare and is_list:
            note_bare(path, bare)

    def workbench(self, path: Path) -> int:
        """Graded passages with their rankings and judgments."""
        found = workbench.read(path, self.on_error, scale=self.scale, on_cell=self.bad_cells)
        if self.scale is None:
            return put_pools(self.connection, found, self.edit)
        given: dict[str, GraderIdentity] = {}
        count = put_pools(self.connection, _seeing(found, given), self.edit)
        if not given:
            raise InputError("every grader has its own scale", mend="Leave out --scale")
        for identity in given.values():
            set_scale(self.connection, put_grader(self.connection, identity), self.scale)
        return count

    def assignments(self, path: Path) -> int:
        """Answers with the nuggets that they support: a bank, passages, rankings and grades."""
        on_error = self.log.counting(path, self.on_error)
        found = list(assignments.read(path, on_error))
        for one in found:
            if one.system:
                self.log.see(path, one.query_id, one.system)
        entries = list(self.of_known_queries(path, assigned_bank(found)))
        put_bank(self.connection, self.bank, entries, self.edit)
        known = {entry.query_id for entry in entries}
        pools = assigned_pools(one for one in found if one.query_id in known)
        put_pools(self.connection, pools, self.edit)
        return len(found)

    def queries(self, path: Path) -> int:
        """Queries and their subtopics."""
        found = list(queries.read(path, self.on_error))
        put_queries(self.connection, unmet(self.connection, path, found))
        return len(found)

    def passages(self, path: Path) -> int:
        """Passages with their texts."""
        return len(put_passages(self.connection, passages.read(path, self.on_error)))

    def qrels(self, path: Path, kind: str = "qrels") -> int:
        """Human judgments."""
        places = QueryPlaces(self.connection)

        def known(judgment: Judgment) -> None:
            places.find(judgment.query_id)

        read = qrels.read if kind == "qrels" else ranx.read_qrels
        return self._judge(read(path, self.on_error, known))

    def _judge(self, judgments: Iterable[Judgment]) -> int:
        places = QueryPlaces(self.connection)
        count = 0
        for batch in batches(judgments):
            ids = intern(self.connection, "passage", "passage_id", [j.passage_id for j in batch])
            put_judgments(
                self.connection,
                [(*places.find(j.query_id), ids[j.passage_id], j.relevance, None) for j in batch],
            )
            count += len(batch)
        return count

    def run(self, path: Path, kind: str = "run") -> int:
        """The rankings of one or several systems."""
        places = QueryPlaces(self.connection)
        check = self._text_check()

        def known(ranked: RankedPassage) -> None:
            places.find(ranked.query_id)
            check(ranked.passage_id)
            self.log.see(path, ranked.query_id, ranked.system)

        read = runs.read if kind == "run" else ranx.read
        on_error = self.log.counting(path, self.on_error)
        found = read(path, on_error, known, system=self.system if self.named else None)
        rows = ((ranked, None) for ranked in top(found, self.depth))
        return stage(self.connection, places, rows, self.log.rank)

    def responses(self, path: Path) -> int:
        """Generated responses, cut into passages."""
        return self._generated(path, responses.read)

    def texts(self, path: Path) -> int:
        """Generated responses as a folder of text files."""
        return self._generated(path, responses.read_folder)

    def _generated(self, path: Path, read: Callable[..., Iterator[Response]]) -> int:
        on_error = self.log.counting(path, self.on_error)

        def named(on_error: OnError) -> Iterator[Response]:
            for one in read(path, on_error, self.system):
                yield replace(one, system=self.system) if self.named and self.system else one

        found, limit = named(on_error), self.passage_tokens
        count = take_responses(self.connection, path, found, self.log, on_error, limit)
        if not self.cited:
            return count
        # what is wrong with a line was said the first time
        cited = cited_by(named(_said_already))
        self._retrieved(path, cited, on_error, quoted=True)
        return count

    def _retrieved(
        self, path: Path, found: Iterable[Retrieved], on_error: OnError, *, quoted: bool = False
    ) -> int:
        check = self._text_check()
        given = (self.connection, path, found, self.log, on_error, self.depth, check)
        return take_candidates(*given, quoted=quoted)

    def candidates(self, path: Path) -> int:
        """Retrieved passages with their texts."""
        on_error = self.log.counting(path, self.on_error)
        return self._retrieved(path, candidates.read(path, on_error, self.system), on_error)

    def _text_check(self) -> Callable[[str], None]:
        def check(passage_id: str) -> None:
            if self.unknown_passages == "error" and not has_text(self.connection, passage_id):
                raise InputError(
                    f"passage {passage_id!r} is not in the collection",
                    field="docid",
                    mend="Import the passages first, name their corpus with --corpus, or keep "
                    "such passages as ungraded with --unknown-passages keep",
                )

        return check

    def declared(self, path: Path, kind: str) -> int:
        """A file in a format of a package."""
        found = read_declared(kind, path)
        match like(kind):
            case "queries":
                known = list(found)
                put_queries(self.connection, known)
                return len(known)
            case "passages":
                return len(put_passages(self.connection, found))
            case "bank":
                entries = self.of_known_queries(path, found)
                return put_bank(self.connection, self.bank, entries, self.edit)
            case "qrels":
                return self._judge(found)
        check = self._text_check()
        places = QueryPlaces(self.connection)

        def ranked() -> Iterator[tuple[RankedPassage, None]]:
            for one in top(found, self.depth):
                check(one.passage_id)
                self.log.see(path, one.query_id, one.system)
                yield one, None

        return stage(self.connection, places, ranked(), self.log.rank)

    def decisions(self, path: Path) -> int:
        """What people decided in another collection."""
        return put_decisions(self.connection, decisions.read(path, self.on_error))

    def car_topics(self, path: Path) -> int:
        """Topics and subtopics of TREC CAR."""
        found = list(car.read_topics(path, self.on_error))
        put_queries(self.connection, found)
        return len(found)

    def car_paragraphs(self, path: Path) -> int:
        """Paragraphs of TREC CAR, all of them."""
        return len(put_passages(self.connection, car.read_paragraphs(path, self.on_error)))

    def dataset(self, path: Path) -> int:
        """Topics and judgments of a dataset that ir_datasets knows."""
        found = list(datasets.topics(path))
        put_queries(self.connection, found)
        return len(found) + self._judge(datasets.judgments(path))

    def beir(self, path: Path) -> int:
        """The judgments of a folder of BEIR, and the queries that they judge."""
        judged = list(beir.judgments(path, self.on_error))
        found = list(beir.topics(path, {one.query_id for one in judged}, self.on_error))
        put_queries(self.connection, found)
        return len(found) + self._judge(judged)


def _seeing(pools: Iterable[QueryPool], given: dict[str, GraderIdentity]) -> Iterator[QueryPool]:
    """The pools; `given` takes the graders of them whose scale can be given."""
    for pool in pools:
        for passage in pool.passages:
            for sheet in passage.sheets:
                if has_open_scale(sheet.grader) and sheet.grader.highest > 1:
                    given[sheet.grader.key] = sheet.grader
        yield pool


def _said_already(_error: InputError) -> None:
    """Leave a bad line out that was refused or counted before."""


_Take = Callable[[Importer, Path], int]


def _bank(read: banks.Reader) -> _Take:
    """Takes over bank files of one format."""

    def take(importer: Importer, path: Path) -> int:
        entries = importer.of_known_queries(path, read(path, importer.on_error))
        return put_bank(importer.connection, importer.bank, entries, importer.edit)

    return take


KINDS: Mapping[str, _Take] = {
    "dataset": Importer.dataset,
    "beir": Importer.beir,
    "car-topics": Importer.car_topics,
    "queries": Importer.queries,
    "car-paragraphs": Importer.car_paragraphs,
    "passages": Importer.passages,
    **{kind: _bank(reader) for kind, reader in banks.READERS.items()},
    "plain-bank": lambda importer, path: _bank(plain_banks(importer.connection))(importer, path),
    "pool": lambda to, path: take_pool(to.connection, path, to.on_error),
    "assignments": Importer.assignments,
    "workbench": Importer.workbench,
    "qrels": Importer.qrels,
    "ranx-qrels": lambda importer, path: importer.qrels(path, "ranx-qrels"),
    "candidates": Importer.candidates,
    "responses": Importer.responses,
    "texts": Importer.texts,
    "run": Importer.run,
    "ranx": lambda importer, path: importer.run(path, "ranx"),
    "umbrela": lambda to, path: take_judged(to.connection, path, to.on_error, to.edit),
    "decisions": Importer.decisions,
}
"""What can be imported, in the order in which files of one import are taken over."""


def import_files(
    importer: Importer, given: Sequence[GivenFile], corpus: str | None = None
) -> ImportReport:
    """Take over files in one transaction: after an error the collection is as it was.

    Files are taken in the order in which they build on each other, whatever their order here; then
    the texts of passages that runs and judgments name, out of the corpus.
    Raises InputError for a file that is not what it must be, or of no known kind, and, unless the
    importer may update, for a change of what is graded or was edited by people.
    """
    with collect_warnings() as heard:
        renaming = Renaming(importer.columns)
        given, parts = rag.unfold(given, importer.system, importer.on_error, renaming)
        rows = rows_of(given, renaming, importer.on_error)
        with holding({**parts, **rows}):
            report = _import_files(importer, given, corpus)
    return replace(report, remarks=heard.sentences(), unread=heard.unread, stored=heard.stored)


def _import_files(
    importer: Importer, given: Sequence[GivenFile], corpus: str | None
) -> ImportReport:
    kinds = file_kinds(given, system=importer.system is not None)
    with_kinds = sorted(kinds, key=lambda file: list(KINDS).index(like(file.kind)))
    if importer.scale is not None and all(file.kind != "workbench" for file in with_kinds):
        raise InputError("only graded passages have a scale to be given", mend="Leave out --scale")
    importer.log.collects = corpus is not None
    before = counts(importer.connection)
    try:
        with importer.connection, transaction(importer.connection), count_replacements() as found:
            report = replace(_take_all(importer, with_kinds, corpus, before), replaced=found)
            if importer.dry_run:
                raise _Undone
    except _Undone:
        pass
    return report


class _Undone(Exception):
    """Ends a transaction that was only to be looked at."""


def _take_all(
    importer: Importer,
    with_kinds: Iterable[Known],
    corpus: str | None,
    before: Mapping[str, int],
) -> ImportReport:
    connection = importer.connection
    files = []
    changed = ImportLog(connection)
    begin_import(connection)
    changes = connection.total_changes
    for path, found, by_name, system in with_kinds:
        next_file(connection)
        try:
            taking = importer if system is None else importer.of(system)
            take = KINDS.get(found)
            records = taking.declared(path, found) if take is None else take(taking, path)
        except InputError as error:
            raise error.at(path) from None
        put_source(connection, sanitize_name(path.name), found, _digest(path), importer.edit.at)
        files.append(ImportedFile(str(path), found, records, by_name))
    changed.note_rankings()
    staged = apply_rankings(connection)
    put_query_items(connection, importer.edit)
    missing: list[str] = []
    if corpus is not None:
        missing = look_up(connection, corpus, importer.log.passages, importer.on_error)
    retired, mentioned = retire_unmentioned(connection, importer.edit)
    changes = connection.total_changes - changes
    noted = changed.read()
    if noted.protected and not importer.update:
        raise overwrite_error(noted.protected)
    importer.settle(connection)
    return ImportReport(
        tuple(files),
        before,
        counts(connection),
        changes - staged - mentioned - noted.scratch - end_import(connection),
        retired,
        missing=tuple(missing),
        findings=findings(connection, importer.log, missing),
        differences=noted.differences,
        dry_run=importer.dry_run,
        bad_cells=importer.bad_cells.count,
        bad_cells_first=tuple(importer.bad_cells.first),
    )


def _digest(path: Path) -> str:
    """SHA-256 of a file, of rows, or of all files of a folder; of a dataset its id."""
    if rows := held(path):
        return hashlib.sha256(b"\n".join(line for _, line in rows)).hexdigest()
    if datasets.is_dataset(path):
        return str(path)
    if path.is_dir():
        inside = [_digest(file) for file in sorted(path.rglob("*")) if file.is_file()]
        return hashlib.sha256("".join(inside).encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_kinds(files: Iterable[GivenFile], *, system: bool) -> Iterator[Known]:
    """What each file is, as is said of it, or as its content tells; see `files.tell_all`.

    Raises InputError for a file of no known kind.
    """
    for file in tell_all(files, system=system):
        declared = declared_format(file.kind)
        if file.kind not in KINDS and (declared is None or declared.read is None):
            raise InputError(
                f"{file.kind} files are not imported",
                file=file.path,
                mend="An official leaderboard goes to exampp evaluate --official; a run has the "
                "columns query Q0 passage rank score system"
                if file.kind == "leaderboard"
                else f"Known kinds: {', '.join((*KINDS, *_read_by_others()))}",
            )
        yield file


def _read_by_others() -> list[str]:
    """The formats of packages; whether each can be read is told when it is used."""
    return [name for name in FORMATS.names() if name not in FORMATS.built_in]
