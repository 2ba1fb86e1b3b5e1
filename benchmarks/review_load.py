"""Assessors at once over HTTP while a grading run commits: no lost decision, and how quick.

python benchmarks/review_load.py COLLECTION [--seconds 60] [--people 10] [--pause 0.5]
                                            [--no-grading] [--proxy] [--faults] [--word WORD]

A copy of the collection is served in a separate process, and another one grades it with a scripted
grader that commits all the time. The first person is an editor, the others are assessors, all with
invitations. Each walks through what an assessor does: takes a cell from the queue, decides, looks
at the cell, at its query, at the lists and the overview. An editor also tries an edit of the bank.

`--proxy` puts nginx with TLS in front, below a path. `--faults` kills the server with SIGKILL
twice, leaves hundreds of heads half sent, and fills the disk for some seconds (a tmpfs, which needs
root). A decision that was not confirmed is sent again, as the page does. In the end the confirmed
decisions are compared with those in the file, one by one. Server times are those of the access log.

Without faults, one person then asks for every page five times, alone: the seconds of a core that
the server took for each show how quick it is on a machine that does something else as well.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import multiprocessing
import random
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psutil

from exampp import Collection
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.web import People, serve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.proxies import HOST, WAYS, free_port, missing, nginx

IDLE_SECONDS = 3.0
"""A connection that was idle for longer is not used again: the server may be closing it."""
QUIET_SECONDS = 120.0
"""So long what is computed in the background may take, before pages are measured alone."""


HALF_SENT = 400
"""Connections that send half of a head, all at once."""
FULL_SECONDS = 3.0
"""So long the disk is full."""
DISK_MB = 600
RETRIES = 60
"""Times that a decision is sent again, half a second apart."""


def served(path: str, port: int, public: str, log: str) -> None:
    behind = {"allowed_hosts": [public], "prefix": "/exam", "proxies": ["127.0.0.1"]}
    options: dict[str, Any] = behind if public else {}
    serve(path, port=port, access_log=log, announce=lambda _: None, **options)


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


@dataclass(frozen=True)
class Site:
    """The address of the server, direct or by a proxy with TLS."""

    port: int
    host: str
    prefix: str = ""

    @property
    def origin(self) -> str:
        """The origin of its pages."""
        return f"{'https' if self.prefix else 'http'}://{self.host}"

    def connect(self) -> HTTPConnection:
        """Return a connection."""
        if not self.prefix:
            return HTTPConnection("127.0.0.1", self.port, timeout=60)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)


class Unconfirmed(Exception):
    """The server did not confirm a request, which may be sent again."""


@dataclass
class Person:
    """One assessor: a connection that is kept, what was sent, and how long each request took."""

    name: str
    token: str
    site: Site
    pause: float
    seconds: float
    dice: random.Random
    word: str
    sent: list[tuple[str, ...]] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    last: float = 0.0
    choice: str = ""
    edits: bool = False
    unconfirmed: int = 0

    def enter(self) -> None:
        """Sign in by the invitation."""
        self.connection = self.site.connect()
        headers = {"host": self.site.host}
        self.connection.request("GET", f"{self.site.prefix}/?token={self.token}", None, headers)
        answer = self.connection.getresponse()
        answer.read()
        self.cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        if not self.cookie:
            raise SystemExit(f"{self.name} was not admitted: {answer.status}")

    def work(self) -> None:
        """Come in, and go round until the time is up."""
        self.enter()
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                self.round()
            except Unconfirmed:
                time.sleep(0.5)
            except Exception as error:
                self.faults[f"{type(error).__name__}: {error}"] += 1
                self.connection.close()

    def round(self) -> None:
        """A dozen requests, as people make them."""
        cases = self.cases()
        if not cases:
            # the results are computed again after a start
            raise Unconfirmed
        for address in self.dice.sample(cases, min(6, len(cases))):
            part = self.ask("case", "GET", address)
            self.decide(part)
        place = dict(pair.split("=", 1) for pair in urlsplit(address).query.split("&"))
        cell = "&".join(f"{name}={place[name]}" for name in ("query", "item", "passage"))
        self.ask("cell", "GET", f"/cell?{cell}")
        self.ask("query", "GET", f"/query?id={place['query']}")
        if self.edits:
            bank = self.ask("bank", "GET", f"/bank?query={place['query']}")
            self.impact(bank, place["query"])
        pages = [one for one in PAGES if self.edits or not one[1].startswith("/export/")]
        for kind, path in self.dice.sample(pages, 3):
            self.ask(kind, "GET", path.format(word=f"{self.word}{self.dice.randrange(1000)}"))

    def cases(self) -> list[str]:
        """Return the addresses of the next cells."""
        page = self.ask("judge", "GET", "/judge?order=queue")
        found = re.findall(r'(/judge/case\?[^"\s<]+)', page)
        return list(dict.fromkeys(map(html.unescape, found)))

    def decide(self, part: str) -> None:
        """Decide the cell of a part by chance, and note what was sent."""
        form = fields(part)
        if "cell" not in form:
            self.faults["a case without a form"] += 1
            return
        rating, reason = str(self.dice.randrange(6)), f"{self.name} {len(self.sent)}"
        form |= {"rating": rating, "reason": reason}
        for _ in range(RETRIES):
            with suppress(Unconfirmed):
                self.ask("decide", "POST", "/judge/decide", form)
                self.sent.append((*json.loads(form["cell"]), self.name, rating, reason))
                return
            time.sleep(0.5)
        self.faults["a decision that was never confirmed"] += 1

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
        headers = {"host": self.site.host, "cookie": self.cookie, "accept-encoding": "gzip"}
        if kind in ("case", "decide", "impact"):
            headers |= {"hx-request": "true", "x-choice": self.choice}
        body = None
        if form is not None:
            headers |= {
                "origin": self.site.origin,
                "content-type": "application/x-www-form-urlencoded",
            }
            body = urlencode(form)
        if time.monotonic() - self.last > IDLE_SECONDS:
            self.connection.close()
        start = time.perf_counter()
        try:
            self.connection.request(method, self.site.prefix + path, body, headers)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            self.connection.close()
            self.unconfirmed += 1
            raise Unconfirmed from error
        self.last = time.monotonic()
        if answer.status in (502, 503, 504):
            self.unconfirmed += 1
            raise Unconfirmed
        self.times[kind].append(time.perf_counter() - start)
        packed = len(content)
        if answer.getheader("content-encoding") == "gzip":
            content = gzip.decompress(content)
        self.sizes[kind] = max((len(content), packed), self.sizes.get(kind, (0, 0)))
        if shown := re.search(rb'data-choice="([^"]+)"', content):
            self.choice = shown[1].decode()
        if answer.status not in (200, 204):
            self.faults[f"{kind}: {answer.status}"] += 1
        return content.decode()


WAITING = ("The results are being computed", "Counting&nbsp;", "Computing")
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
    ("qrels", "/export/best.qrels"),
]


def warm(person: Person) -> None:
    """Wait until every page that reads the whole collection was there once."""
    person.pause, pause = 0.0, person.pause
    person.enter()
    start = time.monotonic()
    for path in ("/", "/lists/missing", "/items", "/trust", "/judge"):
        while any(word in person.ask("first", "GET", path) for word in WAITING):
            time.sleep(1)
    print(f"ready after {time.monotonic() - start:.1f} s")
    person.times.clear()
    person.pause = pause


def alone(person: Person, server: int, times: int = 5) -> None:
    """Print the seconds of a core that the server takes for each page, asked for by one person."""
    processes = [psutil.Process(server), *psutil.Process(server).children()]
    person.enter()
    person.pause = 0

    def used() -> float:
        return sum(sum(one.cpu_times()[:2]) for one in processes)

    deadline = time.monotonic() + QUIET_SECONDS
    before = -1.0
    while time.monotonic() < deadline and (now := used()) - before > 0.02:
        before = now
        time.sleep(1.0)
    print(f"{'alone':10} {'CPU ms':>8} {'wall ms':>8} {'KB':>8} {'sent KB':>8}")

    def spent(kind: str, times: int, ask: Callable[[int], object]) -> None:
        start, before = time.perf_counter(), used()
        for number in range(times):
            ask(number)
        cpu = used() - before
        wall = time.perf_counter() - start
        plain, packed = person.sizes.get(kind, (0, 0))
        row = f"{1e3 * cpu / times:8.0f} {1e3 * wall / times:8.0f}"
        print(f"{kind:10} {row} {plain / 1e3:8.1f} {packed / 1e3:8.1f}")

    def look(kind: str, path: str, number: int) -> str:
        return person.ask(kind, "GET", path.format(word=f"{person.word}{number}"))

    for kind, path in PAGES:
        look(kind, path, times)
        spent(kind, times, partial(look, kind, path))
    cells = person.cases()
    parts = [person.ask("case", "GET", one) for one in cells]
    spent("decide", len(parts), lambda number: person.decide(parts[number]))


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


def server_times(log: Path) -> None:
    """Print the milliseconds that the server took for decisions and for everything else."""
    taken: dict[str, list[float]] = defaultdict(list)
    for text in log.read_text().splitlines():
        # a line may be cut off by SIGKILL or a full disk
        with suppress(ValueError):
            line = json.loads(text)
            if line["person"] and line["status"] < 300:
                decided = line["path"] in ("/judge/decide", "/judge/case")
                taken[line["path"] if decided else "pages"].append(line["ms"] / 1000)
    print(f"{'in server':14} {'count':>6} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}")
    for name, times in sorted(taken.items()):
        print(f"{name:14} {len(times):6} {shares(times)}")


# ---- faults --------------------------------------------------------------------------------------


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """A file system in memory that can be filled; None if none can be mounted."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield None
            return
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)


