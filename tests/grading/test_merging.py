"""Collections merged: shards of one exam, copies that people worked on, and what they differ in."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import exams

import exampp
from exampp.graders.base import Reply, Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.merge import Merged
from exampp.records import State

SAYS = {
    "query": "SELECT query_id, text FROM query",
    "subtopic": "SELECT query_id, subtopic_id, f.text FROM subtopic f JOIN query USING (query)",
    "passage": "SELECT passage_id, v.text, extra FROM passage LEFT JOIN passage_version v "
    "USING (version)",
    "texts of passages": "SELECT passage_id, title, text FROM passage_version v "
    "JOIN passage USING (passage)",
    "pool": "SELECT query_id, passage_id, o.extra FROM pool o JOIN query USING (query) "
    "JOIN passage USING (passage)",
    "ranking": "SELECT name, query_id, subtopic, passage_id, rank, score, r.extra FROM ranking r "
    "JOIN system USING (system) JOIN query USING (query) JOIN passage USING (passage)",
    "judgment": "SELECT query_id, subtopic, passage_id, relevance, j.extra FROM judgment j "
    "JOIN query USING (query) JOIN passage USING (passage)",
    "item": "SELECT query_id, name, kind, item_id, v.text, weight, answers, active, i.extra "
    "FROM item i JOIN query USING (query) JOIN bank USING (bank) JOIN item_version v "
    "USING (version)",
    "texts of items": "SELECT item_id, name, v.text FROM item_version v JOIN item USING (item) "
    "JOIN bank USING (bank)",
    "edits": "SELECT item_id, kind, operation, v.text, e.weight, e.answers, e.active, author, "
    "reason, at FROM item_edit e JOIN item i USING (item) JOIN item_version v "
    "ON v.version = e.version",
    "grade": "SELECT key, item_id, v.text, passage_id, w.text, k.answers, state, rating, reply, "
    "rule, confidence, detail FROM grade g JOIN grader USING (grader) JOIN item_version v "
    "ON v.version = g.item_version JOIN item i USING (item) JOIN passage_version w "
    "ON w.version = g.passage_version JOIN passage p ON p.passage = w.passage "
    "LEFT JOIN answer_key k ON k.answer_key = g.answer_key",
    "decision": "SELECT item_id, v.text, passage_id, rating, author, reason, at, verdict, blind, "
    "adjudicates FROM decision d JOIN item_version v ON v.version = d.item_version "
    "JOIN item USING (item) JOIN passage_version w ON w.version = d.passage_version "
    "JOIN passage p ON p.passage = w.passage",
    "run": "SELECT key, started, seconds, asked, r.cells FROM run r JOIN grader USING (grader)",
    "generation": "SELECT name, query_id, model, prompt, reply, at FROM generation "
    "JOIN bank USING (bank) JOIN query USING (query)",
    "split": "SELECT name, salt, commitment, item_id FROM split JOIN sealed USING (split) "
    "JOIN bank b ON b.bank = split.bank JOIN item USING (item)",
}
"""Return the contents of a collection, whatever the numbers of its rows."""
DONE_WHEN = ("run",)


def content(path: Path, without: Sequence[str] = ()) -> dict[str, list[str]]:
    """Everything that the collection says, in an order of its own; the file is whole."""
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
        return {
            name: sorted(map(repr, opened.execute(sql)))
            for name, sql in SAYS.items()
            if name not in without
        }


def copies(source: Path, *names: str) -> list[Path]:
    return [Path(shutil.copy(source, source.with_name(f"{name}.exam"))) for name in names]


def merge(into: Path, *others: Path, **options: Any) -> Merged:
    with exampp.Collection(into) as opened:
        return opened.merge(*others, **options)


def conflicts(found: Merged) -> list[tuple[str, ...]]:
    return [one[:6] for one in found.conflicts]


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    exams.make(tmp_path).close()
    return tmp_path / "my.exam"


# ---- shards -------------------------------------------------------------------------------------


def grade_shard(path: Path, texts: Sequence[str]) -> int:
    """Grade the items of some queries; all others fail, as those of a server that is not there."""

    def answer(ask: Request) -> Reply:
        told = Reply(str(len(ask.passage) * len(ask.item) % 6))
        return told if ask.item in texts else Reply("", fault="not here")

    with exampp.Collection(path) as opened:
        done = opened.grade(ScriptedGrader(answer, name="m"), model="m", max_failures=99)
    return done.states[State.GRADED]


def test_shards_are_one_run_in_every_order(tmp_path: Path) -> None:
    items = [f"What of {number}?" for number in range(9)]
    exam = tmp_path / "all.exam"
    (tmp_path / "q.json").write_text(json.dumps({f"q{n}": f"about {n}" for n in range(9)}))
    (tmp_path / "bank.tsv").write_text(
        "query_id\tquestion\n" + "".join(f"q{n}\t{item}\n" for n, item in enumerate(items))
    )
    (tmp_path / "p.jsonl").write_text(
        "".join(json.dumps({"id": f"p{n}", "text": "x" * n + " text"}) + "\n" for n in range(4))
    )
    (tmp_path / "s.run").write_text(
        "".join(f"q{q} Q0 p{p} {p + 1} {9 - p} s\n" for q in range(9) for p in range(4))
    )
    with exampp.Collection.create(exam) as opened:
        opened.import_files(*(tmp_path / name for name in ("q.json", "bank.tsv")))
        opened.import_files(passages=[tmp_path / "p.jsonl"])
        opened.import_files(tmp_path / "s.run")
    shards = copies(exam, "a", "b", "c")
    parts = [items[:3], items[3:6], items[6:]]
    assert list(map(grade_shard, shards, parts)) == [12, 12, 12]
    (whole,) = copies(exam, "whole")
    assert grade_shard(whole, items) == 36
    expected = content(whole, DONE_WHEN)
    for number, order in enumerate((shards, shards[::-1])):
        (into,) = copies(exam, f"into{number}")
        found = merge(into, *order)
        assert found.conflicts == ()
        assert content(into, DONE_WHEN) == expected
        assert merge(into, *order).changes == 0
        first, *rest = order
        (into,) = copies(first, f"onto{number}")
        for other in rest:
            merge(into, other)
        assert content(into) == content(exam.with_name(f"into{number}.exam"))
    with exampp.Collection(into) as opened:
        board = opened.grades().evaluate(["Cover@4"], min_rating=3)
        spent = opened.status_tables()["spent"]
    with exampp.Collection(whole) as opened:
        assert board.rows == opened.grades().evaluate(["Cover@4"], min_rating=3).rows
    # each of the three runs requested all 36 cells and got replies to 12
    assert [row[spent.headings().index("replies")] for row in spent.rows] == [36]


# ---- what differs -------------------------------------------------------------------------------


def test_merging_again_changes_nothing_and_says_so(exam: Path) -> None:
    (other,) = copies(exam, "other")
    with exampp.Collection(other) as opened:
        opened.grade("draft")
    tried = merge(exam, other, dry_run=True)
    assert exams.tables(exam)["grade"] == []
    assert tried.counts == merge(exam, other).counts
    before = exams.tables(exam)
    again = merge(exam, other)
    assert (again.changes, again.conflicts) == (0, ())
    assert "Nothing new" in str(again)
    assert exams.tables(exam) == before


def grade_all(path: Path, rating: str | Reply) -> None:
    with exampp.Collection(path) as opened:
        opened.grade(ScriptedGrader(lambda _: rating, name="m"), model="m", max_failures=99)


def test_a_grade_stands_before_none_and_ours_before_another(exam: Path) -> None:
    failed, four, five = copies(exam, "failed", "four", "five")
    grade_all(failed, Reply("", fault="no server"))
    grade_all(four, "4")
    grade_all(five, "5")
    found = merge(failed, four)
    assert found.conflicts == ()
    assert content(failed, DONE_WHEN) == content(four, DONE_WHEN)
    found = merge(failed, five)
    assert len(found.conflicts) == 8
    assert {one[2:6] for one in found.conflicts} == {("rating", "4", "5", "here")}
    assert content(failed, DONE_WHEN) == content(four, DONE_WHEN)
    # a failure takes nothing away
    (fresh,) = copies(exam, "fresh")
    grade_all(fresh, Reply("", fault="no server"))
    merge(four, fresh)
    assert content(four, DONE_WHEN) == content(failed, DONE_WHEN)


Edited = Callable[[exampp.Collection], object]


def item_of(opened: exampp.Collection, query_id: str = "q1") -> str:
    table = opened.bank().show(query_id)
    return str(table.rows[0][table.headings().index("item")])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every moment is a second after the one before."""
    tick = Clock()
    monkeypatch.setattr("exampp.store.bank.now", tick)
    monkeypatch.setattr("exampp.grades.decisions.now", tick)


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> str:
        self.at += timedelta(seconds=1)
        return self.at.isoformat(timespec="seconds")


