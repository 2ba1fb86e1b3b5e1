"""What the reliability of a leaderboard comes to, in sentences that one can act on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from exampp.analysis.phrases import percent, with_interval
from exampp.analysis.reliability_records import Purchase, Scored, Study
from exampp.records.wording import counted

ORDER, LEVEL = "E\u03c1\u00b2", "\u03a6"
"""The coefficients: of the order of systems, of the level of their scores."""
TIMES = "\u00d7"
COMPONENTS: Mapping[str, str] = {
    "s": "systems",
    "q": "queries",
    "g": "graders",
    "sq": f"systems {TIMES} queries",
    "sg": f"systems {TIMES} graders",
    "qg": f"queries {TIMES} graders",
    "iq": "items of a query",
    "siq": f"systems {TIMES} items, error",
    "sqg": f"systems {TIMES} queries {TIMES} graders, error",
}
_CROSSED_ERROR = f"systems {TIMES} queries, error"
_HANGS = 0.1
"""So much lower without the worst systems, a coefficient is theirs."""
_FEW = 5


def sentences(scored: Scored, queries: int, studies: Sequence[Study], level: float) -> list[str]:
    """What follows from studies of so many queries, most important first, and how they were made.

    `level` is that of the intervals.
    """
    known = _different(studies)
    return [
        *undefined_because(studies),
        *_verdict(known),
        *_no_spread(known),
        *_purchase(known),
        *_ceiling(known),
        *_negative(known),
        *_few(known),
        *_no_items(scored, known),
        *(method(level) if known else ()),
        *_left_queries(scored, queries),
        *scored.notes,
    ]


def undefined_because(studies: Sequence[Study]) -> Iterator[str]:
    """Which studies found nothing, and why."""
    reasons = dict.fromkeys(study.erho2.reason for study in studies if study.erho2.reason)
    for reason in reasons:
        of = [left_out(study.drop) for study in studies if study.erho2.reason == reason]
        where = "" if len(of) == len(studies) else f" where the {' and '.join(of)} are left out"
        yield f"The reliability is undefined{where}, because {reason}."


def _different(studies: Sequence[Study]) -> list[Study]:
    """The studies that found something, of those of the same systems the first."""
    by_systems: dict[tuple[str, ...], Study] = {}
    for study in studies:
        if study.says_something:
            by_systems.setdefault(study.systems, study)
    return list(by_systems.values())


def _verdict(known: Sequence[Study]) -> Iterator[str]:
    """Whether the order is reliable, or only what the worst systems make of it."""
    if not known or not (whole := known[0].erho2.value):
        return
    first, *rest = known
    if not rest:
        systems = counted(len(first.systems), "system")
        yield f"The order of {systems} is reliable to {_value(first)}."
        return
    whole_size = len(first.systems)
    parts = [f"{_value(one)} without the worst {whole_size - len(one.systems)}" for one in rest]
    said = f"The order is reliable to {_value(first)} among {whole_size} systems, "
    said += " and ".join(parts)
    least = min(one.erho2.value or 0.0 for one in rest)
    if least >= whole - _HANGS:
        yield f"{said}: it does not hang on the worst systems."
    else:
        part = "most" if least < whole / 2 else "part"
        yield (
            f"{said}: {part} of it is what sets the worst systems apart; believe the lower figures."
        )


def _value(study: Study) -> str:
    bounded = with_interval(study.erho2)
    return "-" if bounded is None else bounded.shown(3)


def _no_spread(known: Sequence[Study]) -> Iterator[str]:
    alike = [
        f"{study.crossed.raw_s:.3g} {among(study.drop)}"
        for study in known
        if study.crossed and study.crossed.raw_s <= 0
    ]
    if alike:
        yield (
            "These systems cannot be told apart, and no number of queries helps: their variance "
            f"comes out as {', '.join(alike)}."
        )
    for study in known:
        if study.erho2.no_interval:
            yield f"There is no interval {among(study.drop)}, because {study.erho2.no_interval}."


def _purchase(known: Sequence[Study]) -> Iterator[str]:
    """What to buy next: the better of ten more queries and five more items, by gain and cost."""
    answers: dict[str, list[str]] = {}
    for study in known:
        if study.purchases is None or not study.erho2.value:
            continue
        queries, items = study.purchases
        better = "queries" if _gain(study, queries) >= _gain(study, items) else "items"
        answers.setdefault(better, []).append(
            f"{among(study.drop)} from {study.erho2.value:.3f} to {queries.erho2:.3f} and "
            f"{items.erho2:.3f}"
        )
    for better, of in answers.items():
        costs = next(study.purchases for study in known if study.purchases)
        yield (
            f"Buy more {better} next: {costs[0].more} more queries (cost {costs[0].cost:,.0f}) and "
            f"{costs[1].more} more items in every query (cost {costs[1].cost:,.0f}) lift {ORDER} "
            f"{', '.join(of)}."
        )


def among(drop: float) -> str:
    """Of which systems, in a sentence."""
    return f"without the {left_out(drop)}" if drop else "of all systems"


def _gain(study: Study, purchase: Purchase) -> float:
    gain = (purchase.erho2 or 0.0) - (study.erho2.value or 0.0)
    return gain / purchase.cost if purchase.cost else math.inf


def _ceiling(known: Sequence[Study]) -> Iterator[str]:
    parts = []
    for study in known:
        if study.nested and study.crossed and study.erho2.value:
            ceiling = study.nested.relative(study.crossed.queries, math.inf)
            parts.append(f"{ceiling:.3f} ({among(study.drop)})")
    if parts:
        yield f"With these queries no number of items lifts {ORDER} above {', '.join(parts)}."


def _negative(known: Sequence[Study]) -> Iterator[str]:
    below = [
        f"{COMPONENTS[name]} {value:.3g} {among(study.drop)}"
        for study in known
        for name, value in components(study).items()
        if value < 0 and name != "s"
    ]
    if below:
        yield f"Negative variances count as 0: {', '.join(below)}."


def _few(known: Sequence[Study]) -> Iterator[str]:
    few = [study for study in known if len(study.systems) < _FEW]
    if few:
        least = min(len(study.systems) for study in few)
        yield (
            f"With {counted(least, 'system')} the variance of systems is a guess: read the "
            "interval, not the figure."
        )


def _no_items(scored: Scored, known: Sequence[Study]) -> Iterator[str]:
    if known and scored.no_items:
        yield f"Items are no facet of this study, because {scored.no_items}."


def method(level: float) -> Iterator[str]:
    """What the coefficients mean, and whose intervals of this level these are."""
    yield (
        f"{ORDER}: the share of the variance of differences between systems that other queries "
        f"would show again; {LEVEL}: the same of the scores themselves. Intervals "
        f"({percent(level)}): Feldt ({ORDER}) and Arteaga et al. ({LEVEL}), for systems and "
        "queries like these. Errors are standard errors of measurement, in units of the score."
    )


def _left_queries(scored: Scored, queries: int) -> Iterator[str]:
    left = len(scored.query_ids) - queries
    if left and queries:
        yield f"Left out, because they do not count for every system: {counted(left, 'query')}."


def components(study: Study) -> dict[str, float]:
    """The components as they come out."""
    if study.nested:
        return study.nested.raw
    if study.crossed is None:
        return {}
    found = study.crossed
    return {"s": found.raw_s, "q": found.raw_q, "sq": found.ms_e}


def shares(raw: Mapping[str, float]) -> dict[str, float | None]:
    """What part of all variance each component is, negative ones being 0."""
    total = sum(max(0.0, value) for value in raw.values())
    return {name: max(0.0, value) / total if total else None for name, value in raw.items()}


def component_name(name: str, raw: Mapping[str, float]) -> str:
    """What varies, in words; without items the interaction with queries holds the error."""
    return (
        _CROSSED_ERROR
        if name == "sq" and "siq" not in raw and "sqg" not in raw
        else COMPONENTS[name]
    )


def left_out(drop: float) -> str:
    """Which systems a study leaves out."""
    return f"worst {percent(drop)}" if drop else "none"
