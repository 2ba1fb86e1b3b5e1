"""What a server takes of what it is asked: parameters that it refuses are left out from then on.

Models that reason refuse a temperature of 0, or call the limit of a reply by its newer name; others
know no seed. Each parameter is given up once, so that nothing is asked in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""The longest reply in tokens, by the name that most servers know and by OpenAI's for chats."""

CHOICES = ("temperature", "seed", "top_p")
"""What a model can do without: they say how it chooses, not what it is asked."""


class ServerQuirks:
    """How one server wants to be asked.

    `without` are the parameters that it refused, `context` is the least that it said it takes when
    a request was too long, in tokens of prompt and reply.
    """

    def __init__(self, limit_name: str = LIMIT) -> None:
        self.without: tuple[str, ...] = ()
        self.context: int | None = None
        self._limit_name = limit_name

    @property
    def note(self) -> str:
        """What to tell of it; empty where the server takes everything."""
        if not self.without:
            return ""
        named = ", ".join(self.without)
        return f"The server refuses {named}: it is asked without, and chooses by itself"

    def spoken(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as this server takes it."""
        named = {LIMIT: self._limit_name} if "messages" in body else {}
        return {named.get(key, key): v for key, v in body.items() if key not in self.without}

    def left_out(self, body: Mapping[str, Any]) -> list[str]:
        """What the server does not get of a request."""
        return [name for name in self.without if name in body]

    def learn(self, context: int | None) -> None:
        """Take what the server said that it takes, if it said it."""
        if context is not None:
            self.context = min(context, self.context or context)

    def give_up(self, parameter: str) -> None:
        """Do without a parameter that the server refused, as far as that is possible."""
        if parameter == LIMIT:
            self._limit_name = NEWER_LIMIT
        elif parameter in CHOICES and parameter not in self.without:
            self.without = (*self.without, parameter)
