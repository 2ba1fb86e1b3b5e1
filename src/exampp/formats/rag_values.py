"""Field values of RAG files: texts, chat messages, documents and ids."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard

from exampp.errors import InputError
from exampp.formats.columns import names_of
from exampp.formats.fields import brief, normalize_name, text_digest
from exampp.formats.literals import decoded_json
from exampp.formats.read_warnings import is_empty
from exampp.records.turns import ASSISTANT, USER, Turn, transcript, turns_of
from exampp.sanitize import parse_digits


class SourcedText(NamedTuple):
    """A passage; the id is the MD5 of the text if the file has none, `source` what it is from."""

    passage_id: str
    text: str
    source: str = ""


_TEXT_KEYS = (
    *("text", "content", "page_content", "context", "kwargs.content", "data.content"),
    *("pageContent", "chunk", "passage", "contents", "body", "message.content", "parts"),
    *("node.text", "node.text_resource.text", "passage_text", "chunk_text", "snippet"),
    *("page_snippet", "_source.text", "_source.content", "_source.body", "_source.passage"),
)
_ID_KEYS = (
    *("document_id", "id", "doc_id", "docid", "chunk_id", "passage_id", "source"),
    *("_id", "metadata.id", "metadata.source", "node.id_"),
)
_OTHER_TEXTS = frozenset((*names_of("reference"), *names_of("contexts")))
"""Names of texts that are neither a question nor an answer."""
_USERS = frozenset({"user", "human"})
_SYSTEMS = frozenset({"assistant", "ai", "agent", "bot", "chatbot", "model", "gpt"})
_OTHERS = frozenset({"system", "developer", "tool", "function"})
_ROLES = _USERS | _SYSTEMS | _OTHERS
_ROLE_KEYS = {
    **dict.fromkeys(("speaker", "role", "from", "message.role"), _ROLES),
    **dict.fromkeys(("type", "kwargs.type"), frozenset({"human", "ai", "system"})),
}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""Message part types that contain text."""
_HISTORY = frozenset(
    (
        *("history", "chat_history", "message_history", "conversation_history", "messages"),
        *("dialog", "dialogue", "dialog_history", "dialogue_history", "conversation"),
        *("turns", "previous_turns"),
    )
)
_IMPOSSIBLE = frozenset({"is_impossible", "unanswerable", "is_unanswerable"})
ANSWERABLE = _IMPOSSIBLE | {"answerable", "is_answerable", "answerability"}
"""Names of fields that state if a question can be answered."""
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "1", "1.0"), True),
    **dict.fromkeys(("false", "no", "0", "0.0"), False),
}
_ANSWERABLE = ("answerable", "partial", "partially_answerable", "conversational", "underspecified")
_ANSWERS = {**_TRUTHS, **dict.fromkeys(_ANSWERABLE, True), "unanswerable": False}
_TURNS = frozenset({"turn", "turn_id", "turn_number", "turn_index"})
_CONVERSATIONS = frozenset({"conversation_id", "conv_id", "dialog_id", "dialogue_id"})


def find_value(row: Any, paths: Sequence[str], *, in_lists: bool = False) -> tuple[str, Any]:
    """Return (path, value) of the first path with a value, or ("", None).

    Null and empty values do not count. A path may also be a key that contains dots. If it goes
    through `in_lists`, the value is the list of the values of all objects there.
    """
    for path in paths:
        value = row.get(path) if isinstance(row, dict) else None
        if value is None and "." in path:
            value = row
            for key in path.split("."):
                value = _field_of(value, key) if in_lists or isinstance(value, dict) else None
        if not _is_missing(value) and value != "":
            return path, value
    return "", None


def _field_of(value: Any, key: str) -> Any:
    """Return a field of an object or of every object in a list; None if missing."""
    if not isinstance(value, list):
        return value.get(key) if isinstance(value, dict) else None
    many = flat(value)
    if not any(isinstance(one, dict) and key in one for one in many):
        return None
    return [one.get(key) if isinstance(one, dict) else None for one in many]


def flat(value: Any) -> list[Any]:
    """Return the elements of nested lists, or the value itself."""
    if not isinstance(value, list):
        return [value]
    return [one for part in value for one in (part if isinstance(part, list) else [part])]


