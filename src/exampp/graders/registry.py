"""Graders by name: the offline stand-in, models on this machine, servers, and those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.graders.base import Grader
from exampp.graders.options import TYPES, Option, Options, check_options, options_of
from exampp.plugins import Registry
from exampp.prompts import Prompt
from exampp.prompts.prompt import meanings_of

if TYPE_CHECKING:
    from exampp.graders.openai.connection import Provider

DEFAULT_PROMPT = "question-self-rating"


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of grader: how it is made, its prompt by default, the options that it declares.

    `make` gets the prompt and the options that were given, by name, of the declared types. A
    backend that also writes the items of banks gives, as `writes`, the options that it then has.
    """

    make: Callable[[Prompt, Mapping[str, Any]], Grader]
    prompt: str = DEFAULT_PROMPT
    options: Mapping[str, Option] = field(default_factory=dict)
    writes: Mapping[str, Any] | None = None


def _draft(_: Prompt, __: Mapping[str, Any]) -> Grader:
    from exampp.graders.draft import DraftGrader

    return DraftGrader()


def _hf(prompt: Prompt, given: Mapping[str, Any]) -> Grader:
    # each backend loads when it is asked for: evaluating must not pay for grading
    from exampp.graders import local

    names = ("revision", "device", "dtype", "quantize", "decode", "beams", "limit", "batch_tokens")
    options = check_options(given)
    chosen = {name: given[name] for name in (*names, "max_new_tokens") if name in given}
    template, least = options.get("chat_template_kwargs"), options.get("least_mass")
    return local.load(
        _named(options), labels=prompt.labels, template=template, least_mass=least, **chosen
    )


def _openai(prompt: Prompt, given: Mapping[str, Any]) -> Grader:
    from exampp.graders.openai.connection import OPENAI

    return _of_server(prompt, given, OPENAI)


def _anthropic(prompt: Prompt, given: Mapping[str, Any]) -> Grader:
    from exampp.graders.openai.connection import ANTHROPIC

    # it has no seed, and its current models take no temperature unless one asks for it
    return _of_server(prompt, given, ANTHROPIC, temperature=None, seed=None)


def _google(prompt: Prompt, given: Mapping[str, Any]) -> Grader:
    from exampp.graders.openai.connection import GOOGLE

    return _of_server(prompt, given, GOOGLE)


def _of_server(
    prompt: Prompt, given: Mapping[str, Any], provider: Provider, **usual: None
) -> Grader:
    from exampp.graders import openai

    options = check_options(given)
    policy = {"concurrency": "max_concurrency", "retries": "max_retries", "timeout": "timeout"}
    prices = (options.get("price_read"), options.get("price_written"))
    if (prices[0] is None) != (prices[1] is None):
        raise InputError("a price needs both --price-read and --price-written")
    price = None
    if prices[0] is not None and prices[1] is not None:
        price = openai.Price(prices[0], prices[1], options.get("price_cached"))
    names = {name: name for name in _SAMPLING} | {"max_new_tokens": "max_tokens"}
    chosen = {names[name]: given[name] for name in names if name in given}
    sampling = openai.Sampling(**{**usual, **chosen})
    given_repetition = options.get("repetition")
    repetition = 1 if given_repetition is None else given_repetition
    if sampling.seed is not None:
        # a server that keeps to seeds would say the same again
        sampling = replace(sampling, seed=sampling.seed + repetition - 1)
    return openai.OpenAICompatibleGrader(
        _named(options),
        options.get("base_url"),
        options.get("api_key"),
        prompt.labels,
        prompt.field,
        meanings_of(prompt),
        decode=given.get("decode", "auto"),
        revision=options.get("revision") or "",
        sampling=sampling,
        policy=openai.RetryPolicy(
            **{policy[name]: given[name] for name in policy if name in given}
        ),
        limits=openai.Limits(options.get("max_requests"), options.get("max_cost"), price),
        redirect_to=options.get("redirect_to"),
        endpoint=given.get("endpoint", "chat"),
        limit=options.get("limit"),
        least_mass=options.get("least_mass"),
        provider=provider,
        repetition=repetition,
    )


_SAMPLING = (
    *("temperature", "seed", "top_p", "reasoning_effort"),
    *("chat_template_kwargs", "extra_body"),
)


def _named(options: Options) -> str:
    if (model := options.get("model")) is None:
        raise InputError("which model?", mend="Name it with --model")
    return model


BUILT_IN: Mapping[str, Backend] = {
    "draft": Backend(_draft, "draft", options_of("draft")),
    "hf": Backend(_hf, options=options_of("hf"), writes={"decode": "generate"}),
    "openai": Backend(_openai, options=options_of("openai"), writes={"decode": "text"}),
    "anthropic": Backend(_anthropic, options=options_of("anthropic"), writes={}),
    "google": Backend(_google, options=options_of("google"), writes={}),
}
COMMON = ("prompt", "kind", "unnumbered")
"""Options that say how any grader is asked and read, so that no backend declares them."""
RESERVED = frozenset(
    {"collection", "grader", "bank", "depth", "select", "answers_of", "max_failures"}
    | {"max_queries", "take_over", "retry_failed", "grace", "dry_run", "on_progress", "on_reply"}
    | {"per", "keys", "query", "query_id", "more", "keep_near", "grounded", "author", "reason"}
    | {"format", "style", "name", "batch", "batches", "batch_file", "replies", "cancel_batches"}
    | {"poll", *COMMON}
)
"""Names that an option of a backend cannot have: something else is called so."""


def _backend(_: str, declared: object) -> Backend:
    """What a package declares as a grader, checked."""
    if not isinstance(declared, Backend):
        raise InputError(f"{declared!r} is no exampp.Backend", mend="Name one in the entry point")
    for option, one in declared.options.items():
        if not isinstance(one, Option) or one.type not in TYPES:
            raise InputError(
                f"its option {option!r} is {one!r}",
                mend="Declare it as exampp.Option(str, help), or of int, float or Mapping",
            )
        if option in RESERVED or not option.isidentifier() or option != option.lower():
            raise InputError(
                f"an option cannot be called {option!r}",
                mend="Give it another name, in small letters and with _",
            )
    common = {one: option for one, option in options_of("hf").items() if one in COMMON}
    return replace(declared, options={**common, **declared.options})


GRADERS = Registry("exampp.graders", "grader", BUILT_IN, _backend)
"""Every backend by its name."""
