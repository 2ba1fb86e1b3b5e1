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
    ("inputs", "items", "measures", "demo"),
    ("grading",),
    ("analysis", "review", "exports"),
    ("grades", "bank", "scorer"),
    ("collection",),
    ("bank_matches", "citations", "project", "service"),
    ("integrations",),
    ("web",),
    ("cli",),
)
ROW_OF = {package: number for number, row in enumerate(ROWS) for package in row}
LIMIT = 920
"""Lines of a module at most."""
IMPORT = re.compile(r"^ *(?:from|import) exampp\.(\w+)", re.M)
CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.M)


FRAGMENT = re.compile(r"_(tables|notes|records|findings|sentences)$")
CORE = (
    "records",
    "store",
    "prompts",
    "formats",
    "graders.base",
    "graders.options",
    "graders.draft",
    "graders.function",
    "graders.scripted",
    "graders.openai",
    "stats",
    "results",
    "inputs",
    "items",
    "grading",
    "measures",
    "exports",
    "analysis.correlation",
    "analysis.agreement",
    "analysis.positions",
    "analysis.significance",
    "analysis.compare",
    "analysis.side_by_side",
    "review",
)
"""Modules of import, grading, evaluation and review, below the public classes."""
ON_TOP = (
    "analysis.attacks",
    "analysis.abstention",
    "analysis.bank_effects",
    "analysis.banks",
    "analysis.calibration",
    "analysis.changes",
    "analysis.citations",
    "analysis.corrected",
    "analysis.gate",
    "analysis.improvement",
    "analysis.items",
    "analysis.item_selection",
    "analysis.item_trials",
    "analysis.omissions",
    "analysis.reliability",
    "analysis.report",
    "analysis.reproduce",
    "analysis.sensitivity",
    "analysis.turns",
    "analysis.verdict",
    "analysis.versions",
    "bank_matches",
    "citations",
    "cli",
    "demo",
    "graders.batches",
    "graders.local",
    "grading.workers",
    "integrations",
    "project",
    "results.page",
    "service",
    "web",
)
"""Packages that the core never imports."""
BY_NAME = ("graders.registry", "grading.plan")
"""They choose an implementation by its name, and load it when it is used."""


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
    """Return all imports of exampp in a module, also in functions and for types."""
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{one.name}" for one in node.names]
            # `from exampp import prompts` takes a module, and nothing of the package's own names
            if not all(map(is_module, names)):
                yield node.module
            yield from names
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def dotted(module: Path) -> str:
    """The name that a module is imported by; `exampp` for the package's own `__init__`."""
    name = ".".join(("exampp", *module.relative_to(ROOT).with_suffix("").parts))
    return name.removesuffix(".__init__")


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def test_no_module_leads_back_to_itself() -> None:
    names = {dotted(module): module for module in modules()}
    TopologicalSorter(
        {name: names.keys() & imported_modules(module) for name, module in names.items()}
    ).prepare()


def within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == f"exampp.{one}" or name.startswith(f"exampp.{one}.") for one in places)


def test_the_core_imports_nothing_on_top_of_it() -> None:
    for module in modules():
        name = dotted(module)
        if within(name, CORE) and not within(name, (*ON_TOP, *BY_NAME)):
            wrong = {one for one in imported_modules(module) if within(one, ON_TOP)}
            assert not wrong, f"{name} imports {', '.join(wrong)}"


def test_the_core_loads_plots_only_to_draw_them() -> None:
    for module in modules():
        name = dotted(module)
        if within(name, CORE) and not within(name, (*ON_TOP, *BY_NAME, "results.plots")):
            # module level: neither in a function nor for types alone
            body = [ast.unparse(one) for one in ast.parse(text_of(module)).body]
            wrong = [one for one in body if one.startswith("from exampp.results.plots")]
            assert not wrong, f"{name}: {', '.join(wrong)}"


def test_no_module_is_a_fragment_of_another() -> None:
    assert [str(m.relative_to(ROOT)) for m in modules() if FRAGMENT.search(m.stem)] == []


def test_each_kind_of_plug_in_has_one_registry() -> None:
    groups = re.findall(r'Registry\(\s*"(exampp\.\w+)"', "\n".join(map(text_of, modules())))
    assert sorted(groups) == [
        "exampp.formats",
        "exampp.graders",
        "exampp.measures",
        "exampp.presets",
        "exampp.prompts",
    ]


SHARED_NAMES = {"read", "write", "read_folder", "read_topics"}
"""Names of the reader and the writer of each format."""


def test_no_public_name_is_defined_twice() -> None:
    """Commands and pages may be called as the functions of the API that they stand for."""
    defined: dict[str, list[str]] = {}
    for module in modules():
        if not within(dotted(module), ("cli", "web.pages")):
            for node in ast.parse(text_of(module)).body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    defined.setdefault(node.name, []).append(dotted(module))
    public = {n: m for n, m in defined.items() if n[0] != "_" and n not in SHARED_NAMES}
    assert {name: homes for name, homes in public.items() if len(homes) > 1} == {}


@pytest.mark.parametrize("package", ["cli", "web"])
def test_commands_and_pages_compute_nothing(package: str) -> None:
    for module in (ROOT / package).rglob("*.py"):
        found = set(re.findall(r"^ *(?:from|import) ([\w.]+)", text_of(module), re.M))
        wrong = {
            one
            for one in found
            if one.partition(".")[0] in ("numpy", "scipy", "statistics") or within(one, ("stats",))
        }
        assert not wrong, f"{module.relative_to(ROOT)} imports {', '.join(wrong)}"


def test_notes_are_selected_by_code() -> None:
    """No note is compared with a text, nor searched for one."""
    for module in modules():
        for node in ast.walk(ast.parse(text_of(module))):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                texts = [
                    one
                    for one in sides
                    if isinstance(one, ast.JoinedStr)
                    or (isinstance(one, ast.Constant) and isinstance(one.value, str))
                ]
                names = [one.id for one in sides if isinstance(one, ast.Name)]
                searched = texts and {"note", "warning", "caution"} & set(names)
                assert not searched, f"{module.relative_to(ROOT)}:{node.lineno}"
            if isinstance(node, ast.Attribute) and node.attr in ("startswith", "endswith"):
                subject = node.value.id if isinstance(node.value, ast.Name) else ""
                where = f"{module.relative_to(ROOT)}:{node.lineno}"
                assert subject not in ("note", "warning", "caution"), where


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
    page = (ROOT.parents[1] / "docs/reference/python.md").read_text(encoding="utf-8")
    told = {line.removeprefix("::: ") for line in page.splitlines() if line.startswith("::: ")}
    homes = {name: exampp._HOMES[name] for name in exampp.__all__ if name != "__version__"}
    assert {name for name, home in homes.items() if not {home, f"{home}.{name}"} & told} == set()
