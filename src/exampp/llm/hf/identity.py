"""Who a local model is: what of it goes into the settings of a grader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors", ".bin")
_NOT_CONTENT = ("training.json", "trainer_state.json", "README.md")


def folder_hash(folder: Path) -> str:
    """SHA-256 (hexadecimal) over the names and contents of a model folder's files.

    All of the weights count: two fine-tuned models of one family differ in nothing else, not even
    in the sizes of their files. Takes about a second for 1.5 GB.
    """
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in _CONTENT and file.name not in _NOT_CONTENT:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            whole.update(f"{file.name}\0{digest}\n".encode())
    return whole.hexdigest()


def model_identity(model: str, revision: str | None, config: Any) -> Mapping[str, Any]:
    """The name of a model and what pins its content.

    A folder is known by its own name and `folder_hash`, so that it may be moved; a model of the
    Hugging Face hub by its commit, or by the revision asked for where the commit is not known.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return {"model": folder.resolve().name, "sha256": folder_hash(folder)}
    commit = getattr(config, "_commit_hash", None)
    return {"model": model, "revision": commit or revision or "main"}
