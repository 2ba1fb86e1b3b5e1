"""Makes the files of the demo that follow from others: runs, banks and topics in other formats.

    python tools/build_demo.py

Written by hand are, in `src/exampp/demo/tour`: queries.tsv, passages.jsonl, questions.tsv,
nuggets.tsv, judgments.qrels, answers.csv, leaderboard.json, helpdesk.jsonl, and in `tools/demo`
rewritten.tsv. The systems differ on purpose: bm25 matches words, dense compares averaged MiniLM
vectors, rerank fuses both over the top of bm25, rewrite is rerank on queries that a rewriter has
changed, random draws five of all passages. The rewriter finds good words, but cuts a comparison
down to its first half.
"""

from __future__ import annotations

import csv
import json
import math
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

import exampp
from exampp.demo import demo_files
from exampp.graders.draft import Vectors, load_encoder

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "src" / "exampp" / "demo" / "tour"
DEPTH = 8
Ranking = Mapping[str, float]
Rankings = Mapping[str, Ranking]


STOPWORDS = {"a", "and", "do", "how", "in", "of", "the", "to", "with"}


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


class Dense:
    """Cosine of averaged token vectors."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.encode = load_encoder()
        self.vectors = {name: self._vector(text) for name, text in texts.items()}

    def scores(self, query: str) -> Ranking:
        """Score of every text."""
        asked = self._vector(query)
        return {name: float(known @ asked) for name, known in self.vectors.items()}

    def _vector(self, text: str) -> Vectors:
        mean: Vectors = self.encode(text).vectors.mean(axis=0)
        return mean / np.linalg.norm(mean)


def fused(lexical: Ranking, cosine: Ranking) -> Ranking:
    """The sum of both scores, moved to 0..1, over the top of the first."""
    first, second = rescaled(lexical), rescaled(cosine)
    return {name: first[name] + second[name] for name in first}


def rescaled(scores: Ranking) -> Ranking:
    """Scores moved to 0..1."""
    low, high = min(scores.values()), max(scores.values())
    return {name: (score - low) / (high - low or 1) for name, score in scores.items()}


def top(scores: Ranking) -> list[tuple[str, float]]:
    """The best `DEPTH`, ties by name."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:DEPTH]


def main() -> None:
    """Write the files."""
    passages = read_json_lines("passages.jsonl")
    texts = {passage["id"]: f"{passage['title']} {passage['text']}" for passage in passages}
    queries = read_pairs(TOUR / "queries.tsv")
    rewritten = read_pairs(ROOT / "tools" / "demo" / "rewritten.tsv")
    lexical, cosine = BM25(texts), Dense(texts)
    chance = random.Random(7)
    systems: dict[str, Rankings] = {
        "bm25": {name: lexical.scores(text) for name, text in queries.items()},
        "dense": {name: cosine.scores(text) for name, text in queries.items()},
        "rerank": {
            name: fused(lexical.scores(text), cosine.scores(text)) for name, text in queries.items()
        },
        "rewrite": {
            name: fused(lexical.scores(text), cosine.scores(text))
            for name, text in rewritten.items()
        },
        "random": {
            name: {passage: chance.random() for passage in chance.sample(sorted(texts), 5)}
            for name in queries
        },
    }
    write_runs(systems)
    write_queries(queries)
    write_banks()
    plain = {passage["id"]: passage["text"] for passage in passages}
    write_answers(queries, {q: [p for p, _ in top(r)] for q, r in systems["rerank"].items()}, plain)
    write_judged()


def read_json_lines(name: str) -> list[dict[str, str]]:
    """Return the records of a file of the tour."""
    return [json.loads(line) for line in (TOUR / name).read_text("utf-8").splitlines()]


