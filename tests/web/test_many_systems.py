"""Many systems on Results, Compare and Plots: found by name, by group, and pinned to the top."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import live
from support.live import Client

import exampp
from exampp.errors import Unfinished
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.results.plots import lines
from exampp.results.plots.figure import Figure
from exampp.web import rendering
from exampp.web.rendering import render_figure

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SYSTEMS = [f"{team}_{n}" for n in range(1, 5) for team in ("ants", "bees", "cats")]
"""Best first: system n of a team returns passage n, which answers 4 - n questions, one partly."""


def rate(ask: Request) -> str:
    passage, item = (int(re.findall(r"\d", text)[-1]) for text in (ask.passage, ask.item))
    return "3" if item == passage else "5" if item > passage else "0"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "my.exam"
    with exampp.Collection.create(path) as exam:
        exam.add(
            queries={"q": "Why?"},
            passages={f"p{n}": f"Text of passage {n}" for n in range(1, 5)},
            bank={"q": [f"Question number {n}?" for n in range(1, 5)]},
            runs={name: {"q": [f"p{name[-1]}"]} for name in SYSTEMS},
        )
        exam.grade(ScriptedGrader(rate))
    return path


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[Client]:
    with live.visiting(path) as one:
        yield one


def rows(page: str) -> list[str]:
    """The systems of the leaderboard, from top to bottom."""
    return re.findall(r'name="s" value="([^"]+)"', page)


def test_the_leaderboard_of_a_filter(client: Client) -> None:
    assert rows(client.get("/").text) == SYSTEMS
    page = client.get("/?find=BEES").text
    assert rows(page) == ["bees_1", "bees_2", "bees_3", "bees_4"]
    assert "4 of 12 systems shown" in page
    # places are those among all systems; the systems of a number are equal
    assert re.findall(r'<td class="n soft">(\d*)</td>', page) == ["1", "4", "7", "10"]
    assert rows(client.get("/?group=cats_&find=3").text) == ["cats_3"]
    assert rows(client.get("/?group=best").text) == ["ants_1", "bees_1", "cats_1"]
    assert "No system matches." in client.get("/?find=wasps").text


def test_pinned_systems_stay_on_top(client: Client) -> None:
    page = client.get("/?find=ants&pin=cats_4&pin=bees_3&pin=gone").text
    assert rows(page) == ["bees_3", "cats_4", "ants_1", "ants_2", "ants_3", "ants_4"]
    assert "Pinned, but not in this leaderboard: <bdi>gone</bdi>" in page
    # a link pins one more, another one unpins
    links = {
        name: address
        for address, name in re.findall(
            r'href="([^"]+)"[^>]*aria-label="((?:Unpin|Pin) \w+)"', page
        )
    }
    follow = client.get(links["Pin ants_2"].replace("&amp;", "&")).text
    assert rows(follow) == ["ants_2", "bees_3", "cats_4", "ants_1", "ants_3", "ants_4"]
    follow = client.get(links["Unpin cats_4"].replace("&amp;", "&")).text
    assert rows(follow) == ["bees_3", "ants_1", "ants_2", "ants_3", "ants_4"]


def test_two_ticked_systems_are_compared_with_the_pins_in_the_address(client: Client) -> None:
    found = client.get("/compare?s=ants_1&s=bees_4&pin=cats_2")
    assert dict(found.headers)["location"].endswith("pin=cats_2")
    page = client.get("/compare?pin=cats_2").text
    assert re.findall(r'<option value="(\w+)">', page) == [
        "cats_2", *(one for one in SYSTEMS if one != "cats_2"),
    ]  # fmt: skip


def test_plots_show_the_systems_of_the_page(client: Client) -> None:
    page = client.get("/plots?group=bees_&pin=ants_4").text
    assert "5 of 12 systems shown" in page
    address = re.search(r'href="([^"]*leaderboard.csv[^"]*)"', page)
    assert address is not None
    lines = client.get(address[1].replace("&amp;", "&")).text.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [
        "bees_1", "bees_2", "bees_3", "ants_4", "bees_4",
    ]  # fmt: skip
    heat = client.get("/plots/heatmap.csv?group=bees_").text.splitlines()
    assert len(heat) == 5


def test_the_plot_of_another_threshold_is_that_of_the_page(client: Client) -> None:
    page = client.get("/?min_rating=2&find=ants").text
    address = re.search(r'href="([^"]*leaderboard\.csv[^"]*)"', page)
    assert address is not None
    shown = client.get(address[1].replace("&amp;", "&")).text.splitlines()[1:]
    assert [line.split(",")[:2] for line in shown] == [
        ["ants_1", "1.0"], ["ants_2", "0.75"], ["ants_3", "0.5"], ["ants_4", "0.25"],
    ]  # fmt: skip


def test_typing_filters_the_page_and_its_address(client: Client, browser: Browser) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(base_url=f"http://{client.host}")
    context.set_default_timeout(60_000)
    token = next(iter(client.served.access.people.tokens))
    page = context.new_page()
    page.goto(f"/?token={token}")
    page.goto("/?pin=cats_4")
    systems = page.locator("table.board tbody th")
    expect(systems).to_have_count(len(SYSTEMS), timeout=60_000)
    page.keyboard.press("/")
    page.keyboard.type("bees")
    expect(systems).to_have_count(5, timeout=60_000)
    assert page.evaluate("location.search") == "?pin=cats_4&find=bees"
    assert page.locator("#find").input_value() == "bees"
    page.reload()
    expect(systems).to_have_text(["cats_4", *(f"bees_{n}" for n in range(1, 5))], timeout=60_000)
    context.close()


def test_without_script_the_filter_is_a_form(client: Client, browser: Browser) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(base_url=f"http://{client.host}", java_script_enabled=False)
    context.set_default_timeout(60_000)
    token = next(iter(client.served.access.people.tokens))
    page = context.new_page()
    page.goto(f"/?token={token}")
    page.goto("/?pin=cats_4")
    page.locator("#find").fill("bees")
    page.locator("form[data-address] button").click()
    systems = page.locator("table.board tbody th")
    expect(systems).to_have_count(5, timeout=60_000)
    context.close()


def test_an_interactive_report_filters_and_pins_in_the_same_way(
    path: Path, browser: Browser, tmp_path: Path
) -> None:
    with exampp.Collection(path) as exam:
        exam.grades().report(tmp_path / "report.html", interactive=True)
    address = (tmp_path / "report.html").as_uri()
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{address}?find=BEES&pin=cats_4&pin=gone")
    page.wait_for_selector("#explore[data-ready]")
    systems = page.locator("#explore .rows").first.locator("tbody tr:visible th bdi")
    assert systems.all_text_contents() == ["cats_4", "bees_1", "bees_2", "bees_3", "bees_4"]
    page.get_by_role("button", name="Pin bees_3").click()
    assert systems.all_text_contents() == ["bees_3", "cats_4", "bees_1", "bees_2", "bees_4"]
    page.get_by_role("button", name="Unpin cats_4").click()
    page.get_by_label("Find systems").fill("")
    group = page.locator("#explore-tools select").nth(1)
    group.select_option("best of each group")
    assert systems.all_text_contents() == ["bees_3", "ants_1", "bees_1", "cats_1"]
    assert page.url == f"{address}?group=best&pin=bees_3"
    group.select_option("cats_* (4)")
    assert systems.all_text_contents() == ["bees_3", *(f"cats_{n}" for n in range(1, 5))]
    # charts of a report answer, too
    page.locator(".drawing").first.focus()
    page.keyboard.press("End")
    assert page.locator(".chart-says").first.text_content() == "cats_4: 0.000, 1 query"
    # the dots of a query are those of the shown systems
    assert page.locator("#explore .strip").first.locator("circle").count() == 5
    page.close()


@pytest.mark.parametrize("width", [1440, 1366, 1280, 1200, 1130, 1024, 900, 768])
def test_the_leaderboard_shows_all_measures(client: Client, browser: Browser, width: int) -> None:
    context = browser.new_context(
        base_url=f"http://{client.host}", viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    page.goto(f"/?token={next(iter(client.served.access.people.tokens))}")
    sizes = "one => [one.scrollWidth, one.clientWidth]"
    needed, there = page.locator(".scroll:has(.board)").evaluate(sizes)
    assert needed <= there
    context.close()


def scatter() -> Figure:
    """A small figure."""
    return lines.rank_scatter([lines.RankPair("a", 1, 1), lines.RankPair("b", 2, 2)], "AP")


def test_pictures_drawn_in_another_process_are_those_of_the_figure() -> None:
    figure = scatter()
    assert render_figure(figure, "svg", "dark") == figure.svg("dark").encode()
    # what cannot be drawn raises its error here
    with pytest.raises(ValueError, match=r"(?i)vega"):
        render_figure(replace(figure, spec={"mark": "none", "width": 1}), "svg", "light")


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(600)", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_process_that_hangs_or_is_killed_does_not_stop_other_plots(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    figure = scatter()
    with monkeypatch.context() as patched:
        patched.setattr(rendering, "_DRAW", code)
        patched.setattr(rendering, "DRAWING_SECONDS", 1)
        with pytest.raises(Unfinished, match="not drawn"):
            render_figure(figure, "svg", "light")
    assert render_figure(figure, "svg", "light").startswith(b"<svg")


def test_drawing_runs_no_file_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    figure = scatter()
    assert render_figure(figure, "svg", "light").startswith(b"<svg")
    assert [one.name for one in tmp_path.iterdir()] == ["pickle.py"]


def test_charts_answer_to_the_pointer_and_to_keys(client: Client, browser: Browser) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(base_url=f"http://{client.host}")
    context.set_default_timeout(120_000)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"/?token={next(iter(client.served.access.people.tokens))}")
    page.goto("/plots?group=bees_")
    chart = page.locator(".drawing").first
    marks = chart.locator("path[data-value]")
    expect(marks).to_have_count(4, timeout=120_000)
    says = page.locator(".chart-says").first
    marks.nth(2).hover()
    expect(says).to_have_text("bees_3: 0.250, 1 query", timeout=60_000)
    expect(chart.locator(".is-faded")).to_have_count(3, timeout=60_000)
    chart.focus()
    page.keyboard.press("Home")
    expect(says).to_have_text("bees_1: 0.750, 1 query", timeout=60_000)
    page.keyboard.press("ArrowDown")
    expect(says).to_have_text("bees_2: 0.500, 1 query", timeout=60_000)
    page.keyboard.press("Escape")
    expect(says).to_have_text("", timeout=60_000)
    # a heat map is one picture; its cells answer, too
    heat = page.locator(".drawing").nth(1)
    expect(heat.locator("image")).to_have_count(1, timeout=60_000)
    expect(heat).to_have_attribute("aria-label", re.compile("Arrow keys"), timeout=60_000)
    heat.focus()
    says = heat.locator("xpath=following-sibling::p")
    for key, system in (("ArrowRight", "bees_1: 0.750"), ("ArrowDown", "bees_2: 0.500")):
        page.keyboard.press(key)
        name, _, value = system.partition(": ")
        text = re.compile(rf"^{name} on query \S+: {value}, [+-]0\.\d+ to the mean of the query$")
        expect(says).to_have_text(text, timeout=60_000)
    expect(heat.locator(".is-cell")).to_have_count(1)
    heat.locator("image").hover(position={"x": 2, "y": 3})
    expect(says).to_have_text(re.compile(r"^bees_1 on query"), timeout=60_000)
    page.keyboard.press("Escape")
    expect(heat.locator(".is-cell")).to_have_count(0)
    assert said == []
    context.close()
