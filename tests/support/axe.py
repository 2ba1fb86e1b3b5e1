"""Findings of axe in the pages of a browser."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

COLOURS_READ_ONCE = """(() => {
  const { Color } = axe.commons.color, { parseString } = Color.prototype, known = new Map();
  Color.prototype.parseString = function (text) {
    if (!known.has(text)) known.set(text, parseString.call(new Color(0, 0, 0), text));
    const { r, g, b, alpha } = known.get(text);
    return Object.assign(this, { r, g, b, alpha });
  };
})()"""
"""axe reads the colours of an element and of all around it anew for each: a quarter of its time."""


@functools.cache
def _script() -> str:
    from axe_playwright_python.base import AXE_SCRIPT

    return f"{AXE_SCRIPT};\n{COLOURS_READ_ONCE}"


def put_axe(into: BrowserContext | Page) -> None:
    """Put axe into all pages that will be opened: less than half of what it takes afterwards."""
    into.add_init_script(_script())


RUN = """async (asked) => {
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
  return (await axe.run(asked)).violations;
}"""


def violations(page: Page, **options: object) -> list[tuple[str, list[str]]]:
    """The rules that a page breaks, each with some of the elements that break it.

    A colour on its way to another is there.
    """
    asked = {**options, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = page.evaluate(RUN, asked)
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]
