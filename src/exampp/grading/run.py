"""Run a grader in batches of plan, request, read and commit, so that an interrupt loses little.

The run does not depend on a backend: a grader pulls requests and yields raw replies, `ReplyRules`
turn a reply into a grade, and the store records both. Memory is bounded by one query's cells and
the grader's look-ahead.

Processes that grade the same collection share the work by query: each takes a lease of a query
before its first request, and a lease that is not renewed expires.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple, TypeVar

from exampp.errors import CollectionBusy, InputError, Unfinished
from exampp.graders.base import Replies, Reply, Request, Usage, describe_mismatch, sanitize_reply
from exampp.graders.function import CODE
from exampp.grading.cascade import Cascaded, cascade_cells
from exampp.grading.regrade import record_rules
from exampp.grading.requests import Grading, why_ungraded
from exampp.grading.target import QueryPlan, TargetCells
from exampp.measures.query_sample import group_size
from exampp.prompts.answers import is_no_answer
from exampp.records import Grade, State
from exampp.records.graders import GradingTarget
from exampp.records.readings import NO_ANSWER
from exampp.records.wording import counted
from exampp.records.work import LATEST, LatestReply, WorkProgress
from exampp.sanitize import check_integer
from exampp.stopping import GRACE_SECONDS, MAX_FAILURES
from exampp.store.cells import (
    SELECTIONS,
    Cell,
    GradingScope,
    PendingCells,
    copy_grade,
    pending_cells,
    pending_of_query,
    query_order,
)
from exampp.store.connection import data_version, transaction
from exampp.store.grades import (
    NO_KEY,
    GradeRow,
    StoredGrader,
    find_grader,
    grade_row,
    graders,
    put_grades,
)
from exampp.store.pages import write_pages
from exampp.store.runs import (
    LeaseHolder,
    RunUsage,
    active_detail,
    at_work,
    cascade_of,
    claim,
    details_of,
    forget_unused,
    holders,
    is_gone,
    leases,
    new_owner,
    others,
    release,
    release_all,
    renew,
    start_run,
    target_of,
    update_run,
)


@dataclass(slots=True, repr=False)
class Progress:
    """Progress of a run: cells pending at its start, done by it, and done by other processes.

    Attributes:
        copied: Cells copied from equal texts.
        held_by: Other runs with leases of this grader's queries, at the start, or when only their
            queries are left and this run `waits` for them.
        awaits: Description of open batches.
        last_failure: Why the last unread reply gave no grade.
        repeated: Cells requested again after an unreadable reply.
        recovered: Those that then got a grade.
        not_needed: Pending cells that the target does not need. With a target, the total is at
            first an upper bound.
        skipped: Pending cells that hardly cover.
        outcome: What ended the grading before all queries were graded.
        warning: Why the stored grades may not be those of this grader.
    """

    total: int
    done: int = 0
    copied: int = 0
    elsewhere: int = 0
    asked: int = 0
    states: Counter[State] = field(default_factory=Counter)
    spent: RunUsage = field(default_factory=RunUsage)
    held_by: tuple[LeaseHolder, ...] = ()
    waits: bool = False
    awaits: str = ""
    last_failure: str = ""
    repeated: int = 0
    recovered: int = 0
    not_needed: int = 0
    skipped: int = 0
    outcome: str = ""
    warning: str = ""

    def count(self, cells: int, state: State, first: State | None) -> None:
        """Count cells by state; `first` is the state before a repeat, None for a first reply."""
        self.states[state] += cells
        if first is None:
            self.done += cells
            return
        self.states -= Counter({first: cells})
        self.repeated += cells
        self.recovered += cells * (state is State.GRADED)

    @property
    def ungraded(self) -> int:
        """Cells with a reply but no grade."""
        return sum(count for state, count in self.states.items() if state)

    def __str__(self) -> str:
        """Return a summary of the run, its cost if tokens are counted, and a warning."""
        return "\n".join(filter(None, (self._summary(), self.warning)))

    def _summary(self) -> str:
        if not self.total and self.not_needed + self.skipped:
            verb = "is" if self.not_needed == 1 else "are"
            cells = counted(self.not_needed, "pending cell")
            skipped = f", and {self.skipped:,} skipped (--may-miss)" if self.skipped else ""
            return f"Nothing to grade: {cells} {verb} not needed (--for or --after){skipped}"
        if not self.total:
            return "Nothing is pending. To see what can be graded: exampp status --pool"
        last = f", the last: {self.last_failure}" if self.last_failure else ""
        parts = {
            f"{self.done} of {self.total} cells done": True,
            f"{self.not_needed:,} not needed": self.not_needed,
            f"{self.skipped:,} skipped (--may-miss)": self.skipped,
            f"{self.copied} copied from equal texts": self.copied,
            f"{self.elsewhere} by another process": self.elsewhere,
            f"{self.repeated} repeated after an unreadable reply ({self.recovered} graded)": (
                self.repeated
            ),
            f"{self.ungraded} without a grade (pending; exampp status lists the reasons){last}": (
                self.ungraded
            ),
        }
        text = ", ".join(text for text, is_shown in parts.items() if is_shown)
        return text + (f". {self.outcome}" if self.outcome else "") + "".join(self._usage())

    __repr__ = __str__

    def _usage(self) -> Iterator[str]:
        spent = self.spent
        if spent.tokens_read or spent.requests:
            requests = f" to {counted(spent.requests, 'request')}" if spent.requests else ""
            yield (
                f"\n{spent.asked} replies{requests}, "
                f"{spent.tokens_read} tokens read ({spent.tokens_cached} cached), "
                f"{spent.tokens_written} written"
            )
        if spent.requests or spent.cost:
            unknown = (
                "not known without prices (--price-read, --price-written; in Python price_read, "
                "price_written)"
            )
            yield f"\ncost: {unknown if spent.cost is None else f'{spent.cost:.6g}'}"


T = TypeVar("T")
COMMIT_SECONDS = 1.0
COMMIT_CELLS = 2000
POLL_SECONDS = 0.5
UNSTORED = 0
"""Key of a grader that has not graded yet; stored keys start at 1."""
_KEPT = "All grades so far are stored; the same command continues"
_SELECT_ORDER = {"pending": ("new", "failed"), "new": ("new",), "failed": ("failed",)}
"""The order of requests: failed cells come last, so that a new run starts with new cells."""

UNREADABLE = frozenset({State.UNPARSED, State.TRUNCATED, State.REFUSED})
"""States of an unreadable reply. The grader itself retries failed requests."""


class PendingRequest(NamedTuple):
    """An active request; `limit` is the token limit that was known when it was created."""

    query: int
    due: PendingCells
    kept: int | None
    limit: int | None


class GradingRun:
    """One run of one grader over its pending cells.

    Iterate over `steps` to do the work; it yields the progress after every commit. `stop` ends it
    cleanly: active requests are finished and stored, and no new ones are created.

    A grader may end a run, too, for example when its budget is spent: then `stopped` is set and
    `why_stopped` has the reason. `notes` are warnings to show before the start. `select` is one of
    `store.cells.SELECTIONS`; cells that failed before the run come last. After `max_failures`
    consecutive replies without a grade it raises Unfinished with the last of them; committed grades
    remain. A cell that ends as it did before counts only if the server failed. However `steps`
    ends, even by an interrupt at any bytecode, all yielded replies are stored and no transaction is
    open. With `dry_run`, `steps` only counts the pending cells. With a `target`, only cells that
    its measures need are graded: the next round of a query depends on the grades of the last one.
    With the second grader of a cascade in the scope, the grades of the cascade are stored at the
    end: `cascaded`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        grading: Grading,
        exam: GradingScope,
        *,
        select: str = "pending",
        max_failures: int = MAX_FAILURES,
        notes: Sequence[str] = (),
        dry_run: bool = False,
        target: GradingTarget | None = None,
    ) -> None:
        if select not in SELECTIONS:
            raise InputError(f"select is {select!r}", hint=f"Use one of {', '.join(SELECTIONS)}")
        check_numbers(exam, max_failures)
        self.connection = connection
        self.grading = grading
        self.exam = exam
        self.select = select
        self.max_failures = max_failures
        self.notes = tuple(notes)
        self.dry_run = dry_run
        self.target = target
        self.cascaded: Cascaded | None = None
        self.stopped = False
        self.why_stopped = ""
        self._owner = new_owner()
        self._replies = Replies(grading.grader)
        self._waiting: dict[int, PendingRequest] = {}
        self._open: Counter[int] = Counter()
        self._rows: dict[int, list[GradeRow]] = {}
        self._copies: list[PendingCells] = []
        self._tried: set[Cell] = set()
        self._again: dict[int, None] = {}
        self._put_off: dict[int, None] = {}
        self._repeats: deque[tuple[int, PendingCells]] = deque()
        self._repeated: dict[tuple[Cell, ...], State] = {}
        self._plans: dict[int, QueryPlan] = {}
        self._unfinished: dict[int, QueryPlan] = {}
        self._seen = 0
        self._failures = 0
        self._latest: deque[LatestReply] = deque(maxlen=LATEST)
        self._progress = Progress(0)
        self._last_key = self._key = self._run = 0
        self._started, self._before = 0.0, grading.grader.billed

    @property
    def _stored_key(self) -> int | None:
        """The key of the grader if it is stored."""
        return find_grader(self.connection, self.grading.identity)

    @property
    def late_note(self) -> str:
        """Return the grader's note if it has changed since the start, else ""."""
        note = self.grading.grader.note
        return "" if note in self.notes else note

    @property
    def progress(self) -> WorkProgress:
        """Return the progress at the last commit; any thread may read it."""
        now, spent = self._progress, self._progress.spent
        return WorkProgress(
            "cells",
            now.done,
            now.total,
            spent.seconds,
            spent.requests or spent.asked,
            spent.tokens_read,
            spent.tokens_written,
            spent.cost,
            {state.name.lower(): count for state, count in now.states.copy().items() if state},
            tuple(reversed(self._latest.copy())),
        )

    def left_to_first(self, pending: int) -> int:
        """Count the cells without a grade that a cascade leaves to its first grader."""
        if self.exam.after is None:
            return 0
        every = self.exam._replace(after=None)
        cells = pending_cells(self.connection, self._stored_key, every, self.select)
        return sum(len(one.cells) for one in cells) - pending

    def pending(self) -> Iterator[PendingCells]:
        """Return the cells that are pending now; with a target, at most these are graded."""
        cells = self._target_cells()
        if cells is None:
            yield from self._pending(self.select)
        elif not cells.is_decided:
            key = self._stored_key
            for query in self.query_order(cells):
                found = pending_of_query(self.connection, query, key, self.exam, self.select)
                yield from cells.plan(query, found, counting=True).needed

    def _pending(self, select: str) -> Iterator[PendingCells]:
        return pending_cells(self.connection, self._stored_key, self.exam, select)

    def _target_cells(self) -> TargetCells | None:
        if self.target is None:
            return None
        stored = StoredGrader(self._stored_key or UNSTORED, self.grading.identity)
        return TargetCells(self.connection, stored, self.exam, self.target)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Make no new requests; `steps` stores the active ones and ends within `grace` seconds.

        Cells of requests without a reply by then remain pending.
        """
        self.stopped = True
        self._replies.stop(grace)

    def steps(self) -> Iterator[Progress]:
        """Grade all pending cells; yield the progress after each commit."""
        yield from self._steps()
        second = self._stored_key
        if self.exam.after is None or second is None or self.dry_run:
            return
        key, rule = self.exam.after
        stored = {one.key: one for one in graders(self.connection)}
        members = stored[key], stored[second]
        self.cascaded = cascade_cells(self.connection, members, [self.exam.bank], rule)

    def _steps(self) -> Iterator[Progress]:
        if not self.dry_run:
            self._verify_again()
        self._progress = Progress(0, warning=self._other_code())
        cells = self._target_cells()
        if cells is not None and self.select == "pending":
            self._progress.total = self._count_needed(cells)
            for one in self._pending("failed"):
                self._tried.update(one.cells)
        else:
            for one in self.pending():
                self._progress.total += len(one.cells)
                if one.before is not None:
                    self._tried.update(one.cells)
            self._progress.not_needed = self.left_to_first(self._progress.total)
        yield self._progress
        if self.dry_run or not (self._progress.total or self._changes_target()):
            return
        with self.connection, transaction(self.connection):
            rules = self.grading.rules.stored
            self._key = record_rules(self.connection, self.grading.identity, rules)
            after = self.exam.after
            detail = {
                **(self.grading.grader.provenance or {}),
                **active_detail(self._owner, self._progress.total),
                "bank": self.exam.bank,
                **({} if self.target is None else {"for": self.target.stored}),
                **({} if after is None else {"after": after[1]._asdict()}),
            }
            at = datetime.now(UTC).isoformat()
            self._run = start_run(self.connection, self._key, at, detail)
        self._started, self._before = time.monotonic(), self.grading.grader.billed
        with at_work(self._owner):
            try:
                yield from self._passes()
            finally:
                # repeat this, because an interrupt may have cut off the end of a pass
                self._release()
                with suppress(CollectionBusy), self.connection, transaction(self.connection):
                    forget_unused(self.connection, self._key, self._run)
        # another process that writes for so long has pages to store itself
        with suppress(CollectionBusy), self.connection, transaction(self.connection):
            write_pages(self.connection)

    def _changes_target(self) -> bool:
        """Return whether the last run had another target; then this run is recorded."""
        if (key := self._stored_key) is None:
            return False
        of_bank = self.connection, key, self.exam.bank
        rule = self.exam.after[1] if self.exam.after else None
        return (self.target, rule) != (target_of(*of_bank), cascade_of(*of_bank))

    def _other_code(self) -> str:
        """Return a warning if grades under this name are from a function with other code."""
        code = str((self.grading.grader.provenance or {}).get(CODE, ""))
        if (key := self._stored_key) is None or not code:
            return ""
        different = details_of(self.connection, key, CODE) - {code}
        # the code of a function depends on the version of Python
        if code.split()[0] not in {one.split()[0] for one in different if one}:
            return ""
        name = self.grading.identity.name
        return (
            f"Some grades of {name} are from a function with different code, and remain. If this "
            "one rates differently, grade under another name."
        )

    def _verify_again(self) -> None:
        """Reread stored replies if the rules have changed, so that they are not pending."""
        rules = self.grading.rules.stored
        if rules is not None and self._stored_key is not None:
            with self.connection, transaction(self.connection):
                record_rules(self.connection, self.grading.identity, rules)

    def _passes(self) -> Iterator[Progress]:
        self._progress.held_by = holders(self.connection, self._key, self._owner)
        if self._progress.held_by:
            yield self._progress
        # failed cells join the batch of the rest; otherwise they would take another day
        order = (self.select,) if self.grading.grader.prepaid else _SELECT_ORDER[self.select]
        for queries in self._query_groups():
            for select in order:
                yield from self._select(queries, select)
        if (cells := self._target_cells()) is not None:
            left = max(0, self._count_needed(cells) - self._progress.ungraded)
            self._progress.outcome = cells.outcome
            self._progress.total = self._progress.done + left
        elif not self.stopped:
            self._progress.elsewhere = max(0, self._progress.total - self._progress.done)
        yield self._progress

    def _count_needed(self, cells: TargetCells) -> int:
        count = cells.count()
        self._progress.not_needed, self._progress.skipped = count.not_needed, count.skipped
        return count.needed

    def _query_groups(self) -> Iterator[list[int]]:
        """Yield the queries to grade, in groups while what ends the grading is not decided.

        While drawing, all queries come twice: for drawn items, then for cells that are not skipped.
        """
        cells = self._target_cells()
        for queries in self.groups(self.query_order(cells)):
            if self.stopped or ((now := self._target_cells()) and now.is_decided):
                return
            yield list(queries)
        if cells is not None and cells.is_drawing and not self.stopped:
            with self.connection, transaction(self.connection):
                cells.learn(self._run)
            yield query_order(self.connection, self.exam)

    def query_order(self, cells: TargetCells | None) -> list[int]:
        """Return the keys of the queries in the order in which they are graded."""
        if cells is not None and cells.ends_early:
            return cells.query_order()
        return query_order(self.connection, self.exam)

    def groups(self, of_queries: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the groups of queries that are graded one after the other, or values of theirs."""
        ends_early = self.target is not None and self.target.until
        size = group_size(len(of_queries)) if ends_early else max(1, len(of_queries))
        return (of_queries[start : start + size] for start in range(0, len(of_queries), size))

    def _select(self, queries: list[int], select: str) -> Iterator[Progress]:
        while (queries or self._repeats) and not self.stopped:
            leased: list[int] = []
            for _ in self._pass(queries, select, leased):
                yield self._progress
            if reason := self.grading.grader.stopped:
                self.stopped, self.why_stopped = True, reason
            # failed cells of another process belong to it: wait only for cells without a reply
            if self._again or self._repeats or self._unfinished:
                queries, self._again = [*self._again, *self._unfinished, *leased], {}
                continue
            if self._put_off and not self.stopped:
                yield from self._wait_for_replies()
                queries, self._put_off = [*self._put_off, *leased], {}
                continue
            if select == "failed":
                break
            queries = yield from self._wait_for(leased)
            self._progress.waits = False

    def _wait_for_replies(self) -> Iterator[Progress]:
        for state in self.grading.grader.wait():
            self._progress.awaits = state
            yield self._progress
        self._progress.awaits = ""
        if self.stopped:
            self.why_stopped = self.why_stopped or self.grading.grader.stopped

    def _wait_for(self, leased: list[int]) -> Generator[Progress, None, list[int]]:
        """Wait until another process releases a query; return the queries that it had."""
        while leased and not self.stopped:
            released = others(self.connection, self._key, self._owner)
            if not set(leased) <= {query for queries in released.values() for query in queries}:
                return leased
            if not self._progress.waits:
                self._progress.waits = True
                self._progress.held_by = holders(self.connection, self._key, self._owner)
                yield self._progress
            time.sleep(POLL_SECONDS)
        return []

    def _pass(self, queries: list[int], select: str, leased: list[int]) -> Iterator[None]:
        """Grade the pending cells of some queries; those with other leases go to `leased`."""
        committed = time.monotonic()
        requests = self._requests_of(queries, select, leased)
        replies = self._replies.receive(requests)
        try:
            for _ in replies:
                self._settle()
                late = time.monotonic() - committed > COMMIT_SECONDS
                if late or len(self._rows) >= COMMIT_CELLS:
                    self._commit()
                    committed = time.monotonic()
                    yield
                if not self.grading.grader.prepaid:
                    self._check_failures()
            is_stopped = self.stopped or self.grading.grader.stopped
            if not is_stopped and (self._waiting or next(requests, None) is not None):
                raise Unfinished(f"the grader ended before it had answered everything. {_KEPT}")
        finally:
            replies.close()
            self._release()
        self._check_failures()
        yield

    def _check_failures(self) -> None:
        if self._failures >= self.max_failures:
            raise Unfinished(
                f"{self._failures} consecutive failures, the last: "
                f"{self._progress.last_failure}. {_KEPT}. To change the limit: "
                "--max-failures"
            )

    def _release(self) -> None:
        """Store the replies that have arrived and release all leases; can be repeated safely."""
        try:
            while self._replies.arrived:
                self._settle()
        finally:
            self._commit()
            with self.connection, transaction(self.connection):
                release_all(self.connection, self._key, self._owner)
            self._waiting.clear()
            self._open.clear()
            self._unfinished, self._plans = self._plans, {}
            self._seen = data_version(self.connection)

    def _requests_of(self, queries: list[int], select: str, leased: list[int]) -> Iterator[Request]:
        cells = self._target_cells()
        for query in queries:
            yield from self._next_rounds()
            if self.stopped:
                return
            if not self._claim(query):
                leased.append(query)
                continue
            self._open[query] += 1
            found = pending_of_query(self.connection, query, self._key, self.exam, select)
            untried = filter(self._is_untried, found)
            if cells is None or self.grading.grader.collects:
                yield from self._requests(query, untried)
                self._open[query] -= 1
            else:
                # a plan of the last pass is up to date unless another process has written since
                known = self._unfinished.pop(query, None)
                is_current = self._seen == data_version(self.connection)
                self._plans[query] = (is_current and known) or cells.plan(query, untried)
        yield from self._next_rounds()
        yield from self._repeat_requests()

    def _is_untried(self, one: PendingCells) -> bool:
        """Return whether a request did not fail during this run."""
        return one.before is None or not self._tried.isdisjoint(one.cells)

    def _next_rounds(self) -> Iterator[Request]:
        """Yield the next rounds of all planned queries without an active request."""
        yield from self._repeat_requests()
        while ready := [query for query in self._plans if self._open[query] == 1]:
            for query in ready:
                if self.stopped:
                    return
                plan, most = self._plans.get(query), self.grading.grader.most_items
                if plan is not None and (requests := plan.next_round(most)):
                    # replies that arrive meanwhile may close cells of the round
                    yield from self._requests(query, filter(plan.is_needed, requests))
                else:
                    self._end_plan(query)

    def _end_plan(self, query: int) -> None:
        if self._plans.pop(query, None) is not None:
            self._open[query] -= 1

    def _requests(self, query: int, pending: Iterable[PendingCells]) -> Iterator[Request]:
        for one in pending:
            yield from self._repeat_requests()
            if self.stopped:
                return
            if one.twin is None:
                yield from self._request(query, one)
                continue
            self._copies.append(one)
            self._progress.done += len(one.cells)
            self._progress.copied += len(one.cells)
            self._rate(query, one, one.twin_rating)

    def _rate(self, query: int, one: PendingCells, rating: int | None) -> None:
        """Record a grade in the plan of its query."""
        plan = self._plans.get(query) or self._unfinished.get(query)
        if rating is not None and plan is not None:
            plan.rate(one, rating)

    def _repeat_requests(self) -> Iterator[Request]:
        """Repeat requests with unreadable replies, unless another process now has the query."""
        while self._repeats and not self.stopped:
            query, one = self._repeats.popleft()
            if query in self._open or self._claim(query):
                yield from self._request(query, one)

    def _claim(self, query: int) -> bool:
        with self.connection, transaction(self.connection):
            for lease in leases(self.connection, self._key):
                if lease.query == query and is_gone(lease.owner):
                    release(self.connection, self._key, lease.owner, [query])
            return claim(self.connection, self._key, query, self._owner)

    def _request(self, query: int, one: PendingCells) -> Iterator[Request]:
        self._last_key += 1
        if not self.needs_request(one):
            grade = Grade("", State.GRADED, self.grading.prompt.lowest, rule=NO_ANSWER)
            self._store(query, self._last_key, one, grade)
            return
        limit = self.grading.grader.limit
        try:
            request = self.grading.request(self._last_key, one)
        except InputError as error:
            # this item's prompt does not fit the model: only this cell fails
            grade = Grade("", State.FAILED, detail={"reason": str(error)})
            self._store(query, self._last_key, one, grade)
            return
        self._waiting[self._last_key] = PendingRequest(query, one, request.kept, limit)
        self._open[query] += 1
        yield request

    def needs_request(self, one: PendingCells) -> bool:
        """Return whether cells need a request: no equal cell is graded, and no rule grades them."""
        is_none = self.exam.answers_of is not None and is_no_answer(one.passage, one.keys)
        return one.twin is None and not is_none

    def _settle(self) -> None:
        """Store the first of the replies that have arrived."""
        if fault := describe_mismatch(self._replies.arrived[0], self._waiting):
            self._replies.arrived.popleft()
            raise InputError(fault, hint="A grader yields each request once, with its Reply")
        request, reply = self._replies.arrived[0]
        query, one, kept, limit = self._waiting[request.key]
        if reply.later:
            self._put_off[query] = None
            self._end_plan(query)
            self._count_usage(reply.usage)
            self._forget(request)
            return
        reply = sanitize_reply(reply)
        if reply.fault and self._takes_less_than(limit):
            self._again[query] = None
            self._end_plan(query)
            self._count_reply(request, reply, 0)
            return
        grade = self.grading.rules.read(one, reply, kept)
        read = grade.state.name.lower() if grade.rating is None else str(grade.rating)
        self._latest.append(LatestReply(one.query, one.item, reply.fault or reply.text, read))
        # if the repeated request fails, the first reply remains
        if not (reply.fault and one.cells in self._repeated):
            self._store(query, request.key, one, grade)
        if self._repeats_once(query, one, grade.state):
            self._count_reply(request, reply, 0)
            return
        self._count_reply(request, reply, len(one.cells))
        self._count_failure(one, reply, grade)
        self._tried.difference_update(one.cells)

    def _repeats_once(self, query: int, one: PendingCells, state: State) -> bool:
        """Queue cells for a second request after their first unreadable reply."""
        repeats = (
            self.grading.grader.varies and state in UNREADABLE and one.cells not in self._repeated
        )
        if repeats:
            self._repeated[one.cells] = state
            self._repeats.append((query, one))
        return repeats

    def _takes_less_than(self, limit: int | None) -> bool:
        """Return whether the token limit has decreased since the request."""
        now = self.grading.grader.limit
        return now is not None and (limit is None or now < limit)

    def _count_reply(self, request: Request, reply: Reply, cells: int) -> None:
        """Count a reply and forget its request; an interrupt now loses nothing."""
        self._forget(request)
        spent, usage = self._progress.spent, reply.usage
        self._progress.asked += 1
        self._progress.spent = spent._replace(
            # a request without a connection has no reply, and would make replies seem cheap
            asked=spent.asked + (not reply.fault or usage.read + usage.written > 0),
            cells=spent.cells + cells,
        )
        self._count_usage(usage)

    def _count_usage(self, usage: Usage) -> None:
        spent = self._progress.spent
        self._progress.spent = spent._replace(
            tokens_read=spent.tokens_read + usage.read,
            tokens_cached=spent.tokens_cached + usage.cached,
            tokens_written=spent.tokens_written + usage.written,
        )

    def _forget(self, request: Request) -> None:
        query = self._waiting[request.key].query
        self._replies.arrived.popleft()
        del self._waiting[request.key]
        self._open[query] -= 1

    def _count_failure(self, one: PendingCells, reply: Reply, grade: Grade) -> None:
        """Count consecutive failures; a grade ends them, and a repeated outcome does not count."""
        if grade.state is State.GRADED:
            self._failures = 0
        elif grade.state is State.FAILED or one.before != grade.state:
            self._failures += 1
            self._progress.last_failure = reply.fault or why_ungraded(grade)

    def _store(self, query: int, number: int, one: PendingCells, grade: Grade) -> None:
        if self.exam.by_query:
            grade = replace(grade, detail={**(grade.detail or {}), "query": one.query})
        made_from = one.answer_key if self.grading.prompt.verifies else NO_KEY
        self._rows[number] = [grade_row(self._key, *cell, grade, made_from) for cell in one.cells]
        self._progress.count(len(one.cells), grade.state, self._repeated.get(one.cells))
        self._rate(query, one, grade.rating)

    def _commit(self) -> None:
        finished = [query for query, count in self._open.items() if not count]
        is_written = False
        while not is_written:
            # replies may have been paid for: wait until the other writer is done
            with suppress(CollectionBusy):
                self._write(finished)
                is_written = True
        self.grading.grader.acknowledge(list(self._rows))
        self._rows.clear()
        self._copies.clear()
        for query in finished:
            del self._open[query]

    def _write(self, finished: list[int]) -> None:
        requests, cost = self.grading.grader.billed
        self._progress.spent = self._progress.spent._replace(
            seconds=time.monotonic() - self._started,
            requests=requests - self._before[0],
            cost=None if cost is None else cost - (self._before[1] or 0.0),
        )
        with self.connection, transaction(self.connection):
            put_grades(self.connection, chain.from_iterable(self._rows.values()))
            for one in self._copies:
                copy_grade(self.connection, self._key, one)
            update_run(self.connection, self._run, self._progress.spent)
            renew(self.connection, self._key, self._owner)
            release(self.connection, self._key, self._owner, finished)


def check_numbers(exam: GradingScope, max_failures: int) -> None:
    """Raise InputError for depths, queries and failures below 1."""
    queries = 1 if exam.max_queries is None else check_integer("max_queries", exam.max_queries)
    depth = check_integer("depth", exam.depth)
    numbers = (depth, check_integer("max_failures", max_failures), queries)
    if min(numbers) < 1 or max(numbers) >= 2**31:
        raise InputError("depth, max_failures and max_queries are at least 1, and less than 2**31")
