"""Notes on a result, each with a code, a severity and values.

A check is a function of one context that yields notes; `notes_of` runs checks and joins notes that
differ in their subject alone. Pages, tables, reports, verdicts and gates select notes by code and
severity, never by text: each sentence exists once, in `sentences.NOTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Self, TypeVar

from exampp.results.sentences import NOTES, Severity

DRAFT = "DRAFT GRADES"
"""The label of tables, figures and pages of draft grades."""
_LABEL = f"{DRAFT}: "
_SUBJECT = "\0"
"""Placeholder of the subject, so that notes of several subjects can be joined."""
_LISTED = 5
"""Names that a sentence lists before it counts the others."""


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
"""Yields the notes of a context (grades, leaderboard, settings)."""


def notes_of(
    context: Context, checks: Iterable[Check[Context]], whole: Collection[str] = ()
) -> tuple[Note, ...]:
    """Run the checks and return their notes in order, each once; see `merge_notes`."""
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


def without_code(notes: Iterable[str], *codes: str) -> Iterator[str]:
    """Select the notes without these codes."""
    return (one for one in notes if not (isinstance(one, Note) and one.code in codes))


def by_severity(notes: Iterable[str], most: int = 3) -> tuple[list[Note], list[Note]]:
    """Return the notes that people see under a table, at most three, and the others.

    Details are never among the first. Both lists keep the order of the notes.
    """
    every = [one if isinstance(one, Note) else Note(one) for one in notes]
    order = sorted(range(len(every)), key=lambda at: -every[at].severity)
    first = [at for at in order if every[at].severity > Severity.DETAIL][:most]
    return [every[at] for at in sorted(first)], [
        one for at, one in enumerate(every) if at not in first
    ]


def more_notes(notes: Collection[str]) -> str:
    """Return "2 more notes"."""
    return f"{len(notes)} more {'note' if len(notes) == 1 else 'notes'}"


def labelled(text: str, *, draft: bool) -> str:
    """Return a caption, title or name, prefixed with the label if it is about draft grades."""
    return f"{_LABEL}{text}" if draft else text


def without_label(text: str) -> str:
    """Return a caption, title or name without the label of draft grades."""
    return text.replace(_LABEL, "")
