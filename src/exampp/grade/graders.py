"""Gradings by name: the backend, who it is, how it is asked and how its replies are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from exampp.errors import InputError
from exampp.grade.asking import asker
from exampp.grade.reading import reader
from exampp.grade.run import Grading
from exampp.llm.base import Grader
from exampp.llm.draft import THRESHOLDS, DraftGrader
from exampp.prompts import Prompt, content_hash, load
from exampp.records import GraderIdentity

DEFAULT_PROMPT = "question-self-rating"


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about a grader; None leaves a choice to the backend.

    `model` is a folder, a name on the Hugging Face hub, or what the server calls it. `prompt` is
    a bundled prompt or a TOML file, `kind` what is graded where a prompt can grade several. Prices
    are per million tokens; `max_requests` and `max_cost` stop a run before they are exceeded.
    """

    model: str | None = None
    prompt: str | None = None
    kind: str | None = None
    decode: str | None = None
    revision: str | None = None
    device: str | None = None
    dtype: str | None = None
    beams: int | None = None
    limit: int | None = None
    batch_tokens: int | None = None
    max_new_tokens: int | None = None
    base_url: str | None = None
    api_key: str | None = None
    concurrency: int | None = None
    retries: int | None = None
    timeout: float | None = None
    redirect_to: str | None = None
    max_requests: int | None = None
    max_cost: float | None = None
    price_read: float | None = None
    price_written: float | None = None
    price_cached: float | None = None

    def given(self) -> dict[str, Any]:
        """The options that were given, by name."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in named.items() if value is not None}


def kind_of(prompt: Prompt, kind: str | None) -> str:
    """What a prompt grades; `kind` chooses where it can grade several."""
    kinds = tuple("question" if grades == "answer" else grades for grades in prompt.grades)
    if kind is None:
        return kinds[0]
    if kind not in kinds:
        raise InputError(
            f"the prompt {prompt.name!r} grades {' or '.join(kinds)}, not {kind}",
            mend="Leave --kind away, or choose another prompt (exampp prompts list)",
        )
    return kind


def join(
    grader: Grader,
    model: str,
    prompt: Prompt,
    kind: str | None = None,
    *,
    thresholds: tuple[float, ...] = (),
    settings: Mapping[str, Any] | None = None,
) -> Grading:
    """Join a backend and a prompt; what the identity holds determines every reply and rating."""
    chosen = kind_of(prompt, kind)
    identity = GraderIdentity(
        model,
        prompt.name,
        chosen,
        prompt.lowest,
        prompt.highest,
        {
            **grader.settings,
            **({"prompt_hash": content_hash(prompt)} if prompt.user else {}),
            **({"thresholds": list(thresholds)} if thresholds else {}),
            **(settings or {}),
        },
    )
    return Grading(
        grader,
        prompt,
        identity,
        asker(prompt, chosen, grader),
        reader(prompt, thresholds=thresholds),
    )


def _draft(_: Prompt, __: Options) -> Grader:
    return DraftGrader()


def _hf(prompt: Prompt, options: Options) -> Grader:
    # each backend loads when it is asked for: evaluating must not pay for grading
    from exampp.llm import hf

    names = ("revision", "device", "dtype", "decode", "beams", "limit", "batch_tokens")
    given = options.given()
    chosen = {name: given[name] for name in (*names, "max_new_tokens") if name in given}
    return hf.load(_named(options), labels=prompt.labels, **chosen)


def _openai(prompt: Prompt, options: Options) -> Grader:
    from exampp.llm import openai

    given = options.given()
    policy = {"concurrency": "max_concurrency", "retries": "max_retries", "timeout": "timeout"}
    prices = (options.price_read, options.price_written)
    if (prices[0] is None) != (prices[1] is None):
        raise InputError("a price needs both --price-read and --price-written")
    price = None
    if prices[0] is not None and prices[1] is not None:
        price = openai.Price(prices[0], prices[1], options.price_cached)
    sampling = openai.Sampling()
    if options.max_new_tokens is not None:
        sampling = openai.Sampling(max_tokens=options.max_new_tokens)
    return openai.OpenAICompatibleGrader(
        _named(options),
        options.base_url,
        options.api_key,
        prompt.labels,
        prompt.field,
        decode=given.get("decode", "auto"),
        revision=options.revision or "",
        sampling=sampling,
        policy=openai.Policy(**{policy[name]: given[name] for name in policy if name in given}),
        limits=openai.Limits(options.max_requests, options.max_cost, price),
        redirect_to=options.redirect_to,
    )


def _named(options: Options) -> str:
    if options.model is None:
        raise InputError("which model?", mend="Name it with --model")
    return options.model


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of grader: how it is made, its prompt by default, and the options it knows."""

    make: Callable[[Prompt, Options], Grader]
    prompt: str
    options: frozenset[str]


_ANY = {"prompt", "kind"}
_MODEL = _ANY | {"model", "revision", "decode", "max_new_tokens"}
_LOCAL = {"device", "dtype", "beams", "limit", "batch_tokens"}
_SERVER = {"base_url", "api_key", "concurrency", "retries", "timeout", "redirect_to"}
_PRICES = {"max_requests", "max_cost", "price_read", "price_written", "price_cached"}
BACKENDS: Mapping[str, Backend] = {
    "draft": Backend(_draft, "draft", frozenset({"kind"})),
    "hf": Backend(_hf, DEFAULT_PROMPT, frozenset(_MODEL | _LOCAL)),
    "openai": Backend(_openai, DEFAULT_PROMPT, frozenset(_MODEL | _SERVER | _PRICES)),
}
"""Graders by name: the offline stand-in, models on this machine, and servers."""


WRITTEN_TOKENS = 2048
"""Tokens of a reply of a writer at most, where nobody says otherwise."""


def make_writer(name: str, options: Options) -> Grader:
    """A backend that writes what it is asked for, whatever it is: for generating banks."""
    if name not in _WRITERS:
        raise InputError(f"the grader {name!r} writes no texts", mend=f"Give {_WRITERS_LISTED}")
    _check_options(name, options)
    decode = options.decode or _WRITERS[name]
    if decode != _WRITERS[name]:
        raise InputError(f"a bank is generated with decode {_WRITERS[name]!r}, not {decode!r}")
    tokens = options.max_new_tokens or WRITTEN_TOKENS
    blank = Prompt("items", "", "", ("question",), "", 0, 1)
    return BACKENDS[name].make(blank, replace(options, decode=decode, max_new_tokens=tokens))


_WRITERS = {"hf": "generate", "openai": "text"}
_WRITERS_LISTED = " or ".join(_WRITERS)


def _check_options(name: str, options: Options) -> None:
    backend = BACKENDS[name]
    strange = [option for option in options.given() if option not in backend.options]
    if strange:
        raise InputError(
            f"the grader {name} has no option --{strange[0].replace('_', '-')}",
            mend=f"It has {', '.join('--' + o.replace('_', '-') for o in sorted(backend.options))}",
        )


def make_grading(name: str, options: Options, settings: Mapping[str, Any] | None = None) -> Grading:
    """The grading of a backend; InputError for a name or an option that it does not know."""
    if name not in BACKENDS:
        raise InputError(f"no grader is called {name!r}", mend=f"Known: {', '.join(BACKENDS)}")
    _check_options(name, options)
    backend = BACKENDS[name]
    prompt = load(options.prompt or backend.prompt)
    kind_of(prompt, options.kind)
    made = backend.make(prompt, options)
    thresholds = THRESHOLDS if prompt.reading == "thresholds" else ()
    model = options.model or name
    return join(made, model, prompt, options.kind, thresholds=thresholds, settings=settings)
