"""Assessors at once over HTTP while a grading run commits: no error, no lost decision, how quick.

python benchmarks/review_load.py COLLECTION [--seconds 60] [--people 5] [--pause 0.5] [--no-grading]
                                            [--word WORD]

A copy of the collection is served in a process of its own, and another one grades it with a
scripted grader that commits all the time. Each person walks through what an assessor does: takes a
cell from the queue, decides, looks at the cell, at its query, at the lists and the overview, and
tries an edit of the bank. In the end the decisions that were sent are compared with those in the
file, one by one. Then one person asks for every page five times, alone: the seconds of a core that
the server took for each say how quick it is on a machine that does something else as well.
"""

from __future__ import annotations

import argparse
import html
import json
import multiprocessing
import random
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import psutil

from exampp import Collection
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.web import serve

IDLE_SECONDS = 3.0
"""A connection that was idle for longer is not used again: the server may be closing it."""
QUIET_SECONDS = 120.0
"""So long what is computed in the background may take, before pages are measured alone."""


def served(path: str, people: list[str], said: multiprocessing.SimpleQueue[str]) -> None:
    serve(path, port=0, assessors=people, announce=said.put)


def grade(path: str, commits: str) -> None:
    """Grade everything again and again, as ever new graders, slowly enough to commit often."""

    def rate(ask: Request) -> str:
        time.sleep(0.002)
        return str((len(ask.item) * 7 + len(ask.passage)) % 6)

    for number in range(1000):
        with Collection(path) as collection:
            run = collection.grading(ScriptedGrader(rate, name=f"load-{number}", record=False))
            for progress in run.steps():
                Path(commits).write_text(f"{number} {progress.done}")


@dataclass
class Person:
    """One assessor: a connection that is kept, what was sent, and how long each request took."""

    name: str
    entrance: str
    pause: float
    seconds: float
    dice: random.Random
    word: str
    sent: list[tuple[str, ...]] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[str, int] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    last: float = 0.0

    def enter(self) -> None:
        """Come in."""
        address = urlsplit(self.entrance)
        self.host = address.netloc
        self.connection = HTTPConnection(self.host, timeout=60)
        self.connection.request("GET", f"/?{address.query}")
        answer = self.connection.getresponse()
        answer.read()
        self.cookie = (answer.getheader("set-cookie") or "").partition(";")[0]

    def work(self) -> None:
        """Come in, and go round until the time is up."""
        self.enter()
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                self.round()
            except Exception as error:
                self.faults[f"{type(error).__name__}: {error}"] += 1
                self.connection.close()

    def round(self) -> None:
        """A dozen requests, as people make them."""
        page = self.ask("judge", "GET", "/judge?order=queue")
        cases = [html.unescape(a) for a in re.findall(r'"?(/judge/case\?[^"\s<]+)', page)]
        for address in self.dice.sample(cases, min(6, len(cases))):
            part = self.ask("case", "GET", address)
            self.decide(part)
        place = dict(pair.split("=", 1) for pair in urlsplit(address).query.split("&"))
        cell = "&".join(f"{name}={place[name]}" for name in ("query", "item", "passage"))
        self.ask("cell", "GET", f"/cell?{cell}")
        self.ask("query", "GET", f"/query?id={place['query']}")
        bank = self.ask("bank", "GET", f"/bank?query={place['query']}")
        self.impact(bank, place["query"])
        for kind, path in self.dice.sample(PAGES, 3):
            self.ask(kind, "GET", path.format(word=f"{self.word}{self.dice.randrange(1000)}"))

    def decide(self, part: str) -> None:
        """Decide the cell of a part by chance, and note what was sent."""
        form = fields(part)
        if "cell" not in form:
            self.faults["a case without a form"] += 1
            return
        rating, reason = str(self.dice.randrange(6)), f"{self.name} {len(self.sent)}"
        form |= {"rating": rating, "reason": reason}
        self.ask("decide", "POST", "/judge/decide", form)
        self.sent.append((*json.loads(form["cell"]), self.name, rating, reason))

    def impact(self, page: str, query: str) -> None:
        """Ask what rewording the first item would do."""
        form = fields(page)
        texts = re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)</textarea>', page)
        # as a browser reads it: the line break after the tag is none of the text
        form |= {
            html.unescape(name): html.unescape(text).removeprefix("\n") for name, text in texts
        }
        changed = next((name for name, _ in texts if name.startswith("text")), None)
        if changed:
            form[changed] += " please"
        self.ask("impact", "POST", f"/impact?query={query}", form)

    def ask(self, kind: str, method: str, path: str, form: Mapping[str, str] | None = None) -> str:
        """One request, timed, after a pause as long as people's."""
        time.sleep(self.dice.expovariate(1 / self.pause) if self.pause else 0)
        headers = {"cookie": self.cookie}
        if kind in ("case", "decide", "impact"):
            headers["hx-request"] = "true"
        body = None
        if form is not None:
            headers |= {
                "origin": f"http://{self.host}",
                "content-type": "application/x-www-form-urlencoded",
            }
            body = urlencode(form)
        if time.monotonic() - self.last > IDLE_SECONDS:
            self.connection.close()
        start = time.perf_counter()
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        self.last = time.monotonic()
        self.times[kind].append(time.perf_counter() - start)
        self.sizes[kind] = max(len(content), self.sizes.get(kind, 0))
        if answer.status not in (200, 204):
            self.faults[f"{kind}: {answer.status}"] += 1
        return content.decode()


