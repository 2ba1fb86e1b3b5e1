"""`exampp run`: everything that a configuration file asks for, as far as it is missing."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from exampp.cli.command import Counts, Given, counting
from exampp.cli.declare import argument, option
from exampp.cli.generate import make
from exampp.cli.grade import work
from exampp.cli.options import Grace
from exampp.cli.output import remark, say
from exampp.cli.program import this_command
from exampp.errors import InputError, Unfinished
from exampp.formats.lines import encode_text
from exampp.formats.output import writing
from exampp.stopping import GRACE_SECONDS


def _does(given: Given) -> bool:
    return not given["dry_run"]


@counting(Counts(("--grace",), "where something is done, not with --dry-run", _does))
def run(
    config: Annotated[
        Path, argument(metavar="CONFIG", help="The configuration, such as exam.toml.")
    ],
    until: Annotated[
        str | None,
        option(
            metavar="STEP",
            help="Nothing after this step: inputs, bank, generate, grade, evaluate or report, or "
            "one of several, such as 'grade 1'.",
        ),
    ] = None,
    again: Annotated[
        list[str] | None,
        option(
            metavar="STEP",
            help="This step also where nothing of it has changed; may be repeated. Grades that "
            "there are stay.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would be done; change nothing.")
    ] = False,
    grace: Grace = GRACE_SECONDS,
) -> None:
    """Import, grade and evaluate what a configuration file says, and only what is missing.

    A step is skipped where its files, its options and what it builds on are as they were. Make a
    commented file with `exampp init --config exam.toml`.

    Example: exampp run exam.toml --dry-run
    """
    from exampp.project.reading import read_config
    from exampp.project.steps import perform, planned

    found, named = read_config(config), again or ()
    steps = (
        planned(found, until=until, again=named)
        if dry_run
        else perform(
            found, partial(work, grace=grace), partial(make, grace=grace), until=until, again=named
        )
    )
    for step in steps:
        say(f"{step.name}: {'skipped, ' if step.skipped else ''}{step.what}")
        for remarked in step.remarks:
            remark(f"  {remarked}")
        if step.stopped:
            raise Unfinished(f"stopped in {step.name}; this continues:\n  {this_command()}")


def write_template(path: Path, collection: Path | None) -> None:
    """Write the commented configuration; InputError where there is a file already."""
    if path.exists():
        raise InputError("exists already", file=path, mend="Choose another name")
    text = (files("exampp.project") / "template.toml").read_text(encoding="utf-8")
    if collection is not None:
        text = text.replace('path = "my.exam"', f'path = "{collection.as_posix()}"', 1)
    with writing(path) as stream:
        stream.write(encode_text(text, path))
