"""`/abstention`: which queries systems answer, and from which they abstain."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from exampp.analysis.abstention import Abstention
from exampp.errors import InputError
from exampp.web.page_request import CurrentRequest, computed
from exampp.web.rendering import sentence

router = APIRouter()


@router.get("/abstention")
def abstention(request: CurrentRequest) -> HTMLResponse:
    """Show the outcomes of all systems, and the responses that are wrong."""
    snapshot = request.snapshot

    def find() -> Abstention:
        with snapshot.grades() as grades:
            return grades.abstention(min_rating=snapshot.min_rating)

    found, trouble = None, ""
    try:
        found = computed(snapshot.cache.soon("abstention", find, request.patience))
    except InputError as error:
        trouble = f"{sentence(error)}."
    return request.render(
        "abstention.html",
        found=found,
        table=replace(found.tables()["abstention"], verdict="") if found else None,
        wrong=[one for one in found.responses if one.is_wrong] if found else (),
        texts=snapshot.texts,
        trouble=trouble,
    )
