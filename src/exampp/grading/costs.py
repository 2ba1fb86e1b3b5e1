"""Estimate the cost of a grading run, and of other ways to grade the same exam.

The characters of all requests are counted exactly. The tokens of a sample, or of earlier runs, say
how many tokens a character has. The cells that a target needs depend on the grades: their number
lies between a simulated run, in which every grade covers its item, and all needed cells. Where
queries have grades, the run is replayed on them, and the share of cells that it grades is used for
all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from operator import mul
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.graders.base import CHARACTERS_PER_TOKEN, Grader, Request
from exampp.graders.budget import Price
from exampp.graders.openai.modes import Mode
from exampp.grading.requests import Grading, prompt_slots
from exampp.grading.run import UNSTORED, GradingRun
from exampp.grading.target import QueryPlan, TargetCells
from exampp.prompts import Filled, fill
from exampp.records.gradebook import MISSING
from exampp.records.graders import GradingTarget
from exampp.records.wording import duration
from exampp.results.notes import Note, note
from exampp.results.result import Result, Table
from exampp.results.view import Column, Interval
from exampp.stats.means import student_quantile
from exampp.store.cells import (
    PendingCells,
    count_judged_only,
    count_pending,
    has_rankings,
    pending_cells,
    pending_of_query,
)
from exampp.store.grades import (
    StoredGrader,
    find_grader,
    graders,
    graders_with_grades,
    requests_per_reply,
)
from exampp.store.read_model import query_gradebook
from exampp.store.runs import RunUsage, usage_of

SAMPLE = 200
SHOWN_PROMPTS = 2
BATCH_SHARE = 0.5
"""Price of a request in a batch, as a share of the usual price."""
REPLY_TOKENS = 4
"""Tokens of a reply if this grader has no earlier runs: a rating and its end."""
ITEM_MARKS = 4
"""Characters around an item in a request for several: its number and the line break."""
SIMULATED_QUERIES = 100
"""Maximum number of queries that ways are compared on, and on which a target is simulated."""
LEAST_REPLAYED = 3
"""Minimum number of graded queries for an error of the estimate."""
MANY_ITEMS = {
    "question-self-rating": "question-rating-many",
    "nugget-self-rating": "nugget-rating-many",
    "nuggetizer-assigner": "nuggetizer-assigner-many",
    "nuggetizer-assigner-2grade": "nuggetizer-assigner-many-2grade",
}
"""Prompts for one item a request, and those for several on the same scale."""


class Prices(NamedTuple):
    """Prices of a million tokens (read, cached and written), and of an hour of a machine."""

    read: float | None = None
    cached: float | None = None
    written: float | None = None
    hour: float | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, Any], hour: float | None = None) -> Prices:
        """Return the prices in the options of a grader."""
        read, cached, written = (options.get(f"price_{n}") for n in ("read", "cached", "written"))
        return cls(read, cached, written, hour)

    def of(self, used: _Usage, share: float = 1.0) -> float | None:
        """Return the cost at this share of the token prices; None without prices or if the time is
        unknown.
        """
        costs = []
        if self.read is not None and self.written is not None:
            cached = self.read if self.cached is None else self.cached
            price = Price(self.read, self.written, cached)
            costs.append(share * price.cost(used.read, used.written, used.cached))
        if self.hour is not None and used.seconds is not None:
            costs.append(used.seconds / 3600 * self.hour)
        return sum(costs) if costs else None


class _Usage(NamedTuple):
    """Tokens and time of some requests; `seconds` are None if unknown."""

    read: float
    cached: float
    written: float
    seconds: float | None


class RequestLoad(NamedTuple):
    """Cells, the requests that grade them, and their characters.

    `items` are the replies: equal texts share one. `own` are the characters of the items alone.
    """

    cells: float = 0
    requests: float = 0
    items: float = 0
    characters: float = 0
    own: float = 0

    @classmethod
    def total(cls, loads: Iterable[RequestLoad]) -> RequestLoad:
        """Return the sum of some loads."""
        return cls(*map(sum, zip(cls(), *loads, strict=True)))

    def times(self, *factors: float) -> RequestLoad:
        """Return the load with every part multiplied by the factor, or by its own factor."""
        return RequestLoad(*map(mul, self, cycle(factors)))


class TargetLoads(NamedTuple):
    """The load of the cells that a target needs: the least, the most, and an estimate.

    The estimate comes from the grades of `source` on `queries`; `low` and `high` are its 95 %
    limits, None if unknown.
    """

    least: RequestLoad
    most: RequestLoad
    estimate: RequestLoad | None = None
    low: RequestLoad | None = None
    high: RequestLoad | None = None
    source: str = ""
    queries: int = 0


class _TargetSurvey:
    """Simulates the grading of the cells that a target needs, query by query."""

    def __init__(self, run: GradingRun, key: int | None, target: GradingTarget) -> None:
        self.run = run
        self.cells, self._ungraded = (
            TargetCells(run.connection, StoredGrader(one, run.grading.identity), run.exam, target)
            for one in (key or UNSTORED, UNSTORED)
        )
        # if the grader learns which cells to skip, or may end early, only limits are known
        only_limits = target.may_miss or target.until
        self._source = None if only_limits else _graded_before(run, key)
        self.skipped = 0
        self._needed, self._least = list[RequestLoad](), list[RequestLoad]()
        self._replayed = list[tuple[RequestLoad, RequestLoad]]()

    def add(self, query: int, pending: Sequence[PendingCells], *, simulate: bool) -> None:
        """Count the needed cells of a query; simulate its grades, and replay known grades."""
        pending = [] if self.cells.is_decided else pending
        plan = self.cells.plan(query, pending, counting=True)
        self.skipped += plan.skipped
        self._needed.append(_load(self.run, plan.needed))
        if not simulate:
            return
        highest = self.run.grading.prompt.highest
        plan = self.cells.plan(query, pending)
        self._least.append(_simulated(self.run, plan, lambda _: highest, in_turn=True))
        if self._source is not None:
            self._replay(self._source, query)

    def _replay(self, source: StoredGrader, query: int) -> None:
        """Replay the grades of a query, if it has all that the target needs."""
        run = self.run
        rows, book = query_gradebook(run.connection, source, run.exam.bank, query)
        ratings = book.queries[0].ratings

        def rating(one: PendingCells) -> int:
            item, passage = one.cells[0]
            found = int(ratings[rows.row[passage], rows.column[item]])
            if found == MISSING:
                raise LookupError
            return found

        every = list(pending_of_query(run.connection, query, None, run.exam, "pending"))
        most = _load(run, self._ungraded.plan(query, every).needed)
        with suppress(LookupError):
            self._replayed.append(
                (_simulated(run, self._ungraded.plan(query, every), rating), most)
            )

    def loads(self, scale: float, share: float) -> TargetLoads:
        """Return the loads of all queries: `scale` times as many cells as were counted are pending,
        and `share` times as many as were simulated.
        """
        # if no grade covers its item, every needed cell is requested
        most = RequestLoad.total(self._needed).times(scale)
        # grading ends at the earliest after the first queries that have a needed cell
        groups = map(RequestLoad.total, self.run.groups(self._least))
        least = next((one for one in groups if one.cells), RequestLoad()).times(share)
        if self._source is None or not any(before.items for _, before in self._replayed):
            return TargetLoads(least, most)
        estimate, low, high = _from_replays(self._replayed, most, len(self._needed))
        source = self._source.identity
        if source != self.run.grading.identity:
            low = high = None
        return TargetLoads(least, most, estimate, low, high, source.name, len(self._replayed))


def _from_replays(
    replayed: Sequence[tuple[RequestLoad, RequestLoad]], most: RequestLoad, queries: int
) -> tuple[RequestLoad, RequestLoad | None, RequestLoad | None]:
    """Return the load of further queries, which is at most `most`, and its limits at 95 %.

    It has the ratio of the replayed queries: what their grades need, and the most without any.
    """
    after, before = (list(zip(*loads, strict=True)) for loads in zip(*replayed, strict=True))
    parts = list(zip(after, before, strict=True))
    estimate = most.times(*(sum(one) / max(1, sum(other)) for one, other in parts))
    if len(replayed) < LEAST_REPLAYED:
        return estimate, None, None
    errors = RequestLoad(*(_ratio_error(*part, queries) for part in parts))
    # few queries have passages without any request: their spread says too little
    errors = errors._replace(requests=max(errors.requests, errors.characters))
    low, high = (estimate.times(*(1 + sign * one for one in errors)) for sign in (-1, 1))
    return estimate, low, high


def _ratio_error(after: Sequence[float], before: Sequence[float], queries: int) -> float:
    """Return the relative error of a ratio estimate from some queries for others, at 95 %."""
    count, factor = len(after), sum(after) / max(1, sum(before))
    residuals = [one - factor * other for one, other in zip(after, before, strict=True)]
    spread = math.sqrt(sum(one * one for one in residuals) / (count - 1))
    reach = student_quantile(0.95, count - 1) * math.sqrt(1 / count + 1 / max(1, queries))
    return reach * spread * count / max(1, sum(after))


def _simulated(
    run: GradingRun,
    plan: QueryPlan,
    rating: Callable[[PendingCells], int],
    *,
    in_turn: bool = False,
) -> RequestLoad:
    """Return the load of a query if its cells get these ratings.

    `in_turn`: each reply arrives before the next request, so that it may close cells of its round.
    """
    loads = list[RequestLoad]()
    while requests := plan.next_round(run.grading.grader.most_items):
        sent = list[PendingCells]()
        for one in requests:
            if in_turn and not plan.is_needed(one):
                continue
            plan.rate(one, rating(one) if one.twin_rating is None else one.twin_rating)
            sent.append(one)
        loads.append(_load(run, sent))
    return RequestLoad.total(loads)


def _load(run: GradingRun, found: Iterable[PendingCells]) -> RequestLoad:
    """Return the load of some pending cells of one query."""
    found = list(found)
    requests = items = characters = own = 0
    limit = run.grading.grader.limit
    most = math.inf if limit is None else limit * CHARACTERS_PER_TOKEN
    for bundle in run.grading.bundles(filter(run.needs_request, found)):
        requests, items = requests + 1, items + len(bundle)
        more = [len(one.item) + ITEM_MARKS for one in bundle]
        own += sum(more)
        characters += int(min(most, _characters(run.grading, bundle[0]) + sum(more[1:])))
    return RequestLoad(sum(len(one.cells) for one in found), requests, items, characters, own)


def _characters(grading: Grading, one: PendingCells) -> int:
    """Return the length of a request for one item, with the whole passage."""
    if not grading.prompt.user:
        return len(one.item) + len(one.passage)
    filled = fill(grading.prompt, prompt_slots(grading.prompt, one, grading.identity.kind))
    return len(filled.system) + len(filled.user)


def _graded_before(run: GradingRun, key: int | None) -> StoredGrader | None:
    """Return a grader with grades on the same scale: the same, or else the newest but drafts."""
    mine, graded = run.grading.identity, graders_with_grades(run.connection)
    same = [
        one
        for one in graders(run.connection)
        if one.key in graded
        and (one.identity.kind, one.identity.lowest, one.identity.highest)
        == (mine.kind, mine.lowest, mine.highest)
        and (one.identity.model != "draft" or one.key == key)
    ]
    return next((one for one in same if one.key == key), same[-1] if same else None)


@dataclass(slots=True)
class _Sample:
    """Requests at equal distances, at least `SAMPLE` if there are so many."""

    taken: list[list[PendingCells]] = field(default_factory=list)
    seen: int = 0
    step: int = 1

    def add(self, bundles: Iterable[list[PendingCells]]) -> None:
        """Add the requests of a query."""
        for number, bundle in enumerate(bundles, self.seen):
            if number % self.step == 0:
                self.taken.append(bundle)
            if len(self.taken) == 2 * SAMPLE:
                self.taken, self.step = self.taken[::2], self.step * 2
            self.seen = number + 1


class _Survey(NamedTuple):
    """The ways to grade the pending cells of a run: all of them, and those that its target needs.

    `skipped` cells are not graded. Tokens are counted in the `sample`, requests at equal distances.
    `graded` is what earlier runs have graded of some queries.
    """

    everything: RequestLoad
    target: TargetLoads | None
    skipped: int
    sample: Sequence[list[PendingCells]]
    graded: RequestLoad
    key: int | None
    spent: RunUsage

    @classmethod
    def of(cls, run: GradingRun, most: int | None = None) -> _Survey:
        """Return the survey of a run, from at most this many queries. Nothing is sent."""
        key = find_grader(run.connection, run.grading.identity)
        target = None if run.target is None else _TargetSurvey(run, key, run.target)
        queries = every_query = run.query_order(None if target is None else target.cells)
        if most is not None and run.select == "pending":
            queries = every_query[:: max(1, -(-len(every_query) // most))]
        step = max(1, -(-len(queries) // SIMULATED_QUERIES))
        spent = RunUsage() if key is None else usage_of(run.connection, key)
        loads, sample, graded = list[RequestLoad](), _Sample(), list[RequestLoad]()
        for number, query in enumerate(queries):
            found = list(pending_of_query(run.connection, query, key, run.exam, run.select))
            loads.append(_load(run, found))
            sample.add(run.grading.bundles(filter(run.needs_request, found)))
            if target is not None:
                target.add(query, found, simulate=number % step == 0)
            if spent.asked and number % step == 0:
                left = {cell for one in found for cell in one.cells}
                every_cell = pending_of_query(run.connection, query, None, run.exam, "pending")
                graded.append(_load(run, (one for one in every_cell if left.isdisjoint(one.cells))))
        every, some = RequestLoad.total(loads), RequestLoad.total(loads[::step])
        scale = 1.0
        if len(queries) < len(every_query):
            scale = count_pending(run.connection, key, run.exam) / max(1.0, every.cells)
        every = every.times(scale)
        share = every.items / max(1.0, some.items)
        return cls(
            every,
            None if target is None else target.loads(scale, share),
            0 if target is None else target.skipped,
            sample.taken,
            RequestLoad.total(graded),
            key,
            spent,
        )


class _Rates(NamedTuple):
    """Tokens of a character and of a reply, the cached share, and the seconds of a request.

    `measured` is the factor between the tokens of earlier runs and the estimate; 1 without any.
    """

    read: float
    written: float
    cached: float = 0.0
    seconds: float | None = None
    measured: float = 1.0
    replies: int = 0

    @classmethod
    def of(cls, run: GradingRun, survey: _Survey) -> _Rates:
        """Return the rates of a run: from earlier runs of its grader, or its first requests."""
        grader, spent = run.grading.grader, survey.spent
        read = _tokens_per_character(run, survey.sample)
        # failed requests, which `spent.requests` counts, would make the others seem cheap
        sent = float(spent.asked)
        if survey.key is not None and grader.most_items > 1:
            sent *= requests_per_reply(run.connection, survey.key)
        if not sent:
            items = survey.everything.items / max(1, survey.everything.requests)
            return cls(read, _reply_tokens(grader, items) / max(1, items))
        like = survey.graded if survey.graded.requests else survey.everything
        fixed = (like.characters - like.own) / max(1, like.requests)
        expected = read * (fixed + like.own / max(1, like.items) * spent.asked / sent)
        measured = spent.tokens_read / sent / expected if spent.tokens_read and expected else 1.0
        return cls(
            read * measured,
            spent.tokens_written / max(1, spent.asked),
            spent.tokens_cached / max(1, spent.tokens_read),
            spent.seconds / sent,
            measured,
            spent.asked,
        )

    def usage(self, load: RequestLoad) -> _Usage:
        """Return the tokens and the time of a load."""
        read = load.characters * self.read
        seconds = None if self.seconds is None else load.requests * self.seconds
        return _Usage(read, read * self.cached, load.items * self.written, seconds)


def _tokens_per_character(run: GradingRun, bundles: Iterable[Sequence[PendingCells]]) -> float:
    """Return the tokens of a character, after truncation, by the model's tokenizer if known."""
    grader = run.grading.grader
    tokens = characters = 0.0
    # without a limit, nothing is known of the model
    for bundle in () if grader.limit is None else bundles:
        with suppress(InputError):
            tokens += _tokens(grader, run.grading.requests(bundle))
            characters += _load(run, bundle).characters
    return tokens / characters if characters else 1 / CHARACTERS_PER_TOKEN


