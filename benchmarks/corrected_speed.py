"""Measure time and memory of a corrected leaderboard: 100 systems, 200 queries, 10 items.

    python benchmarks/corrected_speed.py [--systems 100] [--queries 200] [--labels 400]

Prints seconds and peak memory of drawing a sample and of correcting by it, for P@20 and Cover@20.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from exampp.analysis.corrected import CorrectionSettings, JudgedSample, correct
from exampp.grades.sampling import SampleDesign, draw_sample
from exampp.measures.names import parse_measure
from exampp.measures.population import population
from exampp.records.gradebook import Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity
from exampp.stats.sampling import Sample

PASSAGES = 400


def made(systems: int, queries: int) -> Gradebook:
    """Random rankings of a pool of 400 passages a query, all graded."""
    random = np.random.default_rng(1)

    def query(number: int) -> QueryGrades:
        rankings = tuple(
            Ranking(f"s{one}", 0, random.permutation(PASSAGES)[:20].astype(np.int32), np.zeros(20))
            for one in range(systems)
        )
        return QueryGrades(
            query_id=f"q{number}",
            subtopic_ids=(),
            item_ids=tuple(f"q{number}/{item}" for item in range(10)),
            item_subtopics=np.zeros(10, np.int32),
            weights=np.ones(10),
            passage_ids=tuple(f"p{number}-{one}" for one in range(PASSAGES)),
            pool_size=PASSAGES,
            ratings=random.integers(0, 6, (PASSAGES, 10)).astype(np.int16),
            judgments=random.integers(0, 4, (1, PASSAGES)).astype(np.int16),
            rankings=rankings,
        )

    grader = GraderIdentity("model", "self-rating", "question")
    names = tuple(f"s{one}" for one in range(systems))
    return Gradebook(grader, "main", tuple(map(query, range(queries))), names)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--labels", type=int, default=400)
    args = parser.parse_args()
    book = made(args.systems, args.queries)
    for name in ("P@20", "Cover@20"):
        start = time.monotonic()
        units = population(book, parse_measure(name), min_rating=4, min_relevant=2)
        asked = SampleDesign(args.labels)
        plan = draw_sample(
            units, asked, grader=book.grader, bank="main", min_rating=4, min_relevant=2
        )
        drawn = time.monotonic()
        place = {one: number for number, one in enumerate(units.names)}
        places = np.array([place[one.query_id, one.unit_id] for one in plan.drawn], np.intp)
        pi = np.array([one.pi for one in plan.drawn])
        truth = units.judged if units.unit == "passage" else units.graded
        judged = JudgedSample(Sample(places, pi), truth[..., places], 0, "influence", "")
        found = correct(units, judged, CorrectionSettings(), min_rating=4)
        found.render("text")
        found.records()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{name}: {len(units.names):,} units; drawn in {drawn - start:.1f} s, corrected in "
            f"{time.monotonic() - drawn:.1f} s, {peak:.2f} GB at most"
        )


if __name__ == "__main__":
    main()
