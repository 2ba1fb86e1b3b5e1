"""A small example collection: six topics, five systems, banks and judgments, to try things on."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def demo_files() -> tuple[Path, ...]:
    """The example's files, ready for `Collection.import_files`."""
    folder = Path(str(resources.files(__package__) / "data"))
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
