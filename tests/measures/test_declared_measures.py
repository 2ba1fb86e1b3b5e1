"""Measures of one's own: what their functions see, what may come of them, where they are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exams

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.names import MEASURES, Measure, parse_measure
from exampp.results.page import report_json

RATINGS = {
    ("What does air scatter?", exams.PASSAGES["p1"]): "5",
    ("Why are sunsets red?", exams.PASSAGES["p2"]): "4",
    ("What makes a magnet?", exams.PASSAGES["p3"]): "5",
}


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    MEASURES._added.clear()


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    with exams.make(tmp_path) as made:
        made.grade(ScriptedGrader(RATINGS, default="0"), model="scripted")
        yield made


def reach(query: exampp.RankedQuery) -> float:
    """The share of the returned passages that answer something."""
    answers = (query.ratings >= query.min_rating).any(axis=1)
    return float(answers.mean()) if query.passage_ids else 0.0


def test_a_function_is_a_measure_in_leaderboards_and_analyses(
    collection: exampp.Collection,
) -> None:
    measure = exampp.measure("Reach", threshold=True, share=True)(reach)
    grades = collection.grades()
    board = grades.evaluate([measure, "Reach@1", measure.cut(1), "Cover@20"], min_rating=[4, 5])
    assert [(str(c.measure), c.min_rating) for c in board.columns] == [
        *(("Reach", 4), ("Reach", 5), ("Reach@1", 4), ("Reach@1", 5)),
        *(("Cover@20", 4), ("Cover@20", 5)),
    ]
    # alpha: q1 p1 (5), p2 (4); q2 p3 (5). beta: p4 answers nothing
    assert board.scores("Reach", 4) == {"alpha": 1.0, "beta": 0.0}
    assert board.scores("Reach", 5) == {"alpha": 0.75, "beta": 0.0}
    assert board.scores("Reach@1", 5) == {"alpha": 1.0, "beta": 0.0}
    found = grades.significance(["Reach"], min_rating=5)
    assert found.tables()
    assert grades.compare("alpha", "beta", measure="Reach@2", min_rating=5).tables()
    report = grades.report(measures=["Reach@1", "Cover@20"], min_rating=5)
    assert "Reach@1" in report_json(report)


def test_what_a_function_sees(collection: exampp.Collection) -> None:
    seen: dict[tuple[str, str], exampp.RankedQuery] = {}

    def look(query: exampp.RankedQuery) -> int:
        seen[query.query_id, query.system] = query
        return len(query.passage_ids)

    exampp.measure("Look")(look)
    board = collection.grades().evaluate(["Look@1"])
    assert [(c.min_rating, c.measure.kind.share) for c in board.columns] == [(None, False)]
    one = seen["q1", "alpha"]
    assert (one.passage_ids, one.cutoff, one.threshold, one.subtopic) == (("p1",), 1, None, "")
    assert (one.lowest, one.highest) == (0, 5)
    assert sorted(zip(one.item_ids, one.ratings[0].tolist(), strict=True)) == sorted(
        zip(one.item_ids, [5.0, 0.0] if one.ratings[0, 0] == 5 else [0.0, 5.0], strict=True)
    )
    assert one.judgments.tolist() == [3.0]
    assert one.weights.tolist() == [1.0, 1.0]
    assert dict(zip(one.pool_ids, one.pool_judgments.tolist(), strict=True)) == {
        "p1": 3.0,
        "p2": 1.0,
        "p4": 0.0,
    }
    assert np.isnan(seen["q2", "beta"].judgments).tolist() == [True]
    with pytest.raises(ValueError, match="read-only"):
        one.ratings[0, 0] = 1


def test_none_leaves_a_query_out_of_the_mean(collection: exampp.Collection) -> None:
    exampp.measure("Half")(lambda query: 3.5 if query.query_id == "q1" else None)
    (row, *_) = collection.grades().evaluate(["Half"]).rows
    assert (row.mean, row.queries, row.stderr) == (3.5, 1, None)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "much",
            "Odd returned 'much', which is not a number .query 'q1', system 'alpha', 2 passages",
        ),
        (True, "Odd returned True, which is not a number"),
        (float("nan"), "Odd returned nan"),
        (10**400, "Odd returned inf"),
        (1.5, "Odd returned 1.5, but is declared as a share.*declare the measure with share=False"),
        (np.ones(2), "which is not a number"),
    ],
)
def test_what_is_no_value_is_told_with_its_place(
    collection: exampp.Collection, value: object, said: str
) -> None:
    exampp.measure("Odd", share=True)(lambda _: value)  # type: ignore[arg-type, return-value]
    with pytest.raises(exampp.InputError, match=said):
        collection.grades().evaluate(["Odd"])


def test_a_function_that_fails_is_told_in_a_sentence(collection: exampp.Collection) -> None:
    exampp.measure("Broken")(lambda query: 1 / len(query.passage_ids[5:]))
    with pytest.raises(exampp.InputError, match="Broken failed: ZeroDivisionError: division by"):
        collection.grades().evaluate(["Broken"])


def test_a_threshold_that_is_read_is_declared(collection: exampp.Collection) -> None:
    exampp.measure("Reach")(reach)
    with pytest.raises(exampp.InputError, match="declares no threshold"):
        collection.grades().evaluate(["Reach"])


def test_names_are_told_apart() -> None:
    exampp.measure("Reach", cutoff=False)(reach)
    exampp.measure("Reach")(reach)
    assert parse_measure("Reach@3") == Measure("Reach", 3)
    with pytest.raises(exampp.InputError, match="unknown measure 'Raech'") as error:
        parse_measure("Raech")
    assert "Did you mean Reach?" in error.value.hint
    with pytest.raises(exampp.InputError, match="'nDCG' cannot be added: the name is built in"):
        exampp.measure("nDCG")(reach)
    names: tuple[Any, ...] = ("a b", "MAP", "", "P@5", None, 3)
    for name in names:
        with pytest.raises(exampp.InputError, match="invalid measure name"):
            exampp.measure(name)
    with pytest.raises(exampp.InputError, match="has no parameter 'rel'"):
        parse_measure("Reach(rel=2)")


def test_a_function_alone_is_no_measure(collection: exampp.Collection) -> None:
    unnamed: Any = reach
    with pytest.raises(exampp.InputError, match="a measure needs a name"):
        exampp.measure(unnamed)
    with pytest.raises(exampp.InputError, match="is a function, not a measure"):
        collection.grades().evaluate([reach])  # type: ignore[list-item]


def test_plots_and_methods_know_it(collection: exampp.Collection, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from exampp.cli.main import app

    exampp.measure("Reach", threshold=True, share=True)(reach)
    runner = CliRunner()
    for command in (
        ["evaluate", "my.exam", "-m", "Reach@2"],
        ["analyze", "significance", "my.exam", "-m", "Reach@1"],
        ["plot", "leaderboard", "my.exam", "-m", "Reach@2", "--output", "l.svg"],
        ["plot", "heatmap", "my.exam", "-m", "Reach@2", "--output", "h.svg"],
    ):
        place = [str(tmp_path / one) if "." in one else one for one in command]
        result = runner.invoke(app, place)
        assert result.exit_code == 0, (command, result.output, result.exception)
    assert "Reach@2" in (tmp_path / "h.svg").read_text()
