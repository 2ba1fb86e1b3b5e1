"""The share of the passages of a system that answer some question."""

from __future__ import annotations

import exampp


@exampp.measure("AnswerRate", threshold=True, share=True)
def answer_rate(query: exampp.RankedQuery) -> float:
    """0 where the system returned nothing."""
    if not query.passage_ids:
        return 0.0
    answers = (query.ratings >= query.min_rating).any(axis=1)
    return float(answers.mean())
