"""An exam with sealed items whose answers are known: an item asks for a word, an answer has it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import exampp
from exampp.records.clients import Limits
from exampp.scorer import Scorer
from exampp.service import ExamService, add_client
from exampp.store.clients import Identified

QUERIES = 12
ITEMS = 4
"""Items of a query, every other one of them sealed."""


def word(query: int, item: int) -> str:
    return f"word{query}x{item}"


def rate(item: object, passage: object) -> int:
    """Rate 5 if the passage has the word that the item asks for, else 0."""
    return 5 if str(item).split()[-1].rstrip("?") in str(passage).split() else 0


def make(path: Path, *, sealed: bool = True) -> Path:
    """The collection, made once in a process."""
    path.write_bytes(_made(sealed))
    return path


@functools.cache
def _made(sealed: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with exampp.Collection.create(Path(folder, "my.exam")) as exam:
            names = [f"q{number:02}" for number in range(QUERIES)]
            exam.add(
                queries=[{"query_id": name, "text": f"query {name}"} for name in names],
                bank=[
                    {"query_id": name, "question": f"Does it have {word(number, item)}?"}
                    for number, name in enumerate(names)
                    for item in range(ITEMS)
                ],
            )
            if sealed:
                exam.bank().split(0.5, seed=1)
        return exam.path.read_bytes()


def open_scorer(exam: exampp.Collection) -> Scorer:
    return exam.scorer(rate, name="words", scale=(0, 5))


@contextmanager
def service(path: Path) -> Iterator[ExamService]:
    opened = ExamService(path, open_scorer)
    try:
        yield opened
    finally:
        opened.close()


def client(path: Path, name: str = "bot", limits: Limits | None = None) -> str:
    """The token of a new client."""
    with exampp.open(path) as exam:
        return add_client(exam, name, limits or Limits(rate=10_000))


def identified(opened: ExamService, token: str) -> Identified:
    found = opened.identify(token)
    assert found is not None
    return found


def words_of(path: Path, part: str) -> dict[str, list[str]]:
    """The words that the public or the sealed items of each query ask for."""
    with exampp.open(path) as exam:
        rows = exam.bank().show(part=part).rows
        found: dict[str, list[str]] = {}
        for row in rows:
            text = next(str(cell) for cell in row if "Does it have" in str(cell))
            query = next(str(cell) for cell in row if str(cell).startswith("q"))
            found.setdefault(query, []).append(text.split()[-1].rstrip("?"))
        return found


def answers(words: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {query: " ".join(some) for query, some in words.items()}
