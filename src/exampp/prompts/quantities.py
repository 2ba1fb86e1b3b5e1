"""Split a short text into words and quantities: numbers, ranges, units, ordinals and dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

from exampp.prompts.grammar import NUMBER_WORDS
from exampp.prompts.words import stem
from exampp.records.toml import parse_toml


@cache
def word_table(name: str) -> Mapping[str, Any]:
    """Return a table of matching.toml."""
    return MappingProxyType(_tables()[name])


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of words of matching.toml."""
    return frozenset(word_table("words")[name].split())


@cache
def word_pairs(name: str) -> Mapping[str, str]:
    """Return pairs of words of matching.toml, in both directions, as word forms."""
    pairs = [[*map(word_form, pair.split("/"))] for pair in word_table("pairs")[name].split()]
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


@cache
def _tables() -> Mapping[str, Any]:
    text = (resources.files(__package__) / "matching.toml").read_text(encoding="utf-8")
    tables = parse_toml(text, "matching.toml")
    equal, tens = tables["equal"], tables["tens"]
    ordinals, months = (tables["words"][name].split() for name in ("ordinals", "months"))
    return {
        **tables,
        "equal": {word: form for form, words in equal.items() for word in words.split()},
        "numbers": {**{word: value for value, word in enumerate(NUMBER_WORDS)}, **tens},
        "decades": {f"{word[:-1]}ies": 1900 + value for word, value in tens.items()},
        "ordinals": {
            **{word: value for value, word in enumerate(ordinals, 1)},
            **{f"{word[:-1]}ieth": value for word, value in tens.items()},
        },
        "months": {
            name: value
            for value, month in enumerate(months, 1)
            for name in (month, month[:3], month[:4])
        },
    }


# ---- words ---------------------------------------------------------------------------------------

_SPELLINGS = (
    (re.compile(r"(?<=[a-z]{2})our(?=$|s$|ed$|ing$|less$|ful$|able$|ite$)"), "or"),
    (re.compile(r"ae(?=[a-z]{2})|oe(?=[a-z]{3})"), "e"),
    (re.compile(r"is(?=e[sd]?$|ing$|ations?$)"), "iz"),
    (re.compile(r"ys(?=e[sd]?$|ing$)"), "yz"),
    (re.compile(r"(?<=[a-z]{2}[bt])re(?=s?$)"), "er"),
    (re.compile(r"logue(?=s?$)"), "log"),
    (re.compile(r"^sulph"), "sulf"),
    (re.compile(r"(?<=ic)ally$|(?<=[a-z]{5})ly$"), ""),
    (re.compile(r"(?<=[a-z]{3}[svw])als?$"), "e"),
)
_PLURAL = re.compile(r"(?<=[a-z]{2})ies$|(?<=[sxz])es$|(?<=[cs]h)es$|(?<=[a-z]{2}[^usi])s$")
_INFLECTED = re.compile(r"(?<=[aeiouy][a-z])(?:ing|ed)$|(?<=[aeiou][a-z]{2})(?:ing|ed)$")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1$")


@lru_cache(maxsize=1 << 16)
def word_form(word: str) -> str:
    """Return the form in which two words of one meaning are equal.

    Inflection and British spelling are removed. Words that only share a stem differ, such as
    "organ" and "organisation", as do opposites by a prefix.
    """
    equal = word_table("equal")
    plain = word.removesuffix("'s").replace("'", "")
    plain = equal.get(plain, plain)
    for pattern, other in _SPELLINGS:
        plain = pattern.sub(other, plain)
    plain = _PLURAL.sub(lambda m: "y" if m[0] == "ies" else "", plain)
    root = stem(plain)
    if (
        plain.startswith(root)
        and plain[len(root) :] in word_list("endings") | {""}
        and len(root) > 2
    ):
        plain = root
    else:
        plain = _INFLECTED.sub("", plain)
        plain = plain.removesuffix("e") if len(plain) > 4 else plain
    return _DOUBLED.sub(r"\1", equal.get(plain, plain))


# ---- quantities ----------------------------------------------------------------------------------


