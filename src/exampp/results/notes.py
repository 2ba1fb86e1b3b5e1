"""Notes on a result, each with a code, a severity and values.

A check is a function of one context that yields notes; `notes_of` runs checks and joins notes that
differ in their subject alone. Pages, tables, reports, verdicts and gates select notes by code and
severity, never by text: each sentence exists once, in `NOTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import Self, TypeVar

DRAFT = "DRAFT GRADES"
"""The label of tables, figures and pages of draft grades."""
_SUBJECT = "\0"
"""Stands in a sentence for what it is about, so that notes of several subjects can be joined."""
_LISTED = 5
"""Names that a sentence lists before it counts the others."""


class Severity(IntEnum):
    """The degree to which a note changes the meaning of a result."""

    DETAIL = 1
    """Good to know: how something was computed."""
    NOTE = 2
    """Changes how the numbers are read."""
    WARNING = 3
    """Must not be overlooked: the numbers may mislead."""


class Note(str):
    """A sentence with its code, severity, values and the subjects that it names.

    It is a `str` subclass. Create notes with `note`.
    """

    code: str
    severity: Severity
    subjects: tuple[str, ...]
    values: Mapping[str, object]
    sentence: str

    def __new__(
        cls,
        sentence: str,
        code: str = "",
        severity: Severity = Severity.NOTE,
        subjects: Iterable[str] = (),
        values: Mapping[str, object] | None = None,
    ) -> Self:
        """Create the note of a sentence, in which `_SUBJECT` stands for the subjects."""
        named = tuple(subjects)
        note = super().__new__(cls, sentence.replace(_SUBJECT, ", ".join(named)))
        note.code, note.severity, note.subjects = code, severity, named
        note.values, note.sentence = values or {}, sentence
        return note

    def of(self, subjects: Iterable[str]) -> Note:
        """Return the same note for other subjects."""
        return Note(self.sentence, self.code, self.severity, subjects, self.values)

    def unnamed(self) -> Note:
        """Return the note without its leading subjects."""
        rest = self.sentence.removeprefix(f"{_SUBJECT}: ")
        return Note(rest, self.code, self.severity, self.subjects, self.values)


def note(code: str, *subjects: str, **values: object) -> Note:
    """Return the note of a code; lists among the values are shortened to five entries.

    Raises:
        KeyError: The code is unknown, or a value of its sentence is missing.
    """
    severity, template = NOTES[code]
    shown = {name: listed(v) if isinstance(v, list | tuple) else v for name, v in values.items()}
    sentence = template.format(subject=_SUBJECT, **shown)
    return Note(sentence, code, severity, subjects, values)


def about(subject: str, text: str) -> Note:
    """Return a note that begins with its subject: a method, a part, a grader."""
    one = text if isinstance(text, Note) else Note(text)
    return Note(f"{_SUBJECT}: {one}", one.code, one.severity, (subject,), one.values)


def listed(names: Collection[object]) -> str:
    """Return "a, b and 3 more"."""
    first = ", ".join(str(name) for name, _ in zip(names, range(_LISTED), strict=False))
    return f"{first} and {len(names) - _LISTED} more" if len(names) > _LISTED else first


Context = TypeVar("Context")
Check = Callable[[Context], Iterable[str]]
"""Looks at a context (grades, leaderboard, settings) and yields what is to be noted."""


def notes_of(
    context: Context, checks: Iterable[Check[Context]], whole: Collection[str] = ()
) -> tuple[Note, ...]:
    """Run the checks and return their notes in order, each once; see `joined`."""
    return merge_notes(chain.from_iterable(check(context) for check in checks), whole)


def merge_notes(notes: Iterable[str], whole: Collection[str] = ()) -> tuple[Note, ...]:
    """Merge notes: keep the order, drop duplicates, join notes that differ only in subject.

    `whole` lists all subjects; a sentence that applies to all of them is written without a subject.
    """
    merged: dict[str, Note] = {}
    for text in notes:
        one = text if isinstance(text, Note) else Note(text)
        known = merged.get(one.sentence)
        merged[one.sentence] = (
            one
            if known is None
            else one.of({**dict.fromkeys(known.subjects), **dict.fromkeys(one.subjects)})
        )
    return tuple(
        one.unnamed() if one.subjects and set(one.subjects) == set(whole) else one
        for one in merged.values()
    )


def with_code(notes: Iterable[str], *codes: str) -> Iterator[Note]:
    """Select the notes of some codes."""
    return (one for one in notes if isinstance(one, Note) and one.code in codes)


def most_severe(notes: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the most severe notes, shown under a table, and the number of the others."""
    every = [one if isinstance(one, Note) else Note(one) for one in notes]
    shown = sorted(every, key=lambda one: -one.severity)[:most]
    rest = len(every) - len(shown)
    more = f"{rest} more {'note' if rest == 1 else 'notes'}: --notes"
    return (*(one for one in every if one in shown), *([more] * bool(rest)))


