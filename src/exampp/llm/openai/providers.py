"""Whose protocol a server speaks: where it is by default, and how a key is shown to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Provider:
    """A protocol with its usual server.

    `keys` are the variables of the environment that may hold the key, `address` the one that holds
    another URL. `header` carries the key, as `bearer` says; `more` goes with every request.
    """

    name: str
    url: str
    address: str
    keys: tuple[str, ...]
    header: str = "Authorization"
    bearer: str = "Bearer {}"
    more: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def host(self) -> str:
        """The usual server."""
        return self.url.split("/")[2]

    def headers(self, key: str) -> dict[str, str]:
        """What every request says, the key included."""
        return {self.header: self.bearer.format(key), **self.more}


OPENAI = Provider("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",))
ANTHROPIC = Provider(
    "anthropic",
    "https://api.anthropic.com/v1",
    "ANTHROPIC_BASE_URL",
    ("ANTHROPIC_API_KEY",),
    "x-api-key",
    "{}",
    {"anthropic-version": ANTHROPIC_VERSION},
)
GOOGLE = Provider(
    "google",
    "https://generativelanguage.googleapis.com/v1beta",
    "GOOGLE_GEMINI_BASE_URL",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "x-goog-api-key",
    "{}",
)
