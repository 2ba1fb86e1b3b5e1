"""What a grader says of one (passage, item) pair, and what is known about the grader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

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


DEFAULT_MIN_RATING = 4
"""The lowest rating that counts as an answer unless people say otherwise."""

ITEM_KINDS = ("question", "nugget", "query")


@dataclass(frozen=True)
class GraderIdentity:
    """Everything that makes two graders different: model, prompt, decoding settings.

    `kind` says what is graded (question, nugget, or the query itself for direct relevance
    prompts); `lowest` and `highest` bound its ratings (a verdict is 0..1). `settings` holds the
    rest, JSON-able: revision, hash of the prompt, decoding. Two graders with equal identity are
    the same grader and share their grades.
    """

    model: str
    prompt: str
    kind: str
    lowest: int = 0
    highest: int = 5
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """Content hash of the whole identity."""
        return content_hash(
            self.model, self.prompt, self.kind, json.dumps(self.settings, sort_keys=True)
        )

    @property
    def name(self) -> str:
        """The short name people choose it by: `model:prompt`.

        `#2` is a second take of the same grader in one file, `@rubric` the mode in which kept
        replies were read again, and a second `@` names the prompt by whose rules.
        """
        repetition, read = self.settings.get("repetition", 1), self.settings.get("read")
        rules = self.settings.get("rules")
        name = self.model if self.model == self.prompt else f"{self.model}:{self.prompt}"
        return (
            name
            + (f"#{repetition}" if repetition != 1 else "")
            + (f"@{read}" if read else "")
            + (f"@{rules['name']}" if isinstance(rules, dict) else "")
        )

    @property
    def default_min_rating(self) -> int:
        """The lowest rating that counts as an answer: 4, or the highest of a shorter scale."""
        return min(DEFAULT_MIN_RATING, self.highest)

    @property
    def is_draft(self) -> bool:
        """Whether its grades are draft grades, to be labelled wherever they appear."""
        return self.model == "draft"
