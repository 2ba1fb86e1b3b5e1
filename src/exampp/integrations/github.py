"""Run a gate in a workflow of GitHub Actions, and publish its result.

The result is one comment of the pull request, found again by a marker and kept up to date, the
summary of the step, annotations, and outputs for other steps. Files to compare with are read as
they are on the base branch, so that a pull request cannot change what it is compared with.

A comment that cannot be written is reported and changes no verdict: the token of a pull request
from a fork may only read.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exampp.analysis.gate import GateResult
from exampp.errors import ExamError, InputError
from exampp.project.gate_file import GateOptions, gate_inputs, run_gate
from exampp.records.wording import counted
from exampp.results.notes import by_severity
from exampp.results.result import Table, markdown_escape, render
from exampp.results.view import printable
from exampp.sanitize import sanitize
from exampp.version import __version__

COMMENT_LIMIT = 60_000
"""Characters of a comment; GitHub refuses more than 65,536."""
SUMMARY_LIMIT = 900_000
"""Characters of a step summary; GitHub refuses more than 1 MiB."""
NO_VERDICT = 3
"""The exit code of a gate after an error."""
RETRIES = (1.0, 3.0)
"""Seconds before each further attempt of a request that may be repeated."""
_PAGE = 100
"""Comments of one request."""
_VERDICTS = {
    "passed": (":white_check_mark:", "passed"),
    "failed": (":x:", "failed"),
    "cannot be told": (":grey_question:", "undecided"),
}
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


# ---- the workflow ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workflow:
    """The run of a workflow that a command is part of.

    `pull_request` is None for other events. `base` is the commit to compare with, `base_name` the
    name of its branch, `head` the last commit of the pull request.
    """

    api: str
    repository: str
    token: str = field(repr=False)
    job: str
    run: str
    head: str
    base: str
    base_name: str
    pull_request: int | None
    from_fork: bool
    summary: Path | None
    outputs: Path | None


def read_workflow(environ: Mapping[str, str]) -> Workflow:
    """Return the workflow that environment variables and the file of the event describe.

    Raises:
        InputError: The environment is not a workflow, or the event cannot be read.
    """
    repository = environ.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise InputError(
            "--github works in a workflow of GitHub Actions: GITHUB_REPOSITORY is not set",
            hint="Elsewhere, --format markdown prints the result for a comment",
        )
    event = _read_event(environ.get("GITHUB_EVENT_PATH", ""))
    pull = _get(event, "pull_request") or {}
    number = _get(pull, "number")
    base, name = _text(pull, "base", "sha"), _text(pull, "base", "ref")
    if not pull:
        base = _text(event, "merge_group", "base_sha") or _text(event, "before")
        name = _text(event, "merge_group", "base_ref").removeprefix("refs/heads/")
    server, api = (
        environ.get(name, default).rstrip("/")
        for name, default in (
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_API_URL", "https://api.github.com"),
        )
    )
    run = environ.get("GITHUB_RUN_ID", "")
    places = (environ.get(one, "") for one in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"))
    summary, outputs = (Path(one) if one else None for one in places)
    return Workflow(
        api=api,
        repository=repository,
        token=environ.get("GITHUB_TOKEN", ""),
        job="/".join(environ.get(one, "") for one in ("GITHUB_WORKFLOW", "GITHUB_JOB")),
        run=f"{server}/{repository}/actions/runs/{run}" if run.isdecimal() else "",
        head=_text(pull, "head", "sha") or environ.get("GITHUB_SHA", ""),
        # a new branch has no commit before: all zeros
        base=base if _COMMIT.fullmatch(base) and base.strip("0") else "",
        base_name=name or "the previous commit",
        pull_request=number if isinstance(number, int) and not isinstance(number, bool) else None,
        # the repository of a deleted fork is null
        from_fork=bool(pull) and _text(pull, "head", "repo", "full_name") != repository,
        summary=summary,
        outputs=outputs,
    )


def _read_event(name: str) -> object:
    if not name:
        return {}
    try:
        return json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"the event of the workflow cannot be read ({error})", file=name) from None


def _get(value: object, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: object, *keys: str) -> str:
    found = _get(value, *keys)
    return found if isinstance(found, str) else ""


# ---- files of the base branch ------------------------------------------------------------------


def base_file(path: Path, workflow: Workflow, folder: Path) -> Path | None:
    """Return a copy of a file as the base branch has it; None if the pull request adds it.

    A file that git does not track, such as a downloaded artifact, is returned as it is.

    Raises:
        InputError: The commit of the base branch cannot be fetched.
    """
    if not workflow.base or _git(path, "rev-parse", "--is-inside-work-tree") is None:
        return path
    commit = _base_of_merge(path, workflow)
    if _git(path, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        _git(path, "fetch", "--quiet", "--depth=1", "origin", commit)
    if _git(path, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        raise InputError(
            f"the commit {commit[:7]} of {workflow.base_name} cannot be fetched",
            file=path,
            hint='Give actions/checkout "fetch-depth: 0"',
        )
    content = _git(path, "show", f"{commit}:./{path.name}")
    if content is not None:
        # two files of one name may come from two folders
        copy = Path(tempfile.mkdtemp(dir=folder)) / path.name
        copy.write_bytes(content)
        return copy
    return None if _git(path, "ls-files", "--error-unmatch", "--", path.name) is not None else path


def _base_of_merge(path: Path, workflow: Workflow) -> str:
    """Return the first parent of the checked-out merge, which may be newer than the event."""
    lines = (_git(path, "cat-file", "-p", "HEAD") or b"").decode(errors="replace").splitlines()
    parents = [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]
    merged = len(parents) == 2 and parents[1] == workflow.head
    return parents[0] if merged else workflow.base


def _git(path: Path, *arguments: str) -> bytes | None:
    """Run git in the folder of a file; None if it fails."""
    # the folder may belong to another user in a container
    command = ["git", "-c", "safe.directory=*", "-C", str(path.parent), *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=120,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


# ---- the gate ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Published:
    """A gate in a workflow: its result, and where it was published.

    `comment` is the address of the comment; `why` is the reason why a pull request has none, or
    why a file of the step was not written.
    """

    gate: GateResult
    comment: str
    why: str

    def log(self) -> str:
        """Return the lines that show verdict and comment at the top of the run."""
        kind = {"failed": "error", "cannot be told": "warning"}.get(self.gate.verdict, "notice")
        lines = [(kind, self.gate.headline)]
        if self.comment:
            lines.append(("notice", f"Comment: {self.comment}"))
        if self.why:
            lines.append(("warning", f"Not everything was published: {self.why}"))
        texts = ((kind, _one_line(text).replace("%", "%25")) for kind, text in lines)
        return "\n".join(f"::{kind} title=exampp gate::{text}" for kind, text in texts)


def gate_on_github(
    path: Path,
    options: GateOptions | None = None,
    *,
    title: str = "",
    environ: Mapping[str, str] | None = None,
) -> Published:
    """Run the gate of a collection or a gate file in a workflow, and publish its result.

    Baseline and earlier version are read as they are on the base branch. Comments of several gates
    differ by workflow, job and `title`, which is the name of the file by default. An error is
    published in the same comment, and raised.

    Raises:
        InputError: As `run_gate` does, or the environment is not a workflow.
    """
    workflow = read_workflow(os.environ if environ is None else environ)
    title = printable(title or path.name)
    with tempfile.TemporaryDirectory(prefix="exampp-") as folder:
        try:
            found, remarks = _run(path, options, workflow, Path(folder))
        except Exception as error:
            # the pull request shows every failure, then it is raised
            known = isinstance(error, ExamError)
            publish_error(str(error) if known else "see the log of the run", title, workflow)
            raise
    icon, verdict = _VERDICTS[found.verdict]

    def body(limit: int) -> str:
        heading = f"### {icon} {markdown_escape(title)}: {verdict}"
        return _body(heading, found, remarks, workflow, limit)

    outputs = {"verdict": verdict, "exit-code": str(found.exit_code), "summary": found.headline}
    return Published(found, *_publish(body, title, workflow, outputs))


def publish_error(text: str, title: str, workflow: Workflow | None = None) -> None:
    """Publish that there is no verdict, and why, in place of an earlier result."""
    workflow = workflow or read_workflow(os.environ)

    def body(limit: int) -> str:
        reason = markdown_escape(printable(sanitize(text)[0][: limit // 10]))
        return "\n\n".join(
            [f"### :warning: {markdown_escape(title)}: no verdict", reason, _footer(workflow)]
        )

    outputs = {"verdict": "error", "exit-code": str(NO_VERDICT), "summary": text}
    _publish(body, title, workflow, outputs)


def _run(
    path: Path, options: GateOptions | None, workflow: Workflow, folder: Path
) -> tuple[GateResult, list[str]]:
    """Return the result of the gate, and remarks on what it was compared with."""
    collection, chosen = gate_inputs(path, options)
    base, remarks = workflow.base_name, list[str]()
    if chosen.baseline:
        copy = base_file(chosen.baseline, workflow, folder)
        name = chosen.baseline.name
        if copy is None:
            remarks.append(f"{name} is not in {base} yet: the baseline is that of this change.")
        elif copy != chosen.baseline:
            remarks.append(f"The baseline {name} is that of {base}.")
        chosen = replace(chosen, baseline=copy or chosen.baseline)
    try:
        of_base = base_file(path, workflow, folder) if path != collection else path
        if of_base is None or of_base.read_bytes() != path.read_bytes():
            remarks.append(f"This change edits the requirements in {path.name}.")
        if chosen.since:
            earlier = base_file(chosen.since, workflow, folder)
            if earlier is None or not earlier.exists():
                remarks.append(f"No comparison with {base}: it has no {chosen.since.name} yet.")
                earlier = None
            chosen = replace(chosen, since=earlier)
    except InputError as error:
        # a comparison that fails does not change the verdict
        remarks.append(f"No comparison with {base}: {error}")
        chosen = replace(chosen, since=None)
    return run_gate(collection, chosen), remarks


# ---- the text ----------------------------------------------------------------------------------


def _body(
    heading: str, found: GateResult, remarks: Sequence[str], workflow: Workflow, limit: int
) -> str:
    """Return the result as Markdown: the requirements that are not met first, as many as fit."""
    order = ("failed", "missing", "cannot be told", "passed")
    rows = sorted(found.rows, key=lambda row: order.index(row.verdict))
    changes = [
        _markdown(table) for name, table in found.tables().items() if name not in ("gate", "items")
    ]
    title = f"Difference to the {'base branch' if workflow.pull_request else 'earlier version'}"
    text, shown = "", len(rows)
    while shown:
        table = replace(found, rows=tuple(rows[:shown])).tables()["gate"]
        parts = [heading, _markdown(table, found.headline)]
        if shown < len(rows):
            parts.append(f"{counted(len(rows) - shown, 'more row')} in the log of the run.")
        parts += map(markdown_escape, map(printable, remarks))
        if changes:
            inside = "\n\n".join(changes)
            parts.append(f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>")
        elif found.changes:
            parts.append(f"{title}: in the log of the run.")
        text = "\n\n".join(parts)
        if len(text) <= limit:
            break
        shown, changes = shown if changes else shown // 2, []
    return f"{text[:limit]}\n\n{_footer(workflow)}"


def _markdown(table: Table, verdict: str | None = None) -> str:
    first, _ = by_severity(table.notes)
    verdict = table.verdict if verdict is None else verdict
    return render(replace(table, notes=tuple(first), verdict=verdict), "markdown").rstrip()


def _footer(workflow: Workflow) -> str:
    commit = f"Commit {workflow.head[:7]}. " if workflow.head else ""
    run = f"[Log of the run]({workflow.run}). " if workflow.run else ""
    return f"<sub>{commit}{run}exampp {__version__}</sub>"


# ---- publishing --------------------------------------------------------------------------------


def _publish(
    body: Callable[[int], str], title: str, workflow: Workflow, outputs: Mapping[str, str]
) -> tuple[str, str]:
    """Write summary, comment and outputs; return the address of the comment, or why it has none."""
    comment = why = ""
    if workflow.pull_request is not None:
        try:
            comment = _write_comment(workflow, title, body(COMMENT_LIMIT))
        except _RefusedError as error:
            why = error.reason(workflow)
    lines = {**outputs, "comment": comment}
    text = "".join(f"{key}={_one_line(lines[key])}\n" for key in lines)
    faults = [
        _append(workflow.summary, f"{body(SUMMARY_LIMIT)}\n"),
        _append(workflow.outputs, text),
    ]
    return comment, "; ".join(filter(None, (why, *faults)))


def _append(path: Path | None, text: str) -> str:
    """Append to a file of the step, if there is one; return why that failed."""
    try:
        if path is not None:
            with path.open("a", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
    except OSError as error:
        return f"{path} cannot be written ({error.strerror})"
    return ""


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _write_comment(workflow: Workflow, title: str, body: str) -> str:
    """Update the comments that carry the marker, or write the first one; return its address."""
    marker = f"<!-- exampp gate: {quote(f'{workflow.job}/{title}', errors='replace')} -->"
    text, address = f"{marker}\n{body}", ""
    comments = f"{workflow.api}/repos/{workflow.repository}/issues/{workflow.pull_request}/comments"
    for one in _own_comments(workflow, comments, marker):
        place = f"{workflow.api}/repos/{workflow.repository}/issues/comments/{_get(one, 'id')}"
        address = _text(_request(workflow, "PATCH", place, {"body": text}), "html_url") or place
    return address or _text(_request(workflow, "POST", comments, {"body": text}), "html_url")


def _own_comments(workflow: Workflow, comments: str, marker: str) -> list[object]:
    """Return the comments with the marker that this token may have written.

    A comment of a person who copied the marker is left alone.
    """
    found: list[object] = []
    page: object = [None] * _PAGE
    number = 0
    while isinstance(page, list) and len(page) == _PAGE:
        number += 1
        page = _request(workflow, "GET", f"{comments}?per_page={_PAGE}&page={number}")
        if isinstance(page, list):
            found += [one for one in page if _text(one, "body").startswith(marker)]
    mine = [one for one in found if _text(one, "user", "type") == "Bot"]
    if len(mine) < len(found):
        try:
            login = _text(_request(workflow, "GET", f"{workflow.api}/user"), "login")
        except _RefusedError:
            # the token of a workflow belongs to no person
            return mine
        mine += [one for one in found if login and _text(one, "user", "login") == login]
    return mine


class _RefusedError(Exception):
    """A request that GitHub did not answer as it should."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message

    def reason(self, workflow: Workflow) -> str:
        """Return why there is no comment, and what to do."""
        answer = f"GitHub answered {self.status} ({self.message})" if self.status else self.message
        # 403 is also the answer for locked discussions and for too many requests
        denied = self.status in (0, 401, 404) or "not accessible" in self.message
        if denied and workflow.from_fork:
            return f"the token of a pull request from a fork may only read. {answer}"
        if denied and self.status:
            return f'{answer}. Give the job "permissions: pull-requests: write"'
        return answer


