"""Responses that answer, and responses that abstain, beside Cover.

The right response to an unanswerable query is to abstain, that to any other is an answer. A system
gets credit for every query: Cover if it answers an answerable one, 1 if it abstains from an
unanswerable one, else 0. An answer is right if its Cover reaches a level.

Abstention is recognised by a rule (`prompts.abstention`), or by a grader with the prompt
`abstention`. Such a grader decides by the first passage of a response.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.measures.board import describe_source
from exampp.measures.values import Mean, MeasureColumn, mean_of
from exampp.prompts.abstention import abstains
from exampp.records.gradebook import MISSING, Dossier, Gradebook, passage_kinds
from exampp.records.graders import ABSTENTION
from exampp.records.wording import counted
from exampp.results.notes import Note, note
from exampp.results.result import Result, Table
from exampp.results.view import ERROR, Column

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

LEVEL = 0.5
"""Default of the lowest Cover of a right answer."""


class ResponseOutcome(NamedTuple):
    """A response of a system: whether it should abstain, does so, and its Cover if it is known."""

    system: str
    query_id: str
    is_unanswerable: bool
    abstains: bool
    cover: float | None
    credit: float | None

    @property
    def is_wrong(self) -> bool:
        """Return whether it abstains from an answerable query, or answers an unanswerable one."""
        return self.is_unanswerable != self.abstains


class AbstentionRow(NamedTuple):
    """A system: numbers of responses by outcome, and the mean credit of its queries.

    `unknown` are answers without a Cover, `missing` the queries without a response.
    """

    system: str
    credit: Mean
    right: int
    poor: int
    unknown: int
    abstained: int
    wrongly_abstained: int
    wrongly_answered: int
    missing: int


@dataclass(frozen=True, slots=True, repr=False)
class Abstention(Result):
    """Systems by their credit, best first, and every response.

    `source` describes the grades, `measure` is the column of Cover; `by` names the grader that
    recognised abstentions, "" for the rule; `unanswerable` and `queries` count queries.
    """

    rows: tuple[AbstentionRow, ...]
    responses: tuple[ResponseOutcome, ...]
    source: str
    measure: str
    level: float
    by: str
    unanswerable: int
    queries: int
    notes: tuple[str, ...]
    draft: bool = False

    @property
    def headline(self) -> str:
        """Describe how the best system treats answerable and unanswerable queries."""
        best = next(iter(self.rows), None)
        if best is None:
            return "No system has responses."
        abstains = (
            f"abstains from {best.abstained} of {counted(self.unanswerable, 'unanswerable query')}"
        )
        answerable = self.queries - self.unanswerable
        if not answerable:
            return f"{best.system} {abstains}."
        kind = "answerable query" if self.unanswerable else "query"
        sentence = f"{best.system} answers {best.right} of {counted(answerable, kind)} rightly"
        if best.wrongly_abstained:
            sentence += f" and abstains from {best.wrongly_abstained}"
        return sentence + f"; it {abstains}" * bool(self.unanswerable) + "."

    def plot(self) -> Figure:
        """Plot the shares of right and wrong responses of each system."""
        from exampp.results.plots.distributions import OUTCOMES, outcome_shares

        return outcome_shares(
            {
                one.system: dict(
                    zip(
                        OUTCOMES,
                        (
                            *(one.right, one.abstained, one.poor),
                            *(one.wrongly_abstained, one.wrongly_answered),
                        ),
                        strict=True,
                    )
                )
                for one in self.rows
            },
            self.queries,
            f"Highest credit first; answered rightly: {self.measure} of at least {self.level:g}",
            draft=self.draft,
        )

    def tables(self) -> dict[str, Table]:
        """Return a row per system."""
        counts = [
            Column("answered rightly", key="right"),
            Column("answered poorly", key="poor"),
            *([Column("not graded", key="unknown")] if any(r.unknown for r in self.rows) else []),
            Column("abstained rightly", key="abstained"),
            Column("abstained wrongly", key="wrongly_abstained"),
            Column("answered wrongly", key="wrongly_answered"),
            *([Column("no response", key="missing")] if any(r.missing for r in self.rows) else []),
        ]
        first = [Column("system"), Column("credit", 3), Column(ERROR, key="credit_stderr")]
        rows = [
            (one.system, *one.credit[:2], *(getattr(one, count.key) for count in counts))
            for one in self.rows
        ]
        caption = f"{self.source}; answers and abstentions, beside {self.measure}"
        table = Table.of([*first, *counts], rows, caption, self.notes, verdict=self.headline)
        return {"abstention": table}

    def records(self) -> dict[str, Table]:
        """Return the same table, and a row per response."""
        return {**self.tables(), "responses": Table.of(ResponseOutcome._fields, self.responses)}


def find_abstention(
    book: Gradebook,
    column: MeasureColumn,
    dossiers: Iterable[Dossier],
    marks: Mapping[str, bool],
    graders: Mapping[str, Gradebook],
    *,
    level: float = LEVEL,
    by: str | None = None,
) -> Abstention:
    """Count how systems of answers treat answerable and unanswerable queries.

    Args:
        book: The gradebook.
        column: Cover of all systems.
        dossiers: The queries with their texts.
        marks: Whether a query is unanswerable, by id; others are answerable.
        graders: Gradebooks of graders with the prompt `abstention`, by name.
        level: Lowest Cover of a right answer.
        by: The name of one of them, or "rule"; by default the first one, else the rule.

    Raises:
        InputError: No system has answers, the grader is unknown, or the level is not between 0 and
            1.
    """
    if by not in (None, "rule", *graders):
        hint = (
            f"Use rule{''.join(f', {one}' for one in graders)}, or grade with --prompt {ABSTENTION}"
        )
        raise InputError(f"{by!r} is not a grader of abstention", hint=hint)
    by = next(iter(graders), "") if by is None else "" if by == "rule" else by
    judged = _verdicts(graders[by]) if by else {}
    if not 0 < level <= 1:
        raise InputError(f"the level {level:g} is not above 0 and at most 1")
    systems = [name for name, kind in passage_kinds(book).items() if kind == "answers"]
    if not systems:
        raise InputError(
            "no system has answers, only passages", hint="Import responses: exampp import"
        )
    cover = {
        (system, query_id): float(value)
        for system, values, counts in zip(
            book.systems, column.values.values, column.values.counts, strict=True
        )
        for query_id, value, count in zip(column.query_ids, values, counts, strict=True)
        if count
    }
    responses: list[ResponseOutcome] = []
    missing: dict[tuple[str, str], None] = {}
    by_rule = 0
    for dossier in dossiers:
        query_id = dossier.query_id
        for system, passages in _responses(dossier, systems):
            if not passages:
                missing[system, query_id] = None
                continue
            said = judged.get((query_id, dossier.grades.passage_ids[passages[0]]))
            by_rule += bool(by) and said is None
            text = "\n".join(one.text for at in passages if (one := dossier.texts[at]))
            responses.append(
                _outcome(
                    (system, query_id),
                    marks.get(query_id, False),
                    abstains(text) if said is None else said,
                    cover.get((system, query_id)),
                )
            )
    queries = {one.query_id for one in responses} | {query_id for _, query_id in missing}
    rows = [_row(system, responses, missing, marks, cover, level) for system in systems]
    rows.sort(key=lambda one: (-(one.credit.mean or 0.0), one.system))
    unanswerable = sum(marks.get(one, False) for one in queries)
    notes = _notes(column.name, level, by, by_rule, unanswerable)
    return Abstention(
        tuple(rows),
        tuple(responses),
        describe_source(book.grader, book.bank_label, book.oversight),
        column.name,
        level,
        by,
        unanswerable,
        len(queries),
        tuple(notes),
        book.grader.is_draft,
    )


def _verdicts(book: Gradebook) -> dict[tuple[str, str], bool]:
    """Return whether passages abstain, by query and passage, for those with a grade."""
    return {
        (query.query_id, passage_id): rating > 0
        for query in book.queries
        for passage_id, rating in zip(
            query.passage_ids, query.ratings.max(axis=1, initial=MISSING).tolist(), strict=True
        )
        if rating != MISSING
    }


def _responses(dossier: Dossier, systems: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the passages of the response of each system, in order."""
    of = {one.system: one.passages for one in dossier.grades.rankings if not one.subtopic}
    for system in systems:
        passages = of.get(system, np.empty(0, np.int32)).tolist()
        yield system, [at for at in passages if dossier.texts[at] is not None]


