"""Cells as people see them: the passage, the grade, the systems, the decisions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.grades.grades import Grades
from exampp.prompts.words import best_span
from exampp.records.decisions import Decision, disputed, effective_decision, standing_decisions
from exampp.records.gradebook import MISSING, Cell, Dossier, PassageText
from exampp.records.graders import Grade, State
from exampp.records.items import Item
from exampp.review.evidence import returned_by
from exampp.store.read_model import CellTexts, read_texts
from exampp.web.page_request import PageRequest
from exampp.web.rendering import ELLIPSIS, rating_shade

SHOWN = 6_000
"""Characters of a passage that a page shows at first."""
SEARCHED = 60_000
"""Characters of a passage that are searched for the closest sentence."""
_BEFORE = 800
"""Characters shown before a marked span that begins late."""
_VERSIONS = re.compile("([0-9]{1,18}),([0-9]{1,18})")
_MEANINGS = (
    *("not at all", "minimally", "to a limited extent", "partially", "mostly", "completely"),
)
"""The meaning of ratings 0 to 5. Source: the self-rating prompts (Workbench, Table 2)."""


# ---- passages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PassageExcerpt:
    """A passage in pieces: before the marked span, the span, after it.

    `hidden` characters are left out; `why` says what the span is ("" if there is none). A `guess`
    is the sentence that only looks closest, not the one that the grader took.
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
    """Return a passage with the relevant part marked; None for a passage without a text.

    The mark is the answer that the grader extracted or, without one, the sentence closest to the
    item, if `guesses` is true. With `extracts` the reply counts as the answer if nothing else is
    known. Long passages are cut around the mark, unless `whole`.
    """
    if passage is None:
        return None
    (start, end), why, guess = _span(passage, grade, item_text, extracts)
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


def shorten_excerpt(shown: PassageExcerpt, length: int) -> PassageExcerpt:
    """Return `length` characters around the mark, or from the start if nothing is marked."""
    marked = shown.marked[:length]
    rest = max(0, length - len(shown.marked))
    before, half = shown.before, rest // 2
    if len(before) > half:
        before = f"{ELLIPSIS} " + before[len(before) - half :]
    after = shown.after[: rest - min(len(before), half)]
    cut = len(after) < len(shown.after) or len(marked) < len(shown.marked)
    after += ELLIPSIS * cut
    return replace(shown, before=before, marked=marked, after=after, hidden=0)


def _span(
    passage: PassageText, grade: Grade | None, item_text: str, extracts: bool
) -> tuple[tuple[int, int], str, bool]:
    """Return the span to mark, its description, and whether it is a guess."""
    text = passage.text
    detail = (grade.detail or {}) if grade else {}
    # graders read the title, a line break and the text
    shift = len(passage.title) + 1 if passage.title else 0
    found = detail.get("span")
    if isinstance(found, list | tuple) and len(found) == 2:
        start, end = (int(offset) - shift for offset in found)
        if 0 <= start < end <= len(text):
            return (start, end), "the extracted answer", False
    answer = detail.get("answer") or (grade.reply if grade and extracts else None)
    head = text[:SEARCHED]
    if isinstance(answer, str) and answer.strip():
        start, end = best_span(head, answer[:SHOWN])
        if end:
            same = _normal(head[start:end]) == _normal(answer)
            why = "the extracted answer" if same else "closest to the extracted answer"
            return (start, end), why, not same
    span = best_span(head, item_text[:SHOWN]) if item_text else (0, 0)
    return (span, "closest to the item", True) if span != (0, 0) else (span, "", False)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).removesuffix(".")


# ---- cells ---------------------------------------------------------------------------------------


class CellIds(NamedTuple):
    """A cell by the ids of its query, item and passage."""

    query_id: str
    item_id: str
    passage_id: str

    @property
    def packed(self) -> str:
        """Return the ids as one value of a form: forms would change a line break in an id."""
        return json.dumps(self)

    @classmethod
    def unpacked(cls, text: str) -> CellIds:
        """Parse `packed`. Raises InputError for anything else."""
        try:
            ids = json.loads(text)
            json.dumps(ids, ensure_ascii=False).encode()  # half a character is no text
        except (ValueError, RecursionError):
            ids = None
        if not (isinstance(ids, list) and len(ids) == 3 and all(isinstance(i, str) for i in ids)):
            raise InputError("that is not a cell", field="cell")
        return cls(*ids)


def parse_versions(text: str) -> tuple[int, int]:
    """Return the texts (item, passage) that a person decided about. InputError if missing."""
    found = _VERSIONS.fullmatch(text)
    if found is None:
        raise InputError("those are not versions of texts", field="versions")
    return int(found[1]), int(found[2])


