"""Graded passages with odd values: read, written, and read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exampp
from exampp.errors import InputError
from exampp.formats import workbench
from exampp.formats.read_warnings import collect_warnings
from exampp.records import QueryPool

RATED = {
    "correctAnswered": ["q/b"],
    "wrongAnswered": ["q/a"],
    "answers": [["q/a", "0"], ["q/b", "4 of 5"]],
    "llm": "google/flan-t5-large",
    "llm_options": {"prompt_template": "x"},
    "exam_ratio": 0.5,
    "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"},
    "self_ratings": [
        {"question_id": "q/a", "self_rating": 0},
        {"question_id": "q/b", "self_rating": 4},
    ],
    "prompt_type": "question",
}
NUGGETS = RATED | {
    "prompt_info": {"prompt_class": "NuggetSelfRatedPrompt", "prompt_style": "?"},
    "prompt_type": "nugget",
    "self_ratings": [
        {"nugget_id": "q/a", "self_rating": 0},
        {"nugget_id": "q/b", "self_rating": 4},
    ],
}
VERDICTS = {key: value for key, value in RATED.items() if key != "self_ratings"} | {
    "prompt_info": {"prompt_class": "QuestionPromptWithChoices"},
}
FOREIGN = RATED | {"prompt_info": {"prompt_class": "AnybodysPrompt"}}
OURS = RATED | {
    "llm_options": {
        "exampp": {
            "model": "mine",
            "prompt": "mine",
            "kind": "question",
            "lowest": 0,
            "highest": 5,
            "settings": {},
        }
    },
}
PASSAGE = {
    "paragraph_id": "p",
    "text": "Some text.",
    "paragraph": {},
    "paragraph_data": {
        "judgments": [{"paragraphId": "p", "query": "q", "relevance": 2, "titleQuery": "q"}],
        "rankings": [
            {"method": "bm25", "paragraphId": "p", "queryId": "q", "rank": 1, "score": 3.5},
            {"method": "bm25", "paragraphId": "p", "queryId": "q/s", "rank": 1, "score": 2},
        ],
    },
    "exam_grades": [RATED, NUGGETS],
}
OTHER = PASSAGE | {"paragraph_id": "r", "exam_grades": [VERDICTS], "title": "A title"}
OTHER["paragraph_data"] = {"judgments": [], "rankings": []}
LINE = ["q", [PASSAGE, OTHER]]
SCALARS = (None, True, False, 0, 1, 1.0, -1, 6, 10**400, 2**53 + 1, "", "q/a", "q/s", "r", "ü")
PARTS: tuple[Any, ...] = (
    "\ud800",
    [],
    {},
    {"x": 1},
    ["q/a"],
    [["q/a", "1"]],
    [OURS],
    [FOREIGN, FOREIGN],
)
ODD = st.sampled_from([*SCALARS, *PARTS])


def fresh(value: Any) -> Any:
    """A copy of JSON no part of which is a part of another."""
    return json.loads(json.dumps(value))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every part of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def lines(draw: st.DrawFn) -> Any:
    """A plain line, up to three parts of which were changed, left out, put twice or added to."""
    line = fresh(LINE)
    for _ in range(draw(st.integers(0, 3))):
        if not (found := list(places(line))):
            break
        holder, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["change", "drop", "twice", "add"])):
            case "drop":
                del holder[key]
            case "twice" if isinstance(holder, list):
                holder.append(fresh(holder[key]))
            case "add" if isinstance(holder, dict):
                names = ["nugget_id", "question_id", "grades", "titel", "exam_ratio"]
                holder[draw(st.sampled_from(names))] = fresh(draw(ODD))
            case _:
                holder[key] = fresh(draw(ODD))
    return line


def read(path: Path) -> tuple[Any, ...]:
    """The pools of a file, or the sentence that it gets, with all that is heard on the way."""
    cells: list[str] = []
    with collect_warnings() as heard:
        try:
            found: list[QueryPool] | str = list(
                workbench.read(path, on_cell=lambda error: cells.append(str(error)))
            )
        except InputError as error:
            found = str(error)
    return found, cells, heard.sentences()


@given(lines())
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_read_is_written_and_read_again(tmp_path: Path, line: Any) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = read(path)
    if isinstance(found[0], list):
        workbench.write(tmp_path / "again.jsonl", found[0])
        assert read(tmp_path / "again.jsonl")[0] == found[0]


AS_QUERY = {
    "exampp": {
        "model": "mine",
        "prompt": "own",
        "kind": "query",
        "lowest": 0,
        "highest": 5,
        "settings": {},
    }
}
DIRECT = {"correctAnswered": True, "answer": "Yes", "llm": "m", "llm_options": {}}


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        (
            {"grades": [DIRECT | {"prompt_info": RATED["prompt_info"]}]},
            "[1][0].grades[0].prompt_info: here stand grades of the query itself, and the prompt "
            "'question-self-rating' is for a question. Move the entry to exam_grades, or correct "
            "its prompt",
        ),
        (
            {"exam_grades": [RATED, RATED | {"prompt_info": {"prompt_class": "Thomas"}}]},
            "[1][0].exam_grades[1].prompt_info: here stand grades of questions and nuggets, and "
            "the prompt 'thomas-workbench' is for a query. Move the entry to grades, or correct "
            "its prompt",
        ),
        (
            {"exam_grades": [RATED | {"llm_options": AS_QUERY}]},
            "[1][0].exam_grades[0].prompt_info: here stand grades of questions and nuggets, and "
            "the prompt 'own' is for a query. Move the entry to grades, or correct its prompt",
        ),
    ],
)
def test_a_prompt_of_the_other_kind_of_grades_is_refused(
    tmp_path: Path, entries: dict[str, Any], what: str
) -> None:
    """Written again it would stand where it says something else, or nowhere."""
    path = tmp_path / "graded.jsonl"
    path.write_text(json.dumps(["q", [PASSAGE | {"exam_grades": None} | entries]]) + "\n")
    assert read(path)[0] == f"{path}:1, {what}"
    with pytest.raises(InputError, match="here stand grades"):
        exampp.open(path)
