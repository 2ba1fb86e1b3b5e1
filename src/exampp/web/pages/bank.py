"""`/bank`: edit banks in place, and show the effect before it is saved.

The bank of a query is one form. `/impact` shows the effect of saving it. `/bank/edit` saves all of
it or, if someone else has edited one of the items meanwhile, nothing: the page then shows both
versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import zip_longest
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from exampp.collection import Collection
from exampp.errors import EditConflict, InputError
from exampp.formats.fields import check_weight, real
from exampp.items.lint import RULES, Finding, lint
from exampp.records import ITEM_KINDS, BankEntry, Item
from exampp.records.gradebook import QueryGrades
from exampp.records.grouping import grouped
from exampp.records.items import DIFFERENT, marked_items
from exampp.review.evidence import item_coverage
from exampp.review.impact import Impact
from exampp.store.bank import ItemChange, ItemState
from exampp.web.cells import read_query
from exampp.web.page_request import CurrentRequest, PageRequest

router = APIRouter()
MOVES = 8
"""Number of systems shown at first."""
LABELS = 200
"""Maximum number of listed passages with a new label."""
_NUMBER = re.compile("[0-9]{1,18}")

Fields = Mapping[str, Sequence[str]]
"""A submitted form: all values of each field."""
SeenAs = Callable[[ItemState, int], ItemState]
"""Returns the state of an item after an edit, by number."""


async def _form(request: Request) -> Fields:
    form = await request.form()
    return {name: [one for one in form.getlist(name) if isinstance(one, str)] for name in form}


BankForm = Annotated[Fields, Depends(_form)]
"""The submitted form of a bank or some of its items."""


# ---- the form ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormLine:
    """One item of the form.

    `state` is the current item in the bank, None for a new one; `seen` is the number of its last
    edit when the form was rendered. `fault` describes invalid input.
    """

    state: ItemState | None
    text: str
    weight: str
    retired: bool = False
    subtopic_id: str | None = None
    seen: int = 0
    fault: str = ""

    @property
    def key(self) -> int:
        """Return the number used in the names of its fields."""
        return (self.state.key or 0) if self.state else 0

    @property
    def after(self) -> ItemState | None:
        """Return the edited item; None if the line is new, invalid or unchanged."""
        if self.state is None or self.fault:
            return None
        after = replace(
            self.state,
            text=self.state.text if same_text(self.text, self.state.text) else self.text,
            weight=float(self.weight),
            active=not self.retired,
        )
        return None if after == self.state else after

    @property
    def changes(self) -> bool:
        """Return whether the line adds or changes an item, or is invalid."""
        return self.state is None or bool(self.fault) or self.after is not None

    @property
    def is_conflict(self) -> bool:
        """Return whether someone else has edited the item since the form was rendered."""
        after = self.after
        return after is not None and after.edit > self.seen


def untyped(states: Iterable[ItemState]) -> list[FormLine]:
    """Return the unchanged form of a bank."""
    return [
        FormLine(one, one.text or "", shown_weight(one), not one.active, one.subtopic_id, one.edit)
        for one in states
    ]


def typed_lines(
    request: PageRequest, collection: Collection, query_id: str, fields: Fields
) -> list[FormLine]:
    """Return the submitted form on top of the current bank; new items come last.

    Unchanged items, and items that are not in the form, have their current state.
    """
    bank, kind = collection.bank(request.choice.bank), request.choice.grader.kind
    if kind == ITEM_KINDS[-1]:
        raise InputError(
            "this grader rates passages for the query itself, so there is no bank to edit",
            hint="Choose a grader of questions or nuggets",
        )
    states = [one for one in bank.items(query_id) if one.kind == kind]

    def seen_as(state: ItemState, number: int) -> ItemState:
        history = bank.history(state)
        return next((one.after for one in reversed(history) if one.number <= number), state)

    return merge_form(states, fields, seen_as)


def merge_form(states: Iterable[ItemState], fields: Fields, seen_as: SeenAs) -> list[FormLine]:
    """Return the lines of a form; `seen_as` returns an item as it was after an edit."""
    return [*(_typed(line, fields, seen_as) for line in untyped(states)), *_new(fields)]


def _typed(line: FormLine, fields: Fields, seen_as: SeenAs) -> FormLine:
    state, key = line.state, line.key
    seen_value = _first(fields, f"seen-{key}", "")
    if state is None or not _NUMBER.fullmatch(seen_value):
        return line
    seen = int(seen_value)
    base = state if seen >= state.edit else seen_as(state, seen)
    text = _first(fields, f"text-{key}", line.text)
    weight = _first(fields, f"weight-{key}", line.weight).strip()
    retired = _first(fields, f"retired-{key}", "") == "1"
    merged = replace(
        line,
        text=line.text if same_text(text, base.text) else text,
        weight=line.weight if weight == shown_weight(base) else weight,
        retired=line.retired if retired is not base.active else retired,
        seen=seen,
    )
    return merged if merged == replace(line, seen=seen) else replace(merged, fault=_fault(merged))


def _new(fields: Fields) -> Iterator[FormLine]:
    columns = (fields.get(f"new-{name}", ()) for name in ("text", "weight", "subtopic"))
    for text, weight, subtopic in zip_longest(*columns, fillvalue=""):
        if text.strip():
            line = FormLine(None, text, weight.strip() or "1", subtopic_id=subtopic or None)
            yield replace(line, fault=_fault(line))


def _fault(line: FormLine) -> str:
    if not line.text.strip():
        return "the text is empty. Retire the item instead"
    try:
        check_weight(real(line.weight, "weight"))
    except InputError as error:
        return error.what
    return ""


def _first(fields: Fields, name: str, default: str) -> str:
    return next(iter(fields.get(name, ())), default)


def shown_weight(state: ItemState) -> str:
    """Format the weight of an item without losing digits."""
    brief = f"{state.weight:g}"
    return brief if float(brief) == state.weight else repr(state.weight)


def same_text(typed: str, text: str | None) -> bool:
    """Return whether two texts are equal except for line breaks, which browsers rewrite."""
    return _as_shown(typed) == _as_shown(text or "")


def _as_shown(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def changes_in(
    lines: Iterable[FormLine], query_id: str, kind: str, *, tried: bool = False
) -> Iterator[ItemChange]:
    """Yield the changes of a form, without its invalid lines.

    `before` is the item as the form showed it, or as it is now if the changes are `tried`.
    """
    for line in lines:
        if line.state is None and not line.fault:
            weight = float(line.weight)
            new = ItemState(query_id, "", line.text, kind, line.subtopic_id, (), weight)
            yield ItemChange("add", None, new)
        elif line.state is not None and line.after is not None:
            edit = line.state.edit if tried else line.seen
            yield ItemChange("edit", replace(line.state, edit=edit), line.after)


# ---- the effect of edits -------------------------------------------------------------------------


def impact_of(
    request: PageRequest, collection: Collection, query_id: str, lines: Sequence[FormLine]
) -> tuple[Impact | None, int]:
    """Return the effect of saving a form, and the number of cells to grade.

    None without changes. InputError for edits that the bank would refuse.
    """
    baseline, grades = request.snapshot.baseline, request.choice.of(collection)
    changes = list(changes_in(lines, query_id, grades.grader.kind, tried=True))
    if not changes:
        return None, 0
    now = current_query(request, collection, query_id)
    if now is not baseline.query(query_id):
        # the collection has changed since the snapshot
        baseline = baseline.with_queries({query_id: now})
    preview = collection.bank(grades.bank).preview(changes, grades.stored)
    return baseline.impact(preview.queries), preview.to_grade


def current_query(request: PageRequest, collection: Collection, query_id: str) -> QueryGrades:
    """Return the current grades of a query, from the snapshot if it is up to date."""
    snapshot = request.snapshot
    if request.live.is_older(snapshot.read_at):
        return read_query(request, collection, query_id).grades
    return snapshot.baseline.query(query_id)


@router.post("/impact")
def impact(request: CurrentRequest, query: str, form: BankForm) -> HTMLResponse:
    """Show the effect of saving the form."""
    refused, effect, to_grade = "", None, 0
    with request.open() as collection:
        lines = typed_lines(request, collection, query, form)
        try:
            effect, to_grade = impact_of(request, collection, query, lines)
        except InputError as error:
            refused = str(error)
    findings = find_faults(request, query, lines)
    changes = sum(line.changes and not line.fault for line in lines)
    return request.render(
        "_impact.html",
        query_id=query,
        lines=lines,
        changes=changes,
        impact=effect,
        to_grade=to_grade,
        refused=refused,
        findings=findings,
        why=RULES,
        moves=MOVES,
        labels=LABELS,
    )


def find_faults(
    request: PageRequest, query_id: str, lines: Sequence[FormLine]
) -> Mapping[int, Sequence[Finding]]:
    """Return lint findings of a form by the key of the line, and of the query by 0."""
    kind, text = request.choice.grader.kind, request.snapshot.texts.get(query_id, "")
    evidence = dict(request.snapshot.evidence)
    named = {
        f"item {number}": line
        for number, line in enumerate(lines, 1)
        if not line.retired and line.text.strip()
    }
    names = {line.state.item_id: name for name, line in named.items() if line.state}
    items = tuple(
        Item(
            name,
            query_id,
            line.text,
            kind,
            line.subtopic_id,
            line.state.answers if line.state else (),
            float(line.weight) if not line.fault else 1.0,
            _in_form(line.state.extra, names) if line.state else {},
        )
        for name, line in named.items()
    )
    for name, line in named.items():
        if line.state and same_text(line.text, line.state.text):
            known = evidence.get((query_id, line.state.item_id))
            evidence |= {(query_id, name): known} if known else {}
    return grouped(
        lint([BankEntry(query_id, items, text)], {query_id: text}, evidence=evidence),
        lambda one: named[one.item_id].key if one.item_id else 0,
    )


def _in_form(extra: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return `Item.extra` with the marks of an item by the names of the form."""
    apart = [names[one] for one in marked_items(extra, DIFFERENT) if one in names]
    return {**extra, DIFFERENT: apart}


