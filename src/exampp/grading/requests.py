"""Turn pending cells into requests, and raw replies into grades.

A prompt is filled and truncated to the model's limit; a reply is read with the rules of the prompt,
the answer key, and the probabilities of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Self

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, Grader, Reply, Request
from exampp.prompts import Filled, Prompt, answer_text, fill, fit_prompt, read_reply, verify_answer
from exampp.prompts.prompt import item_slots, query_slots
from exampp.prompts.reply_fields import (
    EVIDENCE,
    REASON,
    TEXT_FIELDS,
    locate_evidence,
    reply_texts,
)
from exampp.records import Grade, GraderIdentity, Outcome, State
from exampp.records.graders import UNNUMBERED
from exampp.records.readings import EVIDENCE_NOT_FOUND, LITTLE_MASS, WITHOUT_EVIDENCE
from exampp.records.wording import quoted
from exampp.store.cells import PendingCells
from exampp.store.grades import Rules
from exampp.store.sql import batches

EXTRACTION = "extraction"
"""The reading of prompts that extract answers."""
SELF_RATING = "self-rating"
"""Readings for which the rule for a text without a number matters."""


@dataclass(frozen=True, slots=True)
class Grading:
    """A grader with its prompt and identity, and the rules by which its replies are read."""

    grader: Grader
    prompt: Prompt
    identity: GraderIdentity
    rules: ReplyRules

    def bundles(self, requests: Iterable[PendingCells]) -> Iterator[list[PendingCells]]:
        """Yield the cells that share a request: items of a passage, as many as the grader takes.

        Items that batches ask alone, as the reply to several was unclear, share none.
        """
        for _, group in groupby(requests, key=attrgetter("query", "passage")):
            shared = list[PendingCells]()
            for one in group:
                if self._is_alone(one):
                    yield [one]
                else:
                    shared.append(one)
            yield from batches(shared, self.grader.most_items)

    def _is_alone(self, one: PendingCells) -> bool:
        asks_alone = getattr(self.grader, "asks_alone", None)
        with suppress(InputError):
            return asks_alone is not None and asks_alone(self.request(0, one))
        return False

    def requests(self, bundle: Iterable[PendingCells]) -> list[Request]:
        """Return the requests that are sent as one; raises as `request`."""
        return [self.request(number, one) for number, one in enumerate(bundle)]

    def request(self, key: int, cells: PendingCells) -> Request:
        """Return the request for some cells; raise InputError if their prompt cannot be filled."""
        return build_request(self.prompt, self.identity.kind, self.grader, key, cells)


# ---- requests ------------------------------------------------------------------------------------


LEAST_PASSAGE = 32
"""Minimum tokens for item and passage: about two dozen words."""
_FILLED = {"query": "the query has no text", "correct_answer": "the item has no answer key"}
"""Slots that must not be empty, with the error for an empty one."""


def prompt_slots(prompt: Prompt, cells: PendingCells, kind: str) -> Mapping[str, str]:
    """Return the texts of a prompt's slots, by slot."""
    return {
        "question": cells.item,
        "nugget": cells.item,
        **item_slots([cells.item]),
        **query_slots(prompt, cells.item if kind == "query" else cells.query),
        "context": cells.passage,
        "answer": cells.passage,
        "correct_answer": " or ".join(cells.keys),
    }


def fill_cell_prompt(prompt: Prompt, kind: str, grader: Grader, cells: PendingCells) -> Filled:
    """Return the filled prompt; the passage is truncated if the grader has a limit.

    Raises:
        InputError: Instructions and item alone exceed the limit, or a required query text or answer
            key is missing.
    """
    slots = prompt_slots(prompt, cells, kind)
    for name, what in _FILLED.items():
        if name in prompt.slots and not slots[name].strip():
            raise InputError(f"{what}, but the prompt {prompt.name!r} needs {{{name}}}")
    limit = grader.limit
    if limit is None:
        return fill(prompt, slots)

    # the passage leaves room for as many items as can share the request
    fitted = fit_prompt(
        prompt,
        {**slots, **item_slots([cells.item] * prompt.items)},
        limit,
        grader.length,
        grader.offsets,
    )
    if prompt.items == 1:
        return fitted
    alone = fill(prompt, {**slots, prompt.cut: slots[prompt.cut][: fitted.kept]})
    return replace(fitted, system=alone.system, user=alone.user)


