"""The house's order: a package imports only from rows above it, and only one room knows SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import exampp

ROOT = Path(exampp.__file__).parent
ROWS = (
    ("errors",),
    ("installed", "outside", "plugins", "stopping"),
    ("records",),
    ("prompts", "store", "stats", "report"),
    ("formats", "llm"),
    ("inputs", "bank", "grade", "evaluate", "demo"),
    ("analysis", "review"),
    ("grades", "banks", "systems"),
    ("decisions", "graded_file"),
    ("collection",),
    ("opening",),
    ("autojudge", "citations", "measures", "project"),
    ("web",),
    ("cli",),
)
ROW_OF = {package: number for number, row in enumerate(ROWS) for package in row}
LIMIT = 500
"""Lines of a module at most."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def package_of(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("exampp."):
                yield name.split(".")[1]


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_up(module: Path) -> None:
    package = package_of(module)
    if package in ("__init__", "__main__"):
        return
    for other in imported(module):
        if other != package:
            assert ROW_OF[other] < ROW_OF[package], f"{package} imports {other}"


def test_every_package_has_a_row() -> None:
    assert {package_of(module) for module in modules()} - {"__init__", "__main__"} == set(ROW_OF)


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_store_knows_sql(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    if package_of(module) != "store":
        assert ".execute(" not in text
        assert ".executemany(" not in text


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_readable(module: Path) -> None:
    assert module.read_text(encoding="utf-8").count("\n") <= LIMIT


def test_no_two_public_classes_share_a_name() -> None:
    found: dict[str, list[str]] = {}
    for module in modules():
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(module.relative_to(ROOT)))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


@pytest.mark.parametrize("package", ["cli", "web"])
def test_commands_and_pages_open_no_connection(package: str) -> None:
    for module in (ROOT / package).rglob("*.py"):
        text = module.read_text(encoding="utf-8")
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
