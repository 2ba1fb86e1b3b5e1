"""Whether a grader can be gamed: attacks, luck, circularity, the ledger, the price of a defence.

What needs a graded battery is left out where there is none; the rest needs no new grades.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.attacks.battery import beside, how_made, place_of
from exampp.analysis.attacks.families import ATTACKS, BY_NAME, Attack, Harm
from exampp.analysis.correlation import Method, Scoring, compare_methods, qrels_method
from exampp.analysis.phrases import share_shown, with_interval
from exampp.analysis.warnings import families_of
from exampp.errors import InputError
from exampp.formats.system_models import SystemUse
from exampp.measures.exams import SubtopicChoice
from exampp.measures.leaderboard import evaluate
from exampp.records import Judgment
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, Ranking
from exampp.records.graders import GraderIdentity
from exampp.records.inputs import relevance_threshold
from exampp.records.items import same_model
from exampp.records.wording import counted
from exampp.results.plots.dots import attack_lifts
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import GRADER_KEY, Column, Value
from exampp.sanitize import check_integer, or_default
from exampp.stats.estimate import Estimate
from exampp.stats.means import DIFFERENCE, MeanTest, chance_of_any, mean_test, rate
from exampp.stats.significance import holm
from exampp.store.bank import ItemModels
from exampp.store.battery import count_unread_replies
from exampp.store.connection import connect, is_collection
from exampp.store.grades import known_grader
from exampp.store.read_model import read_gradebook

_ITS_NAME = "its name"


@dataclass(frozen=True, slots=True)
class SharedTie:
    """A system shares something with the grader or the bank.

    `shares` is what: a model, a family of models, the bank, the prompt; `whose` with whom; `known`
    from where.
    """

    system: str
    uses: str
    shares: str
    whose: str
    known: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The grader and the makers of the bank, with families; the ties of systems; who is unknown.

    `makers` counts the items that each model made, of `items`. `unknown` are systems of which
    nothing is said, and whose names speak of no model; `elsewhere` those of which something is
    said that are not in the exam.
    """

    grader: GraderIdentity
    bank: str
    makers: Mapping[str, int]
    items: int
    ties: tuple[SharedTie, ...]
    unknown: tuple[str, ...]
    systems: int
    elsewhere: tuple[str, ...] = ()

    @property
    def tied(self) -> Sequence[str]:
        """The systems that share something, each once."""
        return tuple(dict.fromkeys(tie.system for tie in self.ties))

    @property
    def notes(self) -> Iterator[str]:
        """Who graded, who made the bank, and of how many systems nothing is known."""
        model = self.grader.by_content.model
        yield f"Graded by {model}{_in_family(model)}, prompt {self.grader.prompt}."
        if self.makers:
            made = ", ".join(
                f"{name}{_in_family(name)} ({counted(count, 'item')})"
                for name, count in self.makers.items()
            )
            yield f"The bank {self.bank} has {counted(self.items, 'item')}, made by {made}."
        else:
            yield (
                f"Who made the bank {self.bank or 'of graded items'} is not said in it: neither "
                "its file nor `exampp bank generate` named a model."
            )
        own = [name for name in self.makers if same_model(name, model)]
        if own:
            yield f"The model that grades made items of the bank itself ({', '.join(own)})."
        if self.unknown:
            yield (
                f"Nothing is known of {len(self.unknown)} of {counted(self.systems, 'system')}: "
                "say what they use in a table with the columns system and uses (--uses FILE)."
            )
        if self.elsewhere:
            yield f"Not in the exam, and left out: {', '.join(self.elsewhere)}."


def ledger(
    book: Gradebook, makers: Mapping[str, int], items: int, uses: Sequence[SystemUse] = ()
) -> Ledger:
    """What is known of the systems of a gradebook: by their names, and by what people say."""
    said: dict[str, list[SystemUse]] = {}
    for one in uses:
        said.setdefault(one.system, []).append(one)
    ties: list[SharedTie] = []
    unknown = []
    for system in book.systems:
        named = SystemUse(system, system, _ITS_NAME)
        found = [tie for one in said.get(system, [named]) for tie in _ties(one, book, makers)]
        ties += found
        if system not in said and not families_of(system):
            unknown.append(system)
    return Ledger(
        book.grader,
        book.bank_label,
        makers,
        items,
        tuple(dict.fromkeys(ties)),
        tuple(unknown),
        len(book.systems),
        tuple(system for system in said if system not in book.systems),
    )


