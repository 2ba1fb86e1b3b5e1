"""What attacks do to a grader: rates of covered items beside those of controls, and luck.

Every figure is a mean over queries of the cells of a query; an interval over cells would be far too
narrow, because those of one query hang together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.attacks.attacks import ATTACKS, Attack, Harm
from exampp.analysis.attacks.battery import place_of
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.stats.estimate import Estimate
from exampp.stats.means import DIFFERENCE, MeanTest, mean_test
from exampp.stats.multiple import holm
from exampp.stats.rates import by_luck, rate

ALPHA = 0.05
DEPTH = 20
"""How many passages a system returns, where it is said what luck alone covers."""

Floats = NDArray[np.float64]


class Rates(NamedTuple):
    """How often a text reaches the threshold, how often its control does, and the difference.

    Means over queries of the same pairs, so that the difference is that of the two rates. `control`
    is None where an attack has none.
    """

    attack: float | None
    control: float | None
    lift: Estimate
    p: float | None


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What became of an attack: by `cells` (target and item), and by the best rating of `targets`.

    `pairs` are the targets of which attack and control have grades, on so many `queries`; `holm`
    is the p-value of the lift by cells, corrected for the number of attacks; `unread` are the
    shares of replies without a grade, of attack and control (None: nothing was asked).
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
        """What that says, in a word or two; empty where nothing could be tested."""
        lift, kept = self.cells.lift.value, self.cells
        if self.attack.harm is Harm.KEPT:
            if not kept.control or kept.attack is None:
                return ""
            return f"{kept.attack / kept.control:.0%} kept"
        if lift is None or self.holm is None:
            return ""
        if self.holm > ALPHA:
            return "no sign"
        if self.attack.harm is Harm.FALL:
            return "hurt" if lift < 0 else "raised"
        return "gamed" if lift > 0 else "lowered"

    @property
    def succeeds(self) -> bool:
        """Whether the attack is told to do what it is for."""
        return self.finding in ("gamed", "hurt")


class ItemGuess(NamedTuple):
    """An item, and how often texts that cannot answer it are said to.

    `rate` has the interval of Clopper and Pearson; `luck` is the chance that one of `DEPTH` such
    texts covers it, between those of the ends of the interval.
    """

    query_id: str
    item_id: str
    hits: int
    texts: int
    rate: Estimate
    luck: Estimate


class Guessing(NamedTuple):
    """Closed book: the mean rate of items on texts of one sort, and what luck covers at `DEPTH`.

    `items` have a grade, of which `guessed` were covered once at least; None where none has.
    `luck` is the share of the bank that `DEPTH` such passages cover on average.
    """

    texts: str
    items: int
    guessed: int
    rate: float | None
    luck: float | None


class Untouched(NamedTuple):
    """Passages that people judged as high as any, untouched: what a defence must not cost.

    `share` of them have a best rating of at least `min_rating`.
    """

    min_rating: int
    judged: int
    passages: int
    share: float


@dataclass(frozen=True, slots=True)
class AttackResults:
    """All that the grades of a battery say; `ungraded` cells were not tried yet."""

    attacks: tuple[AttackResult, ...]
    guesses: tuple[ItemGuess, ...]
    guessing: tuple[Guessing, ...]
    ungraded: int


class _Pair(NamedTuple):
    """Ratings of the items for an attack and for its control, targets x items."""

    attack: NDArray[np.int16]
    control: NDArray[np.int16] | None


def attack_results(book: Gradebook, unread: Mapping[str, int], min_rating: int) -> AttackResults:
    """What a gradebook of a battery says; `unread` counts replies without a grade, by passage."""
    by_query = [_pairs_of(query) for query in book.queries]
    asked = _asked(book, unread)
    found = [
        _result(attack, [pairs.get(attack.name) for pairs in by_query], asked, min_rating)
        for attack in ATTACKS
        if any(attack.name in pairs for pairs in by_query) and attack.harm is not Harm.GUESS
    ]
    tested = [n for n, one in enumerate(found) if one.cells.p is not None]
    adjusted = holm([found[n].cells.p or 0.0 for n in tested]).tolist()
    for n, p in zip(tested, adjusted, strict=True):
        found[n] = replace(found[n], holm=p)
    missing = sum(int((query.ratings == MISSING).sum()) for query in book.queries)
    return AttackResults(
        tuple(found),
        tuple(_guesses(book, min_rating)),
        tuple(_guessing(book, min_rating)),
        missing - sum(unread.values()),
    )


def untouched(book: Gradebook, highest: int | None, min_rating: int) -> tuple[Untouched, ...]:
    """Passages judged `highest` of the graded ones, from `min_rating` to the top of the scale."""
    if not highest:
        return ()
    best = [
        query.ratings[query.judgments.max(axis=0) == highest].max(axis=1, initial=MISSING)
        for query in book.queries
        if len(query.item_ids)
    ]
    graded = np.concatenate([one[one != MISSING] for one in best]) if best else np.empty(0)
    if not len(graded):
        return ()
    return tuple(
        Untouched(least, highest, len(graded), float((graded >= least).mean()))
        for least in range(min_rating, book.grader.highest + 1)
    )


def _pairs_of(query: QueryGrades) -> dict[str, _Pair]:
    rows: dict[str, tuple[dict[int, int], dict[int, int]]] = {}
    for row, passage_id in enumerate(query.passage_ids):
        if place := place_of(passage_id):
            rows.setdefault(place.attack.name, ({}, {}))[place.is_control][place.number] = row
    found = {}
    for name, (attacks, controls) in rows.items():
        both = [n for n in attacks if n in controls] if controls else list(attacks)
        of = query.ratings[[attacks[n] for n in both]]
        found[name] = _Pair(of, query.ratings[[controls[n] for n in both]] if controls else None)
    return found


def _asked(
    book: Gradebook, unread: Mapping[str, int]
) -> Mapping[tuple[str, bool], tuple[int, int]]:
    """(attack, is control) -> (replies without a grade, all replies)."""
    found: dict[tuple[str, bool], tuple[int, int]] = {}
    for query in book.queries:
        graded = (query.ratings != MISSING).sum(axis=1).tolist()
        for passage_id, count in zip(query.passage_ids, graded, strict=True):
            if place := place_of(passage_id):
                key = (place.attack.name, place.is_control)
                failed, every = found.get(key, (0, 0))
                lost = unread.get(passage_id, 0)
                found[key] = (failed + lost, every + lost + count)
    return found


def _result(
    attack: Attack,
    by_query: Sequence[_Pair | None],
    asked: Mapping[tuple[str, bool], tuple[int, int]],
    min_rating: int,
) -> AttackResult:
    pairs = [one for one in by_query if one is not None and one.attack.size]
    cells = [_covered(one, min_rating) for one in pairs]
    best = [_best_covered(one, min_rating) for one in pairs]
    used = [(a, c) for a, c in best if np.isfinite(a).any()]
    shares = (asked.get((attack.name, control), (0, 0)) for control in (False, True))
    failed, of_control = (lost / every if every else None for lost, every in shares)
    return AttackResult(
        attack,
        sum(int(np.isfinite(a).sum()) for a, _ in used),
        len(used),
        _rates(cells),
        _rates(best),
        (failed, of_control),
    )


def _covered(pair: _Pair, min_rating: int) -> tuple[Floats, Floats | None]:
    """1, 0, or NaN where the cell or that of the control has no grade."""
    first = _at_least(pair.attack, min_rating)
    if pair.control is None:
        return first, None
    second = _at_least(pair.control, min_rating)
    nowhere = np.isnan(first) | np.isnan(second)
    return np.where(nowhere, np.nan, first), np.where(nowhere, np.nan, second)


def _at_least(ratings: NDArray[np.int16], min_rating: int) -> Floats:
    return np.where(ratings == MISSING, np.nan, ratings >= min_rating).astype(np.float64)


def _best_covered(pair: _Pair, min_rating: int) -> tuple[Floats, Floats | None]:
    """The same of the best rating of each target."""
    best = _Pair(
        pair.attack.max(axis=1, initial=MISSING, keepdims=True),
        None if pair.control is None else pair.control.max(axis=1, initial=MISSING, keepdims=True),
    )
    return _covered(best, min_rating)


def _rates(by_query: Sequence[tuple[Floats, Floats | None]]) -> Rates:
    known = [(a, c) for a, c in by_query if np.isfinite(a).any()]
    attacked = np.array([np.nanmean(a) for a, _ in known])
    if not len(known):
        return Rates(None, None, Estimate(None, reason="no query has both"), None)
    controls = [c for _, c in known if c is not None]
    if not controls:
        none = MeanTest(Estimate(None, reason="it has no control"), None)
        return Rates(float(attacked.mean()), None, *none)
    beside = np.array([np.nanmean(c) for c in controls])
    lift = mean_test(attacked - beside, DIFFERENCE)
    return Rates(float(attacked.mean()), float(beside.mean()), lift.estimate, lift.p)


# ---- closed book ---------------------------------------------------------------------------------


def _closed_book(query: QueryGrades) -> dict[str, NDArray[np.int16]]:
    """The ratings of texts that answer nothing, by the variant of A14."""
    rows: dict[str, list[int]] = {}
    for row, passage_id in enumerate(query.passage_ids):
        place = place_of(passage_id)
        if place and place.attack.harm is Harm.GUESS:
            rows.setdefault(place.attack.name, []).append(row)
    return {name: query.ratings[some] for name, some in rows.items()}


def _hits(ratings: NDArray[np.int16], min_rating: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(texts that reach the threshold, texts with a grade) of every item."""
    return (ratings >= min_rating).sum(axis=0), (ratings != MISSING).sum(axis=0)


