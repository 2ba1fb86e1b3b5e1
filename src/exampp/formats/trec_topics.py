"""Topics as TREC publishes them: SGML (`<top>`, `<num>`) or XML (`<topic number="1">`)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.lines import OnError, read_text
from exampp.formats.read_warnings import add_warning
from exampp.records import Query

_START = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<top(?:s|ics?)?\b", re.I | re.S)
_TOPIC = re.compile(r"<(topic|top)\b([^>]*)>(.*?)</\1\s*>", re.I | re.S)
_OPENED = re.compile(r"<(?:topic|top)\b(?!s)", re.I)
_NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']*)[\"']", re.I)
_PART = re.compile(r"<(\w+)[^>]*>(.*?)(?=</\1\s*>|<\w|$)", re.I | re.S)
_LABEL = re.compile(r"\s*(?:number|topic|description|narrative)\s*:", re.I)
_ID_TAGS = ("num", "number", "id")
_TEXT_TAGS = ("title", "query", "question", "desc", "description", "summary", "narr", "narrative")
"""The first that a topic has is its text."""


def is_topics(head: str) -> bool:
    """Return whether a file that starts so holds topics in SGML or XML."""
    return _START.match(head) is not None


def read(path: str | Path, on_error: OnError) -> Iterator[tuple[int, Query]]:
    """Yield (line where it begins, topic as a query) in file order.

    Its text is the title, else the query, the question or the description; that the others are not
    read is remarked. InputError for a topic without a number or a text, or that does not end.
    """
    text = read_text(path)
    left: dict[str, None] = {}
    line, counted, ended = 1, 0, 0
    for topic in _TOPIC.finditer(text):
        line += text.count("\n", counted, topic.start())
        counted = topic.start()
        try:
            yield line, _query(topic[2], topic[3], left)
        except InputError as error:
            on_error(error.at(path, line))
        ended = topic.end()
    if cut := _OPENED.search(text, ended):
        line = text.count("\n", 0, cut.start()) + 1
        on_error(InputError("the topic does not end", file=path, line=line))
    elif not ended:
        raise InputError("there are no topics", file=path)
    if left:
        add_warning(path, None, f"parts of topics that are not read: {', '.join(left)}")


def _query(attributes: str, inside: str, left: dict[str, None]) -> Query:
    parts: dict[str, str] = {}
    for tag, content in _PART.findall(inside):
        clean = " ".join(html.unescape(_LABEL.sub("", content, count=1)).split())
        if clean:
            parts.setdefault(tag.lower(), clean)
    named = _NUMBER.search(attributes)
    query_id = named[1].strip() if named else next((parts[t] for t in _ID_TAGS if t in parts), "")
    if not query_id:
        raise InputError(f"no number (any of {', '.join(_ID_TAGS)})", field=_ID_TAGS[0])
    text = next((tag for tag in _TEXT_TAGS if tag in parts), None)
    if text is None:
        raise InputError(f"no text (any of {', '.join(_TEXT_TAGS)})", field=_TEXT_TAGS[0])
    left |= dict.fromkeys(tag for tag in parts if tag in _TEXT_TAGS and tag != text)
    return Query(query_id, parts[text])
