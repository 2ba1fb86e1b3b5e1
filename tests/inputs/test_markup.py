from __future__ import annotations

import pytest

from exampp.inputs.segment import blocks, markup_of


def texts(text: str, kind: str | None = None) -> list[str]:
    return [block.text for block in blocks(text, kind)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Plain text, 5 * 3 * 2, snake_case and a < b > c.", "plain"),
        ("Cited [1], [2] and (3). # no heading", "plain"),
        ("Two\n\nparagraphs", "plain"),
        ("# Heading", "plain"),
        ("The *y* axis and **bold** text", "plain"),
        ("See [this](http://x.y).", "plain"),
        ("- a list", "plain"),
        ("<p>One</p>", "html"),
        ("one<br>two", "html"),
    ],
)
def test_what_a_text_looks_like(text: str, kind: str) -> None:
    assert markup_of(text) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "**Bold**, *italic*, __bold__, _italic_, ~~gone~~ `code`",
            "Bold, italic, bold, italic, gone code",
        ),
        ("**snake_case_name** and 2*3*4", "snake_case_name and 2*3*4"),
        ("[a **link**](http://x.y/z) ![image](i.png) [ref][1]", "a link image ref"),
        ("# Title #1", "Title #1"),
        ("> quoted **text**", "quoted text"),
        ("- one\n- [x] two\n* three\n1. four", "one\ntwo\nthree\n1. four"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b\n1 2"),
        ("a **b** &amp; \\*c\\*", "a b & *c*"),
        ("A claim **here**[^1].\n[^1]: not a definition kept", "A claim here."),
        ("```python\nx = 1\n\n# y\n```", "x = 1\n\n# y"),
        ("```\nnever closed", "never closed"),
    ],
)
def test_markdown(text: str, expected: str) -> None:
    assert texts(text, "markdown") == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>One <b>two</b>&amp;three&nbsp;x</p>", ["One two&three x"]),
        ("<h1>A</h1><ul><li>b<li>c</ul>d", ["A", "b", "c", "d"]),
        ("<script>var a = '<p>x</p>'</script><p>y", ["y"]),
        ("<style>p {}</style><!-- no --><p>y</p>", ["y"]),
        ("<head><title>t</title></head><body>y</body>", ["y"]),
        ("<table><tr><td>1<td>2</tr></table>", ["1 2"]),
        ("<p>never <b>closed", ["never closed"]),
        ("<script>never closed <p>x", []),
        ("<p>a<br/>b<img src=x alt='c'></p>", ["a bc"]),
    ],
)
def test_html(text: str, expected: list[str]) -> None:
    assert texts(text, "html") == expected


def test_the_markup_of_each_block_is_kept() -> None:
    found = blocks("# A\n\nsome *b*\n\n\nc\n", "markdown")
    assert [block.markup for block in found] == ["# A\n\n", "some *b*\n\n\n", "c\n"]
    assert [block.markup for block in blocks("<p>a</p><p>b</p>")] == ["<p>a", "</p><p>b</p>"]
    assert [block.markup for block in blocks("a\n\nb")] == ["", ""]
