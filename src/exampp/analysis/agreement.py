"""All that is to be said of the agreement of some graders, with judgments and among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from exampp.analysis.grader_bias import GraderBias, grader_bias
from exampp.analysis.phrases import interval, with_interval
from exampp.analysis.raters import (
    DEFAULT_AT_LEAST,
    LAYOUTS,
    SAME_IN_TWO,
    Layout,
    RatedUnits,
    RaterComparison,
    among_graders,
    check_layouts,
    check_min_rating,
    check_min_relevant,
    group_name,
    joint_alpha,
    panel,
    ways,
    with_judgments,
    with_qrels,
)
from exampp.errors import InputError
from exampp.measures.board import describe_oversight
from exampp.records import Judgment
from exampp.records.gradebook import GRADE_JUDGED, MISSING, Gradebook
from exampp.records.wording import counted
from exampp.results.result import Result, Table
from exampp.results.view import Cell, Column, Value
from exampp.stats.estimate import Estimate

NAMES = {
    "kappa": "kappa",
    "kappa_linear": "linear kappa",
    "kappa_quadratic": "quadratic kappa",
    "alpha": "alpha",
    "alpha_ordinal": "ordinal alpha",
    "ac1": "AC1",
}
TIDY = (
    "rater",
    "against",
    "rater_key",
    "against_key",
    "at_least",
    "min_relevant",
    "layout",
    "statistic",
    "value",
    "low",
    "high",
    "units",
    "queries",
    "reason",
)
COUNTS = (
    *("rater", "against", "rater_key", "against_key", "at_least", "min_relevant", "layout"),
    *("label", "other", "count"),
)
INTERVALS = (
    "Intervals hold 95% and take the queries, not the passages, as the sample (jackknife and "
    "symmetric bootstrap-t)."
)


class AgreementBlock(NamedTuple):
    """A comparison in one layout with its statistics."""

    comparison: RaterComparison
    layout: Layout
    estimates: Mapping[str, Estimate]

    @property
    def min_relevant(self) -> int | None:
        """From which judgment on a passage is relevant; None between graders."""
        scale = self.comparison.other.scale
        return scale.strict if scale.named == "judgments" else None

    @property
    def title(self) -> str:
        """Who is compared with whom, and which judgments are relevant."""
        names = f"{self.comparison.rater.name} against {self.comparison.other.name}"
        return names if self.min_relevant is None else f"{names} (relevant: {self.min_relevant}+)"


@dataclass(frozen=True, slots=True)
class Joint:
    """Krippendorff's alpha of all graders together in one layout."""

    name: str
    at_least: int | None
    layout: Layout
    units: int
    queries: int
    estimates: Mapping[str, Estimate]


def label_name(at_least: int | None) -> str:
    """What the label of a passage is, in words."""
    if at_least is None:
        return "rating"
    if at_least == 1:
        return "best rating"
    teens = at_least // 10 % 10 == 1
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(0 if teens else at_least % 10, "th")
    return f"{at_least}{suffix} best rating"


def confusion_table(block: AgreementBlock) -> Table:
    """A confusion table as the papers print it: the best labels first, the one kappa once."""
    comparison = block.comparison
    rows = comparison.rater.scale.groups(block.layout)
    columns = comparison.other.scale.groups(block.layout)
    counts = comparison.counts(block.layout)[::-1, ::-1].tolist()
    kappa = block.estimates["kappa"]
    body: list[list[Cell]] = [
        [group_name(labels), *of_row, sum(of_row)]
        for labels, of_row in zip(rows[::-1], counts, strict=True)
    ]
    heading: list[str | Column] = [block.layout, *map(group_name, columns[::-1]), "total"]
    of_rows = {one.row: one for one in comparison.row_kappas(block.layout)}
    if of_rows:
        heading += [Column("kappa of the row", 2), "against"]
        for row, cells in zip(range(len(body) - 1, -1, -1), body, strict=True):
            one = of_rows.get(row)
            cells += [one.estimate.value, group_name(columns[one.column])] if one else ["", ""]
    if kappa.value is not None:
        bounds = interval(kappa)
        heading += [Column("Cohen's kappa", 2), Column("95% interval", 2)]
        for number, cells in enumerate(body):
            cells += ["", ""] if number else [kappa.value, bounds]
    name = label_name(comparison.at_least)
    caption = f"{block.layout}: {block.title}, label = {name}"
    return Table.of(heading, body, caption, list(_why(kappa)))


