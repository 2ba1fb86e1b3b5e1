"""Two leaderboards against each other: every system at its rank in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exampp.report.plots.figure import ACCENT, GREY, Figure, Spec, rows
from exampp.report.plots.layers import layer
from exampp.report.table import Table

_SIZE, _AXIS = 460, 56
_LETTER = 6.4
_LINE = 13
_OUTLIERS = 10


class RankPair(NamedTuple):
    """A system's rank in two leaderboards, from 1 on; ties share the mean of their ranks."""

    system: str
    official: float
    ours: float


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def rank_scatter(
    points: Sequence[RankPair],
    measure: str,
    *,
    official: str = "official",
    subtitle: str = "",
    name: str = "scatter",
) -> Figure:
    """Ranks of systems in the official leaderboard against those by a measure; 1 is at the corner.

    The systems furthest from the diagonal are named, as far as there is room. `subtitle` is the
    place for the correlation.
    """

    def sized(pixels: float) -> Spec:
        size = min(_SIZE, pixels - _AXIS)
        return _spec(points, measure, official, size) if points else {}

    return Figure(
        name=name,
        title=f"{official[:1].upper()}{official[1:]} rank against rank by {measure}",
        subtitle=subtitle,
        alt=_alt(points, measure, official, subtitle),
        spec=sized(_SIZE + _AXIS),
        sized=sized,
        data=Table.of(
            ["system", f"{official} rank", "rank"],
            points,
            f"Ranks by {measure} and in the {official} leaderboard",
        ),
    )


def _spec(points: Sequence[RankPair], measure: str, official: str, size: float) -> Spec:
    """A square of so many pixels."""
    last = max(max(p.official, p.ours) for p in points)
    scale = {"domain": [0.4, last + 0.6], "reverse": False, "nice": False}
    down = {**scale, "reverse": True}
    axis = {"grid": True, "values": _ticks(last), "format": "d"}
    across = {"type": "quantitative", "scale": scale, "axis": axis, "title": f"{official} rank"}
    up = {"type": "quantitative", "scale": down, "axis": axis, "title": f"rank by {measure}"}
    return {
        "width": size,
        "height": size,
        "autosize": "pad",
        "layer": [
            layer(
                "line",
                {"x": {**across, "field": "at"}, "y": {**up, "field": "at"}},
                {"values": [{"at": 1}, {"at": last}]},
                strokeDash=[5, 4],
                opacity=0.45,
                color=GREY,
            ),
            layer(
                "point",
                {"x": {**across, "field": "official"}, "y": {**up, "field": "ours"}},
                rows(("name", "official", "ours"), points),
                filled=True,
                size=55,
                opacity=0.85,
                color=ACCENT,
            ),
            *(_label(point, side, scale, down) for point, side in _labels(points, last, size)),
        ],
    }


def _ticks(last: float) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if last / step <= 12)
    return [1, *range(step if step > 1 else 2, int(last) + 1, step)]


def _label(
    point: RankPair, side: str, scale: dict[str, object], down: dict[str, object]
) -> dict[str, object]:
    across, up = _SIDES[side]
    return {
        "data": {"values": [{"name": point.system, "x": point.official, "y": point.ours}]},
        "mark": {"type": "text", "align": _ALIGN[side], "dx": across * 8, "dy": up * 12},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "scale": scale},
            "y": {"field": "y", "type": "quantitative", "scale": down},
            "text": {"field": "name"},
        },
    }


_SIDES = {"right": (1, 0), "left": (-1, 0), "above": (0, -1), "below": (0, 1)}
_ALIGN = {"right": "left", "left": "right", "above": "center", "below": "center"}


def _labels(points: Sequence[RankPair], last: float, size: float) -> list[tuple[RankPair, str]]:
    """The outliers that can be named without covering a point or another name, and where."""
    step = size / (last + 0.2)
    at = {p: ((p.official - 0.4) * step, (p.ours - 0.4) * step) for p in points}
    taken = [_Box(x - 4, y - 4, x + 4, y + 4) for x, y in at.values()]
    outliers = sorted(points, key=lambda p: (-abs(p.official - p.ours), p.official, p.system))
    found = []
    for point in outliers[:_OUTLIERS]:
        if abs(point.official - point.ours) < last / 8:
            break
        for side in _SIDES:
            box = _box(*at[point], side, len(point.system) * _LETTER)
            inside = box.left >= 0 and box.right <= size and box.top >= 0 and box.bottom <= size
            if inside and not any(box.meets(other) for other in taken):
                taken.append(box)
                found.append((point, side))
                break
    return found


def _box(x: float, y: float, side: str, width: float) -> _Box:
    across, up = _SIDES[side]
    left = x + 8 if across > 0 else x - 8 - width if across < 0 else x - width / 2
    middle = y + up * 12
    return _Box(left, middle - _LINE / 2, left + width, middle + _LINE / 2)


def _alt(points: Sequence[RankPair], measure: str, official: str, subtitle: str) -> str:
    if not points:
        return f"Nothing to draw: no system has both a rank by {measure} and an {official} rank."
    far = max(points, key=lambda p: abs(p.official - p.ours))
    return (
        f"Scatter plot of {len(points)} systems, {official} rank against rank by {measure}"
        f"{', ' + subtitle if subtitle else ''}; furthest from the diagonal is {far.system}, "
        f"{official} rank {far.official:g} and rank {far.ours:g} by {measure}."
    )
