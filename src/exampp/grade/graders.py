"""Gradings by name: the backend, who it is, how it is asked and how its replies are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from exampp.errors import InputError
from exampp.grade.asking import asker
from exampp.grade.reading import reader
from exampp.grade.run import Grading
from exampp.llm.base import Grader
from exampp.llm.draft import THRESHOLDS, DraftGrader
from exampp.prompts import Prompt, content_hash, load
from exampp.records import GraderIdentity


def kind_of(prompt: Prompt, kind: str | None) -> str:
    """What a prompt grades; `kind` chooses where it can grade several."""
    kinds = tuple("question" if grades == "answer" else grades for grades in prompt.grades)
    if kind is None:
        return kinds[0]
    if kind not in kinds:
        raise InputError(
            f"the prompt {prompt.name!r} grades {' or '.join(kinds)}, not {kind}",
            mend="Leave --kind away, or choose another prompt (exampp prompts list)",
        )
    return kind


def grading(
    grader: Grader,
    model: str,
    prompt: Prompt,
    kind: str,
    *,
    thresholds: tuple[float, ...] = (),
    settings: Mapping[str, Any] | None = None,
) -> Grading:
    """Join a backend and a prompt; what the identity holds determines every reply and rating."""
    identity = GraderIdentity(
        model,
        prompt.name,
        kind,
        prompt.lowest,
        prompt.highest,
        {
            **grader.settings,
            **({"prompt_hash": content_hash(prompt)} if prompt.user else {}),
            **({"thresholds": list(thresholds)} if thresholds else {}),
            **(settings or {}),
        },
    )
    return Grading(
        grader, identity, asker(prompt, kind, grader), reader(prompt, thresholds=thresholds)
    )


def draft(kind: str) -> Grading:
    """The offline similarity grader; its grades are draft grades, labelled wherever they appear."""
    return grading(DraftGrader(), "draft", load("draft"), kind, thresholds=THRESHOLDS)


GRADERS: Mapping[str, Callable[[str], Grading]] = {"draft": draft}


def make_grading(name: str, kind: str | None) -> Grading:
    """The grading of a name in `GRADERS`; InputError for others."""
    if name not in GRADERS:
        raise InputError(f"no grader is called {name!r}", mend=f"Known: {', '.join(GRADERS)}")
    return GRADERS[name](kind_of(load(name), kind))
