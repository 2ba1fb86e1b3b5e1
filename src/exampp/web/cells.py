"""Cells as shown to people: the passage, the grade, the systems, the decisions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.records.decisions import Decision, disputed, effective_decision, standing_decisions
from exampp.records.gradebook import MISSING, Cell, Dossier, PassageText
from exampp.records.graders import Grade, State
from exampp.records.items import Item
from exampp.review.evidence import returned_by
from exampp.review.quotes import quote_of
from exampp.store.read_model import CellTexts, read_texts
from exampp.web.page_request import PageRequest
from exampp.web.rendering import ELLIPSIS, rating_shade

SHOWN = 6_000
"""Characters of a passage shown at first."""
_BEFORE = 800
"""Characters shown before a marked span."""
_VERSIONS = re.compile("([0-9]{1,18}),([0-9]{1,18})")
_MEANINGS = (
    *("not at all", "minimally", "to a limited extent", "partially", "mostly", "completely"),
)
"""The meaning of ratings 0 to 5. Source: the self-rating prompts (Workbench, Table 2)."""


# ---- passages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PassageExcerpt:
    """The parts of a passage: before, in and after the marked span.

    `hidden` counts the omitted characters; `why` describes the span ("" if there is none). A
    `guess` is the closest sentence, not the answer that the grader extracted.
    """

    title: str
    before: str
    marked: str
    after: str
    hidden: int = 0
    why: str = ""
    guess: bool = False


def passage_excerpt(
    passage: PassageText | None,
    grade: Grade | None = None,
    item_text: str = "",
    *,
    extracts: bool = False,
    guesses: bool = True,
    whole: bool = False,
) -> PassageExcerpt | None:
    """Mark the relevant part of a passage; None if the passage has no text.

    The mark is the answer that the grader extracted or, without one, the sentence closest to the
    item, if `guesses` is true. With `extracts` the reply counts as the answer if no other is known.
    Long passages are cut around the mark, unless `whole`.
    """
    if passage is None:
        return None
    (start, end), why, guess = quote_of(passage, grade, item_text, extracts=extracts)
    if guess and not guesses:
        (start, end), why, guess = (0, 0), "", False
    text = passage.text
    first = 0 if whole or end <= SHOWN else max(0, start - _BEFORE)
    last = len(text) if whole else first + SHOWN
    return PassageExcerpt(
        passage.title,
        (f"{ELLIPSIS} " if first else "") + text[first:start],
        text[start : min(end, max(last, start))],
        text[max(end, first) : last],
        hidden=first + max(0, len(text) - last),
        why=why,
        guess=guess,
    )


def shorten_excerpt(excerpt: PassageExcerpt, length: int) -> PassageExcerpt:
    """Return `length` characters around the mark, or from the start if nothing is marked."""
    marked = excerpt.marked[:length]
    rest = max(0, length - len(excerpt.marked))
    before, half = excerpt.before, rest // 2
    if len(before) > half:
        before = f"{ELLIPSIS} " + before[len(before) - half :]
    after = excerpt.after[: rest - min(len(before), half)]
    cut = len(after) < len(excerpt.after) or len(marked) < len(excerpt.marked)
    after += ELLIPSIS * cut
    return replace(excerpt, before=before, marked=marked, after=after, hidden=0)


# ---- cells ---------------------------------------------------------------------------------------


class CellIds(NamedTuple):
    """The ids of a cell: query, item and passage."""

    query_id: str
    item_id: str
    passage_id: str

    @property
    def packed(self) -> str:
        """Return the ids as one form value that preserves line breaks."""
        return json.dumps(self)

    @classmethod
    def unpacked(cls, text: str) -> CellIds:
        """Parse `packed`. Raises InputError for anything else."""
        try:
            ids = json.loads(text)
            json.dumps(ids, ensure_ascii=False).encode()  # lone surrogates are not valid text
        except (ValueError, RecursionError):
            ids = None
        if not (isinstance(ids, list) and len(ids) == 3 and all(isinstance(i, str) for i in ids)):
            raise InputError("invalid cell", field="cell")
        return cls(*ids)


def parse_versions(text: str) -> tuple[int, int]:
    """Return the keys of the texts (item, passage) that a person decided on.

    InputError if invalid.
    """
    match = _VERSIONS.fullmatch(text)
    if match is None:
        raise InputError("invalid text versions", field="versions")
    return int(match[1]), int(match[2])


class RatingMark(NamedTuple):
    """A rating that a person may give: its key, shade, label and meaning."""

    rating: int
    key: str
    level: int
    shown: str
    meaning: str


def marks(lowest: int, highest: int, meanings: Sequence[str] = _MEANINGS) -> tuple[RatingMark, ...]:
    """Return the ratings of a scale, with meanings if there is one for each."""
    known = meanings if (lowest, highest) == (0, len(meanings) - 1) else ()
    return tuple(
        RatingMark(
            rating,
            str(rating) if 0 <= rating <= 9 else "",
            rating_shade(rating, lowest, highest),
            str(rating),
            known[rating] if known else "",
        )
        for rating in range(lowest, highest + 1)
    )


YES_OR_NO = (RatingMark(0, "n", 0, "no", ""), RatingMark(1, "y", 5, "yes", ""))


def marks_of(dossier: Dossier) -> tuple[RatingMark, ...]:
    """Return the ratings of a grader's scale: `y` and `n` for verdicts, digits for grades."""
    grader = dossier.grader
    return YES_OR_NO if grader.highest <= 1 else marks(grader.lowest, grader.highest)


