"""One record of a RAG program: the question, contexts, answer and references of a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.formats.columns import Row, names_of
from exampp.formats.fields import brief, normalize_name, real, text_digest
from exampp.formats.literals import literal
from exampp.formats.preset import OUTER, Paths, Preset
from exampp.formats.rag_values import (
    SourcedText,
    answerability,
    check_dotted_path,
    documents_of,
    find_value,
    flat,
    holds_text,
    id_of,
    ids_of,
    is_answerability,
    is_dialogue,
    is_documents,
    is_history,
    message_text,
    opened_text,
    replies_of,
    text_values,
    with_history,
)
from exampp.formats.read_warnings import is_empty
from exampp.formats.record_rows import Cells

_QUESTION_KEYS = (
    *("question", "query", "input", "inputs", "user_input", "user_query", "prompt", "text"),
    *("content", "message", "messages"),
)
_ANSWER_KEYS = (
    *("answer", "output", "outputs", "response", "result", "completion", "text", "content"),
    *("message", "messages", "choices", "replies"),
)
CONTEXTS_BESIDE = (*names_of("contexts"), "sources")
"""Names of contexts in the object that has the answer."""
_LONGEST_SYSTEM = 60
_PASSAGE_IDS = ("docid", "doc_id", "docId", "document_id", "passage_id", "corpus_id", "_id", "id")
_LABELS = ("rating", "relevance", "grade", "label", "judgment", "score", "rel")


class RagItem(NamedTuple):
    """An item of a bank; the kind is "question" or "nugget"."""

    text: str
    weight: float = 1.0
    kind: str = "nugget"
    answers: tuple[str, ...] = ()


class RagRecord(NamedTuple):
    """One question to a RAG system; missing fields are empty.

    `system` is empty if only the file names the system, `query` if the record names its question by
    id. `judgments` are (passage, label).
    """

    query_id: str
    query: str
    contexts: tuple[SourcedText, ...] = ()
    response: str = ""
    references: tuple[str, ...] = ()
    relevant: tuple[SourcedText, ...] = ()
    system: str = ""
    items: tuple[RagItem, ...] = ()
    judgments: tuple[tuple[str, int], ...] = ()
    answerable: bool | None = None

    def joined(self, other: RagRecord) -> RagRecord | None:
        """Return both records as one if they differ in what a bank or judgments have, or None."""
        joined = self._replace(
            references=tuple(dict.fromkeys(self.references + other.references)),
            relevant=tuple(dict.fromkeys(self.relevant + other.relevant)),
            items=tuple(dict.fromkeys(self.items + other.items)),
            judgments=tuple(dict.fromkeys(self.judgments + other.judgments)),
        )
        results = (
            (one.query_id, one.query, one.contexts, one.response, one.system)
            for one in (self, other)
        )
        is_same = len({*results}) == 1
        return joined if is_same and joined not in (self, other) else None


def part_of_system(row: Row, preset: Preset, paths: Paths, used: set[str]) -> str:
    """Return a part of a system name, which must fit into one column of run files."""
    place, value = _first(row, preset, paths, used)
    if isinstance(value, list) and len(value) == 1 and "." in place:
        (value,) = value
    if isinstance(value, list):
        raise InputError(
            "is a list instead of the name of a system",
            field=place,
            hint="Name a field that has a text or a whole number",
        )
    text = "_".join(str(value).split()) if isinstance(value, str | int) else ""
    return text if len(text) <= _LONGEST_SYSTEM else f"{text[:30]}_{text_digest(text)[:8]}"


def _first(row: Row, preset: Preset, paths: Paths, used: set[str]) -> tuple[str, Any]:
    path, value = find_value(row, paths, in_lists=True)
    for one in paths if preset.checks_paths and not path else ():
        check_dotted_path(row, one)
    used |= {path} - {""}
    return path, value


def unread_paths(value: Any, used: set[str], path: str | None = None) -> Iterator[str]:
    """Yield the paths of non-empty values that were not read, without list indexes."""
    inside = "" if path is None else f"{path}."
    shown = path or '""'
    if path is None or any(one.startswith(inside) for one in used):
        for row in flat(value):
            if not isinstance(row, dict):
                yield from () if is_empty(row) else (shown,)
                continue
            for key in row:
                if f"{inside}{key}" not in used and key != OUTER:
                    yield from unread_paths(row[key], used, f"{inside}{key}")
    elif not is_empty(value):
        yield shown


def read_record(
    row: Row, preset: Preset, used: set[str], shared: Mapping[str, str], *, is_bank: bool
) -> tuple[RagRecord, int]:
    """Return the record of a row, and the number of its contexts without text."""

    def first(field: str) -> tuple[str, Any]:
        return _first(row, preset, preset.paths(field), used)

    asked_at, asked = first("query")
    query = _query(row, preset, used, (asked_at, asked))
    _use_part(used, asked_at, asked, _QUESTION_KEYS)
    place, value = first("contexts")
    keys = preset.document_id, preset.document_text
    ids_at, ids = first("ids")
    contexts, blank = documents_of(value, place, *keys, ids, shared)
    if not place and ids_at:
        contexts = tuple(SourcedText(name, "") for name in ids_of(ids_at, ids))
    # a message that is the question, without roles, is not the answer, too
    is_message = asked_at in preset.paths("response") and not is_dialogue(flat(asked))
    response = "" if is_message else _response(row, preset, used)
    if not contexts:
        contexts = _contexts_beside(row, preset, used, shared)
    if (
        not response and isinstance(asked, list) and is_dialogue(flat(asked))
    ):  # messages may end with the answer
        response = message_text(asked, asked_at)
    place, value = first("query_id")
    query_id = id_of(value, place)
    place, value = first("reference")
    if isinstance(value, dict) and not holds_text(value) and find_value(value, _ANSWER_KEYS)[0]:
        value = opened_text(value, _ANSWER_KEYS, place)
    references = text_values(value, place)
    place, value = first("relevant")
    relevant, no_text = documents_of(value, place, *keys, None, shared)
    relevant += tuple(SourcedText(name, "") for name in ids_of(*first("relevant_ids")))
    items = tuple(_items(row, first("items"), preset, used))
    judgments = tuple(_judgments(row, first("judgments")))
    is_key = bool(references or relevant or items or judgments) or preset.has_questions_alone
    if not (contexts or response or (is_key if is_bank else _has_no_context(row, preset))):
        raise _no_result(row, preset)
    identity = query_id or text_digest(query), query
    answerable = answerability(row)
    used |= {*filter(is_answerability, row if answerable is not None else ())}
    record = RagRecord(
        *identity,
        contexts,
        response,
        references,
        relevant,
        items=items,
        judgments=judgments,
        answerable=answerable,
    )
    return record, blank + no_text


def _items(row: Row, source: tuple[str, Any], preset: Preset, used: set[str]) -> Iterator[RagItem]:
    """Yield the items of a bank: texts, or objects with a text, perhaps a weight and answers.

    The weight of a single text is in its row.
    """
    place, value = source
    for number, one in enumerate(value if isinstance(value, list) else [value] if place else []):
        field = f"{place}[{number}]"
        key, inside = find_value(one, preset.item_text)
        text = message_text(inside, f"{field}.{key}") if key else message_text(one, field)
        key, weight = find_value(row if isinstance(value, str) else one, preset.item_weight)
        used |= {key} - {""} if isinstance(value, str) else set()
        weight = preset.weights.get(weight, weight) if isinstance(weight, str) else weight
        if isinstance(row, Cells) and isinstance(weight, str):
            weight = real(weight, key)
        if key and (isinstance(weight, bool) or not isinstance(weight, int | float)):
            raise InputError(f"must be a number, not {brief(weight)}", field=f"{field}.{key}")
        answers_at, answers = find_value(one, preset.item_answers, in_lists=True)
        if text:
            yield RagItem(
                text,
                float(weight) if key else 1.0,
                "question" if preset.item_answers else "nugget",
                text_values(answers, f"{field}.{answers_at}"),
            )


def _judgments(row: Row, source: tuple[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the judged passages: labels by id, ids by label, or a list of objects with both.

    A list of labels belongs to the passage of its row.
    """
    place, value = source
    pairs: list[tuple[Any, Any]] = []
    for key, one in value.items() if isinstance(value, dict) else ():
        named = [(passage, key) for passage in one] if isinstance(one, list) else []
        pairs += named or [(key, one["gain"] if isinstance(one, dict) and "gain" in one else one)]
    for number, one in enumerate(value if isinstance(value, list) else ()):
        passage = find_value(one, _PASSAGE_IDS)[1] or find_value(row, _PASSAGE_IDS)[1]
        pairs.append((passage, find_value(one, _LABELS)[1]))
        if None in pairs[-1]:
            raise InputError(
                f"a judgment has no passage (any of {', '.join(_PASSAGE_IDS)}) or no label (any "
                f"of {', '.join(_LABELS)})",
                field=f"{place}[{number}]",
            )
    for passage, label in pairs:
        with suppress(ValueError):
            label = float(label) if isinstance(label, str) else label
        if isinstance(label, bool) or not isinstance(label, int | float) or label % 1:
            raise InputError(f"a label must be a whole number, not {brief(label)}", field=place)
        yield id_of(passage, place), int(label)


