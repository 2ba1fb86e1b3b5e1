"""Reports: numbers, warnings, sentences for a paper, references."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.gradebooks import make_book, make_query, make_ranking

import exampp
from exampp.analysis.report import report, write
from exampp.analysis.verdict import (
    USUAL_QUERIES,
    ReportSettings,
    ReportSource,
    compute_report_data,
    families_of,
)
from exampp.errors import InputError
from exampp.records import BankEntry, Item
from exampp.records.gradebook import Gradebook
from exampp.records.graders import GraderIdentity
from exampp.records.items import BankTexts
from exampp.results.page import Document, Notices, report_json, to_html

OFFICIAL = {"good": 1.0, "fair": 2.0, "poor": 3.0}


def exam(queries: int = 30, grader: GraderIdentity | None = None) -> Gradebook:
    """Three systems; the first covers all of two items, the second one of them, the third none."""
    rankings = (make_ranking("good", [0, 1]), make_ranking("fair", [1]), make_ranking("poor", [2]))
    book = make_book(
        *(make_query([[5, 1], [0, 4], [3, 0]], *rankings, query_id=f"q{n}") for n in range(queries))
    )
    return book if grader is None else replace(book, grader=grader)


def settings(**changed: Any) -> ReportSettings:
    return replace(ReportSettings(4), **changed)


def made(book: Gradebook, source: ReportSource | None = None, **changed: Any) -> Document:
    return report(
        book, settings(**changed), source or ReportSource("my.exam", made="exampp 9.9, today")
    )


def section(document: Document, key: str) -> dict[str, Any]:
    found = [one for one in json.loads(report_json(document))["sections"] if one["key"] == key]
    assert found, f"no section {key}"
    return dict(found[0])


def blocks(document: Document, key: str, kind: str) -> list[dict[str, Any]]:
    return [block for block in section(document, key)["blocks"] if block["kind"] == kind]


def warnings(document: Document) -> list[str]:
    return [
        sentence
        for block in document.sections[0].blocks
        if isinstance(block, Notices)
        for sentence in block.sentences
    ]


def test_the_name_of_a_file_decides_its_format(tmp_path: Path) -> None:
    document = made(exam(3))
    write(document, tmp_path / "report.json.gz")
    assert gzip.decompress((tmp_path / "report.json.gz").read_bytes()).startswith(b"{")
    with pytest.raises(InputError, match=r"a report is no \.pdf file"):
        write(document, tmp_path / "report.pdf")


@pytest.mark.parametrize(
    ("measures", "k"),
    [(("nCover@1", "nDCG@5"), 1), (("nCover@1", "Cover@3"), 3), (("nDCG@5",), 20)],
)
def test_items_are_read_at_the_cutoff_of_the_measures(measures: tuple[str, ...], k: int) -> None:
    data = compute_report_data(exam(3), settings(measures=measures), ReportSource("my.exam"))
    assert data.items.scores.k == k


def test_retrieved_passages_beside_answers_have_a_note_and_a_section() -> None:
    rankings = make_ranking("rag", [0]), make_ranking("rag:contexts", [1])
    book = make_book(make_query([[5, 0, 0], [5, 5, 0]], *rankings))
    (query,) = book.queries
    _, unsaid_item, missed_item = query.item_ids
    items = (Item(unsaid_item, query.query_id, "public"), Item(missed_item, query.query_id, "x"))
    sealed = frozenset([(query.query_id, missed_item)])
    bank = BankTexts((BankEntry(query.query_id, items),), sealed=sealed)
    document = made(book, ReportSource("my.exam", bank=bank))
    (notes,) = blocks(document, "summary", "notices")[-1:]
    assert notes["sentences"] == [
        "Retrieved passages are ranked beside answers (rag:contexts). To rank answers: "
        "--system answers."
    ]
    answer, _ = verdict(document)["Retrieval or generation?"]
    assert answer.startswith("rag loses 33% of the exam in retrieval and 33% in generation; 1 ")
    assert section(document, "omissions")["verdict"] == answer
    unsaid, missed = blocks(document, "omissions", "folded")
    assert [row["text"] for row in (*unsaid["rows"], *missed["rows"])] == ["public", "(sealed)"]
    assert not [one for one in made(exam()).sections if one.key == "omissions"]


# ---- numbers -------------------------------------------------------------------------------------


def test_the_headline_counts_what_there_is() -> None:
    document = made(exam())
    assert blocks(document, "summary", "tiles")[0]["rows"] == {
        "systems": "3",
        "queries": "30",
        "questions in the bank": "60",
        "passages in the pool": "90",
        "cells graded": "180",
    }


def verdict(document: Document) -> dict[str, tuple[str, str]]:
    """Answer and tone by what is asked."""
    lines = blocks(document, "summary", "verdict")[0]["lines"]
    return {line["question"]: (line["answer"], line["tone"]) for line in lines}


def test_the_verdict_comes_first_a_sentence_a_question() -> None:
    said = verdict(made(exam()))
    best, tone = said["Best"]
    assert best.startswith("good has the best Cover@20 \u22654, 1.000")
    assert "; every other system has a lower mean over all queries like these. " in best
    assert best.endswith("Even without a failure on 30 queries, up to 12% of queries may fail.")
    assert tone == "holds"
    assert said["Do systems differ?"] == (
        "3 of 3 pairs of systems (100.0%) are shown to behave differently under Cover@20 \u22654, "
        "and 3 to have different means over all queries like these (Holm's correction, 0.05).",
        "",
    )
    survived, tone = said["Do measures and thresholds agree?"]
    assert survived.startswith("good is first in all 13 combinations")
    assert survived.endswith("have the same order in all of them.")
    assert tone == "holds"
    assert said["Agreement with people"] == ("No graded passage has a judgment.", "doubt")
    assert said["Decisions"] == ("No cell has a human decision.", "")
    assert "Official leaderboard" not in said


def test_the_verdict_says_where_the_measure_of_the_figures_agrees_least() -> None:
    # one and two cover the same item, two with more passages: Cover ties them, P@20 does not
    rankings = (make_ranking("one", [0, 2]), make_ranking("two", [0, 1]), make_ranking("no", [2]))
    book = make_book(*(make_query([[5], [5], [0]], *rankings, query_id=f"q{n}") for n in range(3)))
    official = {"list": {"two": 1.0, "one": 2.0, "no": 3.0}}
    said, tone = verdict(made(book, official=official))["Official leaderboard"]
    assert said.startswith("Kendall's tau-b with list: Cover@20 \u22654 0.816, nDCG@20 1.000, ")
    assert said.endswith("show Cover@20 \u22654, the lowest of these.")
    assert tone == "doubt"
    official = {"list": {"two": 1.0, "one": 1.0, "no": 3.0}}
    said, tone = verdict(made(book, official=official))["Official leaderboard"]
    assert (tone, "agrees least" in said) == ("", False)


def test_a_single_query_is_not_queries() -> None:
    tiles = blocks(made(exam(1)), "summary", "tiles")[0]["rows"]
    assert {"systems": "3", "query": "1"}.items() <= tiles.items()


def test_equal_systems_share_the_first_place() -> None:
    rankings = (make_ranking("one", [0]), make_ranking("two", [0]))
    book = make_book(*(make_query([[5]], *rankings, query_id=f"q{n}") for n in range(3)))
    said = verdict(made(book))
    assert said["Do measures and thresholds agree?"][0].startswith("All systems tie")
    best, tone = said["Best"]
    assert best.startswith("one and two share the best Cover@20")
    assert "; no other system is shown to have a lower mean over all queries like these. " in best
    assert tone == "doubt"


def test_sections_are_there_only_where_there_is_something_to_say() -> None:
    def keys(document: Document) -> list[str]:
        return [one.key for one in document.sections]

    alone = make_book(make_query([[5]], make_ranking("one", [0])))
    assert keys(made(alone)) == [
        "summary", "evaluated", "leaderboard", "grades", "queries",
        "provenance",
    ]  # fmt: skip
    assert "differences" in keys(made(exam()))
    assert "official" in keys(made(exam(), official={"list": OFFICIAL}))
    assert "judgments" not in keys(made(exam()))


def test_values_of_dl19(shared_data: Path) -> None:
    """Against values computed independently of the project."""
    folder = shared_data / "dl19"
    book = exampp.open(folder / "graded.jsonl.gz").grades().gradebook
    official = json.loads((folder / "official-leaderboard.json").read_text())
    document = made(book, official={"official": {k: float(v) for k, v in official.items()}})
    expected = json.loads((folder / "expected" / "cover.json").read_text())["4"]
    measures = json.loads((folder / "expected" / "qrels-measures.json").read_text())["4"]
    (table,) = blocks(document, "leaderboard", "table")
    rows = {row["system"]: row for row in table["rows"]}
    assert len(rows) == 38
    assert len(rows["p_bert"]) == 1 + 2 * 5 + 1, "a mean and an error each, and the passages"
    for system, values in expected["systems"].items():
        assert rows[system]["Cover@20 \u22654"] == pytest.approx(values["cover"]["mean"], abs=1e-9)
    for system, values in measures["systems"].items():
        for name, heading in (
            ("nDCG@20", "nDCG@20"),
            ("P(rel=4)@20", "P@20 \u22654"),
            ("AP(rel=4)", "AP \u22654"),
        ):
            assert rows[system][heading] == pytest.approx(values[name], abs=1e-9)
    correlated = blocks(document, "official", "table")[0]["rows"][0]
    kendall = expected["correlation_cover"]["kendall_tau_b"]
    assert correlated["K"] == pytest.approx(kendall, abs=0.005)
    strict = blocks(document, "judgments", "table")[1]["rows"]
    assert [row["2+3"] for row in strict] == [1892, 609]
    assert len(to_html(document).encode()) < 1_000_000


def test_the_heat_map_and_the_queries_tell_the_hard_ones() -> None:
    rankings = (make_ranking("one", [0]), make_ranking("two", [1]))
    book = make_book(
        make_query([[5, 5], [5, 0]], *rankings, query_id="easy"),
        make_query([[1, 0], [0, 0]], *rankings, query_id="hard"),
    )
    (folded,) = blocks(made(book), "queries", "folded")
    assert folded["rows"] == [
        {"query": "hard", "mean of systems": 0.0, "best system": 0.0, "items": 2,
         "items never covered": 2},
        {"query": "easy", "mean of systems": 0.75, "best system": 1.0, "items": 2,
         "items never covered": 0},
    ]  # fmt: skip


def test_the_queries_of_a_report_count_no_items_to_avoid() -> None:
    weights = [1.0, -1.0, -2.0]
    query = make_query([[5, 0, 5]], make_ranking("one", [0]), query_id="q", weights=weights)
    (table,) = blocks(made(make_book(query)), "queries", "folded")
    assert [(row["items"], row["items never covered"]) for row in table["rows"]] == [(1, 0)]


def test_what_is_missing_is_in_a_table() -> None:
    rankings = (make_ranking("whole", [0]), make_ranking("gap", [1]))
    book = make_book(
        make_query([[5, 4], [None, 4]], *rankings, query_id="q1"),
        make_query([[5, 4], [5, 4]], rankings[0], query_id="q2"),
        pending={"refused": 1},
    )
    (table,) = blocks(made(book), "evaluated", "table")
    assert table["rows"] == [
        {"system": "gap", "missing cells": "50.0%", "ungraded passages": "0.0%",
         "unanswered queries": 1},
    ]  # fmt: skip
    assert table["notes"] == ["Cells without a grade in the whole collection: 1 refused."]


@pytest.mark.parametrize(
    "book",
    [
        make_book(),
        make_book(systems=["a"]),
        make_book(make_query([[4]])),
        make_book(make_query([[], []], make_ranking("a", [0]), items=0)),
        make_book(make_query([[None], [None]], make_ranking("a", [0]), make_ranking("b", [1]))),
        make_book(make_query([[1], [2]], make_ranking("a", [0]), make_ranking("b", [1]))),
        make_book(
            make_query(
                [[4, 0], [1, 5]],
                make_ranking("a", [0, 1], 1),
                make_ranking("b", [1], 2),
                item_subtopics=[1, 2],
                subtopics=["x", "y"],
            )
        ),
    ],
    ids=["nothing", "no queries", "no systems", "no items", "no grades", "never", "subtopics"],
)
@pytest.mark.parametrize("official", [{}, {"list": {"a": 1.0, "b": 2.0}}, {"list": {"z": 1.0}}])
def test_poor_data_make_a_report_all_the_same(
    book: Gradebook, official: dict[str, dict[str, float]]
) -> None:
    said = report_json(made(book, official=official))
    assert "NaN" not in said
    assert json.loads(said)["sections"]


# ---- warnings ------------------------------------------------------------------------------------


def test_a_sound_exam_has_no_warnings() -> None:
    assert warnings(made(exam(USUAL_QUERIES))) == []


@pytest.mark.parametrize(
    ("book", "source", "official", "words"),
    [
        (
            exam(grader=GraderIdentity("draft", "draft", "question")),
            ReportSource(""),
            {},
            "These are draft grades",
        ),
        (exam(USUAL_QUERIES - 1), ReportSource(""), {}, "Only 24 queries count"),
        (exam(1), ReportSource(""), {}, "Only 1 query counts"),
        (exam(0), ReportSource(""), {}, "No query is imported"),
        (
            exam(grader=GraderIdentity("org/model-7b", "p", "question")),
            ReportSource("", own_bank="The bank was made by the model that grades: easy."),
            {},
            "The bank was made by the model that grades",
        ),
        (replace(exam(), bank_is_graded_items=True), ReportSource(""), {}, "No bank given"),
        (replace(exam(), pending={"refused": 7}), ReportSource(""), {}, "7 refused"),
        (exam(), ReportSource(""), {"list": OFFICIAL}, "Only 3 systems have an official rank"),
    ],
)
def test_warnings(
    book: Gradebook, source: ReportSource, official: dict[str, dict[str, float]], words: str
) -> None:
    (sentence,) = warnings(made(book, source, official=official))
    assert words in sentence


def test_draft_grades_are_in_the_title_and_above_the_table() -> None:
    document = made(exam(grader=GraderIdentity("draft", "draft", "question")))
    assert document.title == "DRAFT GRADES: my.exam"
    (table,) = blocks(document, "leaderboard", "table")
    assert table["caption"].startswith("DRAFT GRADES")
    assert "DRAFT GRADES" in blocks(document, "leaderboard", "figure")[0]["subtitle"]


def test_a_grader_of_the_family_of_a_system_is_named() -> None:
    rankings = (make_ranking("monoT5-rerank", [0]), make_ranking("bm25", [0]))
    book = make_book(
        *(make_query([[5]], *rankings, query_id=f"q{n}") for n in range(USUAL_QUERIES)),
        grader=GraderIdentity("google/flan-t5-large", "p", "question"),
    )
    found = [sentence for sentence in warnings(made(book)) if "family" in sentence]
    (sentence,) = found
    assert "flan-t5-large and 1 system have names of one family of models (T5): monoT5" in sentence
    assert "bm25" not in sentence


def test_missing_cells_and_unanswered_queries_warn() -> None:
    rankings = (make_ranking("whole", [0]), make_ranking("gap", [1]))
    book = make_book(
        *(
            make_query([[5, 4], [None, 4]], *rankings[: 1 + (n > 0)], query_id=f"q{n}")
            for n in range(USUAL_QUERIES)
        )
    )
    unanswered, missing = warnings(made(book))
    assert "Up to 50.0% (gap) of the cells behind Cover@20" in missing
    assert "gap" in unanswered


def test_a_grader_that_tells_nothing_apart_is_called_so() -> None:
    rankings = (make_ranking("one", [0]), make_ranking("two", [1]))
    book = make_book(
        *(make_query([[4], [4]], *rankings, query_id=f"q{n}") for n in range(USUAL_QUERIES))
    )
    assert warnings(made(book)) == ["Every grade is 4, so scores cannot separate systems."]


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("google/flan-t5-large", ["T5"]),
        ("monot5-3b", ["T5"]),
        ("idst_bert_p1", ["BERT"]),
        ("deberta-v3", ["BERT"]),
        ("RoBERTa", ["BERT"]),
        ("colbert.e2e", ["BERT"]),
        ("gpt-4o-mini", ["GPT"]),
        ("ChatGPT_rerank", ["GPT"]),
        ("meta-llama/Llama-3.1-8B", ["Llama"]),
        ("Mixtral-8x7B", ["Mistral"]),
        ("qwen2.5-72b", ["Qwen"]),
        ("Phi-3-mini", ["Phi"]),
        ("delphi", []),
        ("test1", []),
        ("bm25base_p", []),
        ("t50-depth", []),
        ("albertsons", []),
        ("runid4", []),
    ],
)
def test_families_are_words_of_a_name(name: str, families: Sequence[str]) -> None:
    assert list(families_of(name)) == families


def test_labels_are_in_words() -> None:
    labelling = exampp.Labelling("best", 2, "binary")
    (facts,) = blocks(made(exam(), labelling=labelling), "evaluated", "facts")
    assert facts["rows"]["Relevance label"].startswith("the 2nd best rating over the items")
    assert facts["rows"]["Relevance label"].endswith(", 1 from the threshold on, else 0")
