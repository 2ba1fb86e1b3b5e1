"""An option that changes nothing is an error: every option of every command, in all its uses.

    python -m pytest benchmarks/campaigns/options.py [-k "evaluate or review"]

The suite checks that every option has its line, and runs a few (tests/cli/test_options.py).
`OPTIONS` has, for each command, its uses (whole command lines, run in the folder that
`options_example` makes) and a value for each option. Every use is run without and with the option.
With it something must differ, in what is printed, in the exit code or in a file, or it must be
refused in one sentence; in one use at least it must be honoured. So a new option needs one line:

    "--depth": "1",

or, where its value depends on the use, one value per beginning of a use:

    "--limit": {"review my.exam grid": "2", "": "1"},

A flag has the value "". An option with values of which no beginning fits is not tried in that use,
which is for what other data would show: `--on-error` beside a file without bad lines. A new command
needs an entry. Where an option would change nothing, declare that at the command, by
`exampp.cli.command.option_rules`; where the example is too small to show a difference, enlarge it.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import options_example
import pytest
from conftest import Build
from options_example import FEW, ITEM, MANY
from support.commands import Commands

from exampp.cli.main import app
from exampp.graders.registry import BUILT_IN
from exampp.records.gradebook import Gradebook
from exampp.store import read_model
from exampp.store.grades import StoredGrader
from exampp.store.sql import GuardedConnection

pytest_plugins = ("conftest",)
Value = str | Mapping[str, str]


class Uses(NamedTuple):
    """Command lines of one command, and a value for each option that may be added to them."""

    lines: tuple[str, ...]
    options: Mapping[str, Value]
    fixed: Mapping[str, Sequence[str]] = {}
    """Command lines that are refused as they stand, and the options that fix them."""
    refused: int = 2
    """The exit code of a command line that is refused."""
    queries: int = FEW
    """Number of things in the example."""


def choices(start: str, rest: str = "") -> Mapping[str, Sequence[str]]:
    """Command lines that leave open which grader and which bank are meant."""
    return {
        f"{start} graders.exam{rest}": ("--grader other", "--grader thomas", "--grader query"),
        f"{start} banks.exam{rest}": ("--bank small",),
    }


FORMAT = {"--format": "json"}
READ = {"--digits": "5", **FORMAT}
PUBLISHED = "gate my.exam --require Cover@3>=0.5 --allow-missing 0.8"
GRADED = {"--grader": "other", "--bank": "small"}
BOARD = {
    **GRADED,
    "--measure": "P@3",
    "--min-rating": "2",
    "--run": "late.run",
    "--system": "alpha",
    "--leave-out": "alpha",
    "--subtopics": "pool",
}
DECIDED = {"--decisions": "without"}
SHOWN = ("--min-rating", "--run", "--system", "--leave-out", "--subtopics")
OF_SYSTEMS = ("--system", "--leave-out")
LABELS = {"--label": "count", "--at-least": "2", "--gains": "binary"}
BANK = {"--bank": "small"}
EDIT = {**BANK, "--author": "zoe", "--reason": "because", **FORMAT}
MODEL = {
    "--model": "m2",
    "--revision": "r2",
    "--max-new-tokens": "7",
    "--device": "cuda:3",
    "--dtype": "bfloat16",
    "--temperature": "0.7",
    "--seed": "7",
    "--top-p": "0.9",
    "--reasoning-effort": "low",
    "--chat-template-kwargs": """'{"enable_thinking": false}'""",
    "--extra-body": """'{"top_k": 3}'""",
    "--base-url": "http://localhost:1/v1",
    "--concurrency": "3",
    "--retries": "2",
    "--timeout": "9",
    "--max-requests": "5",
    "--max-cost": "0.5 --price-read 1 --price-written 1",
    "--price-read": "2 --price-written 2",
    "--price-written": "2 --price-read 2",
}
AVERAGED = ("leaderboard", "methods", "heatmap", "reliability", "sensitivity")
MORE = "--grader openai --model m --prompt dl-questions --query q1 --per subtopic --more 2"
TWELVE = "analyze items graders.exam --grader judge -k 2 --run twelve.run"
HF, OPENAI = "--grader hf --model m", "--grader openai --model m"

OPTIONS: Mapping[str, Uses] = {
    "demo": Uses((), {}),
    "import": Uses(
        (
            "import my.exam late.run",
            "import my.exam smaller.tsv",
            "import my.exam labels.graded.jsonl",
            "import my.exam answers.jsonl --as responses --system mine",
            "import my.exam named.jsonl --as responses",
        ),
        {
            "--as": "passages",
            "--explain": "",
            "--queries": {},
            "--passages": {},
            "--bank": {},
            "--runs": {},
            "--qrels": {},
            "--responses": {},
            "--bank-name": "small",
            "--on-error": {},
            "--scale": {"import my.exam labels": "0..4"},
            "--unknown-passages": {},
            "--corpus": {},
            "--depth": "1",
            "--system": {"import my.exam late.run": "mine", "import my.exam smaller": "mine"},
            "--passage-tokens": "0",
            "--cited": "",
            "--columns": "query_id=topic",
            "--update": {},
            "--dry-run": "",
            **FORMAT,
        },
        {
            "import my.exam": (
                "--queries reworded.jsonl --update",
                "--passages bad.jsonl --on-error skip",
                "--bank smaller.tsv",
                "--runs late.run",
                "--qrels judged.qrels",
                "--responses named.jsonl",
            ),
            "import my.exam bad.jsonl --as passages": ("--on-error skip",),
            "import my.exam reworded.jsonl": ("--update",),
            "import my.exam foreign.tsv": ("--columns query_id=topic --columns question=gold",),
            "import my.exam unknown.run": ("--unknown-passages keep",),
            "import my.exam corpus.run": ("--corpus corpus.jsonl",),
            "import my.exam answers.jsonl --as responses": ("--system mine",),
        },
    ),
    "export": Uses(
        (
            *("export banks.exam out", "export banks.exam out.run", "export banks.exam out.csv"),
            "export split.exam out.jsonl --format bank",
            "export my.exam out.jsonl --format triplets",
            "export my.exam out.jsonl --format gen-ai-events",
            "export my.exam out --format every-eval-ever",
        ),
        {
            "--format": "queries",
            "--bank": "small",
            "--part": "sealed",
            "--grader": "other",
            "--measure": "P@3",
            "--min-rating": "3",
            "-k": "1",
            "--negatives": "1",
            "--organization": "example",
        },
        choices("export", " out.jsonl --format gen-ai-events"),
    ),
    "merge": Uses(("merge bare.exam my.exam",), {"--dry-run": "", **FORMAT}),
    "check": Uses(
        ("check my.exam", "check doubtful.tsv"), {"--strict": {"check doubtful.tsv": ""}, **FORMAT}
    ),
    "citations": Uses(
        ("citations new.exam named.jsonl",),
        {"--corpus": "passages.jsonl", "--system": {}, "--pool": "sources.exam"},
        {"citations new.exam answers.jsonl": ("--system mine",)},
    ),
    "systems": Uses(
        ("systems my.exam", "systems my.exam remove alpha"),
        {"--yes": {"systems my.exam remove": ""}, "--format": {"systems my.exam": "json"}},
    ),
    "grade": Uses(
        (
            "grade bare.exam --grader draft",
            f"grade bare.exam {HF}",
            f"grade bare.exam {OPENAI}",
            f"grade bare.exam {OPENAI} --dry-run",
        ),
        {
            **MODEL,
            "--grader": "",
            "--prompt": "question-answering",
            "--kind": "nugget",
            "--bank": "small",
            "--depth": "1",
            "--for": "Cover@1",
            "--min-rating": "2 --for Cover@1",
            "--may-miss": "0.3 --for Cover@1",
            "--until": "gate --for Cover@1>=0.5",
            "--margin": "0.1 --until order --for Cover@1",
            "--baseline-system": "beta --until gate --for Cover@1>=baseline-0.1",
            "--after": "other",
            "--unsure": "2 --after other",
            "--audit": "1 --after other",
            "--audit-seed": "3 --after other",
            "--pool": "judged",
            "--decode": {
                f"grade bare.exam {HF}": "generate",
                f"grade bare.exam {OPENAI}": "text",
            },
            "--beams": "3",
            "--limit": "99",
            "--batch-tokens": "99",
            "--least-mass": "0.25",
            "--price-cached": "1 --price-read 2 --price-written 2",
            "--answers-of": "judge",
            "--repetition": "2",
            "--max-failures": {},
            "--max-queries": "1",
            "--shard": "1/2",
            "--retry-failed": "",
            "--unnumbered": {"grade bare.exam --grader hf": "unparsed"},
            "--matching": {},
            "--dry-run": "",
        },
        {
            "grade banks.exam --grader draft": ("--bank small",),
            f"grade banks.exam {OPENAI} --prompt answer-verification --bank main": (
                "--answers-of judge",
            ),
        },
    ),
    "reparse": Uses(
        ("reparse my.exam", "reparse my.exam --dry-run"),
        {
            "--grader": "other",
            "--rules": "thomas",
            "--unnumbered": "unparsed",
            "--matching": {},
            "--compat": "rubric",
            "--dry-run": "",
        },
        {"reparse graders.exam": ("--grader other", "--grader thomas", "--grader query")},
    ),
    "status": Uses(
        ("status my.exam", "status my.exam --pool"), {"--pool": "", "--depth": "1", **FORMAT}
    ),
    "finetune": Uses(
        ("finetune m squad.json out",),
        {
            "--prompt": "question-self-rating",
            "--revision": "r",
            "--epochs": "3",
            "--batch-size": "3",
            "--learning-rate": "0.1",
            "--max-steps": "7",
            "--seed": "7",
            "--device": "cuda:3",
        },
    ),
    "review": Uses(
        (
            *(f"review my.exam {name}" for name in ("verify", "grid", "missing", "spurious")),
            *(f"review my.exam {name}" for name in ("decisions", "disputes", "agreement")),
            "review my.exam answers",
            "review labels.graded.jsonl verify",
            "review labels.graded.jsonl missing",
            "review judged-my.exam sample",
            "review judged-my.exam sample --labels 9 -m P@5",
        ),
        {
            "--labels": "7",
            "--measure": "P@3",
            "--design": "uniform",
            "--seed": "9",
            "--number": "1",
            **GRADED,
            "--query": "q2",
            "--item": "q1/a",
            "--min-rating": "1",
            "--min-relevant": "1",
            "--by": "systems",
            "--depth": "1",
            "--min-answers": "3",
            "--limit": {"review my.exam": "1"},
            "--author": "ann",
            **FORMAT,
        },
        {
            line: options
            for line, options in choices("review", " verify").items()
            if "labels" not in line
        },
    ),
    "record": Uses(
        ("record my.exam q1", "record labels.graded.jsonl q1"),
        {**GRADED, "--system": "alpha", "--min-rating": "1", **FORMAT},
        choices("record", " q1"),
    ),
    "search": Uses(
        ("search graders.exam 4", "search banks.exam 4", "search my.exam 4 --in replies"),
        {
            "--in": {"search my.exam": "items", "": "queries"},
            "--limit": "1",
            "--grader": {"search graders.exam": "other"},
            "--bank": {"search banks.exam": "small"},
            **FORMAT,
        },
    ),
    "serve": Uses(
        ("serve my.exam",),
        {
            **GRADED,
            "--host": "0.0.0.0",
            "--port": "7",
            "--assessor": "ann",
            "--blind": "",
            "--shared": "50",
            "--guidelines": "edited.csv",
            "--official": "official.json",
            "--min-rating": "2",
            "--allowed-host": "exams.example.org",
            "--prefix": "/exam",
            "--proxy": "127.0.0.1",
            "--access-log": "access.log",
        },
    ),
    "api": Uses(
        (
            "api bare.exam --grader draft",
            f"api bare.exam {HF}",
            f"api bare.exam {OPENAI}",
            f"api bare.exam {OPENAI} --stdio",
        ),
        {
            **MODEL,
            "--grader": "",
            "--prompt": "question-answering",
            "--kind": "nugget",
            "--bank": "small",
            "--min-rating": "2",
            "--decode": {f"api bare.exam {HF}": "generate", f"api bare.exam {OPENAI}": "text"},
            "--beams": "3",
            "--limit": "99",
            "--batch-tokens": "99",
            "--least-mass": "0.25",
            "--price-cached": "1 --price-read 2 --price-written 2",
            "--repetition": "2",
            "--unnumbered": {"api bare.exam --grader hf": "unparsed"},
            "--matching": {},
            "--stdio": "",
            "--host": "0.0.0.0",
            "--port": "7",
            "--allowed-host": "exams.example.org",
            "--prefix": "/exam",
            "--proxy": "127.0.0.1",
            "--access-log": "access.log",
        },
    ),
    "clients": Uses(
        ("clients my.exam", "clients my.exam --add bot"),
        {
            "--add": "ann",
            "--rate": "7",
            "--requests": "7",
            "--cells": "7",
            "--revoke": "ann",
            **FORMAT,
        },
    ),
    "people": Uses(
        ("people my.exam", "people my.exam --invite ann"),
        {
            "--invite": "ann",
            "--role": {"people my.exam --invite": "editor"},
            "--revoke": "ann",
            "--address": {"people my.exam --invite": "https://exams.example.org"},
            **FORMAT,
        },
    ),
    "evaluate": Uses(
        (
            "evaluate my.exam",
            "evaluate my.exam -m nDCG@3",
            "evaluate my.exam -m AP",
            "evaluate my.exam -m Cover@3",
            "evaluate my.exam -m Cover@3 --qrels out.qrels",
            "evaluate my.exam --per-query --official official.json",
        ),
        {
            **BOARD,
            **DECIDED,
            **LABELS,
            "--official": "other.json",
            "--round": "0",
            "--missing": "skip",
            "--qrels": "made.out",
            "--per-query": "",
            "--compat": "rubric",
            "--duplicates": "found",
            **READ,
        },
        choices("evaluate"),
    ),
    "gate": Uses(
        (
            "gate my.exam --require Cover@3>=0.5 --allow-missing 0.9",
            "gate my.exam --require Cover@3>=0.5 --allow-missing .9 --margin .1 "
            "--baseline-system beta",
            "gate my.exam --baseline turned.run --margin 0.1 --allow-missing 0.9 --format markdown",
            "gate my.exam --baseline turned.run --require Cover@3>baseline",
            f"{PUBLISHED} --github",
        ),
        {
            **GRADED,
            "--require": {"gate my.exam --require": "nDCG@3>=0.2"},
            "--baseline": {"gate my.exam --require Cover@3>=0.5 --allow-missing .9": "turned.run"},
            "--baseline-system": {"gate my.exam --baseline turned.run": "beta"},
            "--margin": {},
            "--since": "my.exam",
            "--github": "",
            "--title": {f"{PUBLISHED} --github": "mine"},
            "--min-rating": "2",
            "--run": "late.run",
            "--system": "alpha",
            "--allow-missing": {"gate my.exam --baseline turned.run --require": "0.9"},
            "--alpha": {"gate my.exam --require": "0.4"},
            "--junit": "out.xml",
            **FORMAT,
            # what is missing has no numbers
            "--digits": {"gate my.exam --require": "5"},
        },
        {
            "gate graders.exam --require Cover@3>=0.5": (
                "--grader other",
                "--grader thomas",
                "--grader query",
            ),
            "gate banks.exam --require Cover@3>=0.5": ("--bank small",),
            "gate my.exam --baseline turned.run": ("--margin 0.1",),
        },
        refused=3,
        queries=MANY,
    ),
    "compare": Uses(
        (
            "compare my.exam alpha beta",
            "compare my.exam alpha beta --format json",
            "compare my.exam alpha beta -m nDCG@3 --format json",
        ),
        {
            **{name: value for name, value in BOARD.items() if name not in OF_SYSTEMS},
            "--run": "turned.run",
            "-k": "2",
            "--queries": "1",
            "--query": "q1",
            **READ,
        },
        choices("compare", " alpha beta"),
        queries=MANY,
    ),
    "report": Uses(
        (
            "report my.exam -o out.html -m Cover@3",
            "report my.exam -o out.html -m AP",
            "report my.exam -o out.html -m Cover@3 --official official.json",
        ),
        {
            **BOARD,
            **DECIDED,
            "--since": "learn.exam",
            **LABELS,
            "--output": "",
            "--official": {
                "report my.exam -o out.html -m Cover@3 --o": "other.json",
                "": "official.json",
            },
            "--round": "0",
            "--title": "Ours",
            "--interactive": "",
            "--json": "out.json",
            "--min-relevant": "1",
        },
        choices("report", " -o out.html -m Cover@3"),
    ),
    "plot": Uses(
        (
            *(f"plot {kind} my.exam -o out.json" for kind in (*AVERAGED, "grades", "calibration")),
            "plot scatter my.exam -o out.json --official official.json",
            "plot leaderboard my.exam -o out.csv",
            "plot corrected judged-my.exam -o out.json -m P@5",
            "plot attacks gamed.exam -o out.json",
            "plot banks teams.exam -o out.json --reference manual",
            "plot banks matches.exam -o out.json --grader judge",
            "plot abstention replies.exam -o out.json --grader judge",
            "plot citations cited.exam -o out.json --grader other",
        ),
        {
            **BOARD,
            "--measure": {"plot corrected": "RBP@5", "": "P@3"},
            "--subtopics": {f"plot {kind}": "query" for kind in AVERAGED},
            "--output": "",
            "--official": "other.json",
            "--scores": "other.json",
            "--round": "0",
            "--theme": "dark",
            "--reference": {"plot leaderboard": "main"},
            "--by": {"plot banks teams.exam": "keys"},
        },
        choices("plot leaderboard", " -o out.json"),
    ),
    "analyze correlation": Uses(
        (
            "analyze correlation graders.exam --official eight.json --run eight.run",
            "analyze correlation graders.exam --official eight.json --run eight.run --samples 0",
            "analyze correlation my.exam --official official.json -m Cover@3 --format tsv",
            "analyze correlation my.exam",
            "analyze correlation graders.exam -m P@3 --format tsv",
        ),
        {
            **{name: value for name, value in BOARD.items() if name != "--subtopics"},
            "--official": "other.json",
            "--statistic": "tau_ap",
            "--qrels": "made.qrels",
            "--scores": "other.json",
            "--samples": {"analyze correlation graders.exam --off": "60"},
            "--seed": {"analyze correlation graders.exam --off": "9"},
            "--round": "1",
            "--order": {"analyze correlation my.exam": "2"},
            **READ,
        },
        {
            "analyze correlation banks.exam --official official.json": ("--bank small",),
        },
        queries=MANY,
    ),
    "analyze agreement": Uses(
        (
            "analyze agreement my.exam",
            "analyze agreement my.exam --against people --layout strict",
            "analyze agreement graders.exam --against graders --layout strict --at-least 1",
        ),
        {
            **GRADED,
            "--at-least": "2",
            "--min-rating": "2",
            "--min-relevant": "1",
            "--decisions": {"analyze agreement my.exam": "without"},
            "--layout": "merge",
            "--against": "people",
            **READ,
        },
        {
            "analyze agreement banks.exam": ("--bank small",),
        },
    ),
    "analyze corrected": Uses(
        (
            "analyze corrected judged-my.exam -m P@5",
            "analyze corrected judged-my.exam -m P@5 --pairs",
            "analyze corrected judged-my.exam -m P@5 --format tsv",
            "analyze corrected judged.graded.jsonl.gz -m P@3",
        ),
        {
            **GRADED,
            "--measure": {},
            "--min-rating": {"analyze corrected judged.graded": "2"},
            "--min-relevant": "3",
            "--sample": "1",
            "--over": {
                "analyze corrected judged-my.exam -m P@5": "queries",
                "analyze corrected judged.graded": "queries",
            },
            "--alpha": {"analyze corrected judged-my.exam": "0.4"},
            "--run": "late.run",
            "--system": "alpha",
            "--leave-out": "alpha",
            "--pairs": "",
            **READ,
        },
        {
            "analyze corrected judged-graders.exam -m P@5": (
                "--grader other",
                "--grader thomas",
                "--grader query",
            ),
            "analyze corrected judged-banks.exam -m P@5": ("--bank small",),
            "analyze corrected judged-my.exam --sample 1": ("--measure P@5",),
        },
        queries=MANY,
    ),
    "analyze calibration": Uses(
        ("analyze calibration learn.exam", "analyze calibration labels.graded.jsonl"),
        {
            **GRADED,
            "--decisions": "without",
            "--model": "isotonic",
            "--min-relevant": "1",
            "--folds": {"analyze calibration learn.exam": "2"},
            "--samples": {"analyze calibration learn.exam": "60"},
            "--seed": {"analyze calibration learn.exam": "9"},
            "--save": "made.out",
            **READ,
        },
        {
            "analyze calibration graders.exam": (
                "--grader other",
                "--grader thomas",
                "--grader query",
            ),
            "analyze calibration banks.exam": ("--bank small",),
        },
    ),
    "vote": Uses(
        (
            "vote graders.exam --grader judge --grader other",
            "vote graders.exam --grader judge --grader other --rule cascade",
        ),
        {
            "--grader": "",
            "--rule": "mean",
            "--at-least": "1",
            "--steps": "2",
            "--min-rating": "1",
            "--unsure": "2",
            "--audit": "1",
            "--audit-seed": "3",
            **FORMAT,
        },
    ),
    "calibrate": Uses(
        ("calibrate my.exam my.calibration",),
        {"--bank": "small", **FORMAT},
        {"calibrate banks.exam my.calibration": ("--bank small",)},
    ),
    "analyze significance": Uses(
        (
            "analyze significance my.exam",
            "analyze significance my.exam --pairs",
            "analyze significance my.exam --format tsv",
            "analyze significance my.exam -m nDCG@3",
            "analyze significance my.exam -m Cover@2",
        ),
        {
            **BOARD,
            **LABELS,
            "--missing": "skip",
            "--alpha": "0.9",
            "--correction": "none",
            "--permutations": "100",
            "--seed": {"analyze significance my.exam -m nDCG@3": "9"},
            "--pairs": "",
            **READ,
        },
        choices("analyze significance"),
        queries=MANY,
    ),
    "analyze changes": Uses(
        (
            "analyze changes my.exam --since learn.exam",
            "analyze changes my.exam --since learn.exam -m nDCG@3 --format json",
        ),
        {
            **BOARD,
            "--since": "judged-my.exam",
            **READ,
        },
        {
            f"analyze changes {name}.exam --since {name}.exam": fixes
            for name, fixes in (
                ("graders", ("--grader other", "--grader thomas", "--grader query")),
                ("banks", ("--bank small",)),
            )
        },
        queries=MANY,
    ),
    "analyze reliability": Uses(
        (
            "analyze reliability my.exam --drop 0",
            "analyze reliability my.exam -m Cover@2 --subtopics query --drop 0 --format tsv",
            "analyze reliability my.exam -m nDCG@3",
            "analyze reliability my.exam -m P@3",
        ),
        {
            **BOARD,
            "--target": "0.5",
            "--drop": "0.5",
            "--queries": "7",
            # subtopics of unequal size: items are no facet
            "--items": {"analyze reliability my.exam -m Cover": "9"},
            "--samples": {"analyze reliability my.exam -m Cover": "60"},
            "--seed": {"analyze reliability my.exam -m Cover": "9"},
            **READ,
        },
        {
            "analyze reliability graders.exam -m P@3": ("--grader other", "--grader thomas"),
            "analyze reliability graders.exam -m P@1": ("--grader query",),
            "analyze reliability banks.exam": ("--bank small",),
        },
        queries=MANY,
    ),
    "analyze items": Uses(
        (
            "analyze items my.exam --min-rating 5",
            "analyze items my.exam --min-rating 5 --format tsv",
            f"{TWELVE} --limit 9",
            f"{TWELVE} --official twelve.json",
        ),
        {
            **{name: value for name, value in BOARD.items() if name != "--measure"},
            "-k": "1",
            "--min-rating": {"analyze items graders.exam": "2"},
            "--min-relevant": "1",
            "--official": {"analyze items my.exam": "official.json"},
            "--limit": {"analyze items my.exam": "0"},
            **READ,
        },
        choices("analyze items"),
    ),
    "analyze citations": Uses(
        (
            "analyze citations cited.exam --grader judge",
            "analyze citations cited.exam --grader other",
        ),
        {"--grader": {}, "--first": "", **READ},
        {"analyze citations cited.exam": ("--grader other",)},
    ),
    "analyze abstention": Uses(
        ("analyze abstention replies.exam --grader judge",),
        {
            "--grader": {},
            "--bank": {},
            "--run": "replies.run",
            **DECIDED,
            "--min-rating": "2",
            "--system": "chat",
            "--leave-out": "chat",
            "--by": "rule",
            "--level": "0.9",
            "-k": "1",
            **READ,
        },
        {
            "analyze abstention replies.exam": ("--grader judge", "--grader other"),
            "analyze abstention replies-banks.exam --grader judge": ("--bank small",),
        },
    ),
    "analyze banks": Uses(
        (
            "analyze banks teams.exam --reference manual",
            "analyze banks matches.exam --grader judge",
            "analyze banks matches.exam --grader text",
            "analyze banks banks.exam --reference main --effect",
        ),
        {
            "--reference": {},
            "--bank": {"analyze banks teams.exam": "first"},
            "--by": {"analyze banks teams.exam": "keys"},
            "--effect": {"analyze banks teams.exam": ""},
            "--measure": {"analyze banks banks.exam": "P@3"},
            "--official": {"analyze banks banks.exam": "official.json"},
            "-k": "1",
            "--best": "2",
            "--shared": "",
            "--grader": {"analyze banks teams.exam": "judge"},
            "--min-rating": {
                "analyze banks matches.exam --grader judge": "2",
                "analyze banks banks.exam": "2",
            },
            "--table": "new",
            **READ,
        },
        {"analyze banks matches.exam": ("--grader other",)},
    ),
    "analyze unsaid": Uses(
        (
            "analyze unsaid my.exam --pair beta=alpha",
            "analyze unsaid my.exam --pair beta=alpha --format tsv",
        ),
        {
            **{n: v for n, v in BOARD.items() if n not in ("--measure", "--run", *OF_SYSTEMS)},
            "--pair": "alpha=beta",
            "-k": "1",
            "--limit": {"analyze unsaid my.exam": "0"},
            **READ,
        },
        choices("analyze unsaid", " --pair beta=alpha"),
    ),
    "analyze sensitivity": Uses(
        (
            "analyze sensitivity my.exam -m Cover",
            "analyze sensitivity my.exam -m nDCG -m Cover@2 --format json",
            "analyze sensitivity my.exam -m P --cutoff 3 --official official.json",
            "analyze sensitivity graders.exam -m P",
            "analyze sensitivity labels.graded.jsonl -m P --cutoff 2",
        ),
        {
            **BOARD,
            "--measure": "RR",
            "--cutoff": "1",
            "--missing": "skip",
            "--official": "other.json",
            **READ,
        },
        {
            "analyze sensitivity banks.exam": ("--bank small",),
        },
    ),
    "analyze attacks": Uses(
        (
            "analyze attacks gamed.exam --grader judge",
            "analyze attacks my.exam --build --kind question",
            "analyze attacks my.exam --build --dry-run",
        ),
        {
            **GRADED,
            "--min-rating": "2",
            "--bank": {"analyze attacks banks.exam --build": "small"},
            "--grader": "judge",
            "--kind": {"analyze attacks gamed.exam": "question"},
            "--prompt": "thomas",
            "--battery": "other.exam",
            "--build": "",
            "--targets": "1",
            "--seed": "9",
            "--attack": "A4",
            "--rating": "3",
            "--texts": "texts.jsonl",
            "--dry-run": "",
            **READ,
        },
        {"analyze attacks banks.exam --build": ("--bank small",)},
    ),
    "bank generate": Uses(
        (
            f"bank generate my.exam {HF} --prompt dl-questions",
            f"bank generate my.exam {OPENAI} --prompt dl-questions",
            f"bank generate my.exam {OPENAI} --prompt dl-questions --dry-run",
            f"bank generate my.exam {OPENAI} --prompt dl-questions --query q1",
            f"bank generate banks.exam {MORE} --dry-run",
        ),
        {
            **MODEL,
            "--grader": "",
            "--prompt": "dl-nuggets",
            "--bank": {"bank generate banks.exam": "small"},
            "--per": "subtopic",
            "--count": "3",
            "--decode": {f"bank generate my.exam {OPENAI}": "json"},
            "--keys": "",
            "--query": "q1",
            "--more": "2",
            "--grounded": "1",
            "--dry-run": "",
            **FORMAT,
        },
    ),
    "bank list": Uses(("bank list my.exam",), FORMAT),
    "bank show": Uses(
        ("bank show banks.exam", "bank show split.exam"),
        {**BANK, "--query": "q1", "--part": "sealed", **FORMAT},
    ),
    "bank edit": Uses(
        (
            "bank edit banks.exam add q1 'What is new?'",
            f"bank edit banks.exam reword {ITEM} 'What is new?'",
            f"bank edit banks.exam retire {ITEM}",
            f"bank edit banks.exam weight {ITEM} 2",
            f"bank edit banks.exam key {ITEM} gas",
            f"bank edit banks.exam key {ITEM} gas --dry-run",
        ),
        {
            **EDIT,
            "--dry-run": "",
            "--query": "q2",
            "--kind": "nugget",
            "--subtopic": "a",
            "--answer": "gas",
            "--model": "m",
        },
        {"bank edit named.exam retire i1": ("--query q1",)},
    ),
    "bank apply": Uses(
        (
            "bank apply banks.exam edited.csv",
            "bank apply banks.exam edited.csv --dry-run",
            "bank apply banks.exam fewer.csv",
        ),
        {
            **EDIT,
            "--bank": {},
            "--retire-missing": {"bank apply banks.exam fewer": ""},
            "--force": {},
            "--dry-run": "",
        },
        {
            "bank apply banks.exam stale.csv": ("--force",),
            "bank apply banks.exam small.csv": ("--bank small",),
        },
    ),
    "bank log": Uses(
        ("bank log banks.exam",),
        {
            **BANK,
            "--query": "q1",
            "--item": ITEM,
            "--kind": f"question --item {ITEM}",
            "--last": "1",
            **FORMAT,
        },
    ),
    "bank diff": Uses(
        ("bank diff banks.exam 1", "bank diff banks.exam main small"), {**BANK, **FORMAT}
    ),
    "bank revert": Uses(
        (
            "bank revert banks.exam --to 3",
            "bank revert banks.exam --to 3 --dry-run",
            "bank revert banks.exam --edit 37",
        ),
        {
            **EDIT,
            "--bank": {"bank revert banks.exam --to": "small"},
            "--to": {},
            "--edit": {},
            "--dry-run": "",
        },
        {"bank revert banks.exam --edit 38": ("--bank small",)},
    ),
    "bank duplicates": Uses(("bank duplicates banks.exam",), {**BANK, **FORMAT}),
    "bank match": Uses(
        (
            "bank match teams.exam new.exam --reference manual",
            "bank match banks.exam new.exam --reference main --by coverage --grader judge",
        ),
        {
            "--reference": {},
            "--bank": {"bank match teams.exam": "first"},
            "--by": "keys",
            "--grader": {"bank match teams.exam": "judge"},
        },
    ),
    "bank lint": Uses(
        ("bank lint banks.exam", "bank lint banks.exam --all"),
        {**GRADED, "--min-rating": "2", "--min-relevant": "1", "--all": "", **FORMAT},
    ),
    "bank improve": Uses(
        ("bank improve banks.exam", "bank improve banks.exam --apply"),
        {
            **GRADED,
            "--min-rating": "2",
            "-k": "2",
            "--subtopics": "pooled",
            "--official": "official.json",
            "--decide": "2",
            "--splits": "3",
            "--seed": "4",
            "--apply": "",
            "--author": {"bank improve banks.exam --apply": "ann"},
            "--reason": {"bank improve banks.exam --apply": "first"},
            **FORMAT,
        },
    ),
    "bank split": Uses(
        ("bank split banks.exam --secret 0.5",),
        {
            **BANK,
            **FORMAT,
            "--secret": "",
            "--seed": "4",
            "--public": "public.out",
            "--sealed": "sealed.out",
            "--again": {},
        },
        {"bank split split.exam --secret 0.5": ("--again",)},
    ),
    "bank verify": Uses(
        ("bank verify banks-split.exam", "bank verify split.jsonl"),
        {**BANK, "--commitment": "0" * 64, "--against": "split.exam", **FORMAT},
    ),
    "bank compare": Uses(
        ("bank compare split.exam", "bank compare split.exam -m nDCG@3"),
        {
            **{name: value for name, value in BOARD.items() if name not in OF_SYSTEMS},
            **FORMAT,
        },
        {
            "bank compare graders-split.exam": ("--grader other", "--grader nugget"),
            "bank compare banks-split.exam": ("--bank small",),
        },
    ),
    "plugins": Uses(("plugins",), FORMAT),
    "reproduce": Uses(
        ("reproduce",),
        {"--qrels": "judged.qrels", "--official": "official.json", "--grader": {}, **FORMAT},
        {"reproduce graders.exam": ("--grader other",)},
    ),
    "prompts": Uses(
        ("prompts", "prompts thomas", "prompts draft", "prompts car-questions"),
        {"--toml": "", **FORMAT},
    ),
}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its name."""
    for name, one in group.commands.items():
        where = f"{path} {name}".strip()
        if hasattr(one, "commands"):
            yield from commands(one, where)
        else:
            yield where, one


