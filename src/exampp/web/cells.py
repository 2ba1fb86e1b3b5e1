"""One cell as people see it: the passage, what the grader said, who returned it, who decided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.prompts.words import best_span
from exampp.records.decisions import Decision, disputed, effective_decision, standing_decisions
from exampp.records.gradebook import MISSING, Cell, Dossier, PassageText
from exampp.records.graders import Grade, GraderIdentity
from exampp.records.items import Item
from exampp.web.page_request import PageRequest
from exampp.web.rendering import shade

SHOWN = 6_000
"""Characters of a passage that a page shows at first."""
SEARCHED = 60_000
"""Characters of a passage that are searched for the closest sentence."""
_BEFORE = 800
"""Characters that are shown before a marked span that begins late."""


def brief(text: str, length: int = 120) -> str:
    """The start of a text in one line, at most `length` characters."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class PassageExcerpt:
    """A passage in pieces: what comes before the marked span, the span, what comes after it.

    `hidden` is how many characters are left out; `why` says what the span is ("" where none is). A
    `guess` is the sentence that only looks closest, not what the grader took.
    """

    title: str
    before: str
    marked: str
    after: str
    hidden: int = 0
    why: str = ""
    guess: bool = False


def show(
    passage: PassageText | None,
    grade: Grade | None = None,
    item_text: str = "",
    *,
    extracts: bool = False,
    guesses: bool = True,
    whole: bool = False,
) -> PassageExcerpt | None:
    """A passage with the part that matters marked; None for a passage without a text.

    Marked is the answer that the grader took from it or, without one, the sentence closest to the
    item, if `guesses` are wanted. With `extracts` the grader's reply is such an answer where
    nothing else is known. Long passages are cut around it, unless the `whole` is asked for.
    """
    if passage is None:
        return None
    found = _span(passage, grade, item_text, extracts)
    (start, end), why, guess = found if guesses or not found.guess else _NONE
    text = passage.text
    first = 0 if whole or end <= SHOWN else max(0, start - _BEFORE)
    last = len(text) if whole else first + SHOWN
    return PassageExcerpt(
        passage.title,
        ("\N{HORIZONTAL ELLIPSIS} " if first else "") + text[first:start],
        text[start : min(end, max(last, start))],
        text[max(end, first) : last],
        hidden=first + max(0, len(text) - last),
        why=why,
        guess=guess,
    )


def around(shown: PassageExcerpt, length: int) -> PassageExcerpt:
    """So many characters around what is marked, or from the start where nothing is."""
    rest = max(0, length - len(shown.marked))
    marked = shown.marked[:length]
    before = shown.before if len(shown.before) <= rest // 2 else _ended(shown.before, rest // 2)
    after = shown.after[: rest - min(len(before), rest // 2)]
    cut = len(after) < len(shown.after) or len(marked) < len(shown.marked)
    return replace(
        shown, before=before, marked=marked, after=after + "\N{HORIZONTAL ELLIPSIS}" * cut, hidden=0
    )


def _ended(text: str, length: int) -> str:
    return "\N{HORIZONTAL ELLIPSIS} " + (text[-length:] if length else "")


class _Span(NamedTuple):
    at: tuple[int, int]
    why: str
    guess: bool


_NONE = _Span((0, 0), "", False)


def _span(passage: PassageText, grade: Grade | None, item_text: str, extracts: bool) -> _Span:
    text = passage.text
    detail = (grade.detail or {}) if grade else {}
    graded = f"{passage.title}\n{text}" if passage.title else text
    shift = len(graded) - len(text)
    found = detail.get("span")
    if isinstance(found, list | tuple) and len(found) == 2:
        start, end = (int(offset) - shift for offset in found)
        if 0 <= start < end <= len(text):
            return _Span((start, end), "the extracted answer", False)
    answer = detail.get("answer") or (grade.reply if grade and extracts else None)
    head = text[:SEARCHED]
    if isinstance(answer, str) and answer.strip():
        start, end = best_span(head, answer[:SHOWN])
        if end:
            if _bare(head[start:end]) == _bare(answer):
                return _Span((start, end), "the extracted answer", False)
            return _Span((start, end), "closest to the extracted answer", True)
    span = best_span(head, item_text[:SHOWN]) if item_text else (0, 0)
    return _NONE if span == (0, 0) else _Span(span, "closest to the item", True)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).removesuffix(".")


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
    shown: PassageExcerpt | None
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
        standing=None if hidden else effective_decision(decisions),
        own=standing_decisions(decisions).get(author),
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
        for one in standing_decisions(decisions).values()
        if one.rating is not None
    )


BLIND = "blind"
"""What a browser keeps: whether a person decides blind, where they have said so."""


def is_blind(visit: PageRequest) -> bool:
    """Whether grades are hidden from this person until they have decided."""
    said = visit.kept(BLIND)
    return visit.room.blind if said not in ("0", "1") else said == "1"


def dossier(
    visit: PageRequest, collection: Collection, query_id: str, passage_id: str | None = None
) -> Dossier:
    """One query as it is now. InputError where there is none of that id.

    For a page of one passage, what the grader said of undecided others is not read.
    """
    grades = visit.choice.of(collection)
    asked = [query_id]
    for found in (
        grades.dossiers(asked) if passage_id is None else grades.dossiers(asked, [passage_id])
    ):
        return found
    raise InputError("there is no query of that id", field="query")


def seen(found: Dossier, visit: PageRequest, *, blind: bool) -> frozenset[Cell] | None:
    """The cells whose grades this person may see; None: all of them."""
    if not blind:
        return None
    decisions = found.decisions.items()
    return frozenset(cell for cell, made in decisions if has_decided(made, visit.assessor))
