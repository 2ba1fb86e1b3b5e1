"""A data set with a Croissant description of its files, for indexes of data sets and loaders.

Croissant 1.0 of MLCommons: JSON-LD in the vocabulary of schema.org, with the checksum of every file
and the fields of those that are tables. Licence and address are for the person who publishes it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from exampp.exports.exam import export_time
from exampp.formats.data_sets import JUDGMENT_COLUMNS, part_of
from exampp.formats.lines import encode_text
from exampp.formats.output import writing
from exampp.items.edits import version_of
from exampp.records.wording import counted
from exampp.store.bank import last_edit, newest_split, states
from exampp.store.inputs import system_counts

_TERMS = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated "
    "replace samplingRate separator source subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _TERMS.split()},
}
"""The usual context of Croissant 1.0; loaders warn about another one."""
_FIELDS = {
    "queries.jsonl": ("_id", "text"),
    "corpus.jsonl": ("_id", "title", "text"),
    "qrels": JUDGMENT_COLUMNS,
    "bank.jsonl": ("query_id",),
}
"""The described fields of each file; items are objects inside a line of the bank."""
_TYPES = {
    ".jsonl": "application/jsonlines",
    ".tsv": "text/tab-separated-values",
    ".run": "text/plain",
    ".md": "text/markdown",
}


def describe_folder(
    connection: sqlite3.Connection, name: str, bank: str, folder: Path, counts: Mapping[str, int]
) -> None:
    """Add croissant.json to a folder of the data set `name`, with these files and records."""
    place = folder / "croissant.json"
    description = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": " ".join(_sentences(connection, bank, counts)),
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "version": f"0.{last_edit(connection, bank)}.0",
        "datePublished": f"{datetime.fromtimestamp(export_time(), UTC):%Y-%m-%d}",
        "distribution": [_file(folder, file) for file in (*counts, "README.md")],
        "recordSet": [_records(file) for file in counts if file.partition("/")[0] in _FIELDS],
    }
    with writing(place) as stream:
        stream.write(encode_text(json.dumps(description, indent=1) + "\n", place))


def _sentences(
    connection: sqlite3.Connection, bank: str, counts: Mapping[str, int]
) -> Iterator[str]:
    yield (
        "An exam for retrieval and RAG systems: "
        f"{counted(counts.get('queries.jsonl', 0), 'query')}, "
        f"{counted(counts.get('bank.jsonl', 0), 'item')} and the results of "
        f"{counted(len(system_counts(connection)), 'system')}."
    )
    if "bank.jsonl" in counts:
        version = version_of(bank, last_edit(connection, bank), states(connection, bank))
        yield f"The hash of the bank is {version.digest}."
    split = newest_split(connection, bank)
    if split is not None:
        sealed = counted(len(split.items), "sealed item")
        yield f"Without {sealed}, whose commitment is {split.commitment}."


def _file(folder: Path, file: str) -> dict[str, Any]:
    place = folder / file
    return {
        "@type": "cr:FileObject",
        "@id": file,
        "name": file,
        "contentUrl": file,
        "contentSize": f"{place.stat().st_size} B",
        "encodingFormat": _TYPES[place.suffix],
        "sha256": sha256(place.read_bytes()).hexdigest(),
    }


def _records(file: str) -> dict[str, Any]:
    config, about = part_of(file)
    name = "qrels" if config == "default" else config
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": about.replace("`", ""),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{field}",
                "name": field,
                "dataType": "sc:Integer" if field == "score" else "sc:Text",
                "source": {"fileObject": {"@id": file}, "extract": {"column": field}},
            }
            for field in _FIELDS[file.partition("/")[0]]
        ],
    }
