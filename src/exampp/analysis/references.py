"""The papers behind what a report used, as BibTeX: `references.bib` beside this module.

Fields that are not known for certain are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

_FILE = files("exampp.analysis").joinpath("references.bib").read_text(encoding="utf-8")
_ENTRY = re.compile(r"@\w+\{(\w+),\n.*?\n\}\n", re.DOTALL)

REFERENCES: Mapping[str, str] = {entry[1]: entry[0] for entry in _ENTRY.finditer(_FILE)}
"""What can be cited: the entries by their keys."""


def bibtex(keys: Iterable[str]) -> str:
    """The entries of some keys, each once, in the order of `REFERENCES`."""
    wanted = set(keys)
    unknown = wanted - set(REFERENCES)
    if unknown:
        raise ValueError(f"there are no references {sorted(unknown)}")
    return "\n".join(entry for key, entry in REFERENCES.items() if key in wanted)
