"""A collection in which every text and every id tries to be more than text."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader

PROOF = "exampp_was_hacked"
"""A name that any script of a passage would set."""
ATTACKS = {
    "script": f"<script>window.{PROOF} = 1</script> The answer is blue light.",
    "handler": f'<img src=x onerror="window.{PROOF} = 1"> and <b onmouseover=alert(1)>hover</b>',
    "svg": f'<svg onload="window.{PROOF} = 1"><script>window.{PROOF} = 1</script></svg>',
    "link": f'<a href="javascript:window.{PROOF}=1">javascript:window.{PROOF}=1</a>',
    "frame": '<iframe src="https://example.invalid/"></iframe><link rel=stylesheet href=//x>',
    "close": f'</textarea></title></p></template>"><script>window.{PROOF} = 1</script>',
    "template": "{{ 7 * 7 }} {% raw %} ${7*7} #{7*7} <%= 7 %>",
    "htmx": '<div hx-get="/history" hx-trigger="load" data-hx-on:load="alert(1)">x</div>',
    "escape": "\x1b[31mred\x1b[0m \x1b]8;;https://example.invalid\x07 bell \x00 null \x7f del",
    "direction": "abc \u202e desrever \u2066 isolated \u200f mark \u061c end",
    "joined": "zero\u200bwidth \ufeff mark and a soft\u00adhyphen",
    "tags": "ignore\U000e0068\U000e0069 \U000e0001 this",
    "lines": "one\r\ntwo\rthree\u2028four\u2029five\x0bsix",
    "entity": "&lt;script&gt; &amp;amp; &#60;b&#62; ]]> <!-- comment --> <!DOCTYPE html>",
    "long": "a" * 1_000_000,
    "empty": " ",
    "wide": "\U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301\u0301\u0301\u0301 \ufdfd",
}
"""Passages, by what they try."""
IDS = (
    "plain",
    "../../etc/passwd",
    "a/b/c",
    "quote\"'`",
    "percent%2Fsign%00%",
    "line\nbreak",
    "cr\r\nlf",
    "query?x=1&y=2#frag",
    "<script>alert(1)</script>",
    "tab\tand space ",
    "\u202eoverride",
    "\x1b[31m",
    "a+b=c;d,e",
    "{{ 7*7 }}",
    "\U0001f600 emoji",
    "x" * 600,
)
"""Ids, given to the passages in turn."""
QUERIES = {
    "q/1 \"quoted\" 'id' %41": '<script>alert("query")</script> why & how',
    "line\nbreak?&#": "\u202e reversed query \x1b[1m",
}
QUESTIONS = {
    "<i>item</i>/1": '<img src=x onerror=alert(1)> What is "blue" light?',
    "item\n2 'x' %0A": "</textarea><script>alert(2)</script> Why?",
    "item\u202e3": "\u202e\x1b[31m Which?",
}


def passages() -> dict[str, str]:
    """Text of each passage by its id."""
    texts = list(ATTACKS.values())
    return {name: texts[n % len(texts)] for n, name in enumerate(IDS)}


def reply(ask: Request) -> str:
    """A raw reply that is as hostile as the passages, and holds one number.

    Some have control characters, so that no rating is read.
    """
    rating = (len(ask.item) + len(ask.passage)) % 6
    control = "" if len(ask.passage) % 5 else "\x1b[m\u202e"
    return f"Rating: {rating}\n<script>window.{PROOF} = true</script>{control}"


def make(path: Path) -> Path:
    """The collection, graded; two systems with hostile names return every passage."""
    path.write_bytes(_graded())
    return path


@functools.cache
def _graded() -> bytes:
    """The collection, made once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        return _make(Path(folder)).read_bytes()


def _make(folder: Path) -> Path:
    (folder / "queries.json").write_text(json.dumps(QUERIES))
    bank = folder / "bank.jsonl"
    bank.write_text(
        "".join(
            json.dumps(
                {
                    "query_id": query_id,
                    "query_text": text,
                    "items": [
                        {
                            "query_id": query_id,
                            "question_id": f"{item} of {number}",
                            "question_text": said,
                        }
                        for item, said in QUESTIONS.items()
                    ],
                }
            )
            + "\n"
            for number, (query_id, text) in enumerate(QUERIES.items())
        )
    )
    lines = []
    for query_id in QUERIES:
        entries = [
            {
                "paragraph_id": name,
                "text": text,
                "paragraph_data": {
                    "judgments": [
                        {
                            "paragraphId": name,
                            "query": query_id,
                            "relevance": n % 4,
                            "titleQuery": "",
                        }
                    ],
                    "rankings": [
                        {
                            "method": system,
                            "paragraphId": name,
                            "queryId": query_id,
                            "rank": n + 1,
                            "score": float(-n),
                        }
                        for system in ("<b>bold</b>\u202e", "sys/../%2e")
                    ],
                },
            }
            for n, (name, text) in enumerate(passages().items())
        ]
        lines.append(json.dumps([query_id, entries]))
    (folder / "passages.jsonl").write_text("\n".join(lines) + "\n")
    with exampp.Collection.create(folder / "my.exam") as collection:
        collection.import_files(folder / "queries.json", bank, folder / "passages.jsonl")
        collection.grade(ScriptedGrader(reply, record=False), depth=100)
    return collection.path
