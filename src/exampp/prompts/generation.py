"""Prompts that ask for the items of a bank: the papers', and those of a user's own file.

A template may use the slots `{query_text}` and `{query_title}` (both are the query's text),
`{query_subtopic}` and `{instruction}`. The last says how to reply, and may use these slots;
where a template does not use it, it is appended. `{passages}` are passages with their numbers,
`{known}` the items that there are, as a Python list, and `{known_count}` how many.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exampp.errors import InputError
from exampp.prompts import files
from exampp.prompts.declaration import PLACEHOLDER, no_slot, placeholders, suggest, used_slots
from exampp.records.ids import content_hash
from exampp.records.toml import parse_toml

MAKES = ("question", "nugget")
SLOTS = ("query_text", "query_title", "query_subtopic", "passages", "known", "known_count")
WINDOW = 10
"""Passages that a prompt with `{passages}` shows where nobody says how many, as nuggetizer does."""
PASSAGE_CHARACTERS = 2000
"""A passage that a prompt is grounded in is cut after so many characters, at a word."""
FOLDER = "generation"
_KEYS = ("name", "title", "source", "makes", "user", "system", "instruction", "keys_instruction")
_REQUIRED = ("name", "makes", "user")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
_INSTRUCTION = (
    "Give the {one} set in the following JSON format: "
    '```json {{ "{many}" : [{one}_text_1, {one}_text_2, ...] }}```'
)
_KEYS_INSTRUCTION = (
    "Give the {one} set, each {one} with a short correct answer, in the following JSON format: "
    '```json {{ "{many}" : [{{ "{one}" : {one}_text_1, "answer" : answer_text_1 }}, '
    '{{ "{one}" : {one}_text_2, "answer" : answer_text_2 }}, ...] }}```'
)
_MORE = (
    "The test bank has the following {many} already:\n{known}\nGive exactly {count} new {many} "
    "instead, about what none of these covers. "
)
_GROUNDED = "Ask only for what these passages say.\n{passages}\n"


@dataclass(frozen=True, slots=True)
class GenerationPrompt:
    """What a model is asked for items; `makes` is their kind, question or nugget.

    `instruction` says how to reply, `keys_instruction` the same where answer keys are asked for.
    """

    name: str
    title: str
    source: str
    makes: str
    user: str
    system: str
    instruction: str
    keys_instruction: str

    @property
    def needs_subtopic(self) -> bool:
        """Whether it asks about a subtopic of a query."""
        texts = (self.user, self.system, self.instruction, self.keys_instruction)
        return any("query_subtopic" in placeholders(text) for text in texts)

    @property
    def needs_passages(self) -> bool:
        """Whether it makes items out of passages."""
        return "passages" in placeholders(self.user)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for beyond the prompt: `keys` wants answers, `more` so many others than
    those that are known (0: no such wish), `grounded` shows so many passages.
    """

    keys: bool = False
    more: int = 0
    grounded: int = 0


def prompt_hash(prompt: GenerationPrompt, wish: Wish) -> str:
    """SHA-256 over what determines the request, apart from the texts of query and passages."""
    instruction = prompt.keys_instruction if wish.keys else prompt.instruction
    extras = [str(wish.grounded)] if wish.grounded else []
    extras += [f"more {wish.more}"] if wish.more else []
    return content_hash(prompt.makes, prompt.system, prompt.user, instruction, *extras)


def fill_request(
    prompt: GenerationPrompt,
    wish: Wish,
    query_text: str,
    subtopic: str = "",
    *,
    known: Sequence[str] = (),
    passages: Sequence[str] = (),
) -> tuple[str, str]:
    """The system and the user text of one request; all texts are put in literally."""
    slots = {
        "query_text": query_text,
        "query_title": query_text,
        "query_subtopic": subtopic,
        "passages": "\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1)),
        "known": repr(list(known)),
        "known_count": str(len(known)),
    }

    def put(match: re.Match[str]) -> str:
        return slots[match[2]] if match[2] else f"{{{match[1]}}}"

    asked = prompt.keys_instruction if wish.keys else prompt.instruction
    instruction = PLACEHOLDER.sub(put, asked)
    many = f"{prompt.makes}s"
    used = {*placeholders(prompt.user), *placeholders(prompt.system)}
    if "known" in used:
        pass
    elif wish.more and known:
        listed = "\n".join(f"- {text}" for text in known)
        instruction = _MORE.format(many=many, known=listed, count=wish.more) + instruction
    elif wish.more:
        instruction = f"Give exactly {wish.more} {many}. {instruction}"
    if passages and "passages" not in used:
        listed = "\n".join(f"Passage {n}: {_short(text)}" for n, text in enumerate(passages, 1))
        instruction = _GROUNDED.format(passages=listed) + instruction
    slots["instruction"] = instruction
    user = PLACEHOLDER.sub(put, prompt.user)
    if instruction and "instruction" not in used:
        user = f"{user.rstrip()} {instruction}"
    return PLACEHOLDER.sub(put, prompt.system), user


