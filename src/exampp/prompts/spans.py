"""Where in a passage something is said: the span that people are shown first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from exampp.prompts.normal_form import drop_punctuation, stem, stopwords

_WORD = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)*")
_PIECE = re.compile(r"(?s)\w++|\s++|.")
_END = re.compile(
    # each run is taken whole and once: a passage may hold a million dots or spaces
    r"(?<![.!?])[.!?]++[\"')\]\N{RIGHT DOUBLE QUOTATION MARK}]*+\s++(?![a-z])"  # as in English
    r"|[\u3002\uff01\uff1f]++"  # the same marks, full width
    r"|(?<!\s)[^\S\n]*+\n\s*+"  # white space with a line break in it
)

_SENTENCE = 500
"""Characters of a text whose stems are kept in mind: longer ones are whole passages."""


def best_span(passage: str, wanted: str) -> tuple[int, int]:
    """The part of a passage that is closest to what is wanted, as character offsets.

    Where the passage says it literally, as whole words in any case, that is the first occurrence.
    Otherwise it is the sentence that shares the most distinct stems of content words with it, the
    first of several such sentences; (0, 0) where none shares any. A sentence ends with a line, or
    with a mark `.!?` before space, if no small letter follows.
    """
    stems = content_stems(wanted)
    if not stems:
        return 0, 0
    if literal := find_words(wanted.strip().removesuffix("."), passage):
        return literal
    most, found = 0, (0, 0)
    for start, end in sentences(passage):
        shared = len(stems & content_stems(passage[start:end]))
        if shared > most:
            most, found = shared, (start, end)
    return found


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """The sentences of a text as offsets, without the space around them."""
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if stripped := sentence.strip():
            begin = start + sentence.index(stripped[0])
            yield begin, begin + len(stripped)
        start = end


def content_stems(text: str) -> frozenset[str]:
    """The stems of the words of a text that are no stopwords."""
    return _kept_stems(text) if len(text) <= _SENTENCE else _stems(text)


@lru_cache(maxsize=8192)
def _kept_stems(text: str) -> frozenset[str]:
    return _stems(text)


def _stems(text: str) -> frozenset[str]:
    words = (drop_punctuation(word) for word in _WORD.findall(text.lower()))
    return frozenset(stem(word) for word in words if word and word not in stopwords())


def find_words(wanted: str, text: str) -> tuple[int, int] | None:
    """Where a text first says the wanted words, as character offsets.

    Words are whole; case and the kind of white space do not count. Linear in both lengths.
    """
    # Every word as one character: a search among words is then a search among characters.
    codes: dict[str, str] = {}
    sought = "".join(code for code, _ in _coded(wanted.strip(), codes))
    coded = _coded(text, codes)
    start = "".join(code for code, _ in coded).find(sought) if sought else -1
    if start < 0:
        return None
    return coded[start][1].start(), coded[start + len(sought) - 1][1].end()


def _coded(text: str, codes: dict[str, str]) -> list[tuple[str, re.Match[str]]]:
    pieces = ((piece, piece[0].lower()) for piece in _PIECE.finditer(text))
    return [
        (codes.setdefault(" " if word.isspace() else word, chr(len(codes))), piece)
        for piece, word in pieces
    ]
