"""How replies are to come where they come by batches, and what else that decides."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from exampp.errors import InputError
from exampp.grade.graders import make_grading
from exampp.grade.run import Grading
from exampp.llm.base import Grader
from exampp.outside import check_path
from exampp.store import batches as kept
from exampp.store.batches import FILE, OPEN, PREPARED, said_of_batches

if TYPE_CHECKING:
    from exampp.llm.openai.grader import OpenAICompatibleGrader

PROVIDERS = ("openai", "anthropic", "google")
"""The graders whose providers take batches."""


@dataclass(frozen=True, slots=True)
class Batches:
    """A grader on a server is asked by batches, which are waited for.

    With `file` the requests are written there instead, for vLLM's `run-batch` and the like, and
    with `replies` what came back is read; with `cancel` the batches that are out are ended. `poll`
    is the seconds between two looks at a batch; a quarter of a minute, growing, where it is None.

    Raises:
        InputError: Several of `file`, `replies` and `cancel`, or a `poll` that is no time.

    """

    file: str | Path | None = None
    replies: str | Path | None = None
    cancel: bool = False
    poll: float | None = None

    def __post_init__(self) -> None:
        if (self.file is not None) + (self.replies is not None) + self.cancel > 1:
            raise InputError(
                "a file of requests, a file of replies and the end of batches exclude each other",
                mend="Give one of --batch-file, --replies and --cancel-batches",
            )
        if self.poll is not None and not 0 <= self.poll <= 86_400:
            raise InputError(f"poll is {self.poll:g}", mend="Give seconds, up to a day")

    @property
    def offline(self) -> bool:
        """Whether no server is asked for anything."""
        return self.file is not None or self.replies is not None

    @property
    def sends(self) -> bool:
        """Whether requests go out."""
        return self.replies is None and not self.cancel

    @property
    def target(self) -> Path | None:
        """The file that is written."""
        return None if self.file is None else check_path(self.file)


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
    if chosen.offline:
        # a file needs no server, and so no key
        options = {"api_key": "none", **options}
    settings = {"answers_of": answers_of} if answers_of else None

    def wrap(made: Grader) -> Grader:
        # what speaks to providers loads when it is asked for
        from exampp.grade.batches import BatchGrader

        return BatchGrader(cast("OpenAICompatibleGrader", made), connection, chosen)

    return make_grading(grader, options, settings, wrap=wrap)


def bind(grading: Grading) -> None:
    """Tell a grader by batches who it is in the collection."""
    known = getattr(grading.grader, "bind", None)
    if known is not None:
        known(grading.identity)


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
