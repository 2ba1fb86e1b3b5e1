"""Files of every format are read back as they were written, compressed or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import COMPRESSIONS, IDS, SPOKEN, TEXTS, WORDS, in_one_folder

from exampp.formats import argue, bank, nuggets, passages, plain_bank, queries, trec
from exampp.records import BankEntry, Item, Judgment, Passage, Query, RankedPassage, item_id
from exampp.records import Subtopic as Sub

EXTRA = st.dictionaries(
    TEXTS.filter(lambda key: key not in {"passage_id", "text", "title"}),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS | st.lists(TEXTS),
    max_size=3,
)
PADLESS = SPOKEN.map(str.strip).filter(bool)
MODELS: st.SearchStrategy[Any] = PADLESS | st.lists(PADLESS, min_size=2, max_size=3, unique=True)
WEIGHTS = st.just(1.0) | st.floats(0, 1e9) | st.integers(0, 10**6).map(float)
MADE: st.SearchStrategy[Any] = st.just({}) | st.fixed_dictionaries({"model": MODELS})
TABLE_EXTRA = st.tuples(WEIGHTS, MADE)
VITAL_OR_OKAY = st.sampled_from([(1.0, {"importance": "vital"}), (0.5, {"importance": "okay"})])


@st.composite
def banks(draw: st.DrawFn, as_table: bool) -> list[BankEntry]:
    """Draw a bank as a table holds it, or as nuggetizer's files do."""
    ids, answers = (PADLESS, PADLESS) if as_table else (WORDS, TEXTS)
    made: list[BankEntry] = []
    for query_id in draw(st.lists(ids, min_size=1, max_size=3, unique=True)):
        query_text = draw(TEXTS)
        subtopic_ids = draw(st.lists(st.none() | ids, min_size=1, max_size=3, unique=True))
        for place, subtopic_id in enumerate(subtopic_ids):
            items: list[Item] = []
            for text in draw(st.lists(SPOKEN, min_size=1, max_size=3, unique_by=str.strip)):
                own = f"{place} {len(items)} {draw(ids)}"
                name = draw(st.sampled_from([own, item_id(query_id, text, subtopic_id)]))
                kind = draw(st.sampled_from(["question", "nugget"]))
                weight, extra = draw(TABLE_EXTRA if as_table else VITAL_OR_OKAY)
                keys = tuple(draw(st.lists(answers, max_size=2)))
                items.append(Item(name, query_id, text, kind, subtopic_id, keys, weight, extra))
            of_subtopic = draw(TEXTS) if as_table and subtopic_id is not None else ""
            made.append(BankEntry(query_id, tuple(items), query_text, subtopic_id, of_subtopic))
    return made


class Case(NamedTuple):
    write: Callable[..., None]
    read: Callable[..., Any]
    records: st.SearchStrategy[list[Any]]


SUBTOPICS = st.lists(st.builds(Sub, SPOKEN, TEXTS), max_size=2, unique_by=attrgetter("subtopic_id"))
RANKED = st.builds(RankedPassage, IDS, IDS, st.integers(-9, 9999), st.floats(-1e9, 1e9), IDS)
JUDGED = st.builds(Judgment, IDS, IDS, st.integers(-9, 9), IDS)
CASES = {
    "passages.jsonl": Case(
        passages.write,
        passages.read,
        st.lists(
            st.builds(Passage, SPOKEN, SPOKEN, TEXTS, EXTRA),
            min_size=1,
            unique_by=lambda one: one.passage_id,
        ),
    ),
    "queries.jsonl": Case(
        queries.write,
        queries.read,
        st.lists(
            st.builds(Query, SPOKEN, TEXTS, SUBTOPICS.map(tuple)),
            min_size=1,
            unique_by=lambda one: one.query_id,
        ),
    ),
    "a.run": Case(
        trec.write_run,
        trec.read_run,
        st.lists(RANKED, min_size=1, unique_by=attrgetter("query_id", "passage_id", "system")),
    ),
    "a.qrels": Case(
        trec.write_qrels,
        partial(trec.read_qrels, subtopics=True),
        st.lists(
            JUDGED,
            min_size=1,
            unique_by=attrgetter("query_id", "subtopic_id", "passage_id"),
        ),
    ),
    "n.jsonl": Case(nuggets.write_nuggetizer, nuggets.read_nuggetizer, banks(False)),
    "b.csv": Case(plain_bank.write, plain_bank.read, banks(True)),
    "b.tsv": Case(plain_bank.write, plain_bank.read, banks(True)),
}


@pytest.mark.parametrize("name", CASES)
@in_one_folder
@given(data=st.data())
def test_what_is_written_reads_back(tmp_path: Path, name: str, data: st.DataObject) -> None:
    case = CASES[name]
    found = data.draw(case.records)
    path = tmp_path / f"{name}{data.draw(st.sampled_from(['', *COMPRESSIONS]))}"
    case.write(path, found)
    assert list(case.read(path)) == found


@pytest.mark.parametrize("real", ["dl19/questions", "dl19/nuggets", "car-y3/nuggets"])
@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("b.csv", plain_bank.write, plain_bank.read),
        ("q.jsonl", plain_bank.write_item_lines, plain_bank.read_item_lines),
        ("n.jsonl", nuggets.write_nuggetizer, nuggets.read_nuggetizer),
        ("a.jsonl", argue.write, argue.read),
        ("w.jsonl", bank.write, bank.read),
    ],
)
def test_real_banks_round_trip(
    tmp_path: Path, shared_data: Path, real: str, name: str, write: Any, read: Any
) -> None:
    found = list(bank.read(shared_data / f"{real}.jsonl.gz"))
    write(tmp_path / name, found)
    plain = [
        {item.item_id: replace(item, extra={}) for entry in entries for item in entry.items}
        for entries in (found, read(tmp_path / name))
    ]
    assert plain[0] == plain[1]