def _tokens(grader: Grader, requests: Sequence[Request]) -> float:
    """Count the tokens of the request for some items of a passage."""
    filled = _filled(grader, requests)
    if grader.exact_tokens:
        return grader.length(filled.user, filled.system)
    return len(filled.system + filled.user) / CHARACTERS_PER_TOKEN


def _filled(grader: Grader, requests: Sequence[Request]) -> Filled | Request:
    """Return the texts that are sent for some items of a passage."""
    mode = _mode(grader)
    return mode.filled(requests) if mode else requests[0]


def _reply_tokens(grader: Grader, items: float) -> float:
    """Return the tokens of a reply to some items, by an example of it."""
    mode = _mode(grader)
    return float(mode.reply_tokens(max(1, round(items)))) if mode else REPLY_TOKENS * items


def _mode(grader: Grader) -> Mode | None:
    """Return the mode of a server's grader, which may take several items in a request."""
    mode = getattr(grader, "mode", None)
    return mode if isinstance(mode, Mode) else None


# ---- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GradingEstimate:
    """Pending cells, the requests that grade them, and an estimate of their cost.

    Attributes:
        tokens: Tokens of the prompts, counted by the model's own tokenizer if `exact`, from a
            sample or from earlier replies.
        written: Tokens of the replies.
        seconds: Time of one machine, from the `replies` of the grader's earlier runs; None without
            any.
        cost: Cost from the given prices; None without them.
        prompts: Two filled prompts.
        judged_only: Pending cells of passages that people judged but no run ranks, even if the run
            skips them.
        at_least: A lower bound on the requests, as many end the run if each grade covers its item.
            Without a target, it is the number of requests; with one, that is an upper limit.
        not_needed: Pending cells that the target does not need.
        skipped: Pending cells that hardly cover.
    """

    cells: int
    requests: int
    tokens: int
    exact: bool
    written: int
    replies: int
    seconds: float | None
    cost: float | None
    prompts: tuple[str, ...]
    judged_only: int = 0
    at_least: int = 0
    not_needed: int = 0
    skipped: int = 0


