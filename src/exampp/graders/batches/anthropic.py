"""Message batches of Anthropic: all requests in one body, results as a file of lines.

A batch has no metadata: one whose id was lost is known again by the ids in its results alone.
Source: the reference of /v1/messages/batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from exampp.graders.batches.service import (
    BatchLine,
    BatchService,
    BatchStatus,
    json_line,
    read_count,
)

PATH = "/messages/batches"
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of HTTP that goes with a type of error; 500 with all others."""
GONE = {"expired": "expired", "canceled": "cancelled"}
_PAGE = 100


class AnthropicBatches(BatchService):
    """100,000 requests and 256 MB are the provider's limits."""

    name = "anthropic"
    names = False

    def line(self, request: str, path: str, body: Mapping[str, Any]) -> bytes:
        """One of the `requests`."""
        del path
        return json_line({"custom_id": request, "params": body})

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """POST /messages/batches."""
        del key, path
        content = b'{"requests":[' + b",".join(lines) + b"]}"
        headers = {"content-type": "application/json"}
        return _sight(self.call.json("POST", PATH, content=content, headers=headers))

    def recent(self, since: str) -> Iterator[BatchStatus]:
        """The batches of the workspace, newest first, until they are older."""
        earliest = datetime.fromisoformat(since)
        after: dict[str, Any] = {}
        while True:
            page = self.call.json("GET", PATH, params={"limit": _PAGE, **after})
            found = [one for one in page.get("data") or [] if isinstance(one, Mapping)]
            for one in found:
                if datetime.fromisoformat(str(one.get("created_at"))) < earliest:
                    return
                yield _sight(one)
            if not found or not page.get("has_more"):
                return
            after = {"after_id": str(found[-1].get("id"))}

    def look(self, remote: str) -> BatchStatus:
        """GET /messages/batches/ID."""
        return _sight(self.call.json("GET", f"{PATH}/{remote}"))

    def results(self, sight: BatchStatus, requests: Sequence[str]) -> Iterator[BatchLine]:
        """GET /messages/batches/ID/results, which is where `results_url` points to."""
        del requests
        for line in self.call.lines(f"{PATH}/{sight.remote}/results"):
            yield _result(line)

    def cancel(self, remote: str) -> None:
        """POST /messages/batches/ID/cancel."""
        self.call.json("POST", f"{PATH}/{remote}/cancel")


def _result(line: Mapping[str, Any]) -> BatchLine:
    request = str(line.get("custom_id") or "")
    result = line.get("result")
    if not isinstance(result, Mapping):
        return BatchLine(request, 500, {"error": {"message": "the line has no result"}})
    kind = str(result.get("type"))
    if kind == "succeeded":
        return BatchLine(request, 200, result.get("message"))
    if kind in GONE:
        return BatchLine(request, gone=GONE[kind])
    error = result.get("error")
    inner = error.get("error") if isinstance(error, Mapping) else None
    said = inner if isinstance(inner, Mapping) else {"message": kind}
    return BatchLine(request, STATUS.get(str(said.get("type")), 500), {"error": said})


def _sight(data: Mapping[str, Any]) -> BatchStatus:
    said = str(data.get("processing_status") or "")
    counts = data.get("request_counts") or {}
    return BatchStatus(
        remote=str(data.get("id") or ""),
        said=said,
        ended=said == "ended",
        size=sum(read_count(number) for number in counts.values()),
        expires=str(data.get("expires_at") or ""),
        cancelled=bool(data.get("cancel_initiated_at")),
        whole=data,
    )
