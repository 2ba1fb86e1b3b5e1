"""Batches: many requests sent to a provider together, at half the price, answered within a day.

The caller (`grading.batches`) stores sent requests and received replies. A batch of OpenAI and
compatible servers is an uploaded file of lines, and a downloaded one; for others (vLLM's
`run-batch`) the same lines are written and read as files. Source: the reference of /v1/files and
/v1/batches. vLLM reports an error beside a response without a body; its earlier versions had the
bare completion instead of a response.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

from exampp.errors import InputError
from exampp.graders.background import BackgroundLoop
from exampp.graders.base import Reply, Request, Usage
from exampp.graders.openai.client import (
    MALFORMED_ERRORS,
    RequestFailure,
    RetryAction,
    ServerAddress,
    ServerQuirks,
    describe_malformed,
    failure_of_status,
    send_json,
)
from exampp.graders.openai.modes import Mode
from exampp.store.connection import put_in_place
from exampp.store.runs import FILE

LONGEST_LINE = 2**25
"""Maximum bytes of a reply; no valid reply is so long."""
REQUEST_CHARACTERS, OTHERS_CHARACTERS = 32, 16
"""Length of the id of a cell, and of what its request adds for several cells."""
PARTIAL = ".partial"
METADATA = "exampp"
"""Metadata field with the key of a batch."""
PREFIX = "/v1"
"""Prefix of paths in lines and in `endpoint`, whatever the base URL is."""
ENDED = ("completed", "failed", "expired", "cancelled")
GONE = {"batch_expired": "expired", "batch_cancelled": "cancelled", "batch_canceled": "cancelled"}
QUEUE_FULL = {"token_limit_exceeded", "rate_limit_exceeded", "request_limit_exceeded"}
PAGE = 100


class BatchStatus(NamedTuple):
    """A batch as its provider reports it.

    Attributes:
        remote: Its id at the provider.
        state: The provider's word for its state.
        key: Its key in our metadata.
        ended: No more replies will come.
        cancelled: The batch was cancelled on request.
        reason: Why the whole batch was rejected.
        later: It can be sent again when fewer requests are queued.
        files: The files with its results.
    """

    remote: str
    state: str
    ended: bool = False
    key: str = ""
    expires: str = ""
    cancelled: bool = False
    reason: str = ""
    later: bool = False
    files: tuple[str, ...] = ()


class BatchLine(NamedTuple):
    """The answer to one request: HTTP status and body.

    `gone` is the reason if it was never answered (expired, cancelled); such a request costs
    nothing.
    """

    request: str
    status: int = 200
    body: Any = None
    gone: str = ""


class CallFailed(Exception):
    """A failed call to the provider; `failure` has the reason and the reaction."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class TruncatedResults(Exception):
    """Results that are incomplete; the text has the place."""


