"""The application: the pages of the review behind their gate."""

from __future__ import annotations

import sqlite3
from asyncio import CancelledError
from http import HTTPStatus
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exampp.errors import CollectionBusy, ExamError, InputError, environment_fault
from exampp.web.access import Access, is_own_request
from exampp.web.live_collection import LiveCollection, NothingYet
from exampp.web.page_request import turns, visit_of
from exampp.web.rendering import failure, render, static_files

BODY_BYTES = 1 << 20
"""The longest body of a request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # no-referrer would make browsers say "Origin: null" on our own forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OPEN = "/static/"
"""What anyone may load: the style of the pages, nothing of the collection."""


class Gate:
    """An ASGI application that lets only requests of assessors through to another.

    Whoever comes in stands in the scope as `assessor`, and the name of the session cookie as
    `cookie`.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        try:
            await self._answer(scope, headers, receive, send_with_headers)
        except CancelledError:
            # its time is up as the server is stopped
            if not begun:
                stopped = _refused(HTTPStatus.SERVICE_UNAVAILABLE, "exampp has been stopped.")
                await stopped(scope, receive, send_with_headers)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        answer = self._refusal(scope, headers) or self._entrance(scope, headers)
        if answer is None:
            body = await _body(receive, headers)
            if body is None:
                answer = _refused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is more than a page can take."
                )
            else:
                receive = _replayed(body, receive)
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.access.answers_to(hosts[0]):
            return _refused(HTTPStatus.FORBIDDEN, "This server does not go by that name.")
        if not is_own_request(scope["method"], hosts[0], headers):
            return _refused(HTTPStatus.FORBIDDEN, "Another site made that request.")
        return None

    def _entrance(self, scope: Scope, headers: Headers) -> Response | None:
        """Who comes in goes into the scope; a token is taken, and nobody else passes."""
        if scope["path"].startswith(OPEN):
            return None
        query = scope["query_string"].decode("latin-1")
        token = parse_qs(query).get("token") if scope["path"] == "/" else None
        if token:
            return self._exchange(token[0], headers)
        # other servers on this machine may have set any cookies: one that is odd spoils no other
        session = cookie_parser(headers.get("cookie", "")).get(self.access.cookie, "")
        scope["assessor"] = self.access.assessor(session)
        scope["cookie"] = self.access.cookie
        if scope["assessor"] is not None:
            return None
        if headers.get("sec-fetch-site") == "cross-site":
            # a strict cookie does not come along from elsewhere, but from here it does
            return HTMLResponse(render("arriving.html", to=_address(scope["path"], query)))
        return _refused(
            HTTPStatus.UNAUTHORIZED,
            "Open the address that exampp printed when it started: it lets this browser in.",
        )

    def _exchange(self, token: str, headers: Headers) -> Response:
        session = self.access.enter(token)
        if session is None:
            return _refused(
                HTTPStatus.FORBIDDEN,
                "That token is not of this server. Each start of exampp makes new ones: take the "
                "address that it printed last.",
            )
        answer: Response
        if headers.get("sec-fetch-site") == "cross-site":
            answer = HTMLResponse(render("arriving.html", to="/"))
        else:
            answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.headers["referrer-policy"] = "no-referrer"
        answer.set_cookie(self.access.cookie, session, path="/", httponly=True, samesite="strict")
        return answer


def _address(path: str, query: str) -> str:
    # a path that starts with two slashes would lead to another host
    if path.startswith("//"):
        return "/"
    return quote(path) + (f"?{query}" if query else "")


def _refused(status: HTTPStatus, text: str) -> Response:
    page = render("refused.html", title=status.phrase, text=text)
    return HTMLResponse(page, status, {"connection": "close"} if status >= 413 else None)


async def _body(receive: Receive, headers: Headers) -> bytes | None:
    """The body of a request; None where it is longer than any may be."""
    stated = headers.get("content-length", "0")
    if not stated.isdigit() or int(stated) > BODY_BYTES:
        return None
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            return None
        more = message.get("more_body", False)
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body first, and then what else comes."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


