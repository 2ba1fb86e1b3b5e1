"""Graded passages of the Autograding Workbench: `exam_grades` and `grades` to grades and back.

A rating that cannot be read (not a whole number, or off its grader's scale) makes a bad cell, not a
bad file: the cell is stored as unparsed with the raw value, which is written back. Whatever reading
would not restore (a state, a rule, a detail or the grader itself) is written under
`llm_options.exampp`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exampp import prompts
from exampp.errors import InputError
from exampp.formats.format import Format
from exampp.formats.json_values import difference, differences, restored
from exampp.formats.lines import (
    OnError,
    accept,
    decode_json,
    decode_part,
    raise_error,
    read_lines,
    valid_json,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.workbench_graders import (
    OURS,
    TARGET,
    CellJson,
    DataJson,
    DirectJson,
    EntryHead,
    PassageJson,
    SheetJson,
    WorkbenchLine,
    grader_json,
    has_open_scale,
    head_of,
    identity_json,
    parted,
    repeated,
)
from exampp.prompts.catalogue import load_named
from exampp.records import (
    Grade,
    GraderIdentity,
    Judgment,
    PassageGrades,
    PooledPassage,
    QueryPool,
    RankedPassage,
    Residue,
    State,
    subtopic_of,
)
from exampp.records.graders import RatingScale
from exampp.records.readings import IMPORTED, OTHERWISE
from exampp.sanitize import sanitize_value

_LONGEST = 40
"""Maximum characters of a raw value in an error."""


class Bad(NamedTuple):
    """An invalid rating and the reason."""

    reason: str
    raw: Any


class Marks(NamedTuple):
    """Rating by item, and invalid ratings by item."""

    ratings: dict[str, int]
    bad: dict[str, Bad]


class Entry(NamedTuple):
    """Grades of a passage by one grader: its head, its JSON and its place."""

    head: EntryHead
    typed: SheetJson | DirectJson
    place: str


def entries(
    exam: Sequence[SheetJson] | None,
    direct: Sequence[DirectJson] | None,
    scale: RatingScale | None = None,
    counts: dict[str, int] | None = None,
) -> Iterator[Entry]:
    """Yield all entries of one passage; repeated entries of a grader are numbered.

    `taken` counts them. Raises InputError with the field for an invalid head.
    """
    counts = {} if counts is None else counts
    heads: list[tuple[str, SheetJson | DirectJson]] = [
        *((f"exam_grades[{index}]", entry) for index, entry in enumerate(exam or ())),
        *((f"grades[{index}]", single) for index, single in enumerate(direct or ())),
    ]
    for place, typed in heads:
        try:
            head = head_of(typed, scale)
        except InputError as error:
            error.field = f"{place}.{error.field}"
            raise
        head = head._replace(identity=repeated(head.identity, counts))
        yield Entry(head, typed, place)


# ---- reading ------------------------------------------------------------------------------------


def cells_of_entry(query_id: str, entry: Entry, on_cell: OnError = accept) -> tuple[Grade, ...]:
    """Return the cells of an entry, in the order of its answers.

    A direct grade is one cell whose item is the query.
    """
    marks = _marks(query_id, entry, on_cell)
    replies, faults = _replies(query_id, entry.typed), _faults(query_id, entry.typed)
    grader, stated = entry.head.identity, entry.head.cells
    if not (stated or faults or marks.bad) and replies.keys() == marks.ratings.keys():
        scale, ratings = (grader.prompt, grader.highest), marks.ratings
        return tuple(_graded(*scale, item, reply, ratings[item]) for item, reply in replies.items())
    items = dict.fromkeys([*replies, *marks.ratings, *marks.bad, *faults, *stated])
    return tuple(
        _as_stated(_grade(grader, item, replies.get(item), marks, faults), stated.get(item))
        for item in items
    )


@lru_cache(maxsize=1 << 16)
def _graded(prompt: str, highest: int, item: str, reply: str | None, rating: int) -> Grade:
    """Return the grade of a cell; equal cells share one object."""
    return Grade(item, State.GRADED, rating, reply, _rule_of(prompt, highest, reply, rating))


@lru_cache(maxsize=1 << 13)
def _rule_of(prompt_name: str, highest: int, reply: str | None, rating: int) -> str:
    """Return the rule by which exampp reads the same rating from a reply.

    `IMPORTED`: there is no reply, or no rule that reads one without the answer keys. `OTHERWISE`:
    exampp reads another rating, or none.
    """
    if not reply:
        return IMPORTED
    try:
        prompt = load_named(prompt_name)
    except InputError:
        return IMPORTED
    if prompt.reading not in _READ_FROM_FILES:
        return IMPORTED
    outcome = prompts.read_reply(
        prompt.reading, reply, lowest=prompt.lowest, highest=highest, field=prompt.field
    )
    return outcome.rule if outcome.rating == rating else OTHERWISE


_READ_FROM_FILES = frozenset({"self-rating", "rating", "yes-no"})
"""Readings that need only the reply."""


def _replies(query_id: str, typed: SheetJson | DirectJson) -> dict[str, str | None]:
    if isinstance(typed, DirectJson):
        return {query_id: typed.answer if isinstance(typed.answer, str) else None}
    return {
        answer[0]: answer[1] if isinstance(answer[1], str) else None
        for answer in typed.answers
        if isinstance(answer, list) and len(answer) == 2 and isinstance(answer[0], str)
    }


def _faults(query_id: str, typed: SheetJson | DirectJson) -> Mapping[str, Any]:
    if isinstance(typed, SheetJson):
        return typed.llm_response_errors or {}
    return {} if typed.llm_response_error is None else {query_id: typed.llm_response_error}


def _grade(
    grader: GraderIdentity, item: str, reply: str | None, marks: Marks, faults: Mapping[str, Any]
) -> Grade:
    if item in faults:
        return Grade(item, State.FAILED, None, reply, detail={"reason": _reason_of(faults[item])})
    if item in marks.ratings:
        rating = marks.ratings[item]
        return _graded(grader.prompt, grader.highest, item, reply, rating)
    detail = marks.bad[item]._asdict() if item in marks.bad else None
    return Grade(item, State.UNPARSED, None, reply, rule=IMPORTED, detail=detail)


def _reason_of(fault: Any) -> str:
    """Return the reason of a failure: plain text, or the Workbench's object."""
    reason = fault.get("failure_reason") if isinstance(fault, dict) else fault
    return reason if isinstance(reason, str) else json.dumps(fault, ensure_ascii=False)


