"""Ranking and diversity measures: by hand, and against those who compute them."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gradebooks import Cells, dl19, make_book, make_query, make_ranking

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.measures.cover import cover
from exampp.measures.exams import SubtopicChoice
from exampp.measures.formulas import ir_measure, label_formula, provider_scores, trec_name
from exampp.measures.leaderboard import evaluate
from exampp.measures.names import as_measures, parse_measure
from exampp.measures.qrels import Labelling, exam_labels
from exampp.measures.rankings import contradictions, with_runs
from exampp.measures.scores import score
from exampp.measures.values import MeasureColumn, MeasuredSystems
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity

N = None


def scored(
    book: Gradebook,
    *measures: str,
    thresholds: Sequence[int] = (1,),
    subtopics: SubtopicChoice = "auto",
    labelling: Labelling | None = None,
) -> MeasuredSystems:
    return score(book, as_measures(measures), thresholds, subtopics=subtopics, labelling=labelling)


def only(book: Gradebook, measure: str, threshold: int = 1) -> MeasureColumn:
    (found,) = scored(book, measure, thresholds=(threshold,)).columns
    return found


def means(found: MeasureColumn) -> list[float | None]:
    return [mean.mean for mean in found.values.means()]


# Labels: p0 5, p1 3, p2 0, p3 none, p4 4.
LABELS: Cells = [[5], [3], [0], [N], [4]]


def simple() -> Gradebook:
    return make_book(
        make_query(LABELS, make_ranking("a", [3, 0, 2, 1]), make_ranking("b", [2]), query_id="q1"),
        make_query(LABELS, make_ranking("a", [4]), query_id="q2"),
        systems=["a", "b", "silent"],
    )


@pytest.mark.parametrize(
    ("measure", "threshold", "values"),
    [
        # q1: a reads - 5 0 3. q2: a reads 4. Relevant at 3: p0 p1 p4; at 4: p0 p4.
        ("P@4", 3, [(2 / 4 + 1 / 4) / 2, 0, 0]),
        ("P@4", 4, [(1 / 4 + 1 / 4) / 2, 0, 0]),
        ("P(rel=4)@4", 3, [(1 / 4 + 1 / 4) / 2, 0, 0]),
        ("RR", 3, [(1 / 2 + 1) / 2, 0, 0]),
        ("RR@1", 3, [(0 + 1) / 2, 0, 0]),
        ("RR@2", 3, [(1 / 2 + 1) / 2, 0, 0]),
        ("AP", 3, [((1 / 2 + 2 / 4) / 3 + (1 / 1) / 3) / 2, 0, 0]),
        ("R@3", 3, [(1 / 3 + 1 / 3) / 2, 0, 0]),
        ("Success@1", 3, [1 / 2, 0, 0]),
        # The share of labels in the first 2: 1 of 2, 1 of 1; b 1 of 1 and nothing.
        ("Judged@2", 3, [(1 / 2 + 1) / 2, 1 / 2, 0]),
        ("RBP(p=0.5)", 3, [((0.5 * (0.5 + 0.125)) + 0.5) / 2, 0, 0]),
        ("RBP(p=0.5)@2", 3, [((0.5 * 0.5) + 0.5) / 2, 0, 0]),
        # (2^g - 1) / 32: 5 -> 31/32, 3 -> 7/32, 4 -> 15/32.
        ("ERR", 3, [(31 / 32 / 2 + 1 / 32 * 7 / 32 / 4 + 15 / 32) / 2, 0, 0]),
        ("ERR@3", 3, [(31 / 32 / 2 + 15 / 32) / 2, 0, 0]),
        ("NumRet", 3, [5, 1, 0]),
        ("NumRelRet", 4, [2, 0, 0]),
        ("NumRet(rel=3)", 4, [3, 0, 0]),
        ("NumRel", 4, [4, 2, 0]),
        ("NumQ", 4, [2, 1, 0]),
    ],
)
def test_measures_by_hand(measure: str, threshold: int, values: list[float]) -> None:
    # NumRel of a query that a system misses is 0, as ir_measures has it.
    assert means(only(simple(), measure, threshold)) == pytest.approx(values)


def test_ndcg_by_hand() -> None:
    found = only(simple(), "nDCG@3")
    ideal = 5 + 4 / math.log2(3) + 3 / 2
    assert means(found)[0] == pytest.approx((5 / math.log2(3) / ideal + 4 / ideal) / 2)
    assert found.min_rating is None
    steep = only(simple(), "nDCG(dcg='exp-log2')@3")
    ideal = 31 + 15 / math.log2(3) + 7 / 2
    assert means(steep)[0] == pytest.approx((31 / math.log2(3) / ideal + 15 / ideal) / 2)
    mapped = only(simple(), "nDCG(gains={5:1,4:1,3:0})@3")
    ideal = 1 + 1 / math.log2(3)
    assert means(mapped)[0] == pytest.approx((1 / math.log2(3) / ideal + 1 / ideal) / 2)


def test_thresholds_in_one_pass() -> None:
    result = scored(simple(), "P@4", "nDCG@3", "P(rel=2)@4", "RR", thresholds=(3, 4))
    assert result.unanswered == (0, 1, 2)
    assert [(str(s.measure), s.min_rating) for s in result.columns] == [
        ("P@4", 3),
        ("P@4", 4),
        ("nDCG@3", None),
        ("P(rel=2)@4", None),
        ("RR", 3),
        ("RR", 4),
    ]


def test_unjudged_shares_follow_the_cutoff() -> None:
    # a reads p3 p0 p2 p1 and p4: of the first passages 1 of 2 has no label, of all 1 of 5.
    assert only(simple(), "P@1").ungraded == (1 / 2, 0.0, None)
    assert only(simple(), "AP").ungraded == (1 / 5, 0.0, None)


def test_queries_without_labels_are_left_out_and_named() -> None:
    book = make_book(
        make_query([[N]], make_ranking("a", [0]), query_id="ungraded"),
        make_query([[]], make_ranking("a", [0]), query_id="itemless"),
        make_query([[5]], make_ranking("a", [0]), query_id="q"),
        make_query([[2]], make_ranking("a", [0]), query_id="hopeless"),
    )
    result = scored(book, "P@1", "nDCG@1", "StRecall@1", thresholds=(3,))
    assert result.query_ids == ("q", "hopeless")
    assert result.left_out == ("itemless", "ungraded")
    assert [found.without_relevant for found in result.columns] == [1, 0, 1]
    assert means(result.columns[0]) == [1 / 2]


def test_nothing_to_score() -> None:
    empty = scored(make_book(systems=["a"]), "P@1", "nDCG", "ERR@3", "Compat", "StRecall@5")
    assert [means(found) for found in empty.columns] == [[None]] * 5
    unranked = scored(make_book(make_query([[5]])), "P@1", "ERR@3", "Judged@1", "Compat")
    assert [means(found) for found in unranked.columns] == [[]] * 4


def test_the_order_is_that_of_trec_eval() -> None:
    # Ties go by id descending: "b" before "a"; and 1 + 1e-8 is 1 in 32 bits, a tie with 1.
    def first(scores: Sequence[float]) -> float | None:
        ranking = make_ranking("s", [0, 1], scores=scores)
        book = make_book(make_query([[5], [0]], ranking, passage_ids=["a", "b"]))
        return means(only(book, "P@1"))[0]

    assert first([2.0, 1.0]) == 1
    assert first([1.0, 1.0]) == 0
    assert first([1.0 + 1e-8, 1.0]) == 0
    assert first([1.0 + 1e-6, 1.0]) == 1
    assert first([1.0, 2.0]) == 0
    assert first([1e300, 1e299]) == 0
    # Without scores the ranks stand.
    assert first([math.nan, math.nan]) == 1


def test_scores_against_ranks_are_noticed() -> None:
    fine = make_ranking("s", [0, 1], scores=[1.0, 1.0])
    wrong = make_ranking("t", [0, 1], scores=[1.0, 2.0])
    scoreless = make_ranking("u", [0, 1], scores=[math.nan, math.nan])
    assert contradictions(make_book(make_query([[5], [0]], fine, wrong, scoreless))) == 1


def subtopiced() -> Gradebook:
    return make_book(
        make_query(
            [[5, 0], [0, 5], [0, 0]],
            make_ranking("car", [0, 2], subtopic=1),
            make_ranking("car", [2, 1], subtopic=2),
            make_ranking("flat", [1, 0]),
            query_id="q",
            subtopics=["f1", "f2"],
            item_subtopics=[1, 2],
        )
    )


def test_subtopic_rankings_can_be_pooled() -> None:
    result = scored(subtopiced(), "P@2", "StRecall@2", subtopics="pool")
    assert result.query_ids == ("q",)
    # car reads p0 p2 (p1): one of two items; flat both.
    assert result.columns[0].values.values.tolist() == [[1 / 2], [1.0]]
    assert result.columns[1].values.values.tolist() == [[1 / 2], [1.0]]


@pytest.mark.parametrize(
    ("labelling", "measure", "value"),
    [
        # p0: 5 4 0, p1: 3 3 3, p2: 0 0 0, ranked in this order.
        (Labelling(), "P@3", 1 / 3),
        (Labelling(at_least=2), "P@3", 1 / 3),
        (Labelling(at_least=3), "P@3", 0),
        (Labelling("count"), "P@3", 1 / 3),
        (Labelling("count", at_least=2), "P@3", 1 / 3),
        (Labelling("count", at_least=3), "P@3", 0),
        (Labelling("count"), "P(rel=3)@3", 0),
        (Labelling(gains="binary"), "P@3", 1 / 3),
        (Labelling(gains="binary"), "nDCG@3", 1),
        (Labelling(gains="above"), "RBP(p=0.5)", 0.5),
        (Labelling(gains="binary"), "ERR", 1 / 2),
        (Labelling("count"), "ERR", 3 / 8),
        (Labelling("count"), "StRecall@3", 2 / 3),
    ],
)
def test_labellings(labelling: Labelling, measure: str, value: float) -> None:
    """At threshold 4: a passage is relevant where `at_least` items reach 4."""
    table = [[5, 4, 0], [3, 3, 3], [0, 0, 0]]
    book = make_book(make_query(table, make_ranking("s", [0, 1, 2])))
    (found,) = scored(book, measure, thresholds=(4,), labelling=labelling).columns
    assert means(found) == pytest.approx([value])
    assert found.min_rating == 4


def test_strecall_is_cover() -> None:
    """Subtopic recall over the items is Cover, if uncovered items stay in the denominator."""
    book = make_book(
        make_query(
            [[5, 0, 0], [0, 4, 0], [0, 0, 1]],
            make_ranking("a", [0, 1]),
            make_ranking("b", [2]),
            query_id="q1",
        ),
        make_query([[3, 0]], make_ranking("a", [0]), query_id="q2"),
    )
    for tau in (1, 3, 5):
        covered = cover(book, (tau,), k=20).of("Cover")[0].values.values
        recall = only(book, "StRecall@20", tau).values.values
        assert recall == pytest.approx(covered, abs=1e-6)


def test_what_nobody_can_compute_is_refused() -> None:
    for measure, says in (
        ("BPM(max_rel=5)@10", "cannot compute BPM"),
        ("nDCG(dcg='exp-log2',judged_only=True)@5", "cannot compute nDCG"),
        # The provider of ir_measures divides by the number of nonrelevant passages.
        ("Accuracy", "cannot compute Accuracy"),
    ):
        book = make_book(make_query([[5]], make_ranking("a", [0])))
        with pytest.raises(InputError, match=says):
            only(book, measure)


NAIVE = """
    P@3 P@20 AP AP@3 RR Rprec R@3 nDCG nDCG@3 Bpref Success@2 SetP SetR SetAP infAP IPrec@0.3
    SetP(relative=True) P(judged_only=True)@3 AP(judged_only=True) RR(judged_only=True) NumRet
