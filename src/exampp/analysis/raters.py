"""Raters whose labels are compared: graders, judgments, qrels and people.

A rater gives every unit (a passage of a query) a label or none. Two raters are compared on the
units that both have labelled, counted per query in one table [queries, labels, labels]; everything
else, the papers' layouts included, is sums of it, so that the grades are read once.

The layouts are those of S4: GRADED (each label), MERGE (5+4, 3-1, 0), LENIENT (1-5 against 0) and
STRICT (4-5 against 0-3). Judgments are cut at the lowest one that counts as relevant, in MERGE into
2 and more, 1, and 0. The label of a passage is its best rating or its m-th best (the papers' "min
answers").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from exampp.errors import InputError
from exampp.measures.qrels import Labelling, Labels, graded_passages, label_passages
from exampp.records import Judgment
from exampp.records.decisions import standing_decisions
from exampp.records.gradebook import (
    MISSING,
    Gradebook,
    QueryGrades,
    Ratings,
    check_all_items_graded,
)
from exampp.records.graders import GraderIdentity, with_distinct_names
from exampp.records.inputs import relevance_threshold
from exampp.sanitize import check_integer
from exampp.stats.agreement import (
    STATISTICS,
    Metric,
    clustered,
    coincidence_alpha,
    coincidences,
    confusions,
    kappa,
    statistic_of,
)
from exampp.stats.estimate import Estimate, undefined
from exampp.store.decisions import JudgedCell

Layout = Literal["GRADED", "MERGE", "LENIENT", "STRICT"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

SAME_IN_TWO = {"kappa_linear": "kappa", "kappa_quadratic": "kappa", "alpha_ordinal": "alpha"}
"""With two categories there is one distance, and these are the same number."""

JUDGMENTS = "judgments"
"""The name of the labels of judges."""

KAPPAS = ("kappa", "kappa_linear", "kappa_quadratic")


@dataclass(frozen=True, slots=True)
class Scale:
    """The labels a rater can give, ascending, and the cuts of the layouts.

    A label belongs to the LENIENT, STRICT or best MERGE group from the cut on; MERGE has two cuts.
    `named` is the word for the labels in sentences.
    """

    labels: tuple[int, ...]
    lenient: int
    strict: int
    merge: tuple[int, int]
    named: str = "labels"

    def cuts(self, layout: Layout) -> tuple[int, ...]:
        """Return the labels at which a new group begins."""
        return {
            "GRADED": self.labels[1:],
            "MERGE": self.merge,
            "LENIENT": (self.lenient,),
            "STRICT": (self.strict,),
        }[layout]

    @property
    def span(self) -> str:
        """The range of the labels, as a predicate."""
        if len(self.labels) == 1:
            return f"are all {self.labels[0]}"
        return f"go from {self.labels[0]} to {self.labels[-1]}"

    def groups(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        """Return the labels of each group, ascending; a group may be empty."""
        place = np.digitize(self.labels, self.cuts(layout))
        return tuple(
            tuple(label for label, at in zip(self.labels, place, strict=True) if at == group)
            for group in range(len(self.cuts(layout)) + 1)
        )


def agreement_scale(lowest: int, highest: int, min_rating: int, named: str = "labels") -> Scale:
    """Return the scale of ratings: LENIENT is above the lowest, STRICT from `min_rating` on."""
    strict = max(lowest + 1, min(min_rating, highest))
    labels = tuple(range(lowest, highest + 1))
    return Scale(labels, lowest + 1, strict, (lowest + 1, strict), named)


def judgment_scale(judged: NDArray[np.generic], min_relevant: int) -> Scale:
    """Return the scale of the judgments, cut at the lowest relevant one; MERGE at 1 and 2."""
    labels = tuple(np.unique(judged).tolist())
    # where no judgment is above 1, MERGE has no three groups
    merge = (1, min(2, max((*labels, 1))))
    return Scale(labels, min_relevant, min_relevant, merge, JUDGMENTS)


@dataclass(frozen=True, slots=True)
class Rater:
    """A rater with the labels of all units (MISSING where there is none) and their scale.

    `key` is that of a grader; people have none.
    """

    name: str
    labels: Labels
    scale: Scale
    key: str | None = None

    @property
    def all_labels(self) -> str:
        """The rater's labels in words: labels of anna, judgments."""
        named = self.scale.named
        return named if self.name.endswith(named) else f"{named} of {self.name}"


