"""The house's order: a package imports only from rows above it, and only one room knows SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import exampp

ROOT = Path(exampp.__file__).parent
ROWS = (
    ("errors", "version"),
    ("installed", "sanitize", "plugins", "stopping"),
    ("records",),
    ("prompts", "store", "stats", "results"),
    ("formats", "graders"),
    ("inputs", "items", "grading", "measures", "demo"),
    ("analysis", "review"),
    ("grades", "bank"),
    ("collection",),
    ("citations", "project"),
    ("integrations",),
    ("web",),
    ("cli",),
)
ROW_OF = {package: number for number, row in enumerate(ROWS) for package in row}
LIMIT = 1120
"""Lines of a module at most."""
IMPORT = re.compile(r"^ *(?:from|import) exampp\.(\w+)", re.M)
CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.M)


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@cache
def text_of(module: Path) -> str:
    return module.read_text(encoding="utf-8")


def package_of(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(module: Path) -> set[str]:
    return set(IMPORT.findall(text_of(module)))


def test_imports_go_up() -> None:
    for module in modules():
        package = package_of(module)
        if package not in ("__init__", "__main__"):
            below = {one for one in imported(module) if one != package}
            wrong = {one for one in below if ROW_OF[one] >= ROW_OF[package]}
            assert not wrong, f"{module.relative_to(ROOT)} imports {', '.join(wrong)}"


def imported_modules(module: Path) -> Iterator[str]:
    """What a module imports of exampp, wherever: in a function and for types alone, too."""
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def test_no_module_leads_back_to_itself() -> None:
    names = {
        ".".join(("exampp", *module.relative_to(ROOT).with_suffix("").parts)): module
        for module in modules()
    }
    TopologicalSorter(
        {name: names.keys() & imported_modules(module) for name, module in names.items()}
    ).prepare()


def test_every_package_has_a_row() -> None:
    assert {package_of(module) for module in modules()} - {"__init__", "__main__"} == set(ROW_OF)


def test_only_the_store_knows_sql() -> None:
    for module in modules():
        if package_of(module) != "store":
            text = text_of(module)
            asks = [call for call in (".execute(", ".executemany(") if call in text]
            assert not asks, f"{module.relative_to(ROOT)} has {asks[0]}"


def test_modules_stay_readable() -> None:
    long = {m: text_of(m).count("\n") for m in modules()}
    assert {str(m.relative_to(ROOT)): n for m, n in long.items() if n > LIMIT} == {}


def test_no_two_public_classes_share_a_name() -> None:
    found: dict[str, list[str]] = {}
    for module in modules():
        for name in CLASS.findall(text_of(module)):
            found.setdefault(name, []).append(str(module.relative_to(ROOT)))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


@pytest.mark.parametrize("package", ["cli", "web"])
def test_commands_and_pages_open_no_connection(package: str) -> None:
    for module in (ROOT / package).rglob("*.py"):
        text = text_of(module)
        assert "_connection" not in text
        assert "import connect\n" not in text
        assert "import connect," not in text


def test_public_names_resolve() -> None:
    assert exampp.__all__ == sorted(exampp.__all__, key=str)
    for name in exampp.__all__:
        assert getattr(exampp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = exampp.nothing


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT.parents[1] / "docs/reference.md").read_text(encoding="utf-8")
    told = {line.removeprefix("::: ") for line in page.splitlines() if line.startswith("::: ")}
    homes = {name: exampp._HOMES[name] for name in exampp.__all__ if name != "__version__"}
    assert {name for name, home in homes.items() if not {home, f"{home}.{name}"} & told} == set()
