"""A stub of the comments of pull requests in GitHub's API, on loopback, and events of workflows."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

HEAD, BASE = "1" * 40, "2" * 40
BOT = {"login": "github-actions[bot]", "type": "Bot"}
PERSON = {"login": "mallory", "type": "User"}
READ_ONLY = "Resource not accessible by integration"


@dataclass
class GitHub:
    """The state of the stub: comments, requests as they came in, and answers to order.

    `faults` are answers of the next requests of a method: (status, body).
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    faults: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    login: str | None = None
    url: str = ""

    def add(self, body: str, user: dict[str, str] = BOT) -> dict[str, Any]:
        number = len(self.comments) + 1
        url = f"https://github.example/o/r/pull/7#issuecomment-{number}"
        comment = {"id": number, "body": body, "user": user, "html_url": url}
        self.comments.append(comment)
        return comment

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        path = urlsplit(target)
        self.requests.append(f"{method} {path.path}")
        if self.faults.get(method):
            return self.faults[method].pop(0)
        if path.path == "/user":
            return (200, {"login": self.login}) if self.login else (403, {"message": READ_ONLY})
        if method == "PATCH":
            number = int(path.path.rpartition("/")[2])
            self.comments[number - 1]["body"] = body["body"]
            return 200, self.comments[number - 1]
        assert re.fullmatch(r"/repos/o/r/issues/7/comments", path.path), path.path
        if method == "POST":
            return 201, self.add(body["body"])
        asked = {key: int(values[0]) for key, values in parse_qs(path.query).items()}
        start = (asked["page"] - 1) * asked["per_page"]
        return 200, self.comments[start : start + asked["per_page"]]


@contextmanager
def github() -> Iterator[GitHub]:
    """Serve a stub on a free port."""
    state = GitHub()

    def answer(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["Authorization"] == "Bearer a-token"
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else None
        status, found = state.answer(request.command, request.path, body)
        content = found if isinstance(found, str) else json.dumps(found)
        request.send_response(status)
        request.end_headers()
        request.wfile.write(content.encode())

    methods = dict.fromkeys(["do_GET", "do_POST", "do_PATCH"], answer)
    silent = {"log_message": lambda *_: None}
    handler = type("Handler", (BaseHTTPRequestHandler,), {**methods, **silent})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pull_request(action: str = "opened", *, fork: bool = False, **more: Any) -> dict[str, Any]:
    """The event of a pull request, with the fields of GitHub's that tell what it is."""
    repository = {"id": 1, "full_name": "o/r", "private": False, "default_branch": "main"}
    of_fork = {**repository, "id": 2, "full_name": "someone/r", "fork": True}
    return {
        "action": action,
        "number": 7,
        "pull_request": {
            "id": 99,
            "number": 7,
            "state": "open",
            "title": "Answer shorter @org/team",
            "user": {"login": "someone", "type": "User"},
            "head": {"ref": "shorter", "sha": HEAD, "repo": of_fork if fork else repository},
            "base": {"ref": "main", "sha": BASE, "repo": repository},
            "draft": False,
            "merged": False,
            **more,
        },
        **({"before": "3" * 40, "after": HEAD} if action == "synchronize" else {}),
        "repository": repository,
        "sender": {"login": "someone", "type": "User"},
    }


def push() -> dict[str, Any]:
    """The event of a push to the main branch."""
    return {
        "ref": "refs/heads/main",
        "before": BASE,
        "after": HEAD,
        "forced": False,
        "commits": [{"id": HEAD, "message": "Merge #7"}],
        "repository": {"id": 1, "full_name": "o/r"},
        "pusher": {"name": "someone"},
    }


def environment(folder: Path, event: object, name: str, api: str) -> dict[str, str]:
    """The variables of a workflow; summary, outputs and event are files in `folder`."""
    path = folder / "event.json"
    path.write_text(json.dumps(event))
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": api,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_JOB": "gate",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_RUN_ID": "12345",
        "GITHUB_SHA": "4" * 40,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_TOKEN": "a-token",
        "GITHUB_WORKFLOW": "evaluate",
    }
