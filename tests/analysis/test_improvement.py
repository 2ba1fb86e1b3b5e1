"""Proposals for a bank are chosen by some systems, and confirmed on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from support.planted_items import GOOD, planted_exam

from exampp.analysis import improvement
from exampp.analysis.improvement import (
    ADD,
    RETIRE,
    CellToDecide,
    Improvement,
    ImprovementSettings,
    improve,
    with_weights,
    writing_tasks,
)
from exampp.analysis.item_trials import (
    LEAST,
    CrossFit,
    SelectionRule,
    cross_fit,
    shuffled_books,
    trial_exam,
)
from exampp.errors import InputError
from exampp.measures.cover import item_scores
from exampp.records import BankEntry, Item
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.graders import GradingTarget
from exampp.records.items import BankTexts
from exampp.stats.held_out import draw_halves, related_groups

BAD = {"reversed": 2, "random": 1}


def tried(
    book: Gradebook, officials: Mapping[str, Mapping[str, float]] | None = None
) -> Improvement:
    return improve(book, BankTexts(), min_rating=4, officials=officials)


def kinds(found: Improvement, change: str) -> Counter[str]:
    names = [one.item_id.partition("/")[2] for one in found.proposals if one.change == change]
    return Counter(name.rstrip("0123456789") for name in names)


def test_items_that_distinguish_no_systems_have_no_trial() -> None:
    """All items are covered by all systems on all but four queries."""
    book = planted_exam(1, BAD)
    covered = [replace(one, ratings=np.full_like(one.ratings, 5)) for one in book.queries[4:]]
    found = tried(replace(book, queries=(*book.queries[:4], *covered)))
    assert found.headline == (
        "No trial, because items distinguish systems on 4 queries, and 5 are needed."
    )
    assert not found.is_confirmed
    assert tried(replace(book, queries=(*book.queries[:5], *covered))).lacking == ""


def test_reversed_items_are_retired_and_the_gain_is_confirmed() -> None:
    found = tried(planted_exam(1, BAD))
    assert found.is_confirmed
    retired = kinds(found, RETIRE)
    assert retired["reversed"] >= 60
    assert retired["good"] < retired["reversed"] + retired["random"]
    assert found.headline.startswith(f"Retire {len(found.proposals)} items: ")
    assert found.accepted == found.proposals


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_grades_have_no_gain(seed: int) -> None:
    """Copies of a system share its errors; in different halves they would confirm each other."""
    random = np.random.default_rng(seed)
    book = planted_exam(seed, {}, systems=20, copies=10)
    shuffled = [replace(one, ratings=random.permuted(one.ratings, axis=0)) for one in book.queries]
    found = tried(replace(book, queries=tuple(shuffled)))
    assert not found.is_confirmed
    assert not found.accepted
    assert found.headline.startswith("No ")


def test_gain_as_large_as_by_chance_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Related systems in different halves confirm each other; so they do with other grades."""
    monkeypatch.setattr(improvement, "SIMILAR", 2.0)
    random = np.random.default_rng(0)
    book = planted_exam(0, {}, systems=20, copies=10)
    shuffled = [replace(one, ratings=random.permuted(one.ratings, axis=0)) for one in book.queries]
    found = tried(replace(book, queries=tuple(shuffled)))
    gain = found.gains[0]
    assert (gain.difference.low or 0) > 0
    assert found.shuffled[-1] >= gain.after - gain.before
    assert max(found.shuffled[:-1], default=0) < gain.after - gain.before
    assert not found.accepted
    assert found.headline.startswith("No gain is confirmed: ")
    assert found.headline.endswith(", but shuffled grades have a gain as large.")


@pytest.mark.parametrize(("level", "exams"), [(0.95, 19), (0.9, 9)])
def test_a_confirmed_gain_is_larger_than_all_by_chance(level: float, exams: int) -> None:
    book = planted_exam(1, BAD)
    settings = ImprovementSettings(level=level)
    found = improve(book, BankTexts(), min_rating=4, settings=settings)
    assert found.is_confirmed
    assert len(found.shuffled) == exams
    assert max(found.shuffled) < found.gains[0].after - found.gains[0].before


