"""Owning a bank: edits and what becomes due, applying edited files, history, reverting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.errors import EditConflict, InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.results.result import Table

SKY, SUNSET, MAGNET = "What does air scatter?", "Why are sunsets red?", "What makes a magnet?"
NEW = "Which colour does air scatter most?"
SKY_ID, MAGNET_ID = item_id("q1", SKY), item_id("q2", MAGNET)


def rows(table: Table) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def grade(collection: exampp.Collection) -> list[tuple[str, str]]:
    """Grade what is due; returns what was asked, as (question, passage)."""
    grader = ScriptedGrader("4")
    collection.grade(grader, model="scripted")
    return [(ask.item, ask.passage) for ask in grader.calls]


def texts(collection: exampp.Collection) -> list[str]:
    return [row["text"] for row in rows(collection.bank().show()) if row["status"] != "retired"]


def test_rewording_makes_exactly_that_item_due_and_back_finds_its_grades(
    collection: exampp.Collection,
) -> None:
    assert len(grade(collection)) == 8
    changed = rows(collection.bank().edit("reword", SKY_ID, NEW, author="ann", reason="clearer"))
    assert changed == [
        {"query": "q1", "item": SKY_ID, "change": "reword", "before": SKY, "after": NEW}
    ]
    texts_of = exams.PASSAGES
    assert sorted(grade(collection)) == [
        (NEW, texts_of["p1"]),
        (NEW, texts_of["p2"]),
        (NEW, texts_of["p4"]),
    ]
    collection.bank().edit("reword", SKY_ID, SKY)
    assert grade(collection) == []
    assert collection.grades().gradebook.queries[0].ratings.tolist() == [[4, 4]] * 3


def test_retired_items_leave_the_exam_and_come_back_with_their_grades(
    collection: exampp.Collection,
) -> None:
    grade(collection)
    collection.bank().edit("retire", SKY_ID)
    assert collection.grades().gradebook.queries[0].item_ids == (item_id("q1", SUNSET),)
    collection.bank().edit("restore", SKY_ID[:8])
    assert grade(collection) == []
    assert SKY_ID in collection.grades().gradebook.queries[0].item_ids


def test_weights_and_keys_make_nothing_due(collection: exampp.Collection) -> None:
    grade(collection)
    collection.bank().edit("weight", SKY_ID, "2.5")
    collection.bank().edit("key", SKY_ID, "blue light", "blue")
    assert grade(collection) == []
    assert collection.grades().gradebook.queries[0].weights.tolist() == [2.5, 1.0]
    (row,) = [row for row in rows(collection.bank().show("q1")) if row["item"] == SKY_ID]
    assert (row["key"], row["weight"]) == ("blue light | blue", 2.5)


def test_an_added_item_is_due(collection: exampp.Collection) -> None:
    grade(collection)
    collection.bank().add("q2", "Where do compasses point?", answers=["north"], weight=0.5)
    collection.bank().add("q2", "point north", kind="nugget", subtopic_id="compasses")
    assert {item for item, _ in grade(collection)} == {"Where do compasses point?"}
    added = rows(collection.bank().show("q2"))[1:]
    assert [(row["item"], row["kind"], row["subtopic"]) for row in added] == [
        (item_id("q2", "Where do compasses point?"), "question", ""),
        (item_id("q2", "point north", "compasses"), "nugget", "compasses"),
    ]


def test_the_first_text_of_a_reworded_item_can_be_added_beside_it(
    collection: exampp.Collection,
) -> None:
    collection.bank().edit("reword", SKY_ID, NEW)
    collection.bank().add("q1", SKY)
    assert {row["item"]: row["text"] for row in rows(collection.bank().show("q1"))} == {
        SKY_ID: NEW,
        item_id("q1", SUNSET): SUNSET,
        f"{SKY_ID}.2": SKY,
    }


Action = Callable[[exampp.Collection], object]


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda c: c.bank().edit("reword", SKY_ID, SKY), "would not change"),
        (lambda c: c.bank().edit("reword", SKY_ID, " "), "the text is blank"),
        (
            lambda c: c.bank().edit("reword", SKY_ID),
            "reword takes one value, not nothing",
        ),
        (lambda c: c.bank().edit("retire", SKY_ID, "x"), "retire takes no value"),
        (lambda c: c.bank().edit("restore", SKY_ID), "would not change"),
        (lambda c: c.bank().edit("weight", SKY_ID, "-1e10"), "the weight -1e+10 is not between"),
        (lambda c: c.bank().edit("weight", SKY_ID, "nan"), "'nan' is not a finite number"),
        (lambda c: c.bank().edit("key", SKY_ID, "a", " "), "an answer is blank"),
        (lambda c: c.bank().edit("melt", SKY_ID), "unknown operation 'melt'"),
        (lambda c: c.bank().edit("retire", "nothing"), "the bank has no item 'nothing'"),
        (lambda c: c.bank().edit("retire", "q1/"), "the bank has no item 'q1/'"),
        (lambda c: c.bank().edit("retire", SKY_ID, query_id="q2"), "of query 'q2'"),
        (lambda c: c.bank("x").edit("retire", SKY_ID), "has no bank 'x'. It has main"),
        (lambda c: c.bank().add("q9", "x?"), "query 'q9' is not in the collection"),
        (lambda c: c.bank().add("q1", SKY), "query 'q1' already has that question"),
        (lambda c: c.bank().add("q1", ""), "the text is blank"),
        (lambda c: c.bank().diff("99"), "unknown edit 99; the last of the bank is"),
        (lambda c: c.bank().diff("yesterday"), "'yesterday' is neither an edit nor a bank"),
        (lambda c: c.bank().revert("main"), "'main' is neither an edit nor a bank"),
        (lambda c: c.bank(" ").add("q1", "x?"), "the name of the bank is blank"),
        (lambda c: c.bank().show("q9"), "has no items of query 'q9'"),
    ],
)
def test_edits_that_make_no_sense_change_nothing(
    collection: exampp.Collection, act: Action, what: str
) -> None:
    before = exams.tables(collection.path)
    with pytest.raises(exampp.InputError) as caught:
        act(collection)
    assert what in str(caught.value)
    assert exams.tables(collection.path) == before


def test_a_start_that_fits_several_items_lists_them(collection: exampp.Collection) -> None:
    collection.bank().add("q1", "a?", item_id="topic/1")
    collection.bank().add("q2", "b?", item_id="topic/1")
    with pytest.raises(exampp.InputError, match="2 items match 'topic/1'") as caught:
        collection.bank().edit("retire", "topic/1")
    assert "q2: topic/1  b?" in str(caught.value)
    collection.bank().edit("retire", "topic/1", query_id="q2")
    assert "a?" in texts(collection)
    assert "b?" not in texts(collection)


def test_retired_items_are_restored_before_they_are_edited(collection: exampp.Collection) -> None:
    collection.bank().edit("retire", SKY_ID)
    with pytest.raises(exampp.InputError, match="is retired"):
        collection.bank().edit("reword", SKY_ID, NEW)
    with pytest.raises(exampp.InputError, match=r"retired\. Restore it"):
        collection.bank().add("q1", SKY)


# ---- history -------------------------------------------------------------------------------------


def test_the_log_holds_every_edit_newest_last(collection: exampp.Collection) -> None:
    collection.bank().edit("reword", SKY_ID, NEW, author="ann", reason="clearer")
    collection.bank().edit("weight", MAGNET_ID, "2", author="bob", reason="vital")
    collection.bank().edit("key", MAGNET_ID, "spins", author="bob")
    collection.bank().edit("retire", MAGNET_ID, author="bob")
    log = rows(collection.bank().log())
    numbers = [row["edit"] for row in log]
    assert numbers == sorted(numbers)
    assert [(r["author"], r["operation"], r["what"], r["reason"]) for r in log[3:]] == [
        ("ann", "reword", f"{SKY} -> {NEW}", "clearer"),
        ("bob", "weight", "1 -> 2", "vital"),
        ("bob", "key", "(none) -> spins", ""),
        ("bob", "retire", f"retired: {MAGNET}", ""),
    ]
    assert rows(collection.bank().log(item=SKY_ID)) == [log[0], log[3]]
    assert rows(collection.bank().log("q2", last=2)) == log[-2:]


def test_reverting_appends_and_can_be_reverted(collection: exampp.Collection) -> None:
    grade(collection)
    start = rows(collection.bank().log())[-1]["edit"]
    before = rows(collection.bank().show())
    collection.bank().edit("reword", SKY_ID, NEW)
    collection.bank().edit("weight", SKY_ID, "3")
    collection.bank().edit("retire", MAGNET_ID)
    collection.bank().add("q2", "Where do compasses point?")
    edited = rows(collection.bank().show())
    middle = rows(collection.bank().log())[-1]["edit"]
    assert collection.bank().trial(lambda bank: bank.revert(start)).changes.rows
    assert rows(collection.bank().show()) == edited
    changes = rows(collection.bank().revert(start, reason="all wrong"))
    assert [row["change"] for row in changes] == ["reword", "weight", "restore", "retire"]
    active = [row for row in rows(collection.bank().show()) if row["status"] == "active"]
    assert active == before
    assert grade(collection) == []
    log = rows(collection.bank().log())
    assert [row["operation"] for row in log[-3:]] == ["revert"] * 3
    collection.bank().revert(middle)
    assert rows(collection.bank().show()) == edited
    assert rows(collection.bank().diff(middle)) == []
    assert len(rows(collection.bank().log())) == len(log) + 3


def test_several_edits_are_undone_together_or_not_at_all(collection: exampp.Collection) -> None:
    bank = collection.bank()
    before = rows(bank.show())
    bank.edit("weight", SKY_ID, "3")
    bank.edit("retire", MAGNET_ID)
    first, second = (int(str(row["edit"])) for row in rows(bank.log())[-2:])
    bank.edit("reword", SKY_ID, NEW)
    edited = rows(bank.show())
    with pytest.raises(EditConflict):
        bank.undo(second, first)
    assert rows(bank.show()) == edited
    bank.undo(int(str(rows(bank.log())[-1]["edit"])))
    with pytest.raises(InputError, match="no edit to undo"):
        bank.undo()
    # the undo of the rewording is now the newest edit of its item
    newest = int(str(rows(bank.log())[-1]["edit"]))
    changes = rows(bank.undo(second, newest, second))
    assert [row["change"] for row in changes] == ["restore", "reword"]
    assert [row["operation"] for row in rows(bank.log())[-2:]] == ["undo", "undo"]
    assert len(rows(bank.show())) == len(before)


def test_diff_between_versions_and_banks(collection: exampp.Collection, tmp_path: Path) -> None:
    start = rows(collection.bank().log())[-1]["edit"]
    collection.bank().edit("reword", SKY_ID, NEW)
    collection.bank().edit("retire", MAGNET_ID)
    assert [
        (r["change"], r["before"], r["after"]) for r in rows(collection.bank().diff(start))
    ] == [
        ("reword", SKY, NEW),
        ("retire", MAGNET, ""),
    ]
    back = rows(collection.bank().diff("now", start))
    assert [(r["change"], r["before"], r["after"]) for r in back] == [
        ("reword", NEW, SKY),
        ("restore", "", MAGNET),
    ]
    other = tmp_path / "other.csv"
    other.write_text(f"query_id,item_id,question,weight\nq1,mine,{SUNSET},2\nq2,yours,x?,1\n")
    collection.import_files(other, bank="other")
    assert [
        (r["change"], r["before"], r["after"])
        for r in rows(collection.bank().diff("main", "other"))
    ] == [
        ("weight", "1", "2"),
        ("add", "", "x?"),
        ("remove", NEW, ""),
    ]


# ---- files that people edited --------------------------------------------------------------------


@pytest.fixture(params=["bank.csv", "bank.tsv.gz"])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def replace_in(path: Path, old: str, new: str) -> None:
    import gzip

    packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
    assert old in text
    data = text.replace(old, new).encode()
    path.write_bytes(gzip.compress(data) if packed else data)


def test_an_export_applied_as_it_is_changes_nothing(
    collection: exampp.Collection, exported: Path
) -> None:
    collection.bank().edit("reword", SKY_ID, 'With, commas: "quotes" and # marks')
    collection.bank().edit("key", MAGNET_ID, "a|b", "c")
    assert collection.bank().export(exported) == 3
    before = exams.tables(collection.path)
    assert collection.bank().apply(exported).rows == ()
    assert exams.tables(collection.path) == before
    assert collection.import_files(exported, bank="copy").files[0].records == 3
    assert rows(collection.bank().diff("main", "copy")) == []


def test_a_whole_file_of_changes(collection: exampp.Collection, tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    collection.bank().export(path)
    version = path.read_text().splitlines()[-1]
    lines = ("query_id,question,nugget,item_id,weight,answer", f'q1,"{NEW}",,{SKY_ID},2,blue')
    added = ("q1,Why is the night dark?,,,,", "q2,,electron spins,,,")
    path.write_text("\n".join((*lines, *added, version)))
    kept = rows(collection.bank().trial(lambda bank: bank.apply(path)).changes)
    assert [row["change"] for row in kept] == ["reword", "weight", "key", "add", "add"]
    all_of_it = rows(collection.bank().apply(path, retire_missing=True))
    assert [(row["change"], row["before"]) for row in all_of_it[5:]] == [
        ("retire", SUNSET),
        ("retire", MAGNET),
    ]
    assert texts(collection) == [NEW, "Why is the night dark?", "electron spins"]


def test_a_bank_that_was_edited_meanwhile_is_not_overwritten(
    collection: exampp.Collection, exported: Path
) -> None:
    collection.bank().export(exported)
    replace_in(exported, SKY, NEW)
    collection.bank().edit("reword", MAGNET_ID, "What aligns in a magnet?", author="bob")
    before = exams.tables(collection.path)
    with pytest.raises(exampp.InputError, match="the bank was edited once since") as caught:
        collection.bank().apply(exported)
    assert f"reword {MAGNET_ID} by bob" in str(caught.value)
    assert exams.tables(collection.path) == before
    changes = rows(collection.bank().apply(exported, force=True))
    assert [(row["item"], row["after"]) for row in changes] == [(SKY_ID, NEW)]
    assert texts(collection) == [NEW, SUNSET, "What aligns in a magnet?"]  # both stand


def test_files_of_unknown_origin_are_applied_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with exams.make(tmp_path) as collection, exams.make(tmp_path / "b", "b.exam") as other:
        path = tmp_path / "b.csv"
        path.write_text(f"query_id,question,weight\nq1,{SKY},2\n")
        with pytest.raises(exampp.InputError, match="does not name the version of the bank"):
            collection.bank().apply(path)
        (change,) = rows(collection.bank().apply(path, force=True))
        assert (change["change"], change["after"]) == ("weight", "2")
        other.bank().edit("reword", SKY_ID, NEW)
        other.bank().export(path)
        with pytest.raises(exampp.InputError, match="from another collection"):
            collection.bank().apply(path)
        collection.import_files(tmp_path / "files" / "questions.tsv", bank="second")
        collection.bank("second").export(path)
        with pytest.raises(exampp.InputError, match="from the bank 'second', not 'main'"):
            collection.bank().apply(path)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"q1,{SKY_ID},{SKY},,light", "is 'none' in the bank, and 'light' in the file"),
        (f"q1,{SKY_ID},,{SKY},", "is 'question' in the bank, and 'nugget' in the file"),
        (f"q1,x,{SKY},,\nq1,{SKY_ID},{NEW},,", "is in the file twice"),
        ("q9,,x?,,", "query 'q9' is not in the collection"),
    ],
)
def test_files_that_do_not_fit_the_bank(
    collection: exampp.Collection, tmp_path: Path, line: str, what: str
) -> None:
    path = tmp_path / "b.csv"
    path.write_text(f"query_id,item_id,question,nugget,subtopic_id\n{line}\n")
    before = exams.tables(collection.path)
    with pytest.raises(exampp.InputError) as caught:
        collection.bank().apply(path, force=True)
    assert what in str(caught.value)
    assert str(path) in str(caught.value)
    assert exams.tables(collection.path) == before


WORDS = st.sampled_from(["light", "air", "a, b", "c: d", "#e", "'f'", '"g"', "null", "1"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["reword", "weight", "key", "toggle", "add"]), st.integers(0, 5), WORDS
    ),
    max_size=8,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None
)
@given(EDITS, EDITS, st.sampled_from(["b.tsv", "b.csv"]))
def test_any_edits_can_be_reverted_and_any_export_applied(
    tmp_path_factory: pytest.TempPathFactory, first: Any, then: Any, name: str
) -> None:
    """An export of an earlier state, applied by force onto the newest one, changes nothing that
    was not in it; and reverting gives any state back exactly.
    """
    folder = tmp_path_factory.mktemp("bank")
    with exams.make(folder) as collection:
        edit_all(collection, first)
        number = rows(collection.bank().log())[-1]["edit"]
        state = active(collection)
        if not state:
            with pytest.raises(exampp.InputError, match="no active items to export"):
                collection.bank().export(folder / name)
            return
        collection.bank().export(folder / name)
        edit_all(collection, then)
        newest = active(collection)
        assert collection.bank().apply(folder / name, force=True).rows == ()
        assert active(collection) == newest
        collection.bank().revert(number)
        assert active(collection) == state
        assert json.loads(json.dumps(rows(collection.bank().diff(number)))) == []


def active(collection: exampp.Collection) -> list[dict[str, Any]]:
    return [row for row in rows(collection.bank().show()) if row["status"] == "active"]


def edit_all(collection: exampp.Collection, edits: list[tuple[str, int, str]]) -> None:
    for number, (operation, index, word) in enumerate(edits):
        items = rows(collection.bank().show())
        item = items[index % len(items)]
        place = (item["item"],)
        try:
            if operation == "add":
                collection.bank().add(item["query"], f"{word} {index}?")
            elif operation == "toggle":
                done = "restore" if item["status"] == "retired" else "retire"
                collection.bank().edit(done, *place, query_id=item["query"])
            else:
                value = str(number + 2) if operation == "weight" else f"{word} {number}"
                collection.bank().edit(operation, *place, value, query_id=item["query"])
        except exampp.InputError as error:
            if not any(word in str(error) for word in ("already", "not change", "retired")):
                raise


def test_an_importance_that_a_file_gives_is_set(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    path = tmp_path / "b.csv"
    collection.bank().export(path)
    header, first, second, third, version = path.read_text().splitlines()
    lines = [f"{header},importance", f"{first},okay", f"{second},Vital", f"{third},"]
    path.write_text("\n".join([*lines, f"{version}\n"]))
    changes = [("weight", "1", "0.5"), ("importance", "", "okay"), ("importance", "", "vital")]
    dry = collection.bank().trial(lambda bank: bank.apply(path)).changes
    assert [row[2:] for row in dry.rows] == changes
    assert collection.bank().apply(path, author="ann").rows == dry.rows
    entries = {i.text: i for entry in collection.bank().texts().entries for i in entry.items}
    assert entries[SKY].extra == {"importance": "okay"}
    assert entries[SUNSET].extra == {"importance": "vital"}
    assert entries[MAGNET].extra == {}
    last = rows(collection.bank().log())[-1]
    assert (last["author"], last["operation"]) == ("ann", "importance = 'vital'")
    with pytest.raises(exampp.InputError, match="cannot be undone"):
        collection.bank().undo(last["edit"])
    collection.bank().export(path)
    assert collection.bank().apply(path).rows == ()
    replace_in(path, "okay", "vital")
    assert [row[2:] for row in collection.bank().apply(path).rows] == [("weight", "0.5", "1")]


def test_what_a_file_says_and_cannot_change_is_named(
    collection: exampp.Collection, tmp_path: Path
) -> None:
    path = tmp_path / "b.csv"
    collection.bank().export(path)
    assert collection.bank().apply(path).notes == ()
    text = path.read_text().replace(SKY_ID, "my-own-id")
    path.write_text(text.replace(exams.QUERIES["q1"], "Quite another text"))
    changes = collection.bank().apply(path)
    assert changes.rows == ()
    assert changes.notes == (
        "not applied: the text of query 'q1' differs in the file; import the queries with "
        "--update to change it",
        "not applied: ids cannot be changed, but the file changes: my-own-id",
    )
