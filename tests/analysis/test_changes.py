"""Two versions of an exam: what differs, by how much, why, and whether it is noise."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.commands import Commands
from support.gradebooks import GRADER, make_book, make_query, make_ranking

import exampp
from exampp.analysis.changes import Changes, ChangeSettings, compare_versions
from exampp.analysis.versions import ExamVersion
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.records.gradebook import MISSING, DecidedCell, Gradebook, QueryGrades
from exampp.results.notes import with_code

COVER = ChangeSettings("Cover@20", 4)


def compared(before: Gradebook, after: Gradebook, settings: ChangeSettings = COVER) -> Changes:
    return compare_versions(ExamVersion("last", before), ExamVersion("now", after), settings)


def codes(found: Changes) -> set[str]:
    return {getattr(one, "code", "") for one in found.notes}


def with_items(query: QueryGrades, *kept: int) -> QueryGrades:
    """The query with some of its items alone."""
    return replace(
        query,
        item_ids=tuple(query.item_ids[at] for at in kept),
        ratings=query.ratings[:, kept],
        weights=query.weights[list(kept)],
        item_subtopics=query.item_subtopics[list(kept)],
    )


def test_interacting_causes_by_hand() -> None:
    # p0 covers i0 and p1 covers i1; the system moves from p0 to p1, and i0 is retired
    before = make_query([[5, 0], [0, 5]], make_ranking("s", [0]))
    after = with_items(replace(before, rankings=(make_ranking("s", [1]),)), 1)
    found = compared(make_book(before), make_book(after))
    (system,) = found.systems
    assert found.causes == ("responses", "bank")
    # alone: p1 on both items 1/2, p0 on i1 alone 0; from 1/2 to 1
    assert (system.before, system.after, system.difference.value) == (0.5, 1.0, 0.5)
    assert system.causes == (0.5, 0.0)
    assert [tuple(one) for one in found.queries] == [("s", "q", 0.5, 1.0, 0.5)]
    (interact,) = with_code(found.notes, "changes-interact")
    assert "by up to 1.000 for s" in interact


def test_effect_of_grades_and_of_decisions_by_hand() -> None:
    ranked = make_ranking("s", [0])
    before = make_query([[5, 0, 0, 0]], ranked)
    regraded = make_query([[5, 4, 0, 0]], ranked)
    decided = make_query([[0, 4, 0, 0]], ranked)
    decided = replace(decided, decided=(DecidedCell("q/i0", "p0", 5, ("ann",), False),))
    (alone,) = compared(make_book(before), make_book(regraded)).systems
    assert alone.causes == (0.25,)
    found = compared(make_book(before), make_book(decided))
    assert found.causes == ("grades", "decisions")
    assert found.systems[0].causes == (0.25, -0.25)
    assert [(one.item_id, one.before, one.after, one.by) for one in found.cells] == [
        ("q/i0", 5, 0, "ann"),
        ("q/i1", 0, 4, "grader"),
    ]
    counts = {one.what: one[1:] for one in found.content}
    assert counts["grades"] == (0, 0, 1, 3)
    assert counts["decisions"] == (1, 0, 0, 0)


def test_effects_that_need_cells_of_neither_version_are_undefined() -> None:
    before = make_query([[5]], make_ranking("s", [0]), passage_ids=["old"])
    after = make_query([[5]], make_ranking("s", [0]), passage_ids=["new"])
    after = replace(after, item_ids=("q/other",))
    found = compared(make_book(before), make_book(after))
    assert found.systems[0].causes == (None, None)
    assert "changes-causes-unknown" in codes(found)
    assert found.systems[0].difference.value == 0


def random_query(random: np.random.Generator, name: str) -> QueryGrades:
    items, passages = int(random.integers(1, 5)), int(random.integers(2, 7))
    ratings = random.integers(0, 6, (passages, items)).astype(np.int16)
    query = make_query(
        ratings.tolist(),
        *(
            make_ranking(system, random.permutation(passages)[: random.integers(1, 4)].tolist())
            for system in ("a", "b", "c")
        ),
        query_id=name,
    )
    cells = [(p, i) for p in range(passages) for i in range(items) if random.random() < 0.15]
    automatic = random.integers(0, 6, len(cells)).tolist()
    decided = tuple(
        DecidedCell(query.item_ids[i], query.passage_ids[p], old, ("ann",), False)
        for (p, i), old in zip(cells, automatic, strict=True)
    )
    weights = random.integers(1, 4, items).astype(np.float64)
    return replace(query, decided=decided, weights=weights)


def random_version(random: np.random.Generator, queries: int) -> Gradebook:
    return make_book(*(random_query(random, f"q{at}") for at in range(queries)))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("measure", ["Cover@20", "Cover@2"])
def test_effects_add_up_and_mirror(seed: int, measure: str) -> None:
    random = np.random.default_rng(seed)
    before, after = random_version(random, 4), random_version(random, 5)
    settings = ChangeSettings(measure, 4)
    there, back = compared(before, after, settings), compared(after, before, settings)
    assert there.causes == back.causes
    mirrored = {one.system: one for one in back.systems}
    for one in there.systems:
        other = mirrored[one.system]
        assert one.difference.value == pytest.approx(-(other.difference.value or 0), abs=1e-12)
        assert one.difference.low == pytest.approx(-(other.difference.high or 0), abs=1e-9)
        assert one.p == other.p
        assert one.p_mean == pytest.approx(other.p_mean)
        assert (one.rank_before, one.rank_after) == (other.rank_after, other.rank_before)
        for effect, opposite in zip(one.causes, other.causes, strict=True):
            assert (effect is None) == (opposite is None)
            assert effect == pytest.approx(None if opposite is None else -opposite, abs=1e-12)
        of_queries = sum(q.difference for q in there.queries if q.system == one.system)
        assert of_queries / one.queries == pytest.approx(one.difference.value, abs=1e-12)
        if None not in one.causes:
            assert sum(filter(None, one.causes)) == pytest.approx(one.difference.value, abs=1e-12)
    assert {frozenset(pair) for pair in there.swaps} == {frozenset(pair) for pair in back.swaps}
    sums = [[one.added, one.removed, one.changed, one.same] for one in there.content]
    assert sums == [[one.removed, one.added, one.changed, one.same] for one in back.content]


def test_a_system_that_answers_some_queries_is_unchanged() -> None:
    unanswered = make_query([[5, 0]], query_id="q2")
    book = make_book(make_query([[5, 0]], make_ranking("s", [0]), query_id="q1"), unanswered)
    found = compared(book, book)
    assert found.is_empty
    # a useless answer to the other query scores nothing, too, but it is a change
    answered = replace(unanswered, ratings=unanswered.ratings * 0)
    after = replace(answered, rankings=(make_ranking("s", [0]),))
    (system,) = compared(
        replace(book, queries=(book.queries[0], answered)),
        replace(book, queries=(book.queries[0], after)),
    ).systems
    assert (system.outcome, system.difference.value) == ("not significant", 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_version_compared_with_itself(seed: int) -> None:
    book = random_version(np.random.default_rng(seed), 4)
    found = compared(book, book)
    assert found.is_empty
    assert found.headline == "Nothing changed since last."
    assert found.causes == ()
    assert found.cells == ()
    for one in found.systems:
        assert (one.difference.value, one.difference.low, one.difference.high) == (0, 0, 0)
        assert (one.outcome, one.p) == ("unchanged", None)


def covering(covered: Sequence[int], system: str = "s") -> list[QueryGrades]:
    return [
        make_query(
            [[5] * hits + [0] * (10 - hits), [5] * 4 + [0] * 6],
            make_ranking(system, [0]),
            make_ranking("same", [1]),
            query_id=f"q{at}",
            passage_ids=[f"p{hits}", "other"],
        )
        for at, hits in enumerate(covered)
    ]


def test_significance_is_that_of_the_mean_after_holm() -> None:
    low, high = make_book(*covering([3] * 40)), make_book(*covering([8] * 40))
    up, down = compared(low, high), compared(high, low)
    assert [one.outcome for one in up.systems] == ["higher", "unchanged"]
    assert [one.outcome for one in down.systems] == ["unchanged", "lower"]
    assert up.headline == (
        "Significant: 1 of 2 systems scores differently since last under Cover@20 \u22654, by at "
        "most 0.500; 1 higher over all queries like these. s is now ahead of same."
    )
    assert up.swaps == (("s", "same"),)
    # a small change on every query: not by chance, but rare losses are not excluded
    some = compared(make_book(*covering([3] * 10)), make_book(*covering([4] * 10)))
    assert [one.outcome for one in some.systems] == ["different", "unchanged"]
    # 2 of the 1,024 sign patterns are as extreme; there is one test
    assert some.systems[0].p == 2 / 1024
    few = compared(make_book(*covering([3, 3])), make_book(*covering([4, 3])))
    assert [one.outcome for one in few.systems] == ["unchanged", "not significant"]
    assert few.headline.startswith("No significant change since last: 1 of 2 systems has")


def test_missing_grades_show_no_change() -> None:
    whole = covering([8] * 40)
    lost = [replace(one, ratings=one.ratings.copy()) for one in whole]
    for one in lost:
        one.ratings[0, :5] = MISSING
    found = compared(make_book(*whole), make_book(*lost))
    (s,) = (one for one in found.systems if one.system == "s")
    # 3 of 10 items if the 5 cells are below the minimum rating, 8 of 10 if not
    assert s.difference.value == pytest.approx(-0.5)
    assert s.difference.high is not None
    assert s.difference.high > 0
    assert s.outcome == "not significant"
    assert "changes-missing" in codes(found)
    # one missing cell of ten cannot explain a loss of five
    for one in lost:
        one.ratings[0, 1:5] = 0
    found = compared(make_book(*whole), make_book(*lost))
    (s,) = (one for one in found.systems if one.system == "s")
    assert s.outcome == "lower"


def test_queries_systems_and_items_of_one_version_only() -> None:
    before, after = covering([3, 3, 5]), covering([3, 3], "t")
    found = compared(make_book(*before), make_book(*after))
    outcomes = {one.system: one.outcome for one in found.systems}
    assert outcomes == {"same": "unchanged", "t": "added", "s": "removed"}
    counts = {one.what: one[1:] for one in found.content}
    assert counts["systems"] == (1, 1, 0, 1)
    assert counts["queries"] == (0, 1, 0, 2)
    assert counts["items"] == (0, 10, 0, 20)
    assert counts["grades"] == (0, 20, 0, 40)
    assert "0 were added, 1 removed" in next(with_code(found.notes, "changes-queries"))
    other = make_book(*(replace(one, query_id=f"x{one.query_id}") for one in before))
    with pytest.raises(InputError, match="last is another exam: it has none of the 3 queries"):
        compared(make_book(*before), other)


def test_another_grader_is_a_warning() -> None:
    query = make_query([[5, 0]], make_ranking("s", [0]))
    other = replace(GRADER, model="second")
    found = compared(make_book(query), make_book(query, grader=other))
    assert "changes-grader" in codes(found)
    scale = compared(make_book(query), make_book(query, grader=replace(other, highest=7)))
    assert {"changes-scale", "changes-grader"} <= codes(scale)
    assert scale.causes == ()


# ---- collections and files ---------------------------------------------------------------------


def copied(exam: exampp.Collection, path: Path) -> Path:
    with closing(sqlite3.connect(path)) as copy:
        exam.connection.backup(copy)
    return path


JUDGE = ScriptedGrader(lambda request: "5" if "air" in str(request) else "0")


@pytest.fixture
def graded(small_exam: exampp.Collection) -> exampp.Collection:
    small_exam.grade(JUDGE)
    return small_exam


def test_edits_and_decisions_of_a_collection(graded: exampp.Collection, tmp_path: Path) -> None:
    last = copied(graded, tmp_path / "last.exam")
    assert graded.grades().changes(last).is_empty
    bank = graded.bank()
    bank.edit("reword", bank.items("q1")[0].item_id, "What scatters blue light?")
    graded.grade(JUDGE)
    grades = graded.grades()
    query = grades.gradebook.queries[1]
    grades.decisions.decide(
        query.query_id, query.item_ids[0], query.passage_ids[0], 5, author="ann"
    )
    found = graded.grades().changes(last)
    counts = {one.what: one[1:] for one in found.content}
    assert counts["items"] == (0, 0, 1, 2)
    assert counts["decisions"] == (1, 0, 0, 0)
    assert found.edits is not None
    assert [row[2] for row in found.edits.rows] == ["reword"]
    assert [one.by for one in found.cells] == ["ann"]
    back = exampp.open(last)
    with back:
        mirrored = back.grades().changes(graded.path)
    assert {one.what: one.removed for one in mirrored.content}["decisions"] == 1


def test_the_state_of_bank_and_decisions_before_a_date(
    graded: exampp.Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("store.bank", "grades.decisions"):
        monkeypatch.setattr(f"exampp.{module}.now", lambda: "2999-11-03T10:00:00+00:00")
    bank, item = graded.bank(), graded.bank().items("q1")[0]
    bank.edit("reword", item.item_id, "What scatters blue light?")
    bank.edit("weight", graded.bank().items("q1")[1].item_id, "3")
    bank.add("q2", "Where do compasses point?", item_id="compass")
    graded.grade(JUDGE)
    grades = graded.grades()
    cell = "q2", "compass", grades.gradebook.queries[1].passage_ids[0]
    grades.decisions.decide(*cell, 5, author="ann")
    found = graded.grades().changes("2999-11-03")
    counts = {one.what: one[1:] for one in found.content}
    assert counts["items"] == (1, 0, 2, 1)
    assert counts["decisions"] == (1, 0, 0, 0)
    assert found.edits is not None
    assert {row[2] for row in found.edits.rows} == {"add", "reword", "weight"}
    assert "changes-history" in codes(found)
    # a time after the last change
    assert graded.grades().changes("2999-11-03T10:00:01+00:00").is_empty
    assert graded.grades().changes("2999-11-03T12:00:01+02:00").is_empty
    assert not graded.grades().changes("2999-11-03T12:00:00+02:00").is_empty
    with pytest.raises(InputError, match="the bank main had no questions before 1999-01-01"):
        graded.grades().changes("1999-01-01")
    # nothing of it is stored
    assert not graded.check().problems
    assert len(graded.grades().gradebook.queries[1].item_ids) == 2


def test_graded_passages_have_no_history(graded: exampp.Collection, tmp_path: Path) -> None:
    graded.export(tmp_path / "graded.jsonl")
    with exampp.open(tmp_path / "graded.jsonl") as opened:
        assert opened.grades().changes(tmp_path / "graded.jsonl").is_empty
        with pytest.raises(InputError, match="graded passages have no history"):
            opened.grades().changes("2026-11-03")


def test_stored_scores(graded: exampp.Collection, tmp_path: Path) -> None:
    grades = graded.grades()
    board = grades.evaluate(["Cover@20"])
    whole, means = tmp_path / "last.json", tmp_path / "means.json"
    assert exampp_json(graded, whole, "--per-query")
    assert exampp_json(graded, means)
    found = grades.changes(whole)
    assert (found.is_empty, found.content) == (True, ())
    assert "changes-scores-only" in codes(found)
    assert grades.changes(board).is_empty
    of_means = grades.changes(means)
    assert "changes-means-only" in codes(of_means)
    assert {one.outcome for one in of_means.systems} == {"untested"}
    scores = json.loads(means.read_text())
    for row in scores["rows"]:
        row["mean"] = row["mean"] / 2 + 0.1
    means.write_text(json.dumps(scores))
    assert "this may be noise" in grades.changes(means).headline
    # a query without a value is unknown, not unchanged
    unknown = json.loads(whole.read_text())
    unknown["rows"] = [{**row, "value": None} for row in unknown["rows"]]
    none = tmp_path / "none.json"
    none.write_text(json.dumps(unknown))
    found = grades.changes(none)
    assert {one.outcome for one in found.systems} == {"untested"}
    assert found.headline == "No system has a score both now and in none.json."
    with pytest.raises(InputError, match=r"last.json has no nDCG@20"):
        grades.changes(whole, "nDCG@20")
    with pytest.raises(InputError, match=r"no Cover@20 at minimum rating 5"):
        grades.changes(whole, min_rating=5)


@pytest.mark.parametrize(
    ("content", "line", "value"),
    [
        (
            "system\tmeasure\tquery_id\tvalue\nalpha\tCover@20\tq1\t0.5\nalpha\tCover\tq2\t5.0\n",
            3,
            5,
        ),
        ("runid\tall\talpha\nP_20\tq1\t-0.5\n", 2, -0.5),
        ("alpha q1 AP 1.5\nalpha all AP 1.5\n", 1, 1.5),
    ],
)
def test_stored_scores_outside_the_range_of_their_measure(
    graded: exampp.Collection, tmp_path: Path, content: str, line: int, value: float
) -> None:
    path = tmp_path / "last.tsv"
    path.write_text(content)
    grades = graded.grades()
    for read in (lambda: grades.changes(path), lambda: grades.gate(baseline=path, margin=0.1)):
        with pytest.raises(InputError, match=f"is {value:g}, not from 0 to 1") as refused:
            read()
        assert (refused.value.line, refused.value.field) == (line, "value")
        assert refused.value.file == str(path)
    # the number of returned passages is not a share, and digits of sums are not errors
    path.write_text("alpha q1 NumRet 5\nalpha all NumRet 5\n")
    assert grades.changes(path).measure == "NumRet"
    path.write_text("alpha q1 AP 1.0000000000000002\nalpha all AP 1.0000000000000002\n")
    assert grades.changes(path).measure.startswith("AP")


def exampp_json(exam: exampp.Collection, path: Path, *options: str) -> bool:
    from exampp.measures import board as boards

    board = exam.grades().evaluate(["Cover@20"])
    table = boards.per_query(board) if options else boards.tidy(board)
    return path.write_text(table.to_json()) > 0


def test_selected_systems_are_selected_in_both_versions(
    graded: exampp.Collection, tmp_path: Path
) -> None:
    first, *others = graded.grades().gradebook.systems
    last, scores = copied(graded, tmp_path / "last.exam"), tmp_path / "last.json"
    assert exampp_json(graded, scores, "--per-query")
    for grades in (graded.grades(systems=[f"{first[:-1]}?"]), graded.grades(without=others)):
        for earlier in (last, scores):
            found = grades.changes(earlier)
            assert [(one.system, one.rank_before) for one in found.systems] == [(first, 1)]
            assert found.is_empty
    # a removed system is reported if the selection has its name
    graded.systems.remove(first)
    for earlier in (last, scores):
        found = graded.grades(systems=["*"]).changes(earlier)
        assert {one.system: one.outcome for one in found.systems}[first] == "removed"
    run = tmp_path / "new.run"
    run.write_text("q1 Q0 p1 1 1.0 new\n")
    with pytest.raises(InputError, match="has none of the selected systems"):
        graded.grades(runs=[run], systems=["new"]).changes(scores)


def test_run_files_before_a_date(graded: exampp.Collection, tmp_path: Path) -> None:
    run = tmp_path / "new.run"
    run.write_text("q1 Q0 p1 1 1.0 new\n")
    found = graded.grades(runs=[run]).changes("2999-11-03")
    assert [(one.system, one.outcome) for one in found.systems] == [("new", "unchanged")]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "empty"),
        ("{}", "is neither"),
        ("[1, 2]", "last.json:1, "),
        ('{"rows": []}', "is neither"),
        ("no scores", "is neither"),
        ("q1 Q0 p1 1 2.0 alpha", "is neither"),
    ],
)
def test_files_that_are_no_earlier_version(
    graded: exampp.Collection, tmp_path: Path, content: str, fault: str
) -> None:
    path = tmp_path / "last.json"
    path.write_text(content)
    with pytest.raises(InputError, match=fault):
        graded.grades().changes(path)
    with pytest.raises(InputError, match="no such file"):
        graded.grades().changes(tmp_path / "missing.exam")
    empty = exampp.create(tmp_path / "empty.exam")
    with pytest.raises(InputError, match="no grades by"):
        graded.grades().changes(empty.path)


def test_report_since_an_earlier_version(graded: exampp.Collection, tmp_path: Path) -> None:
    last = copied(graded, tmp_path / "last.exam")
    graded.bank().edit("retire", graded.bank().items("q1")[0].item_id)
    document = graded.grades().report(tmp_path / "out.html", since=last)
    (section,) = (one for one in document.sections if one.key == "changes")
    assert section.title == "What changed since last.exam?"
    found = graded.grades().changes(last)
    assert section.verdict == found.headline
    assert found.headline in [line.answer for line in document.verdict]
    assert "What does air scatter?" in (tmp_path / "out.html").read_text()
    plain = graded.grades().report()
    assert "changes" not in [one.key for one in plain.sections]


def test_texts_of_sealed_items_are_not_listed(graded: exampp.Collection, tmp_path: Path) -> None:
    last = copied(graded, tmp_path / "last.exam")
    graded.bank().split(0.5)
    sealed = graded.grades().bank_texts().sealed
    assert sealed
    query_id, item_id = min(sealed)
    graded.bank().edit("weight", item_id, "2", query_id=query_id)
    found = graded.grades().changes(last)
    assert {one.what: one.changed for one in found.content}["items"] == 1
    assert found.edits is not None
    assert found.edits.rows == ()
    assert "Changes of sealed items are counted, but not listed: 1." in next(
        with_code(found.notes, "changes-sealed")
    )


def test_command(exampp_command: Commands, graded: exampp.Collection, tmp_path: Path) -> None:
    copied(graded, tmp_path / "last.exam")
    ran = exampp_command(
        "analyze", "changes", str(graded.path), "--since", str(tmp_path / "last.exam")
    )
    assert ran.out.startswith("Nothing changed since last.exam.")
    ran = exampp_command(
        *("analyze", "changes", str(graded.path), "--since", str(tmp_path / "last.exam")),
        *("--format", "json"),
    )
    shown = json.loads(ran.out)
    assert list(shown) == ["scores", "content"]
    assert {row["change"] for row in shown["scores"]["rows"]} == {"unchanged"}
    ran = exampp_command("analyze", "changes", str(graded.path), "--since", "gone.exam")
    assert (ran.code, "no such file" in ran.err) == (2, True)
