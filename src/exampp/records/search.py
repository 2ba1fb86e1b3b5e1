"""What a search finds: the words that are wanted, and records that hold them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

SearchKind = Literal["queries", "items", "passages", "replies", "decisions", "edits", "systems"]
"""What is searched: texts and ids of queries, items and passages, what graders replied, the reasons
of decisions and of edits of the bank, the names of systems."""
SEARCH_KINDS: tuple[SearchKind, ...] = get_args(SearchKind)
LONGEST = 300
"""Characters of what is wanted that count."""
_BEFORE = 80
"""Characters of an excerpt that stand before the first word found."""
_WANTED = re.compile(r'"([^"]+)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One record that holds all words.

    What it belongs to stands in the ids, empty where there is none: the `query_ids` of a passage
    are those of all queries that it was pooled, ranked or judged for. `text` is what was searched,
    `about` the text of the item or the query that it is said of, `said_by` the grader or the person
    who said it, `note` what else is to be known.
    """

    kind: SearchKind
    query_ids: tuple[str, ...]
    item_id: str
    passage_id: str
    text: str
    about: str
    said_by: str
    note: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What was found of one kind, in the order in which it came into the collection.

    `more` tells that there are more records than were wanted.
    """

    kind: SearchKind
    records: tuple[SearchHit, ...]
    more: bool


def search_words(text: str) -> tuple[str, ...]:
    """The words of a text, what stands in quotation marks as one, each once; of 300 characters."""
    seen = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text[:LONGEST])
    found = (phrase or word for phrase, word in _WANTED.findall(seen))
    return tuple({word.casefold(): word.strip() for word in found if word.strip()}.values())


class ExcerptPiece(NamedTuple):
    """A part of an excerpt, and whether it is a word that was wanted."""

    text: str
    wanted: bool


def excerpt_pieces(text: str, words: Sequence[str], length: int = 240) -> list[ExcerptPiece]:
    """About so many characters of a text, from shortly before the first word, words apart."""
    wanted = sorted(words, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, wanted)) or r"\Z", re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - _BEFORE) if first else 0
    if start:
        start = text.rfind(" ", 0, start) + 1 or start
    cut = text[start : start + length]
    found = [ExcerptPiece("\N{HORIZONTAL ELLIPSIS} ", False)] if start else []
    at = 0
    for match in pattern.finditer(cut):
        if match.start() > at:
            found.append(ExcerptPiece(cut[at : match.start()], False))
        if match[0]:
            found.append(ExcerptPiece(match[0], True))
        at = match.end()
    rest = cut[at:] + "\N{HORIZONTAL ELLIPSIS}" * (start + length < len(text))
    return [*found, ExcerptPiece(rest, False)] if rest else found
