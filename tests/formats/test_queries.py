from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import SPOKEN, TEXTS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import queries
from exampp.formats.detect import detect
from exampp.formats.lines import Skipped
from exampp.formats.read_warnings import collect_warnings
from exampp.records import Query, Subtopic

TWO = [Query("q1", "what is x"), Query("q2", "")]


@pytest.mark.parametrize(
    "content",
    [
        '{"q1": "what is x", "q2": ""}',
        '{\n "q1": "what is x",\n\n "q2":\n""}\n',
        '{"query_id": "q1", "text": "what is x"}\n{"query_id": "q2", "text": ""}\n',
        '{"number": 1, "_id": "q1", "title": "what is x"}\n\n{"qid": "q2", "query": ""}',
        '{"topic_id": "q1", "query_text": "what is x", "id": null}\n{"id": "q2", "text": ""}',
        "q1\twhat is x\nq2\t\n",
        "\ufeffquery_id\ttext\r\nq1\twhat is x\r\n q2 \t\r\n",
        "q1,what is x\nq2,\n",
        'topic,title\nq1,"what is x"\nq2,""\n',
        "Number;Query Text\n\nq1;what is x\n q2 ;\n",
    ],
)
def test_every_layout_gives_the_same_queries(tmp_path: Path, content: str) -> None:
    assert list(queries.read(file(tmp_path, content))) == TWO


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", "topic,text\n1,what is x\n", "queries"),
        ("a.csv", 'number;title\n1;"what; is x"\n', "queries"),
        ("topics.csv", '1,"what, is x"\n2,who\n', "queries"),
        ("topics.csv", "id,text\n1,what is x\n", "queries"),
        ("a.csv", '1,"what, is x"\n2,who\n', None),
        ("a.csv", "id,text\n1,what is x\n", None),
        ("queries.csv", "query_id,question\n1,what is x\n", "plain-bank"),
        ("queries.csv", "1,2\n2,3\n", "leaderboard"),
        ("queries.csv", "1,what, is x\n2,who\n", None),
    ],
)
def test_two_columns_with_a_comma(
    tmp_path: Path, name: str, content: str, kind: str | None
) -> None:
    path = file(tmp_path, content, name)
    if kind is not None:
        assert detect(path) == kind
        return
    with pytest.raises(InputError, match=f"--queries {name}|first line"):
        detect(path)
    if "what, is x" not in content or '"' in content:
        assert next(iter(queries.read(path))).query_id == "1"
    else:
        assert "with the text in quotes" in fault(queries.read, path).hint


def test_ids_that_are_numbers_are_taken_as_written(tmp_path: Path) -> None:
    rows = '{"query_id": 12345678901234567890123, "text": "a"}\n{"query_id": 1.50, "text": "b"}'
    assert [query.query_id for query in queries.read(file(tmp_path, rows))] == [
        "12345678901234567890123",
        "1.50",
    ]


def test_subtopics(tmp_path: Path) -> None:
    row = {
        "query_id": "q",
        "text": "t",
        "subtopics": [
            {"subtopic_id": "a", "text": "x"},
            {"facet_id": 2},
            {"id": "c", "title": "z"},
        ],
    }
    assert list(queries.read(file(tmp_path, json.dumps(row)))) == [
        Query("q", "t", (Subtopic("a", "x"), Subtopic("2"), Subtopic("c", "z")))
    ]


BAD_ROWS = [
    (
        '{"query_id": "q1"}',
        "text",
        "no text (any of text, query, query_text, title, narrative, question, prompt)",
    ),
    (
        '{"text": "x"}',
        "query_id",
        "no id (any of query_id, qid, topic_id, narrative_id, request_id, _id, id)",
    ),
    ('{"query_id": "  ", "text": "x"}', "query_id", "the id is blank"),
    ('{"query_id": true, "text": "x"}', "query_id", "must be a string"),
    ('{"query_id": ["q"], "text": "x"}', "query_id", "must be a string"),
    ('{"query_id": "q1", "text": 7}', "text", "must be a string"),
    ('{"query_id": "q1", "text": "x', "", "broken JSON (Input data was truncated)"),
    ('["q1", "x"]', "", "Expected `object`, got `array`"),
    ('{"query_id": "q0", "text": "x"}', "query_id", "query 'q0' was already on line 1"),
    ('{"query_id": "q1", "text": "", "subtopics": {}}', "subtopics", "must be a list of objects"),
    (
        '{"query_id": "q1", "text": "", "subtopics": [{"text": "x"}]}',
        "subtopics[0].subtopic_id",
        "no id (any of subtopic_id, facet_id, id)",
    ),
    (
        '{"query_id": "q1", "text": "", "subtopics": [{"id": "a"}, {"id": "a"}]}',
        "subtopics[1]",
        "subtopic 'a' occurs twice",
    ),
]


