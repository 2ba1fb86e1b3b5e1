"""What graders are called among several, and the choice of one, which is never silent."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from exampp.errors import AmbiguousGrader, InputError
from exampp.outside import check_text
from exampp.records.grading import CONTENT, GraderIdentity

SHORT_KEY = 8
"""Characters of a key that people are shown."""


def distinct(graders: Iterable[GraderIdentity]) -> tuple[GraderIdentity, ...]:
    """The same graders, no two of them under one name.

    A name is `model:prompt`, or what it is where they come from; where others have it too, how the
    grader decodes follows, and the start of its key where even that is shared.
    """
    found = list(graders)
    names = {one.key: one.name for one in found}
    for more in (_decoding, _short_key):
        taken = Counter(names.values())
        names = {
            one.key: f"{names[one.key]}{more(one)}" if taken[names[one.key]] > 1 else names[one.key]
            for one in found
        }
    return tuple(_shown(one, names[one.key]) for one in found)


def _decoding(grader: GraderIdentity) -> str:
    decode = grader.settings.get("decode")
    return f":{decode}" if decode else ""


def _short_key(grader: GraderIdentity) -> str:
    return f":{grader.key[:SHORT_KEY]}"


def _shown(grader: GraderIdentity, name: str) -> GraderIdentity:
    named = replace(grader)
    object.__setattr__(named, "shown", name)
    return named


def label(grader: GraderIdentity) -> str:
    """A grader as lists show it: its name, what it grades, the start of its key."""
    return f"{grader.name} ({grader.kind}, {grader.key[:SHORT_KEY]})"


def grade_command(grader: GraderIdentity, path: str | Path, bank: str = "") -> str:
    """What makes a grader grade what is due, on a bank where it is not the main one.

    The form of it, for a grader that came with its grades.
    """
    source = grader.settings.get("name")
    words = ["exampp", "grade", str(path), "--grader"]
    if source == "draft" or grader.is_draft:
        words.append("draft")
    elif source in ("hf", "openai"):
        words += [source, "--model", grader.model, "--prompt", grader.prompt]
    else:
        words.append("NAME")
    return shlex.join([*words, "--bank", bank] if bank else words)


def choose_grader(
    graders: Sequence[GraderIdentity],
    *,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
) -> GraderIdentity:
    """The one grader that fits.

    `grader` is a model, a name as shown or short (`model:prompt`), or the start of a key; `prompt`
    a prompt's name or its class in workbench files; `kind` question, nugget or query. Raises
    InputError where none fits and AmbiguousGrader where several do.
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
        "choose one with --grader, --prompt or --kind (in Python and in a configuration: "
        f"grader = ...), or see all of them by exampp analyze leaderboards:{listed}",
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
    for name, value in (("grader", grader), ("prompt", prompt), ("kind", kind)):
        if value is not None:
            check_text(name, value)
    asked = [
        one
        for one in graders
        if (prompt is None or prompt in _prompts(one)) and (kind is None or one.kind == kind)
    ]
    if grader is None:
        return asked
    called = [one for one in asked if _is_called(one, grader)]
    # a folder is called by its name alone, however it was typed
    folder = grader.rstrip("/").rpartition("/")[2]
    return called or [one for one in asked if _is_folder(one) and _is_called(one, folder)]


def _is_called(identity: GraderIdentity, wanted: str) -> bool:
    names = (identity.model, identity.by_content.model, identity.short_name, identity.name)
    return wanted in names or (len(wanted) >= 4 and identity.key.startswith(wanted))


def _is_folder(identity: GraderIdentity) -> bool:
    return CONTENT in identity.by_content.settings


def _prompts(identity: GraderIdentity) -> set[str]:
    info = identity.settings.get("prompt_info") or {}
    return {identity.prompt, str(info.get("prompt_class", ""))}
