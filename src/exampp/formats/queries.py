"""Queries: JSON dictionary of id to text, JSON-lines, tab-separated columns, or TREC topics."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from exampp.errors import InputError
from exampp.formats import argue, nuggets, passages, plain_bank, responses
from exampp.formats.columns import names_of
from exampp.formats.fields import brief, column_names, normalize_name, slips_of
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import (
    OBJECT,
    Fields,
    identifier,
    key_of,
    optional_text,
    required_text,
)
from exampp.formats.lines import (
    Key,
    OnError,
    decode_json,
    encode_json,
    lines_in_memory,
    parse_each,
    parse_lines,
    plain_name,
    raise_error,
    read_lines,
    read_pairs,
    read_text,
    text_of,
)
from exampp.formats.output import writing
from exampp.formats.rag_values import answerability, is_answerability, is_history, with_history
from exampp.formats.read_warnings import Keys, add_warning
from exampp.formats.tables import table_rows
from exampp.records import Query, Subtopic
from exampp.records.turns import ASSISTANT, USER, Turn, transcript, turns_of
from exampp.records.wording import counted

ID_KEYS = ("query_id", "qid", "topic_id", "narrative_id", "request_id", "_id", "id")
"""Names of a query id, the preferred one first."""
TEXT_KEYS = ("text", "query", "query_text", "title", "narrative", "question", "prompt")
REQUEST_KEYS = ("title", "problem_statement", "background")
"""Parts of a report request (TREC RAGTIME, AutoJudge), joined to its text."""
_HEADER = frozenset((*ID_KEYS, "topic", "number", "num")), frozenset((*TEXT_KEYS, "topic"))
"""Names of the two columns of a table."""
_KNOWN_KEYS = frozenset((*ID_KEYS, *TEXT_KEYS, *REQUEST_KEYS, "subtopics", "metadata"))
_SUBTOPIC_ID_KEYS = ("subtopic_id", "facet_id", "id")
_SUBTOPIC_TEXT_KEYS = ("text", "title")
_START = 4000
_MARKED = re.compile(r"^\|(user|agent|assistant)\|: ?", re.MULTILINE)
_SUBTOPICS: msgspec.json.Decoder[list[Fields]] = msgspec.json.Decoder(list[Fields])
_STARTS_A_QUERY = re.compile(
    rb'\s*\{\s*"(?:%s)"\s*:' % b"|".join(key.encode() for key in ID_KEYS + TEXT_KEYS)
)


def read(path: str | Path, on_error: OnError = raise_error) -> Iterator[Query]:
    """Yield the queries of a file in file order; the first line decides the layout.

    A text may be empty if only the id is known, with a warning. Two columns are separated by a tab,
    comma or semicolon; a header (such as `query_id`, `text`) is skipped.

    Raises:
        InputError: A query has no id or no text key, an id occurs twice, or a line does not have
            two columns.
    """
    without_text: list[str] = []
    for query in _read(path, on_error):
        if not query.text.strip():
            without_text.append(query.query_id)
        yield query
    if without_text:
        what = counted(len(without_text), "query")
        add_warning(path, None, f"{what} without text, the first is {brief(without_text[0])}")


def _read(path: str | Path, on_error: OnError) -> Iterator[Query]:
    start, head = next(read_lines(path))
    if head.lstrip().startswith(b"<") and is_topics(read_text(path)[:_START]):
        topics = read_topics(path, on_error)
        yield from parse_each(topics, path, on_error, lambda topic, _: topic, _KEY)
    elif not head.lstrip().startswith((b"{", b"[")):
        separator = _separator(head.decode(errors="replace"))
        if separator == "\t":
            yield from parse_lines(path, on_error, partial(_from_line, path, start), _KEY)
        else:
            cells = table_rows(read_text(path), separator, path)
            yield from parse_each(cells, path, on_error, partial(_from_columns, start), _KEY)
    elif lines_in_memory(path) or _is_a_query(head):
        keys = Keys(path, _KNOWN_KEYS)
        yield from parse_lines(path, on_error, partial(_from_object, path, keys), _KEY)
    else:
        pairs = ((number, (key, value)) for number, key, value in read_pairs(path))
        yield from parse_each(pairs, path, on_error, _from_pair, _KEY)


_KEY = Key(
    lambda query: query.query_id,
    lambda query: f"query {brief(query.query_id)}",
    "query_id",
    equal_lines=True,
)


def _is_a_query(head: bytes) -> bool:
    """Return whether the object that starts here is one query, not a dictionary of queries."""
    try:
        keys = OBJECT.decode(head).keys()
    except (ValueError, RecursionError):
        # Broken or truncated: reading line by line gives better messages.
        return _STARTS_A_QUERY.match(head) is not None
    return not keys.isdisjoint(ID_KEYS + TEXT_KEYS)


_RESULTS = frozenset(chain(*map(names_of, ("answer", "contexts", "reference"))))
"""Names of what a record has beside its query."""
_OF_A_SYSTEM = re.compile(r"\w+_(?:answers?|responses?|outputs?)", re.IGNORECASE)
"""Names of the answers of several systems, such as `v_answers`."""


def names_a_result(key: str) -> bool:
    """Return whether a key is the name of an answer, of contexts or of a reference, no query id."""
    name = key.rpartition(".")[2]
    return normalize_name(name) in _RESULTS or _OF_A_SYSTEM.fullmatch(name) is not None


def _from_pair(pair: tuple[str, object], _: int) -> Query:
    key, value = pair
    if key in ID_KEYS:
        raise InputError("a query spans several lines", field=key, hint="Write one query per line")
    if names_a_result(key):
        raise InputError(
            "is a field of a record, not a query id", field=key, hint="Write one record per line"
        )
    if not key.strip():
        raise InputError("the query id is blank")
    if not isinstance(value, str):
        raise InputError("the query text must be a string", field=key)
    return Query(key, value)


def _from_object(path: str | Path, keys: Keys, line: bytes, number: int) -> Query:
    fields = decode_json(line, OBJECT, path, number)
    query = _query(fields)
    texts = REQUEST_KEYS if "problem_statement" in fields else (key_of(fields, TEXT_KEYS),)
    used = {key_of(fields, ID_KEYS), *texts, "subtopics"}
    used |= {*filter(is_answerability, fields if query.answerable is not None else ())}
    keys.see(fields, number, used | {*filter(is_history, fields if turns_of(query.text) else ())})
    return query


def _query(fields: Fields) -> Query:
    query_id = identifier(fields, ID_KEYS)
    if "problem_statement" in fields:
        parts = (optional_text(fields, [key]).strip() for key in REQUEST_KEYS)
        text = "\n\n".join(part for part in parts if part)
    else:
        text = _of_marked_turns(required_text(fields, TEXT_KEYS))
        text = with_history(_decoded(fields, is_history), text)
    subtopics = _subtopics(fields.get("subtopics"))
    return Query(query_id, text, subtopics, answerability(_decoded(fields, is_answerability)))


def _of_marked_turns(text: str) -> str:
    """Return the transcript of turns that each start with `|user|:` or `|agent|:` (MTRAG)."""
    start, *parts = _MARKED.split(text)
    if start or not parts:
        return text
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return transcript(Turn(USER if role == USER else ASSISTANT, one.strip()) for role, one in pairs)


def _decoded(fields: Fields, is_wanted: Callable[[str], bool]) -> dict[str, object]:
    """Return some fields, such as those with the earlier turns of a query."""
    return {name: msgspec.json.decode(raw) for name, raw in fields.items() if is_wanted(name)}


def _subtopics(raw: msgspec.Raw | None) -> tuple[Subtopic, ...]:
    if raw is None:
        return ()
    try:
        rows = _SUBTOPICS.decode(raw)
    except msgspec.DecodeError:
        raise InputError("must be a list of objects", field="subtopics") from None
    subtopics: dict[str, Subtopic] = {}
    for index, fields in enumerate(rows):
        try:
            subtopic = Subtopic(
                identifier(fields, _SUBTOPIC_ID_KEYS), optional_text(fields, _SUBTOPIC_TEXT_KEYS)
            )
        except InputError as error:
            error.field = f"subtopics[{index}].{error.field}"
            raise
        if subtopic.subtopic_id in subtopics:
            raise InputError(
                f"subtopic {brief(subtopic.subtopic_id)} occurs twice", field=f"subtopics[{index}]"
            )
        subtopics[subtopic.subtopic_id] = subtopic
    return tuple(subtopics.values())


def _separator(head: str) -> str:
    """Return the separator of two columns; a tab if there is no other."""
    others = () if "\t" in head else ",;"
    return next((one for one in others if [*map(len, _cells([head], one))] == [2]), "\t")


def _cells(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Return the cells of each row; empty if they are not in a table."""
    with suppress(csv.Error):
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    return []


