"""Languages as data: expressions of unanswerability, stems, common words; what a text is in."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import NamedTuple

from exampp.records.toml import parse_toml

ENGLISH = "en"
_WORD = re.compile(r"[^\W\d_]+")
_WORDS = 4000
"""Words of a sample, from its start."""
_FEWEST = 12
_SHARE = 0.15
_MARGIN = 1.4


class Language(NamedTuple):
    """What is known of a language; `stemmer` is what Snowball calls it."""

    code: str
    name: str
    stemmer: str
    unanswerable: tuple[str, ...]
    negations: frozenset[str]
    common: frozenset[str]


@cache
def languages() -> Mapping[str, Language]:
    """The languages that are known, by their code (ISO 639-1)."""
    text = (resources.files(__package__) / "languages.toml").read_text(encoding="utf-8")
    return {
        code: Language(
            code,
            found["name"],
            found["stemmer"],
            tuple(found["unanswerable"]),
            frozenset(found["negations"].split()),
            frozenset(found["common"].split()),
        )
        for code, found in parse_toml(text, "languages.toml", "").items()
    }


def language_of(texts: Iterable[str]) -> str | None:
    """The language that most of the texts are in, by its English name; None where that is unclear.

    Texts in Latin letters are known by their commonest words, those in others by their script
    (such as Cyrillic), which stands for the languages that are written in it.
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
        {one.name: sum(word in one.common for word in words) for one in languages().values()}
    )
    (best, most), (_, second) = shares.most_common(2)
    return best if most >= _SHARE * len(words) and most >= _MARGIN * second else None


def _script(word: str) -> str:
    name = unicodedata.name(word[0], "unknown").split()[0].split("-")[0].capitalize()
    return _SCRIPTS.get(name, name)


_SCRIPTS = {"Cjk": "Chinese or Japanese", "Hiragana": "Chinese or Japanese",
            "Katakana": "Chinese or Japanese", "Hangul": "Korean"}  # fmt: skip
