"""Permutes what has no order in an exam, and compares the output of every command to the byte.

    python benchmarks/campaigns/permutations.py [--count 2000] [--seed 1]

Each case writes one small exam with other orders of lines, files, queries, systems, passages,
items, graders and entries, and runs all commands on the graded file, on a collection made from it
and on a collection made from separate files. `--count` is the number of outputs that are compared.
A difference is printed with the seed that repeats it, and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import random
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from exampp.cli.main import main as exampp_main

T = TypeVar("T")
Order = Callable[[Iterable[Any]], list[Any]]
"""Puts things into an order."""


def in_file_order(things: Iterable[T]) -> list[T]:
    """The order of the original exam."""
    return list(things)


def shuffled(seed: int) -> Order:
    """Another order at every call, the same for the same seed."""
    chance = random.Random(seed)

    def order(things: Iterable[T]) -> list[T]:
        found = list(things)
        chance.shuffle(found)
        return found

    return order


# ---- an exam -------------------------------------------------------------------------------------

MODELS = ("large", "small")
WORDS = ("sky", "blue", "light", "air", "red", "sunset", "magnet", "north", "wave", "heat", "rain")


@dataclass(frozen=True)
class Exam:
    """A small exam: passages are shared by queries and by systems, and scores are tied."""

    queries: dict[str, str] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    items: dict[str, dict[str, str]] = field(default_factory=dict)
    runs: dict[str, dict[str, list[tuple[str, int, float]]]] = field(default_factory=dict)
    judgments: dict[str, dict[str, int]] = field(default_factory=dict)
    ratings: dict[tuple[str, str, str], dict[str, int]] = field(default_factory=dict)
    """By (query, passage, model)."""


def make_exam(seed: int, queries: int = 7, systems: int = 5, depth: int = 5) -> Exam:
    """An exam with ties of ranks, scores and texts; an even seed judges all passages."""
    chance = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(words))

    exam = Exam()
    names = [str(number) for number in chance.sample(range(2, 120), queries)]
    pool = [f"p{number}" for number in range(3 * depth)]
    for passage in pool:
        # few words, so that some texts are equal
        exam.passages[passage] = text(chance.choice((2, 9)))
    kinds = [f"sys{chance.choice('ABCXYZ')}{number}" for number in range(systems)]
    for query in names:
        exam.queries[query] = f"how does {text(3)} work"
        exam.items[query] = {
            f"{query}/{chance.getrandbits(64):016x}": f"What about {text(3)}?"
            for _ in range(chance.randint(2, 4))
        }
        exam.runs[query] = {}
        for system in kinds:
            if chance.random() < 0.1:
                continue
            found = chance.sample(pool, chance.randint(2, depth))
            ties = chance.random() < 0.5
            exam.runs[query][system] = [
                (
                    passage,
                    1 + place // (2 if ties else 1),
                    float(depth - place // (3 if ties else 1)),
                )
                for place, passage in enumerate(found)
            ]
        ranked = {passage for run in exam.runs[query].values() for passage, _, _ in run}
        exam.judgments[query] = {
            passage: chance.randint(0, 3)
            for passage in sorted(ranked)
            if seed % 2 == 0 or chance.random() < 0.8
        }
        for passage in sorted(ranked):
            for model in MODELS:
                exam.ratings[query, passage, model] = {
                    item: min(
                        5, max(0, exam.judgments[query].get(passage, 1) + chance.randint(-2, 3))
                    )
                    for item in exam.items[query]
                    if chance.random() < 0.98
                }
    return exam


def write_exam(exam: Exam, folder: Path, order: Order) -> None:
    """The files of the exam, everything in them that has no order in that one."""
    _write_graded(exam, folder / "graded.jsonl", order)
    bank = [
        {
            "query_id": query,
            "query_text": text,
            "facet_id": None,
            "questions": order(
                {"question_id": item, "query_id": query, "question_text": said}
                for item, said in exam.items[query].items()
            ),
        }
        for query, text in exam.queries.items()
    ]
    _lines(folder / "bank.jsonl", map(json.dumps, order(bank)))
    _lines(folder / "queries.tsv", order(f"{q}\t{text}" for q, text in exam.queries.items()))
    passages = order({"id": p, "text": text} for p, text in exam.passages.items())
    _lines(folder / "passages.jsonl", map(json.dumps, passages))
    runs = {
        system: order(
            f"{query} Q0 {passage} {rank} {score} {system}"
            for query, of_query in exam.runs.items()
            for passage, rank, score in of_query.get(system, ())
        )
        for system in _systems(exam)
    }
    for system, lines in runs.items():
        _lines(folder / f"{system}.run", lines)
    _lines(
        folder / "judgments.qrels",
        order(f"{q} 0 {p} {grade}" for q, of in exam.judgments.items() for p, grade in of.items()),
    )
    ranks = order((system, place) for place, system in enumerate(_systems(exam), 1))
    (folder / "official.json").write_text(json.dumps(dict(ranks)))


def _systems(exam: Exam) -> list[str]:
    return sorted({system for of_query in exam.runs.values() for system in of_query})


def _write_graded(exam: Exam, path: Path, order: Order) -> None:
    lines = []
    for query in order(exam.queries):
        in_pool = {p: None for of, p, _ in exam.ratings if of == query}
        lines.append(
            json.dumps(
                [query, [_passage(exam, query, passage, order) for passage in order(in_pool)]]
            )
        )
    _lines(path, lines)


def _passage(exam: Exam, query: str, passage: str, order: Order) -> dict[str, Any]:
    judged = exam.judgments[query]
    return {
        "paragraph_id": passage,
        "text": exam.passages[passage],
        "paragraph_data": {
            "judgments": [
                {"paragraphId": passage, "query": query, "relevance": judged[passage]}
                for passage in [passage]
                if passage in judged
            ],
            "rankings": order(
                {"method": s, "paragraphId": p, "queryId": query, "rank": rank, "score": score}
                for s, run in exam.runs[query].items()
                for p, rank, score in run
                if p == passage
            ),
        },
        "exam_grades": order(
            {
                "llm": model,
                "llm_options": {},
                "prompt_info": {
                    "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
                    "is_self_rated": True,
                },
                "correctAnswered": [],
                "wrongAnswered": [],
                "exam_ratio": 0.0,
                "answers": order([item, str(rating)] for item, rating in rated.items()),
                "self_ratings": order(
                    {"question_id": item, "self_rating": rating} for item, rating in rated.items()
                ),
            }
            for model in MODELS
            if (rated := exam.ratings[query, passage, model])
        ),
    }


def _lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


# ---- the commands --------------------------------------------------------------------------------

ONE = "--grader large"
ANALYSES = """
evaluate {exam} ONE -m Cover@3 -m nCover@3 -m Cover -m nDCG@5 -m AP -m RR -m P@3
evaluate {exam} ONE -m RBP(p=0.8) -m Judged@5 -m StRecall@3 -m alpha_nDCG@3
evaluate {exam} ONE -m ERR_IA@3 -m AllScore@3
evaluate {exam} ONE --min-rating 3 --min-rating 4 --official official.json
evaluate {exam} ONE --per-query -m Cover@3 -m AP
evaluate {exam} ONE --missing bounds
evaluate {exam} ONE -m nDCG@3 --label count --qrels exam.qrels
compare {exam} A B ONE -m Cover@3
compare {exam} A B ONE -m nDCG
compare {exam} A B ONE -m Cover@3 --query Q
gate {exam} ONE -r Cover@3>=0.3 -r nDCG@5>=0.2
gate {exam} ONE -r Cover@3 --baseline-system A --margin 0.05
analyze correlation {exam} --official official.json -m Cover@3 -m nDCG@5 --samples 60
analyze agreement {exam} ONE
analyze agreement {exam} --against graders
analyze calibration {exam} ONE --samples 60 --folds 3
analyze significance {exam} ONE -m Cover@3 -m nDCG@5 --pairs --permutations 200
analyze reliability {exam} ONE -m Cover@3 --samples 60
analyze reliability {exam} -m Cover@3 --samples 60
analyze items {exam} ONE -k 3 --official official.json
analyze unsaid {exam} ONE --pair A=B -k 3
analyze sensitivity {exam} --official official.json -m Cover -m P --cutoff 2 --cutoff 3
analyze attacks {exam} ONE
analyze corrected {exam} ONE -m P@3
analyze corrected {exam} ONE -m RBP@3
review {exam} verify ONE
review {exam} grid ONE
review {exam} missing ONE
review {exam} spurious ONE
review {exam} spurious ONE --by systems
report {exam} ONE -o report.html --json report.json --official official.json
plot leaderboard {exam} ONE -o plot.json
plot heatmap {exam} ONE -o plot.json
plot grades {exam} ONE -o plot.json
""".strip().splitlines()
OF_COLLECTION = """
status {exam}
status {exam} --pool --depth 3
systems {exam}
search {exam} sky
bank show {exam}
bank lint {exam}
bank list {exam}
vote {exam} --grader large --grader small
export {exam} out.run
export {exam} out.qrels
export {exam} out.jsonl
export {exam} bank.tsv
export {exam} bank.csv
bank split {exam} --secret 0.4
bank compare {exam} ONE
review {exam} sample ONE --labels 8 -m P@3
review {exam} sample ONE --labels 6 -m Cover@3 --design uniform
review {exam} decisions
review {exam} disputes
review {exam} agreement ONE
analyze corrected {exam} ONE -m P@3
""".strip().splitlines()
WITHOUT_FORMAT = ("report", "plot", "export", "bank split")
WRITES = re.compile(r"\b(report\.json|plot\.json|exam\.qrels|out\.\w+|bank\.tsv|bank\.csv)")
"""Files that a command writes: they belong to its output."""
IN_FILE_ORDER = (
    # a bank and an export read back as their author ordered them
    r"bank show|export"
    # queries are looked at one by one, as a large file is read, and items as the bank lists them
    r"|review \S+ (verify|grid)"
    # whatever came in first is found first
    r"|search"
)
"""Commands whose output is in file order by definition: only its characters are compared."""
VARIES = (
    (r"\d+ kB", "SIZE"),  # the plots of a process are numbered
    (r'"[0-9a-f]{64}"', '"HASH"'),  # of the input files, which differ
    (r"\d{4}-\d\d-\d\dT[\d:.+Z-]+", "TIME"),
    (r'"seconds": [\d.]+', '"seconds": 0'),
    (r"commitment [0-9a-f]{64}", "COMMITMENT"),  # with a random salt
)
"""Parts of an output that depend on time or on the bytes of the input files."""


def run(line: str) -> str:
    """Run a command in the working folder; return its exit code, output and files."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    argv, sys.argv = sys.argv, ["exampp", *shlex.split(line)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            exampp_main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
    parts = [f"exit code {code or 0}"]
    for stream in (out, err):
        stream.flush()
        parts.append(stream.buffer.getvalue().decode())
    for name in dict.fromkeys(WRITES.findall(line)):
        if Path(name).exists():
            parts.append(Path(name).read_text())
            Path(name).unlink()
    text = "\n".join(parts)
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    return text


