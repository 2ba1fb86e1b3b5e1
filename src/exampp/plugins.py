"""Registries of plug-ins from installed packages.

A `Registry` contains built-in entries, entries added in Python, and those declared by packages as
entry points of its group. Entry points are read only for otherwise unknown names, or if all are
listed; a package is imported when one of its names is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from exampp.errors import ExamError, InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

GROUPS = (
    *("exampp.graders", "exampp.prompts", "exampp.formats", "exampp.presets"),
    "exampp.measures",
)
"""The groups of entry points."""


class LazyMapping(Mapping[str, T]):
    """A mapping that is loaded at its first use."""

    def __init__(self, load: Callable[[], Mapping[str, T]]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> T:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())


class Plugin(NamedTuple):
    """A plug-in: its `kind`, name and package, and its fault.

    `fault` is empty if the plug-in is usable.
    """

    kind: str
    name: str
    package: str
    fault: str


@dataclass(slots=True)
class Registry(Generic[T]):
    """A registry by name: `built_in` entries, those added in Python, and entry points of `group`.

    `noun` names the kind, such as "grader". `take` converts a name and a package's declaration to
    an entry; it raises InputError if that fails.
    """

    group: str
    noun: str
    built_in: Mapping[str, T]
    take: Callable[[str, object], T]
    _added: dict[str, tuple[str, T]] = field(default_factory=dict)
    _loaded: dict[str, T] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """Return whether the name is known, without loading anything."""
        return name in self.built_in or name in self._added or bool(self._points(name))

    def get(self, name: str) -> T | None:
        """Return the entry of that name; None if it is unknown.

        Raises:
            InputError: Two packages declare the name, or it cannot be loaded.
        """
        if name in self.built_in:
            return self.built_in[name]
        if name in self._added:
            return self._added[name][1]
        if name not in self._loaded:
            points = self._points(name)
            if not points:
                return None
            if len(points) > 1:
                raise self._ambiguous(name, points)
            self._loaded[name] = self._load(points[0])
        return self._loaded[name]

    def names(self) -> tuple[str, ...]:
        """Return all names, built-in ones first, including those that fail to load."""
        points = sorted(point.name for point in self._points())
        return tuple(dict.fromkeys((*self.built_in, *self._added, *points)))

    def add(self, name: str, thing: T, module: str) -> None:
        """Add an entry declared by `module`; the same module may replace it.

        Raises:
            InputError: The name is built in or belongs to a package.
        """
        if name in self.built_in:
            raise self._taken(name, "the name is built in")
        others = [point for point in self._points(name) if point.module != module]
        if others:
            raise self._taken(name, f"the package {package_of(others[0])} uses this name")
        self._added[name] = module, thing

    def plugins(self) -> Iterator[Plugin]:
        """Load and yield all plug-ins of packages, with their faults."""
        for point in sorted(self._points(), key=lambda one: one.name):
            yield Plugin(self.noun, point.name, package_of(point), self._fault(point))

    def _fault(self, point: EntryPoint) -> str:
        if point.name in self.built_in:
            return str(self._taken(point.name, "the name is built in"))
        try:
            self.get(point.name)
        except InputError as error:
            return str(error)
        return ""

    def _points(self, *name: str) -> list[EntryPoint]:
        from importlib.metadata import entry_points

        points = entry_points(group=self.group)
        return [point for point in points if not name or point.name in name]

    def _load(self, point: EntryPoint) -> T:
        what = f"the {self.noun} {point.name!r} of the package {package_of(point)}"
        try:
            declared = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # a plug-in may fail in any way, and must not break anything else
            cause = str(error) if isinstance(error, ExamError) else describe_error(error)
            raise InputError(
                f"{what} cannot be loaded: {cause}",
                hint="Reinstall the package, or install another version",
            ) from error
        if point.name in self._added:
            return self._added[point.name][1]
        try:
            return self.take(point.name, declared)
        except ExamError as error:
            raise InputError(f"{what} cannot be used: {error}") from error

    def _ambiguous(self, name: str, points: list[EntryPoint]) -> InputError:
        packages = " and ".join(map(package_of, points))
        return InputError(
            f"the {self.noun} {name!r} is declared by several packages: {packages}",
            hint="Uninstall all but one of them",
        )

    def _taken(self, name: str, why: str) -> InputError:
        return InputError(
            f"the {self.noun} {name!r} cannot be added: {why}", hint="Give it another name"
        )


def declared_text(declared: object, noun: str) -> str:
    """Return the text that a package declares: a text, or a file with `read_text`."""
    if isinstance(declared, str):
        return declared
    if isinstance(declared, Path | Traversable):
        return declared.read_text(encoding="utf-8")
    raise InputError(
        f"{declared!r} is not a {noun}", hint="Name a TOML text or file in the entry point"
    )


def package_of(point: EntryPoint) -> str:
    """Return the package that declares an entry point."""
    return point.dist.name if point.dist is not None else point.module.partition(".")[0]


def failed_plugin(error: BaseException) -> str:
    """Return the package and the function of a plug-in that raised an error; empty if none did."""
    from importlib.metadata import entry_points
    from traceback import walk_tb

    packages = {
        point.module.partition(".")[0]: package_of(point)
        for group in GROUPS
        for point in entry_points(group=group)
    }
    for frame, line in reversed([*walk_tb(error.__traceback__)]):
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top in packages:
            code = frame.f_code
            return f"{code.co_qualname} of the package {packages[top]} ({code.co_filename}:{line})"
    return ""


def describe_error(error: BaseException) -> str:
    """Describe an error in one line: its class and message."""
    return f"{type(error).__name__}: {error}".rstrip(": ")
