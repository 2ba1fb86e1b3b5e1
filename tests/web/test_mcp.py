"""The tools by the Model Context Protocol, over HTTP and over standard streams."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sealed_exam
from support.api_clients import ApiClient, served
from support.sealed_exam import answers, words_of

from exampp import service
from exampp.service import ExamService
from exampp.web.mcp import LONGEST, VERSIONS, answer_message, serve_streams
from exampp.web.tools import TOOLS

HELLO = {
    "protocolVersion": "2025-03-26",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed_exam.make(tmp_path_factory.mktemp("exam") / "my.exam")


@pytest.fixture(scope="module")
def opened(path: Path) -> Iterator[ExamService]:
    before, service.SECONDS = service.SECONDS, 0.001
    with sealed_exam.service(path) as one:
        yield one
    service.SECONDS = before


def request(method: str, number: Any = 1, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def ask(opened: ExamService, message: object) -> Any:
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return answer_message(opened, opened.local_client(), content)


def call(opened: ExamService, name: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(opened, request("tools/call", name=name, arguments=arguments))
    result: dict[str, Any] = found["result"]
    return result


def test_a_session_by_hand(path: Path, opened: ExamService) -> None:
    hello = ask(opened, request("initialize", "a", **HELLO))
    assert (hello["id"], hello["result"]["protocolVersion"]) == ("a", "2025-03-26")
    assert hello["result"]["serverInfo"]["name"] == "exampp"
    assert ask(opened, {"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    assert ask(opened, request("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    tools = ask(opened, request("tools/list"))["result"]["tools"]
    assert [one["name"] for one in tools] == list(TOOLS)
    assert tools[1]["inputSchema"]["required"] == ["query_id", "answer"]
    changing = [one["name"] for one in tools if not one["annotations"]["readOnlyHint"]]
    assert changing == ["submit"]
    sealed = words_of(path, "sealed")
    graded = call(opened, "grade_answer", query_id="q00", answer=" ".join(sealed["q00"]))
    assert json.loads(graded["content"][0]["text"]) == graded["structuredContent"]
    assert (graded["isError"], graded["structuredContent"]["score"]) == (False, 0.0)
    assert not any(one in json.dumps(graded) for one in sealed["q00"])
    report = call(opened, "submit", answers=answers(sealed))["structuredContent"]
    assert (report["score"], report["is_new_best"]) == (1.0, True)
    assert call(opened, "budget")["structuredContent"]["client"] == "stdio"


@pytest.mark.parametrize("version", ["1999-01-01", None, 7, "2026-01-01"])
def test_an_unknown_revision_is_answered_by_the_newest(
    version: object, opened: ExamService
) -> None:
    found = ask(opened, request("initialize", **{**HELLO, "protocolVersion": version}))
    assert found["result"]["protocolVersion"] == VERSIONS[0]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("grade_answer", {"query_id": "q00"}, "'answer': field required."),
        (
            "grade_answer",
            {"query_id": "q99", "answer": "a"},
            "query_id: the exam has no query 'q99'",
        ),
        ("gate", {"answers": {"q00": "a"}, "require": "x"}, "'x' is not a requirement"),
        ("gate", {"answers": {}, "require": "x"}, "'answers': dictionary should have at least 1"),
        ("list_queries", {"limit": 0}, "'limit': input should be greater than or equal to 1."),
        ("budget", {"of": "ann"}, "'of': extra inputs are not permitted."),
        ("budget", [1], "input should be a valid dictionary"),
        ("missing", {"query_id": "q00", "answer": "\ud800"}, "'answer': input should be a valid"),
    ],
)
def test_faults_of_arguments_are_for_the_model_to_read(
    name: str, arguments: Any, message: str, opened: ExamService
) -> None:
    found = ask(opened, request("tools/call", name=name, arguments=arguments))["result"]
    assert found["isError"]
    assert found["content"][0]["text"].startswith(message)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b'{"id": NaN}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": 1' + b"0" * 5000 + b', "method": "ping"}', -32700),
        ([request("ping")], -32600),
        (7, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 2}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        (request("resources/list"), -32601),
        (request("tools/call", name="rm"), -32602),
        (request("tools/call", name={}), -32602),
        (request("tools/call"), -32602),
    ],
)
def test_faults_of_the_protocol(message: object, code: int, opened: ExamService) -> None:
    found = ask(opened, message)
    assert (found["jsonrpc"], found["error"]["code"]) == ("2.0", code)
    assert len(found["error"]["message"]) < 400


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    message=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["jsonrpc", "id", "method", "params", "name", "arguments"]), inner
            ),
        ),
        max_leaves=8,
    )
)
def test_any_message_has_an_answer_or_none(message: Any, opened: ExamService) -> None:
    found = ask(opened, message)
    assert found is None or ("result" in found) != ("error" in found)


def test_lines_of_a_stream(opened: ExamService) -> None:
    lines = [
        json.dumps(request("ping", 1)).encode(),
        b"",
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
        b" " * (LONGEST + 10) + b"x",
        json.dumps(request("ping", 2)).encode(),
        b'{"jsonrpc": "2.0", "id": 3',
    ]
    target = io.BytesIO()
    serve_streams(opened, io.BytesIO(b"\n".join(lines)), target)
    found = [json.loads(line) for line in target.getvalue().splitlines()]
    assert [one["id"] for one in found] == [1, None, 2, None]
    assert [one["error"]["code"] for one in found if "error" in one] == [-32700, -32700]


def test_the_command_writes_messages_alone(path: Path) -> None:
    """Standard output is for the protocol, whatever libraries print."""
    line = json.dumps(request("tools/call", name="grade_answer", arguments={"query_id": "q00"}))
    command = [sys.executable, "-m", "exampp", "api", str(path), "--grader", "draft", "--stdio"]
    ran = subprocess.run(command, input=f"{line}\n", capture_output=True, text=True, check=True)
    (answer,) = map(json.loads, ran.stdout.splitlines())
    assert answer["result"]["isError"]


def test_over_http(path: Path) -> None:
    with served(path) as port:
        bot = ApiClient(port, sealed_exam.client(path, "agent"))
        answer = bot.request("POST", "/mcp", json.dumps(request("initialize", **HELLO)).encode())
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = bot.request("POST", "/mcp", json.dumps(note).encode())
        assert (answer.status, answer.body) == (202, b"")
        called = request("tools/call", name="budget", arguments={})
        found = bot.request("POST", "/mcp", json.dumps(called).encode()).json
        assert found["result"]["structuredContent"]["client"] == "agent"
        assert bot.request("GET", "/mcp").status == 405
        bot.token = "wrong"
        assert bot.request("POST", "/mcp", b"{}").status == 401


def test_the_client_of_the_package_mcp(path: Path) -> None:
    mcp = pytest.importorskip("mcp")
    stdio = importlib.import_module("mcp.client.stdio")

    def failed(result: Any) -> bool:
        # versions 1 and 2 of the package
        return bool(getattr(result, "isError", getattr(result, "is_error", None)))

    async def talk() -> None:
        arguments = ["-m", "exampp", "api", str(path), "--grader", "draft", "--stdio"]
        server = mcp.StdioServerParameters(command=sys.executable, args=arguments)
        async with stdio.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert [one.name for one in tools.tools] == list(TOOLS)
            assert not failed(await session.call_tool("list_queries", {"limit": 1}))
            unknown = {"query_id": "q99", "answer": "a"}
            assert failed(await session.call_tool("grade_answer", unknown))

    asyncio.run(talk())
