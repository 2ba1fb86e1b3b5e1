"""Runs that say what they are: a file for each system, which starts with ir_metadata.

The head is YAML in comments. It says what a collection knows of a run, which is little: who made
it, how and on what machine is for others to add. trec_eval 10 and repro_eval read such files;
ir_measures, pytrec_eval and ranx take the comments for lines of the run and refuse them.

Source: the schema of ir_metadata 0.1 (Breuer, Keller and Schaer, SIGIR 2022), and the
`MetadataHandler` of repro_eval, which reads and changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from exampp.errors import InputError
from exampp.formats import trec
from exampp.formats.format import Format
from exampp.formats.output import new_folder
from exampp.records import RankedPassage

START = "# ir_metadata.start\n"
END = "# ir_metadata.end\n"
_WIDTH = 4096
"""Characters of a line before YAML breaks it: readers know no line that goes on."""


def write(path: Path, rankeds: Iterable[RankedPassage], collection: Mapping[str, str]) -> None:
    """Write a folder that is not there yet, a run a system.

    The lines come system by system. `collection` says where the test collection comes from, by
    the names that the schema has (`topics`, `qrels`); what is not known is left out. InputError
    as in `trec.write_run`, and for a system that no file can be named after.
    """
    with new_folder(path) as made:
        for system, lines in groupby(rankeds, key=lambda one: one.system):
            if "/" in system or system.startswith("."):
                raise InputError(
                    f"no file can be named after the system {system!r}",
                    hint="Name it otherwise: exampp systems COLLECTION rename OLD NEW",
                )
            trec.write_run(made / f"{system}.run", lines, header(system, collection))


def header(tag: str, collection: Mapping[str, str]) -> str:
    """Return the lines of metadata before a run with this tag."""
    known: dict[str, Any] = {"schema-version": 0.1, "run-version": 1.0, "tag": tag}
    if collection:
        known["data"] = {"test collection": dict(collection)}
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return START + "".join(f"# {line}\n" for line in text.splitlines()) + END


FORMAT = Format(
    "",
    name="ir-metadata",
    exports="ir-metadata",
    record=RankedPassage,
    write=lambda path, rankeds: write(path, rankeds, {}),
)
