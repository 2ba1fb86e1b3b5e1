"""The files that prompts are declared in: those that come with exampp, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from exampp.errors import InputError
from exampp.outside import check_path

SUFFIX = ".toml"


@cache
def bundled(folder: str) -> Mapping[str, str]:
    """The text of every declaration in a folder of this package, by its prompt's name, sorted."""
    files = (resources.files(__package__) / folder).iterdir()
    texts = {
        file.name.removesuffix(SUFFIX): file.read_text(encoding="utf-8")
        for file in files
        if file.name.endswith(SUFFIX)
    }
    return MappingProxyType(dict(sorted(texts.items())))


def is_path(name: str) -> bool:
    """Whether a text that is no bundled prompt's name means a file."""
    path = Path(name)
    return path.suffix == SUFFIX or len(path.parts) > 1 or path.exists()


def read(path: str | Path) -> str:
    """The text of a user's file; InputError where it cannot be read."""
    path = Path(path)
    try:
        return check_path(path).read_text(encoding="utf-8-sig")
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
