"""A request: its assessor, the selected grades, and the response.

Only a few pages are computed at once, besides decisions and one export: more threads would only
compete for the interpreter.
"""

from __future__ import annotations

import time
from asyncio import wrap_future
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar, get_args

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.records import ITEM_KINDS
from exampp.records.gradebook import DecisionChoice, PassageKind
from exampp.records.systems import SystemFilter
from exampp.store.bank import MAIN_BANK, bank_names
from exampp.web.access import Access
from exampp.web.live_collection import Choice, CollectionCounts, LiveCollection, Snapshot
from exampp.web.people import ACTIONS, ROLES, Action, Person, may
from exampp.web.rendering import link, render_template, sentence

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
LARGEST = (1 << 63) - 1
"""The largest key in a store."""
GLANCE = 0.05
"""Seconds to wait for results before a page says that they are being computed."""
PATIENCE = 3.0
"""Seconds to wait when this page reloads itself; the browser shows it meanwhile."""
CHOICE = "choice"
"""Cookie with the selected grades; a URL parameter or header overrides it for one page."""
CHOICE_HEADER = "x-choice"
BLIND = "blind"
"""The cookie that stores whether a person judges blind."""
PAGES = 4
"""Pages computed at once."""
PICTURES = CapacityLimiter(4)
"""Pictures wait for each other, and must not delay pages."""
EXPORTS = CapacityLimiter(1)
"""A limit of one: writing a file takes seconds and must not delay pages."""


class Place(NamedTuple):
    """A page in the navigation, listed under its area; the keys `g` and `key` open it."""

    key: str
    address: str
    name: str
    area: str


PLACES = (
    Place("o", "/", "Leaderboard", "Results"),
    Place("c", "/compare", "Compare", "Results"),
    Place("w", "/changes", "Changes", "Results"),
    Place("p", "/plots", "Plots", "Results"),
    Place("e", "/export", "Export", "Results"),
    Place("q", "/queries", "Queries", "Exam"),
    Place("i", "/items", "Items", "Exam"),
    Place("u", "/files", "Files", "Exam"),
    Place("j", "/queue", "Queue", "Review"),
    Place("s", "/sample", "Sample", "Review"),
    Place("d", "/disputes", "Disputes", "Review"),
    Place("a", "/agreement", "Agreement", "Review"),
    Place("l", "/lists", "Lists", "Review"),
    Place("h", "/history", "History", "Review"),
    Place("t", "/trust", "Trust", "Trust"),
    Place("r", "/runs", "Runs", "Runs"),
)
"""The navigation, in order. Each key is used once; `f` is the search."""
AREAS = {one.area: one for one in PLACES[::-1]}
"""The first page of each area, the last area first."""
PLACE_OF = {
    "/query": "/queries",
    "/record": "/queries",
    "/cell": "/queries",
    "/bank": "/queries",
    "/abstention": "/queries",
    "/citations": "/queries",
    "/turns": "/queries",
    "/judge": "/queue",
    "/duplicates": "/items",
    "/banks": "/items",
    "/improve": "/items",
    "/write": "/items",
    "/score": "/items",
    "/grade": "/runs",
}
"""The navigation entry of pages that are not listed in it, and of the pages below them."""


class StillComputing(Exception):
    """The results are not ready yet; the page will reload itself."""


def computed(value: T | None) -> T:
    """Return the results of a page; raise StillComputing if they are not ready yet."""
    if value is None:
        raise StillComputing
    return value


def found_or_trouble(find: Callable[[], T]) -> tuple[T | None, str]:
    """Return the results of a page, or None and the sentence of the InputError instead."""
    try:
        return find(), ""
    except InputError as error:
        return None, f"{sentence(error)}."


class PageOfEntries(NamedTuple, Generic[T]):
    """One page of a list; `first` is the index of its first entry."""

    entries: Sequence[T]
    total: int
    page: int
    pages: int
    first: int