def read_pairs(path: Path) -> dict[str, str]:
    """Return the two columns of a file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return dict(csv.reader(stream, delimiter="\t"))


def write(name: str, lines: Iterable[str]) -> None:
    """Write the lines of a file of the tour."""
    path = TOUR / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_csv(name: str, rows: Iterable[Sequence[str]]) -> None:
    """Write a table."""
    with (TOUR / name).open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def write_runs(systems: Mapping[str, Rankings]) -> None:
    """One run file a system."""
    for system, rankings in systems.items():
        write(
            f"runs/{system}.run",
            (
                f"{query_id} Q0 {name} {rank} {score:.6f} {system}"
                for query_id, scores in rankings.items()
                for rank, (name, score) in enumerate(top(scores), 1)
            ),
        )


def write_queries(queries: Mapping[str, str]) -> None:
    """Write the queries as TREC topics, and as a table with custom headers."""
    write(
        "topics.trec",
        (f"<top>\n<num> Number: {q}\n<title> {text}\n</top>" for q, text in queries.items()),
    )
    write_csv("topics.csv", [("topic", "narrative"), *queries.items()])


def write_banks() -> None:
    """The questions without subtopics, under other headers, and with answer keys."""
    with (TOUR / "questions.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    questions = [(row["query_id"], row["question"]) for row in rows]
    write_csv("bank.csv", [("query_id", "question"), *questions])
    write_csv("gold.csv", [("topic", "Gold question"), *questions])
    keys = [(row["query_id"], row["question"], row["answer"]) for row in rows]
    write_csv("keys.csv", [("query_id", "question", "answer"), *keys])


def write_judged() -> None:
    """Judgments of what judgments.qrels leaves out: ranked passages of other topics, answers."""
    lines = (TOUR / "judgments.qrels").read_text("utf-8").splitlines()
    known = {tuple(line.split()[0:3:2]) for line in lines}
    with tempfile.TemporaryDirectory() as folder:
        made, exported = Path(folder) / "made.exam", Path(folder) / "all.run"
        with exampp.create(made) as exam:
            exam.import_files(*demo_files())
            exam.export(exported, "runs")
        ranked = {tuple(line.split()[0:3:2]) for line in exported.read_text("utf-8").splitlines()}
    # passages of answers have hashes for names
    rows = ((q, name, 0 if "-" in name else 2) for q, name in sorted(ranked - known))
    write("judged.qrels", (f"{q} 0 {name} {label}" for q, name, label in rows))


def write_answers(
    queries: Mapping[str, str], retrieved: Mapping[str, list[str]], texts: Mapping[str, str]
) -> None:
    """answers.csv in other formats; the contexts of chat-v2 are the top of rerank."""
    with (TOUR / "answers.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    ids = {text: query_id for query_id, text in queries.items()}
    answers = {(row["system"], ids[row["question"]]): row["answer"] for row in rows}
    records = [
        {"query_id": query_id, "system": system, "text": text}
        for (system, query_id), text in answers.items()
    ]
    write_json_lines("answers.jsonl", records)
    cited, ragas = [], []
    for query_id, text in queries.items():
        write(f"answers/{query_id}.md", [answers["chat-v2", query_id]])
        sentences = re.split(r"(?<=\.) ", answers["chat-v2", query_id])
        found = retrieved[query_id]
        parts = [
            {"text": sentence, "citations": [found[n]]} for n, sentence in enumerate(sentences)
        ]
        cited.append({"query_id": query_id, "system": "chat-v2", "answer": parts})
        ragas.append(
            {
                "user_input": text,
                "retrieved_contexts": [texts[name] for name in found[:3]],
                "response": answers["chat-v2", query_id],
                "reference": answers["chat-v1", query_id],
            }
        )
    write_json_lines("cited.jsonl", cited)
    write_json_lines("ragas.jsonl", ragas)


def write_json_lines(name: str, records: Iterable[object]) -> None:
    """Write one record a line."""
    write(name, (json.dumps(record, ensure_ascii=False) for record in records))


if __name__ == "__main__":
    main()
