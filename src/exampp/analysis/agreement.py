"""Agreement of graders, judgments, qrels and people: all statistics and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from exampp.analysis.grader_bias import GraderBias, grader_bias
from exampp.analysis.positions import PositionEffect
from exampp.analysis.raters import (
    DEFAULT_AT_LEAST,
    JUDGMENTS,
    LAYOUTS,
    SAME_IN_TWO,
    Layout,
    RatedUnits,
    RaterComparison,
    check_layouts,
    check_min_rating,
    check_min_relevant,
    compare_qrels,
    group_name,
    joint_alpha,
    rated_units,
)
from exampp.errors import InputError
from exampp.measures.board import describe_oversight
from exampp.measures.leaderboard import grade_notes
from exampp.records import Judgment
from exampp.records.gradebook import GRADE_JUDGED, MISSING, Gradebook
from exampp.records.grouping import grouped
from exampp.records.wording import counted
from exampp.results.notes import Note, listed, merge_notes, note, with_code
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Interval, interval_text
from exampp.sanitize import check_choice
from exampp.stats.estimate import Estimate

if TYPE_CHECKING:
    from exampp.results.plots.figure import Figure

Against = Literal["judgments", "graders", "people"]
NAMES = {
    "kappa": "kappa",
    "kappa_linear": "linear kappa",
    "kappa_quadratic": "quadratic kappa",
    "alpha": "alpha",
    "alpha_ordinal": "ordinal alpha",
    "ac1": "AC1",
}
KEY = ("rater", "against", "rater_key", "against_key", "at_least", "min_relevant", "layout")


@dataclass(frozen=True, slots=True)
class AgreementBlock:
    """The agreement of two raters, or of all graders, in one layout: statistics and counts.

    `min_relevant` is the lowest judgment of a relevant passage; None between graders. `counts` are
    rows x columns, both named in ascending order; empty for all graders together. `row_kappas` go
    by row and column (see `RaterComparison.row_kappas`).
    """

    rater: str
    layout: Layout
    at_least: int | None
    units: int
    queries: int
    estimates: Mapping[str, Estimate]
    against: str | None = None
    rater_key: str | None = None
    against_key: str | None = None
    min_relevant: int | None = None
    unit: str = "passage"
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    row_kappas: Mapping[tuple[int, int], Estimate] | None = None

    @classmethod
    def of(cls, compared: RaterComparison, layout: Layout) -> AgreementBlock:
        """Return the block of a comparison in a layout."""
        rater, other = compared.rater, compared.other
        rows, columns = (
            tuple(map(group_name, side.scale.groups(layout))) for side in (rater, other)
        )
        return cls(
            rater=rater.name,
            layout=layout,
            at_least=compared.at_least,
            units=compared.units,
            queries=compared.queries,
            estimates=compared.estimates(layout),
            against=other.name,
            rater_key=rater.key,
            against_key=other.key,
            min_relevant=other.scale.strict if other.scale.named == JUDGMENTS else None,
            unit=compared.unit,
            rows=rows,
            columns=columns,
            counts=tuple(map(tuple, compared.counts(layout).tolist())),
            row_kappas=compared.row_kappas(layout),
        )

    @property
    def key(self) -> list[Cell]:
        """The columns that identify the block, as named in `KEY`."""
        return [getattr(self, name) for name in KEY]

    @property
    def title(self) -> str:
        """The two raters, and which judgments are relevant."""
        names = f"{self.rater} against {self.against}"
        return names if self.min_relevant is None else f"{names} (relevant: {self.min_relevant}+)"

    @property
    def shown(self) -> dict[str, Estimate]:
        """The statistics, without weighted ones where there are only two labels."""
        skipped = SAME_IN_TWO if len(self.rows) == 2 else ()
        return {name: one for name, one in self.estimates.items() if name not in skipped}

    def confusion(self) -> Table:
        """Return the confusion table as printed in the papers, with the best labels first."""
        body: list[list[Cell]] = [
            [name, *reversed(counts), sum(counts)]
            for name, counts in zip(reversed(self.rows), reversed(self.counts), strict=True)
        ]
        heading: list[str | Column] = [self.layout, *reversed(self.columns), "total"]
        if self.row_kappas:
            heading += [Column("kappa of the row", 2), "against"]
            paired = {row: (one.value, column) for (row, column), one in self.row_kappas.items()}
            for row, cells in zip(reversed(range(len(body))), body, strict=True):
                value, column = paired.get(row, ("", None))
                cells += [value, "" if column is None else self.columns[column]]
        kappa = self.estimates["kappa"]
        if kappa.value is not None:
            heading += [Column("Cohen's kappa", 2), Column("95% interval", 2, interval=True)]
            bounds = None if kappa.low is None else Interval(None, kappa.low, kappa.high)
            for number, cells in enumerate(body):
                cells += ["", ""] if number else [kappa.value, bounds]
        caption = f"{self.layout}: {self.title}, label = {label_name(self.at_least)}"
        # an undefined kappa is not a column here: the table of statistics has the reason
        notes = _gaps([self], ("kappa",)) if kappa.value is not None else ()
        return Table.of(heading, body, caption, notes)


def label_name(at_least: int | None) -> str:
    """Return the name of a passage label, in words."""
    if at_least is None:
        return "rating"
    if at_least == 1:
        return "best rating"
    teens = at_least // 10 % 10 == 1
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(0 if teens else at_least % 10, "th")
    return f"{at_least}{suffix} best rating"


def statistics_table(blocks: Sequence[AgreementBlock], caption: str = "") -> Table:
    """Return all statistics of two raters, or of all graders: a row per label and layout."""
    first = blocks[0]
    names = [name for name in NAMES if any(name in block.shown for block in blocks)]
    body = [
        [
            label_name(block.at_least),
            block.layout,
            *([] if block.against else [block.units]),
            *(block.shown.get(name, "") for name in names),
        ]
        for block in blocks
    ]
    least = first.min_relevant
    notes = [
        *_gaps(blocks),
        *([] if least is None else [note("min-relevant", least=least)]),
        note("agreement-intervals"),
    ]
    units = f"{counted(first.units, first.unit)} of {counted(first.queries, 'query')}"
    caption = caption or f"Agreement of {first.title}: {units}"
    columns: list[str | Column] = [
        *("label", "layout", *([] if first.against else ["passages"])),
        *(Column(NAMES[name], 2, interval=True) for name in names),
    ]
    return Table.of(columns, body, caption, notes)


def _gaps(blocks: Iterable[AgreementBlock], names: Sequence[str] = ()) -> Iterator[Note]:
    """Note each undefined statistic or missing interval of some layouts once, with the reason."""
    reasons: dict[str, dict[str, dict[str, None]]] = {}
    for block in blocks:
        for name, one in block.shown.items():
            if one.why and name in (names or NAMES):
                what = "no interval" if one.reason == "" else "undefined"
                layouts = reasons.setdefault(f"{what}, because {one.why}", {})
                layouts.setdefault(block.layout, {})[NAMES[name]] = None
    for reason, layouts in reasons.items():
        where = [f"{layout} ({', '.join(of)})" for layout, of in layouts.items()]
        yield note("undefined", of=where, reason=reason)


@dataclass(frozen=True, slots=True, repr=False)
class Agreements(Result):
    """The result of `find_agreements`, with notes for the reader.

    `judged` compares graders and qrels with judgments and qrels, `mutual` graders with each other,
    `joint` all graders together, `people` people with graders and with each other. `bias` tests
    each grader for a favoured system, if its passages are judged. `positions` tests each grader of
    several items a request for an effect of their order.
    """

    judged: tuple[AgreementBlock, ...] = ()
    mutual: tuple[AgreementBlock, ...] = ()
    joint: tuple[AgreementBlock, ...] = ()
    people: tuple[AgreementBlock, ...] = ()
    bias: tuple[GraderBias, ...] = ()
    positions: tuple[PositionEffect, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[AgreementBlock, ...]:
        """The blocks of two raters."""
        return *self.judged, *self.mutual, *self.people

    @property
    def headline(self) -> str:
        """Cohen's kappa of every two raters, in words."""
        found: dict[str, str] = {}
        for block in self.pairs:
            kappa = block.estimates["kappa"]
            if block.layout != "GRADED" and kappa.value is not None:
                shown = f"{interval_text(kappa, 2)} ({block.layout})"
                found.setdefault(f"{block.rater} against {block.against}", shown)
        if not found:
            return "No agreement is defined."
        return f"Cohen's kappa of {listed([f'{pair}: {value}' for pair, value in found.items()])}."

    def plot(self, statistic: str = "kappa") -> Figure:
        """Plot one statistic of every two raters and layout with its interval.

        Raises:
            InputError: The statistic is unknown.
        """
        from exampp.results.plots.dots import intervals_figure
        from exampp.results.plots.figure import Spread

        check_choice("statistic", statistic, tuple(NAMES))
        rows = [
            Spread(
                f"{one.rater} against {one.against}, {one.layout}, {label_name(one.at_least)}",
                *(found.value, found.low, found.high),
            )
            for one in self.pairs
            if (found := one.shown.get(statistic)) is not None
        ]
        return intervals_figure(
            rows,
            NAMES[statistic],
            f"Agreement by {NAMES[statistic]}",
            "Bars: 95% interval",
            name="agreement",
            draft=any(with_code(self.notes, "draft")),
            zero=True,
        )

    def tables(self, *, mutual_counts: bool = False) -> dict[str, Table]:
        """Return confusion tables and statistics by pair; `mutual_counts` includes graders."""
        tables: list[Table] = []
        for blocks in (self.judged, self.mutual, self.joint, self.people):
            for of_pair in grouped(blocks, lambda block: block.title).values():
                if blocks is self.joint:
                    tables.append(statistics_table(of_pair, f"Krippendorff's {of_pair[0].rater}"))
                    continue
                counts = blocks is not self.mutual or mutual_counts
                tables += [one.confusion() for one in of_pair if counts]
                tables.append(statistics_table(of_pair))
        others = (*self.bias, *self.positions)
        tables += [table for one in others for table in one.tables().values()]
        tables = tables or [Table.of(["label", "layout"], [], "Agreement")]
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *self.notes))
        tables[0] = replace(tables[0], verdict=self.headline)
        return {str(number): table for number, table in enumerate(tables, 1)}

    def estimates(self) -> list[Estimate]:
        """Return every statistic of every comparison; empty if nothing could be compared."""
        blocks = (*self.pairs, *self.joint)
        return [estimate for block in blocks for estimate in block.estimates.values()]

    def records(self) -> dict[str, Table]:
        """Return all counts and all statistics, one per row."""
        counts = [
            [*block.key, row, column, count]
            for block in self.pairs
            for row, of_row in zip(block.rows, block.counts, strict=True)
            for column, count in zip(block.columns, of_row, strict=True)
        ]
        named = [
            (block, name, one)
            for block in (*self.pairs, *self.joint)
            for name, one in block.estimates.items()
        ]
        named += [
            (block, f"kappa {block.rows[row]} / {block.columns[column]}", one)
            for block in self.pairs
            for (row, column), one in (block.row_kappas or {}).items()
        ]
        rows = [
            [*of.key, name, one.value, one.low, one.high, of.units, of.queries, one.why]
            for of, name, one in named
        ]
        statistics = [*KEY, "statistic", "value", "low", "high", "units", "queries", "reason"]
        found = {
            "confusion": Table.of([*KEY, "label", "other", "count"], counts, "Confusion"),
            "agreement": Table.of(statistics, rows, "Agreement", self.notes, verdict=self.headline),
        }
        checks: dict[str, Sequence[Result]] = {
            "bias": self.bias,
            "order": self.positions,
            "positions": self.positions,
        }
        for name, results in checks.items():
            if tables := [one.records()[name] for one in results]:
                found[name] = replace(
                    tables[0],
                    rows=tuple(row for table in tables for row in table.rows),
                    notes=tuple(note for table in tables for note in table.notes),
                )
        return found


