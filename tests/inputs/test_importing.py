"""Importing: all or nothing, twice is once, and a changed text makes exactly its cells due."""

from __future__ import annotations

import itertools
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
from exampp.errors import InputError
from exampp.inputs.importing import ImportReport
from exampp.records import item_id
from exampp.store.cells import GradingScope, pending_cells


def cells(collection: exampp.Collection) -> set[tuple[str, str]]:
    """(question, passage text) of everything due for nobody in particular."""
    return {
        (one.item, one.passage)
        for one in pending_cells(collection.connection, None, GradingScope("question", "main"))
    }


def test_everything_arrives_in_any_order_of_files(tmp_path: Path) -> None:
    files = exams.write_files(tmp_path / "files")
    for seed in range(4):
        random.Random(seed).shuffle(files)
        with exampp.Collection.create(tmp_path / f"{seed}.exam") as collection:
            report = collection.import_files(*files)
        assert report.after == {
            "queries": 2,
            "subtopics": 0,
            "passages": 4,
            "systems": 2,
            "rankings": 4,
            "judgments": 4,
            "items": 3,
            "grades": 0,
            "decided cells": 0,
            "deciders": 0,
            "disputed cells": 0,
            "decided cells of earlier texts": 0,
        }


def test_an_import_leaves_the_cache_as_it_was(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    def cache() -> object:
        return small_exam.connection.execute("PRAGMA main.cache_size").fetchone()[0]

    before = cache()
    file = tmp_path / "queries.jsonl"
    file.write_text("query,text\n1,one\n")
    with pytest.raises(InputError):
        small_exam.import_files(file)
    assert cache() == before
    small_exam.import_files(*exams.write_files(tmp_path / "files"))
    assert cache() == before


def test_importing_again_changes_nothing(tmp_path: Path, small_exam: exampp.Collection) -> None:
    files = exams.write_files(tmp_path / "files")
    before = exams.tables(small_exam.path)
    assert small_exam.import_files(*files).changes == 0
    assert small_exam.import_files(*reversed(files)).changes == 0
    assert exams.tables(small_exam.path) == before


def test_what_is_due_is_the_pool_times_the_bank(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    texts = exams.PASSAGES
    assert cells(small_exam) == {
        ("What does air scatter?", texts["p1"]),
        ("What does air scatter?", texts["p2"]),
        ("What does air scatter?", texts["p4"]),
        ("Why are sunsets red?", texts["p1"]),
        ("Why are sunsets red?", texts["p2"]),
        ("Why are sunsets red?", texts["p4"]),
        ("What makes a magnet?", texts["p3"]),
        ("What makes a magnet?", texts["p4"]),
    }


def test_a_changed_run_replaces_its_system(tmp_path: Path, small_exam: exampp.Collection) -> None:
    run = tmp_path / "new.run"
    run.write_text("q1 Q0 p4 1 5 alpha\nq1 Q0 p1 2 4 alpha\n")
    small_exam.import_files(run)
    out = tmp_path / "out.run"
    small_exam.export(out, "runs")
    assert out.read_text().splitlines() == [
        "q1 Q0 p4 1 5.0 alpha",
        "q1 Q0 p1 2 4.0 alpha",
        "q2 Q0 p3 1 2.0 alpha",  # a query that the new file does not speak of
        "q1 Q0 p4 1 1.0 beta",
        "q2 Q0 p4 1 1.5 beta",
    ]


def test_people_s_edits_outlast_the_import_of_the_same_bank(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    item = item_id("q1", exams.QUESTIONS["q1"][0])
    small_exam.bank().edit(
        "reword", item, "What colour does air scatter most?", author="ann", reason="clearer"
    )
    bank = tmp_path / "files" / "questions.tsv"
    assert small_exam.import_files(bank).changes == 0
    assert "What colour does air scatter most?" in {item for item, _ in cells(small_exam)}
    bank.write_text(bank.read_text().replace("Why are", "Why, then, are"))
    small_exam.import_files(bank)
    assert {item for item, _ in cells(small_exam)} >= {
        "What colour does air scatter most?",
        "Why, then, are sunsets red?",
    }


def test_ids_known_from_grades_get_their_text_from_the_bank(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """A graded file names questions by id alone; its grades stay valid when the bank comes."""
    from exampp.records import item_id

    text = "What does air scatter?"
    grade = {
        "correctAnswered": [item_id("q1", text)],
        "wrongAnswered": [],
        "answers": [[item_id("q1", text), "5"]],
        "llm": "m",
        "llm_options": {},
        "exam_ratio": 1.0,
        "self_ratings": [{"question_id": item_id("q1", text), "self_rating": 5}],
    }
    graded = tmp_path / "graded.jsonl"
    entry = {
        "paragraph_id": "p1",
        "text": exams.PASSAGES["p1"],
        "paragraph_data": {"judgments": [], "rankings": []},
        "exam_grades": [grade],
    }
    graded.write_text(json.dumps(["q1", [entry]]))
    empty_exam.import_files(graded)
    assert cells(empty_exam) == set()
    bank = tmp_path / "bank.tsv"
    bank.write_text(f"query_id\tquestion\nq1\t{text}\nq1\tWhy are sunsets red?\n")
    empty_exam.import_files(bank)
    key = empty_exam.connection.execute("SELECT grader FROM grader").fetchone()[0]
    left = [
        one.item
        for one in pending_cells(empty_exam.connection, key, GradingScope("question", "main"))
    ]
    assert left == ["Why are sunsets red?"]
    book = empty_exam.grades().gradebook
    assert book.queries[0].ratings.tolist() == [[5, -32768]]


@pytest.mark.parametrize(
    ("run", "what"),
    [
        ("q9 Q0 p1 1 1 s\n", r"query 'q9' is not in the collection"),
        ("q1 Q0 p9 1 1 s\n", r"passage 'p9' is not in the collection"),
        ("q1 Q0 p1 1 1 s\nq1 Q0 p2 2\n", r"bad.run:2: 4 columns instead of the 6"),
        ("q1 Q0 p1 1 1 s\nq1 Q0 p1 2 0.5 s\n", r"bad.run:2, passage: .* was already on line 1"),
    ],
)
def test_a_bad_file_leaves_the_collection_as_it_was(
    run: str, what: str, tmp_path: Path, small_exam: exampp.Collection
) -> None:
    before = exams.tables(small_exam.path)
    bad, good = tmp_path / "bad.run", tmp_path / "passages.jsonl"
    bad.write_text(run)
    good.write_text('{"id": "p5", "text": "New."}\n')
    with pytest.raises(exampp.InputError, match=what):
        small_exam.import_files(good, bad, kind=None)
    assert exams.tables(small_exam.path) == before
    # the connection is fit for use after the error
    assert small_exam.import_files(good).changes > 0


def test_skipped_lines_are_counted(tmp_path: Path, small_exam: exampp.Collection) -> None:
    run = tmp_path / "some.run"
    run.write_text("q1 Q0 p1 1 1 s\nq9 Q0 p1 1 1 s\nq1 Q0 p9 2 0.5 s\nq1 Q0 p2 3 nan s\n")
    report = small_exam.import_files(run, on_error="skip")
    assert (report.skipped, [error.line for error in report.skipped_first]) == (3, [2, 3, 4])
    assert report.after["rankings"] - report.before["rankings"] == 1


def test_unknown_passages_may_be_kept_as_ungraded(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    run = tmp_path / "some.run"
    run.write_text("q1 Q0 p9 1 2 s\nq1 Q0 p1 2 1 s\n")
    small_exam.import_files(run, unknown_passages="keep")
    small_exam.grade("draft")
    board = small_exam.grades().evaluate(["Cover@20"], min_rating=1)
    shares = {row.system: row.ungraded for row in board.rows}
    assert shares["s"] == 0.5


def test_subtopics_of_runs_and_qrels(tmp_path: Path, small_exam: exampp.Collection) -> None:
    (tmp_path / "sub.run").write_text("q1/light Q0 p1 1 1 s\nq1/dusk Q0 p2 1 1 s\n")
    (tmp_path / "sub.qrels").write_text("q1/light 0 p1 2\n")
    small_exam.import_files(tmp_path / "sub.run", tmp_path / "sub.qrels")
    query = collection_gradebook_of_nobody(small_exam)
    assert query.subtopic_ids == ("dusk", "light") or query.subtopic_ids == ("light", "dusk")
    subtopics = {r.subtopic: query.passage_ids[r.passages[0]] for r in query.rankings if r.subtopic}
    named = {query.subtopic_ids[subtopic - 1]: passage for subtopic, passage in subtopics.items()}
    assert named == {"light": "p1", "dusk": "p2"}


def collection_gradebook_of_nobody(collection: exampp.Collection) -> exams.QueryGrades:
    from exampp.records import GraderIdentity
    from exampp.store.grades import StoredGrader
    from exampp.store.read_model import read_gradebook

    nobody = StoredGrader(0, GraderIdentity("nobody", "none", "question"))
    return read_gradebook(collection.connection, nobody, "main").queries[0]


def test_a_corrected_bank_without_ids_replaces_its_questions(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    bank = tmp_path / "files" / "questions.tsv"
    bank.write_text(bank.read_text().replace("Why are sunsets red?", "Why is a sunset red?"))
    report = small_exam.import_files(bank)
    assert (report.retired, report.after["items"]) == (1, 3)
    assert small_exam.import_files(bank).changes == 0
    # the retired question comes back with its file
    bank.write_text(bank.read_text().replace("Why is a sunset red?", "Why are sunsets red?"))
    assert small_exam.import_files(bank).retired == 1
    assert {item for item, _ in cells(small_exam)} == {
        text for texts in exams.QUESTIONS.values() for text in texts
    }


def test_a_bank_says_nothing_of_other_queries_and_kinds(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    nuggets = tmp_path / "nuggets.tsv"
    nuggets.write_text("query_id\tnugget\nq1\tblue light scatters\n")
    assert small_exam.import_files(nuggets).retired == 0
    bank = tmp_path / "bank.tsv"
    bank.write_text("query_id\tquestion\nq2\tWhat makes a magnet?\n")
    assert small_exam.import_files(bank).retired == 0


def test_one_import_has_one_text_for_a_passage(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    for number in (1, 2):
        (tmp_path / f"passages-{number}.jsonl").write_text(
            f'{{"passage_id": "p8", "text": "Text {number}."}}\n'
        )
    with pytest.raises(exampp.InputError, match=r"passages-2.*'p8' has two different texts"):
        small_exam.import_files(tmp_path / "passages-1.jsonl", tmp_path / "passages-2.jsonl")
    small_exam.import_files(tmp_path / "passages-1.jsonl")
    assert small_exam.import_files(tmp_path / "passages-2.jsonl").changes > 0


def test_titles_survive_export_and_import(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        passages = tmp_path / "passages.jsonl"
        passages.write_text(
            json.dumps({"passage_id": "p1", "title": "Sky", "text": "Blue."}) + "\n"
        )
        collection.import_files(passages)
        collection.grade("draft")
        out = tmp_path / "out.jsonl"
        collection.export(out)
        assert collection.import_files(out).after == collection.import_files(out).before
        assert list(collection.grading("draft").pending()) == []
        with exampp.Collection.create(tmp_path / "again.exam") as again:
            again.import_files(out)
            assert again.import_files(passages, tmp_path / "files" / "questions.tsv").changes > 0
            assert list(again.grading("draft").pending()) == []


def test_an_edited_question_exports_once(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        bank = tmp_path / "bank.tsv"
        bank.write_text("query_id\titem_id\tquestion\nq2\ti1\tWhat makes a magnet?\n")
        collection.import_files(bank, bank="own")
        collection.grade("draft", bank="own")
        bank.write_text("query_id\titem_id\tquestion\nq2\ti1\tWhat, then, makes a magnet?\n")
        collection.import_files(bank, bank="own", update=True)
        collection.grade("draft", bank="own")
        out = tmp_path / "out.jsonl"
        collection.export(out)
        with exampp.Collection.create(tmp_path / "again.exam") as again:
            assert again.import_files(out).after["grades"] == 2


def test_a_prompt_that_names_the_query_is_due_when_the_query_changes(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    from exampp.graders.scripted import ScriptedGrader

    mine = tmp_path / "mine.toml"
    mine.write_text(
        'name = "mine"\ntitle = "t"\nsource = "s"\ngrades = "question"\nreading = "rating"\n'
        'scale = { lowest = 0, highest = 5 }\nslots = ["query", "question", "context"]\n'
        'cut = "context"\nuser = "{query}? {question} {context}"\n'
    )
    options: dict[str, Any] = {"prompt": str(mine), "model": "m"}
    assert small_exam.grade(ScriptedGrader("4"), **options).done == 8
    assert small_exam.grade(ScriptedGrader("4"), **options).total == 0
    queries = tmp_path / "files" / "queries.json"
    queries.write_text(queries.read_text().replace("magnets", "compasses"))
    small_exam.import_files(queries, update=True)
    assert small_exam.grade(ScriptedGrader("4"), **options).done == 2
    assert small_exam.grade(ScriptedGrader("4"), **options).total == 0


def test_a_file_is_opened_to_be_told_read_and_digested(
    tmp_path: Path, empty_exam: exampp.Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six looks at how it starts, of which three are for data sets and other programs."""
    opened: list[Path] = []
    real = Path.open

    def counted(path: Path, *how: Any, **more: Any) -> Any:
        opened.append(path)
        return real(path, *how, **more)

    files = exams.write_files(tmp_path / "files")
    monkeypatch.setattr(Path, "open", counted)
    empty_exam.import_files(*files)
    assert {path: opened.count(path) for path in files if opened.count(path) > 8} == {}
    assert all(path in opened for path in files)


# ---- updates -------------------------------------------------------------------------------------


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


def test_what_is_not_graded_changes_and_is_told(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    for change, make in CHANGES.items():
        assert change in "\n".join(examples(small_exam.import_files(make(tmp_path))))
        small_exam.import_files(*exams.write_files(tmp_path / "files"))


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


def test_a_file_does_not_bring_back_what_people_retired(
    tmp_path: Path, small_exam: exampp.Collection
) -> None:
    small_exam.bank().edit("retire", item(QUESTION))
    bank = written(tmp_path / "bank.tsv", f"query_id\tquestion\tweight\nq1\t{QUESTION}\t2\n")
    with pytest.raises(exampp.InputError, match=rf"added item {item(QUESTION)}: 'What does"):
        small_exam.import_files(bank)


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


# ---- files that differ ---------------------------------------------------------------------------


BANK = "query_id,item_id,question,weight,answers\n"
PAIRS = {
    "query": ("queries.tsv", "query_id\ttext\n", "q1\tone\n", "q1\tother\n"),
    "subtopic": (
        "subtopics.jsonl",
        "",
        '{"query_id": "q1", "text": "one", "subtopics": [{"id": "s", "text": "a"}]}\n',
        '{"query_id": "q1", "text": "one", "subtopics": [{"id": "s", "text": "b"}]}\n',
    ),
    "judgment 'q1 p1'": ("some.qrels", "", "q1 0 p1 3\n", "q1 0 p1 1\n"),
    "question '1'": ("bank.csv", BANK, "q1,1,Why A?,1,\n", "q1,1,Why B?,1,\n"),
    "question '1' is": ("bank.csv", BANK, "q1,1,Why?,1,\n", "q1,1,Why?,2,\n"),
    "question '1' is ": ("bank.csv", BANK, "q1,1,Why?,1,yes\n", "q1,1,Why?,1,no\n"),
}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    (tmp_path / "queries.json").write_text('{"q1": "one"}')
    (tmp_path / "passages.jsonl").write_text('{"id": "p1", "text": "x"}\n')
    exampp.Collection.create(tmp_path / "my.exam").close()
    with exampp.Collection(tmp_path / "my.exam") as made:
        made.import_files(tmp_path / "queries.json", tmp_path / "passages.jsonl")
    return tmp_path / "my.exam"


@pytest.mark.parametrize("what", PAIRS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_second_file_does_not_win(
    exam: Path, what: str, known: bool, order: tuple[int, int]
) -> None:
    """Also where the first of them says what the collection holds, and so changes nothing."""
    name, head, *lines = PAIRS[what]
    files = [exam.parent / f"{number}-{name}" for number in order]
    for file, number in zip(files, order, strict=True):
        file.write_text(head + lines[number])
    with exampp.Collection(exam) as opened:
        if known:
            opened.import_files(files[0], update=True)
        before = exams.tables(opened.path)
        with pytest.raises(InputError, match=f"^.*{name}: {what}.* in another file of this import"):
            opened.import_files(*files, update=True)
        assert exams.tables(opened.path) == before
        opened.import_files(files[0], update=True)
        report = opened.import_files(files[1], update=True)
        assert sum(one.changed for one in report.differences) == 1


def test_files_that_say_the_same_are_taken(exam: Path, exampp_command: Commands) -> None:
    for (name, head, line, _), number in itertools.product(PAIRS.values(), (1, 2)):
        (exam.parent / f"{number}-{name}").write_text(head + line.replace(",yes", ","))
    files = sorted(str(file) for file in exam.parent.glob("[12]-*"))
    assert exampp_command("import", str(exam), *files).code == 0
    again = exampp_command("import", str(exam), *files)
    assert "Nothing changed." in again.out, again.err
