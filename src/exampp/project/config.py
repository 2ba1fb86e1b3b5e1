"""The configuration file: TOML, its sections and keys known, their values of the right types."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.graders.options import declared_options
from exampp.graders.registry import GRADERS
from exampp.measures.names import as_measures
from exampp.measures.qrels import Labelling, relevant_options
from exampp.records.toml import read_toml

_FILES = (str, list)
"""A file, or a list of files."""
ROLES = ("queries", "passages", "runs", "qrels", "responses")
"""What files of the inputs can be said to be; banks stand under [[bank]]."""
_INPUT_OPTIONS = {
    "corpus": str,
    "depth": int,
    "system": str,
    "passage-tokens": int,
    "cited": bool,
    "unknown-passages": str,
    "on-error": str,
    "update": bool,
    "columns": dict,
}
_GENERATE_OPTIONS = {
    "prompt": str,
    "bank": str,
    "per": str,
    "keys": object,
    "grounded": int,
    "keep-near": bool,
}
_GRADE_OPTIONS = {
    "bank": str,
    "depth": int,
    "pool": str,
    "answers-of": str,
    "max-failures": int,
    "max-queries": int,
    "shard": str,
    "on": str,
}
BOOK_OPTIONS = {"grader": str, "prompt": str, "kind": str, "bank": str, "decisions": str}
_BOARD_OPTIONS = {"measures": list, "min-rating": (int, list), "subtopics": str, "missing": str}
_REPORT_OPTIONS = {
    "title": str,
    "official": list,
    "round": int,
    "measures": list,
    "min-rating": int,
    "min-relevant": int,
    "subtopics": str,
}
_SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "collection": {"path": str},
    "inputs": {"files": list, **dict.fromkeys(ROLES, _FILES), **_INPUT_OPTIONS},
    "bank": {"name": str, "files": list, "on-error": str, "update": bool, "columns": dict},
    "generate": {"grader": str, **_GENERATE_OPTIONS},
    "grade": {"grader": str, **_GRADE_OPTIONS},
    "evaluate": {**BOOK_OPTIONS, **_BOARD_OPTIONS, "output": str, "per-query": str, "qrels": str},
    "report": {**BOOK_OPTIONS, **_REPORT_OPTIONS, "output": str, "json": str},
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
    inputs: Mapping[str, Any] = field(default_factory=dict)
    banks: Sequence[Mapping[str, Any]] = ()
    generations: Sequence[Mapping[str, Any]] = ()
    grades: Sequence[Mapping[str, Any]] = ()
    evaluations: Sequence[Mapping[str, Any]] = ()
    reports: Sequence[Mapping[str, Any]] = ()
    collection: str = ""

    def place(self, name: str) -> Path:
        """A path of the file, from where it stands."""
        return self.path.parent / name


def read_config(path: str | Path) -> Config:
    """The configuration in a TOML file.

    Raises InputError for broken TOML, an unknown section or key (with the nearest known one), a
    value of the wrong type, and a section without what it needs.
    """
    path = Path(path)
    data = read_toml(path, "Make one: exampp init --config")
    for section, value in data.items():
        _check_known(section, list(_SECTIONS), "section", path)
        _check_section(section, value, path)
    if "collection" not in data:
        raise InputError("no section [collection]", file=path, mend='Add: path = "my.exam"')
    if "inputs" in data and not {"files", *ROLES} & data["inputs"].keys():
        mend = f"Give it one or several of files, {', '.join(ROLES)}"
        raise InputError("names no files", file=path, field="[inputs]", mend=mend)
    for number, table in enumerate(data.get("evaluate", ()), 1):
        _check_counting(table, path, f"[[evaluate]] {number}")
    names = [bank.get("name", "main") for bank in data.get("bank", ())]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(
            f"two banks are called {min(twice)!r}",
            file=path,
            field="[[bank]]",
            mend="Give each a name, or put the files of one bank into one list",
        )
    return Config(
        path,
        data.get("inputs", {}),
        data.get("bank", ()),
        data.get("generate", ()),
        data.get("grade", ()),
        data.get("evaluate", ()),
        data.get("report", ()),
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
    for number, table in enumerate(value if section in _LISTS else [value], 1):
        where = f"[[{section}]] {number}" if section in _LISTS else f"[{section}]"
        for needed in _REQUIRED.get(section, ()):
            if needed not in table:
                raise InputError(f"needs the key {needed!r}", file=path, field=where)
        known = {**_SECTIONS[section], **_grader_options(section, table)}
        for key, given in table.items():
            _check_known(key, list(known), "key", path, where)
            _check_type(given, known[key], path, f"{where}.{key}")


def _grader_options(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that the grader of a section has, of which it checks the values itself."""
    name = table.get("grader")
    if section not in ("grade", "generate") or not isinstance(name, str):
        return {}
    found = GRADERS.get(name)
    # an unknown grader is reported when it is used
    backends = GRADERS.built_in.values() if found is None else [found]
    idle = ("kind", "unnumbered", "prompt") if section == "generate" else ()
    return {
        option.replace("_", "-"): object
        for backend in backends
        for option, one in declared_options(backend.options).items()
        if one.shown and option not in idle
    }


def _check_counting(table: Mapping[str, Any], path: Path, where: str) -> None:
    """Refuse keys that change nothing about the measures."""
    if "measures" not in table:
        return
    changing = relevant_options(as_measures(table["measures"]), Labelling())
    for key in ("missing", "min-rating"):
        if key in table and key.replace("-", "_") not in changing:
            measures = ", ".join(table["measures"])
            raise InputError(
                f"changes nothing about {measures}",
                file=path,
                field=f"{where}.{key}",
                mend="Leave it out",
            )


def _check_type(value: Any, wanted: Any, path: Path, where: str) -> None:
    named = {
        str: "a text",
        bool: "true or false",
        int: "a whole number",
        list: "a list",
        dict: "a table of names and columns",
        (int, list): "a number or list",
        _FILES: "a file or a list of files",
    }
    if wanted is object:
        return
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"must be {named[wanted]}", file=path, field=where)
    if wanted is dict and not all(isinstance(one, str) for one in value.values()):
        raise InputError("must name columns by texts", file=path, field=where)
    if isinstance(value, list):
        kinds = int if wanted == (int, list) else str
        if not value or not all(isinstance(one, kinds) for one in value):
            raise InputError("must be a list with something in it", file=path, field=where)
