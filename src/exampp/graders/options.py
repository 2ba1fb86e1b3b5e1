"""What a user may say about a backend: every option is declared here, once.

From here it reaches Python, `exam.toml` and the command line (`cli.backend_options`). Adding one
touches this table and the backend that obeys it; backends of others declare theirs themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypedDict, cast, get_args, get_type_hints

from exampp.errors import InputError
from exampp.prompts.prompt import suggest
from exampp.prompts.replies import UNNUMBERED

DRAFT, HF, OPENAI = "draft", "hf", "openai"
SERVERS = (OPENAI, "anthropic", "google")
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


def _said(said: str, *backends: str, **more: Any) -> Option:
    return Option(object, said, backends=frozenset(backends), **more)


class ModelOptions(TypedDict, total=False):
    """What a user may say about a model; what is left out, or None, is left to its backend."""

    model: Annotated[
        str | None, _said("A folder, a model hub name, or the server's name for it.", HF, *SERVERS)
    ]
    decode: Annotated[
        str | None,
        _said(
            "hf: score (one step, label probabilities) or generate (the papers' way); "
            "openai: text, labels, json, decisions. [default: auto]",
            *(HF, OPENAI),
            writes=False,
        ),
    ]
    revision: Annotated[str | None, _said("The model's revision.", HF, *SERVERS)]
    device: Annotated[
        str | None,
        _said("hf: cpu, cuda, cuda:1, mps, or cards that share the layers (cuda:0,cuda:1).", HF),
    ]
    dtype: Annotated[
        str | None,
        _said(
            "hf: float32, bfloat16, float16 or auto. [default: auto, bfloat16 where the card or "
            "the CPU has units for it, else float32]",
            HF,
        ),
    ]
    quantize: Annotated[
        str | None,
        _said("hf: weights in fewer bits (needs bitsandbytes).", HF, choices=("8bit", "4bit")),
    ]
    beams: Annotated[int | None, _said("hf: beams of generate.", HF, writes=False)]
    limit: Annotated[
        int | None,
        _said(
            "Tokens of a prompt at most; longer passages are cut. [default: what the model or the "
            "server says]",
            *(HF, *SERVERS),
            writes=False,
        ),
    ]
    least_mass: Annotated[
        float | None,
        _said(
            "What labels must have of the probability, for the likeliest to be a grade. "
            "[default: 0.5]",
            *(HF, OPENAI),
            writes=False,
        ),
    ]
    batch_tokens: Annotated[int | None, _said("hf: tokens in a batch.", HF, writes=False)]
    max_new_tokens: Annotated[int | None, _said("Tokens of a reply at most.", HF, *SERVERS)]
    temperature: Annotated[
        float | None, _said("servers: of the model's choices. [default: 0]", *SERVERS)
    ]
    seed: Annotated[
        int | None,
        _said("openai, google: of the model's choices. [default: 0]", OPENAI, "google"),
    ]
    repetition: Annotated[
        int | None,
        _said(
            "servers: grade again, as a grader of its own: 2, 3, ... Its seed is another. "
            "[default: 1]",
            *SERVERS,
            writes=False,
        ),
    ]
    top_p: Annotated[
        float | None, _said("servers: the share of likely tokens it chooses from.", *SERVERS)
    ]
    reasoning_effort: Annotated[
        str | None, _said("openai: how long a model may think, such as low, medium, high.", OPENAI)
    ]
    chat_template_kwargs: Annotated[
        Mapping[str, Any] | None,
        _said('Options of the chat template, such as {"enable_thinking": false}.', HF, OPENAI),
    ]
    extra_body: Annotated[
        Mapping[str, Any] | None,
        _said('openai: what else every request says, such as {"top_k": 20}.', *SERVERS),
    ]
    endpoint: Annotated[
        str | None,
        _said(
            "openai: chat, or completions, where the model goes on writing the prompt. "
            "[default: chat]",
            OPENAI,
            choices=("chat", "completions"),
        ),
    ]
    base_url: Annotated[
        str | None,
        _said(
            "servers: the server's address; several, with commas between, share the work. The key "
            "comes from OPENAI_API_KEY (ANTHROPIC_API_KEY, GEMINI_API_KEY) and is never stored.",
            *SERVERS,
        ),
    ]
    api_key: Annotated[str | None, _said("", *SERVERS, shown=False)]
    concurrency: Annotated[
        int | None, _said("servers: requests in flight at each address at most.", *SERVERS)
    ]
    retries: Annotated[int | None, _said("servers: tries after a failed one.", *SERVERS)]
    timeout: Annotated[float | None, _said("servers: seconds to wait.", *SERVERS)]
    redirect_to: Annotated[
        str | None,
        _said(
            "servers: another host that the server may send passages on to.",
            *SERVERS,
            metavar="HOST",
        ),
    ]
    max_requests: Annotated[int | None, _said("servers: stop before more.", *SERVERS)]
    max_cost: Annotated[float | None, _said("servers: stop before it costs more.", *SERVERS)]
    price_read: Annotated[float | None, _said("servers: price of a million tokens read.", *SERVERS)]
    price_written: Annotated[
        float | None, _said("servers: price of a million tokens written.", *SERVERS)
    ]
    price_cached: Annotated[
        float | None,
        _said("servers: price of a million tokens read from the cache.", *SERVERS, writes=False),
    ]


class Options(ModelOptions, total=False):
    """What a user may say about a backend that grades: the prompt, and how it is read, too."""

    prompt: Annotated[
        str | None,
        _said(
            "A bundled prompt or a TOML file. [default: question-self-rating]",
            HF,
            *SERVERS,
            writes=False,
        ),
    ]
    kind: Annotated[
        str | None,
        _said(
            "What is graded, where the prompt can grade several.",
            *(DRAFT, HF, *SERVERS),
            choices=KINDS,
            writes=False,
        ),
    ]
    unnumbered: Annotated[
        str | None,
        _said(
            "What a self-rating without a number is: an answer, which counts 1, or unparsed. "
            "[default: what the model's kind says]",
            *(HF, *SERVERS),
            choices=UNNUMBERED,
            writes=False,
        ),
    ]


def check_options(given: Mapping[str, Any]) -> Options:
    """The options that were given, of their types; None is left out.

    Raises:
        InputError: an option that no grader of exampp has, a value of another type, or text that
            is no JSON object where one is wanted.

    """
    known = declarations()
    named = {name: value for name, value in given.items() if value is not None}
    if strange := [name for name in named if name not in known]:
        mend = suggest(strange[0], known) or f"known: {', '.join(known)}"
        raise InputError(
            f"a grader has no such option: {strange[0]}", mend=mend[0].upper() + mend[1:]
        )
    options: Any = check_values(known, named)
    return cast("Options", options)


@cache
def declarations() -> Mapping[str, Option]:
    """Every option by its name in Python, in the order in which they are shown."""
    hints = get_type_hints(Options, include_extras=True)
    return {
        name: hint.__metadata__[0]._replace(type=_type(hint.__origin__))
        for name, hint in hints.items()
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
    return Mapping if found not in (str, int, float) else found


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
