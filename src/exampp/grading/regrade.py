"""Reread stored replies without a model, after a change of rules, scale or answer keys."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.graders.base import Reply
from exampp.graders.function import FUNCTION
from exampp.grading.requests import (
    EXTRACTION,
    SELF_RATING,
    ReplyRules,
    matching_mode,
    unnumbered_of,
    unnumbered_setting,
)
from exampp.prompts import Prompt, load_grading_prompt, load_named, prompt_content_hash
from exampp.records import Grade, GraderIdentity, State
from exampp.records.graders import MATCHINGS, UNNUMBERED
from exampp.sanitize import check_choice
from exampp.store.cells import PendingCells
from exampp.store.connection import transaction
from exampp.store.grades import (
    NO_KEY,
    GradeRow,
    ReplyToRead,
    Rules,
    StoredGrader,
    count_other_replies,
    find_grader,
    grade_row,
    graders,
    put_grader,
    put_readings,
    reading_rules,
    replies_to_read,
)
from exampp.store.pages import write_pages
from exampp.store.sql import batches

BATCH = 5000
_EXAM = "exam"
_MODES = (_EXAM, "rubric")
_EVIDENCE = frozenset(
    {"answer", "match", "key", "span", "scores", "expected", "evidence", "explanation"}
)
"""Keys that reading adds to the detail of a grade."""
_UNKNOWN_GRADER = 0
"""Key of a grader that is not stored; stored keys start at 1."""
_OF_READING = frozenset({"read", "rules", "unnumbered"})
"""Settings that control how replies are read; all others determine the replies."""
_WITHOUT_TEXT = frozenset({State.REFUSED, State.TRUNCATED, State.FAILED})


def read_again(rules: ReplyRules, stored: ReplyToRead) -> Grade:
    """Read a stored reply with these rules and the current answer key."""
    detail = dict(stored.detail or {})
    # a refusal detected in the text has no mark in its detail, and may be read differently
    is_marked = not {"refusal", "reason"}.isdisjoint(detail)
    if stored.state is State.FAILED or (stored.state is State.REFUSED and is_marked):
        return Grade("", stored.state, None, stored.reply, stored.rule, None, detail or None)
    evidence = _EVIDENCE if {"match", "evidence"} & detail.keys() else _EVIDENCE - {"span"}
    rest = {name: value for name, value in detail.items() if name not in evidence}
    truncated = stored.state is State.TRUNCATED
    reply = Reply(stored.reply, detail.get("scores"), truncated=truncated, detail=rest)
    return rules.read(PendingCells("", stored.item, stored.keys, stored.passage, ()), reply)


def _row(grader: int, rules: ReplyRules, stored: ReplyToRead, grade: Grade) -> GradeRow:
    """Return the row of a grade, with the current answer key if keys matter."""
    made_from = stored.answer_key if rules.prompt.verifies else NO_KEY
    return grade_row(grader, stored.item_version, stored.passage_version, grade, made_from)


# ---- after a change of answer keys ---------------------------------------------------------------


def record_rules(
    connection: sqlite3.Connection, identity: GraderIdentity, rules: Rules | None
) -> int:
    """Store the rules by which the replies of a grader are read; return its key.

    If the stored rules differ, reread all its replies with the new ones. Runs in the caller's
    transaction.
    """
    stored = StoredGrader(put_grader(connection, identity), identity)
    known = reading_rules(connection, stored.key)
    put_grader(connection, identity, rules)
    if rules is not None:
        _reverify(connection, stored, stale=not known or known == rules)
    return stored.key


def reverify_answers(connection: sqlite3.Connection) -> None:
    """Verify extracted answers again if the item's answer key has changed since.

    Runs in the caller's transaction, after all changes of keys. Replies to prompts that contain the
    key, or that have no stored rules, become pending.
    """
    for stored in graders(connection):
        _reverify(connection, stored, stale=True)


def _reverify(connection: sqlite3.Connection, stored: StoredGrader, *, stale: bool) -> None:
    rules = _stored_rules(connection, stored)
    if rules is None or (stale and rules.prompt.asks_key):
        return
    for batch in batches(replies_to_read(connection, stored.key, stale=stale), BATCH):
        rows = [_row(stored.key, rules, one, read_again(rules, one)) for one in batch]
        put_readings(connection, rows)


def _stored_rules(connection: sqlite3.Connection, stored: StoredGrader) -> ReplyRules | None:
    """Return the rules by which a grader's replies are verified; None if unknown."""
    known = reading_rules(connection, stored.key)
    if known is None:
        return None
    settings = stored.identity.settings
    mode = settings.get("read", _EXAM)
    described = known or settings.get("rules")
    if not described:
        try:
            return ReplyRules(load_named(stored.identity.prompt), mode)
        except InputError:
            return None
    return ReplyRules(_described_prompt(stored.identity, described), described.get("mode", mode))


