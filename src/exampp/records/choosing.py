"""Chooses one grader among several, and never silently."""

from __future__ import annotations

from collections.abc import Sequence

from exampp.errors import AmbiguousGrader, InputError
from exampp.records.grading import GraderIdentity


def label(grader: GraderIdentity) -> str:
    """A grader as lists show it: its name, what it grades, the start of its key."""
    return f"{grader.name} ({grader.kind}, {grader.key[:8]})"


def choose_grader(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> GraderIdentity:
    """The one grader that fits.

    `grader` is a model, a name `model:prompt`, or the start of a key; `prompt` a prompt's name or
    its class in workbench files; `kind` question, nugget or query. Raises InputError where none
    fits and AmbiguousGrader where several do.
    """
    fitting = fitting_graders(graders, grader=grader, prompt=prompt, kind=kind)
    if len(fitting) == 1:
        return fitting[0]
    names = [label(one) + _reading(one) for one in fitting or graders]
    listed = "".join(f"\n  {name}" for name in names)
    if not graders:
        raise InputError("there are no grades yet", mend="Make some: exampp grade")
    if not fitting:
        raise InputError(f"no grader fits; these graded:{listed}")
    raise AmbiguousGrader(
        f"{len(fitting)} graders fit, and their grades never mix; "
        f"choose one with --grader, --prompt or --kind:{listed}",
        names,
    )


def _reading(grader: GraderIdentity) -> str:
    """What tells graders of one name apart that ask the same and read the replies otherwise."""
    unnumbered = grader.settings.get("unnumbered")
    return f", a text without a number is {unnumbered}" if unnumbered else ""


def fitting_graders(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> list[GraderIdentity]:
    """All graders that fit; see `choose_grader`."""
    return [
        one
        for one in graders
        if (grader is None or _is_called(one, grader))
        and (prompt is None or prompt in _prompts(one))
        and (kind is None or one.kind == kind)
    ]


def _is_called(identity: GraderIdentity, wanted: str) -> bool:
    return wanted in (identity.model, identity.name) or (
        len(wanted) >= 4 and identity.key.startswith(wanted)
    )


def _prompts(identity: GraderIdentity) -> set[str]:
    info = identity.settings.get("prompt_info") or {}
    return {identity.prompt, str(info.get("prompt_class", ""))}
