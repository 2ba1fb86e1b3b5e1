"""Perceived difference of colours, also for colour-blind readers."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import numpy as np

VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""Linear RGB as it is seen: Machado, Oliveira and Fernandes 2009, severity 1."""
_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])
Lab = tuple[float, float, float]


def seen(colour: str, vision: str = "normal") -> Lab:
    """CIELAB of a colour `#rrggbb` as people with a kind of vision see it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    of_white = _XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / _WHITE
    x, y, z = np.where(
        of_white > 216 / 24389, np.cbrt(of_white), (24389 / 27 * of_white + 16) / 116
    )
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: Lab, other: Lab) -> float:
    """CIEDE2000 (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = hypot(stretch * a1, b1), hypot(stretch * a2, b2)
    h1, h2 = (degrees(atan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = h1 + turn / 2 if c1 * c2 else h1 + h2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * cos(radians(hue - 30))
        + 0.24 * cos(radians(2 * hue))
        + 0.32 * cos(radians(3 * hue + 6))
        - 0.20 * cos(radians(4 * hue - 63))
    )
    lightness = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2))
    saturation = (c2 - c1) / (1 + 0.045 * chroma)
    tint = 2 * sqrt(c1 * c2) * sin(radians(turn) / 2) / (1 + 0.015 * chroma * t)
    rotation = 60 * exp(-((((hue % 360) - 275) / 25) ** 2))
    crossed = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(rotation))
    return sqrt(lightness**2 + saturation**2 + tint**2 + crossed * saturation * tint)
