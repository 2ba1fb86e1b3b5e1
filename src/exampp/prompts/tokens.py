"""A reply as tokens: every word, number and mark gets one letter, its class.

The rules of `ratings` and `verdicts` are patterns over the string of these letters, so that each
reads a reply once. The classes of words are the table `reply_words.txt`; docs/definitions.md tells
what they are for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


def _classes_of_words() -> dict[str, str]:
    text = (resources.files(__package__) / "reply_words.txt").read_text(encoding="utf-8")
    table = re.findall(r"(?m)^([A-Za-z0-9]) \([^)]*\): ((?:.*\n)(?:  .*\n)*)", text)
    return {word: letter for letter, words in table for word in words.split()}


WORDS: Mapping[str, str] = MappingProxyType(_classes_of_words())
"""Words and their classes: the table `reply_words.txt`. Every other word is of class `w`."""

_NUMBER_WORDS = [word for word, letter in WORDS.items() if letter == "1"]
_MARKS = {
    **dict.fromkeys(".!\u2026\u3002", "."),
    **dict.fromkeys(":=\u2192\u21d2", ":"),
    **dict.fromkeys("([{", "("),
    **dict.fromkeys(")]}", ")"),
    **dict.fromkeys("$\u20ac\u00a3\u00a5%\u2030\u00b0\u2103\u2109#\u2116", "%"),
    **dict.fromkeys("<>\u2264\u2265\u2248\u00b1+~\u2212", "k"),
    **dict.fromkeys("-\u2014\u2015", "-"),
    **dict.fromkeys("/\u2044", "/"),
    **{mark: mark for mark in "?,;|"},
    "\u2013": "-",
    "&": "o",
    "\u3001": ",",
}
_NONE: Mapping[str, str] = MappingProxyType({})
_PLAIN_TAGS = frozenset(
    ("b", "i", "u", "em", "strong", "span", "code", "font", "mark", "sub", "sup", "br", "p", "div")
)
_LEGAL = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.0{1,9})?")
_TOKEN = re.compile(
    r"""(?x)
    (?P<space>\s++)
  | <(?P<close>/?+)(?P<tag>[A-Za-z][\w-]{0,40}+)[^<>\n]{0,80}+>
  | (?P<boxed>\$?\\boxed\b)
  | \\(?P<command>[A-Za-z]++)
  | (?P<arrow>[-=]>)
  | (?P<number>(?:(?<![\w)\]])[-\u2212])?(?:\.(?=[0-9]))?[0-9][^\W_]*+(?:[.,:](?=[0-9])[^\W_]++)*+)
  | (?P<word>[^\W_]++(?:'[^\W_]++)*+)
  | (?P<range>\.\.(?=[0-9]))
  | (?P<hyphen>(?<=\w)[-\u2010\u2011\u2013](?=\w))
  | (?P<quote>["\u201c\u201d\u201e\u00ab\u00bb])
  | (?P<mark>.)
    """
)
_MARKUP = re.compile(
    r"(?m)<\|[^|<>\n]{1,40}\|>|[*`\u200b-\u200f\ufeff]++"
    r"|^[ \t]{0,9}#{1,6}(?![#0-9])|\x1b\[[0-?]{0,20}[ -/]{0,5}[@-~]"
)
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*+>.*+$")
_CONTRACTIONS = {"'s": "i", "'d": "f", "'ll": "f", "'ve": "f", "'re": "i", "'m": "i"}


class _Plain(dict[int, int | str | None]):
    """Characters as plain ones: digits of any script, full-width forms, straight apostrophes."""

    def __missing__(self, code: int) -> str:
        digit = unicodedata.decimal(chr(code), None)
        wide = 0xFF01 <= code <= 0xFF5E
        self[code] = plain = chr(code - 0xFEE0 * wide) if digit is None else str(digit)
        return plain


_PLAIN = _Plain({ord("\u2019"): "'", ord("\u2018"): "'", ord("\u2212"): "-"})


Token = tuple[str, int | None]
_BREAK: Token = ("\n", None)
_FIXED: Mapping[str, list[Token]] = MappingProxyType(
    {
        "boxed": [_BREAK, ("R", None), (":", None)],
        "command": [],
        "arrow": [(":", None)],
        "range": [("h", None)],
        "hyphen": [("h", None)],
        "quote": [('"', None)],
    }
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The classes of the tokens of a reply, one letter each, and the values of its numbers."""

    kinds: str
    values: tuple[int | None, ...]

    def fold(
        self, pattern: re.Pattern[str], decide: Callable[[str, Sequence[int | None]], Token | None]
    ) -> Tokens:
        """Put the token that `decide` makes in place of each match, unless it makes none."""
        kinds: list[str] = []
        values: list[int | None] = []
        end = 0
        for found in pattern.finditer(self.kinds):
            start, stop = found.span()
            if made := decide(found[0], self.values[start:stop]):
                kinds += (self.kinds[end:start], made[0])
                values += (*self.values[end:start], made[1])
                end = stop
        return Tokens("".join((*kinds, self.kinds[end:])), (*values, *self.values[end:]))


def plain(reply: str) -> str:
    """The reply in plain characters, without markup and the lines that it quotes."""
    text = _MARKUP.sub("", reply.translate(_PLAIN)).strip()
    unquoted = _QUOTED_LINE.sub("", text).strip()
    return unquoted or text


def holds_number(text: str) -> bool:
    """Whether a text holds a digit or a number word, of any script; marks are no part of it."""
    text = _MARKUP.sub("", text)
    if any(c.isnumeric() for c in text):
        return True
    words = (found["word"] for found in _TOKEN.finditer(text) if found["word"])
    return any(WORDS.get(word.lower()) in ("1", "X") for word in words)


def tokenise(reply: str, field: str = "", words: Mapping[str, str] = _NONE) -> Tokens:
    """The tokens of a reply; `field` is a name of the rating beside the usual ones.

    `words` gives words classes of their own.

    Numbers are of class `N` where they are whole and plain (the scale is not known here), `X`
    where they are not whole, negative or too long, and `Q` where they are part of a word.
    """
    text = plain(reply)
    names = {**WORDS, **_named(field), **words}
    found: list[tuple[str, int | None, int]] = []
    for token in _TOKEN.finditer(text):
        found += ((kind, value, token.start()) for kind, value in _classes(token, names))
    return _without_quotations(_lines(found))


def _named(field: str) -> dict[str, str]:
    *qualifiers, name = re.findall(r"[A-Za-z][a-z]*+|[^\W\d_]++", field) or [""]
    return {**{word.lower(): "O" for word in qualifiers}, name.lower(): "R"} if name else {}


def _classes(token: re.Match[str], names: Mapping[str, str]) -> list[Token]:
    group, text = token.lastgroup or "", token[0]
    if group in _FIXED:
        return _FIXED[group]
    if group == "word":
        return _word(text.lower(), names)
    if group == "number":
        return [_number(text)]
    if group == "space":
        return [_BREAK] if "\n" in text else []
    if group == "tag":
        return _tag(token["tag"].lower(), names, closes=bool(token["close"]))
    return [(_MARKS[text], None)] if text in _MARKS else []


def _tag(name: str, names: Mapping[str, str], *, closes: bool) -> list[Token]:
    if name in _PLAIN_TAGS:
        return []
    words = [(names.get(word, "w"), None) for word in re.split(r"[\W_]+", name) if word]
    return [_BREAK] if closes else [_BREAK, *words, (":", None)]


def _number(text: str) -> Token:
    if _LEGAL.fullmatch(text):
        return "N", int(text.partition(".")[0])
    return ("X" if re.fullmatch(r"-?[0-9.,]++", text) else "Q"), None


def _word(word: str, names: Mapping[str, str]) -> list[Token]:
    letter = names.get(word, "w")
    if letter == "1":
        return [("1" if word == "one" else "N", _NUMBER_WORDS.index(word))]
    if letter == "w" and word.endswith("n't"):
        return [("n", None)]
    base, mark, rest = word.partition("'")
    if letter == "w" and base in names and mark + rest in _CONTRACTIONS:
        return [(names[base], None), (_CONTRACTIONS[mark + rest], None)]
    return [("Q" if letter == "w" and any(c.isnumeric() for c in word) else letter, None)]


def _lines(found: list[tuple[str, int | None, int]]) -> Tokens:
    """The tokens without bullets: a dash that opens a line and has a space behind it."""
    kinds = "".join(kind for kind, _, _ in found)
    bullets = {
        match.end() - 1
        for match in re.finditer(r"(?:\A|\n)-", kinds)
        if match.end() < len(found) and found[match.end()][2] > found[match.end() - 1][2] + 1
    }
    kept = [token for at, token in enumerate(found) if at not in bullets]
    return Tokens("".join(kind for kind, _, _ in kept), tuple(value for _, value, _ in kept))


_ONE_WORD = 3
_OUTSIDE = 2
_QUOTATION = re.compile(r'"[^"\n]*+"')


def _without_quotations(tokens: Tokens) -> Tokens:
    """The tokens with every quotation as one mark.

    Quotation marks around one word, around the name or the value of a field, or around the whole
    reply quote nothing: they are left out.
    """
    kinds: list[str] = []
    values: list[int | None] = []
    end = 0
    for found in _QUOTATION.finditer(tokens.kinds):
        start, stop = found.span()
        named = (
            tokens.kinds[start - 2 : start] in ("R:", "A:") or tokens.kinds[stop : stop + 1] == ":"
        )
        whole = stop - start >= len(tokens.kinds) - _OUTSIDE
        quotes = stop - start > _ONE_WORD and not named and not whole
        kinds += (tokens.kinds[end:start], '"' if quotes else tokens.kinds[start + 1 : stop - 1])
        values += tokens.values[end:start]
        values += (None,) if quotes else tokens.values[start + 1 : stop - 1]
        end = stop
    return Tokens("".join((*kinds, tokens.kinds[end:])), (*values, *tokens.values[end:]))
