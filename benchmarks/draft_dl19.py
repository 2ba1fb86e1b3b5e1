"""Measure the draft grader on TREC DL 2019: speed, memory, leaderboards, agreement, thresholds.

    python benchmarks/draft_dl19.py FOLDER

FOLDER holds `graded.jsonl.gz`, `questions.jsonl.gz` and `official-leaderboard.json`. Thresholds
follow the marginal rule (each rating as frequent as in the grades of the file) and are fitted on
all queries, or by 5 folds on the queries that are not rated with them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from ir_measures import AP, P, Qrel, ScoredDoc, nDCG
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from exampp.graders.base import Request
from exampp.graders.draft import THRESHOLDS, DraftGrader

FOLDS = 5
SEEDS = 5
MEASURES = {"P@20": P(rel=4) @ 20, "nDCG@10": nDCG @ 10, "MAP": AP(rel=4)}

Scores = NDArray[np.float64]
Ratings = NDArray[np.int64]


class Topic(NamedTuple):
    """One query: its questions, its passages, and [passages, questions] ratings of the file."""

    query: str
    questions: dict[str, str]
    passages: list[dict[str, Any]]
    ratings: Ratings


def read(folder: Path) -> list[Topic]:
    """Read all queries with their questions and passages."""
    with gzip.open(folder / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    banks = {
        record["query_id"]: {q["question_id"]: q["question_text"] for q in record["questions"]}
        for record in records
    }
    with gzip.open(folder / "graded.jsonl.gz", "rt", encoding="utf-8") as lines:
        queries = [json.loads(line) for line in lines]
    return [
        Topic(query, banks[query], passages, np.array([rated(p, banks[query]) for p in passages]))
        for query, passages in queries
    ]


def rated(passage: dict[str, Any], questions: dict[str, str]) -> list[int]:
    """The file's rating of every question, in the order of the bank."""
    grades = passage["exam_grades"][0]["self_ratings"]
    by_id = {grade["question_id"]: grade["self_rating"] for grade in grades}
    return [by_id[question] for question in questions]


def grade(topics: Sequence[Topic], threads: int | None) -> list[Scores]:
    """Score every pair and print what it cost."""
    start = time.perf_counter()
    grader = DraftGrader(threads)
    asks = (
        Request(0, question, passage["text"])
        for topic in topics
        for passage in topic.passages
        for question in topic.questions.values()
    )
    scores = np.array([float(reply.text) for _, reply in grader.answer(asks)])
    wall, passages = time.perf_counter() - start, sum(len(topic.passages) for topic in topics)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{wall:.0f} s wall, {time.process_time():.0f} s CPU in all, {passages / wall:.0f} "
        f"passages/s, {len(scores) / wall:.0f} cells/s, peak memory of this script {peak:.0f} MiB"
    )
    cuts = np.cumsum([topic.ratings.size for topic in topics])[:-1]
    parts = np.split(scores, cuts)
    return [part.reshape(topic.ratings.shape) for part, topic in zip(parts, topics, strict=True)]


def marginal_thresholds(scores: Sequence[Scores], ratings: Sequence[Ratings]) -> Scores:
    """The scores that are reached as often as the ratings 1 to 5 are."""
    falling = -np.sort(-np.concatenate([part.ravel() for part in scores]))
    flat = np.concatenate([part.ravel() for part in ratings])
    return falling[[np.count_nonzero(flat >= rating) - 1 for rating in range(1, 6)]]


def held_out(topics: Sequence[Topic], scores: Sequence[Scores], seed: int) -> list[Ratings]:
    """Rate each query with thresholds from the other folds."""
    folds = np.random.default_rng(seed).permutation(len(topics)) % FOLDS
    limits = []
    for fold in range(FOLDS):
        train = [index for index in range(len(topics)) if folds[index] != fold]
        ratings = [topics[index].ratings for index in train]
        limits.append(marginal_thresholds([scores[index] for index in train], ratings))
    return [
        np.searchsorted(limits[fold], own, side="right")
        for fold, own in zip(folds, scores, strict=True)
    ]