class ReadLine(NamedTuple):
    """A reply read from a line, or the reason why there is none.

    `error` would affect every other request, too. `changed`: the line named a parameter that
    requests must omit, so the next request differs. `alone`: the reply to several items has no
    clear rating of this one, so it is requested again without the others.
    """

    reply: Reply
    error: str = ""
    changed: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class BatchAdapter:
    """Creates the requests of one grader, and reads the returned lines."""

    address: ServerAddress
    mode: Mode
    quirks: ServerQuirks

    @property
    def path(self) -> str:
        """Path of a single request."""
        return self.mode.path

    def body(self, requests: Sequence[Request]) -> dict[str, Any]:
        """Return the body of a request for one or several items of a passage."""
        return self.quirks.adapt(self.mode.body(requests))

    def transient(self, line: BatchLine) -> str:
        """Return the reason why a request can be sent again; empty if its line is final."""
        if line.gone or line.status < 300:
            return line.gone
        failure = self._failure(line)
        return failure.reason if failure.action is RetryAction.RETRY else ""

    def split(self, line: BatchLine, cells: Sequence[str]) -> list[dict[str, Any]]:
        """Return the stored form of the reply to each cell of a request; `read` reads it.

        A reply to several items is divided here: later, other cells of the passage may be pending.
        """
        whole = {"status": line.status, "body": line.body}
        if len(cells) == 1 or line.status >= 300:
            return [whole | ({"items": len(cells)} if len(cells) > 1 else {})] * len(cells)
        try:
            replies = self.mode.read_several(line.body, len(cells), cells).replies
        except MALFORMED_ERRORS as malformed:
            replies = [Reply("", fault=describe_malformed(malformed))] * len(cells)
        return [{"status": line.status, "reply": asdict(reply)} for reply in replies]

    def read(self, request: Request, stored: Mapping[str, Any]) -> ReadLine:
        """Return the stored reply to a request."""
        if divided := stored.get("reply"):
            reply = Reply(**{**divided, "usage": Usage(**divided["usage"])})
            return ReadLine(self._without(request, reply), alone=bool(reply.fault))
        line = BatchLine("", stored["status"], stored["body"])
        if line.status < 300:
            try:
                reply = self.mode.read(line.body, [request]).replies[0]
            except MALFORMED_ERRORS as malformed:
                return ReadLine(Reply("", fault=describe_malformed(malformed)))
            return ReadLine(self._without(request, reply))
        before = self.body([request]), self.quirks.context
        failure = self._failure(line)
        self.quirks.learn(failure)
        changed = (self.body([request]), self.quirks.context) != before
        error = "" if failure.error is None or changed else str(failure.error)
        # items that are refused together may not be refused alone
        alone = "items" in stored and not (error or changed)
        if failure.action is RetryAction.REFUSAL and not alone:
            return ReadLine(Reply("", detail={"refusal": True, "reason": failure.reason}))
        return ReadLine(Reply("", fault=failure.reason), error, changed, alone)

    def _without(self, request: Request, reply: Reply) -> Reply:
        """Return a reply that names the parameters which its request omitted."""
        without = self.quirks.missing(self.mode.body([request]))
        return replace(reply, detail={**reply.detail, "without": without}) if without else reply

    def _failure(self, line: BatchLine) -> RequestFailure:
        model = self.mode.options.model or ""
        return failure_of_status(line.status, line.body, {}, self.address, model)