PAGES = [
    ("overview", "/"),
    ("queries", "/queries"),
    ("missing", "/lists/missing"),
    ("spurious", "/lists/spurious"),
    ("verify", "/lists/verify"),
    ("grid", "/lists/grid"),
    ("items", "/items"),
    ("worst", "/items?order=worst"),
    ("queue", "/queue"),
    ("compare", "/compare"),
    ("history", "/history"),
    ("disputes", "/disputes"),
    ("agreement", "/agreement"),
    ("cells", "/agreement/cells"),
    ("trust", "/trust"),
    ("sample", "/sample"),
    ("search", "/search?q={word}"),
    ("found", "/search?q=the"),
    ("fresh", "/fresh?at=4e9"),
    ("qrels", "/export/best.qrels"),
]


def warm(person: Person) -> None:
    """Wait until every page that reads the whole collection was there once."""
    person.pause, pause = 0.0, person.pause
    person.enter()
    start = time.monotonic()
    while "Being counted" in person.ask("overview", "GET", "/"):
        time.sleep(1)
    for path in ("/lists/missing", "/items", "/trust", "/judge"):
        while "being read" in person.ask("first", "GET", path):
            time.sleep(1)
    print(f"ready after {time.monotonic() - start:.1f} s")
    person.times.clear()
    person.pause = pause


def alone(person: Person, server: int, times: int = 5) -> None:
    """Print the seconds of a core that the server takes for each page, asked for by one person."""
    process = psutil.Process(server)
    person.enter()
    person.pause = 0
    deadline = time.monotonic() + QUIET_SECONDS
    before = -1.0
    while time.monotonic() < deadline and (now := process.cpu_times().user) - before > 0.02:
        before = now
        time.sleep(1.0)
    print(f"{'alone':10} {'CPU ms':>8} {'wall ms':>8}")
    for kind, path in PAGES:
        person.ask(kind, "GET", path.format(word=person.word))
        start, spent = time.perf_counter(), sum(process.cpu_times()[:2])
        for number in range(times):
            person.ask(kind, "GET", path.format(word=f"{person.word}{number}"))
        spent = sum(process.cpu_times()[:2]) - spent
        wall = time.perf_counter() - start
        print(f"{kind:10} {1000 * spent / times:8.0f} {1000 * wall / times:8.0f}")


