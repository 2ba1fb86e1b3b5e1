"""A small exam written by hand: two queries, four passages, three systems."""

from __future__ import annotations

import functools
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import exampp
from exampp.records.gradebook import QueryGrades as QueryGrades

QUERIES = {"q1": "why is the sky blue", "q2": "how do magnets work"}
PASSAGES = {
    "p1": "Air scatters blue light more than red light.",
    "p2": "At sunset the light crosses more air.",
    "p3": "Aligned electron spins make a magnet.",
    "p4": "Compasses point north.",
}
QUESTIONS = {
    "q1": ["What does air scatter?", "Why are sunsets red?"],
    "q2": ["What makes a magnet?"],
}
RUN = """\
q1 Q0 p1 1 2.0 alpha
q1 Q0 p2 2 1.0 alpha
q2 Q0 p3 1 2.0 alpha
q1 Q0 p4 1 1.0 beta
q2 Q0 p4 1 1.5 beta
"""
QRELS = "q1 0 p1 3\nq1 0 p2 1\nq1 0 p4 0\nq2 0 p3 2\n"


def write_files(folder: Path) -> list[Path]:
    """The files of the exam, each in a plain format."""
    contents = {
        "queries.json": json.dumps(QUERIES),
        "passages.jsonl": "".join(
            json.dumps({"id": name, "text": text}) + "\n" for name, text in PASSAGES.items()
        ),
        "questions.tsv": "query_id\tquestion\n"
        + "".join(f"{q}\t{text}\n" for q, texts in QUESTIONS.items() for text in texts),
        "systems.run": RUN,
        "judgments.qrels": QRELS,
    }
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in contents]


def make(folder: Path, name: str = "my.exam") -> exampp.Collection:
    """The exam as an open collection."""
    write_files(folder / "files")
    (folder / name).write_bytes(_imported())
    return exampp.Collection(folder / name)


@functools.cache
def _imported() -> bytes:
    """The collection, made once in a process: it says nothing of where or for whom it was made."""
    with tempfile.TemporaryDirectory() as folder:
        with exampp.Collection.create(Path(folder, "my.exam")) as collection:
            collection.import_files(*write_files(Path(folder, "files")))
        return collection.path.read_bytes()


def damaged(folder: Path, table: str) -> Path:
    """The exam, graded, with the first page of a table overwritten."""
    with make(folder) as collection:
        collection.grade("draft")
    path = folder / "my.exam"
    with closing(sqlite3.connect(path)) as opened:
        row = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        page, size = row.fetchone()[0], opened.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    return path


def tables(path: Path) -> dict[str, list[Any]]:
    """Every row of every table of a collection."""
    from exampp.store.connection import connect

    opened = connect(path)
    names = [
        row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    found = {name: opened.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    opened.close()
    return found
