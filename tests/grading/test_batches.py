"""Grading by batches: every state and fault of a provider, and what a dead process leaves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.batch_servers import (
    BatchStub,
    Call,
    Json,
    OpenAIStub,
    Outcome,
    rated,
)
from support.commands import Commands
from support.forked import forked
from support.waiting import wait_for

import exampp
from exampp.cli.main import main
from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.openai.batches import OpenAIBatches
from exampp.grading import batches
from exampp.grading.batches import Batches
from exampp.grading.run import Progress
from exampp.prompts import fill, load_grading_prompt
from exampp.store import runs as kept

CELLS = 8
WAITED_FOR = Batches(poll=0)
KEY = "sk-do-not-show-7f3a"
PRICES: Any = {"price_read": 1_000_000.0, "price_written": 1_000_000.0}
USUAL: dict[str, Any] = {"decode": "text"}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def openai() -> Iterator[BatchStub]:
    with OpenAIStub() as server:
        yield server


@pytest.fixture
def stub(openai: BatchStub) -> BatchStub:
    return openai


def grade(
    exam: exampp.Collection, stub: BatchStub, batches: bool | Batches = True, **more: Any
) -> Progress:
    chosen = Batches(poll=0) if batches is True else batches
    options = {"model": "tiny", "base_url": stub.url, **USUAL, **more}
    return exam.grade("openai", batches=chosen, **options)


def cells(exam: exampp.Collection) -> dict[tuple[str, str], tuple[int, int | None]]:
    """(item text, passage text) -> (state, rating)."""
    rows = exam.connection.execute(
        "SELECT i.text, p.text, g.state, g.rating FROM grade g "
        "JOIN item_version i ON i.version = g.item_version "
        "JOIN passage_version p ON p.version = g.passage_version"
    )
    return {(item, passage): (state, rating) for item, passage, state, rating in rows}


def prompt_of(item: str, passage: str) -> str:
    return fill(
        load_grading_prompt("question-self-rating"), {"question": item, "context": passage}
    ).user


def expected(item: str, passage: str) -> tuple[int, int]:
    return 0, int(rated(prompt_of(item, passage)).text)


def out(exam: exampp.Collection) -> list[kept.BatchRow]:
    return kept.batches_of(exam.connection, None, (kept.PREPARED, kept.OPEN))


def test_every_cell_is_graded_as_directly_and_paid_once(tmp_path: Path, stub: BatchStub) -> None:
    stub.looks = 2
    said = []
    with exams.make(tmp_path) as exam:
        chosen = Batches(poll=0)
        name = "openai"
        progress = exam.grade(
            name,
            model="tiny",
            base_url=stub.url,
            batches=chosen,
            on_progress=lambda one: said.append(one.awaits),
            **USUAL,
            **PRICES,
        )
        assert (progress.total, progress.done) == (CELLS, CELLS)
        found = cells(exam)
        assert found == {cell: expected(*cell) for cell in found}
        assert set(stub.paid.values()) == {1}
        assert len(stub.batches) == 1
        # 20 tokens read and 2 written, at half the price
        assert progress.spent.requests == CELLS
        assert progress.spent.cost == pytest.approx(CELLS * 22 / 2)
        assert (progress.spent.tokens_read, progress.spent.tokens_written) == (160, 16)
        assert any("batch_1 (8 requests)" in one for one in said)
        assert exam.connection.execute("SELECT count(*) FROM batch_request").fetchone() == (0,)
        assert out(exam) == []
        assert grade(exam, stub).total == 0
        assert stub.keys == {KEY}
    assert KEY.encode() not in (tmp_path / "my.exam").read_bytes()


def test_the_grader_is_the_one_that_is_asked_directly(tmp_path: Path, openai: BatchStub) -> None:
    with exams.make(tmp_path) as exam:
        direct = exam.grading("openai", model="tiny", base_url=openai.url, **USUAL)
        by_batch = exam.grading("openai", model="tiny", base_url=openai.url, batches=True, **USUAL)
        assert direct.grading.identity.key == by_batch.grading.identity.key


def test_partly_failed(tmp_path: Path, stub: BatchStub) -> None:
    """A request that the server refuses is a failed cell with its reason; the rest are graded."""
    stub.outcome = lambda text: (
        Outcome(status=400, message="no thanks") if "sunset" in text.lower() else rated(text)
    )
    with exams.make(tmp_path) as exam:
        progress = grade(exam, stub)
        assert progress.done == CELLS
        failed = {cell for cell, (state, _) in cells(exam).items() if state}
        assert failed == {cell for cell in cells(exam) if "sunset" in "".join(cell).lower()}
        assert 0 < len(failed) < CELLS
        assert any("no thanks" in note for note in exam.status().notes)
        # they stay due: the same command asks about them alone, and gets them
        stub.outcome = rated
        assert grade(exam, stub).done == len(failed)
        assert all(state == 0 for state, _ in cells(exam).values())
        assert set(stub.paid.values()) == {1}


@pytest.mark.parametrize("gone", ["expired", "dropped"])
def test_what_was_not_answered_goes_into_another_batch(
    tmp_path: Path, stub: BatchStub, gone: str
) -> None:
    """Expired requests, and those to which no result comes, cost nothing and are sent again."""
    stub.outcome = lambda text: (
        Outcome(gone=gone) if "sunset" in text and len(stub.batches) == 1 else rated(text)
    )
    with exams.make(tmp_path) as exam:
        assert grade(exam, stub).done == CELLS
        assert all(state == 0 for state, _ in cells(exam).values())
        assert len(stub.batches) == 2
        assert set(stub.paid.values()) == {1}


def test_passing_errors_are_sent_again_and_not_for_ever(tmp_path: Path, stub: BatchStub) -> None:
    stub.outcome = lambda text: (
        Outcome(status=500, message="broke") if "sunset" in text else rated(text)
    )
    with exams.make(tmp_path) as exam:
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 3
        why = " ".join(exam.status().notes)
        assert "no reply in 3 batches" in why
        assert "broke" in why


def test_a_refused_parameter_is_left_out_of_the_next_batch(
    tmp_path: Path, openai: BatchStub
) -> None:
    def outcome(text: str) -> Outcome:
        batch = list(openai.batches.values())[-1]
        if any("seed" in body for body in batch.requests.values()):
            return Outcome(status=400, message="Unsupported parameter: 'seed'")
        return rated(text)

    openai.outcome = outcome
    with exams.make(tmp_path) as exam:
        assert grade(exam, openai).done == CELLS
        assert all(state == 0 for state, _ in cells(exam).values())
        assert len(openai.batches) == 2
        detail = exam.connection.execute("SELECT DISTINCT detail FROM grade").fetchall()
        assert detail == [('{"without":["seed"]}',)]


def test_validation_fails(tmp_path: Path, openai: BatchStub) -> None:
    """Nothing was run: no cell is touched, and the message names the line."""
    openai.validate = lambda _: [
        {"code": "invalid_json_line", "line": 3, "message": "not JSON"},
        {"code": "mismatched_model", "line": None, "message": "two models"},
    ]
    with exams.make(tmp_path) as exam:
        run = running(exam, openai)
        list(run.steps())
        assert "line 3: not JSON; two models" in run.why_stopped
        assert "nothing was charged" in run.why_stopped
        assert cells(exam) == {}
        openai.validate = lambda _: []
        assert grade(exam, openai).done == CELLS


def running(exam: exampp.Collection, stub: BatchStub, batches: Batches = WAITED_FOR) -> Any:
    name = "openai"
    return exam.grading(name, model="tiny", base_url=stub.url, batches=batches, **USUAL)


def test_a_full_queue_gets_smaller_batches(tmp_path: Path, openai: BatchStub) -> None:
    openai.validate = lambda batch: (
        [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
        if len(batch.requests) > 3
        else []
    )
    with exams.make(tmp_path) as exam:
        run = running(exam, openai)
        list(run.steps())
        assert all(state == 0 for state, _ in cells(exam).values())
        assert len(cells(exam)) == CELLS
        assert "smaller ones" in run.late_note
        assert set(openai.paid.values()) == {1}


FAULTS: dict[str, Callable[[Call], int | None]] = {
    "rate limit at the start": lambda call: (
        429 if call.method == "POST" and call.path != "/files" and call.number < 2 else None
    ),
    "HTTP 500 while polling": lambda call: (
        500 if call.method == "GET" and "batch_1" in call.path and call.number < 5 else None
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_transient_faults_cost_nothing(tmp_path: Path, stub: BatchStub, fault: str) -> None:
    stub.looks, stub.fault = 1, FAULTS[fault]
    with exams.make(tmp_path) as exam:
        assert grade(exam, stub).done == CELLS
        assert set(stub.paid.values()) == {1}


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (429, Unfinished, r"rejected a batch .*Nothing was charged"),
        (401, InputError, "Set OPENAI_API_KEY"),
    ],
)
def test_a_batch_that_is_refused_for_good_is_not_open(
    tmp_path: Path, stub: BatchStub, status: int, error: type[ExamError], said: str
) -> None:
    stub.fault = lambda call: status if call.method == "POST" else None
    with exams.make(tmp_path) as exam:
        with pytest.raises(error, match=said):
            grade(exam, stub)
        assert out(exam) == []


def test_a_provider_that_says_nothing_any_more(tmp_path: Path, stub: BatchStub) -> None:
    """The run ends, the batch does not: the same command continues with it."""
    stub.fault = lambda call: 503 if call.method == "GET" else None
    with exams.make(tmp_path) as exam:
        with pytest.raises(Unfinished, match=r"the same command continues"):
            grade(exam, stub)
        assert len(out(exam)) == 1
        stub.fault = lambda _: None
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 1
        assert set(stub.paid.values()) == {1}


def test_cancelled_by_somebody_else(tmp_path: Path, stub: BatchStub) -> None:
    """Replies are stored; nothing is sent again unless requested."""
    stub.end = lambda _: "cancelled"
    stub.outcome = lambda text: Outcome(gone="cancelled") if "sunset" in text else rated(text)
    with exams.make(tmp_path) as exam:
        run = running(exam, stub)
        list(run.steps())
        assert "was cancelled by another program" in run.why_stopped
        assert len(stub.batches) == 1
        done = len(cells(exam))
        assert 0 < done < CELLS
        stub.end, stub.outcome = (lambda _: "completed"), rated
        assert grade(exam, stub).done == CELLS - done
        assert set(stub.paid.values()) == {1}


def test_cancelled_by_us(tmp_path: Path, stub: BatchStub) -> None:
    stub.looks = 10**9
    stub.outcome = lambda text: Outcome(gone="cancelled") if "sunset" in text else rated(text)
    with exams.make(tmp_path) as exam:
        leave_running(exam, stub)
        run = running(exam, stub, Batches(cancel=True, poll=0))
        list(run.steps())
        assert "no open batches" in run.why_stopped
        assert out(exam) == []
        assert 0 < len(cells(exam)) < CELLS
        assert set(stub.paid.values()) == {1}


def leave_running(exam: exampp.Collection, stub: BatchStub) -> None:
    """Start a batch and stop waiting for it, as Ctrl-C does."""
    run = running(exam, stub)
    for progress in run.steps():
        if progress.awaits:
            run.stop(0)
    assert "out at 127.0.0.1" in run.why_stopped


def test_stopped_and_gone_on_with(tmp_path: Path, stub: BatchStub) -> None:
    stub.looks = 3
    with exams.make(tmp_path) as exam:
        leave_running(exam, stub)
        shown = exam.status_tables()["batches"]
        assert [row[4] for row in shown.rows] == [CELLS]
        # asking directly would be paid for a second time
        name = "openai"
        with pytest.raises(InputError, match=r"open requests: .*--batch"):
            exam.grade(name, model="tiny", base_url=stub.url, **USUAL)
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 1
        assert "batches" not in exam.status_tables()


def shuffled(lines: list[bytes]) -> list[bytes]:
    return lines[1::2] + lines[::2]


def twice(lines: list[bytes]) -> list[bytes]:
    wrong = [line.replace(b'"content": "', b'"content": "1') for line in lines]
    return lines + wrong


def strangers(lines: list[bytes]) -> list[bytes]:
    if not lines:
        return lines
    found = json.loads(lines[0])
    name = "custom_id" if "custom_id" in found else None
    if name:
        found[name] = "nobody"
    else:
        found["metadata"] = {"key": "nobody"}
    return [*lines, json.dumps(found).encode()]


@pytest.mark.parametrize("mangle", [shuffled, twice, strangers])
def test_odd_results(
    tmp_path: Path, stub: BatchStub, mangle: Callable[[list[bytes]], list[bytes]]
) -> None:
    stub.mangle = mangle
    with exams.make(tmp_path) as exam:
        run = running(exam, stub)
        list(run.steps())
        found = cells(exam)
        assert found == {cell: expected(*cell) for cell in found}
        assert len(found) == CELLS


def half_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:40]]


@pytest.mark.parametrize("torn", [True, False])
def test_results_that_break_off(tmp_path: Path, torn: bool) -> None:
    """Complete results are stored and not paid again; the same command fetches the rest."""
    with OpenAIStub() as stub, exams.make(tmp_path) as exam:
        stub.torn, stub.mangle = torn, (lambda lines: lines) if torn else half_a_line
        with pytest.raises(Unfinished, match=r"are incomplete .*--cancel-batches"):
            grade(exam, stub)
        stub.torn, stub.mangle = False, lambda lines: lines
        stub.files = {name: one for name, one in stub.files.items() if name[:4] == "file"}
        assert grade(exam, stub).done == CELLS
        assert set(stub.paid.values()) == {1}
        assert len(stub.batches) == 1


def test_the_output_file_is_missing(tmp_path: Path, openai: BatchStub) -> None:
    openai.fault = lambda call: 404 if call.path.endswith("/content") else None
    with exams.make(tmp_path) as exam:
        with pytest.raises(Unfinished, match=r"404.*--cancel-batches makes the rest pending again"):
            grade(exam, openai)
        run = running(exam, openai, Batches(cancel=True, poll=0))
        list(run.steps())
        assert out(exam) == []
        assert cells(exam) == {}


def test_a_batch_that_nobody_knows(tmp_path: Path, stub: BatchStub) -> None:
    stub.looks = 10
    with exams.make(tmp_path) as exam:
        leave_running(exam, stub)
        stub.batches.clear()
        with pytest.raises(InputError, match="does not know the batch"):
            grade(exam, stub)
        list(running(exam, stub, Batches(cancel=True, poll=0)).steps())
        assert grade(exam, stub).done == CELLS


@pytest.mark.parametrize("fault", ["lost", "drop"])
def test_the_reply_to_the_submission_is_lost(tmp_path: Path, stub: BatchStub, fault: str) -> None:
    """A batch is looked up before it is sent again."""

    def breaks(call: Call) -> str | None:
        submits = call.method == "POST" and call.path.endswith(
            ("/batches", ":batchGenerateContent")
        )
        return fault if submits and call.number == 0 else None

    stub.fault = breaks
    with exams.make(tmp_path) as exam:
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 1
        assert set(stub.paid.values()) == {1}


class Killed(BaseException):
    """The process is gone, in the middle of anything."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_the_submission(
    tmp_path: Path, stub: BatchStub, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noted and not sent: sent once. Sent and its id not noted: found again."""
    sent = batches.Outbox._send

    def dies(self: Any, *more: Any) -> Any:
        if when == "after":
            sent(self, *more)
        raise Killed

    with exams.make(tmp_path) as exam:
        with monkeypatch.context() as patch:
            patch.setattr(batches.Outbox, "_send", dies)
            with pytest.raises(Killed):
                grade(exam, stub)
        (row,) = out(exam)
        assert (row.state, row.remote) == (kept.PREPARED, None)
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 1
        assert set(stub.paid.values()) == {1}


def interrupted_before_sending(exam: exampp.Collection, stub: BatchStub) -> None:
    def dies(self: Any, *more: Any) -> Any:
        raise Killed

    sent = batches.Outbox._send
    batches.Outbox._send = dies  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(Killed):
            grade(exam, stub)
    finally:
        batches.Outbox._send = sent  # type: ignore[method-assign]


def test_killed_between_replies_and_grades(
    tmp_path: Path, stub: BatchStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies that were kept are read by the next run; nothing is sent again."""
    from exampp.grading.batches import BatchGrader

    def dies(self: Any, *more: Any) -> Any:
        raise Killed

    with exams.make(tmp_path) as exam:
        with monkeypatch.context() as patch:
            patch.setattr(BatchGrader, "_claim", dies)
            with pytest.raises(Killed):
                grade(exam, stub)
        assert cells(exam) == {}
        assert grade(exam, stub).done == CELLS
        assert len(stub.batches) == 1
        assert set(stub.paid.values()) == {1}


