"""The overview: the leaderboard, how far grading is, what to look at next."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from support import live
from support.live import Client

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.values import Mean, standard_error_bar
from exampp.results.plots.figure import Spread, round_axis
from exampp.web.pages.overview import error_bar as bar_of


def text_of(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def counted(client: Client) -> str:
    """The overview once everything on it has been counted."""
    for _ in range(1200):
        page = client.get("/").text
        if "Counting" not in page:
            return page
        time.sleep(0.05)
    raise AssertionError("still counting")


def test_the_leaderboard_is_that_of_evaluate(demo_exam: Path) -> None:
    with exampp.Collection(demo_exam) as collection:
        board = collection.grades().evaluate(["nCover@20"])
    with live.visiting(demo_exam) as client:
        page = text_of(client.get("/?by=1").text)
    best, second = board.rows[:2]
    assert best.mean is not None
    assert second.mean is not None
    assert f" 1 {best.system} " in page
    assert page.index(f" 1 {best.system} ") < page.index(f" 2 {second.system} ")
    assert f"{best.mean:.3f} {best.stderr:.3f}" in page


def test_what_waits_for_people_is_counted(demo_exam: Path) -> None:
    with exampp.Collection(demo_exam) as collection:
        findings = len(collection.bank().lint().rows)
    with live.visiting(demo_exam) as client:
        page = text_of(counted(client))
    assert f"Fix the bank {findings} findings" in page
    assert "Fill gaps" in page
    assert re.search(r"(\b[\d ]+) of \1 cells", page)


def test_grades_of_another_process_appear_without_being_asked_for(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with live.visiting(path) as client:
        before = counted(client)
        seen = re.search(r'hx-get="(/overview/live[^"]*)"', before)
        assert seen is not None
        address = seen[1].replace("&amp;", "&")
        assert client.get(address).status == 204
        with exampp.Collection(path) as collection:
            collection.grades().decisions.decide(
                "q1", _item(collection, "q1"), "p1", 5, author="grace"
            )
        for _ in range(1200):
            answer = client.get(address)
            if answer.status == 200:
                break
            time.sleep(0.05)
        assert answer.status == 200
        assert "<html" not in answer.text


def _item(collection: exampp.Collection, query_id: str) -> str:
    return collection.grades().gradebook.queries[0 if query_id == "q1" else 1].item_ids[0]


def test_every_grader_can_be_looked_at_and_the_choice_is_kept(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with exampp.Collection(path) as collection:
        collection.grade(ScriptedGrader("5", name="other"))
        assert len(collection.graders) == 2
    with live.visiting(path) as client:
        page = client.get("/").text
        codes = re.findall(r'<option value="([^"]+)"', page)
        assert len(codes) == 2
        assert f'value="{codes[0]}" selected' in page
        assert client.post("/choose", {"code": codes[1]}).status == 303
        assert f'value="{codes[1]}" selected' in client.get("/queries").text
        client.post("/choose", {"code": "nonsense"})
        assert f'value="{codes[1]}" selected' in client.get("/").text


def means(*values: float | None) -> list[Spread]:
    return [
        Spread(f"s{i}", value, *standard_error_bar(Mean(value, 0.02, 9), share=True))
        for i, value in enumerate(values)
    ]


def test_the_axis_holds_every_error_bar_between_round_numbers() -> None:
    low, high, ticks = round_axis(means(0.681, 0.66, 0.64, 0.62))
    assert (low, high) == pytest.approx((0.6, 0.75))
    assert ticks == pytest.approx([0.6, 0.65, 0.7, 0.75])


def test_a_system_far_below_all_others_does_not_press_them_together() -> None:
    found = means(0.681, 0.675, 0.66, 0.65, 0.64, 0.05)
    low, high, _ = round_axis(found)
    assert low >= 0.6
    bar = bar_of(found[-1], low, high)
    assert bar is not None
    assert bar.beyond == "\u2039"
    assert bar_of(means(None)[0], low, high) is None


def test_one_system_alone_has_an_axis() -> None:
    low, high, ticks = round_axis([Spread("only", 0.5)])
    assert low <= 0.5 <= high
    assert low < high
    assert len(ticks) >= 2
