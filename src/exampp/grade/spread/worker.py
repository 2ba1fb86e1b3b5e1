"""What lives where the model is: it makes the grader, fills prompts to its limit, and answers."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import exampp
from exampp.errors import ExamError, InputError
from exampp.grade.asking import Asker, asker, check_room
from exampp.grade.spread.dispatch import WorkerFacts
from exampp.llm.base import Ask, Grader, Reply, check_grader
from exampp.plugins import told
from exampp.prompts import Prompt
from exampp.store.cells import Due, DueIds

Make = Callable[[], Grader]
Row = tuple[Any, ...]
"""What is sent of an ask: all but the prompt, which its worker makes of this."""
_row = attrgetter(
    *("key", "query", "item", "answers", "passage"),
    *("query_id", "item_id", "passage_id", "subtopic_id"),
)


def rows_of(asks: Iterable[Ask]) -> list[Row]:
    """Asks as they are sent; equal texts are one object, so that each goes out once."""
    texts: dict[Any, Any] = {}
    return [tuple(texts.setdefault(one, one) for one in _row(ask)) for ask in asks]


class GradingWorker:
    """A grader and its node; `load` before all else."""

    def __init__(self) -> None:
        self._grader: Grader | None = None
        self._askers: dict[tuple[Prompt, str], Asker] = {}

    def load(self, make: Make) -> WorkerFacts | str:
        """Make the grader, and say what it is; or, in a sentence, why it cannot be made."""
        try:
            grader = self._grader = check_grader(make())
            provenance = grader.provenance
            return WorkerFacts(
                platform.node(),
                exampp.__version__,
                dict(grader.settings),
                grader.readings,
                grader.unnumbered,
                grader.called,
                grader.varies,
                grader.note,
                None if provenance is None else dict(provenance),
            )
        except ExamError as error:
            return str(error)
        except Exception as error:
            return told(error)

    def answer(
        self, prompt: Prompt, kind: str, rows: Sequence[Row]
    ) -> list[tuple[int, Reply]] | InputError:
        """The replies by key, or what is wrong with all that could be asked.

        Rows come without prompts: these are filled here, where the model's limit is known,
        and a reply says how much of a passage was kept. Any other failure is the worker's own.
        """
        if self._grader is None:
            raise InputError("the worker has no grader")
        try:
            ask = self._asker(self._grader, prompt, kind)
            replies: list[tuple[int, Reply]] = []
            kept: dict[int, int] = {}
            asks = []
            for key, *texts in rows:
                try:
                    filled = ask(key, _due(*texts))
                except InputError as error:
                    replies.append((key, Reply("", fault=str(error))))
                    continue
                asks.append(filled.ask)
                if filled.kept is not None:
                    kept[key] = filled.kept
            replies += (
                (one.key, _cut(reply, kept.get(one.key)))
                for one, reply in self._grader.answer(asks)
            )
        except InputError as error:
            return error
        return replies

    def _asker(self, grader: Grader, prompt: Prompt, kind: str) -> Asker:
        if (prompt, kind) not in self._askers:
            check_room(prompt, grader)
            self._askers[prompt, kind] = asker(prompt, kind, grader)
        return self._askers[prompt, kind]


def _due(query: str, item: str, keys: tuple[str, ...], passage: str, *ids: Any) -> Due:
    return Due(query, item, keys, passage, (), ids=DueIds(*ids))


def _cut(reply: Reply, kept: int | None) -> Reply:
    if kept is None or reply.fault:
        return reply
    return replace(reply, detail={**reply.detail, "cut": True, "kept": kept})
