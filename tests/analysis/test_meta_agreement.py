"""Agreement of graders with judgments and with each other: the papers' tables."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest

import exampp
from exampp.analysis.agreement import Agreements, find_agreements
from exampp.analysis.raters import (
    compare_people,
    judgment_scale,
    rated_units,
)
from exampp.errors import InputError
from exampp.records.decisions import Decision
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.graders import GraderIdentity
from exampp.results.result import render
from exampp.stats.agreement import STATISTICS, cohen_kappa, weighted_kappa
from exampp.store.decisions import JudgedCell

GRADER = GraderIdentity("model", "self-rating", "question")
OTHER = GraderIdentity("other", "self-rating", "question")
VERDICTS = GraderIdentity("model", "answering", "question", highest=1)
DIRECT = GraderIdentity("model", "direct", "query", highest=3)

RATINGS: dict[str, list[int | None]] = {
    "a": [5, 4, 0],
    "b": [4, 0, 0],
    "c": [1, 1, 1],
    "d": [0, 0, 0],
    "e": [None] * 3,
}
JUDGED = {"a": 3, "b": 0, "c": 2, "d": 1, "e": 3}


def make_query(
    ratings: dict[str, list[int | None]] | dict[str, list[int]] | dict[str, Any],
    judged: dict[str, int] | None = None,
    query_id: str = "q",
) -> QueryGrades:
    """Ratings and judgments by passage; None and absent ones are missing."""
    rows = [[MISSING if cell is None else cell for cell in row] for row in ratings.values()]
    table = np.array(rows, np.int16)
    judgments = [(judged or {}).get(passage, MISSING) for passage in ratings]
    return QueryGrades(
        query_id=query_id,
        subtopic_ids=(),
        item_ids=tuple(f"{query_id}/i{i}" for i in range(table.shape[1])),
        item_subtopics=np.zeros(table.shape[1], np.int32),
        weights=np.ones(table.shape[1]),
        passage_ids=tuple(ratings),
        pool_size=len(ratings),
        ratings=table,
        judgments=np.array([judgments], np.int16),
        rankings=(),
    )


def make_book(*queries: QueryGrades, grader: GraderIdentity = GRADER) -> Gradebook:
    return Gradebook(grader, "bank", queries, ())


def statistics(found: Agreements, **wanted: object) -> dict[str, dict[str, Any]]:
    """The rows of the tidy table that fit, by statistic."""
    table = json.loads(render(found.records()["agreement"], "json"))
    rows = [r for r in table["rows"] if all(r[name] == value for name, value in wanted.items())]
    by_name = {row["statistic"]: row for row in rows}
    assert len(by_name) == len(rows), "ambiguous"
    return by_name


def counts(found: Agreements, **wanted: object) -> dict[tuple[str, str], int]:
    table = json.loads(render(found.records()["confusion"], "json"))
    rows = [r for r in table["rows"] if all(r[name] == value for name, value in wanted.items())]
    return {(row["label"], row["other"]): row["count"] for row in rows}


# ---- the published tables ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dl19(shared_data: Path) -> Agreements:
    with exampp.open(shared_data / "dl19" / "graded.jsonl.gz") as opened:
        return find_agreements([opened.grades().gradebook], min_relevant=[1, 2])


def test_expected_values_of_dl19(dl19: Agreements, shared_data: Path) -> None:
    expected = json.loads((shared_data / "dl19" / "expected" / "agreement.json").read_text())
    for m in (1, 2, 5):
        of_m = expected[f"label = rating number {m} from the top"]
        graded = counts(dl19, at_least=m, min_relevant=2, layout="GRADED")
        for label, row in zip(expected["labels_rows"], of_m["graded_counts"], strict=True):
            for judgment, count in zip(expected["judgments_columns"], row, strict=True):
                assert graded[str(label), str(judgment)] == count
        for layout in ("LENIENT", "STRICT"):
            for cut, relevant, other in ((1, "1+2+3", "0"), (2, "2+3", "0+1")):
                cell = of_m[f"{layout.lower()}, judgments >= {cut}"]
                wanted = {"at_least": m, "min_relevant": cut, "layout": layout}
                yes, no = {
                    "LENIENT": ("1+2+3+4+5", "0"),
                    "STRICT": ("4+5", "0+1+2+3"),
                }[layout]
                found = counts(dl19, **wanted)
                assert found == {
                    (yes, relevant): cell["tp"],
                    (yes, other): cell["fp"],
                    (no, relevant): cell["fn"],
                    (no, other): cell["tn"],
                }
                kappa = statistics(dl19, **wanted)["kappa"]
                assert kappa["value"] == pytest.approx(cell["kappa"], abs=1e-9)
                assert kappa["low"] < kappa["value"] < kappa["high"]


def test_published_tables_of_dl19(dl19: Agreements) -> None:
    """S4, section 4.4, as they are printed there."""
    tables = {table.caption: table for table in dl19.tables().values()}
    (grader,) = {
        key.partition(": ")[2].partition(" against")[0] for key in tables if "STRICT" in key
    }
    name = f"{grader} against the judgments (relevant: 2+), label = 2nd best rating"
    strict, lenient = tables[f"STRICT: {name}"], tables[f"LENIENT: {name}"]
    assert [row[:4] for row in strict.rows] == [
        ("4+5", 1439, 1356, 2795),
        ("0+1+2+3", 1062, 5403, 6465),
    ]
    assert [row[:4] for row in lenient.rows] == [
        ("1+2+3+4+5", 1627, 1809, 3436),
        ("0", 874, 4950, 5824),
    ]
    latex = render(strict, "latex")
    assert r"\toprule" in latex
    assert "4+5 & 1439 & 1356 & 2795 & 0.36 & [0." in latex


ROW_KAPPAS = {
    (1, "GRADED"): {5: 0.22, 4: -0.0065, 3: -0.021, 2: -0.026, 1: -0.0089, 0: 0.34},
    (2, "GRADED"): {5: 0.14, 4: 0.047, 3: -0.0031, 2: 0.03, 1: -0.0019, 0: 0.37},
    (5, "GRADED"): {5: 0.012, 4: 0.071, 3: 0.043, 2: 0.025, 1: 0.0042, 0: 0.14},
}
"""Values that the program of the papers prints beside the rows, with two significant digits."""


@pytest.mark.parametrize(("m", "layout"), ROW_KAPPAS)
def test_a_kappa_for_every_row_as_the_papers_program(m: int, layout: str, dl19: Agreements) -> None:
    found = statistics(dl19, at_least=m, min_relevant=2, layout=layout)
    paired = {5: 3, 4: 3, 3: 2, 2: 2, 1: 2, 0: 0}
    for label, expected in ROW_KAPPAS[m, layout].items():
        value = found[f"kappa {label} / {paired[label]}"]["value"]
        assert value == pytest.approx(
            expected, abs=5.1 * 10 ** (math.floor(math.log10(abs(expected))) - 2)
        )


def test_merge_cuts_judgments_as_the_papers_do(dl19: Agreements) -> None:
    for relevant in (1, 2):
        merged = counts(dl19, at_least=2, min_relevant=relevant, layout="MERGE")
        assert [merged["4+5", other] for other in ("2+3", "1", "0")] == [1439, 581, 775]
        assert [merged["0", other] for other in ("2+3", "1", "0")] == [874, 864, 4086]
    # S4, STRICT and LENIENT of DL 2019: one side of the table against the rest
    found = statistics(dl19, at_least=2, min_relevant=2, layout="MERGE")
    assert found["kappa 4+5 / 2+3"]["value"] == pytest.approx(0.36137, abs=1e-5)
    tables = {table.caption: table for table in dl19.tables().values()}
    (table,) = (t for c, t in tables.items() if c.startswith("MERGE") and "2+), label = 2nd" in c)
    assert [column.name for column in table.columns] == [
        "MERGE",
        "2+3",
        "1",
        "0",
        "total",
        "kappa of the row",
        "against",
        "Cohen's kappa",
        "95% interval",
    ]
    assert [row[5] for row in table.rows] == [
        pytest.approx(0.361, abs=5e-4),
        pytest.approx(0.045, abs=5e-4),
        pytest.approx(0.375, abs=5e-4),
    ]
    assert [row[6] for row in table.rows] == ["2+3", "1", "0"]


def test_published_kappas_of_llmjudge(shared_data: Path) -> None:
    """The labels of the authors on four levels, of whose rows they publish 0.32 and 0.28."""
    with exampp.open(shared_data / "science" / "llmjudge-dev-graded.jsonl.gz") as opened:
        found = opened.panel(kind="query").agreement(min_relevant=[1], layouts=["GRADED"])
    values = {name: row["value"] for name, row in statistics(found).items()}
    assert values["kappa"] == pytest.approx(0.32446735, abs=1e-8)
    assert f"{values['kappa 3 / 3']:.2g}" == "0.32"
    assert f"{values['kappa 2 / 2']:.2g}" == "0.28"


# ---- by hand -------------------------------------------------------------------------------------


def test_layouts_by_hand() -> None:
    """Best ratings a 5, b 4, c 1, d 0 (e has no grade) against judgments 3, 0, 2, 1."""
    found = find_agreements(
        [make_book(make_query(RATINGS, JUDGED))], at_least=[1], min_relevant=[2]
    )
    merge = counts(found, layout="MERGE")
    assert {cell for cell, count in merge.items() if count} == {
        ("4+5", "2+3"),
        ("4+5", "0"),
        ("1+2+3", "2+3"),
        ("0", "1"),
    }
    assert counts(found, layout="LENIENT") == {
        ("1+2+3+4+5", "2+3"): 2,
        ("1+2+3+4+5", "0+1"): 1,
        ("0", "2+3"): 0,
        ("0", "0+1"): 1,
    }
    assert statistics(found, layout="LENIENT")["kappa"]["value"] == pytest.approx(0.5)
    # 0 | 1-3 | 4+5 against 0 | 1 | 2+3: a agrees, c and d are one apart, b is two apart
    expected = [[0, 1, 0], [0, 0, 1], [1, 0, 1]]
    merged = statistics(found, layout="MERGE")
    assert merged["kappa"]["value"] == cohen_kappa(expected).value
    assert merged["kappa_quadratic"]["value"] == weighted_kappa(expected, "quadratic").value
    assert "1 of 5 judged passages have no grade by model:self-rating" in found.notes[0]


def test_the_label_is_the_mth_best_rating() -> None:
    book = make_book(make_query(RATINGS, JUDGED))
    found = find_agreements([book], at_least=[2, 3, 4], layouts=["graded"])
    for m, labels in ((2, "4010"), (3, "0010"), (4, "0000")):
        (cells,) = [counts(found, at_least=m)]
        for passage, label in zip("abcd", labels, strict=True):
            assert cells[label, str(JUDGED[passage])] == 1


def test_min_rating_moves_strict_and_merge() -> None:
    book = make_book(make_query(RATINGS, JUDGED))
    found = find_agreements([book], at_least=[1], min_rating=5, min_relevant=[3])
    assert counts(found, layout="STRICT")["5", "3"] == 1
    assert counts(found, layout="STRICT")["0+1+2+3+4", "0+1+2"] == 3
    with pytest.raises(InputError, match=r"invalid minimum rating 9.*Choose from 1 to 5"):
        find_agreements([book], min_rating=9)
    with pytest.raises(InputError, match=r"unknown layout 'MEDIUM'.*GRADED, MERGE"):
        find_agreements([book], layouts=["MEDIUM"])
    with pytest.raises(InputError, match="at least 1 item"):
        find_agreements([book], at_least=[0])


def test_graders_are_aligned_by_passage() -> None:
    first = make_book(make_query({"a": [5], "b": [0], "c": [2], "d": [4]}))
    second = make_book(make_query({"d": [4], "x": [1], "c": [0], "a": [5]}), grader=OTHER)
    found = find_agreements([first, second], at_least=[1], layouts=["GRADED"])
    (block,) = found.mutual
    assert block.units == 3
    cells = {cell for cell, count in counts(found).items() if count}
    assert cells == {("5", "5"), ("2", "0"), ("4", "4")}


def test_graders_of_one_name_stay_apart() -> None:
    again = dataclasses.replace(GRADER, settings={"revision": "2"})
    books = [make_book(make_query(RATINGS), grader=one) for one in (GRADER, again)]
    (comparison,) = rated_units(books, [1]).compare()
    assert comparison.rater.name != comparison.other.name


def test_direct_labels_are_compared_once_and_with_every_label() -> None:
    direct = make_query({"a": [3], "b": [0], "c": [2], "d": [1]}, JUDGED)
    books = [
        make_book(make_query(RATINGS, JUDGED)),
        make_book(direct, grader=DIRECT),
        make_book(direct, grader=dataclasses.replace(DIRECT, model="third")),
    ]
    found = rated_units(books, [1, 2])
    ways = [(c.rater.name, c.other.name, c.at_least) for c in found.compare()]
    assert ways == [
        ("model:self-rating", "model:direct", 1),
        ("model:self-rating", "model:direct", 2),
        ("model:self-rating", "third:direct", 1),
        ("model:self-rating", "third:direct", 2),
        ("model:direct", "third:direct", None),
    ]
    units = rated_units(books[1:2], [2], judged=True)
    (judged,) = units.compare(units.judge())
    assert judged.at_least is None
    # the judgments are on the scale of the label here, so that each can be set against each
    assert judged.estimates("GRADED")["kappa"].value == 1


def test_subtopic_judgments_meet_the_items_of_the_subtopic() -> None:
    query = make_query({"a": [5, 0], "b": [0, 4]})
    judgments = np.array([[MISSING] * 2, [3, 0], [0, MISSING]], np.int16)
    subtopiced = dataclasses.replace(
        query,
        subtopic_ids=("f1", "f2"),
        item_subtopics=np.array([1, 2], np.int32),
        judgments=judgments,
    )
    found = find_agreements(
        [make_book(subtopiced)], at_least=[1], layouts=["GRADED"], min_relevant=[1]
    )
    # f1: a 5 against 3, b 0 against 0; f2: a 0 against 0
    assert {cell: n for cell, n in counts(found).items() if n} == {("5", "3"): 1, ("0", "0"): 2}
    assert found.judged[0].queries == 1


def test_all_graders_together_by_krippendorff() -> None:
    random = np.random.default_rng(3)
    books = []
    labels = random.integers(0, 6, (3, 60))
    for number in range(3):
        passages = {
            f"p{i}": [int(labels[number, i])] for i in range(60) if (i + number) % 5 or not number
        }
        grader = dataclasses.replace(GRADER, model=f"m{number}")
        books.append(make_book(make_query(passages), grader=grader))
    data = labels.astype(float)
    for number in (1, 2):
        data[number, [(i + number) % 5 == 0 for i in range(60)]] = np.nan
    found = find_agreements(books, at_least=[1], layouts=["GRADED"])
    assert [one.units for one in found.joint] == [60]
    rows = statistics(found, rater="alpha of all 3 graders")
    nominal = krippendorff.alpha(data, level_of_measurement="nominal")
    assert rows["alpha"]["value"] == pytest.approx(nominal, abs=1e-9)
    ordinal = krippendorff.alpha(data, level_of_measurement="ordinal")
    assert rows["alpha_ordinal"]["value"] == pytest.approx(ordinal, abs=1e-9)


def decision(number: int, author: str, rating: int | None, blind: bool = False) -> Decision:
    return Decision(number, author, rating, blind=blind)


def test_people_against_grader_and_each_other() -> None:
    """anna decides four cells, two of them blind, and withdraws one; ben decides two."""
    cells = [
        JudgedCell("q1", "i1", "a", 5, (decision(1, "anna", 5), decision(2, "ben", 0))),
        JudgedCell("q1", "i2", "a", 0, (decision(3, "anna", 1, True), decision(4, "anna", 4))),
        JudgedCell("q2", "i3", "b", 4, (decision(5, "anna", 0, True), decision(6, "ben", 0))),
        JudgedCell("q2", "i4", "b", 3, (decision(7, "anna", 3), decision(8, "anna", None))),
        JudgedCell("q2", "i4", "c", None, (decision(9, "anna", 3),)),
    ]
    with_grader, pairs = compare_people(cells, GRADER)
    found = {c.rater.name: c for c in with_grader}
    assert set(found) == {"anna", "anna, blind", "ben"}
    # 5 and 5, 4 and 0, 0 and 4
    assert found["anna"].counts("STRICT").tolist() == [[0, 1], [1, 1]]
    assert (found["anna"].units, found["anna"].queries) == (3, 2)
    # 1 and 0, 0 and 4
    assert found["anna, blind"].counts("LENIENT").tolist() == [[0, 1], [1, 0]]
    (pair,) = pairs
    assert (pair.rater.name, pair.other.name) == ("anna (questions)", "ben (questions)")
    assert pair.counts("STRICT").tolist() == [[1, 0], [1, 0]]
    of_pair = pair.estimates("STRICT")["kappa"]
    assert (of_pair.value, of_pair.low) == (0, None)
    assert of_pair.no_interval == "all ratings of ben (questions) are 0+1+2+3"
    tables = find_agreements(
        [make_book()], people=[pair], against="people", layouts=["STRICT"]
    ).tables()
    captions = [table.caption for table in tables.values()]
    assert (
        captions[-1]
        == "Agreement of anna (questions) against ben (questions): 2 cells of 2 queries"
    )
    nobody = find_agreements([make_book()], against="people")
    assert "no cell has a decision" in nobody.notes[-1]


# ---- what is undefined ---------------------------------------------------------------------------


def only(book: Gradebook, **options: Any) -> dict[str, dict[str, Any]]:
    return statistics(find_agreements([book], at_least=[1], **options))


def reasons(
    found: dict[str, dict[str, Any]], names: Sequence[str], value: float | None = None
) -> set[str]:
    """Return the reason for a missing value, or for a missing interval."""
    assert {found[name]["value"] for name in names} == {value}
    return {found[name]["reason"] for name in names}


KAPPAS = ("kappa", "kappa_linear", "kappa_quadratic")


def test_no_judgments() -> None:
    found = find_agreements([make_book(make_query(RATINGS))])
    assert not found.judged
    (table,) = found.tables().values()
    assert table.notes == ("Agreement with judgments is undefined, because no passage has one.",)


ALL = tuple(STATISTICS)


@pytest.mark.parametrize(
    ("grades", "judged", "options", "names", "value", "reason"),
    [
        (
            *({"a": [None], "b": [3]}, {"a": 2}, {"layouts": ["STRICT"]}, ALL, None),
            "model:self-rating and the judgments have no passages in common",
        ),
        (
            *({"a": [None], "b": [None]}, {"a": 2, "b": 0}, {"layouts": ["STRICT"]}, ALL, None),
            "there are no labels of model:self-rating",
        ),
        # what is expected by chance is all that there is: kappa is 0
        (
            *({"a": [3], "b": [3]}, {"a": 2, "b": 0}, {"layouts": ["STRICT"]}, KAPPAS, 0),
            "all labels of model:self-rating are 0+1+2+3",
        ),
        # agreement is expected to be complete (p_e = 1): only then kappa is undefined
        (
            *({"a": [5], "b": [5]}, {"a": 2, "b": 2}, {"layouts": ["STRICT"]}, KAPPAS, None),
            "all labels of model:self-rating are 4+5",
        ),
        (
            *({"a": [3], "b": [0]}, {"a": 1, "b": 1}, {"layouts": ["GRADED"]}, ALL, None),
            "labels go from 0 to 5, judgments are all 1",
        ),
        (
            *({"a": [3], "b": [0]}, {"a": 1, "b": 1}, {"layouts": ["LENIENT"]}, KAPPAS, 0),
            "all judgments are 1",
        ),
        (
            *({"a": [3], "b": [0]}, {"a": 2, "b": 0}),
            *({"layouts": ["STRICT"], "min_rating": 5}, KAPPAS, 0),
            "all labels of model:self-rating are 0+1+2+3+4",
        ),
    ],
)
def test_why_statistics_are_undefined_or_have_no_interval(
    grades: dict[str, list[int | None]],
    judged: dict[str, int],
    options: dict[str, Any],
    names: Sequence[str],
    value: float | None,
    reason: str,
) -> None:
    found = only(make_book(make_query(grades, judged)), **options)
    assert reasons(found, names, value) == {reason}


@pytest.mark.parametrize("cut", [-5, 0, 3])
def test_a_cut_off_the_scale_of_the_judgments_is_refused(cut: int) -> None:
    book = make_book(make_query({"a": [3], "b": [0]}, {"a": 2, "b": 0}))
    with pytest.raises(InputError, match=f"judgment {cut} .* Choose from 1 to 2"):
        find_agreements([book], min_relevant=[1, cut])


def test_judgments_that_are_all_alike_may_be_the_cut() -> None:
    book = make_book(make_query({"a": [3], "b": [0]}, {"a": 1, "b": 1}))
    found = only(book, layouts=["LENIENT"], min_relevant=[1])
    # (1/2 - 3/8) / (1 - 3/8)
    assert found["ac1"]["value"] == pytest.approx(0.2)


def test_labels_by_more_ratings_than_there_are_items_are_noted() -> None:
    book = make_book(make_query(RATINGS, JUDGED))
    assert find_agreements([book], at_least=[1, 3, 9, 12]).notes[-1] == (
        "model:self-rating: the 9th best rating, 12th best rating is 0 for every passage, "
        "because no query has more than 3 items (--at-least)."
    )
    assert not find_agreements([book], at_least=[1, 3]).notes[1:]


def test_labels_are_not_compared_against_just_anything() -> None:
    with pytest.raises(InputError, match=r"'judgement'.* judgments, graders, people"):
        find_agreements([make_book(make_query(RATINGS, JUDGED))], against="judgement")  # type: ignore[arg-type]


def test_one_query_has_a_value_and_no_interval() -> None:
    found = only(make_book(make_query(RATINGS, JUDGED)), layouts=["LENIENT"])
    assert found["kappa"]["value"] == pytest.approx(0.5)
    assert (found["kappa"]["low"], found["kappa"]["reason"]) == (None, "there is only one query")
    made = find_agreements(
        [make_book(make_query(RATINGS, JUDGED))], at_least=[1], layouts=["LENIENT"]
    )
    confusion, _ = made.tables().values()
    assert confusion.rows[0][-1] is None
    assert confusion.notes == ("LENIENT (kappa): no interval, because there is only one query.",)


def test_the_reason_of_an_undefined_kappa_is_printed_once() -> None:
    found = find_agreements([make_book(make_query(RATINGS, JUDGED))], at_least=[1, 2])
    notes = [note for table in found.tables().values() for note in table.notes]
    (undefined,) = [note for note in notes if note.startswith("GRADED") and "undefined" in note]
    assert "because labels go from 0 to 5, judgments go from 0 to " in undefined


def test_scales_that_do_not_fit() -> None:
    verdicts = {passage: [int((row[0] or 0) > 0)] for passage, row in RATINGS.items()}
    books = [
        make_book(make_query(RATINGS)),
        make_book(make_query(verdicts), grader=VERDICTS),
    ]
    found = find_agreements(books, at_least=[1])
    graded = statistics(found, layout="GRADED")
    assert reasons(graded, list(graded)) == {
        "labels of model:self-rating go from 0 to 5, labels of model:answering go from 0 to 1"
    }
    merge = statistics(found, layout="MERGE")
    assert reasons(merge, list(merge)) == {
        "labels of model:answering have no group between the lowest and the highest"
    }
    lenient = statistics(found, layout="LENIENT")
    assert lenient["kappa"]["value"] == 1


def test_binary_judgments_are_cut_at_one() -> None:
    scale = judgment_scale(np.array([0, 1, 1]), 1)
    assert scale.groups("STRICT") == ((0,), (1,))
    found = find_agreements([make_book(make_query(RATINGS, {"a": 1, "b": 0}))], at_least=[1])
    assert {block.min_relevant for block in found.judged} == {1}
    merge = statistics(found, layout="MERGE")
    assert reasons(merge, list(merge)) == {
        "judgments have no group between the lowest and the highest"
    }


def test_a_grader_whose_judges_have_a_longer_scale_keeps_its_key() -> None:
    judged = {"a": 3, "b": 2, "c": 1, "d": 0, "e": -2}
    ratings = {passage: [max(0, label)] for passage, label in judged.items()}
    book = make_book(make_query(ratings, judged), grader=DIRECT)
    assert {block.rater_key for block in find_agreements([book]).judged} == {DIRECT.key}


def test_labels_of_raters_ignore_items_to_avoid() -> None:
    query = make_query({"a": [0, 5], "b": [4, 0]}, {"a": 0, "b": 1})
    signed = dataclasses.replace(query, weights=np.array([1.0, -1.0]))
    (labels,) = rated_units([make_book(signed)], (1,), judged=True).labels[1]
    assert labels.tolist() == [0, 4]