class Unit(NamedTuple):
    """A unit: its dimension, its factor to the dimension's base, and its system of units."""

    dimension: str
    factor: float
    system: str


Day = tuple[int | None, int | None, int | None]
"""Year, month and day, None for a missing part."""


class Quantity(NamedTuple):
    """A number or a range with its unit, or a date.

    `bound` is ">" or "<" if the text gives a bound; `rounded` says whether it is approximate.
    `kind` is "ordinal", "decade", "bc", "clock" (minutes of the day), or "".
    """

    low: float
    high: float
    unit: Unit | None = None
    day: Day | None = None
    bound: str = ""
    rounded: bool = False
    kind: str = ""

    def equals(self, other: Quantity, implied: frozenset[Unit] = frozenset()) -> bool:
        """Return whether `other`, of an answer, is the same quantity as this one, of a key.

        A missing unit is one of those that the question implies, or equal if the number is
        distinctive. A date may be more precise than the key.
        """
        if self.day or other.day:
            return _is_same_day(self, other)
        if {self.kind, other.kind} & _INCOMPARABLE and self.kind != other.kind:
            return False
        if other.bound not in ("", self.bound):
            return False
        if self.unit is None or other.unit is None:
            return _equals_without_unit(self, other, implied)
        if self.unit.dimension != other.unit.dimension:
            return False
        same_system = self.unit.system == other.unit.system
        if self.unit.dimension == "temperature":
            return all(
                abs(one - two) < (_EXACT if same_system else _KELVINS)
                for one, two in zip(_kelvins(self), _kelvins(other), strict=True)
            )
        return _is_close(self.in_base(), other.in_base(), 0.0 if same_system else _ACROSS)

    def in_base(self) -> Quantity:
        """Return the quantity in the base unit of its dimension."""
        factor = self.unit.factor if self.unit else 1.0
        return self._replace(low=self.low * factor, high=self.high * factor)


_INCOMPARABLE = frozenset({"decade", "bc", "clock"})
_DISTINCTIVE = 100
"""Numbers from here on are equal even if the answer leaves out the unit of the key."""
_ACROSS = 0.01
"""Largest relative difference of quantities in two systems of units."""
_ROUNDED = 0.002
"""Largest relative difference of a quantity that the text calls approximate."""
_EXACT = 1e-9
_KELVINS = 0.6


def _is_close(one: Quantity, other: Quantity, share: float = 0.0) -> bool:
    if other.rounded or one.rounded:
        share = max(share, _ROUNDED)
    return all(
        abs(a - b) <= max(share, _EXACT) * max(abs(a), abs(b))
        for a, b in ((one.low, other.low), (one.high, other.high))
    )


def _equals_without_unit(key: Quantity, answer: Quantity, implied: frozenset[Unit]) -> bool:
    """Compare two quantities of which one has no unit: it is one that the question implies."""
    stated = key.unit or answer.unit
    is_share = stated is not None and stated.dimension == "share"
    if is_share and _is_close(key.in_base(), answer.in_base()):
        return True
    if stated and implied:
        return any(
            key._replace(unit=key.unit or unit).equals(answer._replace(unit=answer.unit or unit))
            for unit in implied
        )
    is_enough = key.unit is None or (not is_share and abs(key.low) >= _DISTINCTIVE)
    return is_enough and _is_close(key, answer)


def _kelvins(quantity: Quantity) -> tuple[float, float]:
    system = quantity.unit.system if quantity.unit else "k"
    factor, offset = {"k": (1.0, 0.0), "c": (1.0, 273.15), "f": (5 / 9, 459.67 * 5 / 9)}[system]
    return quantity.low * factor + offset, quantity.high * factor + offset


def _is_same_day(key: Quantity, answer: Quantity) -> bool:
    """Return whether the answer has all parts of the key's date, or the key's year."""
    if key.day is None or answer.day is None:
        one, plain = (key.day or answer.day), (answer if key.day else key)
        year_only = key.day is None or key.day[1:] == (None, None)
        is_number = plain.unit is None and not plain.kind
        of_year = one is not None and plain.low == plain.high == one[0]
        return of_year and year_only and is_number
    return all(one in (None, two) for one, two in zip(key.day, answer.day, strict=True))


