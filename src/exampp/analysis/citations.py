"""Precision and recall of citations, from grades of support.

Full support weighs 1, partial support half, none 0. Of an answer, precision is the mean weight of
its citations, and recall the mean over its sentences of the best weight of what each cites: a
sentence without citations has 0. With `first`, only the first citation of a sentence counts.
If sentences are also compared with passages that they do not cite (see `exampp.citations`), their
`supported` value is the best weight of all these passages, cited or not: the precision of claims.
A system has the mean over its answers. Strict values count full support alone.
Sources: Min et al. (2023), FActScore (arXiv 2305.14251), for the precision of claims; Thakur et al.
(2025), Support evaluation for the TREC 2024 RAG track (arXiv 2504.15205),
whose weighted precision and recall read the first citation of a sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exampp.analysis.phrases import leading
from exampp.errors import InputError
from exampp.measures.values import Mean, mean_of, spread_of
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.inputs import CitedSentence, read_sentence
from exampp.records.wording import counted
from exampp.results.notes import Note, labelled, note
from exampp.results.result import Result, Table
from exampp.results.view import ERROR, Column

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

PARTIAL = 0.5


class _Sentence(NamedTuple):
    """The weights of a sentence's citations that count, in order, and those of all its passages.

    None where one has no grade.
    """

    place: CitedSentence
    weights: tuple[float | None, ...]
    every: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class CitationRow:
    """The scores of a system: means over its answers, and the counts behind them.

    Ungraded citations enter no mean: `ungraded` counts them. An answer without citations has no
    precision (`silent` counts those) and recall 0. `supported` is the mean support of its sentences
    by all their passages.
    """

    system: str
    precision: Mean
    recall: Mean
    strict_precision: Mean
    strict_recall: Mean
    supported: Mean
    answers: int
    sentences: int
    citations: int
    ungraded: int
    silent: int


@dataclass(frozen=True, slots=True, repr=False)
class CitationScores(Result):
    """Systems by recall of their citations, best first."""

    rows: tuple[CitationRow, ...]
    notes: tuple[str, ...]
    has_pool: bool = False
    draft: bool = False

    @property
    def headline(self) -> str:
        """The highest recall of citations, in words."""
        best = next((one for one in self.rows if one.recall.mean is not None), None)
        if best is None:
            return "No citation has a grade."
        equal = [
            one.system
            for one in self.rows
            if one.recall.mean is not None and isclose(one.recall.mean, best.recall.mean or 0.0)
        ]
        precision = ""
        if len(equal) == 1 and best.precision.mean is not None:
            precision = f", precision {best.precision.mean:.3f}"
        leader = leading(equal, "system")
        return f"{leader} the highest recall, {best.recall.mean:.3f}{precision}."

    def plot(self) -> Figure:
        """Plot precision and recall, and the support of sentences by any passage if it is known."""
        from exampp.results.plots.dots import series_figure

        series = {
            "precision of citations": [one.precision for one in self.rows],
            "sentences supported by what they cite": [one.recall for one in self.rows],
        }
        if self.has_pool:
            series["sentences supported by any passage"] = [one.supported for one in self.rows]
        return series_figure(
            {
                name: [
                    spread_of(row.system, mean, share=True)
                    for row, mean in zip(self.rows, means, strict=True)
                ]
                for name, means in series.items()
            },
            ("measure", "system"),
            "mean support",
            "Support of citations and sentences",
            "Bars: one standard error over answers",
            name="citations",
            draft=self.draft,
        )

    def tables(self) -> dict[str, Table]:
        """Return a row per system."""
        columns: list[str | Column] = [
            *("system", "precision"),
            Column(ERROR, key="precision_stderr"),
            "recall",
            Column(ERROR, key="recall_stderr"),
            Column("strict precision", key="strict_precision"),
            Column("strict recall", key="strict_recall"),
            *([Column("supported", 3)] if self.has_pool else []),
            *("answers", "sentences", "citations", "ungraded"),
            Column("silent", readers="programs"),
        ]
        rows = [
            (
                *(one.system, one.precision.mean, one.precision.stderr),
                *(one.recall.mean, one.recall.stderr),
                *(one.strict_precision.mean, one.strict_recall.mean),
                *([one.supported.mean] if self.has_pool else []),
                *(one.answers, one.sentences, one.citations, one.ungraded, one.silent),
            )
            for one in self.rows
        ]
        caption = labelled("Support of citations", draft=self.draft)
        return {"citations": Table.of(columns, rows, caption, self.notes, verdict=self.headline)}


def citation_scores(book: Gradebook, *, first: bool = False) -> CitationScores:
    """Return the scores of all systems of a collection of citations (`exampp.citations.collect`).

    `first` counts the first citation of a sentence alone. Raises InputError for a collection of
    anything else, and for a grader that does not distinguish full support, partial support and
    none.
    """
    low, high = book.grader.lowest, book.grader.highest
    if high - low not in (1, 2):
        raise InputError(
            f"{book.grader.name} rates from {low} to {high}, not no, partial and full support",
            hint="Grade with --prompt citation-support",
        )
    answers: defaultdict[str, defaultdict[str, list[_Sentence]]]
    answers = defaultdict(lambda: defaultdict(list))
    has_pool = False
    for query in book.queries:
        place = read_sentence(query.query_id)
        if place is None:
            raise InputError(
                f"query {query.query_id!r} is not a sentence of an answer",
                hint="Make a collection of citations: exampp citations NEW.exam answers.jsonl",
            )
        cited = tuple(_weights(query, low, high))
        others = tuple(_others(query, low, high))
        has_pool |= bool(others)
        sentence = _Sentence(place, cited[:1] if first else cited, (*cited, *others))
        answers[place.system][place.query_id].append(sentence)
    rows = [_row(system, list(of.values())) for system, of in answers.items()]
    rows.sort(key=lambda one: (-(one.recall.mean or 0.0), one.system))
    notes = tuple(_notes(rows, first=first, has_pool=has_pool))
    return CitationScores(tuple(rows), notes, has_pool, book.grader.is_draft)


def _others(query: QueryGrades, low: int, high: int) -> Iterator[float | None]:
    """Yield the weights of the passages of a sentence that it does not cite."""
    cited = {at for ranking in query.rankings for at in ranking.passages.tolist()}
    for passage in range(query.pool_size):
        if passage not in cited:
            yield _weight(int(query.ratings[passage].max(initial=MISSING)), low, high)


def _weight(rating: int, low: int, high: int) -> float | None:
    if rating == MISSING:
        return None
    return 1.0 if rating == high else 0.0 if rating == low else PARTIAL


def _weights(query: QueryGrades, low: int, high: int) -> Iterator[float | None]:
    """Yield the weights of a sentence's citations, in order."""
    for ranking in query.rankings:
        for passage in ranking.passages.tolist():
            yield _weight(int(query.ratings[passage].max(initial=MISSING)), low, high)


