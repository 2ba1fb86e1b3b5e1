"""Relevance judgments: lines of `query iteration passage relevance`, BEIR's, or of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from exampp.formats.fields import brief, integer, is_qrels_header, names_of
from exampp.formats.format import FirstRecords, Format, Shape
from exampp.formats.json_values import OBJECT, Fields, identifier, is_object
from exampp.formats.lines import (
    Key,
    OnError,
    accept,
    decode_json,
    encode_text,
    parse_lines,
    raise_error,
    read_lines,
)
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.trec import (
    BEIR,
    HIGHEST_RELEVANCE,
    PASSAGE_KEYS,
    QUERY_KEYS,
    RELEVANCE_KEYS,
    Words,
    check_word,
    columns,
    whole_number,
    word_of,
)
from exampp.records import Judgment

_COLUMNS = ("query", "iteration", "passage", "relevance")
_BEIR_COLUMNS = ("query", "passage", "relevance")
_SUBTOPIC_COLUMNS = ("query", "subtopic", "passage", "relevance")


def read(
    path: str | Path,
    on_error: OnError = raise_error,
    check: Callable[[Judgment], None] = accept,
    *,
    subtopics: bool = False,
) -> Iterator[Judgment]:
    """Yield the judgments of a qrels file in file order.

    Lines of three columns, query, passage and relevance, are read where the first line names them
    or separates them by tabs, as in BEIR; a first line that names the columns is skipped.
    The second column means nothing, unless `subtopics` says that it names the subtopic (TREC
    diversity qrels): nothing in the file tells the two apart. Lines of JSON are rows under the
    names of many tools. A query id `q/subtopic` is left as written. `check` may refuse a line by
    raising InputError. InputError for a wrong number of columns, a relevance that is no integer
    (negative ones are fine) and a passage judged twice, also where both lines agree.

    Source: the qrels formats of trec_eval, ndeval and BEIR.
    """
    words = Words()
    keys = Keys(path, (*QUERY_KEYS, *PASSAGE_KEYS, *RELEVANCE_KEYS))
    names: tuple[str, ...] = _SUBTOPIC_COLUMNS if subtopics else _COLUMNS
    start, head = next(read_lines(path))
    is_headed = is_qrels_header(names_of(head.decode(errors="replace").split()))
    is_json = is_object(head)
    if len(head.split()) == len(_BEIR_COLUMNS) and (is_headed or head.count(b"\t") == 2):
        names = _BEIR_COLUMNS

    def parse(line: bytes, number: int) -> Judgment | None:
        if is_headed and number == start:
            return None
        if is_json:
            fields: Fields = decode_json(line, OBJECT, path, number)
            keys.see(fields, number)
            query_id, passage_id = identifier(fields, QUERY_KEYS), identifier(fields, PASSAGE_KEYS)
            relevance = whole_number(fields, RELEVANCE_KEYS, HIGHEST_RELEVANCE)
            judgment = Judgment(query_id, passage_id, relevance)
        else:
            query, *group, passage, value = columns(line, names, "qrels")
            judgment = Judgment(
                words.common(query, "query"),
                word_of(passage, "passage"),
                integer(value, "relevance", HIGHEST_RELEVANCE),
                words.common(group[0], "subtopic") if names is _SUBTOPIC_COLUMNS else None,
            )
        check(judgment)
        return judgment

    yield from parse_lines(path, on_error, parse, _KEY)


def _name(one: Judgment) -> str:
    subtopic = f" and subtopic {brief(one.subtopic_id)}" if one.subtopic_id else ""
    passage = brief(one.passage_id)
    return f"the judgment of passage {passage} for query {brief(one.query_id)}{subtopic}"


_KEY = Key(lambda one: (one.query_id, one.subtopic_id, one.passage_id), _name, "passage")


def write(path: str | Path, judgments: Iterable[Judgment], iteration: str = "0") -> None:
    """Write judgments as `query iteration passage relevance`, separated by one space.

    The second column of a judgment of a subtopic is the subtopic. InputError for an id that cannot
    be a column.
    """
    check_word(iteration, "iteration", path)
    with writing(path) as stream:
        for query_id, of_query in groupby(judgments, key=attrgetter("query_id")):
            query = check_word(query_id, "query", path)
            lines = []
            for one in of_query:
                group = iteration
                if one.subtopic_id is not None:
                    group = check_word(one.subtopic_id, "subtopic", path)
                passage = check_word(one.passage_id, "passage", path)
                lines.append(f"{query} {group} {passage} {one.relevance}\n")
            stream.write(encode_text("".join(lines), path))


def _sniff(sample: FirstRecords) -> bool:
    if is_qrels_header(sample.header):
        return True
    if sample.has_scores:
        return False
    return (sample.has_words(4) and sample.has_numbers(3)) or sample.has_whole_numbers_third


FORMAT = Format(
    "qrels",
    lambda path, how: read(path, how.on_error, how.check),
    write,
    _sniff,
    name="qrels",
    shapes=(Shape((QUERY_KEYS, set(PASSAGE_KEYS) - {"_id"}, RELEVANCE_KEYS[:5])), BEIR),
    file_name=r"qrels?$|^qrels?\b",
    exports="judgments",
    looks="`query 0 passage relevance`; `query-id`, `corpus-id`, `score`, separated by tabs",
    source="trec_eval, BEIR, MS MARCO",
    lossless="yes, but the second column; BEIR's comes out as trec_eval's",
)
