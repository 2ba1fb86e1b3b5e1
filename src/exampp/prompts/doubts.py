"""What a sentence denies, doubts, asks, reports, or puts under a condition is not said."""

from __future__ import annotations

import re

_BEFORE = re.compile(r"(?:k[viotOa]{0,3}|[zj]a?)\Z")
_AFTER = re.compile(
    r"[zynkjZ/]|i[kv]?k|oa?k|-+(?=\Z|[.\n])"
    r"|[,;:(\-]+(?:[zyj]|Z,|[nZ](?=\Z|[.)\n]))|[.\n]+[zjZ][^.?\n]{0,8}[NXPEYW]"
)
_NEAR = 5


class Doubts:
    """The places of a reply (classes of tokens, `reply_words.txt`) that are in doubt."""

    def __init__(self, kinds: str) -> None:
        self._kinds = kinds
        self._doubted = _doubted(kinds)

    def reach(self, at: int) -> bool:
        """Whether the sentence around a place, or what stands beside it, puts it in doubt."""
        return bool(
            self._doubted[at]
            or _BEFORE.search(self._kinds[max(0, at - _NEAR) : at])
            or _AFTER.match(self._kinds, at + 1)
        )


def _doubted(kinds: str) -> list[bool]:
    """For each place, whether its sentence denies it, asks for it, or puts a condition on it."""
    before, subordinate, opened = False, False, True
    doubted = []
    for kind in kinds:
        if kind in ".?\n;sl":
            before, subordinate, opened = False, False, True
        elif kind == "," and subordinate:
            before = subordinate = False
        elif kind.isalpha():
            before = before or kind in "nzyrZ"
            subordinate, opened = subordinate or (opened and kind == "b"), False
        doubted.append(before)
    asked = conditional = False
    for at in range(len(kinds) - 1, -1, -1):
        kind = kinds[at]
        if kind in ".?\n;":
            asked, conditional = kind == "?", False
        elif kind in "b:(-":
            conditional = False
        elif kind == "y":
            conditional = True
        doubted[at] = doubted[at] or asked or conditional
    return doubted
