"""Makes an exam as large as a track's: systems of known skill, graded passages, judgments.

python benchmarks/large_exam.py OUT.exam [--systems 100] [--queries 200] [--passages 500]

Beside OUT.exam lie `OUT.official.json`, systems by their true skill, and the graded file that the
collection was imported from, `OUT.graded.jsonl.gz`. The same arguments and seed give the same exam.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import exampp

SUBJECTS = ("tides", "magnets", "vaccines", "glaciers", "interest rates", "bridges", "enzymes")
ASPECTS = ("cause", "history", "measurement", "cost", "effect", "limit", "origin", "use", "risk")
FAMILIES = ("bm25-tuned", "splade", "colbert", "t5-rerank", "dense-large", "rag-flan", "hybrid")
DEPTH = 20
PROMPT = {
    "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "prompt_style": "Can the question be answered based on the available context? choose one:",
    "context_first": False,
    "is_self_rated": True,
}


def system_names(systems: int) -> list[str]:
    """Names as tracks have them, of several families and lengths."""
    return [f"{FAMILIES[n % len(FAMILIES)]}-run{n:03d}" for n in range(systems)]


def questions(query: int, items: int) -> list[tuple[str, str]]:
    """(id, text) of the questions of a query."""
    subject = SUBJECTS[query % len(SUBJECTS)]
    texts = [
        f"What is the {ASPECTS[n % len(ASPECTS)]} number {n} of {subject} in case {query}?"
        for n in range(items)
    ]
    ids = (hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() for text in texts)
    return [(f"q{query}/{digest}", text) for digest, text in zip(ids, texts, strict=True)]


def rate(
    random: np.random.Generator, quality: NDArray[np.float64], items: int
) -> NDArray[np.int64]:
    """Ratings 0-5 of passages x items: better passages answer more, some items are hard."""
    hardness = random.normal(2.6, 1.2, items)
    latent = quality[:, None] - hardness + random.normal(0, 0.8, (len(quality), items))
    return np.digitize(latent, (-0.9, -0.5, -0.1, 0.3, 0.9))


def rank(
    random: np.random.Generator, quality: NDArray[np.float64], skill: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The first passages of every system, systems x DEPTH: skill is how far it sees quality."""
    noise = random.normal(0, 1, (len(skill), len(quality)))
    seen = skill[:, None] * quality + noise
    return np.argsort(-seen, axis=1)[:, :DEPTH]


def passage_line(
    query: int, row: int, judgment: int, ratings: list[int], ids: list[str]
) -> dict[str, Any]:
    """One passage as the workbench writes it, still without rankings."""
    words = " ".join(f"{SUBJECTS[(row + n) % len(SUBJECTS)]} {n * row % 97}" for n in range(18))
    name = f"p{query}-{row}"
    rated = list(zip(ids, ratings, strict=True))
    return {
        "paragraph_id": name,
        "text": f"Passage {name} on {SUBJECTS[query % len(SUBJECTS)]}: {words}.",
        "paragraph": {},
        "paragraph_data": {
            "judgments": [{"paragraphId": name, "query": f"q{query}", "relevance": judgment}],
            "rankings": [],
        },
        "exam_grades": [
            {
                "correctAnswered": [i for i, rating in rated if rating],
                "wrongAnswered": [i for i, rating in rated if not rating],
                "answers": [[i, str(rating)] for i, rating in rated],
                "llm": "google/flan-t5-large",
                "llm_options": {},
                "exam_ratio": sum(rating > 0 for rating in ratings) / len(ratings),
                "prompt_info": PROMPT,
                "self_ratings": [{"question_id": i, "self_rating": r} for i, r in rated],
            }
        ],
    }


def lines(options: argparse.Namespace) -> Iterator[list[object]]:
    """The lines of the graded file, one a query."""
    random = np.random.default_rng(options.seed)
    names = system_names(options.systems)
    skill = np.linspace(1.6, 0.2, options.systems)
    for query in range(options.queries):
        quality = random.normal(0, 1, options.passages)
        ratings = rate(random, quality, options.items)
        judgments = np.digitize(quality + random.normal(0, 0.4, len(quality)), (0.8, 1.4, 2.0))
        ids = [item_id for item_id, _ in questions(query, options.items)]
        passages = [
            passage_line(query, row, int(judgments[row]), ratings[row].tolist(), ids)
            for row in range(options.passages)
        ]
        ranked: list[list[dict[str, object]]] = [[] for _ in passages]
        of_query = np.maximum(0.05, skill + random.normal(0, 0.25, len(skill)))
        for system, top in zip(names, rank(random, quality, of_query).tolist(), strict=True):
            for place, row in enumerate(top, 1):
                ranked[row].append(
                    {
                        "method": system,
                        "paragraphId": f"p{query}-{row}",
                        "queryId": f"q{query}",
                        "rank": place,
                        "score": float(DEPTH - place),
                    }
                )
        for passage, rankings in zip(passages, ranked, strict=True):
            passage["paragraph_data"]["rankings"] = rankings
        yield [f"q{query}", passages]


def write_graded(path: Path, options: argparse.Namespace) -> None:
    """The graded file."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as stream:
        for line in lines(options):
            stream.write(json.dumps(line) + "\n")


def write_inputs(folder: Path, options: argparse.Namespace) -> list[Path]:
    """The queries and the bank, for what a graded file does not hold."""
    texts = {f"q{n}": f"{SUBJECTS[n % len(SUBJECTS)]}, case {n}" for n in range(options.queries)}
    (folder / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
    rows = "".join(
        f"q{n}\t{text}\n" for n in range(options.queries) for _, text in questions(n, options.items)
    )
    (folder / "bank.tsv").write_text("query_id\tquestion\n" + rows, encoding="utf-8")
    return [folder / "queries.json", folder / "bank.tsv"]


def main() -> None:
    """Make the exam."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path)
    for name, default in (("systems", 100), ("queries", 200), ("items", 10), ("passages", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    stem = options.out.with_suffix("")
    graded = Path(f"{stem}.graded.jsonl.gz")
    write_graded(graded, options)
    print(f"{graded}: {time.monotonic() - started:.1f} s")
    skilled = {name: place for place, name in enumerate(system_names(options.systems), 1)}
    Path(f"{stem}.official.json").write_text(json.dumps(skilled), encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        exampp.Collection.create(options.out) as collection,
    ):
        collection.import_files(*write_inputs(Path(folder), options), graded)
        print(collection.contents().rows)
    print(f"{options.out}: {time.monotonic() - started:.1f} s in all")


if __name__ == "__main__":
    main()
