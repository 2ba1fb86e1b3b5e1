"""The gate in a workflow of GitHub Actions: one comment, kept up to date, on a stub of the API."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.commands import Commands, Ran
from support.github_api import (
    BASE,
    HEAD,
    PERSON,
    READ_ONLY,
    GitHub,
    environment,
    github,
    pull_request,
    push,
)

import exampp
from exampp.analysis.gate import GateResult
from exampp.integrations import github as integration
from exampp.integrations.github import COMMENT_LIMIT, base_file, publish_error, read_workflow
from exampp.project.gate_file import run_gate
from exampp.results.result import markdown_escape

ROOT = Path(__file__).parents[1]
PASSED, FAILED, OPEN = "dense Cover@20>=0.2", "chat-v2 Cover@20>=0.7", "dense Cover@20>=0.7"
MARKER = "<!-- exampp gate: evaluate/gate/demo.exam -->\n"


@pytest.fixture
def api() -> Iterator[GitHub]:
    with github() as started:
        yield started


class Workflows:
    """Runs `exampp gate --github` as a workflow does, each run with empty outputs."""

    def __init__(
        self, command: Commands, patch: pytest.MonkeyPatch, folder: Path, api: GitHub, exam: Path
    ) -> None:
        self.command, self.patch, self.folder, self.api = command, patch, folder, api
        self.exam = exam

    def __call__(
        self, event: Any, required: str = PASSED, *more: object, name: str = "", **variables: str
    ) -> Ran:
        for path in ("summary.md", "output"):
            (self.folder / path).unlink(missing_ok=True)
        kind = "pull_request" if isinstance(event, dict) and "pull_request" in event else "push"
        for key, value in (
            environment(self.folder, event, name or kind, self.api.url) | variables
        ).items():
            self.patch.setenv(key, value)
        system, requirement = required.split()
        options = ("--require", requirement, "--system", system, *more, "--github")
        return self.command("gate", self.exam, *options)

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def workflow(
    exampp_command: Commands,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    api: GitHub,
    demo_exam: Path,
) -> Workflows:
    monkeypatch.setattr(integration, "RETRIES", (0.0, 0.0))
    return Workflows(exampp_command, monkeypatch, tmp_path, api, demo_exam)


@pytest.mark.parametrize(
    ("required", "code", "verdict", "icon"),
    [
        (PASSED, 0, "passed", ":white_check_mark:"),
        (FAILED, 1, "failed", ":x:"),
        (OPEN, 2, "undecided", ":grey_question:"),
    ],
)
def test_three_verdicts(
    workflow: Workflows, api: GitHub, required: str, code: int, verdict: str, icon: str
) -> None:
    ran = workflow(pull_request(), required)
    assert ran.code == code
    (comment,) = api.comments
    body = comment["body"]
    assert body.startswith(f"{MARKER}### {icon} demo.exam: {verdict}\n\nGate {verdict}: of 1 check")
    assert "| system | requirement | verdict |" in body
    assert (
        f"Commit {HEAD[:7]}. [Log of the run](https://github.example/o/r/actions/runs/12345)"
        in body
    )
    assert workflow.summary == f"{body.removeprefix(MARKER)}\n"
    assert workflow.outputs == {
        "verdict": verdict,
        "exit-code": str(code),
        "summary": body.splitlines()[3],
        "comment": comment["html_url"],
    }
    assert f"::notice title=exampp gate::Comment: {comment['html_url']}" in ran.out
    kind = {0: "notice", 1: "error", 2: "warning"}[code]
    assert f"::{kind} title=exampp gate::Gate {verdict}" in ran.out


def test_a_new_push_updates_the_comment(workflow: Workflows, api: GitHub) -> None:
    workflow(pull_request(), FAILED)
    assert workflow(pull_request("synchronize"), PASSED).code == 0
    assert [one["body"].splitlines()[1] for one in api.comments] == [
        "### :white_check_mark: demo.exam: passed"
    ]
    # two workflows of one moment may both have written the first comment: none stays behind
    api.add(f"{MARKER}old")
    workflow(pull_request("synchronize"), OPEN)
    assert all("demo.exam: undecided" in one["body"] for one in api.comments)


def test_the_comment_is_found_on_the_second_page(workflow: Workflows, api: GitHub) -> None:
    for number in range(120):
        api.add(f"comment {number}")
    mine = api.add(f"{MARKER}old")
    assert workflow(pull_request("synchronize")).code == 0
    assert len(api.comments) == 121
    assert "demo.exam: passed" in mine["body"]
    assert [one.split()[0] for one in api.requests] == ["GET", "GET", "PATCH"]


def test_gates_of_other_titles_and_jobs_have_other_comments(
    workflow: Workflows, api: GitHub
) -> None:
    workflow(pull_request())
    workflow(pull_request(), PASSED, "--title", "nightly")
    workflow(pull_request(), GITHUB_JOB="other")
    assert len(api.comments) == 3
    workflow(pull_request(), FAILED, "--title", "nightly")
    headings = [one["body"].splitlines()[1].rpartition(": ") for one in api.comments]
    assert [(title.split()[-1], verdict) for title, _, verdict in headings] == [
        ("demo.exam", "passed"),
        ("nightly", "failed"),
        ("demo.exam", "passed"),
    ]


def test_a_person_who_copies_the_marker_keeps_the_comment(workflow: Workflows, api: GitHub) -> None:
    theirs = api.add(f"{MARKER}passed, believe me", PERSON)
    workflow(pull_request(), FAILED)
    assert theirs["body"].endswith("believe me")
    assert "failed" in api.comments[1]["body"]
    # the token of a person updates that person's comments
    api.login = PERSON["login"]
    api.comments.pop()
    workflow(pull_request(), FAILED)
    assert len(api.comments) == 1
    assert "failed" in theirs["body"]


@pytest.mark.parametrize(
    ("fork", "faults", "why"),
    [
        (True, [(403, READ_ONLY)], "the token of a pull request from a fork may only read"),
        (False, [(403, READ_ONLY)], 'Give the job "permissions: pull-requests: write"'),
        (False, [(422, "Body is too long")], "GitHub answered 422 (Body is too long)"),
        (False, [(502, "")], "GitHub answered 502 (no message)"),
        (True, [(403, "API rate limit exceeded")], "step: GitHub answered 403 (API rate limit"),
        (False, [(403, "issue is locked")], "GitHub answered 403 (issue is locked)\n"),
    ],
)
def test_without_a_comment_the_verdict_stands(
    workflow: Workflows, api: GitHub, fork: bool, faults: list[tuple[int, str]], why: str
) -> None:
    api.faults["POST"] = [(status, json.dumps({"message": text})) for status, text in faults]
    ran = workflow(pull_request(fork=fork), FAILED)
    assert ran.code == 1
    assert "Gate failed" in workflow.summary
    (line,) = (one for one in ran.out.splitlines() if one.startswith("::warning"))
    assert "Not everything was published:" in line
    assert why in f"{line}\n".replace("published", "step")
    assert (workflow.outputs["verdict"], workflow.outputs["comment"]) == ("failed", "")
    # a repeated POST could write a second comment
    assert sum(one.startswith("POST") for one in api.requests) == 1


def test_a_fork_without_a_token_gets_a_summary(workflow: Workflows, api: GitHub) -> None:
    for event in (pull_request(fork=True), pull_request(head={"sha": HEAD, "repo": None})):
        ran = workflow(event, PASSED, GITHUB_TOKEN="")
        assert ran.code == 0
        assert "the token of a pull request from a fork may only read" in ran.out
        assert "demo.exam: passed" in workflow.summary
    assert api.requests == []


def test_a_server_that_fails_once_is_asked_again(workflow: Workflows, api: GitHub) -> None:
    api.faults = {"GET": [(503, "busy"), (200, "<html>")]}
    assert "Comment: " in workflow(pull_request()).out
    api.faults = {"GET": [(500, "")] * 3}
    assert "Not everything was published" in workflow(pull_request()).out
    assert len(api.comments) == 1


def test_an_unreachable_server_is_reported(workflow: Workflows) -> None:
    ran = workflow(pull_request(), GITHUB_API_URL="http://127.0.0.1:9")
    assert ran.code == 0
    assert "GitHub could not be reached" in ran.out


def test_a_push_has_a_summary_only(workflow: Workflows, api: GitHub) -> None:
    ran = workflow(push())
    assert ran.code == 0
    assert "Not everything" not in ran.out
    assert "demo.exam: passed" in workflow.summary
    assert api.requests == []


def test_an_error_replaces_an_earlier_verdict(workflow: Workflows, api: GitHub) -> None:
    workflow(pull_request())
    ran = workflow(pull_request("synchronize"), "dense Cover@20")
    assert ran.code == 3
    (comment,) = api.comments
    assert ":warning: demo.exam: no verdict" in comment["body"]
    assert "is not a requirement" in comment["body"]
    assert workflow.outputs["verdict"] == "error"
    assert "no verdict" in workflow.summary


def test_a_gate_that_did_not_run(
    workflow: Workflows, api: GitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow(pull_request())
    assert integration.main(str(workflow.exam), "") == 3
    (comment,) = api.comments
    assert "The gate did not run" in comment["body"]


def test_outside_a_workflow(exampp_command: Commands, demo_exam: Path, monkeypatch: Any) -> None:
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    ran = exampp_command("gate", demo_exam, "-r", "Cover@20>=0.1", "--github")
    assert ran.code == 3
    assert "works in a workflow of GitHub Actions" in ran.err
    ran = exampp_command("gate", demo_exam, "-r", "Cover@20>=0.1", "--title", "x")
    assert ran.code == 3
    assert "beside --github" in ran.err


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "\xff"])
def test_a_broken_event_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(exampp.InputError, match=r"event\.json.*the event of the workflow"):
        read_workflow({"GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(path)})


@pytest.mark.parametrize(
    "event", [[], "text", {"pull_request": 5}, {"pull_request": {"number": "7"}}]
)
def test_an_event_of_another_shape_is_no_pull_request(tmp_path: Path, event: object) -> None:
    found = read_workflow(environment(tmp_path, event, "pull_request", ""))
    assert found.pull_request is None
    assert found.base == ""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(st.data())
def test_events_with_any_values_are_read(data: st.DataObject) -> None:
    event: Any = data.draw(st.sampled_from([pull_request("synchronize", fork=True), push()]))
    places: list[tuple[str, ...]] = [("pull_request", name) for name in ("number", "head", "base")]
    places += [("pull_request",), ("before",), ("pull_request", "base", "sha")]
    place = data.draw(st.sampled_from(places))
    inside = event
    for key in place[:-1]:
        inside = inside.get(key, {})
    inside[place[-1]] = data.draw(VALUES)
    with tempfile.TemporaryDirectory() as folder:
        found = read_workflow(environment(Path(folder), event, "pull_request", ""))
    assert found.pull_request in (None, 7) or place == ("pull_request", "number")
    assert re.fullmatch("([0-9a-f]{40})?", found.base)
    assert "a-token" not in repr(found)


def test_output_for_programs_has_nothing_of_the_log(workflow: Workflows, api: GitHub) -> None:
    ran = workflow(pull_request(), FAILED, "--format", "json")
    assert json.loads(ran.out)["verdict"].startswith("Gate failed")
    assert "::error title=exampp gate::Gate failed" in ran.err


def test_a_summary_that_cannot_be_written_is_reported(
    workflow: Workflows, api: GitHub, tmp_path: Path
) -> None:
    ran = workflow(pull_request(), FAILED, GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "summary"))
    assert ran.code == 1
    assert "cannot be written (No such file or directory)" in ran.out
    assert len(api.comments) == 1


# ---- what a name may do ----------------------------------------------------------------------


NAMES = ("@org/team", "#12", "GH-12", "https://github.com/o/r/pull/3", "</details>", "::error::x")


def test_names_notify_nobody(workflow: Workflows, api: GitHub, tmp_path: Path) -> None:
    runs = []
    for number, name in enumerate(NAMES):
        run = tmp_path / f"{number}.run"
        run.write_text(f"tides Q0 p1 1 1 {name}\n")
        runs += ["--run", run]
    ran = workflow.command
    event = environment(tmp_path, pull_request(), "pull_request", api.url)
    for key, value in event.items():
        workflow.patch.setenv(key, value)
    printed = ran("gate", workflow.exam, *runs, "-r", "Cover@20>=0.9", "--github").out
    body = api.comments[0]["body"]
    shown = body.replace("<!-- -->", "\0").replace("\\", "")
    for name in NAMES[:4]:
        assert name not in shown
        assert name in shown.replace("\0", ""), name
    assert "\\</details>" in body
    # between these two lines the runner obeys no command
    token = re.search(r"::stop-commands::(\w+)\n", printed)
    assert token is not None
    start, end = printed.index(token[0]), printed.index(f"\n::{token[1]}::\n")
    assert start < printed.index("\n::error::x") < end


def test_markdown_keeps_other_addresses() -> None:
    for text in ("https://e.org/a", "a:b", "GH-x", "me@e.org", "1#", "ghost-12"):
        assert "<!--" not in markdown_escape(text), text


def test_a_long_comment_shows_the_worst(
    workflow: Workflows, api: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_gate

    def many(*arguments: Any) -> GateResult:
        found = run(*arguments)
        (row,) = found.rows
        rows = [row._replace(system=f"a{at}" * 40) for at in range(1500)]
        worst = row._replace(system="worst", verdict="failed", why="it is worse")
        return replace(found, rows=(*rows, worst))

    monkeypatch.setattr(integration, "run_gate", many)
    assert workflow(pull_request()).code == 1
    (comment,) = api.comments
    assert len(comment["body"]) < COMMENT_LIMIT + 1000
    assert "of 1,501 checks, 1500 passed, 1 failed" in comment["body"]
    assert comment["body"].index("| worst |") < comment["body"].index("| a0a0")
    assert re.search(r"\d+ more rows in the log of the run", comment["body"])
    assert "more rows" not in workflow.summary
    assert comment["body"].rstrip().endswith("</sub>")


# ---- files of the base branch ------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    command = [
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@e.org",
        *arguments,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, demo_exam: Path, exampp_command: Commands) -> tuple[Path, str, str]:
    """A shallow clone at the merge of a pull request that lowers the baseline and the bar."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    printed = exampp_command("evaluate", demo_exam, "--per-query", "--format", "json").out
    scores = json.loads(printed)
    (origin / "last.json").write_text(printed)
    (origin / "sub").mkdir()
    (origin / "sub" / "last.json").write_text("of the base")
    gate = (
        f'collection = "{demo_exam}"\nrequire = ["Cover@20>=baseline-0.3"]\nsystem = ["chat-v1"]\n'
    )
    gate += 'baseline = "last.json"\nbaseline-system = "chat-v2"\nsince = "last.json"\n'
    (origin / "gate.toml").write_text(gate)
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "base")
    base = git(origin, "rev-parse", "HEAD")
    git(origin, "checkout", "-q", "-b", "topic")
    for row in scores["rows"]:
        row["value"] = 0.0
    (origin / "last.json").write_text(json.dumps(scores))
    (origin / "gate.toml").write_text(gate.replace("-0.3", "-0.9"))
    (origin / "new.json").write_text(json.dumps(scores))
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "topic")
    head = git(origin, "rev-parse", "HEAD")
    git(origin, "checkout", "-q", "main")
    git(origin, "merge", "-q", "--no-ff", "--no-edit", "topic")
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", str(folder))
    return folder, base, head


