"""Prompts declared in TOML."""

from pathlib import Path

from exampp.prompts.prompt import Prompt, build_prompt
from exampp.records.toml import parse_toml


def parse_prompt(text: str, file: str | Path | None = None) -> Prompt:
    """Return the prompt of a declaration."""
    return build_prompt(parse_toml(text, file), file)
