"""Prompts as data: list and load them, fill them, read the replies. Sends nothing anywhere."""

from exampp.prompts.answers import Verified, verify
from exampp.prompts.catalogue import (
    all_prompts,
    by_workbench_class,
    find,
    load,
    load_generation,
    load_named,
    names,
    toml_of,
    workbench_info,
)
from exampp.prompts.generation import GenerationPrompt
from exampp.prompts.prompt import Filled, Prompt, content_hash, fill, fit
from exampp.prompts.replies import answer_text, read

__all__ = [
    "Filled",
    "GenerationPrompt",
    "Prompt",
    "Verified",
    "all_prompts",
    "answer_text",
    "by_workbench_class",
    "content_hash",
    "fill",
    "find",
    "fit",
    "load",
    "load_generation",
    "load_named",
    "names",
    "read",
    "toml_of",
    "verify",
    "workbench_info",
]
