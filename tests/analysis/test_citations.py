"""Support of citations: scores against a computation by hand, and what has no grade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import exampp
from exampp.analysis.citations import CitationScores
from exampp.citations import collect
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.records.inputs import CitedSentence, read_sentence

# what the passages say of a sentence is in their names: full, half, none
DOCUMENTS = {name: f"Text of {name}." for name in ("full1", "full2", "half1", "none1", "odd")}
LABEL = {"full": "support", "half": "partial_support", "none": "not_support"}


def answer(system: str, topic: str, *cited: list[str]) -> str:
    """A line of an answer whose sentences cite these."""
    sentences = [
        {"text": f"Sentence {n} of {system} on {topic}.", "citations": some}
        for n, some in enumerate(cited)
    ]
    metadata = {"team_id": "t", "run_id": system, "topic_id": topic}
    documents = {name: {"id": name, "text": text} for name, text in DOCUMENTS.items()}
    return json.dumps({"metadata": metadata, "responses": sentences, "documents": documents})


def graded(folder: Path, *lines: str) -> CitationScores:
    (folder / "answers.jsonl").write_text("\n".join(lines))
    with collect(folder / "cited.exam", folder / "answers.jsonl") as exam:

        def reply(ask: Request) -> str:
            name = ask.passage.removeprefix("Text of ").removesuffix(".")
            return LABEL.get(name[:4], "cannot say")

        exam.grade(ScriptedGrader(reply), prompt="citation-support", model="scripted")
        return exam.grades().citations()


def test_scores_by_hand(tmp_path: Path) -> None:
    found = graded(
        tmp_path,
        # citations 1, 1/2, 0, 1: precision 2.5/4; sentences 1, 0, 1, 0: recall 2/4
        answer("a", "t1", ["full1", "half1"], ["none1"], ["full2"], []),
        # precision 1/2, recall 1/2; nothing is fully supported
        answer("a", "t2", ["half1"]),
        # cites nothing: recall 0, no precision
        answer("b", "t1", [], []),
        answer("b", "t2", ["none1", "full1"]),
    )
    a, b = sorted(found.rows, key=lambda one: one.system)
    assert a.precision.mean == pytest.approx((2.5 / 4 + 1 / 2) / 2)
    assert a.recall.mean == pytest.approx((2 / 4 + 1 / 2) / 2)
    assert a.strict_precision.mean == pytest.approx((2 / 4 + 0) / 2)
    assert a.strict_recall.mean == pytest.approx((2 / 4 + 0) / 2)
    assert (a.answers, a.sentences, a.citations, a.ungraded, a.silent) == (2, 5, 5, 0, 0)
    assert b.precision.mean == pytest.approx(0.5)
    assert b.recall.mean == pytest.approx((0 + 1) / 2)
    assert b.silent == 1
    assert any("1 answer without citations" in note for note in found.notes)
    # by recall, then by name
    assert [row.system for row in found.rows] == ["a", "b"]


def test_the_first_citation_alone(tmp_path: Path) -> None:
    lines = [answer("b", "t", ["none1", "full1"], ["half1", "none1"])]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    graded(tmp_path, *lines)
    with exampp.Collection(tmp_path / "cited.exam") as exam:
        (row,) = exam.grades().citations(first=True).rows
        assert row.precision.mean == row.recall.mean == pytest.approx((0 + 0.5) / 2)
        (row,) = exam.grades().citations().rows
        assert row.precision.mean == pytest.approx((0 + 1 + 0.5 + 0) / 4)
        assert row.recall.mean == pytest.approx((1 + 0.5) / 2)


def test_what_has_no_grade_is_in_no_mean(tmp_path: Path) -> None:
    # the second sentence cites only what could not be graded: nothing is known of it
    found = graded(tmp_path, answer("a", "t", ["full1", "odd"], ["odd"], []))
    (row,) = found.rows
    assert row.precision.mean == 1
    assert row.recall.mean == pytest.approx(1 / 2)
    assert row.ungraded == 2
    assert any("2 citations without a grade" in note for note in found.notes)


def test_the_same_sentence_and_passage_are_asked_about_once(tmp_path: Path) -> None:
    line = answer("a", "t", ["full1"])
    grader = ScriptedGrader("support")
    (tmp_path / "answers.jsonl").write_text(line)
    for _ in range(2):
        with collect(tmp_path / "cited.exam", tmp_path / "answers.jsonl") as exam:
            exam.grade(grader, prompt="citation-support", model="scripted")
    assert len(grader.calls) == 1
    assert "Sentence 0 of a on t." in grader.calls[0].user
    assert "Text of full1." in grader.calls[0].user


def test_other_collections_and_graders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(answer("a", "t", [], []))
    with pytest.raises(InputError, match="no answer has citations"):
        collect(tmp_path / "none.exam", tmp_path / "answers.jsonl")
    (tmp_path / "answers.jsonl").write_text(answer("a", "t", ["unknown"]))
    with pytest.raises(InputError, match=r"no cited passage has a text.*--corpus"):
        collect(tmp_path / "none.exam", tmp_path / "answers.jsonl")
    assert not (tmp_path / "none.exam").exists()
    (tmp_path / "answers.jsonl").write_text(answer("a", "t", ["full1"]))
    with collect(tmp_path / "cited.exam", tmp_path / "answers.jsonl") as exam:
        exam.grade(lambda *_: 3, name="mine")
        with pytest.raises(InputError, match=r"rates from 0 to 5.*citation-support"):
            exam.grades().citations()
    with exampp.create(tmp_path / "other.exam") as exam:
        exam.add(queries={"q": "Q"}, passages={"p": "P"}, bank={"q": [{"nugget": "N"}]})
        exam.add(runs={"s": {"q": ["p"]}})
        exam.grade(lambda *_: 1, name="mine", scale=(0, 2))
        with pytest.raises(InputError, match=r"is not a sentence of an answer.*exampp citations"):
            exam.grades().citations()


@pytest.mark.parametrize("query", ["t1", "a#b", "a b/c", "\u00e4 50%"])
def test_sentences_are_found_again_by_their_ids(query: str) -> None:
    place = CitedSentence(query, "my #system", 3)
    assert read_sentence(place.key) == place
    assert " " not in place.key
    assert read_sentence(query) is None


def test_claims_are_supported_by_the_pool_too(tmp_path: Path) -> None:
    """By hand: what is cited, what only the pool supports, and what nothing supports."""
    texts = {
        "p1": "Coral reefs are built by small animals.",
        "p2": "Reefs protect coasts from waves.",
        "p3": "Bread is made of flour.",
    }
    said = [
        {"text": "Reefs are built by animals.", "citations": ["p2", "p1"]},
        {"text": "Reefs protect coasts.", "citations": []},
        {"text": "Coral is worth gold.", "citations": ["p2"]},
        {"text": "Nobody knows why.", "citations": []},
    ]
    line = {"query_id": "reefs", "system": "chat", "answer": said}
    (tmp_path / "said.jsonl").write_text(json.dumps(line))
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items())
    )
    support = {
        ("Reefs are built by animals.", "p1"): "support",
        ("Reefs protect coasts.", "p2"): "support",
        ("Coral is worth gold.", "p1"): "partial_support",
    }
    asked = []

    def reply(request: Request) -> str:
        asked.append((request.item, request.passage_id))
        return support.get((request.item, request.passage_id), "not_support")

    with exampp.create(tmp_path / "sources.exam") as sources:
        sources.add(
            queries={"reefs": "What are reefs?"},
            passages=[{"id": name, "text": text} for name, text in texts.items()],
            runs={"bm25": {"reefs": list(texts)}},
            # an answer is not a source
            responses={"chat": {"reefs": "Reefs protect coasts. Coral is worth gold."}},
        )
        with collect(
            tmp_path / "cited.exam",
            tmp_path / "said.jsonl",
            corpus=tmp_path / "corpus.jsonl",
            pool=sources,
        ) as exam:
            exam.grade(ScriptedGrader(reply), prompt="citation-support", model="scripted")
            found = exam.grades().citations()
            (first,) = exam.grades().citations(first=True).rows
    (row,) = found.rows
    assert {passage for _, passage in asked} <= {"p1", "p2"}
    assert row.precision.mean == pytest.approx(1 / 3)
    assert row.recall.mean == pytest.approx(1 / 4)
    # the second sentence by p2, the third by half by p1, and the last by nothing
    assert row.supported.mean == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    # the first citation alone matters for what is cited, not for what is true
    assert first.supported.mean == row.supported.mean
    assert "supported" in [column.name for column in found.tables()["citations"].columns]
    assert [(one[0], one[2]) for one in found.plot().data.rows] == [
        ("precision of citations", row.precision.mean),
        ("sentences supported by what they cite", row.recall.mean),
        ("sentences supported by any passage", row.supported.mean),
    ]


def test_without_a_pool_the_table_is_as_before(tmp_path: Path) -> None:
    found = graded(tmp_path, answer("a", "t1", ["full1"], []))
    assert len(found.plot().data.rows) == 2
    assert "supported" not in [column.name for column in found.tables()["citations"].columns]
    with pytest.raises(InputError, match="no sentence shares words"):
        collect(
            tmp_path / "none.exam",
            tmp_path / "answers.jsonl",
            pool=exampp.create(tmp_path / "empty.exam"),
        )
    assert not (tmp_path / "none.exam").exists()