"""


@st.composite
def runs(draw: st.DrawFn) -> tuple[Gradebook, dict[str, dict[str, list[tuple[str, float]]]]]:
    ids = [f"d{i}" for i in range(8)]
    queries = []
    for name in ("q1", "q2", "q3"):
        cells = st.one_of(st.none(), st.integers(0, 5))
        table = draw(
            st.lists(cells, min_size=6, max_size=6).filter(lambda c: any(x is not None for x in c))
        )
        queries.append(make_query([[c] for c in table], query_id=name, passage_ids=ids[:6]))
    scores = st.sampled_from([0.0, 1.0, 1.0 + 1e-8, 1.0 + 1e-6, -2.0, 1e40, 3.5])
    run = st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]),
        st.lists(st.tuples(st.sampled_from(ids), scores), min_size=1, unique_by=lambda e: e[0]),
    )
    return make_book(*queries), {"a": draw(run), "b": draw(run)}


# The first call imports pytrec_eval.
@given(runs(), st.integers(1, 5))
def test_against_pytrec_eval_called_naively(
    drawn: tuple[Gradebook, dict[str, dict[str, list[tuple[str, float]]]]], tau: int
) -> None:
    import pytrec_eval

    graded, found = drawn
    book = with_runs(graded, found)
    judged: dict[str, dict[str, int]] = {}
    for query_id, passage_id, label in exam_labels(graded):
        judged.setdefault(query_id, {})[passage_id] = label
    result = scored(book, *NAIVE.split(), thresholds=(tau,))
    for ours in result.columns:
        name = trec_name(ours.measure) or ""
        only_judged = bool(ours.measure.param("judged_only"))
        naive = pytrec_eval.RelevanceEvaluator(judged, {name}, tau, only_judged)
        for row, system in enumerate(book.systems):
            theirs = naive.evaluate({q: dict(entries) for q, entries in found[system].items()})
            for column, query_id in enumerate(result.query_ids):
                value = theirs.get(query_id, {}).get(name, 0.0)
                assert ours.values.values[row, column] == value, (str(ours.measure), query_id)


def _by_ir_measures(book: Gradebook, measure: str, tau: int) -> np.ndarray[tuple[int, int]]:
    """The provider's own values, through its generic entrance."""
    rows = [(row.query_id, row.passage_id, row.label, "0") for row in exam_labels(book)]
    runs_of = [
        {
            query.query_id: {
                query.passage_ids[p]: s
                for r in query.rankings
                if r.system == system
                for p, s in zip(r.passages.tolist(), r.scores.tolist(), strict=True)
            }
            for query in book.queries
        }
        for system in book.systems
    ]
    ids = [query.query_id for query in book.queries]
    return provider_scores(parse_measure(measure).at_level(tau), rows, runs_of, ids)


