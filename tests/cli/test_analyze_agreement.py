"""`exampp analyze agreement`, as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import exams
import pytest
from click.testing import CliRunner, Result

import exampp
from exampp.cli.analyze_agreement import agreement
from exampp.cli.command import Command
from exampp.errors import InputError, Undefined
from exampp.report.table import STYLES

app = Command("agreement", agreement)


def run(*arguments: object) -> Result:
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(ran.exception, InputError):
        raise ran.exception
    return ran


def good(*arguments: object) -> str:
    ran = run(*arguments)
    assert ran.exit_code == 0, ran.output
    assert "nan" not in ran.stdout.lower()
    return ran.stdout


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """The small exam with its judgments, graded by the draft grader."""
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        return collection.path


@pytest.mark.parametrize("style", STYLES)
def test_a_collection_in_every_style(graded: Path, style: str) -> None:
    out = good(graded, "--format", style)
    assert "STRICT" in out
    assert "draft" in out


def test_numbers_for_machines(graded: Path) -> None:
    """Four judged passages of two queries; the counts and the statistics belong together."""
    found = json.loads(good(graded, "--at-least", 1, "--min-relevant", 1, "--format", "json"))
    for layout in ("GRADED", "MERGE", "LENIENT", "STRICT"):
        counts = [r["count"] for r in found["confusion"]["rows"] if r["layout"] == layout]
        assert sum(counts) == 4
    assert {row["units"] for row in found["agreement"]["rows"]} == {4}
    assert any("draft grades" in note for note in found["agreement"]["notes"])
    table, values, _ = good(graded, "--at-least", 1, "--format", "csv").split("\n\n")
    assert "count" in table.splitlines()[0].split(",")
    for row in csv.DictReader(io.StringIO(values)):
        assert row["value"] or row["reason"]


def test_options_choose_what_is_shown(graded: Path) -> None:
    out = good(graded, "--layout", "lenient", "--at-least", 2, "--at-least", 3)
    assert set(re.findall(r"GRADED|MERGE|LENIENT|STRICT", out)) == {"LENIENT"}
    assert "2nd best rating" in out
    assert "3rd best rating" in out
    alone = run(graded, "--against", "graders")
    assert "only one grader" in alone.stdout
    assert isinstance(alone.exception, Undefined)


def test_people_stand_beside_the_grader(graded: Path) -> None:
    nobody = run(graded, "--against", "people")
    assert "nobody has decided" in nobody.stdout
    assert isinstance(nobody.exception, Undefined)
    with exampp.Collection(graded) as collection:
        (dossier,) = collection.grades().dossiers(["q1"])
        for passage, rating in (("p1", 5), ("p2", 0)):
            item = dossier.items[0].item_id
            collection.grades().decide("q1", item, passage, rating, author="anna")
    out = good(graded, "--against", "people", "--layout", "strict")
    assert re.search(r"Agreement of anna against draft.*: 2 cells of 1 query", out)


def test_a_grader_that_is_not_there(graded: Path) -> None:
    with pytest.raises(InputError, match=r"no grader fits; these graded:\n  draft"):
        run(graded, "--grader", "gpt")
    with pytest.raises(InputError, match="7 makes no sense"):
        run(graded, "--min-rating", 7)
    assert run(graded, "--layout", "huge").exit_code == 2


def test_published_tables_from_one_command(shared_data: Path) -> None:
    """S4's tables of DL 2019 and their kappas, .36 and .34."""
    out = good(shared_data / "dl19" / "graded.jsonl.gz")
    for row in (
        r"4\+5 +1439 +1356 +2795 +0\.36 ",
        r"0\+1\+2\+3 +1062 +5403 +6465",
        r"1\+2\+3\+4\+5 +1627 +1809 +3436 +0\.34 ",
        r"0 +874 +4950 +5824",
    ):
        assert re.search(row, out)


def test_grader_against_grader_on_real_data(shared_data: Path) -> None:
    path = shared_data / "llmjudge" / "test-graded.jsonl.gz"
    names = [
        option
        for prompt in ("question-self-rating", "nugget-self-rating", "nugget-extraction")
        for option in ("--grader", f"google/flan-t5-large:{prompt}")
    ]
    out = good(path, *names, "--at-least", 1, "--layout", "lenient")
    assert "because there are no judgments" in out
    assert out.count("Agreement of google/") == 3
    assert "alpha of all 3 graders" in out
    assert "4,423 passages of 25 queries" in out
