"""The bank of a query as a form: what was typed, and which edits that makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from exampp.errors import InputError
from exampp.formats.fields import check_weight, real
from exampp.items.edits import changes_of
from exampp.store.bank import ItemChange, ItemState

_NUMBER = re.compile("[0-9]{1,18}")

Fields = Mapping[str, Sequence[str]]
"""A form as it arrives: all values of each field."""


@dataclass(frozen=True, slots=True)
class FormLine:
    """One item as it stands in the form.

    `state` is the item as it is now, None for a new one; `seen` the number of its last edit when
    the form was made. `fault` says what is wrong with what was typed.
    """

    state: ItemState | None
    text: str
    weight: str
    retired: bool
    subtopic_id: str | None = None
    seen: int = 0
    fault: str = ""

    @property
    def key(self) -> int:
        """What its fields are called by."""
        return (self.state.key or 0) if self.state else 0

    @property
    def after(self) -> ItemState | None:
        """The item as it is to become; None where the line makes no change, or is wrong."""
        if self.state is None or self.fault:
            return None
        after = replace(
            self.state,
            text=self.state.text if same_text(self.text, self.state.text) else self.text,
            weight=float(self.weight),
            active=not self.retired,
        )
        return None if after == self.state else after


Seen = Callable[[ItemState, int], ItemState | None]
"""An item as it was after one of its edits, from what it is now and the number of the edit."""


def untyped(states: Iterable[ItemState]) -> list[FormLine]:
    """The form before anybody typed anything."""
    return [
        FormLine(one, one.text or "", shown_weight(one), not one.active, one.subtopic_id, one.edit)
        for one in states
    ]


def typed(states: Iterable[ItemState], fields: Fields, seen_as: Seen) -> list[FormLine]:
    """The form as it was typed, on the bank as it is now; new items come last.

    What was not touched stands as it is now, and so do items that the form does not know of.
    """
    return [*(_typed(line, fields, seen_as) for line in untyped(states)), *_new(fields)]


def _typed(line: FormLine, fields: Fields, seen_as: Seen) -> FormLine:
    state, key = line.state, line.key
    said = _first(fields, f"seen-{key}", "")
    if state is None or not _NUMBER.fullmatch(said):
        return line
    seen = int(said)
    base = state if seen >= state.edit else seen_as(state, seen) or state
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
    return replace(merged, fault="" if merged == replace(line, seen=seen) else _fault(merged))


def shown_weight(state: ItemState) -> str:
    """The weight of an item as its field shows it, with as many digits as it has."""
    brief = f"{state.weight:g}"
    return brief if float(brief) == state.weight else repr(state.weight)


def _first(fields: Fields, name: str, default: str) -> str:
    return next(iter(fields.get(name, ())), default)


def _new(fields: Fields) -> Iterator[FormLine]:
    names = ("new-text", "new-weight", "new-subtopic")
    columns = (fields.get(name, ()) for name in names)
    for text, weight, subtopic in zip_longest(*columns, fillvalue=""):
        line = FormLine(None, text, weight.strip() or "1", False, subtopic or None)
        if text.strip():
            yield replace(line, fault=_fault(line))


def _fault(line: FormLine) -> str:
    if not line.text.strip():
        return "the text is empty; retire the item instead"
    try:
        check_weight(real(line.weight, "weight"))
    except InputError as error:
        return error.what
    return ""


def same_text(typed_text: str, text: str | None) -> bool:
    """Whether a text came back from a form as it was put in: browsers rewrite line breaks."""
    return _as_shown(typed_text) == _as_shown(text or "")


def _as_shown(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def edits(lines: Iterable[FormLine], query_id: str, kind: str) -> Iterator[ItemChange]:
    """Yield the changes that lead from the bank to what was typed, in the order of the form.

    `before` is the item as it was when the form was made. Lines that are wrong make no change.
    """
    for line in lines:
        if line.fault:
            continue
        if line.state is None:
            weight = float(line.weight)
            new = ItemState(query_id, "", line.text, kind, line.subtopic_id, (), weight)
            yield ItemChange("add", None, new)
        elif line.after is not None:
            yield from changes_of(replace(line.state, edit=line.seen), line.after)


def conflicts(lines: Sequence[FormLine]) -> list[FormLine]:
    """The lines that would change an item which someone else edited since the form was made."""
    return [
        line
        for line in lines
        if line.state is not None and line.after is not None and line.state.edit > line.seen
    ]


def subtopics_of(states: Iterable[ItemState]) -> tuple[str, ...]:
    """The subtopics that items of a query belong to, in order."""
    return tuple(dict.fromkeys(one.subtopic_id for one in states if one.subtopic_id))
