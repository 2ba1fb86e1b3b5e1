"""Counts of grades by rule of reading, and the sentences that describe them.

Every grade stores the rule that read it. A leaderboard of ratings stated in the replies differs
from one of ratings that follow from replies without a rating.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.records.graders import CONTENT_SETTING, GraderIdentity, State
from exampp.records.wording import counted, excerpt, quoted

PLAIN = frozenset({"rated", "json"})
"""Rules for which the rating is the one in the reply."""
IMPORTED = "imported"
"""The rating comes from a file without a reply, or without rules that read the reply."""
OTHERWISE = "read otherwise"
"""The rating comes from a file beside a reply that exampp reads as another rating."""
CALIBRATED = "calibrated"
"""The label is computed from the ratings of other graders, by a calibration."""
VOTED = "voted"
"""The rating is a vote of several graders."""
WITHOUT_EXAMPLE = PLAIN | {IMPORTED, CALIBRATED, VOTED}
LITTLE_MASS = "little mass"
"""The labels of a prompt have too little of the probability for one to be a grade."""
MATCHED = frozenset({"exact", "true-false", "normalised", "edit-distance"})
"""Rules by which an extracted answer matches a known one."""
UNMATCHED = "unmatched"

_LISTED = 5
LEAST_KEYED = 20
LEAST_MATCHING = 0.05
"""A smaller share of at least `LEAST_KEYED` answers that match their keys is worth a warning."""

NO_ANSWER = "no answer"
"""The rule by which an extracted answer that says there is none is not correct."""
_BECAUSE: Mapping[str, str] = {
    "answered": "the reply is text without a number",
    "unanswerable": "the reply says that there is no answer",
    NO_ANSWER: "the extracted answer says that there is none; no model was needed",
    UNMATCHED: "the extracted answer matches no known one",
    **dict.fromkeys(MATCHED, "the extracted answer matches a known one"),
}
_EXTRACTED = "the reply is an answer"
_RATES = ("is a rating that the reply gives", "are ratings that the reply gives")
_AS_THE_PAPERS = "read as the papers' own program does"
_OTHERS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(PLAIN, _RATES),
    "rubric": (f"is {_AS_THE_PAPERS}", f"are {_AS_THE_PAPERS}"),
    IMPORTED: ("is as the file has it", "are as the file has them"),
    VOTED: ("is a vote of several graders", "are votes of several graders"),
    CALIBRATED: ("is a label of the calibration", "are labels of the calibration"),
}
"""Phrases for one grade and for several, for rules with an indirect rating."""
_UNPARSED: Mapping[str, str] = {
    "off-scale": "off the scale",
    "several": "several ratings",
    "hedged": "a rating denied, doubted or asked for",
    "no verdict": "numbers or words that rate nothing",
    "no value": "a field without a rating",
    "no number": "text without a number",
    "unfinished thought": "a thought that does not end",
    "error": "error messages",
    LITTLE_MASS: "labels that are less likely than all else",
    "json": "JSON without a rating",
    "empty": "without a word",
    IMPORTED: "without a rating in the file",
}


@dataclass(frozen=True, slots=True)
class RuleCount:
    """The number of cells of one state that one rule gave one rating (None without one).

    `example` is one of the replies, None for the rules `WITHOUT_EXAMPLE` and if there is none.
    """

    state: State
    rule: str
    rating: int | None
    cells: int
    example: str | None = None


def merge_counts(readings: Iterable[RuleCount]) -> list[RuleCount]:
    """Merge counts by rule and state, most cells first; ratings that differ become None."""
    merged: dict[tuple[State, str], RuleCount] = {}
    for one in readings:
        key = (one.state, one.rule)
        earlier = merged.get(key)
        merged[key] = one if earlier is None else _both(earlier, one)
    return sorted(merged.values(), key=lambda one: (one.state, -one.cells))


def _both(one: RuleCount, other: RuleCount) -> RuleCount:
    rating = one.rating if one.rating == other.rating else None
    example = one.example if one.example is not None else other.example
    return RuleCount(one.state, one.rule, rating, one.cells + other.cells, example)


def by_state(readings: Iterable[RuleCount]) -> dict[str, int]:
    """Return how many cells are in each state, by the state's name in lower case."""
    counts_by_state: dict[State, int] = {}
    for one in readings:
        counts_by_state[one.state] = counts_by_state.get(one.state, 0) + one.cells
    return {state.name.lower(): counts_by_state[state] for state in sorted(counts_by_state)}


