"""Grade with several workers, such as the actors of a Ray cluster (https://docs.ray.io).

Only batches and replies go over the network; only the driver process writes to the collection.

This module does not know where workers run. A pool reports that a worker has joined, answered or
been lost, and sends batches to it. All requests about a passage go to one worker, in their order. A
worker has two batches at a time, so that it never waits; batches of a lost worker go to the others.
The batch size follows the worker's speed, so that a slow worker has little to lose and a fast one
gets few messages.
"""

from __future__ import annotations

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import attrgetter
from time import monotonic
from typing import Any, NamedTuple, Protocol

from exampp.errors import ExamError, InputError, Unfinished
from exampp.graders.base import Grader, Reply, Request, check_grader
from exampp.grading.requests import build_request, check_prompt_fits
from exampp.installed import install_command
from exampp.plugins import describe_error
from exampp.prompts import Prompt
from exampp.store.cells import PendingCells, PendingIds
from exampp.version import __version__

FIRST, MOST = 16, 512
"""Requests of a batch: the first, and the maximum."""
SHORT, LONG = 0.25, 1.0
"""Minimum and maximum seconds of a batch; outside, the worker's next batch is resized."""
AHEAD = 2
"""Batches per worker at a time."""
TRIES = 3
"""Workers that may be lost with a batch before its requests fail."""
PATIENCE = 300.0
"""Seconds without any worker after which a run ends."""
GLANCE = 0.5
"""Seconds between two polls of other events."""


class WorkerFacts(NamedTuple):
    """The description of a worker: its node, its exampp, and its grader."""

    node: str
    version: str
    settings: dict[str, Any]
    readings: frozenset[str]
    unnumbered: str | None
    model_name: str
    varies: bool
    note: str
    provenance: dict[str, Any] | None
    most_items: int = 1


class WorkerJoined(NamedTuple):
    """A worker is ready."""

    worker: str
    facts: WorkerFacts


class BatchAnswered(NamedTuple):
    """The answer to a batch: replies by the keys of the requests, or an error that ends the run."""

    worker: str
    batch: int
    replies: Sequence[tuple[int, Reply]] | ExamError


class WorkerLost(NamedTuple):
    """A worker was lost with its batches; `refused`: it never worked, and a new one would not."""

    worker: str
    reason: str
    refused: bool = False


class WorkerPool(Protocol):
    """A pool of workers, wherever they run; it finds new ones itself."""

    def wait(self, seconds: float) -> WorkerJoined | BatchAnswered | WorkerLost | None:
        """Return the next event; None if there is none within the seconds."""

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Set how requests are created, before the first batch."""

    def give(self, worker: str, batch: int, requests: Sequence[Request]) -> None:
        """Send a batch to a worker that has joined."""

    def dismiss(self, worker: str) -> None:
        """Release a worker permanently, and start no other on its node."""


@dataclass(slots=True)
class _Batch:
    """Requests that are sent together, the number of lost workers, and the time of sending."""

    requests: dict[int, Request]
    losses: int = 0
    given: float = 0.0


@dataclass(slots=True)
class _Member:
    """An active worker: the numbers of its batches, and the size of the next."""

    batches: dict[int, None] = field(default_factory=dict)
    size: int = FIRST
    since: float = 0.0

    def paced(self, batch: _Batch) -> None:
        """Adapt the batch size to the time of a batch."""
        now = monotonic()
        took, self.since = now - max(batch.given, self.since), now
        if took < SHORT and len(batch.requests) >= self.size:
            self.size = min(MOST, self.size * 2)
        elif took > LONG:
            self.size = max(1, self.size // 2)


class _Passages:
    """Pull requests in batches that end between passages, unless a passage has very many."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests = iter(requests)
        self._next: Request | None = None

    def pull(self, size: int) -> list[Request]:
        """Return about this number of requests, none at the end."""
        batch: list[Request] = []
        while len(batch) < MOST:
            request, self._next = self._next or next(self._requests, None), None
            if request is None:
                break
            if len(batch) >= size and request.passage != batch[-1].passage:
                self._next = request
                break
            batch.append(request)
        return batch


