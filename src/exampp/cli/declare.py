"""Commands from functions: annotations say what is read, defaults what is meant without it.

    def pool(
        collection: Annotated[Path, argument(metavar="COLLECTION", help="The collection.")],
        depth: Annotated[int, option(min=1, help="How many passages of each ranking.")] = 20,
    ) -> None: ...

An option is named as its parameter where it has no other name. A `bool` is a flag, and its opposite
another, unless it is named; an enumeration is one of its values; a `list` is given value by value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isnan
from pathlib import Path
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

import click


@dataclass(frozen=True, slots=True)
class Declared:
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


def option(
    *names: str,
    help: str,  # noqa: A002
    metavar: str | None = None,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    exists: bool = False,
    dir_okay: bool = True,
    panel: str | None = None,
) -> Declared:
    """A parameter that is given by name.

    `min` and `max` bound a number; a path may have to exist, or to be no folder. `panel` is where
    the help lists it if not where `panels` has it.
    """
    return Declared(True, names, help, metavar, min, max, exists, dir_okay, panel)


def argument(
    *,
    metavar: str | None = None,
    help: str,  # noqa: A002
    min: float | None = None,  # noqa: A002
    dir_okay: bool = True,
) -> Declared:
    """A parameter that is given by place."""
    return Declared(False, (), help, metavar, min, None, False, dir_okay, None)


def parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """What a command reads for its function."""
    hints = get_type_hints(function, include_extras=True)
    return [
        _parameter(one.name, hints[one.name], one.default)
        for one in inspect.signature(function).parameters.values()
    ]


class OneOf(click.Choice[Any]):
    """One value of an enumeration."""

    def normalize_choice(self, choice: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        """What stands for a choice: its value."""
        return str(choice.value if isinstance(choice, Enum) else choice)


class Whole(click.IntRange):
    """A whole number within bounds."""

    name = "integer"


class Number(click.FloatRange):
    """A number within bounds."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number. Fails for what is none, and is within no bounds either."""
        found: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if isnan(found) else found


class ByName(click.Option):
    """An option of a command, with the panel of its help."""

    def __init__(self, *given: Any, panel: str | None, **more: Any) -> None:
        super().__init__(*given, **more)
        self.panel = panel

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value as the function gets it."""
        return _listed(self, super().process_value(ctx, value))


class ByPlace(click.Argument):
    """An argument of a command, with its help."""

    def __init__(self, *given: Any, said: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self.said = said

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value as the function gets it."""
        return _listed(self, super().process_value(ctx, value))

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002
        """How the usage names it."""
        name = self.human_readable_name + "..." * (self.nargs != 1)
        return name if self.required else f"[{name}]"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Its name and its help, for a list of them."""
        default = self.get_default(ctx, call=False)
        note = "" if self.required or not default else f"  [default: {default}]"
        return self.human_readable_name, f"{self.said}{note}"


def _listed(parameter: click.Parameter, value: Any) -> Any:
    """Several values as a list; None where none is given and none is meant."""
    if not parameter.multiple and parameter.nargs == 1:
        return value
    return list(value) if value or parameter.required else None


def _parameter(name: str, annotation: Any, default: Any) -> click.Parameter:
    kind, *said = get_args(annotation)
    declared: Declared = said[-1]
    several, kind = _plain(kind)
    more: dict[str, Any] = {"type": _type(kind, declared), "metavar": declared.metavar}
    more["required"] = default is inspect.Parameter.empty
    if not more["required"]:
        more["default"] = _written(default)
    if not declared.by_name:
        return ByPlace([name], said=declared.help, nargs=-1 if several else 1, **more)
    spelled = name.replace("_", "-")
    if kind is bool:
        names = declared.names or (f"--{spelled}/--no-{spelled}",)
        more = {"default": more["default"], "is_flag": True}
    else:
        names = declared.names or (f"--{spelled}",)
        more |= {"multiple": several, "metavar": declared.metavar or _metavar(kind)}
    shown = more.get("default") != ""
    return ByName(
        [name, *names], panel=declared.panel, help=declared.help, show_default=shown, **more
    )


def _plain(annotation: Any) -> tuple[bool, Any]:
    """Whether there may be several values, and the type of one."""
    some = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) is list:
        return True, some[0]
    if len(some) == 1:
        return _plain(some[0])
    return False, annotation


def _type(kind: Any, declared: Declared) -> click.ParamType[Any]:
    bounds: Mapping[str, Any] = {"min": declared.min, "max": declared.max}
    if kind is Path:
        return click.Path(exists=declared.exists, dir_okay=declared.dir_okay, path_type=Path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return OneOf(list(kind))
    if any(bound is not None for bound in bounds.values()):
        return Whole(**bounds) if kind is int else Number(**bounds)
    return cast("click.ParamType[Any]", _TYPES[kind])


_TYPES = {bool: click.BOOL, float: click.FLOAT, int: click.INT, str: click.STRING}
_METAVARS = {float: "<number>", int: "<int>", str: "<text>", Path: "<path>"}


def _metavar(kind: Any) -> str:
    return _METAVARS.get(kind) or f"<{'|'.join(one.value for one in kind)}>"


def _written(default: Any) -> Any:
    """A default as it would be typed."""
    if isinstance(default, list | tuple):
        return [_written(one) for one in default]
    return default.value if isinstance(default, Enum) else default