def find_agreements(
    books: Sequence[Gradebook],
    *,
    people: Sequence[RaterComparison] = (),
    positions: Iterable[PositionEffect] = (),
    qrels: Mapping[str, Iterable[Judgment]] | None = None,
    at_least: Sequence[int] = DEFAULT_AT_LEAST,
    min_rating: int | None = None,
    min_relevant: Sequence[int] = (),
    layouts: Sequence[str] = LAYOUTS,
    against: Against | None = None,
) -> Agreements:
    """Measure the agreement of graders with judgments and with each other.

    `people` are comparisons to be listed with the others (see `raters.compare_people`), `positions`
    the effects of the order of items. `qrels` are
    label files by name: they are compared with graders, with judgments and with each other, and
    need no graders (`find_agreements([], qrels={"a": ..., "b": ...})`). `at_least` selects which of
    a passage's ratings is its label (1: the best); `min_rating` is the lowest that is STRICT, by
    default 4 of 0-5 and two thirds up any other scale; `min_relevant` is the lowest relevant
    judgment, by default 2 or the highest there is. `against` limits the comparisons.

    Raises:
        InputError: A layout or `against` is unknown, or a number is off the scale.
    """
    _check_against(against, bool(qrels))
    wanted = check_layouts(layouts)
    check_min_rating(books, min_rating)

    def blocks(comparisons: Iterable[RaterComparison]) -> tuple[AgreementBlock, ...]:
        return tuple(AgreementBlock.of(one, layout) for one in comparisons for layout in wanted)

    notes = [text for book in books for text in _book_notes(book)]
    judged: list[RaterComparison] = []
    mutual: tuple[AgreementBlock, ...] = ()
    joint: list[AgreementBlock] = []
    bias: tuple[GraderBias, ...] = ()
    if against in (None, "judgments"):
        units = rated_units(books, at_least, judged=True)
        judged = list(_compare_judged(units, qrels or {}, min_rating, min_relevant))
        bias = tuple(one for one in map(grader_bias, books) if one.is_compared and one.is_judged)
        notes += _unlabelled(units) if len(units.query) or not qrels else ()
    if against in (None, "graders") and len(books) > 1:
        units = rated_units(books, at_least)
        mutual = blocks(units.compare(min_rating=min_rating))
        joint = list(_all_together(units, wanted, min_rating)) if len(books) > 2 else []
    if judged or mutual:
        notes += (text for book in books for text in _beyond(book, at_least))
    if against == "graders" and len(books) < 2:
        notes.append(note("one-grader"))
    if against == "people" and not people:
        notes.append(note("no-decisions"))
    found = merge_notes(notes)
    return Agreements(
        blocks(judged), mutual, tuple(joint), blocks(people), bias, tuple(positions), found
    )


