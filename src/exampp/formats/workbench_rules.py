"""By which rule exampp would read the rating of a workbench file from its reply."""

from __future__ import annotations

from functools import lru_cache

from exampp import prompts
from exampp.errors import InputError
from exampp.prompts.catalogue import load_named
from exampp.records import GraderIdentity
from exampp.records.readings import IMPORTED, OTHERWISE


def rule_of(identity: GraderIdentity, reply: str | None, rating: int) -> str:
    """The rule by which exampp reads the same rating from a reply; what else a file may say.

    `IMPORTED` where there is no reply, or no rules that read one without the answer keys;
    `OTHERWISE` where exampp reads another rating, or none.
    """
    if not reply:
        return IMPORTED
    return _rule(identity.prompt, identity.highest, reply, rating)


@lru_cache(maxsize=8192)
def _rule(prompt_name: str, highest: int, reply: str, rating: int) -> str:
    try:
        prompt = load_named(prompt_name)
    except InputError:
        return IMPORTED
    if prompt.reading not in _READ_FROM_FILES:
        return IMPORTED
    found = prompts.read(
        prompt.reading, reply, lowest=prompt.lowest, highest=highest, field=prompt.field
    )
    return found.rule if found.rating == rating else OTHERWISE


_READ_FROM_FILES = frozenset({"self-rating", "rating", "yes-no"})
"""Readings for which a reply is enough."""