def test_several_batches_by_size(tmp_path: Path, stub: BatchStub, monkeypatch: Any) -> None:
    monkeypatch.setattr(OpenAIBatches, "most_requests", 3)
    with exams.make(tmp_path) as exam:
        assert grade(exam, stub).done == CELLS
        assert [len(one.requests) for one in stub.batches.values()] == [3, 3, 2]
        found = cells(exam)
        assert found == {cell: expected(*cell) for cell in found}


def test_max_requests_and_max_cost_hold_before_sending(tmp_path: Path, openai: BatchStub) -> None:
    with exams.make(tmp_path) as exam:
        run = exam.grading(
            "openai",
            model="tiny",
            base_url=openai.url,
            batches=Batches(poll=0),
            max_requests=3,
            max_new_tokens=10,
            **USUAL,
        )
        list(run.steps())
        assert (len(cells(exam)), run.why_stopped) == (3, "max_requests: 3 requests")
        # the most that each can cost: some 500 bytes read and 10 tokens written, at half the price
        progress = grade(exam, openai, max_cost=800.0, max_new_tokens=10, **PRICES)
        assert openai.paid.total() == len(cells(exam)) == CELLS
        assert progress.spent.cost == pytest.approx((CELLS - 3) * 11)
        assert max(len(one.requests) for one in list(openai.batches.values())[1:]) < CELLS