@dataclass(frozen=True, slots=True)
class CellPanel:
    """One cell as shown to the person who decides it.

    `hidden`: the person decides blind, so `grade`, `returned`, `relevance` and the decisions of
    others are missing. `returned` has systems with their ranks, `opinions` the decisions in force
    with their shades, `versions` the keys of the two texts (None: the passage has no text).
    """

    place: CellIds
    query_text: str
    item: Item
    number: int
    shown: PassageExcerpt | None
    hidden: bool
    grade: Grade | None
    level: int | None
    relevance: int | None
    returned: Sequence[tuple[str, int]]
    decisions: Sequence[Decision]
    opinions: Sequence[tuple[Decision, int]]
    standing: Decision | None
    own: Decision | None
    versions: tuple[int, int] | None
    marks: Sequence[RatingMark]

    @property
    def is_disputed(self) -> bool:
        """Return whether assessors disagree and no adjudication is in force."""
        return disputed(self.decisions)


def read_query(
    request: PageRequest, collection: Collection, query_id: str, passage_id: str | None = None
) -> Dossier:
    """Read the current state of one query. Raises InputError for an unknown query.

    With a `passage`, replies for other cells are read only if they have decisions.
    """
    grades, ids = request.choice.of(collection), [query_id]
    for dossier in (
        grades.dossiers(ids) if passage_id is None else grades.dossiers(ids, [passage_id])
    ):
        return dossier
    raise InputError("unknown query", field="query")


def read_cells(
    grades: Grades, cells: Iterable[tuple[str, str, str]], length: int
) -> dict[tuple[str, str, str], CellTexts]:
    """Read the texts of cells (query, item, passage), cut to `length` characters per passage."""
    return dict(read_texts(grades.connection, grades.bank, grades.grader.kind, cells, length))


def visible_cells(dossier: Dossier, request: PageRequest) -> frozenset[Cell] | None:
    """Return the cells with grades that this person may see; None means all."""
    if not request.is_blind:
        return None
    decisions = dossier.decisions.items()
    return frozenset(
        cell for cell, decision in decisions if has_decided(decision, request.assessor)
    )


def has_decided(decisions: Sequence[Decision], author: str) -> bool:
    """Return whether a person has decided a cell before, and so has seen its grade."""
    return any(one.author == author for one in decisions)


def cell_of(dossier: Dossier, item_id: str | None, passage_id: str) -> Cell:
    """Return the indices of a cell; without an item, those of the first item.

    InputError for an unknown item or passage.
    """
    passages, items = dossier.grades.passage_ids, dossier.grades.item_ids
    if passage_id not in passages:
        raise InputError("unknown passage", field="passage")
    if item_id is None and items:
        return passages.index(passage_id), dossier.bank_order[0]
    if item_id not in items:
        raise InputError("unknown item; it may be retired", field="item")
    return passages.index(passage_id), items.index(item_id)


