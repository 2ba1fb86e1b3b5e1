"""Detect how exampp was installed and called, for commands in messages."""

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
    """Return the command that adds an extra, from where this exampp was installed.

    That is the folder of a clone, a wheel, a repository or an index, as direct_url.json says (the
    recording of direct URLs of PyPA). Where the place is gone, the packages of the extra are named.
    """
    # slow to load, and needed only where something is missing
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
    """`pip install` for the Python that runs, as it may be typed here."""
    python = Path(sys.executable)
    pip = shutil.which("pip")
    here = pip is not None and os.path.realpath(Path(pip).parent) == os.path.realpath(python.parent)
    return f"{'pip' if here else f'{typed_path(python)} -m pip'} install {shlex.join(arguments)}"


def typed_path(path: Path) -> str:
    """The name alone where the shell finds this file by it, else its path, from here if below."""
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
    """The arguments of pip that name the place; none if it is a file or a folder that is gone."""
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