@pytest.mark.parametrize(
    "measure", ["P@10", "RR@10", "Judged@10", "SetF", "infAP", "Success@5", "IPrec@0.2"]
)
def test_dl19_equals_ir_measures(measure: str) -> None:
    book = dl19()
    some = replace(book, systems=book.systems[:2])
    some = replace(
        some,
        queries=tuple(
            replace(q, rankings=tuple(r for r in q.rankings if r.system in some.systems))
            for q in some.queries
        ),
    )
    theirs = _by_ir_measures(some, measure, 4)
    assert np.array_equal(only(some, measure, 4).values.values, theirs)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
@pytest.mark.parametrize("measure", ["ERR@4", "nDCG(dcg='exp-log2')@4"])
def test_our_own_measures_equal_gdeval_on_its_scale(measure: str) -> None:
    rng = np.random.default_rng(5)
    grader = GraderIdentity("m", "p", "question", highest=4)
    queries = [
        make_query(
            rng.integers(0, 5, (9, 1)).tolist(),
            make_ranking("a", rng.permutation(9)[:6].tolist()),
            make_ranking("b", rng.permutation(9)[:3].tolist()),
            query_id=str(number),
        )
        for number in range(6)
    ]
    book = make_book(*queries, grader=grader)
    theirs = _by_ir_measures(book, measure, 1)
    assert label_formula(parse_measure(measure)) is not None
    # gdeval prints five decimals.
    assert np.allclose(only(book, measure).values.values, theirs, rtol=0, atol=6e-6)


