"""Reads kept replies again, without a model: after a change of rules, scale or answer keys."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exampp.errors import InputError
from exampp.graders.function import FUNCTION
from exampp.grading.plan import SELF_RATING, least_mass_of, unnumbered_of, unnumbered_setting
from exampp.grading.regrade import BATCH, RegradeRules, regrade_reply
from exampp.grading.requests import describe_rules
from exampp.prompts import Prompt, content_hash, load, load_named
from exampp.prompts.replies import READERS, UNNUMBERED
from exampp.records import GraderIdentity, State
from exampp.store.connection import transaction
from exampp.store.grades import (
    GradeRow,
    StoredGrader,
    count_other_replies,
    find_grader,
    put_grader,
    put_readings,
    replies_to_read,
)
from exampp.store.interning import batches

_EXAM = "exam"
_NOBODY = 0
"""The key of a grader that is not there; the store counts from 1."""
_OF_READING = frozenset({"read", "rules", "unnumbered"})
"""Settings that say how replies are read; all others determine the replies themselves."""
_WITHOUT_TEXT = frozenset({State.REFUSED, State.TRUNCATED, State.FAILED})


@dataclass(slots=True)
class Reparsed:
    """What reading again did: whose replies, whose grades they became, and what changed.

    A change is (state and rating before, state and rating after). `kept` counts replies that stay
    refused, truncated or failed. `others` counts cells of `identity` that have
    replies of their own, and stay. Nothing is written where `dry_run`.
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
    """Read all kept replies of a grader again, in one transaction; `dry_run` writes nothing.

    `rules` is a prompt, by name or file, whose rules of reading count in place of those of the
    grader's own prompt; `unnumbered` is by default what it is to the grader. Refusals that the
    model or the server marked, replies that were cut off and failures stay what they are.

    Grades that exampp read by the same rules are replaced. Those that another program, another
    mode or other rules read stay, and the new ones become those of a grader of their own.

    Raises InputError where there is nothing to read, or no prompt to read it by, and for an option
    that would change nothing.
    """
    chosen = _rules(stored.identity, rules, mode, unnumbered)
    identity = _target(stored.identity, chosen)
    result = Reparsed(stored.identity, identity, dry_run=dry_run)
    if dry_run:
        target = find_grader(connection, identity) or _NOBODY
        result.others = count_other_replies(connection, stored.key, target)
        for _ in _read_all(connection, stored.key, target, chosen, result):
            pass
        return result
    with connection, transaction(connection):
        target = put_grader(connection, identity, chosen.kept)
        result.others = count_other_replies(connection, stored.key, target)
        for rows in _read_all(connection, stored.key, target, chosen, result):
            put_readings(connection, rows)
    return result


def _rules(
    identity: GraderIdentity, rules: str | Path | None, mode: str, unnumbered: str | None
) -> RegradeRules:
    if mode not in READERS:
        raise InputError(f"there is no mode {mode!r}", mend=f"Give one of {', '.join(READERS)}")
    if identity.settings.get("name") == FUNCTION:
        what = f"the ratings of {identity.name} are those of a function, and no replies"
        raise InputError(what, mend="There is nothing to read again; grade under another name")
    prompt = _prompt(identity, rules)
    if prompt.reading == "thresholds":
        raise InputError(
            "draft grades follow from scores alone", mend="There is nothing to read again"
        )
    matters = mode == _EXAM and prompt.reading == SELF_RATING
    if unnumbered is not None and not matters:
        why = (
            f"the prompt {prompt.name!r} asks for no self-rating"
            if mode == _EXAM
            else "the papers' own program has a rule of its own"
        )
        raise InputError(f"--unnumbered would change nothing: {why}", mend="Leave it out")
    settings = identity.settings
    without = (unnumbered or unnumbered_of(settings)) if matters else UNNUMBERED[0]
    return RegradeRules(prompt, mode, without, least_mass_of(settings))


def _prompt(identity: GraderIdentity, rules: str | Path | None) -> Prompt:
    """The prompt by whose rules is read: the one named, or the one that read before."""
    if rules is not None:
        return load(rules)
    described = identity.settings.get("rules")
    if described is not None:
        return Prompt(title="", source="", grades=(identity.kind,), **described)
    try:
        return load_named(identity.prompt)
    except InputError:
        raise InputError(
            f"the prompt {identity.prompt!r} of this grader does not come with exampp",
            mend="Give its file, or a prompt whose rules of reading are to count, with --rules",
        ) from None


def _target(identity: GraderIdentity, rules: RegradeRules) -> GraderIdentity:
    """Whose grades the new readings are.

    Scale and rules of reading are no part of what a prompt's hash covers, so that a prompt which
    differs in them (or is another) is named in the settings.
    """
    prompt = rules.prompt
    settings: dict[str, Any] = {
        name: value for name, value in identity.settings.items() if name not in _OF_READING
    }
    ours = "prompt_hash" in settings
    own = _is_own(identity, prompt)
    if rules.mode != _EXAM or not ours or not own:
        settings["read"] = rules.mode
    if not own:
        settings["rules"] = describe_rules(prompt)
    settings |= unnumbered_setting(rules.unnumbered)
    return replace(identity, lowest=prompt.lowest, highest=prompt.highest, settings=settings)


def _is_own(identity: GraderIdentity, prompt: Prompt) -> bool:
    """Whether these are the rules of the prompt that made the replies, on the scale it had."""
    if prompt.name != identity.prompt or "rules" in identity.settings:
        return False
    made_with = identity.settings.get("prompt_hash")
    if made_with is None:
        return True
    same_scale = (prompt.lowest, prompt.highest) == (identity.lowest, identity.highest)
    return same_scale and made_with == content_hash(prompt)


def _read_all(
    connection: sqlite3.Connection, key: int, target: int, rules: RegradeRules, result: Reparsed
) -> Iterator[list[GradeRow]]:
    """The new grades as rows, batch by batch; `result` counts them."""
    read = rules.reader
    for batch in batches(replies_to_read(connection, key), BATCH):
        rows: list[GradeRow] = []
        for kept in batch:
            result.replies += 1
            grade = regrade_reply(read, kept)
            if grade.state is kept.state and kept.state in _WITHOUT_TEXT:
                result.kept[kept.state] += 1
            change = (_shown(kept.state, kept.rating), _shown(grade.state, grade.rating))
            if change[0] != change[1]:
                result.changes[change] += 1
            rows.append(rules.row(target, kept, grade))
        yield rows
    if not result.replies:
        raise InputError(
            f"no replies of {result.source.name} were kept",
            mend="There is nothing to read again; grade with exampp grade",
        )


def _shown(state: State, rating: int | None) -> str:
    return str(rating) if state is State.GRADED else state.name.lower()
