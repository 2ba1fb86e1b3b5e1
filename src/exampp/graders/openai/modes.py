"""Replies as probabilities of the labels, read from the likeliest first tokens.

A label counts with every token that is it but for blanks around it and for case (`4`, ` 4`;
`Yes`, `yes`). The probabilities are renormalised over the labels; what lies outside is reported.
The reply is the likeliest label. Where the labels hold less than `least`, the model wants to say
something else first: then the reply is that first token, truncated and without probabilities.
Source: probabilities of the ratings in place of one greedy digit as in G-Eval (Liu et al., EMNLP
2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, ClassVar, NamedTuple, Protocol, TypeGuard

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, MOST_TOKENS, Reply, Request, Usage
from exampp.graders.openai.failures import Malformed
from exampp.graders.openai.server_quirks import LIMIT

# Replies by chat completion: as text, as probabilities of labels, as JSON under a schema.
#
# One ask is one request. What a mode adds to the request and how it reads the answer is all that
# tells the modes apart.


CHAT_PATH = "/chat/completions"
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


def replace_surrogates(text: str) -> str:
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
        return CHAT_PATH

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts."""
        messages = [{"role": "system", "content": replace_surrogates(system)}] if system else []
        messages.append({"role": "user", "content": replace_surrogates(user)})
        return self.request({"messages": messages}, max_tokens)

    def request(self, texts: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        """A request with texts in the endpoint's own shape."""
        sampling = self.sampling
        limit = {} if max_tokens is None else {LIMIT: max_tokens}
        return {"model": self.model, **texts, **sampling.chosen, **limit, **sampling.extra_body}

    def likeliest(self, top: int) -> dict[str, Any]:
        """What a request says to be told so many likeliest tokens."""
        return {"logprobs": True, "top_logprobs": top}

    def read(self, data: Any) -> Completion:
        """What an answer says; Malformed if it is none."""
        return read_completion(data)

    def settings(self, max_tokens: int | None) -> dict[str, Any]:
        """What of it determines a reply, JSON-able."""
        given = {
            "max_tokens": max_tokens,
            "extra_body": dict(self.sampling.extra_body) or None,
        }
        named = {name: value for name, value in given.items() if value is not None}
        return {**self.identity, **self.sampling.chosen, **named}


@dataclass(frozen=True, slots=True)
class Completion:
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


def read_completion(data: Any) -> Completion:
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
    return Completion(
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

    def texts(self, ask: Request) -> tuple[str, ...]:
        """What is sent for an ask."""
        ...

    def body(self, asks: Sequence[Request]) -> dict[str, Any]:
        """The request for asks about one passage."""
        ...

    def read(self, data: Any, asks: Sequence[Request]) -> ReadReplies:
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

    def texts(self, ask: Request) -> tuple[str, ...]:
        """The two messages."""
        return ask.system, ask.user

    def body(self, asks: Sequence[Request]) -> dict[str, Any]:
        """The request for one ask."""
        body = self.chat.body(asks[0].system, asks[0].user, self.max_written)
        if self.schema:
            schema = {"name": JSON_NAME, "strict": True, "schema": self.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def read(self, data: Any, asks: Sequence[Request]) -> ReadReplies:
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


# Replies by the completions endpoint: the model goes on writing where the prompt ends.
#
# There is no chat template: the texts are sent as they stand, the system text before the user's.
# The papers' banks were written by an instruct model through this endpoint.


COMPLETIONS_PATH = "/completions"
CHAT_OPTIONS = ("reasoning_effort", "chat_template_kwargs")


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
        return COMPLETIONS_PATH

    def __post_init__(self) -> None:
        idle = [name for name in CHAT_OPTIONS if name in self.sampling.chosen]
        if idle:
            raise InputError(
                f"the completions endpoint has no {idle[0]}",
                field=idle[0],
                mend="Leave it out, or ask by --endpoint chat",
            )

    def body(self, system: str, user: str, max_tokens: int | None) -> dict[str, Any]:
        """A request with these texts; its end is bare, for a label to follow behind a blank."""
        text = f"{system}\n{user}" if system else user
        return self.request({"prompt": replace_surrogates(text.rstrip())}, max_tokens)

    def likeliest(self, top: int) -> dict[str, Any]:
        """What a request says to be told so many likeliest tokens."""
        return {"logprobs": top}

    def read(self, data: Any) -> Completion:
        """What an answer says; Malformed if it is none."""
        choice = first_choice(data)
        text = choice["text"]
        if not isinstance(text, str):
            raise Malformed("its text is no text")
        finish = choice.get("finish_reason") or ""
        return Completion(
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


# Typed decisions: all questions about a passage in one request, a probability for every level.
#
# The prompt's text is not sent. The passage is what is judged, `instructions` with the item in it
# is the question, the labels are the levels with their meanings. So the replies are those of
# another grader than the same model with a prompt, and `auto` never chooses this.
#
# Two dialects: `/decisions` of the SDK (`client.decisions.create`), and `/systemone` of
# `transformers serve` and others. Whole numbers as labels are levels of a score, lowest first;
# other labels are the options of a choice.


DECISIONS = "/decisions"
SYSTEM_ONE = "/systemone"
MOST = {DECISIONS: 400, SYSTEM_ONE: 64}
"""Questions that a request may have."""

ITEM = "{item}"
INSTRUCTIONS = "How well does the text answer or cover this: {item}"
WRITTEN = 16
"""Tokens that an answer can cost at most; servers that answer from logits write none."""


@dataclass(frozen=True, slots=True)
class DecisionsMode:
    """The reply is the likeliest label, its scores the probabilities of all.

    Raises:
        InputError: there are fewer than two labels, a label has no meaning, or the instructions
            have no place for the item.

    """

    model: str
    path: str
    labels: tuple[str, ...]
    meanings: Mapping[str, str] = field(hash=False)
    instructions: str = INSTRUCTIONS
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    max_written = WRITTEN

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise InputError("decode 'decisions' needs two labels", field="labels")
        missing = [label for label in self.labels if not self.meanings.get(label)]
        if missing:
            raise InputError(
                f"decode 'decisions' needs the meanings of the labels {', '.join(missing)}",
                field="meanings",
                mend="Let lines of the prompt say what they mean ('0: not covered'), or give "
                "meanings={'0': 'not covered', ...}: the server sees no prompt",
            )
        if ITEM not in self.instructions:
            raise InputError("the instructions have no place for {item}", field="instructions")

    @property
    def most(self) -> int:
        """Asks that one request can hold."""
        return MOST[self.path]

    @property
    def is_score(self) -> bool:
        """Whether the labels are levels, and not options."""
        return all(is_whole(label) for label in self.labels)

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able; the dialect puts the same question."""
        return {
            "decode": "decisions",
            "labels": list(self._ordered()),
            "meanings": [self.meanings[label] for label in self._ordered()],
            "instructions": self.instructions,
            **({"extra_body": dict(self.extra)} if self.extra else {}),
        }

    def texts(self, ask: Request) -> tuple[str, ...]:
        """What one ask can cost to be read: servers may read the passage for every question."""
        return ask.passage, ask.item, self.instructions, *self.labels, *self.meanings.values()

    def body(self, asks: Sequence[Request]) -> dict[str, Any]:
        """One request for asks about one passage."""
        passage = replace_surrogates(asks[0].passage)
        questions = [self._question(ask) for ask in asks]
        body: dict[str, Any] = {"model": self.model, **self.extra}
        if self.path == SYSTEM_ONE:
            named = {str(number): question for number, question in enumerate(questions)}
            return body | {"state": passage, "questions": named}
        return body | {"input": passage, "questions": questions}

    def read(self, data: Any, asks: Sequence[Request]) -> ReadReplies:
        """The replies; the tokens of the request are divided among them."""
        answers = data["answers"]
        if self.path == SYSTEM_ONE:
            answers = [answers[str(number)] for number in range(len(asks))]
        if len(answers) != len(asks):
            raise Malformed(f"{len(answers)} answers to {len(asks)} questions")
        usage = read_usage(data)
        shares = _divide(usage or Usage(), len(asks))
        return ReadReplies([self._reply(a, u) for a, u in zip(answers, shares, strict=True)], usage)

    def _ordered(self) -> tuple[str, ...]:
        return tuple(sorted(self.labels, key=int)) if self.is_score else self.labels

    def _question(self, ask: Request) -> dict[str, Any]:
        levels = self._ordered()
        kind = "score" if self.is_score else "choice"
        text = replace_surrogates(self.instructions.replace(ITEM, ask.item))
        question: dict[str, Any] = {"type": kind, "instructions": text}
        if self.path == SYSTEM_ONE:
            meanings = {label: self.meanings[label] for label in levels}
            return question | {"criteria": list(meanings.values()) if self.is_score else meanings}
        name, parts = ("label", "levels") if self.is_score else ("value", "choices")
        return question | {
            parts: [{name: label, "description": self.meanings[label]} for label in levels]
        }

    def _reply(self, answer: Mapping[str, Any], usage: Usage) -> Reply:
        if answer["type"] == "refusal":
            return Reply("", usage=usage, detail={"refusal": True, "reason": "refusal"})
        chances = self._chances(answer["probabilities"])
        total = sum(chances.values())
        if not math.isfinite(total) or total <= 0 or min(chances.values()) < 0:
            raise Malformed("its probabilities are none")
        scores = {label: chance / total for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        detail = {"outside": round(max(0.0, 1.0 - total), 6)}
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def _chances(self, given: Any) -> dict[str, float]:
        if self.path == SYSTEM_ONE:
            names = [str(n) for n in range(len(self.labels))] if self.is_score else self._ordered()
            return {
                label: float(given[name])
                for label, name in zip(self._ordered(), names, strict=True)
            }
        name = "label" if self.is_score else "value"
        found = {str(one[name]): float(one["probability"]) for one in given}
        return {label: found[label] for label in self._ordered()}


def _divide(usage: Usage, parts: int) -> list[Usage]:
    """Shares that add up to the whole."""

    def share(total: int, part: int) -> int:
        return total // parts + (part < total % parts)

    # the remainders go to the first shares, so that no share has more cached than read
    return [
        Usage(share(usage.read, n), share(usage.cached, n), share(usage.written, n))
        for n in range(parts)
    ]


BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Also as SentencePiece and byte-level BPE write them, for servers that show raw pieces."""


def fold(token: str) -> str:
    """What tokens and labels are compared by."""
    return token.strip(BLANKS).casefold()


def check_labels(labels: Sequence[str]) -> None:
    """Raise InputError unless the first token of a reply tells which label it is."""
    mend = "Choose decode 'json' or 'text', or other labels in the prompt"
    if len(labels) < 2:
        raise InputError("decode 'labels' needs two labels", field="labels", mend=mend)
    for one, other in permutations(map(fold, labels), 2):
        if not one or other.startswith(one):
            what = f"the label {other!r} begins like {one!r}: its first token can be either"
            raise InputError(what, field="labels", mend=mend)


@dataclass(frozen=True, slots=True)
class LabelsMode:
    """The reply is the likeliest label, its scores the probabilities of all."""

    chat: Chat
    labels: tuple[str, ...]
    top: int = TOP_LOGPROBS
    least: float = LEAST_MASS

    most = 1
    max_written = 1

    @property
    def path(self) -> str:
        """Where requests go, below the base URL."""
        return self.chat.path

    def settings(self) -> dict[str, Any]:
        """What determines a reply, JSON-able; `top` only bounds how much of it is seen."""
        mode = {"decode": "labels", "labels": list(self.labels), "least_mass": self.least}
        return mode | self.chat.settings(None)

    def texts(self, ask: Request) -> tuple[str, ...]:
        """The two messages."""
        return ask.system, ask.user

    def body(self, asks: Sequence[Request]) -> dict[str, Any]:
        """The request for one ask."""
        body = self.chat.body(asks[0].system, asks[0].user, 1)
        return body | self.chat.likeliest(self.top)

    def read(self, data: Any, asks: Sequence[Request]) -> ReadReplies:
        """The reply of one ask."""
        del asks
        said = self.chat.read(data)
        return ReadReplies([self._reply(said)], said.usage)

    def _reply(self, said: Completion) -> Reply:
        usage = said.usage or Usage()
        if said.refusal:
            return Reply(said.text, usage=usage, detail=said.detail)
        if not said.first:
            raise Malformed("it has no log-probabilities")
        chances = self.chances(said)
        mass = sum(chances.values())
        detail = {"outside": round(max(0.0, 1.0 - mass), 6), "said": said.text}
        if mass < self.least or not mass:
            # stopped by us after its first token, so there is more to it than is seen
            return Reply(said.text, truncated=True, usage=usage, detail=detail)
        scores = {label: chance / mass for label, chance in chances.items()}
        best = max(scores, key=scores.__getitem__)
        return Reply(best, scores=scores, usage=usage, detail=detail)

    def chances(self, said: Completion) -> dict[str, float]:
        """The probability of each label as the first token."""
        chances = dict.fromkeys(self.labels, 0.0)
        named = {fold(label): label for label in self.labels}
        for token, chance in said.first:
            label = named.get(fold(token))
            if label is not None:
                chances[label] += chance
        return chances