def _has_no_context(row: Row, preset: Preset) -> bool:
    """Return whether a record has an empty list of contexts, and no field of an answer."""
    return any(row.get(one) == [] for one in preset.paths("contexts")) and not any(
        one.partition(".")[0] in row for one in preset.paths("response")
    )


def _no_result(row: Row, preset: Preset) -> InputError:
    """Return the error for a record without any result of a system."""
    required = (*preset.paths("contexts"), *preset.paths("response"))
    place, value = find_value(row, required, in_lists=True)
    empty = [
        one
        for one in required
        if one.partition(".")[0] in row and not find_value(row, (one,), in_lists=True)[0]
    ]
    if is_dialogue(value):
        empty = [place]
        what = "the conversation ends without a message of the system"
    elif empty:
        verb = "is" if len(empty) == 1 else "are"
        what = f"the system returned nothing: {', '.join(empty)} {verb} empty"
    else:
        what = f"missing results of a system{_any_of(required)}"
    failed = row.get("error")
    return InputError(
        f"{what}; its error is {failed}" if isinstance(failed, str) and failed else what,
        field=next(iter(empty or required), ""),
        hint="--on-error skip leaves such lines out; a query that a system does not answer "
        "counts 0",
    )


def _any_of(paths: Paths) -> str:
    return f" (any of {', '.join(paths)})" if paths else ""