def describe_readings(readings: Sequence[RuleCount], grader: GraderIdentity) -> Iterator[str]:
    """Describe the rules that made the grades; nothing if all are the ratings in the replies.

    Draft grades need no reply.
    """
    graded = [one for one in readings if one.state is State.GRADED]
    if grader.is_draft or all(one.rule in PLAIN for one in graded):
        return
    total = sum(one.cells for one in graded)
    parts = list(_phrases(graded, grader))
    if len(parts) == 1:
        verb = parts[0].partition(" ")[2]
        yield f"{'The only grade' if total == 1 else f'All {total:,} grades'} {verb}."
    elif parts:
        yield f"Of {total:,} grades {', '.join(parts)}."


def _phrases(graded: Sequence[RuleCount], grader: GraderIdentity) -> Iterator[str]:
    """Yield a phrase for each rule after "Of so many grades", plain ratings first."""
    merged: dict[tuple[str, str], list[RuleCount]] = {}
    for one in graded:
        merged.setdefault(_phrase(one, grader), []).append(one)
    several = sorted(merged.items(), key=lambda pair: (pair[0] != _RATES, -_cells(pair[1])))
    for (single, plural), counts in several:
        cells = _cells(counts)
        example = next((one.example for one in counts if one.example), None)
        such_as = "" if example is None else f" (such as {quoted(example)})"
        yield f"{cells:,} {single if cells == 1 else plural}{such_as}"


def _cells(counts: Sequence[RuleCount]) -> int:
    return sum(one.cells for one in counts)


def _phrase(one: RuleCount, grader: GraderIdentity) -> tuple[str, str]:
    """Return the phrases for one grade and for several grades of a rule."""
    if one.rule in _OTHERS:
        return _OTHERS[one.rule]
    if one.rule == OTHERWISE:
        rest = f"{one.rating} in the file, though exampp reads the reply otherwise"
    elif one.rule == "answered" and one.rating == grader.highest:
        rest = f"{one.rating} because {_EXTRACTED}"
    else:
        because = _BECAUSE.get(one.rule, f"of the rule {one.rule!r}")
        rest = f"{one.rating} because {because}"
    return f"is {rest}", f"are {rest}"


class PromptDeviations(NamedTuple):
    """Numbers of passages that were cut, and of cells requested without parameters, by name."""

    cut: int = 0
    without: tuple[tuple[tuple[str, ...], int], ...] = ()

    def describe(self) -> Iterator[str]:
        """Yield a sentence per deviation, without a full stop; nothing if there is none."""
        if self.cut:
            passages = "1 passage was" if self.cut == 1 else f"{self.cut:,} passages were"
            yield f"{passages} cut to fit what the model takes"
        for names, cells in self.without:
            cell = "1 cell was" if cells == 1 else f"{cells:,} cells were"
            yield f"{cell} asked without {', '.join(names)}, which the server refuses"


def reading_warnings(readings: Sequence[RuleCount], grader: GraderIdentity) -> Iterator[str]:
    """Return warnings about the readings, with what to do.

    They report a large share of replies that say something else than a label, and extracted answers
    that (nearly) never match a known one.
    """
    little = sum(one.cells for one in readings if one.rule == LITTLE_MASS)
    if little:
        share = little / _cells(readings)
        yield (
            f"In {little:,} of {_cells(readings):,} cells ({share:.1%}) the labels together are "
            "less likely than all else that the model could say, so that none of them is a grade "
            f"({LITTLE_MASS}). {_INSTEAD.get(str(grader.settings.get('name')), '')}".rstrip()
        )
    matching = sum(one.cells for one in readings if one.rule in MATCHED)
    keyed = matching + sum(one.cells for one in readings if one.rule == UNMATCHED)
    if keyed >= LEAST_KEYED and matching < LEAST_MATCHING * keyed:
        matches = "none matches" if not matching else f"only {matching:,} match"
        yield (
            f"Of {keyed:,} extracted answers {matches} a known one: the keys may be worded "
            f"otherwise. A model can compare them: exampp grade COLLECTION {_verifier(grader)} "
            f"--prompt answer-verification --answers-of {grader.key[:8]}"
        )


_INSTEAD = {
    "hf": "--decode generate has it write what it would say, or choose another prompt or model.",
    "openai": "--decode text has it write what it would say, or choose another prompt or model.",
}


