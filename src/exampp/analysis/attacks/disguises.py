"""Letters that look like others, and texts that say nearly what others say."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from exampp.analysis.attacks.material import prn

_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_ALIKE: dict[int, str] = {
    **{ord(letter): chr(0x1D5A0 + n) for n, letter in enumerate(string.ascii_uppercase)},
    **{ord(letter): chr(0x1D5BA + n) for n, letter in enumerate(string.ascii_lowercase)},
}
_WIDE: dict[int, str] = {ord(letter): chr(ord(letter) + 0xFEE0) for letter in _LETTERS}
_INVISIBLE = "\u200b"
_INSIDE_WORD = re.compile(r"(?<=\w)(?=\w)")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\b")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|do|did|should|may|might|must)"
    r"( not)?\b"
)


def homoglyphs(text: str) -> str:
    """With letters that look like Latin ones (mathematical sans-serif) in their places."""
    return text.translate(_ALIKE)


def zero_width(text: str) -> str:
    """With a space that nobody sees between the letters of every word."""
    return _INSIDE_WORD.sub(_INVISIBLE, text)


def full_width(text: str) -> str:
    """With letters as wide as Chinese ones."""
    return text.translate(_WIDE)


def undisguised(text: str) -> str:
    """The text after Unicode's NFKC, without characters that format and are not seen."""
    normal = unicodedata.normalize("NFKC", text)
    return "".join(one for one in normal if unicodedata.category(one) != "Cf")


def near_miss(text: str, names: Sequence[str], *key: object) -> str:
    """The text with each number another, each name one of `names`, the first auxiliary negated."""

    def renumbered(found: re.Match[str]) -> str:
        digits = found[0]
        last = (int(digits[-1]) + 1 + int(prn("number", *key, found.start()) * 9)) % 10
        return f"{digits[:-1]}{last}"

    changed = _NUMBER.sub(renumbered, text)
    drawn = chain(names, names)

    def renamed(found: re.Match[str]) -> str:
        return next((name for name in drawn if name != found[0]), found[0])

    changed = _NAME.sub(renamed, changed)
    return _AUXILIARY.sub(lambda one: one[1] if one[2] else f"{one[1]} not", changed, count=1)


def names_in(texts: Sequence[str]) -> Iterator[str]:
    """Capitalised words within sentences."""
    for text in texts:
        yield from _NAME.findall(text)
