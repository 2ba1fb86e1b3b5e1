"""Public metadata of the project: citation, image, release workflow, llms.txt."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import exampp

ROOT = Path(__file__).parents[1]


def test_the_citation_is_valid_and_of_this_version() -> None:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0"
    assert found["version"] == exampp.__version__
    assert found["type"] == "software"
    assert found["license"] == "Apache-2.0"
    assert {"message", "title", "authors"} <= found.keys()
    for author in (*found["authors"], *(a for r in found["references"] for a in r["authors"])):
        assert author.keys() in ({"name"}, {"family-names", "given-names"})
    assert all({"type", "title", "authors"} <= one.keys() for one in found["references"])
    cffconvert: Any = pytest.importorskip("cffconvert")
    cffconvert.Citation((ROOT / "CITATION.cff").read_text()).validate()


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_made_of_what_is_there_and_shows_the_demo() -> None:
    found = steps()
    assert {name for name, _ in found} <= {"FROM", "COPY", "RUN", "USER", "WORKDIR", "CMD"}
    assert found[0][0] == "FROM"
    assert re.fullmatch(r"python:3\.\d+-slim", found[0][1])
    copied = [name for kind, rest in found if kind == "COPY" for name in shlex.split(rest)[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    allowed = (ROOT / ".dockerignore").read_text().split()
    assert {f"!{name}" for name in copied} == {one for one in allowed if one.startswith("!")}
    # what building the wheel reads is copied
    project = (ROOT / "pyproject.toml").read_text()
    readme = re.search(r'^readme = "(.*)"', project, re.MULTILINE)
    assert readme is not None
    assert {readme[1], "LICENSE", "constraints.txt"} <= set(copied)
    kinds = [name for name, _ in found]
    assert kinds.index("USER") < kinds.index("CMD") == len(found) - 1
    assert json.loads(found[-1][1]) == ["exampp", "demo"]
    # the command that the README has, on the copied sources
    (install,) = (rest for name, rest in found if name == "RUN" and "pip" in rest)
    assert install == "pip install --no-cache-dir -c /source/constraints.txt /source"
    assert "pip install -c constraints.txt ." in (ROOT / "README.md").read_text()


def test_a_release_is_built_checked_and_approved_by_a_person() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    # YAML 1.1 reads `on` as true
    found = yaml.safe_load(text.replace("\non:", "\n'on':"))
    assert found["permissions"] == {"contents": "read"}
    build, publish = found["jobs"]["build"], found["jobs"]["publish"]
    commands = "\n".join(step.get("run", "") for step in build["steps"])
    for said in ("python -m build", "twine check --strict", "exampp demo"):
        assert said in commands
    assert publish["needs"] == "build"
    assert publish["environment"] == "release"
    assert publish["permissions"] == {"id-token": "write"}
    assert found["on"].keys() == {"release", "workflow_dispatch"}
    assert "secrets." not in text
    assert "://" not in text


def test_llms_txt_names_every_page_once() -> None:
    text = (ROOT / "docs/llms.txt").read_text()
    assert text.startswith("# exampp\n\n> ")
    listed = re.findall(r"^- \[[^\]]+\]\(([\w/-]+\.md)\): \S", text, re.MULTILINE)
    pages = {
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    } - {"index.md"}
    assert sorted(listed) == sorted(pages)
    assert text.count("\n- ") == len(listed)


def test_the_conda_recipe_says_what_the_project_says() -> None:
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert recipe["context"]["version"] == exampp.__version__
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    needed = [one.replace(" ", "") for one in recipe["requirements"]["run"]]
    assert needed[1:] == project["dependencies"]
    assert recipe["about"]["license_file"] == project["license-files"]
    scripts = [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


@pytest.mark.parametrize(
    ("hook", "fits", "others"),
    [
        (
            "exampp-bank",
            ["bank.csv", "data/my-questions.jsonl.gz", "nuggets_v2.tsv"],
            ["bank.exam", "questions.md", "bank/queries.csv"],
        ),
        (
            "exampp-gate",
            ["gate.toml", "ci/gate-nightly.toml"],
            ["pyproject.toml", "investigate.toml"],
        ),
    ],
)
def test_hooks_select_their_files(hook: str, fits: list[str], others: list[str]) -> None:
    hooks = {
        one["id"]: one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    }
    assert hooks[hook]["entry"] == "exampp check"
    assert [name for name in fits + others if re.search(hooks[hook]["files"], name)] == fits


def test_the_page_names_every_input_and_output_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    page = (ROOT / "docs/how-to/ci.md").read_text()
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in page, name
