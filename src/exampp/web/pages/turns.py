"""`/turns`: Cover by turn of conversations."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.turns import TurnCover
from exampp.errors import InputError
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, computed, limited_by
from exampp.web.rendering import Theme, figure_response, sentence

router = APIRouter()


@router.get("/turns")
def turns(request: CurrentRequest) -> HTMLResponse:
    """Show Cover of all systems on the items of each turn."""
    found, trouble = None, ""
    try:
        found = _found(request, request.patience)
    except InputError as error:
        trouble = f"{sentence(error)}."
    table = replace(found.tables()["turns"], verdict="") if found else None
    figure = found.plot() if found else None
    return request.render("turns.html", found=found, figure=figure, table=table, trouble=trouble)


@router.get("/turns/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of Cover by turn as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> TurnCover:
    snapshot = request.snapshot

    def find() -> TurnCover:
        with snapshot.grades() as grades:
            return grades.turns(min_rating=snapshot.min_rating)

    return computed(snapshot.cache.soon("turns", find, patience))
