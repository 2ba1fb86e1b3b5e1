"""The mode that `auto` chooses on the cells of an exam, and probabilities beside a schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import Answer, FaultServer, Seen, completion, error, llama_server, logprobs

import exampp
from exampp.errors import InputError
from exampp.graders.openai.modes import CHOICE_FORMS, Mode
from exampp.graders.options import OpenAIOptions

DIGITS = tuple("012345")
CELLS = 8
"""Cells of the small exam."""


def server_of(
    *features: str,
    says: str = "Blue light is what it scatters",
    mass: Callable[[str], float] = lambda _: 0.9,
    refuses: bool = False,
) -> FaultServer:
    """A server with some features: logprobs, json, and forms of choice; others are ignored."""

    def script(seen: Seen) -> Answer:
        body = seen.body
        if refuses and set(body) & {*CHOICE_FORMS, "logprobs"} - {*features}:
            return error(400, "unknown parameter")
        if "response_format" in body and "json" in features:
            schema = body["response_format"]["json_schema"]["schema"]["properties"]
            values = {name: one.get("enum", ["blue"])[-1] for name, one in schema.items()}
            return said(json.dumps(values))
        for form in {*CHOICE_FORMS} & set(body) & {*features}:
            given = json.dumps(body[form])
            return said("7531" if "7531" in given else "4")
        if body.get("logprobs") and "logprobs" in features:
            share = mass(seen.text)
            chances = {"3": math.log(share), "The": math.log(1 - share)}
            return Answer(completion("3", "length", logprobs=logprobs(chances)))
        return said(says)

    def said(text: str) -> Answer:
        usage = {"prompt_tokens": 9, "completion_tokens": len(text)}
        return Answer({**completion(text), "usage": usage})

    return FaultServer(script)


def grade(exam: exampp.Collection, server: FaultServer, **options: Any) -> Mapping[str, Any]:
    """Grade the exam; return the settings of the newest grader."""
    exam.grade("openai", model="m", base_url=server.url, **options)
    return exam.graders[-1].settings


def cells_sent(server: FaultServer) -> list[Seen]:
    """Return the requests that carry a cell."""
    return [seen for seen in server.requests if "Context:" in seen.text]


@pytest.mark.parametrize(
    ("features", "says", "decode"),
    [
        (("logprobs", "json", "grammar"), "Blue light is what it scatters", "labels"),
        (("json", "grammar"), "Blue light is what it scatters", "choice"),
        (("json", "guided_choice"), "Blue light is what it scatters", "choice"),
        (("json", "structured_outputs"), "2", "choice"),
        (("json",), "Blue light is what it scatters", "json"),  # the text has no rating
        (("json",), "2", "text"),  # fewer tokens
        ((), "Blue light is what it scatters", "text"),
        ((), "2", "text"),
    ],
)
@pytest.mark.parametrize("refuses", [False, True])
def test_auto_takes_the_shortest_mode_that_reads_the_first_cells(
    tmp_path: Path, features: tuple[str, ...], says: str, decode: str, refuses: bool
) -> None:
    with (
        server_of(*features, says=says, refuses=refuses) as server,
        exams.make(tmp_path) as exam,
    ):
        run = exam.grading("openai", model="m", base_url=server.url)
        assert run.grading.identity.settings["decode"] == decode
        (note,) = [one for one in run.notes if "auto chose" in one]
        assert f"auto chose --decode {decode}: " in note
        assert f"{decode} reads {0 if decode == 'text' and says != '2' else 2}" in note


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("decode", ["auto", "choice", "json"])
@pytest.mark.parametrize("refuses", [False, True])
def test_tests_of_the_server_keep_the_limit_on_requests(
    tmp_path: Path, limit: int, decode: str, refuses: bool
) -> None:
    with server_of("structured_outputs", refuses=refuses) as server, exams.make(tmp_path) as exam:
        options: dict[str, Any] = {"model": "m", "base_url": server.url, "decode": decode}
        with suppress(InputError):
            exam.grade("openai", max_requests=limit, **options)
        assert len(server.requests) <= limit


@pytest.mark.parametrize(
    ("inside", "outside", "decode"), [(0.9, 0.1, "labels"), (0.1, 0.9, "json")]
)
def test_auto_asks_the_exam_and_not_an_unrelated_question(
    tmp_path: Path, inside: float, outside: float, decode: str
) -> None:
    """The model says labels to the prompts of the exam only, or to every other prompt only."""
    with (
        server_of(
            "logprobs", "json", mass=lambda text: inside if "Context:" in text else outside
        ) as server,
        exams.make(tmp_path) as exam,
    ):
        assert grade(exam, server)["decode"] == decode
        assert not any("snake" in seen.text for seen in server.requests)


def test_one_cell_that_is_not_read_is_enough_to_pass_over_a_mode(tmp_path: Path) -> None:
    with (
        server_of(
            "logprobs", "json", mass=lambda text: 0.1 if "p4" in text or "Compass" in text else 0.9
        ) as server,
        exams.make(tmp_path) as exam,
    ):
        run = exam.grading("openai", model="m", base_url=server.url)
        assert run.grading.identity.settings["decode"] == "json"
        (note,) = run.notes
        assert "labels reads 1 of 2 cells" in note


def test_a_later_run_and_another_process_use_the_mode_of_the_first(tmp_path: Path) -> None:
    with server_of("json", "grammar") as server, exams.make(tmp_path) as exam:
        first = grade(exam, server, max_queries=1)
        assert first["decode"] == "choice"
    # the server can do more now, or less: the grades must stay of one grader
    with (
        server_of("logprobs", "json", "grammar") as server,
        exampp.Collection(tmp_path / "my.exam") as exam,
    ):
        assert grade(exam, server) == first
        assert len(exam.graders) == 1
        trials = [seen for seen in server.requests if "logprobs" in seen.body]
        assert not trials
        row = exam.connection.execute(
            "SELECT count(*), min(state), max(state) FROM grade"
        ).fetchone()
        assert tuple(row) == (CELLS, 0, 0)


def test_what_was_tried_is_stored_with_the_run(tmp_path: Path) -> None:
    with server_of("json") as server, exams.make(tmp_path) as exam:
        grade(exam, server)
        (stored,) = exam.connection.execute("SELECT detail FROM run").fetchone()
        tried = json.loads(stored)["tried"]
        assert [(one["mode"], one["read"], one["tried"]) for one in tried] == [
            ("json", 2, 2),
            ("text", 0, 1),
        ]
        assert all(one["seconds"] > 0 and one["written"] > 0 for one in tried)


def test_other_modes_of_the_same_model_stay_other_graders(tmp_path: Path) -> None:
    with server_of("logprobs", "json", "grammar") as server, exams.make(tmp_path) as exam:
        decodes = ("text", "json", "choice", "labels")
        assert [grade(exam, server, decode=decode)["decode"] for decode in decodes] == [*decodes]
        assert len(exam.graders) == 4


@pytest.mark.parametrize("form", CHOICE_FORMS)
def test_a_choice_is_sent_in_the_form_that_the_server_knows(form: str) -> None:
    with server_of(form) as server:
        grader = openai_grader("m", server.url, labels=DIGITS, decode="choice")
        assert answers(grader, make_asks(1))[0].text == "4"
        body = server.requests[-1].body
        assert body[form] == CHOICE_FORMS[form](DIGITS)[form]
        assert not set(body) & {*CHOICE_FORMS} - {form}
        assert grader.settings["labels"] == [*DIGITS]
        assert grader.unnumbered is None


def test_forms_of_a_choice() -> None:
    labels = ('say "no"', "a|b", "é")
    assert CHOICE_FORMS["grammar"](labels) == {"grammar": 'root ::= "say \\"no\\"" | "a|b" | "é"'}
    assert CHOICE_FORMS["regex"](labels) == {"regex": r'(say\ "no"|a\|b|é)'}


def test_a_server_that_ignores_a_choice_is_an_error_before_the_first_cell() -> None:
    with server_of() as server:
        grader = openai_grader("m", server.url, labels=DIGITS, decode="choice")
        with pytest.raises(
            InputError, match=r"does not enforce one of several replies. Use decode"
        ):
            list(grader.answer(make_asks(2)))


# ---- probabilities beside a schema ---------------------------------------------------------------

REPLY = ("evidence", "reason", "grade")


def scored(tokens: list[tuple[str, Mapping[str, float]]], labels: tuple[str, ...] = DIGITS) -> Any:
    """Read a JSON reply of these tokens, each with the probabilities of its alternatives."""
    content = [
        {
            "token": token,
            "logprob": math.log(others.get(token, 1.0)),
            "top_logprobs": [
                {"token": name, "logprob": math.log(chance)} for name, chance in others.items()
            ],
        }
        for token, others in tokens
    ]
    text = "".join(token for token, _ in tokens)
    mode = Mode(OpenAIOptions(), "json", labels, "grade", 20, REPLY)
    return mode.read(completion(text, logprobs={"content": content}), []).replies[0]


BEFORE: list[tuple[str, Mapping[str, float]]] = [
    ('{"evidence"', {}),
    (': "the \\"grade\\": 5",', {}),
    (' "reason": "x", "', {}),
]


@pytest.mark.parametrize(
    "tokens",
    [
        [("grade", {}), ('":', {}), (" 4", {" 4": 0.6, " 3": 0.2, " the": 0.2}), ("}", {})],
        [("grade", {}), ('": ', {}), ("4", {"4": 0.6, "3": 0.2, "x": 0.2}), ("}", {})],
        [("grade", {}), ('": 4', {'": 4': 0.6, '": 3': 0.2, '":': 0.2}), ("}", {})],
        [("gra", {}), ('de": ', {}), ("4}", {"4}": 0.6, "3}": 0.2, "{": 0.2})],
    ],
)
def test_the_probabilities_are_those_of_the_value(
    tokens: list[tuple[str, Mapping[str, float]]],
) -> None:
    reply = scored([*BEFORE, *tokens])
    assert reply.scores == pytest.approx({**dict.fromkeys(DIGITS, 0.0), "4": 0.75, "3": 0.25})


def test_a_forced_value_has_no_probabilities() -> None:
    forced = [("grade", {}), ('": ', {}), ("4", {"4": 0.3, "The": 0.7}), ("}", {})]
    assert scored([*BEFORE, *forced]).scores is None
    assert scored([("4", {"4": 0.9})]).scores is None  # no value of that name


def test_a_real_server_gives_both(tmp_path: Path) -> None:
    with llama_server(tmp_path) as url:
        grader = openai_grader(
            "tiny", url, labels=DIGITS, field="grade", decode="auto", max_new_tokens=64
        )
        grader._reply = ("grade",)  # only json and text are possible
        replies = answers(grader, make_asks(4)).values()
        assert grader.settings["decode"] == "json"
        for reply in replies:
            assert json.loads(reply.text)["grade"] in range(6)
            assert reply.scores is None or set(reply.scores) == {*DIGITS}
        choice = openai_grader("tiny", url, labels=("yes", "no"), decode="choice")
        texts = {reply.text for reply in answers(choice, make_asks(4)).values()}
        assert texts <= {"yes", "no"}
