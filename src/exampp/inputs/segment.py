"""Split long responses into passages, at paragraphs, then at sentences.

Tokens are those of the bundled tokenizer (WordPiece, uncased), which also works for text without
spaces. A sentence longer than the limit is split between words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from itertools import pairwise
from typing import NamedTuple

from exampp.formats.responses import Response
from exampp.records.inputs import PASSAGE_TOKENS

PARAGRAPH = "\n\n"
Spans = Callable[[str], Sequence[tuple[int, int]]]
"""The tokens of a text as (first, last + 1) characters."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"'\u2019\u201d)\]]*(?:\[\d[\d, ]*\])*\s+(?=[\"'\u2018\u201c(\[]?[^\W_a-z])"
    r"|(?<=[\u3002\uff01\uff1f])\s*|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|Fig|No|Vol|approx)|\b[a-z]\.[a-z])\.$"
)


class Segment(NamedTuple):
    """A passage of a response: its text and its citations.

    `spans` are (start, end, citations) of its statements with citations, if it has several.
    """

    text: str
    citations: tuple[str, ...] = ()
    spans: tuple[tuple[int, int, tuple[str, ...]], ...] = ()


class _Piece(NamedTuple):
    """A text that is not split further; `glue` joins it to the piece before it."""

    text: str
    tokens: int
    glue: str = PARAGRAPH
    citations: tuple[str, ...] = ()
    opens: bool = False


@lru_cache(maxsize=1)
def bundled_spans() -> Spans:
    """Return the bundled tokenizer."""
    from tokenizers import Tokenizer

    from exampp.graders.draft import MODEL_FOLDER

    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def spans(text: str) -> list[tuple[int, int]]:
        clean = text.encode(errors="replace").decode()
        return list(tokenizer.encode(clean, add_special_tokens=False).offsets)

    return spans


def segments(
    response: Response, limit: int = PASSAGE_TOKENS, spans: Spans | None = None
) -> list[Segment]:
    """Return the passages of a response in order, of at most `limit` tokens each.

    Whole paragraphs (or statements) are joined while they fit; one that is longer than the limit
    starts a new passage and is split at sentences. With a limit of 0, every sentence is a passage.
    HTML is reduced to text.
    """
    tokens = spans or bundled_spans()
    pieces = [part for whole in _pieces(response, tokens) for part in _cut(whole, limit, tokens)]
    return [_joined(group) for group in _groups(pieces, limit)]


def _pieces(response: Response, spans: Spans) -> Iterator[_Piece]:
    for statement in response.statements:
        glue = " " if len(response.statements) > 1 else PARAGRAPH
        for text in blocks(statement.text):
            yield _Piece(text, len(spans(text)), glue, statement.citations)
            glue = PARAGRAPH


def _cut(piece: _Piece, limit: int, spans: Spans) -> Iterator[_Piece]:
    """Yield the piece, or its sentences if it is longer than the limit (0: always)."""
    if limit and piece.tokens <= limit:
        yield piece
        return
    first = True
    for sentence in split_sentences(piece.text):
        for text in windows(sentence, limit, spans) if limit else [sentence]:
            glue = piece.glue if first else " "
            count = len(spans(text))
            yield piece._replace(text=text, tokens=count, glue=glue, opens=first)
            first = False


def split_sentences(text: str) -> list[str]:
    """Return the non-blank sentences of a paragraph, split at line ends, too."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        head = text[start : end.end()].strip()
        if _ABBREVIATION.search(head):
            continue
        sentences.append(head)
        start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def windows(text: str, limit: int, spans: Spans) -> list[str]:
    """Return the text in pieces of at most `limit` tokens, split between words if it has any."""
    tokens = spans(text)
    bounds, index = [0], 0
    while len(tokens) - index > limit:
        start, stop = tokens[index][0], tokens[index + limit][0]
        space = max(text.rfind(mark, start + 1, stop) for mark in " \t\n")
        cut = space + 1 if space > start else stop
        bounds.append(cut)
        while index < len(tokens) and tokens[index][0] < cut:
            index += 1
    parts = [text[start:end].strip() for start, end in pairwise([*bounds, len(text)])]
    return [part for part in parts if part]


def _groups(pieces: Iterable[_Piece], limit: int) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        if group and (piece.opens or size + piece.tokens > limit):
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece.tokens
    if group:
        yield group


def _joined(group: Sequence[_Piece]) -> Segment:
    text, spans = "", []
    for piece in group:
        text += piece.glue * bool(text)
        start = len(text)
        text += piece.text
        if piece.citations:
            spans.append((start, len(text), piece.citations))
    cited = dict.fromkeys(citation for *_, citations in spans for citation in citations)
    return Segment(text, tuple(cited), tuple(spans) if len(group) > 1 else ())


# ---- markup --------------------------------------------------------------------------------------


_HTML = re.compile(
    r"</(?:p|div|h[1-6]|ul|ol|li|table|tr|td|span|a|b|i|em|strong|section|article|body|html|script)"
    r"\s*>|<(?:br|p|hr)\s*/?>|<!doctype html|<html\b",
    re.IGNORECASE,
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_BLOCK_TAGS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4"),
        *("h5", "h6", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "option", "p"),
        *("pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    )
)
_CELL_TAGS = frozenset({"td", "th", "br"})
_DROPPED_TAGS = frozenset({"script", "style", "template", "noscript", "head", "svg", "iframe"})


def blocks(text: str) -> list[str]:
    """Return the non-blank paragraphs of a text in order.

    For HTML, these are the texts between block tags, without scripts, styles and comments; links
    are replaced by their text, images by their alternative text, tables by their cells.
    """
    if _HTML.search(text):
        reducer = _Reducer()
        reducer.feed(text)
        reducer.close()
        paragraphs = [" ".join(words.split()) for words in reducer.texts]
    else:
        paragraphs = [part.strip() for part in _BLANK_LINES.split(text.replace("\r\n", "\n"))]
    return [part for part in paragraphs if part]


class _Reducer(HTMLParser):
    """Collect the texts between block tags."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = [""]
        self._dropped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED_TAGS:
            self._dropped.append(tag)
        elif self._dropped:
            return
        elif tag in _BLOCK_TAGS:
            self.texts.append("")
        elif tag in _CELL_TAGS:
            self.texts[-1] += " "
        elif tag == "img":
            self.texts[-1] += dict(attrs).get("alt") or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED_TAGS:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            while self._dropped.pop() != tag:
                pass
        elif not self._dropped and tag in _BLOCK_TAGS:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.texts[-1] += data
