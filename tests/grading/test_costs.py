"""Costs of ways of grading: planned, and then counted by a server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.commands import Commands
from support.counted_tokens import CountingBatches, drawn, replied, server
from support.servers import Answer, FaultServer, Seen

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.batches import Batches
from exampp.grading.costs import (
    GradingCosts,
    RequestLoad,
    WayToGrade,
    _from_replays,
    _middle,
    estimate,
)
from exampp.prompts import load_grading_prompt
from exampp.results.view import Interval

QUERIES, ITEMS, SYSTEMS, DEPTH = 6, 12, 4, 5
OPTIONS: dict[str, Any] = {
    "model": "m",
    "decode": "text",
    "price_read": 0.15,
    "price_written": 0.6,
    "depth": DEPTH,
}
OPTIONS_OF_RUN = {name: value for name, value in OPTIONS.items() if "price" not in name}
ONE, MANY = "question-self-rating", "question-rating-many"


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries with passages of very different lengths, some of them equal."""
    path = tmp_path_factory.mktemp("costs") / "my.exam"
    passages = {
        f"q{query}-p{n}": " ".join(
            [f"text {query} {n % 9}", "word " * (40 * (n % 9) * (query + 1))]
        )
        for query in range(QUERIES)
        for n in range(10)
    }
    with exampp.create(path) as made:
        made.add(
            queries={f"q{n}": f"query {n}" for n in range(QUERIES)},
            passages=passages,
            runs={
                f"s{system}": {
                    f"q{query}": [f"q{query}-p{(system * 3 + n) % 10}" for n in range(DEPTH)]
                    for query in range(QUERIES)
                }
                for system in range(SYSTEMS)
            },
            bank=[
                {"query_id": f"q{query}", "question": f"What is {query} of {item}?"}
                for query in range(QUERIES)
                for item in range(ITEMS)
            ],
        )
    return path


def inside(one: Interval, value: float) -> bool:
    return one.low is not None and one.high is not None and one.low < value < one.high


def planned(path: Path, **more: Any) -> dict[tuple[str, bool], WayToGrade]:
    with exampp.Collection(path) as exam:
        costs = exam.grading_costs("openai", **{**OPTIONS, **more})
    return {(way.prompt, bool(way.target)): way for way in costs.ways}


@pytest.fixture
def copy(exam: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(exam, tmp_path / "copy.exam"))


def spent(path: Path, url: str, prompt: str, target: bool, **more: Any) -> list[float]:
    """Grade; return requests, tokens read and written, and the cost."""
    with exampp.Collection(path) as exam:
        options = {**OPTIONS, **more, "prompt": prompt, "measures": ["Cover@5"] * target}
        used = exam.grade("openai", base_url=url, **options).spent
    return [used.requests, used.tokens_read, used.tokens_written, used.cost or 0.0]


@pytest.mark.parametrize("prompt", [ONE, MANY])
@pytest.mark.parametrize("limit", [None, 600])
def test_all_cells_cost_what_is_planned(prompt: str, limit: int | None, copy: Path) -> None:
    way = planned(copy, limit=limit)[prompt, False]
    with server(drawn) as plain:
        found = spent(copy, plain.url, prompt, False, limit=limit)
    expected = [one.value for one in (way.requests, way.read, way.written, way.cost)]
    assert expected[0] == found[0]
    assert expected == pytest.approx(found, rel=0.05)
    assert way.cells.value == QUERIES * ITEMS * 10


def test_batches_cost_what_is_planned(copy: Path) -> None:
    way = planned(copy)[ONE, False]
    with CountingBatches(drawn) as provider:
        found = spent(copy, provider.url, ONE, False, batches=Batches(poll=0))
    assert way.batch_cost.value == pytest.approx(found[3], rel=0.05)
    assert way.cost.value == pytest.approx(2 * found[3], rel=0.05)


