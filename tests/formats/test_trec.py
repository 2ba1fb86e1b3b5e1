from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import trec
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.records import Judgment, RankedPassage


def test_lines_are_split_at_any_whitespace(tmp_path: Path) -> None:
    path = file(tmp_path, "\ufeffq1 Q0 d1 1 2.5 a\r\nq1\tQ0\td2  0 -1e-3 a \n\nq1 0 d1 +3 7 b")
    assert list(trec.read_run(path)) == [
        RankedPassage("q1", "d1", 1, 2.5, "a"),
        RankedPassage("q1", "d2", 0, -0.001, "a"),
        RankedPassage("q1", "d1", 3, 7.0, "b"),
    ]


COLUMNS = "the 6 of a run (query Q0 passage rank score system)"


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        ("q1 Q0 d3 3 1.0", "", f"5 columns instead of {COLUMNS}"),
        ("q1 Q0 d3 3 1.0 my run", "", f"7 columns instead of {COLUMNS}"),
        ("q1", "", f"1 column instead of {COLUMNS}"),
        ("q1 Q0 d3 3.0 1.0 a", "rank", "'3.0' is not an integer"),
        ("q1 Q0 d3 9999999999 1 a", "rank", "'9999999999' is beyond +-2147483647"),
        ("q1 Q0 d3 3 NaN a", "score", "'NaN' is not a finite number"),
        ("q1 Q0 d3 3 -inf a", "score", "'-inf' is not a finite number"),
        ("q1 Q0 d3 3 high a", "score", "'high' is not a finite number"),
        ("\ufeffq1 Q0 d3 3 1 a", "query", "a byte-order mark inside the file"),
        (b"q1 Q0 d\xe9 3 1 a", "passage", "not UTF-8 text"),
        (
            "q1 Q0 d1 3 1.0 a",
            "passage",
            "passage 'd1' of query 'q1' and system 'a' was already on line 1",
        ),
    ],
)
def test_bad_lines(tmp_path: Path, line: str | bytes, field: str, what: str) -> None:
    data = line.encode() if isinstance(line, str) else line
    path = file(tmp_path, b"q1 Q0 d1 1 2.0 a\n\n" + data + b"\nq2 Q0 d1 1 1.0 a\n")
    error = fault(trec.read_run, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    skipped = Skipped()
    assert [ranked.query_id for ranked in trec.read_run(path, skipped)] == ["q1", "q2"]
    assert [(error.line, error.file) for error in skipped.first] == [(3, str(path))]


def test_a_repetition_is_found_far_from_its_first_line(tmp_path: Path) -> None:
    rows = [f"q{n % 7} Q0 d{n // 7} {n} {-n} a" for n in range(5000)]
    assert len(list(trec.read_run(file(tmp_path, "\n".join(rows))))) == 5000
    error = fault(trec.read_run, file(tmp_path, "\n".join([*rows, rows[41]])))
    assert (error.line, "was already on line 42" in error.what) == (5001, True)


def test_a_line_of_50_megabytes(tmp_path: Path) -> None:
    path = file(tmp_path, "q1 Q0 d1 1 2.0 a\n" + "x" * 50_000_000)
    error = fault(trec.read_run, path)
    assert error.line == 2
    assert len(str(error)) < 300


def test_the_written_line(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    trec.write_run(path, [RankedPassage("q/1", "d", 3, 1, "s")])
    assert path.read_bytes() == b"q/1 Q0 d 3 1.0 s\n"


@pytest.mark.parametrize("bad", ["", "a b", "a\u00a0b", "a\n", "\ufeffa", "\x1fa"])
@pytest.mark.parametrize("field", ["query_id", "passage_id", "system"])
def test_ids_that_cannot_be_a_column_are_not_written(tmp_path: Path, bad: str, field: str) -> None:
    names = {"query_id": "q", "passage_id": "d", "system": "s", field: bad}
    ranked: dict[str, Any] = {"rank": 1, "score": 1.0, **names}
    path = tmp_path / "a.run"
    with pytest.raises(InputError, match="cannot be a column of a TREC file"):
        trec.write_run(path, [RankedPassage(**ranked)])
    assert not path.exists()


def test_a_score_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has the score nan"):
        trec.write_run(tmp_path / "a.run", [RankedPassage("q", "d", 1, float("nan"), "s")])


METADATA = "# ir_metadata.start\n# tag: bm25\n# actor:\n#   team: t\n# ir_metadata.end\n"


def test_metadata_before_the_first_line_is_passed_over(tmp_path: Path) -> None:
    path = file(tmp_path, METADATA + "q1 Q0 d1 1 2.5 a\n# Q0 d1 1 2.5 a\n", "a.run")
    assert detect(path) == "run"
    found = list(trec.read_run(path))
    assert [one.query_id for one in found] == ["q1", "#"]
    bad = file(tmp_path, METADATA + "q1 Q0 d1 1 2.5\n", "b.run")
    assert fault(trec.read_run, bad).line == 6
    assert "has only metadata" in str(fault(trec.read_run, file(tmp_path, METADATA, "c.run")))
    # other comments are no lines of a run
    assert fault(trec.read_run, file(tmp_path, "# by me\nq1 Q0 d1 1 2.5 a\n", "d.run")).line == 1


# ---- qrels ---------------------------------------------------------------------------------------


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
        f"{path}:2, passage: the judgment of passage 'd1' for query 'q' was already on line 1. "
        "Remove one of them"
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
            "the judgment of passage 'd1' for query 'q' was already on line 1",
        ),
        (
            "q 1 d1 0",
            "passage",
            "the judgment of passage 'd1' for query 'q' was already on line 1",
        ),
    ],
)
def test_bad_lines_of_qrels(tmp_path: Path, line: str, field: str, what: str) -> None:
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
        "the judgment of passage 'd1' for query 'q' and subtopic '2' was already on line 2",
        "Remove one of them",
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
def test_ids_that_cannot_be_a_column_are_not_written_of_qrels(
    tmp_path: Path, judgment: Judgment, field: str
) -> None:
    with pytest.raises(InputError) as caught:
        trec.write_qrels(tmp_path / "a.qrels", [judgment])
    assert caught.value.field == field


def test_real_qrels_are_written_byte_for_byte(tmp_path: Path, shared_data: Path) -> None:
    for original in sorted((shared_data / "dl19" / "expected").glob("*.qrels")):
        copy = tmp_path / original.name
        trec.write_qrels(copy, trec.read_qrels(original))
        assert copy.read_bytes() == original.read_bytes()
