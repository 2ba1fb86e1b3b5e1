"""Find the span of a passage that is shown as evidence; compare and normalise texts."""

from __future__ import annotations

import re
import string
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from itertools import islice

from exampp.records.toml import parse_toml

_WORD = re.compile(r"[^\W\d_]+")
_WORDS = 4000
"""Words of a sample, from its start."""
_FEWEST = 12
_SHARE = 0.15
_MARGIN = 1.4


@cache
def _common_words() -> Mapping[str, frozenset[str]]:
    """Return the most common words of each known language, by its English name."""
    text = (resources.files(__package__) / "languages.toml").read_text(encoding="utf-8")
    languages = parse_toml(text, "languages.toml", "")
    return {name: frozenset(words.split()) for name, words in languages.items()}


def language_of(texts: Iterable[str]) -> str | None:
    """Return the language of most of the texts by its English name; None if unclear.

    Texts in Latin letters are identified by their most common words, others by their script (such
    as Cyrillic), which represents all languages written in it.
    """
    words: list[str] = []
    for text in texts:
        words += islice(_WORD.findall(text.lower()), _WORDS)
        if len(words) >= _WORDS:
            break
    if not words:
        return None
    (script, count), *_ = Counter(_script(word) for word in words).most_common()
    if script != "Latin":
        return script if count > len(words) / 2 else None
    if len(words) < _FEWEST:
        return None
    shares = Counter(
        {name: sum(word in common for word in words) for name, common in _common_words().items()}
    )
    (best, most), (_, second) = shares.most_common(2)
    return best if most >= _SHARE * len(words) and most >= _MARGIN * second else None


def _script(word: str) -> str:
    name = unicodedata.name(word[0], "unknown").split()[0].split("-")[0].capitalize()
    return _SCRIPTS.get(name, name)


_SCRIPTS = {"Cjk": "Chinese or Japanese", "Hiragana": "Chinese or Japanese",
            "Katakana": "Chinese or Japanese", "Hangul": "Korean"}  # fmt: skip

_LOCAL = threading.local()
_SHORTEST = 2
_ASCII_PUNCTUATION = frozenset(string.punctuation)


def stem(word: str) -> str:
    """Stem a lower-case word by Porter's original algorithm.

    As in Porter's own program, words of one or two letters are unchanged.
    """
    if len(word) <= _SHORTEST:
        return word
    stemmer = getattr(_LOCAL, "stemmer", None)
    if stemmer is None:
        # One per thread, because the cache of a stemmer object is not thread-safe.
        import Stemmer

        stemmer = _LOCAL.stemmer = Stemmer.Stemmer("porter")
    try:
        return str(stemmer.stemWord(word))
    except UnicodeEncodeError:  # half a character has no stem
        return word


@cache
def stopwords() -> frozenset[str]:
    """Return the bundled English stopwords, lower case and without apostrophes."""
    text = (resources.files(__package__) / "stopwords.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


def drop_punctuation(text: str) -> str:
    """Return the text without punctuation marks of any script."""
    return "".join(
        c
        for c in text
        if c not in _ASCII_PUNCTUATION and not unicodedata.category(c).startswith("P")
    )


@lru_cache(maxsize=8192)
def normalise(text: str, dropped: frozenset[str] | None = None) -> str:
    """Return the form in which two answers are compared.

    Lower case, without punctuation and stopwords (`dropped`, by default the bundled ones), each
    word stemmed, words joined by single spaces. Source: EXAM++, section 4.2.1.
    """
    stops = stopwords() if dropped is None else dropped
    words = drop_punctuation(text.lower()).split()
    return " ".join(stem(word) for word in words if word not in stops)


def edit_distance(one: str, other: str) -> int:
    """Return the Levenshtein distance in characters."""
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(one, other))


def is_one_edit(one: str, other: str) -> bool:
    """Return whether at most one insertion, deletion, substitution or swap separates two words."""
    from rapidfuzz.distance import OSA

    return int(OSA.distance(one, other, score_cutoff=1)) <= 1


def fuzz_ratio(text: str, others: Iterable[str]) -> int:
    """Return the highest similarity, 0 to 100: twice the matching characters over all, rounded.

    Equal to the `ratio` of fuzzywuzzy in all comparisons so far; 0 for empty texts.
    """
    if not text:
        return 0
    from rapidfuzz import fuzz, process

    most = process.extractOne(text, others, scorer=fuzz.ratio)
    return round(most[1]) if most else 0


