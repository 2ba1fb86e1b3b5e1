"""Bad system output: one clear line with file, place and fix; the collection as it was."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import car_files, exams
from support.commands import Commands

from exampp.installed import install_command


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def answer(**fields: Any) -> bytes:
    return line(**{"topic_id": "q1", "run_id": "s", "answer": [{"text": "Air."}], **fields})


GOOD = answer()
CUT_CBOR = b"\x83\x63CAR\x81\x02\x80\x9f\x83\x00\x42a1\x81\x82\x00\x63abc\x83\x00\x42a"
CASES: dict[str, tuple[str, bytes, str]] = {
    "empty response": ("f.jsonl", answer(answer=[]), r"f.jsonl:1, answer: the response is empty"),
    "blank response": ("f.jsonl", answer(answer=[{"text": " "}]), r"the response is empty"),
    "no text in a statement": (
        "f.jsonl",
        GOOD + answer(run_id="t", answer=[{"txt": "Air."}]),
        r"f.jsonl:2, answer\[0\].text: a statement has no text",
    ),
    "text of a wrong type": ("f.jsonl", answer(answer=3), r"answer: must be a text or a list"),
    "citations of a wrong type": (
        "f.jsonl",
        answer(answer=[{"text": "Air.", "citations": 1}]),
        r"answer\[0\].citations: must be a list",
    ),
    "references of a wrong type": (
        "f.jsonl",
        answer(references="x"),
        r"references: must be a list",
    ),
    "metadata of a wrong type": (
        "f.jsonl",
        line(metadata=[1], responses=[]),
        r"metadata: must be an object",
    ),
    "no topic": (
        "f.jsonl",
        line(metadata={"run_id": "s"}, responses=["Air."]),
        r"f.jsonl:1, query_id: no id \(any of query_id, topic_id",
    ),
    "no system": (
        "f.jsonl",
        line(metadata={"topic_id": "q1"}, responses=["Air."]),
        r"system: no system .* Name it with --system",
    ),
    "unknown topic": ("f.jsonl", answer(topic_id="q9"), r"query 'q9' is not in the collection"),
    "two responses": ("f.jsonl", GOOD + GOOD, r"f.jsonl:2: .* was already on line 1"),
    "broken line": ("f.jsonl", GOOD + b'{"topic_id": \n', r"f.jsonl:2: broken JSON"),
    "candidate without id": (
        "f.jsonl",
        line(query={"qid": "q1"}, candidates=[{"doc": {"text": "x"}}]),
        r"f.jsonl:1, candidates\[0\]: no id",
    ),
    "candidates of nobody": (
        "f.jsonl",
        line(query={}, candidates=[{"docid": "p1"}]),
        r"query.qid: no query id",
    ),
    "candidate without text": (
        "f.jsonl",
        line(query={"qid": "q1"}, candidates=[{"docid": "p9"}]),
        r"f.jsonl, docid: passage 'p9' is not in the collection",
    ),
    "score that is no number": (
        "f.jsonl",
        line(query={"qid": "q1"}, candidates=[{"docid": "p1", "score": "1"}]),
        r"candidates\[0\].score: is not a finite number",
    ),
    "cut CBOR": ("f.cbor", CUT_CBOR, r"f.cbor: broken CBOR at element 2"),
    "CBOR without an end": (
        "f.cbor",
        CUT_CBOR[:21],
        r"f.cbor: broken CBOR: the file ends after element 1",
    ),
    "no CBOR": ("f.cbor", b"\xff\xff\xff", r"f.cbor: broken CBOR at the start of the file"),
    "CBOR of something else": ("f.cbor", b"\xa1\x01\x02", r"f.cbor: .* is not a TREC CAR"),
    "CAR of an unknown type": ("f.cbor", b"\x83\x63CAR\x81\x07\x80\x9f\xff", r"unknown type of"),
    "a page that is none": (
        "f.cbor",
        b"\x83\x63CAR\x81\x01\x80\x9f\x81\x00\xff",
        r"f.cbor:1: elem",
    ),
    "damaged gzip of CBOR": (
        "f.cbor.gz",
        gzip.compress(CUT_CBOR * 99, mtime=0)[:-20],
        r"f.cbor.gz: the compressed file is truncated",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_one_clear_line(name: str, tmp_path: Path, exampp_command: Commands) -> None:
    filename, content, message = CASES[name]
    with exams.make(tmp_path) as collection:
        path = collection.path
    before = exams.tables(path)
    bad = tmp_path / filename
    bad.write_bytes(content)
    ran = exampp_command("import", path, bad)
    assert ran.code == 2
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith(f"exampp: {bad}"), ran.err
    assert re.search(message, ran.err), ran.err
    assert exams.tables(path) == before


def a_folder(folder: Path, *files: tuple[str, str]) -> None:
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


RUN = ("new.run", "q1 Q0 p9 1 1 new\n")
ARGUMENTS: dict[str, tuple[list[tuple[str, str]], str, str]] = {
    "of nobody": (
        [("texts/q1.txt", "Air.")],
        "HERE/texts",
        r"q1.txt: the response has no system.* --system",
    ),
    "empty text": (
        [("texts/s/q1.txt", "Air."), ("texts/s/q2.txt", "")],
        "HERE/texts",
        r"q2.txt: the file is empty",
    ),
    "no text file": (
        [("texts/s/q1.txt", "Air."), ("texts/s/q2.pdf", "x")],
        "HERE/texts",
        r"q2.pdf: is not a text file. Supported: .*\.txt",
    ),
    "unknown query in a folder": (
        [("texts/s/q9.txt", "Air.")],
        "HERE/texts",
        r"texts, query_id: query 'q9' is not in the collection",
    ),
    "folder of something else": (
        [("texts/a.bin", "x")],
        "HERE/texts",
        r"texts: is a folder, not a file",
    ),
    "unknown dataset": (
        [],
        "irds:no-such-dataset",
        r"irds:no-such-dataset: unknown dataset of ir_datasets",
    ),
    "missing corpus": (
        [RUN],
        "HERE/new.run --corpus HERE/none.jsonl",
        r"none.jsonl: no such file",
    ),
    "corpus without ids": (
        [RUN, ("corpus.jsonl", '{"text": "x"}\n')],
        "HERE/new.run --corpus HERE/corpus.jsonl",
        r"corpus.jsonl:1, passage_id: no id",
    ),
    "broken corpus": (
        [RUN, ("corpus.jsonl", '{"id": "p8", "text": "x"}\n{"id": "p9", "te\n')],
        "HERE/new.run --corpus HERE/corpus.jsonl",
        r"corpus.jsonl:2: broken JSON",
    ),
    "corpus of no files": (
        [RUN, ("corpus/.none", "")],
        "HERE/new.run --corpus HERE/corpus",
        r"corpus: the folder has no corpus files",
    ),
    "outlines as a corpus": (
        [RUN],
        "HERE/new.run --corpus HERE/outlines.cbor",
        r"outlines.cbor: has outlines instead of paragraphs",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_bad_arguments_are_one_clear_line(
    name: str, tmp_path: Path, exampp_command: Commands
) -> None:
    files, arguments, message = ARGUMENTS[name]
    with exams.make(tmp_path) as collection:
        path = collection.path
    a_folder(tmp_path, *files)
    car_files.write(tmp_path / "outlines.cbor", 1, car_files.TOPICS)
    before = exams.tables(path)
    ran = exampp_command("import", path, *arguments.replace("HERE", str(tmp_path)).split())
    assert ran.code == 2
    assert ran.err.count("\n") == 1, ran.err
    assert re.search(message, ran.err), ran.err
    assert exams.tables(path) == before


def test_bad_responses_can_be_skipped(tmp_path: Path, exampp_command: Commands) -> None:
    with exams.make(tmp_path) as collection:
        path = collection.path
    (tmp_path / "f.jsonl").write_bytes(answer(answer=[]) + answer(topic_id="q9") + GOOD + GOOD)
    ran = exampp_command("import", path, tmp_path / "f.jsonl", "--on-error", "skip")
    assert ran.code == 0
    assert "skipped: 3 bad lines\n" in ran.err
    assert "repeated lines skipped" in ran.out
    assert "responses, 1 record\n" in ran.out


def test_what_is_not_installed_is_said(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    outlines = car_files.write(tmp_path / "outlines.cbor", 1, car_files.TOPICS)
    monkeypatch.setitem(sys.modules, "cbor2", None)
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    for given, extra in ((outlines, "car"), ("irds:antique", "datasets")):
        ran = exampp_command("import", tmp_path / "my.exam", given)
        assert ran.code == 2
        assert install_command(extra) in ran.err
