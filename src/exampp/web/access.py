"""Access control of the server: actions, Host, Origin and forwarded headers.

A token in a printed address is exchanged for a session cookie. The Host header must be an address
or a name of this machine, which prevents DNS rebinding. A request that changes anything must come
from a page of this server.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from exampp.errors import InputError
from exampp.web.people import Action, People

SAFE_METHODS = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
POSTS: Mapping[str, Action] = {
    **dict.fromkeys(("/choose", "/score", "/judge/blind", "/judge/session"), "judge"),
    **dict.fromkeys(("/judge/decide", "/judge/undo", "/sample/decide", "/sample/undo"), "judge"),
    "/banks/decide": "judge",
    "/sample/draw": "draw",
    # the page checks whether it undoes the edit or the adjudication of somebody else
    "/history/undo": "judge",
    **dict.fromkeys(("/people/invite", "/people/revoke"), "manage"),
    **dict.fromkeys(("/impact", "/bank/edit", "/bank/dismiss", "/duplicates/settle"), "edit"),
    **dict.fromkeys(("/write/typed", "/improve/accept"), "edit"),
    "/changes/add": "manage",
    **dict.fromkeys(("/files/add", "/files/check", "/files/import", "/files/remove"), "manage"),
    **dict.fromkeys(("/write/price", "/write/start", "/grade/price", "/grade/start"), "manage"),
    **dict.fromkeys(("/runs/stop", "/runs/resume", "/runs/undo", "/runs/vote"), "manage"),
}
"""The action that an address needs; all other changes are for owners."""
DOWNLOADS: Mapping[str, Action] = {"/export/": "export", "/people/": "manage"}
"""The action that files below an address need; everybody may read all other pages."""
Network = IPv4Network | IPv6Network
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:@/\[\]]+))(?::[0-9]{0,5})?")


def needed_action(method: str, path: str) -> Action | None:
    """Return what a person must be allowed to do for a request; None if everybody may."""
    if method not in SAFE_METHODS:
        return POSTS.get(path, "manage")
    return next((needed for below, needed in DOWNLOADS.items() if path.startswith(below)), None)


@dataclass(frozen=True, slots=True)
class Access:
    """The people with access, and the names and proxies under which the server is reached.

    `names` are the accepted host names; literal addresses are always accepted. `public` are the
    hosts, with their port if it is not the usual one, under which a proxy offers the server.
    `prefix` is the path in front of its addresses there, `proxies` the networks whose forwarded
    headers are believed. `cookie` names the session cookie: browsers share cookies between the
    ports of a host.
    """

    people: People
    names: frozenset[str]
    cookie: str = "exampp"
    public: tuple[str, ...] = ()
    prefix: str = ""
    proxies: tuple[Network, ...] = ()

    def answers_to(self, host: str) -> bool:
        """Return whether a Host header names this server: an address, or one of its names."""
        name = _host_name(host)
        return name is not None and (
            is_address(name) or name in self.names or name in map(_host_name, self.public)
        )

    def forwarded(self, peer: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        """Return the address of the client, and whether it reached a trusted proxy by TLS."""
        if not is_address(peer) or not any(ip_address(peer) in one for one in self.proxies):
            return peer, False
        client = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        secure = headers.get("x-forwarded-proto", "").strip().lower() == "https"
        return client if is_address(client) else peer, secure

    def is_own_request(self, method: str, host: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request is allowed, by its origin.

        A request that changes something must come from a page of this server: its Origin is the
        Host or a public host, or the browser says same-origin. Another site may link here but not
        load anything.
        """
        site = headers.get("sec-fetch-site", "")
        if method in SAFE_METHODS:
            return site != "cross-site" or headers.get("sec-fetch-mode") == "navigate"
        origin = headers.get("origin", "")
        if origin and origin != "null":
            return self.is_own_origin(origin, host)
        return site == "same-origin"

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Return whether an origin is the Host or a public host."""
        scheme, _, rest = origin.lower().partition("://")
        # https if a TLS proxy is in front, which may replace the Host
        return scheme in ("http", "https") and rest in (host.lower(), *self.public)


def _host_name(host: str) -> str | None:
    match = _HOST.fullmatch(host)
    return match and (match["six"] or match["name"]).lower()


def public_host(host: str) -> str:
    """Check a public host, `NAME` or `NAME:PORT`, and return it in lower case."""
    if _host_name(host) is None:
        raise InputError(
            f"{host!r} is not the name of a host",
            field="--allowed-host",
            hint="Give NAME or NAME:PORT, without https://",
        )
    return host.lower()


def path_prefix(path: str) -> str:
    """Check the path before the addresses of a server, and return it without a last slash."""
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*/?", path) or ".." in path.split("/"):
        raise InputError(
            f"{path!r} is not a path", field="--prefix", hint="Give a path such as /exam"
        )
    return path.rstrip("/")


def proxy_network(text: str) -> Network:
    """Return the network of a proxy: one address, or a range such as 172.16.0.0/12."""
    try:
        return ip_network(text)
    except ValueError:
        raise InputError(
            f"{text!r} is not an address",
            field="--proxy",
            hint="Give an address such as 127.0.0.1, or a range such as 172.16.0.0/12",
        ) from None


def is_address(name: str) -> bool:
    """Return whether a host is a literal IP address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to the host."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def host_names(host: str) -> frozenset[str]:
    """Return the host names of a server bound to `host`."""
    if is_loopback(host):
        return frozenset({"localhost"})
    return frozenset({"localhost", host.lower(), socket.gethostname().lower()})
