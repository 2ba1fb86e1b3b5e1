"""Two tasks without a terminal: from files to a leaderboard; a run watched, stopped, resumed.

PYTHONPATH=tests:benchmarks python benchmarks/from_nothing.py FILE... [--pictures FOLDER]

The files go into a new collection through the pages, with headless Chromium by Playwright; the
draft grader grades them. Then a model on a slow server of this process grades them: its run is
watched, stopped and resumed. Prints clicks, keys and seconds of each task, and how old the page was
when it was read. With `--keyboard` nothing is clicked; with `--pictures`, the pages are drawn as
for the documentation.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from review_tasks import Hand
from support.servers import FaultServer

from exampp.web.live_collection import LiveCollection
from exampp.web.people import People
from exampp.web.serving import created_if_new, listen, prepare

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1120, 700


class Album:
    """The pictures of a walk, numbered in the order of the pages."""

    def __init__(self, page: Page, folder: Path | None) -> None:
        self.page, self.folder = page, folder

    def draw(self, name: str) -> None:
        """Draw the window as it is."""
        if self.folder is not None:
            self.page.screenshot(path=self.folder / f"{name}.png")


def from_files(hand: Hand, files: list[Path], album: Album) -> str:
    page = hand.page
    album.draw("start")
    page.get_by_label("Drop files here").set_input_files(files)
    hand.click(page.get_by_role("button", name="Add files"))
    album.draw("files")
    hand.click(page.get_by_role("button", name="Import"))
    hand.to("Leaderboard")
    hand.click(page.get_by_role("link", name="Choose a grader"))
    page.locator("#grader").select_option("draft")
    hand.clicks += 1
    hand.click(page.get_by_role("button", name="Show the price"))
    page.locator("#price section").wait_for()
    hand.click(page.get_by_role("button", name="Start grading"))
    hand.click(page.get_by_role("link", name="Open the leaderboard"))
    page.locator("table.board tbody tr").first.wait_for(timeout=60_000)
    return f"{page.locator('table.board tbody tr').count()} systems on the leaderboard"


def watch(hand: Hand, url: str, album: Album) -> str:
    page = hand.page
    hand.to("Runs")
    hand.click(page.get_by_role("link", name="Grade", exact=True))
    page.get_by_label("Model", exact=True).fill("tiny")
    page.get_by_label("Address of the server").fill(url)
    page.get_by_label("Price of a million input").fill("0.15")
    page.get_by_label("Price of a million output").fill("0.6")
    hand.click(page.locator(".of-model summary", has_text="More options"))
    page.get_by_label("Concurrency").fill("4")
    hand.keys += len(f"tiny{url}0.150.64")
    hand.click(page.get_by_role("button", name="Show the price"))
    page.locator("#price section").wait_for()
    page.locator("#price").scroll_into_view_if_needed()
    album.draw("price")
    hand.click(page.get_by_role("button", name="Start grading"))
    run = page.locator(".run").first
    run.locator(".row", has_text=" left").wait_for(timeout=60_000)
    ages = []
    for _ in range(5):
        before = run.locator("progress").get_attribute("value")
        began = time.monotonic()
        page.wait_for_function(
            "value => document.querySelector('.run progress').getAttribute('value') !== value",
            arg=before,
        )
        ages.append(time.monotonic() - began)
    album.draw("runs")
    hand.click(run.get_by_role("button", name="Stop"))
    page.locator(".run .tag", has_text="stopped").wait_for(timeout=60_000)
    hand.click(run.get_by_role("button", name="Resume"))
    page.locator(".run .tag", has_text="finished").first.wait_for(timeout=600_000)
    return f"stopped and resumed; the page changed every {max(ages):.1f} s at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--keyboard", action="store_true")
    given = parser.parse_args()
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    with (
        tempfile.TemporaryDirectory() as folder,
        listen("127.0.0.1", 0) as listener,
        created_if_new(path := Path(folder, "my.exam")),
        FaultServer(delay=0.25) as model,
        sync_playwright() as driver,
    ):
        live = LiveCollection(path)
        people = People()
        people.add("ada", "owner")
        served = prepare(live, listener, "127.0.0.1", people)
        threading.Thread(target=served.run, daemon=True).start()
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(next(iter(served.addresses().values())))
        hand, album = Hand(page, keyboard=given.keyboard), Album(page, given.pictures)
        tasks: dict[str, Callable[[], str]] = {
            "from nothing": lambda: from_files(hand, given.files, album),
            "watch and stop": lambda: watch(hand, model.url, album),
        }
        for name, task in tasks.items():
            hand.clicks = hand.keys = 0
            began = time.monotonic()
            result = task()
            seconds = time.monotonic() - began
            print(f"{name:16}{hand.clicks:4} clicks {hand.keys:4} keys {seconds:6.1f} s  {result}")
        browser.close()
        served.server.should_exit = True
        live.close()


if __name__ == "__main__":
    main()
