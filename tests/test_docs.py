"""Every command and every piece of Python in the documentation runs as it is pasted.

`pytest -n 0 tests/test_docs.py --write-docs` writes the real outputs into pages and notebooks.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from support import servers, tiny_models
from support.documentation import (
    LEFT_OUT,
    Block,
    Shell,
    Step,
    blocks,
    matches,
    renewed,
    run_cell,
    steps,
)

import exampp

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
MODELS = ("google/flan-t5-large", "sjrhuschlee/flan-t5-large-squad2")
"""Names of the hub under which tiny models stand in its cache."""
COMMIT = "0" * 40

pytest_plugins = ("support.tiny_models",)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An OpenAI-compatible server on this machine, its address."""
    with servers.FaultServer() as started:
        yield started.url


@pytest.fixture(scope="module")
def hub(built: tiny_models.Build, t5_taught: Path, t5_reader: Path) -> Path:
    """A cache of the hub that has a tiny model under each of MODELS."""

    def fill(folder: Path) -> None:
        for name, model in zip(MODELS, (t5_taught, t5_reader), strict=True):
            cached = folder / f"models--{name.replace('/', '--')}"
            shutil.copytree(model, cached / "snapshots" / COMMIT)
            (cached / "refs").mkdir()
            (cached / "refs" / "main").write_text(COMMIT)

    return built("hub", fill)


@pytest.fixture
def folder(
    tour: Path, tmp_path: Path, server: str, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Go to a fresh copy of the folder that `exampp demo --files tour` writes.

    The environment names a server and a cache of models on this machine.
    """
    copy = Path(shutil.copytree(tour, tmp_path / "tour"))
    monkeypatch.chdir(copy)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")  # of any terminal that the tests run in
    monkeypatch.setenv("OPENAI_BASE_URL", server)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    # the tests may run in a workflow
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    # the plug-in may be installed, or not
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "-p no:exampp -p exampp.integrations.pytest_plugin -p no:cacheprovider"
    )
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server)
    # HF_HUB_CACHE and HF_HUB_OFFLINE, which the library reads when it is imported
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    # progress every ten seconds, on a slow machine
    monkeypatch.setattr("exampp.cli.output._PROGRESS_SECONDS", float("inf"))
    return copy


@pytest.mark.parametrize("page", PAGES, ids=named)
@pytest.mark.usefixtures("folder")
def test_page(page: Path, request: pytest.FixtureRequest) -> None:
    run_page(page, write=request.config.getoption("--write-docs"))


def run_page(page: Path, *, write: bool = False) -> Shell:
    """Run the blocks of a page in the working folder, and compare or write their outputs."""
    shell = Shell()
    try:
        run_blocks(page, shell, write=write)
    finally:
        shell.stop()
    return shell


def run_blocks(page: Path, shell: Shell, *, write: bool) -> None:
    text = page.read_text(encoding="utf-8")
    names, wrong = dict[str, object](), list[str]()
    parts, at = list[str](), 0
    for block in blocks(text):
        console = block.language == "console"
        new = run_console(block, shell, wrong) if console else run_python(block, names, wrong)
        if block.compared and new is not None:
            parts += [text[at : block.span[0]], new]
            at = block.span[1]
    for left_open in names.values():
        if isinstance(left_open, exampp.Collection):
            left_open.close()
    if write:
        page.write_text("".join([*parts, text[at:]]), encoding="utf-8")
    assert write or not wrong, "\n\n".join([page.name, *wrong])


def run_console(block: Block, shell: Shell, wrong: list[str]) -> str:
    """Run a console block; return it with the real outputs."""
    lines = []
    commands = steps(block.text)
    for step, following in zip(commands, [*commands[1:], Step("", [])], strict=True):
        real = shell.run(step.line)
        if step.shown and block.compared:
            step.shown = compared(step.shown, real, f"$ {step.command}", wrong)
        # a command that fails shows its error or its exit code
        failure_shown = following.line == "echo $?" or any(
            line.startswith("exampp: ") for line in step.shown
        )
        assert shell.code == 0 or failure_shown, "\n".join([f"$ {step.command}", *real])
        lines += [f"$ {step.command}\n", *(f"{line}\n" for line in step.shown)]
    return "".join(lines)


def run_python(block: Block, names: dict[str, object], wrong: list[str]) -> str | None:
    """Run a Python block; return the output that is shown after it, as it really is."""
    printed, value = run_cell(block.text, names)
    if block.output is None:
        return None
    real = [*printed.splitlines(), *([] if value is None else repr(value).splitlines())]
    shown = compared(block.output.splitlines(), real, block.text, wrong)
    return "".join(f"{line}\n" for line in shown)


def compared(shown: list[str], real: list[str], code: str, wrong: list[str]) -> list[str]:
    """Return what is to be shown of the real output; add to `wrong` if it is not what is shown."""
    if matches(shown, real):
        return shown
    new = renewed(shown, real)
    difference = unified_diff(shown, new, "shown", "real", n=1, lineterm="")
    wrong.append("\n".join([code, *difference, "If the real output is right: --write-docs"]))
    return new


@pytest.mark.parametrize(
    ("shown", "fits"),
    [
        ("a|b|c", True),
        ("a|b", False),
        ("a|...|c", True),
        ("a|...|b", False),
        ("...|c", True),
        ("a|...", True),
        ("...|b|...", True),
        ("...|c|...|a", False),
        ("a|...|a|...|c", False),
        ("a|b|...|b|c", False),
        ("...", True),
    ],
)
def test_output_is_compared_line_by_line(shown: str, fits: bool) -> None:
    assert matches(shown.split("|"), ["a", "b ", "c"]) == fits


def test_written_output_keeps_what_is_left_out() -> None:
    assert renewed(["x", LEFT_OUT, "y", "z"], list("abcde")) == ["a", LEFT_OUT, "d", "e"]
    assert renewed(["x"], list("abc")) == list("abc")
    assert renewed(["x", LEFT_OUT, "y"], list("ab")) == list("ab")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_notebook(path: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    """It has the outputs of a run from top to bottom."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    outputs = [outputs_of("".join(cell["source"]), names, n) for n, cell in enumerate(cells, 1)]
    if request.config.getoption("--write-docs"):
        for number, (cell, output) in enumerate(zip(cells, outputs, strict=True), 1):
            cell |= {"outputs": output, "execution_count": number}
        written = json.dumps(notebook, ensure_ascii=False, indent=1)
        path.write_text(f"{written}\n", encoding="utf-8")
    assert [cell["outputs"] for cell in cells] == outputs


def outputs_of(source: str, names: dict[str, object], number: int) -> list[dict[str, Any]]:
    """Run a cell; return its outputs as a notebook stores them."""
    printed, value = run_cell(source, names)
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines_of(printed)})
    if value is not None:
        data = {"text/plain": lines_of(repr(value))}
        if html := getattr(value, "_repr_html_", None):
            data["text/html"] = lines_of(html())
        outputs.append(
            {
                "output_type": "execute_result",
                "execution_count": number,
                "data": data,
                "metadata": {},
            }
        )
    return outputs


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


