from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import COMPRESSIONS, SPOKEN, TEXTS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats import bank, plain_bank
from exampp.formats.lines import Skipped, read_text
from exampp.records import BankEntry, Item, item_id


def question(query_id: str, text: str, facet_id: str | None = None, /, **more: object) -> Item:
    name = item_id(query_id, text.encode("utf-8", "replace").decode(), facet_id)
    made = Item(name, query_id, text, facet_id=facet_id)
    return replace(made, **more)  # type: ignore[arg-type]


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
        ("b.yaml", "q1: [What?, 'Why, then?']\nq2:\n- Who?\n"),
        ("b.yml", "q1:\r\n- What?\r\n- question: Why, then?\r\nq2:\r\n  items:\r\n  - Who?\r\n"),
        ("b.txt", '{"q1": ["What?", {"text": "Why, then?"}], "q2": {"questions": ["Who?"]}}'),
    ],
)
def test_every_layout_gives_the_same_entries(tmp_path: Path, name: str, content: str) -> None:
    assert list(plain_bank.read(file(tmp_path, content, name))) == SMALL


FULL = [
    BankEntry(
        "q",
        (
            question("q", "x", answers=("a", "b|c"), weight=2.5),
            Item("my id", "q", "y", "nugget"),
        ),
        "query",
    ),
    BankEntry("q", (question("q", "z", "f"),), "query", "f", "facet"),
]
FULL_CSV = """\
query_id,query_text,subtopic_id,subtopic_text,question,nugget,item_id,answer,weight
q,query,,,x,,,a | b\\|c,2.5
q,query,,,,y,my id,,
q,query,f,facet,z,,,,
"""
FULL_YAML = """\
q:
  query: query
  subtopics:
    f:
      text: facet
  items:
  - question: x
    weight: 2.5
    answers:
    - a
    - "b|c"
  - nugget: "y"
    item_id: my id
  - subtopic_id: f
    question: z
"""


