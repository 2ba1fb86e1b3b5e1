"""Notes: one sentence a code, joined where they differ in their subject alone."""

from __future__ import annotations

import pytest

from exampp.results.notes import (
    about,
    by_severity,
    merge_notes,
    note,
    notes_of,
    with_code,
    without_code,
)
from exampp.results.sentences import NOTES, Severity


def test_a_note_is_its_sentence_with_code_and_severity() -> None:
    found = note("draft")
    assert found == "These are draft grades: good for trying things out, not for conclusions."
    assert (found.code, found.severity) == ("draft", Severity.WARNING)
    with pytest.raises(KeyError):
        note("unknown")
    with pytest.raises(KeyError):
        note("policy", family="Cover")


def test_long_lists_are_cut() -> None:
    found = note("queries-without-labels", queries=[f"q{n}" for n in range(7)])
    assert found.endswith("q0, q1, q2, q3, q4 and 2 more.")


def test_notes_that_differ_in_the_subject_are_one() -> None:
    found = merge_notes([note("one-query", "AP"), "plain", note("one-query", "RR"), "plain"])
    assert [str(one) for one in found] == [
        "AP, RR: Only one query counts, so there is no standard error.",
        "plain",
    ]
    whole = merge_notes(found, whole=["RR", "AP"])
    assert whole[0] == "Only one query counts, so there is no standard error."
    assert whole[0].code == "one-query"


def test_a_note_about_something_keeps_its_code() -> None:
    found = merge_notes(
        about(name, one) for name in ("a", "b") for one in ("rounded", note("draft"))
    )
    assert [str(one)[:14] for one in found] == ["a, b: rounded", "a, b: These ar"]
    assert found[1].code == "draft"


def test_selection_by_code_and_severity() -> None:
    found = [note("subtopics-pooled"), "one", note("draft"), "two", "three"]
    assert list(with_code(found, "draft")) == found[2:3]
    assert list(without_code(found, "draft")) == [*found[:2], *found[3:]]
    assert by_severity(found) == (["one", note("draft"), "two"], [found[0], "three"])
    assert by_severity(found[:1]) == ([], found[:1])


def test_checks_are_functions_of_a_context() -> None:
    found = notes_of(2, [lambda n: [str(n)] * n, lambda n: [note("ranks-contradict", rankings=n)]])
    assert [one.code for one in found] == ["", "ranks-contradict"]


def test_every_sentence_ends_and_names_its_values() -> None:
    for code, (severity, sentence) in NOTES.items():
        assert code == code.lower()
        assert isinstance(severity, Severity)
        assert sentence[-1] in ".}", code
