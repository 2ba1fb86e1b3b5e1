"""`exampp reparse`: kept replies read again, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import exampp
from exampp.cli.declare import option
from exampp.cli.options import (
    CollectionFile,
    Compat,
    GraderName,
    ItemKind,
    PromptName,
    UnnumberedText,
)
from exampp.cli.output import say

if TYPE_CHECKING:
    from exampp.grade.reparse import Reparsed


def reparse(
    collection: CollectionFile,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    rules: Annotated[
        str | None,
        option(
            help="Read by the rules of this prompt, by name or TOML file, in place of the "
            "grader's own."
        ),
    ] = None,
    unnumbered: UnnumberedText = None,
    compat: Annotated[
        Compat, option(help="rubric: read as the papers' own program does.")
    ] = Compat.exam,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would change, and write nothing.")
    ] = False,
) -> None:
    """Read the kept replies of a grader again, without a model.

    After a change of rules or answer keys. Readings by other rules than before become the grades
    of a grader of their own.

    Example: exampp reparse my.exam --grader gpt-5-mini --dry-run
    """
    with exampp.Collection(collection) as opened:
        found = opened.reparse(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            rules=rules,
            unnumbered=unnumbered.value if unnumbered else None,
            compat=compat.value,
            dry_run=dry_run,
        )
    say(told(found))


def told(found: Reparsed) -> str:
    """What reading again did, in lines."""
    lines = [f"{found.replies} replies read again, {found.changes.total()} changed"]
    lines += [f"{n:>9}  {before} -> {after}" for (before, after), n in found.changes.most_common()]
    if found.kept:
        states = ", ".join(f"{n} {state.name.lower()}" for state, n in sorted(found.kept.items()))
        lines.append(f"No text can undo, and so kept: {states}")
    if found.others:
        lines.append(f"{found.others} cells of {found.identity.name} have other replies, and stay")
    same = found.identity == found.source
    beside = "" if same else f", beside those of {found.source.name} ({found.source.key[:8]})"
    verb = "would be" if found.dry_run else "are"
    lines.append(
        f"They {verb} the grades of {found.identity.name} ({found.identity.key[:8]}){beside}"
    )
    return "\n".join(lines)
