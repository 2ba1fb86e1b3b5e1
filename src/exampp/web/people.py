"""The people with access to a served collection: names, roles and invitations.

An invitation is a link with a token. It signs a browser in until it is revoked, also after a
restart. The invitations are in a file beside the collection, which contains only digests: nobody
who reads it can sign in. People for one start of the server are not stored.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import logging
import os
import secrets
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from exampp.errors import InputError
from exampp.results.result import Table
from exampp.sanitize import check_choice, clean_name

_LOG = logging.getLogger("exampp.web")
Role = Literal["owner", "editor", "assessor"]
Action = Literal["judge", "adjudicate", "edit", "draw", "export", "manage"]
ROLES: Mapping[Role, frozenset[Action]] = {
    "owner": frozenset({"judge", "adjudicate", "edit", "draw", "export", "manage"}),
    "editor": frozenset({"judge", "adjudicate", "edit", "draw", "export"}),
    "assessor": frozenset({"judge"}),
}
"""The actions of each role; everybody may read the pages."""
ACTIONS: Mapping[Action, str] = {
    "judge": "judge cells",
    "adjudicate": "settle disputes",
    "edit": "edit the bank",
    "draw": "draw samples",
    "export": "download files",
    "manage": "import, generate, grade and invite people",
}
"""Each action in words."""
_BYTES = 24
_FILE_MODE = 0o600


def permitted_actions(role: Role) -> str:
    """Return what a role may do, in words."""
    *others, last = (ACTIONS[one] for one in ACTIONS if may(role, one))
    return f"{', '.join(others)} and {last}" if others else last


def may(role: Role, action: Action) -> bool:
    """Return whether a role permits an action."""
    return action in ROLES[role]


@dataclass(frozen=True, slots=True)
class Person:
    """A person with access. `session` is the digest of the cookie that signs them in."""

    name: str
    role: Role = "assessor"
    session: str = ""
    invited: str = ""

    def may(self, action: Action) -> bool:
        """Return whether the role of the person permits an action."""
        return may(self.role, action)


def session_of(token: str) -> str:
    """Return the session cookie that belongs to a token; it does not reveal the token."""
    key = token.encode("utf-8", "replace")
    return hmac.new(key, b"exampp session", hashlib.sha256).hexdigest()


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()


def _compared(name: str) -> str:
    """Return the form in which names are compared: `Ann` and `ann` are one person."""
    return unicodedata.normalize("NFKC", name).casefold()


def people_path(collection: str | Path) -> Path:
    """Return the file with the invitations to a collection."""
    return Path(f"{collection}.people.json")


class People:
    """The people invited to a collection, and those added for one start of the server."""

    def __init__(self, collection: str | Path | None = None) -> None:
        self.path = None if collection is None else people_path(collection)
        self.tokens: dict[str, str] = {}
        self._added: tuple[Person, ...] = ()
        self._seen: object = None
        self._invited: tuple[Person, ...] = ()

    def add(self, name: str, role: Role) -> str:
        """Add a person until the server stops; return their token."""
        if any(_compared(one.name) == _compared(name) for one in self._added):
            raise InputError(f"two people have the name {name!r}", field="--assessor")
        person, token = _new_person(name, role, (one.name for one in self.everybody()))
        self._added = (*self._added, person)
        self.tokens[token] = person.name
        return token

    def invite(self, name: str, role: Role = "assessor") -> str:
        """Store an invitation and return its token; an earlier one of that name ends."""
        with self._changing() as invited:
            person, token = _new_person(name, role, (one.name for one in invited))
            invited[:] = [*(one for one in invited if one.name != person.name), person]
        return token

    def revoke(self, name: str, *, by: str = "") -> Person:
        """End the access of a person, also where it is in use; return the person.

        InputError for somebody without access, and if they revoke themselves (`by`).
        """
        wanted = _compared(clean_name("the name of a person", name))
        if by and _compared(by) == wanted:
            raise InputError("nobody revokes their own access", hint="Ask another owner")
        for person in self._added:
            if _compared(person.name) == wanted:
                self._added = tuple(one for one in self._added if one is not person)
                return person
        with self._changing() as invited:
            revoked = [one for one in invited if _compared(one.name) == wanted]
            for person in revoked:
                invited.remove(person)
        if revoked:
            return revoked[0]
        raise InputError(f"{name!r} has no invitation", hint="exampp people COLLECTION lists them")

    def everybody(self) -> tuple[Person, ...]:
        """Return everybody with access, by name; invitations are read again if they changed."""
        if self.path is not None:
            try:
                status = self.path.stat()
                seen: object = (status.st_mtime_ns, status.st_ino, status.st_size)
            except OSError:
                seen = None
            if seen != self._seen:
                self._invited = tuple(_read_people(self.path)) if seen else ()
                self._seen = seen
        added = {one.name for one in self._added}
        invited = [one for one in self._invited if one.name not in added]
        return tuple(sorted((*self._added, *invited), key=lambda one: _compared(one.name)))

    def signed_in(self, session: str) -> Person | None:
        """Return the person of a session; None if it is unknown or was revoked."""
        try:
            self.everybody()
        except InputError as error:
            # a file that cannot be read admits nobody but those who were added
            _LOG.warning("%s", error)
            self._invited = ()
        digest = _digest(session)
        everybody = (*self._added, *self._invited)
        return next((one for one in everybody if one.session == digest), None)

    def table(self) -> Table:
        """Return everybody with access as a table."""
        rows = [
            (one.name, one.role, permitted_actions(one.role), one.invited)
            for one in self.everybody()
        ]
        return Table.of(["name", "role", "may", "invited"], rows)

    @contextmanager
    def _changing(self) -> Iterator[list[Person]]:
        """Lock and read the invitations, then replace the file as a whole."""
        if self.path is None:
            raise InputError("people without a collection cannot be invited")
        partial = self.path.with_name(f"{self.path.name}.new")
        lock = os.open(
            self.path.with_name(f"{self.path.name}.lock"), os.O_CREAT | os.O_RDWR, _FILE_MODE
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            invited = _read_people(self.path) if self.path.exists() else []
            yield invited
            partial.unlink(missing_ok=True)
            to = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE)
            with os.fdopen(to, "w", encoding="utf-8") as stream:
                json.dump({"people": [asdict(one) for one in invited]}, stream, indent=1)
                stream.flush()
                os.fsync(to)
            partial.replace(self.path)
        finally:
            os.close(lock)


def _new_person(name: str, role: Role, known: Iterable[str]) -> tuple[Person, str]:
    """Return a person and a new token. InputError if another name differs only in its letters."""
    name = clean_name("the name of a person", name)
    check_choice("the role", role, get_args(Role))
    for other in known:
        if other != name and _compared(other) == _compared(name):
            raise InputError(
                f"{name!r} and {other!r} would be taken for one person",
                hint=f"Use {other!r}, or add a last name",
            )
    token = secrets.token_urlsafe(_BYTES)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return Person(name, role, _digest(session_of(token)), today), token


def _read_people(path: Path) -> list[Person]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["people"]
        people = [Person(**entry) for entry in entries]
        if all(one.role in ROLES and isinstance(one.session, str) for one in people):
            return people
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except (ValueError, TypeError, KeyError):
        pass
    raise InputError(
        "is not a list of invitations", file=str(path), hint="Delete it and invite everybody again"
    )