def check_prompt_fits(prompt: Prompt, grader: Grader) -> None:
    """Reject a prompt whose instructions fill the model's limit, before any request.

    Applies to all graders that know a limit and count tokens.
    """
    limit = grader.limit
    if limit is None or not prompt.user:
        return
    empty = fill(prompt, dict.fromkeys(prompt.slots, ""))
    alone = grader.length(empty.user, empty.system)
    if limit - alone < LEAST_PASSAGE:
        raise InputError(
            f"the instructions of prompt {prompt.name!r} have {alone} tokens; the model's "
            f"limit is {limit}, which leaves {max(0, limit - alone)} for item and passage, "
            f"but at least {LEAST_PASSAGE} are needed",
            field="prompt",
            hint="Use a shorter prompt (exampp prompts) or a model with a higher limit",
        )


def build_request(
    prompt: Prompt, kind: str, grader: Grader, key: int, cells: PendingCells
) -> Request:
    """Return the request for some cells; without a prompt text, the grader gets only item and
    passage.
    """
    filled = fill_cell_prompt(prompt, kind, grader, cells) if prompt.user else Filled("", "")
    ids = cells.ids
    return Request(
        key,
        cells.item,
        cells.passage,
        filled.user,
        filled.system,
        cells.query,
        ids.query,
        ids.item,
        ids.passage,
        ids.subtopic,
        cells.keys,
        kind,
        filled.kept,
    )


# ---- replies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplyRules:
    """The rules by which replies to a prompt are read as grades.

    `mode` and `unnumbered` are those of `prompts.replies.read_reply`. Labels with a total
    probability below `least_mass` are not a reply.
    """

    prompt: Prompt
    mode: str = "exam"
    unnumbered: str = UNNUMBERED[0]
    least_mass: float = LEAST_MASS
    thresholds: tuple[float, ...] = ()

    @classmethod
    def of(cls, prompt: Prompt, settings: Mapping[str, Any]) -> Self:
        """Return the rules by which a grader with these settings reads replies to a prompt."""
        return cls(
            prompt,
            matching_mode(settings),
            unnumbered_of(settings),
            least_mass=float(settings.get("least_mass", LEAST_MASS)),
            thresholds=tuple(settings.get("thresholds", ())),
        )

    @property
    def described(self) -> dict[str, Any]:
        """Return the rules of the prompt, JSON-able."""
        names = ("name", "reading", "lowest", "highest", "field")
        return {name: getattr(self.prompt, name) for name in names}

    @property
    def stored(self) -> Rules | None:
        """Return the rules as stored with a grader; None unless known answers affect them."""
        if not self.prompt.verifies:
            return None
        return {**self.described, "slots": list(self.prompt.slots), "mode": self.mode}

    def read(self, cells: PendingCells, reply: Reply, kept_characters: int | None = None) -> Grade:
        """Read a reply; `kept_characters` is the length of the truncated passage.

        A refusal marked by the server or the model is always a refusal, whatever its text is.
        """
        if reply.fault:
            outcome, confidence = Outcome(State.FAILED), None
            detail: dict[str, Any] = {"reason": reply.fault}
        else:
            detail = dict(reply.detail) | ({"cut": True} if reply.cut else {})
            outcome = self._outcome(cells, reply, detail)
            confidence = _confidence(outcome, reply.scores, detail)
        if kept_characters is not None:
            detail |= {"cut": True, "kept": kept_characters}
        return Grade(
            "",
            outcome.state,
            outcome.rating,
            None if reply.fault else reply.text,
            outcome.rule,
            confidence,
            detail or None,
        )

    def _outcome(self, cells: PendingCells, reply: Reply, detail: dict[str, Any]) -> Outcome:
        prompt = self.prompt
        extracts = prompt.reading == EXTRACTION
        if detail.get("refusal"):
            return Outcome(State.REFUSED, rule="refused")
        if detail.get("thoughts") and not reply.text.strip() and not reply.truncated:
            return Outcome(State.UNPARSED, rule="unfinished thought")
        outcome = read_reply(
            prompt.reading,
            reply.text,
            lowest=prompt.lowest,
            highest=prompt.highest,
            mode=self.mode,
            field=prompt.reply_field,
            truncated=reply.truncated,
            thresholds=self.thresholds,
            keys=cells.keys if extracts else (),
            unnumbered=self.unnumbered,
            question=cells.item,
        )
        if detail.get("outside", 0.0) > 1.0 - self.least_mass:
            # the model would write something else, so the likeliest label is only a guess
            state = State.TRUNCATED if reply.truncated else State.UNPARSED
            if reply.scores:
                detail["scores"] = _rounded(reply.scores)
            return Outcome(state, rule=LITTLE_MASS)
        # a function may return them beside its rating
        fields = prompt.reply or (TEXT_FIELDS if not prompt.user else ())
        if outcome.state is State.GRADED and fields:
            return self._with_texts(outcome, reply_texts(reply.text, fields), cells, detail)
        if extracts and outcome.state is State.GRADED:
            detail |= self._extracted(reply.text, cells)
        return outcome

    def _with_texts(
        self,
        outcome: Outcome,
        texts: Mapping[str, str],
        cells: PendingCells,
        detail: dict[str, Any],
    ) -> Outcome:
        """Add the reason and the evidence to the detail; another rule marks missing evidence.

        A passage without an answer has no evidence, so the lowest rating needs none.
        """
        if REASON in texts:
            detail["explanation"] = texts[REASON]
        if EVIDENCE not in texts:
            needed = EVIDENCE in self.prompt.reply and outcome.rating != self.prompt.lowest
            return replace(outcome, rule=WITHOUT_EVIDENCE) if needed else outcome
        detail["evidence"] = texts[EVIDENCE]
        if (span := locate_evidence(texts[EVIDENCE], cells.passage)) is None:
            return replace(outcome, rule=EVIDENCE_NOT_FOUND)
        detail["span"] = list(span)
        return outcome

    def _extracted(self, reply: str, cells: PendingCells) -> dict[str, Any]:
        """Return the extracted answer, its place in the passage, and the matching key."""
        answer = answer_text(reply)
        if not cells.keys:
            return {"answer": answer}
        found = verify_answer(answer, cells.keys, cells.passage, self.mode, cells.item)
        evidence = {"answer": answer, "match": found.rule, "key": found.key, "span": found.span}
        return {name: value for name, value in evidence.items() if value is not None}


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {label: round(value, 6) for label, value in scores.items()}


