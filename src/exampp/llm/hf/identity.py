"""Who a local model is: what of it goes into the settings of a grader, and what it is called."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from exampp.records.grading import CONTENT

_CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors", ".bin")
_NOT_CONTENT = ("training.json", "trainer_state.json", "README.md")

LARGE = 1_000_000
"""Bytes from which on the hash of a file is remembered; smaller files are always read."""
SETTLED_SECONDS = 2.0
"""A file that was changed more recently could change again within one tick of its clock."""


def folder_hash(folder: Path) -> str:
    """SHA-256 (hexadecimal) over the names and contents of a model folder's files.

    All of the weights, the tokenizer and the configuration count: two fine-tuned models of one
    family differ in nothing else, not even in the sizes of their files. Large files are read once
    (about a second for 1.5 GB) and then known by their place, size and times of change.
    """
    whole = hashlib.sha256()
    known = _remembered()
    found = dict(known)
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in _CONTENT and file.name not in _NOT_CONTENT:
            whole.update(f"{file.name}\0{_file_hash(file, found)}\n".encode())
    if found != known:
        _remember(found)
    return whole.hexdigest()


def _file_hash(file: Path, known: dict[str, list[Any]]) -> str:
    """The hash of a file, from those known or added to them."""
    place, now = str(file.resolve()), file.stat()
    # the time of the last change of any kind cannot be set back, as that of writing can
    stamp = [now.st_size, now.st_mtime_ns, now.st_ctime_ns]
    if known.get(place, [])[:-1] == stamp:
        return str(known[place][-1])
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    settled = time.time() - now.st_ctime_ns / 1e9 > SETTLED_SECONDS
    if now.st_size >= LARGE and settled:
        known[place] = [*stamp, digest]
    return digest


def _notes() -> Path:
    """Where hashes are remembered; the file may be removed at any time."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "exampp" / "sha256.json"


def _remembered() -> dict[str, list[Any]]:
    """Size, times of change and hash of files, by place; none where they cannot be read."""
    with suppress(OSError, ValueError, RuntimeError):
        found = json.loads(_notes().read_bytes())
        if isinstance(found, dict):
            return {place: one for place, one in found.items() if _is_note(one)}
    return {}


def _is_note(one: object) -> bool:
    return isinstance(one, list) and len(one) == 4 and isinstance(one[-1], str)


def _remember(found: Mapping[str, list[Any]]) -> None:
    """Write the notes whole or not at all; without them everything is only slower."""
    with suppress(OSError, RuntimeError):
        notes = _notes()
        notes.parent.mkdir(parents=True, exist_ok=True)
        there = {place: one for place, one in found.items() if Path(place).is_file()}
        with tempfile.NamedTemporaryFile("w", dir=notes.parent, delete=False) as stream:
            json.dump(there, stream)
        Path(stream.name).replace(notes)


def model_name(model: str) -> str:
    """What a model is called: a folder by its own name, one of the hub by its name there.

    A folder in the cache of the hub has the name of a commit; it is called as the model is. What
    its config says (`_name_or_path`) is not asked: of a fine-tuned model that is its base.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return model
    folder = folder.resolve()
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):
        return folder.parents[1].name.removeprefix("models--").replace("--", "/")
    return folder.name or str(folder)


def model_identity(model: str, revision: str | None, config: Any) -> Mapping[str, Any]:
    """What pins a model: the content of a folder, wherever it lies and whatever it is called.

    A model of the Hugging Face hub is known by its name and its commit, or by the revision asked
    for where the commit is not known.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return {CONTENT: folder_hash(folder)}
    commit = getattr(config, "_commit_hash", None)
    return {"model": model, "revision": commit or revision or "main"}
