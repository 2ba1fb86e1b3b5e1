"""Which format a file has, for commands that take any.

The rule: the first lines decide, by their fields or columns. Where they fit several kinds, a header
that names the columns decides, then the name of the file. Where that does not, either, the file is
refused with what was found, and whoever knows says what it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import (
    assignments,
    car,
    decisions,
    passages,
    pools,
    queries,
    questions,
    responses,
    score_tables,
    trec_objects,
    trec_topics,
    umbrela,
)
from exampp.formats.headers import is_qrels_header, own_names, plain
from exampp.formats.in_memory import held
from exampp.formats.nearest import nearest_kinds, slips_of_fields
from exampp.formats.plain_table import is_table_header
from exampp.formats.rag_presets import NEEDS
from exampp.formats.samples import FirstRecords, is_json, sample_of

_QUERIES_NAME = re.compile("quer|topic")
_WORKBENCH = re.compile(r'\s*\[\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,\s*\[')
_ONLY_QUERIES = frozenset({"query_id", "qid", "topic_id"})
_ONLY_PASSAGES = frozenset(passages.ID_KEYS + passages.TEXT_KEYS) - {"_id", "id", "text"}
_KEYS_OF_ROWS = frozenset(
    queries.ID_KEYS + queries.TEXT_KEYS + passages.ID_KEYS + passages.TEXT_KEYS
) | {"items", "questions"}
_NO_RESPONSES = frozenset({"title", "subtopics", "query_text", "items", "questions", "nuggets"})
_NEVER = re.compile(r"(?!)")
_LESSON = frozenset({"adjunctTopics", "globalID", "lessonName", "metaLessonID"})
_NUGGET_BANK = re.compile(r'\s*\{[^\[]*?"(?:nugget_bank|claim_bank|format_version)"\s*:')
_NUGGET_BANKS = frozenset({"nugget_bank", "claim_bank"})
_IMPORTANCES = frozenset({"vital", "okay"})
_OBJECT_OF_NUMBERS = re.compile(
    r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d'
)
_FIELDS = frozenset(
    (
        *("conversation", "conversation_id", "messages", "turns", "task", "task_id", "tasks"),
        *("name", "version", "status", "model", "dataset", "description", "type", "created_at"),
        *("input", "output", "question", "answer", "query", "text", "prompt", "response"),
        *("score", "scores", "average_scores", "averages", "metrics", "summary", "results"),
        *("judgments", "ratings", "config", "eval", "samples", "metadata", "data", "columns"),
    )
)
"""Names of the fields of records and of summaries, which are not ids of queries or systems."""
_NUMBER = re.compile(r'"\s*:\s*(-?\d[0-9.eE+-]*)')
_START = 4000
_STATEMENTS = frozenset(responses.STATEMENT_KEYS) - {"text"}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_numbers(rows: list[list[str]], *places: int) -> bool:
    return bool(rows) and all(_is_number(row[place]) for row in rows for place in places)


def _has_words(sample: FirstRecords, width: int) -> bool:
    # A text in two or three columns separated by tabs may have any number of words.
    if is_json(sample) or sample.widths("\t") & {2, 3}:
        return False
    return sample.widths(None) == {width}


def _is_run(sample: FirstRecords) -> bool:
    if _has_words(sample, 6):
        return _has_numbers(sample.columns(None), 3, 4)
    return trec_objects.is_run(sample.keys) or _has_whole_numbers_third(sample)


def _has_whole_numbers_third(sample: FirstRecords) -> bool:
    """Whether there are three columns as in runs and judgments of MS MARCO, or passages."""
    rows = sample.columns("\t")
    return _has_tabs(sample, {3}) and all(row[2].strip().lstrip("-").isdigit() for row in rows)


def _is_qrels(sample: FirstRecords) -> bool:
    if is_qrels_header(sample.header) or trec_objects.is_qrels(sample.keys):
        return True
    if _is_scores(sample):
        return False
    if _has_words(sample, 4) and _has_numbers(sample.columns(None), 3):
        return True
    return _has_whole_numbers_third(sample)


def _is_decisions(sample: FirstRecords) -> bool:
    return sample.head in decisions.HEADERS


def _is_umbrela(sample: FirstRecords) -> bool:
    return sample.keys >= umbrela.KEYS and sample.keys.isdisjoint(questions.QUERY_KEYS)


def _is_workbench(sample: FirstRecords) -> bool:
    return _WORKBENCH.match(sample.head) is not None


def _is_bank(sample: FirstRecords) -> bool:
    return "query_id" in sample.keys and not sample.keys.isdisjoint({"items", "questions"})


def _is_plain_bank(sample: FirstRecords) -> bool:
    return sample.name.endswith((".yaml", ".yml")) or is_table_header(sample.head)


def _may_be_questions(sample: FirstRecords) -> bool:
    """Whether a line is an item of a bank; with an answer alone it may be a system's response."""
    keys = sample.keys
    return (
        not keys.isdisjoint(questions.TEXT_KEYS)
        and not keys.isdisjoint(questions.QUERY_KEYS)
        and keys.isdisjoint({"items", "questions", "nuggets", *responses.SYSTEM_KEYS})
    )


