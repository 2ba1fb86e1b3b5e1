"""What a file says beyond what we understand: the difference between two JSON values.

A reader turns JSON into records, a writer turns records into JSON. Where the written value is not
the one that was read, the difference is kept beside the record, so that nothing is lost and the
record still governs what it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec


def difference(written: Any, original: Any) -> dict[str, Any] | None:
    """What must be done to `written` to get `original`; None where they are equal.

    Objects are compared key by key: `set` holds values of other or new keys, `drop` the keys to
    remove, `in` the differences inside. Anything else is replaced whole (`is`).
    """
    if _same(written, original):
        return None
    if not (isinstance(written, dict) and isinstance(original, dict)):
        return {"is": original}
    changed: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for key, value in original.items():
        if isinstance(written.get(key), dict) and isinstance(value, dict):
            if inner := difference(written[key], value):
                inside[key] = inner
        elif key not in written or not _same(written[key], value):
            changed[key] = value
    dropped = [key for key in written if key not in original]
    parts = {"set": changed, "drop": dropped, "in": inside}
    return {name: part for name, part in parts.items() if part}


def differences(written: Iterable[Any], originals: Sequence[Any]) -> list[dict[str, Any] | None]:
    """The difference of each value from its original; quick where all are equal."""
    values = list(written)
    if _same(values, originals):
        return [None] * len(values)
    return [difference(*pair) for pair in zip(values, originals, strict=True)]


def restored(written: Any, residue: dict[str, Any] | None) -> Any:
    """The original value, from what we would write and the difference kept beside it."""
    if residue is None:
        return written
    if "is" in residue:
        return residue["is"]
    dropped = set(residue.get("drop", ()))
    value = {key: item for key, item in written.items() if key not in dropped}
    value.update(residue.get("set", {}))
    for key, inner in residue.get("in", {}).items():
        value[key] = restored(value.get(key, {}), inner)
    return value


_SORTED = msgspec.json.Encoder(order="sorted")


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values; unlike Python's, True is not 1."""
    if a != b:
        return False
    if not isinstance(a, dict | list):
        return isinstance(a, bool) == isinstance(b, bool)
    return _written_alike(a, b) or _same_parts(a, b)


def _written_alike(a: Any, b: Any) -> bool:
    """Whether two values are the same JSON, which tells True from 1: quick, never wrongly so."""
    try:
        return _SORTED.encode(a) == _SORTED.encode(b)
    except UnicodeEncodeError:
        # half of a surrogate pair
        return False


def _same_parts(a: Any, b: Any) -> bool:
    # equal values that are written otherwise: True and 1, or 1 and 1.0, in places
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    return all(map(_same, a, b))
