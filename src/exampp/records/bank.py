"""Items of an exam: questions and nuggets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """One question or nugget of a bank.

    `kind` is "question" or "nugget"; `answers` is its answer key (possibly empty);
    `extra` keeps what else its file said of it, JSON-able.
    """

    item_id: str
    query_id: str
    text: str
    kind: str = "question"
    subtopic_id: str | None = None
    answers: tuple[str, ...] = ()
    weight: float = 1.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BankEntry:
    """The items of one query, or of one subtopic of it, as one line of a bank file.

    `extra` keeps the other keys of the line (test_collection, info, hash ...), JSON-able.
    """

    query_id: str
    items: tuple[Item, ...]
    query_text: str = ""
    subtopic_id: str | None = None
    subtopic_text: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BankTexts:
    """What is known of a bank besides its grades: its entries, and the texts of the queries.

    `sealed` are the (query id, item id) of its sealed part; None where it was never split.
    """

    entries: tuple[BankEntry, ...] = ()
    queries: Mapping[str, str] = field(default_factory=dict)
    sealed: frozenset[tuple[str, str]] | None = None
