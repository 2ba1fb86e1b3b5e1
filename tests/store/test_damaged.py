"""A damaged page of a collection: a sentence from every reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.store.connection import connect
from exampp.store.history import connect_before
from exampp.store.sql import GuardedConnection

READS: dict[str, Callable[[exampp.Collection], object]] = {
    "status": lambda c: c.status(),
    "evaluate": lambda c: c.grades().evaluate(["Cover@20"]),
    "grade": lambda c: c.grade("draft", depth=5),
    "dossiers": lambda c: list(c.grades().dossiers()),
    "export": lambda c: c.export(c.path.with_name("out.jsonl")),
}


@pytest.mark.parametrize("table", ["grade", "passage_version", "item", "ranking"])
def test_a_damaged_page_is_a_sentence_that_says_what_helps(tmp_path: Path, table: str) -> None:
    path = exams.damaged(tmp_path, table)
    said = [said_of(path, read) for read in READS.values()]
    # evaluation reads copies of rankings, which are whole
    assert sum(map(bool, said)) >= (1 if table == "ranking" else 2)
    for text in filter(None, said):
        assert "my.exam: is not a readable collection: the file is damaged" in text
        assert "Use an intact copy" in text


@pytest.mark.parametrize("name", [b"answerz", b"ans\xffers"])
def test_a_damaged_name_in_the_schema_is_damage(tmp_path: Path, name: bytes) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
    path = tmp_path / "my.exam"
    content = path.read_bytes()
    at = content.index(b"answers", content.index(b"CREATE TABLE item_edit"))
    path.write_bytes(content[:at] + name + content[at + len(name) :])
    said = said_of(path, lambda c: c.bank().log())
    assert "my.exam: is not a readable collection: the file is damaged" in said


def test_a_damaged_file_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = exams.damaged(tmp_path, "item"), []

    def kept(path: Path) -> GuardedConnection:
        opened.append(connect(path))
        return opened[-1]

    monkeypatch.setattr("exampp.store.history.connect", kept)
    with pytest.raises(InputError, match="the file is damaged"):
        connect_before(path, "2999-11-03")
    with pytest.raises(InputError, match="is closed"):
        opened[0].execute("SELECT 1")


def said_of(path: Path, read: Callable[[exampp.Collection], object]) -> str:
    """The sentence that reading ends with, if it does."""
    try:
        with exampp.Collection(path) as collection:
            read(collection)
    except InputError as error:
        return str(error)
    return ""


def test_values_that_do_not_fit_never_reach_the_file(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        opened = collection.connection
        with pytest.raises(InputError, match="too large"):
            opened.execute("UPDATE ranking SET rank = ?", (10**30,))
        with pytest.raises(InputError, match="surrogate"):
            opened.executemany("UPDATE query SET text = ?", [("\ud800",)])
        assert list(opened.execute("SELECT count(*) FROM query")) == [(2,)]
