"""The interactive report from disk: size, first paint, filter, sort, and the decisions made in it.

PYTHONPATH=tests python benchmarks/interactive_report.py COLLECTION [--cells 20] [--seed 7]

Decisions are made twice: in the report, saved and imported into one copy of the collection, and on
the pages of the server of another copy. Both copies must have equal decisions and leaderboards.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from support import live, pages

from exampp import Collection

WHO = "dora"
TIMES = 11
PAINTED = """() => performance.getEntriesByName("first-contentful-paint")[0].startTime"""
TIMED = """([selector, name, values]) => new Promise((done) => {
  const node = document.querySelectorAll(selector)[0], times = [];
  const next = () => {
    if (times.length === values.length) { done(times); return; }
    const begin = performance.now();
    if (name === "input") {
      node.value = values[times.length];
      node.dispatchEvent(new Event("input"));
    } else node.click();
    // after the next frame has been drawn
    requestAnimationFrame(() => setTimeout(() => {
      times.push(performance.now() - begin);
      next();
    }));
  };
  next();
})"""
"""Milliseconds from an action until its frame is drawn."""


def spread(times: list[float]) -> str:
    """The median and the largest of some times."""
    return f"median {median(times):.0f} ms, most {max(times):.0f} ms"


def measure(browser: Browser, report: Path) -> None:
    """Print the times of the report."""
    paints, ready = list[float](), list[float]()
    for _ in range(3):
        page = browser.new_page()
        page.goto(report.as_uri())
        page.wait_for_selector("#explore[data-ready]")
        ready.append(page.evaluate("performance.now()"))
        paints.append(page.evaluate(PAINTED))
        page.close()
    page = browser.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("#explore[data-ready]")
    words = [*("abcdefghij"[: TIMES - 1]), ""]
    finds = page.locator("#explore-tools input[type=search]")
    for at, name in enumerate(("systems", "queries")):
        finds.nth(at).evaluate("(one, name) => { one.id = `find-${name}`; }", name)
        page.locator("#explore .rows").nth(at).evaluate("(one, name) => { one.id = name; }", name)
    print(f"first paint     {spread(paints)}; tables ready: {spread(ready)}")
    for name in ("systems", "queries"):
        times = page.evaluate(TIMED, [f"#find-{name}", "input", words])
        print(f"filter {name}  {spread(times)}")
        times = page.evaluate(TIMED, [f"#{name} thead button", "click", words])
        print(f"sort {name}    {spread(times)}")
    page.close()


UNPACKED = """async () => {
  const packed = document.getElementById("details").textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}"""
Cell = tuple[str, str, str, int]
"""query, item, passage, rating."""


def drawn(data: dict[str, Any], count: int, seed: int) -> list[Cell]:
    """Draw cells that the report shows whole, with a rating each."""
    low, high = data["scale"]
    cells = [
        (query["id"], item[0], data["texts"][text][1])
        for query in data["queries"]
        for returned in [{at for _, ranks in query["rankings"] for at, _ in ranks}]
        for item in query["items"]
        for at, text in enumerate(query["passages"])
        if at in returned and at not in query["cut"]
    ]
    chance = random.Random(seed)
    return [(*cell, chance.randint(low, high)) for cell in chance.sample(cells, count)]


def judge(page: Page, data: dict[str, Any], cells: list[Cell]) -> None:
    """Decide the cells in the report, as a person does."""
    for query_id, item_id, passage, rating in cells:
        query = next(one for one in data["queries"] if one["id"] == query_id)
        at = next(n for n, one in enumerate(query["items"]) if one[0] == item_id)
        page.locator("#explore .rows").nth(1).get_by_role(
            "button", name=query["text"] or query_id, exact=True
        ).click()
        item = page.locator("details.item").nth(at)
        if item.get_attribute("open") is None:
            item.locator("summary").first.click()
        answer = item.locator(".answer", has=page.get_by_text(passage, exact=True))
        more = item.get_by_role("button", name="Show more passages")
        while not answer.count():
            more.click()
        answer.get_by_role("button", name=str(rating), exact=True).click()


def state(path: Path) -> tuple[object, object]:
    """The decisions and the leaderboard of a collection."""
    with Collection(path) as collection:
        decisions = sorted(
            (one.query_id, one.item_id, one.passage_id, one.decision.author, one.decision.rating)
            for one in collection.decisions.list()
        )
        return decisions, collection.grades().evaluate(["Cover@20"]).scores("Cover@20", None)


def main() -> None:
    """Measure a report, and compare decisions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("collection", type=Path)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        report, saved = Path(folder, "result.html"), Path(folder, "decisions.json")
        copies = [Path(folder, name) for name in ("imported.exam", "judged.exam")]
        for path in copies:
            shutil.copy(options.collection, path)
        with Collection(copies[0]) as collection:
            collection.grades().report(report, interactive=True)
        print(f"size            {report.stat().st_size / 1e6:.2f} MB")
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-headless-shell"),
            args=["--no-sandbox"],
        )
        measure(browser, report)
        page = browser.new_page()
        page.goto(report.as_uri())
        page.wait_for_selector("#explore[data-ready]")
        data = page.evaluate(UNPACKED)
        cells = drawn(data, options.cells, options.seed)
        judge(page, data, cells)
        page.get_by_label("Your name").fill(WHO)
        with page.expect_download() as download:
            page.locator("#explore-save").click()
        download.value.save_as(saved)
        browser.close()
        with Collection(copies[0]) as collection:
            collection.import_files(saved)
        with live.visiting(copies[1], assessors=[WHO]) as client:
            for query, item, passage, rating in cells:
                shown = pages.read(
                    client.get("/cell", query=query, item=item, passage=passage).text
                )
                (form,) = (one for one in shown.all("form") if "cell" in one.fields())
                answer = client.post("/judge/decide", form.fields() | {"rating": str(rating)})
                if answer.status not in (200, 303):
                    raise SystemExit(f"not decided: {query} {item} {passage}: {answer.status}")
        (imported, board), (judged, other) = map(state, copies)
        made = len(json.loads(saved.read_text(encoding="utf-8"))["decisions"])
        print(f"decisions       {made} in the report, equal: {imported == judged}")
        print(f"leaderboards    equal: {board == other}")


if __name__ == "__main__":
    main()
