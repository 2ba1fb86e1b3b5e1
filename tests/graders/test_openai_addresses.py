"""Several servers with one model share the work, and do each other's when one is lost."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from support.contract import answers, make_asks
from support.openai_graders import openai_grader
from support.servers import DIGITS, Answer, FaultServer, Seen, capable, error, rating

from exampp.errors import InputError
from exampp.graders.openai import OpenAICompatibleGrader

POLICY: dict[str, Any] = {"concurrency": 4, "retries": 3, "timeout": 30, "backoff": 0.01}
NOBODY = "http://127.0.0.1:9/v1"


def grader_at(*urls: str, **options: Any) -> OpenAICompatibleGrader:
    given: dict[str, Any] = {"decode": "text", **POLICY} | options
    return openai_grader("tiny", ",".join(urls), labels=tuple(DIGITS), **given)


def passages(server: FaultServer) -> dict[str, set[str]]:
    """The texts that a server was asked about, by passage."""
    found: dict[str, set[str]] = defaultdict(set)
    for seen in server.requests:
        found[seen.text.partition("\nPassage: ")[2]].add(seen.text)
    return found


def test_passages_are_shared_and_each_is_read_by_one_server() -> None:
    with FaultServer() as alone:
        expected = answers(grader_at(alone.url), make_asks(40, 3))
    with FaultServer(delay=0.002) as one, FaultServer(delay=0.002) as other:
        grader = grader_at(one.url, other.url)
        found = answers(grader, make_asks(40, 3))
    assert {key: reply.text for key, reply in found.items()} == {
        key: reply.text for key, reply in expected.items()
    }
    assert not set(passages(one)) & set(passages(other))
    assert all(len(texts) == 3 for texts in (passages(one) | passages(other)).values())
    assert min(len(passages(one)), len(passages(other))) >= 10
    assert max(one.busiest, other.busiest) <= 4
    assert grader.settings == grader_at(alone.url).settings
    hosts = [url.split("/")[2] for url in (one.url, other.url)]
    assert grader.provenance["server"] == ", ".join(hosts)


def test_a_slow_server_is_given_less() -> None:
    def script(seen: Seen) -> Answer:
        slow.held = len(fast.requests) < 200
        return rating(seen)

    with FaultServer() as slow, FaultServer(script) as fast:
        slow.held = True
        found = answers(grader_at(slow.url, fast.url), make_asks(120, 2))
    assert len(found) == 240
    # eight passages were given to each before the first answer
    assert len(fast.requests) >= 200


@pytest.mark.parametrize("slots", [None, 2])
def test_what_a_lost_server_was_asked_goes_to_the_other(slots: int | None) -> None:
    tells = {"/props": {"total_slots": slots}} if slots else {}
    gone = 0

    def plan(_: Seen) -> Answer | None:
        nonlocal gone
        gone += 1
        return Answer(cut=0) if gone > 15 else None

    with FaultServer(plan=plan, tells=tells) as lost, FaultServer(tells=tells) as other:
        patient = {"concurrency": 4, "retries": 3, "timeout": 30, "backoff": 5}
        grader = grader_at(lost.url, other.url, **patient)
        found = answers(grader, make_asks(40, 3))
        # a run asks in several goes, in the last of which it may not be asked at all
        assert answers(grader, []) == {}
    assert grader.note == f"{lost.url.split('/')[2]} did not answer: the others were used"
    assert sorted(found) == list(range(120))
    assert not [reply for reply in found.values() if reply.fault]
    # those that were on their way when it was lost, and no others: it is left alone
    assert len(lost.requests) <= 15 + 4
    assert len(other.requests) == 105


def test_a_server_that_wants_to_be_left_alone_ends_nothing() -> None:
    def plan(seen: Seen) -> Answer | None:
        return error(429, headers={"retry-after": "4000"}) if len(busy.requests) > 3 else None

    with FaultServer(plan=plan) as busy, FaultServer() as other:
        found = answers(grader_at(busy.url, other.url), make_asks(30, 2))
    assert len(found) == 60
    assert not [reply for reply in found.values() if reply.fault]


def test_an_address_where_nobody_answers_is_named() -> None:
    with (
        FaultServer(delay=0.01) as server,
        pytest.raises(InputError, match=r"127\.0\.0\.1:9 does not answer"),
    ):
        answers(grader_at(server.url, NOBODY), make_asks(400, 2))


def test_servers_that_would_grade_in_different_ways_are_named() -> None:
    with capable("logprobs") as one, capable() as other:
        grader = grader_at(one.url, other.url, decode="auto")
        hosts = [url.split("/")[2] for url in (one.url, other.url)]
        with pytest.raises(InputError, match=f"{hosts[1]} would not grade as {hosts[0]} does"):
            _ = grader.settings


def test_batches_go_to_one_address() -> None:
    with pytest.raises(InputError, match="batches go to one address"):
        grader_at(NOBODY, "http://127.0.0.1:10/v1").batch_adapter(offline=True)


def test_an_address_that_is_given_twice_is_one() -> None:
    with FaultServer() as server:
        grader = grader_at(server.url, f" {server.url} ", "")
        assert len(answers(grader, make_asks(2, 2))) == 4
        assert grader.provenance["server"] == server.url.split("/")[2]
