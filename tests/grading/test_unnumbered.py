"""Self-ratings without a number: a setting of the grader, not a reason to pay again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import exams, servers
from support.commands import Commands

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.grading.requests import unnumbered_of

TEXT = "It scatters blue light."


class Chat(ScriptedGrader):
    """A chat model, which declares what its texts without a number are."""

    unnumbered = "unparsed"


def states(collection: exampp.Collection, grader: str) -> list[tuple[int, int | None, str, int]]:
    """(state, rating, rule, cells) of a grader's grades."""
    found = Counter(
        (int(grade.state), grade.rating, grade.rule or "")
        for one in collection.grades(grader).dossiers()
        for grade in one.automatic.values()
    )
    return [(*outcome, cells) for outcome, cells in sorted(found.items())]


def test_a_text_without_a_number_is_what_the_backend_declares_or_the_user_says(
    tmp_path: Path,
) -> None:
    with exams.make(tmp_path) as collection:
        for grader, wanted, expected in (
            (ScriptedGrader(TEXT), None, (0, 1)),
            (ScriptedGrader(TEXT), "unparsed", (1, None)),
            (Chat(TEXT, name="chat"), None, (1, None)),
            (Chat(TEXT, name="chat"), "answer", (0, 1)),
        ):
            collection.grade(grader, model="m", max_failures=99, unnumbered=wanted)
            ((*found, _, count),) = states(collection, collection.graders[-1].key)
            assert (tuple(found), count) == (expected, 8)
        settings = [one.settings.get("unnumbered") for one in collection.graders]
        assert settings == [None, "unparsed", "unparsed", None]


def test_the_key_of_a_grader_to_which_it_is_an_answer_is_as_it_always_was(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        collection.grade(ScriptedGrader("4"), model="m", unnumbered="answer")
        (one,) = collection.graders
        assert "unnumbered" not in one.settings
        assert unnumbered_of(one.settings) == "answer"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unnumbered": "1"}, "unnumbered is '1'; one of answer, unparsed"),
        (
            {"unnumbered": "answer", "prompt": "thomas"},
            "has no effect: the prompt 'thomas' does not request a self-rating",
        ),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with (
        exams.make(tmp_path) as collection,
        pytest.raises(exampp.InputError, match=message.replace(";", ".*")),
    ):
        collection.grade(ScriptedGrader("4"), **options)


def chat(seen: servers.Seen) -> servers.Answer:
    """Rates what makes a magnet, and answers the other questions in place of rating them."""
    return servers.Answer(servers.completion("4" if "magnet?" in seen.text else TEXT))


def test_nobody_pays_for_another_way_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> None:
    """Graded by an earlier version, to which a text was an answer; then by this one."""
    exams.make(tmp_path).close()
    path = tmp_path / "my.exam"
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with servers.FaultServer(chat) as server:
        grade = ["grade", path, "--grader", "openai", "--model", "chat", "--decode", "text"]
        grade += ["--base-url", server.url]
        assert exampp_command(*grade, "--unnumbered", "answer").code == 0
        with exampp.Collection(path) as collection:
            (before,) = collection.graders
            assert "unnumbered" not in before.settings
            assert states(collection, before.key) == [(0, 1, "answered", 6), (0, 4, "rated", 2)]
        asked = len(server.requests)
        command = f"exampp reparse {path} --grader {before.key[:8]} --unnumbered unparsed"
        dry = exampp_command(*command.split()[1:], "--dry-run")
        assert "8 replies read again, 6 changed\n        6  1 -> unparsed\n" in dry.out
        with exampp.Collection(path) as collection:
            assert collection.graders == (before,)
        done = exampp_command(*command.split()[1:])
        assert done.out == dry.out.replace("would be", "are")
        with exampp.Collection(path) as collection:
            kept, read = collection.graders
            assert read.settings == {**before.settings, "unnumbered": "unparsed"}
            assert states(collection, kept.key) == [(0, 1, "answered", 6), (0, 4, "rated", 2)]
            assert states(collection, read.key) == [(0, 4, "rated", 2), (1, None, "no number", 6)]
        # two of one name: the list of them says what the difference is
        several = exampp_command("evaluate", path).err
        assert f"{read.key[:8]}), unnumbered unparsed" in several
        again = exampp_command(*grade, "--dry-run")
        assert len(server.requests) == asked
        # the ratings are the grader's own now; what it could not read stays due, as always
        assert again.err.startswith("Grader: ")
        assert "cells pending   6\n" in again.out