def statistics_table(found: Sequence[AgreementBlock]) -> Table:
    """All statistics of one pair of raters: a row a label and layout.

    With two categories weights change nothing, and their columns stay empty or away.
    """
    names = [name for name in NAMES if name not in SAME_IN_TWO or not all(map(_twofold, found))]
    body: list[list[Cell]] = [
        [
            label_name(block.comparison.at_least),
            block.layout,
            *(
                ""
                if _twofold(block) and name in SAME_IN_TWO
                else with_interval(block.estimates[name])
                for name in names
            ),
        ]
        for block in found
    ]
    first = found[0]
    queries = counted(first.comparison.queries, "query")
    units = f"{counted(first.comparison.units, first.comparison.unit)} of {queries}"
    return Table.of(
        ["label", "layout", *(Column(NAMES[name], 2) for name in names)],
        body,
        f"Agreement of {first.title}: {units}",
        list(dict.fromkeys([*_notes(found), INTERVALS])),
    )


def joint_table(found: Sequence[Joint]) -> Table:
    """Krippendorff's alpha of all graders together: a row a label and layout."""
    body: list[list[Cell]] = []
    notes: dict[str, None] = {}
    for one in found:
        values = [with_interval(estimate) for estimate in one.estimates.values()]
        body.append([label_name(one.at_least), one.layout, one.units, *values])
        reasons = {estimate.reason for estimate in one.estimates.values() if estimate.reason}
        notes.update((f"{one.layout}: undefined, because {reason}.", None) for reason in reasons)
    alphas = (Column(NAMES[name], 2) for name in ("alpha", "alpha_ordinal"))
    columns: list[str | Column] = ["label", "layout", "passages", *alphas]
    return Table.of(columns, body, f"Krippendorff's {found[0].name}", [*notes, INTERVALS])


def tidy(
    found: Sequence[AgreementBlock], joint: Sequence[Joint], notes: Sequence[str] = ()
) -> Table:
    """A row a statistic, with full precision and the reason where it is undefined."""
    keyed: list[tuple[list[Value], tuple[int, int], Mapping[str, Estimate]]] = [
        (_key(one), (one.comparison.units, one.comparison.queries), one.estimates) for one in found
    ]
    keyed += [
        (
            [one.name, None, None, None, one.at_least, None, one.layout],
            (one.units, one.queries),
            one.estimates,
        )
        for one in joint
    ]
    keyed += [
        (_key(one), (one.comparison.units, one.comparison.queries), dict(_of_rows(one)))
        for one in found
    ]
    rows: list[list[Value]] = [
        [*key, name, one.value, one.low, one.high, *sizes, one.reason or one.no_interval]
        for key, sizes, estimates in keyed
        for name, one in estimates.items()
    ]
    return Table.of(TIDY, rows, "Agreement", notes)


def _of_rows(block: AgreementBlock) -> Iterator[tuple[str, Estimate]]:
    """The kappas of the rows, each named by its labels and the judgments they are paired with."""
    comparison = block.comparison
    labels, others = (
        side.scale.groups(block.layout) for side in (comparison.rater, comparison.other)
    )
    for row, column, estimate in comparison.row_kappas(block.layout):
        yield f"kappa {group_name(labels[row])} / {group_name(others[column])}", estimate


def tidy_counts(found: Sequence[AgreementBlock]) -> Table:
    """A row a cell of a confusion table."""
    rows = [
        [*_key(block), group_name(label), group_name(other), count]
        for block in found
        for label, of_row in zip(
            block.comparison.rater.scale.groups(block.layout),
            block.comparison.counts(block.layout).tolist(),
            strict=True,
        )
        for other, count in zip(
            block.comparison.other.scale.groups(block.layout), of_row, strict=True
        )
    ]
    return Table.of(COUNTS, rows, "Confusion")


def by_pair(found: Iterable[AgreementBlock]) -> Iterator[list[AgreementBlock]]:
    """The blocks of each pair of raters, and of each cut of the judgments."""
    groups: dict[str, list[AgreementBlock]] = {}
    for block in found:
        groups.setdefault(block.title, []).append(block)
    yield from groups.values()


def _key(block: AgreementBlock) -> list[Value]:
    comparison = block.comparison
    both = (comparison.rater, comparison.other)
    names = [*(one.name for one in both), *(one.key for one in both)]
    return [*names, comparison.at_least, block.min_relevant, block.layout]


def _twofold(block: AgreementBlock) -> bool:
    return len(block.comparison.rater.scale.cuts(block.layout)) == 1


def _why(kappa: Estimate) -> Iterator[str]:
    if kappa.value is None:
        yield f"Cohen's kappa is undefined, because {kappa.reason}."
    elif kappa.no_interval:
        yield f"Cohen's kappa has no interval, because {kappa.no_interval}."


def _notes(found: Sequence[AgreementBlock]) -> Iterator[str]:
    """What is undefined or has no interval, and why; where the judgments are cut."""
    labels: dict[str, dict[str, None]] = {}
    for block in found:
        for sentence in _gaps(block):
            labels.setdefault(sentence, {})[label_name(block.comparison.at_least)] = None
    every = len({block.comparison.at_least for block in found})
    for sentence, names in labels.items():
        where = "" if len(names) == every else f" ({', '.join(names)})"
        yield f"{sentence}{where}."
    if found[0].min_relevant is not None:
        yield f"Judgments of {found[0].min_relevant} and more are relevant (--min-relevant)."