def labelled(text: str, *, draft: bool) -> str:
    """Return a caption or title, prefixed with "draft" if it is about draft grades."""
    return f"{DRAFT}: {text}" if draft else text


# ---- the sentences -----------------------------------------------------------------------------

_D, _N, _W = Severity.DETAIL, Severity.NOTE, Severity.WARNING
NOTES: Mapping[str, tuple[Severity, str]] = {
    # grades
    "draft": (_W, "These are draft grades: good for trying things out, not for conclusions."),
    "grade-readings": (_D, "{text}"),
    "bank-inferred": (
        _W,
        "No bank given; using the items found in the grades, so Cover may be overestimated.",
    ),
    "cells-ungraded": (_N, "Cells without a grade in the whole collection: {states}."),
    "prerequisite": (_W, "{cause}."),
    # leaderboards: queries
    "policy": (_N, "{family} follow the policy {policy}."),
    "subtopics-joined": (
        _D,
        "For Cover, all rankings of a system for a query and its subtopics are joined.",
    ),
    "subtopics-separate": (_D, "For other measures each subtopic is a separate query."),
    "subtopics-averaged": (
        _D,
        "Cover is the mean over the subtopics of a query, then over queries; for other measures "
        "each subtopic is a separate query.",
    ),
    "subtopics-pooled": (
        _D,
        "The subtopic rankings of a system are interleaved into one ranking per query.",
    ),
    "queries-without-items": (_N, "Left out of {family}, having no items: {queries}."),
    "queries-without-labels": (
        _N,
        "Left out of the ranking measures, having no graded passage: {queries}.",
    ),
    "one-query": (_W, "{subject}: Only one query counts, so there is no standard error."),
    "unanswered-by-all": (_N, "{subject}: No system answers {queries}: {fate}."),
    "unanswered": (_N, "{subject}: Queries {what} are {fate}: {systems}."),
    # leaderboards: Cover and nuggets
    "cover-ungraded": (
        _N,
        "Up to {worst} of the cells that {subject} reads have no grade: {fate}.",
    ),
    "cover-bounds": (
        _N,
        "More than 1% of the cells that decide {subject} have no grade: brackets show the lowest "
        "and highest possible score (retry with exampp grade).",
    ),
    "ncover-undefined": (
        _N,
        "Left out of {subject}, as no graded passage covers anything: {queries}.",
    ),
    "cover-skipped": (_N, "{subject} leaves out queries without a graded cell: {systems}."),
    "importance-invalid": (
        _N,
        "Importances other than vital and okay are invalid, and such nuggets count in NuggetAll "
        "alone: {words}.",
    ),
    "importance-missing": (
        _W,
        "The bank does not say which items are vital or okay, so {measures} have no value. Import "
        "a bank that does: nuggetizer's, or one with a column importance.",
    ),
    "nuggets-undefined": (
        _N,
        "Left out of {subject}, as none of their nuggets is {counted}: {queries}.",
    ),
    "chance": (_N, "Chance level of {measure}: {drawn} score {values}{average}."),
    # verdicts
    "no-signal": (_W, "Every grade is {rating}: the grader tells nothing apart."),
    "few-queries": (
        _W,
        "Only {counts}: differences between systems are uncertain. {usual} queries are a usual "
        "minimum, 50 are better.",
    ),
    "one-family": (
        _W,
        "By their names, the grader {model} and {count} belong to one family of models "
        "({families}): {systems}. Models tend to favour texts of their own kind.",
    ),
    "own-bank": (_W, "{text}"),
    "few-systems": (
        _W,
        "Rank correlations rest on {systems}: with fewer than {least} they say little.",
    ),
    # leaderboards: ranking measures
    "passages-ungraded": (_N, "Up to {worst} of the passages that {subject} reads have no grade."),
    "labels-ungraded": (
        _N,
        "{share:.1%} of the cells of ranked passages have no grade, so labels of passages and "
        "{subject} may be wrong, mostly too low. No bounds are known.",
    ),
    "no-relevant": (
        _N,
        "{count} of {queries} queries have no relevant passage and count 0 for every system: "
        "{measures}.",
    ),
    "no-relevant-from": (
        _N,
        "From rating {subject} on, {count} of {queries} queries have no relevant passage and count "
        "0 for every system: {measures}.",
    ),
    "weights-ignored": (_D, "All items count alike, without the weights of the bank: {measures}."),
    "ranks-contradict": (
        _N,
        "{count} rankings have scores that contradict their ranks: ranking measures follow the "
        "scores, as trec_eval does; Cover follows the ranks.",
    ),
}
"""Every note: how severe it is, and its sentence; `{subject}` lists what it is about."""
