"""Reads kept replies again, without a model: after a change of rules, scale or answer keys."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field, replace

from exampp.errors import InputError
from exampp.grade.reading import Reader, reader
from exampp.llm.base import Reply
from exampp.prompts import Prompt
from exampp.records import Grade, GraderIdentity, State
from exampp.store.cells import Due
from exampp.store.connection import transaction
from exampp.store.grades import (
    KeptReply,
    StoredGrader,
    grade_row,
    kept_replies,
    put_grader,
    rewrite_grades,
)
from exampp.store.interning import batches

BATCH = 5000


@dataclass(slots=True)
class Reparsed:
    """What reading again did: whose grades it wrote, and how many changed from what to what.

    A change is (state and rating before, state and rating after).
    """

    identity: GraderIdentity
    replies: int = 0
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)


def reparse(
    connection: sqlite3.Connection, stored: StoredGrader, prompt: Prompt, mode: str = "exam"
) -> Reparsed:
    """Read all kept replies of a grader by the rules of a prompt, in one transaction.

    Grades that exampp itself read by the same rules are replaced; those that another program or
    another mode read stay, and the new ones become those of a grader of their own.
    """
    if prompt.reading == "thresholds":
        raise InputError(
            "draft grades follow from scores alone", mend="There is nothing to read again"
        )
    identity = _identity(stored.identity, prompt, mode)
    rules = reader(prompt, mode=mode)
    result = Reparsed(identity)
    with transaction(connection):
        target = put_grader(connection, identity)
        for batch in batches(kept_replies(connection, stored.key), BATCH):
            rows = []
            for kept in batch:
                grade = _read(rules, kept)
                result.replies += 1
                change = (_shown(kept.state, kept.rating), _shown(grade.state, grade.rating))
                if change[0] != change[1]:
                    result.changes[change] += 1
                rows.append(grade_row(target, kept.item_version, kept.passage_version, grade))
            rewrite_grades(connection, rows)
    return result


def _identity(identity: GraderIdentity, prompt: Prompt, mode: str) -> GraderIdentity:
    ours = "prompt_hash" in identity.settings
    if ours and identity.settings.get("read", "exam") == mode:
        return identity
    settings = {**identity.settings, "read": mode}
    return replace(identity, lowest=prompt.lowest, highest=prompt.highest, settings=settings)


def _read(rules: Reader, kept: KeptReply) -> Grade:
    scores = (kept.detail or {}).get("scores")
    truncated = kept.state is State.TRUNCATED
    reply = Reply(kept.reply, scores, truncated=truncated)
    due = Due("", kept.item, kept.keys, kept.passage, ())
    reading = rules(due, reply)
    outcome = reading.outcome
    cut = {name: value for name, value in (kept.detail or {}).items() if name in ("cut", "kept")}
    detail = {**cut, **(reading.detail or {})}
    return Grade(
        "", outcome.state, outcome.rating, kept.reply, outcome.rule, reading.confidence, detail
    )


def _shown(state: State, rating: int | None) -> str:
    return str(rating) if state is State.GRADED else state.name.lower()