class SpreadGrader(Grader):
    """Spread requests over the workers of a pool, each once; wait for the first worker.

    It has no limit itself: a worker truncates prompts to the limit of its model. A worker with
    other settings would be another grader and is not used; `note` reports it, and how many workers
    were lost and how many requests were repeated for that.

    Raises:
        InputError: The first worker cannot create its grader; the message has the reason.
        Unfinished: No worker joined in time.
    """

    same_text_same_grade = True

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._remarks: dict[str, None] = {}
        self._lost: list[WorkerLost] = []
        self._again = self._number = 0
        self._members: dict[str, _Member] = {}
        self._batches: dict[int, _Batch] = {}
        self._orphans: deque[int] = deque()
        self._until = float("inf")
        self._facts = self._first()
        self.late = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the workers' grader, which determine a reply."""
        return dict(self._facts.settings)

    @property
    def readings(self) -> frozenset[str]:
        """Return the rules by which its replies can be read."""
        return self._facts.readings

    @property
    def unnumbered(self) -> str | None:
        """Return the rule for a text without a number."""
        return self._facts.unnumbered

    @property
    def varies(self) -> bool:
        """Return whether the same request can get another reply."""
        return self._facts.varies

    @property
    def model_name(self) -> str:
        """Return the name of the model."""
        return self._facts.model_name

    @property
    def most_items(self) -> int:
        """Maximum number of items of a passage in one request."""
        return self._facts.most_items

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Return the provenance of one worker, and that workers grade."""
        return {**(self._facts.provenance or {}), "spread": type(self._pool).__name__}

    @property
    def note(self) -> str:
        """Return the workers' notes on their grader, and what happened to the workers."""
        notes = [self._facts.note, *self._remarks]
        if lost := len(self._lost):
            notes.append(
                f"{lost} worker{'s' * (lost > 1)} lost (the last: {self._lost[-1].reason}), "
                f"{self._again} requests reassigned"
            )
        return "\n".join(filter(None, notes))

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Set how requests are created: workers fill the prompts, because they know their limit."""
        self._pool.ask_by(prompt, kind)

    def stop(self, grace: float) -> None:
        """Send nothing more, and end within `grace` seconds."""
        self._until = min(self._until, monotonic() + grace)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Yield every request with its reply, as batches come back.

        Raises:
            Unfinished: No worker is left, or an error of a worker ends the run.
        """
        source = _Passages(requests)
        self._until = float("inf")
        for member in self._members.values():
            member.batches.clear()
        self._batches.clear()
        self._orphans.clear()
        arrived: deque[tuple[Request, Reply]] = deque()
        alone = monotonic()
        try:
            while True:
                self._send(source)
                if not self._batches or monotonic() > self._until:
                    return
                event = self._pool.wait(max(0.0, min(GLANCE, self._until - monotonic())))
                if self._members:
                    alone = monotonic()
                elif monotonic() - alone > PATIENCE:
                    last = f"; the last was lost: {self._lost[-1].reason}" if self._lost else ""
                    raise Unfinished(f"no worker for {PATIENCE:.0f} s{last}")
                if isinstance(event, WorkerJoined):
                    self._admit(event)
                elif isinstance(event, BatchAnswered):
                    arrived.extend(self._receive(event))
                elif isinstance(event, WorkerLost):
                    arrived.extend(self._lose(event))
                while arrived:
                    yield arrived.popleft()
        finally:
            self.late = tuple(arrived)

    def _send(self, source: _Passages) -> None:
        if self._until != float("inf"):
            # batches without a worker will not be answered
            while self._orphans:
                del self._batches[self._orphans.popleft()]
            return
        for load in range(AHEAD):
            for worker, member in self._members.items():
                if len(member.batches) <= load and not self._give_one(worker, member, source):
                    return
        if not self._members and not self._batches:
            # retain a batch, so that the loop waits for a worker
            self._prepare(source, FIRST)

    def _give_one(self, worker: str, member: _Member, source: _Passages) -> bool:
        if not self._orphans and not self._prepare(source, member.size):
            return False
        number = self._orphans.popleft()
        batch = self._batches[number]
        self._again += len(batch.requests) if batch.losses else 0
        batch.given = monotonic()
        member.batches[number] = None
        self._pool.give(worker, number, list(batch.requests.values()))
        return True

    def _prepare(self, source: _Passages, size: int) -> bool:
        """Prepare the next batch; return whether there is one."""
        if requests := source.pull(size):
            self._number += 1
            self._batches[self._number] = _Batch({one.key: one for one in requests})
            self._orphans.append(self._number)
        return bool(requests)

    def _receive(self, event: BatchAnswered) -> Iterator[tuple[Request, Reply]]:
        if isinstance(event.replies, ExamError):
            raise event.replies
        batch = self._batches.pop(event.batch, None)
        if batch is None:
            return  # the answer belongs to an abandoned batch
        member = self._members.get(event.worker)
        if member is not None:
            member.batches.pop(event.batch, None)
            member.paced(batch)
        replies = dict(event.replies)
        missing = Reply("", fault="the worker did not answer this request")
        yield from ((one, replies.get(key, missing)) for key, one in batch.requests.items())

    def _lose(self, event: WorkerLost) -> Iterator[tuple[Request, Reply]]:
        """Requeue the requests of a lost worker; yield a fault for those that lost several."""
        self._lost.append(event)
        member = self._members.pop(event.worker, None)
        for number in member.batches if member else ():
            batch = self._batches[number]
            batch.losses += 1
            if batch.losses < TRIES:
                self._orphans.append(number)
                continue
            fault = Reply("", fault=f"{TRIES} workers were lost with it, the last: {event.reason}")
            yield from ((one, fault) for one in batch.requests.values())
            del self._batches[number]

    def _first(self) -> WorkerFacts:
        since, lost = monotonic(), 0
        while monotonic() - since < PATIENCE:
            event = self._pool.wait(GLANCE)
            if isinstance(event, WorkerJoined):
                self._facts = event.facts
                self._admit(event)
                return event.facts
            lost += isinstance(event, WorkerLost)
            if isinstance(event, WorkerLost) and (event.refused or lost == TRIES):
                raise InputError(
                    f"a worker cannot grade: {event.reason}",
                    hint="Everything that the model needs must be on every node, at the same path",
                )
        raise Unfinished(
            f"no worker joined within {PATIENCE:.0f} s; other jobs may use all resources"
        )

    def _admit(self, joined: WorkerJoined) -> None:
        facts, own = joined.facts, __version__
        if facts.settings != self._facts.settings:
            differing = [
                (
                    f"{name} is {facts.settings.get(name)!r} instead of "
                    f"{self._facts.settings.get(name)!r}"
                )
                for name in {**facts.settings, **self._facts.settings}
                if facts.settings.get(name) != self._facts.settings.get(name)
            ]
            what = f"{facts.node} is not used, because its grader differs: {'; '.join(differing)}"
            self._remarks[what] = None
            self._pool.dismiss(joined.worker)
            return
        if facts.version != own:
            self._remarks[f"{facts.node} has exampp {facts.version}, this machine {own}"] = None
        self._members[joined.worker] = _Member()