def test_the_newer_edit_of_an_item_stands_and_the_older_one_is_kept(
    exam: Path, clock: None
) -> None:
    ada, ben = copies(exam, "ada", "ben")
    with exampp.Collection(ada) as opened:
        item = item_of(opened)
        opened.bank().edit("reword", item, "Ada's words?", author="ada")
        opened.bank().edit("reword", item_of(opened, "q2"), "Ada's alone?", author="ada")
    with exampp.Collection(ben) as opened:
        opened.bank().edit("reword", item, "Ben's words?", author="ben")
        opened.bank().edit("weight", item, "2", author="ben")
    (onto,) = copies(ben, "onto")
    (before,) = copies(ada, "before")
    expected = [
        ("item", f"q1 {item}", "text", "Ada's words?", "Ben's words?", "there"),
        ("item", f"q1 {item}", "weight", "1.0", "2.0", "there"),
    ]
    assert conflicts(merge(ada, ben)) == expected
    assert [one[5] for one in conflicts(merge(onto, before))] == ["here", "here"]
    for path in (ada, onto):
        with exampp.Collection(path) as opened:
            texts = {row[-1] for row in opened.bank().show().rows} | set(
                itertools.chain(*opened.bank().show().rows)
            )
            log = str(opened.bank().log(item=item))
        assert {"Ben's words?", "Ada's alone?"} <= texts
        assert "Ada's words?" not in texts
        assert "Ada's words?" in log
    assert content(ada, ("edits", *DONE_WHEN)) == content(onto, ("edits", *DONE_WHEN))
    assert merge(ada, ben, onto).changes <= 1
    assert (merge(ada, ben, onto).changes, merge(ada, onto).conflicts) == (0, ())


