"""Training data: what is positive, what a hard negative, and what neither."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.exports.exam import Exported
from exampp.formats import data_sets

TEXTS = {
    "both": "Air scatters blue light, and dust reddens it.",
    "one": "Air scatters light.",
    "hard": "The sky is above.",
    "second": "Clouds are white.",
    "deep": "Birds fly.",
    "half": "Some say so.",
    "missed": "Rayleigh explains it.",
    "wrong": "Air and dust.",
    "copy": "AIR scatters  light.",
    "four": "Light is scattered.",
}
GRADES: dict[str, tuple[int | None, int | None]] = {
    "both": (5, 5),
    "one": (5, 0),
    "hard": (0, 0),
    "second": (3, 0),
    "deep": (0, 0),
    "half": (0, None),
    "missed": (0, 0),
    "wrong": (5, 5),
    "copy": (1, 0),
    "four": (4, 0),
    "said": (4, 0),
}
ITEMS = ["What scatters?", "What reddens?"]
ANSWER = "It scatters."


def graded(path: Path, items: list[str] = ITEMS, **more: Any) -> exampp.Collection:
    """One query; `hard` and `second` are the first that answer nothing."""
    exam = exampp.create(path)
    ranked = ["hard", "half", "missed", "both", "copy", "second", "deep", "four"]
    exam.add(
        queries={"sky": "why is the sky blue", "sea": "why is the sea blue", **more},
        passages=TEXTS,
        bank={"sky": items, "sea": items[:1]},
        runs={"dense": {"sky": ranked}, "sparse": {"sky": ["one", "wrong", "second"]}},
        qrels={"sky": {"missed": 3, "wrong": 0, "one": 2}},
        responses={"chat": {"sky": ANSWER}},
    )
    key_of = {text: key for key, text in TEXTS.items()} | {ANSWER: "said"}

    def rate(item: Any, passage: Any) -> int | None:
        return GRADES[key_of[passage.text]][ITEMS.index(item.text)]

    exam.grade(rate, name="judge", pool="all")
    return exam


def written(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def left_out(exported: Exported) -> dict[str, int]:
    rows = exported.tables()["export"].rows
    return {str(what): int(str(number)) for state, what, number in rows if state == "left out"}


def test_triplets_are_positives_with_hard_negatives(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam") as exam:
        exported = exam.grades().export(tmp_path / "out.jsonl", "triplets", depth=6)
    rows = written(tmp_path / "out.jsonl")
    assert all(list(row) == ["anchor", "positive", "negative"] for row in rows)
    # the passage with more items first, the negative with the better rank first
    assert [(row["positive"], row["negative"]) for row in rows] == [
        (TEXTS[positive], TEXTS[negative])
        for positive in ("both", "four", "one")
        for negative in ("hard", "second")
    ]
    assert {row["anchor"] for row in rows} == {"why is the sky blue"}
    assert left_out(exported) == {
        "queries without a positive passage": 1,
        "generated answers": 1,
        "answering passages that people judged not relevant": 1,
        "passages with ungraded items": 1,
        "unanswering passages that people judged relevant": 1,
        "passages with the text of another": 1,
    }


def test_options_change_what_counts(tmp_path: Path) -> None:
    def negatives(**options: Any) -> set[str]:
        out = tmp_path / "out.jsonl"
        exam.grades().export(out, "triplets", **options)
        return {row["negative"] for row in written(out)}

    with graded(tmp_path / "my.exam") as exam:
        assert negatives(depth=7) == {TEXTS[one] for one in ("hard", "second", "deep")}
        assert negatives(depth=7, negatives=1) == {TEXTS["hard"]}
        # with 3 as an answer, `second` is a positive passage
        assert negatives(min_rating=3, depth=7) == {TEXTS["hard"], TEXTS["deep"]}
        # with 5, what is rated 4 is neither positive nor negative
        assert negatives(min_rating=5, depth=7) == {
            TEXTS[one] for one in ("hard", "second", "deep")
        }
        with pytest.raises(exampp.InputError, match="negatives"):
            negatives(negatives=0)


def test_what_only_states_an_item_to_avoid_is_no_positive_passage(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam") as exam:
        bank = exam.bank()
        (avoided,) = [one for one in bank.items("sky") if one.text == ITEMS[0]]
        bank.edit("weight", avoided.item_id, "-1", query_id="sky")
        exam.grades().export(tmp_path / "out.jsonl", "triplets", depth=6)
    rows = written(tmp_path / "out.jsonl")
    assert {row["positive"] for row in rows} == {TEXTS["both"]}
    assert {row["negative"] for row in rows} == {TEXTS[one] for one in ("hard", "second", "copy")}


def test_the_set_of_beir_has_the_same_passages(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam") as exam:
        exam.grades().export(tmp_path / "set", "beir-train", depth=6)
    labels = {
        (one.passage_id, one.relevance) for one in data_sets.judgments(tmp_path / "set", print)
    }
    assert labels == {("both", 1), ("four", 1), ("one", 1), ("hard", 0), ("second", 0)}
    corpus = sorted(row["_id"] for row in written(tmp_path / "set/corpus.jsonl"))
    assert corpus == ["both", "four", "hard", "one", "second"]
    assert not (tmp_path / "set/bank.jsonl").exists()
    card = (tmp_path / "set/README.md").read_text()
    assert "evaluate them on other queries" in card
    assert "passages with ungraded items (1)" in card
    with exampp.create(tmp_path / "again.exam") as again:
        again.import_files(tmp_path / "set")
        assert again.query_texts() == {"sky": "why is the sky blue"}


def test_sealed_items_are_never_used(tmp_path: Path) -> None:
    with graded(tmp_path / "half.exam", ITEMS[:1]) as exam:
        exam.grades().export(tmp_path / "half.jsonl", "triplets")
    with graded(tmp_path / "my.exam") as exam:
        exam.grades().export(tmp_path / "whole.jsonl", "triplets")
        second = next(
            row["item"]
            for row in json.loads(exam.bank().show("sky").to_json())["rows"]
            if row["text"] == ITEMS[1]
        )
        for seed in range(50):
            exam.bank().split(0.4, seed=seed, author="ann", reason="again", again=seed > 0)
            sealed = json.loads(exam.bank().show(part="sealed").to_json())["rows"]
            if [row["item"] for row in sealed] == [second]:
                break
        exam.grades().export(tmp_path / "split.jsonl", "triplets")
        with pytest.raises(exampp.InputError, match="sealed items cannot be used"):
            exam.grades(part="sealed").export(tmp_path / "no.jsonl", "triplets")
    texts = {name: (tmp_path / f"{name}.jsonl").read_text() for name in ("half", "whole", "split")}
    assert texts["split"] == texts["half"] != texts["whole"]


def test_nothing_to_write_is_an_error_with_reasons(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam") as exam:
        exam.systems.remove("dense")
        said = r"no query has a positive passage and a hard negative.*without a hard negative \(1\)"
        with pytest.raises(exampp.InputError, match=said):
            exam.grades().export(tmp_path / "out.jsonl", "triplets", depth=1)
    assert not (tmp_path / "out.jsonl").exists()


def test_queries_need_texts(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam") as exam:
        exam.export(tmp_path / "graded.jsonl")
    with (
        exampp.open(tmp_path / "graded.jsonl") as file,
        pytest.raises(exampp.InputError, match="the queries have no text"),
    ):
        file.grades().export(tmp_path / "out.jsonl", "triplets")
    assert not (tmp_path / "out.jsonl").exists()


def test_standard_output_has_the_rows_alone(tmp_path: Path) -> None:
    graded(tmp_path / "my.exam").close()
    command = ["export", str(tmp_path / "my.exam"), "/dev/stdout", "--format", "triplets"]
    ran = subprocess.run(
        [sys.executable, "-m", "exampp", *command], capture_output=True, text=True, check=True
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {row["negative"] for row in rows} == {TEXTS[one] for one in ("hard", "second", "deep")}
    assert "9 triplets of 1 query" in ran.stderr
    assert "passages with ungraded items" in ran.stderr
