"""How long a prompt may be on a server, and how long one is.

Which tokens a server makes is not known here, so texts are counted in pieces: a token of a model
for English holds as much as a piece or more. So a passage that is cut fits; one that is a little
shorter than the limit may lose its end for nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SECONDS = 10.0
"""For a server to say what it takes; one that is slower does not say it."""
_PIECE = re.compile(r" ?(?:[A-Za-z]{1,5}|[^A-Za-z\s])|\s")
_NAMES = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
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


async def context_of(client: AsyncOpenAI, model: str) -> int | None:
    """Tokens that prompt and reply may have together, as the server says; None if it does not.

    vLLM, SGLang, OpenRouter and others say it in the list of models, llama.cpp among its properties
    (per slot). Ollama says nothing and cuts prompts by itself.
    """
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    of_server = _context(await _told(client, f"{root}/props"), "default_generation_settings")
    models = await _told(client, "/models")
    listed = models.get("data")
    named = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    of_model = next((one for one in named if one.get("id") == model), {})
    return of_server or _context(of_model, "meta")


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
            found = place.get(name)
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
    return None
