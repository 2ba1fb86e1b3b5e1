"""Pages in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooms import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def faults(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds in a page, of any weight, the size of targets among it.

    The page is tried in the light, too: in the dark it is asked for what hangs on colours.
    """
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, object] = {
        "rules": {"target-size": {"enabled": True}},
        "resultTypes": ["violations"],
    }
    if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"):
        options["runOnly"] = ["color-contrast", "link-in-text-block"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in Axe().run(page, options=options).response["violations"]
    ]


class Trouble(list[str]):
    """What went wrong in a page: errors of scripts, refused loads, dialogs, foreign requests."""


@contextmanager
def page_of(
    browser: Browser, client: Client, *, width: int = 1440, dark: bool = False
) -> Iterator[tuple[Page, Trouble]]:
    """A page in which the client's assessor has come in."""
    context = browser.new_context(
        base_url=f"http://{client.host}",
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
    )
    trouble = Trouble()
    try:
        for name, value in client.cookies.items():
            context.add_cookies([{"name": name, "value": value, "url": f"http://{client.host}"}])
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(f"script: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None,
        )
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((f"http://{client.host}/", "data:"))
                else trouble.append(f"asked for {asked.url}")
            ),
        )
        yield page, trouble
    finally:
        context.close()
