"""A collection graded in parts, each on a copy of its own, is the collection graded in one run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading import merge
from exampp.records.gradebook import MISSING
from exampp.store.merge import OtherCollection


def rate(ask: Request) -> str:
    return str((len(ask.item) + 2 * len(ask.passage)) % 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    exams.make(tmp_path).close()
    return tmp_path / "my.exam"


def graded(path: Path, shard: str | None = None) -> ScriptedGrader:
    grader = ScriptedGrader(rate)
    with exampp.Collection(path) as exam:
        exam.grade(grader, shard=shard)
    return grader


def cells(path: Path) -> set[tuple[object, ...]]:
    with exampp.Collection(path) as exam:
        return {
            (book.query_id, item, passage, int(book.ratings[row, column]))
            for book in exam.grades().gradebook.queries
            for column, item in enumerate(book.item_ids)
            for row, passage in enumerate(book.passage_ids)
        }


def test_shards_some_twice_and_cut_off_in_between_are_one_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [Path(shutil.copy(path, tmp_path / f"shard-{n}.exam")) for n in range(1, 6)]
    for number, shard in enumerate(shards, 1):
        graded(shard, f"{number}/5")
    whole = Path(shutil.copy(path, tmp_path / "whole.exam"))
    graded(whole)
    merge_together = merge._merge_together
    monkeypatch.setattr(merge, "MOST_OTHERS", 3)

    def cut_off(connection: Connection, copies: Sequence[OtherCollection], at: str) -> Any:
        if len(copies) < 3:
            raise KeyboardInterrupt
        return merge_together(connection, copies, at)

    with exampp.Collection(path) as exam:
        expected = exam.merge(*shards, *shards[:2], dry_run=True)
        with monkeypatch.context() as patch:
            patch.setattr(merge, "_merge_together", cut_off)
            with pytest.raises(KeyboardInterrupt):
                exam.merge(*shards)
        # the first three are here; the others come when all are merged again, in whatever order
        assert graded_cells(path) < graded_cells(whole)
        exam.merge(*reversed(shards), shards[3])
        assert exam.merge(*shards).changes == 0
    assert cells(path) == cells(whole)
    assert {one.things: one.added for one in expected.counts}["grades"] == len(graded_cells(whole))


def graded_cells(path: Path) -> set[tuple[object, ...]]:
    return {cell for cell in cells(path) if cell[3] != MISSING}


def test_a_passage_is_in_one_shard_with_all_its_items(path: Path, tmp_path: Path) -> None:
    parts = []
    for number in (1, 2):
        copy = Path(shutil.copy(path, tmp_path / f"{number}.exam"))
        parts.append({ask.passage for ask in graded(copy, f"{number}/2").calls})
    assert not parts[0] & parts[1]
    whole = graded(Path(shutil.copy(path, tmp_path / "whole.exam")))
    assert parts[0] | parts[1] == {ask.passage for ask in whole.calls}
    # what one shard leaves is due without any
    rest = graded(tmp_path / "1.exam")
    assert {ask.passage for ask in rest.calls} == parts[1]


@pytest.mark.parametrize("wrong", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "", "1/3/5", 2])
def test_no_such_shard(path: Path, wrong: str) -> None:
    with (
        exampp.Collection(path) as exam,
        pytest.raises(exampp.InputError, match=r"shard is .*1/16 to 16/16"),
    ):
        exam.grading(ScriptedGrader("4"), shard=wrong)
