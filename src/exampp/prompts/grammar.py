"""The verdict, yes or no, that a reply gives in text: the grammar of docs/definitions.md."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import ascii_letters
from types import MappingProxyType
from typing import NamedTuple

# A reply as tokens: every word, number and mark gets one letter, its class.
#
# The rules of `ratings` and `verdicts` are patterns over the string of these letters, so that
# each reads a reply once. The classes of words are the table `reply_words.txt`;
# docs/definitions.md tells what they are for.


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


_BEFORE = re.compile(r"(?:k[viotOa]{0,3}|[zj]a?)\Z")
_AFTER = re.compile(
    r"[zynkjZ/]|i[kv]?k|oa?k|-+(?=\Z|[.\n])"
    r"|[,;:(\-]+(?:[zyj]|Z,|[nZ](?=\Z|[.)\n]))|[.\n]+[zjZ][^.?\n]{0,8}[NXPEYW]"
)
_NEAR = 5


class Doubts:
    """The places of a reply (classes of tokens, `reply_words.txt`) that are in doubt."""

    def __init__(self, kinds: str) -> None:
        self._kinds = kinds
        self._doubted = _doubted(kinds)

    def reach(self, at: int) -> bool:
        """Whether the sentence around a place, or what stands beside it, puts it in doubt."""
        return bool(
            self._doubted[at]
            or _BEFORE.search(self._kinds[max(0, at - _NEAR) : at])
            or _AFTER.match(self._kinds, at + 1)
        )


def _doubted(kinds: str) -> list[bool]:
    """For each place, whether its sentence denies it, asks for it, or puts a condition on it."""
    before, subordinate, opened = False, False, True
    doubted = []
    for kind in kinds:
        if kind in ".?\n;sl":
            before, subordinate, opened = False, False, True
        elif kind == "," and subordinate:
            before = subordinate = False
        elif kind.isalpha():
            before = before or kind in "nzyrZ"
            subordinate, opened = subordinate or (opened and kind == "b"), False
        doubted.append(before)
    asked = conditional = False
    for at in range(len(kinds) - 1, -1, -1):
        kind = kinds[at]
        if kind in ".?\n;":
            asked, conditional = kind == "?", False
        elif kind in "b:(-":
            conditional = False
        elif kind == "y":
            conditional = True
        doubted[at] = doubted[at] or asked or conditional
    return doubted


# The rating that a reply gives in text: the grammar of docs/definitions.md.
#
# A reply is a rating only if it says exactly one. The rules are patterns over the classes of its
# tokens (`reply_words.txt`): first the numbers that rate nothing are set aside (counts, scales,
# references), then fields called rating, score or grade are looked for, then statements.


_NUMBER = "[NXPE]"
# Words that leave a statement what it is: no number, and none of what spoils one.
_F = "[" + "".join(sorted(set(ascii_letters) - set("NXQPECLnzyrZkjqm"))) + '"h]'

# Numbers that rate nothing.
_ASIDE = r"(?:\([^()\n]{0,8}\))?"
_ONE = re.compile(r"(?:(?<=[:aivRVA(\n|\-])|\A)1(?=\Z|[.,;:)(\n\-|/bgU])")
_PRONOUN = re.compile("1")
_WHOLE_NUMBER = re.compile("N")
_DATE = re.compile(r"(?<![/h])[NX](?:[/h][NX]){2,}+")
_SHARE = re.compile(r"[NX](?:/|Uv|v)[NX]")
_SCALE = re.compile(
    rf"S[vpi:,(]{{0,3}}[NX]{_ASIDE}[hot\-,][NX]{_ASIDE}|[NX][hot\-][NX]h?S|S[v:][NX]"
    r"|[NX]h?[gu]S|[NX]hu|Uv[NX]"
)
_ENDS = re.compile(rf"[NX]{_ASIDE}[hot\-][NX]{_ASIDE}")
_LEVELS = re.compile(r"q[NX]i(?:[^.?\nNX]{0,12}[NX]i)*+")
_LISTED = re.compile(r'(?:(?<=\n)|\A)N(?=[.)][("]?[a-zA-Z])')
_COUNT = re.compile(
    rf"{_NUMBER}(?=h[^NXPE]|[Fx]*[weSu](?![a-zA-Z]{{0,2}}[:|])|gw|[%mv])"
    rf"|(?:(?<=%)|(?<=[we]h)|(?<=[^O]e)|(?<=\Ae)|(?<=Z[.:%])|(?<=[^O]e[.:%])|(?<=\Ae[.:%])){_NUMBER}"
)
_COUNTS = re.compile(r"(?<![hojt])(?:[NXPE][hojt])++(?=Q)")
_ALTERNATIVES = re.compile(rf"{_NUMBER}(?:(?:,?[hojt]a?|-){_NUMBER})++")

# Fields.
_RATING_FIELD = re.compile(
    r"(?P<name>[RAF])(?P<about>(?:\(?[cC]\)?|[pviOaeT]){0,6})(?<!a)"
    r"(?P<mark>[:|][:|\-\n(]*+|\n[\n\-(|]*+|-\(?|)"
    r"(?:[OaAe]{0,2}(?P<value>[NXPEQcC]))?"
)
_NOUN = re.compile(r"w{1,3}[:|][OaA]{0,2}[NXPEQ]")
_OTHER_FIELD = re.compile(rf"(?<=[wefQ][:|]){_NUMBER}")
_NEXT_LABEL = re.compile(r"[OaF]{0,4}[RA][:|]")
_QUALIFIERS = re.compile(r"[OaFxsh]{0,5}\Z")
_FOREIGN = {"": re.compile(r"[a-zA-Z]\Z"), "qualified": re.compile(r"[pvqS]\Z")}
_STARTS = re.compile(r"(?:\A|[\n.?;,:|)(])\Z")
_DOUBTED = re.compile(r"[nzyrkjZ][a-zA-Z]*\Z")
_REACH = 12
_RATING_NAME = re.compile(r"[OaFxh]*R")
_ANSWER_NAME = re.compile(r"[OaFxh]*A+R?")
_LONGEST_NAME = 100

# Statements: each ends in the number that it gives.
_N = f"(?P<n>{_NUMBER})"


def _forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


_IS = rf"R[pOaeT]{{0,4}}i{{1,3}}:?[Oa]{{0,2}}{_N}"
_NAMED = _forms(
    rf"(?<![wevpfd])[OaF]{{0,4}}{_IS}",  # my rating would be 4
    rf"(?:(?<=[\n.,;:])|\A)[OaF]{{0,4}}Rv[Oa]{{0,2}}{_N}",  # a rating of 4
)
_BEST = _forms(rf"d{_IS}")  # the best rating is 3
_SENTENCES = _forms(
    rf"I{_F}{{0,6}}[VR](?:{_F}{{0,12}}[aOTeAivVRF])?(?:(?<=V)p)?:?a?{_N}",  # I rate it 4
    rf"(?:[TeA]{_F}{{0,6}}|Of{{0,3}})D(?:{_F}{{0,4}}[aOivRA])?{_N}",  # it deserves a 4
    rf"[TOeA]{{1,3}}i{{1,3}}V[aTivRO]{{0,4}}{_N}",  # this passage is rated 4
    rf"(?:[TOeA]i{{1,3}}f?|[TO]VT):?aw?{_N}",  # it is a solid 4, that makes it a 4
    rf"Ti{{1,3}}:{_N}",  # it is: 4
    rf"s,?[TIOaiVRDf]{{0,6}}:?{_N}",  # so it gets 4
    rf"FAi{{1,2}}:?a?{_N}",  # the final answer is 4
)
_ALONE = _forms(
    rf"\A[\n\-(|]*+a?{_N}",  # first in the reply
    rf"\n[(|]*+a?{_N}[^\n]*+\Z",  # first in its last line
    rf"[.?]a?{_N}[.)\n]*+\Z",  # its last sentence
    rf"(?:(?<=[\n.,:(\-])|\A)a?(?P<n>P|{_NUMBER}(?=g))",  # 4/5, 4 stars
    rf"V:a?{_N}",  # rated: 4
    rf"(?:(?<=[\n.])|\A)O:a?{_N}",  # overall: 4
    rf"\ATi{{1,3}}{_N}(?=[.\n]*+\Z|:)",  # it's 4, and no more
)
_AFTER_VALUE = re.compile(r'\Z|[,:\-](?![NXPEQ])|[.;)(\n|"bcNglsptOTIRA]|[a-zA-Z]{1,3}[:|]')
_AFTER_SENTENCE = re.compile(rf"(?!w)(?:{_AFTER_VALUE.pattern})")
_AFTER_ALONE = re.compile(
    r'\Z|[,:\-](?![NXPEQ])|[.;)(\n|"bcNglTI]|g|O[eA]|p[aO]?c|[a-zA-Z]{1,3}[:|]'
)
_HEAD = re.compile(r"(?:\([^()\n]{0,12}\))?[^.?\n;b:(|\-]{0,200}+(?:[(:\-]{1,9}[NPE])?")


@dataclass(frozen=True, slots=True)
class ReadRating:
    """What a reply says: a rating, or the rule that tells why there is none."""

    rating: int | None
    rule: str


class FieldValue(NamedTuple):
    """What one field says, and whether it is called final."""

    found: ReadRating
    final: bool = False


def agreed(said: Sequence[FieldValue]) -> ReadRating:
    """What fields say together: those called final alone, if any are; none may say otherwise."""
    counting = [one.found for one in said if one.final] or [one.found for one in said]
    unread = [found for found in counting if found.rating is None]
    same = len({found.rating for found in counting}) == 1
    return unread[0] if unread else counting[0] if same else ReadRating(None, "several")


def find_fields(reply: str, lowest: int, highest: int, field: str = "") -> list[FieldValue]:
    """What the fields of a text say that are called rating, score, grade, or `field`."""
    return _RatingReply(reply, lowest, highest, field).fields()


def find_rating(reply: str, lowest: int, highest: int, field: str = "") -> ReadRating:
    """The rating that a reply gives in text, on a scale of whole numbers.

    Without one, the rule says why: docs/definitions.md lists the rules. Sources: EXAM++, section
    4.2.2; FLAN-T5-EXAM, section 3.2.3.
    """
    found = _RatingReply(reply, lowest, highest, field)
    fields = found.fields()
    return agreed(fields) if fields else found.statement()


def name_of(name: str, field: str = "") -> str:
    """What a name of JSON is: `rating`, `final`, `answer` or `other`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[:_LONGEST_NAME])
    kinds = tokenise(words, field).kinds
    if not _RATING_NAME.fullmatch(kinds) and not _ANSWER_NAME.fullmatch(kinds):
        return "other"
    if set("Fx") & set(kinds):
        return "final"
    return "rating" if _RATING_NAME.fullmatch(kinds) else "answer"