def _confidence(
    outcome: Outcome, scores: Mapping[str, float] | None, detail: dict[str, Any]
) -> float | None:
    """Return the probability of the rating; add the expected rating to the detail."""
    if not scores or outcome.rating is None:
        return None
    detail["scores"] = _rounded(scores)
    numbers = {label: int(label) for label in scores if label.strip().isdigit()}
    if len(numbers) == len(scores):
        detail["expected"] = sum(numbers[label] * value for label, value in scores.items())
        return scores.get(str(outcome.rating))
    return max(scores.values())


def why_ungraded(grade: Grade) -> str:
    """Return the reason for a missing grade, such as: unparsed (off-scale), the reply '7'."""
    state = grade.state.name.lower()
    reason = (grade.detail or {}).get("reason") or grade.rule
    because = "" if reason == state else f" ({reason})"
    return f"{state}{because}, the reply {quoted(grade.reply or '')}"


def matching_mode(settings: Mapping[str, Any]) -> str:
    """Return the mode in which a grader with these settings matches extracted answers."""
    return "guarded" if settings.get("read") == "guarded" else "exam"


def unnumbered_of(settings: Mapping[str, Any]) -> str:
    """Return how a grader with these settings reads a text without a number."""
    return str(settings.get("unnumbered", UNNUMBERED[0]))


def unnumbered_setting(unnumbered: str) -> dict[str, str]:
    """Return it as a part of settings, empty for the default.

    Raises:
        InputError: It is not one of `records.graders.UNNUMBERED`.
    """
    if unnumbered not in UNNUMBERED:
        raise InputError(
            f"unnumbered is {unnumbered!r}", hint=f"Use one of {', '.join(UNNUMBERED)}"
        )
    return {} if unnumbered == UNNUMBERED[0] else {"unnumbered": unnumbered}
