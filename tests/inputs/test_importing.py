"""Importing: all or nothing, twice is once, and a changed text makes exactly its cells due."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
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


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    files = exams.write_files(tmp_path / "files")
    with exams.make(tmp_path) as collection:
        before = exams.tables(collection.path)
        assert collection.import_files(*files).changes == 0
        assert collection.import_files(*reversed(files)).changes == 0
        assert exams.tables(collection.path) == before


def test_what_is_due_is_the_pool_times_the_bank(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        texts = exams.PASSAGES
        assert cells(collection) == {
            ("What does air scatter?", texts["p1"]),
            ("What does air scatter?", texts["p2"]),
            ("What does air scatter?", texts["p4"]),
            ("Why are sunsets red?", texts["p1"]),
            ("Why are sunsets red?", texts["p2"]),
            ("Why are sunsets red?", texts["p4"]),
            ("What makes a magnet?", texts["p3"]),
            ("What makes a magnet?", texts["p4"]),
        }


def test_a_changed_run_replaces_its_system(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run = tmp_path / "new.run"
        run.write_text("q1 Q0 p4 1 5 alpha\nq1 Q0 p1 2 4 alpha\n")
        collection.import_files(run)
        out = tmp_path / "out.run"
        collection.export(out, "runs")
        assert out.read_text().splitlines() == [
            "q1 Q0 p4 1 5.0 alpha",
            "q1 Q0 p1 2 4.0 alpha",
            "q2 Q0 p3 1 2.0 alpha",  # a query that the new file does not speak of
            "q1 Q0 p4 1 1.0 beta",
            "q2 Q0 p4 1 1.5 beta",
        ]


def test_people_s_edits_outlast_the_import_of_the_same_bank(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        item = item_id("q1", exams.QUESTIONS["q1"][0])
        collection.bank().edit(
            "reword", item, "What colour does air scatter most?", author="ann", reason="clearer"
        )
        bank = tmp_path / "files" / "questions.tsv"
        assert collection.import_files(bank).changes == 0
        assert "What colour does air scatter most?" in {item for item, _ in cells(collection)}
        bank.write_text(bank.read_text().replace("Why are", "Why, then, are"))
        collection.import_files(bank)
        assert {item for item, _ in cells(collection)} >= {
            "What colour does air scatter most?",
            "Why, then, are sunsets red?",
        }


def test_ids_known_from_grades_get_their_text_from_the_bank(tmp_path: Path) -> None:
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
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(graded)
        assert cells(collection) == set()
        bank = tmp_path / "bank.tsv"
        bank.write_text(f"query_id\tquestion\nq1\t{text}\nq1\tWhy are sunsets red?\n")
        collection.import_files(bank)
        key = collection.connection.execute("SELECT grader FROM grader").fetchone()[0]
        left = [
            one.item
            for one in pending_cells(collection.connection, key, GradingScope("question", "main"))
        ]
        assert left == ["Why are sunsets red?"]
        book = collection.grades().gradebook
        assert book.queries[0].ratings.tolist() == [[5, -32768]]


@pytest.mark.parametrize(
    ("run", "what"),
    [
        ("q9 Q0 p1 1 1 s\n", r"query 'q9' is not in the collection"),
        ("q1 Q0 p9 1 1 s\n", r"passage 'p9' is not in the collection"),
        ("q1 Q0 p1 1 1 s\nq1 Q0 p2 2\n", r"bad.run:2: 4 columns instead of the 6"),
        ("q1 Q0 p1 1 1 s\nq1 Q0 p1 2 0.5 s\n", r"bad.run:2, passage: .* was on line 1 already"),
    ],
)
def test_a_bad_file_leaves_the_collection_as_it_was(run: str, what: str, tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        before = exams.tables(collection.path)
        bad, good = tmp_path / "bad.run", tmp_path / "passages.jsonl"
        bad.write_text(run)
        good.write_text('{"id": "p5", "text": "New."}\n')
        with pytest.raises(exampp.InputError, match=what):
            collection.import_files(good, bad, kind=None)
        assert exams.tables(collection.path) == before
        # the connection is fit for use after the error
        assert collection.import_files(good).changes > 0


def test_skipped_lines_are_counted(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run = tmp_path / "some.run"
        run.write_text("q1 Q0 p1 1 1 s\nq9 Q0 p1 1 1 s\nq1 Q0 p9 2 0.5 s\nq1 Q0 p2 3 nan s\n")
        report = collection.import_files(run, on_error="skip")
        assert (report.skipped, [error.line for error in report.skipped_first]) == (3, [2, 3, 4])
        assert report.after["rankings"] - report.before["rankings"] == 1


def test_unknown_passages_may_be_kept_as_ungraded(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run = tmp_path / "some.run"
        run.write_text("q1 Q0 p9 1 2 s\nq1 Q0 p1 2 1 s\n")
        collection.import_files(run, unknown_passages="keep")
        collection.grade("draft")
        board = collection.grades().evaluate(["Cover@20"], min_rating=1)
        shares = {row.system: row.ungraded for row in board.rows}
        assert shares["s"] == 0.5


def test_subtopics_of_runs_and_qrels(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        (tmp_path / "sub.run").write_text("q1/light Q0 p1 1 1 s\nq1/dusk Q0 p2 1 1 s\n")
        (tmp_path / "sub.qrels").write_text("q1/light 0 p1 2\n")
        collection.import_files(tmp_path / "sub.run", tmp_path / "sub.qrels")
        query = collection_gradebook_of_nobody(collection)
        assert query.subtopic_ids == ("dusk", "light") or query.subtopic_ids == ("light", "dusk")
        subtopics = {
            r.subtopic: query.passage_ids[r.passages[0]] for r in query.rankings if r.subtopic
        }
        named = {
            query.subtopic_ids[subtopic - 1]: passage for subtopic, passage in subtopics.items()
        }
        assert named == {"light": "p1", "dusk": "p2"}


def collection_gradebook_of_nobody(collection: exampp.Collection) -> exams.QueryGrades:
    from exampp.records import GraderIdentity
    from exampp.store.grades import StoredGrader
    from exampp.store.read_model import read_gradebook

    nobody = StoredGrader(0, GraderIdentity("nobody", "none", "question"))
    return read_gradebook(collection.connection, nobody, "main").queries[0]


def test_a_corrected_bank_without_ids_replaces_its_questions(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        bank = tmp_path / "files" / "questions.tsv"
        bank.write_text(bank.read_text().replace("Why are sunsets red?", "Why is a sunset red?"))
        report = collection.import_files(bank)
        assert (report.retired, report.after["items"]) == (1, 3)
        assert collection.import_files(bank).changes == 0
        # the retired question comes back with its file
        bank.write_text(bank.read_text().replace("Why is a sunset red?", "Why are sunsets red?"))
        assert collection.import_files(bank).retired == 1
        assert {item for item, _ in cells(collection)} == {
            text for texts in exams.QUESTIONS.values() for text in texts
        }


def test_a_bank_says_nothing_of_other_queries_and_kinds(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        nuggets = tmp_path / "nuggets.tsv"
        nuggets.write_text("query_id\tnugget\nq1\tblue light scatters\n")
        assert collection.import_files(nuggets).retired == 0
        bank = tmp_path / "bank.tsv"
        bank.write_text("query_id\tquestion\nq2\tWhat makes a magnet?\n")
        assert collection.import_files(bank).retired == 0


def test_one_import_has_one_text_for_a_passage(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        for number in (1, 2):
            (tmp_path / f"passages-{number}.jsonl").write_text(
                f'{{"passage_id": "p8", "text": "Text {number}."}}\n'
            )
        with pytest.raises(exampp.InputError, match=r"passages-2.*'p8' has two different texts"):
            collection.import_files(tmp_path / "passages-1.jsonl", tmp_path / "passages-2.jsonl")
        collection.import_files(tmp_path / "passages-1.jsonl")
        assert collection.import_files(tmp_path / "passages-2.jsonl").changes > 0


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
        assert collection.grading("draft").count_due().cells == 0
        with exampp.Collection.create(tmp_path / "again.exam") as again:
            again.import_files(out)
            assert again.import_files(passages, tmp_path / "files" / "questions.tsv").changes > 0
            assert again.grading("draft").count_due().cells == 0


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


def test_a_prompt_that_names_the_query_is_due_when_the_query_changes(tmp_path: Path) -> None:
    from exampp.graders.scripted import ScriptedGrader

    mine = tmp_path / "mine.toml"
    mine.write_text(
        'name = "mine"\ntitle = "t"\nsource = "s"\ngrades = "question"\nreading = "rating"\n'
        'scale = { lowest = 0, highest = 5 }\nslots = ["query", "question", "context"]\n'
        'cut = "context"\nuser = "{query}? {question} {context}"\n'
    )
    with exams.make(tmp_path) as collection:
        options: dict[str, Any] = {"prompt": str(mine), "model": "m"}
        assert collection.grade(ScriptedGrader("4"), **options).done == 8
        assert collection.grade(ScriptedGrader("4"), **options).total == 0
        queries = tmp_path / "files" / "queries.json"
        queries.write_text(queries.read_text().replace("magnets", "compasses"))
        collection.import_files(queries, update=True)
        assert collection.grade(ScriptedGrader("4"), **options).done == 2
        assert collection.grade(ScriptedGrader("4"), **options).total == 0


def test_a_file_is_opened_to_be_told_read_and_digested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six looks at how it starts, of which three are for data sets and other programs."""
    opened: list[Path] = []
    real = Path.open

    def counted(path: Path, *how: Any) -> Any:
        opened.append(path)
        return real(path, *how)

    files = exams.write_files(tmp_path / "files")
    with exampp.create(tmp_path / "new.exam") as collection:
        monkeypatch.setattr(Path, "open", counted)
        collection.import_files(*files)
    assert {path: opened.count(path) for path in files if opened.count(path) > 8} == {}
    assert all(path in opened for path in files)
