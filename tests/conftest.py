"""Fixtures that several test folders share."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project; the test is skipped where there is none."""
    for folder in Path(__file__).resolve().parents:
        found = folder.parent / "shared" / "data"
        if (found / "dl19").is_dir():
            return found
    pytest.skip("no real data beside the project (../shared/data)")


@pytest.fixture
def exampp_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The command line, run in this process."""
    return Commands(capsys, monkeypatch)
