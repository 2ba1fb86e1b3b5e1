"""The sentences of answers as queries of their own exam, whose passages are what they cite."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote

_MARK = "#"


class CitedSentence(NamedTuple):
    """Which sentence of which system's answer to which query it is; counted from 1."""

    query_id: str
    system: str
    number: int

    @property
    def key(self) -> str:
        """The id of the sentence, without spaces: `query#system#number`, quoted as in a URL."""
        parts = (quote(self.query_id, safe=":"), quote(self.system, safe=":"), str(self.number))
        return _MARK.join(parts)


def read_sentence(key: str) -> CitedSentence | None:
    """The sentence of an id; None for the id of anything else."""
    parts = key.split(_MARK)
    if len(parts) != 3 or not parts[2].isdecimal():
        return None
    return CitedSentence(unquote(parts[0]), unquote(parts[1]), int(parts[2]))
