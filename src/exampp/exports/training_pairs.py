"""Training data for retrievers: queries with positive passages and hard negatives.

A positive passage answers an item of the query. A hard negative is likely a wrong result: it was
retrieved among the first, all items are graded on it, and it answers none. A passage with an
ungraded item is neither, and neither is one on which people and grader disagree. Sealed items are
never read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.exports.exam import Exported, GradedExam
from exampp.formats import data_sets
from exampp.formats.lines import encode_json
from exampp.formats.output import writing
from exampp.records import Judgment, Passage, Query
from exampp.records.gradebook import MISSING, QueryGrades, passage_kinds
from exampp.records.inputs import relevance_threshold
from exampp.records.selection import ExportOptions
from exampp.records.wording import counted
from exampp.store.inputs import highest_judgment, read_passages

Flags = NDArray[np.bool_]


class QueryPairs(NamedTuple):
    """The training data of one query: ids of passages, the best first."""

    query_id: str
    text: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


class Triplet(NamedTuple):
    """One row of training data, as sentence-transformers names its columns."""

    anchor: str
    positive: str
    negative: str


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """The training data of an exam; `left_out` counts what is neither positive nor negative."""

    queries: tuple[QueryPairs, ...]
    texts: Mapping[str, Passage]
    left_out: Mapping[str, int]

    def triplets(self) -> Iterator[Triplet]:
        """Yield every positive passage of a query with every hard negative."""
        for query in self.queries:
            for positive in query.positives:
                for negative in query.negatives:
                    yield Triplet(query.text, *map(self._shown, (positive, negative)))

    @property
    def reasons(self) -> str:
        """Describe the records that were left out."""
        return ", ".join(f"{why} ({count})" for why, count in self.left_out.items() if count)

    def _shown(self, passage_id: str) -> str:
        one = self.texts[passage_id]
        return f"{one.title}\n{one.text}" if one.title else one.text

    def exported(self, verdict: str, number: int) -> Exported:
        """Return what was written."""
        counts = {
            "queries": len(self.queries),
            "positive passages": sum(len(one.positives) for one in self.queries),
            "hard negatives": sum(len(one.negatives) for one in self.queries),
        }
        return Exported(verdict, number, counts, self.left_out)


def training_pairs(exam: GradedExam, options: ExportOptions) -> TrainingPairs:
    """Return positive passages and hard negatives of every query that has both.

    Raises:
        InputError: The queries have no text, or no query has both.
    """
    if not any(exam.query_texts.values()):
        raise InputError(
            "the queries have no text",
            file=exam.path,
            hint="Import queries with texts: exampp import my.exam queries.tsv",
        )
    grader = exam.book.grader
    threshold = grader.threshold(options.min_rating)
    rule = _Rule(
        threshold,
        # a higher threshold makes positive passages safer, and negatives not less safe
        min(threshold, grader.default_min_rating),
        relevance_threshold(None, highest_judgment(exam.connection)),
        options.depth,
        passage_kinds(exam.book),
    )
    left_out: Counter[str] = Counter()
    candidates: list[tuple[QueryPairs, tuple[str, ...]]] = []
    wanted: set[str] = set()
    for query in exam.book.queries:
        if not query.item_ids:
            left_out["queries without items"] += 1
        elif not (text := exam.query_texts.get(query.query_id, "")):
            left_out["queries without text"] += 1
        else:
            positives, negatives = _sorted_passages(query, rule, left_out)
            found = QueryPairs(query.query_id, text, positives, ())
            candidates.append((found, negatives))
            wanted |= {*positives, *negatives}
    texts = {
        one.passage_id: one for one in read_passages(exam.connection) if one.passage_id in wanted
    }
    complete = []
    for pairs, negatives in candidates:
        distinct = _distinct(pairs.positives, negatives, texts, left_out)
        left_out["more hard negatives than wanted"] += len(distinct[options.negatives :])
        found = pairs._replace(negatives=distinct[: options.negatives])
        if found.positives and found.negatives:
            complete.append(found)
        else:
            what = "hard negative" if found.positives else "positive passage"
            left_out[f"queries without a {what}"] += 1
    if not complete:
        none = TrainingPairs((), {}, left_out)
        raise InputError(
            f"no query has a positive passage and a hard negative. Left out: {none.reasons}",
            file=exam.path,
            hint="Grade more passages: exampp grade",
        )
    used = {one for pairs in complete for one in (*pairs.positives, *pairs.negatives)}
    return TrainingPairs(tuple(complete), {key: texts[key] for key in sorted(used)}, left_out)


class _Rule(NamedTuple):
    """Rules for positive and negative passages.

    A rating of `threshold` answers an item, one of `doubtful` may; a judgment of `relevant` is
    positive; rankings count to `depth`; `kinds` are those of the systems' passages.
    """

    threshold: int
    doubtful: int
    relevant: int
    depth: int
    kinds: Mapping[str, str]


def _sorted_passages(
    query: QueryGrades, rule: _Rule, left_out: Counter[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the positive passages, most items first, and the negatives, best rank first."""
    wanted = np.flatnonzero(query.weights > 0)
    ratings = query.ratings[: query.pool_size, wanted]
    graded = ratings != MISSING
    covered = (graded & (ratings >= rule.threshold)).sum(axis=1)
    judged = query.judgments[:, : query.pool_size].max(axis=0)
    rank = _best_ranks(query, rule.kinds, "contexts")
    answers = (_best_ranks(query, rule.kinds, "answers") < _NO_RANK) & (rank == _NO_RANK)
    positive, rejected = covered > 0, (judged != MISSING) & (judged < rule.relevant)
    near = ~positive & (rank < rule.depth)
    doubtful = (graded & (ratings >= rule.doubtful)).any(axis=1)
    reasons: dict[str, Flags] = {
        "generated answers": (positive | near) & answers,
        "answering passages that people judged not relevant": positive & rejected,
        "passages that may answer an item": near & doubtful,
        "passages with ungraded items": near & ~graded.all(axis=1),
        "unanswering passages that people judged relevant": near & (judged >= rule.relevant),
    }
    kept = np.ones(query.pool_size, np.bool_)
    for why, flags in reasons.items():
        left_out[why] += int((flags & kept).sum())
        kept &= ~flags
    ids = query.passage_ids
    first = sorted(np.flatnonzero(positive & kept).tolist(), key=lambda at: (-covered[at], ids[at]))
    hard = sorted(np.flatnonzero(near & kept).tolist(), key=lambda at: (rank[at], ids[at]))
    return tuple(ids[at] for at in first), tuple(ids[at] for at in hard)


