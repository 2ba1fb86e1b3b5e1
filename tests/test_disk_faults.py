"""A short run of the campaign of disk faults, and of faults that it does not make."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "benchmarks" / "campaigns" / "disk_faults.py"


@pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler"
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the library is for Linux")
def test_no_failed_system_call_loses_rows_or_reports_success() -> None:
    commands = ("first import", "python")
    ran = subprocess.run(
        [sys.executable, CAMPAIGN, "--count", "12", "--seed", "7", "--only", *commands],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # every command was tried, and its faults were reached
    assert "system calls              12        12" in ran.stdout, ran.stdout
