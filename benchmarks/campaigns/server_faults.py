"""A long run of `exampp grade` against a server that breaks in every way, and against a good one.

    python benchmarks/campaigns/server_faults.py [--count 50000] [--seed 1] [--rate 0.05]
        [--kills 5] [--delay 0.01]

The server answers on loopback with a rating that depends on the text alone. A share of the attempts
meets a fault: 429 with Retry-After, 500, hangs, cut connections, garbage, and hostile replies
(tests/graders/servers.py): half of a surrogate pair, NUL, a megabyte of spaces, open thoughts,
usage of 10^30 tokens, web pages, redirects, gzip that blows up. Once the faults end, the same
command again must bring the grades of the run that met none, and no cell may have got a wrong one
before. Then the same with `kill -9` at random moments. Then Ctrl-C at servers that hang, trickle,
or want to be left alone: it must end the run within 10 s. Exits with 1 if anything of this fails.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from million_cells import write_inputs
from support import servers

import exampp

CONCURRENCY = 32
LONGEST_INTERRUPT = 10.0
CONTINUES = "this continues"
Grades = dict[tuple[str, str], tuple[int, int | None]]


def start(collection: Path, url: str, *more: str) -> subprocess.Popen[str]:
    """Start the command."""
    command = [sys.executable, "-m", "exampp", "grade", str(collection), "--grader", "openai"]
    command += ["--model", "m", "--decode", "text", "--depth", "50", "--max-failures", "100000"]
    command += ["--concurrency", str(CONCURRENCY), *more]
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    return subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def grade(collection: Path, url: str, seconds: float | None = None) -> int | None:
    """Run the command; its exit code, or None where it was killed after some seconds."""
    child = start(collection, url, "--timeout", "2")
    try:
        _, said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.communicate()
        return None
    if child.returncode:
        # a run of failures may end it, but never one odd reply
        raise SystemExit(f"exit {child.returncode}: {said}")
    return child.returncode


def grades(collection: Path) -> Grades:
    """(question, passage id) -> state, rating; after an integrity check."""
    with closing(sqlite3.connect(collection)) as opened:
        if opened.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise SystemExit("integrity_check failed")
        rows = opened.execute(
            "SELECT v.text, p.passage_id, g.state, g.rating FROM grade g JOIN item_version v "
            "ON v.version = g.item_version JOIN passage p ON p.version = g.passage_version"
        ).fetchall()
    return {(item, passage): (state, rating) for item, passage, state, rating in rows}


def compare(calm: Grades, torn: Grades) -> int:
    """Count cells with another grade, or without one that should have one; print the states."""
    states = Counter(state for state, _ in torn.values())
    wrong = sum(1 for cell, found in torn.items() if found[0] == 0 and found != calm[cell])
    print(f"  {len(torn)} cells, {states[0]} graded, {states.total() - states[0]} without a grade")
    print(f"  {wrong} with a wrong rating")
    return wrong


def settle(collection: Path, calm: Grades) -> int:
    """The same command with a server that is well again; how many cells then differ."""
    with servers.FaultServer() as server:
        grade(collection, server.url)
    found = grades(collection)
    other = sum(1 for cell in calm if found.get(cell) != calm[cell])
    print(f"  once the faults have ended: {other} of {len(calm)} cells differ")
    return other


@contextmanager
def trickling() -> Iterator[tuple[str, threading.Event]]:
    """The address of a server that sends a byte now and then, for ever; and its first request."""
    reached = threading.Event()

    class Trickle(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            """Begin a reply that does not end."""
            self.rfile.readline()
            reached.set()
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            with suppress(OSError):
                self.wfile.write(head + b"content-length: 100000\r\n\r\n")
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.1)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Trickle) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", reached
        server.shutdown()


def interrupt(
    name: str, collection: Path, url: str, reached: Callable[[], object], code: int = 1
) -> bool:
    """Ctrl-C in the middle; whether the run ended in time, with a code, and said what continues."""
    child = start(collection, url)
    while not reached():
        time.sleep(0.1)
    time.sleep(1)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate()
    seconds = time.monotonic() - began
    good = seconds < LONGEST_INTERRUPT and CONTINUES in said and child.returncode == code
    print(f"Ctrl-C at a server that {name}: {seconds:.1f} s, exit {child.returncode}")
    return good


def always(answer: servers.Answer, _: servers.Seen) -> servers.Answer:
    """Give every request the same answer."""
    return answer


def interrupts(collection: Path) -> int:
    """Ctrl-C at servers of which no reply comes; how many runs did not end as they should."""
    answers = {
        "hangs": servers.Answer(hang=True),
        "answers 429, Retry-After 600": servers.error(429, headers={"retry-after": "600"}),
        "answers 500": servers.error(500),
    }
    failed = 0
    for name, answer in answers.items():
        with servers.FaultServer(plan=partial(always, answer)) as server:
            failed += not interrupt(
                name, collection, server.url, partial(getattr, server, "requests")
            )
    with trickling() as (url, begun):
        # it does not even say which models it has: no cell was asked yet
        failed += not interrupt("trickles", collection, url, begun.is_set, 130)
    return failed


def killed(path: Path, calm: Grades, plan: servers.Plan, options: argparse.Namespace) -> int:
    """The faulty run with kills; how many committed cells were lost."""
    chance, lost, before = random.Random(options.seed), 0, Grades()
    with servers.FaultServer(plan=plan, delay=options.delay) as server:
        for _ in range(options.kills):
            grade(path, server.url, chance.uniform(3, 3 + options.seconds / (options.kills + 1)))
            now = grades(path)
            gone = [cell for cell, kept in before.items() if not kept[0] and now.get(cell) != kept]
            print(f"  killed with {len(now)} cells, {len(gone)} lost")
            lost, before = lost + len(gone), now
        grade(path, server.url)
    return lost + compare(calm, grades(path))


def campaign(options: argparse.Namespace) -> int:
    """All runs; how many faults were found."""
    folder = Path(tempfile.mkdtemp())
    files = write_inputs(folder, max(1, options.count // 500), 50, 10)
    paths = [folder / f"{name}.exam" for name in ("calm", "faulty", "killed", "waiting")]
    for path in paths:
        with exampp.Collection.create(path) as collection:
            collection.import_files(*files)
    with servers.FaultServer(delay=options.delay) as server:
        began = time.monotonic()
        grade(paths[0], server.url)
        options.seconds = time.monotonic() - began
        texts = sorted({seen.text for seen in server.requests})
    calm = grades(paths[0])
    print(f"fault-free: {len(calm)} cells in {options.seconds:.0f} s")
    doomed = frozenset(random.Random(options.seed).sample(texts, 20))
    plan = servers.random_faults(options.seed, options.rate, doomed, hostile=True)
    with servers.FaultServer(plan=plan, delay=options.delay) as server:
        code = grade(paths[1], server.url)
        sent = server.attempts
    print(f"faulty: exit {code}, {sent.total()} requests for {len(sent)} texts")
    faults = compare(calm, grades(paths[1])) + settle(paths[1], calm)
    print("killed:")
    faults += killed(paths[2], calm, plan, options) + settle(paths[2], calm)
    return faults + interrupts(paths[3])


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--delay", type=float, default=0.01)
    found = campaign(parser.parse_args())
    print(f"{found} faults found")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
