"""The four lists: what is in them, in which order, and by whose word a passage is relevant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import exams

import exampp
from exampp.errors import InputError
from exampp.graders.base import Reply
from exampp.graders.scripted import ScriptedGrader
from exampp.grades.base import ChosenGrades
from exampp.records import State, item_id
from exampp.records.gradebook import Dossier
from exampp.results.result import Table
from exampp.review.evidence import Criteria, evidence
from exampp.review.lists import concatenate, from_both_ends, grid, verification_list
from exampp.review.missing import BY_WORDS, missing
from exampp.review.query_view import QueryView
from exampp.review.spurious import spurious

FIRST, SECOND = exams.QUESTIONS["q1"]
SCATTER, SUNSET = item_id("q1", FIRST), item_id("q1", SECOND)
RATINGS = {
    (FIRST, "p1"): "5",
    (FIRST, "p2"): "4",
    (FIRST, "p4"): "0",
    (SECOND, "p1"): "0",
    (SECOND, "p2"): "3",
    (SECOND, "p4"): "5",
}
"""Of q1, where p1 is judged 3, p2 is judged 1 and p4 is judged 0; q2 gets nothing but 0."""
SCRIPT = {(item, exams.PASSAGES[passage]): reply for (item, passage), reply in RATINGS.items()}
RATED = "question-self-rating"


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader(SCRIPT, default="0"))
        yield opened


def test_passages_with_several_high_answers_alone(collection: exampp.Collection) -> None:
    # at 3 or higher p1 and p4 cover one item of q1, p2 both; q2 has nothing but 0
    for least, passages in (
        (0, {"p1", "p2", "p4"}),
        (1, {"p1", "p2", "p4"}),
        (2, {"p2"}),
        (3, set()),
    ):
        view = QueryView(dossier(collection), Criteria(min_rating=3, min_answers=least))
        assert {cell.passage.passage_id for cell in verification_list(view)} == passages
        assert {row.passage.passage_id for row in grid(view).rows} == passages
    table = concatenate(
        collection.grades(prompt=RATED).review_tables("grid", min_rating=3, min_answers=2)
    )
    assert set(column(table, "passage")) == {"p2"}


def rows_of(table: Table) -> list[dict[str, Any]]:
    """The rows as programs read them, by the names of their columns."""
    names, rows = table.for_programs()
    return [dict(zip(names, row, strict=True)) for row in rows]


def column(table: Table, name: str) -> list[Any]:
    return [row[name] for row in rows_of(table)]


def dossier(collection: exampp.Collection, query_id: str = "q1") -> Dossier:
    return next(collection.grades(prompt=RATED).dossiers([query_id]))


def test_verify_goes_from_both_ends_to_what_is_likely_wrong(collection: exampp.Collection) -> None:
    cells = list(verification_list(QueryView(dossier(collection), Criteria())))
    told = [(cell.item.item_id, cell.passage.passage_id, cell.rating) for cell in cells]
    assert told == [
        (SCATTER, "p1", 5),
        (SCATTER, "p4", 0),
        (SCATTER, "p2", 4),
        (SUNSET, "p4", 5),
        (SUNSET, "p1", 0),
        (SUNSET, "p2", 3),
    ]
    assert cells[0].item.text == FIRST
    assert (cells[0].reply, cells[0].passage.text) == ("5", exams.PASSAGES["p1"])
    assert (cells[0].passage.evidence, cells[0].passage.judgment) == ("judged 3", 3)
    assert (cells[0].passage.systems, cells[0].passage.rank) == (1, 1)
    two = verification_list(
        QueryView(dossier(collection), Criteria()), item_id=SUNSET[:-2], limit=2
    )
    assert [cell.passage.passage_id for cell in two] == ["p4", "p1"]


def test_of_equal_ratings_the_least_and_the_most_relevant_come_first(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader("3"))
        found = verification_list(QueryView(dossier(opened), Criteria()), item_id=SCATTER)
        assert [cell.passage.passage_id for cell in found] == ["p4", "p1", "p2"]


def test_cells_without_a_rating_come_last_with_their_replies(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        script: dict[tuple[str, str], str | Reply] = dict(SCRIPT)
        script[FIRST, exams.PASSAGES["p1"]] = Reply("It is", truncated=True)
        opened.grade(ScriptedGrader(script, default="0"))
        found = list(verification_list(QueryView(dossier(opened), Criteria()), item_id=SCATTER))
        assert [cell.passage.passage_id for cell in found] == ["p2", "p4", "p1"]
        last = found[-1]
        assert (last.rating, last.state, last.reply) == (None, State.TRUNCATED, "It is")


@pytest.mark.parametrize(
    ("given", "mixed"), [("", ""), ("a", "a"), ("ab", "ab"), ("abc", "acb"), ("abcd", "adbc")]
)
def test_from_both_ends(given: str, mixed: str) -> None:
    assert "".join(from_both_ends(given)) == mixed


def test_a_grid_has_the_most_relevant_passages_first(collection: exampp.Collection) -> None:
    collection.grades().decisions.decide("q1", SCATTER, "p4", 2, author="ann", reason="nearly")
    found = grid(QueryView(dossier(collection), Criteria()))
    assert [item.item_id for item in found.items] == [SCATTER, SUNSET]
    rows = [
        (row.passage.passage_id, row.best, [cell.rating for cell in row.cells])
        for row in found.rows
    ]
    assert rows == [("p1", 5, [5, 0]), ("p2", 4, [4, 3]), ("p4", 5, [2, 5])]
    decided = found.rows[2].cells[0]
    assert decided.decision is not None
    assert (decided.decision.author, decided.rating, decided.automatic) == ("ann", 2, 0)


def test_missing_and_spurious_by_judgments(collection: exampp.Collection) -> None:
    view = QueryView(dossier(collection), Criteria(min_rating=4))
    assert list(missing(view)) == []
    (entry,) = spurious(view)
    assert (entry.item.item_id, entry.count, entry.irrelevant) == (SUNSET, 1, 1)
    assert (entry.relevant_count, entry.relevant) == (0, 2)
    assert [passage.passage_id for passage in entry.examples] == ["p4"]
    (lacking,) = missing(QueryView(dossier(collection), Criteria(min_rating=5)))
    assert (lacking.passage.passage_id, lacking.best) == ("p2", 4)
    # p2 is not relevant where relevance begins at 2
    view = QueryView(dossier(collection), Criteria(min_rating=4, min_relevant=2))
    assert {entry.item.item_id: entry.count for entry in spurious(view)} == {SCATTER: 1, SUNSET: 1}
    # people's decisions hold, and an overturned answer is counted
    collection.grades().decisions.decide("q1", SUNSET, "p4", 0, author="ann")
    (entry,) = spurious(QueryView(dossier(collection), Criteria(min_rating=4)))
    assert (entry.item.item_id, entry.count, entry.overturned) == (SUNSET, 0, 1)


def test_items_to_avoid_are_neither_spurious_nor_what_a_passage_is_relevant_for(
    collection: exampp.Collection,
) -> None:
    collection.bank().edit("weight", SUNSET, "-1", query_id="q1")
    assert spurious(QueryView(dossier(collection), Criteria(min_rating=4))) == []
    collection.bank().edit("weight", SUNSET, "1", query_id="q1")
    collection.bank().edit("weight", SCATTER, "avoid", query_id="q1")
    found = missing(QueryView(dossier(collection), Criteria(min_rating=4)))
    assert {one.passage.passage_id for one in found} == {"p1", "p2"}


def test_passages_without_a_grade_are_not_said_to_be_missing(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        opened.grade(ScriptedGrader("0"))
        more = tmp_path / "passages-more.jsonl"
        more.write_text(json.dumps({"id": "p9", "text": "Light is scattered."}) + "\n")
        judged = tmp_path / "more.qrels"
        judged.write_text("q1 0 p9 3\n")
        opened.import_files(more, judged)
        table = opened.grades().review("missing", min_relevant=1)
        assert column(table, "passage") == ["p1", "p2", "p3"]
        assert "1 passage left out, relevant and without a grade." in table.notes


def unjudged(folder: Path, runs: str = exams.RUN) -> exampp.Collection:
    """The exam without judgments."""
    files = [path for path in exams.write_files(folder) if path.suffix != ".qrels"]
    (folder / "systems.run").write_text(runs)
    made = exampp.Collection.create(folder / "unjudged.exam")
    made.import_files(*files)
    return made


def test_by_the_rank_agreement_of_systems(tmp_path: Path) -> None:
    more = "q1 Q0 p1 1 2 {0}\nq1 Q0 p2 2 1 {0}\nq2 Q0 p3 1 1 {0}\n"
    with unjudged(tmp_path, exams.RUN + more.format("gamma") + more.format("delta")) as opened:
        opened.grade(ScriptedGrader(SCRIPT, default="0"))
        found = evidence(dossier(opened), Criteria())
        assert found.by == "systems"
        ids = dossier(opened).grades.passage_ids
        assert dict(zip(ids, found.shown, strict=True)) == {
            "p1": "3 of 4 systems",
            "p2": "3 of 4 systems",
            "p4": "1 of 4 systems",
        }
        # what 1 of 4 return is not rare enough to be called not relevant
        assert dict(zip(ids, found.relevant, strict=True)) == {"p1": 1, "p2": 1, "p4": 0}
        assert not found.irrelevant.any()
        # within the first passage alone, nobody returns p2
        first = evidence(dossier(opened), Criteria(depth=1))
        assert dict(zip(ids, first.irrelevant, strict=True)) == {"p1": 0, "p2": 1, "p4": 0}
        table = opened.grades().review("missing", min_rating=5)
        assert column(table, "passage") == ["p2", "p3"]
        assert any(
            note.startswith("By systems (2 queries): passages that most systems")
            for note in table.notes
        )


def test_by_graders_of_the_query_itself(tmp_path: Path) -> None:
    with unjudged(tmp_path) as opened:
        opened.grade(ScriptedGrader(SCRIPT, default="0"))
        # neither draft grades nor those of another exam on questions tell what is relevant
        opened.grade("draft", kind="query")
        opened.grade(ScriptedGrader("5"), model="other")
        grades = opened.grades(opened.graders[0].key)
        assert grades.review("spurious").rows == ()
        # p1 is rated 1 for q1, everything else 0
        texts = {(exams.QUERIES["q1"], exams.PASSAGES["p1"]): "1"}
        opened.grade(ScriptedGrader(texts, default="0"), prompt="thomas")
        grades = opened.grades(opened.graders[0].key)
        for by in ("auto", "graders"):
            table = grades.review("spurious", min_relevant=1, by=by)
            assert {row["item"]: row["count"] for row in rows_of(table)} == {SUNSET: 1, SCATTER: 1}
            assert any(note.startswith("By graders (2 queries)") for note in table.notes)
        table = grades.review("spurious")
        assert {row["item"]: row["count"] for row in rows_of(table)} == {SUNSET: 1, SCATTER: 2}
        # two graders of three decide
        for name, grade in (("second", "2"), ("third", "2")):
            opened.grade(ScriptedGrader(grade, name=name), prompt="thomas", model=name)
        seen = next(grades.dossiers(["q1"]))
        found = evidence(seen, Criteria(min_relevant=2))
        assert dict(zip(seen.grades.passage_ids, found.shown, strict=True)) == {
            "p1": "2 of 3 graders",
            "p2": "2 of 3 graders",
            "p4": "2 of 3 graders",
        }
        assert found.relevant.all()


@pytest.mark.usefixtures("by_words")
def test_lists_without_judgments_on_real_grades(shared_data: Path) -> None:
    with exampp.open(shared_data / "llmjudge" / "test-graded.jsonl.gz") as opened:
        table = opened.grades(prompt=RATED).review("missing", min_relevant=2)
        assert set(column(table, "relevance")) == {"graded relevant"}
        labels = opened.grades(kind="query").gradebook
        ratings = opened.grades(prompt=RATED).gradebook
        count = 0
        for direct, exam in zip(labels.queries, ratings.queries, strict=True):
            assert direct.passage_ids == exam.passage_ids
            best = exam.ratings.max(axis=1)
            count += int(((direct.ratings[:, 0] >= 2) & (best >= 0) & (best < 4)).sum())
        assert len(table.rows) == count > 0


def test_by_peoples_decisions(tmp_path: Path) -> None:
    with unjudged(tmp_path) as opened:
        opened.grade(ScriptedGrader(SCRIPT, default="0"))
        opened.grades().decisions.decide("q1", SUNSET, "p4", 1, author="ann")
        opened.grades().decisions.decide("q1", SCATTER, "p1", 5, author="ann")
        found = evidence(dossier(opened), Criteria())
        ids = dossier(opened).grades.passage_ids
        assert found.by == "decisions"
        assert dict(zip(ids, found.shown, strict=True)) == {
            "p1": "an answer",
            "p2": "",
            "p4": "no answer",
        }
        # the grader saw an answer in p4 and people none: perhaps the bank lacks what it says
        assert column(opened.grades().review("missing"), "passage") == ["p4"]
        (row,) = rows_of(opened.grades().review("spurious"))
        assert (row["item"], row["count"], row["overturned"]) == (SUNSET, 0, 1)


def test_extracted_answers_stand_beside_the_grades(collection: exampp.Collection) -> None:
    answers = {(FIRST, exams.PASSAGES["p1"]): "blue light"}
    collection.grade(ScriptedGrader(answers, default="none"), prompt="question-answering")
    table = collection.grades(prompt=RATED).review("verify", item=SCATTER)
    found = [(row["passage"], row["rating"], row["answer"]) for row in rows_of(table)]
    assert found == [
        ("p1", 5, "blue light"),
        ("p4", 0, "none"),
        ("p2", 4, "none"),
    ]
    wide, items = collection.grades(prompt=RATED).review_tables("grid", query_id="q1", width=60)
    assert [row[4] for row in wide.rows] == ["5 blue light", "4 none", "0 none"]
    assert [row[0] for row in items.rows] == list(range(1, len(items.rows) + 1))


def test_what_is_not_there_is_said(collection: exampp.Collection) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"name": "bogus"}, "unknown list 'bogus'"),
        ({"name": "grid", "query_id": "q9"}, "no query 'q9'"),
        ({"name": "verify", "item": "q9/x"}, "no item id starts with 'q9/x'"),
        ({"name": "missing", "by": "feeling"}, "unknown source of relevance 'feeling'"),
    )
    for options, fault in wrong:
        with pytest.raises(InputError, match=fault):
            collection.grades().review(**options)


def test_long_texts_are_cut_for_people_only(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        path = tmp_path / "passages-long.jsonl"
        text = "Light\nis " + "x" * 1_000_000
        path.write_text(json.dumps({"id": "p1", "text": text}) + "\n")
        opened.import_files(path)
        opened.grade(ScriptedGrader("0"))
        people = list(opened.grades().review_tables("verify", width=50))
        shown = {row[-1] for table in people for row in table.view().cells}
        assert "Light is " + "x" * 40 + "\N{HORIZONTAL ELLIPSIS}" in shown
        assert text in column(opened.grades().review("missing"), "passage text")


# ---- real data -----------------------------------------------------------------------------------


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lists of the same grades are of dossiers that are read once."""
    known: dict[tuple[str, str], list[Dossier]] = {}
    read = ChosenGrades.dossiers

    def dossiers(
        grades: ChosenGrades,
        query_ids: Sequence[str] | None = None,
        passages: Iterable[str] | None = None,
    ) -> Iterator[Dossier]:
        if query_ids is not None or passages is not None:
            return read(grades, query_ids, passages)
        named = str(grades.path), grades.grader.key
        if named not in known:
            known[named] = list(read(grades))
        return iter(known[named])

    monkeypatch.setattr(ChosenGrades, "dossiers", dossiers)