# ---- tokens --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a mark or a quantity of a text.

    `text` is lower case; `form` is the form in which it is compared, "" for a quantity;
    `capital` says whether the word starts with a capital letter, `hyphen` whether it is joined to
    the word before, by a hyphen or as a number without a space ("CO2").
    """

    text: str
    form: str
    capital: bool = False
    quantity: Quantity | None = None
    hyphen: bool = False


_SUPERSCRIPTS = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b",
    "0123456789-",
)
_SUPERSCRIPT = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207b]+")
_CHARACTERS = str.maketrans(
    {
        "\u00bd": " 1/2",
        "\u00bc": " 1/4",
        "\u00be": " 3/4",
        "\u2153": " 1/3",
        "\u2154": " 2/3",
        "\u00b0": " degree ",
        "\u00d7": "x",
        "\u2248": "~",
        "\u00b5": "micro",
        "\u2212": "-",
        "\u2013": "-",
        "\u2014": " , ",
        "\u2019": "'",
        "\u2018": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u00df": "ss",
        "\u00f8": "o",
        "\u00d8": "O",
        "\u0142": "l",
        "\u0141": "L",
        "\u00e6": "ae",
        "\u00c6": "Ae",
        "\u0153": "oe",
    }
)
_WORD = (
    r"(?:[^\W\d_]\.){2,}|[A-Z]\.(?=\s?[A-Z])|(?:Dr|Mrs?|Ms|St|Mt|Jr|Sr|Prof|Gen|Sen|Rev)\."
    r"|[^\W\d_]+(?:'[^\W\d_]+)*(?:(?:\+\+?|\#)(?!\w))?"
)
_WORD_OR_MARK = re.compile(rf"{_WORD}|[^\w\s]")
_TOKEN = re.compile(
    rf"""(?x)
    (?P<word>{_WORD})
  | (?P<date>\d{{1,4}}[/-]\d{{1,2}}[/-]\d{{1,4}}(?![\d/-])|\d{{1,2}}\.\d{{1,2}}\.\d{{4}})
  | (?P<power>\d+(?:\.\d+)?(?:\s?[x*]\s?10\s?\^?\s?|e)-?\d{{1,3}}(?!\w))
  | (?P<clock>\d{{1,2}}(?::\d{{2}})?\s?[ap]\.?m\b\.?|\d{{1,2}}:\d{{2}}(?![\d:]))
  | (?P<ratio>\d+\s?:\s?\d+(?![\d:]))
  | (?P<decade>'?\d{{1,3}}0'?s\b)
  | (?P<ordinal>\d+(?:st|nd|rd|th)\b)
  | (?P<number>(?<![\w.])-?\d{{1,3}}(?:[,\u00a0\u202f\ ]\d{{3}})+(?!\d)(?:\.\d+)?
      |(?<![\w.])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)
  | (?P<mark>[^\w\s])
    """
)
_UNUSUAL = re.compile(r"[-\d]|[IVX]+\b|[Nn]on")
"""Digits, hyphens, Roman numerals and "non": texts without them have only words and marks."""
_DIGIT = re.compile(r"\d")
_POWER = re.compile(r"([\d.]+)\s?(?:[x*]\s?10\s?\^?\s?|e)(-?\d+)")
_FEET = re.compile(r"(?<!\d)(\d)\s?'\s?(\d{1,2})\s?(?:\"|''|\b)")
_NEGATED = re.compile(r"(?i)\b(ca|wo|sha|\w{2,6})n't\b")
_WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}


def tokenize(text: str) -> tuple[Token, ...]:
    """Split a text into words, marks and quantities."""
    text = _plain_characters(text)
    if not _UNUSUAL.search(text):
        tokens = [_word(raw) for raw in _WORD_OR_MARK.findall(text)]
    else:
        tokens = _tokens(text)
    if _DIGIT.search(text) or not _numeric_words().isdisjoint([one.text for one in tokens]):
        return tuple(_quantities(tokens))
    return tuple(tokens)


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    hyphen = False
    for found in _TOKEN.finditer(text):
        raw, kind = found[0], found.lastgroup
        if raw == "-" and _joins(text, found):
            hyphen = text[found.start() - 1 : found.end() + 1].strip() != "-"
            continue
        if kind == "word":
            tokens += _words_of(raw, tokens, hyphen=hyphen)
        elif kind == "mark":
            tokens.append(_word(raw))
        else:
            joined = text[: found.start()][-1:].isalpha()
            tokens.append(Token(raw, "", quantity=_literal(kind or "", raw), hyphen=joined))
        hyphen = False
    return tokens


def _plain_characters(text: str) -> str:
    """Return the text without diacritics, contractions and typographic characters."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text)
        text = unicodedata.normalize("NFKD", text.translate(_CHARACTERS))
        text = "".join(c for c in text if not unicodedata.combining(c))
    if "'" in text:
        text = _FEET.sub(r"\1 feet \2 inches", text)
        text = _NEGATED.sub(lambda m: f"{_WHOLE.get(m[1].lower(), m[1])} not", text)
    return text