def _verifier(grader: GraderIdentity) -> str:
    """Return the options of a grader that can verify answers: the extracting one, if it can.

    A model that marks spans in passages cannot, and the place of a folder does not identify it.
    """
    settings = grader.settings
    backend = settings.get("name")
    if backend == "openai":
        return f"--grader openai --model {shlex.quote(grader.model)}"
    if backend != "hf" or settings.get("decode") == "span":
        return "--grader GRADER --model MODEL"
    known = CONTENT_SETTING not in grader.settings
    return f"--grader hf --model {shlex.quote(grader.model) if known else 'FOLDER'}"


def describe_items_without_key(item_ids: Sequence[str]) -> str:
    """Describe items without an answer key and the effect on verification: 3 items ...: a, b, c."""
    listed = ", ".join(item_ids[:_LISTED])
    more = f" and {len(item_ids) - _LISTED} more" if len(item_ids) > _LISTED else ""
    one = len(item_ids) == 1
    have, them, their = ("item has", "it", "its") if one else ("items have", "them", "their")
    return (
        f"{len(item_ids)} {have} no answer key, so that no answer to {them} can be verified and "
        f"{their} cells have no grade: {listed}{more}. Give {them} one (exampp bank edit "
        f"COLLECTION key ITEM ANSWER) or retire {them}"
    )


def describe_items_without_text(textless: int, items: int, kind: str) -> str:
    """Describe items without imported text, and how to import it; empty if all have one."""
    if not textless:
        return ""
    file = "QUERIES" if kind == "query" else "BANK"
    return (
        f"{textless} of {counted(items, kind)}: text not imported, so that no grader can be asked "
        f"and no rule about texts applies. Import it: exampp import COLLECTION {file}"
    )


def describe_judged_only(cells: int, of: int) -> str:
    """Describe cells of judged passages that no run ranks, graded on request; or return ""."""
    if not cells:
        return ""
    return (
        f"{cells} cells ({cells / of:.0%} of {of}) are of passages that people judged and no run "
        "ranks. They are graded only on request: exampp grade --pool judged"
    )


def meaning(one: RuleCount, grader: GraderIdentity) -> str:
    """Describe how a rule reads a reply."""
    if one.state is not State.GRADED:
        return _UNPARSED.get(one.rule, one.rule)
    if one.rule in _OTHERS:
        return _OTHERS[one.rule][0].removeprefix("is ").removeprefix("a ")
    if one.rule == OTHERWISE:
        return "the file has another rating than the reply, as exampp reads it"
    if one.rule == "answered" and one.rating == grader.highest:
        return _EXTRACTED
    return _BECAUSE.get(one.rule, one.rule)


COLUMNS = ("state", "rule", "meaning", "rating", "cells", "example")
"""The columns of `rules_table`."""


def rules_table(
    readings: Iterable[RuleCount], grader: GraderIdentity
) -> list[tuple[str, str, str, int | None, int, str | None]]:
    """Return a row of a table for each rule, most cells first."""
    return [
        (
            one.state.name.lower(),
            one.rule,
            meaning(one, grader),
            one.rating,
            one.cells,
            None if one.example is None else excerpt(one.example),
        )
        for one in merge_counts(readings)
    ]


def without_grade(
    pending: Mapping[str, int], readings: Sequence[RuleCount] = (), most: int | None = None
) -> str:
    """Describe the cells without a grade, such as 5 unparsed (3 empty, ...), 2 refused.

    With `most`, only that many of the most frequent reasons are named; the rest is counted.
    """
    rules: dict[str, list[RuleCount]] = {}
    for one in readings:
        if one.state is State.UNPARSED:
            rules.setdefault(one.rule, []).append(one)
    several = sorted(rules.values(), key=_cells, reverse=True)
    rest = [] if most is None else several[most:]
    why = "; ".join(_why(counts) for counts in several[:most])
    if rest:
        why += f"; {sum(map(_cells, rest)):,} for other reasons, which the report lists"
    return ", ".join(
        f"{count:,} {state}" + (f" ({why})" if why and state == "unparsed" else "")
        for state, count in pending.items()
        if count
    )


def _why(counts: Sequence[RuleCount]) -> str:
    rule = counts[0].rule
    example = next((one.example for one in counts if one.example), None)
    such_as = "" if example is None else f", such as {quoted(example)}"
    return f"{_cells(counts):,} {_UNPARSED.get(rule, rule)}{such_as}"