def _query(row: Row, preset: Preset, used: set[str], source: tuple[str, Any]) -> str:
    place, value = source
    if isinstance(value, dict) and "0" in value:
        raise InputError(
            "is a column-wise table",
            field=place,
            hint="Write one record per line, as pandas does with to_json(FILE, "
            "orient='records', lines=True)",
        )
    query = _text(value, place, preset, is_question=True)
    heads = {path.partition(".")[0] for path in preset.paths("query") if "." in path}
    for head in ("", *sorted(heads)) if query and not preset.spans else ():
        holder = row.get(head) if head else row
        if isinstance(holder, dict) and (whole := with_history(holder, query)) != query:
            query = whole
            used |= {f"{head}.{name}".lstrip(".") for name in holder if is_history(name)}
    is_named = not preset.paths("query") and find_value(row, preset.paths("query_id"))[0]
    if not query and not is_named:
        known = ", ".join(map(str, row))
        names = preset.paths("query")
        missing = f"missing question{_any_of(names)}; fields found: {known}"
        raise InputError(
            "the question is empty" if place else missing, field=place or next(iter(names), "")
        )
    return query


def _response(row: Row, preset: Preset, used: set[str]) -> str:
    # the first existing field is used, even if empty: a later `answer` may be the reference
    for path in preset.paths("response"):
        if path in row or find_value(row, (path,), in_lists=True)[0]:
            value = _first(row, preset, (path,), used)[1]
            text = _text(value, path, preset)
            _use_part(used, path, value, _ANSWER_KEYS)
            return re.sub(rf"\A(?:{preset.response_prefix})", "", text)
    for path in preset.paths("response") if preset.checks_paths else ():
        check_dotted_path(row, path)
    return ""


def path_above(fields_of: Mapping[str, str], path: str) -> str:
    """Return the path of a field that is this path or above it; empty for none."""
    while path and path not in fields_of:
        path = path.rpartition(".")[0]
    return path


def _contexts_beside(
    row: Row, preset: Preset, used: set[str], shared: Collection[str]
) -> tuple[SourcedText, ...]:
    """Return the contexts in the object or message that has the answer, under a usual name."""
    for path in preset.paths("response"):
        value = row.get(path)
        if is_dialogue(value):
            holders = replies_of(value)
            names = {name for one in value if isinstance(one, dict) for name in one}
            others = {name for name in names if normalize_name(name) not in CONTEXTS_BESIDE}
            if others != names:
                used |= {f"{path}.{name}" for name in others}
                used.discard(path)
        else:
            text = find_value(row, (path,))[1] if preset.opens else None
            value = literal(text) if isinstance(text, str) else value
            may_hold = preset.normalize_names or isinstance(text, str)
            holders = [value] if may_hold and isinstance(value, dict) else []
        for holder in holders:
            own = {normalize_name(name): name for name in holder}
            key, documents = find_value(holder, [own[one] for one in CONTEXTS_BESIDE if one in own])
            if is_documents(documents) or (key and isinstance(documents, list)):
                used.add(f"{path}.{key}")
                return documents_of(documents, f"{path}.{key}", (), (), None, shared)[0]
    return ()


def _use_part(used: set[str], path: str, value: Any, keys: Sequence[str]) -> None:
    """Mark the field of an object that has the text as used instead of the whole object."""
    parts = [key for key in keys if isinstance(value, dict) and find_value(value, [key])[0]]
    if parts:
        used.discard(path)
        used |= {f"{path}.{key}" for key in parts}


def _text(value: Any, place: str, preset: Preset, *, is_question: bool = False) -> str:
    is_object = isinstance(value, dict) and not holds_text(value)
    if value is None or not (preset.opens or is_object):
        return message_text(value, place, is_question=is_question)
    keys = _QUESTION_KEYS if is_question else _ANSWER_KEYS
    return opened_text(value, keys, place, is_question=is_question)
