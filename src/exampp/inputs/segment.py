"""Long responses cut into passages, at paragraphs, then at sentences.

Tokens are those of the bundled tokenizer (WordPiece, uncased): unlike a count of words it holds for
text without spaces too. A sentence longer than the limit is cut between words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
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
    for sentence in split_sentences(piece.text):
        for text in windows(sentence, limit, spans) if limit else [sentence]:
            glue = piece.glue if first else " "
            count = len(spans(text))
            yield replace(piece, text=text, tokens=count, glue=glue, opens=first)
            first = False


def split_sentences(text: str) -> list[str]:
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


# ---- markup --------------------------------------------------------------------------------------


class MarkupBlock(NamedTuple):
    """A paragraph, heading or list item as text; `markup` is empty where the text has none."""

    text: str
    markup: str = ""


_HTML = re.compile(
    r"</(?:p|div|h[1-6]|ul|ol|li|table|tr|td|span|a|b|i|em|strong|section|article|body|html|script)"
    r"\s*>|<(?:br|p|hr)\s*/?>|<!doctype html|<html\b",
    re.IGNORECASE,
)


def markup_of(text: str) -> str:
    """`html` or `plain`, by what the text looks like; that it is Markdown its file has to say.

    A star, an underscore or a hyphen at the start of a line is text before it is a mark.
    """
    return "html" if _HTML.search(text) else "plain"


def blocks(text: str, kind: str | None = None) -> list[MarkupBlock]:
    """Return the blocks of a text in order, blank ones left out.

    `kind` is one of `KINDS`, by default what the text looks like. Scripts, styles and comments are
    dropped; of a link its text is left, of an image the alternative text, of a table its cells.
    """
    return [block for block in KINDS[kind or markup_of(text)](text) if block.text]


def _paragraphs(text: str) -> Iterator[str]:
    yield from re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.replace("\r\n", "\n"))


def _plain(text: str) -> Iterator[MarkupBlock]:
    for paragraph in _paragraphs(text):
        yield MarkupBlock(paragraph.strip())


# ---- HTML ----------------------------------------------------------------------------------------

_BLOCK_TAGS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
    ]
)
_CELL_TAGS = frozenset({"td", "th", "br"})
_DROPPED_TAGS = frozenset({"script", "style", "template", "noscript", "head", "svg", "iframe"})


class _Reducer(HTMLParser):
    """Collects texts between block tags, and where in the source each begins."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = [""]
        self.starts: list[int] = [0]
        self._dropped: list[str] = []
        self._lines = [0, *(match.end() for match in re.finditer("\n", source))]

    def _break(self) -> None:
        if not self.texts[-1].strip():
            self.texts[-1] = ""
            return
        line, column = self.getpos()
        self.starts.append(self._lines[line - 1] + column)
        self.texts.append("")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED_TAGS:
            self._dropped.append(tag)
        elif self._dropped:
            return
        elif tag in _BLOCK_TAGS:
            self._break()
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
            self._break()

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.texts[-1] += data


def _html(text: str) -> Iterator[MarkupBlock]:
    reducer = _Reducer(text)
    reducer.feed(text)
    reducer.close()
    if len(reducer.texts) > 1 and not reducer.texts[-1].strip():
        del reducer.texts[-1], reducer.starts[-1]
    bounds = pairwise([*reducer.starts, len(text)])
    for words, (start, end) in zip(reducer.texts, bounds, strict=True):
        yield MarkupBlock(" ".join(words.split()), text[start:end])


# ---- Markdown ------------------------------------------------------------------------------------

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_LINE_MARKS = re.compile(r"^\s*(?:>\s?)*\s*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?)?")
_TABLE_RULE = re.compile(r"^\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|?)+\s*$")
_RULE = re.compile(r"^\s*(?:[-*_]\s*){3,}$|^\s*=+\s*$")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+\S+")
_HIDDEN = 0xF0000
"""Escaped characters are moved here (private use) while marks are taken away."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SHOWN = {_HIDDEN + code: chr(code) for code in range(128)}
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"!\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r"\[\^[^\]]+\]"), ""),
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), r"\1"),
    (re.compile(r"</?[A-Za-z][^>\n]*>"), " "),
    (re.compile(r"(`+)(.+?)\1"), r"\2"),
    (re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*"), r"\1"),
    (re.compile(r"(?<!\w)__(?=\S)(.+?)(?<=\S)__(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_(?=[^\s_])([^_]+?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~"), r"\1"),
)


def _markdown(text: str) -> Iterator[MarkupBlock]:
    for source in _fenced(text.replace("\r\n", "\n")):
        if fence := _FENCE.match(source):
            inner = source.strip("\n").split("\n")[1:]
            if inner and inner[-1].strip().startswith(fence[1][:3]):
                inner.pop()
            yield MarkupBlock("\n".join(inner).strip(), source)
        else:
            yield MarkupBlock(_reduced(source), source)


def _fenced(text: str) -> Iterator[str]:
    """Yield paragraphs with the blank lines after them.

    A fenced piece of code as one of them.
    """
    current: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not fence and current and (found or (not current[-1].strip() and line.strip())):
            yield "".join(current)
            current = []
        current.append(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            yield "".join(current)
            current, fence = [], ""
    if current:
        yield "".join(current)


def _reduced(source: str) -> str:
    kept = []
    for line in source.split("\n"):
        if _TABLE_RULE.match(line) or _RULE.match(line) or _DEFINITION.match(line):
            continue
        bare = _LINE_MARKS.sub("", line, count=1)
        if bare.count("|") > 1:
            bare = " ".join(cell.strip() for cell in bare.strip().strip("|").split("|"))
        kept.append(bare.strip())
    words = _ESCAPED.sub(lambda found: chr(_HIDDEN + ord(found[1])), "\n".join(filter(None, kept)))
    for pattern, left in _INLINE:
        words = pattern.sub(left, words)
    return unescape(words).translate(_SHOWN).strip()


KINDS: Mapping[str, Callable[[str], Iterator[MarkupBlock]]] = {
    "html": _html,
    "markdown": _markdown,
    "plain": _plain,
}
"""How a text of each kind is reduced."""
