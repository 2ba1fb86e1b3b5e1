"""An exam of citations: does the cited passage support the sentence?

    with exampp.citations.collect("my.citations.exam", "answers.jsonl", corpus="corpus/") as exam:
        exam.grade("openai", model=..., prompt="citation-support")
        print(exam.grades().citations())

Every sentence of an answer is a query with one nugget, the sentence itself; its cited passages are
the ranking. Grading, cache, decisions and pages work as for any exam.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from exampp.collection import Collection, create
from exampp.errors import InputError
from exampp.formats import responses
from exampp.formats.responses import Response
from exampp.prompts.words import content_stems
from exampp.records.inputs import CitedSentence
from exampp.store.inputs import source_passages

CANDIDATES = 5
"""Default number of passages of a pool that a sentence is compared with."""


def collect(
    path: str | Path,
    *files: str | Path,
    corpus: str | Path | None = None,
    system: str | None = None,
    pool: Collection | None = None,
    candidates: int = CANDIDATES,
) -> Collection:
    """Collect the sentences of answers and their cited passages in a collection.

    `files` are answers of TREC RAG, RAGTIME or AutoJudge, or plain ones with citations. The texts
    of cited passages come from `documents` in the answers or from `corpus`; passages without a text
    cannot be graded. `system` is the default system of the answers. Sentences without citations are
    included because they count for recall.

    With `pool`, a collection of the same queries, every sentence is also compared with those
    `candidates` passages of its query that share most of its words, so that sentences without a
    citation can be supported, too. Answers of systems are not among them.

    Raises InputError for an invalid file, or if there is no pool, and nothing is cited or no cited
    passage of a new collection has a text.
    """
    answers = [one for file in files for one in responses.read(file, system=system)]
    if pool is None and not any(one.cited for one in answers):
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
    if not (data["passages"] or corpus or pool or Path(path).exists()):
        raise InputError(
            "no cited passage has a text",
            hint="Name a file or folder with their texts: --corpus (corpus in Python)",
        )
    near = [] if pool is None else list(_near(sentences, pool, candidates))
    if pool is not None and not near:
        raise InputError(
            "no sentence shares words with a passage of its query",
            file=pool.path,
            hint="Name a collection with the queries of the answers and their passages",
        )
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
    if near:
        exam.add(near)
    return exam


def _near(
    sentences: Iterable[tuple[CitedSentence, str, tuple[str, ...]]], pool: Collection, most: int
) -> Iterator[dict[str, str]]:
    """Yield the passages of a pool that share most words with each sentence, rare ones first."""
    sources = {
        query_id: {one.passage_id: one for one in passages}
        for query_id, passages in source_passages(pool.connection)
    }
    stems = {
        query_id: {name: content_stems(f"{one.title} {one.text}") for name, one in known.items()}
        for query_id, known in sources.items()
    }
    for place, sentence, _ in sentences:
        wanted, known = content_stems(sentence), stems.get(place.query_id, {})
        shared = {name: one & wanted for name, one in known.items() if one & wanted}
        counts = Counter(stem for some in shared.values() for stem in some)
        scores = {
            name: sum(math.log(1 + len(known) / counts[stem]) for stem in some)
            for name, some in shared.items()
        }
        for name in sorted(scores, key=lambda one: (-scores[one], one))[:most]:
            one = sources[place.query_id][name]
            row = {"query_id": place.key, "passage_id": name, "text": one.text}
            yield {**row, **({"title": one.title} if one.title else {})}


def _sentences(answer: Response) -> Iterator[tuple[CitedSentence, str, tuple[str, ...]]]:
    for number, part in enumerate(answer.statements, 1):
        if part.text.strip():
            place = CitedSentence(answer.query_id, answer.system, number)
            yield place, part.text.strip(), part.citations