def _request(workflow: Workflow, method: str, address: str, body: object = None) -> object:
    """Return GitHub's answer to a request; raise _RefusedError without one."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not workflow.token:
        raise _RefusedError(0, "there is no token: set GITHUB_TOKEN")
    request = Request(
        address,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {workflow.token}",
            "Content-Type": "application/json",
            "User-Agent": f"exampp/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    # a repeated POST could write a second comment
    waits = RETRIES if method != "POST" else ()
    for wait in (*waits, None):
        try:
            with urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                refused = _RefusedError(error.code, _message(error.read(10_000)))
            if wait is None or error.code < 500:
                raise refused from None
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            if wait is None:
                reason = getattr(error, "reason", error)
                raise _RefusedError(0, f"GitHub could not be reached ({reason})") from None
        time.sleep(wait)
    raise AssertionError  # pragma: no cover


def _message(answer: bytes) -> str:
    try:
        return _one_line(_text(json.loads(answer), "message")) or "no message"
    except (ValueError, RecursionError):
        return "no message"


# ---- the log -----------------------------------------------------------------------------------


@contextmanager
def commands_stopped(write_line: Callable[[str], object]) -> Iterator[None]:
    """Keep the runner from obeying commands (`::error::`) in names that are printed."""
    token = secrets.token_hex(16)
    write_line(f"::stop-commands::{token}")
    try:
        yield
    finally:
        write_line(f"::{token}::")


def main(gate: str, title: str) -> int:
    """Publish that the gate did not run; return the exit code of an error."""
    text = "The gate did not run: see the log of the run."
    try:
        publish_error(text, title or Path(gate).name)
    except ExamError as error:
        text = str(error)
    print(f"exampp: {text}", file=sys.stderr)
    return NO_VERDICT


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
