"""Scores of the rankers that rank the data sets without runs, by hand."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from support import rankers
from support.rankers import DEPTH, Index, Ranker, Rankers

TEXTS = ["Copper, copper and iron.", "Iron"]
"""Without stop words: copper twice in 3 terms of the first text; 4 terms in all."""
FREQUENCY = 2 * math.log2(5 / 3)
"""Normalised frequency of copper in PL2: 2 log2(1 + mean length 2 / length 3)."""


@pytest.mark.parametrize(
    ("ranker", "first", "second"),
    [
        # norm 1 (0.5 + 0.5 3 / 2) = 1.25, idf log(1 + 1.5 / 1.5)
        (partial(rankers.bm25, 1, 0.5), 2 * 2 / (2 + 1.25) * math.log(2), 0),
        # share of copper in all texts 2 / 4
        (partial(rankers.dirichlet, 2), math.log(3 / 5), math.log(1 / 3)),
        (partial(rankers.jelinek, 0.5), math.log(0.5 * 2 / 3 + 0.25), math.log(0.25)),
        (
            partial(rankers.pl2, 1),
            (
                FREQUENCY * math.log2(FREQUENCY)
                + (1 - FREQUENCY) / math.log(2)
                + 0.5 * math.log2(2 * math.pi * FREQUENCY)
            )
            / (FREQUENCY + 1),
            0,
        ),
        (rankers.tf_idf, math.log(3) * math.log(2), 0),
        (rankers.matches, 1, 0),
    ],
)
def test_scores_of_a_term_by_hand(ranker: Ranker, first: float, second: float) -> None:
    index = Index(TEXTS, rankers.stems)
    known = index.query("copper gold")
    found = ranker(np.array(list(known.values())), index.field([0, 1], known))
    assert found.tolist() == pytest.approx([first, second])


def test_terms_of_a_text() -> None:
    assert rankers.grams(3, "A b") == [" a ", "a b", " b "]
    assert rankers.first_sentence("One is. Two are!") == "One is."
    # a text of stop words alone keeps them
    assert len(rankers.stems("the of and")) == 3


def test_fusions_add_reciprocal_ranks() -> None:
    found = rankers._reciprocal(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.0, 9.0]))
    assert found.tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 63, 1 / 62 + 1 / 61])


def test_all_rankers_rank_the_passages_of_a_query() -> None:
    random = np.random.default_rng(1)
    words = [f"word{number}" for number in range(300)]
    texts = {
        (f"q{number % 4}", f"p{number:03}"): " ".join(random.choice(words, 40))
        for number in range(240)
    }
    texts["q0", "same"] = texts["q0", "p000"]
    texts["q0", "best"] = "Copper corrodes slowly."
    made = Rankers(texts)
    found = made.rankings("q0", "copper corrodes")
    assert len(found) == 56
    for ranking in found.values():
        assert len(ranking) == DEPTH
        assert ranking == sorted(ranking, key=lambda one: (-one[1], one[0]))
        assert {passage for passage, _ in ranking} <= {p for query, p in texts if query == "q0"}
    exact = ("bm25-0.9-0.4", "dirichlet-1000", "tf-idf", "cosine", "tokens", "vector", "fused-all")
    assert {found[name][0][0] for name in exact} == {"best"}
    assert "best" not in dict(found["longest"])
    # noise depends on the query and the ranker alone
    assert Rankers(texts).rankings("q0", "copper corrodes") == found
