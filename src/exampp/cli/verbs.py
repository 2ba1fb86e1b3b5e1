"""The verbs of `exampp`: by purpose, each with where it is and what it does.

A verb's module is imported when the verb runs or its own help is asked for: the help of `exampp`
itself takes these lines alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Verb(NamedTuple):
    """Where a command is, `module:name` in this package, and what it does, in a sentence."""

    home: str
    summary: str


PURPOSES: Mapping[str, Mapping[str, Verb]] = {
    "Make and fill a collection": {
        "demo": Verb(
            "demo:demo", "Import, grade and evaluate a small example, offline, in under a minute."
        ),
        "init": Verb(
            "inputs:init",
            "Make an empty collection, or with --config a file that describes a whole exam.",
        ),
        "import": Verb(
            "inputs:import_", "Bring files into a collection, which is made if there is none."
        ),
        "merge": Verb(
            "merge:merge",
            "Bring what other collections hold into one: copies of it, or shards of one exam.",
        ),
        "check": Verb(
            "check:check",
            "Check a collection for damage, changes by other programs, and impossible values.",
        ),
        "citations": Verb(
            "citations:citations",
            "Make a collection of the sentences of answers and of what they cite.",
        ),
        "systems": Verb(
            "systems:systems",
            "List the systems with the passages that each returns, rename one, or remove some.",
        ),
        "bank": Verb("bank:app", "Own a bank: generate, look, edit, check, seal."),
        "export": Verb(
            "inputs:export", "Write a collection, or a part of it, in a format of the field."
        ),
    },
    "Grade": {
        "grade": Verb(
            "grade:grade",
            "Grade every passage against every item of the bank, as far as it is due.",
        ),
        "status": Verb(
            "grade:status",
            "Show what the collection holds, and per grader what is done, due and failed, and why.",
        ),
        "pool": Verb(
            "pool:pool",
            "Show the judgment pool: its size, what each system brings, and the cells to grade.",
        ),
        "reparse": Verb(
            "reparse:reparse", "Read the kept replies of a grader again, without a model."
        ),
        "prompts": Verb("prompts:app", "Show what a grader is asked, and a writer of banks."),
    },
    "Evaluate": {
        "evaluate": Verb(
            "evaluate:evaluate",
            "Score all systems: EXAM-Cover, and ranking measures on EXAM-Qrels.",
        ),
        "plot": Verb("plot:plot", "Draw one figure."),
        "report": Verb(
            "report:report",
            "Write one self-contained page: tables, plots, warnings, methods and references.",
        ),
    },
    "Trust": {
        "analyze": Verb("analyze:app", "Ask how far the leaderboard can be trusted."),
        "calibrate": Verb(
            "calibrate:calibrate",
            "Label all graded passages by a calibration; the labels are grades of a grader of "
            "their own.",
        ),
        "vote": Verb(
            "vote:vote", "Let several graders vote; the votes are grades of a grader of their own."
        ),
        "gate": Verb(
            "gate:gate",
            "Pass or fail systems by requirements, such as Cover@20>=0.7 or no worse than before.",
        ),
        "compare": Verb(
            "compare:compare",
            "Explain the difference of system B to system A: in total, by query, by item.",
        ),
    },
    "Oversee": {
        "review": Verb(
            "review:app",
            "Look at grades and decisions: four lists that show what is wrong with grader or bank.",
        ),
        "search": Verb(
            "search:search",
            "Find queries, items, passages, replies of graders, reasons of decisions and edits.",
        ),
        "serve": Verb(
            "serve:serve",
            "Open a collection in the browser: judge, edit the bank, see what it changes.",
        ),
    },
    "More": {
        "run": Verb(
            "run:run",
            "Import, grade and evaluate what a configuration file says, and only what is missing.",
        ),
        "finetune": Verb(
            "finetune:finetune",
            "Train a model to extract answers, or say that there is none (the papers' SQuAD2 "
            "variation).",
        ),
        "reproduce": Verb(
            "reproduce:reproduce",
            "Recompute the papers' printed tables and set them beside the print.",
        ),
        "plugins": Verb(
            "plugins:plugins",
            "List what other packages add: graders, prompts, formats and measures.",
        ),
    },
}
