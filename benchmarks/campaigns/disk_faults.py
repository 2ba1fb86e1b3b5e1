"""Fails system calls of every command that writes, and checks messages and files.

    python benchmarks/campaigns/disk_faults.py [--count 2000] [--seed 1] [--only CASE ...]

A library that is compiled at the start (disk_faults.c) counts the calls of a command on files in
its folder, and fails one of them: with ENOSPC, EIO or EDQUOT, or after half of a write. Half of
the time every later call that takes space fails as well, as on a full disk. If `--count` allows,
each command gets every call with every fault; otherwise a seeded sample. Then follow full disks of
12 sizes (tmpfs) and file size limits in 20 steps. After each fault

* exit code 0 means that files and rows are those of an undisturbed run, without the log,
* any other exit code comes with a sentence, never with a traceback,
* nothing that was committed or acknowledged before is lost, and the file is sound,
* the same command, undisturbed, then ends as it always does.

Exits with 1 if anything of this fails, and with 0 and a sentence without a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import mmap
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import kill
from kill import COLLECTION, Broken, Case, Work, command, end_of, ended, lost, rows

import exampp
from exampp.errors import ExamError

KINDS = {
    "ENOSPC": errno.ENOSPC,
    "EIO": errno.EIO,
    "EDQUOT": errno.EDQUOT,
    "short": -1,
    "torn": -2,
}
"""By name, what a call fails with: an errno, a short write, a short write and then ENOSPC."""
LIBRARY = "EXAMPP_DISK_FAULTS"
MEMORY = Path("/dev/shm")
FULL = [("status", COLLECTION), ("export", COLLECTION, "/dev/stdout"), ("--help",), ("plugins",)]
"""Commands whose standard output is a full device."""


class Fault(NamedTuple):
    """A fault: at which call, of which kind, and whether what takes space fails from then on."""

    call: int
    kind: str
    lasting: bool


class Ran(NamedTuple):
    """The end of a command: exit code, standard error, cells acknowledged, calls, failed call."""

    code: int
    errors: str
    acknowledged: int
    calls: int
    failed: str


def compiled(folder: Path) -> Path | None:
    """The library, None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "disk_faults.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    return library


def run(work: Work, folder: Path, fault: Fault | None = None, prepare: Any = None) -> Ran:
    """Run some work in a fork, in its folder, with a fault."""
    counts = mmap.mmap(-1, mmap.PAGESIZE)
    with tempfile.NamedTemporaryFile() as errors:

        def disturbed(at: Path, pipe: int) -> int:
            for number in (1, 2):
                os.dup2(errors.fileno(), number)
            if prepare is not None:
                prepare()
            address = ctypes.addressof(ctypes.c_char.from_buffer(counts))
            call, kind, lasting = fault or Fault(0, "EIO", False)
            arm = ctypes.CDLL(None).disk_faults_arm
            arm.argtypes = (
                *(ctypes.c_char_p, ctypes.c_void_p),
                *(ctypes.c_long, ctypes.c_int, ctypes.c_int),
            )
            arm(os.fsencode(at), address, call, KINDS[kind], lasting)
            return told(work, at, pipe)

        code, acknowledged = ended(*kill.forked(disturbed, folder))
        text = Path(errors.name).read_text(errors="replace")
    for number in (1, 2):
        (folder / f".stream{number}").unlink(missing_ok=True)
    calls = int.from_bytes(counts[:8], sys.byteorder)
    return Ran(code, text, acknowledged, calls, counts[16:48].rstrip(b"\0").decode())


