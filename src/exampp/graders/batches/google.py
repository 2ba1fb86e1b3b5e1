"""Batches of the Gemini API: requests and results inline, in one body each.

The ids go along as metadata, which the provider does not always give back: then results are told by
their order, which is that of the requests.
Source: the reference of `models.batchGenerateContent` and of `batches` (v1), and how the
provider's SDK writes and reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from exampp.graders.batches.service import (
    BatchLine,
    BatchService,
    BatchStatus,
    TruncatedResults,
    json_line,
    read_count,
)

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
KEY = "key"
STATUS = {1: 0, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
"""The status of HTTP that goes with a canonical code of an error; 0 where it was cancelled."""
_GENERATE = ":generateContent"
_PAGE = 100


class GoogleBatches(BatchService):
    """A request with all its lines has 20 MB at most."""

    name = "google"
    most_bytes = 15_000_000

    def line(self, request: str, path: str, body: Mapping[str, Any]) -> bytes:
        """One of the inlined requests."""
        del path
        return json_line({"request": body, "metadata": {KEY: request}})

    def submit(self, key: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """POST models/MODEL:batchGenerateContent."""
        named = json_line({"displayName": _name(key)})[1:-1]
        requests = b'{"requests":{"requests":[' + b",".join(lines) + b"]}}"
        content = b'{"batch":{' + named + b',"inputConfig":' + requests + b"}}"
        headers = {"content-type": "application/json"}
        where = path.removesuffix(_GENERATE) + ":batchGenerateContent"
        return _sight(self.call.json("POST", where, content=content, headers=headers))

    def recent(self, since: str) -> Iterator[BatchStatus]:
        """The batches of the project."""
        earliest = datetime.fromisoformat(since)
        token: dict[str, Any] = {}
        while True:
            page = self.call.json("GET", "/batches", params={"pageSize": _PAGE, **token})
            for one in page.get("operations") or []:
                made = (one.get("metadata") or {}).get("createTime")
                if not made or datetime.fromisoformat(str(made)) >= earliest:
                    yield _sight(one)
            if not page.get("nextPageToken"):
                return
            token = {"pageToken": str(page["nextPageToken"])}

    def look(self, remote: str) -> BatchStatus:
        """GET batches/ID."""
        return _sight(self.call.json("GET", f"/{remote}"))

    def results(self, sight: BatchStatus, requests: Sequence[str]) -> Iterator[BatchLine]:
        """The inlined responses, by their keys, or by their order where they have none."""
        metadata = sight.whole.get("metadata") or {}
        output = metadata.get("output") or sight.whole.get("response") or {}
        output = output.get("output") or output
        inlined = (output.get("inlinedResponses") or {}).get("inlinedResponses") or []
        keys = [(one.get("metadata") or {}).get(KEY) for one in inlined]
        if not all(keys):
            if len(inlined) != len(requests):
                raise TruncatedResults(
                    f"{len(inlined)} results without keys to {len(requests)} requests"
                )
            keys = list(requests)
        for request, one in zip(keys, inlined, strict=True):
            yield _result(str(request), one)

    def cancel(self, remote: str) -> None:
        """POST batches/ID:cancel."""
        self.call.json("POST", f"/{remote}:cancel")


def _name(key: str) -> str:
    return f"exampp-{key}"


def _result(request: str, one: Mapping[str, Any]) -> BatchLine:
    error = one.get("error")
    if not isinstance(error, Mapping):
        return BatchLine(request, 200, one.get("response"))
    code = read_count(error.get("code"))
    status = code if code >= 400 else STATUS.get(code, 500)
    if not status:
        return BatchLine(request, gone="cancelled")
    return BatchLine(request, status, {"error": {"message": error.get("message") or ""}})


def _sight(data: Mapping[str, Any]) -> BatchStatus:
    metadata = data.get("metadata") or {}
    # BATCH_STATE_RUNNING and JOB_STATE_RUNNING are one
    state = str(metadata.get("state") or "").rpartition("_STATE_")[2]
    stats = metadata.get("batchStats") or {}
    failure = data.get("error") or {}
    refused = state == "FAILED" or (bool(failure) and state not in ("CANCELLED", "EXPIRED"))
    reason = str(failure.get("message") or "the provider does not say why")
    return BatchStatus(
        remote=str(data.get("name") or ""),
        said=state.lower(),
        ended=state in ENDED or bool(data.get("done")),
        size=read_count(stats.get("requestCount")),
        key=str(metadata.get("displayName") or "").removeprefix("exampp-"),
        cancelled=state == "CANCELLED",
        reason=reason if refused else "",
        later=refused and read_count(failure.get("code")) in (8, 429),
        whole=data,
    )