def _from_line(path: str | Path, start: int, line: bytes, number: int) -> Query | None:
    return _from_columns(start, text_of(line, path, number).split("\t"), number)


def _from_columns(start: int, columns: list[str], number: int) -> Query | None:
    if number == start:
        if is_query_header(columns):
            return None
        if column_names(columns):
            raise InputError(
                f"the columns {', '.join(columns)} are not those of queries",
                hint="Queries have two columns, id and text",
            )
        if slips := slips_of(columns, frozenset(ID_KEYS + TEXT_KEYS)):
            raise InputError(slips, hint="Correct the header")
    if len(columns) != 2:
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) != 1)} instead of 2 (id, text)",
            hint="Separate id and text by a single tab, or by a comma with the text in quotes",
        )
    if not columns[0].strip():
        raise InputError("the query id is blank", field="column 1")
    return Query(columns[0].strip(), columns[1])


def is_query_header(columns: Sequence[str]) -> bool:
    """Return whether the first line of a table is a header."""
    names = [normalize_name(one) for one in columns]
    is_known = len(names) == 2 and names[0] != names[1]
    return is_known and all(map(frozenset.__contains__, _HEADER, names))


def write(path: str | Path, queries: Iterable[Query]) -> None:
    """Write queries as JSON-lines with `query_id`, `text` and `subtopics`.

    A name that ends in .json gives a dictionary of id to text; raise InputError for a query with
    subtopics.
    """
    as_dictionary = plain_name(path).endswith(".json")
    with writing(path) as stream:
        if as_dictionary:
            texts = dict(_without_subtopics(query, path) for query in queries)
            stream.write(encode_json(texts, path))
            return
        for query in queries:
            subtopics = [
                {"subtopic_id": one.subtopic_id, "text": one.text} for one in query.subtopics
            ]
            # write empty subtopics, too: they distinguish queries from responses
            row: dict[str, object] = {"query_id": query.query_id, "text": query.text}
            row["subtopics"] = subtopics
            if query.answerable is not None:
                row["answerable"] = query.answerable
            stream.write(encode_json(row, path))


