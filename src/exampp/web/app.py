"""The ASGI application: pages, error pages, and access for assessors only."""

from __future__ import annotations

import re
import sqlite3
from asyncio import timeout
from collections.abc import Mapping
from http import HTTPStatus
from importlib import import_module
from pathlib import PurePosixPath
from pkgutil import iter_modules
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exampp.errors import CollectionBusy, ExamError, InputError, environment_fault
from exampp.web import pages
from exampp.web.access import Access, needed_action
from exampp.web.bodies import BODY_SECONDS, stated_bytes, with_whole_body
from exampp.web.decision_process import DecisionProcess
from exampp.web.limits import answer_or_refuse
from exampp.web.live_collection import LiveCollection, NothingYet
from exampp.web.page_request import (
    StillComputing,
    limit_pages,
    page_request,
    refused_action,
)
from exampp.web.people import session_of
from exampp.web.rendering import render_template, sentence, static_files, templates
from exampp.web.uploads import UPLOAD_BYTES

READING = (
    "exampp.grades.decisions",
    "exampp.bank",
    "exampp.formats.workbench_graders",
    "exampp.measures.scores",
    "exampp.review.queue",
)
"""Modules that are otherwise imported when a collection is read."""
YEAR = 31_536_000
BODY_BYTES = 1 << 20
"""Maximum bytes of a request body."""
COMPRESSION = 5
"""Level of compression: higher ones take twice the time for a few percent."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # no-referrer would make browsers send "Origin: null" with forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PUBLIC = "/static/"
"""Paths that need no session: styles and icons, nothing from the collection."""
SIGN_OUT = "/sign-out"
UPLOADS = frozenset({"/files/add", "/changes/add"})
"""The addresses that take large bodies."""
INTERRUPTED = "The upload was interrupted."
UPLOAD_TOO_LARGE = (
    f"The files are larger than {UPLOAD_BYTES >> 30} GB together. Import them in a terminal: "
    "exampp import."
)


def import_pages() -> list[ModuleType]:
    """Import the modules of `web.pages` and those needed to read a collection; return the pages.

    Concurrent imports may deadlock, so this runs before the watcher starts. Templates are loaded,
    too: no first view of a page waits for them.
    """
    templates()
    for name in READING:
        import_module(name)
    return [import_module(f"{pages.__name__}.{one.name}") for one in iter_modules(pages.__path__)]


def create_app(
    live: LiveCollection, access: Access, decisions: Mapping[str, Any] | None = None
) -> ASGIApp:
    """Return the application for a collection; only assessors have access.

    With `decisions`, the options of the collection, another process stores decisions.
    """
    app: ASGIApp = pages_app(live, access)
    if decisions is not None:
        app = DecisionProcess(app, live, access, decisions)
    gate: ASGIApp = Gate(app, access)
    if access.prefix:
        gate = Prefixed(gate, access.prefix)
    return GZipMiddleware(gate, compresslevel=COMPRESSION)


def pages_app(live: LiveCollection, access: Access) -> FastAPI:
    """Return the application of all pages, for requests that were admitted."""
    app = FastAPI(
        title="exampp", docs_url=None, redoc_url=None, openapi_url=None, lifespan=limit_pages
    )
    app.state.live = live
    app.state.access = access
    for page in import_pages():
        # not `include_router`, which copies every route at the first request
        app.router.routes += page.router.routes
    app.add_api_route("/static/{name}", _static, methods=["GET", "HEAD"])
    for kind in (ExamError, OSError, MemoryError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _error)
    app.add_exception_handler(StillComputing, _opening)
    return app


async def _static(name: str) -> Response:
    file = static_files().get(name)
    if file is None:
        raise HTTPException(404)
    headers = {"cache-control": f"public, max-age={YEAR}, immutable"}
    return Response(file.content, media_type=file.kind, headers=headers)


# ---- errors --------------------------------------------------------------------------------------


def _opening(request: Request, _error: Exception) -> HTMLResponse:
    """Return a page that reloads itself until the results are ready."""
    page = page_request(request)
    answer = page.render("opening.html", delay=int(page.is_waiting), to=page.here())
    page.live.waiting.add(page.view)
    return answer


def _error(request: Request, error: Exception) -> HTMLResponse:
    """Return an error page, or just its text for a request of a part of a page."""
    status, text, title = _explained(request, error)
    context = {"title": title or HTTPStatus(status).phrase, "text": text}
    page = None if request.scope.get("person") is None else page_request(request)
    if page is None or page.wants_part:
        answer = HTMLResponse(render_template("failed_part.html", request=page, **context), status)
    else:
        try:
            answer = HTMLResponse(render_template("failed.html", request=page, **context), status)
        except (ExamError, sqlite3.Error):
            # the navigation reads the collection, which may have caused the error
            answer = HTMLResponse(render_template("refused.html", **context), status)
    if isinstance(error, CollectionBusy):
        answer.headers["retry-after"] = "1"
    return answer


def _explained(request: Request, error: Exception) -> tuple[int, str, str]:
    """Return the status, the text and the title of an error ("": the name of the status)."""
    if isinstance(error, NothingYet):
        # not 200: browsers would save the page under the name of the file
        status = 404 if PurePosixPath(request.url.path).suffix else 200
        return status, f"{sentence(error)}.", "Nothing to show yet"
    if isinstance(error, CollectionBusy):
        return 503, "Another process is writing to the collection. Try again in a moment.", ""
    if isinstance(error, ExamError):
        return (400 if isinstance(error, InputError) else 503), str(error), ""
    if isinstance(error, RequestValidationError):
        fields = ", ".join(str(fault["loc"][-1]) for fault in error.errors())
        return 400, f"The address or the form is incomplete: {fields}.", ""
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        text = "This page does not exist." if error.status_code == 404 else f"{phrase}."
        return error.status_code, text if error.detail == phrase else str(error.detail), ""
    if reason := environment_fault(error):
        return 503, reason, ""
    if isinstance(error, OSError | MemoryError):
        raise error
    return 500, "This is a bug in exampp. The details are in the terminal that runs it.", ""


# ---- access --------------------------------------------------------------------------------------


class Gate:
    """ASGI middleware that lets only assessors through.

    It adds the person (`person`), the name of the session cookie (`cookie`) and whether the browser
    uses TLS (`secure`) to the scope, and security headers to every response.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond to it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        stopped = _refused(HTTPStatus.SERVICE_UNAVAILABLE, "exampp has been stopped.")
        await answer_or_refuse(self._answer, stopped, scope, receive, send_with_headers)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers) or self._entrance(scope, headers)
        if answer is None and scope["path"] in UPLOADS:
            if stated_bytes(headers) > UPLOAD_BYTES:
                answer = _refused(TOO_LARGE, UPLOAD_TOO_LARGE)
            receive = _limited(receive)
        elif answer is None:
            whole = await with_whole_body(receive, headers, BODY_BYTES)
            if isinstance(whole, HTTPStatus):
                answer = _refused(whole, UNFIT_BODIES[whole])
            else:
                receive = whole
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.access.answers_to(hosts[0]):
            return _refused(HTTPStatus.FORBIDDEN, "Unknown host name.")
        if not self.access.is_own_request(scope["method"], hosts[0], headers):
            return _refused(HTTPStatus.FORBIDDEN, "The request came from another site.")
        return None

    def _entrance(self, scope: Scope, headers: Headers) -> Response | None:
        """Identify the person, exchange a token for a session, or refuse."""
        if scope["path"].startswith(PUBLIC):
            return None
        client, scope["secure"] = self.access.forwarded((scope["client"] or ("",))[0], headers)
        scope["client"] = (client, 0)
        # other servers on this machine may have set malformed cookies
        session = cookie_parser(headers.get("cookie", "")).get(self.access.cookie, "")
        person = scope["person"] = self.access.people.signed_in(session)
        scope["cookie"], scope["prefix"] = self.access.cookie, self.access.prefix
        query = scope["query_string"].decode("latin-1")
        token = parse_qs(query).get("token") if scope["path"] == "/" else None
        # browsers send a strict cookie only with requests from this site
        arrives = headers.get("sec-fetch-site") == "cross-site"
        if arrives and (token or person is None):
            to = quote(scope["path"]) + (f"?{query}" if query else "")
            # a path with two leading slashes would redirect to another host
            to = "/" if to.startswith("//") else to
            return HTMLResponse(render_template("arriving.html", to=to), headers=NO_REFERRER)
        if token:
            return self._exchange(token[0], scope)
        if person is None:
            return _refused(
                HTTPStatus.UNAUTHORIZED,
                "Open the address that exampp printed at start, or your invitation; it signs this "
                "browser in.",
            )
        if scope["path"] == SIGN_OUT and scope["method"] == "POST":
            answer = _refused(HTTPStatus.OK, "Open your invitation to sign in again.", "Signed out")
            answer.delete_cookie(self.access.cookie, path=f"{self.access.prefix}/")
            return answer
        action = needed_action(scope["method"], scope["path"])
        if action is not None and not person.may(action):
            return _refused(HTTPStatus.FORBIDDEN, refused_action(person, action))
        return None

    def _exchange(self, token: str, scope: Scope) -> Response:
        session, current = session_of(token), scope["person"]
        person = self.access.people.signed_in(session)
        if person is None:
            return _refused(
                HTTPStatus.FORBIDDEN,
                "This invitation is not valid. Use your newest one, or the last address that "
                "exampp printed at start.",
            )
        if current is not None and current.name != person.name:
            # a link in a mail must not make somebody decide under another name
            page = render_template("signed_in.html", current=current, person=person)
            return HTMLResponse(page, HTTPStatus.CONFLICT)
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER, NO_REFERRER)
        answer.set_cookie(
            self.access.cookie,
            session,
            path=f"{self.access.prefix}/",
            httponly=True,
            samesite="strict",
            secure=scope["secure"],
        )
        return answer


TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
UNFIT_BODIES = {
    TOO_LARGE: "The request is too large.",
    HTTPStatus.REQUEST_TIMEOUT: "The request took too long.",
}
NO_REFERRER = {"referrer-policy": "no-referrer"}
"""Header of a response to an address with a token."""


def _refused(status: HTTPStatus, text: str, title: str = "") -> Response:
    page = render_template("refused.html", title=title or status.phrase, text=text)
    return HTMLResponse(
        page,
        status,
        {"connection": "close"} if status in UNFIT_BODIES or status >= 500 else None,
    )


def _limited(receive: Receive) -> Receive:
    """Return a channel that passes an upload on in parts, up to its limits."""
    left = UPLOAD_BYTES

    async def limited() -> Message:
        nonlocal left
        try:
            async with timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise MultiPartException(INTERRUPTED) from None
        if message["type"] != "http.request":
            # the browser is gone; the parser removes the parts that have arrived
            raise MultiPartException(INTERRUPTED)
        left -= len(message.get("body", b""))
        if left < 0:
            raise MultiPartException(UPLOAD_TOO_LARGE)
        return message

    return limited


# ---- a path in front of all addresses ------------------------------------------------------------

_ADDRESS = re.compile(
    rb'(\s(?:href|src|srcset|action|formaction|content|hx-[a-z]+|data-[a-z-]+)="(?:\d+;url=)?)/(?!/)'
)
"""An attribute with an address on this server; quotes in texts are escaped."""


class Prefixed:
    """ASGI middleware for an application that a proxy offers below a path.

    It removes the prefix from requests, unless the proxy has, and adds it to all addresses in
    responses.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without the prefix."""
        if scope["type"] == "http" and f"{scope['path']}/".startswith(f"{self.prefix}/"):
            scope["path"] = scope["path"].removeprefix(self.prefix) or "/"
        host = Headers(scope=scope).get("host", "") if scope["type"] == "http" else ""
        start: Message = {}

        async def send_with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # the router answers an address with a last slash by one with the name of a host
                to = headers.get("location", "").removeprefix(f"{scope.get('scheme')}://{host}")
                if to.startswith("/"):
                    headers["location"] = self.prefix + to
                if headers.get("content-type", "").startswith("text/html"):
                    start.update(message)
                    return
            elif start:
                body = _ADDRESS.sub(rb"\1" + self.prefix.encode() + b"/", message.get("body", b""))
                if "headers" in start:
                    headers = MutableHeaders(scope=start)
                    del headers["content-length"]
                    if not message.get("more_body", False):
                        headers["content-length"] = str(len(body))
                    await send(dict(start))
                    del start["headers"]
                message = {**message, "body": body}
            await send(message)

        await self.app(scope, receive, send_with_prefix)
