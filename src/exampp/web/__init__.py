"""Web pages for review; `serve` starts the server."""

from exampp.web.serving import PORT, serve

__all__ = ["PORT", "serve"]
