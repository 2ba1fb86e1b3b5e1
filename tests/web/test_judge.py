"""Deciding through the pages: what is kept, and what is hidden until then."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import exams, live, pages
from support.live import Client
from support.waiting import wait_for

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.web.live_collection import Choice, LiveCollection

Q1, Q2 = exams.QUERIES


def graded_by(folder: Path, rating: int) -> Path:
    """The small exam, every cell graded the same, with a telling reply and confidence."""

    def reply(ask: Request) -> str:
        return f"{rating} because the text {'says' if rating > 2 else 'never says'} so"

    folder.mkdir()
    with exams.make(folder) as collection:
        collection.grade(ScriptedGrader(reply, record=False))
        return collection.path


def first_item(path: Path, query: str = Q1) -> str:
    with exampp.Collection(path) as collection:
        return next(collection.grades().dossiers([query])).items[0].item_id


def form_of(client: Client, item: str, passage: str = "p1", **more: str) -> dict[str, str]:
    case = client.get("/judge/case", query=Q1, item=item, passage=passage, **more)
    assert case.status == 200, case.text
    (form,) = pages.read(case.text).by_id("stage").all("form")
    return form.fields()


def decisions(path: Path) -> list[tuple[str, str, int | None, str, bool]]:
    with exampp.Collection(path) as collection:
        return [
            (
                d.passage_id,
                d.decision.author,
                d.decision.rating,
                d.decision.reason,
                d.decision.blind,
            )
            for d in collection.decisions.list()
        ]


BLIND_PAGES = (
    "/judge?order=query&query=q1",
    "/judge?order=item&query=q1&item={item}",
    "/judge?order=cell&query=q1&item={item}&passage=p2",
    "/judge/case?query=q1&item={item}&passage=p1",
    "/query?id=q1",
    "/query?id=q1&order=rating",
    "/query/square?query=q1&item={item}&passage=p1",
    "/cell?query=q1&item={item}&passage=p1",
    "/cell?query=q1&item={item}&passage=p1&whole=1",
)


TIMES = re.compile(r"(datetime=|/fresh\?at=)[^ ]*|\d\d:\d\d:\d\d")


def shown(client: Client, item: str) -> list[str]:
    """The pages of one who decides blind, without the times of reading."""
    return [TIMES.sub("", client.get(one.format(item=item)).text) for one in BLIND_PAGES]


def test_blind_pages_are_the_same_whatever_the_grades(tmp_path: Path) -> None:
    """Byte for byte, times of reading aside: nothing of grade or reply is in them."""
    said = []
    for rating in (0, 5):
        path = graded_by(tmp_path / str(rating), rating)
        with live.visiting(path, blind=True) as client:
            item = first_item(path).replace("/", "%2F")
            said.append(shown(client, item))
            form = form_of(client, first_item(path))
            # what others decided is hidden as well
            with exampp.Collection(path) as collection:
                collection.grades().decisions.decide(
                    Q1, first_item(path), "p1", rating, author="bob", reason="clear"
                )
            said[-1] += shown(client, item)
            assert form_of(client, first_item(path)) == form
    assert said[0] == said[1]
    with live.visiting(path) as client:
        # in sight, grades are on all of them
        assert not set(said[1]) & set(shown(client, item))
    assert all("The grade is hidden" in one for one in said[0][:4])


def test_a_blind_decision_is_marked_and_no_decision_says_what_the_grader_said(
    client: Client, path: Path
) -> None:
    assert client.post("/judge/blind", {"blind": "1"}).status == 303
    item = first_item(path)
    client.headers["hx-request"] = "true"
    case = client.get("/judge/case", query=Q1, item=item, passage="p1").text
    form = pages.read(case).all("form")[0].fields()
    answer = client.post("/judge/decide", {**form, "rating": "3", "reason": " half of it "})
    assert answer.status == 200
    assert "1 of 50" in " ".join(pages.read(answer.text).text.split())
    assert "rader" not in answer.text
    # the second time the grade is known: asking for a blind decision does not make one, and nobody
    # decides in another's name
    client.post("/judge/decide", {**form, "rating": "4", "author": "bob", "assessor": "bob"})
    assert decisions(path) == [
        ("p1", "ada", 3, "half of it", True),
        ("p1", "ada", 4, "", False),
    ]


def test_without_its_script_the_page_leads_from_cell_to_cell(client: Client, path: Path) -> None:
    address, seen = "/judge?order=query&query=q1", []
    while True:
        page = pages.read(client.get(address).text)
        if "Nothing left to decide" in page.text:
            break
        form = page.by_id("stage").all("form")[0].fields()
        seen.append(form["cell"])
        address = client.post("/judge/decide", {**form, "rating": "2"}).headers["location"]
    assert len(seen) == len(set(seen)) == 6
    assert len(decisions(path)) == 6


def test_a_decision_about_a_text_that_changed_meanwhile_does_not_move_to_the_new_one(
    client: Client, path: Path
) -> None:
    item = first_item(path)
    form = form_of(client, item)
    with exampp.Collection(path) as collection:
        collection.bank().edit("reword", item, "What does water scatter?", query_id=Q1)
    assert client.post("/judge/decide", {**form, "rating": "5"}).status == 303
    with exampp.Collection(path) as collection:
        (made,) = collection.decisions.list()
        dossier = next(collection.grades().dossiers([Q1]))
    assert not made.is_current
    assert not dossier.decisions


def test_people_differ_until_somebody_adjudicates(path: Path) -> None:
    item = first_item(path)
    with live.serving(path, ("ann", "bob", "cas")) as served:
        ann, bob, cas = (Client(served).enter(name) for name in ("ann", "bob", "cas"))
        for who, rating, reason in ((ann, "1", "too vague"), (bob, "5", "it is there")):
            who.post("/judge/decide", {**form_of(who, item), "rating": rating, "reason": reason})
        page = pages.read(cas.get("/disputes").text)
        (dispute,) = page.all("article")
        assert all(text in dispute.text for text in ("ann", "too vague", "bob", "it is there"))
        assert "Adjudicate" in cas.get("/judge?order=disputes").text
        form = dispute.all("form")[0].fields()
        answer = cas.post("/judge/decide", {**form, "rating": "4", "reason": "mostly"})
        assert answer.headers["location"] == "/disputes"
        assert not pages.read(cas.get("/disputes").text).all("article")
    with exampp.Collection(path) as collection:
        assert collection.decisions.list()[-1].decision.adjudicates
        dossier = next(collection.grades().dossiers([Q1]))
        assert dossier.grades.ratings[dossier.grades.passage_ids.index("p1"), 0] == 4


def test_a_decision_does_not_read_the_graders_again(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grading run commits all the time, and each time they would be read."""
    form, read = form_of(client, first_item(path)), []
    shown = re.findall(r'data-choice="([^"]+)"', client.get("/judge").text)
    graders = LiveCollection._read_choices

    def reading(room: LiveCollection) -> list[Choice]:
        read.append(room)
        return graders(room)

    monkeypatch.setattr(LiveCollection, "_state_of_choices", property(lambda _: object()))
    monkeypatch.setattr(LiveCollection, "_read_choices", reading)
    client.headers |= {"x-choice": shown[0], "hx-request": "true"}
    assert client.post("/judge/decide", {**form, "rating": "3"}).status == 200
    assert not read
    client.headers.clear()
    assert client.get("/queries").status == 200
    assert read, "pages do"