def _check_against(against: str | None, has_qrels: bool) -> None:
    if against not in (None, *get_args(Against)):
        raise InputError(
            f"labels are not compared against {against!r}",
            hint=f"Choose from {', '.join(get_args(Against))}",
        )
    if has_qrels and against not in (None, "judgments"):
        raise InputError(
            f"qrels are compared as judgments are, not against {against}",
            hint="Leave out --against, or use --against judgments",
        )


def _compare_judged(
    units: RatedUnits,
    qrels: Mapping[str, Iterable[Judgment]],
    min_rating: int | None,
    min_relevant: Sequence[int],
) -> Iterator[RaterComparison]:
    """Yield graders against judgments, then everything against qrels."""
    cuts = tuple(dict.fromkeys(min_relevant)) or (None,)
    if len(units.query):
        check_min_relevant(units.judgments, min_relevant)
        for cut in cuts:
            yield from units.compare(units.judge(cut), min_rating)
    files = {name: tuple(judgments) for name, judgments in qrels.items()}
    for cut in cuts if files else ():
        yield from compare_qrels(units.books, files, tuple(units.labels), min_rating, cut)


def _all_together(
    units: RatedUnits, layouts: Sequence[Layout], min_rating: int | None
) -> Iterator[AgreementBlock]:
    """Yield the agreement of all graders, by each m-th best rating and layout."""
    name = f"alpha of all {len(units.books)} graders"
    for m, at_least in units.ways(*units.books):
        raters = units.raters(m, min_rating)
        for layout in layouts:
            alpha = joint_alpha(raters, units.query, units.queries, layout)
            yield AgreementBlock(name, layout, at_least, *alpha)


