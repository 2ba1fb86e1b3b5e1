"""What an import changes is said, and what is graded or was edited is changed only on request."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exams
from support.commands import Commands

import exampp
from exampp.inputs.importing import ImportReport

QUESTION = exams.QUESTIONS["q1"][0]


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def told(report: ImportReport) -> dict[str, tuple[int, int, int, int]]:
    """(added, changed, removed, unchanged) of every kind of thing that changed."""
    found = {
        one.things: (one.added, one.changed, one.removed, one.unchanged)
        for one in report.differences
    }
    return {name: counts for name, counts in found.items() if any(counts[:3])}


def examples(report: ImportReport) -> list[str]:
    return [str(example) for one in report.differences for example in one.examples]


@pytest.fixture
def graded(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        yield collection


def test_an_import_says_what_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "my.exam"
    with exampp.Collection.create(path) as collection:
        report = collection.import_files(*exams.write_files(tmp_path / "files"))
        assert told(report) == {
            "queries": (2, 0, 0, 0),
            "passages": (4, 0, 0, 0),
            "systems": (2, 0, 0, 0),
            "rankings": (4, 0, 0, 0),
            "judgments": (4, 0, 0, 0),
            "items": (3, 0, 0, 0),
        }
        folder = tmp_path / "files"
        (folder / "systems.run").write_text("q1 Q0 p2 1 2.0 alpha\nq1 Q0 p3 1 1.0 gamma\n")
        (folder / "judgments.qrels").write_text("q1 0 p1 0\nq2 0 p4 1\n")
        (folder / "questions.tsv").write_text(
            "query_id\tquestion\tweight\nq2\tWhat makes a magnet?\t2\nq1\tWhy blue?\t1\n"
        )
        report = collection.import_files(*folder.iterdir())
        assert told(report) == {
            "systems": (1, 0, 0, 2),
            "rankings": (1, 1, 0, 3),
            "judgments": (1, 1, 0, 3),
            "items": (1, 1, 2, 0),
        }
        assert examples(report) == [
            "changed ranking alpha q1, passages: 'p1 p2' -> 'p2'",
            "changed judgment q1 p1, relevance: '3' -> '0'",
            f"changed item {item('What makes a magnet?', 'q2')}, weight: '1.0' -> '2.0'",
            f"removed item {item(QUESTION)}: '{QUESTION}'",
        ]


def item(text: str, query_id: str = "q1") -> str:
    from exampp.records import item_id

    return item_id(query_id, text)


# ---- what is graded ------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Path], Path]] = {
    "changed query q1, text: 'why is the sky blue' -> 'Because of the air.'": lambda folder: jsonl(
        folder / "queries.jsonl", {"query_id": "q1", "text": "Because of the air."}
    ),
    "changed passage p1, text: 'Air scatters blue": lambda folder: jsonl(
        folder / "passages.jsonl", {"id": "p1", "text": "Other."}
    ),
    "changed passage p1, title: '' -> 'Sky'": lambda folder: jsonl(
        folder / "passages.jsonl", {"id": "p1", "text": exams.PASSAGES["p1"], "title": "Sky"}
    ),
    "changed ranking alpha q1, passages: 'p1 p2' -> 'p2 p1'": lambda folder: written(
        folder / "new.run", "q1 Q0 p2 1 2 alpha\nq1 Q0 p1 2 1 alpha\n"
    ),
    "changed ranking alpha q1, ranks and scores: '1 2.0, 2 1.0' -> '1 9.0, 2 1.0'": lambda folder: (
        written(folder / "new.run", "q1 Q0 p1 1 9 alpha\nq1 Q0 p2 2 1 alpha\n")
    ),
    f"changed item {item(QUESTION)}, text: '{QUESTION}' -> 'Why?'": lambda folder: written(
        folder / "bank.tsv", f"query_id\titem_id\tquestion\nq1\t{item(QUESTION)}\tWhy?\n"
    ),
}


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_graded_changes_only_on_request(
    change: str, graded: exampp.Collection, tmp_path: Path
) -> None:
    before = exams.tables(graded.path)
    file = CHANGES[change](tmp_path)
    for dry_run in (True, False):
        with pytest.raises(exampp.InputError, match="nothing was imported") as caught:
            graded.import_files(file, dry_run=dry_run)
        assert change in str(caught.value)
        assert exams.tables(graded.path) == before
    assert change in "\n".join(examples(graded.import_files(file, update=True)))
    assert exams.tables(graded.path) != before


def test_what_is_not_graded_changes_and_is_told(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        for change, make in CHANGES.items():
            assert change in "\n".join(examples(collection.import_files(make(tmp_path))))
            collection.import_files(*exams.write_files(tmp_path / "files"))


def test_grades_change_only_on_request(graded: exampp.Collection, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    graded.export(out)
    assert told(graded.import_files(out)) == {}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    sheet = lines[0][1][0]["exam_grades"][0]
    rating = sheet["self_ratings"][0]["self_rating"]
    sheet["self_ratings"][0]["self_rating"] = 5 - rating
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(exampp.InputError, match=f"rating: '{rating}' -> '{5 - rating}'"):
        graded.import_files(out)
    assert told(graded.import_files(out, update=True))["grades"] == (0, 1, 0, 7)


# ---- what people edited --------------------------------------------------------------------------


def test_a_bank_leaves_what_people_edited(tmp_path: Path) -> None:
    """A bank with the first text of a question that was reworded and given a key."""
    with exams.make(tmp_path) as collection:
        collection.bank().edit("reword", item(QUESTION), "What scatters?", author="ann")
        collection.bank().edit("key", item(QUESTION), "blue light", author="ann")
        bank = tmp_path / "files" / "questions.tsv"
        assert collection.import_files(bank).changes == 0
        first = written(tmp_path / "first.tsv", f"query_id\tquestion\tweight\nq1\t{QUESTION}\t2\n")
        before = exams.tables(collection.path)
        with pytest.raises(exampp.InputError) as caught:
            collection.import_files(first)
        assert (
            "\n  item, edited or sealed by people (1):\n    changed item "
            f"{item(QUESTION)}, text: 'What scatters?' -> '{QUESTION}'"
        ) in str(caught.value)
        assert exams.tables(collection.path) == before
        report = collection.import_files(first, update=True)
        assert told(report)["items"] == (0, 1, 1, 1)


def test_a_file_does_not_bring_back_what_people_retired(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.bank().edit("retire", item(QUESTION))
        bank = written(tmp_path / "bank.tsv", f"query_id\tquestion\tweight\nq1\t{QUESTION}\t2\n")
        with pytest.raises(exampp.InputError, match=rf"added item {item(QUESTION)}: 'What does"):
            collection.import_files(bank)


# ---- looking first -------------------------------------------------------------------------------


def drawn_files(seed: int, folder: Path) -> list[Path]:
    """Some files that say something new, something known, or something else of what is known."""
    draw = random.Random(seed)
    folder.mkdir()
    texts = [*exams.PASSAGES.values(), "Another text.", "A third."]
    questions = [*exams.QUESTIONS["q1"], *exams.QUESTIONS["q2"], "Why so?", "What else?"]
    ids = [item(text, query) for query in ("q1", "q2") for text in questions[:3]]
    kind = draw.choice(["question", "nugget"])
    ranked = draw.sample(["p1", "p2", "p3", "p4", "p5"], 3)
    made = [
        jsonl(
            folder / "queries.jsonl",
            {"query_id": draw.choice(["q1", "q2", "q3"]), "text": draw.choice(questions)},
        ),
        jsonl(
            folder / "passages.jsonl",
            *({"id": f"p{n}", "text": draw.choice(texts)} for n in draw.sample(range(1, 7), 2)),
        ),
        written(
            folder / "bank.tsv",
            f"query_id\titem_id\t{kind}\tweight\n"
            + "".join(
                f"{draw.choice(['q1', 'q2'])}\t{one}\t{draw.choice(questions)}\t{weight}\n"
                for weight, one in enumerate(draw.sample(ids, 2), 1)
            ),
        ),
        written(
            folder / "some.run",
            "".join(f"q1 Q0 {p} {n} {5 - n} alpha\n" for n, p in enumerate(ranked, 1)),
        ),
        written(folder / "some.qrels", f"q1 0 {draw.choice(['p1', 'p4'])} {draw.choice([0, 3])}\n"),
    ]
    return draw.sample(made, draw.randint(1, 3))


def guarded(collection: exampp.Collection) -> Any:
    """Texts that are graded, and the items that people edited, as they are."""
    connection = collection.connection
    return [
        connection.execute(sql).fetchall()
        for sql in (
            "SELECT query_id, text FROM query WHERE query IN "
            "(SELECT query FROM item JOIN grade ON item_version = version)",
            "SELECT i.item_id, v.text FROM item i JOIN item_version v USING (version) "
            "WHERE version IN (SELECT item_version FROM grade)",
            "SELECT passage_id, title, text FROM passage p JOIN passage_version v USING (version) "
            "WHERE version IN (SELECT passage_version FROM grade)",
            "SELECT item_id, version, weight, answers, active, kind, subtopic FROM item "
            "WHERE item IN "
            "(SELECT item FROM item_edit WHERE operation NOT IN ('import', 'generate'))",
            "SELECT * FROM grade ORDER BY 1, 2, 3",
            "SELECT query, passage, rank, score FROM ranking WHERE system = 1 AND query = 1",
        )
    ]


@settings(max_examples=12)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_no_sequence_of_files_changes_what_is_protected(seeds: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with exams.make(folder) as collection:
            collection.bank().edit("reword", item(exams.QUESTIONS["q1"][1]), "Why red?")
            collection.grade("draft")
            collection.bank().edit("retire", item(QUESTION))
            before = guarded(collection)
            for number, seed in enumerate(seeds):
                files = drawn_files(seed, folder / str(number))
                options: dict[str, Any] = {"unknown_passages": "keep"}
                dump = exams.tables(collection.path)
                looked = outcome(collection, files, dry_run=True, **options)
                assert exams.tables(collection.path) == dump
                assert outcome(collection, files, **options) == looked
                if isinstance(looked, str):
                    assert exams.tables(collection.path) == dump
                assert guarded(collection) == before


def outcome(collection: exampp.Collection, files: list[Path], **options: Any) -> Any:
    try:
        report = json.loads(collection.import_files(*files, **options).to_json())
    except exampp.InputError as error:
        return str(error)
    # what it would do to a leaderboard is told by a dry run alone
    return {**report, "dry_run": None, "impact": None}


def test_a_dry_run_of_a_first_import_makes_no_file(
    tmp_path: Path, exampp_command: Commands
) -> None:
    files = exams.write_files(tmp_path / "files")
    path = tmp_path / "my.exam"
    looked = exampp_command("import", path, *files, "--dry-run")
    assert (looked.code, looked.err) == (0, "Nothing was imported (--dry-run).\n")
    assert [file.name for file in tmp_path.iterdir()] == ["files"]
    ran = exampp_command("import", path, *files)
    assert (ran.code, ran.err, ran.out) == (0, "", looked.out)


def test_what_changed_as_json(graded: exampp.Collection, exampp_command: Commands) -> None:
    qrels = written(graded.path.parent / "new.qrels", "q1 0 p1 0\n")
    found = json.loads(exampp_command("import", graded.path, qrels, "--format", "json").out)
    assert found["changes"]["judgments"] == {
        "before": 4,
        "after": 4,
        "added": 0,
        "changed": 1,
        "removed": 0,
        "unchanged": 3,
        "examples": [
            {
                "what": "changed",
                "thing": "judgment",
                "id": "q1 p1",
                "field": "relevance",
                "before": "3",
                "after": "0",
            }
        ],
    }
    assert found["files"] == [{"file": str(qrels), "kind": "qrels", "records": 1, "by_name": False}]


def test_a_refusal_is_an_error_of_the_command(
    graded: exampp.Collection, tmp_path: Path, exampp_command: Commands
) -> None:
    file = jsonl(tmp_path / "queries.jsonl", {"query_id": "q1", "text": "Because."})
    ran = exampp_command("import", graded.path, file)
    assert ran.code == 2
    assert ran.err.endswith("changed query q1, text: 'why is the sky blue' -> 'Because.'\n")
    assert exampp_command("import", graded.path, file, "--update").code == 0
