"""Is the exam a good one? Systems sit it, and its items are looked at.

Every item by what it tells of systems, the exam by how far its halves agree, both with and without
the systems that stand far below the rest; the items to look at, worst first, and the leaderboard
without them. Formulas and their sources: `stats.item_analysis`, `stats.item_response`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis import item_tables
from exampp.analysis.item_abilities import ItemAbilities, fitted
from exampp.analysis.item_records import (
    AGAINST,
    AGAINST_WITHOUT,
    FEWEST_JUDGED,
    NOT_RELEVANT,
    ExamRow,
    ItemFindings,
    ItemStatistics,
    Jackknife,
)
from exampp.analysis.item_repeats import first_of_repeated
from exampp.analysis.item_selection import ability_choices, choices
from exampp.analysis.phrases import worst_systems
from exampp.bank.lint import items_without_text, lint
from exampp.evaluate.chance import chance_floor, judged_ratings
from exampp.evaluate.cover import cover_exams
from exampp.evaluate.item_scores import ItemScores
from exampp.evaluate.lacking import lacking
from exampp.outside import check_whole
from exampp.records.bank import BankTexts
from exampp.records.gradebook import MISSING, Gradebook
from exampp.report.result import Result
from exampp.report.table import Table
from exampp.stats.item_analysis import (
    Bools,
    alpha,
    alpha_if_deleted,
    alpha_without_each,
    draw_item_halves,
    draw_query_halves,
    is_constant,
    item_rest,
    item_total,
    jackknife_error,
    kept_systems,
    order_changes,
    split_halves,
)
from exampp.stats.rank_correlation import CorrelationRows, Floats
from exampp.stats.resampling import MOST_DRAWS

DROPS = (0.0, 0.03, 0.25, 0.5)
"""Shares of the worst systems without whom the exam is looked at again."""
SPLITS = 1000


@dataclass(frozen=True, slots=True)
class ItemSettings:
    """How items are looked at: `min_relevant` is the lowest judgment of a relevant passage.

    `irt` fits the two-parameter model too, which takes seconds. Raises InputError for numbers that
    make no sense.
    """

    min_relevant: int = 2
    splits: int = SPLITS
    seed: int = 0
    irt: bool = False

    def __post_init__(self) -> None:
        check_whole("splits", self.splits, 2, MOST_DRAWS)
        check_whole("the seed", self.seed, 0)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ItemAnalysis(Result, ItemFindings):
    """What `analyze items` found, and how it was asked."""

    settings: ItemSettings

    def tables(self, limit: int = 20) -> Mapping[str, Table]:
        """The exam, the `limit` worst items, the leaderboard without any, what a choice gains."""
        return item_tables.tables(self, limit)

    def records(self) -> Mapping[str, Table]:
        """A row an item, and one an exam, a system and a choice of items."""
        return item_tables.records(self)


def analyze(
    book: Gradebook,
    scores: ItemScores,
    caption: str,
    settings: ItemSettings,
    *,
    texts: BankTexts | None = None,
    officials: Mapping[str, Mapping[str, float]] | None = None,
) -> ItemAnalysis:
    """Look at the items of an exam; `officials` are official leaderboards, system to rank.

    Raises:
        InputError: A model of items is asked for and cannot be fitted.
    """
    texts = texts or BankTexts()
    first = first_of_repeated(scores, texts)
    distinct = first == np.arange(len(first))
    once = scores.only(distinct)
    columns = once.columns
    jackknife = _jackknife(once, columns)
    outlier = np.array([system != jackknife.system for system in scores.systems], np.bool_)
    abilities = fitted(scores, jackknife.system) if settings.irt else None
    officials = officials or {}
    missing = lacking(book)
    return ItemAnalysis(
        scores=scores,
        caption=caption,
        grader_key=book.grader.key,
        settings=settings,
        items=tuple(
            _items(
                book,
                scores,
                _Columns(columns, columns[outlier], np.cumsum(distinct)[first] - 1),
                settings,
                texts,
                abilities,
            )
        ),
        exams=tuple(_exams(once, columns, outlier, jackknife, settings)),
        jackknife=jackknife,
        repeated={int(at): int(first[at]) for at in np.flatnonzero(~distinct)},
        floor=chance_floor(book, [scores.min_rating], scores.k, scores.subtopics),
        choices=(*choices(scores, officials), *ability_choices(scores, abilities, officials)),
        abilities=abilities,
        notes=(*filter(None, [items_without_text(texts.entries)]), *book.notes),
        officials=officials,
        lacking=missing.cause if missing else "",
    )


# ---- the exam ------------------------------------------------------------------------------------


def _jackknife(scores: ItemScores, columns: Floats) -> Jackknife:
    found = dict(zip(scores.systems, alpha_without_each(columns), strict=True))
    known = {system: value for system, value in found.items() if value is not None}
    if not known:
        return Jackknife(found, "", None, None)
    system = min(known, key=known.__getitem__)
    error = jackknife_error(list(known.values())) if len(known) == len(found) else None
    return Jackknife(found, system, known[system], error)


def _exams(
    scores: ItemScores,
    columns: Floats,
    outlier: Bools,
    jackknife: Jackknife,
    settings: ItemSettings,
) -> Iterator[ExamRow]:
    halves = draw_item_halves(scores.groups, settings.splits, settings.seed)
    queries = draw_query_halves(len(scores.queries), settings.splits, settings.seed)
    means = scores.cover()
    seen = set()
    for drop in DROPS:
        kept = kept_systems(means, drop)
        if kept.tobytes() in seen:
            continue
        seen.add(kept.tobytes())
        out = [name for name, stays in zip(scores.systems, kept, strict=True) if not stays]
        name = f"without {worst_systems(out, len(kept))}" if out else "all systems"
        yield _exam(name, drop, scores, columns, kept, halves, queries)
        if not drop and jackknife.system:
            seen.add(outlier.tobytes())
            name = f"without {jackknife.system}"
            yield _exam(name, None, scores, columns, outlier, halves, queries)


def _exam(
    name: str,
    drop: float | None,
    scores: ItemScores,
    columns: Floats,
    kept: Bools,
    halves: Bools,
    queries: tuple[Bools, Bools],
) -> ExamRow:
    some, credit = columns[kept], scores.credit[kept]
    constant = is_constant(credit)
    rest = item_rest(some)
    first = credit[0] if len(credit) else np.zeros(credit.shape[1])
    return ExamRow(
        name=name,
        drop=drop,
        systems=len(some),
        alpha=alpha(some),
        alpha_varying=alpha(some[:, ~constant]),
        all_pass=int((constant & (first == 1)).sum()),
        all_fail=int((constant & (first == 0)).sum()),
        constant=int(constant.sum()),
        negative=int((rest.defined & (rest.values < 0)).sum()),
        items=split_halves(some, halves, ~halves),
        queries=split_halves(scores.of_queries(some), *queries),
    )


# ---- items ---------------------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Systems x items, repeated items once; `without` the outlier; `places` [items] in them."""

    columns: Floats
    without: Floats
    places: NDArray[np.intp]