def _scaled(tokens: Tokens, lowest: int, highest: int) -> Tokens:
    """The tokens with scales and shares as one token, and `X` for what is off the scale."""

    def share(_: str, values: Sequence[int | None]) -> Token:
        part, whole = values[0], values[-1]
        if whole == highest and on_scale(part):
            return "P", part
        return ("X" if whole is None or whole >= highest else "E"), None

    def scale(_: str, values: Sequence[int | None]) -> Token:
        ends = {value for value in values if value is not None}
        return ("c" if ends in ({lowest, highest}, {highest}) else "C"), None

    def ends(_: str, values: Sequence[int | None]) -> Token | None:
        return ("c", None) if set(values) - {None} == {lowest, highest} else None

    def number(_: str, values: Sequence[int | None]) -> Token:
        return ("N", values[0]) if on_scale(values[0]) else ("X", None)

    def on_scale(value: int | None) -> bool:
        return value is not None and lowest <= value <= highest

    tokens = tokens.fold(_ONE, lambda *_: ("N", 1)).fold(_PRONOUN, _as("f"))
    tokens = tokens.fold(_DATE, _as("Q")).fold(_SHARE, share)
    return (
        tokens.fold(_SCALE, scale)
        .fold(_ENDS, ends)
        .fold(_LEVELS, _as("c"))
        .fold(_WHOLE_NUMBER, number)
    )


