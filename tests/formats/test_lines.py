from __future__ import annotations

import errno
import functools
import gzip
import io
import json
import lzma
import os
import random
import resource
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from support import exams
from support.samples import COMPRESSIONS, fault, file

import exampp
from exampp.errors import ExamError, InputError
from exampp.formats.detect import detect
from exampp.formats.fields import FirstLines, brief, parse_integer, real
from exampp.formats.lines import (
    LONGEST_LINE,
    Skipped,
    decode_json,
    encode_json,
    plain_name,
    read_lines,
    read_pairs,
    read_text,
    system_of,
    text_of,
)
from exampp.formats.output import check_outputs, writing
from exampp.records.toml import parse_toml

Link = Callable[[Path, Path], None]
CONTENT = b"one\n\n  \ntwo \r\nthree"
LINES = [(1, b"one"), (4, b"two "), (5, b"three")]


@pytest.mark.parametrize("ending", ["", *COMPRESSIONS])
def test_lines_keep_their_numbers_whatever_the_compression(tmp_path: Path, ending: str) -> None:
    compress = COMPRESSIONS.get(ending, bytes)
    path = file(tmp_path, compress(CONTENT), "lines.txt" + ending)
    assert list(read_lines(path)) == LINES
    assert read_text(path) == CONTENT.decode()


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compression_is_told_from_the_content_and_not_from_the_name(
    tmp_path: Path, ending: str
) -> None:
    assert list(read_lines(file(tmp_path, COMPRESSIONS[ending](CONTENT), "plain.txt"))) == LINES
    assert list(read_lines(file(tmp_path, CONTENT, "plain.txt" + ending))) == LINES


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_parts_compressed_one_by_one_are_all_read(tmp_path: Path, ending: str) -> None:
    path = file(tmp_path, b"".join(COMPRESSIONS[ending](b"%d\n" % n) for n in range(3)))
    assert [line for _, line in read_lines(path)] == [b"0", b"1", b"2"]