class RatingMark(NamedTuple):
    """A rating that a person may give: its key, shade, label and meaning."""

    rating: int
    key: str
    level: int
    shown: str
    meaning: str


def marks(lowest: int, highest: int, meanings: Sequence[str] = _MEANINGS) -> tuple[RatingMark, ...]:
    """Return the ratings of a scale, with their meanings if there are as many."""
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
    """Everything that a person sees to decide about one cell.

    `hidden`: the grade is withheld because the person decides blind; `grade`, `returned`,
    `relevance` and the decisions of others are then absent. `returned` has systems with their
    ranks, `opinions` the decisions in force with their shades, `versions` the keys of the two texts
    (None: the passage has no text).
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
        """Return whether assessors differ and nobody has adjudicated."""
        return disputed(self.decisions)


def read_query(
    request: PageRequest, collection: Collection, query_id: str, passage_id: str | None = None
) -> Dossier:
    """Read one query as it is now. Raises InputError for an unknown query.

    For a page of one passage, the replies for other cells without decisions are not read.
    """
    grades, ids = request.choice.of(collection), [query_id]
    for found in grades.dossiers(ids) if passage_id is None else grades.dossiers(ids, [passage_id]):
        return found
    raise InputError("unknown query", field="query")


def read_cells(
    grades: Grades, cells: Iterable[tuple[str, str, str]], length: int
) -> dict[tuple[str, str, str], CellTexts]:
    """Read the texts of cells (query, item, passage), `length` characters of each passage."""
    kind = grades.grader.kind
    return dict(read_texts(grades.connection, grades.bank, kind, cells, length))


def visible_cells(dossier: Dossier, request: PageRequest) -> frozenset[Cell] | None:
    """Return the cells whose grades this person may see; None means all."""
    if not request.is_blind:
        return None
    decisions = dossier.decisions.items()
    return frozenset(
        cell for cell, decision in decisions if has_decided(decision, request.assessor)
    )


def has_decided(decisions: Sequence[Decision], author: str) -> bool:
    """Return whether a person ever decided about a cell, and so has seen its grade."""
    return any(one.author == author for one in decisions)


def cell_of(dossier: Dossier, item_id: str | None, passage_id: str) -> Cell:
    """Return the indices of a cell; without an item, of the passage's first one.

    InputError for an unknown item or passage.
    """
    passages, items = dossier.grades.passage_ids, dossier.grades.item_ids
    if passage_id not in passages:
        raise InputError("no such passage", field="passage")
    if item_id is None and items:
        return passages.index(passage_id), dossier.bank_order[0]
    if item_id not in items:
        raise InputError("no such item; it may have been retired", field="item")
    return passages.index(passage_id), items.index(item_id)


def versions_of(dossier: Dossier, cell: Cell) -> tuple[int, int] | None:
    """Return the keys of the texts of a cell; None if it has none in a store."""
    passage, item = cell
    if not dossier.item_versions or not dossier.passage_versions:
        return None
    version = dossier.passage_versions[passage]
    return None if version is None else (dossier.item_versions[item], version)


def panel(
    dossier: Dossier, cell: Cell, author: str, *, blind: bool = False, whole: bool = False
) -> CellPanel:
    """Return a cell as `author` may see it: with `blind`, no grade before a decision."""
    (passage, item), grader = cell, dossier.grader
    made = tuple(dossier.decisions.get(cell, ()))
    hidden = blind and not has_decided(made, author)
    # nothing that the grader or others said
    grade, decisions = (None, ()) if hidden else (dossier.automatic.get(cell), made)
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
            # if the grader found nothing, or a person is to find it, a guess would mislead
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
        own=standing_decisions(made).get(author),
        versions=versions_of(dossier, cell),
        marks=marks_of(dossier),
    )


class HeatCell(NamedTuple):
    """A cell of a heat map: its text, its shade (None: no grade), and what it means.

    `mark` is "decided" or "disputed" if people decided.
    """

    text: str
    level: int | None
    mark: str = ""
    meaning: str = ""


_UNGRADED = {
    State.UNPARSED: ("?", "the reply could not be read"),
    State.REFUSED: ("\N{HEAVY BALLOT X}", "the grader refused"),
    State.TRUNCATED: (ELLIPSIS, "the reply was cut off"),
    State.FAILED: ("!", "grading failed"),
}


def heat_cell(dossier: Dossier, cell: Cell, visible: frozenset[Cell] | None = None) -> HeatCell:
    """Return a cell of the heat map; its grade is hidden if it is not `visible`."""
    if visible is not None and cell not in visible:
        return HeatCell("", None, "", "hidden until you have decided")
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
    stands = effective_decision(decisions)
    return ("", "") if stands is None else ("decided", f"decided by {stands.author}")
