"""Is the exam a good one? Systems sit it, and its items are looked at.

Every item by what it tells of systems, the exam by how far its halves agree, both with and without
the systems that stand far below the rest; the items to look at, worst first, and the leaderboard
without them. Formulas and their sources: `stats.item_analysis`, `stats.item_response`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exampp.analysis.item_selection import (
    ItemAbilities,
    ItemChoice,
    ability_choices,
    choices,
    choices_record,
    choices_table,
    fitted,
)
from exampp.analysis.phrases import worst_systems
from exampp.items.lint import items_without_text, lint
from exampp.measures.cover import ChanceFloor, chance_floor, cover_exams, judged_ratings
from exampp.measures.item_scores import ItemScores
from exampp.measures.leaderboard import missing_prerequisite
from exampp.measures.names import heading
from exampp.records.gradebook import MISSING, Gradebook, QueryGrades
from exampp.records.items import BankTexts
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Column, Value
from exampp.sanitize import check_integer
from exampp.stats.estimate import MOST_DRAWS
from exampp.stats.item_analysis import (
    FEWEST_SYSTEMS,
    Bools,
    SplitHalves,
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
    places,
    ranked,
    split_halves,
)
from exampp.stats.rank_correlation import CorrelationRows, Floats, kendall

FEWEST_JUDGED = 5
"""With fewer passages on a side, what they cover tells nothing of an item."""


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """One item. What is undefined is None.

    `difficulty` is the mean credit of systems; `item_rest` its correlation with the rest of the
    exam, `item_rest_without` the same without the system of the jackknife whose absence changes
    alpha most. `relevant` and `not_relevant` are the shares covered of passages that people judged
    so. `swaps` are the pairs of systems that stand otherwise without it. `constant` tells that it
    is the same for all: "all pass", "all fail" or "all same". `sealed` is None where the bank was
    never split. `why` it should be looked at; nothing where there is no reason.
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
    discrimination: float | None = None
    location: float | None = None

    @property
    def worst(self) -> float:
        """The lowest of what speaks against it: lower is worse."""
        known = (self.item_rest, self.item_rest_without, self.lift)
        return min((value for value in known if value is not None), default=1.0)

    @property
    def lift(self) -> float | None:
        """By how much more of the relevant passages it covers than of the others."""
        if self.relevant is None or self.not_relevant is None:
            return None
        return self.relevant - self.not_relevant


@dataclass(frozen=True, slots=True)
class ExamRow:
    """The exam as some of the systems sit it: `drop` is the share of the worst that are left out.

    None where one system is left out, which `name` tells. `alpha_varying` is alpha without the
    items that are the same for all.
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


@dataclass(frozen=True, slots=True)
class Jackknife:
    """Alpha without each system in turn; `lowest` is at the system whose absence lowers it most."""

    without: Mapping[str, float | None]
    system: str
    lowest: float | None
    error: float | None


AGAINST = "against the rest"
AGAINST_WITHOUT = "against the rest without the outlier"
NOT_RELEVANT = "covers what is not relevant"


@dataclass(frozen=True, slots=True)
class ItemFindings:
    """What is found of the items of an exam.

    `exams` are the exam with all systems first; `floor` is the chance floor of Cover, `choices` the
    smaller exams against official leaderboards. `repeated` gives, by places, the items that repeat
    another one, which count once in all statistics of the exam and of items. `notes` are those of
    the grades, and `lacking` is what there is none of.
    """

    scores: ItemScores
    caption: str
    grader_key: str
    items: tuple[ItemStatistics, ...]
    exams: tuple[ExamRow, ...]
    jackknife: Jackknife
    floor: ChanceFloor
    choices: tuple[ItemChoice, ...] = ()
    repeated: Mapping[int, int] = field(default_factory=dict)
    abilities: ItemAbilities | None = None
    notes: tuple[str, ...] = ()
    officials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lacking: str = ""

    @property
    def statistic(self) -> str:
        """What alpha is called: KR-20 where items are 0 or 1 and count alike."""
        return "KR-20" if self.scores.kind == "covered" and self.scores.equal else "alpha"

    @property
    def distinct(self) -> int:
        """How many items there are, repeated ones once."""
        return len(self.items) - len(self.repeated)

    @property
    def undefined(self) -> str:
        """Why alpha is undefined, where it is; "" where it is not."""
        if self.exams[0].alpha is not None:
            return ""
        if self.lacking:
            return self.lacking[:1].lower() + self.lacking[1:]
        if len(self.scores.systems) < 2:
            return f"fewer than 2 systems sat the exam ({len(self.scores.systems)})"
        if self.distinct < 2:
            return "there is 1 item" if not self.repeated else "all items are the same one"
        return "all systems have the same score: the exam tells none of them apart"

    @property
    def look(self) -> tuple[ItemStatistics, ...]:
        """The items to look at, worst first."""
        wanted = (row for row in self.items if row.why)
        return tuple(sorted(wanted, key=lambda row: (row.worst, row.query_id, row.item_id)))

    @property
    def without_look(self) -> Bools:
        """Which items are left without those to look at."""
        return np.array([not row.why for row in self.items], np.bool_)


def first_of_repeated(scores: ItemScores, texts: BankTexts) -> NDArray[np.intp]:
    """Return for each item the first item of its exam with the same words and the same credit.

    Case, punctuation and whitespace make no difference. Items without a text repeat nothing.
    """
    words = {
        (item.query_id, item.item_id): plain_words(item.text)
        for entry in texts.entries
        for item in entry.items
    }
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


WARNED = 0.1
"""Alpha that falls by more without one system is that system's."""
SMALL = 4
"""Of so few systems each is an outlier."""
USUAL_SYSTEMS = 10