def estimate(run: GradingRun, prices: Prices | None = None) -> GradingEstimate:
    """Estimate the cost of a run without sending a request."""
    survey = _Survey.of(run)
    rates, grader = _Rates.of(run, survey), run.grading.grader
    every = survey.everything
    target = survey.target or TargetLoads(every, every)
    load, used = target.most, rates.usage(target.most)
    pending = pending_cells(run.connection, survey.key, run.exam, run.select)
    bundles = run.grading.bundles(filter(run.needs_request, pending))
    prompts = list[str]()
    for bundle in islice(bundles, SHOWN_PROMPTS):
        with suppress(InputError):
            prompts.append(_shown_prompt(grader, run.grading.requests(bundle)))
    cells = round(load.cells)
    return GradingEstimate(
        cells,
        round(load.requests),
        round(used.read),
        grader.limit is not None and grader.exact_tokens and rates.measured == 1,
        round(used.written),
        rates.replies,
        used.seconds,
        (prices or Prices()).of(used, grader.share),
        tuple(prompts),
        count_judged_only(run.connection, survey.key, run.exam)[0],
        round(target.least.requests),
        round(every.cells) - cells - survey.skipped + run.left_to_first(cells),
        survey.skipped,
    )


def describe_estimate(run: GradingRun, found: GradingEstimate) -> dict[str, str]:
    """Return the cells, requests, tokens, time and cost of a run in words."""
    about = "" if found.exact else "about "
    judged = ""
    if found.judged_only:
        more = run.exam.pool == "ranked"
        share = found.judged_only / (found.cells + more * found.judged_only)
        which = f"more ({share:.0%} of all)" if more else f"of these ({share:.0%})"
        judged = f"{found.judged_only} {which}: no run ranks their passages"
        judged += "; --pool all" * more
    bounds = f"{found.at_least} to " if run.target else ""
    unpriced = "none (no model is used)" if run.grading.identity.is_draft else None
    cost = "unknown (no prices given)" if found.cost is None else f"{found.cost:.2f}"
    return {
        "cells pending": f"at most {found.cells}" if run.target else str(found.cells),
        "not needed": str(found.not_needed) if run.target or run.exam.after else "",
        "skipped": str(found.skipped) if run.target and run.target.may_miss else "",
        "judged only": judged,
        "requests": f"{bounds}{found.requests}",
        "prompt tokens": f"{about}{found.tokens}",
        "reply tokens": f"about {found.written}",
        "time": (
            "unknown (no earlier run)"
            if found.seconds is None
            else f"{duration(found.seconds)}, by {found.replies} replies"
        ),
        "cost": unpriced or cost,
    }