@dataclass(frozen=True)
class RaterComparison:
    """Two raters: `tables` is queries x labels of `rater` x labels of `other`, ascending.

    `at_least` selects which of a passage's ratings is the label (None: there is only one), `unit`
    names what was rated.
    """

    rater: Rater
    other: Rater
    at_least: int | None
    tables: NDArray[np.int64]
    unit: str = "passage"

    def counts(self, layout: Layout) -> NDArray[np.int64]:
        """Return the table of a layout, [labels, labels of the other]."""
        total: NDArray[np.int64] = self._grouped(layout).sum(axis=0)
        return total

    @cached_property
    def units(self) -> int:
        """The number of units that both labelled."""
        return int(self.tables.sum())

    @cached_property
    def queries(self) -> int:
        """The number of queries with such units."""
        return int((self.tables.sum(axis=(1, 2)) > 0).sum())

    def estimates(self, layout: Layout) -> Mapping[str, Estimate]:
        """Return `stats.agreement.STATISTICS` by name, or the reason why there are none."""
        tables = self._grouped(layout)
        reason = self._why_none(layout)
        if reason:
            return dict.fromkeys(STATISTICS, undefined(reason))
        constant = self._constant(layout)
        found: dict[str, Estimate] = {}
        for name, statistic in STATISTICS.items():
            if constant and name in KAPPAS:
                found[name] = _of_constant(statistic_of(statistic, tables.sum(axis=0)), constant)
            elif tables.shape[1] == 2 and name in SAME_IN_TWO:
                found[name] = found[SAME_IN_TWO[name]]
            else:
                found[name] = clustered(tables, statistic)
        return found

    def row_kappas(self, layout: Layout) -> dict[tuple[int, int], Estimate]:
        """Return Cohen's kappa of each row of GRADED and MERGE, as in the papers' judgment tables.

        It is that of a 2 x 2 table: the labels of the row or not, against the judgments paired with
        them or not. Keys are the numbers of the row and of that column, groups in ascending order.
        LENIENT and STRICT have one kappa alone, and graders among themselves none.
        """
        if self.other.scale.named != JUDGMENTS or not self.units:
            return {}
        if layout == "MERGE" and self._why_none(layout):
            return {}
        counts = self.counts(layout)
        return {
            pair: statistic_of(kappa, _one_against_rest(counts, *pair))
            for pair in self._paired(layout)
        }

    def _paired(self, layout: Layout) -> Iterator[tuple[int, int]]:
        """Yield the group of judgments that corresponds to each group of labels."""
        rows, columns = self.rater.scale.groups(layout), self.other.scale.groups(layout)
        if layout == "MERGE" or (layout == "GRADED" and rows == columns):
            yield from zip(range(len(rows)), range(len(columns)), strict=False)
        elif layout == "GRADED":
            # the papers' program: STRICT labels with more than the least relevant judgment, other
            # labels with that one, and the lowest with the lowest
            labels = self.other.scale.labels
            least = min(bisect_left(labels, self.other.scale.strict), len(labels) - 1)
            strict = min(least + 1, len(labels) - 1)
            for row, (label,) in enumerate(rows):
                paired = strict if label >= self.rater.scale.strict else least
                yield row, 0 if row == 0 else paired

    def _grouped(self, layout: Layout) -> NDArray[np.int64]:
        rows, columns = (
            _membership(side.scale.labels, side.scale.groups(layout))
            for side in (self.rater, self.other)
        )
        grouped: NDArray[np.int64] = rows @ self.tables @ columns.T
        return grouped

    def _why_none(self, layout: Layout) -> str:
        """Return the reason why no statistic of a layout is defined; empty if they may be."""
        if not self.units:
            return self._nothing_in_common()
        first, second = self.rater.scale, self.other.scale
        alike = first.named == second.named
        sides = [
            (side.all_labels if alike else side.scale.named, side.scale)
            for side in (self.rater, self.other)
        ]
        if layout == "GRADED" and first.labels != second.labels:
            return ", ".join(f"{named} {scale.span}" for named, scale in sides)
        for named, scale in sides:
            if layout == "MERGE" and scale.merge[0] >= scale.merge[1]:
                return f"{named} have no group between the lowest and the highest"
        return ""

    def _nothing_in_common(self) -> str:
        for side in (self.rater, self.other):
            if not (side.labels != MISSING).any():
                return f"there are no {side.all_labels}"
        return f"{self.rater.name} and {self.other.name} have no {self.unit}s in common"

    def _constant(self, layout: Layout) -> str:
        """Return in words which side is constant, which makes a kappa 0; empty if none is."""
        counts = self.counts(layout)
        for axis, side in ((1, self.rater), (0, self.other)):
            (used,) = np.nonzero(counts.sum(axis=axis))
            if len(used) == 1:
                group = group_name(side.scale.groups(layout)[int(used[0])])
                return f"all {side.all_labels} are {group}"
        return ""


