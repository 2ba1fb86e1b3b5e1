"""Wrong labels in training data: hard negatives that people judged relevant, and the reverse.

    python benchmarks/hard_negatives.py [DATA]    # DATA: the folder of graded files, ../shared/data

On TREC Deep Learning 2019 every graded passage has a human judgment (0 to 3; relevant from 2). The
candidates are the passages in the top 20 of a system with all ten grades, without any use of the
judgments. Columns: the highest rating of a hard negative, or the lowest of a positive passage; the
passages; and the share that people judged otherwise. `export --format triplets` takes passages
below the minimum rating (4) as negatives, and then leaves out those that people judged otherwise;
the table shows what that costs where there are no judgments.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import exampp
from exampp.records.gradebook import MISSING, Gradebook

RELEVANT, DEPTH, HIGHEST = 2, 20, 5


def candidates(book: Gradebook) -> tuple[np.ndarray, np.ndarray]:
    """Return the best rating and the judgment of every passage in the top of a system."""
    best, judged = [], []
    for query in book.queries:
        top = np.unique(np.concatenate([one.passages[:DEPTH] for one in query.rankings]))
        top = top[top < query.pool_size]
        ratings = query.ratings[top]
        complete = (ratings != MISSING).all(axis=1)
        best.append(ratings[complete].max(axis=1))
        judged.append(query.judgments[0, top][complete])
    return np.concatenate(best), np.concatenate(judged)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parents[1] / ".." / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=default)
    path = parser.parse_args().data / "dl19" / "graded.jsonl.gz"
    if not path.exists():
        print(f"{path}: absent, nothing is measured")
        return
    with exampp.open(path) as exam:
        best, judged = candidates(exam.grades(kind="question").gradebook)
    print(f"{len(best):,} passages in the top {DEPTH}, {np.mean(judged >= RELEVANT):.3f} relevant")
    print("hard negatives: highest rating  passages  judged relevant  perfectly (3)")
    for most in range(HIGHEST):
        some = judged[best <= most]
        print(
            f"{most:31} {len(some):9,} {np.mean(some >= RELEVANT):16.3f} {np.mean(some > 2):14.3f}"
        )
    print("positive passages: lowest rating  passages  judged not relevant")
    for least in range(1, HIGHEST + 1):
        some = judged[best >= least]
        print(f"{least:32} {len(some):9,} {np.mean(some < RELEVANT):20.3f}")


if __name__ == "__main__":
    main()
