"""Options of graders: one record per backend.

Each field is a keyword in Python and an option on the command line; its type, default, bounds and
help are declared with `option` and checked here.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS
from exampp.records.graders import ITEM_KINDS, MATCHINGS, UNNUMBERED
from exampp.records.wording import suggest

LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""The maximum tokens of a reply: the name that most servers know, and OpenAI's newer one."""
COST = "Cost and stopping"
PRICES = "Add --price-read and --price-written (in Python price_read and price_written)"


class Option(NamedTuple):
    """Declaration of an option, without its name.

    Attributes:
        choices: Its values, if they are few.
        least: Minimum.
        above: Exclusive minimum.
        most: Maximum.
        writes: The option also applies when a model generates a bank.
        shown: Whether the command line has the option, too.
        panel: Its panel in the help.
        sent: Servers get it with every request under its own name.
        unless: The value sent if the option is not given.
    """

    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    writes: bool = True
    shown: bool = True
    panel: str = "Model"
    sent: bool = False
    unless: Any = None
    type: Any = str


def option(help: str, default: Any = None, **declared: Any) -> Any:  # noqa: A002
    """Declare a field of an options record; `declared` are fields of `Option`.

    enough: int = option("Words that must be shared.", 2, least=1)
    """
    declaration = Option(help, **declared)
    # an option that is not shown may be a secret
    return field(default=default, repr=declaration.shown, metadata={"option": declaration})


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """The option of every grader."""

    kind: str | None = option(
        "Grade items of this kind, if the prompt fits several.",
        choices=ITEM_KINDS,
        writes=False,
        panel="Grades",
    )


@dataclass(frozen=True, kw_only=True)
class GraderOptions(KindOptions):
    """Options of a grader that reads prompts. Derive the record of your backend from this one."""

    prompt: str | None = option(
        "Use this bundled prompt or TOML file. [default: question-self-rating, nugget-self-rating "
        "for nuggets, umbrela for queries]",
        writes=False,
        panel="Grades",
    )
    unnumbered: str | None = option(
        "Read a self-rating without a number as an answer, which counts 1, or as unparsed. "
        "[default: depends on the model]",
        choices=UNNUMBERED,
        writes=False,
    )
    matching: str | None = option(
        "Match extracted answers with the answer key by this rule: guarded, or that of the papers. "
        "[default: guarded, or the rule that the collection already uses]",
        choices=tuple(MATCHINGS),
        writes=False,
    )


@dataclass(frozen=True, kw_only=True)
class NamedOptions(GraderOptions):
    """Options of a grader that has a name: every grader created in Python."""

    model: str | None = option("Name of the model on the server or hub, or its folder.")


