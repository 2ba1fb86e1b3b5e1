"""Graders by name: the draft grader, local models, servers, and plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

from exampp.errors import InputError
from exampp.graders.base import Grader
from exampp.graders.options import (
    GraderOptions,
    KindOptions,
    LocalOptions,
    OpenAIOptions,
    declared_options,
)
from exampp.plugins import Registry

if TYPE_CHECKING:
    from exampp.prompts import Prompt

DEFAULT_PROMPT = "question-self-rating"
DEFAULT_PROMPTS = {
    "question": DEFAULT_PROMPT,
    "nugget": "nugget-self-rating",
    "query": "umbrela",
}
"""Default prompts by the kind of items, for backends without a default prompt."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of grader: its class, the record of its options, its default prompt.

    `make` gets the options, an instance of `options`, and the prompt. `writes` are the options for
    generating banks, if the backend can do that: a value, or a tuple of all possible values.
    """

    make: Callable[[Any, Prompt], Grader]
    options: type[Any] = GraderOptions
    prompt: str = DEFAULT_PROMPT
    writes: Mapping[str, Any] | None = None


# import each backend on use: evaluation must not pay for grading


def _draft(_: KindOptions, __: Prompt) -> Grader:
    from exampp.graders.draft import DraftGrader

    return DraftGrader()


def _local(options: LocalOptions, prompt: Prompt) -> Grader:
    from exampp.graders.local import load_local_grader

    return load_local_grader(options, prompt.scored_labels)


def _openai(options: OpenAIOptions, prompt: Prompt) -> Grader:
    from exampp.graders.openai import OpenAICompatibleGrader

    return OpenAICompatibleGrader(
        options,
        prompt.labels,
        prompt.reply_field,
        prompt.reply,
        properties=prompt.properties,
        shared=prompt if prompt.items > 1 else None,
    )


BUILT_IN: Mapping[str, Backend] = {
    "draft": Backend(_draft, KindOptions, "draft"),
    "hf": Backend(_local, LocalOptions, writes={"decode": "generate"}),
    "openai": Backend(_openai, OpenAIOptions, writes={"decode": ("auto", "text", "json")}),
}
RESERVED = frozenset(
    {"collection", "grader", "bank", "depth", "pool", "select", "answers_of", "max_failures"}
    | {"max_queries", "shard", "retry_failed", "grace", "dry_run", "on_progress", "on_reply"}
    | {"per", "keys", "query", "query_id", "more", "count", "grounded", "author", "reason"}
    | {"format", "style", "name", "scale", "same_text_same_grade", "on", "workers", "price_hour"}
    | {"measure", "measures", "min_rating", "may_miss", "audit", "audit_seed", "after", "unsure"}
    | {"until", "margin", "baseline_system"}
    | {"batch", "batches", "batch_file", "replies", "cancel_batches", "poll"}
)
"""Options of the commands and methods that use graders; backends cannot have these."""


def _check_backend(_: str, declared: object) -> Backend:
    """Return the declared grader of a plug-in, checked."""
    if not isinstance(declared, Backend):
        raise InputError(
            f"{declared!r} is not an exampp.Backend", hint="Name a Backend in the entry point"
        )
    if not (is_dataclass(declared.options) and issubclass(declared.options, GraderOptions)):
        raise InputError(
            f"invalid options {declared.options!r}",
            hint="Use a dataclass that derives from exampp.GraderOptions",
        )
    for name in declared_options(declared.options):
        if name in RESERVED or name != name.lower():
            raise InputError(
                f"invalid option name {name!r}",
                hint="Use another name, in lower case and with underscores",
            )
    return declared


GRADERS = Registry("exampp.graders", "grader", BUILT_IN, _check_backend)
"""All backends by name."""