def _of_constant(estimate: Estimate, constant: str) -> Estimate:
    """Return a kappa where one side is constant: 0, or undefined if both are."""
    if estimate.value is None:
        return undefined(constant)
    return Estimate(estimate.value, no_interval=constant)


def _one_against_rest(counts: NDArray[np.int64], row: int, column: int) -> NDArray[np.int64]:
    both = counts[row, column]
    of_row, of_column = counts[row].sum(), counts[:, column].sum()
    rest = counts.sum() - of_row - of_column + both
    return np.array([[both, of_row - both], [of_column - both, rest]], np.int64)


def group_name(labels: Sequence[int]) -> str:
    """Return a group as the papers write it: 4+5."""
    return "+".join(map(str, labels)) or "none"


def compare_raters(
    rater: Rater,
    other: Rater,
    query: NDArray[np.intp],
    queries: int,
    at_least: int | None = None,
    unit: str = "passage",
) -> RaterComparison:
    """Compare two raters; `query` gives the number of the query of each unit, from 0."""
    rater, other = _on_one_scale(rater, other), _on_one_scale(other, rater)
    both = (rater.labels != MISSING) & (other.labels != MISSING)
    tables = confusions(
        query[both],
        queries,
        rater.labels[both],
        other.labels[both],
        rater.scale.labels,
        other.scale.labels,
    )
    return RaterComparison(rater, other, at_least, tables, unit)


def joint_alpha(
    raters: Sequence[Rater], query: NDArray[np.intp], queries: int, layout: Layout
) -> tuple[int, int, Mapping[str, Estimate]]:
    """Return Krippendorff's alpha of all raters together: (units, queries, estimates).

    Units are those with two or more labels, queries those with such units.

    In GRADED all of them must rate on one scale.
    """
    scales = {rater.scale.labels for rater in raters}
    groups = len(raters[0].scale.cuts(layout)) + 1
    reason = ""
    if layout == "GRADED" and len(scales) > 1:
        reason = "the graders rate on different scales"
    elif layout == "MERGE" and any(r.scale.merge[0] >= r.scale.merge[1] for r in raters):
        reason = "a grader has no group between the lowest and the highest"
    placed = np.array([_place(rater, layout) for rater in raters])
    shared = (placed != MISSING).sum(axis=0) > 1
    sizes = int(shared.sum()), len(np.unique(query[shared]))
    if not reason and not shared.any():
        reason = "no two of them have labelled a passage in common"
    names = ("alpha", "alpha_ordinal")
    if reason:
        return *sizes, dict.fromkeys(names, undefined(reason))
    tables = [coincidences(placed[:, query == q], range(groups)) for q in range(queries)]
    metrics: tuple[Metric, ...] = ("nominal", "ordinal")
    found = [clustered(tables, coincidence_alpha(metric)) for metric in metrics]
    return *sizes, dict(zip(names, found, strict=True))


