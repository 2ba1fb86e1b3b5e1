"""Forms from the records of options, with the types, choices and help of the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request

from exampp.errors import InputError
from exampp.graders.options import LIMIT, Option, dashed, shown_options
from exampp.graders.registry import BUILT_IN
from exampp.prompts.catalogue import all_prompts
from exampp.prompts.prompt import Prompt
from exampp.records import GraderIdentity
from exampp.records.wording import suggest

GRADERS = {
    "openai": "A model on a server",
    "draft": "Draft grader (no model, for trials)",
}
"""Graders that pages offer: those that need no files of the server's machine."""
LIMIT_OPTION = "max_new_tokens"
"""The option that is `LIMIT` in the settings of a grader."""
FIRST = ("model", "base_url", "price_read", "price_written", "max_cost")
"""Options that are shown at first."""
CHOSEN_APART = ("kind", "prompt")
"""Options that have a separate field: a prompt may be a file of the server's machine."""
LABELS = {
    "base_url": "Address of the server",
    "price_read": "Price of a million input tokens",
    "price_written": "Price of a million output tokens",
    "max_cost": "Highest cost",
}
HELPS = {
    "model": "The name that the server knows it by.",
    "base_url": "Such as http://localhost:8000/v1. Empty: the one that the environment names, or "
    "api.openai.com.",
    "price_read": "As the provider lists it; shows the cost before and during the run.",
    "price_written": "As the provider lists it.",
}


async def _submitted(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


SubmittedForm = Annotated[Mapping[str, str], Depends(_submitted)]
"""The submitted form: the last value of each field."""


NO_PRICE: Mapping[str, Any] = {"found": None, "facts": {}, "notes": (), "table": None}
"""The values of `_price.html` before a price is computed."""


class FormField(NamedTuple):
    """One field of a form; `value` is the submitted text."""

    name: str
    label: str
    help: str
    type: str
    choices: tuple[str, ...]
    value: str
    first: bool


def model_fields(values: Mapping[str, str], *, writes: bool) -> list[FormField]:
    """Return the fields of a model on a server."""
    options = shown_options(BUILT_IN["openai"].options, writes=writes)
    ordered = dict.fromkeys((*FIRST, *options))
    return [
        FormField(
            name,
            LABELS.get(name, name.replace("_", " ").capitalize()),
            HELPS.get(name, one.help),
            "number" if one.type in (int, float) else "text",
            one.choices,
            values.get(name, ""),
            name in FIRST,
        )
        for name, one in ((name, options[name]) for name in ordered)
        if name not in CHOSEN_APART
    ]


def model_options(values: Mapping[str, str], *, writes: bool) -> dict[str, Any]:
    """Return the options in a submitted form, as Python takes them.

    The key of the environment goes only to the server that the environment names. Raises
    InputError for a value of the wrong type.
    """
    declared = shown_options(BUILT_IN["openai"].options, writes=writes)
    options = {
        name: _value(name, text.strip(), declared[name])
        for name, text in values.items()
        if name in declared and name not in CHOSEN_APART and text.strip()
    }
    if key := values.get("api_key", "").strip():
        options["api_key"] = key
    elif "base_url" in options and options["base_url"].rstrip("/") != _server_of_environment():
        options["api_key"] = "none"
    return options


def _server_of_environment() -> str:
    from exampp.graders.openai.client import OPENAI_URL

    return (os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")


def _value(name: str, text: str, declared: Option) -> Any:
    try:
        if declared.type in (int, float):
            return declared.type(text)
        return text if declared.type is str else json.loads(text)
    except (ValueError, RecursionError):
        kinds = {int: "a whole number", float: "a number"}
        hint = f"It must be {kinds.get(declared.type, 'a JSON object')}"
        raise InputError(f"{dashed(name)} is {text!r}", hint=hint) from None


def grader_options(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of the grader in a form, as Python takes them.

    Raises:
        InputError: The grader or its prompt is not offered, or a value has the wrong type.
    """
    options: dict[str, Any] = {"kind": form.get("kind") or None}
    if checked_choice("grader", form.get("grader", ""), tuple(GRADERS)) == "draft":
        return options
    options |= model_options(form, writes=False)
    if prompt := form.get("prompt"):
        names = [one.name for one in grading_prompts()]
        options["prompt"] = checked_choice("prompt", prompt, names)
    return options


def grading_prompts() -> list[Prompt]:
    """Return the prompts that a model can grade items or queries with."""
    prompts = (one for one in all_prompts() if isinstance(one, Prompt))
    return [one for one in prompts if one.user and "answer" not in one.grades]


def form_of_grader(grader: GraderIdentity) -> dict[str, str]:
    """Return the form that continues a grader; empty if pages do not offer its backend."""
    backend = grader.settings.get("name")
    if backend not in GRADERS:
        return {}
    options = shown_options(BUILT_IN["openai"].options)
    known = {"model": grader.model, **grader.settings, LIMIT_OPTION: grader.settings.get(LIMIT)}
    same = {name: value for name, value in known.items() if name in options and value is not None}
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in same.items()}
    return {"grader": backend, "prompt": grader.prompt, "kind": grader.kind, **texts}


def whole(name: str, form: Mapping[str, str]) -> int:
    """Return a number in a form; 0 if the field is empty."""
    text = form.get(name, "").strip()
    return int(_value(name, text, Option("", type=int))) if text else 0


def fraction(name: str, form: Mapping[str, str]) -> float | None:
    """Return a decimal number in a form; None if the field is empty."""
    text = form.get(name, "").strip()
    return float(_value(name, text, Option("", type=float))) if text else None


def checked_choice(what: str, value: str, known: Sequence[str]) -> str:
    """Return one of the choices of a form. Raises InputError for another value."""
    if value in known:
        return value
    raise InputError(f"unknown {what} {value!r}", hint=suggest(value, known))
