"""A whole exam as one TOML file: inputs, banks, graders, evaluations, and what of it is missing.

Like make: a step is done again only where what it depends on has changed. Inputs are done where
their files (path, size, time) and options are as they were; a grader where nothing is due; an
evaluation where its outputs exist and neither exam nor grades have changed since.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.evaluate import tables
from exampp.grade.graders import Options
from exampp.grade.run import GradingRun
from exampp.graded import DEFAULT_MEASURES, evaluate_gradebook, write_qrels
from exampp.inputs.datasets import is_dataset
from exampp.report.table import STYLES, render

STYLE_OF_SUFFIX = {
    ".txt": "text",
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
}

_INPUT_OPTIONS = {
    "corpus": str,
    "depth": int,
    "system": str,
    "passage-tokens": int,
    "unknown-passages": str,
    "on-error": str,
}
_GRADE_OPTIONS = {
    **{one.name.replace("_", "-"): object for one in fields(Options) if one.name != "api_key"},
    "bank": str,
    "depth": int,
    "answers-of": str,
    "max-failures": int,
}
_BOOK_OPTIONS = {"grader": str, "prompt": str, "kind": str, "bank": str}
_BOARD_OPTIONS = {"measures": list, "min-rating": (int, list), "facets": str, "missing": str}
_SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "collection": {"path": str},
    "inputs": {"files": list, **_INPUT_OPTIONS},
    "bank": {"name": str, "files": list, "on-error": str},
    "grade": {"grader": str, **_GRADE_OPTIONS},
    "evaluate": {**_BOOK_OPTIONS, **_BOARD_OPTIONS, "output": str, "per-query": str, "qrels": str},
}
_LISTS = frozenset({"bank", "grade", "evaluate"})
_REQUIRED = {"collection": "path", "inputs": "files", "bank": "files", "grade": "grader"}


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration file: its sections as they stand there, known keys only, of the right types.

    Paths in it are relative to its folder.
    """

    path: Path
    inputs: Mapping[str, Any] = field(default_factory=dict)
    banks: Sequence[Mapping[str, Any]] = ()
    grades: Sequence[Mapping[str, Any]] = ()
    evaluations: Sequence[Mapping[str, Any]] = ()
    collection: str = ""

    def place(self, name: str) -> Path:
        """A path of the file, from where it stands."""
        return self.path.parent / name


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a step: its name, and what was done, or why nothing was."""

    name: str
    what: str
    skipped: bool = False


# ---- reading -------------------------------------------------------------------------------------


def read_config(path: str | Path) -> Config:
    """The configuration in a TOML file.

    Raises InputError for broken TOML, an unknown section or key (with the nearest known one), a
    value of the wrong type, and a section without what it needs.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such file", file=path, mend="Make one: exampp init --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", file=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"broken TOML ({error})", file=path) from None
    for section, value in data.items():
        _check_known(section, list(_SECTIONS), "section", path)
        _check_section(section, value, path)
    if "collection" not in data:
        raise InputError("no section [collection]", file=path, mend='Add: path = "my.exam"')
    return Config(
        path,
        data.get("inputs", {}),
        data.get("bank", ()),
        data.get("grade", ()),
        data.get("evaluate", ()),
        data["collection"]["path"],
    )


def _check_known(name: str, known: Sequence[str], what: str, path: Path, where: str = "") -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name.replace("_", "-"), known, 1)
    mend = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}"
    raise InputError(f"unknown {what} {name!r}", file=path, field=where, mend=mend)


def _check_section(section: str, value: Any, path: Path) -> None:
    if section in _LISTS and not (
        isinstance(value, list) and all(isinstance(one, dict) for one in value)
    ):
        raise InputError(f"is written [[{section}]], once for each", file=path, field=section)
    if section not in _LISTS and not isinstance(value, dict):
        raise InputError(f"is written [{section}], once", file=path, field=section)
    known = _SECTIONS[section]
    for number, table in enumerate(value if section in _LISTS else [value], 1):
        where = f"[[{section}]] {number}" if section in _LISTS else f"[{section}]"
        for key, given in table.items():
            _check_known(key, list(known), "key", path, where)
            _check_type(given, known[key], path, f"{where}.{key}")
        needed = _REQUIRED.get(section)
        if needed and needed not in table:
            raise InputError(f"needs the key {needed!r}", file=path, field=where)


def _check_type(value: Any, wanted: Any, path: Path, where: str) -> None:
    named = {str: "a text", int: "a whole number", list: "a list", (int, list): "a number or list"}
    if wanted is object:
        return
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InputError(f"must be {named[wanted]}", file=path, field=where)
    if isinstance(value, list):
        kinds = int if isinstance(wanted, tuple) else str
        if not value or not all(isinstance(one, kinds) for one in value):
            raise InputError("must be a list with something in it", file=path, field=where)


# ---- doing ---------------------------------------------------------------------------------------


