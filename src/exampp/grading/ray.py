"""Workers in the actors of a Ray cluster: one on every share of every node, as nodes come and go.

https://docs.ray.io. Nothing but batches and replies goes over the network; the collection stays
with the process that is called the driver there, which is the only one that writes to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from exampp.errors import InputError
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
from exampp.installed import install_command
from exampp.plugins import describe_error
from exampp.prompts import Prompt

HERE = "ray"
"""In place of an address: the cluster that runs on this machine, else one that is started here."""
LOOK_SECONDS = 5.0
"""Between two looks at the nodes of the cluster."""
STILLBORN = 10
"""Workers that may die as they load, as on a node that is gone, before they are not replaced."""
OBJECTS = 100_000_000
"""Bytes of shared memory of a cluster that is started here: only batches pass through it."""


class Cluster(NamedTuple):
    """A cluster, by its address or `ray`; what a worker takes up there, and how many there are at
    most. None leaves it to the cluster: as many as there is room for, a card where a model of this
    machine finds some.
    """

    address: str
    workers: int | None = None
    cpus: int | None = None
    gpus: int | None = None


class _ActorCall(NamedTuple):
    """A call under way: of which worker, and its batch, None where it loads."""

    worker: str
    batch: int | None


class RayWorkers:
    """Actors that grade, kept as many as the nodes have room for.

    An actor that is lost is replaced as long as there is room; one that cannot load is not. Where
    the grader `computes`, a worker gets a card if nobody says otherwise and a node has one.

    Raises:
        InputError: Ray is not installed, no cluster answers, or no node has room for a worker.
    """

    def __init__(self, cluster: Cluster, make: Make, *, computes: bool = False) -> None:
        self._ray = _connect(cluster.address)
        self._most = cluster.workers
        cards = cluster.gpus
        if cards is None:
            cards = int(computes and any(node["Resources"].get("GPU") for node in self._nodes()))
        self._each = {"CPU": 1 if cluster.cpus is None else cluster.cpus, "GPU": cards}
        self._make = self._ray.put(make)
        self._kind: Any = self._ray.remote(GradingWorker).options(
            num_cpus=self._each["CPU"], num_gpus=cards
        )
        self._actors: dict[str, Any] = {}
        self._under: dict[Any, _ActorCall] = {}
        self._names = count(1)
        self._refused = self._stillborn = 0
        self._looked = float("-inf")
        self._asked: tuple[Any, str] | None = None
        if not self._room():
            each = " and ".join(f"{most} {name}s" for name, most in self._each.items() if most)
            raise InputError(
                f"no node of the cluster has {each}",
                hint="Ask less of a worker: --worker-cpus, --worker-gpus",
            )

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Say how workers are asked from now on."""
        self._asked = self._ray.put(prompt), kind

    def wait(self, seconds: float) -> WorkerJoined | BatchAnswered | WorkerLost | None:
        """Return what happens next; hires meanwhile."""
        self._hire()
        if not self._under:
            time.sleep(seconds)
            return None
        ready, _ = self._ray.wait(list(self._under), timeout=seconds)
        return self._event(ready[0]) if ready else None

    def give(self, worker: str, batch: int, asks: Sequence[Request]) -> None:
        """Have a worker that has joined answer a batch."""
        prompt, kind = self._asked or (None, "")
        reference = self._actors[worker].answer.remote(prompt, kind, rows_of_requests(asks))
        self._under[reference] = _ActorCall(worker, batch)

    def dismiss(self, worker: str) -> None:
        """Let a worker go, and hire no other in its place."""
        self._refused += 1
        self._drop(worker)

    def _event(self, reference: Any) -> WorkerJoined | BatchAnswered | WorkerLost:
        under = self._under.pop(reference)
        worker, batch = under
        try:
            found = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            gone = isinstance(error, self._ray.exceptions.RayActorError)
            if batch is None:
                self._stillborn += 1
                self._refused += not gone or self._stillborn > STILLBORN
            self._drop(worker)
            reason = _reason(error, loaded=batch is not None)
            return WorkerLost(worker, reason, refused=batch is None and not gone)
        if batch is not None:
            return BatchAnswered(worker, batch, found)
        if isinstance(found, WorkerFacts):
            return WorkerJoined(worker, found)
        self.dismiss(worker)
        return WorkerLost(worker, found, refused=True)

    def _drop(self, worker: str) -> None:
        actor = self._actors.pop(worker)
        self._under = {one: under for one, under in self._under.items() if under.worker != worker}
        self._ray.kill(actor)

    def _nodes(self) -> list[Mapping[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _room(self) -> int:
        """Workers that the nodes have room for, whoever else is there."""
        room = sum(
            min(
                int(node["Resources"].get(name, 0) // most)
                for name, most in self._each.items()
                if most
            )
            for node in self._nodes()
        )
        return room if self._most is None else min(room, self._most)

    def _hire(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        for _ in range(self._room() - len(self._actors) - self._refused):
            name = f"worker {next(self._names)}"
            actor = self._actors[name] = self._kind.remote()
            self._under[actor.load.remote(self._make)] = _ActorCall(name, None)


def _connect(address: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        # a folder of that name, such as the one for its temporary files, is no Ray
        import ray.exceptions
    except ImportError:
        raise InputError(
            "grading on a cluster needs the package ray",
            hint=f"Install it: {install_command('ray')}",
        ) from None
    if ray.is_initialized():
        return ray
    # whatever happens to a node, Ray prints to where tables go; what counts is said by the run
    vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
    quiet: Mapping[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init("auto" if address == HERE else address, **quiet)
    except ConnectionError as error:
        if address != HERE:
            raise InputError(
                f"no Ray cluster answers at {address}",
                hint="Give the address that `ray start --head` printed, such as 10.0.0.1:6379",
            ) from error
        ray.init("local", include_dashboard=False, object_store_memory=OBJECTS, **quiet)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"the Ray cluster at {address}: {_line(error)}") from error
    return ray


def _reason(error: Exception, *, loaded: bool) -> str:
    """Why a worker is lost: what its grader failed with, or that its process or node is gone."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return describe_error(cause).splitlines()[0]
    lines = [] if loaded else [one.strip() for one in str(error).splitlines() if "Error: " in one]
    return [f"its process or node is gone ({type(error).__name__})", *lines][-1]


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
