"""Access control of the server: tokens, sessions, Host and Origin headers.

A token in a printed address is exchanged for a session cookie. The Host header must be an address
or a name of this machine, which prevents DNS rebinding. A request that changes anything must come
from a page of this server.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError

SAFE_METHODS = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""
_BYTES = 24
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:@/\[\]]+))(?::[0-9]{0,5})?")


@dataclass(frozen=True, slots=True)
class Access:
    """Assessors with access, by token and by session.

    `names` are the accepted host names; literal addresses are always accepted. `cookie` names the
    session cookie: browsers share cookies between the ports of a host.
    """

    tokens: Mapping[str, str]
    sessions: Mapping[str, str]
    names: frozenset[str]
    cookie: str = "exampp"

    @classmethod
    def of(cls, assessors: Sequence[str], names: Iterable[str], cookie: str = "exampp") -> Access:
        """Create a token and a session for each assessor, both random.

        Raises InputError if a name is blank or occurs twice.
        """
        if not all(name.strip() for name in assessors):
            raise InputError("the name of an assessor is blank", field="--assessor")
        if len(set(assessors)) < len(assessors):
            raise InputError("two assessors have the same name", field="--assessor")
        return cls(
            {secrets.token_urlsafe(_BYTES): name for name in assessors},
            {secrets.token_urlsafe(_BYTES): name for name in assessors},
            frozenset(name.lower() for name in names),
            cookie,
        )

    def enter(self, token: str) -> str | None:
        """Return the session that belongs to a token; None if the token is unknown."""
        name = _lookup(self.tokens, token)
        return next((one for one, owner in self.sessions.items() if owner == name), None)

    def assessor(self, session: str) -> str | None:
        """Return the assessor of a session; None if the session is unknown."""
        return _lookup(self.sessions, session)

    def answers_to(self, host: str) -> bool:
        """Return whether a Host header names this server: an address, or one of its names."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["six"] or match["name"]).lower()
        return is_address(name) or name in self.names


def _lookup(names: Mapping[str, str], secret: str) -> str | None:
    """Look up a secret in constant time, to reveal nothing through timing."""
    encoded = secret.encode("utf-8", "replace")
    match = None
    for one, name in names.items():
        if secrets.compare_digest(one.encode(), encoded):
            match = name
    return match


def is_address(name: str) -> bool:
    """Return whether a host is a literal IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to the host."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def host_names(host: str) -> frozenset[str]:
    """Return the host names of a server bound to `host`."""
    if is_loopback(host):
        return frozenset({"localhost"})
    return frozenset({"localhost", host.lower(), socket.gethostname().lower()})


def is_own_request(method: str, host: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is allowed, by its origin.

    A request that changes something must come from a page of this server: its Origin is the Host,
    or the browser says same-origin. Another site may link here but not load anything.
    """
    site = headers.get("sec-fetch-site", "")
    if method in SAFE_METHODS:
        return site != "cross-site" or headers.get("sec-fetch-mode") == "navigate"
    origin = headers.get("origin", "")
    if origin and origin != "null":
        # https if a TLS proxy is in front
        return origin.lower() in {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}
    return site == "same-origin"
