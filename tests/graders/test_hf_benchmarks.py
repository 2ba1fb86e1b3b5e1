"""The benchmarks of local models run, with tiny ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ("tiny_models",)

Run = Callable[..., str]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a benchmark with a tiny model, and returns what it prints."""
    monkeypatch.syspath_prepend(BENCHMARKS)

    def run_one(name: str, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, "--model-size", "tiny", *options])
        importlib.import_module(name).main()
        return capsys.readouterr().out

    return run_one


def test_score_vs_generate(run: Run) -> None:
    out = run("hf_score_vs_generate", "--cells", "6", "--rounds", "1", "--max-new-tokens", "3")
    assert "same rating 6/6" in next(line for line in out.splitlines() if "score float32" in line)


def test_the_passage_first_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from servers import write_tiny_model

    write_tiny_model(tmp_path / "tiny.gguf")
    monkeypatch.syspath_prepend(BENCHMARKS)
    options = [str(tmp_path / "tiny.gguf"), "--passages", "3", "--questions", "5", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["passage_first", *options])
    importlib.import_module("passage_first").main()
    out = capsys.readouterr().out
    turned = [line for line in out.splitlines() if line.startswith("  passage first: ")]
    fewer = [float(line.partition(" times fewer")[0].rpartition("(")[2]) for line in turned]
    assert len(fewer) == 4
    assert min(fewer) > 1.5
    assert out.count("same rating 15/15") == 2


def test_the_passage_first_on_a_shape(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    options = ["tiny", "--passages", "2", "--questions", "5", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["passage_first", *options])
    importlib.import_module("passage_first").main()
    assert capsys.readouterr().out.count("same rating 10/10") == 4


def test_gpu_on_a_cpu(run: Run) -> None:
    options = ("--cells", "12", "--compared", "6", "--device", "cpu", "--dtype", "float32")
    out = run("hf_gpu", *options)
    assert "12 cells of" in out
    assert out.count("same rating 6/6") == 3


def test_batches_in_flight_on_a_stand_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    options = ["--cells", "40", "--cell", ".1", "--other", ".01"]
    monkeypatch.setattr(sys, "argv", ["hf_in_flight", *options])
    importlib.import_module("hf_in_flight").main()
    assert "same replies True" in capsys.readouterr().out
