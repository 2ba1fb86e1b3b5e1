"""The review as web pages: `serve` opens a collection to the browsers of its assessors."""

from exampp.web.serving import PORT, serve

__all__ = ["PORT", "serve"]
