"""Web pages for review; `serve` starts the server, `People` are those invited."""

from exampp.web.people import People
from exampp.web.serving import PORT, serve

__all__ = ["PORT", "People", "serve"]