def told(work: Work, folder: Path, pipe: int) -> int:
    """Do some work, and print the errors that Python callers get as the command line does."""
    try:
        code = work(folder, pipe)
        return code if isinstance(code, int) else 0
    except (ExamError, OSError) as error:
        print(f"exampp: {error}", file=sys.stderr, flush=True)
    except BaseException as error:
        print(f"Traceback: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1


def python(folder: Path, pipe: int) -> int:
    """Import, look, decide and export, in Python."""
    os.chdir(folder)
    with exampp.Collection(COLLECTION) as collection:
        collection.import_files("files/more.jsonl", "files/more.run")
        kill.decide(folder, pipe)
        collection.grades("seed").evaluate(min_rating=1)
        collection.export("out.decisions.tsv", "decisions")
    return 0


def cases(url: str) -> dict[str, Case]:
    """Every command that writes: those of the campaign of kills, and some more."""
    board = ("--grader", "seed", "--min-rating", "4")
    requests = ("--grader", "openai", "--model", "m", "--base-url", url, "--decode", "text")
    more = {
        "demo": (("demo", "--files", "tour"), kill.files),
        "draft, a shard": (("grade", COLLECTION, "--grader", "draft", "--shard", "1/2"), kill.more),
        "vote": (("vote", "other.exam", "--grader", "seed", "--grader", "more"), kill.copied),
        "bank import": (("import", COLLECTION, "bank.csv", "--update"), kill.graded),
        "export bank": (("export", COLLECTION, "out.csv"), kill.graded),
        "data set": (("export", COLLECTION, "folder", "--format", "beir"), kill.graded),
        "decisions": (("export", COLLECTION, "d.tsv", "--format", "decisions"), kill.copied),
        "gate": (
            ("gate", COLLECTION, "-r", "nDCG@20>=0", *board, "--junit", "g.xml"),
            kill.graded,
        ),
        "batch file": (("grade", COLLECTION, *requests, "--batch-file", "b.jsonl"), kill.more),
        "plot": (("plot", "leaderboard", COLLECTION, *board, "-o", "p.svg"), kill.graded),
    }
    found = kill.cases(url)
    for name, (arguments, prepare) in more.items():
        found[name] = Case(command(*arguments), prepare)
    found["python"] = Case(python, kill.graded)
    return found


@dataclass
class Trials:
    """One command on one folder, fault after fault."""

    name: str
    case: Case
    home: Path
    counts: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    usable: str = ""

    def __post_init__(self) -> None:
        self.start, self.folder = self.home / f"{self.name}.start", self.home / "torn"
        self.start.mkdir()
        self.case.prepare(self.start)
        self._renew()
        calm = run(self.case.work, self.folder)
        # a gate may fail, and requests in a file are still to be answered
        if calm.code not in (0, 1):
            self.usable = f"exit {calm.code}: {calm.errors[-300:]}"
            return
        self.calls, self.calm = calm.calls, calm
        self.end = self._end()

    def _renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.start, self.folder)

    def _end(self) -> dict[str, Any]:
        """Return what the end of a run is compared by; batches have keys drawn at random."""
        return {name: held for name, held in end_of(self.folder).items() if name != "batch"}

    def trial(self, fault: Fault) -> list[str]:
        """Return the faults of a run after one failed call."""
        self._renew()
        before, files = rows(self.folder), _files(self.folder)
        ran = run(self.case.work, self.folder, fault)
        self.counts.update(faults=1, reached=bool(ran.failed), failed=ran.code != 0)
        wrong = self._judge(ran, before, files)
        for _ in range(3):
            again = run(self.case.work, self.folder)
            try:
                end = self._end()
            except (Broken, OSError) as error:
                wrong.append(f"lost: after the repeat: {error}")
                break
            if end == self.end:
                break
        else:
            differ = sorted(
                name for name in {*end, *self.end} if end.get(name) != self.end.get(name)
            )
            stray = sorted({*end["names"]} ^ {*self.end["names"]})
            wrong.append(
                f"repeat: ends with {again.code}, and otherwise: {differ} {stray} "
                f"{again.errors[-300:]}"
            )
        for one in wrong:
            self.counts[one.partition(":")[0]] += 1
        return [
            f"{one} [{ran.failed}, exit {ran.code}: {ran.errors[-300:].strip()}]" for one in wrong
        ]

    def _judge(
        self, ran: Ran, before: Mapping[str, list[str]], files: Mapping[str, bytes]
    ) -> list[str]:
        success = ran.code == self.calm.code and (not ran.code or ran.errors == self.calm.errors)
        wrong = [] if success else told_badly(ran)
        try:
            alone = alone_rows(self.folder) if success else {}
            now = rows(self.folder)
            wrong += [f"lost: rows of {table}" for table in lost(before, now)]
            if len(now.get("grade", ())) - len(before.get("grade", ())) < ran.acknowledged:
                wrong.append("lost: cells that were acknowledged")
            for name, content in _files(self.folder).items():
                if not success and files.get(name, content) != content:
                    wrong.append(f"lost: {name} is another file")
            if success:
                end = self._end()
                end["names"] = [one for one in end["names"] if not one.endswith("unfinished")]
                if any(end.get(one) != self.end.get(one) for one in {*end, *self.end}):
                    wrong.append("success: the result is not that of an undisturbed run")
                elif alone != rows(self.folder):
                    wrong.append("success: a part is in the log alone")
        except (Broken, OSError) as error:
            wrong.append(f"lost: {error}")
        return wrong


