"""Graded files of others: what is odd in a cell stays in that cell, and everything comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exampp
from exampp.errors import InputError
from exampp.formats import workbench
from exampp.formats.lines import Skipped
from exampp.formats.workbench import sheet_json
from exampp.records import (
    Grade,
    GraderIdentity,
    PassageGrades,
    PooledPassage,
    QueryPool,
    RankedPassage,
    State,
)

THOMAS = {"llm": "m", "llm_options": {}, "prompt_info": {"prompt_class": "Thomas"}}


def direct(passage: str, **grade: Any) -> dict[str, Any]:
    ranking = {"method": "s", "paragraphId": passage, "rank": 1, "score": 1.0}
    return {
        "paragraph_id": passage,
        "text": f"Text of {passage}.",
        "paragraph_data": {"judgments": [], "rankings": [ranking]},
        "grades": [{"correctAnswered": True, "answer": "", **THOMAS, **grade}],
    }


def file_of(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def cells(collection: exampp.Collection) -> set[tuple[Any, ...]]:
    """Everything that is known of every cell, with the grader's key and scale."""
    return {
        (
            dossier.grader.key,
            dossier.grader.lowest,
            dossier.grader.highest,
            dossier.query_id,
            dossier.grades.passage_ids[row],
            grade.item_id,
            grade.state,
            grade.rating,
            grade.reply,
            grade.rule,
            grade.confidence,
            json.dumps(grade.detail, sort_keys=True),
        )
        for grader in collection.graders
        for dossier in collection.grades(grader.key).dossiers()
        for (row, _), grade in dossier.automatic.items()
    }


def moved(collection: exampp.Collection, folder: Path) -> exampp.Collection:
    """A fresh collection of what this one exports, after seeing that it exports the same."""
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    collection.export(first)
    other = exampp.Collection.create(folder / "moved.exam")
    other.import_files(first)
    other.export(second)
    assert second.read_bytes() == first.read_bytes()
    assert {one.key for one in other.graders} == {one.key for one in collection.graders}
    assert cells(other) == cells(collection)
    return other


# ---- bad cells -----------------------------------------------------------------------------------

BAD_RATINGS = [3, 5, -1, 10**30, 2.5, "2", True, [2], {"rating": 2}]


@pytest.mark.parametrize("raw", BAD_RATINGS)
def test_a_bad_rating_is_one_unparsed_cell(
    raw: Any, tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """The authors' own files have Thomas labels of 3 to 5, on a scale of 0 to 2."""
    line = ["q", [direct("a", self_ratings=2), direct("b", self_ratings=raw, answer="so")]]
    path = file_of(tmp_path / "graded.jsonl", line, ["r", [direct("c", self_ratings=0)]])
    report = empty_exam.import_files(path)
    assert report.bad_cells == 1
    assert "graded.jsonl:1, [1][1].grades[0].self_ratings: " in str(report.bad_cells_first[0])
    (dossier, other) = empty_exam.grades().dossiers()
    assert dossier.automatic[0, 0].rating == 2
    bad = dossier.automatic[1, 0]
    assert (bad.state, bad.rating, bad.reply) == (State.UNPARSED, None, "so")
    assert bad.detail is not None
    assert bad.detail["raw"] == (raw if raw != 10**30 else "a number beyond 64 bits")
    assert other.automatic[0, 0].rating == 0
    out = tmp_path / "out.jsonl"
    empty_exam.export(out)
    assert [json.loads(text) for text in out.read_text().splitlines()] == [
        line,
        ["r", [direct("c", self_ratings=0)]],
    ]
    moved(empty_exam, tmp_path).close()
    from_collection = empty_exam.grades().evaluate(["P@1"], min_rating=2)
    assert any("1 unparsed" in note for note in from_collection.notes)
    from_file = exampp.open(path).grades().evaluate(["P@1"], min_rating=2)
    assert from_file.rows == from_collection.rows
    assert any("1 unparsed" in note for note in from_file.notes)


def test_bad_marks_of_an_exam_grade(tmp_path: Path) -> None:
    """One of each sort; a reply that is none leaves its rating alone."""
    rated = [("a", 4), ("b", 6), ("c", "4"), ("d", 1), ("d", 2), ("e", 3), ("e", 3), (None, 5)]
    entry = {
        "llm": "m",
        "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"},
        "correctAnswered": ["a", "b"],
        "answers": [["a", None], ["b", "6"], ["f", "?"], ["g"], 7],
        "self_ratings": [{"question_id": item, "self_rating": value} for item, value in rated],
    }
    line = ["q", [{"paragraph_id": "p", "text": "x", "exam_grades": [entry]}]]
    path = file_of(tmp_path / "graded.jsonl", line)
    told = Skipped()
    (pool,) = workbench.read(path, on_cell=told)
    found = {g.item_id: (g.rating, g.reply, g.detail) for g in pool.passages[0].sheets[0].grades}
    assert {item: cell[0] for item, cell in found.items()} == {
        "a": 4,
        "b": None,
        "c": None,
        "d": None,
        "e": 3,
        "f": None,
    }
    assert found["d"][2] == {"reason": "the item has two different grades", "raw": [1, 2]}
    assert found["b"][1] == "6"
    assert [str(error).partition("self_ratings")[2] for error in told.first] == [
        "[7]: the rating has neither question_id nor nugget_id",
        "[1].self_rating: rating 6 is off the scale 0..5",
        '[2].self_rating: "4" is not a rating (a whole number)',
        "[4].self_rating: the item has two different grades",
    ]
    workbench.write(tmp_path / "out.jsonl", [pool])
    assert json.loads((tmp_path / "out.jsonl").read_text()) == line


