"""Detect how exampp was installed and called, to print exact commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_OF_EXTRA = re.compile(r"(?P<needed>[^;]+);.*\bextra\s*==\s*['\"](?P<extra>[\w-]+)['\"]")


def install_command(extra: str) -> str:
    """Return the command that installs an extra from the original source of this package.

    The source is a clone, a wheel, a repository or an index, recorded in direct_url.json (PyPA). If
    it no longer exists, the command names the packages of the extra.
    """
    # slow to import, and rarely needed
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("exampp")
    except PackageNotFoundError:
        return pip_command(f"exampp[{extra}]")
    text = installed.read_text("direct_url.json")
    if text is None:
        return pip_command(f"exampp[{extra}]")
    place = _from_url(json.loads(text), extra)
    return pip_command(*(place or _packages(installed.requires or (), extra)))


def pip_command(*arguments: str) -> str:
    """Return the `pip install` command of the running Python."""
    python = Path(sys.executable)
    pip = shutil.which("pip")
    here = pip is not None and os.path.realpath(Path(pip).parent) == os.path.realpath(python.parent)
    return f"{'pip' if here else f'{typed_path(python)} -m pip'} install {shlex.join(arguments)}"


def typed_path(path: Path) -> str:
    """Return the name of a program if it is on PATH, else its (relative) path."""
    on_path = shutil.which(path.name)
    if path.name == str(path) or (on_path and os.path.realpath(on_path) == os.path.realpath(path)):
        return path.name
    here = Path.cwd()
    absolute = here / path
    if not absolute.is_relative_to(here):
        return shlex.quote(str(absolute))
    below = str(absolute.relative_to(here))
    return shlex.quote(below if os.sep in below else f"./{below}")


def _from_url(origin: Mapping[str, Any], extra: str) -> list[str]:
    """Return pip's arguments for the source; none if it is a missing file or folder."""
    url = str(origin["url"])
    if "vcs_info" in origin:
        how = origin["vcs_info"]
        return [f"exampp[{extra}] @ {how['vcs']}+{url}@{how['commit_id']}"]
    if not url.startswith("file:"):
        return [f"exampp[{extra}] @ {url}"]
    path = Path(unquote(urlsplit(url).path))
    if not path.exists():
        return []
    editable = ["-e"] if origin.get("dir_info", {}).get("editable") else []
    return [*editable, f"{'.' if path == Path.cwd() else path}[{extra}]"]


def _packages(requires: Any, extra: str) -> list[str]:
    matches = (_OF_EXTRA.fullmatch(one) for one in requires)
    return [one["needed"].strip() for one in matches if one and one["extra"] == extra]
