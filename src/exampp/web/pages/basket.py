"""`/basket`: edits of items of several queries, tried out and saved together.

A basket holds the forms of banks as they were typed; it is one person's, and kept while the server
runs. What was edited meanwhile by others is told as on the page of a bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from exampp.collection import Collection
from exampp.errors import EditConflict, InputError
from exampp.grading.status import grading_status
from exampp.records.graders import grade_command
from exampp.review.impact import Impact
from exampp.store.bank import MAIN_BANK, known_queries
from exampp.web.cells import dossier
from exampp.web.live_collection import Basket
from exampp.web.page_request import CurrentRequest, PageRequest
from exampp.web.pages.bank import (
    LABELS,
    MOVES,
    BankForm,
    is_same,
    query_edits,
    try_out,
    typed_lines,
)
from exampp.web.pages.bank_form import Fields, FormLine, conflicts

router = APIRouter()


@dataclass(frozen=True, slots=True)
class BasketQuery:
    """The edits of one query: the lines that change something, or are wrong."""

    query_id: str
    text: str
    lines: tuple[FormLine, ...]

    @property
    def trouble(self) -> bool:
        """Whether a line is wrong, or clashes with what somebody else did meanwhile."""
        return any(one.fault for one in self.lines) or bool(conflicts(self.lines))


def basket_of(visit: PageRequest) -> Basket:
    """What this person has gathered for the grades that are looked at."""
    if not visit.choices:
        return {}
    return visit.room.baskets.setdefault((visit.assessor, visit.choice.code), {})


@router.post("/basket/put")
def put(visit: CurrentRequest, query: str, form: BankForm) -> RedirectResponse:
    """Gather what was typed about items of a query; nothing is saved.

    Items that the form leaves as they are in the bank stay as they are in the basket, unless the
    form shows them as that (`queued`).
    """
    held = basket_of(visit)
    with visit.open() as collection:
        lines = typed_lines(visit, collection, query, form)
        said = form if "queued" in form else _changing(form, lines)
        fields = merged(held.get(query, {}), said)
        held[query] = _changing(fields, typed_lines(visit, collection, query, fields))
    if not held[query]:
        del held[query]
    return visit.back("".join(form.get("back", ())), "/basket")


@router.post("/basket/drop")
def drop(
    visit: CurrentRequest, query: Annotated[str, Form()], key: Annotated[str, Form()] = ""
) -> RedirectResponse:
    """Leave out the edits of an item; key 0: the new items of the query."""
    held = basket_of(visit)
    left = {name: said for name, said in held.pop(query, {}).items() if _key(name) != key}
    if left:
        held[query] = left
    return visit.go("/basket")


@router.get("/basket")
def basket(visit: CurrentRequest, saved: int = 0) -> HTMLResponse:
    """What is gathered, and what saving all of it would do."""
    return _page(visit, saved=saved)


@router.post("/basket/save")
def save(visit: CurrentRequest, reason: Annotated[str, Form()] = "") -> Response:
    """Save all of it, or nothing where an edit is refused or clashes with another."""
    held = basket_of(visit)
    with visit.open() as collection:
        found = _lines(visit, collection, held)
        if any(one.trouble for one in found):
            return _page(visit, 409, reason=reason)
        kind = visit.choice.grader.kind
        wanted = [query_edits(one.lines, one.query_id, kind) for one in found]
        try:
            collection.bank(visit.choice.bank).save_all(
                wanted, author=visit.assessor, reason=reason.strip()
            )
        except EditConflict:
            return _page(visit, 409, reason=reason)
        except InputError as error:
            return _page(visit, 400, trouble=str(error), reason=reason)
    held.clear()
    visit.room.changed()
    return visit.go("/basket", saved=sum(len(one.edits) for one in wanted))


def merged(old: Fields, new: Fields) -> Fields:
    """A form with what was typed later: of each item, and of the new items, the later one."""
    later = {_key(name) for name in new}
    return {
        **{name: said for name, said in old.items() if _key(name) not in later},
        **{name: said for name, said in new.items() if _key(name)},
    }


def _changing(fields: Fields, lines: Sequence[FormLine]) -> Fields:
    """The fields of the lines that change something, or are wrong."""
    keys = {str(one.key) for one in lines if one.fault or one.state is None or one.after}
    return {name: said for name, said in fields.items() if _key(name) in keys}


def gathered(visit: PageRequest) -> int:
    """How many items this person has edits of in the basket, new ones among them."""
    return sum(
        1 if name.startswith("seen-") else sum(map(bool, said)) if name == "new-text" else 0
        for fields in basket_of(visit).values()
        for name, said in fields.items()
    )


def _key(name: str) -> str:
    """The key of the item that a field is about; 0 for new items, "" for what is about none."""
    kind, _, key = name.partition("-")
    return "0" if kind == "new" else key if kind in ("seen", "text", "weight", "retired") else ""


def _lines(visit: PageRequest, collection: Collection, held: Basket) -> list[BasketQuery]:
    texts = known_queries(collection.connection)
    found = []
    for query_id, fields in held.items():
        lines = [
            one
            for one in typed_lines(visit, collection, query_id, fields)
            if one.fault or one.state is None or one.after is not None
        ]
        if lines:
            found.append(BasketQuery(query_id, texts.get(query_id, ""), tuple(lines)))
    return found


def _page(
    visit: PageRequest, status: int = 200, *, saved: int = 0, trouble: str = "", reason: str = ""
) -> HTMLResponse:
    held = basket_of(visit)
    impact, to_grade, due = None, 0, 0
    with visit.open() as collection:
        found = _lines(visit, collection, held) if held else []
        if found:
            try:
                impact, to_grade = _impact(visit, collection, found)
            except InputError as error:
                trouble = trouble or str(error)
        if saved:
            due = next(
                (
                    one.due
                    for one in grading_status(collection.connection, keep=False)
                    if (one.grader.key, one.bank) == (visit.choice.grader.key, visit.choice.bank)
                ),
                0,
            )
    bank = visit.choice.bank if visit.choices else ""
    page = visit.page(
        "basket.html",
        found=found,
        impact=impact,
        edited={one.query_id for one in found},
        to_grade=to_grade,
        changes=sum(len(one.lines) for one in found),
        clashing={line.key for one in found for line in conflicts(one.lines)},
        trouble=trouble,
        reason=reason,
        saved=saved,
        due=due,
        command=grade_command(
            visit.choice.grader, visit.room.path, "" if bank == MAIN_BANK else bank
        )
        if saved
        else "",
        moves=MOVES,
        labels=LABELS,
    )
    page.status_code = status
    return page


def _impact(
    visit: PageRequest, collection: Collection, found: list[BasketQuery]
) -> tuple[Impact | None, int]:
    """What all edits together would do, and how many cells they leave to be graded."""
    baseline, to_grade = visit.snapshot.baseline, 0
    after = {}
    for one in found:
        read = dossier(visit, collection, one.query_id)
        tried = try_out(visit, collection, read, one.lines)
        if tried is None:
            continue
        if not is_same(baseline.query(one.query_id), read.grades):
            # a decision or an edit that the snapshot does not know of yet
            baseline = baseline.with_query(read.grades)
        after[one.query_id] = tried.query
        to_grade += tried.to_grade
    return (baseline.impact_together(after) if after else None), to_grade
