"""NuggetBank v3 and RAGTIME 2026 banks: questions, claims, sub-nuggets, AND and OR answers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import argue
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.records import Item

REFERENCE = {"doc_id": "d1", "offsets": {"start_offset": 0, "end_offset": 9, "encoding": "UTF-8"}}
V3: dict[str, Any] = {
    "query_id": "7",
    "title_query": "machu picchu",
    "format_version": "v3",
    "nugget_bank": {
        "Where is it?": {
            "question": "Where is it?",
            "question_id": "1",
            "query_id": "7",
            "aggregator_type": "AND",
            "importance": "okay",
            "answers": {
                "in Peru": {"answer": "in Peru", "references": [REFERENCE]},
                "in South America": {"answer": "in South America"},
            },
            "sub_nuggets": [
                {
                    "question": "Which country?",
                    "aggregator_type": "OR",
                    "answers": [{"answer": "Peru"}, {"answer": "the Republic of Peru"}],
                }
            ],
        }
    },
    "claim_bank": {"It is old.": {"claim": "It is old.", "query_id": "7", "importance": 3}},
    "creator": [{"is_human": True}],
}
DIGEST = hashlib.md5(b"Which country?", usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("indent", [None, 2])
def test_version_three(tmp_path: Path, indent: int | None) -> None:
    path = file(tmp_path, json.dumps(V3, indent=indent), "7.json")
    assert detect(path) == "argue"
    (entry,) = argue.read(path)
    assert (entry.query_id, entry.query_text) == ("7", "machu picchu")
    assert entry.extra == {"argue": {"format_version": "v3", "creator": [{"is_human": True}]}}
    where, which, old = entry.items
    kept = V3["nugget_bank"]["Where is it?"]
    assert where == Item(
        "7/1",
        "7",
        "Where is it?",
        answers=("in Peru and in South America",),
        weight=0.5,
        extra={
            "argue": {
                "aggregator_type": "AND",
                "importance": "okay",
                "answers": kept["answers"],
            }
        },
    )
    assert (which.item_id, which.answers) == (f"7/{DIGEST}", ("Peru", "the Republic of Peru"))
    assert which.extra["argue"]["parent"] == "7/1"
    assert (old.kind, old.text, old.weight) == ("nugget", "It is old.", 1.0)
    assert old.extra == {"argue": {"importance": 3}}


RAGTIME = {
    "metadata": {"team_id": "t", "topic_id": "topic-1", "run_id": "r"},
    "nugget_bank": [
        {"question": "A?", "answers": [{"answer": "x", "references": ["d"]}, {"answer": "y"}]},
        {"question": "B?"},
    ],
}


def test_ragtime_and_many_banks_in_one_file(tmp_path: Path) -> None:
    path = file(tmp_path, f"{json.dumps(RAGTIME)}\n{json.dumps(V3)}\n", "banks.jsonl")
    assert detect(path) == "argue"
    first, second = argue.read(path)
    assert [(item.text, item.answers) for item in first.items] == [("A?", ("x", "y")), ("B?", ())]
    assert (first.query_id, second.query_id) == ("topic-1", "7")
    assert first.extra["argue"]["metadata"]["run_id"] == "r"


def bank(*nuggets: Any) -> str:
    return json.dumps({"query_id": "q", "nugget_bank": [{"question": "ok?"}, *nuggets]})


@pytest.mark.parametrize(
    ("nugget", "field", "what"),
    [
        (
            {"question": "x", "aggregator_type": "NOT"},
            "nugget_bank[1].aggregator_type",
            "unsupported aggregator 'NOT'",
        ),
        (
            {"question": "x", "sub_nuggets": [{"question": "y", "aggregator_type": "SUM"}]},
            "nugget_bank[1].sub_nuggets[0].aggregator_type",
            "unsupported aggregator 'SUM'",
        ),
        ({"question": " "}, "nugget_bank[1].question", "the text is blank"),
        ({"answers": []}, "nugget_bank[1].question", "no `question`"),
        ({"question": "ok?"}, "nugget_bank[1]", "occurs twice"),
        ({"question": "x", "answers": "y"}, "nugget_bank[1].answers", "must be a list"),
        ({"question": "x", "answers": [{}]}, "nugget_bank[1].answers[0].answer", "no `answer`"),
        ("x", "nugget_bank[1]", "must be an object"),
    ],
)
def test_bad_nuggets(tmp_path: Path, nugget: Any, field: str, what: str) -> None:
    path = file(tmp_path, bank(nugget) + "\n", "b.jsonl")
    error = fault(argue.read, path)
    assert (error.line, error.field) == (1, field)
    assert error.what.endswith(what)
    skipped = Skipped()
    (entry,) = argue.read(path, skipped)
    assert entry.items[0].text == "ok?"
    assert skipped.count == 1


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"query_id": "q", "nugget_bank": []}', "query 'q' occurs twice"),
        ('{"nugget_bank": []}', "the bank has no query id"),
        ('{"query_id": "r"}', "no `nugget_bank` or `claim_bank`"),
        ('{"query_id": "r", "nugget_bank": 3}', "must be a list"),
        ("[]", "must be an object"),
        ('{"query_id": ', "broken JSON (Expecting value)"),
    ],
)
def test_bad_banks(tmp_path: Path, line: str, what: str) -> None:
    path = file(tmp_path, f"{bank()}\n{line}\n", "b.jsonl")
    error = fault(argue.read, path)
    assert error.what.startswith(what)
    assert [entry.query_id for entry in argue.read(path, Skipped())] == ["q"]


# ---- writing -------------------------------------------------------------------------------------


def test_what_is_written_is_version_three(tmp_path: Path) -> None:
    path = file(tmp_path, f"{json.dumps(RAGTIME)}\n{json.dumps(V3)}\n", "banks.jsonl")
    found = list(argue.read(path))
    argue.write(tmp_path / "out.jsonl", found)
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    # what AutoJudge reads: objects by their texts, ids, the parts that were given
    assert (
        second["nugget_bank"]["Where is it?"]["answers"]
        == V3["nugget_bank"]["Where is it?"]["answers"]
    )
    assert second["claim_bank"]["It is old."]["importance"] == 3
    assert list(first["nugget_bank"]) == ["A?", "B?"]
    assert first["metadata"] == RAGTIME["metadata"]
    again = list(argue.read(tmp_path / "out.jsonl"))
    assert [entry.items for entry in again] == [entry.items for entry in found]


def test_changes_are_written(tmp_path: Path) -> None:
    from dataclasses import replace

    (entry,) = argue.read(file(tmp_path, json.dumps(V3), "7.json"))
    where, which, old = entry.items
    items = (
        replace(where, answers=("Peru", "the Andes"), weight=1.0),
        which,
        replace(old, item_id="own", subtopic_id="s"),
    )
    argue.write(tmp_path / "out.jsonl", [replace(entry, items=items)])
    (again,) = argue.read(tmp_path / "out.jsonl")
    assert [(i.item_id, i.answers, i.weight, i.subtopic_id) for i in again.items] == [
        (i.item_id, i.answers, i.weight, i.subtopic_id) for i in items
    ]
    with pytest.raises(InputError, match=r"item 'own' has weight 0\.3"):
        argue.write(
            tmp_path / "out.jsonl", [replace(entry, items=(replace(items[2], weight=0.3),))]
        )
