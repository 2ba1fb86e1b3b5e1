"""`exampp review`: the lists and what people decided, as printed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id

FIRST, SECOND = exams.QUESTIONS["q1"]
SCATTER = item_id("q1", FIRST)
SCRIPT = {(FIRST, exams.PASSAGES["p1"]): "5", (SECOND, exams.PASSAGES["p4"]): "4"}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader(SCRIPT, default="0"))
        opened.export(tmp_path / "graded.jsonl.gz")
        opened.export(tmp_path / "bank.jsonl.gz", "bank")
    return tmp_path / "my.exam"


def test_for_people_a_table_per_item_with_the_ends_first(
    exampp_command: Commands, exam: Path
) -> None:
    ran = exampp_command("review", exam, "verify", "--query", "q1", "--limit", 2)
    assert ran.code == 0
    first, second = ran.out.split("\n\n")
    assert first.splitlines()[0] == f"q1 why is the sky blue: {FIRST}"
    assert [line.split()[:5] for line in first.splitlines()[3:5]] == [
        ["5", "5", "p1", "judged", "3"],
        ["0", "0", "p2", "judged", "1"],
    ]
    assert first.splitlines()[-1] == "* 2 of 3 cells are shown."
    assert second.splitlines()[0] == f"q1 why is the sky blue: {SECOND}"


def test_for_machines_the_headings_come_once(exampp_command: Commands, exam: Path) -> None:
    ran = exampp_command("review", exam, "verify", "--format", "tsv")
    rows = list(csv.DictReader(io.StringIO(ran.out), delimiter="\t"))
    assert len(rows) == 8
    assert {row["query"] for row in rows} == {"q1", "q2"}
    assert {row["passage text"] for row in rows} == set(exams.PASSAGES.values())
    loaded = json.loads(exampp_command("review", exam, "verify", "--format", "json").out)
    assert loaded["rows"][0]["rating"] == 5
    assert len(loaded["rows"]) == 8


@pytest.mark.parametrize("style", ["text", "csv", "latex", "html"])
@pytest.mark.parametrize("name", ["verify", "grid", "missing", "spurious"])
def test_every_list_in_every_style(
    exampp_command: Commands, exam: Path, name: str, style: str
) -> None:
    for source in (exam, exam.with_name("graded.jsonl.gz")):
        ran = exampp_command("review", source, name, "--format", style)
        assert ran.code == 0, ran.err
        assert ran.out.strip()


def test_a_graded_file_tells_the_same_as_its_collection(
    exampp_command: Commands, exam: Path
) -> None:
    bank = exam.with_name("bank.jsonl.gz")
    for name in ("verify", "grid", "missing", "spurious"):
        one = exampp_command("review", exam, name, "--format", "tsv")
        other = exampp_command(
            "review", exam.with_name("graded.jsonl.gz"), name, "--bank", bank, "--format", "tsv"
        )
        assert one.out == other.out
        assert one.err == other.err
    lacking = exampp_command("review", exam, "missing", "--format", "tsv").out.splitlines()
    assert [line.split("\t")[:3:2] for line in lacking[1:]] == [["q2", "p3"]]
    loosely = ("review", exam, "missing", "--min-relevant", 1, "--format", "tsv")
    lacking = exampp_command(*loosely).out.splitlines()
    assert [line.split("\t")[:3:2] for line in lacking[1:]] == [["q1", "p2"], ["q2", "p3"]]
    wrong = exampp_command("review", exam, "spurious", "--format", "tsv").out.splitlines()
    assert [line.split("\t")[5] for line in wrong] == ["count", "1"]


def test_untrusted_text_does_not_steer_the_terminal(
    exampp_command: Commands, tmp_path: Path
) -> None:
    with exams.make(tmp_path) as opened:
        path = tmp_path / "passages-more.jsonl"
        text = "\x1b[2JGone \u202e<script>alert(1)</script>"
        path.write_text(json.dumps({"id": "p1", "text": text}) + "\n")
        opened.import_files(path)
        opened.grade(ScriptedGrader("\x1b]0;mine\x07 0"))
    for name in ("verify", "grid", "missing", "spurious"):
        for style in ("text", "markdown", "html"):
            out = exampp_command("review", tmp_path / "my.exam", name, "--format", style).out
            assert "\x1b" not in out
            assert "\u202e" not in out
            assert style != "html" or "<script>alert" not in out


def test_what_people_decided(exampp_command: Commands, exam: Path) -> None:
    with exampp.Collection(exam) as opened:
        opened.grades().decisions.decide("q1", SCATTER, "p1", 5, author="ann", blind=True)
        opened.grades().decisions.decide("q1", SCATTER, "p1", 2, author="bob", reason="only blue")
        opened.grades().decisions.decide("q1", SCATTER, "p2", None, author="ann")
    ran = exampp_command("review", exam, "decisions", "--author", "ann", "--format", "tsv")
    rows = list(csv.DictReader(io.StringIO(ran.out), delimiter="\t"))
    assert [(r["decision"], r["passage"], r["rating"], r["how"]) for r in rows] == [
        ("1", "p1", "5", "blind"),
        ("3", "p2", "withdrawn", ""),
    ]
    ran = exampp_command("review", exam, "decisions", "--limit", 1, "--format", "tsv")
    assert ran.out.splitlines()[1].startswith("3\t")
    ran = exampp_command("review", exam, "disputes")
    assert "ann: 5; bob: 2 (only blue)" in ran.out
    ran = exampp_command("review", exam, "agreement", "--format", "json")
    found = json.loads(ran.out)
    assert [row["same"] for row in found["agreement"]["rows"]] == [1.0, 0.0, 0.5, 1.0, 1.0, 0.0]
    assert exampp_command("review", exam, "agreement").code == 0
    ran = exampp_command("review", exam.with_name("graded.jsonl.gz"), "decisions")
    assert (ran.code, "has no decisions" in ran.err) == (2, True)
    # the export of decisions is a list of its own
    ran = exampp_command("export", exam, exam.with_name("d.tsv"), "--format", "decisions")
    assert "decisions, 3 records" in ran.out
    people = "decided cells: 1, deciders: 2, disputed cells: 1"
    assert people in ran.err
    ran = exampp_command("export", exam, exam.with_name("g.jsonl.gz"))
    assert people in ran.err
    assert "People's decisions are not in this file" in ran.err
    ran = exampp_command("import", exam, exam.with_name("d.tsv"))
    assert "decided cells          1\n" in ran.out
    ran = exampp_command("status", exam, "--format", "json")
    assert {"thing": "deciders", "count": 2} in json.loads(ran.out)["contents"]["rows"]
    ran = exampp_command("evaluate", exam)
    assert "; 1 cell decided by 2 people, disputed\n" in ran.out
    ran = exampp_command("evaluate", exam, "--decisions", "without")
    assert "Human decisions are left out: 1 cell decided by 2 people, disputed." in ran.out


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["review", "EXAM"], "no list is named"),
        (["review", "EXAM", "bogus"], "'bogus' is not one of"),
        (["review", "EXAM", "grid", "--query", "q9"], "no query 'q9'"),
        (["review", "EXAM", "verify", "--item", "zz"], "no item id starts with 'zz'"),
        (["review", "EXAM", "verify", "--grader", "gpt"], "no grader matches"),
    ],
)
def test_bad_arguments_are_one_sentence(
    exampp_command: Commands, exam: Path, arguments: list[str], fault: str
) -> None:
    ran = exampp_command(*(exam if part == "EXAM" else part for part in arguments))
    assert ran.code == 2
    assert fault in ran.err
    assert "Traceback" not in ran.err


def test_serving_takes_the_options(
    exampp_command: Commands, exam: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exampp import web

    called: list[tuple[Path, dict[str, Any]]] = []
    monkeypatch.setattr(web, "serve", lambda path, **options: called.append((path, options)))
    options = ["--host", "::1", "--port", "0", "--assessor", "ann", "--assessor", "bob", "--blind"]
    ran = exampp_command("serve", exam, "--grader", "question", *options)
    assert ran.code == 0, ran.err
    ((path, given),) = called
    assert path == exam
    assert (given["host"], given["port"], given["assessors"]) == ("::1", 0, ["ann", "bob"])
    assert exampp_command("serve", exam).code == 0
    assert called[-1][1]["port"] == 8765
    assert (given["blind"], given["grader"], given["min_rating"]) == (True, "question", None)


def test_tables_as_html_are_a_page_with_a_style_sheet(exampp_command: Commands, exam: Path) -> None:
    page = exampp_command("review", exam, "missing", "--format", "html").out
    assert page.startswith("<!doctype html>")
    assert page.count("<style>") == page.count("<title>") == 1
    assert page.endswith("</html>\n")


def test_people_are_invited_listed_and_revoked(exampp_command: Commands, exam: Path) -> None:
    invited = exampp_command(
        *("people", exam, "--invite", "ann", "--role", "editor"),
        *("--address", "https://exams.example.org/exam/"),
    )
    assert invited.code == 0, invited.err
    assert invited.out.startswith("https://exams.example.org/exam/?token=")
    assert "ann (editor)" in invited.err
    listed = exampp_command("people", exam, "--format", "tsv").out.splitlines()
    assert [line.split("\t")[:2] for line in listed] == [["name", "role"], ["ann", "editor"]]
    clash = exampp_command("people", exam, "--invite", "ANN")
    assert (clash.code, "one person" in clash.err) == (2, True)
    assert "no longer has access" in exampp_command("people", exam, "--revoke", "Ann").err
    assert exampp_command("people", exam, "--revoke", "ann").code == 2
    assert exampp_command("people", exam.with_name("none.exam")).code == 2
