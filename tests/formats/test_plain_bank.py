from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.samples import fault, file

from exampp.errors import InputError
from exampp.formats import plain_bank
from exampp.formats.detect import detect
from exampp.formats.fields import bank_separator
from exampp.formats.lines import Skipped, read_text
from exampp.formats.read_warnings import collect_warnings
from exampp.records import BankEntry, Item, item_id


def question(query_id: str, text: str, subtopic_id: str | None = None, /, **more: Any) -> Item:
    name = item_id(query_id, text.encode("utf-8", "replace").decode(), subtopic_id)
    made = Item(name, query_id, text, subtopic_id=subtopic_id)
    return replace(made, **more)


SMALL = [
    BankEntry("q1", (question("q1", "What?"), question("q1", "Why, then?"))),
    BankEntry("q2", (question("q2", "Who?"),)),
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", 'query_id,question\nq1,What?\nq2,Who?\nq1,"Why, then?"\n'),
        ("b.csv", "\ufeffQuery_ID;Question\r\n\r\n q1 ;What?\r\nq1;Why, then?\r\nq2;Who?\r\n"),
        ("b.tsv", "qid\tquestion\tweight\nq1\tWhat?\t\nq1\tWhy, then?\t1\nq2\tWho?\t1.0"),
        (
            "b.txt",
            "text\tkind\tqid\nWhat?\tQuestion\tq1\nWhy, then?\tquestion\tq1\nWho?\tquestion\tq2",
        ),
    ],
)
def test_every_layout_gives_the_same_entries(tmp_path: Path, name: str, content: str) -> None:
    assert list(plain_bank.read(file(tmp_path, content, name))) == SMALL


TIDES = ("q1", "What is a tide?"), ("q1", "Who maps tides?")
NAMED_IN_OTHER_WAYS = {
    "query_id,text,answers": "rise; fall",
    "qid,item,gold": '"[""rise"", ""fall""]"',
    "topic,question,gold_answers": "rise;fall",
    "Topic ID,Question Text,Correct Answer": "rise | fall",
    "query_id,item_text,answer_key": "\"['rise', 'fall']\"",
    "queryId,nugget,answer": "rise|fall",
}


@pytest.mark.parametrize("mark", [",", "\t"])
@pytest.mark.parametrize("header", NAMED_IN_OTHER_WAYS)
def test_names_and_answers_as_others_write_them(tmp_path: Path, header: str, mark: str) -> None:
    answers = NAMED_IN_OTHER_WAYS[header], "NOAA"
    rows = [mark.join((*one, answer)) for one, answer in zip(TIDES, answers, strict=True)]
    path = file(tmp_path, "\n".join((header.replace(",", mark), *rows)), "b.csv")
    assert detect(path) == "plain-bank"
    with collect_warnings() as warnings:
        (entry,) = plain_bank.read(path)
    assert [(one.query_id, one.text) for one in entry.items] == [*TIDES]
    assert [one.answers for one in entry.items] == [("rise", "fall"), ("NOAA",)]
    kind = "nugget" if "nugget" in header else "question"
    assert {one.kind for one in entry.items} == {kind}
    has_kind = "uestion" in header or "nugget" in header
    assert any("its items are read as questions" in one for one in warnings.notes) != has_kind
    said = any("line 2" in one or ":2" in one for one in warnings.notes)
    assert said == ("; " in answers[0] or ";" in answers[0])


def test_a_header_without_items_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "query_id,question\n\n", "b.csv")
    with pytest.raises(InputError, match=r"b\.csv: the table has no rows below its header"):
        list(plain_bank.read(path))


def test_a_semicolon_in_a_single_answer_is_text_and_is_reported(tmp_path: Path) -> None:
    path = file(tmp_path, "query_id,question,answer\nq1,What?,It melts; it flows\n", "b.csv")
    with collect_warnings() as warnings:
        (entry,) = plain_bank.read(path)
    assert entry.items[0].answers == ("It melts; it flows",)
    (note,) = warnings.notes
    assert "semicolons are part of an answer in the column answer" in note


@pytest.mark.parametrize(
    ("texts", "kind"),
    [(["What is a?", "Why b?", "C is d"], "question"), (["A is b", "C is d?"], "nugget")],
)
def test_items_without_a_kind_are_what_most_of_them_look_like(
    tmp_path: Path, texts: list[str], kind: str
) -> None:
    content = "query_id,item\n" + "".join(f"q1,{text}\n" for text in texts)
    (entry,) = plain_bank.read(file(tmp_path, content, "b.csv"))
    assert {one.kind for one in entry.items} == {kind}


