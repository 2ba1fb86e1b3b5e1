"""Two people at one bank, and taking an edit back."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.items.edits import change_item, changes_of, find_item
from exampp.records import item_id
from exampp.results.result import Table
from exampp.store.bank import ItemChange, ItemState

SKY, SUNSET, MAGNET = "What does air scatter?", "Why are sunsets red?", "What makes a magnet?"
NEW, OTHER = "Which colour does air scatter most?", "What scatters blue light?"
SKY_ID, SUNSET_ID, MAGNET_ID = item_id("q1", SKY), item_id("q1", SUNSET), item_id("q2", MAGNET)


def rows(table: Table) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def newest(collection: exampp.Collection) -> int:
    """The number of the bank's last edit, as a page that was just loaded has it."""
    return int(rows(collection.bank().log())[-1]["edit"])


def state_of(collection: exampp.Collection, item: str) -> tuple[Any, ...]:
    (row,) = [row for row in rows(collection.bank().show()) if row["item"] == item]
    return row["text"], row["weight"], row["key"], row["status"]


def test_the_second_of_two_people_gets_both_states(collection: exampp.Collection) -> None:
    seen = newest(collection)
    collection.bank().edit("reword", SKY_ID, NEW, author="ann", seen=seen)
    before = exams.tables(collection.path)
    with pytest.raises(exampp.EditConflict) as caught:
        collection.bank().edit("reword", SKY_ID, OTHER, author="bob", seen=seen)
    conflict = caught.value
    assert (conflict.theirs.text, conflict.yours.text) == (NEW, OTHER)
    assert (conflict.author, conflict.number) == ("ann", newest(collection))
    assert f"reword by ann at {conflict.when} (edit {conflict.number})" in str(conflict)
    assert exams.tables(collection.path) == before
    # having seen it, bob decides that his is to stand
    collection.bank().edit("reword", SKY_ID, OTHER, author="bob", seen=conflict.number)
    assert state_of(collection, SKY_ID)[0] == OTHER


def test_what_another_did_to_the_item_stays_out_of_yours(collection: exampp.Collection) -> None:
    """ann gives it weight 2; bob, who saw weight 1, rewords it: his state has weight 1."""
    seen = newest(collection)
    collection.bank().edit("weight", SKY_ID, "2", author="ann")
    with pytest.raises(exampp.EditConflict) as caught:
        collection.bank().edit("reword", SKY_ID, NEW, author="bob", seen=seen)
    theirs, yours = caught.value.theirs, caught.value.yours
    assert (theirs.text, theirs.weight) == (SKY, 2)
    assert (yours.text, yours.weight) == (NEW, 1)


def test_edits_of_other_items_are_no_conflict(collection: exampp.Collection) -> None:
    seen = newest(collection)
    collection.bank().edit("weight", SUNSET_ID, "2")
    collection.bank().edit("reword", SKY_ID, NEW, seen=seen)
    collection.bank().add("q2", "Where do compasses point?", seen=seen)
    with pytest.raises(exampp.EditConflict) as caught:
        collection.bank().add("q1", "How far does light go?", seen=seen)
    assert caught.value.theirs.text == NEW
    assert caught.value.yours.text == "How far does light go?"


def test_of_people_who_saw_the_same_exactly_one_edits(tmp_path: Path) -> None:
    """Eight connections at once: nobody's edit is lost under another's."""
    with exams.make(tmp_path) as collection:
        seen, path = newest(collection), collection.path
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def edit(number: int) -> None:
        with exampp.Collection(path) as own:
            start.wait()
            try:
                own.bank().edit("reword", SKY_ID, f"Wording {number}?", seen=seen)
                outcomes.append(f"Wording {number}?")
            except exampp.EditConflict as conflict:
                outcomes.append(f"conflict with {conflict.theirs.text}")

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (won,) = [outcome for outcome in outcomes if not outcome.startswith("conflict")]
    assert sorted(outcomes) == sorted([won, *[f"conflict with {won}"] * 7])
    with exampp.Collection(path) as collection:
        assert state_of(collection, SKY_ID)[0] == won
        assert len(rows(collection.bank().log(item=SKY_ID))) == 2