def _as_stated(grade: Grade, stated: Any) -> Grade:
    """Return the grade with the stored fields of its cell; unchanged if they are invalid."""
    if stated is None:
        return grade
    try:
        cell = msgspec.convert(stated, CellJson)
    except msgspec.ValidationError:
        return grade
    state = grade.state if cell.state is None else State[cell.state.upper()]
    if state is State.GRADED and grade.rating is None:
        return grade
    rating = grade.rating if state is State.GRADED else None
    reply = grade.reply if cell.reply is msgspec.UNSET else cell.reply
    return Grade(grade.item_id, state, rating, reply, cell.rule, cell.confidence, cell.detail)


def _marks(query_id: str, entry: Entry, on_cell: OnError) -> Marks:
    tell = within(entry.place, on_cell)
    if isinstance(entry.typed, SheetJson):
        return _exam_marks(entry.typed, entry.head.identity, tell)
    return _direct_marks(query_id, entry.typed, entry.head.identity, tell)


def within(place: str, on_cell: OnError) -> OnError:
    """Return an `on_cell` that adds a place to errors."""

    def tell(error: InputError) -> None:
        error.field = f"{place}.{error.field}"
        on_cell(error)

    return tell


def _exam_marks(entry: SheetJson, grader: GraderIdentity, on_cell: OnError) -> Marks:
    """Return the self-ratings of an exam grade, or 1 and 0 for its verdicts."""
    ratings: dict[Any, Any]
    if entry.self_ratings is None:
        ratings = dict.fromkeys(entry.correctAnswered, 1) | dict.fromkeys(entry.wrongAnswered, 0)
        stated = len(entry.correctAnswered) + len(entry.wrongAnswered)
    else:
        ratings = {one.question_id or one.nugget_id: one.self_rating for one in entry.self_ratings}
        stated = len(entry.self_ratings)
    sound = len(ratings) == stated and None not in ratings
    if sound and _are_ratings(ratings.values(), grader):
        return Marks(ratings, {})
    return _sorted_out(entry, grader, on_cell)


