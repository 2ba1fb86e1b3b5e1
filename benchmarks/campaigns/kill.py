"""Kills every command that writes at random moments (kill -9), and checks what is left.

    python benchmarks/campaigns/kill.py [--count 1000] [--seed 1]

Commands run in forks of this process, which has loaded everything, so that a kill lands in their
work. Half of the time another process writes the same collection and a third one reads it. After
every kill the file must be sound, and hold every grade, edit, decision and text that was committed
before, and every cell that the run had reported as done. Each collection is killed up to three
times; then the command is let through, and must end as it does undisturbed: the same rows, the same
files, and no others beside them. Exits with 1 if anything of this fails.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support import exams, servers

import exampp
from exampp.cli.main import main as exampp_main
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.store.pages import damaged_pages
from exampp.store.sql import mismatches

COLLECTION = "my.exam"
GROWING = (
    "query",
    "passage_version",
    "item_version",
    "item_edit",
    "decision",
    "generation",
    "grade",
)
"""Tables that lose no row, whatever is done."""
PASSING = ("at", "started", "seconds", "until", "salt", "commitment")
"""Columns that differ from one undisturbed run to the next."""
KEYS = ("item", "item_version", "version", "edit", "grader")
"""Columns in which two writers number what they add, in the order in which they come."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.+]*")
ITEM = item_id("q1", exams.QUESTIONS["q1"][0])
Work = Callable[[Path, int], int]


@dataclass
class Case:
    """A command: how the folder is made ready for it, and what it does there.

    `work` gets the folder, and a pipe for the cells that it knows to be committed. `beside` is what
    another writer does meanwhile; its result belongs to the undisturbed end.
    """

    work: Work
    prepare: Callable[[Path], None]
    beside: Work | None = None
    counts: Counter[str] = field(default_factory=Counter)


def command(*arguments: str) -> Work:
    """A command line, run in the folder."""

    def work(folder: Path, _: int) -> int:
        os.chdir(folder)
        sys.argv = ["exampp", *arguments]
        try:
            exampp_main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return work


def rate(ask: Request) -> str:
    """A rating that depends on the texts alone."""
    return str(len(ask.item + ask.passage) % 6)


def grade(folder: Path, pipe: int) -> int:
    """Grade with a script; says after every commit how many cells are done."""
    from exampp.grading import run

    run.COMMIT_SECONDS = 0.0
    with exampp.Collection(folder / COLLECTION) as collection:
        grader = ScriptedGrader(rate, name="by length", record=False, look_ahead=4, delay=0.001)
        for progress in collection.grading(grader, model="scripted").steps():
            os.write(pipe, f"{progress.done}\n".encode())
    return 0


def decide(folder: Path, _: int) -> int:
    """Decide on a few cells, those on which nobody has decided yet."""
    with exampp.Collection(folder / COLLECTION) as collection:
        book = collection.grades("seed").gradebook
        query = book.queries[0]
        made = len(collection.decisions.list())
        for passage in query.passage_ids[made:3]:
            collection.grades().decisions.decide(
                query.query_id, query.item_ids[0], passage, 2, author="a"
            )
    return 0


def edit_beside(folder: Path, _: int) -> int:
    """Edit the bank of the other query, as a second writer."""
    code = command("bank", "edit", COLLECTION, "add", "q2", "Is it a pole?", "--author", "b")
    return 0 if code(folder, 0) in (0, 2) else 1


def files(folder: Path) -> None:
    """The files alone."""
    exams.write_files(folder / "files")
    text = '{{"passage_id": "n{0}", "text": "Passage {0} about magnets."}}\n'
    (folder / "files" / "more.jsonl").write_text("".join(map(text.format, range(40))))
    run = "".join(f"q1 Q0 n{n} {n + 1} {-n} gamma\n" for n in range(40))
    (folder / "files" / "more.run").write_text(run)


def plain(folder: Path) -> None:
    """A collection that is not graded."""
    files(folder)
    exams.make(folder).close()


def more(folder: Path) -> None:
    """A collection with some more to grade."""
    plain(folder)
    with exampp.Collection(folder / COLLECTION) as collection:
        collection.import_files(folder / "files" / "more.jsonl", folder / "files" / "more.run")


