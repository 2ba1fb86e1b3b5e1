"""From what is due to what a grader is asked: prompts are filled, and cut to the model's limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, Grader, Reply, Request
from exampp.prompts import Filled, Prompt, answer_text, fill, fit, read, verify
from exampp.prompts.replies import UNNUMBERED
from exampp.records import Outcome, State
from exampp.records.readings import LITTLE_MASS
from exampp.records.wording import quoted
from exampp.store.cells import PendingCells
from exampp.store.grades import Rules


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """A reply as it is kept: state and rating, confidence, and what else people may want to see."""

    outcome: Outcome
    confidence: float | None = None
    detail: Mapping[str, Any] | None = None


def why_ungraded(text: str, reading: ReplyReading) -> str:
    """Why a reply gives no grade, and the reply: unparsed (off-scale), the reply '7'."""
    state = reading.outcome.state.name.lower()
    reason = (reading.detail or {}).get("reason") or reading.outcome.rule
    because = "" if reason == state else f" ({reason})"
    return f"{state}{because}, the reply {quoted(text)}"


ReplyReader = Callable[[PendingCells, Reply], ReplyReading]


def describe_rules(prompt: Prompt) -> dict[str, Any]:
    """The rules of reading of a prompt, JSON-able."""
    names = ("name", "reading", "lowest", "highest", "field")
    return {name: getattr(prompt, name) for name in names}


def verification_rules(prompt: Prompt, mode: str = "exam") -> Rules | None:
    """How replies to a prompt are read, to be kept with a grader to whom known answers matter."""
    if not prompt.verifies:
        return None
    return {**describe_rules(prompt), "slots": list(prompt.slots), "mode": mode}


def reply_reader(
    prompt: Prompt,
    *,
    thresholds: Sequence[float] = (),
    mode: str = "exam",
    unnumbered: str = UNNUMBERED[0],
    least_mass: float = LEAST_MASS,
) -> ReplyReader:
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

    def read_reply(due: PendingCells, reply: Reply) -> ReplyReading:
        if reply.fault:
            return ReplyReading(Outcome(State.FAILED), None, {"reason": reply.fault})
        detail = dict(reply.detail)
        if reply.cut:
            detail["cut"] = True
        if detail.get("refusal"):
            return ReplyReading(Outcome(State.REFUSED, rule="refused"), None, detail)
        if detail.get("thoughts") and not reply.text.strip() and not reply.truncated:
            return ReplyReading(Outcome(State.UNPARSED, rule="unfinished thought"), None, detail)
        keys = due.keys if prompt.reading == "extraction" else ()
        found = outcome(reply, keys)
        if detail.get("outside", 0.0) > 1.0 - least_mass:
            # the model wants to say something else: the likeliest label is a guess of ours
            state = State.TRUNCATED if reply.truncated else State.UNPARSED
            scores = {label: round(value, 6) for label, value in (reply.scores or {}).items()}
            detail |= {"scores": scores} if scores else {}
            return ReplyReading(Outcome(state, rule=LITTLE_MASS), None, detail)
        if prompt.reading == "extraction" and found.state is State.GRADED:
            detail |= _evidence(reply.text, due, mode, prompt.language)
        confidence = _confidence(found, reply.scores, detail)
        return ReplyReading(found, confidence, detail or None)

    return read_reply


def _evidence(reply: str, due: PendingCells, mode: str, language: str) -> dict[str, Any]:
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


class SentPrompt(NamedTuple):
    """What is sent; `kept` counts the characters that remain of a passage that was cut."""

    ask: Request
    kept: int | None = None


RequestBuilder = Callable[[int, PendingCells], SentPrompt]


LEAST_PASSAGE = 32
"""Tokens that a prompt must leave for item and passage: some two dozen words."""
_FILLED = {"query": "the query has no text", "correct_answer": "the item has no answer key"}
"""Slots that are never left empty, and why one would be."""


def prompt_slots(due: PendingCells, kind: str) -> Mapping[str, str]:
    """The texts that a prompt may ask for, by slot."""
    return {
        "question": due.item,
        "nugget": due.item,
        "nuggets": repr([due.item]),
        "query": due.item if kind == "query" else due.query,
        "context": due.passage,
        "answer": due.passage,
        "correct_answer": " or ".join(due.keys),
    }


def fill_cell_prompt(prompt: Prompt, kind: str, grader: Grader, due: PendingCells) -> Filled:
    """The filled prompt, its passage cut where the grader knows a limit.

    Raises InputError where instructions and item alone are too long for the model, and where the
    prompt asks for a query's text or known answers, and there are none.
    """
    slots = prompt_slots(due, kind)
    for name, what in _FILLED.items():
        if name in prompt.slots and not slots[name].strip():
            raise InputError(f"{what}, and the prompt {prompt.name!r} asks for {{{name}}}")
    limit = grader.limit
    if limit is None:
        return fill(prompt, slots)

    def overhead(filled: Filled) -> int:
        parts = sum(len(grader.offsets(text)) for text in (filled.system, filled.user) if text)
        return grader.length(filled.user, filled.system) - parts

    return fit(prompt, slots, limit, grader.offsets, overhead)


def check_prompt_fits(prompt: Prompt, grader: Grader) -> None:
    """Refuse a prompt whose own text fills what the model takes, before anything is asked.

    For graders that know a limit and count tokens, wherever they run.
    """
    limit = grader.limit
    if limit is None or not prompt.user:
        return
    empty = fill(prompt, dict.fromkeys(prompt.slots, ""))
    alone = grader.length(empty.user, empty.system)
    if limit - alone < LEAST_PASSAGE:
        raise InputError(
            f"the prompt {prompt.name!r} has {alone} tokens before item and passage are put in; "
            f"the model takes {limit}, which leaves {max(0, limit - alone)} for them, and "
            f"{LEAST_PASSAGE} are the least",
            field="prompt",
            mend="Choose a shorter prompt (exampp prompts list) or a model that takes more",
        )


def request_builder(prompt: Prompt, kind: str, grader: Grader) -> RequestBuilder:
    """How a grader of this prompt is asked; without a prompt text it gets the pair alone."""

    def ask(key: int, due: PendingCells) -> SentPrompt:
        filled = fill_cell_prompt(prompt, kind, grader, due) if prompt.user else _NOTHING
        ids = due.ids
        asked = Request(
            key,
            due.item,
            due.passage,
            filled.user,
            filled.system,
            due.query,
            ids.query,
            ids.item,
            ids.passage,
            ids.subtopic,
            due.keys,
            kind,
        )
        return SentPrompt(asked, filled.kept)

    return ask


_NOTHING = Filled("", "")
