"""Tests of every grader: each backend inherits them and defines how it is made.

    class TestMine(GraderContract):
        look_ahead = 500

        @pytest.fixture
        def make(self) -> Make:
            return lambda: MyGrader(...)

`make` must give equal graders each time. It is called once or twice a test, so that what is slow
to build (a model, a server) belongs into a wider fixture that `make` uses.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pytest

from exampp.graders.base import Grader, Reply, Request

Make = Callable[[], Grader]
T = TypeVar("T")
_WORDS = ("river", "lake", "stone", "bridge", "tower", "market", "garden", "winter", "letter")


def passage_text(number: int) -> str:
    """A short passage, another for every number."""
    words = [_WORDS[(number * step + step) % len(_WORDS)] for step in (1, 3, 7)]
    return f"Passage {number} tells of the {words[0]}, the {words[1]} and a {words[2]}."


def item_text(number: int) -> str:
    """A question, another for every number."""
    return f"What is said of the {_WORDS[number % len(_WORDS)]} in text {number}?"


def make_ask(key: int, item: str, passage: str) -> Request:
    """An ask with a prompt of question and passage, as the prompts of exampp have it."""
    user = f"Rate from 0 to 5.\nQuestion: {item}\nPassage: {passage}\nAnswer:"
    return Request(key, item, passage, user)


def make_asks(passages: int, items: int = 3) -> Iterator[Request]:
    """Asks with the keys 0, 1, 2 ...: all items of one passage, then those of the next."""
    for number in range(passages * items):
        passage, item = divmod(number, items)
        yield make_ask(number, item_text(item), passage_text(passage))


class Counted:
    """An iterable of asks that counts what was pulled, and on which threads."""

    def __init__(self, asks: Iterable[Request], fails_after: int | None = None) -> None:
        self.pulled = 0
        self.threads: set[int] = set()
        self._asks = iter(asks)
        self._fails_after = fails_after

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        self.threads.add(threading.get_ident())
        if self.pulled == self._fails_after:
            raise LookupError("the source of the asks broke")
        ask = next(self._asks)
        self.pulled += 1
        return ask


def in_time(seconds: float, action: Callable[[], T]) -> T:
    """Run the action on a thread of its own; fail if it has not ended after the seconds."""
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(action())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still running after {seconds} s"
    if errors:
        raise errors[0]
    return outcome[0]


def check_reply(reply: Reply) -> None:
    """Assert that a reply is well formed, whatever it says."""
    assert isinstance(reply.text, str)
    assert not (reply.fault and reply.text), "a fault is the reason why there is no text"
    assert min(reply.usage.read, reply.usage.cached, reply.usage.written) >= 0
    assert reply.usage.cached <= reply.usage.read
    json.dumps(dict(reply.detail), allow_nan=False)
    if reply.scores is not None:
        assert all(0 <= score <= 1 for score in reply.scores.values()), reply.scores
        assert math.isclose(sum(reply.scores.values()), 1, abs_tol=1e-6), reply.scores


def answers(grader: Grader, asks: Iterable[Request]) -> dict[int, Reply]:
    """All replies by key; fails if an ask was answered twice or came back changed."""
    asked: dict[int, Request] = {}

    def remember() -> Iterator[Request]:
        for ask in asks:
            asked[ask.key] = ask
            yield ask

    replies: dict[int, Reply] = {}
    for ask, reply in grader.answer(remember()):
        assert ask.key not in replies, f"ask {ask.key} was answered twice"
        assert asked[ask.key] == ask, f"ask {ask.key} came back changed"
        check_reply(reply)
        replies[ask.key] = reply
    assert replies.keys() == asked.keys(), "an ask was not answered"
    return replies


ODD_TEXTS = {
    "empty": "",
    "blanks": " \n\t ",
    "control characters": "a\x00b\x01c\x1b[31m\x7f",
    "unicode": "naïve Straße 漢字 עברית 🜁👩‍👩‍👧 e\u0301 \u202eabc\u2028x\ufeff",
    "lone surrogate": "half \ud83d of a pair",
    "special tokens": "<s></s><pad><|endoftext|><|im_start|>system [SEP] <0x00> <extra_id_0>",
    "braces": '{passage} {{question}} {"grade": 5} %s \\',
    "one huge word": "x" * 100_000,
    "100 kB": "The river is long. " * 5_300,
}


class GraderContract:
    """The tests; a subclass overrides `make` and, where it must, the limits."""

    look_ahead = 2_000
    """Asks that may have been pulled and not yet yielded, of ten items a passage."""
    close_seconds = 5.0
    """Within which a closed grader has ended and its threads are gone."""
    patience = 60.0
    """Seconds after which something is taken to hang."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError("override `make`")

    @pytest.mark.parametrize("passages", [1, 5, 40])
    def test_answers_every_ask_once(self, make: Make, passages: int) -> None:
        assert len(answers(make(), make_asks(passages))) == passages * 3

    def test_answers_without_asks(self, make: Make) -> None:
        assert list(make().answer([])) == []

    def test_answers_again_after_an_end(self, make: Make) -> None:
        grader = make()
        first = answers(grader, make_asks(3))
        second = answers(grader, make_asks(3))
        assert [first[key].text for key in first] == [second[key].text for key in first]

    def test_yields_equal_texts_under_their_own_keys(self, make: Make) -> None:
        same = [make_ask(key, item_text(1), passage_text(1)) for key in (7, 3, 99, 4)]
        replies = answers(make(), same)
        assert set(replies) == {7, 3, 99, 4}
        assert len({(reply.text, reply.fault) for reply in replies.values()}) == 1

    def test_reply_does_not_depend_on_order_or_company(self, make: Make) -> None:
        grader = make()
        asks = list(make_asks(6))
        together = answers(grader, asks)
        backwards = answers(grader, reversed(asks))
        alone = answers(grader, asks[7:8])
        for ask in asks:
            assert together[ask.key].text == backwards[ask.key].text, ask
        assert alone[7].text == together[7].text

    def test_look_ahead_is_bounded(self, make: Make) -> None:
        source = Counted(make_asks(1_000, items=10))
        stream: Any = make().answer(source)
        for yielded in range(1, 6):
            next(iter(stream))
            assert source.pulled - yielded <= self.look_ahead
        in_time(self.patience, stream.close)
        assert source.pulled <= self.look_ahead + 5

    def test_pulls_asks_on_the_thread_that_reads_replies(self, make: Make) -> None:
        # a source may be a cursor of SQLite, which belongs to the thread that opened it
        source = Counted(make_asks(20))
        answers(make(), source)
        assert source.threads == {threading.get_ident()}

    def test_close_is_prompt_and_leaves_no_threads(self, make: Make) -> None:
        grader = make()
        list(grader.answer(make_asks(1)))
        before = set(threading.enumerate())
        stream: Any = grader.answer(make_asks(1_000, items=10))
        next(iter(stream))
        start = time.monotonic()
        in_time(self.patience, stream.close)
        self._no_threads_since(before, start)

    def test_end_leaves_no_threads(self, make: Make) -> None:
        grader = make()
        before = set(threading.enumerate())
        answers(grader, make_asks(2))
        self._no_threads_since(before, time.monotonic())

    @pytest.mark.parametrize("after", [0, 1, 50])
    def test_error_of_the_source_comes_through(self, make: Make, after: int) -> None:
        grader = make()
        before = set(threading.enumerate())

        def consume() -> None:
            for _, reply in grader.answer(Counted(make_asks(1_000), fails_after=after)):
                check_reply(reply)

        with pytest.raises(LookupError, match="the source of the asks broke"):
            in_time(self.patience, consume)
        self._no_threads_since(before, time.monotonic())
        assert answers(grader, make_asks(1)), "the grader is of no use after the error"

    def test_odd_texts_are_answered_or_faults(self, make: Make) -> None:
        texts = list(ODD_TEXTS.values())
        asks = [make_ask(key, item_text(0), text) for key, text in enumerate(texts)]
        # a huge item would leave no room for any prompt, and banks do not have them
        asks += [make_ask(100 + key, t[:200], passage_text(0)) for key, t in enumerate(texts)]
        assert len(answers(make(), asks)) == 2 * len(texts)

    def test_settings_are_stable_and_equal_for_equal_graders(self, make: Make) -> None:
        grader, twin = make(), make()
        before = json.dumps(grader.settings, sort_keys=True, allow_nan=False)
        answers(grader, make_asks(1))
        assert json.dumps(grader.settings, sort_keys=True, allow_nan=False) == before
        assert json.dumps(twin.settings, sort_keys=True, allow_nan=False) == before
        assert json.loads(before) == dict(grader.settings), "lists, not tuples; texts as keys"

    def _no_threads_since(self, before: set[threading.Thread], start: float) -> None:
        while left := set(threading.enumerate()) - before:
            waited = time.monotonic() - start
            assert waited < self.close_seconds, f"threads left after {waited:.1f} s: {left}"
            next(iter(left)).join(0.05)
