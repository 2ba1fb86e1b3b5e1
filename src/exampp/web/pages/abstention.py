"""`/abstention`: which queries systems answer, and from which they abstain."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.abstention import Abstention
from exampp.errors import InputError
from exampp.web.page_request import PICTURES, CurrentRequest, PageRequest, computed, limited_by
from exampp.web.rendering import Theme, figure_response, sentence

router = APIRouter()


@router.get("/abstention")
def abstention(request: CurrentRequest) -> HTMLResponse:
    """Show the outcomes of all systems, and the responses that are wrong."""
    found, trouble = None, ""
    try:
        found = _found(request, request.patience)
    except InputError as error:
        trouble = f"{sentence(error)}."
    return request.render(
        "abstention.html",
        found=found,
        figure=found.plot() if found else None,
        table=replace(found.tables()["abstention"], verdict="") if found else None,
        wrong=[one for one in found.responses if one.is_wrong] if found else (),
        texts=request.snapshot.texts,
        trouble=trouble,
    )


@router.get("/abstention/plot.{kind}")
@limited_by(PICTURES)
def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
    """Return the figure of the outcomes of responses as a file."""
    return figure_response(lambda: _found(request, None).plot(), kind, theme)


def _found(request: PageRequest, patience: float | None) -> Abstention:
    snapshot = request.snapshot

    def find() -> Abstention:
        with snapshot.grades() as grades:
            return grades.abstention(min_rating=snapshot.min_rating)

    return computed(snapshot.cache.soon("abstention", find, patience))
