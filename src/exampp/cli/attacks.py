"""`exampp analyze attacks`: can the grader be gamed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.command import OptionRule, OptionValues, option_rules, without_options
from exampp.cli.options import MinRating, opened_grades
from exampp.cli.output import show
from exampp.records.options import keyword
from exampp.records.selection import NumberDisplay, Selection


def _shows(values: OptionValues) -> bool:
    return not values["build"]


@option_rules(
    OptionRule(
        ("--targets", "--seed", "--attack", "--rating", "--texts", "--dry-run"),
        "where a battery is made, with --build",
        lambda values: bool(values["build"]),
    ),
    OptionRule(
        (
            "--grader",
            "--min-rating",
            "--digits",
        ),
        "where results are shown, not with --build",
        _shows,
    ),
    OptionRule(
        ("--battery",),
        "where a battery is read or written, not with --dry-run",
        lambda values: _shows(values) or not values["dry_run"],
    ),
)
@without_options("runs", "systems", "without", "decisions", "on_error", "scale")
def attacks(
    selection: Selection,
    build: Annotated[
        bool,
        keyword("--build", help="Make the battery of attacks, to be graded by exampp grade."),
    ] = False,
    battery: Annotated[
        Path | None,
        keyword(help="The battery. [default: my.attacks.exam beside my.exam]"),
    ] = None,
    min_rating: MinRating = None,
    targets: Annotated[int, keyword(min=1, help="Passages of each query that are attacked.")] = 20,
    attack: Annotated[
        list[str] | None,
        keyword(help="Only this attack, such as A3; repeat for several. [default: all]"),
    ] = None,
    rating: Annotated[int, keyword(min=0, help="The rating that forged verdicts name.")] = 5,
    seed: Annotated[int, keyword(min=0, help="Seed of all draws.")] = 0,
    texts: Annotated[
        Path | None, keyword(help="Write the texts to this file, for people to read (JSONL).")
    ] = None,
    dry_run: Annotated[
        bool, keyword("--dry-run", help="Print what would be made and what grading it takes.")
    ] = False,
    *,
    display: NumberDisplay,
) -> None:
    """Ask whether the grader can be gamed.

    In three steps: make a battery (--build), have it graded as the exam was (exampp grade), and
    show what attacks do beside benign controls. With --build, --prompt is the prompt whose
    delimiters are imitated (question-self-rating by default).

    Example: exampp analyze attacks my.exam --build
    """
    if build:
        from exampp.analysis.attacks.battery import PROMPT, BatterySettings

        how = BatterySettings(
            targets, seed, tuple(attack or ()), selection.prompt or PROMPT, rating
        )
        with exampp.Collection(selection.collection) as opened:
            made = opened.bank(selection.bank).build_battery(
                battery, settings=how, kind=selection.kind, texts=texts, dry_run=dry_run
            )
        show(made, display)
        return
    with opened_grades(selection) as grades:
        show(grades.attacks(battery, min_rating=min_rating), display)
