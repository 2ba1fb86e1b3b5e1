"""What a model thinks before it replies: it names many ratings and is no part of the reply."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
_MARK = re.compile(
    rf"(?i)[<\[\u25c1]\s?(?P<close>/?)\s?(?P<name>{_NAMES})\s?[>\]\u25b7]"
    r"|<\|channel\|>(?P<channel>\w++)[^<]{0,40}+<\|message\|>"
    r"|<\|(?P<end>end|return|call)\|>(?:<\|start\|>assistant)?"
)


def without_thoughts(reply: str) -> str | None:
    """The reply without the thoughts of its model; None if a thought is not finished.

    A mark opens a thought and the closing mark of the same name ends it. What stands before a
    closing mark that nothing opened is a thought too: the opening one was part of the prompt. Of a
    reply in channels the last `final` one counts.
    """
    kept: list[str] = []
    inside, start, channels = "", 0, False
    for mark in _MARK.finditer(reply):
        name = (mark["name"] or "").lower()
        if mark["channel"]:
            channels = True
            kept = []
            inside = "" if mark["channel"].lower() == "final" else "channel"
        elif mark["end"]:
            if not inside:
                kept.append(reply[start : mark.start()])
            inside = "channel" if channels else inside
        elif not inside and mark["close"]:
            kept = []
        elif not inside:
            kept.append(reply[start : mark.start()])
            inside = name
        elif mark["close"] and inside == name:
            inside = ""
        else:
            continue
        start = mark.end()
    if inside == "channel" and kept:
        return " ".join(kept)
    return None if inside else " ".join([*kept, reply[start:]])
