"""Leaderboards as other programs write them: read by measure, ranked by the one that is meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import leaderboards
from exampp.formats.detect import detect

RANKS = {"a": 2.0, "b": 1.0}
TREC = "runid                 \tall\t{0}\nmap                   \tall\t{1}\n"
LONG = [("a", "1", "m", 0.25), ("a", "2", "m", 0.5), ("b", "1", "m", 1.0), ("b", "2", "m", 0.5)]
TOTALS = [("a", "all", "m", 0.375), ("b", "all", "m", 0.75)]


def table(rows: list[tuple[str, str, str, float]], *order: int) -> str:
    return "".join("\t".join(str(row[place]) for place in order) + "\n" for row in rows)


LAYOUTS = {
    "trec_eval, several": TREC.format("a", 0.1) + TREC.format("b", 0.2),
    "trec_eval, grep": "a.run map     all     0.1794\nb.run map     all     0.3\n",
    "ir_measures": table(LONG + TOTALS, 0, 1, 2, 3),
    "tot": table(LONG + TOTALS, 0, 2, 1, 3),
    "rag4reports": table(LONG + TOTALS, 1, 0, 2, 3),
    "named, totals": "run_id\tquery_id\tmeasure\tvalue\n" + table(TOTALS, 0, 1, 2, 3),
    "named, topics": "measure\tvalue\tsystem\ttopic\n" + table(LONG, 2, 3, 0, 1),
    "named, commas": "Run ID,Measure,Value\na,m,.1\nb,m,.2\n",
    "jsonl": "".join(
        json.dumps({"run_id": r, "topic_id": t, "measure": m, "value": v}) + "\n"
        for r, t, m, v in LONG
    ),
    "workbench": "method\tExamCover\t+/-\tstd-err\n_overall_\t0.9\t+/-\t0\na\t0.4\t+/-\t0.01\n"
    "b\t0.500\t+/-\t0.010",
    "workbench results": '{"method": "a", "examScore": 0.1}\n{"method": "b", "examScore": 0.2}\n'
    '{"method": "_overall_", "examScore": 1}\n',
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_ranks(tmp_path: Path, layout: str) -> None:
    path = file(tmp_path, LAYOUTS[layout], "f")
    assert leaderboards.read(path) == RANKS
    assert detect(path) == "leaderboard"


def test_a_measure_is_chosen_by_its_name(tmp_path: Path) -> None:
    content = "a\tall\tP@10\t0.5\nb\tall\tP@10\t0.6\na\tall\tRR\t0.2\nb\tall\tRR\t0.1\n"
    path = file(tmp_path, content, "eval.txt")
    error = fault(lambda p: iter(leaderboards.read(p)), path)
    assert str(error) == (f"{path}: holds several measures: P@10, RR. Choose one: eval.txt:P@10")
    assert leaderboards.read(f"{path}:P@10") == RANKS
    assert leaderboards.read(f"{path}:RR") == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match=r"has no measure 'MAP'. It has P@10, RR"):
        leaderboards.read(f"{path}:MAP")
    own = file(tmp_path, "a\t1\nb\t2\n", "ranks:RR")
    assert leaderboards.read(own) == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match=r"names no measures. Leave :x out"):
        leaderboards.read(f"{own}:x")


@pytest.mark.parametrize(
    "lines",
    [
        ("map\tall\t0.1\n", "map\tall\t0.2\n"),
        (TREC.format("a", 0.1), TREC.format("b", 0.2)),
        ("map\t0.1\n", "map\t0.2\n"),
        ("1\tmap\t0.1\nall\tmap\t0.1\n", "1\tmap\t0.2\nall\tmap\t0.2\n"),
    ],
)
def test_a_folder_of_outputs_names_its_systems(tmp_path: Path, lines: tuple[str, str]) -> None:
    folder = tmp_path / "evals"
    folder.mkdir()
    file(folder, lines[0], "a.eval")
    file(folder, lines[1], "b.run.txt")
    assert leaderboards.read(folder) == RANKS
    assert leaderboards.read(f"{folder}:map") == RANKS
    file(folder, "free text of no columns", "c.txt")
    with pytest.raises(InputError, match=r"c\.txt: holds no scores of one system"):
        leaderboards.read(folder)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (table(LONG, 0, 1, 2, 3), "which column holds the topics?"),
        (
            "system\ttopic\tmeasure\tvalue\n" + table(LONG[:3], 0, 1, 2, 3),
            "system 'b' has no m of topic '2', which others have",
        ),
        (table(TOTALS * 2, 0, 1, 2, 3), "system 'a' has m twice"),
        (table(TOTALS, 0, 1, 2, 3).replace("0.75", "high"), "'high' is not a finite number"),
    ],
)
def test_what_cannot_be_ranked_is_refused(tmp_path: Path, content: str, what: str) -> None:
    path = file(tmp_path, content, "f")
    assert what in str(fault(lambda p: iter(leaderboards.read(p)), path))


def test_real_outputs_of_autojudge(shared_data: Path) -> None:
    truth = shared_data / "autojudge" / "kiddie" / "eval" / "kiddie_fake.eval.ir_measures.txt"
    assert leaderboards.read(truth) == {"run1": 1, "run2": 2, "run3": 3, "run4": 4}
    ours = shared_data / "autojudge" / "sample-output" / "mini.eval.txt"
    assert leaderboards.read(ours) == {"run1": 2, "run2": 1, "run3": 3.5, "run4": 3.5}
