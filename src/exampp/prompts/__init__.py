"""Prompts as data: list and load them, fill them, read the replies. Sends nothing anywhere."""

from exampp.prompts.catalogue import (
    by_workbench_class,
    every,
    find,
    load,
    load_named,
    names,
    toml_of,
    workbench_info,
)
from exampp.prompts.declaration import Prompt, content_hash
from exampp.prompts.generation import GenerationPrompt
from exampp.prompts.reading import answer_text, read
from exampp.prompts.render import Filled, fill, fit
from exampp.prompts.verification import Verified, verify

__all__ = [
    "Filled",
    "GenerationPrompt",
    "Prompt",
    "Verified",
    "answer_text",
    "by_workbench_class",
    "content_hash",
    "every",
    "fill",
    "find",
    "fit",
    "load",
    "load_named",
    "names",
    "read",
    "toml_of",
    "verify",
    "workbench_info",
]