def _sorted_out(entry: SheetJson, grader: GraderIdentity, on_cell: OnError) -> Marks:
    """Return the valid and invalid marks; an item with different values has no rating."""
    stated: dict[str, list[Any]] = {}
    places: dict[str, str] = {}
    for place, item_id, value in _marks_as_written(entry):
        if item_id is None:
            on_cell(InputError("the rating has neither question_id nor nugget_id", field=place))
            continue
        values = stated.setdefault(item_id, [])
        places[item_id] = place
        if not any(type(one) is type(value) and one == value for one in values):
            values.append(value)
    marks = Marks({}, {})
    for item_id, values in stated.items():
        reason = "the item has two different grades"
        reason = reason if len(values) > 1 else _why_no_rating(values[0], grader)
        if reason:
            marks.bad[item_id] = Bad(reason, _storable(values[0] if len(values) == 1 else values))
            on_cell(InputError(reason, field=places[item_id]))
        else:
            marks.ratings[item_id] = values[0]
    return marks


def _marks_as_written(entry: SheetJson) -> Iterator[tuple[str, str | None, Any]]:
    """Yield (place, item, value) of every mark."""
    for index, rating in enumerate(entry.self_ratings or ()):
        item_id = rating.question_id or rating.nugget_id
        place = f"self_ratings[{index}]" + (".self_rating" if item_id else "")
        yield place, item_id, rating.self_rating
    if entry.self_ratings is None:
        for index, item_id in enumerate(entry.correctAnswered):
            yield f"correctAnswered[{index}]", item_id, 1
        for index, item_id in enumerate(entry.wrongAnswered):
            yield f"wrongAnswered[{index}]", item_id, 0


def _direct_marks(
    query_id: str, entry: DirectJson, grader: GraderIdentity, on_cell: OnError
) -> Marks:
    """Return the mark of a direct grade: its rating, else its label, else its verdict."""
    if entry.llm_response_error is not None:
        return Marks({}, {})
    name, value = "correctAnswered", entry.correctAnswered
    reason = (
        ""
        if isinstance(value, bool)
        else f"{_quoted_value(value)} is not a verdict (true or false)"
    )
    for label in ("relevance_label", "self_ratings"):
        if getattr(entry, label) is not None:
            name, value = label, getattr(entry, label)
            reason = _why_no_rating(value, grader)
    if not reason:
        return Marks({query_id: int(value)}, {})
    on_cell(InputError(reason, field=name))
    return Marks({}, {query_id: Bad(reason, _storable(value))})


def _are_ratings(values: Collection[Any], grader: GraderIdentity) -> bool:
    """Return whether all are valid ratings (see `_why_no_rating`)."""
    if not values:
        return True
    if set(map(type, values)) != {int}:
        return False
    return bool(grader.lowest <= min(values) and max(values) <= grader.highest)


def _why_no_rating(value: Any, grader: GraderIdentity) -> str:
    if type(value) is not int:
        return f"{_quoted_value(value)} is not a rating (a whole number)"
    if grader.lowest <= value <= grader.highest:
        return ""
    return f"rating {_quoted_value(value)} is off the scale {grader.lowest}..{grader.highest}"


def _storable(raw: Any) -> Any:
    """Return a raw value as the store can save it; the rest is stored as residue."""
    return sanitize_value(raw)[0]


def _quoted_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# ---- writing ------------------------------------------------------------------------------------


