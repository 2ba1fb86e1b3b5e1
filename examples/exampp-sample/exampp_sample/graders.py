"""A grader without a model: how many words of the item occur in the passage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import exampp


class SharedWords(exampp.Grader):
    """Rates 5 where `enough` words of the item occur in the passage, else 0."""

    def __init__(self, enough: int = 2) -> None:
        self.enough = enough

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines a reply: it makes the grader that it is."""
        return {"name": "shared-words", "version": 1, "enough": self.enough}

    def answer(self, asks: Iterable[exampp.Ask]) -> Iterator[tuple[exampp.Ask, exampp.Reply]]:
        """One reply to every ask."""
        for ask in asks:
            shared = words(ask.item) & words(ask.passage)
            yield ask, exampp.Reply("5" if len(shared) >= self.enough else "0")


def words(text: str) -> set[str]:
    """The words of a text, without marks at their ends."""
    return {word.strip(".,;:?!").lower() for word in text.split()}


BACKEND = exampp.Backend(
    lambda _, options: SharedWords(**options),
    options={"enough": exampp.Option(int, "Words that must be shared. [default: 2]")},
)