def _row(system: str, answers: Sequence[Sequence[_Sentence]]) -> CitationRow:
    soft = [_of_answer(one, strict=False) for one in answers]
    strict = [_of_answer(one, strict=True) for one in answers]
    cited = [weight for answer in answers for one in answer for weight in one.weights]
    return CitationRow(
        system,
        _mean([precision for precision, _ in soft]),
        _mean([recall for _, recall in soft]),
        _mean([precision for precision, _ in strict]),
        _mean([recall for _, recall in strict]),
        _mean([_supported(one) for one in answers]),
        answers=len(answers),
        sentences=sum(map(len, answers)),
        citations=len(cited),
        ungraded=sum(weight is None for weight in cited),
        silent=sum(not any(one.weights for one in answer) for answer in answers),
    )


def _of_answer(
    sentences: Sequence[_Sentence], *, strict: bool
) -> tuple[float | None, float | None]:
    """Return precision and recall of one answer; None where no citation that counts is graded."""
    graded = [
        [float(w == 1.0) if strict else w for w in one.weights if w is not None]
        for one in sentences
        # an ungraded citation counts neither for nor against the sentence
        if not one.weights or any(w is not None for w in one.weights)
    ]
    weights = [weight for one in graded for weight in one]
    best = [max(one, default=0.0) for one in graded]
    return (
        sum(weights) / len(weights) if weights else None,
        sum(best) / len(best) if best else None,
    )


def _supported(sentences: Sequence[_Sentence]) -> float | None:
    """Return the mean support of the sentences of an answer; None if no passage is graded."""
    every = [one.every for one in sentences]
    graded = [one for one in every if not one or any(w is not None for w in one)]
    best = [max((w for w in one if w is not None), default=0.0) for one in graded]
    return sum(best) / len(best) if best else None


def _mean(values: Sequence[float | None]) -> Mean:
    return mean_of(np.array([one for one in values if one is not None], np.float64))


def _notes(rows: Sequence[CitationRow], *, first: bool, has_pool: bool) -> Iterator[Note]:
    if has_pool:
        yield note("citations-pool")
    if first:
        yield note("first-citation")
    if ungraded := sum(one.ungraded for one in rows):
        yield note("citations-ungraded", citations=counted(ungraded, "citation"))
    if silent := sum(one.silent for one in rows):
        yield note("answers-uncited", answers=counted(silent, "answer"))
    yield note("citation-columns")