PAGES = (
    "overview",
    "queries",
    "query",
    "search",
    "cell",
    "compare",
    "items",
    "basket",
    "judge",
    "queue",
    "sample",
    "disputes",
    "agreement",
    "trust",
    "bank",
    "lists",
    "history",
    "exports",
    "plots",
)
"""The modules of `web.pages`, each with a `router`."""
YEAR = 31_536_000


READING = (
    "exampp.grades.decisions",
    "exampp.bank",
    "exampp.formats.workbench_graders",
    "exampp.review.queue",
)
"""Modules that reading a collection imports only when it is read."""


def import_pages() -> list[ModuleType]:
    """Import all pages and what reading a collection imports; return the pages.

    Two threads that import at once may deadlock, so this runs before the watcher starts.
    """
    for name in READING:
        import_module(name)
    return [import_module(f"exampp.web.pages.{name}") for name in PAGES]


def create_app(room: LiveCollection, access: Access) -> ASGIApp:
    """The pages of a room, for whom the gate lets in."""
    app = FastAPI(title="exampp", docs_url=None, redoc_url=None, openapi_url=None, lifespan=turns)
    app.state.room = room
    app.state.people = tuple(access.sessions.values())
    for page in import_pages():
        # as they are: including a router would copy each of its routes at the first request
        app.router.routes += page.router.routes
    app.add_api_route("/static/{name}", _static, methods=["GET", "HEAD"])
    app.add_exception_handler(NothingYet, _nothing_yet)
    app.add_exception_handler(ExamError, _exam_error)
    for kind in (OSError, MemoryError):
        app.add_exception_handler(kind, _environment)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(Exception, _defect)
    return Gate(app, access)


async def _static(name: str) -> Response:
    found = static_files().get(name)
    if found is None:
        raise HTTPException(404)
    headers = {"cache-control": f"public, max-age={YEAR}, immutable"}
    return Response(found.content, media_type=found.kind, headers=headers)


def _nothing_yet(request: Request, error: Exception) -> HTMLResponse:
    """What to do first: a page, as there is nothing wrong with what was asked for.

    Where that was a file, browsers would save the page under its name, but for the status.
    """
    text = str(error)
    status = 404 if PurePosixPath(request.url.path).suffix else 200
    return _failed(request, status, f"{text[:1].upper()}{text[1:]}.", "Nothing to show yet")


def _exam_error(request: Request, error: Exception) -> HTMLResponse:
    """What people can mend, in their words; pages that know better answer themselves."""
    if isinstance(error, CollectionBusy):
        text = "The collection is being written by another process. Try again in a moment."
        answer = _failed(request, 503, text)
        answer.headers["retry-after"] = "1"
        return answer
    return _failed(request, 400 if isinstance(error, InputError) else 503, str(error))


def _environment(request: Request, error: Exception) -> HTMLResponse:
    """What is wrong with the machine, as the command line says it."""
    reason = environment_fault(error)
    if reason is None:
        raise error
    return _failed(request, 503, reason)


def _http_error(request: Request, error: Exception) -> HTMLResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = "There is no such page." if status == 404 else f"{failure(status)}."
    if isinstance(error, HTTPException) and error.detail != failure(status):
        text = str(error.detail)
    return _failed(request, status, text)


def _malformed(request: Request, error: Exception) -> HTMLResponse:
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    named = ", ".join(str(fault["loc"][-1]) for fault in faults)
    return _failed(request, 400, f"The address or the form is not complete: {named}.")


def _defect(request: Request, _error: Exception) -> HTMLResponse:
    text = "This is a defect of exampp; the terminal in which it runs says more."
    return _failed(request, 500, text)


def _failed(request: Request, status: int, text: str, title: str = "") -> HTMLResponse:
    """The page of an error; a part of a page gets the sentence alone."""
    told = {"title": title or failure(status), "text": text}
    visit = None if request.scope.get("assessor") is None else visit_of(request)
    if "hx-request" in request.headers or visit is None:
        return HTMLResponse(render("failed_part.html", visit=visit, **told), status)
    try:
        page = render("failed.html", visit=visit, **told)
    except (ExamError, sqlite3.Error):
        # what is around an error comes from the collection, which may be what failed
        page = render("refused.html", **told)
    return HTMLResponse(page, status)
