"""What people decided, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from exampp.records.decisions import CellDecision, Decision
from exampp.results.result import Table
from exampp.results.view import Column, Value
from exampp.review.assessor_agreement import EVERYBODY, AssessorAgreement, PersonComparison
from exampp.stats.estimate import Estimate


class DisputeLike(Protocol):
    """A cell on which assessors differ."""

    @property
    def query_id(self) -> str:
        """Its query."""

    @property
    def item_id(self) -> str:
        """Its item."""

    @property
    def passage_id(self) -> str:
        """Its passage."""

    @property
    def item(self) -> str:
        """What the item says."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Those that stand."""


def decisions_table(decided: Iterable[CellDecision]) -> Table:
    """A row per decision, in the order given."""
    rows: list[tuple[Value, ...]] = [
        (
            one.decision.number,
            one.decision.at,
            one.decision.author,
            one.query_id,
            one.item_id,
            one.item,
            one.passage_id,
            "withdrawn" if one.decision.rating is None else one.decision.rating,
            how(one),
            one.decision.reason,
        )
        for one in decided
    ]
    heads = ["decision", "at", "author", "query", "item", "item text", "passage", "rating", "how"]
    return Table.of([*heads, "reason"], rows)


def how(one: CellDecision) -> str:
    """What else there is to say of a decision, in words."""
    said = {
        "blind": one.decision.blind,
        "adjudicates": one.decision.adjudicates,
        "yes or no": one.verdict,
        "of an earlier text": not one.is_current,
    }
    return ", ".join(word for word, holds in said.items() if holds)


def disputes_table(disputes: Sequence[DisputeLike], limit: int | None = None) -> Table:
    """A row per cell on which assessors differ, the first `limit` of them: who says what."""
    rows: list[tuple[Value, ...]] = [
        (
            one.query_id,
            one.item_id,
            one.item,
            one.passage_id,
            "; ".join(_saying(decision) for decision in one.decisions),
        )
        for one in disputes[:limit]
    ]
    notes = [] if rows else ["assessors differ nowhere, or somebody adjudicated"]
    if len(rows) < len(disputes):
        notes.append(f"the first {len(rows)} of {len(disputes)} disputes are shown")
    return Table.of(["query", "item", "item text", "passage", "who says what"], rows, notes=notes)


def _saying(decision: Decision) -> str:
    reason = f" ({decision.reason})" if decision.reason else ""
    return f"{decision.author}: {decision.rating}{reason}"


def agreement_table(found: AssessorAgreement) -> Table:
    """A row per assessor beside the grader, then per two assessors; the notes have the alphas."""
    groups = (("", found.with_grader), ("blind", found.blind), ("", found.between))
    compared = [(decided, one) for decided, group in groups for one in group]
    rows = [
        (one.person, one.other, decided, one.cells, *(value.value for _, value in _values(one)))
        for decided, one in compared
    ]
    heads = ["assessor", "beside", "decided", "cells"]
    heads += ["same", "kappa", "linear kappa", "same answer", "answer kappa"]
    reasons = {
        f"{name} is undefined ({one.person} beside {one.other}): {value.reason}": None
        for _, one in compared
        for name, value in _values(one)
        if value.value is None
    }
    return Table.of(heads, rows, notes=[*_notes(found), *reasons])


def _values(one: PersonComparison) -> list[tuple[str, Estimate]]:
    return [
        ("same", one.same),
        ("kappa", one.kappa),
        ("linear kappa", one.linear_kappa),
        ("same answer", one.same_answer),
        ("answer kappa", one.answer_kappa),
    ]


def _notes(found: AssessorAgreement) -> Iterator[str]:
    yield f"{found.decided} cells were decided; an answer is a rating of {found.min_rating} or more"
    if found.ungraded:
        yield f"{found.ungraded} of them have no grade by {found.grader.name}"
    if found.between:
        for name, value in (("alpha", found.alpha), ("ordinal alpha", found.ordinal_alpha)):
            said = f"undefined: {value.reason}" if value.value is None else f"{value.value:.3f}"
            yield f"Krippendorff's {name} of all assessors: {said}"


def confusion_table(one: PersonComparison, scale: Sequence[int]) -> Table:
    """How often each rating of the person met each rating of the other."""
    rows = [(rating, *map(int, line)) for rating, line in zip(scale, one.counts, strict=True)]
    group = f"{one.other} says"
    columns = [Column(f"{one.person} says"), *(Column(str(r), group=group) for r in scale)]
    return Table.of(columns, rows)


def everybody(found: AssessorAgreement) -> PersonComparison:
    """All assessors together beside the grader."""
    return next(one for one in found.with_grader if one.person == EVERYBODY)
