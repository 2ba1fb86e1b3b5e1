"""Visit every page of a served collection, as a browser would: by its links.

The addresses and their order depend on the collection alone. Pages are for people, so that only
their status, type and, for data (json, csv, tsv), their content are compared.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

LIMIT = 300
"""Addresses of one collection at most."""
DATA = ("json", "csv", "tab-separated", "ndjson")


class Links(HTMLParser):
    """The addresses that a page leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def visit(collection: Path) -> Iterator[tuple[str, int, str]]:
    """Serve a collection; yield each address, its status, and what is compared of its content."""
    command = [sys.executable, "-m", "exampp", "serve", collection.name, "--port", "0"]
    with subprocess.Popen(
        command, cwd=collection.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            greeting = next(iter(server.stdout or ()), "")
            address = re.search(r"http://\S+", greeting)
            if address is None:
                raise SystemExit(f"the server of {collection.name} names no address: {greeting}")
            found, before = list(crawl(address.group())), 0
            # a page that is still being computed leads nowhere yet
            while len(found) > before:
                time.sleep(5)
                before, found = len(found), list(crawl(address.group()))
            yield from found
        finally:
            server.send_signal(signal.SIGINT)


def crawl(entrance: str) -> Iterator[tuple[str, int, str]]:
    """Yield each address of a site, breadth first, with its status and data."""
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    host = urlsplit(entrance).netloc
    pending, seen = [entrance], {entrance, urljoin(entrance, "/")}
    for number in range(LIMIT):
        if number == len(pending):
            break
        address = pending[number]
        try:
            with opener.open(address, timeout=120) as answer:
                status, body = answer.status, answer.read().decode(errors="replace")
                kind = answer.headers.get_content_type()
        except HTTPError as error:
            status, body, kind = error.code, "", "text/html"
        except URLError as error:
            status, body, kind = 0, str(error), "text/plain"
        place = urlsplit(address)
        name = place.path + (f"?{place.query}" if place.query and address != entrance else "")
        yield name, status, f"{kind}\n{body if any(one in kind for one in DATA) else ''}"
        if kind == "text/html":
            links = Links()
            links.feed(body)
            for link in links.found:
                target = urldefrag(urljoin(address, link)).url
                if urlsplit(target).netloc == host and target not in seen:
                    seen.add(target)
                    pending.append(target)