def _described_prompt(identity: GraderIdentity, described: Rules) -> Prompt:
    fields = {name: value for name, value in described.items() if name != "mode"}
    return Prompt(title="", source="", grades=(identity.kind,), **fields)


# ---- by other rules ------------------------------------------------------------------------------


@dataclass(slots=True)
class Reparsed:
    """The result of rereading replies: source and target grader, and the changes.

    A change is (state and rating before, state and rating after). `kept` counts replies that remain
    refused, truncated or failed. `others` counts cells of `identity` with different replies, which
    are not changed. A `dry_run` writes nothing.
    """

    source: GraderIdentity
    identity: GraderIdentity
    replies: int = 0
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept: Counter[State] = field(default_factory=Counter)
    others: int = 0
    dry_run: bool = False


def reparse(
    connection: sqlite3.Connection,
    stored: StoredGrader,
    *,
    rules: str | Path | None = None,
    mode: str = _EXAM,
    unnumbered: str | None = None,
    matching: str | None = None,
    dry_run: bool = False,
) -> Reparsed:
    """Reread all stored replies of a grader in one transaction; `dry_run` writes nothing.

    `rules` is a prompt, by name or file, whose rules of reading replace those of the grader's
    prompt; `unnumbered` and `matching` default to those of the grader. Refusals marked by the model
    or server, truncated replies and failures do not change.

    Grades that exampp read by the same rules are replaced. Grades read by another program, mode or
    rules remain, and the new ones belong to another grader.

    Raises:
        InputError: There are no replies or no prompt, or an option has no effect.
    """
    reader = _chosen_rules(stored.identity, rules, mode, unnumbered, matching)
    identity = _target(stored.identity, reader)
    result = Reparsed(stored.identity, identity, dry_run=dry_run)
    if dry_run:
        target = find_grader(connection, identity) or _UNKNOWN_GRADER
        result.others = count_other_replies(connection, stored.key, target)
        for _ in _read_all(connection, stored.key, target, reader, result):
            pass
        return result
    with connection, transaction(connection):
        target = put_grader(connection, identity, reader.stored)
        result.others = count_other_replies(connection, stored.key, target)
        for rows in _read_all(connection, stored.key, target, reader, result):
            put_readings(connection, rows)
        write_pages(connection)
    return result