def _without_subtopics(query: Query, path: str | Path) -> tuple[str, str]:
    if query.subtopics:
        raise InputError(
            f"query {brief(query.query_id)} has subtopics, which a JSON dictionary cannot store",
            file=path,
            hint="Use a file name that ends in .jsonl",
        )
    return query.query_id, query.text


_ONLY_QUERIES = frozenset({"query_id", "qid", "topic_id"})
_NAME = "quer|topic"


def _sniff(sample: FirstRecords) -> bool:
    if is_topics(sample.start):
        return True
    if sample.is_dictionary('"') and (not sample.has_spaces or re.search(_NAME, sample.name)):
        return not argue.is_spread(sample)
    return _is_csv(sample) or (
        sample.has_tabs({2}) and (not sample.header or is_query_header(sample.header))
    )


def _is_csv(sample: FirstRecords) -> bool:
    """Return whether the lines have an id and a text, separated by a comma or semicolon.

    Without a header that tells them from other tables, the name of the file must say so.
    """
    separator = _separator(sample.head)
    if separator == "\t" or sample.is_bank_table or sample.has_scores:
        return False
    rows = _cells(sample.lines, separator)
    named = re.search(_NAME, sample.name) is not None
    if rows and is_query_header(rows[0]):
        return named or not passages.is_passage_header(rows[0])
    is_texts = all(len(row) == 2 and " " not in row[0].strip() for row in rows)
    return named and is_texts and any(" " in row[1] for row in rows)


