"""Records with the results of several systems, read as one record per system."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from exampp.formats.columns import SYNONYMS, Row, names_of, roles_of
from exampp.formats.fields import normalize_name
from exampp.formats.preset import OUTER, Preset
from exampp.formats.rag_values import find_value, holds_text
from exampp.formats.record_rows import Cells

SYSTEM = "system"
"""The field of a row for the system that a record names otherwise."""
_KNOWN = frozenset(name for role in SYNONYMS for name in names_of(role))
_RESULTS = ("answer", "contexts")
_CONTEXTS = frozenset((*names_of("contexts"), *names_of("context_ids")))
_OF_A_SYSTEM = re.compile(
    r"(?!gold|gt|correct|expected|reference|ideal|true|ground|human)"
    r"(?!\w+_(?:gold|gt|correct|expected|reference|ideal|true|truth|human)_)\w+"
    r"_(?:answers?|responses?|outputs?)"
    r"|(?:model|system|answer|response|output)_?(?:\d+|[a-z])"
)
_PARTS = re.compile(r"(.+)_(?:answers?|responses?|outputs?)")
OUTER_NAMES = ("key", *names_of("system"), "name")
"""Fields around records that may name their system."""
_CONTAINERS = frozenset(
    (
        *("answers", "responses", "outputs", "results", "predictions", "completions"),
        *("generations", "systems", "models", "variants", "pipelines", "runs"),
    )
)
"""Fields that may hold the results of several systems."""


def system_fields(row: Row) -> tuple[str, ...]:
    """Return the fields of a record that hold the results of systems; empty for none.

    They are objects with an answer or contexts, texts named such as `model1` or `v_answers`, or one
    field with an object or a list of such results.
    """
    if not roles_of(row, {}, ("question",)):
        return ()
    objects = [name for name, value in row.items() if name != OUTER and _is_result(value)]
    texts = [
        name
        for name, value in row.items()
        if isinstance(value, str) and _OF_A_SYSTEM.fullmatch(normalize_name(name))
    ]
    unknown = {name for name in texts if normalize_name(name) not in _KNOWN}
    if len(objects) > 1 or (len(texts) > 1 and unknown):
        return tuple(objects if len(objects) > 1 else texts)
    within = (name for name in row if name in _CONTAINERS and len(_inside(row[name])) > 1)
    return tuple(within)[:1]


def _is_result(value: Any) -> bool:
    return isinstance(value, dict) and bool(roles_of(value, {}, _RESULTS))


def _inside(value: Any) -> list[tuple[str, Row]]:
    """Return the results in an object by system, or in a list of objects with their system."""
    if isinstance(value, dict):
        is_by_system = _KNOWN.isdisjoint(map(normalize_name, value)) and all(
            isinstance(one, str) or _is_result(one) for one in value.values()
        )
        pairs = value.items() if is_by_system else ()
        return [(name, one if isinstance(one, dict) else {"answer": one}) for name, one in pairs]
    found: list[tuple[str, Row]] = []
    for one in value if isinstance(value, list) else ():
        named = roles_of(one, {}, (SYSTEM,)).get(SYSTEM) if isinstance(one, dict) else None
        name = find_value(one, named or ())[1]
        if not isinstance(name, str | int) or not (_is_result(one) or holds_text(one)):
            return []
        rest = {key: value for key, value in one.items() if key not in (named or ())}
        text = "" if _is_result(one) else find_value(one, ("text", "content"))[0]
        found.append((str(name), {"answer" if key == text else key: rest[key] for key in rest}))
    return found


def rows_of_systems(preset: Preset, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield one row per system of records that have a field for each, or one for all."""
    for number, row in rows:
        rest = {name: value for name, value in row.items() if name not in preset.systems}
        results = [one for name in preset.systems for one in _results(row, name, preset, rest)]
        for name, own in results:
            new = {**rest, **own, SYSTEM: name}
            yield number, Cells(new) if isinstance(row, Cells) else new


def _results(
    row: Row, name: str, preset: Preset, rest: dict[str, Any]
) -> Sequence[tuple[str, Row]]:
    """Return the results of a field by system; fields beside it go from the `rest` to the result.

    `naive_contexts` is a field beside `naive_answer`.
    """
    result = row.get(name)
    if result is None:
        return ()
    if name in _CONTAINERS and (inside := _inside(result)):
        return inside
    if isinstance(result, dict):
        return [(name, result)]
    answer = next(iter(preset.paths("response")), name)
    own: dict[str, Any] = {answer: result}
    stem = _PARTS.fullmatch(name)
    for other in [*rest] if stem else ():
        part = other.removeprefix(f"{stem[1]}_") if stem else ""
        if part != other and part in _CONTEXTS:
            own[part] = rest.pop(other)
    return [(name, own)]


def rows_of_columns(preset: Preset, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield one row per system of a table whose columns are named after systems.

    The only column before them is the question, whatever its name.
    """
    answer = preset.paths("response")[0]
    for number, row in rows:
        names = {one: re.fullmatch(preset.system_columns, one) for one in row}
        rest = {name: row[name] for name, match in names.items() if match is None}
        first = next((place for place, match in enumerate(names.values()) if match), 0)
        before = [one for one in [*row][:first] if one not in preset.every_path()]
        if len(before) == 1 and not find_value(row, preset.paths("query"))[0]:
            rest[preset.paths("query")[0]] = rest.pop(before[0])
        of_systems = [(name, match) for name, match in names.items() if match is not None]
        # a row without any answer is refused where it is read
        for name, match in [one for one in of_systems if row[one[0]]] or of_systems[:1]:
            yield number, Cells({**rest, **match.groupdict(), answer: row[name]})


def named_by_key(preset: Preset, rows: Sequence[tuple[int, Row]]) -> Preset:
    """Return the preset whose systems are named by the objects around their records.

    The name is a key of an object, or a field beside the records such as `model`. It is a system if
    records of several names have the same question.
    """
    if any(find_value(row, one)[0] for one in preset.system for _, row in rows):
        return preset
    named = (f"{OUTER}.{name}" for name in OUTER_NAMES)
    systems = (path for path in named if _tells_apart(path, preset, rows))
    first = next(systems, None)
    return preset if first is None else replace(preset, system=((first,),))


def _tells_apart(path: str, preset: Preset, rows: Sequence[tuple[int, Row]]) -> bool:
    """Return whether records with the same question differ in a field."""
    names_by_question: dict[str, set[str]] = {}
    for _, row in rows:
        name = find_value(row, (path,))[1]
        if not isinstance(name, str):
            return False
        question = repr(find_value(row, preset.paths("query"))[1])
        names_by_question.setdefault(question, set()).add(name)
    shared = [len(names) > 1 for names in names_by_question.values()]
    has_many = len(rows) > len(set().union(*names_by_question.values()))
    return any(shared) and (has_many or all(shared))
