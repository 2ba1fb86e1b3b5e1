"""Gradebooks drawn at random, and edits of their banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity

GRADER = GraderIdentity("model", "self-rating", "question")
WEIGHTS = (0.0, 0.1, 0.5, 1.0, 1.0, 1.0, 2.0)


def random_book(
    seed: int,
    *,
    queries: int = 4,
    passages: int = 9,
    items: int = 4,
    systems: int = 5,
    depth: int = 6,
    missing: float = 0.2,
    subtopics: int = 0,
    by_subtopic: bool = False,
    equal_weights: bool = False,
) -> Gradebook:
    """Queries may lack items, systems may lack queries, cells may lack grades.

    `by_subtopic` lets systems rank subtopics, in place of the query or beside it.
    """
    random = np.random.default_rng(seed)
    names = tuple(f"s{number}" for number in range(systems))
    made = []
    for number in range(queries):
        own = int(random.integers(0, items + 1))
        ratings = random.integers(0, 6, (passages, own)).astype(np.int16)
        ratings[random.random(ratings.shape) < missing] = MISSING
        pool = passages - int(random.integers(0, 3))
        ratings[pool:] = MISSING
        weights = np.ones(own) if equal_weights else random.choice(WEIGHTS, own)
        rankings = []
        for name in names:
            if random.random() < 0.1:
                continue
            ranked = (
                random.choice(subtopics + 1, random.integers(1, 3), False) if by_subtopic else [0]
            )
            for subtopic in ranked:
                length = int(random.integers(1, depth + 1))
                chosen = random.permutation(passages)[:length].astype(np.int32)
                scores = np.sort(random.integers(0, 5, length).astype(np.float64))[::-1]
                rankings.append(Ranking(name, int(subtopic), chosen, scores))
        made.append(
            QueryGrades(
                query_id=f"q{number}",
                subtopic_ids=tuple(f"f{n}" for n in range(subtopics)),
                item_ids=tuple(f"q{number}/i{n}" for n in range(own)),
                item_subtopics=random.integers(0, subtopics + 1, own).astype(np.int32),
                weights=weights,
                passage_ids=tuple(f"p{n}" for n in random.permutation(passages)),
                pool_size=pool,
                ratings=ratings,
                judgments=np.full((subtopics + 1, passages), MISSING, np.int16),
                rankings=tuple(rankings),
            )
        )
    return Gradebook(GRADER, "bank", tuple(made), names)


def retire_item(query: QueryGrades, item: str) -> QueryGrades:
    stay = [n for n, one in enumerate(query.item_ids) if one != item]
    return replace(
        query,
        item_ids=tuple(query.item_ids[n] for n in stay),
        item_subtopics=query.item_subtopics[stay],
        weights=query.weights[stay],
        ratings=query.ratings[:, stay],
    )


def weigh_item(query: QueryGrades, item: str, weight: float) -> QueryGrades:
    at = np.array([one == item for one in query.item_ids])
    return replace(query, weights=np.where(at, weight, query.weights))


def reword_item(query: QueryGrades, item: str, known: Mapping[str, int]) -> QueryGrades:
    ratings = query.ratings.copy()
    ratings[:, query.item_ids.index(item)] = [known.get(p, MISSING) for p in query.passage_ids]
    return replace(query, ratings=ratings)


def add_item(
    query: QueryGrades,
    item: str,
    weight: float = 1.0,
    subtopic: str | None = None,
    known: Mapping[str, int] = MappingProxyType({}),
) -> QueryGrades:
    """A new subtopic is the last one."""
    if subtopic is not None and subtopic not in query.subtopic_ids:
        unjudged = np.full((1, len(query.passage_ids)), MISSING, np.int16)
        query = replace(
            query,
            subtopic_ids=(*query.subtopic_ids, subtopic),
            judgments=np.vstack([query.judgments, unjudged]),
        )
    number = query.subtopic_ids.index(subtopic) + 1 if subtopic is not None else 0
    column = np.full((len(query.passage_ids), 1), MISSING, np.int16)
    wider = replace(
        query,
        item_ids=(*query.item_ids, item),
        item_subtopics=np.append(query.item_subtopics, np.int32(number)),
        weights=np.append(query.weights, weight),
        ratings=np.hstack([query.ratings, column]),
    )
    return reword_item(wider, item, known)


ItemEdit = tuple[Any, ...]
"""A function that edits a query, and what it is called with."""


def edited(query: QueryGrades, edits: Sequence[ItemEdit]) -> QueryGrades:
    """The query after edits, one after the other."""
    for edit, *given in edits:
        query = edit(query, *given)
    return query


def random_edits(query: QueryGrades, random: np.random.Generator, count: int) -> list[ItemEdit]:
    """Edits that can be made one after the other."""
    edits: list[ItemEdit] = []
    for number in range(count):
        edit = _random_edit(query, random, number)
        query = edited(query, [edit])
        edits.append(edit)
    return edits


def _random_edit(query: QueryGrades, random: np.random.Generator, number: int) -> ItemEdit:
    share = random.choice([0.0, 0.3, 1.0])
    known = {
        passage: int(random.integers(0, 6))
        for passage in query.passage_ids[: query.pool_size]
        if random.random() < share
    }
    operation = random.choice(["retire", "add", "weigh", "reword"]) if query.item_ids else "add"
    if operation == "add":
        subtopics = [None, *query.subtopic_ids, "new"] if query.subtopic_ids else [None]
        subtopic = subtopics[random.integers(len(subtopics))]
        name = f"{random.choice(['a', 'i', 'new'])}-{number}"
        return (add_item, name, float(random.choice(WEIGHTS)), subtopic, known)
    item = str(random.choice(query.item_ids))
    if operation == "retire":
        return (retire_item, item)
    if operation == "weigh":
        return (weigh_item, item, float(random.choice(WEIGHTS)))
    return (reword_item, item, known)
