"""`/banks`: banks beside a reference bank, and the items that match, are missing or are new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from exampp.analysis.bank_effects import BankEffects
from exampp.analysis.banks import (
    BankComparison,
    are_matches,
    matched_passage,
    matched_query,
)
from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.records.graders import same_but_for_kind
from exampp.web.live_collection import Choice
from exampp.web.page_request import (
    CHOICE,
    PICTURES,
    CurrentRequest,
    PageRequest,
    computed,
    found_or_trouble,
    in_turn,
    limited_by,
    page_of,
)
from exampp.web.rendering import Theme, figure_response

router = APIRouter()
ROWS = 50
"""Rows of a list on a page."""
List = Literal["missing", "new", "pairs"]
By = Literal["text", "similarity", "keys"]


@router.get("/banks")
def banks(
    request: CurrentRequest,
    reference: str = "",
    by: By = "text",
    shared: bool = False,
    show: List = "missing",
    bank: str = "",
    page: int = 1,
) -> HTMLResponse:
    """Compare all banks with a reference bank; `show` is the list below, of one `bank` or all."""
    decides = bool(request.choices) and are_matches(request.snapshot.gradebook)
    with request.open() as collection:
        names = list(dict.fromkeys(str(name) for name, *_ in collection.banks().rows))
    reference = request.bank if decides else reference or request.bank
    found, trouble = None, ""
    if decides or len(names) > 1:
        found, trouble = found_or_trouble(
            lambda: _found(request, "" if decides else reference, by, shared, request.patience)
        )
    effects = None if decides or found is None else _effects(request, reference)
    entries = [] if found is None else _listed(found, show, bank)
    return request.render(
        "banks.html",
        names=names,
        reference=reference,
        by=by,
        shared=shared,
        show=show,
        bank=bank,
        decides=decides,
        found=found,
        figure=None if found is None else found.plot(),
        board=None if found is None else replace(found.tables()["banks"], verdict=""),
        effects=effects,
        listing=page_of(entries, page, ROWS),
        trouble=trouble,
        unit=matched_query,
        passage=matched_passage,
        pin=_pins(request) if decides else dict,
    )


def _pins(request: PageRequest) -> Callable[[str, str], dict[str, str]]:
    """Return a function of a query and item: the parameter that chooses the grades of its kind."""
    kinds = _choices_by_kind(request)
    if len(kinds) == 1:
        return lambda _query, _item: {}
    with request.snapshot.grades() as grades:
        of_item = _kinds_of_items(grades)

    def pin(query_id: str, item_id: str) -> dict[str, str]:
        choice = kinds.get(of_item.get((query_id, item_id), ""))
        return {} if choice is None else {CHOICE: choice.code}

    return pin


def _kinds_of_items(grades: Grades) -> dict[tuple[str, str], str]:
    items = (item for entry in grades.bank_texts().entries for item in entry.items)
    return {(one.query_id, one.item_id): one.kind for one in items}


def _choices_by_kind(request: PageRequest) -> dict[str, Choice]:
    """Return the choices of the chosen grader on its bank, by kind of item."""
    here = request.choice
    return {
        one.grader.kind: one
        for one in request.choices
        if one.bank == here.bank and same_but_for_kind(one.grader, here.grader)
    }


@router.get("/banks/plot.{kind}")
@limited_by(PICTURES)
def picture(
    request: CurrentRequest,
    kind: str,
    reference: str = "",
    by: By = "text",
    shared: bool = False,
    theme: Theme = "light",
) -> Response:
    """Return the figure of the banks as a file."""
    decides = bool(request.choices) and are_matches(request.snapshot.gradebook)
    reference = "" if decides else reference or request.bank
    return figure_response(lambda: _found(request, reference, by, shared, None).plot(), kind, theme)


def _found(
    request: PageRequest, reference: str, by: By, shared: bool, patience: float | None
) -> BankComparison:
    """Return the comparison, of matches that are graded if there is no `reference`."""
    if not reference:
        least = request.snapshot.min_rating
        return computed(
            request.snapshot.soon(
                ("banks", shared),
                lambda grades: grades.banks(shared=shared, min_rating=least),
                patience,
            )
        )

    def compare() -> BankComparison:
        with Collection(request.live.path) as collection:
            return collection.compare_banks(reference, matcher=by, shared=shared)

    key = ("banks", reference, by, shared)
    return computed(request.live.soon(key, compare, patience))


def _effects(request: PageRequest, reference: str) -> BankEffects | None:
    """Return the order of systems by all banks that the chosen grader graded, if it did several."""
    if not request.choices:
        return None
    grader, threshold = request.choice.grader, request.min_rating
    graded = [one.bank for one in request.choices if one.grader.key == grader.key]
    if len(graded) < 2 or reference not in graded:
        return None

    def compute() -> BankEffects | None:
        with Collection(request.live.path) as collection, suppress(InputError):
            panel = collection.panel(grader.key, bank=graded)
            return panel.bank_effects(reference, min_rating=threshold)
        return None

    key = ("effects", reference, grader.key, threshold)
    return computed(request.live.soon(key, lambda: (compute(),), request.patience))[0]


def _listed(found: BankComparison, show: List, bank: str) -> Sequence[object]:
    """Return a list of the comparison, of one bank or of all."""
    if show == "missing":
        return [one for one in found.missing if (bank not in one.banks if bank else not one.banks)]
    if show == "new":
        return [one for one in found.new if not bank or bank in one.banks]
    return [one for one in found.pairs if bank in ("", one.bank)]


@router.post("/banks/decide")
@in_turn
def decide(
    request: CurrentRequest,
    query: Annotated[str, Form()],
    item: Annotated[str, Form()],
    passage: Annotated[str, Form()],
    same: Annotated[bool, Form()],
    back: Annotated[str, Form()] = "/banks",
) -> Response:
    """Store what a person says of a pair: the same, or different."""
    with request.live.deciding() as collection:
        grades = request.live.grades_of(collection, request.choice)
        if len(kinds := _choices_by_kind(request)) > 1:
            choice = kinds.get(_kinds_of_items(grades).get((query, item), ""), request.choice)
            grades = request.live.grades_of(collection, choice)
        rating = grades.grader.highest if same else grades.grader.lowest
        grades.decisions.decide(query, item, passage, rating, author=request.assessor)
    request.live.changed()
    return request.redirect_back(back, "/banks")
