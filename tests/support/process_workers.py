"""Workers in processes of this machine, which a test may kill: the pool without a cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from exampp.graders.base import Request
from exampp.grading.workers import (
    BatchAnswered,
    GradingWorker,
    Make,
    WorkerFacts,
    WorkerJoined,
    WorkerLost,
    rows_of_requests,
)
from exampp.prompts import Prompt
from support.forked import FORK


class ProcessWorkers:
    """A pool of processes: `start` adds one, `kill` ends one at once, whatever it does."""

    def __init__(self, *makes: Make) -> None:
        self.given: list[tuple[str, list[int]]] = []
        self._asked: tuple[Prompt, str] | None = None
        self._ends: dict[str, Connection] = {}
        self._processes: dict[str, Any] = {}
        for make in makes:
            self.start(make)

    def start(self, make: Make) -> str:
        name = f"worker {len(self._processes) + 1}"
        ours, theirs = FORK.Pipe()
        process = FORK.Process(target=_work, args=(theirs, make), daemon=True)
        process.start()
        theirs.close()
        self._ends[name], self._processes[name] = ours, process
        return name

    def kill(self, name: str) -> None:
        os.kill(self._processes[name].pid, signal.SIGKILL)

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        self._asked = prompt, kind

    def give(self, worker: str, batch: int, asks: Sequence[Request]) -> None:
        assert self._asked is not None
        self.given.append((worker, [ask.key for ask in asks]))
        with suppress(BrokenPipeError):  # `wait` will find it lost
            self._ends[worker].send((batch, *self._asked, rows_of_requests(asks)))

    def wait(self, seconds: float) -> WorkerJoined | BatchAnswered | WorkerLost | None:
        for end in wait(list(self._ends.values()), seconds):
            name = next(one for one, known in self._ends.items() if known is end)
            try:
                kind, *what = self._ends[name].recv()
            except (EOFError, ConnectionResetError):
                self.dismiss(name)
                return WorkerLost(name, "its process is gone")
            if kind == "batch":
                return BatchAnswered(name, *what)
            if isinstance(what[0], WorkerFacts):
                return WorkerJoined(name, what[0])
            self.dismiss(name)
            return WorkerLost(name, what[0], refused=True)
        return None

    def dismiss(self, worker: str) -> None:
        self._ends.pop(worker).close()

    def close(self) -> None:
        for name in list(self._ends):
            self.dismiss(name)
        for process in self._processes.values():
            process.kill()
            process.join()


def _work(end: Connection, make: Make) -> None:
    worker = GradingWorker()
    end.send(("facts", worker.load(make)))
    while True:
        try:
            batch, *call = end.recv()
        except EOFError:
            os._exit(0)
        end.send(("batch", batch, worker.answer(*call)))
