"""Do positions and neighbours of items change ratings? Planted effects, and none."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import live
from support.commands import Commands
from support.servers import Answer, FaultServer, Seen, completion

import exampp
from exampp.stats.positions import PositionTests, position_tests

MANY = "question-rating-many"
Planted = Callable[[int, float], float]
"""Addition to a rating, by the position and the rating before it."""


def nothing(position: int, before: float) -> float:
    return 0.0


def later_lower(position: int, before: float) -> float:
    return -0.15 * (position - 1)


def first_higher(position: int, before: float) -> float:
    return 1.5 * (position == 1)


def leak(position: int, before: float) -> float:
    return 0.5 * before


def drawn(seed: int, planted: Planted, requests: int = 60, items: int = 10) -> PositionTests:
    """Ratings of items of different difficulty, in random orders."""
    random = np.random.default_rng(seed)
    difficulty = random.normal(1, 1.2, items)
    rows = list[tuple[int, int, int, int]]()
    for number in range(requests):
        passage, before = random.normal(), 0.0
        for at, item in enumerate(random.permutation(items).tolist(), 1):
            noise = random.normal() + planted(at, before)
            rated = int(np.clip(round(difficulty[item] + passage + noise), 0, 5))
            before = rated - 1.0
            rows.append((number, at, item, rated))
    request, position, item, rating = (list(one) for one in zip(*rows, strict=True))
    found = position_tests(request, position, item, rating, draws=199, seed=seed)
    assert found is not None
    return found


def test_without_an_effect_every_test_rejects_at_its_level() -> None:
    """At most 5 % of 300 exams: 15, and 27 with a probability below .003."""
    found = [drawn(seed, nothing) for seed in range(300)]
    assert sum(min(one.last_p, one.any_p, one.leak_p) <= 0.05 for one in found) <= 26


@pytest.mark.parametrize(
    ("planted", "name", "size"),
    [
        (later_lower, "last_p", lambda one: -one.last),
        (first_higher, "any_p", lambda one: one.means[0].difference),
        (leak, "leak_p", lambda one: one.leak),
    ],
)
def test_a_planted_effect_is_found(
    planted: Planted, name: str, size: Callable[[PositionTests], float]
) -> None:
    found = [drawn(seed, planted) for seed in range(40)]
    assert sum(getattr(one, name) <= 0.05 for one in found) >= 36
    assert 0.2 < np.mean([size(one) for one in found]) < 1.8
    if planted is not leak:
        assert sum(one.leak_p <= 0.05 for one in found) <= 6


def test_the_p_value_is_that_of_all_orders() -> None:
    """Two requests of three items: 36 orders, counted one by one."""
    rating = [3.0, 1.0, 0.0, 4.0, 2.0, 2.0]
    request, position, item = [0, 0, 0, 1, 1, 1], [1, 2, 3] * 2, [0, 1, 2, 0, 1, 2]
    mean = [3.5, 1.5, 1.0] * 2
    rest = [a - b for a, b in zip(rating, mean, strict=True)]
    one, other = ([x - sum(half) / 3 for x in half] for half in (rest[:3], rest[3:]))

    def line(a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return a[2] - a[0] + b[2] - b[0]

    lines = [line(a, b) for a in itertools.permutations(one) for b in itertools.permutations(other)]
    exact = np.mean(np.abs(lines) >= abs(line(tuple(one), tuple(other))) - 1e-9)
    found = position_tests(request, position, item, rating, draws=9999)
    assert found is not None
    assert found.last == pytest.approx(line(tuple(one), tuple(other)) / 4 * 2)
    assert found.last_p == pytest.approx(min(1.0, 3 * float(exact)), abs=0.03)
    assert (found.requests, found.cells) == (2, 6)


def test_requests_of_one_item_say_nothing() -> None:
    assert position_tests([0, 1], [1, 1], [0, 1], [3, 4]) is None
    assert position_tests([], [], [], []) is None


def test_equal_ratings_show_no_effect() -> None:
    found = position_tests([0] * 4 + [1] * 4, [1, 2, 3, 4] * 2, [0, 1, 2, 3] * 2, [2] * 8)
    assert found is not None
    assert (found.last_p, found.any_p, found.leak_p) == (1, 1, 1)


# ---- of a grader ---------------------------------------------------------------------------------

LINE = re.compile(r"^(\d+)\. (item \d+ .*)$", re.M)


def graded(path: Path, planted: Planted) -> exampp.Collection:
    """Grade on a judge with a planted effect: one item a request, and ten."""

    def judge(seen: Seen) -> Answer:
        several = LINE.findall(seen.text)
        (passage,) = re.findall(r"passage (\d+)", seen.text)
        if not several:
            (item,) = re.findall(r"item (\d+)", seen.text)
            return Answer(completion(str(rate(int(item), int(passage)))))
        ratings, before = {}, 0.0
        for number, text in several:
            item = int(text.split()[1])
            added = planted(int(number), before)
            ratings[number] = int(np.clip(round(rate(item, int(passage)) + added), 0, 5))
            before = ratings[number] - 2.0
        return Answer(completion(json.dumps(ratings)))

    def rate(item: int, passage: int) -> int:
        return int(np.random.default_rng(item * 1000 + passage).integers(0, 4)) + item % 2

    exam = exampp.create(path)
    exam.add(
        queries={"q": "the query"},
        passages={f"p{n}": f"the text of passage {n}" for n in range(40)},
        runs={
            "s": {"q": [f"p{n}" for n in range(20)]},
            "t": {"q": [f"p{n}" for n in range(20, 40)]},
        },
        bank=[
            {"query_id": "q", "item_id": f"i{n}", "text": f"item {n} ?", "kind": "question"}
            for n in range(10)
        ],
    )
    with FaultServer(judge) as server:
        for prompt in ("question-self-rating", "question-rating-many"):
            exam.grade("openai", model="m", base_url=server.url, decode="text", prompt=prompt)
    return exam


def test_agreement_reports_a_planted_effect(tmp_path: Path, exampp_command: Commands) -> None:
    with graded(tmp_path / "my.exam", later_lower) as exam:
        found = exam.panel().agreement(against="graders")
        (effect,) = found.positions
        assert "the last of 10 items is rated" in effect.headline
        assert "lower than the first" in effect.headline
        assert [one.rater for one in found.mutual]
        assert found.records()["order"].rows[0][1] == "last position against first"
        assert len(found.records()["positions"].rows) == 10
        assert exam.grades("question-self-rating").position_effect() is None
    ran = exampp_command.line(f"exampp analyze agreement {tmp_path / 'my.exam'}")
    assert "The order of items changes ratings of m:question-rating-many" in ran.out


def test_agreement_reports_no_effect_where_there_is_none(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam", nothing) as exam:
        found = exam.panel().agreement(against="graders")
        (effect,) = found.positions
        assert effect.found == ()
        assert "would be noticed" in effect.headline
        # both graders give the same ratings
        assert found.mutual[0].estimates["kappa"].value == 1


def test_equal_passages_count_once(tmp_path: Path) -> None:
    with graded(tmp_path / "my.exam", nothing) as exam:
        before = exam.grades("question-rating-many").position_effect()
        exam.add(
            passages={"twin": "the text of passage 3"},
            runs={"u": {"q": ["twin"]}},
        )
        with FaultServer() as server:
            exam.grade(
                "openai",
                model="m",
                base_url=server.url,
                decode="text",
                prompt="question-rating-many",
            )
            assert not server.requests
        after = exam.grades("question-rating-many").position_effect()
    assert before is not None
    assert after is not None
    assert after.tests == before.tests


def test_the_page_of_agreement_shows_the_effect(tmp_path: Path) -> None:
    graded(tmp_path / "my.exam", later_lower).close()
    with live.visiting(tmp_path / "my.exam", grader=MANY) as client:
        text = client.get("/agreement").text
    assert "Order of the items in a request" in text
    assert "lower than the first" in text
