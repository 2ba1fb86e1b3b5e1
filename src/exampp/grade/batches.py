"""A grader whose replies come through batches: half the price, within a day instead of seconds.

A batch is another way that replies arrive, and no other grader: the same prompts, the same reading,
the same cells. Every pass over what is due gives out the replies that have come and puts the rest
off, until a batch has ended.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.grade.batch_outbox import Outbox, Pending, Tried
from exampp.llm.base import Ask, Grader, Reply
from exampp.llm.batches import SERVICES, BatchLine, BatchService
from exampp.llm.batches.files import FileBatches
from exampp.llm.batches.form import BatchForm, request_id
from exampp.llm.batches.service import Caller
from exampp.llm.openai.budget import Budget
from exampp.llm.openai.grader import OpenAICompatibleGrader
from exampp.outside import check_path
from exampp.records import GraderIdentity
from exampp.records.wording import counted
from exampp.stopping import rest
from exampp.store import batches as kept
from exampp.store.batches import said_of_batches, said_to_be_out
from exampp.store.connection import transaction
from exampp.store.grades import find_grader


@dataclass(frozen=True, slots=True)
class Batches:
    """A grader on a server is asked by batches, which are waited for.

    With `file` the requests are written there instead, for vLLM's `run-batch` and the like, and
    with `replies` what came back is read; with `cancel` what is out is ended, in files too. `poll`
    is the seconds between two looks at a batch; a quarter of a minute, growing, where it is None.

    Raises:
        InputError: Several of `file`, `replies` and `cancel`, or a `poll` that is no time.

    """

    file: str | Path | None = None
    replies: str | Path | None = None
    cancel: bool = False
    poll: float | None = None

    def __post_init__(self) -> None:
        if (self.file is not None) + (self.replies is not None) + self.cancel > 1:
            raise InputError(
                "a file of requests, a file of replies and the end of batches exclude each other",
                mend="Give one of --batch-file, --replies and --cancel-batches",
            )
        if self.poll is not None and not 0 <= self.poll <= 86_400:
            raise InputError(f"poll is {self.poll:g}", mend="Give seconds, up to a day")

    @property
    def offline(self) -> bool:
        """Whether no server is asked for anything."""
        return self.file is not None or self.replies is not None

    @property
    def sends(self) -> bool:
        """Whether requests go out."""
        return self.replies is None and not self.cancel

    @property
    def target(self) -> Path | None:
        """The file that is written."""
        return None if self.file is None else check_path(self.file)


FIRST_POLL, LONGEST_POLL, GROWTH = 15.0, 300.0, 1.5
"""Seconds between two looks at a batch, and by how much they grow."""
MOST_TRIES = 3
"""Batches that a request goes into, in one run, before its cell is failed."""
PUT_OFF = Reply("", later=True)


class BatchGrader(Grader):
    """Answers as the grader on a server does that it is made of, by batches.

    `bind` says who it is in the collection, before `answer` is called. `offline` tells that no
    server is to be asked. `goes_on_by` are the options of the command that goes on after a run was
    stopped, in place of those about files and ends of batches; None where it is the same command.
    """

    same_text_same_grade = True

    stopped: str
    prepaid = True
    exact_tokens = False

    def __init__(
        self,
        inner: OpenAICompatibleGrader,
        connection: sqlite3.Connection,
        chosen: Batches,
        *,
        offline: bool,
    ) -> None:
        self._inner = inner
        self._form: BatchForm = inner.batch_form(offline=offline)
        self._connection = connection
        self._chosen = chosen
        service = _service(self._form, chosen)
        self.share = service.share
        self._budget = Budget(self._form.limited(service.share))
        self._halted = threading.Event()
        self._outbox = Outbox(
            connection,
            service,
            self._form,
            self._budget,
            self._halted,
            pause=chosen.poll,
            gives_up=chosen.cancel,
        )
        self._identity: GraderIdentity | None = None
        self._given: dict[int, str] = {}
        self._claiming = self._begun = False
        self._why = ""
        self.stopped = ""
        self.goes_on_by: Sequence[str] | None = None
        self.late: Sequence[tuple[Ask, Reply]] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the grader that is asked: how replies arrive makes no other one."""
        return self._inner.settings

    @property
    def unnumbered(self) -> str | None:
        """As that of the grader that is asked."""
        return self._inner.unnumbered

    @property
    def provenance(self) -> Mapping[str, Any]:
        """As that of the grader that is asked, and by whose batches."""
        return {**self._inner.provenance, "batches": self._outbox.service.name}

    @property
    def note(self) -> str:
        """What a user should know of how it is asked, and of what came."""
        return "\n".join(filter(None, (self._inner.note, *dict.fromkeys(self._outbox.notes))))

    @property
    def billed(self) -> tuple[int, float | None]:
        """Requests that were sent, and what the replies that came cost."""
        return self._budget.billed

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt may have, as far as it is known."""
        return self._inner.limit

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """As the grader that is asked counts them."""
        return self._inner.offsets(text)

    def length(self, user: str, system: str = "") -> int:
        """As the grader that is asked counts them."""
        return self._inner.length(user, system)

    def bind(self, identity: GraderIdentity) -> None:
        """Say who it is in the collection."""
        self._identity = identity

    def answer(self, asks: Iterable[Ask]) -> Iterator[tuple[Ask, Reply]]:
        """Yield what has come, put the rest off, and send what is not out yet.

        A pass that has something to give out sends nothing: whether it is any good is seen first.
        """
        self.stopped = ""
        grader = self._key
        if not self._begun:
            self._begin(grader)
        self._claiming = not self._claiming and kept.has_replies(self._connection, grader)
        held = self._claiming or self._why or self._outbox.why
        sends = self._chosen.sends and not held
        pending, outbox, put_off = Pending(), self._outbox, False
        for ask in asks:
            reply = self._reply(ask, pending, sends=sends and bool(outbox.most))
            put_off |= reply.later
            yield ask, reply
            full = len(pending.requests) >= outbox.most
            if pending.requests and (full or pending.bytes > outbox.service.most_bytes):
                outbox.submit(grader, pending)
                pending = Pending()
                # a provider whose queue is full gets one batch after the other
                outbox.most *= outbox.most == outbox.service.most_requests
        if self._halted.is_set():
            return
        if pending.requests:
            outbox.submit(grader, pending)
        outbox.finish(grader)
        self.stopped = self._reason(grader) if put_off else ""

    def _begin(self, grader: int) -> None:
        self._begun = True
        self._outbox.begin(grader)
        if self._chosen.replies:
            self._outbox.take(check_path(self._chosen.replies), grader)
        if self._chosen.cancel:
            self._outbox.cancel(grader)

    def _reply(self, ask: Ask, pending: Pending, *, sends: bool) -> Reply:
        body = self._form.body(ask)
        request = request_id(self._name, body)
        found = kept.kept_request(self._connection, request)
        if found is not None and found.reply is not None:
            return self._claim(ask, request, found.reply)
        if found is not None or request in pending.requests:
            return PUT_OFF
        tried = self._outbox.tried.get(request, Tried())
        if tried.times >= MOST_TRIES:
            return Reply("", fault=f"no reply in {tried.times} batches, the last: {tried.why}")
        mode = self._form.mode
        worst = self._budget.worst(mode.texts(ask), mode.max_written)
        if sends and not (self._budget.exhausted() or self._budget.hold(worst)):
            pending.add(request, self._outbox.service.line(request, self._form.path, body), worst)
        return PUT_OFF

    def _claim(self, ask: Ask, request: str, reply: Mapping[str, Any]) -> Reply:
        """What came, read; put off where it taught how to ask otherwise."""
        understood = self._form.read(ask, BatchLine(request, reply["status"], reply["body"]))
        if understood.other:
            with self._connection, transaction(self._connection):
                kept.drop_requests(self._connection, [request])
            return PUT_OFF
        self._why = self._why or understood.error
        self._given[ask.key] = request
        self._budget.settle(0.0, understood.reply.usage)
        return understood.reply

    def kept(self, keys: Iterable[int]) -> None:
        """What was given out for these asks is a grade now."""
        done = [self._given.pop(key) for key in keys if key in self._given]
        if done:
            with self._connection, transaction(self._connection):
                kept.drop_requests(self._connection, done)

    def stop(self, grace: float) -> None:
        """Send nothing more; what is out stays out."""
        del grace
        self._halted.set()

    def wait(self) -> Iterator[str]:
        """Look at the batches until one has ended; yields how they are doing, at every look."""
        pause = FIRST_POLL if self._chosen.poll is None else self._chosen.poll
        while not self._claiming and not self._halted.is_set():
            if not self._outbox.out(self._key) or self._outbox.look(self._key):
                break
            yield said_of_batches(self._outbox.out(self._key))
            rest(self._halted, pause)
            if self._chosen.poll is None:
                pause = min(pause * GROWTH, LONGEST_POLL)
        if self._halted.is_set() and (rows := self._outbox.out(self._key)):
            self.stopped = said_to_be_out(rows)

    def _reason(self, grader: int) -> str:
        """Why nothing more is asked although cells are put off; empty where something may come.

        Raises InputError where --max-cost allows no request.
        """
        service, chosen, rows = self._outbox.service, self._chosen, self._outbox.out(grader)
        running = said_to_be_out(rows)
        self.goes_on_by = _other_options(chosen, out=bool(rows))
        if self._claiming:
            # what came may have shown that nothing else should be sent
            return ""
        if isinstance(service, FileBatches) and chosen.file and rows:
            new = f"{counted(service.written, 'request')} in {chosen.file}"
            if not service.written:
                why = self._budget.exhausted() or "nothing new"
                new = f"{why}, so that {chosen.file} is not written; {running}"
            return f"{new}; --replies reads what comes back"
        why = self._why or self._outbox.why
        if why or chosen.replies:
            return "; ".join(filter(None, (why or "the file has no reply to them", running)))
        if rows:
            return ""
        if chosen.cancel:
            return "no batch is out any more"
        self._budget.check_possible()
        return self._budget.exhausted() or "what is left would cost more than --max-cost allows"

    @property
    def _key(self) -> int:
        key = None if self._identity is None else find_grader(self._connection, self._identity)
        if key is None:
            raise InputError("only a collection asks a grader by batches")
        return key

    @property
    def _name(self) -> str:
        return "" if self._identity is None else self._identity.key


def _other_options(chosen: Batches, *, out: bool) -> Sequence[str] | None:
    """See `BatchGrader.goes_on_by`."""
    if chosen.offline and out:
        return ("--replies", "FILE")
    if chosen.replies:
        return ("--batch-file", "FILE")
    return () if chosen.cancel and not out else None


def _service(form: BatchForm, chosen: Batches) -> BatchService:
    caller = Caller(form.connection, form.model, form.timeout)
    provider = form.connection.provider.name
    if not chosen.offline:
        return SERVICES[provider](caller)
    if provider != "openai":
        raise InputError(
            f"the lines of a file are those of OpenAI's protocol, not of {provider}'s",
            mend="Use --grader openai, or --batch",
        )
    return FileBatches(caller, chosen.target)
