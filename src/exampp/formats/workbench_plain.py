"""Passages of a workbench file that say no more than the format's own fields, read quickly.

Nearly all passages of nearly all files are plain: their objects hold the keys that are written of
them, and values that follow from the record. For those it is enough to decode what is typed and to
look at each value once; nothing is written and compared as JSON. Whatever is otherwise, in any
way, is none of this module's: it says so, and `workbench.read` takes the longer way, which
understands, keeps or refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from exampp.errors import InputError
from exampp.formats.lines import decode_part
from exampp.formats.lossless import difference
from exampp.formats.workbench_cells import residue_of
from exampp.formats.workbench_graders import head_of
from exampp.formats.workbench_json import Label, MarksJson, Rank, SelfRatingJson
from exampp.formats.workbench_rules import rule_of
from exampp.records import (
    Grade,
    GraderIdentity,
    Judgment,
    PassageGrades,
    PooledPassage,
    RankedPassage,
    Residue,
    State,
    subtopic_of,
)

_EXACT = 2.0**53
"""Whole numbers from here on are not all floats."""


class _Rating(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    self_rating: Any
    question_id: str | UnsetType = UNSET
    nugget_id: str | UnsetType = UNSET


class _Entry(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={"correct_answered": "correctAnswered", "wrong_answered": "wrongAnswered"},
):
    correct_answered: list[str]
    wrong_answered: list[str]
    answers: list[tuple[str, str]]
    llm: str
    llm_options: msgspec.Raw
    prompt_info: msgspec.Raw | UnsetType = UNSET
    prompt_type: str | UnsetType = UNSET
    exam_ratio: float | UnsetType = UNSET
    self_ratings: list[_Rating] | UnsetType = UNSET


class _Judgment(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    relevance: Label
    query: str
    paragraph_id: str | UnsetType = UNSET
    title_query: str | UnsetType = UNSET


class _Ranking(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    method: str
    paragraph_id: str
    query_id: str
    rank: Rank
    score: float


class _Data(msgspec.Struct, forbid_unknown_fields=True):
    judgments: list[_Judgment]
    rankings: list[_Ranking]


class PlainPassage(msgspec.Struct, forbid_unknown_fields=True):
    """A passage with no key that is unknown; its values may still not be plain."""

    paragraph_id: str
    text: str
    paragraph_data: _Data
    exam_grades: list[_Entry]
    title: str | UnsetType = UNSET
    paragraph: msgspec.Raw | UnsetType = UNSET


class PlainLine(NamedTuple):
    """A line whose passages have no unknown key."""

    query_id: str | int
    passages: list[PlainPassage]


class _Cells(dict[tuple[str, str, int], Grade]):
    """The grade of a cell by (item, reply, rating): one for all passages of a query."""

    def __init__(self, identity: GraderIdentity) -> None:
        self.identity = identity

    def __missing__(self, cell: tuple[str, str, int]) -> Grade:
        item, reply, rating = cell
        rule = rule_of(self.identity, reply, rating)
        grade = self[cell] = Grade(item, State.GRADED, rating, reply, rule)
        return grade


class _Head(NamedTuple):
    """Who made entries of one kind, their grades so far, and what they say beyond them."""

    identity: GraderIdentity
    cells: _Cells
    residue: Residue


class PlainReader:
    """Reads the plain passages of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(PlainLine)
        self._heads: dict[tuple[Any, ...], _Head | None] = {}

    def decode(self, line: bytes) -> PlainLine | None:
        """A line, of valid JSON; None where anything in it is not plain."""
        for head in self._heads.values():
            if head is not None:
                head.cells.clear()
        try:
            if not line.isascii():
                # msgspec leaves parts that it need not look into unchecked
                line.decode()
            return self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def passage(self, query_id: str, typed: PlainPassage) -> PooledPassage | None:
        """The passage as `workbench.read` reads it; None where anything of it is not plain."""
        name, data = typed.paragraph_id, typed.paragraph_data
        judgments = _judgments(query_id, name, data.judgments)
        rankings = _rankings(name, data.rankings)
        sheets = [self._sheet(entry) for entry in typed.exam_grades]
        if judgments is None or rankings is None or None in sheets or typed.title == "":
            return None
        found = tuple(sheet for sheet in sheets if sheet is not None)
        if len({sheet.grader.key for sheet in found}) < len(found):
            return None
        try:
            residue = _beside(typed.paragraph)
        except InputError:
            return None
        title = "" if typed.title is UNSET else typed.title
        return PooledPassage(name, typed.text, title, judgments, rankings, found, residue)

    def _sheet(self, entry: _Entry) -> PassageGrades | None:
        head = self._head(entry)
        items, replies = zip(*entry.answers, strict=True) if entry.answers else ((), ())
        if head is None or len(set(items)) < len(items) or "" in items:
            return None
        ratings = _ratings(entry, items, head.identity)
        if ratings is None:
            return None
        correct = [item for item, rating in zip(items, ratings, strict=True) if rating]
        wrong = [item for item, rating in zip(items, ratings, strict=True) if not rating]
        if entry.correct_answered != correct or entry.wrong_answered != wrong:
            return None
        ratio = len(correct) / len(items) if items else 0.0
        if entry.exam_ratio is not UNSET and entry.exam_ratio != ratio:
            return None
        cells = map(head.cells.__getitem__, zip(items, replies, ratings, strict=True))
        return PassageGrades(head.identity, tuple(cells), head.residue)

    def _head(self, entry: _Entry) -> _Head | None:
        key = (
            entry.llm,
            bytes(entry.llm_options),
            None if entry.prompt_info is UNSET else bytes(entry.prompt_info),
            entry.prompt_type,
            entry.exam_ratio is UNSET,
            _rated_by(entry),
        )
        try:
            return self._heads[key]
        except KeyError:
            pass
        try:
            head, stated = _read_head(entry)
        except InputError:
            return None
        if not stated:
            # cells differ from passage to passage, and would fill the memory
            self._heads[key] = head
        return head


