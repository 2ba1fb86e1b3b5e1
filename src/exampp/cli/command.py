"""Commands that do what they are told: an option that would change nothing is refused.

Where an option changes something in some uses of its command alone, that is declared at the
command:

    @counting(Counts(("--author",), "for the list decisions", lambda p: p["name"] == "decisions"))
    def review(...): ...

What was declared is enforced here, and here alone. `moved` declares options of
earlier versions that became commands, so that who gives one is told.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from exampp.cli import terminal
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


class Command(TyperCommand):
    """A command of which every option is given once, is not empty, and changes something.

    The docstring of its function is its help, and the last paragraph there, `Example: exampp ...`,
    the end of it.
    """

    def __init__(self, *arguments: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002
        told, _, example = (help or "").partition(_EXAMPLE)
        super().__init__(*arguments, help=told, **options)
        shows = [at for at, one in enumerate(self.params, 1) if "--format" in one.opts]
        for at in shows:
            self.params.insert(at, _wide_option())
        self.example = " ".join(example.split())

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
        except Exception as error:
            # the class of the error has no public name in some versions of typer
            option = getattr(error, "option_name", None)
            if to := vars(self.callback).get("moved", {}).get(option):
                raise InputError(f"{option} is a command of its own", mend=f"Say: {to}") from None
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
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            code = vars(self.callback).get("failing")
            if code is not None and isinstance(error, BrokenPipeError):
                # typer has a code of its own for it
                raise typer.Exit(code) from None
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
        alone = Commands()
        alone.command(self.name)(function)
        command = typer.main.get_command(alone)
        command.context_settings = self.context_settings
        return command

    def invoke(self, ctx: Any) -> Any:
        """Do what is asked.

        Raises InputError for a text that is none, and for an option that would change nothing.
        """
        with self._failing():
            return self._invoke(ctx)

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


class Group(TyperGroup):
    """Commands with whole summaries."""

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """(heading, [(command, what it does)]), in order."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            summary = " ".join((command.help or "").partition("\n\n")[0].split())
            found.setdefault(heading, []).append((name, summary))
        return found.items()

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
            if not isinstance(found, Commands):
                function, found = found, Commands()
                found.command(name)(function)
            self.loaded[name] = typer.main.get_command(found)
            self.loaded[name].name = name
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


class Commands(typer.Typer):
    """A group of such commands."""

    def __init__(self, **options: Any) -> None:
        plain = {"add_completion": False, "pretty_exceptions_enable": False}
        super().__init__(
            **{"cls": Group, "no_args_is_help": True, "rich_markup_mode": None, **plain, **options}
        )

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **options: Any
    ) -> Callable[[Function], Function]:
        """Add a command."""
        return super().command(name, cls=cls, **options)


_OF_TEXT = Counts(("--wide",), "for tables as text", lambda given: given["style"] == "text")


@functools.cache
def _wide_option() -> Any:
    """The option of every command that shows tables; `terminal` reads it."""

    def declared(
        wide: Annotated[
            bool,
            typer.Option("--wide", help="Show tables whole, however narrow the terminal is."),
        ] = False,
    ) -> None: ...

    alone = typer.Typer(add_completion=False)
    alone.command()(declared)
    return typer.main.get_command(alone).params[0]


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
