"""Reading kept replies again, and verifying extracted answers: no reply is asked for twice."""

from __future__ import annotations

from pathlib import Path

import exams
import pytest

import exampp
from exampp.llm.scripted import ScriptedGrader

KEYED = "query_id\tquestion\tanswer\nq1\tWhat does air scatter?\tblue light\n"


def keyed(folder: Path) -> exampp.Collection:
    """The small exam with a question that has an answer key, in the bank `keyed`."""
    collection = exams.make(folder)
    (folder / "keyed.tsv").write_text(KEYED)
    collection.import_files(folder / "keyed.tsv", bank="keyed")
    return collection


def extracted(ask: exampp.Ask) -> str:
    return "the blue part of it" if "scatters" in ask.passage else "unanswerable"


def test_a_new_key_is_applied_to_kept_replies(tmp_path: Path) -> None:
    with keyed(tmp_path) as collection:
        collection.grade(
            ScriptedGrader(extracted), prompt="question-answering", bank="keyed", model="m"
        )
        assert collection.reparse().changes == {}
        (tmp_path / "keyed.tsv").write_text(
            KEYED.replace("blue light", "blue light|the blue part of it")
        )
        collection.import_files(tmp_path / "keyed.tsv", bank="keyed")
        found = collection.reparse()
        assert (found.replies, found.changes) == (3, {("0", "1"): 1})
        assert len(collection.graders) == 1


def test_imported_ratings_stay_and_the_new_reading_stands_beside_them(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4: mostly relevant"), model="m")
        out = tmp_path / "graded.jsonl"
        collection.export(out)
        # as another program would have written it
        text = out.read_text().replace('"self_rating":4', '"self_rating":0')
        out.write_text(text.replace('"exampp"', '"other"'))
        with exampp.Collection.create(tmp_path / "other.exam") as other:
            other.import_files(out)
            before = other.evaluate(["Cover@20"], min_rating=4, grader="m").rows
            found = other.reparse("m")
            assert found.changes == {("0", "4"): 8}
            assert [one.name for one in other.graders] == [
                "m:question-self-rating",
                "m:question-self-rating@exam",
            ]
            name = "m:question-self-rating"
            assert other.evaluate(["Cover@20"], min_rating=4, grader=name).rows == before
            again = other.reparse(name, mode="rubric")
            assert again.changes == {}
            assert again.identity.name == "m:question-self-rating@rubric"


def test_draft_scores_cannot_be_read_again(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        with pytest.raises(exampp.InputError, match="draft grades follow from scores alone"):
            collection.reparse()


def test_a_language_model_verifies_extracted_answers(tmp_path: Path) -> None:
    with keyed(tmp_path) as collection:
        collection.grade(
            ScriptedGrader(extracted), prompt="question-answering", bank="keyed", model="m"
        )
        judge = ScriptedGrader(lambda ask: "yes" if "blue part" in ask.user else "no")
        progress = collection.grade(
            judge, prompt="answer-verification", answers_of="m", bank="keyed", model="judge"
        )
        # two passages gave the same answer: one question about it is enough
        assert (progress.done, progress.asked) == (3, 2)
        assert judge.calls[0].user == (
            'For the question "What does air scatter?" the correct answer is "blue light". '
            'Is "the blue part of it" an equally correct response to this question? '
            "Answer yes or no."
        )
        by_words = collection.evaluate(["Cover@20"], grader="m", bank="keyed", min_rating=1)
        by_model = collection.evaluate(["Cover@20"], grader="judge", bank="keyed", min_rating=1)
        assert {row.system: row.mean for row in by_words.rows} == {"alpha": 0.0, "beta": 0.0}
        assert {row.system: row.mean for row in by_model.rows} == {"alpha": 1.0, "beta": 0.0}
