"""The verdict, yes or no, that a reply gives in text: the grammar of docs/definitions.md."""

from __future__ import annotations

import re

from exampp.prompts.doubts import Doubts
from exampp.prompts.ratings import FieldValue, ReadRating, agreed
from exampp.prompts.tokens import tokenise

_WORDS = {"yes": "Y", "no": "W", "true": "G", "correct": "G", "false": "B", "incorrect": "B"}
_WORDS |= {"relevant": "A", "rating": "A", "score": "A", "grade": "A"}
_VALUES = {"Y": 1, "G": 1, "W": 0, "B": 0}
_V = "(?P<v>[YWGB])"
_END = r'(?=\Z|[.,;:)(\n|"b\-])'
_WHOLE = rf"{_V}(?:(?!\.[NXQ]){_END}|(?=[TOI]))"
_FIELD = re.compile(rf"(?P<final>F?)(?:[RA]|(?<=F))(?:[|:][:|\-\n(]*+|i:?|\n[\n(]*+|-)a?{_WHOLE}")
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
    return _Reply(reply, field).fields()


def find_verdict(reply: str, field: str = "") -> ReadRating:
    """The verdict that a reply gives in text, 1 for yes and 0 for no.

    Without one, the rule says why: docs/definitions.md lists the rules.
    """
    found = _Reply(reply, field)
    fields = found.fields()
    return agreed(fields) if fields else found.statement()


class _Reply:
    """The tokens of a reply, and the places that its sentences put in doubt."""

    def __init__(self, reply: str, field: str) -> None:
        self._kinds = tokenise(reply, field, _WORDS).kinds
        self._doubts = Doubts(self._kinds)

    def fields(self) -> list[FieldValue]:
        return [
            FieldValue(self._said(match.start("v")), bool(match["final"]))
            for match in _FIELD.finditer(self._kinds)
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
