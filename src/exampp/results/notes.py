"""Notes on a result, each with a code, a severity and values.

A check is a function of one context that yields notes; `notes_of` runs checks and joins notes that
differ in their subject alone. Pages, tables, reports, verdicts and gates select notes by code and
severity, never by text: each sentence exists once, in `NOTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import Self, TypeVar

DRAFT = "DRAFT GRADES"
"""The label of tables, figures and pages of draft grades."""
_SUBJECT = "\0"
"""Stands in a sentence for what it is about, so that notes of several subjects can be joined."""
_LISTED = 5
"""Names that a sentence lists before it counts the others."""


class Severity(IntEnum):
    """The degree to which a note changes the meaning of a result."""

    DETAIL = 1
    """Good to know: how something was computed."""
    NOTE = 2
    """Changes how the numbers are read."""
    WARNING = 3
    """Must not be overlooked: the numbers may mislead."""


class Note(str):
    """A sentence with its code, severity, values and the subjects that it names.

    It is a `str` subclass. Create notes with `note`.
    """

    code: str
    severity: Severity
    subjects: tuple[str, ...]
    values: Mapping[str, object]
    sentence: str

    def __new__(
        cls,
        sentence: str,
        code: str = "",
        severity: Severity = Severity.NOTE,
        subjects: Iterable[str] = (),
        values: Mapping[str, object] | None = None,
    ) -> Self:
        """Create the note of a sentence, in which `_SUBJECT` stands for the subjects."""
        named = tuple(subjects)
        note = super().__new__(cls, sentence.replace(_SUBJECT, ", ".join(named)))
        note.code, note.severity, note.subjects = code, severity, named
        note.values, note.sentence = values or {}, sentence
        return note

    def of(self, subjects: Iterable[str]) -> Note:
        """Return the same note for other subjects."""
        return Note(self.sentence, self.code, self.severity, subjects, self.values)

    def unnamed(self) -> Note:
        """Return the note without its leading subjects."""
        rest = self.sentence.removeprefix(f"{_SUBJECT}: ")
        return Note(rest, self.code, self.severity, self.subjects, self.values)


def note(code: str, *subjects: str, **values: object) -> Note:
    """Return the note of a code; lists among the values are shortened to five entries.

    Raises:
        KeyError: The code is unknown, or a value of its sentence is missing.
    """
    severity, template = NOTES[code]
    shown = {name: listed(v) if isinstance(v, list | tuple) else v for name, v in values.items()}
    sentence = template.format(subject=_SUBJECT, **shown)
    return Note(sentence, code, severity, subjects, values)


def about(subject: str, text: str) -> Note:
    """Return a note that begins with its subject: a method, a part, a grader."""
    one = text if isinstance(text, Note) else Note(text)
    return Note(f"{_SUBJECT}: {one}", one.code, one.severity, (subject,), one.values)


def listed(names: Collection[object]) -> str:
    """Return "a, b and 3 more"."""
    first = ", ".join(str(name) for name, _ in zip(names, range(_LISTED), strict=False))
    return f"{first} and {len(names) - _LISTED} more" if len(names) > _LISTED else first


Context = TypeVar("Context")
Check = Callable[[Context], Iterable[str]]
"""Looks at a context (grades, leaderboard, settings) and yields what is to be noted."""


def notes_of(
    context: Context, checks: Iterable[Check[Context]], whole: Collection[str] = ()
) -> tuple[Note, ...]:
    """Run the checks and return their notes in order, each once; see `joined`."""
    return merge_notes(chain.from_iterable(check(context) for check in checks), whole)


def merge_notes(notes: Iterable[str], whole: Collection[str] = ()) -> tuple[Note, ...]:
    """Merge notes: keep the order, drop duplicates, join notes that differ only in subject.

    `whole` lists all subjects; a sentence that applies to all of them is written without a subject.
    """
    merged: dict[str, Note] = {}
    for text in notes:
        one = text if isinstance(text, Note) else Note(text)
        known = merged.get(one.sentence)
        merged[one.sentence] = (
            one
            if known is None
            else one.of({**dict.fromkeys(known.subjects), **dict.fromkeys(one.subjects)})
        )
    return tuple(
        one.unnamed() if one.subjects and set(one.subjects) == set(whole) else one
        for one in merged.values()
    )


def with_code(notes: Iterable[str], *codes: str) -> Iterator[Note]:
    """Select the notes of some codes."""
    return (one for one in notes if isinstance(one, Note) and one.code in codes)


def without_code(notes: Iterable[str], *codes: str) -> Iterator[str]:
    """Select the notes without these codes."""
    return (one for one in notes if not (isinstance(one, Note) and one.code in codes))


def by_severity(notes: Iterable[str], most: int = 3) -> tuple[list[Note], list[Note]]:
    """Return the notes that people see under a table, at most three, and the others.

    Details are never among the first. Both lists keep the order of the notes.
    """
    every = [one if isinstance(one, Note) else Note(one) for one in notes]
    order = sorted(range(len(every)), key=lambda at: -every[at].severity)
    first = [at for at in order if every[at].severity > Severity.DETAIL][:most]
    return [every[at] for at in sorted(first)], [
        one for at, one in enumerate(every) if at not in first
    ]


def more_notes(notes: Collection[str]) -> str:
    """Return "2 more notes"."""
    return f"{len(notes)} more {'note' if len(notes) == 1 else 'notes'}"


def labelled(text: str, *, draft: bool) -> str:
    """Return a caption or title, prefixed with "draft" if it is about draft grades."""
    return f"{DRAFT}: {text}" if draft else text


# ---- the sentences -----------------------------------------------------------------------------

_D, _N, _W = Severity.DETAIL, Severity.NOTE, Severity.WARNING
NOTES: Mapping[str, tuple[Severity, str]] = {
    # grades
    "draft": (_W, "These are draft grades: good for trying things out, not for conclusions."),
    "grade-readings": (_D, "{text}"),
    "reading-warning": (_W, "{text}"),
    "grades": (_N, "{text}"),
    "bank-inferred": (
        _W,
        "No bank given; using the items found in the grades, so Cover may be overestimated.",
    ),
    "cells-ungraded": (_N, "Cells without a grade in the whole collection: {states}."),
    "prerequisite": (_W, "{cause}."),
    # leaderboards: queries
    "policy": (_N, "{family} follow the policy {policy}."),
    "subtopics-joined": (
        _D,
        "For Cover, all rankings of a system for a query and its subtopics are joined.",
    ),
    "subtopics-separate": (_D, "For other measures each subtopic is a separate query."),
    "subtopics-averaged": (
        _D,
        "Cover is the mean over the subtopics of a query, then over queries; for other measures "
        "each subtopic is a separate query.",
    ),
    "subtopics-pooled": (
        _D,
        "The subtopic rankings of a system are interleaved into one ranking per query.",
    ),
    "queries-without-items": (_N, "Left out of {family}, having no items: {queries}."),
    "queries-without-labels": (
        _N,
        "Left out of the ranking measures, having no graded passage: {queries}.",
    ),
    "one-query": (_W, "{subject}: Only one query counts, so there is no standard error."),
    "unanswered-by-all": (_N, "{subject}: No system answers {queries}: {fate}."),
    "unanswered": (_N, "{subject}: Queries {what} are {fate}: {systems}."),
    # leaderboards: Cover and nuggets
    "cover-ungraded": (
        _N,
        "Up to {worst} of the cells that {subject} reads have no grade: {fate}.",
    ),
    "cover-bounds": (
        _N,
        "More than 1% of the cells that decide {subject} have no grade: brackets show the lowest "
        "and highest possible score (retry with exampp grade).",
    ),
    "ncover-undefined": (
        _N,
        "Left out of {subject}, as no graded passage covers anything: {queries}.",
    ),
    "cover-skipped": (_N, "{subject} leaves out queries without a graded cell: {systems}."),
    "importance-invalid": (
        _N,
        "Importances other than vital and okay are invalid, and such nuggets count in NuggetAll "
        "alone: {words}.",
    ),
    "importance-missing": (
        _W,
        "The bank does not say which items are vital or okay, so {measures} have no value. Import "
        "a bank that does: nuggetizer's, or one with a column importance.",
    ),
    "nuggets-undefined": (
        _N,
        "Left out of {subject}, as none of their nuggets is {counted}: {queries}.",
    ),
    "chance": (_N, "Chance level of {measure}: {drawn} score {values}{average}."),
    # verdicts
    "no-signal": (_W, "Every grade is {rating}: the grader tells nothing apart."),
    "few-queries": (
        _W,
        "Only {counts}: differences between systems are uncertain. {usual} queries are a usual "
        "minimum, 50 are better.",
    ),
    "one-family": (
        _W,
        "By their names, the grader {model} and {count} belong to one family of models "
        "({families}): {systems}. Models tend to favour texts of their own kind.",
    ),
    "own-bank": (_W, "{text}"),
    "few-systems": (
        _W,
        "Rank correlations rest on {systems}: with fewer than {least} they say little.",
    ),
    # leaderboards: ranking measures
    "passages-ungraded": (_N, "Up to {worst} of the passages that {subject} reads have no grade."),
    "labels-ungraded": (
        _N,
        "{share:.1%} of the cells of ranked passages have no grade, so labels of passages and "
        "{subject} may be wrong, mostly too low. No bounds are known.",
    ),
    "no-relevant": (
        _N,
        "{count} of {queries} queries have no relevant passage and count 0 for every system: "
        "{measures}.",
    ),
    "no-relevant-from": (
        _N,
        "From rating {subject} on, {count} of {queries} queries have no relevant passage and count "
        "0 for every system: {measures}.",
    ),
    "weights-ignored": (_D, "All items count alike, without the weights of the bank: {measures}."),
    "ranks-contradict": (
        _N,
        "{count} rankings have scores that contradict their ranks: ranking measures follow the "
        "scores, as trec_eval does; Cover follows the ranks.",
    ),
    # quality of the exam
    "items-two-systems": (
        _W,
        "Only {systems}: correlations of items with the rest of the exam are undefined.",
    ),
    "items-few-systems": (
        _W,
        "Only {systems}: with fewer than {usual} the numbers of single items are mostly chance.",
    ),
    "no-query-halves": (_D, "One query cannot be split into halves."),
    "no-item-halves": (_D, "Every query has only 1 item, so items cannot be split into halves."),
    "items-repeated": (
        _N,
        "{count} with the words and grades of another item of the query count once in reliability "
        "and correlations: {items}.",
    ),
    "items-same": (
        _N,
        "{constant} of {distinct} items separate no systems (covered by all: {all_pass}, by none: "
        "{all_fail}). {statistic} without them: {varying}.",
    ),
    "items-columns": (
        _D,
        "same: items with one value for all systems. < 0: items with a negative correlation with "
        "the rest of the exam. r: correlation of random halves over systems; SB: of the whole exam "
        "by Spearman-Brown; tau: Kendall's tau-b of the leaderboards of the halves. r depends on "
        "outliers, tau does not.",
    ),
    "items-jackknife": (
        _D,
        "{statistic} without any one system: at least {lowest} (without {system}); jackknife "
        "standard error {error}.",
    ),
    "chance-unknown": (
        _D,
        "The chance level of {measure} is unknown, because no graded passage was judged 0.",
    ),
    "items-unjudged": (
        _D,
        "Judgments do not count for items: every query has fewer than {least} graded passages on "
        "one side, relevant or not.",
    ),
    "items-ungraded": (_N, "{share:.1%} of the cells have no grade and count as not covered."),
    "items-unanswered": (
        _N,
        "{systems} did not answer some queries (up to {most}), whose items count as not covered.",
    ),
    "items-negative": (_N, "{items} with a negative correlation with the rest of the exam (rest)."),
    "items-negative-without": (
        _N,
        "{items} with a negative correlation once {system} is left out (without).",
    ),
    "items-not-relevant": (
        _N,
        "{items} covered by at least {least} passages that people judged not relevant (not), at "
        "least as often as by relevant ones.",
    ),
    "items-shown": (_N, "The worst {limit} of {count} items are shown (--limit)."),
    "no-items-left": (_N, "No item is left."),
    "no-items-removed": (_N, "No item is left out."),
    "items-removed": (_N, "Kendall's tau-b of the orders with and without {items}: {tau}."),
    "queries-emptied": (_N, "No item is left in {queries}."),
    "items-removed-official": (
        _N,
        "Kendall's tau-b with {official}: {before} with all items, {after} without these.",
    ),
    # reliability
    "reliability-undefined": (_W, "Reliability is undefined{where}, because {reason}."),
    "no-system-variance": (
        _W,
        "{queries} do not show that the systems differ ({among}): their estimated variance is "
        "{variance}{more}.",
    ),
    "target-reached": (_N, "The estimate reaches the target {among}."),
    "target-estimated": (
        _N,
        "The estimate reaches the target {among}; no interval shows that the coefficient does.",
    ),
    "next-step": (_N, "Best next step {among}: {best}; {other}{most}."),
    "reliability-no-interval": (_N, "No confidence interval{where}: {reason}."),
    "negative-variances": (_D, "Negative variances count as 0: {variances}."),
    "no-item-facet": (_N, "Items are not part of this study, because {reason}."),
    "reliability-method": (
        _D,
        "E\u03c1\u00b2: the share of the variance of differences between these systems that other "
        "queries would show again; \u03a6: the same of the scores themselves. Intervals ({level}) "
        "hold for these systems and for queries like these, by resampling the queries and one "
        "added query. Errors are standard errors of measurement, in units of the score.",
    ),
    "queries-not-common": (_N, "{queries} left out, which {verb} not count for every system."),
    # corrected leaderboards
    "all-judged-pool": (_N, "People judged the whole pool: corrected scores are theirs, exactly."),
    "all-judged-queries": (
        _N,
        "People judged the whole pool: only the choice of queries is uncertain.",
    ),
    "corrected-method": (
        _D,
        "Grades predict the label of each of the {units} {unit}s, and the sampled labels correct "
        "the prediction, each divided by its probability of being drawn. The result is unbiased, "
        "whatever the grades are.",
    ),
    "corrected-over-pool": (
        _D,
        "Intervals hold for these queries and this pool; --over queries gives wider intervals, for "
        "queries like these.",
    ),
    "corrected-over-queries": (
        _D,
        "Intervals hold for queries like these {queries}: they include the draw of the sample and "
        "the choice of queries.",
    ),
    "corrected-no-interval": (
        _N,
        "No interval for {scores}: fewer than {least} drawn {unit}s count for the system{few}, "
        "equal labels, or a corrected score outside 0 and 1.",
    ),
    "pairs-decided": (
        _N,
        "{decided} of {pairs} are decided, all at once at {level}. A rank set holds every rank "
        "that remains possible for a system.",
    ),
    "pairs-unresolved": (
        _N,
        "{pairs} unresolved: the systems differ on fewer than {few}, or by the same amount "
        "everywhere. This does not show that they are equal.",
    ),
    "pairs-identical": (_D, "{pairs} with identical rankings: the difference is exactly 0."),
    "corrected-orders": (
        _D,
        "Kendall's tau of the orders by grades and corrected: {tau}. A sample corrects the level "
        "first and the order last; its noise lowers every tau.",
    ),
    "corrected-few-labels": (
        _W,
        "With fewer than about {labels} labels the order by the grades alone may be better: on "
        "TREC DL 2019 its tau with the truth was .86, and .66 after correction by 100 labels.",
    ),
    "one-system": (_N, "Only one system, so no pair is compared."),
    # calibration
    "calibration-few-queries": (
        _W,
        "Only {queries} have judgments: too few for a reliable calibration.",
    ),
    "calibration-transfer": (_N, "{text}"),
    "judged-ungraded": (_N, "{text}"),
    "calibration-interval": (
        _N,
        "Kappa on other queries like these may be {low} to {high}: do not choose between models by "
        "a smaller difference.",
    ),
    "calibration-method": (
        _D,
        "{model}, tested on {folds} of whole held-out queries. Cut points on the expected label "
        "give the labels; they maximize kappa on the other folds.",
    ),
    "calibration-columns": (
        _D,
        "before: the mean rating as a probability, and the best rating stretched to the labels. "
        "constant: the share of relevant passages of the other folds.",
    ),
    # bias of the grader
    "grader-bias": (_W, "{text}"),
    "bias-columns": (
        _D,
        "matched: mean rating above that of other systems' passages with the same judgment. "
        "linked: rating minus judgment, on one scale by equal shares. A bias is reported where "
        "both agree (95% for all systems at once), if people err no more than the grader.",
    ),
    "bias-unchecked": (
        _N,
        "{checked} of {returned} returned passages are judged and graded; the others are not "
        "checked.",
    ),
    # other choices
    "combinations-correlation": (_N, "Kendall's tau between two combinations: {taus}."),
    "strongest-choice": (
        _N,
        "The order depends most on the {choice} (median tau {tau} where only they differ).",
    ),
    "combinations-official": (
        _N,
        "Kendall's tau with {official}: {taus} over {count}. Do not report the best one alone.",
    ),
    "combinations-official-undefined": (
        _N,
        "Kendall's tau with {official} is undefined in every combination.",
    ),
    "combinations-impossible": (_N, "Left out, because {reason}: {combinations}."),
    "combinations-equal": (_D, "{total} tried; {equal} duplicates dropped."),
    # smaller exams
    "choice-meaning": (
        _D,
        "Items are chosen without human labels. pooled: every item counts equally; Cover: the mean "
        "over the queries that still have items.",
    ),
    "choice-held-out": (
        _N,
        "Systems held out: over {splits} random halves, items are chosen on one half of the "
        "systems and rank the other half; better is how often they beat all items. Compare with as "
        "many random items.",
    ),
    "choice-not-held-out": (
        _N,
        "No systems are held out, because fewer than {least} are in both leaderboards: items are "
        "tested on the systems that they were chosen on.",
    ),
    "choice-evidence": (
        _N,
        "Only one collection (TREC DL 2019) shows gains of such a choice: report the whole exam "
        "too.",
    ),
}
"""Every note: how severe it is, and its sentence; `{subject}` lists what it is about."""
