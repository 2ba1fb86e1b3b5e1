"""What a user may say about a backend: every option is declared here, once.

From here it reaches Python, `exam.toml` and the command line (`cli.backend_options`). Adding one
touches this table and the backend that obeys it; backends of others declare theirs themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from exampp.errors import InputError
from exampp.prompts.reading import UNNUMBERED

DRAFT, HF, OPENAI = "draft", "hf", "openai"
KINDS = ("question", "nugget", "query")


class Option(NamedTuple):
    """An option of a backend: its type (str, int, float, or Mapping for JSON objects), its help.

    `choices` are its values where they are few. `writes` tells that a writer of banks takes it on
    the command line, `shown` that it is an option there at all. `backends` are those of exampp that
    obey it.
    """

    type: Any
    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    writes: bool = True
    shown: bool = True
    backends: frozenset[str] = frozenset()


def _option(said: str, *backends: str, **more: Any) -> Any:
    """A field that is None unless it is given; `more` as in `Option`."""
    declared = Option(object, said, backends=frozenset(backends), **more)
    return field(default=None, metadata={"declared": declared})


@dataclass(frozen=True, slots=True)
class Options:
    """What a user says about a backend; None leaves a choice to it.

    Raises:
        InputError: a value of another type, or text that is no JSON object where one is wanted.

    """

    model: str | None = _option(
        "A folder, a model hub name, or the server's name for it.", HF, OPENAI
    )
    prompt: str | None = _option(
        "A bundled prompt or a TOML file. [default: question-self-rating]", HF, OPENAI, writes=False
    )
    kind: str | None = _option(
        "What is graded, where the prompt can grade several.",
        *(DRAFT, HF, OPENAI),
        choices=KINDS,
        writes=False,
    )
    unnumbered: str | None = _option(
        "What a self-rating without a number is: an answer, which counts 1, or unparsed. "
        "[default: what the model's kind says]",
        *(HF, OPENAI),
        choices=UNNUMBERED,
        writes=False,
    )
    decode: str | None = _option(
        "hf: score (one step, label probabilities) or generate (the papers' way); "
        "openai: text, labels, json, decisions. [default: auto]",
        *(HF, OPENAI),
        writes=False,
    )
    revision: str | None = _option("The model's revision.", HF, OPENAI)
    device: str | None = _option(
        "hf: cpu, cuda, cuda:1, mps, or cards that share the layers (cuda:0,cuda:1).", HF
    )
    dtype: str | None = _option(
        "hf: float32, bfloat16, float16 or auto. [default: auto, bfloat16 on cards that have it, "
        "else float32]",
        HF,
    )
    quantize: str | None = _option(
        "hf: weights in fewer bits (needs bitsandbytes).", HF, choices=("8bit", "4bit")
    )
    beams: int | None = _option("hf: beams of generate.", HF, writes=False)
    limit: int | None = _option(
        "Tokens of a prompt at most; longer passages are cut. [default: what the model or the "
        "server says]",
        *(HF, OPENAI),
        writes=False,
    )
    batch_tokens: int | None = _option("hf: tokens in a batch.", HF, writes=False)
    max_new_tokens: int | None = _option("Tokens of a reply at most.", HF, OPENAI)
    temperature: float | None = _option("openai: of the model's choices. [default: 0]", OPENAI)
    seed: int | None = _option("openai: of the model's choices. [default: 0]", OPENAI)
    top_p: float | None = _option("openai: the share of likely tokens it chooses from.", OPENAI)
    reasoning_effort: str | None = _option(
        "openai: how long a model may think, such as low, medium, high.", OPENAI
    )
    chat_template_kwargs: Mapping[str, Any] | None = _option(
        'Options of the chat template, such as {"enable_thinking": false}.', HF, OPENAI
    )
    extra_body: Mapping[str, Any] | None = _option(
        'openai: what else every request says, such as {"top_k": 20}.', OPENAI
    )
    endpoint: str | None = _option(
        "openai: chat, or completions, where the model goes on writing the prompt. [default: chat]",
        OPENAI,
        choices=("chat", "completions"),
    )
    base_url: str | None = _option(
        "openai: the server's address. The key comes from OPENAI_API_KEY and is never stored.",
        OPENAI,
    )
    api_key: str | None = _option("", OPENAI, shown=False)
    concurrency: int | None = _option("openai: requests in flight at most.", OPENAI)
    retries: int | None = _option("openai: tries after a failed one.", OPENAI)
    timeout: float | None = _option("openai: seconds to wait.", OPENAI)
    redirect_to: str | None = _option(
        "openai: another host that the server may send passages on to.", OPENAI, metavar="HOST"
    )
    max_requests: int | None = _option("openai: stop before more.", OPENAI)
    max_cost: float | None = _option("openai: stop before it costs more.", OPENAI)
    price_read: float | None = _option("openai: price of a million tokens read.", OPENAI)
    price_written: float | None = _option("openai: price of a million tokens written.", OPENAI)
    price_cached: float | None = _option(
        "openai: price of a million tokens read from the cache.", OPENAI, writes=False
    )

    def __post_init__(self) -> None:
        for name, declared in declarations().items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _checked(name, value, declared.type))

    def given(self) -> dict[str, Any]:
        """The options that were given, by name."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in named.items() if value is not None}


