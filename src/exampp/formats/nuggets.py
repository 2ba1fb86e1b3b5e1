"""Nuggets of castorini's nuggetizer and of TREC, and judgments of castorini's umbrela.

nuggetizer writes one query per line; each nugget is vital or okay: `{"query": "...", "qid": "...",
"nuggets": [{"text": "...", "importance": "vital"}]}`. The `importance` gives the weight; a nugget
without an importance is vital, as in nuggetizer. Fields that nuggetizer does not read (`item_id`,
`subtopic_id`, `kind`, `gold_answers`) are written only if reading could not restore them.

umbrela writes one line per query and passage, with their texts but no ids, and a `judgment` of 0 to
3. `result_status` 0 means that it could not read the reply and wrote 0; exampp does not import such
a 0 as a grade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats import plain_bank
from exampp.formats.fields import BANK_KINDS, brief, importance_word, weight_of
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import (
    JSON_OBJECT,
    Json,
    expect,
    json_id,
    member,
    optional,
    spoken,
    without,
)
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    encode_json,
    encode_text,
    parse_lines,
    placed,
    raise_error,
    read_lines,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys, add_warning
from exampp.formats.several_banks import names_of_banks
from exampp.records import BankEntry, Grade, GraderIdentity, Item, State, item_id
from exampp.records.items import WEIGHTS, importance, importance_of

_QUERY_KEYS = ("query", "qid", "nuggets")
_NUGGET_KEYS = ("text", "item_id", "subtopic_id", "kind", "gold_answers")


def read_nuggetizer(
    path: str | Path, on_error: OnError = raise_error, *, by_run: bool = False
) -> Iterator[BankEntry]:
    """Yield the bank in file order, one entry per query and subtopic.

    `extra` stores the other fields of lines and nuggets (importance, reasoning ...). With a
    skipping `on_error`, a bad nugget is skipped alone.

    Raises:
        InputError: A line without qid or nuggets, a nugget without text or with another importance
            than vital and okay (nuggetizer writes `failed` if it cannot tell), or a duplicate query
            or nugget.
    """
    of_line = Keys(path, (*_QUERY_KEYS, "bank"), stored=True)
    of_nugget = Keys(path, (*_NUGGET_KEYS, "importance"), "nuggets[].", stored=True)
    banks = names_of_banks(path, whole_queries=True, by_run=by_run)

    def parse(line: bytes, number: int) -> tuple[str, str, list[Item], Json, str]:
        value = decode_json(line, JSON_OBJECT, path, number)
        read = _QUERY_KEYS if value.get("query") else (*_QUERY_KEYS, "text")
        of_line.see(value, number, read)
        query_id, query_text = query_of(value)
        for nugget in value["nuggets"] if isinstance(value.get("nuggets"), list) else ():
            fields = nugget if isinstance(nugget, dict) else {}
            of_nugget.see(fields, number)
            if "assignment" in fields:
                raise InputError(
                    "the nuggets have assignments, but the line has no text",
                    field="nuggets[].assignment",
                    hint="Add answer_text and run_id, or candidate_text and docid",
                )
        items = items_of(query_id, value, placed(on_error, path, number))
        extra = without(value, *read, "bank")
        return query_id, query_text, items, extra, banks.get(number, "")

    key = Key(lambda one: (one[4], one[0]), lambda one: f"query {brief(one[0])}", "qid")
    for query_id, text, items, extra, bank in parse_lines(path, on_error, parse, key):
        for entry in entries_of(query_id, text, items, extra):
            yield replace(entry, bank=bank)


def query_of(value: Json) -> tuple[str, str]:
    """Return (id, text) of a line's query, which may be a nested object."""
    if isinstance(value.get("query"), dict):
        query = value["query"]
        return json_id(query, "qid", "query"), optional(query, "text", str, "query") or ""
    text = optional(value, "query", str) or optional(value, "text", str)
    return json_id(value, "qid"), text or ""