class TableColumn(NamedTuple):
    """A sortable column: heading, name of the order, explanation, sort key, direction."""

    name: str
    order: str
    explanation: str
    key: Callable[[Any], Any]
    largest_first: bool = True


def page_of(entries: Sequence[T], page: int, size: int) -> PageOfEntries[T]:
    """Return page `page` (from 1) of `size` entries, or the nearest page that exists."""
    pages = max(1, -(-len(entries) // size))
    page = min(max(1, page), pages)
    first = (page - 1) * size
    return PageOfEntries(entries[first : first + size], len(entries), page, pages, first)


@dataclass(frozen=True)
class PageRequest:
    """One request of one person; `http` is the request itself."""

    http: Request
    live: LiveCollection
    person: Person
    began: float = field(default_factory=time.time)
    places: ClassVar[Sequence[Place]] = PLACES
    areas: ClassVar[Sequence[Place]] = [*AREAS.values()][::-1]

    def open(self) -> Collection:
        """Open the collection, to be used in this thread."""
        return self.live.open()

    @cached_property
    def choice(self) -> Choice:
        """The grader and the bank of the page that asks, or else the browser's choice.

        Another tab may have chosen others meanwhile. Raises InputError if nothing is graded yet or
        the grades of the page no longer exist.
        """
        code = self.http.headers.get(CHOICE_HEADER) or self._addressed
        if not code:
            return self.live.choice(self.cookie(CHOICE), self.choices)
        if known := self.live.known_choice(code):
            return known
        for one in self.choices:
            if one.code == code:
                return one
        raise InputError(
            "the grades that this page shows are no longer in the collection",
            hint="Open the page again",
        )

    @property
    def _addressed(self) -> str:
        return self.http.query_params.get(CHOICE, "")

    @cached_property
    def choices(self) -> list[Choice]:
        """All choices of grader and bank."""
        return self.live.choices()

    @cached_property
    def snapshot(self) -> Snapshot:
        """The results of the systems that the page is about; see `whole`."""
        kind = self.kind
        return self.whole.of_kind(kind) if kind and len(self.whole.kinds) > 1 else self.whole

    @property
    def kind(self) -> PassageKind | None:
        """The kind of systems that the page is about: answers, contexts, or None for all."""
        wanted = self.http.query_params.get("system")
        return next((one for one in get_args(PassageKind) if one == wanted), None)

    @cached_property
    def whole(self) -> Snapshot:
        """The results over all queries, a few seconds old at most.

        Raises InputError if nothing has been graded yet, StillComputing if a page can say so.
        """
        url = self.http.url.path
        waits = self.wants_part or self.http.method == "POST" or PurePosixPath(url).suffix
        return computed(self.live.snapshot(self.choice, None if waits else self.patience))

    @property
    def view(self) -> tuple[str, str]:
        """The person and the address of this page."""
        return self.assessor, str(self.http.url)

    @property
    def is_waiting(self) -> bool:
        """Return whether this page said that results are being computed, and reloads itself."""
        return self.view in self.live.waiting

    @property
    def patience(self) -> float:
        """Return how many seconds to wait for results before `StillComputing`."""
        return PATIENCE if self.is_waiting else GLANCE

    @cached_property
    def counts(self) -> CollectionCounts | None:
        """Counts over the collection; None until they are computed."""
        return self.live.counts(self.choice)

    @cached_property
    def bank(self) -> str:
        """The selected bank; the first one if no items are graded."""
        if self.choices and self.choice.bank:
            return self.choice.bank
        with self.open() as collection:
            known = [
                name for kind in ITEM_KINDS[:-1] for name in bank_names(collection.connection, kind)
            ]
        return next(filter(None, known), MAIN_BANK)

    @property
    def min_rating(self) -> int:
        """The lowest rating that counts as an answer."""
        return self.live.min_rating(self.choice)

    @property
    def scale(self) -> tuple[int, int]:
        """The lowest and the highest rating; 0 to 5 if nothing is graded."""
        return (self.choice.grader.lowest, self.choice.grader.highest) if self.choices else (0, 5)

    @property
    def is_blind(self) -> bool:
        """Return whether grades are hidden from this person until they decide."""
        cookie = self.cookie(BLIND)
        return self.live.blind if cookie not in ("0", "1") else cookie == "1"

    @property
    def people(self) -> tuple[str, ...]:
        """The people who share the queue: the assessors, or everybody if there are none."""
        everybody = self.access.people.everybody()
        names = tuple(one.name for one in everybody if one.role == "assessor")
        return names or tuple(one.name for one in everybody)

    @property
    def assessor(self) -> str:
        """The name of the person, under which decisions and edits are stored."""
        return self.person.name

    def may(self, action: Action) -> bool:
        """Return whether the role of the person permits an action."""
        return self.person.may(action)

    def refusal(self, action: Action) -> str:
        """Return why the person may not do something; "" if they may."""
        return "" if self.may(action) else refused_action(self.person, action)

    @property
    def access(self) -> Access:
        """The people with access to the server, and its address."""
        access: Access = self.http.app.state.access
        return access

    @property
    def address(self) -> str:
        """The address of the server, as browsers use it."""
        host = (*self.access.public, self.http.headers["host"])[0]
        scheme = "https" if self.http.scope["secure"] else "http"
        return f"{scheme}://{host}{self.access.prefix}"

    def require(self, action: Action) -> None:
        """Refuse the request if the role of the person does not permit an action."""
        if not self.may(action):
            raise HTTPException(403, refused_action(self.person, action))

    @property
    def read_at(self) -> datetime:
        """A time up to which the page includes all changes."""
        times = (self.began, *(one.read_at for one in self._read()))
        return datetime.fromtimestamp(min(times), UTC)

    def _read(self) -> list[Snapshot | CollectionCounts]:
        known = vars(self)
        return [known[name] for name in ("snapshot", "counts") if known.get(name)]

    @property
    def is_live(self) -> bool:
        """Return whether the page updates itself."""
        return self.http.url.path == "/"

    @property
    def area(self) -> str:
        """The area of this page; "" if it belongs to none."""
        return next((one.area for one in PLACES if self.is_at(one.address)), "")

    def is_at(self, path: str) -> bool:
        """Return whether this page belongs to an entry of the navigation."""
        here = self.http.url.path
        return path in (here, PLACE_OF.get("/".join(here.split("/")[:2]))) or (
            path != "/" and here.startswith(f"{path}/")
        )

    def cookie(self, name: str) -> str:
        """Return a cookie of this server; "" if the browser has none."""
        return self.http.cookies.get(self._cookie_name(name), "")

    def set_cookie(self, answer: Response, name: str, value: str) -> None:
        """Set a cookie until the browser is closed."""
        answer.set_cookie(
            self._cookie_name(name),
            value,
            path=f"{self.http.scope['prefix']}/",
            httponly=True,
            samesite="strict",
            secure=self.http.scope["secure"],
        )

    def _cookie_name(self, name: str) -> str:
        # prefixed like the session cookie: browsers share cookies between ports of a host
        return f"{self.http.scope['cookie']}-{name}"

    @property
    def wants_part(self) -> bool:
        """Return whether a script fetches a part of a page."""
        return "hx-request" in self.http.headers

    def here(self, path: str = "", **changed: object) -> str:
        """Return the address of this page, or of `path`, with changed parameters."""
        given = self.http.query_params
        parameters: dict[str, object] = {name: given.getlist(name) for name in given}
        return link(path or self.http.url.path, **parameters | changed)

    def pinned(self, path: str, **parameters: object) -> str:
        """Return an address that pins the grades of this page."""
        # without reading the choices again: a decision would wait for them
        code = self.choice.code if "choice" in vars(self) or self.choices else None
        return link(path, **parameters, system=self.kind, **{CHOICE: code})

    def render(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Render a template with a context, and this request as `request`."""
        answer = HTMLResponse(render_template(template, request=self, **context), status)
        self._stay(answer)
        self.live.waiting.discard(self.view)
        return answer

    def redirect(self, path: str, **parameters: object) -> RedirectResponse:
        """Redirect to another page."""
        answer = RedirectResponse(link(path, **parameters), 303)
        self._stay(answer)
        return answer

    def redirect_back(self, address: str, default: str) -> RedirectResponse:
        """Redirect to the address in a form, or to `default` if it is not on this server."""
        return self.redirect(address if is_own(address) else default)

    def _stay(self, answer: Response) -> None:
        """Keep the selected grades after a form."""
        if self.http.method == "POST" and self._addressed not in ("", self.cookie(CHOICE)):
            self.set_cookie(answer, CHOICE, self.choice.code)


def is_own(address: str) -> bool:
    """Return whether an address is a path on this server."""
    return address.startswith("/") and not address.startswith(("//", "/\\"))


def page_request(http: Request) -> PageRequest:
    """Return the request of the person in the scope."""
    return PageRequest(http, http.app.state.live, http.scope["person"])


def refused_action(person: Person, action: Action) -> str:
    """Return the sentence for an action that a person's role does not permit."""
    roles = " or ".join(role for role in ROLES if may(role, action))
    return f"As {person.role} you may not {ACTIONS[action]}. Ask for the role {roles}."


async def _system_filter(
    find: str = "", group: str = "", pin: Annotated[Sequence[str], Query()] = ()
) -> SystemFilter:
    return SystemFilter(find, group, tuple(dict.fromkeys(pin)))


class BoardSelection(NamedTuple):
    """A leaderboard and the part of it that a page shows: some systems, by one column."""

    systems: SystemFilter
    by: int
    min_rating: int | None
    decisions: DecisionChoice

    @property
    def parameters(self) -> dict[str, object]:
        """Return the parameters of an address with the same leaderboard and systems."""
        without = {} if self.decisions == "with" else {"decisions": self.decisions}
        return {**self.systems.parameters, "min_rating": self.min_rating, **without}


async def _board_selection(
    systems: Annotated[SystemFilter, Depends(_system_filter)],
    by: int = 0,
    min_rating: int | None = None,
    decisions: DecisionChoice = "with",
) -> BoardSelection:
    return BoardSelection(systems, by, min_rating, decisions)


CurrentBoard = Annotated[BoardSelection, Depends(_board_selection)]
"""The leaderboard and the systems that a page shows, from its address."""


async def _page_request(request: Request) -> PageRequest:
    # async: it never blocks, so it needs no thread
    return page_request(request)


CurrentRequest = Annotated[PageRequest, Depends(_page_request)]
"""The first parameter of every page."""


@asynccontextmanager
async def limit_pages(_app: object) -> AsyncIterator[None]:
    """Limit the pages that an application computes at once."""
    to_thread.current_default_thread_limiter().total_tokens = PAGES
    yield


def limited_by(limiter: CapacityLimiter) -> Callable[[Callable[P, R]], Callable[P, Awaitable[R]]]:
    """Compute a page under another limiter than that of pages."""

    def decorate(page: Callable[P, R]) -> Callable[P, Awaitable[R]]:
        @wraps(page)
        async def limited(*arguments: P.args, **named: P.kwargs) -> R:
            return await to_thread.run_sync(lambda: page(*arguments, **named), limiter=limiter)

        return limited

    return decorate


def in_turn(page: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Compute a page in the thread of decisions, one after the other."""

    @wraps(page)
    async def decided(*arguments: P.args, **named: P.kwargs) -> R:
        given = (*arguments, *named.values())
        request = next(one for one in given if isinstance(one, PageRequest))
        return await wrap_future(request.live.decisions.submit(page, *arguments, **named))

    return decided