def of_options(given: Mapping[str, Any]) -> Options:
    """The options by name. Raises InputError for one that no grader of exampp has."""
    try:
        return Options(**given)
    except TypeError as error:
        raise InputError(f"a grader has no such option ({error})") from None


@cache
def declarations() -> Mapping[str, Option]:
    """Every option by its name in Python, in the order in which they are shown."""
    hints = get_type_hints(Options)
    return {
        one.name: one.metadata["declared"]._replace(type=_type(hints[one.name]))
        for one in fields(Options)
    }


def options_of(backend: str) -> Mapping[str, Option]:
    """The options that a backend of exampp knows."""
    return {name: one for name, one in declarations().items() if backend in one.backends}


TYPES = (str, int, float, Mapping)
"""What an option can be."""


def check_values(declared: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options that are given, as their types want them.

    Raises InputError for a value of another type.
    """
    return {name: _checked(name, value, declared[name].type) for name, value in given.items()}


def check_choices(declared: Mapping[str, Option], given: Mapping[str, Any]) -> None:
    """Raise InputError for a value that is none of the choices of its option."""
    for name, value in given.items():
        choices = declared[name].choices
        if choices and value not in choices:
            mend = f"Give one of {', '.join(choices)}"
            raise InputError(f"{name.replace('_', '-')} is {value!r}", mend=mend)


def _type(hint: UnionType) -> Any:
    found = get_args(hint)[0]
    return Mapping if found is not str and found not in (int, float) else found


def _object(value: Any) -> Any:
    """A mapping as it is, or the JSON object that a text holds; None if it is none."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return dict(found) if isinstance(found, Mapping) else None


def _is_number(value: Any, *kinds: type) -> Any:
    return value if isinstance(value, kinds) and not isinstance(value, bool) else None


def _as_float(value: Any) -> float | None:
    """The same number in one form, so that 0 and 0.0 make one grader."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


_READERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    str: (lambda value: value if isinstance(value, str) else None, "a text"),
    int: (lambda value: _is_number(value, int), "a whole number"),
    float: (lambda value: _as_float(_is_number(value, int, float)), "a number"),
    Mapping: (_object, 'a JSON object, such as {"top_k": 20}'),
}


def _checked(name: str, value: Any, kind: Any) -> Any:
    read, wanted = _READERS[kind]
    found = read(value)
    if found is None:
        option = name.replace("_", "-")
        raise InputError(f"{option} is {value!r}", mend=f"Give {wanted}")
    return found
