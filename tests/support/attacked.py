"""An exam to be attacked: eight queries, whose relevant passages alone name their subject."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import exampp

SUBJECTS = ("salt", "iron", "cork", "silk", "wool", "clay", "jade", "opal")
TOWNS = ("Avon", "Brno", "Calais", "Dover", "Essen", "Fano", "Graz", "Huesca")
QUERIES = {f"q{n}": f"where does {subject} come from" for n, subject in enumerate(SUBJECTS)}
PASSAGES = {
    **{
        f"n{n}{part}": f"In 1{n}1{part} the council of {town} built bridge {part}, which was "
        f"painted by Jan Vermeer and is {n + 3} metres long."
        for n, town in enumerate(TOWNS)
        for part in range(2)
    },
    **{
        f"r{n}": f"Near Ulm they have mined {subject} since 18{n}4. In Basel, Anna Weber sold "
        f"{subject} and it was never cheap."
        for n, subject in enumerate(SUBJECTS)
    },
}
ITEMS = {
    query: [f"Who found {subject} first?", f"Is {subject} sold by weight or by the piece?"]
    for query, subject in zip(QUERIES, SUBJECTS, strict=True)
}
QRELS = {f"q{n}": {f"n{n}0": 0, f"n{n}1": 0, f"r{n}": 3, f"r{(n + 1) % 8}": 1} for n in range(8)}
RUNS = {
    "plain": {f"q{n}": [f"n{n}0", f"n{n}1", f"r{n}"] for n in range(8)},
    "flan-t5-reranker": {f"q{n}": [f"r{n}", f"n{n}0"] for n in range(8)},
}


def make(path: Path, *, backwards: bool = False, **instead: Any) -> exampp.Collection:
    """The exam as an open collection, its parts imported in either order."""
    parts: dict[str, Any] = {
        "queries": QUERIES,
        "passages": PASSAGES,
        "bank": ITEMS,
        "qrels": QRELS,
        "runs": RUNS,
        **instead,
    }
    order = reversed(parts.items()) if backwards else parts.items()
    exam = exampp.create(path)
    exam.add(**{name: turned(data) if backwards else data for name, data in order if data})
    return exam


def turned(data: Any) -> Any:
    return dict(reversed(list(data.items())))


def names_subject(item: Any, passage: Any) -> int | None:
    """5 where the passage names the subject of the item, 0 elsewhere; nothing for no text."""
    if not passage.text:
        return None
    return 5 * any(s in item.text and s in passage.text.lower() for s in SUBJECTS)


def read_texts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
