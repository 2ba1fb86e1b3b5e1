"""Do what a configuration describes, and only what of it is missing.

Like make: a step is done again only where what it depends on has changed. Inputs are skipped where
their files (path, size, time) and options are as they were; a grader where nothing is pending; an
evaluation where its outputs exist and neither exam nor grades have changed since.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.formats.data_sets import is_dataset
from exampp.formats.leaderboards import leaderboard_files
from exampp.formats.lines import encode_text
from exampp.formats.output import check_outputs, writing
from exampp.grading.run import GradingRun
from exampp.items.generation import GenerationOutcome, GenerationRun, generation_tables
from exampp.measures.board import per_query, tidy, wide_leaderboard
from exampp.measures.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
from exampp.measures.qrels import write_exam_qrels
from exampp.project.config import ROLES, SELECTED, Config
from exampp.results.result import MACHINES, render
from exampp.store.bank import MAIN_BANK, now
from exampp.store.connection import transaction
from exampp.store.generation import FAILED
from exampp.store.runs import put_step, read_step, state

STYLE_OF_SUFFIX = {
    ".txt": "text",
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
}
"""How a leaderboard is written, by the ending of its file."""
OUTPUTS = ("output", "per-query", "qrels", "json")
"""The keys of files that evaluations and reports write."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a step: its name, and what was done, or why nothing was.

    `stopped` says that it was stopped before its end, `finished` that nothing of it is left;
    `remarks` are what was odd.
    """

    name: str
    what: str
    skipped: bool = False
    stopped: bool = False
    finished: bool = True
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a configuration, which `do` does.

    It is done where its `outputs` exist and its table, its files and what it `reads` of the
    collection are as they were then; `unchanged` is printed in that case. A step without a mark
    (an evaluation that only prints) is done every time.
    """

    name: str
    table: Mapping[str, Any]
    unchanged: str
    do: Callable[[Collection], StepResult]
    files: Sequence[str] = ()
    reads: Literal["nothing", "exam", "grades"] = "exam"
    outputs: Mapping[str, Path] = field(default_factory=dict)
    is_marked: bool = True

    def mark(self, collection: Collection) -> str:
        """Return a hash of all that the step depends on."""
        grades = self.reads == "grades"
        of_exam = self.reads != "nothing" and state(collection.connection, grades=grades)
        value = [self.table, [_stamp(file) for file in self.files], of_exam]
        return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()

    def is_done(self, collection: Collection) -> bool:
        """Return whether nothing has changed since the step was done."""
        if not self.is_marked or not all(path.exists() for path in self.outputs.values()):
            return False
        return read_step(collection.connection, self.name) == self.mark(collection)

    def run(self, collection: Collection) -> StepResult:
        """Do the step, and record what it was done on."""
        before = self.mark(collection)
        result = self.do(collection)
        if result.finished and self.is_marked:
            # a generation changes the exam, and with the exam as it is now there is nothing to do
            mark = self.mark(collection) if self.name.startswith("generate") else before
            connection = collection.connection
            with connection, transaction(connection):
                put_step(connection, self.name, mark, now())
        return result

    def is_called(self, name: str) -> bool:
        """Return whether this is its name, or the start: `grade 1`, or `grade` for all of them."""
        return self.name == name or self.name.startswith(f"{name} ")


def run_steps(
    config: Config,
    work: Callable[[GradingRun], Any],
    make: Callable[[GenerationRun], Sequence[GenerationOutcome]] = lambda run: list(run.steps()),
    *,
    until: str | None = None,
    again: Sequence[str] = (),
) -> Iterator[StepResult]:
    """Do what is missing, step by step.

    `work` runs a grading to its end, or stops it, and `make` a generation. Steps are called by
    their names or the beginnings of these, such as `grade`: nothing is done after those of `until`,
    and those of `again` are done though they are done already; grades and items that exist stay.
    Yields every step when it is done or found done. Ends after one that was stopped.

    Raises:
        InputError: A step cannot be done, a name is unknown, or an output would replace a file
            that is read.
    """
    steps = _steps(config, work, make, until, again)
    with Collection.create(config.place(config.collection), exist_ok=True) as collection:
        for step in steps:
            if step.is_done(collection) and not any(map(step.is_called, again)):
                yield StepResult(step.name, step.unchanged, skipped=True)
                continue
            result = step.run(collection)
            yield result
            if result.stopped:
                return


