"""A server and a provider of batches that rate drawn texts, and count tokens as plans do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from exampp.graders.base import ApproximateTokens
from support.batch_servers import OpenAIStub, Outcome
from support.servers import Answer, FaultServer, completion

SEVERAL = re.compile(r"\n(?:Questions|Key Facts):\n(.*)\nReply with", re.S)
SINGLE = re.compile(r"\n(?:Question|Key Fact): (.*)\nContext: ")
LINE = re.compile(r"^\d+\. (.*)$", re.M)
Rate = Callable[[str, str], int]


def drawn(item: str, passage: str) -> int:
    """A rating: some items and some passages get better ones; about an eighth is 4 or 5."""

    def chance(text: str) -> float:
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32

    score = 1.2 * chance(item) ** 3 + 0.6 * chance(passage) + 0.5 * chance(item + passage)
    return min(5, int(score * 3.4))


def replied(text: str, rate: Rate) -> dict[str, Any]:
    """The reply to a prompt, with its tokens."""
    context = text.partition("Context: ")[2]
    if several := SEVERAL.search(text):
        passage = context[: context.index(several[0])]
        ratings = [rate(item, passage) for item in LINE.findall(several[1])]
        reply = json.dumps({str(at): one for at, one in enumerate(ratings, 1)})
    else:
        (item,) = SINGLE.findall(text)
        reply = str(rate(item, context))
    written = len(ApproximateTokens.offsets(reply)) + 1
    found: dict[str, Any] = completion(reply)
    return {**found, "usage": {"prompt_tokens": round(len(text) / 4), "completion_tokens": written}}


class CountingBatches(OpenAIStub):
    """A provider of batches that rates the same and counts tokens."""

    def __init__(self, rate: Rate) -> None:
        super().__init__()
        self.rate = rate

    def line(self, request: str, outcome: Outcome) -> dict[str, Any]:
        """Return the reply to a request."""
        line: dict[str, Any] = super().line(request, outcome)
        # a cell has one id in all batches
        newest = reversed(self.batches.values())
        sent = next(one for one in newest if request in one.requests)
        line["response"]["body"] |= replied(self.text_of(sent.requests[request]), self.rate)
        return line


def server(rate: Rate) -> FaultServer:
    """A server that rates the items of a prompt."""
    return FaultServer(lambda seen: Answer(replied(seen.body["messages"][-1]["content"], rate)))
