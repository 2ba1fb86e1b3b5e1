"""Several items of a passage in one request: what is sent, read, and asked alone."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.declared_prompts import parse_prompt
from support.servers import Answer, FaultServer, Seen, completion, llama_server

import exampp
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.openai.modes import Mode
from exampp.graders.options import OpenAIOptions
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.costs import estimate
from exampp.prompts import fill, load_grading_prompt
from exampp.prompts.prompt import item_slots
from exampp.prompts.reply_fields import split_reply
from exampp.records import State

MANY = "question-rating-many"
ITEM = re.compile(r"^(\d+)\. (item \d+ .*)$", re.M)
ITEMS, PASSAGES = 12, 3


def truth(item: str, text: str) -> int:
    """Return the rating of an item by a prompt that has a passage; no two neighbours are equal."""
    passage = re.search(r"passage (\d+)", text)
    return (int(item.split()[1]) * 7 + int(passage[1] if passage else 0)) % 6


def right(text: str) -> dict[str, Any]:
    return {number: truth(item, text) for number, item in ITEM.findall(text)}


def make(folder: Path, kind: str = "question") -> exampp.Collection:
    exam = exampp.Collection.create(folder / "my.exam")
    exam.add(
        queries={"q": "the query"},
        passages={f"p{n}": f"the text of passage {n}" for n in range(PASSAGES)},
        runs={"s": {"q": [f"p{n}" for n in range(PASSAGES)]}},
        bank=[
            {"query_id": "q", "item_id": f"i{n}", "text": f"item {n} ?", "kind": kind}
            for n in range(ITEMS)
        ],
    )
    return exam


def rated(exam: exampp.Collection) -> list[tuple[str, str, int, int | None, str]]:
    return [
        tuple(row)
        for row in exam.connection.execute(
            "SELECT i.text, p.text, g.state, g.rating, g.detail FROM grade g "
            "JOIN item_version i ON i.version = g.item_version "
            "JOIN passage_version p ON p.version = g.passage_version"
        )
    ]


def graded(folder: Path, reply: Callable[[Seen], Any], **options: Any) -> tuple[Any, FaultServer]:
    """Grade the exam on a server that replies so; every rating must be the true one."""

    def script(seen: Seen) -> Answer:
        said = reply(seen)
        return said if isinstance(said, Answer) else Answer(completion(said))

    with FaultServer(script) as server, make(folder) as exam:
        usual: dict[str, Any] = {
            "decode": "text",
            "model": "m",
            "base_url": server.url,
            "prompt": MANY,
        }
        exam.grade("openai", **{**usual, **options})
        rows = rated(exam)
        for item, passage, state, rating, _ in rows:
            if state == State.GRADED:
                assert rating == truth(item, passage), (item, passage)
        return rows, server


def test_all_items_of_a_passage_are_one_request(tmp_path: Path) -> None:
    rows, server = graded(tmp_path, lambda seen: json.dumps(right(seen.text)))
    assert Counter(row[2] for row in rows) == {0: ITEMS * PASSAGES}
    sizes = Counter(len(ITEM.findall(seen.text)) for seen in server.requests)
    assert sizes == {10: PASSAGES, 2: PASSAGES}
    details = [json.loads(row[4]) for row in rows]
    assert Counter(one["items"] for one in details) == {10: 30, 2: 6}
    assert Counter(one["position"] for one in details if one["items"] == 10) == dict.fromkeys(
        range(1, 11), PASSAGES
    )
    # the order is drawn for every passage
    orders = {tuple(item for _, item in ITEM.findall(s.text)) for s in server.requests}
    assert len({tuple(order) for order in orders if len(order) == 10}) == PASSAGES


def test_the_open_items_of_a_passage_share_a_request(tmp_path: Path) -> None:
    rows, server = graded(
        tmp_path, lambda seen: json.dumps(right(seen.text)), measures=["Cover"], min_rating=4
    )
    # item n has rating (n + p) % 6 on passage p: p0 covers 4 of 12, p1 then 2 of 8, and 6 are left
    sizes = [len(ITEM.findall(seen.text)) for seen in server.requests]
    assert sorted(sizes) == [2, 6, 8, 10]
    assert len(rows) == 12 + 8 + 6


def test_items_of_two_queries_share_no_request(tmp_path: Path) -> None:
    """A prompt with the text of the query would ask about items of the other one."""

    def reply(seen: Seen) -> Answer:
        return Answer(completion(str(["support"] * len(re.findall(r"q. nugget", seen.text)))))

    with FaultServer(reply) as server, exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q1": "the first query", "q2": "the second query"},
            passages={"p1": "one text", "p2": "one text"},
            runs={"s": {"q1": ["p1"], "q2": ["p2"]}},
            bank=[
                {"query_id": query, "text": f"{query} nugget {n}", "kind": "nugget"}
                for query in ("q1", "q2")
                for n in range(3)
            ],
        )
        prompt = "nuggetizer-assigner-many"
        exam.grade("openai", model="m", base_url=server.url, prompt=prompt, decode="text")
        assert len(rated(exam)) == 6
    texts = sorted(seen.text for seen in server.requests)
    assert len(texts) == 2
    for text, query, other in zip(texts, ("first", "second"), ("q2", "q1"), strict=True):
        assert f"the {query} query" in text
        assert f"{other} nugget" not in text


BAD: dict[str, Callable[[dict[str, Any]], str]] = {
    "one is missing": lambda said: json.dumps({n: r for n, r in said.items() if n != "3"}),
    "one is off the scale": lambda said: json.dumps({**said, "2": 9}),
    "one is null": lambda said: json.dumps({**said, "2": None}),
    "one is an object": lambda said: json.dumps({**said, "2": {"grade": 1}}),
    "one is repeated": lambda said: json.dumps(said)[:-1] + ', "1": 5}',
    "one too many": lambda said: json.dumps({**said, str(len(said) + 1): 5}),
    "numbered from zero": lambda said: json.dumps(
        {str(int(number) - 1): rating for number, rating in said.items()}
    ),
    "prose": lambda said: "I rate them " + ", ".join(str(rating) for rating in said.values()),
    "prose with digits": lambda said: f"Item 1 is 5. {json.dumps(said)}",
    "a list": lambda said: json.dumps(list(said.values())),
    "nothing": lambda _: "",
    "cut": lambda said: json.dumps(said)[:-3],
    "two objects": lambda said: json.dumps(dict.fromkeys(said, 0)) + json.dumps(said),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_or_missing_is_asked_alone_and_never_a_wrong_rating(
    name: str, tmp_path: Path
) -> None:
    def reply(seen: Seen) -> str:
        said = right(seen.text)
        return BAD[name](said) if len(said) > 1 else json.dumps(said)

    rows, server = graded(tmp_path, reply)
    assert Counter(row[2] for row in rows) == {0: ITEMS * PASSAGES}
    alone = sum(len(ITEM.findall(seen.text)) == 1 for seen in server.requests)
    assert 0 < alone <= ITEMS * PASSAGES
    if name in ("one is missing", "one is off the scale", "one is null", "one is repeated"):
        assert alone <= 2 * PASSAGES


def test_an_item_that_stays_unclear_alone_is_unparsed(tmp_path: Path) -> None:
    def reply(seen: Seen) -> str:
        said = right(seen.text)
        for number, item in ITEM.findall(seen.text):
            if item.startswith("item 3 "):
                said[number] = "?"
        return json.dumps(said)

    rows, _ = graded(tmp_path, reply)
    states = Counter((row[0].startswith("item 3 "), State(row[2])) for row in rows)
    assert states == {(False, State.GRADED): 33, (True, State.UNPARSED): 3}


def test_a_refused_bundle_is_asked_alone(tmp_path: Path) -> None:
    def reply(seen: Seen) -> Any:
        said = right(seen.text)
        refused = Answer({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)
        return refused if len(said) > 1 else json.dumps(said)

    rows, server = graded(tmp_path, reply)
    assert Counter(row[2] for row in rows) == {0: ITEMS * PASSAGES}
    assert len(server.requests) == 2 * PASSAGES + ITEMS * PASSAGES


@pytest.mark.parametrize("end", ["stopped", "refused"])
def test_clear_ratings_are_stored_if_an_item_is_never_answered_alone(
    end: str, tmp_path: Path
) -> None:
    def script(seen: Seen) -> Answer:
        said = right(seen.text)
        if len(said) > 2:
            return Answer(completion(json.dumps({n: said[n] for n in said if n != "3"})))
        if end == "refused":
            return Answer({"error": {"message": "the key has expired"}}, 401)
        run.stop(grace=0.1)
        return Answer(hang=True)

    with FaultServer(script) as server, make(tmp_path) as exam:
        options: dict[str, Any] = {"model": "m", "base_url": server.url, "decode": "text"}
        run = exam.grading("openai", prompt=MANY, concurrency=1, **options)
        with suppress(InputError):
            *_, _ = run.steps()
        rows = rated(exam)
        assert [row[2] for row in rows] == [State.GRADED] * 9
        assert all(rating == truth(item, passage) for item, passage, _, rating, _ in rows)


@pytest.mark.parametrize("seed", range(20))
def test_random_faults_give_no_wrong_rating(seed: int, tmp_path: Path) -> None:
    def reply(seen: Seen) -> str:
        chance = random.Random(f"{seed}{seen.text}{seen.attempt}")
        said = right(seen.text)
        if chance.random() < 0.4:
            return json.dumps(said)
        return BAD[chance.choice(sorted(BAD))](said)

    graded(tmp_path, reply, concurrency=1 + seed % 7)


def test_limits_hold_and_every_request_is_counted(tmp_path: Path) -> None:
    with (
        FaultServer(lambda _: Answer(completion("prose"))) as server,
        make(tmp_path) as exam,
    ):
        options: dict[str, Any] = {
            "model": "m",
            "base_url": server.url,
            "decode": "text",
            "prompt": MANY,
        }
        run = exam.grading("openai", max_requests=7, concurrency=1, **options)
        *_, progress = run.steps()
        assert len(server.requests) == 7 == progress.spent.requests
        assert "max_requests" in run.why_stopped
        # what was read and written is counted once for a request
        assert progress.spent.tokens_read == 20 * 7


def test_a_server_with_schemas_is_given_one_with_all_numbers(tmp_path: Path) -> None:
    def reply(seen: Seen) -> str:
        if "response_format" in seen.body:
            schema = seen.body["response_format"]["json_schema"]["schema"]["properties"]
            if "number" in schema:
                return json.dumps({"number": schema["number"]["enum"][0]})
            assert list(schema) == [number for number, _ in ITEM.findall(seen.text)]
            assert all(one["enum"] == [0, 1, 2, 3, 4, 5] for one in schema.values())
            return json.dumps(right(seen.text))
        return "no idea"

    rows, _ = graded(tmp_path, reply, decode="auto")
    assert Counter(row[2] for row in rows) == {0: ITEMS * PASSAGES}


def test_a_long_passage_leaves_room_for_all_items(tmp_path: Path) -> None:
    limit = 420
    with (
        FaultServer(lambda seen: Answer(completion(json.dumps(right(seen.text))))) as server,
        exampp.Collection.create(tmp_path / "my.exam") as exam,
    ):
        exam.add(
            queries={"q": "the query"},
            passages={"p": "passage 1 " + "word " * 2_000},
            runs={"s": {"q": ["p"]}},
            bank=[{"query_id": "q", "question": f"item {n} ?"} for n in range(ITEMS)],
        )
        options: dict[str, Any] = {
            "model": "m",
            "base_url": server.url,
            "decode": "text",
            "prompt": MANY,
        }
        run = exam.grading("openai", limit=limit, **options)
        *_, _ = run.steps()
        assert Counter(row[2] for row in rated(exam)) == {0: ITEMS}
        for seen in server.requests:
            assert run.grading.grader.length(seen.text) <= limit
            assert seen.text.count("word") > 20


def test_each_item_has_the_probabilities_of_its_own_value() -> None:
    prompt = load_grading_prompt(MANY)
    mode = Mode(OpenAIOptions(model="m"), "json", prompt.labels, "1", 20, shared=prompt)
    requests = [Request(n, f"item {n} ?", "passage 1") for n in range(2)]
    tokens = [('{"1', {}), ('": ', {}), ("4", {"4": 0.9, "3": 0.1}), (', "2": ', {})]
    tokens += [("0", {"0": 0.6, "1": 0.4}), ("}", {})]
    content = [
        {
            "token": token,
            "logprob": 0.0,
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in top.items()],
        }
        for token, top in tokens
    ]
    data = completion("".join(token for token, _ in tokens), logprobs={"content": content})
    replies = mode.read(data, requests).replies
    by_position = {reply.detail["position"]: reply for reply in replies}
    assert [by_position[n].text for n in (1, 2)] == ['{"1": 4}', '{"1": 0}']
    assert by_position[1].scores == pytest.approx({**dict.fromkeys("0125", 0), "4": 0.9, "3": 0.1})
    assert by_position[2].scores == pytest.approx({**dict.fromkeys("2345", 0), "0": 0.6, "1": 0.4})


@pytest.mark.parametrize("target", [None, "Cover@3"])
def test_the_estimate_counts_shared_requests(target: str | None, tmp_path: Path) -> None:
    with (
        FaultServer(lambda seen: Answer(completion(json.dumps(right(seen.text))))) as server,
        make(tmp_path) as exam,
    ):
        more: dict[str, Any] = {} if target is None else {"measures": [target]}
        options: dict[str, Any] = {"model": "m", "base_url": server.url, "decode": "text"}
        run = exam.grading("openai", prompt=MANY, dry_run=True, **options, **more)
        found = estimate(run)
        assert not server.requests
        assert found.cells == ITEMS * PASSAGES
        exam.grade("openai", prompt=MANY, **options, **more)
        sent = len(server.requests)
        assert found.at_least <= sent <= found.requests
        if target is None:
            assert sent == found.requests == 2 * PASSAGES
            characters = sum(len(seen.text) for seen in server.requests)
            assert found.tokens == pytest.approx(characters / 4, rel=0.05)


def test_it_is_a_grader_of_its_own(tmp_path: Path) -> None:
    script = ScriptedGrader(
        lambda one: json.dumps(right(one.user)) if ITEM.search(one.user) else "3"
    )
    with make(tmp_path) as exam:
        for prompt in (MANY, "question-self-rating"):
            exam.grade(script, prompt=prompt, model="m")
        assert len({one.key for one in exam.graders}) == 2


# ---- nuggetizer ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("nuggetizer-assigner-many", "nuggetizer-assigner"),
        ("nuggetizer-assigner-many-2grade", "nuggetizer-assigner_2grade"),
    ],
)
def test_ten_nuggets_are_asked_to_the_letter(name: str, file: str, shared_data: Path) -> None:
    theirs = yaml.safe_load((shared_data / "prompts" / f"{file}.yaml").read_text(encoding="utf-8"))
    prompt = load_grading_prompt(name)
    mode = Mode(OpenAIOptions(model="m"), "text", shared=prompt)
    nuggets = [f"nugget's {{{n}}}" for n in range(10)]
    requests = [
        Request(n, nugget, "The passage.", system=prompt.system, query="why")
        for n, nugget in enumerate(nuggets)
    ]
    system, user = (one["content"] for one in mode.body(requests)["messages"])
    in_order = re.findall(r"nugget's {\d}", user)
    assert sorted(in_order) == nuggets
    assert system == theirs["system_message"]
    asked = {"query": "why", "context": "The passage.", "passage": "The passage."}
    assert user == theirs["prefix_user"].format(**asked, num_nuggets=10, nuggets=in_order)


def test_labels_of_nuggets_are_a_list_in_order() -> None:
    labels = ["support", "not_support", "partial_support"]
    assert split_reply(str(labels), 3, listed=True) == [repr([label]) for label in labels]
    assert split_reply(f"```python\n{labels}\n```", 3, listed=True)[0] == "['support']"
    for wrong in (str(labels[:2]), str([*labels, "support"]), "support", "", "[1", "{}"):
        assert split_reply(wrong, 3, listed=True) == ["", "", ""]


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_any_order_of_numbers_is_read(count: int, chance: random.Random) -> None:
    ratings = {str(n): chance.randrange(6) for n in range(1, count + 1)}
    shuffled = dict(chance.sample(sorted(ratings.items()), count))
    texts = split_reply(json.dumps(shuffled), count, listed=False)
    assert [json.loads(text)["1"] for text in texts] == list(ratings.values())


DECLARED = """
name = "mine"
title = "Mine"
grades = "question"
reading = "rating"
scale = { lowest = 0, highest = 1 }
cut = "context"
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('items = 10\nuser = "{question} {context}"', "a request has up to 10 items"),
        ('user = "{items} {context}"', "a request has up to 1 items"),
        ('items = 5\nuser = "{count} {question} {context}"', r"several items has no \{question\}"),
        (
            'items = 5\nuser = "{items} {context} {correct_answer}"',
            r"several items has no \{correct_answer\}\. Use only \{items\}, \{nuggets\}",
        ),
        ('items = 0\nuser = "{items} {context}"', "'items' is 0"),
        ('items = 5\nfield = "grade"\nuser = "{items} {context}"', "only their ratings, by number"),
    ],
)
def test_declarations_that_cannot_be(more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_prompt(DECLARED + more)


@pytest.mark.parametrize("decode", ["labels", "choice"])
def test_a_label_is_no_reply_to_several_items(decode: str) -> None:
    prompt = load_grading_prompt(MANY)
    with pytest.raises(InputError, match="asks for the ratings of several items"):
        Mode(OpenAIOptions(model="m"), decode, prompt.labels, "1", shared=prompt)


def test_slots_of_items() -> None:
    assert item_slots(["a", "b"]) == {"items": "1. a\n2. b", "nuggets": "['a', 'b']", "count": "2"}
    assert item_slots(["a\n2. c", "b"])["items"] == "1. a 2. c\n2. b"
    filled = fill(load_grading_prompt(MANY), {"context": "c", **item_slots(["a", "b"])}).user
    assert "\nQuestions:\n1. a\n2. b\nReply" in filled


def test_on_a_real_server(tmp_path: Path) -> None:
    with llama_server(tmp_path) as url, make(tmp_path) as exam:
        options: dict[str, Any] = {
            "model": "tiny",
            "base_url": url,
            "prompt": MANY,
            "max_new_tokens": 200,
        }
        progress = exam.grade("openai", decode="json", timeout=60, **options)
        rows = rated(exam)
        assert len(rows) == ITEMS * PASSAGES
        assert {row[2] for row in rows} == {State.GRADED}
        assert all(row[3] in range(6) for row in rows)
        assert progress.spent.requests < ITEMS * PASSAGES
