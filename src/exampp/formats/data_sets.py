"""Read and write BEIR folders: `queries.jsonl`, `qrels/SPLIT.tsv` and `corpus.jsonl`.

Queries and judgments are imported; the corpus is only used to look up the texts of ranked and
judged passages, as with ir_datasets. An exported folder also has the bank, the runs and a data
card: a README.md whose header names the files of each configuration, so that `datasets` loads the
folder from the Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats import queries, trec
from exampp.formats.format import DataSet, Format, ReadOptions
from exampp.formats.lines import OnError, encode_json
from exampp.formats.output import new_folder, writing
from exampp.formats.read_warnings import add_warning
from exampp.installed import install_command
from exampp.records import BankEntry, Judgment, Passage, Query, RankedPassage
from exampp.store.sql import batches
from exampp.version import __version__

_SPLIT = "test"


def is_beir_folder(path: Path) -> bool:
    """Return whether a folder has the layout of a BEIR dataset."""
    with suppress(OSError):  # the path is too long
        return (path / "qrels").is_dir() and (path / "queries.jsonl").is_file()
    return False


def corpus_of(path: Path) -> Path | None:
    """Return the corpus of a BEIR folder, or None."""
    corpus = path / "corpus.jsonl"
    return corpus if is_beir_folder(path) and corpus.is_file() else None


def judgments(path: Path, on_error: OnError) -> Iterator[Judgment]:
    """Yield the judgments of the test split, or of the only split.

    Raises:
        InputError: There are several splits and none is called test.
    """
    splits = sorted((path / "qrels").glob("*.tsv"))
    split_files = [one for one in splits if one.stem == _SPLIT] or splits
    if len(split_files) != 1:
        names = ", ".join(one.name for one in splits) or "none"
        raise InputError(
            f"several qrels files: {names}",
            file=path / "qrels",
            hint="Import the files separately: --queries, --qrels and --corpus",
        )
    unread = [one.name for one in splits if one != split_files[0]]
    if unread:
        add_warning(
            split_files[0], None, f"not imported: {', '.join(unread)}. Add them with --qrels"
        )
    yield from trec.read_qrels(split_files[0], on_error)


def _read(path: Path, how: ReadOptions) -> Iterator[DataSet]:
    """Yield the judgments and the judged queries; queries.jsonl has the queries of all splits."""
    judged = list(judgments(path, how.on_error))
    names = {one.query_id for one in judged}
    every_query = queries.read(path / "queries.jsonl", how.on_error)
    yield DataSet([one for one in every_query if one.query_id in names], judged)


JUDGMENT_COLUMNS = ("query-id", "corpus-id", "score")


PARTS = {
    "queries.jsonl": ("queries", "queries: `_id`, `text`"),
    "corpus.jsonl": ("corpus", "passages: `_id`, `title`, `text`"),
    "qrels": ("default", "judgments: `query-id`, `corpus-id`, `score`"),
    "bank.jsonl": ("bank", "the exam: one query per line, with its `items`"),
    "systems.run": ("", "system results in trec_eval format"),
}
"""The name of each file's configuration on the hub, and what it holds; qrels are named by split."""
_ABOUT = (
    "An exam for systems that retrieve and generate: what a good answer to each query has to "
    "cover, the passages, people's judgments, and what systems returned."
)


def part_of(file: str) -> tuple[str, str]:
    """Return the entry of `PARTS` for a file."""
    return PARTS[file.partition("/")[0]]


def write_folder(
    path: Path,
    topics: Iterable[Query],
    passages: Iterable[Passage],
    judgments: Iterable[Judgment],
    entries: Sequence[BankEntry] = (),
    ranked: Iterable[RankedPassage] = (),
    *,
    split: str = _SPLIT,
    about: str = _ABOUT,
    describe: Callable[[Path, Mapping[str, int]], None] | None = None,
) -> int:
    """Write a new folder in one step; return the number of records.

    Empty kinds get no file. Passages without text are not written. `about` describes the data in
    the card; `describe` is called with the folder and the number of records of each file, and may
    add files.

    Raises:
        InputError: The folder exists, or UTF-8 cannot encode a text.
    """
    with new_folder(path) as folder:
        (folder / "qrels").mkdir()
        counts = {
            "queries.jsonl": _lines(
                folder / "queries.jsonl", ({"_id": q.query_id, "text": q.text} for q in topics)
            ),
            "corpus.jsonl": _lines(
                folder / "corpus.jsonl",
                (
                    {"_id": one.passage_id, "title": one.title, "text": one.text}
                    for one in passages
                    if one.text
                ),
            ),
            f"qrels/{split}.tsv": _judgments(folder / "qrels" / f"{split}.tsv", judgments),
            "bank.jsonl": sum(len(entry.items) for entry in entries),
        }
        if entries:
            workbench_bank.write(folder / "bank.jsonl", list(entries))
        entry_list = list(ranked)
        counts["systems.run"] = len(entry_list)
        if entry_list:
            trec.write_run(folder / "systems.run", entry_list)
        for name in [name for name, count in counts.items() if not count]:
            (folder / name).unlink(missing_ok=True)
            del counts[name]
        card = _card(path.name, counts, split, about)
        with writing(folder / "README.md") as stream:
            stream.write(card.encode())
        if describe is not None:
            describe(folder, counts)
    return sum(counts.values())


