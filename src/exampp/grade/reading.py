"""From raw replies to grades: the rules of the prompt, the answer key, label probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exampp.llm.base import LEAST_MASS, Reply
from exampp.prompts import Prompt, answer_text, read, verify
from exampp.prompts.reading import UNNUMBERED
from exampp.records import Outcome, State
from exampp.records.readings import LITTLE_MASS
from exampp.records.wording import quoted
from exampp.store.cells import Due
from exampp.store.grades import Rules


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply as it is kept: state and rating, confidence, and what else people may want to see."""

    outcome: Outcome
    confidence: float | None = None
    detail: Mapping[str, Any] | None = None


def why_ungraded(text: str, reading: Reading) -> str:
    """Why a reply gives no grade, and the reply: unparsed (off-scale), the reply '7'."""
    state = reading.outcome.state.name.lower()
    reason = (reading.detail or {}).get("reason") or reading.outcome.rule
    because = "" if reason == state else f" ({reason})"
    return f"{state}{because}, the reply {quoted(text)}"


Reader = Callable[[Due, Reply], Reading]


def described(prompt: Prompt) -> dict[str, Any]:
    """The rules of reading of a prompt, JSON-able."""
    names = ("name", "reading", "lowest", "highest", "field")
    return {name: getattr(prompt, name) for name in names}


def rules_of(prompt: Prompt, mode: str = "exam") -> Rules | None:
    """How replies to a prompt are read, to be kept with a grader to whom known answers matter."""
    if not prompt.verifies:
        return None
    return {**described(prompt), "slots": list(prompt.slots), "mode": mode}


def reader(
    prompt: Prompt,
    *,
    thresholds: Sequence[float] = (),
    mode: str = "exam",
    unnumbered: str = UNNUMBERED[0],
    least_mass: float = LEAST_MASS,
) -> Reader:
    """The rules by which replies to a prompt are read.

    `mode` and `unnumbered` are those of `prompts.reading`. A reply that the server or the model
    itself marks as a refusal is one, whatever its text says, and its detail keeps the mark. Where
    the labels hold less than `least_mass` of the probability, none of them is the reply.
    """

    def outcome(reply: Reply, keys: Sequence[str]) -> Outcome:
        return read(
            prompt.reading,
            reply.text,
            lowest=prompt.lowest,
            highest=prompt.highest,
            mode=mode,
            field=prompt.field,
            truncated=reply.truncated,
            thresholds=thresholds,
            keys=keys,
            unnumbered=unnumbered,
            language=prompt.language,
        )

    def read_reply(due: Due, reply: Reply) -> Reading:
        if reply.fault:
            return Reading(Outcome(State.FAILED), None, {"reason": reply.fault})
        detail = dict(reply.detail)
        if reply.cut:
            detail["cut"] = True
        if detail.get("refusal"):
            return Reading(Outcome(State.REFUSED, rule="refused"), None, detail)
        if detail.get("thoughts") and not reply.text.strip() and not reply.truncated:
            return Reading(Outcome(State.UNPARSED, rule="unfinished thought"), None, detail)
        keys = due.keys if prompt.reading == "extraction" else ()
        found = outcome(reply, keys)
        if detail.get("outside", 0.0) > 1.0 - least_mass:
            # the model wants to say something else: the likeliest label is a guess of ours
            state = State.TRUNCATED if reply.truncated else State.UNPARSED
            scores = {label: round(value, 6) for label, value in (reply.scores or {}).items()}
            detail |= {"scores": scores} if scores else {}
            return Reading(Outcome(state, rule=LITTLE_MASS), None, detail)
        if prompt.reading == "extraction" and found.state is State.GRADED:
            detail |= _evidence(reply.text, due, mode, prompt.language)
        confidence = _confidence(found, reply.scores, detail)
        return Reading(found, confidence, detail or None)

    return read_reply


def _evidence(reply: str, due: Due, mode: str, language: str) -> dict[str, Any]:
    """The extracted answer, where it stands in the passage, and the known answer it matches."""
    answer = answer_text(reply)
    if not due.keys:
        return {"answer": answer}
    verified = verify(answer, due.keys, due.passage, mode, language)
    found = {"answer": answer, "match": verified.rule, "key": verified.key, "span": verified.span}
    return {name: value for name, value in found.items() if value is not None}


def _confidence(
    outcome: Outcome, scores: Mapping[str, float] | None, detail: dict[str, Any]
) -> float | None:
    """The probability of the rating given; the expected rating joins the detail."""
    if not scores or outcome.rating is None:
        return None
    detail["scores"] = {label: round(value, 6) for label, value in scores.items()}
    numbers = {label: int(label) for label in scores if label.strip().isdigit()}
    if len(numbers) == len(scores):
        detail["expected"] = sum(numbers[label] * value for label, value in scores.items())
        return scores.get(str(outcome.rating))
    return max(scores.values())
