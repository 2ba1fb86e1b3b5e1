"""Detect the format of a file, for commands that accept any.

The fields or columns of the first records decide. If they fit several formats, the header decides,
then the file name. If the format is still ambiguous, an error lists what was found.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import car, fields, passages, queries
from exampp.formats.columns import TABLE_ROLES, roles_of
from exampp.formats.fields import nearly, own_names
from exampp.formats.format import ROLES, FirstRecords, ReadOptions, built_in_formats, first_records
from exampp.formats.lines import OnError, existing_file, lines_in_memory, raise_error
from exampp.formats.preset import presets
from exampp.formats.record_rows import first_columns, raw_rows
from exampp.records import BankEntry

_NAMED = ("run", "qrels")
"""Formats detected by file name alone; their readers report what is wrong in a line."""
_START = 4000
_ROWS = 100
_NAMES = frozenset(
    fields.QUERY
    | fields.PASSAGE
    | fields.RELEVANCE
    | set(queries.ID_KEYS + queries.TEXT_KEYS + passages.ID_KEYS + passages.TEXT_KEYS)
    | set(fields.BANK_COLUMNS)
    | {"items", "questions", "nuggets", "candidates", "responses"}
)


class DetectedKind(NamedTuple):
    """Format of a file; `by_name` is true if the file name decided between several formats."""

    kind: str
    by_name: bool = False


def detect(path: str | Path, role: str | None = None, *, system: bool = False) -> str:
    """Return the name of the format of a file; see `detect_kind`."""
    return detect_kind(path, role, system=system).kind


def read_bank_file(path: str | Path, on_error: OnError = raise_error) -> Iterator[BankEntry]:
    """Yield the entries of a bank in any bank format; raise InputError for other files."""
    kind = detect(existing_file(path))
    form = built_in_formats().get(kind)
    if form is None or form.holds is not BankEntry or form.read is None:
        names = (one.name for one in built_in_formats().values() if one.holds is BankEntry)
        raise InputError(
            f"is not a bank but {kind}", file=path, hint=f"Bank formats: {', '.join(names)}"
        )
    yield from form.read(Path(path), ReadOptions(on_error))


def of_role(role: str) -> list[str]:
    """Return the formats of a role; the first is assumed if no format fits."""
    names = [one.name for one in built_in_formats().values() if one.role == role]
    first = {"runs": "run"}.get(role, role)
    return sorted(names, key=lambda name: name != first)


def detect_kind(path: str | Path, role: str | None = None, *, system: bool = False) -> DetectedKind:
    """Return the format of a file, and whether its name decided.

    Args:
        path: The file.
        role: One of `ROLES`, if known; only formats of this role are considered.
        system: Name of the system; prefer responses if the file may contain them.

    Raises:
        InputError: The format is ambiguous or unknown; the message has the closest formats.
    """
    names = of_role(role) if role else [*built_in_formats()]
    in_car = None if lines_in_memory(path) else car.car_kind(path)
    if in_car and in_car in names:
        return DetectedKind(in_car)
    sample = first_records(path)
    is_record = sample.has_field_names or not _field_names().isdisjoint(sample.keys)
    among = {name: built_in_formats()[name] for name in names}
    fitting = [name for name, form in among.items() if form.fits(sample, is_record)]
    if system and "responses" in fitting:
        return DetectedKind("responses")
    columns = "\t".join((*sample.keys, "")) if lines_in_memory(path) else sample.head
    headers = {name: among[name].header or "(?!)" for name in fitting}
    by_header = [name for name in fitting if re.match(headers[name], columns, re.IGNORECASE)]
    named = fitting or [name for name in _NAMED if name in among]
    by_name = [name for name in named if re.search(among[name].file_name or "(?!)", sample.name)]
    for candidates in (fitting, by_header, by_name):
        if len(candidates) == 1:
            return DetectedKind(candidates[0], candidates is by_name)
    # responses are JSON: their reader cannot report the columns of a table
    if role and (role != "responses" or sample.is_json):
        return DetectedKind(_likeliest(sample, role))
    raise _undecided(path, sample, fitting)


@cache
def _field_names() -> frozenset[str]:
    """Return the field names by which formats are detected."""
    shapes = (shape for form in built_in_formats().values() for shape in form.shapes)
    return frozenset(name for shape in shapes for names in shape.sets for name in names)


def _likeliest(sample: FirstRecords, role: str) -> str:
    """Return the format to assume for a file that fits none; its reader reports the fault."""
    if role == "bank" and not sample.is_json:
        return "plain-bank"
    if role == "bank" and sample.keys and {"items", "questions"}.isdisjoint(sample.keys):
        return "questions"
    return of_role(role)[0]


def _undecided(path: str | Path, sample: FirstRecords, fitting: Sequence[str]) -> InputError:
    if fitting:
        roles = [role for role in ROLES if not {*of_role(role)}.isdisjoint(fitting)]
        hint = "Name the type: " + " or ".join(_stated(path, role) for role in roles)
        if "responses" in fitting:
            hint += ", or name the system with --system"
        what = f"{sample.found}; this may be {' or '.join(sorted(fitting))}"
        return InputError(what, file=path, hint=hint)
    names = _names_in(path, sample)
    of_programs = {name for preset in presets().values() for name in preset.needs}
    words = names or ([] if sample.is_json else re.split("[\t,;]", sample.head[:_START]))
    slips = nearly(words, _NAMES | of_programs)
    what = "unknown file type" + ("" if words else ", or broken JSON") + (slips and f"; {slips}")
    if not names:
        detected = (one.name for one in built_in_formats().values() if one.shapes or one.sniff)
        hint = "If you know the type, name it, as in --as run: "
        hint += ", ".join((*sorted(detected), *presets()))
        return InputError(f"{sample.found}; {what}", file=path, hint=hint)
    found = f"{'fields' if sample.is_json else 'columns'} found: {', '.join(names)}"
    return InputError(f"{found}; {what}", file=path, hint=_column_hint(path, names))


def _names_in(path: str | Path, sample: FirstRecords) -> list[str]:
    """Return the fields of the first record, or the columns of a table."""
    if not sample.is_json:
        return [*sample.header] or own_names(sample.head)
    with suppress(InputError, StopIteration):
        return [*sample.keys] or first_columns(path)
    return []


def _stated(path: str | Path, role: str) -> str:
    """Return how the user states the role of a file, or of data from memory."""
    is_data = lines_in_memory(path) and not Path(path).is_file()
    return f"{role}=..." if is_data else f"--{role} {Path(path).name}"


def _mapped(path: str | Path, role: str, *columns: str) -> str:
    """Return how the user names the columns of a role."""
    if lines_in_memory(path):
        value = columns[0] if len(columns) == 1 else [*columns]
        return f"columns={ {role: value}!r}"
    return " ".join(f"--columns {role}={shlex.quote(column)}" for column in columns)


def _words(path: str | Path) -> Counter[str]:
    """Return the number of words of each column in the first rows; lists and objects have none."""
    words: Counter[str] = Counter()
    with suppress(InputError):
        for _, row in islice(raw_rows(path, raise_error), _ROWS):
            for name, value in row.items():
                if isinstance(value, str) and not value.startswith(("[", "{")):
                    words[name] += len(value.split())
    return words


def _column_hint(path: str | Path, names: Sequence[str]) -> str:
    """Return how to say what the columns of a table hold, beside those that are recognised."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        return f"The column {twice!r} occurs twice: rename one of them"
    roles = roles_of(names, {}, TABLE_ROLES)
    known = [name for columns in roles.values() for name in columns]
    others = [name for name in names if name not in known]
    if {"question", "answer"} <= roles.keys():
        of_system = _stated(path, "responses")
        correct = _mapped(path, "reference", roles["answer"][0])
        return f"If a system gave the answers: {of_system}. If they are correct: {correct}"
    read = ", ".join(f"`{columns[0]}` is the {role}" for role, columns in roles.items())
    hint = f"{read[:1].upper()}{read[1:]}. " if read else ""
    if not others:
        has_query = not roles.keys().isdisjoint({"question", "query_id"})
        needed = "an answer, contexts or a passage" if has_query else "the question"
        stated = _stated(path, "queries")
        return f"{hint}No column holds {needed}; or name the type, as in {stated}"
    words = _words(path)
    longest = max(others, key=lambda name: words[name])
    example = _mapped(path, "answer" if "question" in roles else "question", longest)
    among = ", ".join((*TABLE_ROLES, "nugget"))
    hint += f"Say what a column holds, as in {example} (one of {among}), or name "
    hint += f"the type, as in {_stated(path, 'queries')}"
    if "question" in roles and roles.keys().isdisjoint({"answer", "system"}) and len(others) > 1:
        wide = _mapped(path, "answer", *others)
        hint += f". If each column holds the answers of one system: {wide}"
    return hint