_NO_RANK = np.iinfo(np.int32).max


def _best_ranks(query: QueryGrades, kinds: Mapping[str, str], kind: str) -> NDArray[np.int32]:
    """Return the best rank of each passage of the pool in the rankings of a kind, from 0."""
    best = np.full(len(query.passage_ids), _NO_RANK, np.int32)
    for ranking in query.rankings:
        if kinds[ranking.system] == kind:
            places = np.arange(len(ranking.passages), dtype=np.int32)
            np.minimum.at(best, ranking.passages, places)
    return best[: query.pool_size]


def _distinct(
    positives: tuple[str, ...],
    negatives: tuple[str, ...],
    texts: Mapping[str, Passage],
    left_out: Counter[str],
) -> tuple[str, ...]:
    """Return the negatives without those with the text of a positive or an earlier passage."""
    seen = {" ".join(texts[one].text.casefold().split()) for one in positives}
    kept = []
    for one in negatives:
        text = " ".join(texts[one].text.casefold().split())
        if text in seen:
            left_out["passages with the text of another"] += 1
        else:
            seen.add(text)
            kept.append(one)
    return tuple(kept)


def write_triplets(exam: GradedExam, path: Path, options: ExportOptions) -> Exported:
    """Write JSON lines of `anchor`, `positive` and `negative`.

    sentence-transformers trains on them: `datasets.load_dataset("json", data_files=...)` has these
    three columns of text, in this order.
    """
    pairs = training_pairs(exam, options)
    count = 0
    with writing(path) as stream:
        for one in pairs.triplets():
            stream.write(encode_json(one._asdict(), path))
            count += 1
    return pairs.exported(f"{counted(count, 'triplet')} of {_sizes(pairs)}.", count)


def write_training_set(exam: GradedExam, path: Path, options: ExportOptions) -> Exported:
    """Write a BEIR folder with qrels/train.tsv: 1 for positive passages, 0 for hard negatives."""
    pairs = training_pairs(exam, options)
    labels = [
        Judgment(query.query_id, one, label)
        for query in pairs.queries
        for label, some in ((1, query.positives), (0, query.negatives))
        for one in some
    ]
    data_sets.write_folder(
        path,
        [Query(one.query_id, one.text) for one in pairs.queries],
        pairs.texts.values(),
        labels,
        split="train",
        about="Queries with passages that answer an item of an exam (1) and hard negatives (0). "
        "Systems trained on them have seen the exam: evaluate them on other queries. "
        f"Left out: {pairs.reasons or 'nothing'}.",
    )
    return pairs.exported(f"A training set of {_sizes(pairs)}.", len(labels))


def _sizes(pairs: TrainingPairs) -> str:
    return counted(len(pairs.queries), "query") if pairs.queries else "no query"
