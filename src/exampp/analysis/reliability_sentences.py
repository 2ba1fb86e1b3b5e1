"""What the reliability of a leaderboard comes to, in sentences that one can act on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from exampp.analysis.phrases import percent, with_interval
from exampp.analysis.reliability_records import GraderStudy, Purchase, Scored, Study
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
_PART = 0.1
"""A coefficient that falls by more without the worst systems depends on them."""


def sentences(scored: Scored, queries: int, studies: Sequence[Study], level: float) -> list[str]:
    """Return what follows from the studies, most important first, and how they were made.

    `level` is that of the intervals.
    """
    known = _different(studies)
    return [
        *undefined_because(studies),
        *_verdict(known),
        *_advice(known),
        *_no_interval(known),
        *_negative(known),
        *_no_items(scored, known),
        *(method(level) if known else ()),
        *_left_queries(scored, queries),
        *scored.notes,
    ]


def undefined_because(studies: Sequence[Study]) -> Iterator[str]:
    """Return which studies found nothing, and why."""
    reasons = dict.fromkeys(study.erho2.reason for study in studies if study.erho2.reason)
    for reason in reasons:
        of = [study for study in studies if study.erho2.reason == reason]
        where = "" if len(of) == len(studies) else f" {' and '.join(map(among, of))}"
        yield f"The reliability is undefined{where}, because {reason}."


def _different(studies: Sequence[Study]) -> list[Study]:
    """The studies that found something, of those of the same systems the first."""
    by_systems: dict[tuple[str, ...], Study] = {}
    for study in studies:
        if study.says_something:
            by_systems.setdefault(study.systems, study)
    return list(by_systems.values())


def _verdict(known: Sequence[Study]) -> Iterator[str]:
    """Tell how reliable the order is, and whether the worst systems make it so."""
    if not known or not (whole := known[0].erho2.value):
        return
    first, *rest = known
    of = counted(len(first.systems), "system")
    parts = [f"{_value(one)} {among(one)}" for one in rest]
    text = "; ".join([f"Reliability of the order ({ORDER}): {_value(first)} for {of}", *parts])
    least = min((one.erho2.value or 0.0 for one in rest), default=whole)
    if least < whole - _PART:
        part = "most" if least < whole / 2 else "part"
        text += f". The worst systems cause {part} of it: use the lower values"
    yield f"{text}."


def _value(study: Study) -> str:
    bounded = with_interval(study.erho2)
    return "-" if bounded is None else bounded.shown(3)


def _advice(known: Sequence[Study]) -> Iterator[str]:
    """Give one piece of advice, from the study with the lowest coefficient."""
    if not known:
        return
    study = min(known, key=lambda one: one.erho2.value or 0.0)
    found = study.crossed
    if found and found.raw_s <= 0:
        fewest = study.for_order.low
        more = f", and {ORDER} of the target takes {fewest:,} queries or more" if fewest else ""
        yield (
            f"These {counted(found.queries, 'query')} do not show that the systems differ "
            f"({among(study)}): their variance is estimated as {found.raw_s:.3g}{more}."
        )
    elif study.reaches_target:
        most = study.for_order.high
        shown = study.limits and found and most is not None and most <= found.queries
        but = "" if shown else "; no interval shows that the coefficient does"
        yield f"The estimate reaches the target {among(study)}{but}."
    elif study.purchases:
        yield _purchase(study, *study.purchases)


def _purchase(study: Study, queries: Purchase, items: Purchase) -> str:
    """Compare ten more queries with five more items in every query, by gain and cost."""
    present = study.erho2.value or 0.0
    of_queries = f"{queries.more} more queries (cost {queries.cost:,.0f}): {queries.erho2:.3f}"
    of_items = f"{items.more} more items per query (cost {items.cost:,.0f}): {items.erho2:.3f}"
    steps = [of_queries, of_items]
    if _gain(present, queries) < _gain(present, items):
        steps.reverse()
    found = study.nested
    limit = found.relative(found.means.queries, math.inf) if found else None
    most = "" if limit is None or limit > _ALL else f"; more items alone reach at most {limit:.3f}"
    return (
        f"Best next step {among(study)}, from {ORDER} {present:.3f}: {steps[0]}. "
        f"Alternative: {steps[1]}{most}."
    )


_ALL = 0.9995
"""A coefficient above is shown as 1.000."""


def _gain(present: float, purchase: Purchase) -> float:
    gain = (purchase.erho2 or 0.0) - present
    return gain / purchase.cost if purchase.cost else math.inf


def among(study: Study | GraderStudy) -> str:
    """Return of which systems, in a sentence."""
    return f"without {study.shown_without}" if study.shown_without else "of all systems"


def _no_interval(known: Sequence[Study]) -> Iterator[str]:
    for reason in dict.fromkeys(one.erho2.no_interval for one in known if one.erho2.no_interval):
        of = [study for study in known if study.erho2.no_interval == reason]
        where = "" if len(of) == len(known) else f" {' and '.join(map(among, of))}"
        yield f"No confidence interval{where}: {reason}."


def _negative(known: Sequence[Study]) -> Iterator[str]:
    below = [
        f"{COMPONENTS[name]} {value:.3g} {among(study)}"
        for study in known
        for name, value in components(study).items()
        if value < 0 and name != "s"
    ]
    if below:
        yield f"Negative variances count as 0: {', '.join(below)}."


def _no_items(scored: Scored, known: Sequence[Study]) -> Iterator[str]:
    if known and scored.no_items:
        yield f"Items are no facet of this study, because {scored.no_items}."


def method(level: float) -> Iterator[str]:
    """Return the meaning of the coefficients and of their intervals of this level."""
    yield (
        f"{ORDER}: the share of the variance of differences between these systems that other "
        f"queries would show again; {LEVEL}: the same of the scores themselves. Intervals "
        f"({percent(level)}) hold for these systems and for queries like these, by resampling the "
        "queries and one added query. Errors are standard errors of measurement, in units of the "
        "score."
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


def left_out(study: Study | GraderStudy) -> str:
    """Return which systems a study leaves out."""
    return study.shown_without or "none"