def _words_of(raw: str, before: Sequence[Token], *, hyphen: bool) -> Iterator[Token]:
    """Yield the tokens of a word: one, or two for "nontoxic"."""
    if raw in _roman() and before and _is_numbered(before[-1]):
        yield Token(raw, "", quantity=_roman()[raw])
        return
    if raw[1:3] == "on" and (rest := _NON.fullmatch(raw)):
        yield _word("non")
        raw = rest[1]
    token = _word(raw)
    yield Token(token.text, token.form, token.capital, hyphen=True) if hyphen else token


_NON = re.compile(r"(?i)non(?!sense|ethe)([^\W\d_]{4,})")


@cache
def _roman() -> Mapping[str, Quantity]:
    numerals = enumerate(word_table("words")["roman"].split(), 1)
    return {numeral: Quantity(value, value, kind="ordinal") for value, numeral in numerals}


def _is_numbered(before: Token) -> bool:
    return (before.capital and len(before.text) > 1) or before.text in word_list("numbered")


def _joins(text: str, mark: re.Match[str]) -> bool:
    around = text[max(0, mark.start() - 1) : mark.start()], text[mark.end() : mark.end() + 1]
    return not all(one.isdigit() for one in around)


@lru_cache(maxsize=1 << 16)
def _word(raw: str) -> Token:
    text = raw.replace(".", "").lower() or raw
    return Token(text, word_form(text), raw[0].isupper())


@cache
def _numeric_words() -> frozenset[str]:
    tables = ("numbers", "scales", "ordinals", "fractions", "decades")
    return frozenset(word for name in tables for word in word_table(name))


@cache
def _starts() -> frozenset[str]:
    """Return the words and marks with which a quantity can start."""
    return _numeric_words() | frozenset(word_table("months")) | {"a", "an", "$", "€", "£", "¥"}


def _literal(kind: str, raw: str) -> Quantity:
    """Return the quantity of a token with digits."""
    if kind == "date":
        return _numeric_date(raw)
    if kind == "clock":
        return _clock(raw.lower())
    if kind == "ratio":
        low, _, high = raw.partition(":")
        return Quantity(float(low), float(high))
    if power := _POWER.fullmatch(raw):
        value = float(f"{power[1]}e{power[2]}")
        return Quantity(value, value)
    value = float(re.sub(r"[^\d.-]", "", raw))
    if kind == "decade" and value < 100:
        value += 1900
    return Quantity(value, value, kind="" if kind == "number" else kind)


def _clock(raw: str) -> Quantity:
    hour, _, minute = re.sub(r"[^\d:]", "", raw).partition(":")
    hours = int(hour) % 12 + 12 * ("p" in raw) if "m" in raw else int(hour)
    value = float(60 * hours + int(minute or 0))
    return Quantity(value, value, kind="clock")


def _numeric_date(raw: str) -> Quantity:
    parts = [int(part) for part in re.split(r"[/.-]", raw)]
    year, month, day = parts if parts[0] > 31 else (parts[2], parts[1], parts[0])
    if month > 12:
        month, day = day, month
    return _date(year, month, day)


