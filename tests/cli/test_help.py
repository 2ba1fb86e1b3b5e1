"""Every verb is found by `exampp -h`; every help is whole, and ends with an example that runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import options_example
import pytest
from support.commands import Commands

import exampp
from exampp.cli.command import FEW, PANELS, by_panel, panel_of
from exampp.cli.main import PURPOSES, app
from exampp.graders.options import declared_options
from exampp.graders.registry import BUILT_IN
from exampp.graders.scripted import ScriptedGrader

GROUP: Any = app


def walk(group: Any, path: str = "exampp") -> Iterator[tuple[str, Any]]:
    """Every command below a group, by what is typed."""
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from walk(one, f"{path} {name}")
        else:
            yield f"{path} {name}", one


ALL = dict(walk(GROUP))
SUMMARIES = {name: summary for of in PURPOSES.values() for name, (_, summary) in of.items()}


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("flag", ["-h", "--help", "--help-all"])
def test_verbs_stand_under_their_purposes_uncut(exampp_command: Commands, flag: str) -> None:
    said = exampp_command(flag).out
    shown = [name for name in PURPOSES if flag == "--help-all" or not name.startswith("More")]
    assert re.findall(r"\n([A-Z][\w ]+):\n", said) == ["Options", *shown]
    for purpose in shown:
        for name, (_, summary) in PURPOSES[purpose].items():
            assert f"{name} {summary}" in words(said)
    assert "exampp --help-all" in said
    assert "..." not in said.partition("[ARGS]...")[2]


@pytest.mark.parametrize("group", ["bank", "analyze"])
def test_groups_are_not_cut_either(exampp_command: Commands, group: str) -> None:
    said = words(exampp_command(group, "--help-all").out)
    for name, one in GROUP.commands[group].commands.items():
        assert f"{name} {words(one.help.partition(chr(10) * 2)[0])}" in said


def test_the_summaries_are_the_first_sentences_of_the_helps() -> None:
    for name, summary in SUMMARIES.items():
        assert words(GROUP.commands[name].help.partition("\n\n")[0]) == summary
    for summary in SUMMARIES.values():
        assert re.fullmatch(r"[A-Z].*\.", summary)


def test_the_help_of_exampp_imports_no_verb() -> None:
    code = "import sys; from exampp.cli.main import main; sys.argv = ['exampp', '-h']; main()"
    say = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    ran = subprocess.run([sys.executable, "-c", f"{say}; {code}"], capture_output=True, text=True)
    verbs = {
        f"exampp.cli.{home.partition(':')[0]}" for v in PURPOSES.values() for home, _ in v.values()
    }
    assert not verbs - {"exampp.cli.main"} & set(ran.stderr.split())
    assert "exampp.collection" not in ran.stderr


@pytest.mark.parametrize("line", ["bank", "import", "grade", "review", "evaluate", "analyze items"])
def test_a_help_loads_neither_prompts_nor_the_store(line: str) -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from exampp.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, *line.split(), "--help"]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()
    heavy = {"exampp.prompts", "exampp.store.connection", "exampp.store.grades", "numpy", "sqlite3"}
    assert heavy & set(modules) == set()


def with_graders() -> Iterator[tuple[str, list[Any]]]:
    """Every command with its options, also with those of each grader."""
    for path, command in ALL.items():
        for grader in ("", *BUILT_IN):
            named = command.with_grader(["--grader", grader]) if grader else command
            if named is not None:
                options = [one for one in named.params if one.param_type_name == "option"]
                yield f"{path} --grader {grader}" if grader else path, options


def test_help_shows_common_options_and_help_all_shows_all(exampp_command: Commands) -> None:
    for path, command in ALL.items():
        verb = path.split()[1:]
        short, whole = (exampp_command(*verb, flag).out for flag in ("--help", "--help-all"))
        options = [one for one in command.params if one.param_type_name == "option"]
        for option in options:
            name = max(option.opts, key=len)
            assert re.search(rf"^ .*{name}(?![\w-])", whole, re.M), f"{path} {name}"
            assert bool(re.search(rf"^  (-\w, )?{name}(?![\w-])", short, re.M)) != option.rare
        assert sum(not one.rare for one in options) <= FEW, path
        assert re.search(r"^  --help-all +Show all options.$", short, re.M)


TASKS = """
exampp import my.exam answers.csv
exampp import my.exam topics.trec judgments.qrels runs --corpus passages.jsonl
exampp bank generate my.exam --grader openai --model m --base-url URL --prompt dl-questions
exampp grade my.exam --grader openai --model m --base-url URL
exampp grade my.exam --grader hf --model google/flan-t5-large
exampp evaluate my.exam --official leaderboard.json
exampp compare my.exam bm25 dense
exampp gate my.exam --baseline last.json --margin 0.02
exampp serve my.exam --assessor ann
exampp report my.exam -o report.html --official leaderboard.json
""".strip().splitlines()


@pytest.mark.parametrize("task", TASKS)
def test_a_common_task_takes_few_options_and_common_ones(task: str) -> None:
    words = task.split()
    command = next(ALL[path] for path in (" ".join(words[:3]), " ".join(words[:2])) if path in ALL)
    command = command.with_grader(words) or command
    known = {name: one for one in command.params for name in one.opts}
    options = [known[word] for word in words if word.startswith("-")]
    assert len(options) <= 4
    assert not [one.opts for one in options if one.rare]


def test_no_sentence_of_a_help_is_long() -> None:
    texts = {command.help for command in ALL.values()}
    texts |= {option.help for _, options in with_graders() for option in options}
    sentences = (
        sentence
        for text in texts
        for sentence in re.split(r"(?<=[.;:])\s+", re.sub(r"\[default[^]]*\]", "", text))
    )
    assert [one for one in sentences if len(one.split()) > 20] == []


def test_the_options_of_a_grader_are_shown_beside_its_name(exampp_command: Commands) -> None:
    plain = exampp_command("grade", "--help").out
    assert "exampp grade --grader openai --help" in plain
    assert "--base-url" not in plain
    of_grader = exampp_command("grade", "--grader", "openai", "--help").out
    for option in (one for one in openai_options() if one.shown):
        assert option.help.split(".")[0] in words(of_grader)
    assert "exampp grade --grader openai --help" not in of_grader
    assert "--shard" not in of_grader


def openai_options() -> Iterator[Any]:
    yield from declared_options(BUILT_IN["openai"].options).values()


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("pool my.exam", "exampp status COLLECTION --pool"),
        ("prompts list", "exampp prompts"),
        ("prompts show thomas", "exampp prompts NAME"),
        ("bank export my.exam bank.csv", "exampp export COLLECTION FILE"),
        ("analyze leaderboards my.exam", "exampp analyze correlation COLLECTION"),
        ("review my.exam plan", "exampp review COLLECTION sample"),
    ],
)
def test_a_former_name_leads_to_the_command(
    exampp_command: Commands, former: str, now: str
) -> None:
    ran = exampp_command(*former.split())
    assert ran.code == 2
    assert ran.err.endswith(f"was renamed. Type: {now}\n")


def test_a_long_help_has_its_options_by_purpose() -> None:
    for path, options in with_graders():
        panels = dict(by_panel(options))
        assert sum(map(len, panels.values())) == len(options)
        for option in options:
            panel = panel_of(option)
            assert panel in PANELS, (
                f"{option.opts[0]} of {path} is in the panel {panel!r}: add its name to PANELS in "
                "cli/command.py, or declare it with panel=..., which is one of "
                f"{', '.join(PANELS)}"
            )
        if len(options) > FEW:
            assert len(panels) > 2


def test_every_option_of_a_panel_exists() -> None:
    known = {
        opt.lstrip("-")
        for _, options in with_graders()
        for one in options
        if one.panel is None
        for opt in one.opts
    }
    listed = {name for names in PANELS.values() for name in names.split()}
    assert listed <= known, f"not options: {listed - known}. Take them out of PANELS"


def test_every_help_ends_with_its_example_in_one_line(exampp_command: Commands) -> None:
    for path, command in ALL.items():
        assert command.example.startswith(f"{path} ") or command.example == path, path
        said = exampp_command(*path.split()[1:], "--help").out
        assert said.endswith(f"\nExample:\n  {command.example}\n"), path
        assert "Example:" not in said.partition("\nExample:")[0]


BEFORE = {
    "exampp bank apply": "exampp export my.exam edited.csv",
    "exampp gate": "exampp evaluate my.exam --per-query --format json > last.json",
}
"""Commands that make the file of an example."""


def grade_citations() -> None:
    with exampp.Collection("cited.exam") as opened:
        opened.grade(lambda *_: 1, name="mine", scale=(0, 2))


def import_team_banks() -> None:
    with exampp.create("teams.exam", exist_ok=True) as opened:
        opened.import_files("queries.tsv", "questions.tsv", "team-banks.tsv")


def grade_by_words() -> None:
    with exampp.Collection("my.exam") as opened:
        opened.grade(lambda *_: 4, name="words-v1")


def grade_responses() -> None:
    with exampp.create("museum.exam") as opened:
        opened.import_files("museum-queries.jsonl", "museum-answers.jsonl", "museum-facts.csv")
        opened.grade("draft")


FILES: Mapping[str, Callable[[], object]] = {
    "exampp analyze changes": lambda: shutil.copy("my.exam", "last-week.exam"),
    "exampp analyze abstention": grade_responses,
    "exampp analyze banks": import_team_banks,
    "exampp bank match": import_team_banks,
    "exampp analyze citations": grade_citations,
    "exampp merge": lambda: shutil.copy("my.exam", "copy.exam"),
    "exampp vote": grade_by_words,
    "exampp finetune": lambda: Path("train-v2.0.json").touch(),
}
"""Makers of files that no command writes."""


@pytest.mark.usefixtures("encoded_by_words")
def test_the_examples_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exampp_command: Commands
) -> None:
    """In a folder that `demo --files` fills, as a new user would try them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("exampp.graders.local.finetune", options_example.finetuned)
    served: list[object] = []
    monkeypatch.setattr("exampp.web.serve", lambda path, **_: served.append(path))
    monkeypatch.setattr("exampp.web.api.serve_api", lambda *_, **__: served.append("api"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    # a gate asks for grades of all that is there, to which others add
    first = ["exampp demo", "exampp import", "exampp grade", "exampp gate", "exampp citations"]
    # these make graders of their own, and from then on one must be named
    last = ["exampp calibrate", "exampp vote", "exampp reparse"]
    for path in [*first, *(path for path in ALL if path not in (*first, *last)), *last]:
        if path in BEFORE:
            assert exampp_command.line(BEFORE[path]).code == 0
        elif path == "exampp analyze calibration":
            with exampp.Collection("my.exam") as opened:
                queries = opened.grades().gradebook.queries
                opened.add(
                    qrels={q.query_id: {p: len(p) % 3 for p in q.passage_ids} for q in queries}
                )
        elif path == "exampp analyze corrected":
            with exampp.Collection("my.exam") as opened:
                grades = opened.grades()
                plan = grades.decisions.plan(9, "P@20")
                for number, one in enumerate(plan.drawn):
                    grades.decisions.judge(plan, *one[:2], number % 3, author="ann")
        elif path in FILES:
            FILES[path]()
        elif path == "exampp reparse":
            with exampp.Collection("my.exam") as opened:
                answers = ScriptedGrader("4", name="gpt-5-mini")
                opened.grade(answers, model="gpt-5-mini", max_queries=1)
        ran = exampp_command(*expanded(ALL[path].example))
        assert ran.code == 0, f"{ALL[path].example}\n{ran.err}"
        if path == "exampp demo":
            monkeypatch.chdir("tour")
    assert list(map(str, served)) == ["my.exam", "api"]


def expanded(command: str) -> list[str]:
    """The arguments of a command, as a shell passes them on."""
    return [
        str(one)
        for word in shlex.split(command)[1:]
        for one in (sorted(Path().glob(word)) if "*" in word else [word])
    ]
