"""Faults of servers, rate limits, and keys that stay inside."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
import socket
import sys
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
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
    called,
    completion,
    error,
    random_faults,
)

from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.base import Reply, Request, sanitize_reply
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.openai.client import RateLimit, retry_after
from exampp.grading.requests import ReplyRules
from exampp.installed import install_command
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
    asks = list(make_asks(16))
    doomed = frozenset(ask.user for ask in asks[::24])
    # with this seed, nothing hangs at a second attempt
    plan = random_faults(seed=7, rate=0.3, doomed=doomed)
    # what hangs, hangs at the same time
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
            assert replies[ask.key].fault.endswith(f"(after {most} attempts)")
        else:
            assert replies[ask.key] == expected[ask.key]


NO_TEXT = "its content is not a text"
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


@pytest.mark.parametrize("shape", called("{}"))
def test_arguments_of_a_tool_call_are_the_reply(shape: str) -> None:
    message = called('{"grade": 4}')[shape]
    with FaultServer(lambda _: Answer(completion(None, "tool_calls", message=message))) as server:
        reply = answers(grader_at(server), make_asks(1, items=1))[0]
    assert (json.loads(reply.text), reply.fault) == ({"grade": 4}, "")
    assert reply.detail.get("called") == (None if shape == "as reasoning" else ["reply"])
    due = PendingCells("", "item", (), "passage", ())
    assert ReplyRules(load_grading_prompt("question-self-rating")).read(due, reply).rating == 4


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "Rating: 4", "tool_calls": []}, "Rating: 4"),
        ({"content": "Rating: 4", "tool_calls": "none", "function_call": 5}, "Rating: 4"),
        ({"content": "Rating: 4", "tool_calls": [{"function": {"name": "end"}}]}, "Rating: 4"),
        ({"content": "So:", "function_call": {"arguments": '{"grade": 4}'}}, 'So:\n{"grade": 4}'),
        ({"tool_calls": [{"arguments": '{"a": 1}'}, {"arguments": "{"}]}, '{"a": 1}\n{'),
        ({"content": [{"type": "tool_use", "name": "end", "input": {}}]}, ""),
        ({"reasoning_content": "Is it 5? No."}, ""),
        ({"reasoning_content": "5"}, ""),
    ],
)
def test_calls_beside_a_text_and_calls_without_arguments(message: Any, text: str) -> None:
    with FaultServer(lambda _: Answer(completion(None, message=message))) as server:
        reply = answers(grader_at(server, {"retries": 0}), make_asks(1, items=1))[0]
    assert (reply.text, reply.fault) == (text, "")


@pytest.mark.parametrize("answer", [Answer({"choices": [{"text": 5}]}), Answer("no { json")])
def test_a_malformed_reply_is_asked_for_a_few_times_only(answer: Answer) -> None:
    with FaultServer(lambda _: answer) as server:
        reply = answers(grader_at(server, {"retries": 6, "backoff": 0.01}), make_asks(1, 1))[0]
        assert len(server.requests) == 3
    assert reply.fault.endswith("(after 3 attempts)")


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
        (Answer({"choices": [{"text": "5"}]}), "the reply is malformed: unknown format"),
        (Answer({"choices": [{"message": "5"}]}), "the reply is malformed: unknown format"),
        (Answer(completion([{"x": 1}])), "the reply is malformed: unknown format"),
        (Answer(completion({"text": "5"})), f"the reply is malformed: {NO_TEXT}"),
        (Answer(completion([PART, None])), "the reply is malformed: unknown format"),
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
    assert replies[0] == Reply("", fault=f"{reason} (after 2 attempts)")


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
        (error(403, "no access"), InputError, "no access. The key has no access to 'tiny'"),
        (error(404, "no such model"), InputError, "no such model. Check that the model 'tiny'"),
        (error(400, "gone", code="model_not_found"), InputError, "gone. Check that the model"),
        (error(402, "pay"), Unfinished, "pay. Check the account, then run it again"),
        (error(429, "pay", code="insufficient_quota"), Unfinished, "Check the account"),
        (error(429, headers={"retry-after": "86400"}), Unfinished, "requests a wait of 86400 s"),
        (error(400, "Unsupported", param="reasoning_effort"), InputError, "Remove --reasoning-eff"),
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
        with pytest.raises(Unfinished, match=r"10 consecutive requests failed.*no disk"):
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
        if ask.user != odd or name in ("gzip", "wrong type", "huge usage", "a second reply"):
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
        assert reply.fault.startswith("the reply has the encoding 'br', which was not requested")


async def round_of(pace: RateLimit, number: int, *, overload: bool = False) -> None:
    """That many requests one after another, as many in flight as the limit allows."""

    async def request() -> None:
        entered = await pace.enter()
        await asyncio.sleep(0)
        pace.leave(entered, answered=not overload, overload=overload)

    await asyncio.gather(*[request() for _ in range(number)])


def test_limit_doubles_each_round_up_to_the_most() -> None:
    async def grow() -> list[float]:
        pace = RateLimit(30)
        limits = [pace.limit]
        for _ in range(3):
            await round_of(pace, 2 * int(pace.limit))
            limits.append(pace.limit)
        return limits

    limits = asyncio.run(grow())
    assert limits[0] == RateLimit.START
    assert limits[1] >= 1.5 * RateLimit.START
    assert limits[3] == 30


def test_overload_halves_once_a_round() -> None:
    async def shrink() -> list[float]:
        pace = RateLimit(32)
        limits = []
        for _ in range(5):
            await round_of(pace, int(pace.limit), overload=True)
            limits.append(pace.limit)
            await asyncio.sleep(0.001)
        return limits

    assert asyncio.run(shrink()) == [4, 2, 1, 1, 1]


def test_cancelled_waiters_lose_no_slots() -> None:
    async def cancel() -> int:
        pace = RateLimit(1)
        entered = await pace.enter()
        waiting = [asyncio.create_task(pace.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        pace.leave(entered, answered=False, overload=False)  # the slot goes to the second
        waiting[1].cancel()  # which is cancelled before it runs
        await asyncio.wait_for(waiting[2], 1)
        return pace.active

    assert asyncio.run(cancel()) == 1


def test_concurrency_reaches_the_most_and_not_more() -> None:
    with FaultServer(delay=0.05) as server:
        answers(grader_at(server, {"concurrency": 2 * RateLimit.START}), make_asks(40))
        assert server.busiest == 2 * RateLimit.START


def test_overloaded_server_is_found_out() -> None:
    # more than 4 at a time are refused
    def plan(_: Seen) -> Answer | None:
        return error(503) if server.active > 4 else None

    with FaultServer(plan=plan, delay=0.005) as server:
        policy = {"concurrency": 64, "retries": 20, "backoff": 0.01}
        grader = grader_at(server, policy)
        replies = answers(grader, make_asks(150))
        assert not any(reply.fault for reply in replies.values())
        assert server.busiest <= 16
        assert grader.spent.retries < 150


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_holds_for_all_requests(form: str) -> None:
    rest = 0.4 if form == "seconds" else 1.0
    clock = datetime(2026, 1, 1, tzinfo=UTC)  # of a server whose clock is wrong
    until = format_datetime(clock + timedelta(seconds=rest), usegmt=True)
    headers = {
        "seconds": {"retry-after": str(rest)},
        "date": {"retry-after": until, "date": format_datetime(clock, usegmt=True)},
    }[form]
    told: list[float] = []

    def plan(seen: Seen) -> Answer | None:
        if told or len(server.requests) < 20:
            return None
        told.append(server.times[-1])
        return error(429, headers=headers)

    with FaultServer(plan=plan) as server:
        replies = answers(grader_at(server, {"concurrency": 4}), make_asks(50))
        after = [time - told[0] for time in server.times if time > told[0]]
    assert not any(reply.fault for reply in replies.values())
    # what was on its way arrives at once, everything else after the rest
    assert sum(seconds < rest - 0.05 for seconds in after) <= 4
    assert max(after) >= rest - 0.05


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000"}, None),
    ],
)
def test_reads_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    "changes", [{"concurrency": 0}, {"timeout": 0}, {"give_up_after": 0}, {"retries": -1}]
)
def test_policies_that_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(changes)).replace("_", "-")):
        openai_grader("tiny", "http://localhost/v1", **changes)


KEY = "sk-do-not-show-7f3a"
POLICY: dict[str, Any] = {"retries": 1, "timeout": 0.5, "backoff": 0.01}


def blabbing(status: int) -> Answer:
    """An error that quotes the key, as some servers do."""
    return error(status, f"Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}")


@pytest.mark.parametrize(
    "answer", [*map(blabbing, (401, 403, 404, 400, 429, 500)), Answer(cut=0), Answer(hang=True)]
)
def test_key_does_not_leak(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    behind: list[BaseException | None] = []
    with FaultServer(plan=lambda _: answer) as server:
        grader = openai_grader("tiny", server.url, KEY, decode="text", **POLICY)
        try:
            shown += [repr(pair) for pair in grader.answer(make_asks(1))]
        except ExamError as caught:
            shown += [str(caught), repr(caught), repr(vars(caught))]
            shown += traceback.format_exception(caught)
            behind += [caught.__context__, caught.__cause__]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not any(behind), "the errors of the SDK hold the request with its headers"
    shown += [repr(grader), repr(vars(grader)), json.dumps(grader.settings)]
    shown += [json.dumps(grader.provenance), repr(grader.spent), caplog.text]
    assert KEY not in "".join(shown)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(grader)


def test_key_and_url_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(seen: Seen) -> Answer:
        return Answer({"choices": [{"message": {"content": seen.headers["authorization"]}}]})

    with FaultServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        grader = openai_grader("tiny", decode="text")
        assert [r.text for _, r in grader.answer(make_asks(1, 1))] == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://me:hunter22@host/v1", "contains a user, a password or a query"),
        ("http://host/v1?key=hunter22", "contains a user, a password or a query"),
        ("host:8000/v1", "the base URL must begin with http://"),
        ("ftp://host/v1", "the base URL must begin with http://"),
        ("http://host:hunter22/v1", "the base URL is invalid"),
    ],
)
def test_urls_that_cannot_be_are_not_quoted(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        openai_grader("tiny", url, KEY)
    assert "hunter22" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("key", ["sk-hunter22\r\nX: y", "sk hunter22", "sk-hunter22ü"])
def test_keys_that_no_header_can_carry_are_not_quoted(key: str) -> None:
    with pytest.raises(InputError, match="invalid characters") as caught:
        openai_grader("tiny", "http://localhost/v1", key)
    assert "hunter22" not in "".join(traceback.format_exception(caught.value))


def test_hosted_server_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match=r"missing key for api\.openai\.com.*Set OPENAI_API_KEY"):
        openai_grader("tiny")


@pytest.mark.parametrize(
    ("url", "server", "limit"),
    [
        ("http://[::1]:8000/v1", "[::1]:8000", "max_tokens"),
        ("https://Example.org/v1", "example.org", "max_tokens"),
        ("https://api.openai.com/v1", "api.openai.com", "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/v1", "me.openai.azure.com", "max_completion_tokens"),
    ],
)
def test_server_is_named_by_host_and_port(url: str, server: str, limit: str) -> None:
    grader = openai_grader("tiny", url, KEY)
    assert grader.provenance["server"] == server
    assert grader._quirks.adapt({"messages": [], "max_tokens": 9})[limit] == 9


def test_identity_is_the_model_and_not_the_host() -> None:
    def settings(host: str, model: str = "tiny", revision: str = "") -> object:
        return openai_grader(model, f"http://{host}/v1", decode="text", revision=revision).settings

    assert settings("node17:8000") == settings("localhost:9000")
    assert settings("a", "small") != settings("a", "large")
    assert settings("a", revision="2026-01") != settings("a")
    assert settings("a") == {
        "name": "openai",
        "model": "tiny",
        "decode": "text",
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 512,
    }


def test_missing_sdk_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "exampp.graders.openai.transport", raising=False)
    with pytest.raises(InputError, match=re.escape(install_command("openai"))):
        openai_grader("tiny", "http://localhost/v1")


@pytest.mark.parametrize("decode", ["text", "labels"])
@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize("to", ["other", "own", "file:///etc/passwd", "//evil.example/v1"])
def test_a_redirect_stops_the_run_and_nothing_is_sent_on(status: int, decode: str, to: str) -> None:
    with FaultServer() as other, FaultServer() as server:
        known = {"other": f"{other.url}/chat/completions", "own": "/v2/chat/completions"}
        plan = Answer("", status, {"location": known.get(to, to)})
        server.plan = lambda _: plan
        labels = ("0", "1")
        grader = openai_grader("tiny", server.url, "key", labels, decode=decode, **QUICK)
        with pytest.raises(
            InputError, match="redirects requests, and the passages in them"
        ) as caught:
            list(grader.answer(make_asks(3)))
        base = {"other": other.url, "own": server.url.replace("v1", "v2")}.get(to, "")
        assert base in str(caught.value.hint)
        assert other.requests == []
        assert not any("v2" in seen.path for seen in server.requests)
