"""What every service of batches is, and the plain requests by which it is spoken to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from exampp.graders.openai.connection import ServerConnection
from exampp.graders.openai.failures import RequestFailure, RetryAction, failure_of_status, untrusted

LONGEST_LINE = 2**25
"""Bytes of a reply at most; no reply is so long."""


class BatchStatus(NamedTuple):
    """A batch as its provider shows it.

    `remote` is its id there and `said` its state in the provider's own word. `ended` tells that
    nothing more comes, `cancelled` that somebody wanted it so. `key` is what it was called when it
    was sent, where the provider keeps that. `reason` says why the whole was refused; `later` that
    it may be sent again when less is queued. `size` counts its requests, 0 where that is not told;
    `whole` is the provider's answer.
    """

    remote: str
    said: str
    ended: bool
    size: int = 0
    key: str = ""
    expires: str = ""
    cancelled: bool = False
    reason: str = ""
    later: bool = False
    whole: Mapping[str, Any] = {}


class BatchLine(NamedTuple):
    """What came to one request: status and body as of HTTP.

    `gone` says why it was never answered (expired, cancelled): it has cost nothing.
    """

    request: str
    status: int = 200
    body: Any = None
    gone: str = ""


class CallFailed(Exception):
    """A request to the service that gave nothing; `trouble` says why, and what to do about it."""

    def __init__(self, trouble: RequestFailure) -> None:
        super().__init__(trouble.reason)
        self.trouble = trouble


class TruncatedResults(Exception):
    """Results that cannot be read to their end; the text says where."""


@dataclass(frozen=True, slots=True)
class BatchClient:
    """Sends plain requests to one server, each once."""

    connection: ServerConnection
    model: str
    timeout: float

    def json(self, method: str, path: str, **more: Any) -> Any:
        """The JSON that the server answers. Raises CallFailed where it is none, or an error."""
        import httpx2

        trouble: RequestFailure | None = None
        data: Any = None
        try:
            with self.connection.caller(self.timeout) as client:
                response = client.request(method, path, **more)
            trouble = self._refusal(response)
            data = None if trouble else response.json()
        except httpx2.HTTPError as error:
            trouble = _of_transport(error)
        except (ValueError, RecursionError):
            trouble = RequestFailure(RetryAction.AGAIN, "the reply is not JSON", lost=True)
        # outside of the handlers: the errors of the transport hold the request with its key
        if trouble is None and not isinstance(data, Mapping):
            trouble = RequestFailure(RetryAction.AGAIN, "the reply is no JSON object", lost=True)
        if trouble is not None:
            raise CallFailed(trouble)
        return data

    def lines(self, path: str) -> Iterator[Mapping[str, Any]]:
        """The JSON objects of a file of lines, as they come.

        Raises CallFailed where there is no such file, TornResults where it breaks off or a line is
        none: what was yielded before stands.
        """
        import httpx2

        trouble: RequestFailure | None = None
        torn = ""
        number = 0
        try:
            with (
                self.connection.caller(self.timeout) as client,
                client.stream("GET", path) as response,
            ):
                if response.status_code >= 300:
                    response.read()
                    trouble = self._refusal(response)
                else:
                    for line in _split(response.iter_bytes()):
                        number += 1
                        found = _object(line)
                        if found is None:
                            torn = f"line {number} is no JSON object"
                            break
                        yield found
        except httpx2.HTTPError as error:
            trouble = _of_transport(error)
            if number:
                torn = f"it breaks off after line {number}"
        if torn:
            raise TruncatedResults(torn)
        if trouble is not None:
            raise CallFailed(trouble)

    def _refusal(self, response: Any) -> RequestFailure | None:
        if response.status_code < 300:
            return None
        if response.status_code < 400:
            reason = f"HTTP {response.status_code}: it sends requests on to somebody else"
            return RequestFailure(RetryAction.REJECTED, reason, status=response.status_code)
        found = _object(response.content)
        body: object = response.text[:1000] if found is None else found
        return failure_of_status(
            response.status_code, body, response.headers, self.connection, self.model
        )


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of at most `LONGEST_LINE` bytes; empty ones are left out."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.strip())
        if len(rest) > LONGEST_LINE:
            raise TruncatedResults(f"a line is longer than {LONGEST_LINE // 2**20} MiB")
    if rest.strip():
        yield rest


def _object(text: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _of_transport(error: Exception) -> RequestFailure:
    if fault := untrusted(error):
        return RequestFailure(RetryAction.STOP, str(fault), error=fault)
    name = type(error).__name__
    unreachable = name == "ConnectError"
    reason = "no connection" if unreachable else f"the connection broke ({name})"
    return RequestFailure(RetryAction.AGAIN, reason, lost=not unreachable, unreachable=unreachable)


class BatchService(ABC):
    """One provider's batches.

    `most_requests` and `most_bytes` bound a batch, `share` is the part of the usual price that is
    paid. `names` tells that the provider keeps what a batch was called, so that one whose id was
    lost is known again; where it does not, its results tell. What is `deferred` is not out before
    `finish`.
    """

    name: ClassVar[str]
    most_requests: ClassVar[int] = 25_000
    most_bytes: ClassVar[int] = 90_000_000
    share: ClassVar[float] = 0.5
    names: ClassVar[bool] = True
    deferred: ClassVar[bool] = False

    def __init__(self, caller: BatchClient) -> None:
        self.call = caller

    @property
    def server(self) -> str:
        """Host and port."""
        return self.call.connection.server

    @abstractmethod
    def line(self, request: str, path: str, body: Mapping[str, Any]) -> bytes:
        """A request as a part of a batch, without a line break; `request` is its id."""

    @abstractmethod
    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """Send a batch under a key. Raises CallFailed."""

    @abstractmethod
    def recent(self, since: str) -> Iterator[BatchStatus]:
        """The batches of the account that were made since then (ISO 8601). Raises CallFailed."""

    @abstractmethod
    def look(self, remote: str) -> BatchStatus:
        """How a batch is doing. Raises CallFailed."""

    @abstractmethod
    def results(self, sight: BatchStatus, requests: Sequence[str]) -> Iterator[BatchLine]:
        """What came, in any order, of a batch that has ended; `requests` are in the order sent.

        Raises CallFailed and TornResults.
        """

    def finish(self) -> None:
        """Bring to its end what was submitted: nothing, where that takes no more."""
        return

    @abstractmethod
    def cancel(self, remote: str) -> None:
        """End a batch early; what was answered stays. Raises CallFailed."""


def json_line(value: Mapping[str, Any]) -> bytes:
    """A JSON object on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def iso_time(seconds: object) -> str:
    """Seconds since 1970 as ISO 8601 in UTC; empty where they are none."""
    from datetime import UTC, datetime

    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def read_count(value: object) -> int:
    """A count of a provider's; 0 where it is none. Some write numbers as text."""
    if not isinstance(value, int | float | str):
        return 0
    try:
        return max(0, int(value))
    except (ValueError, OverflowError):
        return 0