# ---- the page ------------------------------------------------------------------------------------


@router.get("/bank")
def bank(
    request: CurrentRequest, query: str | None = None, saved: int = 0, new: str = ""
) -> Response:
    """Show the bank of a query as a form, or the list of queries; `new` is the text of an item."""
    if query is None:
        return request.redirect("/queries")
    with request.open() as collection:
        lines = typed_lines(request, collection, query, {"new-text": [new]})
        return _bank_page(request, collection, query, lines, saved=saved)


@router.post("/bank/edit")
def edit(request: CurrentRequest, query: str, form: BankForm) -> Response:
    """Save the whole form, or nothing if an edit is refused or conflicts."""
    reason = "".join(form.get("reason", ())).strip()
    with request.open() as collection:
        lines = typed_lines(request, collection, query, form)
        trouble = next((line.fault for line in lines if line.fault), "")
        if not trouble and not any(line.is_conflict for line in lines):
            try:
                changes = changes_in(lines, query, request.choice.grader.kind)
                bank = collection.bank(request.choice.bank)
                saved = bank.save(changes, author=request.assessor, reason=reason).rows
                request.live.changed()
                return request.redirect("/bank", query=query, saved=len(saved))
            except EditConflict:
                # someone else saved first: the lines show the conflict
                lines = typed_lines(request, collection, query, form)
            except InputError as error:
                trouble = str(error)
        return _bank_page(request, collection, query, lines, trouble=trouble, reason=reason)


