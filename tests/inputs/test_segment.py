from __future__ import annotations

import json
from pathlib import Path

from exampp.formats.responses import Response, Statement, read, read_folder
from exampp.inputs.segment import Segment, bundled_spans, segments, split_sentences, windows


def words(text: str) -> list[tuple[int, int]]:
    """Every word is a token."""
    import re

    return [match.span() for match in re.finditer(r"\S+", text)]


def cut(*texts: str, limit: int) -> list[str]:
    response = Response("q", "s", tuple(map(Statement, texts)))
    return [segment.text for segment in segments(response, limit, words)]


def test_paragraphs_are_joined_while_they_fit() -> None:
    assert cut("a b\n\nc d\n\ne f\n\ng", limit=5) == ["a b\n\nc d", "e f\n\ng"]


def test_a_long_paragraph_starts_a_passage_and_is_cut_at_sentences() -> None:
    text = "Intro.\n\nOne two. Three four. Five six.\n\nEnd."
    assert cut(text, limit=4) == ["Intro.", "One two. Three four.", "Five six.\n\nEnd."]


def test_a_long_sentence_is_cut_between_words() -> None:
    assert cut("a b c d e f g", limit=3) == ["a b c", "d e f", "g"]


def test_text_without_spaces_is_cut_too() -> None:
    text = "\u706b\u5c71" * 300
    spans = bundled_spans()
    parts = windows(text, 400, spans)
    assert "".join(parts) == text
    assert [len(spans(part)) for part in parts] == [400, 200]


def test_statements_are_joined_and_keep_their_citations() -> None:
    response = Response("q", "s", (Statement("A b.", ("1", "2")), Statement("C d.", ("2", "3"))))
    assert segments(response, 400) == [Segment("A b. C d.", ("1", "2", "3"))]
    assert segments(response, 3) == [Segment("A b.", ("1", "2")), Segment("C d.", ("2", "3"))]


def test_no_passage_is_longer_than_the_limit() -> None:
    spans = bundled_spans()
    text = "\n\n".join(f"Supercalifragilistic word, number {n}. " * (n % 40) for n in range(80))
    found = segments(Response("q", "s", (Statement(text),)), 50)
    assert max(len(spans(one.text)) for one in found) <= 50
    assert "".join("".join(one.text.split()) for one in found) == "".join(text.split())


def test_nothing_comes_of_markup_without_text() -> None:
    response = Response("q", "s", (Statement("<script>x</script><p></p>"),))
    assert segments(response) == []


def test_sentences() -> None:
    text = (
        "The U.S. grew by 3.5 percent. Dr. No said (e.g. in 2020) so. 'Quoted.' Why? [1] Yes!\nEnd"
    )
    assert split_sentences(text) == [
        "The U.S. grew by 3.5 percent.",
        "Dr. No said (e.g. in 2020) so.",
        "'Quoted.'",
        "Why?",
        "[1] Yes!",
        "End",
    ]
    assert split_sentences("\u4e00\u3002\u4e8c\uff01\u4e09") == [
        "\u4e00\u3002",
        "\u4e8c\uff01",
        "\u4e09",
    ]


def test_stars_are_text_unless_the_file_is_markdown(tmp_path: Path) -> None:
    said = "The *y* axis is **not** `x`.\n\n- one _two_"
    folder = tmp_path / "texts"
    (folder / "plain").mkdir(parents=True)
    (folder / "marked").mkdir()
    (folder / "plain" / "q1.txt").write_text(said)
    (folder / "marked" / "q1.md").write_text(said)
    lines = tmp_path / "answers.jsonl"
    answers: list[dict[str, object]] = [{"query_id": "q1", "run_id": "told", "answer": said}]
    answers += [{"query_id": "q1", "run_id": "parts", "answer": [{"text": said}]}]
    lines.write_text("".join(json.dumps(one) + "\n" for one in answers))
    found = {
        one.system: "\n\n".join(part.text for part in segments(one))
        for one in (*read_folder(folder), *read(lines))
    }
    assert found.pop("marked") == "The y axis is not x.\n\none two"
    assert found == dict.fromkeys(("plain", "told", "parts"), said)
