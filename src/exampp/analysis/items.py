"""Quality of an exam: item statistics, reliability, and the items to review first.

Statistics of every item and the agreement of exam halves, both with and without the systems far
below the rest; and the leaderboard without the items to review. Formulas and sources:
`stats.item_analysis`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from exampp.analysis.item_selection import ItemChoice, choices, choices_table
from exampp.analysis.phrases import worst_systems
from exampp.analysis.turns import TurnCover, cover_by_turn
from exampp.items.lint import lint, missing_texts_note
from exampp.measures.cover import (
    FEWEST_JUDGED,
    ChanceFloor,
    ItemScores,
    chance_floor,
    item_evidence,
)
from exampp.measures.leaderboard import chance_code, grade_notes, missing_prerequisite
from exampp.measures.names import heading
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades, check_testable
from exampp.records.items import BankTexts, ItemEvidence, origin_tags
from exampp.records.wording import counted, cut_text
from exampp.results.notes import DRAFT, Note, merge_notes, note
from exampp.results.plots.figure import Figure
from exampp.results.plots.lines import item_scatter
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Value, programs_only
from exampp.sanitize import check_integer
from exampp.stats.estimate import MOST_DRAWS, Bools, Floats, Indices
from exampp.stats.item_analysis import (
    FEWEST_SYSTEMS,
    SplitHalves,
    alpha_if_deleted,
    alpha_without_each,
    coefficient_alpha,
    draw_item_halves,
    draw_query_halves,
    is_constant,
    item_rest,
    item_total,
    jackknife_error,
    kept_systems,
    order_changes,
    ranked,
    ranks_of_systems,
    split_halves,
)
from exampp.stats.rank_correlation import kendall

DROPS = (0.0, 0.03, 0.25, 0.5)
"""Shares of the worst systems without whom the exam is examined again."""
SPLITS = 1000
WARNED = 0.1
"""Alpha that falls by more without one system is caused by that system."""
SMALL = 4
"""Of so few systems each is an outlier."""
USUAL_SYSTEMS = 10
_TEXT = 48

SEALED = "(sealed)"
"""The text shown in place of a sealed item."""
AGAINST = "against the rest"
AGAINST_WITHOUT = "against the rest without the outlier"
NOT_RELEVANT = "covers what is not relevant"

Key = tuple[str, str]
"""(query id, item id)."""


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """Statistics of one item; None where undefined.

    `difficulty` is the mean credit of systems; `item_rest` its correlation with the rest of the
    exam, `item_rest_without` the same without the system of the jackknife that changes alpha most.
    `relevant` and `not_relevant` are the covered shares of passages that people judged so. `swaps`
    is the number of pairs of systems whose order changes without it. `constant` items are the same
    for all: "all pass", "all fail" or "all same". `sealed` is None where the bank was never split.
    `why` gives the reasons to review it, if any.
    """

    query_id: str
    item_id: str
    text: str
    difficulty: float | None
    constant: str
    item_total: float | None
    item_rest: float | None
    item_rest_without: float | None
    alpha_if_deleted: float | None
    relevant: float | None
    not_relevant: float | None
    swaps: int
    lint: tuple[str, ...]
    sealed: bool | None
    why: tuple[str, ...]

    @property
    def worst(self) -> float:
        """The lowest of the item's statistics; lower is worse."""
        known = (self.item_rest, self.item_rest_without, self.lift)
        return min((value for value in known if value is not None), default=1.0)

    @property
    def lift(self) -> float | None:
        """The covered share of relevant passages minus that of the others."""
        if self.relevant is None or self.not_relevant is None:
            return None
        return self.relevant - self.not_relevant


@dataclass(frozen=True, slots=True)
class ExamRow:
    """Statistics of the exam for some of the systems.

    `drop` is the share of the worst systems that are left out, None where one system, `name`, is
    left out. `alpha_varying` is alpha without the items that are the same for all.
    """

    name: str
    drop: float | None
    systems: int
    alpha: float | None
    alpha_varying: float | None
    all_pass: int
    all_fail: int
    constant: int
    negative: int
    items: SplitHalves
    queries: SplitHalves


