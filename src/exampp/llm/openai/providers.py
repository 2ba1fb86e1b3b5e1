"""Whose protocol a server speaks: where it is by default, and how a key is shown to it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

ANTHROPIC_VERSION = "2026-10-21"
_VERSIONED = re.compile(r"/v\d\w*$")


@dataclass(frozen=True, slots=True)
class Provider:
    """A protocol with its usual server.

    `keys` are the variables of the environment that may hold the key, `address` the one that holds
    another URL; `version` is what the provider's SDK puts behind that one, unless it is there.
    `header` carries the key, as `bearer` says; `more` goes with every request.
    """

    name: str
    url: str
    address: str
    keys: tuple[str, ...]
    header: str = "Authorization"
    bearer: str = "Bearer {}"
    version: str = ""
    more: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def host(self) -> str:
        """The usual server."""
        return self.url.split("/")[2]

    def named(self) -> str:
        """The URL below which requests go, as the environment names it; empty where it does not."""
        url = os.environ.get(self.address, "").rstrip("/")
        versioned = not self.version or _VERSIONED.search(url)
        return url if not url or versioned else f"{url}/{self.version}"

    def headers(self, key: str) -> dict[str, str]:
        """What every request says, the key included."""
        return {self.header: self.bearer.format(key), **self.more}


OPENAI = Provider("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",))
ANTHROPIC = Provider(
    "anthropic",
    "https://api.anthropic.com/v1",
    "ANTHROPIC_BASE_URL",
    ("ANTHROPIC_API_KEY",),
    version="v1",
    more={"anthropic-version": ANTHROPIC_VERSION},
)
GOOGLE = Provider(
    "google",
    "https://generativelanguage.googleapis.com/v1",
    "GOOGLE_GEMINI_BASE_URL",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "x-goog-api-key",
    "{}",
    version="v1",
)
