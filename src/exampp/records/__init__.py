"""Frozen records of the field. Standard library only."""

from exampp.records.bank import BankEntry, Item
from exampp.records.grading import ITEM_KINDS, Grade, GraderIdentity, Outcome, State
from exampp.records.ids import (
    OVERALL,
    check_system_names,
    content_hash,
    item_id,
    subtopic_of,
    subtopic_of_item,
)
from exampp.records.pool import PassageGrades, PooledPassage, QueryPool, Residue
from exampp.records.topics import Judgment, Passage, Query, RankedPassage, Subtopic

__all__ = [
    "ITEM_KINDS",
    "OVERALL",
    "BankEntry",
    "Grade",
    "GraderIdentity",
    "Item",
    "Judgment",
    "Outcome",
    "Passage",
    "PassageGrades",
    "PooledPassage",
    "Query",
    "QueryPool",
    "RankedPassage",
    "Residue",
    "State",
    "Subtopic",
    "check_system_names",
    "content_hash",
    "item_id",
    "subtopic_of",
    "subtopic_of_item",
]
