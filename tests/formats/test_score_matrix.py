"""Scores of systems by topic, from a matrix and from the tables of other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from exampp.errors import InputError
from exampp.formats.leaderboards import is_table
from exampp.formats.leaderboards import read_matrix as read


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_matrix_of_systems_and_lines_of_topics(tmp_path: Path) -> None:
    found = read(write(tmp_path, "bm25,dense\n.1,.2\n.3,.4\n.5,1e-1\n"))
    assert found == ("", ("bm25", "dense"), ("1", "2", "3"), ((0.1, 0.3, 0.5), (0.2, 0.4, 0.1)))


@pytest.mark.parametrize("head", ["topic", "qid", "Query ID", ""])
def test_a_first_column_of_topics(tmp_path: Path, head: str) -> None:
    found = read(write(tmp_path, f"{head}\ta\tb\nq7\t1\t0\nq9\t0\t0.5\n", "scores.tsv"))
    assert found.topics == ("q7", "q9")
    assert found.values == ((1, 0), (0, 0.5))


ROWS = "run,topic,measure,value\n" + "".join(
    f"{run},{topic},{measure},{value}\n"
    for run, topic, measure, value in (
        *(("a", "1", "AP", 0.1), ("a", "2", "AP", 0.2), ("a", "all", "AP", 0.15)),
        *(("b", "2", "AP", 0.4), ("b", "1", "AP", 0.3), ("b", "1", "RR", 1.0)),
    )
)


def test_rows_of_other_programs(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    found = read(f"{path}:AP")
    assert found == ("AP", ("a", "b"), ("1", "2"), ((0.1, 0.2), (0.3, 0.4)))


@pytest.mark.parametrize(
    ("text", "measure", "said"),
    [
        (ROWS, "", r"several measures: AP, RR"),
        (ROWS, ":P", r"no measure 'P'"),
        (ROWS.replace("b,1,AP,0.3\n", ""), ":AP", r"'b' has no AP of topic '1'"),
        ("a,b\n1,2\n1\n", "", r":3: 1 columns, but the header has 2"),
        ("a,b\n1,2\n1,x\n", "", r":3.*b"),
        ("a,b\n1,2\n1,nan\n", "", r":3.*b"),
        ("a,a\n1,2\n", "", r"'a' has two columns"),
        ("topic,a,b\nq,1,2\nq,1,2\n", "", r"'q' has two lines"),
        ("a,b\n1,2\n", ":AP", r"Leave :AP out"),
        ("just some words here\nand more\n", "", r"holds no scores of topics"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, measure: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=said):
        read(f"{path}{measure}")


def test_graded_passages_and_collections_are_no_tables(tmp_path: Path) -> None:
    assert is_table(write(tmp_path, "a,b\n1,2\n"))
    assert not is_table(write(tmp_path, '["q", []]\n', "graded.jsonl"))
    assert not is_table(write(tmp_path, "SQLite format 3\0", "my.exam"))
    assert not is_table(tmp_path / "missing.csv")
