"""The Figure type: a specification, a description in words, and the values behind it.

A figure holds a Vega-Lite specification that leaves ink and ground to the theme: `light` and `dark`
for files, `page` for a page, where the ground is transparent, the ink is the colour of the text
around it, and the title stands in the page. Series take colours that keep a
contrast of 3 on white and on near-black, and remain distinct for colour-blind readers (found by
search with the simulation of Machado, Oliveira and Fernandes 2009); shapes and dashes repeat them.
"""

from __future__ import annotations

import functools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, get_args

from exampp.errors import InputError
from exampp.installed import install_command
from exampp.results.notes import DRAFT
from exampp.results.result import Table, render
from exampp.results.view import Column, printable

Theme = Literal["light", "dark", "page"]
Spec = Mapping[str, Any]

ACCENT = "#0072b2"
SERIES = (ACCENT, "#e11e4b", "#00a578", "#964b78", "#c38700", "#696900")
DASHES = ((1, 0), (9, 3), (2, 2), (9, 3, 2, 3), (5, 3), (14, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
ALARM = SERIES[1]
GREY = "#8a929c"
NAME_WIDTH = 190
"""Pixels of a system's name."""

GRADES = ("#eeeeea", "#dae7ec", "#b5d2dd", "#84b7ca", "#26728f", "#0c4358")
"""Colours from the lowest grade of a scale to the highest, those of the pages."""

_DRAFT_INK = "#d55e00"

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_VERSION = "6.4"
_FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_INKS: Mapping[Theme, str] = {"light": "#1f2328", "dark": "#e6e8eb", "page": "currentColor"}
# a transparent picture may be opened on a background on which it is unreadable
_GROUNDS: Mapping[Theme, str] = {"light": "#ffffff", "dark": "#14171a", "page": "transparent"}
_FITTING = '<svg style="max-width: 100%; height: auto" '
"""The start of a picture that is no wider than the cell of a notebook."""
_PNG_SCALE = 2
_PIXEL_POINTS = 2 / 3
"""Points of a pixel on paper: labels of 11 pixels are 7.3 points high, the smallest, of 9, 6."""


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A plot: `name` for files, `title` and `subtitle` above it, `alt` as its text alternative.

    `spec` is Vega-Lite without title and theme, empty where there is nothing to draw; `data` are
    the values that are drawn. A figure of `draft` grades is marked as such in every theme and
    format. `right` is the width in pixels of texts to the right of the plot.
    """

    name: str
    title: str
    alt: str
    spec: Spec
    data: Table
    subtitle: str = ""
    draft: bool = False
    right: float = 0

    @property
    def below(self) -> str:
        """The subtitle, marked for draft grades."""
        return "; ".join([DRAFT] * self.draft + [self.subtitle] * bool(self.subtitle))

    @property
    def _below_letter(self) -> float:
        """Return the mean letter width of the subtitle; of draft grades it is bold."""
        return 12 * (_LETTER if self.draft else _BOLD)

    @property
    def alt_text(self) -> str:
        """The text alternative, marked for draft grades."""
        return f"{DRAFT}. {self.alt}" if self.draft else self.alt

    @property
    def values(self) -> Table:
        """Return the data for a file, with a column that marks draft grades."""
        rows = [(*row, self.draft) for row in self.data.rows]
        columns = [*self.data.columns, Column("draft")]
        return Table.of(columns, rows, self.data.caption, self.data.notes)

    def themed(self, theme: Theme = "light") -> dict[str, Any]:
        """Return the whole Vega-Lite specification, ready to be drawn."""
        if theme not in get_args(Theme):
            raise InputError(f"unknown theme {theme!r}", hint="Themes: light, dark, page")
        spec = {"$schema": _SCHEMA, "background": _GROUNDS[theme], **(self.spec or _NOTHING)}
        around = 6 if theme == "page" else 16
        titled = theme != "page"
        room = math.ceil(self.right * _WIDER)
        if titled:
            spec["description"] = self.alt_text
            lines = (len(self.title) * 15 * _BOLD, len(self.below) * self._below_letter)
            room = max(room, _room_of_fonts(spec, max(lines)))
        sides = {"left": around, "right": around + room, "top": around, "bottom": around}
        spec.setdefault("padding", sides if room else around)
        if titled:
            spec["title"] = {"text": self.title, "subtitle": self.below}
        elif self.draft:
            # the page shows the title; this one is for copies of the picture
            spec["title"] = {"text": DRAFT, "anchor": "end", "fontSize": 11}
        if self.draft:
            colour = "subtitleColor" if titled else "color"
            spec["title"] |= {colour: _DRAFT_INK, "subtitleFontWeight": 600}
        cleaned: dict[str, Any] = _cleaned(spec)
        return {**cleaned, "config": _config(_INKS[theme])}

    def svg(self, theme: Theme = "light") -> str:
        """Return the figure as SVG; raises InputError where the extra `plots` is not installed."""
        drawn: str = _converter().vegalite_to_svg(self.themed(theme), vl_version=_VERSION)
        svg = _labelled(_slim(_valued(drawn)), _cleaned(self.alt_text))
        if theme == "page":
            # several figures of a page need different ids, and pages allow no styles in elements
            svg = _IDS.sub(rf"\g<1>{self.name}-", svg)
            svg = _STYLE.sub(' image-rendering="pixelated"', svg)
        return svg

    def pdf(self, theme: Theme = "light") -> bytes:
        """Return the figure as PDF with its fonts embedded (TrueType); InputError as for `svg`."""
        if theme == "page":
            raise InputError("the theme page has no custom ink", hint="Choose light or dark")
        drawn = _converter().vegalite_to_svg(self.themed(theme), vl_version=_VERSION)
        content: bytes = _converter().svg_to_pdf(_in_points(drawn))
        return content

    def png(self, theme: Theme = "light") -> bytes:
        """Return the figure as PNG at double resolution; InputError as for `svg`."""
        if theme == "page":
            raise InputError("the theme page has no custom ink", hint="Choose light or dark")
        drawn: bytes = _converter().vegalite_to_png(
            self.themed(theme), vl_version=_VERSION, scale=_PNG_SCALE
        )
        return drawn

    def save(self, path: str | Path, theme: Theme = "light") -> None:
        """Write the figure to a file, in the format of its ending; see `FORMATS`.

        Raises:
            InputError: The ending is unknown, or there is nothing to draw.
        """
        write = writer(path)
        if not self.spec:
            raise InputError(self.alt)
        Path(path).write_bytes(write(self, theme))

    def __repr__(self) -> str:
        return f"<figure {self.title}; save it with .save({f'{self.name}.svg'!r})>"

    def _repr_html_(self) -> str:
        """Return the figure for notebooks; its values where it cannot be drawn."""
        if not self.spec:
            return f"<p>{escape(self.alt)}</p>"
        try:
            drawn = self.svg("page")
        except InputError as error:
            return f"<p>{escape(str(error))}</p>{self.data._repr_html_()}"
        below = f"<br><small>{escape(self.subtitle)}</small>" if self.subtitle else ""
        return (
            f'<figure style="margin: 0 0 1rem; color: inherit"><figcaption><strong>'
            f"{escape(self.title)}</strong>{below}</figcaption>"
            f"{drawn.replace('<svg ', _FITTING, 1)}</figure>"
        )

    def json(self, theme: Theme = "light") -> str:
        """Return the Vega-Lite specification, with its data, as JSON."""
        return json.dumps(self.themed(theme), ensure_ascii=False, allow_nan=False) + "\n"


Writer = Callable[[Figure, Theme], bytes]
FORMATS: Mapping[str, Writer] = {
    ".svg": lambda figure, theme: figure.svg(theme).encode(),
    ".pdf": lambda figure, theme: figure.pdf(theme),
    ".png": lambda figure, theme: figure.png(theme),
    ".json": lambda figure, theme: figure.json(theme).encode(),
    ".csv": lambda figure, _: render(figure.values, "csv").encode(),
    ".tsv": lambda figure, _: render(figure.values, "tsv").encode(),
}
"""The formats of a figure by file ending: pictures, specification, data."""


def writer(path: str | Path) -> Writer:
    """Return the function that renders the format of a file name.

    Raises:
        InputError: The ending is not a known format.
    """
    rendering = FORMATS.get(Path(path).suffix.lower())
    if rendering is None:
        raise InputError(
            "the name does not end with a format of plots",
            file=path,
            hint=f"Formats: {', '.join(FORMATS)}",
        )
    return rendering


_BOLD = 0.56
"""Mean width of a letter by the size of the font: of the widest that browsers fall back to."""
_WIDER = 0.15
"""Share of a text in that font by which it is wider than where it was measured."""


def _room_of_fonts(spec: Mapping[str, Any], widest: float) -> int:
    """Return the margin that lets lines above a narrow plot fit in a font of wide letters.

    The lines are measured in the fonts of the machine that draws the plot; a reader may have
    others.
    """
    return math.ceil(min(max(0.0, widest - _across(spec)), widest * _WIDER))


def _across(spec: Mapping[str, Any]) -> float:
    """Return the width in pixels of the plots side by side, without their surroundings."""
    plots = spec.get("concat") or spec.get("vconcat")
    if plots:
        return sum(_across(one) for one in plots[: spec.get("columns", 1)])
    width: float = spec["width"]
    return width


_SIZE = re.compile(r'(<svg [^>]*?)width="([0-9.]+)" height="([0-9.]+)"')


def _in_points(svg: str) -> str:
    """Return the SVG in points, as the PDF converter reads numbers without a unit."""

    def sized(match: re.Match[str]) -> str:
        width, height = (float(match[n]) * _PIXEL_POINTS for n in (2, 3))
        return f'{match[1]}width="{width:.2f}" height="{height:.2f}"'

    return _SIZE.sub(sized, svg, count=1)


_NOTHING: Spec = {
    "width": 320,
    "height": 40,
    "data": {"values": [{"text": "Nothing to draw."}]},
    "mark": {"type": "text", "align": "left"},
    "encoding": {"text": {"field": "text"}, "x": {"value": 0}},
}


def inline_rows(names: Sequence[str], values: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return rows of values as inline data of a specification."""
    return {"values": [dict(zip(names, row, strict=True)) for row in values]}


def layer(
    kind: str, encoding: Mapping[str, Any], data: Mapping[str, Any] | None = None, **style: Any
) -> dict[str, Any]:
    """Return marks of one kind and style; `data` defaults to the data of the figure.

    Marks whose encoding has a `description` say their values to a pointer in SVG.
    """
    spoken = {"aria": True} if "description" in encoding else {}
    drawn = {"mark": {"type": kind, **spoken, **style}, "encoding": encoding}
    return drawn if data is None else {"data": data, **drawn}


def quantitative(field: str, title: str, scale: Mapping[str, Any], **axis: Any) -> dict[str, Any]:
    """Return an encoding of numbers by position on an axis."""
    return {"field": field, "type": "quantitative", "scale": scale, "title": title, "axis": axis}


def nominal(
    field: str,
    names: Sequence[Any],
    values: Sequence[Any],
    legend: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an encoding of names by colour, shape or dashes."""
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "sort": None, "scale": scale, "legend": legend}


DESCRIBED: Mapping[str, Any] = {"description": {"field": "about", "type": "nominal"}}
"""The encoding of the values of marks in words, from the column `about` of their data."""


def ranged(value: float | None, low: float | None, high: float | None) -> str:
    """Return a value with its range in words."""
    shown = "" if value is None else f"{value:.3f}"
    ends = "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
    return f"{shown} ({ends})" if shown and ends else shown or ends


def named_places(
    field: str, names: Sequence[str], title: str | None, scale: Mapping[str, Any], **axis: Any
) -> dict[str, Any]:
    """Return an encoding of names by position on an axis, in the given order."""
    domain = {"domain": list(names), **scale}
    return {
        "field": field,
        "type": "nominal",
        "sort": None,
        "scale": domain,
        "title": title,
        "axis": axis,
    }


def rows_of_names(
    names: Sequence[str],
    width: float,
    layers: Sequence[Mapping[str, Any]],
    data: Mapping[str, Any],
    *,
    apart: float = 0,
    limit: float = NAME_WIDTH,
) -> Spec:
    """Return a row per name, in the given order, with `apart` pixels of extra space."""
    if not names:
        return {}
    height, size = row_height(len(names))
    order = name_bands(names, limit=limit, labelFontSize=size, labelPadding=10, grid=True)
    return {
        "width": width,
        "height": (height + apart) * len(names),
        "data": data,
        "encoding": {"y": order},
        "layer": layers,
    }


class Spread(NamedTuple):
    """A value of a system and its range, such as one standard error; None is undefined."""

    system: str
    value: float | None
    low: float | None = None
    high: float | None = None


_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TICKS = 6
_FAR = 3.0
"""A mean is left off the axis if its distance from the middle half is more than this many times
the width of that half, and of a typical range."""


def round_axis(spreads: Sequence[Spread]) -> tuple[float, float, tuple[float, ...]]:
    """Return start, end and ticks of an axis with round numbers that covers nearly all ranges.

    An outlier must not squeeze all others together; it is left beyond the edge.
    """
    means = sorted(one.value for one in spreads if one.value is not None)
    if not means:
        return 0.0, 1.0, (0.0, 1.0)
    lower, upper = means[len(means) // 4], means[(3 * len(means)) // 4]
    typical = median(
        0.0 if one.low is None or one.high is None else one.high - one.low for one in spreads
    )
    reach = _FAR * max(upper - lower, typical)
    near = (one for one in spreads if one.value is not None)
    ends = [
        end
        for one in near
        if lower - reach <= (one.value or 0.0) <= upper + reach
        for end in one[1:]
        if end is not None
    ]
    low, high = min(ends), max(ends)
    step = next((s for s in _STEPS if (high - low) / s <= _TICKS - 1), (high - low) / _TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first >= last:
        # one value: below it, as a share is at most 1, or above 0
        first, last = (first - 1, first) if first > 0 else (first, first + 1)
    ticks = tuple(round(i * step, 6) for i in range(first, last + 1))
    return ticks[0], ticks[-1], ticks


def name_bands(
    names: Sequence[str],
    *,
    limit: float = NAME_WIDTH,
    scale: Mapping[str, Any] | None = None,
    **axis: Any,
) -> dict[str, Any]:
    """Return an encoding of names on the field `name`, in the given order, one band each.

    Names wider than `limit` pixels lose their middle, as the runs of a group differ at their ends.
    Other names have spare room, as a reader's font may be wider than the measured one.
    """
    longest = max(map(len, names), default=0)
    room = min(limit * 1.2, longest * axis.get("labelFontSize", 11) * _LETTER)
    room += axis.get("labelPadding", 0)
    return named_places(
        "name",
        names,
        None,
        scale or {},
        ticks=False,
        domain=False,
        labelLimit=limit,
        labelExpr=_without_middle(limit, axis.get("labelFontSize", 11)),
        minExtent=room,
        **axis,
    )


_LETTER = 0.62
"""Width of a letter in a wide font, of its size."""


def _without_middle(pixels: float, size: float) -> str:
    """Return a name that fits into so many pixels by cutting its middle; Vega cuts only ends."""
    letters = max(4, int(pixels / (size * _BOLD)) - 1)
    start, end = (
        f"slice(datum.label, 0, {letters - letters // 2})",
        f"slice(datum.label, -{letters // 2})",
    )
    whole = f"length(datum.label) <= {int(pixels / (size * 0.5))}"
    return f"{whole} ? datum.label : {start} + '\u2026' + {end}"


def row_height(count: int) -> tuple[float, float]:
    """Return (row height, label size) in pixels: many rows get thinner, never overlapping.

    100 rows fit on a page of a paper.
    """
    if count <= 40:
        return 18, 11
    return (14, 10) if count <= 60 else (9.4, 9)


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise InputError(
            "drawing needs packages that are not installed",
            hint=f"Install them: {install_command('plots')}",
        ) from None
    if not _draws_here():
        raise InputError(
            "plots cannot be drawn under this limit of memory, which would end exampp",
            hint="Run the command without the limit: ulimit -v unlimited",
        )
    return vl_convert


@functools.cache
def _draws_here() -> bool:
    """Test in a child process whether drawing works under the limit of address space."""
    try:
        import resource
    except ImportError:
        return True
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    trial = (
        "import vl_convert; vl_convert.vegalite_to_svg({'mark': 'point', 'data': {'values': []}})"
    )
    return subprocess.run([sys.executable, "-c", trial], capture_output=True).returncode == 0


def _cleaned(value: Any) -> Any:
    """Return the value without control characters in its texts, which are invalid in XML."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value


def _config(ink: str) -> dict[str, Any]:
    faint = {"domainOpacity": 0.4, "tickOpacity": 0.4, "gridOpacity": 0.13, "labelOpacity": 0.88}
    colours = ("domainColor", "tickColor", "gridColor", "labelColor", "titleColor")
    text = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    return {
        "aria": False,
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            **dict.fromkeys(colours, ink),
            **faint,
            **text,
            "titlePadding": 10,
            "labelFlush": False,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            **text,
            "symbolStrokeWidth": 2,
            "columnPadding": 18,
        },
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": ink,
            "subtitleColor": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleFontSize": 12,
            "subtitlePadding": 5,
            "offset": 14,
        },
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": ink},
        "range": {"category": list(SERIES), "symbol": list(SHAPES)},
    }


_NOISE = re.compile(
    r' (?:pointer-events|role|aria-[a-z]+|class|opacity)="(?:none|true|1|graphics-[a-z]+|[a-z ]*)"'
    r'| class="[^"]*"| (?:stroke-width="0"|xmlns:xlink="[^"]*")(?=[ />])'
)
_EMPTY = re.compile(
    r'<path(?: class="[^"]*")?(?: display="none")? d="(?:M0,0h0v0h0Z)?"(?: display="none")?/>'
)
_TAG = re.compile(r"<[^>]*>")
_LONG = re.compile(r"(\d+\.\d{2})\d+")


_IDS = re.compile(r'(\bid="|url\(#|href="#)')
_STYLE = re.compile(r' style="image-rendering:[^"]*"')
_VALUE = re.compile(
    r'<(path|line) aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"'
    r"([^>]*)/>"
)


def _valued(svg: str) -> str:
    """Return the SVG with descriptions of marks as titles, which browsers show at the pointer."""
    return _VALUE.sub(r'<\1\3 data-value=""><title>\2</title></\1>', svg)


def _slim(svg: str) -> str:
    """Return a smaller SVG: no roles, no empty paths, fewer decimals."""
    svg = _NOISE.sub("", svg).replace("xlink:href", "href")
    return _TAG.sub(lambda tag: _LONG.sub(r"\1", tag[0]), _EMPTY.sub("", svg))


def _labelled(svg: str, alt: str) -> str:
    label = alt.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
