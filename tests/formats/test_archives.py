"""Excel workbooks, Inspect logs and saved data sets, made by hand."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from support.forms import (
    ASKED,
    CATS,
    INSPECT,
    INSPECT_LOG,
    KEY,
    LIGHT,
    ROW,
    SAID,
    Contents,
    contents,
)

import exampp
from exampp.errors import InputError

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ALL = Contents(
    contexts={"log:contexts": (CATS, LIGHT)}, answers={"log": (SAID,)}, references=(KEY,)
)
Cell = str | int | float | bool | None
HEADER: Sequence[Cell] = ["question", "response", "contexts", "reference"]
VALUES: Sequence[Cell] = [ASKED, SAID, json.dumps([CATS, LIGHT]), KEY]


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def workbook(path: Path, *sheets: Sequence[Sequence[Cell]], shared: bool = True) -> Path:
    """Write sheets as Excel does; texts are shared, or inside their cells."""
    texts: list[str] = []

    def cell(row: int, column: int, value: Cell) -> str:
        place = f'r="{chr(65 + column)}{row}"'
        if value is None:
            return ""
        if isinstance(value, bool):
            return f'<c {place} t="b"><v>{int(value)}</v></c>'
        if not isinstance(value, str):
            return f"<c {place}><v>{value}</v></c>"
        if not shared:
            return f'<c {place} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        texts.append(value)
        return f'<c {place} t="s"><v>{len(texts) - 1}</v></c>'

    def sheet(rows: Sequence[Sequence[Cell]]) -> str:
        lines = (
            "".join(cell(number, column, value) for column, value in enumerate(row))
            for number, row in enumerate(rows, 1)
        )
        data = "".join(f'<row r="{number}">{line}</row>' for number, line in enumerate(lines, 1))
        return f"<worksheet {MAIN}><sheetData>{data}</sheetData></worksheet>"

    written = [sheet(rows) for rows in sheets]
    numbers = range(1, len(sheets) + 1)
    names = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    links = "".join(f'<Relationship Id="r{n}" Target="worksheets/sheet{n}.xml"/>' for n in numbers)
    # a text in two runs, the second in italics, and its reading
    strings = "".join(
        f"<si><r><t>{escape(one[:2])}</t></r><r><rPr><i/></rPr><t>{escape(one[2:])}</t></r>"
        "<rPh><t>x</t></rPh></si>"
        for one in texts
    )
    return zipped(
        path,
        {
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{names}</sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": f"<Relationships>{links}</Relationships>",
            **{f"xl/worksheets/sheet{n}.xml": one for n, one in enumerate(written, 1)},
            "xl/sharedStrings.xml": f"<sst {MAIN}>{strings}</sst>",
        },
    )


@pytest.mark.parametrize("shared", [True, False])
def test_the_first_sheet_with_rows_is_a_table(
    tmp_path: Path, empty_exam: exampp.Collection, shared: bool
) -> None:
    path = workbook(tmp_path / "log.xlsx", [[]], [HEADER, VALUES], [["notes"]], shared=shared)
    report = empty_exam.import_files(path)
    assert contents(empty_exam, tmp_path) == ALL
    assert [one.partition(": ")[2] for one in report.remarks] == ["sheet 'S2' is read, not S3"]


def test_numbers_of_cells_are_texts(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    rows: list[list[Cell]] = [["query_id", "text", "open"], [7, ASKED, True], [8, "Why?", False]]
    report = empty_exam.import_files(workbook(tmp_path / "queries.xlsx", rows))
    assert empty_exam.query_texts() == {"7": ASKED, "8": "Why?"}
    assert "not read: open" in report.remarks[0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["a", "a"], ["1", "2"]], "log.xlsx:1: duplicate column 'a'"),
        ([["question", None, "answer"], [ASKED, "?", SAID]], "log.xlsx:2: a cell has no column"),
        ([["question"], [ASKED, "?"]], "log.xlsx:2: a cell has no column name"),
        ([], "the workbook has no rows"),
        ([["question", "answer"]], "there are no rows"),
    ],
)
def test_a_sheet_that_is_no_table_is_refused(
    tmp_path: Path, empty_exam: exampp.Collection, rows: Sequence[Sequence[Cell]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        empty_exam.import_files(workbook(tmp_path / "log.xlsx", rows))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("xl/worksheets/sheet1.xml", "<worksheet><row>"),
        ("xl/sharedStrings.xml", '<!DOCTYPE x [<!ENTITY a "b">]><sst/>'),
        ("xl/sharedStrings.xml", "<sst/>"),
        ("xl/_rels/workbook.xml.rels", "<Relationships/>"),
    ],
)
def test_a_damaged_workbook_is_a_sentence(
    tmp_path: Path, empty_exam: exampp.Collection, file: str, content: str
) -> None:
    path = workbook(tmp_path / "log.xlsx", [HEADER, VALUES])
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    with pytest.raises(InputError, match=r"log\.xlsx.*(damaged|document type|no rows)"):
        empty_exam.import_files(zipped(path, {**files, file: content}))


def test_an_inspect_archive_is_its_log(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    samples = {
        f"samples/{number}_epoch_1.json": json.dumps(
            {**INSPECT, "input": "attachment://h", "attachments": {"h": text}, "messages": []}
        )
        for number, text in ((10, "Why?"), (2, ASKED))
    }
    header = {key: value for key, value in INSPECT_LOG.items() if key != "samples"}
    files = {"_journal/start.json": json.dumps(header), **samples}
    path = zipped(tmp_path / "log.eval", files)
    empty_exam.import_files(path)
    assert contents(empty_exam, tmp_path) == Contents(
        (ASKED, "Why?"), answers={"openai/gpt": (SAID, SAID)}, references=(KEY, KEY)
    )
    with pytest.raises(InputError, match=r"log\.eval: is a damaged archive"):
        empty_exam.import_files(zipped(path, {**files, "samples/3_epoch_1.json": "{"}))


def test_a_saved_data_set_is_a_table(tmp_path: Path, empty_exam: exampp.Collection) -> None:
    polars = pytest.importorskip("polars")
    one = tmp_path / "log"
    one.mkdir()
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for name, question in zip(names, (ASKED, "Why?"), strict=True):
        polars.DataFrame([{**ROW, "user_input": question}]).write_ipc_stream(one / name)
    (one / "state.json").write_text(json.dumps({"_data_files": [{"filename": n} for n in names]}))
    both = tmp_path / "both"
    for split in ("test", "train"):
        shutil.copytree(one, both / split)
    (both / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    with pytest.raises(InputError, match="has the splits test, train"):
        empty_exam.import_files(both)
    empty_exam.import_files(one)
    assert contents(empty_exam, tmp_path) == Contents(
        (ASKED, "Why?"),
        {"log:contexts": (CATS, LIGHT) * 2},
        {"log": (SAID, SAID)},
        (KEY, KEY),
    )
