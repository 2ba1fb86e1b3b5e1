"""The prompts that come with exampp, and those of a user's own file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exampp.errors import InputError
from exampp.plugins import Plugin
from exampp.prompts import files, generation
from exampp.prompts.generation import GenerationPrompt
from exampp.prompts.prompt import Prompt, content_hash, parse
from exampp.records.toml import parse_toml
from exampp.records.wording import suggest

_FOLDER = "catalogue"


@cache
def _bundled_prompts() -> Mapping[str, Prompt]:
    return MappingProxyType(
        {name: parse(text, f"{name}.toml") for name, text in files.bundled_texts(_FOLDER).items()}
    )


@cache
def _by_class() -> Mapping[str, str]:
    return MappingProxyType(
        {
            table["prompt_class"]: prompt.name
            for prompt in _bundled_prompts().values()
            for table in (prompt.workbench, prompt.workbench.get("verified", {}))
            if "prompt_class" in table
        }
    )


def names() -> tuple[str, ...]:
    """Names of the bundled prompts that grade, sorted."""
    return tuple(_bundled_prompts())


def all_prompts() -> tuple[Prompt | GenerationPrompt, ...]:
    """All bundled prompts: those that grade, then those that ask for the items of a bank.

    Last come those of packages, as far as they can be loaded; `plugins` says which cannot.
    """
    added = (find(one.name) for one in plugins() if not one.fault)
    return (*_bundled_prompts().values(), *map(generation.load, generation.names()), *added)


def plugins() -> Iterator[Plugin]:
    """The prompts of packages, and what is wrong with them."""
    for one in files.PROMPTS.plugins():
        fault = one.fault
        if not fault:
            try:
                find(one.name)
            except InputError as error:
                fault = f"the prompt {one.name!r} of the package {one.package}: {error}"
        yield one._replace(fault=fault)


def load(name_or_path: str | Path) -> Prompt:
    """A bundled prompt by its name, or a prompt from a TOML file by its path.

    Raises InputError for a name that is not known, a file that cannot be read, a declaration
    that is not as it must be, and a file that gives the name of a bundled prompt to another text.
    """
    name = os.fspath(name_or_path)
    if name in _bundled_prompts():
        return _bundled_prompts()[name]
    if name in generation.names():
        raise InputError(
            f"the prompt '{name}' asks for the items of a bank, and grades nothing",
            mend=f"give it to exampp bank generate, or give one of {', '.join(names())}",
        )
    if not files.is_there(name):
        raise _unknown(name, names())
    return _checked(parse(files.read_declaration(name), name), name)


def load_named(name: str) -> Prompt:
    """A prompt that comes with exampp or a package, by a name out of data: never a file.

    Raises InputError for any other name.
    """
    if name not in _bundled_prompts() and (files.is_path(name) or name not in files.PROMPTS):
        raise _unknown(name, names())
    return load(name)


def find(name_or_path: str | Path) -> Prompt | GenerationPrompt:
    """A bundled prompt or one of a file, whether it grades or asks for items.

    Raises InputError as `load` does.
    """
    name = os.fspath(name_or_path)
    if name in _bundled_prompts():
        return load(name)
    if name in generation.names():
        return generation.load(name)
    if not files.is_there(name):
        raise _unknown(name, files.PROMPTS.names())
    asks_for_items = "makes" in parse_toml(files.read_declaration(name), name)
    return generation.load(name) if asks_for_items else load(name)


def toml_of(name_or_path: str | Path) -> str:
    """The declaration of a prompt as TOML: a file to start from, which loads as the same prompt.

    Raises InputError as `load` does.
    """
    prompt = find(name_or_path)
    name = os.fspath(name_or_path)
    for folder in (_FOLDER, generation.FOLDER):
        if name in files.bundled_texts(folder):
            return files.bundled_texts(folder)[prompt.name]
    return files.read_declaration(name)


def _unknown(name: str, known: tuple[str, ...]) -> InputError:
    near = _by_class().get(name)
    return InputError(
        f"there is no prompt called '{name}'",
        mend=(f"did you mean '{near}'?" if near else suggest(name, known))
        or f"give a name ({', '.join(known)}) or the path of a {files.SUFFIX} file",
    )


def _checked(prompt: Prompt, path: str) -> Prompt:
    twin = _bundled_prompts().get(prompt.name)
    if twin is not None and content_hash(twin) != content_hash(prompt):
        raise InputError(
            f"'{prompt.name}' is the name of a bundled prompt with another text",
            file=path,
            field="name",
            mend="give your prompt a name of its own, so that its grades are not taken for others",
        )
    return prompt


def by_workbench_class(prompt_class: str) -> str | None:
    """Name of the bundled prompt that the reference calls `prompt_class`; None if it has none.

    Source: Autograding Workbench, Table 2 and section 3.4 (prompt classes), and its program.
    """
    return _by_class().get(prompt_class)


def workbench_info(name: str, *, verified: bool = False, sent: str | None = None) -> dict[str, Any]:
    """What the reference's `prompt_info` says of a bundled prompt; empty for any other.

    Without `prompt_class` where the reference has no class of this wording. `verified` tells that
    known answers were compared with the replies, `sent` is the hash of what was sent where it is
    known: of another text nothing is said.
    """
    prompt = _bundled_prompts().get(name)
    if prompt is None or sent not in (None, content_hash(prompt)):
        return {}
    info = dict(prompt.workbench)
    of_verified = info.pop("verified", {"check_answer_key": True})
    return info | of_verified if verified else info
