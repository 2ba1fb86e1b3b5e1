"""`/people`: who you are and what you may do; owners invite people and revoke their access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.items.sealed_use import last_sealed_use, sealed_use_figure
from exampp.results.plots.figure import Figure
from exampp.results.result import Table
from exampp.service import client_tables
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, limited_by
from exampp.web.people import ROLES, Role, permitted_actions
from exampp.web.rendering import Theme, figure_response

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


@router.get("/people/sealed.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of the submissions to the sealed part as a file."""

    def find() -> Figure:
        with request.open() as collection:
            return sealed_use_figure(last_sealed_use(collection.connection))

    return figure_response(find, kind, theme)


def _page(
    request: PageRequest, *, name: str = "", address: str = "", trouble: str = ""
) -> HTMLResponse:
    programs: Mapping[str, Table] = {}
    figure = None
    if request.may("manage"):
        with request.open() as collection:
            programs = client_tables(collection)
            if "sealed" in programs:
                figure = sealed_use_figure(last_sealed_use(collection.connection))
    return request.render(
        "people.html",
        programs={name: table for name, table in programs.items() if table.rows},
        figure=figure,
        permitted=permitted_actions(request.person.role),
        roles={role: permitted_actions(role) for role in [*ROLES][::-1]},
        everybody=request.access.people.everybody(),
        name=name,
        address=address,
        trouble=trouble,
    )
