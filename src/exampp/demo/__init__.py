"""A small example collection: six topics, five systems, banks and judgments, to try things on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.output import writing

_HERE = Path(str(resources.files(__package__)))
_DATA = _HERE / "data"


def demo_files() -> tuple[Path, ...]:
    """Return the example's files, ready for `Collection.import_files`."""
    return tuple(sorted(path for path in _DATA.rglob("*") if path.is_file()))


def tour_files() -> Mapping[str, str]:
    """The same example as the files that the documentation uses, as plain as they can be: by name.

    Queries and their texts, one bank of two columns, all passages, the runs, and the ranks of the
    systems by people's judgments, of which the generated one has none.
    """
    return dict(_tour())


def _tour() -> Iterator[tuple[str, str]]:
    queries = map(json.loads, _lines("queries.jsonl"))
    yield "queries.tsv", "".join(f"{query['query_id']}\t{query['text']}\n" for query in queries)
    yield (
        "passages.jsonl",
        "".join(
            f"{line}\n"
            for name in ("passages.jsonl", "generated-passages.jsonl")
            for line in _lines(name)
        ),
    )
    bank = io.StringIO()
    writer = csv.writer(bank, lineterminator="\n")
    writer.writerow(["query_id", "question"])
    for row in csv.DictReader(_lines("questions.tsv"), delimiter="\t"):
        writer.writerow([row["query_id"], row["question"]])
    yield "bank.csv", bank.getvalue()
    for run in sorted((_DATA / "runs").iterdir()):
        yield f"runs/{run.name}", run.read_text(encoding="utf-8")
    yield "leaderboard.json", (_HERE / "leaderboard.json").read_text(encoding="utf-8")


def _lines(name: str) -> list[str]:
    return (_DATA / name).read_text(encoding="utf-8").splitlines()


def write_tour(folder: Path) -> None:
    """Write `tour_files` into a folder, which is made if there is none.

    Raises:
        InputError: One of them is there already; nothing is written then.
    """
    files = {folder / name: text for name, text in tour_files().items()}
    for path in files:
        if path.exists():
            raise InputError("exists already", file=path, hint="Choose another folder")
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        for path, text in files.items():
            with writing(path) as stream:
                stream.write(text.encode())
            undo.callback(path.unlink, missing_ok=True)
        undo.pop_all()
