"""Graded files of equal systems with separate, judged passages; the grader favours some."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SYSTEMS, PASSAGES, ITEMS = 8, 3, 2
CLASSES = {
    "question": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "nugget": "NuggetSelfRatedPrompt",
    "direct_grading": "Thomas",
}


def write(
    path: Path,
    changed: Mapping[int, int],
    *,
    kind: str = "question",
    queries: int = 25,
    judged: bool = True,
) -> Path:
    """Write a graded file; `changed` says by how much the rating of some systems is off.

    Judgments are 0 to 3, ratings 0 to 5 (labels 0 to 2) and noisy; a rating stays on its scale.
    """
    chance = random.Random(7)
    lines = [json.dumps(_query(f"q{n}", changed, kind, judged, chance)) for n in range(queries)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _query(
    query: str, changed: Mapping[int, int], kind: str, judged: bool, chance: random.Random
) -> list[Any]:
    found = []
    for number in range(SYSTEMS * PASSAGES):
        system, rank = divmod(number, PASSAGES)
        judgment = chance.choices([0, 1, 2, 3], [6, 2, 1, 1])[0]
        top = 2 if kind == "direct_grading" else 5
        ratings = []
        for _ in range(ITEMS):
            fair = round((judgment * 1.2 + chance.gauss(0.3, 0.8)) * top / 5)
            ratings.append(max(0, min(top, max(0, fair) + changed.get(system, 0))))
        found.append(_passage(f"{query}-{number}", query, f"s{system}", rank + 1, kind, ratings))
        if judged:
            one = {"paragraphId": f"{query}-{number}", "query": query, "relevance": judgment}
            found[-1]["paragraph_data"]["judgments"].append({**one, "titleQuery": query})
    return [query, found]


def _passage(
    name: str, query: str, system: str, rank: int, kind: str, ratings: list[int]
) -> dict[str, Any]:
    asked = {"prompt_class": CLASSES[kind], "is_self_rated": True}
    grader = {"llm": "m", "llm_options": {}, "prompt_info": asked, "prompt_type": kind}
    ranking = {"method": system, "paragraphId": name, "queryId": query, "rank": rank, "score": 1}
    entries: dict[str, Any] = {"exam_grades": [], "grades": []}
    if kind == "direct_grading":
        label = {"correctAnswered": ratings[0] > 0, "answer": "", "self_ratings": ratings[0]}
        entries["grades"] = [{**label, **grader}]
    else:
        rated = [
            {f"{kind}_id": f"{query}/i{i}", "self_rating": rating}
            for i, rating in enumerate(ratings)
        ]
        exam = {"correctAnswered": [], "wrongAnswered": [], "answers": [], "exam_ratio": 0.0}
        entries["exam_grades"] = [{**exam, "self_ratings": rated, **grader}]
    data = {"judgments": [], "rankings": [ranking]}
    return {"paragraph_id": name, "text": name, "paragraph": "", "paragraph_data": data, **entries}
