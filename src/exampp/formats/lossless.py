"""What a file says beyond what we understand: the difference between two JSON values.

A reader turns JSON into records, a writer turns records into JSON. Where the written value is not
the one that was read, the difference is kept beside the record, so that nothing is lost and the
record still governs what it knows.
"""

from __future__ import annotations

from typing import Any


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


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values; unlike Python's, True is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