@functools.cache
def compressed_rows(ending: str) -> bytes:
    draws = random.Random(0)
    rows = b"".join(b"%d %d\n" % (n, draws.getrandbits(64)) for n in range(20_000))
    return COMPRESSIONS[ending](rows)


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("keep", [0.99, 0.5])
def test_a_compressed_file_that_is_cut_off_is_refused(
    tmp_path: Path, ending: str, keep: float
) -> None:
    whole = compressed_rows(ending)
    path = file(tmp_path, whole[: int(keep * len(whole))])
    error = fault(read_lines, path)
    assert error.what.startswith("the compressed file is truncated after line ")
    with pytest.raises(InputError, match="truncated"):
        read_text(path)


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_damaged_file_is_refused(tmp_path: Path, ending: str) -> None:
    whole = bytearray(COMPRESSIONS[ending](CONTENT * 1000))
    whole[len(whole) // 2] ^= 0xFF
    whole[len(whole) // 2 + 1] ^= 0xFF
    assert "the file cannot be read" in fault(read_lines, file(tmp_path, bytes(whole))).what


def test_zstd_inside_a_stream_of_unknown_size(tmp_path: Path) -> None:
    target = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(target, closefd=False) as stream:
        stream.write(b"x" * 3_000_000 + b"\nend\n")
    path = file(tmp_path, target.getvalue())
    assert [(number, len(line)) for number, line in read_lines(path)] == [(1, 3_000_000), (2, 3)]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path: Path) -> None:
    path = file(tmp_path, "\ufeffone\r\n\ufefftwo\r\n")
    assert list(read_lines(path)) == [(1, b"one"), (2, "\ufefftwo".encode())]
    assert read_text(path) == "one\r\n\ufefftwo\r\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf\n", gzip.compress(b"", mtime=0), lzma.compress(b" \n")],
)
def test_a_file_without_anything_in_it_is_refused(tmp_path: Path, content: bytes) -> None:
    path = file(tmp_path, content)
    assert fault(read_lines, path).what == "the file is empty"
    with pytest.raises(InputError, match="the file is empty"):
        read_text(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert fault(read_lines, tmp_path / "absent").what == "no such file"
    assert fault(read_lines, tmp_path).what == "is a folder, not a file"
    os.mkfifo(tmp_path / "pipe")
    assert fault(read_lines, tmp_path / "pipe").what == "is not a regular file"


def test_text_that_is_not_utf_8_says_where(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        text_of(b"caf\xe9", "f", 3)
    assert str(caught.value) == (
        "f:3: not UTF-8 text (byte 4 of the line). Convert the file to UTF-8"
    )
    with pytest.raises(InputError) as caught:
        read_text(file(tmp_path, b"ab\nc\xff\n"))
    assert (caught.value.line, caught.value.what) == (2, "not UTF-8 text (byte 2 of the line)")


def test_json_faults_name_the_field() -> None:
    decoder = msgspec.json.Decoder(dict[str, list[int]])
    assert decode_json(b'{"a": [1]}', decoder, "f", 1) == {"a": [1]}
    with pytest.raises(InputError) as caught:
        decode_json(b'{"a": [1, "x"]}', decoder, "f", 7)
    assert str(caught.value) == "f:7, [...][1]: Expected `int`, got `str`"
    with pytest.raises(InputError, match=r"not UTF-8 text \(byte 3 of the line\)"):
        decode_json(b'["\xff"]', msgspec.json.Decoder(), "f", 7)
    for broken in (b'{"a": [1', b"[" * 100_000):
        with pytest.raises(InputError, match="broken JSON"):
            decode_json(broken, msgspec.json.Decoder(), "f", 7)


def test_json_text_that_utf_8_cannot_hold_is_refused() -> None:
    assert encode_json({"a": "ü"}, "f") == b'{"a":"\xc3\xbc"}\n'
    with pytest.raises(InputError, match="surrogate"):
        encode_json({"a": "\ud800"}, "f")


def test_pairs_of_an_object_come_with_their_lines_and_recur(tmp_path: Path) -> None:
    path = file(tmp_path, '{"a": 1,\n\n "b" : {"c": [2]},"a"\n:null }\n')
    assert list(read_pairs(path)) == [(1, "a", 1), (3, "b", {"c": [2]}), (3, "a", None)]
    assert list(read_pairs(file(tmp_path, " { } "))) == []


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ('{"a": 1,\n "b": }', 2, "broken JSON (Expecting value)"),
        ('{"a": 1,\n}', 2, "broken JSON (Expecting value)"),
        ('{"a": 1\n "b": 2}', 2, "broken JSON (expected '}')"),
        ('{"a"\n1}', 2, "broken JSON (expected ':')"),
        ('{"a": 1', 1, "broken JSON (expected '}')"),
        ('{"a": 1}\n{"b": 1}', 2, "broken JSON (text after the object)"),
        ("{1: 1}", 1, "broken JSON (a key must be a string)"),
        ("[1]", 1, "broken JSON (expected '{')"),
        ('{"a": "x\ny"}', 1, "broken JSON (Invalid control character at)"),
        ('{"a":' + "[" * 100_000, 1, "broken JSON (nested too deeply, or a number too long)"),
        ('{"a":' + "9" * 5000 + "}", 1, "broken JSON (nested too deeply, or a number too long)"),
    ],
)
def test_a_file_that_is_no_object_is_refused(
    tmp_path: Path, content: str, line: int, what: str
) -> None:
    error = fault(read_pairs, file(tmp_path, content))
    assert (error.what, error.line or 1) == (what, line)