def graded(folder: Path) -> None:
    """A collection with the grades of `seed`."""
    more(folder)
    with exampp.Collection(folder / COLLECTION) as collection:
        collection.grade(ScriptedGrader(rate, name="seed", record=False), model="seed")
        collection.bank().export(folder / "bank.csv")
    edited = (folder / "bank.csv").read_text().replace("What does air", "What else does air")
    (folder / "bank.csv").write_text(edited)


def copied(folder: Path) -> None:
    """A collection and a copy of it in which more was graded and decided."""
    graded(folder)
    shutil.copy(folder / COLLECTION, folder / "other.exam")
    with exampp.Collection(folder / "other.exam") as collection:
        collection.grade(ScriptedGrader(rate, name="more", record=False), model="more")
        book = collection.grades("seed").gradebook
        for query in book.queries:
            for passage in query.passage_ids[:2]:
                collection.grades("seed").decisions.decide(
                    query.query_id, query.item_ids[0], passage, 3, author="c"
                )


def edited(folder: Path) -> None:
    """A collection with an edit that can be undone."""
    graded(folder)
    with exampp.Collection(folder / COLLECTION) as collection:
        collection.bank().edit("weight", ITEM, "2", author="a")


def cases(url: str) -> dict[str, Case]:
    """Every command that writes."""
    inputs = [f"files/{name}" for name in ("queries.json", "passages.jsonl", "questions.tsv")]
    runs = ["files/systems.run", "files/judgments.qrels"]
    at = ("--grader", "openai", "--model", "m", "--base-url", url)
    bank = ("--author", "a", "--reason", "r")
    generate = command("bank", "generate", COLLECTION, *at, "--prompt", "dl-questions")
    export = command("export", COLLECTION, "out.graded.jsonl.gz", "--format", "workbench")
    board = ("--grader", "seed", "--min-rating", "4")
    return {
        "first import": Case(command("import", COLLECTION, *inputs, *runs), files),
        "import": Case(
            command("import", COLLECTION, "files/more.jsonl", "files/more.run"), plain, edit_beside
        ),
        "grade": Case(grade, more, edit_beside),
        "grade, twice": Case(grade, more, grade),
        "grade, server": Case(
            command("grade", COLLECTION, *at, "--decode", "text"), more, edit_beside
        ),
        "reparse": Case(
            command("reparse", COLLECTION, "--grader", "seed", "--compat", "rubric"),
            graded,
            edit_beside,
        ),
        "bank edit": Case(
            command("bank", "edit", COLLECTION, "reword", ITEM, "What is it?", *bank),
            graded,
            edit_beside,
        ),
        "bank apply": Case(
            command("bank", "apply", COLLECTION, "bank.csv", *bank, "--force"), graded, edit_beside
        ),
        "bank revert --edit": Case(
            command("bank", "revert", COLLECTION, "--edit", "6", *bank), edited, edit_beside
        ),
        "bank split": Case(command("bank", "split", COLLECTION, "--secret", "0.5"), graded),
        "generate": Case(generate, plain, edit_beside),
        "decide": Case(decide, graded, edit_beside),
        "merge": Case(command("merge", COLLECTION, "other.exam"), copied, edit_beside),
        "systems remove": Case(
            command("systems", COLLECTION, "remove", "alpha", "--yes"), graded, edit_beside
        ),
        "review plan": Case(
            command("review", COLLECTION, "sample", "--labels", "3", "-m", "P@2", *board),
            graded,
            edit_beside,
        ),
        # a battery is of the bank as it was: an edit meanwhile comes before it, or after
        "attacks": Case(command("analyze", "attacks", COLLECTION, "--build"), graded),
        "export": Case(export, graded, edit_beside),
        "qrels": Case(
            command("evaluate", COLLECTION, *board, "--qrels", "exam.qrels"), graded, edit_beside
        ),
        "report": Case(
            command("report", COLLECTION, "--output", "r.html", "--json", "r.json", *board), graded
        ),
    }


