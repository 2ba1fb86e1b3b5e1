"""The files of an import: folders opened, and what each file is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import responses
from exampp.formats.detect import Told, tell
from exampp.formats.lines import existing_file, system_of
from exampp.inputs import beir, datasets
from exampp.outside import check_path

_RANKED = ("run", "ranx", "candidates")


class GivenFile(NamedTuple):
    """A file or folder of an import: `kind` (as of `importing.KINDS`) or `role` (one of `ROLES`)
    says what it is, or its files are.
    """

    path: Path
    kind: str | None = None
    role: str | None = None


class Known(NamedTuple):
    """A file of an import and what it is; `by_name` as in `detect.Told`.

    `system` names the system of a file that stands in a folder of runs.
    """

    path: Path
    kind: str
    by_name: bool = False
    system: str | None = None


def tell_all(files: Iterable[GivenFile], *, system: bool) -> Iterator[Known]:
    """What each file is, as is said of it, or as its content tells.

    A folder with a role stands for the files in it. A folder of run files is told from them; each
    then holds what the system returned that it is named after. Where a file may hold responses, a
    `system` that is named means that it does.
    """
    for given in files:
        path = check_path(given.path)
        whole = None if given.kind else _whole(path, given.role)
        if whole:
            yield Known(path, whole)
        elif path.is_dir() and (given.role or given.kind or _holds_runs(path)):
            yield from _inside(given._replace(role=given.role or "runs"), system)
        else:
            yield Known(path, *_told(given, system))


def _whole(path: Path, role: str | None) -> str | None:
    """The kind of what is taken as a whole, though it is no file."""
    if role is None and datasets.is_dataset(path):
        return "dataset"
    if role is None and beir.is_folder(path):
        return "beir"
    if role == "responses" or (role is None and not _holds_runs(path)):
        return "texts" if responses.is_folder(path) else None
    return None


def _told(given: GivenFile, system: bool) -> Told:
    if given.kind:
        return Told(given.kind)
    return tell(existing_file(given.path), given.role, system=system)


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")


def _holds_runs(path: Path) -> bool:
    """Whether the first file of a folder is a run by its content."""
    if not path.is_dir() or not (files := _files(path)):
        return False
    try:
        return tell(files[0]).kind in _RANKED
    except InputError:
        return False


def _inside(given: GivenFile, system: bool) -> Iterator[Known]:
    files = _files(given.path)
    if not files:
        raise InputError("the folder holds no files", file=given.path)
    names: dict[str, Path] = {}
    for file in files:
        told = _told(given._replace(path=file), system)
        if told.kind not in _RANKED:
            yield Known(file, *told)
            continue
        name = system_of(file)
        if (other := names.setdefault(name, file)) != file:
            raise InputError(
                f"two files of the folder are named after one system, {other.name} too",
                file=file,
                mend="Rename one of them",
            )
        yield Known(file, *told, system=name)
