"""Frozen records of the field. Standard library only."""

from exampp.records.bank import BankEntry, Item
from exampp.records.grading import ITEM_KINDS, Grade, GraderIdentity, Outcome, State
from exampp.records.ids import (
    OVERALL,
    check_system_names,
    content_hash,
    facet_of,
    facet_of_item,
    item_id,
)
from exampp.records.pool import PassageGrades, PooledPassage, QueryPool, Residue
from exampp.records.topics import Facet, Judgment, Passage, Query, RankedPassage

__all__ = [
    "ITEM_KINDS",
    "OVERALL",
    "BankEntry",
    "Facet",
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
    "check_system_names",
    "content_hash",
    "facet_of",
    "facet_of_item",
    "item_id",
]