_LOOK_ALIKE = frozenset({"<compat>", "<wide>", "<narrow>", "<noBreak>", "<font>", "<initial>"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def visible_form(text: str) -> str:
    """Return the text as a reader sees it: composed (NFC), no invisible characters, single spaces.

    Look-alike characters (ligatures, full width) are replaced; visible differences such as
    superscripts and fractions are preserved. Texts with equal visible forms look the same.
    """
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", "".join(_seen(c) for c in text)).split())


def describe_invisible(text: str) -> str:
    """Describe the invisible characters of a text and the place of the first; empty for none."""
    for place, character in enumerate(text, 1):
        if _is_invisible(character):
            return f"invisible {_character_name(character)} at character {place}"
    if text != unicodedata.normalize("NFC", text):
        place = next(
            n for n in range(1, len(text) + 1) if not unicodedata.is_normalized("NFC", text[:n])
        )
        return f"{_character_name(text[place - 1])} at character {place} is not composed (NFC)"
    for place, character in enumerate(text, 1):
        if _seen(character) != character:
            return f"{_character_name(character)} at character {place} looks like another one"
    return "its white space differs" if text != " ".join(text.split()) else ""


def _character_name(character: str) -> str:
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'without a name').lower()})"


def _seen(character: str) -> str:
    if _is_invisible(character):
        return ""
    if unicodedata.decomposition(character).partition(" ")[0] in _LOOK_ALIKE:
        return unicodedata.normalize("NFKC", character)
    return character


def _is_invisible(character: str) -> bool:
    return (
        unicodedata.category(character) == "Cf"
        or character in _INVISIBLE
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


_WORD_WITH_APOSTROPHE = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)*")
_PIECE = re.compile(r"(?s)\w++|\s++|.")
_END = re.compile(
    # each run is matched as a whole, because a passage may have a million dots or spaces
    r"(?<![.!?])[.!?]++[\"')\]\N{RIGHT DOUBLE QUOTATION MARK}]*+\s++(?![a-z])"  # as in English
    r"|[\u3002\uff01\uff1f]++"  # the same marks, full width
    r"|(?<!\s)[^\S\n]*+\n\s*+"  # white space with a line break in it
)

_SENTENCE = 500
"""Maximum characters of a text whose stems are cached; longer ones are whole passages."""


def best_span(passage: str, wanted: str) -> tuple[int, int]:
    """Return the part of a passage that is closest to the `wanted` text, as character offsets.

    If the passage contains it literally, as whole words in any case, this is the first occurrence.
    Otherwise it is the first sentence that shares the most distinct stems of content words with it;
    (0, 0) if none shares any. A sentence ends at a line end, or at a mark `.!?` before space,
    unless a lower-case letter follows.
    """
    stems = content_stems(wanted)
    if not stems:
        return 0, 0
    if literal := find_words(wanted.strip().removesuffix("."), passage):
        return literal

    def shared(span: tuple[int, int]) -> int:
        return len(stems & content_stems(passage[slice(*span)]))

    best = max(sentence_spans(passage), key=shared, default=(0, 0))
    return best if shared(best) else (0, 0)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text as offsets, without the space around them."""
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if stripped := sentence.strip():
            begin = start + sentence.index(stripped[0])
            yield begin, begin + len(stripped)
        start = end


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that are not stopwords."""
    return _kept_stems(text) if len(text) <= _SENTENCE else _stems(text)


def _stems(text: str) -> frozenset[str]:
    words = (drop_punctuation(word) for word in _WORD_WITH_APOSTROPHE.findall(text.lower()))
    return frozenset(stem(word) for word in words if word and word not in stopwords())


_kept_stems = lru_cache(maxsize=8192)(_stems)


def find_words(wanted: str, text: str) -> tuple[int, int] | None:
    """Return the first occurrence of the wanted words in a text, as character offsets.

    Words are whole; case and kind of white space are ignored. Linear in both lengths.
    """
    # Encode each word as one character, so that searching words is searching characters.
    codes: dict[str, str] = {}
    coded_words = "".join(code for code, _ in _coded(wanted.strip(), codes))
    coded = _coded(text, codes)
    start = "".join(code for code, _ in coded).find(coded_words) if coded_words else -1
    if start < 0:
        return None
    return coded[start][1].start(), coded[start + len(coded_words) - 1][1].end()


def _coded(text: str, codes: dict[str, str]) -> list[tuple[str, re.Match[str]]]:
    pieces = ((piece, piece[0].lower()) for piece in _PIECE.finditer(text))
    return [
        (codes.setdefault(" " if word.isspace() else word, chr(len(codes))), piece)
        for piece, word in pieces
    ]