def test_an_import_of_the_same_bank_on_both_sides_is_no_edit(tmp_path: Path, clock: None) -> None:
    """Ada edits an item; Ben imports the same files into a collection of his own later."""
    ada, ben = tmp_path / "ada.exam", tmp_path / "ben.exam"
    exams.make(tmp_path, "ada.exam").close()
    with exampp.Collection(ada) as opened:
        opened.bank().edit("reword", item_of(opened), "Ada's words?", author="ada")
    exams.make(tmp_path, "ben.exam").close()
    before = content(ada)
    assert merge(ada, ben).conflicts == ()
    assert content(ada) == before
    assert merge(ben, ada).conflicts == ()
    assert content(ben, ["edits"]) == content(ada, ["edits"])


def test_the_newest_decision_of_a_person_stands_wherever_it_was_made(
    exam: Path, clock: None
) -> None:
    with exampp.Collection(exam) as opened:
        opened.grade("draft")
        item = item_of(opened)
    older, newer = copies(exam, "older", "newer")
    for path, rating in ((older, 1), (newer, 5)):
        with exampp.Collection(path) as opened:
            opened.grades().decisions.decide("q1", item, "p1", rating, author="ada")
    for into, other in ((older, newer), (newer, older)):
        (onto,) = copies(into, f"onto-{into.stem}")
        assert merge(onto, other).conflicts == ()
        with exampp.Collection(onto) as opened:
            assert [one.decision.rating for one in opened.decisions.list()] == [1, 5]
            (query, *_) = opened.grades().gradebook.queries
        assert query.ratings[query.passage_ids.index("p1"), query.item_ids.index(item)] == 5
        assert merge(onto, other).changes == 0


def test_texts_rankings_and_judgments_that_differ_are_named_and_ours_stay(exam: Path) -> None:
    (other,) = copies(exam, "other")
    files = exam.parent / "files"
    (files / "queries.json").write_text(json.dumps({**exams.QUERIES, "q1": "another text"}))
    (files / "passages.jsonl").write_text('{"id": "p1", "text": "Another text."}\n')
    (files / "systems.run").write_text("q1 Q0 p2 1 2.0 alpha\nq1 Q0 p2 1 1.0 gamma\n")
    (files / "judgments.qrels").write_text("q1 0 p1 0\n")
    names = ("queries.json", "passages.jsonl", "systems.run", "judgments.qrels")
    with exampp.Collection(other) as opened:
        opened.import_files(*(files / name for name in names), update=True)
    (fresh,) = copies(exam, "fresh")
    found = conflicts(merge(exam, other))
    blue = exams.QUERIES["q1"]
    # the new text of p1 is newer: the other collection had ours before
    assert found == [
        ("query", "q1", "text", blue, "another text", "here"),
        ("ranking", "alpha q1", "passages, ranks and scores", "p1 p2", "p2", "here"),
        ("judgment", "q1 p1", "relevance", "3", "0", "here"),
    ]
    with exampp.Collection(exam) as opened:
        table = opened.contents().rows
    assert {("systems", 3), ("rankings", 5)} <= set(table)
    assert "Another text." in str(content(exam)["passage"])
    # and what is older does not come back
    assert ("passage", "p1") not in [one[:2] for one in conflicts(merge(other, fresh))]
    assert "Another text." in str(content(other)["passage"])


