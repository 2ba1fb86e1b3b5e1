"""Graders on servers of tests, made with as few words as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.options import OpenAIOptions, read_options


def openai_grader(
    model: str | None,
    base_url: str | None = None,
    api_key: str | None = None,
    labels: Sequence[str] = (),
    field: str = "",
    **options: Any,
) -> OpenAICompatibleGrader:
    """A grader with options; those that are None have no value, not their default."""
    given = {"model": model, "base_url": base_url, "api_key": api_key, **options}
    read = read_options(OpenAIOptions, given, "the grader openai")
    unset: dict[str, Any] = {name: None for name, value in options.items() if value is None}
    return OpenAICompatibleGrader(replace(read, **unset), labels, field)