def fill(disk: Path) -> str:
    """Fill a disk for some seconds."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"0" * (1 << 20) if shutil.disk_usage(disk).free > 1 << 20 else b"0" * 512)
    free = shutil.disk_usage(disk).free
    time.sleep(FULL_SECONDS)
    filler.unlink()
    return f"disk full for {FULL_SECONDS:g} s ({free} bytes left)"


def send_halves(ports: list[int]) -> str:
    """Leave hundreds of heads half sent, at the proxy and at the server."""
    with ExitStack() as halves:
        for number in range(HALF_SENT):
            with suppress(OSError):
                one = socket.create_connection(("127.0.0.1", ports[number % len(ports)]), timeout=5)
                halves.enter_context(one)
                one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        time.sleep(5)
    return f"{HALF_SENT} half-sent heads"


def report(people: list[Person]) -> None:
    times: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, tuple[int, int]] = {}
    for person in people:
        for kind, taken in person.times.items():
            times[kind] += taken
            sizes[kind] = max(sizes.get(kind, (0, 0)), person.sizes[kind])
    everything = [one for taken in times.values() for one in taken]
    heads = ("count", "p50 ms", "p95 ms", "p99 ms", "most KB", "sent KB")
    print(f"{'request':10} {heads[0]:>6} {' '.join(f'{one:>8}' for one in heads[1:])}")
    for kind, taken in sorted(times.items(), key=lambda pair: -len(pair[1])):
        plain, packed = sizes[kind]
        print(f"{kind:10} {len(taken):6} {shares(taken)} {plain / 1e3:8.1f} {packed / 1e3:8.1f}")
    print(f"{'all':10} {len(everything):6} {shares(everything)}")


def shares(taken: list[float]) -> str:
    cuts = statistics.quantiles(taken, n=100) if len(taken) > 1 else taken * 99
    return " ".join(f"{1000 * cuts[i]:8.1f}" for i in (49, 94, 98))


def started(target: Callable[..., None], *arguments: object) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


def invited(given: argparse.Namespace, path: Path, site: Site) -> list[Person]:
    """Invite one editor, and assessors."""
    people, found = People(path), []
    for number in range(given.people):
        name = f"person-{number}"
        token = people.invite(name, "assessor" if number else "editor")
        dice = random.Random(name)
        person = Person(name, token, site, given.pause, given.seconds, dice, given.word)
        person.edits = not number
        found.append(person)
    return found


class Server:
    """The process of the server."""

    def __init__(self, path: Path, port: int, public: str, log: Path) -> None:
        self.arguments = (str(path), port, public, str(log))
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = started(served, *self.arguments)
        wait_for(self.arguments[1])

    def kill(self) -> str:
        """Kill it as the system does, and start it again."""
        self.process.kill()
        self.process.join()
        self.start()
        return "server killed with SIGKILL, and started again"


def make_faults(seconds: float, server: Server, ports: list[int], disk: Path | None) -> list[str]:
    """Make the faults one after the other; return what happened."""
    faults: list[Callable[[], str]] = [server.kill, lambda: send_halves(ports)]
    if disk is not None:
        full = disk
        faults.append(lambda: fill(full))
    faults.append(server.kill)
    happened = []
    for fault in faults:
        time.sleep(max(1.0, seconds / (len(faults) + 1) - FULL_SECONDS))
        happened.append(fault())
    return [*happened, *(["no tmpfs can be mounted: the disk was not filled"] if not disk else [])]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("collection", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.5, help="mean seconds before a request")
    parser.add_argument("--no-grading", action="store_true")
    parser.add_argument("--proxy", action="store_true", help="put nginx with TLS in front")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--word", default="zzqx", help="what is searched for; in vain is slowest")
    given = parser.parse_args()
    if given.proxy and missing():
        parser.error(missing())
    return given


def main() -> int:
    """Serve, load, make faults, and compare."""
    given = arguments()
    with ExitStack() as everything:
        folder = Path(everything.enter_context(tempfile.TemporaryDirectory()))
        disk = everything.enter_context(small_disk()) if given.faults else None
        path, log, commits = (disk or folder) / "load.exam", folder / "log", folder / "commits"
        shutil.copyfile(given.collection, path)
        port, public = free_port(), free_port()
        name = f"{HOST}:{public}" if given.proxy else ""
        site = Site(public, name, "/exam") if given.proxy else Site(port, f"127.0.0.1:{port}")
        people = invited(given, path, site)
        server = Server(path, port, name, log)
        if given.proxy:
            everything.enter_context(nginx(folder, public, port, *WAYS["host and path forwarded"]))
        graders = [] if given.no_grading else [started(grade, str(path), str(commits))]
        warm(people[0])
        log.write_text("")
        threads = [threading.Thread(target=person.work) for person in people]
        for thread in threads:
            thread.start()
        happened = []
        if given.faults:
            happened = make_faults(given.seconds, server, [port, site.port], disk)
        for thread in threads:
            thread.join()
        report(people)
        server_times(log)
        for process in graders:
            process.terminate()
            process.join()
        if not given.faults:
            alone(people[0], server.process.pid or 0)
        server.process.terminate()
        server.process.join()
        for line in happened:
            print("fault:", line)
        return conclude(people, path, commits, exact=not given.faults)


def conclude(people: list[Person], path: Path, commits: Path, *, exact: bool) -> int:
    """Compare what was confirmed with the file."""
    sent, kept, absent = lost(path, people)
    errors = sum((person.faults for person in people), Counter[str]())
    print(f"decisions: {sent} confirmed, {kept} in the file, {absent} lost")
    print(f"requests that were not confirmed: {sum(person.unconfirmed for person in people)}")
    if commits.exists():
        number, done = commits.read_text().split()
        print(f"meanwhile the grading run finished {number} rounds and {done} cells")
    print("errors:", dict(errors) or "none")
    return 1 if errors or absent or (exact and kept != sent) else 0


def wait_for(port: int) -> None:
    """Wait until a server listens."""
    for _ in range(1200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    sys.exit(main())