def test_ungraded_cells_stay_ungraded_when_grades_are_shuffled() -> None:
    query = planted_exam(1, BAD, queries=1).queries[0]
    ratings = query.ratings.copy()
    ratings[::3, ::2] = MISSING
    book = replace(planted_exam(1, BAD, queries=1), queries=(replace(query, ratings=ratings),))
    one, other = (book.queries[0] for book in islice(shuffled_books(book, 0), 2))
    for shuffled in (one, other):
        assert ((shuffled.ratings == MISSING) == (ratings == MISSING)).all()
        assert (np.sort(shuffled.ratings, axis=0) == np.sort(ratings, axis=0)).all()
    assert (one.ratings != other.ratings).any()


def test_held_out_systems_have_no_part_in_the_choice() -> None:
    """Select the same items for any rankings of the held-out systems."""
    exam = trial_exam(planted_exam(2, BAD), 4, 20)
    chosen_by = np.arange(15)
    credit = exam.scores.credit.copy()
    credit[15:] = 1 - credit[15:]
    pools = []
    for pool in exam.pools:
        returned = pool.returned.copy()
        returned[15:] = ~returned[15:]
        pools.append(pool._replace(returned=returned))
    other = replace(exam, scores=replace(exam.scores, credit=credit), pools=tuple(pools))
    for way in exam.selections:
        one = exam.select(way, exam.statistics(chosen_by))
        assert (one == other.select(way, other.statistics(chosen_by))).all()


def test_queries_have_no_part_in_the_choice_of_their_selection() -> None:
    """The selection of a query is the one with the highest agreement on the other folds."""
    exam = trial_exam(planted_exam(3, BAD), 4, 20)
    halves = draw_halves(related_groups(exam.similarity(), 0.4), 3, 0)
    fit = cross_fit(exam, halves, 0)
    fold = np.random.default_rng(0).permutation(np.arange(40) % 5)
    for part in range(5):
        others = np.flatnonzero(fold != part)
        values = [_mean_agreement(fit, at, others) for at in range(len(fit.selections))]
        assert set(fit.chosen[fold == part]) == {int(np.argmax(values))}


def _mean_agreement(fit: CrossFit, at: int, queries: np.ndarray) -> float:
    """The agreement of some queries, counted pair by pair."""
    values = []
    for half in fit.halves:
        scores = np.round(half.scores[at][:, queries], 9)
        one, other = np.triu_indices(len(scores), 1)
        signs = np.sign(scores[one] - scores[other])
        products = signs.T @ signs / len(one)
        number = len(queries)
        values.append((products.sum() - np.trace(products)) / number / (number - 1))
    return float(np.mean(values))


def test_an_official_leaderboard_changes_no_proposal() -> None:
    book = planted_exam(4, BAD)
    ranks = {name: at for at, name in enumerate(book.systems)}
    plain, confirmed = tried(book), tried(book, officials={"official": ranks})
    assert plain.proposals == confirmed.proposals
    assert [one.measure for one in confirmed.gains] == ["agreement of queries", "tau with official"]
    assert plain.gains[0] == confirmed.gains[0]


def test_a_leaderboard_of_other_systems_is_named() -> None:
    found = tried(planted_exam(4, BAD), officials={"other": {"x": 1, "y": 2}})
    assert [one.measure for one in found.gains] == ["agreement of queries"]
    (one,) = found.notes
    assert str(one) == "No tau with other: fewer than 3 held-out systems are on it."


def test_tau_with_an_official_leaderboard_by_hand() -> None:
    """With the official order of the scores themselves, tau of all systems is 1 before."""
    book = planted_exam(5, {})
    scores = item_scores(book, 4)
    order = np.argsort(-scores.cover())
    ranks = {scores.systems[system]: at for at, system in enumerate(order.tolist())}
    found = tried(book, officials={"own": ranks})
    assert found.gains[1].before == pytest.approx(1, abs=0.02)