def fields(page: str) -> dict[str, str]:
    """The hidden and the written fields of a page's forms."""
    found = {}
    for tag in re.findall(r"<input[^>]*>", page):
        name, value = re.search(r'\sname="([^"]*)"', tag), re.search(r'\svalue="([^"]*)"', tag)
        if name and value and 'type="checkbox"' not in tag:
            found[html.unescape(name[1])] = html.unescape(value[1])
    return found


def lost(path: Path, people: list[Person]) -> tuple[int, int, int]:
    """(decisions sent, in the file, sent but not there)."""
    with Collection(path) as collection:
        kept: Counter[tuple[str, ...]] = Counter(
            (
                one.query_id,
                one.item_id,
                one.passage_id,
                one.decision.author,
                str(one.decision.rating),
                one.decision.reason,
            )
            for one in collection.decisions.list()
            if one.decision.author.startswith("person-")
        )
    sent = Counter(decision for person in people for decision in person.sent)
    return sent.total(), kept.total(), (sent - kept).total()


def report(people: list[Person]) -> None:
    times: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for person in people:
        for kind, taken in person.times.items():
            times[kind] += taken
            sizes[kind] = max(sizes.get(kind, 0), person.sizes[kind])
    everything = [one for taken in times.values() for one in taken]
    print(f"{'request':10} {'count':>6} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'most KB':>8}")
    for kind, taken in sorted(times.items(), key=lambda pair: -len(pair[1])):
        print(f"{kind:10} {len(taken):6} {shares(taken)} {sizes[kind] / 1000:8.1f}")
    print(f"{'all':10} {len(everything):6} {shares(everything)}")


def shares(taken: list[float]) -> str:
    cuts = statistics.quantiles(taken, n=100) if len(taken) > 1 else taken * 99
    return " ".join(f"{1000 * cuts[i]:8.1f}" for i in (49, 94, 98))


def started(target: Callable[..., None], *arguments: object) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("collection", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--people", type=int, default=5)
    parser.add_argument("--pause", type=float, default=0.5, help="mean seconds before a request")
    parser.add_argument("--no-grading", action="store_true")
    parser.add_argument("--word", default="zzqx", help="what is searched for; in vain is slowest")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, commits = Path(folder) / "load.exam", Path(folder) / "commits"
        shutil.copyfile(given.collection, path)
        names = [f"person-{number}" for number in range(given.people)]
        said = multiprocessing.get_context("spawn").SimpleQueue()
        processes = [started(served, str(path), names, said)]
        lines = [said.get() for _ in range(given.people + 2)]
        entrances = re.findall(r"http://\S+", "\n".join(lines))
        if not given.no_grading:
            processes.append(started(grade, str(path), str(commits)))
        people = [
            Person(name, entrance, given.pause, given.seconds, random.Random(name), given.word)
            for name, entrance in zip(names, entrances, strict=True)
        ]
        warm(people[0])
        server = psutil.Process(processes[0].pid)
        spent = sum(server.cpu_times()[:2])
        threads = [threading.Thread(target=person.work) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = sum(server.cpu_times()[:2]) - spent
        report(people)
        asked = sum(len(taken) for person in people for taken in person.times.values())
        print(
            f"the server took {spent:.1f} CPU seconds, {1000 * spent / asked:.0f} ms a request, "
            "with what it computes in the background"
        )
        for process in processes[:0:-1]:
            process.terminate()
            process.join()
        fresh = Person(names[0], entrances[0], 0, 0, random.Random(0), given.word)
        alone(fresh, processes[0].pid or 0)
        processes[0].terminate()
        processes[0].join()
        faults = sum((person.faults for person in people), Counter[str]())
        sent, kept, missing = lost(path, people)
        print(f"decisions: {sent} sent, {kept} in the file, {missing} lost")
        if commits.exists():
            number, done = commits.read_text().split()
            print(f"meanwhile the grading run finished {number} rounds and {done} cells")
        print("errors:", dict(faults) or "none")
    return 1 if faults or missing or kept != sent else 0


if __name__ == "__main__":
    sys.exit(main())