@dataclass(frozen=True, kw_only=True)
class CallOptions(KindOptions):
    """Options of a function."""

    concurrency: int = option(
        "Maximum concurrent calls of an async function.", 8, least=1, panel="Server"
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions(NamedOptions):
    """Options of a language model."""

    max_new_tokens: int | None = option("Maximum tokens of a reply.", least=1)
    limit: int | None = option(
        "Maximum tokens of a prompt; longer passages are truncated. [default: its own limit]",
        least=1,
        writes=False,
    )

    @property
    def named_model(self) -> str:
        """The model; raises InputError if missing."""
        if self.model is None:
            raise InputError("missing model", hint="Set it with --model")
        return self.model


@dataclass(frozen=True, kw_only=True)
class TextOptions(ModelOptions):
    """Options of a model with a known revision, chat template and label probabilities."""

    revision: str | None = option("Revision of the model.")
    least_mass: float | None = option(
        f"Minimum total probability of the labels; below it a reply counts as unparsed. "
        f"[default: {LEAST_MASS}]",
        least=0,
        most=1,
        writes=False,
    )
    chat_template_kwargs: Mapping[str, Any] | None = option(
        'Pass these options to the chat template, such as {"enable_thinking": false}.', sent=True
    )


@dataclass(frozen=True, kw_only=True)
class LocalOptions(TextOptions):
    """Options of `hf`: a model of the transformers library on this machine."""

    decode: str = option(
        "Score the labels in one step, or generate the reply as in the papers.",
        "auto",
        choices=("auto", "score", "generate"),
        writes=False,
    )
    device: str | None = option("Run on this device: cpu, cuda, cuda:1 or mps.")
    dtype: str | None = option(
        "Compute in float32, bfloat16, float16 or auto. [default: bfloat16 if the GPU or CPU "
        "supports it, else float32]"
    )
    beams: int | None = option("Number of beams for generate.", least=1, writes=False)
    batch_tokens: int | None = option("Maximum tokens in a batch.", least=1, writes=False)


@dataclass(frozen=True, kw_only=True)
class OpenAIOptions(TextOptions):
    """Options of `openai`: a model on any OpenAI-compatible server.

    With `assume`, no request is sent, and `decode` auto is the assumed mode: for dry runs.
    The n-th retry comes after a random time of up to `backoff` * 2^n seconds (full jitter). The run
    stops if a server requests a wait of more than `max_wait` seconds, or after `give_up_after`
    consecutive failures.
    """

    max_new_tokens: int | None = option("Maximum tokens of a reply.", 512, least=1)
    temperature: float | None = option("Temperature of the model.", least=0, sent=True, unless=0.0)
    seed: int | None = option("Seed of the model.", sent=True, unless=0)
    top_p: float | None = option(
        "Sample from this share of the likeliest tokens.", above=0, most=1, sent=True
    )
    reasoning_effort: str | None = option(
        "Reasoning effort of the model, such as low, medium or high.", sent=True
    )
    concurrency: int = option("Maximum concurrent requests.", 32, least=1, panel="Server")
    retries: int = option("Retry a failed request this many times.", 6, least=0, panel="Server")
    timeout: float = option("Wait this many seconds for a reply.", 120.0, above=0, panel="Server")
    max_requests: int | None = option("Stop after this many requests.", panel=COST)
    max_cost: float | None = option("Stop before the cost exceeds this.", panel=COST)
    price_read: float | None = option("Price of a million input tokens.", panel=COST)
    price_written: float | None = option("Price of a million output tokens.", panel=COST)
    price_cached: float | None = option(
        "Price of a million cached input tokens.", writes=False, panel=COST
    )
    decode: str = option(
        "Read a reply as text, likeliest label, label enforced by the server (choice), or JSON. "
        "auto: the one that reads all first cells in the fewest tokens.",
        "auto",
        choices=("auto", "text", "labels", "choice", "json"),
    )
    base_url: str | None = option(
        "Address of the server. The key comes from OPENAI_API_KEY and is never stored.",
        panel="Server",
    )
    api_key: str | None = option("", shown=False)
    repetition: int = option(
        "Grade again with another seed, as a separate grader: 2, 3, ...",
        1,
        least=1,
        most=1000,
        writes=False,
    )
    extra_body: Mapping[str, Any] | None = option(
        'Add this to every request, such as {"top_k": 20}.', panel="Server"
    )
    assume: str | None = option(
        "", choices=("auto", "text", "labels", "choice", "json"), writes=False, shown=False
    )
    backoff: float = option("", 0.5, least=0, shown=False)
    max_wait: float = option("", 600.0, least=0, shown=False)
    give_up_after: int = option("", 100, least=1, shown=False)

    def __post_init__(self) -> None:
        if (self.price_read is None) != (self.price_written is None):
            raise InputError("a price needs two numbers", hint=PRICES)
        if self.max_cost is not None and self.price_read is None:
            raise InputError("max_cost needs prices", hint=PRICES)
        if reserved := sorted((_WRITTEN | PARAMETERS.keys()) & (self.extra_body or {}).keys()):
            raise InputError(
                f"extra_body sets {', '.join(reserved)}",
                field="extra_body",
                hint="exampp sets these itself: remove them",
            )
        if self.max_cost is not None and self.max_new_tokens is None:
            raise InputError("max_cost needs max_new_tokens", hint="Set it, for example to 512")

    @cached_property
    def sampling(self) -> dict[str, Any]:
        """Sampling parameters: the `sent` options that have a value."""
        parameters = {name: getattr(self, name) for name in _SENT}
        parameters |= {name: _SENT[name].unless for name in self.assumed}
        # a server with seeds would repeat its reply
        parameters["seed"] += self.repetition - 1
        return {name: value for name, value in parameters.items() if value not in (None, {})}

    @property
    def assumed(self) -> frozenset[str]:
        """Parameters that are sent by default and omitted if a server rejects them."""
        unset = (name for name in _SENT if getattr(self, name) is None)
        return frozenset(name for name in unset if _SENT[name].unless is not None)


_SENT: Mapping[str, Option] = {
    one.name: one.metadata["option"] for one in fields(OpenAIOptions) if one.metadata["option"].sent
}
_WRITTEN = frozenset({"model", "messages", "prompt", "stream", "n"})
"""Parameters that every server accepts."""


def check_least_mass(options: TextOptions, *, scores: bool) -> None:
    """Raise InputError for a least mass if no labels are scored."""
    if options.least_mass is not None and not scores:
        raise InputError("--least-mass has no effect: no labels are scored", hint="Remove it")


Record = TypeVar("Record")


def declared_options(record: Any) -> Mapping[str, Option]:
    """Return the options of a record by name, in order, each with its type.

    Raises:
        InputError: A field is not declared with `option`, or its type is not str, int, float or
            Mapping.
    """
    options = {}
    hints = get_type_hints(record)
    for one in fields(record):
        kinds = [kind for kind in get_args(hints[one.name]) if kind is not types.NoneType]
        kind = kinds[0] if isinstance(hints[one.name], types.UnionType) else hints[one.name]
        kind = get_origin(kind) or kind
        declared = one.metadata.get("option")
        if declared is None or kind not in _READERS:
            raise InputError(
                f"the option {one.name!r} is not declared",
                hint="Declare it as a field: name: int = exampp.option(help, default), or with "
                "str, float or Mapping",
            )
        value = declared.unless if one.default is None else one.default
        default = "" if value is None else f" [default: {value}]"
        options[one.name] = declared._replace(type=kind, help=declared.help + default)
    return options


def shown_options(record: Any, *, writes: bool = False) -> dict[str, Option]:
    """Return the options that users see; with `writes`, those for generating banks."""
    options = declared_options(record).items()
    return {name: one for name, one in options if one.shown and (one.writes or not writes)}


def read_options(
    record: type[Record], given: Mapping[str, Any], owner: str, also: Iterable[str] = ()
) -> Record:
    """Return the record of the given options; None means not given.

    Args:
        record: The class of the record.
        given: Options by name.
        owner: Owner of the options in messages, as in "the grader openai".
        also: Other options to suggest for a misspelled one.

    Raises:
        InputError: An option is unknown, or a value is invalid.
    """
    known = declared_options(record)
    values = {key: value for key, value in given.items() if value is not None}
    if unknown := next((key for key in values if key not in known), None):
        visible = sorted(shown_options(record))
        hint = suggest(unknown, (*visible, *also))
        raise InputError(
            f"{owner} has no option {dashed(unknown)}",
            hint=hint or f"Its options are {', '.join(map(dashed, visible))}",
        )
    return record(**{key: _checked(key, value, known[key]) for key, value in values.items()})


def dashed(name: str) -> str:
    """Return an option in command line notation."""
    return f"--{name.replace('_', '-')}"


PARAMETERS: Mapping[str, str] = {
    **{name: f"Remove {dashed(name)}, or use a value that this model supports" for name in _SENT},
    **dict.fromkeys((LIMIT, NEWER_LIMIT), "Reduce --max-new-tokens"),
    **dict.fromkeys(("logprobs", "top_logprobs"), "Use another decode than 'labels'"),
    "response_format": "Use another decode than 'json'",
}
"""Request parameters set by options, and the fix if a server rejects one."""


def _checked(name: str, value: Any, declared: Option) -> Any:
    read, expected = _READERS[declared.type]
    parsed = read(value)
    if parsed is not None and declared.choices and parsed not in declared.choices:
        parsed, expected = None, f"one of {', '.join(declared.choices)}"
    if parsed is not None and _is_out_of_bounds(parsed, declared):
        parsed = None
        bounds = {"{:g} or more": declared.least, "more than {:g}": declared.above}
        bounds["{:g} at most"] = declared.most
        expected = ", ".join(text.format(n) for text, n in bounds.items() if n is not None)
    if parsed is None:
        raise InputError(f"{name.replace('_', '-')} is {value!r}", hint=f"It must be {expected}")
    return parsed


def _is_out_of_bounds(value: Any, declared: Option) -> bool:
    # NaN is neither smaller nor greater
    return (
        (declared.least is not None and not value >= declared.least)
        or (declared.above is not None and not value > declared.above)
        or (declared.most is not None and not value <= declared.most)
    )


def _json_object(value: Any) -> Any:
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return dict(parsed) if isinstance(parsed, Mapping) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        # 0 and 0.0 are the same option, and the same grader
        return float(value)
    except OverflowError:
        return None


_READERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    str: (lambda value: value if isinstance(value, str) else None, "a text"),
    int: (
        lambda value: value if isinstance(value, int) and not isinstance(value, bool) else None,
        "a whole number",
    ),
    float: (_number, "a number"),
    Mapping: (_json_object, 'a JSON object, such as {"top_k": 20}'),
}
