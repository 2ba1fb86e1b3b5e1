"""The rating that a reply gives in text: the grammar of docs/definitions.md.

A reply is a rating only if it says exactly one. The rules are patterns over the classes of its
tokens (`reply_words.txt`): first the numbers that rate nothing are set aside (counts, scales,
references), then fields called rating, score or grade are looked for, then statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import NamedTuple

from exampp.prompts.doubts import Doubts
from exampp.prompts.tokens import Token, Tokens, tokenise

_NUMBER = "[NXPE]"
# Words that leave a statement what it is: no number, and none of what spoils one.
_F = "[" + "".join(sorted(set(ascii_letters) - set("NXQPECLnzyrZkjqm"))) + '"h]'

# Numbers that rate nothing.
_ASIDE = r"(?:\([^()\n]{0,8}\))?"
_ONE = re.compile(r"(?:(?<=[:aivRVA(\n|\-])|\A)1(?=\Z|[.,;:)(\n\-|/bgU])")
_PRONOUN = re.compile("1")
_WHOLE = re.compile("N")
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
_FIELD = re.compile(
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
    return _Reply(reply, lowest, highest, field).fields()


def find_rating(reply: str, lowest: int, highest: int, field: str = "") -> ReadRating:
    """The rating that a reply gives in text, on a scale of whole numbers.

    Without one, the rule says why: docs/definitions.md lists the rules. Sources: EXAM++, section
    4.2.2; FLAN-T5-EXAM, section 3.2.3.
    """
    found = _Reply(reply, lowest, highest, field)
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
    return tokens.fold(_SCALE, scale).fold(_ENDS, ends).fold(_LEVELS, _as("c")).fold(_WHOLE, number)


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
    for match in _FIELD.finditer(kinds):
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


class _Reply:
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
