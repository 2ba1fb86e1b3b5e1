"""What survives all specifications: sentences, tables, and the figure of ranks."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from exampp.analysis.phrases import percent
from exampp.analysis.sensitivity_records import AXES, NEARLY, Outcomes, Specification
from exampp.records.wording import counted
from exampp.report.plots import ranks as plots
from exampp.report.plots.figure import Figure
from exampp.report.table import Column, Table, Value

_SAID: Mapping[str, str] = {
    "grader": "graders",
    "bank": "banks",
    "measure": "measures",
    "k": "cutoffs",
    "min_rating": "minimum ratings",
    "missing": "ways with missing cells",
}
_SHOWN = 3


def for_people(found: Outcomes) -> dict[str, Table]:
    """A row a system; what each choice moves; every specification against official orders."""
    tables = {"systems": _systems(found)}
    if found.by_axis:
        tables["choices"] = _choices(found)
    if found.officials and found.counted:
        tables["specifications"] = _against_official(found)
    if found.bounds:
        tables["missing cells"] = _missing(found)
    return tables


def for_programs(found: Outcomes) -> dict[str, Table]:
    """A row a system, a specification, a pair, and a bound."""
    return {
        "systems": _system_records(found),
        "specifications": _specifications(found),
        "pairs": _pairs(found),
        "missing cells": _missing_records(found),
    }


# ---- sentences -----------------------------------------------------------------------------------


def survives(found: Outcomes) -> str:
    """What holds under all specifications; empty where nothing could be compared."""
    if found.reason or not found.pairs:
        return ""
    if all(one.worst == 1 for one in found.systems):
        return f"All systems tie under all {_ways(found)}: nothing tells them apart."
    verdicts = Counter(pair.verdict for pair in found.pairs)
    pairs = len(found.pairs)
    unanimous = verdicts["unanimous"]
    said = (
        f"Of {counted(pairs, 'pair')} of systems {unanimous:,} ({unanimous / pairs:.1%}) stand in "
        f"the same order under all {_ways(found)}; {verdicts['open']:,} "
        f"({verdicts['open'] / pairs:.1%}) are open. {_winner(found)}"
    )
    return said if unanimous < pairs else f"{said} The whole order survives."


def _ways(found: Outcomes) -> str:
    """25 specifications (Cover; 5 minimum ratings, 5 cutoffs)."""
    used = [found.outcomes[n].specification for n in found.counted]
    parts = []
    for axis in AXES:
        choices = dict.fromkeys(getattr(spec, axis) for spec in used)
        if len(choices) > 1:
            parts.append(f"{len(choices)} {_SAID[axis]}")
        elif axis == "measure":
            parts.append(str(next(iter(choices))))
    return f"{counted(len(used), 'specification')} ({', '.join(parts)})"


def _winner(found: Outcomes) -> str:
    """Who is first, and how often."""
    best = sorted((one for one in found.systems if one.first), key=lambda one: -one.first)
    if not best:
        return ""
    always = [one.system for one in best if one.first == 1]
    if always:
        others = f" and {len(always) - 1} more are" if len(always) > 1 else " is"
        return f"{always[0]}{others} first in all of them."
    shown = ", ".join(f"{one.system} in {one.first:.0%}" for one in best[:_SHOWN])
    more = f" and {len(best) - _SHOWN} more in some" if len(best) > _SHOWN else ""
    return f"No system is first in all of them: {shown}{more}."


def sentences(found: Outcomes) -> list[str]:
    """What follows, most important first, and what was left out."""
    return [
        *([f"Nothing can be compared, because {found.reason}."] if found.reason else []),
        *filter(None, [survives(found)]),
        *_claims(found),
        *_correlated(found),
        *_official(found),
        *_unsettled(found),
        *_left(found),
        *found.notes,
    ]


def _claims(found: Outcomes) -> Iterator[str]:
    if found.pairs and not found.reason and any(one.worst > 1 for one in found.systems):
        nearly = sum(pair.verdict != "open" for pair in found.pairs)
        yield (
            f"Claim the order of the unanimous pairs alone; {nearly:,} "
            f"({nearly / len(found.pairs):.1%}) hold in {percent(NEARLY)} or more. Specifications "
            "are no sample: these shares are no probabilities."
        )


def _correlated(found: Outcomes) -> Iterator[str]:
    if found.between and not found.reason:
        taus = np.array(found.between)
        yield (
            f"Kendall's \u03c4 between two specifications: {taus.min():.3f} to {taus.max():.3f}, "
            f"median {np.median(taus):.3f}."
        )


def _official(found: Outcomes) -> Iterator[str]:
    for name, taus in found.officials.items():
        known = [tau for tau in taus if tau is not None]
        if not known:
            yield f"Kendall's \u03c4 with {name} is undefined under every specification."
            continue
        yield (
            f"Kendall's \u03c4 with {name}: {min(known):.3f} to {max(known):.3f} over all "
            f"{counted(len(known), 'specification')}, median {np.median(known):.3f}. To choose the "
            "best of them and to report it alone would be to choose by the answer."
        )


def _unsettled(found: Outcomes) -> Iterator[str]:
    """How many pairs the grades of missing cells could turn, where it is most."""
    most = max(found.bounds, key=lambda one: one.pairs - one.certain, default=None)
    if most is not None:
        yield (
            f"The grades that cells lack could turn {most.pairs - most.certain:,} of "
            f"{counted(most.pairs, 'ordered pair')} under Cover@{most.k} \u2265{most.min_rating}, "
            f"and move a score by {most.widest:.3f}: grade or review them first."
            if most.certain < most.pairs
            else "Whatever grades the cells have that lack one, no ordered pair turns."
        )


def _left(found: Outcomes) -> Iterator[str]:
    """Which specifications are not counted: impossible ones, and equal ones."""
    reasons: dict[str, list[Specification]] = {}
    for one in found.outcomes:
        if one.impossible:
            reasons.setdefault(one.impossible, []).append(one.specification)
    for reason, specs in reasons.items():
        shown = "; ".join(_name(spec) for spec in specs[:_SHOWN])
        more = f" and {len(specs) - _SHOWN} more" if len(specs) > _SHOWN else ""
        yield f"Impossible, because {reason.rstrip('.')}: {shown}{more}."
    equal = sum(one.equal_to is not None for one in found.outcomes)
    if equal:
        yield (
            f"Declared are {counted(len(found.outcomes), 'specification')}; {equal} give every "
            "system the score that an earlier one gives it and are counted once."
        )


def _name(spec: Specification) -> str:
    cut = f"@{spec.k}" if spec.k and "@" not in spec.measure else ""
    return f"{spec.measure}{cut} \u2265{spec.min_rating} {spec.missing}, {spec.grader}"


# ---- tables --------------------------------------------------------------------------------------


def _systems(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [
            one.system,
            round(one.best),
            round(one.worst),
            one.median,
            f"{one.first:.0%}",
            one.specifications,
        ]
        for one in found.systems
    ]
    columns: list[str | Column] = [
        "system",
        Column("best", group="rank"),
        Column("worst", group="rank"),
        Column("median", 1, "rank"),
        "first in",
        "specifications",
    ]
    draft = "DRAFT GRADES: " if found.draft else ""
    caption = f"{draft}Ranks over {counted(len(found.counted), 'specification')}"
    return Table.of(columns, rows, caption, sentences(found))


def _system_records(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [one.system, one.best, one.worst, one.median, one.first, one.specifications]
        for one in found.systems
    ]
    columns = ["system", "best", "worst", "median", "share_first", "specifications"]
    return Table.of(columns, rows, "Ranks over all specifications", sentences(found))


def _choices(found: Outcomes) -> Table:
    used = [found.outcomes[n].specification for n in found.counted]
    rows: list[list[Value]] = []
    for axis, tau in sorted(found.by_axis.items(), key=lambda one: one[1]):
        values = list(dict.fromkeys(getattr(spec, axis) for spec in used))
        if axis == "min_rating":
            values.sort()
        choices = [str(value) for value in values if value is not None]
        rows.append([_SAID[axis], ", ".join(choices), tau])
    columns: list[str | Column] = ["choice", "of", "median \u03c4"]
    caption = "What a choice moves: Kendall's \u03c4 of specifications that differ in it alone"
    return Table.of(columns, rows, caption)


def _against_official(found: Outcomes) -> Table:
    """All of them: a row a specification, with the order's tau."""
    used = [found.outcomes[n] for n in found.counted]
    shown = [
        axis
        for axis in AXES
        if len({getattr(one.specification, axis) for one in used}) > 1 or axis == "measure"
    ]
    rows: list[list[Value]] = []
    for at, one in enumerate(used):
        best = max(one.scores.values())
        first = [system for system, score in one.scores.items() if score == best]
        who = first[0] if len(first) == 1 else f"{len(first)} systems"
        taus = [of[at] for of in found.officials.values()]
        rows.append([*(getattr(one.specification, axis) for axis in shown), who, *taus])
    heads = [axis.replace("_", " ") for axis in shown]
    names = [f"\u03c4 {name}" for name in found.officials]
    return Table.of([*heads, "first", *names], rows, "Every specification with the official order")


