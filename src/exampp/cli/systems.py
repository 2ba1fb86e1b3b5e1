"""`exampp systems`: what systems there are, under which names."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import click

import exampp
from exampp.cli.command import Counts, counting
from exampp.cli.declare import argument, option
from exampp.cli.options import CollectionFile, Style, TableStyle
from exampp.cli.output import say, show_several
from exampp.errors import InputError
from exampp.records.wording import counted


class SystemOperation(StrEnum):
    """What is done with systems."""

    list = "list"
    rename = "rename"
    remove = "remove"


@counting(
    Counts(("--yes",), "for remove", lambda given: given["operation"] is SystemOperation.remove),
    Counts(("--format",), "for list", lambda given: given["operation"] is SystemOperation.list),
)
def systems(
    collection: CollectionFile,
    operation: Annotated[
        SystemOperation, argument(help="list, rename OLD NEW, or remove NAME...")
    ] = SystemOperation.list,
    names: Annotated[
        list[str] | None, argument(metavar="NAME", help="The systems that are meant.")
    ] = None,
    yes: Annotated[bool, option("--yes", help="Remove without asking.")] = False,
    style: TableStyle = Style.text,
) -> None:
    """List the systems with the passages that each returns, rename one, or remove some.

    Removing takes rankings away, and asks first. Passages and grades stay: importing a run again
    brings its system back. To leave systems out of an evaluation: evaluate --leave-out.

    Example: exampp systems my.exam
    """
    given = names or []
    with exampp.Collection(collection) as opened:
        if operation is SystemOperation.list:
            if given:
                raise InputError(f"list takes no name, not {given[0]!r}", mend="Leave it out")
            show_several(opened.systems.tables(), style.value)
        elif operation is SystemOperation.rename:
            if len(given) != 2:
                raise InputError("rename takes two names", mend="Say: rename OLD NEW")
            opened.systems.rename(*given)
            say(f"{given[0]} is {given[1]} now.")
        else:
            told = counted(len(given), "system")
            if given and not yes:
                click.confirm(f"Remove the rankings of {', '.join(given)}?", abort=True)
            removed = opened.systems.remove(*given)
            say(f"Removed {told} with {counted(removed, 'ranked passage')}.")
