"""Results of an attack battery: values by hand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Build
from support import attacked

import exampp
from exampp.analysis.attacks import families
from exampp.analysis.attacks.battery import BatterySettings
from exampp.analysis.attacks.families import Harm
from exampp.analysis.attacks.result import (
    AttackReport,
    AttackResult,
    Rates,
)
from exampp.errors import InputError
from exampp.stats.estimate import Estimate

ATTACKS = ("A3", "A9", "A10", "A14", "A15")


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
        return exam.grades().attacks()


def result(gaming: AttackReport, name: str) -> AttackResult:
    return next(one for one in gaming.attacks if one.attack.name == name)


def test_rates_beside_controls(gaming: AttackReport) -> None:
    # the grader looks for the subject, which the query names and no passage judged 0
    for name in ("A3-start", "A3-end", "A3-three"):
        one = result(gaming, name)
        assert (one.pairs, one.queries) == (16, 8)
        assert (one.cells.attack, one.cells.control, one.cells.lift.value) == (1.0, 0.0, 1.0)
        assert (one.targets.attack, one.targets.control) == (1.0, 0.0)
        assert one.cells.p == 2**-7


def test_attacks_that_this_grader_withstands(gaming: AttackReport) -> None:
    for name in ("homoglyphs", "zero-width", "full-width"):
        assert result(gaming, f"A15-{name}").cells.attack == 0.0
    one = result(gaming, "A10-after")
    assert (one.pairs, one.cells.attack, one.cells.control) == (8, 1.0, 1.0)
    assert one.finding == "no sign"


def test_holm_goes_over_all_attacks(gaming: AttackReport) -> None:
    # of eight tested three have 1 / 128, and five have 1
    assert result(gaming, "A3-end").holm == pytest.approx(8 / 128)
    assert result(gaming, "A15-homoglyphs").holm == 1.0
    assert result(gaming, "A3-end").finding == "no sign"


def test_replies_that_cannot_be_read_are_told_and_no_low_grades(gaming: AttackReport) -> None:
    one = result(gaming, "A9")
    assert one.unread == (1.0, 0.0)
    assert (one.pairs, one.cells.attack, one.finding) == (0, None, "")
    assert gaming.ungraded == 0


def test_closed_book(gaming: AttackReport) -> None:
    assert {one.texts: (one.items, one.rate) for one in gaming.guessing} == {
        "A14-empty": (0, None),
        "A14-shuffled": (16, 0.0),
        "A14-other": (16, 0.0),
    }
    assert len(gaming.guesses) == 16
    one = gaming.guesses[0]
    assert (one.hits, one.rate.low, one.luck.low) == (0, 0.0, 0.0)
    assert one.luck.high == pytest.approx(1 - (1 - (one.rate.high or 0)) ** 20)


def test_every_form_shows_it(gaming: AttackReport) -> None:
    shown = str(gaming)
    assert "whole query at the start" in shown
    assert "No grade for an empty passage." in shown
    found = json.loads(gaming.to_json())
    assert {row["attack"] for row in found["attacks"]["rows"]} >= {"A3-start", "A10-before"}
    assert found["attacks"]["rows"][0]["lift"] == 1.0
    assert len(found["closed_book"]["rows"]) == 16
    for style in ("tsv", "latex", "markdown", "html"):
        assert gaming.render(style)


def test_the_report_shows_attacks_where_the_grader_was_attacked(
    folder: Path, tmp_path: Path
) -> None:
    with exampp.open(folder / "my.exam") as exam:
        document = exam.grades().report()
    assert "attacks" in {one.key for one in document.sections}
    (line,) = [one for one in document.verdict if one.section == "attacks"]
    assert line.answer == "None of 8 attacks is shown to succeed."
    shutil.copy(folder / "my.exam", tmp_path / "alone.exam")
    with exampp.open(tmp_path / "alone.exam") as exam:
        assert "attacks" not in {one.key for one in exam.grades().report().sections}


def test_other_graders_have_not_graded_it(folder: Path, tmp_path: Path) -> None:
    with attacked.make(tmp_path / "my.exam") as exam:
        exam.grade(attacked.names_subject, name="other")
        for battery, why in (
            (None, "no attacks to show"),
            (folder / "my.attacks.exam", "has not graded the battery"),
            (tmp_path / "my.exam", "is not a battery of attacks"),
        ):
            with pytest.raises(InputError, match=why):
                exam.grades().attacks(battery)


def test_a_battery_stays_apart(folder: Path, tmp_path: Path) -> None:
    with exampp.open(folder / "my.attacks.exam") as battery:
        assert battery.grades().gradebook.systems == ()
        with pytest.raises(InputError, match="is a battery of attacks, not an exam"):
            battery.grades().attacks()
    with (
        attacked.make(tmp_path / "my.exam") as exam,
        pytest.raises(InputError, match="batteries of attacks are only merged with copies"),
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