def plan_steps(
    config: Config, *, until: str | None = None, again: Sequence[str] = ()
) -> Iterator[StepResult]:
    """Yield what `run_steps` would do, as things are now: nothing is done, no model is loaded.

    Raises:
        InputError: A name is unknown, or an output would replace a file that is read.
    """
    steps = _steps(config, None, None, until, again)
    path = config.place(config.collection)
    if not path.exists():
        yield from (StepResult(step.name, "would be done") for step in steps)
        return
    changing = False
    with Collection(path) as collection:
        for step in steps:
            done = step.is_done(collection) and not any(map(step.is_called, again))
            changing = changing or not done
            unless = ", unless a step before changes that" if done and changing else ""
            what = f"{step.unchanged}{unless}" if done else "would be done"
            yield StepResult(step.name, what, done)


def _steps(
    config: Config,
    work: Callable[[GradingRun], Any] | None,
    make: Callable[[GenerationRun], Any] | None,
    until: str | None,
    again: Sequence[str],
) -> list[_Step]:
    """Return the steps of a configuration in order. Raises InputError, as `run_steps` says."""
    inputs = [("inputs", config.inputs)] if config.inputs else []
    for number, bank in enumerate(config.banks, 1):
        name = bank.get("name", "main")
        inputs.append((f"bank {number} ({name})", {**bank, "bank": name}))
    steps = [
        *(_import(config, name, table) for name, table in inputs),
        *(_generate(f"generate {n}", one, make) for n, one in enumerate(config.generations, 1)),
        *(_grade(f"grade {n}", one, work) for n, one in enumerate(config.grades, 1)),
        *(_evaluate(config, f"evaluate {n}", one) for n, one in enumerate(config.evaluations, 1)),
        *(_report(config, f"report {n}", one) for n, one in enumerate(config.reports, 1)),
    ]
    written = [path for step in steps for path in step.outputs.values()]
    read = [file for step in steps for file in step.files if not is_dataset(file)]
    check_outputs(written, read)
    for name in (*([until] if until else ()), *again):
        if not any(step.is_called(name) for step in steps):
            listed = ", ".join(step.name for step in steps)
            raise InputError(f"unknown step {name!r}", file=config.path, hint=f"Name: {listed}")
    last = [number for number, step in enumerate(steps, 1) if until and step.is_called(until)]
    return steps[: last[-1]] if last else steps


def _options(table: Mapping[str, Any], *without: str) -> dict[str, Any]:
    """Return the keys of a table as keywords, but some."""
    return {key.replace("-", "_"): value for key, value in table.items() if key not in without}


def _import(config: Config, name: str, table: Mapping[str, Any]) -> _Step:
    options = _options(table, "files", *ROLES, "name")
    given: dict[str, list[str]] = {
        key: [file for one in as_list(table[key]) for file in _files(config, one)]
        for key in ("files", *ROLES)
        if key in table
    }
    files = [file for some in given.values() for file in some]
    read = list(files)
    if "corpus" in options:
        options["corpus"] = _place(config, options["corpus"])
        read.append(options["corpus"])
    plain = given.pop("files", [])
    if "bank" in options:
        # what stands under [[bank]] is a bank: its kind need not be detected
        given["banks"], plain = plain, []
    options |= given
    counted = "1 file" if len(files) == 1 else f"{len(files)} files"

    def do(collection: Collection) -> StepResult:
        report = collection.import_files(*plain, **options)
        odd = [f"{row[0]}: {row[2]} {row[1]} ({row[3]})" for row in report.findings.rows]
        bad = [f"skipped: {error}" for error in report.skipped_first]
        what = f"{counted} imported, {report.changes} changes"
        return StepResult(name, what, remarks=(*report.remarks, *odd, *bad))

    return _Step(name, table, f"{counted} unchanged", do, read, "nothing")


def as_list(value: str | Sequence[str]) -> list[str]:
    """Return the files that a key names, one or several."""
    return [value] if isinstance(value, str) else list(value)


def _files(config: Config, pattern: str) -> list[str]:
    name = _place(config, pattern)
    if is_dataset(name) or not glob.has_magic(pattern):
        return [name]
    found = sorted(glob.glob(name))  # noqa: PTH207
    if not found:
        raise InputError(f"no file fits {pattern!r}", file=config.path, field="files")
    return found


def _place(config: Config, name: str) -> str:
    return name if is_dataset(name) else str(config.place(name))


def _stamp(file: str) -> list[Any]:
    """Return the path with size and time, of every file in a folder."""
    if is_dataset(file):
        return [file]
    path = Path(file).resolve()
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [(one, one.stat()) for one in inside if one.is_file()]
    return [str(path), *([str(one), stat.st_size, stat.st_mtime_ns] for one, stat in found)]


