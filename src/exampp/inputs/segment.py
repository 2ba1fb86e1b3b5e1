"""Long responses cut into passages, at paragraphs, then at sentences.

Tokens are those of the bundled tokenizer (WordPiece, uncased): unlike a count of words it holds for
text without spaces too. A sentence longer than the limit is cut between words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from exampp.formats.markup import blocks
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


@dataclass(frozen=True, slots=True)
class Segment:
    """A passage of a response: its text, what it cites, and the markup of its paragraphs."""

    text: str
    citations: tuple[str, ...] = ()
    markup: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is not cut any further; `glue` joins it to the piece before it."""

    text: str
    tokens: int
    glue: str = PARAGRAPH
    citations: tuple[str, ...] = ()
    markup: str = ""
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
    starts a passage of its own and is cut at sentences. A limit of 0 makes a passage of every
    sentence. HTML and Markdown are reduced to text.
    """
    tokens = spans or bundled_spans()
    pieces = [part for whole in _pieces(response, tokens) for part in _cut(whole, limit, tokens)]
    return [_joined(group) for group in _groups(pieces, limit)]


def _pieces(response: Response, spans: Spans) -> Iterator[_Piece]:
    for statement in response.statements:
        glue = " " if len(response.statements) > 1 else PARAGRAPH
        for text, markup in blocks(statement.text, response.markup):
            yield _Piece(text, len(spans(text)), glue, statement.citations, markup)
            glue = PARAGRAPH


def _cut(piece: _Piece, limit: int, spans: Spans) -> Iterator[_Piece]:
    """Yield the piece, or its sentences where it is longer than the limit (0: always)."""
    if limit and piece.tokens <= limit:
        yield piece
        return
    first = True
    for sentence in sentences(piece.text):
        for text in windows(sentence, limit, spans) if limit else [sentence]:
            glue = piece.glue if first else " "
            count = len(spans(text))
            yield replace(piece, text=text, tokens=count, glue=glue, opens=first)
            first = False


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, at the ends of lines too; blank ones left out."""
    found, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        head = text[start : end.end()].strip()
        if _ABBREVIATION.search(head):
            continue
        found.append(head)
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def windows(text: str, limit: int, spans: Spans) -> list[str]:
    """Return the text cut into pieces of at most `limit` tokens, between words where it has any."""
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
    text = group[0].text + "".join(piece.glue + piece.text for piece in group[1:])
    cited = dict.fromkeys(citation for piece in group for citation in piece.citations)
    # the sentences of one paragraph share its markup
    markups = [piece.markup for piece in group]
    kept = [markup for i, markup in enumerate(markups) if i == 0 or markup != markups[i - 1]]
    return Segment(text, tuple(cited), "".join(kept).strip())
