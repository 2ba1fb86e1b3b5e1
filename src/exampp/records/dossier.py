"""The read model of the review: everything about one query that people look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exampp.records.bank import Item
from exampp.records.decisions import Decision
from exampp.records.gradebook import QueryGrades
from exampp.records.grading import Grade, GraderIdentity

Cell = tuple[int, int]
"""(passage, item): a row and a column of `QueryGrades.ratings`."""


class PassageText(NamedTuple):
    """What a passage says."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Dossier:
    """One query as one grader graded it, with texts, raw replies and people's decisions.

    `grades` holds the effective ratings; `items` and `item_versions` are aligned with its items,
    `texts` and `passage_versions` with its passages (None: a passage without a text). `automatic`
    has what the grader said of a cell, absent where it never tried; `decisions` are in the order
    in which they were made. The versions are keys of the store (empty for a workbench file).
    `bank_order` are the columns as the bank lists them, for people to look at.
    """

    grader: GraderIdentity
    bank: str
    query_id: str
    query_text: str
    subtopic_texts: Mapping[str, str]
    grades: QueryGrades
    items: tuple[Item, ...]
    texts: tuple[PassageText | None, ...]
    automatic: Mapping[Cell, Grade]
    decisions: Mapping[Cell, Sequence[Decision]] = field(default_factory=dict)
    item_versions: tuple[int, ...] = ()
    passage_versions: tuple[int | None, ...] = ()
    bank_order: tuple[int, ...] = ()