def event_of(head: str, base: str) -> dict[str, Any]:
    event = pull_request()
    event["pull_request"]["head"]["sha"] = head
    event["pull_request"]["base"]["sha"] = base
    return event


def test_a_pull_request_cannot_change_its_baseline(
    workflow: Workflows, api: GitHub, clone: tuple[Path, str, str]
) -> None:
    folder, base, head = clone
    # the event may be older than the merge, whose first parent counts
    for sha in (base, BASE):
        environ = environment(workflow.folder, event_of(head, sha), "pull_request", api.url)
        for key, value in environ.items():
            workflow.patch.setenv(key, value)
        ran = workflow.command("gate", folder / "gate.toml", "--github")
        body = api.comments[0]["body"]
        assert "The baseline last.json is that of main." in body
        assert "This change edits the requirements in gate.toml." in body
        # 0.196 against 0.465 of the base, not against 0 of the pull request
        assert "| 0.196 | 0.465 | -0.269 |" in body, ran.err
        assert body.count("<summary>Difference to the base branch</summary>") == 1
    assert len(api.comments) == 1


def test_a_collection_is_compared_with_that_of_the_base(
    workflow: Workflows, api: GitHub, tmp_path: Path, demo_exam: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    shutil.copy(demo_exam, folder / "my.exam")
    (folder / "gate.toml").write_text(
        'collection = "my.exam"\nsince = "my.exam"\nrequire = ["Cover@20>=0.1"]\n'
        'system = ["dense"]\n'
    )
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "base")
    base = git(folder, "rev-parse", "HEAD")
    with exampp.open(folder / "my.exam") as exam:
        first = exam.grades().bank_texts().entries[0].items[0]
        exam.bank().edit("retire", first.item_id)
    environ = environment(workflow.folder, event_of(HEAD, base), "pull_request", api.url)
    for key, value in environ.items():
        workflow.patch.setenv(key, value)
    assert workflow.command("gate", folder / "gate.toml", "--github").code == 0
    assert "| items | 0 | 1 | 0 | 137 |" in api.comments[0]["body"]
    assert first.text not in api.comments[0]["body"]