def test_items_on_trial_count_only_when_added() -> None:
    book = planted_exam(6, {"random": 6}, trial=(GOOD, GOOD, "random"))
    found = tried(book)
    added = kinds(found, ADD)
    assert added["good-trial"] > 40 > 20 > added["random-trial"]
    assert "120 items on trial" in found.caption
    plain = planted_exam(6, {"random": 6})
    assert trial_exam(book, 4, 20).of_queries(
        np.arange(30), trial_exam(book, 4, 20).in_force
    ) == pytest.approx(
        trial_exam(plain, 4, 20).of_queries(np.arange(30), np.ones(400, np.bool_)), abs=1
    )


def test_ungraded_items_on_trial_are_not_added() -> None:
    book = planted_exam(6, {"random": 6}, trial=(GOOD, GOOD))

    def pending(query: QueryGrades) -> QueryGrades:
        ratings = query.ratings.copy()
        ratings[:50, query.weights == 0] = np.iinfo(np.int16).min
        return replace(query, ratings=ratings)

    found = tried(replace(book, queries=tuple(map(pending, book.queries))))
    assert not kinds(found, ADD)
    assert [one.code for one in found.notes] == ["items-ungraded"]


def test_sealed_items_stay() -> None:
    book = planted_exam(1, BAD)
    sealed = frozenset((one.query_id, name) for one in book.queries for name in one.item_ids[1:3])
    found = improve(book, BankTexts(sealed=sealed), min_rating=4)
    assert found.proposals
    assert not {(one.query_id, one.item_id) for one in found.proposals} & sealed


def test_every_query_keeps_some_items() -> None:
    exam = trial_exam(planted_exam(7, {"reversed": 9}), 4, 20)
    selected = exam.select(SelectionRule("mean below 0"), exam.statistics(np.arange(30)))
    assert np.bincount(exam.scores.query[selected]).min() >= LEAST


def texts(book: Gradebook, written: dict[tuple[str, str], Item]) -> BankTexts:
    entries = [
        BankEntry(
            one.query_id,
            tuple(
                written.get((one.query_id, name), Item(name, one.query_id, f"What is {name}?"))
                for name in one.item_ids
            ),
        )
        for one in book.queries
    ]
    return BankTexts(tuple(entries))


def test_systems_shown_to_the_writer_are_not_held_out() -> None:
    """And systems of the writer's family are named."""
    book = planted_exam(6, {"random": 6}, trial=(GOOD,))
    names = {name: "gpt-5-rag" if name == "s07" else name for name in book.systems}
    queries = [
        replace(one, rankings=tuple(replace(r, system=names[r.system]) for r in one.rankings))
        for one in book.queries
    ]
    book = replace(book, queries=tuple(queries), systems=tuple(sorted(names.values())))
    shown = [f"s{at:02}" for at in range(10, 22)]
    written = {
        (one.query_id, name): Item(
            name,
            one.query_id,
            f"Which {name}?",
            weight=0.0,
            extra={"improves": shown, "generated": {"machine_made": True, "model": "gpt-4o"}},
        )
        for one in book.queries
        for name in one.item_ids
        if "trial" in name
    }
    found = improve(book, texts(book, written), min_rating=4)
    warned = [one for one in found.notes if one.code == "improve-family"]
    assert "gpt-5-rag" in warned[0]
    assert "gpt-4o" in warned[0]
    assert warned[0].endswith("are GPT models.")
    exam = trial_exam(book, 4, 20)
    from exampp.analysis.improvement import _halves

    halves = _halves(exam, [[at] for at in range(30)], set(shown), ImprovementSettings())
    assert [len(one.held_out) for one in halves] == [18]
    assert not {exam.scores.systems[at] for at in halves[0].held_out} & set(shown)