def test_a_split_holds_where_it_was_made(exam: Path) -> None:
    (other,) = copies(exam, "other")
    with exampp.Collection(other) as opened:
        opened.bank().split(0.5, author="ada")
    (found,) = conflicts(merge(exam, other))
    assert (found[:4], found[5]) == (("split", "main", "commitment", ""), "here")
    assert content(exam)["split"] == []
    assert merge(other, exam).conflicts == ()


def test_grades_without_a_bank_meet_the_bank_of_another_collection(tmp_path: Path) -> None:
    made = exams.make(tmp_path, "whole.exam")
    made.grade("draft")
    made.export(tmp_path / "graded.jsonl.gz")
    made.close()
    alone, bank = tmp_path / "alone.exam", tmp_path / "bank.exam"
    with exampp.Collection.create(alone) as opened:
        opened.import_files(tmp_path / "graded.jsonl.gz")
    with exampp.Collection.create(bank) as opened:
        opened.import_files(tmp_path / "files" / "questions.tsv", bank="named")
        opened.import_files(tmp_path / "files" / "systems.run", unknown_passages="keep")
    for into, other in ((alone, bank), (bank, alone)):
        (onto,) = copies(into, f"onto-{into.stem}")
        merge(onto, other)
        with exampp.Collection(onto) as opened:
            grades = opened.grades(bank="named")
            assert grades.gradebook.is_graded
            assert grades.gradebook.pending == {}
        assert merge(onto, other).changes == 0


# ---- what is refused, and what ends in the middle -----------------------------------------------


def test_what_cannot_be_merged_is_refused_and_nothing_changes(exam: Path) -> None:
    (other,) = copies(exam, "other")
    with exampp.Collection(other) as opened:
        opened.grade("draft")
    before = exams.tables(exam)
    newer, damaged, plain = copies(other, "newer", "damaged", "plain")
    with closing(sqlite3.connect(newer)) as opened_newer:
        opened_newer.execute("PRAGMA user_version = 99")
    with damaged.open("r+b") as stream:
        stream.seek(4096 * 5)
        stream.write(b"\xff" * 4096 * 10)
    plain.write_text("[]" * 999)
    missing = exam.with_name("missing.exam")
    for bad, what in (
        (exam, "is the target of the merge"),
        (newer, "another version of exampp"),
        (damaged, "damaged"),
        (plain, "is not an exampp collection"),
        (missing, "no such collection"),
    ):
        with pytest.raises(exampp.InputError, match=what) as told:
            merge(exam, other, bad)
        assert str(bad) in str(told.value)
        assert exams.tables(exam) == before
    with pytest.raises(exampp.InputError, match="no collection to merge"):
        merge(exam)


def test_a_collection_that_is_being_graded_is_refused(exam: Path) -> None:
    (other,) = copies(exam, "other")
    told = []

    def answer(_: Request) -> str:
        for into, from_ in ((exam, other), (other, exam)):
            with pytest.raises(exampp.InputError, match="is being graded") as error:
                _in_thread(partial(merge, into, from_))
            told.append(str(error.value))
        return "4"

    with exampp.Collection(other) as opened:
        opened.grade(ScriptedGrader(answer, name="m"), model="m", max_queries=1)
    assert told
    assert all(one.startswith(str(other)) for one in told)
    assert merge(exam, other).changes > 0


