"""The service: what clients get of an exam, and what they never get."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sealed_exam
from support.commands import Commands
from support.sealed_exam import ITEMS, QUERIES, answers, identified, rate, word, words_of

import exampp
from exampp import service as module
from exampp.errors import ExamError, InputError
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.items.sealed_use import describe_sealed_use, sealed_use_figure
from exampp.records.clients import Limits, SealedBest, SealedUse
from exampp.results.result import Table
from exampp.service import ExamService, NotThere, Unavailable, add_client, revoke_client
from exampp.stats.ladder import error_bound
from exampp.store.clients import Identified, OverLimit, sealed_use

DAY = "2026-11-27T01:02"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.001)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sealed_exam.make(tmp_path / "my.exam")


@pytest.fixture
def opened(path: Path) -> Iterator[ExamService]:
    with sealed_exam.service(path) as one:
        yield one


@pytest.fixture
def bot(path: Path, opened: ExamService) -> Identified:
    return identified(opened, sealed_exam.client(path))


def system(words: dict[str, list[str]], queries: int = QUERIES) -> dict[str, str]:
    """A system that answers the first queries with all words."""
    found = answers(words)
    return {name: found[name] if number < queries else "" for number, name in enumerate(found)}


# ---- public items --------------------------------------------------------------------------------


def test_an_answer_is_graded_by_public_items_alone(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    public = words_of(path, "public")
    first, second = public["q03"]
    graded = opened.grade_answer(bot, "q03", f"It has {first} and all of {' '.join(public['q04'])}")
    assert (graded.score, graded.low, graded.high, graded.min_rating) == (0.5, 0.5, 0.5, 4)
    assert {one.text: one.rating for one in graded.items} == {
        f"Does it have {first}?": 5,
        f"Does it have {second}?": 0,
    }
    missing = opened.missing(bot, "q03", first)
    assert [(one.text, one.covered) for one in missing.items] == [
        (f"Does it have {second}?", False)
    ]
    assert opened.grade_answer(bot, "q03", "").score == 0


def test_without_a_split_all_items_are_public(tmp_path: Path) -> None:
    path = sealed_exam.make(tmp_path / "plain.exam", sealed=False)
    with sealed_exam.service(path) as opened:
        bot = identified(opened, sealed_exam.client(path))
        assert len(opened.grade_answer(bot, "q03", word(3, 1)).items) == ITEMS
        assert opened.grade_answer(bot, "q03", word(3, 1)).score == 1 / ITEMS
        with pytest.raises(NotThere, match="0 queries of the exam have sealed items"):
            opened.submit(bot, {"q03": word(3, 1)})


def test_queries_are_listed_in_pages(opened: ExamService, bot: Identified) -> None:
    first = opened.list_queries(bot, limit=5)
    rest = opened.list_queries(bot, after=first.queries[-1].query_id)
    names = [one.query_id for one in (*first.queries, *rest.queries)]
    assert names == sorted(names) == [f"q{number:02}" for number in range(QUERIES)]
    assert (first.more, rest.more, first.queries[0].items) == (True, False, ITEMS // 2)


def test_two_systems_are_compared_query_by_query(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    public = words_of(path, "public")
    good, half = system(public), {name: some[0] for name, some in public.items()}
    found = opened.compare(bot, good, half)
    assert (found.verdict, found.first, found.second) == ("first is better", 1.0, 0.5)
    assert 0 < found.low <= found.difference == 0.5 <= found.high
    assert opened.compare(bot, half, good).verdict == "second is better"
    one = found.queries[0]
    assert (len(one.only_first), one.only_second) == (1, [])
    with exampp.open(path) as exam:
        assert one.only_first[0] in {str(row[2]) for row in exam.bank().show(part="public").rows}
    # two queries are too few to tell, and so is the same system
    few = {name: good[name] for name in ("q00", "q01")}
    assert opened.compare(bot, few, dict.fromkeys(few, "")).verdict == "undecided"
    assert opened.compare(bot, good, good).verdict == "undecided"


def test_systems_with_other_queries_are_not_compared(opened: ExamService, bot: Identified) -> None:
    with pytest.raises(InputError, match="only one of the systems answers query 'q01'") as caught:
        opened.compare(bot, {"q00": "a", "q01": "b"}, {"q00": "a"})
    assert caught.value.field == "second"


def test_a_gate_passes_fails_or_is_undecided(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    public = words_of(path, "public")
    good, half = system(public), {name: some[0] for name, some in public.items()}
    assert opened.gate(bot, good, "Cover>=0.7").verdict == "passed"
    assert opened.gate(bot, half, "Cover@20>0.9").verdict == "failed"
    found = opened.gate(bot, half, "Cover>=0.5")
    assert (found.verdict, found.mean) == ("undecided", 0.5)
    assert found.low < 0.5 < found.high


@pytest.mark.parametrize(
    ("require", "message"),
    [
        ("Cover>=baseline-0.1", "has no number"),
        ("nDCG@20>=0.5", "scored by Cover@20, not by nDCG@20"),
        ("good", "is not a requirement"),
    ],
)
def test_requirements_that_a_gate_cannot_check(
    require: str, message: str, path: Path, opened: ExamService, bot: Identified
) -> None:
    with pytest.raises(InputError, match=message):
        opened.gate(bot, system(words_of(path, "public")), require)
    assert opened.budget(bot).requests == 0


def test_a_gate_needs_all_queries(opened: ExamService, bot: Identified) -> None:
    with pytest.raises(InputError, match="11 queries without an answer, such as 'q01'"):
        opened.gate(bot, {"q00": "a"}, "Cover>=0.1")


@pytest.mark.parametrize("bad", ["q99", "", "q00\x00", "../q00", "\ud800", "q" * 100_000])
def test_unknown_queries(bad: str, opened: ExamService, bot: Identified) -> None:
    for call in (
        lambda: opened.grade_answer(bot, bad, "a"),
        lambda: opened.missing(bot, bad, "a"),
        lambda: opened.compare(bot, {bad: "a"}, {bad: "b"}),
        lambda: opened.submit(bot, {bad: "a"}),
    ):
        with pytest.raises(NotThere, match="the exam has no query") as caught:
            call()
        assert len(str(caught.value)) < 2000
    assert opened.budget(bot).requests == 0


def test_strange_answers_have_defined_scores(opened: ExamService, bot: Identified) -> None:
    for answer in ("", " \n", "\x00", "\ud800 \uffff", "a" * 100_000, "\u202e\u0301" * 50):
        assert opened.grade_answer(bot, "q00", answer).score == 0
    with pytest.raises(InputError, match="has 100,001 characters"):
        opened.grade_answer(bot, "q00", "a" * 100_001)


def test_an_answer_without_words_scores_0_and_is_not_graded(path: Path) -> None:
    opened = ExamService(path, lambda exam: exam.scorer("draft"))
    try:
        bot = identified(opened, sealed_exam.client(path))
        for answer in ("...", "\x10", "\u2014 ?!", "\U0001f600"):
            assert opened.grade_answer(bot, "q00", answer).score == 0
        assert opened.submit(bot, dict.fromkeys(words_of(path, "sealed"), "...")).score == 0
        assert opened.budget(bot).cells == 0
    finally:
        opened.close()


def test_edits_of_the_bank_count_at_once(path: Path, opened: ExamService, bot: Identified) -> None:
    assert len(opened.grade_answer(bot, "q00", "new").items) == 2
    with exampp.open(path) as exam:
        exam.bank().add("q00", "Does it have new?", author="ann")
    graded = opened.grade_answer(bot, "q00", "new")
    assert [one.covered for one in graded.items if one.text.endswith("new?")] == [True]
    assert len(graded.items) == 3


# ---- sealed items --------------------------------------------------------------------------------


def test_nothing_about_sealed_items_is_in_any_answer_but_the_ladder(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    sealed, public = words_of(path, "sealed"), words_of(path, "public")
    with exampp.open(path) as exam:
        ids = {str(row[2]) for row in exam.bank().show(part="sealed").rows}
    sealed_words = {one for some in sealed.values() for one in some}
    assert len(ids) == len(sealed_words) == QUERIES * ITEMS // 2
    calls: list[Any] = [
        opened.list_queries(bot),
        *(opened.grade_answer(bot, name, "nothing") for name in sealed),
        *(opened.missing(bot, name, "nothing") for name in sealed),
        opened.compare(bot, system(public), dict.fromkeys(public, "nothing")),
        opened.gate(bot, system(public), "Cover>=0.1"),
        opened.submit(bot, system(public)),
        opened.budget(bot),
    ]
    for answer in calls:
        text = json.dumps(dataclasses.asdict(answer))
        assert not {one for one in sealed_words | ids if one in text}


def test_answers_do_not_change_with_the_sealed_items_that_they_cover(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    """The difference of two answers that differ in sealed items alone is nothing."""
    sealed, public = words_of(path, "sealed"), words_of(path, "public")
    plain = answers(public)
    more = {name: f"{text} {' '.join(sealed[name])}" for name, text in plain.items()}
    for name in plain:
        assert opened.grade_answer(bot, name, plain[name]) == opened.grade_answer(
            bot, name, more[name]
        )
        assert opened.missing(bot, name, "no") == opened.missing(bot, name, " ".join(sealed[name]))
    assert opened.gate(bot, plain, "Cover>=0.9") == opened.gate(bot, more, "Cover>=0.9")
    assert opened.compare(bot, plain, more).difference == 0


def test_the_ladder_reports_only_new_bests(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    sealed = words_of(path, "sealed")
    half = opened.submit(bot, system(sealed, 6))
    assert (half.score, half.is_new_best, half.queries, half.submissions) == (0.5, True, 12, 1)
    # 7 of 12 queries beat 6 by less than the step of 12 queries, 1 / (2 sqrt(12)) = 0.14
    for queries in (0, 3, 6, 7):
        found = opened.submit(bot, system(sealed, queries))
        assert (found.score, found.is_new_best) == (0.5, False)
    assert found.bound == error_bound(5, 1, 12)
    found = opened.submit(bot, system(sealed, 9))
    assert (found.score, found.is_new_best, found.submissions) == (0.75, True, 6)
    # a query without an answer scores 0
    found = opened.submit(bot, {"q00": " ".join(sealed["q00"])})
    assert (found.score, found.is_new_best) == (0.75, False)


def test_the_ladder_is_of_all_clients_and_survives_a_restart(path: Path) -> None:
    sealed = words_of(path, "sealed")
    tokens = [sealed_exam.client(path, name) for name in ("ann", "bob")]
    with sealed_exam.service(path) as opened:
        assert opened.submit(identified(opened, tokens[0]), system(sealed, 9)).is_new_best
    with sealed_exam.service(path) as opened, sealed_exam.service(path) as other:
        found = opened.submit(identified(opened, tokens[1]), system(sealed, 6))
        assert (found.score, found.is_new_best, found.submissions) == (0.75, False, 2)
        found = other.submit(identified(other, tokens[0]), system(sealed, 12))
        assert (found.score, found.is_new_best, found.submissions) == (1.0, True, 3)
        assert opened.submit(identified(opened, tokens[1]), system(sealed)).score == 1.0


def test_another_way_of_scoring_has_another_ladder(path: Path) -> None:
    sealed, token = words_of(path, "sealed"), sealed_exam.client(path)
    with sealed_exam.service(path) as opened:
        assert opened.submit(identified(opened, token), system(sealed)).is_new_best
    with exampp.open(path) as exam:
        item = next(row for row in exam.bank().show(part="sealed").rows if row[0] == "q00")
        exam.bank().edit("reword", str(item[2]), "Does it have another?", author="ann")
    with sealed_exam.service(path) as opened:
        found = opened.submit(identified(opened, token), system(sealed))
        # both count against the secrecy of the part
        assert (found.is_new_best, found.submissions) == (True, 2)
        assert 0.9 < found.score < 1
        assert found.bound == error_bound(2, 2, 12)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.booleans(), min_size=QUERIES, max_size=QUERIES), max_size=8))
def test_what_is_submitted_below_the_step_cannot_be_told_apart(
    path: Path, choices: list[list[bool]]
) -> None:
    """Any two series of submissions without a new best get the same answers."""
    path = sealed_exam.make(path)
    sealed, token = words_of(path, "sealed"), sealed_exam.client(path)
    with sealed_exam.service(path) as opened:
        bot = identified(opened, token)
        assert opened.submit(bot, system(sealed)).score == 1.0
        for number, chosen in enumerate(choices, 2):
            some = {
                name: text if one else "no"
                for one, (name, text) in zip(chosen, answers(sealed).items(), strict=True)
            }
            found = opened.submit(bot, some)
            expected = module.SealedReport(1.0, False, 12, number, error_bound(number, 1, 12))
            assert found == expected


def test_sealed_and_public_items_are_never_in_one_request(tmp_path: Path) -> None:
    """A prompt for several items of a passage has items of one part."""
    path = sealed_exam.make(tmp_path / "my.exam")
    batches: list[set[str]] = []

    class Batching(ScriptedGrader):
        def answer(self, requests: Any) -> Iterator[tuple[Request, Reply]]:
            some = list(requests)
            batches.append({one.item.split()[-1].rstrip("?") for one in some})
            yield from super().answer(some)

    grader = Batching(lambda one: str(sealed_exam.rate(one.item, one.passage)), record=False)
    tokens = [sealed_exam.client(path, name) for name in ("ann", "bob")]
    opened = ExamService(path, lambda exam: exam.scorer(grader))
    public, sealed = (words_of(path, part) for part in ("public", "sealed"))
    texts = {name: f"{name} {number}" for number, name in enumerate(public)}
    with ThreadPoolExecutor(8) as threads:
        for _ in range(4):
            for one in tokens:
                bot = identified(opened, one)
                threads.submit(opened.submit, bot, texts)
                for name, text in texts.items():
                    threads.submit(opened.grade_answer, bot, name, text)
    opened.close()
    parts = [{word for some in part.values() for word in some} for part in (public, sealed)]
    assert len(batches) > 1
    assert all(sum(bool(batch & part) for part in parts) == 1 for batch in batches)
    assert set.union(*batches) == parts[0] | parts[1]


# ---- failures ------------------------------------------------------------------------------------


def failing(path: Path, fails: Any) -> ExamService:
    """A service whose grader fails for some items."""

    def rate(item: object, passage: object) -> int | None:
        if fails(str(item)):
            raise ConnectionError("https://secret.example.org:1234 refused sk-secret")
        return sealed_exam.rate(item, passage)

    return ExamService(path, lambda exam: exam.scorer(rate, name="words", scale=(0, 5)))


def test_a_failure_is_no_low_grade_and_reveals_no_address(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = failing(path, lambda _: True)
    try:
        bot = identified(opened, sealed_exam.client(path))
        public = answers(words_of(path, "public"))
        for call in (
            lambda: opened.grade_answer(bot, "q00", "word0x0"),
            lambda: opened.compare(bot, public, public),
            lambda: opened.gate(bot, public, "Cover>=0.5"),
            lambda: opened.submit(bot, public),
        ):
            with pytest.raises(Unavailable, match="the grader did not answer") as caught:
                call()
            assert "secret" not in str(caught.value)
            # the owner reads why
            assert "to the grader failed, the first: " in caplog.text
            assert "secret.example.org:1234 refused" in caplog.text
            caplog.clear()
    finally:
        opened.close()


def test_some_failures_bound_the_score(path: Path) -> None:
    first, second = words_of(path, "public")["q00"]
    opened = failing(path, lambda item: first in item)
    try:
        bot = identified(opened, sealed_exam.client(path))
        graded = opened.grade_answer(bot, "q00", f"{first} {second}")
        assert (graded.score, graded.low, graded.high, graded.failed) == (0.5, 0.5, 1.0, 1)
        public = answers(words_of(path, "public"))
        found = opened.gate(bot, public, "Cover>=0.97")
        assert (found.verdict, found.high) == ("undecided", 1.0)
    finally:
        opened.close()


def test_a_failed_submission_counts_as_an_answer_about_the_sealed_part(path: Path) -> None:
    sealed, fails = words_of(path, "sealed"), True
    opened = failing(path, lambda item: fails and sealed["q05"][0] in item)
    try:
        bot = identified(opened, sealed_exam.client(path))
        with pytest.raises(Unavailable, match="the grader did not answer all requests"):
            opened.submit(bot, system(sealed))
        fails = False
        found = opened.submit(bot, system(sealed, 6))
        assert (found.score, found.submissions) == (0.5, 2)
        assert found.bound == error_bound(2, 2, 12)
    finally:
        opened.close()


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from support import sealed_exam
from support.commands import Commands
from exampp.service import ExamService
from pathlib import Path

def rate(item, passage):
    os.kill(os.getpid(), signal.SIGKILL)

path = Path({path!r})
opened = ExamService(path, lambda exam: exam.scorer(rate, name="words", scale=(0, 5)))
bot = opened.identify({token!r})
opened.{call}
"""


