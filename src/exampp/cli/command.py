"""Commands from functions, and rules against options without effect.

    @option_rules(OptionRule(("--author",), "for decisions", lambda p: p["name"] == "decisions"))
    def review(
        selection: Selection,
        depth: Annotated[int, option(min=1, help="Number of passages per ranking.")] = 20,
        *, display: Display,
    ) -> None: ...

Annotations declare what is read, defaults what holds without it; a dataclass among the parameters
stands for its fields. An option without effect is refused, by the rules that are
declared for the command and for the dataclasses.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from itertools import pairwise
from math import isnan
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import click
from click.exceptions import Exit

from exampp.cli import output
from exampp.errors import InputError
from exampp.sanitize import check_texts

if TYPE_CHECKING:
    from exampp.records.options import OptionDeclaration

OptionValues = Mapping[str, Any]
"""The values of a command's parameters, by their names in Python."""
Function = TypeVar("Function", bound=Callable[..., Any])
_READ = "exampp.read"
"""Key of a context for the typed values by name, and their parameters in order."""
_WHOLE = "exampp.whole"
"""Key of a context for a help of all options and commands."""


# ---- parameters --------------------------------------------------------------------------------


class IntegerRange(click.IntRange):
    """A whole number within bounds."""

    name = "integer"


class NumberRange(click.FloatRange):
    """A number within bounds."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number. NaN is within no bounds."""
        found: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if isnan(found) else found