def name_of(found: ItemFindings) -> str:
    """What the scores are called."""
    if found.scores.kind == "graded":
        return f"graded Cover@{found.scores.k}"
    return heading(f"Cover@{found.scores.k}", found.scores.min_rating)


def advice(found: ItemFindings) -> str:
    """The one sentence that a person can act on."""
    look, whole = found.look, found.exams[0]
    if whole.alpha is None:
        return f"{found.statistic} is undefined, because {found.undefined}."
    different = "different " if found.repeated else ""
    said = f"{found.statistic} of the {found.distinct} {different}items is {whole.alpha:.3f}"
    if whole.alpha <= 0:
        return (
            f"{said}, not above 0: the items do not agree on who is better, and the order of "
            "systems is chance as far as they tell. Single items say nothing in such an exam: add "
            "items and queries first."
        )
    lowest = found.jackknife.lowest
    if lowest is not None and whole.systems > SMALL and whole.alpha - lowest > WARNED:
        said += (
            f", but {lowest:.3f} without {found.jackknife.system}: the items agree about that "
            "system, and much less about the others"
        )
    if not look:
        return f"{said}. No item speaks against itself."
    speak = "1 item speaks" if len(look) == 1 else f"{len(look)} items speak"
    return (
        f"{said}. {speak} against themselves: look at the worst first ({look[0].item_id}), and "
        "reword or retire what does not ask for the topic."
    )


def exam_notes(found: ItemFindings) -> list[str]:
    """What must be known to read the exam's table."""
    parts = (_few, _repeated, _reading, _floor, _judged, _filled)
    few, *rest = ([*part(found)] for part in parts)
    return [*few, advice(found), *(note for notes in rest for note in notes), *found.notes]


def _few(found: ItemFindings) -> Iterator[str]:
    systems = len(found.scores.systems)
    if 0 < systems < FEWEST_SYSTEMS:
        yield (
            f"{counted(systems, 'system')} sat the exam: item-rest correlations are undefined, as "
            "any two systems lie on a line."
        )
    elif 0 < systems < USUAL_SYSTEMS:
        yield (
            f"{systems} systems sat the exam: with fewer than {USUAL_SYSTEMS} the numbers of "
            "single items are mostly chance."
        )
    if len(found.scores.queries) == 1:
        yield "There is 1 query: it has no halves of queries."
    if found.items and len(found.items) == len(found.scores.queries):
        yield "Every query has 1 item: they have no halves of items."


_NAMED = 5


def _repeated(found: ItemFindings) -> Iterator[str]:
    if not found.repeated:
        return
    named = [
        f"{found.items[at].item_id} repeats {found.items[first].item_id}"
        for at, first in list(found.repeated.items())[:_NAMED]
    ]
    more = len(found.repeated) - len(named)
    yield (
        f"{counted(len(found.repeated), 'item')} with the words and the grades of another item of "
        f"the query: {', '.join(named)}{f' and {more:,} more' if more else ''}. They count once in "
        f"{found.statistic}, halves and correlations, and in Cover as often as they are there."
    )


