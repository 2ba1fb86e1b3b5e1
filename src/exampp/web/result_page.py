"""Pages of one result of all systems: verdict, plot and table, or the reason why it is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from fastapi.responses import HTMLResponse

from exampp.errors import InputError
from exampp.web.page_request import PageRequest, computed
from exampp.web.rendering import sentence

if TYPE_CHECKING:
    from exampp.grades.grades import Grades
    from exampp.results.plots.figure import Figure
    from exampp.results.result import Table


class PlottedResult(Protocol):
    """A result with a plot."""

    def tables(self) -> Mapping[str, Table]:
        """Return the tables by name."""

    def plot(self) -> Figure:
        """Return the figure."""


R = TypeVar("R", bound=PlottedResult)


def result_of(
    request: PageRequest, name: str, find: Callable[[Grades], R], patience: float | None
) -> R:
    """Return a result of the grades of a request, computed in the background."""
    snapshot = request.snapshot

    def compute() -> R:
        with snapshot.grades() as grades:
            return find(grades)

    return computed(snapshot.cache.soon(name, compute, patience))


def result_page(
    request: PageRequest, name: str, find: Callable[[PageRequest, float | None], PlottedResult]
) -> HTMLResponse:
    """Render the template and the table of one name, or the error of the result."""
    found, trouble = None, ""
    try:
        found = find(request, request.patience)
    except InputError as error:
        trouble = f"{sentence(error)}."
    return request.render(
        f"{name}.html",
        found=found,
        figure=found.plot() if found else None,
        table=replace(found.tables()[name], verdict="") if found else None,
        trouble=trouble,
    )
