"""Where definitions differ: ours, and those that published numbers were computed with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CoverPolicy:
    """What Cover and n-Cover do where the papers and their program part.

    `graded_items_only`: the bank of a query is the items that have a grade, not all its items.
    `answered_only`: the mean goes over the queries that a system answered, not over all.
    `ranks_as_written`: a ranking is cut at the rank k that its run wrote, which keeps k + 1
    passages of a run that counts from 0, and all of a system's rankings for a query and its
    subtopics go together; otherwise k passages are kept, by the subtopic mode.
    `empty_n_cover`: n-Cover of a query whose whole pool covers nothing; None leaves the query out.
    `empty_nuggets_are_0`: whether a nugget score of a query that has none of its nuggets is 0.
    """

    name: str
    graded_items_only: bool = False
    answered_only: bool = False
    ranks_as_written: bool = False
    empty_n_cover: float | None = None
    empty_nuggets_are_0: bool = False


EXAM = CoverPolicy("exam")
"""The definitions of the papers (EXAM++, FLAN-T5-EXAM); the default."""

RUBRIC = CoverPolicy(
    "rubric",
    graded_items_only=True,
    answered_only=True,
    ranks_as_written=True,
    empty_n_cover=0.0,
)
"""What the papers' own program (exam_pp, RUBRIC) computes; its overall n-Cover is always 1."""

NUGGETIZER = CoverPolicy("nuggetizer", answered_only=True, empty_nuggets_are_0=True)
"""What castorini's nuggetizer computes: means over the topics of a run's file. An assignment that
it could not read is none there, so that no other way with missing cells goes with it."""

POLICIES = {policy.name: policy for policy in (EXAM, RUBRIC, NUGGETIZER)}
