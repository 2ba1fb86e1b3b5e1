"""Form of a request, and how its reply is read.

A text reply is free text. With JSON, the server enforces a schema; with a choice, one of the labels
as the whole reply. With labels, the reply is read
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
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, permutations
from typing import Any, NamedTuple, TypeGuard

from exampp.errors import InputError
from exampp.graders.base import (
    LEAST_MASS,
    MOST_TOKENS,
    ApproximateTokens,
    Reply,
    Request,
    Usage,
    replace_surrogates,
)
from exampp.graders.openai.client import Malformed
from exampp.graders.options import LIMIT, OpenAIOptions
from exampp.prompts.prompt import Filled, Prompt, fill, item_slots, query_slots
from exampp.prompts.replies import is_json_object, read_reply
from exampp.prompts.reply_fields import items_schema, reply_schema, split_reply
from exampp.records.graders import State
from exampp.records.ids import content_hash

TOP_LOGPROBS = 20
"""Maximum of most servers."""
CHOICE_FORMS: Mapping[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "structured_outputs": lambda labels: {"structured_outputs": {"choice": list(labels)}},
    "guided_choice": lambda labels: {"guided_choice": list(labels)},
    "grammar": lambda labels: {
        "grammar": f"root ::= {' | '.join(json.dumps(one, ensure_ascii=False) for one in labels)}"
    },
    "regex": lambda labels: {"regex": f"({'|'.join(map(re.escape, labels))})"},
}
"""Parameters that enforce one of several replies: vLLM, earlier vLLM, llama.cpp, SGLang."""
UNCLEAR = "the reply to several items has no clear rating of this one"
REQUEST_DIGITS = 12
"""Length of the name of a request that several grades share."""
CHOICE_TOKENS = 32
"""Maximum tokens of a label."""
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

    `first` are the likeliest first tokens, `tokens` all tokens as the server describes them, and
    `called` the names of tools that the model called.
    """

    text: str
    truncated: bool
    refusal: str
    usage: Usage | None
    first: tuple[tuple[str, float], ...]
    thoughts: str = ""
    called: tuple[str, ...] = ()
    tokens: Sequence[Mapping[str, Any]] = ()

    @property
    def detail(self) -> dict[str, Any]:
        """Details that are stored with the reply."""
        refused = {"refusal": True, "reason": self.refusal} if self.refusal else {}
        called = {"called": list(self.called)} if self.called else {}
        return refused | ({"thoughts": self.thoughts} if self.thoughts else {}) | called