def _guesses(book: Gradebook, min_rating: int) -> Iterator[ItemGuess]:
    for query in book.queries:
        found = list(_closed_book(query).values())
        if not found:
            continue
        hits, tried = _hits(np.concatenate(found), min_rating)
        for item_id, hit, of in zip(query.item_ids, hits.tolist(), tried.tolist(), strict=True):
            if of:
                found_rate = rate(hit, of)
                luck = Estimate(
                    _luck(found_rate.value), _luck(found_rate.low), _luck(found_rate.high)
                )
                yield ItemGuess(query.query_id, item_id, hit, of, found_rate, luck)


def _luck(rate: float | None) -> float | None:
    return None if rate is None else by_luck(rate, DEPTH)


def _guessing(book: Gradebook, min_rating: int) -> Iterator[Guessing]:
    """A row a variant; each the mean over items of what is found on it."""
    by_variant: dict[str, list[float]] = {}
    for query in book.queries:
        for name, ratings in _closed_book(query).items():
            hits, tried = _hits(ratings, min_rating)
            some = tried > 0
            by_variant.setdefault(name, []).extend((hits[some] / tried[some]).tolist())
    for name, found in by_variant.items():
        rates = np.array(found)
        if not len(rates):
            yield Guessing(name, 0, 0, None, None)
            continue
        luck = float((1 - (1 - rates) ** DEPTH).mean())
        yield Guessing(name, len(rates), int((rates > 0).sum()), float(rates.mean()), luck)
