"""A matrix as a small PNG, one pixel a cell: a heat map of any size stays a few kilobytes.

Colours are viridis (van der Walt and Smith 2015), interpolated between samples of it; they grow
lighter evenly, so that they can be read in grey and without seeing all colours.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

VIRIDIS = (
    "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58",
    "#b5de2b", "#fde725",
)  # fmt: skip
"""From low to high, evenly spaced."""

_STOPS = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in VIRIDIS], np.float64)


def colours(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Red, green and blue of values in 0..1, one more dimension at the end."""
    place = np.clip(values, 0, 1) * (len(_STOPS) - 1)
    low = np.minimum(place.astype(np.intp), len(_STOPS) - 2)
    part = (place - low)[..., None]
    mixed: NDArray[np.uint8] = np.rint(_STOPS[low] * (1 - part) + _STOPS[low + 1] * part).astype(
        np.uint8
    )
    return mixed


def shade(value: float) -> str:
    """The colour of a value in 0..1, as `#rrggbb`."""
    return "#" + bytes(colours(np.array([value]))[0]).hex()


def picture(values: NDArray[np.float64], known: NDArray[np.bool_]) -> str:
    """The matrix of values in 0..1 as a data address of a PNG; what is unknown is transparent."""
    height, width = values.shape
    alpha = np.where(known, 255, 0).astype(np.uint8)[..., None]
    lines = np.concatenate([colours(values), alpha], axis=2).reshape(height, width * 4)
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
