"""The files of an import: folders opened, and what each file is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.formats import beir, datasets, responses
from exampp.formats.detect import DetectedKind, detect_kind
from exampp.formats.in_memory import HeldLines, held
from exampp.formats.json_objects import OBJECT
from exampp.formats.lines import OnError, existing_file, plain_name, system_of
from exampp.formats.plain_rows import KINDS as ITEMS
from exampp.formats.plain_rows import MEANINGS
from exampp.formats.registry import ROLES
from exampp.inputs.columns import Renaming
from exampp.inputs.memory import held_rows, parts_of
from exampp.sanitize import check_lists, check_path

_RANKED = ("run", "ranx", "candidates")


class GivenFile(NamedTuple):
    """A file or folder of an import: `kind` (as of `importing.KINDS`) or `role` (one of `ROLES`)
    says what it is, or its files are.

    With `data`, it is no file but rows out of memory, and `path` what messages call them; `system`
    then says what returned them, where they do not.
    """

    path: Path
    kind: str | None = None
    role: str | None = None
    data: object = None
    system: str | None = None


class Known(NamedTuple):
    """A file of an import and what it is; `by_name` as in `detect.Told`.

    `system` names the system of a file that stands in a folder of runs.
    """

    path: Path
    kind: str
    by_name: bool = False
    system: str | None = None


def given_files(
    files: Sequence[str | Path], kind: str | None, by_role: Sequence[Sequence[str | Path]]
) -> list[GivenFile]:
    """Files of a kind, or of one that is to be told, and those of each role in their order."""
    check_lists(**dict(zip(ROLES, by_role, strict=True)))
    given = [GivenFile(check_path(file), kind) for file in files]
    for role, some in zip(ROLES, by_role, strict=True):
        given += [GivenFile(check_path(file), role=role) for file in some]
    return given


def given_data(by_role: Sequence[object]) -> list[GivenFile]:
    """What stands for arguments of rows, one of each role; each part of `runs` is by itself.

    Raises InputError where all are None.
    """
    given = [
        GivenFile(Path(name), _KIND_OF_DATA.get(role), role, part, system)
        for role, data in zip(ROLES, by_role, strict=True)
        if data is not None
        for name, system, part in parts_of(role, data)
    ]
    if not given:
        raise InputError("nothing to add", mend=f"Give one of {', '.join(ROLES)}")
    return given


def own_corpus(files: Sequence[str | Path]) -> str | Path | None:
    """Where files that are data sets or folders of BEIR hold the texts of their passages."""
    of_datasets = filter(datasets.has_documents, filter(datasets.is_dataset, files))
    of_folders = filter(None, (beir.corpus_of(Path(file)) for file in files))
    return next(of_datasets, None) or next(of_folders, None)


_KIND_OF_DATA = {"runs": "run"} | {one: one for one in ("queries", "qrels", "responses")}
"""A bank has several kinds of rows, and so do passages, with or without their query."""


def rows_of(
    files: Iterable[GivenFile], renaming: Renaming, on_error: OnError
) -> Mapping[Path, HeldLines]:
    """What of an import is rows, for `holding`: out of memory, or tables with named columns.

    Raises InputError for what has no rows, and where no table has one of the columns.
    """
    columns = renaming.columns
    found: dict[Path, HeldLines] = {}
    for given in files:
        if given.data is not None:
            found[given.path] = held_rows(
                str(given.path),
                given.role or "",
                given.data,
                on_error,
                given.system,
                renaming if columns else None,
            )
        elif (columns or _may_be_table(given)) and given.path.is_file():
            may_be_bank = (given.kind, given.role) == (None, None)
            rows = renaming.table(given.path, on_error, may_be_bank=may_be_bank)
            if rows is not None:
                found[given.path] = rows
    renaming.check()
    return found


def _may_be_table(given: GivenFile) -> bool:
    """Whether a file, as far as is said, may be a table of queries or passages."""
    if held(given.path) or (given.kind, given.role) not in _OF_TABLES:
        return False
    return bool(given.kind or given.role) or plain_name(given.path).endswith(_TABLES)


_TABLES = (".csv", ".tsv", ".psv", ".tab", ".txt")

_OF_TABLES = {(None, None)} | {
    pair for one in ("queries", "passages", "pool") for pair in ((one, None), (None, one))
}


def tell_all(files: Iterable[GivenFile], *, system: bool) -> Iterator[Known]:
    """What each file is, as is said of it, or as its content tells.

    A folder with a role stands for the files in it. A folder of run files is told from them; each
    then holds what the system returned that it is named after. Where a file may hold responses, a
    `system` that is named means that it does.
    """
    for given in files:
        if rows := held(given.path):
            yield Known(given.path, _kind_of_rows(given, rows), system=given.system)
            continue
        path = check_path(given.path)
        whole = None if given.kind else _whole(path, given.role)
        if whole:
            yield Known(path, whole)
        elif path.is_dir() and (given.role or given.kind or _holds_runs(path)):
            yield from _inside(given._replace(role=given.role or "runs"), system)
        else:
            yield Known(path, *_told(given, system))


def _kind_of_rows(given: GivenFile, rows: HeldLines) -> str:
    if given.kind:
        return given.kind
    names = OBJECT.decode(rows[0][1]).keys()
    # items with the columns of a plain table are rows of one; the workbench's `qid` is an item's
    is_row = names.isdisjoint(_NESTED) and not names >= _WORKBENCH
    is_row = is_row and not {"query_id", "query_text"}.isdisjoint(map(MEANINGS.get, names))
    if is_row and (given.role == "bank" or (given.role is None and not names.isdisjoint(ITEMS))):
        return "plain-bank"
    return detect_kind(given.path, given.role).kind


_NESTED = frozenset({"items", "questions", "nuggets", "nugget_bank", "claim_bank"})
_WORKBENCH = frozenset({"qid", "query_id"})


def _whole(path: Path, role: str | None) -> str | None:
    """The kind of what is taken as a whole, though it is no file."""
    if role is None and datasets.is_dataset(path):
        return "dataset"
    if role is None and beir.is_folder(path):
        return "beir"
    if role == "responses" or (role is None and not _holds_runs(path)):
        return "texts" if responses.is_folder(path) else None
    return None


def _told(given: GivenFile, system: bool) -> DetectedKind:
    if given.kind:
        return DetectedKind(given.kind)
    return detect_kind(existing_file(given.path), given.role, system=system)


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")


def _holds_runs(path: Path) -> bool:
    """Whether the first file of a folder is a run by its content."""
    if not path.is_dir() or not (files := _files(path)):
        return False
    try:
        return detect_kind(files[0]).kind in _RANKED
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
