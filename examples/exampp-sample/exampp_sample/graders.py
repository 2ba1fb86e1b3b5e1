"""A grader without a model: how many words of the item occur in the passage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import exampp


class SharedWords(exampp.Grader):
    """Rates 5 where `enough` words of the item occur in the passage, else 0."""

    def __init__(self, enough: int = 2) -> None:
        self.enough = enough

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return everything that determines a reply: it identifies the grader."""
        return {"name": "shared-words", "version": 1, "enough": self.enough}

    def answer(
        self, requests: Iterable[exampp.Request]
    ) -> Iterator[tuple[exampp.Request, exampp.Reply]]:
        """Yield one reply to every request."""
        for request in requests:
            shared = words(request.item) & words(request.passage)
            yield request, exampp.Reply("5" if len(shared) >= self.enough else "0")


def words(text: str) -> set[str]:
    """The words of a text, without marks at their ends."""
    return {word.strip(".,;:?!").lower() for word in text.split()}


@dataclass(frozen=True, kw_only=True)
class SharedWordsOptions(exampp.GraderOptions):
    """Options of the grader, in Python and on the command line."""

    enough: int = exampp.option("Words that must be shared.", 2, least=1)


BACKEND = exampp.Backend(lambda options, _: SharedWords(options.enough), SharedWordsOptions)
