"""The sentences of all notes, by code, each with its severity."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Severity(IntEnum):
    """The effect of a note on the meaning of a result."""

    DETAIL = 1
    """Good to know: how something was computed."""
    NOTE = 2
    """Changes how the numbers are read."""
    WARNING = 3
    """Must not be overlooked: the numbers may mislead."""


_D, _N, _W = Severity.DETAIL, Severity.NOTE, Severity.WARNING
_CHANCE = "Chance level of {measure}: {drawn} score {values}{average}."
NOTES: Mapping[str, tuple[Severity, str]] = {
    # grades
    "draft": (_W, "These are draft grades: good for trying things out, not for conclusions."),
    "costs-many-items": (
        _N,
        "A prompt for several items is another grader: grade a few queries with both, and compare "
        "them with exampp analyze agreement.",
    ),
    "costs-target": (
        _N,
        "The number of cells that a measure needs depends on the grades: an estimate appears when "
        "some queries are graded (--max-queries 5), limits until then.",
    ),
    "costs-replayed": (
        _N,
        "Cells needed for a measure are estimated from the grades of {source} on {queries} "
        "queries.",
    ),
    "costs-tokens": (
        _N,
        "Tokens are estimated as {characters} characters each; after a first run, from the counts "
        "of the server.",
    ),
    "grade-readings": (_D, "{text}"),
    "reading-warning": (_W, "{text}"),
    "grades": (_N, "{text}"),
    "cascade-audit": (_N, "{text}"),
    "bank-inferred": (
        _W,
        "No bank given; using the items found in the grades, so Cover may be overestimated.",
    ),
    "cells-ungraded": (_D, "Cells without a grade in the whole collection: {states}."),
    "prerequisite": (_W, "{cause}."),
    "left-out": (_N, "Human decisions are left out: {decisions}."),
    "decisions": (_N, "Human decisions override grades: {decisions}."),
    "decisions-change-nothing": (_D, "No mean changes without human decisions."),
    "decisions-change": (
        _N,
        "Without human decisions means change by up to {change} ({where}), and {swaps} "
        "(--decisions without).",
    ),
    "once-no-groups": (
        _W,
        "No groups of duplicates, so nothing changes. --duplicates once counts marked items "
        "(exampp bank edit COLLECTION same), --duplicates found those found in the texts, too.",
    ),
    "counted-once": (
        _N,
        "{subject}: counting {groups} of duplicates ({items} items) once changes means by up to "
        "{change} ({system}); Kendall's tau of both leaderboards is {tau}.",
    ),
    # leaderboards: queries
    "query-sample": (
        _W,
        "Means are over {graded} of {of} queries, in random order: {decision}.",
    ),
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
    "queries-without-items": (_N, "Queries without items, left out of {family}: {queries}."),
    "queries-without-labels": (
        _N,
        "Queries without a graded passage, left out of the ranking measures: {queries}.",
    ),
    "one-query": (_W, "{subject}: Only one query counts, so there is no standard error."),
    "unanswered-by-all": (_N, "{subject}: No system answers {queries}: {fate}."),
    "unanswered": (_N, "{subject}: Queries {what} are {fate}: {systems}."),
    # leaderboards: Cover and nuggets
    "cover-ungraded": (
        _N,
        "Up to {worst} of the cells behind {subject} have no grade: {fate}.",
    ),
    "cover-corrected": (
        _N,
        "{subject}: corrected adds an estimate of the covered items that skipped cells miss, from "
        "{drawn} of {items} items that were drawn and graded in full; 95% intervals hold for these "
        "queries and items.",
    ),
    "cover-not-corrected": (
        _W,
        "{subject} is not corrected for skipped cells: needed cells are pending (exampp grade).",
    ),
    "corrected-no-limits": (
        _N,
        "{subject}, no interval where {why}. A larger --audit draws more items.",
    ),
    "cover-bounds": (
        _W,
        "More than 1% of the cells that decide {subject} have no grade: the leaderboard shows the "
        "lowest and highest possible score in brackets (retry with exampp grade).",
    ),
    "bank-ungraded": (
        _W,
        "{share}% or more of the cells behind every score have no grade. The bank may not belong "
        "to these grades: choose another (--bank), or grade the rest (exampp grade).",
    ),
    "ncover-undefined": (
        _N,
        "Queries where no graded passage covers an item, left out of {subject}: {queries}.",
    ),
    "cover-skipped": (_N, "{subject} leaves out queries without a graded cell: {systems}."),
    "importance-invalid": (
        _N,
        "Importances other than vital and okay are invalid, and such nuggets count in NuggetAll "
        "alone: {words}.",
    ),
    "importance-missing": (
        _W,
        "No item is vital or okay, so {measures} have no value. Import a bank with importances: "
        "nuggetizer's, or one with a column importance.",
    ),
    "nuggets-undefined": (
        _N,
        "Queries without {counted} nuggets, left out of {subject}: {queries}.",
    ),
    "chance": (_N, _CHANCE),
    "chance-low": (_D, _CHANCE),
    # verdicts
    "no-signal": (_W, "Every grade is {rating}, so scores cannot separate systems."),
    "few-queries": (
        _W,
        "Only {counts}: differences between systems are uncertain. {usual} queries are a usual "
        "minimum, 50 are better.",
    ),
    "one-family": (
        _W,
        "The grader {model} and {count} have names of one family of models ({families}): "
        "{systems}. Models tend to favour texts of their own family.",
    ),
    "own-bank": (_W, "{text}"),
    "chosen-items": (_W, "{text}"),
    "few-systems": (
        _W,
        "Only {systems} have an official rank: with fewer than {least}, rank correlations are "
        "unreliable.",
    ),
    # leaderboards: ranking measures
    "passages-ungraded": (_D, "Up to {worst} of the passages behind {subject} have no grade."),
    "labels-ungraded": (
        _W,
        "{share:.1%} of the cells of ranked passages have no grade, so passage labels and "
        "{subject} may be wrong, mostly too low, by an unknown amount.",
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
    "no-unanswerable": (
        _N,
        "No query is marked as unanswerable: write answerable = false beside it in a query file.",
    ),
    "abstention-grader": (_D, "Abstentions are those that {grader} found."),
    "abstention-ungraded": (
        _W,
        "{responses} without a grade for abstention: recognised by a rule instead.",
    ),
    "abstention-rule": (
        _N,
        "Abstentions are recognised by a rule for English: in a test it missed 3 of 30 and flagged "
        "none of 30 answers. A grader with --prompt {prompt} replaces it.",
    ),
    "abstention-credit": (
        _D,
        "Credit is {measure} of an answer, 1 for an abstention from an unanswerable query, else 0. "
        "An answer is right from {level} on.",
    ),
    "items-to-avoid": (
        _D,
        "{items} to avoid, in {queries}. Cover ignores them; Avoided is the mean of these queries.",
    ),
    "weights-ignored": (_D, "Weights of items are ignored: {measures}."),
    "ranks-contradict": (
        _N,
        "Scores contradict the ranks in {rankings}: ranking measures follow the scores, like "
        "trec_eval; Cover follows the ranks.",
    ),
    # tests and intervals
    "undefined": (_N, "{of}: {reason}."),
    "means-of-added": (_N, "{measure}: means over queries; leaderboards show the sum."),
    "unseen-failures": (_N, "{text}."),
    "no-letters": (_N, "{subject}: no letters, because there would be more than {most} groups."),
    "holm-strict": (
        _N,
        "{subject}: Holm's correction is strict for {pairs}. With --correction bh {differ} differ; "
        "the expected share of false findings among them is at most {alpha}.",
    ),
    "pairs-differ": (_D, "{subject}: pairs that differ at {alpha}, of {pairs}: {shares}{bars}."),
    "letters": (
        _N,
        "Systems that share a letter do not differ significantly at {alpha}: two-sided paired "
        "randomisation test ({how}) with {correction}. It tests whether systems behave alike on "
        "the queries, not which has the higher mean.",
    ),
    "intervals-gaffke": (
        _D,
        "Intervals ({level}, uncorrected) are those of means and differences over all queries like "
        "these (Gaffke's limits).",
    ),
    "intervals-student": (
        _N,
        "Intervals ({level}, uncorrected) are Student's, because {measure} has no known range: "
        "they assume nearly normal means.",
    ),
    "unequal-queries": (
        _N,
        "{subject}: a pair is compared on the queries that count for both, {fewest} to {most} of "
        "them.",
    ),
    "too-few-to-differ": (
        _W,
        "{subject}: no pair can differ significantly at {alpha}: the smallest possible p-value "
        "of {pairs}, with {by}, is {least} ({correction}).",
    ),
    "mean-clipped": (
        _N,
        "A mean of {measure} below 0 counts as 0; differences are those of the queries.",
    ),
    "gate-reason": (_W, "{verdict}: {where}. Reason: {why}."),
    "gate-sources": (
        _N,
        "The passages behind answers are checked too ({names}); check answers alone with "
        "--system answers.",
    ),
    "gate-method": (
        _D,
        "The interval is that of the mean over all queries like these, at {side} on either side. "
        "Passed: all of it meets the requirement; failed: none of it does.",
    ),
    "gate-sample": (
        _N,
        "Not all queries are graded: an interval includes the one that all {of} queries would give "
        "(probability {chance} for all rows together).",
    ),
    "items-gained": (
        _N,
        "{second} covers {gained} that {first} does not, and misses {lost} that {first} covers, of "
        "{items} (first {k}, rated {threshold} or better).",
    ),
    "items-unknown": (
        _W,
        "{items} unknown: a cell of the system that does not cover them has no grade.",
    ),
    "queries-not-shared": (_N, "{queries} left out, without a value for both systems."),
    "pair-method": (
        _D,
        "Interval: the mean difference over all queries like these ({how}). p: two-sided paired "
        "randomisation test ({exact}), which tests whether two systems behave alike on the "
        "queries, not which has the higher mean.",
    ),
    "covered-by": (
        _D,
        "A passage among the first {k} that is rated {threshold} or better covers an item; each "
        "system shows its best rated passage.",
    ),
    "quoted-answer": (_D, "Quotes are the answers that the grader extracted from the passages."),
    "quoted-sentence": (_D, "Quotes are the sentences of the passages closest to the items."),
    "not-quoted": (
        _N,
        "No quote for {items}: the item or the passage has no text, or they share no word. A "
        "graded file has only ids of items: name a bank.",
    ),
    # correlation
    "statistics": (_D, "{meanings}."),
    "correlation-intervals": (
        _D,
        "[low, high]: {level} interval over queries ({samples} resamples) of the mean over exams "
        "of as many queries. With more queries the correlation would mostly be higher.",
    ),
    "rounded": (_D, "Means are rounded to {decimals} before they are ranked (--round)."),
    "not-official": (_N, "Left out, not in {where}: {systems}{by}."),
    "only-official": (_N, "Left out, only in {where}: {systems}{by}."),
    "official-ties": (_N, "{systems} share ranks in {where} and stay tied."),
    "off-scale": (_N, "Minimum rating {ratings} is off the scale ({lowest} to {highest})."),
    "queries-without-judgments": (_N, "{queries} left out, without judgments."),
    "approximate-rank": (
        _N,
        "\u2248: not in that official leaderboard; the rank of the nearest system above.",
    ),
    # agreement
    "min-relevant": (_D, "Judgments of {least} and more are relevant (--min-relevant)."),
    "agreement-intervals": (
        _D,
        "Intervals (95%) take the queries, not the passages, as the sample (jackknife and "
        "symmetric bootstrap-t).",
    ),
    "one-grader": (_W, "Agreement of graders is undefined, because there is only one grader."),
    "no-decisions": (_W, "Agreement with people is undefined, because no cell has a decision."),
    "no-judgments": (_W, "Agreement with judgments is undefined, because no passage has one."),
    "decisions-left-out": (_N, "{subject}: left out, as requested: {decisions}."),
    "decisions-included": (
        _N,
        "{subject}: labels include human decisions ({decisions}); --decisions without leaves them "
        "out.",
    ),
    "beyond-items": (
        _N,
        "{subject}: the {labels} is {lowest} for every passage, because no query has more than "
        "{most} (--at-least).",
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
        "{count} with the same words and grades as another item of the query, counted once in "
        "reliability and correlations: {items}.",
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
    "items-partly-graded": (
        _D,
        "Items are not checked against judgments, and the chance level of {measure} is unknown, "
        "because passages are graded only for some items.",
    ),
    "items-unjudged": (
        _D,
        "Items are not checked against judgments: every query has fewer than {least} graded "
        "passages on one side, relevant or not.",
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
    "items-shown": (
        _N,
        "The worst {limit} of {count} items are shown (--limit; in Python tables(limit=...)).",
    ),
    "improve-family": (_W, "{systems} and {writers} (wrote items on trial) are {families} models."),
    "improve-official": (_N, "No tau with {names}: fewer than {least} held-out systems are on it."),
    "items-sealed": (_N, "The texts of {count} are left out."),
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
    "queries-not-common": (_N, "{queries} left out: not counted for every system."),
    # corrected leaderboards
    "all-judged-pool": (_N, "People judged the whole pool: corrected scores are theirs, exactly."),
    "all-judged-queries": (
        _N,
        "People judged the whole pool: only the choice of queries is uncertain.",
    ),
    "corrected-method": (
        _D,
        "Grades predict the label of each of the {units} {unit}s, and the sampled labels correct "
        "the prediction, each divided by its probability of being drawn. The result is unbiased "
        "for any grades.",
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
        "equal labels, or a corrected score that is not between 0 and 1.",
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
    # attacks
    "battery-ungraded": (_W, "{cells} of the battery have no grade yet: exampp grade {path}"),
    "attack-lift": (
        _D,
        "lift = rate - control, paired by target, mean over {queries} with its 95% interval. A "
        "finding holds after Holm's correction over all attacks at .05. The lift of best ratings "
        "counts the targets whose best rating is as high.",
    ),
    "attack-findings": (
        _D,
        "gamed, hurt: the attack has its intended effect; lowered, raised: the opposite. An attack "
        "without a finding may still work. unread: replies without a grade.",
    ),
    "battery": (_D, "Battery {digest}, seed {seed}."),
    "texts-ungraded": (_N, "No grade for {texts}."),
    "luck": (
        _D,
        "luck at {k}: the share of the bank that {k} such passages cover, 1 - (1 - c)^{k} of each "
        "item's rate c. A passage of another query may answer an item.",
    ),
    "attack-left-out": (_N, "{name} is left out: {why}."),
    "battery-tokens": (
        _D,
        "Tokens are those of texts and items; prompts add to them (exampp grade --dry-run shows "
        "time and cost).",
    ),
    "battery-digest": (_D, "SHA-256 of all texts: {digest}."),
    "equal-texts": (_D, "Equal texts of a query are graded and counted once."),
    "targets-elsewhere": (
        _N,
        "Passages of other queries are attacked for {count} of {queries}, where no passage is "
        "judged 0.",
    ),
    "few-targets": (
        _N,
        "All passages judged 0 are attacked for {queries} with fewer than {targets} of them.",
    ),
    "queries-without-text": (
        _N,
        "Attacks by the words of the query leave out {queries} without text.",
    ),
    "no-best-passage": (_N, "A10 leaves out {queries} without a passage judged highest."),
    # retrieval or generation
    "bank-shares": (
        _D,
        "Shares of the bank over {queries}, covered if rated {least} or more in the first {k} "
        "passages.",
    ),
    "losses": (
        _D,
        "Generation loses items that are retrieved but not in the answer, retrieval items that are "
        "in neither. difference: generation minus retrieval, with the {level} interval of the mean "
        "over all queries like these.",
    ),
    "omitted-shown": (
        _N,
        "The first {limit} of {count} items are shown (--limit; in Python tables(limit=...)).",
    ),
    # banks
    "banks-by-text": (
        _W,
        "Items match if their texts are equal or paraphrases. These rules find about a quarter of "
        "the pairs that ask for the same, so recall and precision are lower bounds. A model or "
        "people find more: exampp bank match.",
    ),
    "banks-by-similarity": (
        _W,
        "Items match if their texts are similar. About 4 of 10 such pairs ask for different "
        "things, and half of the related pairs are missed. For better matches: exampp bank match.",
    ),
    "banks-by-keys": (_W, "Items match if their answer keys are equal. Without a key: {without}."),
    "banks-by-coverage": (_W, "Items match if mostly the same passages cover them."),
    "banks-by-draft": (_W, "Items are matched by the draft grader: most of its matches are wrong."),
    "banks-by-grader": (_N, "Items are matched by {grader}."),
    "banks-decided": (
        _N,
        "{people} decided {pairs}, which override the grader. Recall changed: {changes}.",
    ),
    "turns": (_N, "Means over the queries with items of a turn, with {level} intervals: {sizes}."),
    "banks-kind": (
        _W,
        "{grader} did not match {items} of the reference bank, which are left out. Match them too: "
        "exampp grade --kind {kind}.",
    ),
    "banks-ungraded": (_W, "Queries with ungraded pairs are left out of a bank: {banks}."),
    "banks-other-queries": (_N, "Up to {queries} of a bank are not in {reference}: left out."),
    "banks-bare": (
        _N,
        "{queries} of {reference} without items in any other bank count with recall 0. Leave them "
        "out with --shared.",
    ),
    "banks-shown": (_N, "The first {limit} of {count} are shown; all with --table {table}."),
    "banks-best": (
        _N,
        "The same matches choose and measure the best items, so recall is too high.",
    ),
    "banks-columns": (
        _D,
        "A part of a reference item counts half, two parts all of it; nDCG is recall discounted by "
        "rank. Means over queries.",
    ),
    "banks-intervals": (
        _D,
        "Intervals ({level}) are for the mean over all queries like these, with these matches.",
    ),
    "effects-intervals": (_D, "Intervals ({level}) are for exams of as many queries like these."),
    "effects-no-interval": (_N, "No interval: too few systems ({systems}) or queries ({queries})."),
    # citations
    "first-citation": (_N, "Only the first citation of every sentence counts."),
    "citations-ungraded": (_N, "{citations} without a grade, left out of every mean."),
    "answers-uncited": (_N, "{answers} without citations: recall 0, no precision."),
    "citations-pool": (
        _D,
        "supported: mean over sentences of the best support by any passage, cited or not.",
    ),
    "citation-columns": (
        _D,
        "precision: mean support of the citations of an answer. recall: mean over its sentences of "
        "the best support. Partial support counts half, and 0 in the strict columns.",
    ),
    # printed tables
    "not-printed": (_N, "{name} is not used: its systems are in no printed leaderboard."),
    "qrels-not-printed": (_N, "{name} is not used. Published qrels: {published}."),
    # lists to review
    "relevant-ungraded": (_N, "{passages} left out, relevant and without a grade."),
    "rows-shown": (
        _N,
        "The first {limit} of {rows} rows are shown (--limit; in Python limit=...).",
    ),
    "some-shown": (_N, "{some} of {of} are shown."),
    "missing-kinds": (
        _N,
        "The kind and the closest item are guesses from similar texts and the grades of similar "
        "passages: read the passage first.",
    ),
    "missing-kinds-words": (
        _N,
        "The kind and the closest item are guesses from shared words, because the model of the "
        "draft grader is not installed: read the passage first.",
    ),
    "missing-unexplained": (
        _N,
        "{rows} without a kind: only the first passages are compared with the items (--query lists "
        "all of one query).",
    ),
    "spurious-columns": (
        _N,
        "Alone: non-relevant and relevant passages that no other item covers. Retiring the item "
        "corrects the labels of the first and loses those of the second.",
    ),
    "relevance-by": (_N, "By {by} ({queries}): {meaning}."),
    "covered-from": (_D, "An item is covered by a rating of {least} or higher."),
    "decided-mark": (_N, "!: decided by people."),
    # two versions of an exam
    "changes-grader": (
        _W,
        "The grader changed from {before} to {after}. Scores of two graders are not on one scale.",
    ),
    "changes-scale": (
        _N,
        "The scales of {before} and {after} differ, so cells and causes are not compared.",
    ),
    "changes-missing": (
        _N,
        "Up to {after} of the cells behind a score have no grade (before: {before}). They count "
        "as not covered.",
    ),
    "changes-scores-only": (
        _N,
        "{name} has scores only: changes of the bank, of grades and of decisions are not known. "
        "Compare with a copy of the collection to see them.",
    ),
    "changes-means-only": (
        _N,
        "{name} has means only, so no difference can be tested. Next time store the scores of "
        "queries: exampp evaluate COLLECTION --per-query --format json.",
    ),
    "changes-queries": (
        _N,
        "Differences count the queries of both versions: {added} were added, {removed} removed.",
    ),
    "changes-causes-unknown": (
        _N,
        "Causes are undefined for {systems}: their effects need grades of cells that neither "
        "version has.",
    ),
    "changes-interact": (
        _N,
        "Causes interact: the effect of a cause depends on the other changes, by up to {size} for "
        "{system}. The table shows the mean over all orders of the changes.",
    ),
    "changes-causes": (
        _D,
        "The effects of causes add up to the difference. Each is the mean effect of this change "
        "over all orders of the changes (Shapley value).",
    ),
    "changes-test": (
        _D,
        "Differences are now minus before, paired over queries, with Gaffke's {level} limits. "
        "higher, lower: these limits show it; different: only the randomisation test shows a "
        "change (alpha {alpha}, Holm's correction over {systems}).",
    ),
    "changes-sealed": (_N, "Changes of sealed items are counted, but not listed: {count}."),
    "changes-history": (
        _N,
        "Bank and decisions are as they were before {when}. Systems and grades are the current "
        "ones, because their times are not stored.",
    ),
    "rows-left-out": (_N, "{rows} more rows: exampp analyze changes --format csv lists all."),
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
"""Every note: its severity and its sentence; `{subject}` lists its subjects."""