ALL = dict(commands(app))


def spellings(command: Any) -> list[list[str]]:
    """All spellings of each option: --measure and -m, --resume and --no-resume.

    A command that takes graders has those of all graders of exampp, too.
    """
    variants = [command, *filter(None, (command.with_grader(["--grader", g]) for g in BUILT_IN))]
    params = {one.name: one for variant in variants for one in variant.params}
    options = [one for one in params.values() if one.param_type_name == "option"]
    return [[*one.opts, *one.secondary_opts] for one in options]


class Seen(NamedTuple):
    """Output, exit code and files of a command."""

    code: int
    out: str
    err: str
    files: Mapping[str, object]


CHANGING = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\s,\"|]*|\"owner\":\"[^\"]*\"")
"""Times of day and process ids; nothing else may differ between two runs of one command line."""


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    """The grades of a file that nobody wrote into are those that were read of it before."""
    known: dict[object, Gradebook] = {}
    read = read_model.read_gradebook

    def read_once(
        connection: sqlite3.Connection, grader: StoredGrader, bank: str, part: str | None = None
    ) -> Gradebook:
        # what is open, which for a graded file is one of the collections made from it
        path = cast("GuardedConnection", connection).path
        log = path.with_name(f"{path.name}-wal")
        if connection.total_changes or (log.exists() and log.stat().st_size):
            return read(connection, grader, bank, part)
        asked = path.name, stamp(path.stat()), grader.key, bank, part
        if asked not in known:
            known[asked] = read(connection, grader, bank, part)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_model, "read_gradebook", read_once)
        yield


