"""`/people`: who you are and what you may do; owners invite people and revoke their access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.results.result import Table
from exampp.service import client_tables
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.people import ROLES, Role, permitted_actions

router = APIRouter()


@router.get("/people")
def people(request: CurrentRequest) -> HTMLResponse:
    """Show the role of the person and, to owners, everybody with access."""
    return _page(request)


@router.post("/people/invite")
def invite(
    request: CurrentRequest, name: Annotated[str, Form()], role: Annotated[Role, Form()]
) -> HTMLResponse:
    """Invite a person and show the link once."""
    try:
        token = request.access.people.invite(name, role)
    except InputError as error:
        return _page(request, trouble=str(error))
    return _page(request, name=name, address=f"{request.address}/?token={token}")


@router.post("/people/revoke")
def revoke(request: CurrentRequest, name: Annotated[str, Form()]) -> HTMLResponse:
    """End the access of a person."""
    try:
        request.access.people.revoke(name, by=request.assessor)
    except InputError as error:
        return _page(request, trouble=str(error))
    return _page(request)


def _page(
    request: PageRequest, *, name: str = "", address: str = "", trouble: str = ""
) -> HTMLResponse:
    programs: Mapping[str, Table] = {}
    if request.may("manage"):
        with request.open() as collection:
            programs = client_tables(collection)
    return request.render(
        "people.html",
        programs={name: table for name, table in programs.items() if table.rows},
        permitted=permitted_actions(request.person.role),
        roles={role: permitted_actions(role) for role in [*ROLES][::-1]},
        everybody=request.access.people.everybody(),
        name=name,
        address=address,
        trouble=trouble,
    )
