"""Faults of servers and networks: what is asked again, what is given up, what stops a run."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from support.contract import Counted, answers, make_ask, make_asks
from support.openai_graders import openai_grader
from support.servers import (
    HOSTILE,
    Answer,
    FaultServer,
    Plan,
    Seen,
    completion,
    error,
    random_faults,
)

from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.base import Reply, Request, sanitize_reply
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.grading.requests import ReplyRules
from exampp.prompts import load_grading_prompt
from exampp.records import State
from exampp.store.cells import PendingCells

QUICK: dict[str, Any] = {"concurrency": 16, "retries": 3, "timeout": 2, "backoff": 0.01}


def grader_at(server: FaultServer, policy: dict[str, Any] = QUICK) -> OpenAICompatibleGrader:
    return openai_grader("tiny", server.url, decode="text", **policy)


def attempts_until_answer(plan: Plan, text: str, most: int) -> int:
    for attempt in range(most):
        if plan(Seen("", {}, {}, text, attempt)) is None:
            return attempt + 1
    return most


def test_faulty_server_changes_nothing_but_the_asks_that_are_faults() -> None:
    asks = list(make_asks(40))
    doomed = frozenset(ask.user for ask in asks[::97])
    plan = random_faults(seed=32, rate=0.3, doomed=doomed)
    # what hangs at once hangs at the same time
    asks.sort(key=lambda ask: not getattr(plan(Seen("", {}, {}, ask.user, 0)), "hang", False))
    with FaultServer() as server:
        expected = answers(grader_at(server), asks)
    with FaultServer(plan=plan) as server:
        grader = grader_at(server)
        replies = answers(grader, asks)
        sent = server.attempts
    most = QUICK["retries"] + 1
    needed = {ask.user: attempts_until_answer(plan, ask.user, most) for ask in asks}
    assert sent == needed, "a request was sent too often, or not again"
    assert grader.spent.requests == sum(needed.values()) == len(asks) + grader.spent.retries
    faults = {ask.key for ask in asks if plan(Seen("", {}, {}, ask.user, needed[ask.user] - 1))}
    assert faults >= {ask.key for ask in asks if ask.user in doomed}
    for ask in asks:
        if ask.key in faults:
            assert replies[ask.key].fault.endswith(f"(tried {most} times)")
        else:
            assert replies[ask.key] == expected[ask.key]


NO_TEXT = "its content is no text"
PART = {"type": "text", "text": "Rating: "}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "5?"}]}


REASONING: Any = {"type": "reasoning", "text": "5?"}
SUMMARY: Any = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "5?"}]}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "4", "reasoning_content": "5?"},
        {"content": "4", "reasoning": "5?", "reasoning_content": None},
        {"content": [REASONING, {"type": "output_text", "text": "4"}]},
        {"content": [SUMMARY, {"type": "text", "text": "4"}]},
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_thoughts_that_the_server_tells_apart_are_no_reply(message: Any, whole: bool) -> None:
    if not whole:
        content = message["content"]
        message = {**message, "content": content[:1] if isinstance(content, list) else None}
    with FaultServer(lambda _: Answer(completion(None, message=message))) as server:
        reply = answers(grader_at(server), make_asks(1, items=1))[0]
        assert len(server.requests) == 1
    assert (reply.text, reply.fault) == ("4" if whole else "", "")
    assert reply.detail == {"thoughts": "5?"}
    due = PendingCells("", "item", (), "passage", ())
    outcome = ReplyRules(load_grading_prompt("question-self-rating")).read(due, reply)
    unfinished = (State.UNPARSED, None, "unfinished thought")
    found = (outcome.state, outcome.rating, outcome.rule)
    assert found == unfinished if not whole else outcome.rating == 4


@pytest.mark.parametrize("answer", [Answer({"choices": [{"text": 5}]}), Answer("no { json")])
def test_a_malformed_reply_is_asked_for_a_few_times_only(answer: Answer) -> None:
    with FaultServer(lambda _: answer) as server:
        reply = answers(grader_at(server, {"retries": 6, "backoff": 0.01}), make_asks(1, 1))[0]
        assert len(server.requests) == 3
    assert reply.fault.endswith("(tried 3 times)")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(500, "it broke"), "HTTP 500: it broke"),
        (error(429, headers={"retry-after": "0"}), "HTTP 429: error 429"),
        (Answer("<html>Bad gateway</html>", 502), "HTTP 502: <html>Bad gateway</html>"),
        (Answer(hang=True), "no reply in time"),
        (Answer(cut=0), "the connection broke (ServerDisconnectedError)"),
        (Answer(completion("1"), cut=120), "the connection broke (ClientPayloadError)"),
        (Answer("not { json"), "the reply is not JSON"),
        (Answer("[" * 100_000), "the reply is not JSON"),
        (Answer([1, 2]), "the reply is malformed: it has no choices"),
        (Answer({"choices": [{"text": "5"}]}), "the reply is malformed: unknown shape"),
        (Answer({"choices": [{"message": "5"}]}), "the reply is malformed: unknown shape"),
        (Answer(completion([{"x": 1}])), "the reply is malformed: unknown shape"),
        (Answer(completion({"text": "5"})), f"the reply is malformed: {NO_TEXT}"),
        (Answer(completion([PART, None])), "the reply is malformed: unknown shape"),
        (Answer(completion([{"type": "image"}])), f"the reply is malformed: {NO_TEXT}"),
        (Answer({"error": {"code": 503, "message": "later"}}), "HTTP 503: later"),
        (Answer({"error": "upstream"}), "HTTP 502: upstream"),
    ],
)
def test_transport_faults_are_asked_again_and_then_faults(answer: Answer, reason: str) -> None:
    policy = {"retries": 1, "timeout": 1 if answer.hang else 60, "backoff": 0.01}
    with FaultServer(plan=lambda _: answer) as server:
        replies = answers(grader_at(server, policy), make_asks(1, items=1))
        assert len(server.requests) == 2
    assert replies[0] == Reply("", fault=f"{reason} (tried 2 times)")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            error(
                400, "This model's maximum context length is 8192", code="context_length_exceeded"
            ),
            "too long for the model",
        ),
        (error(400, "the request exceeds the available context size"), "too long for the model"),
        (error(413, "payload"), "too long for the model"),
        (error(400, "something odd"), "HTTP 400: something odd"),
        (Answer({"detail": "odd"}, 422), "HTTP 422: odd"),
    ],
)
def test_rejected_ask_is_a_fault_and_not_asked_again(answer: Answer, reason: str) -> None:
    with FaultServer(plan=lambda seen: answer if "Passage 1 " in seen.text else None) as server:
        replies = answers(grader_at(server), make_asks(3, items=1))
        assert len(server.requests) == 3
    assert replies[1].fault.startswith(reason)
    assert not replies[0].fault
    assert not replies[2].fault


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (error(401, "bad key"), InputError, "bad key. Set OPENAI_API_KEY"),
        (error(403, "no access"), InputError, "no access. The key may not use 'tiny'"),
        (error(404, "no such model"), InputError, "no such model. Check that the model 'tiny'"),
        (error(400, "gone", code="model_not_found"), InputError, "gone. Check that the model"),
        (error(402, "pay"), Unfinished, "pay. Check the account, then run it again"),
        (error(429, "pay", code="insufficient_quota"), Unfinished, "Check the account"),
        (error(429, headers={"retry-after": "86400"}), Unfinished, "asks to wait 86400 s"),
        (error(400, "Unsupported", param="reasoning_effort"), InputError, "Leave --reasoning-eff"),
    ],
)
def test_what_no_ask_escapes_stops_the_run(
    answer: Answer, kind: type[ExamError], message: str
) -> None:
    source = Counted(make_asks(1_000))
    with FaultServer(plan=lambda _: answer) as server:
        with pytest.raises(kind) as caught:
            list(grader_at(server).answer(source))
        assert message in str(caught.value)
        assert "127.0.0.1:" in str(caught.value)
        assert len(server.requests) <= QUICK["concurrency"]
    assert source.pulled <= 2 * QUICK["concurrency"]


def test_stop_reaches_a_caller_who_was_busy() -> None:
    with FaultServer(plan=lambda seen: error(401) if "Passage 9 " in seen.text else None) as server:
        source = Counted(make_asks(1_000, items=1))
        stream = grader_at(server).answer(source)
        next(stream)
        assert source.pulled <= 2 * QUICK["concurrency"], "the first reply waits for no more"
        time.sleep(0.3)
        sent = len(server.requests)
        time.sleep(0.2)
        assert len(server.requests) == sent
        with pytest.raises(InputError, match="HTTP 401"):
            list(stream)


def test_gives_up_on_a_server_that_answers_nothing() -> None:
    policy = {"retries": 0, "give_up_after": 10, "concurrency": 4}
    with FaultServer(plan=lambda _: error(500, "no disk")) as server:
        with pytest.raises(Unfinished, match=r"10 requests in a row without a reply.*no disk"):
            list(grader_at(server, policy).answer(make_asks(1_000)))
        assert len(server.requests) <= 10 + 4


def test_asks_that_are_too_long_do_not_end_the_run() -> None:
    policy = {"give_up_after": 2}
    with FaultServer(plan=lambda _: error(413)) as server:
        assert len(answers(grader_at(server, policy), make_asks(10))) == 30


def test_server_that_is_not_there() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        grader = openai_grader("tiny", url, decode="text", **QUICK)
        with pytest.raises(InputError, match=r"does not answer\. Start the server"):
            list(grader.answer(make_asks(10)))


def test_slow_start_is_waited_for() -> None:
    def plan(seen: Seen) -> Answer | None:
        return Answer("loading", 503) if len(server.requests) < 20 else None

    with FaultServer(plan=plan) as server:
        policy = {"retries": 10, "backoff": 0.01}
        assert not any(r.fault for r in answers(grader_at(server, policy), make_asks(5)).values())


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (Answer(completion("I am still", "length")), ("I am still", True, {})),
        (
            Answer(completion("Well", "content_filter")),
            ("Well", False, {"refusal": True, "reason": "content_filter"}),
        ),
        (
            Answer(completion(None, message={"refusal": "I cannot"})),
            ("I cannot", False, {"refusal": True, "reason": "I cannot"}),
        ),
        (
            error(400, "blocked", code="content_filter"),
            ("", False, {"refusal": True, "reason": "HTTP 400: blocked"}),
        ),
        (
            Answer(completion([{"type": "refusal", "refusal": "I cannot"}])),
            ("I cannot", False, {"refusal": True, "reason": "I cannot"}),
        ),
        (Answer(completion([THOUGHT, PART])), ("Rating: ", False, {"thoughts": "5?"})),
        (Answer(completion(None)), ("", False, {})),
    ],
)
def test_replies_that_are_not_whole(
    answer: Answer, reply: tuple[str, bool, dict[str, object]]
) -> None:
    with FaultServer(lambda _: answer) as server:
        found = answers(grader_at(server), make_asks(1, items=1))[0]
        assert len(server.requests) == 1
    assert (found.text, found.truncated, dict(found.detail)) == reply
    assert not found.fault


def test_huge_and_odd_texts_arrive_as_they_are() -> None:
    texts = ["a\x00b\x1b", "漢字 🜁 \u2028", "x" * 300_000, "half \ud83d"]
    asks = [Request(key, "", "", text, "be fair") for key, text in enumerate(texts)]
    with FaultServer() as server:
        answers(grader_at(server), asks)
        arrived = sorted(server.attempts)
    assert arrived == sorted([*texts[:3], "half ?"])


def test_works_where_an_event_loop_runs_already() -> None:
    import asyncio

    async def notebook() -> int:
        with FaultServer() as server:
            return len(list(grader_at(server).answer(make_asks(2))))

    assert asyncio.run(notebook()) == 6


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_reply_is_a_reply_or_a_fault_and_ends_no_run(name: str) -> None:
    asks = list(make_asks(2))
    odd = asks[1].user
    with FaultServer(plan=lambda seen: HOSTILE[name](seen) if seen.text == odd else None) as server:
        replies = answers(grader_at(server), asks)
    right = {ask.key: str(sum(ask.user.encode()) % 6) for ask in asks}
    for ask in asks:
        reply = sanitize_reply(replies[ask.key])
        if ask.user != odd or name in ("gzip", "wrong type", "huge usage"):
            assert (reply.text, reply.fault) == (right[ask.key], "")
            assert reply.usage.read < 100
        else:
            assert reply.fault or not any(digit in reply.text[:10] for digit in "012345")
            assert len(reply.text) <= 2**20


def test_a_reply_that_swells_is_not_unpacked() -> None:
    ask = make_ask(0, "what", "that")
    with FaultServer(plan=lambda seen: HOSTILE["gzip bomb"](seen)) as server:
        reply = answers(grader_at(server, {"retries": 0}), [ask])[0]
        assert reply.fault == "the reply is longer than 32 MiB"
    with FaultServer(plan=lambda seen: HOSTILE["packed in another way"](seen)) as server:
        reply = answers(grader_at(server), [ask])[0]
        assert reply.fault.startswith("the reply is packed as 'br', which nobody asked for")
