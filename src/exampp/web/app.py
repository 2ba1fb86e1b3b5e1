"""The application: the pages of the review behind their gate."""

from __future__ import annotations

import sqlite3
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from exampp.errors import CollectionBusy, ExamError, InputError, environment_fault
from exampp.web.access import Access
from exampp.web.live_collection import LiveCollection, NothingYet
from exampp.web.middleware import Gate
from exampp.web.page_request import visit_of
from exampp.web.rendering import failure, render, static_files
from exampp.web.turns import turns

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


READING = ("exampp.banks", "exampp.formats.workbench_graders", "exampp.review.queueing")
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
