"""Grading runs: what is asked, what is kept, and what an interrupt or a fault leaves behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import exams, interrupting

import exampp
from exampp.errors import InputError
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.scripted import Script, ScriptedGrader
from exampp.grading.plan import join_grading
from exampp.grading.requests import Grading
from exampp.grading.run import GradingRun, Progress
from exampp.prompts import load_grading_prompt
from exampp.records import State
from exampp.store import runs as leases
from exampp.store.cells import GradingScope
from exampp.store.connection import connect, transaction
from exampp.store.grades import put_grader

EXAM = GradingScope("question", "main")


def scripted(script: Script, prompt: str = "question-self-rating", **options: Any) -> Grading:
    grader = ScriptedGrader(script, **options)
    chosen = load_grading_prompt(prompt)
    return join_grading(grader, "scripted", chosen)


def run(collection: exampp.Collection, how: Grading, **options: Any) -> Progress:
    *_, last = GradingRun(collection.connection, how, EXAM, **options).steps()
    return last


def script_of(how: Grading) -> Any:
    assert isinstance(how.grader, ScriptedGrader)
    return how.grader


def asked(how: Grading) -> Counter[tuple[str, str]]:
    return Counter((ask.item, ask.passage) for ask in script_of(how).calls)


def grades(collection: exampp.Collection) -> set[tuple[str, str, int, int | None]]:
    """(item text, passage text, state, rating) of every grade."""
    return set(
        collection.connection.execute(
            "SELECT i.text, p.text, g.state, g.rating FROM grade g "
            "JOIN item_version i ON i.version = g.item_version "
            "JOIN passage_version p ON p.version = g.passage_version"
        )
    )


def test_every_due_cell_is_asked_once_with_the_papers_prompt(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4")
        progress = run(collection, how)
        assert (progress.total, progress.done, progress.states) == (8, 8, {State.GRADED: 8})
        assert set(asked(how).values()) == {1}
        ask = script_of(how).calls[0]
        assert ask.user.startswith("Can the question be answered based on the available context?")
        assert ask.user.endswith(f"Question: {ask.item}\nContext: {ask.passage}")
        assert run(collection, how).total == 0


def test_a_changed_text_makes_exactly_its_cells_due(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run(collection, scripted("4"))
        passages = tmp_path / "files" / "passages.jsonl"
        original = passages.read_text()
        passages.write_text(original.replace("more air", "far more air"))
        collection.import_files(passages, update=True)
        how = scripted("4")
        assert run(collection, how).done == 2  # the two questions of q1 on p2
        assert {passage for _, passage in asked(how)} == {
            "At sunset the light crosses far more air."
        }
        # the old text comes back, and with it its grades
        passages.write_text(original)
        collection.import_files(passages, update=True)
        assert run(collection, scripted("4")).total == 0


def test_the_prompts_that_grade_a_kind_are_named(tmp_path: Path) -> None:
    server: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "api_key": "none"}
    with (
        exams.make(tmp_path) as exam,
        pytest.raises(exampp.InputError, match=r"--prompt .*, umbrela"),
    ):
        exam.grading("openai", prompt="question-self-rating", kind="query", **server)


def test_another_prompt_is_another_grader(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run(collection, scripted("4"))
        assert run(collection, scripted("blue", "question-answering")).done == 8
        with pytest.raises(exampp.AmbiguousGrader, match="2 graders match"):
            collection.grades().evaluate()


def test_equal_texts_are_asked_once(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        twin = tmp_path / "passages.jsonl"
        twin.write_text('{"id": "p5", "text": "Compasses point north."}\n')
        extra = tmp_path / "twin.run"
        extra.write_text("q1 Q0 p5 1 1.0 gamma\n")
        collection.import_files(twin, extra)
        how = scripted("4")
        progress = run(collection, how)
        assert (progress.total, progress.asked, progress.done) == (10, 8, 10)
        # and a bank that shares a question costs nothing for it
        bank = tmp_path / "second.tsv"
        bank.write_text("query_id\tquestion\nq2\tWhat makes a magnet?\nq2\tWhat is a pole?\n")
        collection.import_files(bank, bank="second")
        more = GradingRun(collection.connection, scripted("4"), GradingScope("question", "second"))
        *_, last = more.steps()
        assert (last.total, last.copied, last.asked) == (4, 2, 2)


def test_what_cannot_be_read_is_kept_and_stays_due(tmp_path: Path) -> None:
    replies: dict[str, str | Reply] = {
        "What does air scatter?": "7",
        "Why are sunsets red?": Reply("4", truncated=True),
        "What makes a magnet?": "I'm sorry, but I can't help with that.",
    }
    with exams.make(tmp_path) as collection:
        progress = run(collection, scripted(replies))
        assert progress.states == {State.UNPARSED: 3, State.TRUNCATED: 3, State.REFUSED: 2}
        assert {state for _, _, state, rating in grades(collection) if rating is None} == {1, 2, 3}
        kept = collection.connection.execute("SELECT DISTINCT reply FROM grade ORDER BY 1")
        assert [row[0] for row in kept] == ["4", "7", "I'm sorry, but I can't help with that."]
        assert run(collection, scripted(replies), select="failed").total == 8
        assert run(collection, scripted(replies), select="new").total == 0


def test_failures_never_replace_a_rating(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4", faults={"What makes a magnet?": "timeout"})
        assert run(collection, how).states == {State.GRADED: 6, State.FAILED: 2}
        reason = collection.connection.execute(
            "SELECT DISTINCT detail FROM grade WHERE state = 4"
        ).fetchall()
        assert reason == [('{"reason":"timeout"}',)]
        repaired = scripted("4", faults={"What makes a magnet?": "timeout"})
        script_of(repaired)._faults.clear()
        assert run(collection, repaired, select="failed").done == 2
        assert {state for _, _, state, _ in grades(collection)} == {0}


class Refusing(ScriptedGrader):
    """A grader that raises at the first request, like a server that rejects an option."""

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        raise InputError("the server rejects --decode json")
        yield from super().answer(asks)


def test_a_refused_run_adds_no_grader(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        run(collection, scripted("4"))
        prompt = load_grading_prompt("question-self-rating")
        with pytest.raises(InputError, match="rejects"):
            run(collection, join_grading(Refusing("4"), "refusing", prompt))
        assert [one.model for one in collection.graders] == ["scripted"]
        assert len(collection.connection.execute("SELECT * FROM run").fetchall()) == 1


def test_graders_without_a_grade_are_not_chosen_by_default(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        prompt = load_grading_prompt("question-self-rating")
        down = join_grading(ScriptedGrader("7"), "down", prompt)
        run(collection, down, max_failures=99)
        assert collection.grades().grader.model == "down"
        run(collection, scripted("4"))
        assert collection.grades().grader.model == "scripted"
        assert collection.grades("down").grader.model == "down"
        assert [one.grader.model for one in collection.panel()] == ["scripted"]


def test_many_failures_in_a_row_stop_the_run(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4", faults=dict.fromkeys(exams.QUESTIONS["q1"], "no such model"))
        with pytest.raises(exampp.Unfinished, match=r"3 consecutive failures, .*no such model"):
            run(collection, how, max_failures=3)
        assert len(grades(collection)) == 3
        assert sum(asked(how).values()) == 3
        # it goes on where it was, with a grader that answers
        assert run(collection, how, select="new", max_failures=99).done == 5


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("7", "unparsed (off-scale), the reply '7'"),
        ("I'm sorry, but I can't help with that.", "refused, the reply \"I'm sorry, "),
        (Reply("no", detail={"refusal": True, "reason": "filter"}), "refused (filter), the reply"),
        (Reply("4: It", truncated=True), "truncated, the reply '4: It'"),
        ("a\x1b[2J" + 99 * "b", "unparsed (no number), the reply 'a\\x1b[2J" + 54 * "b" + "…'"),
    ],
)
def test_replies_without_a_grade_in_a_row_stop_the_run(
    tmp_path: Path, reply: str | Reply, said: str
) -> None:
    grader = ScriptedGrader(["4", reply, reply, "4", *[reply] * 4])
    how = join_grading(
        grader, "m", load_grading_prompt("question-self-rating"), unnumbered="unparsed"
    )
    with exams.make(tmp_path) as collection:
        with pytest.raises(exampp.Unfinished) as caught:
            run(collection, how, max_failures=3)
        assert f"3 consecutive failures, the last: {said}" in str(caught.value)
        # a grade ends a row: two failures before it do not count
        assert len(grades(collection)) == len(grader.calls) == 7


def test_a_run_goes_on_with_what_nobody_tried_and_tries_again_last(tmp_path: Path) -> None:
    unread = scripted(dict.fromkeys(exams.QUESTIONS["q1"], "7") | {"What makes a magnet?": "4"})
    with exams.make(tmp_path) as collection:
        for kept in (3, 6):  # each time three new cells, not the same three
            with pytest.raises(exampp.Unfinished, match="3 consecutive failures"):
                run(collection, unread, max_failures=3)
            assert len(grades(collection)) == kept
        assert set(asked(unread).values()) == {1}
        # now the other query, then the six again; that they end as before is no news
        progress = run(collection, unread, max_failures=3)
        assert progress.states == {State.GRADED: 2, State.UNPARSED: 6}
        assert [ask.item for ask in script_of(unread).calls[6:8]] == 2 * exams.QUESTIONS["q2"]
        assert sorted(asked(unread).values()) == [1] * 2 + [2] * 6
        # a server that fails is news
        down = scripted("4", faults=dict.fromkeys(exams.QUESTIONS["q1"], "down"))
        for _ in range(2):
            with pytest.raises(exampp.Unfinished, match="3 consecutive failures, the last: down"):
                run(collection, down, max_failures=3)


def test_an_interrupt_keeps_what_was_answered(tmp_path: Path) -> None:
    count = 0

    def reply(_: Request) -> str:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return "4"

    with exams.make(tmp_path) as collection:
        with pytest.raises(KeyboardInterrupt):
            run(collection, scripted(reply))
        assert len(grades(collection)) == 3
        assert run(collection, scripted(reply)).done == 5
        assert {rating for *_, rating in grades(collection)} == {4}


def test_an_interrupt_at_any_bytecode_keeps_what_the_grader_gave(tmp_path: Path) -> None:
    given: list[tuple[str, str]] = []

    class Counting(ScriptedGrader):
        def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
            for ask, reply in super().answer(asks):
                try:
                    yield ask, reply
                finally:
                    given.append((ask.item, ask.passage))

    def grade() -> None:
        how = join_grading(
            Counting("4", look_ahead=2), "scripted", load_grading_prompt("question-self-rating")
        )
        run(collection, how)

    with exams.make(tmp_path) as collection:
        opened = collection.connection
        grade()  # what is done once a process is no part of the count
        opened.execute("DELETE FROM grade")
        given.clear()
        count = interrupting.traced(grade)
        assert len(given) == 8
        for at in range(60, count - count // 20, count // 35):
            opened.execute("DELETE FROM grade")
            given.clear()
            with pytest.raises(KeyboardInterrupt) as kept:
                interrupting.traced(grade, at)
            assert not opened.in_transaction, (at, kept)
            assert opened.execute("SELECT count(*) FROM lease").fetchone() == (0,)
            assert set(given) <= {(item, passage) for item, passage, *_ in grades(collection)}
        grade()
        assert len(grades(collection)) == 8


def test_a_run_that_was_left_in_the_middle_holds_nothing(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4", look_ahead=1)
        left = GradingRun(collection.connection, how, EXAM).steps()
        next(left)
        for _ in range(2):
            # the first asks of it, the second while it is suspended and holds a query
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("exampp.grading.run.COMMIT_SECONDS", -1)
                next(left)
        assert collection.connection.execute("SELECT count(*) FROM lease").fetchone() == (1,)
        progress = run(collection, scripted("4"))
        assert (progress.done, progress.elsewhere) == (6, 0)
        del left
        assert collection.connection.execute("SELECT count(*) FROM lease").fetchone() == (0,)


def test_stop_finishes_what_is_in_flight(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4", look_ahead=3)
        grading_run = GradingRun(collection.connection, how, EXAM)
        seen = 0

        def stopping(ask: Request) -> str:
            nonlocal seen
            seen += 1
            if seen == 2:
                grading_run.stop()
            return "4"

        script_of(how)._line = stopping
        *_, last = grading_run.steps()
        assert (last.done, last.total, len(grades(collection))) == (3, 8, 3)


def test_a_query_that_another_process_grades_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exams.make(tmp_path) as collection:
        how = scripted("4")
        other = connect(collection.path)
        with transaction(other):
            key = put_grader(other, how.identity)
            assert leases.claim(other, key, 1, "elsewhere:1:0")
        waits = 0

        def wait(_: float) -> None:
            nonlocal waits
            waits += 1
            # meanwhile the other one grades two of the six cells of q1 and gives the query back
            with transaction(other):
                other.execute(
                    "INSERT INTO grade (grader, item_version, passage_version, state, rating) "
                    "SELECT ?, 1, version, 0, 5 FROM passage_version WHERE passage < 3",
                    (key,),
                )
                leases.release(other, key, "elsewhere:1:0", [1])

        monkeypatch.setattr("exampp.grading.run.time.sleep", wait)
        progress = run(collection, how)
        assert (progress.done, progress.elsewhere, waits) == (6, 2, 1)
        assert len(grades(collection)) == 8
        assert other.execute("SELECT * FROM lease").fetchall() == []
        other.close()


def test_the_lease_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    import socket
    import subprocess
    import sys

    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    with exams.make(tmp_path) as collection:
        how = scripted("4")
        with transaction(collection.connection):
            key = put_grader(collection.connection, how.identity)
            owner = f"{socket.gethostname()}:{child.pid}:1"
            leases.claim(collection.connection, key, 1, owner)
        assert run(collection, how).done == 8


def test_a_lease_that_ran_out_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process on another machine only its silence tells that it is gone."""
    with exams.make(tmp_path) as collection:
        how = scripted("4")
        with transaction(collection.connection):
            key = put_grader(collection.connection, how.identity)
            leases.claim(collection.connection, key, 1, "elsewhere:1:0")
        later = time.time() + 60

        def wait(_: float) -> None:
            nonlocal later
            later += leases.LEASE_SECONDS

        monkeypatch.setattr("exampp.store.runs.time.time", lambda: later)
        monkeypatch.setattr("exampp.grading.run.time.sleep", wait)
        progress = run(collection, how)
        assert (progress.done, progress.elsewhere) == (8, 0)


