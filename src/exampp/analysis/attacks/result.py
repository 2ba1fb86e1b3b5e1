"""Results of an attack battery: attacks that succeed, and answers that are guessed.

Rates are means over queries of the cells of a query: cells of one query depend on each other, so an
interval over cells would be far too narrow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.attacks.battery import beside, how_made, place_of
from exampp.analysis.attacks.families import ATTACKS, BY_NAME, Attack, Harm
from exampp.errors import InputError
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.graders import GraderIdentity
from exampp.records.wording import counted, signed
from exampp.results.notes import Note, note
from exampp.results.plots.dots import attack_lifts
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import GRADER_KEY, Cell, Column, programs_only
from exampp.stats.estimate import Estimate
from exampp.stats.means import DIFFERENCE, mean_test, rate
from exampp.stats.significance import holm
from exampp.store.battery import count_unread_replies
from exampp.store.connection import connect, is_collection
from exampp.store.grades import known_grader
from exampp.store.read_model import read_gradebook

ALPHA = 0.05
DEPTH = 20
"""Passages of a system for which the chance to cover an item by luck is given."""

Ratings = NDArray[np.int16]


# ---- attacks -------------------------------------------------------------------------------------


class Rates(NamedTuple):
    """The rates at which attack and control reach the threshold, and their difference.

    They are means over queries of the same pairs. `control` is None where an attack has none.
    """

    attack: float | None
    control: float | None
    lift: Estimate
    p: float | None


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The effect of an attack, by `cells` (target and item) and by the best rating of `targets`.

    `pairs` are the targets of which attack and control have grades, on so many `queries`. `holm`
    is the p-value of the lift by cells, corrected for the number of attacks. `unread` are the
    shares of replies without a grade, of attack and control (None: there are no replies).
    """

    attack: Attack
    pairs: int
    queries: int
    cells: Rates
    targets: Rates
    unread: tuple[float | None, float | None]
    holm: float | None = None

    @property
    def finding(self) -> str:
        """The finding in a word or two; empty where no test was possible."""
        rates = self.cells
        if rates.lift.value is None or self.holm is None:
            return ""
        if self.holm > ALPHA:
            return "no sign"
        rises = rates.lift.value > 0
        if self.attack.harm is Harm.FALL:
            return "raised" if rises else "hurt"
        return "gamed" if rises else "lowered"

    @property
    def succeeds(self) -> bool:
        """Return whether the attack achieves its aim, beyond chance."""
        return self.finding in ("gamed", "hurt")


class ItemGuess(NamedTuple):
    """Number of texts graded as covering an item that they cannot answer.

    `luck` is the chance that one of `DEPTH` such texts covers it.
    """

    query_id: str
    item_id: str
    hits: int
    texts: int
    rate: Estimate
    luck: Estimate


class Guessing(NamedTuple):
    """The mean rate of items on one kind of texts, and the share of the bank covered by luck.

    `items` have a grade, of which `guessed` were covered at least once; None if there are none.
    """

    texts: str
    items: int
    guessed: int
    rate: float | None
    luck: float | None


def attack_report(
    book: Gradebook,
    grader: GraderIdentity,
    unread: Mapping[str, int],
    min_rating: int,
    path: Path,
    made: Mapping[str, str | int],
) -> AttackReport:
    """Evaluate a gradebook of a battery; `unread` counts replies without a grade, by passage."""
    rows = [(query, _rows(query)) for query in book.queries]
    found = [
        _result(attack, rows, unread, min_rating)
        for attack in ATTACKS
        if attack.harm is not Harm.GUESS and any((attack.name, False) in of for _, of in rows)
    ]
    tested = [n for n, one in enumerate(found) if one.cells.p is not None]
    for n, p in zip(tested, holm([found[n].cells.p or 0.0 for n in tested]).tolist(), strict=True):
        found[n] = replace(found[n], holm=p)
    guesses: list[ItemGuess] = []
    by_text: dict[str, list[float]] = {}
    for query, of in rows:
        closed = {
            name: query.ratings[list(some.values())]
            for (name, _), some in of.items()
            if BY_NAME[name].harm is Harm.GUESS
        }
        for name, ratings in closed.items():
            hits, tried = _hits(ratings, min_rating)
            by_text.setdefault(name, []).extend((hits[tried > 0] / tried[tried > 0]).tolist())
        if closed:
            guesses += _guesses(query, np.concatenate(list(closed.values())), min_rating)
    missing = sum(int((query.ratings == MISSING).sum()) for query in book.queries)
    return AttackReport(
        grader=grader,
        min_rating=min_rating,
        attacks=tuple(found),
        guesses=tuple(guesses),
        guessing=tuple(_guessing(name, np.array(rates)) for name, rates in by_text.items()),
        ungraded=missing - sum(unread.values()),
        path=path,
        made=made,
    )


