"""`exampp analyze significance` and `exampp compare`, on a graded file and a collection."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Commands, Ran

import exampp

QUESTIONS = {"sky": "What does air scatter?", "sea": "How do whales breathe?"}
TEXTS = {
    "p0": "The air is thin. Air scatters blue light.",
    "p1": "It is dark. Whales breathe air at the surface.",
    "p2": "Nothing to see here.",
}
SYSTEMS = {"old": ["p0", "p2"], "new": ["p2", "p1"], "copy": ["p2", "p1"]}
RATINGS = {"p0": {"sky": 5, "sea": 1}, "p1": {"sky": 0, "sea": 4}, "p2": {"sky": 0, "sea": 0}}


def write_exam(folder: Path, queries: int = 8) -> tuple[Path, Path]:
    """A graded file and its bank: `old` covers the sky and `new` the sea, in every query."""
    lines, bank = [], []
    for number in range(queries):
        query_id = f"q{number}"
        # The last query has no answer about the sea.
        skill = {"sea": 0} if number == queries - 1 else {}
        passages = [
            {
                "paragraph_id": name,
                "text": text,
                "paragraph_data": {
                    "judgments": [],
                    "rankings": [
                        {
                            "method": system,
                            "paragraphId": name,
                            "queryId": query_id,
                            "rank": ranked.index(name) + 1,
                            "score": 10.0 - ranked.index(name),
                        }
                        for system, ranked in SYSTEMS.items()
                        if name in ranked
                    ],
                },
                "exam_grades": [grades(query_id, {**RATINGS[name], **skill})],
            }
            for name, text in TEXTS.items()
        ]
        lines.append(json.dumps([query_id, passages]))
        items = [
            {
                "query_id": query_id,
                "question_id": f"{query_id}/{item}",
                "question_text": text,
                "gold_answers": [],
            }
            for item, text in QUESTIONS.items()
        ]
        entry = {"query_id": query_id, "query_text": "air", "test_collection": "t", "items": items}
        bank.append(json.dumps(entry))
    graded, questions = folder / "graded.jsonl", folder / "bank.jsonl"
    graded.write_text("\n".join(lines) + "\n", encoding="utf-8")
    questions.write_text("\n".join(bank) + "\n", encoding="utf-8")
    return graded, questions


def grades(query_id: str, ratings: dict[str, int]) -> dict[str, Any]:
    rated = [{"question_id": f"{query_id}/{i}", "self_rating": r} for i, r in ratings.items()]
    return {
        "correctAnswered": [r["question_id"] for r in rated if r["self_rating"]],
        "wrongAnswered": [r["question_id"] for r in rated if not r["self_rating"]],
        "answers": [[r["question_id"], str(r["self_rating"])] for r in rated],
        "llm": "m",
        "llm_options": {},
        "exam_ratio": 0.5,
        "prompt_info": {
            "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
            "prompt_style": "s",
            "is_self_rated": True,
        },
        "self_ratings": rated,
    }


def rows(ran: Ran) -> list[dict[str, str]]:
    assert ran.code == 0, ran.err
    # the last of the tables that are written
    return list(csv.DictReader(io.StringIO(ran.out.split("\n\n")[-1])))


@pytest.fixture
def exam(tmp_path: Path) -> tuple[Path, Path]:
    return write_exam(tmp_path)


def test_significance_in_every_form(exam: tuple[Path, Path], exampp_command: Commands) -> None:
    graded, bank = exam
    shown = exampp_command("analyze", "significance", graded, "--bank", bank, "-m", "RR")
    assert shown.code == 0, shown.err
    # old answers at rank 1 and the others at rank 2, but for the last query: not at all.
    assert [line.split()[0::5] for line in shown.out.splitlines()[3:6]] == [
        ["old", "a"],
        ["copy", "b"],
        ["new", "b"],
    ]
    assert "2 (66.7%) with Holm's correction" in shown.out
    found = rows(
        exampp_command(
            "analyze", "significance", graded, "--bank", bank, "-m", "RR", "--format", "csv"
        )
    )
    assert [(row["system"], row["other"], row["p"], row["differs"]) for row in found] == [
        ("old", "copy", "0.0078125", "true"),
        ("old", "new", "0.0078125", "true"),
        ("copy", "new", "1.0", "false"),
    ]
    # (7 * 1/2 + 1) / 8
    assert float(found[0]["difference"]) == pytest.approx(4.5 / 8)
    both = json.loads(
        exampp_command("analyze", "significance", graded, "--bank", bank, "--format", "json").out
    )
    assert list(both) == ["Cover@20 \u22654", "nCover@20 \u22654", "nDCG@20", "pairs"]
    assert len(both["pairs"]["rows"]) == 9


def test_compare_explains_the_difference(
    exam: tuple[Path, Path], exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    # texts are cut to the width of the terminal
    monkeypatch.setenv("COLUMNS", "120")
    graded, bank = exam
    shown = exampp_command("compare", graded, "old", "new", "--bank", bank)
    assert shown.code == 0, shown.err
    assert "new covers 7 items that old does not, and lacks 8 that it covers, of 16" in shown.out
    # The last query alone differs: 1/2 is lost.
    assert shown.out.count("How do whales breathe?") == 4
    assert "Whales breathe air at the surface." in shown.out
    found = rows(exampp_command("compare", graded, "old", "new", "--bank", bank, "--format", "csv"))
    assert len(found) == 15
    assert found[0] == {
        "query_id": "q7",
        "item_id": "q7/sky",
        "item": "What does air scatter?",
        "change": "lost",
        "passage_id": "p0",
        "rank": "1",
        "rating": "5",
        "other_best": "0",
        "quote": "Air scatters blue light.",
        "quoted": "sentence",
    }
    gained = next(row for row in found if row["change"] == "gained")
    assert (gained["passage_id"], gained["rank"], gained["rating"]) == ("p1", "2", "4")
    assert gained["quote"] == "Whales breathe air at the surface."


def test_a_collection_gives_what_its_file_gives(
    exam: tuple[Path, Path], tmp_path: Path, exampp_command: Commands
) -> None:
    graded, bank = exam
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(bank, graded)
    for options in (("old", "new"), ("copy", "old", "-m", "nDCG@5")):
        by_file, by_collection = (
            exampp_command("compare", *given, "--format", "csv")
            for given in ((graded, *options, "--bank", bank), (tmp_path / "my.exam", *options))
        )
        assert rows(by_file) == rows(by_collection)
        assert rows(by_file)


def test_a_graded_file_without_a_bank_says_why_it_quotes_nothing(
    exam: tuple[Path, Path], exampp_command: Commands
) -> None:
    ran = exampp_command("compare", exam[0], "old", "new")
    assert ran.code == 0, ran.err
    assert "A graded file knows items by their ids alone: name a bank." in ran.out


@pytest.mark.parametrize("style", ["text", "json", "csv"])
def test_where_nothing_has_a_value_the_command_fails(
    exam: tuple[Path, Path], exampp_command: Commands, style: str
) -> None:
    """No rating of the file can be read: tables with their notes, then a sentence and 1."""
    graded, bank = exam
    graded.write_text(re.sub(r'"self_rating": \d', '"self_rating": "?"', graded.read_text()))
    for command in ("evaluate", "analyze agreement"):
        ran = exampp_command(*command.split(), graded, "--format", style)
        assert ran.code == 1, (command, ran.err)
        assert ran.out
        assert "nothing could be computed" in ran.err
    ran = exampp_command("compare", graded, "old", "new", "--bank", bank, "--format", style)
    assert (ran.code, ran.out) == (2, "")
    assert "No cell has a grade" in ran.err
    assert "exampp grade" in ran.err


def test_compare_shows_one_query_with_whole_quotes(
    exam: tuple[Path, Path], exampp_command: Commands
) -> None:
    graded, bank = exam
    given = ("compare", graded, "old", "new", "--bank", bank, "--query", "q0")
    shown = exampp_command(*given)
    assert shown.code == 0
    assert "new compared with old on q0 air, item by item" in shown.out
    assert "Only new covers 1 of 2 items, only old 1, both 0, neither 0." in shown.out
    assert shown.out.index("How do whales breathe?") < shown.out.index("What does air scatter?")
    found = rows(exampp_command(*given, "--format", "csv"))
    assert [(r["item"], r["covered_by"], r["system"], r["rank"], r["quote"]) for r in found] == [
        ("How do whales breathe?", "only new", "old", "1", ""),
        ("How do whales breathe?", "only new", "new", "2", "Whales breathe air at the surface."),
        ("What does air scatter?", "only old", "old", "1", "Air scatters blue light."),
        ("What does air scatter?", "only old", "new", "1", ""),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("old", "knew"), "there is no system 'knew'. did you mean 'new'?"),
        (("old", "old"), "'old' is compared with itself"),
        (("old", "new", "--min-rating", "9"), "minimum rating 9 makes no sense"),
        (("old", "new", "-k", "0"), "must be"),
        (("old", "new", "--query", "q77"), "there is no query 'q77'"),
        (("old", "new", "--query", "q0", "--queries", "2"), "Leave one of the two out"),
        (("old", "new", "-m", "Covr"), "there is no measure 'Covr'"),
    ],
)
def test_compare_refuses(
    exam: tuple[Path, Path], exampp_command: Commands, arguments: tuple[str, ...], says: str
) -> None:
    ran = exampp_command("compare", exam[0], *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert "Traceback" not in ran.err
