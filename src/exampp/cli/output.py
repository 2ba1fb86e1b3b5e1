"""Print tables to standard output and messages to standard error, in any state of these.

Whatever the encoding of the standard streams, and open or not, printing to them never fails with a
traceback. A signal ends a command as any other end does.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import FileIO, TextIOWrapper, UnsupportedOperation
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from exampp.errors import ExamError, Undefined, Unfinished
from exampp.installed import typed_path
from exampp.stopping import stop_on_signal

if TYPE_CHECKING:
    from exampp.records.selection import Display
    from exampp.records.work import WorkProgress
    from exampp.results.result import Result, Table
    from exampp.results.view import Cell

# ---- results -----------------------------------------------------------------------------------

_MD5 = re.compile("[0-9a-f]{32}")
_DIGITS, _TEXT = 32, 40
"""Characters of an MD5, and of the shown start of a query's text."""
_LEAST = 40
"""Minimum columns of a terminal: smaller values are reported by terminals that do not know."""


def show(found: Result | Mapping[str, Table], display: Display | None = None) -> None:
    """Print a table, or tables by name; tsv and csv hold rows, and notes go to stderr.

    In json tables by name are one object; in the other formats they follow each other with an empty
    line between, in tsv and csv each with its line of headings.
    """
    from exampp.records.selection import Display
    from exampp.results.notes import merge_notes
    from exampp.results.result import Result, Table, json_of, page_html

    how = display or Display()
    if isinstance(found, Result) and not isinstance(found, Table):
        found = found.records() if how.for_programs else found.tables()
    if isinstance(found, Mapping) and how.style == "json":
        write(json_of(found))
        return
    tables = list(found.values()) if isinstance(found, Mapping) else [found]
    if how.style == "text":
        tables = list(_draft_once(with_query_texts(tables)))
    text = "\n".join(_rendered(table, how) for table in tables)
    if how.style == "html":
        text = page_html(text, next((table.caption for table in tables), "exampp"))
    # tsv and csv hold names as they are; text has its own codes
    write(text if how.style == "text" or not sys.stdout.isatty() else printable_text(text))
    if how.style in ("tsv", "csv"):
        for text in filter(None, (table.verdict for table in tables)):
            print_message(text)
        for note in merge_notes(note for table in tables for note in table.notes):
            print_message(note)


def with_query_texts(tables: Sequence[Table]) -> Sequence[Table]:
    """Put the start of a query's text in place of an id that is the MD5 of the text.

    Such an id says nothing to people. Where a table has the text, too, the id is shortened. The
    texts are those of the collection that the command reads.
    """
    import exampp
    from exampp.records.turns import question_of
    from exampp.records.wording import cut_text
    from exampp.results.view import shorten_digests

    found = {
        cell
        for table in tables
        for at in _query_columns(table)
        for row in table.rows
        if isinstance(cell := row[at], str) and _MD5.match(cell)
    }
    context = click.get_current_context(silent=True)
    path = context.params.get("collection") if context else None
    if not found or path is None:
        return tables
    try:
        with exampp.open(path) as opened:
            known = opened.query_texts().items()
            texts = {key: cut_text(question_of(text), _TEXT) for key, text in known}
    except ExamError:
        return tables  # ids remain where the texts cannot be read
    same = Counter(texts.values())

    def shown(cell: Cell, has_text: bool) -> Cell:
        if not isinstance(cell, str) or not texts.get(cell[:_DIGITS]):
            return cell
        short = shorten_digests(cell)
        if has_text or short == cell or len(cell) > _DIGITS:
            return short
        return texts[cell] if same[texts[cell]] == 1 else f"{short} {texts[cell]}"

    named = []
    for table in tables:
        columns = _query_columns(table)
        rows = [
            tuple(
                shown(cell, len(columns) > 1) if at in columns else cell
                for at, cell in enumerate(row)
            )
            for row in table.rows
        ]
        named.append(replace(table, rows=tuple(rows)) if columns else table)
    return named


def _query_columns(table: Table) -> list[int]:
    return [at for at, one in enumerate(table.columns) if one.name in ("query", "query_id")]


def _draft_once(tables: Iterable[Table]) -> Iterator[Table]:
    """Leave out the label and the note of draft grades where an earlier table has them."""
    from exampp.results.notes import DRAFT, with_code, without_code, without_label

    label, notes = False, False
    for table in tables:
        caption = without_label(table.caption) if label else table.caption
        left = tuple(without_code(table.notes, "draft")) if notes else table.notes
        label = label or DRAFT in caption
        notes = notes or any(with_code(table.notes, "draft"))
        yield replace(table, caption=caption, notes=left)