class CommandOption(click.Option):
    """An option of a command, with the panel of its help; `--help` leaves out a rare one."""

    def __init__(self, *given: Any, panel: str | None, rare: bool, **more: Any) -> None:
        super().__init__(*given, **more)
        self.panel = panel
        self.rare = rare

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as the function gets it."""
        return _as_list(self, super().process_value(ctx, value))

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands in brackets; bounds show in the error of a value beyond them."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class CommandArgument(click.Argument):
    """An argument of a command, with its help."""

    def __init__(self, *given: Any, description: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self.description = description

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as the function gets it."""
        return _as_list(self, super().process_value(ctx, value))

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002
        """Return its name in the usage."""
        name = self.human_readable_name + "..." * (self.nargs != 1)
        return name if self.required else f"[{name}]"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and its help."""
        default = self.get_default(ctx, call=False)
        note = "" if self.required or not default else f"  [default: {default}]"
        return self.human_readable_name, f"{self.description}{note}"


def parameters(function: Callable[..., Any], absent: Sequence[str] = ()) -> list[click.Parameter]:
    """Return the parameters of a command; the fields of a dataclass are parameters."""
    hints: Mapping[str, Any] = get_type_hints(function, include_extras=True)
    found: list[click.Parameter] = []
    for one in inspect.signature(function).parameters.values():
        kind = hints[one.name]
        if is_dataclass(kind):
            found += parameters(cast("type[Any]", kind), absent)
        elif one.name not in absent:
            found.append(_parameter(one.name, kind, one.default))
    return found


def _as_list(parameter: click.Parameter, value: Any) -> Any:
    """Return several values as a list; None where none is given and none is meant."""
    if not parameter.multiple and parameter.nargs == 1:
        return value
    return list(value) if value or parameter.required else None


def _parameter(name: str, annotation: Any, default: Any) -> click.Parameter:
    kind, *extras = get_args(annotation)
    declared: OptionDeclaration = extras[-1]
    several, kind = _item_type(kind)
    more: dict[str, Any] = {"type": _click_type(kind, declared), "metavar": declared.metavar}
    more["required"] = default is inspect.Parameter.empty
    if not more["required"]:
        more["default"] = default
    if not declared.by_name:
        nargs = -1 if several else 1
        return CommandArgument([name], description=declared.help, nargs=nargs, **more)
    spelled = name.replace("_", "-")
    if kind is bool:
        names = declared.names or (f"--{spelled}/--no-{spelled}",)
        more = {"default": more["default"], "is_flag": True}
    else:
        names = declared.names or (f"--{spelled}",)
        more |= {"multiple": several, "metavar": declared.metavar or _metavar(kind)}
    shown = more.get("default") != ""
    return CommandOption(
        [name, *names],
        panel=declared.panel,
        rare=declared.rare,
        help=declared.help,
        show_default=shown,
        **more,
    )


def _item_type(annotation: Any) -> tuple[bool, Any]:
    """Return whether there may be several values, and the type of one."""
    if get_origin(annotation) is Literal:
        return False, annotation
    some = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) is list:
        return True, some[0]
    return _item_type(some[0]) if len(some) == 1 else (False, annotation)


def _click_type(kind: Any, declared: OptionDeclaration) -> click.ParamType[Any]:
    bounds: Mapping[str, Any] = {"min": declared.min, "max": declared.max}
    if kind is Path:
        return click.Path(exists=declared.exists, dir_okay=declared.dir_okay, path_type=Path)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if any(bound is not None for bound in bounds.values()):
        return IntegerRange(**bounds) if kind is int else NumberRange(**bounds)
    return cast("click.ParamType[Any]", _TYPES[kind])


_TYPES = {bool: click.BOOL, float: click.FLOAT, int: click.INT, str: click.STRING}
_METAVARS = {float: "<number>", int: "<int>", str: "<text>", Path: "<path>"}


def _metavar(kind: Any) -> str:
    return _METAVARS.get(kind) or f"<{'|'.join(get_args(kind))}>"


def _with_records(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of flat values, which makes the dataclasses among its parameters."""
    hints: Mapping[str, Any] = get_type_hints(function)
    kinds: Mapping[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    if not kinds:
        return function

    @wraps(function)
    def command(**values: Any) -> Any:
        records = {
            name: kind(**{f.name: values.pop(f.name) for f in fields(kind) if f.name in values})
            for name, kind in kinds.items()
        }
        return function(**values, **records)

    return command


# ---- the help ----------------------------------------------------------------------------------

FEW = 12
"""So many options need no panels."""
OTHER = "Options"
GOES_IN = "Input"
ASKED_FOR = "Computation"
PANELS: Mapping[str, str] = {
    GOES_IN: "as columns passages bank-name runs responses system corpus unknown-passages "
    "passage-tokens cited update subtopic answer commitment on-error scale",
    ASKED_FOR: "output for until measure min-rating min-relevant per-query official scores qrels "
    "run leave-out subtopics missing label at-least gains compat round query queries item by depth "
    "limit against layout statistic order pairs k cutoff target drop items "
    "max-queries pool shard may-miss retry-failed after unsure audit audit-seed "
    "per more keys count grounded apply decide "
    "build battery targets attack texts rating duplicates "
    "labels design number secret public sealed again sample over folds save require "
    "baseline baseline-system since margin negatives organization "
    "allow-missing strict junit blind shared guidelines pair invite role revoke "
    "reference best table level shared effect part in rules rule first last to "
    "edit retire-missing force yes add rate requests cells",
    "Grades": "grader prompt kind bank decisions answers-of min-answers author reason assessor",
    "Model": "unnumbered matching revision device epochs batch-size learning-rate max-steps",
    "Server": "stdio host port serve allowed-host prefix proxy access-log address",
    "Cost and stopping": "dry-run explain batch batch-file replies cancel-batches poll price-hour "
    "max-failures grace",
    "Cluster": "on workers",
    "Statistics": "alpha correction permutations samples seed splits steps",
    "Output": "github interactive format notes digits title theme json files toml all",
}
"""The options of each panel by their long names; those of graders and a few others name theirs in
their declarations."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def panel_of(option: Any) -> str:
    """Return the panel of an option."""
    name = max(option.opts, key=len).lstrip("-")
    return getattr(option, "panel", None) or _PANEL_OF.get(name, OTHER)


def by_panel(options: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
    """Return (panel, its options), in the order of `PANELS`; all in one where they are few."""
    if len(options) <= FEW:
        return [(OTHER, list(options))]
    found: dict[str, list[Any]] = {panel: [] for panel in (*PANELS, OTHER)}
    for option in options:
        found.setdefault(panel_of(option), []).append(option)
    return [(panel, some) for panel, some in found.items() if some]


def _print_whole_help(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _help_all(what: str) -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_whole_help,
        help=f"Show all {what}.",
    )


_ALL_OPTIONS, _ALL_COMMANDS = _help_all("options"), _help_all("commands")


def _shown_options(command: Any, ctx: click.Context) -> list[Any]:
    """Return the options that a help shows: all of them, or those that are not rare."""
    options = [one for one in command.get_params(ctx) if one.param_type_name == "option"]
    if ctx.meta.get(_WHOLE):
        return options
    return [one for one in options if not getattr(one, "rare", False)]


# ---- commands ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OptionRule:
    """Options that change something only where `where` holds for the values of a command.

    `only` says where that is, to stand after "it counts only".
    """

    options: tuple[str, ...]
    only: str
    where: Callable[[OptionValues], bool]


_IMPORT = "Import the file first: exampp import my.exam FILE"
FORMER_OPTIONS = {
    "--wide": "Pipe the output: | less -S",
    "--prompt": "Name the prompt with --grader",
    "--kind": "Name the kind with --grader, such as --grader nugget",
    "--on-error": f"{_IMPORT} --on-error skip",
    "--scale": f"{_IMPORT} --scale LOW..HIGH",
    "--plan": "Name the sample with --sample",
}
"""Options that commands no longer have, and what to do instead."""
RULES_OF: dict[type[Any], tuple[OptionRule, ...]] = {}
"""The rules of the dataclasses that commands take, wherever a command has these options."""


def _declaration(key: str, value: object) -> Callable[[Function], Function]:
    def declare(function: Function) -> Function:
        vars(function)[key] = value
        return function

    return declare


def option_rules(*rules: OptionRule) -> Callable[[Function], Function]:
    """Declare where options of a command count; given elsewhere, they are refused."""
    return _declaration("option_rules", rules)


def without_options(*names: str) -> Callable[[Function], Function]:
    """Declare fields of its dataclasses that a command does not have: they keep their defaults."""
    return _declaration("absent", names)


def former_arguments(names: Mapping[str, str]) -> Callable[[Function], Function]:
    """Declare former values of the first two arguments, and what to type instead."""
    return _declaration("former", names)


def error_exit_code(code: int) -> Callable[[Function], Function]:
    """Declare the exit code of a command after any error, where others are verdicts."""
    return _declaration("error_exit_code", code)


class Command(click.Command):
    """A command of which every option is given once, is not empty, and changes something.

    The docstring of its function is its help, and the last paragraph there, `Example: exampp ...`,
    the end of it.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        text, _, example = (inspect.getdoc(function) or "").partition("\n\nExample: ")
        kinds = get_type_hints(function).values()
        self.rules = tuple(
            dict.fromkeys(
                [
                    *vars(function).get("option_rules", ()),
                    *(rule for kind in kinds for rule in RULES_OF.get(kind, ())),
                ]
            )
        )
        params = parameters(function, vars(function).get("absent", ()))
        super().__init__(name, callback=_with_records(function), params=params, help=text)
        self.example = " ".join(example.split())

    def get_params(self, ctx: Any) -> list[click.Parameter]:
        """Return the parameters, with those of the help."""
        return [*super().get_params(ctx), _ALL_OPTIONS]

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: `format_options` writes them, too."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options by purpose."""
        for name, params in (
            ("Arguments", [one for one in self.params if one.param_type_name == "argument"]),
            *by_panel(_shown_options(self, ctx)),
        ):
            records = [one.get_help_record(ctx) for one in params]
            if shown := [record for record in records if record is not None]:
                with formatter.section(name):
                    formatter.write_dl(shown)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, in one line: it is there to be copied."""
        super().format_epilog(ctx, formatter)
        if "for_grader" in vars(self.callback):
            from exampp.cli.backend_options import graders_with

            with formatter.section("Options of a grader"):
                for name in graders_with("--model").split(", "):
                    formatter.write_text(f"{ctx.command_path} --grader {name} --help")
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments. Raises InputError if an option is repeated or empty."""
        _check_former(args[:2], vars(self.callback).get("former", {}), ctx)
        given = list(args)  # click takes away what it reads
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            self._check_option_name(given, error.option_name, ctx)
            raise
        except click.MissingParameter as error:
            found: Any = error.param
            text = getattr(found, "description", None) or getattr(found, "help", "")
            what = f"{ctx.command_path} needs {_name(found)}"
            raise InputError(what, hint=f"{text} See {ctx.command_path} --help") from None
        raw, order = ctx.meta[_READ]
        for param, times in Counter(order).items():
            if times > 1 and not param.multiple:
                what = f"{_name(param)} is given {times} times, and takes one value"
                raise InputError(what, hint="Give the one that is meant")
            value = raw.get(param.name)
            several = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(one, str) and not one.strip() for one in several):
                raise InputError(f"{_name(param)} is empty", hint="Give a value, or leave it out")
        return rest

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which stores the raw arguments that it reads."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_and_keep(args: list[str]) -> Any:
            raw, rest, order = parse(args)
            ctx.meta[_READ] = dict(raw), order
            return raw, rest, order

        vars(parser)["parse_args"] = parse_and_keep
        return parser

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        """Return the context of a call, with the options of the grader that it names."""
        command = self.with_grader(args)
        make = super().make_context if command is None else command.make_context
        with self._error_exit_code():
            return make(info_name, args, *more, **extra)

    @contextmanager
    def _error_exit_code(self) -> Iterator[None]:
        try:
            yield
        except (Exit, click.Abort):
            raise
        except Exception as error:
            # every error ends the command with its code
            code = vars(self.callback).get("error_exit_code")
            if code is not None:
                vars(error)["exit_code"] = code
            raise

    def with_grader(self, args: list[str]) -> Any:
        """Return the command with the options of the grader that is named, or None."""
        for_grader = vars(self.callback).get("for_grader")
        named = _named_grader(args)
        if for_grader is None or not named or (function := for_grader(named)) is None:
            return None
        vars(function)["option_rules"] = vars(self.callback).get("option_rules", ())
        vars(function)["of_grader"] = named
        return type(self)(self.name or "", function)

    def _check_option_name(self, args: list[str], option: str, ctx: Any) -> None:
        """Raise InputError for an option that another grader has, or that has another form now."""
        from exampp.cli.backend_options import graders_with

        named = _named_grader(args)
        takes_graders = not {"for_grader", "of_grader"}.isdisjoint(vars(self.callback))
        others = graders_with(option) if takes_graders else ""
        if others and named in others.split(", "):
            hint = f"It is an option of exampp grade --grader {named}"
            if option == "--kind":
                hint = "The prompt decides the kind: exampp prompts lists what each prompt makes"
            raise InputError(f"{ctx.command_path} has no option {option}", hint=hint)
        if others and named:
            have = "have" if "," in others else "has"
            what = f"the grader {named} has no option {option}"
            raise InputError(what, hint=f"{others} {have} it")
        if others:
            raise InputError(f"{option} is an option of {others}", hint="Name one by --grader")
        if option[1:2].isdigit():
            what = f"{option} is read as an option"
            raise InputError(what, hint=f"Write -- before a negative number: -- {option}")
        if option in FORMER_OPTIONS:
            what = f"{ctx.command_path} no longer has {option}"
            raise InputError(what, hint=FORMER_OPTIONS[option])

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises InputError for a text that is none, and for an option without effect.
        """
        with self._error_exit_code():
            check_texts(ctx.params)
            named = {name: one for one in self.params for name in one.opts}
            for rule in self.rules:
                idle = [one for one in rule.options if one in named and _is_given(ctx, named[one])]
                if idle and not rule.where(ctx.params):
                    what = f"{idle[0]} changes nothing here: it counts only {rule.only}"
                    raise InputError(what, hint="Leave it out")
            result = super().invoke(ctx)
            output.flush()
            return result


class Group(click.Group):
    """Commands with whole summaries; `--help` leaves out those under the headings `more`."""

    def __init__(
        self,
        name: str,
        homes: Mapping[str, str] | None = None,
        *,
        more: Collection[str] = ("More commands",),
        renamed: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.homes: dict[str, str | Callable[..., Any]] = dict(homes or {})
        """Functions of commands, or where they are: `module:name` in `exampp.cli`."""
        super().__init__(name, commands=cast("Any", LazyCommands(self.homes)), **options)
        self.more = more
        self.renamed = renamed or {}
        """Former names of commands, and what to type instead."""
        self.rare: set[str] = set()

    def get_params(self, ctx: Any) -> list[click.Parameter]:
        """Return the parameters, with those of the help."""
        return [*super().get_params(ctx), _ALL_COMMANDS]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named. Raises InputError for a former name."""
        _check_former(args[:1], self.renamed, ctx)
        return super().resolve_command(ctx, args)

    def verb(self, name: str, *, rare: bool = False) -> Callable[[Function], Function]:
        """Add a function as a command."""

        def add(function: Function) -> Function:
            self.homes[name] = function
            if rare:
                self.rare.add(name)
            return function

        return add

    def sections(self) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
        """Return (heading, [(command, what it does)]), in order."""
        found: dict[str, list[tuple[str, str]]] = {"Commands": [], "More commands": []}
        for name, function in self.homes.items():
            summary = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
            found["More commands" if name in self.rare else "Commands"].append((name, summary))
        return [(heading, rows) for heading, rows in found.items() if rows]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write them by purpose, no summary cut."""
        for heading, rows in self.sections():
            if heading not in self.more or ctx.meta.get(_WHOLE):
                with formatter.section(heading):
                    formatter.write_dl(list(rows))


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported and built when it is used; see `Group.homes`."""

    def __init__(self, homes: Mapping[str, str | Callable[..., Any]]) -> None:
        self.homes = homes
        self.loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            found: Any = self.homes[name]
            if isinstance(found, str):
                module, _, attribute = found.partition(":")
                found = getattr(import_module(f"exampp.cli.{module}"), attribute)
            self.loaded[name] = found if isinstance(found, click.Command) else Command(name, found)
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


def _check_former(args: Sequence[str], names: Mapping[str, str], ctx: Any) -> None:
    for word in args:
        if word in names:
            what = f"{ctx.command_path} {word} was renamed"
            raise InputError(what, hint=f"Type: {names[word]}")


def _named_grader(args: list[str]) -> str:
    named = [value for name, value in pairwise(args) if name == "--grader"]
    named += [one.partition("=")[2] for one in args if one.startswith("--grader=")]
    return named[-1] if named else ""


def _is_given(ctx: Any, param: click.Parameter) -> bool:
    source = ctx.get_parameter_source(param.name)
    return source is not None and source.name == "COMMANDLINE"


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return str(max(param.opts, key=len))