def _confirm(sample: FirstRecords) -> bool:
    # documents of a data set have the same columns; the file name then decides
    keys = frozenset(sample.keys)
    is_document = keys >= {"title", "text"} and keys.isdisjoint(_ONLY_QUERIES)
    return not is_document or re.search(_NAME, sample.name) is not None


FORMAT = Format(
    "queries",
    lambda path, how: read(path, how.on_error),
    write,
    _sniff,
    name="queries",
    shapes=(
        Shape(
            (ID_KEYS, TEXT_KEYS),
            frozenset((*passages.ID_KEYS, *passages.TEXT_KEYS)) - {"_id", "id", "text"}
            | {"items", "questions", *plain_bank.TEXT_KEYS},
            (nuggets.NUGGETS, argue.BANKS, *responses.CERTAIN),
        ),
        Shape((("id", "_id"), ("question",)), most=2),
    ),
    confirm=_confirm,
    header=r"(query_id|qid|topic_id)\t",
    file_name=_NAME,
    looks="JSON dictionary id → text; JSON-lines of `query_id` (`qid`, `topic_id`, "
    "`narrative_id`, `request_id`, `id`) and `text` (`query`, `title`, `narrative`), "
    "optionally `subtopics`; two columns separated by tab, comma or semicolon; TREC topics in SGML "
    "or XML (their title, or else the query, question or description)",
    source="exampp, TREC, BEIR, MS MARCO, TREC RAG, RAGTIME, AutoJudge",
    lossless="yes; of SGML and XML topics the text; of a request (`title`, `problem_statement`, "
    "`background`) the whole text; a dictionary (`--format queries` to a name that "
    "ends in .json) has no subtopics",
)


# ---- trec topics ---------------------------------------------------------------------------------


_TOPICS_START = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<top(?:s|ics?)?\b", re.I | re.S
)
_TOPIC = re.compile(r"<(topic|top)\b([^>]*)>(.*?)</\1\s*>", re.I | re.S)
_OPENED = re.compile(r"<(?:topic|top)\b(?!s)", re.I)
_NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']*)[\"']", re.I)
_PART = re.compile(r"<(\w+)[^>]*>(.*?)(?=</\1\s*>|<\w|$)", re.I | re.S)
_LABEL = re.compile(r"\s*(?:number|topic|description|narrative)\s*:", re.I)
_ID_TAGS = ("num", "number", "id")
_TEXT_TAGS = ("title", "query", "question", "desc", "description", "summary", "narr", "narrative")
"""The first of these that a topic has is its text."""


def is_topics(head: str) -> bool:
    """Return whether a file with this start has topics in SGML or XML."""
    return _TOPICS_START.match(head) is not None


def read_topics(path: str | Path, on_error: OnError) -> Iterator[tuple[int, Query]]:
    """Yield (first line, topic as a query) in file order.

    The text is the title, else the query, the question or the description; a warning lists the
    parts that are not read.

    Raises:
        InputError: A topic has no number or text, or does not end.
    """
    text = read_text(path)
    unread: dict[str, None] = {}
    line, numbered, ended = 1, 0, 0
    for topic in _TOPIC.finditer(text):
        line += text.count("\n", numbered, topic.start())
        numbered = topic.start()
        try:
            yield line, _topic_query(topic[2], topic[3], unread)
        except InputError as error:
            on_error(error.at(path, line))
        ended = topic.end()
    if cut := _OPENED.search(text, ended):
        line = text.count("\n", 0, cut.start()) + 1
        on_error(InputError("the topic does not end", file=path, line=line))
    elif not ended:
        raise InputError("the file has no topics", file=path)
    if unread:
        add_warning(path, None, f"parts of topics not read: {', '.join(unread)}")


def _topic_query(attributes: str, inside: str, unread: dict[str, None]) -> Query:
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
    unread |= dict.fromkeys(tag for tag in parts if tag in _TEXT_TAGS and tag != text)
    return Query(query_id, parts[text])