def _as(kind: str) -> Callable[[str, Sequence[int | None]], Token]:
    return lambda *_: (kind, None)


def _counted(tokens: Tokens) -> Tokens:
    """The tokens with `Q` for numbers that count or name something, and `E` for alternatives."""
    listed = set()
    for expected, found in enumerate(_LISTED.finditer(tokens.kinds), start=1):
        if tokens.values[found.start()] != expected:
            break
        listed.add(found.start())
    tokens = _marked(tokens, listed, "Q").fold(_COUNT, _as("Q")).fold(_COUNTS, _as("Q"))
    return tokens.fold(_ALTERNATIVES, _as("E"))


def _marked(tokens: Tokens, places: Collection[int], kind: str) -> Tokens:
    if not places:
        return tokens
    kinds = [kind if at in places else old for at, old in enumerate(tokens.kinds)]
    return Tokens("".join(kinds), tokens.values)


class _Field(NamedTuple):
    """A field: what it is called (rating, final, answer, other), and where its value stands.

    `at` is -1 where it has none; `doubted` tells that its name follows a negation or the like.
    """

    name: str
    at: int
    doubted: bool
    other_scale: bool


def _fields(kinds: str) -> Iterator[_Field]:
    for match in _RATING_FIELD.finditer(kinds):
        before = kinds[max(0, match.start() - _REACH) : match.start()]
        qualifiers = _QUALIFIERS.search(before)
        own = qualifiers[0] if qualifiers else ""
        before = before.removesuffix(own)
        if _is_field(match, before) and not _NEXT_LABEL.match(kinds, match.end("mark")):
            doubted = _DOUBTED.search(before) is not None
            name = _called(match["name"], own, before, doubted)
            yield _Field(name, match.start("value"), doubted, "C" in match["about"])


