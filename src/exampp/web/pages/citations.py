"""`/citations`: the support of sentences by passages, in a collection of citations."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.citations import CitationScores
from exampp.errors import InputError
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, computed, limited_by
from exampp.web.rendering import Theme, figure_response, sentence

router = APIRouter()


@router.get("/citations")
def citations(request: CurrentRequest) -> HTMLResponse:
    """Show precision and recall of citations, and the support of sentences, by system."""
    found, trouble = None, ""
    try:
        found = _found(request, request.patience)
    except InputError as error:
        trouble = f"{sentence(error)}."
    table = replace(found.tables()["citations"], verdict="") if found else None
    figure = found.plot() if found else None
    return request.render(
        "citations.html", found=found, figure=figure, table=table, trouble=trouble
    )


@router.get("/citations/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of the support of citations and sentences as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> CitationScores:
    snapshot = request.snapshot

    def find() -> CitationScores:
        with snapshot.grades() as grades:
            return grades.citations()

    return computed(snapshot.cache.soon("citations", find, patience))