@pytest.mark.parametrize(("row", "field", "what"), BAD_ROWS)
def test_bad_json_lines(tmp_path: Path, row: str, field: str, what: str) -> None:
    around = '{"query_id": "q0", "text": "x"}\n%s\n{"query_id": "q9", "text": "y"}\n'
    path = file(tmp_path, around % row)
    error = fault(queries.read, path)
    assert (error.line, error.field, error.what) == (2, field, what)
    skipped = Skipped()
    assert [query.query_id for query in queries.read(path, skipped)] == ["q0", "q9"]
    assert skipped.count == 1


@pytest.mark.parametrize(
    "first",
    [b'{"query_id": "q1", "text": "x', b'{"text": "x"}', b'{"query_id": "q1", "text\xff": ""}'],
)
def test_a_bad_first_line_does_not_turn_rows_into_a_dictionary(
    tmp_path: Path, first: bytes
) -> None:
    path = file(tmp_path, first + b'\n{"query_id": "q2", "text": "y"}\n')
    skipped = Skipped()
    assert list(queries.read(path, skipped)) == [Query("q2", "y")]
    assert [error.line for error in skipped.first] == [1]


@pytest.mark.parametrize(
    ("content", "line", "field", "what"),
    [
        (
            '{"q1": "a",\n "q2": "b",\n "q1": "a"}',
            3,
            "query_id",
            "query 'q1' was already on line 1",
        ),
        ('{"q1": "a", "q1": "b"}', 1, "query_id", "query 'q1' was already on this line"),
        ('{"q1": "a",\n "q2": null}', 2, "q2", "the query text must be a string"),
        ('{"q1": "a",\n "q2": {"text": "b"}}', 2, "q2", "the query text must be a string"),
        ('{"q1": "a",\n " ": "b"}', 2, "", "the query id is blank"),
        ('{"q1": "a"\n', 2, "", "broken JSON (expected '}')"),
        ('["q1", "a"]', 1, "", "broken JSON (expected '{')"),
        (
            '{\n"query_id": "q1",\n"text": "x"}',
            2,
            "query_id",
            "a query spans several lines",
        ),
    ],
)
def test_bad_dictionaries(tmp_path: Path, content: str, line: int, field: str, what: str) -> None:
    error = fault(queries.read, file(tmp_path, content))
    assert (error.line, error.field, error.what) == (line, field, what)


def test_a_bad_entry_of_a_dictionary_can_be_skipped(tmp_path: Path) -> None:
    skipped = Skipped()
    path = file(tmp_path, '{"q1": "a",\n"q2": 2,\n"q1": "c",\n"q3": "d"}')
    assert list(queries.read(path, skipped)) == [Query("q1", "a"), Query("q3", "d")]
    assert [error.line for error in skipped.first] == [2, 3]


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        ("q2 what", "", "1 column instead of 2 (id, text)"),
        ("q2\twhat\tis", "", "3 columns instead of 2 (id, text)"),
        (" \twhat", "column 1", "the query id is blank"),
        (b"q2\tcaf\xe9", "", "not UTF-8 text (byte 7 of the line)"),
        ("q1\twhat", "query_id", "query 'q1' was already on line 1"),
        ("query_id\ttext\textra", "", "3 columns instead of 2 (id, text)"),
    ],
)
def test_bad_columns(tmp_path: Path, line: str | bytes, field: str, what: str) -> None:
    data = line.encode() if isinstance(line, str) else line
    path = file(tmp_path, b"q1\ta\n\n" + data + b"\nq3\tb")
    error = fault(queries.read, path)
    assert (error.line, error.field, error.what) == (3, field, what)
    assert [query.query_id for query in queries.read(path, Skipped())] == ["q1", "q3"]


def _is_query_id(key: str) -> bool:
    return key not in queries.ID_KEYS and not queries.names_a_result(key)


