"""Damage a file of every form of other programs, import it, and compare what was read.

    python benchmarks/campaigns/mutated_forms.py [--count 100000] [--seed 1] [--jobs 2]

The oracle of a form is what its undamaged file holds (tests/support/forms.py). Findings are:

- an exception that is not exampp's own, or more than `SECONDS` of CPU time;
- a text in the collection that is not in the damaged file;
- a text in another role than in the undamaged file, although its field has the same name;
- a text that is still in its field and in no part of the collection, without an error, a skipped
  record, or a remark or a field not read that the undamaged file does not have;
- anything in the collection after an error.

Each is printed with its seed, which `--seed N --count 1` repeats. The exit code is 1 if there is a
finding.
"""

from __future__ import annotations

import argparse
import copy
import csv
import io
import json
import random
import re
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
from mutated_files import mutated
from support.forms import FORMS, Contents, contents

import exampp
from exampp.errors import ExamError
from exampp.formats.literals import literal
from exampp.store.connection import connect_memory

SECONDS = 5.0
SHORTEST = 6
"""Characters of texts that are looked for: shorter ones occur by chance."""
LONG = 300
"""Characters of an answer that may be cut into passages; spaces and line breaks count as one."""
AMBIGUOUS = frozenset({"LangSmith, examples of a data set"})
"""Forms that are another form without one of their fields."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""The folder of the damaged files."""
OF_FIELDS = re.compile(r": \d+ fields? not read: ")
"""The mark of the remark on the fields that a report has one by one."""
END = "\x1f"
"""The separator of the parts of a path."""
COLUMNS = ("columns", "data")
Pairs = Counter[tuple[str, str]]
"""Counts of (path, text) in a file."""
Reported = set[str]
Rankings = Mapping[tuple[str, str], Sequence[str]]
"""Texts of a system by (query id, system)."""


class Finding(NamedTuple):
    """A fault: input, place and text."""

    seed: int
    form: str
    what: str


