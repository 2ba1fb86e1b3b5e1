"""Render templates, guidelines and figures, with all texts escaped.

Markup is escaped. Control characters and changes of the text direction are shown by name, because a
passage could use them to hide or reorder text.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import Response
from jinja2 import (
    BytecodeCache,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
)
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException

from exampp.errors import InputError, Unfinished
from exampp.records.graders import grader_label
from exampp.records.turns import question_of, turns_of
from exampp.records.wording import counted, cut_text
from exampp.results.html import view_html
from exampp.results.plots.figure import FORMATS, Figure
from exampp.results.result import Table
from exampp.results.view import UNDEFINED, shorten_digests
from exampp.version import __version__

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
CHARTS = ("chart.js", "chart.css")
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
PAGE_OF = {"grade": "/grade", "import": "/files", "bank generate": "/write"}
"""The pages that do what a command does."""
SHADES = 6
"""Number of the colours of ratings: `r0` to `r5` in the style sheet."""
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_NAMES = {
    "\u00ad": "SHY",
    "\u061c": "ALM",
    "\u180e": "MVS",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u2060": "WJ",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
    "\u3164": "HF",
    "\ufeff": "BOM",
    "\uffa0": "HWHF",
}
"""Invisible characters and changes of direction, by short name (Unicode, chapter 23)."""
_SCRIPTS = "\u0300-\u180d\u180f-\u1fff\u2100-\u3163\u3165-\ufefe\uff00-\uff9f\U00010000-\U000dffff"
"""Characters after which joiners are meaningful: most scripts and emoji, but not Latin letters."""
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese, Khmer: zero-width spaces separate words."""
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_ALWAYS = "".join(_NAMES.keys() - {"\u200b", "\u200c", "\u200d"})
_HIDDEN = re.compile(
    # the flags of England, Scotland and Wales are sequences of tags
    "\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"
    "|(?P<tags>[\U000e0000-\U000e007f]+)"
    "|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufff9-\ufffb\ufffe\uffff"
    "\u2061-\u2065\u206a-\u206f])"
    f"|(?P<selectors>(?<=[{_SELECTORS}])[{_SELECTORS}]+)"
    f"|(?P<named>(?<![{_SPACELESS}])\u200b|(?<![{_SCRIPTS}])[\u200c\u200d]"
    f"|[{_ALWAYS}])"
)


def visible(text: str) -> str:
    """Spell out invisible characters and changes of text direction.

    Joiners that a script needs, and flags made of tags, are left as they are.
    """
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    characters = match[0]
    if match.lastgroup == "named":
        return f"\u27e8{_NAMES[characters]}\u27e9"
    if match.lastgroup == "tags":
        letters = "".join(chr(ord(tag) - 0xE0000) for tag in characters)
        return f"\u27e8TAGS {''.join(c if c.isprintable() else '?' for c in letters)}\u27e9"
    if match.lastgroup == "selectors":
        return f"\u27e8{len(characters)} SELECTORS\u27e9"
    if match.lastgroup is None:
        return characters
    if characters < "\x20":
        return chr(0x2400 + ord(characters))
    return "\u2421" if characters == "\x7f" else "\ufffd"


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if value is None:
        return UNDEFINED
    return visible(value) if isinstance(value, str) else value


def link(path: str, **parameters: object) -> str:
    """Return the URL of a page; ids are passed in the query string.

    Parameters that are None are left out; of a list, every value is a parameter.
    """
    parameters_given = {name: value for name, value in parameters.items() if value is not None}
    return (
        f"{path}?{urlencode(parameters_given, doseq=True, quote_via=quote, safe='')}"
        if parameters_given
        else path
    )


def linked(text: str) -> Markup:
    """Link the commands in a text to the pages that do the same."""
    commands = re.compile(rf"\bexampp ({'|'.join(PAGE_OF)})\b")
    escaped = str(escape(visible(text)))
    return Markup(commands.sub(lambda one: f'<a href="{PAGE_OF[one[1]]}">{one[0]}</a>', escaped))


def fixed(value: float | None, decimals: int = 3) -> str:
    """Format a number with a fixed number of decimals."""
    return UNDEFINED if value is None else f"{value:.{decimals}f}"


def count(value: int | None) -> str:
    """Format a whole number with thousands separators."""
    return UNDEFINED if value is None else f"{value:,}"


def percent_of(part: float, whole: float) -> str:
    """Format a share in percent; 100 only if it is complete."""
    if not whole:
        return UNDEFINED
    share = 100 * part / whole
    return f"{int(share * 10) / 10:.1f}%" if 99 <= share < 100 else f"{share:.0f}%"


def sentence(text: object) -> str:
    """Capitalize the first letter of a text."""
    return f"{str(text)[:1].upper()}{str(text)[1:]}"


def table(of: Table) -> Markup:
    """Render a table of a result as HTML."""
    return Markup(view_html(of.view()))


def rating_shade(rating: int, lowest: int, highest: int) -> int:
    """Return the shade of a rating: 0 for the lowest of the scale to 5 for the highest."""
    span = max(1, highest - lowest)
    return min(SHADES - 1, max(0, round((SHADES - 1) * (rating - lowest) / span)))


