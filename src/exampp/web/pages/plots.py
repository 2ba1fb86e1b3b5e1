"""`/plots`: pictures of the exam, each also as a file: SVG, PNG, its specification, its data."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from exampp.analysis import figures
from exampp.measures.names import heading
from exampp.measures.qrels import Labelling
from exampp.records.gradebook import MISSING
from exampp.results.plots.figure import Figure
from exampp.web.page_request import CurrentRequest
from exampp.web.rendering import TYPES, Theme, draw
from exampp.web.snapshot import Snapshot

router = APIRouter()
T = TypeVar("T")
_KEPT = 64
"""How many drawings are kept."""


class Picture(NamedTuple):
    """One plot on the page: its name, what it is for, and which measure it shows, if any."""

    name: str
    figure: Figure
    by: int | None


def _leaderboard(snapshot: Snapshot, by: int) -> Figure:
    return figures.leaderboard_figure(snapshot.board, snapshot.board.columns[by])


def _heatmap(snapshot: Snapshot, by: int) -> Figure:
    return figures.heatmap_figure(snapshot.board, snapshot.board.columns[by], snapshot.texts)


def _grades(snapshot: Snapshot, _by: int) -> Figure:
    return figures.grades_figure([snapshot.gradebook])


def _labels(snapshot: Snapshot, _by: int) -> Figure:
    """The best rating of each judged passage, by its judgment."""
    return figures.labels_figure(snapshot.gradebook, Labelling(), snapshot.min_rating)


_BY_MEASURE: Mapping[str, Callable[[Snapshot, int], Figure]] = {
    "leaderboard": _leaderboard,
    "heatmap": _heatmap,
}
_OTHERS: Mapping[str, Callable[[Snapshot, int], Figure]] = {"grades": _grades, "labels": _labels}


PLOTS = {**_BY_MEASURE, **_OTHERS}


@router.get("/plots")
def plots(visit: CurrentRequest, by: int = 0) -> Response:
    """All plots, by one measure."""
    snapshot = visit.snapshot
    columns = snapshot.board.columns
    by = by if 0 <= by < len(columns) else 0
    pictures = [
        Picture(name, _drawings.figure(snapshot, name, by), by if name in _BY_MEASURE else None)
        for name in PLOTS
        if name != "labels"
        or any((q.judgments != MISSING).any() for q in snapshot.gradebook.queries)
    ]
    headings = [heading(str(c.measure), c.min_rating) for c in columns]
    return visit.page("plots.html", pictures=pictures, headings=headings, by=by)


@router.get("/plots/{name}.{kind}")
def plot(
    visit: CurrentRequest, name: str, kind: str, by: int = 0, theme: Theme = "light"
) -> Response:
    """One plot as a file."""
    snapshot = visit.snapshot
    if name not in PLOTS or kind not in TYPES or not 0 <= by < len(snapshot.board.columns):
        raise HTTPException(404)
    content = _drawings.file(snapshot, name, kind, by, theme)
    file = f"{name}-{by}" if name in _BY_MEASURE else name
    headers = {"content-disposition": f'inline; filename="{file}.{kind}"'}
    return Response(content, media_type=TYPES[kind], headers=headers)


class _Drawings:
    """The last drawings: a plot is drawn once, whoever looks at it, and one at a time."""

    def __init__(self) -> None:
        self._figures: OrderedDict[tuple[object, ...], Figure] = OrderedDict()
        self._files: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._lock = threading.RLock()

    def figure(self, snapshot: Snapshot, name: str, by: int) -> Figure:
        """A plot of a snapshot."""
        key = (snapshot.choice.code, snapshot.made_at, name, by)
        with self._lock:
            return _kept(self._figures, key, lambda: PLOTS[name](snapshot, by))

    def file(self, snapshot: Snapshot, name: str, kind: str, by: int, theme: Theme) -> bytes:
        """A plot of a snapshot, drawn."""
        key = (snapshot.choice.code, snapshot.made_at, name, kind, by, theme)
        with self._lock:
            figure = self.figure(snapshot, name, by)
            return _kept(self._files, key, lambda: draw(figure, kind, theme))


def _kept(
    known: OrderedDict[tuple[object, ...], T], key: tuple[object, ...], make: Callable[[], T]
) -> T:
    if key not in known:
        known[key] = make()
        while len(known) > _KEPT:
            known.popitem(last=False)
    known.move_to_end(key)
    return known[key]


_drawings = _Drawings()
