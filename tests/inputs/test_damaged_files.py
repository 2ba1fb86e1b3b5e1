"""Files of programs with faults: their texts are read, or named as not read, or refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.forms import (
    ASKED,
    BRAINTRUST,
    CATS,
    FORMS,
    IN_TURNS,
    KEY,
    LIGHT,
    MESSAGES,
    MLFLOW_2,
    OTLP,
    RUNS,
    SAID,
    WEAVE,
    Contents,
    contents,
    csv_table,
    lines,
)

import exampp
from exampp.errors import InputError


class Case(NamedTuple):
    """A file with a fault, what a collection of it has, and the fields that are not read."""

    content: str
    expected: Contents
    unread: tuple[str, ...] = ()
    name: str = "log.jsonl"


def _spans() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    trace: dict[str, Any] = copy.deepcopy(OTLP)
    return trace, trace["resourceSpans"][0]["scopeSpans"][0]["spans"]


def _otlp_in_lists() -> str:
    trace, spans = _spans()
    spans[1]["attributes"] = [spans[1]["attributes"]]
    return lines(trace)


def _otlp_with_a_list_as_key() -> str:
    trace, spans = _spans()
    spans[1]["attributes"].append({"key": ["x"], "value": {"stringValue": "y"}})
    return lines(trace)


def _only_span_in_a_list() -> str:
    (span,) = MLFLOW_2["data"]["spans"]
    spans = [{**span, "attributes": [span["attributes"]]}]
    return lines({**MLFLOW_2, "data": {**MLFLOW_2["data"], "spans": spans}})


def _question_in_a_list() -> str:
    root, retriever = map(json.loads, FORMS["Phoenix, spans"].content.splitlines())
    root["attributes"]["input"] = [root["attributes"]["input"]]
    return lines(root, retriever)


def _maps(relevant: object) -> str:
    return json.dumps({"queries": {"q1": ASKED}, "corpus": {"a": LIGHT}, "relevant_docs": relevant})


ONLY_ANSWER = Contents(answers={"log": (SAID,)})
USER = {"role": "user", "content": ASKED}
REPLY = {"role": "assistant", "content": SAID}
BOTH = FORMS["OTLP"].expected
CASES = {
    "attributes of a span in a list of lists": Case(_otlp_in_lists(), BOTH),
    "an attribute whose key is a list": Case(
        _otlp_with_a_list_as_key(), ONLY_ANSWER, ("attributes.key", "attributes.value")
    ),
    "the question of a trace in a list of objects": Case(
        _question_in_a_list(),
        FORMS["Phoenix, spans"].expected._replace(queries=("plants need",)),
        ("attributes.input.value",),
    ),
    "attributes of the only span in a list": Case(
        _only_span_in_a_list(),
        ONLY_ANSWER,
        ("attributes.mlflow.spanOutputs",),
    ),
    "documents of a retriever under another name": Case(
        lines(RUNS[0], {**RUNS[1], "outputs": {"documnets": RUNS[1]["outputs"]["documents"]}}),
        ONLY_ANSWER,
        ("spans: retriever",),
    ),
    "a retriever that found nothing": Case(
        lines(RUNS[0], {**RUNS[1], "outputs": {"documents": []}}), ONLY_ANSWER
    ),
    "runs in a list of lists": Case(lines({**RUNS[0], "child_runs": [[RUNS[1]]]}), BOTH),
    "runs in a text": Case(lines({**RUNS[0], "child_runs": json.dumps([RUNS[1]])}), BOTH),
    "a text instead of a run": Case(
        lines({**RUNS[0], "child_runs": [LIGHT]}), ONLY_ANSWER, ("child_runs",)
    ),
    "an object around an object": Case(
        lines(
            {
                "item": {"question": ASKED, "reference": KEY},
                "sample": {"value": {"output_text": SAID}},
            }
        ),
        Contents(references=(KEY,)),
        ("sample",),
    ),
    "results in a field without a name": Case(
        lines({"prompt": ASKED, "referenceResponse": KEY, "": [{"response": SAID}]}),
        Contents(references=(KEY,)),
        ('""',),
    ),
    "two answers after a question": Case(
        lines(
            {
                "user_input": [
                    {"role": "user", "content": ASKED},
                    {"role": "assistant", "content": "Let me think."},
                    {"role": "assistant", "content": SAID},
                ],
                "retrieved_contexts": [CATS, LIGHT],
            }
        ),
        BOTH,
        ("user_input: other messages",),
    ),
    "the same answer twice, with other contexts": Case(
        lines(
            {
                "turns": [
                    {"role": "user", "content": ASKED},
                    *(
                        {"role": "assistant", "content": SAID, "retrieval_context": [one]}
                        for one in (CATS, LIGHT)
                    ),
                ]
            }
        ),
        ONLY_ANSWER._replace(contexts={"log:contexts": (CATS,)}),
        ("turns: other messages",),
    ),
    "contexts in a text of JSON": Case(
        lines(
            {
                "vars": {"question": ASKED},
                "promptIdx": 0,
                "prompt": {"label": "x"},
                "provider": {"id": "log"},
                "response": {"output": json.dumps({"answer": SAID, "context": [CATS, LIGHT]})},
            }
        ),
        BOTH,
        ("promptIdx",),
    ),
    "spans of a trace without its root": Case(
        lines(
            *(
                {
                    "id": one,
                    "trace_id": "t",
                    "parent_id": "x",
                    "started_at": "x",
                    "op_name": one,
                    "inputs": {"question": question},
                    "output": output,
                }
                for one, question, output in (("1", CATS, None), ("2", ASKED, {"answer": SAID}))
            )
        ),
        ONLY_ANSWER,
        ("spans: 1, of a trace without a root",),
    ),
    "a message whose number has thousands of digits": Case(
        lines(*MESSAGES[1:4], {**MESSAGES[4], "turn": "9" * 5000}),
        IN_TURNS,
        ("rating",),
    ),
    "a turn whose number has thousands of digits": Case(
        lines(
            {
                "conversation_id": "c",
                "turn": "9" * 5000,
                "question": ASKED,
                "answer": SAID,
                "contexts": [CATS, LIGHT],
            }
        ),
        BOTH,
        ("conversation_id", "turn"),
    ),
    "a dotted name whose number has thousands of digits": Case(
        lines({**RUNS[0], "child_runs": [], f"metadata.{'9' * 5000}": 1}),
        ONLY_ANSWER,
        ("metadata",),
    ),
    "two replies to one message, each a row": Case(
        lines(*MESSAGES[1:4], {**MESSAGES[4], "content": "Hm."}, {**MESSAGES[4], "turn": 5}),
        Contents(
            ("Hi", f"user: Hi\nassistant: {SAID}\nuser: {ASKED}"), answers={"bot-1": (SAID, SAID)}
        ),
        ("rating", "messages: other messages"),
    ),
    "a second answer among the messages of an object": Case(
        lines(
            {
                "inputs": {"messages": [USER]},
                "outputs": {"messages": [USER, {"role": "assistant", "content": KEY}, REPLY]},
            }
        ),
        ONLY_ANSWER,
        ("outputs: other messages",),
    ),
    "a damaged parent of a span": Case(
        lines({**WEAVE[0], "parent_id": True}, {**WEAVE[1], "parent_id": None}),
        Contents(("light?",), answers={"log": ("lights",)}),
        ("spans: predict",),
    ),
    "documents of an output in lists of their own": Case(
        lines(
            {
                **BRAINTRUST,
                "output": {"answer": SAID, "documents": [[CATS, [LIGHT]], [[], [LIGHT]]]},
            }
        ),
        BOTH._replace(references=(KEY,)),
        ("metadata", "scores"),
    ),
    "a message without a role": Case(
        lines(
            {
                "user_input": [{"role": "user", "content": ASKED}, {"content": SAID}],
                "retrieved_contexts": [CATS, LIGHT],
            }
        ),
        Contents(contexts={"log": (CATS, LIGHT)}),
        ("user_input: other messages",),
    ),
    "a record inside one that no preset reads": Case(
        lines({**{name: RUNS[0][name] for name in ("id", "outputs")}, "child_runs": [RUNS[1]]}),
        Contents(("plants",), contexts={"log": (CATS, LIGHT)}),
        ("$.id", "$.outputs"),
    ),
    "an object in a text": Case(
        lines({"item": {"question": ASKED}, "sample": json.dumps({"output_text": SAID})}),
        ONLY_ANSWER,
    ),
    "a text instead of an object": Case(
        lines({"item": {"question": ASKED, "reference": KEY}, "sample": SAID}),
        Contents(references=(KEY,)),
        ("sample",),
    ),
    "replies in a list of their own": Case(
        lines(
            {
                "user_input": [{"role": "user", "content": ASKED}, [REPLY, REPLY]],
                "retrieved_contexts": [CATS, LIGHT],
            }
        ),
        Contents(contexts={"log": (CATS, LIGHT)}),
        ("user_input: other messages",),
    ),
    "a conversation in a list": Case(
        lines(
            {
                "user_input": [[{"role": "user", "content": ASKED}, REPLY]],
                "retrieved_contexts": [CATS, LIGHT],
            }
        ),
        BOTH,
    ),
    "a number instead of a role": Case(
        lines(
            {
                "conversations": [
                    {"from": "human", "value": ASKED},
                    {"from": "gpt", "value": SAID},
                    {"from": 1, "value": LIGHT},
                ]
            }
        ),
        ONLY_ANSWER,
        ("conversations: other messages",),
    ),
    "a text in a list instead of an object": Case(
        lines(
            {
                "item": {"question": ASKED, "reference": KEY},
                "sample": {"model": "gpt", "output": [SAID]},
            }
        ),
        Contents(references=(KEY,)),
        ("sample.output",),
    ),
    "a reference beside an answer under another name": Case(
        csv_table(
            [f"evaluated_model_{name}" for name in ("input", "o_output", "gold_answer")],
            [ASKED, SAID, KEY],
        ),
        Contents(references=(KEY,)),
        ("evaluated_model_o_output",),
        "log.csv",
    ),
    "texts in a column without a name": Case(
        csv_table(["", "question", "model_answer"], [LIGHT, ASKED, SAID]),
        ONLY_ANSWER,
        ('""',),
        "log.csv",
    ),
    "texts side by side in a list": Case(
        csv_table(["question", "answer", "contexts"], [ASKED, SAID, f"['{CATS}''{LIGHT}']"]),
        BOTH,
        name="log.csv",
    ),
    "quoted texts side by side": Case(
        csv_table(["app_id", "record_id", "input", "output"], ["log", "r", f'"{ASKED}"', '"a""b"']),
        Contents(answers={"log": ('"a""b"',)}),
        ("record_id",),
        "log.csv",
    ),
    "ids of documents in a list of lists": Case(
        _maps({"q1": [["a"]]}), Contents(judgments=(("a", 1),)), ("$.corpus",), "log.json"
    ),
    "judgments of an unknown query": Case(
        _maps({"q1": ["a"], "q2": ["b"]}),
        Contents(judgments=(("a", 1),)),
        ("$.relevant_docs",),
        "log.json",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_without_a_word(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    case = CASES[name]
    (tmp_path / case.name).write_text(case.content)
    report = empty_exam.import_files(tmp_path / case.name)
    found = contents(empty_exam, tmp_path)
    texts = {text for some in case.expected.answers.values() for text in some}
    moved = {name: some for name, some in found.contexts.items() if {*some} <= texts}
    found = found._replace(
        contexts={name: some for name, some in found.contexts.items() if name not in moved},
        answers={**found.answers, **moved},
    )
    assert found == case.expected
    assert [field for fields in report.unread.values() for field in fields] == [*case.unread]


SAME_QUESTION = {"question": ASKED, "answer": SAID, "contexts": [CATS]}
REFUSED = {
    "two results of one question on one line": (
        json.dumps([SAME_QUESTION, {**SAME_QUESTION, "contexts": [LIGHT]}]),
        "log.json",
        "was already on this line",
    ),
    "a record without its question": (
        lines({"outputs.answer": SAID}),
        "log.jsonl",
        "outputs.answer: is a field of a record, not a query id",
    ),
    "the answer of a system without its question": (
        lines({"v_answers": SAID}),
        "log.json",
        "v_answers: is a field of a record, not a query id",
    ),
    "a message without a role that is the whole record": (
        lines({"messages": [{"role": True, "content": ASKED}]}),
        "log.jsonl",
        "missing results of a system",
    ),
    "an empty last message of the user": (
        lines({"turns": [
            {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": [[]]}, {"role": "assistant", "content": SAID},
        ]}),
        "log.jsonl",
        "ends with an empty user message",
    ),
    "an object with only an answer instead of a question": (
        lines(
            {"doc_id": 0, "doc": {"answer": KEY}, "target": KEY, "arguments": {},
             "resps": [[SAID]], "filtered_resps": [SAID], "filter": "none"}
        ),
        "log.jsonl",
        "doc: is an object with the fields answer",
    ),
    "a table with an empty row of answers": (
        csv_table(["question", "[p] x"], [ASKED, ""], ["Why?", f"[PASS] {SAID}"]),
        "log.csv",
        "the system returned nothing",
    ),
    "a list in a cell that is broken in a text": (
        csv_table(["question", "answer", "contexts"], [ASKED, SAID, f"['{CATS}' '{LIGHT}\n']"]),
        "log.csv",
        "contexts: is a broken or truncated list",
    ),
    "a message of no conversation": (
        lines({**MESSAGES[1], "session_id": None}, *MESSAGES[1:]),
        "log.jsonl",
        "log.jsonl:1, conversation_id: the message names no conversation",
    ),
    "a message of an unknown role": (
        lines(MESSAGES[1], {**MESSAGES[2], "role": "bob"}),
        "log.jsonl",
        "log.jsonl:2, role: unknown role 'bob'. Write user, assistant or system",
    ),
    "a message that nobody answers": (
        lines(*MESSAGES[1:4]),
        "log.jsonl",
        "log.jsonl:3, messages: the conversation ends without a message of the system",
    ),
    "a number that is no id of a document": (
        _maps({"q1": [1.5]}),
        "log.json",
        "relevant_ids: an id must be a text or a whole number, not '1.5'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_loss_is_refused(tmp_path: Path, empty_exam: exampp.Collection, name: str) -> None:
    content, file, fault = REFUSED[name]
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError) as refused:
        empty_exam.import_files(tmp_path / file)
    assert fault in str(refused.value)
    assert not any(count for _, count in empty_exam.contents().rows)
