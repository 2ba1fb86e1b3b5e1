"""The gate before every page: turns away what may not come in, and sets the headers of all."""

from __future__ import annotations

from asyncio import CancelledError
from http import HTTPStatus
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exampp.web.access import Access, is_own_request
from exampp.web.rendering import render

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
