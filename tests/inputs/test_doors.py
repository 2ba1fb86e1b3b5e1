"""Files with what no file should hold: a sentence, or valid text that the report tells of."""

from __future__ import annotations

import gzip
import json
import lzma
import resource
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from support import exams

import exampp
from exampp.errors import ExamError, InputError
from exampp.formats.detect import detect
from exampp.formats.lines import LONGEST_LINE, read_lines, read_text
from exampp.records.toml import parse_toml

DEEP = 3000


def imported(folder: Path, name: str, content: str | bytes) -> exampp.Collection:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    collection = exams.make(folder)
    collection.import_files(path)
    return collection


def refused(folder: Path, name: str, content: str | bytes) -> str:
    """What is said of the file; the collection is as it was."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    exams.make(folder).close()
    before = exams.tables(folder / "my.exam")
    with exampp.Collection(folder / "my.exam") as collection, pytest.raises(ExamError) as error:
        collection.import_files(path)
    assert exams.tables(folder / "my.exam") == before
    return str(error.value)


TEXTS = {
    "half a pair": ('{"id": "p9", "text": "a\\ud800b"}', "a\ufffdb"),
    "the other half": ('{"id": "p9", "text": "a\\uDC00b"}', "a\ufffdb"),
    "NUL": ('{"id": "p9", "text": "a\\u0000b"}', "a\ufffdb"),
    "a pair": ('{"id": "p9", "text": "a\\ud83d\\ude00b"}', "a\U0001f600b"),
    "a backslash": ('{"id": "p9", "text": "a\\\\ud800b"}', "a\\ud800b"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_made_valid_and_the_report_counts(tmp_path: Path, name: str) -> None:
    line, text = TEXTS[name]
    path = tmp_path / "passages.jsonl"
    path.write_text('{"id": "p8", "text": "x"}\n' + line + "\n", encoding="utf-8")
    with exams.make(tmp_path) as collection:
        report = collection.import_files(path)
        collection.export(tmp_path / "out.jsonl", "passages")
    found = [json.loads(line) for line in read_text(tmp_path / "out.jsonl").splitlines()]
    assert [one for one in found if text in one.values()]
    if "\ufffd" in text:
        assert report.replaced.count == 1
        assert str(report.replaced).endswith("passages.jsonl:2)")
    else:
        assert report.replaced.count == 0


def test_a_raw_nul_is_replaced_too(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        path = tmp_path / "queries.tsv"
        path.write_bytes(b"q1\twhy\0 is the sky blue\nq8\tother\n")
        assert collection.import_files(path).replaced.count == 1


IDS = {
    "passage": ("passages.jsonl", '{"id": "p\\ud800", "text": "x"}\n'),
    "query": ("queries.jsonl", '{"query_id": "q\\u0000", "text": "x"}\n'),
    "system": ("x.run", "q1 Q0 p1 1 2.0 al\0pha\n"),
    "item": (
        "bank.jsonl",
        '{"query_id": "q1", "items": [{"question_id": "i\\udfff", "question_text": "Why?"}]}\n',
    ),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_never_changed(tmp_path: Path, kind: str) -> None:
    assert "Ids are never changed" in refused(tmp_path, *IDS[kind])


FILES: dict[str, tuple[str, str | bytes]] = {
    "nested passages": ("passages.jsonl", '{"id": "p", "text": "x", "m": ' + "[" * DEEP),
    "nested queries": ("queries.json", '{"a": ' * DEEP),
    "nested CBOR": ("x.cbor", b"\x83\x63CAR\x81\x02\x80\x9f" + b"\x81" * DEEP),
    "nested workbench": ("graded.jsonl", '["q1", [' + '{"a":' * DEEP),
    "huge rank": ("x.run", f"q1 Q0 p1 {10**30} 1.0 a\n"),
    "digits of a rank": ("x.run", f"q1 Q0 p1 {'1' * 10_000} 1.0 a\n"),
    "infinite score": ("x.run", "q1 Q0 p1 1 1e999 a\n"),
    "no score": ("x.run", "q1 Q0 p1 1 nan a\n"),
    "huge relevance": ("x.qrels", f"q1 0 p1 {10**30}\n"),
    "digits of a relevance": ("x.qrels", f"q1 0 p1 -{'9' * 10_000}\n"),
    "huge candidate score": (
        "c.jsonl",
        f'{{"query": {{"qid": "q1"}}, "candidates": [{{"docid": "p1", "score": {10**400}}}]}}',
    ),
    "infinite candidate score": (
        "c.jsonl",
        '{"query": {"qid": "q1"}, "candidates": [{"docid": "p1", "score": 1e999}]}',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_nesting_and_numbers_are_a_sentence(tmp_path: Path, name: str) -> None:
    said = refused(tmp_path, *FILES[name])
    assert FILES[name][0] in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a = " + "[" * DEEP, "nested too deeply"),
        (".".join("a" * DEEP) + " = 1", "nested too deeply"),
        (f"a = {10**30}", "beyond 64 bits"),
        ("a = " + "1" * 10_000, "broken TOML"),
        ("a = [1.0, inf]", "finite"),
        ("a = nan", "finite"),
        ('a.b = "x\\u0000"', "a.b: holds a NUL"),
        ("a = 2024-13-45", "broken TOML"),
    ],
)
def test_toml_of_any_kind_is_a_sentence(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        parse_toml(text, "exam.toml")


def bomb(packed: str, unit: bytes, size: int) -> bytes:
    """So many bytes of the unit, packed without ever holding them."""
    pieces = (unit * ((1 << 20) // len(unit)) for _ in range(size >> 20))
    packers: dict[str, Callable[[], Any]] = {
        "gz": lambda: zlib.compressobj(9, wbits=31),
        "xz": lambda: lzma.LZMACompressor(preset=0),
        "zst": lambda: zstandard.ZstdCompressor().compressobj(),
    }
    packer = packers[packed]()
    return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


@pytest.mark.parametrize("packed", ["gz", "xz", "zst"])
@pytest.mark.parametrize("unit", [b"a", b"a b\n"])
def test_what_unpacks_out_of_all_proportion_is_refused(
    tmp_path: Path, packed: str, unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exampp.formats.lines.ROOM", 1 << 20)
    path = tmp_path / f"x.{packed}"
    path.write_bytes(bomb(packed, unit, 24 << 20))
    for read in (detect, read_text) if unit == b"a" else (read_text,):
        with pytest.raises(InputError, match=r"unpacks to more than 200 times its size"):
            read(path)


def test_a_line_that_blows_up_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(bomb("zst", b"a", 1 << 30))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"200 times its size|a line of more than 128 MiB"):
        detect(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 * 1024


def test_a_line_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as stream:
        stream.truncate(LONGEST_LINE + 10)
    with pytest.raises(InputError, match=r"x.jsonl:1: a line of more than 128 MiB"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b"q1 Q0 p1 1 2.0 a\n", mtime=0) + b"rubbish", "cannot be read"),
        (gzip.compress(b"q1 Q0 p1 1 2.0 a\n", mtime=0)[:-9], "cut off"),
        (zstandard.compress(b"q1 Q0 p1 1 2.0 a\n") + b"rubbish", "cannot be read"),
        (lzma.compress(b"q1 Q0 p1 1 2.0 a\n")[:-9], "cut off"),
    ],
)
def test_damaged_compression_is_a_sentence(tmp_path: Path, content: bytes, what: str) -> None:
    assert what in refused(tmp_path, "x.run", content)


def test_members_one_after_the_other_are_one_file(tmp_path: Path) -> None:
    parts = gzip.compress(b"q1 Q0 p1 1 2.0 a\n", mtime=0) + gzip.compress(b"q2 Q0 p3 1 2.0 a\n")
    with imported(tmp_path, "x.run.gz", parts) as collection:
        assert collection.export(tmp_path / "out.run", "runs") == 7


def test_paths_that_no_file_can_have(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        for path in ("a\0b", "x" * 5000):
            with pytest.raises(InputError):
                collection.import_files(path)
            with pytest.raises(InputError):
                collection.export(path, "queries")
            with pytest.raises(InputError):
                exampp.Collection(path)
            with pytest.raises(InputError):
                exampp.Collection.create(path)