def forked(work: Work, folder: Path) -> tuple[int, int]:
    """Start some work in a fork; its process, and the end of a pipe from it."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    os.close(reading)
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for stream in (1, 2):
            os.dup2(os.open(folder / f".stream{stream}", os.O_WRONLY | os.O_CREAT), stream)
        code = work(folder, writing)
    finally:
        os._exit(code)


def ended(process: int, reading: int) -> tuple[int, int]:
    """Wait for a fork; its exit status (negative: a signal), and the last number it reported."""
    _, status = os.waitpid(process, 0)
    with os.fdopen(reading) as pipe:
        numbers = [int(line) for line in pipe.read().split()]
    return os.waitstatus_to_exitcode(status), numbers[-1] if numbers else 0


def through(work: Work, folder: Path) -> int:
    """Run some work to its end."""
    return ended(*forked(work, folder))[0]


def rows(folder: Path, without: tuple[str, ...] = PASSING) -> dict[str, list[str]]:
    """The rows of every table without some columns; checks the file on the way."""
    path = folder / COLLECTION
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as opened:
        verdict = opened.execute("PRAGMA integrity_check").fetchone()[0]
        if verdict != "ok" or opened.execute("PRAGMA foreign_key_check").fetchall():
            raise Broken(f"integrity: {verdict}")
        made = opened.execute("PRAGMA user_version").fetchone()[0]
        if made and (wrong := mismatches(opened)):
            raise Broken(f"checksums: {wrong}")
        if made and (damaged := list(damaged_pages(opened))):
            raise Broken(f"pages: {damaged}")
        # pages may be stored or not, and checksums depend on keys and times
        names = opened.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE '%_page' AND name <> 'checksum'"
        ).fetchall()
        return {name: sorted(_rows(opened, name, columns_of(opened), without)) for (name,) in names}


class Broken(Exception):
    """A collection is damaged."""


def columns_of(opened: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of every table."""
    found: dict[str, list[str]] = {}
    for table, column in opened.execute(
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
        "WHERE m.type = 'table' ORDER BY m.name, c.cid"
    ):
        found.setdefault(table, []).append(column)
    return found


def _rows(
    opened: sqlite3.Connection,
    table: str,
    columns: Mapping[str, list[str]],
    without: tuple[str, ...],
) -> Iterator[str]:
    kept = ", ".join(f'"{column}"' for column in columns.get(table, ()) if column not in without)
    if not kept:
        return
    for row in opened.execute(f"SELECT {kept} FROM {table}"):
        yield MOMENT.sub("", repr(row))


def lost(before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    """The tables of which a row was committed once and is there no more."""
    return [name for name in GROWING if set(before.get(name, ())) - set(now.get(name, ()))]


def end_of(folder: Path) -> dict[str, Any]:
    """Return the rows, and the files beside the collection, to compare with an undisturbed end."""
    found: dict[str, Any] = {
        name: held
        for name, held in rows(folder, (*PASSING, *KEYS)).items()
        if name not in ("run", "generation", "step", "lease")
    }
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith((".stream", COLLECTION)):
            found[path.name] = _content(path)
    found["names"] = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".stream"))
    return found


def _content(path: Path) -> str | int:
    if path.suffix == ".gz":
        import gzip

        return gzip.decompress(path.read_bytes()).decode()
    if path.suffix == ".exam":
        with contextlib.closing(sqlite3.connect(path)) as opened:
            columns = columns_of(opened)
            # checksums depend on times
            columns.pop("checksum", None)
            return repr({name: sorted(_rows(opened, name, columns, PASSING)) for name in columns})
    return MOMENT.sub("", path.read_text(errors="replace"))


def reader(folder: Path, _: int) -> int:
    """Read while others write; the collection may not exist yet."""
    if not (folder / COLLECTION).exists():
        return 0
    return command("status", COLLECTION)(folder, 0)


