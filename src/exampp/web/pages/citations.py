"""`/citations`: the support of sentences by passages, in a collection of citations."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.analysis.citations import CitationScores
from exampp.errors import InputError
from exampp.web.page_request import CurrentRequest, StillComputing
from exampp.web.rendering import sentence

router = APIRouter()


@router.get("/citations")
def citations(request: CurrentRequest) -> HTMLResponse:
    """Show precision and recall of citations, and the support of sentences, by system."""
    snapshot = request.snapshot

    def find() -> CitationScores:
        with snapshot.grades() as grades:
            return grades.citations()

    found, trouble = None, ""
    try:
        found = snapshot.cache.soon("citations", find, request.patience)
        if found is None:
            raise StillComputing
    except InputError as error:
        trouble = f"{sentence(error)}."
    table = replace(found.tables()["citations"], verdict="") if found else None
    return request.render("citations.html", found=found, table=table, trouble=trouble)
