"""The sealed part: how it is drawn, what is committed to, and what becomes of a changed item."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exams
from support.commands import Commands

import exampp
from exampp.formats import bank as workbench_bank
from exampp.graders.scripted import ScriptedGrader
from exampp.items.sealing import choose_sealed, commitment_of, record_of, verify_file
from exampp.results.result import Table
from exampp.store.bank import ItemState


def rows(table: Table) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


SIZES = st.dictionaries(
    st.tuples(st.sampled_from("qrst"), st.sampled_from([None, "f", "g"])),
    st.integers(1, 9),
    min_size=1,
)


def states(sizes: dict[tuple[str, str | None], int]) -> list[ItemState]:
    return [
        ItemState(query, f"{query}/{subtopic}/{n}", "x?", subtopic_id=subtopic)
        for (query, subtopic), size in sizes.items()
        for n in range(size)
    ]


@given(SIZES, st.floats(0.05, 0.95), st.integers(0, 100))
def test_every_stratum_gives_its_share_to_within_one_item(
    sizes: dict[tuple[str, str | None], int], share: float, seed: int
) -> None:
    every = states(sizes)
    try:
        sealed = choose_sealed(every, share, seed)
    except exampp.InputError as error:
        if "no item would be sealed" not in str(error):
            raise
        return
    assert choose_sealed(list(reversed(every)), share, seed) == sealed
    by_query = Counter(state.query_id for state in sealed)
    by_subtopic = Counter((state.query_id, state.subtopic_id) for state in sealed)
    totals = Counter(state.query_id for state in every)
    for query, total in totals.items():
        assert by_query[query] < total  # one stays public
        if by_query[query] < total - 1:
            assert abs(by_query[query] - share * total) < 1 + 1e-9
            for subtopic in (None, "f", "g"):
                size = sizes.get((query, subtopic), 0)
                assert abs(by_subtopic[query, subtopic] - share * size) < 1 + 1e-9
    assert len(sealed) <= share * len(every) + 1 + 1e-9


def test_kinds_are_split_apart_and_seeds_differ() -> None:
    questions = states({("q", None): 10})
    nuggets = [ItemState("q", f"n{n}", "x", "nugget") for n in range(10)]
    sealed = choose_sealed(questions + nuggets, 0.3, 0)
    assert Counter(state.kind for state in sealed) == {"question": 3, "nugget": 3}
    assert choose_sealed(questions + nuggets, 0.3, 1) != sealed


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_shares_that_make_no_sense(share: float) -> None:
    with pytest.raises(exampp.InputError, match="is not between 0 and 1"):
        choose_sealed(states({("q", None): 4}), share, 0)


def test_the_commitment_can_be_recomputed_by_anyone() -> None:
    """The recipe of the documentation, by hand."""
    items = [
        ItemState("q2", "b", "Blue?", subtopic_id="f", answers=("x", "y"), weight=2.0),
        ItemState("q1", "a", "Grün?"),
    ]
    text = (
        '{"items":[["a","q1",null,"Grün?",1.0,[]],["b","q2","f","Blue?",2.0,["x","y"]]],"salt":"s"}'
    )
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert commitment_of([record_of(item) for item in items], "s") == expected


def make(folder: Path) -> exampp.Collection:
    """Two queries with six and four questions, two systems, everything graded 4 by p1 and p3."""
    collection = exams.make(folder)
    for number in range(4):
        collection.bank().add("q1", f"Sky {number}?", subtopic_id="sky")
    for number in range(3):
        collection.bank().add("q2", f"Magnet {number}?", answers=["iron"])
    return collection


@pytest.fixture
def split(tmp_path: Path) -> tuple[Path, Path, str]:
    """(collection, sealed file, commitment)."""
    with make(tmp_path) as collection:
        collection.bank().split(0.4, seed=3, author="ann")
        collection.bank().export(tmp_path / "sealed.jsonl", part="sealed")
        return collection.path, tmp_path / "sealed.jsonl", collection.bank().verify().commitment


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def save(path: Path, values: list[Any]) -> None:
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


def test_parts_are_what_the_bank_is(split: tuple[Path, Path, str], tmp_path: Path) -> None:
    path, sealed, _ = split
    with exampp.Collection(path) as collection:
        collection.bank().export(tmp_path / "public.jsonl", part="public")
        collection.bank().export(tmp_path / "whole.jsonl")

        def ids(name: Path) -> set[str]:
            return {item.item_id for e in workbench_bank.read(name) for item in e.items}

        secret, public = ids(sealed), ids(tmp_path / "public.jsonl")
        assert (len(secret), len(public)) == (4, 6)
        assert not secret & public
        assert secret | public == ids(tmp_path / "whole.jsonl")
        shown = {row["item"] for row in rows(collection.bank().show(part="sealed"))}
        assert shown == secret
        assert sum(row["status"] == "sealed" for row in rows(collection.bank().show())) == 4
        assert secret.isdisjoint(json.dumps(lines(tmp_path / "public.jsonl")).split('"'))


def test_an_unchanged_part_is_proved(split: tuple[Path, Path, str]) -> None:
    path, sealed, commitment = split
    assert verify_file(sealed, commitment).unchanged
    assert verify_file(sealed, f"sha256:{commitment.upper()}").unchanged
    assert "the commitment in the file" in verify_file(sealed).notes[0]
    with exampp.Collection(path) as collection:
        assert collection.bank().verify(sealed, commitment=commitment).unchanged
        assert collection.bank().verify().unchanged


def test_a_sealed_file_is_a_bank_like_any_other(
    split: tuple[Path, Path, str], tmp_path: Path
) -> None:
    _, sealed, commitment = split
    with exampp.Collection.create(tmp_path / "new.exam") as collection:
        assert collection.import_files(sealed).after["items"] == 4
        collection.bank().export(tmp_path / "again.jsonl")
    assert verify_file(tmp_path / "again.jsonl", commitment).unchanged


def first_item(values: list[Any]) -> Any:
    return values[0]["items"][0]


def change_key(values: list[Any]) -> list[tuple[str, str]]:
    item = values[-1]["items"][-1]
    item["gold_answers"] = ["copper"]
    return [("changed", item["question_id"])]


def swap_texts(values: list[Any]) -> list[tuple[str, str]]:
    one, other = [item for value in values for item in value["items"]][:2]
    one["question_text"], other["question_text"] = other["question_text"], one["question_text"]
    return [("changed", one["question_id"]), ("changed", other["question_id"])]


def swap_for_another(values: list[Any]) -> list[tuple[str, str]]:
    old = first_item(values)["question_id"]
    first_item(values).update(question_id="easier", question_text="An easier question?")
    return [("missing", old), ("added", "easier")]


def remove(values: list[Any]) -> list[tuple[str, str]]:
    return [("missing", values[-1]["items"].pop()["question_id"])]


TAMPERINGS = [change_key, swap_texts, swap_for_another, remove]


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_a_changed_part_is_detected_and_named(
    split: tuple[Path, Path, str], tamper: Callable[[list[Any]], list[tuple[str, str]]]
) -> None:
    path, sealed, commitment = split
    values = lines(sealed)
    expected = tamper(values)
    save(sealed, values)
    for found in (verify_file(sealed, commitment), verify_file(sealed)):
        assert (found.unchanged, found.faults) == (False, ())
        assert found.notes[0].startswith("CHANGED since the split")
    with exampp.Collection(path) as collection:
        found = collection.bank().verify(sealed, commitment=commitment)
        assert not found.unchanged
        assert [(fault.what, fault.item_id) for fault in found.faults] == expected
        assert all(fault.detail for fault in found.faults)


def test_a_file_rewritten_with_its_own_seal_fails_the_published_commitment(
    split: tuple[Path, Path, str], tmp_path: Path
) -> None:
    path, sealed, commitment = split
    with exampp.Collection(path) as collection:
        secret = rows(collection.bank().show(part="sealed"))[0]
        collection.bank().edit("reword", secret["item"], "Easier?")
        found = collection.bank().verify()
        assert [(f.what, f.item_id) for f in found.faults] == [("changed", secret["item"])]
        assert found.faults[0].detail == f"text: {secret['text']!r} became 'Easier?'"
        collection.bank().export(sealed, part="sealed")  # still what was sealed
        assert verify_file(sealed, commitment).unchanged
        with pytest.raises(exampp.InputError, match="was split at"):
            collection.bank().split(0.4, seed=3)
        collection.bank().split(0.4, seed=3, again=True)
        collection.bank().export(tmp_path / "new.jsonl", part="sealed")
    found = verify_file(tmp_path / "new.jsonl", commitment)
    assert (found.unchanged, found.faults) == (False, ())


def test_retired_sealed_items_are_missing(split: tuple[Path, Path, str]) -> None:
    path, _, _ = split
    with exampp.Collection(path) as collection:
        secret = rows(collection.bank().show(part="sealed"))[0]["item"]
        collection.bank().edit("retire", secret)
        assert [(f.what, f.item_id) for f in collection.bank().verify().faults] == [
            ("missing", secret)
        ]


def test_a_collection_whose_history_was_changed_says_so(split: tuple[Path, Path, str]) -> None:
    path, sealed, _ = split
    with exampp.Collection(path) as collection:
        collection.connection.execute("UPDATE item_version SET text = text || '?'")
        with pytest.raises(exampp.InputError, match="no longer matches the commitment"):
            collection.bank().verify(sealed)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"query_id": "q", "items": []}', "the file has no seal"),
        ('{"query_id": "q", "items": [], "sealed": 3}', "the seal is broken"),
        ('{"query_id": "q", "items": [], "sealed": {"bank": "main"}}', "the seal is broken"),
        ("[]", "Expected `object`"),
        ("", "the file is empty"),
    ],
)
def test_files_that_are_no_sealed_part(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    with pytest.raises(exampp.InputError) as caught:
        verify_file(path)
    assert what in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_commitment(split: tuple[Path, Path, str], tmp_path: Path) -> None:
    _, sealed, _ = split
    with pytest.raises(exampp.InputError, match="is not a commitment"):
        verify_file(sealed, "abc")
    with exams.make(tmp_path, "unsplit.exam") as collection:
        for act in (
            lambda: collection.bank().verify(sealed),
            lambda: collection.bank().show(part="public"),
            lambda: collection.bank().export(tmp_path / "x.jsonl", part="public"),
        ):
            with pytest.raises(exampp.InputError, match="has no sealed part"):
                act()
        collection.bank().split(0.5)
        with pytest.raises(exampp.InputError, match="must be written as JSON lines"):
            collection.bank().export(tmp_path / "x.csv", part="sealed")
        with pytest.raises(exampp.InputError, match="unknown part 'secret'"):
            collection.bank().export(tmp_path / "x.jsonl", part="secret")


# ---- evaluation ----------------------------------------------------------------------------------


def test_either_part_is_an_exam_of_its_own(tmp_path: Path) -> None:
    """alpha was tuned to the public items: it answers these, and none of the sealed ones."""
    with make(tmp_path) as collection:
        collection.bank().split(0.4, seed=3)
        public = {row["text"] for row in rows(collection.bank().show(part="public"))}

        def rate(ask: Any) -> str:
            tuned = ask.passage in (exams.PASSAGES["p1"], exams.PASSAGES["p3"])
            return "5" if (ask.item in public) == tuned else "0"

        collection.grade(ScriptedGrader(rate), model="scripted")
        whole = collection.grades().gradebook
        parts = {part: collection.grades(part=part).gradebook for part in ("public", "sealed")}
        for number, query in enumerate(whole.queries):
            ids = [parts[part].queries[number].item_ids for part in parts]
            assert sorted(ids[0] + ids[1]) == sorted(query.item_ids)
            for book in parts.values():
                one = book.queries[number]
                where = [query.item_ids.index(item) for item in one.item_ids]
                assert (one.ratings == query.ratings[:, where]).all()
        table = collection.grades().compare_parts(min_rating=4)
        assert [row[0] for row in table.rows] == ["beta", "alpha"]
        found = {row[0]: (row[1], row[3], row[5]) for row in table.rows}
        # alpha also returned p2, which answers the sealed questions of q1
        assert found == {"alpha": (1.0, 0.5, 0.5), "beta": (0.0, 1.0, -1.0)}
        assert table.caption == "graded by scripted:question-self-rating, bank main"
        assert table.verdict == "Kendall's tau of the two parts over 2 systems: -1.000."
        with pytest.raises(exampp.InputError, match="unknown part 'secret'"):
            _ = collection.grades(part="secret").gradebook


def test_without_its_files_there_is_no_split(tmp_path: Path) -> None:
    public, nowhere = tmp_path / "public.jsonl", tmp_path / "no" / "folder" / "sealed.csv"
    (tmp_path / "made").mkdir()
    with make(tmp_path / "made") as collection:
        with pytest.raises(exampp.InputError):
            collection.bank().split(0.4, public=public, sealed=nowhere)
        assert not public.exists()
        assert not any(row[5] for row in collection.banks().rows)
        collection.bank().split(0.4, public=public, sealed=tmp_path / "sealed.jsonl")
        assert public.exists()
        assert collection.bank().verify(tmp_path / "sealed.jsonl").unchanged


def test_the_report_and_the_plot_hide_sealed_texts(
    tmp_path: Path, exampp_command: Commands
) -> None:
    exam, page, plot = tmp_path / "demo.exam", tmp_path / "r.html", tmp_path / "items.svg"
    assert exampp_command("demo", exam).code == 0
    assert exampp_command("bank", "split", exam, "--secret", "0.6").code == 0
    with exampp.Collection(exam) as collection:
        grades = collection.grades()
        sealed = [str(row["text"]) for row in rows(collection.bank().show(part="sealed"))]
        whole = "".join(str(row.text) for row in grades.items().look)
        count = sum(row.sealed is True for row in grades.items().items)
        grades.report(page)
        grades.items().plot().save(plot)
    # some of them are among the items to review, which the owner sees
    assert [text for text in sealed if text[:40] in whole]
    for file in (page, plot):
        assert not [text for text in sealed if text[:40] in file.read_text()]
    assert f"The texts of {count} sealed items are left out" in page.read_text()


def test_an_export_names_its_sealed_items(
    split: tuple[Path, Path, str], tmp_path: Path, exampp_command: Commands
) -> None:
    path = split[0]
    for kind, target in (("bank", "b.jsonl"), ("bank", "b.csv"), ("nuggetizer", "n.jsonl")):
        ran = exampp_command("export", path, tmp_path / target, "--format", kind)
        assert "This file contains 4 sealed items. --part public leaves them out." in ran.err
        ran = exampp_command("export", path, tmp_path / target, "--format", kind, "--part=public")
        assert (ran.code, "sealed" in ran.err) == (0, False)
    ran = exampp_command("export", path, tmp_path / "d", "--format", "beir")
    assert "4 sealed items left out" in ran.err
    ran = exampp_command("export", path, tmp_path / "allbank.jsonl")
    assert "grades on 4 sealed items" in ran.err
    assert "allbank.jsonl: graded passages (--format bank writes the bank)" in ran.out