def _gaps(block: AgreementBlock) -> Iterator[str]:
    """What is undefined or without interval in a block."""
    reasons: dict[str, list[str]] = {}
    seen = {n: e for n, e in block.estimates.items() if not (_twofold(block) and n in SAME_IN_TWO)}
    for name, one in seen.items():
        if one.value is None:
            reasons.setdefault(f"undefined, because {one.reason}", []).append(NAMES[name])
        elif one.no_interval:
            reasons.setdefault(f"no interval, because {one.no_interval}", []).append(NAMES[name])
    for reason, names in reasons.items():
        which = "" if len(names) == len(seen) else f", {', '.join(names)}"
        yield f"{block.layout}{which}: {reason}"


Against = Literal["judgments", "graders", "people"]


@dataclass(frozen=True, slots=True, repr=False)
class Agreements(Result):
    """What `find` found, and what to know when reading it.

    `judged` are graders and qrels against judgments and qrels, `mutual` graders against each other,
    `joint` all of them together, `people` people against graders and against each other. `bias` is
    the check of each grader for a favoured system, where its passages are judged.
    """

    judged: tuple[AgreementBlock, ...] = ()
    mutual: tuple[AgreementBlock, ...] = ()
    joint: tuple[Joint, ...] = ()
    people: tuple[AgreementBlock, ...] = ()
    bias: tuple[GraderBias, ...] = ()
    notes: tuple[str, ...] = ()

    def tables(self, *, mutual_counts: bool = False) -> dict[str, Table]:
        """Confusion tables and statistics, pair by pair; `mutual_counts`: of graders too."""
        tables: list[Table] = []
        for of_pair in by_pair(self.judged):
            tables += [*map(confusion_table, of_pair), statistics_table(of_pair)]
        for of_pair in by_pair(self.mutual):
            tables += map(confusion_table, of_pair if mutual_counts else ())
            tables.append(statistics_table(of_pair))
        tables += [joint_table(self.joint)] if self.joint else []
        for of_pair in by_pair(self.people):
            tables += [*map(confusion_table, of_pair), statistics_table(of_pair)]
        tables += [table for found in self.bias for table in found.tables().values()]
        last = tables.pop() if tables else Table.of(["label", "layout"], [], "Agreement")
        tables.append(replace(last, notes=(*last.notes, *self.notes)))
        return {str(number): table for number, table in enumerate(tables, 1)}

    def estimates(self) -> list[Estimate]:
        """Every statistic of every comparison; none where nothing could be compared."""
        found = [one.estimates for one in (*self.judged, *self.mutual, *self.people)]
        found += [one.estimates for one in self.joint]
        return [estimate for estimates in found for estimate in estimates.values()]

    def records(self) -> dict[str, Table]:
        """All counts, and all statistics, one a row."""
        both = (*self.judged, *self.mutual, *self.people)
        found = {"confusion": tidy_counts(both), "agreement": tidy(both, self.joint, self.notes)}
        if self.bias:
            tables = [one.records()["bias"] for one in self.bias]
            rows = tuple(row for table in tables for row in table.rows)
            notes = tuple(note for table in tables for note in table.notes)
            found["bias"] = replace(tables[0], rows=rows, notes=notes)
        return found