@pytest.mark.parametrize(
    ("edit", "undone"),
    [
        (("reword", SKY_ID, NEW), "reword"),
        (("weight", SKY_ID, "3"), "weight"),
        (("key", SKY_ID, "blue", "blue light"), "key"),
        (("retire", SKY_ID), "restore"),
    ],
)
def test_undo_and_undo_of_undo(
    collection: exampp.Collection, edit: tuple[str, ...], undone: str
) -> None:
    before = state_of(collection, SKY_ID)
    collection.bank().edit(*edit)
    after, number = state_of(collection, SKY_ID), newest(collection)
    (row,) = rows(collection.bank().undo(number, author="ann", reason="no"))
    assert (row["item"], row["change"]) == (SKY_ID, undone)
    assert state_of(collection, SKY_ID) == before
    last = rows(collection.bank().log())[-1]
    assert (last["operation"], last["author"], last["reason"]) == ("undo", "ann", "no")
    collection.bank().undo(number + 1)
    assert state_of(collection, SKY_ID) == after


def test_a_mark_of_two_items_is_taken_back_by_the_opposite_mark(
    collection: exampp.Collection,
) -> None:
    bank = collection.bank()
    one, other = (state.item_id for state in bank.items("q1")[:2])
    bank.edit("same", one, other)
    with pytest.raises(exampp.InputError, match=r"cannot be undone.*different ITEM OTHER"):
        bank.undo(int(str(bank.log().rows[-1][0])))
    bank.edit("different", one, other)
    with pytest.raises(exampp.InputError, match=r"cannot be undone.*same ITEM OTHER"):
        bank.undo(int(str(bank.log().rows[-1][0])))


def test_undoing_an_addition_retires_the_item(collection: exampp.Collection) -> None:
    collection.bank().add("q2", "Where do compasses point?")
    added = newest(collection)
    collection.bank().undo(added)
    assert rows(collection.bank().show("q2"))[-1]["status"] == "retired"
    collection.bank().undo(added + 1)
    assert rows(collection.bank().show("q2"))[-1]["status"] == "active"


def test_only_the_newest_edit_of_an_item_can_be_undone(collection: exampp.Collection) -> None:
    collection.bank().edit("reword", SKY_ID, NEW, author="ann")
    number = newest(collection)
    collection.bank().edit("weight", SKY_ID, "2", author="bob")
    collection.bank().edit("weight", SUNSET_ID, "2")
    before = exams.tables(collection.path)
    with pytest.raises(exampp.EditConflict, match="weight by bob") as caught:
        collection.bank().undo(number)
    assert (caught.value.theirs.text, caught.value.theirs.weight) == (NEW, 2)
    assert (caught.value.yours.text, caught.value.yours.weight) == (SKY, 1)
    assert exams.tables(collection.path) == before
    collection.bank().undo(number + 1)
    assert state_of(collection, SKY_ID)[:2] == (NEW, 1)
    collection.bank().edit("reword", SKY_ID, OTHER)


def test_no_such_edit(collection: exampp.Collection) -> None:
    collection.bank("second").add("q1", "x?")
    for number in (0, 99, newest(collection) + 1):  # the last one is an edit of the other bank
        with pytest.raises(exampp.InputError, match=f"has no edit {number}"):
            collection.bank().undo(number)


def test_the_command(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        collection.bank().edit("reword", SKY_ID, NEW)
        number, path = newest(collection), collection.path
    ran = exampp_command("bank", "revert", str(path), "--edit", str(number))
    assert ran.code == 0
    assert SKY in ran.out
    ran = exampp_command("bank", "revert", str(path), "--edit", str(number))
    assert ran.code == 2
    assert "was edited meanwhile: undo by" in ran.err


def test_several_edits_are_saved_together_or_not_at_all(collection: exampp.Collection) -> None:
    """A reworded and weighed item, a retired and a new one; then each kind of refusal."""
    bank = collection.bank()
    sky, sunset = (find_item(bank.items("q1"), name) for name in (SKY_ID, SUNSET_ID))
    new = ItemChange("add", None, ItemState("q1", "", OTHER))
    heavy = change_item(sky, "weight", ["3"])
    changes = [*changes_of(sky, replace(sky, text=NEW, weight=2.0)), new]
    saved = rows(bank.save([*changes, change_item(sunset, "retire", [])], author="bob"))
    assert [row["change"] for row in saved] == ["reword", "weight", "add", "retire"]
    assert state_of(collection, SKY_ID)[:2] == (NEW, 2.0)
    assert state_of(collection, SUNSET_ID)[3] == "retired"
    assert state_of(collection, item_id("q1", OTHER))[3] == "active"
    before = exams.tables(collection.path)
    now = find_item(bank.items("q1"), SKY_ID)
    again = change_item(now, "weight", ["3"])
    gone = ItemChange("retire", replace(now, item_id="q1/nothing"), replace(now, active=False))
    for refused in ([again, again], [again, new], [again, gone]):
        with pytest.raises(exampp.InputError):
            bank.save(refused)
    with pytest.raises(exampp.EditConflict):
        bank.save([heavy])
    assert exams.tables(collection.path) == before