def residue_of(sheet: PassageGrades, original: Mapping[str, Any], *, open_scale: bool) -> Residue:
    """Return what an entry has beyond its record."""
    written = _json(sheet)
    plain = dict(original)
    if "llm_options" in plain:
        plain["llm_options"] = parted(plain["llm_options"])[0]
    if open_scale and "self_ratings" not in plain:
        # other entries of the grader may have ratings; this one has none
        written.setdefault("self_ratings", None)
    return difference(written, plain)


def sheet_json(sheet: PassageGrades, counts: dict[str, int] | None = None) -> dict[str, Any]:
    """Return an entry of `exam_grades` or `grades`.

    `taken` counts the entries of each grader for the passage so far.
    """
    written: dict[str, Any] = restored(_json(sheet), sheet.residue)
    ours = _beyond(sheet, written, {} if counts is None else counts)
    if not ours:
        return written
    options = written.get("llm_options")
    rest = options if isinstance(options, dict) else {}
    return {**written, "llm_options": {**rest, OURS: ours}}


def _beyond(
    sheet: PassageGrades, written: dict[str, Any], counts: dict[str, int]
) -> dict[str, Any]:
    """Return what reading the written entry would not restore."""
    alike = sheet.grader.key, sheet.verified
    is_usual = sheet.residue is None and sheet.target is None
    if is_usual and sheet.grader.key not in counts and _is_plain(sheet, alike):
        counts[sheet.grader.key] = 1
        return {}
    before = dict(counts)
    text = msgspec.json.encode(written)
    if sheet.grader.kind == "query":
        direct = msgspec.json.decode(text, type=DirectJson)
        (entry,) = entries((), [direct], counts=counts)
    else:
        (entry,) = entries([msgspec.json.decode(text, type=SheetJson)], (), counts=counts)
    query_id = next((grade.item_id for grade in sheet.grades), "")
    read = {grade.item_id: grade for grade in cells_of_entry(query_id, entry)}
    cells = {
        grade.item_id: _cell_json(grade, read.get(grade.item_id))
        for grade in sorted(sheet.grades, key=lambda grade: grade.item_id)
        if read.get(grade.item_id) != grade
    }
    ours: dict[str, Any] = {"cells": cells} if cells else {}
    if sheet.target is not None:
        ours[TARGET] = sheet.target.stored
    options = written.get("llm_options")
    # adding a note would change the options
    has_room = isinstance(options, dict) and OURS not in options
    if _identifies(entry, sheet) and (has_room or not ours):
        simple = sheet.grader.kind != "query" and not has_open_scale(sheet.grader)
        if simple and sheet.residue is None and not (ours or before):
            _plain_heads[alike] = entry.head.identity.prompt, entry.head.identity.highest
        return ours
    counts.clear()
    counts.update(before)
    repeated(sheet.grader, counts)
    return identity_json(sheet.grader) | ours


_plain_heads: dict[tuple[str, bool], tuple[str, int]] = {}
"""Prompt and highest rating, as read, of graders whose entries need no more than the format has."""


def _is_plain(sheet: PassageGrades, alike: tuple[str, bool]) -> bool:
    """Return whether an entry is restored, as another one of its grader was."""
    head = _plain_heads.get(alike)
    return (
        head is not None
        and bool(sheet.grades)
        and all(
            one.rating is not None and one == _graded(*head, one.item_id, one.reply, one.rating)
            for one in sheet.grades
        )
    )


def _identifies(entry: Entry, sheet: PassageGrades) -> bool:
    """Return whether the written entry identifies the grader and its scale."""
    as_written, grader = entry.head.identity, sheet.grader
    if as_written.key != grader.key:
        return False
    if has_open_scale(grader) and sheet.scale_unshown:
        return False
    within = grader.lowest <= as_written.lowest and as_written.highest <= grader.highest
    partly = has_open_scale(grader) or grader.kind == "query"
    return (
        within
        if partly
        else (as_written.lowest, as_written.highest) == (grader.lowest, grader.highest)
    )


