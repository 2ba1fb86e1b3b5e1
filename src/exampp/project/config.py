"""The configuration file: TOML, its sections and keys known, their values of the right types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.graders.options import declared_options
from exampp.graders.registry import GRADERS
from exampp.measures.names import as_measures
from exampp.measures.qrels import Labelling, relevant_options
from exampp.project.fields import check_table, toml_types
from exampp.records.selection import Selection
from exampp.records.toml import read_toml
from exampp.records.wording import suggest

_Files = str | list[str]
ROLES = ("queries", "passages", "runs", "qrels", "responses")
"""What files of the inputs can be named as; banks stand under [[bank]]."""
SELECTED = ("grader", "prompt", "kind", "bank", "decisions")
"""The fields of a selection that evaluations and reports have."""
_BOARD = {**toml_types(Selection, SELECTED), "measures": list[str], "subtopics": str}
_SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "collection": {"path": str},
    "inputs": {
        "files": list[str],
        **dict.fromkeys(ROLES, _Files),
        "corpus": str,
        "depth": int,
        "system": str,
        "passage-tokens": int,
        "cited": bool,
        "unknown-passages": str,
        "on-error": str,
        "update": bool,
        "columns": dict[str, str],
    },
    "bank": {
        "name": str,
        "files": list[str],
        "on-error": str,
        "update": bool,
        "columns": dict[str, str],
    },
    "generate": {
        "grader": str,
        "prompt": str,
        "bank": str,
        "per": str,
        "keys": object,
        "grounded": int,
        "keep-near": bool,
    },
    "grade": {
        "grader": str,
        "bank": str,
        "depth": int,
        "pool": str,
        "answers-of": str,
        "max-failures": int,
        "max-queries": int,
        "shard": str,
        "on": str,
    },
    "evaluate": {
        **_BOARD,
        "min-rating": int | list[int],
        "missing": str,
        "output": str,
        "per-query": str,
        "qrels": str,
    },
    "report": {
        **_BOARD,
        "title": str,
        "official": list[str],
        "round": int,
        "min-rating": int,
        "min-relevant": int,
        "output": str,
        "json": str,
    },
}
_LISTS = frozenset({"bank", "generate", "grade", "evaluate", "report"})
_REQUIRED = {
    "collection": ("path",),
    "bank": ("files",),
    "generate": ("grader", "prompt"),
    "grade": ("grader",),
    "report": ("output",),
}


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration file: its sections as they stand there, known keys only, of the right types.

    Paths in it are relative to its folder.
    """

    path: Path
    collection: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    banks: Sequence[Mapping[str, Any]] = ()
    generations: Sequence[Mapping[str, Any]] = ()
    grades: Sequence[Mapping[str, Any]] = ()
    evaluations: Sequence[Mapping[str, Any]] = ()
    reports: Sequence[Mapping[str, Any]] = ()

    def place(self, name: str) -> Path:
        """Return a path of the file, from where it stands."""
        return self.path.parent / name


def read_config(path: str | Path) -> Config:
    """Return the configuration in a TOML file.

    Raises:
        InputError: The TOML is broken, a section or key is unknown, a value has the wrong type, or
            a section lacks a key that it needs.
    """
    path = Path(path)
    data = read_toml(path, "Make one: exampp init --config")
    for section, value in data.items():
        if section not in _SECTIONS:
            fix = suggest(section, _SECTIONS) or f"Known: {', '.join(_SECTIONS)}"
            raise InputError(f"unknown section {section!r}", file=path, hint=fix)
        _check_section(section, value, path)
    if "collection" not in data:
        raise InputError("no section [collection]", file=path, hint='Add: path = "my.exam"')
    if "inputs" in data and not {"files", *ROLES} & data["inputs"].keys():
        fix = f"Give it one or several of files, {', '.join(ROLES)}"
        raise InputError("names no files", file=path, field="[inputs]", hint=fix)
    for number, table in enumerate(data.get("evaluate", ()), 1):
        _check_relevant(table, path, f"[[evaluate]] {number}")
    names = [bank.get("name", "main") for bank in data.get("bank", ())]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(
            f"two banks are called {min(twice)!r}",
            file=path,
            field="[[bank]]",
            hint="Give each a name, or put the files of one bank into one list",
        )
    return Config(
        path,
        data["collection"]["path"],
        data.get("inputs", {}),
        *(data.get(name, ()) for name in ("bank", "generate", "grade", "evaluate", "report")),
    )


def _check_section(section: str, value: Any, path: Path) -> None:
    several = section in _LISTS
    tables = value if several else [value]
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        written = f"[[{section}]], once for each" if several else f"[{section}], once"
        raise InputError(f"is written {written}", file=path, field=section)
    for number, table in enumerate(tables, 1):
        where = f"[[{section}]] {number}" if several else f"[{section}]"
        known = {**_grader_options(section, table), **_SECTIONS[section]}
        check_table(table, known, path, where)
        for needed in _REQUIRED.get(section, ()):
            if needed not in table:
                raise InputError(f"needs the key {needed!r}", file=path, field=where)


def _grader_options(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the grader that a section names, which checks their values."""
    if section not in ("grade", "generate"):
        return {}
    name = table.get("grader")
    found = GRADERS.get(name) if isinstance(name, str) else None
    # a grader that is missing or unknown is reported elsewhere
    backends = GRADERS.built_in.values() if found is None else [found]
    idle = ("kind", "unnumbered") if section == "generate" else ()
    return {
        option.replace("_", "-"): object
        for backend in backends
        for option, one in declared_options(backend.options).items()
        if one.shown and option not in idle
    }


def _check_relevant(table: Mapping[str, Any], path: Path, where: str) -> None:
    """Raise InputError for a key that changes nothing about the measures."""
    if "measures" not in table:
        return
    changing = relevant_options(as_measures(table["measures"]), Labelling())
    for key in ("missing", "min-rating"):
        if key in table and key.replace("-", "_") not in changing:
            raise InputError(
                f"changes nothing about {', '.join(table['measures'])}",
                file=path,
                field=f"{where}.{key}",
                hint="Leave it out",
            )