def _specifications(found: Outcomes) -> Table:
    place = {number: at for at, number in enumerate(found.counted)}
    rows: list[list[Value]] = []
    for number, one in enumerate(found.outcomes):
        spec = one.specification
        at = place.get(number)
        taus = [None if at is None else of[at] for of in found.officials.values()]
        rows.append(
            [
                number + 1,
                *(getattr(spec, axis) for axis in AXES),
                at is not None,
                None if one.equal_to is None else one.equal_to + 1,
                one.impossible or None,
                *taus,
                found.keys.get(spec.grader),
            ]
        )
    columns = ["number", *AXES, "counted", "equal_to", "impossible"]
    columns += [*(f"kendall_{name}" for name in found.officials), "grader_key"]
    return Table.of(columns, rows, "Specifications")


def _pairs(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [one.first, one.second, one.share, one.specifications, one.verdict] for one in found.pairs
    ]
    columns = ["system", "other", "share_above", "specifications", "verdict"]
    return Table.of(columns, rows, "Pairs of systems")


def _missing(found: Outcomes) -> Table:
    """Cover over all grades that missing cells could have."""
    graders = len({one.grader for one in found.bounds}) > 1
    banks = len({one.bank for one in found.bounds}) > 1
    rows: list[list[Value]] = [
        [
            *([one.grader] if graders else []),
            *([one.bank] if banks else []),
            f"Cover@{one.k}",
            one.min_rating,
            one.widest,
            one.pairs,
            one.certain,
        ]
        for one in found.bounds
    ]
    lead = [*(["grader"] if graders else []), *(["bank"] if banks else [])]
    columns = [*lead, "measure", "min rating", "widest range", "ordered pairs", "certain"]
    notes = [
        "certain: the order stays whatever the grades of missing cells are; a cell that both "
        "systems read has one grade for both"
    ]
    return Table.of(columns, rows, "What cells without a grade could change", notes)


def _missing_records(found: Outcomes) -> Table:
    rows: list[list[Value]] = [
        [
            *(one.grader, one.bank, "Cover", one.k, one.min_rating),
            *(one.widest, one.pairs, one.certain, found.keys.get(one.grader)),
        ]
        for one in found.bounds
    ]
    columns = [
        *("grader", "bank", "measure", "k", "min_rating"),
        *("widest", "pairs", "certain", "grader_key"),
    ]
    return Table.of(columns, rows, "What cells without a grade could change")


# ---- the figure ----------------------------------------------------------------------------------


def drawn(found: Outcomes) -> Figure:
    """The range of ranks of every system, the middle half, and the median."""
    scores = [found.outcomes[n].scores for n in found.counted]
    ordered = [sorted(of.values()) for of in scores]
    spans = []
    for one in found.systems:
        ranks = [
            1 + len(of) - bisect_right(below, of[one.system])
            for of, below in zip(scores, ordered, strict=True)
            if one.system in of
        ]
        low, high = np.quantile(ranks, [0.25, 0.75]).tolist()
        spans.append(plots.RankSpan(one.system, one.best, low, one.median, high, one.worst))
    figure = plots.ranks(spans, _ways(found) if scores else "")
    return replace(figure, draft=found.draft)