@pytest.mark.parametrize("prompt", [ONE, MANY])
def test_the_cost_of_a_target_lies_between_its_limits(prompt: str, copy: Path) -> None:
    way = planned(copy)[prompt, True]
    with server(drawn) as plain:
        found = spent(copy, plain.url, prompt, True)
    for one, actual in zip((way.requests, way.read, way.written, way.cost), found, strict=True):
        assert one.value is None
        assert inside(one, actual)


@pytest.mark.parametrize(("rating", "limit"), [(5, "low"), (0, "high")])
def test_the_limits_are_reached_if_all_grades_cover_or_none(
    rating: int, limit: str, copy: Path
) -> None:
    way = planned(copy)[ONE, True]
    with server(lambda *_: rating) as plain:
        found = spent(copy, plain.url, ONE, True)
    assert found[0] == getattr(way.requests, limit)


def test_known_grades_are_replayed(copy: Path) -> None:
    with server(drawn) as plain:
        spent(copy, plain.url, ONE, False)
        with exampp.Collection(copy) as exam:
            costs = exam.grading_costs("openai", **{**OPTIONS, "model": "other"})
        ways = {(way.prompt, bool(way.target)): way for way in costs.ways}
        assert any("m:question-self-rating on 6 queries" in note for note in costs.notes)
        for prompt in (ONE, MANY):
            way = ways[prompt, True]
            found = spent(copy, plain.url, prompt, True, model="other")
            expected = [one.value for one in (way.requests, way.read, way.written, way.cost)]
            assert expected == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize("prompt", [ONE, MANY])
def test_a_trial_gives_an_estimate_with_an_interval(copy: Path, prompt: str) -> None:
    with server(drawn) as plain:
        spent(copy, plain.url, prompt, True, max_queries=4)
        way = planned(copy)[prompt, True]
        found = spent(copy, plain.url, prompt, True)
    numbers = (way.requests, way.read, way.written, way.cost)
    for one, actual in zip(numbers, found, strict=True):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= actual <= one.high
    assert way.seconds.value is not None
    if prompt == MANY:
        # nearly every passage is requested: what varies are the items of a request
        assert way.read.value == pytest.approx(found[1], rel=0.05)


def test_an_estimate_by_hand() -> None:
    """Three queries took 5, 5 and 8 of 10 requests: 60 % of 100, by residuals of -1, -1 and 2."""
    replayed = [(RequestLoad(requests=n), RequestLoad(requests=10)) for n in (5, 5, 8)]
    mean, low, high = _from_replays(replayed, RequestLoad(requests=100), 10)
    # the deviation is the square root of (1 + 1 + 4) / 2, and t is 4.3027 for 2 degrees of freedom
    reach = 4.3027 * 3**0.5 * (1 / 3 + 1 / 10) ** 0.5 * 10
    assert low is not None
    assert high is not None
    assert mean.requests == pytest.approx(60)
    assert (low.requests, high.requests) == pytest.approx((60 - reach, 60 + reach), rel=1e-4)
    assert _from_replays(replayed[:2], RequestLoad(requests=100), 10)[1:] == (None, None)


@pytest.mark.parametrize("ranked", [(6, 6, 6), (6, 5, 4)])
def test_an_estimate_lies_within_the_limits(tmp_path: Path, ranked: tuple[int, ...]) -> None:
    """One passage of each graded query closes its item; the others have two passages at most."""
    passages = [*ranked, *[2] * 10]
    names = {
        f"q{query}": [f"q{query}-p{n}" for n in range(count)]
        for query, count in enumerate(passages)
    }
    with exampp.create(tmp_path / "my.exam") as made:
        made.add(
            queries={query: f"query {query}" for query in names},
            passages={one: f"text of {one}" for mine in names.values() for one in mine},
            runs={"s": names},
            bank=[{"query_id": query, "question": f"What is {query}?"} for query in names],
        )
        cover: dict[str, Any] = {
            "measures": ["Cover@6"],
            "model": "m",
            "decode": "text",
            "prompt": ONE,
        }
        with server(lambda *_: 5) as plain:
            made.grade("openai", base_url=plain.url, max_queries=len(ranked), **cover)
        way = next(one for one in made.grading_costs("openai", **cover).ways if one.target)
    assert way.requests.value == 10
    assert (way.requests.low or 10, way.requests.high or 10) == (10, 10)


