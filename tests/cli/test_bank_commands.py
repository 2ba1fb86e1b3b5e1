"""`exampp bank`: as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.records import item_id

SKY_ID = item_id("q1", "What does air scatter?")


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as collection:
        return collection.path


def test_looking(exam: Path, exampp_command: Commands) -> None:
    listed = exampp_command("bank", "list", exam, "--format", "tsv").out.splitlines()
    assert listed == [
        "bank\tkind\tqueries\titems\tretired\tsealed in bank",
        "main\tquestion\t2\t3\t0\t0",
    ]
    shown = json.loads(
        exampp_command("bank", "show", exam, "--query", "q2", "--format", "json").out
    )
    assert [row["text"] for row in shown["rows"]] == ["What makes a magnet?"]


def test_editing_with_author_and_reason(exam: Path, exampp_command: Commands) -> None:
    who = ("--author", "ann", "--reason", "a test")
    start = SKY_ID.rpartition("/")[2][:6]
    assert "reword" in exampp_command("bank", "edit", exam, "reword", start, "New?", *who).out
    for arguments in (
        ("weight", start, "2"),
        ("key", start, "blue light", "blue"),
        ("add", "q2", "Where is north?", "--answer", "up", "--subtopic", "compass"),
        ("retire", start),
        ("restore", start),
    ):
        assert exampp_command("bank", "edit", exam, *arguments, *who).code == 0
    log = json.loads(exampp_command("bank", "log", exam, "--last", "6", "--format", "json").out)
    assert [(row["author"], row["operation"], row["reason"]) for row in log["rows"]] == [
        ("ann", name, "a test") for name in ("reword", "weight", "key", "add", "retire", "restore")
    ]
    diff = exampp_command("bank", "diff", exam, "3", "--format", "csv").out.splitlines()
    assert len(diff) == 5
    assert exampp_command("bank", "revert", exam, "--to", "3", "--dry-run").err.startswith(
        "4 changes;"
    )
    assert exampp_command("bank", "revert", exam, "--to", "3").code == 0
    assert "Nothing changed." in exampp_command("bank", "revert", exam, "--to", "3").err
    count = json.loads(exampp_command("bank", "log", exam, "--format", "json").out)["rows"]
    last = [str(row["edit"]) for row in count[-2:]]
    both = exampp_command("bank", "revert", exam, "--edit", last[0], "--edit", last[1])
    assert both.code == 0
    assert len(both.out.splitlines()) >= 3


def test_export_edit_apply(exam: Path, tmp_path: Path, exampp_command: Commands) -> None:
    file = tmp_path / "b.csv"
    assert exampp_command("export", exam, file).out == f"{file}: bank, 3 records\n"
    assert "Nothing changed." in exampp_command("bank", "apply", exam, file).err
    file.write_text(file.read_text().replace("What does air scatter?", "What is scattered?"))
    assert "(--dry-run)" in exampp_command("bank", "apply", exam, file, "--dry-run").err
    ran = exampp_command("bank", "apply", exam, file)
    assert (ran.code, "What is scattered?" in ran.out) == (0, True)
    ran = exampp_command("bank", "apply", exam, file)
    assert ran.code == 2
    assert "the bank was edited once since" in ran.err
    assert exampp_command("bank", "apply", exam, file, "--force").code == 0


def test_lint_shows_ten_findings_and_all_on_demand(
    tmp_path: Path, exampp_command: Commands
) -> None:
    bank = tmp_path / "bank.csv"
    facts = [f"q,{n}. Rock number {n} is old" for n in range(12)]
    bank.write_text("\n".join(["query_id,nugget", *facts, ""]))
    exam = tmp_path / "facts.exam"
    assert exampp_command("import", exam, bank).code == 0
    text = exampp_command("bank", "lint", exam).out
    assert text.startswith("12 findings on 12 of 12 items.")
    assert text.count("Rock number") == 10
    assert "10 of 12 findings are shown" in text
    assert "40 of 40 read were defects" in text
    assert exampp_command("bank", "lint", exam, "--all").out.count("Rock number") == 12
    for style in ("json", "tsv"):
        ran = exampp_command("bank", "lint", exam, "--format", style)
        assert ran.out.count("Rock number") == 12


def test_lint_in_all_formats(exam: Path, exampp_command: Commands) -> None:
    exampp_command("bank", "edit", exam, "add", "q1", "Is the sky blue today?")
    for style in ("text", "tsv", "csv", "json", "markdown", "latex"):
        ran = exampp_command("bank", "lint", exam, "--format", style)
        assert ran.code == 0
        assert "its answer changes with time" in ran.out


def test_sealing_and_proving(exam: Path, tmp_path: Path, exampp_command: Commands) -> None:
    sealed, public = tmp_path / "sealed.jsonl", tmp_path / "public.jsonl"
    arguments = ("--secret", "0.5", "--seed", "1", "--sealed", sealed, "--public", public)
    ran = exampp_command("bank", "split", exam, *arguments)
    assert ran.code == 0
    commitment = ran.out.rpartition("commitment ")[2].strip()
    assert len(commitment) == 64
    assert commitment in exampp_command("bank", "list", exam).out
    for proof in (
        (sealed, "--commitment", commitment),
        (sealed, "--against", exam),
        (exam,),
        (exam, "--commitment", commitment),
    ):
        ran = exampp_command("bank", "verify", *proof)
        assert (ran.code, "unchanged" in ran.out) == (0, True)
    sealed.write_text(sealed.read_text().replace("?", "!"))
    for proof in ((sealed, "--commitment", commitment), (sealed, "--against", exam)):
        ran = exampp_command("bank", "verify", *proof)
        assert (ran.code, "CHANGED since the split" in ran.out) == (1, True)
        assert ("changed" in ran.out) == ("--against" in proof)
    ran = exampp_command("bank", "verify", exam, "--commitment", "0" * 64)
    assert ran.code == 1
    assert exampp_command("bank", "split", exam, "--secret", "0.5").code == 2


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("show", "{exam}", "--bank", "x"), "the collection has no bank 'x'. It has main"),
        (("edit", "{exam}", "retire", "none"), "the bank has no item 'none'"),
        (("edit", "{exam}", "melt", "none"), "'melt' is not one of"),
        (("edit", "{exam}", "add", "q1"), "add takes a query and a text"),
        (("apply", "{exam}", "none.csv"), "none.csv: no such file"),
        (("split", "{exam}", "--secret", "2"), "the share 2 is not between 0 and 1"),
        (("verify", "none.jsonl"), "none.jsonl: no such file"),
        (("diff", "{exam}", "x"), "'x' is neither an edit nor a bank"),
        (("list", "none.exam"), "no such collection"),
    ],
)
def test_bad_arguments(
    exam: Path, arguments: tuple[str, ...], what: str, exampp_command: Commands
) -> None:
    ran = exampp_command("bank", *(one.format(exam=exam) for one in arguments))
    assert ran.code == 2
    assert what in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "line", ["bank match {exam} {matches} --reference main", "analyze banks {exam}"]
)
def test_a_collection_without_banks_says_how_to_get_one(
    tmp_path: Path, line: str, exampp_command: Commands
) -> None:
    with exampp.create(tmp_path / "my.exam") as empty:
        empty.add(queries={"q1": "one"})
    matches = tmp_path / "matches.exam"
    ran = exampp_command.line(f"exampp {line.format(exam=empty.path, matches=matches)}")
    assert ran.code == 2
    assert ran.err.rstrip().endswith("bank. Import one: exampp import") or (
        ran.err.rstrip().endswith("no bank 'main'. Import one: exampp import")
    )
    assert not matches.exists()


FILES = {
    "tqa": '[{"globalID": "L_1", "lessonName": "rocks", "questions": {"nonDiagramQuestions": {'
    '"NDQ_1": {"beingAsked": {"processedText": "Basalt is"}, "answerChoices": {"a": '
    '{"processedText": "lava"}}, "correctAnswer": {"processedText": "a"}}}}}]',
    "nuggetizer": '{"qid": "q1", "query": "x", "nuggets": [{"text": "y", "importance": "okay"}]}',
    "argue": '{"query_id": "q1", "nugget_bank": [{"question": "y?", "answers": ["z"]}]}',
    "trec-nuggets": "q1\t1\tvital\ty\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_bank_is_imported_and_told_from_its_content(
    tmp_path: Path, kind: str, exampp_command: Commands
) -> None:
    (tmp_path / "file").write_text(FILES[kind])
    ran = exampp_command("import", tmp_path / "new.exam", tmp_path / "file")
    assert (ran.code, f"{kind}, 1 record\n" in ran.out) == (0, True)
    with exampp.Collection(tmp_path / "new.exam") as collection:
        assert len(collection.bank().show().rows) == 1