def lines_for(exam: Exam, name: str, analyses: Sequence[str]) -> Iterator[str]:
    """The commands on one file, in a machine format where they have one."""
    query = min(exam.queries)
    first, second = list(exam.runs[query])[:2]
    for template in analyses:
        line = template.replace("{exam}", name).replace("ONE", "--grader large")
        line = re.sub(r"\bA\b", first, re.sub(r"\bB\b", second, re.sub(r"\bQ\b", query, line)))
        if not line.startswith(WITHOUT_FORMAT):
            line += " --format json"
        yield line


def outputs(exam: Exam, order: Order, step: int = 1) -> dict[str, str]:
    """Return the output of every command, or every so many, on the exam in this order."""
    found: dict[str, str] = {}
    write_exam(exam, Path(), order)
    runs = [f"{system}.run" for system in _systems(exam)]
    parts = ["queries.tsv", "passages.jsonl", "bank.jsonl", "judgments.qrels", *runs]
    for line in (
        "import graded.exam graded.jsonl --bank bank.jsonl",
        f"import parts.exam {' '.join(order(parts))}",
        "grade parts.exam --grader draft",
    ):
        said = run(line)
        if not said.startswith("exit code 0"):
            raise SystemExit(f"{line}: {said}")
    on_parts = [
        line.replace(" ONE", "").replace("--grader large --grader small", "")
        for line in (*ANALYSES, *OF_COLLECTION)
        if not line.startswith("vote")
    ]
    lines = [
        *lines_for(exam, "graded.jsonl", [f"{line} --bank bank.jsonl" for line in ANALYSES]),
        *lines_for(exam, "graded.jsonl", ANALYSES),
        *lines_for(exam, "graded.exam", (*ANALYSES, *OF_COLLECTION)),
        *lines_for(exam, "parts.exam", on_parts),
    ]
    for line in lines[::step]:
        text = run(line)
        found[line] = "".join(sorted(text)) if re.match(IN_FILE_ORDER, line) else text
    return found


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The commands whose output differs, with the first lines that do."""
    for line, text in one.items():
        if other[line] != text:
            told = difflib.unified_diff(
                text.splitlines(), other[line].splitlines(), "original", "permuted", "", "", 0, ""
            )
            yield line, "\n".join(one[:200] for one in list(told)[:12])


@contextlib.contextmanager
def working_folder() -> Iterator[None]:
    """An empty folder to work in."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def in_order(exam: Exam, order: Order, step: int = 1) -> dict[str, str]:
    with working_folder():
        return outputs(exam, order, step)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    os.environ["COLUMNS"] = "200"
    exam = make_exam(asked.seed)
    original = in_order(exam, in_file_order)
    refused = [line for line, text in original.items() if "exit code 2\n\nexampp: " in text]
    print("refused, so that only the sentence is compared:", *refused, sep="\n  ")
    found = 0
    compared = 0
    while compared < asked.count:
        seed = asked.seed + compared
        told = list(differences(original, in_order(exam, shuffled(seed))))
        compared += len(original)
        for line, diff in told:
            print(f"seed {seed}: {line}\n{diff}\n", flush=True)
        found += len(told)
    print(f"{compared:,} outputs compared, {found} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