class Chain:
    """One command, killed again and again on one collection, then let through."""

    def __init__(self, home: Path, name: str, case: Case, chance: random.Random) -> None:
        self.name, self.case = name, case
        self._chance = chance
        self._start, self._folder = home / f"{name}.start", home / f"{name}.torn"
        self._start.mkdir()
        case.prepare(self._start)
        self._ends = {}
        self._seconds = float("inf")
        for beside in (False, False, True):
            calm = home / f"{name}.calm{beside}"
            shutil.rmtree(calm, ignore_errors=True)
            shutil.copytree(self._start, calm)
            began = time.monotonic()
            code = through(case.work, calm)
            self._seconds = min(self._seconds, time.monotonic() - began)
            if code:
                raise SystemExit(f"{name}: exit {code}\n{(calm / '.stream2').read_text()}")
            if beside and case.beside is not None:
                through(case.beside, calm)
                through(case.work, calm)  # on what the other one has added
            self._ends[beside] = end_of(calm)

    def kills(self, most: int) -> list[str]:
        """Up to `most` kills, and the run that is let through; what was wrong."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._start, self._folder)
        beside = self.case.beside if self._chance.random() < 0.5 else None
        wrong: list[str] = []
        try:
            before = rows(self._folder)
            for _ in range(self._chance.randint(1, most)):
                before = self._kill(before, beside, wrong)
            self._let_through(beside, wrong)
        except Broken as error:
            wrong.append(str(error))
        self.case.counts["wrong"] += len(wrong)
        return wrong

    def _kill(
        self, before: Mapping[str, list[str]], beside: Work | None, wrong: list[str]
    ) -> dict[str, list[str]]:
        others = [forked(beside, self._folder), forked(reader, self._folder)] if beside else []
        process, pipe = forked(self.case.work, self._folder)
        time.sleep(self._chance.uniform(0, self._seconds))
        os.kill(process, signal.SIGKILL)
        code, reported = ended(process, pipe)
        for number, other in enumerate(others):
            if status := ended(*other)[0]:
                wrong.append(f"the {('other writer', 'reader')[number]} ended with {status}")
        now = rows(self._folder)
        wrong += [f"lost rows of {table}" for table in lost(before, now)]
        if len(now.get("grade", ())) - len(before.get("grade", ())) < reported:
            wrong.append("lost cells that were reported as done")
        self.case.counts.update(kills=1, landed=code == -signal.SIGKILL, beside=beside is not None)
        return now

    def _let_through(self, beside: Work | None, wrong: list[str]) -> None:
        for _ in range(3):
            # what was done already may be refused, as an edit that has been made
            through(self.case.work, self._folder)
            found = end_of(self._folder)
            if found == self._ends[beside is not None]:
                return
        due = self._ends[beside is not None]
        differ = [name for name in {*found, *due} if found.get(name) != due.get(name)]
        stray = sorted({*found["names"]} ^ {*due["names"]})
        wrong.append(f"ends otherwise: {', '.join(sorted(differ))} {' '.join(stray)}")


def serve(ready: Any, done: Any) -> None:
    """A server on loopback in a process of its own: ratings, and questions to who wants items."""

    def answer(seen: servers.Seen) -> servers.Answer:
        if "Generate" in seen.text:
            return servers.Answer(servers.completion('["What is a pole?", "Why is it so?"]'))
        return servers.rating(seen)

    with servers.FaultServer(answer, delay=0.002) as server:
        ready.send(server.url)
        done.recv()


def campaign(count: int, seed: int) -> int:
    """All kills; the number of faults that were found."""
    chance = random.Random(seed)
    home = Path(tempfile.mkdtemp())
    context = multiprocessing.get_context("spawn")
    ready, answering = context.Pipe()
    server = context.Process(target=serve, args=(answering, answering), daemon=True)
    server.start()
    os.environ |= {"OPENAI_API_KEY": "none", "NO_COLOR": "1"}
    chains = [Chain(home, name, case, chance) for name, case in cases(ready.recv()).items()]
    began, kills = time.monotonic(), 0
    while kills < count:
        chain = chance.choice(chains)
        for wrong in chain.kills(most=3):
            print(f"{kills}: {chain.name}: {wrong}", flush=True)
        kills = sum(one.case.counts["kills"] for one in chains)
    ready.send(None)
    heads = ("kills", "landed", "beside", "wrong")
    print(f"{'':16}" + "".join(f"{head:>10}" for head in heads))
    total: Counter[str] = Counter()
    for chain in chains:
        counts = chain.case.counts
        print(f"{chain.name:16}" + "".join(f"{counts[head]:>10}" for head in heads))
        total += counts
    print(f"{'all':16}" + "".join(f"{total[head]:>10}" for head in heads), end="")
    print(f"   in {time.monotonic() - began:.0f} s")
    shutil.rmtree(home)
    return total["wrong"]


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(bool(campaign(options.count, options.seed)))


if __name__ == "__main__":
    main()
