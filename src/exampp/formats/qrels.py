"""TREC relevance judgments: lines of `query iteration passage relevance`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.fields import FirstLines, brief, duplicate_error, integer
from exampp.formats.headers import is_qrels_header, names_of
from exampp.formats.json_objects import OBJECT, is_object
from exampp.formats.lines import OnError, accept, decode_json, encode_text, raise_error, read_lines
from exampp.formats.output import writing
from exampp.formats.read_warnings import Keys
from exampp.formats.trec import Words, columns, word
from exampp.formats.trec_objects import QRELS_KEYS, judgment_of
from exampp.records import Judgment

_COLUMNS = ("query", "iteration", "passage", "relevance")
_BEIR_COLUMNS = ("query", "passage", "relevance")
_SUBTOPIC_COLUMNS = ("query", "subtopic", "passage", "relevance")
_HIGHEST = 2**15 - 1
"""Judgments are held in 16 bits."""


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
    diversity qrels): nothing in the file tells the two apart. Lines of JSON are rows as in
    `trec_objects`. A query id `q/subtopic` is left as
    written. `check` may refuse a line by raising InputError. InputError for a wrong number of
    columns, a relevance that is no integer (negative
    ones are fine) and a passage judged twice, also where both lines agree.

    Source: the qrels formats of trec_eval, ndeval and BEIR.
    """
    words = Words()
    first = FirstLines()
    keys = Keys(path, QRELS_KEYS)
    names: tuple[str, ...] = _SUBTOPIC_COLUMNS if subtopics else _COLUMNS
    start, head = next(read_lines(path))
    is_headed = is_qrels_header(names_of(head.decode(errors="replace").split()))
    is_json = is_object(head)
    if len(head.split()) == len(_BEIR_COLUMNS) and (is_headed or head.count(b"\t") == 2):
        names = _BEIR_COLUMNS
    for number, line in read_lines(path):
        if is_headed and number == start:
            continue
        try:
            if is_json:
                fields = decode_json(line, OBJECT, path, number)
                keys.see(fields, number)
                judgment = judgment_of(fields, _HIGHEST)
            else:
                judgment = _judgment(line, words, names)
            check(judgment)
        except InputError as error:
            on_error(error.at(path, number))
            continue
        key = (judgment.query_id, judgment.subtopic_id, judgment.passage_id)
        earlier = first.add(key, number)
        if earlier:
            on_error(_judged_twice(judgment, earlier, path, number))
        else:
            yield judgment


def _judgment(line: bytes, words: Words, names: tuple[str, ...]) -> Judgment:
    query, *group, passage, relevance = columns(line, names, "qrels")
    return Judgment(
        words.common(query, "query"),
        words.rare(passage, "passage"),
        integer(relevance, "relevance", _HIGHEST),
        words.common(group[0], "subtopic") if names is _SUBTOPIC_COLUMNS else None,
    )


def _judged_twice(judgment: Judgment, first: int, path: str | Path, number: int) -> InputError:
    subtopic = f" and subtopic {brief(judgment.subtopic_id)}" if judgment.subtopic_id else ""
    return duplicate_error(
        f"the judgment of passage {brief(judgment.passage_id)} for query "
        f"{brief(judgment.query_id)}{subtopic}",
        first,
        path,
        number,
        "passage",
    )


def write(path: str | Path, judgments: Iterable[Judgment], iteration: str = "0") -> None:
    """Write judgments as `query iteration passage relevance`, separated by one space.

    The second column of a judgment of a subtopic is the subtopic. InputError for an id that cannot
    be a column.
    """
    word(iteration, "iteration", path)
    with writing(path) as stream:
        for _, of_query in groupby(judgments, key=attrgetter("query_id")):
            stream.write(encode_text("".join(_lines(of_query, iteration, path)), path))


def _lines(judgments: Iterable[Judgment], iteration: str, path: str | Path) -> Iterator[str]:
    """The lines of the judgments of one query."""
    query = None
    for judgment in judgments:
        query = query or word(judgment.query_id, "query", path)
        passage = word(judgment.passage_id, "passage", path)
        group = iteration
        if judgment.subtopic_id is not None:
            group = word(judgment.subtopic_id, "subtopic", path)
        yield f"{query} {group} {passage} {judgment.relevance}\n"
