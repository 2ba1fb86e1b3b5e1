"""Batches of OpenAI, and of servers that speak as it does: a file of lines goes up, one comes back.

Source: the reference of /v1/files and /v1/batches. vLLM's `run-batch` reads and writes the same
lines, but tells an error beside a response without a body; its earlier versions put the bare
completion in the place of a response.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from exampp.graders.batches.service import (
    BatchLine,
    BatchService,
    BatchStatus,
    iso_time,
    json_line,
    read_count,
)

METADATA = "exampp"
PREFIX = "/v1"
"""What stands before a path in lines and in `endpoint`, whatever the base URL is."""
ENDED = ("completed", "failed", "expired", "cancelled")
GONE = {"batch_expired": "expired", "batch_cancelled": "cancelled", "batch_canceled": "cancelled"}
QUEUE_FULL = ("token_limit_exceeded", "rate_limit_exceeded", "request_limit_exceeded")
_PAGE = 100


class OpenAIBatches(BatchService):
    """50,000 requests and 200 MB are the provider's limits; half of them here."""

    name = "openai"

    def line(self, request: str, path: str, body: Mapping[str, Any]) -> bytes:
        """A line of the file that goes up."""
        return openai_line(request, path, body)

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """Upload the lines, then make a batch of them."""
        name = f"exampp-{key}.jsonl"
        content = b"\n".join(lines) + b"\n"
        files = {"file": (name, content, "application/jsonl")}
        file = self.call.json("POST", "/files", data={"purpose": "batch"}, files=files)
        made = self.call.json(
            "POST",
            "/batches",
            json={
                "input_file_id": file.get("id"),
                "endpoint": PREFIX + path,
                "completion_window": "24h",
                "metadata": {METADATA: key},
            },
        )
        return _sight(made)

    def recent(self, since: str) -> Iterator[BatchStatus]:
        """The batches of the account, newest first, until they are older."""
        earliest = datetime.fromisoformat(since).timestamp()
        after: dict[str, Any] = {}
        while True:
            page = self.call.json("GET", "/batches", params={"limit": _PAGE, **after})
            found = [one for one in page.get("data") or [] if isinstance(one, Mapping)]
            for one in found:
                if read_count(one.get("created_at")) >= earliest:
                    yield _sight(one)
            old = found and read_count(found[-1].get("created_at")) < earliest
            if not found or old or not page.get("has_more"):
                return
            after = {"after": str(found[-1].get("id"))}

    def look(self, remote: str) -> BatchStatus:
        """GET /batches/ID."""
        return _sight(self.call.json("GET", f"/batches/{remote}"))

    def results(self, sight: BatchStatus, requests: Sequence[str]) -> Iterator[BatchLine]:
        """Both files: replies, and errors."""
        del requests
        for part in ("output_file_id", "error_file_id"):
            if file := sight.whole.get(part):
                for line in self.call.lines(f"/files/{file}/content"):
                    yield openai_result(line)

    def cancel(self, remote: str) -> None:
        """POST /batches/ID/cancel."""
        self.call.json("POST", f"/batches/{remote}/cancel")


def openai_line(request: str, path: str, body: Mapping[str, Any]) -> bytes:
    """A request as a line of a batch file."""
    line = {"custom_id": request, "method": "POST", "url": PREFIX + path, "body": body}
    return json_line(line)


def openai_result(line: Mapping[str, Any]) -> BatchLine:
    """What a line of a result file says."""
    request = str(line.get("custom_id") or "")
    error = line.get("error")
    response = line.get("response")
    if isinstance(response, Mapping) and "choices" in response:
        return BatchLine(request, 200, response)
    if isinstance(response, Mapping) and response.get("status_code") is not None:
        body = response.get("body")
        return BatchLine(
            request, read_count(response["status_code"]), error if body is None else body
        )
    if isinstance(error, Mapping):
        code = str(error.get("code") or "")
        if code in GONE:
            return BatchLine(request, gone=GONE[code])
        return BatchLine(request, 400 if code.startswith("invalid") else 500, {"error": error})
    return BatchLine(request, 500, {"error": {"message": "the line has no response"}})


def _sight(data: Mapping[str, Any]) -> BatchStatus:
    said = str(data.get("status") or "")
    counts = data.get("request_counts") or {}
    listed = (data.get("errors") or {}).get("data") or []
    errors = [one for one in listed if isinstance(one, Mapping)]
    codes = {str(one.get("code")) for one in errors}
    return BatchStatus(
        remote=str(data.get("id") or ""),
        said=said,
        ended=said in ENDED,
        size=read_count(counts.get("total")),
        key=str((data.get("metadata") or {}).get(METADATA) or ""),
        expires=iso_time(data.get("expires_at")),
        cancelled=said == "cancelled",
        reason=_reason(errors) if said == "failed" else "",
        later=said == "failed" and bool(codes & set(QUEUE_FULL)),
        whole=data,
    )


def _reason(errors: Sequence[Mapping[str, Any]]) -> str:
    """Why a batch was refused: the first errors, with their lines."""
    told = [
        (f"line {one['line']}: " if one.get("line") else "")
        + str(one.get("message") or one.get("code") or "unknown")
        for one in errors[:3]
    ]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return ("; ".join(told) or "the provider does not say why") + more