class StaticFile(NamedTuple):
    """A static file: its bytes, its type, and a digest of its content."""

    content: bytes
    kind: str
    digest: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the static files by name."""
    files = {}
    # charts of pages answer as those of reports do
    for path in (*(HERE / "static").iterdir(), *(RESULTS / name for name in CHARTS)):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
            files[path.name] = StaticFile(content, _TYPES[path.suffix], digest)
    return files


def static(name: str) -> str:
    """Return the URL of a static file; it changes with the content."""
    return f"/static/{name}?v={static_files()[name].digest}"


@cache
def templates() -> Environment:
    """Return the template environment with its filters and functions, and all templates.

    Compiling them takes half a second, most of the first view of each page. Their code is stored in
    a folder for temporary files that only this user can write, for the next start.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        bytecode_cache=_template_store(),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(link=link, static=static, counted=counted, shade=rating_shade)
    environment.filters.update(
        short_id=shorten_digests,
        question=question_of,
        turns=turns_of,
        brief=cut_text,
        label=grader_label,
        linked=linked,
        fixed=fixed,
        count=count,
        percent=percent_of,
        visible=visible,
        sentence=sentence,
        table=table,
    )
    # a full disk: the rest is compiled when it is needed
    with suppress(OSError):
        for name in environment.list_templates():
            environment.get_template(name)
    environment.bytecode_cache = None
    return environment


def _template_store() -> BytecodeCache | None:
    try:
        return FileSystemBytecodeCache(pattern=f"exampp-{__version__}-%s.cache")
    except (RuntimeError, OSError):
        # no folder that only this user can write
        return None


def render_template(template: str, **context: object) -> str:
    """Render a page or a part of one."""
    return templates().get_template(template).render(context)


# ---- guidelines ----------------------------------------------------------------------------------

LONGEST = 1 << 18
"""Maximum bytes of guidelines."""


@dataclass(frozen=True, slots=True)
class Guidelines:
    """Instructions for assessors in a Markdown file, read whenever they are shown."""

    path: Path

    def html(self, below: int = 1) -> Markup:
        """Return the text as it is now, with headings `below` those of that level.

        Markup in it is text, and nothing is loaded from elsewhere.
        """
        try:
            text = self.path.read_bytes()[:LONGEST].decode("utf-8", "replace")
        except OSError as error:
            text = f"The guidelines cannot be read: {error.strerror}."
        reader = _markdown()
        tokens = reader.parse(visible(text))
        for token in tokens:
            if token.type.startswith("heading_"):
                token.tag = f"h{min(6, int(token.tag[1:]) + below)}"
        return Markup(reader.renderer.render(tokens, reader.options, {}))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def read_guidelines(path: str | Path) -> Guidelines:
    """Return the guidelines in a file. InputError if it is unreadable, not UTF-8, or too long."""
    where, field = Path(path), "--guidelines"
    try:
        text = where.read_bytes()
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}", field=field) from None
    if len(text) > LONGEST:
        raise InputError(
            f"{where} is longer than {LONGEST:,} bytes", field=field, hint="Shorten it"
        )
    try:
        text.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"{where} is not UTF-8 text", field=field, hint="Use a Markdown file in UTF-8"
        ) from None
    return Guidelines(where)


# ---- figures and files ---------------------------------------------------------------------------

Theme = Literal["light", "dark", "page"]
FIGURE_TYPES = {
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "png": "image/png",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
}
"""The media types of figure files, by suffix."""
_drawing = threading.Lock()
_drawers: set[subprocess.Popen[bytes]] = set()
drawing_ended = threading.Event()
"""Set while the server stops: nothing more is drawn."""
DRAWING_SECONDS = 60
"""Maximum seconds to draw one picture."""

_DRAW = """
import pickle, sys
from exampp.results.plots.figure import FORMATS
figure, kind, theme = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(FORMATS["." + kind](figure, theme))
"""


def end_drawing() -> None:
    """Stop the process that draws, and start no other."""
    drawing_ended.set()
    for process in tuple(_drawers):
        process.kill()


def render_figure(figure: Figure, kind: str, theme: Theme) -> bytes:
    """Render a figure as one of the `FIGURE_TYPES`; one figure at a time.

    Drawing holds the interpreter for up to a second, so pictures are drawn in another process.

    Raises:
        Unfinished: That process was stopped, or takes longer than `DRAWING_SECONDS`.
    """
    with _drawing:
        if FIGURE_TYPES[kind].startswith(("image", "application/pdf")):
            code, drawn = _draw(pickle.dumps((figure, kind, theme)))
            if code < 0:
                raise Unfinished("the plot was not drawn: its process was stopped. Reload the page")
            if code == 0:
                return drawn
        # data, or what failed: drawn here, it raises its error
        return FORMATS[f".{kind}"](figure, theme)


def _draw(given: bytes) -> tuple[int, bytes]:
    """Return the exit status of the process that draws, negative if it was stopped, and a file."""
    if drawing_ended.is_set():
        return -1, b""
    with subprocess.Popen(
        # -P: not the modules of the folder in which the server was started
        [sys.executable, "-P", "-c", _DRAW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        _drawers.add(process)
        if drawing_ended.is_set():
            process.kill()
        drawn = b""
        try:
            drawn, _ = process.communicate(given, DRAWING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        finally:
            _drawers.discard(process)
    return process.returncode, drawn


def figure_response(find: Callable[[], Figure], kind: str, theme: Theme) -> Response:
    """Respond with a figure as a file; 404 for an unknown kind, or if there is nothing to draw."""
    try:
        figure = find() if kind in FIGURE_TYPES else None
    except InputError:
        figure = None
    if figure is None or not figure.spec:
        raise HTTPException(404)
    return figure_file(render_figure(figure, kind, theme), figure.name, kind)


def figure_file(content: bytes, name: str, kind: str) -> Response:
    """Respond with the file of a figure."""
    headers = {"content-disposition": f'inline; filename="{name}.{kind}"'}
    return Response(content, media_type=FIGURE_TYPES[kind], headers=headers)
