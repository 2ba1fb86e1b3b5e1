"""The ladder: report a score on secret items only if it is clearly a new best.

A client that sees the exact score of every submission can combine submissions that are better by
chance, until it has learnt the secret items. The ladder reports a submission only if its mean beats
the last report by the step; otherwise it repeats the last report. For n queries, the step is the
largest of

- the standard error of the difference from the best submission so far, paired over queries,
- 1 / (2 sqrt(n)), the largest standard error of a mean of scores from 0 to 1: differences of few
  queries have a small standard error, so that a client could climb by a query at a time,
- `GRID`: reports are rounded down to its multiples.

`error_bound` counts the possible answers. An answer that depends on its submission is a report (one
of 100 multiples of `GRID`) or a failure to grade it; all others repeat the last report. With b such
answers among k, there are at most C(k, b) 101^b <= (101 k)^b / b! sequences of answers. Submissions
that depend on earlier answers are one path of a tree with one submission at each node, so that a
bound for all nodes (Hoeffding's inequality) holds for the path: with the probability 1 - error, at
all times, every submission so far has a mean on the secret items that differs from its expected
value on new secret items by at most

    sqrt((log((101 k)^b / b!) + log(2 k (k + 1) (b + 1) (b + 2) / error)) / (2 n))

for n queries with independent items. A report is less than `GRID` below the mean that it reports.

Sources: Blum and Hardt (2015), The Ladder: a reliable leaderboard for machine learning competitions
(the rule with the paired standard error); Dwork et al. (2015), Generalization in adaptive data
analysis and holdout reuse (the bound by the number of possible answers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exampp.stats.estimate import Floats

GRID = 0.01
"""Reports are multiples of this, and rise by at least this."""
VALUES = round(1 / GRID)
"""The number of values that a report can take."""
LEAST_QUERIES = 2
"""A standard error needs two queries."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Rung:
    """The report of a ladder after a submission.

    Attributes:
        report: The last reported mean; 0 before any submission was reported.
        best: Scores by query of the submission that it reports.
        is_new: The last submission is the reported one.
    """

    report: float
    best: Floats
    is_new: bool = False


def first_rung(queries: int) -> Rung:
    """Return the ladder before any submission: a system that scores zero on all queries."""
    return Rung(0.0, np.zeros(queries))


def climb(rung: Rung, scores: Floats) -> Rung:
    """Return the ladder after a submission with these scores by query, each from 0 to 1.

    Raises:
        ValueError: The scores are of other queries, or are not finite numbers from 0 to 1.
    """
    if scores.shape != rung.best.shape or len(scores) < LEAST_QUERIES:
        raise ValueError(f"{scores.shape} scores for {len(rung.best)} queries")
    if not bool(((scores >= 0) & (scores <= 1)).all()):
        raise ValueError("a score is not from 0 to 1")
    units = float(scores.mean()) / GRID + _ROUNDING
    if units - rung.report / GRID < step(scores - rung.best) / GRID:
        return Rung(rung.report, rung.best)
    return Rung(math.floor(units) / VALUES, scores, is_new=True)


def step(differences: Floats) -> float:
    """Return the least rise of a report, for differences from the best submission by query."""
    queries = len(differences)
    paired = float(differences.std(ddof=1)) / math.sqrt(queries)
    return max(GRID, paired, 0.5 / math.sqrt(queries))


def error_bound(submissions: int, depending: int, queries: int, error: float = 0.05) -> float:
    """Bound how far any submission's secret score is from its expected value on new items.

    Args:
        submissions: All submissions so far.
        depending: Answers that depended on their submission: reports of a new best, and failures.
        queries: Queries with secret items.
        error: Probability that the bound fails, at any time.

    Returns 1 if it says nothing, as it does for few queries.
    """
    if not 0 <= depending <= submissions or queries < 1 or not 0 < error < 1:
        raise ValueError(f"{depending} answers of {submissions} submissions on {queries} queries")
    if submissions == 0:
        return 0.0
    answers = depending * math.log(submissions * (VALUES + 1)) - math.lgamma(depending + 1)
    # the union over submissions and numbers of answers shares the error among them
    shares = 2 * submissions * (submissions + 1) * (depending + 1) * (depending + 2)
    return min(1.0, math.sqrt((answers + math.log(shares / error)) / (2 * queries)))