@in_one_folder
@given(st.dictionaries(SPOKEN.filter(_is_query_id), TEXTS, min_size=2))
def test_any_dictionary_that_json_can_say(tmp_path: Path, texts: dict[str, str]) -> None:
    for options in ({"indent": 1}, {"ensure_ascii": False}):
        path = file(tmp_path, json.dumps(texts, **options))
        if not set(texts) & set(queries.TEXT_KEYS):
            assert {query.query_id: query.text for query in queries.read(path)} == texts


def test_real_queries(shared_data: Path) -> None:
    path = shared_data / "dl19" / "queries.json"
    found = list(queries.read(path))
    assert {query.query_id: query.text for query in found} == json.loads(path.read_bytes())
    assert (len(found), found[0]) == (43, Query("1115776", "what is an aml surveillance analyst"))


def test_a_dictionary_is_written_as_one(tmp_path: Path) -> None:
    found = [Query("q1", "why is\tthe sky blue"), Query("2", "")]
    queries.write(tmp_path / "q.json", found)
    assert json.loads((tmp_path / "q.json").read_text()) == {"q1": "why is\tthe sky blue", "2": ""}
    assert list(queries.read(tmp_path / "q.json")) == found
    # what a dictionary cannot hold is not left out
    with pytest.raises(InputError, match=r"'q3' has subtopics.*\.jsonl"):
        queries.write(tmp_path / "s.json", [Query("q3", "x", (Subtopic("s", "t"),))])
    assert not (tmp_path / "s.json").exists()


# ---- trec topics ---------------------------------------------------------------------------------


SGML = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in it.

<narr> Narrative:
A relevant document names one.
</top>

<top>
<num> Number: 302 </num>
<title> Topic: Poliomyelitis &amp; Post-Polio
</title>
</top>
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- topics -->
<topics task="covid">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of COVID-19</question>
  </topic>
  <topic number="2" type="diagnosis">
    <description>A 26-year-old
      woman.</description>
  </topic>
</topics>
"""


@pytest.mark.parametrize("name", ["topics.301-350", "f"])
def test_sgml(tmp_path: Path, name: str) -> None:
    path = file(tmp_path, SGML, name)
    assert detect(path) == "queries"
    with collect_warnings() as heard:
        found = {one.query_id: one.text for one in queries.read(path)}
    assert found == {
        "301": "International Organized Crime",
        "302": "Poliomyelitis & Post-Polio",
    }
    assert [*heard.notes] == [f"{path}: parts of topics not read: desc, narr"]


@pytest.mark.parametrize("content", [XML, "\ufeff" + XML, XML.replace("\n", "\r\n")])
def test_xml(tmp_path: Path, content: str) -> None:
    path = file(tmp_path, content, "topics.xml")
    assert detect(path) == "queries"
    found = {one.query_id: one.text for one in queries.read(path)}
    assert found == {"1": "coronavirus origin", "2": "A 26-year-old woman."}


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (SGML.replace("<num> Number: 302 </num>\n", ""), 12, "no number"),
        (SGML.replace("Number: 302", "Number: 301"), 12, "query '301' was already on line 1"),
        (SGML.removesuffix("</top>\n"), 12, "the topic does not end"),
        ("<top>\n<num> Number: 1\n</top>\n", 1, "no text"),
    ],
)
def test_a_fault_names_the_topic(tmp_path: Path, content: str, line: int, said: str) -> None:
    error = fault(queries.read, file(tmp_path, content, "topics"))
    assert error.line == line
    assert said in str(error)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            "|user|: Hi\n|agent|: Hello\nyou\n|user|: Why?",
            "user: Hi\nassistant: Hello\nyou\nuser: Why?",
        ),
        ("|user|: Why?", "Why?"),
        ("Why |user|: so?", "Why |user|: so?"),
    ],
)
def test_turns_between_bars_are_a_transcript(tmp_path: Path, written: str, read: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps({"_id": "1", "text": written}))
    assert [one.text for one in queries.read(path)] == [read]


@pytest.mark.parametrize(
    "history",
    [
        [["Hi", "Hello"]],
        [{"human": "Hi", "ai": "Hello"}],
        [{"question": "Hi", "answer": "Hello"}],
        "user: Hi\nassistant: Hello\n",
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    ],
)
def test_layouts_of_a_history(tmp_path: Path, history: object) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps({"query_id": "1", "text": "Why?", "history": history}))
    assert [one.text for one in queries.read(path)] == ["user: Hi\nassistant: Hello\nuser: Why?"]
