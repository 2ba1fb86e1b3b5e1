"""The tools of the service by the Model Context Protocol: JSON-RPC messages, one answer each.

Only tools are offered, and no message needs an earlier one: a server over HTTP has no sessions.

Source: Model Context Protocol, revisions 2024-11-05 to 2025-06-18.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

from pydantic import ValidationError

from exampp.errors import ExamError
from exampp.service import ExamService, Unavailable
from exampp.store.clients import Identified
from exampp.version import __version__
from exampp.web.tools import TOOLS, describe_fault

_LOG = logging.getLogger("exampp.service")
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions that the messages below conform to, newest first."""
LONGEST = 4 << 20
"""Maximum bytes of a message."""
PARSE, REQUEST, METHOD, PARAMETERS, INTERNAL = -32700, -32600, -32601, -32602, -32603
INSTRUCTIONS = (
    "An exam for answers of RAG systems. Write an answer to a query of list_queries, grade it with "
    "grade_answer, and add what is missing. submit scores a whole system by sealed items."
)
Message = dict[str, Any]


class _RpcError(Exception):
    """An error of the protocol, with its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer_message(service: ExamService, client: Identified, content: bytes) -> Message | None:
    """Return the answer to a message; None for notifications and answers."""
    number: Any = None
    try:
        message = _parsed(content)
        number = message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            return None
        if not _is_request(message):
            number = None
            raise _RpcError(REQUEST, "The message is not a JSON-RPC 2.0 request")
        if "id" not in message:
            return None
        result = _result(service, client, message["method"], message.get("params") or {})
        return {"jsonrpc": "2.0", "id": number, "result": result}
    except _RpcError as error:
        fault = {"code": error.code, "message": str(error)}
        return {"jsonrpc": "2.0", "id": number, "error": fault}


def _parsed(content: bytes) -> Message:
    try:
        message = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _RpcError(PARSE, "The message is not JSON") from None
    if not isinstance(message, dict):
        raise _RpcError(REQUEST, "The message is not an object; send one message at a time")
    return message


def _refuse(name: str) -> None:
    raise ValueError(name)


def _is_request(message: Mapping[str, Any]) -> bool:
    return (
        message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params", {}), dict)
        and (isinstance(message.get("id", 0), str | int) and message.get("id") is not True)
    )


def _result(
    service: ExamService, client: Identified, method: str, parameters: Mapping[str, Any]
) -> Message:
    if method == "initialize":
        wanted = parameters.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "exampp", "version": __version__},
            "instructions": INSTRUCTIONS,
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [_described(name) for name in TOOLS]}
    if method == "tools/call":
        return _called(service, client, parameters)
    raise _RpcError(METHOD, f"Unknown method {method[:100]!a}")


def _described(name: str) -> Message:
    tool = TOOLS[name]
    return {
        "name": name,
        "description": tool.description,
        "inputSchema": tool.arguments.model_json_schema(),
        "annotations": {"readOnlyHint": name != "submit", "openWorldHint": False},
    }


def _called(service: ExamService, client: Identified, parameters: Mapping[str, Any]) -> Message:
    """Call a tool; a fault is a result that the model reads."""
    name, arguments = parameters.get("name"), parameters.get("arguments") or {}
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise _RpcError(PARAMETERS, f"Unknown tool {str(name)[:100]!a}. Use {', '.join(TOOLS)}")
    try:
        checked = tool.arguments.model_validate(arguments)
        found = asdict(tool.call(service, client, **checked.model_dump()))
    except ValidationError as error:
        return _text(describe_fault(error), failed=True)
    except Unavailable as error:
        return _text(f"{error}. Try again in {error.wait} s", failed=True)
    except (ExamError, OSError, MemoryError) as error:
        if not isinstance(error, ExamError) or error.exit_code != 2:
            _LOG.warning("%s", error)
            return _text("The exam cannot be read or written. Try again later", failed=True)
        return _text(str(error), failed=True)
    except Exception:
        # clients must not read what the log has
        _LOG.exception("bug")
        raise _RpcError(INTERNAL, "This is a bug in exampp") from None
    return _text(json.dumps(found, ensure_ascii=False), structured=found)


def _text(text: str, *, failed: bool = False, structured: Message | None = None) -> Message:
    found: Message = {"content": [{"type": "text", "text": text}], "isError": failed}
    return found if structured is None else {**found, "structuredContent": structured}


def serve_streams(service: ExamService, source: BinaryIO, target: BinaryIO) -> None:
    """Answer messages, one a line, until the input ends."""
    client = service.local_client()
    while line := source.readline(LONGEST + 1):
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = source.readline(LONGEST)
            line = b"too long"
        if not line.strip():
            continue
        answer = answer_message(service, client, line)
        if answer is not None:
            target.write(json.dumps(answer).encode() + b"\n")
            target.flush()
