"""What Ctrl-C does to long work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from exampp.cli.output import remark
from exampp.stopping import stopping


class Work(Protocol):
    """Work that can be stopped: a grading or a generation."""

    def stop(self, grace: float) -> None:
        """Begin nothing new, and end within so many seconds."""
        ...


@contextmanager
def interruptible(work: Work, grace: float) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) stops the work, the second one leaves at once."""

    def say() -> None:
        remark(
            f"\nStopping: nothing new is asked, and what is in flight has {grace:g} s. "
            "Ctrl-C again leaves at once."
        )

    with stopping(work.stop, grace, say):
        yield
