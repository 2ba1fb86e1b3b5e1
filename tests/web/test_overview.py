"""The overview, and two systems compared, down to the sentence of a passage."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from support import exams, favoured, live, pages
from support.likely import LikelyExam
from support.live import Client
from support.waiting import SECONDS, wait_for

import exampp
from exampp.analysis.grader_bias import GraderBias
from exampp.graders.scripted import ScriptedGrader
from exampp.grades.grades import Grades
from exampp.measures.names import parse_measure
from exampp.measures.values import Mean, MeasureColumn, masked, standard_error_bar
from exampp.results.plots.figure import Spread, round_axis
from exampp.web.pages.overview import error_bar as bar_of
from exampp.web.pages.overview import ranked_systems


def text_of(page: str) -> str:
    """Return the text of a page without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def counted(client: Client) -> str:
    """The overview once everything on it has been counted."""
    return wait_for(lambda: client.get("/").text, lambda page: "Counting" not in page)


def complete(client: Client) -> str:
    """The overview once all figures above the leaderboard have arrived, too."""
    return wait_for(lambda: counted(client), lambda page: "every 500ms" not in page)


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


def test_what_waits_for_people_is_counted(demo_exam: Path, tmp_path: Path) -> None:
    exam = Path(shutil.copy(demo_exam, tmp_path))
    with exampp.Collection(exam) as collection:
        collection.bank().add("toads", "Are there any toads in the north today?")
        findings = len(collection.bank().lint().findings)
    assert findings == 3
    with live.visiting(exam) as client:
        page = text_of(counted(client))
    assert f"Fix the bank {findings} findings" in page
    assert "Fill gaps" in page
    with live.visiting(demo_exam) as client:
        assert re.search(r"(\b[\d,]+) of \1 cells", text_of(counted(client)))


def test_grades_of_another_process_appear_without_being_asked_for(tmp_path: Path) -> None:
    path = live.graded(tmp_path)
    with live.visiting(path) as client:
        seen = re.search(r'hx-get="(/overview/live[^"]*)"', complete(client))
        assert seen is not None
        address = seen[1].replace("&amp;", "&")
        assert client.get(address).status == 204
        with exampp.Collection(path) as collection:
            collection.grades().decisions.decide(
                "q1", _item(collection, "q1"), "p1", 5, author="grace"
            )
        answer = wait_for(lambda: client.get(address), lambda answer: answer.status == 200)
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


OFFICIAL = {f"s{number}": number + 1 for number in range(favoured.SYSTEMS)}
"""System to official rank."""


def figures_of(page: str) -> dict[str, list[str]]:
    """The figures above the leaderboard: value and meaning, or the reason why there is none."""
    (strip,) = pages.read(page).all("dl", class_="strip")
    return {
        one.all("dt")[0].text: [part.text.strip() for part in one.all("dd")]
        for one in strip.all("div")
    }


def test_figures_above_the_leaderboard_are_those_of_the_analyses(tmp_path: Path) -> None:
    path, official = tmp_path / "my.exam", tmp_path / "official.json"
    official.write_text(json.dumps(OFFICIAL))
    with exampp.create(path) as exam:
        exam.import_files(favoured.write(tmp_path / "g.jsonl", {3: 2}))
        grades = exam.grades()
        tested = grades.significance(["Cover@20"]).found[0]
        scores = grades.evaluate(["Cover@20"]).scores("Cover@20")
        labels = grades.agreement(at_least=(1,), layouts=("STRICT",), against="judgments")
        reliability = grades.reliability().studies[0].erho2
    # Kendall's tau-b: 28 pairs, of which some are tied by score and none by official rank
    pairs = [
        (round(scores[a] - scores[b], 9), OFFICIAL[b] - OFFICIAL[a])
        for a, b in itertools.combinations(OFFICIAL, 2)
    ]
    untied = [score * rank > 0 for score, rank in pairs if score]
    tau = (2 * sum(untied) - len(untied)) / math.sqrt(len(untied) * len(pairs))
    with live.visiting(path, official=official) as client:
        found = figures_of(complete(client))
        behind = text_of(client.get("/trust/official").text)
    assert {name: value for name, (value, _) in found.items()} == {
        "Significant differences": f"{tested.different} of 28 pairs",
        "Official order": f"{tau:.2f}",
        "Agreement with people": f"{labels.judged[0].estimates['kappa'].value:.2f}",
        "Reliability": f"{reliability.value:.2f}",
        "Favoured system": "favours s3",
        "Grades missing": "0%",
    }
    assert f"{tau:.2f}" in behind
    assert "--official FILE" in behind


