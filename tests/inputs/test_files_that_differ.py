"""Files of one import that say different things of the same: refused, whichever would win."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.errors import InputError

BANK = "query_id,item_id,question,weight,answers\n"
PAIRS = {
    "query": ("queries.tsv", "query_id\ttext\n", "q1\tone\n", "q1\tother\n"),
    "subtopic": (
        "subtopics.jsonl",
        "",
        '{"query_id": "q1", "text": "one", "subtopics": [{"id": "s", "text": "a"}]}\n',
        '{"query_id": "q1", "text": "one", "subtopics": [{"id": "s", "text": "b"}]}\n',
    ),
    "judgment 'q1 p1'": ("some.qrels", "", "q1 0 p1 3\n", "q1 0 p1 1\n"),
    "question '1'": ("bank.csv", BANK, "q1,1,Why A?,1,\n", "q1,1,Why B?,1,\n"),
    "question '1' is": ("bank.csv", BANK, "q1,1,Why?,1,\n", "q1,1,Why?,2,\n"),
    "question '1' is ": ("bank.csv", BANK, "q1,1,Why?,1,yes\n", "q1,1,Why?,1,no\n"),
}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    (tmp_path / "queries.json").write_text('{"q1": "one"}')
    (tmp_path / "passages.jsonl").write_text('{"id": "p1", "text": "x"}\n')
    exampp.Collection.create(tmp_path / "my.exam").close()
    with exampp.Collection(tmp_path / "my.exam") as made:
        made.import_files(tmp_path / "queries.json", tmp_path / "passages.jsonl")
    return tmp_path / "my.exam"


@pytest.mark.parametrize("what", PAIRS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_second_file_does_not_win(
    exam: Path, what: str, known: bool, order: tuple[int, int]
) -> None:
    """Also where the first of them says what the collection holds, and so changes nothing."""
    name, head, *lines = PAIRS[what]
    files = [exam.parent / f"{number}-{name}" for number in order]
    for file, number in zip(files, order, strict=True):
        file.write_text(head + lines[number])
    with exampp.Collection(exam) as opened:
        if known:
            opened.import_files(files[0], update=True)
        before = exams.tables(opened.path)
        with pytest.raises(InputError, match=f"^.*{name}: {what}.* in another file of this import"):
            opened.import_files(*files, update=True)
        assert exams.tables(opened.path) == before
        opened.import_files(files[0], update=True)
        report = opened.import_files(files[1], update=True)
        assert sum(one.changed for one in report.differences) == 1


def test_files_that_say_the_same_are_taken(exam: Path, exampp_command: Commands) -> None:
    for (name, head, line, _), number in itertools.product(PAIRS.values(), (1, 2)):
        (exam.parent / f"{number}-{name}").write_text(head + line.replace(",yes", ","))
    files = sorted(str(file) for file in exam.parent.glob("[12]-*"))
    assert exampp_command("import", str(exam), *files).code == 0
    again = exampp_command("import", str(exam), *files)
    assert "Nothing changed." in again.out, again.err
