"""Find items that repeat another item of their query, so that each question counts once."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from exampp.evaluate.item_scores import ItemScores
from exampp.records.bank import BankTexts


def first_of_repeated(scores: ItemScores, texts: BankTexts) -> NDArray[np.intp]:
    """Return for each item the first item of its exam with the same words and the same credit.

    Case, punctuation and whitespace make no difference. Items without a text repeat nothing.
    """
    words = {
        (item.query_id, item.item_id): plain_words(item.text)
        for entry in texts.entries
        for item in entry.items
    }
    first: dict[tuple[object, ...], int] = {}
    found = []
    for at, item_id in enumerate(scores.item_ids):
        text = words.get((scores.queries[scores.query[at]], item_id), "")
        credit = scores.credit[:, at].tobytes()
        key = (int(scores.exam[at]), text, credit) if text else (at,)
        found.append(first.setdefault(key, at))
    return np.array(found, np.intp)


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, without punctuation."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
