"""Does what a configuration asks for, and only what of it is missing.

Like make: a step is done again only where what it depends on has changed. Inputs are done where
their files (path, size, time) and options are as they were; a grader where nothing is due; an
evaluation where its outputs exist and neither exam nor grades have changed since.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.formats.datasets import is_dataset
from exampp.formats.leaderboards import files_of
from exampp.formats.lines import encode_text
from exampp.formats.output import check_outputs, writing
from exampp.grades.grades import Grades
from exampp.grading.run import GradingRun
from exampp.items.generation import GenerationOutcome, GenerationRun, generation_tables
from exampp.measures.board import Leaderboard, per_query, tidy, wide
from exampp.measures.leaderboard import DEFAULT_MEASURES, evaluate_gradebook
from exampp.measures.qrels import write_qrels
from exampp.project.config import ROLES, SELECTED, Config
from exampp.records.gradebook import Gradebook
from exampp.results.result import render
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

OUTPUTS = ("output", "per-query", "qrels")
"""What an evaluation can write."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of a step: its name, and what was done, or why nothing was.

    `stopped` says that it was stopped before its end; `remarks` what was odd.
    """

    name: str
    what: str
    skipped: bool = False
    stopped: bool = False
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a configuration.

    It is done where its `outputs` exist and what it depends on, as `mark` sums it up, is as it was
    when it was done; without a mark it is never done. `as_it_was` is said then, else `do` does it.
    """

    name: str
    as_it_was: str
    do: Callable[[Collection], StepResult]
    mark: Callable[[Collection], str] | None = None
    outputs: tuple[Path, ...] = ()

    def is_done(self, collection: Collection) -> bool:
        if self.mark is None or not all(path.exists() for path in self.outputs):
            return False
        return read_step(collection.connection, self.name) == self.mark(collection)

    def is_called(self, name: str) -> bool:
        """Whether this is its name, or the beginning: `grade 1`, or `grade` for all of them."""
        return self.name == name or self.name.startswith(f"{name} ")


def _mark_done(collection: Collection, name: str, mark: str) -> None:
    """Record that a step is done, and the mark of what it was done on."""
    connection = collection.connection
    with connection, transaction(connection):
        put_step(connection, name, mark, now())


def _all(run: GenerationRun) -> list[GenerationOutcome]:
    return list(run.steps())


def _idle(_: object) -> None:
    """In place of work that is only planned."""


def run_steps(
    config: Config,
    work: Callable[[GradingRun], Any],
    make: Callable[[GenerationRun], Sequence[GenerationOutcome]] = _all,
    *,
    until: str | None = None,
    again: Sequence[str] = (),
) -> Iterator[StepResult]:
    """Do what is missing, step by step.

    `work` runs a grading to its end, or stops it, and `make` a generation. Steps are called by
    their names or the beginnings of these, such as `grade`: nothing is done after those of `until`,
    and those of `again` are done though they are done already; grades and items that there are
    stay. Yields every step when it is done or found done. Ends after one that was stopped.

    Raises:
        InputError: A step cannot be done, there is none of a name, or an output would replace a
            file that is read.
    """
    steps = _steps(config, work, make, until, again)
    with Collection.create(config.place(config.collection), exist_ok=True) as collection:
        for step in steps:
            if step.is_done(collection) and not any(map(step.is_called, again)):
                yield StepResult(step.name, step.as_it_was, skipped=True)
                continue
            result = step.do(collection)
            yield result
            if result.stopped:
                return


def plan_steps(
    config: Config, *, until: str | None = None, again: Sequence[str] = ()
) -> Iterator[StepResult]:
    """What `perform` would do, as things are now: nothing is done, and no model is loaded.

    Raises:
        InputError: There is no step of a name, or an output would replace a file that is read.
    """
    steps = _steps(config, _idle, _idle, until, again)
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
            yield StepResult(
                step.name, f"{step.as_it_was}{unless}" if done else "would be done", done
            )


def _steps(
    config: Config,
    work: Callable[[GradingRun], Any],
    make: Callable[[GenerationRun], Any],
    until: str | None,
    again: Sequence[str],
) -> list[_Step]:
    """The steps of a configuration in order. Raises InputError, as `perform` says."""
    check_outputs(*_written_and_read(config))
    inputs = [("inputs", config.inputs)] if config.inputs else []
    for number, bank in enumerate(config.banks, 1):
        name = bank.get("name", "main")
        inputs.append((f"bank {number} ({name})", {**bank, "bank": name}))
    steps = [
        *(_import(config, name, wanted) for name, wanted in inputs),
        *(_generate(number, one, make) for number, one in enumerate(config.generations, 1)),
        *(_grade(number, one, work) for number, one in enumerate(config.grades, 1)),
        *(_evaluate(config, number, one) for number, one in enumerate(config.evaluations, 1)),
        *(_report(config, number, one) for number, one in enumerate(config.reports, 1)),
    ]
    for name in (*([until] if until else ()), *again):
        if not any(step.is_called(name) for step in steps):
            listed = ", ".join(step.name for step in steps)
            raise InputError(f"there is no step {name!r}", file=config.path, mend=f"Name: {listed}")
    last = [number for number, step in enumerate(steps, 1) if until and step.is_called(until)]
    return steps[: last[-1]] if last else steps