def check_dotted_path(row: Mapping[str, Any], path: str, *, is_required: bool = False) -> None:
    """Raise InputError for a dotted path that ends at a value without the next field.

    A single object may miss the field unless it `is_required`; empty values are accepted.
    """
    value: Any = row
    place: list[str] = []
    for key in path.split(".") if path not in row else ():
        inside = _field_of(value, key)
        if inside is not None:
            value = inside
            place.append(key)
            continue
        many = flat(value)
        is_absent = isinstance(value, dict) and (key in value or not (place and is_required))
        if is_absent or all(_is_missing(one) or is_empty(one) for one in many):
            return
        names = dict.fromkeys(name for one in many if isinstance(one, dict) for name in one)
        field = ".".join(place)
        better = f"{field}.{next(iter(names))} or another field" if names else field
        raise InputError(
            f"has no field {key!r}" + (f"; fields found: {', '.join(names)}" if names else ""),
            field=field,
            hint=f"Use {better} instead of {path}, in a preset or with --columns",
        )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def message_text(value: Any, field: str, *, is_question: bool = False) -> str:
    """Return a text; of chat messages all turns up to the question (`is_question`), or the answer.

    The text is empty if there is none.

    Raises:
        InputError: The value is not a text, or has several texts.
    """
    if _is_missing(value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        keys = (*_TEXT_KEYS, "value") if _role(value) else _TEXT_KEYS
        key, inside = find_value(value, keys)
        if not key and any(name in value for name in keys):
            return ""
        if not key:
            raise InputError(f"is an object without {' or '.join(_TEXT_KEYS[:4])}", field=field)
        return message_text(inside, f"{field}.{key}", is_question=is_question)
    if not isinstance(value, list):
        raise InputError(f"must be a text, not {brief(value)}", field=field)
    if any(_role(one) for one in value):
        return _message(value, field, is_question=is_question)
    return _joined_text(value, field, is_question=is_question)


def _joined_text(value: list[Any], field: str, *, is_question: bool) -> str:
    """Return the only text of a list, its parts, or the turns of one side in `turns`."""
    if value and all(map(_is_likelihood, value)):
        raise InputError(
            "has log-likelihoods of given choices, and no text that the model wrote",
            field=field,
            hint="Log the samples of a task in which the model writes its answer (generate_until)",
        )
    parts = [message_text(one, field, is_question=is_question) for one in value]
    if len(parts) < 2 or all(map(_is_part, value)):
        return "\n".join(filter(None, parts))
    if not field.endswith("turns") or any(isinstance(one, list) for one in value):
        raise InputError(f"has {len(value)} texts instead of one", field=field)
    return transcript(Turn(USER, one) for one in parts) if is_question else "\n\n".join(parts)


def _is_likelihood(value: Any) -> bool:
    """Return whether a value is a log-likelihood and a truth value, perhaps as texts."""
    pair = value[0] if isinstance(value, list) and len(value) == 1 else value
    return isinstance(pair, list) and len(pair) == 2 and str(pair[1]) in ("True", "False")


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _TEXT_PARTS


def _message(messages: list[Any], field: str, *, is_question: bool) -> str:
    """Return the turns up to the last user message, or the last message of the system after it."""
    users = [place for place, one in enumerate(messages) if _role(one) in _USERS]
    if is_question:
        if not users:
            raise InputError("has no user message", field=field)
        if not message_text(messages[users[-1]], field):
            raise InputError("ends with an empty user message", field=field)
        return _turns(messages[: users[-1] + 1], field)
    texts = [message_text(one, field) for one in replies_of(messages)]
    if len([*filter(None, texts)]) > 1 and not users:
        raise InputError(f"has {len(texts)} texts instead of one", field=field)
    return next(filter(None, reversed(texts)), "")


def replies_of(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the messages of the system after the last one of the user."""
    users = [place for place, one in enumerate(messages) if _role(one) in _USERS]
    return [one for one in messages[users[-1] if users else 0 :] if _role(one) in _SYSTEMS]


def is_role(value: Any) -> bool:
    """Return whether a value is the role of a chat message."""
    return isinstance(value, str) and value.lower() in _ROLES


def starts_question(messages: Sequence[Any], message: Any) -> bool:
    """Return whether a message asks the next question after messages with a reply."""
    is_answered = _role(messages[-1]) not in _USERS and any(
        _role(one) in _USERS for one in messages
    )
    return is_answered and _role(message) in _USERS


def other_messages(value: Any) -> Iterator[str]:
    """Yield the texts of chat messages after the last question, and of those without a role.

    The messages may be in a field of an object.
    """
    if isinstance(value, dict):
        value = next(filter(is_dialogue, value.values()), None)
    many = flat(value) if isinstance(value, list) else []
    messages = many if is_dialogue(many) else []
    users = [place for place, one in enumerate(messages) if _role(one) in _USERS]
    for place, one in enumerate(messages):
        is_reply = _role(one) in _SYSTEMS and place > max(users, default=place)
        if is_reply or not _role(one):
            try:
                yield message_text(one, "")
            except InputError:
                yield str(one)


def _turns(messages: Sequence[Any], field: str) -> str:
    """Return the transcript of chat messages; a single turn is its text."""
    turns = [
        Turn(USER if role in _USERS else ASSISTANT, message_text(one, field))
        for one in messages
        if (role := _role(one)) in _USERS | _SYSTEMS
    ]
    return transcript(turn for turn in turns if turn.text)


def with_history(fields: Mapping[str, Any], question: str) -> str:
    """Return a question with the earlier turns in the history of its record, if it has one.

    A history that ends with the question is the whole conversation.
    """
    for name, history in fields.items():
        value = _messages_of(history) if is_history(name) and not turns_of(question) else []
        if not value:
            continue
        users = [one for one in value if _role(one) in _USERS]
        ends = users and message_text(users[-1], name) == question
        turns = value[: value.index(users[-1])] if ends else value
        return _turns([*turns, {"role": "user", "content": question}], name)
    return question


_PAIRS = (("human", "ai"), ("user", "assistant"), ("question", "answer"), ("query", "response"))
"""Names of a turn of the user and its reply in one object."""


def _messages_of(history: Any) -> list[Any]:
    """Return the messages of a history; empty if it is none.

    A history is a list of messages, of pairs of a question and its reply (as two texts, or as an
    object), or a transcript.
    """
    if isinstance(history, str):
        turns = turns_of(f"{history.strip()}\n{USER}: ...")[:-1]
        return [{"role": one.role, "content": one.text} for one in turns]
    if not isinstance(history, list):
        return []
    if all(map(_role, history)):
        return history
    pairs = [
        next(([one[name] for name in names] for names in _PAIRS if {*names} == one.keys()), [])
        if isinstance(one, dict)
        else one
        for one in history
    ]
    if not all(isinstance(of, list) and [*map(type, of)] == [str, str] for of in pairs):
        return []
    roles = USER, ASSISTANT
    return [
        {"role": role, "content": text}
        for of in pairs
        for role, text in zip(roles, of, strict=True)
    ]


def is_history(name: str) -> bool:
    """Return whether a field may have the turns of a conversation."""
    return normalize_name(name) in _HISTORY


def conversation_of(fields: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return the conversation of a record, and the number of its turn; empty and None if unknown.

    A record with its earlier turns has no place in a conversation.
    """
    named = {normalize_name(name): value for name, value in fields.items()}
    if not named.keys().isdisjoint(_HISTORY):
        return "", None
    key = next((named[one] for one in _CONVERSATIONS if named.get(one) not in (None, "")), "")
    turn = next((str(named[one]) for one in _TURNS if one in named), "")
    return str(key), parse_digits(turn)


def is_place_of_turn(name: str) -> bool:
    """Return whether a field names the conversation of a record or the number of its turn."""
    return normalize_name(name) in _TURNS | _CONVERSATIONS


def is_answerability(name: str) -> bool:
    """Return whether a field may state if a question can be answered."""
    return normalize_name(name) in ANSWERABLE


def answerability(fields: Mapping[str, Any]) -> bool | None:
    """Return whether a question can be answered; None if the fields do not state it.

    A value is a truth value or a word such as UNANSWERABLE (MTRAG), perhaps the only one of a list.
    A question of which a part can be answered is answerable. Other values state nothing.
    """
    for name, value in fields.items():
        if not is_answerability(name):
            continue
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        said = _ANSWERS.get(str(one).strip().lower())
        if said is None:
            continue
        negates = normalize_name(name) in _IMPOSSIBLE and str(one).strip().lower() in _TRUTHS
        return not said if negates else said
    return None


def is_dialogue(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a value is a list of chat messages."""
    return isinstance(value, list) and any(map(_role, value))


def is_documents(value: Any) -> bool:
    """Return whether a value is a list of objects with texts, or an object with only one list."""
    if isinstance(value, dict):
        lists = [one for one in value.values() if isinstance(one, list)]
        return len(lists) == 1 and is_documents(lists[0])
    return isinstance(value, list) and bool(value) and all(map(holds_text, value))


def _conversation(what: str, field: str) -> InputError:
    return InputError(
        f"{what}; its earlier turns are missing, or a turn occurs twice",
        field=field,
        hint="Add records with the earlier turns (turn 1, 2, ...), or write them as `history` of "
        "messages with role and content, or skip conversations with --on-error skip",
    )


def _role(value: Any) -> str:
    """Return the role of a chat message; empty for other values."""
    if not isinstance(value, dict):
        return ""
    for key, roles in _ROLE_KEYS.items():
        name = find_value(value, [key])[1]
        if isinstance(name, str) and name.lower() in roles:
            return name.lower()
    return ""


def check_single_turn(
    fields: Mapping[str, Any], question: str, number: int, first_lines: dict[str, int]
) -> None:
    """Raise InputError for a record with earlier turns, or of an earlier conversation.

    `first_lines` stores the first line of each conversation. A question with all its turns is not
    refused.
    """
    if turns_of(question):
        return
    for name, value in fields.items():
        if normalize_name(name) in _CONVERSATIONS and isinstance(value, str | int):
            first = first_lines.setdefault(str(value), number)
            if first != number:
                raise _conversation(
                    f"continues the conversation {brief(value)} of line {first}", name
                )
        elif normalize_name(name) in _TURNS:
            if (parse_digits(str(value)) or 0) > 1:
                known = conversation_of(fields)[0]
                of = f"conversation {brief(known)}" if known else "a conversation"
                raise _conversation(f"is turn {value} of {of}", name)
        elif normalize_name(name) in _HISTORY and _has_history(value, question):
            raise _conversation("has other turns of a conversation", name)


def _has_history(value: Any, question: str) -> bool:
    if isinstance(value, str):
        return " " in value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value > 1
    if not isinstance(value, list):
        return bool(value) and isinstance(value, dict)
    if not any(map(_role, value)):
        return bool(value)
    return any(message_text(one, "") != question for one in value if _role(one) in _USERS)


def opened_text(value: Any, keys: Sequence[str], field: str, *, is_question: bool = False) -> str:
    """Return the text of a value that may be an object with the text under one of `keys`.

    JSON in a text is decoded first.

    Raises:
        InputError: As in `message_text`; or an object has none of the keys or different texts under
            several, or JSON is broken.
    """
    if isinstance(value, str):
        value = decoded_json(value, field)
    if not isinstance(value, dict) or _role(value):
        return message_text([value] if _role(value) else value, field, is_question=is_question)
    present = [key for key in keys if find_value(value, [key])[0]]
    if not present and len(value) == 1 and isinstance(next(iter(value.values())), str):
        others = {*_OTHER_TEXTS, *names_of("answer" if is_question else "question")}
        present = [one for one in value if normalize_name(one) not in others]
    texts = {
        opened_text(value[key], keys, f"{field}.{key}", is_question=is_question) for key in present
    }
    if len(texts) == 1:
        if is_question:
            text = with_history(value, texts.pop())
            check_single_turn(value, text, 0, {})
            return text
        return texts.pop()
    what = "different texts" if present else "no known field"
    raise InputError(
        f"is an object with the fields {', '.join(value)}, which has {what}"
        + (f" under {', '.join(present)}" if present else ""),
        field=field,
        hint=f"Name the text, as in --columns {'question' if is_question else 'answer'}={field}."
        f"{next(iter(present or value), 'text')}, or write it under one of {', '.join(keys)}",
    )


def holds_text(value: Any, keys: Sequence[str] = ()) -> bool:
    """Return whether an object has a text under one of `keys` or a usual name."""
    return bool(find_value(value, (*keys, *_TEXT_KEYS))[0])


def text_values(value: Any, field: str) -> tuple[str, ...]:
    """Return the distinct texts of a value: one text or a list."""
    if isinstance(value, list) and not any(map(_role, value)):
        texts = (message_text(one, f"{field}[{number}]") for number, one in enumerate(value))
        return tuple(dict.fromkeys(filter(None, texts)))
    text = message_text(value, field)
    return (text,) if text else ()


def ids_of(field: str, value: Any) -> tuple[str, ...]:
    """Return the distinct ids of a value: one id or nested lists."""
    if isinstance(value, list):
        ids = (one for part in value for one in ids_of(field, part))
        return tuple(dict.fromkeys(ids))
    name = id_of(value, field)
    return (name,) if name else ()


def documents_of(
    value: Any,
    field: str,
    id_keys: Sequence[str] = (),
    text_keys: Sequence[str] = (),
    ids: Any = None,
    shared: Collection[str] = (),
) -> tuple[tuple[SourcedText, ...], int]:
    """Return the distinct documents in order, and the number of those without text.

    The text of an object is under `text_keys` or a usual name. Its id is the one at the same
    position in `ids`, or is under `id_keys`, of which the `shared` ones have its source.

    Raises:
        InputError: A value is not a text, or an id has two texts.
    """
    if _is_missing(value):
        return (), 0
    many = value if isinstance(value, list) else [value]
    if any(isinstance(one, list) and all(isinstance(of, dict) for of in one) for one in many):
        many = flat(many)
    if ids is not None and (not isinstance(ids, list) or len(ids) != len(many)):
        count = len(ids) if isinstance(ids, list) else "no list of"
        raise InputError(f"{len(many)} texts, but {count} ids", field=field)
    documents: dict[str, SourcedText] = {}
    keys = _own_keys(id_keys, shared)
    blank = 0
    for number, one in enumerate(many):
        place = f"{field}[{number}]"
        if role := _role(one):
            raise InputError(f"is a chat message ({role}), not a passage", field=place)
        key, inside = find_value(one, text_keys)
        text = message_text(inside, f"{place}.{key}") if key else message_text(one, place)
        if not text:
            blank += 1
            continue
        own = find_value(one, keys)[1] if ids is None else ids[number]
        name = id_of(own, place) or text_digest(text)
        source = id_of(find_value(one, [*shared])[1], place)
        if documents.setdefault(name, SourcedText(name, text, source)).text != text:
            raise InputError(f"the id {brief(name)} has two different texts", field=place)
    return tuple(documents.values()), blank


def _own_keys(id_keys: Sequence[str], shared: Collection[str]) -> list[str]:
    return [key for key in id_keys or _ID_KEYS if key not in shared]


def shared_keys(
    documents: Iterable[Any], id_keys: Sequence[str], text_keys: Sequence[str]
) -> Mapping[str, str]:
    """Return the fields of ids that do not identify a passage, each with an id of several texts.

    They name what passages are from, as the file of its chunks.
    """
    shared: dict[str, str] = {}
    many = [one for one in documents if isinstance(one, dict)]
    while True:
        keys, known = _own_keys(id_keys, shared), dict[str, tuple[str, str]]()
        found: dict[str, str] = {}
        for one in many if keys else ():
            key = find_value(one, keys)[0]
            with suppress(InputError):  # such a record is refused where it is read
                for name, text, _ in documents_of(one, "", id_keys, text_keys, None, shared)[0]:
                    other, earlier = known.setdefault(name, (key, text))
                    found |= dict.fromkeys((key, other) if earlier != text else (), name)
        if not found:
            return shared
        shared |= found


def id_of(value: Any, field: str) -> str:
    """Return an id (text or whole number), or ""; raise InputError for other values."""
    if _is_missing(value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"an id must be a text or a whole number, not {brief(value)}", field=field)