Make = Callable[[], Grader]
Row = tuple[Any, ...]
"""The fields of a request that are sent; the worker creates the prompt."""
_row = attrgetter(
    *("key", "query", "item", "answers", "passage"),
    *("query_id", "item_id", "passage_id", "subtopic_id"),
)


def rows_of_requests(requests: Iterable[Request]) -> list[Row]:
    """Return requests as rows; equal texts are one object, so that each is sent once."""
    texts: dict[Any, Any] = {}
    return [tuple(texts.setdefault(one, one) for one in _row(request)) for request in requests]


class GradingWorker:
    """A grader on its node; call `load` first."""

    def __init__(self) -> None:
        self._grader: Grader | None = None
        self._checked: set[tuple[Prompt, str]] = set()

    def load(self, make: Make) -> WorkerFacts | str:
        """Create the grader and describe it, or return the reason why that failed."""
        try:
            grader = self._grader = check_grader(make())
            provenance = grader.provenance
            return WorkerFacts(
                platform.node(),
                __version__,
                dict(grader.settings),
                grader.readings,
                grader.unnumbered,
                grader.model_name,
                grader.varies,
                grader.note,
                None if provenance is None else dict(provenance),
                grader.most_items,
            )
        except ExamError as error:
            return str(error)
        except Exception as error:
            # the process that started this one shows any error
            return describe_error(error)

    def answer(
        self, prompt: Prompt, kind: str, rows: Sequence[Row]
    ) -> list[tuple[int, Reply]] | InputError:
        """Return the replies by key, or the fault that affects all requests.

        Rows have no prompts: the worker fills them, because it knows the model's limit, and a reply
        reports the length of a truncated passage. Any other failure is the worker's own.
        """
        if self._grader is None:
            raise InputError("the worker has no grader")
        try:
            if (prompt, kind) not in self._checked:
                check_prompt_fits(prompt, self._grader)
                self._checked.add((prompt, kind))
            replies: list[tuple[int, Reply]] = []
            requests = []
            for key, query, item, keys, passage, *ids in rows:
                cells = PendingCells(query, item, keys, passage, (), ids=PendingIds(*ids))
                try:
                    requests.append(build_request(prompt, kind, self._grader, key, cells))
                except InputError as error:
                    replies.append((key, Reply("", fault=str(error))))
            answers = self._grader.answer(requests)
            replies += ((one.key, _cut(reply, one.kept)) for one, reply in answers)
        except InputError as error:
            return error
        return replies


def _cut(reply: Reply, length: int | None) -> Reply:
    if length is None or reply.fault:
        return reply
    return replace(reply, detail={**reply.detail, "cut": True, "kept": length})