def _rated_by(entry: _Entry) -> str:
    """By which key the first rating names its item; empty where there are verdicts alone."""
    if not entry.self_ratings:
        return "" if entry.self_ratings is UNSET else "question_id"
    return "question_id" if entry.self_ratings[0].nugget_id is UNSET else "nugget_id"


def _read_head(entry: _Entry) -> tuple[_Head | None, bool]:
    """What is common to all entries with the fields of this one, and whether it states cells."""
    rated_by = _rated_by(entry)
    marks = MarksJson(llm=entry.llm, llm_options=entry.llm_options)
    head: dict[str, Any] = {"llm": entry.llm}
    head["llm_options"] = decode_part(entry.llm_options, "llm_options")
    if entry.prompt_info is not UNSET:
        marks.prompt_info = entry.prompt_info
        head["prompt_info"] = decode_part(entry.prompt_info, "prompt_info")
    if entry.prompt_type is not UNSET:
        marks.prompt_type = head["prompt_type"] = entry.prompt_type
    if rated_by:
        # which kind is told by the key alone, which scale by nothing here
        one = SelfRatingJson(nugget_id="item" if rated_by == "nugget_id" else None)
        marks.self_ratings = [one]
    identity, open_scale, stated = head_of(marks)
    is_rated = bool(rated_by)
    if stated or (is_rated and (open_scale or rated_by != f"{identity.kind}_id")):
        return None, bool(stated)
    if is_rated and identity.highest == 1:
        return None, False
    plain = head | {"correctAnswered": [], "wrongAnswered": [], "answers": []}
    plain |= {} if entry.exam_ratio is UNSET else {"exam_ratio": 0.0}
    plain |= {"self_ratings": []} if is_rated else {}
    residue = residue_of(PassageGrades(identity, ()), plain, open_scale=open_scale)
    return _Head(identity, _Cells(identity), residue), False


def _ratings(entry: _Entry, items: Sequence[str], grader: GraderIdentity) -> Sequence[int] | None:
    """The rating of each item, in their order; None where one has none, or is rated otherwise."""
    if entry.self_ratings is UNSET:
        correct = set(entry.correct_answered)
        return [int(item in correct) for item in items]
    by_nugget = grader.kind == "nugget"
    named = [one.nugget_id if by_nugget else one.question_id for one in entry.self_ratings]
    other = [one.question_id if by_nugget else one.nugget_id for one in entry.self_ratings]
    if named != list(items) or other.count(UNSET) < len(other):
        return None
    ratings = [one.self_rating for one in entry.self_ratings]
    if ratings and not (
        set(map(type, ratings)) == {int}
        and grader.lowest <= min(ratings)
        and max(ratings) <= grader.highest
    ):
        return None
    return ratings


def _judgments(
    query_id: str, passage_id: str, typed: Sequence[_Judgment]
) -> tuple[tuple[Judgment, Residue], ...] | None:
    found: dict[str | None, tuple[Judgment, Residue]] = {}
    for one in typed:
        subtopic = subtopic_of(query_id, one.query)
        written = f"{query_id}/{subtopic}" if subtopic else query_id
        said = (one.query, one.paragraph_id, one.title_query)
        if one.query != written or said[1] not in (passage_id, UNSET):
            return None
        if said[2] not in (written, UNSET):
            return None
        judgment = Judgment(query_id, passage_id, one.relevance, subtopic)
        found[subtopic] = (judgment, _DROPPED[said[1] is UNSET, said[2] is UNSET])
    return tuple(found.values()) if len(found) == len(typed) else None


_DROPPED: dict[tuple[bool, bool], Residue] = {
    (False, False): None,
    (True, False): {"drop": ["paragraphId"]},
    (False, True): {"drop": ["titleQuery"]},
    (True, True): {"drop": ["paragraphId", "titleQuery"]},
}
"""What a judgment lacks, by whether it lacks the passage and the query's title."""


def _rankings(
    passage_id: str, typed: Sequence[_Ranking]
) -> tuple[tuple[RankedPassage, Residue], ...] | None:
    found = {
        (one.method, one.query_id): (
            RankedPassage(one.query_id, passage_id, one.rank, one.score, one.method),
            None,
        )
        for one in typed
        if one.paragraph_id == passage_id and one.query_id and -_EXACT < one.score < _EXACT
    }
    return tuple(found.values()) if len(found) == len(typed) else None


def _beside(paragraph: msgspec.Raw | UnsetType) -> Residue:
    """What a passage keeps of its `paragraph`, of which nothing is read."""
    if paragraph is UNSET:
        return difference({"paragraph": {}}, {})
    if bytes(paragraph) == b"{}":
        return None
    return difference({"paragraph": {}}, {"paragraph": decode_part(paragraph, "paragraph")})
