"""First lines that name the columns of a table, and names that columns go by in the field."""

from __future__ import annotations

from collections.abc import Sequence

QUERY = frozenset(
    ("query_id", "queryid", "qid", "topic_id", "topic", "query", "narrative_id", "request_id")
)
PASSAGE = frozenset(
    ("passage_id", "paragraph_id", "pid", "docno", "docid", "doc_id", "document_id", "corpus_id")
)
RELEVANCE = frozenset(
    ("relevance", "rel", "label", "judgment", "judgement", "score", "grade", "rating")
)
_OTHERS = frozenset(
    [
        "_id",
        "id",
        "text",
        "title",
        "passage",
        "segment",
        "contents",
        "body",
        "query_text",
        "narrative",
        "iteration",
        "iter",
        "q0",
        "0",
        "rank",
        "system",
        "run",
        "run_id",
        "run_tag",
        "method",
        "model",
        "response",
        "responses",
        "answer",
        "output",
    ]
)
_NAMES = QUERY | PASSAGE | RELEVANCE | _OTHERS


def names_of(cells: Sequence[str]) -> tuple[str, ...]:
    """The names in a line of columns, lower case and with underscores; empty if it names none.

    A line names its columns if every cell is a name that columns go by.
    """
    names = tuple(cell.strip().strip('"').lower().replace("-", "_") for cell in cells)
    is_header = len(names) > 1 and _NAMES.issuperset(names) and not names[0].isdigit()
    return names if is_header else ()


def is_qrels_header(names: Sequence[str]) -> bool:
    """Whether columns are those of qrels: query, perhaps an iteration, passage, relevance."""
    return (
        len(names) in (3, 4)
        and names[0] in QUERY
        and names[-2] in PASSAGE
        and names[-1] in RELEVANCE
    )
