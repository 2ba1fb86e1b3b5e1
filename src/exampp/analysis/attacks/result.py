"""Can the grader be gamed? What attacks, guessing and re-ranking by the grader show.

Rates are means over queries of the cells of a query: cells of one query depend on each other, so
that an interval over cells would be far too narrow. Without a graded battery only what needs no
new grades is reported.
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
from exampp.analysis.correlation import qrels_method
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
from exampp.results.notes import note
from exampp.results.plots.dots import attack_lifts
from exampp.results.plots.figure import Figure
from exampp.results.result import Result, Table
from exampp.results.view import GRADER_KEY, Cell, Column, Value, programs_only
from exampp.sanitize import check_integer, or_default
from exampp.stats.estimate import Estimate
from exampp.stats.means import DIFFERENCE, mean_test, rate
from exampp.stats.rank_correlation import correlate
from exampp.stats.significance import holm
from exampp.store.bank import ItemModels
from exampp.store.battery import count_unread_replies
from exampp.store.connection import connect, is_collection
from exampp.store.grades import known_grader
from exampp.store.read_model import read_gradebook

ALPHA = 0.05
DEPTH = 20
"""Passages of a system for which the chance to cover an item by luck is given."""
CUTOFF = 5
DECIMALS = 9
"""Means that are equal in these are tied: scores are rational, and sums differ by their order."""
BY_PEOPLE = "judged by people"

Ratings = NDArray[np.int16]
Scores = Mapping[str, float]


# ---- attacks -------------------------------------------------------------------------------------


class Rates(NamedTuple):
    """How often a text reaches the threshold, how often its control does, and the difference.

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
        """The finding in a word or two; empty where nothing could be tested."""
        rates = self.cells
        if self.attack.harm is Harm.KEPT:
            if not rates.control or rates.attack is None:
                return ""
            return f"{rates.attack / rates.control:.0%} kept"
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
        """Whether the attack is found to do what it is for."""
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
    """The mean rate of items on texts of one kind, and the share of the bank that luck covers.

    `items` have a grade, of which `guessed` were covered at least once; None where none has.
    """

    texts: str
    items: int
    guessed: int
    rate: float | None
    luck: float | None


@dataclass(frozen=True, slots=True)
class GradedBattery:
    """A battery as one grader graded it; `ungraded` cells are pending, `made` are its settings."""

    attacks: tuple[AttackResult, ...]
    guesses: tuple[ItemGuess, ...]
    guessing: tuple[Guessing, ...]
    ungraded: int
    path: Path
    made: Mapping[str, str | int]


def graded_battery(
    book: Gradebook,
    unread: Mapping[str, int],
    min_rating: int,
    path: Path,
    made: Mapping[str, str | int],
) -> GradedBattery:
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
    guessing = tuple(_guessing(name, np.array(rates)) for name, rates in by_text.items())
    pending = missing - sum(unread.values())
    return GradedBattery(tuple(found), tuple(guesses), guessing, pending, path, made)


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
    """Return the texts that reach the threshold and the texts with a grade, of every item."""
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
    """Return the chance that one of `DEPTH` passages covers an item that each covers at a rate."""
    return None if chance is None else 1 - (1 - chance) ** DEPTH


# ---- circularity ---------------------------------------------------------------------------------


class ReRanked(NamedTuple):
    """One measure before and after every system was re-ranked by the grader.

    `judged`: by people's judgments, not by the exam. `before` and `after` are means over systems,
    `tau_kept` is Kendall's tau of the order after with the order before; `tau_before` and
    `tau_after` are those with the `official` leaderboard (None: undefined, or no leaderboard).
    """

    measure: str
    judged: bool
    before: float
    after: float
    tau_kept: float | None
    official: str = ""
    tau_before: float | None = None
    tau_after: float | None = None


class Circularity(NamedTuple):
    """What systems gain by re-ranking their passages with the grader that scores them.

    Nothing has to be graded. The exam then measures how well systems agree with the grader, and
    people's judgments show how far that is wanted. `notes` explain the rows.
    """

    rows: tuple[ReRanked, ...]
    notes: tuple[str, ...]


