"""`/citations`: the support of sentences by passages, in a collection of citations."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.citations import CitationScores
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, limited_by
from exampp.web.rendering import Theme, figure_response
from exampp.web.result_page import result_of, result_page

router = APIRouter()


@router.get("/citations")
def citations(request: CurrentRequest) -> HTMLResponse:
    """Show precision and recall of citations, and the support of sentences, by system."""
    return result_page(request, "citations", _found)


@router.get("/citations/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of the support of citations and sentences as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> CitationScores:
    return result_of(request, "citations", lambda one: one.citations(), patience)