def _in_thread(action: Callable[[], object]) -> None:
    """Do it beside this thread, whose own run counts as gone for itself."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        threads.submit(action).result()


def test_what_ends_in_the_middle_leaves_everything_as_it_was(
    exam: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other,) = copies(exam, "other")
    with exampp.Collection(other) as opened:
        opened.grade("draft")
    before = exams.tables(exam)
    from exampp.store import merge as merging

    run = merging.MergeStep.run
    with exampp.Collection(exam) as opened:
        for last in range(0, 999, 25):
            count = itertools.count()

            def stopped(step: Any, sql: str, last: int = last, count: Any = count) -> int:
                if next(count) == last:
                    raise KeyboardInterrupt
                return run(step, sql)

            with monkeypatch.context() as patch:
                patch.setattr(merging.MergeStep, "run", stopped)
                try:
                    opened.merge(other)
                except KeyboardInterrupt:
                    assert exams.tables(exam) == before
                else:
                    break
        else:
            pytest.fail("never came to its end")
        assert last > 25
        assert opened.merge(other).changes == 0
    assert content(exam) == content(other)


# ---- properties ---------------------------------------------------------------------------------

ITEMS = range(3)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("grade"), st.sampled_from(["m1", "m2"]), st.integers(1, 2)),
        st.tuples(st.just("decide"), st.sampled_from(ITEMS), st.integers(0, 5)),
        st.tuples(st.just("reword"), st.sampled_from(ITEMS), st.integers(0, 9)),
        st.tuples(st.just("retire"), st.sampled_from(ITEMS), st.just(0)),
        st.tuples(st.just("add"), st.sampled_from(["q1", "q2"]), st.integers(0, 9)),
        st.tuples(st.just("import"), st.sampled_from(["p5", "p6"]), st.just(0)),
    ),
    max_size=3,
)


def perform(path: Path, operations: Sequence[tuple[str, Any, int]], who: str) -> None:
    """Do what people do, each in a way that no two collections contradict each other in grades."""
    with exampp.Collection(path) as opened:
        items = [(q, row) for q in ("q1", "q2") for row in opened.bank().show(q).rows][:3]
        place = opened.bank().show("q1").headings().index("item")
        for what, which, number in operations:
            if what == "grade":
                grader = ScriptedGrader(lambda ask: str(len(ask.item) % 6), name=which)
                opened.grade(grader, model=which, max_queries=number)
            elif what == "import":
                file = path.with_name(f"{which}.jsonl")
                file.write_text(json.dumps({"id": which, "text": f"text of {which}"}) + "\n")
                opened.import_files(passages=[file])
            elif what == "add":
                # added twice
                with suppress(exampp.InputError):
                    opened.bank().add(which, f"New {number}?", author=who)
            else:
                query_id, row = items[which]
                item = str(row[place])
                try:
                    if what == "decide":
                        passage = {"q1": "p1", "q2": "p3"}[query_id]
                        opened.grades("m0").decisions.decide(
                            query_id, item, passage, number, author=who
                        )
                    elif what == "reword":
                        opened.bank().edit("reword", item, f"{who}: {number}?", author=who)
                    else:
                        opened.bank().edit("retire", item, author=who)
                except exampp.InputError:
                    # reworded to what another says, retired already
                    continue


@given(st.tuples(OPERATIONS, OPERATIONS, OPERATIONS))
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_merging_is_commutative_associative_and_idempotent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operations: tuple[Any, ...]
) -> None:
    tick = Clock()
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        patch.setattr("exampp.store.bank.now", tick)
        patch.setattr("exampp.grades.decisions.now", tick)
        exam = Path(folder) / "my.exam"
        exams.make(Path(folder)).close()
        grade_all_by(exam)
        a, b, c = copies(exam, "a", "b", "c")
        for path, done, who in zip((a, b, c), operations, ("ada", "ben", "cy"), strict=True):
            perform(path, done, who)
        ab, ba, bc, a_bc, ca = copies(a, "ab", "x", "y", "a_bc", "z")
        shutil.copy(b, ba)
        shutil.copy(b, bc)
        shutil.copy(c, ca)
        merge(ab, b)
        merge(ba, a)
        # of an edit on both sides the log may say again what stands
        assert content(ab, ["edits"]) == content(ba, ["edits"])
        before = exams.tables(ab)
        assert merge(ab, b, a).changes == 0
        assert exams.tables(ab) == before
        merge(ab, c)
        merge(bc, c)
        merge(a_bc, bc)
        merge(ca, b, a)
        assert content(ab, ["edits"]) == content(a_bc, ["edits"]) == content(ca, ["edits"])
        for path in (a, b, c):
            held = content(ab)
            for name, rows in content(path, ["passage", "item", "grade", "run"]).items():
                assert set(rows) <= set(held[name]), name


def grade_all_by(path: Path) -> None:
    with exampp.Collection(path) as opened:
        opened.grade(ScriptedGrader(lambda _: "3", name="m0"), model="m0")