class Jackknife(NamedTuple):
    """Alpha without each system in turn; `lowest` is the system whose removal lowers it most."""

    without: Mapping[str, float | None]
    system: str
    lowest: float | None
    error: float | None


@dataclass(frozen=True, slots=True)
class ItemSettings:
    """Settings of an item analysis; `min_relevant` is the lowest judgment of a relevant passage.

    Raises:
        InputError: A number is out of range.
    """

    min_relevant: int = 2
    splits: int = SPLITS
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("splits", self.splits, 2, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)


# ---- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ItemAnalysis(Result):
    """The analysis of an exam and its items.

    `exams` are the exam with all systems first; `floor` is the chance level of Cover, `choices` the
    smaller exams against official leaderboards. `repeated` gives, by places, the items that repeat
    another one, which count once in all statistics. `lacking` is the prerequisite that is missing,
    `unjudged` why items are not compared with judgments, if it is the choice of graded cells.
    `turns` is Cover by turn, if items belong to turns of conversations.
    """

    scores: ItemScores
    caption: str
    grader_key: str
    settings: ItemSettings
    items: tuple[ItemStatistics, ...]
    exams: tuple[ExamRow, ...]
    jackknife: Jackknife
    floor: ChanceFloor
    choices: tuple[ItemChoice, ...] = ()
    repeated: Mapping[int, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    officials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lacking: str = ""
    unjudged: str = ""
    turns: TurnCover | None = None

    @property
    def statistic(self) -> str:
        """The name of alpha: KR-20 where all items have equal weight."""
        return "KR-20" if self.scores.equal else "alpha"

    @property
    def name(self) -> str:
        """The name of the scores."""
        return heading(f"Cover@{self.scores.k}", self.scores.min_rating)

    @property
    def distinct(self) -> int:
        """The number of distinct items."""
        return len(self.items) - len(self.repeated)

    @property
    def undefined(self) -> str:
        """The reason why alpha is undefined; empty where it is defined."""
        if self.exams[0].alpha is not None:
            return ""
        if self.lacking:
            return self.lacking[:1].lower() + self.lacking[1:]
        if len(self.scores.systems) < 2:
            return f"fewer than 2 systems were evaluated ({len(self.scores.systems)})"
        if self.distinct < 2:
            return "all items repeat each other" if self.repeated else "the exam has only 1 item"
        return "all systems have the same score"

    @property
    def look(self) -> tuple[ItemStatistics, ...]:
        """The items to review, worst first."""
        wanted = (row for row in self.items if row.why)
        return tuple(sorted(wanted, key=lambda row: (row.worst, row.query_id, row.item_id)))

    def without_sealed_texts(self) -> ItemAnalysis:
        """Return the analysis for a reader who may not know the sealed items."""
        count = sum(row.sealed is True for row in self.items)
        if not count:
            return self
        items = tuple(replace(row, text=SEALED) if row.sealed else row for row in self.items)
        hidden = note("items-sealed", count=counted(count, "sealed item"))
        return replace(self, items=items, notes=(*self.notes, hidden))

    def plot(self) -> Figure:
        """Plot difficulty against the correlation with the rest of the exam, a dot per item."""
        points = [
            (one.text or one.item_id, one.difficulty, one.item_rest, bool(one.why))
            for one in self.without_sealed_texts().items
            if one.difficulty is not None and one.item_rest is not None
        ]
        return item_scatter(points, draft=DRAFT in self.caption)

    def tables(self, limit: int = 20) -> Mapping[str, Table]:
        """Return the exam, the `limit` worst items, the leaderboard without them, smaller exams."""
        shown = {"exam": self._exam()}
        if self.look:
            shown |= {"items": self._worst(limit), "leaderboard": self._systems()}
        return shown | dict(self._others())

    def records(self) -> Mapping[str, Table]:
        """Return a row per item, group of systems, system, and selection of items."""
        names = (
            *("query_id", "item_id", "difficulty", "constant", "item_total", "item_rest"),
            *("item_rest_without", "alpha_if_deleted", "relevant", "not_relevant", "swaps"),
            *("lint", "sealed", "why", "text"),
        )
        values = ([getattr(row, name) for name in names] for row in self.items)
        rows = [[", ".join(v) if isinstance(v, tuple) else v for v in row] for row in values]
        notes = (*self._exam_notes(), *self._worst_notes(0))
        shown = {
            "items": Table.of(names, rows, self.caption, notes, verdict=self.headline),
            "exam": self._exam(),
            "systems": replace(self._systems(), caption=self.caption),
            **dict(self._others()),
        }
        return {name: table.keyed(self.grader_key) for name, table in shown.items()}

    def _others(self) -> Iterator[tuple[str, Table]]:
        """Yield Cover by turn, and smaller exams, if they were computed."""
        if self.turns:
            yield "turns", replace(self.turns.tables()["turns"], verdict="")
        if self.officials:
            yield "choices", choices_table(self.choices, self.name)

    def _exam(self) -> Table:
        """Return a row per group of systems: the reliability of the exam for them."""
        columns = [
            *(Column("exam"), *programs_only("drop"), Column("systems")),
            *programs_only("items", "statistic"),
            *(Column(self.statistic, key="alpha"), *programs_only("alpha_varying")),
            *programs_only("all_pass", "all_fail"),
            *(Column("same", 0, key="constant"), Column("< 0", 0, key="negative")),
            *_half_columns("items"),
            *_half_columns("queries"),
            *programs_only("jackknife_min", "jackknife_system", "jackknife_error", "chance_floor"),
        ]
        jackknife = self.jackknife
        floor = self.floor.values[0] if self.floor.values else None
        whole = (jackknife.lowest, jackknife.system, jackknife.error, floor)
        rows: list[list[Value]] = [
            [
                *(row.name, row.drop, row.systems, len(self.items), self.statistic),
                *(row.alpha, row.alpha_varying, row.all_pass, row.all_fail),
                *(row.constant, row.negative),
                *(
                    value
                    for half in (row.items, row.queries)
                    for value in (half.r, half.whole, half.tau, half.r_error, half.tau_error)
                ),
                *(whole if row.drop == 0 else (None,) * 4),
            ]
            for row in self.exams
        ]
        return Table.of(columns, rows, self.caption, self._exam_notes(), verdict=self.headline)

    def _worst(self, limit: int) -> Table:
        look = self.look[:limit]
        parts: list[tuple[Column, list[Cell]]] = [
            (Column("item"), [row.item_id for row in look]),
            (Column("covered", 2), [row.difficulty for row in look]),
            (Column("rest", 2), [row.item_rest for row in look]),
            (Column("without", 2), [row.item_rest_without for row in look]),
            (Column("relevant", 2), [row.relevant for row in look]),
            (Column("not", 2), [row.not_relevant for row in look]),
            (Column("swaps"), [row.swaps for row in look]),
            (Column("sealed"), [row.sealed for row in look]),
            (Column("lint"), [", ".join(row.lint) or None for row in look]),
            (Column("text"), [cut_text(row.text, _TEXT) or None for row in look]),
        ]
        shown = [part for part in parts if any(cell is not None for cell in part[1])]
        rows = zip(*(cells for _, cells in shown), strict=True)
        columns = [column for column, _ in shown]
        return Table.of(columns, rows, "Items to review, worst first", self._worst_notes(limit))

    def _worst_notes(self, limit: int) -> Iterator[Note]:
        counts = Counter(why for row in self.look for why in row.why)
        codes = {
            AGAINST: "items-negative",
            AGAINST_WITHOUT: "items-negative-without",
            NOT_RELEVANT: "items-not-relevant",
        }
        for why, code in codes.items():
            if counts[why]:
                items, system = counted(counts[why], "item"), self.jackknife.system
                yield note(code, items=items, system=system, least=FEWEST_JUDGED)
        if limit and len(self.look) > limit:
            yield note("items-shown", limit=limit, count=len(self.look))

    def _systems(self) -> Table:
        """Return a row per system, best first, with and without the items to review."""
        scores, remaining = self.scores, self._remaining
        whole = scores.cover()
        nothing: list[Value] = [None] * len(whole)
        without = scores.cover(remaining) if remaining.any() else None
        columns = [
            *(Column("system"), Column(self.name, key="score"), Column("rank")),
            Column("without these", key="score_without"),
            Column("rank without", key="rank_without"),
            *programs_only("alpha_without"),
        ]
        values: list[Sequence[Value]] = [
            *(scores.systems, whole.tolist(), ranks_of_systems(whole)),
            *(
                (nothing, nothing)
                if without is None
                else (without.tolist(), ranks_of_systems(without))
            ),
            list(self.jackknife.without.values()),
        ]
        order = np.lexsort((np.arange(len(whole)), -ranked(whole))).tolist()
        rows = [[column[at] for column in values] for at in order]
        caption = "The leaderboard without the items to review"
        return Table.of(columns, rows, caption, self._systems_notes())

    @property
    def _remaining(self) -> Bools:
        """Return which items are left without those to review."""
        return np.array([not row.why for row in self.items], np.bool_)

    def _systems_notes(self) -> Iterator[Note]:
        scores, remaining = self.scores, self._remaining
        removed = int((~remaining).sum())
        if not removed or not remaining.any() or not scores.systems:
            yield note("no-items-left" if removed else "no-items-removed")
            return
        whole, less = ranked(scores.cover()), ranked(scores.cover(remaining))
        tau = _shown(kendall(whole, less).value)
        yield note("items-removed", items=counted(removed, "item"), tau=tau)
        if emptied := scores.emptied(remaining):
            yield note("queries-emptied", queries=counted(emptied, "query"))
        for name, ranks in self.officials.items():
            both = [at for at, system in enumerate(scores.systems) if system in ranks]
            better = [-ranks[scores.systems[at]] for at in both]
            before, after = (_shown(kendall(one[both], better).value) for one in (whole, less))
            yield note("items-removed-official", official=name, before=before, after=after)

    # ---- notes -----------------------------------------------------------------------------------

    @property
    def headline(self) -> str:
        """The items to review and the reliability, in words."""
        look, whole = self.look, self.exams[0]
        if whole.alpha is None:
            return f"The reliability of the exam is undefined, because {self.undefined}."
        name = self.statistic[0].upper() + self.statistic[1:]
        value = f"{name} of {counted(self.distinct, 'item')}: {whole.alpha:.3f}"
        if whole.alpha <= 0:
            return (
                "The items do not agree on which system is better, so the order of systems may be "
                f"chance ({value}). Add items and queries before you review single items."
            )
        lowest = self.jackknife.lowest
        if lowest is not None and whole.systems > SMALL and whole.alpha - lowest > WARNED:
            value += (
                f", but {lowest:.3f} without {self.jackknife.system}: the items agree on that "
                "system, and much less on the others"
            )
        if not look:
            return f"No item contradicts the rest of the exam. {value}."
        review, rank, cover = "1 item", "ranks", "covers"
        if len(look) > 1:
            review, rank, cover = f"{len(look)} items", "rank", "cover"
        return (
            f"Review {review} first, which {rank} systems opposite to the rest of the exam or "
            f"{cover} passages that are not relevant. {value}."
        )

    def _exam_notes(self) -> tuple[Note, ...]:
        """Return the notes needed to read the exam's table."""
        return merge_notes([*self._of_size(), *self._of_values(), *self.notes])

    def _of_size(self) -> Iterator[Note]:
        number, queries = len(self.scores.systems), len(self.scores.queries)
        systems = counted(number, "system")
        if 0 < number < USUAL_SYSTEMS:
            few = number < FEWEST_SYSTEMS
            code = "items-two-systems" if few else "items-few-systems"
            yield note(code, systems=systems, usual=USUAL_SYSTEMS)
        if queries == 1:
            yield note("no-query-halves")
        if self.items and len(self.items) == queries:
            yield note("no-item-halves")
        if self.repeated:
            named = [
                f"{self.items[at].item_id} repeats {self.items[first].item_id}"
                for at, first in self.repeated.items()
            ]
            yield note("items-repeated", count=counted(len(named), "item"), items=named)
        if self.unjudged:
            yield note("items-partly-graded", measure=self.name)
        elif self.items and all(row.lift is None for row in self.items):
            yield note("items-unjudged", least=FEWEST_JUDGED)
        if self.scores.missing:
            yield note("items-ungraded", share=self.scores.missing)
        if silent := sum(count > 0 for count in self.scores.unanswered):
            systems, most = counted(silent, "system"), max(self.scores.unanswered)
            yield note("items-unanswered", systems=systems, most=most)

    def _of_values(self) -> Iterator[Note]:
        scores, whole, jackknife, floor = self.scores, self.exams[0], self.jackknife, self.floor
        number = len(scores.systems)
        if whole.constant and number:
            yield note(
                "items-same",
                constant=whole.constant,
                distinct=self.distinct,
                all_pass=whole.all_pass,
                all_fail=whole.all_fail,
                statistic=self.statistic,
                varying=_shown(whole.alpha_varying),
            )
        if number:
            yield note("items-columns")
        if jackknife.lowest is not None and jackknife.error is not None:
            lowest, error = _shown(jackknife.lowest), _shown(jackknife.error)
            names = {"statistic": self.statistic, "system": jackknife.system}
            yield note("items-jackknife", lowest=lowest, error=error, **names)
        if floor.values:
            average = f"; systems average {scores.cover().mean():.3f}" if number else ""
            values, drawn = _shown(floor.values[0]), floor.drawn
            code = chance_code(floor)
            yield note(code, measure=self.name, drawn=drawn, values=values, average=average)
        elif not self.unjudged:
            yield note("chance-unknown", measure=self.name)


def _half_columns(group: str) -> Iterator[Column]:
    for name, key in (("r", "r"), ("SB", "spearman_brown"), ("tau", "tau")):
        yield Column(name, group=group, key=f"{group}_{key}")
    yield from programs_only(f"{group}_r_error", f"{group}_tau_error")


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


# ---- computing -----------------------------------------------------------------------------------


def analyze(
    book: Gradebook,
    scores: ItemScores,
    caption: str,
    settings: ItemSettings,
    *,
    texts: BankTexts | None = None,
    officials: Mapping[str, Mapping[str, float]] | None = None,
) -> ItemAnalysis:
    """Analyse the items of an exam; `officials` are official leaderboards, system to rank.

    Raises:
        InputError: Cells or queries were left out by an estimate.
    """
    check_testable(book)
    texts = texts or BankTexts()
    once = _counted_once(scores, texts)
    repeated = np.flatnonzero(once.first != np.arange(len(once.first))).tolist()
    officials = officials or {}
    missing = missing_prerequisite(book)
    return ItemAnalysis(
        scores=scores,
        caption=caption,
        grader_key=book.grader.key,
        settings=settings,
        items=tuple(_items(book, scores, once, settings, texts)),
        exams=tuple(_exams(once, settings)),
        jackknife=once.jackknife,
        repeated={at: int(once.first[at]) for at in repeated},
        floor=chance_floor(book, [scores.min_rating], scores.k, scores.subtopics),
        choices=tuple(choices(scores, officials)),
        notes=(*filter(None, [missing_texts_note(texts.entries)]), *grade_notes(book)),
        officials=officials,
        lacking=missing.cause if missing else "",
        unjudged=book.ungraded_by_target,
        turns=cover_by_turn(scores, texts, draft=book.grader.is_draft),
    )


def discriminations(scores: ItemScores, texts: BankTexts) -> dict[Key, float | None]:
    """Return the correlation of each item with the rest of the exam, without the outlier system."""
    once = _counted_once(scores, texts)
    rest = item_rest(once.columns[once.stays])
    names = (scores.queries[query] for query in scores.query)
    keys = zip(names, scores.item_ids, strict=True)
    return {key: rest.at(at) for key, at in zip(keys, once.places.tolist(), strict=True)}


class _CountedOnce(NamedTuple):
    """An exam in which repeated items count once: its `scores`, and systems x items as `columns`.

    Of every item of the whole exam, `first` is the first that it repeats, or itself, and `places`
    the column of that. `stays` are the systems but the outlier of the jackknife.
    """

    scores: ItemScores
    columns: Floats
    first: Indices
    places: Indices
    jackknife: Jackknife
    stays: Bools


def _counted_once(scores: ItemScores, texts: BankTexts) -> _CountedOnce:
    first = first_of_repeated(scores, texts)
    distinct = first == np.arange(len(first))
    once = scores.only(distinct)
    jackknife = _jackknife(once, once.columns)
    stays = np.array([system != jackknife.system for system in scores.systems], np.bool_)
    places = np.cumsum(distinct)[first] - 1
    return _CountedOnce(once, once.columns, first, places, jackknife, stays)


# ---- the exam ------------------------------------------------------------------------------------


def _jackknife(scores: ItemScores, columns: Floats) -> Jackknife:
    found = dict(zip(scores.systems, alpha_without_each(columns), strict=True))
    known = {system: value for system, value in found.items() if value is not None}
    if not known:
        return Jackknife(found, "", None, None)
    system = min(known, key=known.__getitem__)
    error = jackknife_error(list(known.values())) if len(known) == len(found) else None
    return Jackknife(found, system, known[system], error)


def _exams(once: _CountedOnce, settings: ItemSettings) -> Iterator[ExamRow]:
    scores, outlier = once.scores, once.jackknife.system
    halves = draw_item_halves(scores.groups, settings.splits, settings.seed)
    queries = draw_query_halves(len(scores.queries), settings.splits, settings.seed)
    means = scores.cover()
    seen = set()
    for drop in DROPS:
        included = kept_systems(means, drop)
        if included.tobytes() in seen:
            continue
        seen.add(included.tobytes())
        out = [name for name, stays in zip(scores.systems, included, strict=True) if not stays]
        name = f"without {worst_systems(out, len(included))}" if out else "all systems"
        yield _exam(name, drop, once, included, halves, queries)
        if not drop and outlier:
            seen.add(once.stays.tobytes())
            yield _exam(f"without {outlier}", None, once, once.stays, halves, queries)


def _exam(
    name: str,
    drop: float | None,
    once: _CountedOnce,
    included: Bools,
    halves: Bools,
    queries: tuple[Bools, Bools],
) -> ExamRow:
    some, credit = once.columns[included], once.scores.credit[included]
    constant = is_constant(credit)
    rest = item_rest(some)
    first = credit[0] if len(credit) else np.zeros(credit.shape[1])
    return ExamRow(
        name=name,
        drop=drop,
        systems=len(some),
        alpha=coefficient_alpha(some),
        alpha_varying=coefficient_alpha(some[:, ~constant]),
        all_pass=int((constant & (first == 1)).sum()),
        all_fail=int((constant & (first == 0)).sum()),
        constant=int(constant.sum()),
        negative=int((rest.defined & (rest.values < 0)).sum()),
        items=split_halves(some, halves, ~halves),
        queries=split_halves(once.scores.of_queries(some), *queries),
    )


# ---- items ---------------------------------------------------------------------------------------


def _items(
    book: Gradebook,
    scores: ItemScores,
    once: _CountedOnce,
    settings: ItemSettings,
    texts: BankTexts,
) -> Iterator[ItemStatistics]:
    columns, at_once = once.columns, once.places.tolist()
    total, rest, deleted = item_total(columns), item_rest(columns), alpha_if_deleted(columns)
    without = item_rest(columns[once.stays])
    constant = is_constant(scores.credit)
    covered = item_evidence(book, scores, settings.min_relevant)
    linted = linted_items(texts, covered)
    words = texts.item_texts
    swaps = _swaps(scores)
    for at, item_id in enumerate(scores.item_ids):
        key = (scores.queries[scores.query[at]], item_id)
        found = covered.get(key, ItemEvidence(0.0))
        row = ItemStatistics(
            *key,
            text=words.get(key, ""),
            difficulty=float(scores.credit[:, at].mean()) if len(columns) else None,
            constant=_same(scores.credit[:, at]) if constant[at] else "",
            item_total=total.at(at_once[at]),
            item_rest=rest.at(at_once[at]),
            item_rest_without=without.at(at_once[at]),
            alpha_if_deleted=deleted.at(at_once[at]),
            relevant=found.relevant,
            not_relevant=found.not_relevant,
            swaps=swaps[at],
            lint=linted.get(key, ()),
            sealed=None if texts.sealed is None else key in texts.sealed,
            why=(),
        )
        yield replace(row, why=tuple(_why(row, found.wrongly)))


def _same(values: Floats) -> str:
    if not len(values):
        return ""
    return {1.0: "all pass", 0.0: "all fail"}.get(float(values[0]), "all same")


def _why(row: ItemStatistics, wrongly: int) -> Iterator[str]:
    """Yield reasons to review an item, the most severe first.

    `wrongly` counts the passages that cover it and that people judged not relevant: one or two are
    found for nearly every item that few passages answer.
    """
    if row.item_rest is not None and row.item_rest < 0:
        yield AGAINST
    elif row.item_rest_without is not None and row.item_rest_without < 0:
        yield AGAINST_WITHOUT
    if row.lift is not None and row.lift <= 0 and wrongly >= FEWEST_JUDGED:
        yield NOT_RELEVANT


def linted_items(
    texts: BankTexts, evidence: Mapping[Key, ItemEvidence] | None = None
) -> dict[Key, tuple[str, ...]]:
    """Map (query, item) to the lint rules that it breaks, each once."""
    found: dict[Key, dict[str, None]] = {}
    for one in lint(texts.entries, texts.queries, evidence=evidence):
        found.setdefault((one.query_id, one.item_id), {})[one.rule] = None
    return {key: tuple(rules) for key, rules in found.items()}


def _swaps(scores: ItemScores) -> list[int]:
    """Count per item the pairs of systems whose order changes without it."""
    whole = scores.cover()
    included = np.ones(len(scores.item_ids), np.bool_)
    found = []
    for at in range(len(included)):
        included[at] = False
        found.append(order_changes(whole, scores.cover(included)))
        included[at] = True
    return found


def first_of_repeated(scores: ItemScores, texts: BankTexts) -> Indices:
    """Return for each item the first item of its exam with the same words and the same credit.

    Case, punctuation and whitespace make no difference. Items without a text repeat nothing.
    """
    words = {key: plain_words(text) for key, text in texts.item_texts.items()}
    first: dict[tuple[object, ...], int] = {}
    found = []
    for at, item_id in enumerate(scores.item_ids):
        text = words.get((scores.queries[scores.query[at]], item_id), "")
        credit = scores.credit[:, at].tobytes()
        key = (int(scores.exam[at]), text, credit) if text else (at,)
        found.append(first.setdefault(key, at))
    return np.array(found, np.intp)


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, without punctuation."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


# ---- the list of all items -----------------------------------------------------------------------


class ListedItem(NamedTuple):
    """One item of the list; None is undefined, as everything is before it is graded.

    `relevant`, `not_relevant` are the covered shares of passages that people judged so, `gap` their
    difference. `discrimination` is its correlation with the rest of the exam. `cells` counts its
    graded passages that a system returned among its first k, `swaps` the pairs of systems whose
    order changes without it, `overturned` the cells where people rejected the grader's answer.
    `state` lists reasons to review it, `worst` is the lowest of its statistics.
    """

    query_id: str
    query_text: str
    item_id: str
    text: str
    relevant: float | None = None
    not_relevant: float | None = None
    gap: float | None = None
    discrimination: float | None = None
    cells: int | None = None
    swaps: int | None = None
    lint: tuple[str, ...] = ()
    overturned: int | None = None
    state: tuple[str, ...] = ()
    worst: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ItemList(Result):
    """The items of all queries, in the order of the bank; `is_graded` if any cell is graded."""

    items: tuple[ListedItem, ...]
    is_graded: bool

    def tables(self) -> Mapping[str, Table]:
        """Return a row per item."""
        renamed = {"query_text": "query", "text": "item"}
        names = ListedItem._fields[:-1]
        rows = (
            [", ".join(value) if isinstance(value, tuple) else value for value in one[:-1]]
            for one in self.items
        )
        columns = [renamed.get(name, name) for name in names]
        return {"items": Table.of(columns, rows, "Items of all queries")}


def item_list(
    texts: BankTexts, book: Gradebook | None = None, analysis: ItemAnalysis | None = None
) -> ItemList:
    """List the items of a bank; with statistics if there is an analysis."""
    known = {(row.query_id, row.item_id): row for row in analysis.items} if analysis else {}
    cells: dict[Key, tuple[int, int]] = {}
    evidence: Mapping[Key, ItemEvidence] = {}
    if book is not None and analysis is not None:
        evidence = item_evidence(book, analysis.scores, analysis.settings.min_relevant)
        for query in book.queries:
            cells |= _cells(query, analysis.scores.min_rating, analysis.scores.k)
    items, linted = [], linted_items(texts, evidence)
    origins = {
        (one.query_id, one.item_id): (*("to avoid",) * one.is_avoided, *origin_tags(one.extra))
        for one in texts.items
    }
    for key, text in texts.item_texts.items():
        query_text, rules = texts.queries.get(key[0], ""), linted.get(key, ())
        tags = (*origins.get(key, ()), *("sealed",) * (key in (texts.sealed or ())))
        one = ListedItem(key[0], query_text, key[1], text, lint=rules, state=tags)
        if key in cells:
            one = one._replace(cells=cells[key][0], overturned=cells[key][1])
        elif book is None or analysis is not None:
            one = one._replace(state=("not graded", *tags))
        if key in known and key in cells:
            row = known[key]
            one = one._replace(
                relevant=row.relevant,
                not_relevant=row.not_relevant,
                gap=row.lift,
                discrimination=row.item_rest,
                swaps=row.swaps,
                state=(*row.why, *filter(None, [row.constant]), *tags),
                worst=row.worst if row.why else None,
            )
        items.append(one)
    return ItemList(tuple(items), book is not None and book.is_graded)


def _cells(query: QueryGrades, min_rating: int, k: int) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Count per item its graded cells among the first k passages, and the overturned ones."""
    read = np.zeros(len(query.passage_ids), np.bool_)
    for ranking in query.rankings:
        read[ranking.passages[:k]] = True
    graded = (query.ratings[read] != MISSING).sum(axis=0).tolist()
    overturned = dict.fromkeys(query.item_ids, 0)
    for cell, place in query.decided_places():
        overturned[cell.item_id] += bool(query.ratings[place] < min_rating <= cell.automatic)
    for item_id, count in zip(query.item_ids, graded, strict=True):
        yield (query.query_id, item_id), (count, overturned[item_id])