def request_id(grader: str, body: Mapping[str, Any]) -> str:
    """Return the id of a cell of a grader, from its request alone; equal cells are sent once."""
    text = json.dumps([grader, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:REQUEST_CHARACTERS]


def line_id(cells: Sequence[str]) -> str:
    """Return the id of the request for some cells, which begins with the id of the first."""
    others = hashlib.sha256("".join(cells).encode()).hexdigest()[:OTHERS_CHARACTERS]
    return cells[0] if len(cells) == 1 else f"{cells[0]}-{others}"


class OpenAIBatches:
    """Batches of a provider.

    `most_requests` and `most_bytes` limit a batch: the provider allows 50,000 and 200 MB. `share`
    is the paid fraction of the usual price. `deferred` batches are sent by `finish`. All calls
    raise CallFailed.
    """

    name: ClassVar[str] = "openai"
    most_requests: ClassVar[int] = 25_000
    most_bytes: ClassVar[int] = 90_000_000
    share: ClassVar[float] = 0.5
    deferred: ClassVar[bool] = False

    def __init__(self, adapter: BatchAdapter) -> None:
        self._adapter = adapter

    @property
    def server(self) -> str:
        """Host and port."""
        return self._adapter.address.name

    def line(self, request: str, path: str, body: Mapping[str, Any]) -> bytes:
        """Return a request as a line, without line break; `request` is its id."""
        return json.dumps(
            {"custom_id": request, "method": "POST", "url": PREFIX + path, "body": body},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """Upload lines, and create a batch of them under a key."""
        from aiohttp import FormData

        form = FormData({"purpose": "batch"})
        # as a stream, because aiohttp sends bytes in one piece
        content = io.BytesIO(b"\n".join(lines) + b"\n")
        name = f"exampp-{key}.jsonl"
        form.add_field("file", content, filename=name, content_type="application/jsonl")
        file = self._call("POST", "/files", form, content_type="")
        request = {
            "input_file_id": file.get("id"),
            "endpoint": PREFIX + path,
            "completion_window": "24h",
            "metadata": {METADATA: key},
        }
        return _status(self._call("POST", "/batches", json.dumps(request).encode()))

    def recent(self, since: str) -> Iterator[BatchStatus]:
        """Yield the batches of the account created since then (ISO 8601)."""
        earliest = datetime.fromisoformat(since).timestamp()
        after = ""
        while True:
            page = self._call("GET", f"/batches?limit={PAGE}{after}")
            batches = [one for one in page.get("data") or [] if isinstance(one, Mapping)]
            for one in batches:
                if _count(one.get("created_at")) >= earliest:
                    yield _status(one)
            old = batches and _count(batches[-1].get("created_at")) < earliest
            if not batches or old or not page.get("has_more"):
                return
            after = f"&after={batches[-1].get('id')}"

    def look(self, remote: str) -> BatchStatus:
        """Return the status of a batch."""
        return _status(self._call("GET", f"/batches/{remote}"))

    def results(self, status: BatchStatus) -> Iterator[BatchLine]:
        """Yield the results of an ended batch, replies and errors, in any order.

        Raises:
            TruncatedResults: The results are incomplete, or a line is not a JSON object; results
                yielded before remain valid.
        """
        for file in status.files:
            with tempfile.TemporaryFile() as stream:
                broken: CallFailed | None = None
                try:
                    self._call("GET", f"/files/{file}/content", sink=stream)
                except CallFailed as failed:
                    broken = failed
                stream.seek(0)
                number = 0
                for number, line in enumerate(_lines(stream, whole=broken is None), 1):
                    result = _json_object(line)
                    if result is None:
                        raise TruncatedResults(f"line {number} is not a JSON object")
                    yield read_result(result)
                if broken is not None:
                    if number:
                        raise TruncatedResults(f"the file ends after line {number}")
                    raise broken

    def finish(self) -> None:
        """Complete the submission; does nothing if it is already sent."""

    def cancel(self, remote: str) -> None:
        """End a batch early; existing answers remain available."""
        self._call("POST", f"/batches/{remote}/cancel", b"{}")

    def _call(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        content_type: str = "application/json",
        sink: BinaryIO | None = None,
    ) -> Any:
        """Send one request, once; return the JSON object of the reply."""
        adapter = self._adapter

        async def send() -> Any:
            # a large file may take any time while bytes arrive
            async with adapter.address.open_session(adapter.mode.options.timeout) as session:
                return await send_json(
                    session,
                    adapter.address,
                    (method, path),
                    data,
                    model=adapter.mode.options.model or "",
                    timeout=None,
                    content_type=content_type,
                    sink=sink,
                )

        with BackgroundLoop("exampp-batches") as loop:
            outcome = loop.run(send())
        if sink is None and not isinstance(outcome, Mapping | RequestFailure):
            outcome = RequestFailure(RetryAction.RETRY, "the reply is not a JSON object", lost=True)
        if isinstance(outcome, RequestFailure):
            raise CallFailed(outcome)
        return outcome


class FileBatches(OpenAIBatches):
    """Writes one file of requests, which appears complete after `finish`.

    Raises:
        InputError: The file exists.
    """

    name = FILE
    share = 1.0
    deferred = True

    def __init__(self, adapter: BatchAdapter, path: Path | None) -> None:
        super().__init__(adapter)
        self.path = path or Path()
        self.written = 0
        if path is not None and path.exists():
            raise InputError("already exists", file=path, hint="Choose another name")

    @property
    def server(self) -> str:
        """The name of the file."""
        return self.path.name

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:  # noqa: ARG002
        """Append lines."""
        try:
            with self._partial.open("ab" if self.written else "wb") as out:
                out.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", file=self.path) from None
        self.written += len(lines)
        return BatchStatus(self.path.name, "written", key=key)

    def finish(self) -> None:
        """Put the file in its place."""
        if self.written:
            put_in_place(self._partial, self.path)

    def recent(self, since: str) -> Iterator[BatchStatus]:  # noqa: ARG002
        """Yield nothing: an unfinished file is written again."""
        yield from ()

    def look(self, remote: str) -> BatchStatus:
        """Return that the file is written; its progress is unknown."""
        return BatchStatus(remote, "written")

    @property
    def _partial(self) -> Path:
        return self.path.with_name(self.path.name + PARTIAL)


def read_replies(path: Path) -> Iterator[BatchLine | int]:
    """Yield the lines of a file of replies; an invalid line gives its number.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    reply = _json_object(line)
                    yield read_result(reply) if reply and reply.get("custom_id") else number
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None


def read_result(line: Mapping[str, Any]) -> BatchLine:
    """Return the answer in a line of results."""
    request = str(line.get("custom_id") or "")
    error, response = line.get("error"), line.get("response")
    if isinstance(response, Mapping) and "choices" in response:
        return BatchLine(request, 200, response)
    if isinstance(response, Mapping) and response.get("status_code") is not None:
        body = response.get("body")
        return BatchLine(request, _count(response["status_code"]), error if body is None else body)
    if isinstance(error, Mapping):
        code = str(error.get("code") or "")
        if code in GONE:
            return BatchLine(request, gone=GONE[code])
        return BatchLine(request, 400 if code.startswith("invalid") else 500, {"error": error})
    return BatchLine(request, 500, {"error": {"message": "the line has no response"}})


def _status(data: Mapping[str, Any]) -> BatchStatus:
    state = str(data.get("status") or "")
    listed = (data.get("errors") or {}).get("data") or []
    errors = [one for one in listed if isinstance(one, Mapping)]
    expires = _count(data.get("expires_at"))
    failed = state == "failed"
    files = (data.get(name) for name in ("output_file_id", "error_file_id"))
    return BatchStatus(
        remote=str(data.get("id") or ""),
        state=state,
        ended=state in ENDED,
        key=str((data.get("metadata") or {}).get(METADATA) or ""),
        expires=datetime.fromtimestamp(expires, UTC).isoformat() if expires else "",
        cancelled=state == "cancelled",
        reason=_reason(errors) if failed else "",
        later=failed and bool({str(one.get("code")) for one in errors} & QUEUE_FULL),
        files=tuple(str(file) for file in files if file),
    )


def _reason(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return why a batch was rejected: the first errors, with their lines."""
    reasons = [
        (f"line {one['line']}: " if one.get("line") else "")
        + str(one.get("message") or one.get("code") or "unknown")
        for one in errors[:3]
    ]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return ("; ".join(reasons) or "the provider gives no reason") + more


def _lines(stream: BinaryIO, *, whole: bool) -> Iterator[bytes]:
    """Yield the non-empty lines; a last line without a line break only if the file is `whole`."""
    for line in iter(lambda: stream.readline(LONGEST_LINE + 1), b""):
        if len(line) > LONGEST_LINE:
            raise TruncatedResults(f"a line is longer than {LONGEST_LINE // 2**20} MiB")
        if line.strip() and (whole or line.endswith(b"\n")):
            yield line


def _json_object(text: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def _count(value: object) -> int:
    """Return a provider's count, which may be text; 0 if it is invalid."""
    try:
        return max(0, int(value)) if isinstance(value, int | float | str) else 0
    except (ValueError, OverflowError):
        return 0