_Rows = Mapping[tuple[str, bool], Mapping[int, int]]
"""(attack, is control) -> number of the target -> row of its text."""


def _rows(query: QueryGrades) -> _Rows:
    rows: dict[tuple[str, bool], dict[int, int]] = {}
    for row, passage_id in enumerate(query.passage_ids):
        if place := place_of(passage_id):
            attack, is_control, number = place
            rows.setdefault((attack.name, is_control), {})[number] = row
    return rows


def _result(
    attack: Attack,
    by_query: Sequence[tuple[QueryGrades, _Rows]],
    unread: Mapping[str, int],
    min_rating: int,
) -> AttackResult:
    pairs: list[tuple[Ratings, Ratings | None]] = []
    replies = np.zeros((2, 2), np.int64)
    for query, rows in by_query:
        texts, controls = (rows.get((attack.name, control), {}) for control in (False, True))
        for control, some in enumerate((texts, controls)):
            failed = sum(unread.get(query.passage_ids[row], 0) for row in some.values())
            graded = int((query.ratings[list(some.values())] != MISSING).sum())
            replies[control] += failed, failed + graded
        both = [n for n in texts if n in controls] if controls else list(texts)
        if both and query.item_ids:
            beside_it = query.ratings[[controls[n] for n in both]] if controls else None
            pairs.append((query.ratings[[texts[n] for n in both]], beside_it))
    best = [(_best(one), None if other is None else _best(other)) for one, other in pairs]
    cells, _, _ = _rates(pairs, min_rating)
    targets, count, queries = _rates(best, min_rating)
    lost, of_control = (a / b if b else None for a, b in replies.tolist())
    return AttackResult(attack, count, queries, cells, targets, (lost, of_control))


def _best(ratings: Ratings) -> Ratings:
    return np.asarray(ratings.max(axis=1, initial=MISSING, keepdims=True), np.int16)


def _rates(
    pairs: Sequence[tuple[Ratings, Ratings | None]], min_rating: int
) -> tuple[Rates, int, int]:
    """Return the rates, and the numbers of cells and of queries with grades of both."""
    attacked: list[float] = []
    beside_it: list[float] = []
    cells = 0
    for texts, controls in pairs:
        known = texts != MISSING
        if controls is not None:
            known &= controls != MISSING
        if known.any():
            cells += int(known.sum())
            attacked.append(float((texts >= min_rating)[known].mean()))
            if controls is not None:
                beside_it.append(float((controls >= min_rating)[known].mean()))
    if not attacked:
        return Rates(None, None, Estimate(None, reason="no query has both"), None), 0, 0
    mean = float(np.mean(attacked))
    if not beside_it:
        none = Estimate(None, reason="it has no control")
        return Rates(mean, None, none, None), cells, len(attacked)
    lift = mean_test(np.subtract(attacked, beside_it), DIFFERENCE)
    rates = Rates(mean, float(np.mean(beside_it)), lift.estimate, lift.p)
    return rates, cells, len(attacked)