@pytest.mark.parametrize("call", ["submit(bot, {'q00': 'a'})", "grade_answer(bot, 'q00', 'a')"])
def test_a_killed_process_has_used_up_the_request(path: Path, call: str) -> None:
    token = sealed_exam.client(path, limits=Limits(requests=2))
    tests = str(Path(__file__).parent)
    code = KILLED.format(tests=tests, path=str(path), token=token, call=call)
    ran = subprocess.run([sys.executable, "-c", code], check=False)
    assert ran.returncode == -signal.SIGKILL
    with sealed_exam.service(path) as opened:
        bot = identified(opened, token)
        budget = opened.budget(bot)
        assert (budget.requests, budget.cells) == (1, 2)
        found = opened.submit(bot, {"q00": "a"})
        assert found.submissions == (2 if "submit" in call else 1)
        with pytest.raises(OverLimit, match="all 2 requests of this token are used"):
            opened.submit(bot, {"q00": "a"})
    assert exampp.check(path).ok


# ---- clients -------------------------------------------------------------------------------------


def test_a_token_is_valid_until_it_is_replaced_or_revoked(path: Path, opened: ExamService) -> None:
    first = sealed_exam.client(path)
    assert identified(opened, first).name == "bot"
    second = sealed_exam.client(path)
    assert opened.identify(first) is None
    bot = identified(opened, second)
    with exampp.open(path) as exam:
        revoke_client(exam, "bot")
        with pytest.raises(InputError, match="'bot' has no token"):
            revoke_client(exam, "bot")
    assert opened.identify(second) is None
    # also a request that was let in before
    with pytest.raises(OverLimit, match="the token was revoked"):
        opened.grade_answer(bot, "q00", "a")
    for wrong in ("", "x", second[:-1], second + "\x00", "\ud800", "' OR 1=1 --", "é" * 9999):
        assert opened.identify(wrong) is None


