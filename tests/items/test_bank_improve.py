"""The commands of an improvement: nothing changes without a confirmed gain, and all is undone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.commands import Commands
from support.planted_collection import collected, rater
from support.planted_items import planted_exam

import exampp
from exampp.analysis.attacks.battery import BatterySettings
from exampp.analysis.improvement import Improvement, Proposal
from exampp.errors import InputError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded collection in which two of eight items of every query are reversed."""
    book = planted_exam(3, {"reversed": 2}, systems=30, queries=16, items=8)
    folder = tmp_path_factory.mktemp("planted") / "exam"
    with collected(folder, book) as exam:
        return exam.path


@pytest.fixture
def exam(made: Path, tmp_path: Path) -> Iterator[exampp.Collection]:
    with exampp.Collection(shutil.copy(made, tmp_path / "my.exam")) as opened:
        yield opened


def exported(exam: exampp.Collection) -> bytes:
    """The bank as a file."""
    path = exam.path.with_name("bank.jsonl")
    exam.bank().export(path)
    return path.read_bytes()


def test_an_accepted_round_is_one_edit_that_is_undone_to_the_byte(exam: exampp.Collection) -> None:
    bank = exam.bank()
    before, number = exported(exam), bank.version().number
    found = bank.improve()
    assert "(10 random splits, 95% interval)" in found.reason
    assert found.is_confirmed
    assert sum("reversed" in one.item_id for one in found.proposals) >= 20
    changes = bank.accept(found, author="ann")
    assert len(changes.rows) == len(found.proposals)
    logged = bank.log().rows[-len(found.proposals) :]
    assert {(row[2], row[-1]) for row in logged} == {("ann", found.reason)}
    assert len({row[1] for row in logged}) == 1
    assert exported(exam) != before
    bank.revert(number)
    assert exported(exam) == before
    assert bank.improve().proposals == found.proposals


def test_reports_show_the_rounds_and_warn_until_they_are_undone(exam: exampp.Collection) -> None:
    bank = exam.bank()
    assert _section(exam, "bank") is None
    number = bank.version().number
    found = bank.improve()
    bank.accept(found, author="ann", reason="second look")
    bank.edit("reword", "q00/good3", "Why?", query_id="q00")
    section = _section(exam, "bank")
    assert section is not None
    count = len(found.proposals)
    shown, every = (
        [
            (row["by"], row["operation"], row["items"], row["changes"], row["reason"])
            for row in section["blocks"][at]["rows"]
        ]
        for at in (2, 3)
    )
    assert every[1][:4] == ("ann", "improve", count, f"{count} retired")
    assert every[1][4] == f"second look: {found.reason}"
    assert every[2][1:4] == ("edit", 1, "1 reworded")
    assert shown == [every[0], every[2]]
    assert section["verdict"] == (f"2 rounds of edits: {count} retired, 1 reworded. {_path(found)}")
    assert _path(found) in exam.grades()._repr_html_()
    assert _path(found) in bank._repr_html_()
    gain, first = found.gains[0], min(one.number for one in exam.grades().improvements()[0].items)
    (row,) = section["blocks"][0]["rows"]
    assert row == {
        "edits": f"{first} to {first + count - 1}",
        "by": "ann",
        "grader": exam.grades().grader.name,
        "systems": 30,
        "queries": 16,
        "retired": count,
        "added": 0,
        "before": round(gain.before, 3),
        "after": round(gain.after, 3),
        "gain": round(gain.difference.value or 0, 3),
        "gain_low": round(gain.difference.low or 0, 3),
        "gain_high": round(gain.difference.high or 0, 3),
        "decided cells": 0,
        "compared with": "",
        "state": "in force",
    }
    listed = section["blocks"][1]["rows"]
    assert sorted((one["query"], one["item"], one["change"]) for one in listed) == sorted(
        (one.query_id, one.item_id, "retired") for one in found.proposals
    )
    warning = f"{count} items of the bank were retired or added because of grades"
    assert warning in str(_section(exam, "summary"))
    assert warning in str(exam.grades().reliability().notes())
    bank.undo(first)
    (row,) = _rows(exam)
    assert (row["retired"], row["state"]) == (count - 1, f"{count - 1} of {count} items in force")
    assert "1 round was taken back in part, so no gain is known." in bank._repr_html_()
    bank.revert(number)
    assert warning not in str(_section(exam, "summary"))
    assert warning not in str(exam.grades().reliability().notes())
    assert "Improved in" not in bank._repr_html_() + exam.grades()._repr_html_()
    assert "Improved in" not in str(_section(exam, "bank"))