def _hits(ratings: Ratings, min_rating: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, per item, the texts that reach the threshold and the texts with a grade."""
    return (ratings >= min_rating).sum(axis=0), (ratings != MISSING).sum(axis=0)


def _guesses(query: QueryGrades, ratings: Ratings, min_rating: int) -> Iterator[ItemGuess]:
    hits, tried = _hits(ratings, min_rating)
    for item_id, hit, of in zip(query.item_ids, hits.tolist(), tried.tolist(), strict=True):
        if of:
            one = rate(hit, of)
            luck = Estimate(_luck(one.value), _luck(one.low), _luck(one.high))
            yield ItemGuess(query.query_id, item_id, hit, of, one, luck)


def _guessing(name: str, rates: NDArray[np.float64]) -> Guessing:
    if not len(rates):
        return Guessing(name, 0, 0, None, None)
    luck = float((1 - (1 - rates) ** DEPTH).mean())
    return Guessing(name, len(rates), int((rates > 0).sum()), float(rates.mean()), luck)


def _luck(chance: float | None) -> float | None:
    """Return the probability that one of `DEPTH` passages covers an item, given its rate."""
    return None if chance is None else 1 - (1 - chance) ** DEPTH


# ---- the report ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class AttackReport(Result):
    """The effect of a battery on a grader; `ungraded` counts pending cells, `made` has settings."""

    grader: GraderIdentity
    min_rating: int
    attacks: tuple[AttackResult, ...]
    guesses: tuple[ItemGuess, ...]
    guessing: tuple[Guessing, ...]
    ungraded: int
    path: Path
    made: Mapping[str, str | int]

    @property
    def tested(self) -> int:
        """The number of attacks with both an attack and a control to compare."""
        return sum(one.holm is not None for one in self.attacks)

    @property
    def headline(self) -> str:
        """The attacks that succeed, the strongest first."""
        won = [one for one in self.attacks if one.succeeds]
        if not self.tested:
            return "No attack could be tested: no query has both an attack and its control."
        if not won:
            return f"None of {counted(self.tested, 'attack')} is shown to succeed."
        won.sort(key=lambda one: -abs(one.cells.lift.value or 0.0))
        names = ", ".join(one.attack.name for one in won)
        lift = signed(won[0].cells.lift.value, 3)
        return (
            f"{len(won)} of {counted(self.tested, 'attack')} succeed ({names}); the strongest is "
            f"{won[0].attack.name}, {won[0].attack.about}: {lift}."
        )

    def tables(self) -> Mapping[str, Table]:
        """Return the attacks, and guessing if texts without an answer were graded."""
        notes = tuple(self._notes())
        found = {"attacks": replace(self._attacks(), notes=notes, verdict=self.headline)}
        return {**found, "guessing": self._guessing()} if self.guessing else found

    def records(self) -> Mapping[str, Table]:
        """Return the same with a row per guessed item."""
        guesses = [
            (*one[:4], *(end for of in one[4:] for end in (of.value, of.low, of.high)))
            for one in self.guesses
        ]
        ends = ("rate", "low", "high", "luck_rate", "luck_low", "luck_high")
        return {
            "attacks": replace(self._attacks(), verdict=self.headline),
            "closed_book": Table.of([*ItemGuess._fields[:4], *ends], guesses),
            "guessing": self._guessing(),
        }

    def plot(self) -> Figure:
        """Return the plot of the lift of every attack over its control."""
        lifts = [
            (f"{one.attack.name} {one.attack.about}", lift.value, lift.low, lift.high, one.succeeds)
            for one in self.attacks
            for lift in [one.cells.lift]
            if one.holm is not None and lift.value is not None
        ]
        figure = attack_lifts(lifts, f"rated {self.min_rating} or above by {self.grader.name}")
        return replace(figure, draft=self.grader.is_draft)

    def _attacks(self) -> Table:
        ends = ("lift", "low", "high", "p")
        columns = [
            *(Column("attack"), Column("what it is", key="about")),
            *programs_only("harm", "targets", "queries"),
            *(Column("rate"), Column("control"), Column("lift", readers="people")),
            *(*programs_only(*ends, "holm"), Column("finding")),
            *programs_only("target_rate", "target_control"),
            Column("lift of best ratings", readers="people"),
            *programs_only(*(f"target_{name}" for name in ends)),
            *(Column("unread"), *programs_only("unread_control", "min rating"), GRADER_KEY),
        ]
        rows: list[list[Cell]] = [
            [
                *(one.attack.name, one.attack.about, one.attack.harm.value, one.pairs, one.queries),
                *(*_columns_of(one.cells), one.holm, one.finding, *_columns_of(one.targets)),
                *(*one.unread, self.min_rating, self.grader.key),
            ]
            for one in self.attacks
        ]
        caption = f"Cells rated {self.min_rating} or above by {self.grader.name}"
        return Table.of(columns, rows, caption)

    def _notes(self) -> Iterator[Note]:
        queries = max((one.queries for one in self.attacks), default=0)
        if self.grader.is_draft:
            yield note("draft")
        if self.ungraded:
            yield note("battery-ungraded", cells=counted(self.ungraded, "cell"), path=self.path)
        yield note("attack-lift", queries=counted(queries, "query"))
        yield note("attack-findings")
        yield note("battery", digest=str(self.made["digest"])[:16], seed=self.made["seed"])

    def _guessing(self) -> Table:
        columns = [
            *(Column("texts that answer nothing", readers="people"), *programs_only("texts")),
            *(Column("items"), Column("covered once", key="guessed"), Column("rate")),
            Column(f"luck at {DEPTH}", key="luck"),
        ]
        mute = [BY_NAME[one.texts].about for one in self.guessing if one.rate is None]
        notes = [*(note("texts-ungraded", texts=about) for about in mute), note("luck", k=DEPTH)]
        rows = [(BY_NAME[one.texts].about, *one) for one in self.guessing]
        caption = f"Closed book: items rated {self.min_rating} or above without an answer"
        return Table.of(columns, rows, caption, notes)


def _columns_of(one: Rates) -> tuple[Cell, ...]:
    lift = one.lift
    return (one.attack, one.control, lift, lift.value, lift.low, lift.high, one.p)


GUESSED = 0.5
"""Share of texts without an answer from which an item counts as answered without a passage."""


def guessed_items(book: Gradebook, exam: Path, min_rating: int) -> frozenset[tuple[str, str]]:
    """Return the (query, item) that texts without an answer cover, by the battery beside `exam`.

    Empty if there is none, or if it is not graded by the grader of the book.
    """
    if not beside(exam).exists():
        return frozenset()
    with suppress(InputError):
        guesses = read_attacks(book, exam, min_rating=min_rating).guesses
        found = (one for one in guesses if one.texts and one.hits >= GUESSED * one.texts)
        return frozenset((one.query_id, one.item_id) for one in found)
    return frozenset()


def read_attacks(
    book: Gradebook, exam: Path, battery: str | Path | None = None, min_rating: int | None = None
) -> AttackReport:
    """Return the results of a graded battery, by default the one beside `exam`.

    Raises:
        InputError: The battery does not exist or is not graded, or the exam is a battery.
    """
    if any(map(place_of, itertools.chain.from_iterable(q.passage_ids for q in book.queries))):
        raise InputError(
            "is a battery of attacks, not an exam",
            file=exam,
            hint="Name the exam that it was made from, and the battery by --battery",
        )
    path = beside(exam) if battery is None else Path(battery)
    if battery is None and not (is_collection(exam) and path.exists()):
        raise InputError(
            "no attacks to show",
            hint=f"Make a battery: exampp analyze attacks {exam} --build"
            if is_collection(exam)
            else "A battery is made from a collection: exampp import",
        )
    with closing(connect(path)) as connection:
        made = how_made(connection, path)
        grader = known_grader(connection, book.grader)
        if grader is None:
            raise InputError(
                f"{book.grader.name} has not graded the battery {path}",
                hint=f"Grade it as you graded the exam: exampp grade {path} --grader ...",
            )
        # what grades queries has no bank but its own
        bank = book.bank_label if book.grader.kind == "query" else str(made["bank"])
        graded = read_gradebook(connection, grader, bank)
        unread = count_unread_replies(connection, grader, bank)
    least = book.grader.threshold(min_rating)
    return attack_report(graded, book.grader, unread, least, path, made)