def test_the_collection_does_not_contain_tokens(path: Path) -> None:
    token = sealed_exam.client(path)
    for file in path.parent.glob("my.exam*"):
        assert token.removeprefix("exampp-").encode() not in file.read_bytes()


@pytest.mark.parametrize("name", ["", " ", "stdio", "\u200b"])
def test_names_that_a_client_cannot_have(name: str, path: Path) -> None:
    with exampp.open(path) as exam, pytest.raises(InputError):
        add_client(exam, name, Limits())


@pytest.mark.parametrize(
    "limits", [{"rate": 0}, {"requests": -1}, {"cells": 2**60}, {"rate": 10**30}]
)
def test_limits_that_make_no_sense(limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"must be from [01] to 9007199254740992, not"):
        Limits(**limits)


def test_cells_are_limited_before_they_are_graded(path: Path, opened: ExamService) -> None:
    bot = identified(opened, sealed_exam.client(path, limits=Limits(cells=5)))
    public = answers(words_of(path, "public"))
    with pytest.raises(OverLimit, match="takes 24 cells, and 5 of 5 are left"):
        opened.gate(bot, public, "Cover>=0.5")
    opened.grade_answer(bot, "q00", "a")
    opened.compare(bot, {"q00": "a"}, {"q00": "a"})
    assert opened.budget(bot).cells == 4
    with pytest.raises(OverLimit, match="takes 4 cells, and 1 of 5 are left"):
        opened.compare(bot, {"q00": "a"}, {"q00": "b"})
    # the same answer again costs the same
    assert (opened.budget(bot).cells, opened.budget(bot).requests) == (4, 2)