def _is_tqa(sample: FirstRecords) -> bool:
    return not _LESSON.isdisjoint(sample.fields[:1])


def _has_nuggets(sample: FirstRecords) -> bool:
    return "nuggets" in sample.keys and not sample.keys.isdisjoint({"qid", "query"})


def _is_nuggetizer(sample: FirstRecords) -> bool:
    return _has_nuggets(sample) and sample.keys.isdisjoint(assignments.KEYS)


def _is_assignments(sample: FirstRecords) -> bool:
    return _has_nuggets(sample) and not sample.keys.isdisjoint(assignments.KEYS)


def _is_argue(sample: FirstRecords) -> bool:
    if sample.keys:
        return not sample.keys.isdisjoint(_NUGGET_BANKS)
    return _NUGGET_BANK.match(sample.start) is not None


def _is_trec_nuggets(sample: FirstRecords) -> bool:
    if is_json(sample) or sample.widths("\t") != {4}:
        return False
    words = [columns[2].strip().lower() for columns in sample.columns("\t")]
    return set(words) <= _IMPORTANCES or (len(words) > 1 and set(words[1:]) <= _IMPORTANCES)


def _is_candidates(sample: FirstRecords) -> bool:
    return "candidates" in sample.keys


def _is_responses(sample: FirstRecords) -> bool:
    keys = sample.keys
    if "metadata" in keys and not keys.isdisjoint(_STATEMENTS):
        return keys.isdisjoint({"_id", "id"})
    return not keys.isdisjoint(responses.SYSTEM_KEYS) and _has_responses(keys)


def _has_responses(keys: frozenset[str]) -> bool:
    return not (keys.isdisjoint(responses.QUERY_KEYS) or keys.isdisjoint(responses.STATEMENT_KEYS))


def _may_be_responses(sample: FirstRecords) -> bool:
    """Whether they are responses, or would be if their system were named."""
    keys = sample.keys
    return _is_responses(sample) or (
        _has_responses(keys)
        and keys.isdisjoint(_NO_RESPONSES | _ONLY_PASSAGES | set(questions.KEY_KEYS))
    )


def _is_dictionary(sample: FirstRecords, first_values: str) -> bool:
    """Whether the file is one object of ids to values that start with one of these characters.

    An object with a value of another type, or with names of fields for keys, is a record.
    """
    is_one = not any(line.lstrip().startswith("{") for line in sample.lines[1:])
    if not is_one or sample.first_value not in first_values or _FIELDS & sample.names:
        return False
    starts = {value.lstrip()[:1] for value in sample.values}
    return starts <= set(first_values) and sample.keys.isdisjoint(_KEYS_OF_ROWS)


def _has_tabs(sample: FirstRecords, widths: set[int]) -> bool:
    return (
        not is_json(sample)
        and not _is_plain_bank(sample)
        and sample.widths("\t") <= widths
        and not is_qrels_header(sample.header)
        and not _is_scores(sample)
    )


def _may_be_queries(sample: FirstRecords) -> bool:
    if trec_topics.is_topics(sample.start.encode()):
        return True
    if _is_argue(sample) or _has_nuggets(sample) or _is_responses(sample):
        return False
    if _has_tabs(sample, {2}):
        return not sample.header or queries.is_header(list(sample.header))
    if _is_dictionary(sample, '"'):
        return True
    keys = sample.keys
    if keys in ({"id", "question"}, {"_id", "question"}):
        return True
    # a data set has the same columns for both: its name then decides
    is_document = keys >= {"title", "text"} and keys.isdisjoint(_ONLY_QUERIES)
    is_document = is_document and not _QUERIES_NAME.search(sample.name)
    return not (
        is_document
        or keys.isdisjoint(queries.ID_KEYS)
        or keys.isdisjoint(queries.TEXT_KEYS)
        or keys & (_ONLY_PASSAGES | {"items", "questions", *questions.TEXT_KEYS})
    )


