"""`/turns`: Cover by turn of conversations."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.turns import TurnCover
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, limited_by
from exampp.web.rendering import Theme, figure_response
from exampp.web.result_page import result_of, result_page

router = APIRouter()


@router.get("/turns")
def turns(request: CurrentRequest) -> HTMLResponse:
    """Show Cover of all systems on the items of each turn."""
    return result_page(request, "turns", _found)


@router.get("/turns/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of Cover by turn as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> TurnCover:
    least = request.snapshot.min_rating
    return result_of(request, "turns", lambda one: one.turns(min_rating=least), patience)
