"""Everything behind a leaderboard as compact data for an interactive report.

Texts occur once; queries, items, passages and systems are numbers. Sealed items are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from exampp.measures.values import MeasureColumn
from exampp.records.gradebook import MISSING, Dossier, Gradebook, QueryGrades
from exampp.review.quotes import quote_of

DEPTH = 20
"""Ranks of every system whose passages are in the data."""
LONGEST = 20_000
"""Characters of a passage; a longer text is cut, and cannot be judged in the report."""
DECIMALS = 4


def report_details(
    book: Gradebook,
    dossiers: Iterable[Dossier],
    systems: Sequence[str],
    columns: Sequence[MeasureColumn],
    min_rating: int,
    *,
    sealed: Collection[tuple[str, str]] = (),
    can_decide: bool = True,
) -> dict[str, Any]:
    """Return the systems, queries, items, passages, grades and quotes of a leaderboard.

    Args:
        dossiers: The queries of the gradebook with their texts.
        systems: The systems in the order of `columns`.
        sealed: (query id, item id) of the items to leave out.
        can_decide: Whether decisions made in the report can be imported.
    """
    grader, numbers = book.grader, {name: at for at, name in enumerate(systems)}
    texts: dict[tuple[str, str], list[Any]] = {}
    by_id = {query.query_id: query for query in book.queries}
    queries = [
        _query(one, by_id[one.query_id], numbers, min_rating, sealed, texts)
        for one in dossiers
        if one.query_id in by_id
    ]
    place = {query["id"]: at for at, query in enumerate(queries)}
    scored = list(dict.fromkeys(name for column in columns for name in column.query_ids))
    return {
        "grader": grader.key,
        "bank": book.bank,
        "scale": [grader.lowest, grader.highest],
        "least": min_rating,
        "decide": can_decide,
        "depth": DEPTH,
        "systems": list(systems),
        "measures": [column.name for column in columns],
        "means": [[_rounded(mean.mean) for mean in column.values.means()] for column in columns],
        # subtopics are scored one by one
        "rows": [[name, place.get(name, place.get(name.partition("/")[0]))] for name in scored],
        "scores": [_scores(column, scored) for column in columns],
        "queries": queries,
        "texts": list(texts.values()),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


def _scores(column: MeasureColumn, names: Sequence[str]) -> list[list[float | None]]:
    """Return the scores of all systems, query by query; None where undefined."""
    place = {name: at for at, name in enumerate(column.query_ids)}
    values, counts = column.values.values, column.values.counts
    return [
        [
            _rounded(value) if known else None
            for value, known in zip(
                values[:, place[name]].tolist(), counts[:, place[name]].tolist(), strict=True
            )
        ]
        if name in place
        else []
        for name in names
    ]


def _query(
    dossier: Dossier,
    grades: QueryGrades,
    systems: Mapping[str, int],
    min_rating: int,
    sealed: Collection[tuple[str, str]],
    texts: dict[tuple[str, str], list[Any]],
) -> dict[str, Any]:
    """Return one query; `texts` gets its passages."""
    row = {passage_id: at for at, passage_id in enumerate(dossier.grades.passage_ids)}
    column = {item_id: at for at, item_id in enumerate(grades.item_ids)}
    hashes = grades.hashes
    items = [
        at
        for at in dossier.bank_order or range(len(dossier.items))
        if dossier.items[at].item_id in column
        and (dossier.query_id, dossier.items[at].item_id) not in sealed
    ]
    rankings = [
        (systems[one.system], one.subtopic, one.passages[:DEPTH].tolist())
        for one in grades.rankings
    ]
    place: dict[int, int] = {}
    passages: list[int] = []
    ratings: list[list[int | None]] = []
    quotes: list[list[int]] = []
    cut: list[int] = []
    for at in dict.fromkeys(passage for *_, some in rankings for passage in some):
        passage_id = grades.passage_ids[at]
        text = dossier.texts[row[passage_id]] if passage_id in row else None
        if text is None or at >= grades.pool_size:
            continue
        text_hash = hashes[at].hex()
        known = texts.setdefault(
            (passage_id, text_hash),
            [len(texts), passage_id, text.title, text.text[:LONGEST], text_hash],
        )
        place[at] = len(passages)
        passages.append(known[0])
        by_item: list[int | None] = []
        for number, item_at in enumerate(items):
            item = dossier.items[item_at]
            rating = int(grades.ratings[at, column[item.item_id]])
            by_item.append(None if rating == MISSING else rating)
            if rating >= min_rating:
                grade = dossier.automatic.get((row[passage_id], item_at))
                is_answer = dossier.grader.highest <= 1
                (start, end), _, guess = quote_of(text, grade, item.text, extracts=is_answer)
                if 0 < end <= LONGEST:
                    span = (_units(text.text, start), _units(text.text, end))
                    quotes.append([len(passages) - 1, number, *span, int(guess)])
        ratings.append(by_item)
        cut += [place[at]] if len(text.text) > LONGEST else []
    of_item = {dossier.items[at].item_id: number for number, at in enumerate(items)}
    of_passage = {grades.passage_ids[at]: number for at, number in place.items()}
    return {
        "id": dossier.query_id,
        "text": dossier.query_text,
        "items": [[dossier.items[at].item_id, dossier.items[at].text] for at in items],
        "passages": passages,
        "cut": cut,
        "ratings": ratings,
        "quotes": quotes,
        "rankings": [
            [system, [[place[p], rank] for rank, p in enumerate(some, 1) if p in place]]
            for system, _, some in rankings
        ],
        "decided": [
            [of_passage[one.passage_id], of_item[one.item_id], list(one.people), int(one.disputed)]
            for one in grades.decided
            if one.passage_id in of_passage and one.item_id in of_item
        ],
    }


def _units(text: str, offset: int) -> int:
    """Return an offset in UTF-16 units, as browsers count."""
    return offset + sum(letter > "\uffff" for letter in text[:offset])