def versions_of(dossier: Dossier, cell: Cell) -> tuple[int, int] | None:
    """Return the keys of the texts of a cell; None if the store has no texts."""
    passage, item = cell
    if not dossier.item_versions or not dossier.passage_versions:
        return None
    version = dossier.passage_versions[passage]
    return None if version is None else (dossier.item_versions[item], version)


def panel(
    dossier: Dossier,
    cell: Cell,
    author: str,
    *,
    blind: bool = False,
    reveals: bool = True,
    whole: bool = False,
) -> CellPanel:
    """Return a cell as shown to `author`: with `blind`, no grade before a decision.

    Without `reveals` a blind cell shows no grade after the decision either.
    """
    (passage, item), grader = cell, dossier.grader
    of_cell = tuple(dossier.decisions.get(cell, ()))
    hidden = blind and not (reveals and has_decided(of_cell, author))
    # neither grades nor decisions of others
    grade, decisions = (None, ()) if hidden else (dossier.automatic.get(cell), of_cell)
    rating = grade.rating if grade else None
    judged = int(dossier.grades.judgments[:, passage].max(initial=MISSING))

    def level(of: int | None) -> int:
        return rating_shade(of or 0, grader.lowest, grader.highest)

    return CellPanel(
        place=CellIds(
            dossier.query_id, dossier.items[item].item_id, dossier.grades.passage_ids[passage]
        ),
        query_text=dossier.query_text,
        item=dossier.items[item],
        number=dossier.bank_order.index(item) + 1,
        shown=passage_excerpt(
            dossier.texts[passage],
            grade,
            dossier.items[item].text,
            extracts=grader.highest <= 1,
            # a guess would mislead if the grader found nothing, or before a blind decision
            guesses=not hidden and rating != grader.lowest,
            whole=whole,
        ),
        hidden=hidden,
        grade=grade,
        level=None if rating is None else level(rating),
        relevance=None if hidden or judged == MISSING else judged,
        returned=() if hidden else returned_by(dossier.grades, passage),
        decisions=decisions,
        opinions=[(one, level(one.rating)) for one in standing_decisions(decisions).values()],
        standing=effective_decision(decisions),
        own=standing_decisions(of_cell).get(author),
        versions=versions_of(dossier, cell),
        marks=marks_of(dossier),
    )


class HeatCell(NamedTuple):
    """A cell of a heat map: its text, its shade (None: no grade) and its meaning.

    `mark` is "decided" or "disputed" if people decided.
    """

    text: str
    level: int | None
    mark: str = ""
    meaning: str = ""


_UNGRADED = {
    State.UNPARSED: ("?", "unreadable reply"),
    State.REFUSED: ("\N{HEAVY BALLOT X}", "the grader refused"),
    State.TRUNCATED: (ELLIPSIS, "the reply was cut off"),
    State.FAILED: ("!", "grading failed"),
}


def heat_cell(dossier: Dossier, cell: Cell, visible: frozenset[Cell] | None = None) -> HeatCell:
    """Return a cell of the heat map; its grade is hidden if it is not `visible`."""
    if visible is not None and cell not in visible:
        return HeatCell("", None, "", "hidden until you decide")
    mark, meaning = _decision_mark(dossier.decisions.get(cell, ()))
    rating, grader = int(dossier.grades.ratings[cell]), dossier.grader
    if rating != MISSING:
        level = rating_shade(rating, grader.lowest, grader.highest)
        return HeatCell(str(rating), level, mark, meaning)
    if dossier.texts[cell[0]] is None:
        return HeatCell("", None, mark, meaning or "no text")
    grade = dossier.automatic.get(cell)
    text, why = ("\N{MIDDLE DOT}", "not graded")
    if grade is not None:
        text, why = _UNGRADED.get(grade.state, (text, why))
    return HeatCell(text, None, mark, meaning or why)


def _decision_mark(decisions: Sequence[Decision]) -> tuple[str, str]:
    if disputed(decisions):
        return "disputed", "disputed"
    effective = effective_decision(decisions)
    return ("", "") if effective is None else ("decided", f"decided by {effective.author}")