# ---- mutations of fields -------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (None, "", " ", [], {}, 0, -1, 1.5, True, "x", ["x"], {"x": "y"}, [[]])


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value inside."""
    keys = [*value] if isinstance(value, dict) else range(len(value))
    for key in keys if isinstance(value, dict | list) else ():
        yield value, key
        yield from nodes(value[key]) if isinstance(value[key], dict | list) else ()


def _lose(holder: Any, key: Any, _: random.Random) -> None:
    del holder[key]


def _replace(holder: Any, key: Any, chance: random.Random) -> None:
    holder[key] = copy.deepcopy(chance.choice(VALUES))


def _rename(holder: Any, key: Any, chance: random.Random) -> None:
    if isinstance(holder, dict) and len(key) > 1:
        at = chance.randrange(len(key) - 1)
        holder[key[:at] + key[at + 1] + key[at] + key[at + 2 :]] = holder.pop(key)


def _wrap(holder: Any, key: Any, chance: random.Random) -> None:
    value = holder[key]
    holder[key] = chance.choice(
        ([value], {"value": value}, json.dumps(value), [value, copy.deepcopy(value)])
    )


def _repeat(holder: Any, key: Any, _: random.Random) -> None:
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))


FIELD_MUTATIONS: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    *(_lose, _lose, _replace, _replace, _rename, _wrap, _repeat),
)


def damaged(content: str, chance: random.Random) -> bytes:
    """Return the file with one to three faults, of bytes or of fields."""
    if chance.random() < 0.4:
        return mutated(content.encode(), chance)
    separate = {"lines": content.splitlines()}
    try:
        documents = [json.loads(content)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in separate["lines"]]
        except ValueError:
            return _damaged_table(content, chance)
    for _ in range(chance.choice((1, 1, 2, 3))):
        places = [*nodes(documents)]
        if places:
            chance.choice(FIELD_MUTATIONS)(*chance.choice(places), chance)
    indent = 1 if content.startswith(("{\n", "[\n")) else None
    return "".join(f"{json.dumps(one, indent=indent)}\n" for one in documents).encode()


def _damaged_table(content: str, chance: random.Random) -> bytes:
    if content.lstrip()[:1] not in "{[" and "," in content.partition("\n")[0]:
        rows = [*csv.reader(io.StringIO(content, newline=""))]
        row = chance.choice(rows)
        at = chance.randrange(len(row)) if row else 0
        fault = chance.randrange(4)
        if fault == 0 and row:
            row[at] = chance.choice(("", " ", "x", "[]", "{", "1.5", "null", row[at] * 2))
        elif fault == 1 and row:
            del row[at]
        elif fault == 2:
            for one in rows:
                del one[at : at + 1]
        else:
            rows.append(row)
        out = io.StringIO()
        csv.writer(out).writerows(rows)
        return out.getvalue().encode()
    return mutated(content.encode(), chance)


# ---- oracle --------------------------------------------------------------------------------------


def fields_of(content: str) -> Pairs:
    """Return the (path, text) of a file: fields of objects, or columns; lists have no part."""
    for documents in ([content], content.splitlines()):
        try:
            return Counter(chain(*(_pairs(json.loads(one), "") for one in documents)))
        except (ValueError, RecursionError):
            continue
    try:
        header, *rows = csv.reader(io.StringIO(content, newline=""))
    except (ValueError, csv.Error):
        return Counter()
    cells = (pair for row in rows for pair in zip(header, row, strict=False))
    return Counter(chain(*(_pairs(cell, field.strip()) for field, cell in cells)))


def _pairs(value: Any, field: str) -> Iterator[tuple[str, str]]:
    opened = literal(value) if isinstance(value, str) else value
    if isinstance(opened, dict) and [*map(type, map(opened.get, COLUMNS))] == [list, list]:
        # a table of pandas, whose texts have the names of their columns
        opened = [
            dict(zip(map(str, opened["columns"]), row, strict=False))
            for row in opened["data"]
            if isinstance(row, list)
        ]
    if isinstance(opened, dict):
        for key, one in opened.items():
            yield from _pairs(one, f"{field}{END}{key}")
    elif isinstance(opened, list):
        for one in opened:
            yield from _pairs(one, field)
    elif isinstance(value, str) and value.strip():
        yield field, value.strip()


def roles_of(
    held: Contents, expected: Contents, rankings: Rankings | None = None
) -> dict[str, set[str]]:
    """Return the texts of a collection by their role.

    The contexts of records without an answer belong to a system with the name of the file; they
    are recognised in the ranking of a query, if `rankings` are given, or else in all of a system.
    """
    contexts, answers = set[str](), {text for some in held.answers.values() for text in some}
    known = {
        text
        for system, some in expected.contexts.items()
        if system.endswith(":contexts") or f"{system}:contexts" not in expected.contexts
        for text in some
    }
    of_systems = {("", system): some for system, some in held.contexts.items()}
    for (query, system), some in (rankings or of_systems).items():
        of_contexts = (query, f"{system}:contexts")
        is_alone = of_contexts not in (rankings or of_systems) and not known.isdisjoint(some)
        is_context = system.endswith(":contexts") or is_alone
        (contexts if is_context else answers).update(some)
    return {
        "query": {*held.queries},
        "context": contexts,
        "answer": answers,
        "reference": {*held.references},
        "item": {text for text, _ in held.nuggets},
    }


def rankings_in(folder: Path) -> Rankings:
    """Return the texts that `contents` wrote, by query and system."""
    if not (folder / "out.run").exists():
        return {}
    with (folder / "texts.jsonl").open() as file:
        texts = {row["passage_id"]: row["text"] for row in map(json.loads, file)}
    rankings: dict[tuple[str, str], list[str]] = {}
    for line in (folder / "out.run").read_text().splitlines():
        query, _, passage, _, _, system = line.split()
        rankings.setdefault((query, system), []).append(texts[passage])
    return rankings


class Expected(NamedTuple):
    """An undamaged file: its fields, the texts by role, and the names in its report."""

    fields: Pairs
    roles: Mapping[str, set[str]]
    role_of: Mapping[str, str]
    reported: Reported


@cache
def expected_of(name: str) -> Expected:
    """Return what the undamaged file of a form holds."""
    form = FORMS[name]
    roles = roles_of(form.expected, form.expected)
    with exam_of_this_process() as exam, tempfile.TemporaryDirectory(dir=MEMORY) as made:
        (Path(made) / form.name).write_text(form.content)
        report = exam.import_files(Path(made) / form.name)
    role_of = {one: role for role, some in roles.items() for one in some}
    return Expected(fields_of(form.content), roles, role_of, reported_by(report))


def reported_by(report: Any) -> Reported:
    """Return the remarks and the fields not read of an import, without the name of the file."""
    remarks = {one.rpartition(": ")[2] for one in report.remarks if not OF_FIELDS.search(one)}
    return remarks | {field for fields in report.unread.values() for field in fields}


def names_of(text: str, fields: Pairs) -> set[str]:
    """Return the names of the fields that have a text."""
    return {path.rpartition(END)[2] for path, value in fields if value == text}


def wrong(name: str, data: bytes, held: Contents, folder: Path, report: Any) -> Iterator[str]:
    """Yield what is wrong with the contents of a collection of a damaged file."""
    text = data.decode("utf-8", "replace")
    before, expected, role_of, reported = expected_of(name)
    after = fields_of(text)
    # a damaged table may have other separators than `fields_of` finds: quotes are doubled there
    everything = "\n".join((text, text.replace('""', '"'), *(one for _, one in after)))
    is_long = any(len(one) > LONG for _, one in after)
    everything = " ".join(everything.split()) if is_long else everything
    found = roles_of(held, FORMS[name].expected, rankings_in(folder))
    written = folder / "texts.jsonl"
    passages = written.read_text() if written.exists() else ""
    stored = passages + "\n".join(one for some in found.values() for one in some)
    is_replaced = "\0" in text and bool(report.replaced)
    is_reported = bool(report.skipped or reported_by(report) - reported)
    for role, texts in found.items():
        for one in texts:
            for line in one.splitlines():
                said = line.removeprefix("user: ").removeprefix("assistant: ")
                said = " ".join(said.split()) if is_long else said
                if said not in everything and not ({*"\\\ufffd"} & {*text} or is_replaced):
                    yield f"{role} {line!r} is not in the file"
            names, was = names_of(one, after), names_of(one, before)
            is_moved = one not in expected[role] and one in role_of and names and names <= was
            if (
                is_moved
                and name not in AMBIGUOUS
                and not any("is read as" in remark for remark in report.remarks)
            ):
                yield f"{role_of[one]} {one!r} is a {role}"
    for one, role in role_of.items():
        places = Counter({pair: count for pair, count in before.items() if pair[1] == one})
        is_there = not names_of(one, before).isdisjoint(names_of(one, after))
        # of several places with this text, one that is damaged may be the one that counts
        is_damaged = places.total() > 1 and bool(places - after)
        is_lost = is_there and not is_damaged and one not in stored
        if len(one) >= SHORTEST and is_lost and not is_reported:
            yield f"{role} {one!r} is lost without a word"


@cache
def collections() -> tuple[exampp.Collection, sqlite3.Connection]:
    """Return the collection of this process, in memory, and its empty copy."""
    exam = exampp.Collection.__new__(exampp.Collection)
    exam.path, exam._graded_file = Path("my.exam"), None
    exam.connection = connect_memory(exam.path)
    empty = sqlite3.connect(":memory:")
    exam.connection.backup(empty)
    return exam, empty


@contextmanager
def exam_of_this_process() -> Iterator[exampp.Collection]:
    """Yield the collection of this process, which is emptied afterwards."""
    exam, empty = collections()
    if holds_anything(exam):
        empty.backup(exam.connection)
    yield exam


def holds_anything(exam: exampp.Collection) -> bool:
    """Return whether a collection has a row of any import."""
    tables = ("query", "passage", "system", "judgment", "bank", "item")
    rows = (exam.connection.execute(f"SELECT 1 FROM {one} LIMIT 1") for one in tables)
    return any(row.fetchone() for row in rows)


def case(seed: int) -> tuple[str, list[Finding]]:
    """Damage and import one file; return the outcome and the findings."""
    chance = random.Random(seed)
    name = chance.choice(sorted(FORMS))
    form = FORMS[name]
    expected_of(name)
    data = damaged(form.content, chance)
    outcome, found = "read", list[str]()
    with exam_of_this_process() as exam, tempfile.TemporaryDirectory(dir=MEMORY) as made:
        folder = Path(made)
        (folder / form.name).write_bytes(data)
        started = time.process_time()
        report = None
        try:
            report = exam.import_files(
                folder / form.name, on_error=chance.choice(("refuse", "skip"))
            )
            held = contents(exam, folder)
            found += wrong(name, data, held, folder, report)
        except ExamError as error:
            outcome = "refused"
            if report is not None and "cannot be a column of a TREC file" not in str(error):
                found.append(f"imported, but not exported: {error}")
            if report is None and holds_anything(exam):
                found.append("refused, but the collection is not empty")
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            found.append(f"{type(error).__name__}: {error} ({place})")
        if (took := time.process_time() - started) > SECONDS:
            found.append(f"took {took:.1f} s")
    return outcome, [Finding(seed, name, what[:300]) for what in found]


def run(seed: int, count: int, jobs: int = 1) -> tuple[list[Finding], Mapping[str, int]]:
    """Run cases; return the findings, and how many files were read and refused."""
    seeds = range(seed, seed + count)
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            results = [*pool.map(case, seeds, chunksize=50)]
    else:
        results = [*map(case, seeds)]
    outcomes = Counter(outcome for outcome, _ in results)
    return [finding for _, found in results for finding in found], outcomes


def main() -> None:
    """Run the campaign and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    findings, outcomes = run(given.seed, given.count, given.jobs)
    groups: dict[str, list[int]] = {}
    for one in findings:
        groups.setdefault(f"{one.form}: {one.what}", []).append(one.seed)
    for what, seeds in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(seeds):6}  {what}  (seeds {', '.join(map(str, seeds[:3]))})")
    print(
        f"{given.count} damaged files of {len(FORMS)} forms: {outcomes['read']} read, "
        f"{outcomes['refused']} refused with a sentence, {len(findings)} findings"
    )
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