def test_parallel_requests_share_the_limits(path: Path) -> None:
    """Threads of two services of one exam never use more than the limit together."""
    token = sealed_exam.client(path, limits=Limits(rate=10_000, requests=50))
    answered, refused = [], []
    with sealed_exam.service(path) as opened, sealed_exam.service(path) as other:
        bot = identified(opened, token)

        def ask(number: int) -> None:
            try:
                answered.append((opened, other)[number % 2].grade_answer(bot, "q00", "a"))
            except OverLimit as error:
                refused.append(error)

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(ask, range(200)))
        assert (len(answered), len(refused)) == (50, 150)
        assert opened.budget(bot).requests == 50


def test_the_rate_is_of_any_minute(path: Path, opened: ExamService) -> None:
    bot = identified(opened, sealed_exam.client(path, limits=Limits(rate=3)))
    for _ in range(3):
        opened.list_queries(bot)
    with pytest.raises(OverLimit, match="more than 3 requests in a minute") as caught:
        opened.list_queries(bot)
    assert caught.value.wait is not None
    assert 50 <= caught.value.wait <= 60
    assert opened.budget(bot).requests == 3
    assert opened.list_queries(identified(opened, sealed_exam.client(path, "other")))


def test_more_requests_than_can_wait_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_CLIENT", 2)
    going, end = threading.Semaphore(0), threading.Event()

    def rate(item: object, passage: object) -> int:
        going.release()
        end.wait(60)
        return 5

    opened = ExamService(path, lambda exam: exam.scorer(rate, name="words", scale=(0, 5)))
    try:
        bot = identified(opened, sealed_exam.client(path))
        with ThreadPoolExecutor(3) as threads:
            graded = [threads.submit(opened.grade_answer, bot, "q00", text) for text in "ab"]
            going.acquire(timeout=60)
            while opened.budget(bot).requests < 2:
                pass
            with pytest.raises(Unavailable, match="too many requests"):
                opened.grade_answer(bot, "q00", "c")
            # nobody is kept out by another client alone
            other = identified(opened, sealed_exam.client(path, "other"))
            graded.append(threads.submit(opened.grade_answer, other, "q00", "c"))
            while opened.budget(other).requests < 1:
                pass
            monkeypatch.setattr(module, "MOST_WAITING", 3)
            with pytest.raises(Unavailable, match="too many requests"):
                opened.grade_answer(other, "q00", "d")
            end.set()
            assert [one.result().score for one in graded] == [1.0, 1.0, 1.0]
        assert opened.grade_answer(bot, "q00", "c").score == 1.0
        assert opened.budget(bot).requests == 3
    finally:
        end.set()
        opened.close()


