"""Any sequence of edits of a bank evaluates as a fresh grading with the result."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.bank import Bank
from exampp.graders.scripted import ScriptedGrader
from exampp.records.gradebook import MISSING
from exampp.results.result import Table
from exampp.store.bank import bank_names

BANK = "keyed"
ITEMS = ("q1.a", "q1.b", "q2.a")
TEXTS = ("What does air do?", "Why red?", "What points?", "Which light?")
KEYS = ("Air", "scatters", "blue", "At", "sunset", "Compasses", "point", "north")
ASKED = ("reword", "add", "apply")
"""Edits after which there may be texts that nobody was asked about yet."""
FIRST = (
    "query_id\tid\tquestion\tanswer\n"
    "q1\tq1.a\tWhat does air scatter?\tblue\n"
    "q1\tq1.b\tWhy are sunsets red?\tsunset\n"
    "q2\tq2.a\tWhat makes a magnet?\tAligned\n"
)

FILED = (["answer", "north"], ["answer", ""], ["question", "Why red?"], ["drop"], ["new"])
"""Changes of an exported file: a field of an item edited, its row dropped, another row added."""
items = st.sampled_from(ITEMS)
edits: st.SearchStrategy[tuple[str, str, list[str]]] = st.one_of(
    st.tuples(st.just("key"), items, st.lists(st.sampled_from(KEYS), max_size=2, unique=True)),
    st.tuples(st.just("reword"), items, st.sampled_from(TEXTS).map(lambda text: [text])),
    st.tuples(st.just("weight"), items, st.sampled_from("012").map(lambda weight: [weight])),
    st.tuples(st.sampled_from(("retire", "restore")), items, st.just([])),
    st.tuples(st.sampled_from(("undo", "grade")), items, st.just([])),
    st.tuples(st.just("add"), items, st.lists(st.sampled_from(KEYS), max_size=2, unique=True)),
    st.tuples(st.just("revert"), items, st.integers(1, 6).map(lambda back: [str(back)])),
    st.tuples(st.just("apply"), items, st.sampled_from(FILED)),
)


def number(*texts: str) -> int:
    return sum(map(ord, "".join(texts)))


def extracted(ask: exampp.Request) -> str:
    """One of the first words of the passage, or nothing."""
    words = ["unanswerable", *ask.passage.rstrip(".").split()[:3]]
    return words[number(ask.item, ask.passage) % len(words)]


GRADERS: Sequence[tuple[str, Any, dict[str, Any]]] = (
    ("m", extracted, {"prompt": "question-answering"}),
    (
        "judge",
        lambda ask: ("yes", "no")[number(ask.user) % 2],
        {"prompt": "answer-verification", "answers_of": "m"},
    ),
    ("rater", lambda ask: str(number(ask.item, ask.passage) % 6), {}),
)


MODELS = [model for model, *_ in GRADERS]


def grade(collection: exampp.Collection) -> None:
    for model, script, options in GRADERS:
        collection.grade(ScriptedGrader(script, name=model), bank=BANK, model=model, **options)


def said(collection: exampp.Collection, models: set[str]) -> dict[str, Any]:
    """Return the cells of every grader by ids, and the scores of the systems."""
    found: dict[str, Any] = {}
    for model in models:
        book = collection.grades(model, bank=BANK).gradebook
        for query in book.queries:
            for place, item in enumerate(query.item_ids):
                column = dict(zip(query.passage_ids, query.ratings[:, place].tolist(), strict=True))
                found[f"{model} {item}"] = (float(query.weights[place]), column)
        board = collection.grades(model, bank=BANK).evaluate(["Cover@20", "nDCG@20"], min_rating=1)
        found[model] = [(row.system, row.measure, row.mean) for row in board.rows]
        found[f"{model} notes"] = [note for note in board.notes if "answer key" in note]
    return found


def standing(found: dict[str, Any], models: set[str]) -> dict[str, dict[str, int]]:
    """The cells that have a grade, by grader and item."""
    return {
        name: {passage: rating for passage, rating in column[1].items() if rating != MISSING}
        for name, column in found.items()
        if isinstance(column, tuple) and name.split()[0] in models
    }


def last_edit(table: Table) -> int:
    return int(str(table.rows[-1][[column.name for column in table.columns].index("edit")]))


def apply(bank: Bank, file: Path, item: str, change: list[str]) -> None:
    """Export the bank, change a row as a person does in a spreadsheet, and apply the file."""
    bank.export(file)
    head, *lines, version = file.read_text("utf-8").splitlines()
    rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    match change:
        case ["drop"]:
            rows = [row for row in rows if row["item_id"] != item]
        case ["new"]:
            rows.append({"query_id": item[:2], "question": "What is new?"})
        case [field, value]:
            rows = [{**row, field: value} if row["item_id"] == item else row for row in rows]
    filed = ["\t".join(row.get(name, "") for name in head.split("\t")) for row in rows]
    file.write_text("\n".join([head, *filed, version]), "utf-8")
    bank.apply(file, retire_missing=True)


def edit(
    collection: exampp.Collection, operation: str, item: str, values: list[str], folder: Path
) -> None:
    bank = collection.bank(BANK)
    if operation == "grade":
        # without an item there is nobody to grade for
        if BANK in bank_names(collection.connection, "question"):
            grade(collection)
        return
    try:
        match operation:
            case "undo":
                bank.undo(last_edit(bank.log(item=item)))
            case "revert":
                bank.revert(max(1, bank.version().number - int(values[0])))
            case "add":
                bank.add(item[:2], TEXTS[number(*values) % len(TEXTS)], answers=values)
            case "apply":
                apply(bank, folder / "edited.tsv", item, values)
            case _:
                bank.edit(operation, item, *values)
    except exampp.InputError:
        # it is so already, or the item is retired
        return


@example(
    [("retire", "q1.a", []), ("retire", "q1.b", []), ("retire", "q2.a", []), ("grade", "", [])]
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(edits, min_size=1, max_size=7))
def test_edits_lead_where_a_fresh_grading_leads(steps: list[tuple[str, str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "first.tsv").write_text(FIRST)
        with exams.make(path) as edited, exams.make(path, "fresh.exam") as fresh:
            edited.import_files(path / "first.tsv", bank=BANK)
            grade(edited)
            for step in steps:
                edit(edited, *step, path)
            try:
                edited.bank(BANK).export(path / "final.jsonl")
            except exampp.InputError:
                return  # nothing is left in the bank
            fresh.import_files(path / "final.jsonl", bank=BANK)
            unasked = said(edited, set(MODELS))
            grade(edited)
            grade(fresh)
            # where nothing can be asked, the fresh one does not know the grader
            models = {one.model for one in fresh.graders}
            # what stands before anybody is asked again is so, and answers are verified without
            anew = said(fresh, models)
            for name, cells in standing(unasked, models).items():
                assert cells.items() <= anew[name][1].items(), name
            if not any(operation in ASKED for operation, *_ in steps):
                of_m = [name for name in anew if name.split()[0] == "m"]
                assert [unasked[name] for name in of_m] == [anew[name] for name in of_m]
            assert said(edited, models) == anew
            # and nothing is left to be asked
            assert {row[2] for row in edited.status().rows if row[1] == BANK} == {0}
