"""What a collection holds of a bank besides grades."""

from __future__ import annotations

import sqlite3

from exampp.records.bank import BankTexts
from exampp.store.bank import read_bank
from exampp.store.bank_history import known_queries, states
from exampp.store.splits import newest_split


def read_bank_texts(connection: sqlite3.Connection, bank: str) -> BankTexts:
    """The texts of a bank and of the queries, and which of its items are sealed."""
    split = newest_split(connection, bank)
    sealed = None
    if split is not None:
        of = (state for state in states(connection, bank) if state.key in split.items)
        sealed = frozenset((state.query_id, state.item_id) for state in of)
    return BankTexts(tuple(read_bank(connection, bank)), known_queries(connection), sealed)
