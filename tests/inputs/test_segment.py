from __future__ import annotations

import pytest

from exampp.formats.responses import Response, Statement
from exampp.inputs.segment import (
    Segment,
    blocks,
    bundled_spans,
    segments,
    split_sentences,
    windows,
)


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
    assert segments(response, 400) == [
        Segment("A b. C d.", ("1", "2", "3"), ((0, 4, ("1", "2")), (5, 9, ("2", "3"))))
    ]
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>One <b>two</b>&amp;three&nbsp;x</p>", ["One two&three x"]),
        ("<h1>A</h1><ul><li>b<li>c</ul>d", ["A", "b", "c", "d"]),
        ("<script>var a = '<p>x</p>'</script><p>y", ["y"]),
        ("<style>p {}</style><!-- no --><p>y</p>", ["y"]),
        ("<head><title>t</title></head><body>y</body>", ["y"]),
        ("<table><tr><td>1<td>2</tr></table>", ["1 2"]),
        ("<p>never <b>closed<br>", ["never closed"]),
        ("<p></p><script>never closed <p>x", []),
        ("<p>a<br/>b<img src=x alt='c'></p>", ["a bc"]),
        ("5 * 3, a < b > c", ["5 * 3, a < b > c"]),
        ("# The *y* axis\r\n\r\n- **not** `x`", ["# The *y* axis", "- **not** `x`"]),
    ],
)
def test_blocks_of_plain_text_and_html(text: str, expected: list[str]) -> None:
    assert blocks(text) == expected