@pytest.mark.parametrize("ending", ["", *COMPRESSIONS])
def test_a_written_file_appears_whole_or_not_at_all(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.txt{ending}"
    with writing(path) as stream:
        stream.write(b"one\n")
        assert not path.exists()
    assert list(read_lines(path)) == [(1, b"one")]
    with pytest.raises(ZeroDivisionError), writing(path) as stream:
        stream.write(b"two\n" * (1 // 0))
    assert list(read_lines(path)) == [(1, b"one")]
    with writing(path) as stream:
        for _, line in read_lines(path):
            stream.write(line * 2 + b"\n")
    assert list(read_lines(path)) == [(1, b"oneone")]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for path, what in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "file", "cannot be written"),
    ):
        with pytest.raises(InputError, match=what), writing(path):
            pass


def test_skipped_counts_all_and_keeps_the_first() -> None:
    skipped = Skipped(keep=2)
    errors = [InputError(str(n)) for n in range(3)]
    for error in errors:
        skipped(error)
    assert (skipped.count, skipped.first) == (3, errors[:2])


ARRAY = '\ufeff\n [ {"id": "a",\r\n  "n": 1e400},\n\n {"id": "b }, {",\n"é": "\\n"} , {}\n]\n'


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_the_objects_of_an_array_are_lines_as_they_are_written(tmp_path: Path, ending: str) -> None:
    path = file(tmp_path, COMPRESSIONS[ending](ARRAY.encode()), f"f{ending}")
    assert [(number, line.decode()) for number, line in read_lines(path)] == [
        (2, '{"id": "a",   "n": 1e400}'),
        (5, '{"id": "b }, {", "é": "\\n"}'),
        (6, "{}"),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[{"a": 1},\n{"a": \n', "f:3: broken JSON (Expecting value)"),
        ('[{"a": 1}\n{"a": 2}]', "f:2: broken JSON (expected ']')"),
        ('[{"a": 1}]\n\n{"a": 2}', "f:3: broken JSON (text after the array)"),
        ('[{"a": 1},\n\n]', "f:3: broken JSON (Expecting value)"),
        ('[{"a": ' + "[" * 100_000, "f:1: broken JSON (nested too deeply, or a number too long)"),
    ],
)
def test_a_broken_array_says_where(tmp_path: Path, content: str, told: str) -> None:
    assert str(fault(read_lines, file(tmp_path, content, "f"))).endswith(told)


def test_a_system_is_called_as_its_file_is() -> None:
    assert system_of("/a/input.BM25-v2.1.csv.gz") == "BM25-v2.1"
    assert system_of("Dense.json") == "Dense"


def test_names_lose_the_ending_of_their_compression() -> None:
    assert plain_name("/a/Bank.JSONL.gz") == "bank.jsonl"
    assert plain_name("bank.tsv") == "bank.tsv"


def test_first_lines_agree_with_a_dictionary() -> None:
    first, expected = FirstLines(), dict[str, int]()
    keys = [f"key {random.Random(7 * n).randrange(4000)}" for n in range(10_000)]
    for line, key in enumerate(keys, start=1):
        assert first.add(key, line) == expected.get(key, 0)
        expected.setdefault(key, line)
    assert len(expected) > 3000


def test_the_hash_that_marks_an_empty_slot_is_a_key_too() -> None:
    first = FirstLines()
    assert hash(0) == 0
    assert [first.add(0, 5), first.add(0, 6), first.add(2, 7)] == [0, 5, 0]


@pytest.mark.parametrize("text", [b"1_000", b"1.0", b"", b"x", b"9" * 5000, b"0x1", b"\xff"])
def test_what_is_no_integer_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match="is not an integer") as caught:
        parse_integer(text, "rank")
    assert caught.value.field == "rank"
    assert len(str(caught.value)) < 200


def test_integers_have_a_limit() -> None:
    assert [parse_integer(b"+7", "n"), parse_integer(b"-3", "n", 3)] == [7, -3]
    with pytest.raises(InputError, match=r"'4' is beyond \+-3"):
        parse_integer(b"4", "n", 3)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "1_0", "", "one", "1,5"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(InputError, match="is not a finite number"):
            real(data, "score")


def test_a_long_value_is_cut_in_messages() -> None:
    assert brief("a\nb") == r"'a\nb'"
    assert brief("x" * 100) == repr("x" * 57 + "...")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_an_input_is_kept_under_all_its_names(tmp_path: Path, link: Link) -> None:
    source, other = file(tmp_path, CONTENT, "source"), tmp_path / "other"
    link(source, other)
    with pytest.raises(InputError, match="other: is an input and would be overwritten"):
        check_outputs([other], [source])
    check_outputs([tmp_path / "new", None], [source, None, "a name of a bank"])


def test_a_full_disk_says_where_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = file(tmp_path, b"before", "out.csv")
    with pytest.raises(OSError, match="No space left") as caught, writing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_nothing_lands_on_a_file_of_a_collection(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "my.exam"
    with exampp.Collection.create(path):
        before = {file.name: file.read_bytes() for file in tmp_path.glob("my.exam-*")}
        with (
            pytest.raises(InputError, match="would be overwritten"),
            writing(f"{path}{ending}") as stream,
        ):
            stream.write(b"x")
        assert {file.name: file.read_bytes() for file in tmp_path.glob("my.exam-*")} == before
    with writing(tmp_path / f"other.exam{ending}") as stream:
        stream.write(b"x")


# ---- binary --------------------------------------------------------------------------------------


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    return data.getvalue()


def _tar() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("queries.tsv"))
    return data.getvalue()


FILES = {
    "is a zip archive or spreadsheet": _zip(),
    "is a tar archive": gzip.compress(_tar()),
    "is a PDF file": b"%PDF-1.7\n1 0 obj",
    "is a Parquet file": b"PAR1\x15\x04\x15\x0a",
    "is compressed with lz4, as ranx may save runs": b"\x04\x22\x4d\x18\x64\x40\xa7",
    "is a Python pickle": b"\x80\x04\x95\x0a\x00",
    "is UTF-16 text": "q1\twhat\n".encode("utf-16"),
    "is a binary file": bytes(range(1, 256)) * 8,
}


@pytest.mark.parametrize("what", FILES)
def test_binary_files_are_named(tmp_path: Path, what: str) -> None:
    path = file(tmp_path, FILES[what], "queries.tsv")
    for read in (lambda p: list(read_lines(p)), read_text, detect):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: {what}. ")
        assert caught.value.hint
        assert "\\x" not in str(caught.value)


def test_a_collection_is_named_and_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "other.exam"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
    with pytest.raises(InputError, match=r"is an SQLite file, as collections are\. .* export"):
        detect(path)


@pytest.mark.parametrize("content", ["caf\u00e9\t1\n", "a\x00b\tx\n", "\x1b[1mq\tx\n"])
def test_text_is_text(tmp_path: Path, content: str) -> None:
    """A NUL or an escape in UTF-8 is read as before; so is a long line whose head cuts a letter."""
    path = file(tmp_path, content * 400)
    assert len(list(read_lines(path))) == 400
    cut = file(tmp_path, "a" + "\u00e9" * 2000 + "\x01\n")
    assert len(list(read_lines(cut))) == 1


@pytest.mark.parametrize("name", ["r.pdf", "bank.XLSX", "out.parquet", "run.lz4"])
def test_text_is_not_written_into_files_of_other_kinds(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="the output is text"), writing(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []
    with writing(tmp_path / name, text=False) as stream:
        stream.write(b"%PDF")


# ---- doors ---------------------------------------------------------------------------------------


DEEP = 3000


def imported(folder: Path, name: str, content: str | bytes) -> exampp.Collection:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    collection = exams.make(folder)
    collection.import_files(path)
    return collection


def refused(folder: Path, name: str, content: str | bytes) -> str:
    """The error names the file; the collection is unchanged."""
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
def test_texts_are_made_valid_and_the_report_counts(
    tmp_path: Path, small_exam: exampp.Collection, name: str
) -> None:
    line, text = TEXTS[name]
    path = tmp_path / "passages.jsonl"
    path.write_text('{"id": "p8", "text": "x"}\n' + line + "\n", encoding="utf-8")
    report = small_exam.import_files(path)
    small_exam.export(tmp_path / "out.jsonl", "passages")
    found = [json.loads(line) for line in read_text(tmp_path / "out.jsonl").splitlines()]
    assert [one for one in found if text in one.values()]
    if "\ufffd" in text:
        assert report.replaced.count == 1
        assert str(report.replaced).endswith("passages.jsonl:2)")
    else:
        assert report.replaced.count == 0


def test_a_raw_nul_is_replaced_too(tmp_path: Path, small_exam: exampp.Collection) -> None:
    path = tmp_path / "queries.tsv"
    path.write_bytes(b"q1\twhy\0 is the sky blue\nq8\tother\n")
    assert small_exam.import_files(path).replaced.count == 1


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


ODD_FILES: dict[str, tuple[str, str | bytes]] = {
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


@pytest.mark.parametrize("name", ODD_FILES)
def test_nesting_and_numbers_are_a_sentence(tmp_path: Path, name: str) -> None:
    said = refused(tmp_path, *ODD_FILES[name])
    assert ODD_FILES[name][0] in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a = " + "[" * DEEP, "nested too deeply"),
        (".".join("a" * DEEP) + " = 1", "nested too deeply"),
        (f"a = {10**30}", "beyond 64 bits"),
        ("a = " + "1" * 10_000, "invalid TOML"),
        ("a = [1.0, inf]", "finite"),
        ("a = nan", "finite"),
        ('a.b = "x\\u0000"', "a.b: contains a NUL"),
        ("a = 2024-13-45", "invalid TOML"),
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
    with pytest.raises(InputError, match=r"200 times its size|the line is longer than 128 MiB"):
        detect(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 * 1024


def test_a_line_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as stream:
        stream.truncate(LONGEST_LINE + 10)
    with pytest.raises(InputError, match=r"x.jsonl:1: the line is longer than 128 MiB"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b"q1 Q0 p1 1 2.0 a\n", mtime=0) + b"rubbish", "cannot be read"),
        (gzip.compress(b"q1 Q0 p1 1 2.0 a\n", mtime=0)[:-9], "truncated"),
        (zstandard.compress(b"q1 Q0 p1 1 2.0 a\n") + b"rubbish", "cannot be read"),
        (lzma.compress(b"q1 Q0 p1 1 2.0 a\n")[:-9], "truncated"),
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