@pytest.mark.parametrize("verdict", ["absent", None, "yes", 1])
def test_no_verdict_is_no_low_grade(verdict: Any, tmp_path: Path) -> None:
    entry = direct("a", correctAnswered=verdict)
    if verdict == "absent":
        del entry["grades"][0]["correctAnswered"]
    path = file_of(tmp_path / "graded.jsonl", ["q", [entry, direct("b")]])
    (pool,) = workbench.read(path)
    states = [passage.sheets[0].grades[0].state for passage in pool.passages]
    assert states == [State.UNPARSED, State.GRADED]
    workbench.write(tmp_path / "out.jsonl", [pool])
    assert json.loads((tmp_path / "out.jsonl").read_text()) == ["q", [entry, direct("b")]]


def test_failures_as_the_reference_writes_them(tmp_path: Path) -> None:
    fault = {"response": "?", "prompt": "p", "failure_reason": "no JSON", "caught_exception": None}
    path = file_of(tmp_path / "g.jsonl", ["q", [direct("a", llm_response_error=fault)]])
    (pool,) = workbench.read(path)
    (grade,) = pool.passages[0].sheets[0].grades
    assert (grade.state, grade.detail) == (State.FAILED, {"reason": "no JSON"})
    # what the reference demands of ours
    sheet = PassageGrades(GraderIdentity("m", "p", "question"), (Grade("i", State.FAILED),))
    written = sheet_json(sheet)
    assert written["llm_response_errors"] == {
        "i": {"response": "", "prompt": "", "failure_reason": "failed"}
    }


# ---- scales --------------------------------------------------------------------------------------


def labelled(passage: str, label: int) -> dict[str, Any]:
    info = {"prompt_class": "labelling", "is_self_rated": True}
    return direct(passage, prompt_info=info, self_ratings=label, correctAnswered=label > 0)


def test_the_scale_of_an_unknown_prompt_is_the_highest_label(tmp_path: Path) -> None:
    path = file_of(tmp_path / "g.jsonl", ["q", [labelled("a", 0), labelled("b", 3)]])
    (grader,) = exampp.open(path).graders
    assert (grader.lowest, grader.highest, grader.default_min_rating) == (0, 3, 2)
    board = exampp.open(path).grades().evaluate(["P@2"])
    assert board.columns[0].min_rating == 2
    assert [row.mean for row in board.rows] == [0.5]
    assert any("scale, 0 to 3, was inferred from the labels (--scale)" in n for n in board.notes)
    assert any("2 or more counts as an answer (--min-rating)" in n for n in board.notes)

    (given,) = exampp.open(path, scale=(0, 5)).graders
    assert given.highest == 5
    assert given.key == grader.key
    narrow = exampp.open(path, scale=(0, 2)).grades().gradebook
    assert narrow.pending == {"unparsed": 1}