def _written_and_read(config: Config) -> tuple[list[Path], list[str]]:
    """The files that the evaluations and reports make, and those that the steps are made from."""
    made = (*config.evaluations, *config.reports)
    written = [config.place(one[key]) for one in made for key in (*OUTPUTS, "json") if key in one]
    named = [
        name
        for one in (config.inputs, *config.banks)
        for key in ("files", *ROLES)
        for name in as_list(one.get(key, ()))
    ]
    boards = [config.place(name) for one in config.reports for name in one.get("official", ())]
    named += map(str, files_of(boards))
    named += [config.inputs["corpus"]] if "corpus" in config.inputs else []
    read = [file for name in named for file in glob.glob(_named(config, name))]  # noqa: PTH207
    return written, read


def _import(config: Config, name: str, wanted: Mapping[str, Any]) -> _Step:
    of_files = ("files", *ROLES)
    options = {_python(key): v for key, v in wanted.items() if key not in (*of_files, "name")}
    given = {
        key: [file for pattern in as_list(wanted[key]) for file in _files(config, pattern)]
        for key in of_files
        if key in wanted
    }
    files = [file for some in given.values() for file in some]
    used = list(files)
    if "corpus" in options:
        options["corpus"] = _named(config, options["corpus"])
        used.append(options["corpus"])

    def mark(_: Collection) -> str:
        return _fingerprint([wanted, [_stamp(file) for file in used]])

    def do(collection: Collection) -> StepResult:
        now = mark(collection)
        # what stands under [[bank]] is a bank, and has no need to be told from other files
        roles = {
            "banks" if key == "files" and "bank" in options else key: v for key, v in given.items()
        }
        plain = roles.pop("files", [])
        report = collection.import_files(*plain, **{**options, **roles})
        _mark_done(collection, name, now)
        odd = [f"{row[0]}: {row[2]} {row[1]} ({row[3]})" for row in report.findings.rows]
        bad = [f"skipped: {error}" for error in report.skipped_first]
        what = f"{_files_are(files)} taken over, {report.changes} changes"
        return StepResult(name, what, remarks=(*report.remarks, *odd, *bad))

    return _Step(name, f"{_files_are(files)} as they were", do, mark)


def as_list(value: str | Sequence[str]) -> list[str]:
    """The files that a key names, one or several."""
    return [value] if isinstance(value, str) else list(value)


def _files(config: Config, pattern: str) -> list[str]:
    name = _named(config, pattern)
    if is_dataset(name) or not glob.has_magic(pattern):
        return [name]
    found = sorted(glob.glob(name))  # noqa: PTH207
    if not found:
        raise InputError(f"no file fits {pattern!r}", file=config.path, field="files")
    return found


def _files_are(files: list[str]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files)} files"


def _named(config: Config, name: str) -> str:
    return name if is_dataset(name) else str(config.place(name))


def _stamp(file: str) -> list[Any]:
    """The path with size and time, of every file in a folder."""
    if is_dataset(file):
        return [file]
    path = Path(file).resolve()
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [(one, one.stat()) for one in inside if one.is_file()]
    return [str(path), *([str(one), stat.st_size, stat.st_mtime_ns] for one, stat in found)]


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _python(key: str) -> str:
    return key.replace("-", "_")


def _of_exam(wanted: Mapping[str, Any], *, grades: bool = False) -> Callable[[Collection], str]:
    """The mark of a step that depends on what is in the collection."""
    return lambda collection: _fingerprint([wanted, state(collection.connection, grades=grades)])


def _generate(
    number: int, wanted: Mapping[str, Any], make: Callable[[GenerationRun], Any]
) -> _Step:
    name = f"generate {number} ({wanted['prompt']})"
    mark = _of_exam(wanted)

    def do(collection: Collection) -> StepResult:
        options = {_python(key): value for key, value in wanted.items() if key != "grader"}
        bank = collection.bank(options.pop("bank", MAIN_BANK))
        run = bank.generation(wanted["grader"], **options)
        replies, near = generation_tables(run, make(run))
        left = [row for row in replies.rows if row[2] == FAILED]
        if not left and not run.left:
            # what was made changed the exam: as it is now there is nothing to do
            _mark_done(collection, name, mark(collection))
        stopped = run.stopped and bool(run.left)
        return StepResult(
            name, "; ".join(replies.notes), stopped=stopped, remarks=tuple(near.notes)
        )

    # a model must not be loaded to find that there is nothing to do
    return _Step(name, "every query has its items", do, mark)


