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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from itertools import pairwise
from math import isnan
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import click
from click.exceptions import Exit

from exampp.cli import output
from exampp.errors import InputError
from exampp.sanitize import check_texts

# Commands from functions: annotations say what is read, defaults what is meant without it.
#
#     def pool(
#         collection: Annotated[Path, argument(metavar="COLLECTION", help="The collection.")],
#         depth: Annotated[int, option(min=1, help="How many passages of each ranking.")] = 20,
#     ) -> None: ...
#
# An option is named as its parameter where it has no other name. A `bool` is a flag, and its
# opposite another, unless it is named; an enumeration is one of its values; a `list` is given
# value by value.


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
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
) -> ParameterDeclaration:
    """A parameter that is given by name.

    `min` and `max` bound a number; a path may have to exist, or to be no folder. `panel` is where
    the help lists it if not where `panels` has it.
    """
    return ParameterDeclaration(True, names, help, metavar, min, max, exists, dir_okay, panel)


def argument(
    *,
    metavar: str | None = None,
    help: str,  # noqa: A002
    min: float | None = None,  # noqa: A002
    dir_okay: bool = True,
) -> ParameterDeclaration:
    """A parameter that is given by place."""
    return ParameterDeclaration(False, (), help, metavar, min, None, False, dir_okay, None)


def parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """What a command reads for its function."""
    hints = get_type_hints(function, include_extras=True)
    return [
        _parameter(one.name, hints[one.name], one.default)
        for one in inspect.signature(function).parameters.values()
    ]


