"""The guarded rule for verifying an extracted answer against the known answers.

A known answer is looked for inside the answer, on word boundaries. Numbers and units are compared
as quantities, lists as sets. A negation, an alternative ("46 or 48") or a bound in the answer that
the known answer does not have refuses the match. The rule is exampp's own; the papers' rule is
`answers.verify_answer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from exampp.prompts.quantities import (
    Token,
    Unit,
    named_units,
    tokenize,
    word_form,
    word_list,
    word_pairs,
    word_table,
)
from exampp.prompts.words import is_one_edit

LONGEST_ANSWER = 100
"""Words and marks at the start of an answer in which a known answer is looked for."""
_CHARACTERS = 1000


class Match(NamedTuple):
    """The rule and the known answer by which an answer matches; None if it does not."""

    rule: str
    key: str | None = None


UNMATCHED = Match("unmatched")


def guarded_match(answer: str, keys: Sequence[str], question: str = "") -> Match:
    """Return the known answer that an extracted answer gives, and the rule.

    Args:
        answer: The extracted answer, a phrase or a few sentences.
        keys: The known answers; one of them suffices.
        question: The question, if known. Its words can be missing in the answer.
    """
    plain = _plain(answer[:_CHARACTERS])
    if not plain:
        return UNMATCHED
    known = tuple(key[:_CHARACTERS] for key in keys)
    normal = _normal_keys(known)
    if plain in normal:
        return Match("exact", normal[plain])
    text = _Answer(tokenize(answer[:_CHARACTERS])[:LONGEST_ANSWER])
    for key_text, key in normal.items():
        yes = _polarity(key_text)
        if yes is not None and _says(answer, text, question) is yes:
            return Match("true-false", key)
        if yes is None and any(_holds(text, one) for one in _wanted(key, question, known)):
            return Match("contained", key)
    return UNMATCHED


@lru_cache(maxsize=8192)
def _normal_keys(keys: tuple[str, ...]) -> Mapping[str, str]:
    """Return the known answers by their normal form."""
    return {_plain(key): key for key in keys}


_AROUND = " \t\r\n\"'`*_.,;:!\u201c\u201d\u2018\u2019"


def _plain(text: str) -> str:
    return " ".join(text.strip(_AROUND).casefold().split())


# ---- what a key wants ----------------------------------------------------------------------------


class Wanted(NamedTuple):
    """One way to give a known answer: the words and quantities of its parts.

    `negative`: it has an odd number of negations. `ordered`: its words have a meaningful order.
    `is_name`: its words stand together. `surname`: the first name, which alone may stand before it.
    `acronym`: its letters, after "=" if the answer spells them out. `alone`: no other place may
    follow. `others`: forms that may be alternatives to it. `implied`: units that the question
    names; `asked`: its content words; `either`: it has a negation, so that the answer may have one.
    """

    parts: tuple[tuple[Token, ...], ...]
    negative: bool = False
    ordered: bool = False
    is_name: bool = False
    surname: str = ""
    acronym: str = ""
    alone: bool = False
    others: frozenset[str] = frozenset()
    implied: frozenset[Unit] = frozenset()
    asked: frozenset[str] = frozenset()
    either: bool = False


_CONTRAST = re.compile(r"(?i)[,;]?\s+(?:rather than|instead of|but not|not)\s.*$")
_PARENTHESES = re.compile(r"\s*\(([^()]*)\)")
_OR = re.compile(r"(?i)\s+or\s+|\s*/\s*")
_SEPARATOR = re.compile(r"(?i)\s*[,;]\s*(?:and\s+)?|\s+(?:and|&)\s+")
_DIGIT_COMMA = re.compile(r"(?<=\d),(?=\d{3}\b)")
_MONTH_COMMA = re.compile(r"(?i)(?<=\d),(?=\s*\d{4}\b)")


@lru_cache(maxsize=8192)
def _wanted(key: str, question: str, keys: tuple[str, ...]) -> tuple[Wanted, ...]:
    """Return all ways to give a known answer."""
    about = tokenize(question)
    others = frozenset(token.form for other in keys for token in tokenize(other) if token.form)
    ways = [one for text in _texts(key) for one in _ways(text, about)]
    place = _PLACE.fullmatch(key)
    if place and " and " not in key:
        ways += [one._replace(alone=True) for one in _ways(place[1], about)]
    implied, asked = named_units(about), _forms(_content(about))
    either = any(token.text in word_list("negations") for token in about)
    return tuple(
        one._replace(others=others, implied=implied, asked=asked, either=either) for one in ways
    )


def _forms(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.form for token in tokens if token.form)


_PLACE = re.compile(r"([A-Z][^,]*),\s*[A-Z][^,]*")


def _texts(key: str) -> Iterator[str]:
    """Yield the known answer and shorter texts of the same meaning."""
    bare = _PARENTHESES.sub("", key).strip()
    acronyms = [
        one
        for one in _PARENTHESES.findall(key)
        if one.isupper()
        or _initials(bare) == one.replace(".", "").lower()
        or _initials(one) == bare.replace(".", "").lower()
    ]
    alternatives = () if any(c.isdigit() for c in bare) else _OR.split(bare)
    texts = [key, bare, *acronyms, *alternatives, _CONTRAST.sub("", bare)]
    return filter(None, dict.fromkeys(texts))


def _initials(text: str) -> str:
    words = [word for word in text.split() if word.lower() not in word_list("initials")]
    return "".join(word[0] for word in words).lower() if len(words) > 1 else ""


def _ways(text: str, about: Sequence[Token]) -> Iterator[Wanted]:
    tokens = tokenize(text)
    negative = sum(token.text in word_list("negations") for token in tokens) % 2 == 1
    ordered = any(token.text in word_list("ordered") for token in tokens)
    parts = _parts(text)
    if len(parts) != 1:
        if parts:
            yield Wanted(parts, negative, ordered, _is_name(parts))
        return
    (words,) = parts
    asked = _forms(about)
    shorter = _without_generic(words) if _is_name(parts) else words
    needed = tuple(token for token in words if token.quantity or token.form not in asked)
    needed = needed if any(len(token.text) > 1 for token in needed) else words
    for part in dict.fromkeys((words, shorter, needed)):
        yield Wanted((part,), negative, ordered, _is_name((part,)))
    if len(words) == 1 and not words[0].quantity and not words[0].capital:
        for form in _opposites(words[0].form):
            yield Wanted(((Token(form, form),),), not negative)
    yield from _names(text, words, negative, about)


def _names(
    text: str, words: tuple[Token, ...], negative: bool, about: Sequence[Token]
) -> Iterator[Wanted]:
    """Yield the acronym of a name, and the last name of a person."""
    if not all(token.capital and not token.quantity for token in words):
        return
    if len(words) == 1:
        if text.strip().isupper() and len(words[0].text) > 2:
            yield Wanted((), negative, acronym="=" + words[0].text)
        return
    if len(acronym := _initials(text)) > 1:
        yield Wanted((), negative, acronym=acronym)
    people = word_list("people") | word_list("titles")
    if not any(token.text in people for token in about[:4]):
        return
    name = _without_titles(words)
    yield Wanted((name[-1:],), negative, is_name=True, surname=name[0].text)


def _parts(text: str) -> tuple[tuple[Token, ...], ...]:
    """Return the content of each part of a list, or of the whole text."""
    whole = _content(tokenize(text))
    protected = _MONTH_COMMA.sub(" ", _DIGIT_COMMA.sub("", text))
    pieces = [piece for piece in _SEPARATOR.split(protected) if piece.strip()]
    parts = [_content(tokenize(piece)) for piece in pieces]
    is_list = len(parts) > 1 and all(0 < len(part) <= 4 for part in parts)
    return tuple(parts) if is_list else ((whole,) if whole else ())


def _content(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the words and quantities that a match needs."""
    words = [token for token in tokens if token.quantity or token.text[:1].isalnum()]
    skipped = word_list("ignored") | word_list("negations") | word_list("particles")
    found = tuple(
        token
        for place, token in enumerate(words)
        if token.quantity
        or token.text not in skipped
        or (place and token.capital and len(token.text) == 1)
    )
    return found or tuple(token for token in words if token.text not in word_list("negations"))


