"""Add the options of all backends to the help and the signature of methods that accept them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def with_grader_options(like: str = "", *, writes: bool = False) -> Callable[[Method], Method]:
    """Return a decorator of a method whose `**options` are those of a backend.

    Args:
        like: A method of the same class whose keywords it takes, too.
        writes: Whether the backend writes texts, so that only such backends count.
    """

    def describe(method: Method) -> Method:
        return cast("Method", _Described(method, like, writes=writes))

    return describe


class _Described:
    """A method that is described when it is first looked up, as this imports the backends."""

    def __init__(self, method: Callable[..., Any], like: str, *, writes: bool) -> None:
        self._method = method
        self._like = like
        self._writes = writes
        self._is_described = False

    def __get__(self, instance: object, owner: type) -> Any:
        if not self._is_described:
            self._is_described = True
            self._describe(owner)
        return self._method.__get__(instance, owner)

    def _describe(self, owner: type) -> None:
        parameters = dict(inspect.signature(self._method).parameters)
        rest = parameters.popitem()
        if self._like:
            parameters = {**inspect.signature(getattr(owner, self._like)).parameters, **parameters}
            parameters.pop(rest[0])
        text = inspect.cleandoc(self._method.__doc__ or "")
        for names, options in _options_of_backends(writes=self._writes).items():
            text += f"\n\nOptions of {' and '.join(names)}:"
            text += "".join(f"\n    {option}: {line}" for option, line in options.items())
            for option in options:
                keyword = inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None)
                parameters.setdefault(option, keyword)
        named = [one for one in parameters.values() if one.kind != inspect.Parameter.VAR_KEYWORD]
        signature = inspect.Signature([*sorted(named, key=lambda one: one.kind), rest[1]])
        self._method.__doc__ = text + "\n"
        vars(self._method)["__signature__"] = signature


def _options_of_backends(*, writes: bool) -> dict[tuple[str, ...], dict[str, str]]:
    """Return a line of help for each option, by the backends of this package that have it."""
    from exampp.graders.options import shown_options
    from exampp.graders.registry import BUILT_IN

    owners: dict[tuple[str, str], list[str]] = {}
    for name, backend in BUILT_IN.items():
        if writes and backend.writes is None:
            continue
        for option, one in shown_options(backend.options, writes=writes).items():
            choices = f" One of {', '.join(one.choices)}." if one.choices else ""
            line = f"{one.type.__name__}. {one.help}{choices}"
            owners.setdefault((option, line), []).append(name)
    backends: dict[tuple[str, ...], dict[str, str]] = {}
    for (option, line), names in owners.items():
        backends.setdefault(tuple(names), {})[option] = line
    return backends