def _items(
    book: Gradebook,
    scores: ItemScores,
    counted: _Columns,
    settings: ItemSettings,
    texts: BankTexts,
    abilities: ItemAbilities | None,
) -> Iterator[ItemStatistics]:
    columns, at_once = counted.columns, counted.places.tolist()
    total, rest, deleted = item_total(columns), item_rest(columns), alpha_if_deleted(columns)
    without = item_rest(counted.without)
    constant = is_constant(scores.credit)
    covered = _covered(book, scores, settings.min_relevant)
    linted = linted_items(texts)
    words = {
        (item.query_id, item.item_id): item.text for entry in texts.entries for item in entry.items
    }
    swaps = _swaps(scores)
    parameters = abilities.of_items() if abilities else {}
    for at, item_id in enumerate(scores.item_ids):
        key = (scores.queries[scores.query[at]], item_id)
        relevant, not_relevant, wrongly = covered.get(key, (None, None, 0))
        row = ItemStatistics(
            *key,
            text=words.get(key, ""),
            difficulty=float(scores.credit[:, at].mean()) if len(columns) else None,
            constant=_same(scores.credit[:, at]) if constant[at] else "",
            item_total=_value(total, at_once[at]),
            item_rest=_value(rest, at_once[at]),
            item_rest_without=_value(without, at_once[at]),
            alpha_if_deleted=_value(deleted, at_once[at]),
            relevant=relevant,
            not_relevant=not_relevant,
            swaps=swaps[at],
            lint=linted.get(key, ()),
            sealed=None if texts.sealed is None else key in texts.sealed,
            why=(),
            discrimination=parameters.get(at, _NO_MODEL)[0],
            location=parameters.get(at, _NO_MODEL)[1],
        )
        yield replace(row, why=tuple(_why(row, wrongly)))


