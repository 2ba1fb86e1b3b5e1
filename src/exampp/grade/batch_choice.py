"""How replies are to come where they come by batches, and what else that decides."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from exampp.errors import InputError
from exampp.grade.batches import Batches
from exampp.grade.graders import make_grading
from exampp.grade.run import Grading
from exampp.llm.base import Grader
from exampp.store import batches as kept
from exampp.store.batches import FILE, OPEN, PREPARED, said_of_batches

if TYPE_CHECKING:
    from exampp.llm.openai.grader import OpenAICompatibleGrader

PROVIDERS = ("openai", "anthropic", "google")
"""The graders whose providers take batches."""


def by_batches(
    connection: sqlite3.Connection,
    grader: object,
    options: Mapping[str, Any],
    chosen: Batches,
    answers_of: str | None,
) -> Grading:
    """The grading of a grader on a server, by batches.

    Raises InputError for other graders: nobody else takes batches.
    """
    if not isinstance(grader, str) or grader not in PROVIDERS:
        called = f"the grader {grader}" if isinstance(grader, str) else "this grader"
        mend = f"These do: --grader {', '.join(PROVIDERS)}"
        raise InputError(f"{called} takes no batches", mend=mend)
    # a file needs no server, and so no key
    out = kept.batches_of(connection, None, (PREPARED, OPEN))
    offline = chosen.offline or (chosen.cancel and grader not in {row.provider for row in out})
    if offline:
        options = {"api_key": "none", **options}
    settings = {"answers_of": answers_of} if answers_of else None

    def wrap(made: Grader) -> Grader:
        # what speaks to providers loads when it is asked for
        from exampp.grade.batches import BatchGrader

        return BatchGrader(
            cast("OpenAICompatibleGrader", made), connection, chosen, offline=offline
        )

    return make_grading(grader, options, settings, wrap=wrap)


def bind(grading: Grading) -> None:
    """Tell a grader by batches who it is in the collection."""
    known = getattr(grading.grader, "bind", None)
    if known is not None:
        known(grading.identity)


def other_options(grading: Grading) -> Sequence[str] | None:
    """The options by which a run that was stopped goes on; see `BatchGrader.goes_on_by`."""
    return getattr(grading.grader, "goes_on_by", None)


def check_nothing_out(connection: sqlite3.Connection, grader: int) -> None:
    """Raise InputError where a grader has batches out: asking now would be paid for twice."""
    rows = kept.batches_of(connection, grader, (PREPARED, OPEN))
    if rows:
        written = rows[0].provider == FILE
        how = "Read what comes back with --replies FILE" if written else "Wait for it with --batch"
        raise InputError(
            f"requests of this grader are out: {said_of_batches(rows)}",
            mend=f"{how}, or end it with --cancel-batches",
        )
