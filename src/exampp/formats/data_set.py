"""An exam as a data set: the folder that BEIR lays out, with the bank, runs, and a card.

The card is the README.md of a data set on the Hugging Face hub: its head names the files of each
configuration, so that `datasets` loads them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import bank as workbench_bank
from exampp.formats import runs
from exampp.formats.lines import encode_json
from exampp.formats.output import new_folder, writing
from exampp.records import BankEntry, Judgment, Passage, Query, RankedPassage
from exampp.version import __version__

_HEAD = ("query-id", "corpus-id", "score")


class _Part(NamedTuple):
    config: str
    file: str
    what: str


_PARTS = (
    _Part("queries", "queries.jsonl", "queries: `_id`, `text`"),
    _Part("corpus", "corpus.jsonl", "passages: `_id`, `title`, `text`"),
    _Part("default", "qrels/test.tsv", "judgments: `query-id`, `corpus-id`, `score`"),
    _Part("bank", "bank.jsonl", "the exam: a query a line, with its `items`"),
    _Part("", "systems.run", "what systems returned, in the format of trec_eval"),
)


def write(
    path: Path,
    queries: Iterable[Query],
    passages: Iterable[Passage],
    judgments: Iterable[Judgment],
    entries: Sequence[BankEntry],
    ranked: Iterable[RankedPassage],
) -> int:
    """Write a folder that is not there yet, in one step; returns how many records it holds.

    Raises InputError where it is there, and for text that UTF-8 cannot hold. Kinds of which there
    is nothing have no file. Passages without a text are left out.
    """
    with new_folder(path) as made:
        (made / "qrels").mkdir()
        counts = {
            "queries.jsonl": _lines(made, "queries.jsonl", map(_query, queries)),
            "corpus.jsonl": _lines(
                made, "corpus.jsonl", (_document(one) for one in passages if one.text)
            ),
            "qrels/test.tsv": _judgments(made / "qrels" / "test.tsv", judgments),
            "bank.jsonl": sum(len(entry.items) for entry in entries),
        }
        if entries:
            workbench_bank.write(made / "bank.jsonl", list(entries))
        listed = list(ranked)
        counts["systems.run"] = len(listed)
        if listed:
            runs.write(made / "systems.run", listed)
        for name, count in counts.items():
            if not count:
                (made / name).unlink(missing_ok=True)
        card = _card(path.name, counts)
        with writing(made / "README.md") as stream:
            stream.write(card.encode())
    return sum(counts.values())


def _lines(folder: Path, name: str, rows: Iterable[dict[str, object]]) -> int:
    count = 0
    with writing(folder / name) as stream:
        for row in rows:
            stream.write(encode_json(row, folder / name))
            count += 1
    return count


def _query(query: Query) -> dict[str, object]:
    return {"_id": query.query_id, "text": query.text}


def _document(passage: Passage) -> dict[str, object]:
    return {"_id": passage.passage_id, "title": passage.title, "text": passage.text}


def _judgments(path: Path, judgments: Iterable[Judgment]) -> int:
    count = 0
    with writing(path) as stream:
        stream.write("\t".join(_HEAD).encode() + b"\n")
        for one in judgments:
            cells = (one.query_id, one.passage_id)
            if any("\t" in cell or "\n" in cell for cell in cells):
                what = f"an id with a tab or a line break cannot stand in a table: {cells}"
                raise InputError(what, file=path)
            stream.write("\t".join((*cells, str(one.relevance))).encode() + b"\n")
            count += 1
    return count


def _card(name: str, counts: dict[str, int]) -> str:
    """The card: YAML that the hub reads, then what is in the files."""
    parts = [part for part in _PARTS if counts[part.file]]
    configs = [
        f"- config_name: {part.config}\n  data_files:\n  - split: test\n    path: {part.file}\n"
        for part in parts
        if part.config
    ]
    rows = [f"| `{part.file}` | {counts[part.file]:,} | {part.what} |\n" for part in parts]
    return (
        "---\n"
        f"pretty_name: {name!r}\n"
        "tags:\n- information-retrieval\n- evaluation\n- rag\n"
        f"configs:\n{''.join(configs)}"
        "---\n\n"
        f"# {name}\n\n"
        "An exam for systems that retrieve and generate: what a good answer to each query has to "
        "cover, the passages, people's judgments, and what systems returned.\n\n"
        f"| file | records | what |\n|---|---|---|\n{''.join(rows)}\n"
        f"Written by exampp {__version__}. Licence, origin of the texts, and who made the "
        "exam: to be said by whoever publishes it.\n\n"
        "```console\n$ exampp import my.exam . --bank bank.jsonl --runs systems.run\n```\n"
    )
