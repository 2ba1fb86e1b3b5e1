"""Graders: identity, names, grades, and selection."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

from exampp.errors import AmbiguousGrader, InputError
from exampp.records.ids import content_hash
from exampp.sanitize import check_integer, check_text


class State(IntEnum):
    """State of a cell. Only `GRADED` has a rating; other cells stay pending."""

    GRADED = 0
    UNPARSED = 1
    REFUSED = 2
    TRUNCATED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reading of a reply: state, rating if graded, and the applied rule."""

    state: State
    rating: int | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Grade:
    """One graded (or failed) cell.

    `rating` is on the grader's scale (verdicts are 0 or 1), None unless `state` is GRADED; `reply`
    is the raw text; `confidence` is the model's probability of its rating; `detail` has further
    JSON data (reason of a failure, span of an answer).
    """

    item_id: str
    state: State
    rating: int | None = None
    reply: str | None = None
    rule: str = ""
    confidence: float | None = None
    detail: Mapping[str, Any] | None = None


USUAL_SCALE = (0, 5)
"""The scale of self-ratings in the papers."""
RELEVANCE_0_TO_2 = (0, 2)
"""Not relevant, relevant, highly relevant."""

RatingScale = tuple[int, int]
"""The lowest and the highest rating."""

HIGHEST_LABEL = 100
"""Default of the highest label of a scale."""

MOST_RATINGS = 1000
"""Maximum rating of any scale."""

CONTENT_SETTING = "content"
"""The setting with the hash of model files, which replaces name and path."""

ITEM_KINDS = ("question", "nugget", "query")


@dataclass(frozen=True)
class GraderIdentity:
    """The identity of a grader: model, prompt and settings.

    `kind` is the kind of graded item (question, nugget, or the query itself for direct relevance
    prompts); `lowest` and `highest` bound the ratings (a verdict is 0..1). `settings` has the rest
    as JSON data: revision, hash of the prompt, decoding. Graders with equal identities are the same
    grader and share grades. `shown` is the name among other graders (see `with_distinct_names`); a
    copy made with `replace` is another grader and loses it.
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
        """Return the hash of the identity, based on the model's content if it is known.

        A model folder can therefore be moved, copied or renamed.
        """
        model = "" if CONTENT_SETTING in self.settings else self.model
        return content_hash(
            model, self.prompt, self.kind, json.dumps(self.settings, sort_keys=True)
        )

    @property
    def name(self) -> str:
        """Return the displayed name, unique among the graders of its source."""
        return self.shown or self.short_name

    @property
    def short_name(self) -> str:
        """Return the short name `model:prompt`, which other graders may share.

        `#2` is a second run of the same grader in one file, `@rubric` the mode of a reparse, and a
        second `@` the prompt with the reading rules.
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
        """Return the default minimum rating: 4 of 0-5, two thirds of any scale.

        This is 1 for verdicts, 2 for 0-2 and 0-3 (relevant at TREC), 7 for 0-10. Direct relevance
        from 0 to 2 (Thomas) counts from 1 on, as in the papers (FLAN-T5-EXAM, 4.1).
        """
        if self.kind == "query" and (self.lowest, self.highest) == RELEVANCE_0_TO_2:
            return 1
        return self.lowest - (-2 * (self.highest - self.lowest) // 3)

    def threshold(self, min_rating: int | None) -> int:
        """Return the minimum rating: `min_rating`, or the default if None.

        Raises:
            InputError: It is outside the scale, or the lowest rating, which every passage reaches.
        """
        if min_rating is None:
            return self.default_min_rating
        least = check_integer("min_rating", min_rating)
        if not self.lowest < least <= self.highest:
            raise InputError(
                f"invalid minimum rating {least} for ratings from {self.lowest} to {self.highest}",
                hint=f"Choose from {self.lowest + 1} to {self.highest}",
            )
        return least

    @property
    def cut(self) -> str:
        """Describe the default minimum rating; "" if it is not needed."""
        if self.highest - self.lowest == 1 or (self.lowest, self.highest) == USUAL_SCALE:
            return ""
        return (
            f"Ratings of {self.name} go from {self.lowest} to {self.highest}; "
            f"{self.default_min_rating} or more counts as an answer (--min-rating)."
        )

    def widened(self, other: GraderIdentity) -> GraderIdentity:
        """Return the grader with a scale that covers both, as entries may show different parts."""
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        if (lowest, highest) == (self.lowest, self.highest):
            return self
        return replace(self, lowest=lowest, highest=highest)

    @property
    def is_draft(self) -> bool:
        """Return whether its grades are draft grades, which are always marked."""
        return self.model == "draft"


class GradingTarget(NamedTuple):
    """The measures and minimum ratings for which a bank is graded; other cells are not needed.

    With `may_miss`, cells with a smaller chance of covering their item are skipped, except those of
    a random share `audit` of the items, drawn by `audit_seed`, which estimates the covered items
    that are missed. With `until`, queries are graded in random order until the order of systems is
    decided, up to differences of `margin`, or the gate of `requirements`, relative to the system
    `baseline`.
    """

    measures: tuple[str, ...]
    min_ratings: tuple[int, ...]
    may_miss: float = 0.0
    audit: float = 0.0
    audit_seed: int = 0
    until: str = ""
    margin: float = 0.0
    requirements: tuple[str, ...] = ()
    baseline: str = ""

    @property
    def stored(self) -> dict[str, Any]:
        """Return the fields that are set, by name."""
        return {name: value for name, value in self._asdict().items() if value}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> GradingTarget:
        """Return the target with these stored fields."""
        lists = {name: tuple(one) for name, one in stored.items() if isinstance(one, list)}
        return cls(**{**stored, **lists})

    def __str__(self) -> str:
        several = " or ".join(map(str, self.min_ratings))
        return f"{' and '.join(self.measures)} at min rating {several}"

    @property
    def note(self) -> str:
        """Sentence for all results of these grades."""
        graded = f"Only cells that {self} needs are graded"
        if not self.may_miss:
            return f"{graded}."
        return (
            f"{graded}, and those with a chance below {self.may_miss:g} to cover their item are "
            "skipped: Cover by the graded cells may be too low."
        )


def check_scale(scale: RatingScale) -> RatingScale:
    """Return the scale.

    Raises:
        InputError: It has fewer than two ratings, too many, or some below 0.
    """
    try:
        lowest, highest = (check_integer("a rating", rating) for rating in scale)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"invalid scale {scale!r}", hint="Use the lowest and the highest rating, such as (0, 3)"
        ) from None
    if not 0 <= lowest < highest <= MOST_RATINGS:
        raise InputError(
            f"invalid scale from {lowest} to {highest}",
            hint=f"A scale has two or more ratings within 0 and {MOST_RATINGS}, such as 0..3",
        )
    return lowest, highest


