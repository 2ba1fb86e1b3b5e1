"""Collections that several tests of the pages look at."""

from __future__ import annotations

from pathlib import Path

import pytest

import exampp


@pytest.fixture(scope="session")
def dl19_exam(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TREC DL 2019 exam as a collection; only for looking at."""
    path = tmp_path_factory.mktemp("dl19") / "dl19.exam"
    folder = shared_data / "dl19"
    with exampp.Collection.create(path) as collection:
        names = ("queries.json", "questions.jsonl.gz", "graded.jsonl.gz")
        collection.import_files(*(folder / name for name in names))
    return path
