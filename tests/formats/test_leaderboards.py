from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import COMPRESSIONS, SPOKEN, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import leaderboards
from exampp.formats.detect import detect

RANKS = {"a": 1.0, "b": 2.5, "c": 2.5, "d": 4.0}


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1, "b": 2.5, "c": 2.5, "d": 4}',
        '{\n "a": 1,\n "b": 2.5,\n "c": 2.5,\n "d": 4.0\n}\n',
        "a\t1\nb\t2.5\nc\t2.5\nd\t4\n",
        "\ufeffsystem\trank\r\na\t1\r\n\r\nb\t2.5\r\nc\t2.5\r\nd\t4",
        'Run,Ranking\na,1\nb, 2.5\n"c",2.5\nd,4\n',
        "a 1\nb   2.5\nc\x0b2.5\n d 4\n",
        "system\tscore\nd\t-1\nb\t0.5\nc\t.50\na\t7e2\n",
        "run\t#\na\t1\nb\t2.5\nc\t2.5\nd\t4\n",
        "team,Place\na,1\nb,2.5\nc,2.5\nd,4\n",
        "run position\na 1\nb 2.5\nc 2.5\nd 4\n",
        "system nDCG@10\nd 0.1\nc 0.2\nb 0.2\na 0.3\n",
        "run\tMRR\nd\t1\nc\t2\nb\t2\na\t3\n",
        '{"system": ["a", "b", "c", "d"], "score": [4, 2, 2, 1]}',
        json.dumps({"System": dict(enumerate("abcd")), "rank": [1, 2.5, 2.5, 4]}, indent=1),
        json.dumps([{"run": one, "P@5": of} for one, of in zip("abcd", (3, 2, 2, 1), strict=True)]),
        '{"run": "d", "MRR": 0.1}\n{"run": "c", "MRR": 0.2}\n{"run": "b", "MRR": 0.2}\n'
        '{"run": "a", "MRR": 1}\n',
    ],
)
def test_every_layout_gives_the_same_ranks(tmp_path: Path, content: str) -> None:
    assert leaderboards.read(file(tmp_path, content)) == RANKS


@pytest.mark.parametrize("name", ["rank_score", "Reciprocal Rank", "Official Rank", "position@5"])
def test_a_header_that_may_mean_ranks_or_scores_is_refused(tmp_path: Path, name: str) -> None:
    path = file(tmp_path, f"\nsystem,{name}\na,1\nb,2\n")
    with pytest.raises(InputError, match=r"`rank` .*`score`") as caught:
        leaderboards.read(path)
    assert (caught.value.line, caught.value.field) == (2, "column 2")


def test_one_of_several_columns_of_json_is_named(tmp_path: Path) -> None:
    path = file(tmp_path, '{"system": ["a", "b"], "P@5": [1, 2], "MRR": [0.5, 0.1]}')
    with pytest.raises(InputError, match="FILE:MEASURE"):
        leaderboards.read(path)
    assert leaderboards.read(f"{path}:MRR") == {"a": 1, "b": 2}
    assert leaderboards.read(f"{path}:P@5") == {"b": 1, "a": 2}


def test_names_with_spaces_between_tabs_or_commas(tmp_path: Path) -> None:
    ranks = {"my run, 2": 1.0, "b": 2.0}
    assert leaderboards.read(file(tmp_path, "my run, 2\t1\nb\t2\n")) == ranks
    assert leaderboards.read(file(tmp_path, '"my run, 2",1\nb,2\n')) == ranks


@pytest.mark.parametrize(
    ("scores", "ranks"),
    [
        ({}, {}),
        ({"a": 0.5}, {"a": 1}),
        ({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2, "c": 2}),
        ({"a": 1, "b": 3, "c": 2, "d": 3}, {"a": 4, "b": 1.5, "c": 3, "d": 1.5}),
    ],
)
def test_ranks_of_scores(scores: dict[str, float], ranks: dict[str, float]) -> None:
    assert leaderboards.ranks_of(scores) == ranks
    assert list(leaderboards.ranks_of(scores)) == list(scores)


def read_systems(path: Path) -> Iterator[str]:
    yield from leaderboards.read(path)


