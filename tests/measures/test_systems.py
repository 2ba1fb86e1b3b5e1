"""Systems of a collection: listed, removed and brought back, chosen for a leaderboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import exams
from support.gradebooks import make_book, make_query, make_ranking

import exampp
from exampp.measures import board as boards
from exampp.records.gradebook import mean_passages


def test_the_list_has_the_mean_number_of_passages(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        # alpha returns 2 for q1 and 1 for q2
        assert [tuple(one) for one in exam.systems] == [("alpha", 2, 1.5), ("beta", 2, 1.0)]
        assert "alpha" in str(exam.systems)


def test_a_leaderboard_shows_passages_where_systems_differ(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        board = exam.grades().evaluate(["Cover@20"])
        assert board.passages == {"alpha": 1.5, "beta": 1.0}
        assert "passages" in boards.wide_leaderboard(board).headings()
        tidy = boards.tidy(board, {"official": {"alpha": 1}})
        assert tidy.headings()[-1] == "passages"
        assert {row[0]: row[-1] for row in tidy.rows} == {
            "alpha": 1.5,
            "beta": 1.0,
            "_overall_": None,
        }
        one = exam.grades(systems=["alpha"]).evaluate(["Cover@20"])
        assert "passages" not in boards.wide_leaderboard(one).headings()


def test_a_passage_returned_for_two_subtopics_counts_once() -> None:
    ratings = [[1]] * 4
    book = make_book(
        make_query(
            ratings,
            make_ranking("a", [0, 1], subtopic=1),
            make_ranking("a", [1, 2], subtopic=2),
            make_ranking("b", [3, 0]),
            subtopics=["s", "t"],
        ),
        make_query(ratings, make_ranking("a", [3, 2, 1, 0]), query_id="r"),
        systems=["a", "b", "c"],
    )
    assert mean_passages(book) == {"a": 3.5, "b": 2.0, "c": 0.0}


def test_chosen_systems_keep_their_scores(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        every = exam.grades().evaluate(["Cover@20", "nDCG@10"])
        for chosen in (exam.grades(systems=["beta"]), exam.grades(without=["alpha"])):
            board = chosen.evaluate(["Cover@20", "nDCG@10"])
            assert board.systems == ("beta",)
            assert set(board.rows) == {row for row in every.rows if row.system == "beta"}
        assert exam.grades(systems=["b*"]).evaluate(["Cover@20"]).systems == ("beta",)
        assert exam.grades(without=["?l*"]).evaluate(["Cover@20"]).systems == ("beta",)
        (panel,) = exam.panel(systems=["beta"])
        assert panel.gradebook.systems == ("beta",)
        unknown: list[dict[str, Any]] = [{"systems": ["gamma"]}, {"without": ["gamma"]}]
        for options in unknown:
            with pytest.raises(
                exampp.InputError, match=r"unknown system .gamma.\. Known: alpha, beta"
            ):
                _ = exam.grades(**options).gradebook
        with pytest.raises(exampp.InputError, match="no system is left"):
            _ = exam.grades(without=["alpha", "beta"]).gradebook


def test_a_removed_system_comes_back_with_its_run_and_its_scores(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        exam.grade("draft")
        before = exam.grades().evaluate(["Cover@20"])
        assert exam.systems.remove("alpha") == 3
        assert exam.grades().evaluate(["Cover@20"]).systems == ("beta",)
        exam.import_files(tmp_path / "files" / "systems.run")
        after = exam.grades().evaluate(["Cover@20"])
        assert {row.system: row.mean for row in after.rows} == {
            row.system: row.mean for row in before.rows
        }


@pytest.mark.parametrize("name", ["", " ", "_overall_"])
def test_what_is_no_name_of_a_system(name: str, tmp_path: Path) -> None:
    """Refuse the reserved name of a system in every input."""
    message = "is not a valid system name|is reserved for the whole pool"
    run = tmp_path / "files" / "more.json"
    with exams.make(tmp_path) as exam:
        ranking = {"method": name, "paragraphId": "p1", "queryId": "q1", "rank": 1, "score": 1}
        data = {"paragraph_id": "p1", "text": "", "paragraph_data": {"rankings": [ranking]}}
        run.write_text(json.dumps(["q1", [{**data, "exam_grades": []}]]))
        with pytest.raises(exampp.InputError, match=message):
            exam.add(runs={name: {"q1": ["p1"]}})
        with pytest.raises(exampp.InputError, match=message):
            exam.import_files(run)
        assert [one.system for one in exam.systems] == ["alpha", "beta"]


def test_a_system_that_is_not_known_is_not_removed(tmp_path: Path) -> None:
    with exams.make(tmp_path) as exam:
        with pytest.raises(exampp.InputError, match="unknown system 'gamma'"):
            exam.systems.remove("beta", "gamma")
        assert json.loads(exam.systems.to_json())["rows"] == [
            {"system": "alpha", "queries": 2, "passages": 1.5},
            {"system": "beta", "queries": 2, "passages": 1.0},
        ]
