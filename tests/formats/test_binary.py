"""Files that hold no text are named for what they are, and nothing of their bytes is quoted."""

from __future__ import annotations

import gzip
import io
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from support.samples import file

from exampp.errors import InputError
from exampp.formats.detect import detect
from exampp.formats.lines import read_lines, read_text
from exampp.formats.output import writing


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
    "is a zip archive, as the files of spreadsheets are": _zip(),
    "is a tar archive": gzip.compress(_tar()),
    "is a PDF": b"%PDF-1.7\n1 0 obj",
    "is a Parquet file": b"PAR1\x15\x04\x15\x0a",
    "is packed by lz4, as ranx may save runs": b"\x04\x22\x4d\x18\x64\x40\xa7",
    "is a pickle of Python": b"\x80\x04\x95\x0a\x00",
    "is UTF-16 text": "q1\twhat\n".encode("utf-16"),
    "is a binary file, no text": bytes(range(1, 256)) * 8,
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
    with pytest.raises(InputError, match="what is written is text"), writing(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []
    with writing(tmp_path / name, text=False) as stream:
        stream.write(b"%PDF")
