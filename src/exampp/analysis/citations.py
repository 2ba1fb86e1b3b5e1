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
from exampp.records.inputs import read_sentence
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
        cited = [at for one in query.rankings for at in one.passages.tolist()]
        others = [at for at in range(query.pool_size) if at not in {*cited}]
        has_pool |= bool(others)
        weights = tuple(_weight(query, at, low, high) for at in cited)
        every = (*weights, *(_weight(query, at, low, high) for at in others))
        sentence = _Sentence(weights[:1] if first else weights, every)
        answers[place.system][place.query_id].append(sentence)
    rows = [_row(system, list(of.values())) for system, of in answers.items()]
    rows.sort(key=lambda one: (-(one.recall.mean or 0.0), one.system))
    notes = tuple(_notes(rows, first=first, has_pool=has_pool))
    return CitationScores(tuple(rows), notes, has_pool, book.grader.is_draft)


def _weight(query: QueryGrades, passage: int, low: int, high: int) -> float | None:
    """Return the weight of the support of a sentence by a passage; None without a grade."""
    rating = int(query.ratings[passage].max(initial=MISSING))
    if rating == MISSING:
        return None
    return 1.0 if rating == high else 0.0 if rating == low else PARTIAL


def _row(system: str, answers: Sequence[Sequence[_Sentence]]) -> CitationRow:
    cited = [[one.weights for one in answer] for answer in answers]
    soft = [_support(one) for one in cited]
    strict = [_support(one, strict=True) for one in cited]
    by_any = [_support([one.every for one in answer]) for answer in answers]
    weights = [weight for answer in cited for one in answer for weight in one]
    return CitationRow(
        system,
        _mean([precision for precision, _ in soft]),
        _mean([recall for _, recall in soft]),
        _mean([precision for precision, _ in strict]),
        _mean([recall for _, recall in strict]),
        _mean([best for _, best in by_any]),
        answers=len(answers),
        sentences=sum(map(len, answers)),
        citations=len(weights),
        ungraded=sum(weight is None for weight in weights),
        silent=sum(not any(answer) for answer in cited),
    )


def _support(
    sentences: Sequence[Sequence[float | None]], *, strict: bool = False
) -> tuple[float | None, float | None]:
    """Return the mean weight of the passages of an answer, and of the best of each sentence.

    These are precision and recall; None where no passage is graded.
    """
    graded = [
        [float(w == 1.0) if strict else w for w in one if w is not None]
        for one in sentences
        # an ungraded passage counts neither for nor against the sentence
        if not one or any(w is not None for w in one)
    ]
    weights = [weight for one in graded for weight in one]
    best = [max(one, default=0.0) for one in graded]
    return (
        sum(weights) / len(weights) if weights else None,
        sum(best) / len(best) if best else None,
    )


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
