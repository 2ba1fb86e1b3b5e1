"""Results in the schema of Every Eval Ever (version 0.3.0): one file per system.

`data/COLLECTION/DEVELOPER/SYSTEM/UUID.json`, as its data store wants them, with the uncertainty of
every score and the judge behind it. There are no files of single answers: their schema demands
whether each answer is correct, which an exam does not decide.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.exports.exam import Exported, GradedExam, export_time
from exampp.formats.lines import encode_text
from exampp.formats.output import new_folder, writing
from exampp.measures.board import Leaderboard
from exampp.measures.values import MeasureColumn
from exampp.prompts.catalogue import find_prompt
from exampp.prompts.prompt import Prompt, prompt_content_hash
from exampp.records.gradebook import untestable
from exampp.records.graders import GraderIdentity, members_of
from exampp.records.ids import content_hash
from exampp.records.selection import UNPUBLISHED, ExportOptions
from exampp.records.wording import counted
from exampp.stats.estimate import LEVEL, Estimate
from exampp.stats.means import mean_tests
from exampp.store.grades import graders
from exampp.version import __version__

SCHEMA = "0.3.0"
_UNSAFE = re.compile(r'[<>:"\\|?*/\x00-\x1f]')
_RESERVED = re.compile(r"(CON|PRN|AUX|NUL|COM\d|LPT\d)(\..*)?|data|unknown|\.+", re.IGNORECASE)
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


def write_every_eval_ever(exam: GradedExam, path: Path, options: ExportOptions) -> Exported:
    """Write a new folder with a file for each system that has a score."""
    board = exam.evaluate(options)
    testable = untestable(exam.book) is None
    uncertainty = [_uncertainty(one, testable=testable) for one in board.columns]
    scoring = _scoring(exam)
    written, without = 0, 0
    with new_folder(path) as folder:
        for at, system in enumerate(board.column_systems):
            results = [
                _result(exam, board, number, at, uncertainty, scoring)
                for number, column in enumerate(board.columns)
                if column.values.means()[at].mean is not None
            ]
            if not results:
                without += 1
                continue
            log = _log(exam, board, system, results, options.organization)
            place = _place(exam, system, options.organization)
            (folder / place).mkdir(parents=True, exist_ok=True)
            identity = uuid.UUID(content_hash(log["evaluation_id"])[:32])
            file = folder / place / f"{uuid.UUID(bytes=identity.bytes, version=4)}.json"
            with writing(file) as stream:
                text = json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
                stream.write(encode_text(text, file))
            written += 1
    notes = list(board.notes)
    if options.organization == UNPUBLISHED:
        notes.insert(0, "Name your organization with --organization before you publish the files.")
    return Exported(
        f"{counted(written, 'file')}, one per system.",
        written,
        {"systems": written},
        {"systems without a score": without},
        notes,
    )


def _place(exam: GradedExam, system: str, organization: str) -> Path:
    """Return the folder of a system's file in the data store, in portable names."""
    developer, _, model = system.rpartition("/")
    names = (exam.name, developer.partition("/")[0] or organization, model)
    return Path("data", *map(_portable, names))


def _portable(name: str) -> str:
    safe = _UNSAFE.sub("_", name.strip()).rstrip(". ") or "_"
    return f"_{safe}" if _RESERVED.fullmatch(safe) else safe


def _log(
    exam: GradedExam,
    board: Leaderboard,
    system: str,
    results: list[dict[str, Any]],
    organization: str,
) -> dict[str, Any]:
    # the same results have the same identity, whenever they are exported
    content = [
        exam.facts,
        system,
        [(one["evaluation_name"], one["score_details"]) for one in results],
    ]
    digest = content_hash(json.dumps(content, sort_keys=True))[:16]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{exam.name}/{system}/{digest}",
        "retrieved_timestamp": str(export_time()),
        "source_metadata": {
            "source_name": exam.name,
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "exampp",
            "version": __version__,
            "additional_details": exam.facts,
        },
        "model_info": {
            "name": system,
            "id": system,
            "developer": system.partition("/")[0] if "/" in system else organization,
            "additional_details": {
                **_UNKNOWN,
                "passages_per_query": f"{board.passages.get(system, 0.0):g}",
            },
        },
        "evaluation_results": results,
    }


