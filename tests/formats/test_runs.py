from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import COMPRESSIONS, IDS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import trec
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.records import RankedPassage


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
            "passage 'd1' of query 'q1' and system 'a' was on line 1 already",
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
    assert (error.line, "was on line 42 already" in error.what) == (5001, True)


def test_a_line_of_50_megabytes(tmp_path: Path) -> None:
    path = file(tmp_path, "q1 Q0 d1 1 2.0 a\n" + "x" * 50_000_000)
    error = fault(trec.read_run, path)
    assert error.line == 2
    assert len(str(error)) < 300


@in_one_folder
@given(
    st.lists(st.builds(RankedPassage, IDS, IDS, st.integers(-9, 9999), st.floats(-1e9, 1e9), IDS))
)
def test_what_is_written_reads_back(tmp_path: Path, rankeds: list[RankedPassage]) -> None:
    unique = list({(one.query_id, one.passage_id, one.system): one for one in rankeds}.values())
    path = tmp_path / "written.run"
    trec.write_run(path, unique)
    assert (list(trec.read_run(path)) if unique else []) == unique


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_runs(tmp_path: Path, ending: str) -> None:
    rankeds = [RankedPassage("q", f"d{n}", n, 0.1 * n, "s") for n in range(100)]
    path = tmp_path / f"a.run{ending}"
    trec.write_run(path, rankeds)
    assert list(trec.read_run(path)) == rankeds


def test_the_written_line(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    trec.write_run(path, [RankedPassage("q/1", "d", 3, 1, "s")])
    assert path.read_bytes() == b"q/1 Q0 d 3 1.0 s\n"


@pytest.mark.parametrize("bad", ["", "a b", "a\u00a0b", "a\n", "\ufeffa", "\x1fa"])
@pytest.mark.parametrize("field", ["query_id", "passage_id", "system"])
def test_ids_that_cannot_be_a_column_are_not_written(tmp_path: Path, bad: str, field: str) -> None:
    good = {"query_id": "q", "passage_id": "d", "rank": 1, "score": 1.0, "system": "s"}
    path = tmp_path / "a.run"
    with pytest.raises(InputError, match="cannot be a column of a TREC file"):
        trec.write_run(path, [RankedPassage(**(good | {field: bad}))])  # type: ignore[arg-type]
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
    assert "nothing but metadata" in str(fault(trec.read_run, file(tmp_path, METADATA, "c.run")))
    # other comments are no lines of a run
    assert fault(trec.read_run, file(tmp_path, "# by me\nq1 Q0 d1 1 2.5 a\n", "d.run")).line == 1