def _may_be_passages(sample: FirstRecords) -> bool:
    if _has_tabs(sample, {2, 3}):
        return not sample.header or passages.is_header(list(sample.header))
    return (
        not sample.keys.isdisjoint(passages.ID_KEYS)
        and not sample.keys.isdisjoint(passages.TEXT_KEYS)
        and sample.keys.isdisjoint(_ONLY_QUERIES)
        and not _is_pool(sample)
    )


def _is_pool(sample: FirstRecords) -> bool:
    return pools.is_pool(sample.keys) and not _is_umbrela(sample)


def _is_ranx(sample: FirstRecords) -> bool:
    is_row = not sample.keys.isdisjoint(_KEYS_OF_ROWS | {"candidates"})
    is_row = is_row or bool(_FIELDS & sample.names)
    return not is_row and _OBJECT_OF_NUMBERS.match(sample.start) is not None


def _is_ranx_qrels(sample: FirstRecords) -> bool:
    # only scores have fractions
    return _is_ranx(sample) and not any(
        set(".eE") & set(one) for one in _NUMBER.findall(sample.start)
    )


def _is_scores(sample: FirstRecords) -> bool:
    """Whether the file is a table of scores of another program; see `score_tables`."""
    if not sample.keys.isdisjoint(score_tables.MEASURE):
        return not sample.keys.isdisjoint(score_tables.VALUE)
    if is_json(sample):
        return "examScore" in sample.keys
    separator = next((mark for mark in "\t," if mark in sample.head), None)
    rows = [row for row in sample.columns(separator) if row]
    if not rows:
        return False
    names = {plain(cell) for cell in rows[0]}
    if not (names.isdisjoint(score_tables.MEASURE) or names.isdisjoint(score_tables.VALUE)):
        return True
    if plain(rows[0][0]) in score_tables.SYSTEM and "+/-" in rows[0]:
        return True
    if sample.widths(separator) not in ({3}, {4}) or _has_iterations(rows):
        return False
    values = [row[-1] for row in rows if row[0].strip() != "runid"]
    is_real = any("." in value for value in values)
    has_all = any(cell.strip() == "all" for row in rows for cell in row[:-1])
    return (is_real or has_all) and all(map(_is_number, values))


def _has_iterations(rows: list[list[str]]) -> bool:
    """Whether the second of four columns is the one of judgments that means nothing."""
    # no other number: `run topic measure value` has topics there
    return all(len(row) == 4 and row[1].strip() in ("0", "Q0") for row in rows)


