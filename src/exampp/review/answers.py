"""Extracted answers on which the rules for answer keys, or a model that verifies them, differ.

EXAM++, section 4.2.1, inspects such answers by hand. One row is one answer to one item; rows whose
passages are returned by most systems come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exampp.errors import InputError
from exampp.prompts import answer_text, load_grading_prompt, names, verify_answer
from exampp.records.gradebook import Cell, Dossier
from exampp.records.graders import GraderIdentity, State
from exampp.records.wording import counted, cut_text
from exampp.results.notes import note
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value, programs_only
from exampp.review.evidence import returned

Verdicts = Mapping[tuple[str, str, str], bool]
"""Verdicts of a model on extracted answers, by query, passage and item."""


class AnswerDifference(NamedTuple):
    """An answer to an item, and which rules accept it.

    `verifier` is the verdict of a model, None without one. `returned` counts how often systems
    return the passages with this answer, `decided` the cells with human decisions. `passages` are
    sorted, those without a decision first.
    """

    query_id: str
    query_text: str
    item_id: str
    question: str
    keys: tuple[str, ...]
    answer: str
    papers: bool
    guarded: bool
    verifier: bool | None
    passages: tuple[str, ...]
    returned: int
    decided: int

    @property
    def differs(self) -> bool:
        """True if one rule accepts the answer and the other does not."""
        return self.papers is not self.guarded

    @property
    def contradicted(self) -> bool:
        """True if the model disagrees with the guarded rule."""
        return self.verifier is not None and self.verifier is not self.guarded


@dataclass(frozen=True, slots=True, repr=False)
class AnswerDifferences(Result):
    """The result of `compare_answers`: counts of accepted answers, and a row per difference.

    `answers` counts the cells with an extracted answer and an answer key, `papers` and `guarded`
    those that each rule accepts, `differ` those on which the rules differ. `verified` counts the
    verdicts of the model `verifier`, `accepted` the positive ones, `contradicted` those that differ
    from the guarded rule.
    """

    grader: GraderIdentity
    verifier: str
    answers: int
    papers: int
    guarded: int
    differ: int
    verified: int
    accepted: int
    contradicted: int
    rows: tuple[AnswerDifference, ...]

    @property
    def headline(self) -> str:
        """The counts of both rules and of the verifier."""
        text = (
            f"Of {counted(self.answers, 'answer')} the papers' rule accepts {self.papers:,} and "
            f"the guarded rule {self.guarded:,}; they differ on {self.differ:,}."
        )
        if self.verifier:
            text += (
                f" {self.verifier} accepts {self.accepted:,} of {self.verified:,}; it differs "
                f"from the guarded rule on {self.contradicted:,}."
            )
        return text

    def tables(self, limit: int | None = 30, width: int | None = 60) -> dict[str, Table]:
        """Return the first `limit` differences; texts for people are cut to `width` characters."""
        shown = self.rows[:limit]
        notes = [note("draft")] if self.grader.is_draft else []
        if len(shown) < len(self.rows):
            notes.append(note("rows-shown", limit=limit, rows=len(self.rows)))

        def cut(text: str) -> str:
            return text if width is None else cut_text(text, width)

        rows: list[tuple[Value, ...]] = [
            (
                *(one.query_id, one.query_text, one.item_id, one.question, one.answer),
                " | ".join(one.keys),
                *(cut(one.question), cut(" | ".join(one.keys)), cut(one.answer)),
                *(_verdict(one.papers), _verdict(one.guarded)),
                *([_verdict(one.verifier)] if self.verifier else []),
                *(len(one.passages), one.returned, one.decided),
                *(" ".join(one.passages), self.grader.name, self.grader.key),
            )
            for one in shown
        ]
        columns = [one for one in _COLUMNS if self.verifier or one.name != "verifier"]
        return {"answers": Table.of(columns, rows, notes=notes, verdict=self.headline)}

    def records(self) -> dict[str, Table]:
        """Return a row per difference, with whole texts."""
        return self.tables(None, None)


_COLUMNS = (
    Column("query"),
    *programs_only("query text", "item", "question", "answer", "keys"),
    Column("question", readers="people"),
    Column("key", readers="people"),
    Column("answer", readers="people"),
    *(Column("papers"), Column("guarded"), Column("verifier")),
    *(Column("cells"), Column("returned"), Column("decided")),
    *programs_only("passages", "grader", "grader key"),
)


def _verdict(accepted: bool | None) -> str:
    return "" if accepted is None else "correct" if accepted else "wrong"


def compare_answers(
    dossiers: Iterable[Dossier],
    grader: GraderIdentity,
    verifier: str = "",
    verdicts: Verdicts | None = None,
) -> AnswerDifferences:
    """Compare the rules for answer keys on all extracted answers of a grader.

    `verdicts` are those of the model `verifier` on the same answers.

    Raises:
        InputError: No cell has an extracted answer and an answer key.
    """
    answers = [one for dossier in dossiers for one in _answers(dossier, verdicts or {})]
    if not answers:
        raise InputError(
            f"{grader.name} has no extracted answers to items with answer keys",
            hint="Grade items with answer keys with --prompt question-answering, or choose "
            "another --grader",
        )

    def cells(condition: Callable[[AnswerDifference], object]) -> int:
        return sum(len(one.passages) for one in answers if condition(one))

    return AnswerDifferences(
        grader,
        verifier,
        answers=sum(len(one.passages) for one in answers),
        papers=cells(lambda one: one.papers),
        guarded=cells(lambda one: one.guarded),
        differ=cells(lambda one: one.differs),
        verified=cells(lambda one: one.verifier is not None),
        accepted=cells(lambda one: one.verifier),
        contradicted=cells(lambda one: one.contradicted),
        rows=tuple(
            sorted(
                (one for one in answers if one.differs or one.contradicted),
                key=lambda one: (-one.returned, -len(one.passages), one.query_id, one.item_id),
            )
        ),
    )


def _answers(dossier: Dossier, verdicts: Verdicts) -> Iterator[AnswerDifference]:
    """Yield the distinct answers to each item."""
    rows_of: dict[tuple[int, str], list[int]] = {}
    for (row, column), answer in extracted_answers(dossier):
        rows_of.setdefault((column, answer), []).append(row)
    query_id, passage_ids = dossier.query_id, dossier.grades.passage_ids
    returns = returned(dossier.grades).counts
    for (column, answer), rows in rows_of.items():
        item = dossier.items[column]
        papers, guarded = (
            verify_answer(answer, item.answers, None, mode, item.text).correct
            for mode in ("exam", "guarded")
        )
        stated = (verdicts.get((query_id, passage_ids[row], item.item_id)) for row in rows)
        decided = [row for row in rows if (row, column) in dossier.decisions]
        yield AnswerDifference(
            *(query_id, dossier.query_text, item.item_id, item.text, item.answers, answer),
            papers,
            guarded,
            next((one for one in stated if one is not None), None),
            tuple(
                passage_ids[row]
                for row in sorted(rows, key=lambda row: (row in decided, passage_ids[row]))
            ),
            sum(int(returns[row]) for row in rows),
            len(decided),
        )


def extracted_answers(dossier: Dossier) -> Iterator[tuple[Cell, str]]:
    """Yield the answers that a grader extracted, to items with an answer key."""
    prompt = dossier.grader.prompt
    extracts = prompt in names() and load_grading_prompt(prompt).reading == "extraction"
    for cell, grade in dossier.automatic.items():
        answer = (grade.detail or {}).get("answer")
        if not isinstance(answer, str):
            answer = answer_text(grade.reply) if extracts and grade.reply else ""
        if answer and grade.state is State.GRADED and any(dossier.items[cell[1]].answers):
            yield cell, answer


def verdicts_of(dossiers: Iterable[Dossier]) -> dict[tuple[str, str, str], bool]:
    """Return the verdicts of a model that verifies answers, by query, passage and item."""
    return {
        (one.query_id, one.grades.passage_ids[row], one.grades.item_ids[column]): bool(grade.rating)
        for one in dossiers
        for (row, column), grade in one.automatic.items()
        if grade.state is State.GRADED
    }