@pytest.fixture
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists explain by shared words, not by the model: only their rows are looked at."""
    for module in ("missing", "lists"):
        monkeypatch.setattr(f"exampp.review.{module}.text_similarity", lambda: BY_WORDS)


@pytest.mark.usefixtures("read_once", "by_words")
def test_dl19_has_the_published_counts(dl19_exam: Path, shared_data: Path) -> None:
    folder = shared_data / "dl19"
    expected = json.loads((folder / "expected" / "oversight.json").read_text())
    with exampp.open(dl19_exam) as opened:
        lacking = column(opened.grades().review("missing", min_rating=4, min_relevant=2), "query")
        assert len(lacking) == expected["missing: judged >= 2, best rating < 4"] == 609
        by_query = expected["missing per query (judged >= 2, best rating < 4)"]
        assert Counter(lacking) == by_query
        lower = opened.grades().review("missing", min_rating=3, min_relevant=2).rows
        assert len(lower) == expected["missing: judged >= 2, best rating < 3"] == 552
        table = opened.grades().review("spurious", min_rating=4, min_relevant=2)
    counts: dict[str, dict[str, object]] = {}
    for row in rows_of(table):
        counts.setdefault(row["query"], {})[row["item"]] = row["count"]
    wanted = expected["spurious: times covered (rating >= 4) by passages judged < 2"]
    assert counts == {query: items for query, items in wanted.items() if items}


def test_verify_and_grid_hold_every_cell_once(dl19_exam: Path) -> None:
    with exampp.Collection(dl19_exam) as opened:
        counted = 0
        for name in ("verify", "grid"):
            cells = {
                (row["item"], row["passage"]): row["rating"]
                for part in opened.grades().review_tables(name, query_id="168216")
                for row in rows_of(part)
            }
            assert len(cells) == 5820
            counted += sum(rating is not None for rating in cells.values())
        book = opened.grades().gradebook
        query = next(query for query in book.queries if query.query_id == "168216")
        assert counted == 2 * query.ratings.size


def test_draft_grades_are_called_so(tmp_path: Path) -> None:
    with exams.make(tmp_path) as opened:
        opened.grade("draft")
        for name in ("verify", "grid", "missing", "spurious"):
            (people, *_) = opened.grades().review_tables(name, width=40)
            assert "draft grades" in " ".join([people.caption, *people.notes]).lower()
            names, rows = opened.grades().review(name).for_programs()
            assert names[-2:] == ["grader", "grader key"]
            assert {row[-2:] for row in rows} <= {("draft", opened.graders[0].key)}