def told_badly(ran: Ran) -> list[str]:
    """Return the faults of the message of a command."""
    if "Traceback" in ran.errors or "defect of exampp" in ran.errors:
        return ["traceback: where a sentence belongs"]
    if ran.code < 0 or ran.code not in (0, 1, 2, 3) or (ran.code and "exampp: " not in ran.errors):
        return [f"silent: ends with {ran.code}"]
    return []


def alone_rows(folder: Path) -> dict[str, list[str]]:
    """The rows of the collection without what SQLite keeps beside it."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as other:
        if (folder / COLLECTION).exists():
            shutil.copy(folder / COLLECTION, other)
        return rows(Path(other))


def _files(folder: Path) -> dict[str, bytes]:
    """The plain files, without collections."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if ".exam" not in path.name and not path.name.endswith(".unfinished")
    }


def faults_of(calls: int, lasting: bool) -> list[Fault]:
    """Every fault of a command with so many calls."""
    return [Fault(call, kind, lasting) for call in range(1, calls + 1) for kind in KINDS]


def system_calls(home: Path, url: str, count: int, seed: int, only: list[str]) -> Counter[str]:
    """Fail calls of every command."""
    chance = random.Random(seed)
    known = cases(url)
    trials = [Trials(name, known[name], home) for name in known if not only or name in only]
    for one in trials:
        if one.usable:
            print(f"{one.name}: cannot be tried: {one.usable}", flush=True)
    trials = [one for one in trials if not one.usable]
    share = max(1, count // len(trials))
    for one in trials:
        every = faults_of(one.calls, False) + faults_of(one.calls, True)
        for fault in every if len(every) <= share else chance.sample(every, share):
            for wrong in one.trial(fault):
                print(
                    f"{one.name}: {fault.kind} at {fault.call}"
                    f"{' and later' * fault.lasting}: {wrong}",
                    flush=True,
                )
        heads = ("faults", "reached", "failed", *WRONG)
        print(
            f"{one.name:16}{one.calls:>6} calls "
            + "  ".join(f"{head} {one.counts[head]}" for head in heads),
            flush=True,
        )
    return sum((one.counts for one in trials), Counter())


WRONG = ("lost", "success", "traceback", "silent", "repeat")
"""Kinds of faults: (a), (b), (c), an exit code without a sentence, (d)."""


def _big(folder: Path) -> int:
    """Files of 2 MB; returns how many passages they hold."""
    count = 3000
    with (folder / "p.jsonl").open("w") as out:
        for number in range(count):
            text = f"Passage {number} about magnets and light. " * 15
            out.write(json.dumps({"id": f"n{number}", "text": text}) + "\n")
    (folder / "q.json").write_text('{"q1": "why is the sky blue"}')
    (folder / "r.run").write_text("".join(f"q1 Q0 n{n} {n + 1} {-n} alpha\n" for n in range(count)))
    return count


def _chain(at: Path, source: Path, prepare: Any = None) -> tuple[Counter[str], list[str]]:
    """Import, and export twice, as far as there is room; what is wrong."""
    files = [str(source / "q.json"), "--passages", str(source / "p.jsonl"), str(source / "r.run")]
    counts, wrong = Counter[str](), []
    lines = (
        ("import", COLLECTION, *files),
        ("export", COLLECTION, "p.out.jsonl", "--format", "passages"),
        ("import", COLLECTION, *files, "--update"),
        ("export", COLLECTION, "r.run", "--format", "runs"),
    )
    for line in lines:
        if line[0] == "export" and not (at / COLLECTION).exists():
            continue
        ran = run(command(*line), at, prepare=prepare)
        found = told_badly(ran)
        try:
            whole = len(alone_rows(at).get("passage_version", ()))
            if ran.code == 0 and whole != 3000:
                found.append(f"success: {whole} of 3000 passages")
            if (at / COLLECTION).exists() and len(rows(at).get("passage_version", ())) != 3000:
                found.append("lost: passages")
        except Broken as error:
            found.append(f"lost: {error}")
        if ran.code == 0 and line[0] == "export":
            with (at / line[2]).open() as lines_of:
                if sum(1 for _ in lines_of) != 3000:
                    found.append("success: lines are missing")
        counts.update(faults=1, reached=1, failed=ran.code != 0)
        counts.update(one.partition(":")[0] for one in found)
        wrong += [f"{line[:2]}: {one} [exit {ran.code}: {ran.errors[-300:]}]" for one in found]
    return counts, wrong


def limited(home: Path) -> Counter[str]:
    """File size limits in 20 steps."""
    source, total = home / "big", Counter[str]()
    for step in range(1, 21):
        at = home / f"limit{step}"
        at.mkdir()
        size = step * 220_000

        def limit(size: int = size) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        counts, wrong = _chain(at, source, limit)
        again, more = _chain(at, source)
        more += ["repeat: fails without the limit"] * bool(again["failed"])
        for one in wrong + more:
            print(f"ulimit -f {size}: {one}", flush=True)
        total += counts + Counter(one.partition(":")[0] for one in more)
        shutil.rmtree(at)
    return total


def full_disks(home: Path) -> Counter[str] | None:
    """Full disks of 12 sizes; None where none can be mounted."""
    source, total = home / "big", Counter[str]()
    at = home / "disk"
    at.mkdir()
    for step in range(12):
        size = 800 + 700 * step
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "faults", at]).returncode:
            return None
        try:
            counts, wrong = _chain(at, source)
            subprocess.run(["mount", "-o", "remount,size=64m", at], check=True)
            again, more = _chain(at, source)
        finally:
            subprocess.run(["umount", at], check=True)
        more += ["repeat: fails with room"] * bool(again["failed"])
        for one in wrong + more:
            print(f"tmpfs of {size} kB: {one}", flush=True)
        total += counts + Counter(one.partition(":")[0] for one in more)
    return total


