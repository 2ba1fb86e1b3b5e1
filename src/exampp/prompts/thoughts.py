"""What a model thinks before it replies: it names many ratings and is no part of the reply."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad|monologue|cot"
_MARK = re.compile(
    r"(?i)(?:(?P<tag><)|[\[\u25c1])\|?\s?(?P<close>/\s?|end_(?:of_)?)?(?:(?:start|begin)_(?:of_)?)?"
    rf"(?P<name>(?:[^\W_]{{1,20}}[_:-]){{0,3}}(?:{_NAMES})(?:[_:-][^\W_]{{1,20}}){{0,3}})"
    r"\s?(?(tag)(?:[^\w<>\n][^<>\n]{0,80})?|)\|?[>\]\u25b7]"
    r"|<\|channel\|>(?P<channel>\w++)[^<]{0,40}+(?:<\|constrain\|>[^<]{0,40}+)?<\|message\|>"
    r"|<\|(?P<end>end|return|call)\|>(?:<\|start\|>assistant)?"
)
_WORDS = (
    "<|",
    "think",
    "thought",
    "reason",
    "reflection",
    "analysis",
    "scratchpad",
    "monologue",
    "cot",
)
"""In every mark is one of them, in whatever case."""
_OTHER_CASES = re.compile("[\u0130\u0131\u017f]")
"""What a pattern that ignores case takes for `i` and `s`, beside what `str.lower` makes of them."""

_OTHER_MARKS = {  # Gemma, MedGemma, Apertus
    "<|channel>thought": "<think>",
    "<channel|>": "</think>",
    "<unused94>": "<think>",
    "<unused95>": "</think>",
    "<|inner_prefix|>": "<think>",
    "<|inner_suffix|>": "</think>",
}
_WORDED = (
    # channels whose marks a server left out
    (re.compile(r"\s*+analysis(?=[^\W_])"), re.compile(r"assistantfinal")),
    # Granite
    (
        re.compile(r"\s*+Here(?: is|'s) my thought process:"),
        re.compile(r"Here(?: is|'s) my response:"),
    ),
)
"""How replies open and end that say in words where the thought is."""


def without_thoughts(reply: str) -> str | None:
    """The reply without the thoughts of its model; None if a thought is not finished.

    A mark opens a thought and the closing mark of the same name ends it. What stands before a
    closing mark that nothing opened is a thought too: the opening one was part of the prompt. Of a
    reply in channels the last `final` one counts.
    """
    for opening, end in _WORDED:
        if opening.match(reply):
            parts = end.split(reply)
            return parts[-1] if len(parts) > 1 else None
    if not any(first in reply for first in "<[\u25c1"):
        return reply
    for other, mark_of_thought in _OTHER_MARKS.items():
        reply = reply.replace(other, mark_of_thought)
    lowered = reply.lower()
    if any(word in lowered for word in _WORDS) or _OTHER_CASES.search(reply):
        return _outside_marks(reply)
    return reply


def _outside_marks(reply: str) -> str | None:
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
