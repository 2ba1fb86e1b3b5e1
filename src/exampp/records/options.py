"""Options that are declared once, as fields of dataclasses and parameters of commands.

    depth: Annotated[int, option(min=1, help="How many passages of each ranking.")] = 20

The same field is a keyword in Python, an option of the command line and a key of a TOML file. It is
called as the field where it has no other name. A `bool` is a flag, a `Literal` one of its values,
and a `list` is given value by value.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionDeclaration:
    """What an annotation says of a parameter beside its type; see `option` and `argument`."""

    by_name: bool
    names: tuple[str, ...]
    help: str
    metavar: str | None
    min: float | None
    max: float | None
    exists: bool
    dir_okay: bool
    panel: str | None


def keyword(
    *names: str,
    help: str,  # noqa: A002
    metavar: str | None = None,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    exists: bool = False,
    dir_okay: bool = True,
    panel: str | None = None,
) -> OptionDeclaration:
    """Declare a parameter that is given by name.

    `min` and `max` bound a number; a path may have to exist, or to be no folder. `panel` is where
    the help lists it if not where `cli.command.PANELS` has it.
    """
    return OptionDeclaration(True, names, help, metavar, min, max, exists, dir_okay, panel)


def argument(
    *,
    metavar: str | None = None,
    help: str,  # noqa: A002
    min: float | None = None,  # noqa: A002
    dir_okay: bool = True,
) -> OptionDeclaration:
    """Declare a parameter that is given by place."""
    return OptionDeclaration(False, (), help, metavar, min, None, False, dir_okay, None)
