"""The verdict that a report opens with: what it says, and how far to trust it, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from exampp.analysis.cautions import EvaluatedGrades, cautions
from exampp.analysis.findings import LAYOUTS, Findings
from exampp.analysis.phrases import OVER_ALL, not_excluded, percent
from exampp.analysis.trust import (
    attacks_line,
    bias_line,
    bounded,
    choices_line,
    not_green,
    reliability_line,
)
from exampp.evaluate.board import heading
from exampp.evaluate.people import said_by_people
from exampp.records.gradebook import MISSING
from exampp.records.wording import counted
from exampp.report.page import Line, Notices, Section, Tiles, Verdict


def verdict_section(found: Findings) -> Section:
    """The first section: the verdict, what must not be overlooked, how large it all is."""
    lines = [line for part in _PARTS for line in part(found)]
    bias = bias_line(found.bias)
    if bias:
        lines = [not_green(line, found.bias) for line in lines]
        lines.insert(0 if found.bias.found else 1, bias)
    warned = _warned(found)
    if warned:
        lines.append(Line("Warnings", f"{counted(len(warned), 'warning')}, below.", "", "doubt"))
    return Section.of(
        "summary",
        "Verdict",
        [
            Verdict(tuple(lines)) if lines else None,
            Notices(warned) if warned else None,
            Tiles(tuple(_tiles(found))),
        ],
    )


def _warned(found: Findings) -> tuple[str, ...]:
    official = found.settings.official
    compared = [len(set(ranks) & set(found.book.systems)) for ranks in official.values()]
    fewest = min(compared, default=None)
    return tuple(cautions(EvaluatedGrades(found.book, found.main, found.source.own_bank, fewest)))


def _tiles(found: Findings) -> Iterator[tuple[str, str]]:
    book = found.book
    cells = sum(int((q.ratings[: q.pool_size] != MISSING).sum()) for q in book.queries)
    yield _tile(len(book.systems), "system")
    yield _tile(len(book.queries), "query")
    yield _tile(sum(len(q.item_ids) for q in book.queries), book.grader.kind, " in the bank")
    yield _tile(sum(q.pool_size for q in book.queries), "passage", " in the pool")
    yield _tile(cells, "cell", " graded")


def _tile(number: int, noun: str, rest: str = "") -> tuple[str, str]:
    shown, _, name = counted(number, noun).partition(" ")
    return shown, name + rest


# ---- the lines -----------------------------------------------------------------------------------


def _best(found: Findings) -> Iterator[Line]:
    systems = found.tested.systems
    if not systems:
        return
    best, rest = systems[0], systems[1:]
    if best.mean.mean is None:
        yield Line("Best", f"{found.name} is undefined for every system.", "leaderboard", "doubt")
        return
    top = round(best.mean.mean, 10)
    equal = sum(row.mean.mean is not None and round(row.mean.mean, 10) == top for row in rest)
    who = (
        f"{best.system} and {equal} more share the best" if equal else f"{best.system} has the best"
    )
    said = f"{who} {found.name}, {best.mean.mean:.3f}"
    if best.low is not None and best.high is not None:
        level = percent(1 - found.settings.testing.alpha)
        said += f" ({level} interval {best.low:.3f} to {best.high:.3f})"
    tested = found.tested
    behind = sum(tested.settings.means_differ(pair) for pair in tested.pairs if pair.first == 0)
    if not rest or best.low is None:
        yield Line("Best", f"{said}.", "leaderboard")
        return
    limits = not_excluded(best.mean.queries, 1 - tested.settings.alpha)
    yield Line(
        "Best",
        f"{said}; {_others(len(rest) - behind, len(rest))} {OVER_ALL}. {limits}.",
        "leaderboard",
        "doubt" if behind < len(rest) else "holds",
    )


def _others(open_: int, rest: int) -> str:
    if not open_:
        return "every other system has a lower mean"
    if open_ == rest:
        return "no other system is shown to have a lower mean"
    are = "are" if open_ > 1 else "is"
    return f"{open_} of the {rest} others {are} not shown to have a lower mean"


def _apart(found: Findings) -> Iterator[Line]:
    tested = found.tested
    pairs = [pair for pair in tested.pairs if pair.p is not None]
    if not pairs:
        return
    apart = sum(bool(tested.settings.differs(pair)) for pair in pairs)
    yield Line(
        "Can systems be told apart?",
        f"{apart:,} of {counted(len(pairs), 'pair')} ({apart / len(pairs):.0%}) do not behave "
        f"alike in {found.name} on {counted(len(found.main.query_ids), 'query')}.",
        "differences",
    )


def _choices(found: Findings) -> Iterator[Line]:
    yield from filter(None, [choices_line(found.sensitivity)])


def _official(found: Findings) -> Iterator[Line]:
    exact = found.correlation
    if exact is None:
        return
    statistic = exact.statistics[-1]
    for official in exact.officials:
        known = {
            heading(one.measure, one.min_rating): one.estimate.value
            for one in exact.found
            if one.official == official and one.statistic == statistic.name
            # which follows Cover too closely to speak for or against it
            if not one.measure.startswith("nCover")
        }
        values = {name: value for name, value in known.items() if value is not None}
        if not values:
            continue
        shown = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        said = f"{statistic.meaning} with {official}: {shown}."
        own = values.get(found.name)
        weakest = own is not None and len(values) > 1 and own <= min(values.values())
        if weakest:
            said += f" The figures below show {found.name}, which agrees least of these."
        yield Line("Official leaderboard", said, "official", "doubt" if weakest else "")


def _people(found: Findings) -> Iterator[Line]:
    said, doubt = [], False
    for block in found.agreement[: len(LAYOUTS)]:
        kappa = block.estimates.get("kappa")
        if kappa is not None and kappa.value is not None:
            said.append(f"{block.layout.lower()} {bounded(kappa)}")
            doubt = doubt or (kappa.low is not None and kappa.low <= 0)
    if said:
        yield Line(
            "Agreement with people",
            f"Kappa of labels with judgments: {', '.join(said)}.",
            "judgments",
            "doubt" if doubt else "",
        )
    else:
        yield Line("Agreement with people", "Nobody judged what was graded.", "", "doubt")


def _decisions(found: Findings) -> Iterator[Line]:
    book = found.book
    if book.oversight.cells:
        yield Line("Decisions", f"Included: {said_by_people(book.oversight)}.", "leaderboard")
    if book.left_out.cells:
        yield Line("Decisions", f"Left out: {said_by_people(book.left_out)}.", "evaluated", "doubt")
    if not book.oversight.cells and not book.left_out.cells:
        yield Line("Decisions", "People decided no cell.", "")


def _reliability(found: Findings) -> Iterator[Line]:
    yield from filter(None, [reliability_line(found.reliability)])


def _attacks(found: Findings) -> Iterator[Line]:
    if found.source.gaming and (line := attacks_line(found.source.gaming)):
        yield line._replace(section="certificate")


_PARTS = (_best, _apart, _choices, _official, _people, _decisions, _reliability, _attacks)
