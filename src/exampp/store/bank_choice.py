"""Which bank is meant where one is named, or none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from exampp.errors import InputError
from exampp.records import ITEM_KINDS
from exampp.records.wording import quoted
from exampp.store.bank import QUERY_BANK, bank_names


def only_bank(connection: sqlite3.Connection, path: Path) -> str:
    """The only bank there is. Raises InputError, for the collection at `path`, where it is not."""
    known = dict.fromkeys(
        name for kind in ITEM_KINDS if kind != "query" for name in bank_names(connection, kind)
    )
    if len(known) == 1:
        return next(iter(known))
    if not known:
        raise InputError("the collection has no bank", file=path, mend="Import one: exampp import")
    raise InputError(
        f"which bank? This collection has {', '.join(known)}", file=path, mend="Name one: --bank"
    )


def bank_of_kind(connection: sqlite3.Connection, name: str | None, kind: str, path: Path) -> str:
    """The bank meant: the one named, or the only one that has items of this kind.

    Raises InputError, for the collection at `path`, where there is none or there are several.
    """
    if kind == "query":
        return QUERY_BANK
    known = bank_names(connection, kind)
    if name is not None and name in known:
        return name
    if name is None and len(known) == 1:
        return known[0]
    if not known:
        raise InputError(
            f"the collection has no {kind}s to grade against",
            file=path,
            mend="Import a bank (exampp import), let a model write one (exampp bank generate), or "
            "rate relevance for the query itself (--kind query)",
        )
    asked = "which bank?" if name is None else f"there is no bank {quoted(name)} with {kind}s."
    raise InputError(
        f"{asked} This collection has {', '.join(known)} with {kind}s",
        file=path,
        mend="Name one with --bank",
    )
