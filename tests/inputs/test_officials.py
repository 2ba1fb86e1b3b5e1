"""Official leaderboards out of memory are those that a file of the same content is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import exampp
from exampp.errors import InputError
from exampp.inputs.officials import read_officials

SCORES = {"bm25": 0.25, "dense": 0.5, "sparse": 0.25}
RANKS = {"bm25": 2.5, "dense": 1.0, "sparse": 2.5}
ROWS = [{"system": system, "nDCG@10": score} for system, score in SCORES.items()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table of systems and scores."""
    path = tmp_path / "official.tsv"
    path.write_text("system\tnDCG@10\n" + "".join(f"{s}\t{v}\n" for s, v in SCORES.items()))
    return path


@pytest.mark.parametrize(
    "data",
    [
        pandas.DataFrame(ROWS),
        pandas.DataFrame(ROWS)[["nDCG@10", "system"]],
        polars.DataFrame(ROWS),
        polars.DataFrame(ROWS).to_arrow(),
        ROWS,
        iter(ROWS),
        RANKS,
        pandas.DataFrame({"Run_ID": list(RANKS), "Rank": list(RANKS.values())}),
        {"system": list(SCORES), "score": list(SCORES.values())},
        pandas.DataFrame(ROWS).to_dict("series"),
        {"rank": tuple(RANKS.values()), "run": tuple(RANKS)},
        [{"system": s, "measure": "MAP", "value": v} for s, v in SCORES.items()],
        pandas.DataFrame(
            [
                {"run": s, "topic": t, "metric": "MAP", "score": v + d}
                for s, v in SCORES.items()
                for t, d in (("1", 0.1), ("2", -0.1))
            ]
        ),
    ],
    ids=[
        "pandas",
        "other order",
        "polars",
        "arrow",
        "dicts",
        "iterable",
        "ranks",
        "a rank column",
        "a dict of columns",
        "a dict of series",
        "a dict of ranks",
        "a measure",
        "a measure of topics",
    ],
)
def test_rows_are_a_leaderboard(data: object, file: Path) -> None:
    assert read_officials(file) == {"official.tsv": RANKS}
    assert read_officials(data) == {"official": RANKS}


def test_several_have_names(file: Path, tmp_path: Path) -> None:
    given = {"TREC": RANKS, "MAP": polars.DataFrame(ROWS), "file": file}
    assert read_officials(given) == {"TREC": RANKS, "MAP": RANKS, "file": RANKS}
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"bm25": 1}))
    assert read_officials([file, str(other)]) == {"official.tsv": RANKS, "other.json": {"bm25": 1}}
    assert read_officials(sorted(tmp_path.glob("o*"))) == read_officials([file, other])
    assert read_officials(iter([file])) == {"official.tsv": RANKS}
    assert read_officials({"run": ROWS}) == {"run": RANKS}
    assert read_officials(()) == read_officials({}) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"bm25": 0.5}, r"official:1, rank: the rank of system 'bm25' is 0\.5.*call the column"),
        (
            pandas.DataFrame({"system": ["a", "a"], "score": [1, 2]}),
            r"official:2.*'a' was on line 1",
        ),
        (pandas.DataFrame({"system": ["a"], "score": [1], "n": [1]}), r"two columns.*'score', 'n'"),
        (pandas.DataFrame({"team": ["a"], "score": [1]}), r"two columns.*'team', 'score'"),
        (
            pandas.DataFrame({"system": ["a", "b"], "score": [1, None]}),
            r"official:2, score.*number",
        ),
        (
            pandas.DataFrame({"system": ["a"], "score": ["1"]}),
            r"official:1, score: must be a number",
        ),
        (pandas.DataFrame({"system": ["a"], "MRR rank": [1]}), r"may mean ranks or scores"),
        (
            pandas.DataFrame({"system": [7], "score": [1]}),
            "system: '7' names no system",
        ),
        ({"TREC": {"a": True}}, r"official\['TREC'\]:1, rank: must be a number"),
        (pandas.DataFrame(), "two columns"),
        (None, "official: NoneType has no rows"),
        (0.5, "official: float has no rows"),
    ],
)
def test_what_is_none_is_said(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_officials(data)


def test_leaderboards_of_exampp(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q": "what is it"},
            passages={"p1": "1", "p2": "2", "p3": "3"},
            bank={"q": ["1", "2", "3"]},
            runs={f"s{at}": {"q": [f"p{at}"]} for at in (1, 2, 3)},
        )
        exam.grade(lambda item, passage: 4 * (int(item.text) <= int(passage.text)), name="up")
        exam.grade(lambda item, passage: 4 * (int(item.text) >= int(passage.text)), name="down")
        up, down = exam.grades("up"), exam.grades("down")
        board = down.evaluate(["Cover@5"])
        ranks = {"s1": 1.0, "s2": 2.0, "s3": 3.0}
        for given in (board, board.to_frame(), board.to_polars()):
            assert read_officials(given) == {"official": ranks}
        assert read_officials({"down": board, "other": board}) == {"down": ranks, "other": ranks}
        assert "-1.00" in str(up.correlate(board, ["Cover@5"]))
        with pytest.raises(InputError, match=r"official: holds several measures: Cover@5, nDCG@5"):
            read_officials(down.evaluate(["Cover@5", "nDCG@5"]))
        with pytest.raises(InputError, match="Cover@5 \u22652, Cover@5 \u22654"):
            read_officials(down.evaluate(["Cover@5"], min_rating=[2, 4]))
