"""A grader with scripted replies, for tests of prompts, readers and runs without a model.

    grader = ScriptedGrader({"What is a reef?": "4", ("What is a reef?", "Bread."): "0"})
    grader = ScriptedGrader(lambda request: "5" if "coral" in request.passage else "0")
    grader = ScriptedGrader(["3", "I cannot tell", Reply("4", truncated=True)])

`grader.calls` then has every request, with the filled prompt.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from exampp.errors import InputError
from exampp.graders.base import Grader, Reply, Request
from exampp.records.ids import content_hash

Line = str | Reply
Key = str | tuple[str, str]
Lines = Mapping[str, Line] | Mapping[tuple[str, str], Line] | Mapping[Key, Line]
Faults = Mapping[str, str] | Mapping[tuple[str, str], str] | Mapping[Key, str]
Script = Line | Callable[[Request], Line] | Lines | Sequence[Line]
"""One reply for all; a function of the request; replies by (item, passage) or item; a queue."""


class ScriptedGrader(Grader):
    """Replies from a script, and records the requests.

    A mapping is searched for `(item, passage)` first and then for `item`; a queue gives its replies
    in the order of the requests. A request without a reply gets `default`; without a default the
    run stops. `faults` (with the keys of a mapping) are reasons why there is no reply; they
    override the script. An exception in a function is raised by `answer`.

    `look_ahead` requests are pulled at a time. `delay` is slept before each reply, in seconds.
    Without `record` no requests are recorded, for long runs. `name` distinguishes graders whose
    script is a function, because `settings` cannot inspect it.

    Raises:
        InputError: `answer` gets a request without a reply.
    """

    same_text_same_grade = True

    def __init__(
        self,
        script: Script,
        *,
        faults: Faults | None = None,
        default: Line | None = None,
        delay: float = 0.0,
        look_ahead: int = 1,
        name: str = "scripted",
        record: bool = True,
    ) -> None:
        self.calls: list[Request] = []
        self._record = record
        self._faults: Mapping[Any, str] = faults or {}
        self._default = default
        self._delay = delay
        self._look_ahead = look_ahead
        self._line = _reader(script)
        self._settings = {"name": name, "script": _fingerprint(script, self._faults, default)}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The name and a hash of the script; a function counts by its qualified name."""
        return dict(self._settings)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, pulling `look_ahead` requests at a time."""
        source = iter(requests)
        while window := list(islice(source, self._look_ahead)):
            for pair in [(request, self._reply(request)) for request in window]:
                if self._delay:
                    time.sleep(self._delay)
                yield pair

    def _reply(self, request: Request) -> Reply:
        if self._record:
            self.calls.append(request)
        if fault := _line_of(self._faults, request):
            return Reply("", fault=fault)
        if (line := self._line(request)) is None and (line := self._default) is None:
            raise InputError(
                f"the script has no reply for the item {request.item[:80]!r}",
                hint="Add one by (item, passage) or by item, extend the queue, or set a default",
            )
        return Reply(line) if isinstance(line, str) else line


def _reader(script: Script) -> Callable[[Request], Line | None]:
    if isinstance(script, str | Reply):
        return lambda _: script
    if callable(script):
        return script
    if isinstance(script, Mapping):
        return partial(_line_of, script)
    queue = iter(tuple(script))
    return lambda _: next(queue, None)


def _line_of(lines: Mapping[Any, Any], request: Request) -> Any:
    return lines.get((request.item, request.passage), lines.get(request.item))


def _fingerprint(script: Script, faults: Mapping[Any, str], default: Line | None) -> str:
    if callable(script):
        name = getattr(script, "__qualname__", type(script).__qualname__)
        source: object = f"{script.__module__}.{name}"
    else:
        source = _plain(script)
    return content_hash(repr([source, _plain(faults), _plain(default)]))


def _plain(value: object) -> object:
    if isinstance(value, Reply):
        return repr(dataclasses.astuple(value))
    if isinstance(value, Mapping):
        return sorted([repr(key), repr(_plain(line))] for key, line in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(line) for line in value]
    return value
