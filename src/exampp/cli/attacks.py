"""`exampp analyze attacks`: can the grader be gamed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.command import ASKED_FOR, OptionRule, OptionValues, option, option_rules
from exampp.cli.options import (
    OF_GRADED_FILES,
    OF_READING,
    BankName,
    CollectionOrWorkbench,
    CountDecisions,
    DecisionMode,
    Digits,
    GraderName,
    ItemKind,
    LeftOut,
    MinRating,
    Officials,
    OnBadLine,
    OnError,
    RunFiles,
    Scale,
    Style,
    SubtopicMode,
    Subtopics,
    SystemNames,
    TableStyle,
    rating_scale,
)
from exampp.cli.output import show_several
from exampp.results.result import MACHINES

MOST_JUDGED = 1000


def _builds(given: OptionValues) -> bool:
    return bool(given["build"])


def _looks(given: OptionValues) -> bool:
    return not given["build"]


def _writes(given: OptionValues) -> bool:
    return _looks(given) or not given["dry_run"]


@option_rules(
    OF_GRADED_FILES,
    OF_READING,
    OptionRule(
        (
            *("--targets", "--seed", "--attack", "--answers", "--rating", "--texts"),
            *("--dry-run",),
        ),
        "where a battery is made, with --build",
        _builds,
    ),
    OptionRule(
        (
            *("--grader", "--run", "--system", "--leave-out", "--min-rating", "--min-relevant"),
            *("-k", "--official", "--uses", "--subtopics", "--decisions", "--on-error", "--scale"),
            "--digits",
        ),
        "where results are shown, not with --build",
        _looks,
    ),
    OptionRule(("--battery",), "where a battery is read or written, not with --dry-run", _writes),
)
def attacks(
    collection: CollectionOrWorkbench,
    build: Annotated[
        bool,
        option("--build", help="Make the battery of attacks, to be graded by exampp grade."),
    ] = False,
    battery: Annotated[
        Path | None,
        option(help="The battery. [default: my.attacks.exam beside my.exam]"),
    ] = None,
    grader: GraderName = None,
    prompt: Annotated[
        str | None,
        option(
            help="Grades made with this prompt; with --build, the prompt whose delimiters are "
            "imitated. [default there: question-self-rating]",
        ),
    ] = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        option(
            min=1,
            max=MOST_JUDGED,
            help="Lowest judgment of a relevant passage. [default: 2, or 1 where none is higher]",
        ),
    ] = None,
    k: Annotated[
        int, option("-k", min=1, help="Re-ranked systems are scored down to this rank.")
    ] = 5,
    official: Officials = None,
    uses: Annotated[
        Path | None,
        option(
            help="What systems were made with: a table with the columns system and uses.",
            panel=ASKED_FOR,
        ),
    ] = None,
    subtopics: Subtopics = SubtopicMode.auto,
    decisions: CountDecisions = DecisionMode.WITH,
    targets: Annotated[int, option(min=1, help="Passages of each query that are attacked.")] = 20,
    attack: Annotated[
        list[str] | None,
        option(help="Only this attack, such as A3; repeat for several. [default: all]"),
    ] = None,
    answers: Annotated[
        Path | None,
        option(help="What a model answers without a passage (A11): query ids and texts."),
    ] = None,
    rating: Annotated[int, option(min=0, help="The rating that forged verdicts name.")] = 5,
    seed: Annotated[int, option(min=0, help="Seed of all draws.")] = 0,
    texts: Annotated[
        Path | None, option(help="Write the texts to this file, for people to read (JSONL).")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would be made and what grading it takes.")
    ] = False,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
    digits: Digits = None,
    style: TableStyle = Style.text,
) -> None:
    """Ask whether the grader can be gamed, and who shares a model or a bank with it.

    In three steps: make a battery (--build), have it graded as the exam was (exampp grade), and
    show what attacks do beside benign controls. Without a battery: what systems gain that re-rank
    by the grader, and who knows whom.

    Example: exampp analyze attacks my.exam --build
    """
    if build:
        from exampp.analysis.attacks.battery import PROMPT, BatterySettings, read_answers

        settings = BatterySettings(
            targets,
            seed,
            tuple(attack or ()),
            read_answers(answers) if answers else {},
            prompt or PROMPT,
            rating,
        )
        with exampp.Collection(collection) as opened:
            found = opened.bank(bank).build_battery(
                battery,
                settings=settings,
                kind=kind.value if kind else None,
                texts=texts,
                dry_run=dry_run,
            )
        made = found.records() if style.value in MACHINES else found.tables()
        show_several(made, style.value)
        return
    from exampp.analysis.attacks.result import GamingSettings
    from exampp.formats.system_models import read as read_uses
    from exampp.inputs.officials import read_officials

    with exampp.open(collection, on_error.value, rating_scale(scale)) as source:
        gaming = source.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).attacks(
            battery,
            settings=GamingSettings(
                min_rating,
                min_relevant,
                k,
                read_officials(official or ()),
                read_uses(uses) if uses else (),
                subtopics.value,
            ),
        )
    shown = gaming.records() if style.value in MACHINES else gaming.tables()
    show_several(shown, style.value, digits)
