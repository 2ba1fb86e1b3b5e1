"""Numbers that nothing can hold, as options: a sentence, never a defect."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

HUGE = ("-" + str(10**30), "9" * 5000, "nan")
LINES = {
    "min rating": ("evaluate", "EXAM", "--min-rating", "N"),
    "cutoff of ours": ("evaluate", "EXAM", "-m", "Cover@N"),
    "cutoff": ("evaluate", "EXAM", "-m", "nDCG@N"),
    "parameter": ("evaluate", "EXAM", "-m", "ERR(dval=N)@20"),
    "depth": ("status", "EXAM", "--pool", "--depth", "N"),
    "failures": ("grade", "EXAM", "--grader", "draft", "--max-failures", "N"),
    "depth of an import": ("import", "EXAM", "RUN", "--depth", "N"),
    "limit": ("review", "EXAM", "verify", "--limit", "N"),
    "share": ("bank", "split", "EXAM", "--share", "N"),
    "edit": ("bank", "diff", "EXAM", "N"),
    "undo": ("bank", "revert", "EXAM", "--edit", "N"),
    "port": ("serve", "EXAM", "--port", "N"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("huge")
    with exams.make(made) as collection:
        collection.grade("draft")
    return made


@pytest.mark.parametrize("name", LINES)
def test_a_huge_number_is_no_defect(name: str, exampp_command: Commands, folder: Path) -> None:
    places = {"EXAM": str(folder / "my.exam"), "RUN": str(folder / "files" / "systems.run")}
    for number in HUGE:
        line = [places.get(word, word.replace("N", number)) for word in LINES[name]]
        ran = exampp_command(*line)
        assert "defect" not in ran.err, ran.err
        assert ran.code in (0, 2), ran.err