HERE = "ray"
"""Special address: the cluster on this machine, else a new one."""
LOOK_SECONDS = 5.0
"""Seconds between two polls of the nodes of the cluster."""
STILLBORN = 10
"""Workers that may die while loading, as on a lost node, before they are no longer replaced."""
OBJECTS = 100_000_000
"""Bytes of shared memory of a new cluster; only batches pass through it."""


class Cluster(NamedTuple):
    """A cluster, by its address or `ray`, the resources of a worker, and the maximum of workers.

    None leaves the choice to the cluster: as many workers as fit, and a GPU for each if a local
    model needs one.
    """

    address: str
    workers: int | None = None
    cpus: int | None = None
    gpus: int | None = None


class _ActorCall(NamedTuple):
    """A running call: its worker, and its batch; None while it loads."""

    worker: str
    batch: int | None


class RayWorkers:
    """Ray actors that grade, as many as the nodes have room for.

    A lost actor is replaced while there is room; one that cannot load is not. If the grader
    `computes`, a worker gets a GPU by default if a node has one.

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
        self._prompt: tuple[Any, str] | None = None
        if not self._room():
            each = " and ".join(f"{most} {name}s" for name, most in self._each.items() if most)
            raise InputError(
                f"no node of the cluster has {each}",
                hint="Request less per worker: exampp.Cluster(address, cpus=..., gpus=...)",
            )

    def ask_by(self, prompt: Prompt, kind: str) -> None:
        """Set how requests are made from now on."""
        self._prompt = self._ray.put(prompt), kind

    def wait(self, seconds: float) -> WorkerJoined | BatchAnswered | WorkerLost | None:
        """Return the next event; start workers meanwhile."""
        self._hire()
        if not self._under:
            time.sleep(seconds)
            return None
        ready, _ = self._ray.wait(list(self._under), timeout=seconds)
        return self._event(ready[0]) if ready else None

    def give(self, worker: str, batch: int, requests: Sequence[Request]) -> None:
        """Send a batch to a worker that has joined."""
        prompt, kind = self._prompt or (None, "")
        reference = self._actors[worker].answer.remote(prompt, kind, rows_of_requests(requests))
        self._under[reference] = _ActorCall(worker, batch)

    def dismiss(self, worker: str) -> None:
        """Release a worker, and start no other in its place."""
        self._refused += 1
        self._drop(worker)

    def _event(self, reference: Any) -> WorkerJoined | BatchAnswered | WorkerLost:
        worker, batch = self._under.pop(reference)
        try:
            outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            is_lost = isinstance(error, self._ray.exceptions.RayActorError)
            if batch is None:
                self._stillborn += 1
                self._refused += not is_lost or self._stillborn > STILLBORN
            self._drop(worker)
            reason = _reason(error, loaded=batch is not None)
            return WorkerLost(worker, reason, refused=batch is None and not is_lost)
        if batch is not None:
            return BatchAnswered(worker, batch, outcome)
        if isinstance(outcome, WorkerFacts):
            return WorkerJoined(worker, outcome)
        self.dismiss(worker)
        return WorkerLost(worker, outcome, refused=True)

    def _drop(self, worker: str) -> None:
        actor = self._actors.pop(worker)
        self._under = {one: under for one, under in self._under.items() if under.worker != worker}
        self._ray.kill(actor)

    def _nodes(self) -> list[Mapping[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _room(self) -> int:
        """Return the number of workers that fit on the nodes, besides other users."""
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
        # a folder named ray, such as one for its temporary files, is not the package
        import ray.exceptions
    except ImportError:
        raise InputError(
            "grading on a cluster needs the package ray",
            hint=f"Install it: {install_command('ray')}",
        ) from None
    if ray.is_initialized():
        return ray
    # Ray prints to standard output, where tables go; the run reports failures of nodes itself
    vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
    quiet: Mapping[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init("auto" if address == HERE else address, **quiet)
    except ConnectionError as error:
        if address != HERE:
            raise InputError(
                f"no Ray cluster answers at {address}",
                hint="Use the address printed by `ray start --head`, such as 10.0.0.1:6379",
            ) from error
        ray.init("local", include_dashboard=False, object_store_memory=OBJECTS, **quiet)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"the Ray cluster at {address}: {_line(error)}") from error
    return ray


def _reason(error: Exception, *, loaded: bool) -> str:
    """Return why a worker is lost: the error of its grader, or a lost process or node."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return describe_error(cause).splitlines()[0]
    lines = [] if loaded else [one.strip() for one in str(error).splitlines() if "Error: " in one]
    return [f"its process or node was lost ({type(error).__name__})", *lines][-1]


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
