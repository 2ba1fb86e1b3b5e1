"""Graded files are imported once, and read from a cache that is never trusted blindly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.inputs import graded_file as module
from exampp.store import graded_cache

RATED = [{"question_id": "q/1", "self_rating": 4}]
BANK = "query_id\tquestion\nq\tWhat is it?\nq\tWhy?\n"


def graded(path: Path, query: str = "q", text: str = "So.") -> Path:
    entry = {"llm": "m", "self_ratings": RATED, "answers": [["q/1", "4"]]}
    passage = {"paragraph_id": "p", "text": text, "exam_grades": [entry]}
    path.write_text(json.dumps([query, [passage]]) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(graded_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def imports(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Count the imports from now on."""
    found: list[Path] = []
    sound = module.GradedFile._import

    def counted(self: module.GradedFile, *rest: Any) -> None:
        found.append(self.path)
        sound(self, *rest)

    monkeypatch.setattr(module.GradedFile, "_import", counted)
    return found


def ratings(path: Path, **options: Any) -> list[list[int]]:
    with exampp.open(path) as opened:
        rows: list[list[int]] = opened.grades(**options).gradebook.queries[0].ratings.tolist()
        return rows


def test_a_file_is_imported_once_whatever_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = imports(monkeypatch)
    path = graded(tmp_path / "a.jsonl")
    assert [ratings(path), ratings(path)] == [[[4]], [[4]]]
    assert ratings(path.rename(tmp_path / "b.jsonl")) == [[4]]
    assert made == [path]
    # the same name, but not the same file
    assert ratings(graded(path, text="Another text.")) == [[4]]
    exampp.open(path, on_error="skip").close()
    assert len(made) == len(list(folder.glob("*.exam"))) == 3


def test_notes_name_the_file_as_it_is_called_now(folder: Path, tmp_path: Path) -> None:
    path = graded(tmp_path / "a.jsonl", text="odd \0 text")
    for name in (path, path.with_name("b.jsonl")):
        with exampp.open(path.rename(name)) as opened:
            notes = opened.grades().gradebook.notes
            assert f"Invalid characters were replaced (first: {name}:1)." in notes
        path = name
    assert len(list(folder.iterdir())) == 1


def test_a_bank_file_is_part_of_what_is_cached(folder: Path, tmp_path: Path) -> None:
    path, bank = graded(tmp_path / "a.jsonl"), tmp_path / "bank.tsv"
    bank.write_text(BANK)
    with exampp.open(path) as opened:
        book = opened.grades(bank=str(bank)).gradebook
        assert (book.bank, len(book.queries[0].item_ids)) == ("bank.tsv", 2)
        assert opened.grades().gradebook.bank == ""
    bank.write_text(BANK + "q\tWhere?\n")
    with exampp.open(path) as opened:
        assert len(opened.grades(bank=str(bank)).gradebook.queries[0].item_ids) == 3
    assert len(list(folder.glob("*.exam"))) == 3


@pytest.mark.parametrize("damage", ["a byte", "the end", "all of it"])
def test_a_damaged_cache_is_made_anew(
    folder: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = graded(tmp_path / "a.jsonl")
    assert ratings(path) == [[4]]
    (cached,) = folder.glob("*.exam")
    whole = cached.read_bytes()
    half = len(whole) // 2
    cached.write_bytes(
        {
            "a byte": whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :],
            "the end": whole[:-100],
            "all of it": b"",
        }[damage]
    )
    made = imports(monkeypatch)
    assert ratings(path) == [[4]]
    assert ratings(path) == [[4]]
    assert len(made) == len(list(folder.glob("*.exam"))) == 1


def test_without_a_folder_all_is_in_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = graded(tmp_path / "a.jsonl")
    folder.write_text("a file where the folder would be")
    assert ratings(path) == [[4]]
    monkeypatch.setenv(graded_cache.FOLDER, "")
    assert ratings(path) == [[4]]
    assert folder.is_file()


def test_the_oldest_go_and_so_does_what_a_killed_process_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [graded(tmp_path / f"{n}.jsonl", text=f"Text {n}.") for n in range(3)]
    assert ratings(paths[0]) == [[4]]
    (first,) = folder.glob("*.exam")
    monkeypatch.setattr(graded_cache, "MOST_BYTES", 5 * first.stat().st_size // 2)
    assert ratings(paths[1]) == [[4]]
    (second,) = set(folder.glob("*.exam")) - {first}
    for used, seconds in ((second, 20), (first, 10)):
        os.utime(used, (time.time() - seconds,) * 2)
    left = folder / ".new-left"
    left.mkdir()
    os.utime(left, (0, 0))
    assert ratings(paths[2]) == [[4]]
    assert (first.exists(), second.exists(), left.exists()) == (True, False, False)


def test_processes_at_once(folder: Path, tmp_path: Path) -> None:
    """Each process imports the file or finds what another one cached; none disturbs another."""
    path = graded(tmp_path / "a.jsonl")
    code = (
        f"import exampp; book = exampp.open({str(path)!r}).grades().gradebook; "
        "print(book.queries[0].ratings.tolist())"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [one.communicate()[0] for one in running] == ["[[4]]\n"] * 3
    assert [one.returncode for one in running] == [0] * 3
    assert len(list(folder.glob("*.exam"))) >= 1
    assert [one for one in folder.iterdir() if one.suffix != ".exam"] == []


def test_nothing_can_be_written(folder: Path, tmp_path: Path) -> None:
    path = graded(tmp_path / "a.jsonl")
    with exampp.open(path) as opened:
        grades = opened.grades()
        for write in (
            lambda: opened.grade("draft"),
            lambda: opened.add(queries={"q": "What?"}),
            lambda: opened.systems.remove("s"),
            lambda: grades.decisions.decide("q", "q/1", "p", 4, author="ann"),
        ):
            with pytest.raises(exampp.InputError, match=r"a graded file is read-only\. Import it"):
                write()
        with pytest.raises(exampp.InputError, match="contains no human decisions"):
            opened.grades(decisions="without")
        with pytest.raises(exampp.InputError, match="no sealed part"):
            opened.grades(part="sealed")
        assert opened.contents().rows
    assert len(list(folder.glob("*.exam"))) == 1
