"""Read stored replies again, without a model: after a change of rules, scale or answer keys."""

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
from exampp.grading.requests import SELF_RATING, ReplyRules, unnumbered_of, unnumbered_setting
from exampp.prompts import Prompt, load_grading_prompt, load_named, prompt_content_hash
from exampp.prompts.replies import READERS
from exampp.records import Grade, GraderIdentity, State
from exampp.records.graders import UNNUMBERED
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
_EVIDENCE = frozenset({"answer", "match", "key", "span", "scores", "expected"})
"""Keys that reading adds to the detail of a grade."""
_UNKNOWN_GRADER = 0
"""The key of a grader that is not stored; the store counts from 1."""
_OF_READING = frozenset({"read", "rules", "unnumbered"})
"""Settings that control how replies are read; all others determine the replies themselves."""
_WITHOUT_TEXT = frozenset({State.REFUSED, State.TRUNCATED, State.FAILED})


def read_again(rules: ReplyRules, stored: ReplyToRead) -> Grade:
    """Read a stored reply by these rules and today's answer key."""
    detail = dict(stored.detail or {})
    # a refusal that the text alone told has no mark in its detail, and may be read otherwise
    is_marked = not {"refusal", "reason"}.isdisjoint(detail)
    if stored.state is State.FAILED or (stored.state is State.REFUSED and is_marked):
        return Grade("", stored.state, None, stored.reply, stored.rule, None, detail or None)
    evidence = _EVIDENCE if "match" in detail else _EVIDENCE - {"span"}
    rest = {name: value for name, value in detail.items() if name not in evidence}
    truncated = stored.state is State.TRUNCATED
    reply = Reply(stored.reply, detail.get("scores"), truncated=truncated, detail=rest)
    return rules.read(PendingCells("", stored.item, stored.keys, stored.passage, ()), reply)


def _row(grader: int, rules: ReplyRules, stored: ReplyToRead, grade: Grade) -> GradeRow:
    """Return a grade as made from today's answer key, if keys matter."""
    made_from = stored.answer_key if rules.prompt.verifies else NO_KEY
    return grade_row(grader, stored.item_version, stored.passage_version, grade, made_from)


# ---- after a change of answer keys ---------------------------------------------------------------


def record_rules(
    connection: sqlite3.Connection, identity: GraderIdentity, rules: Rules | None
) -> int:
    """Store the rules by which the replies of a grader are read; return its key.

    If others were stored, all its replies are read again by the new ones. Runs in the caller's
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

    Runs in the caller's transaction, after all changes of keys. Replies that were made with the key
    in the prompt, and those of a prompt without stored rules, become pending.
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
    """The result of reading replies again: source and target grader, and the changes.

    A change is (state and rating before, state and rating after). `kept` counts replies that stay
    refused, truncated or failed. `others` counts cells of `identity` with different replies, which
    stay. Nothing is written if `dry_run`.
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
    dry_run: bool = False,
) -> Reparsed:
    """Read all stored replies of a grader again, in one transaction; `dry_run` writes nothing.

    `rules` is a prompt, by name or file, whose rules of reading replace those of the grader's own
    prompt; `unnumbered` is by default that of the grader. Refusals that the model or the server
    marked, replies that were cut off and failures stay.

    Grades that exampp read by the same rules are replaced. Those that another program, another mode
    or other rules read stay, and the new ones become those of another grader.

    Raises:
        InputError: There is nothing to read, or no prompt to read it by, or an option would change
            nothing.
    """
    reader = _chosen_rules(stored.identity, rules, mode, unnumbered)
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
    identity: GraderIdentity, rules: str | Path | None, mode: str, unnumbered: str | None
) -> ReplyRules:
    if mode not in READERS:
        raise InputError(f"unknown mode {mode!r}", hint=f"Give one of {', '.join(READERS)}")
    settings = identity.settings
    if settings.get("name") == FUNCTION:
        what = f"the ratings of {identity.name} are those of a function, and no replies"
        raise InputError(what, hint="There is nothing to read again; grade under another name")
    prompt = _prompt(identity, rules)
    if prompt.reading == "thresholds":
        raise InputError(
            "draft grades follow from scores alone", hint="There is nothing to read again"
        )
    matters = mode == _EXAM and prompt.reading == SELF_RATING
    if unnumbered is not None and not matters:
        why = (
            f"the prompt {prompt.name!r} does not request a self-rating"
            if mode == _EXAM
            else "the papers' own program has another rule"
        )
        raise InputError(f"--unnumbered would change nothing: {why}", hint="Leave it out")
    without = (unnumbered or unnumbered_of(settings)) if matters else UNNUMBERED[0]
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
            f"the prompt {identity.prompt!r} of this grader does not come with exampp",
            hint="Give its file, or a prompt whose rules of reading are to count, with --rules",
        ) from None


def _target(identity: GraderIdentity, rules: ReplyRules) -> GraderIdentity:
    """Return the grader that the new readings belong to.

    A prompt's hash covers neither its scale nor its rules of reading, so the settings name a prompt
    that differs in them (or is another).
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
    """Return whether these are the rules of the prompt that made the replies, on its scale."""
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
            change = (_shown(one.state, one.rating), _shown(grade.state, grade.rating))
            if change[0] != change[1]:
                result.changes[change] += 1
            rows.append(_row(target, rules, one, grade))
        yield rows
    if not result.replies:
        raise InputError(
            f"no replies of {result.source.name} are stored",
            hint="There is nothing to read again; grade with exampp grade",
        )


def _shown(state: State, rating: int | None) -> str:
    return str(rating) if state is State.GRADED else state.name.lower()
