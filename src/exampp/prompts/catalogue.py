"""The prompts that come with exampp, and those of a user's own file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exampp.errors import InputError
from exampp.outside import check_path
from exampp.prompts.declaration import Prompt, content_hash, parse, suggest

_FOLDER = "catalogue"
_SUFFIX = ".toml"


@cache
def _bundled() -> Mapping[str, Prompt]:
    folder = resources.files(__package__) / _FOLDER
    files = sorted((f for f in folder.iterdir() if f.name.endswith(_SUFFIX)), key=lambda f: f.name)
    prompts = [parse(file.read_text(encoding="utf-8"), file.name) for file in files]
    return MappingProxyType({prompt.name: prompt for prompt in prompts})


@cache
def _by_class() -> Mapping[str, str]:
    return MappingProxyType(
        {
            table["prompt_class"]: prompt.name
            for prompt in _bundled().values()
            for table in (prompt.workbench, prompt.workbench.get("verified", {}))
            if "prompt_class" in table
        }
    )


def names() -> tuple[str, ...]:
    """Names of the bundled prompts, sorted."""
    return tuple(sorted(_bundled()))


def load(name_or_path: str | Path) -> Prompt:
    """A bundled prompt by its name, or a prompt from a TOML file by its path.

    Raises InputError for a name that is not known, a file that cannot be read, a declaration
    that is not as it must be, and a file that gives the name of a bundled prompt to another text.
    """
    name = os.fspath(name_or_path)
    if name in _bundled():
        return _bundled()[name]
    path = Path(name)
    if not (path.suffix == _SUFFIX or len(path.parts) > 1 or path.exists()):
        near = _by_class().get(name)
        raise InputError(
            f"there is no prompt called '{name}'",
            mend=(f"did you mean '{near}'?" if near else suggest(name, names()))
            or f"give a name ({', '.join(names())}) or the path of a {_SUFFIX} file",
        )
    return _from_file(path)


def _from_file(path: Path) -> Prompt:
    try:
        text = check_path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            "the prompt file is not UTF-8", file=path, mend="save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(
            f"the prompt file cannot be read: {error.strerror}",
            file=path,
            mend="check the path, or give the name of a bundled prompt (exampp prompts list)",
        ) from None
    prompt = parse(text, path)
    twin = _bundled().get(prompt.name)
    if twin is not None and content_hash(twin) != content_hash(prompt):
        raise InputError(
            f"'{prompt.name}' is the name of a bundled prompt with another text",
            file=path,
            field="name",
            mend="give your prompt a name of its own, so that its grades are not taken for others",
        )
    return prompt


def by_workbench_class(prompt_class: str) -> str | None:
    """Name of the bundled prompt that the reference calls `prompt_class`; None if it has none.

    Source: Autograding Workbench, Table 2 and section 3.4 (prompt classes), and its program.
    """
    return _by_class().get(prompt_class)


def workbench_info(name: str, *, verified: bool = False, sent: str | None = None) -> dict[str, Any]:
    """What the reference's `prompt_info` says of a bundled prompt; empty for any other.

    Without `prompt_class` where the reference has no class of this wording. `verified` tells that
    known answers were compared with the replies, `sent` is the hash of what was sent where it is
    known: of another text nothing is said.
    """
    prompt = _bundled().get(name)
    if prompt is None or sent not in (None, content_hash(prompt)):
        return {}
    info = dict(prompt.workbench)
    of_verified = info.pop("verified", {"check_answer_key": True})
    return info | of_verified if verified else info
