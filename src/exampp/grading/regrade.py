"""Kept replies, read again without a model: what a change of an answer key asks for."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.graders.base import LEAST_MASS, Reply
from exampp.grading.requests import ReplyReader, reply_reader, verification_rules
from exampp.prompts import Prompt, load_named
from exampp.prompts.replies import UNNUMBERED
from exampp.records import Grade, GraderIdentity, State
from exampp.store.cells import PendingCells
from exampp.store.grades import (
    NO_KEY,
    GradeRow,
    ReplyToRead,
    Rules,
    StoredGrader,
    grade_row,
    graders,
    put_grader,
    put_readings,
    reading_rules,
    replies_to_read,
)
from exampp.store.interning import batches

BATCH = 5000
_EVIDENCE = frozenset({"answer", "match", "key", "span", "scores", "expected"})
"""What reading adds to the detail of a grade."""


@dataclass(frozen=True, slots=True)
class RegradeRules:
    """How replies are read again: the rules of a prompt, a mode of `prompts.reading`, what a text
    without a number is, and what labels must have of the probability.
    """

    prompt: Prompt
    mode: str = "exam"
    unnumbered: str = UNNUMBERED[0]
    least_mass: float = LEAST_MASS

    @property
    def reader(self) -> ReplyReader:
        """The rules at work."""
        return reply_reader(
            self.prompt, mode=self.mode, unnumbered=self.unnumbered, least_mass=self.least_mass
        )

    @property
    def kept(self) -> Rules | None:
        """The same as it is kept with a grader, where known answers play a part."""
        return verification_rules(self.prompt, self.mode)

    def row(self, grader: int, kept: ReplyToRead, grade: Grade) -> GradeRow:
        """What was read of a reply, as made from today's answer key where keys play a part."""
        made_from = kept.answer_key if self.prompt.verifies else NO_KEY
        return grade_row(grader, kept.item_version, kept.passage_version, grade, made_from)


def record_rules(
    connection: sqlite3.Connection, identity: GraderIdentity, rules: Rules | None
) -> int:
    """The key of a grader whose replies are read by these rules from now on.

    Where others were noted, what it replied so far is read again by these. In the caller's
    transaction.
    """
    stored = StoredGrader(put_grader(connection, identity), identity)
    known = reading_rules(connection, stored.key)
    put_grader(connection, identity, rules)
    if rules is not None:
        _read_again(connection, stored, stale=not known or known == rules)
    return stored.key


def reverify_answers(connection: sqlite3.Connection) -> None:
    """Verify extracted answers anew wherever the item's answer key has changed since.

    Nobody is asked. In the caller's transaction, after whatever changed keys. Replies that were
    made with the key in the prompt, and those of a prompt whose rules nobody noted, are due.
    """
    for stored in graders(connection):
        _read_again(connection, stored, stale=True)


def _read_again(connection: sqlite3.Connection, stored: StoredGrader, *, stale: bool) -> None:
    rules = _rules_of(connection, stored)
    if rules is None or (stale and rules.prompt.asks_key):
        return
    read = rules.reader
    for batch in batches(replies_to_read(connection, stored.key, stale=stale), BATCH):
        rows = [rules.row(stored.key, kept, regrade_reply(read, kept)) for kept in batch]
        put_readings(connection, rows)


def _rules_of(connection: sqlite3.Connection, stored: StoredGrader) -> RegradeRules | None:
    """The rules by which a grader's replies are verified; None where there are none, or unknown."""
    known = reading_rules(connection, stored.key)
    if known is None:
        return None
    settings = stored.identity.settings
    described = known or settings.get("rules")
    if not described:
        try:
            return RegradeRules(load_named(stored.identity.prompt), settings.get("read", "exam"))
        except InputError:
            return None
    said = {"mode": settings.get("read", "exam"), **described}
    mode = str(said.pop("mode"))
    return RegradeRules(Prompt(title="", source="", grades=(stored.identity.kind,), **said), mode)


def regrade_reply(rules: ReplyReader, kept: ReplyToRead) -> Grade:
    """What a kept reply says, by these rules and today's answer key."""
    detail = dict(kept.detail or {})
    if _is_final(kept):
        return Grade("", kept.state, None, kept.reply, kept.rule, None, detail or None)
    scores = detail.get("scores")
    ours = _EVIDENCE if "match" in detail else _EVIDENCE - {"span"}
    rest = {name: value for name, value in detail.items() if name not in ours}
    truncated = kept.state is State.TRUNCATED
    reply = Reply(kept.reply, scores, truncated=truncated, detail=rest)
    reading = rules(PendingCells("", kept.item, kept.keys, kept.passage, ()), reply)
    outcome = reading.outcome
    return Grade(
        "",
        outcome.state,
        outcome.rating,
        kept.reply,
        outcome.rule,
        reading.confidence,
        reading.detail,
    )


def _is_final(kept: ReplyToRead) -> bool:
    """Whether no text can undo the state: the model or the server said it, beside its reply.

    A refusal that was told from the text alone has no reason in its detail.
    """
    if kept.state is State.REFUSED:
        return not {"refusal", "reason"}.isdisjoint(kept.detail or {})
    return kept.state is State.FAILED
