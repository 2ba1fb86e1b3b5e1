"""Pages in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.axe import put_axe, violations
from support.live import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


IN_BOTH_SCHEMES: dict[str, dict[str, object]] = {
    "light": {"rules": {"target-size": {"enabled": True}}},
    "dark": {"runOnly": ["color-contrast", "link-in-text-block"]},
}
"""Rules of axe: all faults in light pages; in dark pages those that depend on colours."""


def faults(page: Page) -> list[tuple[str, list[str]]]:
    """Return the findings of axe in a page that has it, in light and then in dark."""
    found = []
    for scheme, options in IN_BOTH_SCHEMES.items():
        page.emulate_media(
            color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
        )
        found += violations(page, **options)
    # the colours are back before anything may move: a colour on its way is not stopped by `reduce`
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate("() => getComputedStyle(document.body).color + document.body.offsetWidth")
    page.emulate_media(color_scheme="light", reduced_motion="null")
    return found


class Trouble(list[str]):
    """Collect the faults of a page: script errors, refused loads, dialogs, foreign requests."""


@contextmanager
def page_of(
    browser: Browser, client: Client, *, width: int = 1440, axe: bool = False
) -> Iterator[tuple[Page, Trouble]]:
    """A page in which the client's assessor has come in, with `axe` for its `faults`."""
    context = browser.new_context(
        base_url=f"http://{client.host}",
        viewport={"width": width, "height": 900},
    )
    trouble = Trouble()
    try:
        for name, value in client.cookies.items():
            context.add_cookies([{"name": name, "value": value, "url": f"http://{client.host}"}])
        if axe:
            put_axe(context)
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
