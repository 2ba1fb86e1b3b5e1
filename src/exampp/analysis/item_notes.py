"""What is said of items and of the exam they make, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from exampp.analysis.item_records import (
    AGAINST,
    AGAINST_WITHOUT,
    FEWEST_JUDGED,
    NOT_RELEVANT,
    ItemFindings,
)
from exampp.evaluate.measure import heading
from exampp.records.wording import counted
from exampp.stats.item_analysis import FEWEST_SYSTEMS, ranked
from exampp.stats.rank_correlation import kendall

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