def _short(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) <= PASSAGE_CHARACTERS:
        return flat
    return flat[:PASSAGE_CHARACTERS].rpartition(" ")[0] or flat[:PASSAGE_CHARACTERS]


# ---- loading -------------------------------------------------------------------------------------


@cache
def _bundled() -> Mapping[str, GenerationPrompt]:
    return MappingProxyType(
        {name: parse(text, f"{name}.toml") for name, text in files.bundled(FOLDER).items()}
    )


def names() -> tuple[str, ...]:
    """Names of the bundled prompts, sorted."""
    return tuple(_bundled())


def load(name_or_path: str | Path) -> GenerationPrompt:
    """A bundled prompt by its name, or a prompt from a TOML file by its path.

    Raises InputError for a name that is not known, a file that cannot be read, and a declaration
    that is not as it must be.
    """
    name = os.fspath(name_or_path)
    if name in _bundled():
        return _bundled()[name]
    if not files.is_there(name):
        raise InputError(
            f"there is no prompt called '{name}' that asks for items",
            mend=suggest(name, names())
            or f"give a name ({', '.join(names())}) or the path of a {files.SUFFIX} file",
        )
    prompt = parse(files.read(name), name)
    if _bundled().get(prompt.name, prompt) != prompt:
        raise InputError(
            f"'{prompt.name}' is the name of a bundled prompt with another text",
            file=name,
            field="name",
            mend="give your prompt a name of its own",
        )
    return prompt


def parse(text: str, file: str | Path | None = None) -> GenerationPrompt:
    """Read one declaration; InputError, with the place and the mend, for one that is wrong."""
    data = parse_toml(text, file, "start from a bundled prompt: exampp prompts show NAME --toml")
    if "grades" in data and "makes" not in data:
        raise InputError(
            "this prompt grades, and asks for no items of a bank",
            file=file,
            field="grades",
            mend="give it to exampp grade, or say what it makes: question or nugget",
        )
    for field, what, mend in _faults(data):
        raise InputError(what, file=file, field=field, mend=mend)
    words = {"one": data["makes"], "many": f"{data['makes']}s"}
    given = {"title": "", "source": "", "system": "", **data}
    return GenerationPrompt(
        name=given["name"],
        title=given["title"],
        source=given["source"],
        makes=given["makes"],
        user=given["user"],
        system=given["system"],
        instruction=given.get("instruction", _INSTRUCTION.format(**words)),
        keys_instruction=given.get("keys_instruction", _KEYS_INSTRUCTION.format(**words)),
    )


def _faults(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a declaration: the field, the fault, the mend."""
    for key, value in data.items():
        if key not in _KEYS:
            mend = suggest(key, _KEYS) or f"known keys are {', '.join(_KEYS)}"
            yield key, f"unknown key '{key}'", mend
        elif not isinstance(value, str):
            yield key, f"'{key}' is {json.dumps(value, default=str)}", "give a text"
    for key in _REQUIRED:
        if not str(data.get(key, "")).strip():
            yield key, f"'{key}' is missing", "give a text that is not empty"
    yield from _value_faults(data)


def _value_faults(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if not _NAME.fullmatch(data["name"]):
        yield "name", f"'{data['name']}' is no short name", "use a-z, 0-9, dots and dashes"
    if data["makes"] not in MAKES:
        yield (
            "makes",
            f"'{data['makes']}' is nothing that a bank holds",
            f"give one of {', '.join(MAKES)}",
        )
    texts = used_slots(data, ("user", "system"))
    instructions = used_slots(data, ("instruction", "keys_instruction"))
    for used, known in ((texts, (*SLOTS, "instruction")), (instructions, SLOTS[:3])):
        for slot, key in used.items():
            if slot not in known:
                what, mend = no_slot(slot, known)
                yield key, what, mend
    if not {"query_text", "query_title"} & set(texts):
        yield "user", "the text does not say which query", "write {query_text} into it"