def test_five_people_at_once_lose_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their decisions go through one connection: opening it takes longer than a decision."""
    opened, open_collection = [], LiveCollection.open

    def opening(room: LiveCollection) -> exampp.Collection:
        opened.append(threading.current_thread().name)
        return open_collection(room)

    monkeypatch.setattr(LiveCollection, "open", opening)
    names = ("ann", "bob", "cas", "dan", "eve")
    with exampp.Collection(path) as collection:
        dossier = next(collection.grades().dossiers([Q1]))
    cells = [(item.item_id, passage) for item in dossier.items for passage in ("p1", "p2", "p4")]
    wanted = [(name, *cell, n % 6) for name in names for n, cell in enumerate(cells)]
    with live.serving(path, names) as served:

        def work(name: str) -> list[int]:
            client = Client(served).enter(name)
            mine = [one[1:] for one in wanted if one[0] == name]
            forms = {cell: form_of(client, *cell) for cell in cells}
            return [
                client.post("/judge/decide", {**forms[item, passage], "rating": str(rating)}).status
                for item, passage, rating in mine
            ]

        with ThreadPoolExecutor(len(names)) as people:
            statuses = [status for found in people.map(work, names) for status in found]
    assert set(statuses) == {303}
    with exampp.Collection(path) as collection:
        made = [
            (one.decision.author, one.item_id, one.passage_id, one.decision.rating)
            for one in collection.decisions.list()
        ]
    # each person's decisions in the order in which they were made
    assert sorted(made, key=lambda one: names.index(one[0])) == wanted
    assert sum(thread.startswith("exampp-decisions") for thread in opened) == 1


def test_the_agreement_at_the_end_of_a_session(client: Client, path: Path) -> None:
    """Two of three decisions as the grader said: by hand, there and on the page of all."""
    with exampp.Collection(path) as collection:
        # what was decided before the session is not of it
        collection.grades().decisions.decide(Q1, first_item(path), "p1", 2, author="ada")
    assert "0 of 50" in " ".join(pages.read(client.get("/judge").text).text.split())
    assert "No decisions in this session yet" in client.get("/judge/end").text
    with exampp.Collection(path) as collection:
        dossier = next(collection.grades().dossiers([Q1]))
        item = dossier.items[0].item_id
        for n, passage in enumerate(("p1", "p2", "p4")):
            row = dossier.grades.passage_ids.index(passage)
            grade = dossier.automatic[(row, 0)].rating
            assert grade is not None
            said = grade if n else (grade + 3) % 6
            collection.grades().decisions.decide(Q1, item, passage, said, author="ada")
    panel = pages.read(client.get("/judge/end").text)
    assert "3 cells decided in this session" in panel.text
    figures = [one.text.strip() for one in panel.all("dd")]
    assert figures[1] == "3"
    assert figures[2].startswith("67")
    assert sum(int(td.text) for td in panel.all("td") if td.text.strip().isdigit()) == 3
    page = pages.read(client.get("/agreement").text)
    assert "ada" in page.by_id("main").text
    assert "everyone" in page.by_id("main").text


def test_a_walk_through_a_query_that_is_not_there(client: Client) -> None:
    for address in ("/judge?order=query&query=none", "/query?id=none", "/bank?query=none"):
        answer = client.get(address)
        assert answer.status in (400, 404)
        assert "none" in answer.text
    assert client.get("/query").status == 400


def waiting(client: Client) -> dict[str, list[str]]:
    """The rows of the queue by the address of their cell."""
    main = pages.read(client.get("/queue").text).by_id("main")
    rows = [tr for tr in main.all("tr") if tr.all("th", scope="row")]
    return {
        tr.all("a")[0].attributes["href"]: [td.text.strip() for td in tr.all("td")] for tr in rows
    }


def test_what_was_taken_back_waits_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exampp.web.live_collection.POLL_SECONDS", 0.02)
    monkeypatch.setattr("exampp.web.live_collection.REST", 0.0)
    with live.visiting(path) as client:
        before = waiting(client)
        with exampp.Collection(path) as collection:
            cell = collection.grades().decisions.queue()[0].cell
            made = collection.grades().decisions.decide(*cell, 5, author="ada")
            assert len(waiting(client)) == len(before) - 1
            collection.decisions.undo(made.number, author="ada")
        wait_for(lambda: waiting(client).keys() == before.keys())
        assert waiting(client).keys() == before.keys()


def test_who_decides_blind_is_told_where_grades_are_in_sight(path: Path) -> None:
    live.decide_some(path)
    for blind in (False, True):
        with live.visiting(path, blind=blind) as client:
            for page in ("/lists/verify", "/history", "/disputes"):
                assert ("no longer blind" in client.get(page).text) == blind
            assert "no longer blind" not in client.get("/history?what=edits").text
            heads = pages.read(client.get("/query?id=q1").text).by_id("heat")
            relevance = [tr.all("td")[0].text for tr in heads.all("tr") if tr.all("td")]
            assert any(relevance) != blind
            assert ("order=judgment" in client.get("/query?id=q1").text) != blind


def test_what_needs_scripts_is_marked_as_such(client: Client) -> None:
    # the style hides what is marked where scripts are off
    page = pages.read(client.get("/judge").text)
    marked = [one for one in page.walk() if "with-script" in one.attributes.get("class", "")]
    within = [button for one in marked for button in one.all("button")]
    acting = page.all("button", type="button")
    assert acting
    assert all(button in (*marked, *within) for button in acting)


def test_without_a_share_people_start_with_cells_of_their_own(path: Path) -> None:
    with live.serving(path, ("ann", "bob"), shared=0.0) as served:
        walks = []
        for name in ("ann", "bob"):
            walk = pages.read(Client(served).enter(name).get("/judge").text).by_id("next-cells")
            walks.append([a.attributes["href"] for a in walk.all("a")])
    # those of the other follow
    assert sorted(walks[0]) == sorted(walks[1])
    assert walks[0][0] != walks[1][0]


def test_a_share_of_the_cells_is_given_to_everybody_blind(path: Path) -> None:
    with live.serving(path, ("ann", "bob"), shared=1.0) as served:
        ann, bob = (Client(served).enter(name) for name in ("ann", "bob"))

        def first(who: Client) -> pages.Element:
            return pages.read(who.get("/judge").text).by_id("stage")

        form = first(ann).all("form")[0].fields()
        assert form["hidden"] == "1"
        assert "every assessor decides it blind" in first(ann).text
        assert "rader" not in first(bob).text
        ann.post("/judge/decide", {**form, "rating": "1"})
        # bob owes it now before all else; ann has it behind her
        again = first(bob).all("form")[0].fields()
        assert again["cell"] == form["cell"]
        assert first(ann).all("form")[0].fields()["cell"] != form["cell"]
        bob.post("/judge/decide", {**again, "rating": "5"})
        assert first(bob).all("form")[0].fields()["cell"] != form["cell"]
    assert [(who, rating, blind) for _, who, rating, _, blind in decisions(path)] == [
        ("ann", 1, True),
        ("bob", 5, True),
    ]


def test_disputes_across_the_threshold_come_first(path: Path) -> None:
    with exampp.Collection(path) as collection:
        grades = collection.grades()
        item = first_item(path)
        for passage, ratings in (("p1", (1, 2)), ("p2", (1, 5)), ("p4", (4, 5))):
            for author, rating in zip(("ann", "bob"), ratings, strict=True):
                grades.decisions.decide(Q1, item, passage, rating, author=author)
    with live.serving(path, ("ann", "cas")) as served:
        ann, cas = (Client(served).enter(name) for name in ("ann", "cas"))
        shown = pages.read(cas.get("/disputes").text)
        assert [one.text.strip() for one in shown.all("bdi", class_="id")] == ["p2", "p1", "p4"]
        walk = pages.read(cas.get("/judge?order=disputes").text)
        assert "passage=p2" in walk.by_id("next-cells").all("a")[0].attributes["href"]
        assert "crosses the threshold" in walk.by_id("stage").text
        # who may settle is said, and who is one of those who differ
        assert "even their own dispute" in walk.text
        assert "you are involved" not in walk.text
        assert "you are involved" in ann.get("/judge?order=disputes").text


def test_guidelines_are_a_key_away_and_nothing_but_text(path: Path, tmp_path: Path) -> None:
    written = tmp_path / "how.md"
    written.write_text("# Judging\n\nBe **kind** <script>x</script> ![](http://a.b/c.png)")
    with live.visiting(path, guidelines=written) as client:
        page = pages.read(client.get("/judge").text)
        told = page.by_id("guidelines")
        assert [one.text for one in told.all("strong")] == ["kind"]
        assert not told.all("script")
        assert not told.all("img")
        assert "<script>x</script>" in told.text
        # without scripts they are a page, and what is written later is read anew
        written.write_text("- later")
        assert "later" in client.get("/judge/guidelines").text
        written.unlink()
        assert "cannot be read" in client.get("/judge/guidelines").text
    with live.visiting(path) as client:
        assert "--guidelines" in client.get("/judge/guidelines").text
    (tmp_path / "odd.md").write_bytes(b"\xff\xfe")
    with (
        pytest.raises(exampp.InputError, match="UTF-8"),
        live.serving(path, guidelines=tmp_path / "odd.md"),
    ):
        pass


def test_a_decision_is_taken_back_without_scripts_and_its_cell_comes_again(
    client: Client, path: Path
) -> None:
    before = pages.read(client.get("/judge?order=query&query=q1").text)
    form = before.by_id("stage").all("form")[0].fields()
    client.post("/judge/decide", {**form, "rating": "3"})
    undo = pages.read(client.get("/judge?order=query&query=q1").text).by_id("undo")
    answer = client.post("/judge/undo", undo.fields())
    again = pages.read(client.get(answer.headers["location"]).text).by_id("stage")
    assert again.all("form")[0].fields()["cell"] == form["cell"]
    assert [one[2] for one in decisions(path)] == [3, None]
