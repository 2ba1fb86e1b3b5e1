"""Makes the runs of the demo's five systems from its passages and queries.

    python tools/build_demo.py

Writes `runs/*.run` and `generated-passages.jsonl` into `src/exampp/demo/data`. The systems differ
on purpose: BM25 matches words, dense compares averaged MiniLM vectors, rerank fuses both over the
top of BM25, random draws from all passages, generated is a written answer.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from exampp.graders.draft import Vectors, load_encoder

DATA = Path(__file__).parents[1] / "src" / "exampp" / "demo" / "data"
GENERATED = Path(__file__).parent / "demo" / "generated.jsonl"
DEPTH = 10
Ranking = Mapping[str, float]


STOPWORDS = {"a", "and", "do", "how", "in", "of", "the", "to"}


def words(text: str) -> list[str]:
    """Lower-case words but stopwords, with a plural s cut off: a light stemmer."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return [word.rstrip("s") for word in found if word not in STOPWORDS]


class BM25:
    """Okapi BM25, k1 = 1.2, b = 0.75 (Robertson and Zaragoza, 2009)."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.counts = {name: Counter(words(text)) for name, text in texts.items()}
        self.lengths = {name: sum(counts.values()) for name, counts in self.counts.items()}
        self.average = sum(self.lengths.values()) / len(texts)
        self.containing = Counter(word for counts in self.counts.values() for word in counts)

    def scores(self, query: str) -> Ranking:
        """Score of every text that shares a word with the query."""
        found = {name: self._score(name, words(query)) for name in self.counts}
        return {name: score for name, score in found.items() if score > 0}

    def _score(self, name: str, query: list[str]) -> float:
        total = 0.0
        for word in query:
            n, count = self.containing[word], self.counts[name][word]
            idf = math.log(1 + (len(self.counts) - n + 0.5) / (n + 0.5))
            norm = 1.2 * (0.25 + 0.75 * self.lengths[name] / self.average)
            total += idf * count * 2.2 / (count + norm)
        return total


def dense(texts: Mapping[str, str], queries: Mapping[str, str]) -> dict[str, Ranking]:
    """Cosine of averaged token vectors."""
    encode = load_encoder()

    def vector(text: str) -> Vectors:
        mean: Vectors = encode(text).vectors.mean(axis=0)
        return mean / np.linalg.norm(mean)

    vectors = {name: vector(text) for name, text in texts.items()}
    return {
        query_id: {name: float(known @ vector(query)) for name, known in vectors.items()}
        for query_id, query in queries.items()
    }


def top(scores: Ranking) -> list[tuple[str, float]]:
    """The best `DEPTH`, ties by name."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:DEPTH]


def rescaled(scores: Ranking) -> Ranking:
    """Scores moved to 0..1."""
    low, high = min(scores.values()), max(scores.values())
    return {name: (score - low) / (high - low or 1) for name, score in scores.items()}


def main() -> None:
    """Write the runs."""
    passages = [json.loads(line) for line in (DATA / "passages.jsonl").open(encoding="utf-8")]
    texts = {passage["id"]: f"{passage['title']} {passage['text']}" for passage in passages}
    topics = [json.loads(line) for line in (DATA / "queries.jsonl").open(encoding="utf-8")]
    queries = {topic["query_id"]: topic["text"] for topic in topics}
    lexical = BM25(texts)
    bm25 = {query_id: lexical.scores(query) for query_id, query in queries.items()}
    cosine = dense(texts, queries)
    rerank: dict[str, Ranking] = {}
    for query_id in queries:
        first, second = rescaled(bm25[query_id]), rescaled(cosine[query_id])
        rerank[query_id] = {name: first[name] + second[name] for name in first}
    chance = random.Random(7)
    shuffled: dict[str, Ranking] = {
        query_id: {name: chance.random() for name in texts} for query_id in queries
    }
    write_runs({"bm25": bm25, "dense": cosine, "rerank": rerank, "random": shuffled})
    write_generated()


def write_runs(systems: Mapping[str, Mapping[str, Ranking]]) -> None:
    """One run file a system."""
    (DATA / "runs").mkdir(exist_ok=True)
    for system, rankings in systems.items():
        with (DATA / "runs" / f"{system}.run").open("w", encoding="utf-8") as stream:
            for query_id, scores in rankings.items():
                for rank, (name, score) in enumerate(top(scores), 1):
                    stream.write(f"{query_id} Q0 {name} {rank} {score:.6f} {system}\n")


def write_generated() -> None:
    """The generated answers as passages in the order of the answer."""
    answers = [json.loads(line) for line in GENERATED.open(encoding="utf-8")]
    with (
        (DATA / "generated-passages.jsonl").open("w", encoding="utf-8") as texts,
        (DATA / "runs" / "generated.run").open("w", encoding="utf-8") as run,
    ):
        for answer in answers:
            for rank, text in enumerate(answer["paragraphs"], 1):
                name = f"generated-{answer['query_id']}-{rank}"
                record = {"id": name, "text": text}
                texts.write(json.dumps(record, ensure_ascii=False) + "\n")
                run.write(f"{answer['query_id']} Q0 {name} {rank} {1 / rank:.6f} generated\n")


if __name__ == "__main__":
    main()