def test_an_item_that_is_reworded_after_it_was_added_stays_an_item_of_its_round(
    exam: exampp.Collection,
) -> None:
    bank = exam.bank()
    query, item = "q00", "q00/good3"
    bank.edit("weight", item, "0", query_id=query)
    found = bank.improve()
    proposal = Proposal(query, item, "add", None, None, (), "")
    bank.accept(replace(found, proposals=(proposal, *found.proposals[:2])))
    bank.edit("reword", item, "Which rocks?", query_id=query)
    (one,) = exam.grades().improvements()
    assert (one.size, one.retired, len(one.items)) == (3, 2, 3)
    bank.edit("retire", item, query_id=query)
    (one,) = exam.grades().improvements()
    assert (one.retired, one.state) == (2, "2 of 3 items in force")


def test_scores_say_that_people_had_a_part_in_the_choice(exam: exampp.Collection) -> None:
    bank = exam.bank()
    official = {name: at for at, name in enumerate(exam.grades().gradebook.systems, 1)}
    cell = exam.grades().gradebook.queries[0]
    exam.grades().decisions.decide(
        cell.query_id, cell.item_ids[0], cell.passage_ids[0], 5, author="ann"
    )
    number = bank.version().number
    found = bank.improve(official={"track.json": official})
    assert found.basis is not None
    assert (found.basis.decided, found.basis.leaderboards) == (1, ("track.json",))
    bank.accept(found)
    people = "1 cell decided by people had a part in the choice of items"
    shown = "Items were accepted after a look at track.json"
    for text in (people, shown):
        assert text in str(exam.grades().evaluate().notes)
        assert text in str(exam.grades().correlate(official).all_notes())
        assert text in str(_section(exam, "summary"))
        assert text in exam.grades()._repr_html_()
    (row,) = _rows(exam)
    assert (row["decided cells"], row["compared with"]) == (1, "track.json")
    bank.revert(number)
    for text in (people, shown):
        assert text not in str(exam.grades().evaluate().notes)
        assert text not in str(exam.grades().correlate(official).all_notes())


def test_the_list_of_items_in_a_report_has_no_sealed_texts(exam: exampp.Collection) -> None:
    bank = exam.bank()
    items = [f"q{at:02}/good3" for at in range(8)]
    for item in items:
        bank.edit("weight", item, "0", query_id=item[:3])
    found = bank.improve()
    added = tuple(Proposal(one[:3], one, "add", None, None, (), "") for one in items)
    bank.accept(replace(found, proposals=(*added, *found.proposals)))
    bank.split(0.5)
    sealed = bank.texts().sealed or ()
    section = _section(exam, "bank")
    assert section is not None
    rows = section["blocks"][1]["rows"]
    shown = {(row["query"], row["item"]): row["text"] for row in rows if row["change"] == "added"}
    assert {key for key, text in shown.items() if not text} == shown.keys() & sealed
    assert 0 < len(shown.keys() & sealed) < len(items)


def _path(found: Improvement) -> str:
    first = found.gains[0].difference
    return (
        f"Improved in 1 round: {len(found.proposals)} items retired. The gain was confirmed on "
        f"held-out systems ({first.value:+.3f}, interval {first.low:+.3f} to {first.high:+.3f}). "
        "Items chosen by the grades of scripted:question-self-rating on 30 systems."
    )


def _rows(exam: exampp.Collection) -> list[dict[str, Any]]:
    section = _section(exam, "bank")
    assert section is not None
    rows: list[dict[str, Any]] = section["blocks"][0]["rows"]
    return rows


def _section(exam: exampp.Collection, key: str) -> dict[str, Any] | None:
    path = exam.path.with_name("report.json")
    exam.grades().report(path)
    sections = json.loads(path.read_text())["sections"]
    return next((one for one in sections if one["key"] == key), None)


def test_every_round_is_undone_to_the_byte(exam: exampp.Collection) -> None:
    """Rounds end when no gain is confirmed; each revert restores the bank before its round."""
    bank = exam.bank()
    states = []
    while (found := bank.improve()).is_confirmed:
        states.append((bank.version().number, exported(exam)))
        bank.accept(found)
    assert states
    for number, content in reversed(states):
        bank.revert(number)
        assert exported(exam) == content