def _reading(found: ItemFindings) -> Iterator[str]:
    whole = found.exams[0]
    if not whole.systems:
        return
    if whole.constant:
        varying = "" if whole.alpha_varying is None else f"; without them {whole.alpha_varying:.3f}"
        yield (
            f"same: {whole.constant} of {found.distinct} items tell no systems apart "
            f"(covered by all: {whole.all_pass}, by none: {whole.all_fail}). They count in "
            f"{found.statistic}{varying}."
        )
    yield (
        "< 0: items whose correlation with the rest of the exam is negative. r is the correlation "
        "of random halves over systems, SB that of the whole exam by Spearman-Brown, tau Kendall's "
        "tau-b of the halves' leaderboards: r hears the outliers, tau the rest."
    )
    if found.jackknife.lowest is not None and found.jackknife.error is not None:
        yield (
            f"{found.statistic} without any one system: {found.jackknife.lowest:.3f} or more "
            f"(lowest without {found.jackknife.system}), jackknife standard error "
            f"{found.jackknife.error:.3f}."
        )


def _floor(found: ItemFindings) -> Iterator[str]:
    floor = found.floor
    if found.scores.kind == "graded":
        return
    if not floor.values:
        yield (
            "Nobody judged a graded passage 0, so that nothing tells what chance covers of "
            f"{name_of(found)}."
        )
        return
    mean = found.scores.cover().mean() if found.scores.systems else None
    systems = "" if mean is None else f"; systems have {mean:.3f} on average"
    yield (
        f"Chance floor: {floor.drawn} have {floor.values[0]:.3f} of {name_of(found)}{systems}. "
        "It is a floor of this pool, no proof of guessing."
    )


def _judged(found: ItemFindings) -> Iterator[str]:
    if found.items and all(row.lift is None for row in found.items):
        yield (
            f"People judged fewer than {FEWEST_JUDGED} graded passages of each query relevant, or "
            "as few not relevant: judgments tell nothing of the items."
        )


def _filled(found: ItemFindings) -> Iterator[str]:
    scores = found.scores
    if scores.missing:
        yield (
            f"{scores.missing:.1%} of the cells that are read have no grade, and count as not "
            "covered here."
        )
    silent = sum(count > 0 for count in scores.unanswered)
    if silent:
        yield (
            f"{counted(silent, 'system')} did not answer some queries (up to "
            f"{max(scores.unanswered)}), whose items count as not covered."
        )


def look_notes(found: ItemFindings, limit: int) -> list[str]:
    """Why these items, how many there are, and what their columns are."""
    look = found.look
    counts = Counter(why for row in look for why in row.why)
    outlier = found.jackknife.system
    meaning = {
        AGAINST: "with a negative correlation with the rest of the exam (rest)",
        AGAINST_WITHOUT: f"with one as soon as {outlier} is left out (without)",
        NOT_RELEVANT: f"covered by {FEWEST_JUDGED} passages or more that people judged not "
        "relevant (not), at least as often as by relevant ones",
    }
    notes = [
        f"{counted(counts[why], 'item')} {said}." for why, said in meaning.items() if counts[why]
    ]
    if limit and len(look) > limit:
        notes.append(f"{len(look)} items, of which the worst {limit} are shown (--limit).")
    return notes


def without_notes(found: ItemFindings) -> list[str]:
    """What the leaderboard is without the items to look at."""
    scores, kept = found.scores, found.without_look
    gone = int((~kept).sum())
    if not gone or not kept.any() or not scores.systems:
        return ["No item is left." if gone else "No item is left out."]
    whole, less = ranked(scores.cover()), ranked(scores.cover(kept))
    agreement = kendall(whole, less)
    tau = "undefined" if agreement.value is None else f"{agreement.value:.3f}"
    notes = [
        f"Without {counted(gone, 'item')}: Kendall's tau-b of the two orders is {tau}"
        + (f"; {scores.emptied(kept)} queries have no items left." if scores.emptied(kept) else ".")
    ]
    for name, ranks in found.officials.items():
        both = [at for at, system in enumerate(scores.systems) if system in ranks]
        better = [-ranks[scores.systems[at]] for at in both]
        values = [kendall(one[both], better).value for one in (whole, less)]
        shown = ["undefined" if one is None else f"{one:.3f}" for one in values]
        notes.append(
            f"Kendall's tau-b with {name}: {shown[0]} with all items, {shown[1]} without these."
        )
    return notes


