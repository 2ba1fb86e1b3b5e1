"""Generation of bank items by a model.

There is one request per query or subtopic and one transaction per reply. An interrupt loses no
reply, and the next run requests only items that this model and prompt have not made yet.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from exampp.errors import InputError, Unfinished
from exampp.graders.base import (
    CHARACTERS_PER_TOKEN,
    Grader,
    Replies,
    Reply,
    Request,
    sanitize_reply,
)
from exampp.items.duplicates import NearDuplicate, near_duplicates
from exampp.prompts.generation import (
    MOST_ITEMS,
    UNFINISHED_THOUGHT,
    WINDOW,
    GenerationPrompt,
    GenerationRequest,
    ParsedItem,
    fill_request,
    prompt_hash,
    read_items,
)
from exampp.records import Item, content_hash, item_id
from exampp.records.grouping import grouped
from exampp.records.items import IMPROVES
from exampp.records.wording import counted
from exampp.records.work import LATEST, LatestReply, WorkProgress
from exampp.results.result import Table
from exampp.results.view import Value
from exampp.stopping import GRACE_SECONDS, MAX_FAILURES
from exampp.store.bank import Edit, add_items, last_edit, log, states
from exampp.store.connection import transaction
from exampp.store.generation import (
    FAILED,
    MADE,
    GeneratedBy,
    StoredReply,
    Subject,
    asked_once,
    best_passages,
    failed_replies,
    generated_keys,
    put_generation,
    subjects,
)

PER = ("query", "subtopic")
OPERATION = "generate"
"""Operation of generated items in the log of a bank."""
TOKENS_PER_ITEM = 25
ESTIMATED_ITEMS = 10
"""Items of a reply to a prompt that names no number, for estimates."""
_WORD = re.compile(r"\w")


class WritingTask(NamedTuple):
    """The texts that the writer of items on trial is shown, and the systems that they come from."""

    items: tuple[str, ...]
    passages: tuple[str, ...]
    systems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GenerationOutcome:
    """The result of one request.

    Attributes:
        reason: How the reply was read, or why not.
        near: New items that are dropped or marked as duplicates.
        asked: Number of items that the request asked for; 0 if it named none.
        again: Whether it is the second request of a query or subtopic, for its missing items.
        repeated: Number of items that repeat an earlier one of the reply.
    """

    subject: Subject
    state: str
    reason: str
    items: tuple[Item, ...] = ()
    near: tuple[NearDuplicate, ...] = ()
    asked: int = 0
    again: bool = False
    repeated: int = 0

    @property
    def duplicates(self) -> int:
        """Return the number of items that were dropped because they were there already."""
        return self.repeated + sum(not pair.differs for pair in self.near)


@dataclass(frozen=True, slots=True)
class GenerationPreview:
    """The expected size and cost of a run.

    `requests` and prompt tokens (by the model's tokenizer if `exact`), `cost` if prices are given,
    and two filled prompts. With `again`, a second request follows where items are missing.
    """

    requests: int
    tokens: int
    exact: bool
    cost: float | None
    prompts: tuple[str, ...]
    notes: tuple[str, ...]
    again: bool = False
    per: str = PER[0]

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the requests, tokens and cost in words."""
        again = "; a second one where items are missing" if self.again else ""
        first = " for the first requests" if self.again else ""
        return {
            "requests": f"{self.requests}, one per {self.per}{again}",
            "prompt tokens": f"{'' if self.exact else 'about '}{self.tokens}",
            "cost": "unknown (no prices given)"
            if self.cost is None
            else f"about {self.cost:.4f}{first}",
        }


class GenerationRun:
    """A run of one model over queries (or subtopics) without items by it.

    Iterate over `steps` to do the work; every reply is committed before it is yielded.
    `MAX_FAILURES` consecutive failures raise Unfinished. `stop`, called from a signal handler or
    another thread, ends the run early. `why_stopped` is the reason for an early end, such as a
    limit on requests or cost; `left` is the number of remaining first requests, `requests` the
    number of all that are planned so far. A query that gets fewer items than requested is asked
    once more, with its items named. Items equivalent to others of their query are dropped;
    paraphrases are marked. With `tasks` by query id, the items go on trial, and other queries are
    left out.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        bank: str,
        grader: Grader,
        model: str,
        prompt: GenerationPrompt,
        edit: Edit,
        *,
        per: str | None = None,
        query_id: str | None = None,
        wish: GenerationRequest | None = None,
        tasks: Mapping[str, WritingTask] | None = None,
        dry_run: bool = False,
    ) -> None:
        self.connection = connection
        self.bank = bank
        self.grader = grader
        self.model = model
        self.prompt = prompt
        self.wish = wish or GenerationRequest()
        self.tasks = tasks
        if prompt.needs_passages and not self.wish.grounded and tasks is None:
            self.wish = replace(self.wish, grounded=WINDOW)
        self.why_stopped = ""
        self.left = 0
        self.notes: tuple[str, ...] = ()
        self._edit = edit
        self._first_edit = last_edit(connection, bank)
        self._known: dict[str, list[Item]] = {}
        self._unsent: list[tuple[Subject, int, str]] = []
        self._waiting: dict[int, tuple[Subject, int]] = {}
        self._missing: list[tuple[Subject, int]] = []
        self._replies = Replies(grader)
        self._progress = WorkProgress("requests")
        self._started, self._before = 0.0, self.grader.billed
        self._latest: deque[LatestReply] = deque(maxlen=LATEST)
        self.stopped = False
        self._check(query_id)
        self._hash = prompt_hash(prompt, self.wish)
        if tasks is not None:
            shown = (f"{query} {task}" for query, task in sorted(tasks.items()))
            self._hash = content_hash(self._hash, *shown)
        self.per = self._checked_per(per)
        self.pending = self._plan(query_id)
        self.requests = len(self.pending) + len(self._stored)
        self.dry_run = dry_run

    def _check(self, query_id: str | None) -> None:
        if not self.bank.strip():
            raise InputError("the name of the bank is blank", field="bank")
        for name in ("count", "more", "grounded"):
            if not 0 <= (number := getattr(self.wish, name)) <= MOST_ITEMS:
                raise InputError(
                    f"{name} is {number}", field=name, hint=f"Use a number from 1 to {MOST_ITEMS}"
                )
        if self.wish.keys and not self.prompt.keys_instruction:
            what = f"the prompt {self.prompt.name!r} does not ask for answers"
            raise InputError(what, hint="Leave out --keys, or choose another prompt")
        if self.wish.more and query_id is None:
            raise InputError("--more needs a query", hint="Name it with --query")

    def _checked_per(self, per: str | None) -> str:
        if per is None:
            return "subtopic" if self.prompt.needs_subtopic else "query"
        if per not in PER:
            raise InputError(f"invalid per {per!r}", hint=f"Choose from {', '.join(PER)}")
        if per == "subtopic" and self.tasks is not None:
            raise InputError(
                f"the prompt {self.prompt.name!r} is for whole queries", hint="Leave out --per"
            )
        if per == "query" and self.prompt.needs_subtopic:
            raise InputError(
                f"the prompt {self.prompt.name!r} is for subtopics",
                hint="Leave out --per, or choose another prompt, such as dl-questions",
            )
        return per

    def _plan(self, query_id: str | None) -> list[Subject]:
        subjects_to_ask = subjects(self.connection, by_subtopic=self.per == "subtopic")
        if query_id is not None:
            subjects_to_ask = [one for one in subjects_to_ask if one.query_id == query_id]
        if not subjects_to_ask:
            raise self._nothing(query_id)
        if self.tasks is not None:
            subjects_to_ask = [one for one in subjects_to_ask if one.query_id in self.tasks]
        before = (self.connection, self.bank, self._generated_by())
        more = self.wish.more > 0
        generated = set[tuple[int, int]]() if more else generated_keys(*before)
        failed = {} if more else failed_replies(*before)
        once = {} if more else asked_once(*before)
        texts = [
            one
            for one in subjects_to_ask
            if one.query_text and (one.subtopic_text or not one.subtopic)
        ]
        new = [one for one in texts if (one.query, one.subtopic) not in generated]
        pending = new
        if self.wish.grounded:
            pending = [one for one in new if best_passages(self.connection, one, 1)]
        self._stored = {
            subject: text
            for subject in pending
            if (text := failed.get((subject.query, subject.subtopic)))
            and read_items(text, self.prompt.makes, truncated=True).made
        }
        asked = self.wish.asked(self.prompt)
        self._missing = [
            (one, asked - made)
            for one in texts
            if (made := once.get((one.query, one.subtopic), asked)) < asked
        ]
        which = "subtopics" if self.per == "subtopic" else "queries"
        counts = {
            f"{which} already have items by this model and prompt": len(texts) - len(new),
            f"{which} have no passages and are left out": len(new) - len(pending),
            f"{which} have no text and are left out": len(subjects_to_ask) - len(texts),
            f"{which} have fewer items than requested and are asked once more": len(self._missing),
            f"{which} have a stored reply that can be read now": len(self._stored),
        }
        self.notes = tuple(f"{count} {what}" for what, count in counts.items() if count)
        return [subject for subject in pending if subject not in self._stored]

    def _nothing(self, query_id: str | None) -> InputError:
        if self.per == "subtopic":
            place = "the collection" if query_id is None else f"query {query_id!r}"
            hint = "Import them, or choose a prompt for whole queries, such as dl-questions"
            return InputError(f"{place} has no subtopics", hint=hint)
        if query_id is None:
            return InputError("the collection has no queries", hint="Import them: exampp import")
        return InputError(f"query {query_id!r} is not in the collection")

    def preview(
        self, price_read: float | None = None, price_written: float | None = None
    ) -> GenerationPreview:
        """Preview the run without calling the model; prices are per million tokens."""
        self._load()
        measured = self.grader.limit is not None
        tokens = 0
        examples: list[str] = []
        for subject in self.pending:
            system, user = self._texts(subject)
            tokens += self._tokens(system, user, measured)
            if len(examples) < 2:
                examples.append(f"[system]\n{system}\n\n[user]\n{user}" if system else user)
        cost = None
        if price_read is not None and price_written is not None:
            asked = self.wish.asked(self.prompt) or ESTIMATED_ITEMS
            written = TOKENS_PER_ITEM * asked * len(self.pending)
            cost = (tokens * price_read + written * price_written) / 1e6
        exact = measured and self.grader.exact_tokens
        return GenerationPreview(
            *(len(self.pending), tokens, exact, cost, tuple(examples), self.notes),
            again=self.wish.asked(self.prompt) > 0,
            per=self.per,
        )

    @property
    def progress(self) -> WorkProgress:
        """Return the progress at the last reply; any thread may read it."""
        latest = tuple(reversed(self._latest.copy()))
        return replace(self._progress, total=self.requests, latest=latest)

    @property
    def edits(self) -> list[int]:
        """Return the numbers of the edits of this run, for `Bank.undo`."""
        return [
            one.number
            for one in log(self.connection, self.bank, self._first_edit)
            if one.operation == OPERATION and one.edit[:2] == self._edit[:2]
        ]

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop sending requests; `steps` ends after replies within `grace` seconds are stored."""
        self.stopped = True
        self._replies.stop(grace)

    def steps(self) -> Iterator[GenerationOutcome]:
        """Send all pending requests; yield each result after it is committed.

        Received replies are always stored, even after an interrupt. A dry run sends nothing.
        """
        if self.dry_run:
            return
        self._load()
        self.left = self.requests
        self._started, self._before = time.monotonic(), self.grader.billed
        for subject, text in self._stored.items():
            yield self._settle(subject, 0, Reply(text, truncated=True))
        yield from self._answered([(subject, 0) for subject in self.pending])
        self.why_stopped = self.grader.stopped if self.left else ""
        if self._missing and not (self.stopped or self.left):
            self.requests += len(self._missing)
            yield from self._answered(self._missing)

    def _answered(self, requests: Sequence[tuple[Subject, int]]) -> Iterator[GenerationOutcome]:
        """Send a request for each subject; the number of its missing items, or 0 for the first."""
        failures = 0
        replies = self._replies.receive(self._asks(requests))
        try:
            for _ in replies:
                yield from self._flush()
                reply = self._replies.arrived[0][1]
                yield self._settle_next()
                failures = failures + 1 if reply.fault else 0
                if failures >= MAX_FAILURES:
                    raise Unfinished(
                        f"{failures} failures in a row, the last: {reply.fault}. All items so "
                        "far are stored; run the same command again to continue"
                    )
        finally:
            replies.close()
            while self._replies.arrived:
                self._settle_next()
        yield from self._flush()

    # ---- requests --------------------------------------------------------------------------------

    def _generated_by(self) -> GeneratedBy:
        settings = json.dumps(dict(self.grader.settings), sort_keys=True, default=str)
        return GeneratedBy(self.model, self.prompt.name, self._hash, settings)

    def _load(self) -> None:
        known = (
            Item(one.item_id, one.query_id, one.text, one.kind, one.subtopic_id, (), one.weight)
            for one in states(self.connection, self.bank)
            if one.text and _WORD.search(one.text)
        )
        self._known = grouped(known, lambda item: item.query_id)

    def _texts(self, subject: Subject, missing: int = 0) -> tuple[str, str]:
        query = subject.query_text
        if subject.subtopic and not self.prompt.needs_subtopic:
            query = f"{query} / {subject.subtopic_text}"
        passages: list[str] = []
        if self.wish.grounded:
            passages = best_passages(self.connection, subject, self.wish.grounded)
        known = [i.text for i in self._of(subject) if i.subtopic_id == subject.subtopic_id]
        wish = replace(self.wish, more=missing or self.wish.more)
        if self.tasks is not None:
            task = self.tasks[subject.query_id]
            wish = replace(self.wish, count=missing or self.wish.count)
            known = [*task.items, *(i.text for i in self._of(subject) if not i.weight)]
            return fill_request(self.prompt, wish, query, known=known, passages=task.passages)
        return fill_request(
            self.prompt,
            wish,
            query,
            subject.subtopic_text,
            known=known if wish.more else (),
            passages=passages,
        )

    def _of(self, subject: Subject) -> list[Item]:
        known = self._known.get(subject.query_id, ())
        return [item for item in known if item.kind == self.prompt.makes]

    def _tokens(self, system: str, user: str, measured: bool) -> int:
        if measured:
            return self.grader.length(user, system)
        return -(-len(system + user) // CHARACTERS_PER_TOKEN)

    def _asks(self, requests: Sequence[tuple[Subject, int]]) -> Iterator[Request]:
        limit = self.grader.limit
        for number, (subject, missing) in enumerate(requests):
            if self.stopped:
                return
            system, user = self._texts(subject, missing)
            if limit is not None and (count := self._tokens(system, user, True)) > limit:
                reason = f"the prompt has {count} tokens, but the model accepts {limit}"
                self._unsent.append((subject, missing, reason))
                continue
            self._waiting[number] = subject, missing
            yield Request(number, subject.query_text, "", user, system)

    # ---- results ---------------------------------------------------------------------------------

    def _flush(self) -> Iterator[GenerationOutcome]:
        """Yield requests that could not be sent."""
        while self._unsent:
            subject, missing, reason = self._unsent.pop(0)
            yield self._settle(subject, missing, Reply("", fault=reason))

    def _settle_next(self) -> GenerationOutcome:
        ask, reply = self._replies.arrived[0]
        outcome = self._settle(*self._waiting[ask.key], reply)
        self._replies.arrived.popleft()
        return outcome

    def _settle(self, subject: Subject, missing: int, reply: Reply) -> GenerationOutcome:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        reply = sanitize_reply(reply)
        outcome = self._read(subject, reply, at)
        raw = None if reply.fault else _stored_text(reply)
        edit = self._edit._replace(at=at)
        with self.connection, transaction(self.connection):
            items = add_items(self.connection, self.bank, outcome.items, OPERATION, edit)
            replied = StoredReply(outcome.state, outcome.reason, raw, len(items), at)
            put_generation(self.connection, self.bank, subject, self._generated_by(), replied)
        asked = missing or self.wish.asked(self.prompt)
        outcome = replace(outcome, items=tuple(items), asked=asked, again=missing > 0)
        self._known.setdefault(subject.query_id, []).extend(outcome.items)
        self._count(outcome, reply)
        if not missing:
            self.left -= 1
            if outcome.state == MADE and len(items) < asked:
                self._missing.append((subject, asked - len(items)))
        return outcome

    def _count(self, outcome: GenerationOutcome, reply: Reply) -> None:
        """Count a reply that is stored."""
        before, (requests, cost) = self._progress, self.grader.billed
        failed = Counter(before.failed) + Counter({FAILED: outcome.state == FAILED})
        self._progress = replace(
            before,
            done=before.done + 1,
            seconds=time.monotonic() - self._started,
            requests=requests - self._before[0],
            tokens_read=before.tokens_read + reply.usage.read,
            tokens_written=before.tokens_written + reply.usage.written,
            cost=None if cost is None else cost - (self._before[1] or 0.0),
            failed=failed,
        )
        items = counted(len(outcome.items), self.prompt.makes)
        read = items if outcome.items else outcome.reason
        query = outcome.subject.query_text
        self._latest.append(LatestReply(query, "", reply.fault or reply.text, read))

    def _read(self, subject: Subject, reply: Reply, at: str) -> GenerationOutcome:
        if reply.fault:
            return GenerationOutcome(subject, FAILED, reply.fault)
        if reply.detail.get("refusal"):
            return GenerationOutcome(subject, FAILED, "the model refused")
        if reply.detail.get("thoughts") and not reply.text.strip():
            return GenerationOutcome(subject, FAILED, UNFINISHED_THOUGHT)
        parsed = read_items(reply.text, self.prompt.makes, truncated=reply.truncated)
        if not parsed.made:
            return GenerationOutcome(subject, FAILED, parsed.rule)
        items, near = self._select(subject, parsed.made, at)
        return GenerationOutcome(subject, MADE, parsed.rule, items, near, repeated=parsed.repeated)

    def _select(
        self, subject: Subject, parsed: Sequence[ParsedItem], at: str
    ) -> tuple[tuple[Item, ...], tuple[NearDuplicate, ...]]:
        """Return the new items, and duplicates and near duplicates among them."""
        earlier = self._of(subject)
        known = {item.item_id: item for item in earlier}
        fresh = [self._item(subject, one, at) for one in parsed]
        near = [NearDuplicate(i, known[i.item_id], "") for i in fresh if i.item_id in known]
        new = {item.item_id: item for item in fresh if item.item_id not in known}
        for one in near_duplicates([*earlier, *new.values()]) if new else ():
            if (item := new.get(one.item.item_id)) is None:
                continue
            near.append(one)
            if one.differs:
                new[item.item_id] = _marked(item, one)
            else:
                del new[item.item_id]
        return tuple(new.values()), tuple(near)

    def _item(self, subject: Subject, parsed: ParsedItem, at: str) -> Item:
        answers = parsed.answers if self.wish.keys else ()
        origin = {
            "machine_made": True,
            "model": self.model,
            "prompt": self.prompt.name,
            "prompt_hash": self._hash,
            "at": at,
            **({"answers_machine_made": True} if answers else {}),
        }
        identifier = item_id(subject.query_id, parsed.text, subject.subtopic_id)
        task = self.tasks[subject.query_id] if self.tasks else None
        return Item(
            identifier,
            subject.query_id,
            parsed.text,
            self.prompt.makes,
            subject.subtopic_id,
            answers,
            weight=0.0 if task else 1.0,
            extra={"generated": origin, **({IMPROVES: list(task.systems)} if task else {})},
        )


def _stored_text(reply: Reply) -> str:
    """Return the text of a reply; one that is a thought alone is stored as such."""
    thoughts = reply.detail.get("thoughts")
    return f"<think>{thoughts}" if thoughts and not reply.text.strip() else reply.text


def _marked(item: Item, one: NearDuplicate) -> Item:
    """Return the item with its near duplicate recorded in its origin."""
    mark = {"item": one.like.item_id, "text": one.like.text, "differs": one.differs}
    return replace(
        item, extra={**item.extra, "generated": {**item.extra["generated"], "near": mark}}
    )


def generation_tables(
    run: GenerationRun, outcomes: Sequence[GenerationOutcome]
) -> tuple[Table, Table]:
    """Return one row per request, and one per item that was dropped or marked as a duplicate."""
    rows: list[tuple[Value, ...]] = []
    near: list[tuple[Value, ...]] = []
    fates: dict[str, list[NearDuplicate]] = {"dropped": [], "kept": []}
    for one in outcomes:
        place = (one.subject.query_id, one.subject.subtopic_id or "")
        asked = one.asked or None
        rows.append((*place, one.state, asked, len(one.items), one.duplicates, one.reason))
        for pair in one.near:
            became, like = "kept" if pair.differs else "dropped", pair.like
            fates[became].append(pair)
            differs = pair.differs or "nothing"
            near.append((*place, pair.item.text, became, differs, f"{like.item_id}: {like.text}"))
    failed = sum(one.state == FAILED for one in outcomes)
    notes = []
    if failed:
        notes.append(f"{failed} requests failed; run the same command again to retry")
    if run.left:
        why = f" ({run.why_stopped})" if run.why_stopped else ""
        notes.append(
            f"{run.left} requests not sent yet{why}; run the same command again to continue"
        )
    if note := run.grader.note:
        notes.append(note)
    heads = ["query", "subtopic", "state", "asked", "items", "duplicates", "how"]
    near_notes = [
        f"{len(some)} {_FATES[became]}: {some[0].item.text!r} "
        f"({some[0].differs or 'as'}: {some[0].like.text!r})"
        for became, some in fates.items()
        if some
    ]
    near_heads = ["query", "subtopic", "made", "became", "differs in", "from"]
    return (
        Table.of(heads, rows, notes=[*notes, *run.notes], verdict=_verdict(run, outcomes)),
        Table.of(near_heads, near, notes=near_notes),
    )


def _verdict(run: GenerationRun, outcomes: Sequence[GenerationOutcome]) -> str:
    """Describe the outcome of all requests in a sentence or two."""
    made = Counter[tuple[str, str | None]]()
    asked = Counter[tuple[str, str | None]]()
    for one in outcomes:
        place = one.subject.query_id, one.subject.subtopic_id
        made[place] += len(one.items)
        asked[place] += 0 if one.again else one.asked
    usable, total = made.total(), asked.total()
    counts = (
        f"{usable} of {total} {run.prompt.makes}s" if total else f"{usable} {run.prompt.makes}s"
    )
    duplicates = counted(sum(one.duplicates for one in outcomes), "duplicate")
    failed = sum(one.state == FAILED for one in outcomes)
    marked = sum(bool(pair.differs) for one in outcomes for pair in one.near)
    paraphrases = f" ({counted(marked, 'paraphrase')})" * bool(marked)
    text = f"{counts} added to the bank {run.bank!r}{paraphrases}"
    text += f" by {counted(len(outcomes), 'request')}"
    text += f"; {duplicates} dropped, {failed} failed."
    short = sum(made[place] < number for place, number in asked.items())
    if short:
        which = f"{counted(short, run.per)} {'has' if short == 1 else 'have'}"
        text += f" {which} fewer {run.prompt.makes}s than requested."
    return text


_FATES = {
    "dropped": "dropped as duplicates",
    "kept": "marked as paraphrases",
}