def _result(
    exam: GradedExam,
    board: Leaderboard,
    number: int,
    at: int,
    uncertainty: list[list[dict[str, Any]]],
    scoring: dict[str, Any] | None,
) -> dict[str, Any]:
    column = board.columns[number]
    measure, mean = column.measure, column.values.means()[at]
    parameters: dict[str, Any] = {
        **{key: str(v) if isinstance(v, tuple) else v for key, v in measure.params},
        **({} if measure.at is None else {measure.kind.at: measure.at}),
        **({} if column.min_rating is None else {"min_rating": column.min_rating}),
    }
    scored = {
        "evaluation_description": "Mean over the queries of an exam of questions or nuggets",
        "metric_id": f"exampp.{measure.name}",
        "metric_name": column.name,
        "metric_unit": "proportion" if measure.kind.share else "points",
        "metric_parameters": parameters,
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0 if measure.kind.share else "-Infinity",
        "max_score": 1.0 if measure.kind.share else "Infinity",
        "additional_details": {
            **exam.facts,
            "draft_grades": str(exam.book.grader.is_draft).lower(),
        },
    }
    if scoring is not None:
        scored["llm_scoring"] = scoring
    return {
        "evaluation_result_id": f"{exam.name}/{column.name}",
        "evaluation_name": f"{exam.name}.{measure}",
        "source_data": {
            "dataset_name": exam.name,
            "source_type": "other",
            "additional_details": {
                "queries": str(len(exam.book.queries)),
                "items": str(sum(len(one.item_ids) for one in exam.book.queries)),
                "bank.hash": exam.facts["bank.hash"],
            },
        },
        "metric_config": scored,
        "score_details": {
            "score": mean.mean,
            "details": {
                "human_decisions": str(board.oversight.cells),
                **({"corrected": _spelled(column.corrected[at])} if column.corrected else {}),
            },
            "uncertainty": uncertainty[number][at],
        },
    }


def _spelled(corrected: Estimate) -> str:
    """Return a score that is corrected for skipped cells, with its interval if it has one."""
    if corrected.value is None or corrected.low is None or corrected.high is None:
        return corrected.why if corrected.value is None else f"{corrected.value:.6f}"
    return f"{corrected.value:.6f} ({corrected.low:.6f} to {corrected.high:.6f})"


def _uncertainty(column: MeasureColumn, *, testable: bool) -> list[dict[str, Any]]:
    """Return the number of queries of every system, and error and interval where they hold."""
    means, within = column.values.means(), column.value_range
    found: list[dict[str, Any]] = [{"num_samples": mean.queries} for mean in means]
    if not testable or column.measure.kind.added:
        return found
    method = "Student's t over queries" if within is None else "Gaffke's limits over queries"
    tests = mean_tests(column.values.values, column.values.counts, within, LEVEL)
    for one, mean, test in zip(found, means, tests, strict=True):
        estimate = column.values.clip_estimate(test.estimate)
        low, high = estimate.low, estimate.high
        if mean.stderr is not None:
            one["standard_error"] = {"value": mean.stderr, "method": "analytic, over queries"}
            one["standard_deviation"] = mean.stderr * math.sqrt(mean.queries)
        if low is not None and high is not None:
            interval = {"lower": low, "upper": high, "confidence_level": LEVEL, "method": method}
            one["confidence_interval"] = interval
    return found


_AGGREGATED = {
    "majority": "majority_vote",
    "mean": "average",
    "weighted": "weighted_average",
    "median": "median",
}
"""The schema's names of rules that combine graders; it has none for the others."""


def _scoring(exam: GradedExam) -> dict[str, Any] | None:
    """Return the judges, with the text of their prompts; None if a prompt is not known.

    A grader that combines others has several.
    """
    grader = exam.book.grader
    known = {one.identity.key: one.identity for one in graders(exam.connection)}
    members = [(known.get(one["key"]), one.get("weight")) for one in members_of(grader)]
    judges, texts = [], []
    for member, weight in members or [(grader, None)]:
        text = None if member is None else _prompt_text(member)
        if member is None or text is None:
            return None
        judge: dict[str, Any] = {"model_info": _model(member.model)}
        temperature = member.settings.get("temperature")
        if isinstance(temperature, int | float):
            judge["temperature"] = temperature
        judges.append(judge if weight is None else {**judge, "weight": float(weight)})
        texts.append(text)
    rule = _AGGREGATED.get(grader.settings["vote"]["rule"]) if members else None
    return {
        "judges": judges,
        # judges with the same prompt share it
        "input_prompt": "\n\n---\n\n".join(dict.fromkeys(texts)),
        **({"aggregation_method": rule} if rule else {}),
        "additional_details": {"grader.name": grader.name, "grader.key": grader.key},
    }


def _prompt_text(grader: GraderIdentity) -> str | None:
    """Return the text of a grader's prompt; None if the installed one is another."""
    try:
        prompt = find_prompt(grader.prompt)
    except InputError:
        return None
    if not isinstance(prompt, Prompt) or not prompt.user:
        return None
    if prompt_content_hash(prompt) != grader.settings.get("prompt_hash"):
        return None
    return "\n\n".join(filter(None, (prompt.system, prompt.user)))


def _model(name: str) -> dict[str, Any]:
    return {"name": name, "id": name, "additional_details": _UNKNOWN}
