"""Frozen records of the field. Standard library only."""

from exampp.records.graders import ITEM_KINDS, Grade, GraderIdentity, Outcome, State
from exampp.records.ids import (
    OVERALL,
    check_system_names,
    content_hash,
    item_id,
    subtopic_of,
    subtopic_of_item,
)
from exampp.records.inputs import (
    Judgment,
    Passage,
    PassageGrades,
    PooledPassage,
    Query,
    QueryPool,
    RankedPassage,
    Residue,
    Subtopic,
)
from exampp.records.items import BankEntry, Item

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