def test_a_later_file_raises_the_scale(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    first = file_of(tmp_path / "1.jsonl", ["q", [labelled("a", 1), labelled("b", 2)]])
    second = file_of(tmp_path / "2.jsonl", ["r", [labelled("c", 3)]])
    for path, highest in ((first, 2), (second, 3)):
        empty_exam.import_files(path)
        (grader,) = empty_exam.graders
        assert grader.highest == highest
    empty_exam.import_files(first, scale=(0, 4))
    assert empty_exam.graders[0].highest == 4
    with pytest.raises(InputError, match=r"a rating 3 by this grader"):
        empty_exam.import_files(first, scale=(0, 2))
    # no label shows the scale: the file states it
    with moved(empty_exam, tmp_path) as other:
        assert other.graders[0].highest == 4


@pytest.mark.parametrize("scale", [(0, 0), (3, 1), (-1, 3), (0, 10**9)])
def test_a_scale_that_is_none(scale: tuple[int, int], tmp_path: Path) -> None:
    path = file_of(tmp_path / "g.jsonl", ["q", [labelled("a", 1)]])
    with pytest.raises(InputError, match="invalid scale from"):
        exampp.open(path, scale=scale)


def test_a_scale_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path / "g.jsonl", ["q", [direct("a", self_ratings=1)]])
    queries = file_of(tmp_path / "queries.jsonl", {"query_id": "q", "text": "?"})
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        for file in (path, queries):
            with pytest.raises(InputError, match="Remove --scale"):
                collection.import_files(file, scale=(0, 3))
        collection.import_files(path)
    for source in (path, tmp_path / "my.exam"):
        with pytest.raises(InputError, match="Remove --scale"):
            exampp.open(source, scale=(0, 3))


# ---- everything comes back -----------------------------------------------------------------------

FOREIGN = {"llm_options": {"t": 0.5}, "prompt_info": {"prompt_class": "Rated"}}
GRADERS = [
    GraderIdentity("draft", "draft", "question", 0, 5, {"revision": "1"}),
    GraderIdentity("own", "mine", "nugget", 1, 7, {"prompt_hash": "x", "read": "rubric"}),
    GraderIdentity("own", "direct", "query", 0, 1, {"prompt_hash": "y"}),
    GraderIdentity("other", "Rated", "question", 0, 3, FOREIGN),
    GraderIdentity("other", "Rated", "question", 0, 3, {**FOREIGN, "repetition": 2}),
    GraderIdentity("other", "Rated", "question", 0, 5, {**FOREIGN, "read": "exam"}),
    GraderIdentity("bare", "Rated", "query", 0, 9, {**FOREIGN, "llm_options": None}),
]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
DETAILS = st.none() | st.dictionaries(TEXTS, TEXTS | st.integers(0, 9) | st.none(), min_size=1)


@st.composite
def grades(draw: st.DrawFn, item_id: str, grader: GraderIdentity) -> Grade:
    state = draw(st.sampled_from(State))
    rating = None
    if state is State.GRADED:
        rating = draw(st.integers(grader.lowest, grader.highest))
    return Grade(
        item_id,
        state,
        rating,
        draw(st.none() | TEXTS),
        draw(st.sampled_from(["", "imported", "rated"])),
        draw(st.none() | st.floats(0, 1)),
        draw(DETAILS),
    )


