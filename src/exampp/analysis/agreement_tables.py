"""Agreement as tables: the papers' confusion tables, and all statistics with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.analysis.agreement import SAME_IN_TWO, Layout, RaterComparison, group_name
from exampp.analysis.phrases import interval, with_interval
from exampp.records.wording import counted
from exampp.report.table import Column, Table, Value
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
    body: list[list[Value]] = [
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
    body: list[list[Value]] = [
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
    body: list[list[Value]] = []
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
