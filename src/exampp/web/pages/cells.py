"""One cell as people see it: the passage, what the grader said, who returned it, who decided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.errors import InputError
from exampp.records.bank import Item
from exampp.records.decisions import Decision, disputed, effective, standing
from exampp.records.dossier import Cell, Dossier
from exampp.records.gradebook import MISSING
from exampp.records.grading import Grade, GraderIdentity
from exampp.web.passages import Shown, show
from exampp.web.rendering import shade


class CellIds(NamedTuple):
    """A cell by the ids of its query, item and passage."""

    query_id: str
    item_id: str
    passage_id: str

    @property
    def packed(self) -> str:
        """The ids as one value of a form: forms would change a line break in an id."""
        return json.dumps(self)

    @classmethod
    def unpacked(cls, text: str) -> CellIds:
        """The cell that `packed` stands for; InputError where it is none."""
        try:
            ids = json.loads(text)
            json.dumps(ids, ensure_ascii=False).encode()  # half a character is no text
        except (ValueError, RecursionError):
            ids = None
        if not (isinstance(ids, list) and len(ids) == 3 and all(isinstance(i, str) for i in ids)):
            raise InputError("that is no cell", field="cell")
        return cls(*ids)


class RatingMark(NamedTuple):
    """A rating that a person may give: its key and shade, how it is shown, what it means."""

    rating: int
    key: str
    level: int
    shown: str
    meaning: str


_MEANINGS = (
    "not at all",
    "minimally",
    "to a limited extent",
    "partially",
    "mostly",
    "completely",
)
"""What the ratings 0 to 5 mean. Source: the self-rating prompts (Workbench, Table 2)."""


def marks(grader: GraderIdentity) -> tuple[RatingMark, ...]:
    """The ratings of a grader's scale: `y` and `n` for verdicts, digits for grades."""
    if grader.highest <= 1:
        return (RatingMark(0, "n", 0, "no", ""), RatingMark(1, "y", 5, "yes", ""))
    meanings = _MEANINGS if (grader.lowest, grader.highest) == (0, 5) else ()
    return tuple(
        RatingMark(
            rating,
            str(rating) if 0 <= rating <= 9 else "",
            shade(rating, grader.lowest, grader.highest),
            str(rating),
            meanings[rating] if meanings else "",
        )
        for rating in range(grader.lowest, grader.highest + 1)
    )


class SystemRank(NamedTuple):
    """A system that returned the passage, and at which rank."""

    system: str
    rank: int


class Opinion(NamedTuple):
    """What one assessor thinks of a cell at present, or what an adjudicator settled."""

    decision: Decision
    level: int


@dataclass(frozen=True, slots=True)
class CellPanel:
    """Everything a person looks at to decide about one cell.

    `hidden` says that the grade is withheld because the person decides blind; `grade`, `returned`,
    `relevance` and what others think are then absent, whatever is known of them.
    """

    place: CellIds
    query_text: str
    item: Item
    number: int
    shown: Shown | None
    hidden: bool
    grade: Grade | None
    level: int | None
    rating: int | None
    relevance: int | None
    returned: tuple[SystemRank, ...]
    decisions: tuple[Decision, ...]
    opinions: tuple[Opinion, ...]
    standing: Decision | None
    own: Decision | None
    disputed: bool
    versions: tuple[int, int] | None
    marks: tuple[RatingMark, ...]


def cell_of(dossier: Dossier, item_id: str | None, passage_id: str) -> Cell:
    """The indices of a cell; without an item, of the passage's first. InputError where unknown."""
    passages, items = dossier.grades.passage_ids, dossier.grades.item_ids
    if passage_id not in passages:
        raise InputError("no such passage", field="passage")
    if item_id is None and items:
        return passages.index(passage_id), dossier.bank_order[0]
    if item_id not in items:
        raise InputError("no such item; it may have been retired", field="item")
    return passages.index(passage_id), items.index(item_id)


def has_decided(decisions: Sequence[Decision], author: str) -> bool:
    """Whether a person ever decided about a cell, and so has seen its grade."""
    return any(one.author == author for one in decisions)


def panel(
    dossier: Dossier, cell: Cell, author: str, *, blind: bool = False, whole: bool = False
) -> CellPanel:
    """The cell as `author` may see it: with `blind`, nothing of the grade before a decision."""
    grades, (passage, item) = dossier.grades, cell
    decisions = tuple(dossier.decisions.get(cell, ()))
    hidden = blind and not has_decided(decisions, author)
    grade = None if hidden else dossier.automatic.get(cell)
    grader, asked = dossier.grader, dossier.items[item]
    rating = None if hidden or grades.ratings[cell] == MISSING else int(grades.ratings[cell])
    judged = int(grades.judgments[:, passage].max(initial=MISSING))
    automatic = grade.rating if grade else None
    return CellPanel(
        place=CellIds(dossier.query_id, asked.item_id, grades.passage_ids[passage]),
        query_text=dossier.query_text,
        item=asked,
        number=dossier.bank_order.index(item) + 1,
        shown=show(
            dossier.texts[passage],
            grade,
            asked.text,
            extracts=grader.highest <= 1,
            # where the grader found nothing, or a person is to find it, a guess would mislead
            guesses=not hidden and automatic != grader.lowest,
            whole=whole,
        ),
        hidden=hidden,
        grade=grade,
        level=None if automatic is None else shade(automatic, grader.lowest, grader.highest),
        rating=rating,
        relevance=None if hidden or judged == MISSING else judged,
        returned=() if hidden else returned(dossier, passage),
        decisions=() if hidden else decisions,
        opinions=() if hidden else _opinions(decisions, grader),
        standing=None if hidden else effective(decisions),
        own=standing(decisions).get(author),
        disputed=not hidden and disputed(decisions),
        versions=versions(dossier, cell),
        marks=marks(grader),
    )


def versions(dossier: Dossier, cell: Cell) -> tuple[int, int] | None:
    """The texts that a person decides about; None where the grades have none in a store."""
    passage, item = cell
    if not dossier.item_versions or not dossier.passage_versions:
        return None
    version = dossier.passage_versions[passage]
    return None if version is None else (dossier.item_versions[item], version)


def returned(dossier: Dossier, passage: int) -> tuple[SystemRank, ...]:
    """The systems that returned a passage for the query or a subtopic, best rank first."""
    best: dict[str, int] = {}
    for ranking in dossier.grades.rankings:
        found = (ranking.passages == passage).nonzero()[0]
        if len(found):
            rank = int(found[0]) + 1
            best[ranking.system] = min(rank, best.get(ranking.system, rank))
    return tuple(sorted((SystemRank(*one) for one in best.items()), key=lambda one: one.rank))


def _opinions(decisions: Sequence[Decision], grader: GraderIdentity) -> tuple[Opinion, ...]:
    return tuple(
        Opinion(one, shade(one.rating, grader.lowest, grader.highest))
        for one in standing(decisions).values()
        if one.rating is not None
    )
