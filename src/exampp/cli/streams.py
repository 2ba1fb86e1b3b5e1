"""What a command gets from its shell: streams in any state, and signals to end.

Whatever the encoding of the standard streams, and open or not, printing to them never fails.
"""

from __future__ import annotations

import codecs
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO, TextIOWrapper, UnsupportedOperation
from types import FrameType

from exampp.errors import Unfinished

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


def write(text: str) -> None:
    """Print a text; Unfinished where it cannot be written, an empty one where nobody reads."""
    with _printing():
        sys.stdout.write(text)


def flush() -> None:
    """Write out what standard output buffers; Unfinished where that fails."""
    with _printing():
        sys.stdout.flush()
        # network file systems report some errors only at close
        os.close(os.dup(sys.stdout.fileno()))


@contextmanager
def _printing() -> Iterator[None]:
    try:
        yield
    except UnsupportedOperation:
        # a stream of Python's own, without a number
        pass
    except (OSError, ValueError) as error:
        # Python would try again at its end, and print a traceback
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # `exampp evaluate my.exam | head` ends quietly, as any command does
        if isinstance(error, BrokenPipeError):
            raise Unfinished("") from None
        why = getattr(error, "strerror", error)
        raise Unfinished(f"standard output cannot be written: {why}") from None


_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""Characters that steer a terminal, or the direction of its text."""


def printable(text: str) -> str:
    """Replace what would steer a terminal by U+FFFD: errors and names come from outside."""
    return _STEERING.sub("\ufffd", text)
