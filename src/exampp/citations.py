"""An exam of citations: does the cited passage support the sentence?

    with exampp.citations.collect("my.citations.exam", "answers.jsonl", corpus="corpus/") as exam:
        exam.grade("openai", model=..., prompt="citation-support")
        print(exam.grades().citations())

Every sentence of an answer is a query with one nugget, the sentence itself; its cited passages are
the ranking. Grading, cache, decisions and pages work as for any exam.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exampp.collection import Collection, create
from exampp.errors import InputError
from exampp.formats import responses
from exampp.formats.responses import Response
from exampp.records.inputs import CitedSentence


def collect(
    path: str | Path,
    *files: str | Path,
    corpus: str | Path | None = None,
    system: str | None = None,
) -> Collection:
    """Collect the sentences of answers and their cited passages in a collection.

    `files` are answers of TREC RAG, RAGTIME or AutoJudge, or plain ones with citations. The texts
    of cited passages come from `documents` in the answers or from `corpus`; passages without a text
    cannot be graded. `system` is the default system of the answers. Sentences without citations are
    included because they count for recall. Raises InputError for an invalid file or if nothing is
    cited.
    """
    answers = [one for file in files for one in responses.read(file, system=system)]
    if not any(one.cited for one in answers):
        raise InputError(
            "no answer has citations", hint="Use answers with citations, such as those of TREC RAG"
        )
    texts: dict[str, dict[str, str]] = {}
    for answer in answers:
        for one in answer.documents:
            row = {"id": one.passage_id, "text": one.text, "title": one.title}
            texts.setdefault(one.passage_id, row)
    sentences = [one for answer in answers for one in _sentences(answer)]
    runs: dict[str, dict[str, list[str]]] = {}
    for place, _, cited in sentences:
        if cited:
            runs.setdefault(place.system, {})[place.key] = list(cited)
    cited_ids = {one for run in runs.values() for ranking in run.values() for one in ranking}
    data: dict[str, Any] = {"passages": [texts[one] for one in texts if one in cited_ids]}
    exam = create(path, exist_ok=True)
    exam.add(
        queries={place.key: text for place, text, _ in sentences},
        bank={place.key: [{"nugget": text}] for place, text, _ in sentences},
        runs=runs,
        corpus=corpus,
        depth=2**30,
        unknown_passages="keep",
        **{name: rows for name, rows in data.items() if rows},
    )
    return exam


def _sentences(answer: Response) -> Iterator[tuple[CitedSentence, str, tuple[str, ...]]]:
    for number, part in enumerate(answer.statements, 1):
        if part.text.strip():
            place = CitedSentence(answer.query_id, answer.system, number)
            yield place, part.text.strip(), part.citations
