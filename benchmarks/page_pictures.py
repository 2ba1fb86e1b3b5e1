"""Pictures of every page as people may see it, and the faults that a browser can measure in it.

python benchmarks/page_pictures.py MY.exam OUT [--view dark --view print] [--page items]

OUT gets a picture of each page in each view, and of each view sheets with the pages side by side;
the print view gets a PDF of each page too. Needs playwright, axe-playwright-python and Chromium.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, sync_playwright

import exampp
from exampp.store.history import change_days
from exampp.web.page_request import PLACES

HIGHEST = 2400
"""CSS pixels of a page that its picture shows."""
A4 = 718
"""CSS pixels between the margins of a sheet of paper."""


@dataclass(frozen=True)
class View:
    """A view of a page: its width in CSS pixels, and the settings of its reader."""

    width: int
    scale: float = 1
    media: dict[str, Any] = field(default_factory=dict)


VIEWS = {
    "1440": View(1440),
    "900": View(900),
    "390": View(390),
    "dark": View(1440, media={"color_scheme": "dark"}),
    "forced": View(1440, media={"forced_colors": "active"}),
    "zoom": View(720, 2),
    "print": View(A4, media={"media": "print"}),
}
MEASURED = """() => {
  const found = [];
  const name = (one) => `<${one.tagName.toLowerCase()} class="${one.getAttribute("class") ?? ""}"> `
    + one.textContent.trim().replace(/\\s+/g, " ").slice(0, 60);
  const inSight = (one) => one.checkVisibility({visibilityProperty: true})
    && !one.closest(".hidden, .skip, dialog:not([open])");
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`wider than the window: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  }
  for (const one of document.querySelectorAll("body *")) {
    if (!inSight(one)) continue;
    const style = getComputedStyle(one);
    const clips = /hidden|clip/.test(style.overflowX + style.overflowY)
      && !((style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none")
        && one.parentElement.querySelector("a"));
    const beyond = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1;
    if (clips && beyond && one.textContent.trim()
        && !one.matches("svg, svg *, select, .clip, .letters")
        && !one.closest("[title]") && !one.querySelector("[title]")) {
      found.push(`cut off, and no title: ${name(one)}`);
    }
    if (/auto|scroll/.test(style.overflowX) && one.scrollWidth > one.clientWidth + 1) {
      found.push(`scrolls sideways, ${one.scrollWidth} in ${one.clientWidth}: ${name(one)}`);
      const edge = one.getBoundingClientRect().right + 1;
      for (const words of one.querySelectorAll("caption, .empty, .note")) {
        const range = document.createRange();
        range.selectNodeContents(words);
        if (inSight(words) && range.getBoundingClientRect().right > edge) {
          found.push(`words beyond the edge: ${name(words)}`);
        }
      }
    }
  }
  const controls = [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter(inSight).map((one) => [one, one.getBoundingClientRect()]);
  for (const [n, [one, a]] of controls.entries()) {
    for (const [other, b] of controls.slice(n + 1, n + 40)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 3 && !one.contains(other) && !other.contains(one)
          && !one.closest(".bar, .rating-bar, .session-bar, .impact-panel")
            === !other.closest(".bar, .rating-bar, .session-bar, .impact-panel")) {
        found.push(`overlap: ${name(one)} and ${name(other)}`);
      }
    }
  }
  return found;
}"""
"""Measures of a page: width, text that is cut off, controls upon each other."""
RULES = {"runOnly": ["color-contrast", "target-size"], "resultTypes": ["violations"]}
"""Rules of axe: contrast of text and size of targets."""


def addresses(path: Path) -> dict[str, str]:
    """The pages of a collection, by name, with the first query, item, passage and two systems."""
    found = {
        **{one.address.strip("/") or "overview": one.address for one in PLACES},
        "worst": "/items?order=worst",
        "judge": "/judge",
        "judge-end": "/judge/end",
        "guidelines": "/judge/guidelines",
        "sample-judge": "/sample/judge",
        "agreement-cells": "/agreement/cells",
        **{
            f"trust-{kind}": f"/trust/{kind}"
            for kind in (
                "bias",
                "reliability",
                "sensitivity",
                "items",
                "attacks",
                "corrected",
                "calibration",
            )
        },
        **{f"list-{name}": f"/lists/{name}" for name in ("grid", "missing", "spurious", "answers")},
        "edits": "/history?what=edits",
        "search": "/search?q=a",
        "plots": "/plots",
        **{
            name: f"/{name}"
            for name in (
                "write",
                "grade",
                "duplicates",
                "banks",
                "improve",
                "people",
                "abstention",
                "citations",
                "turns",
            )
        },
        **{f"banks-{name}": f"/banks?show={name}" for name in ("new", "pairs")},
        "nowhere": "/nowhere",
    }
    with exampp.Collection(path) as collection:
        systems = [one.system for one in collection.systems.list()]
        if days := change_days(collection.connection):
            found["changes-since"] = "/changes?" + urlencode({"since": days[-1].day})
        try:
            graded = (one.grades for one in collection.grades().dossiers())
            first = next(one for one in graded if one.item_ids and one.passage_ids)
        except (exampp.InputError, StopIteration):
            return found
    query, item, passage = first.query_id, first.item_ids[0], first.passage_ids[0]
    cell = {"query": query, "item": item, "passage": passage}
    narrowed = urlencode({"find": systems[0][:2], "pin": systems[-2:]}, doseq=True)
    return found | {
        **{f"{name or 'overview'}-narrowed": f"/{name}?{narrowed}" for name in ("", "plots")},
        **{
            f"judge-{by}": "/judge/all?" + urlencode({**cell, "by": by})
            for by in ("item", "passage")
        },
        "query": "/query?" + urlencode({"id": query}),
        "record": "/record?" + urlencode({"id": query}),
        "cell": "/cell?" + urlencode(cell),
        "bank": "/bank?" + urlencode({"query": query}),
        "judge-query": "/judge?" + urlencode({"order": "query", "query": query}),
        "item": "/items?" + urlencode({"query": query, "item": item}),
        "compare": "/compare?" + urlencode({"a": systems[-1], "b": systems[0]}),
    }


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address at which an assessor comes into the collection."""
    command = [sys.executable, "-m", "exampp", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = (re.search(r"http://\S+", line) for line in process.stdout or ())
            yield next(found[0] for found in said if found)
        finally:
            process.terminate()


def look(page: Page, view: View) -> list[str]:
    """Set the page up as a view, and say what is wrong there."""
    page.evaluate("for (const one of document.images) one.loading = 'eager'")
    page.wait_for_function("() => [...document.images].every((one) => one.complete)")
    found: list[str] = page.evaluate(MEASURED)
    if not {"forced_colors", "media"} & view.media.keys():
        page.evaluate(AXE_SCRIPT)
        for one in page.evaluate("rules => axe.run(rules).then(made => made.violations)", RULES):
            found += [f"{one['id']}: {node['html'][:120]}" for node in one["nodes"][:3]]
    return list(dict.fromkeys(found))


def sheets(browser: Browser, pictures: Sequence[Path], view: View, out: Path) -> None:
    """Pictures side by side, a row's worth on each sheet."""
    across = max(3, min(8, 3600 // (view.width + 200)))
    page = browser.new_page(viewport={"width": 1800, "height": 100})
    for n in range(0, len(pictures), across):
        some = pictures[n : n + across]
        figures = "".join(
            f"<figure><figcaption>{one.stem}</figcaption><img src='{one.name}'></figure>"
            for one in some
        )
        html = out / "sheet.html"
        html.write_text(
            "<!doctype html><style>"
            "body{display:flex;gap:8px;margin:0;background:#888;font:14px sans-serif}"
            "figure{margin:0;flex:1;min-width:0;max-height:1400px;overflow:hidden}"
            "img{width:100%}</style>" + figures
        )
        page.goto(html.absolute().as_uri())
        page.screenshot(
            path=out / f"{some[0].parent.name}-sheet-{n // across + 1}.png", full_page=True
        )
        html.unlink()
    page.close()


def main() -> None:
    """Look at all pages in all views."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("collection", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--view", action="append", choices=VIEWS, help="by default all")
    parser.add_argument("--page", action="append", help="pages whose name has this in it")
    options = parser.parse_args()
    wanted = {
        name: address
        for name, address in addresses(options.collection).items()
        if not options.page or any(part in name for part in options.page)
    }
    if not wanted:
        parser.error(f"no page is called {' or '.join(options.page)}")
    with served(options.collection) as entrance, sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-headless-shell"),
            args=["--no-sandbox"],
        )
        for name in options.view or VIEWS:
            view = VIEWS[name]
            folder = options.out / name
            folder.mkdir(parents=True, exist_ok=True)
            context = browser.new_context(
                viewport={"width": view.width, "height": int(900 / view.scale)},
                device_scale_factor=view.scale,
            )
            page = context.new_page()
            page.goto(entrance)
            page.emulate_media(reduced_motion="reduce", **view.media)
            pictures = []
            for key, address in wanted.items():
                page.goto(entrance.split("/?")[0] + address)
                page.wait_for_function(
                    "() => !document.querySelector('meta[http-equiv=refresh]')"
                    " && !document.body.innerText.includes('Computing ')"
                    " && [...document.querySelectorAll('[data-drawing]')]"
                    ".every((one) => one.querySelector('svg'))"
                )
                for fault in look(page, view):
                    print(f"{name}\t{address}\t{fault}", flush=True)
                height = min(HIGHEST, page.evaluate("document.documentElement.scrollHeight"))
                pictures.append(folder / f"{key}.png")
                page.screenshot(
                    path=pictures[-1],
                    full_page=True,
                    clip={"x": 0, "y": 0, "width": view.width, "height": height},
                )
                if name == "print":
                    page.pdf(path=folder / f"{key}.pdf", prefer_css_page_size=True, format="A4")
            sheets(browser, pictures, view, folder)
            context.close()


if __name__ == "__main__":
    main()
