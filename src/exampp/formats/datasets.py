"""Topics, judgments and documents of the datasets that ir_datasets knows, by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats.format import DataSet, Format
from exampp.installed import install_command
from exampp.records import Judgment, Passage, Query
from exampp.store.interning import batches

PREFIX = "irds:"
"""What a name of a dataset starts with where a file could stand, as in `irds:antique/test`."""


def is_dataset(name: str | Path) -> bool:
    """Return whether the name is one of a dataset and not of a file."""
    return str(name).startswith(PREFIX)


def topics(name: str | Path) -> Iterator[Query]:
    """Yield the topics of a dataset.

    Of one with several fields, those that ir_datasets searches with.
    """
    dataset = _load(name)
    if not dataset.has_queries():
        raise InputError(
            "the dataset has no topics", file=name, mend="For its documents, name it with --corpus"
        )
    with _Reading(name):
        for query in dataset.queries_iter():
            yield Query(str(query.query_id), _text(query))


def judgments(name: str | Path) -> Iterator[Judgment]:
    """Yield the judgments of a dataset, of whole queries; none where it has none."""
    dataset = _load(name)
    if not dataset.has_qrels():
        return
    with _Reading(name):
        for one in dataset.qrels_iter():
            yield Judgment(str(one.query_id), str(one.doc_id), int(one.relevance))


def has_documents(name: str | Path) -> bool:
    """Return whether a dataset has documents."""
    return bool(_load(name).has_docs())


def documents(name: str | Path, wanted: set[str]) -> Iterator[Passage]:
    """Yield the wanted documents that the dataset has and that hold a text."""
    dataset = _load(name)
    if not dataset.has_docs():
        raise InputError("the dataset has no documents", file=name)
    with _Reading(name):
        store = dataset.docs_store()
        for batch in batches(sorted(wanted)):
            for doc in store.get_many(batch).values():
                if text := _text(doc).strip():
                    yield Passage(str(doc.doc_id), text)


def _text(record: Any) -> str:
    if hasattr(record, "default_text"):
        return str(record.default_text())
    names: Sequence[str] = [n for n in ("title", "text", "body") if getattr(record, n, None)]
    return "\n".join(str(getattr(record, name)) for name in names)


def _load(name: str | Path) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise InputError(
            "datasets by their id need ir_datasets",
            file=name,
            mend=f"Install it: {install_command('datasets')}",
        ) from None
    try:
        return ir_datasets.load(str(name).removeprefix(PREFIX))
    except KeyError:
        raise InputError(
            "ir_datasets knows no such dataset",
            file=name,
            mend="Its ids are listed at https://ir-datasets.com",
        ) from None


class _Reading:
    """Turns whatever goes wrong inside ir_datasets into one sentence."""

    def __init__(self, name: str | Path) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, InputError):
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise InputError(f"ir_datasets cannot read it ({reason})", file=self.name) from None


FORMAT = Format(
    "",
    lambda path, _: [DataSet([*topics(path)], judgments(path))],
    name="dataset",
    record=DataSet,
    looks="`irds:ID`, topics and judgments of a dataset",
    source="ir_datasets",
)
