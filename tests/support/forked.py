"""Processes that begin where this one is: nothing has to be imported anew."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from pathlib import Path

FORK = multiprocessing.get_context("fork")


def forked(run: Callable[[], object], said: Path) -> ForkProcess:
    """A process that does this and ends; what it prints is in the file."""
    process = FORK.Process(target=_run, args=(run, said))
    process.start()
    return process


def _run(run: Callable[[], object], said: Path) -> None:
    warnings.resetwarnings()  # of the tests, of which it is none
    with said.open("w", buffering=1) as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
        sys.stdout = sys.stderr = output
        run()
