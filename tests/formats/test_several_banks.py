"""Several banks of one query in a file: teams, runs, and files of one bank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import exampp
from exampp.errors import InputError


def imported(folder: Path, name: str, text: str) -> dict[str, int]:
    """The items of each bank after an import."""
    (folder / name).write_text(text)
    with exampp.create(folder / "my.exam") as exam:
        exam.import_files(folder / name)
        return {str(bank): int(str(items)) for bank, _, _, items, *_ in exam.banks().rows}


def lines(rows: Sequence[object]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def entry(text: str, **fields: object) -> dict[str, object]:
    return {"query_id": "q1", "query_text": "tides", "items": [{"question_text": text}], **fields}


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ({"bank": "a"}, {"bank": "b"}, ["a", "b"]),
        ({"run_id": "r1"}, {"run_id": "r2"}, ["r1", "r2"]),
        ({"metadata": {"run_id": "r1"}}, {"metadata": {"run_id": "r2"}}, ["r1", "r2"]),
        ({"team_id": "t", "run_id": "x"}, {"team_id": "u", "run_id": "x"}, ["t/x", "u/x"]),
        ({"team_id": "t", "run_id": "x"}, {"team_id": "t", "run_id": "y"}, ["x", "y"]),
        ({"team": "t"}, {"team": "u"}, ["t", "u"]),
    ],
)
def test_a_field_names_the_bank_of_a_line(
    tmp_path: Path, first: dict[str, object], second: dict[str, object], names: list[str]
) -> None:
    text = lines([entry("What causes tides?", **first), entry("Why are there tides?", **second)])
    assert imported(tmp_path, "teams.jsonl", text) == dict.fromkeys(names, 1)


def test_lines_of_different_queries_stay_one_bank(tmp_path: Path) -> None:
    other = {**entry("What is a fjord?", run_id="r2"), "query_id": "q2"}
    text = lines([entry("What causes tides?", run_id="r1"), other])
    assert imported(tmp_path, "bank.jsonl", text) == {"main": 2}


def test_a_query_that_occurs_twice_without_a_name_is_refused(tmp_path: Path) -> None:
    text = lines([entry("What causes tides?"), entry("Why are there tides?")])
    with pytest.raises(InputError, match="was already on line 1"):
        imported(tmp_path, "bank.jsonl", text)


def test_rows_of_a_table_are_ordered_by_rank(tmp_path: Path) -> None:
    rows = ["topic_id\tteam_id\trun_id\trank\tquestion", "q1\tt\tx\t2\tSecond?"]
    rows += ["q1\tt\tx\t1\tFirst?", "q1\tu\ty\t1\tFirst?"]
    assert imported(tmp_path, "teams.tsv", "\n".join(rows)) == {"x": 2, "y": 1}
    with exampp.open(tmp_path / "my.exam") as exam:
        assert [one.text for one in exam.bank("x").items("q1")] == ["First?", "Second?"]


def test_a_rank_that_is_no_number_is_refused_with_its_line(tmp_path: Path) -> None:
    text = "topic_id\trun_id\trank\tquestion\nq1\tx\tfirst\tWhat?\n"
    with pytest.raises(InputError, match=r"teams\.tsv:2.*rank"):
        imported(tmp_path, "teams.tsv", text)


def test_item_lines_of_two_runs_are_two_banks_and_of_one_run_are_one(tmp_path: Path) -> None:
    row = {"query_id": "q1", "question": "What causes tides?"}
    two = [row | {"run_id": "r1"}, row | {"run_id": "r2"}]
    assert imported(tmp_path, "items.jsonl", lines(two)) == {"r1": 1, "r2": 1}
    (tmp_path / "my.exam").unlink()
    assert imported(tmp_path, "items.jsonl", lines(two[:1])) == {"main": 1}


def test_nugget_banks_of_teams(tmp_path: Path) -> None:
    def argue(run: str) -> dict[str, object]:
        nugget = {"question": f"What does {run} ask?", "answers": {"Tides": {"answer": "Tides"}}}
        metadata = {"run_id": run, "topic_id": "q1"}
        return {"title_query": "tides", "nugget_bank": {"a": nugget}, "metadata": metadata}

    text = lines([argue("r1"), argue("r2")])
    assert imported(tmp_path, "argue.jsonl", text) == {"r1": 1, "r2": 1}


def test_nuggetizer_files_of_teams(tmp_path: Path) -> None:
    def nuggets(bank: str) -> dict[str, object]:
        one = {"text": f"{bank} says so", "importance": "vital"}
        return {"query": "tides", "qid": "q1", "nuggets": [one], "bank": bank}

    text = lines([nuggets("a"), nuggets("b")])
    assert imported(tmp_path, "nuggets.jsonl", text) == {"a": 1, "b": 1}


def test_banks_are_announced(tmp_path: Path) -> None:
    text = lines([entry("What causes tides?", run_id=f"r{n}") for n in range(5)])
    (tmp_path / "teams.jsonl").write_text(text)
    with exampp.create(tmp_path / "my.exam") as exam:
        report = exam.import_files(tmp_path / "teams.jsonl")
        assert "read as 5 banks: r0, r1, r2, ..." in str(report)


def test_a_second_import_changes_only_the_bank_that_changed(tmp_path: Path) -> None:
    rows = [entry("What causes tides?", run_id="r1"), entry("What is a tide?", run_id="r2")]
    path = tmp_path / "teams.jsonl"
    path.write_text(lines(rows))
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(path)
        path.write_text(lines([rows[0], entry("How high are tides?", run_id="r2")]))
        exam.import_files(path)
        active = {
            bank: [one.text for one in exam.bank(bank).items("q1") if one.active]
            for bank in ("r1", "r2")
        }
    assert active == {"r1": ["What causes tides?"], "r2": ["How high are tides?"]}


def banks_of(folder: Path, files: Sequence[tuple[str, str]], bank: str = "main") -> dict[str, int]:
    """The items of each bank after an import of several files."""
    for name, text in files:
        (folder / name).write_text(text)
    with exampp.create(folder / "my.exam") as exam:
        exam.import_files(*(folder / name for name, _ in files), bank=bank)
        return {str(bank): int(str(items)) for bank, _, _, items, *_ in exam.banks().rows}


@pytest.mark.parametrize("of_items", [True, False])
def test_files_of_different_runs_for_one_query_are_several_banks(
    tmp_path: Path, of_items: bool
) -> None:
    def row(text: str, **fields: object) -> dict[str, object]:
        plain = {"query_id": "q1", "question": text, **fields}
        return plain if of_items else entry(text, **fields)

    files = [
        ("a.jsonl", lines([row("What causes tides?", metadata={"run_id": "r1"})])),
        ("b.jsonl", lines([row("What causes tides?", weight=2, metadata={"run_id": "r2"})])),
        ("c.jsonl", lines([row("What is a tide?")])),
    ]
    assert banks_of(tmp_path, files) == {"main": 1, "r1": 1, "r2": 1}


def test_files_of_one_run_are_one_bank(tmp_path: Path) -> None:
    other = {**entry("What is a fjord?", run_id="r2"), "query_id": "q2"}
    files = [("a.jsonl", lines([entry("What?", run_id="r1")])), ("b.jsonl", lines([other]))]
    assert banks_of(tmp_path, files) == {"main": 2}


def test_a_stated_name_overrides_the_run_of_a_file(tmp_path: Path) -> None:
    head = "topic_id\trun_id\tquestion\n"
    files = [("a.tsv", f"{head}q1\tx\tWhat?\n")]
    assert banks_of(tmp_path, files, bank="mine") == {"mine": 1}
    (tmp_path / "my.exam").unlink()
    files = [("a.tsv", f"{head}q1\tx\tWhat?\nq1\ty\tWhy?\n")]
    with pytest.raises(InputError, match=r"several banks, such as x and y. Leave out --bank-name"):
        banks_of(tmp_path, files, bank="mine")


def test_ranked_questions_of_dragun(tmp_path: Path) -> None:
    rows = ["t1\tteam\trun\t2\tWho owns it?", 't1\tteam\trun\t1\t"Is ""it"" true?"']
    files = [("run", "\n".join(rows)), ("other", "t1\tteam\trun2\t1\tWho wrote it?\r\n")]
    assert banks_of(tmp_path, files) == {"run": 2, "run2": 1}
    with exampp.open(tmp_path / "my.exam") as exam:
        assert [one.text for one in exam.bank("run").items("t1")] == [
            'Is "it" true?',
            "Who owns it?",
        ]


def test_contradictions_are_shown_from_where_they_differ(tmp_path: Path) -> None:
    start = "What are all of the many, many causes of the tides in each and every ocean and sea"
    files = [
        (name, lines([{"query_id": "q1", "qid": "1", "question": f"{start} {end}?"}]))
        for name, end in (("a.jsonl", "today"), ("b.jsonl", "tomorrow"))
    ]
    with pytest.raises(InputError, match=r"and sea tomorrow\?, weight 1' here but .*sea today"):
        banks_of(tmp_path, files)