@router.post("/bank/dismiss")
def dismiss(request: CurrentRequest, query: str, form: BankForm) -> Response:
    """Dismiss a finding of an item; other edits stay in the form."""
    key, _, rule = _first(form, "dismiss", "").partition(":")
    fields, trouble = dict(form), ""
    with request.open() as collection:
        bank = collection.bank(request.choice.bank)
        state = next((one for one in bank.items(query) if str(one.key) == key), None)
        if state is None:
            trouble = "the item of the finding is not in the bank"
        else:
            try:
                bank.edit(
                    "dismiss",
                    state.item_id,
                    rule,
                    query_id=query,
                    kind=state.kind,
                    author=request.assessor,
                )
                request.live.changed()
            except InputError as error:
                trouble = str(error)
        now = {str(one.key): one.edit for one in bank.items(query)}
        if state is not None and _first(form, f"seen-{key}", "") == str(state.edit):
            # the dismissal does not conflict with edits by the same person
            fields[f"seen-{key}"] = [str(now[key])]
        lines = typed_lines(request, collection, query, fields)
        return _bank_page(request, collection, query, lines, trouble=trouble)


def _bank_page(
    request: PageRequest,
    collection: Collection,
    query_id: str,
    lines: Sequence[FormLine],
    *,
    saved: int = 0,
    trouble: str = "",
    reason: str = "",
) -> HTMLResponse:
    grades = current_query(request, collection, query_id)
    coverage = item_coverage(grades, request.min_rating)
    status = HTTPStatus.BAD_REQUEST if trouble else HTTPStatus.OK
    if any(line.is_conflict for line in lines):
        status = HTTPStatus.CONFLICT
    return request.render(
        "bank.html",
        status,
        query_id=query_id,
        query_text=request.snapshot.texts.get(query_id, ""),
        lines=lines,
        subtopics=list(
            dict.fromkeys(line.subtopic_id for line in lines if line.state and line.subtopic_id)
        ),
        coverage=dict(zip(grades.item_ids, coverage, strict=True)),
        findings=find_faults(request, query_id, lines),
        saved=saved,
        trouble=trouble,
        reason=reason,
        why=RULES,
    )