@pytest.mark.parametrize(
    "header",
    [
        *("query_id,text", "query_id,passage_id,text,answers", "query,text,answer"),
        "assessor,query_id,item,label",
    ],
)
def test_other_tables_are_no_banks(header: str) -> None:
    assert bank_separator(header) is None


FULL = [
    BankEntry(
        "q",
        (
            question("q", "x", answers=("a", "b|c"), weight=2.5),
            Item("my id", "q", "y", "nugget"),
        ),
        "query",
    ),
    BankEntry("q", (question("q", "z", "f"),), "query", "f", "subtopic"),
]
FULL_CSV = """\
query_id,query_text,subtopic_id,subtopic_text,question,nugget,item_id,answer,weight
q,query,,,x,,,a | b\\|c,2.5
q,query,,,,y,my id,,
q,query,f,subtopic,z,,,,
"""


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    plain_bank.write(path, FULL)
    assert read_text(path) == FULL_CSV
    assert list(plain_bank.read(path)) == FULL


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", "query_id,question,generator\nq,x,gpt-4o\nq,y,a | b\nq,z,\n"),
        ("b.tsv", "query_id\tquestion\tGenerated By\nq\tx\tgpt-4o\nq\ty\ta|b\nq\tz\t \n"),
    ],
)
def test_who_made_an_item(tmp_path: Path, name: str, content: str) -> None:
    (entry,) = plain_bank.read(file(tmp_path, content, name))
    assert [item.extra for item in entry.items] == [{"model": "gpt-4o"}, {"model": ["a", "b"]}, {}]
    plain_bank.write(tmp_path / f"again-{name}", [entry])
    assert list(plain_bank.read(tmp_path / f"again-{name}")) == [entry]
    slip = content
    for word in ("generator", "Generated By"):
        slip = slip.replace(word, "modell")
    assert "`modell` may mean `model`" in fault(plain_bank.read, file(tmp_path, slip, name)).hint


def test_what_another_kind_of_bank_says_of_the_maker_is_a_column(tmp_path: Path) -> None:
    items = (
        Item("a", "q", "x", extra={"generated": {"model": "own", "prompt": "p"}}),
        Item("b", "q", "y", extra={"hash": 1}),
        Item("c", "q", "z", extra={"model": ""}),
    )
    line = BankEntry("q", items, extra={"info": {"gpt_model": "of the line"}})
    plain_bank.write(tmp_path / "b.csv", [line])
    (entry,) = plain_bank.read(tmp_path / "b.csv")
    assert [item.extra.get("model") for item in entry.items] == ["own", "of the line", None]


def test_cells_may_hold_line_breaks_and_quotes(tmp_path: Path) -> None:
    content = 'query_id,question,answer\nq,"a\n\n""b"", c",|x||y|\nq,d,\n'
    path = file(tmp_path, content, "b.csv")
    (entry,) = plain_bank.read(path)
    assert [item.text for item in entry.items] == ['a\n\n"b", c', "d"]
    assert [item.answers for item in entry.items] == [("x", "y"), ()]
    error = fault(plain_bank.read, file(tmp_path, content + "q,,z\n", "b.csv"))
    assert (error.line, error.field, error.what) == (6, "question", "the item has no text")


HEAD = "query_id,question,nugget,subtopic_id,item_id,answer,weight,query_text\nq,x,,,1,,,Q\n"


