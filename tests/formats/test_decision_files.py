"""Decisions as a file: written, read again, and brought into a copy of the collection."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exams
from support.samples import IDS, TEXTS, fault, file, in_one_folder

from exampp.errors import InputError
from exampp.formats.decisions import HEADER, read, write
from exampp.graders.scripted import ScriptedGrader
from exampp.records import item_id
from exampp.records.decisions import CellDecision, Decision

SPOKEN = TEXTS.filter(lambda text: bool(text.strip()))
DECISIONS = st.builds(
    Decision,
    st.integers(0, 99),
    SPOKEN,
    st.none() | st.integers(0, 1),
    TEXTS,
    st.just("2026-01-01T00:00:00+00:00"),
    st.booleans(),
    st.booleans(),
)
LINES = st.builds(
    CellDecision,
    DECISIONS,
    SPOKEN,
    IDS,
    SPOKEN,
    TEXTS,
    st.sampled_from(["question", "nugget", "query"]),
    TEXTS,
    st.booleans(),
    passage_hash=st.binary(min_size=1, max_size=16).map(bytes.hex),
)
LINE = "1\t2026-01-01\tann\tq1\tmain\tquestion\ti\tWhy?\tp\t00ff\tratings\t4\tyes\t\tclear"


@in_one_folder
@given(st.lists(LINES, max_size=4))
def test_whatever_is_written_is_read_again(tmp_path: Path, lines: list[CellDecision]) -> None:
    write(tmp_path / "decisions.tsv", lines)
    assert list(read(tmp_path / "decisions.tsv")) == lines


def test_a_line(tmp_path: Path) -> None:
    (one,) = read(file(tmp_path, f"{HEADER}\n{LINE}\n"))
    assert one.decision == Decision(1, "ann", 4, "clear", "2026-01-01", blind=True)
    assert (one.query_id, one.item, one.passage_hash, one.verdict) == ("q1", "Why?", "00ff", False)


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        (LINE.replace("\tann\t", "\t \t"), "author", "blank"),
        (LINE.replace("\t4\t", "\tgood\t"), "rating", "'good' is not a whole number"),
        (LINE.replace("ratings", "verdicts"), "rating", "invalid rating 4"),
        (LINE.replace("ratings", "stars"), "scale", "'stars' is not 'ratings' or 'verdicts'"),
        (LINE.replace("\tyes\t", "\tmaybe\t"), "blind", "'maybe' is not"),
        (LINE.replace("00ff", "zz"), "passage_hash", "not hexadecimal"),
        (LINE + "\tmore", "", "16 cells, but the header has 15"),
    ],
)
def test_faults_say_where(tmp_path: Path, line: str, field: str, what: str) -> None:
    found = fault(read, file(tmp_path, f"{HEADER}\n{LINE}\n{line}\n"))
    assert (found.line, found.field) == (3, field)
    assert what in found.what


def test_decisions_go_from_one_copy_to_another(tmp_path: Path) -> None:
    scatter = item_id("q1", exams.QUESTIONS["q1"][0])
    with exams.make(tmp_path, "one.exam") as one, exams.make(tmp_path, "other.exam") as other:
        for opened in (one, other):
            opened.grade(ScriptedGrader("3"))
        # the same word twice within a second, and another in between
        for rating in (5, 2, 5):
            one.grades().decisions.decide("q1", scatter, "p1", rating, author="ann", blind=True)
        one.grades().decisions.decide("q1", scatter, "p2", 1, author="eve", adjudicates=True)
        one.export(tmp_path / "decisions.tsv", "decisions")
        other.grades().decisions.decide("q1", scatter, "p1", 0, author="bob")
        for _ in range(2):
            other.import_files(tmp_path / "decisions.tsv")
            assert [d.decision.rating for d in other.decisions.list()] == [0, 5, 2, 5, 1]
        query = other.grades().gradebook.queries[0]
        assert query.ratings[query.passage_ids.index("p1"), 0] == 5
        assert len(other.decisions.disputes()) == 1
        # a text that the other collection never had
        one.bank().edit("reword", scatter, "Which light?")
        one.grades().decisions.decide("q1", scatter, "p1", 4, author="ann")
        one.export(tmp_path / "decisions.tsv", "decisions")
        with pytest.raises(InputError, match=r"decision 5 is on an unknown text of item"):
            other.import_files(tmp_path / "decisions.tsv")
        assert len(other.decisions.list()) == 5
