"""A local model is what its folder holds, wherever that lies and however it is named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import exams
import pytest

import exampp
from exampp.graders.local import checkpoint, load
from exampp.graders.local.checkpoint import folder_hash, model_name
from exampp.records import GraderIdentity, content_hash
from exampp.store.connection import transaction
from exampp.store.grades import graders

pytest_plugins = ("tiny_models",)
pytestmark = pytest.mark.usefixtures("loaded_once")

OPTIONS: Mapping[str, Any] = {"prompt": "question-self-rating", "device": "cpu"}


def test_every_name_of_a_folder_is_one_grader(
    t5_taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(t5_taught, tmp_path / "t5")
    shutil.copytree(t5_taught, tmp_path / "a copy")
    (tmp_path / "linked").symlink_to(tmp_path / "t5")
    monkeypatch.chdir(tmp_path)
    with exams.make(tmp_path) as collection:
        assert collection.grade("hf", model="t5", **OPTIONS).asked == 8
        for name in (
            "./t5",
            str(tmp_path / "t5"),
            "a copy",
            "linked",
            "../" + tmp_path.name + "/t5",
        ):
            run = collection.grading("hf", model=name, **OPTIONS)
            assert run.count_due() == (0, 0), name
            assert run.grading.identity == collection.graders[0]
        own = load("t5", labels=("0", "1", "2", "3", "4", "5"), device="cpu")
        assert collection.grading(own).count_due() == (0, 0)
        assert [one.name for one in collection.graders] == ["t5:question-self-rating"]
        for typed in ("t5", "./t5", str(tmp_path / "t5") + "/", "./t5:question-self-rating"):
            assert collection.grades(typed).gradebook.grader == collection.graders[0]
        collection.export(tmp_path / "out.jsonl", "workbench")
    assert str(tmp_path) not in (tmp_path / "out.jsonl").read_text()


def first_version(found: GraderIdentity, typed: str) -> GraderIdentity:
    """The identity as the first version of exampp made it: the model is the folder as typed."""
    settings = dict(found.settings)
    content = settings.pop("content")
    return replace(
        found, model=typed, settings={**settings, "model": Path(typed).name, "sha256": content}
    )


def as_first_version(collection: Any, typed: str) -> GraderIdentity:
    """Make the collection's one grader one that the first version left."""
    (stored,) = graders(collection.connection)
    old = first_version(stored.identity, typed)
    settings = json.dumps(old.settings, sort_keys=True)
    # the key of the first version, which must never change
    key = content_hash(typed, old.prompt, old.kind, settings)
    assert old.key == key
    with collection.connection as rows, transaction(rows):
        rows.execute("UPDATE grader SET key = ?, model = ?, settings = ?", (key, typed, settings))
    return old


def test_grades_of_the_first_version_are_found_again(
    t5_taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(t5_taught, tmp_path / "t5")
    monkeypatch.chdir(tmp_path)
    typed = str(tmp_path / "t5")
    with exams.make(tmp_path) as collection:
        collection.grade("hf", model="t5", **OPTIONS)
        old = as_first_version(collection, typed)
        for name in ("t5", "./t5", typed):
            run = collection.grading("hf", model=name, **OPTIONS)
            assert run.count_due() == (0, 0), name
            assert run.grading.identity.key == old.key
        # what is new is graded by the same grader
        (tmp_path / "more.run").write_text("q2 Q0 p1 1 2.0 gamma\n")
        collection.import_files(tmp_path / "more.run")
        assert collection.grade("hf", model="t5", **OPTIONS).asked == 1
        assert [one.key for one in collection.graders] == [old.key]
        # the path is neither shown nor exported, and choosing by it goes on working
        assert collection.graders[0].name == "t5:question-self-rating"
        assert collection.grades(typed).gradebook.grader.key == old.key
        collection.export(tmp_path / "out.jsonl", "workbench")
        assert typed not in (tmp_path / "out.jsonl").read_text()
        book = collection.grades().gradebook
    with exampp.Collection.create(tmp_path / "other.exam") as other:
        bank = [tmp_path / "files" / name for name in ("queries.json", "questions.tsv")]
        other.import_files(*bank, tmp_path / "out.jsonl")
        assert other.grading("hf", model="t5", **OPTIONS).count_due() == (0, 0)
        ratings = [q.ratings.tolist() for q in other.grades().gradebook.queries]
        assert ratings == [q.ratings.tolist() for q in book.queries]


def test_the_hash_is_that_of_the_first_version(tmp_path: Path) -> None:
    # by hand: SHA-256 of "config.json NUL sha256({}) LF weights.bin NUL sha256(w) LF"
    import hashlib

    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "weights.bin").write_text("w")
    (tmp_path / "training.json").write_text("when it was trained is no content")
    lines = "".join(
        f"{name}\0{hashlib.sha256(text).hexdigest()}\n"
        for name, text in (("config.json", b"{}"), ("weights.bin", b"w"))
    )
    assert folder_hash(tmp_path) == hashlib.sha256(lines.encode()).hexdigest()


def test_large_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(checkpoint, "LARGE", 3)
    monkeypatch.setattr(checkpoint, "SETTLED_SECONDS", -1.0)
    folder = tmp_path / "model"
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_bytes(b"first")
    first = folder_hash(folder)
    assert [Path(p).name for p in json.loads(checkpoint._notes().read_text())] == [weights.name]

    notes = json.loads(checkpoint._notes().read_text())
    notes[str(weights)][-1] = "as noted"
    checkpoint._notes().write_text(json.dumps(notes))
    noted = folder_hash(folder)
    assert noted != first  # the note was believed: the file was not read

    # another file of the same size and time of writing is another model
    before = weights.stat()
    weights.write_bytes(b"other")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder_hash(folder) not in (first, noted)
    weights.write_bytes(b"first")
    for damaged in ("", "[]", '{"a": 1}', '{"x": [1]}'):
        checkpoint._notes().write_text(damaged)
        assert folder_hash(folder) == first


def test_without_a_place_for_notes_everything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(checkpoint, "LARGE", 0)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert folder_hash(folder) == folder_hash(folder)


def test_what_a_model_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = tmp_path / "models--google--flan-t5-large" / "snapshots" / "0613663d0d48"
    commit.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert model_name(str(commit)) == "google/flan-t5-large"
    assert model_name(str(tmp_path / "mine") + "/") == "mine"
    assert model_name(".") == "mine"
    assert model_name("google/flan-t5-large") == "google/flan-t5-large"
