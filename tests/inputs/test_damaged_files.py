"""Files of programs with faults: their texts are read, or named as not read."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

import pytest
from support.forms import FORMS, OTLP, Contents, contents, lines

import exampp


class Case(NamedTuple):
    """A file with a fault, what a collection of it has, and the fields that are not read."""

    content: str
    expected: Contents
    unread: tuple[str, ...] = ()


def _otlp_in_lists() -> str:
    trace = copy.deepcopy(OTLP)
    spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["attributes"] = [spans[1]["attributes"]]
    return lines(trace)


CASES = {
    "attributes of a span in a list of lists": Case(_otlp_in_lists(), FORMS["OTLP"].expected),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_without_a_word(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    case = CASES[name]
    (tmp_path / "log.jsonl").write_text(case.content)
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    assert contents(empty_exam, tmp_path) == case.expected
    assert [field for fields in report.unread.values() for field in fields] == [*case.unread]
