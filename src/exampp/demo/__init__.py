"""A small example: the files of the folder in which every command of the documentation runs."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from exampp.errors import InputError
from exampp.formats.output import writing

_TOUR = Path(str(resources.files(__package__))) / "tour"
_IMPORTED = (
    "queries.tsv",
    "passages.jsonl",
    "questions.tsv",
    "nuggets.tsv",
    "judgments.qrels",
    "answers.jsonl",
    "runs/*.run",
)


def demo_files() -> tuple[Path, ...]:
    """Return the files that make the example collection, for `Collection.import_files`."""
    return tuple(path for name in _IMPORTED for path in sorted(_TOUR.glob(name)))


def write_tour(folder: Path) -> None:
    """Write the files that the documentation uses into a folder, which is created if needed.

    Raises:
        InputError: One of them already exists; nothing is written then.
    """
    sources = {
        folder / path.relative_to(_TOUR): path for path in _TOUR.rglob("*") if path.is_file()
    }
    for path in sources:
        if path.exists():
            raise InputError("already exists", file=path, hint="Choose another folder")
    with ExitStack() as undo:
        for path, source in sources.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with writing(path) as stream:
                stream.write(source.read_bytes())
            undo.callback(path.unlink, missing_ok=True)
        undo.pop_all()
