"""The difference of two systems explained, on exams written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.gradebooks import GRADER, make_book, make_query, make_ranking

from exampp.analysis import compare as compare_module
from exampp.analysis.compare import (
    Quote,
    SystemComparison,
    compare_systems,
    quote,
)
from exampp.errors import InputError
from exampp.measures.exams import Subtopics
from exampp.records import Grade, GraderIdentity, Item, State
from exampp.records.decisions import Decision
from exampp.records.gradebook import Dossier, Gradebook, PassageText, QueryGrades
from exampp.results.result import STYLES, render


def exam() -> Gradebook:
    """q1: old covers item 0 by p0; new covers item 1 by p2 (second) and item 2 by p1, p2."""
    return make_book(
        make_query(
            [[5, 0, 3, None], [0, 1, 4, None], [0, 4, 5, None], [5, 5, 5, 5]],
            make_ranking("old", [0, 1]),
            make_ranking("new", [1, 2, 3]),
            query_id="q1",
            weights=[1, 2, 1, 0],
        ),
        make_query([[4]], make_ranking("new", [0]), query_id="q2"),
        make_query([[5]], make_ranking("old", [0]), make_ranking("new", [0]), query_id="q3"),
    )


def explained(
    book: Gradebook,
    measure: str = "Cover@2",
    subtopics: Subtopics = "query",
    k: int = 2,
    min_rating: int = 4,
) -> SystemComparison:
    return compare_systems(
        book, "old", "new", measure, min_rating=min_rating, k=k, subtopics=subtopics
    )


def changed(found: SystemComparison) -> list[tuple[object, ...]]:
    return [
        (one.item_id, one.move, *(best and best[:3] for best in one.ends), one.weight)
        for one in found.changes
    ]


def test_items_gained_and_lost() -> None:
    assert changed(explained(exam())) == [
        ("q2/i0", "gained", ("p0", 1, 4), None, 1.0),
        ("q1/i1", "gained", ("p2", 2, 4), ("p1", 2, 1), 2 / 4),
        ("q1/i0", "lost", ("p0", 1, 5), ("p1", 1, 0), 1 / 4),
    ]


def test_the_cutoff_and_the_threshold_decide() -> None:
    deeper = explained(exam(), "Cover@3", k=3).changes
    # p3 gives new item 0 back; the item of weight 0 is no item.
    assert {(c.item_id, c.move) for c in deeper} == {("q1/i1", "gained"), ("q2/i0", "gained")}
    lower = changed(explained(exam(), "Cover@1", k=1, min_rating=1))
    assert lower[1:] == [
        ("q1/i1", "gained", ("p1", 1, 1), ("p0", 1, 0), 2 / 4),
        ("q1/i0", "lost", ("p0", 1, 5), ("p1", 1, 0), 1 / 4),
    ]


def test_the_total_is_second_minus_first() -> None:
    found = explained(exam())
    # old covers 1/4 + 1/4 (p1 rates item 2 with 4), 0, 1; new 3/4, 1, 1.
    assert [mean.mean for mean in found.means] == pytest.approx([1.5 / 3, 2.75 / 3])
    assert found.pair.difference.value == pytest.approx((0.25 + 1) / 3)
    assert (found.pair.won, found.pair.lost) == (2 / 3, 0)
    assert [(q.query_id, q.gained, q.lost) for q in found.queries] == [
        ("q2", 1, 0),
        ("q1", 1, 1),
        ("q3", 0, 0),
    ]
    assert [change.query_id for change in found.changes] == ["q2", "q1", "q1"]
    assert found.items == 5
    table = compare_module.total(found)
    assert dict(zip([c.name for c in table.columns], table.rows[0], strict=True))["better"] == 2
    assert (
        "new covers 2 items that old does not, and misses 1 that old covers, of 5 (first 2 "
        "passages, rated 4 or better)."
    ) in table.notes


def test_the_weights_of_the_changes_are_the_difference_of_cover() -> None:
    found = explained(exam())
    for query in found.queries:
        signed = sum(
            change.weight * (1 if change.move == "gained" else -1)
            for change in found.changes
            if change.query_id == query.query_id
        )
        assert query.difference == pytest.approx(signed)


def test_only_the_queries_asked_for_are_shown() -> None:
    found = explained(exam())
    short = found.shortened(1)
    assert [query.query_id for query in short.queries] == ["q2"]
    assert [change.item_id for change in short.changes] == ["q2/i0"]
    assert found.shortened(None) is found


def test_subtopics_are_read_as_cover_reads_them() -> None:
    book = make_book(
        make_query(
            [[5, 5], [0, 5]],
            make_ranking("old", [1], subtopic=1),
            make_ranking("new", [0], subtopic=1),
            query_id="q",
            subtopics=["f1", "f2"],
            item_subtopics=[1, 2],
        )
    )
    found = explained(book, subtopics="subtopic")
    # Nobody ranks f2, so that nobody covers its item.
    assert [(c.exam_id, c.item_id, c.move) for c in found.changes] == [("q/f1", "q/i0", "gained")]
    assert [(q.query_id, q.gained) for q in found.queries] == [("q", 1)]
    ranked = explained(book, "P@1", subtopics="subtopic", k=1)
    assert [(q.query_id, q.gained) for q in ranked.queries] == [("q/f1", 1), ("q/f2", 0)]


def test_systems_that_cannot_be_compared() -> None:
    for names, says in (
        (("old", "knew"), "unknown system 'knew'. Did you mean 'new'?"),
        (("xyz", "new"), "unknown system 'xyz'. Systems: old, new"),
        (("old", "old"), "compared with itself"),
    ):
        with pytest.raises(InputError) as caught:
            compare_systems(exam(), *names, "Cover@2", min_rating=4)
        assert says in str(caught.value)


def test_one_query_is_said_to_be_too_few() -> None:
    book = replace(exam(), queries=exam().queries[:1])
    found = explained(book)
    table = compare_module.total(found)
    because = "because fewer than 2 queries count for both systems."
    assert f"d_z, p: undefined, {because}" in table.notes
    assert "nan" not in render(table, "text").lower()


# ---- quotes

TEXTS = (
    "Mammals live in the sea. Whales breathe air at the surface.",
    "Fish have gills.\nSome breathe in mud.",
    "",
)


def dossier(
    query: QueryGrades,
    automatic: dict[tuple[int, int], Grade] | None = None,
    decisions: dict[tuple[int, int], list[Decision]] | None = None,
    grader: GraderIdentity = GRADER,
) -> Dossier:
    questions = ("How do whales breathe?", "What do fish have?", "Why?", "Where?")
    items = tuple(
        Item(item_id, query.query_id, text, answers=("gills",) if "fish" in text else ())
        for item_id, text in zip(query.item_ids, questions, strict=False)
    )
    texts = tuple(PassageText("", text) if text else None for text in TEXTS)
    return Dossier(
        grader=grader,
        bank="bank",
        query_id=query.query_id,
        query_text="sea life",
        grades=query,
        items=items,
        texts=(*texts, None)[: len(query.passage_ids)],
        automatic=automatic or {},
        decisions=decisions or {},
    )


def graded(reply: str, **detail: str) -> Grade:
    return Grade("i", State.GRADED, 4, reply, detail=detail or None)


def test_a_sentence_is_quoted_where_the_grader_gave_a_rating_alone() -> None:
    found = quote(dossier(exam().queries[0], {(0, 0): graded("5")}), 0, 0)
    assert found == Quote("Whales breathe air at the surface.", "sentence")
    assert quote(dossier(exam().queries[0]), 1, 1).text == "Fish have gills."
    # Nothing in common, and no text at all.
    assert quote(dossier(exam().queries[0]), 0, 2) == Quote("", "")
    assert quote(dossier(exam().queries[0]), 2, 0).source == ""


def test_an_extracted_answer_is_quoted() -> None:
    query = exam().queries[0]
    kept = dossier(query, {(0, 0): graded("answer: by lungs", answer="by lungs")})
    assert quote(kept, 0, 0) == ("by lungs", "answer")
    extracting = replace(GRADER, prompt="question-answering")
    raw = dossier(query, {(0, 0): graded(" at the surface\n")}, grader=extracting)
    assert quote(raw, 0, 0) == ("at the surface", "answer")


def test_a_cell_that_people_decided_is_not_quoted_by_the_grader() -> None:
    query = exam().queries[0]
    cell = {(0, 0): graded("x", answer="by lungs")}
    decided = {(0, 0): [Decision(1, "ann", 5)]}
    assert quote(dossier(query, cell, decided), 0, 0).source == "sentence"
    withdrawn = {(0, 0): [Decision(1, "ann", 5), Decision(2, "ann", None)]}
    assert quote(dossier(query, cell, withdrawn), 0, 0).source == "answer"


def test_the_tables_say_everything() -> None:
    book = exam()
    found = explained(book)
    texts = {"q1": "sea life", "q2": "sea life"}
    read = [dossier(query) for query in book.queries[:2]]
    items = replace(found, read=lambda _: read).records()["items"]
    rows = [dict(zip([c.name for c in items.columns], row, strict=True)) for row in items.rows]
    assert [(r["item_id"], r["change"], r["passage_id"], r["rank"], r["quote"]) for r in rows] == [
        ("q2/i0", "gained", "p0", 1, "Whales breathe air at the surface."),
        ("q1/i1", "gained", "p2", 2, ""),
        ("q1/i0", "lost", "p0", 1, "Whales breathe air at the surface."),
    ]
    assert items.notes[0].startswith("No quote for 1 item:")
    short = replace(found, read=lambda _: read).tables(width=12)["items"]
    assert short.rows[0][:2] == ("q2 sea life", "How do whal\N{HORIZONTAL ELLIPSIS}")
    assert "quoted" not in [column.name for column in short.columns]
    assert short.notes[0].startswith("Quotes are the sentences")
    for style in STYLES:
        for table in (
            compare_module.total(found),
            compare_module.by_query(found, texts),
            items,
        ):
            assert "nan" not in render(table, style).lower()


def test_queries_on_which_nothing_is_gained_or_lost_have_their_text_too() -> None:
    book = make_book(
        make_query([[4, 1]], make_ranking("old", [0]), make_ranking("new", [0]), query_id="q1"),
        make_query([[5, 5]], make_ranking("old", [0]), make_ranking("new", [0]), query_id="q2"),
    )
    found = compare_systems(
        book, "old", "new", read=lambda ids: map(dossier, book.queries[: len(ids)])
    )
    assert found.changes == ()
    assert [row[:2] for row in found.tables()["queries"].rows] == [
        ("q1", "sea life"),
        ("q2", "sea life"),
    ]


def test_one_query_item_by_item_what_only_the_second_covers_first() -> None:
    found = explained(exam())
    one = found.on("q1")
    assert [(i.item_id, i.covered_by, i.weight) for i in one.items] == [
        ("q1/i1", "second", 0.5),
        ("q1/i0", "first", 0.25),
        ("q1/i2", "both", 0.25),
    ]
    # the best rating counts, and of equal ones the first passage
    assert [
        [best and (best.passage_id, best.rank, best.rating) for best in (i.first, i.second)]
        for i in one.items
    ] == [
        [("p1", 2, 1), ("p2", 2, 4)],
        [("p0", 1, 5), ("p1", 1, 0)],
        [("p1", 2, 4), ("p2", 2, 5)],
    ]
    assert found.on("q2").items[0].first is None
    assert found.on("q2").items[0].covered_by == "second"
    _, rows = one.records()["items"].for_programs()
    assert len(rows) == 6
    assert rows[1][1:7] == ("q1/i1", "only new", "new", 2, 4, "p2")
    with pytest.raises(InputError, match="unknown query 'q9'"):
        found.on("q9")


def test_a_comparison_in_a_sentence() -> None:
    found = explained(exam())
    assert found.queries_won == (2, 1, 0)
    # 3 queries: p is 0.5, of 2 of 4 sign patterns
    assert found.headline == (
        "Not significant: new has 0.417 more Cover@2 \u22654 than old on 3 queries. "
        "They differ on 2 of them, and at least 6 must differ."
    )
    close = replace(found.pair, difference=replace(found.pair.difference, value=-0.0004))
    assert replace(found, pair=close).headline.startswith(
        "Not significant: new and old differ by less than 0.001 in Cover@2 \u22654 on 3 queries."
    )


def test_a_difference_that_missing_grades_may_change_is_called_partial() -> None:
    rankings = make_ranking("old", [0]), make_ranking("new", [1])
    found = explained(
        make_book(
            make_query([[5, None], [0, None]], *rankings, query_id="q1"),
            make_query([[5, 5], [0, 0]], *rankings, query_id="q2"),
        ),
        "Cover@1",
        k=1,
    )
    # old covers 0.5 to 1 and 1, new 0 to 0.5 and 0
    assert found.headline == (
        "Partial: -0.750 Cover@1 \u22654, new compared with old; missing grades allow -1.000 to "
        "-0.500. Grade the rest first: exampp grade."
    )
    assert found.possible_difference == (-1.0, -0.5)
    # people see no test of scores that may change, and programs the same columns as ever
    table = found.tables()["total"]
    shown = str(table).split("\n* ")[0]
    assert "difference" in shown
    assert not {"low", "p", "d_z"} & {*shown.split()}
    assert {"95% low", "high", "p"} <= set(table.for_programs()[0])
    # of q1 one item of each passage has no grade
    assert [one.unknown for one in found.queries] == [0, 1]
    by_query = found.tables()["queries"]
    assert [row[-1] for row in by_query.rows] == [0, 1]
    assert "unknown" in str(by_query)
    assert "unknown" not in by_query.for_programs()[0]


def test_whole_quotes_are_those_of_the_grader_and_none_of_the_lowest_rating() -> None:
    query = make_query(
        [[0], [4]], make_ranking("old", [0]), make_ranking("new", [1]), query_id="q1"
    )
    texts = tuple(PassageText("", text) for text in ("Nothing of it.", "Long. " * 40 + "Blue."))
    dossier = Dossier(
        GRADER, "main", "q1", "why", query, (Item("q1/i0", "q1", "Why blue?"),), texts,
        {(1, 0): Grade("q1/i0", State.GRADED, 4, detail={"answer": "Blue."})},
    )  # fmt: skip
    found = compare_systems(
        make_book(query), "old", "new", "Cover@2", min_rating=4, read=lambda _: [dossier]
    )
    (item,) = found.on("q1").items
    assert item.text == "Why blue?"
    assert item.first is not None
    assert item.first.quote.source == ""
    assert item.second is not None
    assert (item.second.quote.text, item.second.quote.source) == ("Blue.", "answer")
