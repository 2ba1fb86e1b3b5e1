"""Commands that do what they are told: an option that would change nothing is refused.

Where an option changes something in some uses of its command alone, that is declared at the
command:

    @counting(Counts(("--author",), "for the list decisions", lambda p: p["name"] == "decisions"))
    def review(...): ...

What was declared is enforced here, and here alone. `moved` declares options of
earlier versions that became commands, so that who gives one is told.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, TypeVar

import click
from click.exceptions import Exit

from exampp.cli import streams, terminal
from exampp.cli.declare import option, parameters
from exampp.cli.panels import by_panel
from exampp.errors import InputError
from exampp.outside import check_texts

Given = Mapping[str, Any]
"""The values of a command's parameters, by their names in Python."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Counts:
    """Options that change something only where `where` holds for the values of a command.

    `only` says where that is, to stand after "it counts only".
    """

    options: tuple[str, ...]
    only: str
    where: Callable[[Given], bool]


def counting(*rules: Counts) -> Callable[[Function], Function]:
    """Declare where options of a command count; given elsewhere, they are refused."""

    def declare(function: Function) -> Function:
        vars(function)["counting"] = rules
        return function

    return declare


def moved(to: str, *options: str) -> Callable[[Function], Function]:
    """Declare options that a command had once, and the command that does it now."""

    def declare(function: Function) -> Function:
        vars(function)["moved"] = {**vars(function).get("moved", {}), **dict.fromkeys(options, to)}
        return function

    return declare


def failing(code: int) -> Callable[[Function], Function]:
    """Declare what a command ends with after any error, where its own codes say something else."""

    def declare(function: Function) -> Function:
        vars(function)["failing"] = code
        return function

    return declare


class Command(click.Command):
    """A command of which every option is given once, is not empty, and changes something.

    The docstring of its function is its help, and the last paragraph there, `Example: exampp ...`,
    the end of it.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        told, _, example = (inspect.getdoc(function) or "").partition(_EXAMPLE)
        params = parameters(function)
        for at in [at for at, one in enumerate(params, 1) if "--format" in one.opts]:
            params[at:at] = parameters(_showing)
        super().__init__(name, callback=function, params=params, help=told)
        self.example = " ".join(example.split())

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: `format_options` writes them, too."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options by purpose."""
        for name, params in (
            ("Arguments", [one for one in self.params if one.param_type_name == "argument"]),
            *by_panel([one for one in self.get_params(ctx) if one.param_type_name == "option"]),
        ):
            records = [one.get_help_record(ctx) for one in params]
            if shown := [record for record in records if record is not None]:
                with formatter.section(name):
                    formatter.write_dl(shown)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, in one line: it is there to be copied."""
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")

    @property
    def rules(self) -> tuple[Counts, ...]:
        """What is declared about its options."""
        found: tuple[Counts, ...] = vars(self.callback).get("counting", ())
        shows_tables = any("--wide" in one.opts for one in self.params)
        return (*found, *[_OF_TEXT] * shows_tables)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments. Raises InputError for what is given twice or is empty."""
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if to := vars(self.callback).get("moved", {}).get(error.option_name):
                what = f"{error.option_name} is a command of its own"
                raise InputError(what, mend=f"Say: {to}") from None
            raise
        raw, order = ctx.meta[_AS_GIVEN]
        for param, times in Counter(order).items():
            _check_once(param, times)
            _check_not_empty(param, raw.get(param.name))
        return rest

    def make_parser(self, ctx: Any) -> Any:
        """What reads the arguments, and keeps what it read."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_and_keep(args: list[str]) -> Any:
            raw, rest, order = parse(args)
            ctx.meta[_AS_GIVEN] = dict(raw), order
            return raw, rest, order

        vars(parser)["parse_args"] = parse_and_keep
        return parser

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        """The context of a call; a grader of a package brings the options that it declares."""
        command = self._of_grader(args)
        make = super().make_context if command is None else command.make_context
        with self._failing():
            return make(info_name, args, *more, **extra)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Give errors the exit code that is declared for them."""
        try:
            yield
        except (Exit, click.Abort):
            raise
        except Exception as error:
            code = vars(self.callback).get("failing")
            if code is not None:
                vars(error)["exit_code"] = code
            raise

    def _of_grader(self, args: list[str]) -> Any:
        """The command with the options of the grader that is named; None where it has these."""
        more = vars(self.callback).get("more")
        named = [value for name, value in pairwise(args) if name == "--grader"]
        named += [one.partition("=")[2] for one in args if one.startswith("--grader=")]
        if more is None or not named or (function := more(named[-1])) is None:
            return None
        for declared in ("counting", "moved"):
            if declared in vars(self.callback):
                vars(function)[declared] = vars(self.callback)[declared]
        return type(self)(self.name or "", function)

    def invoke(self, ctx: Any) -> Any:
        """Do what is asked.

        Raises InputError for a text that is none, and for an option that would change nothing.
        """
        with self._failing():
            result = self._invoke(ctx)
            streams.flush()
            return result

    def _invoke(self, ctx: Any) -> Any:
        check_texts(ctx.params)
        named = {name: one for one in self.params for name in one.opts}
        for rule in self.rules:
            idle = [option for option in rule.options if _is_given(ctx, named[option].name)]
            if idle and not rule.where(ctx.params):
                raise InputError(
                    f"{idle[0]} changes nothing here: it counts only {rule.only}",
                    mend="Leave it out",
                )
        terminal.whole.set(ctx.params.pop("wide", False))
        return super().invoke(ctx)


class Group(click.Group):
    """Commands with whole summaries."""

    def verb(self, name: str) -> Callable[[Function], Function]:
        """Add a function as a command."""

        def add(function: Function) -> Function:
            self.add_command(Command(name, function))
            return function

        return add

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """(heading, [(command, what it does)]), in order."""
        summaries = [
            (name, " ".join((command.help or "").partition("\n\n")[0].split()))
            for name, command in self.commands.items()
        ]
        return [("Commands", summaries)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write them by purpose, no summary cut."""
        for heading, rows in self.sections():
            with formatter.section(heading):
                formatter.write_dl(list(rows))


class Unloaded(Mapping[str, Any]):
    """Commands by name, each imported when it is taken: from `module:name` in `exampp.cli`."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self.homes = homes
        self.loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            module, _, attribute = self.homes[name].partition(":")
            found = getattr(import_module(f"exampp.cli.{module}"), attribute)
            named = isinstance(found, click.Command)
            self.loaded[name] = found if named else Command(name, found)
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


_OF_TEXT = Counts(("--wide",), "for tables as text", lambda given: given["style"] == "text")


def _showing(
    wide: Annotated[
        bool, option("--wide", help="Show tables whole, however narrow the terminal is.")
    ] = False,
) -> None:
    """The option of every command that shows tables; `terminal` reads it."""


_AS_GIVEN = "exampp.given"
"""Where a context has the values as they were given, by name, and their parameters in order."""
_EXAMPLE = "\n\nExample: "
"""Before the last paragraph of a docstring that has an example."""


def _is_given(ctx: Any, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_once(param: Any, times: int) -> None:
    if times > 1 and not param.multiple:
        raise InputError(
            f"{_name(param)} is given {times} times, and takes one value",
            mend="Give the one that is meant",
        )


def _check_not_empty(param: Any, value: Any) -> None:
    several = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, str) and not one.strip() for one in several):
        raise InputError(f"{_name(param)} is empty", mend="Give a value, or leave it out")


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return str(max(param.opts, key=len))
