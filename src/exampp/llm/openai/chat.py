"""Replies by chat completion: as text, as probabilities of labels, as JSON under a schema.

One ask is one request. What a mode adds to the request and how it reads the answer is all that
tells the modes apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeGuard

from exampp.errors import InputError
from exampp.llm.base import MOST_TOKENS, Ask, Reply, Usage
from exampp.llm.openai.dialect import LIMIT
from exampp.llm.openai.trouble import Malformed

PATH = "/chat/completions"
TOP_LOGPROBS = 20
"""Most servers give no more."""

TEXT_PARTS = ("text", "output_text")
"""Types of the parts of a message that are what the model says."""
THOUGHT_PARTS = ("thinking", "reasoning", "thought", "reasoning_content")
"""Types of the parts that are what it thinks, and their keys."""
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Fields of a message beside its content: vLLM, SGLang, DeepSeek; Ollama, OpenRouter."""

JSON_NAME = "grade"
_MESSAGE_KEYS = ("model", "messages", "prompt", "input", "state", "questions", "stream", "n")
_REPLY_KEYS = ("temperature", "seed", "max_tokens", "logprobs", "top_logprobs", "response_format")
OWN_KEYS = frozenset(_MESSAGE_KEYS + _REPLY_KEYS)


def encodable(text: str) -> str:
    """The text with lone surrogates as `?`, because no request can carry them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is to reply; what is None is left to the server.

    `max_tokens` bounds a reply that is a text or JSON. `chat_template_kwargs` are options of the
    model's chat template, as vLLM, SGLang and llama.cpp take them. `extra_body` is put into every
    request as it is, for what one server has and others do not; it is part of a grader's settings
    and no place for secrets.

    Raises:
        InputError: `extra_body` sets what the grader sets itself, or a number is out of its range.

    """

    temperature: float | None = 0.0
    seed: int | None = 0
    max_tokens: int | None = 512
    top_p: float | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        own = sorted((OWN_KEYS | self.chosen.keys()) & self.extra_body.keys())
        if own:
            what = f"extra_body sets {', '.join(own)}"
            raise InputError(what, field="extra_body", mend="These have arguments of their own")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise InputError(f"temperature is {self.temperature}", mend="Give 0 or more")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}", mend="Give more than 0, and 1 at most")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}", mend="Give 1 or more")

    @property
    def chosen(self) -> dict[str, Any]:
        """What is asked of a server where it is given, under the names of the protocol."""
        given = {
            "temperature": self.temperature,
            "seed": self.seed,
            "top_p": self.top_p,
            "reasoning_effort": self.reasoning_effort,
            "chat_template_kwargs": dict(self.chat_template_kwargs) or None,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Chat:
    """Asks one model by chat completion."""

    model: str
    sampling: Sampling = field(default_factory=Sampling)

    identity: ClassVar[Mapping[str, Any]] = {}

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return PATH

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts."""
        messages = [{"role": "system", "content": encodable(system)}] if system else []
        messages.append({"role": "user", "content": encodable(user)})
        return self.request({"messages": messages}, max_tokens)

    def request(self, texts: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        """A request with texts in the endpoint's own shape."""
        sampling = self.sampling
        limit = {} if max_tokens is None else {LIMIT: max_tokens}
        return {"model": self.model, **texts, **sampling.chosen, **limit, **sampling.extra_body}

    def likeliest(self, top: int) -> dict[str, Any]:
        """What a request says to be told so many likeliest tokens."""
        return {"logprobs": True, "top_logprobs": top}

    def read(self, data: Any) -> CompletionParts:
        """What an answer says; Malformed if it is none."""
        return read_said(data)

    def settings(self, max_tokens: int | None) -> dict[str, Any]:
        """What of it determines a reply, JSON-able."""
        given = {
            "max_tokens": max_tokens,
            "extra_body": dict(self.sampling.extra_body) or None,
        }
        named = {name: value for name, value in given.items() if value is not None}
        return {**self.identity, **self.sampling.chosen, **named}


@dataclass(frozen=True, slots=True)
class CompletionParts:
    """The parts of a completion that count; `thoughts` are what the server told apart."""

    text: str
    truncated: bool
    refusal: str
    usage: Usage | None
    first: tuple[tuple[str, float], ...]
    thoughts: str = ""

    @property
    def detail(self) -> dict[str, Any]:
        """What is kept with the reply."""
        refused = {"refusal": True, "reason": self.refusal} if self.refusal else {}
        return refused | ({"thoughts": self.thoughts} if self.thoughts else {})


def read_usage(data: Any) -> Usage | None:
    """The tokens of a reply; None where the server tells none."""
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return None
    read = usage.get("prompt_tokens", usage.get("input_tokens"))
    written = usage.get("completion_tokens", usage.get("output_tokens"))
    if not _is_count(read) or not _is_count(written):
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(read, min(cached, read) if _is_count(cached) else 0, written)


def _is_count(value: object) -> TypeGuard[int]:
    """Whether a server can mean it: a budget is not kept by what nobody believes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def read_said(data: Any) -> CompletionParts:
    """The parts of a chat completion; Malformed if it is none."""
    choice = first_choice(data)
    message = choice["message"]
    content = _parts(message.get("content") or "")
    finish = choice.get("finish_reason") or ""
    fields = (message.get(name) for name in THOUGHT_FIELDS)
    thought = next((field for field in fields if isinstance(field, str) and field), "")
    refused = message.get("refusal") or content.refusal
    refusal = refused or (finish if finish == "content_filter" else "")
    logprobs = (choice.get("logprobs") or {}).get("content") or []
    return CompletionParts(
        text=content.text or str(refused),
        truncated=finish == "length",
        refusal=str(refusal),
        usage=read_usage(data),
        first=first_tokens(logprobs[0]) if logprobs else (),
        thoughts=content.thoughts or thought,
    )


def first_choice(data: Any) -> Any:
    """The one completion in an answer; Malformed if there is none."""
    if not isinstance(data, dict) or not data.get("choices"):
        raise Malformed("it has no choices")
    return data["choices"][0]


class _Content(NamedTuple):
    text: str
    thoughts: str
    refusal: str


def _parts(content: Any) -> _Content:
    """What the model says, what it thinks and why it refuses, of a content that may be a list."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part["text"] for part in parts if part["type"] in TEXT_PARTS]
    thoughts = [_thought(part) for part in parts if part["type"] in THOUGHT_PARTS]
    refusals = [str(part["refusal"]) for part in parts if part["type"] == "refusal"]
    if not (texts or thoughts or refusals) or not all(isinstance(text, str) for text in texts):
        raise Malformed("its content is no text")
    return _Content("".join(texts), "".join(thoughts), "".join(refusals))


def _thought(part: Mapping[str, Any]) -> str:
    """The text of a thought, which may be in parts itself."""
    said = next((part[key] for key in (part["type"], "text", "summary") if part.get(key)), "")
    inner = said if isinstance(said, list) else [said]
    return "".join(str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in inner)


def first_tokens(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens with their probabilities, the one that was said among them."""
    top = list(token.get("top_logprobs") or [])
    if token["token"] not in [one["token"] for one in top]:
        top.append(token)
    # different tokens can have the same text: parts of characters are all shown as one sign
    chances = [(str(one["token"]), math.exp(min(float(one["logprob"]), 0.0))) for one in top]
    if any(math.isnan(chance) for _, chance in chances):
        raise Malformed("a log-probability is no number")
    return tuple(chances)


class ReadReplies(NamedTuple):
    """Replies in the order of their asks, and the tokens of the request where they are known."""

    replies: list[Reply]
    usage: Usage | None


class Mode(Protocol):
    """A way of asking; `most` asks about one passage go into one request, to `path`."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        ...

    @property
    def most(self) -> int:
        """Asks that one request can hold."""
        ...

    @property
    def max_written(self) -> int | None:
        """Tokens that the server writes for an ask at most; None if there is no limit."""
        ...

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able."""
        ...

    def texts(self, ask: Ask) -> tuple[str, ...]:
        """What is sent for an ask."""
        ...

    def body(self, asks: Sequence[Ask]) -> dict[str, Any]:
        """The request for asks about one passage."""
        ...

    def read(self, data: Any, asks: Sequence[Ask]) -> ReadReplies:
        """Their replies; Malformed if the answer is not of its shape."""
        ...


@dataclass(frozen=True, slots=True)
class TextMode:
    """The reply is what the model writes; with a `schema` it writes nothing else than such JSON."""

    chat: Chat
    schema: Mapping[str, Any] | None = None

    most = 1

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return self.chat.path

    @property
    def max_written(self) -> int | None:
        """Tokens of a reply at most; None if there is no limit."""
        return self.chat.sampling.max_tokens

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able."""
        chosen = {"decode": "json", "schema": self.schema} if self.schema else {"decode": "text"}
        return {**chosen, **self.chat.settings(self.max_written)}

    def texts(self, ask: Ask) -> tuple[str, ...]:
        """The two messages."""
        return ask.system, ask.user

    def body(self, asks: Sequence[Ask]) -> dict[str, Any]:
        """The request for one ask."""
        body = self.chat.body(asks[0].system, asks[0].user, self.max_written)
        if self.schema:
            schema = {"name": JSON_NAME, "strict": True, "schema": self.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def read(self, data: Any, asks: Sequence[Ask]) -> ReadReplies:
        """The text of the reply, whatever it is."""
        del asks
        said = self.chat.read(data)
        usage = said.usage or Usage()
        reply = Reply(said.text, truncated=said.truncated, usage=usage, detail=said.detail)
        return ReadReplies([reply], said.usage)


def json_schema(labels: Sequence[str], name: str) -> dict[str, Any]:
    """An object whose one field is one of the labels (numbers if all are), or without any a text.

    Raises:
        InputError: no field was declared.

    """
    if not name:
        raise InputError(
            "decode 'json' needs the field of the reply that counts",
            field="field",
            mend="Declare `field` in the prompt, or choose another decode",
        )
    value: dict[str, Any] = {"type": "string"}
    if labels and all(is_whole(label) for label in labels):
        value = {"type": "integer", "enum": [int(label) for label in labels]}
    elif labels:
        value = {"type": "string", "enum": list(labels)}
    return {
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": False,
    }


def is_whole(label: str) -> bool:
    """Whether a label is a whole number as JSON writes it."""
    try:
        return str(int(label)) == label
    except ValueError:
        return False