def test_answers_are_verified_against_the_key(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        bank = tmp_path / "keyed.tsv"
        bank.write_text(
            "query_id\tquestion\tanswer\nq1\tWhat does air scatter?\tblue light|light\n"
        )
        collection.import_files(bank, bank="keyed")
        how = scripted(
            lambda ask: "Blue Light." if "scatters" in ask.passage else "unanswerable",
            "question-answering",
        )
        *_, last = GradingRun(collection.connection, how, GradingScope("question", "keyed")).steps()
        assert last.states == {State.GRADED: 3}
        rows = collection.connection.execute(
            "SELECT rating, detail FROM grade ORDER BY rating DESC"
        )
        (rating, detail), *others = rows.fetchall()
        assert rating == 1
        assert '"key":"blue light"' in detail
        assert '"span":[13,23]' in detail
        assert [row[0] for row in others] == [0, 0]


def test_label_probabilities_become_confidence_and_expected_rating(tmp_path: Path) -> None:
    scores = {"0": 0.125, "4": 0.5, "5": 0.375}
    with exams.make(tmp_path) as collection:
        run(collection, scripted(Reply("4", scores=scores, usage=Usage(10, 4, 1))))
        (confidence, detail), *_ = collection.connection.execute(
            "SELECT confidence, detail FROM grade"
        )
        assert confidence == 0.5
        assert '"expected":3.875' in detail
        spent = leases.usage_of(collection.connection, 1)
        assert spent[1:6] == (8, 8, 80, 32, 8)
        assert (spent.requests, spent.cost) == (0, None)


def varying(script: Script, **options: Any) -> Grading:
    """A scripted grader whose repeated requests can get other replies, as those of a server do."""
    how = scripted(script, **options)
    script_of(how).varies = True
    return how


@pytest.mark.parametrize("look_ahead", [1, 3, 100])
def test_an_unreadable_reply_is_asked_for_once_more(tmp_path: Path, look_ahead: int) -> None:
    """Every cell of p1 is unreadable at first, those of p4 always; others are asked once."""
    seen: Counter[tuple[str, str]] = Counter()

    def line(ask: Request) -> str:
        seen[ask.item, ask.passage_id] += 1
        if ask.passage_id == "p4":
            return f"I wonder, time {seen[ask.item, ask.passage_id]}"
        return "mumble" if ask.passage_id == "p1" and seen[ask.item, ask.passage_id] == 1 else "4"

    with exams.make(tmp_path) as collection:
        progress = run(collection, unread_is_unparsed(varying(line, look_ahead=look_ahead)))
        assert {name: count for (_, name), count in seen.items()} == {
            "p1": 2,
            "p2": 1,
            "p3": 1,
            "p4": 2,
        }
        assert progress.states == {State.GRADED: 5, State.UNPARSED: 3}
        assert (progress.total, progress.done, progress.repeated, progress.recovered) == (
            8,
            8,
            5,
            2,
        )
        assert "5 repeated after an unreadable reply (2 graded)" in str(progress)
        # what cost tokens is counted: eight replies and five repeats
        assert (progress.asked, progress.spent.cells) == (13, 8)
        replies = collection.connection.execute(
            "SELECT reply, count(*) FROM grade WHERE state = 1 GROUP BY reply"
        ).fetchall()
        assert replies == [("I wonder, time 2", 3)]


def test_nothing_is_repeated_where_the_reply_would_be_the_same(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        how = unread_is_unparsed(scripted("mumble"))
        progress = run(collection, how)
        assert (set(asked(how).values()), progress.repeated) == ({1}, 0)
        assert "asked again" not in str(progress)


def test_a_repeat_that_fails_leaves_the_first_reply_in_place(tmp_path: Path) -> None:
    seen: Counter[tuple[str, str]] = Counter()

    def line(ask: Request) -> str | Reply:
        seen[ask.item, ask.passage] += 1
        return "mumble" if seen[ask.item, ask.passage] == 1 else Reply("", fault="no server")

    with exams.make(tmp_path) as collection:
        progress = run(collection, unread_is_unparsed(varying(line)))
        assert (progress.states[State.UNPARSED], progress.last_failure) == (8, "no server")
        rows = collection.connection.execute("SELECT DISTINCT state, reply FROM grade").fetchall()
        assert rows == [(1, "mumble")]


def test_a_run_that_stops_before_the_repeat_leaves_the_cell_pending(tmp_path: Path) -> None:
    stops = True

    def line(_: Request) -> str:
        if not stops:
            return "4"
        grading.stop()
        return "mumble"

    with exams.make(tmp_path) as collection:
        grading = GradingRun(collection.connection, unread_is_unparsed(varying(line)), EXAM)
        *_, last = grading.steps()
        assert (last.done, last.states, last.repeated) == (1, {State.UNPARSED: 1}, 0)
        stops = False
        assert run(collection, unread_is_unparsed(varying(line))).states == {State.GRADED: 8}


def unread_is_unparsed(how: Grading) -> Grading:
    script_of(how).unnumbered = "unparsed"
    return join_grading(how.grader, "scripted", load_grading_prompt("question-self-rating"))
