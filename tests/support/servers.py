"""Servers for tests of clients, all on loopback: one with faults to order, and llama.cpp.

`FaultServer` speaks enough HTTP to break it in every way: it answers each request by a function of
path and body, and a plan says which attempt at which request meets which fault. A request is known
by the text that it carries, so that a plan with a seed breaks the same requests in the same way
whatever the order they come in, and the attempts at every request are counted.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache, partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp  # type: ignore[import-untyped]
from numpy.typing import NDArray

JSON = "application/json"
Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """Answer of a server to a request: `content` is JSON, or text or bytes as they are.

    `hang` leaves it without an answer, `cut` closes the connection after so many bytes.
    """

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: int | None = None


@dataclass(frozen=True)
class Seen:
    """A request as it came in; `text` is what it is known by, `attempt` counts from 0."""

    path: str
    body: Body
    headers: Mapping[str, str]
    text: str
    attempt: int


Script = Callable[[Seen], Answer]
Plan = Callable[[Seen], Answer | None]


def completion(text: Any, finish: str = "stop", **more: Any) -> Body:
    """A chat completion; `more` goes into its choice."""
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    usage: Body = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
    usage["prompt_tokens_details"] = {"cached_tokens": 5}
    choice = {"index": 0, "message": message, "finish_reason": finish, **more}
    return {"object": "chat.completion", "model": "tiny", "choices": [choice], "usage": usage}


def called(arguments: str) -> dict[str, Body]:
    """Messages without a text whose tool call has these arguments, by the API that writes them."""
    plain = {"name": "reply", "arguments": arguments}
    parsed = {"name": "reply", "arguments": json.loads(arguments)}
    part = {"type": "tool_use", "id": "a", "name": "reply", "input": parsed["arguments"]}
    thought = {"content": "", "reasoning_content": "I call reply."}
    return {
        "OpenAI": {"tool_calls": [{"id": "a", "type": "function", "function": plain}]},
        "older OpenAI": {"function_call": plain, "tool_calls": None},
        "Ollama": {"content": "", "tool_calls": [{"function": parsed}]},
        "flat": {"tool_calls": [{"type": "function", **plain}]},
        "custom": {"tool_calls": [{"custom": {"name": "reply", "input": arguments}}]},
        "Anthropic": {"content": [{"type": "text", "text": ""}, part]},
        "with thoughts": {**thought, "tool_calls": [{"function": plain}]},
        "as reasoning": {"reasoning_content": arguments},
    }


def logprobs(chances: Mapping[str, float]) -> Body:
    """The `logprobs` of a choice whose one token has these log-probabilities."""
    top = [{"token": token, "logprob": value} for token, value in chances.items()]
    first = max(top, key=lambda one: float(str(one["logprob"])))
    return {"content": [{**first, "top_logprobs": top}]}


def error(status: int, message: str = "", **more: Any) -> Answer:
    """An error as OpenAI words it."""
    headers = more.pop("headers", {})
    return Answer({"error": {"message": message or f"error {status}", **more}}, status, headers)


def rating(seen: Seen) -> Answer:
    """A rating that depends on the text only."""
    return Answer(completion(str(sum(seen.text.encode(errors="replace")) % 6)))


FAULTS: dict[str, Callable[[], Answer]] = {
    "too many requests": lambda: error(429, headers={"retry-after": "0.02"}),
    "too many, by date": lambda: error(429, headers={"retry-after": formatdate(usegmt=True)}),
    "server error": lambda: error(500),
    "starting": lambda: Answer("loading model", 503, {"retry-after-ms": "10"}),
    "hang": lambda: Answer(hang=True),
    "cut before the answer": lambda: Answer(cut=0),
    "cut within the answer": lambda: Answer(completion("5"), cut=150),
    "garbage": lambda: Answer('{"choices": [{"message": {"content": "5"'),
    "web page": lambda: Answer("<html>Bad gateway</html>", 502),
    "no choices": lambda: Answer({"choices": []}),
    "error with status 200": lambda: Answer({"error": {"code": 502, "message": "upstream"}}),
}


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * (5 * 2**23))


def _packed(data: bytes, how: str = "gzip", end: int | None = None) -> Answer:
    headers = {"content-encoding": how, "content-type": JSON}
    return Answer(gzip.compress(data)[:end], headers=headers)


def _said(seen: Seen) -> Body:
    """The right reply to a request."""
    content: Body = rating(seen).content
    return content


def _long(seen: Seen, more: int, stray: bytes = b"", cut: int | None = None) -> Answer:
    """The right reply with a length that is wrong by some bytes, and what follows it."""
    data = json.dumps(_said(seen)).encode()
    return Answer(data + stray, headers={"content-length": str(len(data) + more)}, cut=cut)


_STRAY = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
_MORE = json.dumps(completion("5")).encode()


HOSTILE: dict[str, Callable[[Seen], Answer]] = {
    "half of a pair": lambda _: Answer(completion("nothing \ud800 to see")),
    "NUL": lambda _: Answer(completion("no\0thing\0")),
    "unfinished thought": lambda _: Answer(completion("<think>Rating: 5? It names")),
    "a megabyte of spaces": lambda _: Answer(completion(" " * 2**20)),
    "null": lambda _: Answer(completion(None)),
    "content is a number": lambda _: Answer(completion(5)),
    "web page with status 200": lambda _: Answer("<html>Try later</html>"),
    "gzip bomb": lambda _: Answer(_bomb(), headers={"content-encoding": "gzip"}),
    "no gzip": lambda _: Answer("{}", headers={"content-encoding": "gzip"}),
    "shorter than declared": lambda seen: _long(seen, 9, cut=2**20),
    "longer than declared": lambda seen: _long(seen, -9),
    "two lengths": lambda seen: Answer(_said(seen), headers={"Content-Length": "7"}),
    "Latin-1": lambda _: Answer('{"choices": "\u00e9"}'.encode("latin-1")),
    "gzip that ends early": lambda seen: _packed(json.dumps(_said(seen)).encode(), end=-12),
    "packed in another way": lambda seen: _packed(json.dumps(_said(seen)).encode(), "br"),
    "gzip": lambda seen: _packed(json.dumps(_said(seen)).encode()),
    "wrong type": lambda seen: Answer(json.dumps(_said(seen)), headers={"content-type": "a/b"}),
    "huge usage": lambda seen: Answer(
        {**_said(seen), "usage": {"prompt_tokens": 10**30, "completion_tokens": -1}}
    ),
    "a second reply": lambda seen: _long(seen, 0, _STRAY % (len(_MORE), _MORE)),
}
"""Replies that no server should send; the last four hold the right rating, the others none."""


def _regardless(fault: Callable[[], Answer], _: Seen) -> Answer:
    return fault()


def random_faults(
    seed: int, rate: float, doomed: frozenset[str] = frozenset(), *, hostile: bool = False
) -> Plan:
    """Break each attempt with the given probability; of `doomed` texts, every one."""
    kinds: dict[str, Callable[[Seen], Answer]] = dict(HOSTILE) if hostile else {}
    for name, fault in FAULTS.items():
        kinds[name] = partial(_regardless, fault)

    def plan(seen: Seen) -> Answer | None:
        chance = random.Random(f"{seed}/{seen.text}/{seen.attempt}")
        if seen.text not in doomed and chance.random() >= rate:
            return None
        return kinds[chance.choice(sorted(kinds))](seen)

    return plan


class FaultServer:
    """Serves on a free port while it is entered; `requests` holds what came in, in order.

    `tells` is what it says of itself, by path: to requests without a body, which are not counted.
    With `delay` every answer takes that many seconds, and while the server is `held` none is given.
    `busiest` is how many requests were in the server at a time at most.
    """

    def __init__(
        self,
        script: Script = rating,
        plan: Plan | None = None,
        delay: float = 0,
        tells: Mapping[str, Any] | None = None,
    ) -> None:
        self.script = script
        self.tells = tells or {}
        self.plan = plan
        self.delay = delay
        self.held = False
        self.requests: list[Seen] = []
        self.times: list[float] = []
        self.busiest = 0
        self.url = ""
        self.active = 0
        self._attempts: dict[str, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def attempts(self) -> Counter[str]:
        """Count the requests by text."""
        return Counter(seen.text for seen in self.requests)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**22)

    async def _stop(self) -> None:
        self._server.close()
        await asyncio.sleep(0.001)
        # connections that are accepted just now are tasks of the loop, and writers only then
        while self._writers or asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._tasks:
                task.cancel()
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            # connections that were on their way in come in now, and aborted ones are lost
            await asyncio.sleep(0.001)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                seen = await self._read(reader)
                if not seen.body:
                    told = self.tells.get(seen.path)
                    self._write(writer, error(404) if told is None else Answer(told))
                    continue
                self.active += 1
                self.busiest = max(self.busiest, self.active)
                try:
                    await asyncio.sleep(self.delay)
                    while self.held:
                        await asyncio.sleep(0.001)
                    answer = (self.plan(seen) if self.plan else None) or self.script(seen)
                    if answer.hang:
                        await reader.read()  # until the client gives up
                        break
                finally:
                    self.active -= 1
                if not self._write(writer, answer):
                    break
        self._writers.discard(writer)
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
        headers = {name.lower(): value.strip() for name, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if not raw:
            return Seen(head[0].split()[1], {}, headers, "", 0)
        body = json.loads(raw)
        text = text_of(body)
        seen = Seen(head[0].split()[1], body, headers, text, self._attempts[text])
        self._attempts[text] += 1
        self.requests.append(seen)
        self.times.append(self._loop.time())
        return seen

    @staticmethod
    def _write(writer: asyncio.StreamWriter, answer: Answer) -> bool:
        plain = isinstance(answer.content, str | bytes)
        text = answer.content if plain else json.dumps(answer.content)
        data = text if isinstance(text, bytes) else text.encode()
        headers = {"content-type": "text/html" if plain else JSON, "content-length": len(data)}
        lines = [f"{name}: {value}" for name, value in {**headers, **answer.headers}.items()]
        head = "\r\n".join([f"HTTP/1.1 {answer.status} Reason", *lines])
        writer.write((head.encode() + b"\r\n\r\n" + data)[: answer.cut])
        return answer.cut is None


def capable(*features: str, mass: float = 0.9) -> FaultServer:
    """A server that silently ignores what is not among its features."""

    def script(seen: Seen) -> Answer:
        body = seen.body
        if "response_format" in body and "json" in features:
            schema = body["response_format"]["json_schema"]["schema"]
            name, value = next(iter(schema["properties"].items()))
            return Answer(completion(json.dumps({name: value["enum"][-1]})))
        if body.get("logprobs") and "logprobs" in features:
            chances = {"3": math.log(mass), "The": math.log(1 - mass)}
            return Answer(completion("3", "length", logprobs=logprobs(chances)))
        return Answer(completion("I say 2"))

    return FaultServer(script)


def text_of(body: Body) -> str:
    """Return the text of a request: the last message, or the prompt."""
    messages = body.get("messages")
    return str(messages[-1]["content"] if messages else body.get("prompt", ""))


DIGITS = "012345"
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
END = 256
"""The token after the 256 bytes: end of text."""


def write_tiny_model(path: Path, seed: int = 0, width: int = 32) -> None:
    """Write a Llama of one layer with random weights that answers one digit from 0 to 5.

    Its tokens are bytes. Two directions of its space are not random: one that all tokens share
    makes the digits likely, and one that the digits have makes the end likely after them.
    """
    chance = np.random.default_rng(seed)
    tokens = [*_byte_tokens(), "<|end|>", "th"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(width)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * END + [3, 1])
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(END)
    writer.add_bos_token_id(END)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in _tiny_weights(chance, len(tokens), width):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _byte_tokens() -> list[str]:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    chars = {byte: chr(byte) for byte in shown}
    chars |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return [chars[byte] for byte in range(256)]


def _tiny_weights(
    chance: np.random.Generator, tokens: int, width: int
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    def random_tensor(rows: int, scale: float) -> NDArray[np.float32]:
        return (chance.standard_normal((rows, width)) * scale).astype(np.float32)

    read, write = random_tensor(tokens, 0.5), random_tensor(tokens, 0.3)
    digits = [ord(digit) for digit in DIGITS]
    read[:, 0], read[:, 1], write[:, :2] = 1, 0, 0
    write[digits] *= 3  # so that another text has another digit
    write[digits, 0], read[digits, 1], write[END, 1] = 12, 4, 20
    yield from (("token_embd.weight", read), ("output.weight", write))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        yield f"{name}.weight", np.ones(width, np.float32)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        weights = random_tensor(width, 0.5 if name in ("attn_q", "attn_k") else 0.2)
        if name in ("attn_output", "ffn_down"):
            weights[:2] = 0  # leaves the two directions alone
        yield f"blk.0.{name}.weight", weights


@contextmanager
def llama_server(folder: Path, model: Path | None = None) -> Iterator[str]:
    """The base URL of a llama.cpp server with a GGUF file, else the tiny model; ready on entry."""
    if model is None:
        model = folder / "tiny.gguf"
        write_tiny_model(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.n_threads_http = 8192, 2, 4
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.port, params.warmup, params.cache_ram_mib, params.verbosity = 0, False, 0, -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