def members_of(grader: GraderIdentity) -> Sequence[Mapping[str, str]]:
    """Return the members of a vote as (name, key); empty for other graders."""
    vote = grader.settings.get("vote")
    return vote["members"] if isinstance(vote, dict) else ()


def steps_of(grader: GraderIdentity) -> int:
    """Return how many times the ratings of its members the ratings of a vote are."""
    vote = grader.settings.get("vote")
    return int(vote.get("steps", 1)) if isinstance(vote, dict) else 1


def notes_of_vote(grader: GraderIdentity) -> tuple[str, ...]:
    """Return the note on the members of a vote; empty for other graders."""
    members = members_of(grader)
    if not members:
        return ()
    vote = grader.settings["vote"]
    names = ", ".join(sorted(_with_weight(one) for one in members))
    if vote["rule"] == "cascade":
        first, second = (one["name"] for one in members)
        return (
            f"{grader.name} has the ratings of {first}, and of {second} where {first} is within "
            f"{vote['unsure']:g} of {vote['min_rating'] - 0.5:g} or has no grade, and in a random "
            f"audit of {vote['audit']:.3g} of the other cells (seed {vote['seed']}).",
        )
    least, steps = vote["at_least"], steps_of(grader)
    needed = f"graded by {'all' if least == len(members) else f'at least {least}'} of them"
    what = "weighted mean" if vote["rule"] == "weighted" else vote["rule"]
    if vote["rule"] == "expected":
        what = "expected rating"
        needed = f"{needed if len(members) > 1 else 'graded'} with probabilities"
    scale = f" Its ratings are {steps} times those of its members." if steps > 1 else ""
    return (f"{grader.name} is the {what} of {names}, for cells {needed}.{scale}",)


def _with_weight(member: Mapping[str, str]) -> str:
    weight = member.get("weight")
    return f"{member['name']} (weight {weight})" if weight else member["name"]


UNNUMBERED = ("answer", "unparsed")
"""Rules for a reply without a number to a request for a self-rating. `answer`: the model answered
instead of rating, which counts one above the lowest rating (EXAM++, section 4.2.2; so do the
papers' models). `unparsed`: the reply is unparsed."""
MATCHINGS = {"guarded": "guarded", "papers": "exam"}
"""Rules for matching an extracted answer with the answer key, and the mode of reading of each.
`papers`: normalised strings with an edit distance below 20 % (EXAM++, section 4.2.1). `guarded`:
the key inside the answer, with guards for numbers, negations and alternatives."""
SHORT_KEY = 8
"""Characters of a key for display."""
_SETTINGS, _CHARACTERS = 3, 24
"""Maximum number of differing settings in a list of graders, and of characters of each value."""


