"""Judgments as RankLib, SVM-rank and Quepid write them: `3 qid:1 1:0.5 # docid query`.

Comments `# qid:1: text` before the judgments name the queries, as in Elasticsearch's plug-in for
learning to rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.lines import OnError, text_of

_LINE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s+qid:(\S+)((?:\s+[^\s#:]+:\S+)*)\s*(?:#\s*(.*))?")
_QUERY = re.compile(r"#\s*qid:(\S+?):\s*(.*?)\s*")
_DOCUMENT = re.compile(r"docid\s*=\s*(\S+).*|([^\s;]+);?\s*(.*?)\s*")
_STARTS = re.compile(rb"\s*(?:#|-?\d+(?:\.\d+)?\s+qid:\S+(?:\s|$))")


def is_ranklib(line: bytes) -> bool:
    """Return whether a first line may be of such a file."""
    return _STARTS.match(line) is not None and b"qid:" in line


def judgment_rows(
    path: str | Path, lines: Iterable[tuple[int, bytes]], on_error: OnError
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the judgments with their lines: query_id, query, passage_id, relevance.

    The text behind the id of a document is the query if it is the same for all of its documents.
    """
    queries: dict[str, str] = {}
    texts: dict[str, set[str]] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    for number, line in lines:
        text = text_of(line, path, number)
        if not text.strip() or text.lstrip().startswith("#"):
            if named := _QUERY.fullmatch(text.strip()):
                queries[named[1]] = named[2]
            continue
        match = _LINE.fullmatch(text.rstrip())
        document = _DOCUMENT.fullmatch(match[4] or "") if match else None
        if match is None or document is None:
            on_error(
                InputError(
                    "is not a judgment with the id of a document",
                    file=path,
                    line=number,
                    hint="Write it as in 3 qid:1 1:0.5 # docid",
                )
            )
            continue
        query_id, passage_id = match[2], document[1] or document[2]
        texts.setdefault(query_id, set()).add((document[3] or "").strip('"'))
        row = {"query_id": query_id, "passage_id": passage_id, "relevance": match[1]}
        rows.append((number, row))
    alone = {key: next(iter(some)) for key, some in texts.items() if len(some) == 1}
    for number, row in rows:
        query_id = row["query_id"]
        yield number, {**row, "query": queries.get(query_id, alone.get(query_id, ""))}
