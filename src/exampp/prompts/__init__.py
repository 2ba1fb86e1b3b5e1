"""Prompts as data: list, load and fill them, and read replies. Nothing is sent."""

from exampp.prompts.answers import Verified, verify_answer
from exampp.prompts.catalogue import (
    all_prompts,
    by_workbench_class,
    find_prompt,
    load_generation,
    load_grading_prompt,
    load_named,
    names,
    toml_of,
    workbench_info,
)
from exampp.prompts.generation import GenerationPrompt
from exampp.prompts.prompt import Filled, Prompt, fill, fit_prompt, prompt_content_hash
from exampp.prompts.replies import answer_text, read_reply

__all__ = [
    "Filled",
    "GenerationPrompt",
    "Prompt",
    "Verified",
    "all_prompts",
    "answer_text",
    "by_workbench_class",
    "fill",
    "find_prompt",
    "fit_prompt",
    "load_generation",
    "load_grading_prompt",
    "load_named",
    "names",
    "prompt_content_hash",
    "read_reply",
    "toml_of",
    "verify_answer",
    "workbench_info",
]
