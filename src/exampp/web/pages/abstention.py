"""`/abstention`: which queries systems answer, and from which they abstain."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.abstention import Abstention
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, limited_by
from exampp.web.rendering import Theme, figure_response
from exampp.web.result_page import result_of, result_page

router = APIRouter()


@router.get("/abstention")
def abstention(request: CurrentRequest) -> HTMLResponse:
    """Show the outcomes of all systems, and the responses that are wrong."""
    return result_page(request, "abstention", _found)


@router.get("/abstention/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of the outcomes of responses as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> Abstention:
    least = request.snapshot.min_rating
    return result_of(
        request, "abstention", lambda grades: grades.abstention(min_rating=least), patience
    )