def check_layouts(layouts: Sequence[str]) -> tuple[Layout, ...]:
    """Return the layouts of these names, ignoring case.

    Raises:
        InputError: The layout is unknown.
    """
    found: list[Layout] = []
    for name in layouts:
        known = [layout for layout in LAYOUTS if layout == name.upper()]
        if not known:
            raise InputError(f"unknown layout {name!r}", hint=f"Choose from {', '.join(LAYOUTS)}")
        found += known
    return tuple(dict.fromkeys(found))


def _place(rater: Rater, layout: Layout) -> Labels:
    placed: Labels = np.digitize(rater.labels, rater.scale.cuts(layout)).astype(np.int32)
    placed[rater.labels == MISSING] = MISSING
    return placed


def _membership(labels: Sequence[int], groups: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array([[label in group for label in labels] for group in groups], np.int64)


def _on_one_scale(rater: Rater, other: Rater) -> Rater:
    """Return the rater on the other's scale, if that only adds labels that did not occur."""
    mine, theirs = rater.scale.labels, other.scale.labels
    if mine and theirs and mine[-1] == theirs[-1] and set(mine) < set(theirs):
        return replace(rater, scale=replace(rater.scale, labels=theirs))
    return rater


DEFAULT_AT_LEAST = (1, 2, 5)
JUDGE_NAME = "the judgments"
UnitName = tuple[str, str]
"""The query of a passage, `query/subtopic` where it was judged for a subtopic, and its id."""


@dataclass(frozen=True, slots=True)
class RatedUnits:
    """Labels of graders and judgments on the same units.

    `labels` is per m (of the m-th best rating) graders x units, `judgments` one per unit, MISSING
    where there is none; `names` are the units, `query` numbers the query of each, below `queries`.
    `books` are those of the graders.
    """

    books: tuple[Gradebook, ...]
    labels: Mapping[int, Labels]
    judgments: Labels
    names: tuple[UnitName, ...]
    query: NDArray[np.intp]
    queries: int

    def raters(self, at_least: int, min_rating: int | None = None) -> tuple[Rater, ...]:
        """Return the graders as raters, by the m-th best rating."""
        found = []
        graders = with_distinct_names(book.grader for book in self.books)
        for grader, labels in zip(graders, self.labels[at_least], strict=True):
            strict = grader.default_min_rating if min_rating is None else min_rating
            scale = agreement_scale(grader.lowest, grader.highest, strict)
            found.append(Rater(grader.name, labels, scale, grader.key))
        return tuple(found)

    def judge(self, min_relevant: int | None = None) -> Rater:
        """Return the judgments as a rater; by default relevant from 2 on, or their highest."""
        judged = self.judgments[self.judgments != MISSING]
        relevant = relevance_threshold(min_relevant, int(judged.max()) if len(judged) else None)
        return Rater(JUDGE_NAME, self.judgments, judgment_scale(judged, relevant))

    def ways(self, *books: Gradebook) -> Iterator[tuple[int, int | None]]:
        """(m, m to be shown): graders of whole queries give one label, and no m is shown."""
        if all(book.grader.kind == "query" for book in books):
            yield next(iter(self.labels)), None
        else:
            yield from ((m, m) for m in self.labels)

    def compare(
        self, judge: Rater | None = None, min_rating: int | None = None
    ) -> Iterator[RaterComparison]:
        """Yield every grader against a judge, or every two graders, by each m-th best rating."""
        numbers = range(len(self.books))
        for one, other in zip(numbers, numbers, strict=True) if judge else combinations(numbers, 2):
            for m, shown in self.ways(self.books[one], self.books[other]):
                raters = self.raters(m, min_rating)
                yield compare_raters(
                    raters[one], judge or raters[other], self.query, self.queries, shown
                )


def rated_units(
    books: Sequence[Gradebook], at_least: Sequence[int], *, judged: bool = False
) -> RatedUnits:
    """Return the labels of all graders on all units.

    A unit is a passage of a query. With `judged` it is a judged unit: a passage of a query or of
    one of its subtopics, whose label then comes from the items of that subtopic, if it has some.

    Raises:
        InputError: A number in `at_least` is below 1, or passages are graded for some items only.
    """
    wanted = tuple(dict.fromkeys(at_least))
    for book in books:
        check_all_items_graded(book, f"labels by {book.grader.name}")
    units: dict[UnitName, int] = {}
    numbers: dict[str, int] = {}
    parts = []
    for grader, book in enumerate(books):
        for query in book.queries:
            judged_parts = np.flatnonzero((query.judgments != MISSING).any(axis=1))
            for subtopic in judged_parts.tolist() if judged else [0]:
                number = numbers.setdefault(query.query_id, len(numbers))
                name = "/".join([query.query_id, *query.subtopic_ids[subtopic - 1 : subtopic]])
                rows = [units.setdefault((name, one), len(units)) for one in query.passage_ids]
                labels = _labels(book, query.ratings[:, _items(query, subtopic)], wanted)
                parts.append(
                    (grader, np.array(rows, np.intp), number, labels, query.judgments[subtopic])
                )
    together = np.full((len(wanted), len(books), len(units)), MISSING, np.int32)
    judgments = np.full(len(units), MISSING, np.int32)
    query_numbers = np.zeros(len(units), np.intp)
    for grader, at, number, labels, judgment in parts:
        together[:, grader, at] = labels
        known = judgment != MISSING
        judgments[at[known]] = judgment[known]
        query_numbers[at] = number
    return RatedUnits(
        books=tuple(books),
        labels=dict(zip(wanted, together, strict=True)),
        judgments=judgments,
        names=tuple(units),
        query=query_numbers,
        queries=len(numbers),
    )


def _labels(book: Gradebook, ratings: Ratings, at_least: Sequence[int]) -> Labels:
    """Return the labels of passages, [m, passages]; MISSING where there is no grade."""
    graded = graded_passages(ratings)
    labels = np.full((len(at_least), len(ratings)), MISSING, np.int32)
    for row, m in enumerate(at_least):
        labelling = Labelling("best", 1 if book.grader.kind == "query" else m)
        labels[row, graded] = label_passages(ratings, labelling, lowest=book.grader.lowest)[graded]
    return labels


def _items(query: QueryGrades, subtopic: int) -> NDArray[np.intp]:
    """Return the items of a subtopic; all of them for the whole query or an empty subtopic.

    Only items with a positive weight are included, as in EXAM-Qrels.
    """
    wanted = query.weights > 0
    own = np.flatnonzero(wanted & (query.item_subtopics == subtopic) & (subtopic > 0))
    return own if len(own) else np.flatnonzero(wanted)


def check_min_rating(books: Sequence[Gradebook], min_rating: int | None) -> None:
    """Raise InputError if no grader has such a rating above its lowest."""
    graders = [book.grader for book in books]
    if min_rating is None:
        return
    least = check_integer("min_rating", min_rating)
    if any(grader.lowest < least <= grader.highest for grader in graders):
        return
    raise InputError(
        f"invalid minimum rating {min_rating} for these graders",
        hint=f"Choose from {min(g.lowest for g in graders) + 1} to "
        f"{max(g.highest for g in graders)}",
    )


def check_min_relevant(judgments: Labels, min_relevant: Sequence[int]) -> None:
    """Raise InputError for a cut with all judgments on one side, if another cut would work."""
    judged = judgments[judgments != MISSING]
    if not len(judged):
        return
    lowest, highest = int(judged.min()), int(judged.max())
    least = min(lowest + 1, highest)
    for cut in min_relevant:
        if not least <= check_integer("min_relevant", cut) <= highest:
            raise InputError(
                f"invalid minimum relevant judgment {cut} for judgments from {lowest} to {highest}",
                hint=f"Choose from {least} to {highest}",
            )


def compare_qrels(
    books: Sequence[Gradebook],
    qrels: Mapping[str, Iterable[Judgment]],
    at_least: Sequence[int],
    min_rating: int | None = None,
    min_relevant: int | None = None,
) -> Iterator[RaterComparison]:
    """Compare each qrels with the other qrels, with the judgments and with every grader.

    Qrels and judgments share one scale: the labels that occur in any of them. They are cut at
    `min_relevant`, by default at 2, or at the highest label.
    """
    sides: dict[str, Mapping[UnitName, int]] = {
        name: {(_query_of(one), one.passage_id): one.relevance for one in judgments}
        for name, judgments in qrels.items()
    }
    files = tuple(sides)
    found = rated_units(books, (1,), judged=True)
    known = zip(found.names, found.judgments.tolist(), strict=True)
    sides[JUDGE_NAME] = {unit: label for unit, label in known if label != MISSING}
    labels = np.unique([label for side in sides.values() for label in side.values()]).astype(
        np.int32
    )
    check_min_relevant(labels, () if min_relevant is None else (min_relevant,))
    highest = int(labels.max()) if len(labels) else None
    scale = judgment_scale(labels, relevance_threshold(min_relevant, highest))

    def rater(name: str, units: Iterable[UnitName]) -> Rater:
        labels = np.array([sides[name].get(unit, MISSING) for unit in units], np.int32)
        return Rater(name, labels, scale)

    for one, other in combinations([name for name in sides if sides[name]], 2):
        units = list(dict.fromkeys([*sides[one], *sides[other]]))
        queries, query = np.unique([query_id for query_id, _ in units], return_inverse=True)
        yield compare_raters(
            rater(one, units), rater(other, units), query.astype(np.intp), len(queries)
        )
    graded = rated_units(books, at_least)
    for name in files:
        yield from graded.compare(rater(name, graded.names), min_rating)


def _query_of(judgment: Judgment) -> str:
    """Return the query of a judgment, or `query/subtopic`."""
    return "/".join(filter(None, (judgment.query_id, judgment.subtopic_id)))


def compare_people(
    cells: Sequence[JudgedCell], grader: GraderIdentity, min_rating: int | None = None
) -> tuple[list[RaterComparison], list[RaterComparison]]:
    """Compare people with a grader and, second, with each other; a unit is a cell.

    A person's newest decision counts, unless it is withdrawn. Blind decisions are also compared
    alone with the grader: decisions made with the grade visible are biased towards it.
    """
    strict = grader.default_min_rating
    if min_rating is not None:  # it may be off this grader's scale, and on that of another
        strict = check_integer("min_rating", min_rating)
    scale = agreement_scale(grader.lowest, grader.highest, strict, "ratings")
    numbers: dict[str, int] = {}
    query = np.array([numbers.setdefault(c.query_id, len(numbers)) for c in cells], np.intp)

    def person(author: str, name: str, *, blind: bool = False) -> Rater:
        decided = [
            # a decision that withdraws, withdraws blind ones too
            [d for d in cell.decisions if d.blind or d.rating is None or not blind]
            for cell in cells
        ]
        newest = (standing_decisions(decisions).get(author) for decisions in decided)
        ratings = [MISSING if d is None or d.rating is None else d.rating for d in newest]
        return Rater(name, np.array(ratings, np.int32), scale)

    def pair(one: Rater, other: Rater) -> RaterComparison:
        return compare_raters(one, other, query, len(numbers), unit="cell")

    automatic = [MISSING if c.automatic is None else c.automatic for c in cells]
    machine = Rater(grader.name, np.array(automatic, np.int32), scale, grader.key)
    authors = sorted({d.author for c in cells for d in c.decisions if not d.adjudicates})
    both = [(author, name) for author in authors for name in (author, f"{author}, blind")]
    people = [person(author, name, blind=name != author) for author, name in both]
    named = [person(author, f"{author} ({grader.kind}s)") for author in authors]
    return (
        [pair(one, machine) for one in people if (one.labels != MISSING).any()],
        [pair(*two) for two in combinations(named, 2)],
    )