@st.composite
def pools(draw: st.DrawFn) -> QueryPool:
    passages = []
    for passage_id in ("p1", "p2"):
        sheets = []
        for grader in draw(st.lists(st.sampled_from(GRADERS), unique_by=lambda one: one.key)):
            items = [f"q/{grader.kind}{i}" for i in range(draw(st.integers(1, 3)))]
            items = ["q"] if grader.kind == "query" else draw(st.permutations(items))
            cells = tuple(draw(grades(item, grader)) for item in items)
            sheets.append(PassageGrades(grader, cells, None, scale_unshown=True))
        ranked = RankedPassage("q", passage_id, 1, 1.0, "s")
        passages.append(
            PooledPassage(passage_id, passage_id, rankings=((ranked, None),), sheets=tuple(sheets))
        )
    return QueryPool("q", tuple(passages))


@settings(max_examples=12, deadline=None)
@given(pools())
def test_any_cell_of_any_grader_comes_back(
    tmp_path_factory: pytest.TempPathFactory, pool: QueryPool
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    path = folder / "graded.jsonl"
    workbench.write(path, [pool])
    (read,) = workbench.read(path)
    expected = {
        (passage.passage_id, sheet.grader.key, sheet.grader.highest, frozenset(_all(sheet)))
        for passage in pool.passages
        for sheet in passage.sheets
    }
    assert {
        (passage.passage_id, sheet.grader.key, sheet.grader.highest, frozenset(_all(sheet)))
        for passage in read.passages
        for sheet in passage.sheets
    } == expected
    with exampp.Collection.create(folder / "my.exam") as collection:
        collection.import_files(path)
        with moved(collection, folder) as other:
            for grader in collection.graders:
                one, two = (x.grades(grader.key).evaluate(["P@1"]) for x in (collection, other))
                assert one.rows == two.rows


def _all(sheet: PassageGrades) -> list[str]:
    return [repr(grade) for grade in sheet.grades]


def test_read_again_graders_keep_who_they_are(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    """They came back as further takes of the grader whose replies they read."""
    entry = {
        "llm": "m",
        "llm_options": {"beams": 5},
        "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"},
        "correctAnswered": ["q/1"],
        "wrongAnswered": ["q/2"],
        "answers": [["q/1", "4"], ["q/2", "unanswerable"], ["q/3", "I cannot say 2 or 3"]],
        "self_ratings": [
            {"question_id": "q/1", "self_rating": 4},
            {"question_id": "q/2", "self_rating": 0},
        ],
    }
    line = ["q", [{"paragraph_id": "p", "text": "x", "exam_grades": [entry, entry]}]]
    empty_exam.import_files(file_of(tmp_path / "g.jsonl", line))
    for one in empty_exam.graders:
        for mode in ("exam", "rubric"):
            empty_exam.reparse(one.key, compat=mode)
    names = [one.name for one in empty_exam.graders]
    assert len(set(names)) == 6
    with moved(empty_exam, tmp_path) as other:
        assert [one.name for one in other.graders] == names
        # and they are known when they are imported again
        assert other.import_files(tmp_path / "first.jsonl").changes <= 1


def test_the_scale_is_that_of_all_passages(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    """The last passage of a query shows no more of it than the first."""
    line = ["q", [labelled("a", 3), labelled("b", 0)]]
    empty_exam.import_files(file_of(tmp_path / "g.jsonl", line))
    assert [grader.highest for grader in empty_exam.graders] == [3]
    moved(empty_exam, tmp_path).close()


@pytest.mark.parametrize("odd", ["half a pair: \ud800", "NUL: \0"])
def test_what_is_no_text_is_told_without_an_import_too(odd: str, tmp_path: Path) -> None:
    whole = ["q0", [direct("p0", answer="1", self_ratings=[])]]
    broken = ["q1", [direct("p1", answer=odd, self_ratings=[])]]
    path = file_of(tmp_path / "graded.jsonl", whole, broken)
    with exampp.open(path) as graded:
        assert f"Invalid characters were replaced (first: {path}:2)." in (
            graded.grades().gradebook.notes
        )
    with exampp.open(file_of(tmp_path / "clean.jsonl", whole)) as graded:
        assert not any("Invalid" in note for note in graded.grades().gradebook.notes)