def test_what_was_asked_is_listed(path: Path, opened: ExamService, bot: Identified) -> None:
    opened.submit(bot, system(words_of(path, "sealed"), 6))
    opened.grade_answer(bot, "q00", "a")
    with exampp.open(path) as exam:
        tables = module.client_tables(exam)
    # 6 answers by 2 sealed items each, and one by 2 public items
    assert tables["clients"].rows == (("bot", "valid", 2, None, 14, None, 10_000, 1),)
    ((bank, _, *numbers, _),) = tables["sealed"].rows
    assert (bank, numbers) == ("main", [1, 1, 1, 0.5, error_bound(1, 1, 12)])


def graded_exam(path: Path) -> exampp.Collection:
    """The exam with a system and grades, so that it has a report."""
    exam = exampp.open(path)
    exam.add(passages={"p": "word0x0"}, runs={"a": {"q00": ["p"]}})
    exam.grade(rate, name="words", scale=(0, 5))
    return exam


def test_the_use_of_the_sealed_part_is_disclosed(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    """In the report and on the card; k = 3 submissions with b = 1 dependent answer, n = 12."""
    sealed = words_of(path, "sealed")
    other = identified(opened, sealed_exam.client(path, "other"))
    opened.submit(bot, system(sealed, 6))
    opened.submit(bot, system(sealed, 1))
    opened.submit(other, system(sealed, 2))
    opened.grade_answer(other, "q00", "a")
    # sqrt((log(303) + log(2 * 3 * 4 * 2 * 3 / 0.05)) / 24) = 0.7550
    sentence = (
        f"2 clients requested 3 scores of the part of main sealed on {datetime.now(UTC):%Y-%m-%d}. "
        "With a probability of 95 %, each of these scores differs by at most 0.76 from its "
        "expected value on new sealed items."
    )
    with graded_exam(path) as exam:
        found = {one.key: one for one in exam.grades().report().sections}["sealed"]
        assert found.verdict == sentence
        (table,) = (one for one in found.blocks if isinstance(one, Table))
        ((bank, _, *numbers, _),) = table.rows
        assert (bank, *numbers[:4]) == ("main", 2, 3, 1, 0.5)
        assert numbers[4] == pytest.approx(0.75496, abs=1e-5)
        assert sentence in unescape(exam._repr_html_())


def test_an_unused_sealed_part_is_not_mentioned(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    opened.grade_answer(bot, "q00", "a")
    with graded_exam(path) as exam:
        assert "sealed" not in {one.key for one in exam.grades().report().sections}
        assert "requested" not in exam._repr_html_()


def test_a_bound_is_that_of_the_fewest_queries(
    path: Path, opened: ExamService, bot: Identified
) -> None:
    """An edit leaves 11 queries with sealed items: the bound holds for submissions to both."""
    sealed = words_of(path, "sealed")
    opened.submit(bot, system(sealed, 6))
    with exampp.open(path) as exam:
        for row in exam.bank().show(part="sealed").rows:
            if row[0] == "q00":
                exam.bank().edit("retire", str(row[2]), query_id="q00")
    opened.submit(bot, system(sealed, 12))
    with exampp.open(path) as exam:
        (use,) = sealed_use(exam.connection, "main")
        assert sealed_use(exam.connection, "another") == []
    assert (use.submissions, [one.queries for one in use.bests]) == (2, [12, 11])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((1, 1, 0), "1 client requested 1 score of the part of main sealed on 2026"),
        ((1, 1, 0), "and no new best was reported."),
        ((2, 1000, 9), "There are too few queries to bound how much they can have"),
    ],
)
def test_the_use_of_a_sealed_part_in_words(numbers: tuple[int, int, int], words: str) -> None:
    best = SealedBest("0a", 7, 2, "bot", 0.9, 3, DAY)
    use = SealedUse("main", DAY, *numbers, last=DAY, bests=(best,) * numbers[2])
    assert words in describe_sealed_use(use)


