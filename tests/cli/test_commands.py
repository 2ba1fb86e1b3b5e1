"""The commands, as people and scripts use them."""

from __future__ import annotations

import csv
import io
import json
from hashlib import md5
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """The small exam, graded by the draft grader."""
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        return collection.path


def test_version(exampp_command: Commands) -> None:
    assert exampp_command("--version").out == f"exampp {exampp.__version__}\n"


def test_the_main_path(tmp_path: Path, exampp_command: Commands) -> None:
    path = tmp_path / "new.exam"
    files = exams.write_files(tmp_path / "files")
    assert "questions.tsv: plain-bank, 3 records" in exampp_command("import", path, *files).out
    assert "Nothing changed." in exampp_command("import", path, *files).out
    assert exampp_command("grade", path, "--grader", "draft").out == "8 of 8 cells done\n"
    assert exampp_command("grade", path, "--grader", "draft").out.startswith("Nothing is pending.")
    board = exampp_command("evaluate", path, "--min-rating", "1").out
    assert board.startswith("DRAFT GRADES: graded by draft")
    assert "* These are draft grades" in board


def test_machine_formats_are_tidy_and_labelled(graded: Path, exampp_command: Commands) -> None:
    ran = exampp_command("evaluate", graded, "--min-rating", "4", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {row["system"] for row in rows} == {"alpha", "beta", "_overall_"}
    assert {row["measure"] for row in rows} == {"Cover@20", "nCover@20", "nDCG@20"}
    assert {(row["grader"], row["draft"]) for row in rows} == {("draft", "true")}
    assert "draft grades" in ran.err


def test_qrels_of_draft_grades_say_so(
    graded: Path, tmp_path: Path, exampp_command: Commands
) -> None:
    to = tmp_path / "exam.qrels"
    ran = exampp_command("evaluate", graded, "--qrels", to)
    assert ran.code == 0
    lines = [line.split(" ") for line in to.read_text().splitlines()]
    assert [(query, passage) for query, _, passage, _ in lines] == [
        ("q1", "p1"),
        ("q1", "p2"),
        ("q1", "p4"),
        ("q2", "p3"),
        ("q2", "p4"),
    ]
    assert {iteration for _, iteration, _, _ in lines} == {"draft"}


def test_runs_from_outside(graded: Path, tmp_path: Path, exampp_command: Commands) -> None:
    run = tmp_path / "late.run"
    run.write_text("q1 Q0 p1 1 1 late\nq1 Q0 p77 2 0.5 late\nq2 Q0 p3 1 1 late\n")
    arguments = ("-m", "Cover@20", "-m", "P@2", "--min-rating", "4", "--format", "json")
    rows = json.loads(exampp_command("evaluate", graded, "--run", run, *arguments).out)["rows"]
    late = [row for row in rows if row["system"] == "late"]
    assert [row["ungraded"] for row in late] == pytest.approx([1 / 3, 1 / 3])
    run.write_text("x1 Q0 p1 1 1 late\n")
    ran = exampp_command("evaluate", graded, "--run", run)
    assert (ran.code, "the runs have no known query; their queries are x1" in ran.err) == (2, True)


def test_export_and_import_again(graded: Path, tmp_path: Path, exampp_command: Commands) -> None:
    """A collection rebuilt from its exports evaluates to the same numbers."""
    out = tmp_path / "graded.jsonl.gz"
    assert exampp_command("export", graded, out).code == 0
    again = tmp_path / "again.exam"
    bank = tmp_path / "bank.csv"
    assert exampp_command("export", graded, bank, "--format", "bank").code == 0
    assert exampp_command("import", again, out, bank).code == 0
    options = ("--min-rating", "4", "-m", "Cover@20", "-m", "nDCG@20", "--format", "json")
    first = json.loads(exampp_command("evaluate", graded, *options).out)["rows"]
    assert json.loads(exampp_command("evaluate", again, *options).out)["rows"] == first
    from_file = json.loads(exampp_command("evaluate", out, *options, "--bank", bank).out)["rows"]
    for row, same in zip(from_file, first, strict=True):
        assert {**row, "bank": "main"} == same


def test_dry_run_asks_nobody(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        path = collection.path
    before = exams.tables(path)
    ran = exampp_command("grade", path, "--grader", "draft", "--dry-run")
    assert "cells pending   8\n" in ran.out
    assert ran.out.count("--- prompt") == 2
    assert exams.tables(path) == before


def test_options_of_other_graders_are_refused(graded: Path, exampp_command: Commands) -> None:
    ran = exampp_command("grade", graded, "--grader", "draft", "--dtype", "float32")
    assert (ran.code, ran.err) == (
        2,
        "exampp: the grader draft has no option --dtype. hf has it\n",
    )


def test_status(graded: Path, exampp_command: Commands) -> None:
    ran = exampp_command("status", graded, "--format", "json")
    found = json.loads(ran.out)
    assert {"thing": "grades", "count": 8} in found["contents"]["rows"]
    assert {"thing": "decided cells", "count": 0} in found["contents"]["rows"]
    (row,) = found["graders"]["rows"]
    assert (row["bank"], row["due"], row["graded"]) == ("main", 0, 8)


def test_prompts(tmp_path: Path, exampp_command: Commands) -> None:
    listed = exampp_command("prompts", "--format", "tsv").out
    assert "question-self-rating\tquestion\t0-5" in listed
    shown = exampp_command("prompts", "thomas").out
    assert "{query}" in shown
    assert "dl-nuggets\t\t\tnugget\t" in listed
    copy = tmp_path / "copy.toml"
    copy.write_text(exampp_command("prompts", "sun-workbench", "--toml").out)
    assert exampp_command("prompts", copy).out == (exampp_command("prompts", "sun-workbench").out)
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'name = "mine"\ntitle = "t"\nsource = "s"\ngrades = "question"\nreading = "rating"\n'
        'scale = { lowest = 0, highest = 3 }\nslots = ["question", "context"]\ncut = "context"\n'
        'user = "Q: {question} C: {contxt}"\n'
    )
    ran = exampp_command("prompts", mine)
    assert ran.code == 2
    assert str(mine) in ran.err
    assert "contxt" in ran.err


def test_no_traceback_even_for_a_defect(
    graded: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(exampp.Collection, "contents", broken)
    ran = exampp_command("status", graded)
    assert (ran.code, "Traceback" in ran.err) == (1, False)
    assert "unexpected RuntimeError: boom" in ran.err


def test_nothing_asked_for_is_left_out_in_any_format(
    graded: Path, tmp_path: Path, exampp_command: Commands
) -> None:
    official = tmp_path / "official.json"
    official.write_text('{"alpha": 1, "beta": 2}')
    asked = ("evaluate", graded, "-m", "AP", "--per-query", "--official", official)
    for style, delimiter in (("tsv", "\t"), ("csv", ",")):
        first, second = exampp_command(*asked, "--format", style).out.split("\n\n")
        rows = list(csv.DictReader(io.StringIO(first), delimiter=delimiter))
        assert [(row["system"], row["query_id"]) for row in rows] == [
            ("alpha", "q1"),
            ("alpha", "q2"),
            ("beta", "q1"),
            ("beta", "q2"),
        ]
        assert "spearman" in second.splitlines()[0].split(delimiter)
    found = json.loads(exampp_command(*asked, "--format", "json").out)
    assert list(found) == ["leaderboard", "correlation"]


def test_what_is_refused_prints_and_writes_nothing(
    graded: Path, tmp_path: Path, exampp_command: Commands
) -> None:
    to = tmp_path / "exam.qrels"
    ran = exampp_command(
        "evaluate", graded, "--min-rating", 2, "--min-rating", 4, "--label", "count", "--qrels", to
    )
    assert (ran.code, ran.out, to.exists()) == (2, "", False)
    assert "the labels of --qrels depend on the threshold. Give one --min-rating" in ran.err
    ran = exampp_command("evaluate", graded, "--qrels", tmp_path / "nowhere" / "exam.qrels")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["evaluate", "EXAM", "--grader", "a", "--grader", "b"], "--grader is given 2 times"),
        (["evaluate", "EXAM", "--per-query", "--per-query"], "--per-query is given 2 times"),
        (["bank", "show", "EXAM", "--query=a", "--query=b", "--query=c"], "--query is given 3"),
        (["evaluate", "EXAM", "--grader", ""], "--grader is empty"),
        (["evaluate", "EXAM", "-m", "AP", "-m", " "], "--measure is empty"),
        (["evaluate", ""], "COLLECTION is empty"),
        (["import", "EXAM", "a.run", ""], "FILE is empty"),
    ],
)
def test_what_is_given_twice_or_empty_is_refused(
    graded: Path, exampp_command: Commands, arguments: list[str], fault: str
) -> None:
    ran = exampp_command(*(graded if part == "EXAM" else part for part in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert fault in ran.err
    assert exampp_command("evaluate", graded, "-m", "AP", "-m", "RR").code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("grade my.exam", "exampp grade needs --grader. Grade with hf"),
        ("report my.exam", "exampp report needs --output. Write the page to this file"),
        ("compare my.exam bm25", "exampp compare needs B. System B"),
        (
            "import answers.csv",
            "answers.csv: not a collection of exampp. Name the collection first",
        ),
        ("import my.exam", "no files to import"),
    ],
)
def test_what_is_missing_is_named_with_its_meaning(
    exampp_command: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.csv").write_text("question,system,answer\n")
    ran = exampp_command(*line.split())
    assert (ran.code, said in ran.err) == (2, True), ran.err


def test_the_demo_opens_its_pages(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[object] = []
    monkeypatch.setattr("exampp.web.serve", lambda path, port: served.extend([path, port]))
    made = tmp_path / "made.exam"
    assert exampp_command("demo", made, "--port", "0").code == 2
    ran = exampp_command("demo", made, "--serve", "--port", "0")
    assert (ran.code, served) == (0, [made, 0]), ran.err
    with exampp.open(made) as exam:
        assert exam.grades().evaluate(["Cover@20"]).systems


def test_generated_ids_of_queries_are_shown_as_texts(
    tmp_path: Path, exampp_command: Commands
) -> None:
    path = tmp_path / "my.exam"
    texts = ["what is the capital of France", "who wrote Hamlet, the play about a prince"]
    texts.append(f"{texts[1]} of Denmark")
    ids = [md5(text.encode(), usedforsecurity=False).hexdigest() for text in texts]
    with exampp.create(path) as exam:
        exam.add(
            queries=dict(zip(ids, texts, strict=True)),
            bank=[{"query_id": one, "question": "Is it so?"} for one in ids],
        )
    shown = exampp_command("bank", "show", path).out
    assert f"\n{texts[0]} " in shown
    # one beginning of two texts
    for one, text in zip(ids[1:], texts[1:], strict=True):
        assert f"\n{one[:8]}\u2026 {text[:39].rstrip()}\u2026 " in shown
    found = exampp_command("search", path, "so").out
    assert f"items  {texts[0]} " in found
    for_programs = exampp_command("bank", "show", path, "--format", "tsv").out
    assert all(f"\n{one}\t" in for_programs for one in ids)
