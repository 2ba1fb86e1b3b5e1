"""What several ratings of one cell are together: named rules, and how far the ratings are apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil

from exampp.records.grading import GraderIdentity

VOTE = "vote-"
"""How the names of graders begin that are the vote of others."""


def majority(ratings: Sequence[int]) -> int:
    """The rating that most have; of several the lowest: a tie is no credit."""
    counts = Counter(ratings)
    most = max(counts.values())
    return min(rating for rating, count in counts.items() if count == most)


def median(ratings: Sequence[int]) -> int:
    """The middle rating; the lower of the two that are in the middle of an even number."""
    return sorted(ratings)[(len(ratings) - 1) // 2]


def mean(ratings: Sequence[int]) -> int:
    """The mean, rounded to the nearest rating; halves go down, as ties of the other rules do."""
    return ceil(Fraction(sum(ratings), len(ratings)) - Fraction(1, 2))


RULES: Mapping[str, Callable[[Sequence[int]], int]] = {
    "majority": majority,
    "median": median,
    "mean": mean,
}
"""The rules by name; each takes ratings on one scale, one at least."""


def members_of(grader: GraderIdentity) -> Sequence[Mapping[str, str]]:
    """Who voted, as (name, key); nobody where the grader is no vote."""
    vote = grader.settings.get("vote")
    return vote["members"] if isinstance(vote, dict) else ()


def notes_of_vote(
    grader: GraderIdentity, cells: int, unanimous: int, spread: float
) -> tuple[str, ...]:
    """What stands under the results of a vote: whose it is, and how far its members differ."""
    members = members_of(grader)
    if not members:
        return ()
    vote = grader.settings["vote"]
    names = ", ".join(sorted(one["name"] for one in members))
    least = vote["at_least"]
    needed = "all of them" if least == len(members) else f"at least {least} of them"
    said = f"{grader.name} is the {vote['rule']} of {names}, where {needed} have a grade."
    if not cells:
        return (said,)
    share = 100 * unanimous / cells
    return (
        f"{said} In {share:.0f} % of {cells:,} cells they give the same rating; from the highest "
        f"to the lowest it is {spread:.2f} on average.",
    )
