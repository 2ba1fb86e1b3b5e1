"""What a command gets from its shell: streams in any state, and signals to end.

Whatever the encoding of the standard streams, and open or not, printing to them never fails.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
import warnings
from contextlib import suppress
from io import FileIO, TextIOWrapper
from types import FrameType

ESCAPED = "exampp-escaped"
"""The error handler of both streams: what their encoding lacks is written as JSON does."""


SIGNALLED = 128
"""To which the number of a signal is added to make an exit code."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def prepare() -> None:
    """Open what is closed, on nothing, and write what an encoding lacks as `\\u00e9`."""
    codecs.register_error(ESCAPED, _escaped)
    # a file that took the number of a closed stream would get what is printed
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    sys.stdout = sys.stdout or _nothing()
    sys.stderr = sys.stderr or _nothing()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # what is half-written goes, what was answered is kept: as at any other end
        if signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):
                signal.signal(number, _end)
    # of sources that we do not own, or of a reply that looks like one
    warnings.filterwarnings("ignore", category=SyntaxWarning)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(SIGNALLED + number)


def _nothing() -> TextIOWrapper:
    return TextIOWrapper(FileIO(os.devnull, "w"), encoding="utf-8")


def flush() -> bool:
    """Write out what waits; False where nobody reads standard output any more."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        # what waits would be tried again when Python ends, and complained about
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
