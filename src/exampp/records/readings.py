"""Counts of grades by rule of reading, and the sentences that describe them.

Every grade stores the rule that read it, because ratings stated in replies are more reliable than
ratings inferred from replies.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exampp.records.cascade import CASCADE_RULES
from exampp.records.graders import CONTENT_SETTING, GraderIdentity, State
from exampp.records.wording import counted, excerpt, first_names, quoted

PLAIN = frozenset({"rated", "json"})
"""Rules that take the rating from the reply."""
IMPORTED = "imported"
"""The rating comes from a file without a reply or reading rules."""
OTHERWISE = "read otherwise"
"""The rating comes from a file; exampp reads the reply differently."""
CALIBRATED = "calibrated"
"""The label is computed by a calibration."""
VOTED = "voted"
"""The rating is combined from grades of other graders."""
WITHOUT_EXAMPLE = PLAIN | {IMPORTED, CALIBRATED, VOTED, *CASCADE_RULES}
LITTLE_MASS = "little mass"
"""The labels of the prompt have too little probability for a grade."""
EVIDENCE_NOT_FOUND, WITHOUT_EVIDENCE = "evidence not found", "without evidence"
"""The reply quotes evidence that is not in the passage, or rates above the lowest without any."""
MATCHED = frozenset({"exact", "true-false", "normalised", "edit-distance", "contained"})
"""Rules by which an extracted answer matches the answer key."""
UNMATCHED = "unmatched"

_LISTED = 5
LEAST_KEYED = 20
LEAST_MATCHING = 0.05
"""Minimum share of matching answers without a warning, given `LEAST_KEYED` answers."""

NO_ANSWER = "no answer"
"""The rule for a reply that there is no answer."""
_BECAUSE: Mapping[str, str] = {
    "answered": "the reply is text without a number",
    "unanswerable": "the reply says that there is no answer",
    NO_ANSWER: "the extracted answer says that there is none, without a request",
    UNMATCHED: "the extracted answer does not match the answer key",
    **dict.fromkeys(MATCHED, "the extracted answer matches the answer key"),
}
_EXTRACTED = "the reply is an answer"
_RATES = ("is a rating stated in the reply", "are ratings stated in the reply")
_AS_THE_PAPERS = "read as the papers' own program does"
_OTHERS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(PLAIN, _RATES),
    "rubric": (f"is {_AS_THE_PAPERS}", f"are {_AS_THE_PAPERS}"),
    EVIDENCE_NOT_FOUND: (
        "is a rating whose evidence is not in the passage",
        "are ratings whose evidence is not in the passage",
    ),
    WITHOUT_EVIDENCE: ("is a rating without evidence", "are ratings without evidence"),
    IMPORTED: ("is copied from the file", "are copied from the file"),
    VOTED: ("is combined from other grades", "are combined from other grades"),
    CALIBRATED: ("is a label of the calibration", "are labels of the calibration"),
    **CASCADE_RULES,
}
"""Phrases (singular, plural) for rules with an indirect rating."""
_UNPARSED: Mapping[str, str] = {
    "off-scale": "off the scale",
    "several": "several ratings",
    "hedged": "a denied, doubtful or requested rating",
    "no verdict": "numbers or words that are not ratings",
    "no value": "a field without a rating",
    "no number": "text without a number",
    "unfinished thought": "an unfinished thought",
    "error": "error messages",
    LITTLE_MASS: "labels that are too unlikely",
    "json": "JSON without a rating",
    "empty": "without a word",
    IMPORTED: "without a rating in the file",
}


@dataclass(frozen=True, slots=True)
class RuleCount:
    """Number of cells with one state, rule and rating (None: no rating).

    `example` is one of the replies; None for rules `WITHOUT_EXAMPLE` or without replies.
    """

    state: State
    rule: str
    rating: int | None
    cells: int
    example: str | None = None


def merge_counts(readings: Iterable[RuleCount]) -> list[RuleCount]:
    """Merge counts by rule and state, largest first; different ratings become None."""
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
    """Count cells by state, with lower-case names."""
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
    """Yield a phrase for each rule, stated ratings first."""
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
    """Return the singular and plural phrases of a rule."""
    if one.rule in _OTHERS:
        return _OTHERS[one.rule]
    if one.rule == OTHERWISE:
        rest = f"{one.rating} in the file, but exampp reads the reply differently"
    elif one.rule == "answered" and one.rating == grader.highest:
        rest = f"{one.rating} because {_EXTRACTED}"
    else:
        because = _BECAUSE.get(one.rule, f"of the rule {one.rule!r}")
        rest = f"{one.rating} because {because}"
    return f"is {rest}", f"are {rest}"


class PromptDeviations(NamedTuple):
    """Numbers of truncated passages, and of cells requested without some parameters."""

    cut: int = 0
    without: tuple[tuple[tuple[str, ...], int], ...] = ()

    def describe(self) -> Iterator[str]:
        """Yield one sentence per deviation, without a full stop."""
        if self.cut:
            passages = "1 passage was" if self.cut == 1 else f"{self.cut:,} passages were"
            yield f"{passages} truncated to fit the context of the model"
        for names, cells in self.without:
            cell = "1 cell was" if cells == 1 else f"{cells:,} cells were"
            yield f"{cell} requested without {', '.join(names)}, which the server rejects"


def reading_warnings(readings: Sequence[RuleCount], grader: GraderIdentity) -> Iterator[str]:
    """Return warnings about the readings, with remedies.

    They report many replies without a label, and extracted answers that (almost) never match the
    answer key.
    """
    little = sum(one.cells for one in readings if one.rule == LITTLE_MASS)
    if little:
        share = little / _cells(readings)
        yield (
            f"In {little:,} of {_cells(readings):,} cells ({share:.1%}) the model most likely "
            f"replies something other than a label, so they have no grade ({LITTLE_MASS}). "
            f"{_INSTEAD.get(str(grader.settings.get('name')), '')}".rstrip()
        )
    matching = sum(one.cells for one in readings if one.rule in MATCHED)
    keyed = matching + sum(one.cells for one in readings if one.rule == UNMATCHED)
    if keyed >= LEAST_KEYED and matching < LEAST_MATCHING * keyed:
        matches = "none matches" if not matching else f"only {matching:,} match"
        yield (
            f"Of {keyed:,} extracted answers {matches} the answer key: keys may be worded "
            f"differently. A model can compare them: exampp grade COLLECTION {_verifier(grader)} "
            f"--prompt answer-verification --answers-of {grader.key[:8]}"
        )


_INSTEAD = {
    "hf": "Use --decode generate to get full replies, or choose another prompt or model.",
    "openai": "Use --decode text to get full replies, or choose another prompt or model.",
}


def _verifier(grader: GraderIdentity) -> str:
    """Return the options of a grader that can verify answers, preferably this one.

    Models that extract spans cannot, and a folder may have moved.
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
    """Describe items without an answer key and the effect on verification."""
    one = len(item_ids) == 1
    have, them, their = ("item has", "it", "its") if one else ("items have", "them", "their")
    return (
        f"{len(item_ids)} {have} no answer key, so answers to {them} cannot be verified and "
        f"{their} cells have no grade: {first_names(item_ids, _LISTED)}. Add a key (exampp bank "
        f"edit COLLECTION key ITEM ANSWER) or retire {them}"
    )


