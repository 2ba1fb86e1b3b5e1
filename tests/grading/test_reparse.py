"""Reading kept replies again, and verifying extracted answers: no reply is asked for twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.graders.base import Reply
from exampp.graders.scripted import ScriptedGrader
from exampp.records import State

KEYED = "query_id\tquestion\tanswer\nq1\tWhat does air scatter?\tblue light\n"


def keyed(folder: Path) -> exampp.Collection:
    """The small exam with a question that has an answer key, in the bank `keyed`."""
    collection = exams.make(folder)
    (folder / "keyed.tsv").write_text(KEYED)
    collection.import_files(folder / "keyed.tsv", bank="keyed")
    return collection


def extracted(ask: exampp.Request) -> str:
    return "the blue part of it" if "scatters" in ask.passage else "unanswerable"


def test_imported_ratings_stay_and_the_new_reading_stands_beside_them(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4: mostly relevant"), model="m")
        out = tmp_path / "graded.jsonl"
        collection.export(out)
        # as another program would have written it
        text = out.read_text().replace('"self_rating":4', '"self_rating":0')
        lines = [json.loads(line) for line in text.splitlines()]
        for entry in (e for _, passages in lines for p in passages for e in p["exam_grades"]):
            entry["llm_options"] = {}
        out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with exampp.Collection.create(tmp_path / "other.exam") as other:
            other.import_files(out)
            before = other.grades("m").evaluate(["Cover@20"], min_rating=4).rows
            found = other.reparse("m")
            assert found.changes == {("0", "4"): 8}
            assert [one.name for one in other.graders] == [
                "m:question-self-rating",
                "m:question-self-rating@exam",
            ]
            name = "m:question-self-rating"
            assert other.grades(name).evaluate(["Cover@20"], min_rating=4).rows == before
            again = other.reparse(name, compat="rubric")
            assert again.changes == {}
            assert again.identity.name == "m:question-self-rating@rubric"


def test_draft_scores_cannot_be_read_again(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade("draft")
        with pytest.raises(exampp.InputError, match="draft grades depend only on scores"):
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
        # an answer that says there is none needs no verdict
        assert (progress.done, progress.asked) == (3, 1)
        assert judge.calls[0].user == (
            'For the question "What does air scatter?" the correct answer is "blue light". '
            'Is "the blue part of it" an equally correct response to this question? '
            "Answer yes or no."
        )
        by_words = collection.grades("m", bank="keyed").evaluate(["Cover@20"], min_rating=1)
        by_model = collection.grades("judge", bank="keyed").evaluate(["Cover@20"], min_rating=1)
        assert {row.system: row.mean for row in by_words.rows} == {"alpha": 0.0, "beta": 0.0}
        assert {row.system: row.mean for row in by_model.rows} == {"alpha": 1.0, "beta": 0.0}


REFUSED = Reply("Prohibited.", detail={"refusal": True, "reason": "content_filter"})


def test_no_text_undoes_what_the_server_or_the_model_said(tmp_path: Path) -> None:
    script: dict[str, str | Reply] = {
        "What does air scatter?": REFUSED,
        "Why are sunsets red?": Reply("4", truncated=True),
        "What makes a magnet?": "I'm sorry, but I can't help with that.",
    }
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader(script), model="m", max_failures=99)
        before = exams.tables(collection.path)["grade"]
        found = collection.reparse("m")
        assert (found.replies, found.changes) == (8, {})
        assert found.kept == {State.REFUSED: 5, State.TRUNCATED: 3}
        assert exams.tables(collection.path)["grade"] == before
        # the papers' own program reads what was cut off, and refusals that are only text
        found = collection.reparse("m", compat="rubric")
        assert found.changes == {("truncated", "4"): 3, ("refused", "0"): 2}
        assert found.kept == {State.REFUSED: 3}


def test_a_dry_run_says_the_same_and_writes_nothing(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("It is blue light."), model="m")
    before = exams.tables(tmp_path / "my.exam")
    command = ["reparse", tmp_path / "my.exam", "--unnumbered", "unparsed"]
    dry = exampp_command(*command, "--dry-run")
    assert exams.tables(tmp_path / "my.exam") == before
    done = exampp_command(*command)
    assert dry.out == done.out.replace("They are", "They would be")
    assert done.out.startswith("8 replies read again, 8 changed\n        8  1 -> unparsed\n")
    assert exams.tables(tmp_path / "my.exam") != before


def test_the_grader_is_chosen_as_everywhere(tmp_path: Path, exampp_command: Commands) -> None:
    path = tmp_path / "my.exam"
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4"), model="m")
        collection.grade(ScriptedGrader("2"), model="m", prompt="thomas")
    several = exampp_command("reparse", path, "--grader", "m")
    assert (several.code, "2 graders match" in several.err) == (2, True)
    for name in ("thomas", "query", "m:query", "m:thomas"):
        found = exampp_command("reparse", path, "--grader", name)
        assert found.out.startswith(
            "5 replies read again, 0 changed\nThey are the grades of m:thomas"
        )
    assert "no grader matches" in exampp_command("reparse", path, "--grader", "sun").err


OWN = """
name = "mine"
title = "my prompt"
grades = "question"
reading = "{reading}"
scale = {{ lowest = 0, highest = {highest} }}
slots = ["question", "context"]
cut = "context"
user = "{text} {{question}} {{context}}"
"""


def write_prompt(path: Path, reading: str = "rating", highest: int = 5, text: str = "?") -> Path:
    path.write_text(OWN.format(reading=reading, highest=highest, text=text))
    return path


def test_rules_of_another_scale_make_a_grader_of_their_own(tmp_path: Path) -> None:
    """The prompt yes-no on a scale of 0 to 1, read again as ratings: no 4 stands on that scale."""
    yes_no = tmp_path / "yes.toml"
    yes_no.write_text(
        'name = "yes"\ntitle = "t"\ngrades = "question"\nreading = "yes-no"\nverdict = true\n'
        'slots = ["question", "context"]\ncut = "context"\nuser = "{question} {context}"\n'
    )
    with exams.make(tmp_path) as collection:
        collection.grade(
            ScriptedGrader("Yes. Rating: 4"), model="m", prompt=str(yes_no), max_failures=99
        )
        (before,) = collection.graders
        with pytest.raises(exampp.InputError, match=r"'yes' .* is not bundled.*--rules"):
            collection.reparse("m")
        grades = exams.tables(collection.path)["grade"]
        found = collection.reparse("m", rules=write_prompt(tmp_path / "mine.toml"))
        assert found.identity.name == "m:yes@exam@mine"
        assert (found.identity.highest, before.highest) == (5, 1)
        assert found.identity.key != before.key
        after = exams.tables(collection.path)["grade"]
        assert [row for row in after if row in grades] == grades
        ratings = collection.grades(found.identity.key).gradebook.queries[0].ratings
        assert ratings.max() == 4
        # the new grader remembers its rules
        again = collection.reparse(found.identity.key)
        assert (again.identity, again.changes) == (found.identity, {})
        with pytest.raises(
            exampp.InputError, match=r"invalid minimum rating .* for ratings from 0 to 1"
        ):
            collection.grades(before.key).evaluate(min_rating=4)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"reading": "self-rating"}, True),
        ({"highest": 3}, False),
        ({"text": "other"}, False),
    ],
)
def test_rules_of_the_prompt_itself_replace_its_readings(
    tmp_path: Path, changed: dict[str, Any], same: bool
) -> None:
    with exams.make(tmp_path) as collection:
        prompt = write_prompt(tmp_path / "mine.toml")
        collection.grade(ScriptedGrader("3"), model="m", prompt=str(prompt))
        found = collection.reparse("m", rules=write_prompt(prompt, **changed))
        assert (found.identity == found.source) == same
        assert len(collection.graders) == (1 if same else 2)


def test_replies_of_its_own_are_never_replaced(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("It is blue.", name="one"), model="m")
        script = {"What makes a magnet?": "5", "What does air scatter?": "3 or 4"}
        both = ScriptedGrader(script, default="0", name="one")
        both._settings = dict(collection.graders[0].settings)
        both._settings.pop("prompt_hash")
        collection.grade(both, model="m", unnumbered="unparsed")
        source, target = collection.graders
        found = collection.reparse(source.key, unnumbered="unparsed")
        assert (found.identity.key, found.others) == (target.key, 8)
        dossiers = collection.grades(target.key).dossiers()
        replies = {grade.reply for one in dossiers for grade in one.automatic.values()}
        assert replies == {"5", "3 or 4", "0"}


def test_the_text_of_the_query_stays_known(tmp_path: Path) -> None:
    """A prompt that names the query: its grades are due where that text is another."""
    prompt = tmp_path / "with-query.toml"
    prompt.write_text(
        'name = "with-query"\ntitle = "t"\ngrades = "question"\nreading = "rating"\n'
        'scale = { lowest = 0, highest = 5 }\nslots = ["query", "question", "context"]\n'
        'cut = "context"\nuser = "{query} {question} {context}"\n'
    )
    with exams.make(tmp_path) as collection:
        grader = ScriptedGrader("4")
        collection.grade(grader, model="m", prompt=str(prompt))
        collection.reparse("m", rules=prompt)
        run = collection.grading(grader, model="m", prompt=str(prompt))
        assert list(run.pending()) == []


def test_without_replies_there_is_nothing_to_read(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4", faults={"What makes a magnet?": "x"}), model="m")
        collection.connection.execute("UPDATE grade SET reply = NULL")
        with pytest.raises(
            exampp.InputError, match="no replies of m:question-self-rating are stored"
        ):
            collection.reparse("m", unnumbered="unparsed")
        assert len(collection.graders) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compat": "rubric", "unnumbered": "unparsed"}, "has another rule"),
        ({"rules": "thomas", "unnumbered": "unparsed"}, "does not request a self-rating"),
        ({"unnumbered": "2"}, "unnumbered is '2'"),
        ({"compat": "papers"}, "unknown mode 'papers'"),
        ({"compat": "guarded"}, "unknown mode 'guarded'"),
    ],
)
def test_options_that_change_nothing_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4"), model="m")
        with pytest.raises(exampp.InputError, match=message):
            collection.reparse("m", **options)


def test_answers_are_verified_only_where_there_are_some(tmp_path: Path) -> None:
    with keyed(tmp_path) as collection:
        collection.grade(
            ScriptedGrader(extracted), prompt="question-answering", bank="keyed", model="m"
        )
        with pytest.raises(exampp.InputError, match="Name that grader with --answers-of"):
            collection.grade(ScriptedGrader("yes"), prompt="answer-verification", bank="keyed")
        for prompt in ("question-answering", "question-self-rating"):
            with pytest.raises(exampp.InputError, match="--answers-of has no effect"):
                collection.grade(ScriptedGrader("4"), prompt=prompt, answers_of="m", bank="keyed")
        # before a model is loaded
        with pytest.raises(exampp.InputError, match="Name that grader with --answers-of"):
            collection.grade("hf", model="/none", prompt="answer-verification", bank="keyed")


def in_a_sentence(ask: exampp.Request) -> str:
    return "Air scatters the blue light." if "scatters" in ask.passage else "unanswerable"


def test_new_exams_use_the_guarded_rule_and_others_keep_the_rule_of_the_papers(
    tmp_path: Path,
) -> None:
    def grade(collection: exampp.Collection, model: str, matching: str | None = None) -> None:
        collection.grade(
            ScriptedGrader(in_a_sentence),
            prompt="question-answering",
            bank="keyed",
            model=model,
            matching=matching,
        )

    def names(collection: exampp.Collection) -> list[str]:
        return [one.name for one in collection.graders]

    with keyed(tmp_path) as collection:
        grade(collection, "first")
        assert names(collection) == ["first:question-answering@guarded"]
        assert collection.grades("first", bank="keyed").evaluate(["Cover@20"]).rows[0].mean == 1.0
        # the papers' rule, by the same replies
        found = collection.reparse("first", matching="papers")
        assert found.changes == {("1", "0"): 1}
        assert names(collection)[1] == "first:question-answering"
        # reading again keeps the rule of each grader
        for name in names(collection):
            assert collection.reparse(name).identity.short_name == name
    (tmp_path / "other").mkdir()
    with keyed(tmp_path / "other") as collection:
        grade(collection, "first", matching="papers")
        grade(collection, "second")
        assert names(collection) == ["first:question-answering", "second:question-answering"]
        # the rule is chosen once; the same command continues
        grade(collection, "third", matching="guarded")
        grade(collection, "second")
        assert len(collection.graders) == 3


def test_the_rule_for_answers_needs_answers(tmp_path: Path) -> None:
    with keyed(tmp_path) as collection:
        with pytest.raises(exampp.InputError, match="--matching has no effect"):
            collection.grade(ScriptedGrader("4"), model="m", bank="keyed", matching="guarded")
        collection.grade(ScriptedGrader("4"), model="m", bank="keyed")
        with pytest.raises(exampp.InputError, match="--matching has no effect"):
            collection.reparse("m", matching="guarded")
        collection.grade(
            ScriptedGrader("blue"), prompt="question-answering", model="n", bank="keyed"
        )
        with pytest.raises(exampp.InputError, match="matching is 'fuzzy'"):
            collection.reparse("n", matching="fuzzy")
