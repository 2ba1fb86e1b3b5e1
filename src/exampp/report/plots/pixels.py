"""A matrix as a small PNG, one pixel a cell: a heat map of any size stays a few kilobytes.

Colours go from orange over white to blue, and can be told apart without seeing red or green (after
Brewer, Harrower and Sheesley 2003).
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DIVERGING = (
    "#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3",
    "#2166ac",
)  # fmt: skip
"""From below the middle to above it, evenly spaced."""


def colours(values: NDArray[np.float64], scale: Sequence[str]) -> NDArray[np.uint8]:
    """Red, green and blue of values in 0..1 on a scale, one more dimension at the end."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in scale], np.float64)
    place = np.clip(values, 0, 1) * (len(stops) - 1)
    low = np.minimum(place.astype(np.intp), len(stops) - 2)
    part = (place - low)[..., None]
    mixed: NDArray[np.uint8] = np.rint(stops[low] * (1 - part) + stops[low + 1] * part).astype(
        np.uint8
    )
    return mixed


def shade(value: float, scale: Sequence[str]) -> str:
    """The colour of a value in 0..1 on a scale, as `#rrggbb`."""
    return "#" + bytes(colours(np.array([value]), scale)[0]).hex()


def picture(values: NDArray[np.float64], known: NDArray[np.bool_], scale: Sequence[str]) -> str:
    """The matrix of values in 0..1 as a data address of a PNG; what is unknown is transparent."""
    height, width = values.shape
    alpha = np.where(known, 255, 0).astype(np.uint8)[..., None]
    lines = np.concatenate([colours(values, scale), alpha], axis=2).reshape(height, width * 4)
    # every line starts with its filter, here none
    raw = np.pad(lines, ((0, 0), (1, 0))).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(*part)
        for part in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
