"""`exampp vote`: several graders as one."""

from __future__ import annotations

from typing import Annotated

import exampp
from exampp.cli.declare import option
from exampp.cli.options import CollectionFile, Style, TableStyle, VotingRule
from exampp.cli.output import remark, show_several


def vote(
    collection: CollectionFile,
    grader: Annotated[
        list[str],
        option(help="Who votes: a model, model:prompt, or the start of a key; repeatable."),
    ],
    rule: Annotated[VotingRule, option(help="What they say together.")] = VotingRule.majority,
    at_least: Annotated[
        int | None,
        option(min=1, help="How many of them must have graded a cell. [default: all]"),
    ] = None,
    style: TableStyle = Style.text,
) -> None:
    """Let several graders vote; the votes are grades of a grader of their own.

    Again after more grading, it counts what is new.

    Example: exampp vote my.exam --grader draft --grader words-v1 --rule median
    """
    with exampp.Collection(collection) as opened:
        found = opened.panel(*grader).vote(rule.value, at_least=at_least)
    show_several(found.tables(), style.value)
    remark(f"To evaluate: exampp evaluate {collection} --grader {found.grader.name}")
