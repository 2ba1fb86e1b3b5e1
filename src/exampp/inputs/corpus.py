"""Look up texts of passages in a corpus that is too large to import.

A corpus is read once, as a stream, and only wanted passages are decoded. It is a file of passages
(JSON-lines, columns, Parquet, TREC CAR), a folder of such files, or `irds:ID`, the documents of an
ir_datasets dataset.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import car, data_sets, passages, tables
from exampp.formats.json_values import OBJECT, identifier, key_of
from exampp.formats.lines import (
    OnError,
    as_lines,
    decode_json,
    existing_file,
    parse_each,
    plain_name,
    read_lines,
)
from exampp.records import Passage
from exampp.records.wording import counted
from exampp.store.inputs import put_passages, without_text
from exampp.store.sql import batches

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".tsv", ".txt", ".cbor", ".parquet", ".arrow")


def look_up(
    connection: sqlite3.Connection, corpus: str, wanted: set[str], on_error: OnError
) -> list[str]:
    """Add the texts of `wanted` passages, and of all without one, from a corpus.

    Reading stops when all are found. Returns the ids of passages that still have no text.

    Raises:
        InputError: The corpus has none of them, so its ids differ from those of the runs.
    """
    wanted_texts = wanted | set(without_text(connection))
    is_known = False
    for batch in batches(find_passages(corpus, wanted_texts, on_error)):
        is_known = True
        put_passages(connection, batch)
    missing = without_text(connection)
    if wanted_texts and not is_known and len(missing) == len(wanted_texts):
        raise InputError(
            f"the corpus has none of the {counted(len(missing), 'passage')} without text, such "
            f"as {missing[0]!r}",
            file=corpus,
            hint="Check that its ids match those of runs and qrels, or remove --corpus and add "
            "--unknown-passages keep to import passages without text",
        )
    return missing


def find_passages(corpus: str, wanted: set[str], on_error: OnError) -> Iterator[Passage]:
    """Yield the wanted passages of a corpus, each once, in the order of the corpus."""
    if data_sets.is_dataset(corpus):
        yield from data_sets.documents(corpus, wanted)
        return
    missing = set(wanted)
    for path in _files(Path(corpus)):
        for passage in _in_file(path, missing, on_error):
            missing.discard(passage.passage_id)
            yield passage
            if not missing:
                return


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [existing_file(path)]
    files = sorted(file for file in path.rglob("*") if plain_name(file).endswith(_SUFFIXES))
    if not files:
        raise InputError(
            "the folder has no corpus files",
            file=path,
            hint=f"Supported suffixes: {', '.join(_SUFFIXES)}, also with .gz, .xz or .zst",
        )
    return files


def _in_file(path: Path, wanted: set[str], on_error: OnError) -> Iterator[Passage]:
    if car.car_kind(path):
        yield from car.paragraphs(path, wanted.__contains__)
        return
    if tables.name_of(path):
        rows = as_lines(tables.read_rows(path, passages.ID_KEYS, wanted))
        found = parse_each(
            rows, path, on_error, lambda line, number: passages.parse_passage(line, path, number)
        )
        yield from (one for one in found if one.text.strip())
        return
    _, head = next(read_lines(path))
    identify = _json_ids(path, head) if head.lstrip().startswith(b"{") else _first_column
    encoded = {identifier.encode(): identifier for identifier in wanted}
    for number, line in read_lines(path):
        try:
            wanted_id = encoded.get(identify(line, number))
            if wanted_id is None:
                continue
            passage = replace(passages.parse_passage(line, path, number), passage_id=wanted_id)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        if passage.text.strip():
            del encoded[wanted_id.encode()]
            yield passage


def _first_column(line: bytes, _number: int) -> bytes:
    return line.partition(b"\t")[0].strip()


def _json_ids(path: Path, head: bytes) -> Callable[[bytes, int], bytes]:
    """Return a function for the id of a line, found at its start or else by decoding.

    All lines have the id under the key of the first line.
    """
    key = key_of(decode_json(head, OBJECT, path, 1), passages.ID_KEYS) or passages.ID_KEYS[0]
    starts = re.compile(
        rb'\s*\{\s*"%s"\s*:\s*(?:"([^"\\]*)"|(-?[0-9][0-9.eE+-]*))\s*[,}]' % re.escape(key.encode())
    ).match

    def identify(line: bytes, number: int) -> bytes:
        if at_start := starts(line):
            return at_start[1] or at_start[2] or b""
        decoded = decode_json(line, OBJECT, path, number)
        return identifier(decoded, (key, *passages.ID_KEYS)).encode()

    return identify
