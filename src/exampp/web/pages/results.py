"""`/turns`, `/abstention`, `/citations`: one result of all systems, with its plot and table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from exampp.web.page_request import (
    PICTURES,
    CurrentRequest,
    PageRequest,
    computed,
    found_or_trouble,
    limited_by,
)
from exampp.web.rendering import Theme, figure_response

if TYPE_CHECKING:
    from exampp.grades.grades import Grades
    from exampp.results.plots.figure import Figure
    from exampp.results.result import Table

router = APIRouter()


class PlottedResult(Protocol):
    """A result with a plot."""

    def tables(self) -> Mapping[str, Table]:
        """Return the tables by name."""

    def plot(self) -> Figure:
        """Return the figure."""


RESULTS: Mapping[str, Callable[[Grades, int], PlottedResult]] = {
    "turns": lambda grades, least: grades.turns(min_rating=least),
    "abstention": lambda grades, least: grades.abstention(min_rating=least),
    "citations": lambda grades, _: grades.citations(),
}
"""The results by their address, template and main table, from grades and a minimum rating."""


def _add_pages(name: str) -> None:
    @router.get(f"/{name}", name=name)
    def page(request: CurrentRequest) -> HTMLResponse:
        """Show a result of all systems, or the reason why it is missing."""
        found, trouble = found_or_trouble(lambda: _found(request, name, request.patience))
        return request.render(
            f"{name}.html",
            found=found,
            figure=found.plot() if found else None,
            table=replace(found.tables()[name], verdict="") if found else None,
            trouble=trouble,
        )

    @router.get(f"/{name}/plot.{{kind}}", name=f"{name} plot")
    @limited_by(PICTURES)
    def picture(request: CurrentRequest, kind: str, theme: Theme = "light") -> Response:
        """Return the figure of a result as a file."""
        return figure_response(lambda: _found(request, name, None).plot(), kind, theme)


def _found(request: PageRequest, name: str, patience: float | None) -> PlottedResult:
    """Return a result of the grades of a request, computed in the background."""
    least = request.snapshot.min_rating
    return computed(
        request.snapshot.soon(name, lambda grades: RESULTS[name](grades, least), patience)
    )


for _name in RESULTS:
    _add_pages(_name)