# a model must not be loaded to find that there is nothing to generate or to grade


def _generate(
    name: str, table: Mapping[str, Any], make: Callable[[GenerationRun], Any] | None
) -> _Step:
    name = f"{name} ({table['prompt']})"

    def do(collection: Collection) -> StepResult:
        options = _options(table, "grader")
        run = collection.bank(options.pop("bank", MAIN_BANK)).generation(table["grader"], **options)
        replies, near = generation_tables(run, make(run) if make else [])
        failed = any(row[2] == FAILED for row in replies.rows)
        return StepResult(
            name,
            "; ".join(replies.notes),
            stopped=run.stopped and bool(run.left),
            finished=not failed and not run.left,
            remarks=tuple(near.notes),
        )

    return _Step(name, table, "every query has its items", do)


def _grade(name: str, table: Mapping[str, Any], work: Callable[[GradingRun], Any] | None) -> _Step:
    name, nothing = f"{name} ({table['grader']})", "nothing is pending"

    def do(collection: Collection) -> StepResult:
        run = collection.grading(table["grader"], **_options(table, "grader"))
        if not run.count_due().cells:
            return StepResult(name, nothing, skipped=True)
        if work:
            work(run)
        left = run.count_due().cells
        what = f"{left} cells are still pending" if left else "all cells graded"
        return StepResult(name, what, stopped=bool(left) and run.stopped, finished=not left)

    return _Step(name, table, nothing, do)


def _evaluate(config: Config, name: str, table: Mapping[str, Any]) -> _Step:
    outputs = {key: config.place(table[key]) for key in OUTPUTS if key in table}
    styles = {key: _style(path, config) for key, path in outputs.items() if key != "qrels"}
    listed = ", ".join(table[key] for key in outputs)
    threshold = table.get("min-rating")

    def do(collection: Collection) -> StepResult:
        book = collection.grades(**{key: table[key] for key in SELECTED if key in table}).gradebook
        options = {key: table[key] for key in ("subtopics", "missing") if key in table}
        measures = table.get("measures", DEFAULT_MEASURES)
        board = evaluate_gradebook(book, measures, threshold, **options)
        if not outputs:
            return StepResult(name, "\n" + render(wide_leaderboard(board), "text").rstrip())
        tables = {"per-query": per_query, "output": wide_leaderboard}
        if styles.get("output") in MACHINES:
            tables["output"] = tidy
        # nothing is written before everything is computed
        texts = {key: render(tables[key](board), style) for key, style in styles.items()}
        for key, text in texts.items():
            _write(outputs[key], text)
        if "qrels" in outputs:
            lowest = threshold[0] if isinstance(threshold, list) else threshold
            by_subtopic = board.subtopics == "subtopic"
            write_exam_qrels(book, outputs["qrels"], None, lowest, by_subtopic=by_subtopic)
        return StepResult(name, listed)

    step = _Step(name, table, f"{listed}: unchanged", do, (), "grades", outputs)
    return replace(step, is_marked=bool(outputs))


def _report(config: Config, name: str, table: Mapping[str, Any]) -> _Step:
    outputs = {key: config.place(table[key]) for key in OUTPUTS if key in table}
    listed = ", ".join(table[key] for key in outputs)
    official = [str(config.place(path)) for path in table.get("official", ())]

    def do(collection: Collection) -> StepResult:
        from exampp.results.page import renderer, report_json

        writers = {"output": renderer(Path(table["output"])), "json": report_json}
        options = _options(table, *outputs, *SELECTED) | {"official": official}
        if "round" in options:
            options["decimals"] = options.pop("round")
        grades = collection.grades(**{key: table[key] for key in SELECTED if key in table})
        document = grades.report(**options)
        for key, path in outputs.items():
            _write(path, writers[key](document))
        return StepResult(name, listed)

    boards = [str(path) for path in leaderboard_files(official)]
    return _Step(name, table, f"{listed}: unchanged", do, boards, "grades", outputs)


def _style(path: Path, config: Config) -> str:
    style = STYLE_OF_SUFFIX.get(path.suffix)
    if style is None:
        raise InputError(
            f"no format for {path.name!r}",
            file=config.path,
            hint=f"Name it with one of {', '.join(STYLE_OF_SUFFIX)}",
        )
    return style


def _write(path: Path, text: str) -> None:
    with writing(path) as stream:
        stream.write(encode_text(text, path))
