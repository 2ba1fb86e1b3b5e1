"""The application: the pages behind a gate that lets only assessors in, and their error pages."""

from __future__ import annotations

import sqlite3
from asyncio import CancelledError
from http import HTTPStatus
from importlib import import_module
from pathlib import PurePosixPath
from pkgutil import iter_modules
from types import ModuleType
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exampp.errors import CollectionBusy, ExamError, InputError, environment_fault
from exampp.web import pages
from exampp.web.access import Access, is_own_request
from exampp.web.live_collection import LiveCollection, NothingYet
from exampp.web.page_request import StillComputing, limit_pages, page_request
from exampp.web.rendering import render_template, sentence, static_files

READING = (
    "exampp.grades.decisions",
    "exampp.bank",
    "exampp.formats.workbench_graders",
    "exampp.review.queue",
)
"""Modules that reading a collection imports only when it is read."""
YEAR = 31_536_000
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
PUBLIC = "/static/"
"""Paths that anyone may load: the style of the pages, nothing of the collection."""


def import_pages() -> list[ModuleType]:
    """Import the modules of `web.pages` and what reading a collection imports; return the pages.

    Two threads that import at once may deadlock, so this runs before the watcher starts.
    """
    for name in READING:
        import_module(name)
    return [import_module(f"{pages.__name__}.{one.name}") for one in iter_modules(pages.__path__)]


def create_app(live: LiveCollection, access: Access) -> ASGIApp:
    """Return the pages of a collection, for those whom the gate lets in."""
    app = FastAPI(
        title="exampp", docs_url=None, redoc_url=None, openapi_url=None, lifespan=limit_pages
    )
    app.state.live = live
    app.state.people = tuple(access.sessions.values())
    for page in import_pages():
        # as they are: including a router would copy each of its routes at the first request
        app.router.routes += page.router.routes
    app.add_api_route("/static/{name}", _static, methods=["GET", "HEAD"])
    for kind in (ExamError, OSError, MemoryError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _error)
    app.add_exception_handler(StillComputing, _opening)
    return Gate(app, access)


async def _static(name: str) -> Response:
    found = static_files().get(name)
    if found is None:
        raise HTTPException(404)
    headers = {"cache-control": f"public, max-age={YEAR}, immutable"}
    return Response(found.content, media_type=found.kind, headers=headers)


# ---- errors --------------------------------------------------------------------------------------


def _opening(request: Request, _error: Exception) -> HTMLResponse:
    """Answer with a page that loads itself again until the results are ready."""
    to = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return HTMLResponse(render_template("opening.html", name=request.app.state.live.name, to=to))


def _error(request: Request, error: Exception) -> HTMLResponse:
    """Answer with a page about an error; a part of a page gets the sentence alone."""
    status, text, title = _explained(request, error)
    shown = {"title": title or HTTPStatus(status).phrase, "text": text}
    page = None if request.scope.get("assessor") is None else page_request(request)
    if page is None or page.wants_part:
        answer = HTMLResponse(render_template("failed_part.html", request=page, **shown), status)
    else:
        try:
            answer = HTMLResponse(render_template("failed.html", request=page, **shown), status)
        except (ExamError, sqlite3.Error):
            # what is around an error comes from the collection, which may be what failed
            answer = HTMLResponse(render_template("refused.html", **shown), status)
    if isinstance(error, CollectionBusy):
        answer.headers["retry-after"] = "1"
    return answer


def _explained(request: Request, error: Exception) -> tuple[int, str, str]:
    """Return the status of an error, its text, and a title other than the name of the status."""
    if isinstance(error, NothingYet):
        # nothing is wrong with the request, but browsers would save a page under a file's name
        status = 404 if PurePosixPath(request.url.path).suffix else 200
        return status, f"{sentence(error)}.", "Nothing to show yet"
    if isinstance(error, CollectionBusy):
        return 503, "The collection is being written by another process. Try again in a moment.", ""
    if isinstance(error, ExamError):
        return (400 if isinstance(error, InputError) else 503), str(error), ""
    if isinstance(error, RequestValidationError):
        named = ", ".join(str(fault["loc"][-1]) for fault in error.errors())
        return 400, f"The address or the form is not complete: {named}.", ""
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        text = "This page does not exist." if error.status_code == 404 else f"{phrase}."
        return error.status_code, text if error.detail == phrase else str(error.detail), ""
    if reason := environment_fault(error):
        return 503, reason, ""
    if isinstance(error, OSError | MemoryError):
        raise error
    return 500, "This is a defect of exampp; see the terminal in which it runs.", ""


# ---- the gate ------------------------------------------------------------------------------------


class Gate:
    """An ASGI application that lets only requests of assessors through to another.

    It puts the name of the assessor (`assessor`) and of the session cookie (`cookie`) into the
    scope, and sets the security headers of every answer.
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
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        try:
            await self._answer(scope, headers, receive, send_with_headers)
        except CancelledError:
            # the server stops, and the request took too long
            if not started:
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
        """Put the assessor into the scope, exchange a token, or refuse."""
        if scope["path"].startswith(PUBLIC):
            return None
        query = scope["query_string"].decode("latin-1")
        token = parse_qs(query).get("token") if scope["path"] == "/" else None
        if token:
            return self._exchange(token[0], headers)
        # other servers on this machine may have set any cookies: an odd one spoils no other
        session = cookie_parser(headers.get("cookie", "")).get(self.access.cookie, "")
        scope["assessor"] = self.access.assessor(session)
        scope["cookie"] = self.access.cookie
        if scope["assessor"] is not None:
            return None
        if headers.get("sec-fetch-site") == "cross-site":
            # a strict cookie does not come along from elsewhere, but from here it does
            to = quote(scope["path"]) + (f"?{query}" if query else "")
            # a path that starts with two slashes would lead to another host
            return HTMLResponse(
                render_template("arriving.html", to="/" if to.startswith("//") else to)
            )
        return _refused(
            HTTPStatus.UNAUTHORIZED,
            "Open the address that exampp printed when it started: it lets this browser in.",
        )

    def _exchange(self, token: str, headers: Headers) -> Response:
        session = self.access.enter(token)
        if session is None:
            return _refused(
                HTTPStatus.FORBIDDEN,
                "This token is not valid. Each start of exampp makes new ones: use the address "
                "that it printed last.",
            )
        answer: Response
        if headers.get("sec-fetch-site") == "cross-site":
            answer = HTMLResponse(render_template("arriving.html", to="/"))
        else:
            answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.headers["referrer-policy"] = "no-referrer"
        answer.set_cookie(self.access.cookie, session, path="/", httponly=True, samesite="strict")
        return answer


def _refused(status: HTTPStatus, text: str) -> Response:
    page = render_template("refused.html", title=status.phrase, text=text)
    return HTMLResponse(page, status, {"connection": "close"} if status >= 413 else None)


async def _body(receive: Receive, headers: Headers) -> bytes | None:
    """Return the body of a request; None if it is longer than any may be."""
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
    """Return a channel that gives the body first, and then what else comes."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