def with_distinct_names(graders: Iterable[GraderIdentity]) -> tuple[GraderIdentity, ...]:
    """Return the graders with distinct names.

    A name is `model:prompt`, or that of the source; if several graders share it, decoding settings
    are added and, if still ambiguous, the start of the key.
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


ABSTENTION = "abstention"
"""The prompt of graders that recognise abstentions."""


def same_but_for_kind(one: GraderIdentity, other: GraderIdentity) -> bool:
    """Return whether two graders differ in nothing but the kind of item that they grade."""
    return replace(one, kind=other.kind) == other


def choose_grader(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> GraderIdentity:
    """Return the only grader that matches.

    `grader` is a model, a name as shown or short (`model:prompt`), the start of a key, or else a
    prompt or kind of item, alone or after the model (`model:nugget`); `prompt` is a prompt's name
    or its class in workbench files; `kind` question, nugget or query. Raises InputError if none
    matches and AmbiguousGrader if several do.
    """
    fitting = fitting_graders(graders, grader=grader, prompt=prompt, kind=kind)
    if len(fitting) == 1:
        return fitting[0]
    names = [grader_label(one) + _settings_apart(one, graders) for one in fitting or graders]
    listed = "".join(f"\n  {name}" for name in names)
    if not graders:
        raise InputError("no grades yet", hint="Grade the passages: exampp grade")
    if not fitting:
        raise InputError(f"no grader matches. Graders of this collection:{listed}")
    raise AmbiguousGrader(
        f"{len(fitting)} graders match. Choose one, such as --grader {_distinction(fitting)} "
        "(in Python and in a configuration: grader = ...), or compare all with exampp analyze "
        f"correlation:{listed}",
        names,
    )


def _distinction(graders: Sequence[GraderIdentity]) -> str:
    """Return a name of the first grader that no other grader has."""
    first, *others = graders
    names = (first.kind, first.model, first.prompt, first.name)
    known = {word for one in others for word in (one.kind, one.model, one.prompt, one.name)}
    return next((name for name in names if name not in known), first.key[:SHORT_KEY])


def _settings_apart(grader: GraderIdentity, graders: Sequence[GraderIdentity]) -> str:
    """Return the first settings in which a grader differs from others of the same short name."""
    same = [one.settings for one in graders if one.short_name == grader.short_name]
    values = {
        name: {json.dumps(one.get(name), sort_keys=True): None for one in (grader.settings, *same)}
        for name in sorted({name for one in same for name in one})
    }
    apart = [name for name, several in values.items() if len(several) > 1][:_SETTINGS]
    return "".join(f", {name} {_brief(grader.settings.get(name, 'unset'))}" for name in apart)


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."


def fitting_graders(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> list[GraderIdentity]:
    """Return all graders that match; see `choose_grader`.

    One that recognises abstentions must be named if there are others.
    """
    for name, value in (("grader", grader), ("prompt", prompt), ("kind", kind)):
        if value is not None:
            check_text(name, value)
    candidates = [
        one
        for one in graders
        if (prompt is None or prompt in _prompts(one)) and (kind is None or one.kind == kind)
    ]
    if grader is None:
        rating = [one for one in candidates if one.prompt != ABSTENTION or prompt]
        return rating or candidates
    called = [one for one in candidates if _is_called(one, grader)]
    # a folder matches by name, however its path is written
    folder = grader.rstrip("/").rpartition("/")[2]
    folders = [one for one in candidates if CONTENT_SETTING in one.settings]
    called = called or [one for one in folders if _is_called(one, folder)]
    return called or [one for one in candidates if grader in _descriptions(one)]


def _is_called(identity: GraderIdentity, name: str) -> bool:
    names = (identity.model, identity.short_name, identity.name)
    return name in names or (len(name) >= 4 and identity.key.startswith(name))


def _descriptions(identity: GraderIdentity) -> set[str]:
    """Return what describes a grader and perhaps others: prompt or kind, also after the model."""
    shared = {*_prompts(identity), identity.kind} - {""}
    return shared | {f"{identity.model}:{one}" for one in shared}


def _prompts(identity: GraderIdentity) -> set[str]:
    info = identity.settings.get("prompt_info") or {}
    return {identity.prompt, str(info.get("prompt_class", ""))}