def _chosen_rules(
    identity: GraderIdentity,
    rules: str | Path | None,
    mode: str,
    unnumbered: str | None,
    matching: str | None,
) -> ReplyRules:
    if mode not in _MODES:
        raise InputError(f"unknown mode {mode!r}", hint=f"Use one of {', '.join(_MODES)}")
    settings = identity.settings
    if settings.get("name") == FUNCTION:
        what = f"the ratings of {identity.name} come from a function; it has no replies"
        raise InputError(what, hint="Grade under another name instead")
    prompt = _prompt(identity, rules)
    if prompt.reading == "thresholds":
        raise InputError("draft grades depend only on scores", hint="Nothing to reread")
    matters = mode == _EXAM and prompt.reading == SELF_RATING
    if unnumbered is not None and not matters:
        why = (
            f"the prompt {prompt.name!r} does not request a self-rating"
            if mode == _EXAM
            else "the papers' own program has another rule"
        )
        raise InputError(f"--unnumbered has no effect: {why}", hint="Remove it")
    without = (unnumbered or unnumbered_of(settings)) if matters else UNNUMBERED[0]
    if mode == _EXAM and prompt.reading == EXTRACTION:
        if matching is not None:
            check_choice("matching", matching, tuple(MATCHINGS))
        mode = MATCHINGS[matching] if matching else matching_mode(settings)
    elif matching is not None:
        why = "the prompt does not extract answers"
        why = why if mode == _EXAM else "the papers' own program has another rule"
        raise InputError(f"--matching has no effect: {why}", hint="Remove it")
    return replace(ReplyRules.of(prompt, settings), mode=mode, unnumbered=without, thresholds=())


def _prompt(identity: GraderIdentity, rules: str | Path | None) -> Prompt:
    """Return the prompt with the rules of reading: the named one, or that of the grader."""
    if rules is not None:
        return load_grading_prompt(rules)
    if described := identity.settings.get("rules"):
        return _described_prompt(identity, described)
    try:
        return load_named(identity.prompt)
    except InputError:
        raise InputError(
            f"the prompt {identity.prompt!r} of this grader is not bundled with exampp",
            hint="Give its file, or another prompt with the rules of reading, with --rules",
        ) from None


def _target(identity: GraderIdentity, rules: ReplyRules) -> GraderIdentity:
    """Return the grader of the new readings.

    A prompt's hash includes neither its scale nor its rules of reading, so the settings name a
    prompt that differs in them (or is another).
    """
    prompt = rules.prompt
    settings: dict[str, Any] = {
        name: value for name, value in identity.settings.items() if name not in _OF_READING
    }
    same = _is_same_prompt(identity, prompt)
    if rules.mode != _EXAM or not same or "prompt_hash" not in settings:
        settings["read"] = rules.mode
    if not same:
        settings["rules"] = rules.described
    settings |= unnumbered_setting(rules.unnumbered)
    return replace(identity, lowest=prompt.lowest, highest=prompt.highest, settings=settings)


def _is_same_prompt(identity: GraderIdentity, prompt: Prompt) -> bool:
    """Return whether the prompt has the rules and scale of the one that made the replies."""
    if prompt.name != identity.prompt or "rules" in identity.settings:
        return False
    made_with = identity.settings.get("prompt_hash")
    same_scale = (prompt.lowest, prompt.highest) == (identity.lowest, identity.highest)
    return made_with is None or (same_scale and made_with == prompt_content_hash(prompt))


def _read_all(
    connection: sqlite3.Connection, key: int, target: int, rules: ReplyRules, result: Reparsed
) -> Iterator[list[GradeRow]]:
    """Yield the new grades as rows, batch by batch, and count them in `result`."""
    for batch in batches(replies_to_read(connection, key), BATCH):
        rows: list[GradeRow] = []
        for one in batch:
            result.replies += 1
            grade = read_again(rules, one)
            if grade.state is one.state and one.state in _WITHOUT_TEXT:
                result.kept[one.state] += 1
            change = (
                _outcome_text(one.state, one.rating),
                _outcome_text(grade.state, grade.rating),
            )
            if change[0] != change[1]:
                result.changes[change] += 1
            rows.append(_row(target, rules, one, grade))
        yield rows
    if not result.replies:
        raise InputError(
            f"no replies of {result.source.name} are stored",
            hint="Nothing to reread; create grades with exampp grade",
        )


def _outcome_text(state: State, rating: int | None) -> str:
    return str(rating) if state is State.GRADED else state.name.lower()
