"""Tables with headers of their own: `--columns`, in Python, and in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Commands

from exampp import Collection
from exampp.errors import InputError

TABLE = (
    "Topic;Gold question;Gold answer;Who\n1;What are reefs?;animals | polyps;ada\n"
    '2;"Bread;\nwhat?";;\n'
)
TOPICS = "Topic,Narrative\n1,coral reefs\n2,bread\n"
COLUMNS = {
    "query_id": "Topic",
    "question": "Gold question",
    "text": "Narrative",
    "answer": "Gold answer",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "topics.csv").write_text(TOPICS)
    return tmp_path


def bank_of(path: Path) -> str:
    with Collection(path) as exam:
        exam.export(path.parent / "written.csv", "bank")
    return (path.parent / "written.csv").read_text()


def test_one_mapping_serves_all_tables(folder: Path, exampp_command: Commands) -> None:
    options = [f"--columns={name}={column}" for name, column in COLUMNS.items()]
    ran = exampp_command(
        "import", folder / "my.exam", folder / "table.csv", folder / "topics.csv", *options
    )
    assert ran.code == 0, ran.err
    assert "topics.csv: queries, 2 records" in ran.out
    assert "table.csv: plain-bank, 2 records" in ran.out
    assert "table.csv: columns that are not read: Who" in ran.err
    assert bank_of(folder / "my.exam") == (
        "query_id,query_text,question,answer\n1,coral reefs,What are reefs?,animals | polyps\n"
        '2,bread,"Bread;\nwhat?",\n'
    )


def test_the_name_of_the_bank_and_a_dry_run_go_with_it(
    folder: Path, exampp_command: Commands
) -> None:
    table = [folder / "my.exam", folder / "table.csv", "--bank-name", "mine", "--dry-run"]
    columns = ["--columns", "query_id=Topic", "--columns", "question=Gold question"]
    assert exampp_command("import", *table, *columns).code == 0
    assert not (folder / "my.exam").exists()


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "written"),
    [
        ("passages", "Key\tBody\n p1 \ta\n", {"passage_id": "Key", "text": "Body"}, "passages"),
        (
            "run",
            "q,d,s,by\n1,p1,0.5,x\n1,p2,1.5,x\n",
            {"query_id": "q", "passage_id": "d", "score": "s", "system": "by"},
            "runs",
        ),
        (
            "qrels",
            "q,d,r\n1,p1,2\n",
            {"query_id": "q", "passage_id": "d", "relevance": "r"},
            "judgments",
        ),
        (
            "responses",
            "q,by,says\n1,chat,Reefs are animals.\n",
            {"query_id": "q", "system": "by", "text": "says"},
            "runs",
        ),
    ],
)
def test_any_kind_of_table_has_columns(
    kind: str, rows: str, columns: dict[str, str], written: str, tmp_path: Path
) -> None:
    (tmp_path / "table.tsv").write_text(rows)
    with Collection.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"1": "reefs"})
        report = exam.import_files(tmp_path / "table.tsv", columns=columns, unknown_passages="keep")
        assert [file.kind for file in report.files] == [kind]
        exam.export(tmp_path / "out", written)
    found = (tmp_path / "out").read_text()
    expected = {
        "passages": '{"passage_id":"p1","text":"a"}\n',
        "run": "1 Q0 p2 1 1.5 x\n1 Q0 p1 2 0.5 x\n",
        "qrels": "1 0 p1 2\n",
        "responses": " chat\n",
    }
    assert found.endswith(expected[kind])


def test_a_name_or_a_column_that_is_not_there_is_told_with_both_sides(folder: Path) -> None:
    with Collection.create(folder / "my.exam") as exam:
        with pytest.raises(
            InputError, match=r"'qestion'; `qestion` is nearly `question`.*query_id,"
        ):
            exam.import_files(folder / "table.csv", columns={"qestion": "Gold question"})
        both = r"'Gold', which question.*table\.csv: Topic, Gold question.*query_id, query_text"
        with pytest.raises(InputError, match=both):
            exam.import_files(
                folder / "table.csv", columns={"query_id": "Topic", "question": "Gold"}
            )
        (folder / "short.csv").write_text("Topic,Gold question\n1,Why?\n2\n")
        named = {"query_id": "Topic", "question": "Gold question"}
        with pytest.raises(InputError, match=r"short\.csv:3: 1 cell, but the header has 2"):
            exam.import_files(folder / "short.csv", columns=named)
        assert not any(count for _, count in exam.contents().rows)


@pytest.mark.parametrize("wrong", ["question", "=Topic", "question="])
def test_what_is_no_pair_is_refused(wrong: str, folder: Path, exampp_command: Commands) -> None:
    ran = exampp_command("import", folder / "a.exam", folder / "table.csv", "--columns", wrong)
    assert ran.code == 2
    assert 'as in --columns question="Gold question"' in ran.err