def items_of(
    query_id: str,
    value: Json,
    on_error: OnError,
    default_weight: float | None = None,
) -> list[Item]:
    """Return the nuggets of a line; a bad one goes to `on_error`.

    `default_weight` is the weight of an importance that is neither vital nor okay; without it, such
    a nugget is bad.
    """
    items: dict[tuple[str, str], Item] = {}
    for number, nugget in enumerate(member(value, "nuggets", list)):
        place = f"nuggets[{number}]"
        try:
            item = _nuggetizer_item(query_id, expect(nugget, dict, place), place, default_weight)
            if (item.kind, item.item_id) in items:
                raise InputError(
                    f"nugget {brief(item.text)} of query {brief(query_id)} occurs twice",
                    field=place,
                    hint="Remove one of them",
                )
        except InputError as error:
            on_error(error)
        else:
            items[item.kind, item.item_id] = item
    return list(items.values())


def _nuggetizer_item(query_id: str, nugget: Json, place: str, default_weight: float | None) -> Item:
    text = spoken(nugget, "text", place)
    subtopic_id = optional(nugget, "subtopic_id", str, place) or None
    kind = optional(nugget, "kind", str, place) or "nugget"
    if kind not in BANK_KINDS:
        raise InputError(f"unknown kind {brief(kind)}", field=f"{place}.kind")
    answers = optional(nugget, "gold_answers", list, place) or []
    importance = optional(nugget, "importance", str, place)
    return Item(
        optional(nugget, "item_id", str, place) or item_id(query_id, text, subtopic_id),
        query_id,
        text,
        kind,
        subtopic_id,
        tuple(expect(answer, str, f"{place}.gold_answers") for answer in answers),
        1.0 if importance is None else weight_of(importance, f"{place}.importance", default_weight),
        without(nugget, *_NUGGET_KEYS),
    )


def entries_of(query_id: str, text: str, items: list[Item], extra: Json) -> Iterator[BankEntry]:
    """Yield one entry per subtopic of a query; the first has the `extra`."""
    by_subtopic: dict[str | None, list[Item]] = {} if items else {None: []}
    for item in items:
        by_subtopic.setdefault(item.subtopic_id, []).append(item)
    for number, (subtopic_id, group) in enumerate(by_subtopic.items()):
        yield BankEntry(query_id, tuple(group), text, subtopic_id, extra={} if number else extra)