@pytest.mark.parametrize(
    ("content", "line", "field", "what"),
    [
        ('{"a": 1,\n"b": NaN}', 2, "b", "'nan' is not a finite number"),
        ('{"a": 1,\n"b": -Infinity}', 2, "b", "'-inf' is not a finite number"),
        ('{"a": 1,\n"b": null}', 2, "b", "must be a number"),
        ('{"a": 1,\n"b": "2"}', 2, "b", "must be a number"),
        ('{"a": 1,\n"b": true}', 2, "b", "must be a number"),
        ('{"a": 1,\n"": 2}', 2, "system", "'' is not a system"),
        ('{"a": 1,\n"b": 2,\n"a": 3}', 3, "system", "system 'a' was already on line 1"),
        ('{"a": 1,\n"b": 0.73}', 2, "rank", "rank 0.73 of system 'b' is below 1"),
        (
            '{"a": 1,\n"b": ' + "9" * 400 + "}",
            2,
            "b",
            "'" + "9" * 57 + "...' is not a finite number",
        ),
        ('{"ranks": {"a": 1}}', 1, "ranks", "must be a number"),
        ('[["a", 1]]', 1, "", "broken JSON (expected '{')"),
        ("a\t1\nb\tnan\n", 2, "column 2", "'nan' is not a finite number"),
        ("a\tnan\nb\t1\n", 1, "column 2", "'nan' is not a finite number"),
        ("a\tnull\nb\t1\n", 1, "column 2", "'null' is not a finite number"),
        ("a\t\nb\t1\n", 1, "column 2", "'' is not a finite number"),
        ("system\trank\na\t1\nb\tx\n", 3, "column 2", "'x' is not a finite number"),
        ("system\trank\na\t1\n\nb\t2\na\t1\n", 5, "system", "system 'a' was already on line 2"),
        ("system\tscore\na\t1\na\t2\n", 3, "system", "system 'a' was already on line 2"),
        ("system\trank\na\t0\n", 2, "rank", "rank 0 of system 'a' is below 1"),
        ("a b 1\nc 2\n", 1, "", "3 columns instead of 2 (system, rank)"),
        ("a\t1\nb 2\n", 2, "", "1 column instead of 2 (system, rank)"),
        ("a 1\nb c 2\n", 2, "", "3 columns instead of 2 (system, rank)"),
        ('a,1\n"b,2\n', 2, "", "broken CSV (unexpected end of data)"),
        ("a\t1\n\t2\n", 2, "system", "'' is not a system"),
        (b"a\t1\n\xff\t2\n", 2, "", "not UTF-8 text (byte 1 of the line)"),
    ],
)
def test_bad_leaderboards(
    tmp_path: Path, content: str | bytes, line: int, field: str, what: str
) -> None:
    path = file(tmp_path, content)
    error = fault(read_systems, path)
    assert (error.line, error.field, error.what) == (line, field, what)


NAMES = SPOKEN.filter(lambda name: name.split() == [name] and "\t" not in name)


@in_one_folder
@given(st.dictionaries(NAMES, st.floats(1, 1e6)), st.sampled_from(list(COMPRESSIONS)))
def test_any_names_and_ranks(tmp_path: Path, ranks: dict[str, float], ending: str) -> None:
    lines = "".join(f"{system}\t{rank!r}\n" for system, rank in ranks.items())
    data = COMPRESSIONS[ending](f"system\trank\n{lines}".encode())
    assert leaderboards.read(file(tmp_path, data, f"leaderboard.tsv{ending}")) == ranks


def test_the_real_leaderboard(shared_data: Path) -> None:
    path = shared_data / "dl19" / "official-leaderboard.json"
    ranks = leaderboards.read(path)
    assert ranks == json.loads(path.read_bytes())
    assert (len(ranks), ranks["idst_bert_p1"]) == (36, 1.0)


@pytest.mark.parametrize("name", ["board.json", "board.jsonl", "board.csv", "board.tsv"])
@pytest.mark.parametrize("content", [b"\xed\xa0\n", b"{\xff}\n", b"\x1c\n"])
def test_what_is_no_text_is_a_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError):
        leaderboards.read(path)


# ---- score tables --------------------------------------------------------------------------------


BY_SCORE = {"a": 2.0, "b": 1.0}
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
def test_every_layout_gives_the_same_ranks_of_tables(tmp_path: Path, layout: str) -> None:
    path = file(tmp_path, LAYOUTS[layout], "f")
    assert leaderboards.read(path) == BY_SCORE
    assert detect(path) == "leaderboard"


def test_a_measure_is_chosen_by_its_name(tmp_path: Path) -> None:
    content = "a\tall\tP@10\t0.5\nb\tall\tP@10\t0.6\na\tall\tRR\t0.2\nb\tall\tRR\t0.1\n"
    path = file(tmp_path, content, "eval.txt")
    error = fault(lambda p: iter(leaderboards.read(p)), path)
    assert str(error) == (
        f"{path}: the file has several measures: P@10, RR. Choose one: eval.txt:P@10"
    )
    assert leaderboards.read(f"{path}:P@10") == BY_SCORE
    assert leaderboards.read(f"{path}:RR") == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match=r"unknown measure 'MAP'. Available: P@10, RR"):
        leaderboards.read(f"{path}:MAP")
    own = file(tmp_path, "a\t1\nb\t2\n", "ranks:RR")
    assert leaderboards.read(own) == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match=r"the file has no measure names. Remove :x"):
        leaderboards.read(f"{own}:x")
    named = file(tmp_path, "run,MAP\na,.1\nb,.2\n", "official.csv")
    assert leaderboards.read(f"{named}:MAP") == {"a": 2.0, "b": 1.0}
    with pytest.raises(InputError, match=r"unknown measure 'P@5'. The only column is 'MAP'"):
        leaderboards.read(f"{named}:P@5")


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
    assert leaderboards.read(folder) == BY_SCORE
    assert leaderboards.read(f"{folder}:map") == BY_SCORE
    file(folder, "free text of no columns", "c.txt")
    with pytest.raises(InputError, match=r"c\.txt: no scores of a system found"):
        leaderboards.read(folder)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (table(LONG, 0, 1, 2, 3), "cannot tell which column has the topics"),
        (
            "system\ttopic\tmeasure\tvalue\n" + table(LONG[:3], 0, 1, 2, 3),
            "system 'b' has no m for topic '2', unlike other systems",
        ),
        (table(TOTALS * 2, 0, 1, 2, 3), "system 'a' has two values of m"),
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
