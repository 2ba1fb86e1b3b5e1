"""`exampp analyze` and `exampp compare`, as people and scripts use them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import exams
from support.commands import Commands, Ran

import exampp
from exampp.cli.analyze import agreement
from exampp.cli.command import Command
from exampp.errors import InputError, Undefined
from exampp.graders.scripted import ScriptedGrader
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
    assert "no cell has a decision" in nobody.stdout
    assert isinstance(nobody.exception, Undefined)
    with exampp.Collection(graded) as collection:
        (dossier,) = collection.grades().dossiers(["q1"])
        for passage, rating in (("p1", 5), ("p2", 0)):
            item = dossier.items[0].item_id
            collection.grades().decisions.decide("q1", item, passage, rating, author="anna")
    out = good(graded, "--against", "people", "--layout", "strict")
    assert re.search(r"Agreement of anna against draft.*: 2 cells of 1 query", out)


def test_a_grader_that_is_not_there(graded: Path) -> None:
    with pytest.raises(
        InputError, match=r"no grader matches\. Graders of this collection:\n  draft"
    ):
        run(graded, "--grader", "gpt")
    with pytest.raises(InputError, match="invalid minimum rating 7"):
        run(graded, "--min-rating", 7)
    assert run(graded, "--layout", "huge").exit_code == 2


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
        (["ann.qrels", "bob.qrels", "--grader", "nugget"], "--grader changes nothing here"),
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


# ---- `exampp analyze correlation` as a user runs it


@pytest.fixture
def ungraded(tmp_path: Path) -> Path:
    exams.make(tmp_path).close()
    return tmp_path / "my.exam"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_dl19_from_one_command(exampp_command: Commands, shared_data: Path) -> None:
    data = shared_data / "dl19"
    arguments = [
        *("analyze", "correlation", data / "graded.jsonl.gz"),
        *("--official", data / "official-leaderboard.json"),
        *("--qrels", data / "expected" / "qrels-best-rating.qrels"),
        *("--scores", data / "official-leaderboard.json"),
        *("--statistic", "spearman", "--statistic", "kendall", "--statistic", "tau_ap"),
        *("--samples", "200", "-m", "Cover@20", "-m", "nDCG@20"),
    ]
    ran = exampp_command(*arguments, "--format", "json")
    assert ran.code == 0, ran.err
    found = {
        (row["method"], row["measure"], row["min_rating"], row["statistic"]): row
        for row in json.loads(ran.out)["correlation"]["rows"]
    }
    ours, qrels = "google/flan-t5-large:question-self-rating", "qrels-best-rating.qrels"
    cover = json.loads((data / "expected" / "cover.json").read_text())["3"]["correlation_cover"]
    mine = found[ours, "Cover@20", 3, "spearman"]
    assert mine["value"] == pytest.approx(cover["spearman"], abs=1e-9)
    assert mine["low"] < mine["high"]
    assert mine["systems"] == 36
    assert found[qrels, "nDCG@20", None, "kendall"]["value"] == pytest.approx(
        found[ours, "nDCG@20", None, "kendall"]["value"], abs=1e-12
    )
    tau_ap = found["official-leaderboard.json", "as given", None, "tau_ap"]["value"]
    assert tau_ap == pytest.approx(1, abs=1e-12)
    text = exampp_command(*arguments).out
    assert "Left out, not in the official leaderboard: UNH_exDL_bm25" in text
    assert "*1.00*" in text
    latex = exampp_command(*arguments, "--format", "latex").out
    assert r"\multicolumn{3}{c}{Cover@20}" in latex
    assert r"\textbf{\textit{1.00}}" in latex


def test_several_collections_and_leaderboards(
    exampp_command: Commands, ungraded: Path, tmp_path: Path
) -> None:
    assert exampp_command("grade", ungraded, "--grader", "draft").code == 0
    other = tmp_path / "other.exam"
    other.write_bytes(ungraded.read_bytes())
    first = write(tmp_path / "first.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    second = write(tmp_path / "second.tsv", "system\trank\nalpha\t2\nbeta\t1\ngamma\t3\n")
    arguments = ["analyze", "correlation", ungraded, other]
    arguments += ["--official", first, "--official", second, "--qrels", tmp_path / "files"]
    arguments[-1] = tmp_path / "files" / "judgments.qrels"
    ran = exampp_command(*arguments, "--notes")
    assert ran.code == 0, ran.err
    assert "Rank correlation with first.tsv" in ran.out
    assert "Rank correlation with second.tsv" in ran.out
    assert "DRAFT GRADES: my.exam: draft" in ran.out
    assert "DRAFT GRADES: other.exam: draft" in ran.out
    assert "Left out, only in second.tsv: gamma." in ran.out
    ran = exampp_command(*arguments, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {row["official"] for row in rows} == {"first.tsv", "second.tsv"}
    signs = {
        row["official"]: float(row["value"])
        for row in rows
        if row["method"] == "judgments.qrels" and row["measure"] == "nDCG@20"
    }
    assert signs == {"first.tsv": 1, "second.tsv": -1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--statistic", "pearson"], "unknown rank statistic 'pearson'"),
        (["--measure", "Covr@20"], "Did you mean Cover"),
        (["--grader", "nobody"], "no grader matches"),
        (["--min-rating", "9"], "invalid minimum rating"),
        (["--qrels", "absent.qrels"], "absent.qrels"),
    ],
)
def test_bad_arguments(
    exampp_command: Commands,
    ungraded: Path,
    tmp_path: Path,
    options: list[str],
    said: str,
) -> None:
    assert exampp_command("grade", ungraded, "--grader", "draft").code == 0
    official = write(tmp_path / "official.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    ran = exampp_command("analyze", "correlation", ungraded, "--official", official, *options)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_no_grades_yet(exampp_command: Commands, ungraded: Path, tmp_path: Path) -> None:
    official = write(tmp_path / "official.tsv", "system\trank\nalpha\t1\nbeta\t2\n")
    ran = exampp_command("analyze", "correlation", ungraded, "--official", official)
    assert ran.code == 2
    assert "no grades yet" in ran.err


def test_nothing_computed_is_no_success(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        path = collection.path
    official = tmp_path / "official.json"
    official.write_text('{"gamma": 1, "delta": 2}')
    for style in ("text", "json"):
        ran = exampp_command(
            "analyze", "correlation", path, "--official", official, "--format", style
        )
        assert ran.code == 1
        assert "nothing could be computed: " in ran.err
        assert ran.out
    official.write_text('{"alpha": 1, "beta": 2}')
    assert exampp_command("analyze", "correlation", path, "--official", official).code == 0


# ---- `exampp analyze significance` and `exampp compare`, on a graded file and a colle


QUESTIONS = {"sky": "What does air scatter?", "sea": "How do whales breathe?"}
TEXTS = {
    "p0": "The air is thin. Air scatters blue light.",
    "p1": "It is dark. Whales breathe air at the surface.",
    "p2": "Nothing to see here.",
}
SYSTEMS = {"old": ["p0", "p2"], "new": ["p2", "p1"], "copy": ["p2", "p1"]}
RATINGS = {"p0": {"sky": 5, "sea": 1}, "p1": {"sky": 0, "sea": 4}, "p2": {"sky": 0, "sea": 0}}


def write_exam(folder: Path, queries: int = 8) -> tuple[Path, Path]:
    """A graded file and its bank: `old` covers the sky and `new` the sea, in every query."""
    lines, bank = [], []
    for number in range(queries):
        query_id = f"q{number}"
        # The last query has no answer about the sea.
        skill = {"sea": 0} if number == queries - 1 else {}
        passages = [
            {
                "paragraph_id": name,
                "text": text,
                "paragraph_data": {
                    "judgments": [],
                    "rankings": [
                        {
                            "method": system,
                            "paragraphId": name,
                            "queryId": query_id,
                            "rank": ranked.index(name) + 1,
                            "score": 10.0 - ranked.index(name),
                        }
                        for system, ranked in SYSTEMS.items()
                        if name in ranked
                    ],
                },
                "exam_grades": [grades(query_id, {**RATINGS[name], **skill})],
            }
            for name, text in TEXTS.items()
        ]
        lines.append(json.dumps([query_id, passages]))
        items = [
            {
                "query_id": query_id,
                "question_id": f"{query_id}/{item}",
                "question_text": text,
                "gold_answers": [],
            }
            for item, text in QUESTIONS.items()
        ]
        entry = {"query_id": query_id, "query_text": "air", "test_collection": "t", "items": items}
        bank.append(json.dumps(entry))
    graded, questions = folder / "graded.jsonl", folder / "bank.jsonl"
    graded.write_text("\n".join(lines) + "\n", encoding="utf-8")
    questions.write_text("\n".join(bank) + "\n", encoding="utf-8")
    return graded, questions


def grades(query_id: str, ratings: dict[str, int]) -> dict[str, Any]:
    rated = [{"question_id": f"{query_id}/{i}", "self_rating": r} for i, r in ratings.items()]
    return {
        "correctAnswered": [r["question_id"] for r in rated if r["self_rating"]],
        "wrongAnswered": [r["question_id"] for r in rated if not r["self_rating"]],
        "answers": [[r["question_id"], str(r["self_rating"])] for r in rated],
        "llm": "m",
        "llm_options": {},
        "exam_ratio": 0.5,
        "prompt_info": {
            "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
            "prompt_style": "s",
            "is_self_rated": True,
        },
        "self_ratings": rated,
    }


def rows(ran: Ran) -> list[dict[str, str]]:
    assert ran.code == 0, ran.err
    # the last of the tables that are written
    return list(csv.DictReader(io.StringIO(ran.out.split("\n\n")[-1])))


@pytest.fixture
def exam(tmp_path: Path) -> tuple[Path, Path]:
    return write_exam(tmp_path)


def test_significance_in_every_form(exam: tuple[Path, Path], exampp_command: Commands) -> None:
    graded, bank = exam
    shown = exampp_command("analyze", "significance", graded, "--bank", bank, "-m", "RR")
    assert shown.code == 0, shown.err
    # old answers at rank 1 and the others at rank 2, but for the last query: not at all.
    assert [line.split()[0::5] for line in shown.out.splitlines()[5:8]] == [
        ["old", "a"],
        ["copy", "b"],
        ["new", "b"],
    ]
    assert shown.out.startswith("2 of 3 pairs of systems (66.7%) are shown to behave differently")
    found = rows(
        exampp_command(
            "analyze", "significance", graded, "--bank", bank, "-m", "RR", "--format", "csv"
        )
    )
    assert [(row["system"], row["other"], row["p"], row["differs"]) for row in found] == [
        ("old", "copy", "0.0078125", "true"),
        ("old", "new", "0.0078125", "true"),
        ("copy", "new", "1.0", "false"),
    ]
    # (7 * 1/2 + 1) / 8
    assert float(found[0]["difference"]) == pytest.approx(4.5 / 8)
    both = json.loads(
        exampp_command("analyze", "significance", graded, "--bank", bank, "--format", "json").out
    )
    assert list(both) == ["Cover@20 \u22654", "nCover@20 \u22654", "nDCG@20", "pairs"]
    assert len(both["pairs"]["rows"]) == 9


def test_compare_explains_the_difference(
    exam: tuple[Path, Path], exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    # texts are cut to the width of the terminal
    monkeypatch.setenv("COLUMNS", "120")
    graded, bank = exam
    shown = exampp_command("compare", graded, "old", "new", "--bank", bank)
    assert shown.code == 0, shown.err
    assert "new covers 7 items that old does not, and misses 8 that old covers, of 16" in shown.out
    # The last query alone differs: 1/2 is lost.
    assert shown.out.count("How do whales breathe?") == 4
    assert "Whales breathe air at the surface." in shown.out
    found = rows(exampp_command("compare", graded, "old", "new", "--bank", bank, "--format", "csv"))
    assert len(found) == 15
    assert found[0] == {
        "query_id": "q7",
        "item_id": "q7/sky",
        "item": "What does air scatter?",
        "change": "lost",
        "passage_id": "p0",
        "rank": "1",
        "rating": "5",
        "other_best": "0",
        "quote": "Air scatters blue light.",
        "quoted": "sentence",
    }
    gained = next(row for row in found if row["change"] == "gained")
    assert (gained["passage_id"], gained["rank"], gained["rating"]) == ("p1", "2", "4")
    assert gained["quote"] == "Whales breathe air at the surface."


def test_a_collection_gives_what_its_file_gives(
    exam: tuple[Path, Path], tmp_path: Path, exampp_command: Commands
) -> None:
    graded, bank = exam
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(bank, graded)
    for options in (("old", "new"), ("copy", "old", "-m", "nDCG@5")):
        by_file, by_collection = (
            exampp_command("compare", *given, "--format", "csv")
            for given in ((graded, *options, "--bank", bank), (tmp_path / "my.exam", *options))
        )
        assert rows(by_file) == rows(by_collection)
        assert rows(by_file)


def test_a_graded_file_without_a_bank_says_why_it_quotes_nothing(
    exam: tuple[Path, Path], exampp_command: Commands
) -> None:
    ran = exampp_command("compare", exam[0], "old", "new")
    assert ran.code == 0, ran.err
    assert "A graded file has only ids of items: name a bank." in ran.out


@pytest.mark.parametrize("style", ["text", "json", "csv"])
def test_where_nothing_has_a_value_the_command_fails(
    exam: tuple[Path, Path], exampp_command: Commands, style: str
) -> None:
    """No rating of the file can be read: tables with their notes, then a sentence and 1."""
    graded, bank = exam
    graded.write_text(re.sub(r'"self_rating": \d', '"self_rating": "?"', graded.read_text()))
    for command in ("evaluate", "analyze agreement"):
        ran = exampp_command(*command.split(), graded, "--format", style)
        assert ran.code == 1, (command, ran.err)
        assert ran.out
        assert "nothing could be computed" in ran.err
    ran = exampp_command("compare", graded, "old", "new", "--bank", bank, "--format", style)
    assert (ran.code, ran.out) == (2, "")
    assert "No cell has a grade" in ran.err
    assert "exampp grade" in ran.err


def test_compare_shows_one_query_with_whole_quotes(
    exam: tuple[Path, Path], exampp_command: Commands
) -> None:
    graded, bank = exam
    given = ("compare", graded, "old", "new", "--bank", bank, "--query", "q0")
    shown = exampp_command(*given)
    assert shown.code == 0
    assert "new compared with old on q0 air, item by item" in shown.out
    assert "Only new covers 1 of 2 items, only old 1, both 0, neither 0." in shown.out
    assert shown.out.index("How do whales breathe?") < shown.out.index("What does air scatter?")
    found = rows(exampp_command(*given, "--format", "csv"))
    assert [(r["item"], r["covered_by"], r["system"], r["rank"], r["quote"]) for r in found] == [
        ("How do whales breathe?", "only new", "old", "1", ""),
        ("How do whales breathe?", "only new", "new", "2", "Whales breathe air at the surface."),
        ("What does air scatter?", "only old", "old", "1", "Air scatters blue light."),
        ("What does air scatter?", "only old", "new", "1", ""),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("old", "knew"), "unknown system 'knew'. Did you mean 'new'?"),
        (("old", "old"), "'old' is compared with itself"),
        (("old", "new", "--min-rating", "9"), "invalid minimum rating 9"),
        (("old", "new", "-k", "0"), "must be"),
        (("old", "new", "--query", "q77"), "unknown query 'q77'"),
        (("old", "new", "--query", "q0", "--queries", "2"), "Leave one of the two out"),
        (("old", "new", "-m", "Covr"), "unknown measure 'Covr'"),
    ],
)
def test_compare_refuses(
    exam: tuple[Path, Path], exampp_command: Commands, arguments: tuple[str, ...], says: str
) -> None:
    ran = exampp_command("compare", exam[0], *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_a_misspelt_measure_is_reported_before_the_grader_is_chosen(
    tmp_path: Path, exampp_command: Commands
) -> None:
    path = tmp_path / "my.exam"
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4"), model="m")
        collection.grade(ScriptedGrader("2"), model="m", prompt="thomas")
    for command in (["evaluate", path], ["analyze", "significance", path]):
        wrong = exampp_command(*command, "-m", "Coverr@5")
        assert "graders match" not in wrong.err
        assert "Coverr" in wrong.err
