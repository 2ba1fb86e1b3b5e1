"""Replies by the completions endpoint: the model goes on writing where the prompt ends.

There is no chat template: the texts are sent as they stand, the system text before the user's. The
papers' banks were written by an instruct model through this endpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from exampp.errors import InputError
from exampp.llm.openai.chat import (
    Chat,
    CompletionParts,
    encodable,
    first_choice,
    first_tokens,
    read_usage,
)
from exampp.llm.openai.trouble import Malformed

PATH = "/completions"
OF_CHAT = ("reasoning_effort", "chat_template_kwargs")


@dataclass(frozen=True, slots=True)
class Completions(Chat):
    """Asks one model for the continuation of a text.

    Raises:
        InputError: an option is given that only a chat has.

    """

    identity: ClassVar[Mapping[str, Any]] = {"endpoint": "completions"}

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return PATH

    def __post_init__(self) -> None:
        idle = [name for name in OF_CHAT if name in self.sampling.chosen]
        if idle:
            raise InputError(
                f"the completions endpoint has no {idle[0]}",
                field=idle[0],
                mend="Leave it out, or ask by --endpoint chat",
            )

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts; its end is bare, for a label to follow behind a blank."""
        text = f"{system}\n{user}" if system else user
        return self.request({"prompt": encodable(text.rstrip())}, max_tokens)

    def likeliest(self, top: int) -> dict[str, Any]:
        """What a request says to be told so many likeliest tokens."""
        return {"logprobs": top}

    def read(self, data: Any) -> CompletionParts:
        """What an answer says; Malformed if it is none."""
        choice = first_choice(data)
        text = choice["text"]
        if not isinstance(text, str):
            raise Malformed("its text is no text")
        finish = choice.get("finish_reason") or ""
        return CompletionParts(
            text=text,
            truncated=finish == "length",
            refusal=finish if finish == "content_filter" else "",
            usage=read_usage(data),
            first=_first(choice.get("logprobs") or {}),
        )


def _first(logprobs: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens, as llama.cpp tells them or as OpenAI and vLLM do."""
    if content := logprobs.get("content"):
        return first_tokens(content[0])
    top = (logprobs.get("top_logprobs") or [{}])[0] or {}
    said = zip(logprobs.get("tokens") or (), logprobs.get("token_logprobs") or (), strict=False)
    chances = {**dict(list(said)[:1]), **top}
    found = [(str(token), math.exp(min(float(one), 0.0))) for token, one in chances.items()]
    if any(math.isnan(chance) for _, chance in found):
        raise Malformed("a log-probability is no number")
    return tuple(found)