SECTIONS = {
    "EXAM++": "1 2.1 2.2 3 4 4.1.1 4.1.2 4.2 4.2.1 4.2.2 4.3.1 4.3.2 5.1 5.2 5.3 5.4 5.5 5.6 A",
    "Autograding Workbench": "1 2.1 2.2 2.3 2.4 2.5 3 3.1 3.2 3.3 3.4 3.5 4 4.1 4.2 4.3 4.4 4.5 5"
    " 6",
    "FLAN-T5-EXAM": "1 2.1 2.2 2.4 2.5 3 3.1.1 3.1.2 3.1.3 3.2.1 3.2.2 3.2.3 3.3.1 3.3.2 4.1 4.2"
    " 4.3 4.4 4.5",
}
"""The sections of the papers that describe what a program does."""


def paper_rows() -> Iterator[tuple[str, str, str, str]]:
    """(paper, section, what the paper does, what stands for it here) of docs/appendix/papers.md."""
    paper = ""
    for line in (ROOT / "docs" / "appendix" / "papers.md").read_text().splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        elif paper in SECTIONS and line.startswith("| ") and not line.startswith("| section"):
            section, does, here = line.strip("| ").split(" | ")
            yield paper, section, does, here


def test_every_section_of_the_papers_has_a_row() -> None:
    rows = list(paper_rows())
    for paper, sections in SECTIONS.items():
        told = {section.split(",")[0] for of, section, _, _ in rows if of == paper}
        assert told == set(sections.split())
    for *_, here in rows:
        # a command, a place where there is one, or the reason why not
        assert re.search(r"`exampp|EXAM\+\+, \d|the same|not included: |\]\(", here), here


def test_every_departure_has_its_reason() -> None:
    text = (ROOT / "docs" / "reference" / "definitions.md").read_text()
    rows = text.partition("## Where we differ")[2].partition("\n## ")[0].splitlines()
    told = [row.strip("|").split("|") for row in rows if row.startswith("| ")]
    assert len(told) > 30
    for what, ours, _, why in told:
        assert what.strip(), what
        assert ours.strip(), what
        assert why.strip(), what


@pytest.mark.usefixtures("folder")
def test_the_commands_of_the_papers_page() -> None:
    """From top to bottom, after the blocks of the page."""
    shell = run_page(ROOT / "docs" / "appendix" / "papers.md")
    wrong = []
    for paper, section, _, here in paper_rows():
        for command in re.findall(r"`(exampp [^`]+)`", here):
            if command != "exampp serve":
                printed = shell.run(command)
                # the small model of the test writes no ratings
                unread = any("all cells failed" in line for line in printed)
                if shell.code and not unread:
                    wrong.append("\n".join([f"{paper} {section}: {command}", *printed]))
    assert not wrong, "\n".join(wrong)


def test_every_command_is_documented() -> None:
    from exampp.cli.main import app

    text = "".join(page.read_text() for page in PAGES)
    for name, command in app.commands.items():
        assert f"exampp {name}" in text, f"no page mentions exampp {name}"
        assert command.help


def test_quoted_messages_exist() -> None:
    trees = [ast.parse(path.read_text()) for path in Path(exampp.__file__).parent.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    texts = {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    }
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text()
    quoted = re.findall(r'^\| "([^"]+)" \|', page, re.MULTILINE)
    assert len(quoted) > 15
    assert [one for one in quoted if not any(one in text for text in texts)] == []


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_changelog_knows_this_version() -> None:
    assert f"## {exampp.__version__} - " in (ROOT / "CHANGELOG.md").read_text()
