from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import IDS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import trec
from exampp.formats.lines import Skipped
from exampp.records import Judgment

SUBTOPICS = "q 1 d1 1\nq 2 d1 0\n"


def test_judgments_in_file_order(tmp_path: Path) -> None:
    path = file(tmp_path, "q/2 0 d1 3\r\nq/2\tQ0\td2\t-2\nq 0 d1 0\n")
    assert list(trec.read_qrels(path)) == [
        Judgment("q/2", "d1", 3),
        Judgment("q/2", "d2", -2),
        Judgment("q", "d1", 0),
    ]


def test_the_second_column_is_a_subtopic_only_on_request(tmp_path: Path) -> None:
    path = file(tmp_path, SUBTOPICS)
    assert list(trec.read_qrels(path, subtopics=True)) == [
        Judgment("q", "d1", 1, "1"),
        Judgment("q", "d1", 0, "2"),
    ]
    assert str(fault(trec.read_qrels, path)) == (
        f"{path}:2, passage: the judgment of passage 'd1' for query 'q' was on line 1 already. "
        "Remove one of the two"
    )


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        (
            "q 0 d2",
            "",
            "3 columns instead of the 4 of qrels (query iteration passage relevance)",
        ),
        (
            "q 0 d2 1 x",
            "",
            "5 columns instead of the 4 of qrels (query iteration passage relevance)",
        ),
        ("q 0 d2 1.0", "relevance", "'1.0' is not an integer"),
        ("q 0 d2 yes", "relevance", "'yes' is not an integer"),
        ("q 0 d2 40000", "relevance", "'40000' is beyond +-32767"),
        (
            "q 0 d1 1",
            "passage",
            "the judgment of passage 'd1' for query 'q' was on line 1 already",
        ),
        (
            "q 1 d1 0",
            "passage",
            "the judgment of passage 'd1' for query 'q' was on line 1 already",
        ),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, field: str, what: str) -> None:
    path = file(tmp_path, f"q 0 d1 1\n{line}\nq 0 d9 1\n")
    error = fault(trec.read_qrels, path)
    assert (error.line, error.field, error.what) == (2, field, what)
    skipped = Skipped()
    assert [judgment.passage_id for judgment in trec.read_qrels(path, skipped)] == ["d1", "d9"]
    assert skipped.count == 1


def test_a_subtopic_judged_twice(tmp_path: Path) -> None:
    error = fault(trec.read_qrels, file(tmp_path, SUBTOPICS + "q 2 d1 0\n"), subtopics=True)
    assert (error.line, error.what, error.hint) == (
        3,
        "the judgment of passage 'd1' for query 'q' and subtopic '2' was on line 2 already",
        "Remove one of the two",
    )


def test_the_written_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    trec.write_qrels(path, [Judgment("q", "d", 3), Judgment("q", "d", -1, "7")])
    assert path.read_bytes() == b"q 0 d 3\nq 7 d -1\n"
    trec.write_qrels(path, [Judgment("q", "d", 3)], iteration="exam")
    assert path.read_bytes() == b"q exam d 3\n"


@pytest.mark.parametrize(
    ("judgment", "field"),
    [
        (Judgment("q 1", "d", 3), "query"),
        (Judgment("q", "d\u2003", 3), "passage"),
        (Judgment("q", "d", 3, ""), "subtopic"),
    ],
)
def test_ids_that_cannot_be_a_column_are_not_written(
    tmp_path: Path, judgment: Judgment, field: str
) -> None:
    with pytest.raises(InputError) as caught:
        trec.write_qrels(tmp_path / "a.qrels", [judgment])
    assert caught.value.field == field


@in_one_folder
@given(st.lists(st.builds(Judgment, IDS, IDS, st.integers(-9, 9), IDS), min_size=1))
def test_what_is_written_reads_back(tmp_path: Path, judgments: list[Judgment]) -> None:
    unique = list(
        {(one.query_id, one.subtopic_id, one.passage_id): one for one in judgments}.values()
    )
    path = tmp_path / "written.qrels"
    trec.write_qrels(path, unique)
    assert list(trec.read_qrels(path, subtopics=True)) == unique


def test_real_qrels_are_written_byte_for_byte(tmp_path: Path, shared_data: Path) -> None:
    for original in sorted((shared_data / "dl19" / "expected").glob("*.qrels")):
        copy = tmp_path / original.name
        trec.write_qrels(copy, trec.read_qrels(original))
        assert copy.read_bytes() == original.read_bytes()
