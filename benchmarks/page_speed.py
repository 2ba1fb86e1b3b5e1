"""First contentful paint and weight of every page, at the first visit and at the second.

python benchmarks/page_speed.py MY.exam [--page items] [--rounds 3]

A first visit is that of a browser without a cache to a page that the server has not computed yet:
in every round a server starts, and the pages are opened one after the other with headless Chromium
by Playwright. Times are medians over the rounds,
in milliseconds, from the click to the first paint, and to the paint of the computed page where the
first paint says that it is being computed.
"""

from __future__ import annotations

import argparse
import os
import shutil
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from page_pictures import addresses, served
from playwright.sync_api import Browser, Error, sync_playwright

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
OBSERVED = """
painted(performance.timeOrigin, null);
new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName("first-contentful-paint")) {
    painted(performance.timeOrigin, one.startTime);
  }
}).observe({type: "paint", buffered: true});
"""
"""Reports when a document begins, and when it is first painted."""
WEIGHT = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const parts = [page, ...performance.getEntriesByType("resource")];
  const sum = (field) => parts.reduce((total, one) => total + one[field], 0);
  return [page.encodedBodySize, page.decodedBodySize, sum("transferSize"), sum("decodedBodySize")];
}"""
"""Bytes of the page, and with all its files; compressed and not."""
COMPUTED = """() => document.readyState === "complete"
  && !document.body.innerText.includes("Computing the results")"""
"""A page is complete if this is true; while it reloads, its document is empty at first."""


def visit(browser: Browser, address: str, path: str) -> tuple[list[Any], list[Any]]:
    """Open a page in a browser without a cache, and again."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    # this sets the cookie, and fills no cache
    context.request.get(address, max_redirects=0)
    paints: list[tuple[float, float | None]] = []
    context.expose_binding("painted", lambda _, origin, at: paints.append((origin, at)))
    context.add_init_script(OBSERVED)
    base = "/".join(address.split("/")[:3])
    found = []
    for _ in range(2):
        paints.clear()
        with suppress(Error):
            # a page that is being computed reloads itself
            page.goto(base + path, wait_until="load")
        page.wait_for_function(COMPUTED, timeout=120_000)
        page.wait_for_load_state()
        while all(at is None for _, at in paints):
            page.wait_for_timeout(20)
        seen = [origin + at for origin, at in paints if at is not None]
        began = paints[0][0]
        found.append([seen[0] - began, seen[-1] - began, *page.evaluate(WEIGHT)])
    context.close()
    return found[0], found[1]


def main() -> None:
    """Print a line per page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--page", action="append", help="only this page; repeat for several")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    pages = addresses(given.collection)
    wanted = given.page or list(pages)
    first: dict[str, list[list[Any]]] = {name: [] for name in wanted}
    second: dict[str, list[list[Any]]] = {name: [] for name in wanted}
    with sync_playwright() as started:
        for _ in range(given.rounds):
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            with served(given.collection) as address:
                for name in wanted:
                    one, two = visit(browser, address, pages[name])
                    first[name].append(one)
                    second[name].append(two)
            browser.close()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rounds} rounds")
    heads = (
        "first ms",
        "complete ms",
        "second ms",
        "page kB",
        "plain kB",
        "all kB",
        "all plain kB",
    )
    print("page".ljust(18), *(head.rjust(12) for head in heads))
    for name in wanted:
        paint, complete, *sizes = (median(one) for one in zip(*first[name], strict=True))
        again = median(one[0] for one in second[name])
        times = (f"{one:12.0f}" for one in (paint, complete, again))
        print(name.ljust(18), *times, *(f"{size / 1000:12.1f}" for size in sizes))


if __name__ == "__main__":
    main()