def _may_be_leaderboard(sample: FirstRecords) -> bool:
    if _is_scores(sample):
        return True
    if is_json(sample):
        return _is_dictionary(sample, "-0123456789")
    separator = next((mark for mark in "\t," if mark in sample.head), None)
    if sample.widths(separator) != {2} or _is_plain_bank(sample):
        return False
    rows = sample.columns(separator)
    return _has_numbers(rows if _has_numbers(rows[:1], 1) else rows[1:], 1)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of file is known: by its lines; between several, by its header, then its name."""

    fits: Callable[[FirstRecords], bool]
    header: re.Pattern[str] = _NEVER
    name: re.Pattern[str] = _NEVER


KINDS: Mapping[str, _Kind] = {
    "workbench": _Kind(_is_workbench),
    "bank": _Kind(_is_bank),
    "plain-bank": _Kind(_is_plain_bank),
    "questions": _Kind(_may_be_questions, name=re.compile("question|nugget|bank")),
    "tqa": _Kind(_is_tqa),
    "nuggetizer": _Kind(_is_nuggetizer),
    "assignments": _Kind(_is_assignments),
    "argue": _Kind(_is_argue),
    "trec-nuggets": _Kind(_is_trec_nuggets, name=re.compile(r"nuggets\.(txt|tsv)$")),
    "responses": _Kind(_may_be_responses, name=re.compile("response|answer|generat|output")),
    "candidates": _Kind(_is_candidates),
    "queries": _Kind(
        _may_be_queries,
        re.compile(r"(query_id|qid|topic_id)\t", re.IGNORECASE),
        _QUERIES_NAME,
    ),
    "passages": _Kind(
        _may_be_passages,
        re.compile(r"(passage_id|paragraph_id|pid|docno|docid)\t", re.IGNORECASE),
        re.compile("passage|paragraph|corpus|collection|segment"),
    ),
    "pool": _Kind(_is_pool),
    "run": _Kind(_is_run, name=re.compile(r"\.run$")),
    "ranx": _Kind(_is_ranx, name=re.compile(r"\brun")),
    "qrels": _Kind(_is_qrels, name=re.compile(r"qrels?$|^qrels?\b")),
    "ranx-qrels": _Kind(_is_ranx_qrels, name=re.compile(r"qrels?")),
    "leaderboard": _Kind(
        _may_be_leaderboard,
        re.compile(r"(system|run|run_?id|method)\t|[^\t]*\t[^\t]*(rank|score)", re.IGNORECASE),
        re.compile("leaderboard|rank"),
    ),
    "umbrela": _Kind(_is_umbrela),
    "decisions": _Kind(_is_decisions),
}


ROLES: Mapping[str, tuple[str, ...]] = {
    "queries": ("queries", "car-topics"),
    "passages": ("passages", "pool", "car-paragraphs"),
    "bank": (
        "bank",
        "plain-bank",
        "questions",
        "tqa",
        "nuggetizer",
        "assignments",
        "argue",
        "trec-nuggets",
    ),
    "runs": ("run", "ranx", "candidates"),
    "qrels": ("qrels", "ranx-qrels"),
    "responses": ("responses",),
}
"""What a person may say of a file, and the kinds that it then is one of; the first by default."""


def _likeliest(sample: FirstRecords, role: str) -> str:
    """The kind of a file of this role whose lines fit none: its reader tells what is wrong."""
    if role == "bank" and not is_json(sample):
        return "plain-bank"
    if role == "bank" and sample.keys and sample.keys.isdisjoint({"items", "questions"}):
        return "questions"
    return ROLES[role][0]


class DetectedKind(NamedTuple):
    """What a file is: a key of `KINDS`, or one of `car.kind_of`.

    `by_name` says that its content fits several kinds, and that its name decided.
    """

    kind: str
    by_name: bool = False


def detect(path: str | Path, role: str | None = None, *, system: bool = False) -> str:
    """The kind of the file; see `tell`."""
    return detect_kind(path, role, system=system).kind


def detect_kind(path: str | Path, role: str | None = None, *, system: bool = False) -> DetectedKind:
    """What the file is, and how that is known.

    `role`, one of `ROLES`, says what it is, and leaves open in which format. A `system` that is
    named means responses, where the file may hold some. InputError where nothing decides, with
    what was found and the kinds that come nearest.
    """
    among = ROLES[role] if role else (*KINDS, "car-topics", "car-paragraphs")
    found_car = None if held(path) else car.kind_of(path)
    if found_car and found_car in among:
        return DetectedKind(found_car)
    sample = sample_of(path)
    fitting = [kind for kind, how in KINDS.items() if kind in among and how.fits(sample)]
    if system and "responses" in fitting:
        return DetectedKind("responses")
    columns = "\t".join((*sample.fields, "")) if held(path) else sample.head
    by_header = [kind for kind in fitting if KINDS[kind].header.match(columns)]
    by_name = [kind for kind in fitting or _TOLD_BY_NAME if KINDS[kind].name.search(sample.name)]
    for found in (fitting, by_header, by_name):
        if len(found) == 1 and found[0] in among:
            return DetectedKind(found[0], found is by_name)
    if role:
        return DetectedKind(_likeliest(sample, role))
    raise _undecided(path, sample, fitting)


_TOLD_BY_NAME = ("run", "qrels")
"""Kinds that a name alone decides, so that the fault in the line can be told."""


def _roles_of(kinds: Sequence[str]) -> list[str]:
    """The options that say that a file is of one of the kinds."""
    return [role for role, of_role in ROLES.items() if set(of_role) & set(kinds)]


def _undecided(path: str | Path, sample: FirstRecords, fitting: Sequence[str]) -> InputError:
    if not fitting:
        own = [] if sample.header or is_json(sample) else own_names(sample.head)
        nearest = nearest_kinds(sample.fields or sample.header or own)
        slips = slips_of_fields(sample.fields or re.split("[\t,;]", sample.head[:_START]))
        what = "that is of no kind that is known" + (f"; nearest: {nearest}" if nearest else "")
        what += f"; {slips}" if slips else ""
        mend = "If it is of one of these kinds, say which, as in --as run: "
        mend += ", ".join((*KINDS, *NEEDS))
        if own:
            mend += f". Columns of other names: --columns query_id={shlex.quote(own[0])}"
        return InputError(f"{sample.found}; {what}", file=path, mend=mend)
    roles = _roles_of(fitting)
    mend = "Say what it is: " + " or ".join(f"--{role} {Path(path).name}" for role in roles)
    if "responses" in fitting:
        mend += ", or name their --system"
    return InputError(f"{sample.found}; that may be {' or '.join(fitting)}", file=path, mend=mend)
