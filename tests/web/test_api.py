"""The HTTP API: its contract, its errors, and attempts to break it."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sealed_exam
from support.api_clients import Answer, ApiClient, running, served
from support.sealed_exam import QUERIES, answers, words_of

import exampp
from exampp import service
from exampp.records.clients import Limits
from exampp.scorer import Scorer
from exampp.service import revoke_client
from exampp.web.api import BODY_BYTES
from exampp.web.tools import TOOLS

PATHS = tuple(tool.path for tool in TOOLS.values())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed_exam.make(tmp_path_factory.mktemp("exam") / "my.exam")


@pytest.fixture(scope="module")
def port(path: Path) -> Iterator[int]:
    before, service.SECONDS = service.SECONDS, 0.001
    with served(path, allowed_hosts=["exams.example.org"], prefix="/exam") as found:
        yield found
    service.SECONDS = before


@pytest.fixture
def bot(path: Path, port: int) -> ApiClient:
    return ApiClient(port, sealed_exam.client(path))


# ---- answers -------------------------------------------------------------------------------------


def test_every_tool_answers(path: Path, bot: ApiClient) -> None:
    public, sealed = (answers(words_of(path, part)) for part in ("public", "sealed"))
    listed = bot.get("/v1/queries", limit=2).json
    assert [one["query_id"] for one in listed["queries"]] == ["q00", "q01"]
    assert bot.get("/v1/queries", after="q10", limit=5).json["queries"][0]["query_id"] == "q11"
    graded = bot.post("/v1/grade", query_id="q00", answer=public["q00"]).json
    assert (graded["score"], [one["rating"] for one in graded["items"]]) == (1.0, [5, 5])
    assert len(bot.post("/v1/missing", query_id="q00", answer="no").json["items"]) == 2
    found = bot.post("/v1/compare", first=public, second=sealed).json
    assert (found["verdict"], found["difference"]) == ("first is better", 1.0)
    assert bot.post("/v1/gate", answers=public, require="Cover>=0.7").json["verdict"] == "passed"
    found = bot.post("/v1/submit", answers=sealed).json
    assert (found["score"], found["is_new_best"]) == (1.0, True)
    budget = bot.get("/v1/budget").json
    assert (budget["client"], budget["requests"]) == ("bot", 7)


def test_the_api_below_a_path(bot: ApiClient) -> None:
    assert bot.get("/exam/v1/budget").status == 200
    assert bot.get("/examination/v1/budget").status == 404
    assert bot.get("/exam/openapi.json").json["servers"] == [{"url": "/exam"}]


def test_the_document_describes_all_addresses(port: int) -> None:
    """Without a token: it has nothing of the exam."""
    found = ApiClient(port).get("/openapi.json")
    assert found.status == 200
    document = found.json
    assert set(document["paths"]) == set(PATHS)
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for operations in document["paths"].values():
        for operation in operations.values():
            assert {"200", "400", "401", "403", "404", "413", "422", "429", "503"} <= set(
                operation["responses"]
            )
    assert "q00" not in found.body.decode()


# ---- the contract: whatever is sent, the answer is one that the document has ---------------------

TEXTS = st.one_of(
    st.sampled_from(["q00", "q01", "", "\x00", "Cover>=0.5", "Cover>=nan", "Cover>=1e999"]),
    st.text(max_size=20),
)
ANSWERS = st.dictionaries(TEXTS, TEXTS, max_size=3)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
FIELDS = ("query_id", "answer", "answers", "first", "second", "require", "extra", "limit", "after")
BODIES = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "query_id": TEXTS,
            "answer": TEXTS,
            "answers": ANSWERS,
            "first": ANSWERS,
            "second": ANSWERS,
            "require": TEXTS,
        },
    ),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4),
    JSON,
)


def check_contract(document: Mapping[str, Any], path: str, method: str, answer: Answer) -> None:
    """The status is documented for the operation, and the answer has its form."""
    operation = document["paths"][path][method.lower()]
    assert str(answer.status) in operation["responses"], (answer.status, answer.body)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    if answer.status >= 400:
        assert answer.error["message"]
        return
    reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    assert set(schema["required"]) <= set(answer.json) <= set(schema["properties"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(TOOLS)), body=BODIES)
def test_any_body_is_answered_by_the_contract(name: str, body: object, bot: ApiClient) -> None:
    document, tool = bot.get("/openapi.json").json, TOOLS[name]
    method = "GET" if tool.reads else "POST"
    if tool.reads:
        parameters = body if isinstance(body, dict) else {"limit": body}
        texts = {key: json.dumps(value) for key, value in parameters.items()}
        answer = bot.get(tool.path, **texts)
    else:
        answer = bot.request(method, tool.path, json.dumps(body).encode())
    assert answer.status in (200, 400, 404, 422)
    check_contract(document, tool.path, method, answer)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60), name=st.sampled_from(sorted(TOOLS)))
def test_bytes_that_are_no_json(content: bytes, name: str, bot: ApiClient) -> None:
    tool = TOOLS[name]
    if not tool.reads:
        answer = bot.request("POST", tool.path, content)
        assert answer.status in (400, 404, 422)
        assert answer.error


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"query_id": "q00"}', "answer"),
        (b'{"query_id": "q00", "answer": NaN}', "answer"),
        (b'{"query_id": "q00", "answer": "\\ud800"}', "answer"),
        (b'{"query_id": 1, "answer": "a"}', "query_id"),
        (b'{"query_id": "q00", "answer": "a", "part": "sealed"}', "part"),
        (b'{"query_id": "q00", "answer": 1' + b"0" * 5000 + b"}", ""),
        (b"[" * 100_000, ""),
        (b"", ""),
    ],
)
def test_faults_name_their_field(body: bytes, field: str, bot: ApiClient) -> None:
    answer = bot.request("POST", "/v1/grade", body)
    assert answer.status in (400, 422)
    assert answer.error.get("field", "") == field


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"query_id=q00&answer=a", "application/x-www-form-urlencoded"),
        (b'{"query_id": "q00", "answer": "a"}', "text/plain"),
        (b"<query/>", "application/xml"),
        (b"[1]", "application/json"),
        (b"", "application/json"),
    ],
)
def test_a_body_that_is_no_object_is_explained(
    body: bytes, content_type: str, bot: ApiClient
) -> None:
    """As curl -d sends it without a header."""
    answer = bot.request("POST", "/v1/grade", body, headers={"content-type": content_type})
    assert answer.status == 422
    assert "not a JSON object" in answer.error["message"]
    assert "Content-Type: application/json" in answer.error["message"]


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "1e3", "NaN", "", "9" * 5000, "1;2"])
def test_numbers_in_addresses_are_checked(limit: str, bot: ApiClient) -> None:
    answer = bot.get("/v1/queries", limit=limit)
    assert (answer.status, answer.error["field"]) == (422, "limit")


def test_a_query_that_does_not_exist(bot: ApiClient) -> None:
    answer = bot.post("/v1/grade", query_id="Q00", answer="a")
    assert answer.status == 404
    assert answer.error == {
        "status": 404,
        "code": "not_found",
        "message": "the exam has no query 'Q00'. Did you mean 'q00'?",
        "field": "query_id",
    }


def test_a_long_answer_and_a_large_body(bot: ApiClient) -> None:
    answer = bot.post("/v1/grade", query_id="q00", answer="a" * 100_001)
    assert (answer.status, answer.error["field"]) == (422, "answer")
    big = dict.fromkeys((f"q{number:02}" for number in range(QUERIES)), "a" * 100_000)
    assert bot.post("/v1/compare", first=big, second=big).status == 200
    over = b'{"query_id": "' + b"q" * BODY_BYTES + b'"}'
    answer = bot.request("POST", "/v1/grade", over)
    assert (answer.status, answer.error["code"]) == (413, "too_large")


# ---- access --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path_", [*PATHS, "/mcp", "/", "/v1", "/docs", "/redoc", "/people"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD"])
def test_without_a_token_nothing_is_answered(path_: str, method: str, port: int) -> None:
    answer = ApiClient(port).request(method, path_, b"{}")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    if method != "HEAD":
        assert answer.error["message"].startswith("No token.")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {token}",
        "Bearer {token}x",
        "Bearer {short}",
        "{token}",
        "Bearer {token} {token}",
        "Bearer " + "x" * 20_000,
    ],
)
def test_wrong_tokens_are_refused(header: str, bot: ApiClient) -> None:
    sent = header.format(token=bot.token, short=bot.token[:-1])
    answer = bot.request("GET", "/v1/budget", headers={"authorization": sent})
    assert (answer.status, answer.error["code"]) == (401, "no_token")


def test_a_token_in_the_address_is_no_token(bot: ApiClient) -> None:
    token, bot.token = bot.token, ""
    assert bot.get("/v1/budget", token=token, authorization=f"Bearer {token}").status == 401


def test_a_token_is_revoked_while_it_is_in_use(path: Path, bot: ApiClient) -> None:
    assert bot.get("/v1/budget").status == 200
    with exampp.open(path) as exam:
        revoke_client(exam, "bot")
    answer = bot.get("/v1/budget")
    assert answer.status == 401
    assert "unknown or was revoked" in answer.error["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example.org"}, 403),
        ({"host": "exams.example.org"}, 200),
        ({"origin": "https://evil.example.org"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://exams.example.org"}, 200),
        ({"origin": "http://[::1"}, 403),
    ],
)
def test_hosts_and_origins(headers: dict[str, str], status: int, bot: ApiClient) -> None:
    answer = bot.request("GET", "/v1/budget", headers=headers)
    assert answer.status == status


@pytest.mark.parametrize(
    "address",
    [
        "/v1/../v1/budget/..",
        "//v1/budget",
        "/v1/budget/",
        "/%2e%2e/my.exam",
        "/v1/queries%00",
        "/static/style.css",
        "/v1/grade/q00",
        "/docs",
    ],
)
def test_other_addresses_do_not_exist(address: str, bot: ApiClient) -> None:
    answer = bot.request("GET", address)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_other_methods_are_not_allowed(bot: ApiClient) -> None:
    for method, address in (("GET", "/v1/grade"), ("POST", "/v1/queries"), ("DELETE", "/mcp")):
        answer = bot.request(method, address, b"{}")
        assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")
        assert answer.headers["allow"]


# ---- limits --------------------------------------------------------------------------------------


def test_a_budget_that_is_used_up(path: Path, port: int) -> None:
    bot = ApiClient(port, sealed_exam.client(path, "few", Limits(requests=1)))
    assert bot.post("/v1/grade", query_id="q00", answer="a").status == 200
    answer = bot.post("/v1/grade", query_id="q00", answer="a")
    assert (answer.status, answer.error["code"]) == (403, "not_allowed")
    assert "all 1 requests of this token are used" in answer.error["message"]
    assert bot.get("/v1/budget").json["requests"] == 1


def test_too_many_requests_in_a_minute(path: Path, port: int) -> None:
    bot = ApiClient(port, sealed_exam.client(path, "fast", Limits(rate=2)))
    for _ in range(2):
        assert bot.get("/v1/queries").status == 200
    answer = bot.get("/v1/queries")
    assert (answer.status, answer.error["code"]) == (429, "too_many_requests")
    assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_many_requests_at_once_never_exceed_a_budget(path: Path, port: int) -> None:
    bot = ApiClient(port, sealed_exam.client(path, "many", Limits(rate=10_000, requests=40)))

    def ask(number: int) -> int:
        answer = bot.post("/v1/grade", query_id="q00", answer=f"a{number}")
        assert answer.status == 200 or answer.error
        return answer.status

    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(ask, range(300)))
    assert set(found) <= {200, 403, 503}
    assert found.count(200) <= 40
    assert bot.get("/v1/budget").json["requests"] == 40 == found.count(200)


def test_a_client_that_hangs_up_keeps_nobody_out(bot: ApiClient) -> None:
    head = f"POST /v1/grade HTTP/1.1\r\nHost: 127.0.0.1:{bot.port}\r\n"
    head += f"Authorization: Bearer {bot.token}\r\nContent-Length: 100\r\n\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", bot.port)) as opened:
            opened.sendall(head.encode() + b"{")
    assert bot.post("/v1/grade", query_id="q00", answer="a").status == 200


def test_a_bug_shows_no_traceback(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("word0x0 sk-secret")

    with served(path) as port:
        bot = ApiClient(port, sealed_exam.client(path, "other"))
        monkeypatch.setattr("exampp.scorer.Scorer.score_all", broken)
        answer = bot.post("/v1/grade", query_id="q00", answer="a")
    assert (answer.status, answer.error["code"]) == (500, "internal")
    assert "secret" not in answer.body.decode()


@pytest.mark.parametrize(
    ("seconds", "message"), [(2, "the grader did not answer"), (0.1, "The server was stopped")]
)
def test_a_request_that_is_graded_is_answered_when_the_server_stops(
    seconds: float, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader ends soon after the signal, or not before the server gives up."""
    path = sealed_exam.make(tmp_path / "my.exam")
    token = sealed_exam.client(path)
    monkeypatch.setattr("exampp.web.serving.GRACE_SECONDS", seconds)
    begun, ended = Event(), Event()

    def rate(item: object, passage: object) -> int:
        begun.set()
        ended.wait(60)
        return 5

    def open_slow(exam: exampp.Collection) -> Scorer:
        return exam.scorer(rate, name="slow", scale=(0, 5))

    with (
        closing(service.ExamService(path, open_slow)) as opened,
        ThreadPoolExecutor(1) as pool,
        running(opened) as (server, port),
    ):
        bot = ApiClient(port, token)
        waiting = pool.submit(bot.post, "/v1/grade", query_id="q00", answer="some words")
        assert begun.wait(60)
        # the second signal changes nothing
        for _ in range(2):
            server.handle_exit(signal.SIGINT, None)
        if seconds > 1:
            ended.set()
        answer = waiting.result(60)
        ended.set()
    assert answer.status == 503
    assert message in answer.error["message"]
    assert int(answer.headers["retry-after"]) > 0
