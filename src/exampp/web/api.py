"""`exampp api`: the exam over HTTP and MCP for programs with a token.

A client sends `Authorization: Bearer TOKEN`. All errors have one form:

    {"error": {"status": 404, "code": "not_found", "message": "...", "field": "query_id"}}
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from anyio import to_thread
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from exampp.errors import CollectionBusy, ExamError, InputError, environment_fault
from exampp.service import MOST_WAITING, ExamService, NotThere, Unavailable
from exampp.store.clients import Identified, OverLimit
from exampp.version import __version__
from exampp.web.access import (
    Access,
    host_names,
    is_loopback,
    path_prefix,
    proxy_network,
    public_host,
)
from exampp.web.bodies import with_whole_body
from exampp.web.limits import answer_or_refuse
from exampp.web.mcp import answer_message
from exampp.web.people import People
from exampp.web.serving import (
    GRACE_SECONDS,
    listen,
    say,
    server_config,
    shown_host,
    stoppable_server,
)
from exampp.web.tools import TOOLS, Tool, fault_sentence

_LOG = logging.getLogger("exampp.service")
BODY_BYTES = 4 << 20
"""Maximum bytes of a request body."""
UNFIT_BODIES = {
    HTTPStatus.REQUEST_TIMEOUT: "The request took too long.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"The request has more than {BODY_BYTES >> 20} MB. Send "
    "fewer or shorter answers",
}
THREADS = MOST_WAITING + 16
"""Requests that are answered at once: those that are graded, which share batches, and others."""
OPEN = frozenset({"/openapi.json"})
"""Addresses without a token: nothing of the exam."""
MCP = "/mcp"
HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "code", "message"],
            "properties": {
                "status": {"type": "integer"},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string"},
            },
        }
    },
}
CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "no_token",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "invalid",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
}
"""The code of an error by its status."""
_DOCUMENTED = (400, 401, 403, 404, 408, 413, 422, 429, 503)
NO_JSON = "The body is not JSON. Send a JSON object"
NO_OBJECT = (
    "The body is not a JSON object. Send one, with the header Content-Type: application/json"
)


def error_answer(status: int, message: str, field: str = "", wait: int | None = None) -> Response:
    """Return an error as JSON; `wait` are the seconds after which to try again."""
    error = {"status": status, "code": CODES.get(status, "error"), "message": message}
    if field:
        error["field"] = field
    headers = dict(HEADERS)
    if wait is not None:
        headers["retry-after"] = str(wait)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    # escapes: an id may have characters that are not text
    return Response(json.dumps({"error": error}), status, headers, "application/json")


def explain_error(error: Exception) -> tuple[int, str, str, int | None]:
    """Return status, message, field and seconds to wait of an error."""
    if isinstance(error, OverLimit):
        status = 403 if error.wait is None else 429
        return status, str(error), "", error.wait
    if isinstance(error, InputError):
        status = 404 if isinstance(error, NotThere) else 422
        hint = f". {error.hint}" if error.hint else ""
        return status, f"{error.what}{hint}", error.field, None
    if isinstance(error, Unavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE, f"{error}. Try again", "", error.wait
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return 400, NO_JSON, "", None
        place = [str(part) for part in first["loc"] if part not in ("body", "query")]
        field = ".".join(place)[:200]
        sentence = fault_sentence(first["msg"], field) if place else NO_OBJECT
        return 422, sentence, ascii(field)[1:-1], None
    if isinstance(error, HTTPException):
        if error.status_code == HTTPStatus.BAD_REQUEST:
            return 400, NO_JSON, "", None
        phrase = HTTPStatus(error.status_code).phrase
        return error.status_code, f"{phrase}. /openapi.json has all addresses.", "", None
    if isinstance(error, CollectionBusy):
        return 503, "The exam is being changed. Try again", "", 1
    # paths and texts of the owner stay in the log
    _LOG.warning("%s", error, exc_info=not isinstance(error, ExamError | OSError))
    if isinstance(error, ExamError) or environment_fault(error):
        return 503, "The exam cannot be read or written. Its owner sees why in the log.", "", 10
    return 500, "This is a bug in exampp. The owner of the exam sees it in the log.", "", None


def _error(_: Request, error: Exception) -> Response:
    answer = error_answer(*explain_error(error))
    # the methods of an address
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


# ---- the application -----------------------------------------------------------------------------


def create_api(service: ExamService, access: Access) -> ASGIApp:
    """Return the application for a service; only clients with a token have access."""
    return TokenGate(api_app(service, access.prefix), service, access)


def api_app(service: ExamService, prefix: str = "") -> FastAPI:
    """Return the application of all tools, for requests that were admitted."""

    @asynccontextmanager
    async def limit_threads(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield

    app = FastAPI(
        title="exampp",
        version=__version__,
        description="An exam as a service. Sealed items are never shown; see `submit`.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=limit_threads,
        servers=[{"url": prefix or "/"}],
    )
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": ERROR_SCHEMA}},
        }
        for status in _DOCUMENTED
    }
    for tool in TOOLS.values():
        app.add_api_route(
            tool.path,
            _endpoint(service, tool),
            methods=["GET" if tool.reads else "POST"],
            response_model=tool.result,
            responses=responses,
            operation_id=tool.name,
            summary=tool.name,
            description=tool.description,
        )

    async def mcp(request: Request) -> Response:
        """Answer a message of the Model Context Protocol (streamable HTTP, without sessions)."""
        client: Identified = request.scope["person"]
        content = await request.body()
        answer = await run_in_threadpool(answer_message, service, client, content)
        if answer is None:
            return Response(status_code=HTTPStatus.ACCEPTED, headers=HEADERS)
        return Response(json.dumps(answer), headers=HEADERS, media_type="application/json")

    app.add_api_route(MCP, mcp, methods=["POST"], include_in_schema=False)
    for kind in (ExamError, OSError, MemoryError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _error)
    _add_security(app)
    return app


def _endpoint(service: ExamService, tool: Tool) -> Callable[..., Any]:
    """Return the endpoint of a tool, with its arguments in the address or the body."""

    def endpoint(request: Request, arguments: Any, response: Response) -> Any:
        response.headers.update(HEADERS)
        return tool.call(service, request.scope["person"], **arguments.model_dump())

    source = Query() if tool.reads else Body()
    endpoint.__annotations__ |= {
        "request": Request,
        "response": Response,
        "arguments": Annotated[tool.arguments, source],
    }
    return endpoint


def _add_security(app: FastAPI) -> None:
    """Declare the token in the OpenAPI document."""
    schema = app.openapi()
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}]


# ---- access --------------------------------------------------------------------------------------


class TokenGate:
    """ASGI middleware that lets only clients through; the scope then has them as `person`."""

    def __init__(self, app: ASGIApp, service: ExamService, access: Access) -> None:
        self.app, self.service, self.access = app, service, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        stopped = error_answer(HTTPStatus.SERVICE_UNAVAILABLE, "The server was stopped", wait=10)
        await answer_or_refuse(self._answer, stopped, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix = self.access.prefix
        if prefix and f"{scope['path']}/".startswith(f"{prefix}/"):
            scope["path"] = scope["path"].removeprefix(prefix) or "/"
        headers = Headers(scope=scope)
        client, _ = self.access.forwarded((scope["client"] or ("",))[0], headers)
        scope["client"] = (client, 0)
        answer = self._refusal(headers) or await self._identify(scope, headers)
        if answer is None:
            whole = await with_whole_body(receive, headers, BODY_BYTES)
            if isinstance(whole, HTTPStatus):
                answer = error_answer(whole, UNFIT_BODIES[whole])
            else:
                receive = whole
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        hosts, origin = headers.getlist("host"), headers.get("origin")
        if len(hosts) != 1 or not self.access.answers_to(hosts[0]):
            return error_answer(
                HTTPStatus.FORBIDDEN,
                "Unknown host name. The owner of the exam adds it: --allowed-host NAME",
            )
        if origin is not None and not self.access.is_own_origin(origin, hosts[0]):
            return error_answer(HTTPStatus.FORBIDDEN, "The request came from another site.")
        return None

    async def _identify(self, scope: Scope, headers: Headers) -> Response | None:
        if scope["path"] in OPEN:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return error_answer(
                HTTPStatus.UNAUTHORIZED, "No token. Send the header Authorization: Bearer TOKEN"
            )
        try:
            client = await run_in_threadpool(self.service.identify, token.strip())
        except Exception as error:
            # the handlers of the application see only requests that are let through
            return error_answer(*explain_error(error))
        if client is None:
            return error_answer(
                HTTPStatus.UNAUTHORIZED,
                "The token is unknown or was revoked. Ask the owner of the exam for a new one",
            )
        scope["person"] = client
        return None


# ---- serving -------------------------------------------------------------------------------------


def prepare_api(
    service: ExamService,
    host: str,
    *,
    allowed_hosts: Sequence[str] = (),
    prefix: str = "",
    proxies: Sequence[str] = (),
    access_log: str | Path | None = None,
) -> uvicorn.Server:
    """Return a server of the API for a listening socket."""
    access = Access(
        People(),
        host_names(host),
        public=tuple(map(public_host, allowed_hosts)),
        prefix=path_prefix(prefix),
        proxies=tuple(map(proxy_network, proxies)),
    )
    config = server_config(create_api(service, access), access_log)
    return stoppable_server(config, partial(service.stop, GRACE_SECONDS / 2))


def serve_api(
    service: ExamService,
    host: str,
    port: int,
    *,
    prefix: str = "",
    announce: Callable[[str], None] = say,
    **options: Any,
) -> None:
    """Serve until interrupted, with the options of `prepare_api`; port 0 selects a free port.

    Raises:
        InputError: The port is in use, or an option is wrong.
    """
    os.umask(0o077)
    server = prepare_api(service, host, prefix=prefix, **options)
    with listen(host, port) as listener:
        port = listener.getsockname()[1]
        address = f"http://{shown_host(host)}:{port}{path_prefix(prefix)}"
        announce(f"API: {address}/v1/queries, described in {address}/openapi.json")
        announce(f"MCP: {address}{MCP}")
        if not is_loopback(host) and not options.get("proxies"):
            announce("The connection is not encrypted: tokens can be read. Use a reverse proxy.")
        announce("Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
