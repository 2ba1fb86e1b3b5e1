"""An exam large enough to draw from: twelve queries, three systems, and a truth."""

from __future__ import annotations

import hashlib
from pathlib import Path

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader

QUERIES = [f"q{number:02}" for number in range(12)]
PASSAGES = [f"p{number}" for number in range(9)]
RUNS = {"alpha": "012345", "beta": "345678", "gamma": "012678"}


def chance(*parts: str) -> int:
    return hashlib.sha256("|".join(parts).encode()).digest()[0]


def relevance(query: str, passage: str) -> int:
    """Return the judgment of people: 0 to 3."""
    return chance("truth", query, passage) % 4


def rate(ask: Request) -> str:
    """A grade that has something to do with nothing: the sample must find that out."""
    return str(chance("grade", ask.item, ask.passage) % 6)


def make(folder: Path, name: str = "sampled.exam") -> Path:
    """The exam, graded; nobody has judged anything."""
    exam = exampp.create(folder / name)
    exam.add(
        queries={query: f"what of {query}" for query in QUERIES},
        passages={f"{q}-{p}": f"Passage {p} of {q}." for q in QUERIES for p in PASSAGES},
        bank={query: [f"First of {query}?", f"Second of {query}?"] for query in QUERIES},
        runs={
            system: {q: {f"{q}-p{p}": 9 - rank for rank, p in enumerate(row)} for q in QUERIES}
            for system, row in RUNS.items()
        },
    )
    exam.grade(ScriptedGrader(rate, record=False))
    exam.close()
    return folder / name


def qrels() -> dict[str, dict[str, int]]:
    return {q: {f"{q}-{p}": relevance(q, p) for p in PASSAGES} for q in QUERIES}
