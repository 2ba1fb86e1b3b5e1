"""One query of a RAG collection as a record: question, answers, contexts, reference and items.

A sentence of an answer is marked by facts alone: its citations, and the items for which the grader
quotes it. Only the top passages of a ranking count, as in Cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from exampp.errors import InputError
from exampp.prompts.words import sentence_spans
from exampp.records.gradebook import (
    MISSING,
    Dossier,
    PassageKind,
    PassageText,
    QueryGrades,
)
from exampp.records.turns import question_of, turns_of
from exampp.records.wording import counted, cut_text
from exampp.results.result import Result, Table
from exampp.results.view import Column
from exampp.review.evidence import DEPTH
from exampp.review.quotes import extracted_quote
from exampp.store.read_model import Citation

_START = 90
"""Characters that name a passage without a title."""
_WIDTH = 120
"""Characters of a text in a table for people."""


class MarkedSentence(NamedTuple):
    """A sentence with the space after it.

    `cites` are the numbers of the contexts that it cites; `items` those of the items for which the
    grader quotes it, and `shared` those among them that a context covers, too.
    """

    text: str
    cites: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()

    @property
    def is_marked(self) -> bool:
        """Return whether it cites a context, or is quoted for an item that one covers."""
        return bool(self.cites or self.shared)


class RecordPassage(NamedTuple):
    """A context or a part of an answer.

    `number` counts the passages of the record of a system, `rank` is None if an answer only cites
    the passage. `covers` are the covered items with their ratings, best first.
    """

    number: int
    rank: int | None
    passage_id: str
    title: str
    sentences: tuple[MarkedSentence, ...]
    covers: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """The text; empty if it is not imported."""
        return "".join(one.text for one in self.sentences)

    @property
    def name(self) -> str:
        """The title, the start of the text, or the id of a passage without a text."""
        return self.title or cut_text(self.text, _START) or self.passage_id


class BestRating(NamedTuple):
    """The best rating of an item among some passages, and the first passage with it."""

    rating: int
    passage_id: str


class RecordItem(NamedTuple):
    """An item with its number and the best ratings (None: no grade).

    `answers` and `contexts` have one for each system, `reference` that of the reference passages.
    An answer should not cover an item to avoid.
    """

    number: int
    item_id: str
    text: str
    answers: tuple[BestRating | None, ...]
    contexts: tuple[BestRating | None, ...]
    reference: BestRating | None
    is_avoided: bool = False


class SystemRecord(NamedTuple):
    """The answer of a system (empty: it only retrieves), and its contexts in rank order.

    `source` names the system of the contexts; "" if the contexts are the citations, or none.
    `more` counts the contexts below those shown.
    """

    system: str
    source: str
    answer: tuple[RecordPassage, ...]
    contexts: tuple[RecordPassage, ...]
    more: int

    @property
    def support(self) -> str:
        """Count the sentences of the answer that cite a context or share an item with one."""
        sentences = [one for part in self.answer for one in part.sentences]
        cited = sum(bool(one.cites) for one in sentences)
        shared = sum(bool(one.shared) for one in sentences)
        quoted = any(one.items for one in sentences)
        cites = f"{cited} of {counted(len(sentences), 'sentence')} cite a context"
        answers = f"{shared} of {len(sentences):,} answer an item that a context covers"
        return f"{cites if cited else 'no citation'}, {answers if quoted else 'no quoted evidence'}"


@dataclass(frozen=True, slots=True, repr=False)
class QueryRecord(Result):
    """A query with the answers and contexts of some systems, the reference, and the items.

    `references` are the reference answers, `relevant` the passages judged relevant. `min_rating` is
    the lowest rating that covers an item.
    """

    query_id: str
    query_text: str
    systems: tuple[SystemRecord, ...]
    references: tuple[str, ...]
    relevant: tuple[RecordPassage, ...]
    items: tuple[RecordItem, ...]
    min_rating: int

    @property
    def headline(self) -> str:
        """The number of items that each answer covers, and those of its contexts."""
        if not self.systems:
            return "No system answers this query."
        graded = [rating for one in self.items for rating in (*one.answers, *one.contexts)]
        if not any(graded) and any(one.answer or one.contexts for one in self.systems):
            return "No grades yet." if self.items else "No items yet."
        parts = ((self._coverage(at), self._avoidance(at)) for at in range(len(self.systems)))
        return " ".join(
            f"{one.system} {'; '.join(filter(None, of)) or 'has no grades'}."
            for one, of in zip(self.systems, parts, strict=True)
        )

    def _coverage(self, at: int) -> str:
        """Return the end of a sentence: the items that the answer and the contexts cover."""
        wanted = [item for item in self.items if not item.is_avoided]
        one, total = self.systems[at], counted(len(wanted), "item")
        answers = [item.answers[at] for item in wanted]
        contexts = [item.contexts[at] for item in wanted]
        if not (one.answer or one.contexts):
            return "returns nothing"
        if not any(answers):
            if not any(contexts):
                return "has no grades" if wanted else ""
            sentence = f"retrieves {sum(map(self.covered, contexts))} of {total}"
            return sentence + "; its answer has no grades" * bool(one.answer)
        sentence = f"covers {sum(map(self.covered, answers))} of {total}"
        if ungraded := answers.count(None):
            sentence += f" ({ungraded} without a grade)"
        if not one.contexts:
            return sentence
        if not any(contexts):
            return f"{sentence}; its contexts have no grades"
        both = (pair for pair in zip(answers, contexts, strict=True) if all(pair))
        pairs = [(self.covered(answer), self.covered(context)) for answer, context in both]
        alone = {
            "not in the answer": pairs.count((False, True)),
            "in no context": pairs.count((True, False)),
        }
        details = ", ".join(f"{count} {where}" for where, count in alone.items() if count)
        sentence += f", its contexts {sum(map(self.covered, contexts))}"
        return sentence + f" ({details})" * bool(details)

    def _avoidance(self, at: int) -> str:
        """Return the items to avoid that the answer, or else its contexts, state; or ""."""
        avoided = [item for item in self.items if item.is_avoided]
        answers = [item.answers[at] for item in avoided]
        verb, ratings = "states", answers
        if not any(answers):
            verb, ratings = "retrieves", [item.contexts[at] for item in avoided]
        if not any(ratings):
            return ""
        return (
            f"{verb} {sum(map(self.covered, ratings))} of {counted(len(avoided), 'item')} to avoid"
        )

    def covered(self, rating: BestRating | None) -> bool:
        """Return whether a rating covers its item."""
        return rating is not None and rating.rating >= self.min_rating

    def records(self) -> dict[str, Table]:
        """Return the tables with whole texts."""
        return self.tables(None)

    def tables(self, width: int | None = _WIDTH) -> dict[str, Table]:
        """Return the answers by sentence, the contexts, the reference, and the items."""

        def shown(text: str) -> str:
            return text.strip() if width is None else cut_text(text, width)

        sentences = [
            (one.system, shown(sentence.text), *map(_listed, sentence[1:]))
            for one in self.systems
            for part in one.answer
            for sentence in part.sentences
        ]
        contexts = [
            (one.system, passage.number, passage.passage_id, shown(passage.text), _covers(passage))
            for one in self.systems
            for passage in one.contexts
        ]
        reference = [("answer", one) for one in self.references]
        reference += [("passage", one.text) for one in self.relevant]
        notes = [f"{one.system}: {one.support}." for one in self.systems if one.answer]
        turns = [(one.role, shown(one.text)) for one in turns_of(self.query_text)[:-1]]
        found = {
            "answers": Table.of(
                ("system", "sentence", "cites", "answers items", "covered by contexts"),
                sentences,
                shown(question_of(self.query_text) or self.query_id),
                notes,
                grouped=True,
                verdict=self.headline,
            ),
            "conversation": Table.of(("role", "text"), turns, "Earlier turns"),
            "contexts": Table.of(
                ("system", "number", Column("passage", readers="programs"), "text", "covers items"),
                contexts,
                "Contexts",
                grouped=True,
            ),
            "reference": Table.of(
                ("kind", "text"), ((kind, shown(text)) for kind, text in reference), "Reference"
            ),
            "items": self._items(shown),
        }
        return {name: one for name, one in found.items() if one.rows or name == "answers"}

    def _items(self, shown: Callable[[str], str]) -> Table:
        columns: list[str | Column] = [
            Column("item", key="number"),
            Column("item_id", readers="programs"),
            "text",
        ]
        has_avoided = any(item.is_avoided for item in self.items)
        columns += ["wanted"] * has_avoided
        has_reference = any(item.reference for item in self.items)
        for one in self.systems:
            columns += [
                Column(name, group=one.system)
                for name, some in (("answer", one.answer), ("contexts", one.contexts))
                if some
            ]
        rows = [
            (
                *(item.number, item.item_id, shown(item.text)),
                *["to avoid" if item.is_avoided else "wanted"] * has_avoided,
                *(
                    rating and rating.rating
                    for one, answer, context in zip(
                        self.systems, item.answers, item.contexts, strict=True
                    )
                    for some, rating in ((one.answer, answer), (one.contexts, context))
                    if some
                ),
                *[item.reference and item.reference.rating] * has_reference,
            )
            for item in self.items
        ]
        columns += ["reference"] * has_reference
        return Table.of(columns, rows, "Items, with the best rating of each")


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _covers(passage: RecordPassage) -> str:
    return _listed([number for number, _ in passage.covers])


def default_systems(grades: QueryGrades, best_first: Iterable[str]) -> list[str]:
    """Return the first two systems that answer a query."""
    answering = {one.system for one in grades.rankings}
    return [one for one in best_first if one in answering][:2]


def query_record(
    dossier: Dossier,
    systems: Sequence[str],
    kinds: Mapping[str, PassageKind],
    min_rating: int,
    *,
    citations: Mapping[tuple[str, str], Sequence[Citation]],
    references: Sequence[str] = (),
    min_relevant: int = 1,
) -> QueryRecord:
    """Return the record of a query for some systems.

    Args:
        dossier: The query with its texts and grades.
        systems: Systems of answers, or of contexts alone.
        kinds: The kind of every system, see `records.gradebook.passage_kinds`.
        min_rating: The lowest rating that covers an item.
        citations: Those of the answers, see `store.read_model.citations_of`.
        references: Reference answers.
        min_relevant: The lowest judgment of a relevant passage.

    Raises:
        InputError: A system is unknown.
    """
    for name in systems:
        if name not in kinds:
            raise InputError(f"unknown system {name!r}", hint=f"Known: {', '.join(kinds)}")
    record = _Record(dossier, min_rating)
    parts = [record.system(name, kinds, citations) for name in dict.fromkeys(systems)]
    grades = dossier.grades
    judged = np.flatnonzero(grades.judgments.max(axis=0, initial=MISSING) >= min_relevant).tolist()
    same = {one.strip() for one in references}
    repeating = [
        at
        for at, text in enumerate(dossier.texts)
        if text is not None and text.text.strip() in same
    ]
    of_reference = dict.fromkeys([*judged, *repeating])
    items = tuple(
        RecordItem(
            number,
            dossier.items[column].item_id,
            dossier.items[column].text,
            tuple(record.best(column, rows) for _, rows, _ in parts),
            tuple(record.best(column, rows) for *_, rows in parts),
            record.best(column, of_reference),
            dossier.items[column].is_avoided,
        )
        for number, column in enumerate(dossier.bank_order, 1)
    )
    relevant = (record.passage(n, None, at) for n, at in enumerate(judged[:DEPTH], 1))
    return QueryRecord(
        dossier.query_id,
        dossier.query_text,
        tuple(one for one, *_ in parts),
        tuple(references),
        tuple(one for one in relevant if one.text),
        items,
        min_rating,
    )


class _Record:
    """The passages of a query as parts of a record."""

    def __init__(self, dossier: Dossier, min_rating: int) -> None:
        self.dossier, self.min_rating = dossier, min_rating
        self.ids = dossier.grades.passage_ids
        self.row = {passage_id: at for at, passage_id in enumerate(self.ids)}
        self.number = {column: number for number, column in enumerate(dossier.bank_order, 1)}

    def system(
        self,
        name: str,
        kinds: Mapping[str, PassageKind],
        citations: Mapping[tuple[str, str], Sequence[Citation]],
    ) -> tuple[SystemRecord, list[int], list[int]]:
        """Return the record of a system, and the rows of its answer and of its contexts."""
        has_answer = kinds[name] == "answers"
        sources = [f"{name}:contexts", f"{name}:cited"] if has_answer else [name]
        source = next((one for one in sources if one in kinds), "")
        answer, contexts = self.returned(name) if has_answer else [], self.returned(source)
        known = {self.ids[at] for at in contexts}
        cited = dict.fromkeys(
            passage_id
            for at in answer
            for one in citations.get((name, self.ids[at]), ())
            for passage_id in one.passage_ids
            if passage_id not in known
        )
        top = contexts[:DEPTH]
        rows: list[int | str] = [*top, *(self.row.get(one, one) for one in cited)]
        of_context = {self._id(one): number for number, one in enumerate(rows, 1)}
        in_contexts = {self.number[at] for row in top for at in self._covered(row)}
        record = SystemRecord(
            name,
            source,
            tuple(
                self.passage(
                    *(number, number, row),
                    citations=[
                        (
                            one.start,
                            one.end,
                            [of_context[c] for c in one.passage_ids if c in of_context],
                        )
                        for one in citations.get((name, self.ids[row]), ())
                    ],
                    in_contexts=in_contexts,
                )
                for number, row in enumerate(answer, 1)
            ),
            tuple(
                self.passage(number, number if number <= len(top) else None, one)
                for number, one in enumerate(rows, 1)
            ),
            len(contexts) - len(top),
        )
        return record, answer[:DEPTH], top

    def returned(self, system: str) -> list[int]:
        """Return the rows that a system returned for the query or its subtopics, in rank order."""
        rankings = [one.passages for one in self.dossier.grades.rankings if one.system == system]
        return list(dict.fromkeys(at for passages in rankings for at in passages.tolist()))

    def best(self, column: int, rows: Iterable[int]) -> BestRating | None:
        """Return the best rating of an item among some passages; None without a grade."""
        ratings = self.dossier.grades.ratings[:, column]
        at = max(rows, key=lambda row: int(ratings[row]), default=None)
        if at is None or ratings[at] == MISSING:
            return None
        return BestRating(int(ratings[at]), self.ids[at])

    def passage(
        self,
        number: int,
        rank: int | None,
        row: int | str,
        *,
        citations: Sequence[tuple[int, int, Sequence[int]]] = (),
        in_contexts: Iterable[int] = (),
    ) -> RecordPassage:
        """Return a passage by its row, or an unknown one by its id, with marked sentences."""
        if isinstance(row, str):
            return RecordPassage(number, rank, row, "", (), ())
        ratings, text = self.dossier.grades.ratings, self.dossier.texts[row]
        covered = self._covered(row)
        covers = sorted(
            ((self.number[at], int(ratings[row, at])) for at in covered), key=_strongest
        )
        title, sentences = "", tuple[MarkedSentence, ...]()
        if text is not None:
            quotes = list(self._quotes(text, row, covered))
            title, sentences = (
                text.title,
                tuple(marked_sentences(text.text, citations, quotes, in_contexts)),
            )
        return RecordPassage(number, rank, self.ids[row], title, sentences, tuple(covers))

    def _id(self, row: int | str) -> str:
        return row if isinstance(row, str) else self.ids[row]

    def _covered(self, row: int) -> list[int]:
        covers = self.dossier.grades.ratings[row] >= self.min_rating
        return [at for at in np.flatnonzero(covers).tolist() if at in self.number]

    def _quotes(
        self, text: PassageText, row: int, columns: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, item) of the parts that the grader quotes literally for an item."""
        extracts = self.dossier.grader.highest <= 1
        for column in columns:
            grade = self.dossier.automatic.get((row, column))
            quote = extracted_quote(text, grade, extracts=extracts)
            if quote and not quote.guess:
                yield *quote.span, self.number[column]


def _strongest(covered: tuple[int, int]) -> tuple[int, int]:
    number, rating = covered
    return -rating, number


def marked_sentences(
    text: str,
    citations: Sequence[tuple[int, int, Sequence[int]]],
    quotes: Sequence[tuple[int, int, int]],
    in_contexts: Iterable[int],
) -> Iterator[MarkedSentence]:
    """Yield the sentences of a text, marked where a citation or a quote overlaps them."""
    starts = [start for start, _ in sentence_spans(text)][1:]
    for start, end in pairwise([0, *starts, len(text)]):

        def overlaps(first: int, last: int, start: int = start, end: int = end) -> bool:
            return first < end and start < last

        cites = (
            number
            for first, last, some in citations
            if overlaps(first, last or len(text))
            for number in some
        )
        items = {number for first, last, number in quotes if overlaps(first, last)}
        yield MarkedSentence(
            text[start:end],
            tuple(dict.fromkeys(cites)),
            tuple(sorted(items)),
            tuple(sorted(items & {*in_contexts})),
        )