_TEXT = 48
_SHORTEST_ID = 12


def tables(found: ItemFindings, limit: int) -> Mapping[str, Table]:
    """The tables that people read."""
    shown = {"exam": exam_table(found)}
    if found.look:
        shown["items"] = look_table(found, limit)
    if found.look or found.abilities:
        shown["leaderboard"] = leaderboard_table(found)
    if found.officials:
        shown["choices"] = choices_table(found.choices, name_of(found))
    return shown


def records(found: ItemFindings) -> Mapping[str, Table]:
    """The same for programs, and every item."""
    shown = {
        "items": items_table(found),
        "exam": exam_record(found),
        "systems": systems_record(found),
    }
    if found.officials:
        shown["choices"] = choices_record(found.choices, found.caption)
    return {name: table.keyed(found.grader_key) for name, table in shown.items()}


# ---- the exam ------------------------------------------------------------------------------------


def exam_table(found: ItemFindings) -> Table:
    """A row a group of systems: how reliable the exam is for them."""
    columns: list[str | Column] = [
        "exam",
        "systems",
        found.statistic,
        Column("same", 0),
        Column("< 0", 0),
        *_HALVES,
    ]
    rows = [
        [row.name, row.systems, row.alpha, row.constant, row.negative, *_halves(row)]
        for row in found.exams
    ]
    return Table.of(columns, rows, found.caption, exam_notes(found))


_HALVES = tuple(
    Column(name, group=group) for group in ("items", "queries") for name in ("r", "SB", "tau")
)


def _halves(row: ExamRow) -> list[Value]:
    return [value for half in (row.items, row.queries) for value in (half.r, half.whole, half.tau)]


def exam_record(found: ItemFindings) -> Table:
    """A row a group of systems, at full precision."""
    names = (
        *("exam", "drop", "systems", "items", "statistic", "alpha", "alpha_varying"),
        *("all_pass", "all_fail", "constant", "negative"),
        *(
            f"{group}_{name}"
            for group in ("items", "queries")
            for name in ("r", "spearman_brown", "tau", "r_error", "tau_error")
        ),
        *("jackknife_min", "jackknife_system", "jackknife_error", "chance_floor"),
    )
    floor = found.floor.values[0] if found.floor.values else None
    jackknife = found.jackknife
    rows = [
        [
            row.name,
            row.drop,
            row.systems,
            len(found.items),
            found.statistic,
            row.alpha,
            row.alpha_varying,
            row.all_pass,
            row.all_fail,
            row.constant,
            row.negative,
            *(
                value
                for half in (row.items, row.queries)
                for value in (half.r, half.whole, half.tau, half.r_error, half.tau_error)
            ),
            *((jackknife.lowest, jackknife.system, jackknife.error) if row.drop == 0 else _NONE),
            floor if row.drop == 0 else None,
        ]
        for row in found.exams
    ]
    return Table.of(names, rows, found.caption, exam_notes(found))


_NONE: tuple[None, None, None] = (None, None, None)


# ---- items ---------------------------------------------------------------------------------------


def look_table(found: ItemFindings, limit: int) -> Table:
    """The items to look at, worst first."""
    look = found.look[:limit]
    short = _short_ids([row.item_id for row in found.items])
    parts: list[tuple[str | Column, list[Value]]] = [
        ("item", [short[row.item_id] for row in look]),
        (Column("covered", 2), [row.difficulty for row in look]),
        (Column("rest", 2), [row.item_rest for row in look]),
        (Column("without", 2), [row.item_rest_without for row in look]),
        (Column("relevant", 2), [row.relevant for row in look]),
        (Column("not", 2), [row.not_relevant for row in look]),
        ("swaps", [row.swaps for row in look]),
        ("sealed", [row.sealed for row in look]),
        ("lint", [", ".join(row.lint) or None for row in look]),
        ("text", [_cut(row.text) or None for row in look]),
    ]
    shown = [(name, cells) for name, cells in parts if any(cell is not None for cell in cells)]
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    columns = [name for name, _ in shown]
    return Table.of(columns, rows, "Items to look at, worst first", look_notes(found, limit))


