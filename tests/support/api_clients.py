"""The API of an exam, served in this process on a free port, and a client of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn

from exampp.service import ExamService
from exampp.web.api import prepare_api
from exampp.web.serving import listen
from support import live, sealed_exam
from support.waiting import wait_for


class Answer(live.Answer):
    """An answer of the API."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error, in the one form of all errors."""
        found = self.json
        assert set(found) == {"error"}, found
        error: dict[str, Any] = found["error"]
        assert {"status", "code", "message"} <= set(error) <= {"status", "code", "message", "field"}
        assert error["status"] == self.status
        assert "Traceback" not in error["message"]
        return error


@dataclass
class ApiClient:
    """A program with a token."""

    port: int
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        everything = {"host": f"127.0.0.1:{self.port}", **self.headers, **(headers or {})}
        if self.token:
            everything.setdefault("authorization", f"Bearer {self.token}")
        if body is not None:
            everything.setdefault("content-type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, everything)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **parameters: object) -> Answer:
        return self.request("GET", path + (f"?{urlencode(parameters)}" if parameters else ""))

    def post(self, path: str, **body: object) -> Answer:
        return self.request("POST", path, json.dumps(body).encode())


@contextmanager
def served(path: Path, **options: Any) -> Iterator[int]:
    """The port of a server of the exam."""
    with sealed_exam.service(path) as service, running(service, **options) as (_, port):
        yield port


@contextmanager
def running(service: ExamService, **options: Any) -> Iterator[tuple[uvicorn.Server, int]]:
    """A server of the service, and its port."""
    with listen("127.0.0.1", 0) as listener:
        server = prepare_api(service, "127.0.0.1", **options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_for(lambda: server.started, bool)
            yield server, listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