def perform(config: Config, work: Callable[[GradingRun], Any]) -> Iterator[Step]:
    """Do what is missing, step by step; `work` runs a grading to its end, or stops it.

    Yields every step when it is done or found done. Stops after a grader that was stopped.
    """
    with Collection.create(config.place(config.collection), exist_ok=True) as collection:
        if config.inputs:
            yield _import(config, collection, "inputs", config.inputs)
        for number, bank in enumerate(config.banks, 1):
            name = bank.get("name", "main")
            yield _import(config, collection, f"bank {number} ({name})", {**bank, "bank": name})
        for number, wanted in enumerate(config.grades, 1):
            step, stopped = _grade(collection, number, wanted, work)
            yield step
            if stopped:
                return
        for number, wanted in enumerate(config.evaluations, 1):
            yield _evaluate(config, collection, number, wanted)


def _import(
    config: Config, collection: Collection, name: str, wanted: Mapping[str, Any]
) -> Step:
    options = {_python(key): v for key, v in wanted.items() if key not in ("files", "name")}
    files = [file for pattern in wanted["files"] for file in _files(config, pattern)]
    used = list(files)
    if "corpus" in options:
        options["corpus"] = _named(config, options["corpus"])
        used.append(options["corpus"])
    print_ = _fingerprint([options, [_stamp(file) for file in used]])
    if collection.is_done(name, print_):
        return Step(name, f"{len(files)} files, as they were", skipped=True)
    report = collection.import_files(*files, **options)
    collection.mark_done(name, print_)
    odd = "".join(
        f"\n  {system}: {count} {finding} ({which})"
        for system, finding, count, which in report.findings.rows
    )
    return Step(name, f"{len(files)} files, {report.changes} changes{odd}")


def _files(config: Config, pattern: str) -> list[str]:
    name = _named(config, pattern)
    if is_dataset(name) or not glob.has_magic(pattern):
        return [name]
    found = sorted(glob.glob(name))
    if not found:
        raise InputError(f"no file fits {pattern!r}", file=config.path, field="files")
    return found


def _named(config: Config, name: str) -> str:
    return name if is_dataset(name) else str(config.place(name))


def _stamp(file: str) -> list[Any]:
    """The path with size and time, of every file in a folder."""
    path = Path(file)
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [(one, one.stat()) for one in inside if one.is_file()]
    return [file, *([str(one), stat.st_size, stat.st_mtime_ns] for one, stat in found)]


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _python(key: str) -> str:
    return key.replace("-", "_")


def _grade(
    collection: Collection,
    number: int,
    wanted: Mapping[str, Any],
    work: Callable[[GradingRun], Any],
) -> tuple[Step, bool]:
    name = f"grade {number} ({wanted['grader']})"
    options = {_python(key): value for key, value in wanted.items() if key != "grader"}
    before = _fingerprint([wanted, collection.fingerprint()])
    if collection.is_done(name, before):
        # a model must not be loaded to find that there is nothing to do
        return Step(name, "nothing is due", skipped=True), False
    run = collection.grading(wanted["grader"], **options)
    if not run.count_due().cells:
        collection.mark_done(name, before)
        return Step(name, "nothing is due", skipped=True), False
    work(run)
    left = run.count_due().cells
    if not left:
        collection.mark_done(name, before)
    still = f"{left} cells are still due (exampp status says why)" if left else "all cells graded"
    return Step(name, still), run.stopped and left > 0


def _evaluate(
    config: Config, collection: Collection, number: int, wanted: Mapping[str, Any]
) -> Step:
    name = f"evaluate {number}"
    outputs = {key: config.place(wanted[key]) for key in ("output", "per-query", "qrels") if key in wanted}
    state = _fingerprint([wanted, collection.fingerprint(grades=True)])
    listed = ", ".join(str(path) for path in outputs.values())
    if outputs and all(path.exists() for path in outputs.values()):
        if collection.is_done(name, state):
            return Step(name, listed, skipped=True)
    book = collection.gradebook(**{key: wanted[key] for key in _BOOK_OPTIONS if key in wanted})
    chosen = {_python(key): wanted[key] for key in ("facets", "missing") if key in wanted}
    threshold = wanted.get("min-rating")
    board = evaluate_gradebook(
        book, wanted.get("measures", DEFAULT_MEASURES), threshold, **chosen
    )
    if "output" in outputs:
        style = _style(outputs["output"], config)
        machine = style in ("tsv", "csv", "json")
        _write(outputs["output"], render(tables.tidy(board) if machine else tables.wide(board), style))
    if "per-query" in outputs:
        path = outputs["per-query"]
        _write(path, render(tables.per_query(board), _style(path, config)))
    if "qrels" in outputs:
        lowest = threshold[0] if isinstance(threshold, list) else threshold
        write_qrels(book, outputs["qrels"], None, lowest, by_subtopic=board.facets == "subtopic")
    if not outputs:
        return Step(name, render(tables.wide(board), "text"))
    collection.mark_done(name, state)
    return Step(name, listed)
