"""Reading training data in the format of SQuAD 2.0, with errors that tell the place.

    {"data": [{"paragraphs": [{"context": "...", "qas": [
        {"id": "...", "question": "...", "is_impossible": false,
         "answers": [{"text": "...", "answer_start": 17}]}]}]}]}

A question is unanswerable if `is_impossible` is true or it has no answers. Source: Rajpurkar, Jia
and Liang, ACL 2018.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError

_KINDS = {str: "a text", list: "a list", dict: "an object", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a context. `answer` begins at character `start`; None if there is none."""

    question: str
    context: str
    answer: str | None = None
    start: int = 0


def read_squad(file: Path) -> list[Example]:
    """Read all questions of a file, each with its first answer.

    Raises:
        InputError: the file cannot be read, is not JSON, has another structure, has an answer
            that is not in its context at `answer_start`, or has no questions.

    """
    try:
        data = json.loads(file.read_text("utf-8"))
        examples = list(_examples(data))
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", file=file) from None
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", file=file, mend="Save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", file=file, line=error.lineno) from None
    except InputError as error:
        raise error.at(file) from None
    if not examples:
        raise InputError("the file has no questions", file=file)
    return examples


def _examples(data: Any) -> Iterator[Example]:
    if not isinstance(data, dict):
        raise _wrong("the file", "an object", "")
    for place, article in _objects(data, "data", ""):
        for place_2, paragraph in _objects(article, "paragraphs", place):
            context = _value(paragraph, "context", str, place_2)
            for place_3, question in _objects(paragraph, "qas", place_2):
                yield _example(question, context, place_3)


def _example(entry: Mapping[str, Any], context: str, place: str) -> Example:
    question = _value(entry, "question", str, place)
    impossible = entry.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise _wrong("'is_impossible'", "true or false", f"{place}.is_impossible")
    if impossible or not entry.get("answers"):
        return Example(question, context)
    where, answer = next(_objects(entry, "answers", place))
    text = _value(answer, "text", str, where)
    start = _value(answer, "answer_start", int, where)
    if not text or start < 0 or context[start : start + len(text)] != text:
        raise InputError(
            f"the context does not read {text!r} from character {start} on",
            field=where,
            mend="'answer_start' counts characters of the context from 0",
        )
    return Example(question, context, text, start)


def _objects(parent: Mapping[str, Any], key: str, place: str) -> Iterator[tuple[str, Any]]:
    """The objects in a list of `parent`, each with its place."""
    prefix = f"{place}.{key}" if place else key
    for index, entry in enumerate(_value(parent, key, list, place)):
        if not isinstance(entry, dict):
            raise _wrong(f"an entry of '{key}'", _KINDS[dict], f"{prefix}[{index}]")
        yield f"{prefix}[{index}]", entry


def _value(parent: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    value = parent.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _wrong(f"'{key}'", _KINDS[kind], f"{place}.{key}" if place else key)
    return value


def _wrong(what: str, wanted: str, field: str) -> InputError:
    return InputError(
        f"{what} is not {wanted}", field=field, mend="See the format of SQuAD 2.0, version v2.0"
    )