def relisted(book: Gradebook, *, reranked: bool) -> Gradebook:
    """Return rankings whose scores follow the list, as it is or re-ranked by the grader.

    Re-ranked by best rating, then sum of ratings, then the order before; a ranking of a subtopic
    by the items of the subtopic. Passages without a grade come last.
    """

    def listed(query: QueryGrades, ranking: Ranking) -> Ranking:
        passages = ranking.passages
        if reranked:
            own = query.ratings[passages].astype(np.int64)
            if ranking.subtopic:
                own = own[:, query.item_subtopics == ranking.subtopic]
            best, total = own.max(axis=1, initial=MISSING), np.where(own == MISSING, 0, own)
            passages = passages[np.lexsort((-total.sum(axis=1), -best))]
        scores = np.arange(len(passages), 0, -1, dtype=np.float64)
        return replace(ranking, passages=passages, scores=scores, ranks=None)

    queries = (
        replace(query, rankings=tuple(listed(query, ranking) for ranking in query.rankings))
        for query in book.queries
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
    why = ""
    if not depth:
        why = "No system returned anything: nothing can be re-ranked."
    elif depth <= k:
        why = (
            f"Rankings have {counted(depth, 'passage')} at most: re-ranking does not change the "
            f"first {k}. Choose a smaller -k."
        )
    elif not book.is_graded:
        why = "Nothing is graded: nothing can be re-ranked."
    if why:
        return Circularity((), (why,))
    before, after = (
        _scores(relisted(book, reranked=one), k, min_rating, min_relevant, subtopics)
        for one in (False, True)
    )
    rows = []
    for name, scores in before.items():
        judged, new = name == BY_PEOPLE, after[name]
        kept = correlate(new, {system: -score for system, score in scores.items()})
        row = ReRanked(
            f"P@{k}" if judged else name, judged, _mean(scores), _mean(new), kept.kendall.value
        )
        rows += [
            row._replace(
                official=official,
                tau_before=correlate(scores, ranks).kendall.value,
                tau_after=correlate(new, ranks).kendall.value,
            )
            for official, ranks in (officials or {}).items()
        ] or [row]
    return Circularity(tuple(rows), tuple(_circular_notes(rows, depth)))


def _circular_notes(rows: Sequence[ReRanked], depth: int) -> Iterator[str]:
    yield (
        f"Every system's own passages (up to {depth}) were re-ranked by the grader: best rating, "
        "then the sum of ratings, then the order before."
    )
    best = max((row for row in rows if not row.judged), key=lambda row: row.after - row.before)
    rise = best.after - best.before
    for people in [row for row in rows if row.judged][:1]:
        yield (
            "Re-ranking changes no score: the grader finds no passage better than those that stand "
            "first."
            if round(rise, DECIMALS) == 0
            else f"{best.measure} rises by {rise:.3f}, {people.measure} {BY_PEOPLE} by "
            f"{people.after - people.before:+.3f}: the difference is the grader praising its own "
            "choice."
        )


def _scores(
    book: Gradebook, k: int, min_rating: int, min_relevant: int, subtopics: SubtopicChoice
) -> dict[str, Scores]:
    """Return measure -> system -> mean, with people's judgments under `BY_PEOPLE`."""
    measures = (f"Cover@{k}", f"P@{k}")
    board = evaluate(book, measures, [min_rating], subtopics=subtopics)
    found: dict[str, Scores] = {name: board.scores(name) for name in measures}
    judgments = [
        Judgment(query.query_id, query.passage_ids[row], int(query.judgments[0][row]))
        for query in book.queries
        for row in np.flatnonzero(query.judgments[0] != MISSING)
    ]
    if any(one.relevance >= min_relevant for one in judgments):
        method = qrels_method(BY_PEOPLE, book, judgments, measures[1:], [min_relevant])
        found[BY_PEOPLE] = method.scorings[0].scores
    return {
        name: {system: round(score, DECIMALS) for system, score in scores.items()}
        for name, scores in found.items()
    }


def _mean(scores: Scores) -> float:
    return sum(scores.values()) / len(scores) if scores else 0.0


# ---- the ledger ----------------------------------------------------------------------------------

_ITS_NAME = "its name"


class SharedTie(NamedTuple):
    """A system that shares something with the grader or the bank.

    `shares` is a model, a family of models, the items or the prompt; `known` where from.
    """

    system: str
    shares: str
    whose: str
    uses: str
    known: str


class Ledger(NamedTuple):
    """The ties of systems; `unknown` are systems of which nothing is known."""

    ties: tuple[SharedTie, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


def ledger(
    book: Gradebook, makers: Mapping[str, int], items: int, uses: Sequence[SystemUse] = ()
) -> Ledger:
    """Collect what is known of the systems of a gradebook, by name and by what people report.

    `makers` counts the items that each model made, of `items`.
    """
    reported: dict[str, list[SystemUse]] = {}
    for one in uses:
        reported.setdefault(one.system, []).append(one)
    ties = [
        tie
        for system in book.systems
        for one in reported.get(system, [SystemUse(system, system, _ITS_NAME)])
        for tie in _ties(one, book, makers)
    ]
    unknown = [one for one in book.systems if one not in reported and not families_of(one)]
    elsewhere = [system for system in reported if system not in book.systems]
    notes = _ledger_notes(book, makers, items, unknown, elsewhere)
    return Ledger(tuple(dict.fromkeys(ties)), tuple(unknown), tuple(notes))


def _ties(one: SystemUse, book: Gradebook, makers: Mapping[str, int]) -> Iterator[SharedTie]:
    """Yield what a system shares by one thing that it uses."""
    grader = book.grader
    model = grader.model
    by_name = one.place == _ITS_NAME

    def tie(shares: str, whose: str) -> SharedTie:
        return SharedTie(one.system, shares, whose, "" if by_name else one.uses, one.place)

    for other, whose in ((model, "grader"), *((maker, "bank") for maker in makers)):
        named = whose == "grader" and one.uses in (grader.name, grader.key)
        if named or same_model(one.uses, other):
            yield tie(f"model {other}", whose)
        else:
            for family in sorted({*families_of(one.uses)} & {*families_of(other)}):
                yield tie(f"family {family}", whose)
    if not by_name and one.uses.casefold() == book.bank.casefold():
        yield tie("the items", "bank")
    if not by_name and one.uses.casefold() == grader.prompt.casefold():
        yield tie("the prompt", "grader")


def _ledger_notes(
    book: Gradebook,
    makers: Mapping[str, int],
    items: int,
    unknown: Sequence[str],
    elsewhere: Sequence[str],
) -> Iterator[str]:
    model, bank = book.grader.model, book.bank_label
    yield f"Graded by {model}{_in_family(model)}, prompt {book.grader.prompt}."
    if makers:
        made = ", ".join(
            f"{name}{_in_family(name)} ({counted(count, 'item')})" for name, count in makers.items()
        )
        yield f"The bank {bank} has {counted(items, 'item')}, made by {made}."
    else:
        yield (
            f"Unknown which model made the bank {bank or 'of graded items'}: neither its file nor "
            "`exampp bank generate` names one."
        )
    if own := [name for name in makers if same_model(name, model)]:
        yield f"The model that grades also made items of the bank ({', '.join(own)})."
    if unknown:
        yield (
            f"Nothing is known of {len(unknown)} of {counted(len(book.systems), 'system')}. List "
            "what they use in a table with the columns system and uses (--uses FILE)."
        )
    if elsewhere:
        yield f"Not in the exam, and left out: {', '.join(elsewhere)}."


def _in_family(model: str) -> str:
    families = families_of(model)
    return f" (family {', '.join(families)})" if families else ""


# ---- the report ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttackSettings:
    """From which rating and judgment, and down to which rank `k`, the grader is examined.

    `min_rating` is by default that of the grader, `min_relevant` 2, or 1 where no judgment is
    higher. `officials` are official leaderboards by name, system to rank; `uses` is what people
    report that systems were made with (`formats.system_models`).
    """

    min_rating: int | None = None
    min_relevant: int | None = None
    k: int = CUTOFF
    officials: Mapping[str, Scores] = field(default_factory=dict)
    uses: Sequence[SystemUse] = ()
    subtopics: SubtopicChoice = "auto"


@dataclass(frozen=True, slots=True, repr=False)
class AttackReport(Result):
    """What is known of whether a grader can be gamed.

    `battery` is None where it was not graded, for the reason in `no_battery`.
    """

    grader: GraderIdentity
    min_rating: int
    battery: GradedBattery | None
    no_battery: str
    circularity: Circularity
    ledger: Ledger

    @property
    def headline(self) -> str:
        """Which attacks succeed, the strongest first; why none was tested."""
        if self.battery is None:
            return self.no_battery
        tested = [one for one in self.battery.attacks if one.holm is not None]
        won = [one for one in self.battery.attacks if one.succeeds]
        if not tested:
            return "No attack could be tested: there are no queries with both attack and control."
        if not won:
            return f"None of {counted(len(tested), 'attack')} is shown to succeed."
        won.sort(key=lambda one: -abs(one.cells.lift.value or 0.0))
        names = ", ".join(one.attack.name for one in won)
        return (
            f"{len(won)} of {counted(len(tested), 'attack')} succeed ({names}); the strongest is "
            f"{won[0].attack.name}, {won[0].attack.about}: {won[0].cells.lift.value or 0.0:+.3f}."
        )

    def tables(self) -> Mapping[str, Table]:
        """Return attacks, guessing, circularity, and the ledger of shared models."""
        found = {}
        if self.battery:
            found["attacks"] = self._attacks(self.battery.attacks, self._notes(self.battery))
            if self.battery.guessing:
                found["guessing"] = self._guessing(self.battery.guessing)
        return {**found, **self._others()}

    def records(self) -> Mapping[str, Table]:
        """Return the same with a row an item guessed; without a battery tables are empty."""
        battery = self.battery
        guesses = [
            (*one[:4], *(end for of in one[4:] for end in (of.value, of.low, of.high)))
            for one in (battery.guesses if battery else ())
        ]
        ends = ("rate", "low", "high", "luck_rate", "luck_low", "luck_high")
        return {
            "attacks": self._attacks(battery.attacks if battery else (), ()),
            "closed_book": Table.of([*ItemGuess._fields[:4], *ends], guesses),
            "guessing": self._guessing(battery.guessing if battery else ()),
            **self._others(),
        }

    def figure(self) -> Figure:
        """Return what every attack lifts, beside its control; empty without a battery."""
        lifts = [
            (f"{one.attack.name} {one.attack.about}", lift.value, lift.low, lift.high, one.succeeds)
            for one in (self.battery.attacks if self.battery else ())
            for lift in [one.cells.lift]
            if one.holm is not None and lift.value is not None
        ]
        figure = attack_lifts(lifts, f"rated {self.min_rating} or above by {self.grader.name}")
        return replace(figure, draft=self.grader.is_draft)

    def _attacks(self, results: Sequence[AttackResult], notes: Iterable[str]) -> Table:
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
            for one in results
        ]
        caption = f"Cells rated {self.min_rating} or above by {self.grader.name}"
        return Table.of(columns, rows, caption, notes)

    def _notes(self, battery: GradedBattery) -> Iterator[str]:
        queries = max((one.queries for one in battery.attacks), default=0)
        if self.grader.is_draft:
            yield note("draft")
        yield self.headline
        yield (
            f"lift = rate - control, paired by target, mean over {counted(queries, 'query')} with "
            "its 95% interval; a finding holds after Holm's correction over all attacks at .05. "
            "The lift of best ratings counts the targets whose best rating is as high."
        )
        yield (
            "gamed, hurt: it does what it is for; lowered, raised: the opposite; no sign is no "
            "proof that it fails. kept: share of the rate of the true passage that the false one "
            "keeps. unread: replies without a grade."
        )
        if battery.ungraded:
            yield (
                f"{counted(battery.ungraded, 'cell')} of the battery {battery.path} have no grade "
                f"yet: exampp grade {battery.path}"
            )
        yield f"Battery {str(battery.made['digest'])[:16]}, seed {battery.made['seed']}."

    def _guessing(self, found: Sequence[Guessing]) -> Table:
        columns = [
            *(Column("texts that answer nothing", readers="people"), *programs_only("texts")),
            *(Column("items"), Column("covered once", key="guessed"), Column("rate")),
            Column(f"luck at {DEPTH}", key="luck"),
        ]
        mute = [BY_NAME[one.texts].about for one in found if one.rate is None]
        notes = [
            f"luck at {DEPTH}: the share of the bank that {DEPTH} such passages cover, 1 - (1 - c)^"
            f"{DEPTH} of each item's rate c. A passage of another query may answer an item.",
            *(f"The grader has given no grade to {about}." for about in mute),
        ]
        rows = [(BY_NAME[one.texts].about, *one) for one in found]
        caption = f"Closed book: items rated {self.min_rating} or above without an answer"
        return Table.of(columns, rows, caption, notes)

    def _others(self) -> dict[str, Table]:
        """Return what needs no battery."""
        compared = any(row.official for row in self.circularity.rows)
        columns = ["measure", "before", "after", "change", "tau to before"]
        columns += ["official", "tau before", "tau after"] if compared else []
        rows: list[tuple[Value, ...]] = [
            (
                row.measure + (" by people" if row.judged else ""),
                *(row.before, row.after, row.after - row.before, row.tau_kept),
                *(row[5:] if compared else ()),
            )
            for row in self.circularity.rows
        ]
        caption = f"Every system re-ranked by {self.grader.name}"
        known = [*self.ledger.notes, *filter(None, [self.no_battery])]
        if not self.ledger.ties:
            known.insert(0, "No system is known to share anything with the grader or the bank.")
        return {
            "circularity": Table.of(columns, rows, caption, self.circularity.notes),
            "ledger": Table.of(
                ["system", "shares", "with the", "uses", "known from"],
                self.ledger.ties,
                "Systems that share a model, a prompt or the bank",
                known,
            ),
        }


def _columns_of(one: Rates) -> tuple[Cell, ...]:
    lift = one.lift
    return (one.attack, one.control, lift, lift.value, lift.low, lift.high, one.p)


def attack_report(
    book: Gradebook,
    settings: AttackSettings | None = None,
    *,
    exam: Path,
    makers: ItemModels,
    highest_judgment: int | None,
    battery: str | Path | None = None,
) -> AttackReport:
    """Report all that is known of a grader; the battery is by default the one beside the `exam`.

    Raises:
        InputError: The file named is no battery, the exam is one, or `k` is below 1.
    """
    if any(map(place_of, itertools.chain.from_iterable(q.passage_ids for q in book.queries))):
        raise InputError(
            "is a battery of attacks, and no exam",
            file=exam,
            hint="Name the exam that it was made from, and the battery by --battery",
        )
    settings = or_default("settings", settings, AttackSettings)
    min_rating = book.grader.threshold(settings.min_rating)
    graded, why = _read_battery(book, min_rating, exam, None if battery is None else Path(battery))
    return AttackReport(
        book.grader,
        min_rating,
        graded,
        why,
        circularity(
            book,
            min_rating=min_rating,
            min_relevant=relevance_threshold(settings.min_relevant, highest_judgment),
            officials=settings.officials,
            k=settings.k,
            subtopics=settings.subtopics,
        ),
        ledger(book, makers.models, makers.items, settings.uses),
    )


def _read_battery(
    book: Gradebook, min_rating: int, exam: Path, battery: Path | None
) -> tuple[GradedBattery | None, str]:
    """Return the battery as the grader of a gradebook graded it, or None and why not."""
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
        # what grades queries has no bank but its own
        bank = book.bank_label if book.grader.kind == "query" else str(made["bank"])
        graded = read_gradebook(connection, grader, bank)
        unread = count_unread_replies(connection, grader, bank)
        return graded_battery(graded, unread, min_rating, path, made), ""