def _is_name(parts: Sequence[Sequence[Token]]) -> bool:
    return all(token.capital or token.quantity for part in parts for token in part) and any(
        token.capital for part in parts for token in part
    )


def _without_generic(words: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return a name without titles and nouns such as "Lake" or "Ocean"."""
    name = _without_titles(words)
    if len(name) > 1 and name[-1].text in word_list("generic"):
        name = name[:-1]
    return name[1:] if len(name) > 1 and name[0].text in word_list("generic") else name


def _without_titles(words: tuple[Token, ...]) -> tuple[Token, ...]:
    start = 0
    while start < len(words) - 1 and words[start].text in word_list("titles"):
        start += 1
    return words[start:]


# ---- where an answer has it ----------------------------------------------------------------------


class _Answer:
    """The tokens of an answer, with the places of each word."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.texts = {token.text for token in tokens}
        self.places: dict[str, list[int]] = {}
        self.quantities: list[int] = []
        for place, token in enumerate(tokens):
            if token.quantity:
                self.quantities.append(place)
            else:
                self.places.setdefault(token.form, []).append(place)

    def text(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""


Span = tuple[int, int]


def _holds(answer: _Answer, wanted: Wanted) -> bool:
    """Return whether an answer gives a known answer without a reason to refuse it."""
    if wanted.acronym:
        return any(_is_accepted(answer, span, wanted) for span in _acronyms(answer, wanted.acronym))
    spans: list[Span] = []
    for part in wanted.parts:
        found = next(
            (span for span in _spans(answer, part, wanted) if _is_accepted(answer, span, wanted)),
            None,
        )
        if found is None:
            return False
        spans.append(found)
    if len(spans) > 1:
        in_sequence = spans == sorted(spans) or not wanted.asked & word_list("sequence")
        if not (in_sequence and _is_whole_list(answer, sorted(spans))):
            return False
    elif _is_one_of_many(answer, spans[0], wanted):
        return False
    return not _is_off_topic(answer, wanted)


def _acronyms(answer: _Answer, acronym: str) -> Iterator[Span]:
    if not acronym.startswith("="):
        for place in answer.places.get(word_table("equal").get(acronym, acronym), ()):
            if answer.tokens[place].capital:
                yield place, place + 1
        return
    letters = acronym[1:]
    words = [place for place, token in enumerate(answer.tokens) if token.capital]
    for start in range(len(words) - len(letters) + 1):
        run = words[start : start + len(letters)]
        if "".join(answer.tokens[place].text[0] for place in run) == letters:
            yield run[0], run[-1] + 1


def _is_initial(one: str, other: str) -> bool:
    return one[:1] == other[:1] and 1 in (len(one), len(other))


_DECIMAL = re.compile(r"\d+\.\d+")


def _other_version(one: str, other: str) -> bool:
    """Return whether two equal numbers without a unit may be versions, such as 3.1 and 3.10."""
    written = (one, other)
    return one != other and all(
        _DECIMAL.fullmatch(text) and not text.endswith(".0") for text in written
    )


def _places(
    answer: _Answer, token: Token, implied: frozenset[Unit], *, in_name: bool = False
) -> list[int]:
    if token.quantity is not None:
        wanted = token.quantity
        return [
            place
            for place in answer.quantities
            if (other := answer.tokens[place].quantity)
            and wanted.equals(other, implied)
            and (implied or not _other_version(token.text, answer.tokens[place].text))
        ]
    if token.form in answer.places:
        return answer.places[token.form]
    if in_name and token.capital:
        return [
            place
            for place, other in enumerate(answer.tokens)
            if other.capital and _is_initial(other.text, token.text)
        ]
    if len(token.form) < _LEAST_LETTERS:
        return []
    return [
        place
        for form, places in answer.places.items()
        if _is_misspelt(form, token.form)
        for place in places
    ]


def _spans(answer: _Answer, part: tuple[Token, ...], wanted: Wanted) -> Iterator[Span]:
    """Yield the places where all words of a part stand together."""
    in_name = wanted.is_name and len(part) > 1
    places_of = (_places(answer, token, wanted.implied, in_name=in_name) for token in part)
    several = [*takewhile(bool, places_of)]
    if len(several) < len(part):
        yield from _joined(answer, part)
        return
    for start in several[0]:
        chosen = [start]
        for places in several[1:]:
            others = (place for place in places if place not in chosen)
            chosen += sorted(others, key=lambda place: abs(place - chosen[-1]))[:1]
        if len(chosen) == len(part) and _stand_together(answer, chosen, wanted):
            yield min(chosen), max(chosen) + 1


_LONG_KEY = 5


def _stand_together(answer: _Answer, chosen: Sequence[int], wanted: Wanted) -> bool:
    first, last = min(chosen), max(chosen)
    in_order = all(one < other for one, other in pairwise(chosen))
    if wanted.ordered and not in_order:
        return False
    between = [answer.tokens[place] for place in range(first, last + 1) if place not in set(chosen)]
    if len(chosen) >= _LONG_KEY and not wanted.is_name:
        return not any(token.text in word_list("sentences") for token in between)
    if any(token.text in _separators() for token in between):
        return False
    extra = sum(_is_extra(token) for token in between)
    if wanted.is_name:
        numbered = any(answer.tokens[place].quantity for place in chosen)
        return not extra and (in_order or numbered or bool(between))
    return extra < len(chosen) - (len(chosen) > 2)


@cache
def _separators() -> frozenset[str]:
    return word_list("sentences") | word_list("negations") | _JOINTS


_JOINTS = frozenset({"and", "or", ",", "&", "/", "nor"})


def _is_extra(token: Token) -> bool:
    return bool(token.quantity) or (
        token.text[:1].isalnum() and token.text not in word_list("ignored")
    )


def _joined(answer: _Answer, part: tuple[Token, ...]) -> Iterator[Span]:
    """Yield the places where the words of a part are written as one word, or apart."""
    joined = "" if any(token.quantity for token in part) else "".join(one.text for one in part)
    for place, token in enumerate(answer.tokens):
        if not joined.startswith(token.text):
            continue
        text, end = token.text, place + 1
        while len(text) < len(joined) and answer.text(end):
            text, end = text + answer.text(end), end + 1
        if text == joined:
            yield place, end


# ---- what refuses a match ------------------------------------------------------------------------


def _is_accepted(answer: _Answer, span: Span, wanted: Wanted) -> bool:
    return not (
        (not wanted.either and _is_negative(answer, span) != wanted.negative)
        or _is_alternative(answer, span, wanted)
        or _is_elsewhere(answer, span, wanted)
        or _is_believed(answer, span)
        or _is_other_name(answer, span, wanted)
        or _is_part(answer, span)
    )


def _start_of(answer: _Answer, place: int, marks: str = "clauses") -> int:
    while place > 0 and answer.tokens[place - 1].text not in word_list(marks):
        place -= 1
    return place


_EXEMPT = frozenset({"only", "just", "until", "doubt", "merely", "simply"})


def _is_negative(answer: _Answer, span: Span) -> bool:
    """Return whether an odd number of negations apply to a span of an answer."""
    start, end = span
    negations = word_list("negations")
    count = sum(
        (answer.tokens[place].text in negations
        and answer.text(place + 1) not in _EXEMPT)
        or (answer.tokens[place].text in ("rather", "other", "instead") and place < start
            and answer.text(place + 1) in ("than", "of"))
        for place in range(_start_of(answer, start), end)
    )  # fmt: skip
    # "Canberra is not", "Hamilton never wrote": a verb and its negation follow
    for place in range(end, min(end + 3, len(answer.tokens))):
        text = answer.tokens[place].text
        if text in word_list("clauses"):
            break
        if text in word_list("auxiliaries"):
            follow = [answer.text(place + 1), answer.text(place + 2)]
            denied = follow[0] in ("not", "never", "no") and follow[1] not in _EXEMPT
            count += denied or follow[0] in word_list("denials")
            break
        if text == "never":
            count += 1
            break
    return count % 2 == 1


_ALTERNATIVES = frozenset({"or", "/", "nor", "either"})


def _is_alternative(answer: _Answer, span: Span, wanted: Wanted) -> bool:
    """Return whether the answer offers something else instead, or says that it guesses."""
    start, end = span
    sides = () if _ALTERNATIVES.isdisjoint(answer.texts) else ((end, 1), (start - 1, -1))
    for first, step in sides:
        for place in range(first, first + 3 * step, step):
            text = answer.text(place)
            if text in ("or", "/", "nor") and answer.text(place + step):
                return not _is_known(answer, place + step, wanted)
            if text == "either" and step < 0:
                return True
            if text in word_list("sentences"):
                break
    before = [answer.text(place) for place in range(max(0, start - 4), start)]
    if word_list("adverbs").intersection(before):
        return True
    return any(
        one in word_list("modals") and other in ("be", "have") for one, other in pairwise(before)
    )


def _is_known(answer: _Answer, place: int, wanted: Wanted) -> bool:
    """Return whether an alternative is a known answer, too."""
    while answer.text(place) in word_list("ignored"):
        place += 1
    return 0 <= place < len(answer.tokens) and answer.tokens[place].form in wanted.others


def _is_off_topic(answer: _Answer, wanted: Wanted) -> bool:
    """Return whether a sentence with the known answer is about something else than the question.

    It has few words of the question, no pronoun at its start, and several other words.
    """
    key = {token.form for part in wanted.parts for token in part}
    asked = wanted.asked - key
    if not asked or answer.text(0) in word_list("pronouns"):
        return False
    stated = {token.form or token.text for token in answer.tokens if _is_extra(token)}
    stated -= key | _frames()
    return len(stated - asked) >= _OTHERS and len(stated & asked) < _FEW * len(asked)


@cache
def _frames() -> frozenset[str]:
    return frozenset(map(word_form, word_list("frames")))


_OTHERS = 4
_FEW = 1 / 3


def _is_elsewhere(answer: _Answer, span: Span, wanted: Wanted) -> bool:
    """Return whether another clause of the answer has more of the question's words.

    A clause is not compared if it follows the span at once or starts with a pronoun.
    """
    is_single = "," not in answer.texts and word_list("contrasts").isdisjoint(answer.texts)
    if is_single or not wanted.asked or len(wanted.parts) > 1:
        return False
    starts = [0, *filter(None, (_clause_mark(answer, n) for n in range(len(answer.tokens))))]
    clauses = [*pairwise([*starts, len(answer.tokens)])]
    first, last = next(one for one in clauses if one[0] <= span[0] < one[1])
    mine = _forms(answer.tokens[first:last]) & wanted.asked
    return any(
        len(theirs - mine) > len(mine - theirs)
        for start, end in clauses
        if start != first
        and span[1] not in (start, start - 1)
        and answer.text(start + 1) not in word_list("pronouns")
        and (theirs := _forms(answer.tokens[start:end]) & wanted.asked)
    )


_VERB_WITHIN = 5


def _clause_mark(answer: _Answer, place: int) -> int:
    """Return the place if a clause starts there, else 0."""
    text = answer.text(place)
    if text in word_list("contrasts"):
        return place
    if answer.text(place - 1) != "," or text not in word_list("starts"):
        return 0
    near = {answer.text(n) for n in range(place, place + _VERB_WITHIN)}
    return 0 if text == "and" and near.isdisjoint(word_list("auxiliaries")) else place


def _is_believed(answer: _Answer, span: Span) -> bool:
    """Return whether a later clause of the sentence corrects what some believe."""
    start, end = span
    believed = not word_list("beliefs").isdisjoint(answer.texts) and any(
        answer.text(place) in word_list("beliefs") and answer.text(place - 1) != "i"
        for place in range(_start_of(answer, start, "sentences"), start)
    )
    if not believed:
        return False
    ends = word_list("corrections") | word_list("sentences")
    later = (token.text for token in answer.tokens[end:] if token.text in ends)
    return next(later, "") in word_list("corrections")


def _is_part(answer: _Answer, span: Span) -> bool:
    """Return whether a word is part of a compound ("sugar-free", "CO2") or only compared with."""
    start, end = span
    tokens = answer.tokens
    if end < len(tokens) and tokens[end].hyphen and tokens[end].quantity:
        return True
    if end - start == 1 and (tokens[start].hyphen or (end < len(tokens) and tokens[end].hyphen)):
        return tokens[start].quantity is None and answer.text(start - 1) != "non"
    place = start - 1
    while place > 0 and answer.text(place) in word_list("titles") | {"the", "a", "an"}:
        place -= 1
    before = answer.text(place)
    if before == "as":
        return any(token.text == "as" for token in tokens[_start_of(answer, place) : place])
    return before in word_list("compared") and answer.text(place - 1) != "named"


def _is_other_name(answer: _Answer, span: Span, wanted: Wanted) -> bool:
    """Return whether a name is a pronoun ("us") or part of a longer one ("New Mexico")."""
    if not wanted.is_name:
        return False
    start, end = span
    tokens = answer.tokens
    if wanted.alone and answer.text(end) == "," and end + 1 < len(tokens):
        return tokens[end + 1].capital and tokens[end + 1].form not in wanted.others
    before = tokens[start - 1] if start else None
    after = tokens[end] if end < len(tokens) else None
    first = tokens[start]
    if not first.capital and first.text in word_list("pronouns"):
        return True
    if after is not None and after.quantity and after.quantity.kind == "ordinal":
        return True
    if before is not None and before.capital and before.text in word_list("directions"):
        return first.text not in word_list("places") or before.text == "new"
    if wanted.surname and before is not None and before.capital and before.form:
        known = word_list("titles") | word_list("ignored") | word_list("people")
        same = before.text == wanted.surname or _is_initial(before.text, wanted.surname)
        return not same and before.text not in known
    if end - start > 1 or after is None or not after.capital or not after.form:
        return False
    return (
        tokens[end - 1].capital
        and after.text not in word_list("generic") | word_list("ignored") | word_list("particles")
        and after.form not in wanted.asked
        and after.text[:1].isalpha()
    )


def _is_whole_list(answer: _Answer, spans: Sequence[Span]) -> bool:
    """Return whether the answer lists the parts and nothing else."""
    tokens = answer.tokens
    inside = {place for span in spans for place in range(*span)}
    first, last = spans[0][0], spans[-1][1]
    for place in range(first, last):
        joint = answer.text(place - 1) in _JOINTS and answer.text(place + 1) in _JOINTS
        is_other = place not in inside and joint and _is_extra(tokens[place])
        if is_other or tokens[place].text in word_list("contrasts") - {";"}:
            return False
    after = last + (answer.text(last) == ",")
    overlap = len(inside) < sum(end - start for start, end in spans)
    return not overlap and not (
        answer.text(after) in ("and", "&")
        and after + 1 < len(tokens)
        and _is_extra(tokens[after + 1])
    )


_LONGEST_PIECE = 3


@cache
def _sentence_words() -> frozenset[str]:
    names = ("sentences", "auxiliaries", "negations", "pronouns")
    return frozenset().union(*map(word_list, names))


def _is_one_of_many(answer: _Answer, span: Span, wanted: Wanted) -> bool:
    """Return whether an answer is a bare list ("copper, zinc and tin") of which one is wanted."""
    pieces = [] if _JOINTS.isdisjoint(answer.texts) else _pieces(answer)
    covered = set(range(*span))
    is_list = len(pieces) > (1 if answer.texts & {"and", "&"} else 2)
    if not is_list or any(len(piece) > _LONGEST_PIECE for piece in pieces):
        return False
    return any(
        covered.isdisjoint(piece)
        and not any(answer.tokens[place].form in wanted.others for place in piece)
        for piece in pieces
    )


def _pieces(answer: _Answer) -> list[list[int]]:
    """Return the places of the words of each part of a bare list; [] for a sentence."""
    if any(token.text in _sentence_words() for token in answer.tokens[:-1]):
        return []
    pieces: list[list[int]] = [[]]
    for place, token in enumerate(answer.tokens):
        if token.text in _JOINTS:
            pieces.append([])
        elif _is_extra(token):
            pieces[-1].append(place)
    return [piece for piece in pieces if piece]


# ---- yes and no ----------------------------------------------------------------------------------

_LEAD = re.compile(
    r"(?i)^\W*(?:\w+ly,?\s+)?"
    r"(?:the (?:correct )?answer is:?\s*|answer:\s*|(?:that|this|it) is\s+|that's\s+)?\W*"
    r"(not )?(?:entirely |absolutely |completely )?"
    r"(yes|yeah|yep|true|correct|right|no|nope|false|incorrect|wrong)\b(?! (?:answer|longer|one|"
    r"evidence|known|such|information))(?! (?:\w+ )?(?:is|are|was|were|can|has|have)\b)"
)


def _polarity(plain: str) -> bool | None:
    if plain in word_list("yes"):
        return True
    return False if plain in word_list("no") | word_list("nothing") else None


def _says(answer: str, text: _Answer, question: str) -> bool | None:
    """Return whether an answer says yes; None if it says neither yes nor no."""
    if lead := _LEAD.match(answer):
        return (lead[2].lower() in word_list("yes") | {"right"}) != bool(lead[1])
    tokens = text.tokens
    about = tokenize(question)
    asked = _forms(_content(about))
    if not asked or any(token.text in word_list("unclear") for token in tokens):
        return None
    stated = _forms(tokens)
    opposites = sum(not stated.isdisjoint(_opposites(form)) for form in asked - stated)
    has_pronoun = bool(tokens) and tokens[0].text in word_list("pronouns")
    if len(asked & stated) + opposites + has_pronoun < _MOST * len(asked):
        return None
    negations = word_list("negations")
    denied = sum(token.text in negations for token in tokens)
    denied += opposites
    denied += any(token.text in word_list("denials") for token in tokens)
    denied += sum(token.text in negations for token in about)
    return denied % 2 == 0


_NEGATIVE_PREFIXES = ("un", "in", "im", "il", "ir", "dis")


def _opposites(form: str) -> Iterator[str]:
    """Yield the words that are true if and only if this one is false."""
    if other := word_pairs("opposite").get(form):
        yield other
    for prefix in _NEGATIVE_PREFIXES:
        yield prefix + form
        if form.startswith(prefix):
            yield form.removeprefix(prefix)


_MOST = 0.6
"""Share of the question's words that a sentence has to have to answer it with yes or no."""


# ---- spelling ------------------------------------------------------------------------------------

_LEAST_LETTERS = 7
_SAME_START, _SAME_END = 3, 2


def _is_misspelt(form: str, other: str) -> bool:
    """Return whether two long words differ in one letter inside, as by a typing error.

    Words of known pairs ("complement", "compliment") differ, and so do words that differ at
    their start or end, where prefixes and endings have a meaning.
    """
    if form[:_SAME_START] != other[:_SAME_START] or abs(len(form) - len(other)) > 1:
        return False
    if max(len(form), len(other)) < _LEAST_LETTERS + (len(form) != len(other)):
        return False
    if not (form.isalpha() and other.isalpha()) or form[-_SAME_END:] != other[-_SAME_END:]:
        return False
    return word_pairs("different").get(form) != other and is_one_edit(form, other)
