"""Conversations and items to avoid from the file to prompts, edits, records and pages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import live
from support.pages import read

import exampp
from exampp.analysis.items import item_list
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records.turns import NO_TURNS
from exampp.results.result import render
from exampp.review.lists import summarize_queries

ASKED = "What can I give her?"
TURNS = [
    {"role": "user", "content": "My daughter has a fever.\nHelp!"},
    {"role": "assistant", "content": "How old is she?"},
]
EARLIER = "user: My daughter has a fever.\nHelp!\nassistant: How old is she?"
RUBRIC = [
    {"criterion": "Dose by weight", "points": 6},
    {"criterion": "Aspirin is fine", "points": -8},
]
PROMPT = """
name = "turns"
title = "Turns"
grades = "nugget"
reading = "rating"
scale = { lowest = 0, highest = 5 }
cut = "context"
user = "[{conversation}] [{query}] [{nugget}] [{context}]"
"""


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def rate(request: Request) -> str:
    """Rate 5 what the passage says, else 0."""
    return "5" if request.item.split()[0] in request.passage else "0"


def build(folder: Path) -> Path:
    """Return a collection of a conversation and a single question, with answers of two systems."""
    rows: list[dict[str, Any]] = [
        {"prompt_id": "c", "prompt": [*TURNS, {"role": "user", "content": ASKED}]},
        {"prompt_id": "s", "prompt": [{"role": "user", "content": "Is it safe?"}]},
    ]
    path = folder / "my.exam"
    with exampp.create(path) as exam:
        exam.import_files(
            lines(folder / "rubrics.jsonl", *({**row, "rubrics": RUBRIC} for row in rows))
        )
        answers = [("good", "Dose it."), ("bad", "Aspirin! Dose it."), ("poor", "Sleep.")]
        exam.import_files(
            lines(
                folder / "answers.jsonl",
                *({"query_id": q, "system": s, "text": t} for q in "cs" for s, t in answers),
            )
        )
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("talk"))
    with exampp.open(path) as exam:
        exam.grade(ScriptedGrader(rate), prompt="nugget-self-rating")
    return path


def test_a_rubric_is_scored_as_published(path: Path) -> None:
    with exampp.open(path) as exam:
        board = exam.grades().evaluate(["Cover@20", "Avoided@20", "Points@20"], min_rating=4)
        values = {(row.system, row.measure): row.value for row in board.per_query()}
        means = {(row.system, row.measure): row.mean for row in board.rows}
    assert {s: means[s, "Cover@20"] for s in ("good", "bad", "poor")} == {
        "good": 1.0,
        "bad": 1.0,
        "poor": 0.0,
    }
    assert {s: means[s, "Avoided@20"] for s in ("good", "bad", "poor")} == {
        "good": 1.0,
        "bad": 0.0,
        "poor": 1.0,
    }
    # (6 - 8) / 6, and the mean of two such queries is clipped
    assert values["bad", "Points@20"] == pytest.approx(-1 / 3)
    assert means["bad", "Points@20"] == 0.0
    assert means["good", "Points@20"] == 1.0


def test_grading_for_avoided_asks_only_about_items_to_avoid(tmp_path: Path) -> None:
    asked: list[str] = []

    def noted(request: Request) -> str:
        asked.append(request.item)
        return rate(request)

    with exampp.open(build(tmp_path)) as exam:
        exam.grade(ScriptedGrader(noted), prompt="nugget-self-rating", measures=["Avoided@20"])
        board = exam.grades().evaluate(min_rating=4)
    assert set(asked) == {"Aspirin is fine"}
    assert [str(one.measure) for one in board.columns] == ["Avoided@20"]
    assert {row.system: row.mean for row in board.rows} == {"good": 1.0, "bad": 0.0, "poor": 1.0}


def test_ncover_beside_avoided_has_a_leaderboard(tmp_path: Path) -> None:
    """Only nCover needs passages below the cutoff, and not their items to avoid."""
    asked: set[tuple[str, str]] = set()

    def noted(request: Request) -> str:
        asked.add((request.item, request.passage))
        return rate(request)

    texts = {"top": "Wait.", "below": "Dose it."}
    items = [
        {"query_id": "c", "nugget": "Dose by weight"},
        {"query_id": "c", "nugget": "Aspirin is fine", "weight": -1},
    ]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(lines(tmp_path / "bank.jsonl", *items))
        exam.add(queries={"c": ASKED}, passages=texts, runs={"deep": {"c": ["top", "below"]}})
        measures = ["nCover@1", "Avoided@1"]
        exam.grade(ScriptedGrader(noted), prompt="nugget-self-rating", measures=measures)
        board = exam.grades().evaluate(min_rating=4)
    assert asked == {
        ("Aspirin is fine", "Wait."),
        ("Dose by weight", "Wait."),
        ("Dose by weight", "Dose it."),
    }
    assert {row.measure: row.mean for row in board.rows} == {"nCover@1": 0.0, "Avoided@1": 1.0}


def test_an_item_to_avoid_can_become_vital(tmp_path: Path) -> None:
    items = [
        {"query_id": "c", "nugget": "Dose by weight", "importance": "vital"},
        {"query_id": "c", "nugget": "Aspirin is fine", "importance": "avoid"},
    ]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(lines(tmp_path / "bank.jsonl", *items))
        exam.add(queries={"c": ASKED}, passages={"p": "Aspirin."}, runs={"a": {"c": ["p"]}})
        exam.grade(ScriptedGrader(rate), prompt="nugget-self-rating")

        def vital() -> float | None:
            board = exam.grades().evaluate(["NuggetVital@1"], min_rating=4)
            return next(row.mean for row in board.rows if row.system == "a")

        assert vital() == 0.0
        (avoided,) = [one for one in exam.bank().items("c") if one.weight < 0]
        exam.bank().edit("weight", avoided.item_id, "vital", query_id="c")
        assert vital() == 0.5
        exam.bank().undo(int(str(exam.bank().log().rows[-1][0])))
        assert vital() == 0.0


def test_prompts_show_the_turns(tmp_path: Path) -> None:
    sent: dict[str, set[str]] = {}

    def noted(request: Request) -> str:
        sent.setdefault(request.query_id, set()).add(request.user.partition(" [Dose")[0])
        return rate(request)

    prompt = tmp_path / "turns.toml"
    prompt.write_text(PROMPT)
    whole = tmp_path / "whole.toml"
    whole.write_text(
        PROMPT.replace("[{conversation}] ", "").replace('"turns"', '"whole"'), encoding="utf-8"
    )
    path = build(tmp_path)
    with exampp.open(path) as exam:
        for item in exam.bank().items("c") + exam.bank().items("s"):
            if item.weight < 0:
                exam.bank().edit("retire", item.item_id, query_id=item.query_id)
        exam.grade(ScriptedGrader(noted), prompt=str(prompt))
        assert sent == {"c": {f"[{EARLIER}] [{ASKED}]"}, "s": {f"[{NO_TURNS}] [Is it safe?]"}}
        sent.clear()
        exam.grade(ScriptedGrader(noted), prompt=str(whole))
        assert sent == {"c": {f"[{EARLIER}\nuser: {ASKED}]"}, "s": {"[Is it safe?]"}}
        sent.clear()
        # another earlier turn makes the cells of the conversation pending again, and no other
        changed = {"query_id": "c", "text": ASKED, "history": [{"role": "user", "content": "Hi"}]}
        exam.import_files(lines(tmp_path / "queries.jsonl", changed), update=True)
        exam.grade(ScriptedGrader(noted), prompt=str(prompt))
        assert sent == {"c": {f"[user: Hi] [{ASKED}]"}}


def bank_of(exam: exampp.Collection) -> list[tuple[str, str | None, float]]:
    items = exam.bank().items("c") + exam.bank().items("s")
    return [(one.query_id, one.text, one.weight) for one in items]


def test_transcripts_survive_export(path: Path, tmp_path: Path) -> None:
    with exampp.open(path) as exam:
        exam.export(tmp_path / "q.jsonl", "queries")
        exam.export(tmp_path / "bank.csv", "bank")
        texts = exam.query_texts()
        bank = bank_of(exam)
    assert texts == {"c": f"{EARLIER}\nuser: {ASKED}", "s": "Is it safe?"}
    with exampp.create(tmp_path / "again.exam") as exam:
        exam.import_files(tmp_path / "q.jsonl", tmp_path / "bank.csv")
        assert exam.query_texts() == texts
        assert bank_of(exam) == bank


def test_banks_have_turns_and_words_for_items_to_avoid(tmp_path: Path) -> None:
    table = "query_id,nugget,importance,turn\nc,Dose,vital,2\nc,Aspirin,avoid,\n"
    (tmp_path / "bank.csv").write_text(table)
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(tmp_path / "bank.csv")
        items = {one.text: one for one in exam.bank().items("c")}
        exam.export(tmp_path / "out.csv", "bank")
    assert items["Dose"].extra["turn"] == 2
    assert items["Aspirin"].weight == -1.0
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == (
        "query_id,nugget,weight,importance,turn"
    )
    (tmp_path / "bad.csv").write_text(table.replace(",2\n", ",0\n"))
    with (
        exampp.create(tmp_path / "bad.exam") as exam,
        pytest.raises(exampp.InputError, match="'0' is not the number of a turn"),
    ):
        exam.import_files(tmp_path / "bad.csv")


def test_weights_are_edited_by_word(path: Path, tmp_path: Path) -> None:
    with exampp.open(build(tmp_path)) as exam:
        (item,) = (one for one in exam.bank().items("c") if one.weight > 0)
        for value, weight in (("avoid", -1.0), ("-2.5", -2.5), ("vital", 1.0)):
            exam.bank().edit("weight", item.item_id, value, query_id="c")
            found = {one.item_id: one.weight for one in exam.bank().items("c")}
            assert found[item.item_id] == weight


def test_comparisons_list_the_items_that_the_measure_reads(path: Path) -> None:
    with exampp.open(path) as exam:
        for measure, changes in (
            ("Cover", {}),
            ("Avoided", {"Aspirin is fine": "gained, to avoid"}),
        ):
            found = exam.grades().compare("good", "bad", measure, min_rating=4).records()["items"]
            rows = [
                dict(zip((c.name for c in found.columns), row, strict=True)) for row in found.rows
            ]
            assert {str(row["item"]): row["change"] for row in rows} == changes


def test_pages_show_turns_and_items_to_avoid(path: Path) -> None:
    with exampp.open(path) as exam:
        record = exam.record("c")
        items = [one.item_id for one in exam.bank().items("c") if one.weight < 0]
        passage = exam.grades().gradebook.queries[0].passage_ids[0]
    assert "bad covers 1 of 1 item; states 1 of 1 item to avoid." in record.headline
    assert record.tables()["conversation"].rows[1] == ("assistant", "How old is she?")
    cell = {"query": "c", "item": items[0], "passage": passage}
    with live.visiting(path) as client:
        for address, parameters in (
            ("/query", {"id": "c"}),
            ("/record", {"id": "c"}),
            ("/bank", {"query": "c"}),
            ("/cell", cell),
            ("/judge", {"order": "cell", **cell}),
            ("/judge/all", {"by": "item", **cell}),
        ):
            page = read(client.get(address, **parameters).text)
            (talk,) = page.all("section", class_="conversation")
            assert [one.text for one in talk.all("li")] == [
                "user My daughter has a fever.\nHelp!",
                "assistant How old is she?",
            ], address
            assert "to avoid" in page.all("main")[0].text, address
        page = read(client.get("/query", id="s").text)
        assert not page.all("section", class_="conversation")
        assert page.all("h1")[0].text == "Is it safe?"
        page = read(client.get("/query", id="c").text)
        assert page.all("h1")[0].text == ASKED


def test_cover_by_turn(tmp_path: Path) -> None:
    """Items: c has two of turn 1 (weights 3 and 1), one of turn 2, one of all; s one of turn 1."""
    rows = [
        {"query_id": "c", "nugget": "alpha", "weight": 3, "turn": 1},
        {"query_id": "c", "nugget": "beta", "turn": 1},
        {"query_id": "c", "nugget": "gamma", "turn": 2},
        {"query_id": "c", "nugget": "delta"},
        {"query_id": "s", "nugget": "alpha", "turn": 1},
        {"query_id": "s", "nugget": "omega", "weight": -5, "turn": 2},
    ]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"c": "user: A\nassistant: B\nuser: C", "s": "single"})
        exam.import_files(lines(tmp_path / "bank.jsonl", *rows))
        exam.add(responses={"few": {"c": "alpha gamma"}, "most": {"c": "alpha beta", "s": "alpha"}})
        exam.grade(ScriptedGrader(rate), prompt="nugget-self-rating", model="scripted")
        found = exam.grades().items()
        turns = exam.grades().turns()
        report = exam.grades().report()
        table = found.tables()["turns"]
    assert [one.heading for one in table.columns] == ["system", "turn 1", "turn 2", "conversation"]
    # turn 1: few (3/4 + 0) / 2, most (1 + 1) / 2; turn 2 and the conversation have items of c alone
    covers = [[system, *(one.value for one in of)] for system, of in turns.rows]
    assert covers == [["most", 1.0, 0.0, 0.0], ["few", 0.375, 1.0, 0.0]]
    # limits of Clopper and Pearson: 2 of 2 queries, 0 of 1, 1 of 1
    ends = {(system, at): of[at] for system, of in turns.rows for at in (0, 1)}
    assert ends["most", 0].low == pytest.approx(0.025 ** (1 / 2))
    assert ends["most", 0].high == 1
    assert ends["most", 1].high == pytest.approx(0.975)
    assert ends["few", 1].low == pytest.approx(0.025)
    assert list(table.notes) == [
        "Means over the queries with items of a turn, with 95% intervals: turn 1 (3 items "
        "of 2 queries), turn 2 (1 item of 1 query), conversation (1 item of 1 query)."
    ]
    assert [row[:4] for row in found.records()["turns"].rows] == list(table.rows)
    assert turns.headline == (
        "most has its highest Cover on turn 1, 1.000, and its lowest on turn 2, 0.000."
    )
    plotted = {tuple(row[:2]): row[2:] for row in turns.plot().data.rows}
    assert plotted == {
        (turn.name, system): (of[at].value, of[at].low, of[at].high)
        for system, of in turns.rows
        for at, turn in enumerate(turns.turns)
    }

    (section,) = (one for one in report.sections if one.key == "turns")
    assert (section.verdict, section.blocks[0]) == (turns.headline, turns.plot())
    assert section.blocks[1] == replace(turns.tables()["turns"], verdict="")

    with live.visiting(tmp_path / "my.exam") as client:
        assert "/turns" in client.get("/queries").text
        page = client.get("/turns").text
        assert turns.headline in page
        assert "/turns/plot.svg" in page
        assert client.get("/turns/plot.csv").text == render(turns.plot().values, "csv")


def test_cover_by_turn_needs_items_of_turns(path: Path) -> None:
    with exampp.open(path) as exam, pytest.raises(InputError, match="no item belongs to a turn"):
        exam.grades().turns()
    with live.visiting(path) as client:
        assert "No item belongs to a turn" in client.get("/turns").text
        assert client.get("/turns/plot.svg").status == 404


def test_lists_name_items_to_avoid_and_count_wanted_ones_as_answered(tmp_path: Path) -> None:
    """Of c and s the answers state both items; one of them is to be avoided."""
    with exampp.open(path := build(tmp_path)) as exam:
        exam.grade(ScriptedGrader(rate), prompt="nugget-self-rating", model="scripted")
        grades = exam.grades()
        listed = item_list(grades.bank_texts(), grades.gradebook, grades.items())
        column = grades.evaluate(["Cover@20"]).columns[0]
        summaries = summarize_queries(grades.gradebook, column, 4, {}, ())
    avoided = [one for one in listed.items if "to avoid" in one.state]
    assert [one.text for one in avoided] == ["Aspirin is fine"] * 2
    # 3 answers to c; they are graded, and no statistic counts them
    first = avoided[0]
    assert (first.cells, first.swaps, first.discrimination) == (3, None, None)
    assert not any("not graded" in one.state for one in listed.items)
    assert {(one.items, one.wanted, one.covered) for one in summaries} <= {(2, 1, 1), (2, 1, 0)}
    with live.visiting(path) as client:
        page = read(client.get("/items").text).text
        assert page.count("to avoid") == 2
        assert page.count("not graded") == 1  # the filter


def test_an_exam_with_queries_that_only_have_items_to_avoid(tmp_path: Path) -> None:
    """Such a query has no Cover; its record names what a system says."""
    bad = {"nugget": "bad", "weight": -1}
    with exampp.create(tmp_path / "bad.exam") as exam:
        exam.add(
            queries={"q": "q", "r": "r"},
            bank={"q": [bad], "r": [{"nugget": "good"}, {"nugget": "better"}, bad]},
            passages={"p1": "one", "p2": "two"},
            runs={"a": {"q": ["p1"], "r": ["p2"]}, "b": {"q": ["p2"], "r": ["p1"]}},
        )
        exam.grade(lambda _, passage: 5 * (passage.passage_id == "p1"), name="f", scale=(0, 5))
        grades = exam.grades()
        assert [one.mean for one in grades.evaluate(["Avoided"]).rows[:2]] == [0.5, 0.5]
        assert "a retrieves 1 of 1 item to avoid." in exam.record("q").headline
        assert grades.reliability().queries == 1
        grades.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size