@pytest.mark.parametrize(("name", "content"), [("b.csv", FULL_CSV), ("b.yaml", FULL_YAML)])
def test_everything_that_can_be_said(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    plain_bank.write(path, FULL)
    assert read_text(path) == content
    assert list(plain_bank.read(path)) == FULL


def test_yaml_as_people_write_it(tmp_path: Path) -> None:
    content = """\
# numbers, dates and booleans are the text that they look like
007:
  query_text: no
  subtopics: {a: first, b: {text: second, query: other}}
  nuggets:
  - 2024-01-01
  - {text: 1e3, answer: yes, subtopic: a, weight: 0}
  questions:
  - {nugget: n, answers: [~, 1, 'null'], facet: b, id: i}
"""
    nugget = replace(question("007", "2024-01-01"), kind="nugget")
    in_a = replace(question("007", "1e3", "a"), kind="nugget", answers=("yes",), weight=0.0)
    in_b = Item("i", "007", "n", "nugget", "b", ("1", "null"))
    assert list(plain_bank.read(file(tmp_path, content, "b.yaml"))) == [
        BankEntry("007", (nugget,), "no"),
        BankEntry("007", (in_a,), "no", "a", "first"),
        BankEntry("007", (in_b,), "other", "b", "second"),
    ]


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
        ("q,y,,,,,-1,", "weight", "the weight -1 is not between 0 and 1e+09"),
        ("q,y,,,,,nan,", "weight", "'nan' is not a finite number"),
        ("q,y,,,,,heavy,", "weight", "'heavy' is not a finite number"),
        ("q,y,,,1,,,", "", "item '1' was on line 2 already"),
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


def test_the_same_text_twice_is_the_same_item_twice(tmp_path: Path) -> None:
    path = file(tmp_path, "query_id,question\nq,x\nq,y\nr,x\nq, x\n", "b.csv")
    error = fault(plain_bank.read, path)
    assert (error.line, error.what) == (5, f"item {item_id('q', 'x')!r} was on line 2 already")


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (
            "query_id,weight\nq,1\n",
            1,
            "the first line does not name the columns query_id and question or nugget",
        ),
        (
            "q,What?\n",
            1,
            "the first line does not name the columns query_id and question or nugget",
        ),
        ("query_id,question,anwser\nq,x,y\n", 1, "the column 'anwser' is unknown"),
        ("query_id,question,\nq,x,y\n", 1, "the column '' is unknown"),
        ("\nquery_id,question,qid\nq,x,y\n", 2, "the column 'qid' is there twice"),
        (
            "query_id,text\nq,x\n",
            1,
            "the first line does not name the columns query_id and question or nugget",
        ),
        ("query_id,text,kind\nq,x,fact\n", 2, "the kind of a text cannot be 'fact'"),
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


ITEM_KEYS = (
    "Known keys are answer, answers, facet, facet_id, facet_text, gold_answers, id, importance, "
    "item_id, kind, nugget, nugget_id, nugget_text, question, question_id, question_text, "
    "subtopic, subtopic_id, subtopic_text, text, weight"
)


@pytest.mark.parametrize(
    ("content", "line", "field", "what"),
    [
        ("- x\n- y\n", 1, "", "must map query ids to lists of items"),
        ("q: [x]\nr: What?\n", 2, "r", "must be a list of items, or a mapping with `items`"),
        ("q: [x]\nr:\n", 2, "r", "must be a list of items, or a mapping with `items`"),
        ("q: [x]\nr: []\n", 2, "r.items", "must be a list of items"),
        ("q: [x]\nr:\n  items: {a: b}\n", 3, "r.items", "must be a list of items"),
        ("q: [x]\nr:\n  query: Q\n", 3, "r", "no `items`"),
        ("q: [x]\nr:\n  itms: [y]\n", 3, "r", "unknown key 'itms'"),
        ("q: [x]\nr:\n  items: [y]\n  query: [a]\n", 4, "query", "must be a text"),
        ("q: [x]\nr:\n  items: [y]\n  subtopics: [a]\n", 4, "subtopics", "must map ids to texts"),
        (
            "q: [x]\nr:\n  items: [y]\n  subtopics:\n    a: {title: b}\n",
            5,
            "subtopics.a",
            "holds more than `text` and `query`",
        ),
        ("q:\n- x\n-\n", 3, "question", "the item has no text"),
        ("q:\n- x\n- '  '\n", 3, "question", "the item has no text"),
        ("q:\n- x\n- [y]\n", 3, "", "an item must be a text or a mapping"),
        (
            "q:\n- x\n- question: y\n  wieght: 2\n",
            4,
            "wieght",
            "unknown or repeated key 'wieght' of an item",
        ),
        (
            "q:\n- x\n- query_id: y\n  text: z\n",
            3,
            "query_id",
            "unknown or repeated key 'query_id' of an item",
        ),
        (
            "q:\n- x\n- text: y\n  id: a\n  item_id: b\n",
            5,
            "item_id",
            "unknown or repeated key 'item_id' of an item",
        ),
        ("q:\n- x\n- text: y\n  answers: {a: b}\n", 4, "answers", "must be a text"),
        ("q:\n- x\n- text: y\n  answers: [[a]]\n", 4, "answers", "must be a text"),
        (
            "q:\n- x\n- text: y\n  weight: -2\n",
            3,
            "weight",
            "the weight -2 is not between 0 and 1e+09",
        ),
        (
            "q:\n- x\n- {nugget: y, question: z}\n",
            3,
            "nugget",
            "the item has both a question and a nugget",
        ),
        ("q:\n- x\n- y\n- x\n", 4, "", f"item {item_id('q', 'x')!r} was on line 2 already"),
        ("q: [x]\nr: [x]\nq: [y]\n", 3, "q", "the key 'q' was on line 1 already"),
        ("q:\n- x\n- text: y\n  text: z\n", 4, "text", "the key 'text' was on line 3 already"),
        ("q: [x]\n'': [y]\n", 2, "", "a key must be a text"),
        ("q: [x]\n? [a, b]\n: [y]\n", 2, "", "a key must be a text"),
        (
            "q: [x]\nr: [!!python/object:os.system y]\n",
            2,
            "",
            "the tag 'tag:yaml.org,2002:python/object:os.system' is not read",
        ),
        ("q: [x]\nr: [!mine y]\n", 2, "", "the tag '!mine' is not read"),
    ],
)
def test_bad_yaml_that_can_be_skipped(
    tmp_path: Path, content: str, line: int, field: str, what: str
) -> None:
    path = file(tmp_path, content, "b.yaml")
    error = fault(plain_bank.read, path)
    assert (error.line, error.field, error.what) == (line, field, what)
    if "must map query ids" not in what:
        skipped = Skipped()
        found = {item.text for entry in plain_bank.read(path, skipped) for item in entry.items}
        assert "x" in found
        assert str(skipped.first[0]) == str(error)


BOMB = "a: &a [x]\n" + "".join(
    f"{n}: &{n} [*{p}, *{p}]\n" for p, n in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (BOMB, 2, "aliases are not read"),
        ("q: &a [*a]\n", 1, "aliases are not read"),
        ("q: [x]\nr: " + "[" * 1000, 2, "nested too deeply"),
        ("q: [x]\nr: [y\ns: z\n", 3, "broken YAML (did not find expected ',' or ']')"),
        ("q: [x]\n\tr: y\n", 2, "broken YAML (found character that cannot start any token)"),
        ("q: [x]\n---\nr: [y]\n", 2, "broken YAML (but found another document)"),
        ("q: [x]\nr: [\x00]\n", 2, "broken YAML (control characters are not allowed)"),
        ("# nothing\n", None, "the file is empty"),
        (b"q: [x]\nr: [\xff]\n", 2, "not UTF-8 text (byte 5 of the line)"),
    ],
)
def test_yaml_that_is_refused_whole(
    tmp_path: Path, content: str | bytes, line: int | None, what: str
) -> None:
    error = fault(plain_bank.read, file(tmp_path, content, "b.yaml"), on_error=Skipped())
    assert (error.line, error.what) == (line, what)


def test_an_unknown_key_names_the_known_ones(tmp_path: Path) -> None:
    error = fault(plain_bank.read, file(tmp_path, "q: [{txt: y}]\n", "b.yaml"))
    assert error.mend == f"`txt` is nearly `text`. {ITEM_KEYS}"


