"""What a battery says of a grader, circularity and the ledger: values by hand and golden ones."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Build
from support import attacked
from support.gradebooks import make_book, make_query, make_ranking, official_ranks

import exampp
from exampp.analysis.attacks import families
from exampp.analysis.attacks.battery import BatterySettings
from exampp.analysis.attacks.families import Harm
from exampp.analysis.attacks.result import (
    AttackReport,
    AttackResult,
    AttackSettings,
    Rates,
    circularity,
    ledger,
    relisted,
)
from exampp.errors import InputError
from exampp.formats.system_models import SystemUse, read
from exampp.results.page import Facts
from exampp.stats.estimate import Estimate

ATTACKS = ("A3", "A9", "A10", "A13", "A14", "A15")


def deaf_to_assessors(item: Any, passage: Any) -> int | None:
    """Nothing where an assessor is spoken of, else as `names_subject`."""
    said = "judged this passage" in passage.text
    return None if said else attacked.names_subject(item, passage)


@pytest.fixture(scope="module")
def folder(built: Build) -> Path:
    def make(folder: Path) -> None:
        with attacked.make(folder / "my.exam") as exam:
            exam.grade(deaf_to_assessors, name="reader")
            exam.bank().build_battery(settings=BatterySettings(attacks=ATTACKS))
        with exampp.Collection(folder / "my.attacks.exam") as battery:
            battery.grade(deaf_to_assessors, name="reader", max_failures=1000)

    return built("gaming", make)


@pytest.fixture(scope="module")
def gaming(folder: Path) -> AttackReport:
    with exampp.open(folder / "my.exam") as exam:
        return exam.grades().attacks(settings=AttackSettings(k=1))


def result(gaming: AttackReport, name: str) -> AttackResult:
    assert gaming.battery is not None
    return next(one for one in gaming.battery.attacks if one.attack.name == name)


def test_rates_beside_controls(gaming: AttackReport) -> None:
    # the grader looks for the subject, which the query names and no passage judged 0
    for name in ("A3-start", "A3-end", "A3-three"):
        one = result(gaming, name)
        assert (one.pairs, one.queries) == (16, 8)
        assert (one.cells.attack, one.cells.control, one.cells.lift.value) == (1.0, 0.0, 1.0)
        assert (one.targets.attack, one.targets.control) == (1.0, 0.0)
        assert one.cells.p == 2**-7


def test_disguised_letters_are_not_what_the_grader_looks_for(gaming: AttackReport) -> None:
    for name in ("homoglyphs", "zero-width", "full-width"):
        assert result(gaming, f"A15-{name}").cells.attack == 0.0


def test_padding_hurts_no_grader_that_reads_all(gaming: AttackReport) -> None:
    one = result(gaming, "A10-after")
    assert (one.pairs, one.cells.attack, one.cells.control) == (8, 1.0, 1.0)
    assert one.finding == "no sign"


def test_a_near_miss_is_told_by_what_it_keeps(gaming: AttackReport) -> None:
    assert result(gaming, "A13").finding == "100% kept"


def test_holm_goes_over_all_attacks(gaming: AttackReport) -> None:
    # of nine tested three have 1 / 128, and six have 1
    assert result(gaming, "A3-end").holm == pytest.approx(9 / 128)
    assert result(gaming, "A15-homoglyphs").holm == 1.0
    assert result(gaming, "A3-end").finding == "no sign"


def test_replies_that_cannot_be_read_are_told_and_no_low_grades(gaming: AttackReport) -> None:
    one = result(gaming, "A9")
    assert one.unread == (1.0, 0.0)
    assert (one.pairs, one.cells.attack, one.finding) == (0, None, "")
    assert gaming.battery is not None
    assert gaming.battery.ungraded == 0


def test_closed_book(gaming: AttackReport) -> None:
    results = gaming.battery
    assert results is not None
    assert {one.texts: (one.items, one.rate) for one in results.guessing} == {
        "A14-empty": (0, None),
        "A14-shuffled": (16, 0.0),
        "A14-other": (16, 0.0),
    }
    assert len(results.guesses) == 16
    one = results.guesses[0]
    assert (one.hits, one.rate.low, one.luck.low) == (0, 0.0, 0.0)
    assert one.luck.high == pytest.approx(1 - (1 - (one.rate.high or 0)) ** 20)


def test_every_form_shows_it(gaming: AttackReport) -> None:
    shown = str(gaming)
    assert "whole query at the start" in shown
    assert "The grader has given no grade to an empty passage." in shown
    found = json.loads(gaming.to_json())
    assert {row["attack"] for row in found["attacks"]["rows"]} >= {"A3-start", "A10-before"}
    assert found["attacks"]["rows"][0]["lift"] == 1.0
    assert len(found["closed_book"]["rows"]) == 16
    for style in ("tsv", "latex", "markdown", "html"):
        assert gaming.render(style)


def test_the_report_has_a_certificate_where_the_grader_was_attacked(
    folder: Path, tmp_path: Path
) -> None:
    with exampp.open(folder / "my.exam") as exam:
        document = exam.grades().report()
    (section,) = [one for one in document.sections if one.key == "certificate"]
    facts = next(dict(block.rows) for block in section.blocks if isinstance(block, Facts))
    assert facts["Attacks"] == "None of 9 attacks is shown to succeed."
    assert facts["Replies that attacks make unreadable"] == "A9 100.0% (control 0.0%)"
    assert "flan-t5" not in facts["Systems that share something with grader or bank"]
    assert "re-ranked" in facts["Circularity"] or "Choose a smaller -k" in facts["Circularity"]
    assert facts["Sealed against public items"] == "no part of the bank is sealed"
    assert "seed 0" in facts["Battery"]
    shutil.copy(folder / "my.exam", tmp_path / "alone.exam")
    with exampp.open(tmp_path / "alone.exam") as exam:
        assert "certificate" not in {one.key for one in exam.grades().report().sections}


def test_other_graders_have_not_graded_it(folder: Path, tmp_path: Path) -> None:
    with attacked.make(tmp_path / "my.exam") as exam:
        exam.grade(attacked.names_subject, name="other")
        assert "No attack was tried" in exam.grades().attacks().no_battery
        found = exam.grades().attacks(folder / "my.attacks.exam")
        assert found.battery is None
        assert "has not graded the battery" in found.no_battery
        with pytest.raises(InputError, match="is no battery of attacks"):
            exam.grades().attacks(tmp_path / "my.exam")


def test_a_battery_stays_apart(folder: Path, tmp_path: Path) -> None:
    with exampp.open(folder / "my.attacks.exam") as battery:
        assert battery.grades().gradebook.systems == ()
        with pytest.raises(InputError, match="is a battery of attacks, and no exam"):
            battery.grades().attacks()
    with (
        attacked.make(tmp_path / "my.exam") as exam,
        pytest.raises(InputError, match="attacks on graders stay apart"),
    ):
        exam.merge(folder / "my.attacks.exam")


def test_findings_need_no_more_than_the_corrected_level() -> None:
    attack = next(one for one in families.ATTACKS if one.harm is Harm.FALL)
    rates = (0.1, 0.6)
    cells = Rates(*rates, Estimate(-0.5), 0.001)
    one = AttackResult(attack, 8, 8, cells, cells, (0.0, 0.0), 0.01)
    assert (one.finding, one.succeeds) == ("hurt", True)
    assert replace(one, holm=0.06).finding == "no sign"
    gains = replace(one, attack=next(a for a in families.ATTACKS if a.harm is Harm.RISE))
    assert (gains.finding, gains.succeeds) == ("lowered", False)


# ---- circularity ---------------------------------------------------------------------------------


def test_re_ranked_by_best_rating_then_sum_then_order() -> None:
    book = make_book(
        make_query(
            [[3, 3], [5, 0], [5, 1], [None, None], [3, 3]],
            make_ranking("one", [0, 1, 3, 2, 4]),
        )
    )
    (ranking,) = relisted(book, reranked=True).queries[0].rankings
    assert ranking.passages.tolist() == [2, 1, 0, 4, 3]
    assert np.all(np.diff(ranking.scores) < 0)


def test_nothing_changes_at_the_depth_of_the_rankings() -> None:
    book = make_book(make_query([[0], [5]], make_ranking("one", [0, 1]), query_id="q"))
    found = circularity(book, min_rating=4, min_relevant=2, k=1)
    assert [(row.measure, row.before, row.after) for row in found.rows] == [
        ("Cover@1", 0.0, 1.0),
        ("P@1", 0.0, 1.0),
    ]
    settled = make_query([[5], [0]], make_ranking("one", [0, 1]))
    settled = replace(settled, judgments=np.array([[3, 0]], np.int16))
    notes = circularity(make_book(settled), min_rating=4, min_relevant=2, k=1).notes
    assert notes[1].startswith("Re-ranking changes no score")
    (why,) = circularity(book, min_rating=4, min_relevant=2, k=2).notes
    assert "2 passages at most" in why
    none = make_book(make_query([[0]]))
    assert "No system returned" in circularity(none, min_rating=4, min_relevant=2).notes[0]
    with pytest.raises(InputError, match="k must be 1 or more"):
        circularity(book, min_rating=4, min_relevant=2, k=0)


def test_circularity_of_dl_2019(shared_data: Path) -> None:
    golden = json.loads((shared_data / "science/dl19-circularity.json").read_text())
    official = {"dl": official_ranks()}
    with exampp.open(shared_data / "dl19/graded.jsonl.gz") as file:
        book = file.grades().gradebook
    for rating, k in ((4, 5), (5, 10)):
        found = circularity(book, min_rating=rating, min_relevant=2, officials=official, k=k)
        expected = golden[f"min rating {rating}, k {k}"]
        for row, name in zip(found.rows, ("cover", "exam_P", "human_P"), strict=True):
            got = (row.before, row.after, row.tau_before, row.tau_after)
            assert got == pytest.approx(tuple(expected[name].values()), abs=1e-9), (rating, k)


# ---- the ledger ----------------------------------------------------------------------------------


def test_ties_by_name_and_by_what_people_say() -> None:
    systems = ("bm25", "flan-t5-reranker", "dense", "secret")
    query = make_query([[5]], *(make_ranking(name, [0]) for name in systems))
    book = make_book(query)
    grader = replace(book.grader, model="google/flan-t5-large", prompt="question-self-rating")
    uses = [
        SystemUse("dense", "flan-t5-large", "uses.csv:2"),
        SystemUse("dense", "question-self-rating", "uses.csv:3"),
        SystemUse("dense", book.bank, "uses.csv:4"),
        SystemUse("bm25", "nothing", "uses.csv:5"),
        SystemUse("gone", "gpt-4", "uses.csv:6"),
    ]
    found = ledger(replace(book, grader=grader), {"gpt-4o": 10}, 10, uses)
    assert [(tie.system, tie.shares, tie.whose, tie.known) for tie in found.ties] == [
        ("flan-t5-reranker", "family T5", "grader", "its name"),
        ("dense", "model google/flan-t5-large", "grader", "uses.csv:2"),
        ("dense", "the prompt", "grader", "uses.csv:3"),
        ("dense", "the items", "bank", "uses.csv:4"),
    ]
    assert found.unknown == ("secret",)
    assert "Not in the exam, and left out: gone." in found.notes
    assert any("made by gpt-4o (family GPT)" in note for note in found.notes)


def test_a_system_of_the_family_that_made_the_bank() -> None:
    book = make_book(make_query([[5]], make_ranking("gpt-rag", [0])))
    (tie,) = ledger(book, {"gpt-4o": 1}, 1).ties
    assert (tie.shares, tie.whose) == ("family GPT", "bank")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("system,model\na,b\n", "the columns are 'system', 'model'"),
        ("system,uses\na\n", "1 cell, but the header has 2"),
        ("system,uses\na,\n", "is empty"),
        ("", "the file is empty"),
    ],
)
def test_a_table_of_uses_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "uses.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "uses.csv")


def test_a_table_of_uses(tmp_path: Path) -> None:
    (tmp_path / "uses.tsv").write_text("System\tUses\nbm25\tnothing\n bm25 \tnothing\na\tb,c\n")
    assert read(tmp_path / "uses.tsv") == [
        SystemUse("bm25", "nothing", "uses.tsv:2"),
        SystemUse("a", "b,c", "uses.tsv:4"),
    ]