def test_files_that_the_base_does_not_have(
    workflow: Workflows, api: GitHub, clone: tuple[Path, str, str], tmp_path: Path
) -> None:
    folder, base, head = clone
    gate = (folder / "gate.toml").read_text()
    (folder / "gate.toml").write_text(gate.replace("last.json", "new.json"))
    environ = environment(workflow.folder, event_of(head, base), "pull_request", api.url)
    for key, value in environ.items():
        workflow.patch.setenv(key, value)
    workflow.command("gate", folder / "gate.toml", "--github")
    body = api.comments[0]["body"]
    assert "new.json is not in main yet: the baseline is that of this change." in body
    assert "No comparison with main: it has no new.json yet." in body
    # an artifact is no file of git, and is compared with as it is
    found = read_workflow(environ)
    (folder / "artifact.json").write_text("x")
    assert base_file(folder / "artifact.json", found, folder) == folder / "artifact.json"
    assert base_file(folder.parent / "event.json", found, folder) == folder.parent / "event.json"
    # two files of one name
    copies = [base_file(path, found, tmp_path) for path in sorted(folder.rglob("last.json"))]
    texts = [copy.read_text() if copy else "" for copy in copies]
    assert (texts[0][0], texts[1]) == ("{", "of the base")


def test_a_base_that_cannot_be_fetched(
    workflow: Workflows, api: GitHub, clone: tuple[Path, str, str]
) -> None:
    folder, base, head = clone
    git(folder, "remote", "set-url", "origin", str(folder / "gone"))
    environ = environment(workflow.folder, event_of(head, base), "pull_request", api.url)
    for key, value in environ.items():
        workflow.patch.setenv(key, value)
    ran = workflow.command("gate", folder / "gate.toml", "--github")
    assert ran.code == 3
    assert 'Give actions/checkout "fetch-depth: 0"' in ran.err
    assert "no verdict" in api.comments[0]["body"]