@dataclass(frozen=True, slots=True)
class Mode:
    """Form of requests and replies; `decode` is text, json (with a `field`), choice or labels.

    `top` is the number of likeliest tokens that are requested: with labels, and with json or choice
    if the server gives both. `form` is one of `CHOICE_FORMS`. `properties` are the fields of a JSON
    reply without a rating, as in a JSON schema. With the prompt `shared`, one request has up to
    `most` items of a passage.

    Raises:
        InputError: The labels or the field do not match the decode.
    """

    options: OpenAIOptions
    decode: str = "text"
    labels: tuple[str, ...] = ()
    field: str = ""
    top: int = 0
    reply: tuple[str, ...] = ()
    form: str = ""
    properties: Mapping[str, Any] | None = None
    shared: Prompt | None = None

    path = "/chat/completions"

    def __post_init__(self) -> None:
        if self.decode in ("labels", "choice"):
            check_labels(self.labels, whole=self.decode == "choice")
            if self.reply or self.shared:
                asked = ", ".join(self.reply) or "the ratings of several items"
                raise InputError(
                    f"the prompt asks for {asked}; decode {self.decode!r} gives only one rating",
                    field="decode",
                    hint="Use --decode json or text",
                )
        if self.decode == "json" and not (self.field or self.properties):
            raise InputError(
                "decode 'json' needs a field of the reply",
                field="field",
                hint="Declare `field` in the prompt, or use another decode",
            )

    @property
    def most(self) -> int:
        """Maximum number of cells of a request."""
        return self.shared.items if self.shared else 1

    @property
    def max_written(self) -> int | None:
        """Maximum tokens of a reply; None without a limit."""
        short = {"labels": 1, "choice": CHOICE_TOKENS}
        return short.get(self.decode, self.options.max_new_tokens)

    @property
    def least_mass(self) -> float:
        """Minimum total probability of the labels."""
        return LEAST_MASS if self.options.least_mass is None else self.options.least_mass

    def reply_tokens(self, items: int) -> int:
        """Return the tokens of a short reply to some items, and of its end."""
        if self.decode in ("labels", "choice"):
            return 1
        label = next(iter(self.labels), "support")
        if self.shared and self.shared.reading == "support":
            example = str([label] * items)
        elif self.shared or self.decode == "json":
            rating = int(label) if label.isdigit() else label
            fields = map(str, range(1, items + 1)) if self.shared else (self.field,)
            example = json.dumps(dict.fromkeys(fields, rating))
        else:
            example = label
        return len(ApproximateTokens.offsets(example)) + 1

    def settings(self) -> dict[str, Any]:
        """Return what determines a reply; `top` only limits how much of it is visible."""
        parts: dict[str, Any] = {"decode": self.decode}
        if self.decode == "labels":
            parts |= {"labels": list(self.labels), "least_mass": self.least_mass}
        elif self.decode == "choice":
            parts |= {"labels": list(self.labels)}
        elif self.decode == "json":
            parts |= {"schema": self._schema(self.most)}
        parts |= self.options.sampling
        if self.decode in ("text", "json") and self.max_written is not None:
            parts[LIMIT] = self.max_written
        extra = {"extra_body": dict(self.options.extra_body)} if self.options.extra_body else {}
        return parts | extra

    def texts(self, request: Request) -> tuple[str, ...]:
        """Return the texts that are sent for a request."""
        return request.system, request.user

    def filled(self, requests: Sequence[Request]) -> Filled:
        """Return the prompt of one request."""
        request = requests[0]
        if self.shared is None or len(requests) == 1:
            return Filled(request.system, request.user)
        kept = min((one.kept for one in requests if one.kept is not None), default=None)
        texts = {**query_slots(self.shared, request.query), "context": request.passage[:kept]}
        items = [one.item for one in self.ordered(requests)]
        return fill(self.shared, {**texts, **item_slots(items)})

    def body(self, requests: Sequence[Request]) -> dict[str, Any]:
        """Return the body of one request."""
        filled = self.filled(requests)
        body = self.text_body(filled.system, filled.user, self.max_written)
        if self.decode == "json":
            body |= json_format(
                "items" if self.properties else "grade", self._schema(len(requests))
            )
        elif self.decode == "choice" and self.form:
            body |= CHOICE_FORMS[self.form](self.labels)
        if self.decode == "labels" or (self.top and self.decode != "text"):
            body |= {"logprobs": True, "top_logprobs": self.top or TOP_LOGPROBS}
        return body

    def text_body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """Return a request with these texts and this limit of the reply."""
        system, user = replace_surrogates(system), replace_surrogates(user)
        messages = [{"role": "system", "content": system}] if system else []
        texts = {"messages": [*messages, {"role": "user", "content": user}]}
        limit = {} if max_tokens is None else {LIMIT: max_tokens}
        extra = self.options.extra_body or {}
        return {"model": self.options.model, **texts, **self.options.sampling, **limit, **extra}

    def ordered(self, requests: Sequence[Request]) -> list[Request]:
        """Return the items of a request in random order, by the seed and their texts."""
        seed = self.options.sampling.get("seed", 0)
        return sorted(requests, key=lambda one: content_hash(f"{seed}", one.passage, one.item))

    def read_several(self, data: Any, count: int, texts: Iterable[str]) -> ReadReplies:
        """Return the replies to several items in the order in which the request has them.

        An item without a clear rating has the fault `UNCLEAR`. `texts` identify the request; raises
        one of `MALFORMED_ERRORS`.
        """
        prompt, completion = self.shared, read_completion(data)
        if prompt is None:
            raise ValueError("the prompt has one item")
        parts = split_reply(completion.text, count, listed=prompt.reading == "support")
        name = content_hash(completion.text, *texts)[:REQUEST_DIGITS]
        replies = list[Reply]()
        for position, text in enumerate(parts, 1):
            outcome = read_reply(
                prompt.reading,
                text,
                lowest=prompt.lowest,
                highest=prompt.highest,
                field=prompt.reply_field,
            )
            is_read = outcome.state is State.GRADED and not completion.refusal
            usage = completion.usage if position == 1 and completion.usage else Usage()
            shared = {"request": name, "items": count, "position": position}
            replies.append(
                Reply(
                    text if is_read else "",
                    scores=self._scores(completion, str(position)) if is_read else None,
                    fault="" if is_read else UNCLEAR,
                    usage=usage,
                    detail={**completion.detail, **shared},
                )
            )
        return ReadReplies(replies, completion.usage)

    def read(self, data: Any, requests: Sequence[Request]) -> ReadReplies:
        """Return the replies to the requests; raises one of `MALFORMED_ERRORS`."""
        if self.shared and len(requests) > 1:
            ordered = self.ordered(requests)
            texts = (ordered[0].passage, *(one.item for one in ordered))
            found, used = self.read_several(data, len(ordered), texts)
            replies = {one.key: reply for one, reply in zip(ordered, found, strict=True)}
            return ReadReplies([replies[one.key] for one in requests], used)
        completion = read_completion(data)
        usage = completion.usage or Usage()
        if self.decode == "labels" and not completion.refusal:
            return ReadReplies([self._likeliest_label(completion, usage)], completion.usage)
        whole = self.decode == "choice" and completion.text.strip() in self.labels
        reply = Reply(
            completion.text,
            scores=None if completion.refusal else self._scores(completion, self.field),
            # the request for a label ends after its first token
            truncated=completion.truncated and self.decode != "labels" and not whole,
            usage=usage,
            detail=completion.detail,
        )
        return ReadReplies([reply], completion.usage)

    def _scores(self, completion: Completion, field: str) -> dict[str, float] | None:
        """Return the probabilities of the labels where the reply has a rating, if they are known.

        They are renormalised. None if the labels have less than `least_mass`: a schema or a choice
        forced the model to reply with one of them.
        """
        if not self.top or self.decode == "text" or not completion.tokens:
            return None
        at, before = 0, ""
        if self.decode == "json":
            texts = [str(token["token"]) for token in completion.tokens]
            name = rf'"{re.escape(field)}"\s*:\s*"?'
            *_, place = (0, *(match.end() for match in re.finditer(name, "".join(texts))))
            starts = list(accumulate(map(len, texts), initial=0))
            at = bisect_right(starts, place) - 1
            if not 0 < at < len(texts):
                return None
            before = texts[at][: place - starts[at]]
        chances = self.label_chances(
            (token[len(before) :].rstrip('"},'), chance)
            for token, chance in _likeliest(completion.tokens[at])
            if token.startswith(before)
        )
        mass = sum(chances.values())
        if mass < self.least_mass or not mass:
            return None
        return {label: chance / mass for label, chance in chances.items()}

    def _likeliest_label(self, completion: Completion, usage: Usage) -> Reply:
        if not completion.first:
            raise Malformed("it has no log-probabilities")
        chances = self.label_chances(completion.first)
        mass = sum(chances.values())
        detail = {"outside": round(max(0.0, 1.0 - mass), 6), "said": completion.text}
        if mass < self.least_mass or not mass:
            # exampp stopped it after its first token, so it is incomplete
            return Reply(completion.text, truncated=True, usage=usage, detail=detail)
        scores = {label: chance / mass for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def label_chances(self, tokens: Iterable[tuple[str, float]]) -> dict[str, float]:
        """Return the probability of each label as one of these tokens."""
        chances = dict.fromkeys(self.labels, 0.0)
        named = {_fold(label): label for label in self.labels}
        for token, chance in tokens:
            if label := named.get(_fold(token)):
                chances[label] += chance
        return chances

    def _schema(self, count: int = 1) -> dict[str, Any]:
        """Return the schema of a reply: its rating, and the reason or evidence that it has."""
        if self.shared:
            return object_schema(items_schema(self.labels, count))
        return object_schema(self.properties or reply_schema(self.field, self.labels, self.reply))


def check_labels(labels: Sequence[str], *, whole: bool = False) -> None:
    """Raise InputError unless the first token of a reply, or the `whole`, determines the label."""
    hint = "Use decode 'json' or 'text', or other labels in the prompt"
    if len(labels) < 2:
        decode = "choice" if whole else "labels"
        raise InputError(f"decode '{decode}' needs at least two labels", field="labels", hint=hint)
    for one, other in () if whole else permutations(map(_fold, labels), 2):
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
    if not text and finish != "length" and is_json_object(thoughts):
        text, thoughts = thoughts, ""
    refused = message.get("refusal") or refusal
    logprobs = (choice.get("logprobs") or {}).get("content") or []
    return Completion(
        text=text or str(refused),
        truncated=finish == "length",
        refusal=str(refused or (finish if finish == "content_filter" else "")),
        usage=read_usage(data),
        first=_likeliest(logprobs[0]) if logprobs else (),
        thoughts=thoughts,
        called=tuple(name for name, _ in calls),
        tokens=logprobs,
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


def _thought(part: Mapping[str, Any]) -> str:
    """Return the text of a reasoning part, which may have parts itself."""
    text = next((part[key] for key in (part["type"], "text", "summary") if part.get(key)), "")
    inner = text if isinstance(text, list) else [text]
    return "".join(str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in inner)


def _likeliest(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the likeliest tokens with their probabilities, including the written one."""
    top = list(token.get("top_logprobs") or [])
    if token["token"] not in [one["token"] for one in top]:
        top.append(token)
    # different tokens can have the same text: partial characters are all shown as one sign
    tokens = tuple((str(one["token"]), math.exp(min(float(one["logprob"]), 0.0))) for one in top)
    if any(math.isnan(chance) for _, chance in tokens):
        raise Malformed("a log-probability is not a number")
    return tokens
