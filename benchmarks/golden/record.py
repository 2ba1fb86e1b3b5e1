"""Run the golden commands on the tree that is on the path, and record their outputs.

`compare.py` starts this once per tree, in a separate process. Every command runs in that process,
in a fresh copy of the folder that it needs. One JSON object a command goes to OUT:
`command`, `exit`, `out`, `err`, and `files` by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import crawler

MACHINE = ("json", "tsv", "csv")
CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\s,\"|<]*|\d+(\.\d+)? (s|seconds|ms)\b|exampp-[\w.]+"
)
"""Times of day and durations: they differ from run to run."""

ON_GRADED = (
    "evaluate {} -m Cover@20 -m nCover@20 -m P@20 -m nDCG@10 -m AP --per-query",
    "evaluate {} -m Cover@5 -m RR --min-rating 2 --min-rating 4",
    "evaluate {} -m alpha_nDCG@20 -m Judged@10",
    "analyze correlation {}",
    "analyze correlation {} --official official.json -m Cover@20 --samples 200",
    "analyze agreement {}",
    "analyze significance {} --permutations 2000 --pairs",
    "analyze reliability {} --samples 200",
    "analyze items {}",
    "analyze sensitivity {} -m Cover -m P --cutoff 10 --cutoff 20",
    "analyze unsaid {} --limit 5",
    "analyze abstention {}",
    "analyze changes {0} --since {0}",
    "analyze corrected {}",
    "review {} verify --limit 20",
    "review {} grid --limit 5",
    "review {} missing",
    "review {} spurious",
    "bank lint {}",
    "bank duplicates {}",
    "bank improve {} --decide 2",
    "analyze banks {} --reference main",
    "bank show {}",
    "status {}",
    "status {} --pool",
)
"""Commands that run on any exam; `{}` is the exam."""
WRITING = (
    "export {} out.jsonl.gz",
    "export {} out.jsonl --format bank",
    "export {} out.json --format queries",
    "export {} out.jsonl --format passages",
    "evaluate {} --qrels out.qrels",
    "evaluate {} --qrels out.qrels --gains binary --min-rating 3",
    "report {} -o out.html --json out.json",
    "plot leaderboard {} -o out.csv",
    "plot heatmap {} -o out.csv",
)


ROUND_TRIPS = {
    "workbench": ("graded.jsonl.gz", "graded.jsonl.gz"),
    "bank": ("bank.jsonl", "bank.jsonl"),
    "questions": ("questions.tsv", "questions.tsv"),
    "nuggetizer": ("nuggets.jsonl", "nuggets.jsonl"),
    "trec-nuggets": ("nuggets.txt", "nuggets.txt"),
    "argue": ("argue.jsonl", "argue.jsonl"),
    "runs": ("runs.run", "runs.run"),
    "ranx": ("ranx.json", "ranx.json"),
    "candidates": ("candidates.jsonl", "candidates.jsonl"),
    "judgments": ("judgments.qrels", "judgments.qrels"),
    "queries": ("queries.jsonl", "queries.jsonl"),
    "passages": ("passages.jsonl", "passages.jsonl"),
    "decisions": ("decisions.jsonl", "decisions.jsonl"),
    "beir": ("beir", "beir"),
}
"""The files that each written format makes, and what of them is imported again."""


def shared(name: str) -> ModuleType:
    """Import a module that tests share, wherever the recorded revision keeps it."""
    place = f"support.{name}"
    return import_module(place if find_spec("support") and find_spec(place) else name)


TOUR = Path(__file__).resolve().parents[2] / "src" / "exampp" / "demo" / "tour"
IMPORTED = "queries.tsv passages.jsonl questions.tsv nuggets.tsv judgments.qrels answers.jsonl runs"


class Line(NamedTuple):
    """A command line and the folder that it runs in a copy of.

    With `follows` the copy of the line before is used on, as in a session of somebody who types.
    """

    folder: Path
    command: str
    follows: bool = False


def main() -> None:
    """Build the exams, run all command lines, write the results."""
    out, tree, data = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    only = re.compile(sys.argv[4] if len(sys.argv) > 4 else "")
    tests = tree / "tests"
    folders = [one for one in sorted(tests.iterdir()) if one.is_dir()]
    campaigns = tree / "benchmarks" / "campaigns"
    sys.path += map(str, (tests, *folders, campaigns))
    work = Path(tempfile.mkdtemp(prefix="golden"))
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "120", "EXAMPP_AUTHOR": "golden"}
    try:
        with out.open("w", encoding="utf-8") as stream:
            wanted = False
            for line in lines(work, data):
                wanted = bool(only.search(line.command)) or (wanted and line.follows)
                if wanted and (not line.follows or (work / "here").exists()):
                    stream.write(json.dumps(run(line, work / "here")) + "\n")
                    stream.flush()
            for row in of_pages(work, only):
                stream.write(json.dumps(row) + "\n")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def lines(work: Path, data: Path) -> Iterator[Line]:
    """Yield all command lines, each with its folder."""
    yield from of_options(work)
    yield from of_example(work / "demo")
    yield from of_round_trips(work / "demo")
    yield from of_car(work / "car")
    for name, official in (("dl19/graded.jsonl.gz", "dl19/official-leaderboard.json"),):
        if (data / name).exists():
            folder = work / "dl19"
            folder.mkdir()
            shutil.copy(data / name, folder / "graded.jsonl.gz")
            shutil.copy(data / official, folder / "official.json")
            yield from of_exam(folder, "graded.jsonl.gz")
    if (source := data / "science/llmjudge-dev-graded.jsonl.gz").exists():
        folder = work / "llmjudge"
        folder.mkdir()
        shutil.copy(source, folder / "graded.jsonl.gz")
        shutil.copy(data / "science/llmjudge-dev.qrels", folder)
        chosen = "graded.jsonl.gz --grader google/flan-t5-large:question-self-rating"
        for style in MACHINE:
            yield Line(folder, f"analyze agreement {chosen} --format {style}")
            yield Line(folder, f"status graded.jsonl.gz --format {style}")


def of_exam(folder: Path, exam: str) -> Iterator[Line]:
    """Yield every analysis of one exam in every machine format, and every written format."""
    for line in ON_GRADED:
        for style in MACHINE:
            yield Line(folder, f"{line.format(exam)} --format {style}")
    for line in WRITING:
        yield Line(folder, line.format(exam))


def of_example(folder: Path) -> Iterator[Line]:
    """Yield the commands on the bundled example, graded by the draft grader.

    Its files are those of the working tree for both recordings.
    """
    shutil.copytree(TOUR, folder)
    call(folder, f"import made.exam {IMPORTED}")
    call(folder, "grade made.exam --grader draft")
    (folder / "official.json").write_text(json.dumps({"bm25": 1, "dense": 2, "random": 3}))
    yield from of_exam(folder, "made.exam")


def of_round_trips(folder: Path) -> Iterator[Line]:
    """Yield, for every written format, an export, an import of it, and an export of that."""
    for kind, (file, given) in ROUND_TRIPS.items():
        yield Line(folder, f"export made.exam {file} --format {kind}")
        yield Line(folder, f"import again.exam {given}", follows=True)
        yield Line(folder, f"export again.exam again-{file} --format {kind}", follows=True)


def of_car(folder: Path) -> Iterator[Line]:
    """Yield the analyses of an exam of TREC CAR: outlines with sections as subtopics."""
    car_files = shared("car_files")
    folder.mkdir()
    car_files.write(folder / "outlines.cbor", 1, car_files.TOPICS)
    car_files.write(folder / "paragraphs.cbor", 2, car_files.PARAGRAPHS)
    texts = {"all.run": car_files.RUN, "all.qrels": car_files.QRELS, "bank.tsv": car_files.BANK}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "official.json").write_text(json.dumps({"alpha": 1, "beta": 2}))
    files = "outlines.cbor paragraphs.cbor all.run all.qrels bank.tsv"
    yield Line(folder, f"import new.exam {files}")
    call(folder, f"import made.exam {files}")
    call(folder, "grade made.exam --grader draft")
    yield from of_exam(folder, "made.exam")


def of_pages(work: Path, only: re.Pattern[str]) -> Iterator[Mapping[str, Any]]:
    """Yield every page of the bundled example and of the exam of the option tests."""
    for folder, exam in (("demo", "made.exam"), ("options6", "my.exam")):
        here = work / "served"
        if only.search(f"serve {folder}/{exam}") and (work / folder / exam).exists():
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(work / folder, here)
            for address, status, data in crawler.visit(here / exam):
                shown = CHANGING.sub("", data)
                files = {"data.json": shown}
                named = {"command": f"serve {folder}/{exam}: {address}", "exit": status}
                yield {**named, "out": "", "err": "", "files": files}


def of_options(work: Path) -> Iterator[Line]:
    """Yield the command lines of the option tests, alone and with each option."""
    options_example = shared("options_example")
    options = import_module("options" if find_spec("options") else "test_options")
    folders: dict[int, Path] = {}
    for uses in options.OPTIONS.values():
        if uses.queries not in folders:
            folder = folders[uses.queries] = work / f"options{uses.queries}"
            folder.mkdir()
            with contextlib.redirect_stdout(io.StringIO()):
                options_example.make(folder, uses.queries)
        for line in uses.lines:
            styled = [line]
            if "--format" in uses.options and "--format" not in line:
                styled = [f"{line} --format {style}" for style in MACHINE]
            for one in styled:
                yield Line(folders[uses.queries], one)
            for _, longer in options.longer_lines(styled[0], uses.options):
                yield Line(folders[uses.queries], longer)


def run(line: Line, here: Path) -> Mapping[str, Any]:
    """Run a command in a copy of its folder; return its output, exit code and files."""
    if not line.follows:
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(line.folder, here)
    before = {path: content(path) for path in sorted(here.rglob("*")) if path.is_file()}
    code, out, err = call(here, line.command)
    files = {
        path.relative_to(here).as_posix(): content(path)
        for path in sorted(here.rglob("*"))
        if path.is_file() and before.get(path) != content(path)
    }
    return {"command": line.command, "exit": code, "out": out, "err": err, "files": files}


def call(folder: Path, command: str) -> tuple[int, str, str]:
    """Run a command line in this process."""
    from exampp.cli.main import main as exampp

    out, err = io.StringIO(), io.StringIO()
    code = 0
    patched = patches()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.argv = ["exampp", *shlex.split(command)]
        try:
            with patched:
                exampp()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:
            code = 99
            traceback.print_exc()
    return code, CHANGING.sub("", out.getvalue()), CHANGING.sub("", err.getvalue())


@contextlib.contextmanager
def patches() -> Iterator[None]:
    """Replace models and servers by graders that record how they would be made."""
    from unittest import mock

    options_example = shared("options_example")
    recorded = options_example.Recorded
    with contextlib.ExitStack() as stack:
        for target, value in (
            ("exampp.graders.local.load_local_grader", recorded),
            ("exampp.graders.local.finetune", options_example.finetuned),
            ("exampp.graders.openai.OpenAICompatibleGrader", recorded),
            # as these were called in the first recorded revisions
            ("exampp.llm.hf.load", recorded),
            ("exampp.llm.hf.finetune", options_example.finetuned),
            ("exampp.llm.openai.OpenAICompatibleGrader", recorded),
            ("exampp.web.serve", recorded),
            ("secrets.token_hex", lambda size=32: "0" * 2 * size),
        ):
            with contextlib.suppress(ImportError, AttributeError):
                stack.enter_context(mock.patch(target, value))
        yield


def content(path: Path) -> str:
    """Return a file as the text that is compared; collections and long files are shortened."""
    if path.suffix in (".exam", ".exam-wal", ".exam-shm") or ".exam-" in path.name:
        return "collection"
    read = path.read_bytes()
    if path.suffix == ".gz":
        import gzip

        read = gzip.decompress(read)
    try:
        text = CHANGING.sub("", read.decode())
    except UnicodeDecodeError:
        return hashlib.sha256(read).hexdigest()
    return text if len(text) < 20_000 else hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
