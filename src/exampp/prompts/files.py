"""The files that prompts are declared in: those that come with exampp, and a user's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from exampp.errors import InputError
from exampp.plugins import Registry
from exampp.records.toml import parse_toml
from exampp.sanitize import check_path

SUFFIX = ".toml"


def _text_of(name: str, declared: object) -> str:
    """The declaration of a package's prompt: a text, or a file that has `read_text`."""
    text = declared if isinstance(declared, str) else None
    if isinstance(declared, Path | Traversable):
        text = declared.read_text(encoding="utf-8")
    if text is None:
        raise InputError(
            f"{declared!r} declares no prompt",
            mend="Name a text in TOML, or a file of one, in the entry point",
        )
    if (own := parse_toml(text, f"{name}{SUFFIX}").get("name")) != name:
        raise InputError(
            f"it calls itself {own!r}", field="name", mend=f"Give both the name {name!r}"
        )
    return text


@cache
def bundled_texts(folder: str) -> Mapping[str, str]:
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
    return path.suffix == SUFFIX or len(path.parts) > 1 or os.path.exists(name)  # noqa: PTH110


def is_there(name: str) -> bool:
    """Whether a text that is no bundled prompt's name means a file, or a prompt of a package."""
    return is_path(name) or (name not in PROMPTS.built_in and name in PROMPTS)


def read_declaration(path: str | Path) -> str:
    """The text of a prompt by its name, or of a user's file; InputError if it cannot be read."""
    if isinstance(path, str) and not is_path(path) and (known := PROMPTS.get(path)) is not None:
        return known
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


PROMPTS = Registry(
    "exampp.prompts",
    "prompt",
    {**bundled_texts("catalogue"), **bundled_texts("generation")},
    _text_of,
)
"""The declaration of every prompt that has a name: those of this package, and of others."""
