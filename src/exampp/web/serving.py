"""Serve a collection until it is stopped."""

from __future__ import annotations

import gc
import getpass
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.inputs.officials import Officials
from exampp.installed import install_command
from exampp.review.queue import DEFAULT_SHARE
from exampp.web.access import (
    Access,
    host_names,
    is_address,
    is_loopback,
    path_prefix,
    proxy_network,
    public_host,
)
from exampp.web.people import People

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from exampp.web.live_collection import LiveCollection

PORT = 8765
DEFAULT_PATH = "my.exam"
"""The collection that is served, or created, if none is named."""
SUFFIX = Path(DEFAULT_PATH).suffix
NEEDED = ("uvicorn", "fastapi", "jinja2", "markdown_it", "python_multipart", "vl_convert")
"""The modules of the extra `web`."""
HEADER_BYTES = 1 << 16
"""Maximum bytes of a request head: addresses contain ids."""
SWITCH_SECONDS = 0.0005
"""Switch interval of threads, in seconds. Every call to the store waits for its turn: next to
background computations, the default of 5 ms adds up to seconds.
"""
ALLOCATIONS = 100_000
"""Threshold of garbage collection, in objects. A page creates ten thousand, most freed by reference
counting: with the default of 700, collection takes a fifth of the time.
"""
GRACE_SECONDS = 2
"""Seconds that pending requests may take when the server stops."""


def say(line: str) -> None:
    """Print a line at once, even into a pipe."""
    print(line, flush=True)


def serve(
    path: str | Path = DEFAULT_PATH,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    assessors: Sequence[str] = (),
    blind: bool = False,
    grader: str | None = None,
    prompt: str | None = None,
    kind: str | None = None,
    bank: str | None = None,
    min_rating: int | None = None,
    shared: float = DEFAULT_SHARE,
    guidelines: str | Path | None = None,
    official: Officials | None = None,
    allowed_hosts: Sequence[str] = (),
    prefix: str = "",
    proxies: Sequence[str] = (),
    access_log: str | Path | None = None,
    announce: Callable[[str], None] = say,
) -> None:
    """Serve a collection to browsers until interrupted (Ctrl-C), then return.

    A collection NAME.exam that does not exist is created, and removed if it is empty at the end.
    The user is its owner. Only this machine can reach it unless `host` is set; then `assessors`
    must be named or people invited (`People.invite`). The owner and each assessor get a separate
    address with a token, passed to `announce`; it is valid until the server stops. Port 0 selects a
    free port. `shared` is the share of cells that every assessor decides, `guidelines` a Markdown
    file with instructions; `official` are official leaderboards, as in `Grades.correlate`. Behind a
    reverse proxy, `allowed_hosts` are the host names that browsers use, `prefix` is the path of the
    pages there, and `proxies` are the addresses whose X-Forwarded-For and X-Forwarded-Proto are
    believed. `access_log` is a file of requests. Raises InputError if the extra `web` is not
    installed, the port is in use, or an option is wrong.
    """
    check_installed()
    from exampp.web.app import import_pages
    from exampp.web.live_collection import LiveCollection

    import_pages()
    people = People(path)
    for name in assessors:
        people.add(name, "owner" if name == _user() else "assessor")
    if not is_loopback(host) and not people.everybody():
        raise InputError(
            f"other machines can reach {host}, but nobody is invited",
            hint=f"Invite each person: exampp people {path} --invite NAME, or name them: "
            "--assessor NAME",
        )
    if _user() not in people.tokens.values():
        people.add(_user(), "owner")
    # files made from now on are private: new logs, exports and collections
    os.umask(0o077)
    listener = listen(host, port)
    options: dict[str, Any] = {
        "grader": grader,
        "prompt": prompt,
        "kind": kind,
        "bank": bank,
        "min_rating": min_rating,
        "blind": blind,
        "shared": shared,
        "guidelines": guidelines,
    }
    with listener, created_if_new(Path(path)) as is_new:
        live = LiveCollection(path, **options, official=official)
        try:
            served = prepare(
                live,
                listener,
                host,
                people,
                allowed_hosts=allowed_hosts,
                prefix=prefix,
                proxies=proxies,
                access_log=access_log,
                decisions=options,
            )
            if is_new:
                announce(f"{path} is new: add files on the page.")
            for line in _welcome(live, served, host):
                announce(line)
            served.run()
        except KeyboardInterrupt:
            pass
        finally:
            live.close()


@contextmanager
def created_if_new(path: Path) -> Iterator[bool]:
    """Create a collection NAME.exam that does not exist; remove it at the end if it is empty.

    A missing file of another name is probably a typo, which the caller reports.
    """
    is_new = path.suffix == SUFFIX and not path.exists()
    if is_new:
        Collection.create(path).close()
    try:
        yield is_new
    finally:
        if is_new:
            with Collection(path) as collection:
                is_empty = not any(count for _, count in collection.contents().rows)
            if is_empty:
                path.unlink()


