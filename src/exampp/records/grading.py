"""What a grader says of one (passage, item) pair, and what is known about the grader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

from exampp.errors import InputError
from exampp.outside import check_whole
from exampp.records.ids import content_hash


class State(IntEnum):
    """What became of a cell. Only `GRADED` has a rating; the others stay due."""

    GRADED = 0
    UNPARSED = 1
    REFUSED = 2
    TRUNCATED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply after reading: its state, its rating where graded, and the rule that spoke."""

    state: State
    rating: int | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Grade:
    """One graded (or failed) cell.

    `rating` is on the grader's scale (verdicts are 0 or 1) and None unless `state` is GRADED;
    `reply` is the raw text; `confidence` the probability the model gave to its rating, and
    `detail` whatever else is known (reason of a failure, span of an answer), JSON-able.
    """

    item_id: str
    state: State
    rating: int | None = None
    reply: str | None = None
    rule: str = ""
    confidence: float | None = None
    detail: Mapping[str, Any] | None = None


USUAL_SCALE = (0, 5)
"""The scale of the papers' self-ratings."""
RELEVANCE_0_TO_2 = (0, 2)
"""Not relevant, relevant, highly relevant."""

RatingScale = tuple[int, int]
"""The lowest and the highest rating."""

HIGHEST_LABEL = 100
"""A higher label is on no scale unless one is given."""

MOST_RATINGS = 1000
"""The highest rating of a scale that may be given."""

CONTENT = "content"
"""The setting that holds the hash of a model's files; its name and its place then say nothing."""

ITEM_KINDS = ("question", "nugget", "query")


@dataclass(frozen=True)
class GraderIdentity:
    """Everything that makes two graders different: model, prompt, decoding settings.

    `kind` says what is graded (question, nugget, or the query itself for direct relevance
    prompts); `lowest` and `highest` bound its ratings (a verdict is 0..1). `settings` holds the
    rest, JSON-able: revision, hash of the prompt, decoding. Two graders with equal identity are
    the same grader and share their grades. `shown` is its name among others, from
    `records.choosing.distinct`; what is made from it by `replace` is another grader, without it.
    """

    model: str
    prompt: str
    kind: str
    lowest: int = 0
    highest: int = 5
    settings: Mapping[str, Any] = field(default_factory=dict)
    shown: str = field(default="", init=False, repr=False, compare=False)

    @cached_property
    def key(self) -> str:
        """Content hash of the whole identity: of the model's content where that is known.

        A folder may then be moved, copied or renamed, and be named in any way.
        """
        model = "" if CONTENT in self.settings else self.model
        return content_hash(
            model, self.prompt, self.kind, json.dumps(self.settings, sort_keys=True)
        )

    @cached_property
    def by_content(self) -> GraderIdentity:
        """The same grader, known by its model's content where its settings hold that.

        Graders of the first version have the folder as it was typed for a model, and its name and
        hash among their settings. They keep their keys; this is how they are found again, and what
        is shown of them and exported.
        """
        settings = dict(self.settings)
        if settings.get("name") != "hf" or not {"model", "sha256"} <= settings.keys():
            return self
        model, content = settings.pop("model"), settings.pop("sha256")
        return replace(self, model=model, settings={**settings, CONTENT: content})

    @property
    def name(self) -> str:
        """The name people know it and choose it by: no other grader of its source has it."""
        return self.shown or self.short_name

    @property
    def short_name(self) -> str:
        """The shortest name: `model:prompt`. Others may have it.

        `#2` is a second take of the same grader in one file, `@rubric` the mode in which kept
        replies were read again, and a second `@` names the prompt by whose rules.
        """
        repetition, read = self.settings.get("repetition", 1), self.settings.get("read")
        rules = self.settings.get("rules")
        model = self.by_content.model
        name = model if model == self.prompt else f"{model}:{self.prompt}"
        return (
            name
            + (f"#{repetition}" if repetition != 1 else "")
            + (f"@{read}" if read else "")
            + (f"@{rules['name']}" if isinstance(rules, dict) else "")
        )

    @property
    def default_min_rating(self) -> int:
        """Return the lowest rating that counts as an answer: 4 of 0-5, two thirds up any scale.

        So 1 of a verdict, 2 of 0-2 and of 0-3 (TREC's relevant), 7 of 0-10. Direct relevance from
        0 to 2 (Thomas) is relevant from 1 on, as the papers count it (FLAN-T5-EXAM, 4.1).
        """
        if self.kind == "query" and (self.lowest, self.highest) == RELEVANCE_0_TO_2:
            return 1
        return self.lowest - (-2 * (self.highest - self.lowest) // 3)

    def threshold(self, min_rating: int | None) -> int:
        """The lowest rating that counts as an answer: `min_rating`, or where it is None the usual.

        Raises:
            InputError: It is no rating of the scale, or the lowest, which everything has.
        """
        if min_rating is None:
            return self.default_min_rating
        least = check_whole("min_rating", min_rating)
        if not self.lowest < least <= self.highest:
            raise InputError(
                f"the minimum rating {least} makes no sense for ratings from {self.lowest} to "
                f"{self.highest}",
                mend=f"Choose from {self.lowest + 1} to {self.highest}",
            )
        return least

    @property
    def cut(self) -> str:
        """From which rating on items are answered, in words; empty where it needs none."""
        if self.highest - self.lowest == 1 or (self.lowest, self.highest) == USUAL_SCALE:
            return ""
        return (
            f"Ratings of {self.name} go from {self.lowest} to {self.highest}; from "
            f"{self.default_min_rating} on they count as answers (--min-rating)."
        )

    def widened(self, other: GraderIdentity) -> GraderIdentity:
        """The same on a scale that holds both: entries may show more or less of it."""
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        if (lowest, highest) == (self.lowest, self.highest):
            return self
        return replace(self, lowest=lowest, highest=highest)

    @property
    def is_draft(self) -> bool:
        """Whether its grades are draft grades, to be labelled wherever they appear."""
        return self.model == "draft"


def check_scale(scale: RatingScale) -> RatingScale:
    """The scale.

    Raises:
        InputError: It has no two ratings, or some below 0 or too many.
    """
    try:
        lowest, highest = (check_whole("a rating", rating) for rating in scale)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"scale is {scale!r}", mend="Give the lowest and the highest rating, as (0, 3)"
        ) from None
    if not 0 <= lowest < highest <= MOST_RATINGS:
        raise InputError(
            f"there is no scale from {lowest} to {highest}",
            mend=f"It has two ratings or more, from 0 to {MOST_RATINGS} at most, as 0..3",
        )
    return lowest, highest