def items_table(found: ItemFindings) -> Table:
    """A row an item, in the order of queries and ids."""
    names = (
        *("query_id", "item_id", "difficulty", "constant", "item_total", "item_rest"),
        *("item_rest_without", "alpha_if_deleted", "relevant", "not_relevant", "swaps"),
        *("discrimination", "location", "lint", "sealed", "why", "text"),
    )
    rows = [_item(row, names) for row in found.items]
    return Table.of(names, rows, found.caption, [*exam_notes(found), *look_notes(found, 0)])


def _item(row: ItemStatistics, names: Sequence[str]) -> list[Value]:
    values = (getattr(row, name) for name in names)
    return [", ".join(value) if isinstance(value, tuple) else value for value in values]


def _short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The starts of ids that tell them apart: hashes need not be shown whole."""
    known = dict.fromkeys(ids)
    at = [one.rfind("/") + 1 for one in known]
    for length in range(_SHORTEST_ID - 6, 200):
        found = {one: one[: start + length] for one, start in zip(known, at, strict=True)}
        if len(set(found.values())) == len(known):
            return found
    return {one: one for one in known}


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}\N{HORIZONTAL ELLIPSIS}"


# ---- systems -------------------------------------------------------------------------------------


def leaderboard_table(found: ItemFindings) -> Table:
    """The systems, best first, with and without the items to look at, and their abilities."""
    names = ["system", name_of(found), "rank", "without these", "rank without"]
    ability = found.abilities
    names += ["ability", "\N{PLUS-MINUS SIGN}", "rank by it"] if ability else []
    rows = [[row[name] for name in _SYSTEM[: 8 if ability else 5]] for row in _systems(found)]
    return Table.of(
        names, rows, "The leaderboard without the items to look at", without_notes(found)
    )


def systems_record(found: ItemFindings) -> Table:
    """A row a system, best first, at full precision."""
    rows = [[row[name] for name in _SYSTEM] for row in _systems(found)]
    return Table.of(_SYSTEM, rows, found.caption, without_notes(found))


_SYSTEM = (
    *("system", "score", "rank", "score_without", "rank_without"),
    *("ability", "ability_error", "ability_rank", "ability_mean", "ability_deviation"),
    "alpha_without",
)


def _systems(found: ItemFindings) -> list[dict[str, Value]]:
    scores = found.scores
    whole = scores.cover()
    kept = found.without_look
    without = scores.cover(kept) if kept.any() else None
    values: dict[str, Sequence[Value]] = {
        "system": scores.systems,
        "score": whole.tolist(),
        "rank": places(whole),
        "score_without": _all(len(whole)) if without is None else without.tolist(),
        "rank_without": _all(len(whole)) if without is None else places(without),
        "alpha_without": list(found.jackknife.without.values()),
    }
    for name in _SYSTEM[5:10]:
        values[name] = _all(len(whole))
    if found.abilities:
        of = found.abilities.all.abilities
        values |= {
            "ability": of.mode.tolist(),
            "ability_error": of.error.tolist(),
            "ability_rank": places(of.mode),
            "ability_mean": of.mean.tolist(),
            "ability_deviation": of.deviation.tolist(),
        }
    order = np.lexsort((np.arange(len(whole)), -ranked(whole))).tolist()
    return [{name: values[name][at] for name in _SYSTEM} for at in order]


def _all(count: int) -> list[Value]:
    return [None] * count


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
        check_integer("splits", self.splits, 2, MOST_DRAWS)
        check_integer("the seed", self.seed, 0)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ItemAnalysis(Result, ItemFindings):
    """What `analyze items` found, and how it was asked."""

    settings: ItemSettings

    def tables(self, limit: int = 20) -> Mapping[str, Table]:
        """The exam, the `limit` worst items, the leaderboard without any, what a choice gains."""
        return tables(self, limit)

    def records(self) -> Mapping[str, Table]:
        """A row an item, and one an exam, a system and a choice of items."""
        return records(self)


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
    missing = missing_prerequisite(book)
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


Key = tuple[str, str]
"""(query id, item id)."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of the list; None is undefined, as everything is before it is graded.

    `relevant`, `not_relevant` are the shares covered of passages that people judged so, `gap` their
    difference; `discrimination` is its correlation with the rest of the exam; `cells` counts its
    graded passages that a system returned among its first k; `swaps` the pairs of systems that
    stand otherwise without it; `overturned` the cells where the grader saw an answer and people
    none. `state` says what is the matter with it, and `worst` the lowest of what speaks against it,
    where that is a reason to look at it.
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
    """The items of all queries, in the order of the bank; `is_graded` where any cell is."""

    items: tuple[ListedItem, ...]
    is_graded: bool

    def tables(self) -> Mapping[str, Table]:
        """A row an item."""
        names = ["query_id", "query", "item_id", "item", "relevant", "not_relevant", "gap"]
        names += ["discrimination", "cells", "swaps", "lint", "overturned", "state"]
        rows = [
            [
                *(one.query_id, one.query_text, one.item_id, one.text),
                *(one.relevant, one.not_relevant, one.gap, one.discrimination, one.cells),
                *(one.swaps, ", ".join(one.lint), one.overturned, ", ".join(one.state)),
            ]
            for one in self.items
        ]
        return {"items": Table.of(names, rows, "Items of all queries")}


