"""A provider of batches on loopback: OpenAI's protocol, and its faults.

What becomes of a request is said by `outcome`,
what is odd about a file of results by `mangle`, and what goes wrong with a call by `fault`. `paid`
counts how often each text was answered.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
PARTS = 8
"""Parts of a file that comes or goes slowly."""
NOW = int(datetime.now(UTC).timestamp())


@dataclass(frozen=True)
class Outcome:
    """Fate of a request: a text, an error with its status, or a word such as expired."""

    text: str = ""
    status: int = 200
    message: str = ""
    gone: str = ""


def rated(text: str) -> Outcome:
    """A rating that depends on the text only."""
    return Outcome(str(sum(text.encode(errors="replace")) % 6))


@dataclass
class Batch:
    """One batch: requests as id -> (text, body); `looks` counts how often it was looked at."""

    remote: str
    key: str
    requests: dict[str, Json]
    looks: int = 0
    ended: str = ""
    failed: list[Json] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    input_file: str = ""


class Call(NamedTuple):
    """A call to the provider; `number` counts how often it was called so before."""

    method: str
    path: str
    number: int


Fault = Callable[[Call], "int | str | None"]
"""Fault of a call: a status, `lost` (done, and its reply is cut off), `drop` (not
done), or None.
"""


class BatchStub(ABC):
    """A provider; `looks` is how often a batch is looked at before it has ended.

    With a `pause` files come and go in parts, with so many seconds after each.
    """

    path: ClassVar[str] = "/v1"

    def __init__(self, looks: int = 0) -> None:
        self.looks = looks
        self.outcome: Callable[[str], Outcome] = rated
        self.mangle: Callable[[list[bytes]], list[bytes]] = lambda lines: lines
        self.fault: Fault = lambda _: None
        self.validate: Callable[[Batch], list[Json]] = lambda _: []
        self.end: Callable[[Batch], str] = lambda _: "completed"
        self.batches: dict[str, Batch] = {}
        self.paid: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.files: dict[str, list[bytes]] = {}
        self.torn = False
        self.pause = 0.0
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _serve(self) -> None:
                body = self._read(int(self.headers.get("content-length") or 0))
                where = urlsplit(self.path)
                path = where.path.removeprefix(stub.path)
                with stub._lock:
                    shown = re.sub(r"[0-9]+", "N", path)
                    number = stub.calls[self.command, shown]
                    stub.calls[self.command, shown] += 1
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    stub.keys.add(stub.key_of(headers))
                    fault = stub.fault(Call(self.command, path, number))
                    if isinstance(fault, int):
                        self._answer(fault, {"error": {"message": f"fault {fault}"}})
                        return
                    if fault == "drop":
                        self.close_connection = True
                        return
                    query = {name: values[0] for name, values in parse_qs(where.query).items()}
                    status, content = stub.serve(self.command, path, query, body)
                    if fault == "lost":
                        self.close_connection = True
                        return
                    self._answer(status, content)

            def _read(self, length: int) -> bytes:
                """The body; the client waits with its second half until the first was read."""
                parts = []
                for _ in range(PARTS if stub.pause and self.path.endswith("/files") else 0):
                    parts.append(self.rfile.read(length // 2 // PARTS))
                    time.sleep(stub.pause)
                return b"".join([*parts, self.rfile.read(length - sum(map(len, parts)))])

            def _answer(self, status: int, content: Json | bytes) -> None:
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                torn = stub.torn and isinstance(content, bytes)
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                data = data[: len(data) * 2 // 3] if torn else data
                slow = stub.pause if isinstance(content, bytes) else 0
                size = len(data) // (PARTS if slow else 1) + 1
                for start in range(0, len(data), size):
                    self.wfile.write(data[start : start + size])
                    time.sleep(slow)
                self.close_connection = torn

            do_GET = do_POST = _serve  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # what the kernel takes of a body that nobody reads
        self._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self.path}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def key_of(self, headers: dict[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    @abstractmethod
    def serve(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> tuple[int, Json | bytes]:
        """The status and body of an answer."""

    def text_of(self, body: Json) -> str:
        return str(body["messages"][-1]["content"])

    def add(self, key: str, requests: dict[str, Json]) -> Batch:
        batch = Batch(f"batch_{len(self.batches) + 1}", key, requests)
        self.batches[batch.remote] = batch
        return batch

    def seen(self, batch: Batch) -> Batch:
        """A batch as it is after one more look."""
        batch.looks += 1
        if not batch.ended:
            batch.failed = self.validate(batch)
            if batch.failed:
                batch.ended = "failed"
            elif batch.looks > self.looks:
                self.finish(batch, self.end(batch))
        return batch

    def finish(self, batch: Batch, how: str) -> None:
        """End a batch: what was not answered by then is gone."""
        batch.ended = how
        for request, body in batch.requests.items():
            outcome = self.outcome(self.text_of(body))
            batch.outcomes[request] = outcome
            if not outcome.gone and outcome.status == 200:
                self.paid[self.text_of(body)] += 1

    def lines(self, batch: Batch) -> list[bytes]:
        """The results, in another order than that of the requests."""
        found = []
        for request, outcome in reversed(batch.outcomes.items()):
            if outcome.gone != "dropped":
                found.append(json.dumps(self.line(request, outcome)).encode())
        return self.mangle(found)

    @abstractmethod
    def line(self, request: str, outcome: Outcome) -> Json:
        """Return the result of a request."""


class OpenAIStub(BatchStub):
    """Files and batches of OpenAI."""

    def serve(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> tuple[int, Json | bytes]:
        if (method, path) == ("POST", "/files"):
            assert b'name="purpose"\r\n\r\nbatch' in body
            content = body[body.index(b"{") : body.rindex(b"}") + 1]
            name = f"file-{len(self.files) + 1}"
            self.files[name] = content.split(b"\n")
            file = {"id": name, "object": "file", "purpose": "batch", "status": "processed"}
            return 200, {**file, "bytes": len(content), "created_at": NOW, "filename": name}
        if (method, path) == ("POST", "/batches"):
            asked = json.loads(body)
            assert asked["completion_window"] == "24h"
            assert asked["endpoint"] == "/v1/chat/completions"
            lines = [json.loads(line) for line in self.files[asked["input_file_id"]]]
            assert {(one["method"], one["url"]) for one in lines} == {("POST", asked["endpoint"])}
            batch = self.add(
                asked["metadata"]["exampp"], {one["custom_id"]: one["body"] for one in lines}
            )
            batch.input_file = asked["input_file_id"]
            return 200, self.shown(batch)
        if (method, path) == ("GET", "/batches"):
            names = list(reversed(self.batches))
            start = names.index(query["after"]) + 1 if "after" in query else 0
            page = names[start : start + 2]
            shown = [self.shown(self.batches[name]) for name in page]
            return 200, {"data": shown, "has_more": start + 2 < len(names)}
        if found := re.fullmatch("/batches/([^/]+)", path):
            if found[1] not in self.batches:
                return 404, {"error": {"message": "no such batch"}}
            return 200, self.shown(self.seen(self.batches[found[1]]))
        if found := re.fullmatch("/batches/([^/]+)/cancel", path):
            batch = self.batches[found[1]]
            self.finish(batch, "cancelled")
            return 200, self.shown(batch)
        if found := re.fullmatch("/files/([^/]+)/content", path):
            if found[1] not in self.files:
                return 404, {"error": {"message": "no such file"}}
            return 200, b"\n".join(self.files[found[1]])
        return 404, {"error": {"message": path}}

    def shown(self, batch: Batch) -> Json:
        more: Json = {}
        if batch.outcomes:
            lines = self.lines(batch)
            for part, is_error in (("output_file_id", False), ("error_file_id", True)):
                some = [line for line in lines if (b'"error": {' in line) is is_error]
                if some:
                    more[part] = f"{part[:3]}-{batch.remote}"
                    self.files.setdefault(more[part], some)
        answered = sum(not one.gone for one in batch.outcomes.values())
        return {
            "id": batch.remote,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": batch.input_file,
            "completion_window": "24h",
            "status": batch.ended or ("in_progress" if batch.looks else "validating"),
            "created_at": NOW,
            "expires_at": NOW + 86400,
            "metadata": {"exampp": batch.key},
            "errors": {"object": "list", "data": batch.failed} if batch.failed else None,
            "request_counts": {
                "total": len(batch.requests),
                "completed": answered,
                "failed": len(batch.outcomes) - answered,
            },
            **more,
        }

    def line(self, request: str, outcome: Outcome) -> Json:
        line: Json = {"id": f"r-{request}", "custom_id": request, "response": None, "error": None}
        if outcome.gone:
            return {**line, "error": {"code": f"batch_{outcome.gone}", "message": outcome.gone}}
        body: Json = {"error": {"message": outcome.message}}
        if outcome.status == 200:
            message = {"role": "assistant", "content": outcome.text}
            body = {
                "id": request,
                "object": "chat.completion",
                "created": NOW,
                "model": "tiny",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22},
            }
        response = {"status_code": outcome.status, "request_id": f"q-{request}", "body": body}
        return {**line, "response": response}
