"""`/changes`: what changed since an earlier version of the exam."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import HTMLResponse
from starlette.datastructures import UploadFile

from exampp.analysis.changes import Changes
from exampp.errors import InputError
from exampp.store.connection import is_collection
from exampp.store.history import change_days
from exampp.web.page_request import (
    PICTURES,
    CurrentRequest,
    PageRequest,
    computed,
    found_or_trouble,
    limited_by,
)
from exampp.web.pages.files import IMPORTS, uploaded_files
from exampp.web.rendering import Theme, figure_response

router = APIRouter()


def _uploader(request: PageRequest) -> str:
    """Return the name under which earlier versions are stored, apart from files to import."""
    return f"{request.assessor}\nchanges"


def _files(request: PageRequest) -> dict[str, Path]:
    return {one.name: one for one in request.live.uploads.files(_uploader(request))}


@router.get("/changes")
def changes(request: CurrentRequest, since: str = "") -> HTMLResponse:
    """Show the changes since an uploaded file, or since a day on which something changed."""
    return _page(request, since)


def _page(request: PageRequest, since: str, status: int = 200, trouble: str = "") -> HTMLResponse:
    with request.open() as collection:
        days = change_days(collection.connection)
    found = None
    if since:
        found, trouble = found_or_trouble(lambda: _changes(request, since, request.patience))
        trouble = trouble.replace(f"{request.live.uploads.folder(_uploader(request))}/", "")
    return request.render(
        "changes.html",
        status,
        days=days,
        files=_files(request),
        since=since,
        found=found,
        tables={name: replace(one, verdict="") for name, one in found.tables().items()}
        if found
        else {},
        trouble=trouble,
    )


def _changes(request: PageRequest, since: str, patience: float | None) -> Changes:
    """Return the changes, from the cache if the collection and the file are the same."""
    snapshot, file = request.snapshot, _files(request).get(since)
    # stored scores name the minimum rating
    least = None if file is not None and not is_collection(file) else snapshot.min_rating
    with request.open() as collection:
        days = {one.day for one in change_days(collection.connection)}
    if file is None and since not in days:
        raise InputError(f"no earlier version {since!r}", hint="Choose a day, or upload a file")
    version = (request.assessor, file.stat().st_mtime_ns) if file else None
    return computed(
        snapshot.soon(
            ("changes", since, version),
            lambda grades: grades.changes(file or since, min_rating=least),
            patience,
        )
    )


@router.post("/changes/add")
@limited_by(IMPORTS)
def add(
    request: CurrentRequest, uploaded: Annotated[list[UploadFile], Depends(uploaded_files)]
) -> Response:
    """Store an earlier version, and show the changes since."""
    try:
        if len(uploaded) != 1:
            raise InputError("no file is chosen", hint="Choose an earlier copy, or stored scores")
        (one,) = uploaded
        path = request.live.uploads.add(_uploader(request), one.filename or "", one.file)
    except InputError as error:
        return _page(request, "", 400, trouble=str(error))
    return request.redirect("/changes", since=path.name)


@router.get("/changes/differences.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, since: str, theme: Theme = "light") -> Response:
    """Return the figure of the differences as a file."""
    return figure_response(lambda: _changes(request, since, None).plot(), kind, theme)
