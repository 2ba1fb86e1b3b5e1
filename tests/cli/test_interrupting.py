"""Ctrl-C at commands that wait for a server, and runs that meet another one."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands
from support.servers import Answer, FaultServer, Plan, Seen, completion

import exampp
from exampp import stopping
from exampp.store import runs as leases
from exampp.store.grades import put_grader


def hang_at(word: str) -> Plan:
    return lambda seen: Answer(hang=True) if word in seen.text else None


def items(_: Seen) -> Answer:
    return Answer(completion('["What is a pole?", "Why is it so?"]'))


def signals_at(server: FaultServer, requests: int, *numbers: signal.Signals) -> threading.Thread:
    """A thread that sends signals once the server holds requests that it does not answer."""

    def send() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if len(server.requests) >= requests and server.active:
                break
            time.sleep(0.01)
        time.sleep(0.2)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.1)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as collection:
        return collection.path


def grading(collection: Path, server: FaultServer, *more: str) -> list[str]:
    where = ["--base-url", server.url, "--model", "m", "--decode", "text"]
    return ["grade", str(collection), "--grader", "openai", *where, *more]


def test_what_could_not_be_read_is_due_when_a_run_stops(
    graded: Path, exampp_command: Commands
) -> None:
    def unread(seen: Seen) -> Answer | None:
        return Answer(completion("3 or 4")) if "sunsets" in seen.text else None

    with FaultServer(plan=unread) as server:
        more = ["--max-requests", "6", "--concurrency", "1"]
        ran = exampp_command(*grading(graded, server, *more))
    assert ran.code == 1
    with exampp.Collection(graded) as collection:
        (row,) = collection.status().rows
    assert row[4] == 2  # unparsed: four requests, and two repeats
    assert f"stopped with {row[2]} cells pending" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_a_run_in_its_grace(
    graded: Path, exampp_command: Commands, number: signal.Signals
) -> None:
    with FaultServer(plan=hang_at("magnet?")) as server:
        sender = signals_at(server, 8, number)
        began = time.monotonic()
        ran = exampp_command(*grading(graded, server, "--grace", "0.2"))
        assert time.monotonic() - began < 30
        sender.join()
    assert ran.code == 1
    assert "6 of 8 cells done" in ran.out
    assert "no new requests; those in flight have 0.2 s" in ran.err
    assert "stopped with 2 cells pending; this continues:\n  exampp grade" in ran.err
    with exampp.Collection(graded) as collection:
        (row,) = collection.status().rows
        assert row[2:8] == (2, 6, 0, 0, 0, 0)  # two due, six graded, nothing failed
    with FaultServer() as server:
        assert "2 of 2 cells done" in exampp_command(*grading(graded, server)).out


def test_the_second_signal_leaves_at_once(graded: Path, exampp_command: Commands) -> None:
    with FaultServer(plan=hang_at("magnet?")) as server:
        sender = signals_at(server, 8, signal.SIGINT, signal.SIGINT)
        ran = exampp_command(*grading(graded, server, "--grace", "60"))
        sender.join()
    assert ran.code == 130
    assert "6 of 8 cells done" in ran.err
    assert "interrupted. Finished work is stored; this continues" in ran.err
    with exampp.Collection(graded) as collection:
        assert collection.status().rows[0][2:4] == (2, 6)


def test_a_generation_ends_in_its_grace(graded: Path, exampp_command: Commands) -> None:
    with FaultServer(items, plan=hang_at("magnet")) as server:
        sender = signals_at(server, 2, signal.SIGINT)
        where = ["--base-url", server.url, "--model", "m", "--prompt", "dl-questions"]
        command = ["bank", "generate", str(graded), "--grader", "openai", *where]
        ran = exampp_command(*command, "--grace", "0.2", "--bank", "made")
        sender.join()
    assert ran.code == 1
    assert "2 of 10 questions added to the bank 'made' by 1 request" in ran.out
    assert "stopped with 1 requests left; this continues:\n  exampp bank generate" in ran.err


def test_a_grader_that_cannot_be_told_is_interrupted(
    graded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exampp.cli.grade import work
    from exampp.graders.base import Request
    from exampp.graders.scripted import ScriptedGrader

    monkeypatch.setattr(stopping, "PATIENCE_SECONDS", 0.1)

    def deaf(ask: Request) -> str:
        if "magnet?" in ask.item:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(20)
        return "4"

    with exampp.Collection(graded) as collection:
        run = collection.grading(ScriptedGrader(deaf, look_ahead=1), model="deaf")
        progress = work(run, 0.1)
        assert (progress.done, progress.total, run.stopped) == (6, 8, True)
        assert collection.status().rows[0][2:4] == (2, 6)


def hold(path: Path, host: str, process: int) -> None:
    """Another run of the draft grader holds the first query."""
    with exampp.Collection(path) as collection:
        opened = collection.connection
        key = put_grader(opened, collection.grading("draft").grading.identity)
        assert leases.claim(opened, key, 1, f"{host}:{process}:0")


def test_a_query_held_on_another_machine_is_told_at_once(
    graded: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(graded, "node7", 12)
    signals = iter([signal.SIGINT])

    def interrupted_once(_: float) -> None:
        for number in signals:
            signal.raise_signal(number)

    monkeypatch.setattr("exampp.grading.run.time.sleep", interrupted_once)
    ran = exampp_command("grade", graded, "--grader", "draft", "--grace", "0")
    found = re.search(
        r"Process 12 on node7 has locked 1 query until (\d\d:\d\d:\d\d)\. That is", ran.err
    )
    assert found, ran.err
    there = time.strptime(found[1], "%H:%M:%S")
    ahead = (there.tm_hour * 60 + there.tm_min) - (time.localtime()[3] * 60 + time.localtime()[4])
    assert ahead % (24 * 60) in (9, 10)  # a lease lasts ten minutes
    assert f"until {found[1]}. Waiting for that\n" in ran.err
    assert (ran.code, "2 of 8 cells done" in ran.out) == (1, True)
    assert "Process 12 on node7 has locked 1 query" in exampp_command("status", graded).out


def test_a_process_of_this_machine_is_waited_for_by_name(
    graded: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getppid()
    hold(graded, socket.gethostname(), parent)

    def end(_: float) -> None:
        with exampp.Collection(graded) as collection:
            collection.connection.execute("DELETE FROM lease")

    monkeypatch.setattr("exampp.grading.run.time.sleep", end)
    ran = exampp_command("grade", graded, "--grader", "draft")
    here = f"Process {parent} on this machine is grading 1 query"
    assert f"{here}. That is left to it\n{here}. Waiting for that\n" in ran.err
    assert (ran.code, ran.out) == (0, "8 of 8 cells done\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_any_command_says_what_goes_on(
    graded: Path,
    exampp_command: Commands,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr(exampp.Collection, "grading", interrupted)
    ran = exampp_command("grade", graded, "--grader", "draft")
    assert ran.code == 128 + number
    assert f"Finished work is stored; this continues:\n  exampp grade {graded}" in ran.err
    # commands that store nothing do not continue
    monkeypatch.setattr(exampp.Collection, "contents", interrupted)
    monkeypatch.setattr(exampp.Collection, "grades", interrupted)
    for verb in (["status"], ["evaluate"], ["analyze", "changes", "--since", str(graded)]):
        ran = exampp_command(*verb, graded)
        assert (ran.code, ran.err.strip()) == (128 + number, "exampp: interrupted.")