def test_failed_requests_do_not_make_the_rest_seem_cheap(copy: Path) -> None:
    answered = iter(range(15))

    def dying(seen: Seen) -> Answer:
        alive = next(answered, None) is not None
        text = seen.body["messages"][-1]["content"]
        return Answer(replied(text, drawn)) if alive else Answer({}, status=503)

    options = {**OPTIONS, "prompt": MANY, "retries": 1, "backoff": 0.001, "concurrency": 1}
    with exampp.Collection(copy) as exam:
        before = estimate(exam.grading("openai", dry_run=True, **options))
        with FaultServer(dying) as dead, pytest.raises(exampp.Unfinished):
            exam.grade("openai", base_url=dead.url, **options)
        after = estimate(exam.grading("openai", dry_run=True, **options))
    assert 0 < after.requests < before.requests
    per_request = [one.tokens / one.requests for one in (before, after)]
    assert per_request[1] == pytest.approx(per_request[0], rel=0.3)


def test_the_bounds_of_a_run_that_may_end_early_are_those_of_its_way(exam: Path) -> None:
    options = {**OPTIONS, "measures": ["Cover@5"], "until": "order"}
    with exampp.Collection(exam) as opened:
        found = estimate(opened.grading("openai", dry_run=True, **options))
        costs = opened.grading_costs("openai", **options)
    (way,) = (way for way in costs.ways if way.prompt == ONE and way.target)
    assert (way.requests.low, way.requests.high) == (found.at_least, found.requests)
    # six groups of one query: the first may decide
    assert 0 < found.at_least < found.requests / QUERIES


def test_the_shown_prompts_are_those_that_are_sent(copy: Path) -> None:
    sent = []

    def reply(seen: Seen) -> Answer:
        sent.append(seen.body["messages"][-1]["content"])
        return Answer(replied(sent[-1], drawn))

    options: dict[str, Any] = {"model": "m", "decode": "text", "prompt": MANY, "depth": 1}
    with FaultServer(reply) as plain, exampp.Collection(copy) as exam:
        shown = estimate(exam.grading("openai", base_url=plain.url, **options)).prompts
        exam.grade("openai", base_url=plain.url, **options)
        draft = estimate(exam.grading("draft")).prompts
    # twelve items of the first passage: ten, and two
    assert set(shown) <= set(sent)
    assert [text.count("What is 0 of") for text in shown] == [10, 2]
    assert draft[0].startswith("[item]\nWhat is 0 of 0?\n\n[passage]\ntext 0")


def test_costs_by_hand(tmp_path: Path) -> None:
    """One passage and two questions: two requests, or one."""
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q": "the query"},
            passages={"p": "x" * 400},
            runs={"s": {"q": ["p"]}},
            bank=[{"query_id": "q", "question": one * 40} for one in "ab"],
        )
        costs = exam.grading_costs("openai", **OPTIONS)
    one, many = (way for way in costs.ways if not way.target)
    length = len(load_grading_prompt(ONE).user) - len("{question}{context}") + 440
    assert one.requests.value == 2
    assert one.read.value == pytest.approx(2 * length / 4)
    # the digit and the end of the reply
    assert one.written.value == 4
    assert one.cost.value == pytest.approx((0.15 * 2 * length / 4 + 0.6 * 4) / 1e6)
    assert (many.requests.value, many.items) == (1, 10)
    # {"1": 0, "2": 0} has 13 marks and digits, and its end
    assert many.written.value == 14
    assert "instead of" in costs.headline
    (table,) = costs.tables().values()
    target = "Cover@5 at min rating 4"
    assert [row[:3] for row in table.rows] == [
        (prompt, items, which)
        for prompt, items in ((ONE, 1), (MANY, 10))
        for which in ("all cells", target)
    ]
    assert table.to_frame().loc[2, "requests"] == 1


