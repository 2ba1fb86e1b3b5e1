"""`/improve`: items to retire or to add, the gain on held-out systems, and a button to accept."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.improvement import Improvement
from exampp.collection import Collection
from exampp.errors import InputError
from exampp.web.page_request import (
    CurrentRequest,
    PageRequest,
    computed,
    found_or_trouble,
    page_of,
)
from exampp.web.rendering import sentence

router = APIRouter()
ROWS = 50
"""Proposals on a page."""


@router.get("/improve")
def improve(request: CurrentRequest, page: int = 1) -> HTMLResponse:
    """Show the proposals for the bank, and their gain."""
    return _page(request, page)


@router.post("/improve/accept")
def accept(request: CurrentRequest, seen: Annotated[str, Form()]) -> Response:
    """Retire and add the items that the page showed, as one edit, and show it in the history."""
    bank = request.choice.bank
    try:
        found = computed(_found(request, None))
        if proposals_digest(found) != seen:
            raise InputError("the proposals have changed meanwhile. Look at them again")
        with request.open() as collection:
            collection.bank(bank).accept(found, author=request.assessor)
    except InputError as error:
        return _page(request, trouble=f"{sentence(error)}.")
    request.live.changed()
    return request.redirect("/history", what="edits", bank=bank)


def _page(request: PageRequest, page: int = 1, trouble: str = "") -> HTMLResponse:
    found, unknown = found_or_trouble(lambda: computed(_found(request, request.patience)))
    return request.render(
        "improve.html",
        400 if trouble else 200,
        found=found,
        gain=None if found is None else replace(found.tables()["gain"], verdict=""),
        listing=page_of(found.proposals if found else (), page, ROWS),
        seen=found and proposals_digest(found),
        trouble=trouble,
        unknown=unknown,
    )


def _found(request: PageRequest, patience: float | None) -> Improvement | None:
    """Return the trial of the chosen grades on the newest version of their bank."""
    snapshot, (grader, name) = request.snapshot, request.choice
    if not request.choice.grades_items:
        raise InputError(
            "this grader rates passages for the query itself, so there is no bank to improve",
            hint="Choose a grader of questions or nuggets",
        )
    with request.open() as collection:
        number = collection.bank(name).version().number

    def compute() -> Improvement:
        with Collection(snapshot.path) as collection:
            return collection.bank(name).improve(
                grader.key, min_rating=snapshot.min_rating, official=snapshot.official
            )

    return snapshot.cache.soon(("improve", number), compute, patience)


def proposals_digest(found: Improvement) -> str:
    """Return a short digest of the proposed changes."""
    changes = [(one.query_id, one.item_id, one.change) for one in found.proposals]
    return sha256(repr(changes).encode()).hexdigest()[:16]