@dataclass(frozen=True)
class Served:
    """A server that is ready to run, with its address and who has access."""

    server: uvicorn.Server
    listener: socket.socket
    access: Access
    address: str

    def addresses(self) -> dict[str, str]:
        """Return the address of everybody who was added at start, with the token."""
        tokens = self.access.people.tokens
        return {name: f"{self.address}/?token={token}" for token, name in tokens.items()}

    def run(self) -> None:
        """Serve until stopped."""
        usual, often = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.set_threshold(ALLOCATIONS)
        try:
            self.server.run(sockets=[self.listener])
        finally:
            sys.setswitchinterval(usual)
            gc.set_threshold(*often)


def prepare(
    live: LiveCollection,
    listener: socket.socket,
    host: str,
    people: People,
    *,
    allowed_hosts: Sequence[str] = (),
    prefix: str = "",
    proxies: Sequence[str] = (),
    access_log: str | Path | None = None,
    decisions: Mapping[str, Any] | None = None,
) -> Served:
    """Return a server for a collection on a listening socket.

    With `decisions`, the options of the collection, another process stores decisions.
    """
    from exampp.web.app import create_app
    from exampp.web.rendering import drawing_ended, end_drawing

    drawing_ended.clear()
    port = listener.getsockname()[1]
    access = Access(
        people,
        host_names(host),
        f"exampp-{port}",
        tuple(map(public_host, allowed_hosts)),
        path_prefix(prefix),
        tuple(map(proxy_network, proxies)),
    )
    config = server_config(create_app(live, access, decisions), access_log)
    address = f"http://{shown_host(host)}:{port}"
    if access.public:
        # a proxy that other machines reach has TLS; one for trials on this machine rarely has
        is_local = is_loopback(access.public[0].partition(":")[0])
        address = f"{'http' if is_local or not proxies else 'https'}://{access.public[0]}"
    return Served(stoppable_server(config, end_drawing), listener, access, address + access.prefix)


def stoppable_server(config: uvicorn.Config, stop: Callable[[], None]) -> uvicorn.Server:
    """Return a server that calls `stop` at the first signal to exit."""
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # only once: a second signal would cut the orderly shutdown short
            if not self.should_exit:
                stop()
                super().handle_exit(sig, frame)

    return Server(config)


def server_config(app: ASGIApp, access_log: str | Path | None) -> uvicorn.Config:
    """Return the configuration of a server with limits; it logs requests only to `access_log`."""
    import uvicorn

    from exampp.web.limits import AccessLog, LimitedProtocol, limit_logs

    limit_logs()
    return uvicorn.Config(
        app if access_log is None else AccessLog(app, access_log),
        http=LimitedProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        # uvicorn would log whole addresses, which contain tokens, ids and texts
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def check_installed() -> None:
    """Raise InputError if a module of the extra `web` is missing."""
    for name in NEEDED:
        try:
            import_module(name)
        except ModuleNotFoundError:
            raise InputError(
                f"the server needs {name}, which is not installed",
                hint=f"Install it: {install_command('web')}",
            ) from None


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises InputError if that fails."""
    if not 0 <= port <= 65535:
        raise InputError(f"invalid port {port}", field="--port", hint="Give 1 to 65535, or 0")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # otherwise a restart would wait for connections in TIME_WAIT
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host} port {port} ({error.strerror})",
            hint="Choose another port with --port, or --port 0 for a free one",
        ) from None
    return listener


def shown_host(host: str) -> str:
    """Return a host as it is written in an address."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if is_address(host) and ":" in host else host


def _welcome(live: LiveCollection, served: Served, host: str) -> list[str]:
    addresses, everybody = served.addresses(), served.access.people.everybody()
    if len(addresses) == 1:
        lines = [f"{live.path} is open at {next(iter(addresses.values()))}"]
    else:
        width, roles = max(map(len, addresses)), {one.name: one.role for one in everybody}
        lines = [f"{live.path} is open to {len(addresses)} people, each at a separate address:"]
        lines += [f"  {n:{width}}  {roles[n]:8}  {address}" for n, address in addresses.items()]
    if invited := len(everybody) - len(addresses):
        people = "1 person" if invited == 1 else f"{invited} people"
        lines.append(f"{people} can also use an invitation: exampp people {live.path}")
    if not is_loopback(host) and not served.access.proxies:
        lines.append(
            "The connection is not encrypted. Use it only in a trusted network or through a tunnel."
        )
    mode = live.path.stat().st_mode
    if mode & 0o077 and (not is_loopback(host) or served.access.proxies):
        lines.append(
            f"Other accounts of this machine can read {live.path} (mode {mode & 0o777:o}): "
            f"chmod 600 {live.path}"
        )
    return [*lines, "Press Ctrl-C to stop."]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "assessor"