@pytest.mark.parametrize(
    ("row", "field", "what"),
    [
        (",y,,,,,,", "query_id", "the item has no query id"),
        ("q, ,,,2,,,", "question", "the item has no text"),
        ("q,y,z,,,,,", "nugget", "the item has both a question and a nugget"),
        ("q,y,,,,,-1e10,", "weight", "the weight -1e+10 is not between -1e+09 and 1e+09"),
        ("q,y,,,,,nan,", "weight", "'nan' is not a finite number"),
        ("q,y,,,,,heavy,", "weight", "'heavy' is not a finite number"),
        ("q,y,,,1,,,", "", "item '1' was already on line 2"),
        ("q,y,,,,,,R", "query_text", "differs from the one on line 2"),
        ("q,What, exactly,,,,,,", "", "9 cells, but the header has 8"),
        ("q", "", "1 cell, but the header has 8"),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, field: str, what: str) -> None:
    path = file(tmp_path, f"{HEAD}\n{row}\nq,ok,,,,,,\n", "b.csv")
    error = fault(plain_bank.read, path)
    assert (error.line, error.field, error.what) == (4, field, what)
    skipped = Skipped()
    (entry,) = plain_bank.read(path, skipped)
    assert [item.text for item in entry.items] == ["x", "ok"]
    assert [str(one) for one in skipped.first] == [str(error)]


def test_an_item_without_text_names_its_own_column(tmp_path: Path) -> None:
    error = fault(plain_bank.read, file(tmp_path, "query_id,item\nq,\n", "b.csv"))
    assert (error.line, error.field, error.what) == (2, "item", "the item has no text")


def test_the_same_text_twice_is_the_same_item_twice(tmp_path: Path) -> None:
    path = file(tmp_path, "query_id,question\nq,x\nq,y\nr,x\nq, x\n", "b.csv")
    error = fault(plain_bank.read, path)
    assert (error.line, error.what) == (5, f"item {item_id('q', 'x')!r} was already on line 2")


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (
            "query_id,weight\nq,1\n",
            1,
            "the header has no columns query_id and question, nugget or item",
        ),
        (
            "q,What?\n",
            1,
            "the header has no columns query_id and question, nugget or item",
        ),
        ("query_id,question,anwser\nq,x,y\n", 1, "unknown column 'anwser'"),
        ("query_id,question,\nq,x,y\n", 1, "unknown column ''"),
        ("\nquery_id,question,qid\nq,x,y\n", 2, "duplicate column 'qid'"),
        (
            "query_id,text\nq,x\n",
            1,
            "the header has no columns query_id and question, nugget or item",
        ),
        ("query_id,text,kind\nq,x,fact\n", 2, "the kind of a text cannot be 'fact'"),
        ("query_id,text,item,kind\nq,x,y,nugget\n", 2, "the item has both a text and an item"),
        ("query_id,text,kind\nq,x,\n", 2, "the kind of a text cannot be ''"),
        ("query_id,question,kind\nq,x,nugget\n", 2, "the kind of a question cannot be 'nugget'"),
        ('query_id,question\nq,x\nq,"a "b" c"\n', 3, "broken CSV (',' expected after '\"')"),
        ('query_id,question\nq,"x\ny\nz\n', 2, "broken CSV (unexpected end of data)"),
        (b"query_id,question\nq,x\nq,\xe9\n", 3, "not UTF-8 text (byte 3 of the line)"),
        (
            f"query_id,question\nq,{'x' * 200_000}\n",
            2,
            "broken CSV (field larger than field limit (131072))",
        ),
    ],
)
def test_bad_tables(tmp_path: Path, content: str | bytes, line: int, what: str) -> None:
    error = fault(plain_bank.read, file(tmp_path, content, "b.csv"))
    assert (error.line, error.what) == (line, what)


MISREAD = ["a: b", "a #b", "a:b", "a ", "\u2028", "\x85", "\x07", "\U0001f600", "a\r\nb", "\ufeff"]
SIGNS = "null ~ yes 1 #a &a *a ' \" \\ ? | - --- ... = << ! % @ ` , [ ] { } > :"


@pytest.mark.parametrize("text", [*MISREAD, *SIGNS.split()])
@pytest.mark.parametrize("name", ["b.csv", "b.tsv"])
def test_texts_that_files_could_misread(tmp_path: Path, name: str, text: str) -> None:
    entry = BankEntry("q", (question("q", text),), text)
    path = tmp_path / name
    if not text.strip():
        with pytest.raises(InputError, match="has no text"):
            plain_bank.write(path, [entry])
        return
    plain_bank.write(path, [entry])
    assert list(plain_bank.read(path)) == [entry]


def one(*items: Item) -> list[BankEntry]:
    return [BankEntry("q", items)]


BACK = "without loss"


@pytest.mark.parametrize(
    ("name", "found", "what"),
    [
        ("b.json", SMALL, "the file name must end in .csv or .tsv"),
        ("b.csv", one(), "query 'q' has no items; a table cannot express that"),
        ("b.csv", one(question("r", "x")), BACK),
        ("b.csv", one(question("q", "x", "f")), BACK),
        ("b.csv", SMALL + SMALL, f"query 'q1' {BACK}: item"),
        ("b.csv", one(*2 * [question("q", "x")]), f"{BACK}: item"),
        ("b.csv", one(question("q", "x", answers=(" a",))), BACK),
        ("b.csv", one(question("q", "x", item_id=" a")), BACK),
        ("b.csv", one(question("q", "x", kind="query")), BACK),
        ("b.csv", one(question("q", "\ud800")), "has half of a surrogate pair"),
    ],
)
def test_what_would_not_read_back_is_not_written(
    tmp_path: Path, name: str, found: list[BankEntry], what: str
) -> None:
    path = tmp_path / name
    with pytest.raises(InputError) as caught:
        plain_bank.write(path, found)
    assert what in caught.value.what
    assert caught.value.file == str(path)
    assert not path.exists()