def _outcome(
    place: tuple[str, str], is_unanswerable: bool, does: bool, cover: float | None
) -> ResponseOutcome:
    credit = float(does) if is_unanswerable else 0.0 if does else cover
    return ResponseOutcome(*place, is_unanswerable, does, cover, credit)


def _row(
    system: str,
    responses: Sequence[ResponseOutcome],
    missing: Iterable[tuple[str, str]],
    marks: Mapping[str, bool],
    cover: Mapping[tuple[str, str], float],
    level: float,
) -> AbstentionRow:
    own = [one for one in responses if one.system == system]
    absent = [query_id for name, query_id in missing if name == system]
    # a query without a response counts 0 where it counts for Cover, or should get an abstention
    zeros = [0.0 for one in absent if marks.get(one) or (system, one) in cover]
    values = [one.credit for one in own if one.credit is not None]
    answers = [one for one in own if not (one.is_unanswerable or one.abstains)]
    graded = [one.cover >= level for one in answers if one.cover is not None]
    return AbstentionRow(
        system=system,
        credit=mean_of(np.array([*values, *zeros], np.float64)),
        right=sum(graded),
        poor=len(graded) - sum(graded),
        unknown=len(answers) - len(graded),
        abstained=sum(one.is_unanswerable and one.abstains for one in own),
        wrongly_abstained=sum(one.abstains and not one.is_unanswerable for one in own),
        wrongly_answered=sum(one.is_unanswerable and not one.abstains for one in own),
        missing=len(absent),
    )


def _notes(measure: str, level: float, by: str, by_rule: int, unanswerable: int) -> Iterator[Note]:
    if not unanswerable:
        yield note("no-unanswerable")
    if by:
        yield note("abstention-grader", grader=by)
        if by_rule:
            yield note("abstention-ungraded", responses=counted(by_rule, "response"))
    else:
        yield note("abstention-rule", prompt=ABSTENTION)
    yield note("abstention-credit", measure=measure, level=f"{level:g}")
