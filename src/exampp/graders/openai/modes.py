"""Form of a request, and how its reply is read.

A text reply is free text; with JSON, the server enforces a schema. With labels, the reply is read
from the likeliest first tokens: every token counts for the label that it equals apart from spaces
and case (`4`, ` 4`; `Yes`, `yes`), and the probabilities are renormalised over the labels. The
reply is the likeliest label. If the labels have less than `least_mass`, the model would write
something else first: the reply is then that first token, truncated and without probabilities.
Source: probabilities of the ratings instead of one greedy digit as in G-Eval (Liu et al., EMNLP
2023).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple, TypeGuard

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, MOST_TOKENS, Reply, Request, Usage
from exampp.graders.openai.client import Malformed
from exampp.graders.options import LIMIT, OpenAIOptions
from exampp.prompts.reply_fields import reply_schema

TOP_LOGPROBS = 20
"""Maximum of most servers."""
TEXT_PARTS = ("text", "output_text")
"""Types of message parts that are its text."""
THOUGHT_PARTS = ("thinking", "reasoning", "thought", "reasoning_content")
"""Types of parts with reasoning, and their keys."""
CALL_PARTS = ("tool_use", "tool_call", "function_call")
"""Types of parts that call a tool."""
CALLED = ("function", "custom")
"""Keys of a call that has its name and arguments one level below."""
ARGUMENTS = ("arguments", "input", "parameters")
"""Keys of the arguments of a call."""
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Reasoning fields of a message: vLLM, SGLang, DeepSeek; Ollama, OpenRouter."""
BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Spaces, also as SentencePiece and byte-level BPE write them in raw pieces."""


class ReadReplies(NamedTuple):
    """Replies in the order of their requests, and their total tokens if known."""

    replies: list[Reply]
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Completion:
    """The relevant parts of a completion.

    `first` are the likeliest first tokens, `called` the names of tools that the model called.
    """

    text: str
    truncated: bool
    refusal: str
    usage: Usage | None
    first: tuple[tuple[str, float], ...]
    thoughts: str = ""
    called: tuple[str, ...] = ()

    @property
    def detail(self) -> dict[str, Any]:
        """Details that are stored with the reply."""
        refused = {"refusal": True, "reason": self.refusal} if self.refusal else {}
        called = {"called": list(self.called)} if self.called else {}
        return refused | ({"thoughts": self.thoughts} if self.thoughts else {}) | called


@dataclass(frozen=True, slots=True)
class Mode:
    """Form of requests and replies; `decode` is text, json (with a `field`) or labels.

    One request can serve up to `most` cells.

    Raises:
        InputError: The labels or the field do not match the decode.
    """

    options: OpenAIOptions
    decode: str = "text"
    labels: tuple[str, ...] = ()
    field: str = ""
    top: int = TOP_LOGPROBS
    reply: tuple[str, ...] = ()

    most = 1
    path = "/chat/completions"

    def __post_init__(self) -> None:
        if self.decode == "labels":
            check_labels(self.labels)
            if self.reply:
                raise InputError(
                    f"the prompt asks for {', '.join(self.reply)}; labels give only the rating",
                    field="decode",
                    hint="Use --decode json or text",
                )
        if self.decode == "json" and not self.field:
            raise InputError(
                "decode 'json' needs a field of the reply",
                field="field",
                hint="Declare `field` in the prompt, or use another decode",
            )

    @property
    def max_written(self) -> int | None:
        """Maximum tokens of a reply; None without a limit."""
        return 1 if self.decode == "labels" else self.options.max_new_tokens

    @property
    def least_mass(self) -> float:
        """Minimum total probability of the labels."""
        return LEAST_MASS if self.options.least_mass is None else self.options.least_mass

    def settings(self) -> dict[str, Any]:
        """Return what determines a reply; `top` only limits how much of it is visible."""
        parts: dict[str, Any] = {"decode": self.decode}
        if self.decode == "labels":
            parts |= {"labels": list(self.labels), "least_mass": self.least_mass}
        elif self.decode == "json":
            parts |= {"schema": self._schema()}
        parts |= self.options.sampling
        if self.decode != "labels" and self.max_written is not None:
            parts[LIMIT] = self.max_written
        extra = {"extra_body": dict(self.options.extra_body)} if self.options.extra_body else {}
        return parts | extra

    def texts(self, request: Request) -> tuple[str, ...]:
        """Return the texts that are sent for a request."""
        return request.system, request.user

    def body(self, requests: Sequence[Request]) -> dict[str, Any]:
        """Return the body of one request."""
        (request,) = requests
        body = self.text_body(request.system, request.user, self.max_written)
        if self.decode == "labels":
            body |= {"logprobs": True, "top_logprobs": self.top}
        elif self.decode == "json":
            body |= json_format("grade", self._schema())
        return body

    def text_body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """Return a request with these texts and this limit of the reply."""
        system, user = replace_surrogates(system), replace_surrogates(user)
        messages = [{"role": "system", "content": system}] if system else []
        texts = {"messages": [*messages, {"role": "user", "content": user}]}
        limit = {} if max_tokens is None else {LIMIT: max_tokens}
        extra = self.options.extra_body or {}
        return {"model": self.options.model, **texts, **self.options.sampling, **limit, **extra}

    def read(self, data: Any, requests: Sequence[Request]) -> ReadReplies:  # noqa: ARG002
        """Return the reply; raises one of `MALFORMED_ERRORS`."""
        completion = read_completion(data)
        usage = completion.usage or Usage()
        if self.decode == "labels" and not completion.refusal:
            return ReadReplies([self._likeliest_label(completion, usage)], completion.usage)
        reply = Reply(
            completion.text, truncated=completion.truncated, usage=usage, detail=completion.detail
        )
        if self.decode == "labels":
            reply = Reply(completion.text, usage=usage, detail=completion.detail)
        return ReadReplies([reply], completion.usage)

    def _likeliest_label(self, completion: Completion, usage: Usage) -> Reply:
        if not completion.first:
            raise Malformed("it has no log-probabilities")
        chances = self.label_chances(completion)
        mass = sum(chances.values())
        detail = {"outside": round(max(0.0, 1.0 - mass), 6), "said": completion.text}
        if mass < self.least_mass or not mass:
            # exampp stopped it after its first token, so it is incomplete
            return Reply(completion.text, truncated=True, usage=usage, detail=detail)
        scores = {label: chance / mass for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def label_chances(self, completion: Completion) -> dict[str, float]:
        """Return the probability of each label as the first token."""
        chances = dict.fromkeys(self.labels, 0.0)
        named = {_fold(label): label for label in self.labels}
        for token, chance in completion.first:
            if label := named.get(_fold(token)):
                chances[label] += chance
        return chances

    def _schema(self) -> dict[str, Any]:
        """Return the schema of a reply: its rating, and the reason or evidence that it has."""
        return object_schema(reply_schema(self.field, self.labels, self.reply))


def check_labels(labels: Sequence[str]) -> None:
    """Raise InputError unless the first token of a reply determines the label."""
    hint = "Use decode 'json' or 'text', or other labels in the prompt"
    if len(labels) < 2:
        raise InputError("decode 'labels' needs at least two labels", field="labels", hint=hint)
    for one, other in permutations(map(_fold, labels), 2):
        if not one or other.startswith(one):
            what = f"the label {other!r} begins like {one!r}: its first token may mean either"
            raise InputError(what, field="labels", hint=hint)


def _fold(token: str) -> str:
    return token.strip(BLANKS).casefold()


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def json_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a request that enforces a schema."""
    form = {"name": name, "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates as `?`, because requests cannot contain them."""
    return text.encode(errors="replace").decode()


def read_usage(data: Any) -> Usage | None:
    """Return the tokens of a reply; None if the server reports none."""
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
    """Return whether a count is plausible: a budget must not depend on absurd numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def read_completion(data: Any) -> Completion:
    """Return the parts of a reply; raises one of `MALFORMED_ERRORS`.

    The arguments of tool calls are text: some models reply through a tool, even if none is offered.
    Reasoning that is complete JSON is the reply if there is no other: some servers take the whole
    reply for reasoning.
    """
    if not isinstance(data, dict) or not data.get("choices"):
        raise Malformed("it has no choices")
    choice = data["choices"][0]
    message = choice["message"]
    calls = [*_calls(message.get("tool_calls")), *_calls(message.get("function_call"))]
    text, thoughts, refusal = _read_content(message.get("content") or "", calls)
    finish = choice.get("finish_reason") or ""
    fields = (message.get(name) for name in THOUGHT_FIELDS)
    thoughts = thoughts or next((one for one in fields if isinstance(one, str) and one), "")
    if not text and finish != "length" and _is_json_object(thoughts):
        text, thoughts = thoughts, ""
    refused = message.get("refusal") or refusal
    logprobs = (choice.get("logprobs") or {}).get("content") or []
    return Completion(
        text=text or str(refused),
        truncated=finish == "length",
        refusal=str(refused or (finish if finish == "content_filter" else "")),
        usage=read_usage(data),
        first=_first_tokens(logprobs[0]) if logprobs else (),
        thoughts=thoughts,
        called=tuple(name for name, _ in calls),
    )


def _read_content(content: Any, calls: list[tuple[str, str]]) -> tuple[str, str, str]:
    """Return text, reasoning and refusal of a content, which may be a list of parts.

    The arguments of `calls`, and of calls among the parts, follow the text.
    """
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part["text"] for part in parts if part["type"] in TEXT_PARTS]
    thoughts = [_thought(part) for part in parts if part["type"] in THOUGHT_PARTS]
    refusals = [str(part["refusal"]) for part in parts if part["type"] == "refusal"]
    calls += _calls([part for part in parts if part["type"] in CALL_PARTS])
    known = texts or thoughts or refusals or calls
    if not known or not all(isinstance(text, str) for text in texts):
        raise Malformed("its content is not a text")
    text = "\n".join(filter(None, ("".join(texts), *(arguments for _, arguments in calls))))
    return text, "".join(thoughts), "".join(refusals)


def _calls(value: Any) -> list[tuple[str, str]]:
    """Return name and arguments of tool calls, in the form of any API; other values have none."""
    calls = []
    for call in value if isinstance(value, list) else [value]:
        if call and isinstance(call, Mapping):
            inner = next((call[key] for key in CALLED if isinstance(call.get(key), Mapping)), call)
            said = next((inner[key] for key in ARGUMENTS if inner.get(key)), "")
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            calls.append((str(inner.get("name", "")), text))
    return calls


def _is_json_object(text: str) -> bool:
    """Return whether a text is one complete JSON object."""
    try:
        return text.lstrip().startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _thought(part: Mapping[str, Any]) -> str:
    """Return the text of a reasoning part, which may have parts itself."""
    text = next((part[key] for key in (part["type"], "text", "summary") if part.get(key)), "")
    inner = text if isinstance(text, list) else [text]
    return "".join(str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in inner)


def _first_tokens(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the likeliest first tokens with their probabilities, including the written one."""
    top = list(token.get("top_logprobs") or [])
    if token["token"] not in [one["token"] for one in top]:
        top.append(token)
    # different tokens can have the same text: partial characters are all shown as one sign
    tokens = tuple((str(one["token"]), math.exp(min(float(one["logprob"]), 0.0))) for one in top)
    if any(math.isnan(chance) for _, chance in tokens):
        raise Malformed("a log-probability is not a number")
    return tokens
