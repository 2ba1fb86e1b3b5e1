"""llama.cpp reads a passage once: its asks take turns on one slot, passages go side by side."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from support.contract import answers, item_text, make_asks, passage_text
from support.openai_graders import openai_grader
from support.servers import DIGITS, FaultServer, Seen, error, llama_server

from exampp.graders.base import Request
from exampp.graders.openai import OpenAICompatibleGrader

POLICY: dict[str, Any] = {"concurrency": 8, "retries": 1, "timeout": 30, "backoff": 0.01}
SLOTS = {"/props": {"total_slots": 3}}


def grader_at(url: str, **options: Any) -> OpenAICompatibleGrader:
    given: dict[str, Any] = {"decode": "text", **POLICY} | options
    return openai_grader("tiny", url, labels=tuple(DIGITS), **given)


def sent(server: FaultServer) -> dict[str, list[Seen]]:
    """The requests of each passage, in the order in which they came in."""
    found: dict[str, list[Seen]] = defaultdict(list)
    for seen in server.requests:
        found[seen.text.partition("\nPassage: ")[2]].append(seen)
    return found


def test_a_passage_has_one_slot_and_its_asks_go_in_order() -> None:
    asks = list(make_asks(7, 4))
    with FaultServer(delay=0.005, tells=SLOTS) as server:
        replies = answers(grader_at(server.url), asks)
    assert sorted(replies) == list(range(28))
    assert server.busiest == 3
    for passage, requests in sent(server).items():
        assert [seen.text for seen in requests] == [
            ask.user for ask in asks if ask.user.endswith(passage)
        ]
        assert len({seen.body["id_slot"] for seen in requests}) == 1
    # the slot is given to the next passage when the one before has ended
    for slot in range(3):
        order = [
            s.text.partition("\nPassage: ")[2] for s in server.requests if s.body["id_slot"] == slot
        ]
        assert all(one == other for one, other in zip(order, sorted(order), strict=True))


def test_no_more_passages_than_requests_that_may_be_in_flight() -> None:
    policy = {"concurrency": 2, "timeout": 30}
    with FaultServer(delay=0.005, tells=SLOTS) as server:
        answers(grader_at(server.url, **policy), make_asks(5, 3))
    assert server.busiest == 2
    assert {seen.body["id_slot"] for seen in server.requests} == {0, 1}


@pytest.mark.parametrize("told", [{}, {"/props": {"total_slots": 0}}, {"/props": [1]}])
def test_other_servers_get_all_at_once(told: dict[str, Any]) -> None:
    with FaultServer(delay=0.02, tells=told) as server:
        answers(grader_at(server.url), make_asks(1, 6))
    assert server.busiest > 3
    assert not any("id_slot" in seen.body for seen in server.requests)


def test_a_slot_that_is_asked_for_stays() -> None:
    sampling = {"extra_body": {"id_slot": 1}}
    with FaultServer(tells=SLOTS) as server:
        answers(grader_at(server.url, **sampling), make_asks(3, 2))
    assert {seen.body["id_slot"] for seen in server.requests} == {1}


def test_slots_are_no_part_of_the_grader() -> None:
    with FaultServer(tells=SLOTS) as server, FaultServer() as other:
        graders = [grader_at(one.url) for one in (server, other)]
        for grader in graders:
            answers(grader, make_asks(1, 1))
    assert graders[0].settings == graders[1].settings


def test_what_fails_in_the_middle_holds_up_nothing() -> None:
    asks = list(make_asks(4, 3))
    bad = {asks[1].user, asks[6].user}
    with FaultServer(plan=lambda s: error(500) if s.text in bad else None, tells=SLOTS) as server:
        replies = answers(grader_at(server.url), asks)
    assert {key for key, reply in replies.items() if reply.fault} == {1, 6}


def test_a_budget_ends_in_the_middle_of_a_passage() -> None:
    with FaultServer(tells=SLOTS) as server:
        grader = grader_at(server.url, max_requests=5)
        replies = answers(grader, make_asks(4, 3))
        assert len(server.requests) == len(replies) == 5
    assert "max_requests" in grader.stopped


def test_a_stop_sends_nothing_more_and_keeps_what_came() -> None:
    asks = list(make_asks(6, 4))
    with FaultServer(delay=0.05, tells=SLOTS) as server:
        grader = grader_at(server.url)
        got = []
        for ask, _ in grader.answer(asks):
            got.append(ask.key)
            if len(got) == 4:
                threading.Thread(target=grader.stop, args=(5.0,)).start()
        assert len(server.requests) <= 4 + 2 * 3
        assert len(got) == len(set(got)) == len(server.requests)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("llama")) as url:
        yield url


def evaluated(url: str, prompt: str) -> int:
    """The tokens that llama.cpp has to compute for ten questions on each of four passages."""
    asks = []
    for key in range(40):
        passage, item = passage_text(key // 10) * 8, item_text(key % 10)
        asks.append(Request(key, item, passage, prompt.format(passage=passage, item=item)))
    grader = grader_at(url, max_new_tokens=1)
    assert not any(reply.fault for reply in answers(grader, asks).values())
    return grader.spent.read - grader.spent.cached


def test_llama_cpp_computes_a_third_where_the_passage_is_first(llama: str) -> None:
    instructions = "Rate from 0 to 5 how well the passage answers the question.\n"
    usual = evaluated(llama, instructions + "Question: {item}\nPassage: {passage}")
    turned = evaluated(llama, instructions + "Passage: {passage}\nQuestion: {item}")
    assert turned * 3 < usual