def describe_items_without_text(textless: int, items: int, kind: str) -> str:
    """Describe items without imported text, and how to import it; "" if there are none."""
    if not textless:
        return ""
    file = "QUERIES" if kind == "query" else "BANK"
    return (
        f"{textless} of {counted(items, kind)} without an imported text cannot be graded or "
        "checked "
        f"by rules about texts. Import it: exampp import COLLECTION {file}"
    )


def describe_judged_only(cells: int, of: int) -> str:
    """Describe cells of judged passages that no run ranks; "" if there are none."""
    if not cells:
        return ""
    return (
        f"{cells} cells ({cells / of:.0%} of {of}) belong to judged passages that no run ranks. "
        "They "
        "are graded only on request: exampp grade --pool judged"
    )


def meaning(one: RuleCount, grader: GraderIdentity) -> str:
    """Describe how a rule reads a reply."""
    if one.state is not State.GRADED:
        return _UNPARSED.get(one.rule, one.rule)
    if one.rule in _OTHERS:
        return _OTHERS[one.rule][0].removeprefix("is ").removeprefix("a ")
    if one.rule == OTHERWISE:
        return "the rating in the file differs from exampp's reading of the reply"
    if one.rule == "answered" and one.rating == grader.highest:
        return _EXTRACTED
    return _BECAUSE.get(one.rule, one.rule)


COLUMNS = ("state", "rule", "meaning", "rating", "cells", "example")
"""The columns of `rules_table`."""


def rules_table(
    readings: Iterable[RuleCount], grader: GraderIdentity
) -> list[tuple[str, str, str, int | None, int, str | None]]:
    """Return one row per rule, most cells first."""
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
    """Describe ungraded cells, such as "5 unparsed (3 empty, ...), 2 refused".

    `most` limits the named reasons; the others are counted.
    """
    rules: dict[str, list[RuleCount]] = {}
    for one in readings:
        if one.state is State.UNPARSED:
            rules.setdefault(one.rule, []).append(one)
    several = sorted(rules.values(), key=_cells, reverse=True)
    rest = [] if most is None else several[most:]
    why = "; ".join(_why(counts) for counts in several[:most])
    if rest:
        why += f"; {sum(map(_cells, rest)):,} for other reasons (see the report)"
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