def _rendered(table: Table, how: Display) -> str:
    from exampp.records.selection import NotesDisplay, NumberDisplay
    from exampp.results.notes import by_severity, more_notes
    from exampp.results.result import render
    from exampp.results.text import view_text

    digits = how.digits if isinstance(how, NumberDisplay) else None
    if how.style != "text":
        return render(table, how.style, digits)
    on_terminal = sys.stdout.isatty()
    room = max(_LEAST, shutil.get_terminal_size().columns) if on_terminal else None
    # NO_COLOR is that of https://no-color.org
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if isinstance(how, NotesDisplay) and not how.notes:
        shown, rest = by_severity(table.notes)
        pointer = [f"{more_notes(rest)}: --notes"] if rest else []
        table = replace(table, notes=(*shown, *pointer))
    return view_text(table.view(digits), room, styled=on_terminal and not plain)


def end_where_undefined(values: Iterable[object], reasons: Iterable[str]) -> None:
    """Raise Undefined with the reasons if there are values and every one is undefined.

    Called when the tables are printed: their notes give the reason of each value.
    """
    found = list(values)
    if found and all(value is None for value in found):
        why = "; ".join(dict.fromkeys(filter(None, reasons))) or "see the notes"
        raise Undefined(f"nothing could be computed: {why}")


def print_dry_run(values: Mapping[str, str], prompts: Iterable[str], table: str = "") -> None:
    """Print the values of a dry run that are not empty, a table, and its first prompts."""
    for name, value in values.items():
        if value:
            print_line(f"{name:<15} {value}")
    if table:
        print_line(f"\n{table}")
    for number, text in enumerate(prompts, 1):
        print_line(f"\n--- prompt {number} ---\n{text}")


def report_written(path: Path, text: str) -> None:
    """Print the path of a written file; to standard error if it is standard output itself."""
    from exampp.formats.output import descriptor

    (print_message if descriptor(path) == 1 else print_line)(text)


def print_line(text: str) -> None:
    """Print a line of a result in prose."""
    write(f"{printable_text(text)}\n")
    # messages on the other stream come in order
    flush()


def print_message(text: str) -> None:
    """Print a message that is not a result."""
    # ignore a closed stream of messages
    with suppress(OSError, ValueError):
        click.echo(printable_text(text), err=True)


# ---- streams and signals -----------------------------------------------------------------------

ESCAPED = "exampp-escaped"
"""The error handler of both streams: unsupported characters are written as in JSON."""


SIGNALLED = 128
"""The exit code of a signal is this plus its number."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def prepare() -> None:
    """Open closed streams on the null device, and escape unsupported characters as `\u00e9`."""
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
    """Print a text; Unfinished if it cannot be written, without a message if the pipe is closed."""
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
"""Characters that control a terminal, or the direction of its text."""


def printable_text(text: str) -> str:
    """Replace control characters by U+FFFD: errors and names come from outside."""
    return _STEERING.sub("\ufffd", text)


@contextmanager
def interruptible(stop: Callable[[float], None], grace: float) -> Iterator[None]:
    """Call `stop(grace)` at the first Ctrl-C (or SIGTERM), leave at once at the second."""

    def say() -> None:
        print_message(
            f"\nStopping: no new requests; those in flight have {grace:g} s. "
            "Ctrl-C again leaves at once."
        )

    with stop_on_signal(stop, grace, say):
        yield


_PROGRESS_SECONDS = 10
"""Seconds between two lines of progress without a terminal."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[WorkProgress], None]]:
    """Show a progress bar on a terminal, a line now and then elsewhere; call it with progress."""
    if not sys.stderr.isatty():
        yield _progress_lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), "{task.fields[about]}")
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None, about="")

        def update(now: WorkProgress) -> None:
            bar.update(task, total=now.total, completed=now.done, about=", ".join(now.facts))

        yield update


def _progress_lines(what: str) -> Callable[[WorkProgress], None]:
    due = time.monotonic() + _PROGRESS_SECONDS

    def update(now: WorkProgress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _PROGRESS_SECONDS
            print_message(f"{what}: {now.done} of {now.total} {now.unit}")

    return update


# ---- commands to type --------------------------------------------------------------------------


def command(*arguments: object) -> str:
    """Return a command of exampp as typed in this shell."""
    return f"{_program()} {shlex.join(map(str, arguments))}"


def this_command() -> str:
    """Return the running command, as it may be typed again."""
    return command(*sys.argv[1:])


def _program() -> str:
    """Return the word to type for `exampp`: the name if the shell finds it, else the full way."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{typed_path(Path(sys.executable))} -m exampp"
    return typed_path(called)