def test_measure_objects_of_ir_measures() -> None:
    import ir_measures

    for text in ("P(rel=2)@10", "nDCG@20", "AP", "IPrec@0.1", "SetP(relative=True)"):
        assert repr(ir_measure(parse_measure(text))) == text
    assert ir_measure(parse_measure("NumRelRet(rel=2)")) == ir_measures.NumRet(rel=2)
    gains = ir_measure(parse_measure("nDCG(gains={0:1})@5"))
    assert gains["gains"] == {0: 1}


# ---- diversity measures over the items of the bank, by hand


def values(book: Gradebook, measure: str, tau: int = 4) -> Any:
    (found,) = score(book, [parse_measure(measure)], (tau,)).columns
    return found.values.values


def hard() -> Gradebook:
    """A bank of four items: p0 covers two, p1 one of these again, and nothing the other two."""
    return make_book(
        make_query(
            [[5, 4, 0, 0], [4, 0, 1, 0], [0, 0, 0, 3]],
            make_ranking("a", [0, 1, 2]),
            make_ranking("b", [2, 1]),
        )
    )


LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("measure", "first", "second"),
    [
        ("StRecall@3", 2 / 4, 1 / 4),
        # gains of a: 2, 1/2, 0 and of b: 0, 1; ideal: p0, then an item of its own twice, then p1
        (
            "alpha_nDCG@5",
            (2 + 0.5 / LOG3) / (2 + 1 / LOG3 + 1 / 2 + 0.5 / math.log2(5)),
            (1 / LOG3) / (2 + 1 / LOG3 + 1 / 2 + 0.5 / math.log2(5)),
        ),
        ("alpha_nDCG@1", 2 / 2, 0),
        # the most there can be: 4 items again and again, each time worth half
        ("ERR_IA@2", (2 + 0.5 / 2) / (4 * (1 + 0.5 / 2)), (1 / 2) / (4 * (1 + 0.5 / 2))),
        ("ERR_IA@1", 2 / 4, 0),
        ("alpha_DCG@1", 2 / 4, 0),
        ("NRBP", (1 - 0.5 * 0.5) / 4 * (2 + 0.5 * 0.5), (1 - 0.5 * 0.5) / 4 * 0.5),
        # with alpha 0 and beta .8 nothing is worth less the second time
        (
            "NRBP(alpha=0,beta=0.8)",
            (1 - 0.8) / 4 * (2 + 0.8),
            (1 - 0.8) / 4 * 0.8,
        ),
        # over an ideal ranking: p0, then an item of its own
        ("nERR_IA@2", (2 + 0.5 / 2) / (2 + 1 / 2), (1 / 2) / (2 + 1 / 2)),
        ("alpha_nDCG(alpha=1)@1", 1, 0),
        ("P_IA@2", 3 / (4 * 2), 1 / (4 * 2)),
        # item 0: precisions 1 and 1, item 1: 1, the others 0
        ("AP_IA", (1 + 1) / 4, (1 / 2 / 2) / 4),
    ],
)
def test_by_hand(measure: str, first: float, second: float) -> None:
    assert values(hard(), measure)[:, 0].tolist() == pytest.approx([first, second], abs=1e-9)


