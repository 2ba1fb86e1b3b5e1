"""Folders of BEIR: `queries.jsonl`, `qrels/SPLIT.tsv` and `corpus.jsonl`.

As with a dataset of ir_datasets, the queries and judgments are taken, and the corpus is where the
texts of ranked and judged passages are looked up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from exampp.errors import InputError
from exampp.formats import qrels, queries
from exampp.formats.lines import OnError
from exampp.formats.read_warnings import add_warning
from exampp.records import Judgment, Query

_SPLIT = "test"


def is_folder(path: Path) -> bool:
    """Whether a folder is laid out as BEIR lays out its datasets."""
    # what no file can have as its path is no folder, either
    return os.path.isdir(path / "qrels") and os.path.isfile(path / "queries.jsonl")  # noqa: PTH112, PTH113


def corpus_of(path: Path) -> Path | None:
    """The corpus of a folder of BEIR, if it is one and has one."""
    corpus = path / "corpus.jsonl"
    return corpus if is_folder(path) and corpus.is_file() else None


def judgments(path: Path, on_error: OnError) -> Iterator[Judgment]:
    """The judgments of the test split, or of the only split there is.

    Raises InputError where there are several splits, and none is called test.
    """
    splits = sorted((path / "qrels").glob("*.tsv"))
    chosen = [one for one in splits if one.stem == _SPLIT] or splits
    if len(chosen) != 1:
        names = ", ".join(one.name for one in splits) or "none"
        raise InputError(
            f"which of the qrels? There are {names}",
            file=path / "qrels",
            mend="Import the files by themselves: --queries, --qrels and --corpus",
        )
    left = [one.name for one in splits if one != chosen[0]]
    if left:
        add_warning(
            chosen[0], None, f"{', '.join(left)} beside it are left aside; --qrels takes them"
        )
    yield from qrels.read(chosen[0], on_error)


def topics(path: Path, judged: set[str], on_error: OnError) -> Iterator[Query]:
    """The queries that are judged: a file of BEIR holds those of all splits."""
    return (one for one in queries.read(path / "queries.jsonl", on_error) if one.query_id in judged)
