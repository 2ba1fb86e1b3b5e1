"""Leaderboards in MLflow and W&B, with these themselves where they are installed."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import exampp
from exampp.errors import InputError
from exampp.results.tracking import mlflow_name


@pytest.fixture
def board(demo_exam: Path) -> exampp.Leaderboard:
    with exampp.open(demo_exam) as exam:
        return exam.grades("draft").evaluate(["Cover@20", "nDCG@20"], min_rating=4)


def means(board: exampp.Leaderboard) -> dict[str, float]:
    rows = (*board.rows, *board.overall)
    return {
        f"{row.measure}{'' if row.min_rating is None else ' min 4'}/{row.system}": row.mean
        for row in rows
        if row.mean is not None
    }


def test_mlflow_has_metrics_settings_and_tables(
    tmp_path: Path, board: exampp.Leaderboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    found = mlflow.get_run(board.log_to("mlflow", "this week"))
    assert found.data.metrics == {mlflow_name(name): one for name, one in means(board).items()}
    assert found.data.params["draft"] == "true"
    assert found.info.run_name == "DRAFT GRADES: this week"
    assert found.info.status == "FINISHED"
    text = mlflow.artifacts.load_text(f"{found.info.artifact_uri}/exampp/leaderboard.json")
    assert json.loads(text)["rows"][0]["grader"]
    with mlflow.start_run() as own:
        assert board.log_to("mlflow") == own.info.run_id
        assert mlflow.active_run() is not None


def test_wandb_has_metrics_settings_and_tables(
    tmp_path: Path, board: exampp.Leaderboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb: Any = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    with wandb.init(project="mine", dir=tmp_path) as run:
        assert board.log_to("wandb") == run.id
        summary = dict(run.summary)
        assert {name: summary[name] for name in means(board)} == means(board)
        assert run.config["draft"] == "true"
    assert wandb.run is None
    assert board.log_to("wandb", "next")
    assert wandb.run is None
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 2


def test_what_is_not_there_or_refuses_is_told(
    board: exampp.Leaderboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"no tracker 'tensorboard'\. Known: mlflow, wandb"):
        board.log_to("tensorboard")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"mlflow is not installed. Install it: .*tracking"):
        board.log_to("mlflow")
    broken = types.ModuleType("mlflow")
    broken.active_run = lambda: 1 / 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", broken)
    with pytest.raises(InputError, match="mlflow took nothing: division by zero"):
        board.log_to("mlflow")


def test_names_that_mlflow_takes() -> None:
    assert mlflow_name("Cover@20 min 4/openai:gpt-4o") == "Cover_at_20 min 4/openai:gpt-4o"
    assert mlflow_name("nDCG(dcg='exp')@5/a,b") == "nDCG_dcg__exp___at_5/a_b"