def _date(year: int | None, month: int | None, day: int | None) -> Quantity:
    value = float(year or 0)
    return Quantity(value, value, day=(year, month, day))


# ---- from tokens to quantities -------------------------------------------------------------------


def _quantities(tokens: Sequence[Token]) -> list[Token]:
    """Replace numbers, with their units, ranges and dates, by quantities."""
    found: list[Token] = []
    place, starts = 0, _starts()
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.quantity is None and token.text not in starts:
            found.append(token)
            continue
        reader = _Reader(tokens, place - 1)
        if (quantity := reader.read_date()) is None:
            reader.place = place - 1
            quantity = reader.read_amount()
        if quantity is None:
            found.append(token)
            continue
        quantity = _with_context(found, quantity)
        text = " ".join(one.text for one in tokens[place - 1 : reader.place])
        found.append(Token(text, "", quantity=quantity, hyphen=token.hyphen))
        place = reader.place
    return found


def _with_context(before: list[Token], quantity: Quantity) -> Quantity:
    """Return the quantity with the bound that the last words of `before` give; remove them."""
    has_article = bool(before) and before[-1].text in ("a", "an")
    end = len(before) - has_article
    words = [token.text for token in before[max(0, end - 2) : end]]
    bounds = word_table("comparisons")
    for length in (2, 1):
        if bound := bounds.get(" ".join(words[-length:])):
            del before[-length - has_article :]
            return quantity._replace(bound=bound)
    return quantity._replace(rounded=bool(words) and words[-1] in word_list("approximate"))


_BOUNDS_AFTER = {
    f"or {word}": bound
    for bound, words in ((">", "more older above over higher greater later longer"),
                         ("<", "less fewer younger below under lower earlier shorter"))
    for word in words.split()
}  # fmt: skip
_CURRENCIES = frozenset("$\u20ac\u00a3\u00a5")
_LETTERS = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9}
_FIRST_YEAR, _LAST_YEAR, _LAST_DAY = 100, 2999, 31


