"""A gate from its options or from a file of them: what is compared is opened, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exampp.analysis.gate import GateResult, GateSettings, nothing_graded, required
from exampp.collection import open as open_exam
from exampp.errors import InputError
from exampp.formats.lines import read_lines
from exampp.prompts.prompt import suggest
from exampp.records.toml import read_toml
from exampp.store.connection import is_collection

_FILES = ("collection", "baseline", "junit")
_CHOICES = ("grader", "prompt", "kind", "bank")
_SETTINGS = ("alpha", "min_rating", "allow_missing")
_NUMBERS = (int, float)
KEYS: Mapping[str, type | tuple[type, ...]] = {
    "collection": str,
    "require": list,
    "baseline": str,
    "baseline-system": str,
    "margin": _NUMBERS,
    "system": list,
    "run": list,
    **dict.fromkeys(_CHOICES, str),
    "alpha": _NUMBERS,
    "min-rating": int,
    "allow-missing": _NUMBERS,
    "junit": str,
}
"""The keys of a file of requirements, which are the options of `exampp gate` by their names."""
_MEANT = {str: "a text", list: "a list of texts", int: "a whole number", _NUMBERS: "a number"}


def read_requirements(path: str | Path) -> dict[str, Any]:
    """The options in a TOML file, by their names in Python; paths are relative to its folder.

    Raises InputError for broken TOML, an unknown key, a value of the wrong type, and where it
    names no collection.
    """
    path = Path(path)
    data = read_toml(path)
    for key, value in data.items():
        if key not in KEYS:
            meant = suggest(key, list(KEYS)) or f"Known: {', '.join(KEYS)}"
            raise InputError(f"unknown key {key!r}", file=path, mend=meant)
        wanted = KEYS[key]
        texts = wanted is not list or _are_texts(value)
        if isinstance(value, bool) or not isinstance(value, wanted) or not texts:
            raise InputError(f"must be {_MEANT[wanted]}", file=path, field=key)
    if "collection" not in data:
        raise InputError("names no collection", file=path, mend='Add: collection = "my.exam"')
    for key in _FILES:
        if key in data:
            data[key] = path.parent / data[key]
    if "run" in data:
        data["run"] = [path.parent / one for one in data["run"]]
    return {key.replace("-", "_"): value for key, value in data.items()}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def run_gate(options: Mapping[str, Any]) -> GateResult:
    """Judge by the options of `KEYS`, by their names in Python.

    A baseline is a collection, a file of graded passages, a file of scores by query, or a run.
    Raises InputError as `Grades.gate` does; a collection that nobody graded fails.
    """
    choice: dict[str, Any] = {name: options.get(name) for name in _CHOICES}
    chosen = {name: options[name] for name in _SETTINGS if options.get(name) is not None}
    settings = GateSettings(**chosen)
    require, margin = options.get("require") or (), options.get("margin")
    baseline, system = options.get("baseline"), options.get("baseline_system")
    with open_exam(options["collection"]) as exam:
        systems = options.get("system") or ()
        if not exam.graders:
            asked = required(require, margin, baseline=baseline is not None or system is not None)
            return nothing_graded(asked, systems, "nobody graded: exampp grade")
        grades = exam.grades(**choice, runs=options.get("run") or ())
        how: dict[str, Any] = {
            "baseline_system": system,
            "margin": margin,
            "systems": systems,
            "settings": settings,
        }
        if baseline is not None and _holds_grades(baseline):
            with open_exam(baseline) as other:
                return grades.gate(require, other.grades(**choice), **how)
        return grades.gate(require, baseline, **how)


def _holds_grades(path: str | Path) -> bool:
    if is_collection(path):
        return True
    _, first = next(read_lines(path))
    return first.lstrip().startswith(b"[")
