"""Damage a file of every form of other programs, import it, and compare what was read.

    python benchmarks/campaigns/mutated_forms.py [--count 100000] [--seed 1] [--jobs 2]

The oracle of a form is what its undamaged file holds (tests/support/forms.py). Findings are:

- an exception that is not exampp's own, or more than `SECONDS` of CPU time;
- a text in the collection that is not in the damaged file;
- a text in another role than in the undamaged file, although its field has the same name;
- a text that is still in its field and in no part of the collection, without an error, a skipped
  record, a remark or a field that is named as not read.

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
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
from mutated_files import mutated
from support.forms import FORMS, Contents, Form, contents

import exampp
from exampp.errors import ExamError
from exampp.formats.traces import literal

SECONDS = 5.0
SHORTEST = 6
"""Characters of texts that are looked for: shorter ones occur by chance."""
AMBIGUOUS = frozenset({"LangSmith, examples of a data set"})
"""Forms that are another form without one of their fields."""
Pairs = set[tuple[str, str]]


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
    """Return the (field, text) of a file: fields of objects, or columns."""
    for documents in ([content], content.splitlines()):
        try:
            return {*chain(*(_pairs(json.loads(one), "") for one in documents))}
        except (ValueError, RecursionError):
            continue
    try:
        header, *rows = csv.reader(io.StringIO(content, newline=""))
    except (ValueError, csv.Error):
        return set()
    cells = (pair for row in rows for pair in zip(header, row, strict=False))
    return {*chain(*(_pairs(cell, field.strip()) for field, cell in cells))}


def _pairs(value: Any, field: str) -> Iterator[tuple[str, str]]:
    opened = literal(value) if isinstance(value, str) else value
    if isinstance(opened, dict):
        for key, one in opened.items():
            yield from _pairs(one, str(key))
    elif isinstance(opened, list):
        for one in opened:
            yield from _pairs(one, field)
    elif isinstance(value, str) and value.strip():
        yield field, value.strip()


def roles_of(held: Contents, expected: Contents) -> dict[str, set[str]]:
    """Return the texts of a collection by their role.

    The contexts of records without an answer belong to a system with the name of the file.
    """
    contexts, answers = set[str](), {text for some in held.answers.values() for text in some}
    known = {text for some in expected.contexts.values() for text in some}
    for system, some in held.contexts.items():
        is_alone = f"{system}:contexts" not in held.contexts and not known.isdisjoint(some)
        is_context = system.endswith(":contexts") or is_alone
        (contexts if is_context else answers).update(some)
    return {
        "query": {*held.queries},
        "context": contexts,
        "answer": answers,
        "reference": {*held.references},
        "item": {text for text, _ in held.nuggets},
    }


def wrong(name: str, form: Form, data: bytes, held: Contents, report: Any) -> Iterator[str]:
    """Yield what is wrong with the contents of a collection of a damaged file."""
    text = data.decode("utf-8", "replace")
    before, after = fields_of(form.content), fields_of(text)
    everything = text + "\n".join(one for _, one in after)
    expected, found = (roles_of(one, form.expected) for one in (form.expected, held))
    role_of = {one: role for role, some in expected.items() for one in some}
    stored = "\n".join(one for some in found.values() for one in some)
    is_reported = bool(report.skipped or report.unread or report.remarks)
    for role, texts in found.items():
        for one in texts:
            for line in one.splitlines():
                said = line.removeprefix("user: ").removeprefix("assistant: ")
                if said not in everything and not {*"\\\ufffd"} & {*text}:
                    yield f"{role} {line!r} is not in the file"
            names = {field for field, value in after if value == one}
            was = {field for field, value in before if value == one}
            is_moved = one not in expected[role] and one in role_of and names and names <= was
            if (
                is_moved
                and name not in AMBIGUOUS
                and not any("is read as" in remark for remark in report.remarks)
            ):
                yield f"{role_of[one]} {one!r} is a {role}"
    for one, role in role_of.items():
        names = {field for field, value in before if value == one}
        is_there = any((field, one) in after for field in names)
        if len(one) >= SHORTEST and is_there and one not in stored and not is_reported:
            yield f"{role} {one!r} is lost without a word"


def case(seed: int) -> tuple[str, list[Finding]]:
    """Damage and import one file; return the outcome and the findings."""
    chance = random.Random(seed)
    name = chance.choice(sorted(FORMS))
    form = FORMS[name]
    data = damaged(form.content, chance)
    outcome, found = "read", list[str]()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        folder = Path(made)
        (folder / form.name).write_bytes(data)
        started = time.process_time()
        with exampp.Collection.create(folder / "my.exam") as exam:
            try:
                report = exam.import_files(
                    folder / form.name, on_error=chance.choice(("raise", "skip"))
                )
                found += wrong(name, form, data, contents(exam, folder), report)
            except ExamError:
                outcome = "refused"
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
