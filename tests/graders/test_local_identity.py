"""A local model is what its folder holds, wherever that lies and however it is named."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import exams

from exampp.graders.local import load_local_grader
from exampp.graders.local.checkpoint import display_name

pytest_plugins = ("support.tiny_models",)
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
        own = load_local_grader("t5", labels=("0", "1", "2", "3", "4", "5"), device="cpu")
        assert collection.grading(own).count_due() == (0, 0)
        assert [one.name for one in collection.graders] == ["t5:question-self-rating"]
        for typed in ("t5", "./t5", str(tmp_path / "t5") + "/", "./t5:question-self-rating"):
            assert collection.grades(typed).gradebook.grader == collection.graders[0]
        collection.export(tmp_path / "out.jsonl", "workbench")
    assert str(tmp_path) not in (tmp_path / "out.jsonl").read_text()


def test_what_a_model_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = tmp_path / "models--google--flan-t5-large" / "snapshots" / "0613663d0d48"
    commit.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert display_name(str(commit)) == "google/flan-t5-large"
    assert display_name(str(tmp_path / "mine") + "/") == "mine"
    assert display_name(".") == "mine"
    assert display_name("google/flan-t5-large") == "google/flan-t5-large"
