"""A report as one self-contained page and as JSON: sections of text, facts, tables and figures.

The page loads no resources, runs no script and follows the reader's choice of light or dark;
figures are drawn in the colour of the surrounding text. All content is shown as text.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.html import view_html
from exampp.results.plots.figure import Figure
from exampp.results.result import Table, notebook_html, render

if TYPE_CHECKING:
    from jinja2 import Template

FOLDED_ROWS = 400
"""The data of a figure stand beside it up to so many rows; the JSON always has them."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and their values, in order."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tiles:
    """Key numbers at the top: (number, what it counts)."""

    rows: tuple[tuple[str, str], ...]


class Line(NamedTuple):
    """A line of a verdict: question, answer in a sentence, and the section with the details.

    `tone` is `holds` or `doubt` where a rule decides it; a line without one is plain.
    """

    question: str
    answer: str
    section: str = ""
    tone: Literal["", "holds", "doubt"] = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a report, line by line."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Notices:
    """Sentences that must not be overlooked (`warning`), or that are good to know (`note`)."""

    sentences: tuple[str, ...]
    kind: Literal["warning", "note"] = "warning"


@dataclass(frozen=True, slots=True)
class Folded:
    """A table that is collapsed until the reader opens it."""

    summary: str
    table: Table


Block = Text | Facts | Tiles | Verdict | Notices | Folded | Table | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report under a heading; `key` is its anchor within the page.

    `verdict` is its result in a sentence, shown before all else.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    verdict: str = ""

    @classmethod
    def of(cls, key: str, title: str, blocks: Sequence[Block | None]) -> Section:
        """Return a section of the blocks that are not None."""
        return cls(key, title, tuple(block for block in blocks if block is not None))

    def with_verdict(self, verdict: str) -> Section:
        """Return the section with its result in a sentence, which its tables then leave out."""
        blocks = (replace(b, verdict="") if isinstance(b, Table) else b for b in self.blocks)
        return replace(self, verdict=verdict, blocks=tuple(blocks))


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A report: title, subtitle, sections and footer; `file` is where it was written.

    `details` are the data of an interactive page; None for a static one. JSON has no details.
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    colophon: str = ""
    file: Path | None = None
    details: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def verdict(self) -> tuple[Line, ...]:
        """The lines of the verdict."""
        blocks = (block for section in self.sections for block in section.blocks)
        return tuple(line for block in blocks if isinstance(block, Verdict) for line in block.lines)

    def __repr__(self) -> str:
        return f"<report {self.title}{f' in {self.file}' if self.file else ''}>"

    def _repr_html_(self) -> str:
        """Return the verdict for notebooks, with a link to the file."""
        lines = [f"<b>{escape(one.question)}</b> {escape(one.answer)}" for one in self.verdict]
        if self.file:
            path = self.file.as_posix()
            lines.append(f'<a href="{escape(quote(path))}" target="_blank">{escape(path)}</a>')
        title = f'<p class="finding">{escape(self.title)}: {escape(self.subtitle)}</p>'
        return notebook_html(title + "".join(f"<p>{line}</p>" for line in lines))


def renderer(path: Path) -> Callable[[Document], str]:
    """Return the writer for a file name: HTML, or JSON where it ends in .json.

    Raises:
        InputError: The ending is that of another kind of file.
    """
    ending = next((end for end in reversed(path.suffixes) if end not in _PACKED), "").lower()
    if ending not in (".html", ".htm", ".json") and re.fullmatch(r"\.[a-z0-9]{1,5}", ending):
        raise InputError(
            f"a report is no {ending} file",
            file=path,
            hint="End its name in .html or .json; a browser prints the page as PDF",
        )
    return report_json if ending == ".json" else to_html


_PACKED = (".gz", ".xz", ".zst")


def to_html(document: Document) -> str:
    """Return the report as one page.

    Raises:
        InputError: The extra `plots` is not installed.
    """
    if find_spec("jinja2") is None:
        raise InputError(
            "making a page needs packages that are not installed",
            hint=f"Install them: {install_command('plots')}",
        )
    kinds = {type(block): _kind(block) for part in document.sections for block in part.blocks}
    page: str = _template().render(
        document=document,
        kind=lambda block: kinds[type(block)],
        details=None if document.details is None else _packed(document.details),
    )
    return page


def _packed(details: Mapping[str, Any]) -> str:
    """Return details as compressed JSON in base64, in which no text can end a script element."""
    content = json.dumps(details, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(content.encode("utf-8", "replace"), mtime=0)).decode()


def _resource(name: str) -> str:
    return files("exampp.results").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _template() -> Template:
    """Return the template of the page, read and compiled once."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_readable,
        loader=jinja2.PackageLoader("exampp.results"),
    )
    environment.filters["table"] = lambda table: Markup(view_html(table.view()))
    environment.filters["drawing"] = lambda figure: Markup(figure.svg("page"))
    environment.tests["short"] = lambda table: len(table.rows) <= FOLDED_ROWS
    script = f"\n{_resource('chart.js')}{_resource('explore.js')}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals["style"] = Markup(_resource("page.css") + _resource("chart.css"))
    environment.globals["explore_style"] = Markup(_resource("explore.css"))
    environment.globals["script"] = Markup(script)
    environment.globals["digest"] = Markup(digest)
    return environment.get_template("report.html")


def _readable(value: object) -> object:
    """Return the text without control characters other than line ends; markup stays as it is."""
    if type(value) is not str:
        return value
    return "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else "\ufffd" for c in value)


def report_json(document: Document) -> str:
    """Return the report as JSON: sections, tables and figures with all their data."""
    value = {
        "title": document.title,
        "subtitle": document.subtitle,
        "sections": [
            {
                "key": section.key,
                "title": section.title,
                "verdict": section.verdict,
                "blocks": [{"kind": _kind(b), **_JSON[type(b)](b)} for b in section.blocks],
            }
            for section in document.sections
        ],
        "colophon": document.colophon,
    }
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _table(table: Table) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(render(table, "json"))
    return parsed


_JSON: Mapping[type[Any], Callable[[Any], dict[str, Any]]] = {
    Text: lambda block: {"text": block.text},
    Facts: lambda block: {"rows": dict(block.rows)},
    Tiles: lambda block: {"rows": {what: number for number, what in block.rows}},
    Verdict: lambda block: {"lines": [line._asdict() for line in block.lines]},
    Notices: lambda block: {"tone": block.kind, "sentences": list(block.sentences)},
    Folded: lambda block: {"summary": block.summary, **_table(block.table)},
    Table: _table,
    Figure: lambda block: {
        "name": block.name,
        "title": block.title,
        "subtitle": block.below,
        "alt": block.alt_text,
        "data": _table(block.values),
    },
}
