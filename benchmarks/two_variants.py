"""From two files of a program to a leaderboard of two variants, with the seconds of each command.

    python benchmarks/two_variants.py [--folder OUT]

The answers of the demo's chat-v1 and chat-v2 are written as ragas, DeepEval, Phoenix, Langfuse,
LangSmith, promptfoo, MLflow and a plain table write them. Three commands make the leaderboard:
`exampp import` (with a bank), `exampp grade` and `exampp evaluate`. All leaderboards are the same.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Pairs = list[tuple[str, str]]
"""Questions and answers of a variant."""
EXAMPP = Path(sys.executable).with_name("exampp")


def _lines(rows: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _table(rows: Iterable[Mapping[str, Any]]) -> str:
    rows = [*rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _phoenix(pairs: Pairs) -> str:
    return _lines(
        {
            "name": "query",
            "context": {"trace_id": str(number), "span_id": "1"},
            "span_kind": "CHAIN",
            "parent_id": None,
            "attributes": {"input": {"value": question}, "output": {"value": answer}},
        }
        for number, (question, answer) in enumerate(pairs)
    )


def _promptfoo(pairs: Pairs) -> str:
    results = [
        {
            "vars": {"question": question},
            "promptIdx": 0,
            "testIdx": number,
            "provider": {"id": "http"},
            "response": {"output": answer},
        }
        for number, (question, answer) in enumerate(pairs)
    ]
    return json.dumps({"evalId": "e", "results": {"version": 3, "results": results}}, indent=1)


def _mlflow(pairs: Pairs) -> str:
    names = ["inputs", "outputs", "ground_truth", "token_count"]
    return json.dumps({"columns": names, "data": [[q, a, None, 7] for q, a in pairs]})


FILES: Mapping[str, tuple[str, Callable[[Pairs], str]]] = {
    "ragas": ("jsonl", lambda ps: _lines({"user_input": q, "response": a} for q, a in ps)),
    "DeepEval": (
        "json",
        lambda ps: json.dumps(
            {"testRunData": {"testCases": [{"input": q, "actualOutput": a} for q, a in ps]}}
        ),
    ),
    "Phoenix": ("jsonl", _phoenix),
    "Langfuse": (
        "jsonl",
        lambda ps: _lines(
            {"traceId": str(n), "type": "SPAN", "startTime": "x", "input": q, "output": a}
            for n, (q, a) in enumerate(ps)
        ),
    ),
    "LangSmith": (
        "csv",
        lambda ps: _table(
            {"inputs": json.dumps({"question": q}), "outputs": json.dumps({"answer": a})}
            for q, a in ps
        ),
    ),
    "promptfoo": ("json", _promptfoo),
    "MLflow": ("json", _mlflow),
    "plain CSV": ("csv", lambda ps: _table({"question": q, "response": a} for q, a in ps)),
}


def run(folder: Path, *arguments: str) -> tuple[str, float]:
    """Run a command in a folder; return its output and its seconds."""
    started = time.perf_counter()
    ran = subprocess.run([EXAMPP, *arguments], cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"exampp {' '.join(arguments)}\n{ran.stderr}")
    return ran.stdout, time.perf_counter() - started


def main() -> None:
    """Write the files, run the commands, and print the seconds and the leaderboard."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    run(folder, "demo", "--files", "tour")
    tour = folder / "tour"
    with (tour / "answers.csv").open(newline="", encoding="utf-8") as stream:
        rows = [*csv.DictReader(stream)]
    boards = set()
    for name, (ending, written) in FILES.items():
        files = []
        for system in ("chat-v1", "chat-v2"):
            pairs = [(row["question"], row["answer"]) for row in rows if row["system"] == system]
            place = tour / name.replace(" ", "-") / f"{system}.{ending}"
            place.parent.mkdir(exist_ok=True)
            place.write_text(written(pairs), encoding="utf-8")
            files.append(str(place.relative_to(tour)))
        exam = f"{name.replace(' ', '-')}.exam"
        _, first = run(tour, "import", exam, *files, "queries.tsv", "bank.csv")
        _, second = run(tour, "grade", exam, "--grader", "draft")
        board, third = run(tour, "evaluate", exam)
        boards.add(board)
        print(f"{name:10} import {first:.1f} s, grade {second:.1f} s, evaluate {third:.1f} s")
    print(f"\n{len(boards)} different leaderboards\n\n{boards.pop()}")


if __name__ == "__main__":
    main()
