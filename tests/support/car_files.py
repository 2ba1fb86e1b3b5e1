"""TREC CAR files, written as the track writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cbor2


def outline(page_id: str, name: str, sections: list[Any]) -> list[Any]:
    return [0, name, page_id.encode(), sections]


def section(heading: str, heading_id: str, *children: Any) -> list[Any]:
    return [0, heading, heading_id.encode(), list(children)]


def paragraph(paragraph_id: str, text: str, anchor: str = "") -> list[Any]:
    bodies: list[Any] = [[0, text]]
    if anchor:
        bodies.append([1, [0, "A page", [], b"enwiki:A%20page", anchor]])
    return [0, paragraph_id.encode(), bodies]


def write(path: Path, kind: int | None, items: list[Any]) -> Path:
    """A file of pages (0), outlines (1) or paragraphs (2); without a header, as in v1, for None."""
    body = b"".join(map(cbor2.dumps, items))
    header = b"" if kind is None else cbor2.dumps(["CAR", [kind], [["exampp", "test"]]])
    path.write_bytes(body if kind is None else header + b"\x9f" + body + b"\xff")
    return path


TOPICS = [
    outline(
        "tqa2:L_0002",
        "Earth science",
        [
            section("Geology", "T_0016", section("Rocks", "T_0016a")),
            section("Oceans", "T_0017"),
        ],
    ),
    outline("enwiki:Blue%20sky", "Blue sky", [section("Cause", "Cause")]),
]
PARAGRAPHS = [
    paragraph("a1", "Geology is the study of ", "rocks"),
    paragraph("a2", "Oceans are salt water."),
    paragraph("a3", "Air scatters blue light more than red light."),
    paragraph("a4", "Nobody returned this."),
]
RUN = """\
tqa2:L_0002/T_0016 Q0 a1 1 2.0 alpha
tqa2:L_0002/T_0016/T_0016a Q0 a1 1 2.0 alpha
tqa2:L_0002/T_0017 Q0 a2 1 2.0 alpha
enwiki:Blue%20sky/Cause Q0 a3 1 2.0 alpha
tqa2:L_0002/T_0016 Q0 a2 1 2.0 beta
"""
QRELS = "tqa2:L_0002/T_0016 0 a1 1\nenwiki:Blue%20sky/Cause 0 a3 1\n"
BANK = """\
query_id\tsubtopic_id\tquestion
tqa2:L_0002\tT_0016\tWhat is geology the study of?
tqa2:L_0002\tT_0017\tWhat kind of water is in oceans?
enwiki:Blue%20sky\tCause\tWhich light does air scatter more?
"""
