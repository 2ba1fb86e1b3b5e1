"""Every command and every piece of Python in the documentation runs as written."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import exampp
from exampp.demo import demo_files

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the documentation speaks of, made from the bundled example."""
    folder = tmp_path_factory.mktemp("docs")
    files = {path.name: path for path in demo_files()}
    (folder / "runs").mkdir()
    for name in ("bm25", "dense"):
        shutil.copy(files[f"{name}.run"], folder / "runs")
        shutil.copy(files[f"{name}.run"], folder)
    shutil.copy(files["passages.jsonl"], folder)
    queries = [json.loads(line) for line in files["queries.jsonl"].read_text().splitlines()]
    rows = [f"{query['query_id']}\t{query['text']}\n" for query in queries]
    (folder / "queries.tsv").write_text("".join(rows))
    questions = csv.DictReader(files["questions.tsv"].read_text().splitlines(), delimiter="\t")
    with (folder / "bank.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["query_id", "question"])
        writer.writerows([row["query_id"], row["question"]] for row in questions)
    (folder / "leaderboard.json").write_text(json.dumps({"dense": 1, "bm25": 2}))
    with exampp.Collection.create(folder / "made.exam") as collection:
        collection.import_files(*demo_files())
        collection.grade("draft")
        collection.export(folder / "graded.jsonl.gz")
    return folder


def blocks(page: Path, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(page.read_text()) if found == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands(page: Path, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks(page, "console"):
        for line in block.splitlines():
            assert line.startswith("$ exampp "), f"not a command: {line}"
            command = line.removeprefix("$ ")
            ran = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
            )
            assert ran.returncode == 0, f"{command}\n{ran.stderr}"
            assert shlex.split(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)


def test_every_command_is_documented() -> None:
    import typer

    from exampp.cli.main import app

    text = "".join(page.read_text() for page in PAGES)
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"exampp {name}" in text, f"no page mentions exampp {name}"
        assert command.help


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_changelog_knows_this_version() -> None:
    assert f"## {exampp.__version__} - " in (ROOT / "CHANGELOG.md").read_text()
