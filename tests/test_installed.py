"""Install commands in errors fit the installation and the Python that runs."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

from exampp.installed import install_command, typed_path


class Recorded:
    """Record of an installation."""

    requires = (
        "numpy>=2",
        'jinja2>=3; extra == "plots"',
        "vl; extra == 'plots'",
        "x; extra == 'hf'",
    )

    def __init__(self, direct_url: object) -> None:
        self.direct_url = direct_url

    def read_text(self, _: str) -> str | None:
        return json.dumps(self.direct_url) if self.direct_url else None


@pytest.mark.parametrize(
    ("direct_url", "arguments"),
    [
        (None, "'exampp[plots]'"),
        ({"url": "file://HERE", "dir_info": {"editable": True}}, "-e '.[plots]'"),
        ({"url": "file://HERE", "dir_info": {}}, "'.[plots]'"),
        ({"url": "file://HERE/a%20clone", "dir_info": {}}, "'HERE/a clone[plots]'"),
        ({"url": "file://HERE/x.whl", "archive_info": {}}, "'HERE/x.whl[plots]'"),
        ({"url": "file://HERE/gone.whl", "archive_info": {}}, "'jinja2>=3' vl"),
        (
            {"url": "https://e.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "ab"}},
            "'exampp[plots] @ git+https://e.org/x.git@ab'",
        ),
    ],
)
def test_the_command_names_where_it_was_installed_from(
    direct_url: object, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a clone").mkdir()
    (tmp_path / "x.whl").touch()
    here = json.loads(json.dumps(direct_url).replace("HERE", str(tmp_path)))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Recorded(here))
    monkeypatch.setattr("shutil.which", lambda name: f"{Path(sys.executable).parent}/{name}")
    monkeypatch.chdir(tmp_path)
    assert install_command("plots") == f"pip install {arguments}".replace("HERE", str(tmp_path))


def test_another_pip_than_that_of_this_python_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: "/elsewhere/bin/pip")
    assert install_command("plots").startswith(f"{sys.executable} -m pip install ")


def test_a_program_is_called_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "a venv" / "exampp"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert typed_path(program) == "'a venv/exampp'"
    monkeypatch.chdir("a venv")
    assert typed_path(program) == "./exampp"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert typed_path(program) == f"'{program}'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed_path(program) == "exampp"