def _shown_prompt(grader: Grader, requests: Sequence[Request]) -> str:
    if not requests[0].user:
        return f"[item]\n{requests[0].item}\n\n[passage]\n{requests[0].passage}"
    filled = _filled(grader, requests)
    system = f"[system]\n{filled.system}\n\n[user]\n" if filled.system else ""
    return f"{system}{filled.user}"


# ---- all ways ------------------------------------------------------------------------------------


class WayToGrade(NamedTuple):
    """A way of grading the pending cells: its prompt and target, and what it takes.

    `items` is the maximum number of items in a request, `target` the measures that are graded for,
    empty for all cells. Numbers are estimates with limits; without limits, they are exact, or the
    error is unknown. `batch_cost` is the cost by batches of the provider.
    """

    prompt: str
    items: int
    target: str
    cells: Interval
    requests: Interval
    read: Interval
    written: Interval
    seconds: Interval
    cost: Interval
    batch_cost: Interval


@dataclass(frozen=True, slots=True, repr=False)
class GradingCosts(Result):
    """The ways of grading the pending cells of an exam, and their costs."""

    ways: tuple[WayToGrade, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The cheapest way, beside the price of one request a cell for all cells."""
        first = self.ways[0]
        if not first.requests.value:
            return "Nothing is pending."
        name, what = ("read", "tokens to read") if first.cost == _UNKNOWN else ("cost", "cost")
        best = min(self.ways, key=lambda way: _middle(getattr(way, name)))
        lowest, usual = _shown(best, name), _shown(first, name)
        if best is first:
            return f"One request a cell has the lowest {what}: {usual}."
        which = f"{best.prompt} for {best.target}" if best.target else best.prompt
        if best.requests.value == 0:
            return f"Nothing is pending for {best.target}; {what} for all cells: {usual}."
        return f"Lowest {what}: {lowest} by {which}, instead of {usual}."

    def tables(self) -> dict[str, Table]:
        """Return a row per way."""
        names = WayToGrade._fields[3:]
        known = [
            name for name in _SHOWN if any(getattr(way, name) != _UNKNOWN for way in self.ways)
        ]
        columns = [
            Column("prompt"),
            Column("items", key="items_a_request"),
            Column("for"),
            *(replace(_SHOWN[name][0], readers="people") for name in known),
            *(Column(name, readers="programs", interval=True) for name in names),
        ]
        rows = [
            [
                *(way.prompt, way.items, way.target or "all cells"),
                *(_shown(way, name) for name in known),
                *(getattr(way, name) for name in names),
            ]
            for way in self.ways
        ]
        caption = "Ways to grade the pending cells"
        return {"ways": Table.of(columns, rows, caption, self.notes, verdict=self.headline)}


_UNKNOWN = Interval(None)


def _middle(one: Interval) -> float:
    """Return an estimate, or else the middle of its limits."""
    return ((one.low or 0.0) + (one.high or 0.0)) / 2 if one.value is None else one.value


_whole = "{:,.0f}".format
"""Shows a number of requests or tokens."""


def _money(value: float) -> str:
    return f"{value:,.2f}" if value >= 0.1 else f"{value:.2g}"


_SHOWN: Mapping[str, tuple[Column, Callable[[float], str]]] = {
    "requests": (Column("requests"), _whole),
    "read": (Column("read", group="tokens"), _whole),
    "written": (Column("written", group="tokens"), _whole),
    "seconds": (Column("time"), duration),
    "cost": (Column("cost"), _money),
    "batch_cost": (Column("by batches"), _money),
}
"""Columns for people, and how they show a number."""


def _shown(way: WayToGrade, name: str) -> str:
    """Return a number with its limits, or limits alone."""
    (value, low, high), (_, form) = getattr(way, name), _SHOWN[name]
    if low is None or high is None:
        return "-" if value is None else form(value)
    limits = form(low), form(high)
    if limits[0] == limits[1]:
        return limits[0]
    return " to ".join(limits) if value is None else f"{form(value)} [{', '.join(limits)}]"


def grading_costs(
    plan: Callable[..., GradingRun], options: Mapping[str, Any], hour: float | None = None
) -> GradingCosts:
    """Compare the ways of grading with the options of a run: prompts and targets.

    `plan` returns the dry run of some options. The first way is the prompt of the options for all
    cells; the default target is Cover at the depth of the run. `hour` is the price of an hour of
    the machine. Nothing is sent.
    """
    measures = options.get("measures") or ()
    prices = Prices.of_options(options, hour)
    first = plan(**options)
    prompt = first.grading.prompt.name
    ways, measured, found = list[WayToGrade](), 1.0, list[TargetLoads]()
    for name in _prompts(prompt, first.grading.grader):
        chosen = dict(options)
        if name != prompt:
            one_label = chosen.get("decode") in ("labels", "choice")
            chosen |= {"prompt": name, "unnumbered": None} | ({"decode": None} if one_label else {})
        run = _with_target(plan, chosen, measures, first.exam.depth)
        survey = _Survey.of(run, SIMULATED_QUERIES)
        rates = _Rates.of(run, survey)
        measured = rates.measured if rates.replies else measured
        if not rates.replies:
            rates = rates._replace(read=rates.read * measured)
        ways.append(_way(run, rates, prices, survey.everything))
        if survey.target is not None:
            found.append(survey.target)
            ways.append(_way(run, rates, prices, survey.target))
    return GradingCosts(tuple(ways), tuple(_notes(ways, found, measured)))


def _prompts(prompt: str, grader: Grader) -> Iterator[str]:
    """Yield a prompt and its counterpart for several items, or for one."""
    yield prompt
    pairs = MANY_ITEMS | {many: one for one, many in MANY_ITEMS.items()}
    if _mode(grader) and prompt in pairs:
        yield pairs[prompt]


def _with_target(
    plan: Callable[..., GradingRun],
    options: Mapping[str, Any],
    measures: Sequence[Any],
    depth: int,
) -> GradingRun:
    """Return the dry run with its target, or without one if the exam has none by default."""
    if measures:
        return plan(**options)
    usual = {**options, "measures": [f"Cover@{depth}"]}
    with suppress(InputError):
        run = plan(**usual)
        if has_rankings(run.connection):
            return run
    return plan(**options)


def _way(
    run: GradingRun, rates: _Rates, prices: Prices, load: RequestLoad | TargetLoads
) -> WayToGrade:
    """Return a way with its costs; equal limits are exact."""
    if isinstance(load, RequestLoad):
        load, target = TargetLoads(load, load, load), ""
    else:
        target = str(run.target)
    loads = [None if one is None else (one, rates.usage(one)) for one in load[:5]]

    def interval(value: Callable[[RequestLoad, _Usage], float | None]) -> Interval:
        least, most, mean, low, high = (None if one is None else value(*one) for one in loads)
        if least is None or most is None or least == most:
            return Interval(most)
        if mean is None:
            return Interval(None, least, most)
        # the graded queries may be unlike the others
        if low is None or high is None or low == high:
            return Interval(min(max(mean, least), most))
        return Interval(*(min(max(one, least), most) for one in (mean, low, high)))

    grader = run.grading.grader
    has_batches = grader.share == 1 and _mode(grader) is not None
    return WayToGrade(
        run.grading.prompt.name,
        grader.most_items,
        target,
        interval(lambda one, _: one.cells),
        interval(lambda one, _: one.requests),
        interval(lambda _, used: used.read),
        interval(lambda _, used: used.written),
        interval(lambda _, used: used.seconds),
        interval(lambda _, used: prices.of(used, grader.share)),
        interval(lambda _, used: prices.of(used, BATCH_SHARE)) if has_batches else _UNKNOWN,
    )


def _notes(
    ways: Sequence[WayToGrade], found: Sequence[TargetLoads], measured: float
) -> Iterator[Note]:
    if any(one.items > 1 for one in ways):
        yield note("costs-many-items")
    known = next((one for one in found if one.source), None)
    if known is not None:
        yield note("costs-replayed", source=known.source, queries=known.queries)
    elif found:
        yield note("costs-target")
    if measured == 1:
        yield note("costs-tokens", characters=CHARACTERS_PER_TOKEN)
