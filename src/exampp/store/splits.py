"""Splits of banks into a public and a sealed part, as recorded. The newest of a bank holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from exampp.store.bank import Edit
from exampp.store.interning import insert

PARTS = ("public", "sealed")


@dataclass(frozen=True, slots=True)
class Split:
    """A recorded split: what was asked, what was committed to, after which edit of the bank.

    `items` are the keys of the sealed items.
    """

    key: int
    share: float
    seed: int
    salt: str
    commitment: str
    edit_number: int
    edit: Edit
    items: frozenset[int]


def put_split(
    connection: sqlite3.Connection,
    bank: str,
    share: float,
    seed: int,
    seal: tuple[str, str],
    edit_number: int,
    items: Iterable[int],
    edit: Edit,
) -> None:
    """Record a split in the caller's transaction; `seal` is (salt, commitment)."""
    split = insert(
        connection,
        "INSERT INTO split (bank, share, seed, salt, commitment, edit, author, reason, at) "
        "SELECT bank, ?, ?, ?, ?, ?, ?, ?, ? FROM bank WHERE name = ?",
        (share, seed, *seal, edit_number, *edit, bank),
    )
    connection.executemany(
        "INSERT INTO sealed (split, item) VALUES (?, ?)", [(split, item) for item in items]
    )


def newest_split(connection: sqlite3.Connection, bank: str) -> Split | None:
    """The split of a bank that holds; None where it was never split."""
    row = connection.execute(
        "SELECT s.split, s.share, s.seed, s.salt, s.commitment, s.edit, s.author, s.reason, s.at "
        "FROM split s JOIN bank b USING (bank) WHERE b.name = ? ORDER BY s.split DESC LIMIT 1",
        (bank,),
    ).fetchone()
    if row is None:
        return None
    key, share, seed, salt, commitment, number, author, reason, at = row
    items = connection.execute("SELECT item FROM sealed WHERE split = ?", (key,))
    return Split(
        key,
        share,
        seed,
        salt,
        commitment,
        number,
        Edit(author, reason, at),
        frozenset(item for (item,) in items),
    )
