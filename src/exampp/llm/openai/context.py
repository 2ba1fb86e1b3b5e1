"""What a server says of itself: how long a prompt may be, and how many it answers at a time.

Which tokens a server makes is not known here, so texts are counted in pieces: a token of a model
for English holds as much as a piece or more. So a passage that is cut fits; one that is a little
shorter than the limit may lose its end for nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SECONDS = 10.0
"""For a server to say what it takes; one that is slower does not say it."""
_PIECE = re.compile(r" ?(?:[A-Za-z]{1,5}|[^A-Za-z\s])|\s")
_NAMES = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
_SLOTS = "total_slots"
_TELLS = re.compile(
    r"context (?:length|window|size)(?: is| of(?: only)?|:)? *\(?(\d[\d,]*)"
    r"|(\d[\d,]*)(?: tokens?)? (?:is the )?maximum|> *(\d[\d,]*)|(?:<=|less than) *(\d[\d,]*)"
    r"|(?:maximum|limit|at most)[^.\d]{0,40}?(\d[\d,]*)",
    re.IGNORECASE,
)
"""The number in a refusal that is what a server takes, not what it was sent."""
_FEWEST, _MOST = 16, 10**8
"""Tokens that a context may have; other numbers are something else, such as a code of HTTP."""


def context_in(said: str, error: Mapping[str, Any]) -> int | None:
    """Tokens that prompt and reply may have together, out of a refusal; None where it says none.

    llama.cpp says it beside its message, others in it.
    """
    if found := _context(error, ""):
        return found
    for number in _TELLS.finditer(said):
        tokens = int(next(filter(None, number.groups())).replace(",", ""))
        if _FEWEST <= tokens <= _MOST:
            return tokens
    return None


def pieces(text: str) -> list[tuple[int, int]]:
    """The (start, end) characters of each piece: up to five letters, or one other character."""
    return [piece.span() for piece in _PIECE.finditer(text)]


class ServerProperties(NamedTuple):
    """What a server says; None where it says nothing.

    `context` is how many tokens prompt and reply may have together. `slots` is how many requests
    llama.cpp works on at a time, each in a slot that keeps what it has read.
    """

    context: int | None = None
    slots: int | None = None


async def properties_of(client: AsyncOpenAI, model: str) -> ServerProperties:
    """Ask a server what it is.

    vLLM, SGLang, OpenRouter and others tell the context in the list of models, llama.cpp among its
    properties (per slot). Ollama says nothing and cuts prompts by itself.
    """
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    properties = await _told(client, f"{root}/props")
    of_server = _context(properties, "default_generation_settings")
    models = await _told(client, "/models")
    listed = models.get("data")
    named = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    of_model = next((one for one in named if one.get("id") == model), {})
    return ServerProperties(of_server or _context(of_model, "meta"), _count(properties, _SLOTS))


async def _told(client: AsyncOpenAI, path: str) -> Mapping[str, Any]:
    import httpx2
    import openai

    try:
        async with asyncio.timeout(SECONDS):
            response = await client.get(path, cast_to=httpx2.Response)
        data = json.loads(response.content)
    except (openai.APIError, TimeoutError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, Mapping) else {}


def _context(told: Mapping[str, Any], inner: str) -> int | None:
    within = told.get(inner)
    for place in (told, within if isinstance(within, Mapping) else {}):
        for name in _NAMES:
            if found := _count(place, name):
                return found
    return None


def _count(told: Mapping[str, Any], name: str) -> int | None:
    found = told.get(name)
    if isinstance(found, int) and not isinstance(found, bool) and found > 0:
        return found
    return None
