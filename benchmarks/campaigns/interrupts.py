"""Interrupts the Python API at random bytecodes and checks what is left.

    python benchmarks/campaigns/interrupts.py [--count 2000] [--seed 1]

A KeyboardInterrupt comes in one of three ways: before any bytecode of exampp (by a trace
function), at a moment from another thread (`PyThreadState_SetAsyncExc`), or as a
signal. It comes into grading (with a script, and with a server on loopback), importing, editing a
bank, deciding, generating, reading again, evaluating. After each the connection must be usable and
outside of a transaction, another one must be able to write at once, the file must be sound, every
reply that the grader has given must be stored, and the same call, made again, must end as an
undisturbed one does. Exits with 1 if anything of this fails.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import unittest.mock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support import exams, interrupting, servers

import exampp
from exampp.graders.base import Grader, Reply, Request
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.options import OpenAIOptions
from exampp.graders.scripted import ScriptedGrader
from exampp.store.bank import now
from exampp.store.connection import transaction
from exampp.store.pages import damaged_pages
from exampp.store.runs import put_step

PASSING = ("at", "started", "seconds", "until", "hash", "salt", "commitment")
"""Columns that differ from one undisturbed run to the next."""

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]*")
WAYS = ("bytecode", "thread", "signal")
Given = list[tuple[str, str]]
Action = Callable[[exampp.Collection, Given], object]


class Counting(Grader):
    """A grader that records what it has given: the reply was taken when it is asked for more."""

    def __init__(self, inner: Grader, given: Given) -> None:
        self._inner = inner
        self._given = given

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the inner one."""
        return self._inner.settings

    def answer(self, asks: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield the answers of the inner grader."""
        for ask, reply in self._inner.answer(asks):
            try:
                yield ask, reply
            finally:
                self._given.append((ask.item, ask.passage))


def grade(collection: exampp.Collection, given: Given) -> None:
    grader = ScriptedGrader(rate, name="by length", look_ahead=3, record=False)
    collection.grade(Counting(grader, given), model="scripted")


def rate(ask: Request) -> str:
    return str(len(ask.item + ask.passage) % 6)


def abandon(collection: exampp.Collection, given: Given) -> None:
    """A run that is left in the middle, as by an exception of who iterates over it, and gone on."""
    grader = Counting(ScriptedGrader(rate, name="by length", record=False), given)
    steps = collection.grading(grader, model="scripted").steps()
    next(steps, None)
    next(steps, None)
    del steps
    collection.grade(grader, model="scripted")


def ask_server(url: str) -> Action:
    def action(collection: exampp.Collection, given: Given) -> None:
        options = OpenAIOptions(model="m", base_url=url, decode="text", concurrency=4)
        grader = OpenAICompatibleGrader(options)
        collection.grade(Counting(grader, given), model="m")

    return action


def bring_in(folder: Path) -> Action:
    text = '{{"passage_id": "n{0}", "text": "Passage {0} about magnets."}}\n'
    more = "".join(map(text.format, range(30)))
    (folder / "more.jsonl").write_text(more)
    (folder / "more.run").write_text("".join(f"q1 Q0 n{n} {n + 1} {-n} c\n" for n in range(30)))

    def action(collection: exampp.Collection, _: Given) -> None:
        collection.import_files(folder / "more.jsonl", folder / "more.run", author="a")

    return action


def edit(collection: exampp.Collection, _: Given) -> None:
    if not any("Is it made twice?" in row for row in collection.bank().show().rows):
        collection.bank().add("q1", "Is it made twice?", author="a")


def decide(collection: exampp.Collection, _: Given) -> None:
    if not collection.decisions.list():
        book = collection.grades("seed").gradebook
        query = book.queries[0]
        passage, item = query.passage_ids[0], query.item_ids[0]
        collection.grades("seed").decisions.decide(query.query_id, item, passage, 2, author="a")


def generate(collection: exampp.Collection, given: Given) -> None:
    grader = ScriptedGrader('["What is a pole?", "Why is it so?"]', name="writer", record=False)
    collection.bank("made").generate(
        Counting(grader, given), prompt="dl-questions", author="a", reason="r"
    )


def reparse(collection: exampp.Collection, _: Given) -> None:
    collection.reparse("seed")


def evaluate(collection: exampp.Collection, _: Given) -> None:
    collection.grades("seed").evaluate(["Cover@20"], min_rating=4)


ACTIONS: Mapping[str, Action] = {
    "grade": grade,
    "grade, abandoned": abandon,
    "bank edit": edit,
    "decision": decide,
    "generate": generate,
    "reparse": reparse,
    "evaluate": evaluate,
}


def prepare(folder: Path) -> Path:
    with exams.make(folder, "start.exam") as collection:
        collection.grade(ScriptedGrader("4", name="seed"), model="seed")
    return folder / "start.exam"


def state(path: Path) -> Mapping[str, Any]:
    """Every table without what passes; checks the file on the way."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        verdict = opened.execute("PRAGMA integrity_check").fetchone()[0]
        foreign = opened.execute("PRAGMA foreign_key_check").fetchall()
        if verdict != "ok" or foreign:
            raise SystemExit(f"integrity: {verdict} {foreign}")
        if damaged := list(damaged_pages(opened)):
            raise SystemExit(f"pages: {damaged}")
        names = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        found = {}
        for (name,) in names:
            columns = [row[1] for row in opened.execute(f"PRAGMA table_info({name})")]
            kept = ", ".join(f'"{column}"' for column in columns if column not in PASSING)
            rows = opened.execute(f"SELECT {kept} FROM {name}")
            found[name] = sorted(re.sub(MOMENT, "", repr(row)) for row in rows)
    # how often and in how many pieces something was done does not count, nor which pages are
    # stored; checksums depend on times
    passing = ("run", "generation", "step", "checksum", "query_page", "grade_page")
    return {k: v for k, v in found.items() if k not in passing}


def stored(path: Path) -> set[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return set(
            opened.execute(
                "SELECT v.text, p.text FROM grade g JOIN grader r USING (grader) "
                "JOIN item_version v ON v.version = g.item_version JOIN passage_version p "
                "ON p.version = g.passage_version WHERE r.model <> 'seed' UNION "
                "SELECT q.text, '' FROM generation JOIN query q USING (query)"
            )
        )


def from_thread(action: Callable[[], object], after: float) -> None:
    ended = threading.Event()
    main = ctypes.c_ulong(threading.get_ident())
    # A thread that is being started still goes by the name of the one that starts it: Python would
    # give it the exception, and whoever started it would wait for ever.
    starting = threading.Lock()
    start = threading.Thread.start

    def start_alone(thread: threading.Thread) -> None:
        with starting:
            start(thread)

    def interrupt() -> None:
        if not ended.wait(after):
            with starting:
                error = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(main, error)

    thread = threading.Thread(target=interrupt, daemon=True)
    finished = False
    try:
        thread.start()
        with unittest.mock.patch.object(threading.Thread, "start", start_alone):
            action()
        finished = True
        ended.set()
        thread.join()
        for _ in range(1000):  # one that is on its way comes here
            pass
    except KeyboardInterrupt:
        if not finished:
            raise
    finally:
        ended.set()
        thread.join()


def by_signal(action: Callable[[], object], after: float) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        action()
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0)


def interrupted(way: str, action: Callable[[], object], share: float, full: float) -> bool:
    """Run an action with an interrupt after a share of it; whether it was cut off."""
    try:
        if way == "bytecode":
            interrupting.traced(action, max(1, round(share * full)))
        else:
            (from_thread if way == "thread" else by_signal)(action, max(1e-5, share * full))
    except KeyboardInterrupt as error:
        # the traceback keeps every frame alive, as that of a notebook's last error does
        sys.last_value = error
        return True
    return False


def check(collection: exampp.Collection, given: Given) -> list[str]:
    """List the faults after an interrupt."""
    wrong = []
    if collection.connection.in_transaction:
        wrong.append("in a transaction")
        collection.connection.rollback()
    try:
        with exampp.Collection(collection.path) as other:
            with other.connection, transaction(other.connection, patience=0):
                put_step(other.connection, "written", "by another", now())
            if other.connection.execute("SELECT count(*) FROM lease").fetchone()[0]:
                wrong.append("leases held")
    except exampp.CollectionBusy:
        wrong.append("locked")
    try:
        with collection.connection, transaction(collection.connection):
            put_step(collection.connection, "written", "by the interrupted one", now())
        collection.status()
    except Exception as error:
        wrong.append(f"unusable: {error}")
    if set(given) - stored(collection.path):
        wrong.append("replies lost")
    return wrong


class Trial:
    """One action interrupted in one way, on copies of one collection; `rows` counts what came."""

    def __init__(self, folder: Path, start: Path, action: Action, way: str) -> None:
        self.row: Counter[str] = Counter()
        self._number = 0
        self._folder = folder
        self._start = start
        self._action = action
        self._way = way
        self._undisturbed(count=False)  # what is loaded once is loaded
        self._full, self._end = self._undisturbed(count=way == "bytecode")

    def _undisturbed(self, *, count: bool) -> tuple[float, Mapping[str, Any]]:
        path = Path(shutil.copy(self._start, self._folder / "calm.exam"))
        with exampp.Collection(path) as collection:
            began = time.perf_counter()
            if count:
                full: float = interrupting.traced(lambda: self._action(collection, []), None)
            else:
                self._action(collection, [])
                full = 1.2 * (time.perf_counter() - began)
        return full, state(path)

    def interrupt(self, share: float) -> list[str]:
        """Interrupt it after a share of its length, then let it through; what was wrong."""
        for old in self._folder.glob("torn*"):
            old.unlink()
        self._number += 1
        path = Path(shutil.copy(self._start, self._folder / f"torn{self._number}.exam"))
        given: Given = []
        with exampp.Collection(path) as collection:
            cut = interrupted(self._way, lambda: self._action(collection, given), share, self._full)
            wrong = check(collection, given)
            self._action(collection, [])
        end = state(path)
        if end != self._end:
            wrong.append(f"ends otherwise: {[t for t in end if end[t] != self._end[t]]}")
        self.row.update(interrupts=1, cut=cut, replies=len(given), wrong=len(wrong))
        return wrong


def campaign(count: int, seed: int) -> int:
    """All interrupts; the number of faults that were found."""
    folder = Path(tempfile.mkdtemp())
    start = prepare(folder)
    chance = random.Random(seed)
    with servers.FaultServer(delay=0.005) as server:
        actions = {**ACTIONS, "grade, server": ask_server(server.url), "import": bring_in(folder)}
        trials = {
            (name, way): Trial(folder, start, action, way)
            for name, action in sorted(actions.items())
            for way in WAYS
        }
        for number in range(count):
            name, way = chance.choice(list(trials))
            share = chance.random()
            for wrong in trials[name, way].interrupt(share):
                print(f"{number}: {name} by {way} at {share:.6f}: {wrong}", flush=True)
    heads = ("interrupts", "cut", "replies", "wrong")
    print(f"{'':18}{'way':10}" + "".join(f"{head:>12}" for head in heads))
    total: Counter[str] = Counter()
    for (name, way), trial in trials.items():
        print(f"{name:18}{way:10}" + "".join(f"{trial.row[head]:>12}" for head in heads))
        total += trial.row
    print(f"{'all':28}" + "".join(f"{total[head]:>12}" for head in heads))
    return total["wrong"]


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(bool(campaign(options.count, options.seed)))


if __name__ == "__main__":
    main()