class _Reader:
    """Reads a quantity from tokens at `place`, which moves past what is read."""

    def __init__(self, tokens: Sequence[Token], place: int) -> None:
        self.tokens = tokens
        self.place = place

    def text(self, ahead: int = 0) -> str:
        """Return the text of a token, "" beyond the end."""
        place = self.place + ahead
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def skip(self, *texts: str) -> bool:
        """Pass the next token if it is one of the texts."""
        found = self.text() in texts
        self.place += found
        return found

    def digits(self, ahead: int = 0) -> float | None:
        """Return a number in digits, or a numeral such as "4th", that is neither date nor time."""
        place = self.place + ahead
        quantity = self.tokens[place].quantity if place < len(self.tokens) else None
        plain = quantity is not None and not quantity.day and quantity.kind in ("", "ordinal")
        return quantity.low if quantity and plain else None

    # dates

    def read_date(self) -> Quantity | None:
        """Read a date with the name of a month: "11 November 1918", "Nov. 11, 1918"."""
        months = word_table("months")
        day = self._day()
        if day is not None:
            self.skip("of")
        if self.text() not in months or not self.tokens[self.place].capital:
            return None
        month = int(months[self.text()])
        is_may = self.text() == "may"
        self.place += 1
        self.skip(".")
        if day is None:
            before = self.place
            self.skip("the")
            day = self._day()
            self.place = before if day is None else self.place
        year = self._year()
        is_word = is_may and day is None and year is None
        return None if is_word else _date(year, month, day)

    def _day(self) -> int | None:
        value = self.digits()
        value = word_table("ordinals").get(self.text()) if value is None else value
        if value is None or not 1 <= value <= _LAST_DAY:
            return None
        self.place += 1
        return int(value)

    def _year(self) -> int | None:
        start = self.place
        self.skip(",", "of")
        value = self.digits()
        if value is None or not _FIRST_YEAR <= value <= _LAST_YEAR:
            self.place = start
            return None
        self.place += 1
        return int(value)

    # amounts

    def read_amount(self) -> Quantity | None:
        """Read a number or range with its currency or unit."""
        start = self.place
        currency = _units()[self.text()] if self.text() in _CURRENCIES else None
        self.place += currency is not None
        quantity = self._number()
        if quantity is None or quantity.day or quantity.kind in _INCOMPARABLE:
            return quantity
        unit = currency or (None if quantity.kind == "ordinal" else self._unit())
        if currency and (scale := _LETTERS.get(self.text())):
            self.place += 1
            quantity = quantity._replace(low=quantity.low * scale, high=quantity.high * scale)
        between = start > 0 and self.tokens[start - 1].text == "between"
        if ends := self._range(quantity, unit, between=between):
            return ends
        more = self._more(unit) if unit else 0.0
        kind = "bc" if self.skip("bc", "bce") else quantity.kind
        self.skip("ad", "ce")
        bound = _BOUNDS_AFTER.get(f"{self.text()} {self.text(1)}", "")
        self.place += 2 * bool(bound)
        return Quantity(quantity.low + more, quantity.high + more, unit, bound=bound, kind=kind)

    def _range(self, low: Quantity, unit: Unit | None, *, between: bool) -> Quantity | None:
        """Read the upper end of a range ("2 to 3 weeks", "between 5 and 10 miles")."""
        start = self.place
        if self.skip("-", "to", "through", *(["and"] if between else [])):
            self.skip(*_CURRENCIES)
            high = self._number()
            if high and not high.day:
                return Quantity(low.low, high.low, self._unit() or unit, kind=low.kind)
        self.place = start
        return None

    def _more(self, unit: Unit) -> float:
        """Read a half ("an hour and a half") or a smaller unit ("6 feet 2 inches")."""
        start = self.place
        self.skip("and", ",")
        if (self.text(), self.text(1)) == ("a", "half"):
            self.place += 2
            return 0.5
        number = self.digits()
        if number is not None:
            self.place += 1
            smaller = self._plain_unit()
            if smaller and smaller.dimension == unit.dimension and smaller.factor < unit.factor:
                return number * smaller.factor / unit.factor
        self.place = start
        return 0.0

    # numbers

    def _number(self) -> Quantity | None:
        """Read a number in digits or words."""
        text = self.text()
        quantity = self.tokens[self.place].quantity if text else None
        if text in _single_words():
            self.place += 1
            return _single_words()[text]
        if quantity is None:
            quantity = self._words()
        else:
            self.place += 1
            if _is_plain(quantity):
                quantity = self._fraction(quantity.low)
        return self._scaled(quantity) if quantity and _is_plain(quantity) else quantity

    def _fraction(self, value: float) -> Quantity:
        """Read the rest of "1/2" or "2 1/2"."""
        for ahead, whole in ((0, 0.0), (1, value)):
            above = self.digits() if ahead else value
            below = self.digits(ahead + 1)
            if self.text(ahead) == "/" and above and below and max(above, below) < 100:
                self.place += ahead + 2
                value = whole + above / below
                break
        return Quantity(value, value)

    def _scaled(self, quantity: Quantity) -> Quantity:
        """Read "million", "and a half" or "thirds" after a number."""
        value, scales = quantity.low, word_table("scales")
        if [self.text(ahead) for ahead in range(3)] == ["and", "a", "half"]:
            self.place += 3
            value += 0.5
        while (scale := scales.get(self.text().removesuffix("s"))) is not None:
            value *= scale
            self.place += 1
        share = word_table("fractions").get(self.text())
        if share is not None and value < 10:
            value *= share
            self.place += 1
        return Quantity(value, value)

    def _words(self) -> Quantity | None:
        """Read a number in words, such as "two hundred and six" or "twenty-first"."""
        numbers, scales = word_table("numbers"), word_table("scales")
        if self.text() in ("a", "an"):
            self.place += 1
            start, text = self.place, self.text()
            is_number = text in scales or text in word_table("fractions")
            is_number = is_number or (len(text) > 2 and self._plain_unit() is not None)
            self.place = start if is_number else start - 1
            return Quantity(1.0, 1.0) if is_number else None
        total = current = 0.0
        start, step = self.place, 1000.0
        while (word := self.text()) in numbers or word in scales or (word == "and" and step >= 100):
            if word in numbers and not _fits(numbers[word], step):
                break
            if word == "and":
                if self.text(1) not in numbers or self.place == start:
                    break
            elif word in numbers:
                current, step = current + numbers[word], numbers[word]
            else:
                step = scales[word]
                scaled = max(current, 1.0) * step
                total, current = (total, scaled) if step <= 100 else (total + scaled, 0.0)
            self.place += 1
        ordinal = word_table("ordinals").get(self.text())
        if self.place > start and ordinal is not None and _fits(ordinal, step):
            self.place += 1
            return Quantity(total + current + ordinal, total + current + ordinal, kind="ordinal")
        return Quantity(total + current, total + current) if self.place > start else None

    # units

    def _unit(self) -> Unit | None:
        """Read a unit, perhaps a quotient ("km/s", "miles per hour")."""
        start = self.place
        if self.text(-1) in ("half", "quarter"):
            self.skip("of")
            self.skip("a", "an")
        unit = self._plain_unit()
        if unit is None:
            self.place = start
            return None
        end = self.place
        each = self.text()
        if self.skip("/", "per", "a", "an"):
            other = self._plain_unit()
            if other and (other.dimension == "time" or each in ("/", "per")):
                both = f"{unit.dimension}/{other.dimension}"
                dimension = "speed" if both == "length/time" else both
                return Unit(dimension, unit.factor / other.factor, unit.system)
        self.place = end
        return unit

    def _plain_unit(self) -> Unit | None:
        for length in (2, 1):
            name = " ".join(_unit_name(self.text(ahead)) for ahead in range(length))
            if (unit := _units().get(name)) is not None:
                self.place += length
                return self._power_of(unit)
        return None

    def _power_of(self, unit: Unit) -> Unit:
        power = self.digits(1) if self.text() == "^" else None
        if unit.dimension != "length" or power not in (2, 3):
            return unit
        self.place += 2
        litres = 1000 if power == 3 else 1
        dimension = "area" if power == 2 else "volume"
        return Unit(dimension, unit.factor ** int(power) * litres, unit.system)