def _cell_json(grade: Grade, read: Grade | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if read is None or read.state is not grade.state:
        fields["state"] = grade.state.name.lower()
    if grade.rule:
        fields["rule"] = grade.rule
    if grade.confidence is not None:
        fields["confidence"] = grade.confidence
    if grade.detail:
        fields["detail"] = dict(grade.detail)
    if read is not None and read.reply != grade.reply:
        fields["reply"] = grade.reply
    return fields


def _json(sheet: PassageGrades) -> dict[str, Any]:
    """Return an entry in the format, before its residue is applied."""
    verified = sheet.verified or any("match" in (grade.detail or {}) for grade in sheet.grades)
    head = grader_json(sheet.grader, verified=verified)
    return head | (_direct_json(sheet) if sheet.grader.kind == "query" else _exam_json(sheet))


def _direct_json(sheet: PassageGrades) -> dict[str, Any]:
    grade = sheet.grades[0]
    written: dict[str, Any] = {"answer": grade.reply or "", "correctAnswered": bool(grade.rating)}
    raw = _raw(grade)
    if raw is not None:
        written["self_ratings"] = raw[0]
    elif grade.state is not State.GRADED:
        written["llm_response_error"] = _fault(grade)
    elif sheet.grader.highest > 1:
        written["self_ratings"] = grade.rating
    return written


def _exam_json(sheet: PassageGrades) -> dict[str, Any]:
    graded = [grade for grade in sheet.grades if grade.rating is not None]
    correct = [grade.item_id for grade in graded if grade.rating]
    answers = [[grade.item_id, grade.reply] for grade in sheet.grades if grade.reply is not None]
    written: dict[str, Any] = {
        "correctAnswered": correct,
        "wrongAnswered": [grade.item_id for grade in graded if not grade.rating],
        "answers": answers,
        "exam_ratio": len(correct) / len(graded) if graded else 0.0,
    }
    if sheet.grader.highest > 1:
        id_key = f"{sheet.grader.kind}_id"
        written["self_ratings"] = [
            {id_key: grade.item_id, "self_rating": value}
            for grade in sheet.grades
            for value in ([grade.rating] if grade.rating is not None else _raw(grade) or ())
        ]
    if faults := {g.item_id: _fault(g) for g in sheet.grades if g.state is State.FAILED}:
        written["llm_response_errors"] = faults
    return written


def _raw(grade: Grade) -> list[Any] | None:
    """Return the raw value of a bad cell in a list; empty if there is none."""
    detail = grade.detail or {}
    return [detail["raw"]] if grade.state is State.UNPARSED and "raw" in detail else None


def _fault(grade: Grade) -> dict[str, str]:
    """Return a failure in the Workbench's notation."""
    reason = str((grade.detail or {}).get("reason", grade.state.name.lower()))
    return {"response": grade.reply or "", "prompt": "", "failure_reason": reason}


# ---- workbench -----------------------------------------------------------------------------------


_ENTRIES = ("exam_grades", "grades")
_PARTS: tuple[tuple[Callable[[list[Any]], Iterable[Any]], frozenset[str]], ...] = (
    (lambda passages: passages, frozenset({*PassageJson.__struct_fields__, "paragraph"})),
    (
        lambda passages: (one.get("paragraph_data", {}) for one in passages),
        frozenset(DataJson.__struct_fields__),
    ),
    (
        lambda passages: (e for one in passages for key in _ENTRIES for e in one.get(key) or ()),
        frozenset({*SheetJson.__struct_fields__, *DirectJson.__struct_fields__, "exam_ratio"}),
    ),
)
"""The objects of a line by type, with their keys."""


def read(
    path: str | Path,
    on_error: OnError = raise_error,
    *,
    scale: RatingScale | None = None,
    on_cell: OnError = accept,
) -> Iterator[QueryPool]:
    """Yield the pools of a Workbench file, line by line.

    Args:
        path: The file.
        on_error: Takes the error of a bad line.
        scale: Scale of graders with an unknown prompt; by default 0 to the highest label.
        on_cell: Takes the error of a rating that cannot be read; its cell is unparsed.

    Raises:
        InputError: With line and field, through `on_error`: other malformed content, or a duplicate
            query or passage.
    """
    seen: dict[str, int] = {}
    keys = tuple((part, Keys(path, known, stored=True)) for part, known in _PARTS)
    for number, line in read_lines(path):
        bad: list[InputError] = []
        try:
            line = valid_json(line, path, number)
            typed = decode_json(line, _DECODER, path, number)
            originals: list[Any] = decode_part(line, "[1]")[1]
            query_id = str(typed.query_id)
            if (earlier := seen.setdefault(query_id, number)) != number:
                raise InputError(
                    f"query {query_id!r} occurs twice, first on line {earlier}",
                    field="[0]",
                    hint="Put all passages of a query on one line",
                )
            pool = _pool(query_id, typed, originals, scale, bad.append)
            for part, of_part in keys:
                for part_object in part(originals):
                    of_part.see(part_object, number)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        for cell in bad:
            on_cell(cell.at(path, number))
        yield pool


_DECODER = msgspec.json.Decoder(WorkbenchLine)


def _pool(
    query_id: str,
    typed: WorkbenchLine,
    originals: Sequence[dict[str, Any]],
    scale: RatingScale | None,
    on_cell: OnError,
) -> QueryPool:
    passages: list[PooledPassage] = []
    seen: dict[str, int] = {}
    for index, passage in enumerate(typed.passages):
        place = f"[1][{index}]"
        if (earlier := seen.setdefault(passage.paragraph_id, index)) != index:
            raise InputError(
                f"passage {passage.paragraph_id!r} occurs twice for this query, first at "
                f"[1][{earlier}]",
                field=f"{place}.paragraph_id",
            )
        here = within(place, on_cell)
        try:
            passages.append(_passage(query_id, passage, originals[index], scale, here))
        except InputError as error:
            error.field = f"{place}.{error.field}"
            raise
    return QueryPool(query_id, tuple(passages))


def _passage(
    query_id: str,
    typed: PassageJson,
    original: dict[str, Any],
    scale: RatingScale | None,
    on_cell: OnError,
) -> PooledPassage:
    data = original.get("paragraph_data", {})
    bare = PooledPassage(
        typed.paragraph_id, typed.text, typed.title if isinstance(typed.title, str) else ""
    )
    # entries, judgments and rankings have separate residues
    entries_here = {key for key in _ENTRIES if original.get(key)}
    written, plain = (
        {key: value for key, value in version.items() if key not in entries_here}
        for version in (passage_json(bare), original)
    )
    if "paragraph_data" in plain:
        empty: dict[str, list[Any]] = {key: [] for key in DataJson.__struct_fields__ if key in data}
        plain["paragraph_data"] = {**data, **empty}
    return PooledPassage(
        bare.passage_id,
        bare.text,
        bare.title,
        _judgments(query_id, typed, data.get("judgments", [])),
        _rankings(query_id, typed, data.get("rankings", [])),
        tuple(_sheets(query_id, typed, original, scale, on_cell)),
        difference(written, plain),
    )


def _judgments(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[Judgment, Residue], ...]:
    read = [
        Judgment(query_id, typed.paragraph_id, one.relevance, subtopic_of(query_id, one.query))
        for one in typed.paragraph_data.judgments
    ]
    what = "this passage has two judgments for the same query"
    _refuse_repeated("judgments", (one.subtopic_id for one in read), lambda _: what)
    return tuple(zip(read, differences(map(_judgment_json, read), originals), strict=True))


def _rankings(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[RankedPassage, Residue], ...]:
    read = [
        RankedPassage(one.queryId or query_id, typed.paragraph_id, one.rank, one.score, one.method)
        for one in typed.paragraph_data.rankings
    ]
    keys = ((one.system, one.query_id) for one in read)
    _refuse_repeated("rankings", keys, lambda key: f"system {key[0]!r} ranks this passage twice")
    return tuple(zip(read, differences(map(_ranking_json, read), originals), strict=True))


def _refuse_repeated(name: str, keys: Iterable[Any], what: Callable[[Any], str]) -> None:
    """Raise InputError for the first key that occurs twice."""
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            raise InputError(what(key), field=f"paragraph_data.{name}[{index}]")
        seen.add(key)


def _sheets(
    query_id: str,
    typed: PassageJson,
    original: dict[str, Any],
    scale: RatingScale | None,
    on_cell: OnError,
) -> Iterator[PassageGrades]:
    exam, direct = original.get("exam_grades") or [], original.get("grades") or []
    parsed = entries(typed.exam_grades, typed.grades, scale)
    for entry, plain in zip(parsed, [*exam, *direct], strict=True):
        cells = cells_of_entry(query_id, entry, on_cell)
        bare = PassageGrades(entry.head.identity, cells, target=entry.head.target)
        residue = residue_of(bare, plain, open_scale=entry.head.open_scale)
        yield bare if residue is None else replace(bare, residue=residue)


# ---- writing ------------------------------------------------------------------------------------


def write(path: str | Path, pools: Iterable[QueryPool]) -> None:
    """Write pools as a Workbench file; equal as JSON to the file they were read from."""
    with writing(path) as stream:
        for pool in pools:
            passages = [
                restored(passage_json(passage), passage.residue) for passage in pool.passages
            ]
            stream.write(msgspec.json.encode([pool.query_id, passages]) + b"\n")


def passage_json(passage: PooledPassage) -> dict[str, Any]:
    """Return a passage in the format, before its residue is applied."""
    exam = [sheet for sheet in passage.sheets if sheet.grader.kind != "query"]
    direct = [sheet for sheet in passage.sheets if sheet.grader.kind == "query"]
    counts: dict[str, int] = {}
    written: dict[str, Any] = {
        "paragraph_id": passage.passage_id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        "paragraph": {},
        "paragraph_data": {
            "judgments": [restored(_judgment_json(j), r) for j, r in passage.judgments],
            "rankings": [restored(_ranking_json(ranked), r) for ranked, r in passage.rankings],
        },
        "exam_grades": _with_origins(exam, [sheet_json(sheet, counts) for sheet in exam]),
    }
    if direct:
        written["grades"] = [sheet_json(sheet, counts) for sheet in direct]
    return written


_OF_ORIGIN = {"orig_prompt_class": "prompt_class", "prompt_style": "prompt_style"}
"""Workbench fields of verified answers, and the prompt fields that they replace."""


def _with_origins(
    sheets: Sequence[PassageGrades], written: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the entries; those of verified answers name the prompt that extracted them."""
    head = {
        sheet.grader.key: entry.get("prompt_info")
        for sheet, entry in zip(sheets, written, strict=True)
    }
    for sheet, entry in zip(sheets, written, strict=True):
        origin = head.get(sheet.grader.settings.get("answers_of", ""))
        if isinstance(origin, dict) and isinstance(entry.get("prompt_info"), dict):
            replaced = {key: origin[name] for key, name in _OF_ORIGIN.items() if name in origin}
            entry["prompt_info"] = {**entry["prompt_info"], **replaced}
    return written


def _judgment_json(judgment: Judgment) -> dict[str, Any]:
    query = "/".join(part for part in (judgment.query_id, judgment.subtopic_id) if part)
    return {
        "paragraphId": judgment.passage_id,
        "query": query,
        "relevance": judgment.relevance,
        "titleQuery": query,
    }


def _ranking_json(ranked: RankedPassage) -> dict[str, Any]:
    return {
        "method": ranked.system,
        "paragraphId": ranked.passage_id,
        "queryId": ranked.query_id,
        "rank": ranked.rank,
        "score": ranked.score,
    }


_START = re.compile(r'\s*\[\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*\[')

FORMAT = Format(
    "",
    lambda path, how: read(path, how.on_error, scale=how.scale, on_cell=how.on_cell),
    write,
    lambda sample: _START.match(sample.head) is not None,
    name="workbench",
    record=QueryPool,
    looks="graded passages, JSON-lines of `[query_id, [passage, ...]]`",
    source="Autograding Workbench",
    lossless="yes",
)