def item_list(
    texts: BankTexts, book: Gradebook | None = None, found: ItemAnalysis | None = None
) -> ItemList:
    """List the items of a bank, with what its grades say where there are some."""
    linted = linted_items(texts)
    known = {(row.query_id, row.item_id): row for row in found.items} if found else {}
    cells: dict[Key, tuple[int, int]] = {}
    if book is not None and found is not None:
        for query in book.queries:
            cells |= _cells(query, found.scores.min_rating, found.scores.k)
    items = (
        _listed(
            (item.query_id, item.item_id),
            texts.queries.get(item.query_id, ""),
            item.text,
            linted.get((item.query_id, item.item_id), ()),
            known.get((item.query_id, item.item_id)),
            cells.get((item.query_id, item.item_id)),
            texts.sealed or frozenset(),
        )
        for entry in texts.entries
        for item in entry.items
    )
    return ItemList(tuple(items), book is not None and book.is_graded)


def _listed(
    key: Key,
    query_text: str,
    text: str,
    rules: tuple[str, ...],
    row: ItemStatistics | None,
    cells: tuple[int, int] | None,
    sealed: frozenset[Key],
) -> ListedItem:
    if row is None or cells is None:
        state = ("not graded", *(("sealed",) if key in sealed else ()))
        return ListedItem(key[0], query_text, key[1], text, lint=rules, state=state)
    return ListedItem(
        query_id=key[0],
        query_text=query_text,
        item_id=key[1],
        text=text,
        relevant=row.relevant,
        not_relevant=row.not_relevant,
        gap=row.lift,
        discrimination=row.item_rest,
        cells=cells[0],
        swaps=row.swaps,
        lint=rules,
        overturned=cells[1],
        state=tuple(_states(row, key in sealed)),
        worst=row.worst if row.why else None,
    )


def _states(row: ItemStatistics, sealed: bool) -> Iterator[str]:
    yield from row.why
    if row.constant:
        yield row.constant
    if sealed:
        yield "sealed"


def _cells(query: QueryGrades, min_rating: int, k: int) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Per item its graded cells among the first k passages of systems, and how many overturned."""
    read = np.zeros(len(query.passage_ids), np.bool_)
    for ranking in query.rankings:
        read[ranking.passages[:k]] = True
    graded = (query.ratings[read] != MISSING).sum(axis=0).tolist()
    overturned = dict.fromkeys(query.item_ids, 0)
    rows = {passage_id: at for at, passage_id in enumerate(query.passage_ids)}
    columns = {item_id: at for at, item_id in enumerate(query.item_ids)}
    for cell in query.decided:
        stands = query.ratings[rows[cell.passage_id], columns[cell.item_id]]
        overturned[cell.item_id] += bool(stands < min_rating <= cell.automatic)
    for item_id, count in zip(query.item_ids, graded, strict=True):
        yield (query.query_id, item_id), (count, overturned[item_id])