def test_the_leaderboard_does_not_wait_for_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, find = threading.Event(), Grades.bias

    def wait_and_find(grades: Grades, depth: int = 20) -> GraderBias:
        assert seen.wait(SECONDS)
        return find(grades, depth)

    monkeypatch.setattr(Grades, "bias", wait_and_find)
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(favoured.write(tmp_path / "g.jsonl", {3: 5}))
    with live.visiting(tmp_path / "my.exam") as client:
        first = client.get("/")
        seen.set()
        assert first.status == 200
        assert "Leaderboard table" in first.text
        assert "favours s3" not in first.text
        assert "The grader favours s3 (+" in complete(client)


def test_a_figure_that_is_missing_has_its_reason(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.import_files(favoured.write(tmp_path / "g.jsonl", {3: 2}, judged=False))
    with live.visiting(tmp_path / "my.exam") as client:
        found = figures_of(complete(client))
    assert found["Official order"][0] == "\u2013"
    assert "Give one: exampp serve --official FILE" in found["Official order"][1]
    reason = "Agreement with judgments is undefined, because no passage has one."
    assert found["Agreement with people"] == ["\u2013", reason]
    reason = "Not checked: no graded passage has a human judgment."
    assert found["Favoured system"] == ["\u2013", reason]


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


def test_a_system_within_the_error_of_tied_systems_stays_on_the_axis() -> None:
    tied = [Spread(name, 0.786, 0.672, 0.9) for name in "abc"]
    low, high, _ = round_axis([*tied, Spread("d", 0.643, 0.51, 0.776)])
    assert low <= 0.51
    assert high >= 0.9


def test_one_system_alone_has_an_axis() -> None:
    for value in (0.0, 0.5, 1.0):
        low, high, ticks = round_axis([Spread("only", value)])
        assert 0 <= low <= value <= high <= 1
        assert low < high
        assert len(ticks) >= 2


# ---- test compare page --------------------------------------------------------------------------


def test_the_page_says_what_the_terminal_says(path: Path, client: Client) -> None:
    with exampp.Collection(path) as collection:
        found = collection.grades().compare("beta", "alpha", "Cover@20")
        items = found.on("q1").items
    page = client.get("/compare", a="beta", b="alpha", query="q1")
    assert page.status == 200
    said = text_of(page.text)
    assert found.means[0].mean is not None
    assert found.pair.difference.value is not None
    assert f"A beta {found.means[0].mean:.3f}" in said
    assert f"B minus A {found.pair.difference.value:+.3f}" in said
    assert f"p {found.pair.p:.4f}" in said
    won = found.queries_won
    assert won is not None
    assert " · ".join(map(str, won)) in said
    shown = [
        one.attributes["aria-label"]
        for one in pages.read(page.text).all("article")
        if "versus" in one.attributes["class"]
    ]
    assert shown == [item.text for item in items]


def test_two_ticks_lead_to_the_comparison_of_the_worse_with_the_better(client: Client) -> None:
    overview = pages.read(client.get("/").text)
    ticks = overview.all("input", type="checkbox", name="s")
    assert [one.attributes["value"] for one in ticks] == ["alpha", "beta"]
    assert {one.attributes["form"] for one in ticks} == {"pick"}
    answer = client.get("/compare?s=alpha&s=beta&min_rating=3&decisions=with&measure=Cover%4020")
    assert answer.status == 303
    assert answer.headers["location"] == "/compare?a=beta&b=alpha&min_rating=3"
    assert "Choose two here" in client.get("/compare?s=alpha").text
    # a name leads to its comparison with the best of the others
    names = [
        one.attributes["href"]
        for one in overview.all("a")
        if "/compare?" in one.attributes.get("href", "")
    ]
    assert len(names) == 2
    assert "compared with" in text_of(client.get(names[1]).text)


def test_compare_opens_with_the_best_two(client: Client) -> None:
    page = pages.read(client.get("/compare").text)
    assert "alpha compared with beta" in text_of(client.get("/compare").text)
    assert [
        one.fields() for one in page.all("form") if one.attributes.get("action") == "/compare"
    ] == [{"a": "beta", "b": "alpha"}]
    assert "beta compared with alpha" in text_of(client.get("/compare", a="alpha").text)


def test_what_cannot_be_compared_is_said(client: Client) -> None:
    assert "unknown system" in client.get("/compare", a="alpha", b="alhpa").text.lower()
    assert "compared with itself" in client.get("/compare", a="alpha", b="alpha").text
    assert client.get("/compare", a="alpha", b="beta", measure="Covr").status == 200
    assert client.get("/compare", a="alpha", b="beta", query="nowhere").status == 400


def test_a_decision_made_from_here_is_seen_at_once_and_leads_back(client: Client) -> None:
    address = "/compare?a=beta&b=alpha&query=q1"
    page = pages.read(client.get(address).text)
    judge = next(one for one in page.all("a") if one.attributes.get("data-judge") == "b")
    cell = pages.read(client.get(judge.attributes["href"]).text)
    form = next(
        one
        for one in cell.all("form")
        if one.attributes.get("action", "").startswith("/judge/decide")
    )
    back = form.fields()["next"]
    assert back.startswith("/compare?a=beta&b=alpha&query=q1")
    before = judge.attributes["aria-label"]
    grade = "0" if "Only B covers" in text_of(client.get(address).text) else "5"
    answer = client.post("/judge/decide", {**form.fields(), "rating": grade})
    assert (answer.status, answer.headers["location"]) == (303, back)
    after = pages.read(client.get(back.partition("#")[0]).text)
    changed = [
        one.text for one in after.all("b") if one.attributes.get("class", "").startswith("grade")
    ]
    assert changed != [
        one.text for one in page.all("b") if one.attributes.get("class", "").startswith("grade")
    ], before
    # an address of another server is not followed
    away = judge.attributes["href"].partition("&back=")[0] + "&back=//evil.example"
    assert "evil.example" not in client.get(away).text


def test_the_leaderboard_at_another_threshold_and_without_decisions(path: Path) -> None:
    live.decide_some(path)
    with exampp.Collection(path) as collection:
        strict = collection.grades().evaluate(["Cover@20"], min_rating=5).rows
        automatic = collection.grades(decisions="without").evaluate(["Cover@20"]).rows
    with live.visiting(path) as client:
        assert "with 2 decisions" in text_of(client.get("/").text)
        for address, rows in (("/?min_rating=5", strict), ("/?decisions=without", automatic)):
            page = text_of(client.get(address).text)
            for row in rows:
                bar = f"{row.system}: {row.mean:.3f} ± {row.stderr:.3f}, {row.queries} queries"
                assert re.search(rf"{row.system} (\S+ )?{bar} {row.mean:.3f}", page), (address, row)
        # off the scale is the nearest on it
        assert ">5</option>" in client.get("/?min_rating=77").text


def test_ties_are_those_of_the_significance_tests(demo_exam: Path) -> None:
    with exampp.Collection(demo_exam) as collection:
        (found,) = collection.grades().significance(["Cover@20"])
    with live.visiting(demo_exam) as client:
        page = wait_for(lambda: client.get("/").text, lambda page: "Ties" in page)
        assert page.count('class="tied"') == len(found.tied) > 1
        assert f"{len(found.tied)} of {len(found.systems)} systems are tied" in text_of(page)
        lower = len(found.systems) - len(found.tied)
        assert (
            f"{lower} of the other {len(found.systems) - 1} differ significantly from it." in page
        )
        # one band for each letter, with one square for each system
        letters = [one.letters or "" for one in found.systems]
        assert page.count('class="band on"') == sum(map(len, letters))


def test_a_leaderboard_with_missing_grades_is_partial_and_shows_no_open_place(
    demo_exam: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(demo_exam, tmp_path))
    words = ScriptedGrader(
        lambda ask: str(min(5, len({*ask.item.lower().split()} & {*ask.passage.lower().split()}))),
        name="half",
        record=False,
    )
    with exampp.Collection(path) as collection:
        for progress in collection.grading(words).steps():
            if progress.done > 500:
                break
        board = collection.grades("ScriptedGrader").evaluate(["Cover@20"])
    column = board.columns[0]
    bounds = dict(zip(board.column_systems, column.bounds(), strict=True))
    with live.visiting(path, grader="ScriptedGrader") as client:
        page = pages.read(client.get("/").text)
        pair = {"a": board.systems[0], "b": board.systems[1]}
        compared = text_of(client.get("/compare", **pair).text)
    assert "Possible with the missing grades" in compared
    assert "95% interval" not in compared
    assert re.search(r"\+\d+ \u2212\d+ \?\d+", compared), "items where a grade is missing"
    assert "better \u00b7 equal \u00b7 worse" not in compared
    said = " ".join(page.text.split())
    (panel,) = [one for one in page.all("section") if one.text.strip().startswith("Leaderboard")]
    folded = [one.text for details in panel.all("details") for one in details.all("p")]
    assert 1 <= len([one for one in panel.all("p", class_="note") if one.text not in folded]) <= 3
    assert "Leaderboard PARTIAL" in said
    assert "cells behind a score have no grade" in said
    assert "share a letter" not in said
    table = next(one for one in page.all("table") if "board" in one.attributes["class"])
    rows = [[" ".join(cell.text.split()) for cell in row.all("td")] for row in table.all("tr")[1:]]
    for system, cells in zip(board.systems, rows, strict=True):
        ends = bounds[system]
        assert ends is not None
        assert f"[{ends[0]:.3f}, {ends[1]:.3f}]" in cells
        assert cells[1] == "", "every interval overlaps another one"


def test_cover_with_skipped_cells_is_shown_beside_its_correction(tmp_path: Path) -> None:
    exam = LikelyExam(tmp_path / "my.exam", 5, queries=20)
    with exampp.Collection(exam.path) as collection:
        collection.grade(
            exam.grader(), name="likely", measures=["Cover@10"], depth=10, may_miss=0.15, audit=0.4
        )
        board = collection.grades().evaluate()
    with live.visiting(exam.path, grader="likely") as client:
        said = text_of(client.get("/").text)
    assert "chance below 0.15 to cover their item are skipped" in said
    assert "Tests and intervals are not known to hold: cells are skipped (--may-miss)." in said
    assert "share a letter" not in said
    assert "Testing which systems" not in said
    for one in board.columns[0].corrected:
        assert one.low is not None
        assert f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]" in said