def _is_field(match: re.Match[str], before: str) -> bool:
    """Whether what follows a name makes it a field: a colon, or another mark with a number."""
    mark, has_value = match["mark"], (match["value"] or "-") in "NXPE"
    if mark[:1] == ":" or not has_value:
        return mark[:1] == ":" and (has_value or match["name"] != "F")
    if mark or match["name"] != "R":
        return bool(mark) and match["name"] != "F"
    if match["about"] or _NOUN.match(match.string, match.end()):
        return False  # grade 5 pupils: 4
    return _STARTS.search(before) is not None


def _called(name: str, own: str, before: str, doubted: bool) -> str:
    if name == "R" and not own and before.endswith("A"):
        return "answer"
    if not doubted and _FOREIGN["qualified" if own else ""].search(before):
        return "other"
    return "final" if set("Fx") & set(own + name) else "rating" if name == "R" else "answer"


class _RatingReply:
    """The tokens of a reply with its fields, and the places that its sentences put in doubt."""

    def __init__(self, reply: str, lowest: int, highest: int, field: str) -> None:
        tokens = _counted(_scaled(tokenise(reply, field), lowest, highest))
        self.named = list(_fields(tokens.kinds))
        other = {one.at for one in self.named if one.name == "other"}
        other |= {found.start() for found in _OTHER_FIELD.finditer(tokens.kinds)}
        other -= {one.at for one in self.named if one.name != "other"} | {-1}
        self.tokens = _marked(tokens, other, "L")
        self.kinds = self.tokens.kinds
        self.doubts = Doubts(self.kinds)
        # "the best rating is 5" tells what the scale is
        best = {at for at in self._places(_BEST) if tokens.values[at] != highest}
        self.stated = self._places(_NAMED) | best

    def fields(self) -> list[FieldValue]:
        """What each field says that is called a rating, and what is stated behind them."""
        ratings = [one for one in self.named if one.name in ("rating", "final")]
        if not ratings:
            return []
        said = [FieldValue(self._value(one), one.name == "final") for one in ratings]
        final = any(one.final for one in said)
        behind = (at for at in self.stated | self._places(_SENTENCES) if at > ratings[-1].at)
        stated = [found for found in map(self._number, behind) if found.rating is not None]
        return said + [FieldValue(found, final) for found in stated]

    def _value(self, field: _Field) -> ReadRating:
        if field.at < 0:
            return ReadRating(None, "no value")
        if field.doubted:
            return ReadRating(None, "hedged")
        if field.other_scale or "C" in self.kinds[field.at : field.at + _REACH].partition("\n")[0]:
            return ReadRating(None, "off-scale")
        found = self._number(field.at)
        head = _HEAD.match(self.kinds, field.at + 1)
        rest = range(field.at + 1, head.end() if head else field.at)
        others = {self.tokens.values[at] for at in rest if self.kinds[at] in "NPE"}
        return (
            found
            if found.rating is None or others <= {found.rating}
            else ReadRating(None, "several")
        )

    def _number(self, at: int) -> ReadRating:
        """What the number at a place says where it stands."""
        kind = self.kinds[at]
        if kind in "XC":
            return ReadRating(None, "off-scale")
        if kind in "Ec":
            return ReadRating(None, "several")
        if self.doubts.reach(at):
            return ReadRating(None, "hedged")
        if kind not in "NP" or not _AFTER_VALUE.match(self.kinds, at + 1):
            return ReadRating(None, "no verdict")
        return ReadRating(self.tokens.values[at], "rated")

    def statement(self) -> ReadRating:
        """What a reply says in which no field is called a rating."""
        named = self.stated
        stated = self._set_off(named | self._places(_SENTENCES), _AFTER_SENTENCE)
        answers = {one.at for one in self.named if one.name == "answer" and one.at >= 0}
        stated |= self._set_off(answers | self._places(_ALONE), _AFTER_ALONE)
        numbers = {at for at, kind in enumerate(self.kinds) if kind in "NPE"}
        said = {self._number(at) for at in stated}
        others = {self._number(at) for at in numbers - stated}
        if len({self.tokens.values[at] for at in numbers | stated}) > 1:
            return ReadRating(None, "several")
        if stated - named and "L" in self.kinds:
            return ReadRating(None, "several")
        for rule in ("several", "hedged", "off-scale"):
            if ReadRating(None, rule) in said | others:
                return ReadRating(None, rule)
        if not said:
            return ReadRating(
                None, "no verdict" if set(self.kinds) & set("NPEXQLcC") else "no number"
            )
        return ReadRating(None, "off-scale") if "C" in self.kinds else said.pop()

    def _places(self, forms: Sequence[re.Pattern[str]]) -> set[int]:
        return {match.start("n") for form in forms for match in form.finditer(self.kinds)}

    def _set_off(self, places: set[int], after: re.Pattern[str]) -> set[int]:
        """The places after which a statement ends, or that are in doubt, which is told as such."""
        return {at for at in places if after.match(self.kinds, at + 1) or self.doubts.reach(at)}


