"""Find prompts by name or file: bundled ones, those of plug-ins, and custom files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.plugins import Plugin, Registry, declared_text
from exampp.prompts import generation, prompt
from exampp.prompts.generation import GenerationPrompt
from exampp.prompts.prompt import Prompt, prompt_content_hash
from exampp.records.toml import parse_toml
from exampp.records.wording import suggest
from exampp.sanitize import check_path

SUFFIX = ".toml"
_HINT = "start from a bundled prompt: exampp prompts NAME --toml"


def _bundled_texts(folder: str) -> dict[str, str]:
    """Return the declarations in a folder of this package by the name of the prompt, sorted."""
    texts = {
        file.name.removesuffix(SUFFIX): file.read_text(encoding="utf-8")
        for file in (resources.files(__package__) / folder).iterdir()
        if file.name.endswith(SUFFIX)
    }
    return dict(sorted(texts.items()))


def _declared_text(name: str, declared: object) -> str:
    """Return the declaration of a plug-in's prompt."""
    text = declared_text(declared, "prompt")
    if (own := parse_toml(text, f"{name}{SUFFIX}").get("name")) != name:
        raise InputError(
            f"its name is {own!r}", field="name", hint=f"Use the name {name!r} in both places"
        )
    return text


_GRADING, _GENERATING = _bundled_texts("catalogue"), _bundled_texts("generation")
PROMPTS = Registry("exampp.prompts", "prompt", {**_GRADING, **_GENERATING}, _declared_text)
"""The declarations of all named prompts, including those of plug-ins."""


def names() -> tuple[str, ...]:
    """Return the names of the bundled prompts that grade, sorted."""
    return tuple(_GRADING)


def all_prompts() -> tuple[Prompt | GenerationPrompt, ...]:
    """Return all prompts: bundled ones that grade, then those that generate items.

    Prompts of plug-ins come last, if they can be loaded; `plugins` lists the others.
    """
    added = (one.name for one in plugin_prompts() if not one.fault)
    return tuple(map(find_prompt, (*PROMPTS.built_in, *added)))


def plugin_prompts() -> Iterator[Plugin]:
    """Yield the prompts of plug-ins, each with the fault that prevents its use."""
    for one in PROMPTS.plugins():
        fault = one.fault
        if not fault:
            try:
                find_prompt(one.name)
            except InputError as error:
                fault = f"the prompt {one.name!r} of the package {one.package}: {error}"
        yield one._replace(fault=fault)


def find_prompt(name_or_path: str | Path) -> Prompt | GenerationPrompt:
    """Return a prompt by its name, or from a TOML file by its path.

    Raises:
        InputError: The name is unknown, the file cannot be read, the declaration is invalid, or it
            uses the name of a bundled prompt for another text.
    """
    name = os.fspath(name_or_path)
    if name in PROMPTS.built_in:
        return _bundled(name)
    prompt = _parse(toml_of(name), name)
    if prompt.name in PROMPTS.built_in and not _is_same(prompt, _bundled(prompt.name)):
        raise InputError(
            f"'{prompt.name}' is the name of a bundled prompt with another text",
            file=name,
            field="name",
            hint="Use another name for your prompt, so that its grades are distinguishable",
        )
    return prompt


def load_grading_prompt(name_or_path: str | Path) -> Prompt:
    """Return a prompt that grades (see `find_prompt`); raise InputError for any other."""
    prompt = find_prompt(name_or_path)
    if isinstance(prompt, Prompt):
        return prompt
    raise InputError(
        f"the prompt '{prompt.name}' generates items and cannot grade",
        hint=f"Use it with exampp bank generate, or use one of {', '.join(_GRADING)}",
    )


def load_generation(name_or_path: str | Path) -> GenerationPrompt:
    """Return a prompt that generates items (see `find_prompt`); raise InputError for others."""
    prompt = find_prompt(name_or_path)
    if isinstance(prompt, GenerationPrompt):
        return prompt
    raise InputError(
        f"the prompt '{prompt.name}' grades and cannot generate items",
        hint=f"Use it with exampp grade, or use one of {', '.join(_GENERATING)}",
    )


def load_named(name: str) -> Prompt:
    """Return a prompt by a name from data, never from a file."""
    if name not in PROMPTS:
        raise _unknown(name)
    return load_grading_prompt(name)


def toml_of(name_or_path: str | Path) -> str:
    """Return the declaration of a prompt as TOML; raise InputError if it cannot be read."""
    name = os.fspath(name_or_path)
    if name in PROMPTS.built_in:
        return PROMPTS.built_in[name]
    path = Path(name)
    if path.suffix != SUFFIX and len(path.parts) < 2 and not os.path.exists(name):  # noqa: PTH110
        if (text := PROMPTS.get(name)) is None:
            raise _unknown(name)
        return text
    try:
        return check_path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            "the prompt file is not UTF-8", file=path, hint="Save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(
            f"the prompt file cannot be read: {error.strerror}",
            file=path,
            hint="Check the path, or give the name of a bundled prompt (exampp prompts)",
        ) from None


@cache
def _bundled(name: str) -> Prompt | GenerationPrompt:
    return _parse(PROMPTS.built_in[name], f"{name}{SUFFIX}")


def _parse(text: str, file: str) -> Prompt | GenerationPrompt:
    data = parse_toml(text, file, _HINT)
    generates = "makes" in data and "grades" not in data
    return (
        generation.build_generation_prompt(data, file)
        if generates
        else prompt.build_prompt(data, file)
    )


def _is_same(one: Prompt | GenerationPrompt, other: Prompt | GenerationPrompt) -> bool:
    if isinstance(one, Prompt) and isinstance(other, Prompt):
        return prompt_content_hash(one) == prompt_content_hash(other)
    return one == other


def _unknown(name: str) -> InputError:
    near, known = by_workbench_class(name), PROMPTS.names()
    return InputError(
        f"unknown prompt '{name}'",
        hint=(f"Did you mean '{near}'?" if near else suggest(name, known))
        or f"Use a name ({', '.join(known)}) or the path of a {SUFFIX} file",
    )


# ---- the Workbench -------------------------------------------------------------------------------


@cache
def _by_class() -> Mapping[str, str]:
    return {
        table["prompt_class"]: name
        for name in _GRADING
        for table in (
            load_grading_prompt(name).workbench,
            load_grading_prompt(name).workbench.get("verified", {}),
        )
        if "prompt_class" in table
    }


def by_workbench_class(prompt_class: str) -> str | None:
    """Return the bundled prompt that the reference calls `prompt_class`, or None.

    Source: Autograding Workbench, Table 2 and section 3.4 (prompt classes), and its program.
    """
    return _by_class().get(prompt_class)


def workbench_info(name: str, *, verified: bool = False, sent: str | None = None) -> dict[str, Any]:
    """Return the reference's `prompt_info` of a bundled prompt; empty for any other.

    It has no `prompt_class` if the reference has no class with this wording. `verified`: the
    replies were compared with known answers. `sent` is the hash of the sent text, if known; for
    another text the result is empty.
    """
    if name not in _GRADING or sent not in (None, prompt_content_hash(load_grading_prompt(name))):
        return {}
    info = dict(load_grading_prompt(name).workbench)
    of_verified = info.pop("verified", {"check_answer_key": True})
    return info | of_verified if verified else info