def write_nuggetizer(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write a bank, the entries of one query as one line.

    Raises:
        InputError: A weight is neither 1 (vital) nor 0.5 (okay).
    """
    lines: dict[str, Json] = {}
    for entry in entries:
        head = {"query": entry.query_text, "qid": entry.query_id, "nuggets": []}
        line = lines.setdefault(entry.query_id, head)
        line["query"] = line["query"] or entry.query_text
        line["nuggets"] += [_nuggetizer_row(item, path) for item in entry.items]
        for key, value in without(dict(entry.extra), *_QUERY_KEYS).items():
            line.setdefault(key, value)
    with writing(path) as stream:
        for line in lines.values():
            stream.write(encode_json(line, path))


def _nuggetizer_row(item: Item, path: str | Path) -> Json:
    word = importance_word(item, "a nuggetizer file", path)
    own: Json = {"text": item.text, "importance": word}
    if item.item_id != item_id(item.query_id, item.text, item.subtopic_id):
        own["item_id"] = item.item_id
    if item.subtopic_id:
        own["subtopic_id"] = item.subtopic_id
    if item.kind != "nugget":
        own["kind"] = item.kind
    if item.answers:
        own["gold_answers"] = list(item.answers)
    return own | without(dict(item.extra), "importance", *_NUGGET_KEYS)


NUGGETS = Shape((("nuggets",), ("qid", "query")))
"""Objects with nuggets, with or without assignments."""
ASSIGNMENT_KEYS = frozenset({"answer_text", "candidate_text", "run_id"})
"""A line with one of these fields has assignments."""

NUGGETIZER = Format(
    "bank",
    lambda path, how: read_nuggetizer(path, how.on_error, by_run=how.by_run),
    write_nuggetizer,
    name="nuggetizer",
    shapes=(NUGGETS._replace(without=ASSIGNMENT_KEYS),),
    looks="JSON-lines of `qid`, `query` and `nuggets` (`text`, `importance`)",
    source="castorini's nuggetizer",
    lossless="yes",
)


# ---- assignments ---------------------------------------------------------------------------------


RATINGS = {"not_support": 0, "partial_support": 1, "support": 2}
GRADER = GraderIdentity("nuggetizer", "assignment", "nugget", 0, 2, {"format": "nuggetizer"})
"""Grader name of assignments; the files do not name the model."""
_ASSIGNED_KEYS = (*ASSIGNMENT_KEYS, "docid", "query", "text", "qid", "nuggets", "response_length")
_LISTED = 3


class Assigned(NamedTuple):
    """A text, the nuggets of the query, and which of them the text supports.

    The text is the answer of a system, or a passage (system None).
    """

    query_id: str
    query_text: str
    system: str | None
    answer: str
    items: tuple[Item, ...]
    grades: tuple[Grade, ...]
    response_length: Any = None
    passage_id: str = ""


def read_assignments(path: str | Path, on_error: OnError = raise_error) -> Iterator[Assigned]:
    """Yield the lines of a file in file order.

    An unknown label, which nuggetizer writes if it cannot read a reply, becomes an unparsed grade.
    A nugget without assignment has no grade. An unknown importance is stored in the nugget's
    `extra`.

    Raises:
        InputError: A line without a query, a text, a run or passage id, or nuggets, or a duplicate
            of a run or passage and query.
    """
    keys = Keys(path, _ASSIGNED_KEYS)
    strange: Counter[str] = Counter()

    def parse(line: bytes, number: int) -> Assigned:
        value = decode_json(line, JSON_OBJECT, path, number)
        keys.see(value, number)
        query_id, query_text = query_of(value)
        system, passage_id, answer = _assigned_text(value)
        # a failed importance does not invalidate the assignments
        nuggets = items_of(query_id, value, placed(on_error, path, number), default_weight=1.0)
        strange.update(filter(None, map(_strange_importance, nuggets)))
        grades = tuple(_grade(item) for item in nuggets if "assignment" in item.extra)
        items = tuple(replace(i, extra=without(dict(i.extra), "assignment")) for i in nuggets)
        length = value.get("response_length")
        return Assigned(query_id, query_text, system, answer, items, grades, length, passage_id)

    key = Key(lambda one: (one.query_id, one.system, one.passage_id), _assigned_name)
    yield from parse_lines(path, on_error, parse, key)
    if strange:
        words = ", ".join(f"{brief(word, 30)} ({n})" for word, n in strange.most_common(_LISTED))
        add_warning(
            path,
            None,
            f"{strange.total()} nuggets have an importance that is neither vital nor okay "
            f"(for example {words}). They count in NuggetAll, but not in NuggetVital and "
            "NuggetWeighted",
        )


def _assigned_name(one: Assigned) -> str:
    name = f"run {brief(one.system)}" if one.system else f"passage {brief(one.passage_id)}"
    return f"{name} with query {brief(one.query_id)}"


def _assigned_text(value: Json) -> tuple[str | None, str, str]:
    """Return (system or None, passage id or empty, text) of a line."""
    if "candidate_text" in value:
        return None, json_id(value, "docid"), spoken(value, "candidate_text")
    return json_id(value, "run_id"), "", spoken(value, "answer_text")


def _strange_importance(item: Item) -> str | None:
    """Return an importance other than vital and okay, or None."""
    word = importance(item.extra, item.weight)
    return None if word is None or word in WEIGHTS else word or "(empty)"


def _grade(item: Item) -> Grade:
    label = item.extra["assignment"]
    rating = RATINGS.get(label.strip().lower()) if isinstance(label, str) else None
    if rating is not None:
        return Grade(item.item_id, State.GRADED, rating, rule="imported")
    detail = {"reason": f"the assignment is {brief(label)}", "raw": label}
    return Grade(item.item_id, State.UNPARSED, rule="imported", detail=detail)


ASSIGNMENTS = Format(
    "bank",
    lambda path, how: read_assignments(path, how.on_error),
    name="assignments",
    shapes=(Shape((*NUGGETS.sets, ASSIGNMENT_KEYS)),),
    record=Assigned,
    looks="the same with `run_id`, `answer_text` and an `assignment` for every nugget; gives a "
    "bank, passages, rankings and grades",
    source="castorini's nuggetizer",
)


# ---- trec nuggets --------------------------------------------------------------------------------


_COLUMNS = 4
_HEADS = ("query_id", "qid", "topic_id", "topic")


def read_trec_nuggets(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield one entry per query, in the order of their first nuggets.

    A header line is skipped.

    Raises:
        InputError: A line does not have four columns, an id or text is blank, an importance is
            neither vital nor okay, or a nugget id occurs twice in a query.
    """
    start = next(read_lines(path))[0]

    def parse(line: bytes, number: int) -> Item | None:
        columns = text_of(line, path, number).split("\t")
        is_header = number == start and columns[0].strip().lower() in _HEADS
        return None if is_header else _trec_item(columns)

    by_query: dict[str, list[Item]] = {}
    key = Key(lambda item: item.item_id, lambda item: f"nugget {brief(item.item_id)}")
    for item in parse_lines(path, on_error, parse, key):
        by_query.setdefault(item.query_id, []).append(item)
    for query_id, items in by_query.items():
        yield BankEntry(query_id, tuple(items))


def _trec_item(columns: list[str]) -> Item:
    if len(columns) != _COLUMNS:
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 4 (query, nugget, "
            "vital or okay, text)",
            hint="Separate them by single tabs",
        )
    query_id, nugget_id, importance, text = (column.strip() for column in columns)
    for name, value in (("query_id", query_id), ("nugget_id", nugget_id), ("text", text)):
        if not value:
            raise InputError("the column is blank", field=name)
    own = nugget_id if nugget_id.startswith(f"{query_id}/") else f"{query_id}/{nugget_id}"
    weight = weight_of(importance, "importance")
    extra = {"importance": importance.lower()}
    return Item(own, query_id, text, "nugget", weight=weight, extra=extra)


def _is_column(text: str) -> bool:
    return text == text.strip() and "\t" not in text and text.splitlines() == [text]


def write_trec_nuggets(path: str | Path, entries: Iterable[BankEntry]) -> None:
    """Write nuggets, one per line.

    Raises:
        InputError: The format cannot express an item: a question, a known answer, a subtopic, a
            weight that is neither 1 (vital) nor 0.5 (okay), or a text with a tab or line end.
    """
    with writing(path) as stream:
        for entry in entries:
            for item in entry.items:
                word = importance_of(item.weight)
                parts = (item.query_id, item.item_id.removeprefix(f"{item.query_id}/"), item.text)
                is_plain = item.kind == "nugget" and not item.answers and item.subtopic_id is None
                if word is None or not is_plain or not all(map(_is_column, parts)):
                    raise InputError(
                        f"TREC nugget files cannot express item {brief(item.item_id)}: they "
                        "allow one-line nuggets, vital or okay, without known answers and "
                        "subtopics",
                        file=path,
                        hint="Write the bank as JSON-lines or CSV",
                    )
                line = f"{parts[0]}\t{parts[1]}\t{word}\t{parts[2]}\n"
                stream.write(encode_text(line, path))


def _sniff_trec(sample: FirstRecords) -> bool:
    if sample.is_json or sample.widths("\t") != {4}:
        return False
    words = [columns[2].strip().lower() for columns in sample.columns("\t")]
    return set(words) <= {*WEIGHTS} or (len(words) > 1 and set(words[1:]) <= {*WEIGHTS})


TREC_NUGGETS = Format(
    "bank",
    lambda path, how: read_trec_nuggets(path, how.on_error),
    write_trec_nuggets,
    _sniff_trec,
    name="trec-nuggets",
    file_name=r"nuggets\.(txt|tsv)$",
    looks="query, nugget id, vital or okay, text, separated by tabs",
    source="TREC",
    lossless="yes",
)


# ---- umbrela -------------------------------------------------------------------------------------


_JUDGED_KEYS = frozenset({"query", "passage", "judgment"})
"""A line has all of these fields."""
_HIGHEST_JUDGMENT = 3
_STORED = ("result_status", "reasoning")


class Judged(NamedTuple):
    """Relevance of a passage for a query; the importer creates the item."""

    query: str
    passage: str
    grader: GraderIdentity
    grade: Grade


def grader_of(model: str) -> GraderIdentity:
    """Return the grader of umbrela judgments; files name the model only in a trace."""
    return GraderIdentity(model, "umbrela", "query", 0, _HIGHEST_JUDGMENT, {"format": "umbrela"})


def read_umbrela(path: str | Path, on_error: OnError = raise_error) -> Iterator[Judged]:
    """Yield the judgments in file order.

    A judgment that is not a whole number from 0 to 3 becomes an unparsed grade.

    Raises:
        InputError: A line without a query, a passage or a judgment, or a duplicate judgment of one
            model.
    """
    keys = Keys(path, (*_JUDGED_KEYS, *_STORED, "model", "prediction"))

    def parse(line: bytes, number: int) -> Judged:
        value = decode_json(line, JSON_OBJECT, path, number)
        keys.see(value, number)
        if "judgment" not in value:
            raise InputError("missing `judgment`", field="judgment")
        query, passage = _judged_query(value), spoken(value, "passage")
        model = spoken(value, "model") if value.get("model") is not None else "umbrela"
        return Judged(query, passage, grader_of(model), _judged_grade(value))

    yield from parse_lines(path, on_error, parse, _JUDGED_KEY)


_JUDGED_KEY = Key(
    lambda one: (one.query, one.passage, one.grader.model),
    lambda one: f"passage {brief(one.passage)}",
    "passage",
)


def _judged_query(value: dict[str, Any]) -> str:
    query = value.get("query")
    return spoken(query, "text", "query") if isinstance(query, dict) else spoken(value, "query")


def _judged_grade(value: dict[str, Any]) -> Grade:
    judgment, reply = value["judgment"], value.get("prediction")
    reply_text = reply if isinstance(reply, str) else None
    detail = {key: value[key] for key in _STORED if key in value}
    is_rating = isinstance(judgment, int) and not isinstance(judgment, bool)
    if value.get("result_status") == 0:
        reason = "umbrela could not read the reply"
    elif is_rating and 0 <= judgment <= _HIGHEST_JUDGMENT:
        return Grade("", State.GRADED, judgment, reply_text, "imported", detail=detail or None)
    else:
        reason = f"the judgment is {brief(judgment)}"
    failure = {"reason": reason, "raw": judgment, **detail}
    return Grade("", State.UNPARSED, None, reply_text, "imported", detail=failure)


UMBRELA = Format(
    "",
    lambda path, how: read_umbrela(path, how.on_error),
    name="umbrela",
    shapes=(Shape((("query",), ("passage",), ("judgment",)), frozenset(plain_bank.QUERY_KEYS)),),
    record=Judged,
    looks="JSON-lines of `query`, `passage` and `judgment` (0 to 3), perhaps `model`, "
    "`prediction`, `result_status`; the query and the passage are found by their texts",
    source="castorini's umbrela",
)
