"""Results as runs of the trackers that people keep their experiments in: MLflow and W&B.

Where a run is open, what is logged goes into it; else a run of its own is made, and ended. Where it
goes (a server, a folder, offline) and the keys are those trackers' own settings and variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.result import Table


@dataclass(frozen=True, slots=True)
class Tracked:
    """What a tracker is told: a number a metric, what it was made with, and tables as artifacts."""

    name: str
    metrics: Mapping[str, float]
    settings: Mapping[str, str]
    tables: Mapping[str, Table]


def track(tool: str, tracked: Tracked) -> str:
    """Log to the open run of a tracker, one of `TRACKERS`, or to a new one; returns its id.

    Raises InputError for another name, and where the tracker is not installed or refuses.
    """
    if tool not in TRACKERS:
        raise InputError(f"there is no tracker {tool!r}", hint=f"Known: {', '.join(TRACKERS)}")
    try:
        return TRACKERS[tool](tracked)
    except ImportError:
        raise InputError(
            f"{tool} is not installed", hint=f"Install it: {install_command('tracking')}"
        ) from None
    except InputError:
        raise
    except Exception as error:  # each has exceptions of its own, of many kinds
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"{tool} took nothing: {first or type(error).__name__}") from error


_REFUSED = re.compile(r"[^\w\-. :/]")


def mlflow_name(name: str) -> str:
    """A name that MLflow takes: letters, digits and `_-. :/`; `@` is written as `_at_`."""
    return _REFUSED.sub("_", name.replace("@", "_at_").replace("≥", "min "))


def _mlflow(tracked: Tracked) -> str:
    import mlflow

    metrics = {mlflow_name(name): value for name, value in tracked.metrics.items()}
    if len(metrics) < len(tracked.metrics):
        raise InputError("two systems or measures have the same name in MLflow", hint="Rename one")
    own = mlflow.active_run() is None
    run = mlflow.start_run(run_name=tracked.name) if own else mlflow.active_run()
    try:
        mlflow.log_params({mlflow_name(key): value for key, value in tracked.settings.items()})
        mlflow.log_metrics(metrics)
        for name, table in tracked.tables.items():
            mlflow.log_text(table.render("json"), f"exampp/{name}.json")
            mlflow.log_text(table.render("tsv"), f"exampp/{name}.tsv")
    finally:
        if own:
            mlflow.end_run()
    return str(run.info.run_id)


def _wandb(tracked: Tracked) -> str:
    import wandb

    own = wandb.run is None
    run: Any = wandb.run
    if own:
        project = os.environ.get("WANDB_PROJECT", "exampp")
        run = wandb.init(project=project, name=tracked.name, config=dict(tracked.settings))
    else:
        run.config.update(dict(tracked.settings), allow_val_change=True)
    try:
        tables = {
            name: wandb.Table(columns=table.headings(), data=[list(row) for row in table.rows])
            for name, table in tracked.tables.items()
        }
        run.log({**tracked.metrics, **tables})
        artifact = wandb.Artifact("exampp", type="evaluation")
        for name, table in tracked.tables.items():
            with artifact.new_file(f"{name}.json", mode="w", encoding="utf-8") as stream:
                stream.write(table.render("json"))
        run.log_artifact(artifact)
    finally:
        if own:
            run.finish()
    return str(run.id)


TRACKERS: Mapping[str, Callable[[Tracked], str]] = {"mlflow": _mlflow, "wandb": _wandb}
"""The trackers, by the name that people call them by."""