def test_a_fault_in_the_middle_of_a_round_changes_nothing(exam: exampp.Collection) -> None:
    bank = exam.bank()
    found = bank.improve()
    before, log = exported(exam), len(bank.log().rows)
    exam.connection.execute(
        "CREATE TEMP TRIGGER fault BEFORE INSERT ON main.item_edit "
        f"WHEN (SELECT count(*) FROM main.item_edit) > {log + 3} "
        "BEGIN SELECT RAISE(ABORT, 'the disk is gone'); END"
    )
    with pytest.raises(Exception, match="the disk is gone"):
        bank.accept(found)
    exam.connection.execute("DROP TRIGGER fault")
    assert exported(exam) == before
    assert len(bank.log().rows) == log
    bank.accept(found)
    assert exported(exam) != before


def test_nothing_is_accepted_without_a_confirmed_gain(exam: exampp.Collection) -> None:
    bank = exam.bank()
    while (found := bank.improve()).is_confirmed:
        bank.accept(found)
    before = exported(exam)
    with pytest.raises(InputError, match="no gain is confirmed"):
        bank.accept(found)
    assert exported(exam) == before


def test_an_edit_meanwhile_is_not_overwritten(exam: exampp.Collection) -> None:
    bank = exam.bank()
    found = bank.improve()
    bank.edit("retire", found.proposals[3].item_id)
    before = exported(exam)
    with pytest.raises(InputError):
        bank.accept(found)
    assert exported(exam) == before


def test_the_command_applies_and_names_the_command_that_takes_it_back(
    exam: exampp.Collection, exampp_command: Commands
) -> None:
    before, path = exported(exam), exam.path
    shown = exampp_command.line(f"exampp bank improve {path} --decide 3")
    assert shown.code == 0
    assert shown.out.startswith("Retire ")
    assert "Cells to decide first" in shown.out
    assert exported(exam) == before
    applied = exampp_command.line(f"exampp bank improve {path} --apply --reason 'first round'")
    assert applied.code == 0
    assert exported(exam) != before
    revert = applied.err.strip().splitlines()[-1].strip()
    assert exampp_command.line(revert).code == 0
    assert exported(exam) == before


def test_decisions_are_listed_for_the_exam_with_the_proposals(exam: exampp.Collection) -> None:
    found = exam.bank().improve(decisions=20)
    assert len(found.decisions) == 20
    retired = {one.item_id for one in found.proposals}
    assert not retired & {one.item_id for one in found.decisions}
    swaps = [one.swaps for one in found.decisions]
    assert swaps == sorted(swaps, reverse=True)


def test_items_answered_without_a_passage_are_faulty(exam: exampp.Collection) -> None:
    """The battery of attacks beside the exam shows them, once it is graded."""
    plain = exam.bank().improve()
    exam.bank().build_battery(settings=BatterySettings(targets=2, attacks=("A14",)))
    assert exam.bank().improve() == plain
    path = exam.path.with_name("my.attacks.exam")
    with exampp.Collection(path) as battery:
        battery.grade(rater({}), model="scripted")
    found = exam.bank().improve()
    assert not any("retire faults" in str(one.selection) for one in plain.tried)
    assert len(found.tried) == 2 * len(plain.tried)
    assert all(one.faults == ("no-passage",) for one in found.proposals)


def test_json_has_all_tables(exam: exampp.Collection, exampp_command: Commands) -> None:
    ran = exampp_command.line(f"exampp bank improve {exam.path} --format json --decide 2")
    shown = json.loads(ran.out)
    assert set(shown) == {"gain", "proposals", "selections", "decisions"}
    first = shown["gain"]["rows"][0]
    assert first["measure"] == "agreement of queries"
    assert first["difference_low"] > 0
    assert all(one["confirmed"] for one in shown["proposals"]["rows"])


def test_a_bank_without_grades_is_refused(
    small_exam: exampp.Collection, exampp_command: Commands
) -> None:
    ran = exampp_command.line(f"exampp bank improve {small_exam.path}")
    assert ran.code == 2
    assert "has no grades" in ran.err
    assert "exampp grade" in ran.err
    small_exam.grade("draft")
    ran = exampp_command.line(f"exampp bank improve {small_exam.path} --apply")
    assert ran.code == 0
    assert "No trial, because the exam has 2 queries" in ran.out
    assert "Nothing changed." in ran.err