# ---- the action --------------------------------------------------------------------------------


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def test_the_action_puts_no_input_into_a_script() -> None:
    found = action()
    assert found["runs"]["using"] == "composite"
    for step in found["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "uses" in step or step["shell"] == "bash"
    named = set(re.findall(r"inputs\.([\w-]+)", json.dumps(found)))
    assert named == set(found["inputs"])
    assert {
        f"steps.gate.outputs.{name}" in one["value"] for name, one in found["outputs"].items()
    } == {True}


@pytest.mark.parametrize(
    ("inputs", "code", "verdict"),
    [
        ({"OPTIONS": "--system dense -r Cover@20>=0.2"}, 0, "passed"),
        ({"OPTIONS": "--system chat-v2 -r Cover@20>=0.7", "TITLE": "a b*"}, 1, "failed"),
        ({"OPTIONS": "--system dense -r Cover@20>=0.7"}, 2, "undecided"),
        ({"OPTIONS": "--system dense -r Cover@20>=0.7", "ALLOW_UNDECIDED": "true"}, 0, "undecided"),
        ({"OPTIONS": "--system $(touch pwned) -r Cover@20>=0.7"}, 3, "error"),
        ({"OPTIONS": "-r Cover@20>=0.7", "BEFORE_OUTCOME": "failure"}, 3, "error"),
    ],
)
def test_the_script_of_the_action(
    tmp_path: Path, api: GitHub, demo_exam: Path, inputs: dict[str, str], code: int, verdict: str
) -> None:
    (step,) = (one for one in action()["runs"]["steps"] if one.get("id") == "gate")
    variables = dict.fromkeys(step["env"], "") | {"GATE": str(demo_exam)} | inputs
    here = Path(sys.executable).parent
    # what the step before has installed
    installed = tmp_path / "runner" / "exampp" / "bin"
    installed.mkdir(parents=True)
    (installed / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (installed / "exampp").write_text(f'#!/bin/sh\nexec {sys.executable} -m exampp "$@"\n')
    for program in installed.iterdir():
        program.chmod(0o755)
    environ = environment(tmp_path, pull_request(), "pull_request", api.url)
    variables.pop("GITHUB_TOKEN")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            **environ,
            **variables,
            "PATH": f"{installed}:{here}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path / "runner"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert not (tmp_path / "pwned").exists()
    (comment,) = api.comments
    shown = {"error": "no verdict"}.get(verdict, verdict)
    assert (
        f"{inputs.get('TITLE', 'demo.exam').replace('*', chr(92) + '*')}: {shown}"
        in comment["body"]
    )
    assert f"verdict={verdict}\n" in (tmp_path / "output").read_text()


def test_errors_of_python_are_published(workflow: Workflows, api: GitHub) -> None:
    environ = environment(workflow.folder, pull_request(), "pull_request", api.url)
    publish_error("a\nreason @org/team", "mine", read_workflow(environ))
    assert "mine: no verdict" in api.comments[0]["body"]
    assert "@org" not in api.comments[0]["body"]
    assert workflow.outputs["summary"] == "a reason @org/team"
