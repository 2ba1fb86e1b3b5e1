"""Words: stems, stopwords, and the normal form in which answers are compared."""

from __future__ import annotations

import string
import threading
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources

from exampp.prompts.languages import ENGLISH, languages

_LOCAL = threading.local()
_SHORTEST = 2
_ASCII_PUNCTUATION = frozenset(string.punctuation)


def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a lower-case word: by Porter's original algorithm in English, else by Snowball's.

    As in Porter's own program, words of one or two letters stay as they are.
    """
    if len(word) <= _SHORTEST:
        return word
    stemmers = _LOCAL.__dict__
    stemmer = stemmers.get(language)
    if stemmer is None:
        # One a thread: a stemmer object keeps a cache that is not safe to share.
        import Stemmer

        stemmer = stemmers[language] = Stemmer.Stemmer(languages()[language].stemmer)
    try:
        return str(stemmer.stemWord(word))
    except UnicodeEncodeError:  # half a character has no stem
        return word


@cache
def stopwords() -> frozenset[str]:
    """The bundled English stopwords, lower case and without apostrophes."""
    text = (resources.files(__package__) / "stopwords.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


def drop_punctuation(text: str) -> str:
    """The text without punctuation marks of any script."""
    return "".join(
        c
        for c in text
        if c not in _ASCII_PUNCTUATION and not unicodedata.category(c).startswith("P")
    )


@lru_cache(maxsize=8192)
def normalise(text: str, dropped: frozenset[str] | None = None, language: str = ENGLISH) -> str:
    """The form in which two answers are compared.

    Lower case, without punctuation and stopwords (`dropped`, by default the bundled English ones,
    or the commonest words of the language), each word stemmed, words joined by single spaces.
    Source: EXAM++, section 4.2.1.
    """
    own = stopwords() if language == ENGLISH else languages()[language].common
    stops = own if dropped is None else dropped
    words = drop_punctuation(text.lower()).split()
    return " ".join(stem(word, language) for word in words if word not in stops)


def edit_distance(one: str, other: str) -> int:
    """Levenshtein distance in characters."""
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(one, other))


def fuzz_ratio(text: str, others: Iterable[str]) -> int:
    """Similarity to the most similar, 0 to 100: twice the matching characters over all, rounded.

    Equal to the `ratio` of fuzzywuzzy wherever that was compared; empty texts have none.
    """
    if not text:
        return 0
    from rapidfuzz import fuzz, process

    most = process.extractOne(text, others, scorer=fuzz.ratio)
    return round(most[1]) if most else 0


_LOOK_ALIKE = frozenset({"<compat>", "<wide>", "<narrow>", "<noBreak>", "<font>", "<initial>"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def as_seen(text: str) -> str:
    """The text as a reader sees it: composed (NFC), without what is invisible, spaces as one.

    Characters that only look like others (ligatures, full width) become these; superscripts and
    fractions, which are seen, stay. Two texts with one such form look the same.
    """
    if text.isascii():
        return " ".join(text.split())
    plain = "".join(_seen(c) for c in text)
    return " ".join(unicodedata.normalize("NFC", plain).split())


def unseen(text: str) -> str:
    """What of a text is not seen, with the place of the first such character; empty for nothing."""
    for place, character in enumerate(text, 1):
        if _is_invisible(character):
            return f"invisible {_named(character)} at character {place}"
    if text != unicodedata.normalize("NFC", text):
        place = next(
            n for n in range(1, len(text) + 1) if not unicodedata.is_normalized("NFC", text[:n])
        )
        return f"{_named(text[place - 1])} at character {place} is not composed (NFC)"
    for place, character in enumerate(text, 1):
        if _seen(character) != character:
            return f"{_named(character)} at character {place} looks like another one"
    return "its white space differs" if text != " ".join(text.split()) else ""


def _named(character: str) -> str:
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
