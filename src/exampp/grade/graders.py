"""Graders by name: the backend, who it is, and how its replies are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from exampp.errors import InputError
from exampp.grade.run import Reader
from exampp.llm.base import Grader, Reply
from exampp.llm.draft import THRESHOLDS, DraftGrader
from exampp.prompts import load, read
from exampp.records import ITEM_KINDS, GraderIdentity, Outcome, State


@dataclass(frozen=True, slots=True)
class Grading:
    """Everything that turns due cells into grades."""

    grader: Grader
    identity: GraderIdentity
    read: Reader


def draft(kind: str) -> Grading:
    """The offline similarity grader; its grades are draft grades, labelled wherever they appear."""
    prompt = load("draft")
    grader = DraftGrader()
    settings = {**grader.settings, "thresholds": list(THRESHOLDS)}
    identity = GraderIdentity("draft", prompt.name, kind, prompt.lowest, prompt.highest, settings)
    reading = partial(read, prompt.reading, highest=prompt.highest, thresholds=THRESHOLDS)
    return Grading(grader, identity, partial(_read, reading))


def _read(reading: Callable[[str], Outcome], reply: Reply) -> Outcome:
    if reply.fault:
        return Outcome(State.FAILED, rule="fault")
    return reading(reply.text)


GRADERS: Mapping[str, Callable[[str], Grading]] = {"draft": draft}


def make_grading(name: str, kind: str) -> Grading:
    """The grading of a name in `GRADERS` for a kind of item; InputError for others."""
    if name not in GRADERS:
        raise InputError(f"no grader is called {name!r}", mend=f"Known: {', '.join(GRADERS)}")
    if kind not in ITEM_KINDS:
        raise InputError(f"{kind!r} is no kind of item", mend=f"Known: {', '.join(ITEM_KINDS)}")
    return GRADERS[name](kind)
