"""Check files before they are used: collections, banks, gate files and presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from exampp.errors import InputError
from exampp.formats.detect import detect, of_role
from exampp.formats.preset import preset_of
from exampp.inputs.checking import Checked, check_collection_file
from exampp.items.lint import RULES, Finding
from exampp.project.gate_file import read_gate_file
from exampp.records.toml import read_toml
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.sanitize import check_path
from exampp.store.checking import Problem
from exampp.store.connection import is_collection

_LIKELY = "likely mistakes (listed with --strict)"


def check(path: str | Path, *, strict: bool = False) -> Checked:
    """Check a collection, a file of a bank, a gate file, or a preset of a file format.

    A collection is only read, or upgraded if it is older. A bank must be importable, and have no
    finding of a rule that was always right on real banks; `strict` reports the findings of all
    rules. A gate file must have known keys, valid requirements and known measures; the files that
    it names need not exist.

    Raises:
        InputError: A collection is missing or cannot be read.
        CollectionBusy: Another process has locked it.
    """
    path = check_path(path)
    if not path.is_file() or is_collection(path) or path.suffix == ".exam":
        return check_collection_file(path)
    kind = "gate file" if path.suffix == ".toml" else "bank"
    try:
        if path.suffix == ".toml" and "fields" in read_toml(path):
            kind = "preset"
        return _CHECKS[kind](path, strict)
    except InputError as error:
        what = f"{error.what}. {error.hint}" if error.hint else error.what
        row = "" if error.line is None else f"line {error.line}"
        return Checked(str(path), (Problem("", row, error.field, "", what),), {}, kind)


def _check_preset(path: Path, _strict: bool) -> Checked:
    preset_of(str(path))
    return Checked(str(path), (), {}, "preset")


def _check_gate_file(path: Path, _strict: bool) -> Checked:
    from exampp.analysis.gate import GateSettings, required, with_cutoff

    _, options = read_gate_file(path)
    compares = options.baseline is not None or options.baseline_system is not None
    # without requirements, the baseline decides the measures
    found = required(options.require or (), options.margin, baseline=compares)
    for one in found:
        with_cutoff(one.measure)
    GateSettings(options.alpha or 0.05, options.min_rating, options.allow_missing or 0.0)
    return Checked(str(path), (), {"requirements": len(found)}, "gate file")


def _no_bank(path: Path, kind: str) -> Checked:
    what = f"the file has the format {kind}, which is not a bank, gate file or preset"
    return Checked(str(path), (Problem("", "", "", "", what),), {}, "bank")


def _check_bank_file(path: Path, strict: bool) -> Checked:
    from exampp.collection import create

    problems, contents = list[Problem](), {"items": 0, _LIKELY: 0}
    with TemporaryDirectory(prefix="exampp-") as folder, create(f"{folder}/bank.exam") as exam:
        of_rankings = {*of_role("runs"), *of_role("qrels")}
        with suppress(InputError):
            if (kind := detect(path)) in of_rankings:
                return _no_bank(path, kind)
        report = exam.import_files(path)
        banks = exam.banks().rows
        if not banks:
            return _no_bank(path, " and ".join(sorted({one.kind for one in report.files})))
        for name, *_ in banks:
            found = exam.bank(str(name)).lint(doubtful=strict)
            faults = [one for one in found.findings if strict or RULES[one.rule].precision == 1]
            problems += map(_problem, faults)
            contents["items"] += found.items
            contents[_LIKELY] += len(found.findings) - len(faults)
    return Checked(str(path), tuple(problems), contents, "bank")


_CHECKS = {"bank": _check_bank_file, "gate file": _check_gate_file, "preset": _check_preset}


def _problem(one: Finding) -> Problem:
    row = " ".join(filter(None, (one.query_id, one.item_id)))
    why = f"{RULES[one.rule].why} ({one.rule}{': ' * bool(one.detail)}{one.detail})"
    return Problem("item", row, "text", one.text, why)


@dataclass(frozen=True, slots=True, repr=False)
class CheckedFiles(Result):
    """The results of checks of several files."""

    files: tuple[Checked, ...]

    @property
    def ok(self) -> bool:
        """Return whether no file has a problem."""
        return all(one.ok for one in self.files)

    def tables(self) -> Mapping[str, Table]:
        """Return a row per file, and the problems."""
        files = ((one.file, one.ok, one.verdict) for one in self.files)
        wrong = sum(not one.ok for one in self.files)
        of = counted(len(self.files), "file")
        verdict = f"Problems in {wrong} of {of}." if wrong else f"OK: {of}."
        found = {"check": Table.of(["file", "ok", "verdict"], files, verdict=verdict)}
        problems = list(self._problems())
        if problems:
            found["problems"] = Table.of(["file", *Problem._fields], problems)
        return found

    def _problems(self) -> Iterator[tuple[str, ...]]:
        for one in self.files:
            yield from ((one.file, *problem) for problem in one.problems)


def check_files(paths: Sequence[str | Path], *, strict: bool = False) -> Checked | CheckedFiles:
    """Check one or more files; see `check`."""
    found = tuple(check(one, strict=strict) for one in paths)
    return found[0] if len(found) == 1 else CheckedFiles(found)
