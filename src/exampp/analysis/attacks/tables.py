"""What is known of gaming as tables: for people one a question, for programs a row a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from exampp.analysis.attacks.attacks import BY_NAME
from exampp.analysis.attacks.circularity import Circularity
from exampp.analysis.attacks.findings import (
    DEPTH,
    AttackResult,
    AttackResults,
    ItemGuess,
    Rates,
    Untouched,
)
from exampp.analysis.attacks.ledger import Ledger
from exampp.analysis.phrases import share_shown, with_interval
from exampp.records.grading import GraderIdentity
from exampp.records.wording import counted
from exampp.report.plots.attacks import AttackLift, attack_lifts
from exampp.report.plots.figure import Figure
from exampp.report.result import Result
from exampp.report.table import GRADER_KEY, Column, Table, Value

_MOST_GUESSED = 10
_DRAFT = "These are DRAFT GRADES: they say nothing about any other grader."


class GradedBattery(NamedTuple):
    """A battery as one grader graded it: what it says, and how it was made."""

    results: AttackResults
    path: Path
    made: Mapping[str, str | int]


@dataclass(frozen=True, slots=True, repr=False)
class Gaming(Result):
    """What is known of whether a grader can be gamed.

    `battery` is None where it was not graded, for the reason that `no_battery` gives. `untouched`
    are passages that people judged highest.
    """

    grader: GraderIdentity
    bank: str
    min_rating: int
    battery: GradedBattery | None
    no_battery: str
    untouched: tuple[Untouched, ...]
    circularity: Circularity
    ledger: Ledger

    def tables(self) -> Mapping[str, Table]:
        """What the battery did, what luck covers, the price of a defence, circularity, ledger."""
        made: dict[str, Table | None] = {}
        if self.battery:
            made["attacks"] = _attacks(self, self.battery)
            made["targets"] = _targets(self, self.battery)
            made["closed_book"] = _closed_book(self, self.battery)
            made["guessed"] = _guessed(self.battery)
        made["untouched"] = _untouched(self)
        made["circularity"] = _circularity(self)
        made["ledger"] = _ledger(self)
        return {name: table for name, table in made.items() if table is not None}

    def figure(self) -> Figure:
        """What every attack lifts, beside its control; without a battery there is nothing."""
        results = self.battery.results.attacks if self.battery else ()
        lifts = [
            AttackLift(
                f"{one.attack.name} {one.attack.about}",
                one.cells.lift.value,
                one.cells.lift.low,
                one.cells.lift.high,
                one.succeeds,
            )
            for one in results
            if one.holm is not None and one.cells.lift.value is not None
        ]
        figure = attack_lifts(lifts, f"rated {self.min_rating} or above by {self.grader.name}")
        return replace(figure, draft=self.grader.is_draft)

    def records(self) -> Mapping[str, Table]:
        """A row an attack, an item, a measure re-ranked, a tie."""
        results = self.battery.results if self.battery else None
        rows = [_record(one) for one in results.attacks] if results else []
        key = self.grader.key
        return {
            "attacks": Table.of(
                [*_RECORD, "min rating", GRADER_KEY], [[*row, self.min_rating, key] for row in rows]
            ),
            "closed_book": Table.of(
                _GUESS_RECORD,
                [_guess_record(one) for one in results.guesses] if results else [],
            ),
            "guessing": Table.of(
                ["texts", "items", "guessed", "rate", "luck"], results.guessing if results else []
            ),
            "untouched": Table.of(["min_rating", "judged", "passages", "share"], self.untouched),
            "circularity": _circularity(self),
            "ledger": _ledger(self),
        }


# ---- attacks -------------------------------------------------------------------------------------


def _attacks(found: Gaming, battery: GradedBattery) -> Table:
    results = battery.results
    rows = [
        [
            one.attack.name,
            one.attack.about,
            one.cells.attack,
            one.cells.control,
            with_interval(one.cells.lift),
            one.finding,
        ]
        for one in results.attacks
    ]
    columns = ["attack", "what it is", "rate", "control", "lift", "finding"]
    caption = f"Cells rated {found.min_rating} or above by {found.grader.name}"
    return Table.of(columns, rows, caption, list(attack_notes(found, battery)))


def attack_notes(found: Gaming, battery: GradedBattery) -> Iterator[str]:
    """What the attacks say together, and how to read them."""
    results = battery.results
    if found.grader.is_draft:
        yield _DRAFT
    yield headline(results.attacks)
    queries = max((one.queries for one in results.attacks), default=0)
    yield (
        "lift = rate - control, paired by target, mean over "
        f"{counted(queries, 'query')} with its 95 % interval (Student's t over queries); a finding "
        "is one by Holm's correction over all attacks at .05."
    )
    yield (
        "gamed, hurt: it does what it is for; lowered, raised: the opposite; no sign is no proof "
        "that it fails. kept: share of the rate of the true passage that the false one keeps."
    )
    if results.ungraded:
        yield (
            f"{counted(results.ungraded, 'cell')} of the battery {battery.path} have no grade yet: "
            f"exampp grade {battery.path}"
        )
    yield f"Battery {str(battery.made['digest'])[:16]}, seed {battery.made['seed']}."


def headline(attacks: Sequence[AttackResult]) -> str:
    """Which attacks succeed, the strongest first."""
    won = sorted(
        (one for one in attacks if one.succeeds), key=lambda one: -abs(one.cells.lift.value or 0.0)
    )
    tested = [one for one in attacks if one.holm is not None]
    if not tested:
        return "No attack could be tested: there are no queries with both attack and control."
    if not won:
        return f"None of {counted(len(tested), 'attack')} is shown to succeed."
    best = won[0]
    names = ", ".join(one.attack.name for one in won)
    lift = best.cells.lift.value or 0.0
    return (
        f"{len(won)} of {counted(len(tested), 'attack')} succeed ({names}); the strongest is "
        f"{best.attack.name}, {best.attack.about}: {lift:+.3f}."
    )


def _targets(found: Gaming, battery: GradedBattery) -> Table:
    rows = [
        [
            one.attack.name,
            one.pairs,
            one.queries,
            one.targets.attack,
            one.targets.control,
            with_interval(one.targets.lift),
            *map(share_shown, one.unread),
        ]
        for one in battery.results.attacks
    ]
    columns: list[str | Column] = [
        *("attack", "targets", "queries", "rate", "control", "lift"),
        *(Column(name, group="unread") for name in ("attack", "control")),
    ]
    caption = f"Targets whose best rating is {found.min_rating} or above"
    note = (
        "unread: replies without a grade. An attack that breaks the reading of replies is a "
        "success of another kind."
    )
    return Table.of(columns, rows, caption, [note])


_OF_RATES = ("rate", "control", "lift", "low", "high", "p")
_RECORD = (
    *("attack", "about", "harm", "targets", "queries", *_OF_RATES, "holm", "finding"),
    *(f"target_{name}" for name in _OF_RATES),
    *("unread", "unread_control"),
)


def _record(one: AttackResult) -> list[Value]:
    return [
        *(one.attack.name, one.attack.about, one.attack.harm.value, one.pairs, one.queries),
        *_values(one.cells),
        one.holm,
        one.finding,
        *_values(one.targets),
        *one.unread,
    ]


def _values(rates: Rates) -> tuple[float | None, ...]:
    return (rates.attack, rates.control, rates.lift.value, rates.lift.low, rates.lift.high, rates.p)


# ---- closed book ---------------------------------------------------------------------------------

_GUESS_RECORD = (
    *("query_id", "item_id", "hits", "texts"),
    *("rate", "low", "high", "luck_rate", "luck_low", "luck_high"),
)


def _closed_book(found: Gaming, battery: GradedBattery) -> Table | None:
    rows = [
        [BY_NAME[one.texts].about, one.items, one.guessed, one.rate, one.luck]
        for one in battery.results.guessing
    ]
    if not rows:
        return None
    columns = ["texts that answer nothing", "items", "covered once", "rate", f"luck at {DEPTH}"]
    caption = f"Closed book: items rated {found.min_rating} or above without an answer"
    note = (
        f"luck at {DEPTH}: the share of the bank that {DEPTH} such passages cover, 1 - (1 - c)^"
        f"{DEPTH} of each item's rate c; small rates make large shares. A passage of another query "
        "may answer an item after all."
    )
    mute = [BY_NAME[one.texts].about for one in battery.results.guessing if one.rate is None]
    notes = [note, *(f"The grader has given no grade to {about}." for about in mute)]
    return Table.of(columns, rows, caption, notes)


def _guessed(battery: GradedBattery) -> Table | None:
    guesses = sorted(battery.results.guesses, key=lambda one: (-(one.rate.value or 0.0), one[:2]))
    some = [one for one in guesses if one.hits]
    if not some:
        return None
    rows = [
        [
            one.query_id,
            one.item_id[:16],
            one.hits,
            one.texts,
            with_interval(one.rate),
            with_interval(one.luck),
        ]
        for one in some[:_MOST_GUESSED]
    ]
    columns = ["query", "item", "hits", "texts", "rate", f"luck at {DEPTH}"]
    more = len(some) - len(rows)
    notes = [f"{more} more items were covered once or more: --format json has all."] if more else []
    notes.append("Intervals are those of Clopper and Pearson, 95 %.")
    return Table.of(columns, rows, "Items most often covered without an answer", notes)


def _guess_record(one: ItemGuess) -> list[Value]:
    rate, luck = one.rate, one.luck
    bounds = (rate.value, rate.low, rate.high, luck.value, luck.low, luck.high)
    return [one.query_id, one.item_id, one.hits, one.texts, *bounds]


# ---- what needs no battery -----------------------------------------------------------------------


def _untouched(found: Gaming) -> Table | None:
    if not found.untouched:
        return None
    rows = [(one.min_rating, one.passages, one.share) for one in found.untouched]
    caption = f"Untouched passages that people judged {found.untouched[0].judged}"
    note = (
        "What a defence must not cost: beside any fall of the rates above, show these again with "
        "it. A filter that refuses everything is never gamed."
    )
    columns = ["best rating from", "passages", "share"]
    return Table.of(columns, rows, caption, [note])


def _circularity(found: Gaming) -> Table:
    rows = [
        [
            row.measure + (" by people" if row.judged else ""),
            row.before,
            row.after,
            row.after - row.before,
            row.tau_kept,
            *((row.official, row.tau_before, row.tau_after) if row.official else ()),
        ]
        for row in found.circularity.rows
    ]
    columns = ["measure", "before", "after", "change", "tau to before"]
    if any(row.official for row in found.circularity.rows):
        columns += ["official", "tau before", "tau after"]
    caption = f"Every system re-ranked by {found.grader.name}"
    return Table.of(columns, rows, caption, found.circularity.notes)


def _ledger(found: Gaming) -> Table:
    rows = [(tie.system, tie.shares, tie.whose, tie.uses, tie.known) for tie in found.ledger.ties]
    columns = ["system", "shares", "with the", "uses", "known from"]
    told = [*found.ledger.notes]
    if not rows:
        told.insert(0, "No system is known to share anything with the grader or the bank.")
    told += [found.no_battery] if found.no_battery else []
    return Table.of(columns, rows, "Who knows whom", told)
