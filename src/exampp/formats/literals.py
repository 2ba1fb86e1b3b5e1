"""Texts that hold JSON or Python values, and values under dotted names."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from tokenize import ERRORTOKEN, NL, STRING, TokenError, generate_tokens
from typing import Any

from exampp.errors import InputError
from exampp.sanitize import parse_digits

_TYPED = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue")
"""Names of a value in OTLP, by its type."""
_SIDE_BY_SIDE = re.compile(r"""["']\s*["']""")


def decoded_json(text: str, field: str) -> Any:
    """Return the decoded value of a JSON object, list or string; otherwise the text.

    Raises:
        InputError: The text starts as a JSON object, but is broken or truncated.
    """
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return text
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if re.match(r'\s*\[?\s*\{\s*"[^"]*"\s*:', text):
        raise InputError("is broken or truncated JSON", field=field)
    return text


def literal(text: str) -> Any:
    """Return a literal list, object or quoted text; otherwise the text itself."""
    start = text.lstrip()[:1]
    if start in ("{", "[", '"'):
        # Python joins texts side by side, which are none alone
        for read_value in (json.loads,) if start == '"' else (json.loads, _python_literal):
            with suppress(ValueError, SyntaxError, TokenError, MemoryError, RecursionError):
                return read_value(text.strip())
    return text


def _python_literal(text: str) -> Any:
    """Return the value of a literal, in which texts side by side are separate, as numpy writes."""
    if not _SIDE_BY_SIDE.search(text):
        return ast.literal_eval(text)
    tokens = [one for one in generate_tokens(io.StringIO(text).readline) if one.type != NL]
    if any(one.type == ERRORTOKEN for one in tokens):
        raise SyntaxError("a text is not closed")
    pairs = zip(tokens, [None, *tokens], strict=False)
    parts = (
        ("," if before and before.type == one.type == STRING else "") + one.string
        for one, before in pairs
    )
    return ast.literal_eval(" ".join(parts).strip())


def opened_fields(row: Any, paths: Sequence[str]) -> Any:
    """Return a record with the values of texts that are JSON or Python literals at some paths."""
    for path in paths:
        row = _opened(row, path.split("."))
    return row


def _opened(value: Any, keys: Sequence[str]) -> Any:
    if not keys:
        return nested_names(literal(value)) if isinstance(value, str) else value
    if not isinstance(value, dict):
        return value
    if ".".join(keys) in value:
        keys = [".".join(keys)]
    first, *rest = keys
    return {**value, first: _opened(value[first], rest)} if first in value else value


def nested_names(value: Any) -> Any:
    """Return a value with dotted keys as nested objects and numbered keys as lists.

    Lists of keys and typed values, as in OTLP, become objects, and so do lists of such lists.
    """
    if isinstance(value, list):
        pairs = [of for one in value for of in (one if isinstance(one, list) else [one])]
        if pairs and all(map(_is_pair, pairs)):
            return nested_names({one["key"]: _typed(one["value"]) for one in pairs})
        return [*map(nested_names, value)]
    if not isinstance(value, dict):
        return value
    nested: dict[str, Any] = {}
    for key, one in value.items():
        place, (*parents, last) = nested, str(key).split(".")
        for name in parents:
            inside = place.setdefault(name, {})
            place = inside if isinstance(inside, dict) else {}
        known = place.get(last)
        place[last] = known | one if isinstance(known, dict) and isinstance(one, dict) else one
    places = {parse_digits(key): one for key, one in nested.items()}
    if nested and None not in places and len(places) == len(nested):
        return [nested_names(one) for _, one in sorted(places.items(), key=itemgetter(0))]
    return {key: nested_names(one) for key, one in nested.items()}


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, dict) and {*value} == {"key", "value"} and isinstance(value["key"], str)
    )


def _typed(value: Any) -> Any:
    """Return the value that OTLP writes under the name of its type."""
    named = value if isinstance(value, dict) else {}
    name = next((one for one in _TYPED if named.get(one) not in (None, "")), "")
    inside = named.get(name, value)
    many = inside.get("values") if isinstance(inside, dict) else None
    if name == "arrayValue":
        return [_typed(one) for one in many or ()]
    return many if name == "kvlistValue" else inside