@pytest.mark.parametrize(
    ("systems", "queries", "copies", "reason"),
    [
        (30, 4, 0, "the exam has 4 queries, and 5 are needed"),
        (5, 40, 0, "5 systems cannot be divided into two unrelated halves"),
        (2, 40, 20, "22 systems cannot be divided into two unrelated halves"),
    ],
)
def test_no_trial_without_queries_or_unrelated_systems(
    systems: int, queries: int, copies: int, reason: str
) -> None:
    found = tried(planted_exam(1, BAD, systems=systems, queries=queries, copies=copies))
    assert reason in found.headline
    assert not found.is_confirmed
    assert found.tables()["gain"].verdict == found.headline


def test_a_book_follows_its_proposals() -> None:
    book = planted_exam(1, BAD)
    found = tried(book)
    followed = with_weights(book, found.proposals)
    retired = {(one.query_id, one.item_id) for one in found.proposals}
    for query in followed.queries:
        for name, weight in zip(query.item_ids, query.weights.tolist(), strict=True):
            assert weight == float((query.query_id, name) not in retired)


def test_records_have_all_proposals_and_selections() -> None:
    found = tried(planted_exam(1, BAD))
    records = found.records()
    assert len(records["proposals"].rows) == len(found.proposals) > 20
    assert len(records["selections"].rows) == 5
    assert sum(int(str(row[2])) for row in records["selections"].rows) == 5
    assert len(found.tables()["proposals"].rows) == 20


def test_cells_to_decide_are_of_the_changed_exam_only_where_there_are_changes() -> None:
    cell = CellToDecide("q", "i", "p", 3, 2, 0.5)
    found = replace(tried(planted_exam(1, BAD)), decisions=(cell,))
    assert found.tables()["decisions"].caption.endswith("with the proposed changes")
    unchanged = replace(found, proposals=())
    assert unchanged.tables()["decisions"].caption == "Cells to decide first"


@pytest.mark.parametrize(("splits", "seed", "level"), [(0, 0, 0.95), (10, -1, 0.95), (10, 0, 1.0)])
def test_invalid_settings_are_refused(splits: int, seed: int, level: float) -> None:
    with pytest.raises(InputError):
        ImprovementSettings(splits, seed, level)


def test_items_on_trial_change_nothing_for_their_writer() -> None:
    """So an interrupted writer continues with the same tasks; its own texts are no faults."""
    book = planted_exam(6, {"saturated": 4, "random": 2}, trial=(GOOD, "random"))
    queries = [
        replace(
            one,
            item_ids=one.item_ids[:10],
            item_subtopics=one.item_subtopics[:10],
            weights=one.weights[:10],
            ratings=one.ratings[:, :10],
        )
        for one in book.queries
    ]
    plain = replace(book, queries=tuple(queries))
    copies = {
        (one.query_id, name): Item(name, one.query_id, f"What is {one.item_ids[0]}?", weight=0.0)
        for one in book.queries
        for name in one.item_ids
        if "trial" in name
    }
    found = writing_tasks(book, texts(book, copies), _passages, 4)
    assert found
    assert found == writing_tasks(plain, texts(plain, {}), _passages, 4)


def _passages(ids: Sequence[str]) -> dict[str, str]:
    return {one: f"Text of {one}." for one in ids}


def test_partly_graded_passages_show_nothing_of_items() -> None:
    """A cell without a grade is not a failure if covered items are not graded again."""
    book = planted_exam(1, BAD)
    target = GradingTarget(("Cover@20",), (4,))
    queries = []
    for one in book.queries:
        ratings = one.ratings.copy()
        ratings[::2, 0] = MISSING
        queries.append(replace(one, ratings=ratings))
    partial = replace(book, queries=tuple(queries), target=target)
    of = trial_exam(partial, 4, 20).statistics(np.arange(30))
    assert not of.passages.defined.any()
    assert of.systems.defined.any()
