"""The result of a gate as tables, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from exampp.analysis.gate import GateResult, GateRow, rows_by_verdict
from exampp.analysis.phrases import percent
from exampp.report.bounded import Bounded
from exampp.report.table import Column, Table, Value, readable

_RECORDS = (
    *("system", "requirement", "verdict", "mean", "baseline", "difference", "low", "high"),
    *("queries", "why"),
)


def gate_table(result: GateResult) -> Table:
    """A row for every system and requirement; notes say why what is not passed is not."""
    compared = any(row.baseline is not None for row in result.rows)
    columns: list[str | Column] = ["system", "requirement", "verdict", "mean"]
    columns += ["baseline", "difference"] * compared
    rows: list[list[Value]] = []
    for row in result.rows:
        cells: list[Value] = [row.system or None, row.requirement, row.verdict]
        relative = row.difference is not None
        cells.append(row.mean if relative else _bounded(row.mean, row))
        if compared:
            cells += [row.baseline, _bounded(row.difference, row) if relative else None]
        rows.append([*cells, row.queries])
    return Table.of([*columns, "queries"], rows, heading(result), tuple(_notes(result)))


def _bounded(value: float | None, row: GateRow) -> Value:
    if value is None:
        return None
    bounds = None if row.low is None or row.high is None else (row.low, row.high)
    return Bounded(value, bounds)


def heading(result: GateResult) -> str:
    """The verdict, how many rows have which, whose grades these are, and the baseline."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in rows_by_verdict(result.rows))
    beside = f"; baseline {result.baseline}" if result.baseline else ""
    return f"Gate: {result.verdict} ({counts}). {result.whose}{beside}"


def _notes(result: GateResult) -> Iterator[str]:
    of: dict[tuple[str, str, str], list[str]] = {}
    for row in result.rows:
        if row.why:
            of.setdefault((row.requirement, row.verdict, row.why), []).append(row.system)
    for (requirement, verdict, why), systems in of.items():
        named = ", ".join(filter(None, systems))
        yield f"{requirement}: {verdict}{f' ({named})' if named else ''}: {why}."
    yield (
        f"In brackets: intervals of {percent(result.level)} over queries, each for itself. Passed: "
        "the whole interval meets the requirement; failed: none of it."
    )
    yield from result.notes


def records_table(result: GateResult) -> Table:
    """A row for every system and requirement, at full precision, with why."""
    rows = [
        [*(getattr(row, name) for name in _RECORDS), result.is_draft, result.whose]
        for row in result.rows
    ]
    names = [*_RECORDS, "draft", "graded"]
    return Table.of(names, rows, heading(result), tuple(_notes(result)))


def junit(result: GateResult) -> str:
    """The gate as a suite of tests, a test for every system and requirement.

    What is failed or missing is a failure, what cannot be told an error.
    """
    counts = dict(rows_by_verdict(result.rows))
    suite = ElementTree.Element(
        "testsuite",
        name="exampp gate",
        tests=str(len(result.rows)),
        failures=str(counts.get("failed", 0) + counts.get("missing", 0)),
        errors=str(counts.get("cannot be told", 0)),
        skipped="0",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("verdict", result.verdict),
        ("graded", result.whose),
        ("draft", str(result.is_draft).lower()),
        ("baseline", result.baseline),
        ("level", f"{result.level:g}"),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=readable(value))
    for row in result.rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname=readable(row.system or "exampp"), name=row.requirement
        )
        if row.verdict != "passed":
            kind = "error" if row.verdict == "cannot be told" else "failure"
            said = readable(f"{row.verdict}: {_told(row)}")
            ElementTree.SubElement(case, kind, type=row.verdict, message=said).text = said
    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'


def _told(row: GateRow) -> str:
    if row.mean is None:
        return row.why
    number = row.mean if row.difference is None else row.difference
    what = "mean" if row.difference is None else "difference"
    bounds = None if row.low is None or row.high is None else (row.low, row.high)
    parts = [f"{what} {Bounded(number, bounds).shown(3)} over {row.queries} queries", row.why]
    return "; ".join(filter(None, parts))
