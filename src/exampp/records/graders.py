"""Graders: their identity and names, their grades, and the choice of one among several."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

from exampp.errors import AmbiguousGrader, InputError
from exampp.records.ids import content_hash
from exampp.sanitize import check_integer, check_text


class State(IntEnum):
    """State of a cell. Only `GRADED` has a rating; the others stay pending."""

    GRADED = 0
    UNPARSED = 1
    REFUSED = 2
    TRUNCATED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply after reading: its state, its rating if graded, and the rule that applied."""

    state: State
    rating: int | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Grade:
    """One graded (or failed) cell.

    `rating` is on the grader's scale (verdicts are 0 or 1) and None unless `state` is GRADED;
    `reply` is the raw text; `confidence` the probability that the model gave to its rating, and
    `detail` all other information (reason of a failure, span of an answer), JSON-able.
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
"""The highest label of a scale that is not given."""

MOST_RATINGS = 1000
"""The highest rating of a scale that may be given."""

CONTENT_SETTING = "content"
"""The setting with the hash of a model's files, which replaces its name and place."""

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
        """Return the content hash of the whole identity: of the model's content if that is known.

        So a folder may be moved, copied or renamed, or be named in another way.
        """
        model = "" if CONTENT_SETTING in self.settings else self.model
        return content_hash(
            model, self.prompt, self.kind, json.dumps(self.settings, sort_keys=True)
        )

    @property
    def name(self) -> str:
        """Return the name for display and choice: unique among the graders of its source."""
        return self.shown or self.short_name

    @property
    def short_name(self) -> str:
        """Return the shortest name, `model:prompt`, which other graders may share.

        `#2` is a second run of the same grader in one file, `@rubric` the mode in which stored
        replies were read again, and a second `@` names the prompt whose rules were used.
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
        """Return the lowest rating that counts as an answer: 4 of 0-5, two thirds up any scale.

        So 1 of a verdict, 2 of 0-2 and of 0-3 (TREC's relevant), 7 of 0-10. Direct relevance from
        0 to 2 (Thomas) is relevant from 1 on, as the papers count it (FLAN-T5-EXAM, 4.1).
        """
        if self.kind == "query" and (self.lowest, self.highest) == RELEVANCE_0_TO_2:
            return 1
        return self.lowest - (-2 * (self.highest - self.lowest) // 3)

    def threshold(self, min_rating: int | None) -> int:
        """Return the lowest rating that counts as an answer: `min_rating`, or the default if None.

        Raises:
            InputError: It is not a rating of the scale, or is the lowest one, which every passage
                has.
        """
        if min_rating is None:
            return self.default_min_rating
        least = check_integer("min_rating", min_rating)
        if not self.lowest < least <= self.highest:
            raise InputError(
                f"the minimum rating {least} makes no sense for ratings from {self.lowest} to "
                f"{self.highest}",
                hint=f"Choose from {self.lowest + 1} to {self.highest}",
            )
        return least

    @property
    def cut(self) -> str:
        """Describe the rating from which on items count as answered; empty if none is needed."""
        if self.highest - self.lowest == 1 or (self.lowest, self.highest) == USUAL_SCALE:
            return ""
        return (
            f"Ratings of {self.name} go from {self.lowest} to {self.highest}; from "
            f"{self.default_min_rating} on they count as answers (--min-rating)."
        )

    def widened(self, other: GraderIdentity) -> GraderIdentity:
        """Return the grader on a scale that holds both: its entries may show more or less of it."""
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        if (lowest, highest) == (self.lowest, self.highest):
            return self
        return replace(self, lowest=lowest, highest=highest)

    @property
    def is_draft(self) -> bool:
        """Return whether its grades are draft grades, which are labelled wherever they appear."""
        return self.model == "draft"


def check_scale(scale: RatingScale) -> RatingScale:
    """Return the scale.

    Raises:
        InputError: It has fewer than two ratings, too many, or some below 0.
    """
    try:
        lowest, highest = (check_integer("a rating", rating) for rating in scale)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"scale is {scale!r}", hint="Give the lowest and the highest rating, as (0, 3)"
        ) from None
    if not 0 <= lowest < highest <= MOST_RATINGS:
        raise InputError(
            f"there is no scale from {lowest} to {highest}",
            hint=f"It has two ratings or more, from 0 to {MOST_RATINGS} at most, as 0..3",
        )
    return lowest, highest


def members_of(grader: GraderIdentity) -> Sequence[Mapping[str, str]]:
    """Return the members of a vote as (name, key); empty if the grader is not a vote."""
    vote = grader.settings.get("vote")
    return vote["members"] if isinstance(vote, dict) else ()


def notes_of_vote(grader: GraderIdentity) -> tuple[str, ...]:
    """Return the note that names the members of a vote; empty for other graders."""
    members = members_of(grader)
    if not members:
        return ()
    vote = grader.settings["vote"]
    names = ", ".join(sorted(one["name"] for one in members))
    least = vote["at_least"]
    needed = "all of them" if least == len(members) else f"at least {least} of them"
    return (f"{grader.name} is the {vote['rule']} of {names}, where {needed} have a grade.",)


UNNUMBERED = ("answer", "unparsed")
"""Rules for a reply without a number to a request for a self-rating. `answer`: the model answered
instead of rating, which counts one above the lowest rating (EXAM++, section 4.2.2; so do the
papers' models). `unparsed`: the reply is unparsed."""
SHORT_KEY = 8
"""Characters of a key for display."""


def with_distinct_names(graders: Iterable[GraderIdentity]) -> tuple[GraderIdentity, ...]:
    """Return the same graders with distinct names.

    A name is `model:prompt`, or the name in the source; if several share it, the decoding settings
    follow, and the start of the key if those are shared too.
    """
    identities = list(graders)
    names = {one.key: one.name for one in identities}
    for more in (_decoding, _short_key):
        uses = Counter(names.values())
        names = {
            one.key: f"{names[one.key]}{more(one)}" if uses[names[one.key]] > 1 else names[one.key]
            for one in identities
        }
    return tuple(_shown(one, names[one.key]) for one in identities)


def _decoding(grader: GraderIdentity) -> str:
    decode = grader.settings.get("decode")
    return f":{decode}" if decode else ""


def _short_key(grader: GraderIdentity) -> str:
    return f":{grader.key[:SHORT_KEY]}"


def _shown(grader: GraderIdentity, name: str) -> GraderIdentity:
    named = replace(grader)
    object.__setattr__(named, "shown", name)
    return named


def grader_label(grader: GraderIdentity) -> str:
    """Return the label of a grader in lists: its name, its kind, the start of its key."""
    return f"{grader.name} ({grader.kind}, {grader.key[:SHORT_KEY]})"


def choose_grader(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> GraderIdentity:
    """Return the one grader that matches.

    `grader` is a model, a name as shown or short (`model:prompt`), the start of a key, or else a
    prompt or kind of item, alone or after the model (`model:nugget`); `prompt` is a prompt's name
    or its class in workbench files; `kind` question, nugget or query. Raises InputError if none
    matches and AmbiguousGrader if several do.
    """
    fitting = fitting_graders(graders, grader=grader, prompt=prompt, kind=kind)
    if len(fitting) == 1:
        return fitting[0]
    names = [grader_label(one) + _reading(one) for one in fitting or graders]
    listed = "".join(f"\n  {name}" for name in names)
    if not graders:
        raise InputError("there are no grades yet", hint="Grade first: exampp grade")
    if not fitting:
        raise InputError(f"no grader fits. Graders of this collection:{listed}")
    raise AmbiguousGrader(
        f"{len(fitting)} graders fit. Choose one, such as --grader {_distinction(fitting)} "
        "(in Python and in a configuration: grader = ...), or compare all with exampp analyze "
        f"correlation:{listed}",
        names,
    )


def _distinction(graders: Sequence[GraderIdentity]) -> str:
    """Return what names the first of the graders and none of the others."""
    first, *others = graders
    names = (first.kind, first.model, first.prompt, first.name)
    known = {word for one in others for word in (one.kind, one.model, one.prompt, one.name)}
    return next((name for name in names if name not in known), first.key[:SHORT_KEY])


def _reading(grader: GraderIdentity) -> str:
    """Describe how replies are read, for graders that share a name and their requests."""
    unnumbered = grader.settings.get("unnumbered")
    return f", a text without a number is {unnumbered}" if unnumbered else ""


def fitting_graders(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> list[GraderIdentity]:
    """Return all graders that match; see `choose_grader`."""
    for name, value in (("grader", grader), ("prompt", prompt), ("kind", kind)):
        if value is not None:
            check_text(name, value)
    candidates = [
        one
        for one in graders
        if (prompt is None or prompt in _prompts(one)) and (kind is None or one.kind == kind)
    ]
    if grader is None:
        return candidates
    called = [one for one in candidates if _is_called(one, grader)]
    # a folder is called by its name alone, however it was typed
    folder = grader.rstrip("/").rpartition("/")[2]
    called = called or [one for one in candidates if _is_folder(one) and _is_called(one, folder)]
    return called or [one for one in candidates if grader in _descriptions(one)]


def _is_called(identity: GraderIdentity, name: str) -> bool:
    names = (identity.model, identity.short_name, identity.name)
    return name in names or (len(name) >= 4 and identity.key.startswith(name))


def _descriptions(identity: GraderIdentity) -> set[str]:
    """Return what describes a grader and perhaps others: prompt or kind, also after the model."""
    shared = {*_prompts(identity), identity.kind} - {""}
    return shared | {f"{identity.model}:{one}" for one in shared}


def _is_folder(identity: GraderIdentity) -> bool:
    return CONTENT_SETTING in identity.settings


def _prompts(identity: GraderIdentity) -> set[str]:
    info = identity.settings.get("prompt_info") or {}
    return {identity.prompt, str(info.get("prompt_class", ""))}
