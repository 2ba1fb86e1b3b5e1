"""Runs as CSV with the columns query, passage, rank, score, system."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import exampp
from exampp.records import RankedPassage

COLUMNS = ["query", "passage", "rank", "score", "system"]


def read(path: Path, _options: object) -> Iterator[RankedPassage]:
    """The lines of a run; whatever goes wrong here, the import tells it and changes nothing."""
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            yield RankedPassage(
                row["query"], row["passage"], int(row["rank"]), float(row["score"]), row["system"]
            )


def write(path: Path, run: Iterable[RankedPassage]) -> None:
    """Write the lines of all systems."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(COLUMNS)
        for one in run:
            rows.writerow([one.query_id, one.passage_id, one.rank, one.score, one.system])


CSV_RUN = exampp.Format("runs", read, write)