def _lines(path: Path, rows: Iterable[dict[str, object]]) -> int:
    count = 0
    with writing(path) as stream:
        for row in rows:
            stream.write(encode_json(row, path))
            count += 1
    return count


def _judgments(path: Path, judgments: Iterable[Judgment]) -> int:
    count = 0
    with writing(path) as stream:
        stream.write("\t".join(JUDGMENT_COLUMNS).encode() + b"\n")
        for one in judgments:
            cells = (one.query_id, one.passage_id)
            if any("\t" in cell or "\n" in cell for cell in cells):
                raise InputError(
                    f"an id with a tab or line break cannot be written to TSV: {cells}", file=path
                )
            stream.write("\t".join((*cells, str(one.relevance))).encode() + b"\n")
            count += 1
    return count


def _card(name: str, counts: Mapping[str, int], split: str, about: str) -> str:
    """Return the data card: YAML for the hub, then a table of the files."""
    configs = [
        f"- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {file}\n"
        for file in counts
        if (config := part_of(file)[0])
    ]
    rows = [f"| `{file}` | {count:,} | {part_of(file)[1]} |\n" for file, count in counts.items()]
    options = {"bank.jsonl": "--bank bank.jsonl", "systems.run": "--runs systems.run"}
    given = " ".join(("my.exam .", *(text for file, text in options.items() if file in counts)))
    return (
        "---\n"
        f"pretty_name: {name!r}\n"
        "tags:\n- information-retrieval\n- evaluation\n- rag\n"
        f"configs:\n{''.join(configs)}"
        "---\n\n"
        f"# {name}\n\n"
        f"{about}\n\n"
        f"| file | records | what |\n|---|---|---|\n{''.join(rows)}\n"
        f"Written by exampp {__version__}. Licence, origin of the texts, and who made the "
        "exam: state it when you publish it.\n\n"
        f"```console\n$ exampp import {given}\n```\n"
    )


FORMAT = Format(
    "",
    _read,
    name="beir",
    record=DataSet,
    exports="beir",
    looks="a folder of `queries.jsonl`, `qrels/test.tsv` and `corpus.jsonl`",
    source="BEIR, the Hugging Face hub",
    lossless="yes, plus `bank.jsonl`, `systems.run` and a data card; subtopics and queries "
    "without judgments are not read",
)


# ---- datasets ------------------------------------------------------------------------------------


PREFIX = "irds:"
"""Prefix of dataset names given instead of a file, as in `irds:antique/test`."""


def is_dataset(name: str | Path) -> bool:
    """Return whether the name is a dataset of ir_datasets instead of a file."""
    return str(name).startswith(PREFIX)


def dataset_topics(name: str | Path) -> Iterator[Query]:
    """Yield the topics of a dataset.

    Topics with several fields use the fields that ir_datasets searches with.
    """
    dataset = _load(name)
    if not dataset.has_queries():
        raise InputError(
            "the dataset has no topics", file=name, hint="Use --corpus for its documents"
        )
    with _reading(name):
        for query in dataset.queries_iter():
            yield Query(str(query.query_id), _text(query))


def dataset_judgments(name: str | Path) -> Iterator[Judgment]:
    """Yield the judgments of a dataset; none if it has no qrels."""
    dataset = _load(name)
    if not dataset.has_qrels():
        return
    with _reading(name):
        for one in dataset.qrels_iter():
            yield Judgment(str(one.query_id), str(one.doc_id), int(one.relevance))


def has_documents(name: str | Path) -> bool:
    """Return whether a dataset has documents."""
    return bool(_load(name).has_docs())


def documents(name: str | Path, wanted: set[str]) -> Iterator[Passage]:
    """Yield the wanted documents that exist and have a text."""
    dataset = _load(name)
    if not dataset.has_docs():
        raise InputError("the dataset has no documents", file=name)
    with _reading(name):
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
            "ir_datasets, which loads datasets by id, is not installed",
            file=name,
            hint=f"Install it: {install_command('datasets')}",
        ) from None
    try:
        return ir_datasets.load(str(name).removeprefix(PREFIX))
    except KeyError:
        raise InputError(
            "unknown dataset of ir_datasets",
            file=name,
            hint="See https://ir-datasets.com for all ids",
        ) from None


@contextmanager
def _reading(name: str | Path) -> Iterator[None]:
    """Map errors of ir_datasets to InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"ir_datasets failed: {reason}", file=name) from None


DATASET = Format(
    "",
    lambda path, _: [DataSet([*dataset_topics(path)], dataset_judgments(path))],
    name="dataset",
    record=DataSet,
    looks="`irds:ID`, topics and judgments of a dataset",
    source="ir_datasets",
)