def _ties(one: SystemUse, book: Gradebook, makers: Mapping[str, int]) -> Iterator[SharedTie]:
    """What a system shares by one thing that it uses."""
    grader = book.grader
    model = grader.by_content.model
    tie = (one.system, "" if one.place == _ITS_NAME else one.uses)
    for other, whose in ((model, "grader"), *((maker, "bank") for maker in makers)):
        named = whose == "grader" and one.uses in (grader.name, grader.key)
        if named or same_model(one.uses, other):
            yield SharedTie(*tie, f"model {other}", whose, one.place)
        else:
            for family in sorted({*families_of(one.uses)} & {*families_of(other)}):
                yield SharedTie(*tie, f"family {family}", whose, one.place)
    if one.place == _ITS_NAME:
        return
    if one.uses.casefold() == book.bank.casefold():
        yield SharedTie(*tie, "the items", "bank", one.place)
    if one.uses.casefold() == grader.prompt.casefold():
        yield SharedTie(*tie, "the prompt", "grader", one.place)


def _in_family(model: str) -> str:
    families = families_of(model)
    return f" (family {', '.join(families)})" if families else ""


# What attacks do to a grader: rates of covered items beside those of controls, and luck.
#
# Every figure is a mean over queries of the cells of a query; an interval over cells would be far
# too narrow, because those of one query hang together.


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


def _best_guesses(query: QueryGrades) -> dict[str, NDArray[np.int16]]:
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
        found = list(_best_guesses(query).values())
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
    return None if rate is None else chance_of_any(rate, DEPTH)


def _guessing(book: Gradebook, min_rating: int) -> Iterator[Guessing]:
    """A row a variant; each the mean over items of what is found on it."""
    by_variant: dict[str, list[float]] = {}
    for query in book.queries:
        for name, ratings in _best_guesses(query).items():
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


# What a system gains that re-ranks its passages by the grader that scores it.
#
# Every system is re-ranked so, and scored again: nothing has to be graded. The exam then measures
# how well systems agree with the grader, and people's judgments beside it tell how far that is
# what they want. At the depth of the rankings nothing can change, because the passages are the
# same ones.


JUDGED = "judged by people"
DECIMALS = 9
"""Means that are equal in these are tied: scores are rational, and sums differ by their order."""
CUTOFF = 5
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ReRanked:
    """One measure before and after every system was re-ranked by the grader.

    `judged` tells that it is by people's judgments, and no exam. `before` and `after` are means
    over systems; `tau_before` and `tau_after` Kendall's tau with the official leaderboard, and
    `tau_kept` that of the order after with the order before (None: undefined, or no leaderboard).
    """

    measure: str
    judged: bool
    before: float
    after: float
    tau_kept: float | None
    official: str = ""
    tau_before: float | None = None
    tau_after: float | None = None


@dataclass(frozen=True, slots=True)
class Circularity:
    """The measures re-ranked, down to `k` of at most `depth` passages; `why` there are none."""

    rows: tuple[ReRanked, ...]
    k: int
    depth: int
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures say."""
        if self.why:
            return (self.why,)
        exam = [row for row in self.rows if not row.judged]
        people = [row for row in self.rows if row.judged]
        told = [
            f"Every system's own passages (up to {self.depth}) were re-ranked by the grader: best "
            f"rating, then the sum of ratings, then the order before."
        ]
        if exam and people:
            best = max(exam, key=lambda row: row.after - row.before)
            rise = best.after - best.before
            told.append(
                "Re-ranking changes no score: the grader finds no passage better than those that "
                "stand first."
                if round(rise, 9) == 0
                else f"{best.measure} rises by {rise:.3f}, "
                f"{people[0].measure} {JUDGED} by {people[0].after - people[0].before:+.3f}: what "
                "the exam rises beyond people's judgment is the grader praising its own choice."
            )
        return tuple(told)


def reranked(book: Gradebook) -> Gradebook:
    """The gradebook with every ranking sorted by the grader: best rating, sum, order before.

    A ranking of a subtopic is sorted by the items of the subtopic. Passages without a grade come
    last.
    """
    return replace(book, queries=tuple(map(_reranked, book.queries)))


def _reranked(query: QueryGrades) -> QueryGrades:
    orders = {
        subtopic: _by_rating(query.ratings, subtopic, query.item_subtopics)
        for subtopic in {ranking.subtopic for ranking in query.rankings}
    }
    return replace(
        query, rankings=tuple(_sorted(one, orders[one.subtopic]) for one in query.rankings)
    )


def _by_rating(
    ratings: NDArray[np.int16], subtopic: int, item_subtopics: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(best rating, sum of ratings) of every passage of a query."""
    own = ratings[:, item_subtopics == subtopic] if subtopic else ratings
    found = np.where(own == MISSING, 0, own).astype(np.int64).sum(axis=1)
    return own.max(axis=1, initial=MISSING).astype(np.int64), found