def full_outputs(home: Path) -> Counter[str]:
    """Standard output on a full device, and into a pipe that nobody reads."""
    folder, counts = home / "outputs", Counter[str]()
    folder.mkdir()
    kill.graded(folder)
    for line in FULL:
        for number, target in enumerate(("/dev/full", "")):
            reading, writing = os.pipe()
            os.close(reading)

            def into(target: str = target, pipe: int = writing) -> None:
                os.dup2(os.open(target, os.O_WRONLY) if target else pipe, 1)
                sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115

            ran = run(command(*line), folder, prepare=into)
            os.close(writing)
            # a closed pipe ends a command quietly, as `| head` expects
            wrong = told_badly(ran) if target else ["silent: a sentence"] * bool(ran.errors)
            wrong += ["success: nothing was printed"] * (ran.code == 0)
            counts.update(faults=1, reached=1, failed=ran.code != 0)
            for one in wrong:
                counts[one.partition(":")[0]] += 1
                print(f"{line} into {('a full device', 'a closed pipe')[number]}: {one} {ran}")
    return counts


def campaign(home: Path, options: argparse.Namespace) -> int:
    """All faults; the number of things that are wrong."""
    context = multiprocessing.get_context("spawn")
    ready, answering = context.Pipe()
    server = context.Process(target=kill.serve, args=(answering, answering), daemon=True)
    server.start()
    os.environ |= {"OPENAI_API_KEY": "none", "NO_COLOR": "1"}
    found = {
        "system calls": system_calls(home, ready.recv(), options.count, options.seed, options.only)
    }
    ready.send(None)
    found["standard output"] = full_outputs(home)
    if not options.only:
        (home / "big").mkdir()
        _big(home / "big")
        found["file size limits"] = limited(home)
        disks = full_disks(home)
        if disks is None:
            print("Full disks are skipped: this user cannot mount a tmpfs (try: unshare -rm).")
        else:
            found["full disks"] = disks
    heads = ("faults", "reached", "failed", *WRONG)
    print(f"{'':18}" + "".join(f"{head:>10}" for head in heads))
    for name, counts in found.items():
        print(f"{name:18}" + "".join(f"{counts[head]:>10}" for head in heads))
    return sum(counts[head] for counts in found.values() for head in WRONG)


def main() -> None:
    """Compile the library, start again with it, and run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000, help="faults of system calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="names of commands")
    options = parser.parse_args()
    memory = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    if LIBRARY in os.environ:
        with tempfile.TemporaryDirectory(dir=memory) as home:
            sys.exit(bool(campaign(Path(home), options)))
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        if library is None:
            print("Skipped: there is no C compiler (cc or gcc) for the library that fails calls.")
            return
        with_library = {"LD_PRELOAD": str(library), LIBRARY: "1"}
        line = [sys.executable, __file__, *sys.argv[1:]]
        sys.exit(subprocess.run(line, env={**os.environ, **with_library}).returncode)


if __name__ == "__main__":
    main()
