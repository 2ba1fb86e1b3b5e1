"""A collection of a planted exam, graded by a scripted grader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records.gradebook import Gradebook


def question(item_id: str) -> str:
    """Return the text of an item: a question that no rule finds fault with."""
    query, _, name = item_id.partition("/")
    return f"Which rocks did expedition {query} bring home from valley {name}?"


def collected(folder: Path, book: Gradebook) -> exampp.Collection:
    """Write the exam of a gradebook as files, import and grade it; retired items are left out."""
    queries, passages, bank, runs = {}, [], [], []
    answers: dict[tuple[str, str], int] = {}
    for query in book.queries:
        queries[query.query_id] = f"expedition {query.query_id}"
        texts = [f"Report {name} of {query.query_id}." for name in query.passage_ids]
        passages += [{"id": f"{query.query_id}-{at}", "text": one} for at, one in enumerate(texts)]
        questions = [question(name) for name in query.item_ids]
        for name, text, ratings in zip(query.item_ids, questions, query.ratings.T, strict=True):
            bank.append(f"{query.query_id}\t{name}\t{text}\n")
            answers |= {
                (text, passage): int(one) for passage, one in zip(texts, ratings, strict=True)
            }
        for ranking in query.rankings:
            runs += [
                f"{query.query_id} Q0 {query.query_id}-{passage} {rank} {100 - rank} "
                f"{ranking.system}\n"
                for rank, passage in enumerate(ranking.passages.tolist(), 1)
            ]
    folder.mkdir()
    files = {
        "queries.json": json.dumps(queries),
        "passages.jsonl": "".join(json.dumps(one) + "\n" for one in passages),
        "questions.tsv": "query_id\titem_id\tquestion\n" + "".join(bank),
        "systems.run": "".join(runs),
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    exam = exampp.create(folder / "my.exam")
    exam.import_files(*(folder / name for name in files))
    exam.grade(rater(answers), model="scripted")
    return exam


def rater(answers: Mapping[tuple[str, str], int]) -> ScriptedGrader:
    """Return the grader of these ratings by (item, passage); it rates all others 5."""

    def rate(request: Request) -> str:
        return str(answers.get((request.item, request.passage), 5))

    return ScriptedGrader(rate, record=False)
