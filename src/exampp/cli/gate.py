"""`exampp gate`: systems pass or fail, and the exit code says so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import click

from exampp.cli import streams
from exampp.cli.board_options import OF_READING, Digits, MinRating, RunFiles, SystemNames
from exampp.cli.command import counting, failing
from exampp.cli.declare import argument, option
from exampp.cli.options import BankName, GraderName, ItemKind, PromptName, Style, TableStyle
from exampp.cli.output import show

NO_VERDICT = 3
"""The exit code after any error: the others are verdicts."""


@counting(OF_READING)
@failing(NO_VERDICT)
def gate(
    collection: Annotated[
        Path,
        argument(
            metavar="COLLECTION",
            help="A collection, graded passages, or a file of these options: gate.toml.",
        ),
    ],
    require: Annotated[
        list[str] | None,
        option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="What must hold, such as 'Cover@20>=0.7' or 'nDCG@10>=baseline-0.02'; repeat "
            "for several.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        option(
            help="Compare with this: what evaluate --per-query --format json wrote, a run, a "
            "collection or graded passages."
        ),
    ] = None,
    baseline_system: Annotated[
        str | None,
        option(
            metavar="SYSTEM",
            help="Compare with this system of the baseline, or of COLLECTION without one. "
            "[default: that of the same name, or the only one]",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        option(
            help="How much lower than the baseline's a mean may be, of the measures of which no "
            "requirement says it."
        ),
    ] = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    allow_missing: Annotated[
        float | None,
        option(
            metavar="SHARE",
            help="Share of what a measure reads that may have no grade: such cells count as not "
            "covered. Beyond it, both bounds must hold. [default: 0]",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        option(help="1 - the level of each interval. [default: 0.05]"),
    ] = None,
    junit: Annotated[Path | None, option(help="Write JUnit XML to this file.")] = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Pass or fail systems by requirements, such as Cover@20>=0.7 or no worse than before.

    The exit code is 0 passed, 1 failed or missing, 2 cannot be told with so few queries, 3 no
    verdict because of an error. Options take the place of those in a file.

    Example: exampp gate my.exam --baseline last.json --margin 0.02
    """
    from exampp.formats.lines import encode_text
    from exampp.formats.output import keep_inputs, writing
    from exampp.project.gating import read_requirements, run_gate

    given: dict[str, Any] = {
        "require": require,
        "baseline": baseline,
        "baseline_system": baseline_system,
        "margin": margin,
        "min_rating": min_rating,
        "grader": grader,
        "prompt": prompt,
        "kind": kind.value if kind else None,
        "bank": bank,
        "run": run,
        "system": system,
        "allow_missing": allow_missing,
        "alpha": alpha,
        "junit": junit,
    }
    is_file = collection.suffix == ".toml"
    options: dict[str, Any] = (
        read_requirements(collection) if is_file else {"collection": collection}
    )
    options |= {name: value for name, value in given.items() if value is not None}
    to = options.get("junit")
    inputs = [collection, options["collection"], options.get("baseline"), *options.get("run", ())]
    keep_inputs([to], inputs)
    found = run_gate(options)
    if to is not None:
        with writing(to) as stream:
            stream.write(encode_text(found.to_junit(), to))
    machine = style in (Style.tsv, Style.csv, Style.json)
    tables = found.records() if machine else found.tables()
    show(tables["gate"], style.value, digits)
    streams.flush()
    raise click.exceptions.Exit(found.exit_code)