@cache
def _single_words() -> Mapping[str, Quantity]:
    """Return the quantities of words such as "half", "third" (the ordinal) and "sixties"."""
    return {
        word: Quantity(value, value, kind=kind)
        for name, kind in (("fractions", ""), ("ordinals", "ordinal"), ("decades", "decade"))
        for word, value in word_table(name).items()
    }


def _is_plain(quantity: Quantity) -> bool:
    return not (quantity.day or quantity.kind) and quantity.low == quantity.high


def _fits(value: float, step: float) -> bool:
    """Return whether a numeral can follow one of this size, as "six" follows "forty"."""
    return step >= 100 or (value < 10 <= step and step % 10 == 0 and step > 10)


@cache
def _units() -> Mapping[str, Unit]:
    units = {
        name: Unit(dimension, float(factor), system)
        for dimension, table in word_table("units").items()
        for name, (factor, system) in table.items()
    }
    american = (name.replace("metre", "meter").replace("litre", "liter") for name in units)
    return {**units, **dict(zip(american, units.values(), strict=True))}


@lru_cache(maxsize=4096)
def _unit_name(text: str) -> str:
    """Return a unit's name in the singular."""
    plain = text if text == "celsius" or len(text) <= 2 else text.removesuffix("s")
    return str(word_table("equal").get(text, plain))


_LONG_UNIT = 4
_SHARES = frozenset({"percentage", "proportion", "share"})


def named_units(tokens: Sequence[Token]) -> frozenset[Unit]:
    """Return the units that a question names, such as "how many days"."""
    names = [_unit_name(token.text) for token in tokens if len(token.text) >= _LONG_UNIT]
    names = ["percent" if name in _SHARES else name for name in names]
    return frozenset(_units()[name] for name in names if name in _units())
