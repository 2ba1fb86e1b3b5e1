"""The result of a gate: its rows, its verdict, as tables and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

from exampp.analysis.phrases import not_excluded, percent
from exampp.report.bounded import Bounded
from exampp.report.cells import readable
from exampp.report.result import Result
from exampp.report.table import Table, Value

_RECORDS = (
    *("system", "requirement", "verdict", "mean", "baseline", "difference", "low", "high"),
    *("queries", "why"),
)
Verdict = Literal["passed", "failed", "cannot be told", "missing"]


@dataclass(frozen=True, slots=True)
class GateRow:
    """A requirement on a system.

    `low` and `high` bound the mean, or its `difference` to the baseline where that is required;
    `why` says why it is missing or cannot be told. None: there is none.
    """

    system: str
    requirement: str
    verdict: Verdict
    mean: float | None = None
    baseline: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    queries: int = 0
    why: str = ""


class GateFailed(AssertionError):
    """A requirement is failed, or something it needs is missing; `result` is the whole gate."""

    def __init__(self, result: GateResult) -> None:
        super().__init__(f"\n{result.render()}")
        self.result = result


class GateUndecided(GateFailed):
    """Nothing is failed or missing, but so few queries cannot tell of all requirements."""


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Result):
    """What a gate found: a row for every system and requirement.

    `whose` says who graded on which bank, and that grades are drafts where they are.
    """

    rows: tuple[GateRow, ...]
    whose: str
    is_draft: bool
    baseline: str
    level: float
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Literal["passed", "failed", "cannot be told"]:
        """Failed where a requirement is failed or missing, passed where all are passed."""
        found = {row.verdict for row in self.rows}
        if found & {"failed", "missing"} or not found:
            return "failed"
        return "cannot be told" if "cannot be told" in found else "passed"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 cannot be told."""
        return ("passed", "failed", "cannot be told").index(self.verdict)

    def check(self) -> None:
        """Raise GateFailed where it failed, GateUndecided where it cannot be told."""
        if self.verdict != "passed":
            raise (GateFailed if self.verdict == "failed" else GateUndecided)(self)

    def tables(self) -> Mapping[str, Table]:
        """The verdict, and a row for every system and requirement."""
        return {"gate": gate_table(self)}

    def records(self) -> Mapping[str, Table]:
        """The same with why, at full precision."""
        rows = [
            [*(getattr(row, name) for name in _RECORDS), self.is_draft, self.whose]
            for row in self.rows
        ]
        names = [*_RECORDS, "draft", "graded"]
        return {"gate": Table.of(names, rows, heading(self), tuple(_notes(self)))}

    def to_junit(self) -> str:
        """The same as JUnit XML, which tells continuous integration of tests.

        A test for every system and requirement: what is failed or missing is a failure, what cannot
        be told an error.
        """
        counts = dict(rows_by_verdict(self.rows))
        suite = ElementTree.Element(
            "testsuite",
            name="exampp gate",
            tests=str(len(self.rows)),
            failures=str(counts.get("failed", 0) + counts.get("missing", 0)),
            errors=str(counts.get("cannot be told", 0)),
            skipped="0",
        )
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (
            ("verdict", self.verdict),
            ("graded", self.whose),
            ("draft", str(self.is_draft).lower()),
            ("baseline", self.baseline),
            ("level", f"{self.level:g}"),
        ):
            ElementTree.SubElement(properties, "property", name=name, value=readable(value))
        for row in self.rows:
            case = ElementTree.SubElement(
                suite, "testcase", classname=readable(row.system or "exampp"), name=row.requirement
            )
            if row.verdict != "passed":
                kind = "error" if row.verdict == "cannot be told" else "failure"
                said = readable(f"{row.verdict}: {_told(row)}")
                ElementTree.SubElement(case, kind, type=row.verdict, message=said).text = said
        ElementTree.indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'


def rows_by_verdict(rows: Iterable[GateRow]) -> Iterator[tuple[Verdict, int]]:
    """How many rows have each verdict that occurs."""
    found = [row.verdict for row in rows]
    for verdict in ("passed", "failed", "cannot be told", "missing"):
        if verdict in found:
            yield verdict, found.count(verdict)


def gate_table(result: GateResult) -> Table:
    """A row for every system and requirement; notes say why what is not passed is not."""
    compared = any(row.baseline is not None for row in result.rows)
    columns = ["system", "requirement", "verdict", "mean"]
    columns += ["baseline", "difference"] * compared
    columns += [f"{percent(result.level)} interval", "queries"]
    rows: list[list[Value]] = [
        [
            row.system or None,
            row.requirement,
            row.verdict,
            row.mean,
            *([row.baseline, row.difference] * compared),
            _bounded(None, row),
            row.queries,
        ]
        for row in result.rows
    ]
    return Table.of(columns, rows, heading(result), tuple(_notes(result)))


def _bounded(value: float | None, row: GateRow) -> Bounded | None:
    """The value with the interval of the row; None where there is none of it."""
    bounds = None if row.low is None or row.high is None else (row.low, row.high)
    return None if value is None and bounds is None else Bounded(value, bounds)


def heading(result: GateResult) -> str:
    """The verdict, how many rows have which, whose grades these are, and the baseline."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in rows_by_verdict(result.rows))
    beside = f"; baseline {result.baseline}" if result.baseline else ""
    return f"Gate: {result.verdict} ({counts}). {result.whose}{beside}"


def _notes(result: GateResult) -> Iterator[str]:
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in result.rows:
        if row.why:
            of_why = found.setdefault((row.verdict, row.why), {})
            of_why.setdefault(row.requirement, []).append(row.system)
    for (verdict, why), requirements in found.items():
        where = (
            f"{requirement} ({', '.join(systems)})" if any(systems) else requirement
            for requirement, systems in requirements.items()
        )
        yield f"{verdict.capitalize()}, {', '.join(where)}: {why}."
    side = percent((1 - result.level) / 2)
    yield (
        f"Tested is the mean over all queries like these, at {side} on either side. Passed: the "
        "whole interval meets the requirement; failed: none of it does."
    )
    if fewest := min((row.queries for row in result.rows if row.low is not None), default=0):
        yield f"{not_excluded(fewest, result.level)}."
    yield from result.notes


def _told(row: GateRow) -> str:
    if row.mean is None:
        return row.why
    number = row.mean if row.difference is None else row.difference
    what = "mean" if row.difference is None else "difference"
    found = _bounded(number, row)
    shown = f"{what} {found.shown(3)} over {row.queries} queries" if found else ""
    parts = [shown, row.why]
    return "; ".join(filter(None, parts))