def test_the_estimate_is_half(tmp_path: Path, openai: BatchStub) -> None:
    from exampp.grading.costs import Prices, estimate

    with exams.make(tmp_path) as exam:
        name, options = "openai", {"model": "tiny", "base_url": openai.url, **USUAL}
        direct = estimate(exam.grading(name, **options), Prices(2.0, None, 4.0))
        half = estimate(exam.grading(name, batches=True, **options), Prices(2.0, None, 4.0))
        assert direct.cost is not None
        assert half.cost == pytest.approx(direct.cost / 2)


def test_a_row_of_failures_ends_the_run_when_all_is_kept(tmp_path: Path, stub: BatchStub) -> None:
    stub.outcome = lambda _: Outcome("I would rather not say")
    with exams.make(tmp_path) as exam:
        with pytest.raises(Unfinished, match="8 consecutive failures"):
            grade(exam, stub, max_failures=2)
        assert len(cells(exam)) == CELLS


def test_two_processes_send_each_request_once(tmp_path: Path, openai: BatchStub) -> None:
    openai.looks = 2
    with exams.make(tmp_path) as exam, exampp.Collection(exam.path) as other:
        leave_running(exam, openai)
        assert grade(other, openai).done == CELLS
        assert grade(exam, openai).total == 0
        assert len(openai.batches) == 1


