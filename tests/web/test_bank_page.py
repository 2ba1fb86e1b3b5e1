"""Editing a bank through its page: what is saved, what is refused, what it says beforehand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import exams, live, pages
from support.live import Client

import exampp
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.items import Item
from exampp.store.bank import ItemState
from exampp.web.pages.bank import FormLine, changes_in, merge_form, same_text

Q1 = next(iter(exams.QUERIES))


def form(client: Client) -> dict[str, str]:
    return pages.read(client.get("/bank", query=Q1).text).by_id("bank").fields()


def keys(fields: dict[str, str]) -> list[str]:
    return [name.removeprefix("seen-") for name in fields if name.startswith("seen-")]


def items(path: Path) -> list[tuple[str, float]]:
    with exampp.Collection(path) as collection:
        found: tuple[Item, ...] = next(collection.grades().dossiers([Q1])).items
    return [(one.text, one.weight) for one in found]


def test_a_form_saves_exactly_what_was_typed(client: Client, path: Path) -> None:
    fields = form(client)
    first, second = keys(fields)
    changed = {
        **fields,
        f"text-{first}": "What is scattered by air?",
        f"weight-{second}": "2.5",
        "new-text": "How far\r\ndoes light go?",
        "new-weight": "0.5",
        "reason": "clearer",
    }
    answer = client.post("/bank/edit", changed, query=Q1)
    assert (answer.status, answer.headers["location"]) == (303, "/bank?query=q1&saved=3")
    assert items(path) == [
        ("What is scattered by air?", 1.0),
        (exams.QUESTIONS[Q1][1], 2.5),
        ("How far\r\ndoes light go?", 0.5),
    ]
    with exampp.Collection(path) as collection:
        log = collection.bank().log(Q1, last=3)
    names = [column.name for column in log.columns]
    assert {row[names.index("author")] for row in log.rows} == {"ada"}
    assert {row[names.index("reason")] for row in log.rows} == {"clearer"}
    assert "Saved 3 edits" in client.get("/bank", query=Q1, saved="3").text


def test_retired_items_stay_on_the_page_and_come_back(client: Client, path: Path) -> None:
    first, _ = keys(form(client))
    client.post("/bank/edit", {**form(client), f"retired-{first}": "1"}, query=Q1)
    assert [text for text, _ in items(path)] == exams.QUESTIONS[Q1][1:]
    retired = form(client)
    assert retired[f"retired-{first}"] == "1"
    del retired[f"retired-{first}"]
    client.post("/bank/edit", retired, query=Q1)
    assert [text for text, _ in items(path)] == exams.QUESTIONS[Q1]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("weight", "-1e10", "is not between -1e+09 and"),
        ("weight", "nan", "is not a finite number"),
        ("weight", "inf", "is not a finite number"),
        ("weight", "heavy", "is not a finite number"),
        ("text", "  ", "Retire the item"),
    ],
)
def test_what_makes_no_sense_is_refused_and_kept_on_the_page(
    client: Client, path: Path, field: str, value: str, said: str
) -> None:
    before = items(path)
    fields = form(client)
    first, second = keys(fields)
    changed = {
        **fields,
        f"{field}-{first}": value,
        f"text-{second}": "kept as typed?",
        "reason": '"so"',
    }
    answer = client.post("/bank/edit", changed, query=Q1)
    assert answer.status == 400
    again = pages.read(answer.text).by_id("bank").fields()
    assert (again[f"{field}-{first}"], again[f"text-{second}"]) == (value, "kept as typed?")
    assert again["reason"] == '"so"'
    assert said in answer.text
    assert items(path) == before


def test_a_duplicate_is_refused_with_nothing_saved(client: Client, path: Path) -> None:
    before = items(path)
    fields = form(client)
    first, _ = keys(fields)
    changed = {**fields, f"weight-{first}": "3", "new-text": exams.QUESTIONS[Q1][1]}
    answer = client.post("/bank/edit", changed, query=Q1)
    assert answer.status == 400
    assert "already has that question" in answer.text
    assert pages.read(answer.text).text.count(exams.QUESTIONS[Q1][1]) >= 2
    assert items(path) == before


def test_the_second_of_two_people_sees_both_texts(path: Path) -> None:
    with live.serving(path, ("ann", "bob")) as served:
        ann, bob = (Client(served).enter(name) for name in ("ann", "bob"))
        mine, other = form(ann), form(bob)
        first, second = keys(mine)
        ann.post("/bank/edit", {**mine, f"text-{first}": "By Ann?"}, query=Q1)
        changed = {**other, f"text-{first}": "By Bob?", f"weight-{second}": "7", "reason": "core"}
        clash = bob.post("/bank/edit", changed, query=Q1)
        assert clash.status == 409
        page = pages.read(clash.text)
        kept = page.by_id("bank").fields()
        assert (kept[f"text-{first}"], kept[f"weight-{second}"]) == ("By Bob?", "7")
        assert kept["reason"] == "core"
        (theirs,) = page.all("div", class_="theirs")
        assert "By Ann?" in theirs.text
        assert items(path)[0][0] == "By Ann?"
        # an edit of the other item alone does not clash
        assert bob.post("/bank/edit", {**other, f"weight-{second}": "7"}, query=Q1).status == 303
        # saving again lets his text stand, knowing hers
        assert bob.post("/bank/edit", kept, query=Q1).status == 303
        assert items(path)[0][0] == "By Bob?"


Moves = dict[str, tuple[float, float]]
"""Mean Cover@20 of each system, before and after."""


def announced(client: Client, fields: dict[str, str]) -> Moves:
    """Return the impact that the page shows before saving."""
    part = pages.read(client.post("/impact", fields, query=Q1).text)
    regions = [one for one in part.walk() if "moves in Cover@20" in str(one.attributes)]
    return {
        row.all("th")[0].text: (float(row.all("td")[0].text), float(row.all("td")[1].text))
        for region in regions
        for row in region.all("tr")[1:]
    }


def leaderboard(path: Path) -> dict[str, float | None]:
    with exampp.Collection(path) as collection:
        board = evaluate_gradebook(collection.grades().gradebook, ["Cover@20"])
    means = [mean.mean for mean in board.columns[0].values.means()]
    return dict(zip(board.systems, means, strict=True))


def test_the_impact_is_what_saving_does(client: Client, path: Path) -> None:
    """Twice in a row: the second time from what the first edit left, whatever was cached."""
    for retired, weight in ((True, "3"), (False, "0.5")):
        fields = form(client)
        first, second = keys(fields)
        changed = {**fields, f"weight-{second}": weight, f"retired-{first}": "1" if retired else ""}
        said, before = announced(client, changed), leaderboard(path)
        assert said, "no system moves: the test would show nothing"
        assert client.post("/bank/edit", changed, query=Q1).status == 303
        after = leaderboard(path)
        for system, moved in said.items():
            assert moved == pytest.approx((before[system], after[system]), abs=5e-5)


def test_findings_follow_what_is_typed(client: Client) -> None:
    fields = form(client)
    first, second = keys(fields)
    same = {**fields, f"text-{second}": fields[f"text-{first}"]}
    page = pages.read(client.post("/impact", same, query=Q1).text)
    assert "duplicate" in page.by_id(f"findings-{second}").text
    assert "as item 1" in page.by_id(f"findings-{second}").text
    gone = pages.read(client.post("/impact", {**same, f"retired-{first}": "1"}, query=Q1).text)
    assert gone.by_id(f"findings-{second}").text.strip() == ""


def test_items_that_people_marked_as_different_are_no_duplicates(
    client: Client, path: Path
) -> None:
    fields = form(client)
    first, second = keys(fields)
    same = {**fields, f"text-{second}": fields[f"text-{first}"]}
    page = pages.read(client.post("/impact", same, query=Q1).text)
    assert "duplicate" in page.by_id(f"findings-{second}").text
    with exampp.Collection(path) as collection:
        one, other = (item.item_id for item in collection.bank().items(Q1))
        collection.bank().edit("different", one, other)
    page = pages.read(client.post("/impact", same, query=Q1).text)
    assert "duplicate" not in page.by_id(f"findings-{second}").text


def test_a_dismissed_finding_stays_dismissed_and_typed_texts_stay_in_the_form(
    client: Client, path: Path
) -> None:
    with exampp.Collection(path) as collection:
        collection.bank().add(Q1, "Are there any clouds today?")
    fields = form(client)
    *_, key = keys(fields)
    changed = {**fields, f"weight-{key}": "2", "new-text": "Why?", "dismiss": f"{key}:yes-no"}
    answer = client.post("/bank/dismiss", changed, query=Q1)
    page = pages.read(answer.text)
    assert answer.status == 200
    findings = page.by_id(f"findings-{key}").text
    assert ("yes-no" in findings, "time-dependent" in findings) == (False, True)
    again = page.by_id("bank").fields()
    assert (again[f"weight-{key}"], ">\nWhy?" in answer.text) == ("2", True)
    assert client.post("/bank/edit", again, query=Q1).status == 303
    page = pages.read(client.get("/bank", query=Q1).text)
    assert "yes-no" not in page.by_id(f"findings-{key}").text
    with exampp.Collection(path) as collection:
        bank = collection.bank()
        assert [one.rule for one in bank.lint().findings] == ["time-dependent"]
        reworded = {**page.by_id("bank").fields(), f"text-{key}": "Are there any atolls today?"}
        assert client.post("/bank/edit", reworded, query=Q1).status == 303
        assert {one.rule for one in bank.lint().findings} == {"yes-no", "time-dependent"}


def test_a_dismissal_of_something_unknown_is_refused(client: Client) -> None:
    fields = form(client)
    key = keys(fields)[0]
    for named, said in ((f"{key}:nonsense", "nonsense"), ("99999:yes-no", "not in the bank")):
        answer = client.post("/bank/dismiss", {**fields, "dismiss": named}, query=Q1)
        assert (answer.status, said in answer.text) == (400, True)


def test_the_page_shows_the_findings_of_python_in_their_order(client: Client, path: Path) -> None:
    with exampp.Collection(path) as collection:
        bank = collection.bank()
        bank.add(Q1, "Are there any clouds today?")
        rules = [one.rule for one in bank.lint().findings if one.query_id == Q1]
    *_, key = keys(form(client))
    text = pages.read(client.get("/bank", query=Q1).text).by_id(f"findings-{key}").text
    assert len(rules) == 2
    assert text.index(rules[0]) < text.index(rules[1])


def state(key: int, text: str, **more: Any) -> ItemState:
    return ItemState("q", f"i{key}", text, key=key, edit=key * 10, **more)


STATES = [state(1, "one?"), state(2, "two?\nlines\0", active=False), state(3, "three?", weight=2.0)]


def sent(**fields: str) -> dict[str, list[str]]:
    """The form of `STATES` as a browser sends it, with some fields changed."""
    whole = {"seen-1": "10", "text-1": "one?", "weight-1": "1"}
    whole |= {"seen-2": "20", "text-2": "two?\r\nlines\ufffd", "weight-2": "1", "retired-2": "1"}
    whole |= {"seen-3": "30", "text-3": "three?", "weight-3": "2"}
    whole |= {name.replace("_", "-"): value for name, value in fields.items()}
    return {name: [value] for name, value in whole.items()}


def seen_as(now: ItemState, number: int) -> ItemState:
    """The items of `STATES` before their last edits."""
    return replace(now, text=f"was {now.text}", edit=number)


def lines_of(fields: dict[str, list[str]]) -> list[FormLine]:
    return merge_form(STATES, fields, seen_as)


def becoming(fields: dict[str, list[str]]) -> dict[str, tuple[str | None, float, bool]]:
    """The items that a form changes as they become: text, weight, whether they are active."""
    states = [one.after for one in changes_in(lines_of(fields), "q", "question")]
    return {one.item_id: (one.text, one.weight, one.active) for one in states if one}


def test_an_untouched_form_makes_no_edits() -> None:
    assert becoming(sent()) == {}
    assert becoming({}) == {}


def test_what_each_item_becomes() -> None:
    found = becoming(sent(text_1="uno?", weight_3="0", retired_3="1", retired_2=""))
    assert found == {
        "i1": ("uno?", 1.0, True),
        "i2": ("two?\nlines\0", 1.0, True),
        "i3": ("three?", 0.0, False),
    }


def test_an_item_that_came_later_is_left_alone() -> None:
    fields = {name: value for name, value in sent().items() if not name.endswith("-3")}
    assert becoming({**fields, "text-1": ["uno?"]}) == {"i1": ("uno?", 1.0, True)}


def test_only_touched_items_clash() -> None:
    """The first item is as its form was made, before somebody reworded it; the third is not."""
    stale = sent(seen_1="9", text_1="was one?", seen_3="29", text_3="drei?")
    lines = lines_of(stale)
    assert [line.key for line in lines if line.is_conflict] == [3]
    assert (lines[0].text, lines[2].text) == ("one?", "drei?")
    stale = sent(seen_1="9", text_1="was one?", weight_1="4")
    assert becoming(stale) == {"i1": ("one?", 4.0, True)}
    (change,) = changes_in(lines_of(stale), "q", "question")
    assert change.before is not None
    assert change.before.edit == 9
    assert [line.key for line in lines_of(stale) if line.is_conflict] == [1]


def test_an_item_without_a_text_may_stay_so() -> None:
    states = [state(1, ""), state(2, "two?", weight=0.123456789)]
    fields = {"seen-1": ["10"], "text-1": [""], "weight-1": ["1"]}
    fields |= {"seen-2": ["20"], "text-2": ["two?"], "weight-2": ["0.123456789"]}
    lines = merge_form(states, fields, seen_as)
    assert [line.fault for line in lines] == ["", ""]
    assert not any(line.changes for line in lines)


@pytest.mark.parametrize(
    ("came_back", "text", "same"),
    [("a\r\nb", "a\nb", True), ("a\nb", "a\rb", True), ("a b", "a\nb", False), ("a ", "a", False)],
)
def test_line_breaks_do_not_change_a_text(came_back: str, text: str, same: bool) -> None:
    assert same_text(came_back, text) is same


@pytest.mark.parametrize("seen", ["9" * 5000, "9" * 30, "-1", "\u0663", "\u00b2", ""])
def test_a_form_that_no_page_made_edits_nothing(client: Client, path: Path, seen: str) -> None:
    before, fields = items(path), form(client)
    first, _ = keys(fields)
    fields |= {f"text-{first}": "Is that so at all?", f"seen-{first}": seen}
    assert client.post("/impact", fields, query=Q1).status == 200
    client.post("/bank/edit", fields, query=Q1)
    assert items(path) == before


def test_without_a_query_one_chooses_it(client: Client) -> None:
    assert client.get("/bank").headers["location"] == "/queries"
