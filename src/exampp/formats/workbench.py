"""Graded passages in the Autograding Workbench's JSON-lines (paper 003, figure 4).

One line per query: `[query_id, [passage, ...]]`, each passage with its text, judgments, rankings,
exam grades (one entry per grader) and direct relevance grades. Whatever a file holds beyond that
is kept as residue and written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from exampp import prompts
from exampp.errors import InputError
from exampp.formats.lines import OnError, decode_json, decode_part, read_lines, refuse, valid_json
from exampp.formats.output import writing
from exampp.formats.residue import difference, restored
from exampp.formats.workbench_json import DirectJson, Line, MarksJson, PassageJson, SheetJson
from exampp.prompts.catalogue import by_workbench_class, load, workbench_class
from exampp.records import (
    ITEM_KINDS,
    Grade,
    GraderIdentity,
    Judgment,
    PooledPassage,
    QueryPool,
    Ranked,
    Residue,
    Sheet,
    State,
    facet_of,
)
from exampp.records.readings import IMPORTED, OTHERWISE

UNNAMED_CLASS = "QuestionPromptWithChoices"
"""The prompt of grades without prompt_info, which predate it."""


# ---- reading ------------------------------------------------------------------------------------


def read(path: str | Path, on_error: OnError = refuse) -> Iterator[QueryPool]:
    """Yield the pools of a workbench file, line by line.

    Raises InputError (through `on_error`) with line and field for anything malformed, a rating off
    its scale, a query or a passage that occurs twice.
    """
    decoder = msgspec.json.Decoder(Line)
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            line = valid_json(line, path, number)
            typed = decode_json(line, decoder, path, number)
            query_id = str(typed.query_id)
            check_new_query(query_id, number, seen)
            pool = _pool(query_id, typed.passages, decode_part(line, "[1]")[1])
        except InputError as error:
            on_error(error.at(path, number))
            continue
        yield pool


def check_new_query(query_id: str, number: int, seen: dict[str, int]) -> None:
    """Refuse a query that an earlier line held already."""
    if (earlier := seen.setdefault(query_id, number)) != number:
        raise InputError(
            f"query {query_id!r} occurs twice, first in line {earlier}",
            line=number,
            field="[0]",
            mend="Put all passages of a query into one line",
        )


def _pool(query_id: str, typed: Sequence[PassageJson], plain: Sequence[Any]) -> QueryPool:
    passages: list[PooledPassage] = []
    seen: dict[str, int] = {}
    for index, (passage, original) in enumerate(zip(typed, plain, strict=True)):
        check_new_passage(passage.paragraph_id, index, seen)
        try:
            passages.append(_passage(query_id, passage, original))
        except InputError as error:
            error.field = f"[1][{index}].{error.field}"
            raise
    return QueryPool(query_id, tuple(passages))


def check_new_passage(passage_id: str, index: int, seen: dict[str, int]) -> None:
    """Refuse a passage that an earlier place of the same line held already."""
    if (earlier := seen.setdefault(passage_id, index)) != index:
        raise InputError(
            f"passage {passage_id!r} occurs twice for this query, first as [1][{earlier}]",
            field=f"[1][{index}].paragraph_id",
        )


def _passage(query_id: str, typed: PassageJson, original: dict[str, Any]) -> PooledPassage:
    data = original.get("paragraph_data", {})
    exam = original.get("exam_grades") or []
    direct = original.get("grades") or []
    bare = PooledPassage(
        passage_id=typed.paragraph_id,
        text=typed.text,
        title=typed.title if isinstance(typed.title, str) else "",
        judgments=_judgments(query_id, typed, data.get("judgments", [])),
        rankings=_rankings(query_id, typed, data.get("rankings", [])),
        sheets=tuple(_sheets(query_id, typed, exam, direct)),
    )
    return replace(bare, residue=difference(passage_json(bare), original))


def _judgments(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[Judgment, Residue], ...]:
    found: list[tuple[Judgment, Residue]] = []
    seen: set[str | None] = set()
    for index, (entry, original) in enumerate(
        zip(typed.paragraph_data.judgments, originals, strict=True)
    ):
        facet = facet_of(query_id, entry.query)
        judgment = Judgment(query_id, typed.paragraph_id, entry.relevance, facet)
        if facet in seen:
            raise InputError(
                "this passage is judged twice for the same query",
                field=f"paragraph_data.judgments[{index}]",
            )
        seen.add(facet)
        found.append((judgment, difference(_judgment_json(judgment), original)))
    return tuple(found)


def _rankings(
    query_id: str, typed: PassageJson, originals: Sequence[Any]
) -> tuple[tuple[Ranked, Residue], ...]:
    found: list[tuple[Ranked, Residue]] = []
    seen: set[tuple[str, str]] = set()
    for index, (entry, original) in enumerate(
        zip(typed.paragraph_data.rankings, originals, strict=True)
    ):
        at = entry.queryId or query_id
        ranked = Ranked(at, typed.paragraph_id, entry.rank, entry.score, entry.method)
        if (entry.method, at) in seen:
            raise InputError(
                f"system {entry.method!r} ranks this passage twice",
                field=f"paragraph_data.rankings[{index}]",
            )
        seen.add((entry.method, at))
        found.append((ranked, difference(_ranking_json(ranked), original)))
    return tuple(found)


def _sheets(
    query_id: str, typed: PassageJson, exam: Sequence[Any], direct: Sequence[Any]
) -> Iterator[Sheet]:
    taken: dict[str, int] = {}
    for index, entry in enumerate(typed.exam_grades or ()):
        try:
            identity = repeated(exam_identity(entry), taken)
            grades = tuple(exam_grades(entry, identity))
        except InputError as error:
            error.field = f"exam_grades[{index}].{error.field}"
            raise
        bare = Sheet(identity, grades)
        yield Sheet(identity, grades, difference(sheet_json(bare), exam[index]))
    for index, single in enumerate(typed.grades or ()):
        try:
            identity = repeated(direct_identity(single), taken)
            grade = direct_grade(query_id, single, identity)
        except InputError as error:
            error.field = f"grades[{index}].{error.field}"
            raise
        bare = Sheet(identity, (grade,))
        yield Sheet(identity, (grade,), difference(sheet_json(bare), direct[index]))


def repeated(identity: GraderIdentity, taken: dict[str, int]) -> GraderIdentity:
    """The identity, numbered where the same grader graded the same passage before.

    Regrading appends to a workbench file; the takes stay apart, so that none is chosen silently.
    """
    count = taken[identity.key] = taken.get(identity.key, 0) + 1
    if count == 1:
        return identity
    settings = {**identity.settings, "repetition": count}
    return GraderIdentity(
        identity.model, identity.prompt, identity.kind, identity.lowest, identity.highest, settings
    )


def exam_identity(entry: MarksJson) -> GraderIdentity:
    """Who made an exam grade."""
    rated = entry.self_ratings is not None
    nugget = rated and any(rating.nugget_id for rating in entry.self_ratings or ())
    return _identity(
        entry.llm,
        entry.llm_options,
        entry.prompt_info,
        entry.prompt_type,
        kind="nugget" if nugget else "question",
        highest=5 if rated else 1,
    )


def direct_identity(entry: DirectJson) -> GraderIdentity:
    """Who made a direct relevance grade; whoever reads several takes the widest scale of them."""
    highest = 1 if entry.self_ratings is None and entry.relevance_label is None else 5
    return _identity(
        entry.llm,
        entry.llm_options,
        entry.prompt_info,
        entry.prompt_type,
        kind="query",
        highest=highest,
    )


_KIND_OF_TYPE = {"question": "question", "nugget": "nugget", "direct_grading": "query"}
_identities: dict[tuple[Any, ...], GraderIdentity] = {}


def _identity(
    llm: str,
    options: msgspec.Raw,
    info: msgspec.Raw,
    prompt_type: str | None,
    *,
    kind: str,
    highest: int,
) -> GraderIdentity:
    key = (llm, bytes(options), bytes(info), prompt_type, kind, highest)
    known = _identities.get(key)
    if known is None:
        known = _identities[key] = _read_identity(*key)
    return known


def _read_identity(
    llm: str, options: bytes, info: bytes, prompt_type: str | None, kind: str, highest: int
) -> GraderIdentity:
    decoded_options = decode_part(options, "llm_options")
    decoded_info = decode_part(info, "prompt_info")
    ours = decoded_options.get("exampp") if isinstance(decoded_options, dict) else None
    if ours is not None:
        return _our_identity(ours)
    if not isinstance(decoded_info, dict | None):
        raise InputError("Expected `object | null`", field="prompt_info")
    prompt_class = (decoded_info or {}).get("prompt_class") or UNNAMED_CLASS
    if not isinstance(prompt_class, str):
        raise InputError("Expected `str`", field="prompt_info.prompt_class")
    name = by_workbench_class(prompt_class)
    if name is not None:
        prompt = load(name)
        highest = prompt.highest if kind != "query" or highest > 1 else min(highest, prompt.highest)
        kind = kind if kind in prompt.grades else prompt.grades[0]
    elif kind != "query":
        kind = _KIND_OF_TYPE.get(prompt_type or "", "nugget" if "Nugget" in prompt_class else kind)
    settings: dict[str, Any] = {"llm_options": decoded_options, "prompt_info": decoded_info}
    if prompt_type is not None:
        settings["prompt_type"] = prompt_type
    return GraderIdentity(llm, name or prompt_class, kind, 0, highest, settings)


def _our_identity(value: Any) -> GraderIdentity:
    try:
        identity = msgspec.convert(value, GraderIdentity)
    except msgspec.ValidationError as error:
        raise InputError(str(error), field="llm_options.exampp") from None
    if identity.kind not in ITEM_KINDS:
        raise InputError(f"{identity.kind!r} is no kind of item", field="llm_options.exampp.kind")
    return identity


def exam_grades(entry: SheetJson, identity: GraderIdentity) -> Iterator[Grade]:
    """The cells of an exam grade, in the order of its answers."""
    ratings = marks(entry, identity)
    replies = dict(entry.answers)
    if len(replies) != len(entry.answers):
        raise InputError("an item is answered twice", field="answers")
    faults = entry.llm_response_errors or {}
    for item_id in dict.fromkeys([*replies, *ratings, *faults]):
        reply = replies.get(item_id)
        rating = ratings.get(item_id)
        if item_id in faults:
            yield Grade(item_id, State.FAILED, None, reply, detail={"reason": faults[item_id]})
        elif rating is None:
            yield Grade(item_id, State.UNPARSED, None, reply, rule=IMPORTED)
        else:
            yield Grade(item_id, State.GRADED, rating, reply, rule_of(identity, reply, rating))


def marks(entry: MarksJson, identity: GraderIdentity) -> dict[str, int]:
    """Rating by item of an exam grade: its self-ratings, or 1 and 0 for its verdicts."""
    if entry.self_ratings is None:
        found = dict.fromkeys(entry.correctAnswered, 1) | dict.fromkeys(entry.wrongAnswered, 0)
        stated = len(entry.correctAnswered) + len(entry.wrongAnswered)
    else:
        lowest, highest = identity.lowest, identity.highest
        found = {}
        for index, rating in enumerate(entry.self_ratings):
            item_id = rating.question_id or rating.nugget_id
            if item_id is None:
                where = f"self_ratings[{index}]"
                raise InputError("neither question_id nor nugget_id", field=where)
            if not lowest <= rating.self_rating <= highest:
                raise InputError(
                    f"rating {rating.self_rating} is off the scale {lowest}..{highest}",
                    field=f"self_ratings[{index}].self_rating",
                )
            found[item_id] = rating.self_rating
        stated = len(entry.self_ratings)
    if len(found) != stated:
        raise InputError("an item is graded twice", field="self_ratings or correctAnswered")
    return found


def direct_grade(query_id: str, entry: DirectJson, identity: GraderIdentity) -> Grade:
    """The cell of a direct relevance grade; its item is the query."""
    if entry.llm_response_error is not None:
        detail = {"reason": entry.llm_response_error}
        return Grade(query_id, State.FAILED, None, entry.answer, detail=detail)
    stated = (entry.self_ratings, entry.relevance_label, int(entry.correctAnswered))
    rating = next(value for value in stated if value is not None)
    if not identity.lowest <= rating <= identity.highest:
        raise InputError(
            f"rating {rating} is off the scale {identity.lowest}..{identity.highest}",
            field="self_ratings",
        )
    rule = rule_of(identity, entry.answer, rating)
    return Grade(query_id, State.GRADED, rating, entry.answer, rule)


def rule_of(identity: GraderIdentity, reply: str | None, rating: int) -> str:
    """The rule by which exampp reads the same rating from a reply; what else a file may say.

    `IMPORTED` where there is no reply, or no rules that read one without the answer keys;
    `OTHERWISE` where exampp reads another rating, or none.
    """
    if not reply:
        return IMPORTED
    return _rule(identity.prompt, identity.highest, reply, rating)


@lru_cache(maxsize=8192)
def _rule(prompt_name: str, highest: int, reply: str, rating: int) -> str:
    try:
        prompt = load(prompt_name)
    except InputError:
        return IMPORTED
    if prompt.reading not in _READ_FROM_FILES:
        return IMPORTED
    found = prompts.read(
        prompt.reading, reply, lowest=prompt.lowest, highest=highest, field=prompt.field
    )
    return found.rule if found.rating == rating else OTHERWISE


_READ_FROM_FILES = frozenset({"self-rating", "rating", "yes-no"})
"""Readings for which a reply is enough."""


# ---- writing ------------------------------------------------------------------------------------


def write(path: str | Path, pools: Iterable[QueryPool]) -> None:
    """Write pools as a workbench file; equal as JSON to the file they were read from."""
    with writing(path) as stream:
        for pool in pools:
            passages = [
                restored(passage_json(passage), passage.residue) for passage in pool.passages
            ]
            stream.write(msgspec.json.encode([pool.query_id, passages]) + b"\n")


def passage_json(passage: PooledPassage) -> dict[str, Any]:
    """A passage as the format wants it, its own residue not yet applied."""
    exam = [sheet for sheet in passage.sheets if sheet.grader.kind != "query"]
    direct = [sheet for sheet in passage.sheets if sheet.grader.kind == "query"]
    written: dict[str, Any] = {
        "paragraph_id": passage.passage_id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        "paragraph": {},
        "paragraph_data": {
            "judgments": [restored(_judgment_json(j), r) for j, r in passage.judgments],
            "rankings": [restored(_ranking_json(ranked), r) for ranked, r in passage.rankings],
        },
        "exam_grades": [restored(sheet_json(sheet), sheet.residue) for sheet in exam],
    }
    if direct:
        written["grades"] = [restored(sheet_json(sheet), sheet.residue) for sheet in direct]
    return written


def _judgment_json(judgment: Judgment) -> dict[str, Any]:
    query = "/".join(part for part in (judgment.query_id, judgment.facet_id) if part)
    return {
        "paragraphId": judgment.passage_id,
        "query": query,
        "relevance": judgment.relevance,
        "titleQuery": query,
    }


def _ranking_json(ranked: Ranked) -> dict[str, Any]:
    return {
        "method": ranked.system,
        "paragraphId": ranked.passage_id,
        "queryId": ranked.query_id,
        "rank": ranked.rank,
        "score": ranked.score,
    }


def sheet_json(sheet: Sheet) -> dict[str, Any]:
    """An entry of `exam_grades` or `grades`, its residue not yet applied."""
    head = _grader_json(sheet.grader)
    if sheet.grader.kind == "query":
        grade = sheet.grades[0]
        written = {**head, "answer": grade.reply or "", "correctAnswered": bool(grade.rating)}
        if sheet.grader.highest > 1 and grade.rating is not None:
            written["self_ratings"] = grade.rating
        if grade.state is not State.GRADED:
            written["llm_response_error"] = _reason(grade)
        return written
    graded = [grade for grade in sheet.grades if grade.rating is not None]
    correct = [grade.item_id for grade in graded if grade.rating]
    answers = [[grade.item_id, grade.reply] for grade in sheet.grades if grade.reply is not None]
    written = {
        **head,
        "correctAnswered": correct,
        "wrongAnswered": [grade.item_id for grade in graded if not grade.rating],
        "answers": answers,
        "exam_ratio": len(correct) / len(graded) if graded else 0.0,
    }
    if sheet.grader.highest > 1:
        id_key = f"{sheet.grader.kind}_id"
        written["self_ratings"] = [
            {id_key: grade.item_id, "self_rating": grade.rating} for grade in graded
        ]
    if faults := {g.item_id: _reason(g) for g in sheet.grades if g.state is State.FAILED}:
        written["llm_response_errors"] = faults
    return written


def _reason(grade: Grade) -> str:
    return str((grade.detail or {}).get("reason", grade.state.name.lower()))


def _grader_json(grader: GraderIdentity) -> dict[str, Any]:
    settings = grader.settings
    if "llm_options" in settings:
        head = {"llm": grader.model, "llm_options": settings["llm_options"]}
        if settings.get("prompt_info") is not None:
            head["prompt_info"] = settings["prompt_info"]
        if "prompt_type" in settings:
            head["prompt_type"] = settings["prompt_type"]
        return head
    identity = {
        "model": grader.model,
        "prompt": grader.prompt,
        "kind": grader.kind,
        "lowest": grader.lowest,
        "highest": grader.highest,
        "settings": dict(settings),
    }
    return {
        "llm": grader.model,
        "llm_options": {"exampp": identity},
        "prompt_info": _prompt_info(grader),
        "prompt_type": {"query": "direct_grading"}.get(grader.kind, grader.kind),
    }


def _prompt_info(grader: GraderIdentity) -> Mapping[str, Any]:
    """The reference's words for a bundled prompt; for others the same fields, with its own name."""
    info: dict[str, Any] = {
        "prompt_class": grader.prompt,
        "prompt_style": grader.prompt,
        "context_first": False,
        "check_unanswerable": True,
        "check_answer_key": False,
        "is_self_rated": grader.highest > 1,
    }
    prompt_class = workbench_class(grader.prompt)
    if prompt_class is not None:
        declared = load(grader.prompt).workbench
        info |= {name: declared[name] for name in info if name in declared}
        info["prompt_class"] = prompt_class
    return info