def _grade(number: int, wanted: Mapping[str, Any], work: Callable[[GradingRun], Any]) -> _Step:
    name = f"grade {number} ({wanted['grader']})"
    mark = _of_exam(wanted)
    nothing = "nothing is due"

    def do(collection: Collection) -> StepResult:
        options = {_python(key): value for key, value in wanted.items() if key != "grader"}
        before = mark(collection)
        run = collection.grading(wanted["grader"], **options)
        if not run.count_due().cells:
            _mark_done(collection, name, before)
            return StepResult(name, nothing, skipped=True)
        work(run)
        left = run.count_due().cells
        if not left:
            _mark_done(collection, name, before)
            return StepResult(name, "all cells graded")
        return StepResult(name, f"{left} cells are still due", stopped=run.stopped)

    # a model must not be loaded to find that there is nothing to do
    return _Step(name, nothing, do, mark)


def _evaluate(config: Config, number: int, wanted: Mapping[str, Any]) -> _Step:
    name = f"evaluate {number}"
    outputs = {key: config.place(wanted[key]) for key in OUTPUTS if key in wanted}
    styles = {key: _style(path, config) for key, path in outputs.items() if key != "qrels"}
    mark = _of_exam(wanted, grades=True)
    listed = ", ".join(wanted[key] for key in outputs)

    def do(collection: Collection) -> StepResult:
        before = mark(collection)
        book = _grades(collection, wanted).gradebook
        board = _board(book, wanted)
        if not outputs:
            return StepResult(name, "\n" + render(wide(board), "text").rstrip())
        texts = {}
        if "output" in outputs:
            machine = styles["output"] in ("tsv", "csv", "json")
            table = tidy(board) if machine else wide(board)
            texts["output"] = render(table, styles["output"])
        if "per-query" in outputs:
            texts["per-query"] = render(per_query(board), styles["per-query"])
        # nothing is written before everything is computed
        for key, text in texts.items():
            _write(outputs[key], text)
        if "qrels" in outputs:
            threshold = wanted.get("min-rating")
            lowest = threshold[0] if isinstance(threshold, list) else threshold
            by_subtopic = board.subtopics == "subtopic"
            write_qrels(book, outputs["qrels"], None, lowest, by_subtopic=by_subtopic)
        _mark_done(collection, name, before)
        return StepResult(name, listed)

    kept = mark if outputs else None
    return _Step(name, f"{listed}: as it was", do, kept, tuple(outputs.values()))


def _report(config: Config, number: int, wanted: Mapping[str, Any]) -> _Step:
    name = f"report {number}"
    outputs = {key: config.place(wanted[key]) for key in ("output", "json") if key in wanted}
    listed = ", ".join(wanted[key] for key in outputs)
    official = [str(config.place(path)) for path in wanted.get("official", ())]

    def mark(collection: Collection) -> str:
        stamps = [_stamp(str(path)) for path in files_of(official)]
        return _fingerprint([wanted, stamps, state(collection.connection, grades=True)])

    def do(collection: Collection) -> StepResult:
        from exampp.results.page import renderer, to_json

        writers = {"output": renderer(Path(wanted["output"])), "json": to_json}
        before = mark(collection)
        said = (*outputs, *SELECTED)
        asked = {_python(key): value for key, value in wanted.items() if key not in said}
        if "round" in asked:
            asked["decimals"] = asked.pop("round")
        document = _grades(collection, wanted).report(**{**asked, "official": official})
        for key, path in outputs.items():
            _write(path, writers[key](document))
        _mark_done(collection, name, before)
        return StepResult(name, listed)

    return _Step(name, f"{listed}: as it was", do, mark, tuple(outputs.values()))


def _grades(collection: Collection, wanted: Mapping[str, Any]) -> Grades:
    return collection.grades(**{key: wanted[key] for key in SELECTED if key in wanted})


def _board(book: Gradebook, wanted: Mapping[str, Any]) -> Leaderboard:
    options = {key: wanted[key] for key in ("subtopics", "missing") if key in wanted}
    measures = wanted.get("measures", DEFAULT_MEASURES)
    return evaluate_gradebook(book, measures, wanted.get("min-rating"), **options)


def _style(path: Path, config: Config) -> str:
    style = STYLE_OF_SUFFIX.get(path.suffix)
    if style is None:
        raise InputError(
            f"no format for {path.name!r}",
            file=config.path,
            mend=f"Name it with one of {', '.join(STYLE_OF_SUFFIX)}",
        )
    return style


def _write(path: Path, text: str) -> None:
    with writing(path) as stream:
        stream.write(encode_text(text, path))