def test_the_best_scores_are_drawn(path: Path, opened: ExamService, bot: Identified) -> None:
    sealed = words_of(path, "sealed")
    other = identified(opened, sealed_exam.client(path, "other"))
    for client, queries in ((bot, 6), (bot, 1), (other, 12), (bot, 12)):
        opened.submit(client, system(sealed, queries))
    with exampp.open(path) as exam:
        (use,) = sealed_use(exam.connection)
    figure = sealed_use_figure(use)
    assert [row[:4] for row in figure.data.rows] == [(1, "bot", 0.5, 12), (3, "other", 1.0, 12)]
    line, dots = figure.spec["layer"]
    # the last score holds until the last submission
    assert [tuple(one.values())[1:] for one in line["data"]["values"]] == [
        *((1, 0.5), (3, 1.0)),
        (4, 1.0),
    ]
    assert dots["data"]["values"][1]["about"].startswith("other: 1.00 with submission 3 (20")
    assert figure.alt.startswith("2 clients requested 4 scores of the part of main")


def test_the_plot_command_needs_a_submission(
    path: Path, opened: ExamService, bot: Identified, tmp_path: Path, exampp_command: Commands
) -> None:
    picture = tmp_path / "sealed.csv"
    ran = exampp_command("plot", "sealed", path, "-o", picture)
    assert (ran.code, "no client submitted a system to the sealed part" in ran.err) == (2, True)
    opened.submit(bot, system(words_of(path, "sealed"), 6))
    assert exampp_command("plot", "sealed", path, "-o", picture).code == 0
    assert picture.read_text().splitlines()[1].startswith("1,bot,0.5,12,20")


def test_an_exam_that_cannot_be_written_is_not_offered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exampp.store.connection.os.access", lambda *_: False)
    with pytest.raises(ExamError, match="cannot be written"):
        ExamService(path, sealed_exam.open_scorer)


def test_the_collection_stays_sound(path: Path, opened: ExamService, bot: Identified) -> None:
    opened.submit(bot, system(words_of(path, "sealed")))
    assert exampp.check(path).ok
    assert np.isfinite(opened.budget(bot).cells)
