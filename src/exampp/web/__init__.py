"""Web pages for review; `serve` starts the server, `People` are those invited."""

from exampp.web.people import People
from exampp.web.serving import DEFAULT_PATH, PORT, serve

__all__ = ["DEFAULT_PATH", "PORT", "People", "serve"]
