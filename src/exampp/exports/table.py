"""The table of exports: what is written, by its name, from records and from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from exampp.errors import InputError
from exampp.exports.evaluation_events import write_evaluation_events
from exampp.exports.every_eval_ever import write_every_eval_ever
from exampp.exports.exam import Exported, GradedExam
from exampp.exports.training_pairs import write_training_set, write_triplets
from exampp.records.selection import ExportOptions


class ResultExport(NamedTuple):
    """An export of results.

    `file` is its usual name; without a suffix it is a folder. `uses` are the fields of
    `ExportOptions` that change it. `public`: it never contains or reads sealed items.
    """

    purpose: str
    file: str
    write: Callable[[GradedExam, Path, ExportOptions], Exported]
    uses: tuple[str, ...] = ("measures", "min_rating")
    public: bool = False


RESULT_EXPORTS: Mapping[str, ResultExport] = {
    "every-eval-ever": ResultExport(
        "scores with intervals and judge, for the data store of Every Eval Ever",
        "every-eval-ever",
        write_every_eval_ever,
        ("measures", "min_rating", "organization"),
    ),
    "gen-ai-events": ResultExport(
        "an OpenTelemetry event for every score (gen_ai.evaluation.result)",
        "events.jsonl",
        write_evaluation_events,
    ),
    "triplets": ResultExport(
        "queries, positive passages and hard negatives for sentence-transformers",
        "triplets.jsonl",
        write_triplets,
        ("min_rating", "depth", "negatives"),
        public=True,
    ),
    "beir-train": ResultExport(
        "the same as a training set in the layout of BEIR",
        "training-set",
        write_training_set,
        ("min_rating", "depth", "negatives"),
        public=True,
    ),
}


def result_export(kind: str) -> ResultExport:
    """Return an export of results; raise InputError for an unknown one."""
    if kind not in RESULT_EXPORTS:
        known = ", ".join(RESULT_EXPORTS)
        raise InputError(f"unknown export of results {kind!r}", hint=f"Available: {known}")
    return RESULT_EXPORTS[kind]


def uses_option(kind: str, option: str) -> bool:
    """Return whether an option changes an export."""
    form = RESULT_EXPORTS.get(kind)
    return form is not None and option in form.uses
