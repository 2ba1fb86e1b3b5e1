"""Options of graders on the command line, from the records of `graders.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Annotated, Any, Literal

from exampp.graders.options import ModelOptions, Option, shown_options
from exampp.records.options import keyword

OPTIONS = "options"
"""The parameter of a command that is replaced by the options of the grader."""


def backend_options(
    *, writes: bool, helps: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of the selected grader to a command, as the mapping `options`.

    Without `--grader`, these are the common ones of models. With `writes` only those that matter
    for generating text. `helps` replaces the help of options at this command.
    """

    def shown(record: Any) -> dict[str, Option]:
        return {
            name: one._replace(help=(helps or {}).get(name, one.help))
            for name, one in shown_options(record, writes=writes).items()
        }

    def extend(function: Callable[..., None]) -> Callable[..., None]:
        def for_grader(grader: str) -> Callable[..., None] | None:
            from exampp.graders.registry import GRADERS

            backend = GRADERS.get(grader)
            if backend is None or (writes and backend.writes is None):
                return None
            return _extended(function, shown(backend.options))

        command = _extended(function, shown(ModelOptions), common=_COMMON)
        vars(command)["for_grader"] = for_grader
        return command

    return extend


def graders_with(name: str) -> str:
    """Return which graders of exampp have an option, as in "hf, openai"."""
    from exampp.graders.registry import BUILT_IN

    name = name.lstrip("-").replace("-", "_")
    found = [
        grader for grader, backend in BUILT_IN.items() if name in shown_options(backend.options)
    ]
    return ", ".join(found)


_COMMON = ("kind", "prompt", "model")
"""Options of models that the help shows without the name of a grader."""


def _extended(
    function: Callable[..., None], declared: Mapping[str, Option], common: Collection[str] = ()
) -> Callable[..., None]:
    """Return the function with the options instead of its parameter `options`.

    Only the `common` ones are not rare, if any are named.
    """

    @wraps(function)
    def command(**given: Any) -> None:
        options = {name: given.pop(name) for name in declared}
        function(**given, options=options)

    shown: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name != OPTIONS:
            shown[name] = parameter
            continue
        for option_name, one in declared.items():
            kind = inspect.Parameter.KEYWORD_ONLY
            hint = _annotation(one, rare=bool(common) and option_name not in common)
            shown[option_name] = inspect.Parameter(option_name, kind, default=None, annotation=hint)
    vars(command)["__signature__"] = inspect.Signature(list(shown.values()))
    command.__annotations__ = {name: one.annotation for name, one in shown.items()}
    return command


def _annotation(one: Option, *, rare: bool) -> Any:
    literal: Any = Literal
    kind = literal[tuple(one.choices)] if one.choices else one.type
    kind = str if kind is Mapping else kind
    metavar = one.metavar or ("JSON" if one.type is Mapping else None)
    return Annotated[
        kind | None, keyword(help=one.help, metavar=metavar, panel=one.panel, rare=rare)
    ]
