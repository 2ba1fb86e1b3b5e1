"""`/files`: upload files, see what they are recognised as, correct it, and import them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse
from starlette.datastructures import UploadFile

from exampp.errors import InputError
from exampp.formats.format import FORMATS, ROLES
from exampp.formats.preset import presets
from exampp.inputs.explaining import explain_files
from exampp.inputs.files import GivenFile
from exampp.inputs.importing import ImportReport, detected_kinds
from exampp.records.inputs import PASSAGE_TOKENS
from exampp.records.selection import columns_of
from exampp.records.wording import counted
from exampp.results.result import Table
from exampp.store.bank import MAIN_BANK
from exampp.web.forms import SubmittedForm, checked_choice, whole
from exampp.web.page_request import CurrentRequest, PageRequest, limited_by
from exampp.web.uploads import MOST_FILES, UPLOAD_BYTES

router = APIRouter()
IMPORTS = CapacityLimiter(1)
"""One import at a time; it takes long and must not delay pages."""
ON_ERROR = ("refuse", "skip")
UNKNOWN = ("error", "keep")


async def uploaded_files(request: Request) -> AsyncIterator[list[UploadFile]]:
    """Yield the files of a form."""
    async with request.form(max_files=MOST_FILES) as form:
        yield [one for one in form.getlist("file") if isinstance(one, UploadFile) and one.filename]


class UploadedFile(NamedTuple):
    """An uploaded file: its size, the role that the person chose, and what was recognised."""

    name: str
    size: int
    role: str
    found: Sequence[str] = ()


@router.get("/files")
def files(request: CurrentRequest) -> HTMLResponse:
    """Show the uploaded files."""
    return _page(request, {})


@router.get("/files/{_:path}")
def reload(request: CurrentRequest) -> Response:
    """Show the files where the address of a form is opened or reloaded."""
    return request.redirect("/files")


@router.post("/files/add")
@limited_by(IMPORTS)
def add(
    request: CurrentRequest, uploaded: Annotated[list[UploadFile], Depends(uploaded_files)]
) -> HTMLResponse:
    """Store uploaded files, and show what an import of all would change."""
    try:
        if not uploaded:
            raise InputError("no file is chosen", hint="Choose files, or drop them on the field")
        for one in uploaded:
            request.live.uploads.add(request.assessor, one.filename or "", one.file)
    except InputError as error:
        return _page(request, {}, 400, trouble=str(error))
    return _checked(request, {})


@router.post("/files/check")
@limited_by(IMPORTS)
def check(request: CurrentRequest, form: SubmittedForm) -> HTMLResponse:
    """Show what an import with these options would change."""
    return _checked(request, form)


@router.post("/files/import")
@limited_by(IMPORTS)
def import_all(request: CurrentRequest, form: SubmittedForm) -> HTMLResponse:
    """Import the files, all or none."""
    try:
        report = _import(request, form, dry_run=False)
    except InputError as error:
        return _page(request, form, 400, trouble=str(error))
    request.live.changed()
    answer = _page(request, form, report=report)
    request.live.uploads.clear(request.assessor)
    return answer


@router.post("/files/remove")
def remove(request: CurrentRequest, name: Annotated[list[str], Form()]) -> Response:
    """Remove uploaded files; the collection stays as it is."""
    request.live.uploads.clear(request.assessor, name)
    return request.redirect("/files")


def _checked(request: PageRequest, form: Mapping[str, str]) -> HTMLResponse:
    try:
        report = _import(request, form, dry_run=True)
    except InputError as error:
        return _page(request, form, 400, trouble=str(error))
    return _page(request, form, report=report)


def _import(request: PageRequest, form: Mapping[str, str], *, dry_run: bool) -> ImportReport:
    """Call `Collection.import_files` with the uploaded files and the options of the form."""
    given = request.live.uploads.files(request.assessor)
    if not given:
        raise InputError("no file is uploaded", hint="Add files first")
    detected, queries, passages, banks, runs, qrels, responses = (
        [one for one in given if _role(form, one) == role] for role in ("", *ROLES)
    )
    kind = form.get("kind") or None
    columns = [one for one in form.get("columns", "").splitlines() if one.strip()]
    with request.open() as collection:
        return collection.import_files(
            *detected,
            kind=kind and checked_choice("format", kind, [*_formats(), *presets()]),
            queries=queries,
            passages=passages,
            banks=banks,
            runs=runs,
            qrels=qrels,
            responses=responses,
            bank=form.get("bank") or MAIN_BANK,
            on_error=checked_choice("choice", form.get("on_error", ON_ERROR[0]), ON_ERROR),
            unknown_passages=checked_choice("choice", form.get("unknown", UNKNOWN[0]), UNKNOWN),
            depth=whole("depth", form) or None,
            system=form.get("system", "").strip() or None,
            passage_tokens=whole("passage_tokens", form) or PASSAGE_TOKENS,
            cited=bool(form.get("cited")),
            columns=columns_of(columns),
            author=request.assessor,
            update=bool(form.get("update")),
            dry_run=dry_run,
        )


def _explained(request: PageRequest, form: Mapping[str, str]) -> Mapping[str, Table]:
    """Return how files are read, their fields, and the first record of every file."""
    given = [one for one in request.live.uploads.files(request.assessor) if not _role(form, one)]
    if not given:
        return {}
    columns = columns_of([one for one in form.get("columns", "").splitlines() if one.strip()])
    system = form.get("system", "").strip() or None
    found = explain_files(*given, kind=form.get("kind") or None, system=system, columns=columns)
    return found.tables()


def _role(form: Mapping[str, str], file: Path) -> str:
    return checked_choice("role", form.get(f"role-{file.name}", ""), ("", *ROLES))


def _detected(file: Path, form: Mapping[str, str]) -> str:
    """Return the kind of a file alone, or why it is unknown."""
    try:
        known = detected_kinds([GivenFile(file)], form.get("system", "").strip() or None)
        return ", ".join(dict.fromkeys(one.kind for one in known))
    except InputError as error:
        return error.what


def _formats() -> list[str]:
    """Return the names of the formats that can be imported."""
    return list(dict.fromkeys(one.name for one in FORMATS.built_in.values() if one.read))


def _page(
    request: PageRequest,
    form: Mapping[str, str],
    status: int = 200,
    *,
    trouble: str = "",
    report: ImportReport | None = None,
) -> HTMLResponse:
    folder = f"{request.live.uploads.folder(request.assessor)}/"
    uploaded = request.live.uploads.files(request.assessor)
    found: dict[str, list[str]] = {}
    for one in report.files if report else ():
        path = one.file.removesuffix(f" ({one.kind})").removeprefix(folder)
        sure = " (by its name)" if one.by_name else ""
        found.setdefault(path, []).append(f"{one.kind}{sure}, {counted(one.records, 'record')}")
    if trouble:
        found = {one.name: [_detected(one, form)] for one in uploaded}
    context: dict[str, Any] = {
        "files": [
            UploadedFile(one.name, one.stat().st_size, form.get(f"role-{one.name}", ""), of)
            for one in uploaded
            for of in (found.get(one.name, ()),)
        ],
        "remarks": [one.replace(folder, "") for one in report.remarks] if report else (),
        "skipped": [str(one).replace(folder, "") for one in report.skipped_first] if report else (),
        "tables": report.tables() if report else {},
        "recognised": _explained(request, form) if report and report.dry_run else {},
        "trouble": trouble.replace(folder, ""),
    }
    return request.render(
        "files.html",
        status,
        form=form,
        report=report,
        roles=ROLES,
        kinds={"formats": _formats(), "programs": [*presets()]},
        largest=UPLOAD_BYTES >> 30,
        on_error=ON_ERROR,
        unknown=UNKNOWN,
        **context,
    )