class EnumChoice(click.Choice[Any]):
    """One value of an enumeration."""

    def normalize_choice(self, choice: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        """What stands for a choice: its value."""
        return str(choice.value if isinstance(choice, Enum) else choice)


class IntegerRange(click.IntRange):
    """A whole number within bounds."""

    name = "integer"


class NumberRange(click.FloatRange):
    """A number within bounds."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number. Fails for what is none, and is within no bounds either."""
        found: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if isnan(found) else found


class CommandOption(click.Option):
    """An option of a command, with the panel of its help."""

    def __init__(self, *given: Any, panel: str | None, **more: Any) -> None:
        super().__init__(*given, **more)
        self.panel = panel

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value as the function gets it."""
        return _listed(self, super().process_value(ctx, value))


class CommandArgument(click.Argument):
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
    declared: ParameterDeclaration = said[-1]
    several, kind = _plain(kind)
    more: dict[str, Any] = {"type": _type(kind, declared), "metavar": declared.metavar}
    more["required"] = default is inspect.Parameter.empty
    if not more["required"]:
        more["default"] = _written(default)
    if not declared.by_name:
        return CommandArgument([name], said=declared.help, nargs=-1 if several else 1, **more)
    spelled = name.replace("_", "-")
    if kind is bool:
        names = declared.names or (f"--{spelled}/--no-{spelled}",)
        more = {"default": more["default"], "is_flag": True}
    else:
        names = declared.names or (f"--{spelled}",)
        more |= {"multiple": several, "metavar": declared.metavar or _metavar(kind)}
    shown = more.get("default") != ""
    return CommandOption(
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


def _type(kind: Any, declared: ParameterDeclaration) -> click.ParamType[Any]:
    bounds: Mapping[str, Any] = {"min": declared.min, "max": declared.max}
    if kind is Path:
        return click.Path(exists=declared.exists, dir_okay=declared.dir_okay, path_type=Path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return EnumChoice(list(kind))
    if any(bound is not None for bound in bounds.values()):
        return IntegerRange(**bounds) if kind is int else NumberRange(**bounds)
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


FEW = 10
"""So many options need no panels."""
OTHER = "Options"
GOES_IN = "What goes in"
ASKED_FOR = "What is asked for"
PANELS: Mapping[str, str] = {
    GOES_IN: "as columns passages bank-name runs responses system corpus unknown-passages "
    "passage-tokens cited update subtopic answer",
    ASKED_FOR: "output measure min-rating min-relevant per-query official scores qrels "
    "run leave-out subtopics missing label at-least gains compat round query queries item by depth "
    "limit against layout statistic order pairs k cutoff target drop items query-cost item-cost "
    "max-queries pool shard retry-failed per more keys grounded keep-near credit irt weights "
    "build battery uses targets attack answers texts rating "
    "labels design number plan over predictor folds save require baseline baseline-system margin "
    "allow-missing junit blind shared guidelines pair",
    "Whose grades": "grader prompt kind bank decisions answers-of min-answers author reason "
    "assessor",
    "Model": "model revision device dtype quantize decode beams least-mass batch-tokens "
    "max-new-tokens temperature top-p reasoning-effort chat-template-kwargs unnumbered task epochs "
    "repetition batch-size learning-rate max-steps save-steps resume",
    "Server": "host port base-url endpoint extra-body redirect-to concurrency retries timeout",
    "Cost and stopping": "dry-run batch batch-file replies cancel-batches poll max-requests "
    "max-cost price-read price-cached price-written "
    "price-hour max-failures take-over grace",
    "Many machines": "on workers worker-cpus worker-gpus",
    "Chance": "alpha looks correction permutations samples splits seed",
    "Bad input": "on-error scale",
    "How it is shown": "format wide digits title theme width no-title json",
}
"""The options of each panel by their long names; one may say another in its declaration."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def panel_of(option: Any) -> str:
    """The panel of an option."""
    name = max(option.opts, key=len).lstrip("-")
    return getattr(option, "panel", None) or _PANEL_OF.get(name, OTHER)


def by_panel(options: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
    """(panel, its options), in the order of `PANELS`; all in one where they are few."""
    if len(options) <= FEW:
        return [(OTHER, list(options))]
    found: dict[str, list[Any]] = {panel: [] for panel in (*PANELS, OTHER)}
    for option in options:
        found[panel_of(option)].append(option)
    return [(panel, some) for panel, some in found.items() if some]


OptionValues = Mapping[str, Any]
"""The values of a command's parameters, by their names in Python."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class OptionRule:
    """Options that change something only where `where` holds for the values of a command.

    `only` says where that is, to stand after "it counts only".
    """

    options: tuple[str, ...]
    only: str
    where: Callable[[OptionValues], bool]


def option_rules(*rules: OptionRule) -> Callable[[Function], Function]:
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


def error_exit_code(code: int) -> Callable[[Function], Function]:
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
    def rules(self) -> tuple[OptionRule, ...]:
        """What is declared about its options."""
        found: tuple[OptionRule, ...] = vars(self.callback).get("counting", ())
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
            self._check_grader_option(args, error.option_name)
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
        """Return the context of a call, with the options of the grader that it names."""
        command = self.with_grader(args)
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

    def with_grader(self, args: list[str]) -> Any:
        """Return the command with the options of the grader that is named, or None."""
        for_grader = vars(self.callback).get("for_grader")
        named = _named_grader(args)
        if for_grader is None or not named or (function := for_grader(named)) is None:
            return None
        for declared in ("counting", "moved"):
            if declared in vars(self.callback):
                vars(function)[declared] = vars(self.callback)[declared]
        return type(self)(self.name or "", function)

    def _check_grader_option(self, args: list[str], option: str) -> None:
        """Raise InputError for an option that the grader does not have, and others have."""
        from exampp.cli.backend_options import graders_with

        takes_graders = any(one.name == "grader" for one in self.params)
        others = graders_with(option) if takes_graders else ""
        named = _named_grader(args)
        if others and named:
            raise InputError(f"the grader {named} has no option {option}", mend=f"{others} has it")
        if others:
            raise InputError(f"{option} is an option of {others}", mend="Name one by --grader")

    def invoke(self, ctx: Any) -> Any:
        """Do what is asked.

        Raises InputError for a text that is none, and for an option that would change nothing.
        """
        with self._failing():
            result = self._invoke(ctx)
            output.flush()
            return result

    def _invoke(self, ctx: Any) -> Any:
        check_texts(ctx.params)
        named = {name: one for one in self.params for name in one.opts}
        for rule in self.rules:
            known = [option for option in rule.options if option in named]
            idle = [option for option in known if _is_given(ctx, named[option].name)]
            if idle and not rule.where(ctx.params):
                raise InputError(
                    f"{idle[0]} changes nothing here: it counts only {rule.only}",
                    mend="Leave it out",
                )
        output.whole.set(ctx.params.pop("wide", False))
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


class LazyCommands(Mapping[str, Any]):
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


_OF_TEXT = OptionRule(("--wide",), "for tables as text", lambda given: given["style"] == "text")


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


def _named_grader(args: list[str]) -> str:
    named = [value for name, value in pairwise(args) if name == "--grader"]
    named += [one.partition("=")[2] for one in args if one.startswith("--grader=")]
    return named[-1] if named else ""


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