def test_other_graders_take_no_batches(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        with pytest.raises(InputError, match="the grader draft does not support batches"):
            exam.grade("draft", batches=True)
        with pytest.raises(InputError, match="this grader does not support batches"):
            exam.grade(len, name="mine", batches=True)
    with pytest.raises(InputError, match="exclude each other"):
        Batches("a", "b")


def test_nothing_shows_the_key(tmp_path: Path, stub: BatchStub) -> None:
    stub.fault = lambda call: 400 if call.method == "POST" else None
    with exams.make(tmp_path) as exam:
        with pytest.raises(ExamError) as caught:
            grade(exam, stub)
        behind = [caught.value.__cause__, caught.value.__context__]
        assert KEY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
        assert not any(behind), "the errors of the transport hold the request with its headers"


# ---- files ---------------------------------------------------------------------------------------


def answer_file(path: Path, out: Path, change: Callable[[Json], Json] = lambda line: line) -> None:
    """Process a file as vLLM's run-batch does."""
    lines = []
    for line in map(json.loads, path.read_text().splitlines()):
        text = rated(line["body"]["messages"][-1]["content"]).text
        body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        response = {"status_code": 200, "request_id": "r", "body": body}
        told = {"id": "v", "custom_id": line["custom_id"], "response": response, "error": None}
        lines.append(json.dumps(change(told)))
    out.write_text("\n".join(reversed(lines)) + "\n")


FILE_OPTIONS: Any = {"model": "tiny", "decode": "text"}
FILE_COMMAND = ["--model", "tiny", "--decode", "text"]


def test_requests_to_a_file_and_replies_from_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    with exams.make(tmp_path) as exam:
        run = exam.grading("openai", batches=Batches(requests), **FILE_OPTIONS)
        list(run.steps())
        assert "8 requests in " in run.why_stopped
        lines = [json.loads(line) for line in requests.read_text().splitlines()]
        assert len(lines) == CELLS
        assert {line["url"] for line in lines} == {"/v1/chat/completions"}
        assert {line["body"]["model"] for line in lines} == {"tiny"}
        # what is in a file is not written again
        again = exam.grading("openai", batches=Batches(tmp_path / "b.jsonl"), **FILE_OPTIONS)
        list(again.steps())
        assert "no new requests" in again.why_stopped
        assert not (tmp_path / "b.jsonl").exists()
        with pytest.raises(InputError, match="already exists"):
            exam.grading("openai", batches=Batches(requests), **FILE_OPTIONS)
        answer_file(requests, replies)
        progress = exam.grade("openai", batches=Batches(replies=replies), **FILE_OPTIONS)
        assert progress.done == CELLS
        found = cells(exam)
        assert found == {cell: expected(*cell) for cell in found}
        assert out(exam) == []


def test_replies_that_are_not_all_there(tmp_path: Path) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    with exams.make(tmp_path) as exam:
        list(exam.grading("openai", batches=Batches(requests), **FILE_OPTIONS).steps())
        answer_file(requests, replies)
        whole = replies.read_text().splitlines()
        older = json.loads(whole[0])
        older["response"] = older["response"]["body"]  # as earlier versions of vLLM wrote it
        replies.write_text("\n".join([json.dumps(older), whole[1], whole[1], whole[2][:30]]))
        run = exam.grading("openai", batches=Batches(replies=replies), **FILE_OPTIONS)
        list(run.steps())
        assert len(cells(exam)) == 2
        assert "1 line cannot be read, the first at line 4" in run.late_note
        assert "no clear reply to them" in run.why_stopped
        replies.write_text("\n".join(whole))
        assert exam.grade("openai", batches=Batches(replies=replies), **FILE_OPTIONS).done == 6
        exam.bank("main").edit("reword", first_item(exam), "Another question?", reason="a test")
        with pytest.raises(InputError, match="no line answers a pending request"):
            exam.grade("openai", batches=Batches(replies=replies), **FILE_OPTIONS)


@pytest.mark.parametrize(
    "error", [{"error": {"message": "no such thing", "code": 400}}, "no such thing"]
)
def test_an_error_of_vllm_stands_beside_an_empty_response(tmp_path: Path, error: Any) -> None:
    def fail(line: Json) -> Json:
        response = {"status_code": 400, "request_id": "r", "body": None}
        return {**line, "response": response, "error": error}

    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    with exams.make(tmp_path) as exam:
        list(exam.grading("openai", batches=Batches(requests), **FILE_OPTIONS).steps())
        answer_file(requests, replies, fail)
        list(exam.grading("openai", batches=Batches(replies=replies), **FILE_OPTIONS).steps())
        rows = exam.connection.execute("SELECT json_extract(detail, '$.reason') FROM grade")
        assert {row[0] for row in rows} == {"HTTP 400: no such thing"}


def first_item(exam: exampp.Collection) -> str:
    return str(exam.connection.execute("SELECT item_id FROM item").fetchone()[0])


def test_a_file_needs_a_decode_that_is_named(tmp_path: Path) -> None:
    what = "--decode text, labels or json"
    with exams.make(tmp_path) as exam, pytest.raises(InputError, match=what):
        exam.grading("openai", model="tiny", batches=Batches(tmp_path / "r.jsonl"))


# ---- the command ---------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, exampp_command: Commands, openai: BatchStub) -> None:
    exams.make(tmp_path).close()
    file = tmp_path / "my.exam"
    asked = ["grade", str(file), "--grader", "openai", "--model", "tiny", "--decode", "text"]
    asked += ["--base-url", openai.url]
    openai.end = lambda _: "cancelled"
    openai.outcome = lambda text: Outcome(gone="cancelled") if "sunset" in text else rated(text)
    ended = exampp_command(*asked, "--batch", "--poll", "0")
    assert ended.code == 1
    assert "was cancelled by another program" in ended.err
    assert "--batch --poll 0" in ended.err
    openai.end, openai.outcome = (lambda _: "completed"), rated
    done = exampp_command(
        *asked, "--batch", "--poll", "0", "--price-read", "1", "--price-written", "1"
    )
    assert done.code == 0
    assert "cost: " in done.out
    refused = exampp_command(*asked, "--poll", "3")
    assert refused.code == 2
    assert "--poll" in refused.err


def test_the_command_writes_and_reads_files(tmp_path: Path, exampp_command: Commands) -> None:
    exams.make(tmp_path).close()
    requests, replies = tmp_path / "r.jsonl", tmp_path / "FILE"
    asked = ["grade", str(tmp_path / "my.exam"), "--grader", "openai", *FILE_COMMAND]
    written = exampp_command(*asked, "--batch-file", str(requests))
    assert "stopped with 8 cells pending (8 requests in " in written.err
    assert "this continues" not in written.err
    again = exampp_command(*asked, f"--batch-file={tmp_path / 'n.jsonl'}")
    assert (
        "n.jsonl is not written; out: r.jsonl (8 requests) written; read the replies with --replies"
        in again.err
    )
    answer_file(requests, replies)
    whole = replies.read_text().splitlines()
    some = tmp_path / "some"
    some.write_text("\n".join(whole[:3]))
    part = exampp_command(*asked, "--replies", str(some))
    assert "the file has no clear reply to them; out: r.jsonl (8 requests) written)" in part.err
    assert exampp_command(*asked, "--replies", str(replies)).code == 0


def test_a_file_that_was_lost_is_ended_without_a_server(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch, openai: BatchStub
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    exams.make(tmp_path).close()
    requests, anew = tmp_path / "r.jsonl", tmp_path / "n.jsonl"
    asked = ["grade", str(tmp_path / "my.exam"), "--grader", "openai", *FILE_COMMAND]
    exampp_command(*asked, "--batch-file", str(requests))
    requests.unlink()
    locked = exampp_command(*asked, "--base-url", openai.url)
    assert "r.jsonl (8 requests) written" in locked.err
    assert "end it with --cancel-batches" in locked.err
    for server in ([], ["--base-url", openai.url]):
        ended = exampp_command(*asked, *server, "--cancel-batches")
        assert "stopped with 8 cells pending (no open batches)" in ended.err
        with exampp.Collection(tmp_path / "my.exam") as exam:
            assert out(exam) == []
        exampp_command(*asked, "--batch-file", str(anew))
        assert len(anew.read_text().splitlines()) == CELLS
        anew.unlink()


def test_the_end_of_batches_ends_files_and_what_is_at_the_provider(
    tmp_path: Path, openai: BatchStub
) -> None:
    openai.looks = 10**9
    with exams.make(tmp_path) as exam:
        file = Batches(tmp_path / "r.jsonl")
        options = {**FILE_OPTIONS, **USUAL}
        list(exam.grading("openai", batches=file, max_queries=1, **options).steps())
        run = running(exam, openai)
        steps = run.steps()
        while not any(row.provider == "openai" for row in out(exam)):
            next(steps)
        run.stop(0)
        list(steps)
        assert {row.provider for row in out(exam)} == {"openai", "file"}
        openai.looks = 0
        list(running(exam, openai, Batches(cancel=True, poll=0)).steps())
        assert out(exam) == []


def process(file: Path, stub: BatchStub) -> ForkProcess:
    command = ["grade", str(file), "--grader", "openai", "--model", "tiny", "--decode", "text"]
    command += ["--base-url", stub.url, "--batch", "--poll", "0.01"]

    def run() -> None:
        sys.argv[1:] = command
        main()

    return forked(run, file.with_suffix(".said"))


def test_kill_9_in_a_real_process(tmp_path: Path, openai: BatchStub) -> None:
    """Once while the batch is submitted and its id not known, once while it is waited for."""
    exams.make(tmp_path).close()
    file = tmp_path / "my.exam"
    arrived: list[int] = []

    def holds(call: Call) -> str | None:
        if call == ("POST", "/batches", 0):
            arrived.append(1)
            victims[0].kill()
            victims[0].join()
            return "lost"
        return None

    openai.fault, openai.looks = holds, 10**9
    victims = [process(file, openai)]
    # the server takes the batch when nobody waits for its reply any more
    wait_for(lambda: arrived and not victims[0].is_alive() and openai.batches)
    assert len(openai.batches) == 1
    with exampp.Collection(file) as exam:
        (row,) = out(exam)
        assert (row.state, row.remote, cells(exam)) == (kept.PREPARED, None, {})
    second = process(file, openai)
    wait_for(lambda: next(iter(openai.batches.values())).looks > 2)
    second.kill()
    second.join()
    with exampp.Collection(file) as exam:
        (row,) = out(exam)
        assert (row.state, row.remote, cells(exam)) == (kept.OPEN, "batch_1", {})
    openai.looks = 0
    third = process(file, openai)
    third.join(60)
    assert third.exitcode == 0, file.with_suffix(".said").read_text()
    assert len(openai.batches) == 1
    with exampp.Collection(file) as exam:
        found = cells(exam)
        assert found == {cell: expected(*cell) for cell in found}
        assert len(found) == CELLS
    assert set(openai.paid.values()) == {1}