def kappa(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    """Cohen's kappa of two binary labellings."""
    chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return float(((a == b).mean() - chance) / (1 - chance))


def boards(topics: Sequence[Topic], ratings: Sequence[Ratings]) -> dict[str, dict[str, float]]:
    """The leaderboards of Cover@20 (rating 4) and of the qrels of best ratings."""
    cover: dict[str, float] = {}
    qrels: list[Qrel] = []
    runs: dict[str, list[ScoredDoc]] = {}
    for topic, own in zip(topics, ratings, strict=True):
        top: dict[str, list[int]] = {}
        for index, passage in enumerate(topic.passages):
            name = passage["paragraph_id"]
            qrels.append(Qrel(topic.query, name, int(own[index].max())))
            for entry in passage["paragraph_data"]["rankings"]:
                top.setdefault(entry["method"], []).append(index)
                run = runs.setdefault(entry["method"], [])
                run.append(ScoredDoc(topic.query, name, entry["score"]))
        for system, indexes in top.items():
            share = float((own[indexes] >= 4).any(axis=0).mean())
            cover[system] = cover.get(system, 0.0) + share / len(topics)
    evaluator = ir_measures.evaluator(list(MEASURES.values()), qrels)
    means = {system: evaluator.calc_aggregate(run) for system, run in runs.items()}
    covered = {system: round(share, 9) for system, share in cover.items()}  # ties stay ties
    return {"Cover@20": covered} | {
        name: {system: mean[measure] for system, mean in means.items()}
        for name, measure in MEASURES.items()
    }


def figures(
    topics: Sequence[Topic], ratings: Sequence[Ratings], official: dict[str, float]
) -> list[float]:
    """Spearman and Kendall with the official leaderboard for each board, then two kappas."""
    result = []
    for board in boards(topics, ratings).values():
        pair = [-official[system] for system in official], [board[system] for system in official]
        result += [spearmanr(*pair).statistic, kendalltau(*pair).statistic]
    label = np.concatenate([own.max(axis=1) for own in ratings])
    judged = np.array(
        [p["paragraph_data"]["judgments"][0]["relevance"] for t in topics for p in t.passages]
    )
    return [*result, *(kappa(label >= 4, judged >= least) for least in (2, 1))]


def main() -> None:
    """Grade, then print one line of figures for each way of making ratings."""
    parser = argparse.ArgumentParser(description="Measure the draft grader on TREC DL 2019.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--keep", type=Path, help="write the scores to this .npy file")
    options = parser.parse_args()
    topics = read(options.folder)
    official = json.loads((options.folder / "official-leaderboard.json").read_text("utf-8"))
    scores = grade(topics, options.threads)
    if options.keep:
        np.save(options.keep, np.concatenate(scores))
    fitted = marginal_thresholds(scores, [topic.ratings for topic in topics])
    print("thresholds fitted on everything:", *fitted, "shipped:", *THRESHOLDS)
    print(
        f"{'':22}", *(f"{name + ' rho/tau':>15}" for name in ["Cover@20", *MEASURES]), "kappa>=2/1"
    )
    folds = [figures(topics, held_out(topics, scores, seed), official) for seed in range(SEEDS)]
    rows = {
        "ratings of the file": figures(topics, [topic.ratings for topic in topics], official),
        "shipped thresholds": figures(
            topics, [np.searchsorted(THRESHOLDS, own, side="right") for own in scores], official
        ),
        f"{FOLDS} folds, mean": list(np.mean(folds, axis=0)),
        "   lowest seed": list(np.min(folds, axis=0)),
        "   highest seed": list(np.max(folds, axis=0)),
    }
    for name, row in rows.items():
        pairs = [f"{a:.3f} / {b:.3f}" for a, b in zip(row[::2], row[1::2], strict=True)]
        print(f"{name:22}", *(f"{pair:>15}" for pair in pairs))


if __name__ == "__main__":
    main()
