"""Topics of TREC in SGML and XML, as queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.samples import fault, file

from exampp.formats import queries
from exampp.formats.detect import detect
from exampp.formats.read_warnings import collect_warnings

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
    assert [*heard.notes] == [f"{path}: parts of topics that are not read: desc, narr"]


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
        (SGML.replace("Number: 302", "Number: 301"), 12, "query '301' was on line 1 already"),
        (SGML.removesuffix("</top>\n"), 12, "the topic does not end"),
        ("<top>\n<num> Number: 1\n</top>\n", 1, "no text"),
    ],
)
def test_a_fault_names_the_topic(tmp_path: Path, content: str, line: int, said: str) -> None:
    error = fault(queries.read, file(tmp_path, content, "topics"))
    assert error.line == line
    assert said in str(error)
