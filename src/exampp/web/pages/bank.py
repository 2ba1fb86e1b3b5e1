"""`/bank`: the bank of one query is edited in place, and what that does is seen before it is saved.

The whole bank of a query is one form. `/impact` says what saving it would do; `/bank/edit` saves
it, all of it or, where someone else edited one of the same items meanwhile, nothing: then the page
comes back with both texts, and what was typed is still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from exampp.collection import Collection
from exampp.errors import EditConflict, InputError
from exampp.items.edits import QueryEdits
from exampp.items.lint import RULES, Finding, lint
from exampp.records import ITEM_KINDS, BankEntry, Item
from exampp.records.gradebook import Dossier, QueryGrades
from exampp.review.impact import EditPreview, Impact
from exampp.store.bank import ItemState
from exampp.web.cells import dossier
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.pages.bank_form import (
    Fields,
    FormLine,
    conflicts,
    edits,
    subtopics_of,
    typed,
    untyped,
)
from exampp.web.pages.heat import columns

router = APIRouter()
MOVES = 8
"""Systems whose moves are shown at once; the others are a click away."""
LABELS = 200
"""Passages that change label which are listed at most."""


async def _form(request: Request) -> Fields:
    form = await request.form()
    return {name: [one for one in form.getlist(name) if isinstance(one, str)] for name in form}


BankForm = Annotated[Fields, Depends(_form)]
"""The form of a bank, or of some of its items, as it was sent."""


@router.get("/bank")
def bank(visit: CurrentRequest, query: str | None = None, saved: int = 0) -> Response:
    """The bank of a query, to be edited; of none, the queries to choose from."""
    if query is None:
        return visit.go("/queries")
    with visit.open() as collection:
        found = dossier(visit, collection, query)
        lines = untyped(states_of(visit, collection, query))
    return _page(visit, found, lines, saved=saved)


@router.post("/impact")
def impact(visit: CurrentRequest, query: str, form: BankForm) -> HTMLResponse:
    """What saving the form would do, as a part of the page."""
    baseline, refused = visit.snapshot.baseline, ""
    result: Impact | None = None
    tried: EditPreview | None = None
    with visit.open() as collection:
        found = dossier(visit, collection, query)
        lines = typed_lines(visit, collection, query, form)
        try:
            tried = try_out(visit, collection, found, lines)
        except InputError as error:
            refused = str(error)
    if tried is not None:
        if not is_same(baseline.query(query), found.grades):
            # a decision or an edit that the snapshot does not know of yet
            baseline = baseline.with_query(found.grades)
        result = baseline.impact(tried.query)
    return visit.page(
        "_impact.html",
        impact=result,
        to_grade=tried.to_grade if tried else 0,
        refused=refused,
        lines=lines,
        findings=_findings(found, lines),
        why=RULES,
        changes=count(lines),
        moves=MOVES,
        labels=LABELS,
    )


def is_same(one: QueryGrades, other: QueryGrades) -> bool:
    """Whether nobody decided or edited anything between two readings of a query."""
    return (
        one.item_ids == other.item_ids
        and np.array_equal(one.weights, other.weights)
        and np.array_equal(one.ratings, other.ratings)
    )


def try_out(
    visit: PageRequest, collection: Collection, found: Dossier, lines: Sequence[FormLine]
) -> EditPreview | None:
    """The query as it would be; None where nothing is changed. InputError for what is refused."""
    wanted = [one for _, one in edits(lines, found.query_id, found.grader.kind)]
    if not wanted:
        return None
    return visit.choice.of(collection).decisions.preview(found.grades, wanted)


@router.post("/bank/edit")
def edit(visit: CurrentRequest, query: str, form: BankForm) -> Response:
    """Save the form: all of it, or nothing where an edit is refused or clashes with another."""
    with visit.open() as collection:
        found = dossier(visit, collection, query)
        lines = typed_lines(visit, collection, query, form)
        why = "".join(form.get("reason", ())).strip()
        trouble = next((line.fault for line in lines if line.fault), "")
        saved = 0
        if not trouble and not conflicts(lines):
            try:
                try_out(visit, collection, found, lines)
                saved = _save(visit, collection, query, lines, why)
            except EditConflict:
                # someone was faster by a moment: the lines say where
                pass
            except InputError as error:
                trouble = str(error)
        lines = typed_lines(visit, collection, query, form)
        if not saved and (clash := conflicts(lines)):
            return _page(visit, found, lines, HTTPStatus.CONFLICT, clash=clash, reason=why)
        if trouble:
            return _page(visit, found, lines, HTTPStatus.BAD_REQUEST, trouble=trouble, reason=why)
    visit.room.changed()
    return visit.go("/bank", query=query, saved=saved)


def _save(
    visit: PageRequest,
    collection: Collection,
    query_id: str,
    lines: Sequence[FormLine],
    reason: str,
) -> int:
    """Make the edits of the form; returns how many. EditConflict where someone was faster."""
    wanted = query_edits(lines, query_id, visit.choice.grader.kind)
    collection.bank(visit.choice.bank).save_all([wanted], author=visit.assessor, reason=reason)
    return len(wanted.edits)


def query_edits(lines: Sequence[FormLine], query_id: str, kind: str) -> QueryEdits:
    """The edits of a form, with what was known of the items when it was made."""
    wanted = list(edits(lines, query_id, kind))
    seen = {line.state.item_id: line.seen for line, _ in wanted if line.state}
    return QueryEdits(query_id, [one for _, one in wanted], seen)


def states_of(visit: PageRequest, collection: Collection, query_id: str) -> list[ItemState]:
    """The items of the query, retired ones too, as they are now.

    InputError where the grader has no items but the query itself.
    """
    kind = visit.choice.grader.kind
    if kind == ITEM_KINDS[-1]:
        raise InputError(
            "this grader rates passages for the query itself, which has no bank",
            mend="Choose a grader of questions or nuggets above",
        )
    found = collection.bank(visit.choice.bank).items(query_id)
    return [one for one in found if one.kind == kind]


def typed_lines(
    visit: PageRequest, collection: Collection, query_id: str, form: Fields
) -> list[FormLine]:
    """The form as it was typed, on the bank as it is now."""

    def seen_as(state: ItemState, number: int) -> ItemState | None:
        history = collection.bank(visit.choice.bank).states_of(state)
        return next((one.after for one in reversed(history) if one.number <= number), None)

    return typed(states_of(visit, collection, query_id), form, seen_as)


def _page(
    visit: PageRequest,
    found: Dossier,
    lines: Sequence[FormLine],
    status: int = HTTPStatus.OK,
    *,
    saved: int = 0,
    trouble: str = "",
    clash: Sequence[FormLine] = (),
    reason: str = "",
) -> HTMLResponse:
    covered = {one.item_id: one for one in columns(found, visit.min_rating)}
    page = visit.page(
        "bank.html",
        dossier=found,
        lines=[line for line in lines if line.state is not None],
        added=[line for line in lines if line.state is None],
        subtopics=subtopics_of([line.state for line in lines if line.state]),
        covered=covered,
        findings=_findings(found, lines),
        why=RULES,
        saved=saved,
        trouble=trouble,
        reason=reason,
        clash={line.key for line in clash},
        changes=count(lines),
    )
    page.status_code = status
    return page


def count(lines: Sequence[FormLine]) -> int:
    """How many lines change something."""
    return sum(line.state is None or line.after is not None for line in lines if not line.fault)


def _findings(found: Dossier, lines: Sequence[FormLine]) -> Mapping[int, list[Finding]]:
    """What is likely wrong with the bank of the query as it was typed, by line."""
    kept = {
        f"item {number}": line
        for number, line in enumerate(lines, 1)
        if not line.retired and line.text.strip()
    }
    items = tuple(
        Item(
            name,
            found.query_id,
            line.text,
            line.state.kind if line.state else found.grader.kind,
            line.subtopic_id,
            line.state.answers if line.state else (),
        )
        for name, line in kept.items()
    )
    entry = BankEntry(found.query_id, items, found.query_text)
    by_line: dict[int, list[Finding]] = {}
    for one in lint([entry], {found.query_id: found.query_text}):
        if one.item_id:
            by_line.setdefault(kept[one.item_id].key, []).append(one)
    return by_line
