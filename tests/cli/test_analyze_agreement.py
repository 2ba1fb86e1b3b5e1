"""`exampp analyze agreement`, as people and scripts use it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import exams

import exampp
from exampp.cli.analyze import agreement
from exampp.cli.command import Command
from exampp.errors import InputError, Undefined
from exampp.results.result import STYLES

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
            collection.grades().decisions.decide("q1", item, passage, rating, author="anna")
    out = good(graded, "--against", "people", "--layout", "strict")
    assert re.search(r"Agreement of anna against draft.*: 2 cells of 1 query", out)


def test_a_grader_that_is_not_there(graded: Path) -> None:
    with pytest.raises(InputError, match=r"no grader fits; these graded:\n  draft"):
        run(graded, "--grader", "gpt")
    with pytest.raises(InputError, match="7 makes no sense"):
        run(graded, "--min-rating", 7)
    assert run(graded, "--layout", "huge").exit_code == 2


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


# ---- qrels ---------------------------------------------------------------------------------------

ANN = "q1 0 p1 3\nq1 0 p2 1\nq1 0 p4 0\nq2 0 p3 2\n"
BOB = "q1 0 p1 2\nq1 0 p2 1\nq1 0 p4 1\nq2 0 p3 0\nq9 0 p9 1\n"


@pytest.fixture
def qrels(tmp_path: Path) -> tuple[Path, Path]:
    for name, text in (("ann.qrels", ANN), ("bob.qrels", BOB)):
        (tmp_path / name).write_text(text)
    return tmp_path / "ann.qrels", tmp_path / "bob.qrels"


def values(out: str, layout: str) -> dict[tuple[str, str, str], float]:
    rows = json.loads(out)["agreement"]["rows"]
    return {
        (row["rater"], row["against"], row["statistic"]): row["value"]
        for row in rows
        if row["layout"] == layout
    }


def test_two_label_files_have_a_kappa(qrels: tuple[Path, Path]) -> None:
    """STRICT: of p1 p2 p4 p3 ann has 1 0 0 1, bob 1 0 0 0: kappa (3/4 - 1/2) / (1 - 1/2)."""
    found = values(good(*qrels, "--format", "json"), "STRICT")
    assert found["ann.qrels", "bob.qrels", "kappa"] == pytest.approx(0.5)
    text = good(*qrels, "--layout", "graded")
    assert "GRADED: ann.qrels against bob.qrels (relevant: 2+)" in text
    assert "4 passages of 2 queries" in text
    # 3, 1, 0, 2 against 2, 1, 1, 0 by hand: one of four alike, by chance 4/16
    graded = values(good(*qrels, "--format", "json"), "GRADED")
    assert graded["ann.qrels", "bob.qrels", "kappa"] == pytest.approx((1 / 4 - 4 / 16) / (3 / 4))


def test_qrels_against_a_collection(graded: Path, qrels: tuple[Path, Path]) -> None:
    out = good(graded, qrels[1], "--layout", "strict", "--at-least", 1, "--format", "json")
    found = values(out, "STRICT")
    # the judgments of the collection are those of ann
    assert found["bob.qrels", "the judgments", "kappa"] == pytest.approx(0.5)
    assert ("draft", "bob.qrels", "kappa") in found
    with exampp.open(graded) as opened:
        from exampp.formats import trec

        blocks = opened.panel().agreement(qrels={"bob": list(trec.read_qrels(qrels[1]))}).judged
    assert ("bob", "the judgments") in {(block.rater, block.against) for block in blocks}


def test_qrels_of_subtopics_meet_judgments_of_subtopics(tmp_path: Path) -> None:
    for name, label in (("one.qrels", 1), ("two.qrels", 0)):
        lines = [f"q{n}/s 0 p 1\nq{n}/s 0 r {label}\n" for n in range(3)]
        (tmp_path / name).write_text("".join(lines))
    found = values(
        good(tmp_path / "one.qrels", tmp_path / "two.qrels", "--format", "json"), "GRADED"
    )
    assert found["one.qrels", "two.qrels", "kappa"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ann.qrels"], "ann.qrels has nothing to be compared with"),
        (["ann.qrels", "bob.qrels", "--kind", "nugget"], "--kind changes nothing here"),
        (["ann.qrels", "bob.qrels", "--against", "graders"], "not against graders"),
        (["ann.qrels", "bob.qrels", "--min-relevant", "4"], "judgments from 0 to 3"),
        (["my.exam", "my.exam", "ann.qrels"], "my.exam is a second collection"),
        (["ann.qrels", "missing.qrels"], "no such file"),
    ],
)
def test_qrels_that_cannot_be_compared(
    arguments: list[str],
    said: str,
    graded: Path,
    qrels: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(graded.parent)
    ran = CliRunner().invoke(app, arguments)
    assert said in f"{ran.output}{ran.exception}"
