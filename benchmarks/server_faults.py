"""A long run of `exampp grade` against a server that breaks, and against one that does not.

    python benchmarks/server_faults.py [--queries 100] [--rate 0.05] [--kills 5] [--delay 0.02]

The server answers on loopback with a rating that depends on the text alone, and breaks a share of
the attempts: 429 with Retry-After, 500, hangs, cut connections, garbage, refusals. The faulty run
must end with the grades of the fault-free one but for the cells listed as failed, and every cell
must be answered once: requests sent = asks + retries. Then the same with `kill -9` at random
moments, each followed by the same command. Throughput is compared with what a bare client loop
gets from the same server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from million_cells import write_inputs

import exampp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "llm"))
import servers

CONCURRENCY = 32
REFUSAL = "I'm sorry, but I can't help with that."
Grades = dict[tuple[str, str], tuple[int, int | None]]


def answering(refused: int) -> servers.Script:
    """Ratings by text; one text in `refused` is refused."""

    def script(seen: servers.Seen) -> servers.Answer:
        total = sum(seen.text.encode(errors="replace"))
        text = REFUSAL if refused and total % refused == 0 else str(total % 6)
        return servers.Answer(servers.completion(text))

    return script


def grade(collection: Path, url: str, seconds: float | None = None) -> int | None:
    """Run the command; its exit code, or None where it was killed after some seconds."""
    command = [sys.executable, "-m", "exampp", "grade", str(collection), "--grader", "openai"]
    command += ["--model", "m", "--decode", "text", "--depth", "50", "--timeout", "2"]
    command += ["--concurrency", str(CONCURRENCY)]
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
        return None


def grades(collection: Path) -> Grades:
    """(question, passage id) -> state, rating; after an integrity check."""
    opened = sqlite3.connect(collection)
    if opened.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        raise SystemExit("integrity_check failed")
    rows = opened.execute(
        "SELECT v.text, p.passage_id, g.state, g.rating FROM grade g JOIN item_version v "
        "ON v.version = g.item_version JOIN passage p ON p.version = g.passage_version"
    ).fetchall()
    opened.close()
    return {(item, passage): (state, rating) for item, passage, state, rating in rows}


def compare(calm: Grades, torn: Grades) -> None:
    """The same grades but for failed cells."""
    failed = {cell for cell, (state, _) in torn.items() if state == 4}
    other = {cell for cell, grade in torn.items() if grade != calm[cell]} - failed
    print(f"  {len(torn)} cells, {len(failed)} failed, {len(other)} others differ")
    if other or len(torn) != len(calm):
        raise SystemExit(1)


async def bare_loop(url: str, texts: list[str]) -> float:
    """Requests a second of a plain client loop with the same number in flight."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    waiting = iter(texts)

    async def worker() -> None:
        for text in waiting:
            message: Any = {"role": "user", "content": text}
            await client.chat.completions.create(model="m", messages=[message], temperature=0)

    started = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    await client.close()
    return len(texts) / (time.monotonic() - started)


def main() -> None:
    """All three runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--delay", type=float, default=0.02)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    files = write_inputs(folder, options.queries, 50, 10)
    cells = options.queries * 500
    paths = [folder / f"{name}.exam" for name in ("calm", "faulty", "killed")]
    for path in paths:
        with exampp.Collection.create(path) as collection:
            collection.import_files(*files)
    script, chance = answering(997), random.Random(3)
    with servers.FaultServer(script, delay=options.delay) as server:
        started = time.monotonic()
        grade(paths[0], server.url)
        seconds = time.monotonic() - started
        texts = [seen.text for seen in server.requests[: min(cells, 8000)]]
        bare = asyncio.run(bare_loop(server.url, texts))
    print(f"fault-free: {cells} cells in {seconds:.0f} s, {cells / seconds:.0f} a second")
    print(f"bare client loop: {bare:.0f} a second; share {cells / seconds / bare:.2f}")
    calm = grades(paths[0])
    doomed = frozenset(chance.sample(texts, 20))
    plan = servers.random_faults(1, options.rate, doomed)
    with servers.FaultServer(script, plan, delay=options.delay) as server:
        code = grade(paths[1], server.url)
        sent = Counter(seen.text for seen in server.requests)
    print(f"faulty: exit {code}, {sum(sent.values())} requests for {len(sent)} texts")
    compare(calm, grades(paths[1]))
    with servers.FaultServer(script, plan, delay=options.delay) as server:
        before: Grades = {}
        for _ in range(options.kills):
            grade(paths[2], server.url, chance.uniform(3, 2 * seconds / (options.kills + 1)))
            now = grades(paths[2])
            lost = [cell for cell, kept in before.items() if kept[0] != 4 and now[cell] != kept]
            print(f"  killed with {len(now)} cells, {len(lost)} lost")
            before = now
        grade(paths[2], server.url)
    compare(calm, grades(paths[2]))


if __name__ == "__main__":
    main()
