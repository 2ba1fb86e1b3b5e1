"""Fixtures that several test folders share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import Commands
from hypothesis import settings

import exampp

# a slow machine is no fault, and what CI says must not depend on the draw
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project; the test is skipped where there is none."""
    for folder in Path(__file__).resolve().parents:
        found = folder.parent / "shared" / "data"
        if (found / "dl19").is_dir():
            return found
    pytest.skip("no real data beside the project (../shared/data)")


@pytest.fixture(scope="session")
def dl19_exam(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TREC DL 2019 exam as a collection; only for looking at."""
    path = tmp_path_factory.mktemp("dl19") / "dl19.exam"
    folder = shared_data / "dl19"
    with exampp.Collection.create(path) as collection:
        names = ("queries.json", "questions.jsonl.gz", "graded.jsonl.gz")
        collection.import_files(*(folder / name for name in names))
    return path


@pytest.fixture
def exampp_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The command line, run in this process."""
    return Commands(capsys, monkeypatch)