def test_subtopic_recall_is_cover_on_dl19() -> None:
    book = dl19()
    recall = values(book, "StRecall@20", 5)
    assert recall == pytest.approx(cover(book, (5,)).of("Cover")[0].values.values, abs=1e-9)
    for measure in ("alpha_nDCG@20", "ERR_IA@20", "NRBP"):
        found = values(book, measure, 5)
        assert found.shape == (37, 43)
        assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def test_a_query_without_results_is_0() -> None:
    book = make_book(
        make_query([[5]], make_ranking("a", [0]), make_ranking("b", [0]), query_id="q1"),
        make_query([[5]], make_ranking("a", [0]), query_id="q2"),
        make_query([[1]], make_ranking("a", [0]), make_ranking("b", [0]), query_id="q3"),
    )
    for measure in ("alpha_nDCG@5", "ERR_IA@1", "NRBP", "StRecall@3"):
        (found,) = score(book, [parse_measure(measure)], (4,)).columns
        assert (found.values.values > 0).tolist() == [[True, True, False], [True, False, False]]
        assert found.values.counts.all()
        assert found.without_relevant == 1


def test_items_count_alike_and_those_without_weight_not_at_all() -> None:
    table = [[5, 0, 0], [0, 5, 5]]
    weights = [3.0, 1.0, 0.0]
    book = make_book(
        make_query(table, make_ranking("s", [0]), weights=weights, query_id="q1"),
        make_query([[5]], make_ranking("s", [0]), weights=[0.0], query_id="q2"),
    )
    scored = score(book, [parse_measure("StRecall@5")], (4,))
    assert scored.columns[0].values.values.tolist() == [[0.5]]
    assert scored.columns[0].values.counts.tolist() == [[True]]
    assert (scored.query_ids, scored.left_out) == (("q1",), ("q2",))
    board = evaluate(book, ["StRecall@5", "Cover@5"], [4])
    assert board.scores("StRecall@5") == {"s": 0.5}
    assert board.scores("Cover@5") == {"s": 0.75}
    note = "Weights of items are ignored: StRecall@5."
    assert note in board.notes
    assert not [n for n in evaluate(hard(), ["StRecall@5"], [4]).notes if "count alike" in n]


def test_a_bank_of_one_item_is_no_reason_to_warn(capsys: pytest.CaptureFixture[str]) -> None:
    book = make_book(make_query([[5]], make_ranking("s", [0])))
    assert values(book, "alpha_nDCG@5").tolist() == [[1.0]]
    assert capsys.readouterr().err == ""


def test_without_pyndeval_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyndeval", None)
    with pytest.raises(InputError) as caught:
        values(hard(), "NRBP")
    assert str(caught.value) == (
        "the diversity measure NRBP needs pyndeval. Install it: " + install_command("diversity")
    )


def test_ndeval_reads_no_more_than_20_passages() -> None:
    with pytest.raises(InputError, match=r"cannot compute alpha_nDCG@50.*up to 20"):
        values(hard(), "alpha_nDCG@50")