def find_agreements(
    books: Sequence[Gradebook],
    *,
    people: Sequence[RaterComparison] = (),
    qrels: Mapping[str, Iterable[Judgment]] | None = None,
    at_least: Sequence[int] = DEFAULT_AT_LEAST,
    min_rating: int | None = None,
    min_relevant: Sequence[int] = (),
    layouts: Sequence[str] = LAYOUTS,
    against: Against | None = None,
) -> Agreements:
    """Agreement of graders with judgments and with each other, in one pass over their grades.

    `people` are comparisons to stand beside them (see `agreement_people`). `qrels` are label files
    by name: they are compared with graders, with judgments and with each other, and need no graders
    (`find([], qrels={"a": ..., "b": ...})`). `at_least` says which of
    a passage's ratings is its label (1: the best); `min_rating` is the lowest that is STRICT, by
    default 4 of 0-5 and two thirds up any other scale; `min_relevant` the lowest relevant
    judgment, by default 2 or the highest there is. `against` leaves the rest out.

    Raises:
        InputError: There is no such layout or `against`, or a number is off the scale.
    """
    if against not in (None, *get_args(Against)):
        raise InputError(
            f"labels are not compared against {against!r}",
            mend=f"Choose from {', '.join(get_args(Against))}",
        )
    if qrels and against not in (None, "judgments"):
        raise InputError(
            f"qrels are compared as judgments are, not against {against}",
            mend="Leave out --against, or use --against judgments",
        )
    wanted = check_layouts(layouts)
    check_min_rating(books, min_rating)
    notes = list(dict.fromkeys(note for book in books for note in _book_notes(book)))
    judged: tuple[AgreementBlock, ...] = ()
    mutual: tuple[AgreementBlock, ...] = ()
    joint: tuple[Joint, ...] = ()
    bias: tuple[GraderBias, ...] = ()
    if against in (None, "judgments"):
        found = panel(books, at_least, judged=True)
        judged = tuple(_judged(found, qrels or {}, min_rating, min_relevant, wanted))
        bias = tuple(one for one in map(grader_bias, books) if one.is_compared and one.is_judged)
        notes += _left_out(found) if len(found.query) or not qrels else ()
    if against in (None, "graders") and len(books) > 1:
        found = panel(books, at_least)
        mutual = blocks(among_graders(found, min_rating), wanted)
        joint = all_together(found, wanted, min_rating) if len(books) > 2 else ()
    if judged or mutual:
        notes += dict.fromkeys(note for book in books for note in _beyond(book, at_least))
    if against == "graders" and len(books) < 2:
        notes.append("Agreement of graders is undefined, because there is only one grader.")
    decided = blocks(people, wanted)
    if against == "people" and not decided:
        notes.append("Agreement with people is undefined, because nobody has decided a cell.")
    return Agreements(judged, mutual, joint, decided, bias, tuple(notes))


def _judged(
    found: RatedUnits,
    qrels: Mapping[str, Iterable[Judgment]],
    min_rating: int | None,
    min_relevant: Sequence[int],
    layouts: Sequence[Layout],
) -> Iterator[AgreementBlock]:
    """Graders against judgments, then whatever there is against qrels."""
    cuts: Sequence[int | None] = tuple(dict.fromkeys(min_relevant)) or (None,)
    if len(found.query):
        check_min_relevant(found.judgments, min_relevant)
        for cut in cuts:
            yield from blocks(with_judgments(found, min_rating, cut), layouts)
    files = {name: tuple(judgments) for name, judgments in qrels.items()}
    for cut in cuts if files else ():
        compared = with_qrels(found.books, files, found.at_least, min_rating, cut)
        yield from blocks(compared, layouts)


def blocks(
    comparisons: Iterable[RaterComparison], layouts: Sequence[Layout]
) -> tuple[AgreementBlock, ...]:
    """Every comparison in every layout."""
    return tuple(
        AgreementBlock(c, layout, c.estimates(layout)) for c in comparisons for layout in layouts
    )


def all_together(
    found: RatedUnits, layouts: Sequence[Layout], min_rating: int | None = None
) -> tuple[Joint, ...]:
    """All graders together, by each m-th best rating and in every layout."""
    name = f"alpha of all {len(found.books)} graders"
    return tuple(
        Joint(name, at_least, layout, units, queries, estimates)
        for m, at_least in ways(found, *found.books)
        for raters in (found.raters(m, min_rating),)
        for layout in layouts
        for units, queries, estimates in (joint_alpha(raters, found.query, found.queries, layout),)
    )


def _book_notes(book: Gradebook) -> Iterator[str]:
    if book.grader.is_draft:
        yield "These are draft grades: good for trying things out, not for conclusions."
    if book.left_out.cells:
        yield f"{book.grader.name}: left out, as asked for: {describe_oversight(book.left_out)}."
    if book.oversight.cells:
        yield (
            f"{book.grader.name}: labels rest on people's decisions, too "
            f"({describe_oversight(book.oversight)}); --decisions without leaves them out."
        )
    yield from book.notes


def _beyond(book: Gradebook, at_least: Sequence[int]) -> Iterator[str]:
    """That no passage can have so many ratings."""
    most = max((len(query.item_ids) for query in book.queries), default=0)
    beyond = [label_name(m) for m in dict.fromkeys(at_least) if m > most]
    if beyond and book.grader.kind != "query":
        yield (
            f"The {', '.join(beyond)} by {book.grader.name} is {book.grader.lowest} for every "
            f"passage, because no query has more than {counted(most, 'item')} (--at-least)."
        )


def _left_out(found: RatedUnits) -> Iterator[str]:
    """Judged passages without a label of some grader; that nothing is judged at all."""
    judged = found.judgments != MISSING
    if not judged.any():
        yield "Agreement with judgments is undefined, because there are no judgments."
    labels = found.labels[found.at_least[0]]
    for book, of_grader in zip(found.books, labels, strict=True):
        without = int((judged & (of_grader == MISSING)).sum())
        if without:
            yield (
                f"{without} of {int(judged.sum())} judged passages have no grade by "
                f"{book.grader.name} and are left out. {GRADE_JUDGED}."
            )