def test_graders_without_shared_requests_have_a_target_alone(exam: Path) -> None:
    with exampp.Collection(exam) as opened:
        costs = opened.grading_costs("draft", price_hour=2.0, depth=DEPTH)
    assert [(way.items, bool(way.target)) for way in costs.ways] == [(1, False), (1, True)]
    assert all(way.batch_cost == (None, None, None) for way in costs.ways)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (Interval(None, 0.6, 1.4), "1 s"),
        (Interval(1.0, 0.6, 1.4), "1 s"),
        (Interval(None, 0.6, 1.6), "1 s to 2 s"),
        (Interval(1.0, 0.6, 1.6), "1 s [1 s, 2 s]"),
    ],
)
def test_limits_that_look_equal_are_shown_once(seconds: Interval, shown: str) -> None:
    one = Interval(1.0)
    way = WayToGrade(ONE, 1, "", one, one, one, one, seconds, one, one)
    table = GradingCosts((way,)).tables()["ways"]
    assert shown in table.rows[0]


def test_some_of_many_queries_are_enough(exam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planned(exam)
    monkeypatch.setattr("exampp.grading.costs.SIMULATED_QUERIES", 3)
    some = planned(exam)
    for name, way in whole.items():
        assert some[name].cells.high == way.cells.high
        assert some[name].cells.value == way.cells.value
        assert _middle(some[name].cost) == pytest.approx(_middle(way.cost), rel=0.3)


def test_a_grader_with_a_mode_of_another_kind_is_planned(exam: Path) -> None:
    class Fast(ScriptedGrader):
        mode = "fast"

    with exampp.Collection(exam) as opened:
        costs = opened.grading_costs(Fast("4"), depth=DEPTH)
    assert {way.prompt for way in costs.ways} == {ONE}


def test_the_bounds_of_a_run_are_those_of_its_way(exam: Path) -> None:
    with exampp.Collection(exam) as opened:
        run = opened.grading("openai", measures=["Cover@5"], dry_run=True, **OPTIONS_OF_RUN)
        found = estimate(run)
        costs = opened.grading_costs("openai", **OPTIONS)
    (way,) = (way for way in costs.ways if way.prompt == ONE and way.target)
    assert (way.requests.low, way.requests.high) == (found.at_least, found.requests)


def test_a_measure_that_has_all_its_grades_is_said(copy: Path) -> None:
    with exampp.Collection(copy) as opened:
        opened.grade(ScriptedGrader("5"), name="m", depth=DEPTH, measures=["Cover@5"])
        said = opened.grading_costs(ScriptedGrader("5"), name="m", depth=DEPTH).headline
    assert said.startswith("Nothing is pending for Cover@5 at min rating 4; tokens to read for all")


def test_nothing_pending_is_said(copy: Path) -> None:
    with exampp.Collection(copy) as opened:
        opened.grade(ScriptedGrader("5"), name="m", depth=DEPTH)
        said = opened.grading_costs(ScriptedGrader("5"), name="m", depth=DEPTH).headline
    assert said == "Nothing is pending."


def test_the_command_prints_the_table(exam: Path, exampp_command: Commands) -> None:
    grade = ("grade", exam, "--grader", "openai", "--model", "m", "--dry-run")
    ran = exampp_command(*grade, "--price-read", 0.15, "--price-written", 0.6)
    assert ran.code == 0, ran.err
    assert "Lowest cost: " in ran.out
    assert ran.out.index("Ways to grade") < ran.out.index("--- prompt 1")
    assert "by batches" in ran.out
    without = exampp_command(*grade)
    assert "Lowest tokens to read: " in without.out