_NO_MODEL = (None, None)


def _value(found: CorrelationRows, at: int) -> float | None:
    return float(found.values[at]) if found.defined[at] else None


def _same(values: Floats) -> str:
    if not len(values):
        return ""
    return {1.0: "all pass", 0.0: "all fail"}.get(float(values[0]), "all same")


def _why(row: ItemStatistics, wrongly: int) -> Iterator[str]:
    """What speaks for looking at an item, the gravest first.

    `wrongly` counts the passages that cover it and that people judged not relevant: one or two are
    found for nearly every item that few passages answer.
    """
    if row.item_rest is not None and row.item_rest < 0:
        yield AGAINST
    elif row.item_rest_without is not None and row.item_rest_without < 0:
        yield AGAINST_WITHOUT
    if row.lift is not None and row.lift <= 0 and wrongly >= FEWEST_JUDGED:
        yield NOT_RELEVANT


def _covered(
    book: Gradebook, scores: ItemScores, min_relevant: int
) -> dict[tuple[str, str], tuple[float | None, float | None, int]]:
    """(query, item) -> the share of relevant, of not relevant passages that cover it; how many."""
    found = {}
    for exam in cover_exams(book, scores.subtopics, scores.k):
        sides = [
            judged_ratings(exam, lowest=min_relevant, below=None),
            judged_ratings(exam, lowest=None, below=min_relevant),
        ]
        relevant, not_relevant = (_shares(side, scores.min_rating) for side in sides)
        wrongly = (sides[1] >= scores.min_rating).sum(axis=0).tolist()
        for at, item in enumerate(exam.items.tolist()):
            key = (exam.query.query_id, exam.query.item_ids[item])
            found[key] = (relevant[at], not_relevant[at], wrongly[at])
    return found


def _shares(ratings: NDArray[np.int16], min_rating: int) -> list[float | None]:
    graded = (ratings != MISSING).sum(axis=0).tolist()
    covers = (ratings >= min_rating).sum(axis=0).tolist()
    return [
        some / of if of >= FEWEST_JUDGED else None for some, of in zip(covers, graded, strict=True)
    ]


def linted_items(texts: BankTexts) -> dict[tuple[str, str], tuple[str, ...]]:
    """(query, item) -> the rules of the lint that it breaks, each once."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for one in lint(texts.entries, texts.queries):
        found.setdefault((one.query_id, one.item_id), {})[one.rule] = None
    return {key: tuple(rules) for key, rules in found.items()}


def _swaps(scores: ItemScores) -> list[int]:
    """Per item, the pairs of systems that stand otherwise without it."""
    whole = scores.cover()
    kept = np.ones(len(scores.item_ids), np.bool_)
    found = []
    for at in range(len(kept)):
        kept[at] = False
        found.append(order_changes(whole, scores.cover(kept)))
        kept[at] = True
    return found