PADLESS = SPOKEN.map(str.strip).filter(bool)
WEIGHTS = st.just(1.0) | st.floats(0, 1e9) | st.integers(0, 10**6).map(float)


@st.composite
def entries(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> list[BankEntry]:
    made: list[BankEntry] = []
    for query_id in draw(st.lists(ids, min_size=1, max_size=3, unique=True)):
        for facet_id in draw(st.lists(st.none() | ids, min_size=1, max_size=3, unique=True)):
            items: list[Item] = []
            for text in draw(st.lists(SPOKEN, min_size=1, max_size=3, unique_by=str.strip)):
                own = draw(st.booleans())
                kind = draw(st.sampled_from(["question", "nugget"]))
                number = f"{len(made)} {len(items)} {draw(ids)}"
                name = number if own else item_id(query_id, text, facet_id)
                answers = tuple(draw(st.lists(PADLESS, max_size=3)))
                items.append(Item(name, query_id, text, kind, facet_id, answers, draw(WEIGHTS)))
            facet_text = draw(TEXTS) if facet_id is not None else ""
            made.append(BankEntry(query_id, tuple(items), draw(TEXTS), facet_id, facet_text))
    return made


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.yaml"])
@in_one_folder
@given(entries(PADLESS))
def test_what_is_written_reads_back(tmp_path: Path, name: str, found: list[BankEntry]) -> None:
    path = tmp_path / name
    plain_bank.write(path, found)
    assert list(plain_bank.read(path)) == found


MISREAD = ["a: b", "a #b", "a:b", "a ", "\u2028", "\x85", "\x07", "\U0001f600", "a\r\nb", "\ufeff"]
SIGNS = "null ~ yes 1 #a &a *a ' \" \\ ? | - --- ... = << ! % @ ` , [ ] { } > :"


@pytest.mark.parametrize("text", [*MISREAD, *SIGNS.split()])
@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.yaml"])
def test_texts_that_files_could_misread(tmp_path: Path, name: str, text: str) -> None:
    entry = BankEntry("q", (question("q", text),), text)
    path = tmp_path / name
    if not text.strip():
        with pytest.raises(InputError, match="has no text"):
            plain_bank.write(path, [entry])
        return
    plain_bank.write(path, [entry])
    assert list(plain_bank.read(path)) == [entry]


def one(*items: Item, facet_text: str = "") -> list[BankEntry]:
    return [BankEntry("q", items, facet_text=facet_text)]


@pytest.mark.parametrize(
    ("name", "found", "what"),
    [
        ("b.json", SMALL, "the name must end in .csv, .tsv, .yaml, .yml"),
        ("b.csv", one(), "query 'q' has no items, which a plain bank cannot say"),
        ("b.csv", one(question("r", "x")), "'q' has items of another query or subtopic"),
        ("b.csv", one(question("q", "x", "f")), "'q' has items of another query or subtopic"),
        ("b.yaml", SMALL + SMALL, "query 'q1' has two entries of the same subtopic"),
        ("b.yaml", one(*2 * [question("q", "x")]), "query 'q' has an item id that occurs twice"),
        ("b.yaml", one(question("q", "x"), facet_text="x"), "has a subtopic text but no subtopic"),
        ("b.csv", one(question("q", "x", answers=(" a",))), "would not read back the same"),
        ("b.csv", one(question("q", "x", item_id=" a")), "would not read back the same"),
        ("b.yaml", one(question("q", "x", answers=("",))), "would not read back the same"),
        ("b.yaml", one(question("q", "x", kind="query")), "would not read back the same"),
        ("b.yaml", one(question("q", "\ud800")), "holds half of a surrogate pair"),
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


def test_ids_that_are_too_long_for_yaml_are_not_written(tmp_path: Path) -> None:
    for length in (998, 1001):
        name = "ü" * (length // 2)
        found = [BankEntry(name, (question(name, "x"),))]
        if length < 1000:
            plain_bank.write(tmp_path / "b.yaml", found)
            assert list(plain_bank.read(tmp_path / "b.yaml")) == found
        else:
            with pytest.raises(InputError, match="is too long for a key of YAML"):
                plain_bank.write(tmp_path / "b.yaml", found)


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_banks(tmp_path: Path, ending: str) -> None:
    for name in ("b.csv", "b.yaml"):
        path = tmp_path / f"{name}{ending}"
        plain_bank.write(path, FULL)
        assert list(plain_bank.read(path)) == FULL


@pytest.mark.parametrize("name", ["b.csv", "b.yaml"])
@pytest.mark.parametrize("real", ["dl19/questions", "dl19/nuggets", "car-y3/nuggets"])
def test_real_banks_round_trip(tmp_path: Path, shared_data: Path, real: str, name: str) -> None:
    found = [
        replace(entry, extra={}, items=tuple(replace(item, extra={}) for item in entry.items))
        for entry in bank.read(shared_data / f"{real}.jsonl.gz")
    ]
    plain_bank.write(tmp_path / name, found)
    assert list(plain_bank.read(tmp_path / name)) == found