def _book_notes(book: Gradebook) -> Iterator[Note]:
    name = book.grader.name
    if book.grader.is_draft:
        yield note("draft")
    if book.left_out.cells:
        yield note("decisions-left-out", name, decisions=describe_oversight(book.left_out))
    if book.oversight.cells:
        yield note("decisions-included", name, decisions=describe_oversight(book.oversight))
    yield from grade_notes(book)


def _beyond(book: Gradebook, at_least: Sequence[int]) -> Iterator[Note]:
    """Note an m that is larger than the number of ratings of any passage."""
    most = max((len(query.item_ids) for query in book.queries), default=0)
    beyond = [label_name(m) for m in dict.fromkeys(at_least) if m > most]
    if beyond and book.grader.kind != "query":
        yield note(
            "beyond-items",
            book.grader.name,
            labels=beyond,
            lowest=book.grader.lowest,
            most=counted(most, "item"),
        )


def _unlabelled(units: RatedUnits) -> Iterator[Note]:
    """Note judged passages without a label, or missing judgments."""
    judged = units.judgments != MISSING
    if not judged.any():
        yield note("no-judgments")
    for book, labels in zip(units.books, next(iter(units.labels.values())), strict=True):
        if without := int((judged & (labels == MISSING)).sum()):
            text = (
                f"{without} of {int(judged.sum())} judged passages have no grade by "
                f"{book.grader.name} and are left out. {GRADE_JUDGED}."
            )
            yield note("judged-ungraded", text=text)