@pytest.fixture
def example(built: Build, name: str) -> Path:
    queries = OPTIONS[name].queries
    return built(f"options-{queries}", lambda folder: options_example.make(folder, queries))


Run = Callable[[str], Seen]


@pytest.fixture
def run(
    example: Path, tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs a command line in a fresh copy of the example.

    Models only write how they were made, and of a figure in a page stands what would be drawn.
    Tables have all their notes, as with --notes: some options change what a minor one says.
    """
    from exampp import web
    from exampp.graders import local, openai
    from exampp.results import notes
    from exampp.results.plots import figure

    recorded = options_example.Recorded
    monkeypatch.setattr(local, "load_local_grader", recorded)
    monkeypatch.setattr(local, "finetune", options_example.finetuned)
    monkeypatch.setattr(openai, "OpenAICompatibleGrader", recorded)
    monkeypatch.setattr(web, "serve", recorded)
    monkeypatch.setattr("exampp.web.api.serve_api", options_example.served)
    monkeypatch.setattr("exampp.web.mcp.serve_streams", options_example.served)
    undrawn = SimpleNamespace(vegalite_to_svg=lambda *drawn, **how: f"<svg {drawn} {how}/>")
    monkeypatch.setattr(figure, "_converter", lambda: undrawn)
    monkeypatch.setattr(notes, "by_severity", lambda found: (tuple(found), ()))
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: "0" * size)

    here = Path(shutil.copytree(example, tmp_path / "here"))
    monkeypatch.chdir(here)
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")

    untouched = stamps(example)

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    def run_one(line: str) -> Seen:
        code, out, err = exampp_command(*shlex.split(line))
        changed = {path.name: content(path) for path in restored(here, example, untouched)}
        return Seen(code, CHANGING.sub("", out), CHANGING.sub("", err), changed)

    return run_one


Stamp = tuple[int, int]


def restored(here: Path, example: Path, untouched: Mapping[str, Stamp]) -> Iterator[Path]:
    """The files that are not as in the example; when they were looked at, they are again."""
    found = stamps(here)
    for name in sorted(found.keys() | untouched.keys()):
        if found.get(name) != untouched.get(name):
            path = here / name
            yield path
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            if name in untouched:
                shutil.copy2(example / name, path)


def stamps(folder: Path) -> dict[str, Stamp]:
    """Return the size and the time of each file."""
    return {one.name: stamp(one.stat()) for one in os.scandir(folder)}


def stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns


def content(path: Path) -> object:
    """Return the content of a file or folder; of a collection the rows of its tables."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        return [(str(one.relative_to(path)), content(one)) for one in files]
    found = path.read_bytes() if path.exists() else b""
    if not found.startswith(b"SQLite format 3"):
        return CHANGING.sub("", found.decode("latin-1"))
    opened = sqlite3.connect(path)
    names = [
        row[0]
        for row in opened.execute(
            "SELECT name FROM sqlite_master WHERE type='table' AND name <> 'checksum'"
        )
    ]
    rows = []
    for name in sorted(names):
        table = opened.execute(f"SELECT * FROM {name}")
        columns = tuple(column[0] for column in table.description)
        rows += [stable(name, columns, *row) for row in table]
    opened.close()
    return rows


@functools.lru_cache(maxsize=100_000, typed=True)
def stable(table: str, columns: tuple[str, ...], *row: object) -> str:
    """A row without how long something took; most are those that the example has."""
    values = {n: value for n, value in zip(columns, row, strict=True) if n != "seconds"}
    return CHANGING.sub("", f"{table} {values}")


def value_of(given: Value, line: str) -> str | None:
    if isinstance(given, str):
        return given
    return next((value for start, value in given.items() if line.startswith(start)), None)


ELSEWHERE = {
    *(
        "--grace",
        "--max-failures",
        *("--files", "--serve", "--port"),
        "--notes",
        "--sample",
        "--price-hour",
    ),
    *("--on", "--workers"),
    *("--batch", "--batch-file", "--replies", "--cancel-batches", "--poll"),
}
"""Options that need an interrupt or another run (tests/cli/test_interrupting.py), failures, a
measured time, a cluster or a provider of batches (tests/grade), or that a command has which tells
the time (tests/cli/test_help.py, tests/cli/test_commands.py), or a terminal
(tests/cli/test_terminal.py)."""


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_changes_something_or_is_refused(name: str, run: Run) -> None:
    check_uses(name, run)


def check_uses(name: str, run: Run) -> None:
    """Fail where an option of a command changes nothing and is not refused."""
    uses = OPTIONS[name]
    honoured = {one for param in ALL[name].params if param.required for one in param.opts}
    idle: list[str] = []
    for line in uses.lines:
        before = run(line)
        if before.code == uses.refused:
            pytest.fail(f"{line}\n{before.err}", pytrace=False)
        if run(line) != before:
            pytest.fail(f"{line}: its own result differs from run to run", pytrace=False)
        for option, longer in longer_lines(line, uses.options):
            after = run(longer)
            if "defect of exampp" in after.err:
                pytest.fail(after.err, pytrace=False)
            if after.code != uses.refused and after != before:
                honoured.add(option)
            elif after.code != uses.refused or not after.err.startswith("exampp: "):
                idle.append(f"{longer}  {after.err.strip()[:200]}")
        honoured |= {option for option in uses.options if is_given(option, line)}
    honoured |= set(fixing(uses, run))
    if idle:
        pytest.fail("these change nothing:\n" + "\n".join(idle), pytrace=False)
    if never := sorted(set(uses.options) - honoured - ELSEWHERE):
        pytest.fail(f"never honoured: {', '.join(never)}", pytrace=False)


def fixing(uses: Uses, run: Run) -> Iterator[str]:
    """The options that fix command lines, which are refused as they stand."""
    for line, options in uses.fixed.items():
        if run(line).code != uses.refused:
            pytest.fail(f"{line} is not refused", pytrace=False)
        for option in options:
            after = run(f"{line} {option}")
            if after.code == uses.refused:
                pytest.fail(after.err, pytrace=False)
            yield option.split()[0]


def longer_lines(line: str, options: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """The options that a use has not yet, each with the use that has it."""
    for option, values in options.items():
        value = value_of(values, line)
        if value is not None and not is_given(option, line):
            yield option, f"{line} {option} {value}"


def is_given(option: str, line: str) -> bool:
    return bool(set(shlex.split(line)) & {option, SHORT.get(option)})


SHORT = {"--measure": "-m", "--output": "-o"}