_VERDICT_WORDS = {
    "yes": "Y",
    "no": "W",
    "true": "G",
    "correct": "G",
    "false": "B",
    "incorrect": "B",
}
_VERDICT_WORDS |= {"relevant": "A", "rating": "A", "score": "A", "grade": "A"}
_VALUES = {"Y": 1, "G": 1, "W": 0, "B": 0}
_V = "(?P<v>[YWGB])"
_END = r'(?=\Z|[.,;:)(\n|"b\-])'
_WHOLE = rf"{_V}(?:(?!\.[NXQ]){_END}|(?=[TOI]))"
_VERDICT_FIELD = re.compile(
    rf"(?P<final>F?)(?:[RA]|(?<=F))(?:[|:][:|\-\n(]*+|i:?|\n[\n(]*+|-)a?{_WHOLE}"
)
_VERDICTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\A[^a-zA-Z?]*+{_WHOLE}",
        rf'(?:[.\n]|\A)[("]*+{_V}[^a-zA-Z?]*+\Z',
        rf"s[TiOA]{{0,4}}:?{_V}{_END}",
        rf"I[a-z]{{0,6}}V[a-zO]{{0,4}}{_V}{_END}",
    )
)
_OTHERWISE = {
    value: re.compile(rf"[:(,\-l]++[{''.join(k for k, v in _VALUES.items() if v != value)}]{_END}")
    for value in (0, 1)
}
_NOTHING = FieldValue(ReadRating(None, "no verdict"))
_MENTION = re.compile(r"[YW](?=\Z|[.,;:)\n?\-])")


def find_verdict_fields(reply: str, field: str = "") -> list[FieldValue]:
    """What the fields of a text say that hold a verdict."""
    return _VerdictReply(reply, field).fields()


def find_verdict(reply: str, field: str = "") -> ReadRating:
    """The verdict that a reply gives in text, 1 for yes and 0 for no.

    Without one, the rule says why: docs/definitions.md lists the rules.
    """
    found = _VerdictReply(reply, field)
    fields = found.fields()
    return agreed(fields) if fields else found.statement()


class _VerdictReply:
    """The tokens of a reply, and the places that its sentences put in doubt."""

    def __init__(self, reply: str, field: str) -> None:
        self._kinds = tokenise(reply, field, _VERDICT_WORDS).kinds
        self._doubts = Doubts(self._kinds)

    def fields(self) -> list[FieldValue]:
        return [
            FieldValue(self._said(match.start("v")), bool(match["final"]))
            for match in _VERDICT_FIELD.finditer(self._kinds)
        ]

    def statement(self) -> ReadRating:
        given = {match.start("v") for form in _VERDICTS for match in form.finditer(self._kinds)}
        mentioned = {match.start() for match in _MENTION.finditer(self._kinds)}
        found = agreed(
            [FieldValue(self._said(at)) for at in sorted(given | mentioned)] or [_NOTHING]
        )
        return found if given or found.rating is None else _NOTHING.found

    def _said(self, at: int) -> ReadRating:
        if self._doubts.reach(at):
            return ReadRating(None, "hedged")
        value = _VALUES[self._kinds[at]]
        if _OTHERWISE[value].match(self._kinds, at + 1):
            return ReadRating(None, "several")
        return ReadRating(value, "rated")
