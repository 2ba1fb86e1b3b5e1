"""One request: who makes it, what they look at, and the page that answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records import ITEM_KINDS
from exampp.store.bank import MAIN_BANK, bank_names
from exampp.web.live_collection import LiveCollection
from exampp.web.rendering import link, render
from exampp.web.snapshot import Choice, Snapshot

if TYPE_CHECKING:
    from exampp.web.counts import CollectionCounts


# Whose turn it is: pages are computed a few at a time, and a decision waits for none of them.
#
# Python computes one page at any moment: more threads would only take the turn from each other,
# tens of times while a decision is kept.


P = ParamSpec("P")
R = TypeVar("R")
PAGES = 4
"""So many pages are computed at once."""
DECISIONS = CapacityLimiter(8)
"""Decisions beside them."""
EXPORTS = CapacityLimiter(1)
"""Files, which take seconds and must not take the turns of pages."""


@asynccontextmanager
async def turns(_app: object) -> AsyncIterator[None]:
    """The life of an application whose pages take turns."""
    to_thread.current_default_thread_limiter().total_tokens = PAGES
    yield


def among(lane: CapacityLimiter) -> Callable[[Callable[P, R]], Callable[P, Awaitable[R]]]:
    """A page that takes turns with those of its lane alone."""

    def beside(page: Callable[P, R]) -> Callable[P, Awaitable[R]]:
        @wraps(page)
        async def called(*arguments: P.args, **named: P.kwargs) -> R:
            return await to_thread.run_sync(lambda: page(*arguments, **named), limiter=lane)

        return called

    return beside


T = TypeVar("T")


class PageOfEntries(NamedTuple, Generic[T]):
    """One page of something long; `first` is the place of its first entry, from 0."""

    entries: Sequence[T]
    total: int
    page: int
    pages: int
    first: int


def sheet(entries: Sequence[T], page: int, size: int) -> PageOfEntries[T]:
    """The page, from 1, of `size` entries; the nearest one where there is none such."""
    pages = max(1, -(-len(entries) // size))
    page = min(max(1, page), pages)
    first = (page - 1) * size
    return PageOfEntries(entries[first : first + size], len(entries), page, pages, first)


LARGEST = (1 << 63) - 1
"""The largest key of a store."""
CHOICE = "choice"
"""What a browser keeps: which grader's grades, on which bank, a person looks at. In an address, or
as a header, it says which a page shows whose forms and parts these are."""
CHOICE_HEADER = "x-choice"

PLACES = (
    ("o", "/", "Overview"),
    ("q", "/queries", "Queries"),
    ("i", "/items", "Items"),
    ("j", "/queue", "Queue"),
    ("s", "/sample", "Sample"),
    ("d", "/disputes", "Disputes"),
    ("a", "/agreement", "Agreement"),
    ("t", "/trust", "Trust"),
    ("l", "/lists", "Lists"),
    ("h", "/history", "History"),
    ("e", "/export", "Export"),
)
"""The navigation: key, address, name."""
PLACE_OF = {
    "/query": "/queries",
    "/cell": "/queries",
    "/bank": "/queries",
    "/judge": "/queue",
    "/basket": "/items",
    "/compare": "/",
}
"""To which place the pages belong that the navigation does not name."""


@dataclass(frozen=True)
class PageRequest:
    """One request of one assessor."""

    request: Request
    room: LiveCollection
    assessor: str
    began: float = field(default_factory=time.time)

    def open(self) -> Collection:
        """The collection; to be closed, and to be used in the thread that opened it."""
        return self.room.open()

    @cached_property
    def choice(self) -> Choice:
        """The grader and the bank that the page shows which asks, or else that the browser keeps.

        Another tab may have chosen others meanwhile. Raises InputError where nothing has been
        graded yet, and where the grades of the page are gone.
        """
        shown = self.request.headers.get(CHOICE_HEADER) or self._addressed
        if not shown:
            return self.room.choice(self.kept(CHOICE), self.choices)
        for one in self.choices:
            if one.code == shown:
                return one
        raise InputError(
            "the grades that this page shows are no longer in the collection",
            mend="Open the page again",
        )

    @property
    def _addressed(self) -> str:
        return self.request.query_params.get(CHOICE, "")

    @cached_property
    def snapshot(self) -> Snapshot:
        """What all queries come to, as of a few seconds ago at most.

        Raises InputError where nothing has been graded yet.
        """
        return self.room.snapshot(self.choice)

    @cached_property
    def facts(self) -> CollectionCounts | None:
        """Counts over the collection; None until they have been made."""
        return self.room.facts(self.choice)

    @cached_property
    def bank(self) -> str:
        """The bank that this person looks at; the first one where no items are graded."""
        if self.choices and self.choice.bank:
            return self.choice.bank
        with self.open() as collection:
            known = [
                name for kind in ITEM_KINDS[:-1] for name in bank_names(collection.connection, kind)
            ]
        return next(filter(None, known), MAIN_BANK)

    @property
    def read_at(self) -> datetime:
        """As of when this page is: what it shows was read then, or later."""
        kept = (
            self.snapshot.read_at if "snapshot" in vars(self) else self.began,
            self.facts.made_at if "facts" in vars(self) and self.facts else self.began,
        )
        return datetime.fromtimestamp(min(kept), UTC)

    @property
    def is_live(self) -> bool:
        """Whether the page brings itself up to date, and says itself as of when it is."""
        return self.request.url.path == "/"

    @property
    def is_older(self) -> bool:
        """Whether the collection has changed since what this page shows was read."""
        return self.room.is_older(self.read_at.timestamp())

    @property
    def min_rating(self) -> int:
        """The lowest rating that counts as an answer."""
        return self.room.min_rating(self.choice)

    @cached_property
    def choices(self) -> list[Choice]:
        """Everything this person could look at."""
        return self.room.choices()

    @property
    def places(self) -> tuple[tuple[str, str, str], ...]:
        """What the navigation leads to."""
        return PLACES

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody who may come in."""
        found: tuple[str, ...] = self.request.app.state.people
        return found

    def is_at(self, path: str) -> bool:
        """Whether this page belongs to that place of the navigation."""
        here = self.request.url.path
        return path in (here, PLACE_OF.get(here)) or (path != "/" and here.startswith(f"{path}/"))

    def kept(self, what: str) -> str:
        """What this browser was told to keep; "" where it was not."""
        return self.request.cookies.get(self._cookie(what), "")

    def keep(self, answer: Response, what: str, value: str) -> None:
        """Tell this browser to keep something, until it is closed."""
        answer.set_cookie(self._cookie(what), value, path="/", httponly=True, samesite="strict")

    def _cookie(self, what: str) -> str:
        # named after the session's: browsers share cookies between the ports of a host
        return f"{self.request.scope['cookie']}-{what}"

    @property
    def wants_part(self) -> bool:
        """Whether the page asks for a part to put into itself, not for a page."""
        return "hx-request" in self.request.headers

    def pinned(self, path: str, **parameters: object) -> str:
        """An address that stays with the grades of this page, whatever other tabs choose."""
        code = self.choice.code if self.choices else None
        return link(path, **parameters, **{CHOICE: code})

    def page(self, template: str, **context: object) -> HTMLResponse:
        """A template as the answer; it finds this visit as `visit`."""
        answer = HTMLResponse(render(template, visit=self, **context))
        self._stay(answer)
        return answer

    def go(self, path: str, **parameters: object) -> RedirectResponse:
        """Lead to another page, after something was done."""
        answer = RedirectResponse(link(path, **parameters), 303)
        self._stay(answer)
        return answer

    def back(self, address: str, usual: str) -> RedirectResponse:
        """Lead back to where a form says it was; `usual` where that is no page of this server."""
        return self.go(address if is_own(address) else usual)

    def _stay(self, answer: Response) -> None:
        """After a form of a page, the next page shows the same grades."""
        if self.request.method == "POST" and self._addressed not in ("", self.kept(CHOICE)):
            self.keep(answer, CHOICE, self.choice.code)


def is_own(address: str) -> bool:
    """Whether an address leads to a page of this server: one slash, and no other host."""
    return address.startswith("/") and not address.startswith(("//", "/\\"))


def visit_of(request: Request) -> PageRequest:
    """The visit that a request is; the gate has seen who makes it."""
    return PageRequest(request, request.app.state.room, request.scope["assessor"])


async def _visit(request: Request) -> PageRequest:
    # what does not wait needs no thread of its own
    return visit_of(request)


CurrentRequest = Annotated[PageRequest, Depends(_visit)]
"""What every page takes: `def page(visit: Visiting) -> Response`."""
