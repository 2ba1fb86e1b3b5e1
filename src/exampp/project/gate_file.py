"""A gate from its options or from a file of them: what is compared is opened, and judged."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from exampp.errors import InputError
from exampp.records.options import keyword
from exampp.records.selection import BankName, GraderName
from exampp.records.toml import check_table, read_toml, toml_types

if TYPE_CHECKING:
    from exampp.analysis.gate import GateResult


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The options of `exampp gate` and the keys of a file of requirements."""

    require: Annotated[
        list[str] | None,
        keyword(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="Require this, such as 'Cover@20>=0.7' or 'nDCG@10>=baseline-0.02'. Repeat for "
            "several.",
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        keyword(
            help="Compare with this collection, run, graded passages, or output of "
            "evaluate --per-query --format json."
        ),
    ] = None
    baseline_system: Annotated[
        str | None,
        keyword(
            metavar="SYSTEM",
            help="Compare with this system of the baseline or, without --baseline, of "
            "COLLECTION. [default: the system of the same name, or the only one]",
        ),
    ] = None
    since: Annotated[
        Path | None,
        keyword(
            help="Show the differences to this earlier collection or output of evaluate "
            "--per-query --format json; the gate does not depend on them."
        ),
    ] = None
    margin: Annotated[
        float | None,
        keyword(
            help="Allow means this much lower than the baseline, where a requirement has no margin."
        ),
    ] = None
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that counts as an answer. "
            "[default: 4 on a scale of 0-5, two thirds up another scale]",
            rare=True,
        ),
    ] = None
    grader: GraderName = None
    bank: BankName = None
    run: Annotated[
        list[Path] | None,
        keyword(
            help="Evaluate this run file instead of the stored runs. Repeat for several.",
            rare=True,
        ),
    ] = None
    system: Annotated[
        list[str] | None,
        keyword(
            help="Evaluate only this system. Repeat for several. [default: all]",
            panel="Computation",
        ),
    ] = None
    allow_missing: Annotated[
        float | None,
        keyword(
            metavar="SHARE",
            help="Allow this share of cells without a grade, counted as not covered. Beyond it, "
            "both bounds must hold. [default: 0]",
            rare=True,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        keyword(help="Use intervals of level 1 - alpha. [default: 0.05]", rare=True),
    ] = None
    junit: Annotated[Path | None, keyword(help="Write JUnit XML to this file.")] = None


def read_gate_file(path: Path, given: GateOptions | None = None) -> tuple[Path, GateOptions]:
    """Return the collection and the options of a TOML file; options in `given` override it.

    Paths in the file are relative to its folder.

    Raises:
        InputError: The TOML is broken, a key is unknown, a value has the wrong type, or no
            collection is named.
    """
    data = read_toml(path)
    check_table(data, {"collection": Path, **toml_types(GateOptions)}, path)
    if "collection" not in data:
        raise InputError("missing collection", file=path, hint='Add: collection = "my.exam"')
    values: dict[str, Any] = {key.replace("-", "_"): value for key, value in data.items()}
    for key in ("collection", "baseline", "since", "junit"):
        if key in values:
            values[key] = path.parent / values[key]
    if "run" in values:
        values["run"] = [path.parent / one for one in values["run"]]
    collection = values.pop("collection")
    given = given or GateOptions()
    names = [one.name for one in fields(GateOptions)]
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    return collection, replace(GateOptions(**values), **options)


def gate_inputs(path: Path, given: GateOptions | None = None) -> tuple[Path, GateOptions]:
    """Return the collection and the options of a gate, from a TOML file or as they are given."""
    if path.suffix == ".toml":
        return read_gate_file(path, given)
    return path, given or GateOptions()


def run_gate(collection: str | Path, options: GateOptions) -> GateResult:
    """Check the systems of a collection against the requirements.

    A baseline is a collection, a file of graded passages, a file of scores by query, or a run. A
    collection without grades fails.

    Raises:
        InputError: As `Grades.gate` does.
    """
    from exampp.analysis.gate import GateSettings, nothing_graded, required
    from exampp.collection import open as open_exam
    from exampp.measures.requirements import parse_requirement

    settings = GateSettings(
        **{
            name: value
            for name in ("alpha", "min_rating", "allow_missing")
            if (value := getattr(options, name)) is not None
        }
    )
    require, systems = options.require or (), options.system or ()
    baseline, system = options.baseline, options.baseline_system
    choice: dict[str, Any] = {name: getattr(options, name) for name in ("grader", "bank")}
    with open_exam(collection) as exam:
        if not exam.graders:
            compares = baseline is not None or system is not None
            requirements = required(require, options.margin, baseline=compares)
            return nothing_graded(requirements, systems, "no grades: exampp grade")
        grades = exam.grades(**choice, runs=options.run or ())
        how: dict[str, Any] = {
            "baseline_system": system,
            "margin": options.margin,
            "systems": systems,
            "settings": settings,
        }
        if baseline is not None and _holds_grades(baseline):
            with open_exam(baseline) as other:
                found = grades.gate(require, other.grades(**choice), **how)
        else:
            found = grades.gate(require, baseline, **how)
        if options.since is None:
            return found
        measures = dict.fromkeys(parse_requirement(one.requirement).measure for one in found.rows)
        chosen = exam.grades(**choice, runs=options.run or (), systems=systems)
        changes = [
            chosen.changes(options.since, one, min_rating=options.min_rating) for one in measures
        ]
        return replace(found, changes=tuple(changes))


def _holds_grades(path: Path) -> bool:
    from exampp.formats.lines import read_lines
    from exampp.store.connection import is_collection

    if is_collection(path):
        return True
    _, first = next(read_lines(path))
    return first.lstrip().startswith(b"[")