def test_possible_ranks_are_those_of_all_missing_grades() -> None:
    yes = np.ones((3, 1), np.bool_)

    def ranks(*ends: tuple[float, float]) -> list[tuple[int, int]] | None:
        low, high = (masked(np.array([[one[at]] for one in ends]), yes) for at in (0, 1))
        column = MeasureColumn(
            parse_measure("Cover@20"), 4, ("q",), low, (None,) * 3, (None,) * 3, low, high
        )
        return column.possible_ranks()

    assert ranks((0.8, 0.9), (0.3, 0.5), (0.4, 0.6)) == [(1, 1), (2, 3), (2, 3)]
    assert ranks((0.5, 0.5), (0.5, 0.5), (0.1, 0.2)) == [(1, 2), (1, 2), (3, 3)]
    assert ranks((0.0, 1.0), (0.2, 0.2), (0.1, 0.1)) == [(1, 3), (1, 2), (2, 3)]


def test_equal_systems_share_a_place(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("5", record=False))
        board = collection.grades().evaluate(["Cover@20"])
    assert len({one.mean for one in board.columns[0].values.averages()}) == 1
    _, systems = ranked_systems(board, 0)
    assert [one.place for one in systems] == ["1"] * len(board.systems)


def test_a_complete_leaderboard_has_places_and_says_why_nothing_differs(tmp_path: Path) -> None:
    with live.visiting(live.graded(tmp_path)) as client:
        page = wait_for(
            lambda: text_of(client.get("/?by=2").text), lambda page: "Testing which" not in page
        )
    assert "PARTIAL" not in page
    assert " 1 alpha " in page
    assert "no pair can differ significantly" in page
