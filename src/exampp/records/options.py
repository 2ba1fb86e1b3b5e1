"""Declarations of options: fields of dataclasses and parameters of commands.

    depth: Annotated[int, option(min=1, help="Number of passages per ranking.")] = 20

The field is a keyword in Python, an option of the command line and a key in TOML. The option name
is by default that of the field. A `bool` is a flag, a `Literal` has fixed choices, and a `list`
option can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionDeclaration:
    """The annotation of a parameter; see `option` and `argument`."""

    by_name: bool
    names: tuple[str, ...]
    help: str
    metavar: str | None
    min: float | None
    max: float | None
    exists: bool
    dir_okay: bool
    panel: str | None
    rare: bool


def keyword(
    *names: str,
    help: str,  # noqa: A002
    metavar: str | None = None,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    exists: bool = False,
    dir_okay: bool = True,
    panel: str | None = None,
    rare: bool = False,
) -> OptionDeclaration:
    """Declare a parameter that is passed by name.

    `min` and `max` bound a number; a path may have to exist, or must not be a folder. `panel` is
    its section of the help, by default that of `cli.command.PANELS`. `--help` leaves out the `rare`
    ones, which `--help-all` shows.
    """
    return OptionDeclaration(True, names, help, metavar, min, max, exists, dir_okay, panel, rare)


def argument(
    *,
    metavar: str | None = None,
    help: str,  # noqa: A002
    min: float | None = None,  # noqa: A002
    dir_okay: bool = True,
) -> OptionDeclaration:
    """Declare a parameter that is passed by position."""
    return OptionDeclaration(False, (), help, metavar, min, None, False, dir_okay, None, rare=False)
