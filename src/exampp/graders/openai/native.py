"""Replies by the protocols of Anthropic (Messages) and Google (generateContent): texts alone.

Sources: the reference of the Messages API (version 2026-10-21) and of `models.generateContent`
(v1), as their SDKs write and read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from exampp.errors import InputError
from exampp.graders.base import Usage
from exampp.graders.openai.failures import Malformed
from exampp.graders.openai.modes import Chat, Completion, replace_surrogates

REFUSED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")
"""Why Gemini stops where it refuses."""
OF_CHAT = ("reasoning_effort", "chat_template_kwargs")


@dataclass(frozen=True, slots=True)
class _Native(Chat):
    identity: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        chosen = self.sampling.chosen
        unknown = [name for name in OF_CHAT if name in chosen]
        if unknown:
            option = unknown[0].replace("_", "-")
            raise InputError(
                f"this protocol has no {option}",
                field=unknown[0],
                mend="Leave it out, or say it as the provider does, by --extra-body",
            )
        if self.sampling.max_tokens is None:
            raise InputError("max_tokens is None", mend="Give the longest reply, such as 512")

    def likeliest(self, top: int) -> dict[str, Any]:
        """Raises InputError: no token's probability is told."""
        what = f"this protocol tells no probabilities of {top} tokens"
        raise InputError(what, mend="Have texts read instead")


@dataclass(frozen=True, slots=True)
class Messages(_Native):
    """Asks a model of Anthropic. It has no seed, and current models take no temperature."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return "/messages"

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts."""
        texts: dict[str, Any] = {
            "messages": [{"role": "user", "content": replace_surrogates(user)}]
        }
        if system:
            texts["system"] = replace_surrogates(system)
        return self.request(texts, max_tokens)

    def read(self, data: Any) -> Completion:
        """What a message says; Malformed if it is none."""
        if not isinstance(data, dict) or not isinstance(data.get("content"), list):
            raise Malformed("it has no content")
        parts = [part for part in data["content"] if isinstance(part, dict)]
        texts = [part["text"] for part in parts if part.get("type") == "text"]
        thoughts = [str(part["thinking"]) for part in parts if part.get("type") == "thinking"]
        stop = data.get("stop_reason")
        if not all(isinstance(text, str) for text in texts):
            raise Malformed("its content is no text")
        return Completion(
            text="".join(texts),
            truncated=stop in ("max_tokens", "model_context_window_exceeded"),
            refusal="refusal" if stop == "refusal" else "",
            usage=_usage_of_message(data.get("usage")),
            first=(),
            thoughts="".join(thoughts),
        )


def _usage_of_message(usage: Any) -> Usage | None:
    """The tokens of a message: what came from the cache or went there was read, too."""
    if not isinstance(usage, dict) or "input_tokens" not in usage:
        return None
    cached = usage.get("cache_read_input_tokens") or 0
    stored = usage.get("cache_creation_input_tokens") or 0
    return Usage(usage["input_tokens"] + cached + stored, cached, usage.get("output_tokens") or 0)


_NAMES = {"temperature": "temperature", "seed": "seed", "top_p": "topP"}


@dataclass(frozen=True, slots=True)
class GenerateContent(_Native):
    """Asks a model of Google; `extra_body` goes into the request beside `generationConfig`."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return f"/models/{self.model.removeprefix('models/')}:generateContent"

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts."""
        chosen = self.sampling.chosen
        config = {_NAMES[name]: value for name, value in chosen.items()}
        texts: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": replace_surrogates(user)}]}],
            "generationConfig": {**config, "maxOutputTokens": max_tokens},
        }
        if system:
            texts["systemInstruction"] = {"parts": [{"text": replace_surrogates(system)}]}
        return {**texts, **self.sampling.extra_body}

    def read(self, data: Any) -> Completion:
        """What a reply says; Malformed if it is none."""
        if not isinstance(data, dict):
            raise Malformed("it is no object")
        usage = _usage_of_content(data.get("usageMetadata"))
        blocked = (data.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            return Completion("", False, str(blocked), usage, ())
        if not data.get("candidates"):
            raise Malformed("it has no candidates")
        first = data["candidates"][0]
        parts = (first.get("content") or {}).get("parts") or []
        said = [(str(one["text"]), bool(one.get("thought"))) for one in parts if "text" in one]
        finish = first.get("finishReason") or ""
        return Completion(
            text="".join(text for text, thought in said if not thought),
            truncated=finish == "MAX_TOKENS",
            refusal=finish if finish in REFUSED else "",
            usage=usage,
            first=(),
            thoughts="".join(text for text, thought in said if thought),
        )


def _usage_of_content(usage: Any) -> Usage | None:
    """The tokens of a reply of Gemini; thoughts are written, and billed as such."""
    if not isinstance(usage, dict) or "promptTokenCount" not in usage:
        return None
    written = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
    return Usage(usage["promptTokenCount"], usage.get("cachedContentTokenCount") or 0, written)
