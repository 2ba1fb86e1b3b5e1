"""The lock file: what constraints.txt pins and pyproject.toml needs, each with its hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parent.parent
EXTRAS = ("car", "datasets", "diversity", "openai", "pandas", "plots", "polars", "web")


def entries() -> dict[NormalizedName, str]:
    """The text of each locked requirement by its name."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = (line.strip() for line in text.splitlines() if line.strip())
    return {canonicalize_name(re.split(r"[=<>~! ;]", line)[0]): line for line in found}


def pinned(line: str) -> str:
    match = re.match(r"[\w.-]+==([^\s;]+)", line)
    return match[1] if match else ""


def test_every_requirement_is_pinned_with_hashes_and_names_no_place() -> None:
    for name, line in entries().items():
        assert pinned(line), name
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line), name
        assert not re.search("://|@", line), name


def test_the_lock_agrees_with_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines if "==" in line)
    }
    for name, line in entries().items():
        assert pinned(line) == constraints.get(name, pinned(line)), name


def test_the_lock_holds_what_exampp_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = list(project["project"]["dependencies"]) + list(project["build-system"]["requires"])
    for extra in EXTRAS:
        needed += project["project"]["optional-dependencies"][extra]
    locked = entries()
    for requirement in map(Requirement, needed):
        if requirement.name != "exampp":
            line = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pinned(line)), requirement