def _sorted(ranking: Ranking, by: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Ranking:
    best, total = (values[ranking.passages] for values in by)
    order = np.lexsort((np.arange(len(best)), -total, -best))
    return _listed(replace(ranking, passages=ranking.passages[order]))


def _listed(ranking: Ranking) -> Ranking:
    """With scores that say the order of the list, so that no measure breaks ties otherwise."""
    scores = np.arange(len(ranking.passages), 0, -1, dtype=np.float64)
    return replace(ranking, scores=scores, ranks=None)


def _as_listed(book: Gradebook) -> Gradebook:
    queries = (
        replace(query, rankings=tuple(map(_listed, query.rankings))) for query in book.queries
    )
    return replace(book, queries=tuple(queries))


def circularity(
    book: Gradebook,
    *,
    min_rating: int,
    min_relevant: int,
    officials: Mapping[str, Scores] | None = None,
    k: int = CUTOFF,
    subtopics: SubtopicChoice = "auto",
) -> Circularity:
    """Re-rank all systems by the grader, and compare the leaderboards before and after.

    `officials` are official leaderboards by name, system to rank. Raises InputError for a `k`
    below 1.
    """
    check_integer("k", k, 1)
    depth = max((len(r.passages) for q in book.queries for r in q.rankings), default=0)
    if why := _why_none(book, k, depth):
        return Circularity((), k, depth, why)
    measures = (f"Cover@{k}", f"P@{k}")
    before, after = (
        _scores(one, measures, min_rating, min_relevant, subtopics)
        for one in (_as_listed(book), reranked(book))
    )
    rows = []
    for name in before:
        judged = name == JUDGED
        row = ReRanked(
            measures[1] if judged else name,
            judged,
            _mean(before[name]),
            _mean(after[name]),
            _tau(after[name], {s: -score for s, score in before[name].items()}),
        )
        rows += [
            replace(
                row,
                official=official,
                tau_before=_tau(before[name], ranks),
                tau_after=_tau(after[name], ranks),
            )
            for official, ranks in (officials or {}).items()
        ] or [row]
    return Circularity(tuple(rows), k, depth)


def _why_none(book: Gradebook, k: int, depth: int) -> str:
    if not depth:
        return "No system returned anything: nothing can be re-ranked."
    if depth <= k:
        return (
            f"The rankings have {counted(depth, 'passage')} at most: down to {k} the same ones are "
            "scored in any order. Choose a smaller -k."
        )
    if not book.is_graded:
        return "Nothing is graded: nothing can be re-ranked."
    return ""


def _scores(
    book: Gradebook,
    measures: Sequence[str],
    min_rating: int,
    min_relevant: int,
    subtopics: SubtopicChoice,
) -> dict[str, Scores]:
    """Measure -> system -> mean; what people judged under `JUDGED`."""
    board = evaluate(book, measures, [min_rating], subtopics=subtopics)
    found: dict[str, Scores] = {name: board.scores(name) for name in measures}
    judgments = list(_judgments(book.queries))
    if any(one.relevance >= min_relevant for one in judgments):
        method = qrels_method(JUDGED, book, judgments, measures[1:], [min_relevant])
        found[JUDGED] = method.scorings[0].scores
    return {
        name: {system: round(score, DECIMALS) for system, score in scores.items()}
        for name, scores in found.items()
    }


def _judgments(queries: Iterable[QueryGrades]) -> Iterable[Judgment]:
    for query in queries:
        for row in np.flatnonzero(query.judgments[0] != MISSING):
            relevance = int(query.judgments[0][row])
            yield Judgment(query.query_id, query.passage_ids[row], relevance)


def _mean(scores: Scores) -> float:
    return sum(scores.values()) / len(scores) if scores else 0.0


def _tau(scores: Scores, ranks: Scores) -> float | None:
    """Kendall's tau-b of scores (higher is better) with ranks (1 is best)."""
    if len(scores.keys() & ranks.keys()) < 2:
        return None
    method = Method("re-ranked", (Scoring("mean", None, scores),))
    compared = compare_methods([method], {"other": ranks}, ["kendall"], samples=0)
    return compared.found[0].estimate.value


_MOST_GUESSED = 10
_DRAFT = "These are DRAFT GRADES: they say nothing about any other grader."


class GradedBattery(NamedTuple):
    """A battery as one grader graded it: what it says, and how it was made."""

    results: AttackResults
    path: Path
    made: Mapping[str, str | int]


@dataclass(frozen=True, slots=True, repr=False)
class AttackReport(Result):
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
            (
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


def _attacks(found: AttackReport, battery: GradedBattery) -> Table:
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


def attack_notes(found: AttackReport, battery: GradedBattery) -> Iterator[str]:
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


def _targets(found: AttackReport, battery: GradedBattery) -> Table:
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


def _closed_book(found: AttackReport, battery: GradedBattery) -> Table | None:
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


def _untouched(found: AttackReport) -> Table | None:
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


def _circularity(found: AttackReport) -> Table:
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


def _ledger(found: AttackReport) -> Table:
    rows = [(tie.system, tie.shares, tie.whose, tie.uses, tie.known) for tie in found.ledger.ties]
    columns = ["system", "shares", "with the", "uses", "known from"]
    told = [*found.ledger.notes]
    if not rows:
        told.insert(0, "No system is known to share anything with the grader or the bank.")
    told += [found.no_battery] if found.no_battery else []
    return Table.of(columns, rows, "Who knows whom", told)


@dataclass(frozen=True, slots=True)
class GamingSettings:
    """How it is looked at: from which rating and judgment on, down to which rank `k`.

    `min_rating` is by default that of the grader, `min_relevant` 2, or 1 where no judgment is
    higher. `officials` are official leaderboards by name, system to rank; `uses` is what people say
    that systems were made with (`formats.uses`).
    """

    min_rating: int | None = None
    min_relevant: int | None = None
    k: int = CUTOFF
    officials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    uses: Sequence[SystemUse] = ()
    subtopics: SubtopicChoice = "auto"


def find_gaming(
    book: Gradebook,
    settings: GamingSettings | None = None,
    *,
    exam: Path,
    makers: ItemModels,
    highest_judgment: int | None,
    battery: str | Path | None = None,
) -> AttackReport:
    """All that is known of a grader; the battery is by default the one beside the `exam`.

    Raises:
        InputError: The file named is no battery, the exam is one, or `k` is below 1.
    """
    if any(map(place_of, itertools.chain.from_iterable(q.passage_ids for q in book.queries))):
        raise InputError(
            "is a battery of attacks, and no exam",
            file=exam,
            mend="Name the exam that it was made from, and the battery by --battery",
        )
    settings = or_default("settings", settings, GamingSettings)
    min_rating = book.grader.threshold(settings.min_rating)
    min_relevant = relevance_threshold(settings.min_relevant, highest_judgment)
    graded, why = read_battery(book, min_rating, exam, None if battery is None else Path(battery))
    return AttackReport(
        book.grader,
        book.bank_label,
        min_rating,
        graded,
        why,
        untouched(book, highest_judgment, min_rating),
        circularity(
            book,
            min_rating=min_rating,
            min_relevant=min_relevant,
            officials=settings.officials,
            k=settings.k,
            subtopics=settings.subtopics,
        ),
        ledger(book, makers.models, makers.items, settings.uses),
    )


def read_battery(
    book: Gradebook, min_rating: int, exam: Path, battery: Path | None = None
) -> tuple[GradedBattery | None, str]:
    """The battery as the grader of a gradebook graded it, or None and why there is none.

    Raises InputError for a file that was named and is no battery.
    """
    path = battery or beside(exam)
    if battery is None and not is_collection(exam):
        return None, "No attack was tried: a battery is made from a collection (exampp import)."
    if battery is None and not path.exists():
        return None, f"No attack was tried. Make a battery: exampp analyze attacks {exam} --build"
    with closing(connect(path)) as connection:
        made = how_made(connection, path)
        grader = known_grader(connection, book.grader)
        if grader is None:
            return None, (
                f"{book.grader.name} has not graded the battery {path}. Grade it as you graded the "
                f"exam: exampp grade {path} --grader ..."
            )
        bank = str(made["bank"])
        found = attack_results(
            read_gradebook(connection, grader, _bank_of(book, bank)),
            count_unread_replies(connection, grader, _bank_of(book, bank)),
            min_rating,
        )
    return GradedBattery(found, path, made), ""


def _bank_of(book: Gradebook, bank: str) -> str:
    # what grades queries has no bank but its own
    return book.bank_label if book.grader.kind == "query" else bank
