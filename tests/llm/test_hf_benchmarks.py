"""The benchmarks of local models run, with tiny ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script: str, *options: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), "--model-size", "tiny", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_score_vs_generate() -> None:
    out = run("hf_score_vs_generate.py", "--cells", "6", "--rounds", "1", "--max-new-tokens", "3")
    assert "same rating 6/6" in next(line for line in out.splitlines() if "score float32" in line)


def test_gpu_on_a_cpu() -> None:
    out = run("hf_gpu.py", "--cells", "12", "--device", "cpu")
    assert "12 cells of" in out
