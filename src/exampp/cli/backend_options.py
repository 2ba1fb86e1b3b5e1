"""Options of backends on the command line, as `llm.options` declares them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Literal

from exampp.graders.options import Option, declarations
from exampp.records.options import option

OPTIONS = "options"
"""The parameter of a command in whose place the declared options stand."""


def backend_options(
    *, writes: bool, says: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command every option that backends declare; it gets them as the mapping `options`.

    With `writes` only those that count where texts are written. `says` are helps that are other
    ones at this command.
    """
    declared = {
        name: one._replace(help=(says or {}).get(name, one.help))
        for name, one in declarations().items()
        if one.shown and (one.writes or not writes)
    }

    def extend(function: Callable[..., None]) -> Callable[..., None]:
        command = _extended(function, declared)
        vars(command)["more"] = lambda grader: _with_more(function, declared, grader, writes)
        return command

    return extend


def _with_more(
    function: Callable[..., None], declared: Mapping[str, Option], grader: str, writes: bool
) -> Callable[..., None] | None:
    """The command with the options of a grader that a package adds; None if it adds none.

    Raises InputError where the grader cannot be loaded.
    """
    from exampp.graders.registry import COMMON, GRADERS

    backend = None if grader in GRADERS.built_in else GRADERS.get(grader)
    if backend is None:
        return None
    more = {
        name: one
        for name, one in backend.options.items()
        if name not in COMMON and one.shown and (one.writes or not writes)
    }
    return _extended(function, {**declared, **more})


def _extended(function: Callable[..., None], declared: Mapping[str, Option]) -> Callable[..., None]:
    """The function with the options in the place of its parameter `options`."""

    @wraps(function)
    def command(**given: Any) -> None:
        options = {name: given.pop(name) for name in declared}
        function(**given, options=options)

    own = inspect.signature(function, eval_str=True).parameters
    shown: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        shown |= _parameters(declared) if name == OPTIONS else {name: parameter}
    vars(command)["__signature__"] = inspect.Signature(list(shown.values()))
    command.__annotations__ = {name: one.annotation for name, one in shown.items()}
    return command


def _parameters(declared: Mapping[str, Option]) -> dict[str, inspect.Parameter]:
    return {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(one)
        )
        for name, one in declared.items()
    }


def _annotation(one: Option) -> Any:
    literal: Any = Literal
    kind = literal[tuple(one.choices)] if one.choices else one.type
    kind = str if kind is Mapping else kind
    metavar = one.metavar or ("JSON" if one.type is Mapping else None)
    return Annotated[kind | None, option(help=one.help, metavar=metavar)]
